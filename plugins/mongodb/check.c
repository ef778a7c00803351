/*
 * check.c: what `cdcd check` says about the server, and `cdcd drop`. The collections are in
 * check_collections.c.
 *
 * One line a finding, each with what to run to mend it. What an account may not see is said, and
 * is no failure where capturing does not need it.
 */
#include "check.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

static void add(struct check *c, enum cdcd_check_level level, const char *what, const char *text,
                const char *mend)
{
    c->report->add(c->report->ctx, level, what, text, mend);
}

#define addf(c, ...) cdcd_report_addf((c)->report, __VA_ARGS__)

/* ---- replies ---- */

bool check_find(const bson_t *reply, const char *path, bson_iter_t *out)
{
    bson_iter_t it;
    return bson_iter_init(&it, reply) && bson_iter_find_descendant(&it, path, out);
}

const char *check_text(const bson_t *reply, const char *path)
{
    bson_iter_t it;
    return check_find(reply, path, &it) && BSON_ITER_HOLDS_UTF8(&it) ? bson_iter_utf8(&it, NULL)
                                                                     : "";
}

static double number(const bson_t *reply, const char *path)
{
    bson_iter_t it;
    return check_find(reply, path, &it) ? bson_iter_as_double(&it) : 0;
}

static uint32_t count(const bson_t *reply, const char *path)
{
    bson_iter_t it, item;
    uint32_t n = 0;
    if (check_find(reply, path, &it) && BSON_ITER_HOLDS_ARRAY(&it) &&
        bson_iter_recurse(&it, &item)) {
        while (bson_iter_next(&item))
            n++;
    }
    return n;
}

static uint32_t seconds(const bson_t *reply, const char *path)
{
    bson_iter_t it;
    uint32_t t = 0, i;
    if (check_find(reply, path, &it) && BSON_ITER_HOLDS_TIMESTAMP(&it))
        bson_iter_timestamp(&it, &t, &i);
    return t;
}

/* ---- server ---- */

static bool check_connection(struct check *c)
{
    struct cdcd_error err = {0};
    if (mg_client_new(c->cfg, &c->client, &err) != CDCD_OK ||
        mg_server_info(c->client, &c->server, &err) != CDCD_OK ||
        mg_hello(c->client, &c->hello, &err) != CDCD_OK) {
        add(c, CDCD_CHECK_FAIL, "connection", err.text, NULL);
        return false;
    }
    const mongoc_uri_t *uri = mongoc_client_get_uri(c->client);
    const char *user = mongoc_uri_get_username(uri), *me = check_text(&c->hello, "me");
    addf(c, CDCD_CHECK_OK, "connection", NULL, "%s, %s%s, %s, libmongoc %s", *me ? me : "mongos",
         user ? "account " : "no account", user ? user : "",
         mongoc_uri_get_tls(uri) ? "TLS" : "no TLS", mongoc_get_version());
    return true;
}

/* "" where the account may not ask. */
static void feature_version(struct check *c, char *out, size_t size)
{
    struct cdcd_error err = {0};
    bson_t reply, cmd = BSON_INITIALIZER;
    bson_append_int32(&cmd, "getParameter", -1, 1);
    bson_append_int32(&cmd, "featureCompatibilityVersion", -1, 1);
    *out = 0;
    if (mg_command(c->client, "admin", &cmd, &reply, &err) == CDCD_OK)
        snprintf(out, size, "%s", check_text(&reply, "featureCompatibilityVersion.version"));
    bson_destroy(&reply);
    bson_destroy(&cmd);
}

static void check_version(struct check *c)
{
    char feature[32];
    int v = c->server.version_number;
    double level;
    feature_version(c, feature, sizeof feature);
    level = strtod(feature, NULL);
    if (v < 40200)
        addf(c, CDCD_CHECK_FAIL, "version", NULL, "%s: MongoDB 4.2 or later is needed",
             c->server.version);
    else if (v >= 90000)
        addf(
            c, CDCD_CHECK_WARN, "version", NULL,
            "%s is newer than what cdcd knows (8.x): with capture: oplog an entry of a new kind is "
            "left out with a warning, or stops the pipeline",
            c->server.version);
    else
        addf(c, CDCD_CHECK_OK, "version", NULL, "%s%s%s", c->server.version,
             *feature ? ", featureCompatibilityVersion " : "", feature);
    if (level > 0 && level < 6.0 && (mg_wants_before(c->cfg) || mg_wants_post_image(c->cfg)))
        addf(c, CDCD_CHECK_FAIL, "featureCompatibilityVersion",
             cdcd_xasprintf("db.adminCommand({setFeatureCompatibilityVersion: \"%d.%d\", confirm: "
                            "true})",
                            v / 10000, v / 100 % 100),
             "%s: images of before and after need 6.0", feature);
}

