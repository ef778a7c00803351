/*
 * shapes.c: the models of all tables of the databases that are captured, as they are at one place
 * of the log, also of tables that are not captured: a rename may make them so (online schema
 * changes work on such a table and swap it in).
 *
 * A table is the note ["db","table"], a database ["db"]; what was changed since the last batch is
 * marked, and what is gone is kept until its note is taken back.
 */
#include "ddl.h"

#include <jansson.h>
#include <stdlib.h>

struct database {
    char *name, *charset, *collation;
    bool changed, gone;
};

struct entry {
    char *db, *name;        /* as they are found: folded with lower_case_table_names */
    struct my_table *table; /* NULL: gone */
    bool changed;
};

struct my_shapes {
    const struct my_server *server;
    const struct my_filter *filter;
    struct entry *entries; /* sorted by db, name */
    size_t n, cap;
    struct database *databases;
    size_t ndatabases;
};

struct my_shapes *my_shapes_new(const struct my_server *server, const struct my_filter *f)
{
    struct my_shapes *s = cdcd_xcalloc(1, sizeof *s);

    s->server = server;
    s->filter = f;
    return s;
}

static void clear(struct my_shapes *s)
{
    for (size_t i = 0; i < s->n; i++) {
        my_table_free(s->entries[i].table);
        free(s->entries[i].db);
        free(s->entries[i].name);
    }
    for (size_t i = 0; i < s->ndatabases; i++) {
        free(s->databases[i].name);
        free(s->databases[i].charset);
        free(s->databases[i].collation);
    }
    free(s->entries);
    free(s->databases);
    s->entries = NULL;
    s->databases = NULL;
    s->n = s->cap = s->ndatabases = 0;
}

void my_shapes_free(struct my_shapes *s)
{
    if (!s)
        return;
    clear(s);
    free(s);
}

bool my_shapes_fold(const struct my_shapes *s)
{
    return s->server->lower_case_table_names != 0;
}

bool my_shapes_tracks(const struct my_shapes *s, const char *db)
{
    return my_filter_database(s->filter, db);
}

/* ---- tables by name ---- */

/* Where it is, or where it belongs. */
static size_t position_of(const struct my_shapes *s, const char *db, const char *name, bool *found)
{
    size_t lo = 0, hi = s->n;

    *found = false;
    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;
        int c = strcmp(s->entries[mid].db, db);
        if (c == 0)
            c = strcmp(s->entries[mid].name, name);
        if (c == 0) {
            *found = true;
            return mid;
        }
        if (c < 0)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo;
}

struct my_table *my_shapes_get(struct my_shapes *s, const char *db, const char *name)
{
    bool found;
    size_t i = position_of(s, db, name, &found);

    return found ? s->entries[i].table : NULL;
}

const struct my_table *my_shapes_find(const struct my_shapes *s, const char *db, const char *name)
{
    bool found, fold = my_shapes_fold(s);
    char *folded_db = fold ? my_name_fold(db) : NULL, *folded = fold ? my_name_fold(name) : NULL;
    size_t i = position_of(s, fold ? folded_db : db, fold ? folded : name, &found);

    free(folded_db);
    free(folded);
    return found ? s->entries[i].table : NULL;
}

static struct entry *entry_of(struct my_shapes *s, const char *db, const char *name)
{
    bool found;
    size_t i = position_of(s, db, name, &found);

    if (found)
        return &s->entries[i];
    if (s->n == s->cap) {
        s->cap = s->cap ? 2 * s->cap : 64;
        s->entries = cdcd_xrealloc(s->entries, s->cap * sizeof *s->entries);
    }
    memmove(&s->entries[i + 1], &s->entries[i], (s->n - i) * sizeof *s->entries);
    s->n++;
    s->entries[i] = (struct entry){.db = cdcd_xstrdup(db), .name = cdcd_xstrdup(name)};
    return &s->entries[i];
}

