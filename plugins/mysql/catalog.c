/*
 * catalog.c: information_schema -> models, in four queries however many tables there are, and a
 * SHOW statement for the few tables about which they leave something open:
 *   MySQL    the order of several unique indexes of a table without a primary key
 *   MariaDB  whether a longtext is JSON, where the account may not read CHECK_CONSTRAINTS
 */
#include "ddl.h"

#include <stdlib.h>
#include <strings.h>

#define NOT_SYSTEM " NOT IN ('mysql','sys','information_schema','performance_schema')"

struct catalog {
    MYSQL *m;
    const struct my_server *server;
    const struct my_filter *filter;
    const char *db, *table; /* NULL: all */
    struct my_table_list *out;
};

void my_table_list_free(struct my_table_list *l)
{
    for (size_t i = 0; i < l->n; i++)
        my_table_free(l->items[i]);
    free(l->items);
    *l = (struct my_table_list){0};
}

static int by_name(const void *a, const void *b)
{
    const struct my_table *x = *(struct my_table *const *)a, *y = *(struct my_table *const *)b;
    int c = strcmp(x->db, y->db);

    return c ? c : strcmp(x->name, y->name);
}

static struct my_table *find(const struct catalog *c, char *db, char *name)
{
    struct my_table key = {.db = db, .name = name}, *k = &key, **found;

    if (c->out->n == 0)
        return NULL;
    found = bsearch(&k, c->out->items, c->out->n, sizeof *c->out->items, by_name);
    return found ? *found : NULL;
}

/* SELECT `what` for the tables that are asked for, `more` behind the conditions. `schema` and
 * `table` are the names of the columns that they go by. */
static enum cdcd_rc query(const struct catalog *c, MYSQL_RES **res, struct cdcd_error *err,
                          const char *what, const char *schema, const char *table, const char *more)
{
    if (c->db && c->table)
        return my_queryf(c->m, res, err, "SELECT %s WHERE %s = %L AND %s = %L %s", what, schema,
                         c->db, table, c->table, more);
    if (c->db)
        return my_queryf(c->m, res, err, "SELECT %s WHERE %s = %L %s", what, schema, c->db, more);
    return my_queryf(c->m, res, err, "SELECT %s WHERE %s" NOT_SYSTEM " %s", what, schema, more);
}

/* ---- tables ---- */

static bool is_wanted(const struct catalog *c, const char *db, const char *name)
{
    if (c->server->lower_case_table_names == 0 &&
        ((c->db && strcmp(c->db, db) != 0) || (c->table && strcmp(c->table, name) != 0)))
        return false;
    return !c->filter || my_filter_table(c->filter, db, name);
}

static void set_collation(const char *collation, char **charset, char **out)
{
    if (!collation)
        return;
    *out = my_charset_canon(collation);
    *charset = my_charset_of_collation(collation);
}

static enum cdcd_rc read_tables(struct catalog *c, struct cdcd_error *err)
{
    MYSQL_RES *res;
    MYSQL_ROW row;
    size_t cap = 0;

    if (query(c, &res, err,
              "table_schema, table_name, table_type, table_collation, table_comment "
              "FROM information_schema.tables",
              "table_schema", "table_name", "AND table_type NOT LIKE '%VIEW%'") != CDCD_OK)
        return CDCD_ERROR;
    while ((row = mysql_fetch_row(res))) {
        if (!is_wanted(c, row[0], row[1]))
            continue;
        if (c->out->n == cap) {
            cap = cap ? 2 * cap : 64;
            c->out->items = cdcd_xrealloc(c->out->items, cap * sizeof *c->out->items);
        }
        struct my_table *t = my_table_new(row[0], row[1]);
        t->sequence = strcmp(row[2], "SEQUENCE") == 0;
        t->versioned = strcmp(row[2], "SYSTEM VERSIONED") == 0;
        set_collation(row[3], &t->charset, &t->collation);
        t->comment = row[4] && row[4][0] ? cdcd_xstrdup(row[4]) : NULL;
        c->out->items[c->out->n++] = t;
    }
    mysql_free_result(res);
    if (c->out->n)
        qsort(c->out->items, c->out->n, sizeof *c->out->items, by_name);
    return CDCD_OK;
}

