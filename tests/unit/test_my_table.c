/*
 * The model of a table: names without regard to case, which index is the key, notes and copies.
 */
#include "my_ddl_test.h"

static void test_names(void **state)
{
    (void)state;
    assert_true(my_name_equal("Straße", "STRAßE"));
    assert_true(my_name_equal("ÀÉ", "àé"));
    assert_true(my_name_equal("", ""));
    assert_false(my_name_equal("a", "ab"));
    assert_false(my_name_equal("ab", "a"));
    assert_false(my_name_equal("\xff", "\xfe"));
    char *folded = my_name_fold("Tab_ÄÖ\xff!");
    assert_string_equal(folded, "tab_äö\xff!");
    free(folded);
}

/* Which of several indexes identifies rows, by the server's order of them. */
static void test_keys(void **state)
{
    static const struct {
        const char *columns, *key;
    } cases[] = {
        {"a INT NOT NULL UNIQUE, b INT PRIMARY KEY", "b"},
        {"a INT UNIQUE, b INT NOT NULL UNIQUE", "b"},
        {"a INT UNIQUE, b INT UNIQUE", ""},
        {"a CHAR(9) NOT NULL, b INT NOT NULL, UNIQUE (a(3)), UNIQUE (b)", "b"},
        {"a CHAR(9) NOT NULL, UNIQUE (a(3))", "a"},
        {"a INT NOT NULL, b INT NOT NULL, UNIQUE (b, a), UNIQUE (a)", "b,a"},
        {"a INT NOT NULL, UNIQUE ((a + 1))", ""},
        {"a INT NOT NULL, KEY (a)", ""},
        {"a TEXT NOT NULL, b INT NOT NULL, UNIQUE (a), UNIQUE (b)", "b"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct my_world w;
        char sql[200], key[100] = "";
        world_open(&w, MY_MYSQL, 80400);
        snprintf(sql, sizeof sql, "CREATE TABLE t (%s)", cases[i].columns);
        apply(&w, sql);
        const struct my_table *t = my_shapes_find(w.shapes, "db", "t");
        for (size_t k = 0; k < t->nkeys; k++)
            snprintf(key + strlen(key), sizeof key - strlen(key), "%s%s", k ? "," : "", t->keys[k]);
        if (strcmp(key, cases[i].key) != 0)
            fail_msg("%s: key %s", cases[i].columns, key);
        world_close(&w);
    }
}

static void test_hash_columns(void **state)
{
    struct my_world w;

    (void)state;
    world_open(&w, MY_MARIADB, 101119);
    apply(&w,
          "CREATE TABLE t (a TEXT, b VARCHAR(1000), c INT, UNIQUE (a), UNIQUE (b, c), UNIQUE (c), "
          "UNIQUE (a(20)))");
    assert_int_equal(my_table_hash_columns(my_shapes_find(w.shapes, "db", "t")), 2);
    world_close(&w);
}

static void write_note(const struct my_table *t, struct cdcd_buf *out)
{
    cdcd_buf_clear(out);
    my_table_write(t, out);
}

static void test_note(void **state)
{
    struct my_world w;
    struct cdcd_buf first, second;

    (void)state;
    cdcd_buf_init(&first, 0);
    cdcd_buf_init(&second, 0);
    world_open(&w, MY_MYSQL, 80400);
    apply(&w,
          "CREATE TABLE t (id BIGINT UNSIGNED AUTO_INCREMENT PRIMARY KEY, a VARCHAR(3) COLLATE "
          "utf8mb4_bin DEFAULT 'x\"\\\\' COMMENT 'c\n', e SET('ä','b'), d DECIMAL(8,2) ZEROFILL, g "
          "INT AS (1) VIRTUAL INVISIBLE, ts TIMESTAMP(3) DEFAULT NOW(3) ON UPDATE NOW(3), UNIQUE "
          "u (a(2)), KEY ((a + 1)))");
    const struct my_table *t = my_shapes_find(w.shapes, "db", "t");
    write_note(t, &first);
    struct my_table *back = my_table_read(cdcd_buf_slice(&first));
    struct my_table *copy = my_table_copy(back);
    my_table_free(back);
    write_note(copy, &second);
    assert_true(cdcd_slice_eq(cdcd_buf_slice(&first), cdcd_buf_slice(&second)));
    assert_int_equal(copy->ncolumns, t->ncolumns);
    assert_int_equal(copy->nindexes, 3);
    assert_true(copy->primary);
    my_table_free(copy);
    cdcd_buf_free(&first);
    cdcd_buf_free(&second);
    world_close(&w);
}

static void test_bad_notes(void **state)
{
    static const char *const notes[] = {
        "",
        "{",
        "[]",
        "{\"v\":1}",
        "{\"v\":1,\"db\":\"d\",\"name\":\"t\"}",
        "{\"v\":2,\"db\":\"d\",\"name\":\"t\",\"columns\":[]}",
        "{\"v\":1,\"db\":\"d\",\"name\":\"t\",\"columns\":[{}]}",
        "{\"v\":1,\"db\":\"d\",\"name\":\"t\",\"columns\":[3]}",
    };

    (void)state;
    for (size_t i = 0; i < sizeof notes / sizeof *notes; i++)
        assert_null(my_table_read(cdcd_slice_str(notes[i])));
    /* Members of a later version pass. */
    struct my_table *t = my_table_read(cdcd_slice_str(
        "{\"v\":1,\"new\":5,\"db\":\"d\",\"name\":\"t\",\"columns\":[{\"n\":\"a\",\"t\":"
        "\"INT\",\"later\":{}}]}"));
    assert_non_null(t);
    assert_int_equal(t->ncolumns, 1);
    assert_int_equal(t->columns[0].length, -1);
    my_table_free(t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_names),        cmocka_unit_test(test_keys),
        cmocka_unit_test(test_hash_columns), cmocka_unit_test(test_note),
        cmocka_unit_test(test_bad_notes),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
