/*
 * snapshot_read.c: the snapshot workers. Each has a connection of its own that joins the exported
 * view, reads ctid ranges with COPY and turns the rows into READ events.
 *
 * A transaction and a lock last for one piece of one physical table only, so that an ALTER TABLE
 * waits for seconds and not for the whole snapshot. What such a statement may do between two
 * pieces is found out under the lock, before a row is read:
 *   - TRUNCATE and a rewriting ALTER TABLE leave nothing that the view could see;
 *   - VACUUM FULL and CLUSTER keep rows visible but move them, so old ctid ranges mean nothing;
 *   - renamed, dropped or replaced columns and tables.
 * Each ends in an error of class RETRY: the next session takes a new view and reads on under it.
 */
#include "snapshot.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

/* Between the last row that a worker gives and its batch being handed on lie microseconds. */
#define TAIL_QUIET_MS 200

struct cdcd_worker {
    struct cdcd_source *s;
    PGconn *conn;
    struct pg_types *types; /* made when first needed */
    struct pg_snap_table *t;
    uint32_t chunk;
    struct pg_cursor begin, end; /* of the chunk */
    size_t leaf;                 /* at work */
    bool copying, finished;
    bool busy;          /* counted in t->busy */
    bool restart;       /* no cursor: an interrupted chunk is read again from its begin */
    bool tail;          /* the last chunk of a table with out-of-line values */
    bool waiting;       /* for the other chunks to end */
    int64_t quiet_ms;   /* since when no other worker reads the table; 0: one does */
    uint64_t tail_xmin; /* 0: nothing to read, this is the view that planned it */
    uint64_t row;       /* of the chunk, from 1 */
    struct cdcd_slice *fields;
    size_t fields_cap;
};

/* ---- COPY text ---- */

static char unescaped(char c)
{
    switch (c) {
    case 'b': return '\b';
    case 'f': return '\f';
    case 'n': return '\n';
    case 'r': return '\r';
    case 't': return '\t';
    case 'v': return '\v';
    default: return c;
    }
}

/* In place; returns the new length. */
static size_t unescape(char *p, size_t len, size_t first)
{
    char *out = p + first, *end = p + len;
    for (const char *in = p + first; in < end; in++) {
        if (*in == '\\' && in + 1 < end)
            *out++ = unescaped(*++in);
        else
            *out++ = *in;
    }
    return (size_t)(out - p);
}

size_t pg_copy_split(char *row, size_t len, struct cdcd_slice *fields, size_t max)
{
    char *end = row + len;
    bool escapes = memchr(row, '\\', len) != NULL;
    for (size_t n = 0;; n++) {
        char *tab = memchr(row, '\t', (size_t)(end - row));
        size_t flen = (size_t)((tab ? tab : end) - row);
        if (n == max)
            return max + 1;
        fields[n] = (struct cdcd_slice){row, flen};
        char *slash = escapes ? memchr(row, '\\', flen) : NULL;
        if (slash) {
            if (slash == row && flen == 2 && row[1] == 'N')
                fields[n] = (struct cdcd_slice){NULL, 0};
            else
                fields[n].len = unescape(row, flen, (size_t)(slash - row));
        }
        row[fields[n].ptr ? fields[n].len : flen] = '\0';
        if (!tab)
            return n + 1;
        row = tab + 1;
    }
}

/* ---- life ---- */

static void set_busy(struct cdcd_worker *w, bool busy)
{
    if (w->t && busy != w->busy)
        atomic_fetch_add(&w->t->busy, busy ? 1 : -1);
    w->busy = busy;
}

