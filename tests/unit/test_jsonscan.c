/* jsonscan: what is JSON and what is not, members, texts, numbers. */
#include <cdcd/jsonscan.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static struct cdcd_json_value value_of(const char *text)
{
    struct cdcd_json_value v;
    assert_true(cdcd_json_scan(cdcd_slice_str(text), &v));
    return v;
}

static void assert_raw(const struct cdcd_json_value *v, const char *expected)
{
    assert_int_equal(v->raw.len, strlen(expected));
    assert_memory_equal(v->raw.ptr, expected, v->raw.len);
}

static void takes_json(void **state)
{
    (void)state;
    static const char *const good[] = {"null",
                                       " true ",
                                       "0",
                                       "-0",
                                       "1.5e-300",
                                       "12345678901234567890123",
                                       "\"\"",
                                       "[]",
                                       "{}",
                                       "[1,[2,{\"a\":null}] , \"x\"]",
                                       "{\"a\":1,\"a\":{\"b\":[{}]}}",
                                       "\"\\u00e9\\n\\/\\\"\"",
                                       "\"\xc3\xa9\""};
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        struct cdcd_json_value v;
        if (!cdcd_json_scan(cdcd_slice_str(good[i]), &v))
            fail_msg("refused: %s", good[i]);
    }
}

static void refuses_what_is_none(void **state)
{
    (void)state;
    static const char *const bad[] = {"",          " ",
                                      "nul",       "NaN",
                                      "01",        "1.",
                                      ".5",        "1e",
                                      "+1",        "-",
                                      "[1,]",      "[1 2]",
                                      "{\"a\"}",   "{\"a\":}",
                                      "{a:1}",     "{\"a\":1,}",
                                      "\"\\x\"",   "\"\\u12g4\"",
                                      "\"a",       "\"\n\"",
                                      "1 2",       "[",
                                      "{\"a\":[}", "[}",
                                      "tru",       "{\"a\":1 \"b\":2}"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct cdcd_json_value v;
        if (cdcd_json_scan(cdcd_slice_str(bad[i]), &v))
            fail_msg("taken: %s", bad[i]);
    }
    struct cdcd_json_value v;
    assert_false(cdcd_json_scan((struct cdcd_slice){NULL, 0}, &v));
}

/* The depth is that of a program's stack, not of the text. */
static void depth_has_a_limit(void **state)
{
    (void)state;
    static char text[200000];
    struct cdcd_json_value v;
    memset(text, '[', sizeof text);
    assert_false(cdcd_json_scan((struct cdcd_slice){text, sizeof text}, &v));
    memset(text + CDCD_JSON_DEPTH, ']', CDCD_JSON_DEPTH);
    assert_true(cdcd_json_scan((struct cdcd_slice){text, 2 * CDCD_JSON_DEPTH}, &v));
}

static void walks_objects_and_arrays(void **state)
{
    (void)state;
    struct cdcd_json_value v = value_of(
        " { \"id\" : 12345678901234567890 , \"o\":{\"x\":\"}]\\\"\"},\"a\" : [ 1 , [2,3], {} ] } ");
    struct cdcd_json_value name, member, item;
    struct cdcd_json_iter it;
    cdcd_json_iter_init(&it, &v);
    assert_true(cdcd_json_iter_next(&it, &name, &member));
    assert_raw(&name, "\"id\"");
    assert_raw(&member, "12345678901234567890");
    assert_true(cdcd_json_iter_next(&it, &name, &member));
    assert_raw(&member, "{\"x\":\"}]\\\"\"}");
    assert_int_equal(member.kind, CDCD_JSON_OBJECT);
    assert_true(cdcd_json_iter_next(&it, &name, &member));
    assert_raw(&name, "\"a\"");
    struct cdcd_json_iter inner;
    cdcd_json_iter_init(&inner, &member);
    static const char *const items[] = {"1", "[2,3]", "{}"};
    for (size_t i = 0; i < 3; i++) {
        assert_true(cdcd_json_iter_next(&inner, NULL, &item));
        assert_raw(&item, items[i]);
    }
    assert_false(cdcd_json_iter_next(&inner, NULL, &item));
    assert_false(cdcd_json_iter_next(&it, &name, &member));

    struct cdcd_json_value empty = value_of("[ ]"), scalar = value_of("7");
    cdcd_json_iter_init(&it, &empty);
    assert_false(cdcd_json_iter_next(&it, NULL, &item));
    cdcd_json_iter_init(&it, &scalar);
    assert_false(cdcd_json_iter_next(&it, NULL, &item));
}

static void finds_members(void **state)
{
    (void)state;
    struct cdcd_json_value v = value_of("{\"a\":1,\"ab\":2,\"a\":3}"), m;
    assert_true(cdcd_json_member(&v, "a", &m));
    assert_raw(&m, "3"); /* as most readers take it */
    assert_true(cdcd_json_member(&v, "ab", &m));
    assert_raw(&m, "2");
    assert_false(cdcd_json_member(&v, "b", &m));
    struct cdcd_json_value array = value_of("[\"a\"]");
    assert_false(cdcd_json_member(&array, "a", &m));
}

static void assert_text(const char *json, const char *expected, size_t n)
{
    struct cdcd_arena a;
    struct cdcd_json_value v = value_of(json);
    cdcd_arena_init(&a, 256);
    struct cdcd_slice text = cdcd_json_text(&v, &a);
    assert_int_equal(text.len, n);
    assert_memory_equal(text.ptr, expected, n);
    cdcd_arena_free(&a);
}

