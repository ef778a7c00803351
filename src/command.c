#include "command.h"

#include <getopt.h>

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

int cdcd_command_target(const struct cdcd_command *cmd, int argc, char **argv, const char **path,
                        const char **url, bool *json)
{
    static const struct option longs[] = {
        {"config", required_argument, NULL, 'c'}, {"json", no_argument, NULL, 'j'}, {0}};
    int c;
    *path = NULL;
    *json = false;
    optind = 1;
    while ((c = getopt_long(argc, argv, "c:j", longs, NULL)) != -1) {
        if (c == 'c')
            *path = optarg;
        else if (c == 'j')
            *json = true;
        else
            return CDCD_EXIT_USAGE;
    }
    *url = optind < argc ? argv[optind] : NULL;
    if (!*path == !*url || optind + 1 < argc)
        return cdcd_command_misused(cmd, "wants either -c FILE or one URL");
    return CDCD_EXIT_OK;
}
