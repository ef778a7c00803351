/*
 * tail_cursor.c: a tailable cursor on local.oplog.rs. See tail_int.h.
 *
 * find and getMore are sent as commands, and not through mongoc_cursor_t: each getMore then waits
 * for just as long as the caller may wait, a batch is read in place, and whether more is here is
 * known. Both in one explicit session, as the server insists on for a cursor. They are sent as
 * plain commands, not as read commands: libmongoc would send a getMore again after a network error,
 * and the entries of the first one would be lost.
 */
#include "tail_int.h"

#include <inttypes.h>
#include <stdlib.h>

/* Replies of a few hundred KB for usual entries: libmongoc holds each twice. */
#define BATCH_ENTRIES 2000

struct mg_tail_cursor {
    struct cdcd_source *s;
    mongoc_client_session_t *session; /* NULL: the server has none */
    uint32_t server;
    int64_t id, batch;
    bson_t reply;
    struct cdcd_bson_iter it; /* of the reply's batch */
    struct cdcd_slice peeked; /* ptr NULL: none */
    bool drained, broken;
};

static enum cdcd_rc run(struct mg_tail_cursor *c, const bson_t *command, const char *what,
                        struct cdcd_error *err)
{
    bson_error_t e;
    bson_t opts = BSON_INITIALIZER;
    bson_destroy(&c->reply);
    bson_init(&c->reply);
    c->it = (struct cdcd_bson_iter){0};
    BSON_APPEND_INT32(&opts, "serverId", (int32_t)c->server);
    enum cdcd_rc rc = CDCD_OK;
    if (c->session && !mongoc_client_session_append(c->session, &opts, &e))
        rc = mg_error(err, &e, NULL, "%s", what);
    if (rc == CDCD_OK) {
        bson_destroy(&c->reply);
        if (!mongoc_client_command_with_opts(c->s->client, "local", command, NULL, &opts, &c->reply,
                                             &e))
            rc = mg_error(err, &e, &c->reply, "%s", what);
    }
    bson_destroy(&opts);
    c->broken = rc != CDCD_OK;
    return rc;
}

/* cursor: {id, firstBatch or nextBatch} */
static enum cdcd_rc take_reply(struct mg_tail_cursor *c, struct cdcd_error *err)
{
    struct cdcd_bson_element cursor, id, batch;
    if (!cdcd_bson_find(mg_slice(&c->reply), "cursor", &cursor) ||
        cursor.type != CDCD_BSON_DOCUMENT || !cdcd_bson_find(cursor.value, "id", &id) ||
        id.type != CDCD_BSON_INT64 ||
        !(cdcd_bson_find(cursor.value, "nextBatch", &batch) ||
          cdcd_bson_find(cursor.value, "firstBatch", &batch)) ||
        batch.type != CDCD_BSON_ARRAY || !cdcd_bson_iter_init(&c->it, batch.value)) {
        c->broken = true;
        return cdcd_error_set(err, CDCD_ERR_FATAL,
                              "the server's answer to a read of local.oplog.rs is malformed");
    }
    c->id = cdcd_bson_int64(id.value);
    c->drained = c->it.pos == c->it.end;
    return CDCD_OK;
}

static void command_find(const struct mg_tail_cursor *c, struct mg_time from, bson_t *out)
{
    bson_t filter, ts, level;
    BSON_APPEND_UTF8(out, "find", "oplog.rs");
    BSON_APPEND_DOCUMENT_BEGIN(out, "filter", &filter);
    BSON_APPEND_DOCUMENT_BEGIN(&filter, "ts", &ts);
    BSON_APPEND_TIMESTAMP(&ts, "$gte", from.t, from.i);
    bson_append_document_end(&filter, &ts);
    bson_append_document_end(out, &filter);
    BSON_APPEND_BOOL(out, "tailable", true);
    BSON_APPEND_BOOL(out, "awaitData", true);
    BSON_APPEND_BOOL(out, "noCursorTimeout", true);
    /* 4.4 and later find the place in the log by themselves. */
    int version = c->s->server.version_number;
    if (version && version < 40400)
        BSON_APPEND_BOOL(out, "oplogReplay", true);
    BSON_APPEND_INT64(out, "batchSize", c->batch);
    BSON_APPEND_DOCUMENT_BEGIN(out, "readConcern", &level);
    BSON_APPEND_UTF8(&level, "level", "majority");
    bson_append_document_end(out, &level);
}

static enum cdcd_rc find(struct mg_tail_cursor *c, struct mg_time from, struct cdcd_error *err)
{
    bson_t command = BSON_INITIALIZER;
    command_find(c, from, &command);
    enum cdcd_rc rc = run(c, &command, "cannot read local.oplog.rs", err);
    bson_destroy(&command);
    return rc == CDCD_OK ? take_reply(c, err) : rc;
}

static enum cdcd_rc get_more(struct mg_tail_cursor *c, int64_t wait_ms, struct cdcd_error *err)
{
    bson_t command = BSON_INITIALIZER;
    BSON_APPEND_INT64(&command, "getMore", c->id);
    BSON_APPEND_UTF8(&command, "collection", "oplog.rs");
    BSON_APPEND_INT64(&command, "batchSize", c->batch);
    BSON_APPEND_INT64(&command, "maxTimeMS", wait_ms > 0 ? wait_ms : 1);
    enum cdcd_rc rc = run(c, &command, "cannot read on in local.oplog.rs", err);
    bson_destroy(&command);
    return rc == CDCD_OK ? take_reply(c, err) : rc;
}

