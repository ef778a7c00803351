/*
 * server.c: what the server says of itself, its times, and what open() insists on.
 *
 * Privileges are found out by doing what will be done, since what a role allows is the server's
 * business: reading the oplog's two ends, or opening a change stream and closing it again.
 */
#include "mg.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#define COMMAND_NOT_FOUND 59
#define UNAUTHORIZED      13

/* ---- looking into replies ---- */

static bool reply_find(const bson_t *reply, const char *path, bson_iter_t *out)
{
    bson_iter_t it;
    return bson_iter_init(&it, reply) && bson_iter_find_descendant(&it, path, out);
}

static bool reply_bool(const bson_t *reply, const char *name)
{
    bson_iter_t it;
    return reply_find(reply, name, &it) && bson_iter_as_bool(&it);
}

static void reply_text(const bson_t *reply, const char *name, char *out, size_t size)
{
    bson_iter_t it;
    if (reply_find(reply, name, &it) && BSON_ITER_HOLDS_UTF8(&it))
        snprintf(out, size, "%s", bson_iter_utf8(&it, NULL));
}

static bool reply_time(const bson_t *reply, const char *path, struct mg_time *out)
{
    bson_iter_t it;
    if (!reply_find(reply, path, &it) || !BSON_ITER_HOLDS_TIMESTAMP(&it))
        return false;
    bson_iter_timestamp(&it, &out->t, &out->i);
    return out->t != 0;
}

/* ---- hello, buildInfo ---- */

/* Before 4.4.2 the command has another name. */
enum cdcd_rc mg_hello(mongoc_client_t *c, bson_t *reply, struct cdcd_error *err)
{
    bson_t cmd = BSON_INITIALIZER;
    bson_iter_t it;
    bson_append_int32(&cmd, "hello", -1, 1);
    enum cdcd_rc rc = mg_command(c, "admin", &cmd, reply, err);
    bson_destroy(&cmd);
    if (rc == CDCD_OK || !bson_iter_init_find(&it, reply, "code") ||
        bson_iter_as_int64(&it) != COMMAND_NOT_FOUND)
        return rc;
    bson_destroy(reply);
    bson_init(&cmd);
    bson_append_int32(&cmd, "isMaster", -1, 1);
    rc = mg_command(c, "admin", &cmd, reply, err);
    bson_destroy(&cmd);
    return rc;
}

static void read_hello(const bson_t *reply, struct mg_server *out)
{
    char msg[16] = "";
    bson_iter_t it;
    reply_text(reply, "msg", msg, sizeof msg);
    reply_text(reply, "setName", out->set, sizeof out->set);
    out->mongos = strcmp(msg, "isdbgrid") == 0;
    out->uninitiated = !out->set[0] && reply_bool(reply, "isreplicaset");
    out->standalone = !out->mongos && !out->set[0] && !out->uninitiated;
    out->writable_primary = reply_bool(reply, "isWritablePrimary") || reply_bool(reply, "ismaster");
    out->secondary = reply_bool(reply, "secondary");
    out->arbiter = reply_bool(reply, "arbiterOnly");
    out->max_wire = reply_find(reply, "maxWireVersion", &it) ? (int)bson_iter_as_int64(&it) : 0;
}

static int version_number(const char *text)
{
    int major = 0, minor = 0, patch = 0;
    if (sscanf(text, "%d.%d.%d", &major, &minor, &patch) < 2)
        return 0;
    return major * 10000 + minor * 100 + patch;
}

enum cdcd_rc mg_server_info(mongoc_client_t *c, struct mg_server *out, struct cdcd_error *err)
{
    bson_t reply, cmd = BSON_INITIALIZER;
    memset(out, 0, sizeof *out);
    enum cdcd_rc rc = mg_hello(c, &reply, err);
    if (rc == CDCD_OK)
        read_hello(&reply, out);
    bson_destroy(&reply);
    if (rc != CDCD_OK)
        return cdcd_error_context(err, "connecting");
    bson_append_int32(&cmd, "buildInfo", -1, 1);
    rc = mg_command(c, "admin", &cmd, &reply, err);
    if (rc == CDCD_OK) {
        reply_text(&reply, "version", out->version, sizeof out->version);
        out->version_number = version_number(out->version);
    }
    bson_destroy(&reply);
    bson_destroy(&cmd);
    return rc;
}

/* ---- times ---- */

