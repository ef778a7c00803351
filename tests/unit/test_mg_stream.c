/* The MongoDB stream: numbers, positions, transactions, marks, errors. */
#include "mg_stream_test.h"

/* ---- numbers, and where a resume goes on ---- */

static void numbers(void **state)
{
    (void)state;
    add(1, 1, 'i', 1, 1, 0); /* the position has it */
    add(1, 2, 'i', 2, 1, 0);
    add(1, 2, 'r', 2, 2, 0);
    add(1, 2, 'd', 2, 0, 0);
    add(1, 3, 'i', 3, 1, 0);
    add(2, 1, 'u', 3, 2, 0);
    world.now[3] = 9;
    check_cut(origin, (const char *const[]){"1:2.1 c2 +1", "1:2.2 u2 +2", "1:2.3 d2 -?",
                                            "1:3.1 c3 +1", "2:1.1 u3 +9 u=2 lookup", NULL});
    struct mg_position two = {.capture = MG_OPLOG, .ts = {1, 2}, .ord = 2};
    check(two, (const char *const[]){"1:2.3 d2 -?", "1:3.1 c3 +1", "2:1.1 u3 +9 u=2 lookup", NULL});
    two.ord = 0;
    two.ts.i = 3;
    check(two, (const char *const[]){"1:3.1 c3 +1", "2:1.1 u3 +9 u=2 lookup", NULL});
}

static void add_transactions(void)
{
    add(2, 1, 'i', 1, 1, 7);
    add(2, 1, 'i', 2, 1, 7);
    world.items[world.n - 1].collection = "v";
    add(2, 1, 'u', 1, 2, 7);
    add(2, 1, 'd', 2, 0, 7);
    add(2, 2, 'i', 3, 1, 0);
    add(2, 3, 'i', 4, 1, 8);
    add(2, 4, 'i', 5, 1, 9);
    add(2, 4, 'i', 6, 1, 9);
    world.now[1] = 2;
}

static void transactions(void **state)
{
    (void)state;
    add_transactions();
    check_cut(origin, (const char *const[]){"2:1.1 c1 +1", "2:1.2 cv2 +1", "2:1.3 u1 +2 u=2 lookup",
                                            "2:1.4 d2 -?", "2:2.1 c3 +1", "2:3.1 c4 +1",
                                            "2:4.1 c5 +1", "2:4.2 c6 +1", NULL});
    env.tx_metadata = true;
    static const char *const want[] = {
        "2:1.0 B tx={\"id\": 7}:7",
        "2:1.1 c1 +1 tx={\"id\": 7}:7 1/1",
        "2:1.2 cv2 +1 tx={\"id\": 7}:7 2/1",
        "2:1.3 u1 +2 u=2 lookup tx={\"id\": 7}:7 3/2",
        "2:1.4 d2 -? tx={\"id\": 7}:7 4/3",
        "2:1.5 E tx={\"id\": 7}:7 4/0 d.t:3 d.v:1",
        "2:2.1 c3 +1",
        "2:3.0 B tx={\"id\": 7}:8",
        "2:3.1 c4 +1 tx={\"id\": 7}:8 1/1",
        "2:3.2 E tx={\"id\": 7}:8 1/0 d.t:1",
        "2:4.0 B tx={\"id\": 7}:9",
        "2:4.1 c5 +1 tx={\"id\": 7}:9 1/1",
        "2:4.2 c6 +1 tx={\"id\": 7}:9 2/2",
        "2:4.3 E tx={\"id\": 7}:9 2/0 d.t:2",
        NULL,
    };
    world.mark = (struct mg_time){2, 4};
    world.whole = false;
    check_cut(origin, want);
}

/* END only when the transaction is known to be whole. */
static void half_transaction(void **state)
{
    (void)state;
    struct lines l = {0};
    env.tx_metadata = true;
    world.whole = false;
    add(2, 1, 'i', 1, 1, 7);
    start(origin);
    read_all(&l);
    check_lines(&l, (const char *const[]){"2:1.0 B tx={\"id\": 7}:7",
                                          "2:1.1 c1 +1 tx={\"id\": 7}:7 1/1", NULL});
    add(2, 1, 'i', 2, 1, 7);
    read_all(&l);
    assert_int_equal(l.n, 3);
    world.mark = (struct mg_time){2, 1};
    read_all(&l);
    assert_int_equal(l.n, 4);
    assert_string_equal(l.items[3], "2:1.3 E tx={\"id\": 7}:7 2/0 d.t:2");
    assert_string_equal(l.position, "{\"mode\":\"oplog\",\"ts\":[2,1],\"ord\":-1}");
    free_lines(&l);
}