static void texts_of_strings(void **state)
{
    (void)state;
    assert_text("\"plain\"", "plain", 5);
    assert_text("\"\"", "", 0);
    assert_text("\"a\\n\\t\\\\\\\"\\/\\b\\f\\r z\"", "a\n\t\\\"/\b\f\r z", 11);
    assert_text("\"\\u0000\\u00E9\\u20ac\"", "\0\xc3\xa9\xe2\x82\xac", 6);
    assert_text("\"\\ud83d\\ude00!\"", "\xf0\x9f\x98\x80!", 5);
    assert_text("\"\\ud83d\"", "\xef\xbf\xbd", 3);
    assert_text("\"\\ude00\\ud83dx\"", "\xef\xbf\xbd\xef\xbf\xbdx", 7);
}

static void whole_numbers(void **state)
{
    (void)state;
    int64_t n;
    struct cdcd_json_value v = value_of("9223372036854775807");
    assert_true(cdcd_json_int64(&v, &n));
    assert_true(n == INT64_MAX);
    v = value_of("-9223372036854775808");
    assert_true(cdcd_json_int64(&v, &n));
    assert_true(n == INT64_MIN);
    static const char *const none[] = {
        "9223372036854775808", "-9223372036854775809", "1.0", "1e3", "\"1\"", "null"};
    for (size_t i = 0; i < sizeof none / sizeof *none; i++) {
        v = value_of(none[i]);
        assert_false(cdcd_json_int64(&v, &n));
    }
}

/* What a walk finds, scan_members finds: on the first level, with the last of them too. */
static void members_on_the_way(void **state)
{
    (void)state;
    static const char sixteen[] =
        "{\"0\":0,\"1\":1,\"2\":2,\"3\":3,\"4\":4,\"5\":5,\"6\":6,\"7\":7,\"8\":8,\"9\":9,\"a\":[],"
        "\"b\":null,\"c\":true,\"d\":false,\"e\":\"\",\"f\":{}}";
    static const char *const texts[] = {
        "{}",    " {\"a\" : 1, \"b\":{\"c\":[1,{\"a\":2}]} , \"\\u0061\":\"x\\ny\"}\n",
        sixteen, "[{\"a\":1}]",
        "null",
    };
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        struct cdcd_json_members m;
        struct cdcd_json_value v, same, name, value;
        struct cdcd_json_iter it;
        unsigned n = 0;
        assert_true(cdcd_json_scan_members(cdcd_slice_str(texts[i]), &v, &m));
        assert_true(cdcd_json_scan(cdcd_slice_str(texts[i]), &same));
        assert_int_equal(v.kind, same.kind);
        assert_true(cdcd_slice_eq(v.raw, same.raw));
        cdcd_json_iter_init(&it, &v);
        while (v.kind == CDCD_JSON_OBJECT && cdcd_json_iter_next(&it, &name, &value)) {
            assert_true(n < m.n);
            assert_true(cdcd_slice_eq(m.names[n].raw, name.raw));
            assert_int_equal(m.names[n].escaped, name.escaped);
            assert_int_equal(m.names[n].kind, CDCD_JSON_STRING);
            assert_true(cdcd_slice_eq(m.values[n].raw, value.raw));
            assert_int_equal(m.values[n].kind, value.kind);
            assert_int_equal(m.values[n].escaped, value.escaped);
            n++;
        }
        assert_int_equal(n, m.n);
    }
}

static void more_members_than_room(void **state)
{
    (void)state;
    struct cdcd_buf b;
    struct cdcd_json_members m;
    struct cdcd_json_value v;
    cdcd_buf_init(&b, 0);
    for (int i = 0; i < CDCD_JSON_MEMBERS + 5; i++)
        cdcd_buf_addf(&b, "%s\"n%d\":%d", i ? "," : "{", i, i);
    cdcd_buf_adds(&b, "}");
    assert_true(cdcd_json_scan_members(cdcd_buf_slice(&b), &v, &m));
    assert_int_equal(m.n, CDCD_JSON_MEMBERS + 5);
    assert_raw(&m.values[CDCD_JSON_MEMBERS - 1], "15");
    cdcd_buf_free(&b);
}

static void members_of_what_is_none(void **state)
{
    (void)state;
    static const char *const bad[] = {
        "",           "{",   "{\"a\"}",           "{\"a\":}",         "{\"a\":1,}", "{\"a\":1}x",
        "{\"a\":01}", "{,}", "{\"a\":1 \"b\":2}", "{\"a\":\"\x01\"}", "{a:1}",      "{\"a\":1"};
    struct cdcd_json_members m;
    struct cdcd_json_value v;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_false(cdcd_json_scan_members(cdcd_slice_str(bad[i]), &v, &m));
    assert_false(cdcd_json_scan_members((struct cdcd_slice){NULL, 0}, &v, &m));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(takes_json),
        cmocka_unit_test(refuses_what_is_none),
        cmocka_unit_test(depth_has_a_limit),
        cmocka_unit_test(walks_objects_and_arrays),
        cmocka_unit_test(finds_members),
        cmocka_unit_test(texts_of_strings),
        cmocka_unit_test(whole_numbers),
        cmocka_unit_test(members_on_the_way),
        cmocka_unit_test(more_members_than_room),
        cmocka_unit_test(members_of_what_is_none),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
