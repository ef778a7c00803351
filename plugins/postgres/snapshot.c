/*
 * snapshot.c: the consistent view, the tables in it, and how they are cut into chunks.
 *
 * A logical slot's creation exports a snapshot that holds exactly the transactions whose commit
 * record stands before the slot's consistent point. The first snapshot takes it from the
 * pipeline's own new slot. Where the slot is there already (made by the user, or by a run that
 * was killed) a temporary slot gives a new exact view; it goes with the connection.
 *
 * The exported snapshot lives as long as the connection that made it stays open and runs nothing
 * else. Tables are described from the catalogue as the view sees it; their physical identity
 * (relfilenode) tells whether an ALTER TABLE or TRUNCATE has since taken the rows away that the
 * view should show.
 */
#include "snapshot.h"

#include "publication.h"

#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* A state with more chunks than this is large to store again and again. */
#define CHUNKS_MAX 4000

/* ---- begin ---- */

static enum cdcd_rc drop_lost_slot(struct cdcd_source *s, struct pg_slot *slot,
                                   struct cdcd_error *err)
{
    bool lost = strcmp(slot->wal_status, "lost") == 0 || slot->invalidation[0];
    if (!slot->exists || !lost || slot->active || !s->env->when_needed)
        return CDCD_OK;
    cdcd_warn(
        "postgres",
        "replication slot \"%s\" is invalidated; snapshot.mode is when_needed: dropping it and "
        "starting anew",
        s->cfg->slot_name);
    const char *name = s->cfg->slot_name;
    if (pg_query(s->sql, NULL, err, "SELECT pg_drop_replication_slot($1)", 1, &name) != CDCD_OK)
        return cdcd_error_context(err, "cannot drop replication slot \"%s\"", name);
    *slot = (struct pg_slot){0};
    return CDCD_OK;
}

/* Reads and verifies the pipeline's slot; one that our own stream holds is not in the way. */
static enum cdcd_rc look_at_slot(struct cdcd_source *s, const struct pg_position *stored,
                                 struct pg_slot *slot, struct cdcd_error *err)
{
    pg_lsn server_lsn = 0;
    enum cdcd_rc rc = pg_slot_read(s->sql, s->server.version, s->cfg->slot_name, slot, err);
    if (rc == CDCD_OK && !stored)
        rc = drop_lost_slot(s, slot, err);
    if (rc == CDCD_OK)
        rc = pg_slot_server_lsn(s->sql, s->server.in_recovery, &server_lsn, err);
    if (slot->active && s->repl && slot->active_pid == PQbackendPID(s->repl))
        slot->active = false;
    if (rc == CDCD_OK)
        rc = pg_slot_verify(slot, s->cfg->slot_name, s->server.db, &s->server, server_lsn, stored,
                            err);
    return rc;
}

static enum cdcd_rc check_readable(struct cdcd_source *s, struct cdcd_error *err)
{
    struct pg_pub_tables all = {0};
    enum cdcd_rc rc = pg_pub_tables_read(s->sql, s->cfg->publication_name, s->filter, &all, err);
    if (rc == CDCD_OK)
        rc = pg_pub_tables_readable(s->sql, &all, err);
    pg_pub_tables_free(&all);
    return rc;
}

static enum cdcd_rc export_view(struct cdcd_source *s, const struct pg_slot *slot,
                                struct cdcd_error *err)
{
    struct pg_snapshot *v = s->snapshot;
    char name[64];
    snprintf(name, sizeof name, "%s", s->cfg->slot_name);
    /* Unique among all that may do the same now; at most 63 characters, all allowed ones. */
    if (slot->exists)
        snprintf(name, sizeof name, "%.36s_snap_%x_%04x", s->cfg->slot_name, (unsigned)getpid(),
                 (unsigned)(cdcd_wallclock_us() & 0xffff));
    enum cdcd_rc rc = pg_connect(s->cfg, true, &v->conn, err);
    if (rc == CDCD_OK)
        rc = pg_slot_create(v->conn, s, name, slot->exists, true, &v->lsn, v->name, err);
    if (rc != CDCD_OK && slot->exists)
        return cdcd_error_context(
            err, "a view for the snapshot needs a temporary slot beside \"%s\"", s->cfg->slot_name);
    if (rc == CDCD_OK)
        cdcd_info("postgres", "%s replication slot \"%s\", consistent at " PG_LSN_FMT,
                  slot->exists ? "created temporary" : "created", name, PG_LSN_ARGS(v->lsn));
    return rc;
}

