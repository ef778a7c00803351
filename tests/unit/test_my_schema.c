/*
 * Schemas and row decoders: from the model, from a table map with names, and from one without.
 */
#include "decoder.h"
#include "my_ddl_test.h"

static struct my_shape *shape_of(struct my_world *w, const char *name)
{
    struct my_shape *s;
    struct cdcd_error err;

    if (my_shapes_find(w->shapes, "db", name)->unsure)
        fail_msg("%s", my_shapes_find(w->shapes, "db", name)->why);
    if (my_shape_of_table(my_shapes_find(w->shapes, "db", name), &w->server, w->filter, &s, &err) !=
        CDCD_OK)
        fail_msg("%s", err.text);
    return s;
}

/* ---- types ---- */

struct type_case {
    const char *sql;
    enum cdcd_type type;
    int length, scale, special;
    int wire, meta;
};

#define T(x) CDCD_T_##x
static const struct type_case types[] = {
    {"TINYINT", T(INT16), -1, -1, MY_PLAIN, MY_TINY, 0},
    {"TINYINT UNSIGNED", T(INT16), -1, -1, MY_PLAIN, MY_TINY, 0},
    {"BOOLEAN", T(INT16), -1, -1, MY_PLAIN, MY_TINY, 0},
    {"SMALLINT", T(INT16), -1, -1, MY_PLAIN, MY_SHORT, 0},
    {"SMALLINT UNSIGNED", T(INT32), -1, -1, MY_PLAIN, MY_SHORT, 0},
    {"MEDIUMINT", T(INT32), -1, -1, MY_PLAIN, MY_INT24, 0},
    {"MEDIUMINT UNSIGNED", T(INT32), -1, -1, MY_PLAIN, MY_INT24, 0},
    {"INT", T(INT32), -1, -1, MY_PLAIN, MY_LONG, 0},
    {"INT(8) ZEROFILL", T(INT64), -1, -1, MY_PLAIN, MY_LONG, 0},
    {"BIGINT", T(INT64), -1, -1, MY_PLAIN, MY_LONGLONG, 0},
    {"BIGINT UNSIGNED", T(UINT64), -1, -1, MY_PLAIN, MY_LONGLONG, 0},
    {"DECIMAL(10,2) UNSIGNED", T(DECIMAL), 10, 2, MY_PLAIN, MY_NEWDECIMAL, 0x020a},
    {"DECIMAL(65,30)", T(DECIMAL), 65, 30, MY_PLAIN, MY_NEWDECIMAL, 0x1e41},
    {"NUMERIC", T(DECIMAL), 10, 0, MY_PLAIN, MY_NEWDECIMAL, 10},
    {"FLOAT", T(FLOAT32), -1, -1, MY_PLAIN, MY_FLOAT, 4},
    {"FLOAT(7,2)", T(FLOAT64), -1, -1, MY_PLAIN, MY_FLOAT, 4},
    {"FLOAT(30)", T(FLOAT64), -1, -1, MY_PLAIN, MY_DOUBLE, 8},
    {"REAL", T(FLOAT64), -1, -1, MY_PLAIN, MY_DOUBLE, 8},
    {"BIT(1)", T(BOOL), -1, -1, MY_BOOL, MY_BIT, 1},
    {"BIT(13)", T(BITS), 13, -1, MY_PLAIN, MY_BIT, 0x0105},
    {"BIT(64)", T(BITS), 64, -1, MY_PLAIN, MY_BIT, 0x0800},
    {"YEAR", T(YEAR), -1, -1, MY_PLAIN, MY_YEAR, 0},
    {"DATE", T(DATE), -1, -1, MY_PLAIN, MY_DATE, 0},
    {"TIME", T(TIME), -1, 0, MY_PLAIN, MY_TIME2, 0},
    {"TIME(6)", T(TIME), -1, 6, MY_PLAIN, MY_TIME2, 6},
    {"DATETIME(3)", T(TIMESTAMP), -1, 3, MY_PLAIN, MY_DATETIME2, 3},
    {"TIMESTAMP NULL", T(TIMESTAMPTZ), -1, 0, MY_PLAIN, MY_TIMESTAMP2, 0},
    {"CHAR(10)", T(STRING), -1, -1, MY_PLAIN, MY_STRING, 40},
    {"CHAR(255) CHARACTER SET utf8mb4", T(STRING), -1, -1, MY_PLAIN, MY_STRING, 1020},
    {"VARCHAR(300) CHARACTER SET latin1", T(STRING), -1, -1, MY_PLAIN, MY_VARCHAR, 300},
    {"VARCHAR(20) CHARACTER SET binary", T(BYTES), -1, -1, MY_BINARY, MY_VARCHAR, 20},
    {"BINARY(8)", T(BYTES), -1, -1, MY_BINARY, MY_STRING, 8},
    {"TINYTEXT", T(STRING), -1, -1, MY_PLAIN, MY_BLOB, 1},
    {"LONGTEXT", T(STRING), -1, -1, MY_PLAIN, MY_BLOB, 4},
    {"MEDIUMBLOB", T(BYTES), -1, -1, MY_BINARY, MY_BLOB, 3},
    {"ENUM('a','b')", T(ENUM), -1, -1, MY_PLAIN, MY_ENUM, 1},
    {"SET('1','2','3','4','5','6','7','8','9')", T(ENUMSET), -1, -1, MY_PLAIN, MY_SET, 2},
    {"JSON", T(JSON), -1, -1, MY_PLAIN, MY_JSON, 4},
    {"GEOMETRY", T(GEOMETRY), -1, -1, MY_PLAIN, MY_GEOMETRY, 4},
    {"POINT", T(POINT), -1, -1, MY_POINT, MY_GEOMETRY, 4},
    {"GEOMETRYCOLLECTION", T(GEOMETRY), -1, -1, MY_PLAIN, MY_GEOMETRY, 4},
    {"VECTOR(4)", T(VECTOR32), -1, -1, MY_PLAIN, MY_VECTOR, 4},
};

