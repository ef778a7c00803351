/*
 * ddl_create.c: CREATE TABLE: columns, indexes and constraints, options; LIKE; what a logged
 * CREATE ... SELECT holds.
 */
#include "ddl.h"
#include "value.h"

#include <stdlib.h>

/* ---- indexes ---- */

static void add_column(struct my_index *x, const char *name)
{
    x->columns = cdcd_xrealloc(x->columns, (x->ncolumns + 2) * sizeof *x->columns);
    x->columns[x->ncolumns++] = cdcd_xstrdup(name);
    x->columns[x->ncolumns] = NULL;
}

static struct my_index_def *add_index(struct my_index_list *l)
{
    if (l->n == l->cap) {
        l->cap = l->cap ? 2 * l->cap : 4;
        l->items = cdcd_xrealloc(l->items, l->cap * sizeof *l->items);
    }
    l->items[l->n] = (struct my_index_def){0};
    return &l->items[l->n++];
}

void my_index_list_free(struct my_index_list *l)
{
    for (size_t i = 0; i < l->n; i++)
        my_index_free(&l->items[i].x);
    free(l->items);
    *l = (struct my_index_list){0};
}

void my_ddl_column_indexes(struct my_index_list *list, const struct my_column_def *def)
{
    for (int pass = 0; pass < 2; pass++) {
        if (pass == 0 ? !def->primary : !def->unique)
            continue;
        struct my_index_def *x = add_index(list);
        x->primary = x->x.primary = pass == 0;
        x->x.unique = true;
        add_column(&x->x, def->c.name);
    }
}

static void skip_index_options(struct my_lex *lx)
{
    /* USING BTREE, COMMENT '..', WITH PARSER p, KEY_BLOCK_SIZE=1, VISIBLE, DISTANCE=..., M=... */
    while (lx->t.kind != MY_TOK_END && !my_lex_is_punct(lx, ',') && !my_lex_is_punct(lx, ')') &&
           !my_lex_is_punct(lx, ';'))
        my_lex_next(lx);
}

/* (col [(n)] [ASC|DESC], (expression), p WITHOUT OVERLAPS) */
static bool read_parts(struct my_lex *lx, struct my_index_def *def)
{
    if (!my_lex_take_punct(lx, '('))
        return false;
    do {
        if (my_lex_is_punct(lx, '(')) {
            def->x.expression = true;
            if (!my_lex_skip_brackets(lx))
                return false;
        } else {
            const char *name = my_lex_name(lx);
            if (!name)
                return false;
            if (my_lex_take2(lx, "WITHOUT", "OVERLAPS"))
                def->period = name;
            else
                add_column(&def->x, name);
            if (my_lex_is_punct(lx, '(')) {
                def->x.partial = true;
                if (!my_lex_skip_brackets(lx))
                    return false;
            }
        }
        if (!my_lex_take(lx, "ASC"))
            my_lex_take(lx, "DESC");
    } while (my_lex_take_punct(lx, ','));
    return my_lex_take_punct(lx, ')');
}

static bool read_index(struct my_ddl *d, struct my_index_list *list, const char *symbol,
                       bool primary, bool unique)
{
    struct my_lex *lx = &d->lx;
    struct my_index_def *def = add_index(list);
    const char *name = NULL;

    def->primary = def->x.primary = primary;
    def->x.unique = primary || unique;
    (void)(my_lex_take(lx, "KEY") || my_lex_take(lx, "INDEX"));
    my_ddl_if_not_exists(lx);
    if (!my_lex_is_punct(lx, '(') && !my_lex_is(lx, "USING") && !my_lex_is(lx, "TYPE"))
        name = my_lex_name(lx);
    if (my_lex_take(lx, "USING") || my_lex_take(lx, "TYPE"))
        my_lex_next(lx);
    name = primary ? "PRIMARY" : name ? name : symbol;
    def->x.name = name ? cdcd_xstrdup(name) : NULL;
    if (!read_parts(lx, def))
        return false;
    skip_index_options(lx);
    return true;
}

bool my_ddl_index_parts(struct my_lex *lx, struct my_index_list *list, const char *name,
                        bool unique)
{
    struct my_index_def *def = add_index(list);

    def->x.name = cdcd_xstrdup(name);
    def->x.unique = unique;
    return read_parts(lx, def);
}

