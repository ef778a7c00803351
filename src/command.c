#include "command.h"

void cdcd_command_help(const struct cdcd_command *c, FILE *out)
{
    fprintf(out, "usage: %s\n\n%s\n", c->usage, c->help ? c->help : c->summary);
}

int cdcd_command_misused(const struct cdcd_command *c, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    fputs("cdcd: ", stderr);
    vfprintf(stderr, fmt, ap);
    va_end(ap);
    fprintf(stderr, "\nTry `cdcd %s --help`.\n", c->name);
    return CDCD_EXIT_USAGE;
}

int cdcd_command_failed(const struct cdcd_error *err)
{
    fprintf(stderr, "cdcd: %s\n", err->text);
    return cdcd_error_exit_code(err->class);
}
