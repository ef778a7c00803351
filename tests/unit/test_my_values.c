/*
 * Single values of the MySQL plugin: from the log's bytes and from a query's text, to the same
 * cells; what ends too early or has no meaning is an error.
 */
#include "value_int.h"

#include <setjmp.h>

#include <cmocka.h>

#include "my_hex.h"

static const char *const labels[] = {"a", "b", "ç", "d,e", NULL};

struct sample {
    uint8_t type;
    uint16_t meta;
    bool unsigned_;
    uint8_t special;
    const char *hex;
    const char *cell;
    const char *text; /* of a query; NULL: not tried */
};

#define DEC(p, s) ((p) | (s) << 8)

static const struct sample numbers[] = {
    {MY_TINY, 0, false, 0, "fb", "int:-5", "-5"},
    {MY_TINY, 0, true, 0, "c8", "int:200", "200"},
    {MY_SHORT, 0, false, 0, "d4fe", "int:-300", "-300"},
    {MY_SHORT, 0, true, 0, "ffff", "int:65535", "65535"},
    {MY_INT24, 0, false, 0, "90eefe", "int:-70000", "-70000"},
    {MY_INT24, 0, true, 0, "405489", "int:9000000", "9000000"},
    {MY_LONG, 0, false, 0, "00000080", "int:-2147483648", "-2147483648"},
    {MY_LONG, 0, true, 0, "2a000000", "int:42", "00000042"},
    {MY_LONG, 0, true, 0, "ffffffff", "int:4294967295", "4294967295"},
    {MY_LONGLONG, 0, false, 0, "0000000000000080", "int:-9223372036854775808",
     "-9223372036854775808"},
    {MY_LONGLONG, 0, true, 0, "ffffffffffffffff", "uint:18446744073709551615",
     "18446744073709551615"},
    {MY_LONGLONG, 0, true, 0, "0500000000000000", "uint:5", "5"},
    {MY_YEAR, 0, true, 0, "00", "int:0", "0000"},
    {MY_YEAR, 0, true, 0, "01", "int:1901", "1901"},
    {MY_YEAR, 0, true, 0, "ff", "int:2155", "2155"},
    {MY_FLOAT, 4, false, 0, "cdcc8c3f", "float:1.1", "1.100000023841858"},
    {MY_FLOAT, 4, false, 0, "66e6f642", "float:123.45", "123.44999694824219"},
    {MY_FLOAT, 4, false, 0, "ffff7f7f", "float:3.4028235e38", "3.4028234663852886e38"},
    {MY_FLOAT, 4, false, 0, "01000000", "float:1e-45", "1.401298464324817e-45"},
    {MY_FLOAT, 4, false, 0, "00000080", "float:-0", "-0"},
    {MY_FLOAT, 4, false, 0, "0000804b", "float:16777216", "16777216"},
    {MY_DOUBLE, 8, false, 0, "9a9999999999b93f", "float:0.1", "0.1"},
    {MY_DOUBLE, 8, false, 0, "0000000000000080", "float:-0", "-0"},
    {MY_DOUBLE, 8, false, 0, "0000000000000000", "float:0", "0"},
    {MY_DOUBLE, 8, false, 0, "ffffffffffffef7f", "float:1.7976931348623157e308",
     "1.7976931348623157e308"},
    {MY_DOUBLE, 8, false, 0, "0100000000000000", "float:5e-324", "5e-324"},
    {MY_DOUBLE, 8, false, 0, "333333333333d33f", "float:0.3", "0.3"},
    {MY_DOUBLE, 8, false, 0, "343333333333d33f", "float:0.30000000000000004",
     "0.30000000000000004"},
    {MY_NEWDECIMAL, DEC(10, 2), false, 0, "8000303943", "decimal:12345.67", "12345.67"},
    {MY_NEWDECIMAL, DEC(10, 2), false, 0, "8000303943", "decimal:12345.67", "00012345.67"},
    {MY_NEWDECIMAL, DEC(10, 2), false, 0, "7a0a1f009c", "decimal:-99999999.99", "-99999999.99"},
    {MY_NEWDECIMAL, DEC(10, 2), false, 0, "8000000000", "decimal:0.00", "-0.00"},
    {MY_NEWDECIMAL, DEC(10, 2), false, 0, "7fffffffff", "decimal:0.00", "0.00"},
    {MY_NEWDECIMAL, DEC(5, 5), false, 0, "8001 01", "decimal:0.00257", "0.00257"},
    {MY_NEWDECIMAL, DEC(5, 0), false, 0, "7e7960", "decimal:-99999", "-99999"},
    {MY_NEWDECIMAL, DEC(18, 18), false, 0, "80000000 0001e208", "decimal:0.000000000000123400",
     "0.000000000000123400"},
    {MY_BIT, 0x0001, false, MY_BOOL, "01", "bool:1", "\x01"},
    {MY_BIT, 0x0005, false, 0, "15", "bytes:15", "\x15"},
    {MY_BIT, 0x0105, false, 0, "1555", "bytes:5515", "\x15\x55"},
    {MY_BIT, 0x0800, false, 0, "0102030405060708", "bytes:0807060504030201",
     "\x01\x02\x03\x04\x05\x06\x07\x08"},
};

