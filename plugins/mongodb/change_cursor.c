/*
 * change_cursor.c: the cursor of a change stream.
 *
 * The cursor is driven by plain commands (aggregate, getMore), not by libmongoc's change stream:
 * how long a getMore waits, what of a batch is still here, and the server's own
 * postBatchResumeToken are then ours to see, and nothing resumes behind our back. Whatever breaks
 * is an error of its class; the pipeline comes back with the last durable position.
 *
 * A resume token is always given as startAfter: as resumeAfter, but it may be that of an
 * invalidate, too.
 */
#include "change_int.h"

#include <inttypes.h>
#include <stdlib.h>

/* ---- the pipeline ---- */

static void append_full_document(const struct mg_config *cfg, bson_t *spec)
{
    /* A post image that is not recorded must not become `after: null` without a word. */
    if (mg_wants_full(cfg))
        BSON_APPEND_UTF8(spec, "fullDocument",
                         mg_wants_post_image(cfg) ? "required" : "updateLookup");
    if (mg_wants_before(cfg))
        BSON_APPEND_UTF8(spec, "fullDocumentBeforeChange", "whenAvailable");
}

bool mg_changes_splits(const struct cdcd_source *s)
{
    int v = s->server.version_number;
    return s->cfg->oversize == MG_OVERSIZE_SPLIT && (v == 0 || v >= 60009);
}

static void append_spec(const struct mg_feed *f, bson_t *spec)
{
    const struct cdcd_source *s = f->s;
    bson_t token;
    if (f->reading != MG_SLIM)
        append_full_document(s->cfg, spec);
    if (s->cfg->scope == MG_SCOPE_DEPLOYMENT)
        BSON_APPEND_BOOL(spec, "allChangesForCluster", true);
    if (s->server.version_number >= 60000)
        BSON_APPEND_BOOL(spec, "showExpandedEvents", true);
    if (f->token.len > 0 && bson_init_static(&token, (const uint8_t *)f->token.ptr, f->token.len))
        BSON_APPEND_DOCUMENT(spec, "startAfter", &token);
    else if (f->start.t)
        BSON_APPEND_TIMESTAMP(spec, "startAtOperationTime", f->start.t, f->start.i);
}

/* Stages behind $changeStream: what the server may filter, and what must be last. */
static void append_stages(const struct mg_feed *f, bson_t *pipeline)
{
    bson_t stages = BSON_INITIALIZER, stage, spec;
    bson_iter_t it;
    uint32_t n = 1;
    char number[16];
    const char *key;
    if (!f->any)
        mg_filter_pipeline(f->s->filter, &stages);
    bson_iter_init(&it, &stages);
    while (bson_iter_next(&it)) {
        bson_uint32_to_string(n++, &key, number, sizeof number);
        bson_append_value(pipeline, key, -1, bson_iter_value(&it));
    }
    bson_destroy(&stages);
    bson_uint32_to_string(n, &key, number, sizeof number);
    if (f->reading == MG_SLIM) {
        BSON_APPEND_DOCUMENT_BEGIN(pipeline, key, &stage);
        BSON_APPEND_DOCUMENT_BEGIN(&stage, "$project", &spec);
        BSON_APPEND_INT32(&spec, "fullDocument", 0);
        BSON_APPEND_INT32(&spec, "fullDocumentBeforeChange", 0);
        BSON_APPEND_INT32(&spec, "updateDescription", 0);
        bson_append_document_end(&stage, &spec);
        bson_append_document_end(pipeline, &stage);
    } else if (mg_changes_splits(f->s)) {
        BSON_APPEND_DOCUMENT_BEGIN(pipeline, key, &stage);
        BSON_APPEND_DOCUMENT_BEGIN(&stage, "$changeStreamSplitLargeEvent", &spec);
        bson_append_document_end(&stage, &spec);
        bson_append_document_end(pipeline, &stage);
    }
}

/* "db" or "db.collection" of the scope; admin for the deployment. *collection NULL: none. */
static void scope_names(const struct mg_config *cfg, char **db, char **collection)
{
    *collection = NULL;
    if (cfg->scope == MG_SCOPE_DEPLOYMENT || !cfg->target) {
        *db = cdcd_xstrdup("admin");
        return;
    }
    const char *dot = cfg->scope == MG_SCOPE_COLLECTION ? strchr(cfg->target, '.') : NULL;
    *db = dot ? cdcd_xstrndup(cfg->target, (size_t)(dot - cfg->target)) : cdcd_xstrdup(cfg->target);
    if (dot)
        *collection = cdcd_xstrdup(dot + 1);
}

