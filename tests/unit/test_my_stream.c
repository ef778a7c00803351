/* What groups of the log become: order, rollbacks, savepoints, XA, schema changes, filters, row
 * images, statements, transaction metadata. */
#include "my_stream_test.h"

static void test_plain(void **state)
{
    (void)state;
    static const int changed[][2] = {{1, 10}, {1, 11}, {2, 20}, {7, 20}}, gone[][2] = {{7, 20}};
    EACH(l)
    {
        tx_begin(&l);
        insert(&l, "t", 50, 1, 2);
        insert(&l, "u", 51, 5, 1);
        tx_end(&l);
        tx_begin(&l);
        ev_map(&l, 50, "t");
        ev_rows(&l, 50, UPDATE, changed, 4);
        ev_rows(&l, 50, DELETE, gone, 1);
        tx_end(&l);
        tx_begin(&l); /* of nothing that is captured */
        tx_end(&l);
        tx_begin(&l);
        insert(&l, "t", 52, 9, 1); /* the table was opened anew */
        tx_end(&l);
        check_same(&l,
                   (const char *const[]){"1.1 c t +1,10 /0", "1.2 c t +2,20 /1", "1.3 c u +5,50 /0",
                                         "2.1 u t -1,10 +1,11 /0", "2.2 u t -2,20 +7,20 /1",
                                         "2.3 d t -7,20 /0", "4.1 c t +9,90 /0", NULL});
    }
}

static void test_source_block(void **state)
{
    (void)state;
    reset_env();
    ev_log(&l, MY_MYSQL, true);
    l.gno = 1000;
    tx_begin(&l);
    uint64_t map = l.end;
    insert(&l, "t", 50, 1, 2);
    tx_end(&l);
    char one[128], two[128];
    uint64_t rows = map + 19 + 4 + 38;
    for (size_t i = 0; i < l.n; i++)
        if (l.items[i].data[4] == 30)
            rows = l.items[i].start;
    snprintf(one, sizeof one, "1.1 c t +1,10 @" UUID_TEXT ":1001 %" PRIu64 "/0", rows);
    snprintf(two, sizeof two, "1.2 c t +2,20 @" UUID_TEXT ":1001 %" PRIu64 "/1", rows);
    check_log(&l, (const char *const[]){one, two, NULL});
    ev_free(&l);
}

static void test_rollback(void **state)
{
    (void)state;
    EACH(l)
    {
        tx_begin(&l);
        insert(&l, "t", 50, 1, 2);
        ev_query(&l, "ROLLBACK");
        tx_begin(&l);
        insert(&l, "t", 50, 2, 1);
        ev_query(&l, "COMMIT");
        check_same(&l, (const char *const[]){"2.1 c t +2,20 /0", NULL});
    }
}

static void test_savepoints(void **state)
{
    (void)state;
    EACH(l)
    {
        tx_begin(&l);
        insert(&l, "t", 50, 1, 1);
        ev_query(&l, "SAVEPOINT `a``b`");
        insert(&l, "t", 50, 2, 1);
        ev_query(&l, "SAVEPOINT `c`");
        insert(&l, "t", 50, 3, 1);
        ev_query(&l, "ROLLBACK TO `A``b`");
        insert(&l, "t", 50, 4, 1);
        ev_query(&l, "ROLLBACK TO `a``b`"); /* it is still there */
        insert(&l, "t", 50, 5, 1);
        ev_query(&l, "SAVEPOINT `c`");
        insert(&l, "t", 50, 6, 1);
        ev_query(&l, "SAVEPOINT `c`"); /* in the place of the other */
        insert(&l, "t", 50, 7, 1);
        ev_query(&l, "ROLLBACK TO `c`");
        tx_end(&l);
        check_same(&l, (const char *const[]){"1.1 c t +1,10 /0", "1.2 c t +5,50 /0",
                                             "1.3 c t +6,60 /0", NULL});
        ev_query(&l, "x");
    }
    reset_env();
    ev_log(&l, MY_MARIADB, true);
    l.gno = 1000;
    tx_begin(&l);
    ev_query(&l, "SAVEPOINT `a`");
    ev_query(&l, "SAVEPOINT `b`");
    ev_query(&l, "ROLLBACK TO `a`");
    ev_query(&l, "ROLLBACK TO `b`");
    check_error(&l, start_of(&l), CDCD_ERR_FATAL, "a savepoint that was never set", NULL);
    ev_free(&l);
}

