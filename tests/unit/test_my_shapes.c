/*
 * All models of a pipeline: what statements of the log become in the schema change topic, which
 * tables are followed, and notes.
 */
#include "my_ddl_test.h"

#include <cdcd/batch.h>

/* ---- schema change events ---- */

static void put_slice(struct cdcd_buf *b, struct cdcd_slice s)
{
    if (s.ptr)
        cdcd_buf_add(b, s.ptr, s.len);
    else
        cdcd_buf_adds(b, "~");
}

static void put_column_event(struct cdcd_buf *b, const struct cdcd_ddl_column *c)
{
    cdcd_buf_adds(b, "\n    ");
    put_slice(b, c->name);
    cdcd_buf_addf(b, " %d ", c->jdbc_type);
    put_slice(b, c->type_name);
    assert_true(cdcd_slice_eq(c->type_name, c->type_expression));
    cdcd_buf_adds(b, " ");
    put_slice(b, c->charset);
    cdcd_buf_addf(b, " %d %d%s%s%s ", c->length, c->scale, c->optional ? " opt" : "",
                  c->auto_incremented ? " ai" : "", c->generated ? " gen" : "");
    put_slice(b, c->comment);
    cdcd_buf_adds(b, " ");
    put_slice(b, c->default_);
    for (uint32_t i = 0; i < c->nlabels; i++) {
        cdcd_buf_adds(b, i ? "," : " ");
        put_slice(b, c->labels[i]);
    }
}

/* A line for each event: db, source.table, statement; then each change with its columns. */
static const char *events_of(struct my_world *w)
{
    static const char *const types[] = {"CREATE", "ALTER", "DROP"};
    struct cdcd_buf b;

    cdcd_buf_init(&b, 0);
    for (size_t i = 0; i < w->n; i++) {
        const struct cdcd_ddl *d = &w->ddl[i];
        cdcd_buf_adds(&b, i ? "\n" : "");
        put_slice(&b, d->db);
        cdcd_buf_adds(&b, " [");
        put_slice(&b, d->table);
        cdcd_buf_adds(&b, "] ");
        put_slice(&b, d->text);
        for (uint32_t k = 0; k < d->ntables; k++) {
            const struct cdcd_ddl_table *t = &d->tables[k];
            cdcd_buf_addf(&b, "\n  %s ", types[t->type]);
            put_slice(&b, t->db);
            cdcd_buf_adds(&b, ".");
            put_slice(&b, t->table);
            assert_null(t->old_table.ptr);
            if (t->type == CDCD_DDL_DROP)
                continue;
            cdcd_buf_adds(&b, " ");
            put_slice(&b, t->charset);
            cdcd_buf_adds(&b, " ");
            put_slice(&b, t->comment);
            for (uint32_t c = 0; c < t->nkeys; c++) {
                cdcd_buf_adds(&b, c ? "," : " key ");
                put_slice(&b, t->keys[c]);
            }
            for (uint32_t c = 0; c < t->ncolumns; c++)
                put_column_event(&b, &t->columns[c]);
        }
    }
    const char *out = cdcd_arena_dup(&w->arena, b.ptr ? b.ptr : "", b.len);
    cdcd_buf_free(&b);
    return out;
}

static void check(struct my_world *w, const char *sql, const char *want)
{
    apply(w, sql);
    const char *got = events_of(w);
    if (strcmp(got, want) != 0)
        fail_msg("%s: got\n%s\nnot\n%s", sql, got, want);
}

#define INT_ID   "\n    id 4 INT ~ -1 -1 ~ ~"
#define BIG_B    "\n    b -5 BIGINT UNSIGNED ~ -1 -1 opt ~ ~"
#define ENUM_C   "\n    c 1 ENUM utf8mb4 1 -1 opt ~ ~ 'p','q'"
#define AA(cm)   "\n    aa 12 VARCHAR utf8mb4 10 -1 " cm " d"
#define TABLE_IN " utf8mb4 "