/* How far the majority is behind the newest write. */
static void check_majority(struct check *c)
{
    uint32_t newest = seconds(&c->hello, "lastWrite.opTime.ts");
    uint32_t majority = seconds(&c->hello, "lastWrite.majorityOpTime.ts");
    if (!majority)
        add(c, CDCD_CHECK_FAIL, "majority",
            "no majority-committed time: read concern majority is "
            "off, or too few members with data are up",
            "rs.status(), and remove enableMajorityReadConcern: false from the configuration");
    else if (newest > majority + 10)
        addf(c, CDCD_CHECK_WARN, "majority", cdcd_xstrdup("rs.status()"),
             "what a majority of the members has is %u s behind: changes come that much later",
             newest - majority);
    else
        add(c, CDCD_CHECK_OK, "majority", "read concern majority is there", NULL);
}

static bool check_topology(struct check *c)
{
    struct cdcd_error err = {0};
    const struct mg_server *s = &c->server;
    if (s->version_number >= 40200 && mg_check_topology(c->cfg, s, &err) != CDCD_OK) {
        add(c, CDCD_CHECK_FAIL, "topology", err.text,
            s->standalone || s->uninitiated ? "rs.initiate()" : NULL);
        return false;
    }
    if (s->mongos) {
        add(c, CDCD_CHECK_OK, "topology",
            "mongos of a sharded cluster; documents that are moved between shards are no changes",
            NULL);
        return true;
    }
    uint32_t hosts = count(&c->hello, "hosts") + count(&c->hello, "passives");
    uint32_t arbiters = count(&c->hello, "arbiters");
    addf(c, CDCD_CHECK_OK, "topology", NULL, "replica set %s, read from its %s; %u with data%s",
         s->set, s->writable_primary ? "primary" : "secondary", hosts,
         arbiters ? ", and arbiters: with one member down no majority is left, and changes stop "
                    "coming"
                  : "");
    check_majority(c);
    return s->version_number >= 40200;
}

static bool check_privileges(struct check *c)
{
    struct cdcd_error err = {0};
    bool refused = false;
    if (mg_try_capture(c->client, c->cfg, &refused, &err) == CDCD_OK) {
        add(c, CDCD_CHECK_OK, "privileges",
            c->cfg->capture == MG_OPLOG ? "local.oplog.rs can be read"
                                        : "a change stream can be opened",
            NULL);
        return true;
    }
    char *mend = refused ? mg_grant_command(c->client, c->cfg) : NULL;
    addf(c, CDCD_CHECK_FAIL, refused ? "privileges" : "capture", mend, "%s", err.text);
    return false;
}

/* ---- oplog ---- */

struct oplog_size {
    double used, size; /* bytes; 0: not known */
    double filled;     /* 0..1, by bytes or by number of entries; 0: not known */
};

static void oplog_size(struct check *c, struct oplog_size *out)
{
    bson_t pipeline = BSON_INITIALIZER, stages, stage, stats, none;
    const bson_t *doc;
    memset(out, 0, sizeof *out);
    mg_array_begin(&pipeline, "pipeline", &stages);
    bson_append_document_begin(&stages, "0", -1, &stage);
    bson_append_document_begin(&stage, "$collStats", -1, &stats);
    bson_append_document_begin(&stats, "storageStats", -1, &none);
    bson_append_document_end(&stats, &none);
    bson_append_document_end(&stage, &stats);
    bson_append_document_end(&stages, &stage);
    bson_append_array_end(&pipeline, &stages);
    mongoc_collection_t *oplog = mongoc_client_get_collection(c->client, "local", "oplog.rs");
    mongoc_cursor_t *cursor = mongoc_collection_aggregate(oplog, MONGOC_QUERY_NONE, &pipeline, NULL,
                                                          NULL);
    if (mongoc_cursor_next(cursor, &doc)) {
        double n = number(doc, "storageStats.count"), most = number(doc, "storageStats.max");
        out->used = number(doc, "storageStats.size");
        out->size = number(doc, "storageStats.maxSize");
        out->filled = out->size > 0 ? out->used / out->size : 0;
        if (most > 0 && n / most > out->filled)
            out->filled = n / most;
    }
    mongoc_cursor_destroy(cursor);
    mongoc_collection_destroy(oplog);
    bson_destroy(&pipeline);
}