static bool skip_definition(struct my_lex *lx)
{
    while (!my_lex_is_punct(lx, ',') && !my_lex_is_punct(lx, ')') && !my_lex_is_punct(lx, ';')) {
        if (lx->t.kind == MY_TOK_END)
            break;
        if (my_lex_is_punct(lx, '(')) {
            if (!my_lex_skip_brackets(lx))
                return false;
        } else {
            my_lex_next(lx);
        }
    }
    return true;
}

/* VECTOR and PERIOD are no reserved words: what follows tells them from a column. */
static bool followed_by(const struct my_lex *lx, const char *a, const char *b)
{
    struct my_lex next = *lx;

    my_lex_next(&next);
    return my_lex_is(&next, a) || my_lex_is(&next, b);
}

bool my_ddl_constraint(struct my_ddl *d, struct my_index_list *list, bool *is)
{
    struct my_lex *lx = &d->lx;
    const char *symbol = NULL;

    *is = true;
    if (my_lex_take(lx, "CONSTRAINT") && !my_lex_is(lx, "PRIMARY") && !my_lex_is(lx, "UNIQUE") &&
        !my_lex_is(lx, "FOREIGN") && !my_lex_is(lx, "CHECK")) {
        my_ddl_if_not_exists(lx);
        symbol = my_lex_name(lx);
    }
    if (my_lex_take(lx, "PRIMARY"))
        return read_index(d, list, symbol, true, true);
    if (my_lex_take(lx, "UNIQUE"))
        return read_index(d, list, symbol, false, true);
    if (my_lex_is(lx, "KEY") || my_lex_is(lx, "INDEX"))
        return read_index(d, list, NULL, false, false);
    if (my_lex_take(lx, "FULLTEXT") || my_lex_take(lx, "SPATIAL"))
        return read_index(d, list, NULL, false, false);
    if (my_lex_is(lx, "VECTOR") && followed_by(lx, "INDEX", "KEY")) {
        my_lex_next(lx);
        return read_index(d, list, NULL, false, false);
    }
    if (my_lex_is(lx, "FOREIGN") || my_lex_is(lx, "CHECK"))
        return skip_definition(lx);
    *is = false;
    return symbol == NULL;
}

/* ---- options ---- */

static bool option_value(struct my_lex *lx)
{
    my_lex_take_punct(lx, '=');
    if (my_lex_is_punct(lx, '('))
        return my_lex_skip_brackets(lx); /* UNION=(t1,t2) */
    if (lx->t.kind == MY_TOK_END || lx->t.kind == MY_TOK_PUNCT)
        return false;
    my_lex_next(lx);
    return true;
}

static bool charset_option(struct my_lex *lx, struct my_table_options *o, bool *took)
{
    struct my_lex saved = *lx;

    *took = true;
    my_lex_take(lx, "DEFAULT");
    if (my_lex_take(lx, "CHARSET") || my_lex_take2(lx, "CHARACTER", "SET") ||
        my_lex_take2(lx, "CHAR", "SET")) {
        o->charset = my_ddl_charset_name(lx);
        o->charset_default = !o->charset;
        return true;
    }
    if (my_lex_take(lx, "COLLATE")) {
        o->collation = my_ddl_charset_name(lx);
        return true;
    }
    *lx = saved;
    *took = false;
    return true;
}

/* Options whose equals sign may be left out. Any word with one is an option: MariaDB's engines have
 * their own. */
static bool is_plain_option(const struct my_lex *lx)
{
    static const char *const names[] = {
        "ENGINE",
        "TYPE",
        "AUTO_INCREMENT",
        "AVG_ROW_LENGTH",
        "CHECKSUM",
        "TABLE_CHECKSUM",
        "PAGE_CHECKSUM",
        "COMPRESSION",
        "CONNECTION",
        "DELAY_KEY_WRITE",
        "ENCRYPTION",
        "INSERT_METHOD",
        "KEY_BLOCK_SIZE",
        "MAX_ROWS",
        "MIN_ROWS",
        "PACK_KEYS",
        "PASSWORD",
        "ROW_FORMAT",
        "STATS_AUTO_RECALC",
        "STATS_PERSISTENT",
        "STATS_SAMPLE_PAGES",
        "TRANSACTIONAL",
        "UNION",
        "AUTOEXTEND_SIZE",
        "ENGINE_ATTRIBUTE",
        "SECONDARY_ENGINE",
        "SECONDARY_ENGINE_ATTRIBUTE",
        "STORAGE",
    };

    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        if (my_lex_is(lx, names[i]))
            return true;
    }
    return false;
}

