/*
 * snapshot_read.c: the snapshot workers. Each has a client of its own, reads its range in order of
 * the _id index, and turns documents into READ events.
 *
 * A cursor that is lost (an election, a restart, one that the server closed because the sink let it
 * wait for ten minutes) is opened anew behind the last _id, with the same read concern: the view
 * stays the same. So no cursor needs to be without a timeout, which a cdcd that was killed would
 * leave behind on the server.
 */
#include "snapshot_int.h"

#include <inttypes.h>
#include <stdlib.h>
#include <time.h>

#define REPLY_BYTES (2 << 20) /* of a reply on the average; the server's limit is 16 MB */
#define REPLY_ROWS  10000
#define TRIES       6
#define PAUSE_MS    100 /* twice as long each time */

#define QUERY_PLAN_KILLED 175 /* the collection was dropped or renamed under the cursor */

/* ---- finds ---- */

/* In a session of its own, which the server wants to see again with each getMore. Its reads need
 * not be after one another: the read concern says what they are after. */
static enum cdcd_rc start_session(struct mg_find *f, struct cdcd_error *err)
{
    bson_error_t e;
    mongoc_session_opt_t *opts = mongoc_session_opts_new();
    mongoc_session_opts_set_causal_consistency(opts, false);
    f->session = mongoc_client_start_session(f->client, opts, &e);
    mongoc_session_opts_destroy(opts);
    if (f->session || e.domain == MONGOC_ERROR_CLIENT_SESSION_FAILURE)
        return CDCD_OK; /* a server without sessions wants none */
    return mg_error(err, &e, NULL, "cannot begin to read");
}

/* Both commands of a cursor go to one server. */
static enum cdcd_rc cursor_opts(struct mg_find *f, bson_t *opts, struct cdcd_error *err)
{
    bson_error_t e;
    mongoc_server_description_t *d = mongoc_client_select_server(
        f->client, false, mongoc_client_get_read_prefs(f->client), &e);
    if (!d)
        return mg_error(err, &e, NULL, "no server to read from");
    BSON_APPEND_INT32(opts, "serverId", (int32_t)mongoc_server_description_id(d));
    mongoc_server_description_destroy(d);
    if (f->session && !mongoc_client_session_append(f->session, opts, &e))
        return mg_error(err, &e, NULL, "cannot begin to read");
    return CDCD_OK;
}

enum cdcd_rc mg_find_open(struct mg_find *f, mongoc_client_t *client, const char *db,
                          const bson_t *command, int *code, struct cdcd_error *err)
{
    bson_t opts, reply;
    bson_error_t e;
    bson_iter_t it;
    f->client = client;
    bson_init(&opts);
    enum cdcd_rc rc = start_session(f, err);
    if (rc == CDCD_OK)
        rc = cursor_opts(f, &opts, err);
    if (rc == CDCD_OK) {
        if (mongoc_client_command_with_opts(
                client, db, command, mongoc_client_get_read_prefs(client), &opts, &reply, &e)) {
            if (bson_iter_init_find(&it, command, "batchSize"))
                BSON_APPEND_INT64(&opts, "batchSize", bson_iter_as_int64(&it));
            f->cursor = mongoc_cursor_new_from_command_reply_with_opts(client, &reply, &opts);
        } else {
            bson_iter_init(&it, command);
            *code = mg_error_code(&e, &reply);
            rc = mg_error(err, &e, &reply, "%s in %s",
                          bson_iter_next(&it) ? bson_iter_key(&it) : "command", db);
            bson_destroy(&reply);
        }
    }
    bson_destroy(&opts);
    return rc;
}

enum cdcd_rc mg_find_next(struct mg_find *f, const char *what, const bson_t **out, int *code,
                          struct cdcd_error *err)
{
    bson_error_t e;
    const bson_t *reply = NULL;
    if (mongoc_cursor_next(f->cursor, out))
        return CDCD_OK;
    if (!mongoc_cursor_error_document(f->cursor, &e, &reply))
        return CDCD_END;
    *code = mg_error_code(&e, reply);
    return mg_error(err, &e, reply, "reading %s", what);
}

