#include "config.h"

#include "http.h"
#include "plugin.h"
#include "settings.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#define CONFIG_FILE_MAX   (4u << 20)
#define DEFAULT_STATE_DIR "/var/lib/cdcd"

static const char *const snapshot_modes[] = {"initial", "always",      "initial_only",
                                             "no_data", "when_needed", NULL};
static const char *const log_formats[] = {"text", "json", NULL};
static const char *const log_levels[] = {"debug", "info", "warn", "error", NULL};

#define AT(member) offsetof(struct cdcd_config, member)

const struct cdcd_option cdcd_config_options[] = {
    {.name = "name",
     .type = CDCD_OPT_STR,
     .offset = AT(name),
     .flags = CDCD_OPT_REQUIRED | CDCD_OPT_SAMPLE,
     .doc = "The pipeline's name, unique among those that write to the same sink: the sink keeps "
            "the position under it. Letters, digits, dot, underscore and hyphen.",
     .sample = "shop"},
    {.name = "topic.prefix",
     .type = CDCD_OPT_STR,
     .offset = AT(topic_prefix),
     .flags = CDCD_OPT_SAMPLE,
     .doc = "First part of every topic's name, as in PREFIX.SCHEMA.TABLE. Default: the name.",
     .sample = "shop"},
    {.name = "snapshot.mode",
     .type = CDCD_OPT_ENUM,
     .offset = AT(snapshot_mode),
     .default_ = "initial",
     .values = snapshot_modes,
     .flags = CDCD_OPT_SAMPLE,
     .doc = "initial: a snapshot of the tables if the sink holds no position yet, then changes. "
            "always: a snapshot at every start. initial_only: stop after it. no_data: changes "
            "only. when_needed: also when the source no longer has the position's log."},
    {.name = "snapshot.workers",
     .type = CDCD_OPT_INT,
     .offset = AT(snapshot_workers),
     .default_ = "2",
     .min = 1,
     .max = 16,
     .flags = CDCD_OPT_SAMPLE,
     .doc = "Connections that read the snapshot in parallel, also within one table."},
    {.name = "state.dir",
     .type = CDCD_OPT_STR,
     .offset = AT(state_dir),
     .doc = "Folder for transactions that are too large for memory, until their commit; nothing "
            "in it has to outlive the process. Default: " DEFAULT_STATE_DIR
            " if it is writable, else a folder under $TMPDIR."},
    {.name = "log.format",
     .type = CDCD_OPT_ENUM,
     .offset = AT(log_format),
     .default_ = "text",
     .values = log_formats,
     .doc = "Log lines on standard error, for people or for machines."},
    {.name = "log.level",
     .type = CDCD_OPT_ENUM,
     .offset = AT(log_level),
     .default_ = "info",
     .values = log_levels,
     .doc = "The least important messages that are logged."},
    {.name = "http.listen",
     .type = CDCD_OPT_STR,
     .offset = AT(http_listen),
     .doc = "HOST:PORT where status and metrics are served over HTTP: / (a page), /api/status, "
            "/metrics (Prometheus), /healthz, /readyz. There is no authentication: stay on a "
            "loopback address such as 127.0.0.1:8083 or [::1]:8083. Default: none.",
     .sample = "127.0.0.1:8083"},
    {.name = "http.ready.max.lag.ms",
     .type = CDCD_OPT_DURATION,
     .offset = AT(http_ready_max_lag_ms),
     .min = 1,
     .doc = "/readyz answers 503 when the sink is further behind the source. Default: no limit.",
     .sample = "60s"},
    {.name = "max.event.bytes",
     .type = CDCD_OPT_SIZE,
     .offset = AT(max_event_bytes),
     .default_ = "256MB",
     .min = 1024,
     .max = INT64_C(1) << 30,
     .doc = "A change larger than this is an error instead of more memory."},
    {.name = "batches",
     .type = CDCD_OPT_INT,
     .offset = AT(batches),
     .default_ = "24",
     .min = 4,
     .max = 1024,
     .doc = "Batches that go round between source and sink. This bounds the memory: an ordinary "
            "batch takes 1 to 1.5 MB."},
    {.name = "errors.max.retries",
     .type = CDCD_OPT_INT,
     .offset = AT(max_retries),
     .default_ = "-1",
     .min = -1,
     .doc = "How often in a row a lost connection is tried again before the process ends; -1: for "
            "ever."},
    {.name = "errors.retry.delay.max.ms",
     .type = CDCD_OPT_DURATION,
     .offset = AT(retry_delay_max_ms),
     .default_ = "10s",
     .min = 100,
     .max = 3600000,
     .doc = "The longest pause between two tries; the first ones are shorter."},
    {0},
};