enum cdcd_rc pg_worker_open(struct cdcd_source *s, struct cdcd_worker **out, struct cdcd_error *err)
{
    struct cdcd_worker *w = cdcd_xcalloc(1, sizeof *w);
    w->s = s;
    *out = NULL;
    /* TID range scans in order of ctid, whatever a row filter or cost setting suggests: nothing
     * else gives a cursor to go on from. */
    enum cdcd_rc rc = pg_connect(s->cfg, false, &w->conn, err);
    if (rc == CDCD_OK) {
        char *sql = cdcd_xasprintf(
            "SET enable_tidscan = on; SET enable_seqscan = off; SET enable_indexscan = off; "
            "SET enable_indexonlyscan = off; SET enable_bitmapscan = off; "
            "SET max_parallel_workers_per_gather = 0; SET synchronize_seqscans = off; "
            "SET jit = off; SET row_security = off; SET lock_timeout = %" PRId64,
            s->cfg->lock_timeout_ms);
        rc = pg_query(w->conn, NULL, err, sql, 0, NULL);
        free(sql);
    }
    if (rc != CDCD_OK) {
        pg_worker_close(w);
        return rc;
    }
    *out = w;
    return CDCD_OK;
}

/* Ends a COPY that was not read to its end, so that the server stops working for nobody. */
static void abandon(struct cdcd_worker *w)
{
    char text[256];
    PGcancel *k = w->copying ? PQgetCancel(w->conn) : NULL;
    if (k) {
        PQcancel(k, text, sizeof text);
        PQfreeCancel(k);
    }
    w->copying = false;
}

void pg_worker_close(struct cdcd_worker *w)
{
    if (!w)
        return;
    set_busy(w, false);
    abandon(w);
    PQfinish(w->conn);
    pg_types_free(w->types);
    free(w->fields);
    free(w);
}

/* ---- one physical table ---- */

static const struct pg_leaf *at_leaf(const struct cdcd_worker *w)
{
    return &w->t->leaves[w->leaf];
}

/* Moves past leaves of which nothing lies in the chunk. */
static void settle(struct cdcd_worker *w)
{
    w->finished = w->leaf >= w->t->nleaves || w->leaf > w->end.leaf ||
                  (w->leaf == w->end.leaf && w->end.block == 0 && w->end.offset == 0);
}

static enum cdcd_rc moved(const struct pg_leaf *l, struct cdcd_error *err, const char *what)
{
    return cdcd_error_set(
        err, CDCD_ERR_RETRY,
        "\"%s\".\"%s\" %s after the snapshot was taken: what is left of it is read "
        "again under a new view",
        l->schema, l->table, what);
}

static enum cdcd_rc privilege_error(const char *user, const struct pg_leaf *l, const char *text,
                                    struct cdcd_error *err)
{
    if (strstr(text, "row-level security"))
        return cdcd_error_set(
            err, CDCD_ERR_CONFIG,
            "row-level security would hide rows of \"%s\".\"%s\" from user \"%s\", "
            "and the snapshot would lack them. Run ALTER ROLE \"%s\" BYPASSRLS",
            l->schema, l->table, user, user);
    return cdcd_error_set(err, CDCD_ERR_CONFIG,
                          "user \"%s\" may not read \"%s\".\"%s\": %s. Run GRANT USAGE ON SCHEMA "
                          "\"%s\" TO \"%s\"; GRANT SELECT ON \"%s\".\"%s\" TO \"%s\"",
                          user, l->schema, l->table, text, l->schema, user, l->schema, l->table,
                          user);
}

