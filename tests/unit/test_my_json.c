/*
 * MySQL's binary JSON to text, the server's text to the same, and partial updates.
 */
#include "json_int.h"

#include <setjmp.h>

#include <cmocka.h>

#include "my_hex.h"

static struct cdcd_arena arena;

static int set_up(void **state)
{
    (void)state;
    cdcd_arena_init(&arena, 4096);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    cdcd_arena_free(&arena);
    return 0;
}

static void equal(struct cdcd_slice got, const char *want)
{
    if (got.len != strlen(want) || memcmp(got.ptr, want, got.len) != 0)
        fail_msg("\"%.*s\", not \"%s\"", (int)got.len, got.ptr, want);
}

struct sample {
    const char *hex, *text; /* text NULL: no document */
    const char *server;     /* the server's text of it, where it differs */
};

#define OBJECT "00 0200 1c00 1200 0100 1300 0200 05 0100 02 1500 61 6262 0100 0700 04 0100"

static const struct sample samples[] = {
    {"", "null", "null"},
    {"0400", "null", NULL},
    {"0401", "true", NULL},
    {"0402", "false", NULL},
    {"05fbff", "-5", NULL},
    {"06ffff", "65535", NULL},
    {"07ff7fffff", "-32769", NULL},
    {"08ffffffff", "4294967295", NULL},
    {"090000000000000080", "-9223372036854775808", NULL},
    {"0affffffffffffffff", "18446744073709551615", NULL},
    {"0b 000000205fa00242", "10000000000", "10000000000.0"},
    {"0b 000000c0298c6741", "12345678", "12345678.0"},
    {"0b 0000000087d63241", "1234567.0", NULL},
    {"0b 000000000000f03f", "1.0", NULL},
    {"0b 0000000000000080", "-0.0", NULL},
    {"0b 408cb5781daf1544", "1e20", NULL},
    {"0b 9a9999999999b93f", "0.1", NULL},
    {"0b 48afbc9af2d77a3e", "0.0000001", NULL},
    {"0b 00003426f56b0c43", "1e15", NULL},
    {"0b 9c7500883ce4377e", "1e300", NULL},
    {"0c 03 616263", "\"abc\"", NULL},
    {"0c 0a 225c2f0a1f080c0d097f", "\"\\\"\\\\/\\n\\u001f\\b\\f\\r\\t\x7f\"", NULL},
    {"02 0000 0400", "[]", NULL},
    {"00 0000 0400", "{}", NULL},
    {"02 0300 0f00 05 0100 0c 0d00 04 0000 01 61", "[1,\"a\",null]", "[1, \"a\", null]"},
    {OBJECT, "{\"a\":1,\"bb\":[true]}", "{\"a\": 1, \"bb\": [true]}"},
    {"03 01000000 0d000000 07 ffffffff", "[-1]", NULL},
    {"01 01000000 1b000000 13000000 0000 0b 13000000 9a9999999999b93f", "{\"\":0.1}",
     "{\"\": 0.1}"},
    {"0f f6 06 0603807b01c2", "123.450", NULL},
    {"0f 0a 08 0000000000bab219", "\"2024-02-29\"", NULL},
    {"0f 0f 03 00ff10", "\"base64:type15:AP8Q\"", NULL},
    {"0f 10 01 05", "\"base64:type16:BQ==\"", NULL},
    /* no documents */
    {"04", NULL, NULL},
    {"0403", NULL, NULL},
    {"05fb", NULL, NULL},
    {"0a ffffffffffffff", NULL, NULL},
    {"0b 000000000000f87f", NULL, NULL},
    {"0c 04 616263", NULL, NULL},
    {"0c ffffffffff", NULL, NULL},
    {"0d", NULL, NULL},
    {"02 0100", NULL, NULL},
    {"02 0100 0700 0c 0700", NULL, NULL},
    {"02 0100 0800 0c 0700 01", NULL, NULL},
    {"02 ffff 0700 05 0100", NULL, NULL},
    {"02 0100 0700 02 0000", NULL, NULL}, /* its own element */
    {"00 0100 0c00 0b00 0500 05 0100 61", NULL, NULL},
};

