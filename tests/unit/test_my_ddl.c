/*
 * The lenient DDL parser: what statements are, and what they make of a model. That it agrees with
 * the servers is tested on them (integration/test_my_ddl.py); here are the rules one by one.
 */
#include "my_ddl_test.h"

/* ---- kinds of statements ---- */

struct kind_case {
    const char *sql;
    enum my_statement kind;
    const char *db, *table, *xid;
};

static const struct kind_case kinds[] = {
    {"BEGIN", MY_ST_BEGIN, "db", "", ""},
    {"START TRANSACTION WITH CONSISTENT SNAPSHOT", MY_ST_BEGIN, "db", "", ""},
    {"COMMIT", MY_ST_COMMIT, "db", "", ""},
    {" /* x */ rollback", MY_ST_ROLLBACK, "db", "", ""},
    {"ROLLBACK TO `s`", MY_ST_ROLLBACK_TO, "db", "", ""},
    {"ROLLBACK WORK TO SAVEPOINT s", MY_ST_ROLLBACK_TO, "db", "", ""},
    {"SAVEPOINT `a``b`", MY_ST_SAVEPOINT, "db", "", ""},
    {"XA START X'78',X'',1", MY_ST_XA_START, "db", "", "X'78',X'',1"},
    {"XA END X'7A',X'62',17", MY_ST_XA_END, "db", "", "X'7a',X'62',17"},
    {"XA COMMIT 'x1'", MY_ST_XA_COMMIT, "db", "", "X'7831',X'',1"},
    {"xa rollback 'g','b',3", MY_ST_XA_ROLLBACK, "db", "", "X'67',X'62',3"},
    {"CREATE TABLE t (a INT)", MY_ST_DDL, "db", "", ""},
    {"create or replace table t (a int)", MY_ST_DDL, "db", "", ""},
    {"ALTER ONLINE IGNORE TABLE t ADD a INT", MY_ST_DDL, "db", "", ""},
    {"DROP TABLES a, b", MY_ST_DDL, "db", "", ""},
    {"RENAME TABLE a TO b", MY_ST_DDL, "db", "", ""},
    {"rename /* gh-ost */ table a to b", MY_ST_DDL, "db", "", ""},
    {"CREATE UNIQUE INDEX i ON t (a)", MY_ST_DDL, "db", "", ""},
    {"DROP INDEX i ON t", MY_ST_DDL, "db", "", ""},
    {"CREATE DATABASE x", MY_ST_DDL, "db", "", ""},
    {"ALTER SCHEMA x CHARACTER SET latin1", MY_ST_DDL, "db", "", ""},
    {"CREATE SEQUENCE s", MY_ST_DDL, "db", "", ""},
    {"/*!50100 ALTER */ TABLE t ADD a INT", MY_ST_DDL, "db", "", ""},
    {"/*!99999 ALTER */ FLUSH TABLES", MY_ST_OTHER, "db", "", ""},
    {"SET STATEMENT max_statement_time=(1+2), x='FOR' FOR ALTER TABLE t ADD a INT", MY_ST_DDL, "db",
     "", ""},
    {"TRUNCATE t", MY_ST_TRUNCATE, "db", "t", ""},
    {"TRUNCATE TABLE `o`.`p`", MY_ST_TRUNCATE, "o", "p", ""},
    {"INSERT LOW_PRIORITY IGNORE INTO t VALUES (1)", MY_ST_DML, "db", "t", ""},
    {"REPLACE o.t SET a = 1", MY_ST_DML, "o", "t", ""},
    {"UPDATE IGNORE `a b` SET x = 1", MY_ST_DML, "db", "a b", ""},
    {"DELETE QUICK FROM t WHERE a", MY_ST_DML, "db", "t", ""},
    {"DELETE FROM `mem`", MY_ST_DML, "db", "mem", ""},
    {"UPDATE o.t AS a SET a.x = 1", MY_ST_DML, "o", "t", ""},
    {"DELETE FROM t a WHERE x = 'JOIN'", MY_ST_DML, "db", "t", ""},
    /* Of several tables: none is told. */
    {"UPDATE t, o.u SET t.x = u.x", MY_ST_DML, "db", "", ""},
    {"UPDATE o.t LEFT JOIN u ON t.a = u.a SET u.x = 1", MY_ST_DML, "db", "", ""},
    {"DELETE t, u FROM t JOIN u", MY_ST_DML, "db", "", ""},
    {"DELETE FROM t USING t JOIN u", MY_ST_DML, "db", "", ""},
    {"LOAD DATA INFILE 'x' INTO TABLE `t` FIELDS", MY_ST_DML, "db", "t", ""},
    {"CALL p()", MY_ST_DML, "db", "", ""},
    {"SELECT f()", MY_ST_DML, "db", "", ""},
    {"(SELECT f())", MY_ST_DML, "db", "", ""},
    {"CREATE VIEW v AS SELECT 1", MY_ST_OTHER, "db", "", ""},
    {"CREATE OR REPLACE ALGORITHM=MERGE VIEW v AS SELECT 1", MY_ST_OTHER, "db", "", ""},
    {"CREATE USER u", MY_ST_OTHER, "db", "", ""},
    {"RENAME USER a TO b", MY_ST_OTHER, "db", "", ""},
    {"CREATE DEFINER=`a`@`b` TRIGGER t BEFORE INSERT ON x FOR EACH ROW SET @a = 1", MY_ST_OTHER,
     "db", "", ""},
    {"DROP VIEW v", MY_ST_OTHER, "db", "", ""},
    {"ANALYZE TABLE t", MY_ST_OTHER, "db", "", ""},
    {"GRANT ALL ON *.* TO u", MY_ST_OTHER, "db", "", ""},
    {"# Dummy event replacing event type 160", MY_ST_OTHER, "db", "", ""},
    {"", MY_ST_OTHER, "db", "", ""},
    {"/* never ends", MY_ST_OTHER, "db", "", ""},
    {"TRUNCATE `never ends", MY_ST_TRUNCATE, "db", "never ends", ""},
};