static const struct type_case mariadb_types[] = {
    {"JSON", T(STRING), -1, -1, MY_JSON_TEXT, MY_BLOB, 4},
    {"UUID", T(UUID), -1, -1, MY_UUID, MY_STRING, 16},
    {"INET6", T(STRING), -1, -1, MY_INET6, MY_STRING, 16},
    {"INET4", T(STRING), -1, -1, MY_INET4, MY_STRING, 4},
    {"TEXT COMPRESSED", T(STRING), -1, -1, MY_PLAIN, MY_BLOB_COMPRESSED, 2},
    {"VARCHAR(20) CHARACTER SET latin1 COMPRESSED", T(STRING), -1, -1, MY_PLAIN,
     MY_VARCHAR_COMPRESSED, 21},
    /* a VARBINARY of floats there: what is read of it is the length of its length */
    {"VECTOR(4)", T(VECTOR32), -1, -1, MY_PLAIN, MY_VECTOR, 1},
    {"VECTOR(100)", T(VECTOR32), -1, -1, MY_PLAIN, MY_VECTOR, 2},
};

static void check_types(enum my_flavor flavor, const struct type_case *cases, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const struct type_case *c = &cases[i];
        struct my_world w;
        char sql[200];
        world_open(&w, flavor, flavor == MY_MYSQL ? 90704 : 101119);
        snprintf(sql, sizeof sql, "CREATE TABLE t (c %s)", c->sql);
        apply(&w, sql);
        struct my_shape *s = shape_of(&w, "t");
        const struct cdcd_column *col = &s->schema->columns[0];
        const struct my_column_decoder *d = &s->columns[0];
        if (col->type != c->type || col->length != c->length || col->scale != c->scale ||
            d->special != c->special || d->type != c->wire || d->meta != c->meta)
            fail_msg("%s: type %d (%d,%d), special %d, logged as %d with %d", c->sql, col->type,
                     col->length, col->scale, d->special, d->type, d->meta);
        my_shape_free(s);
        world_close(&w);
    }
}

static void test_types(void **state)
{
    (void)state;
    check_types(MY_MYSQL, types, sizeof types / sizeof *types);
    check_types(MY_MARIADB, mariadb_types, sizeof mariadb_types / sizeof *mariadb_types);
}