bool my_ddl_table_option(struct my_ddl *d, struct my_table_options *o)
{
    struct my_lex *lx = &d->lx;
    bool took;

    if (!charset_option(lx, o, &took) || took)
        return took;
    if (my_lex_take(lx, "COMMENT")) {
        my_lex_take_punct(lx, '=');
        if (lx->t.kind != MY_TOK_STRING)
            return false;
        o->comment = lx->t.text.ptr;
        my_lex_next(lx);
        return true;
    }
    if (my_lex_take2(lx, "WITH", "SYSTEM")) {
        o->system_versioning = true;
        return my_lex_take(lx, "VERSIONING");
    }
    if (my_lex_take2(lx, "DATA", "DIRECTORY") || my_lex_take2(lx, "INDEX", "DIRECTORY"))
        return option_value(lx);
    if (my_lex_take2(lx, "START", "TRANSACTION"))
        return true; /* MySQL's log of CREATE ... SELECT */
    if (my_lex_take(lx, "TABLESPACE")) {
        option_value(lx);
        return !my_lex_take(lx, "STORAGE") || option_value(lx);
    }
    struct my_token next = my_lex_peek(lx);
    bool named = lx->t.kind == MY_TOK_WORD || lx->t.kind == MY_TOK_NAME;
    if (!is_plain_option(lx) && !(named && next.punct == '='))
        return false;
    my_lex_next(lx);
    return option_value(lx);
}

/* What neither statement nor model says comes from the database, else from the server as it was
 * when the statement ran. */
static void database_charset(struct my_ddl *d, const char *db, const char **charset,
                             const char **collation)
{
    if (my_shapes_database(d->shapes, db, charset, collation))
        return;
    uint32_t id = strcmp(db, d->db) == 0 ? d->query->query.collation_database : 0;
    *charset = my_charset_name(id ? id : d->query->query.collation_server);
    *collation = NULL;
    if (!*charset) {
        *charset = d->server->charset[0] ? d->server->charset : NULL;
        *collation = d->server->collation[0] ? d->server->collation : NULL;
    }
}

void my_table_set_default_charset(struct my_ddl *d, struct my_table *t,
                                  const struct my_table_options *o, bool create)
{
    const char *charset = NULL, *collation = NULL;

    if (o->charset || o->collation) {
        char *of = o->collation ? my_charset_of_collation(o->collation) : NULL;
        if (o->charset)
            my_set_string(&t->charset, o->charset);
        else if (of)
            my_set_string(&t->charset, of);
        my_set_string(&t->collation, o->collation);
        my_collation_complete(t->charset, &t->collation);
        free(of);
    }
    if ((create && !t->charset) || o->charset_default) {
        database_charset(d, t->db, &charset, &collation);
        my_set_string(&t->charset, charset);
        if (!o->collation)
            my_set_string(&t->collation, o->charset_default ? NULL : collation);
    }
    if (o->comment)
        my_set_string(&t->comment, o->comment[0] ? o->comment : NULL);
}

/* ---- making the table ---- */

static bool name_taken(const struct my_table *t, const char *name)
{
    for (size_t i = 0; i < t->nindexes; i++) {
        if (t->indexes[i].name && my_name_equal(t->indexes[i].name, name))
            return true;
    }
    return false;
}

/* The first column's name, with _2, _3, ... while it is taken (sql_table.cc: make_unique_key_name).
 */
static char *free_name(const struct my_table *t, const struct my_index *x)
{
    const char *base = x->ncolumns && !(x->expression) ? x->columns[0] : "functional_index";

    if (!name_taken(t, base) && !my_name_equal(base, "PRIMARY"))
        return cdcd_xstrdup(base);
    for (int i = 2;; i++) {
        char *name = cdcd_xasprintf("%s_%d", base, i);
        if (!name_taken(t, name))
            return name;
        free(name);
    }
}

void my_table_add_index(struct my_table *t, struct my_index_def *def)
{
    struct my_index *x = &def->x;

    if (!x->name)
        x->name = x->primary ? cdcd_xstrdup("PRIMARY") : free_name(t, x);
    t->indexes = cdcd_xrealloc(t->indexes, (t->nindexes + 1) * sizeof *t->indexes);
    t->indexes[t->nindexes++] = *x;
    *x = (struct my_index){0};
}

static bool has_column(const struct my_index *x, const char *name)
{
    for (size_t i = 0; i < x->ncolumns; i++) {
        if (my_name_equal(x->columns[i], name))
            return true;
    }
    return false;
}

