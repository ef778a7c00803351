/* The resume position as JSON text. */
#include "my.h"

#include <setjmp.h>
#include <stdlib.h>

#include <cmocka.h>

#define U "3e11fa47-71ca-11e1-9e33-c80aa9429562"

static const char *or_empty(const char *s)
{
    return s ? s : "";
}

static void assert_position(const struct my_position *got, const struct my_position *want)
{
    assert_int_equal(got->flavor, want->flavor);
    assert_string_equal(got->server, or_empty(want->server));
    assert_string_equal(got->gtid, or_empty(want->gtid));
    assert_string_equal(got->file, or_empty(want->file));
    assert_int_equal(got->pos, want->pos);
    assert_int_equal(got->seq, want->seq);
    assert_int_equal(got->ord, want->ord);
    assert_string_equal(got->tx, or_empty(want->tx));
    assert_int_equal(got->done != NULL, want->done != NULL);
    if (!want->done)
        return;
    assert_string_equal(got->done, want->done);
    assert_string_equal(got->done_file, or_empty(want->done_file));
    assert_int_equal(got->done_pos, want->done_pos);
}

static void written_and_read(void **state)
{
    static const struct my_position cases[] = {
        {.flavor = MY_MYSQL, .file = "binlog.000003", .pos = 4711},
        {.flavor = MY_MYSQL,
         .server = U,
         .gtid = U ":1-5:7:tag:1",
         .file = "binlog.000003",
         .pos = 4,
         .seq = UINT64_C(1795990678557270)},
        {.flavor = MY_MYSQL,
         .server = U,
         .gtid = U ":1-65",
         .file = "binlog.000003",
         .pos = UINT64_C(5150626840),
         .seq = 17,
         .ord = 5,
         .tx = U ":66"},
        {.flavor = MY_MARIADB,
         .server = "1011",
         .gtid = "0-1011-97,3-1-5",
         .file = "m-bin.000001",
         .pos = 99,
         .seq = INT64_MAX},
        {.flavor = MY_MARIADB,
         .server = "1",
         .gtid = "0-1-97",
         .file = "m-bin.000001",
         .pos = 99,
         .done = "0-1-99",
         .done_file = "m-bin.000002",
         .done_pos = INT64_MAX},
        {.flavor = MY_MARIADB, .file = "odd \"name\"\\ \t\x01.000001", .pos = 4, .done = ""},
        {.flavor = MY_MYSQL, .file = "binlog.1", .pos = 4, .ord = 3},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct my_position got, copy;
        struct cdcd_buf b;
        cdcd_buf_init(&b, 0);
        my_position_write(&cases[i], &b);
        if (!my_position_parse(cdcd_buf_slice(&b), &got))
            fail_msg("%s", cdcd_buf_cstr(&b));
        assert_position(&got, &cases[i]);
        my_position_copy(&got, &copy);
        my_position_free(&got);
        assert_position(&copy, &cases[i]);
        my_position_free(&copy);
        /* cut anywhere, it is no position */
        for (size_t n = 0; n < b.len; n++) {
            if (my_position_parse((struct cdcd_slice){b.ptr, n}, &got))
                fail_msg("%.*s", (int)n, b.ptr);
        }
        cdcd_buf_free(&b);
    }
}

static void foreign_text(void **state)
{
    static const struct {
        const char *text;
        bool ok;
    } cases[] = {
        {"{\"flavor\":\"mysql\",\"file\":\"b.1\",\"pos\":4}", true},
        {" { \"pos\" : 4 , \"file\" : \"b\\u002e1\" , \"flavor\" : \"mariadb\" } ", true},
        {"{\"flavor\":\"mysql\",\"gtid\":\"" U ":1-3\"}", true},
        {"{\"flavor\":\"mysql\",\"file\":\"b.1\",\"pos\":4,\"later\":\"x\",\"more\":17}", true},
        {"{\"file\":\"b.1\",\"pos\":4}", false},
        {"{\"flavor\":\"oracle\",\"file\":\"b.1\",\"pos\":4}", false},
        {"{\"flavor\":\"mysql\",\"file\":\"b.1\",\"pos\":3}", false},
        {"{\"flavor\":\"mysql\",\"file\":\"\",\"pos\":4}", false},
        {"{\"flavor\":\"mysql\"}", false},
        {"{\"flavor\":\"mysql\",\"gtid\":\"0-1-5\"}", false},
        {"{\"flavor\":\"mariadb\",\"gtid\":\"" U ":1-3\"}", false},
        {"{\"flavor\":\"mysql\",\"gtid\":\"" U ":1-3\",\"done\":\"0-1-5\"}", false},
        {"{\"flavor\":\"mysql\",\"file\":\"b.1\",\"pos\":\"4\"}", false},
        {"{\"flavor\":\"mysql\",\"file\":\"b.1\",\"pos\":-4}", false},
        {"{\"flavor\":\"mysql\",\"file\":\"b.1\",\"pos\":18446744073709551616}", false},
        {"{\"flavor\":\"mysql\",\"file\":17,\"pos\":4}", false},
        {"{\"flavor\":\"mysql\",\"file\":\"b\\u0000.1\",\"pos\":4}", false},
        {"{\"flavor\":\"mysql\",\"file\":\"b.1\",\"pos\":4}x", false},
        {"{\"flavor\":\"mysql\",\"file\":\"b.1\",\"pos\":4,}", false},
        {"{}", false},
        {"", false},
        {"null", false},
        {"[]", false},
    };
    struct my_position p;
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        bool ok = my_position_parse(cdcd_slice_str(cases[i].text), &p);
        if (ok != cases[i].ok)
            fail_msg("%s", cases[i].text);
        if (ok)
            my_position_free(&p);
    }
    assert_false(my_position_parse((struct cdcd_slice){NULL, 0}, &p));
}

static void described(void **state)
{
    static const struct {
        const char *json, *text;
    } cases[] = {
        {"{\"flavor\":\"mysql\",\"file\":\"b.1\",\"pos\":5150626840}", "b.1:5150626840"},
        {"{\"flavor\":\"mariadb\",\"gtid\":\"0-1-5\",\"file\":\"b.1\",\"pos\":4}",
         "b.1:4, GTID 0-1-5"},
        {"{\"flavor\":\"mariadb\",\"gtid\":\"0-1-5\"}", "GTID 0-1-5"},
        {"{\"flavor\":\"mariadb\",\"gtid\":\"0-1-5\",\"ord\":3,\"tx\":\"0-1-6\"}",
         "GTID 0-1-5 (3 changes into the next transaction 0-1-6)"},
        {"garbage", "garbage"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct cdcd_buf b;
        cdcd_buf_init(&b, 0);
        my_describe(cdcd_slice_str(cases[i].json), &b);
        assert_string_equal(cdcd_buf_cstr(&b), cases[i].text);
        cdcd_buf_free(&b);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(written_and_read),
        cmocka_unit_test(foreign_text),
        cmocka_unit_test(described),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
