/*
 * Pre-flight checks. Nothing is made or changed: privileges are tried with requests that the server
 * refuses for another reason after it has looked at them.
 */
#include "sink.h"

#include <stdio.h>
#include <stdlib.h>

#define DISK_LOW   85 /* percent; the server's own limits unless they are set otherwise */
#define DISK_FLOOD 95

struct checking {
    struct cdcd_sink *s;
    struct cdcd_report *report;
    struct cdcd_arena arena;
    struct cdcd_buf body; /* of the last reply */
    char *indexes;        /* owned: expression for the names that `index` can give */
};

static void add(const struct checking *c, enum cdcd_check_level level, const char *what, char *mend,
                const char *fmt, ...) CDCD_PRINTF(5, 6);

static void add(const struct checking *c, enum cdcd_check_level level, const char *what, char *mend,
                const char *fmt, ...)
{
    char text[2048];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    c->report->add(c->report->ctx, level, what, text, mend);
    free(mend);
}

/* The reply's JSON, which lives until the next one. The status, or 0 and *err. Takes the path. */
static long ask(struct checking *c, const char *method, char *path, const char *body,
                struct cdcd_json_value *out, struct cdcd_error *err)
{
    struct es_reply r;
    *err = (struct cdcd_error){0};
    *out = (struct cdcd_json_value){.kind = CDCD_JSON_NULL};
    cdcd_buf_free(&c->body);
    if (es_call(c->s, method, path, cdcd_slice_str(body), &r, err) != CDCD_OK)
        return 0;
    c->body = r.body;
    if (!cdcd_json_scan(cdcd_buf_slice(&c->body), out))
        *out = (struct cdcd_json_value){.kind = CDCD_JSON_NULL};
    if (r.status >= 400)
        es_fail(err, &r, "%s", method);
    return r.status;
}

/* A member by its path "a.b.c" as text; "" when it is not there. */
static const char *text_at(struct checking *c, const struct cdcd_json_value *root, const char *path)
{
    struct cdcd_json_value v = *root, next;
    char name[64];
    for (const char *p = path; p;) {
        const char *dot = strchr(p, '.');
        snprintf(name, sizeof name, "%.*s", dot ? (int)(dot - p) : (int)strlen(p), p);
        if (!cdcd_json_member(&v, name, &next))
            return "";
        v = next;
        p = dot ? dot + 1 : NULL;
    }
    if (v.kind == CDCD_JSON_NULL)
        return "";
    struct cdcd_slice text = v.kind == CDCD_JSON_STRING ? cdcd_json_text(&v, &c->arena) : v.raw;
    return cdcd_arena_dup(&c->arena, text.ptr, text.len);
}

/* ---- the server ---- */

static bool check_reachable(struct checking *c)
{
    struct cdcd_error err = {0};
    struct cdcd_sink *s = c->s;
    if (es_server_info(s->http, &s->server, &err) != CDCD_OK) {
        add(c, CDCD_CHECK_FAIL, "sink.elasticsearch", NULL, "%s", err.text);
        return false;
    }
    add(c, CDCD_CHECK_OK, "sink.elasticsearch", NULL, "%s %s, cluster %s",
        s->server.opensearch ? "OpenSearch" : "Elasticsearch", s->server.text, s->server.cluster);
    return true;
}

static void check_health(struct checking *c)
{
    struct cdcd_json_value v;
    struct cdcd_error err;
    if (ask(c, "GET", es_path("/_cluster/health"), NULL, &v, &err) != 200) {
        add(c, CDCD_CHECK_WARN, "cluster health", NULL, "cannot be asked for: %s", err.text);
        return;
    }
    const char *status = text_at(c, &v, "status"), *nodes = text_at(c, &v, "number_of_nodes");
    const char *lacking = text_at(c, &v, "unassigned_shards");
    if (strcmp(status, "red") == 0)
        add(c, CDCD_CHECK_FAIL, "cluster health",
            cdcd_xstrdup("GET /_cluster/allocation/explain tells why"),
            "red: %s shards have no node, and what they hold can neither be read nor written",
            lacking);
    else if (strcmp(status, "yellow") == 0)
        add(c, CDCD_CHECK_WARN, "cluster health", NULL,
            "yellow: %s replicas have no node (%s nodes); data are lost when a node's disk is",
            lacking, nodes);
    else
        add(c, CDCD_CHECK_OK, "cluster health", NULL, "%s, %s nodes", status, nodes);
}

