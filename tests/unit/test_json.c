/* JSON writers. */
#include <cdcd/json.h>

#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

struct text_case {
    const char *in;
    size_t n; /* 0: strlen */
    const char *want;
};

static const struct text_case strings[] = {
    {"", 0, "\"\""},
    {"plain", 0, "\"plain\""},
    {"a \"quoted\\ text", 0, "\"a \\\"quoted\\\\ text\""},
    {"\b\t\n\f\r", 0, "\"\\b\\t\\n\\f\\r\""},
    {"\x01\x0b\x1f\x7f/", 0, "\"\\u0001\\u000B\\u001F\x7f/\""},
    {"a\0b", 3, "\"a\\u0000b\""},
    {"gr\xc3\xbc\xc3\x9f", 0, "\"gr\xc3\xbc\xc3\x9f\""},
    {"\xe2\x82\xac", 0, "\"\xe2\x82\xac\""},
    {"\xf0\x9f\x98\x80", 0, "\"\\uD83D\\uDE00\""},
    {"\xf4\x8f\xbf\xbf", 0, "\"\\uDBFF\\uDFFF\""},
    {"\xf0\x90\x80\x80", 0, "\"\\uD800\\uDC00\""},
    {"\xd0\x9f\xd1\x80\xd0\xb8 \xe6\x97\xa5\xe6\x9c\xac \xd0\xb8\"\xe2\x82\xac "
     "12\xf0\x9f\x98\x80\xc3\xbc...",
     0,
     "\"\xd0\x9f\xd1\x80\xd0\xb8 \xe6\x97\xa5\xe6\x9c\xac \xd0\xb8\\\"\xe2\x82\xac "
     "12\\uD83D\\uDE00\xc3\xbc...\""},
    /* ill-formed */
    {"\xc3\xbc\xc3zzzzzz", 0, "\"\xc3\xbc\xef\xbf\xbdzzzzzz\""},
    {"\xc3\xbc\xe2\x82zzzzzz", 0, "\"\xc3\xbc\xef\xbf\xbdzzzzzz\""},
    {"\xc3\xbc\xed\xa0\x80zzzz", 0, "\"\xc3\xbc\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbdzzzz\""},
    {"\xc3\xbc\xe0\x80zzzz", 0, "\"\xc3\xbc\xef\xbf\xbd\xef\xbf\xbdzzzz\""},
    {"\xc3\xbc\xc1\x80zzzz", 0, "\"\xc3\xbc\xef\xbf\xbd\xef\xbf\xbdzzzz\""},
    {"\xc3\xbc\xef\xbf\xbezzzz", 0, "\"\xc3\xbc\xef\xbf\xbezzzz\""},
    {"\xff", 0, "\"\xef\xbf\xbd\""},
    {"a\x80z", 0, "\"a\xef\xbf\xbdz\""},
    {"\xc0\xaf", 0, "\"\xef\xbf\xbd\xef\xbf\xbd\""},
    {"\xc3", 0, "\"\xef\xbf\xbd\""},
    {"\xe2\x82", 0, "\"\xef\xbf\xbd\""},
    {"\xe2\x82z", 0, "\"\xef\xbf\xbdz\""},
    {"\xe2z", 0, "\"\xef\xbf\xbdz\""},
    {"\xed\xa0\x80", 0, "\"\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\""}, /* a surrogate */
    {"\xf0\x9f\x98", 0, "\"\xef\xbf\xbd\""},
    {"\xf4\x90\x80\x80", 0, "\"\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\""},
    {"\xe0\x80\x80", 0, "\"\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\""},
};

static void strings_are_escaped(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(strings) / sizeof(strings[0]); i++) {
        const struct text_case *c = &strings[i];
        struct cdcd_arena a;
        struct cdcd_writer w;
        cdcd_arena_init(&a, 64);
        cdcd_writer_begin(&w, &a);
        cdcd_json_string(&w, c->in, c->n ? c->n : strlen(c->in));
        struct cdcd_slice got = cdcd_writer_end(&w);
        if (!cdcd_slice_eq(got, cdcd_slice_str(c->want)))
            fail_msg("string %zu: got %.*s, want %s", i, (int)got.len, got.ptr, c->want);
        cdcd_arena_free(&a);
    }
}

/* A plain byte-by-byte form to compare with: ASCII only. */
static void slow_string(struct cdcd_buf *out, const char *s, size_t n)
{
    cdcd_buf_adds(out, "\"");
    for (size_t i = 0; i < n; i++) {
        if (s[i] == '"' || s[i] == '\\')
            cdcd_buf_addf(out, "\\%c", s[i]);
        else if (s[i] < ' ')
            cdcd_buf_addf(out, "\\u%04X", s[i]);
        else
            cdcd_buf_add(out, s + i, 1);
    }
    cdcd_buf_adds(out, "\"");
}

/* One special byte at every place of texts of every length around the vector sizes, from an
 * exact allocation so that a read beyond the end is seen by the sanitizer. */
