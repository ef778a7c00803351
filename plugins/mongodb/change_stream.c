/*
 * change_stream.c: the feed of change streams. See stream.h, change_int.h for its files, and
 * change_event.h for the documents.
 */
#include "change_int.h"

#include <inttypes.h>
#include <stdlib.h>

/* An event with all its images has at most three documents of 16 MB, and a little. */
#define MERGED_MAX (256u << 20)
/* More of it is given back when the event is over. */
#define MERGED_KEEP (1u << 20)
/* A reply of so many events means that there are more, most likely. */
#define BUSY_EVENTS 32

/* ---- what was given ---- */

static void keep_token(struct mg_feed *f, struct cdcd_slice token)
{
    cdcd_buf_clear(&f->token);
    cdcd_buf_add(&f->token, token.ptr, token.len);
}

static struct mg_time later(struct mg_time a, struct mg_time b)
{
    return mg_time_cmp(a, b) > 0 ? a : b;
}

static struct mg_time before(struct mg_time t)
{
    if (t.i > 0)
        return (struct mg_time){t.t, t.i - 1};
    return (struct mg_time){t.t > 0 ? t.t - 1 : 0, UINT32_MAX};
}

/* The server's own token, or that of an event that is not wanted. All events before its time are
 * given; at that time itself there may be more to come, of another shard, or of the same
 * transaction. */
static void mark_token(struct mg_feed *f, struct cdcd_slice token)
{
    struct mg_time t;
    if (cdcd_slice_eq(token, cdcd_buf_slice(&f->token)))
        return;
    keep_token(f, token);
    if (!mg_token_time(token, &t))
        return;
    f->reached = later(f->reached, t);
    f->marked = later(f->marked, before(t));
}

static bool passes(struct mg_feed *f, struct cdcd_slice db, struct cdcd_slice collection)
{
    size_t n = db.len + 1 + collection.len;
    const char *k = f->known_ns;
    if (k && strlen(k) == n && memcmp(k, db.ptr, db.len) == 0 && k[db.len] == '.' &&
        memcmp(k + db.len + 1, collection.ptr, collection.len) == 0)
        return f->known_pass;
    free(f->known_ns);
    f->known_ns = cdcd_xasprintf("%.*s.%.*s", (int)db.len, db.ptr, (int)collection.len,
                                 collection.ptr);
    f->known_pass = mg_filter_collection(f->s->filter, db, collection);
    return f->known_pass;
}

static bool wanted(struct mg_feed *f, const struct mg_event *e)
{
    if (!e->collection.ptr)
        return mg_filter_database(f->s->filter, e->db);
    return passes(f, e->db, e->collection) ||
           (e->command == MG_CMD_RENAME && e->to_collection.ptr &&
            passes(f, e->to_db, e->to_collection));
}

static void warn_unknown(struct mg_feed *f, const struct mg_event *e)
{
    if (f->warned && strlen(f->warned) == e->type.len &&
        memcmp(f->warned, e->type.ptr, e->type.len) == 0)
        return;
    free(f->warned);
    f->warned = cdcd_xstrndup(e->type.ptr, e->type.len);
    cdcd_warn("mongodb",
              "the change stream has events of the kind %s, which this version does not know: they "
              "change no document that is captured, and are left out",
              f->warned);
}

/* ---- events over 16 MB ---- */

