#include "command.h"
#include "plugin.h"

#include <cdcd/version.h>

#include <signal.h>
#include <stdio.h>
#include <string.h>

/* Read by jemalloc when the binary is linked with it, by nobody otherwise: few arenas, and freed
 * pages go back to the system within a second, so that memory stays small. */
CDCD_EXPORT extern const char *malloc_conf;
const char *malloc_conf = "narenas:4,dirty_decay_ms:1000,muzzy_decay_ms:0";

static const struct cdcd_command *const commands[] = {
    &cdcd_cmd_run,  &cdcd_cmd_snapshot, &cdcd_cmd_check, &cdcd_cmd_status,
    &cdcd_cmd_tail, &cdcd_cmd_replay,   &cdcd_cmd_drop,  &cdcd_cmd_config,
};
#define NCOMMANDS (sizeof(commands) / sizeof(commands[0]))

static void print_help(FILE *out)
{
    fputs("cdcd follows a database's changes and publishes them, each exactly once.\n\n"
          "usage: cdcd COMMAND [OPTION]...\n"
          "       cdcd -c FILE            the same as `cdcd run -c FILE`\n\n"
          "Commands:\n",
          out);
    for (size_t i = 0; i < NCOMMANDS; i++)
        fprintf(out, "  %-10s %s\n", commands[i]->name, commands[i]->summary);
    fputs("\n`cdcd COMMAND --help` tells more of one. `cdcd --version` prints the version.\n"
          "A first config: `cdcd config --sample postgres`.\n\n"
          "Exit codes: 0 done, 1 failed at run time, 2 bad usage or config, 3 stopped because\n"
          "going on would lose data.\n",
          out);
}

static const struct cdcd_command *find_command(const char *name)
{
    for (size_t i = 0; i < NCOMMANDS; i++) {
        const struct cdcd_command *c = commands[i];
        if (strcmp(c->name, name) == 0 || (c->alias && strcmp(c->alias, name) == 0))
            return c;
    }
    return NULL;
}

static int unknown_command(const char *name)
{
    struct cdcd_option names[2 * NCOMMANDS + 1];
    size_t n = 0;
    memset(names, 0, sizeof(names));
    for (size_t i = 0; i < NCOMMANDS; i++) {
        names[n++].name = commands[i]->name;
        if (commands[i]->alias)
            names[n++].name = commands[i]->alias;
    }
    const char *near = cdcd_option_suggest(names, name);
    fprintf(stderr, "cdcd: there is no command \"%s\"", name);
    if (near)
        fprintf(stderr, "; did you mean %s?", near);
    fputs("\nTry `cdcd --help`.\n", stderr);
    return CDCD_EXIT_USAGE;
}

static int run_command(const struct cdcd_command *c, int argc, char **argv)
{
    for (int i = 1; i < argc && strcmp(argv[i], "--") != 0; i++) {
        if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0) {
            cdcd_command_help(c, stdout);
            return CDCD_EXIT_OK;
        }
    }
    return c->run(argc, argv);
}

static int dispatch(int argc, char **argv)
{
    if (argc < 2) {
        print_help(stderr);
        return CDCD_EXIT_USAGE;
    }
    const char *first = argv[1];
    if (strcmp(first, "--version") == 0 || strcmp(first, "-V") == 0) {
        puts("cdcd " CDCD_VERSION);
        return CDCD_EXIT_OK;
    }
    if (strcmp(first, "--help") == 0 || strcmp(first, "-h") == 0 || strcmp(first, "help") == 0) {
        const struct cdcd_command *c = argc > 2 ? find_command(argv[2]) : NULL;
        if (argc > 2 && !c)
            return unknown_command(argv[2]);
        if (c)
            cdcd_command_help(c, stdout);
        else
            print_help(stdout);
        return CDCD_EXIT_OK;
    }
    if (first[0] == '-')
        return run_command(&cdcd_cmd_run, argc, argv);
    const struct cdcd_command *c = find_command(first);
    return c ? run_command(c, argc - 1, argv + 1) : unknown_command(first);
}

int main(int argc, char **argv)
{
    /* A reader that goes away is an error of write(), not the end of the process. */
    signal(SIGPIPE, SIG_IGN);
#ifdef CDCD_STATIC_PLUGINS
    cdcd_plugin_set_static(cdcd_static_plugins);
#endif
    int code = dispatch(argc, argv);
    if (fflush(stdout) != 0 && code == CDCD_EXIT_OK)
        code = CDCD_EXIT_FAILED;
    return code;
}