/* The statements of the peer's samples, in their order. MySQL's has no comments. */
static void run_samples(struct my_world *w, bool mysql)
{
    const char *cm = mysql ? "~" : "cm", *tab = mysql ? "~" : "tab";
    char want[1000];

#define CHECK(sql, ...)                           \
    do {                                          \
        snprintf(want, sizeof want, __VA_ARGS__); \
        check(w, sql, want);                      \
    } while (0)
    apply(w, "CREATE DATABASE db CHARACTER SET utf8mb4");
    CHECK(
        "CREATE TABLE ddl_t (id INT PRIMARY KEY, a VARCHAR(10) NOT NULL DEFAULT 'd' COMMENT 'cm', "
        "KEY ka (a)) COMMENT='tab'",
        "db [ddl_t] CREATE TABLE ddl_t (id INT PRIMARY KEY, a VARCHAR(10) NOT NULL DEFAULT 'd' "
        "COMMENT 'cm', KEY ka (a)) COMMENT='tab'\n  CREATE db.ddl_t utf8mb4 %s key id" INT_ID
        "\n    a 12 VARCHAR utf8mb4 10 -1 %s d",
        tab, cm);
    CHECK("ALTER TABLE ddl_t ADD COLUMN b DECIMAL(8,3) UNSIGNED NULL AFTER id",
          "db [ddl_t] ALTER TABLE ddl_t ADD COLUMN b DECIMAL(8,3) UNSIGNED NULL AFTER id\n  ALTER "
          "db.ddl_t utf8mb4 %s key id" INT_ID "\n    b 3 DECIMAL UNSIGNED ~ 8 3 opt ~ ~"
          "\n    a 12 VARCHAR utf8mb4 10 -1 %s d",
          tab, cm);
    apply(w, "ALTER TABLE ddl_t RENAME COLUMN a TO aa");
    CHECK(
        "ALTER TABLE ddl_t MODIFY b BIGINT UNSIGNED, ADD c ENUM('p','q'), DROP PRIMARY KEY, ADD "
        "PRIMARY KEY (id,aa)",
        "db [ddl_t] ALTER TABLE ddl_t MODIFY b BIGINT UNSIGNED, ADD c ENUM('p','q'), DROP PRIMARY "
        "KEY, ADD PRIMARY KEY (id,aa)\n  ALTER db.ddl_t utf8mb4 %s key id,aa" INT_ID BIG_B AA("%s")
            ENUM_C,
        tab, cm);
    CHECK("CREATE INDEX ib ON ddl_t(b)", "db [] CREATE INDEX ib ON ddl_t(b)");
    CHECK(
        "RENAME TABLE ddl_t TO ddl_r",
        "db [ddl_r] RENAME TABLE ddl_t TO ddl_r\n  ALTER db.ddl_r utf8mb4 %s key id,aa" INT_ID BIG_B
            AA("%s") ENUM_C,
        tab, cm);
    CHECK(
        "ALTER TABLE ddl_r RENAME TO ddl_s, DROP COLUMN b",
        "db [ddl_s] ALTER TABLE ddl_r RENAME TO ddl_s, DROP COLUMN b\n  ALTER db.ddl_s utf8mb4 %s "
        "key id,aa" INT_ID AA("%s") ENUM_C,
        tab, cm);
    apply(w, "CREATE TABLE ddl_like LIKE ddl_s");
    apply(w, "CREATE TABLE `ddl_ctas` (\n  `id` int NOT NULL,\n  `aa` varchar(10) NOT NULL DEFAULT "
             "'d' COMMENT 'cm'\n) START TRANSACTION");
    CHECK("RENAME TABLE ddl_like TO l1, ddl_ctas TO l2",
          "db [%s] RENAME TABLE ddl_like TO l1\n  ALTER db.l1 utf8mb4 %s key id,aa" INT_ID AA("%s")
              ENUM_C
          "\ndb [%s] RENAME TABLE ddl_ctas TO l2\n  ALTER db.l2 utf8mb4 ~" INT_ID AA("%s"),
          "l2,l1", tab, cm, "l2,l1", cm);
    CHECK("TRUNCATE TABLE l2", "%s", "");
    CHECK("DROP TABLE `l1`,`l2` /* generated by server */",
          "db [l2,l1] DROP TABLE `db`.`l1`\n  DROP db.l1\ndb [l2,l1] DROP TABLE `db`.`l2`\n  DROP "
          "db.l2");
    CHECK("DROP TABLE IF EXISTS `ddl_s` /* generated by server */",
          "db [ddl_s] DROP TABLE IF EXISTS `db`.`ddl_s`\n  DROP db.ddl_s");
    CHECK("CREATE DATABASE other CHARACTER SET latin1",
          "other [~] CREATE DATABASE other CHARACTER SET latin1");
    CHECK("DROP DATABASE other", "other [~] DROP DATABASE other");
    CHECK("ALTER DATABASE db CHARACTER SET utf8mb4",
          "db [] ALTER DATABASE db CHARACTER SET utf8mb4");
    CHECK("CREATE VIEW v2 AS SELECT 1 AS one", "%s", "");
    CHECK("CREATE TEMPORARY TABLE tmpt (id INT)", "%s", "");
}

