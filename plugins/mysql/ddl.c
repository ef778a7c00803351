/*
 * ddl.c: the statements that define things: databases, DROP and RENAME, indexes, sequences. CREATE
 * TABLE and ALTER TABLE have files of their own.
 */
#include "ddl.h"
#include "value.h"

#include <stdio.h>
#include <stdlib.h>

bool my_ddl_if_exists(struct my_lex *lx)
{
    return my_lex_take2(lx, "IF", "EXISTS");
}

bool my_ddl_if_not_exists(struct my_lex *lx)
{
    struct my_lex saved = *lx;

    if (my_lex_take2(lx, "IF", "NOT") && my_lex_take(lx, "EXISTS"))
        return true;
    *lx = saved;
    return false;
}

static const char *fold(struct my_ddl *d, const char *name)
{
    if (!my_shapes_fold(d->shapes))
        return name;
    char *folded = my_name_fold(name);
    const char *out = cdcd_arena_dup(d->a, folded, strlen(folded));
    free(folded);
    return out;
}

bool my_ddl_table_name(struct my_ddl *d, const char **db, const char **name)
{
    if (!my_lex_qualified(&d->lx, db, name))
        return false;
    *db = fold(d, *db);
    *name = fold(d, *name);
    return true;
}

void my_ddl_effect(struct my_ddl *d, enum my_effect_kind kind, enum cdcd_ddl_type type,
                   const char *db, const char *table, const struct my_table *after,
                   struct cdcd_slice text)
{
    struct my_effect *e = cdcd_arena_alloc(d->a, sizeof *e);

    *e = (struct my_effect){
        .kind = kind,
        .db = cdcd_arena_dup(d->a, db, strlen(db)),
        .table = table ? cdcd_arena_dup(d->a, table, strlen(table)) : NULL,
        .text = text,
    };
    if (after) {
        my_ddl_table_change(after, type, d->server->flavor, d->a, &e->change);
    } else if (kind == MY_EFFECT_TABLE) {
        e->change.type = type;
        e->change.db = cdcd_slice_str(e->db);
        e->change.table = cdcd_slice_str(e->table);
    }
    *d->last_effect = e;
    d->last_effect = &e->next;
}

void my_ddl_unsure(struct my_ddl *d, const char *db, const char *name, const char *at)
{
    struct my_table *t = my_shapes_get(d->shapes, db, name);
    size_t offset = at > d->text.ptr ? (size_t)(at - d->text.ptr) : 0;
    size_t n = d->text.len < 300 ? d->text.len : 300;

    if (!my_shapes_tracks(d->shapes, db))
        return;
    if (!t) {
        my_shapes_put(d->shapes, my_table_new(db, name));
        t = my_shapes_get(d->shapes, db, name);
    }
    t->unsure = true;
    if (!t->why)
        t->why = cdcd_xasprintf("not understood at byte %zu of: %.*s%s", offset, (int)n,
                                d->text.ptr, n < d->text.len ? "..." : "");
    my_shapes_touch(d->shapes, t);
    my_ddl_effect(d, MY_EFFECT_INDEX, CDCD_DDL_ALTER, db, name, NULL, d->text);
}

/* ---- databases ---- */

static void read_database_options(struct my_ddl *d, struct my_table_options *o)
{
    while (d->lx.t.kind != MY_TOK_END && !my_lex_is_punct(&d->lx, ';')) {
        if (!my_ddl_table_option(d, o))
            my_lex_next(&d->lx);
        my_lex_take_punct(&d->lx, ',');
    }
}

/* A collation alone gives its charset; nothing given: what the server had at the time. */
static void set_database(struct my_ddl *d, const char *db, const struct my_table_options *o,
                         bool create)
{
    const char *charset = o->charset;
    char *of = !charset && o->collation ? my_charset_of_collation(o->collation) : NULL;

    if (!charset)
        charset = of;
    if (!charset && create) {
        charset = my_charset_name(d->query->query.collation_server);
        if (!charset && d->server->charset[0])
            charset = d->server->charset;
    }
    if (charset)
        my_shapes_set_database(d->shapes, db, charset, o->collation);
    free(of);
}

static void create_database(struct my_ddl *d)
{
    struct my_table_options o = {0};
    const char *charset, *collation;
    bool keep = my_ddl_if_not_exists(&d->lx);
    const char *db = my_lex_name(&d->lx);

    if (!db)
        return;
    db = fold(d, db);
    read_database_options(d, &o);
    if (!keep || !my_shapes_database(d->shapes, db, &charset, &collation))
        set_database(d, db, &o, true);
    my_ddl_effect(d, MY_EFFECT_DATABASE, CDCD_DDL_CREATE, db, NULL, NULL, d->text);
}

