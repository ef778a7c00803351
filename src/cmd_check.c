/* cdcd check: looks at the source and the sink before anything is started. */
#include "command.h"
#include "runner.h"

#include <getopt.h>
#include <jansson.h>
#include <stdio.h>
#include <unistd.h>

struct collected {
    const char *side; /* "source", "sink" */
    json_t *json;     /* array, or NULL: print lines */
    bool colour;
    int fails, warns;
};

static const char *const level_names[] = {"ok", "warn", "FAIL"};
static const char *const level_colours[] = {"\033[32m", "\033[33m", "\033[31m"};

static void add(void *ctx, enum cdcd_check_level level, const char *what, const char *text,
                const char *mend)
{
    struct collected *c = ctx;
    c->fails += level == CDCD_CHECK_FAIL;
    c->warns += level == CDCD_CHECK_WARN;
    if (c->json) {
        json_array_append_new(c->json,
                              json_pack("{s:s, s:s, s:s, s:s, s:s?}", "side", c->side, "level",
                                        level == CDCD_CHECK_FAIL ? "fail" : level_names[level],
                                        "what", what, "text", text, "mend", mend));
        return;
    }
    printf("%s%-4s%s  %s: %s: %s\n", c->colour ? level_colours[level] : "", level_names[level],
           c->colour ? "\033[0m" : "", c->side, what, text);
    if (mend && level != CDCD_CHECK_OK)
        printf("      mend: %s\n", mend);
}

static void check_source(const struct cdcd_config *config, struct collected *c)
{
    struct cdcd_error err = {0};
    struct cdcd_source_env env;
    struct cdcd_report report = {c, add};
    c->side = "source";
    cdcd_pipeline_source_env(config, &env);
    if (config->source_plugin->source->check(config->source_config, &env, &report, &err) != CDCD_OK)
        add(c, CDCD_CHECK_FAIL, config->source_plugin->name, err.text, NULL);
}

static void check_sink(const struct cdcd_config *config, struct collected *c)
{
    struct cdcd_error err = {0};
    struct cdcd_sink_env env;
    struct cdcd_report report = {c, add};
    c->side = "sink";
    cdcd_pipeline_sink_env(config, &env);
    if (config->sink_plugin->sink->check(config->sink_config, &env, &report, &err) != CDCD_OK)
        add(c, CDCD_CHECK_FAIL, config->sink_plugin->name, err.text, NULL);
}

static int check_main(int argc, char **argv)
{
    static const struct option longs[] = {
        {"config", required_argument, NULL, 'c'}, {"json", no_argument, NULL, 'j'}, {0}};
    const char *path = NULL;
    bool json = false, bad = false;
    int c, code = 0;
    optind = 1;
    while ((c = getopt_long(argc, argv, "c:", longs, NULL)) != -1) {
        if (c == 'c')
            path = optarg;
        else if (c == 'j')
            json = true;
        else
            bad = true;
    }
    if (bad || !path || optind < argc)
        return cdcd_command_misused(&cdcd_cmd_check, "wants -c FILE and no other arguments");
    struct cdcd_config *config = cdcd_runner_load(path, &code);
    if (!config)
        return code;
    struct collected all = {.json = json ? json_array() : NULL,
                            .colour = isatty(STDOUT_FILENO) == 1};
    check_source(config, &all);
    check_sink(config, &all);
    if (json) {
        json_t *doc = json_pack("{s:s, s:b, s:i, s:i, s:o}", "pipeline", config->name, "ok",
                                all.fails == 0, "fails", all.fails, "warnings", all.warns, "checks",
                                all.json);
        json_dumpf(doc, stdout, JSON_INDENT(1));
        putchar('\n');
        json_decref(doc);
    } else {
        printf("%s: %d failed, %d warnings\n", config->name, all.fails, all.warns);
    }
    cdcd_config_free(config);
    return all.fails ? 1 : 0;
}

const struct cdcd_command cdcd_cmd_check = {
    .name = "check",
    .summary = "look at source and sink, and say what to run to mend what is wrong",
    .usage = "cdcd check -c FILE [--json]",
    .run = check_main,
};
