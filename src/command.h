/* command: one entry of `cdcd COMMAND ...`; each lives in a file cmd_NAME.c of its own. */
#ifndef CDCD_COMMAND_H
#define CDCD_COMMAND_H

#include <cdcd/error.h>

#include <stdbool.h>
#include <stdio.h>

enum {
    CDCD_EXIT_OK = 0,
    CDCD_EXIT_FAILED = 1, /* at run time */
    CDCD_EXIT_USAGE = 2,  /* bad usage or config */
    CDCD_EXIT_LOSS = 3,   /* stopped because going on would lose data */
};

struct cdcd_command {
    const char *name;
    const char *alias;   /* or NULL */
    const char *summary; /* one line for `cdcd --help` */
    const char *usage;   /* the synopsis, without "usage: " */
    const char *help;    /* what --help prints below it, or NULL: the summary */
    /* argv[0] is the command; --help is dealt with before. Returns the exit code. */
    int (*run)(int argc, char **argv);
};

extern const struct cdcd_command cdcd_cmd_run, cdcd_cmd_snapshot, cdcd_cmd_check, cdcd_cmd_drop,
    cdcd_cmd_tail, cdcd_cmd_status, cdcd_cmd_config, cdcd_cmd_replay;

void cdcd_command_help(const struct cdcd_command *c, FILE *out);
/* Prints the reason and where to find help on stderr; returns CDCD_EXIT_USAGE. */
int cdcd_command_misused(const struct cdcd_command *c, const char *fmt, ...) CDCD_PRINTF(2, 3);

/* Arguments "(-c FILE | URL) [--json]": one of *path and *url is set, the other NULL. Returns an
 * exit code, CDCD_EXIT_OK when they fit. */
int cdcd_command_target(const struct cdcd_command *c, int argc, char **argv, const char **path,
                        const char **url, bool *json);
/* Prints the error on stderr; returns the exit code of its class. */
int cdcd_command_failed(const struct cdcd_error *err);

#endif