static void test_xa(void **state)
{
    (void)state;
    EACH(l)
    {
        xa_begin(&l, "p");
        insert(&l, "t", 50, 1, 2);
        insert(&l, "u", 51, 1, 1);
        xa_end(&l, "p", false);
        tx_begin(&l);
        insert(&l, "t", 50, 10, 1);
        tx_end(&l);
        xa_begin(&l, "q");
        insert(&l, "t", 50, 20, 2);
        xa_end(&l, "q", false);
        tx_begin(&l);
        insert(&l, "t", 50, 11, 2);
        tx_end(&l);
        xa_finish(&l, "ROLLBACK", "q");
        tx_begin(&l);
        insert(&l, "t", 50, 13, 1);
        tx_end(&l);
        xa_finish(&l, "COMMIT", "p");
        xa_begin(&l, "p"); /* the same name again, in one phase */
        insert(&l, "t", 50, 30, 1);
        xa_end(&l, "p", true);
        tx_begin(&l);
        insert(&l, "t", 50, 14, 1);
        tx_end(&l);
        xa_begin(&l, "e"); /* of nothing that is captured, and open at the end */
        xa_end(&l, "e", false);
        tx_begin(&l);
        insert(&l, "t", 50, 15, 1);
        tx_end(&l);
        check_same(&l, (const char *const[]){"1.1 c t +10,100 /0", "2.1 c t +11,110 /0",
                                             "2.2 c t +12,120 /1", "4.1 c t +13,130 /0",
                                             "5.1 c t +1,10 /0", "5.2 c t +2,20 /1",
                                             "5.3 c u +1,10 /2", "6.1 c t +30,300 /0",
                                             "7.1 c t +14,140 /0", "8.1 c t +15,150 /0", NULL});
    }
}

static void test_xa_unknown(void **state)
{
    (void)state;
    EACH(l)
    {
        xa_finish(&l, "ROLLBACK", "z"); /* nothing is lost by it */
        xa_finish(&l, "COMMIT", "z");
        check_error(&l, start_of(&l), CDCD_ERR_LOSS, "X'7a',X'',1 is committed", NULL);
    }
}

static void test_transaction_metadata(void **state)
{
    (void)state;
    static const int moved[][2] = {{1, 10}, {8, 10}};
    EACH(l)
    {
        env.tx_metadata = true;
        tx_begin(&l);
        insert(&l, "t", 50, 1, 2);
        ev_map(&l, 50, "t");
        ev_rows(&l, 50, UPDATE, moved, 2); /* a delete and a create */
        insert(&l, "u", 51, 5, 1);
        insert(&l, "t", 50, 3, 1);
        tx_end(&l);
        tx_begin(&l); /* leaves no trace */
        tx_end(&l);
        xa_begin(&l, "p");
        insert(&l, "t", 50, 4, 1);
        xa_end(&l, "p", false);
        xa_finish(&l, "COMMIT", "p");
        check_same(&l,
                   (const char *const[]){"1.0 B /0 tx=0/0", "1.1 c t +1,10 /0 tx=1/1",
                                         "1.2 c t +2,20 /1 tx=2/2", "1.3 u t -1,10 +8,10 /0 tx=3/3",
                                         "1.4 c u +5,50 /0 tx=5/1", "1.5 c t +3,30 /0 tx=6/5",
                                         "1.6 E /0 tx=6/0 d.t:5 d.u:1", "3.0 B /0 tx=0/0",
                                         "3.1 c t +4,40 /0 tx=1/1", "3.2 E /0 tx=1/0 d.t:1", NULL});
    }
}

static void test_truncate(void **state)
{
    (void)state;
    EACH(l)
    {
        env.tx_metadata = true;
        statement(&l, "TRUNCATE TABLE t");
        tx_begin(&l);
        insert(&l, "t", 50, 1, 1);
        tx_end(&l);
        if (l.flavor == MY_MYSQL)
            check_same(&l, (const char *const[]){"1.1 t t /0", "2.0 B /0 tx=0/0",
                                                 "2.1 c t +1,10 /0 tx=1/1", "2.2 E /0 tx=1/0 d.t:1",
                                                 NULL});
        else
            check_same(&l, (const char *const[]){"1.0 B /0 tx=0/0", "1.1 t t /0 tx=1/1",
                                                 "1.2 E /0 tx=1/0 d.t:1", "2.0 B /0 tx=0/0",
                                                 "2.1 c t +1,10 /0 tx=1/1", "2.2 E /0 tx=1/0 d.t:1",
                                                 NULL});
        env.want_truncate = false;
        env.tx_metadata = false;
        check_same(&l, (const char *const[]){"2.1 c t +1,10 /0", NULL});
    }
}

