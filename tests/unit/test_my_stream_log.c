/* The log itself: the barrier, what is missing or cut off, offsets beyond 4 GiB, files, logs
 * without GTIDs. */
#include "my_stream_test.h"

static void test_barrier(void **state)
{
    (void)state;
    EACH(l)
    {
        uint64_t ends[5];
        for (int i = 0; i < 5; i++) {
            tx_begin(&l);
            insert(&l, "t", 50, i, 2);
            tx_end(&l);
            ends[i] = l.end;
        }
        use_flavor(l.flavor, l.gtids);
        for (int stop = 0; stop < 5; stop++) {
            struct run r;
            struct cdcd_error err = {0};
            struct my_position p;
            char text[256];
            const char *start = start_of(&l);
            open_run(&r, start);
            snprintf(
                text, sizeof text,
                "{\"flavor\":\"%s\",\"server\":\"x\",\"gtid\":\"%s%d\",\"file\":\"bin.000001\","
                "\"pos\":%" PRIu64 ",\"seq\":1}",
                l.flavor == MY_MYSQL ? "mysql" : "mariadb",
                l.flavor == MY_MARIADB ? "0-7-" : UUID_TEXT ":1-", 1001 + stop, ends[stop]);
            assert_true(my_position_parse(cdcd_slice_str(text), &p));
            my_stream_set_barrier(r.st, &p);
            my_position_free(&p);
            assert_false(my_stream_reached(r.st));
            enum cdcd_rc rc = read_log(&r, &l, start, false, &err);
            assert_int_equal(rc, stop < 4 ? CDCD_END : CDCD_OK);
            assert_true(my_stream_reached(r.st));
            assert_int_equal(r.n, 2 * (stop + 1));
            my_stream_set_barrier(r.st, NULL);
            assert_false(my_stream_reached(r.st));
            close_run(&r);
        }
    }
}

static void test_vanished(void **state)
{
    (void)state;
    static const char more[] = "{\"flavor\":\"%s\",\"server\":\"x\",\"gtid\":\"%s\",\"file\":"
                               "\"bin.000001\",\"pos\":4,\"seq\":100,\"ord\":%d,\"tx\":\"%s\"}";
    char text[512];
    EACH(l)
    {
        tx_begin(&l);
        insert(&l, "t", 50, 1, 2);
        tx_end(&l);
        const char *flavor = l.flavor == MY_MYSQL ? "mysql" : "mariadb";
        const char *gtid = l.flavor == MY_MARIADB ? "0-7-1000" : l.gtids ? UUID_TEXT ":1-1000" : "";
        const char *id = l.flavor == MY_MARIADB ? "0-7-1001" : l.gtids ? UUID_TEXT ":1001" : "";
        snprintf(text, sizeof text, more, flavor, gtid, 3, id);
        check_error(&l, text, CDCD_ERR_LOSS,
                    "3 changes are delivered, but the server sends it with "
                    "fewer",
                    NULL);
        if (!*id)
            continue;
        snprintf(text, sizeof text, more, flavor, gtid, 1,
                 l.flavor == MY_MARIADB ? "0-7-9999" : UUID_TEXT ":9999");
        check_error(&l, text, CDCD_ERR_LOSS, "in its place", NULL);
    }
}

static void test_misplaced(void **state)
{
    (void)state;
    EACH(l)
    {
        l.group = 0; /* the server sends it */
        l.current = (struct my_gtid){.flavor = l.flavor, .server = 7, .number = 2000};
        ev_map(&l, 50, "t");
        check_error(&l, start_of(&l), CDCD_ERR_FATAL, "stands outside of any transaction", NULL);
    }
    EACH(l)
    {
        tx_begin(&l);
        ev_rows(&l, 77, WRITE, (const int[][2]){{1, 1}}, 1);
        check_error(&l, start_of(&l), CDCD_ERR_FATAL, "a table that was never described", NULL);
    }
    EACH(l)
    {
        tx_begin(&l);
        tx_begin(&l);
        check_error(&l, start_of(&l), CDCD_ERR_FATAL, "within another", NULL);
    }
    EACH(l)
    {
        EV_BODY(b);
        ev_gtid(&l, 0, NULL);
        le(&b, 1, 2);
        le(&b, 4, 1);
        cdcd_buf_adds(&b, "LOST");
        ev_add(&l, 26, 0, &b);
        check_error(&l, start_of(&l), CDCD_ERR_LOSS, "LOST", NULL);
    }
}