static void test_events(void **state)
{
    struct my_world w;

    (void)state;
    world_open(&w, MY_MYSQL, 90704);
    run_samples(&w, true);
    world_close(&w);
    world_open(&w, MY_MARIADB, 101119);
    run_samples(&w, false);
    world_close(&w);
}

/* In the order of a Java hash set of "cdc.l1" and "cdc.l2". */
static void test_order_of_tables(void **state)
{
    struct my_world w;

    (void)state;
    world_open(&w, MY_MYSQL, 90704);
    apply(&w, "CREATE TABLE cdc.l1 (a INT)");
    apply(&w, "CREATE TABLE cdc.l2 (a INT)");
    check(&w, "DROP TABLE cdc.l1, cdc.l2",
          "cdc [l2,l1] DROP TABLE `cdc`.`l1`\n  DROP cdc.l1\ncdc [l2,l1] DROP TABLE `cdc`.`l2`\n  "
          "DROP cdc.l2");
    world_close(&w);
}

static void test_event_details(void **state)
{
    struct my_world w;

    (void)state;
    world_open(&w, MY_MYSQL, 90704);
    check(
        &w,
        "/* lead */ CREATE TABLE t (i BIGINT UNSIGNED AUTO_INCREMENT UNIQUE, ts TIMESTAMP NOT NULL "
        "DEFAULT CURRENT_TIMESTAMP ON UPDATE CURRENT_TIMESTAMP, c CHAR(5) DEFAULT 'it''s\\\\', s "
        "SET('a','b''c'), bn BINARY(3) DEFAULT 'a', bt BIT(8) DEFAULT b'101', f CHAR(3) DEFAULT "
        "(UUID()), d DOUBLE(10,4), dt DATETIME(6)); -- tail",
        "db [t] CREATE TABLE t (i BIGINT UNSIGNED AUTO_INCREMENT UNIQUE, ts TIMESTAMP NOT NULL "
        "DEFAULT CURRENT_TIMESTAMP ON UPDATE CURRENT_TIMESTAMP, c CHAR(5) DEFAULT 'it''s\\\\', s "
        "SET('a','b''c'), bn BINARY(3) DEFAULT 'a', bt BIT(8) DEFAULT b'101', f CHAR(3) DEFAULT "
        "(UUID()), d DOUBLE(10,4), dt DATETIME(6))\n  CREATE db.t utf8mb4 ~ key i"
        "\n    i -5 BIGINT UNSIGNED ~ -1 -1 ai gen ~ ~"
        "\n    ts 2014 TIMESTAMP ~ -1 -1 ai gen ~ 1970-01-01 00:00:00"
        "\n    c 1 CHAR utf8mb4 5 -1 opt ~ it''s\\\\"
        "\n    s 1 SET utf8mb4 3 -1 opt ~ ~ 'a','b''c'"
        "\n    bn -2 BINARY ~ 3 -1 opt ~ a\\0\\0"
        "\n    bt -7 BIT ~ 8 -1 opt ~ 101"
        "\n    f 1 CHAR utf8mb4 3 -1 opt ~ ~"
        "\n    d 8 DOUBLE ~ 10 4 opt ~ ~"
        "\n    dt 93 DATETIME ~ 6 -1 opt ~ ~");
    /* What is not understood is told as it is, without a change. */
    check(&w, "ALTER TABLE t FUTURE", "db [] ALTER TABLE t FUTURE");
    /* A unique index that becomes the key is a change of the table. */
    apply(&w, "CREATE TABLE k (a INT NOT NULL)");
    check(
        &w, "CREATE UNIQUE INDEX u ON k (a)",
        "db [k] CREATE UNIQUE INDEX u ON k (a)\n  ALTER db.k utf8mb4 ~ key a\n    a 4 INT ~ -1 -1 "
        "~ ~");
    world_close(&w);
}

/* ---- what is followed ---- */