/* ---- columns ---- */

enum {
    COL_DB,
    COL_TABLE,
    COL_NAME,
    COL_TYPE,
    COL_NULLABLE,
    COL_DEFAULT,
    COL_CHARSET,
    COL_COLLATION,
    COL_EXTRA,
    COL_COMMENT,
    COL_GENERATION,
};

static bool has_word(const char *text, const char *word)
{
    return text && strcasestr(text, word) != NULL;
}

static bool fill_column(const struct catalog *c, MYSQL_ROW row, struct my_column *col)
{
    const char *extra = row[COL_EXTRA], *generation = row[COL_GENERATION];

    col->name = cdcd_xstrdup(row[COL_NAME]);
    if (!my_catalog_type(col, row[COL_TYPE], c->server)) {
        free(col->type);
        col->type = cdcd_xstrdup(row[COL_TYPE]);
        return false;
    }
    col->nullable = strcmp(row[COL_NULLABLE], "YES") == 0;
    col->charset = row[COL_CHARSET] ? my_charset_canon(row[COL_CHARSET]) : NULL;
    col->collation = row[COL_COLLATION] ? my_charset_canon(row[COL_COLLATION]) : NULL;
    col->auto_increment = has_word(extra, "auto_increment");
    col->on_update_now = has_word(extra, "on update");
    col->virtual_ = has_word(extra, "VIRTUAL GENERATED");
    col->generated = col->virtual_ || has_word(extra, "STORED GENERATED");
    col->invisible = has_word(extra, "INVISIBLE");
    col->row_start = generation && strcasecmp(generation, "ROW START") == 0;
    col->row_end = generation && strcasecmp(generation, "ROW END") == 0;
    col->comment = row[COL_COMMENT] && row[COL_COMMENT][0] ? cdcd_xstrdup(row[COL_COMMENT]) : NULL;
    if (!col->generated)
        my_catalog_default(col, row[COL_DEFAULT], has_word(extra, "DEFAULT_GENERATED"), c->server);
    return true;
}

static struct my_column *add_column(struct my_table *t)
{
    /* Room in powers of two: what is there tells how much that is. */
    if ((t->ncolumns & (t->ncolumns - 1)) == 0)
        t->columns = cdcd_xrealloc(t->columns,
                                   (t->ncolumns ? 2 * t->ncolumns : 1) * sizeof *t->columns);
    struct my_column *col = &t->columns[t->ncolumns++];
    *col = (struct my_column){.length = -1, .scale = -1};
    return col;
}

static enum cdcd_rc read_columns(struct catalog *c, struct cdcd_error *err)
{
    MYSQL_RES *res;
    MYSQL_ROW row;

    if (query(c, &res, err,
              "table_schema, table_name, column_name, column_type, is_nullable, column_default, "
              "character_set_name, collation_name, extra, column_comment, generation_expression "
              "FROM information_schema.columns",
              "table_schema", "table_name",
              "ORDER BY table_schema, table_name, ordinal_position") != CDCD_OK)
        return CDCD_ERROR;
    while ((row = mysql_fetch_row(res))) {
        struct my_table *t = find(c, row[COL_DB], row[COL_TABLE]);
        if (!t || fill_column(c, row, add_column(t)))
            continue;
        t->unsure = true;
        if (!t->why)
            t->why = cdcd_xasprintf("column %s is of the type %s, which is not known",
                                    row[COL_NAME], row[COL_TYPE]);
    }
    mysql_free_result(res);
    return CDCD_OK;
}

/* ---- indexes ---- */

enum { IDX_DB, IDX_TABLE, IDX_NAME, IDX_COLUMN, IDX_NON_UNIQUE, IDX_PART, IDX_TYPE };

static struct my_index *index_of(struct my_table *t, const char *name)
{
    for (size_t i = 0; i < t->nindexes; i++) {
        if (strcmp(t->indexes[i].name, name) == 0)
            return &t->indexes[i];
    }
    t->indexes = cdcd_xrealloc(t->indexes, (t->nindexes + 1) * sizeof *t->indexes);
    t->indexes[t->nindexes] = (struct my_index){.name = cdcd_xstrdup(name)};
    return &t->indexes[t->nindexes++];
}

