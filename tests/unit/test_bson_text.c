/* What stands inside the JSON of BSON: doubles, decimals, times and strings. */
#include "bson_int.h"
#include "bson_test.h"

#include <cdcd/json.h>

#include <math.h>

/* ---- doubles ---- */

struct double_case {
    double v;
    const char *want;
};

/* Java's Double.toString since JDK 19, whose rules want at least two digits. */
static const struct double_case doubles[] = {
    {0.0, "0.0"},
    {-0.0, "-0.0"},
    {1, "1.0"},
    {-1.5, "-1.5"},
    {0.1, "0.1"},
    {0.3, "0.3"},
    {0.1 + 0.2, "0.30000000000000004"},
    {12.34, "12.34"},
    {100, "100.0"},
    {9999999, "9999999.0"},
    {1e7, "1.0E7"},
    {12345678, "1.2345678E7"},
    {9999999.5, "9999999.5"},
    {0.001, "0.001"},
    {0.00123, "0.00123"},
    {0.00099, "9.9E-4"},
    {1e-4, "1.0E-4"},
    {123456789012345680.0, "1.2345678901234568E17"},
    {9007199254740991, "9.007199254740991E15"},
    {9007199254740992, "9.007199254740992E15"},
    {9007199254740994, "9.007199254740994E15"},
    {9223372036854775808.0, "9.223372036854776E18"},
    {1e21, "1.0E21"},
    {1e22, "1.0E22"},
    {1e23, "1.0E23"},
    {2e23, "2.0E23"},
    {1e300, "1.0E300"},
    {1.7976931348623157e308, "1.7976931348623157E308"},
    {2.2250738585072014e-308, "2.2250738585072014E-308"},
    {2.225073858507201e-308, "2.225073858507201E-308"},
    {4.9e-324, "4.9E-324"},
    {1e-323, "9.9E-324"},
    {1.5e-323, "1.5E-323"},
    {2e-323, "2.0E-323"},
    {2e-3, "0.002"},
    {5e-324 * 7, "3.5E-323"},
    {1.0 / 3, "0.3333333333333333"},
    {2.0 / 3, "0.6666666666666666"},
    {3.141592653589793, "3.141592653589793"},
    {2251799813685248.5, "2.2517998136852485E15"},
    {2.0e-44, "2.0E-44"},
};

static void doubles_as_java_has_them(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(doubles) / sizeof(doubles[0]); i++) {
        char text[64] = {0};
        *cdcd_bson_put_double(text, doubles[i].v) = 0;
        assert_string_equal(text, doubles[i].want);
    }
}

/* Digits that count. */
static int digits_of(const char *text)
{
    int n = 0, zeros = 0;
    for (; *text && *text != 'E'; text++) {
        if (*text < '0' || *text > '9' || (!n && *text == '0'))
            continue;
        n++;
        zeros = *text == '0' ? zeros + 1 : 0;
    }
    return n - zeros;
}

static void check_double(double v)
{
    char text[64] = {0}, other[64];
    int precision = 1;
    if (!isfinite(v))
        return;
    *cdcd_bson_put_double(text, v) = 0;
    if (strtod(text, NULL) != v)
        fail_msg("%.17g reads back from %s", v, text);
    for (; precision <= 17; precision++) {
        snprintf(other, sizeof other, "%.*e", precision - 1, v);
        if (strtod(other, NULL) == v)
            break;
    }
    int n = digits_of(text);
    if (precision < 2 && n == 2) /* two digits may be nearer than one */
        return;
    /* printf rounds the exact value; one digit less may be within the interval beside that. */
    if (n > precision || n < precision - 1)
        fail_msg("%s has %d digits, %s does", text, n, other);
}

static void random_doubles_read_back_from_the_fewest_digits(void **state)
{
    (void)state;
    struct bson_random r = {3};
    for (int i = 0; i < 50000; i++) {
        uint64_t bits = bson_draw(&r);
        double v;
        memcpy(&v, &bits, 8);
        check_double(v);
        check_double((double)(int64_t)(bits >> 20) / 100);
        check_double((double)(bits >> (bits & 63)));
    }
    for (int e = -1074; e < 1024; e++) {
        double v = ldexp(1, e);
        check_double(v);
        check_double(nextafter(v, 0));
        check_double(nextafter(v, INFINITY));
    }
}

/* ---- decimals ---- */

