/*
 * The MySQL snapshot without a server: keys of tables, cursors and what they become in SQL, and
 * that chunks cover all numbers once.
 */
#include "snapshot_int.h"

#include <inttypes.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

/* ---- keys ---- */

static struct my_table *table_with(const char *type, const char *charset, const char *index_name)
{
    struct my_table *t = my_table_new("db", "t");
    t->columns = cdcd_xcalloc(2, sizeof *t->columns);
    t->ncolumns = 2;
    t->columns[0] = (struct my_column){.name = cdcd_xstrdup("v"), .type = cdcd_xstrdup("INT")};
    t->columns[1] = (struct my_column){.name = cdcd_xstrdup("k"), .type = cdcd_xstrdup(type)};
    if (charset) {
        t->columns[1].charset = cdcd_xstrdup(charset);
        t->columns[1].collation = cdcd_xasprintf("%s_bin", charset);
    }
    t->indexes = cdcd_xcalloc(1, sizeof *t->indexes);
    t->nindexes = 1;
    t->indexes[0] = (struct my_index){.name = cdcd_xstrdup(index_name),
                                      .columns = cdcd_xcalloc(2, sizeof(char *)),
                                      .ncolumns = 1,
                                      .primary = strcmp(index_name, "PRIMARY") == 0,
                                      .unique = true};
    t->indexes[0].columns[0] = cdcd_xstrdup("K");
    my_table_set_keys(t);
    return t;
}

