/*
 * change.c: one row -> its event, with ordinal, source block and transaction metadata; or nothing,
 * when it is no change or was delivered before. TRUNCATE and schema changes too. See stream_int.h.
 *
 * The source block of a row differs from its neighbour's only in `row`: the strings of all rows of
 * one batch are made once.
 */
#include "stream_int.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

static const struct cdcd_cell null_cell = {.kind = CDCD_C_NULL};

static struct cdcd_slice dup_slice(struct cdcd_batch *b, const char *p, size_t n)
{
    return (struct cdcd_slice){cdcd_arena_dup(&b->arena, p, n), n};
}

/* ---- what all events have ---- */

static struct my_source_cells *cells_of(struct my_stream *st, struct cdcd_batch *b)
{
    struct my_source_cells *c = &st->cells;
    const struct my_tx *tx = &st->tx;
    if (c->read == st->reads)
        return c;
    *c = (struct my_source_cells){.read = st->reads};
    c->id = dup_slice(b, tx->id, tx->id_len);
    if (tx->gtid_text.ptr)
        c->gtid = c->id;
    c->file = dup_slice(b, st->file, strlen(st->file));
    return c;
}

static struct cdcd_cell text_or_null(struct cdcd_slice s)
{
    return s.ptr ? cdcd_cell_text(s.ptr, s.len) : null_cell;
}

static struct cdcd_cell *set_source(struct my_stream *st, struct cdcd_event *e,
                                    struct cdcd_slice table, int64_t row, struct cdcd_batch *b)
{
    const struct my_tx *tx = &st->tx;
    const struct my_source_cells *s = cells_of(st, b);
    struct cdcd_cell *c = cdcd_batch_cells(b, MY_SRC_COUNT);
    c[MY_SRC_TABLE] = text_or_null(table);
    c[MY_SRC_SERVER_ID] = cdcd_cell_int(st->rows_server);
    c[MY_SRC_GTID] = text_or_null(s->gtid);
    c[MY_SRC_FILE] = cdcd_cell_text(s->file.ptr, s->file.len);
    c[MY_SRC_POS] = cdcd_cell_int((int64_t)st->rows_at);
    c[MY_SRC_ROW] = cdcd_cell_int(row);
    c[MY_SRC_THREAD] = tx->has_thread ? cdcd_cell_int(tx->thread) : null_cell;
    c[MY_SRC_QUERY] = null_cell;
    e->source = c;
    return c;
}

/* ---- transaction metadata ---- */

static size_t tx_table_index(struct my_stream *st, const char *label)
{
    for (size_t i = 0; i < st->ntx_tables; i++)
        if (strcmp(st->tx_tables[i].label, label) == 0)
            return i;
    if (st->ntx_tables == st->tx_tables_cap) {
        st->tx_tables_cap = st->tx_tables_cap ? 2 * st->tx_tables_cap : 8;
        st->tx_tables = cdcd_xrealloc(st->tx_tables, st->tx_tables_cap * sizeof *st->tx_tables);
    }
    st->tx_tables[st->ntx_tables] = (struct my_tx_table){.label = cdcd_xstrdup(label)};
    return st->ntx_tables++;
}

/* Counts an event's records; e NULL: it was delivered before. */
static void count_records(struct my_stream *st, size_t table, struct cdcd_event *e,
                          unsigned records)
{
    struct my_tx *tx = &st->tx;
    if (e) {
        e->total_order = tx->total + 1;
        e->data_collection_order = st->tx_tables[table].count + 1;
    }
    tx->total += records;
    st->tx_tables[table].count += records;
    tx->begun = true;
}

static size_t entry_index(struct my_stream *st, struct my_entry *t)
{
    if (t->tx_seq != st->tx.seq) {
        t->tx_seq = st->tx.seq;
        t->tx_index = tx_table_index(st, t->shape->label);
    }
    return t->tx_index;
}

static bool has_blocks(const struct my_stream *st)
{
    return st->e.env->tx_metadata && st->tx.blocks;
}

static void put_boundary(struct my_stream *st, struct cdcd_batch *b, enum cdcd_op op, int64_t ts_us,
                         uint64_t ordinal)
{
    static const struct cdcd_slice none = {NULL, 0};
    struct cdcd_event *e = cdcd_batch_event(b, op, NULL);
    set_source(st, e, none, 0, b);
    e->tx_id = st->cells.id;
    e->ts_us = ts_us;
    e->in_tx = true;
    e->pos = (struct cdcd_pos){st->tx.seq, ordinal, true};
}