struct decimal_case {
    uint64_t high, low;
    const char *want;
};

static const struct decimal_case decimals[] = {
    {0x3040000000000000, 0, "0"},
    {0xb040000000000000, 0, "-0"},
    {0x3040000000000000, 1, "1"},
    {0xb040000000000000, 123, "-123"},
    {0x303a000000000000, 123450, "123.450"},
    {0x303e000000000000, 5, "0.5"},
    {0x3034000000000000, 1, "0.000001"},
    {0x3032000000000000, 1, "1E-7"},
    {0x3032000000000000, 12, "0.0000012"},
    {0x3034000000000000, 0, "0.000000"},
    {0x3032000000000000, 0, "0E-7"},
    {0x302c000000000000, 1234567, "0.0001234567"},
    {0x3042000000000000, 1, "1E+1"},
    {0x3042000000000000, 12, "1.2E+2"},
    {0x3042000000000000, 0, "0E+1"},
    {0x5ffe000000000000, 0, "0E+6111"},
    {0x0000000000000000, 0, "0E-6176"},
    {0x0000000000000000, 1, "1E-6176"},
    {0x8000000000000000, 1, "-1E-6176"},
    /* 34 digits: 10^34 - 1, with the largest exponent, and behind the point */
    {0x3041ed09bead87c0, 0x378d8e63ffffffff, "9999999999999999999999999999999999"},
    {0x5fffed09bead87c0, 0x378d8e63ffffffff, "9.999999999999999999999999999999999E+6144"},
    {0x2ffded09bead87c0, 0x378d8e63ffffffff, "0.9999999999999999999999999999999999"},
    {0xaff1ed09bead87c0, 0x378d8e63ffffffff, "-9.999999999999999999999999999999999E-7"},
    {0xaff3ed09bead87c0, 0x378d8e63ffffffff, "-0.000009999999999999999999999999999999999"},
    {0x2ffc000000000000, 0xffffffffffffffff, "1.8446744073709551615E-15"},
    {0x3040000000000001, 0, "18446744073709551616"},
    /* not canonical: 10^34 and more, and what both high bits say, are zero */
    {0x3041ed09bead87c0, 0x378d8e6400000000, "0"},
    {0x3041ffffffffffff, 0xffffffffffffffff, "0"},
    {0x6c10000000000000, 0, "0"},
    {0xec10000000000000, 12345, "-0"},
    {0x6c11ffffffffffff, 0xffffffffffffffff, "0E+3"},
    /* specials, whatever their other bits */
    {0x7800000000000000, 0, "Infinity"},
    {0xf800000000000000, 0, "-Infinity"},
    {0xf9ffffffffffffff, 1, "-Infinity"},
    {0x7c00000000000000, 0, "NaN"},
    {0xfc00000000000000, 0, "NaN"},
    {0x7e00000000000000, 12, "NaN"},
};

static void decimals_of_every_kind(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(decimals) / sizeof(decimals[0]); i++) {
        uint8_t value[16];
        char text[64] = {0};
        memcpy(value, &decimals[i].low, 8);
        memcpy(value + 8, &decimals[i].high, 8);
        *cdcd_bson_put_decimal(text, value) = 0;
        assert_string_equal(text, decimals[i].want);
    }
}

/* ---- times ---- */

