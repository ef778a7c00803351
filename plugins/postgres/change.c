/*
 * change.c: one change of a transaction -> its event, with ordinal, source block and transaction
 * metadata; or nothing, when it is filtered or was delivered before. See stream.h.
 */
#include "stream.h"

#include <inttypes.h>
#include <stdlib.h>

static size_t put_u64(char *out, uint64_t v)
{
    char tmp[20];
    size_t n = 0;
    do {
        tmp[n++] = (char)('0' + v % 10);
        v /= 10;
    } while (v);
    for (size_t i = 0; i < n; i++)
        out[i] = tmp[n - 1 - i];
    return n;
}

static struct cdcd_slice tx_id(struct cdcd_arena *a, uint32_t xid, pg_lsn lsn)
{
    char *p = cdcd_arena_alloc(a, 40);
    size_t n = put_u64(p, xid);
    p[n++] = ':';
    n += put_u64(p + n, lsn);
    return (struct cdcd_slice){p, n};
}

/* What all events have: the source block, source.sequence, time. */
static void set_source(struct pg_stream *st, struct cdcd_event *e, struct cdcd_batch *b,
                       struct cdcd_slice schema, struct cdcd_slice table, pg_lsn lsn,
                       bool transactional)
{
    const struct pg_tx *tx = &st->tx;
    struct cdcd_cell *c = cdcd_batch_cells(b, PG_SRC_COUNT);
    c[PG_SRC_SCHEMA] = cdcd_cell_text(schema.ptr, schema.len);
    c[PG_SRC_TABLE] = cdcd_cell_text(table.ptr, table.len);
    c[PG_SRC_TXID] = c[PG_SRC_XMIN] = c[PG_SRC_ORIGIN] = c[PG_SRC_ORIGIN_LSN] = (struct cdcd_cell){
        .kind = CDCD_C_NULL};
    c[PG_SRC_LSN] = cdcd_cell_int((int64_t)lsn);
    if (transactional) {
        c[PG_SRC_TXID] = cdcd_cell_int(tx->xid);
        if (tx->origin.len) {
            c[PG_SRC_ORIGIN] = cdcd_cell_text(
                cdcd_arena_dup(&b->arena, tx->origin.ptr, tx->origin.len), tx->origin.len);
            c[PG_SRC_ORIGIN_LSN] = cdcd_cell_int((int64_t)tx->origin_lsn);
        }
    }
    e->source = c;

    char *s = cdcd_arena_alloc(&b->arena, sizeof st->sequence + 24);
    memcpy(s, st->sequence, st->sequence_len);
    size_t n = st->sequence_len;
    n += put_u64(s + n, lsn);
    s[n++] = '"';
    s[n++] = ']';
    e->sequence = (struct cdcd_slice){s, n};
}

/* The place of a table in the list of this transaction. */
static size_t tx_table_index(struct pg_stream *st, uint32_t oid, struct cdcd_slice label)
{
    for (size_t i = 0; i < st->ntx_tables; i++)
        if (st->tx_tables[i].oid == oid)
            return i;
    if (st->ntx_tables == st->tx_tables_cap) {
        st->tx_tables_cap = st->tx_tables_cap ? 2 * st->tx_tables_cap : 8;
        st->tx_tables = cdcd_xrealloc(st->tx_tables, st->tx_tables_cap * sizeof *st->tx_tables);
    }
    st->tx_tables[st->ntx_tables] = (struct pg_tx_table){
        .oid = oid, .label = cdcd_xstrndup(label.ptr, label.len), .len = label.len};
    return st->ntx_tables++;
}