enum cdcd_rc pg_snap_error(const struct pg_config *cfg, PGconn *conn, const PGresult *r,
                           const struct pg_leaf *l, struct cdcd_error *err)
{
    const char *state = pg_sqlstate(r);
    const char *text = r ? PQresultErrorField(r, PG_DIAG_MESSAGE_PRIMARY) : NULL;
    if (strcmp(state, "42P01") == 0 || strcmp(state, "3F000") == 0)
        return moved(l, err, "was dropped or renamed");
    if (strcmp(state, "42703") == 0)
        return moved(l, err, "lost or renamed a column");
    if (strcmp(state, "22023") == 0 || strcmp(state, "42704") == 0)
        return cdcd_error_set(
            err, CDCD_ERR_RETRY,
            "the exported snapshot is gone (%s): the snapshot goes on under a new "
            "view",
            text ? text : "");
    if (strcmp(state, "55P03") == 0)
        return cdcd_error_set(err, CDCD_ERR_RETRY,
                              "\"%s\".\"%s\" stayed locked by somebody else for longer than "
                              "snapshot.lock.timeout.ms (%" PRId64 "); see pg_locks",
                              l->schema, l->table, cfg->lock_timeout_ms);
    if (strcmp(state, "42501") == 0)
        return privilege_error(PQuser(conn) ? PQuser(conn) : "", l, text ? text : "", err);
    return pg_error(conn, r, err, "cannot read \"%s\".\"%s\"", l->schema, l->table);
}

static enum cdcd_rc read_error(const struct cdcd_worker *w, const PGresult *r,
                               struct cdcd_error *err)
{
    return pg_snap_error(w->s->cfg, w->conn, r, at_leaf(w), err);
}

/* Runs several statements in one round trip; keeps the last `n` results. */
static enum cdcd_rc run_many(struct cdcd_worker *w, const char *sql, PGresult **last, size_t n,
                             struct cdcd_error *err)
{
    enum cdcd_rc rc = CDCD_OK;
    PGresult *r;
    memset(last, 0, n * sizeof *last);
    if (!PQsendQuery(w->conn, sql))
        return read_error(w, NULL, err);
    while ((r = PQgetResult(w->conn))) {
        ExecStatusType st = PQresultStatus(r);
        if (rc == CDCD_OK && st != PGRES_COMMAND_OK && st != PGRES_TUPLES_OK)
            rc = read_error(w, r, err);
        PQclear(last[0]);
        memmove(last, last + 1, (n - 1) * sizeof *last);
        last[n - 1] = r;
    }
    if (rc == CDCD_OK && PQstatus(w->conn) != CONNECTION_OK)
        rc = read_error(w, NULL, err);
    return rc;
}

static void clear_all(PGresult **r, size_t n)
{
    for (size_t i = 0; i < n; i++)
        PQclear(r[i]);
}

static enum cdcd_rc end_transaction(struct cdcd_worker *w, struct cdcd_error *err)
{
    if (PQtransactionStatus(w->conn) == PQTRANS_IDLE)
        return CDCD_OK;
    return pg_query(w->conn, NULL, err, "ROLLBACK", 0, NULL);
}

/* Under the lock: is this still what was planned? `file` one row with the file now, `shape` no
 * rows with the columns as they are now. */
static enum cdcd_rc verify_leaf(struct cdcd_worker *w, const PGresult *file, const PGresult *shape,
                                struct cdcd_error *err)
{
    const struct pg_leaf *l = at_leaf(w);
    uint32_t now = (uint32_t)strtoul(PQgetvalue(file, 0, 0), NULL, 10);
    uint32_t planned = l->planned ? l->planned : l->filenode;
    if (!l->foreign && now != planned)
        return moved(l, err, "was rewritten or truncated");
    for (size_t i = 0; i < w->t->ncolumns; i++) {
        const struct pg_snap_column *c = &w->t->columns[i];
        if (PQftable(shape, (int)i) != l->oid)
            return moved(l, err, "was replaced by another table");
        if (PQftype(shape, (int)i) != c->type || PQfmod(shape, (int)i) != c->typmod ||
            (c->attnum && PQftablecol(shape, (int)i) != c->attnum))
            return moved(l, err, "had columns altered");
    }
    return CDCD_OK;
}

