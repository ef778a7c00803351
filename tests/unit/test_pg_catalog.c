/*
 * Tables from Relation messages. Without a server the message alone decides; with CDCD_PG_URL in
 * the environment the catalogue of that server is looked at too, in a schema of its own.
 */
#include "types.h"

#include <setjmp.h>
#include <stdlib.h>

#include <cmocka.h>

#define SLICE(s)         \
    {                    \
        s, sizeof(s) - 1 \
    }
#define COUNT(a) (sizeof(a) / sizeof *(a))

static struct pg_attr abc[] = {
    {.name = SLICE("a"), .type = PG_OID_INT4, .typmod = -1, .identity = true},
    {.name = SLICE("b"), .type = PG_OID_TEXT, .typmod = -1},
    {.name = SLICE("c"), .type = PG_OID_NUMERIC, .typmod = (10 << 16 | 2) + 4, .identity = true},
};

static struct pg_relation relation(char replident)
{
    return (struct pg_relation){.oid = 4711,
                                .schema = SLICE("public"),
                                .table = SLICE("t"),
                                .replident = replident,
                                .nattrs = COUNT(abc),
                                .attrs = abc};
}

static struct pg_table *build(const struct pg_relation *rel, PGconn *sql, struct pg_types *types,
                              const struct pg_filter *filter)
{
    struct pg_table *t = NULL;
    struct cdcd_error err = {0};

    if (pg_table_build(rel, "db", sql, types, filter, &t, &err) != CDCD_OK)
        fail_msg("%s", err.text);
    return t;
}

static void message_alone(void **state)
{
    struct pg_types *types = pg_types_new();
    struct pg_relation rel = relation('d');
    struct pg_table *t = build(&rel, NULL, types, NULL);

    (void)state;
    assert_true(t->captured);
    assert_int_equal(t->label.len, 8);
    assert_memory_equal(t->label.ptr, "public.t", 9);
    assert_string_equal(t->schema->db, "db");
    assert_string_equal(t->schema->schema, "public");
    assert_string_equal(t->schema->table, "t");
    assert_int_equal(t->schema->source_id, 4711);
    assert_int_equal(t->schema->ncolumns, 3);
    assert_int_equal(t->schema->nkeys, 2);
    assert_int_equal(t->schema->keys[0], 0);
    assert_int_equal(t->schema->keys[1], 2);
    assert_true(t->schema->columns[2].key);
    assert_false(t->schema->columns[2].optional);
    assert_false(t->schema->columns[1].key);
    assert_true(t->schema->columns[1].optional);
    assert_int_equal(t->schema->columns[2].type, CDCD_T_DECIMAL);
    assert_true(t->identity[0] && !t->identity[1] && t->identity[2]);
    pg_table_free(t);

    rel = relation('f');
    t = build(&rel, NULL, types, NULL);
    assert_int_equal(t->schema->nkeys, 0);
    pg_table_free(t);
    rel = relation('n');
    t = build(&rel, NULL, types, NULL);
    assert_int_equal(t->schema->nkeys, 0);
    assert_int_equal(t->replident, 'n');
    pg_table_free(t);
    rel.nattrs = 0;
    t = build(&rel, NULL, types, NULL);
    assert_int_equal(t->schema->ncolumns, 0);
    pg_table_free(t);
    pg_types_free(types);
}

static void filtered(void **state)
{
    char *exclude[] = {"public\\.t\\.[bc]"};
    struct pg_config cfg = {.column_exclude = {exclude, 1}};
    struct pg_types *types = pg_types_new();
    struct pg_filter *filter = NULL;
    struct cdcd_error err;
    struct pg_relation rel = relation('d');

    (void)state;
    assert_int_equal(pg_filter_new(&cfg, &filter, &err), CDCD_OK);
    struct pg_table *t = build(&rel, NULL, types, filter);
    assert_int_equal(t->schema->ncolumns, 2); /* c is part of the key and stays */
    assert_int_equal(t->column[0], 0);
    assert_int_equal(t->column[1], -1);
    assert_int_equal(t->column[2], 1);
    assert_int_equal(t->schema->keys[1], 1);
    assert_string_equal(t->schema->columns[1].name, "c");
    pg_table_free(t);
    rel.schema = cdcd_slice_str("pg_temp_1");
    t = build(&rel, NULL, types, filter);
    assert_false(t->captured);
    assert_null(t->schema);
    assert_int_equal(t->nattrs, 3);
    assert_true(t->column[0] == -1 && t->column[2] == -1);
    pg_table_free(t);
    pg_filter_free(filter);
    pg_types_free(types);
}