static const struct sample times[] = {
    {MY_DATE, 0, false, 0, "5dd00f", "date:19782", "2024-02-29"},
    {MY_DATE, 0, false, 0, "000000", "text:0000-00-00", "0000-00-00"},
    {MY_DATE, 0, false, 0, "5ed00f", "text:2024-02-30", "2024-02-30"},
    {MY_DATE, 0, false, 0, "210000", "date:-719528", "0000-01-01"},
    {MY_DATE, 0, false, 0, "9f1f4e", "date:2932896", "9999-12-31"},
    {MY_TIME2, 0, false, 0, "80d38f", "time:47655000000", "13:14:15"},
    {MY_TIME2, 0, false, 0, "b46efb", "time:3020399000000", "838:59:59"},
    {MY_TIME2, 6, false, 0, "4b9105f0bdc1", "time:-3020398999999", "-838:59:58.999999"},
    {MY_TIME2, 6, false, 0, "7fffffffffff", "time:-1", "-00:00:00.000001"},
    {MY_TIME2, 1, false, 0, "7ffffef6", "time:-1100000", "-00:00:01.1"},
    {MY_TIME2, 2, false, 0, "7fffffff", "time:-10000", "-00:00:00.01"},
    {MY_TIME2, 4, false, 0, "7ff0000000", "time:-3600000000", "-01:00:00.0000"},
    {MY_TIME2, 4, false, 0, "7fffffffff", "time:-100", "-00:00:00.0001"},
    {MY_TIME2, 0, false, 0, "800000", "time:0", "00:00:00"},
    {MY_TIME, 0, false, 0, "a7f57f", "time:3020399000000", "838:59:59"},
    {MY_TIME, 0, false, 0, "590a80", "time:-3020399000000", "-838:59:59"},
    {MY_DATETIME2, 0, false, 0, "99b2bad38f", "ts:1709212455.000000000", "2024-02-29 13:14:15"},
    {MY_DATETIME2, 3, false, 0, "99b2bad38f04ce", "ts:1709212455.123000000",
     "2024-02-29 13:14:15.123"},
    {MY_DATETIME2, 6, false, 0, "fef3ff7efb0f423f", "ts:253402300799.999999000",
     "9999-12-31 23:59:59.999999"},
    {MY_DATETIME2, 2, false, 0, "8cb242000001", "ts:-30610224000.010000000",
     "1000-01-01 00:00:00.01"},
    {MY_DATETIME2, 3, false, 0, "80000000000000", "text:0000-00-00 00:00:00.000",
     "0000-00-00 00:00:00.000"},
    {MY_DATETIME2, 1, false, 0, "99b2bc108332", "text:2024-02-30 01:02:03.5",
     "2024-02-30 01:02:03.5"},
    {MY_DATETIME2, 6, false, 0, "8000420000000001", "ts:-62167219200.000001000",
     "0000-01-01 00:00:00.000001"},
    {MY_DATETIME, 0, false, 0, "97e4aa8b68120000", "ts:1709212455.000000000",
     "2024-02-29 13:14:15"},
    {MY_DATETIME, 0, false, 0, "0000000000000000", "text:0000-00-00 00:00:00",
     "0000-00-00 00:00:00"},
    {MY_TIMESTAMP2, 0, false, 0, "65e08327", "ts:1709212455.000000000", "2024-02-29 13:14:15"},
    {MY_TIMESTAMP2, 0, false, 0, "967a7600", "ts:2524608000.000000000", "2050-01-01 00:00:00"},
    {MY_TIMESTAMP2, 6, false, 0, "65e0832701e240", "ts:1709212455.123456000",
     "2024-02-29 13:14:15.123456"},
    {MY_TIMESTAMP2, 2, false, 0, "0000000000", "text:0000-00-00 00:00:00.00",
     "0000-00-00 00:00:00.00"},
    {MY_TIMESTAMP, 0, false, 0, "2783e065", "ts:1709212455.000000000", "2024-02-29 13:14:15"},
};