static void times(void **state)
{
    (void)state;
    static const struct {
        int64_t millis;
        const char *want;
    } cases[] = {
        {0, "1970-01-01T00:00:00Z"},
        {1709212455123, "2024-02-29T13:14:15.123Z"},
        {1709164800100, "2024-02-29T00:00:00.1Z"},
        {1709164800120, "2024-02-29T00:00:00.12Z"},
        {1709164800003, "2024-02-29T00:00:00.003Z"},
        {951782399999, "2000-02-28T23:59:59.999Z"},
        {951782400000, "2000-02-29T00:00:00Z"},
        {4107542400000, "2100-03-01T00:00:00Z"},
        {-1, "1969-12-31T23:59:59.999Z"},
        {-86400000, "1969-12-31T00:00:00Z"},
        {-62135596800000, "0001-01-01T00:00:00Z"},
        {-62167219200000, "0000-01-01T00:00:00Z"},
        {-62167219200001, "-0001-12-31T23:59:59.999Z"},
        {253402300800000, "+10000-01-01T00:00:00Z"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        char text[64] = {0};
        *cdcd_bson_put_time(text, cases[i].millis) = 0;
        assert_string_equal(text, cases[i].want);
    }
}

/* ---- strings ---- */

/* The text, from an exact allocation so that a read beyond the end is seen by the sanitizer. */
static struct cdcd_slice text_of(struct cdcd_arena *a, const char *s, size_t n, bool quoted)
{
    struct cdcd_writer w;
    uint8_t *exact = malloc(n ? n : 1);
    memcpy(exact, s, n);
    cdcd_writer_begin(&w, a);
    char *d = cdcd_writer_room(&w, BSON_ROOM);
    w.pos = cdcd_bson_put_text(&w, d, exact, n, exact + n, quoted);
    free(exact);
    return cdcd_writer_end(&w);
}

struct text_case {
    const char *in;
    size_t n;
    const char *want, *want_quoted; /* NULL: the same */
};

#define REPLACED "\xef\xbf\xbd"
static const struct text_case texts[] = {
    {BYTES(""), "", NULL},
    {BYTES("plain text / with '"), "plain text / with '", NULL},
    {BYTES("\"q\" \\"), "\\\"q\\\" \\\\", "\\\\\\\"q\\\\\\\" \\\\\\\\"},
    {BYTES("\b\t\n\f\r"), "\\b\\t\\n\\f\\r", "\\\\b\\\\t\\\\n\\\\f\\\\r"},
    {BYTES("\0\x01\x1f\x7f"), "\\u0000\\u0001\\u001f\\u007f",
     "\\\\u0000\\\\u0001\\\\u001f\\\\u007f"},
    {BYTES("gr\xc3\xbc\xc3\x9f \xe2\x82\xac \xe6\x97\xa5\xe6\x9c\xac"),
     "gr\xc3\xbc\xc3\x9f \xe2\x82\xac \xe6\x97\xa5\xe6\x9c\xac", NULL},
    {BYTES("\xf0\x9f\x98\x80"), "\\ud83d\\ude00", "\\\\ud83d\\\\ude00"},
    {BYTES("\xf4\x8f\xbf\xbf"), "\\udbff\\udfff", "\\\\udbff\\\\udfff"},
    {BYTES("\xf0\x90\x80\x80"), "\\ud800\\udc00", "\\\\ud800\\\\udc00"},
    /* a combining accent, a modifier letter, a soft hyphen, a line separator, private use, a
     * character that is none; a no-break space stands */
    {BYTES("e\xcc\x81"), "e\\u0301", "e\\\\u0301"},
    {BYTES("\xca\xb0"), "\\u02b0", "\\\\u02b0"},
    {BYTES("\xc2\xad"), "\\u00ad", "\\\\u00ad"},
    {BYTES("\xe2\x80\xa8"), "\\u2028", "\\\\u2028"},
    {BYTES("\xee\x80\x80"), "\\ue000", "\\\\ue000"},
    {BYTES("\xef\xbf\xbe"), "\\ufffe", "\\\\ufffe"},
    {BYTES("\xc2\xa0\xe3\x80\x80"), "\xc2\xa0\xe3\x80\x80", NULL},
    {BYTES("\xc2\x80\xc2\x9f"), "\\u0080\\u009f", "\\\\u0080\\\\u009f"},
    /* ill-formed */
    {BYTES("\xff"), REPLACED, NULL},
    {BYTES("a\x80z"), "a" REPLACED "z", NULL},
    {BYTES("\xc0\xaf"), REPLACED REPLACED, NULL},
    {BYTES("\xc3"), REPLACED, NULL},
    {BYTES("\xc3z"), REPLACED "z", NULL},
    {BYTES("\xe2\x82"), REPLACED, NULL},
    {BYTES("\xe2\x82z"), REPLACED "z", NULL},
    {BYTES("\xe2z"), REPLACED "z", NULL},
    {BYTES("\xe0\x80\x80"), REPLACED REPLACED REPLACED, NULL},
    {BYTES("\xf0\x9f\x98"), REPLACED, NULL},
    {BYTES("\xf0\x80\x80\x80"), REPLACED REPLACED REPLACED REPLACED, NULL},
    {BYTES("\xf4\x90\x80\x80"), REPLACED REPLACED REPLACED REPLACED, NULL},
    {BYTES("\xf8\x88\x80\x80\x80"), REPLACED REPLACED REPLACED REPLACED REPLACED, NULL},
    /* surrogates: Java takes one for one character */
    {BYTES("\xed\xa0\x80"), REPLACED, NULL},
    {BYTES("\xed\xa0\xbd\xed\xb8\x80"), REPLACED REPLACED, NULL},
    {BYTES("\xed\xa0z"), REPLACED "z", NULL},
};

static void strings_are_escaped(void **state)
{
    (void)state;
    struct cdcd_arena a;
    cdcd_arena_init(&a, 64);
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        const struct text_case *c = &texts[i];
        for (int quoted = 0; quoted < 2; quoted++) {
            const char *want = quoted && c->want_quoted ? c->want_quoted : c->want;
            struct cdcd_slice got = text_of(&a, c->in, c->n, quoted);
            if (!cdcd_slice_eq(got, cdcd_slice_str(want)))
                fail_msg("text %zu: got %.*s, want %s", i, (int)got.len, got.ptr, want);
        }
    }
    cdcd_arena_free(&a);
}

