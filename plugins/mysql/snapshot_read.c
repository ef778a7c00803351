/*
 * snapshot_read.c: the snapshot workers. A worker takes a connection that stands in the view for
 * one chunk, reads the chunk's range of keys in order of the key, and turns the rows into READ
 * events. Results are not buffered: a slow sink makes the server wait.
 *
 * Opening the table locks its metadata until the chunk ends, and under that lock the table is
 * compared with what the view was taken of (snapshot_table.c) before a row is read.
 */
#include "shim.h"
#include "snapshot_int.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>

struct cdcd_worker {
    struct cdcd_source *s;
    MYSQL *conn; /* a view of the snapshot's, while a chunk is read; else NULL */
    size_t slot;
    struct my_snap_table *t;
    uint32_t chunk;
    uint64_t row; /* of the chunk, from 1 */
    uint64_t seq;
    MYSQL_RES *result;
    bool finished;
    struct cdcd_slice *key; /* room for the values of t's */
    struct cdcd_buf cursor; /* behind the last row; empty without a key */
};

/* ---- views ---- */

static enum cdcd_rc acquire(struct cdcd_worker *w, struct cdcd_error *err)
{
    struct my_snapshot *v = w->s->snapshot;
    pthread_mutex_lock(&v->lock);
    while (!w->conn && !v->broken) {
        for (w->slot = 0; w->slot < v->nviews && v->busy[w->slot];)
            w->slot++;
        if (w->slot == v->nviews) {
            pthread_cond_wait(&v->freed, &v->lock);
            continue;
        }
        v->busy[w->slot] = true;
        w->conn = v->views[w->slot];
    }
    pthread_mutex_unlock(&v->lock);
    if (w->conn)
        return CDCD_OK;
    return cdcd_error_set(err, CDCD_ERR_RETRY, "another worker lost its view");
}

/* A connection whose result was not read to its end cannot be used any more. */
static void release(struct cdcd_worker *w, bool broken)
{
    struct my_snapshot *v = w->s->snapshot;
    if (!w->conn)
        return;
    pthread_mutex_lock(&v->lock);
    v->busy[w->slot] = broken;
    v->broken = v->broken || broken;
    pthread_cond_broadcast(&v->freed);
    pthread_mutex_unlock(&v->lock);
    w->conn = NULL;
}

enum cdcd_rc my_worker_open(struct cdcd_source *s, struct cdcd_worker **out, struct cdcd_error *err)
{
    (void)err;
    *out = cdcd_xcalloc(1, sizeof **out);
    (*out)->s = s;
    cdcd_buf_init(&(*out)->cursor, 0);
    mysql_thread_init();
    return CDCD_OK;
}

/* Freeing an unbuffered result would read what is left of it, which may be the whole table: the
 * connection is cut first. */
static void abandon(struct cdcd_worker *w)
{
    if (!w->result)
        return;
    if (!w->finished)
        shutdown(my_shim_socket(w->conn), SHUT_RDWR);
    mysql_free_result(w->result);
    w->result = NULL;
}

void my_worker_close(struct cdcd_worker *w)
{
    if (!w)
        return;
    bool broken = w->conn != NULL;
    abandon(w);
    release(w, broken);
    cdcd_buf_free(&w->cursor);
    free(w->key);
    free(w);
    mysql_thread_end();
}

/* ---- chunks ---- */

/* Opens the table, which locks its definition, and compares it with that of the view. */
static enum cdcd_rc verify_table(struct cdcd_worker *w, struct cdcd_error *err)
{
    struct my_snapshot *v = w->s->snapshot;
    const struct my_snap_table *t = w->t;
    struct my_stamps now = {0};
    bool moved = false;
    MYSQL_RES *r = NULL;
    if (my_queryf(w->conn, &r, err, "SELECT 1 FROM %I.%I LIMIT 0", t->model->db, t->model->name) !=
        CDCD_OK)
        return my_snap_error(w->s, w->conn, t, err);
    mysql_free_result(r);
    pthread_mutex_lock(&v->catalog_lock);
    enum cdcd_rc rc = my_stamps_read(v->catalog, w->s->filter, t->model->db, t->model->name, &now,
                                     &moved, err);
    if (rc != CDCD_OK)
        rc = my_snap_error(w->s, v->catalog, t, err);
    pthread_mutex_unlock(&v->catalog_lock);
    if (rc == CDCD_OK && (now.n != 1 || now.items[0].fingerprint != t->stamp.fingerprint))
        rc = my_snap_moved(t, err, "was altered, or another table took its name,");
    my_stamps_free(&now);
    return rc;
}