static const struct sample strings[] = {
    {MY_VARCHAR, 20, false, 0, "026162", "text:ab", "ab"},
    {MY_VARCHAR, 300, false, 0, "02006162", "text:ab", "ab"},
    {MY_VARCHAR, 20, false, 0, "00", "text:", ""},
    {MY_VARCHAR, 20, false, MY_BINARY, "026100", "bytes:6100", NULL},
    {MY_STRING, 40, false, 0, "022078", "text: x", " x"},
    {MY_STRING, 1000, false, 0, "02002078", "text: x", " x"},
    {MY_STRING, 4, false, MY_BINARY, "020001", "bytes:00010000", NULL},
    {MY_STRING, 16, false, MY_UUID, "0e 123e4567e89b12d3a45642665544",
     "text:123e4567-e89b-12d3-a456-426655440000", "123e4567-e89b-12d3-a456-426655440000"},
    {MY_STRING, 16, false, MY_UUID, "00", "text:00000000-0000-0000-0000-000000000000", NULL},
    {MY_STRING, 16, false, MY_INET6, "10 20010db8000000000000ff0000428329",
     "text:2001:db8::ff00:42:8329", NULL},
    {MY_STRING, 16, false, MY_INET6, "10 00000000000000000000ffffc0000201", "text:::ffff:192.0.2.1",
     NULL},
    {MY_STRING, 16, false, MY_INET6, "10 000000000000000000000000c0000201", "text:::192.0.2.1",
     NULL},
    {MY_STRING, 16, false, MY_INET6, "00", "text:::", NULL},
    {MY_STRING, 16, false, MY_INET6, "10 00000000000000000000000000000001", "text:::1", NULL},
    {MY_STRING, 16, false, MY_INET6, "02 2001", "text:2001::", NULL},
    {MY_STRING, 16, false, MY_INET6, "10 00010000000200030000000000040005", "text:1:0:2:3::4:5",
     NULL},
    {MY_STRING, 4, false, MY_INET4, "04 c0a800ff", "text:192.168.0.255", NULL},
    {MY_STRING, 4, false, MY_INET4, "00", "text:0.0.0.0", NULL},
    {MY_BLOB, 2, false, MY_BINARY, "0500 deadbeef00", "bytes:deadbeef00", NULL},
    {MY_BLOB, 1, false, 0, "02 7474", "text:tt", "tt"},
    {MY_BLOB, 4, false, 0, "02000000 6c74", "text:lt", "lt"},
    {MY_ENUM, 1, false, 0, "03", "text:ç", "ç"},
    {MY_ENUM, 2, false, 0, "0400", "text:d,e", "d,e"},
    {MY_ENUM, 1, false, 0, "00", "text:", ""},
    {MY_SET, 1, false, 0, "05", "text:a,ç", "a,ç"},
    {MY_SET, 8, false, 0, "0000000000000000", "text:", ""},
    {MY_VARCHAR_COMPRESSED, 8001, false, 0, "0600 0073686f7274", "text:short", "short"},
    {MY_VARCHAR_COMPRESSED, 200, false, 0, "00", "text:", ""},
    {MY_VECTOR, 4, false, 0, "10000000 0000803f 00002040 000040c0 cdcccc3d", "list:0:1,2.5,-3,0.1",
     NULL},
    {MY_GEOMETRY, 4, false, MY_POINT,
     "19000000 00000000 01 01000000 000000000000f83f 00000000000002c0", "list:0:1.5,-2.25", NULL},
    {MY_GEOMETRY, 4, false, MY_POINT,
     "19000000 e6100000 01 01000000 000000000000f83f 00000000000002c0", "list:4326:1.5,-2.25",
     NULL},
    {MY_GEOMETRY, 4, false, 0, "0d000000 e6100000 01 07000000 00000000",
     "geom:4326:010700000000000000", NULL},
    {MY_JSON, 4, false, 0, "03000000 040100", "text:true", "true"},
};

