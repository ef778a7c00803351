/*
 * cdcd tail: live changes on the terminal. What it makes on the server goes with its connection.
 */
#include "command.h"
#include "runner.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MAX_PAIRS 16

struct pairs {
    char *items[MAX_PAIRS];
    size_t n;
};

static void add_pair(struct pairs *p, char *pair)
{
    if (p->n < MAX_PAIRS)
        p->items[p->n++] = pair;
    else
        free(pair);
}

static const char *source_of(const char *url)
{
    static const struct {
        const char *scheme, *source;
    } known[] = {{"postgres://", "postgres"}, {"postgresql://", "postgres"},
                 {"mysql://", "mysql"},       {"mariadb://", "mysql"},
                 {"mongodb://", "mongodb"},   {"mongodb+srv://", "mongodb"}};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        if (strncmp(url, known[i].scheme, strlen(known[i].scheme)) == 0)
            return known[i].source;
    }
    return strchr(url, '=') ? "postgres" : NULL; /* libpq's key=value form */
}

/* A slot, a publication and an application name of our own, told apart from other tails'. */
static void add_common(struct pairs *p, bool json)
{
    unsigned seed = (unsigned)cdcd_wallclock_us();
    add_pair(p, cdcd_xasprintf("name=tail_%d_%04x", (int)getpid(), rand_r(&seed) & 0xffffu));
    add_pair(p, cdcd_xstrdup("sink.file.path=-"));
    add_pair(p, cdcd_xasprintf("sink.file.format=%s", json ? "json" : "pretty"));
    if (!json) /* documents that people can read: dates are dates */
        add_pair(p, cdcd_xstrdup("format.debezium.json.serialization.mode=relaxed"));
    add_pair(p, cdcd_xstrdup("snapshot.mode=no_data"));
    add_pair(p, cdcd_xstrdup("errors.max.retries=0"));
    add_pair(p, cdcd_xstrdup("log.level=warn"));
}

static enum cdcd_rc load(const char *path, const char *url, bool json, struct cdcd_config **out,
                         struct cdcd_error *err)
{
    struct pairs p = {0};
    enum cdcd_rc rc;
    add_common(&p, json);
    if (path) {
        rc = cdcd_config_load_with(path, (const char *const *)p.items, p.n, out, err);
    } else {
        add_pair(&p, cdcd_xasprintf("source.%s.url=%s", source_of(url), url));
        rc = cdcd_config_from_args((const char *const *)p.items, p.n, out, err);
    }
    for (size_t i = 0; i < p.n; i++)
        free(p.items[i]);
    return rc;
}

/* The argument that we were started with: its password is not for `ps`. */
static void hide_password(char *url)
{
    char *p = strstr(url, "://"), *end;
    if (p) {
        p += 3;
        end = p + strcspn(p, "/?#");
        char *at = memrchr(p, '@', (size_t)(end - p));
        char *colon = at ? memchr(p, ':', (size_t)(at - p)) : NULL;
        if (colon)
            memset(colon + 1, '*', (size_t)(at - colon - 1));
    }
    for (p = url; (p = strcasestr(p, "password=")); p = end) { /* tls...KeyFilePassword, too */
        p += strlen("password=");
        end = p + (*p == '\'' ? 1 + strcspn(p + 1, "'") : strcspn(p, " &#"));
        memset(p, '*', (size_t)(end - p));
    }
}

static int tail_main(int argc, char **argv)
{
    const char *path, *url;
    bool json;
    int code = cdcd_command_target(&cdcd_cmd_tail, argc, argv, &path, &url, &json);
    if (code != CDCD_EXIT_OK)
        return code;
    if (url && !source_of(url))
        return cdcd_command_misused(
            &cdcd_cmd_tail, /* without the argument: it may have a password */
            "the argument is no URL of a database, such as "
            "postgresql://user@host:5432/db, mysql://user@host:3306/db or "
            "mongodb://user@host:27017/");
    struct cdcd_error err = {0};
    struct cdcd_config *config = NULL;
    enum cdcd_rc rc = load(path, url, json, &config, &err);
    if (url)
        hide_password((char *)(uintptr_t)url);
    if (rc != CDCD_OK)
        return cdcd_command_failed(&err);
    cdcd_log_setup((enum cdcd_log_level)config->log_level, config->log_format == 1, config->name);
    struct cdcd_run_options options = {.ephemeral = true};
    return cdcd_runner_run(config, &options);
}

const struct cdcd_command cdcd_cmd_tail = {
    .name = "tail",
    .summary = "show live changes on the terminal; leaves nothing behind on the server",
    .usage = "cdcd tail (-c FILE | URL) [--json]",
    .run = tail_main,
};