enum cdcd_rc mg_cluster_time(mongoc_client_t *c, struct mg_time *out, struct cdcd_error *err)
{
    bson_t reply;
    *out = (struct mg_time){0};
    enum cdcd_rc rc = mg_hello(c, &reply, err);
    if (rc == CDCD_OK && !reply_time(&reply, "lastWrite.majorityOpTime.ts", out) &&
        !reply_time(&reply, "operationTime", out) &&
        !reply_time(&reply, "$clusterTime.clusterTime", out))
        rc = cdcd_error_set(err, CDCD_ERR_CONFIG,
                            "the server says no cluster time: it is no replica set and no mongos");
    bson_destroy(&reply);
    return rc;
}

/* The ts of one entry from an end of the oplog: order 1 the first, -1 the newest. */
static enum cdcd_rc oplog_end(mongoc_collection_t *oplog, const mongoc_read_prefs_t *prefs,
                              int order, struct mg_time *out, bool *refused, struct cdcd_error *err)
{
    bson_t filter = BSON_INITIALIZER, opts = BSON_INITIALIZER, child;
    const bson_t *doc, *reply = NULL;
    bson_error_t e = {0};
    mongoc_read_concern_t *rc = mongoc_read_concern_new();
    bson_append_document_begin(&opts, "sort", -1, &child);
    bson_append_int32(&child, "$natural", -1, order);
    bson_append_document_end(&opts, &child);
    bson_append_document_begin(&opts, "projection", -1, &child);
    bson_append_int32(&child, "ts", -1, 1);
    bson_append_document_end(&opts, &child);
    bson_append_int64(&opts, "limit", -1, 1);
    bson_append_bool(&opts, "singleBatch", -1, true);
    mongoc_read_concern_set_level(rc, MONGOC_READ_CONCERN_LEVEL_MAJORITY);
    mongoc_read_concern_append(rc, &opts);
    mongoc_cursor_t *cursor = mongoc_collection_find_with_opts(oplog, &filter, &opts, prefs);
    enum cdcd_rc ok = CDCD_OK;
    if (mongoc_cursor_next(cursor, &doc))
        reply_time(doc, "ts", out);
    else if (mongoc_cursor_error_document(cursor, &e, &reply))
        ok = mg_error(err, &e, reply, "reading local.oplog.rs");
    *refused = ok != CDCD_OK && mg_error_code(&e, reply) == UNAUTHORIZED;
    mongoc_cursor_destroy(cursor);
    mongoc_read_concern_destroy(rc);
    bson_destroy(&filter);
    bson_destroy(&opts);
    return ok;
}

#define NO_OPLOG                                                                            \
    "start it with --replSet NAME (replication.replSetName), and run rs.initiate(); a set " \
    "of one member is enough"

static enum cdcd_rc oplog_window(mongoc_client_t *c, struct mg_time *first, struct mg_time *last,
                                 bool *refused, struct cdcd_error *err)
{
    mongoc_collection_t *oplog = mongoc_client_get_collection(c, "local", "oplog.rs");
    const mongoc_read_prefs_t *prefs = mongoc_client_get_read_prefs(c);
    *first = *last = (struct mg_time){0};
    enum cdcd_rc rc = oplog_end(oplog, prefs, 1, first, refused, err);
    if (rc == CDCD_OK)
        rc = oplog_end(oplog, prefs, -1, last, refused, err);
    mongoc_collection_destroy(oplog);
    if (rc == CDCD_OK && (!first->t || !last->t))
        rc = cdcd_error_set(err, CDCD_ERR_CONFIG,
                            "local.oplog.rs is empty or not there: the server is no member of a "
                            "replica set (mongos has none either, use capture: change_stream "
                            "there); " NO_OPLOG);
    return rc;
}

enum cdcd_rc mg_oplog_window(mongoc_client_t *c, struct mg_time *first, struct mg_time *last,
                             struct cdcd_error *err)
{
    bool refused;
    return oplog_window(c, first, last, &refused, err);
}

/* ---- privileges ---- */

static void add_role(struct cdcd_buf *b, const char *role, const char *db)
{
    cdcd_buf_addf(b, "%s{role: \"%s\", db: \"%s\"}", b->ptr[b->len - 1] == '[' ? "" : ", ", role,
                  db);
}