static void test_kinds(void **state)
{
    struct cdcd_arena a;

    (void)state;
    cdcd_arena_init(&a, 4096);
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        const struct kind_case *c = &kinds[i];
        struct my_event e = query_of(c->sql, strlen(c->sql));
        struct my_statement_info info;
        my_statement_of(&e, MY_MYSQL, 80400, &a, &info);
        if (info.kind != c->kind)
            fail_msg("%s: kind %d, not %d", c->sql, info.kind, c->kind);
        assert_string_equal(info.db, c->db);
        assert_string_equal(info.table, c->table);
        assert_int_equal(info.xid.len, strlen(c->xid));
        assert_memory_equal(info.xid.ptr, c->xid, info.xid.len);
    }
    cdcd_arena_free(&a);
}

static void test_temporary(void **state)
{
    static const char *const sql[] = {"CREATE TEMPORARY TABLE t (a INT)", "DROP TEMPORARY TABLE t"};
    struct cdcd_arena a;

    (void)state;
    cdcd_arena_init(&a, 4096);
    for (size_t i = 0; i < 2; i++) {
        struct my_event e = query_of(sql[i], strlen(sql[i]));
        struct my_statement_info info;
        my_statement_of(&e, MY_MYSQL, 80400, &a, &info);
        assert_int_equal(info.kind, MY_ST_DDL);
        assert_true(info.temporary);
    }
    cdcd_arena_free(&a);
}

/* ---- models ---- */

/* Statements one after the other on tables of the database db; then the model of t. */
struct model_case {
    const char *sql[8];
    const char *want;
};

static void run_cases(enum my_flavor flavor, int version, const struct model_case *cases, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        struct my_world w;
        world_open(&w, flavor, version);
        for (size_t k = 0; k < 8 && cases[i].sql[k]; k++)
            apply(&w, cases[i].sql[k]);
        const char *got = model_of(&w, "t");
        if (strcmp(got, cases[i].want) != 0)
            fail_msg("%s: got\n%s\nnot\n%s", cases[i].sql[0], got, cases[i].want);
        world_close(&w);
    }
}
#define RUN(flavor, version, cases) \
    run_cases(flavor, version, cases, sizeof(cases) / sizeof *(cases))

