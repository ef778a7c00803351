/*
 * tail.c: the feed of local.oplog.rs. See stream.h and tail_int.h.
 *
 * The position is the time of an entry, and the cursor starts with that very entry: when another
 * one comes first, the entry is gone, either because the oplog was rolled over, or because an
 * election removed it. Reading on would leave a hole.
 */
#include "tail_int.h"

#include <inttypes.h>
#include <stdlib.h>
#include <time.h>

/* How often the clock is looked at while nothing wanted comes. */
#define CLOCK_EVERY 1024
/* An oplog without an entry to stand on is looked at this often. */
#define DEAD_WAIT_MS 100

struct mg_feed {
    struct cdcd_source *s;
    struct mg_position from;
    struct mg_tail_cursor *cursor;
    struct mg_collections *collections;
    struct mg_entry entry; /* the one whose operations are being given */
    struct mg_ops ops;
    struct mg_chain *chain; /* NULL: the entry's own */
    bool in_entry;
    bool flat; /* the newest entry is one of several at its time */
    struct mg_time read, given;
};

/* ---- may it go on? ---- */

static enum cdcd_rc rolled_over(struct mg_time at, struct mg_time first, struct cdcd_error *err)
{
    return cdcd_error_set(err, CDCD_ERR_LOSS,
                          "position %" PRIu32 ":%" PRIu32
                          " is no longer in the oplog (first %" PRIu32 ":%" PRIu32 "); %" PRIu32
                          " seconds missing; new snapshot needed. Give the oplog more room: "
                          "db.adminCommand({replSetResizeOplog: 1, size: MEGABYTES})",
                          at.t, at.i, first.t, first.i, first.t - at.t);
}

/* The entry of the position is not there. */
static enum cdcd_rc lost(struct cdcd_source *s, struct mg_time at, struct cdcd_error *err)
{
    struct mg_time first, last;
    if (mg_oplog_window(s->client, &first, &last, err) != CDCD_OK)
        return CDCD_ERROR;
    if (mg_time_cmp(first, at) > 0)
        return rolled_over(at, first, err);
    if (mg_time_cmp(last, at) >= 0)
        return cdcd_error_set(err, CDCD_ERR_LOSS,
                              "position %" PRIu32 ":%" PRIu32
                              " is not in the oplog, although it reaches from %" PRIu32 ":%" PRIu32
                              " to %" PRIu32 ":%" PRIu32
                              ": an election rolled it back, or this is another server. What was "
                              "delivered may differ from what is there: new snapshot needed",
                              at.t, at.i, first.t, first.i, last.t, last.i);
    if (!s->server.writable_primary)
        return cdcd_error_set(err, CDCD_ERR_RETRY,
                              "this member's oplog ends at %" PRIu32 ":%" PRIu32
                              ", before the position %" PRIu32 ":%" PRIu32 ": waiting for it",
                              last.t, last.i, at.t, at.i);
    return cdcd_error_set(err, CDCD_ERR_LOSS,
                          "position %" PRIu32 ":%" PRIu32
                          " is ahead of the primary, whose oplog ends at %" PRIu32 ":%" PRIu32
                          ": it was restored from a backup, lost its newest writes in a crash, or "
                          "is another server. New snapshot needed",
                          at.t, at.i, last.t, last.i);
}

/* A position of another way of capture may be a time at which no entry is. */
static enum cdcd_rc check_window(struct cdcd_source *s, struct mg_time at, struct cdcd_error *err)
{
    struct mg_time first, last;
    if (mg_oplog_window(s->client, &first, &last, err) != CDCD_OK)
        return CDCD_ERROR;
    return mg_time_cmp(first, at) > 0 ? rolled_over(at, first, err) : CDCD_OK;
}

static enum cdcd_rc time_of(struct cdcd_slice document, struct mg_time *out, struct cdcd_error *err)
{
    struct cdcd_bson_element ts;
    if (!cdcd_bson_find(document, "ts", &ts) || ts.type != CDCD_BSON_TIMESTAMP)
        return cdcd_error_set(err, CDCD_ERR_DATA, "an oplog entry has no ts");
    uint64_t n = (uint64_t)cdcd_bson_int64(ts.value);
    *out = (struct mg_time){(uint32_t)(n >> 32), (uint32_t)n};
    return CDCD_OK;
}