static struct my_column_decoder decoder_of(const struct sample *s)
{
    return (struct my_column_decoder){.type = s->type,
                                      .meta = s->meta,
                                      .unsigned_ = s->unsigned_,
                                      .special = s->special,
                                      .labels = labels,
                                      .nlabels = 4,
                                      .name = "c"};
}

static void check_log(const struct sample *s, struct cdcd_arena *a)
{
    struct my_column_decoder d = decoder_of(s);
    struct cdcd_error err = {0};
    struct cdcd_cell cell;
    char text[256];
    size_t n;
    uint8_t *bytes = from_hex(s->hex, &n);
    const uint8_t *p = bytes;

    if (my_value_read(&d, &p, bytes + n, a, &cell, &err) != CDCD_OK)
        fail_msg("%s: %s", s->hex, err.text);
    assert_ptr_equal(p, bytes + n);
    assert_string_equal(cell_text(&cell, text, sizeof text), s->cell);
    p = bytes;
    assert_int_equal(my_value_skip(&d, &p, bytes + n, &err), CDCD_OK);
    assert_ptr_equal(p, bytes + n);
    free(bytes);

    /* Every shorter form is an error, and reads nothing behind its end. */
    for (size_t cut = 0; cut < n; cut++) {
        uint8_t *part = malloc(cut + 1), *fit = realloc(part, cut ? cut : 1);
        size_t whole;
        uint8_t *again = from_hex(s->hex, &whole);
        memcpy(fit, again, cut);
        free(again);
        p = fit;
        assert_int_equal(my_value_read(&d, &p, fit + cut, a, &cell, &err), CDCD_ERROR);
        assert_int_equal(err.class, CDCD_ERR_FATAL);
        free(fit);
    }
}

static void check_text(const struct sample *s, struct cdcd_arena *a)
{
    struct my_column_decoder d = decoder_of(s);
    struct cdcd_error err = {0};
    struct cdcd_cell cell;
    char text[256];
    size_t n = strlen(s->text);

    if (s->type == MY_BIT) /* bytes, some of which may be zero */
        n = (s->meta >> 8) + ((s->meta & 0xff) != 0);
    if (my_value_text(&d, NULL, s->text, n, a, &cell, &err) != CDCD_OK)
        fail_msg("%s: %s", s->text, err.text);
    assert_string_equal(cell_text(&cell, text, sizeof text), s->cell);
}

static void check_all(const struct sample *list, size_t n)
{
    struct cdcd_arena a;

    cdcd_arena_init(&a, 4096);
    for (size_t i = 0; i < n; i++) {
        check_log(&list[i], &a);
        if (list[i].text)
            check_text(&list[i], &a);
        cdcd_arena_reset(&a, 4096);
    }
    cdcd_arena_free(&a);
}

static void test_numbers(void **state)
{
    (void)state;
    check_all(numbers, sizeof numbers / sizeof *numbers);
}

static void test_times(void **state)
{
    (void)state;
    check_all(times, sizeof times / sizeof *times);
}

static void test_strings(void **state)
{
    (void)state;
    check_all(strings, sizeof strings / sizeof *strings);
}

/* 65 digits, the most that there are: 35 before the point and 30 behind. */
static void test_wide_decimals(void **state)
{
    uint8_t bytes[30];
    char out[MY_DECIMAL_TEXT];
    size_t n;

    (void)state;
    assert_int_equal(my_decimal_size(65, 30), 30);
    memset(bytes, 0, sizeof bytes);
    bytes[0] = 0x80;
    bytes[29] = 1; /* the last three digits */
    n = my_decimal_text(bytes, 65, 30, out);
    out[n] = '\0';
    assert_string_equal(out, "0.000000000000000000000000000001");
    for (size_t i = 0; i < sizeof bytes; i++)
        bytes[i] = (uint8_t)~bytes[i];
    n = my_decimal_text(bytes, 65, 30, out);
    out[n] = '\0';
    assert_string_equal(out, "-0.000000000000000000000000000001");
}