/* ---- defaults ---- */

struct default_case {
    const char *sql;
    bool has;         /* has_default */
    uint8_t kind;     /* of the cell; NULL: none */
    int64_t i;        /* of numbers and times */
    const char *text; /* of text and bytes */
    size_t len;
};

static const struct default_case defaults[] = {
    {"INT NOT NULL DEFAULT 7", true, CDCD_C_INT, 7, NULL, 0},
    {"INT UNSIGNED NOT NULL DEFAULT '4294967295'", true, CDCD_C_INT, 4294967295, NULL, 0},
    {"BIGINT UNSIGNED DEFAULT 18446744073709551615", true, CDCD_C_UINT, -1, NULL, 0},
    {"TINYINT(1) NOT NULL DEFAULT TRUE", true, CDCD_C_INT, 1, NULL, 0},
    {"DECIMAL(10,3) NOT NULL DEFAULT 1.5", true, CDCD_C_DECIMAL, 0, "1.500", 5},
    {"DECIMAL(10,1) DEFAULT 1.55", false, CDCD_C_NULL, 0, NULL, 0},
    {"DOUBLE NOT NULL DEFAULT 0.1", true, CDCD_C_FLOAT, 0, "0.1", 3},
    {"BIT(8) NOT NULL DEFAULT b'101'", true, CDCD_C_BYTES, 0, "\x05", 1},
    {"BIT(12) NOT NULL DEFAULT b'100000001'", true, CDCD_C_BYTES, 0, "\x01\x01", 2},
    {"BIT(1) NOT NULL DEFAULT 1", true, CDCD_C_BOOL, 1, NULL, 0},
    {"YEAR NOT NULL DEFAULT 2020", true, CDCD_C_INT, 2020, NULL, 0},
    {"DATE NOT NULL DEFAULT '2020-01-02'", true, CDCD_C_DATE, 18263, NULL, 0},
    {"DATE NOT NULL DEFAULT '0000-00-00'", true, CDCD_C_TEXT, 0, "0000-00-00", 10},
    {"TIME(3) NOT NULL DEFAULT '01:02:03.004'", true, CDCD_C_TIME, 3723004000, NULL, 0},
    {"DATETIME(6) NOT NULL DEFAULT '2020-01-02 03:04:05.000006'", true, CDCD_C_TIMESTAMP,
     1577934245, NULL, 0},
    {"DATETIME NOT NULL DEFAULT CURRENT_TIMESTAMP", true, CDCD_C_NULL, 0, NULL, 0},
    {"TIMESTAMP NOT NULL DEFAULT CURRENT_TIMESTAMP ON UPDATE CURRENT_TIMESTAMP", true, CDCD_C_NULL,
     0, NULL, 0},
    {"VARCHAR(20) NOT NULL DEFAULT 'it''s é'", true, CDCD_C_TEXT, 0, "it's é", 7},
    {"ENUM('p','q') NOT NULL DEFAULT 'q'", true, CDCD_C_TEXT, 0, "q", 1},
    {"SET('x','y') NOT NULL DEFAULT 'y,x'", true, CDCD_C_TEXT, 0, "x,y", 3},
    {"BINARY(4) NOT NULL DEFAULT 'ab'", true, CDCD_C_BYTES, 0, "ab\0\0", 4},
    {"VARBINARY(9) DEFAULT 'a\\\\b'", true, CDCD_C_BYTES, 0, "a\\b", 3},
    {"VARCHAR(5) DEFAULT NULL", false, CDCD_C_NULL, 0, NULL, 0},
    {"VARCHAR(40) DEFAULT (CONCAT('a','b'))", false, CDCD_C_NULL, 0, NULL, 0},
    {"INT", false, CDCD_C_NULL, 0, NULL, 0},
};

static void check_default(const struct default_case *c, const struct cdcd_column *col)
{
    const struct cdcd_cell *cell = col->default_cell;

    if (col->has_default != c->has || (cell ? cell->kind : CDCD_C_NULL) != c->kind)
        fail_msg("%s: %d, kind %d", c->sql, col->has_default, cell ? cell->kind : -1);
    assert_int_equal(cell != NULL, col->default_text != NULL);
    if (cell && c->text) {
        assert_int_equal(cell->len, c->len);
        assert_memory_equal(cell->ptr, c->text, c->len);
    } else if (cell) {
        assert_true(cell->i == c->i);
    }
}