static void make_aggregate(const struct mg_feed *f, const char *collection, bson_t *cmd)
{
    bson_t pipeline, stage, spec, sub;
    int64_t batch = f->reading == MG_WHOLE ? f->s->cfg->batch_size : 1;
    if (collection)
        BSON_APPEND_UTF8(cmd, "aggregate", collection);
    else
        BSON_APPEND_INT32(cmd, "aggregate", 1);
    mg_array_begin(cmd, "pipeline", &pipeline);
    BSON_APPEND_DOCUMENT_BEGIN(&pipeline, "0", &stage);
    BSON_APPEND_DOCUMENT_BEGIN(&stage, "$changeStream", &spec);
    append_spec(f, &spec);
    bson_append_document_end(&stage, &spec);
    bson_append_document_end(&pipeline, &stage);
    append_stages(f, &pipeline);
    bson_append_array_end(cmd, &pipeline);
    BSON_APPEND_DOCUMENT_BEGIN(cmd, "cursor", &sub);
    if (batch > 0)
        BSON_APPEND_INT64(&sub, "batchSize", batch);
    bson_append_document_end(cmd, &sub);
    BSON_APPEND_DOCUMENT_BEGIN(cmd, "readConcern", &sub);
    BSON_APPEND_UTF8(&sub, "level", "majority");
    bson_append_document_end(cmd, &sub);
}

/* ---- commands ---- */

static void drop_reply(struct mg_feed *f)
{
    if (f->has_reply)
        bson_destroy(&f->reply);
    f->has_reply = f->in_batch = false;
    f->post = (struct cdcd_slice){NULL, 0};
}

/* Runs one on the cursor's server in the cursor's session; f->reply is the answer, be it an error.
 */
static bool run(struct mg_feed *f, const char *db, const bson_t *cmd, bson_error_t *e)
{
    bson_t opts = BSON_INITIALIZER;
    drop_reply(f);
    mongoc_client_session_append(f->session, &opts, e);
    BSON_APPEND_INT32(&opts, "serverId", (int32_t)f->server_id);
    bool ok = mongoc_client_command_with_opts(
        f->s->client, db, cmd, mongoc_client_get_read_prefs(f->s->client), &opts, &f->reply, e);
    f->has_reply = true;
    bson_destroy(&opts);
    return ok;
}

static enum cdcd_rc unexpected(const char *what, struct cdcd_error *err)
{
    return cdcd_error_set(err, CDCD_ERR_FATAL,
                          "change stream: the server's reply has no %s; is it a MongoDB server?",
                          what);
}

/* The cursor's part of f->reply: its id, its name, its events, its token. */
static enum cdcd_rc take_reply(struct mg_feed *f, const char *batch_name, struct cdcd_error *err)
{
    struct cdcd_bson_element cursor, e;
    if (!cdcd_bson_find(mg_slice(&f->reply), "cursor", &cursor) ||
        cursor.type != CDCD_BSON_DOCUMENT)
        return unexpected("cursor", err);
    if (!cdcd_bson_find(cursor.value, "id", &e) || e.type != CDCD_BSON_INT64)
        return unexpected("cursor id", err);
    f->cursor = cdcd_bson_int64(e.value);
    if (cdcd_bson_find(cursor.value, "ns", &e) && e.type == CDCD_BSON_STRING) {
        const char *dot = strchr(e.value.ptr + 4, '.');
        free(f->collection);
        f->collection = cdcd_xstrdup(dot ? dot + 1 : "$cmd.aggregate");
    }
    if (!cdcd_bson_find(cursor.value, batch_name, &e) || e.type != CDCD_BSON_ARRAY ||
        !cdcd_bson_iter_init(&f->batch, e.value))
        return unexpected(batch_name, err);
    f->in_batch = f->batch.pos < f->batch.end;
    f->batch_events = 0;
    if (cdcd_bson_find(cursor.value, "postBatchResumeToken", &e) && e.type == CDCD_BSON_DOCUMENT)
        f->post = e.value;
    return CDCD_OK;
}

/* ---- errors ---- */

#define E_NO_MATCHING_DOCUMENT 47
#define E_HISTORY_LOST         286
#define E_OBJECT_TOO_LARGE     10334

static void describe_start(const struct mg_feed *f, struct cdcd_buf *out)
{
    struct mg_time t = f->last.t ? f->last : f->start;
    if (!t.t)
        (void)mg_token_time(cdcd_buf_slice(&f->token), &t);
    cdcd_buf_addf(out, "%" PRIu32 ":%" PRIu32, t.t, t.i);
}

