/* cdcd run, cdcd snapshot: the daemon and its one-shot form. */
#include "command.h"
#include "runner.h"

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>

static int run(const struct cdcd_command *cmd, bool snapshot_only, int argc, char **argv)
{
    static const struct option longs[] = {
        {"config", required_argument, NULL, 'c'}, {"table", required_argument, NULL, 't'}, {0}};
    const char *path = NULL;
    struct cdcd_strlist only = {cdcd_xcalloc((size_t)argc + 1, sizeof(char *)), 0};
    int c, code = 0;
    optind = 1;
    while ((c = getopt_long(argc, argv, ":c:", longs, NULL)) != -1) {
        if (c == 'c')
            path = optarg;
        else if (c == 't' && snapshot_only)
            only.items[only.n++] = optarg;
        else
            code = cdcd_command_misused(cmd, "unknown option %s", argv[optind - 1]);
    }
    struct cdcd_config *config = NULL;
    if (code == 0 && (!path || optind < argc))
        code = cdcd_command_misused(cmd, path ? "unexpected argument %s" : "-c FILE is missing",
                                    argv[optind]);
    if (code == 0)
        config = cdcd_runner_load(path, &code);
    if (config) {
        struct cdcd_run_options options = {.snapshot_only = snapshot_only,
                                           .only = only.n ? &only : NULL};
        code = cdcd_runner_run(config, &options);
    }
    free(only.items);
    return code;
}

static int run_main(int argc, char **argv)
{
    return run(&cdcd_cmd_run, false, argc, argv);
}

static int snapshot_main(int argc, char **argv)
{
    return run(&cdcd_cmd_snapshot, true, argc, argv);
}

const struct cdcd_command cdcd_cmd_run = {
    .name = "run",
    .summary = "take a snapshot if snapshot.mode asks for it, then stream until told to stop",
    .usage = "cdcd run -c FILE",
    .run = run_main,
};

const struct cdcd_command cdcd_cmd_snapshot = {
    .name = "snapshot",
    .alias = "bootstrap",
    .summary = "record the log position, publish a consistent snapshot, exit",
    .usage = "cdcd snapshot -c FILE [--table SCHEMA.TABLE]...",
    .run = snapshot_main,
};