static void test_text(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof samples / sizeof *samples; i++) {
        const struct sample *s = &samples[i];
        struct cdcd_error err = {0};
        struct cdcd_slice out;
        size_t n;
        uint8_t *doc = from_hex(s->hex, &n);
        enum cdcd_rc rc = my_json_text(doc, n, &arena, &out, &err);
        if (s->text && rc != CDCD_OK)
            fail_msg("%s: %s", s->hex, err.text);
        if (!s->text && rc == CDCD_OK)
            fail_msg("%s was taken: %.*s", s->hex, (int)out.len, out.ptr);
        if (s->text)
            equal(out, s->text);
        else
            assert_int_equal(err.class, CDCD_ERR_DATA);
        free(doc);
        if (!s->text)
            continue;
        const char *text = s->server ? s->server : s->text;
        assert_int_equal(my_json_canon(text, strlen(text), &arena, &out, &err), CDCD_OK);
        equal(out, s->text);
    }
}

static void put_opaque(struct cdcd_buf *b, uint8_t type, const void *p, uint8_t n)
{
    const uint8_t head[] = {MY_J_OPAQUE, type, n};

    cdcd_buf_clear(b);
    cdcd_buf_add(b, head, sizeof head);
    cdcd_buf_add(b, p, n);
}

static void test_times(void **state)
{
    const int64_t clock = 12 << 12 | 34 << 6 | 56, day = (2024 * 13 + 2) << 5 | 29;
    const struct {
        uint8_t type;
        int64_t packed;
        const char *text;
    } list[] = {
        {MY_TIME, -(clock << 24 | 789012), "\"-12:34:56.789012\""},
        {MY_TIME, (838 << 12 | 59 << 6 | 59LL) << 24, "\"838:59:59.000000\""},
        {MY_TIME, -1, "\"-00:00:00.000001\""},
        {MY_DATE, day << 41, "\"2024-02-29\""},
        {MY_DATETIME, (day << 17 | clock) << 24 | 123456, "\"2024-02-29 12:34:56.123456\""},
        {MY_TIMESTAMP, (day << 17 | clock) << 24, "\"2024-02-29 12:34:56.000000\""},
    };
    struct cdcd_buf b;
    struct cdcd_slice out;
    struct cdcd_error err;

    (void)state;
    cdcd_buf_init(&b, 0);
    for (size_t i = 0; i < sizeof list / sizeof *list; i++) {
        put_opaque(&b, list[i].type, &list[i].packed, 8);
        assert_int_equal(my_json_text((uint8_t *)b.ptr, b.len, &arena, &out, &err), CDCD_OK);
        equal(out, list[i].text);
        put_opaque(&b, list[i].type, &list[i].packed, 7);
        assert_int_equal(my_json_text((uint8_t *)b.ptr, b.len, &arena, &out, &err), CDCD_ERROR);
    }
    cdcd_buf_free(&b);
}

/* The server breaks base64 into lines of 76 characters. */
static void test_long_opaque(void **state)
{
    char data[100];
    struct cdcd_buf b;
    struct cdcd_slice out;
    struct cdcd_error err;

    (void)state;
    memset(data, 'x', sizeof data);
    cdcd_buf_init(&b, 0);
    put_opaque(&b, MY_VARCHAR, data, sizeof data);
    assert_int_equal(my_json_text((uint8_t *)b.ptr, b.len, &arena, &out, &err), CDCD_OK);
    char want[200] = "\"base64:type15:";
    for (int i = 0; i < 33; i++)
        strcat(want, i == 19 ? "\\neHh4" : "eHh4");
    equal(out, strcat(want, "eA==\""));
    put_opaque(&b, MY_VARCHAR, data, 57);
    assert_int_equal(my_json_text((uint8_t *)b.ptr, b.len, &arena, &out, &err), CDCD_OK);
    assert_null(memchr(out.ptr, '\\', out.len));
    cdcd_buf_free(&b);
}

/* Arrays in arrays, one element each. */
static size_t nest(uint8_t *doc, int depth)
{
    size_t n = 0;

    doc[n++] = MY_J_SMALL_ARRAY;
    for (int i = 0; i < depth; i++) {
        size_t left = 7u * (size_t)(depth - i) - 3; /* the innermost one has no element */
        bool last = i + 1 == depth;
        uint8_t head[] = {!last, 0, (uint8_t)left, (uint8_t)(left >> 8), MY_J_SMALL_ARRAY, 7, 0};
        memcpy(doc + n, head, last ? 4 : 7);
        n += last ? 4 : 7;
    }
    return n;
}