static enum cdcd_rc enter_view(struct cdcd_source *s, struct cdcd_error *err)
{
    char *text = pg_sql("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY; "
                        "SET TRANSACTION SNAPSHOT %L",
                        s->snapshot->name);
    enum cdcd_rc rc = pg_query(s->sql, NULL, err, text, 0, NULL);
    free(text);
    if (rc == CDCD_OK)
        return rc;
    cdcd_error_context(err, "cannot use the exported snapshot");
    err->class = CDCD_ERR_RETRY; /* the exporting connection went away */
    return CDCD_ERROR;
}

static void leave_view(struct cdcd_source *s)
{
    PQclear(PQexec(s->sql, "ROLLBACK"));
}

/* What the READ events say about when they were read, and which row versions are older. */
static enum cdcd_rc stamp_view(struct cdcd_source *s, struct cdcd_error *err)
{
    struct pg_snapshot *v = s->snapshot;
    PGresult *r = NULL;
    enum cdcd_rc rc = enter_view(s, err);
    if (rc == CDCD_OK)
        rc = pg_query(s->sql, &r, err,
                      "SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint, "
                      "pg_snapshot_xmin(pg_current_snapshot()), "
                      "pg_snapshot_xmax(pg_current_snapshot())",
                      0, NULL);
    leave_view(s);
    if (rc != CDCD_OK)
        return cdcd_error_context(err, "cannot read the view's clock");
    v->ts_us = strtoll(PQgetvalue(r, 0, 0), NULL, 10);
    v->xmin = strtoull(PQgetvalue(r, 0, 1), NULL, 10);
    v->xmax = strtoull(PQgetvalue(r, 0, 2), NULL, 10);
    v->txid = (int64_t)v->xmax - 1;
    PQclear(r);
    return CDCD_OK;
}

/* A lock that somebody holds must not hang the capture thread. */
static enum cdcd_rc set_lock_timeout(struct cdcd_source *s, struct cdcd_error *err)
{
    char *text = cdcd_xasprintf("SET lock_timeout = %" PRId64, s->cfg->lock_timeout_ms);
    enum cdcd_rc rc = pg_query(s->sql, NULL, err, text, 0, NULL);
    free(text);
    return rc;
}

enum cdcd_rc pg_snapshot_begin(struct cdcd_source *s, struct cdcd_slice from,
                               struct cdcd_buf *position, struct cdcd_error *err)
{
    struct pg_position stored = {0}, p = {0};
    struct pg_slot slot = {0};
    bool created = false;
    pg_snapshot_end(s);
    if (from.ptr && !pg_position_parse(from, &stored))
        return cdcd_error_set(err, CDCD_ERR_FATAL, "the stored position is not understood: %.*s",
                              from.len > 200 ? 200 : (int)from.len, from.ptr);
    s->snapshot = cdcd_xcalloc(1, sizeof *s->snapshot);
    cdcd_arena_init(&s->snapshot->arena, 16384);
    pthread_mutex_init(&s->snapshot->shape_lock, NULL);
    s->snapshot->resumed = from.ptr != NULL;