static void check_disks(struct checking *c)
{
    struct cdcd_json_value v, node;
    struct cdcd_json_iter it;
    struct cdcd_error err;
    char *path = es_path("/_cat/allocation?format=json&h=node,disk.percent,disk.avail");
    if (ask(c, "GET", path, NULL, &v, &err) != 200 || v.kind != CDCD_JSON_ARRAY)
        return;
    cdcd_json_iter_init(&it, &v);
    while (cdcd_json_iter_next(&it, NULL, &node)) {
        struct cdcd_json_value m;
        if (!cdcd_json_member(&node, "disk.percent", &m) || m.kind != CDCD_JSON_STRING)
            continue;
        struct cdcd_slice text = cdcd_json_text(&m, &c->arena);
        long percent = strtol(cdcd_arena_dup(&c->arena, text.ptr, text.len), NULL, 10);
        const char *name = text_at(c, &node, "node");
        if (percent >= DISK_FLOOD)
            add(c, CDCD_CHECK_FAIL, "disk", NULL,
                "node %s is %ld %% full: the server makes indexes read-only (flood stage)", name,
                percent);
        else if (percent >= DISK_LOW)
            add(c, CDCD_CHECK_WARN, "disk", NULL,
                "node %s is %ld %% full: the server puts no new shards there (low watermark)", name,
                percent);
        else
            add(c, CDCD_CHECK_OK, "disk", NULL, "node %s is %ld %% full", name, percent);
    }
}

static void check_limits(struct checking *c)
{
    struct cdcd_json_value v, nodes, node;
    struct cdcd_json_iter it;
    struct cdcd_error err;
    char *path = es_path("/_nodes/http?filter_path=nodes.*.http.max_content_length_in_bytes");
    if (ask(c, "GET", path, NULL, &v, &err) != 200 || !cdcd_json_member(&v, "nodes", &nodes))
        return;
    long long least = 0;
    cdcd_json_iter_init(&it, &nodes);
    struct cdcd_json_value name;
    while (cdcd_json_iter_next(&it, &name, &node)) {
        long long n = strtoll(text_at(c, &node, "http.max_content_length_in_bytes"), NULL, 10);
        least = n > 0 && (!least || n < least) ? n : least;
    }
    if (least && least < c->s->config->bulk_bytes)
        add(c, CDCD_CHECK_WARN, "http.max_content_length",
            cdcd_xasprintf("bulk.max.bytes: %lld", least / 2),
            "the server takes requests of %lld bytes, and bulk.max.bytes is %lld: cdcd finds the "
            "right size by itself, at the price of some refused requests",
            least, (long long)c->s->config->bulk_bytes);
}

/* ---- privileges ---- */

static void check_privileges(struct checking *c)
{
    struct cdcd_json_value v;
    struct cdcd_error err;
    const struct es_server *server = &c->s->server;
    char *mend = cdcd_xstrdup("grant cluster:monitor, manage_index_templates and, on the indexes, "
                              "create_index, manage, read, index, delete");
    bool ok = true;
    if (c->s->config->manage_index && (server->opensearch || server->version >= 70900)) {
        char *path = es_path("/_index_template/_simulate");
        long status = ask(c, "POST", path, "{\"index_patterns\":[\"cdcd-check-*\"]}", &v, &err);
        if (status == 0 && err.class == CDCD_ERR_CONFIG) {
            add(c, CDCD_CHECK_FAIL, "privileges", cdcd_xstrdup(mend),
                "index templates may not be made: %s (or index.manage: false)", err.text);
            ok = false;
        }
    }
    if (server->opensearch || server->version >= 71000) {
        /* No alias has this name, so nothing is written. */
        const char *body = "{\"delete\":{\"_id\":\"1\"}}\n";
        char *path = es_path("/cdcd-check-no-such-alias/_bulk?require_alias=true");
        long status = ask(c, "POST", path, body, &v, &err);
        if ((status == 0 && err.class == CDCD_ERR_CONFIG) ||
            strstr(cdcd_buf_cstr(&c->body), "security_exception")) {
            add(c, CDCD_CHECK_FAIL, "privileges", cdcd_xstrdup(mend),
                "documents may not be written: %s", *err.text ? err.text : "security_exception");
            ok = false;
        }
    }
    if (ok)
        add(c, CDCD_CHECK_OK, "privileges", NULL, "nothing that is needed is forbidden");
    free(mend);
}