static void keys_by_type(void **state)
{
    (void)state;
    static const struct {
        const char *type, *charset, *index;
        enum my_key_kind kind; /* NONE: the table has no usable key */
        bool integer;
        const char *expression;
    } cases[] = {
        {"INT", NULL, "PRIMARY", MY_KEY_NUMBER, true, "`k`"},
        {"BIGINT UNSIGNED", NULL, "PRIMARY", MY_KEY_NUMBER, true, "`k`"},
        {"TINYINT", NULL, "PRIMARY", MY_KEY_NUMBER, true, "`k`"},
        {"DECIMAL", NULL, "PRIMARY", MY_KEY_NUMBER, false, "`k`"},
        {"YEAR", NULL, "PRIMARY", MY_KEY_NUMBER, false, "`k`"},
        {"DOUBLE", NULL, "PRIMARY", MY_KEY_FLOAT, false, "`k`+0e0"},
        {"FLOAT UNSIGNED", NULL, "PRIMARY", MY_KEY_FLOAT, false, "`k`+0e0"},
        {"ENUM", "utf8mb4", "PRIMARY", MY_KEY_INDEX, false, "`k`+0"},
        {"BIT", NULL, "PRIMARY", MY_KEY_INDEX, false, "`k`+0"},
        {"DATETIME", NULL, "PRIMARY", MY_KEY_TEMPORAL, false, "`k`"},
        {"TIME", NULL, "PRIMARY", MY_KEY_TEMPORAL, false, "`k`"},
        {"UUID", NULL, "PRIMARY", MY_KEY_NAMED, false, "`k`"},
        {"VARCHAR", "latin1", "PRIMARY", MY_KEY_TEXT, false, "HEX(`k`)"},
        {"VARBINARY", NULL, "PRIMARY", MY_KEY_BINARY, false, "HEX(`k`)"},
        {"VARCHAR", "binary", "PRIMARY", MY_KEY_BINARY, false, "HEX(`k`)"},
        {"VARCHAR", "x'; --", "PRIMARY", MY_KEY_NONE, false, NULL},
        {"VARCHAR", NULL, "PRIMARY", MY_KEY_NONE, false, NULL},
        {"GEOMETRY", NULL, "PRIMARY", MY_KEY_NONE, false, NULL},
        {"POINT", NULL, "PRIMARY", MY_KEY_NONE, false, NULL},
        {"INT", NULL, "u`1", MY_KEY_NUMBER, true, "`k`"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct cdcd_arena a;
        struct my_snap_key k;
        struct cdcd_buf b;
        struct my_table *t = table_with(cases[i].type, cases[i].charset, cases[i].index);
        cdcd_arena_init(&a, 1024);
        cdcd_buf_init(&b, 0);
        my_snap_key_of(t, &a, &k);
        assert_int_equal(k.n, cases[i].kind != MY_KEY_NONE);
        if (k.n) {
            assert_int_equal(k.columns[0].kind, cases[i].kind);
            assert_int_equal(k.columns[0].integer, cases[i].integer);
            assert_string_equal(k.index, cases[i].index);
            my_key_expression(&k.columns[0], &b);
            assert_string_equal(cdcd_buf_cstr(&b), cases[i].expression);
            cdcd_buf_clear(&b);
            my_key_force(&k, &b);
            assert_string_equal(cdcd_buf_cstr(&b), strcmp(cases[i].index, "PRIMARY") == 0
                                                       ? " FORCE INDEX (`PRIMARY`)"
                                                       : " FORCE INDEX (`u``1`)");
        }
        cdcd_buf_free(&b);
        cdcd_arena_free(&a);
        my_table_free(t);
    }
}

static char *identity(const char *type, const char *charset)
{
    struct cdcd_arena a;
    struct my_snap_key k;
    struct my_table *t = table_with(type, charset, "PRIMARY");
    cdcd_arena_init(&a, 1024);
    my_snap_key_of(t, &a, &k);
    char *text = cdcd_xstrdup(my_snap_identity(t, &k, &a));
    cdcd_arena_free(&a);
    my_table_free(t);
    return text;
}

/* Equal while the order of keys and the form of cursors stay. */
static void identities(void **state)
{
    (void)state;
    static const struct {
        const char *a, *a_charset, *b, *b_charset;
        bool same;
    } cases[] = {
        {"INT", NULL, "BIGINT UNSIGNED", NULL, true},
        {"INT", NULL, "VARCHAR", "utf8mb4", false},
        {"VARCHAR", "utf8mb4", "CHAR", "utf8mb4", true},
        {"VARCHAR", "utf8mb4", "VARCHAR", "latin1", false},
        {"VARBINARY", NULL, "VARCHAR", "latin1", false},
        {"INT", NULL, "DOUBLE", NULL, false},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char *a = identity(cases[i].a, cases[i].a_charset);
        char *b = identity(cases[i].b, cases[i].b_charset);
        assert_int_equal(strcmp(a, b) == 0, cases[i].same);
        free(a);
        free(b);
    }
}

/* ---- ranges ---- */

static struct my_key_column three[] = {
    {.name = "a", .kind = MY_KEY_NUMBER, .integer = true},
    {.name = "b`c", .kind = MY_KEY_TEXT, .charset = "latin1"},
    {.name = "d", .kind = MY_KEY_FLOAT},
};
static const struct my_snap_key composite = {three, 3, "PRIMARY"};
static const struct my_snap_key single = {three, 1, "PRIMARY"};

static void ranges(void **state)
{
    (void)state;
    static const struct {
        const struct my_snap_key *key;
        const char *begin, *end, *where; /* NULL: not understood */
    } cases[] = {
        {&single, "", "", ""},
        {&single, "[\"5\"]", "", " WHERE `a` > 5"},
        {&single, "", "[\"-9\"]", " WHERE `a` <= -9"},
        {&single, "[\"5\"]", "[\"18446744073709551615\"]",
         " WHERE `a` > 5 AND `a` <= 18446744073709551615"},
        {&composite, "[\"5\",\"C3\",\"1.5\"]", "",
         " WHERE (`a` > 5 OR (`a` = 5 AND (`b``c` > _latin1 X'C3' OR (`b``c` = _latin1 X'C3' AND "
         "`d` > 1.5e0))))"},
        {&composite, "", "[\"5\",\"\",\"1e300\"]",
         " WHERE (`a` < 5 OR (`a` = 5 AND (`b``c` < _latin1 X'' OR (`b``c` = _latin1 X'' AND "
         "`d` <= 1e300))))"},
        {&composite, "[\"1\"]", "[\"2\"]", " WHERE `a` > 1 AND `a` <= 2"},
        {&single, "[\"5\",\"6\"]", "", NULL},
        {&single, "[]", "", NULL},
        {&single, "[\"\"]", "", NULL},
        {&single, "[\"5\"", "", NULL},
        {&single, "[\"5\"]x", "", NULL},
        {&single, "5", "", NULL},
        {&single, "[5]", "", NULL},
        {&single, "[\"1 OR 1=1\"]", "", NULL},
        {&single, "[\"1\\\"\"]", "", NULL},
        {&composite, "[\"1\",\"C3' OR '1\"]", "", NULL},
        {&composite, "[\"1\",\"C\"]", "", NULL},
        {&composite, "[\"1\",\"C3\",\"nan\"]", "", NULL},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct cdcd_buf b;
        cdcd_buf_init(&b, 0);
        bool good = my_range_where(cases[i].key, cases[i].begin, cases[i].end, &b);
        assert_int_equal(good, cases[i].where != NULL);
        if (good)
            assert_string_equal(cdcd_buf_cstr(&b), cases[i].where);
        cdcd_buf_free(&b);
    }
}

static void literals(void **state)
{
    (void)state;
    static const struct {
        enum my_key_kind kind;
        const char *value, *where; /* NULL: refused */
    } cases[] = {
        {MY_KEY_NUMBER, "-1.50", " WHERE `k` > -1.50"},
        {MY_KEY_NUMBER, "1e5", NULL},
        {MY_KEY_FLOAT, "3", " WHERE `k` > 3e0"},
        {MY_KEY_FLOAT, "-1e-300", " WHERE `k` > -1e-300"},
        {MY_KEY_INDEX, "0", " WHERE `k` > 0"},
        {MY_KEY_INDEX, "-1", NULL},
        {MY_KEY_TEMPORAL, "0000-00-00", " WHERE `k` > '0000-00-00'"},
        {MY_KEY_TEMPORAL, "-838:59:59.000001", " WHERE `k` > '-838:59:59.000001'"},
        {MY_KEY_TEMPORAL, "2024'", NULL},
        {MY_KEY_NAMED, "::ffff:1.2.3.4", " WHERE `k` > '::ffff:1.2.3.4'"},
        {MY_KEY_NAMED, "f0g0", NULL},
        {MY_KEY_BINARY, "00FF", " WHERE `k` > _binary X'00FF'"},
        {MY_KEY_BINARY, "0x", NULL},
        {MY_KEY_NONE, "1", NULL},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct my_key_column c = {.name = "k", .kind = cases[i].kind};
        struct my_snap_key k = {&c, 1, NULL};
        struct cdcd_slice v = cdcd_slice_str(cases[i].value);
        struct cdcd_buf cursor, b;
        cdcd_buf_init(&cursor, 0);
        cdcd_buf_init(&b, 0);
        my_cursor_write(&v, 1, &cursor);
        bool good = my_range_where(&k, cdcd_buf_cstr(&cursor), "", &b);
        assert_int_equal(good, cases[i].where != NULL);
        if (good)
            assert_string_equal(cdcd_buf_cstr(&b), cases[i].where);
        cdcd_buf_free(&b);
        cdcd_buf_free(&cursor);
    }
}

/* ---- cutting ---- */

static void chunks_new(struct cdcd_chunks *c)
{
    *c = (struct cdcd_chunks){0};
    cdcd_arena_init(&c->arena, 4096);
    c->items = cdcd_arena_alloc(&c->arena, 1100 * sizeof *c->items);
    c->items[0] = (struct cdcd_chunk){0, "", ""};
    c->n = 1;
}

static void cut_integers(void **state)
{
    (void)state;
    static const struct {
        const char *min, *max;
        bool unsigned_;
        int64_t rows, per_chunk;
        bool cut;
        size_t least, most; /* chunks */
        const char *first;  /* end of the first chunk */
    } cases[] = {
        {"1", "1", false, 1, 100, true, 1, 1, ""},
        {"1", "100", false, 100, 100, true, 1, 1, ""},
        {"1", "101", false, 101, 100, true, 2, 2, "[\"100\"]"},
        {"1", "1000", false, 1000, 100, true, 10, 10, "[\"100\"]"},
        {"1", "2000", false, 1000, 100, true, 20, 20, "[\"100\"]"},
        {"1", "4000", false, 1000, 100, true, 13, 14, "[\"300\"]"},
        {"-500", "499", false, 1000, 100, true, 10, 10, "[\"-401\"]"},
        {"-9223372036854775808", "9223372036854775807", false, 1000, 100, false, 1, 1, ""},
        {"-9223372036854775808", "9223372036854775807", false, -1, 100, true, 990, 1001,
         "[\"-9204925292781066257\"]"},
        {"0", "18446744073709551615", true, 1000, 100, false, 1, 1, ""},
        {"18446744073709551000", "18446744073709551615", true, 616, 100, true, 7, 7,
         "[\"18446744073709551099\"]"},
        {"9223372036854775707", "9223372036854775807", false, 101, 50, true, 3, 3,
         "[\"9223372036854775756\"]"},
        {"1", "100000000", false, 100000000, 100, true, 990, 1001, "[\"100000\"]"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct cdcd_chunks c;
        chunks_new(&c);
        assert_int_equal(my_cut_integers(cases[i].min, cases[i].max, cases[i].unsigned_,
                                         cases[i].rows, cases[i].per_chunk, &c),
                         cases[i].cut);
        if (c.n < cases[i].least || c.n > cases[i].most)
            fail_msg("%s to %s: %zu chunks", cases[i].min, cases[i].max, c.n);
        assert_string_equal(c.items[0].begin, "");
        assert_string_equal(c.items[0].end, cases[i].first);
        assert_string_equal(c.items[c.n - 1].end, "");
        for (size_t k = 1; k < c.n; k++) {
            struct cdcd_slice *v;
            size_t n;
            assert_int_equal(c.items[k].number, k);
            assert_string_equal(c.items[k].begin, c.items[k - 1].end);
            assert_true(my_cursor_parse(&single, c.items[k].begin, &c.arena, &v, &n));
            if (k > 1) { /* upwards */
                struct cdcd_slice *w;
                assert_true(my_cursor_parse(&single, c.items[k - 1].begin, &c.arena, &w, &n));
                if (cases[i].unsigned_)
                    assert_true(strtoull(w->ptr, NULL, 10) < strtoull(v->ptr, NULL, 10));
                else
                    assert_true(strtoll(w->ptr, NULL, 10) < strtoll(v->ptr, NULL, 10));
            }
        }
        cdcd_arena_free(&c.arena);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(keys_by_type), cmocka_unit_test(identities),   cmocka_unit_test(ranges),
        cmocka_unit_test(literals),     cmocka_unit_test(cut_integers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