    enum cdcd_rc rc = set_lock_timeout(s, err);
    /* The publication first: pgoutput looks it up in the catalogue as of each change. */
    if (rc == CDCD_OK)
        rc = pg_publication_ensure(s->sql, s->cfg, s->filter, s->server.version, &created, err);
    if (rc == CDCD_OK)
        rc = look_at_slot(s, from.ptr ? &stored : NULL, &slot, err);
    /* A slot pins log: it is not made for a snapshot that must fail. */
    if (rc == CDCD_OK)
        rc = check_readable(s, err);
    if (rc == CDCD_OK)
        rc = export_view(s, &slot, err);
    if (rc == CDCD_OK)
        rc = stamp_view(s, err);
    if (rc == CDCD_OK && from.ptr && s->snapshot->lsn < stored.done)
        rc = cdcd_error_set(err, CDCD_ERR_LOSS,
                            "the new view stands at " PG_LSN_FMT
                            ", before the stored position " PG_LSN_FMT
                            ": this server lacks changes that are delivered already",
                            PG_LSN_ARGS(s->snapshot->lsn), PG_LSN_ARGS(stored.done));
    if (rc != CDCD_OK) {
        pg_snapshot_end(s);
        return rc;
    }
    p.lsn = p.done = s->snapshot->lsn;
    /* A slot with two_phase sends a transaction at its PREPARE: one that is prepared before the
     * view and committed after it is seen only by a stream that starts before the view. */
    if (slot.exists && slot.two_phase && !created && slot.confirmed_flush < p.lsn)
        p.lsn = slot.confirmed_flush;
    snprintf(p.sys, sizeof p.sys, "%s", s->server.system_id);
    pg_position_write(&p, position);
    return CDCD_OK;
}

enum cdcd_rc pg_snapshot_idle(struct cdcd_source *s, int64_t now, struct cdcd_error *err)
{
    (void)now;
    PGconn *c = s->snapshot ? s->snapshot->conn : NULL;
    if (!c)
        return CDCD_OK;
    struct pollfd p = {PQsocket(c), POLLIN, 0};
    if (poll(&p, 1, 0) <= 0 || (PQconsumeInput(c) && PQstatus(c) == CONNECTION_OK))
        return CDCD_OK;
    return cdcd_error_set(err, CDCD_ERR_RETRY,
                          "the connection that holds the snapshot is lost: the snapshot goes on "
                          "under a new view");
}

void pg_snapshot_end(struct cdcd_source *s)
{
    struct pg_snapshot *v = s->snapshot;
    if (!v)
        return;
    for (size_t i = 0; i < v->ntables; i++) {
        struct pg_snap_table *t = &v->tables[i];
        pg_table_free(t->shape);
        free(t->select);
        free(t->columns);
    }
    pthread_mutex_destroy(&v->shape_lock);
    PQfinish(v->conn);
    cdcd_arena_free(&v->arena);
    free(v);
    s->snapshot = NULL;
    if (s->sql && PQstatus(s->sql) == CONNECTION_OK)
        PQclear(PQexec(s->sql, "RESET lock_timeout"));
}

/* ---- tables ---- */

static const char *keep(struct pg_snapshot *v, const PGresult *r, int row, int column)
{
    return cdcd_arena_dup(&v->arena, PQgetvalue(r, row, column),
                          (size_t)PQgetlength(r, row, column));
}

static uint32_t oid_at(const PGresult *r, int row, int column)
{
    return (uint32_t)strtoul(PQgetvalue(r, row, column), NULL, 10);
}

/* Columns: filenode, kind, access method, rows from `column` on. */
static void read_leaf(struct pg_leaf *leaf, const PGresult *r, int row, int column)
{
    char kind = PQgetvalue(r, row, column + 1)[0];
    leaf->filenode = oid_at(r, row, column);
    leaf->foreign = kind == 'f';
    leaf->heap = strcmp(PQgetvalue(r, row, column + 2), "heap") == 0;
    leaf->rows = strtoll(PQgetvalue(r, row, column + 3), NULL, 10);
}