/* A file that is newer than the view: only VACUUM FULL and CLUSTER carry visible rows over. */
static enum cdcd_rc verify_visible(struct cdcd_worker *w, struct cdcd_error *err)
{
    const struct pg_leaf *l = at_leaf(w);
    if (l->foreign || l->planned == 0 || l->planned == l->filenode)
        return CDCD_OK;
    PGresult *r = NULL;
    char *sql = pg_sql("SELECT FROM ONLY %I.%I LIMIT 1", l->schema, l->table);
    enum cdcd_rc rc = pg_query(w->conn, &r, err, sql, 0, NULL);
    free(sql);
    if (rc == CDCD_OK && PQntuples(r) == 0)
        rc = moved(l, err, "was rewritten or truncated");
    PQclear(r);
    return rc;
}

/* Joins the view, locks the table, and verifies it: one round trip. */
static enum cdcd_rc enter_leaf(struct cdcd_worker *w, struct cdcd_error *err)
{
    const struct pg_leaf *l = at_leaf(w);
    enum cdcd_rc rc = end_transaction(w, err);
    if (rc != CDCD_OK)
        return rc;
    char *lock = l->foreign
                     ? cdcd_xstrdup("")
                     : pg_sql("LOCK TABLE ONLY %I.%I IN ACCESS SHARE MODE;", l->schema, l->table);
    char *sql = pg_sql("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY; "
                       "SET TRANSACTION SNAPSHOT %L; %s "
                       "SELECT coalesce(pg_relation_filenode(%u), 0); "
                       "SELECT %s FROM ONLY %I.%I LIMIT 0",
                       w->s->snapshot->name, lock, l->oid, w->t->select, l->schema, l->table);
    PGresult *r[2];
    rc = run_many(w, sql, r, 2, err);
    free(sql);
    free(lock);
    if (rc == CDCD_OK)
        rc = verify_leaf(w, r[0], r[1], err);
    clear_all(r, 2);
    if (rc == CDCD_OK)
        rc = verify_visible(w, err);
    return rc;
}

static char *copy_statement(const struct cdcd_worker *w)
{
    const struct pg_leaf *l = at_leaf(w);
    struct cdcd_buf b;
    cdcd_buf_init(&b, 0);
    char *from = pg_sql("FROM ONLY %I.%I", l->schema, l->table);
    bool comma = l->heap && w->t->ncolumns > 0;
    cdcd_buf_addf(&b, "COPY (SELECT %s%s", l->heap ? "ctid" : "", comma ? ", " : "");
    cdcd_buf_adds(&b, w->t->select);
    cdcd_buf_addf(&b, " %s WHERE true", from);
    if (l->heap) {
        const struct pg_cursor start = {w->leaf, 0, 0};
        const struct pg_cursor *lo = w->leaf == w->begin.leaf ? &w->begin : &start;
        cdcd_buf_addf(&b, " AND ctid >= '(%u,%u)'::tid", lo->block, lo->offset);
        if (w->leaf == w->end.leaf)
            cdcd_buf_addf(&b, " AND ctid < '(%u,%u)'::tid", w->end.block, w->end.offset);
    }
    /* The row's 32 bits, widened to what they were when the view's next one is xmax. */
    if (w->tail)
        cdcd_buf_addf(&b,
                      " AND %" PRIu64 " - ((%" PRIu64 " - xmin::text::bigint) & 4294967295) "
                      ">= %" PRIu64,
                      w->s->snapshot->xmax, w->s->snapshot->xmax, w->tail_xmin);
    if (w->t->row_filter[0])
        cdcd_buf_addf(&b, " AND (%s)", w->t->row_filter);
    cdcd_buf_adds(&b, ") TO STDOUT");
    free(from);
    return (char *)cdcd_buf_cstr(&b);
}

static enum cdcd_rc open_leaf(struct cdcd_worker *w, struct cdcd_error *err)
{
    settle(w);
    if (w->finished)
        return CDCD_OK;
    enum cdcd_rc rc = enter_leaf(w, err);
    if (rc != CDCD_OK)
        return rc;
    char *sql = copy_statement(w);
    PGresult *r = PQexec(w->conn, sql);
    if (PQresultStatus(r) == PGRES_COPY_OUT)
        w->copying = true;
    else
        rc = read_error(w, r, err);
    PQclear(r);
    free(sql);
    return rc;
}