static void add_part(struct my_table *t, MYSQL_ROW row)
{
    struct my_index *x = index_of(t, row[IDX_NAME]);

    x->primary = strcmp(row[IDX_NAME], "PRIMARY") == 0;
    x->unique = strcmp(row[IDX_NON_UNIQUE], "0") == 0;
    if (row[IDX_PART] && strcmp(row[IDX_TYPE], "SPATIAL") != 0)
        x->partial = true;
    if (!row[IDX_COLUMN]) {
        x->expression = true;
        return;
    }
    x->columns = cdcd_xrealloc(x->columns, (x->ncolumns + 2) * sizeof *x->columns);
    x->columns[x->ncolumns++] = cdcd_xstrdup(row[IDX_COLUMN]);
    x->columns[x->ncolumns] = NULL;
}

/* MariaDB gives each table's indexes in their own order; an ORDER BY would lose it. */
static enum cdcd_rc read_indexes(struct catalog *c, struct cdcd_error *err)
{
    MYSQL_RES *res;
    MYSQL_ROW row;
    bool mysql = c->server->flavor == MY_MYSQL;

    if (query(c, &res, err,
              "table_schema, table_name, index_name, column_name, non_unique, sub_part, "
              "index_type FROM information_schema.statistics",
              "table_schema", "table_name",
              mysql ? "ORDER BY table_schema, table_name, index_name, seq_in_index" : "") !=
        CDCD_OK)
        return CDCD_ERROR;
    while ((row = mysql_fetch_row(res))) {
        struct my_table *t = find(c, row[IDX_DB], row[IDX_TABLE]);
        if (t)
            add_part(t, row);
    }
    mysql_free_result(res);
    return CDCD_OK;
}

static bool needs_order(const struct my_table *t)
{
    size_t unique = 0;

    for (size_t i = 0; i < t->nindexes; i++) {
        if (t->indexes[i].primary)
            return false;
        unique += t->indexes[i].unique;
    }
    return unique > 1;
}

/* SHOW KEYS lists them in their order; information_schema does not tell it. */
static enum cdcd_rc order_indexes(struct catalog *c, struct my_table *t, struct cdcd_error *err)
{
    MYSQL_RES *res;
    MYSQL_ROW row;
    size_t n = 0;

    if (my_queryf(c->m, &res, err, "SHOW KEYS FROM %I.%I", t->db, t->name) != CDCD_OK)
        return CDCD_ERROR;
    while ((row = mysql_fetch_row(res))) {
        size_t i = n;
        while (i < t->nindexes && strcmp(t->indexes[i].name, row[2]) != 0)
            i++;
        if (i == t->nindexes)
            continue;
        struct my_index x = t->indexes[i];
        memmove(&t->indexes[n + 1], &t->indexes[n], (i - n) * sizeof x);
        t->indexes[n++] = x;
    }
    mysql_free_result(res);
    return CDCD_OK;
}

/* ---- MariaDB's JSON ---- */

static char *json_check(const char *column, const char *before, const char *after)
{
    struct cdcd_buf b;

    cdcd_buf_init(&b, 0);
    cdcd_buf_addf(&b, "%sjson_valid(`", before);
    for (const char *p = column; *p; p++) {
        if (*p == '`')
            cdcd_buf_adds(&b, "`");
        cdcd_buf_add(&b, p, 1);
    }
    cdcd_buf_addf(&b, "`)%s", after);
    char *s = cdcd_xstrdup(cdcd_buf_cstr(&b));
    cdcd_buf_free(&b);
    return s;
}

/* The column is the one in the clause: the constraint keeps the name from before a RENAME COLUMN.
 */
static enum cdcd_rc read_checks(struct catalog *c, struct cdcd_error *err)
{
    MYSQL_RES *res;
    MYSQL_ROW row;