static void test_defaults(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof defaults / sizeof *defaults; i++) {
        struct my_world w;
        char sql[200];
        world_open(&w, MY_MYSQL, 90704);
        snprintf(sql, sizeof sql, "CREATE TABLE t (c %s)", defaults[i].sql);
        apply(&w, sql);
        struct my_shape *s = shape_of(&w, "t");
        check_default(&defaults[i], &s->schema->columns[0]);
        my_shape_free(s);
        world_close(&w);
    }
}

/* ---- table maps ---- */

enum { UTF8MB4_BIN = 46, LATIN1 = 8, BINARY = 63 };

#define NAMED(s)    .name = {s, sizeof(s) - 1}
#define TEXT_OF(id) .has_collation = true, .collation = (id)

static const struct my_map_column map_columns[] = {
    {.type = MY_LONG, .has_sign = true, .unsigned_ = true, NAMED("id")},
    {.type = MY_VARCHAR, .meta = 80, .nullable = true, TEXT_OF(UTF8MB4_BIN), NAMED("v")},
    {.type = MY_ENUM, .meta = 1, .nullable = true, TEXT_OF(LATIN1), .nlabels = 2, NAMED("e")},
};
static struct cdcd_slice map_labels[] = {{"\xe9", 1}, {"b", 1}};
static uint32_t map_keys[] = {0}, map_prefix[] = {0};

static struct my_table_map map_of(const struct my_map_column *columns, uint32_t n)
{
    return (struct my_table_map){
        .db = {"db", 2},
        .table = {"t", 1},
        .ncolumns = n,
        .columns = (struct my_map_column *)columns,
        .labels = map_labels,
        .full = true,
        .has_keys = true,
        .nkeys = 1,
        .keys = map_keys,
        .key_prefix = map_prefix,
    };
}

/* The same without what binlog_row_metadata=FULL adds. */
static struct my_table_map bare_of(const struct my_table_map *full, struct my_map_column *columns)
{
    struct my_table_map map = *full;

    for (uint32_t i = 0; i < full->ncolumns; i++)
        columns[i] = (struct my_map_column){.type = full->columns[i].type,
                                            .meta = full->columns[i].meta,
                                            .nullable = full->columns[i].nullable};
    map.columns = columns;
    map.full = map.has_keys = false;
    map.nkeys = 0;
    return map;
}

static struct my_shape *shape_of_map(struct my_world *w, const struct my_table_map *map, bool *fits,
                                     char why[256])
{
    struct my_shape *s;
    struct cdcd_error err;

    if (my_shape_of_map(map, my_shapes_find(w->shapes, "db", "t"), &w->server, w->filter, &s, fits,
                        why, &err) != CDCD_OK)
        fail_msg("%s", err.text);
    assert_int_equal(s != NULL, *fits);
    return s;
}

static void test_maps(void **state)
{
    struct my_world w;
    struct my_map_column columns[3];
    struct my_table_map full = map_of(map_columns, 3), bare = bare_of(&full, columns);
    struct my_shape *of_model, *of_full, *of_bare;
    char why[256];
    bool fits;

    (void)state;
    world_open(&w, MY_MYSQL, 90704);
    /* Without a model: what the map says. */
    of_full = shape_of_map(&w, &full, &fits, why);
    assert_string_equal(of_full->schema->columns[0].type_name, "INT UNSIGNED");
    assert_string_equal(of_full->schema->columns[2].labels[0], "é");
    assert_int_equal(of_full->schema->nkeys, 1);
    my_shape_free(of_full);
    assert_null(shape_of_map(&w, &bare, &fits, why));
    assert_string_equal(why, "nothing is known of the table");

    /* With it, all three ways give the same. */
    apply(&w,
          "CREATE TABLE t (id INT UNSIGNED PRIMARY KEY, v VARCHAR(20) DEFAULT 'x' COMMENT 'c', e "
          "ENUM('é','b') CHARACTER SET latin1 DEFAULT 'b')");
    of_model = shape_of(&w, "t");
    of_full = shape_of_map(&w, &full, &fits, why);
    of_bare = shape_of_map(&w, &bare, &fits, why);
    assert_true(of_model->schema->version == of_full->schema->version);
    assert_true(of_model->schema->version == of_bare->schema->version);
    assert_string_equal(of_full->schema->columns[1].default_text, "x");
    assert_string_equal(of_bare->columns[2].labels[0], "é");
    assert_non_null(of_bare->columns[2].name);
    my_shape_free(of_model);
    my_shape_free(of_full);
    my_shape_free(of_bare);

    /* A renamed column that the model missed: the names of the log are right. */
    apply(&w, "ALTER TABLE t CHANGE v old VARCHAR(20) DEFAULT 'x'");
    of_full = shape_of_map(&w, &full, &fits, why);
    assert_string_equal(of_full->schema->columns[1].name, "v");
    assert_null(of_full->schema->columns[1].default_text);
    my_shape_free(of_full);
    world_close(&w);
}

