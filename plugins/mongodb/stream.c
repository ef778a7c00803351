/*
 * stream.c: the source ops of the stream: where it may start, when a batch is handed on, positions,
 * the barrier. See stream.h and stream_int.h.
 */
#include "stream_int.h"

#include <inttypes.h>
#include <stdlib.h>

/* A position without events is a record of its own in the sink: seldom. */
#define IDLE_POSITION_MS 5000
/* How often the clock is looked at while changes come without end. */
#define CLOCK_EVERY 256
/* When a batch has events and no more is here, it waits a little for company: for the rest of a
 * transaction that is half here; else for what is written right now; longer when the newest change
 * is old, since then there is a backlog and latency is gone anyway. */
#define LINGER_TX_MS     50
#define LINGER_LIVE_MS   1
#define LINGER_BEHIND_MS 20
#define BEHIND_US        2000000

static enum cdcd_rc now(struct cdcd_source *s, struct mg_time *out, struct cdcd_error *err)
{
    return mg_cluster_time(s->client, out, err);
}

static const struct mg_reads real_reads = {mg_lookup_many, mg_pre_image, now};

static enum cdcd_rc unreadable(struct cdcd_slice from, struct cdcd_error *err)
{
    return cdcd_error_set(err, CDCD_ERR_FATAL, "the stored position %.*s cannot be read",
                          (int)(from.len > 1000 ? 1000 : from.len), from.ptr);
}

static const struct mg_feed_ops *feed_of(const struct cdcd_source *s)
{
    return s->cfg->capture == MG_OPLOG ? &mg_tail_feed : &mg_change_stream_feed;
}

/* ---- where it may start ---- */

/* The newest entry of the oplog, or the newest majority-committed time; or the time that is asked
 * for. */
static enum cdcd_rc fresh(struct cdcd_source *s, struct mg_position *p, struct cdcd_error *err)
{
    struct mg_time first;
    *p = (struct mg_position){.capture = s->cfg->capture, .ord = MG_ORD_ALL};
    p->set = s->server.set[0] ? cdcd_xstrdup(s->server.set) : NULL;
    if (s->cfg->start_op_time >= 0) {
        p->ts = (struct mg_time){(uint32_t)((uint64_t)s->cfg->start_op_time >> 32),
                                 (uint32_t)s->cfg->start_op_time};
        p->ord = 0;
        return s->cfg->capture == MG_OPLOG ? mg_tail_find(s, &p->ts, err) : CDCD_OK;
    }
    if (s->cfg->capture == MG_OPLOG)
        return mg_oplog_window(s->client, &first, &p->ts, err);
    return mg_cluster_time(s->client, &p->ts, err);
}

static enum cdcd_rc check_set(const struct cdcd_source *s, const struct mg_position *p,
                              struct cdcd_error *err)
{
    if (!p->set || !s->server.set[0] || strcmp(p->set, s->server.set) == 0)
        return CDCD_OK;
    return cdcd_error_set(err, CDCD_ERR_LOSS,
                          "the position is of replica set %s and this server is of %s: connect to "
                          "the right one, or start a new snapshot",
                          p->set, s->server.set);
}

enum cdcd_rc mg_stream_resume(struct cdcd_source *s, struct cdcd_slice from,
                              struct cdcd_buf *position, struct cdcd_error *err)
{
    struct mg_position p = {0};
    if (from.ptr && !mg_position_parse(from, &p))
        return unreadable(from, err);
    enum cdcd_rc rc = from.ptr ? check_set(s, &p, err) : fresh(s, &p, err);
    if (rc == CDCD_OK && (from.ptr || s->cfg->start_op_time >= 0))
        rc = feed_of(s)->verify(s, &p, err);
    if (rc == CDCD_OK)
        mg_position_write(&p, position);
    mg_position_free(&p);
    return rc;
}

/* ---- construction ---- */

static enum cdcd_rc place(struct mg_stream *st, const struct mg_position *p, struct cdcd_error *err)
{
    bool behind = st->ops->starts_behind && st->ops->starts_behind(st->feed);
    st->ts = st->emitted_ts = p->ts;
    st->emitted_ord = p->ord;
    st->emitted_ms = cdcd_now_ms();
    if (behind) {
        st->ord = p->ord == MG_ORD_ALL ? 0 : p->ord;
        st->all = p->ord == MG_ORD_ALL;
    } else {
        st->all = p->ord == MG_ORD_ALL;
        st->skip_ts = p->ts;
        st->skip_ord = p->ord;
    }
    if (p->set)
        st->set = cdcd_xstrdup(p->set);
    st->until = p->until;
    if (p->until_open && st->reads_from->now(st->s, &st->until, err) != CDCD_OK)
        return CDCD_ERROR;
    st->overlap_end = st->until;
    st->emitted_until = p->until_open || p->until.t;
    return CDCD_OK;
}