static const struct model_case creates[] = {
    {{"CREATE TABLE t (id INT PRIMARY KEY, a VARCHAR(10) NOT NULL DEFAULT 'd' COMMENT 'cm', KEY ka "
      "(a)) COMMENT='tab'"},
     "id INT nn, a VARCHAR(10) utf8mb4 nn def=d 'cm' | id"},
    {{"CREATE TABLE `t` (`a``b` int, `select` int unsigned zerofill, 2x bool)"},
     "a`b INT, select INT UNSIGNED ZEROFILL, 2x TINYINT(1)"},
    {{"CREATE TABLE t (u SERIAL, b BIT, d DEC(5), f FLOAT(30), y YEAR(4), n NUMERIC)"},
     "u BIGINT UNSIGNED nn ai, b BIT(1), d DECIMAL(5,0), f DOUBLE, y YEAR(4), n DECIMAL(10,0) | u"},
    {{"CREATE TABLE t (a CHAR CHARACTER SET binary, b TEXT(100), c NATIONAL VARCHAR(3), d LONG "
      "VARBINARY, e VARCHAR(20000)) CHARSET latin1"},
     "a BINARY(1), b TINYTEXT latin1, c VARCHAR(3) utf8mb3, d MEDIUMBLOB, e VARCHAR(20000) latin1"},
    {{"CREATE TABLE t (e ENUM('a','it''s','b\\'s',\"q\") NOT NULL DEFAULT 'A', s SET('x','y') "
      "DEFAULT 'y,x')"},
     "e ENUM[a,it's,b's,q] utf8mb4 nn def=a, s SET[x,y] utf8mb4 def=x,y"},
    {{"CREATE TABLE t (a INT DEFAULT (1+2), b TIMESTAMP(3) DEFAULT NOW(3) ON UPDATE NOW(3), c INT "
      "AS (a*2), d INT GENERATED ALWAYS AS (a) STORED NOT NULL, e INT INVISIBLE)"},
     "a INT expr=(1+2), b TIMESTAMP(3) onupdate expr=CURRENT_TIMESTAMP(3), c INT gen virtual, d "
     "INT "
     "nn gen, e INT invisible"},
    {{"CREATE TABLE t (a DECIMAL(8,3) DEFAULT 1.5, b BIT(8) DEFAULT b'0101', c BINARY(4) DEFAULT "
      "'ab', d DATETIME(2) DEFAULT '2020-1-2', e TIME DEFAULT '9:30', f INT DEFAULT TRUE, g INT "
      "DEFAULT -07, h DATE DEFAULT 20200304, i VARCHAR(3) DEFAULT 'a' 'b')"},
     "a DECIMAL(8,3) def=1.500, b BIT(8) def=101, c BINARY(4) def=ab\\0\\0, d DATETIME(2) "
     "def=2020-01-02 00:00:00.00, e TIME def=09:30:00, f INT def=1, g INT def=-7, h DATE "
     "def=2020-03-04, i VARCHAR(3) utf8mb4 def=ab"},
    {{"CREATE TABLE t (a INT NOT NULL, b INT, c INT NOT NULL, UNIQUE (b), UNIQUE k (c, a))"},
     "a INT nn, b INT, c INT nn | c,a"},
    {{"CREATE TABLE t (a INT, CONSTRAINT c CHECK (a > (1)), FOREIGN KEY (a) REFERENCES p (x, y) ON "
      "DELETE SET NULL ON UPDATE CASCADE, FULLTEXT (b), b TEXT, PRIMARY KEY USING BTREE (b(10)))"},
     "a INT, b TEXT utf8mb4 nn | b"},
    {{"CREATE TABLE t (a INT /*!50100 NOT NULL */ /*!99999 UNIQUE */ /*M! DEFAULT 5 */) "
      "/*!50100 PARTITION BY HASH(a) PARTITIONS 4 */"},
     "a INT nn"},
    {{"CREATE TABLE o (x INT PRIMARY KEY, y TEXT)", "CREATE TABLE t LIKE o"},
     "x INT nn, y TEXT utf8mb4 | x"},
    {{"CREATE TABLE `t` (\n  `id` int NOT NULL,\n  `aa` varchar(10) NOT NULL DEFAULT 'd'\n) START "
      "TRANSACTION"},
     "id INT nn, aa VARCHAR(10) utf8mb4 nn def=d"},
    {{"CREATE DATABASE db CHARACTER SET latin1", "CREATE TABLE t (a CHAR(3))"}, "a CHAR(3) latin1"},
    {{"CREATE TABLE t (a INT)", "CREATE TABLE IF NOT EXISTS t (b INT)"}, "a INT"},
    {{"CREATE TEMPORARY TABLE t (a INT)"}, "none"},
    {{"CREATE TABLE other.t (a INT)"}, "none"},
};