void my_shapes_put(struct my_shapes *s, struct my_table *t)
{
    bool fold = my_shapes_fold(s);
    char *db = fold ? my_name_fold(t->db) : NULL, *name = fold ? my_name_fold(t->name) : NULL;

    if (!my_shapes_tracks(s, t->db)) {
        my_table_free(t);
    } else {
        struct entry *e = entry_of(s, fold ? db : t->db, fold ? name : t->name);
        if (e->table != t)
            my_table_free(e->table);
        e->table = t;
        e->changed = true;
    }
    free(db);
    free(name);
}

void my_shapes_drop(struct my_shapes *s, const char *db, const char *name)
{
    bool found;
    size_t i = position_of(s, db, name, &found);

    if (!found)
        return;
    my_table_free(s->entries[i].table);
    s->entries[i].table = NULL;
    s->entries[i].changed = true;
}

void my_shapes_touch(struct my_shapes *s, const struct my_table *t)
{
    bool found;
    size_t i = position_of(s, t->db, t->name, &found);

    if (found)
        s->entries[i].changed = true;
}

/* ---- databases ---- */

static struct database *find_database(const struct my_shapes *s, const char *db)
{
    for (size_t i = 0; i < s->ndatabases; i++) {
        if (strcmp(s->databases[i].name, db) == 0)
            return &s->databases[i];
    }
    return NULL;
}

bool my_shapes_database(const struct my_shapes *s, const char *db, const char **charset,
                        const char **collation)
{
    const struct database *d = find_database(s, db);

    if (!d || d->gone)
        return false;
    *charset = d->charset;
    *collation = d->collation;
    return true;
}

void my_shapes_set_database(struct my_shapes *s, const char *db, const char *charset,
                            const char *collation)
{
    struct database *d = find_database(s, db);
    char *old_charset = d ? d->charset : NULL, *old_collation = d ? d->collation : NULL;

    if (!my_shapes_tracks(s, db))
        return;
    if (!d) {
        s->databases = cdcd_xrealloc(s->databases, (s->ndatabases + 1) * sizeof *s->databases);
        d = &s->databases[s->ndatabases++];
        *d = (struct database){.name = cdcd_xstrdup(db)};
    }
    d->charset = my_charset_canon(charset);
    d->collation = collation ? my_charset_canon(collation) : NULL;
    d->gone = false;
    d->changed = true;
    free(old_charset);
    free(old_collation);
}

void my_shapes_drop_database(struct my_shapes *s, const char *db)
{
    struct database *d = find_database(s, db);

    if (d)
        d->gone = d->changed = true;
    for (size_t i = 0; i < s->n; i++) {
        if (strcmp(s->entries[i].db, db) == 0 && s->entries[i].table)
            my_shapes_drop(s, s->entries[i].db, s->entries[i].name);
    }
}

/* ---- notes ---- */

enum { DATABASE_NOTE_VERSION = 1 };

static char *note_key(const char *db, const char *name)
{
    json_t *a = name ? json_pack("[ss]", db, name) : json_pack("[s]", db);
    char *text = a ? json_dumps(a, JSON_COMPACT) : NULL;

    json_decref(a);
    return text;
}

static char *database_note(const struct database *d)
{
    json_t *o = json_pack("{si ss ss*}", "v", DATABASE_NOTE_VERSION, "charset", d->charset,
                          "collation", d->collation);
    char *text = o ? json_dumps(o, JSON_COMPACT) : NULL;

    json_decref(o);
    return text;
}

static void add_note(struct cdcd_batch *b, const char *db, const char *name, const char *value)
{
    char *key = note_key(db, name);

    if (key) /* names in the catalogue are UTF-8 */
        cdcd_batch_note(b, cdcd_slice_str(key),
                        value ? cdcd_slice_str(value) : (struct cdcd_slice){NULL, 0});
    free(key);
}