static void alter_database(struct my_ddl *d)
{
    struct my_table_options o = {0};
    struct my_lex saved = d->lx;
    const char *db = my_lex_name(&d->lx);
    bool no_name = !db || d->lx.t.kind == MY_TOK_STRING || my_lex_is_punct(&d->lx, '=');

    if (no_name || my_lex_is(&saved, "DEFAULT") || my_lex_is(&saved, "CHARACTER") ||
        my_lex_is(&saved, "COLLATE") || my_lex_is(&saved, "CHARSET")) {
        d->lx = saved;
        db = d->db;
    }
    db = fold(d, db);
    read_database_options(d, &o);
    set_database(d, db, &o, false);
    my_ddl_effect(d, MY_EFFECT_ALTER_DATABASE, CDCD_DDL_ALTER, db, NULL, NULL, d->text);
}

static void drop_database(struct my_ddl *d)
{
    my_ddl_if_exists(&d->lx);
    const char *db = my_lex_name(&d->lx);

    if (!db)
        return;
    db = fold(d, db);
    my_shapes_drop_database(d->shapes, db);
    my_ddl_effect(d, MY_EFFECT_DATABASE, CDCD_DDL_DROP, db, NULL, NULL, d->text);
}

/* ---- tables ---- */

static void put_quoted(struct cdcd_buf *b, const char *name)
{
    cdcd_buf_adds(b, "`");
    for (const char *p = name; *p; p++) {
        if (*p == '`')
            cdcd_buf_adds(b, "`");
        cdcd_buf_add(b, p, 1);
    }
    cdcd_buf_adds(b, "`");
}

static struct cdcd_slice drop_text(struct my_ddl *d, bool if_exists, const char *db,
                                   const char *name)
{
    struct cdcd_buf b;

    cdcd_buf_init(&b, 0);
    cdcd_buf_adds(&b, if_exists ? "DROP TABLE IF EXISTS " : "DROP TABLE ");
    put_quoted(&b, db);
    cdcd_buf_adds(&b, ".");
    put_quoted(&b, name);
    struct cdcd_slice text = {cdcd_arena_dup(d->a, b.ptr, b.len), b.len};
    cdcd_buf_free(&b);
    return text;
}

static void drop_tables(struct my_ddl *d, bool sequence)
{
    bool if_exists = my_ddl_if_exists(&d->lx);

    do {
        const char *db = d->db, *name;
        if (!my_ddl_table_name(d, &db, &name))
            return;
        my_shapes_drop(d->shapes, db, name);
        if (!sequence)
            my_ddl_effect(d, MY_EFFECT_TABLE, CDCD_DDL_DROP, db, name, NULL,
                          drop_text(d, if_exists, db, name));
    } while (my_lex_take_punct(&d->lx, ','));
}

static void rename_one(struct my_ddl *d, const char *db, const char *name, const char *new_db,
                       const char *new_name, struct cdcd_slice clause)
{
    const struct my_table *old = my_shapes_get(d->shapes, db, name);

    if (!old) {
        my_ddl_unsure(d, new_db, new_name, clause.ptr);
        return;
    }
    struct my_table *t = my_table_copy(old);
    free(t->db);
    free(t->name);
    t->db = cdcd_xstrdup(new_db);
    t->name = cdcd_xstrdup(new_name);
    my_shapes_drop(d->shapes, db, name);

    char *text = cdcd_xasprintf("RENAME TABLE %.*s", (int)clause.len, clause.ptr);
    size_t n = strlen(text);
    struct cdcd_slice s = {cdcd_arena_dup(d->a, text, n), n};
    free(text);
    if (!t->sequence)
        my_ddl_effect(d, MY_EFFECT_TABLE, CDCD_DDL_ALTER, new_db, new_name, t, s);
    my_shapes_put(d->shapes, t);
}

static void skip_wait(struct my_lex *lx)
{
    if (my_lex_take(lx, "WAIT"))
        my_lex_next(lx);
    else
        my_lex_take(lx, "NOWAIT");
}