static enum cdcd_rc read_published(struct cdcd_source *s, struct cdcd_error *err)
{
    struct pg_snapshot *v = s->snapshot;
    const char *publication = s->cfg->publication_name;
    PGresult *r = NULL;
    char *sql = cdcd_xasprintf(
        "SELECT c.oid, n.nspname, c.relname, %s, c.relfilenode, c.relkind, "
        "coalesce(a.amname, ''), c.reltuples::bigint, "
        "EXISTS (SELECT FROM pg_catalog.pg_index x WHERE x.indrelid = c.oid AND "
        "(x.indisprimary OR x.indisreplident AND c.relreplident = 'i')) "
        "FROM pg_catalog.pg_publication_tables pt "
        "JOIN pg_catalog.pg_namespace n ON n.nspname = pt.schemaname "
        "JOIN pg_catalog.pg_class c ON c.relnamespace = n.oid AND c.relname = pt.tablename "
        "LEFT JOIN pg_catalog.pg_am a ON a.oid = c.relam WHERE pt.pubname = $1",
        s->server.version >= 150000 ? "coalesce(pt.rowfilter, '')" : "''");
    enum cdcd_rc rc = pg_query(s->sql, &r, err, sql, 1, &publication);
    free(sql);
    if (rc != CDCD_OK)
        return cdcd_error_context(err, "cannot list the tables of publication \"%s\"", publication);
    v->tables = cdcd_arena_alloc(&v->arena, ((size_t)PQntuples(r) + 1) * sizeof *v->tables);
    for (int i = 0; i < PQntuples(r); i++) {
        if (!pg_filter_table(s->filter, PQgetvalue(r, i, 1), PQgetvalue(r, i, 2)))
            continue;
        struct pg_snap_table *t = &v->tables[v->ntables++];
        *t = (struct pg_snap_table){.oid = oid_at(r, i, 0),
                                    .root = PQgetvalue(r, i, 5)[0] == 'p',
                                    .schema = keep(v, r, i, 1),
                                    .table = keep(v, r, i, 2),
                                    .row_filter = keep(v, r, i, 3)};
        t->rows = strtoll(PQgetvalue(r, i, 7), NULL, 10);
        t->keyed = PQgetvalue(r, i, 8)[0] == 't';
        if (!t->root) {
            t->nleaves = 1;
            t->leaves = cdcd_arena_alloc(&v->arena, sizeof *t->leaves);
            *t->leaves = (struct pg_leaf){.oid = t->oid, .schema = t->schema, .table = t->table};
            read_leaf(t->leaves, r, i, 4);
        }
    }
    PQclear(r);
    return CDCD_OK;
}

/* "{1,2,3}" of the tables that are partitioned; malloc'ed, NULL when there is none. */
static char *root_oids(const struct pg_snapshot *v)
{
    struct cdcd_buf b;
    cdcd_buf_init(&b, 0);
    for (size_t i = 0; i < v->ntables; i++) {
        if (v->tables[i].root)
            cdcd_buf_addf(&b, "%s%u", b.len ? "," : "{", v->tables[i].oid);
    }
    if (b.len == 0)
        return NULL;
    cdcd_buf_adds(&b, "}");
    return (char *)cdcd_buf_cstr(&b);
}

static enum cdcd_rc read_leaves(struct cdcd_source *s, struct cdcd_error *err)
{
    struct pg_snapshot *v = s->snapshot;
    PGresult *r = NULL;
    char *roots = root_oids(v);
    if (!roots)
        return CDCD_OK;
    const char *param = roots;
    enum cdcd_rc rc = pg_query(
        s->sql, &r, err,
        "SELECT p.oid, c.oid, n.nspname, c.relname, c.relfilenode, c.relkind, "
        "coalesce(a.amname, ''), c.reltuples::bigint "
        "FROM unnest($1::oid[]) p(oid) CROSS JOIN LATERAL pg_partition_tree(p.oid::regclass) l "
        "JOIN pg_catalog.pg_class c ON c.oid = l.relid AND c.relkind <> 'p' "
        "JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace "
        "LEFT JOIN pg_catalog.pg_am a ON a.oid = c.relam WHERE l.isleaf ORDER BY p.oid, c.oid",
        1, &param);
    free(roots);
    if (rc != CDCD_OK)
        return cdcd_error_context(err, "cannot list partitions");
    int n = PQntuples(r);
    struct pg_leaf *leaves = cdcd_arena_alloc(&v->arena, ((size_t)n + 1) * sizeof *leaves);
    for (int i = 0; i < n; i++) {
        leaves[i] = (struct pg_leaf){
            .oid = oid_at(r, i, 1), .schema = keep(v, r, i, 2), .table = keep(v, r, i, 3)};
        read_leaf(&leaves[i], r, i, 4);
    }
    for (size_t k = 0; k < v->ntables; k++) {
        struct pg_snap_table *t = &v->tables[k];
        if (!t->root)
            continue;
        t->rows = 0;
        for (int i = 0; i < n; i++) {
            if (oid_at(r, i, 0) != t->oid)
                continue;
            if (!t->leaves)
                t->leaves = &leaves[i];
            t->nleaves++;
            t->rows = leaves[i].rows < 0 || t->rows < 0 ? -1 : t->rows + leaves[i].rows;
        }
    }
    PQclear(r);
    return CDCD_OK;
}