static void every_alignment_and_length(void **state)
{
    (void)state;
    static const char special[] = {'"', '\\', 1, 0x1f, 'x', 0x7f};
    struct cdcd_arena a;
    struct cdcd_buf want;
    cdcd_arena_init(&a, 128);
    cdcd_buf_init(&want, 0);
    for (size_t n = 0; n <= 70; n++) {
        char *text = malloc(n ? n : 1);
        for (size_t at = 0; at <= n; at++) {
            for (size_t k = 0; k < sizeof(special); k++) {
                memset(text, 'a' + (int)(n % 26), n);
                if (at < n)
                    text[at] = special[k];
                struct cdcd_writer w;
                cdcd_writer_begin(&w, &a);
                cdcd_json_string(&w, text, n);
                cdcd_writer_char(&w, ',');
                struct cdcd_slice got = cdcd_writer_end(&w);
                cdcd_buf_clear(&want);
                slow_string(&want, text, n);
                cdcd_buf_adds(&want, ",");
                assert_true(cdcd_slice_eq(got, cdcd_buf_slice(&want)));
            }
        }
        free(text);
        cdcd_arena_reset(&a, 0);
    }
    cdcd_buf_free(&want);
    cdcd_arena_free(&a);
}

/* The worst growth: everything becomes six or twelve bytes. */
static void long_texts_that_grow(void **state)
{
    (void)state;
    static const struct {
        const char *unit, *want;
    } cases[] = {{"\x01", "\\u0001"},
                 {"\xf0\x9f\x98\x80", "\\uD83D\\uDE00"},
                 {"\xff", "\xef\xbf\xbd"},
                 {"\xc3\xbc\n", "\xc3\xbc\\n"}};
    for (size_t i = 0; i < 4; i++) {
        struct cdcd_buf in, want;
        struct cdcd_arena a;
        struct cdcd_writer w;
        cdcd_buf_init(&in, 0);
        cdcd_buf_init(&want, 0);
        cdcd_arena_init(&a, 256);
        cdcd_buf_adds(&want, "\"");
        for (int k = 0; k < 5000; k++) {
            cdcd_buf_adds(&in, cases[i].unit);
            cdcd_buf_adds(&want, cases[i].want);
        }
        cdcd_buf_adds(&want, "\"");
        cdcd_writer_begin(&w, &a);
        cdcd_json_string(&w, in.ptr, in.len);
        assert_true(cdcd_slice_eq(cdcd_writer_end(&w), cdcd_buf_slice(&want)));
        cdcd_arena_free(&a);
        cdcd_buf_free(&in);
        cdcd_buf_free(&want);
    }
}

static void check_int(int64_t v)
{
    char want[32];
    struct cdcd_arena a;
    struct cdcd_writer w;
    cdcd_arena_init(&a, 64);
    cdcd_writer_begin(&w, &a);
    cdcd_json_int(&w, v);
    struct cdcd_slice got = cdcd_writer_end(&w);
    snprintf(want, sizeof(want), "%lld", (long long)v);
    assert_true(cdcd_slice_eq(got, cdcd_slice_str(want)));
    cdcd_writer_begin(&w, &a);
    cdcd_json_uint(&w, (uint64_t)v);
    got = cdcd_writer_end(&w);
    snprintf(want, sizeof(want), "%llu", (unsigned long long)v);
    assert_true(cdcd_slice_eq(got, cdcd_slice_str(want)));
    cdcd_arena_free(&a);
}

static void integers(void **state)
{
    (void)state;
    check_int(INT64_MIN);
    check_int(INT64_MAX);
    for (int64_t v = -30000; v <= 30000; v += 7)
        check_int(v);
    for (int64_t v = -1000; v <= 1000; v++)
        check_int(v);
    for (int64_t p = 1; p < INT64_MAX / 10; p *= 10) {
        check_int(p);
        check_int(p - 1);
        check_int(p + 1);
        check_int(p / 3 * 8);
        check_int(-p);
        check_int(1 - p);
    }
}

static void base64(void **state)
{
    (void)state;
    static const struct {
        const char *in;
        size_t n;
        bool url;
        const char *want;
    } cases[] = {
        {"", 0, false, "\"\""},
        {"f", 1, false, "\"Zg==\""},
        {"fo", 2, false, "\"Zm8=\""},
        {"foo", 3, false, "\"Zm9v\""},
        {"foob", 4, false, "\"Zm9vYg==\""},
        {"\xfb\xff\xfe", 3, false, "\"+//+\""},
        {"\xfb\xff\xfe", 3, true, "\"-__-\""},
        {"\0\0\0\0", 4, true, "\"AAAAAA==\""},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct cdcd_arena a;
        struct cdcd_writer w;
        cdcd_arena_init(&a, 64);
        cdcd_writer_begin(&w, &a);
        cdcd_json_base64(&w, cases[i].in, cases[i].n, cases[i].url);
        assert_true(cdcd_slice_eq(cdcd_writer_end(&w), cdcd_slice_str(cases[i].want)));
        cdcd_arena_free(&a);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(strings_are_escaped),
        cmocka_unit_test(every_alignment_and_length),
        cmocka_unit_test(long_texts_that_grow),
        cmocka_unit_test(integers),
        cmocka_unit_test(base64),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