/* The event that MG_SLIM found is the one. */
static enum cdcd_rc oversized(struct mg_feed *f, const struct mg_event *e, struct cdcd_error *err)
{
    struct cdcd_buf what, id;
    struct cdcd_bson_element x;
    cdcd_buf_init(&what, 0);
    cdcd_buf_init(&id, 0);
    mg_event_describe(e, &what);
    if (e->key.ptr) {
        bson_t key;
        char *text = NULL;
        if (cdcd_bson_find(e->key, "_id", &x) &&
            bson_init_static(&key, (const uint8_t *)e->key.ptr, e->key.len))
            text = bson_as_relaxed_extended_json(&key, NULL);
        cdcd_buf_addf(&id, " of %s", text ? text : "a document");
        bson_free(text);
    }
    enum cdcd_rc rc = CDCD_OK;
    if (f->s->cfg->oversize == MG_OVERSIZE_SKIP) {
        f->skipped++;
        cdcd_warn("mongodb",
                  "%s%s is over the server's 16 MB for one event and LEFT OUT, as "
                  "cursor.oversize.handling.mode: skip says; %" PRIu64 " so far",
                  cdcd_buf_cstr(&what), cdcd_buf_cstr(&id), f->skipped);
        keep_token(f, e->token);
    } else {
        rc = cdcd_error_set(
            err, CDCD_ERR_DATA,
            "%s%s is over the server's 16 MB for one event; set cursor.oversize.handling.mode: "
            "split (servers from 6.0.9 on), or skip to leave such changes out, or ask for less by "
            "capture.mode; capture: oplog has no such limit",
            cdcd_buf_cstr(&what), cdcd_buf_cstr(&id));
    }
    cdcd_buf_free(&what);
    cdcd_buf_free(&id);
    return rc;
}

/* The server refused to build its reply: look closer, one step at a time. */
static enum cdcd_rc closer(struct mg_feed *f, struct cdcd_error *err)
{
    bool too_large = true;
    while (too_large) {
        if (f->reading == MG_SLIM)
            return cdcd_error_set(err, CDCD_ERR_DATA,
                                  "change stream: an event is over 16 MB even without its "
                                  "documents; capture: oplog has no such limit");
        if (mg_changes_again(f, f->reading == MG_WHOLE ? MG_SINGLE : MG_SLIM, &too_large, err) ==
            CDCD_OK)
            return CDCD_OK;
    }
    return CDCD_ERROR;
}

/* ---- next ---- */

/* Whether there is an event in the reply; the fragments of one are put together. */
static enum cdcd_rc take_event(struct mg_feed *f, struct cdcd_slice *document,
                               struct mg_event *event, struct cdcd_error *err)
{
    struct cdcd_bson_element e;
    while (f->in_batch) {
        int more = cdcd_bson_iter_next(&f->batch, &e);
        f->in_batch = f->batch.pos < f->batch.end;
        if (more == 0)
            return CDCD_AGAIN;
        if (more < 0 || e.type != CDCD_BSON_DOCUMENT)
            return cdcd_error_set(err, CDCD_ERR_DATA,
                                  "change stream: the server's reply is no well-formed BSON");
        f->batch_events++;
        if (mg_event_parse(e.value, event, err) != CDCD_OK)
            return CDCD_ERROR;
        *document = e.value;
        if (event->kind != MG_EVENT_FRAGMENT)
            return CDCD_OK;
        if (event->fragment != f->fragments + 1)
            return cdcd_error_set(err, CDCD_ERR_FATAL,
                                  "change stream: fragment %d of %d follows fragment %d",
                                  event->fragment, event->of, f->fragments);
        if (f->fragments == 0)
            cdcd_buf_clear(&f->merged);
        if (mg_event_merge(e.value, &f->merged, err) != CDCD_OK)
            return CDCD_ERROR;
        f->fragments++;
        if (f->fragments < event->of)
            continue;
        f->fragments = 0;
        mg_event_merged(&f->merged, event->token);
        *document = cdcd_buf_slice(&f->merged);
        return mg_event_parse(*document, event, err);
    }
    return CDCD_AGAIN;
}