/* A transaction of which nothing is captured leaves no trace: BEGIN comes with the first event. */
static void put_begin(struct my_stream *st, struct cdcd_batch *b)
{
    if (has_blocks(st) && !st->tx.begun)
        put_boundary(st, b, CDCD_OP_TX_BEGIN, st->tx.begin_us, 0);
}

void my_change_end(struct my_stream *st, struct cdcd_batch *b)
{
    if (!has_blocks(st))
        return;
    put_boundary(st, b, CDCD_OP_TX_END, st->tx.end_us, st->tx.ord + 1);
    struct cdcd_event *e = b->last_event;
    struct cdcd_tx_collection *c = cdcd_arena_alloc(&b->arena, (st->ntx_tables + 1) * sizeof *c);
    for (size_t i = 0; i < st->ntx_tables; i++) {
        const struct my_tx_table *t = &st->tx_tables[i];
        c[i].name = dup_slice(b, t->label, strlen(t->label));
        c[i].count = t->count;
    }
    e->total_order = st->tx.total;
    e->collections = c;
    e->ncollections = (uint32_t)st->ntx_tables;
}

/* Of an event of the group: everything but what was changed. */
static void finish(struct my_stream *st, struct cdcd_event *e)
{
    struct my_tx *tx = &st->tx;
    e->ts_us = st->rows_us;
    e->in_tx = true;
    e->pos = (struct cdcd_pos){tx->seq, ++tx->ord, true};
}

/* ---- row images ---- */

static bool has_all(const uint8_t *present, uint32_t n)
{
    for (uint32_t i = 0; i < n / 8; i++)
        if (present[i] != 0xff)
            return false;
    return n % 8 == 0 || (present[n / 8] & ((1u << n % 8) - 1)) == (1u << n % 8) - 1;
}

/* Names of captured columns that an image lacks, cut after some. False: none. */
static bool missing(const struct my_shape *s, const uint8_t *present, char *out, size_t cap)
{
    size_t n = 0, more = 0;
    out[0] = 0;
    for (uint32_t i = 0; i < s->ncolumns; i++) {
        if (s->columns[i].column < 0 || present[i / 8] >> i % 8 & 1)
            continue;
        const char *name = s->columns[i].name ? s->columns[i].name : "?";
        if (n + strlen(name) + 24 < cap)
            n += (size_t)snprintf(out + n, cap - n, "%s%s", n ? ", " : "", name);
        else
            more++;
    }
    if (more)
        snprintf(out + n, cap - n, " and %zu more", more);
    return n > 0;
}

static enum cdcd_rc partial(struct my_stream *st, const char *columns, struct cdcd_error *err)
{
    char where[256];
    return cdcd_error_set(
        err, CDCD_ERR_LOSS,
        "the row event at %s lacks columns of table %s: %s. Nothing of it was used and the "
        "position "
        "has not moved. binlog_row_image must be FULL in all sessions; for what is already logged, "
        "set row.image.handling.mode: placeholder (unknown values are then written as "
        "unavailable.value.placeholder), or start a new snapshot",
        my_stream_where(st, where), st->rows_entry->shape->label, columns);
}

enum cdcd_rc my_change_begin(struct my_stream *st, struct cdcd_error *err)
{
    const struct my_shape *s = st->rows_entry->shape;
    const struct my_rows *r = &st->rows_event.rows;
    bool update = r->op == MY_ROWS_UPDATE || r->op == MY_ROWS_PARTIAL_UPDATE;
    char columns[512];
    if (r->ncolumns != s->ncolumns) {
        char where[256];
        return cdcd_error_set(err, CDCD_ERR_FATAL,
                              "the row event at %s has %" PRIu32 " columns and the map of table %s "
                              "has %" PRIu32 "; nothing of it was used and the position has not "
                              "moved",
                              my_stream_where(st, where), r->ncolumns, s->label, s->ncolumns);
    }
    st->partial_image = false;
    for (int i = 0; i <= (int)update; i++) {
        if (has_all(r->present[i], r->ncolumns) ||
            !missing(s, r->present[i], columns, sizeof columns))
            continue;
        if (st->e.cfg->row_image_mode != MY_IMAGE_PLACEHOLDER)
            return partial(st, columns, err);
        st->partial_image = true;
    }
    my_rows_begin(s, r, &st->reader);
    st->row = 0;
    st->in_rows = true;
    return CDCD_OK;
}