static enum cdcd_rc close_leaf(struct cdcd_worker *w, struct cdcd_error *err)
{
    enum cdcd_rc rc = CDCD_OK;
    PGresult *r;
    w->copying = false;
    while ((r = PQgetResult(w->conn))) {
        if (rc == CDCD_OK && PQresultStatus(r) != PGRES_COMMAND_OK)
            rc = read_error(w, r, err);
        PQclear(r);
    }
    if (rc == CDCD_OK)
        rc = end_transaction(w, err);
    if (rc != CDCD_OK)
        return rc;
    w->leaf++;
    return open_leaf(w, err);
}

/* ---- chunks ---- */

static enum cdcd_rc make_shape(struct cdcd_worker *w, struct cdcd_error *err)
{
    struct cdcd_source *s = w->s;
    /* Planned tables have theirs. A table whose chunks an earlier run planned has not. */
    pthread_mutex_lock(&s->snapshot->shape_lock);
    bool made = w->t->select != NULL;
    pthread_mutex_unlock(&s->snapshot->shape_lock);
    if (made)
        return CDCD_OK;
    if (!w->types) {
        w->types = pg_types_new();
        if (pg_types_load(w->types, w->conn, err) != CDCD_OK) {
            pg_types_free(w->types);
            w->types = NULL;
            return CDCD_ERROR;
        }
    }
    return pg_snap_shape(s, w->t, w->conn, w->types, err);
}

/* What the chunk's text says. */
static enum cdcd_rc parse_chunk(struct cdcd_worker *w, const struct cdcd_chunk *chunk,
                                struct cdcd_error *err)
{
    pg_lsn planned = 0;
    const char *begin = chunk->begin;
    w->tail = begin[0] == 'T';
    w->tail_xmin = 0;
    if (w->tail && !pg_tail_parse(begin, &planned, &w->tail_xmin))
        goto bad;
    if (w->tail) {
        begin = "";
        if (planned == w->s->snapshot->lsn)
            w->tail_xmin = 0;
    }
    if (!pg_cursor_parse(w->t, begin, false, &w->begin) ||
        !pg_cursor_parse(w->t, chunk->end, true, &w->end))
        goto bad;
    bool whole = begin[0] == '\0' && chunk->end[0] == '\0';
    bool planned_now = w->t->nleaves > 0 && w->t->leaves[0].planned != 0;
    w->restart = w->tail || (whole && (w->t->toasted || !planned_now));
    return CDCD_OK;
bad:
    return cdcd_error_set(err, CDCD_ERR_FATAL, "chunk from \"%s\" to \"%s\" is not understood",
                          chunk->begin, chunk->end);
}

enum cdcd_rc pg_worker_begin(struct cdcd_worker *w, const struct cdcd_snapshot_table *table,
                             const struct cdcd_chunk *chunk, struct cdcd_error *err)
{
    set_busy(w, false);
    w->t = table->source_data;
    set_busy(w, chunk->begin[0] != 'T');
    w->chunk = chunk->number;
    w->row = 0;
    w->finished = false;
    w->waiting = !w->busy;
    w->quiet_ms = 0;
    if (w->copying) {
        abandon(w);
        PGresult *r;
        while ((r = PQgetResult(w->conn)))
            PQclear(r);
    }
    enum cdcd_rc rc = parse_chunk(w, chunk, err);
    if (rc == CDCD_OK)
        rc = end_transaction(w, err);
    if (rc == CDCD_OK)
        rc = make_shape(w, err);
    if (rc != CDCD_OK)
        return rc;
    if (w->fields_cap < w->t->ncolumns + 1) {
        w->fields_cap = w->t->ncolumns + 1;
        w->fields = cdcd_xrealloc(w->fields, w->fields_cap * sizeof *w->fields);
    }
    w->leaf = w->begin.leaf;
    return w->tail ? CDCD_OK : open_leaf(w, err);
}