/* Whatever the text, it reads back as the same number, and no shorter one does. */
static void test_shortest(void **state)
{
    uint64_t seed = 88172645463325252u;
    struct my_digits d;
    char text[64];

    (void)state;
    for (int i = 0; i < 200000; i++) {
        double v;
        seed ^= seed << 13;
        seed ^= seed >> 7;
        seed ^= seed << 17;
        uint64_t bits = i % 2 ? seed : seed & UINT64_C(0xfffffff000000000);
        memcpy(&v, &bits, sizeof v);
        if (i % 3 == 0)
            v = (double)(int64_t)(seed % 100000000) / 100;
        if (!(v - v == 0))
            continue;
        size_t n = my_double_text(v, text);
        text[n] = '\0';
        double back = strtod(text, NULL);
        assert_memory_equal(&back, &v, sizeof v);
        my_shortest(v, false, &d);
        snprintf(text, sizeof text, "%.*e", d.n - 2 > 0 ? d.n - 2 : 0, v);
        if (d.n > 1 && strtod(text, NULL) == v)
            fail_msg("%.17g has the shorter text %s", v, text);
        float f = (float)v;
        if (!(f - f == 0))
            continue;
        my_shortest(f, true, &d);
        snprintf(text, sizeof text, "%s0.%.*se%d", d.negative ? "-" : "", d.n, d.digits,
                 d.exponent);
        assert_true(strtof(text, NULL) == f);
    }
}

static void test_compressed(void **state)
{
    static const struct {
        const char *hex;
        size_t len;
        char fill;
    } list[] = {
        {"1300 81c8789c4bcecf2d481e0618000b29542f", 200, 0}, /* "comp" 50 times, with a header */
        {"0a00 8a012caba81805c40200", 300, 'x'},             /* without one */
    };
    struct my_column_decoder d = {.type = MY_BLOB_COMPRESSED, .meta = 2, .name = "c"};
    struct cdcd_error err = {0};
    struct cdcd_arena a;

    (void)state;
    cdcd_arena_init(&a, 4096);
    for (size_t i = 0; i < sizeof list / sizeof *list; i++) {
        struct cdcd_cell cell;
        size_t n;
        uint8_t *bytes = from_hex(list[i].hex, &n);
        const uint8_t *p = bytes;
        bytes[0] = (uint8_t)(n - 2);
        if (my_value_read(&d, &p, bytes + n, &a, &cell, &err) != CDCD_OK)
            fail_msg("%s", err.text);
        assert_int_equal(cell.kind, CDCD_C_TEXT);
        assert_int_equal(cell.len, list[i].len);
        for (uint32_t k = 0; k < cell.len; k++)
            assert_int_equal(cell.ptr[k], list[i].fill ? list[i].fill : "comp"[k % 4]);
        bytes[n - 2] ^= 0xff; /* damaged */
        p = bytes;
        assert_int_equal(my_value_read(&d, &p, bytes + n, &a, &cell, &err), CDCD_ERROR);
        assert_int_equal(err.class, CDCD_ERR_DATA);
        assert_non_null(strstr(err.text, "column c"));
        free(bytes);
    }
    cdcd_arena_free(&a);
}

static void test_no_meaning(void **state)
{
    static const struct {
        struct sample s;
        enum cdcd_error_class class;
        const char *says;
    } list[] = {
        {{MY_ENUM, 1, false, 0, "05", NULL, NULL}, CDCD_ERR_DATA, "value 5 of an ENUM of 4"},
        {{MY_SET, 1, false, 0, "10", NULL, NULL}, CDCD_ERR_DATA, "the 4 of its SET"},
        {{MY_VECTOR, 4, false, 0, "03000000 000000", NULL, NULL}, CDCD_ERR_DATA, "no vector"},
        {{MY_GEOMETRY, 4, false, 0, "03000000 000000", NULL, NULL}, CDCD_ERR_DATA, "no geometry"},
        {{MY_GEOMETRY, 4, false, MY_POINT, "0d000000 e6100000 01 07000000 00000000", NULL, NULL},
         CDCD_ERR_DATA,
         "no point"},
        {{MY_STRING, 16, false, MY_UUID, "11 0000000000000000000000000000000000", NULL, NULL},
         CDCD_ERR_DATA,
         "more than 16"},
        {{MY_JSON, 4, false, 0, "02000000 0dff", NULL, NULL}, CDCD_ERR_DATA, "no binary JSON"},
        {{MY_DECIMAL, 0, false, 0, "00", NULL, NULL}, CDCD_ERR_FATAL, "not supported"},
        {{MY_NEWDECIMAL, DEC(5, 6), false, 0, "000000000000", NULL, NULL},
         CDCD_ERR_FATAL,
         "not supported"},
        {{MY_TIME2, 7, false, 0, "00000000000000", NULL, NULL}, CDCD_ERR_FATAL, "not supported"},
        {{99, 0, false, 0, "00", NULL, NULL}, CDCD_ERR_FATAL, "type 99"},
    };
    struct cdcd_arena a;

    (void)state;
    cdcd_arena_init(&a, 4096);
    for (size_t i = 0; i < sizeof list / sizeof *list; i++) {
        struct my_column_decoder d = decoder_of(&list[i].s);
        struct cdcd_error err = {0};
        struct cdcd_cell cell;
        size_t n;
        uint8_t *bytes = from_hex(list[i].s.hex, &n);
        const uint8_t *p = bytes;
        assert_int_equal(my_value_read(&d, &p, bytes + n, &a, &cell, &err), CDCD_ERROR);
        if (!strstr(err.text, list[i].says))
            fail_msg("\"%s\" does not say \"%s\"", err.text, list[i].says);
        assert_int_equal(err.class, list[i].class);
        free(bytes);
    }
    cdcd_arena_free(&a);
}