char *mg_grant_command(mongoc_client_t *c, const struct mg_config *cfg)
{
    const mongoc_uri_t *uri = mongoc_client_get_uri(c);
    const char *user = mongoc_uri_get_username(uri), *source = mongoc_uri_get_auth_source(uri);
    const char *target = cfg->target ? cfg->target : "";
    struct cdcd_buf b;
    cdcd_buf_init(&b, 0);
    cdcd_buf_addf(&b, "db.getSiblingDB(\"%s\").%s", source && *source ? source : "admin",
                  user ? "grantRolesToUser(\""
                       : "createUser({user: \"cdcd\", pwd: passwordPrompt(), "
                         "roles: [");
    if (user)
        cdcd_buf_addf(&b, "%s\", [", user);
    if (cfg->capture != MG_OPLOG && cfg->scope != MG_SCOPE_DEPLOYMENT) {
        char *db = cdcd_xstrndup(target, strcspn(target, "."));
        add_role(&b, "read", db);
        free(db);
    } else {
        add_role(&b, "readAnyDatabase", "admin");
    }
    if (cfg->capture == MG_OPLOG)
        add_role(&b, "read", "local");
    cdcd_buf_adds(&b, user ? "])" : "]})");
    char *text = cdcd_xstrdup(cdcd_buf_cstr(&b));
    cdcd_buf_free(&b);
    return text;
}

static mongoc_change_stream_t *watch(mongoc_client_t *c, const struct mg_config *cfg,
                                     const bson_t *pipeline, const bson_t *opts)
{
    const char *target = cfg->target ? cfg->target : "", *dot = strchr(target, '.');
    if (cfg->scope == MG_SCOPE_DEPLOYMENT)
        return mongoc_client_watch(c, pipeline, opts);
    char *name = cdcd_xstrndup(target, strcspn(target, "."));
    mongoc_change_stream_t *out;
    if (cfg->scope == MG_SCOPE_DATABASE) {
        mongoc_database_t *db = mongoc_client_get_database(c, name);
        out = mongoc_database_watch(db, pipeline, opts);
        mongoc_database_destroy(db);
    } else {
        mongoc_collection_t *coll = mongoc_client_get_collection(c, name, dot ? dot + 1 : "");
        out = mongoc_collection_watch(coll, pipeline, opts);
        mongoc_collection_destroy(coll);
    }
    free(name);
    return out;
}

/* Opens one from now on, and closes it. */
static enum cdcd_rc try_watch(mongoc_client_t *c, const struct mg_config *cfg, bool *refused,
                              struct cdcd_error *err)
{
    bson_t pipeline = BSON_INITIALIZER, opts = BSON_INITIALIZER;
    const bson_t *reply = NULL;
    bson_error_t e = {0};
    enum cdcd_rc rc = CDCD_OK;
    mongoc_change_stream_t *s = watch(c, cfg, &pipeline, &opts);
    if (mongoc_change_stream_error_document(s, &e, &reply)) {
        rc = mg_error(err, &e, reply, "opening a change stream");
        *refused = mg_error_code(&e, reply) == UNAUTHORIZED;
    }
    mongoc_change_stream_destroy(s);
    bson_destroy(&pipeline);
    bson_destroy(&opts);
    return rc;
}

enum cdcd_rc mg_try_capture(mongoc_client_t *c, const struct mg_config *cfg, bool *refused,
                            struct cdcd_error *err)
{
    struct mg_time first, last;
    *refused = false;
    if (cfg->capture != MG_OPLOG)
        return try_watch(c, cfg, refused, err);
    return oplog_window(c, &first, &last, refused, err);
}

/* ---- what must be right ---- */

enum cdcd_rc mg_check_topology(const struct mg_config *cfg, const struct mg_server *s,
                               struct cdcd_error *err)
{
    if (s->version_number && s->version_number < 40200)
        return cdcd_error_set(err, CDCD_ERR_CONFIG, "MongoDB %s is too old: 4.2 or later is needed",
                              s->version);
    if (s->standalone)
        return cdcd_error_set(err, CDCD_ERR_CONFIG,
                              "no oplog: it is a standalone server; " NO_OPLOG);
    if (s->uninitiated)
        return cdcd_error_set(err, CDCD_ERR_CONFIG,
                              "no oplog: the replica set is not initiated; run rs.initiate()");
    if (s->mongos && cfg->capture == MG_OPLOG)
        return cdcd_error_set(err, CDCD_ERR_CONFIG,
                              "mongos has no oplog: use capture: change_stream, or one pipeline "
                              "for each shard with the shard's own address in url");
    if (s->arbiter)
        return cdcd_error_set(err, CDCD_ERR_CONFIG,
                              "it is an arbiter, which has no data: correct the host in `url`, or "
                              "give replicaSet instead of directConnection");
    if (!s->mongos && !s->writable_primary && !s->secondary)
        return cdcd_error_set(err, CDCD_ERR_RETRY,
                              "the member of %s is neither primary nor secondary now: it starts, "
                              "recovers or rolls back",
                              s->set);
    return CDCD_OK;
}