    if (query(c, &res, err,
              "constraint_schema, table_name, check_clause "
              "FROM information_schema.check_constraints",
              "constraint_schema", "table_name",
              "AND level = 'Column' AND check_clause LIKE 'json\\_valid(%'") != CDCD_OK)
        return CDCD_ERROR;
    while ((row = mysql_fetch_row(res))) {
        struct my_table *t = find(c, row[0], row[1]);
        for (size_t i = 0; t && i < t->ncolumns; i++) {
            struct my_column *col = &t->columns[i];
            if (strcmp(col->type, "LONGTEXT") != 0)
                continue;
            char *want = json_check(col->name, "", "");
            col->json_alias = col->json_alias || strcmp(row[2], want) == 0;
            free(want);
        }
    }
    mysql_free_result(res);
    return CDCD_OK;
}

static bool may_be_json(const struct my_column *col)
{
    return !col->json_alias && strcmp(col->type, "LONGTEXT") == 0 && col->collation &&
           strcmp(col->collation, "utf8mb4_bin") == 0;
}

static enum cdcd_rc look_for_json(struct catalog *c, struct my_table *t, struct cdcd_error *err)
{
    char *create = NULL;

    for (size_t i = 0; i < t->ncolumns; i++) {
        if (!may_be_json(&t->columns[i]))
            continue;
        if (!create && my_catalog_create_table(c->m, t->db, t->name, &create, err) != CDCD_OK)
            return CDCD_ERROR;
        char *check = json_check(t->columns[i].name, "CHECK (", ")");
        t->columns[i].json_alias = strstr(create, check) != NULL;
        free(check);
    }
    free(create);
    return CDCD_OK;
}

/* ---- all of it ---- */

static enum cdcd_rc finish(struct catalog *c, struct cdcd_error *err)
{
    enum cdcd_rc rc = CDCD_OK;

    for (size_t i = 0; rc == CDCD_OK && i < c->out->n; i++) {
        struct my_table *t = c->out->items[i];
        if (c->server->flavor == MY_MARIADB)
            rc = look_for_json(c, t, err);
        else if (needs_order(t))
            rc = order_indexes(c, t, err);
        if (t->versioned)
            my_table_add_system_columns(t);
        my_table_set_keys(t);
    }
    return rc;
}

enum cdcd_rc my_catalog_read(MYSQL *m, const struct my_server *server, const struct my_filter *f,
                             const char *db, const char *table, struct my_table_list *out,
                             struct cdcd_error *err)
{
    struct catalog c = {m, server, f, db, table, out};

    *out = (struct my_table_list){0};
    enum cdcd_rc rc = read_tables(&c, err);
    if (rc == CDCD_OK)
        rc = read_columns(&c, err);
    if (rc == CDCD_OK)
        rc = read_indexes(&c, err);
    if (rc == CDCD_OK && server->flavor == MY_MARIADB)
        rc = read_checks(&c, err);
    if (rc == CDCD_OK)
        rc = finish(&c, err);
    if (rc != CDCD_OK)
        my_table_list_free(out);
    return rc;
}

static enum cdcd_rc show_create(MYSQL_RES *res, const char *what, char **out,
                                struct cdcd_error *err)
{
    MYSQL_ROW row = mysql_fetch_row(res);
    enum cdcd_rc rc = CDCD_OK;

    if (row && row[1])
        *out = cdcd_xstrdup(row[1]);
    else
        rc = cdcd_error_set(err, CDCD_ERR_RETRY, "the server shows no definition of %s", what);
    mysql_free_result(res);
    return rc;
}

enum cdcd_rc my_catalog_create_table(MYSQL *m, const char *db, const char *table, char **out,
                                     struct cdcd_error *err)
{
    MYSQL_RES *res;

    if (my_queryf(m, &res, err, "SHOW CREATE TABLE %I.%I", db, table) != CDCD_OK)
        return CDCD_ERROR;
    return show_create(res, table, out, err);
}

enum cdcd_rc my_catalog_create_database(MYSQL *m, const char *db, char **out,
                                        struct cdcd_error *err)
{
    MYSQL_RES *res;

    if (my_queryf(m, &res, err, "SHOW CREATE DATABASE %I", db) != CDCD_OK)
        return CDCD_ERROR;
    return show_create(res, db, out, err);
}