void my_shapes_notes(struct my_shapes *s, struct cdcd_batch *b)
{
    struct cdcd_buf buf;
    size_t n = 0;

    cdcd_buf_init(&buf, 0);
    for (size_t i = 0; i < s->ndatabases; i++) {
        struct database *d = &s->databases[i];
        char *value = d->changed && !d->gone ? database_note(d) : NULL;
        if (d->changed)
            add_note(b, d->name, NULL, value);
        d->changed = false;
        free(value);
    }
    for (size_t i = 0; i < s->n; i++) {
        struct entry *e = &s->entries[i];
        cdcd_buf_clear(&buf);
        if (e->changed && e->table)
            my_table_write(e->table, &buf);
        if (e->changed)
            add_note(b, e->db, e->name, e->table ? cdcd_buf_cstr(&buf) : NULL);
        e->changed = false;
        if (e->table) {
            s->entries[n++] = *e;
        } else {
            free(e->db);
            free(e->name);
        }
    }
    s->n = n;
    cdcd_buf_free(&buf);
}

static bool load_database(struct my_shapes *s, const char *db, struct cdcd_slice value)
{
    json_t *o = json_loadb(value.ptr, value.len, 0, NULL);
    const char *charset = json_string_value(json_object_get(o, "charset"));
    bool ok = charset && json_integer_value(json_object_get(o, "v")) == DATABASE_NOTE_VERSION;

    if (ok) {
        my_shapes_set_database(s, db, charset, json_string_value(json_object_get(o, "collation")));
        struct database *d = find_database(s, db);
        if (d)
            d->changed = false;
    }
    json_decref(o);
    return ok;
}

static bool load_note(struct my_shapes *s, struct cdcd_slice key, struct cdcd_slice value)
{
    json_t *names = json_loadb(key.ptr, key.len, 0, NULL);
    const char *db = json_string_value(json_array_get(names, 0));
    const char *name = json_string_value(json_array_get(names, 1));
    struct my_table *t = name ? my_table_read(value) : NULL;
    bool ok = db && (name ? t != NULL : load_database(s, db, value));

    if (t) {
        struct entry *e = entry_of(s, db, name);
        my_table_free(e->table);
        e->table = t;
    }
    json_decref(names);
    return ok;
}

enum cdcd_rc my_shapes_load(struct my_shapes *s, const struct cdcd_notes *notes,
                            struct cdcd_error *err)
{
    size_t n = notes ? cdcd_notes_count(notes) : 0;

    clear(s);
    for (size_t i = 0; i < n; i++) {
        struct cdcd_slice key, value;
        cdcd_notes_at(notes, i, &key, &value);
        if (!load_note(s, key, value))
            return cdcd_error_set(err, CDCD_ERR_FATAL,
                                  "the stored shape of table %.*s cannot be read by this version; "
                                  "run the version that wrote it, or take a new snapshot",
                                  (int)key.len, key.ptr);
    }
    return CDCD_OK;
}

/* ---- information_schema ---- */

static enum cdcd_rc read_databases(struct my_shapes *s, MYSQL *m, struct cdcd_error *err)
{
    MYSQL_RES *res;
    MYSQL_ROW row;

    if (my_query(m, &res, err,
                 "SELECT schema_name, default_character_set_name, default_collation_name "
                 "FROM information_schema.schemata") != CDCD_OK)
        return CDCD_ERROR;
    while ((row = mysql_fetch_row(res)))
        my_shapes_set_database(s, row[0], row[1], row[2]);
    mysql_free_result(res);
    return CDCD_OK;
}

static void drop_all(struct my_shapes *s)
{
    for (size_t i = 0; i < s->n; i++)
        my_shapes_drop(s, s->entries[i].db, s->entries[i].name);
    for (size_t i = 0; i < s->ndatabases; i++)
        s->databases[i].gone = s->databases[i].changed = true;
}

enum cdcd_rc my_shapes_read(struct my_shapes *s, MYSQL *m, struct cdcd_error *err)
{
    struct my_table_list list = {0};

