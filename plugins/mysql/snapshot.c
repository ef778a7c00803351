/*
 * snapshot.c: begin and end of a snapshot, and which tables it has.
 *
 * Connections are made and put into the view by the capture thread (snapshot_lock.c); a worker
 * takes one for a chunk at a time. A transaction keeps its view for as long as it lives. Of what
 * it reads it holds the metadata locked, so that an ALTER TABLE waits: on MySQL until the end of
 * the chunk (ROLLBACK TO SAVEPOINT), on MariaDB until the end of the snapshot, but for a user that
 * may switch off its own binlog (sql/transaction.cc, trans_rollback_to_savepoint).
 *
 * The definitions of tables are those of the view when their fingerprints are the same before and
 * after it (snapshot_table.c).
 */
#include "snapshot_int.h"

#include "stream.h"

#include <stdio.h>
#include <stdlib.h>

#define SHAPE_TRIES 20
#define PING_MS     20000

/* ---- connections ---- */

/* Beyond what my_connect pins. Invalid dates are values also where they stand in a condition; no
 * limit cuts a result; a transaction may be idle for as long as the sink needs. */
static enum cdcd_rc prepare_session(struct cdcd_source *s, MYSQL *m, struct cdcd_error *err)
{
    bool mariadb = s->server.flavor == MY_MARIADB;
    enum cdcd_rc rc = my_query(m, NULL, err,
                               "SET SESSION sql_mode = 'ALLOW_INVALID_DATES', "
                               "sql_select_limit = 18446744073709551615, sql_big_selects = 1");
    if (rc == CDCD_OK)
        rc = my_query(m, NULL, err, "SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ");
    if (rc == CDCD_OK)
        rc = my_query(m, NULL, err,
                      mariadb ? "SET SESSION idle_transaction_timeout = 0, "
                                "idle_readonly_transaction_timeout = 0"
                              : "SET SESSION information_schema_stats_expiry = 0");
    if (rc != CDCD_OK)
        return cdcd_error_context(err, "setting up a connection of the snapshot");
    if (mariadb)
        mysql_query(m, "SET SESSION sql_log_bin = 0"); /* if the user may */
    return CDCD_OK;
}

static enum cdcd_rc open_connection(struct cdcd_source *s, MYSQL **out, struct cdcd_error *err)
{
    enum cdcd_rc rc = my_connect(s->cfg, out, err);
    return rc == CDCD_OK ? prepare_session(s, *out, err) : rc;
}

static enum cdcd_rc open_connections(struct cdcd_source *s, struct my_snapshot *v,
                                     struct cdcd_error *err)
{
    size_t n = s->env->workers > 0 ? (size_t)s->env->workers : 1;
    v->views = cdcd_xcalloc(n, sizeof(MYSQL *));
    v->busy = cdcd_xcalloc(n, sizeof *v->busy);
    enum cdcd_rc rc = open_connection(s, &v->catalog, err);
    if (rc == CDCD_OK && mysql_set_server_option(v->catalog, MYSQL_OPTION_MULTI_STATEMENTS_ON))
        rc = my_error(v->catalog, err, "cannot send several statements at once");
    for (; rc == CDCD_OK && v->nviews < n; v->nviews++)
        rc = open_connection(s, &v->views[v->nviews], err);
    return rc;
}

/* The point that the end of each chunk goes back to. */
static enum cdcd_rc set_savepoints(struct my_snapshot *v, struct cdcd_error *err)
{
    enum cdcd_rc rc = CDCD_OK;
    for (size_t i = 0; rc == CDCD_OK && i < v->nviews; i++)
        rc = my_query(v->views[i], NULL, err, "SAVEPOINT cdcd");
    return rc;
}

/* ---- begin ---- */

static enum cdcd_rc server_clock(MYSQL *m, int64_t *out, struct cdcd_error *err)
{
    MYSQL_RES *r = NULL;
    enum cdcd_rc rc = my_query(m, &r, err,
                               "SELECT CAST(UNIX_TIMESTAMP(SYSDATE(6)) * 1000000 AS SIGNED)");
    if (rc != CDCD_OK)
        return rc;
    MYSQL_ROW row = mysql_fetch_row(r);
    *out = row && row[0] ? strtoll(row[0], NULL, 10) : cdcd_wallclock_us();
    mysql_free_result(r);
    return CDCD_OK;
}

