/*
 * ddl_alter.c: the clauses of ALTER TABLE, collected; ddl_apply.c applies them.
 *
 * Clauses that cannot change what a row looks like are passed over up to the next comma outside
 * of brackets. Partition clauses come last and hold commas of their own: they end the reading.
 */
#include "ddl.h"

#include <stdlib.h>
#include <strings.h>

#define APPEND(list, count)                                          \
    ((list) = cdcd_xrealloc((list), ((count) + 1) * sizeof *(list)), \
     memset(&(list)[count], 0, sizeof *(list)), &(list)[(count)++])

static void skip_clause(struct my_lex *lx)
{
    while (lx->t.kind != MY_TOK_END && !my_lex_is_punct(lx, ',') && !my_lex_is_punct(lx, ';')) {
        if (!my_lex_is_punct(lx, '('))
            my_lex_next(lx);
        else if (!my_lex_skip_brackets(lx))
            return;
    }
}

static void skip_rest(struct my_lex *lx)
{
    while (lx->t.kind != MY_TOK_END)
        my_lex_next(lx);
}

static bool is_any(const struct my_lex *lx, const char *const *words)
{
    for (; *words; words++) {
        if (my_lex_is(lx, *words))
            return true;
    }
    return false;
}

/* ---- columns ---- */

static bool read_place(struct my_ddl *d, struct my_column_def *def)
{
    if (my_lex_take(&d->lx, "FIRST")) {
        def->after = "";
    } else if (my_lex_take(&d->lx, "AFTER")) {
        const char *db = "";
        if (!my_lex_qualified(&d->lx, &db, &def->after))
            return false;
    }
    return true;
}

/* parts_list.txt and db.parts_list.txt: the column is the last part. */
static const char *column_name(struct my_lex *lx)
{
    const char *name = my_lex_name(lx);

    while (name && my_lex_take_punct(lx, '.'))
        name = my_lex_name(lx);
    return name;
}

static bool read_column(struct my_ddl *d, struct my_alter *al, const char *change, bool if_exists,
                        bool if_not_exists)
{
    const char *name = column_name(&d->lx);

    if (!name)
        return false;
    struct my_column_def *def = APPEND(al->columns, al->ncolumns);
    def->c.name = cdcd_xstrdup(name);
    def->change = change;
    def->if_exists = if_exists;
    def->if_not_exists = if_not_exists;
    if (!my_ddl_column(d, def) || !read_place(d, def))
        return false;
    my_ddl_column_indexes(&al->indexes, def);
    return true;
}

static bool read_add(struct my_ddl *d, struct my_alter *al)
{
    struct my_lex *lx = &d->lx;
    bool is;

    if (my_lex_is(lx, "PARTITION")) {
        skip_rest(lx);
        return true;
    }
    if (my_lex_take2(lx, "SYSTEM", "VERSIONING")) {
        al->add_versioning = true;
        return true;
    }
    struct my_token next = my_lex_peek(lx);
    if (my_lex_is(lx, "PERIOD") && next.kind == MY_TOK_WORD && next.text.len == 3 &&
        strncasecmp(next.text.ptr, "FOR", 3) == 0)
        return my_ddl_period(lx, &al->period);
    if (!my_ddl_constraint(d, &al->indexes, &is))
        return false;
    if (is)
        return true;
    my_lex_take(lx, "COLUMN");
    bool if_not_exists = my_ddl_if_not_exists(lx);
    if (!my_lex_take_punct(lx, '('))
        return read_column(d, al, NULL, false, if_not_exists);
    do {
        if (!my_ddl_constraint(d, &al->indexes, &is))
            return false;
        if (!is && !read_column(d, al, NULL, false, if_not_exists))
            return false;
    } while (my_lex_take_punct(lx, ','));
    return my_lex_take_punct(lx, ')');
}

static bool read_drop(struct my_ddl *d, struct my_alter *al)
{
    static const char *const others[] = {"FOREIGN", "CHECK", "PERIOD", NULL};
    struct my_lex *lx = &d->lx;

    if (my_lex_is(lx, "PARTITION")) {
        skip_rest(lx);
        return true;
    }
    if (my_lex_take2(lx, "SYSTEM", "VERSIONING")) {
        al->drop_versioning = true;
        return true;
    }
    if (my_lex_take2(lx, "PRIMARY", "KEY")) {
        al->drop_primary = true;
        return true;
    }
    if (my_lex_take(lx, "INDEX") || my_lex_take(lx, "KEY") || my_lex_take(lx, "CONSTRAINT")) {
        my_ddl_if_exists(lx);
        const char *name = my_lex_name(lx);
        if (!name)
            return false;
        *APPEND(al->drop_indexes, al->ndrop_indexes) = name;
        return true;
    }
    if (is_any(lx, others)) { /* no column: the words are reserved, or FOR follows */
        struct my_token next = my_lex_peek(lx);
        if (!my_lex_is(lx, "PERIOD") || (next.kind == MY_TOK_WORD && next.text.len == 3 &&
                                         strncasecmp(next.text.ptr, "FOR", 3) == 0)) {
            skip_clause(lx);
            return true;
        }
    }
    my_lex_take(lx, "COLUMN");
    my_ddl_if_exists(lx);
    const char *name = column_name(lx);
    if (!name)
        return false;
    *APPEND(al->drops, al->ndrops) = name;
    if (!my_lex_take(lx, "RESTRICT"))
        my_lex_take(lx, "CASCADE");
    return true;
}

