/* The resume position as JSON text. */
#include "mg.h"

#include <setjmp.h>
#include <stdlib.h>

#include <cmocka.h>

#define TOKEN "{\"_data\":\"8265534E40000000012B0229296E04\"}"

static void assert_text(const char *got, const char *want)
{
    assert_int_equal(got != NULL, want != NULL);
    if (want)
        assert_string_equal(got, want);
}

static void assert_position(const struct mg_position *got, const struct mg_position *want)
{
    assert_int_equal(got->capture, want->capture);
    assert_int_equal(got->ts.t, want->ts.t);
    assert_int_equal(got->ts.i, want->ts.i);
    assert_true(got->ord == want->ord);
    assert_int_equal(got->until.t, want->until.t);
    assert_int_equal(got->until.i, want->until.i);
    assert_int_equal(got->until_open, want->until_open);
    assert_text(got->token, want->token);
    assert_text(got->set, want->set);
}

static const struct mg_position cases[] = {
    {.capture = MG_OPLOG, .ts = {1700000000, 7}},
    {.capture = MG_OPLOG, .ts = {1700000000, 7}, .ord = 2, .set = (char *)"rs0"},
    {.capture = MG_OPLOG, .ts = {UINT32_MAX, UINT32_MAX}, .ord = MG_ORD_ALL},
    {.capture = MG_OPLOG, .ts = {1, 0}, .until = {2, 0}},
    {.capture = MG_OPLOG, .ts = {1, 1}, .until = {1, 9}, .until_open = true},
    {.capture = MG_CHANGE_STREAM, .ts = {1700000000, 1}, .ord = INT64_MAX - 1},
    {.capture = MG_CHANGE_STREAM,
     .ts = {1700000000, 7},
     .ord = 1,
     .token = (char *)TOKEN,
     .until = {1700000000, 9},
     .set = (char *)"a \"set\" \\ \n \xc3\xb1"},
};

static void written_and_read(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct cdcd_buf text;
        struct mg_position got, copy;
        cdcd_buf_init(&text, 0);
        mg_position_write(&cases[i], &text);
        if (!mg_position_parse(cdcd_buf_slice(&text), &got))
            fail_msg("cannot be read: %s", cdcd_buf_cstr(&text));
        assert_position(&got, &cases[i]);
        mg_position_copy(&got, &copy);
        mg_position_free(&got);
        assert_null(got.token);
        assert_position(&copy, &cases[i]);
        mg_position_free(&copy);
        cdcd_buf_free(&text);
    }
}

/* The form is kept in sinks: it must not change. */
static void form(void **state)
{
    struct cdcd_buf text;
    (void)state;
    cdcd_buf_init(&text, 0);
    mg_position_write(&cases[1], &text);
    assert_string_equal(cdcd_buf_cstr(&text),
                        "{\"mode\":\"oplog\",\"ts\":[1700000000,7],\"ord\":2,\"set\":\"rs0\"}");
    cdcd_buf_clear(&text);
    mg_position_write(&cases[2], &text);
    assert_string_equal(cdcd_buf_cstr(&text),
                        "{\"mode\":\"oplog\",\"ts\":[4294967295,4294967295],\"ord\":-1}");
    cdcd_buf_clear(&text);
    mg_position_write(&cases[6], &text);
    assert_string_equal(
        cdcd_buf_cstr(&text),
        "{\"mode\":\"change_stream\",\"ts\":[1700000000,7],\"ord\":1,\"token\":" TOKEN
        ",\"until\":[1700000000,9],\"set\":\"a \\\"set\\\" \\\\ \\n \xc3\xb1\"}");
    cdcd_buf_free(&text);
}

static bool reads(const char *json, struct mg_position *out)
{
    return mg_position_parse(cdcd_slice_str(json), out);
}

/* A token's members come back in their order, whatever is in them. */
static void tokens(void **state)
{
    struct mg_position p;
    (void)state;
    assert_true(reads("{\"mode\":\"change_stream\",\"ts\":[1,2],\"token\": {\"z\" : {\"$binary\": "
                      "{\"base64\":\"AA==\",\"subType\":\"00\"}}, \"a\": [1, \"\\u00e4\"], "
                      "\"_data\": \"82\"}}",
                      &p));
    assert_string_equal(p.token, "{\"z\":{\"$binary\":{\"base64\":\"AA==\",\"subType\":\"00\"}},"
                                 "\"a\":[1,\"\xc3\xa4\"],\"_data\":\"82\"}");
    mg_position_free(&p);
}