/* Changes with every rewrite or TRUNCATE, and when partitions come or go. */
static char *identity_of(struct pg_snapshot *v, const struct pg_snap_table *t)
{
    char text[64];
    if (!t->root) {
        snprintf(text, sizeof text, "%u.%u", t->oid, t->leaves->filenode);
    } else {
        uint64_t h = UINT64_C(14695981039346656037); /* FNV-1a */
        for (size_t i = 0; i < t->nleaves; i++) {
            const uint32_t part[2] = {t->leaves[i].oid, t->leaves[i].filenode};
            for (unsigned k = 0; k < 8; k++)
                h = (h ^ (part[k / 4] >> (k % 4 * 8) & 0xff)) * UINT64_C(1099511628211);
        }
        snprintf(text, sizeof text, "%u.%zu.%016" PRIx64, t->oid, t->nleaves, h);
    }
    return cdcd_arena_dup(&v->arena, text, strlen(text));
}

static int by_label(const void *a, const void *b)
{
    return strcmp(((const struct pg_snap_table *)a)->label,
                  ((const struct pg_snap_table *)b)->label);
}

/* Labels name tables in the stored progress, so they must be unique: "a.b"."c" and "a"."b.c" are
 * told apart by quotes. */
static void label_tables(struct pg_snapshot *v)
{
    for (size_t i = 0; i < v->ntables; i++) {
        struct pg_snap_table *t = &v->tables[i];
        char *text = cdcd_xasprintf("%s.%s", t->schema, t->table);
        t->label = cdcd_arena_dup(&v->arena, text, strlen(text));
        t->identity = identity_of(v, t);
        free(text);
    }
    qsort(v->tables, v->ntables, sizeof *v->tables, by_label);
    bool again = false;
    for (size_t i = 0; i + 1 < v->ntables; i++) {
        struct pg_snap_table *t = &v->tables[i];
        size_t n = i + 1;
        while (n < v->ntables && strcmp(t->label, v->tables[n].label) == 0)
            n++;
        for (size_t k = i; n > i + 1 && k < n; k++) {
            char *text = pg_sql("%I.%I", v->tables[k].schema, v->tables[k].table);
            v->tables[k].label = cdcd_arena_dup(&v->arena, text, strlen(text));
            free(text);
            again = true;
        }
        i = n - 1;
    }
    if (again)
        qsort(v->tables, v->ntables, sizeof *v->tables, by_label);
}

static void list_tables(const struct pg_snapshot *v, struct cdcd_snapshot_tables *out)
{
    cdcd_arena_init(&out->arena, 16384);
    out->items = cdcd_arena_alloc(&out->arena, (v->ntables + 1) * sizeof *out->items);
    out->n = v->ntables;
    for (size_t i = 0; i < v->ntables; i++) {
        struct pg_snap_table *t = &v->tables[i];
        out->items[i] = (struct cdcd_snapshot_table){.schema = t->schema,
                                                     .table = t->table,
                                                     .label = t->label,
                                                     .identity = t->identity,
                                                     .id = t->oid,
                                                     .keyed = t->keyed,
                                                     .rows = t->rows,
                                                     .source_data = t};
    }
}