void mg_find_close(struct mg_find *f)
{
    if (f->cursor)
        mongoc_cursor_destroy(f->cursor);
    if (f->session)
        mongoc_client_session_destroy(f->session);
    *f = (struct mg_find){0};
}

/* ---- workers ---- */

struct cdcd_worker {
    struct cdcd_source *s;
    mongoc_client_t *client;
    const struct mg_snap_table *t;
    uint32_t chunk;
    uint64_t row;            /* of the chunk, from 1 */
    struct cdcd_arena arena; /* of the chunk: its end */
    bool has_end;
    struct mg_cursor end;
    bool has_last;         /* the chunk's begin, then the last document read */
    struct mg_cursor last; /* its value is in last_bytes */
    struct cdcd_buf last_bytes;
    struct mg_find find;
    bool fresh; /* the find's first document is still to come */
    int failed; /* tries since the last document */
};

enum cdcd_rc mg_worker_open(struct cdcd_source *s, struct cdcd_worker **out, struct cdcd_error *err)
{
    struct cdcd_worker *w = cdcd_xcalloc(1, sizeof *w);
    enum cdcd_rc rc = mg_client_new(s->cfg, &w->client, err);
    if (rc != CDCD_OK) {
        free(w);
        return rc;
    }
    w->s = s;
    cdcd_arena_init(&w->arena, 1024);
    cdcd_buf_init(&w->last_bytes, 0);
    *out = w;
    return CDCD_OK;
}

void mg_worker_close(struct cdcd_worker *w)
{
    if (!w)
        return;
    mg_find_close(&w->find);
    mongoc_client_destroy(w->client);
    cdcd_arena_free(&w->arena);
    cdcd_buf_free(&w->last_bytes);
    free(w);
}

static void keep_last(struct cdcd_worker *w, const struct cdcd_cell *id, bool past)
{
    cdcd_buf_clear(&w->last_bytes);
    cdcd_buf_add(&w->last_bytes, id->ptr, id->len);
    w->last.id = cdcd_cell_bson((uint8_t)id->aux, cdcd_buf_cstr(&w->last_bytes), id->len);
    w->last.past = past;
    w->has_last = true;
}

enum cdcd_rc mg_worker_begin(struct cdcd_worker *w, const struct cdcd_snapshot_table *t,
                             const struct cdcd_chunk *chunk, struct cdcd_error *err)
{
    struct mg_cursor begin;
    mg_find_close(&w->find);
    cdcd_arena_reset(&w->arena, 4096);
    w->t = t->source_data;
    w->chunk = chunk->number;
    w->row = 0;
    w->failed = 0;
    w->has_last = false;
    w->has_end = *chunk->end != '\0';
    if ((*chunk->begin && !mg_cursor_parse(chunk->begin, &w->arena, &begin)) ||
        (w->has_end && !mg_cursor_parse(chunk->end, &w->arena, &w->end)))
        return cdcd_error_set(err, CDCD_ERR_FATAL, "chunk from \"%s\" to \"%s\" is not understood",
                              chunk->begin, chunk->end);
    if (*chunk->begin)
        keep_last(w, &begin.id, begin.past);
    return CDCD_OK;
}

/* ---- documents ---- */

static int64_t reply_rows(const struct cdcd_worker *w)
{
    if (w->s->cfg->batch_size > 0)
        return w->s->cfg->batch_size;
    if (w->t->bytes <= 0)
        return 1000;
    int64_t n = REPLY_BYTES / w->t->bytes;
    return n < 10 ? 10 : n > REPLY_ROWS ? REPLY_ROWS : n;
}

static void append_key(bson_t *to, const char *name)
{
    bson_t key;
    BSON_APPEND_DOCUMENT_BEGIN(to, name, &key);
    BSON_APPEND_INT32(&key, "_id", 1);
    bson_append_document_end(to, &key);
}

/* From behind the last document on. The sort costs nothing, since the index has that order; it is
 * for servers on which a hint does not give it. No collation: that of the collection is also that
 * of its _id index. */