/* The first entry that the cursor has is that of the position. */
static enum cdcd_rc check_first(struct cdcd_source *s, struct mg_tail_cursor *c,
                                const struct mg_position *p, struct cdcd_error *err)
{
    struct cdcd_slice document;
    struct mg_time ts;
    bool some = mg_tail_cursor_peek(c, &document);
    if (some && time_of(document, &ts, err) != CDCD_OK)
        return CDCD_ERROR;
    if (some && mg_time_cmp(ts, p->ts) == 0)
        return CDCD_OK;
    return p->capture == MG_OPLOG ? lost(s, p->ts, err) : check_window(s, p->ts, err);
}

static enum cdcd_rc open_checked(struct cdcd_source *s, const struct mg_position *p, int64_t batch,
                                 struct mg_tail_cursor **out, struct cdcd_error *err)
{
    struct mg_tail_cursor *c;
    if (mg_tail_cursor_open(s, p->ts, batch, &c, err) != CDCD_OK)
        return CDCD_ERROR;
    if (check_first(s, c, p, err) != CDCD_OK) {
        mg_tail_cursor_close(c);
        return CDCD_ERROR;
    }
    *out = c;
    return CDCD_OK;
}

static enum cdcd_rc tail_verify(struct cdcd_source *s, const struct mg_position *from,
                                struct cdcd_error *err)
{
    struct mg_tail_cursor *c;
    if (open_checked(s, from, 1, &c, err) != CDCD_OK)
        return CDCD_ERROR;
    mg_tail_cursor_close(c);
    return CDCD_OK;
}

enum cdcd_rc mg_tail_find(struct cdcd_source *s, struct mg_time *ts, struct cdcd_error *err)
{
    struct mg_time first, last;
    struct mg_tail_cursor *c;
    struct cdcd_slice document;
    if (mg_oplog_window(s->client, &first, &last, err) != CDCD_OK)
        return CDCD_ERROR;
    if (mg_time_cmp(*ts, first) < 0 || mg_time_cmp(*ts, last) > 0)
        return cdcd_error_set(err, CDCD_ERR_CONFIG,
                              "capture.start.op.time: %" PRIu32 ":%" PRIu32
                              " is not within the oplog, which reaches from %" PRIu32 ":%" PRIu32
                              " to %" PRIu32 ":%" PRIu32,
                              ts->t, ts->i, first.t, first.i, last.t, last.i);
    if (mg_tail_cursor_open(s, *ts, 1, &c, err) != CDCD_OK)
        return CDCD_ERROR;
    enum cdcd_rc rc = mg_tail_cursor_peek(c, &document) ? time_of(document, ts, err)
                                                        : lost(s, *ts, err);
    mg_tail_cursor_close(c);
    return rc;
}

/* ---- construction ---- */

static void tail_close(struct mg_feed *f)
{
    mg_chain_close(f->chain);
    mg_tail_cursor_close(f->cursor);
    mg_collections_free(f->collections);
    mg_position_free(&f->from);
    free(f);
}

static enum cdcd_rc tail_open(struct cdcd_source *s, const struct mg_position *from,
                              struct mg_feed **out, struct cdcd_error *err)
{
    struct mg_feed *f = cdcd_xcalloc(1, sizeof *f);
    f->s = s;
    mg_position_copy(from, &f->from);
    f->collections = mg_collections_new(s->cfg, s->filter);
    if (open_checked(s, from, 0, &f->cursor, err) != CDCD_OK) {
        tail_close(f);
        return CDCD_ERROR;
    }
    *out = f;
    return CDCD_OK;
}

/* ---- changes ---- */

static enum cdcd_rc where(const struct mg_feed *f, const struct mg_op *op, struct cdcd_error *err)
{
    return cdcd_error_context(
        err, "the oplog entry at %" PRIu32 ":%" PRIu32 " (%.*s)", f->entry.ts.t, f->entry.ts.i,
        (int)(op->ns.len > 300 ? 300 : op->ns.len), op->ns.ptr ? op->ns.ptr : "");
}