enum cdcd_rc pg_snapshot_tables(struct cdcd_source *s, struct cdcd_snapshot_tables *out,
                                struct cdcd_error *err)
{
    *out = (struct cdcd_snapshot_tables){0};
    enum cdcd_rc rc = enter_view(s, err);
    if (rc == CDCD_OK)
        rc = read_published(s, err);
    if (rc == CDCD_OK)
        rc = read_leaves(s, err);
    leave_view(s);
    if (rc != CDCD_OK)
        return rc;
    label_tables(s->snapshot);
    list_tables(s->snapshot, out);
    return CDCD_OK;
}

/* ---- shape ---- */

/* Column numbers and types as a result set has them now (a domain's base type, for one), which
 * the workers compare under their lock: a column that was renamed away and replaced must not be
 * read for the old one. */
static enum cdcd_rc read_result_shape(struct cdcd_source *s, struct pg_snap_table *t, PGconn *sql,
                                      struct cdcd_error *err)
{
    if (t->ncolumns == 0)
        return CDCD_OK;
    char *text = pg_sql("SELECT %s FROM %I.%I LIMIT 0", t->select, t->schema, t->table);
    PGresult *r = PQexec(sql, text);
    enum cdcd_rc rc = CDCD_OK;
    if (PQresultStatus(r) != PGRES_TUPLES_OK)
        rc = pg_snap_error(s->cfg, sql, r,
                           &(struct pg_leaf){.oid = t->oid, .schema = t->schema, .table = t->table},
                           err);
    for (size_t i = 0; rc == CDCD_OK && i < t->ncolumns; i++) {
        t->columns[i].type = PQftype(r, (int)i);
        t->columns[i].typmod = PQfmod(r, (int)i);
        t->columns[i].attnum = t->root ? 0 : PQftablecol(r, (int)i);
    }
    PQclear(r);
    free(text);
    return rc;
}

static enum cdcd_rc read_shape(struct cdcd_source *s, struct pg_snap_table *t, PGconn *sql,
                               struct pg_types *types, struct cdcd_error *err)
{
    struct cdcd_arena a;
    struct pg_relation rel;
    cdcd_arena_init(&a, 4096);
    enum cdcd_rc rc = pg_relation_read(sql, t->oid, s->cfg->publication_name, &a, &rel, err);
    if (rc == CDCD_OK)
        rc = pg_table_build(&rel, s->server.db, sql, types, s->filter, &t->shape, err);
    if (rc == CDCD_OK && !t->shape->schema)
        rc = cdcd_error_set(err, CDCD_ERR_RETRY, "the table was renamed while its snapshot began");
    if (rc == CDCD_OK) {
        struct cdcd_buf list;
        cdcd_buf_init(&list, 0);
        t->columns = cdcd_xcalloc(rel.nattrs + 1, sizeof *t->columns);
        for (size_t i = 0; i < rel.nattrs; i++) {
            if (t->shape->column[i] < 0)
                continue;
            char *attr = cdcd_xstrndup(rel.attrs[i].name.ptr, rel.attrs[i].name.len);
            char *name = pg_sql("%I", attr);
            cdcd_buf_addf(&list, "%s%s", t->ncolumns ? ", " : "", name);
            t->columns[t->ncolumns++] = (struct pg_snap_column){
                .column = (uint32_t)t->shape->column[i]};
            free(name);
            free(attr);
        }
        t->select = (char *)cdcd_buf_cstr(&list);
        rc = read_result_shape(s, t, sql, err);
    }
    cdcd_arena_free(&a);
    return rc;
}