static void test_ddl(void **state)
{
    (void)state;
    EACH(l)
    {
        statement(&l, "CREATE TABLE t (id int PRIMARY KEY, v int)");
        tx_begin(&l);
        insert(&l, "t", 50, 1, 1);
        tx_end(&l);
        statement(&l, "FLUSH TABLES");
        statement(&l, "DROP TABLE `t` /* generated by server */");
        tx_begin(&l); /* CREATE TABLE ... SELECT is one group */
        ev_query(&l, "CREATE TABLE `u` (\n  `id` int NOT NULL,\n  `v` int,\n  PRIMARY KEY(`id`)\n)"
                     " START TRANSACTION");
        insert(&l, "u", 51, 1, 2);
        tx_end(&l);
        check_same(&l,
                   (const char *const[]){"1.1 ddl CREATE TABLE t (id int PRIMARY KEY, v int) /0",
                                         "2.1 c t +1,10 /0", "4.1 ddl DROP TABLE `d`.`t` /0",
                                         "5.1 ddl CREATE TABLE `u` (\n `id` int NOT NULL,\n `v` "
                                         "int,\n PRIMARY KEY(`id`)\n) START TRANSACTION /0",
                                         "5.2 c u +1,10 /0", "5.3 c u +2,20 /1", NULL});
        env.want_ddl = false;
        check_same(&l, (const char *const[]){"2.1 c t +1,10 /0", "5.2 c u +1,10 /0",
                                             "5.3 c u +2,20 /1", NULL});
    }
}

static void test_filter(void **state)
{
    (void)state;
    char *only[] = {"d.t"};
    EACH(l)
    {
        cfg.table_include = (struct cdcd_strlist){only, 1};
        tx_begin(&l);
        insert(&l, "t", 50, 1, 1);
        insert(&l, "u", 51, 5, 3);
        insert(&l, "t", 50, 2, 1);
        tx_end(&l);
        tx_begin(&l);
        insert(&l, "u", 51, 8, 3);
        tx_end(&l);
        statement(&l, "TRUNCATE TABLE u");
        statement(&l, "INSERT INTO u VALUES (1,2)");
        tx_begin(&l);
        insert(&l, "t", 50, 3, 1);
        tx_end(&l);
        check_same(&l, (const char *const[]){"1.1 c t +1,10 /0", "1.2 c t +2,20 /0",
                                             "5.1 c t +3,30 /0", NULL});
    }
}

static void test_statements(void **state)
{
    (void)state;
    EACH(l)
    {
        tx_begin(&l);
        insert(&l, "t", 50, 1, 1);
        ev_query(&l, "UPDATE t SET v = v + 1");
        insert(&l, "t", 50, 2, 1);
        tx_end(&l);
        check_error(&l, start_of(&l), CDCD_ERR_LOSS, "\"UPDATE t SET v = v + 1\" at ", NULL);
        check_error(&l, start_of(&l), CDCD_ERR_LOSS,
                    " changes d.t, but the server logged only its "
                    "text",
                    NULL);
        cfg.statement_mode = MY_STATEMENT_WARN;
        check_same(&l, (const char *const[]){"1.1 c t +1,10 /0", "1.2 c t +2,20 /0", NULL});
    }
}

static void test_images(void **state)
{
    (void)state;
    static const uint8_t minimal[2] = {1, 2}, key[2] = {1, 0}, value[2] = {2, 2};
    static const int up[][2] = {{1, 0}, {0, 11}}, one[][2] = {{2, 5}};
    EACH(l)
    {
        tx_begin(&l);
        insert(&l, "t", 50, 1, 1);
        ev_rows_of(&l, 50, UPDATE, minimal, up, 2);
        ev_rows_of(&l, 50, WRITE, key, one, 1);
        ev_rows_of(&l, 50, DELETE, key, one, 1);
        tx_end(&l);
        check_error(&l, start_of(&l), CDCD_ERR_LOSS, "lacks columns of table d.t: ", NULL);
        cfg.row_image_mode = MY_IMAGE_PLACEHOLDER;
        check_same(&l, (const char *const[]){"1.1 c t +1,10 /0", "1.2 u t -1,? +1,11 /0",
                                             "1.3 c t +2,? /0", "1.4 d t -2,? /0", NULL});
        tx_begin(&l);
        ev_map(&l, 50, "t");
        ev_rows_of(&l, 50, WRITE, value, one, 1);
        tx_end(&l);
        check_error(&l, start_of(&l), CDCD_ERR_LOSS, "lacks columns of table d.t: id", NULL);
    }
}