/* What is not understood is said, and never an error. */
static const struct model_case unsure[] = {
    {{"CREATE TABLE t SELECT 1 AS a"}, "unsure: "},
    {{"CREATE TABLE t (a INT) SELECT 2 AS b"}, "unsure: "},
    {{"CREATE TABLE t (a FUTURETYPE(3))"}, "unsure: "},
    {{"CREATE TABLE t (a INT FUTURE_ATTRIBUTE)"}, "unsure: "},
    {{"CREATE TABLE t LIKE not_there"}, "unsure: "},
    {{"CREATE TABLE t (a INT"}, "unsure: "},
    {{"CREATE TABLE t (a INT)", "ALTER TABLE t FUTURE CLAUSE (a), ADD b INT"}, "unsure: a INT"},
    {{"CREATE TABLE t (a INT)", "ALTER TABLE t FUTURE THING"}, "unsure: a INT"},
    {{"CREATE TABLE t (a INT)", "ALTER TABLE t DROP a, ADD b INT AFTER gone"}, "unsure: a INT"},
    {{"CREATE TABLE t (a INT)", "ALTER TABLE t MODIFY gone INT"}, "unsure: a INT"},
    {{"CREATE TABLE t (a INT)", "ALTER TABLE t RENAME COLUMN gone TO b"}, "unsure: a INT"},
    {{"ALTER TABLE t ADD a INT"}, "unsure: "},
    {{"RENAME TABLE gone TO t"}, "unsure: "},
    /* It stays so, by its new name too, until it is made anew. */
    {{"CREATE TABLE x (a INT)", "ALTER TABLE x FUTURE", "RENAME TABLE x TO t"}, "unsure: a INT"},
    {{"CREATE TABLE x (a INT)", "ALTER TABLE x FUTURE", "ALTER TABLE x RENAME t"}, "unsure: a INT"},
    {{"ALTER TABLE t ADD a INT", "DROP TABLE t", "CREATE TABLE t (b INT)"}, "b INT"},
    {{"ALTER TABLE t ADD a INT", "CREATE TABLE IF NOT EXISTS t (b INT)"}, "b INT"},
};