/* ---- sections ---- */

static bool in_section(const char *path)
{
    static const char *const sections[] = {"source", "sink", "format"};
    for (size_t i = 0; i < sizeof(sections) / sizeof(sections[0]); i++) {
        size_t n = strlen(sections[i]);
        if (strncmp(path, sections[i], n) == 0 && (path[n] == '.' || !path[n]))
            return true;
    }
    return false;
}

/* The one sub-section of `section` ("source" -> "postgres"): malloc'ed, or NULL when there is
 * none. More than one is an error. */
static enum cdcd_rc find_sub_section(const struct cdcd_settings *s, const char *section,
                                     char **name, const struct cdcd_setting **at,
                                     struct cdcd_error *err)
{
    size_t n = strlen(section);
    *name = NULL;
    *at = NULL;
    for (size_t i = 0; i < s->n; i++) {
        const struct cdcd_setting *it = &s->items[i];
        if (strncmp(it->path, section, n) != 0 || (it->path[n] && it->path[n] != '.'))
            continue;
        if (!it->path[n]) {
            if (it->kind == CDCD_SETTING_EMPTY)
                continue;
            free(*name);
            *name = NULL;
            return cdcd_settings_error(s, it, err,
                                       "expected a section named after the plugin, "
                                       "such as `%s: {%s: {...}}`",
                                       section, *section == 'f' ? "debezium" : "postgres");
        }
        const char *sub = it->path + n + 1;
        size_t len = strcspn(sub, ".");
        if (*name && (strlen(*name) != len || memcmp(*name, sub, len) != 0)) {
            cdcd_settings_error(s, it, err,
                                "there is a section %s.%s already (line %zu); a "
                                "pipeline has one %s",
                                section, *name, (*at)->line, section);
            free(*name);
            *name = NULL;
            return CDCD_ERROR;
        }
        if (!*name) {
            *name = cdcd_xstrndup(sub, len);
            *at = it;
        }
    }
    return CDCD_OK;
}

static const struct cdcd_setting *find_setting(const struct cdcd_settings *s, const char *path)
{
    for (size_t i = 0; i < s->n; i++) {
        if (strcmp(s->items[i].path, path) == 0)
            return &s->items[i];
    }
    return NULL;
}

/* `sink: {file: 5}` is no section. */
static enum cdcd_rc check_is_map(const struct cdcd_settings *s, const char *path,
                                 struct cdcd_error *err)
{
    const struct cdcd_setting *at = find_setting(s, path);
    if (!at || at->kind == CDCD_SETTING_EMPTY)
        return CDCD_OK;
    return cdcd_settings_error(s, at, err,
                               "expected keys with values: a section is named after "
                               "its plugin, such as `source: {postgres: {url: ...}}`");
}