static bool read_rename(struct my_ddl *d, struct my_alter *al)
{
    struct my_lex *lx = &d->lx;
    bool column = my_lex_take(lx, "COLUMN");

    if (column || my_lex_take(lx, "INDEX") || my_lex_take(lx, "KEY")) {
        my_ddl_if_exists(lx);
        const char *from = column_name(lx);
        if (!from || !my_lex_take(lx, "TO"))
            return false;
        const char *to = my_lex_name(lx);
        if (!to)
            return false;
        struct my_rename *r = column ? APPEND(al->renames, al->nrenames)
                                     : APPEND(al->index_renames, al->nindex_renames);
        *r = (struct my_rename){from, to};
        return true;
    }
    if (!my_lex_take(lx, "TO") && !my_lex_take(lx, "AS"))
        my_lex_take_punct(lx, '=');
    al->new_db = d->db;
    return my_ddl_table_name(d, &al->new_db, &al->new_name);
}

static bool read_alter(struct my_ddl *d, struct my_alter *al)
{
    struct my_lex *lx = &d->lx;
    static const char *const others[] = {"INDEX", "KEY", "CHECK", "CONSTRAINT", NULL};

    if (is_any(lx, others)) {
        skip_clause(lx); /* visibility, enforcement */
        return true;
    }
    my_lex_take(lx, "COLUMN");
    my_ddl_if_exists(lx);
    const char *name = column_name(lx);
    if (!name)
        return false;
    struct my_alter_default *a = APPEND(al->defaults, al->ndefaults);
    a->column = name;
    if (my_lex_take2(lx, "DROP", "DEFAULT")) {
        a->drop = true;
        return true;
    }
    if (my_lex_take2(lx, "SET", "VISIBLE") || my_lex_take2(lx, "SET", "INVISIBLE")) {
        a->visible_given = true;
        a->visible = strncasecmp(lx->last_end - 7, "VISIBLE", 7) == 0 && lx->last_end[-8] == ' ';
        return true;
    }
    if (!my_lex_take2(lx, "SET", "DEFAULT"))
        return false;
    a->at = *lx;
    skip_clause(lx);
    return true;
}

static bool read_convert(struct my_ddl *d, struct my_alter *al)
{
    struct my_lex *lx = &d->lx;

    if (my_lex_take(lx, "PARTITION")) { /* MariaDB: p TO TABLE t */
        al->out_db = d->db;
        if (!my_lex_name(lx) || !my_lex_take2(lx, "TO", "TABLE") ||
            !my_ddl_table_name(d, &al->out_db, &al->out_name))
            return false;
        skip_rest(lx);
        return true;
    }
    if (my_lex_take(lx, "TABLE")) { /* t TO PARTITION p */
        al->in_db = d->db;
        if (!my_ddl_table_name(d, &al->in_db, &al->in_name))
            return false;
        skip_rest(lx);
        return true;
    }
    if (!my_lex_take(lx, "TO") ||
        !(my_lex_take(lx, "CHARSET") || my_lex_take2(lx, "CHARACTER", "SET") ||
          my_lex_take2(lx, "CHAR", "SET")))
        return false;
    al->convert = true;
    al->convert_charset = my_ddl_charset_name(lx);
    if (my_lex_take(lx, "COLLATE"))
        al->convert_collation = my_ddl_charset_name(lx);
    return true;
}

static bool is_partition_clause(const struct my_lex *lx)
{
    static const char *const words[] = {
        "PARTITION", "REORGANIZE", "COALESCE", "EXCHANGE", "TRUNCATE", "ANALYZE", "CHECK",
        "OPTIMIZE",  "REBUILD",    "REPAIR",   "REMOVE",   "DISCARD",  "IMPORT",  NULL};

    return is_any(lx, words);
}