/* What the server's error means for a stream that starts, or goes on, where this one does. */
static enum cdcd_rc failed(struct mg_feed *f, const bson_error_t *e, struct cdcd_error *err)
{
    const bson_t *reply = f->has_reply ? &f->reply : NULL;
    int code = mg_error_code(e, reply);
    struct cdcd_buf at;
    cdcd_buf_init(&at, 0);
    describe_start(f, &at);
    const char *where = cdcd_buf_cstr(&at);
    f->broken = code == 0;
    f->cursor = 0;
    if (code == E_HISTORY_LOST)
        (void)mg_error(err, e, reply, "the position %s is no longer in the oplog", where);
    else if (code == E_NO_MATCHING_DOCUMENT && strstr(e->message, "image"))
        cdcd_error_set(
            err, CDCD_ERR_CONFIG,
            "change stream behind %s: %s; the collection must record images before the "
            "change is made (collMod: changeStreamPreAndPostImages: {enabled: true}), or "
            "set capture.mode.full.update.type: lookup",
            where, e->message);
    else
        (void)mg_error(err, e, reply, "change stream behind %s", where);
    cdcd_buf_free(&at);
    return CDCD_ERROR;
}

/* ---- the cursor ---- */

void mg_changes_close(struct mg_feed *f)
{
    if (f->cursor && !f->broken) {
        bson_t cmd = BSON_INITIALIZER, list;
        bson_error_t e;
        BSON_APPEND_UTF8(&cmd, "killCursors", f->collection);
        mg_array_begin(&cmd, "cursors", &list);
        BSON_APPEND_INT64(&list, "0", f->cursor);
        bson_append_array_end(&cmd, &list);
        (void)run(f, f->db, &cmd, &e); /* best effort: the server ends idle cursors by itself */
        bson_destroy(&cmd);
    }
    f->cursor = 0;
    drop_reply(f);
}

static enum cdcd_rc select_server(struct mg_feed *f, struct cdcd_error *err)
{
    bson_error_t e;
    mongoc_server_description_t *d = mongoc_client_select_server(
        f->s->client, false, mongoc_client_get_read_prefs(f->s->client), &e);
    if (!d)
        return mg_error(err, &e, NULL, "change stream");
    f->server_id = mongoc_server_description_id(d);
    mongoc_server_description_destroy(d);
    return CDCD_OK;
}

/* A cursor behind f->token, or at f->start. *too_large: an event on the way is over 16 MB. */
enum cdcd_rc mg_changes_open(struct mg_feed *f, bool *too_large, struct cdcd_error *err)
{
    char *db, *collection;
    bson_t cmd = BSON_INITIALIZER;
    bson_error_t e;
    *too_large = false;
    if (select_server(f, err) != CDCD_OK) {
        bson_destroy(&cmd);
        return CDCD_ERROR;
    }
    scope_names(f->s->cfg, &db, &collection);
    make_aggregate(f, collection, &cmd);
    bool ok = run(f, db, &cmd, &e);
    bson_destroy(&cmd);
    free(f->db);
    free(f->collection);
    f->db = db;
    f->collection = collection ? collection : cdcd_xstrdup("$cmd.aggregate");
    if (ok)
        return take_reply(f, "firstBatch", err);
    *too_large = mg_error_code(&e, &f->reply) == E_OBJECT_TOO_LARGE;
    if (*too_large) {
        f->cursor = 0;
        return CDCD_ERROR;
    }
    return failed(f, &e, err);
}

enum cdcd_rc mg_changes_more(struct mg_feed *f, int64_t wait_ms, bool *too_large,
                             struct cdcd_error *err)
{
    bson_t cmd = BSON_INITIALIZER;
    bson_error_t e;
    int64_t batch = f->reading == MG_WHOLE ? f->s->cfg->batch_size : 1;
    BSON_APPEND_INT64(&cmd, "getMore", f->cursor);
    BSON_APPEND_UTF8(&cmd, "collection", f->collection);
    if (batch > 0)
        BSON_APPEND_INT64(&cmd, "batchSize", batch);
    BSON_APPEND_INT64(&cmd, "maxTimeMS", wait_ms);
    bool ok = run(f, f->db, &cmd, &e);
    bson_destroy(&cmd);
    if (ok)
        return take_reply(f, "nextBatch", err);
    *too_large = mg_error_code(&e, &f->reply) == E_OBJECT_TOO_LARGE;
    if (*too_large) {
        f->cursor = 0;
        return CDCD_ERROR;
    }
    return failed(f, &e, err);
}

/* A new cursor where this one stands. */
enum cdcd_rc mg_changes_again(struct mg_feed *f, enum mg_reading reading, bool *too_large,
                              struct cdcd_error *err)
{
    mg_changes_close(f);
    cdcd_buf_clear(&f->merged);
    f->fragments = 0;
    f->reading = reading;
    return mg_changes_open(f, too_large, err);
}