static void begin_change(const struct mg_feed *f, struct mg_change *out)
{
    const struct mg_entry *e = &f->entry;
    *out = (struct mg_change){.ts = e->ts, .wall_ms = e->wall_ms, .transaction = e->transaction};
    if (e->transaction) {
        out->lsid = e->lsid;
        out->txn_number = e->txn_number;
    }
}

static enum cdcd_rc document_change(struct mg_feed *f, const struct mg_op *op, struct mg_time ts,
                                    const struct mg_name *n, struct cdcd_arena *a,
                                    struct mg_change *out, struct cdcd_error *err)
{
    struct cdcd_update *update = NULL;
    begin_change(f, out);
    out->db = n->db;
    out->collection = n->collection;
    out->id = op->id;
    out->uuid = op->uuid;
    out->entry_o = op->o;
    out->entry_ts = ts;
    out->apply_ops_index = op->index;
    out->op = op->op == 'i' ? CDCD_OP_CREATE : op->op == 'u' ? CDCD_OP_UPDATE : CDCD_OP_DELETE;
    if (op->op == 'i')
        out->after = op->o;
    if (op->op == 'u') {
        if (mg_update_parse(op->o, n->buckets, a, &update, &out->after, err) != CDCD_OK)
            return where(f, op, err);
        out->update = update;
        out->replaces = update == NULL;
    }
    return CDCD_OK;
}

/* OK: *out is one. AGAIN: it is not wanted. */
static enum cdcd_rc command_change(struct mg_feed *f, const struct mg_op *op, struct mg_change *out,
                                   struct cdcd_error *err)
{
    bool wanted;
    begin_change(f, out);
    out->op = CDCD_OP_DDL;
    if (mg_command_parse(op->ns, op->o, op->uuid, &out->command, err) != CDCD_OK)
        return where(f, op, err);
    if (mg_collections_command(f->collections, &out->command, f->entry.ts, &wanted, err) != CDCD_OK)
        return CDCD_ERROR;
    out->db = out->command.db;
    out->collection = out->command.collection;
    return wanted ? CDCD_OK : CDCD_AGAIN;
}

/* The same of an operation. */
static enum cdcd_rc op_change(struct mg_feed *f, const struct mg_op *op, struct mg_time ts,
                              struct cdcd_arena *a, struct mg_change *out, struct cdcd_error *err)
{
    struct mg_name *n;
    if (op->from_migrate || f->entry.from_migrate) {
        mg_collections_migrated(f->collections, f->entry.ts);
        return CDCD_AGAIN;
    }
    if (op->op == 'c')
        return command_change(f, op, out, err);
    if (op->op == '?') {
        mg_collections_unknown(f->collections, op->what, f->entry.ts);
        return CDCD_AGAIN;
    }
    if (mg_collections_of(f->collections, op, f->entry.ts, &n, err) != CDCD_OK)
        return CDCD_ERROR;
    return n ? document_change(f, op, ts, n, a, out, err) : CDCD_AGAIN;
}

/* ---- entries ---- */

static void end_entry(struct mg_feed *f)
{
    mg_chain_close(f->chain);
    f->chain = NULL;
    f->in_entry = false;
    f->read = f->entry.ts;
}

/* The next operation of the open entry. OK: a change. AGAIN: none yet, or the entry has no more. */
static enum cdcd_rc next_op(struct mg_feed *f, struct cdcd_arena *a, struct mg_change *out,
                            struct cdcd_error *err)
{
    struct mg_op op;
    struct mg_time ts = f->entry.ts;
    enum cdcd_rc rc = f->chain ? mg_chain_next(f->chain, &op, &ts, err)
                               : mg_ops_next(&f->ops, &op, err);
    if (rc == CDCD_OK)
        return op_change(f, &op, ts, a, out, err);
    if (rc == CDCD_END) {
        end_entry(f);
        return CDCD_AGAIN;
    }
    return rc;
}

