/*
 * Errors and result codes.
 *
 * A function that can fail returns `enum cdcd_rc` and takes a caller-owned
 * `struct cdcd_error *` as its last parameter. The class decides what the core
 * does; the text is for people and says what happened, to which object, and
 * what to do about it. Context is added while unwinding with
 * cdcd_error_context(); whoever returns an error does not log it, the pipeline
 * logs it once.
 */
#ifndef CDCD_ERROR_H
#define CDCD_ERROR_H

#include <stdarg.h>
#include <stddef.h>

#define CDCD_MUSTCHECK         __attribute__((warn_unused_result))
#define CDCD_PRINTF(fmt, args) __attribute__((format(printf, fmt, args)))
/* What a plugin exports; everything else is hidden by -fvisibility=hidden. */
#define CDCD_EXPORT __attribute__((visibility("default")))

/* The closed set of results. */
enum cdcd_rc {
    CDCD_OK = 0, /* done */
    CDCD_AGAIN,  /* nothing yet; deadline passed or no data */
    CDCD_END,    /* orderly end: barrier reached, chunk finished */
    CDCD_ERROR,  /* *err is set */
};

enum cdcd_error_class {
    CDCD_ERR_NONE = 0,
    CDCD_ERR_RETRY,  /* the world is down for now: back off, reconnect, resume */
    CDCD_ERR_DATA,   /* one record: stop, dead-letter or skip by policy */
    CDCD_ERR_CONFIG, /* the user must change something: stop, exit 2 */
    CDCD_ERR_LOSS,   /* going on would lose data: stop, exit 3 */
    CDCD_ERR_FATAL,  /* anything else that cannot go on: stop, exit 1 */
};

struct cdcd_error {
    enum cdcd_error_class class;
    char text[2048];
};

/* Sets class and text; text is cut at the buffer's size. Returns CDCD_ERROR, so
 * that `return cdcd_error_set(err, ...)` reads well. `err` may be NULL. */
enum cdcd_rc cdcd_error_set(struct cdcd_error *err, enum cdcd_error_class class, const char *fmt,
                            ...) CDCD_PRINTF(3, 4);

/* Puts "context: " before the text that is there. Returns CDCD_ERROR. */
enum cdcd_rc cdcd_error_context(struct cdcd_error *err, const char *fmt, ...) CDCD_PRINTF(2, 3);

/* "retry", "data", ...: for logs and status. */
const char *cdcd_error_class_name(enum cdcd_error_class class);

/* Exit code of the process for an error of this class (see docs): 1, 2 or 3. */
int cdcd_error_exit_code(enum cdcd_error_class class);

#endif