static const struct model_case alters[] = {
    {{"CREATE TABLE t (a INT, b INT, c INT)",
      "ALTER TABLE t ADD d INT FIRST, ADD COLUMN e INT AFTER a, ADD (f INT, g INT), DROP b"},
     "d INT, a INT, e INT, c INT, f INT, g INT"},
    {{"CREATE TABLE t (a INT, b INT, c INT)",
      "ALTER TABLE t MODIFY c BIGINT FIRST, CHANGE a x INT"},
     "c BIGINT, x INT, b INT"},
    /* Behind a column that moves later: where it is until then. */
    {{"CREATE TABLE t (a INT, b INT)", "ALTER TABLE t ADD x INT AFTER a, MODIFY a INT AFTER b"},
     "x INT, b INT, a INT"},
    {{"CREATE TABLE t (a INT, b TEXT)", "ALTER TABLE t RENAME COLUMN a TO b, RENAME COLUMN b TO a"},
     "b INT, a TEXT utf8mb4"},
    {{"CREATE TABLE t (a INT, b INT)", "ALTER TABLE t CHANGE a b TEXT, CHANGE b a INT"},
     "b TEXT utf8mb4, a INT"},
    {{"CREATE TABLE t (Name INT)", "ALTER TABLE t CHANGE name NAME INT"}, "NAME INT"},
    {{"CREATE TABLE t (a INT, b INT)", "ALTER TABLE t DROP a, ADD a TEXT FIRST"},
     "a TEXT utf8mb4, b INT"},
    {{"CREATE TABLE t (a INT)",
      "ALTER TABLE t ALTER a SET DEFAULT '05', ALGORITHM=INPLACE, LOCK=NONE",
      "ALTER TABLE t ADD b INT DEFAULT 1", "ALTER TABLE t ALTER COLUMN b DROP DEFAULT"},
     "a INT def=5, b INT"},
    {{"CREATE TABLE t (a INT PRIMARY KEY, b INT NOT NULL)",
      "ALTER TABLE t DROP PRIMARY KEY, ADD PRIMARY KEY (b, a)"},
     "a INT nn, b INT nn | b,a"},
    {{"CREATE TABLE t (a INT PRIMARY KEY, b INT)",
      "ALTER TABLE t RENAME COLUMN a TO k, MODIFY b TEXT"},
     "k INT nn, b TEXT utf8mb4 | k"},
    {{"CREATE TABLE t (a INT NOT NULL UNIQUE, b INT NOT NULL)", "ALTER TABLE t ADD UNIQUE (b)",
      "ALTER TABLE t DROP INDEX a"},
     "a INT nn, b INT nn | b"},
    {{"CREATE TABLE t (a INT NOT NULL, UNIQUE ua (a))", "DROP INDEX ua ON t"}, "a INT nn"},
    {{"CREATE TABLE t (a INT NOT NULL)", "CREATE UNIQUE INDEX u ON t (a)"}, "a INT nn | a"},
    {{"CREATE TABLE t (a INT NOT NULL UNIQUE)", "ALTER TABLE t MODIFY a INT"}, "a INT"},
    {{"CREATE TABLE t (a TINYTEXT, b TEXT, c CHAR(3), d BLOB, e INT) CHARSET latin1",
      "ALTER TABLE t CONVERT TO CHARACTER SET utf8mb4"},
     "a TEXT utf8mb4, b MEDIUMTEXT utf8mb4, c CHAR(3) utf8mb4, d BLOB, e INT"},
    {{"CREATE TABLE t (a CHAR(3)) CHARSET latin1",
      "ALTER TABLE t DEFAULT CHARSET utf8mb4, ADD b CHAR"},
     "a CHAR(3) latin1, b CHAR(1) utf8mb4"},
    {{"CREATE TABLE x (a INT)", "ALTER TABLE x RENAME TO t, ADD b INT"}, "a INT, b INT"},
    {{"CREATE TABLE x (a INT)", "CREATE TABLE t (b INT)",
      "RENAME TABLE t TO tmp, x TO t, tmp TO x"},
     "a INT"},
    {{"CREATE TABLE t (a INT)", "CREATE TABLE _t_gho LIKE t", "ALTER TABLE _t_gho ADD b INT",
      "rename /* gh-ost */ table `db`.`t` to `db`.`_t_del`, `db`.`_t_gho` to `db`.`t`"},
     "a INT, b INT"},
    {{"CREATE TABLE t (a INT)", "ALTER TABLE t ADD PARTITION (PARTITION p VALUES LESS THAN (3))",
      "ALTER TABLE t DROP PARTITION p, q",
      "ALTER TABLE t REORGANIZE PARTITION p INTO (PARTITION x)",
      "ALTER TABLE t TRUNCATE PARTITION p0, p1", "ALTER TABLE t ADD b INT PARTITION BY HASH (b)"},
     "a INT, b INT"},
    {{"CREATE TABLE t (a INT)",
      "ALTER TABLE t ADD INDEX (a), ADD CONSTRAINT f FOREIGN KEY (a) "
      "REFERENCES x (y), DROP FOREIGN KEY f, DROP CHECK c, DISABLE KEYS, COMMENT 'x', "
      "AUTO_INCREMENT = 5 ENGINE = InnoDB, ORDER BY a, b DESC"},
     "a INT"},
    {{"CREATE TABLE t (a INT)",
      "/* lead */ ALTER /*!50000 TABLE */ t /* mid */ ADD # hash\n COLUMN "
      "`c``q` int DEFAULT 3 -- tail\n ;"},
     "a INT, c`q INT def=3"},
    {{"CREATE TABLE t (a INT)", "DROP TABLE IF EXISTS x, `db`.`t`"}, "none"},
    {{"CREATE TABLE t (a INT)", "DROP DATABASE db"}, "none"},
    {{"CREATE TABLE t (a INT)", "DROP TEMPORARY TABLE t"}, "a INT"},
};