enum cdcd_rc mg_stream_open(struct cdcd_source *s, const struct mg_feed_ops *ops,
                            const struct mg_reads *reads, struct cdcd_slice from,
                            struct cdcd_error *err)
{
    struct mg_position p = {0};
    if (!mg_position_parse(from, &p))
        return unreadable(from, err);
    mg_stream_free(s->stream);
    struct mg_stream *st = s->stream = cdcd_xcalloc(1, sizeof *st);
    st->s = s;
    st->ops = ops;
    st->reads_from = reads ? reads : &real_reads;
    st->schemas = mg_schemas_new();
    st->lookup_most = MG_LOOKUP_FIRST;
    cdcd_buf_init(&st->token, 0);
    cdcd_buf_init(&st->tx.lsid, 0);
    cdcd_buf_init(&st->tx.text, 0);
    cdcd_arena_init(&st->hold, 64 << 10);
    enum cdcd_rc rc = ops->open(s, &p, &st->feed, err);
    if (rc == CDCD_OK)
        rc = place(st, &p, err);
    mg_position_free(&p);
    if (rc != CDCD_OK) {
        mg_stream_free(st);
        s->stream = NULL;
    }
    return rc;
}

void mg_stream_free(struct mg_stream *st)
{
    if (!st)
        return;
    if (st->feed)
        st->ops->close(st->feed);
    mg_session_free(st->session);
    mg_schemas_free(st->schemas);
    cdcd_buf_free(&st->token);
    cdcd_buf_free(&st->tx.lsid);
    cdcd_buf_free(&st->tx.text);
    cdcd_arena_free(&st->hold);
    free(st->tx.collections);
    free(st->pending);
    free(st->slots);
    free(st->set);
    free(st);
}

enum cdcd_rc mg_stream_start(struct cdcd_source *s, struct cdcd_slice from, struct cdcd_error *err)
{
    if (mg_stream_open(s, feed_of(s), NULL, from, err) != CDCD_OK)
        return CDCD_ERROR;
    cdcd_info("mongodb", "reading the %s from %" PRIu32 ":%" PRIu32 " on",
              s->cfg->capture == MG_OPLOG ? "oplog" : "change stream", s->stream->ts.t,
              s->stream->ts.i);
    return CDCD_OK;
}

/* ---- positions ---- */

/* While a transaction with metadata is open, its start must be read again to count it, and so a
 * token, which leads behind what is delivered of it, is of no use. */
static char *token_text(const struct mg_stream *st)
{
    static const struct cdcd_bson_style style = {.form = CDCD_BSON_RELAXED};
    const char *why;
    char *text = NULL;
    struct cdcd_arena a = {0};
    struct cdcd_writer w;
    if (!st->token.len || (st->tx.open && st->s->env->tx_metadata))
        return NULL;
    cdcd_arena_init(&a, 1024);
    cdcd_writer_begin(&w, &a);
    bool ok = cdcd_bson_json(&w, cdcd_buf_slice(&st->token), &style, &why);
    struct cdcd_slice json = cdcd_writer_end(&w);
    if (ok)
        text = cdcd_xstrndup(json.ptr, json.len);
    cdcd_arena_free(&a);
    return text;
}

static bool in_overlap(const struct mg_stream *st)
{
    return st->until_open || (st->overlap_end.t && mg_time_cmp(st->ts, st->overlap_end) <= 0);
}

/* What of ts is delivered. Until as much of it has come again as was delivered before the resume,
 * it is that. */
static int64_t delivered(const struct mg_stream *st)
{
    bool again = mg_time_cmp(st->ts, st->skip_ts) == 0 && st->ord < st->skip_ord;
    return st->all ? MG_ORD_ALL : again ? st->skip_ord : st->ord;
}