static bool read_clause(struct my_ddl *d, struct my_alter *al)
{
    static const char *const ignored[] = {
        "ALGORITHM", "LOCK",       "ENABLE",         "DISABLE",          "FORCE",
        "WITHOUT",   "VALIDATION", "SECONDARY_LOAD", "SECONDARY_UNLOAD", NULL};
    struct my_lex *lx = &d->lx;

    if (my_lex_take(lx, "ADD"))
        return read_add(d, al);
    if (my_lex_take(lx, "DROP"))
        return read_drop(d, al);
    if (my_lex_take(lx, "RENAME"))
        return read_rename(d, al);
    if (my_lex_take(lx, "ALTER"))
        return read_alter(d, al);
    if (my_lex_take(lx, "CONVERT"))
        return read_convert(d, al);
    bool modify = my_lex_is(lx, "MODIFY");
    if (modify || my_lex_is(lx, "CHANGE")) {
        my_lex_next(lx);
        my_lex_take(lx, "COLUMN");
        bool if_exists = my_ddl_if_exists(lx);
        struct my_lex name = *lx;
        const char *change = column_name(modify ? &name : lx);
        return change && read_column(d, al, change, if_exists, false);
    }
    if (is_partition_clause(lx) || my_lex_is(lx, "ORDER")) { /* ORDER BY a, b: also last */
        skip_rest(lx);
        return true;
    }
    if (is_any(lx, ignored)) {
        skip_clause(lx);
        return true;
    }
    return my_ddl_table_option(d, &al->options);
}

/* Options may stand side by side without commas. */
static bool read_clauses(struct my_ddl *d, struct my_alter *al)
{
    struct my_lex *lx = &d->lx;

    while (lx->t.kind != MY_TOK_END && !my_lex_is_punct(lx, ';')) {
        if (!read_clause(d, al))
            return false;
        my_lex_take_punct(lx, ',');
    }
    return true;
}

static void alter_free(struct my_alter *al)
{
    for (size_t i = 0; i < al->ncolumns; i++)
        my_column_free(&al->columns[i].c);
    free(al->columns);
    free(al->drops);
    free(al->drop_indexes);
    free(al->renames);
    free(al->index_renames);
    free(al->defaults);
    my_index_list_free(&al->indexes);
}

static void partition_tables(struct my_ddl *d, const struct my_alter *al, const struct my_table *t)
{
    if (al->out_name) {
        struct my_table *part = my_table_copy(t);
        free(part->db);
        free(part->name);
        part->db = cdcd_xstrdup(al->out_db);
        part->name = cdcd_xstrdup(al->out_name);
        my_shapes_put(d->shapes, part);
    }
    if (al->in_name)
        my_shapes_drop(d->shapes, al->in_db, al->in_name);
}

static void rename_table(struct my_table *t, const struct my_alter *al)
{
    if (!al->new_name)
        return;
    free(t->db);
    free(t->name);
    t->db = cdcd_xstrdup(al->new_db);
    t->name = cdcd_xstrdup(al->new_name);
}

/* A table that is not known stays so; one that was unsure is no surer, but goes by its new name. */
static void alter_unknown(struct my_ddl *d, const struct my_alter *al, const char *db,
                          const char *name, const char *at)
{
    const struct my_table *old = my_shapes_get(d->shapes, db, name);

    if (old && al->new_name) {
        struct my_table *t = my_table_copy(old);
        rename_table(t, al);
        my_shapes_drop(d->shapes, db, name);
        my_shapes_put(d->shapes, t);
        db = al->new_db;
        name = al->new_name;
    } else if (al->new_name) {
        db = al->new_db;
        name = al->new_name;
    }
    my_ddl_unsure(d, db, name, at);
}

void my_ddl_alter_table(struct my_ddl *d)
{
    struct my_alter al = {0};
    const char *db = d->db, *name;

    my_ddl_if_exists(&d->lx);
    if (!my_ddl_table_name(d, &db, &name))
        return;
    if (my_lex_take(&d->lx, "WAIT"))
        my_lex_next(&d->lx);
    else
        my_lex_take(&d->lx, "NOWAIT");
    const struct my_table *old = my_shapes_get(d->shapes, db, name);
    bool ok = read_clauses(d, &al) && !d->unreadable;
    const char *at = d->lx.t.begin;
    struct my_table *t = old && !old->unsure ? my_table_copy(old) : NULL;
    if (ok && t && my_alter_apply(d, t, &al)) {
        partition_tables(d, &al, t);
        rename_table(t, &al);
        if (al.new_name)
            my_shapes_drop(d->shapes, db, name);
        my_ddl_effect(d, MY_EFFECT_TABLE, CDCD_DDL_ALTER, t->db, t->name, t, d->text);
        my_shapes_put(d->shapes, t); /* frees it where nobody asks for its database */
    } else {
        my_table_free(t);
        alter_unknown(d, &al, db, name, ok ? d->text.ptr : at);
    }
    alter_free(&al);
}