enum cdcd_rc pg_snap_shape(struct cdcd_source *s, struct pg_snap_table *t, PGconn *sql,
                           struct pg_types *types, struct cdcd_error *err)
{
    enum cdcd_rc rc = CDCD_OK;
    pthread_mutex_lock(&s->snapshot->shape_lock);
    if (!t->select) {
        rc = read_shape(s, t, sql, types, err);
        if (rc != CDCD_OK) {
            pg_table_free(t->shape);
            free(t->select);
            free(t->columns);
            t->shape = NULL;
            t->select = NULL;
            t->columns = NULL;
            t->ncolumns = 0;
        }
    }
    pthread_mutex_unlock(&s->snapshot->shape_lock);
    return rc;
}

/* ---- plan ---- */

/* Sizes and physical files as they are now. */
static enum cdcd_rc measure(struct cdcd_source *s, struct pg_snap_table *t, struct cdcd_error *err)
{
    struct cdcd_buf oids;
    PGresult *r = NULL;
    cdcd_buf_init(&oids, 0);
    for (size_t i = 0; i < t->nleaves; i++)
        cdcd_buf_addf(&oids, "%s%u", i ? "," : "{", t->leaves[i].oid);
    cdcd_buf_adds(&oids, t->nleaves ? "}" : "{}");
    const char *param = cdcd_buf_cstr(&oids);
    enum cdcd_rc rc = pg_query(s->sql, &r, err,
                               "SELECT coalesce(pg_relation_filenode(l.oid::regclass), 0), "
                               "coalesce(pg_relation_size(l.oid::regclass), 0) / "
                               "current_setting('block_size')::int, c.oid IS NOT NULL, "
                               "coalesce(pg_relation_size(nullif(c.reltoastrelid, 0)), 0) > 0 "
                               "FROM unnest($1::oid[]) WITH ORDINALITY l(oid, i) "
                               "LEFT JOIN pg_catalog.pg_class c ON c.oid = l.oid ORDER BY l.i",
                               1, &param);
    cdcd_buf_free(&oids);
    if (rc != CDCD_OK)
        return rc;
    for (int i = 0; i < PQntuples(r) && rc == CDCD_OK; i++) {
        t->leaves[i].planned = oid_at(r, i, 0);
        t->leaves[i].blocks = strtoll(PQgetvalue(r, i, 1), NULL, 10);
        t->toasted = t->toasted || PQgetvalue(r, i, 3)[0] == 't';
        if (PQgetvalue(r, i, 2)[0] != 't')
            rc = cdcd_error_set(err, CDCD_ERR_RETRY,
                                "\"%s\".\"%s\" was dropped after the snapshot was taken: the "
                                "snapshot goes on under a new view",
                                t->leaves[i].schema, t->leaves[i].table);
    }
    PQclear(r);
    return rc;
}

static void add_cut(const struct pg_snap_table *t, struct cdcd_chunks *out, struct pg_cursor at)
{
    char text[64];
    pg_cursor_write(t, &at, text);
    struct cdcd_chunk *last = &out->items[out->n - 1];
    last->end = cdcd_arena_dup(&out->arena, text, strlen(text));
    out->items[out->n] = (struct cdcd_chunk){(uint32_t)out->n, last->end, ""};
    out->n++;
}

void pg_snap_cut(const struct pg_snap_table *t, int64_t per_chunk, struct cdcd_chunks *out)
{
    int64_t total = 0, filled = 0;
    for (size_t i = 0; i < t->nleaves; i++)
        total += t->leaves[i].blocks;
    if (per_chunk < 1)
        per_chunk = 1;
    if (per_chunk < total / CHUNKS_MAX + 1)
        per_chunk = total / CHUNKS_MAX + 1;
    /* A cut for each full chunk, at most two for a leaf that is read in one piece, the first
     * chunk, and room for add_tail(). */
    size_t max = (size_t)(total / per_chunk) + 2 * t->nleaves + 3;
    out->items = cdcd_arena_alloc(&out->arena, max * sizeof *out->items);
    out->items[0] = (struct cdcd_chunk){0, "", ""};
    out->n = 1;
    for (size_t i = 0; i < t->nleaves; i++) {
        bool whole = !t->leaves[i].heap;
        int64_t at = 0, left = t->leaves[i].blocks;
        if (whole && i > 0)
            add_cut(t, out, (struct pg_cursor){i, 0, 0});
        while (!whole && filled + left > per_chunk) {
            at += per_chunk - filled;
            left -= per_chunk - filled;
            filled = 0;
            add_cut(t, out, (struct pg_cursor){i, (uint32_t)at, 0});
        }
        filled += left;
        if (whole && i + 1 < t->nleaves && t->leaves[i + 1].heap) {
            add_cut(t, out, (struct pg_cursor){i + 1, 0, 0});
            filled = 0;
        }
    }
}