/* One after the other, so that a swap through a third name works as it does in the server. */
static void rename_tables(struct my_ddl *d)
{
    my_ddl_if_exists(&d->lx);
    do {
        const char *db = d->db, *name, *new_db = d->db, *new_name, *begin = d->lx.t.begin;
        if (!my_ddl_table_name(d, &db, &name))
            return;
        skip_wait(&d->lx);
        if (!my_lex_take(&d->lx, "TO") || !my_ddl_table_name(d, &new_db, &new_name)) {
            my_ddl_unsure(d, db, name, d->lx.t.begin);
            return;
        }
        rename_one(d, db, name, new_db, new_name,
                   (struct cdcd_slice){begin, (size_t)(d->lx.last_end - begin)});
    } while (my_lex_take_punct(&d->lx, ','));
}

/* ---- indexes ---- */

static bool same_keys(const struct my_table *a, const struct my_table *b)
{
    if (a->nkeys != b->nkeys)
        return false;
    for (size_t i = 0; i < a->nkeys; i++) {
        if (strcmp(a->keys[i], b->keys[i]) != 0)
            return false;
    }
    return true;
}

/* With a key that is another now the table has changed for those who read it. */
static void put_indexed(struct my_ddl *d, struct my_table *t)
{
    const struct my_table *old = my_shapes_get(d->shapes, t->db, t->name);
    bool same;

    my_table_set_keys(t);
    same = same_keys(old, t);
    my_ddl_effect(d, same ? MY_EFFECT_INDEX : MY_EFFECT_TABLE, CDCD_DDL_ALTER, t->db, t->name,
                  same ? NULL : t, d->text);
    my_shapes_put(d->shapes, t);
}

/* [UNIQUE ...] INDEX name [USING x] ON t (parts): read like the clause of a CREATE TABLE. */
static void create_index(struct my_ddl *d)
{
    struct my_lex *lx = &d->lx;
    struct my_index_list list = {0};
    const char *db = d->db, *table;
    bool unique = my_lex_take(lx, "UNIQUE");

    if (!my_lex_take(lx, "INDEX")) {
        my_lex_next(lx); /* FULLTEXT, SPATIAL, VECTOR */
        my_lex_take(lx, "INDEX");
    }
    my_ddl_if_not_exists(lx);
    const char *name = my_lex_name(lx);
    if (my_lex_take(lx, "USING") || my_lex_take(lx, "TYPE"))
        my_lex_next(lx);
    if (!name || !my_lex_take(lx, "ON") || !my_ddl_table_name(d, &db, &table))
        return;
    const struct my_table *old = my_shapes_get(d->shapes, db, table);
    if (!old || old->unsure)
        return;
    if (my_ddl_index_parts(lx, &list, name, unique)) {
        struct my_table *t = my_table_copy(old);
        bool there = false;
        for (size_t i = 0; i < t->nindexes; i++)
            there = there || my_name_equal(t->indexes[i].name, name);
        if (!there)
            my_table_add_index(t, &list.items[0]);
        put_indexed(d, t);
    } else {
        my_ddl_unsure(d, db, table, lx->t.begin);
    }
    my_index_list_free(&list);
}

static void drop_index(struct my_ddl *d)
{
    const char *db = d->db, *table;
    size_t n = 0;

    my_ddl_if_exists(&d->lx);
    const char *name = my_lex_name(&d->lx);
    if (!name || !my_lex_take(&d->lx, "ON") || !my_ddl_table_name(d, &db, &table))
        return;
    const struct my_table *old = my_shapes_get(d->shapes, db, table);
    if (!old || old->unsure)
        return;
    struct my_table *t = my_table_copy(old);
    for (size_t i = 0; i < t->nindexes; i++) {
        if (my_name_equal(t->indexes[i].name, name))
            my_index_free(&t->indexes[i]);
        else
            t->indexes[n++] = t->indexes[i];
    }
    t->nindexes = n;
    put_indexed(d, t);
}

/* ---- sequences ---- */

/* A table of one row, as MariaDB makes it (sql_sequence.cc: prepare_sequence_fields). */
struct my_table *my_sequence_new(const char *db, const char *name)
{
    static const struct {
        const char *name, *type;
        int32_t length;
    } columns[] = {
        {"next_not_cached_value", "BIGINT", 21},
        {"minimum_value", "BIGINT", 21},
        {"maximum_value", "BIGINT", 21},
        {"start_value", "BIGINT", 21},
        {"increment", "BIGINT", 21},
        {"cache_size", "BIGINT UNSIGNED", 21},
        {"cycle_option", "TINYINT UNSIGNED", 1},
        {"cycle_count", "BIGINT", 21},
    };
    struct my_table *t = my_table_new(db, name);