/* A model that is not the log's, without names to tell. */
static void test_misfits(void **state)
{
    static const struct {
        const char *columns, *why;
    } cases[] = {
        {"id INT UNSIGNED, v VARCHAR(20)", "2 columns are known, the log has 3"},
        {"id INT UNSIGNED NOT NULL, v VARCHAR(21), e ENUM('é','b')",
         "column 2 (v) is known as VARCHAR, the log has another length"},
        {"id BIGINT NOT NULL, v VARCHAR(20), e ENUM('é','b')",
         "column 1 (id) is known as BIGINT, the log has another type"},
        {"id INT UNSIGNED, v VARCHAR(20), e ENUM('é','b')",
         "column 1 (id) is known as INT UNSIGNED, the log has NOT NULL in the log"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct my_world w;
        struct my_map_column columns[3];
        struct my_table_map full = map_of(map_columns, 3), bare = bare_of(&full, columns);
        char sql[200], why[256];
        bool fits;
        world_open(&w, MY_MYSQL, 90704);
        snprintf(sql, sizeof sql, "CREATE TABLE t (%s)", cases[i].columns);
        apply(&w, sql);
        assert_null(shape_of_map(&w, &bare, &fits, why));
        if (strcmp(why, cases[i].why) != 0)
            fail_msg("%s: %s", cases[i].columns, why);
        world_close(&w);
    }
}

/* Signs and charsets are in the log also with binlog_row_metadata=MINIMAL. */
static void test_minimal_metadata(void **state)
{
    static const char *const sql[] = {
        "CREATE TABLE t (id INT NOT NULL, v VARCHAR(20), e ENUM('a','b') CHARACTER SET latin1)",
        "CREATE TABLE t (id INT UNSIGNED NOT NULL, v VARCHAR(80) CHARACTER SET cp1251, e "
        "ENUM('a','b') CHARACTER SET latin1)"};

    (void)state;
    for (size_t i = 0; i < 2; i++) {
        struct my_world w;
        struct my_map_column columns[3];
        struct my_table_map minimal = map_of(map_columns, 3);
        char why[256];
        bool fits;
        memcpy(columns, map_columns, sizeof columns);
        for (int c = 0; c < 3; c++)
            columns[c].name = (struct cdcd_slice){NULL, 0};
        columns[2].nlabels = 0;
        minimal.columns = columns;
        minimal.full = minimal.has_keys = false;
        world_open(&w, MY_MYSQL, 90704);
        apply(&w, sql[i]);
        assert_null(shape_of_map(&w, &minimal, &fits, why));
        assert_non_null(strstr(why, i == 0 ? "another sign" : "another character set"));
        world_close(&w);
    }
}

static void test_unsure_model(void **state)
{
    struct my_world w;
    struct my_map_column columns[3];
    struct my_table_map full = map_of(map_columns, 3), bare = bare_of(&full, columns);
    char why[256];
    bool fits;

    (void)state;
    world_open(&w, MY_MYSQL, 90704);
    apply(&w, "CREATE TABLE t (id INT UNSIGNED NOT NULL, v VARCHAR(20), e ENUM('é','b'))");
    apply(&w, "ALTER TABLE t FUTURE");
    assert_null(shape_of_map(&w, &bare, &fits, why));
    assert_string_equal(why, "not understood at byte 14 of: ALTER TABLE t FUTURE");
    my_shape_free(shape_of_map(&w, &full, &fits, why));
    assert_true(fits);
    world_close(&w);
}

/* MariaDB: a UUID and bytes look alike; hidden columns are in the log. */
static void test_mariadb_maps(void **state)
{
    static const struct my_map_column uuid[] = {
        {.type = MY_STRING, .meta = 16, TEXT_OF(BINARY), NAMED("u")}};
    static const struct my_map_column hidden[] = {
        {.type = MY_LONG, NAMED("a")},
        {.type = MY_BLOB, .meta = 2, .nullable = true, TEXT_OF(UTF8MB4_BIN), NAMED("b")},
        {.type = MY_TIMESTAMP2, .meta = 6, NAMED("row_start")},
        {.type = MY_TIMESTAMP2, .meta = 6, NAMED("row_end")},
        {.type = MY_LONGLONG,
         .nullable = true,
         .has_sign = true,
         .unsigned_ = true,
         NAMED("DB_ROW_HASH_1")}};
    static uint32_t keys[] = {0, 3};
    struct my_world w;
    struct my_map_column columns[5];
    struct my_table_map full = map_of(uuid, 1), bare;
    struct my_shape *s;
    char why[256];
    bool fits;

    (void)state;
    world_open(&w, MY_MARIADB, 101119);
    assert_null(shape_of_map(&w, &full, &fits, why));
    assert_non_null(strstr(why, "may be bytes, a UUID or an address"));
    apply(&w, "CREATE TABLE t (u UUID PRIMARY KEY)");
    s = shape_of_map(&w, &full, &fits, why);
    assert_int_equal(s->columns[0].special, MY_UUID);
    my_shape_free(s);

    apply(&w,
          "CREATE OR REPLACE TABLE t (a INT PRIMARY KEY, b TEXT UNIQUE) WITH SYSTEM VERSIONING");
    full = map_of(hidden, 5);
    full.keys = keys;
    full.nkeys = 2;
    bare = bare_of(&full, columns);
    for (int i = 0; i < 2; i++) {
        s = shape_of_map(&w, i ? &bare : &full, &fits, why);
        if (!s)
            fail_msg("%s", why);
        assert_int_equal(s->ncolumns, 5);
        assert_int_equal(s->schema->ncolumns, 2);
        assert_int_equal(s->schema->nkeys, 1);
        assert_int_equal(s->row_end, 3);
        assert_true(s->versioned);
        assert_int_equal(s->columns[4].column, -1);
        my_shape_free(s);
    }
    world_close(&w);
}

static void test_excluded_columns(void **state)
{
    static char *columns[] = {"db\\.t\\.(id|v)"};
    struct my_world w;
    struct cdcd_error err;

    (void)state;
    world_open(&w, MY_MYSQL, 90704);
    my_filter_free(w.filter);
    w.cfg.column_exclude = (struct cdcd_strlist){columns, 1};
    assert_int_equal(my_filter_new(&w.cfg, &w.filter, &err), CDCD_OK);
    my_shapes_free(w.shapes);
    w.shapes = my_shapes_new(&w.server, w.filter);
    apply(&w, "CREATE TABLE t (id INT PRIMARY KEY, v INT, z INT)");
    struct my_shape *s = shape_of(&w, "t");
    assert_int_equal(s->schema->ncolumns, 2); /* the key stays */
    assert_int_equal(s->columns[0].column, 0);
    assert_int_equal(s->columns[1].column, -1);
    assert_int_equal(s->columns[2].column, 1);
    my_shape_free(s);
    world_close(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_types),
        cmocka_unit_test(test_defaults),
        cmocka_unit_test(test_maps),
        cmocka_unit_test(test_misfits),
        cmocka_unit_test(test_minimal_metadata),
        cmocka_unit_test(test_unsure_model),
        cmocka_unit_test(test_mariadb_maps),
        cmocka_unit_test(test_excluded_columns),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