/* One view, and the tables around it. *same: they did not change meanwhile. */
static enum cdcd_rc try_view(struct cdcd_source *s, struct my_snapshot *v, bool *same,
                             struct cdcd_error *err)
{
    struct my_stamps before = {0}, after = {0};
    bool moved = false;
    my_table_list_free(&v->models);
    v->models = (struct my_table_list){0};
    enum cdcd_rc rc = my_stamps_read(v->catalog, s->filter, NULL, NULL, &before, &moved, err);
    if (rc == CDCD_OK)
        rc = my_views_take(s, v, err);
    if (rc == CDCD_OK)
        rc = server_clock(v->catalog, &v->ts_us, err);
    if (rc == CDCD_OK && !v->resumed)
        rc = my_shapes_read(s->shapes, v->catalog, err);
    if (rc == CDCD_OK)
        rc = my_catalog_read(v->catalog, &s->server, s->filter, NULL, NULL, &v->models, err);
    if (rc == CDCD_OK)
        rc = my_stamps_read(v->catalog, s->filter, NULL, NULL, &after, &moved, err);
    *same = rc == CDCD_OK && !moved && my_stamps_equal(&before, &after);
    if (*same)
        my_snap_tables_make(v, &after);
    my_stamps_free(&before);
    my_stamps_free(&after);
    return rc;
}

static enum cdcd_rc take_view(struct cdcd_source *s, struct my_snapshot *v, struct cdcd_error *err)
{
    bool same = false;
    enum cdcd_rc rc = CDCD_OK;
    for (int i = 0; rc == CDCD_OK && !same && i < SHAPE_TRIES; i++) {
        rc = try_view(s, v, &same, err);
        if (rc == CDCD_OK && !same)
            cdcd_info("mysql", "tables were made, altered or dropped while the snapshot began: "
                               "it begins again");
    }
    if (rc == CDCD_OK && !same)
        rc = cdcd_error_set(err, CDCD_ERR_RETRY,
                            "captured tables are made, altered or dropped all the time, so that "
                            "no snapshot can begin; exclude those that come and go");
    return rc;
}

/* "binlog.000009" stands before "binlog.000010", and .999999 before .1000000. */
static int file_order(const char *a, const char *b)
{
    size_t na = strlen(a), nb = strlen(b);
    if (na != nb)
        return na < nb ? -1 : 1;
    return strcmp(a, b);
}

/* The view lacks what was delivered: this is another server than the one of the position. */
static bool stands_before(const struct my_position *view, const struct my_position *stored)
{
    const char *done = stored->done ? stored->done : stored->gtid;
    const char *done_file = stored->done_file ? stored->done_file : stored->file;
    uint64_t done_pos = stored->done_file ? stored->done_pos : stored->pos;
    if (done && *done && *view->gtid) {
        struct my_gtid_set *a = my_gtid_set_new(view->flavor), *b = my_gtid_set_new(view->flavor);
        bool before = my_gtid_set_parse(view->gtid, strlen(view->gtid), a) &&
                      my_gtid_set_parse(done, strlen(done), b) && !my_gtid_set_contains(a, b);
        my_gtid_set_free(a);
        my_gtid_set_free(b);
        return before;
    }
    if (!done_file || !stored->server || strcmp(view->server, stored->server) != 0)
        return false; /* the stream says what is wrong with such a position */
    int order = file_order(view->file, done_file);
    return order < 0 || (order == 0 && view->pos < done_pos);
}

static enum cdcd_rc finish_position(struct cdcd_source *s, struct my_snapshot *v,
                                    const struct my_position *stored, struct cdcd_buf *out,
                                    struct cdcd_error *err)
{
    struct my_position *p = &v->position;
    p->flavor = s->server.flavor;
    free(p->server);
    p->server = p->flavor == MY_MYSQL ? cdcd_xstrdup(s->server.uuid)
                                      : cdcd_xasprintf("%u", (unsigned)s->server.server_id);
    if (!p->tx)
        p->tx = cdcd_xstrdup("");
    p->seq = stored ? stored->seq : (uint64_t)cdcd_wallclock_us();
    if (stored && stands_before(p, stored))
        return cdcd_error_set(err, CDCD_ERR_LOSS,
                              "the new view stands at %s:%llu (%s), before the stored position "
                              "%s:%llu (%s): this server lacks changes that are delivered "
                              "already. Connect to the right one, or start a new snapshot",
                              p->file, (unsigned long long)p->pos, p->gtid, stored->file,
                              (unsigned long long)stored->pos, stored->gtid ? stored->gtid : "");
    my_position_write(p, out);
    return CDCD_OK;
}