static void test_depth(void **state)
{
    uint8_t doc[1000];
    struct cdcd_slice out;
    struct cdcd_error err;

    (void)state;
    size_t n = nest(doc, MY_JSON_MAX_DEPTH);
    assert_int_equal(my_json_text(doc, n, &arena, &out, &err), CDCD_OK);
    assert_int_equal(out.len, 2 * MY_JSON_MAX_DEPTH);
    n = nest(doc, MY_JSON_MAX_DEPTH + 1);
    assert_int_equal(my_json_text(doc, n, &arena, &out, &err), CDCD_ERROR);
}

/* Each array has the next one twice, by the same offset: 2^60 values in some hundred bytes. */
static void test_shared_offsets(void **state)
{
    enum { LEVELS = 60 };
    uint8_t doc[1 + 10 * LEVELS], *w = doc;
    struct cdcd_slice out;
    struct cdcd_error err;

    (void)state;
    *w++ = MY_J_SMALL_ARRAY;
    for (int i = 0; i < LEVELS; i++) {
        size_t left = 10u * (size_t)(LEVELS - i);
        uint8_t item = i + 1 < LEVELS ? MY_J_SMALL_ARRAY : MY_J_LITERAL;
        uint8_t head[] = {2, 0, (uint8_t)left, (uint8_t)(left >> 8), item, 10, 0, item, 10, 0};
        if (item == MY_J_LITERAL)
            head[5] = head[8] = 0;
        memcpy(w, head, sizeof head);
        w += sizeof head;
    }
    assert_int_equal(my_json_text(doc, sizeof doc, &arena, &out, &err), CDCD_ERROR);
}

static void test_canonical(void **state)
{
    static const struct {
        const char *text, *canonical; /* NULL: no JSON */
    } list[] = {
        {" {\n\"a\" :\t1 , \"b\": [ 1 , 2 ] }\r", "{\"a\":1,\"b\":[1,2]}"},
        {"\"a , b : \\\" {\"", "\"a , b : \\\" {\""},
        {"[100000000.0, 1000.0, 100000000.00, -12345678.0]",
         "[100000000,1000.0,100000000.00,-12345678]"},
        {"[1e20, 1.5, 0.0000001, -0.0]", "[1e20,1.5,0.0000001,-0.0]"},
        {"\"12345678.0\"", "\"12345678.0\""},
        {"\"a\nb\"", "\"a\\nb\""},
        {"null", "null"},
        {"", NULL},
        {"\"a", NULL},
        {"\"a\\", NULL},
        {"[1; 2]", NULL},
        {"'a'", NULL},
    };
    struct cdcd_slice out;
    struct cdcd_error err;

    (void)state;
    for (size_t i = 0; i < sizeof list / sizeof *list; i++) {
        enum cdcd_rc rc = my_json_canon(list[i].text, strlen(list[i].text), &arena, &out, &err);
        assert_int_equal(rc, list[i].canonical ? CDCD_OK : CDCD_ERROR);
        if (list[i].canonical)
            equal(out, list[i].canonical);
    }
}

/* ---- partial updates ---- */

struct difference {
    int op; /* 0 replace, 1 insert, 2 remove; -1: no more */
    const char *path, *value;
};

static void put_difference(struct cdcd_buf *b, const struct difference *d)
{
    char op = (char)d->op, len = (char)strlen(d->path);
    size_t n;

    cdcd_buf_add(b, &op, 1);
    cdcd_buf_add(b, &len, 1);
    cdcd_buf_adds(b, d->path);
    if (!d->value)
        return;
    uint8_t *value = from_hex(d->value, &n);
    len = (char)n;
    cdcd_buf_add(b, &len, 1);
    cdcd_buf_add(b, value, n);
    free(value);
}