/* One special byte at every place of texts of every length around the vector size; the rest must
 * come out as json.c has it. */
static void every_place_and_length(void **state)
{
    (void)state;
    static const char special[] = {'"', '\\', '\n', 'x'};
    struct cdcd_arena a;
    cdcd_arena_init(&a, 128);
    for (size_t n = 0; n <= 70; n++) {
        char text[70];
        for (size_t at = 0; at <= n; at++) {
            for (size_t k = 0; k < sizeof(special); k++) {
                memset(text, 'a' + (int)(n % 26), n);
                if (at < n)
                    text[at] = special[k];
                struct cdcd_slice got = text_of(&a, text, n, false);
                struct cdcd_writer w;
                cdcd_writer_begin(&w, &a);
                cdcd_json_string(&w, text, n);
                struct cdcd_slice want = cdcd_writer_end(&w);
                assert_int_equal(got.len + 2, want.len);
                assert_memory_equal(got.ptr, want.ptr + 1, got.len);
            }
        }
        cdcd_arena_reset(&a, 0);
    }
    cdcd_arena_free(&a);
}

/* Texts that grow the most, over many enlargements of the arena. */
static void long_texts(void **state)
{
    (void)state;
    static const struct {
        const char *in, *want;
    } parts[] = {
        {"\x01", "\\\\u0001"},
        {"\"", "\\\\\\\""},
        {"\xf0\x9f\x98\x80", "\\\\ud83d\\\\ude00"},
        {"x", "x"},
        {"\xe6\x97\xa5", "\xe6\x97\xa5"},
    };
    const size_t count = 100000;
    for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
        struct cdcd_arena a;
        struct cdcd_buf in, want;
        cdcd_arena_init(&a, 64);
        cdcd_buf_init(&in, 0);
        cdcd_buf_init(&want, 0);
        for (size_t k = 0; k < count; k++) {
            cdcd_buf_adds(&in, parts[i].in);
            cdcd_buf_adds(&want, parts[i].want);
        }
        assert_true(cdcd_slice_eq(text_of(&a, in.ptr, in.len, true), cdcd_buf_slice(&want)));
        cdcd_buf_free(&in);
        cdcd_buf_free(&want);
        cdcd_arena_free(&a);
    }
}

/* Which characters stand, against a number and a hash made from the Unicode Character Database. */
static void the_table_of_characters(void **state)
{
    (void)state;
    unsigned raw = 0;
    uint64_t hash = 0xcbf29ce484222325u;
    for (unsigned c = 0x80; c < 0x10000; c++) {
        if (c >= 0xd800 && c < 0xe000)
            continue;
        unsigned bit = cdcd_bson_raw_words[cdcd_bson_raw_index[c >> 6]] >> (c & 63) & 1;
        raw += bit;
        hash = (hash ^ bit) * 0x100000001b3u;
    }
    assert_int_equal(raw, 53855);
    assert_true(hash == 0xa025539a61bdecf4u);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(doubles_as_java_has_them),
        cmocka_unit_test(random_doubles_read_back_from_the_fewest_digits),
        cmocka_unit_test(decimals_of_every_kind),
        cmocka_unit_test(times),
        cmocka_unit_test(strings_are_escaped),
        cmocka_unit_test(every_place_and_length),
        cmocka_unit_test(long_texts),
        cmocka_unit_test(the_table_of_characters),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