/* One event: CDCD_OK: *out is a change. CDCD_AGAIN: it is none; go on. */
static enum cdcd_rc give(struct mg_feed *f, const struct mg_event *e, struct cdcd_arena *a,
                         struct mg_change *out, struct cdcd_error *err)
{
    bool too_large;
    f->opened_anew = false;
    if (f->reading == MG_SLIM) {
        if (oversized(f, e, err) != CDCD_OK)
            return CDCD_ERROR;
        return mg_changes_again(f, MG_WHOLE, &too_large, err) == CDCD_OK ? CDCD_AGAIN
               : too_large                                               ? CDCD_AGAIN
                                                                         : CDCD_ERROR;
    }
    if (e->kind == MG_EVENT_INVALIDATE) {
        cdcd_info("mongodb",
                  "the stream of %s ended with what it watches (dropped or renamed); it "
                  "goes on from there, for when that is made again",
                  f->s->cfg->target ? f->s->cfg->target : "the deployment");
        mark_token(f, e->token);
        return mg_changes_again(f, f->reading, &too_large, err) == CDCD_OK || too_large
                   ? CDCD_AGAIN
                   : CDCD_ERROR;
    }
    if (e->kind == MG_EVENT_UNKNOWN)
        warn_unknown(f, e);
    if (e->kind == MG_EVENT_UNKNOWN || !wanted(f, e)) {
        mark_token(f, e->token);
        return CDCD_AGAIN;
    }
    if (mg_event_change(e, a, out, err) != CDCD_OK)
        return CDCD_ERROR;
    if (out->op == CDCD_OP_UPDATE && !out->replaces && mg_wants_full(f->s->cfg)) {
        out->lookup_done = e->has_after;
        out->after_lookup = !mg_wants_post_image(f->s->cfg);
    }
    keep_token(f, e->token);
    f->last = e->ts;
    f->whole = false;
    f->reached = later(f->reached, f->last);
    f->marked = later(f->marked, before(f->last));
    return CDCD_OK;
}

/* The server closed the cursor without an invalidate that came here: it was filtered, or the server
 * is on its way down. */
static enum cdcd_rc reopen(struct mg_feed *f, struct cdcd_error *err)
{
    bool too_large;
    if (f->opened_anew)
        return cdcd_error_set(err, CDCD_ERR_RETRY,
                              "the server closes the change stream as soon as it is opened");
    f->opened_anew = true;
    cdcd_debug("mongodb", "the server closed the change stream's cursor: opening it again");
    if (mg_changes_again(f, f->reading, &too_large, err) == CDCD_OK)
        return CDCD_OK;
    return too_large ? closer(f, err) : CDCD_ERROR;
}

/* Asks the server; waits at most until then. */
static enum cdcd_rc ask(struct mg_feed *f, int64_t deadline_ms, struct cdcd_error *err)
{
    if (!f->cursor)
        return reopen(f, err);
    int64_t wait = deadline_ms ? deadline_ms - cdcd_now_ms() : 1;
    if (f->s->cfg->await_ms > 0 && wait > f->s->cfg->await_ms)
        wait = f->s->cfg->await_ms;
    bool too_large = false;
    enum cdcd_rc rc = mg_changes_more(f, wait > 1 ? wait : 1, &too_large, err);
    if (rc != CDCD_OK && too_large)
        return closer(f, err);
    return rc;
}

/* The reply has no more events: what the server vouches for. */
static void end_of_batch(struct mg_feed *f)
{
    if (f->post.ptr && f->fragments == 0 && f->reading != MG_SLIM)
        mark_token(f, f->post);
    f->post = (struct cdcd_slice){NULL, 0};
}

static enum cdcd_rc stream_next(struct mg_feed *f, struct cdcd_arena *a, int64_t deadline_ms,
                                struct mg_change *out, struct cdcd_error *err)
{
    struct cdcd_slice document;
    struct mg_event event;
    bool asked = false;
    if (f->fragments == 0 && f->merged.cap > MERGED_KEEP) {
        cdcd_buf_free(&f->merged);
        cdcd_buf_init(&f->merged, MERGED_MAX);
    }
    for (;;) {
        enum cdcd_rc rc = take_event(f, &document, &event, err);
        if (rc == CDCD_OK) {
            rc = give(f, &event, a, out, err);
            if (rc != CDCD_AGAIN)
                return rc;
            continue;
        }
        if (rc == CDCD_ERROR)
            return rc;
        bool busy = f->batch_events >= BUSY_EVENTS;
        bool empty = asked && f->batch_events == 0;
        end_of_batch(f);
        if (asked)
            f->whole = empty;
        if (empty && f->reading == MG_SINGLE) /* the large event is no longer in the way */
            f->reading = MG_WHOLE;
        int64_t now = deadline_ms || asked ? cdcd_now_ms() : 0;
        if (deadline_ms ? asked && now >= deadline_ms : asked || !busy)
            return CDCD_AGAIN;
        if (ask(f, deadline_ms, err) != CDCD_OK)
            return CDCD_ERROR;
        asked = true;
    }
}

/* ---- open, close ---- */

