/*
 * snapshot_table.c: the tables of the view.
 *
 * A view shows rows as of its position, but the server opens a table under the definition of now,
 * and only sometimes refuses (error 1412): after RENAME TABLE the name shows another table's rows,
 * after columns that swap their names each shows the other's values, and MariaDB reads on after
 * most of its instant ALTERs. So a table has a fingerprint, made of its definition and the time of
 * its creation. It is taken before and after the view is, and again whenever a worker has locked
 * the table's metadata by opening it.
 */
#include "snapshot_int.h"

#include <stdio.h>
#include <stdlib.h>
#include <strings.h>

#include <mysqld_error.h>

#define MY_ER_NO_SUCH_KEY 1176 /* the two libraries spell its name differently */

/* ---- fingerprints ---- */

static uint64_t hash_more(uint64_t h, const char *p, size_t n)
{
    for (size_t i = 0; i < n; i++)
        h = (h ^ (unsigned char)p[i]) * UINT64_C(1099511628211); /* FNV-1a */
    return h;
}

/* The counter in the table's options goes up with every row that is inserted. */
static uint64_t hash_definition(uint64_t h, const char *create)
{
    const char *options = strstr(create, "\n) ");
    const char *from = options ? strstr(options, " AUTO_INCREMENT=") : NULL;
    if (!from)
        return hash_more(h, create, strlen(create));
    h = hash_more(h, create, (size_t)(from - create));
    from += strlen(" AUTO_INCREMENT=");
    from += strspn(from, "0123456789");
    return hash_more(h, from, strlen(from));
}

static const char *text_of(const char *s)
{
    return s ? s : "";
}

static enum cdcd_rc stamp(MYSQL *m, struct my_stamps *out, MYSQL_ROW row, bool *gone,
                          struct cdcd_error *err)
{
    char *create = NULL;
    const char *created = text_of(row[4]);
    struct my_stamp t = {
        .db = cdcd_arena_dup(&out->arena, row[0], strlen(row[0])),
        .table = cdcd_arena_dup(&out->arena, row[1], strlen(row[1])),
        .engine = cdcd_arena_dup(&out->arena, text_of(row[2]), strlen(text_of(row[2]))),
        .rows = row[3] ? strtoll(row[3], NULL, 10) : -1};
    enum cdcd_rc rc = my_catalog_create_table(m, t.db, t.table, &create, err);
    if (rc != CDCD_OK && mysql_errno(m) == ER_NO_SUCH_TABLE) {
        *gone = true;
        return CDCD_OK;
    }
    if (rc != CDCD_OK)
        return rc;
    t.fingerprint = hash_more(UINT64_C(14695981039346656037), created, strlen(created));
    t.fingerprint = hash_definition(t.fingerprint, create);
    free(create);
    out->items[out->n++] = t;
    return CDCD_OK;
}

static int by_name(const void *x, const void *y)
{
    const struct my_stamp *a = x, *b = y;
    int order = strcmp(a->db, b->db);
    return order ? order : strcmp(a->table, b->table);
}

enum cdcd_rc my_stamps_read(MYSQL *m, const struct my_filter *f, const char *db, const char *table,
                            struct my_stamps *out, bool *moved, struct cdcd_error *err)
{
    static const char columns[] =
        "SELECT TABLE_SCHEMA, TABLE_NAME, ENGINE, TABLE_ROWS, CREATE_TIME "
        "FROM information_schema.TABLES WHERE TABLE_TYPE IN ('BASE TABLE', 'SYSTEM VERSIONED')";
    MYSQL_RES *r = NULL;
    MYSQL_ROW row;
    *out = (struct my_stamps){0};
    enum cdcd_rc rc = db ? my_queryf(m, &r, err, "%s AND TABLE_SCHEMA = %L AND TABLE_NAME = %L",
                                     columns, db, table)
                         : my_query(m, &r, err, columns);
    if (rc != CDCD_OK)
        return cdcd_error_context(err, "cannot list the tables");
    cdcd_arena_init(&out->arena, 16384);
    out->items = cdcd_arena_alloc(&out->arena, (mysql_num_rows(r) + 1) * sizeof *out->items);
    while (rc == CDCD_OK && (row = mysql_fetch_row(r))) {
        if (my_filter_table(f, row[0], row[1]))
            rc = stamp(m, out, row, moved, err);
    }
    mysql_free_result(r);
    if (rc != CDCD_OK) {
        my_stamps_free(out);
        return rc;
    }
    qsort(out->items, out->n, sizeof *out->items, by_name);
    return CDCD_OK;
}