static void test_bad_text(void **state)
{
    static const struct sample list[] = {
        {MY_LONG, 0, false, 0, NULL, NULL, "12x"},
        {MY_LONG, 0, false, 0, NULL, NULL, ""},
        {MY_LONG, 0, false, 0, NULL, NULL, "-"},
        {MY_LONGLONG, 0, false, 0, NULL, NULL, "9223372036854775808"},
        {MY_LONGLONG, 0, true, 0, NULL, NULL, "18446744073709551616"},
        {MY_LONGLONG, 0, true, 0, NULL, NULL, "-1"},
        {MY_DOUBLE, 8, false, 0, NULL, NULL, "1.5.5"},
        {MY_NEWDECIMAL, DEC(5, 2), false, 0, NULL, NULL, "1."},
        {MY_NEWDECIMAL, DEC(5, 2), false, 0, NULL, NULL, "1e5"},
        {MY_DATE, 0, false, 0, NULL, NULL, "2024-2-29"},
        {MY_TIME2, 0, false, 0, NULL, NULL, "13:14"},
        {MY_DATETIME2, 0, false, 0, NULL, NULL, "2024-02-29T13:14:15"},
        {MY_TIMESTAMP2, 6, false, 0, NULL, NULL, "2024-02-29 13:14:15.1234567"},
        {MY_JSON, 4, false, 0, NULL, NULL, "{\"a"},
    };
    struct cdcd_arena a;

    (void)state;
    cdcd_arena_init(&a, 4096);
    for (size_t i = 0; i < sizeof list / sizeof *list; i++) {
        struct my_column_decoder d = decoder_of(&list[i]);
        struct cdcd_error err = {0};
        struct cdcd_cell cell;
        if (my_value_text(&d, NULL, list[i].text, strlen(list[i].text), &a, &cell, &err) == CDCD_OK)
            fail_msg("%s was taken", list[i].text);
        assert_int_equal(err.class, CDCD_ERR_DATA);
    }
    cdcd_arena_free(&a);
}

static void test_days(void **state)
{
    int64_t day, last = 0;

    (void)state;
    assert_true(my_days(1970, 1, 1, &day));
    assert_int_equal(day, 0);
    assert_false(my_days(2023, 2, 29, &day));
    assert_false(my_days(1900, 2, 29, &day));
    assert_true(my_days(2000, 2, 29, &day));
    assert_false(my_days(2024, 13, 1, &day));
    assert_false(my_days(2024, 0, 1, &day));
    assert_false(my_days(2024, 4, 31, &day));
    /* Each day follows the one before. */
    assert_true(my_days(0, 1, 1, &last));
    for (int y = 0; y < 2500; y++) {
        for (int m = 1; m <= 12; m++) {
            for (int d = 1; d <= 31; d++) {
                if (!my_days(y, m, d, &day) || (y == 0 && m == 1 && d == 1))
                    continue;
                assert_int_equal(day, last + 1);
                last = day;
            }
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_numbers),    cmocka_unit_test(test_times),
        cmocka_unit_test(test_strings),    cmocka_unit_test(test_wide_decimals),
        cmocka_unit_test(test_shortest),   cmocka_unit_test(test_compressed),
        cmocka_unit_test(test_no_meaning), cmocka_unit_test(test_bad_text),
        cmocka_unit_test(test_days),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