static const struct model_case mariadb[] = {
    {{"CREATE TABLE t (a JSON, b LONGTEXT CHECK (json_valid(`b`)), c LONGTEXT CHECK (c <> ''))"},
     "a LONGTEXT utf8mb4 json, b LONGTEXT utf8mb4 json, c LONGTEXT utf8mb4"},
    {{"CREATE TABLE t (a UUID DEFAULT uuid(), b INET6, c VARCHAR(9) /*M!100301 COMPRESSED*/, d "
      "TEXT "
      "COMPRESSED=zlib, e INT DEFAULT (NEXT VALUE FOR s))"},
     "a UUID expr=uuid(), b INET6, c VARCHAR(9) utf8mb4 compressed, d TEXT utf8mb4 compressed, e "
     "INT "
     "expr=(NEXT VALUE FOR s)"},
    {{"CREATE TABLE t (a INT PRIMARY KEY) WITH SYSTEM VERSIONING", "ALTER TABLE t ADD b INT"},
     "a INT nn, b INT, row_start TIMESTAMP(6) nn invisible, row_end TIMESTAMP(6) nn invisible | a"},
    {{"CREATE TABLE t (a INT) WITH SYSTEM VERSIONING", "ALTER TABLE t DROP SYSTEM VERSIONING"},
     "a INT"},
    {{"CREATE TABLE t (a INT, s DATE, e DATE, PERIOD FOR p (s, e), UNIQUE (a, p WITHOUT "
      "OVERLAPS))"},
     "a INT, s DATE nn, e DATE nn"},
    {{"CREATE TABLE t (a INT)",
      "ALTER TABLE IF EXISTS t WAIT 5 ADD COLUMN IF NOT EXISTS a TEXT, ADD "
      "COLUMN IF NOT EXISTS b INT, DROP COLUMN IF EXISTS c, MODIFY COLUMN IF EXISTS d INT"},
     "a INT, b INT"},
    {{"CREATE TABLE t (a INT)", "CREATE OR REPLACE TABLE t (b INT)"}, "b INT"},
    {{"CREATE TABLE p (a INT, b INT)", "ALTER TABLE p CONVERT PARTITION q TO TABLE t"},
     "a INT, b INT"},
    {{"CREATE TABLE t (a INT)", "CREATE TABLE p (a INT)",
      "ALTER TABLE p CONVERT TABLE t TO PARTITION q VALUES LESS THAN (5)"},
     "none"},
    {{"CREATE TABLE t (a INT /*!50700 NOT NULL */ /*!50100 COMMENT 'x' */ /*M!100100 DEFAULT 5 "
      "*/)"},
     "a INT def=5 'x'"},
    {{"CREATE SEQUENCE t", "DROP SEQUENCE t"}, "none"},
};

static void test_creates(void **state)
{
    (void)state;
    RUN(MY_MYSQL, 80400, creates);
}

static void test_unsure(void **state)
{
    (void)state;
    RUN(MY_MYSQL, 80400, unsure);
}

static void test_alters(void **state)
{
    (void)state;
    RUN(MY_MYSQL, 80400, alters);
    RUN(MY_MARIADB, 101100, alters);
}

static void test_mariadb(void **state)
{
    (void)state;
    RUN(MY_MARIADB, 101100, mariadb);
}