void my_stamps_free(struct my_stamps *s)
{
    if (s->items)
        cdcd_arena_free(&s->arena);
    *s = (struct my_stamps){0};
}

bool my_stamps_equal(const struct my_stamps *a, const struct my_stamps *b)
{
    bool same = a->n == b->n;
    for (size_t i = 0; same && i < a->n; i++)
        same = by_name(&a->items[i], &b->items[i]) == 0 &&
               a->items[i].fingerprint == b->items[i].fingerprint;
    return same;
}

/* ---- tables ---- */

/* Only these give the view that the snapshot's position stands for. */
static bool versions_rows(const char *engine)
{
    return strcasecmp(engine, "InnoDB") == 0 || strcasecmp(engine, "ROCKSDB") == 0;
}

static int by_label(const void *a, const void *b)
{
    return strcmp(((const struct my_snap_table *)a)->label,
                  ((const struct my_snap_table *)b)->label);
}

static const char *keep(struct cdcd_arena *a, char *text)
{
    const char *kept = cdcd_arena_dup(a, text, strlen(text));
    free(text);
    return kept;
}

/* Labels name tables in the stored progress, so they must be unique: `a.b`.`c` and `a`.`b.c` are
 * told apart by quotes. */
static void sort_labels(struct my_snapshot *v)
{
    bool again = false;
    qsort(v->tables, v->ntables, sizeof *v->tables, by_label);
    for (size_t i = 0, n; i < v->ntables; i = n) {
        n = i + 1;
        while (n < v->ntables && strcmp(v->tables[i].label, v->tables[n].label) == 0)
            n++;
        for (size_t k = i; n > i + 1 && k < n; k++) {
            const struct my_table *t = v->tables[k].model;
            v->tables[k].label = keep(&v->arena, my_sql("%I.%I", t->db, t->name));
            again = true;
        }
    }
    if (again)
        qsort(v->tables, v->ntables, sizeof *v->tables, by_label);
}

void my_snap_tables_make(struct my_snapshot *v, const struct my_stamps *stamps)
{
    v->tables = cdcd_arena_alloc(&v->arena, (v->models.n + 1) * sizeof *v->tables);
    for (size_t i = 0; i < v->models.n; i++) {
        const struct my_table *model = v->models.items[i];
        struct my_stamp name = {.db = model->db, .table = model->name};
        const struct my_stamp *found =
            stamps->n ? bsearch(&name, stamps->items, stamps->n, sizeof name, by_name) : NULL;
        if (!found || model->view || model->sequence)
            continue;
        struct my_snap_table *t = &v->tables[v->ntables++];
        *t = (struct my_snap_table){.model = model, .stamp = *found};
        t->stamp.db = model->db;
        t->stamp.table = model->name;
        t->stamp.engine = cdcd_arena_dup(&v->arena, found->engine, strlen(found->engine));
        t->label = keep(&v->arena, cdcd_xasprintf("%s.%s", model->db, model->name));
        my_snap_key_of(model, &v->arena, &t->key);
        t->identity = my_snap_identity(model, &t->key, &v->arena);
        if (!versions_rows(t->stamp.engine))
            cdcd_warn("mysql",
                      "%s is stored in engine %s, which has no consistent views: rows that change "
                      "while the snapshot is taken come as they are when they are read. "
                      "ALTER TABLE ... ENGINE=InnoDB mends that",
                      t->label, t->stamp.engine);
    }
    sort_labels(v);
}

/* ---- how to read one ---- */

static bool selected_as_key(const struct my_key_column *k)
{
    return k->kind == MY_KEY_NUMBER || k->kind == MY_KEY_FLOAT || k->kind == MY_KEY_TEMPORAL ||
           k->kind == MY_KEY_NAMED;
}

/* FLOAT as a double: as FLOAT the server would print six digits. Not `+0e0`, which loses the sign
 * of -0. */
static void add_expression(const struct my_table *t, const char *name, struct cdcd_buf *out)
{
    int i = my_table_column(t, name);
    const char *type = i >= 0 ? t->columns[i].type : "";
    bool real = strncmp(type, "FLOAT", 5) == 0 || strncmp(type, "DOUBLE", 6) == 0 ||
                strncmp(type, "REAL", 4) == 0;
    char *quoted = my_sql(real ? "%I*1e0" : "%I", name);
    cdcd_buf_adds(out, quoted);
    free(quoted);
}

