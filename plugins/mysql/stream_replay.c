/*
 * stream_replay.c: a group whose end is known, into batches. See stream_int.h.
 *
 * A batch may end between any two rows, never between a schema change and the end of its group: a
 * resume would change the shapes twice. (CREATE TABLE ... SELECT is the one group that goes on
 * after one, and making a table twice makes the same table.)
 */
#include "stream_int.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

/* Rows or events of one call: some milliseconds, so that the caller sees its deadline. */
#define REPLAY_STEP 4096

/* ---- begin and end ---- */

static void name_tx(struct my_stream *st)
{
    struct my_tx *tx = &st->tx;
    if (tx->has_gtid) {
        struct cdcd_buf b;
        cdcd_buf_init(&b, 0);
        my_gtid_write(&tx->gtid, &b);
        tx->id_len = b.len < sizeof tx->id ? b.len : sizeof tx->id - 1;
        memcpy(tx->id, b.ptr, tx->id_len);
        cdcd_buf_free(&b);
        tx->gtid_text = (struct cdcd_slice){tx->id, tx->id_len};
    } else {
        int n = snprintf(tx->id, sizeof tx->id, "file=%s,pos=%" PRIu64, st->file, tx->start);
        tx->id_len = (size_t)n < sizeof tx->id ? (size_t)n : sizeof tx->id - 1;
    }
}

/* The transaction that is half delivered must be the next one. */
static enum cdcd_rc check_skip(struct my_stream *st, struct cdcd_slice id, struct cdcd_error *err)
{
    const char *want = st->from.tx;
    if (!st->skip_ord || !want[0] || !id.ptr || cdcd_slice_eq(id, cdcd_slice_str(want)))
        return CDCD_OK;
    char what[192];
    snprintf(what, sizeof what, "sends %.*s in its place", (int)id.len, id.ptr);
    return my_stream_vanished(st, what, err);
}

enum cdcd_rc my_replay_start(struct my_stream *st, struct my_group *events, struct my_held *held,
                             struct cdcd_error *err)
{
    const struct my_open *o = &st->open;
    struct my_tx *tx = &st->tx;
    for (size_t i = 0; i < st->ntx_tables; i++)
        free(st->tx_tables[i].label);
    st->ntx_tables = 0;
    *tx = (struct my_tx){
        .open = true,
        .blocks = st->e.server->flavor == MY_MARIADB || o->begun || held,
        .has_gtid = o->has_gtid,
        .has_thread = o->has_thread,
        .is_xa = held != NULL,
        .gtid = o->gtid,
        .start = o->start,
        .thread = o->thread,
        .server_id = o->server_id,
        .ts_us = o->ts_us ? o->ts_us
                 : held   ? o->gtid_us
                          : 0,
        .begin_us = o->ts_us ? o->ts_us : o->gtid_us,
        .end_us = o->ts_us ? o->ts_us : o->gtid_us,
        .seq = st->seq + 1,
        .skip = st->skip_ord,
        .held = held,
    };
    name_tx(st);
    st->cells.read = 0;
    cdcd_buf_clear(&st->query);
    if (check_skip(st, tx->gtid_text, err) != CDCD_OK) {
        tx->open = false;
        return CDCD_ERROR;
    }
    st->replay = events;
    st->last_ts_us = tx->begin_us;
    return my_group_rewind(events, err);
}

/* Its place in the log is counted, in the sets and as seq. */
static void close_group(struct my_stream *st)
{
    st->seq++;
    st->skip_ord = 0;
    st->last_ts_us = st->open.ts_us ? st->open.ts_us : st->open.gtid_us;
    my_stream_finish_group(st, false);
}

enum cdcd_rc my_replay_nothing(struct my_stream *st, struct cdcd_error *err)
{
    if (st->skip_ord)
        return my_stream_vanished(st, "sends a transaction without such changes now", err);
    close_group(st);
    return CDCD_OK;
}

static enum cdcd_rc finish(struct my_stream *st, struct cdcd_batch *b, struct cdcd_error *err)
{
    struct my_tx *tx = &st->tx;
    if (tx->ord < tx->skip)
        return my_stream_vanished(st, "sends it with fewer changes now", err);
    if (tx->begun && st->e.env->tx_metadata)
        my_change_end(st, b);
    if (tx->held) {
        if (tx->held->has_gtid && st->gtids)
            my_gtid_set_add(st->safe, &tx->held->gtid);
        my_xa_drop(st, tx->held);
    }
    st->replay = NULL;
    tx->open = false;
    st->rows_at = 0;
    close_group(st);
    return CDCD_OK;
}

/* ---- statements ---- */

/* A statement whose tables are not all told may change any of the databases that it names. */
static bool changes_captured(const struct my_stream *st, const struct my_event *e,
                             const struct my_statement_info *info)
{
    if (info->table && info->table[0])
        return my_filter_table(st->e.filter, info->db, info->table);
    if (!e->query.db.len || info->ndatabases > MY_STATEMENT_DATABASES)
        return true;
    for (unsigned i = 0; i < info->ndatabases; i++) {
        if (my_filter_database(st->e.filter, info->databases[i]))
            return true;
    }
    char *db = cdcd_xstrndup(e->query.db.ptr, e->query.db.len);
    bool passes = my_filter_database(st->e.filter, db);
    free(db);
    return passes;
}