/* Counts an event's records in the transaction; rel NULL: a logical message. */
static void count_records(struct pg_stream *st, struct pg_rel *rel, struct cdcd_event *e,
                          unsigned records)
{
    struct pg_tx *tx = &st->tx;
    size_t i;
    if (rel && rel->tx_seq == tx->seq) {
        i = rel->tx_index;
    } else {
        i = tx_table_index(st, rel ? rel->oid : 0,
                           rel ? rel->table->label : cdcd_slice_str("message"));
        if (rel) {
            rel->tx_seq = tx->seq;
            rel->tx_index = i;
        }
    }
    if (e) {
        e->total_order = tx->total + 1;
        e->data_collection_order = st->tx_tables[i].count + 1;
    }
    tx->total += records;
    st->tx_tables[i].count += records;
    tx->begun = true;
}

/* Its BEGIN comes with a transaction's first event, not before: a transaction of which nothing is
 * captured leaves no trace. */
static void put_begin(struct pg_stream *st, struct cdcd_batch *b)
{
    const struct pg_tx *tx = &st->tx;
    if (!st->env->tx_metadata || tx->begun)
        return;
    struct cdcd_event *e = cdcd_batch_event(b, CDCD_OP_TX_BEGIN, NULL);
    struct cdcd_slice none = {"", 0};
    set_source(st, e, b, none, none, tx->first_lsn, true);
    e->tx_id = tx_id(&b->arena, tx->xid, tx->first_lsn);
    e->ts_us = tx->ts_us;
    e->in_tx = true;
    e->pos = (struct cdcd_pos){tx->commit_lsn, 0, true};
}

void pg_change_end(struct pg_stream *st, struct cdcd_batch *b, pg_lsn end_lsn)
{
    const struct pg_tx *tx = &st->tx;
    struct cdcd_event *e = cdcd_batch_event(b, CDCD_OP_TX_END, NULL);
    struct cdcd_slice none = {"", 0};
    set_source(st, e, b, none, none, end_lsn, true);
    e->tx_id = tx_id(&b->arena, tx->xid, end_lsn);
    e->ts_us = tx->ts_us;
    e->in_tx = true;
    e->pos = (struct cdcd_pos){tx->commit_lsn, tx->ord + 1, true};
    e->total_order = tx->total;
    struct cdcd_tx_collection *c = cdcd_arena_alloc(&b->arena, (st->ntx_tables + 1) * sizeof *c);
    for (size_t i = 0; i < st->ntx_tables; i++) {
        const struct pg_tx_table *t = &st->tx_tables[i];
        c[i].name = (struct cdcd_slice){cdcd_arena_dup(&b->arena, t->label, t->len), t->len};
        c[i].count = t->count;
    }
    e->collections = c;
    e->ncollections = (uint32_t)st->ntx_tables;
}

/* Of an event of a transaction: everything but the row itself. */
static void finish(struct pg_stream *st, struct pg_rel *rel, struct cdcd_event *e,
                   struct cdcd_batch *b, pg_lsn lsn)
{
    static const struct cdcd_slice none = {"", 0};
    struct pg_tx *tx = &st->tx;
    set_source(st, e, b, rel ? rel->schema : none, rel ? rel->name : none, lsn, true);
    e->ts_us = tx->ts_us;
    e->in_tx = true;
    e->pos = (struct cdcd_pos){tx->commit_lsn, tx->ord + 1, true};
    if (st->env->tx_metadata) {
        e->tx_id = tx_id(&b->arena, tx->xid, lsn);
        count_records(st, rel, e, cdcd_event_key_changed(e) ? 2 : 1);
    }
}

/* ---- changes ---- */

static struct pg_rel *find_rel(struct pg_stream *st, uint32_t oid)
{
    if (st->last_rel && st->last_rel->oid == oid)
        return st->last_rel;
    struct pg_rel *rel = st->overlay.n ? pg_rels_get(&st->overlay, oid) : NULL;
    if (!rel)
        rel = pg_rels_get(&st->rels, oid);
    st->last_rel = rel;
    return rel;
}