static void test_partial(void **state)
{
    enum { REPLACE = 0, INSERT = 1, REMOVE = 2 };
    static const struct {
        const char *doc;
        struct difference list[4];
        const char *result; /* NULL: does not fit */
    } list[] = {
        {OBJECT, {{-1, NULL, NULL}}, "{\"a\":1,\"bb\":[true]}"},
        {OBJECT, {{REPLACE, "$.a", "052a00"}, {-1, NULL, NULL}}, "{\"a\":42,\"bb\":[true]}"},
        {OBJECT,
         {{REPLACE, "$.\"a\"", "0c 01 78"}, {REPLACE, "$.bb[0]", "0402"}, {-1, NULL, NULL}},
         "{\"a\":\"x\",\"bb\":[false]}"},
        {OBJECT, {{INSERT, "$.bb[0]", "0400"}, {-1, NULL, NULL}}, "{\"a\":1,\"bb\":[null,true]}"},
        {OBJECT,
         {{INSERT, "$.bb[1]", "050100"}, {INSERT, "$.bb[9]", "050200"}, {-1, NULL, NULL}},
         "{\"a\":1,\"bb\":[true,1,2]}"},
        {OBJECT,
         {{INSERT, "$.b", OBJECT}, {-1, NULL, NULL}},
         "{\"a\":1,\"b\":{\"a\":1,\"bb\":[true]},\"bb\":[true]}"},
        {OBJECT,
         {{INSERT, "$.zzz", "0401"}, {INSERT, "$.\"\"", "0400"}, {-1, NULL, NULL}},
         "{\"\":null,\"a\":1,\"bb\":[true],\"zzz\":true}"},
        {OBJECT, {{REMOVE, "$.bb", NULL}, {-1, NULL, NULL}}, "{\"a\":1}"},
        {OBJECT,
         {{REMOVE, "$.bb[0]", NULL}, {REMOVE, "$.a", NULL}, {-1, NULL, NULL}},
         "{\"bb\":[]}"},
        {OBJECT, {{REMOVE, "$.bb[last]", NULL}, {-1, NULL, NULL}}, "{\"a\":1,\"bb\":[]}"},
        {OBJECT,
         {{INSERT, "$.c", OBJECT}, {REPLACE, "$.c.bb[0]", "05ffff"}, {-1, NULL, NULL}},
         "{\"a\":1,\"c\":{\"a\":1,\"bb\":[-1]},\"bb\":[true]}"},
        {OBJECT,
         {{INSERT, "$.\"q\\\"\\u00e9.[\"", "0400"}, {-1, NULL, NULL}},
         "{\"a\":1,\"bb\":[true],\"q\\\"é.[\":null}"},
        {"00 0100 1e00 0b00 0100 00 0c00 61 0100 1200 0b00 0100 00 0c00 62"
         "0000 0400 00000000 0000",
         {{INSERT, "$.a.b.c", "0400"}, {-1, NULL, NULL}},
         "{\"a\":{\"b\":{\"c\":null}}}"},
        {OBJECT, {{REPLACE, "$.x", "0400"}, {-1, NULL, NULL}}, NULL},
        {OBJECT, {{REPLACE, "$.a.b", "0400"}, {-1, NULL, NULL}}, NULL},
        {OBJECT, {{REPLACE, "$[0]", "0400"}, {-1, NULL, NULL}}, NULL},
        {OBJECT, {{REPLACE, "$", "0400"}, {-1, NULL, NULL}}, NULL},
        {OBJECT, {{REPLACE, "a", "0400"}, {-1, NULL, NULL}}, NULL},
        {OBJECT, {{REPLACE, "$.bb[0", "0400"}, {-1, NULL, NULL}}, NULL},
        {OBJECT, {{REPLACE, "$.bb[1]", "0400"}, {-1, NULL, NULL}}, NULL},
        {OBJECT, {{INSERT, "$.a", "0400"}, {-1, NULL, NULL}}, NULL},
        {OBJECT, {{REMOVE, "$.bb[5]", NULL}, {-1, NULL, NULL}}, NULL},
        {OBJECT, {{3, "$.a", NULL}, {-1, NULL, NULL}}, NULL},
        {OBJECT, {{REPLACE, "$.a", ""}, {-1, NULL, NULL}}, NULL},
        {"0400", {{REPLACE, "$.a", "0400"}, {-1, NULL, NULL}}, NULL},
        {"", {{REPLACE, "$.a", "0400"}, {-1, NULL, NULL}}, NULL},
    };
    struct cdcd_buf b;

    (void)state;
    cdcd_buf_init(&b, 0);
    for (size_t i = 0; i < sizeof list / sizeof *list; i++) {
        struct cdcd_error err = {0};
        struct cdcd_slice out;
        size_t n;
        uint8_t *doc = from_hex(list[i].doc, &n);
        cdcd_buf_clear(&b);
        for (int k = 0; list[i].list[k].op >= 0; k++)
            put_difference(&b, &list[i].list[k]);
        enum cdcd_rc rc = my_json_apply(doc, n, (uint8_t *)b.ptr, b.len, &arena, &out, &err);
        if (list[i].result && rc != CDCD_OK)
            fail_msg("%s: %s", list[i].list[0].path, err.text);
        if (list[i].result)
            equal(out, list[i].result);
        else
            assert_int_equal(rc, CDCD_ERROR);
        free(doc);
    }
    cdcd_buf_free(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_text, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_times, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_long_opaque, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_depth, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_shared_offsets, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_canonical, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_partial, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
