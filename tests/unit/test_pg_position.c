/*
 * Positions, LSNs and SQL text.
 */
#include "pg.h"

#include <setjmp.h>
#include <stdlib.h>

#include <cmocka.h>

static void lsns(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        bool ok;
        pg_lsn lsn;
    } cases[] = {
        {"0/0", true, 0},
        {"0/16B3748", true, 0x16B3748},
        {"A/0000000f", true, UINT64_C(0xA0000000F)},
        {"FFFFFFFF/ffffffff", true, UINT64_MAX},
        {"", false, 0},
        {"0", false, 0},
        {"0/", false, 0},
        {"/1", false, 0},
        {"0/1 ", false, 0},
        {"0/123456789", false, 0},
        {"123456789/0", false, 0},
        {"x/1", false, 0},
        {"0-1", false, 0},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        pg_lsn got = 7;
        if (pg_lsn_parse(cases[i].text, strlen(cases[i].text), &got) != cases[i].ok)
            fail_msg("\"%s\"", cases[i].text);
        if (cases[i].ok)
            assert_int_equal(got, cases[i].lsn);
    }
}

static void written_and_read(void **state)
{
    (void)state;
    static const struct pg_position cases[] = {
        {.lsn = 1, .done = 1},
        {.lsn = 1, .done = 2, .sys = "7123456789012345678"},
        {.lsn = 5, .done = 5, .tx = 9, .ord = UINT64_C(1) << 40, .last = 4, .sys = "1"},
        {.lsn = UINT64_MAX, .done = UINT64_MAX, .last = UINT64_MAX},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct pg_position got;
        struct cdcd_buf b;
        cdcd_buf_init(&b, 0);
        pg_position_write(&cases[i], &b);
        assert_true(pg_position_parse(cdcd_buf_slice(&b), &got));
        assert_int_equal(got.lsn, cases[i].lsn);
        assert_int_equal(got.done, cases[i].done);
        assert_int_equal(got.tx, cases[i].tx);
        assert_int_equal(got.ord, cases[i].ord);
        assert_int_equal(got.last, cases[i].last);
        assert_string_equal(got.sys, cases[i].sys);
        /* cut anywhere, it is no position */
        for (size_t n = 0; n < b.len; n++)
            assert_false(pg_position_parse((struct cdcd_slice){b.ptr, n}, &got));
        cdcd_buf_free(&b);
    }
}

static void foreign_text(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        bool ok;
    } cases[] = {
        {"{\"lsn\":\"0/5\"}", true},
        {" { \"done\" : \"0/6\" , \"lsn\" : \"0/5\" } ", true},
        {"{\"lsn\":\"0/5\",\"later\":\"x\",\"more\":17}", true},
        {"{}", false},
        {"", false},
        {"null", false},
        {"[]", false},
        {"{\"lsn\":5}", false},
        {"{\"lsn\":\"five\"}", false},
        {"{\"done\":\"0/5\"}", false},
        {"{\"lsn\":\"0/5\"}x", false},
        {"{\"lsn\":\"0/5\",\"ord\":-1}", false},
        {"{\"lsn\":\"0/5\",\"ord\":99999999999999999999999}", false},
        {"{\"lsn\":\"0/9\",\"tx\":\"0/5\",\"ord\":1}", false},
        {"{\"lsn\":\"0/5\",\"sys\":\"1234567890123456789012345678901234567890\"}", false},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct pg_position p;
        if (pg_position_parse(cdcd_slice_str(cases[i].text), &p) != cases[i].ok)
            fail_msg("%s", cases[i].text);
    }
    struct pg_position p;
    assert_false(pg_position_parse((struct cdcd_slice){NULL, 0}, &p));
}

static void sql_text(void **state)
{
    (void)state;
    char *s = pg_sql("%I.%I = %L %s %d %u %X 100%%", "My \"T\"", "a", "it's \\ here", "x", -3, 7u,
                     UINT64_C(0x1A0000000B));
    assert_string_equal(s, "\"My \"\"T\"\"\".\"a\" = 'it''s \\ here' x -3 7 1A/B 100%");
    free(s);
}

/* The password is in no message, whether the text can be read or the server is not there. */
static void no_secrets(void **state)
{
    (void)state;
    static const char *const urls[] = {
        "postgresql://u:hunter2@127.0.0.1:1/db",
        "postgresql://u:hunter2@127.0.0.1:1/db?what=hunter2",
        "postgresql://u:hunter2@127.0.0.1:port/db",
        "host=127.0.0.1 port=1 password=hunter2 user=u",
        "host=127.0.0.1 port=1 password='hunter2",
        "hunter2",
    };
    for (size_t i = 0; i < sizeof urls / sizeof *urls; i++) {
        struct pg_config cfg = {
            .url = (char *)urls[i], .pipeline = "p", .connect_timeout_ms = 2000};
        struct cdcd_error err = {0};
        PGconn *c = NULL;
        assert_int_equal(pg_connect(&cfg, false, &c, &err), CDCD_ERROR);
        assert_null(c);
        if (strstr(err.text, "hunter2"))
            fail_msg("%s: %s", urls[i], err.text);
        assert_true(err.class == CDCD_ERR_CONFIG || err.class == CDCD_ERR_RETRY);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lsns),         cmocka_unit_test(written_and_read),
        cmocka_unit_test(foreign_text), cmocka_unit_test(sql_text),
        cmocka_unit_test(no_secrets),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