/* The last chunk begins when no other is at work. A little longer, too: the other workers' last
 * batches must have been handed over, so that they are durable before this chunk's end is. */
static enum cdcd_rc wait_for_others(struct cdcd_worker *w, struct cdcd_error *err)
{
    const struct timespec nap = {0, 20000000};
    int64_t now = cdcd_now_ms();
    if (atomic_load(&w->t->busy) > 0) {
        w->quiet_ms = 0;
    } else if (w->quiet_ms == 0) {
        w->quiet_ms = now;
    } else if (now - w->quiet_ms >= TAIL_QUIET_MS) {
        w->waiting = false;
        if (w->tail_xmin == 0)
            w->finished = true;
        return w->finished ? CDCD_END : open_leaf(w, err);
    }
    nanosleep(&nap, NULL);
    return CDCD_OK;
}

/* ---- rows ---- */

/* The source block is the same for all rows of a batch. */
static const struct cdcd_cell *source_cells(const struct cdcd_worker *w, struct cdcd_batch *b)
{
    const struct pg_snapshot *v = w->s->snapshot;
    const struct cdcd_schema *schema = w->t->shape->schema;
    struct cdcd_cell *c = cdcd_batch_cells(b, PG_SRC_COUNT);
    memset(c, 0, PG_SRC_COUNT * sizeof *c);
    c[PG_SRC_SCHEMA] = cdcd_cell_text(schema->schema, strlen(schema->schema));
    c[PG_SRC_TABLE] = cdcd_cell_text(schema->table, strlen(schema->table));
    c[PG_SRC_TXID] = cdcd_cell_int(v->txid);
    c[PG_SRC_LSN] = cdcd_cell_int((int64_t)v->lsn);
    return c;
}

static struct cdcd_slice sequence_text(const struct cdcd_worker *w, struct cdcd_batch *b)
{
    char text[48];
    int n = snprintf(text, sizeof text, "[null,\"%" PRIu64 "\"]", w->s->snapshot->lsn);
    return (struct cdcd_slice){cdcd_arena_dup(&b->arena, text, (size_t)n), (size_t)n};
}

static enum cdcd_rc row_error(const struct cdcd_worker *w, const char *row, size_t len,
                              struct cdcd_error *err)
{
    const struct pg_leaf *l = at_leaf(w);
    const char *tab = memchr(row, '\t', len);
    int n = l->heap ? (int)((tab ? tab : row + len) - row) : 0;
    return cdcd_error_context(err, "row %" PRIu64 " of chunk %u of \"%s\".\"%s\"%s%.*s", w->row,
                              w->chunk, l->schema, l->table, n ? ", ctid " : "", n, row);
}

/* Appends the row; *ctid is where it stood. */
static enum cdcd_rc append_row(struct cdcd_worker *w, struct cdcd_batch *b, char *row, size_t len,
                               const struct cdcd_cell *source, struct cdcd_slice sequence,
                               struct cdcd_slice *ctid, struct cdcd_error *err)
{
    const struct pg_snap_table *t = w->t;
    struct cdcd_schema *schema = t->shape->schema;
    size_t lead = at_leaf(w)->heap ? 1 : 0, want = t->ncolumns + lead;
    w->row++;
    /* Without any column COPY sends an empty line. */
    size_t found = want == 0 ? 0 : pg_copy_split(row, len, w->fields, want);
    if (found != want)
        return cdcd_error_set(err, CDCD_ERR_FATAL, "the server sent %zu fields, %zu were asked for",
                              found, want);
    struct cdcd_cell *cells = cdcd_batch_cells(b, schema->ncolumns);
    for (uint32_t i = 0; i < schema->ncolumns; i++)
        cells[i] = (struct cdcd_cell){.kind = CDCD_C_ABSENT};
    for (size_t i = 0; i < t->ncolumns; i++) {
        const struct cdcd_slice *f = &w->fields[i + lead];
        struct cdcd_cell *cell = &cells[t->columns[i].column];
        if (!f->ptr)
            *cell = (struct cdcd_cell){.kind = CDCD_C_NULL};
        else if (pg_cell_parse(&schema->columns[t->columns[i].column], f->ptr, f->len, &b->arena,
                               cell, err) != CDCD_OK)
            return CDCD_ERROR;
    }
    struct cdcd_event *e = cdcd_batch_event(b, CDCD_OP_READ, schema);
    e->after = cells;
    e->source = source;
    e->sequence = sequence;
    e->ts_us = w->s->snapshot->ts_us;
    e->pos = (struct cdcd_pos){w->s->snapshot->lsn, (uint64_t)w->chunk << 40 | w->row, false};
    if (lead)
        *ctid = w->fields[0];
    return CDCD_OK;
}