/* ---- indexes ---- */

/* What the pattern can give, with * for what is not known. */
static char *index_expression(const struct cdcd_sink *s)
{
    const char *p = *s->config->index ? s->config->index : "${topic}";
    struct cdcd_buf b;
    cdcd_buf_init(&b, 0);
    while (*p) {
        if (strncmp(p, "${topic}", 8) == 0) {
            cdcd_buf_addf(&b, "%s.*", s->env->topic_prefix);
            p += 8;
        } else if (strncmp(p, "${prefix}", 9) == 0) {
            cdcd_buf_adds(&b, s->env->topic_prefix);
            p += 9;
        } else if (strncmp(p, "${", 2) == 0 && strchr(p, '}')) {
            cdcd_buf_adds(&b, "*");
            p = strchr(p, '}') + 1;
        } else {
            cdcd_buf_add(&b, p++, 1);
        }
    }
    cdcd_buf_cstr(&b);
    for (char *q = b.ptr; *q; q++)
        *q = *q >= 'A' && *q <= 'Z' ? (char)(*q + 32) : *q;
    return b.ptr;
}

static void check_index(struct checking *c, const char *name, const struct cdcd_json_value *index)
{
    char *what = cdcd_xasprintf("index %s", name);
    struct cdcd_json_value aliases, alias;
    struct cdcd_json_iter it;
    const char *gc = text_at(c, index, "settings.index.gc_deletes");
    const char *refresh = text_at(c, index, "settings.index.refresh_interval");
    const char *readonly = text_at(c, index, "settings.index.blocks.read_only_allow_delete");
    const char *write = text_at(c, index, "settings.index.blocks.write");
    bool fine = true, aliased = cdcd_json_member(index, "aliases", &aliases);
    if (aliased) {
        struct cdcd_json_value key;
        cdcd_json_iter_init(&it, &aliases);
        aliased = cdcd_json_iter_next(&it, &key, &alias);
    }
    if (strcmp(readonly, "true") == 0 || strcmp(write, "true") == 0) {
        add(c, CDCD_CHECK_FAIL, what,
            cdcd_xasprintf("PUT /%s/_settings {\"index.blocks.read_only_allow_delete\":null,"
                           "\"index.blocks.write\":null}",
                           name),
            "it takes no writes (index.blocks)");
        fine = false;
    }
    if (!*gc) {
        add(c, CDCD_CHECK_WARN, what,
            cdcd_xasprintf("PUT /%s/_settings {\"index.gc_deletes\":\"%s\"}", name,
                           c->s->config->gc_deletes),
            "index.gc_deletes is 60 s: after that an older record that comes again brings a "
            "deleted document back");
        fine = false;
    }
    if (strcmp(refresh, "-1") == 0) {
        add(c, CDCD_CHECK_WARN, what,
            cdcd_xasprintf("PUT /%s/_settings {\"index.refresh_interval\":null}", name),
            "refresh_interval is -1: searches do not see what is written (a cdcd replay under way "
            "sets it so)");
        fine = false;
    }
    if (!aliased && c->s->config->manage_index) {
        add(c, CDCD_CHECK_WARN, what, NULL,
            "it is behind no alias: cdcd replay cannot build it anew beside the live one");
        fine = false;
    }
    if (fine)
        add(c, CDCD_CHECK_OK, what, NULL, "gc_deletes %s", gc);
    free(what);
}