static void test_filter(void **state)
{
    static char *databases[] = {"db"}, *tables[] = {"db\\.orders"};
    struct my_world w;
    struct cdcd_error err;

    (void)state;
    world_open(&w, MY_MYSQL, 90704);
    my_filter_free(w.filter);
    my_shapes_free(w.shapes);
    w.cfg.database_include = (struct cdcd_strlist){databases, 1};
    w.cfg.table_include = (struct cdcd_strlist){tables, 1};
    assert_int_equal(my_filter_new(&w.cfg, &w.filter, &err), CDCD_OK);
    w.shapes = my_shapes_new(&w.server, w.filter);

    apply(&w, "CREATE TABLE orders (a INT)");
    assert_int_equal(w.n, 1);
    check(&w, "CREATE TABLE _orders_gho LIKE orders", "");
    check(&w, "ALTER TABLE _orders_gho ADD b INT", "");
    /* The swap of an online schema change: the captured table has the other one's shape. */
    check(&w, "RENAME TABLE orders TO _orders_del, _orders_gho TO orders",
          "db [orders] RENAME TABLE _orders_gho TO orders\n  ALTER db.orders utf8mb4 ~\n    a 4 "
          "INT ~ "
          "-1 -1 opt ~ ~\n    b 4 INT ~ -1 -1 opt ~ ~");
    assert_string_equal(model_of(&w, "orders"), "a INT, b INT");
    check(&w, "DROP TABLE _orders_del", "");
    check(&w, "CREATE DATABASE other", "");
    check(&w, "CREATE TABLE other.orders (a INT)", "");
    assert_null(my_shapes_find(w.shapes, "other", "orders"));
    /* From where nothing is known. */
    apply(&w, "RENAME TABLE other.orders TO db.from_other");
    assert_string_equal(model_of(&w, "from_other"), "unsure: ");
    world_close(&w);
}

/* ---- notes ---- */

static size_t take_notes(struct my_world *w, struct cdcd_notes *notes)
{
    struct cdcd_batch *b = cdcd_batch_new();
    size_t n = 0;

    my_shapes_notes(w->shapes, b);
    for (const struct cdcd_note *x = b->notes; x; x = x->next, n++)
        cdcd_notes_set(notes, x->key, x->value);
    cdcd_batch_free(b);
    return n;
}

static void test_notes(void **state)
{
    struct my_world w, again;
    struct cdcd_notes *notes = cdcd_notes_new();
    struct cdcd_error err;

    (void)state;
    world_open(&w, MY_MARIADB, 101119);
    apply(&w, "CREATE DATABASE db CHARACTER SET latin1 COLLATE latin1_bin");
    apply(&w, "CREATE TABLE `q\"ü` (a INT)");
    apply(&w, "CREATE TABLE t (id INT PRIMARY KEY, e ENUM('é','b') DEFAULT 'b', j JSON, u UUID "
              "DEFAULT uuid(), c VARCHAR(5) COMPRESSED COMMENT 'cm') WITH SYSTEM VERSIONING");
    apply(&w, "ALTER TABLE gone ADD a INT");
    assert_int_equal(take_notes(&w, notes), 4);
    assert_int_equal(take_notes(&w, notes), 0); /* nothing has changed since */
    assert_non_null(cdcd_notes_get(notes, cdcd_slice_str("[\"db\",\"q\\\"ü\"]")).ptr);
    apply(&w, "DROP TABLE `q\"ü`");
    apply(&w, "ALTER TABLE t ADD z INT");
    assert_int_equal(take_notes(&w, notes), 2);
    assert_int_equal(cdcd_notes_count(notes), 3);

    world_open(&again, MY_MARIADB, 101119);
    assert_int_equal(my_shapes_load(again.shapes, notes, &err), CDCD_OK);
    assert_string_equal(model_of(&again, "t"), model_of(&w, "t"));
    assert_string_equal(model_of(&again, "gone"), "unsure: ");
    assert_string_equal(model_of(&again, "q\"ü"), "none");
    assert_int_equal(take_notes(&again, notes), 0); /* what is loaded is stored already */
    apply(&again, "CREATE TABLE d (c CHAR(1))");
    assert_string_equal(model_of(&again, "d"), "c CHAR(1) latin1");

    cdcd_notes_set(notes, cdcd_slice_str("[\"db\",\"t\"]"), cdcd_slice_str("{\"v\":99}"));
    assert_int_equal(my_shapes_load(again.shapes, notes, &err), CDCD_ERROR);
    assert_int_equal(err.class, CDCD_ERR_FATAL);
    cdcd_notes_free(notes);
    world_close(&w);
    world_close(&again);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_events),        cmocka_unit_test(test_order_of_tables),
        cmocka_unit_test(test_event_details), cmocka_unit_test(test_filter),
        cmocka_unit_test(test_notes),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