    t->sequence = true;
    t->ncolumns = sizeof columns / sizeof *columns;
    t->columns = cdcd_xcalloc(t->ncolumns, sizeof *t->columns);
    for (size_t i = 0; i < t->ncolumns; i++) {
        t->columns[i] = (struct my_column){
            .name = cdcd_xstrdup(columns[i].name),
            .type = cdcd_xstrdup(columns[i].type),
            .length = columns[i].length,
            .scale = -1,
            .unsigned_ = strstr(columns[i].type, "UNSIGNED") != NULL,
        };
    }
    return t;
}

static void create_sequence(struct my_ddl *d)
{
    const char *db = d->db, *name;
    bool keep = my_ddl_if_not_exists(&d->lx);

    if (!my_ddl_table_name(d, &db, &name))
        return;
    if (!keep || !my_shapes_get(d->shapes, db, name))
        my_shapes_put(d->shapes, my_sequence_new(db, name));
}

/* ---- dispatch ---- */

static void run_create(struct my_ddl *d)
{
    bool replace = my_lex_take2(&d->lx, "OR", "REPLACE");
    bool temporary = my_lex_take(&d->lx, "TEMPORARY");

    if (!my_lex_take(&d->lx, "ONLINE"))
        my_lex_take(&d->lx, "OFFLINE");
    if (my_lex_take(&d->lx, "TABLE"))
        my_ddl_create_table(d, replace, temporary);
    else if (my_lex_take(&d->lx, "DATABASE") || my_lex_take(&d->lx, "SCHEMA"))
        create_database(d);
    else if (my_lex_take(&d->lx, "SEQUENCE"))
        create_sequence(d);
    else
        create_index(d);
}

static void run_drop(struct my_ddl *d)
{
    if (my_lex_take(&d->lx, "TEMPORARY"))
        return;
    if (!my_lex_take(&d->lx, "ONLINE"))
        my_lex_take(&d->lx, "OFFLINE");
    if (my_lex_take(&d->lx, "TABLE") || my_lex_take(&d->lx, "TABLES"))
        drop_tables(d, false);
    else if (my_lex_take(&d->lx, "SEQUENCE"))
        drop_tables(d, true);
    else if (my_lex_take(&d->lx, "DATABASE") || my_lex_take(&d->lx, "SCHEMA"))
        drop_database(d);
    else if (my_lex_take(&d->lx, "INDEX"))
        drop_index(d);
}

static void run_alter(struct my_ddl *d)
{
    if (!my_lex_take(&d->lx, "ONLINE"))
        my_lex_take(&d->lx, "OFFLINE");
    my_lex_take(&d->lx, "IGNORE");
    if (my_lex_take(&d->lx, "TABLE"))
        my_ddl_alter_table(d);
    else if (my_lex_take(&d->lx, "DATABASE") || my_lex_take(&d->lx, "SCHEMA"))
        alter_database(d);
}

/* From the first token to the last: without the comments around it, and the semicolon. */
static struct cdcd_slice statement_text(const struct my_lex *start)
{
    struct my_lex lx = *start;
    const char *end = lx.t.begin;
    bool inside = false; /* the last token is in a versioned comment */

    for (; lx.t.kind != MY_TOK_END; my_lex_next(&lx)) {
        if (my_lex_is_punct(&lx, ';'))
            continue;
        end = lx.t.end;
        inside = lx.executable > 0;
    }
    const char *close = inside ? memmem(end, (size_t)(lx.end - end), "*/", 2) : NULL;
    if (close)
        end = close + 2;
    return (struct cdcd_slice){start->t.begin, (size_t)(end - start->t.begin)};
}

void my_ddl_run(struct my_ddl *d)
{
    d->last_effect = &d->effects;
    if (my_lex_take2(&d->lx, "SET", "STATEMENT")) {
        while (d->lx.t.kind != MY_TOK_END && !my_lex_take(&d->lx, "FOR"))
            my_lex_next(&d->lx);
    }
    d->text = statement_text(&d->lx);
    if (my_lex_take(&d->lx, "CREATE"))
        run_create(d);
    else if (my_lex_take(&d->lx, "ALTER"))
        run_alter(d);
    else if (my_lex_take(&d->lx, "DROP"))
        run_drop(d);
    else if (my_lex_take2(&d->lx, "RENAME", "TABLE") || my_lex_take2(&d->lx, "RENAME", "TABLES"))
        rename_tables(d);
}