/* A size in MB that would hold what is wanted at the rate of now, in hundreds. */
static char *resize_command(const struct oplog_size *o, double hours, double want)
{
    double mb = o->size / 1e6 * (hours > 0.01 ? want / hours : 100);
    mb = mb < 990 ? 990 : mb > 1e7 ? 1e7 : mb;
    return cdcd_xasprintf("db.adminCommand({replSetResizeOplog: 1, size: %.0f, minRetentionHours: "
                          "%.0f}) on each member",
                          (double)((int64_t)(mb / 100 + 1) * 100), want);
}

/*
 * How far back the oplog reaches. One that is not full yet will reach further: that is worked out
 * from how full it is, so a new server is not warned about.
 */
static void check_window(struct check *c)
{
    struct cdcd_error err = {0};
    struct mg_time first, last;
    struct oplog_size o;
    if (c->server.mongos) {
        add(c, CDCD_CHECK_OK, "oplog", "of each shard: check it with the shard's address", NULL);
        return;
    }
    if (mg_oplog_window(c->client, &first, &last, &err) != CDCD_OK) {
        if (c->cfg->capture != MG_OPLOG)
            add(c, CDCD_CHECK_OK, "oplog",
                "the account may not read it, so nothing is said of how far back it reaches", NULL);
        return; /* else said by check_privileges() */
    }
    oplog_size(c, &o);
    double hours = (last.t - first.t) / 3600.0, want = (double)c->cfg->window_warn_ms / 3.6e6;
    bool full = o.filled > 0.9 || o.filled <= 0;
    double will = full ? hours : hours / o.filled;
    char size[64] = "";
    if (o.size > 0)
        snprintf(size, sizeof size, ", %.0f of %.0f MB", o.used / 1e6, o.size / 1e6);
    bool few = full && hours < want;
    addf(c, few || (!full && will < want && hours > 0.1) ? CDCD_CHECK_WARN : CDCD_CHECK_OK, "oplog",
         few || (!full && will < want && hours > 0.1) ? resize_command(&o, will, want) : NULL,
         "reaches back %.1f hours%s%s: a pipeline that is stopped for longer needs a new snapshot",
         full || hours > 0.1 ? will : hours, size,
         full          ? ""
         : hours > 0.1 ? " once it is full, at the rate of now"
                       : ", and has just begun");
}

/* ---- all of it ---- */

enum cdcd_rc mg_check(const void *config, const struct cdcd_source_env *env,
                      struct cdcd_report *report, struct cdcd_error *err)
{
    struct check c = {.cfg = config, .report = report};
    (void)env;
    bson_init(&c.hello);
    enum cdcd_rc rc = mg_filter_new(config, &c.filter, err);
    if (rc == CDCD_OK && check_connection(&c)) {
        check_version(&c);
        if (check_topology(&c)) {
            bool allowed = check_privileges(&c);
            check_window(&c);
            check_collections(&c, allowed);
        }
    }
    bson_destroy(&c.hello);
    mg_filter_free(c.filter);
    if (c.client)
        mongoc_client_destroy(c.client);
    return rc;
}

enum cdcd_rc mg_drop(const void *config, const struct cdcd_source_env *env, bool dry,
                     struct cdcd_report *report, struct cdcd_error *err)
{
    (void)config, (void)env, (void)dry, (void)err;
    report->add(report->ctx, CDCD_CHECK_OK, "server", "nothing of cdcd is kept on the server",
                NULL);
    return CDCD_OK;
}