enum cdcd_rc mg_check_server(mongoc_client_t *c, const struct mg_config *cfg,
                             const struct mg_server *server, struct cdcd_error *err)
{
    bool refused = false;
    enum cdcd_rc rc = mg_check_topology(cfg, server, err);
    if (rc == CDCD_OK)
        rc = mg_try_capture(c, cfg, &refused, err);
    if (!refused)
        return rc;
    char *command = mg_grant_command(c, cfg), *said = cdcd_xstrdup(err ? err->text : "");
    rc = cdcd_error_set(err, CDCD_ERR_CONFIG, "%s; run %s", said, command);
    free(said);
    free(command);
    return rc;
}

/* ---- what is captured ---- */

static enum cdcd_rc sees_collection(mongoc_client_t *c, struct mg_filter *f, const char *name,
                                    bool *out, struct cdcd_error *err)
{
    bson_t opts = BSON_INITIALIZER;
    const bson_t *doc, *reply = NULL;
    bson_error_t e = {0};
    bson_iter_t it;
    enum cdcd_rc rc = CDCD_OK;
    bson_append_bool(&opts, "nameOnly", -1, true);
    bson_append_bool(&opts, "authorizedCollections", -1, true);
    mongoc_database_t *db = mongoc_client_get_database(c, name);
    mongoc_cursor_t *cursor = mongoc_database_find_collections_with_opts(db, &opts);
    while (!*out && mongoc_cursor_next(cursor, &doc)) {
        if (bson_iter_init_find(&it, doc, "name") && BSON_ITER_HOLDS_UTF8(&it))
            *out = mg_filter_collection(f, cdcd_slice_str(name),
                                        cdcd_slice_str(bson_iter_utf8(&it, NULL)));
    }
    if (!*out && mongoc_cursor_error_document(cursor, &e, &reply))
        rc = mg_error(err, &e, reply, "listing the collections of %s", name);
    mongoc_cursor_destroy(cursor);
    mongoc_database_destroy(db);
    bson_destroy(&opts);
    return rc;
}

/* The array with the target's database alone: an account for a part need not list the rest. */
static char **target_database(const struct mg_config *cfg)
{
    char **names = bson_malloc0(2 * sizeof *names);
    names[0] = bson_strndup(cfg->target, strcspn(cfg->target, "."));
    return names;
}

enum cdcd_rc mg_database_names(mongoc_client_t *c, const struct mg_config *cfg,
                               const struct mg_filter *f, char ***out, struct cdcd_error *err)
{
    bson_error_t e = {0};
    bson_t opts = BSON_INITIALIZER;
    if (cfg->capture != MG_OPLOG && cfg->scope != MG_SCOPE_DEPLOYMENT)
        *out = target_database(cfg);
    else
        *out = mongoc_client_get_database_names_with_opts(c, &opts, &e);
    bson_destroy(&opts);
    if (!*out)
        return mg_error(err, &e, NULL, "listing the databases");
    size_t n = 0;
    for (char **name = *out; *name; name++) {
        if (mg_filter_database(f, cdcd_slice_str(*name)))
            (*out)[n++] = *name;
        else
            bson_free(*name);
    }
    (*out)[n] = NULL;
    return CDCD_OK;
}

enum cdcd_rc mg_server_sees(mongoc_client_t *c, const struct mg_config *cfg, struct mg_filter *f,
                            struct cdcd_error *err)
{
    char **names;
    bool seen = false;
    enum cdcd_rc rc = mg_database_names(c, cfg, f, &names, err);
    if (rc != CDCD_OK)
        return rc;
    for (char **n = names; *n && !seen && rc == CDCD_OK; n++)
        rc = sees_collection(c, f, *n, &seen, err);
    bson_strfreev(names);
    if (rc == CDCD_OK && !seen)
        cdcd_warn("mongodb", "no collection that the account can see is captured yet: "
                             "collection.include.list has regular expressions for the whole "
                             "DATABASE.COLLECTION");
    return rc;
}