/* What the after image lacks did not change, so the before image tells it; what neither has is
 * unknown. The key must be there: a record without it cannot be written. */
static enum cdcd_rc complete(struct my_stream *st, struct cdcd_cell *before,
                             struct cdcd_cell *after, struct cdcd_error *err)
{
    const struct cdcd_schema *s = st->rows_entry->shape->schema;
    for (uint32_t i = 0; i < s->ncolumns; i++) {
        if (after && after[i].kind == CDCD_C_ABSENT) {
            if (before && cdcd_cell_present(&before[i]))
                after[i] = before[i];
            else
                after[i] = (struct cdcd_cell){.kind = CDCD_C_UNCHANGED};
        }
        if (before && before[i].kind == CDCD_C_ABSENT)
            before[i] = (struct cdcd_cell){.kind = CDCD_C_UNCHANGED};
    }
    const struct cdcd_cell *row = after ? after : before;
    for (uint32_t i = 0; i < s->nkeys; i++)
        if (!cdcd_cell_present(&row[s->keys[i]]))
            return partial(st, s->columns[s->keys[i]].name, err);
    return CDCD_OK;
}

/* ---- rows ---- */

static enum cdcd_rc check_size(struct my_stream *st, size_t size, struct cdcd_error *err)
{
    char where[256];
    if (st->e.env->max_event_bytes <= 0 || size <= (uint64_t)st->e.env->max_event_bytes)
        return CDCD_OK;
    return cdcd_error_set(err, CDCD_ERR_DATA,
                          "a change of %s at %s has %zu bytes, over max.event.bytes (%" PRId64
                          "): raise it, and the sink's limits with it",
                          st->rows_entry->shape->label, my_stream_where(st, where), size,
                          st->e.env->max_event_bytes);
}

static void put_query(struct my_stream *st, struct cdcd_cell *cells, struct cdcd_batch *b)
{
    struct my_source_cells *s = &st->cells;
    if (!st->query.len)
        return;
    if (!s->query_made) {
        s->query = dup_slice(b, st->query.ptr, st->query.len);
        s->query_made = true;
    }
    cells[MY_SRC_QUERY] = cdcd_cell_text(s->query.ptr, s->query.len);
}

struct row {
    enum cdcd_op op;
    struct cdcd_cell *before, *after;
};

static void put_row(struct my_stream *st, const struct row *r, struct cdcd_batch *b)
{
    struct my_entry *t = st->rows_entry;
    struct cdcd_schema *schema = t->shape->schema;
    struct my_tx *tx = &st->tx;
    put_begin(st, b);
    struct cdcd_event *e = cdcd_batch_event(b, r->op, schema);
    e->before = r->before;
    e->after = r->after;
    struct cdcd_slice name = {schema->table, strlen(schema->table)};
    put_query(st, set_source(st, e, name, tx->is_xa ? (int64_t)tx->row : st->row, b), b);
    finish(st, e);
    if (has_blocks(st)) {
        e->tx_id = st->cells.id;
        count_records(st, entry_index(st, t), e, cdcd_event_key_changed(e) ? 2 : 1);
    }
}

/* A row that was delivered before a resume still counts in the transaction's metadata. */
static void skip_row(struct my_stream *st, const struct row *r)
{
    struct my_entry *t = st->rows_entry;
    st->tx.ord++;
    if (!has_blocks(st))
        return;
    struct cdcd_event e = {
        .op = (uint8_t)r->op, .schema = t->shape->schema, .before = r->before, .after = r->after};
    count_records(st, entry_index(st, t), NULL, cdcd_event_key_changed(&e) ? 2 : 1);
}

static enum cdcd_op op_of(const struct my_rows *r)
{
    return r->op == MY_ROWS_WRITE    ? CDCD_OP_CREATE
           : r->op == MY_ROWS_DELETE ? CDCD_OP_DELETE
                                     : CDCD_OP_UPDATE;
}