static enum cdcd_rc check_size(const struct pg_stream *st, struct cdcd_slice what, size_t size,
                               pg_lsn lsn, struct cdcd_error *err)
{
    if (st->env->max_event_bytes <= 0 || size <= (uint64_t)st->env->max_event_bytes)
        return CDCD_OK;
    return cdcd_error_set(err, CDCD_ERR_DATA,
                          "a change of %.*s at LSN " PG_LSN_FMT " has %zu bytes, over "
                          "max.event.bytes (%" PRId64 "): raise it, and the sink's limits with it",
                          (int)what.len, what.ptr, PG_LSN_ARGS(lsn), size,
                          st->env->max_event_bytes);
}

static enum cdcd_rc on_row(struct pg_stream *st, const struct pg_message *m, struct cdcd_slice raw,
                           pg_lsn lsn, struct cdcd_batch *b, struct cdcd_error *err)
{
    struct pg_tx *tx = &st->tx;
    struct pg_rel *rel = find_rel(st, m->oid);
    if (!rel)
        return pg_stream_misplaced(m, lsn, "is of a relation that was never described", err);
    bool deliver = !tx->skip_all && tx->ord >= tx->skip;
    if (!rel->table->captured || tx->skip_all || (!deliver && !st->env->tx_metadata)) {
        tx->ord++;
        return CDCD_OK;
    }
    struct cdcd_event *e;
    if (!deliver) {
        /* Only a decoded row tells how many records it was. */
        cdcd_batch_reset(st->scratch);
        if (pg_decode_row(rel->table, m, raw, lsn, st->scratch, &e, err) != CDCD_OK)
            return CDCD_ERROR;
        count_records(st, rel, NULL, cdcd_event_key_changed(e) ? 2 : 1);
        tx->ord++;
        return CDCD_OK;
    }
    if (check_size(st, rel->table->label, raw.len, lsn, err) != CDCD_OK)
        return CDCD_ERROR;
    put_begin(st, b);
    struct cdcd_event *last = b->last_event;
    uint32_t n = b->nevents;
    if (pg_decode_row(rel->table, m, raw, lsn, b, &e, err) != CDCD_OK)
        return CDCD_ERROR;
    if (rel->nenums && (pg_rel_new_label(rel, e->after) || pg_rel_new_label(rel, e->before))) {
        bool changed;
        if (pg_rel_rebuild(rel, &st->rel_env, cdcd_now_ms(), &changed, err) != CDCD_OK)
            return CDCD_ERROR;
        if (changed) { /* the same row again, with the new labels */
            pg_stream_undo(b, last, n);
            if (pg_decode_row(rel->table, m, raw, lsn, b, &e, err) != CDCD_OK)
                return CDCD_ERROR;
        }
    }
    finish(st, rel, e, b, lsn);
    tx->ord++;
    return CDCD_OK;
}

static enum cdcd_rc on_truncate(struct pg_stream *st, const struct pg_message *m, pg_lsn lsn,
                                struct cdcd_batch *b, struct cdcd_error *err)
{
    struct pg_tx *tx = &st->tx;
    for (size_t i = 0; i < m->nrelations; i++)
        if (!find_rel(st, pg_message_relation(m, i)))
            return pg_stream_misplaced(m, lsn, "is of a relation that was never described", err);
    for (size_t i = 0; i < m->nrelations; i++) {
        struct pg_rel *rel = find_rel(st, pg_message_relation(m, i));
        bool wanted = rel->table->captured && st->env->want_truncate && !tx->skip_all;
        if (wanted && tx->ord >= tx->skip) {
            put_begin(st, b);
            struct cdcd_event *e = cdcd_batch_event(b, CDCD_OP_TRUNCATE, rel->table->schema);
            finish(st, rel, e, b, lsn);
        } else if (wanted && st->env->tx_metadata) {
            count_records(st, rel, NULL, 1);
        }
        tx->ord++;
    }
    return CDCD_OK;
}