    /* Without the filter of tables: see above. */
    if (my_catalog_read(m, s->server, NULL, NULL, NULL, &list, err) != CDCD_OK)
        return CDCD_ERROR;
    drop_all(s);
    for (size_t i = 0; i < list.n; i++) {
        my_shapes_put(s, list.items[i]);
        list.items[i] = NULL;
    }
    my_table_list_free(&list);
    return read_databases(s, m, err);
}

enum cdcd_rc my_shapes_refresh(struct my_shapes *s, MYSQL *m, const char *db, const char *table,
                               bool *found, struct cdcd_error *err)
{
    struct my_table_list list = {0};

    if (my_catalog_read(m, s->server, NULL, db, table, &list, err) != CDCD_OK)
        return CDCD_ERROR;
    *found = list.n > 0;
    if (list.n > 0) {
        my_shapes_put(s, list.items[0]);
        list.items[0] = NULL;
    } else {
        my_shapes_drop(s, db, table);
    }
    my_table_list_free(&list);
    return CDCD_OK;
}

/* ---- statements of the log ---- */

static bool is_captured(const struct my_shapes *s, const struct my_effect *e)
{
    if (e->table)
        return my_filter_table(s->filter, e->db, e->table);
    return my_filter_database(s->filter, e->db);
}

static void fill_event(const struct my_effect *all, const struct my_effect *e, struct cdcd_arena *a,
                       struct cdcd_ddl *out)
{
    *out = (struct cdcd_ddl){
        .db = cdcd_slice_str(e->db),
        .text = e->text,
    };
    switch (e->kind) {
    case MY_EFFECT_TABLE:
        out->table = my_ddl_table_list(all, e->db, a);
        out->tables = &e->change;
        out->ntables = 1;
        break;
    case MY_EFFECT_DATABASE: break; /* table is null */
    case MY_EFFECT_INDEX:
    case MY_EFFECT_ALTER_DATABASE: out->table = (struct cdcd_slice){"", 0}; break;
    }
}

static void fill_events(const struct my_shapes *s, struct my_effect *effects, struct cdcd_arena *a,
                        struct cdcd_ddl **out, size_t *n)
{
    struct my_effect **link = &effects;

    *n = 0;
    *out = NULL;
    while (*link) {
        if (is_captured(s, *link)) {
            link = &(*link)->next;
            ++*n;
        } else {
            *link = (*link)->next;
        }
    }
    if (*n == 0)
        return;
    *out = cdcd_arena_alloc(a, *n * sizeof **out);
    size_t i = 0;
    for (const struct my_effect *e = effects; e; e = e->next)
        fill_event(effects, e, a, &(*out)[i++]);
}

enum cdcd_rc my_shapes_apply(struct my_shapes *s, const struct my_event *query,
                             struct cdcd_arena *a, struct cdcd_ddl **out, size_t *n,
                             struct cdcd_error *err)
{
    struct my_ddl d = {.shapes = s, .server = s->server, .query = query, .a = a};
    struct cdcd_slice text, db = query->query.db;
    char *default_db = cdcd_arena_dup(a, db.ptr ? db.ptr : "", db.len);

    (void)err;
    d.db = default_db;
    if (my_shapes_fold(s)) {
        char *folded = my_name_fold(default_db);
        d.db = cdcd_arena_dup(a, folded, strlen(folded));
        free(folded);
    }
    d.unreadable = !my_query_text(query, a, &text);
    my_lex_begin(&d.lx, text, s->server->flavor, s->server->version,
                 query->query.sql_mode_ansi_quotes, query->query.sql_mode_no_backslash, a);
    my_ddl_run(&d);
    fill_events(s, d.effects, a, out, n);
    return CDCD_OK;
}

/* ---- the snapshot's events ---- */

struct snapshot_ddl {
    struct my_shapes *shapes;
    struct cdcd_arena *a;
    struct cdcd_ddl *out;
    size_t n, cap;
};

