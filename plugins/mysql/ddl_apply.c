/*
 * ddl_apply.c: the clauses of an ALTER TABLE applied to a model, in the order in which the servers
 * do it whatever the order of the clauses (sql_table.cc: mysql_prepare_alter_table):
 *
 *   1. The columns that were there, in their order: dropped ones left out, changed ones in their
 *      places; RENAME COLUMN and ALTER COLUMN by old names.
 *   2. New columns, and changed ones with FIRST or AFTER, in the order of their clauses: taken out
 *      of their place, then put at the end, at the front, or behind a column of the list as it is
 *      then (by its new name).
 *   3. Indexes: the old ones follow their columns, dropped ones go, new ones come last.
 */
#include "ddl.h"

#include <stdlib.h>

struct build {
    struct my_column *columns; /* the new list */
    const char **origin;       /* a column's name before; NULL: new */
    size_t n;
};

static const char *find_rename(const struct my_rename *list, size_t n, const char *name)
{
    for (size_t i = 0; i < n; i++) {
        if (my_name_equal(list[i].from, name))
            return list[i].to;
    }
    return NULL;
}

static bool is_dropped(const struct my_alter *al, const char *name)
{
    for (size_t i = 0; i < al->ndrops; i++) {
        if (my_name_equal(al->drops[i], name))
            return true;
    }
    return false;
}

static struct my_column_def *find_change(struct my_alter *al, const char *name)
{
    for (size_t i = 0; i < al->ncolumns; i++) {
        if (al->columns[i].change && my_name_equal(al->columns[i].change, name))
            return &al->columns[i];
    }
    return NULL;
}

static void insert(struct build *b, size_t at, struct my_column *c, const char *origin)
{
    memmove(&b->columns[at + 1], &b->columns[at], (b->n - at) * sizeof *b->columns);
    memmove(&b->origin[at + 1], &b->origin[at], (b->n - at) * sizeof *b->origin);
    b->columns[at] = *c;
    b->origin[at] = origin;
    b->n++;
    memset(c, 0, sizeof *c); /* the list's now */
}

static int find_built(const struct build *b, const char *name)
{
    for (size_t i = 0; i < b->n; i++) {
        if (my_name_equal(b->columns[i].name, name))
            return (int)i;
    }
    return -1;
}

/* ALTER COLUMN: the value is read now that its column's type is known. */
static bool alter_default(struct my_column *c, const struct my_alter_default *a)
{
    if (a->visible_given) {
        c->invisible = !a->visible;
        return true;
    }
    if (a->drop) {
        c->has_default = c->default_expr = false;
        my_set_string(&c->default_, NULL);
        return true;
    }
    struct my_lex at = a->at;
    return my_ddl_default(&at, c);
}

static bool keep_column(const struct my_alter *al, struct build *b, const struct my_column *old)
{
    struct my_column c;

    my_column_copy(old, &c);
    const char *renamed = find_rename(al->renames, al->nrenames, old->name);
    if (renamed)
        my_set_string(&c.name, renamed);
    bool ok = true;
    for (size_t i = 0; ok && i < al->ndefaults; i++) {
        if (my_name_equal(al->defaults[i].column, old->name))
            ok = alter_default(&c, &al->defaults[i]);
    }
    insert(b, b->n, &c, old->name);
    return ok;
}

/* What a column of the statement inherits: charset of the table (with CONVERT TO whatever the
 * clause says, see get_sql_field_charset), NOT NULL by the server's rule. */
static void finish_column(struct my_ddl *d, const struct my_table *t, struct my_alter *al,
                          struct my_column_def *def, bool *first_timestamp)
{
    if (al->convert)
        def->charset_given = def->collation_given = def->binary = false;
    my_ddl_column_charset(def, t->charset, t->collation);
    my_ddl_timestamp_defaults(def, d->server, first_timestamp);
}

