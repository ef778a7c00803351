#include <cdcd/error.h>

#include <stdio.h>
#include <string.h>

enum cdcd_rc cdcd_error_set(struct cdcd_error *err, enum cdcd_error_class class, const char *fmt,
                            ...)
{
    if (!err)
        return CDCD_ERROR;
    /* Formatted aside: an argument may be err->text itself. */
    char text[sizeof(err->text)];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof(text), fmt, ap);
    va_end(ap);
    memcpy(err->text, text, sizeof(text));
    err->class = class;
    return CDCD_ERROR;
}

enum cdcd_rc cdcd_error_context(struct cdcd_error *err, const char *fmt, ...)
{
    if (!err)
        return CDCD_ERROR;
    char text[sizeof(err->text)];
    va_list ap;
    va_start(ap, fmt);
    int n = vsnprintf(text, sizeof(text), fmt, ap);
    va_end(ap);
    size_t used = n < 0 ? 0 : (size_t)n;
    if (used + 2 < sizeof(text)) {
        size_t room = sizeof(text) - used - 3, len = strlen(err->text);
        memcpy(text + used, ": ", 2);
        memcpy(text + used + 2, err->text, len < room ? len : room);
        text[used + 2 + (len < room ? len : room)] = 0;
    }
    memcpy(err->text, text, sizeof(text));
    return CDCD_ERROR;
}

const char *cdcd_error_class_name(enum cdcd_error_class class)
{
    switch (class) {
    case CDCD_ERR_NONE: return "none";
    case CDCD_ERR_RETRY: return "retry";
    case CDCD_ERR_DATA: return "data";
    case CDCD_ERR_CONFIG: return "config";
    case CDCD_ERR_LOSS: return "loss";
    case CDCD_ERR_FATAL: return "fatal";
    }
    return "unknown";
}

int cdcd_error_exit_code(enum cdcd_error_class class)
{
    switch (class) {
    case CDCD_ERR_NONE: return 0;
    case CDCD_ERR_CONFIG: return 2;
    case CDCD_ERR_LOSS: return 3;
    default: return 1;
    }
}