/* ---- with a server ---- */

struct server {
    PGconn *sql;
    struct pg_types *types;
    struct cdcd_arena arena;
};

static void run(PGconn *sql, const char *command)
{
    PGresult *r = PQexec(sql, command);

    if (PQresultStatus(r) != PGRES_COMMAND_OK && PQresultStatus(r) != PGRES_TUPLES_OK)
        fail_msg("%s: %s", command, PQerrorMessage(sql));
    PQclear(r);
}

static const char drop_sql[] = "DROP SCHEMA IF EXISTS cdcd_cat CASCADE;"
                               "DROP PUBLICATION IF EXISTS cdcd_cat_pub";

static const char set_up_sql[] =
    "CREATE SCHEMA cdcd_cat;"
    "SET search_path = cdcd_cat, public;"
    "CREATE TYPE mood AS ENUM ('sad', 'ok');"
    "CREATE DOMAIN must AS int NOT NULL;"
    "CREATE DOMAIN amount AS numeric(10,2);"
    "CREATE DOMAIN amount_pos AS amount CHECK (VALUE >= 0);"
    "CREATE TABLE odd (b int, \"Id.x\" bigserial, gone text, m mood[] NOT NULL, x must,"
    " am amount_pos, n numeric(10,2) DEFAULT 5 NOT NULL, bx box[], iv int2vector,"
    " g int GENERATED ALWAYS AS (b + 1) STORED, PRIMARY KEY (\"Id.x\", b));"
    "ALTER TABLE odd DROP COLUMN gone;"
    "CREATE TABLE ri (a int, b int NOT NULL, c int NOT NULL);"
    "CREATE UNIQUE INDEX ri_i ON ri (c, b) INCLUDE (a);"
    "ALTER TABLE ri REPLICA IDENTITY USING INDEX ri_i;"
    "CREATE TABLE ful (a int PRIMARY KEY, b int); ALTER TABLE ful REPLICA IDENTITY FULL;"
    "CREATE TABLE late (a int PRIMARY KEY DEFERRABLE, b int);"
    "CREATE TABLE nothing ();"
    "CREATE PUBLICATION cdcd_cat_pub FOR TABLE odd, ri;"
    "SET search_path = pg_catalog";

static int connect_server(void **state)
{
    const char *url = getenv("CDCD_PG_URL");
    struct pg_config cfg = {.url = (char *)url, .connect_timeout_ms = 10000};
    struct cdcd_error err = {0};

    *state = NULL;
    if (!url)
        return 0;
    struct server *s = cdcd_xcalloc(1, sizeof *s);
    cdcd_arena_init(&s->arena, 4096);
    s->types = pg_types_new();
    if (pg_connect(&cfg, false, &s->sql, &err) != CDCD_OK)
        fail_msg("%s", err.text);
    run(s->sql, drop_sql);
    run(s->sql, set_up_sql);
    if (pg_types_load(s->types, s->sql, &err) != CDCD_OK)
        fail_msg("%s", err.text);
    *state = s;
    return 0;
}

static int disconnect_server(void **state)
{
    struct server *s = *state;

    if (!s)
        return 0;
    run(s->sql, drop_sql);
    PQfinish(s->sql);
    pg_types_free(s->types);
    cdcd_arena_free(&s->arena);
    free(s);
    return 0;
}

static struct pg_relation read_table(struct server *s, const char *table)
{
    struct cdcd_error err = {0};
    struct pg_relation rel;
    PGresult *r = NULL;

    const char *params[] = {table};
    if (pg_query(s->sql, &r, &err, "SELECT pg_catalog.to_regclass($1)::pg_catalog.oid", 1,
                 params) != CDCD_OK)
        fail_msg("%s", err.text);
    uint32_t oid = (uint32_t)strtoul(PQgetvalue(r, 0, 0), NULL, 10);
    PQclear(r);
    if (pg_relation_read(s->sql, oid, "cdcd_cat_pub", &s->arena, &rel, &err) != CDCD_OK)
        fail_msg("%s", err.text);
    return rel;
}