static enum cdcd_rc open_find(struct cdcd_worker *w, int *code, struct cdcd_error *err)
{
    bson_t command;
    enum cdcd_rc rc = CDCD_OK;
    bson_init(&command);
    BSON_APPEND_UTF8(&command, "find", w->t->collection);
    if ((w->has_last && !mg_cursor_append(&command, "min", &w->last.id)) ||
        (w->has_end && !mg_cursor_append(&command, "max", &w->end.id)))
        rc = cdcd_error_set(err, CDCD_ERR_FATAL, "a range of _id is not understood");
    append_key(&command, "hint");
    append_key(&command, "sort");
    BSON_APPEND_INT64(&command, "batchSize", reply_rows(w));
    if (rc == CDCD_OK)
        rc = mg_snap_read_concern(w->s, w->client, w->t, &command, err);
    if (rc == CDCD_OK)
        rc = mg_find_open(&w->find, w->client, w->t->db, &command, code, err);
    w->fresh = true;
    bson_destroy(&command);
    return rc;
}

static bool stopping(const struct cdcd_worker *w)
{
    return w->s->env->stopping && w->s->env->stopping(w->s->env->ctx);
}

/* OK: the find is closed, try again. */
static enum cdcd_rc try_again(struct cdcd_worker *w, int code, struct cdcd_error *err)
{
    mg_find_close(&w->find);
    if (code == MG_SNAPSHOT_TOO_OLD || code == MG_SNAPSHOT_UNAVAILABLE) {
        err->class = CDCD_ERR_RETRY;
        return cdcd_error_context(err,
                                  "the server keeps the time of the snapshot no longer (it does "
                                  "for minSnapshotHistoryWindowInSeconds): the snapshot goes on "
                                  "under a new view");
    }
    if (code == QUERY_PLAN_KILLED)
        return mg_snap_moved(w->t, err);
    if (err->class != CDCD_ERR_RETRY || ++w->failed >= TRIES || stopping(w))
        return CDCD_ERROR;
    cdcd_info("mongodb", "%s; reading on behind the last document", err->text);
    long ms = PAUSE_MS << w->failed;
    nanosleep(&(struct timespec){ms / 1000, ms % 1000 * 1000000}, NULL);
    return CDCD_OK;
}

/* The next document, which is not the one that was read last. */
static enum cdcd_rc next_document(struct cdcd_worker *w, struct cdcd_slice *out,
                                  struct cdcd_cell *id, struct cdcd_error *err)
{
    for (;;) {
        const bson_t *doc;
        int code = 0;
        enum cdcd_rc rc = w->find.cursor ? CDCD_OK : open_find(w, &code, err);
        if (rc == CDCD_OK)
            rc = mg_find_next(&w->find, w->t->label, &doc, &code, err);
        if (rc == CDCD_ERROR && try_again(w, code, err) == CDCD_OK)
            continue;
        if (rc != CDCD_OK)
            return rc;
        *out = mg_slice(doc);
        if (!mg_id_of(*out, id))
            return cdcd_error_set(err, CDCD_ERR_DATA, "a document of %s has no _id", w->t->label);
        bool known = w->fresh && w->has_last && w->last.past && cdcd_cell_equal(&w->last.id, id);
        w->fresh = false;
        w->failed = 0;
        if (!known)
            return CDCD_OK;
    }
}

static enum cdcd_rc row_error(const struct cdcd_worker *w, const struct cdcd_cell *id,
                              struct cdcd_error *err)
{
    struct cdcd_arena a;
    struct cdcd_writer text;
    const struct cdcd_bson_style style = {.form = CDCD_BSON_RELAXED};
    const char *why;
    cdcd_arena_init(&a, 1024);
    cdcd_writer_begin(&text, &a);
    bool good = cdcd_bson_json_value(&text, (uint8_t)id->aux, (struct cdcd_slice){id->ptr, id->len},
                                     &style, &why);
    struct cdcd_slice s = cdcd_writer_end(&text);
    cdcd_error_context(err, "document %" PRIu64 " of chunk %u of %s, _id %.*s", w->row, w->chunk,
                       w->t->label, good ? (s.len > 200 ? 200 : (int)s.len) : 1,
                       good ? s.ptr : "?");
    cdcd_arena_free(&a);
    return CDCD_ERROR;
}