/* A command counts whether it is wanted or not. */
static void commands(void **state)
{
    (void)state;
    add(2, 1, 'c', 0, 1, 0);
    add(2, 1, 'i', 1, 1, 0);
    check_cut(origin, (const char *const[]){"2:1.1 D", "2:1.2 c1 +1", NULL});
    env.want_ddl = false;
    check_cut(origin, (const char *const[]){"2:1.2 c1 +1", NULL});
}

static void marks(void **state)
{
    (void)state;
    struct lines l = {0};
    struct cdcd_error err = {0};
    add(2, 1, 'i', 1, 1, 0);
    start(origin);
    assert_int_equal(read_once(&l, &err), CDCD_OK);
    assert_string_equal(l.position, "{\"mode\":\"oplog\",\"ts\":[2,1],\"ord\":1}");
    world.mark = (struct mg_time){3, 4};
    assert_int_equal(read_once(&l, &err), CDCD_AGAIN); /* not for each noop */
    source.stream->emitted_ms = 0;
    assert_int_equal(read_once(&l, &err), CDCD_OK);
    assert_string_equal(l.position, "{\"mode\":\"oplog\",\"ts\":[3,4],\"ord\":0}");
    source.stream->emitted_ms = 0;
    assert_int_equal(read_once(&l, &err), CDCD_AGAIN); /* the same again */
    free_lines(&l);
}

/* ---- trouble ---- */

static void errors(void **state)
{
    (void)state;
    struct lines l = {0};
    struct cdcd_error err = {0};
    add(2, 1, 'i', 1, 1, 0);
    add(2, 2, 'u', 1, 2, 0);
    add(0, 0, '!', 0, 0, 0);
    world.now[1] = 2;
    start(origin);
    assert_int_equal(read_once(&l, &err), CDCD_OK);
    check_lines(&l, (const char *const[]){"2:1.1 c1 +1", "2:2.1 u1 +2 u=2 lookup", NULL});
    assert_string_equal(l.position, "{\"mode\":\"oplog\",\"ts\":[2,2],\"ord\":1}");
    assert_int_equal(read_once(&l, &err), CDCD_ERROR);
    assert_int_equal(err.class, CDCD_ERR_RETRY);
    free_lines(&l);
    /* Without their documents, events are not given. */
    world.fail_lookup = true;
    start(origin);
    assert_int_equal(read_once(&l, &err), CDCD_ERROR);
    assert_string_equal(err.text, "no server");
    free_lines(&l);
}

/* The position is before the change that fails. */
static void too_large(void **state)
{
    (void)state;
    struct lines l = {0};
    struct cdcd_error err = {0};
    add(2, 1, 'i', 1, 1, 0);
    add(2, 1, 'u', 1, 2, 0);
    add(2, 1, 'i', 2, 1, 0);
    cfg.capture_mode = MG_MODE_PRE_IMAGE;
    world.before[1] = 1;
    env.max_event_bytes = DOC_LEN;
    start(origin);
    assert_int_equal(read_once(&l, &err), CDCD_OK);
    check_lines(&l, (const char *const[]){"2:1.1 c1 +1", NULL});
    assert_string_equal(l.position, "{\"mode\":\"oplog\",\"ts\":[2,1],\"ord\":1}");
    assert_int_equal(read_once(&l, &err), CDCD_ERROR);
    assert_int_equal(err.class, CDCD_ERR_DATA);
    assert_non_null(strstr(err.text, "d.t at 2:1 has 42 bytes"));
    free_lines(&l);
    /* So is a document that was looked up. */
    cfg.capture_mode = MG_MODE_UPDATE_FULL;
    world.large = true;
    world.now[1] = 2;
    start(origin);
    err = (struct cdcd_error){0};
    assert_int_equal(read_once(&l, &err), CDCD_ERROR);
    assert_int_equal(err.class, CDCD_ERR_DATA);
    assert_non_null(strstr(err.text, "a document of d.t has 42 bytes"));
    free_lines(&l);
}

static void log_goes_back(void **state)
{
    (void)state;
    struct lines l = {0};
    struct cdcd_error err = {0};
    add(2, 2, 'i', 1, 1, 0);
    add(2, 1, 'i', 2, 1, 0);
    start(origin);
    assert_int_equal(read_once(&l, &err), CDCD_OK);
    assert_int_equal(l.n, 1);
    assert_int_equal(read_once(&l, &err), CDCD_ERROR);
    assert_int_equal(err.class, CDCD_ERR_FATAL);
    free_lines(&l);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(numbers), TEST(transactions), TEST(half_transaction), TEST(commands),
        TEST(marks),   TEST(errors),       TEST(too_large),        TEST(log_goes_back),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