enum cdcd_rc my_snapshot_begin(struct cdcd_source *s, struct cdcd_slice from,
                               struct cdcd_buf *position, struct cdcd_error *err)
{
    struct my_position stored = {0};
    my_snapshot_end(s);
    if (from.ptr && !my_position_parse(from, &stored))
        return cdcd_error_set(err, CDCD_ERR_FATAL, "the stored position is not understood: %.*s",
                              from.len > 200 ? 200 : (int)from.len, from.ptr);
    struct my_snapshot *v = s->snapshot = cdcd_xcalloc(1, sizeof *v);
    cdcd_arena_init(&v->arena, 16384);
    pthread_mutex_init(&v->lock, NULL);
    pthread_mutex_init(&v->catalog_lock, NULL);
    pthread_mutex_init(&v->shape_lock, NULL);
    pthread_cond_init(&v->freed, NULL);
    v->resumed = from.ptr != NULL;

    enum cdcd_rc rc = open_connections(s, v, err);
    if (rc == CDCD_OK)
        rc = take_view(s, v, err);
    if (rc == CDCD_OK)
        rc = set_savepoints(v, err);
    if (rc == CDCD_OK)
        rc = finish_position(s, v, from.ptr ? &stored : NULL, position, err);
    my_position_free(&stored);
    if (rc != CDCD_OK)
        my_snapshot_end(s);
    return rc;
}

uint64_t my_snap_seq(const struct cdcd_source *s)
{
    return s->snapshot->resumed ? my_stream_seq(s->stream) : s->snapshot->position.seq;
}

/* ---- while it lasts ---- */

/* Views that wait for a worker; one at work shows life by itself. */
enum cdcd_rc my_snapshot_idle(struct cdcd_source *s, int64_t now, struct cdcd_error *err)
{
    struct my_snapshot *v = s->snapshot;
    enum cdcd_rc rc = CDCD_OK;
    if (!v || now - v->ping_ms < PING_MS)
        return CDCD_OK;
    pthread_mutex_lock(&v->lock);
    for (size_t i = 0; rc == CDCD_OK && v->ping_ms && i < v->nviews; i++) {
        if (v->busy[i] || mysql_ping(v->views[i]) == 0)
            continue;
        v->broken = true;
        rc = cdcd_error_set(err, CDCD_ERR_RETRY,
                            "a connection that holds the snapshot is lost (%s): the snapshot goes "
                            "on under a new view",
                            mysql_error(v->views[i]));
    }
    v->ping_ms = now;
    pthread_cond_broadcast(&v->freed);
    pthread_mutex_unlock(&v->lock);
    if (rc == CDCD_OK && pthread_mutex_trylock(&v->catalog_lock) == 0) {
        mysql_ping(v->catalog); /* its next use says what is wrong */
        pthread_mutex_unlock(&v->catalog_lock);
    }
    return rc;
}

void my_snapshot_end(struct cdcd_source *s)
{
    struct my_snapshot *v = s->snapshot;
    if (!v)
        return;
    for (size_t i = 0; i < v->ntables; i++)
        my_snap_table_free(&v->tables[i]);
    for (size_t i = 0; i < v->nviews; i++)
        mysql_close(v->views[i]);
    if (v->catalog)
        mysql_close(v->catalog);
    my_table_list_free(&v->models);
    my_position_free(&v->position);
    pthread_mutex_destroy(&v->lock);
    pthread_mutex_destroy(&v->catalog_lock);
    pthread_mutex_destroy(&v->shape_lock);
    pthread_cond_destroy(&v->freed);
    free(v->views);
    free(v->busy);
    cdcd_arena_free(&v->arena);
    free(v);
    s->snapshot = NULL;
}

/* ---- tables ---- */

enum cdcd_rc my_snapshot_tables(struct cdcd_source *s, struct cdcd_snapshot_tables *out,
                                struct cdcd_error *err)
{
    const struct my_snapshot *v = s->snapshot;
    (void)err;
    *out = (struct cdcd_snapshot_tables){.n = v->ntables};
    cdcd_arena_init(&out->arena, 16384);
    out->items = cdcd_arena_alloc(&out->arena, (v->ntables + 1) * sizeof *out->items);
    for (size_t i = 0; i < v->ntables; i++) {
        struct my_snap_table *t = &v->tables[i];
        out->items[i] = (struct cdcd_snapshot_table){.db = t->model->db,
                                                     .schema = "",
                                                     .table = t->model->name,
                                                     .label = t->label,
                                                     .identity = t->identity,
                                                     .keyed = t->model->nkeys > 0,
                                                     .rows = t->stamp.rows,
                                                     .source_data = t};
    }
    return CDCD_OK;
}