static bool old_columns(struct my_ddl *d, const struct my_table *t, struct my_alter *al,
                        struct build *b, bool *first_timestamp)
{
    for (size_t i = 0; i < t->ncolumns; i++) {
        const struct my_column *old = &t->columns[i];
        struct my_column_def *def = find_change(al, old->name);
        if (is_dropped(al, old->name))
            continue;
        if (!def) {
            if (!keep_column(al, b, old))
                return false;
            continue;
        }
        finish_column(d, t, al, def, first_timestamp);
        def->placed = true;
        insert(b, b->n, &def->c, old->name);
    }
    return true;
}

/* New columns of a system-versioned table stand before the hidden ones. */
static size_t end_of_columns(const struct build *b)
{
    size_t n = b->n;

    while (n > 0 && (b->columns[n - 1].row_start || b->columns[n - 1].row_end) &&
           !b->columns[n - 1].generated)
        n--;
    return n;
}

static void take_out(struct build *b, size_t at, struct my_column *c)
{
    *c = b->columns[at];
    b->n--;
    memmove(&b->columns[at], &b->columns[at + 1], (b->n - at) * sizeof *b->columns);
    memmove(&b->origin[at], &b->origin[at + 1], (b->n - at) * sizeof *b->origin);
}

/* Where FIRST, AFTER or nothing puts it; false: there is no such column. */
static bool find_place(const struct build *b, const struct my_column_def *def, size_t *at)
{
    *at = end_of_columns(b);
    if (!def->after)
        return true;
    int after = def->after[0] ? find_built(b, def->after) : -1;
    *at = (size_t)(after + 1);
    return after >= 0 || !def->after[0];
}

static bool add_new(struct my_ddl *d, const struct my_table *t, struct my_alter *al,
                    struct build *b, struct my_column_def *def, bool *first_timestamp)
{
    size_t at;

    if (find_built(b, def->c.name) >= 0)
        return def->if_not_exists;
    finish_column(d, t, al, def, first_timestamp);
    if (!find_place(b, def, &at))
        return false;
    insert(b, at, &def->c, NULL);
    return true;
}

static bool move_changed(struct build *b, struct my_column_def *def)
{
    struct my_column c;
    size_t from = 0, at;

    if (!def->placed)
        return def->if_exists;
    if (!def->after)
        return true;
    while (from < b->n && !(b->origin[from] && my_name_equal(b->origin[from], def->change)))
        from++;
    if (from == b->n)
        return false;
    const char *origin = b->origin[from];
    take_out(b, from, &c);
    if (!find_place(b, def, &at)) {
        my_column_free(&c);
        return false;
    }
    insert(b, at, &c, origin);
    return true;
}

static bool place_rest(struct my_ddl *d, const struct my_table *t, struct my_alter *al,
                       struct build *b, bool *first_timestamp)
{
    bool ok = true;

    for (size_t i = 0; ok && i < al->ncolumns; i++) {
        struct my_column_def *def = &al->columns[i];
        ok = def->change ? move_changed(b, def) : add_new(d, t, al, b, def, first_timestamp);
    }
    return ok;
}

/* ---- indexes ---- */

static bool index_dropped(const struct my_alter *al, const struct my_index *x)
{
    if (x->primary && al->drop_primary)
        return true;
    for (size_t i = 0; i < al->ndrop_indexes; i++) {
        if (x->name && my_name_equal(al->drop_indexes[i], x->name))
            return true;
    }
    return false;
}

/* The column's name now: what it became, else a new column of its old name; NULL: it is gone. */
static const char *name_now(const struct build *b, const char *name)
{
    for (size_t i = 0; i < b->n; i++) {
        if (my_name_equal(b->origin[i] ? b->origin[i] : b->columns[i].name, name))
            return b->columns[i].name;
    }
    return NULL;
}

static void follow_columns(struct my_index *x, const struct build *b)
{
    size_t n = 0;

    for (size_t i = 0; i < x->ncolumns; i++) {
        const char *now = name_now(b, x->columns[i]);
        if (!now) {
            free(x->columns[i]);
            continue;
        }
        char *copy = cdcd_xstrdup(now);
        free(x->columns[i]);
        x->columns[n++] = copy;
    }
    if (x->columns)
        x->columns[n] = NULL;
    x->ncolumns = n;
}

