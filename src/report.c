#include <cdcd/plugin.h>

#include <stdio.h>
#include <stdlib.h>

void cdcd_report_addf(const struct cdcd_report *r, enum cdcd_check_level level, const char *what,
                      char *mend, const char *fmt, ...)
{
    char text[2048];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    r->add(r->ctx, level, what, text, mend);
    free(mend);
}

bool cdcd_report_more(size_t *lines)
{
    return ++*lines <= CDCD_REPORT_LINES;
}

void cdcd_report_end(const struct cdcd_report *r, size_t *lines, const char *what)
{
    if (*lines > CDCD_REPORT_LINES)
        cdcd_report_addf(r, CDCD_CHECK_WARN, what, NULL, "... and %zu more tables",
                         *lines - CDCD_REPORT_LINES);
    *lines = 0;
}