static enum cdcd_rc choose_server(struct mg_tail_cursor *c, struct cdcd_error *err)
{
    bson_error_t e;
    mongoc_client_t *client = c->s->client;
    mongoc_server_description_t *sd = mongoc_client_select_server(
        client, false, mongoc_client_get_read_prefs(client), &e);
    if (!sd)
        return mg_error(err, &e, NULL, "cannot reach a server with local.oplog.rs");
    c->server = mongoc_server_description_id(sd);
    mongoc_server_description_destroy(sd);
    mongoc_session_opt_t *opts = mongoc_session_opts_new();
    mongoc_session_opts_set_causal_consistency(opts, false);
    c->session = mongoc_client_start_session(client, opts, &e);
    mongoc_session_opts_destroy(opts);
    return CDCD_OK;
}

enum cdcd_rc mg_tail_cursor_open(struct cdcd_source *s, struct mg_time from, int64_t batch,
                                 struct mg_tail_cursor **out, struct cdcd_error *err)
{
    struct mg_tail_cursor *c = bson_aligned_alloc0(_Alignof(struct mg_tail_cursor), sizeof *c);
    c->s = s;
    c->batch = batch > 0 ? batch : s->cfg->batch_size > 0 ? s->cfg->batch_size : BATCH_ENTRIES;
    bson_init(&c->reply);
    if (choose_server(c, err) != CDCD_OK || find(c, from, err) != CDCD_OK) {
        mg_tail_cursor_close(c);
        return CDCD_ERROR;
    }
    *out = c;
    return CDCD_OK;
}

/* A server that is in trouble is left to forget the cursor by itself. */
static void kill_cursor(struct mg_tail_cursor *c)
{
    bson_t command = BSON_INITIALIZER, cursors;
    struct cdcd_error ignored = {0};
    BSON_APPEND_UTF8(&command, "killCursors", "oplog.rs");
    mg_array_begin(&command, "cursors", &cursors);
    BSON_APPEND_INT64(&cursors, "0", c->id);
    bson_append_array_end(&command, &cursors);
    if (run(c, &command, "", &ignored) != CDCD_OK)
        cdcd_debug("mongodb", "closing the cursor on local.oplog.rs: %s", ignored.text);
    bson_destroy(&command);
}

void mg_tail_cursor_close(struct mg_tail_cursor *c)
{
    if (!c)
        return;
    if (c->id && !c->broken)
        kill_cursor(c);
    if (c->session)
        mongoc_client_session_destroy(c->session);
    bson_destroy(&c->reply);
    bson_free(c);
}

/* ---- reading ---- */

/* The next one of the reply. AGAIN: it has no more. */
static enum cdcd_rc from_reply(struct mg_tail_cursor *c, struct cdcd_slice *document,
                               struct cdcd_error *err)
{
    struct cdcd_bson_element e;
    if (c->peeked.ptr) {
        *document = c->peeked;
        c->peeked.ptr = NULL;
        return CDCD_OK;
    }
    if (c->it.pos == c->it.end)
        return CDCD_AGAIN;
    if (cdcd_bson_iter_next(&c->it, &e) != 1 || e.type != CDCD_BSON_DOCUMENT) {
        c->broken = true;
        return cdcd_error_set(err, CDCD_ERR_FATAL,
                              "a batch of local.oplog.rs from the server is malformed");
    }
    *document = e.value;
    return CDCD_OK;
}

bool mg_tail_cursor_peek(struct mg_tail_cursor *c, struct cdcd_slice *document)
{
    struct cdcd_error ignored;
    if (!c->peeked.ptr && from_reply(c, &c->peeked, &ignored) != CDCD_OK)
        return false;
    *document = c->peeked;
    return true;
}

static enum cdcd_rc ended(struct mg_tail_cursor *c, struct cdcd_error *err)
{
    c->broken = true;
    return cdcd_error_set(err, CDCD_ERR_RETRY,
                          "the server closed the cursor on local.oplog.rs; it is opened again");
}

enum cdcd_rc mg_tail_cursor_next(struct mg_tail_cursor *c, int64_t deadline_ms,
                                 struct cdcd_slice *document, struct cdcd_error *err)
{
    for (;;) {
        enum cdcd_rc rc = from_reply(c, document, err);
        if (rc != CDCD_AGAIN)
            return rc;
        if (!c->id)
            return ended(c, err);
        int64_t wait = deadline_ms ? deadline_ms - cdcd_now_ms() : 0;
        if (wait <= 0)
            return CDCD_AGAIN;
        if (wait > c->s->cfg->await_ms && c->s->cfg->await_ms > 0)
            wait = c->s->cfg->await_ms;
        if (get_more(c, wait, err) != CDCD_OK)
            return CDCD_ERROR;
    }
}

bool mg_tail_cursor_ready(const struct mg_tail_cursor *c)
{
    return c->peeked.ptr || c->it.pos != c->it.end;
}

bool mg_tail_cursor_drained(const struct mg_tail_cursor *c)
{
    return c->drained;
}

bool mg_tail_cursor_dead(const struct mg_tail_cursor *c)
{
    return !c->id && !mg_tail_cursor_ready(c);
}