/* Before 10.10 MariaDB gives the first TIMESTAMP a default of its own. */
static void test_implicit_timestamps(void **state)
{
    static const struct model_case cases[] = {
        {{"CREATE TABLE t (a TIMESTAMP, b TIMESTAMP, c TIMESTAMP NULL)"},
         "a TIMESTAMP nn onupdate expr=CURRENT_TIMESTAMP, b TIMESTAMP nn def=0000-00-00 00:00:00, "
         "c "
         "TIMESTAMP"}};
    static const struct model_case later[] = {
        {{"CREATE TABLE t (a TIMESTAMP, b TIMESTAMP NOT NULL)"}, "a TIMESTAMP, b TIMESTAMP nn"}};

    (void)state;
    RUN(MY_MARIADB, 100622, cases);
    RUN(MY_MARIADB, 101100, later);
    RUN(MY_MYSQL, 80000, later);
}

/* ---- the session that the statement ran in ---- */

static void test_sql_modes(void **state)
{
    struct my_world w;
    static const char ansi[] = "CREATE TABLE \"t\" (\"a \"\"b\" INT DEFAULT 5)";
    static const char plain[] = "CREATE TABLE t (a CHAR(9) DEFAULT 'b\\', c INT)";
    struct my_event e = query_of(ansi, sizeof ansi - 1);

    (void)state;
    world_open(&w, MY_MYSQL, 80400);
    e.query.sql_mode_ansi_quotes = true;
    apply_event(&w, &e);
    assert_string_equal(model_of(&w, "t"), "a \"b INT def=5");
    apply(&w, "DROP TABLE t");
    e = query_of(plain, sizeof plain - 1);
    e.query.sql_mode_no_backslash = true;
    apply_event(&w, &e);
    assert_string_equal(model_of(&w, "t"), "a CHAR(9) utf8mb4 def=b\\, c INT");
    world_close(&w);
}

/* Text in the client's charset; in GBK the second byte of a character may be a backslash. */
static void test_charsets(void **state)
{
    struct my_world w;
    static const char latin1[] = "CREATE TABLE t (`\xe9` INT COMMENT '\xfc')";
    static const char gbk[] = "ALTER TABLE t ADD g CHAR(9) DEFAULT '\xd5\x5c', ADD h INT";
    static const char broken[] = "ALTER TABLE t ADD i INT COMMENT '\xff\xff'";
    struct my_event e = query_of(latin1, sizeof latin1 - 1);

    (void)state;
    world_open(&w, MY_MYSQL, 80400);
    e.query.charset_client = 8; /* latin1_swedish_ci */
    apply_event(&w, &e);
    assert_string_equal(model_of(&w, "t"), "é INT 'ü'");
    e = query_of(gbk, sizeof gbk - 1);
    e.query.charset_client = 28; /* gbk_chinese_ci */
    apply_event(&w, &e);
    assert_string_equal(model_of(&w, "t"), "é INT 'ü', g CHAR(9) utf8mb4 def=誠, h INT");
    e = query_of(broken, sizeof broken - 1);
    e.query.charset_client = 28;
    apply_event(&w, &e);
    assert_true(my_shapes_find(w.shapes, "db", "t")->unsure);
    world_close(&w);
}

static void test_folded_names(void **state)
{
    struct my_world w;

    (void)state;
    world_open(&w, MY_MYSQL, 80400);
    w.server.lower_case_table_names = 1;
    apply(&w, "CREATE TABLE `ÄB` (Id INT)");
    apply(&w, "ALTER TABLE DB.äB RENAME TO T");
    assert_string_equal(my_shapes_find(w.shapes, "Db", "t")->name, "t");
    assert_string_equal(model_of(&w, "T"), "Id INT");
    world_close(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_kinds),
        cmocka_unit_test(test_temporary),
        cmocka_unit_test(test_creates),
        cmocka_unit_test(test_unsure),
        cmocka_unit_test(test_alters),
        cmocka_unit_test(test_mariadb),
        cmocka_unit_test(test_implicit_timestamps),
        cmocka_unit_test(test_sql_modes),
        cmocka_unit_test(test_charsets),
        cmocka_unit_test(test_folded_names),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