static void add_tail(const struct pg_snapshot *v, struct cdcd_chunks *out)
{
    char text[64];
    int n = snprintf(text, sizeof text, "T" PG_LSN_FMT ":%" PRIu64, PG_LSN_ARGS(v->lsn), v->xmin);
    out->items[out->n] = (struct cdcd_chunk){(uint32_t)out->n,
                                             cdcd_arena_dup(&out->arena, text, (size_t)n), ""};
    out->n++;
}

enum cdcd_rc pg_snapshot_plan(struct cdcd_source *s, const struct cdcd_snapshot_table *table,
                              struct cdcd_chunks *out, struct cdcd_error *err)
{
    struct pg_snap_table *t = table->source_data;
    *out = (struct cdcd_chunks){0};
    t->toasted = false;
    enum cdcd_rc rc = measure(s, t, err);
    if (rc == CDCD_OK)
        rc = pg_snap_shape(s, t, s->sql, s->types, err);
    if (rc != CDCD_OK)
        return cdcd_error_context(err, "snapshot of %s", table->label);
    cdcd_arena_init(&out->arena, 4096);
    pg_snap_cut(t, s->cfg->snapshot_chunk_bytes / 8192, out);
    /* REPLICA IDENTITY FULL logs every value, and a table of one chunk is read without a break. */
    t->toasted = t->toasted && t->shape->replident != 'f';
    if (t->toasted && out->n > 1)
        add_tail(s->snapshot, out);
    return CDCD_OK;
}

/* ---- cursors ---- */

bool pg_cursor_parse(const struct pg_snap_table *t, const char *text, bool is_end,
                     struct pg_cursor *out)
{
    *out = (struct pg_cursor){is_end ? t->nleaves : 0, 0, 0};
    if (*text == '\0')
        return true;
    unsigned oid = 0, block = 0, offset = 0;
    int n = 0;
    if (t->root) {
        if (sscanf(text, "%u:%n", &oid, &n) != 1 || n == 0)
            return false;
        text += n;
        while (out->leaf > 0 && is_end && t->leaves[out->leaf - 1].oid >= oid)
            out->leaf--;
        while (!is_end && out->leaf < t->nleaves && t->leaves[out->leaf].oid < oid)
            out->leaf++;
    } else {
        out->leaf = 0;
    }
    n = 0;
    if (sscanf(text, "(%u,%u)%n", &block, &offset, &n) != 2 || n == 0 || text[n] != '\0' ||
        offset > 65535)
        return false;
    /* A leaf that is gone: what stood in it is gone with it. */
    if (t->root && (out->leaf >= t->nleaves || t->leaves[out->leaf].oid != oid))
        return true;
    out->block = block;
    out->offset = offset;
    return true;
}

void pg_cursor_write(const struct pg_snap_table *t, const struct pg_cursor *c, char out[64])
{
    if (t->root)
        snprintf(out, 64, "%u:(%u,%u)", t->leaves[c->leaf].oid, c->block, c->offset);
    else
        snprintf(out, 64, "(%u,%u)", c->block, c->offset);
}

bool pg_tail_parse(const char *text, pg_lsn *lsn, uint64_t *xmin)
{
    char *end = NULL;
    const char *colon = strchr(text, ':');
    if (*text != 'T' || !colon || !pg_lsn_parse(text + 1, (size_t)(colon - text) - 1, lsn) ||
        colon[1] < '0' || colon[1] > '9')
        return false;
    *xmin = strtoull(colon + 1, &end, 10);
    return *end == '\0';
}