static enum cdcd_rc on_dml(struct my_stream *st, const struct my_event *e,
                           const struct my_statement_info *info, struct cdcd_error *err)
{
    char where[256];
    if (!changes_captured(st, e, info))
        return CDCD_OK;
    bool told = info->table && info->table[0];
    int cut = e->query.text.len > 200 ? 200 : (int)e->query.text.len;
    const char *more = e->query.text.len > 200 ? "..." : "";
    if (st->e.cfg->statement_mode == MY_STATEMENT_FAIL)
        return cdcd_error_set(
            err, CDCD_ERR_LOSS,
            "the statement \"%.*s%s\" at %s changes %s%s%s, but the server logged only its text "
            "(binlog_format STATEMENT or MIXED), so the changed rows are unknown. Set "
            "binlog_format=ROW in all sessions and take a new snapshot, or set "
            "statement.handling.mode: "
            "warn to go on without this change",
            cut, e->query.text.ptr, more, my_stream_where(st, where),
            told ? info->db : "a table that it does not tell", told ? "." : "",
            told ? info->table : "");
    st->statements++;
    cdcd_warn(
        "mysql",
        "statement.handling.mode is warn: the statement \"%.*s%s\" at %s was logged as text, its "
        "changes are not captured (%" PRIu64 " such statements so far)",
        cut, e->query.text.ptr, more, my_stream_where(st, where), st->statements);
    return CDCD_OK;
}

static enum cdcd_rc on_statement(struct my_stream *st, const struct my_event *e,
                                 struct cdcd_batch *b, struct cdcd_error *err)
{
    struct my_statement_info info;
    cdcd_arena_reset(&st->scratch, 64 << 10);
    my_statement_of(e, st->e.server->flavor, st->e.server->version, &st->scratch, &info);
    switch (info.kind) {
    case MY_ST_TRUNCATE: return my_change_truncate(st, e, info.db, info.table, b, err);
    case MY_ST_DDL: return my_change_ddl(st, e, b, err);
    case MY_ST_DML: return on_dml(st, e, &info, err);
    default: return CDCD_OK;
    }
}

/* ---- events ---- */

static enum cdcd_rc on_map(struct my_stream *st, const struct my_event *e, struct cdcd_error *err)
{
    struct my_entry *t = my_entries_put(st, e->map);
    return t->captured && !t->shape ? my_entry_shape(st, t, e->map, err) : CDCD_OK;
}

static enum cdcd_rc on_rows(struct my_stream *st, const struct my_event *e, struct cdcd_error *err)
{
    struct my_entry *t = my_entries_get(&st->entries, e->rows.table_id);
    if (!t || !t->captured)
        return CDCD_OK;
    if (!t->shape)
        return my_entry_unknown(st, t, err);
    if (!t->shape->captured)
        return CDCD_OK;
    st->rows_entry = t;
    st->rows_event = *e;
    return my_change_begin(st, err);
}

static enum cdcd_rc next_event(struct my_stream *st, struct cdcd_batch *b, struct cdcd_error *err)
{
    struct cdcd_slice raw;
    struct my_event e;
    uint64_t place;
    enum cdcd_rc rc = my_group_next(st->replay, &raw, &place, err);
    if (rc == CDCD_END)
        return finish(st, b, err) == CDCD_OK ? CDCD_END : CDCD_ERROR;
    if (rc == CDCD_OK)
        rc = my_decode(st->decoder, raw, true, &e, err);
    if (rc != CDCD_OK)
        return rc;
    st->rows_at = st->tx.is_xa ? st->tx.start : place;
    st->rows_us = st->tx.ts_us ? st->tx.ts_us : (int64_t)e.timestamp * 1000000;
    st->rows_server = st->tx.is_xa ? st->tx.server_id : e.server_id;
    st->tx.end_us = st->rows_us;
    switch (e.kind) {
    case MY_EV_TABLE_MAP: return on_map(st, &e, err);
    case MY_EV_ROWS: return on_rows(st, &e, err);
    case MY_EV_QUERY: return on_statement(st, &e, b, err);
    case MY_EV_ROWS_QUERY:
        cdcd_buf_clear(&st->query);
        cdcd_buf_add(&st->query, e.text.ptr, e.text.len);
        st->cells.query_made = false;
        return CDCD_OK;
    default: return CDCD_OK;
    }
}

enum cdcd_rc my_stream_replay(struct my_stream *st, struct cdcd_batch *b, struct cdcd_error *err)
{
    enum cdcd_rc rc = CDCD_OK;
    for (int i = 0; i < REPLAY_STEP && rc == CDCD_OK; i++) {
        if (!st->in_rows) {
            rc = next_event(st, b, err);
            continue;
        }
        if (cdcd_batch_full(b))
            return CDCD_OK;
        rc = my_change_next(st, b, err);
        if (rc == CDCD_END) {
            st->in_rows = false;
            rc = CDCD_OK;
        }
    }
    return rc == CDCD_END ? CDCD_OK : rc;
}