static enum cdcd_rc apply_plugin(const struct cdcd_settings *s, const char *section,
                                 const struct cdcd_plugin **plugin, void **config,
                                 struct cdcd_error *err)
{
    const struct cdcd_setting *at;
    bool is_source = strcmp(section, "source") == 0;
    char *name, *prefix = NULL;
    enum cdcd_rc rc = find_sub_section(s, section, &name, &at, err);
    if (rc != CDCD_OK)
        return rc;
    if (!name)
        return cdcd_settings_error(
            s, NULL, err,
            "%s: is required: a section named after the "
            "plugin, such as `%s`",
            section, is_source ? "source: {postgres: {url: ...}}" : "sink: {file: {path: \"-\"}}");
    prefix = cdcd_xasprintf("%s.%s", section, name);
    if ((rc = check_is_map(s, prefix, err)) != CDCD_OK)
        goto out;
    struct cdcd_error why;
    if (cdcd_plugin_find(name, plugin, &why) != CDCD_OK) {
        rc = cdcd_settings_error(s, at, err, "%s", why.text);
        goto out;
    }
    const struct cdcd_option *table = NULL;
    size_t size = 0;
    if (is_source && (*plugin)->source) {
        table = (*plugin)->source->options;
        size = (*plugin)->source->config_size;
    } else if (!is_source && (*plugin)->sink) {
        table = (*plugin)->sink->options;
        size = (*plugin)->sink->config_size;
    }
    if (!table) {
        *plugin = NULL;
        rc = cdcd_settings_error(s, at, err, "the plugin %s is no %s", name, section);
        goto out;
    }
    *config = cdcd_xcalloc(1, size);
    free(prefix);
    prefix = cdcd_xasprintf("%s.%s.", section, name);
    rc = cdcd_options_apply(table, *config, s, prefix, NULL, err);
out:
    free(prefix);
    free(name);
    return rc;
}

static enum cdcd_rc apply_format(const struct cdcd_settings *s, struct cdcd_config *c,
                                 struct cdcd_error *err)
{
    const struct cdcd_setting *at;
    char *name;
    enum cdcd_rc rc = find_sub_section(s, "format", &name, &at, err);
    if (rc != CDCD_OK)
        return rc;
    if (name && strcmp(name, "debezium") != 0)
        rc = cdcd_settings_error(s, at, err, "there is no format \"%s\"; there is: debezium", name);
    else if (name)
        rc = check_is_map(s, "format.debezium", err);
    free(name);
    if (rc != CDCD_OK)
        return rc;
    return cdcd_options_apply(cdcd_debezium_options, &c->format, s, "format.debezium.", NULL, err);
}

/* ---- values that a table cannot describe ---- */

static enum cdcd_rc check_name(const struct cdcd_settings *s, const char *path, const char *value,
                               struct cdcd_error *err)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                                  "._-";
    if (*value && strspn(value, letters) == strlen(value) && strlen(value) <= 200)
        return CDCD_OK;
    return cdcd_settings_error(s, find_setting(s, path), err,
                               "expected 1 to 200 letters, digits, dots, underscores "
                               "or hyphens, not \"%s\"",
                               value);
}

static enum cdcd_rc check_listen(const struct cdcd_settings *s, const struct cdcd_config *c,
                                 struct cdcd_error *err)
{
    struct cdcd_listen ignored;
    if (!c->http_listen || cdcd_listen_parse(c->http_listen, &ignored))
        return CDCD_OK;
    return cdcd_settings_error(s, find_setting(s, "http.listen"), err,
                               "expected HOST:PORT such as 127.0.0.1:8083 or [::1]:8083, not "
                               "\"%s\"",
                               c->http_listen);
}

static bool usable_folder(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 && S_ISDIR(st.st_mode) && access(path, W_OK | X_OK) == 0;
}