static void put_position(struct mg_stream *st, struct cdcd_batch *b)
{
    struct cdcd_buf text;
    struct mg_position p = {
        .capture = st->s->cfg->capture,
        .ts = st->ts,
        .ord = delivered(st),
        .token = token_text(st),
        .set = st->set,
        .until = in_overlap(st) ? st->overlap_end : (struct mg_time){0, 0},
        .until_open = st->until_open,
    };
    cdcd_buf_init(&text, 0);
    mg_position_write(&p, &text);
    b->position.ptr = cdcd_arena_dup(&b->arena, text.ptr, text.len);
    b->position.len = text.len;
    cdcd_buf_free(&text);
    free(p.token);
    st->emitted_ts = p.ts;
    st->emitted_ord = p.ord;
    st->emitted_until = p.until.t || p.until_open;
    st->emitted_ms = cdcd_now_ms();
}

static bool position_due(const struct mg_stream *st, int64_t now_ms)
{
    if (st->emitted_in_tx && !st->in_tx)
        return true; /* the sink waits for the rest of a transaction that is whole */
    bool moved = mg_time_cmp(st->ts, st->emitted_ts) != 0 || delivered(st) != st->emitted_ord ||
                 in_overlap(st) != st->emitted_until;
    return moved && now_ms - st->emitted_ms >= IDLE_POSITION_MS;
}

/* ---- reading ---- */

struct reading {
    int64_t deadline, first_event_ms;
    unsigned steps;
    bool broken; /* what is in the batch lacks documents */
};

/* How long the next change may be waited for. */
static int64_t wait_until(const struct mg_stream *st, struct reading *rd,
                          const struct cdcd_batch *b)
{
    if (!b->nevents)
        return rd->deadline;
    int64_t now_ms = cdcd_now_ms();
    int64_t linger = st->in_tx                                          ? LINGER_TX_MS
                     : cdcd_wallclock_us() - st->last_ts_us > BEHIND_US ? LINGER_BEHIND_MS
                                                                        : LINGER_LIVE_MS;
    if (!rd->first_event_ms)
        rd->first_event_ms = now_ms;
    return rd->first_event_ms + linger;
}

static bool barrier_passed(const struct mg_stream *st)
{
    if (!st->barrier || st->in_tx)
        return false;
    int d = mg_time_cmp(st->ts, st->barrier_ts);
    return d > 0 || (d == 0 && delivered(st) >= st->barrier_ord);
}

/* Nothing more is here. What the feed vouches for is the new place. */
static enum cdcd_rc on_again(struct mg_stream *st, struct cdcd_batch *b)
{
    struct mg_time ts;
    struct cdcd_slice token = {NULL, 0};
    if (!st->ops->mark(st->feed, &ts, &token) || mg_time_cmp(ts, st->ts) < 0)
        return CDCD_AGAIN;
    if (mg_time_cmp(ts, st->tx.ts) >= 0)
        mg_stream_close_tx(st, b);
    st->in_tx = false;
    if (token.ptr) {
        cdcd_buf_clear(&st->token);
        cdcd_buf_add(&st->token, token.ptr, token.len);
    }
    bool whole = mg_time_cmp(ts, st->barrier_ts) >= 0;
    if (mg_time_cmp(ts, st->ts) > 0) {
        st->ts = ts;
        st->ord = 0;
        st->all = false;
    }
    return st->barrier && whole ? CDCD_END : CDCD_AGAIN;
}

/* The next change. END: it is beyond the barrier, and kept. */
static enum cdcd_rc step(struct mg_stream *st, struct reading *rd, struct cdcd_batch *b,
                         struct cdcd_error *err)
{
    struct mg_change c;
    struct mg_change *change = &c;
    if (st->has_held) {
        change = &st->held;
    } else {
        st->from_hold = st->barrier;
        if (st->from_hold)
            cdcd_arena_reset(&st->hold, 64 << 10);
        bool ready = st->ops->ready(st->feed);
        enum cdcd_rc rc = st->ops->next(st->feed, st->from_hold ? &st->hold : &b->arena,
                                        ready ? 0 : wait_until(st, rd, b), &c, err);
        if (rc != CDCD_OK)
            return rc == CDCD_AGAIN ? on_again(st, b) : rc;
    }
    enum cdcd_rc rc = mg_stream_take(st, b, change, err);
    if (rc == CDCD_END && !st->has_held)
        st->held = c;
    st->has_held = rc == CDCD_END;
    return rc;
}

static enum cdcd_rc fill(struct mg_stream *st, struct reading *rd, struct cdcd_batch *b,
                         struct cdcd_error *err)
{
    st->idle = false;
    while (!cdcd_batch_full(b)) {
        enum cdcd_rc rc = barrier_passed(st) ? CDCD_END : step(st, rd, b, err);
        st->idle = rc == CDCD_AGAIN;
        if (rc != CDCD_OK)
            return rc;
        rd->broken = mg_pending_full(st) && mg_pending_resolve(st, b, err) != CDCD_OK;
        if (rd->broken)
            return CDCD_ERROR;
        if (++rd->steps % CLOCK_EVERY == 0) {
            int64_t now_ms = cdcd_now_ms();
            if (b->nevents == 0 && (now_ms >= rd->deadline || position_due(st, now_ms)))
                return CDCD_AGAIN;
        }
    }
    return CDCD_OK;
}