static bool message_wanted(const struct pg_stream *st, struct cdcd_slice prefix)
{
    /* The prefix is a C string within the message: its NUL is there. */
    return st->env->want_message &&
           cdcd_patterns_pass(&st->message_include, &st->message_exclude, prefix.ptr);
}

static struct cdcd_event *put_message(struct pg_stream *st, const struct pg_message *m,
                                      struct cdcd_batch *b)
{
    struct cdcd_event *e = cdcd_batch_event(b, CDCD_OP_MESSAGE, st->db_schema);
    struct cdcd_cell *c = cdcd_batch_cells(b, 2);
    c[0] = cdcd_cell_text(cdcd_arena_dup(&b->arena, m->name.ptr, m->name.len), m->name.len);
    c[1] = cdcd_cell_text(cdcd_arena_dup(&b->arena, m->content.ptr, m->content.len),
                          m->content.len);
    c[1].kind = CDCD_C_BYTES;
    e->after = c;
    return e;
}

static enum cdcd_rc on_message(struct pg_stream *st, const struct pg_message *m, pg_lsn lsn,
                               struct cdcd_batch *b, struct cdcd_error *err)
{
    struct pg_tx *tx = &st->tx;
    bool wanted = message_wanted(st, m->name) && !tx->skip_all;
    if (wanted && tx->ord >= tx->skip) {
        if (check_size(st, cdcd_slice_str("a logical message"), m->content.len, lsn, err) !=
            CDCD_OK)
            return CDCD_ERROR;
        put_begin(st, b);
        finish(st, NULL, put_message(st, m, b), b, lsn);
    } else if (wanted && st->env->tx_metadata) {
        count_records(st, NULL, NULL, 1);
    }
    tx->ord++;
    return CDCD_OK;
}

/* A message outside of any transaction stands in the log between commits and is delivered at
 * once. Its LSN is the end of its record, so `done` moves there: a commit record that follows
 * begins at or after it. The position in the log is the last byte of the record, which no commit
 * shares. Its own time is not in the log: the time when the server sent it stands for it. */
enum cdcd_rc pg_change_lone_message(struct pg_stream *st, const struct pg_message *m, pg_lsn lsn,
                                    int64_t sent_us, struct cdcd_batch *b, struct cdcd_error *err)
{
    static const struct cdcd_slice none = {"", 0};
    if (st->barrier && lsn > st->barrier)
        return CDCD_END;
    if (st->skip_tx && lsn > st->skip_tx)
        return pg_stream_vanished(st, err);
    if (lsn > st->done && message_wanted(st, m->name)) {
        if (check_size(st, cdcd_slice_str("a logical message"), m->content.len, lsn, err) !=
            CDCD_OK)
            return CDCD_ERROR;
        pg_stream_set_last(st, lsn);
        struct cdcd_event *e = put_message(st, m, b);
        set_source(st, e, b, none, none, lsn, false);
        e->ts_us = sent_us;
        e->pos = (struct cdcd_pos){lsn - 1, 1, true};
    }
    pg_stream_advance(st, lsn);
    return CDCD_OK;
}

/* Everything that may stand within a transaction, streamed or not. */
enum cdcd_rc pg_change(struct pg_stream *st, const struct pg_message *m, struct cdcd_slice raw,
                       pg_lsn lsn, struct cdcd_batch *b, struct cdcd_error *err)
{
    switch (m->type) {
    case 'I':
    case 'U':
    case 'D': return on_row(st, m, raw, lsn, b, err);
    case 'T': return on_truncate(st, m, lsn, b, err);
    case 'M': return on_message(st, m, lsn, b, err);
    case 'O':
        cdcd_buf_clear(&st->tx.origin);
        cdcd_buf_add(&st->tx.origin, m->name.ptr, m->name.len);
        st->tx.origin_lsn = m->lsn;
        return CDCD_OK;
    default: /* Y: types are read anew for each Relation message */ return CDCD_OK;
    }
}