static enum cdcd_rc send_select(struct cdcd_worker *w, const struct cdcd_chunk *chunk,
                                struct cdcd_error *err)
{
    const struct my_snap_table *t = w->t;
    struct cdcd_buf b;
    cdcd_buf_init(&b, 0);
    char *from = my_sql(" FROM %I.%I", t->model->db, t->model->name);
    cdcd_buf_addf(&b, "SELECT %s%s", t->select, from);
    free(from);
    enum cdcd_rc rc = CDCD_OK;
    my_key_force(&t->key, &b);
    if (!my_range_where(&t->key, chunk->begin, chunk->end, &b))
        rc = cdcd_error_set(err, CDCD_ERR_FATAL, "chunk from \"%s\" to \"%s\" is not understood",
                            chunk->begin, chunk->end);
    my_key_order(&t->key, &b);
    if (rc == CDCD_OK && mysql_real_query(w->conn, b.ptr, (unsigned long)b.len) != 0)
        rc = my_snap_error(w->s, w->conn, t, err);
    cdcd_buf_free(&b);
    if (rc == CDCD_OK && !(w->result = mysql_use_result(w->conn)))
        rc = my_snap_error(w->s, w->conn, t, err);
    if (rc == CDCD_OK && mysql_num_fields(w->result) != t->nselect)
        rc = cdcd_error_set(err, CDCD_ERR_FATAL, "the server sent %u fields, %zu were asked for",
                            mysql_num_fields(w->result), t->nselect);
    return rc;
}

enum cdcd_rc my_worker_begin(struct cdcd_worker *w, const struct cdcd_snapshot_table *table,
                             const struct cdcd_chunk *chunk, struct cdcd_error *err)
{
    w->t = table->source_data;
    w->chunk = chunk->number;
    w->row = 0;
    w->finished = false;
    w->seq = my_snap_seq(w->s);
    w->key = cdcd_xrealloc(w->key, (w->t->key.n + 1) * sizeof *w->key);
    cdcd_buf_clear(&w->cursor);
    enum cdcd_rc rc = acquire(w, err);
    if (rc == CDCD_OK)
        rc = my_snap_shape(w->s, w->t, err);
    if (rc == CDCD_OK && !w->t->shape->captured) {
        w->finished = true;
        return CDCD_OK;
    }
    if (rc == CDCD_OK)
        rc = verify_table(w, err);
    if (rc == CDCD_OK)
        rc = send_select(w, chunk, err);
    return rc;
}

/* The metadata is free again, and the connection too. */
static enum cdcd_rc end_chunk(struct cdcd_worker *w, struct cdcd_error *err)
{
    w->finished = true;
    abandon(w);
    enum cdcd_rc rc = my_query(w->conn, NULL, err, "ROLLBACK TO SAVEPOINT cdcd");
    if (rc != CDCD_OK)
        return rc;
    release(w, false);
    return CDCD_END;
}

/* ---- rows ---- */

/* The source block is the same for all rows of a batch. */
static const struct cdcd_cell *source_cells(const struct cdcd_worker *w, struct cdcd_batch *b)
{
    const struct my_position *p = &w->s->snapshot->position;
    const char *table = w->t->shape->schema->table;
    struct cdcd_cell *c = cdcd_batch_cells(b, MY_SRC_COUNT);
    memset(c, 0, MY_SRC_COUNT * sizeof *c);
    c[MY_SRC_TABLE] = cdcd_cell_text(cdcd_arena_dup(&b->arena, table, strlen(table)),
                                     strlen(table));
    c[MY_SRC_SERVER_ID] = cdcd_cell_int(0);
    c[MY_SRC_FILE] = cdcd_cell_text(cdcd_arena_dup(&b->arena, p->file, strlen(p->file)),
                                    strlen(p->file));
    c[MY_SRC_POS] = cdcd_cell_int((int64_t)p->pos);
    c[MY_SRC_ROW] = cdcd_cell_int(0);
    return c;
}