static const struct cdcd_column *named(const struct pg_table *t, const char *name)
{
    for (uint32_t i = 0; i < t->schema->ncolumns; i++) {
        if (strcmp(t->schema->columns[i].name, name) == 0)
            return &t->schema->columns[i];
    }
    fail_msg("no column %s", name);
    return NULL;
}

#define NEEDS_SERVER(state) \
    do {                    \
        if (!*(state))      \
            skip();         \
    } while (0)

static void table_of_the_catalogue(void **state)
{
    NEEDS_SERVER(state);
    struct server *s = *state;
    struct pg_relation rel = read_table(s, "cdcd_cat.odd");
    struct pg_table *t = build(&rel, s->sql, s->types, NULL);
    const struct cdcd_column *c;

    assert_int_equal(rel.nattrs, 8); /* neither dropped nor generated */
    assert_string_equal(t->schema->schema, "cdcd_cat");
    assert_int_equal(t->schema->nkeys, 2);
    assert_string_equal(t->schema->columns[t->schema->keys[0]].name, "Id.x");
    assert_string_equal(t->schema->columns[t->schema->keys[1]].name, "b");
    c = named(t, "Id.x");
    assert_true(c->has_default && !c->default_text && !c->optional);
    c = named(t, "m");
    assert_int_equal(c->type, CDCD_T_ARRAY);
    assert_int_equal(c->elem->type, CDCD_T_ENUM);
    assert_string_equal(c->elem->labels[1], "ok");
    assert_false(c->optional);
    assert_false(named(t, "x")->optional);
    assert_int_equal(named(t, "x")->type, CDCD_T_INT32);
    c = named(t, "am");
    assert_int_equal(c->type, CDCD_T_DECIMAL);
    assert_int_equal(c->scale, 2);
    assert_true(c->optional);
    assert_string_equal(named(t, "n")->default_text, "5.00");
    assert_int_equal(((const struct pg_coltype *)named(t, "bx")->source_data)->delim, ';');
    assert_int_equal(named(t, "iv")->type, CDCD_T_STRING);
    pg_table_free(t);
}

static void labels_are_read_again(void **state)
{
    NEEDS_SERVER(state);
    struct server *s = *state;
    struct pg_relation rel = read_table(s, "cdcd_cat.odd");

    run(s->sql, "ALTER TYPE cdcd_cat.mood ADD VALUE 'new label' BEFORE 'ok'");
    run(s->sql, "ALTER TYPE cdcd_cat.mood RENAME VALUE 'sad' TO 'blue'");
    struct pg_table *t = build(&rel, s->sql, s->types, NULL);
    const struct cdcd_column *c = named(t, "m");
    assert_string_equal(c->elem->labels[0], "blue");
    assert_string_equal(c->elem->labels[1], "new label");
    assert_string_equal(c->elem->labels[2], "ok");
    assert_null(c->elem->labels[3]);
    pg_table_free(t);
}

static void types_made_meanwhile(void **state)
{
    NEEDS_SERVER(state);
    struct server *s = *state;
    const struct pg_type *type;
    struct cdcd_error err;

    run(s->sql, "CREATE DOMAIN cdcd_cat.stars AS cdcd_cat.amount[];"
                "CREATE TYPE cdcd_cat.pair AS (a int);"
                "CREATE TABLE cdcd_cat.young (id int, s cdcd_cat.stars, p cdcd_cat.pair[])");
    struct pg_relation rel = read_table(s, "cdcd_cat.young");
    struct pg_table *t = build(&rel, s->sql, s->types, NULL);
    const struct cdcd_column *c = named(t, "s");
    assert_int_equal(c->type, CDCD_T_ARRAY);
    assert_int_equal(c->elem->type, CDCD_T_DECIMAL);
    assert_int_equal(c->elem->scale, 2);
    assert_int_equal(named(t, "p")->type, CDCD_T_ARRAY);
    assert_int_equal(named(t, "p")->elem->type, CDCD_T_STRING);
    assert_int_equal(t->schema->nkeys, 0);
    pg_table_free(t);
    assert_int_equal(pg_types_get(s->types, s->sql, 1, false, &type, &err), CDCD_OK);
    assert_null(type);
}