static void stream_close(struct mg_feed *f)
{
    if (!f)
        return;
    if (f->session) {
        mg_changes_close(f);
        mongoc_client_session_destroy(f->session);
    }
    cdcd_buf_free(&f->token);
    cdcd_buf_free(&f->merged);
    free(f->db);
    free(f->collection);
    free(f->known_ns);
    free(f->warned);
    bson_free(f);
}

static enum cdcd_rc start_session(struct mg_feed *f, struct cdcd_error *err)
{
    bson_error_t e;
    mongoc_session_opt_t *opts = mongoc_session_opts_new();
    mongoc_session_opts_set_causal_consistency(opts, false); /* the token says where to start */
    f->session = mongoc_client_start_session(f->s->client, opts, &e);
    mongoc_session_opts_destroy(opts);
    return f->session ? CDCD_OK : mg_error(err, &e, NULL, "a session for the change stream");
}

/* The token of a position, which is Extended JSON, as BSON. */
static enum cdcd_rc read_token(struct mg_feed *f, const char *json, struct cdcd_error *err)
{
    bson_error_t e;
    bson_t *token = bson_new_from_json((const uint8_t *)json, -1, &e);
    if (!token)
        return cdcd_error_set(err, CDCD_ERR_FATAL, "the stored resume token cannot be read: %s",
                              e.message);
    keep_token(f, mg_slice(token));
    bson_destroy(token);
    return CDCD_OK;
}

static enum cdcd_rc prepare(struct cdcd_source *s, const struct mg_position *from,
                            struct mg_feed **out, struct cdcd_error *err)
{
    struct mg_feed *f = bson_aligned_alloc0(_Alignof(struct mg_feed), sizeof *f);
    f->s = s;
    f->start = f->last = f->reached = f->marked = from->ts;
    cdcd_buf_init(&f->token, 0);
    cdcd_buf_init(&f->merged, MERGED_MAX);
    *out = f;
    if (from->token && read_token(f, from->token, err) != CDCD_OK)
        return CDCD_ERROR;
    f->behind = f->token.len > 0;
    return start_session(f, err);
}

static enum cdcd_rc stream_open(struct cdcd_source *s, const struct mg_position *from,
                                struct mg_feed **out, struct cdcd_error *err)
{
    struct mg_feed *f;
    bool too_large = false;
    enum cdcd_rc rc = prepare(s, from, &f, err);
    if (rc == CDCD_OK)
        rc = mg_changes_open(f, &too_large, err);
    if (rc != CDCD_OK && too_large)
        rc = closer(f, err);
    if (rc != CDCD_OK) {
        stream_close(f);
        return rc;
    }
    *out = f;
    return CDCD_OK;
}

/* The first event behind the position, without its documents: errors of the position show. */
static enum cdcd_rc stream_verify(struct cdcd_source *s, const struct mg_position *from,
                                  struct cdcd_error *err)
{
    struct mg_feed *f;
    bool too_large = false;
    enum cdcd_rc rc = prepare(s, from, &f, err);
    if (rc == CDCD_OK) {
        f->reading = MG_SLIM;
        f->any = true;
        rc = mg_changes_open(f, &too_large, err);
        if (rc != CDCD_OK && too_large)
            rc = CDCD_OK; /* the position is there; what is behind it is for the stream */
    }
    stream_close(f);
    return rc;
}

static bool stream_ready(const struct mg_feed *f)
{
    return f->in_batch;
}

static bool stream_mark(const struct mg_feed *f, struct mg_time *ts, struct cdcd_slice *token)
{
    /* Of several shards one may still have to say what it did at that time. */
    bool sure = f->whole && !f->s->server.mongos;
    *ts = sure ? f->reached : f->marked;
    if (!sure && mg_time_cmp(*ts, f->last) <= 0)
        return false;
    *token = cdcd_buf_slice(&f->token);
    return true;
}

static bool starts_behind(const struct mg_feed *f)
{
    return f->behind;
}

const struct mg_feed_ops mg_change_stream_feed = {
    .open = stream_open,
    .close = stream_close,
    .next = stream_next,
    .ready = stream_ready,
    .mark = stream_mark,
    .verify = stream_verify,
    .starts_behind = starts_behind,
};