static enum cdcd_rc row_error(const struct cdcd_worker *w, MYSQL_ROW row, struct cdcd_error *err)
{
    const struct my_snap_key *k = &w->t->key;
    const char *first = k->n && row[w->t->key_field[0]] ? row[w->t->key_field[0]] : "";
    return cdcd_error_context(err, "row %" PRIu64 " of chunk %u of %s%s%.200s", w->row, w->chunk,
                              w->t->label, *first ? ", key " : "", first);
}

static enum cdcd_rc check_size(const struct cdcd_worker *w, const unsigned long *lengths,
                               struct cdcd_error *err)
{
    int64_t max = w->s->env->max_event_bytes, size = 0;
    for (size_t i = 0; i < w->t->ncolumns; i++)
        size += (int64_t)lengths[i];
    if (max <= 0 || size <= max)
        return CDCD_OK;
    return cdcd_error_set(err, CDCD_ERR_DATA,
                          "the row has %" PRId64 " bytes, max_event_bytes allows %" PRId64
                          ": raise it, or exclude the large column",
                          size, max);
}

static enum cdcd_rc append_row(struct cdcd_worker *w, struct cdcd_batch *b, MYSQL_ROW row,
                               const unsigned long *lengths, const struct cdcd_cell *source,
                               struct cdcd_error *err)
{
    const struct my_snap_table *t = w->t;
    struct cdcd_schema *schema = t->shape->schema;
    w->row++;
    if (check_size(w, lengths, err) != CDCD_OK)
        return row_error(w, row, err);
    struct cdcd_cell *cells = cdcd_batch_cells(b, schema->ncolumns);
    for (uint32_t i = 0; i < schema->ncolumns; i++)
        cells[i] = (struct cdcd_cell){.kind = CDCD_C_ABSENT};
    for (size_t i = 0; i < t->ncolumns; i++) {
        const struct my_snap_column *c = &t->columns[i];
        if (!row[i])
            cells[c->column] = (struct cdcd_cell){.kind = CDCD_C_NULL};
        else if (my_value_text(&t->shape->columns[c->source], &schema->columns[c->column], row[i],
                               lengths[i], &b->arena, &cells[c->column], err) != CDCD_OK)
            return row_error(w, row, err);
    }
    struct cdcd_event *e = cdcd_batch_event(b, CDCD_OP_READ, schema);
    e->after = cells;
    e->source = source;
    e->ts_us = w->s->snapshot->ts_us;
    e->pos = (struct cdcd_pos){w->seq, (uint64_t)w->chunk << 40 | w->row, false};
    return CDCD_OK;
}

/* The values of the last row's key, kept over the fetch of the next one. */
static void keep_key(struct cdcd_worker *w, MYSQL_ROW row, const unsigned long *lengths)
{
    const struct my_snap_key *k = &w->t->key;
    cdcd_buf_clear(&w->cursor);
    for (size_t i = 0; i < k->n; i++)
        w->key[i] = (struct cdcd_slice){row[w->t->key_field[i]], lengths[w->t->key_field[i]]};
    if (k->n > 0)
        my_cursor_write(w->key, k->n, &w->cursor);
}

/* The rows in the batch are read: go on behind the last one. The end of a chunk needs it too: its
 * last rows may be durable for a while before its end is. */
static void set_cursor(const struct cdcd_worker *w, struct cdcd_batch *b)
{
    if (b->nevents > 0 && w->cursor.len > 0)
        b->chunk_cursor = (struct cdcd_slice){
            cdcd_arena_dup(&b->arena, w->cursor.ptr, w->cursor.len), w->cursor.len};
}

enum cdcd_rc my_worker_read(struct cdcd_worker *w, struct cdcd_batch *b, struct cdcd_error *err)
{
    if (w->finished)
        return end_chunk(w, err);
    const struct cdcd_cell *source = source_cells(w, b);
    MYSQL_ROW row;
    while ((row = mysql_fetch_row(w->result))) {
        const unsigned long *lengths = mysql_fetch_lengths(w->result);
        if (append_row(w, b, row, lengths, source, err) != CDCD_OK)
            return CDCD_ERROR;
        keep_key(w, row, lengths);
        if (cdcd_batch_full(b)) {
            set_cursor(w, b);
            return CDCD_OK;
        }
    }
    if (mysql_errno(w->conn) != 0)
        return my_snap_error(w->s, w->conn, w->t, err);
    set_cursor(w, b);
    return end_chunk(w, err);
}