/* A change that fails leaves nothing of itself in the batch; what came before it is good, and is
 * delivered first. Lookups that fail leave nothing good. */
static enum cdcd_rc fill_and_resolve(struct mg_stream *st, struct reading *rd, struct cdcd_batch *b,
                                     struct cdcd_error *err)
{
    enum cdcd_rc rc = fill(st, rd, b, err);
    if (rc == CDCD_ERROR && (b->nevents == 0 || rd->broken))
        return rc;
    if (rc == CDCD_ERROR) {
        st->pending_error = *err;
        *err = (struct cdcd_error){0};
        rc = CDCD_OK;
    }
    return mg_pending_resolve(st, b, err) == CDCD_OK ? rc : CDCD_ERROR;
}

enum cdcd_rc mg_stream_read(struct cdcd_source *s, struct cdcd_batch *b, int64_t deadline_ms,
                            struct cdcd_error *err)
{
    struct mg_stream *st = s->stream;
    if (st->pending_error.class != CDCD_ERR_NONE) {
        *err = st->pending_error;
        return CDCD_ERROR;
    }
    if (st->at_barrier)
        return CDCD_END;
    struct reading rd = {.deadline = deadline_ms};
    st->reads++;
    enum cdcd_rc rc = fill_and_resolve(st, &rd, b, err);
    if (rc == CDCD_ERROR)
        return rc;
    st->at_barrier = rc == CDCD_END;
    bool some = b->nevents || rc == CDCD_END || position_due(st, cdcd_now_ms());
    b->caught_up = rc != CDCD_OK || st->pending_error.class != CDCD_ERR_NONE;
    b->in_tx = rc == CDCD_OK && st->in_tx;
    if (some) {
        put_position(st, b);
        st->emitted_in_tx = b->in_tx;
    }
    return rc == CDCD_END ? CDCD_END : some ? CDCD_OK : CDCD_AGAIN;
}

/* ---- the other ops ---- */

/* NULL: the rows of a resumed snapshot are all read, so what they may hold of the log ends here. */
static enum cdcd_rc end_barrier(struct mg_stream *st, struct cdcd_error *err)
{
    struct mg_time end;
    st->barrier = st->at_barrier = false;
    if (!st->until_open)
        return CDCD_OK;
    if (st->reads_from->now(st->s, &end, err) != CDCD_OK)
        return CDCD_ERROR;
    st->until_open = false;
    st->until = end;
    if (mg_time_cmp(end, st->overlap_end) > 0)
        st->overlap_end = end;
    return CDCD_OK;
}

enum cdcd_rc mg_stream_stop_at(struct cdcd_source *s, struct cdcd_slice position,
                               struct cdcd_error *err)
{
    struct mg_stream *st = s->stream;
    struct mg_position p;
    if (!position.ptr)
        return end_barrier(st, err);
    if (!mg_position_parse(position, &p))
        return unreadable(position, err);
    st->barrier = true;
    st->at_barrier = false;
    st->barrier_ts = p.ts;
    st->barrier_ord = p.ord;
    st->until_open = st->until_open || p.until_open;
    mg_position_free(&p);
    return CDCD_OK;
}

/* The server keeps nothing for us. */
void mg_stream_ack(struct cdcd_source *s, struct cdcd_slice position)
{
    (void)s;
    (void)position;
}

/* A cursor without a getMore lives as long as its session, which is half an hour; after that it is
 * opened again, with the check of its position. */
enum cdcd_rc mg_stream_idle(struct cdcd_source *s, int64_t now_ms, struct cdcd_error *err)
{
    (void)s;
    (void)now_ms;
    (void)err;
    return CDCD_OK;
}

void mg_stream_lag(struct cdcd_source *s, struct cdcd_lag *out)
{
    const struct mg_stream *st = s->stream;
    *out = (struct cdcd_lag){-1, -1};
    if (!st)
        return;
    int64_t age = (cdcd_wallclock_us() - st->last_ts_us) / 1000;
    out->millis = st->idle ? 0 : st->last_ts_us ? (age > 0 ? age : 0) : -1;
}