/* Under a folder that everybody may write to, only a folder of our own is safe. */
static enum cdcd_rc temporary_state_dir(struct cdcd_config *c, struct cdcd_error *err)
{
    const char *tmp = getenv("TMPDIR");
    struct stat st;
    c->state_dir = cdcd_xasprintf("%s/cdcd-%lu", tmp && *tmp ? tmp : "/tmp",
                                  (unsigned long)geteuid());
    if (mkdir(c->state_dir, 0700) != 0 && errno != EEXIST)
        return cdcd_error_set(err, CDCD_ERR_CONFIG,
                              "cannot make the folder %s for large "
                              "transactions: %s; set state.dir",
                              c->state_dir, strerror(errno));
    if (lstat(c->state_dir, &st) != 0 || !S_ISDIR(st.st_mode) || st.st_uid != geteuid() ||
        (st.st_mode & 022))
        return cdcd_error_set(err, CDCD_ERR_CONFIG,
                              "%s is no folder of this user alone; set "
                              "state.dir",
                              c->state_dir);
    return CDCD_OK;
}

static enum cdcd_rc settle_state_dir(const struct cdcd_settings *s, struct cdcd_config *c,
                                     struct cdcd_error *err)
{
    if (!c->state_dir || !*c->state_dir) {
        free(c->state_dir);
        c->state_dir = NULL;
        if (!usable_folder(DEFAULT_STATE_DIR))
            return temporary_state_dir(c, err);
        c->state_dir = cdcd_xstrdup(DEFAULT_STATE_DIR);
        return CDCD_OK;
    }
    const struct cdcd_setting *at = find_setting(s, "state.dir");
    if (mkdir(c->state_dir, 0700) != 0 && errno != EEXIST)
        return cdcd_settings_error(s, at, err, "cannot make the folder %s: %s", c->state_dir,
                                   strerror(errno));
    if (!usable_folder(c->state_dir))
        return cdcd_settings_error(s, at, err, "%s is no folder that this user may write to",
                                   c->state_dir);
    return CDCD_OK;
}

static enum cdcd_rc build(const struct cdcd_settings *s, struct cdcd_config *c,
                          struct cdcd_error *err)
{
    enum cdcd_rc rc;
    if ((rc = cdcd_options_apply(cdcd_config_options, c, s, "", in_section, err)) != CDCD_OK ||
        (rc = check_name(s, "name", c->name, err)) != CDCD_OK ||
        (rc = check_listen(s, c, err)) != CDCD_OK)
        return rc;
    if (!c->topic_prefix)
        c->topic_prefix = cdcd_xstrdup(c->name);
    if ((rc = check_name(s, "topic.prefix", c->topic_prefix, err)) != CDCD_OK ||
        (rc = apply_plugin(s, "source", &c->source_plugin, &c->source_config, err)) != CDCD_OK ||
        (rc = apply_plugin(s, "sink", &c->sink_plugin, &c->sink_config, err)) != CDCD_OK ||
        (rc = apply_format(s, c, err)) != CDCD_OK)
        return rc;
    return settle_state_dir(s, c, err);
}

static enum cdcd_rc build_and_free(struct cdcd_settings *s, struct cdcd_config **out,
                                   struct cdcd_error *err)
{
    struct cdcd_config *c = cdcd_xcalloc(1, sizeof(*c));
    c->file = s->file ? cdcd_xstrdup(s->file) : NULL;
    enum cdcd_rc rc = build(s, c, err);
    cdcd_settings_free(s);
    if (rc != CDCD_OK) {
        cdcd_config_free(c);
        c = NULL;
    }
    *out = c;
    return rc;
}

/* ---- the three ways in ---- */

enum cdcd_rc cdcd_config_parse(const char *name, const char *text, size_t len,
                               struct cdcd_config **out, struct cdcd_error *err)
{
    struct cdcd_settings s;
    *out = NULL;
    if (cdcd_settings_parse(&s, name, text, len, err) != CDCD_OK)
        return CDCD_ERROR;
    return build_and_free(&s, out, err);
}