/* The rows in the batch are read: go on behind the last one. */
static void set_cursor(const struct cdcd_worker *w, struct cdcd_batch *b, struct cdcd_slice ctid,
                       size_t leaf)
{
    struct pg_cursor c = {leaf, 0, 0};
    char text[64];
    if (w->restart || !ctid.ptr || sscanf(ctid.ptr, "(%u,%u)", &c.block, &c.offset) != 2)
        return;
    c.offset++;
    pg_cursor_write(w->t, &c, text);
    b->chunk_cursor.len = strlen(text);
    b->chunk_cursor.ptr = cdcd_arena_dup(&b->arena, text, b->chunk_cursor.len);
}

static enum cdcd_rc take_row(struct cdcd_worker *w, struct cdcd_batch *b, const char *data, int n,
                             const struct cdcd_cell *source, struct cdcd_slice sequence,
                             struct cdcd_slice *ctid, struct cdcd_error *err)
{
    size_t len = (size_t)n;
    if (len > 0 && data[len - 1] == '\n')
        len--;
    if (w->s->env->max_event_bytes > 0 && n > w->s->env->max_event_bytes) {
        w->row++;
        cdcd_error_set(err, CDCD_ERR_DATA,
                       "the row has %d bytes, max_event_bytes allows %" PRId64 ": raise it, or "
                       "exclude the large column",
                       n, w->s->env->max_event_bytes);
        return row_error(w, data, len, err);
    }
    char *row = cdcd_arena_dup(&b->arena, data, len);
    if (append_row(w, b, row, len, source, sequence, ctid, err) != CDCD_OK)
        return row_error(w, data, len, err);
    return CDCD_OK;
}

enum cdcd_rc pg_worker_read(struct cdcd_worker *w, struct cdcd_batch *b, struct cdcd_error *err)
{
    if (w->waiting) {
        enum cdcd_rc waited = wait_for_others(w, err);
        if (waited != CDCD_OK || w->waiting)
            return waited;
    }
    if (w->finished) {
        set_busy(w, false);
        return CDCD_END;
    }
    const struct cdcd_cell *source = source_cells(w, b);
    struct cdcd_slice sequence = sequence_text(w, b), ctid = {NULL, 0};
    size_t ctid_leaf = w->leaf;
    enum cdcd_rc rc = CDCD_OK;
    while (rc == CDCD_OK && !w->finished && !cdcd_batch_full(b)) {
        char *data = NULL;
        int n = PQgetCopyData(w->conn, &data, 0);
        if (n > 0) {
            ctid_leaf = w->leaf;
            rc = take_row(w, b, data, n, source, sequence, &ctid, err);
        } else if (n == -1) {
            rc = close_leaf(w, err);
        } else {
            w->copying = false;
            rc = read_error(w, NULL, err);
        }
        PQfreemem(data);
    }
    set_cursor(w, b, ctid, ctid_leaf);
    if (rc == CDCD_ERROR || w->finished)
        set_busy(w, false);
    return rc == CDCD_OK && w->finished ? CDCD_END : rc;
}