/* The document in the batch's arena without the fields that are left out, and its whole _id. */
static bool copy_document(const struct cdcd_worker *w, struct cdcd_batch *b, struct cdcd_slice doc,
                          struct cdcd_cell *id, struct cdcd_slice *out)
{
    *out = doc;
    if (w->t->fields && !mg_fields_strip(w->t->fields, &b->arena, doc, out))
        return false;
    if (out->ptr == doc.ptr) {
        out->ptr = cdcd_arena_dup(&b->arena, doc.ptr, doc.len);
        id->ptr = out->ptr + (id->ptr - doc.ptr);
    } else {
        id->ptr = cdcd_arena_dup(&b->arena, id->ptr, id->len);
    }
    return true;
}

static enum cdcd_rc append_document(struct cdcd_worker *w, struct cdcd_batch *b,
                                    struct cdcd_slice doc, struct cdcd_cell *id,
                                    const struct cdcd_cell *source, struct cdcd_error *err)
{
    const struct mg_snapshot *v = w->s->snapshot;
    int64_t max = w->s->env->max_event_bytes;
    struct cdcd_slice kept;
    w->row++;
    if (!copy_document(w, b, doc, id, &kept)) {
        cdcd_error_set(err, CDCD_ERR_DATA, "the document is malformed BSON");
        return row_error(w, id, err);
    }
    if (max > 0 && kept.len > (size_t)max) {
        cdcd_error_set(err, CDCD_ERR_DATA,
                       "it has %zu bytes, max_event_bytes allows %" PRId64
                       ": raise it, or leave the large field out (field.exclude.list)",
                       kept.len, max);
        return row_error(w, id, err);
    }
    struct cdcd_cell *cells = cdcd_batch_cells(b, CDCD_DOC_COLUMNS);
    cells[CDCD_DOC_ID] = *id;
    cells[CDCD_DOC_DOCUMENT] = cdcd_cell_bson(CDCD_BSON_DOCUMENT, kept.ptr, kept.len);
    struct cdcd_event *e = cdcd_batch_event(b, CDCD_OP_READ, w->t->schema);
    e->after = cells;
    e->source = source;
    e->ts_us = v->ts_us;
    /* The view has the changes of its very time, and these may be delivered already: its rows come
     * after them, and before those of the next tick. */
    e->pos = (struct cdcd_pos){mg_time_number(v->position.ts) + 1,
                               (uint64_t)w->chunk << 40 | (v->row_base + w->row), false};
    return CDCD_OK;
}

/* The documents in the batch are read: go on behind the last one. */
static void set_cursor(struct cdcd_worker *w, struct cdcd_batch *b)
{
    if (b->nevents == 0)
        return;
    struct cdcd_buf text;
    cdcd_buf_init(&text, 0);
    mg_cursor_write(&w->last, &text);
    b->chunk_cursor = (struct cdcd_slice){cdcd_arena_dup(&b->arena, text.ptr, text.len), text.len};
    cdcd_buf_free(&text);
}

/* All of the range came from the collection that the snapshot has under this name. */
static enum cdcd_rc end_chunk(struct cdcd_worker *w, struct cdcd_batch *b, struct cdcd_error *err)
{
    bool same = false;
    mg_find_close(&w->find);
    enum cdcd_rc rc = mg_snap_same(w->client, w->t, &same, err);
    if (rc == CDCD_OK && !same)
        rc = mg_snap_moved(w->t, err);
    if (rc != CDCD_OK)
        return rc;
    set_cursor(w, b);
    return CDCD_END;
}

enum cdcd_rc mg_worker_read(struct cdcd_worker *w, struct cdcd_batch *b, struct cdcd_error *err)
{
    const struct cdcd_cell *source = mg_source_cells(b, w->t->schema->table, -1, NULL, 0, 0,
                                                     INT64_MIN);
    struct cdcd_slice doc;
    struct cdcd_cell id;
    enum cdcd_rc rc;
    while ((rc = next_document(w, &doc, &id, err)) == CDCD_OK) {
        if (append_document(w, b, doc, &id, source, err) != CDCD_OK)
            return CDCD_ERROR;
        keep_last(w, &id, true);
        if (cdcd_batch_full(b)) {
            set_cursor(w, b);
            return CDCD_OK;
        }
    }
    return rc == CDCD_END ? end_chunk(w, b, err) : rc;
}