/* The server ends each unique index with row_end (sql_table.cc: mysql_prepare_create_table);
 * one that is hidden is not shown there, and is no column of ours. */
static void end_with_row_end(struct my_table *t, const char *row_end)
{
    for (size_t i = 0; i < t->nindexes; i++) {
        if (t->indexes[i].unique && !has_column(&t->indexes[i], row_end))
            add_column(&t->indexes[i], row_end);
    }
}

void my_table_add_system_columns(struct my_table *t)
{
    t->versioned = true;
    for (size_t i = 0; i < t->ncolumns; i++) {
        if (t->columns[i].row_end) {
            end_with_row_end(t, t->columns[i].name);
            return;
        }
    }
    t->columns = cdcd_xrealloc(t->columns, (t->ncolumns + 2) * sizeof *t->columns);
    for (int i = 0; i < 2; i++) {
        t->columns[t->ncolumns++] = (struct my_column){
            .name = cdcd_xstrdup(i == 0 ? "row_start" : "row_end"),
            .type = cdcd_xstrdup("TIMESTAMP"),
            .length = 6,
            .scale = -1,
            .invisible = true,
            .row_start = i == 0,
            .row_end = i == 1,
        };
    }
}

struct creation {
    struct my_column_def *columns;
    size_t n, cap;
    struct my_index_list indexes;
    struct my_table_options options;
    struct my_period period;
};

bool my_ddl_period(struct my_lex *lx, struct my_period *p)
{
    my_lex_next(lx); /* PERIOD */
    my_lex_next(lx); /* FOR */
    my_ddl_if_not_exists(lx);
    const char *name = my_lex_name(lx);
    if (!name || !my_lex_take_punct(lx, '('))
        return false;
    const char *start = my_lex_name(lx);
    if (!start || !my_lex_take_punct(lx, ','))
        return false;
    const char *end = my_lex_name(lx);
    if (!my_name_equal(name, "SYSTEM_TIME"))
        *p = (struct my_period){name, start, end};
    return end && my_lex_take_punct(lx, ')');
}

static bool read_definition(struct my_ddl *d, struct creation *c)
{
    bool is;

    if (my_lex_is(&d->lx, "PERIOD") && followed_by(&d->lx, "FOR", "FOR"))
        return my_ddl_period(&d->lx, &c->period);
    if (!my_ddl_constraint(d, &c->indexes, &is))
        return false;
    if (is)
        return true;
    const char *name = my_lex_name(&d->lx);
    if (!name)
        return false;
    if (c->n == c->cap) {
        c->cap = c->cap ? 2 * c->cap : 16;
        c->columns = cdcd_xrealloc(c->columns, c->cap * sizeof *c->columns);
    }
    struct my_column_def *def = &c->columns[c->n++];
    *def = (struct my_column_def){.c = {.name = cdcd_xstrdup(name)}};
    if (!my_ddl_column(d, def))
        return false;
    my_ddl_column_indexes(&c->indexes, def);
    if (def->versioned)
        c->options.system_versioning = true;
    return true;
}

static bool read_definitions(struct my_ddl *d, struct creation *c)
{
    do {
        if (!read_definition(d, c))
            return false;
    } while (my_lex_take_punct(&d->lx, ','));
    return my_lex_take_punct(&d->lx, ')');
}

static bool at_select(const struct my_lex *lx)
{
    return my_lex_is(lx, "SELECT") || my_lex_is(lx, "AS") || my_lex_is(lx, "VALUES") ||
           my_lex_is(lx, "TABLE") || my_lex_is(lx, "WITH") || my_lex_is(lx, "IGNORE") ||
           my_lex_is(lx, "REPLACE") || my_lex_is_punct(lx, '(');
}

/* Options, and partitions up to a SELECT or the end. False: a SELECT adds columns that the
 * statement does not name. */
static bool read_tail(struct my_ddl *d, struct creation *c)
{
    struct my_lex *lx = &d->lx;

    for (;;) {
        if (my_ddl_table_option(d, &c->options)) {
            my_lex_take_punct(lx, ',');
        } else if (my_lex_take(lx, "PARTITION")) {
            while (lx->t.kind != MY_TOK_END && !my_lex_is_punct(lx, ';') &&
                   !my_lex_is(lx, "SELECT") && !my_lex_is(lx, "AS")) {
                if (!my_lex_is_punct(lx, '('))
                    my_lex_next(lx);
                else if (!my_lex_skip_brackets(lx))
                    break;
            }
        } else {
            break;
        }
    }
    return lx->t.kind == MY_TOK_END || my_lex_is_punct(lx, ';');
}