static void unknown_members_pass(void **state)
{
    struct mg_position p;
    (void)state;
    assert_true(reads("{\"later\":{\"x\":[1]},\"ord\":3,\"ts\":[5,6],\"mode\":\"oplog\"}", &p));
    assert_int_equal(p.ord, 3);
    assert_int_equal(p.ts.t, 5);
    mg_position_free(&p);
}

static void refused(void **state)
{
    static const char *const bad[] = {
        "",
        "null",
        "[]",
        "{}",
        "{\"mode\":\"oplog\"}",
        "{\"ts\":[1,2]}",
        "{\"mode\":\"log\",\"ts\":[1,2]}",
        "{\"mode\":1,\"ts\":[1,2]}",
        "{\"mode\":\"oplog\",\"ts\":[0,2]}",
        "{\"mode\":\"oplog\",\"ts\":[1]}",
        "{\"mode\":\"oplog\",\"ts\":[1,2,3]}",
        "{\"mode\":\"oplog\",\"ts\":[-1,2]}",
        "{\"mode\":\"oplog\",\"ts\":[4294967296,2]}",
        "{\"mode\":\"oplog\",\"ts\":[1,\"2\"]}",
        "{\"mode\":\"oplog\",\"ts\":[1.5,2]}",
        "{\"mode\":\"oplog\",\"ts\":{\"t\":1,\"i\":2}}",
        "{\"mode\":\"oplog\",\"ts\":[1,2],\"ord\":-2}",
        "{\"mode\":\"oplog\",\"ts\":[1,2],\"ord\":\"1\"}",
        "{\"mode\":\"oplog\",\"ts\":[1,2],\"until\":5}",
        "{\"mode\":\"oplog\",\"ts\":[1,2],\"until_open\":1}",
        "{\"mode\":\"oplog\",\"ts\":[1,2],\"set\":null}",
        "{\"mode\":\"change_stream\",\"ts\":[1,2],\"token\":\"82\"}",
        "{\"mode\":\"change_stream\",\"ts\":[1,2],\"token\":{}",
        "{\"mode\":\"oplog\",\"mode\":\"oplog\",\"ts\":[1,2]}",
        "{\"mode\":\"oplog\",\"ts\":[1,2]} x",
    };
    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct mg_position p;
        if (reads(bad[i], &p))
            fail_msg("was taken for a position: %s", bad[i]);
    }
    struct mg_position p;
    assert_false(mg_position_parse((struct cdcd_slice){NULL, 0}, &p));
}

static void described(const char *json, const char *want)
{
    struct cdcd_buf out;
    cdcd_buf_init(&out, 0);
    mg_describe(cdcd_slice_str(json), &out);
    assert_string_equal(cdcd_buf_cstr(&out), want);
    cdcd_buf_free(&out);
}

static void for_people(void **state)
{
    (void)state;
    described("{\"mode\":\"oplog\",\"ts\":[1700000000,7],\"ord\":-1}",
              "oplog 2023-11-14T22:13:20Z (1700000000, 7)");
    described("{\"mode\":\"change_stream\",\"ts\":[1700000000,7],\"ord\":2,\"token\":" TOKEN "}",
              "change stream 2023-11-14T22:13:20Z (1700000000, 7), 2 of the changes at that time");
    described("{\"mode\":\"oplog\",\"ts\":[1700000000,7],\"ord\":-1,\"until\":[1700000001,1]}",
              "oplog 2023-11-14T22:13:20Z (1700000000, 7), over a snapshot up to "
              "2023-11-14T22:13:21Z (1700000001, 1)");
    described("{\"mode\":\"oplog\",\"ts\":[1700000000,7],\"ord\":-1,\"until_open\":true}",
              "oplog 2023-11-14T22:13:20Z (1700000000, 7), behind a snapshot that was not read at "
              "one time");
    described("what is this", "what is this");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(written_and_read), cmocka_unit_test(form),
        cmocka_unit_test(tokens),           cmocka_unit_test(unknown_members_pass),
        cmocka_unit_test(refused),          cmocka_unit_test(for_people),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