static void keys(void **state)
{
    NEEDS_SERVER(state);
    struct server *s = *state;
    struct pg_relation rel = read_table(s, "cdcd_cat.ri");
    struct pg_table *t = build(&rel, s->sql, s->types, NULL);

    assert_int_equal(rel.replident, 'i');
    assert_int_equal(t->schema->nkeys, 2);
    assert_string_equal(t->schema->columns[t->schema->keys[0]].name, "c");
    assert_string_equal(t->schema->columns[t->schema->keys[1]].name, "b");
    assert_false(t->identity[0]);
    pg_table_free(t);

    rel = read_table(s, "cdcd_cat.ful");
    t = build(&rel, s->sql, s->types, NULL);
    assert_true(t->identity[0] && t->identity[1]);
    assert_int_equal(t->schema->nkeys, 1);
    assert_int_equal(t->schema->keys[0], 0);
    pg_table_free(t);

    rel = read_table(s, "cdcd_cat.late");
    assert_false(rel.attrs[0].identity);
    t = build(&rel, s->sql, s->types, NULL);
    assert_int_equal(t->schema->nkeys, 1);
    pg_table_free(t);

    rel = read_table(s, "cdcd_cat.nothing");
    assert_int_equal(rel.nattrs, 0);
    t = build(&rel, s->sql, s->types, NULL);
    assert_int_equal(t->schema->ncolumns, 0);
    pg_table_free(t);
}

/* The message is older than the catalogue. */
static void altered_since(void **state)
{
    NEEDS_SERVER(state);
    struct server *s = *state;
    struct pg_relation old = read_table(s, "cdcd_cat.ful");

    old.replident = 'd';
    old.attrs[1].identity = false;
    run(s->sql, "ALTER TABLE cdcd_cat.ful DROP CONSTRAINT ful_pkey, ADD PRIMARY KEY (b),"
                " ALTER a TYPE bigint, ALTER a SET DEFAULT 7");
    struct pg_table *t = build(&old, s->sql, s->types, NULL);
    assert_int_equal(t->schema->nkeys, 1);
    assert_int_equal(t->schema->keys[0], 0); /* the key of then */
    assert_false(t->schema->columns[0].has_default);
    assert_int_equal(t->schema->columns[0].type, CDCD_T_INT32);
    pg_table_free(t);

    run(s->sql, "DROP TABLE cdcd_cat.ful");
    t = build(&old, s->sql, s->types, NULL);
    assert_int_equal(t->schema->nkeys, 1);
    assert_string_equal(t->schema->table, "ful");
    pg_table_free(t);

    struct cdcd_error err = {0};
    struct pg_relation rel;
    assert_int_equal(pg_relation_read(s->sql, old.oid, "x", &s->arena, &rel, &err), CDCD_ERROR);
    assert_int_equal(err.class, CDCD_ERR_RETRY);
}

static void column_lists(void **state)
{
    NEEDS_SERVER(state);
    struct server *s = *state;
    int version = PQserverVersion(s->sql);

    if (version < 150000)
        skip();
    run(s->sql, "ALTER PUBLICATION cdcd_cat_pub SET TABLE cdcd_cat.odd (\"Id.x\", am, b)");
    struct pg_relation rel = read_table(s, "cdcd_cat.odd");
    assert_int_equal(rel.nattrs, 3);
    assert_true(cdcd_slice_eq(rel.attrs[0].name, cdcd_slice_str("b")));
    assert_true(rel.attrs[0].identity && rel.attrs[1].identity && !rel.attrs[2].identity);
    if (version < 180000)
        return;
    run(s->sql, "ALTER PUBLICATION cdcd_cat_pub SET TABLE cdcd_cat.odd");
    run(s->sql, "ALTER PUBLICATION cdcd_cat_pub SET (publish_generated_columns = stored)");
    rel = read_table(s, "cdcd_cat.odd");
    assert_int_equal(rel.nattrs, 9);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(message_alone),          cmocka_unit_test(filtered),
        cmocka_unit_test(table_of_the_catalogue), cmocka_unit_test(labels_are_read_again),
        cmocka_unit_test(types_made_meanwhile),   cmocka_unit_test(keys),
        cmocka_unit_test(column_lists),           cmocka_unit_test(altered_since),
    };
    return cmocka_run_group_tests(tests, connect_server, disconnect_server);
}