static void old_indexes(struct my_table *t, const struct my_alter *al, const struct build *b)
{
    size_t n = 0;

    for (size_t i = 0; i < t->nindexes; i++) {
        struct my_index x = t->indexes[i];
        bool gone = index_dropped(al, &x);
        if (!gone) {
            follow_columns(&x, b);
            gone = x.ncolumns == 0 && !x.expression;
        }
        if (gone) {
            my_index_free(&x);
            continue;
        }
        const char *renamed = x.name ? find_rename(al->index_renames, al->nindex_renames, x.name)
                                     : NULL;
        if (renamed)
            my_set_string(&x.name, renamed);
        t->indexes[n++] = x;
    }
    t->nindexes = n;
}

/* False: a period that some earlier statement defined. */
static bool new_indexes(struct my_table *t, struct my_alter *al)
{
    for (size_t i = 0; i < al->indexes.n; i++) {
        struct my_index_def *def = &al->indexes.items[i];
        if (!my_index_add_period(def, &al->period))
            return false;
        bool there = false; /* IF NOT EXISTS */
        for (size_t k = 0; k < t->nindexes; k++)
            there = there || (def->x.name && t->indexes[k].name &&
                              my_name_equal(def->x.name, t->indexes[k].name));
        if (!there)
            my_table_add_index(t, def);
    }
    return true;
}

/* ---- the table ---- */

static void drop_versioning(struct my_table *t)
{
    size_t n = 0;

    for (size_t i = 0; i < t->ncolumns; i++) {
        if (t->columns[i].row_start || t->columns[i].row_end)
            my_column_free(&t->columns[i]);
        else
            t->columns[n++] = t->columns[i];
    }
    t->ncolumns = n;
    t->versioned = false;
}

static void convert_columns(struct my_table *t, struct build *b, const struct my_alter *al)
{
    for (size_t i = 0; i < b->n; i++) {
        bool old = b->origin[i] != NULL, changed = false;
        for (size_t k = 0; k < al->ncolumns; k++)
            changed = changed || (al->columns[k].change && b->origin[i] &&
                                  my_name_equal(al->columns[k].change, b->origin[i]));
        if (old && !changed && b->columns[i].charset)
            my_ddl_column_convert(&b->columns[i], t->charset, t->collation);
    }
}

static void convert_table(struct my_ddl *d, struct my_table *t, const struct my_alter *al)
{
    struct my_table_options o = {
        .charset = al->convert_charset,
        .collation = al->convert_collation,
        .charset_default = !al->convert_charset,
    };

    my_table_set_default_charset(d, t, &o, false);
}

static bool names_are_known(const struct my_table *t, const struct my_alter *al)
{
    for (size_t i = 0; i < al->nrenames; i++) {
        if (my_table_column(t, al->renames[i].from) < 0)
            return false;
    }
    return true;
}

bool my_alter_apply(struct my_ddl *d, struct my_table *t, struct my_alter *al)
{
    size_t max = t->ncolumns + al->ncolumns + 2;
    struct build b = {
        .columns = cdcd_xcalloc(max, sizeof *b.columns),
        .origin = cdcd_xcalloc(max, sizeof *b.origin),
    };
    bool first_timestamp = true;

    my_table_set_default_charset(d, t, &al->options, false);
    if (al->convert)
        convert_table(d, t, al);
    bool ok = names_are_known(t, al) && old_columns(d, t, al, &b, &first_timestamp) &&
              place_rest(d, t, al, &b, &first_timestamp);
    if (ok && al->convert)
        convert_columns(t, &b, al);
    if (ok)
        old_indexes(t, al, &b);
    for (size_t i = 0; i < t->ncolumns && ok; i++)
        my_column_free(&t->columns[i]);
    if (ok) {
        free(t->columns);
        t->columns = b.columns;
        t->ncolumns = b.n;
        ok = new_indexes(t, al);
        my_table_set_period(t, &al->period);
        if (al->drop_versioning)
            drop_versioning(t);
        if (al->add_versioning || al->options.system_versioning)
            my_table_add_system_columns(t);
        my_table_set_keys(t);
    } else {
        for (size_t i = 0; i < b.n; i++)
            my_column_free(&b.columns[i]);
        free(b.columns);
    }
    free(b.origin);
    return ok;
}