static void check_indexes(struct checking *c)
{
    struct cdcd_json_value v, name, index;
    struct cdcd_json_iter it;
    struct cdcd_error err;
    size_t lines = 0;
    char *path = cdcd_xasprintf("/%s?expand_wildcards=all&ignore_unavailable=true&filter_path="
                                "*.aliases,*.settings.index.gc_deletes,"
                                "*.settings.index.refresh_interval,*.settings.index.blocks",
                                c->indexes);
    if (ask(c, "GET", path, NULL, &v, &err) != 200 || v.kind != CDCD_JSON_OBJECT) {
        if (*err.text)
            add(c, CDCD_CHECK_WARN, "indexes", NULL, "cannot be looked at: %s", err.text);
        return;
    }
    struct cdcd_buf copy = c->body; /* `v` points into it */
    cdcd_buf_init(&c->body, 0);
    cdcd_json_iter_init(&it, &v);
    while (cdcd_json_iter_next(&it, &name, &index)) {
        struct cdcd_slice text = cdcd_json_text(&name, &c->arena);
        if (cdcd_report_more(&lines))
            check_index(c, cdcd_arena_dup(&c->arena, text.ptr, text.len), &index);
    }
    if (lines == 0)
        add(c, CDCD_CHECK_OK, "indexes", NULL, "none called %s yet%s", c->indexes,
            c->s->config->manage_index ? ": they will be made" : ": the server makes them");
    cdcd_report_end(c->report, &lines, "indexes");
    cdcd_buf_free(&copy);
}

static void check_state(struct checking *c)
{
    struct cdcd_buf source;
    struct es_guard guard;
    struct cdcd_error err = {0};
    if (c->s->env->stateless) {
        add(c, CDCD_CHECK_OK, "position", NULL, "kept by the source (its consumer group)");
        return;
    }
    cdcd_buf_init(&source, 0);
    if (es_doc_get(c->s, c->s->env->pipeline, &source, &guard, &err) != CDCD_OK)
        add(c, CDCD_CHECK_FAIL, "position", NULL, "%s", err.text);
    else
        add(c, CDCD_CHECK_OK, "position", NULL, "index %s %s", c->s->config->state_index,
            guard.seq_no >= 0 ? "holds a position: the pipeline goes on from there"
                              : "holds no position: the pipeline begins anew");
    cdcd_buf_free(&source);
}

static void check_config(const struct checking *c)
{
    const struct es_config *cfg = c->s->config;
    if (!cfg->ssl_verify)
        add(c, CDCD_CHECK_WARN, "ssl.verify", NULL,
            "servers' certificates are not checked: anybody between can read and change");
    for (size_t i = 0; i < cfg->url.n; i++)
        if (strncmp(cfg->url.items[i], "http:", 5) == 0 &&
            ((cfg->password && *cfg->password) || (cfg->api_key && *cfg->api_key)) &&
            !strstr(cfg->url.items[i], "//127.") && !strstr(cfg->url.items[i], "//localhost")) {
            add(c, CDCD_CHECK_WARN, "url", NULL, "the login goes over plain HTTP; use https");
            return;
        }
}

enum cdcd_rc es_check(const void *config, const struct cdcd_sink_env *env,
                      struct cdcd_report *report, struct cdcd_error *err)
{
    struct cdcd_sink s = {.config = config, .env = env};
    struct checking c = {.s = &s, .report = report};
    struct cdcd_error why = {0};
    (void)err;
    if (es_http_new(s.config, env, &s.http, &why) != CDCD_OK ||
        es_converter_new(s.config, env, &s.converter, &why) != CDCD_OK) {
        add(&c, CDCD_CHECK_FAIL, "sink.elasticsearch", NULL, "%s", why.text);
        es_http_free(s.http);
        return CDCD_OK;
    }
    s.state = es_state_new(env);
    cdcd_arena_init(&c.arena, 4096);
    cdcd_buf_init(&c.body, 0);
    c.indexes = index_expression(&s);
    check_config(&c);
    if (check_reachable(&c)) {
        check_health(&c);
        check_disks(&c);
        check_limits(&c);
        check_privileges(&c);
        check_indexes(&c);
        check_state(&c);
    }
    free(c.indexes);
    cdcd_buf_free(&c.body);
    cdcd_arena_free(&c.arena);
    es_state_free(s.state);
    es_converter_free(s.converter);
    es_http_free(s.http);
    return CDCD_OK;
}