/* The server died within a transaction, and begins the next file. */
static void test_cut_off(void **state)
{
    (void)state;
    EACH(l)
    {
        tx_begin(&l);
        insert(&l, "t", 50, 1, 2);
        ev_rotate(&l, "bin.000002", 4, true);
        l.group = 5;
        l.end = 4;
        ev_format(&l);
        tx_begin(&l);
        insert(&l, "t", 50, 5, 1);
        tx_end(&l);
        struct run r;
        struct cdcd_error err = {0};
        use_flavor(l.flavor, l.gtids);
        open_run(&r, start_of(&l));
        assert_int_equal(read_log(&r, &l, start_of(&l), false, &err), CDCD_OK);
        assert_int_equal(r.n, 1);
        char *p = position_of(&r);
        assert_non_null(strstr(p, "\"file\":\"bin.000002\""));
        free(p);
        close_run(&r);
    }
}

/* end_log_pos has 32 bits. */
static void test_offsets(void **state)
{
    (void)state;
    EACH(l)
    {
        tx_begin(&l);
        insert(&l, "t", 50, 1, 1);
        tx_end(&l);
        l.end = UINT64_C(0xffffff80); /* as after events that nobody asked for */
        for (int i = 0; i < 3; i++) {
            tx_begin(&l);
            insert(&l, "t", 50, 2 + i, 1);
            tx_end(&l);
        }
        uint64_t end = l.end;
        assert_true(end > UINT32_MAX);
        struct run r;
        struct cdcd_error err = {0};
        use_flavor(l.flavor, l.gtids);
        open_run(&r, start_of(&l));
        assert_int_equal(read_log(&r, &l, start_of(&l), false, &err), CDCD_OK);
        assert_int_equal(r.n, 4);
        assert_int_equal(r.st->done_pos, end);
        const struct my_log_event *rows = NULL;
        for (size_t i = 0; i < l.n; i++)
            if (l.items[i].data[4] == 30 || l.items[i].data[4] == 23)
                rows = &l.items[i];
        char place[64];
        snprintf(place, sizeof place, " %" PRIu64 "/0", rows->start);
        assert_non_null(strstr(r.lines[3], place));
        close_run(&r);
    }
}

static void test_file_order(void **state)
{
    (void)state;
    assert_true(my_file_compare("binlog.000009", "binlog.000010") < 0);
    assert_true(my_file_compare("binlog.999999", "binlog.1000000") < 0);
    assert_true(my_file_compare("binlog.1000001", "binlog.1000000") > 0);
    assert_true(my_file_compare("a.b.000001", "a.b.000001") == 0);
}

/* A transaction that has no GTID cannot be counted in a set. */
static void test_anonymous(void **state)
{
    (void)state;
    reset_env();
    ev_log(&l, MY_MYSQL, false);
    tx_begin(&l);
    l.gtids = true; /* the position is a set */
    for (size_t i = 0; i < l.n; i++)
        l.items[i].always = true;
    check_error(&l, start_of(&l), CDCD_ERR_LOSS, "gtid_mode was turned off", NULL);
    ev_free(&l);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_barrier),   cmocka_unit_test(test_vanished),
        cmocka_unit_test(test_misplaced), cmocka_unit_test(test_cut_off),
        cmocka_unit_test(test_offsets),   cmocka_unit_test(test_file_order),
        cmocka_unit_test(test_anonymous),
    };
    return run_stream_tests(tests, sizeof tests / sizeof *tests);
}