bool my_index_add_period(struct my_index_def *def, const struct my_period *p)
{
    if (!def->period)
        return true;
    if (!p->name || !my_name_equal(def->period, p->name))
        return false;
    add_column(&def->x, p->end);
    add_column(&def->x, p->start);
    return true;
}

void my_table_set_period(struct my_table *t, const struct my_period *p)
{
    for (int i = 0; p->name && i < 2; i++) {
        int col = my_table_column(t, i == 0 ? p->start : p->end);
        if (col >= 0)
            t->columns[col].nullable = false;
    }
}

static struct my_table *make_table(struct my_ddl *d, struct creation *c, const char *db,
                                   const char *name)
{
    struct my_table *t = my_table_new(db, name);
    bool first_timestamp = true;

    my_table_set_default_charset(d, t, &c->options, true);
    t->columns = cdcd_xcalloc(c->n + 1, sizeof *t->columns);
    for (size_t i = 0; i < c->n; i++) {
        my_ddl_column_charset(&c->columns[i], t->charset, t->collation);
        my_ddl_timestamp_defaults(&c->columns[i], d->server, &first_timestamp);
        t->columns[t->ncolumns++] = c->columns[i].c;
    }
    c->n = 0; /* the columns are the table's now */
    for (size_t i = 0; i < c->indexes.n; i++) {
        my_index_add_period(&c->indexes.items[i], &c->period);
        my_table_add_index(t, &c->indexes.items[i]);
    }
    my_table_set_period(t, &c->period);
    if (c->options.system_versioning)
        my_table_add_system_columns(t);
    my_table_set_keys(t);
    return t;
}

static void put_created(struct my_ddl *d, struct my_table *t)
{
    const char *db = cdcd_arena_dup(d->a, t->db, strlen(t->db));
    const char *name = cdcd_arena_dup(d->a, t->name, strlen(t->name));

    my_ddl_effect(d, MY_EFFECT_TABLE, CDCD_DDL_CREATE, db, name, t, d->text);
    my_shapes_put(d->shapes, t); /* frees it where nobody asks for its database */
}

static bool create_like(struct my_ddl *d, const char *db, const char *name)
{
    const char *from_db = d->db, *from_name;
    bool bracket = my_lex_take_punct(&d->lx, '(');

    my_lex_next(&d->lx); /* LIKE */
    if (!my_ddl_table_name(d, &from_db, &from_name))
        return false;
    if (bracket)
        my_lex_take_punct(&d->lx, ')');
    const struct my_table *from = my_shapes_get(d->shapes, from_db, from_name);
    if (!from)
        return false;
    struct my_table *t = my_table_copy(from);
    my_set_string(&t->db, db);
    my_set_string(&t->name, name);
    my_set_string(&t->comment, from->comment);
    put_created(d, t);
    return true;
}

static bool is_like(const struct my_lex *lx)
{
    struct my_lex next = *lx;

    my_lex_take_punct(&next, '(');
    return my_lex_is(&next, "LIKE");
}

static void creation_free(struct creation *c)
{
    for (size_t i = 0; i < c->n; i++)
        my_column_free(&c->columns[i].c);
    free(c->columns);
    my_index_list_free(&c->indexes);
}

void my_ddl_create_table(struct my_ddl *d, bool replace, bool temporary)
{
    struct creation c = {0};
    const char *db = d->db, *name;
    bool keep = my_ddl_if_not_exists(&d->lx);

    if (!my_ddl_table_name(d, &db, &name) || temporary)
        return;
    const struct my_table *old = my_shapes_get(d->shapes, db, name);
    if (keep && !replace && old && !old->unsure)
        return; /* logged, though it did nothing */
    if (is_like(&d->lx)) {
        if (!create_like(d, db, name))
            my_ddl_unsure(d, db, name, d->lx.t.begin);
        return;
    }
    bool ok = true;
    struct my_lex body = d->lx;
    my_lex_next(&body);
    if (my_lex_is_punct(&d->lx, '(') && !at_select(&body)) {
        my_lex_next(&d->lx);
        ok = read_definitions(d, &c);
    }
    if (ok && c.n > 0)
        ok = read_tail(d, &c);
    if (ok && c.n > 0 && !d->unreadable) {
        put_created(d, make_table(d, &c, db, name));
    } else {
        my_shapes_drop(d->shapes, db, name);
        my_ddl_unsure(d, db, name, d->lx.t.begin);
    }
    creation_free(&c);
}