static struct cdcd_ddl *add_event(struct snapshot_ddl *x, const char *db, const char *table,
                                  const char *text)
{
    if (x->n == x->cap) {
        size_t cap = x->cap ? 2 * x->cap : 64;
        struct cdcd_ddl *out = cdcd_arena_alloc(x->a, cap * sizeof *out);
        if (x->n)
            memcpy(out, x->out, x->n * sizeof *out);
        x->out = out;
        x->cap = cap;
    }
    struct cdcd_ddl *d = &x->out[x->n++];
    *d = (struct cdcd_ddl){
        .db = {cdcd_arena_dup(x->a, db, strlen(db)), strlen(db)},
        .text = {cdcd_arena_dup(x->a, text, strlen(text)), strlen(text)},
    };
    if (table)
        d->table = (struct cdcd_slice){cdcd_arena_dup(x->a, table, strlen(table)), strlen(table)};
    return d;
}

static void add_sql(struct snapshot_ddl *x, const char *db, char *sql)
{
    add_event(x, db, NULL, sql);
    free(sql);
}

static void add_change(struct snapshot_ddl *x, struct cdcd_ddl *d, const struct my_table *t,
                       enum cdcd_ddl_type type)
{
    struct cdcd_ddl_table *change = cdcd_arena_alloc(x->a, sizeof *change);

    if (type == CDCD_DDL_DROP)
        *change = (struct cdcd_ddl_table){.type = type, .db = d->db, .table = d->table};
    else
        my_ddl_table_change(t, type, x->shapes->server->flavor, x->a, change);
    d->tables = change;
    d->ntables = 1;
}

static bool in_snapshot(const struct my_shapes *s, const struct entry *e)
{
    return e->table && !e->table->sequence && !e->table->view &&
           my_filter_table(s->filter, e->table->db, e->table->name);
}

static void add_drops(struct snapshot_ddl *x)
{
    for (size_t i = 0; i < x->shapes->n; i++) {
        const struct my_table *t = x->shapes->entries[i].table;
        if (!in_snapshot(x->shapes, &x->shapes->entries[i]))
            continue;
        char *sql = my_sql("DROP TABLE IF EXISTS %I.%I", t->db, t->name);
        add_change(x, add_event(x, t->db, t->name, sql), t, CDCD_DDL_DROP);
        free(sql);
    }
}

static enum cdcd_rc add_database(struct snapshot_ddl *x, const char *db)
{
    const char *charset = NULL, *collation = NULL;

    add_sql(x, db, my_sql("DROP DATABASE IF EXISTS %I", db));
    if (my_shapes_database(x->shapes, db, &charset, &collation) && collation)
        add_sql(x, db, my_sql("CREATE DATABASE %I CHARSET %s COLLATE %s", db, charset, collation));
    else if (charset)
        add_sql(x, db, my_sql("CREATE DATABASE %I CHARSET %s", db, charset));
    else
        add_sql(x, db, my_sql("CREATE DATABASE %I", db));
    add_sql(x, db, my_sql("USE %I", db));
    return CDCD_OK;
}

enum cdcd_rc my_shapes_snapshot_ddl(struct my_shapes *s, MYSQL *m, struct cdcd_arena *a,
                                    struct cdcd_ddl **out, size_t *n, struct cdcd_error *err)
{
    struct snapshot_ddl x = {.shapes = s, .a = a};
    const char *db = NULL;

    add_sql(&x, "",
            my_sql("SET character_set_server=%s, collation_server=%s", s->server->charset,
                   s->server->collation));
    add_drops(&x);
    for (size_t i = 0; i < s->n; i++) {
        const struct my_table *t = s->entries[i].table;
        char *sql = NULL;
        if (!in_snapshot(s, &s->entries[i]))
            continue;
        if ((!db || strcmp(db, t->db) != 0) && add_database(&x, t->db) != CDCD_OK)
            return CDCD_ERROR;
        db = t->db;
        if (my_catalog_create_table(m, t->db, t->name, &sql, err) != CDCD_OK)
            return CDCD_ERROR;
        add_change(&x, add_event(&x, t->db, t->name, sql), t, CDCD_DDL_CREATE);
        free(sql);
    }
    *out = x.out;
    *n = x.n;
    return CDCD_OK;
}