static enum cdcd_rc read_file(const char *path, struct cdcd_buf *out, struct cdcd_error *err)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return cdcd_error_set(err, CDCD_ERR_CONFIG, "cannot read the config file %s: %s", path,
                              strerror(errno));
    char *to;
    ssize_t n = 0;
    while ((to = cdcd_buf_reserve(out, 8192)) && (n = read(fd, to, 8192)) > 0)
        out->len += (size_t)n;
    int saved = errno;
    close(fd);
    if (!to)
        return cdcd_error_set(err, CDCD_ERR_CONFIG, "the config file %s is larger than 4 MB", path);
    if (n < 0)
        return cdcd_error_set(err, CDCD_ERR_CONFIG, "cannot read the config file %s: %s", path,
                              strerror(saved));
    return CDCD_OK;
}

enum cdcd_rc cdcd_config_load(const char *path, struct cdcd_config **out, struct cdcd_error *err)
{
    struct cdcd_buf text;
    *out = NULL;
    cdcd_buf_init(&text, CONFIG_FILE_MAX);
    enum cdcd_rc rc = read_file(path, &text, err);
    if (rc == CDCD_OK)
        rc = cdcd_config_parse(path, cdcd_buf_cstr(&text), text.len, out, err);
    cdcd_buf_free(&text);
    return rc;
}

/* "sink." of "sink.file.path=-" when the pair replaces a section, else the pair's key. */
static size_t replaced_prefix(const char *pair)
{
    size_t key = strcspn(pair, "=");
    if (strncmp(pair, "source.", 7) == 0)
        return 7;
    if (strncmp(pair, "sink.", 5) == 0)
        return 5;
    return key;
}

static void remove_replaced(struct cdcd_settings *s, const char *pair)
{
    size_t len = replaced_prefix(pair), kept = 0;
    bool section = pair[len - 1] == '.';
    for (size_t i = 0; i < s->n; i++) {
        const char *path = s->items[i].path;
        if (strncmp(path, pair, len) == 0 && (section || !path[len]))
            cdcd_settings_drop(&s->items[i]);
        else
            s->items[kept++] = s->items[i];
    }
    s->n = kept;
}

enum cdcd_rc cdcd_config_load_with(const char *path, const char *const *pairs, size_t n,
                                   struct cdcd_config **out, struct cdcd_error *err)
{
    struct cdcd_buf text;
    struct cdcd_settings s;
    *out = NULL;
    cdcd_buf_init(&text, CONFIG_FILE_MAX);
    enum cdcd_rc rc = read_file(path, &text, err);
    if (rc == CDCD_OK)
        rc = cdcd_settings_parse(&s, path, cdcd_buf_cstr(&text), text.len, err);
    cdcd_buf_free(&text);
    if (rc != CDCD_OK)
        return rc;
    for (size_t i = 0; i < n; i++)
        remove_replaced(&s, pairs[i]);
    for (size_t i = 0; i < n && rc == CDCD_OK; i++)
        rc = cdcd_settings_add_arg(&s, pairs[i], err);
    if (rc != CDCD_OK) {
        cdcd_settings_free(&s);
        return rc;
    }
    return build_and_free(&s, out, err);
}

enum cdcd_rc cdcd_config_from_args(const char *const *pairs, size_t n, struct cdcd_config **out,
                                   struct cdcd_error *err)
{
    struct cdcd_settings s = {0};
    *out = NULL;
    for (size_t i = 0; i < n; i++) {
        if (cdcd_settings_add_arg(&s, pairs[i], err) != CDCD_OK) {
            cdcd_settings_free(&s);
            return CDCD_ERROR;
        }
    }
    return build_and_free(&s, out, err);
}

void cdcd_config_free(struct cdcd_config *c)
{
    if (!c)
        return;
    if (c->source_config)
        cdcd_options_free(c->source_plugin->source->options, c->source_config);
    if (c->sink_config)
        cdcd_options_free(c->sink_plugin->sink->options, c->sink_config);
    cdcd_options_free(cdcd_debezium_options, &c->format);
    cdcd_options_free(cdcd_config_options, c);
    free(c->source_config);
    free(c->sink_config);
    free(c->file);
    free(c);
}