static void test_query(void **state)
{
    (void)state;
    EACH(l)
    {
        cfg.include_query = true;
        tx_begin(&l);
        ev_rows_query(&l, "insert1");
        insert(&l, "t", 50, 1, 2);
        ev_rows_query(&l, "insert2");
        insert(&l, "t", 50, 3, 1);
        tx_end(&l);
        tx_begin(&l);
        insert(&l, "t", 50, 4, 1);
        tx_end(&l);
        check_same(&l,
                   (const char *const[]){"1.1 c t +1,10 q=insert1 /0", "1.2 c t +2,20 q=insert1 /1",
                                         "1.3 c t +3,30 q=insert2 /0", "2.1 c t +4,40 /0", NULL});
    }
}

static void test_payload(void **state)
{
    (void)state;
    for (int gtids = 0; gtids < 2; gtids++) {
        reset_env();
        ev_log(&l, MY_MYSQL, gtids);
        l.gno = 1000;
        tx_begin(&l);
        insert(&l, "t", 50, 1, 1);
        tx_end(&l);
        ev_gtid(&l, 0, NULL);
        ev_payload_begin(&l);
        ev_query(&l, "BEGIN");
        insert(&l, "t", 50, 2, 40);
        insert(&l, "u", 51, 2, 1);
        ev_xid(&l);
        ev_payload_end(&l);
        tx_begin(&l);
        insert(&l, "t", 50, 50, 1);
        tx_end(&l);
        check_log(&l, NULL);
        struct run r;
        struct cdcd_error err = {0};
        open_run(&r, start_of(&l));
        assert_int_equal(read_log(&r, &l, start_of(&l), true, &err), CDCD_OK);
        assert_int_equal(r.n, 43);
        close_run(&r);
        ev_free(&l);
    }
}

/* ---- MariaDB's own ---- */

/* flags_extra of the GTID event: 2 the start, 4 the end, 8 a failed end of an ALTER in two phases.
 */
static void two_phases(struct my_log *log, uint8_t extra, const char *text)
{
    statement(log, text);
    struct my_log_event *e = &log->items[log->n - 2];
    e->data[19 + 13] = (char)extra;
    uint32_t crc = (uint32_t)crc32(0, (const Bytef *)e->data, (uInt)e->len - 4);
    for (int i = 0; i < 4; i++)
        e->data[e->len - 4 + (size_t)i] = (char)(crc >> 8 * i & 0xff);
}

static void test_two_phase_alter(void **state)
{
    (void)state;
    reset_env();
    ev_log(&l, MY_MARIADB, true);
    l.gno = 1000;
    statement(&l, "CREATE TABLE t (id int PRIMARY KEY, v int)");
    two_phases(&l, 2, "ALTER TABLE t ADD w int");
    two_phases(&l, 4, "ALTER TABLE t ADD w int");
    two_phases(&l, 2, "ALTER TABLE t ADD UNIQUE KEY (v)");
    two_phases(&l, 8, "ALTER TABLE t ADD UNIQUE KEY (v)");
    check_same(&l, (const char *const[]){"1.1 ddl CREATE TABLE t (id int PRIMARY KEY, v int) /0",
                                         "3.1 ddl ALTER TABLE t ADD w int /0", NULL});
    ev_free(&l);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_plain),
        cmocka_unit_test(test_source_block),
        cmocka_unit_test(test_rollback),
        cmocka_unit_test(test_savepoints),
        cmocka_unit_test(test_xa),
        cmocka_unit_test(test_xa_unknown),
        cmocka_unit_test(test_transaction_metadata),
        cmocka_unit_test(test_truncate),
        cmocka_unit_test(test_ddl),
        cmocka_unit_test(test_filter),
        cmocka_unit_test(test_statements),
        cmocka_unit_test(test_images),
        cmocka_unit_test(test_query),
        cmocka_unit_test(test_payload),
        cmocka_unit_test(test_two_phase_alter),
    };
    return run_stream_tests(tests, sizeof tests / sizeof *tests);
}