static void make_select(struct my_snap_table *t)
{
    const struct my_shape *shape = t->shape;
    struct cdcd_buf b;
    cdcd_buf_init(&b, 0);
    t->columns = cdcd_xcalloc(shape->ncolumns + 1, sizeof *t->columns);
    t->key_field = cdcd_xcalloc(t->key.n + 1, sizeof *t->key_field);
    for (size_t k = 0; k < t->key.n; k++)
        t->key_field[k] = SIZE_MAX;
    for (uint32_t i = 0; i < shape->ncolumns; i++) {
        const struct my_column_decoder *d = &shape->columns[i];
        if (d->column < 0)
            continue;
        for (size_t k = 0; k < t->key.n; k++) {
            if (selected_as_key(&t->key.columns[k]) &&
                my_name_equal(d->name, t->key.columns[k].name))
                t->key_field[k] = t->ncolumns;
        }
        cdcd_buf_adds(&b, t->ncolumns ? ", " : "");
        add_expression(t->model, d->name, &b);
        t->columns[t->ncolumns++] = (struct my_snap_column){(uint32_t)d->column, i};
    }
    t->nselect = t->ncolumns;
    for (size_t k = 0; k < t->key.n; k++) {
        if (t->key_field[k] != SIZE_MAX)
            continue;
        cdcd_buf_adds(&b, t->nselect ? ", " : "");
        my_key_expression(&t->key.columns[k], &b);
        t->key_field[k] = t->nselect++;
    }
    if (t->nselect == 0) { /* every column is excluded, and there is no key */
        cdcd_buf_adds(&b, "1");
        t->nselect = 1;
    }
    t->select = (char *)cdcd_buf_cstr(&b);
}

enum cdcd_rc my_snap_shape(struct cdcd_source *s, struct my_snap_table *t, struct cdcd_error *err)
{
    enum cdcd_rc rc = CDCD_OK;
    pthread_mutex_lock(&s->snapshot->shape_lock);
    if (!t->shape)
        rc = my_shape_of_table(t->model, &s->server, s->filter, &t->shape, err);
    if (rc == CDCD_OK && !t->select && t->shape->captured)
        make_select(t);
    pthread_mutex_unlock(&s->snapshot->shape_lock);
    return rc;
}

void my_snap_table_free(struct my_snap_table *t)
{
    my_shape_free(t->shape);
    free(t->select);
    free(t->columns);
    free(t->key_field);
}

/* ---- errors ---- */

enum cdcd_rc my_snap_moved(const struct my_snap_table *t, struct cdcd_error *err, const char *what)
{
    return cdcd_error_set(err, CDCD_ERR_RETRY,
                          "table %s %s after the snapshot was taken: what is left of it is read "
                          "again under a new view",
                          t->label, what);
}

bool my_denied(MYSQL *m)
{
    switch (mysql_errno(m)) {
    case ER_DBACCESS_DENIED_ERROR:
    case ER_ACCESS_DENIED_ERROR:
    case ER_TABLEACCESS_DENIED_ERROR:
    case ER_COLUMNACCESS_DENIED_ERROR:
    case ER_SPECIFIC_ACCESS_DENIED_ERROR: return true;
    default: return false;
    }
}

enum cdcd_rc my_snap_error(const struct cdcd_source *s, MYSQL *m, const struct my_snap_table *t,
                           struct cdcd_error *err)
{
    if (my_denied(m))
        return cdcd_error_set(err, CDCD_ERR_CONFIG,
                              "the user may not read table %s: %s. Run GRANT SELECT ON `%s`.* TO "
                              "the user",
                              t->label, mysql_error(m), t->model->db);
    switch (mysql_errno(m)) {
    case 0: return CDCD_ERROR;
    case ER_TABLE_DEF_CHANGED: return my_snap_moved(t, err, "was altered");
    case ER_NO_SUCH_TABLE:
    case ER_BAD_DB_ERROR: return my_snap_moved(t, err, "was dropped or renamed");
    case ER_BAD_FIELD_ERROR:
    case MY_ER_NO_SUCH_KEY: return my_snap_moved(t, err, "lost a column or its key");
    case ER_LOCK_WAIT_TIMEOUT:
        return cdcd_error_set(err, CDCD_ERR_RETRY,
                              "table %s stayed locked by somebody else for longer than "
                              "snapshot.lock.timeout.ms (%lld); see SHOW PROCESSLIST",
                              t->label, (long long)s->cfg->lock_timeout_ms);
    default: return my_error(m, err, "cannot read table %s", t->label);
    }
}