/* A new entry. OK: it is a change by itself. AGAIN: it is not, or has operations to be walked. */
static enum cdcd_rc begin_entry(struct mg_feed *f, struct cdcd_slice document,
                                struct mg_change *out, struct cdcd_error *err)
{
    struct mg_entry *e = &f->entry;
    if (mg_entry_parse(document, e, err) != CDCD_OK)
        return CDCD_ERROR;
    f->flat = e->kind == MG_ENTRY_OPS && e->transaction && !e->ops.ptr;
    f->in_entry = true;
    enum cdcd_rc rc = CDCD_AGAIN;
    switch (e->kind) {
    case MG_ENTRY_OPS: return mg_ops_begin(e, &f->ops, err) == CDCD_OK ? CDCD_AGAIN : CDCD_ERROR;
    case MG_ENTRY_COMMIT:
        return mg_chain_open(f->s->client, e, &f->chain, err) == CDCD_OK ? CDCD_AGAIN : CDCD_ERROR;
    case MG_ENTRY_COMMAND:
        if (e->from_migrate)
            mg_collections_migrated(f->collections, e->ts);
        else
            rc = command_change(f, &e->op, out, err);
        break;
    case MG_ENTRY_UNKNOWN: mg_collections_unknown(f->collections, e->what, e->ts); break;
    case MG_ENTRY_NOOP:
    case MG_ENTRY_PART:
    case MG_ENTRY_ABORT: break;
    }
    if (rc != CDCD_ERROR)
        end_entry(f);
    return rc;
}

/* There is nothing at or after the position yet. */
static enum cdcd_rc wait_for_life(struct mg_feed *f, int64_t deadline_ms, struct cdcd_error *err)
{
    int64_t wait = deadline_ms - cdcd_now_ms();
    if (deadline_ms == 0 || wait <= 0)
        return CDCD_AGAIN;
    wait = wait > DEAD_WAIT_MS ? DEAD_WAIT_MS : wait;
    const struct timespec nap = {0, wait * 1000000};
    nanosleep(&nap, NULL);
    mg_tail_cursor_close(f->cursor);
    f->cursor = NULL;
    return open_checked(f->s, &f->from, 0, &f->cursor, err);
}

static enum cdcd_rc tail_next(struct mg_feed *f, struct cdcd_arena *a, int64_t deadline_ms,
                              struct mg_change *out, struct cdcd_error *err)
{
    struct cdcd_slice document;
    for (unsigned steps = 1;; steps++) {
        enum cdcd_rc rc;
        if (f->in_entry) {
            rc = next_op(f, a, out, err);
        } else if (mg_tail_cursor_dead(f->cursor) && !f->read.t && f->from.capture != MG_OPLOG) {
            rc = wait_for_life(f, deadline_ms, err);
            if (rc != CDCD_OK)
                return rc;
            continue;
        } else {
            rc = mg_tail_cursor_next(f->cursor, deadline_ms, &document, err);
            if (rc != CDCD_OK)
                return rc;
            rc = begin_entry(f, document, out, err);
        }
        if (rc == CDCD_OK)
            f->given = out->ts;
        if (rc != CDCD_AGAIN)
            return rc;
        if (steps % CLOCK_EVERY == 0 && deadline_ms && cdcd_now_ms() >= deadline_ms)
            return CDCD_AGAIN;
    }
}

static bool tail_ready(const struct mg_feed *f)
{
    return f->in_entry || mg_tail_cursor_ready(f->cursor);
}

static bool tail_mark(const struct mg_feed *f, struct mg_time *ts, struct cdcd_slice *token)
{
    token->ptr = NULL;
    *ts = f->read;
    if (f->in_entry || !f->read.t)
        return false;
    return !f->flat || mg_time_cmp(f->read, f->given) != 0 || mg_tail_cursor_drained(f->cursor);
}

const struct mg_feed_ops mg_tail_feed = {
    .open = tail_open,
    .close = tail_close,
    .next = tail_next,
    .ready = tail_ready,
    .mark = tail_mark,
    .verify = tail_verify,
};