enum cdcd_rc my_change_next(struct my_stream *st, struct cdcd_batch *b, struct cdcd_error *err)
{
    struct my_tx *tx = &st->tx;
    const struct my_shape *s = st->rows_entry->shape;
    bool skip = tx->ord < tx->skip;
    enum my_versioned version = MY_V_AS_LOGGED;
    struct row r = {.op = op_of(&st->rows_event.rows)};
    if (st->reader.p == st->reader.end)
        return CDCD_END;
    const uint8_t *begin = st->reader.p;
    char where[256];
    if (skip)
        cdcd_arena_reset(&st->scratch, 64 << 10);
    if (s->versioned && s->row_end >= 0 && my_version_of(st, &st->reader, &version, err) != CDCD_OK)
        return cdcd_error_context(err, "%s", my_stream_where(st, where));
    enum cdcd_rc rc = my_rows_next(&st->reader, skip ? &st->scratch : &b->arena, &r.before,
                                   &r.after, err);
    if (rc != CDCD_OK)
        return rc == CDCD_END ? rc : cdcd_error_context(err, "%s", my_stream_where(st, where));
    if (version != MY_V_NOTHING) {
        if (version == MY_V_DELETE) {
            r.op = CDCD_OP_DELETE;
            r.after = NULL;
        }
        if (st->partial_image && complete(st, r.before, r.after, err) != CDCD_OK)
            return CDCD_ERROR;
        if (check_size(st, (size_t)(st->reader.p - begin), err) != CDCD_OK)
            return CDCD_ERROR;
        if (skip)
            skip_row(st, &r);
        else
            put_row(st, &r, b);
    }
    st->row++;
    tx->row++;
    return CDCD_OK;
}

/* ---- statements ---- */

/* The schema of a table of which only the name matters: its model's, or one without columns. */
static enum cdcd_rc truncate_schema(struct my_stream *st, const char *db, const char *table,
                                    struct cdcd_schema **out, struct cdcd_error *err)
{
    const struct my_table *model = my_shapes_find(st->e.shapes, db, table);
    struct my_shape *shape = NULL;
    if (model && !model->unsure) {
        if (my_shape_of_table(model, st->e.server, st->e.filter, &shape, err) != CDCD_OK)
            return CDCD_ERROR;
        *out = shape->schema ? cdcd_schema_ref(shape->schema) : NULL;
        my_shape_free(shape);
        if (*out)
            return CDCD_OK;
    }
    *out = cdcd_schema_new(db, "", table, 0);
    cdcd_schema_finish(*out);
    return CDCD_OK;
}

enum cdcd_rc my_change_truncate(struct my_stream *st, const struct my_event *ev, const char *db,
                                const char *table, struct cdcd_batch *b, struct cdcd_error *err)
{
    struct my_tx *tx = &st->tx;
    (void)ev;
    if (!table || !table[0] || !my_filter_table(st->e.filter, db, table))
        return CDCD_OK;
    char *label = cdcd_xasprintf("%s.%s", db, table);
    enum cdcd_rc rc = CDCD_OK;
    if (tx->ord < tx->skip || !st->e.env->want_truncate) {
        if (has_blocks(st) && st->e.env->want_truncate)
            count_records(st, tx_table_index(st, label), NULL, 1);
        tx->ord++;
        goto out;
    }
    struct cdcd_schema *schema;
    rc = truncate_schema(st, db, table, &schema, err);
    if (rc != CDCD_OK)
        goto out;
    put_begin(st, b);
    struct cdcd_event *e = cdcd_batch_event(b, CDCD_OP_TRUNCATE, schema);
    cdcd_schema_unref(schema); /* the batch has its own */
    set_source(st, e, (struct cdcd_slice){schema->table, strlen(schema->table)}, 0, b);
    finish(st, e);
    if (has_blocks(st)) {
        e->tx_id = st->cells.id;
        count_records(st, tx_table_index(st, label), e, 1);
    }
out:
    free(label);
    return rc;
}

enum cdcd_rc my_change_ddl(struct my_stream *st, const struct my_event *ev, struct cdcd_batch *b,
                           struct cdcd_error *err)
{
    struct my_tx *tx = &st->tx;
    struct cdcd_ddl *ddl = NULL;
    size_t n = 0;
    enum cdcd_rc rc = my_shapes_apply(st->e.shapes, ev, &b->arena, &ddl, &n, err);
    if (rc != CDCD_OK)
        return rc;
    my_entries_clear(&st->entries);
    st->notes_due = true;
    for (size_t i = 0; i < n; i++) {
        if (tx->ord < tx->skip || !st->e.env->want_ddl) {
            tx->ord++;
            continue;
        }
        struct cdcd_event *e = cdcd_batch_event(b, CDCD_OP_DDL, NULL);
        ddl[i].text = dup_slice(b, ddl[i].text.ptr, ddl[i].text.len); /* it may be the event's */
        e->ddl = &ddl[i];
        set_source(st, e, ddl[i].table, 0, b);
        finish(st, e);
    }
    return CDCD_OK;
}
