/* cdcd drop: removes what cdcd created on the source, after asking. */
#include "command.h"
#include "runner.h"

#include <getopt.h>
#include <stdio.h>
#include <unistd.h>

static void print_line(void *ctx, enum cdcd_check_level level, const char *what, const char *text,
                       const char *mend)
{
    int *found = ctx;
    *found += level != CDCD_CHECK_OK;
    printf("%s: %s\n", what, text);
    if (mend)
        printf("  %s\n", mend);
}

static bool confirmed(void)
{
    char answer[16] = "";
    printf("Remove these? Changes since the last run are then not to be had any more. [y/N] ");
    fflush(stdout);
    if (!fgets(answer, sizeof answer, stdin))
        return false;
    return answer[0] == 'y' || answer[0] == 'Y';
}

static int drop(struct cdcd_config *config, bool yes)
{
    const struct cdcd_source_ops *ops = config->source_plugin->source;
    struct cdcd_source_env env;
    struct cdcd_error err = {0};
    int found = 0;
    struct cdcd_report report = {&found, print_line};
    cdcd_pipeline_source_env(config, &env);
    if (ops->drop(config->source_config, &env, true, &report, &err) != CDCD_OK)
        return cdcd_command_failed(&err);
    if (found == 0) {
        printf("nothing to drop\n");
        return 0;
    }
    if (!yes && !confirmed()) {
        printf("nothing dropped\n");
        return 0;
    }
    if (ops->drop(config->source_config, &env, false, &report, &err) != CDCD_OK)
        return cdcd_command_failed(&err);
    return 0;
}

static int drop_main(int argc, char **argv)
{
    static const struct option longs[] = {
        {"config", required_argument, NULL, 'c'}, {"yes", no_argument, NULL, 'y'}, {0}};
    const char *path = NULL;
    bool yes = false, bad = false;
    int c, code = 0;
    optind = 1;
    while ((c = getopt_long(argc, argv, "c:y", longs, NULL)) != -1) {
        if (c == 'c')
            path = optarg;
        else if (c == 'y')
            yes = true;
        else
            bad = true;
    }
    if (bad || !path || optind < argc)
        return cdcd_command_misused(&cdcd_cmd_drop, "wants -c FILE and no other arguments");
    struct cdcd_config *config = cdcd_runner_load(path, &code);
    if (!config)
        return code;
    code = drop(config, yes);
    cdcd_config_free(config);
    return code;
}

const struct cdcd_command cdcd_cmd_drop = {
    .name = "drop",
    .summary = "remove what cdcd created on the source (slot, publication), after asking",
    .usage = "cdcd drop -c FILE [--yes]",
    .run = drop_main,
};
