/* BSON as JSON text: every type in every form, and the text inside a string. */
#include "bson_golden.h"
#include "bson_test.h"

#include <cdcd/json.h>

#include <jansson.h>

#define FORMS 4

static char *json_of(struct cdcd_slice doc, const struct cdcd_bson_style *style)
{
    struct cdcd_arena a;
    struct cdcd_writer w;
    const char *why = NULL;
    cdcd_arena_init(&a, 64);
    cdcd_writer_begin(&w, &a);
    if (!cdcd_bson_json(&w, doc, style, &why))
        fail_msg("refused: %s", why);
    struct cdcd_slice text = cdcd_writer_end(&w);
    char *copy = cdcd_xstrndup(text.ptr, text.len);
    cdcd_arena_free(&a);
    return copy;
}

struct value_case {
    uint8_t type;
    const char *value;
    size_t n;
    const char *want[FORMS]; /* NULL: as the one before */
};

static const struct value_case values[] = {
    {CDCD_BSON_STRING, BYTES("\4\0\0\0a\"b\0"), {"\"a\\\"b\""}},
    {CDCD_BSON_DOCUMENT, BYTES("\5\0\0\0\0"), {"{}"}},
    {CDCD_BSON_ARRAY, BYTES("\5\0\0\0\0"), {"[]"}},
    {CDCD_BSON_ARRAY,
     BYTES("\x0a\0\0\0\x0a"
           "7\0\x0a\0\0"),
     {"[null,null]"}},
    {CDCD_BSON_UNDEFINED, BYTES(""), {"{\"$undefined\": true}", NULL, NULL, "null"}},
    {CDCD_BSON_BOOL, BYTES("\1"), {"true"}},
    {CDCD_BSON_BOOL, BYTES("\0"), {"false"}},
    {CDCD_BSON_NULL, BYTES(""), {"null"}},
    {CDCD_BSON_OID,
     BYTES("\x65\xe0\xa1\xb2\xc3\xd4\xe5\xf6\x01\x02\x03\x04"),
     {"{\"$oid\": \"65e0a1b2c3d4e5f601020304\"}", NULL, NULL, "\"65e0a1b2c3d4e5f601020304\""}},
    {CDCD_BSON_SYMBOL, BYTES("\2\0\0\0s\0"), {"{\"$symbol\": \"s\"}", NULL, NULL, "\"s\""}},
    {CDCD_BSON_MINKEY, BYTES(""), {"{\"$minKey\": 1}", NULL, NULL, "\"MinKey\""}},
    {CDCD_BSON_MAXKEY, BYTES(""), {"{\"$maxKey\": 1}", NULL, NULL, "\"MaxKey\""}},
    {CDCD_BSON_TIMESTAMP,
     BYTES("\7\0\0\0\xff\xff\xff\xff"),
     {"{\"$timestamp\": {\"t\": 4294967295,\"i\": 7}}", NULL, NULL,
      "{\"t\": 4294967295,\"i\": 7}"}},
    /* numbers */
    {CDCD_BSON_INT32,
     BYTES("\0\0\0\x80"),
     {"-2147483648", "{\"$numberInt\": \"-2147483648\"}", "-2147483648", NULL}},
    {CDCD_BSON_INT64,
     BYTES("\xff\xff\xff\xff\xff\xff\xff\x7f"),
     {"{\"$numberLong\": \"9223372036854775807\"}", NULL, "9223372036854775807", NULL}},
    {CDCD_BSON_INT64,
     BYTES("\0\0\0\0\0\0\0\x80"),
     {"{\"$numberLong\": \"-9223372036854775808\"}", NULL, "-9223372036854775808", NULL}},
    {CDCD_BSON_DOUBLE,
     BYTES("\0\0\0\0\0\0\xf8\x3f"),
     {"1.5", "{\"$numberDouble\": \"1.5\"}", "1.5", NULL}},
    {CDCD_BSON_DOUBLE,
     BYTES("\0\0\0\0\0\0\xf8\x7f"),
     {"{\"$numberDouble\": \"NaN\"}", NULL, NULL, "null"}},
    {CDCD_BSON_DOUBLE,
     BYTES("\1\2\3\0\0\0\xf0\xff"), /* a NaN with a sign and a payload */
     {"{\"$numberDouble\": \"NaN\"}", NULL, NULL, "null"}},
    {CDCD_BSON_DOUBLE,
     BYTES("\0\0\0\0\0\0\xf0\x7f"),
     {"{\"$numberDouble\": \"Infinity\"}", NULL, NULL, "null"}},
    {CDCD_BSON_DOUBLE,
     BYTES("\0\0\0\0\0\0\xf0\xff"),
     {"{\"$numberDouble\": \"-Infinity\"}", NULL, NULL, "null"}},
    {CDCD_BSON_DECIMAL,
     BYTES("\x0f\0\0\0\0\0\0\0\0\0\0\0\0\0\x3e\xb0"),
     {"{\"$numberDecimal\": \"-1.5\"}", NULL, NULL, "\"-1.5\""}},
    /* dates: 1970, before it, the ends of the year 9999 and beyond, the ends of all */
    {CDCD_BSON_DATE,
     BYTES("\0\0\0\0\0\0\0\0"),
     {"{\"$date\": 0}", "{\"$date\": {\"$numberLong\": \"0\"}}",
      "{\"$date\": \"1970-01-01T00:00:00Z\"}", "\"1970-01-01T00:00:00Z\""}},
    {CDCD_BSON_DATE,
     BYTES("\xff\xff\xff\xff\xff\xff\xff\xff"),
     {"{\"$date\": -1}", "{\"$date\": {\"$numberLong\": \"-1\"}}", NULL,
      "\"1969-12-31T23:59:59.999Z\""}},
    {CDCD_BSON_DATE,
     BYTES("\xff\xdb\x1f\xd2\x77\xe6\0\0"),
     {"{\"$date\": 253402300799999}", "{\"$date\": {\"$numberLong\": \"253402300799999\"}}",
      "{\"$date\": \"9999-12-31T23:59:59.999Z\"}", "\"9999-12-31T23:59:59.999Z\""}},
    {CDCD_BSON_DATE,
     BYTES("\0\xdc\x1f\xd2\x77\xe6\0\0"),
     {"{\"$date\": 253402300800000}", "{\"$date\": {\"$numberLong\": \"253402300800000\"}}", NULL,
      "\"+10000-01-01T00:00:00Z\""}},
    {CDCD_BSON_DATE,
     BYTES("\xff\xff\xff\xff\xff\xff\xff\x7f"),
     {"{\"$date\": 9223372036854775807}", "{\"$date\": {\"$numberLong\": \"9223372036854775807\"}}",
      NULL, "\"+292278994-08-17T07:12:55.807Z\""}},
    {CDCD_BSON_DATE,
     BYTES("\0\0\0\0\0\0\0\x80"),
     {"{\"$date\": -9223372036854775808}",
      "{\"$date\": {\"$numberLong\": \"-9223372036854775808\"}}", NULL,
      "\"-292275055-05-16T16:47:04.192Z\""}},
    /* binary data; the old subtype has its length twice, and where that is wrong all bytes count */
    {CDCD_BSON_BINARY,
     BYTES("\3\0\0\0\0\0\xff\x10"),
     {"{\"$binary\": \"AP8Q\",\"$type\": \"00\"}",
      "{\"$binary\": {\"base64\": \"AP8Q\",\"subType\": \"00\"}}", NULL, "\"AP8Q\""}},
    {CDCD_BSON_BINARY,
     BYTES("\0\0\0\0\xab"),
     {"{\"$binary\": \"\",\"$type\": \"AB\"}",
      "{\"$binary\": {\"base64\": \"\",\"subType\": \"AB\"}}", NULL, "\"\""}},
    {CDCD_BSON_BINARY,
     BYTES("\6\0\0\0\2\2\0\0\0ab"),
     {"{\"$binary\": \"YWI=\",\"$type\": \"02\"}",
      "{\"$binary\": {\"base64\": \"YWI=\",\"subType\": \"02\"}}", NULL, "\"YWI=\""}},
    {CDCD_BSON_BINARY,
     BYTES("\6\0\0\0\2\3\0\0\0ab"),
     {"{\"$binary\": \"AwAAAGFi\",\"$type\": \"02\"}",
      "{\"$binary\": {\"base64\": \"AwAAAGFi\",\"subType\": \"02\"}}", NULL, "\"AwAAAGFi\""}},
    {CDCD_BSON_BINARY,
     BYTES("\2\0\0\0\2xx"),
     {"{\"$binary\": \"eHg=\",\"$type\": \"02\"}",
      "{\"$binary\": {\"base64\": \"eHg=\",\"subType\": \"02\"}}", NULL, "\"eHg=\""}},
    /* regular expressions, whose options the driver sorts */
    {CDCD_BSON_REGEX,
     BYTES("^a/b\"c$\0xmi\0"),
     {"{\"$regex\": \"^a/b\\\"c$\",\"$options\": \"imx\"}",
      "{\"$regularExpression\": {\"pattern\": \"^a/b\\\"c$\",\"options\": \"imx\"}}", NULL,
      "\"/^a/b\\\"c$/imx\""}},
    {CDCD_BSON_REGEX,
     BYTES("\0\0"),
     {"{\"$regex\": \"\",\"$options\": \"\"}",
      "{\"$regularExpression\": {\"pattern\": \"\",\"options\": \"\"}}", NULL, "\"//\""}},
    {CDCD_BSON_REGEX,
     BYTES("p\0x\xc3\xbci\0"),
     {"{\"$regex\": \"p\",\"$options\": \"x\xc3\xbci\"}",
      "{\"$regularExpression\": {\"pattern\": \"p\",\"options\": \"x\xc3\xbci\"}}", NULL,
      "\"/p/x\xc3\xbci\""}},
    /* code, and references of old */
    {CDCD_BSON_CODE, BYTES("\2\0\0\0x\0"), {"{\"$code\": \"x\"}", NULL, NULL, "\"x\""}},
    {CDCD_BSON_CODE_W_SCOPE,
     BYTES("\x16\0\0\0\2\0\0\0x\0\x0c\0\0\0\x10y\0\1\0\0\0\0"),
     {"{\"$code\": \"x\",\"$scope\": {\"y\": 1}}",
      "{\"$code\": \"x\",\"$scope\": {\"y\": {\"$numberInt\": \"1\"}}}",
      "{\"$code\": \"x\",\"$scope\": {\"y\": 1}}", NULL}},
    {CDCD_BSON_DBPOINTER,
     BYTES("\5\0\0\0db.c\0\0\1\2\3\4\5\6\7\x08\x09\x0a\x0b"),
     {"{\"$ref\": \"db.c\",\"$id\": {\"$oid\": \"000102030405060708090a0b\"}}",
      "{\"$dbPointer\": {\"$ref\": \"db.c\",\"$id\": {\"$oid\": \"000102030405060708090a0b\"}}}",
      "{\"$ref\": \"db.c\",\"$id\": {\"$oid\": \"000102030405060708090a0b\"}}",
      "{\"$ref\": \"db.c\",\"$id\": \"000102030405060708090a0b\"}"}},
};

static void every_type_in_every_form(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); i++) {
        const struct value_case *c = &values[i];
        const char *want = NULL;
        for (int form = 0; form < FORMS; form++) {
            struct cdcd_bson_style style = {.form = (enum cdcd_bson_form)form};
            struct cdcd_arena a;
            struct cdcd_writer w;
            const char *why = NULL;
            want = c->want[form] ? c->want[form] : want;
            cdcd_arena_init(&a, 64);
            cdcd_writer_begin(&w, &a);
            cdcd_writer_char(&w, '<'); /* what is there already stays */
            if (!cdcd_bson_json_value(&w, c->type, (struct cdcd_slice){c->value, c->n}, &style,
                                      &why))
                fail_msg("value %zu refused: %s", i, why);
            struct cdcd_slice got = cdcd_writer_end(&w);
            if (got.ptr[0] != '<' || got.len != strlen(want) + 1 ||
                memcmp(got.ptr + 1, want, got.len - 1) != 0)
                fail_msg("value %zu form %d: got %.*s, want %s", i, form, (int)got.len - 1,
                         got.ptr + 1, want);
            cdcd_arena_free(&a);
        }
    }
}

static void values_of_another_length_are_refused(void **state)
{
    (void)state;
    const struct cdcd_bson_style style = {.form = CDCD_BSON_RELAXED};
    for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); i++) {
        const struct value_case *c = &values[i];
        for (size_t n = 0; n <= c->n + 1; n++) {
            struct cdcd_arena a;
            struct cdcd_writer w;
            const char *why = NULL;
            char *part = malloc(n ? n : 1); /* exact, for the sanitizer */
            memcpy(part, c->value, n < c->n ? n : c->n);
            if (n > c->n)
                part[c->n] = 0;
            cdcd_arena_init(&a, 64);
            cdcd_writer_begin(&w, &a);
            bool ok = cdcd_bson_json_value(&w, c->type, (struct cdcd_slice){part, n}, &style, &why);
            if (ok != (n == c->n))
                fail_msg("value %zu with %zu bytes: %d", i, n, ok);
            if (!ok)
                assert_non_null(why);
            cdcd_arena_free(&a);
            free(part);
        }
    }
}

/* ---- style ---- */

static void separators(void **state)
{
    (void)state;
    struct cdcd_buf b;
    cdcd_buf_init(&b, 0);
    bson_frame(&b, BYTES("\x10"
                         "a\0\1\0\0\0"
                         "\x04"
                         "b\0\x13\0\0\0\x10"
                         "0\0\1\0\0\0\x10"
                         "1\0\2\0\0\0\0"
                         "\x05"
                         "c\0\0\0\0\0\4"
                         "\x11"
                         "d\0\1\0\0\0\2\0\0\0"));
    static const struct {
        struct cdcd_bson_style style;
        const char *want;
    } cases[] = {
        {{.form = CDCD_BSON_STRICT},
         "{\"a\": 1,\"b\": [1,2],\"c\": {\"$binary\": \"\",\"$type\": \"04\"},"
         "\"d\": {\"$timestamp\": {\"t\": 2,\"i\": 1}}}"},
        {{.form = CDCD_BSON_STRICT, .spaced = true},
         "{\"a\": 1, \"b\": [1, 2], \"c\": {\"$binary\": \"\", \"$type\": \"04\"}, "
         "\"d\": {\"$timestamp\": {\"t\": 2, \"i\": 1}}}"},
        {{.form = CDCD_BSON_RELAXED, .quoted = true},
         "{\\\"a\\\": 1,\\\"b\\\": [1,2],\\\"c\\\": {\\\"$binary\\\": {\\\"base64\\\": \\\"\\\","
         "\\\"subType\\\": \\\"04\\\"}},\\\"d\\\": {\\\"$timestamp\\\": {\\\"t\\\": 2,"
         "\\\"i\\\": 1}}}"},
        {{.form = CDCD_BSON_PLAIN, .spaced = true, .quoted = true},
         "{\\\"a\\\": 1, \\\"b\\\": [1, 2], \\\"c\\\": \\\"\\\", \\\"d\\\": {\\\"t\\\": 2, "
         "\\\"i\\\": 1}}"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        char *got = json_of(cdcd_buf_slice(&b), &cases[i].style);
        assert_string_equal(got, cases[i].want);
        free(got);
    }
    cdcd_buf_free(&b);
}

static void the_document_of_a_real_record(void **state)
{
    (void)state;
    struct cdcd_buf b;
    const struct cdcd_bson_style style = {.form = CDCD_BSON_STRICT, .quoted = true};
    cdcd_buf_init(&b, 0);
    bson_from_hex(&b, golden_hex);
    char *got = json_of(cdcd_buf_slice(&b), &style);
    assert_string_equal(got, golden_quoted);
    free(got);
    cdcd_buf_free(&b);
}

/* One pass that escapes twice is the same as two passes; and what comes out is JSON. */
static void check_random_document(struct cdcd_slice doc, const struct cdcd_bson_style *style,
                                  struct cdcd_arena *a)
{
    struct cdcd_bson_style inside = *style;
    struct cdcd_writer w;
    const char *why;
    inside.quoted = true;
    cdcd_writer_begin(&w, a);
    assert_true(cdcd_bson_json(&w, doc, style, &why));
    struct cdcd_slice plain = cdcd_writer_end(&w);
    cdcd_writer_begin(&w, a);
    cdcd_json_string(&w, plain.ptr, plain.len);
    struct cdcd_slice want = cdcd_writer_end(&w);
    cdcd_writer_begin(&w, a);
    cdcd_writer_char(&w, '"');
    assert_true(cdcd_bson_json(&w, doc, &inside, &why));
    cdcd_writer_char(&w, '"');
    struct cdcd_slice got = cdcd_writer_end(&w);
    if (!cdcd_slice_eq(got, want))
        fail_msg("got %.*s\nwant %.*s", (int)got.len, got.ptr, (int)want.len, want.ptr);

    json_error_t error;
    json_t *read = json_loadb(plain.ptr, plain.len, JSON_ALLOW_NUL, &error);
    if (!read)
        fail_msg("%s in %.*s", error.text, (int)plain.len, plain.ptr);
    json_decref(read);
}

static void random_documents_inside_a_string(void **state)
{
    (void)state;
    struct bson_random r = {7};
    struct cdcd_arena a;
    cdcd_arena_init(&a, 256);
    for (int i = 0; i < 5000; i++) {
        struct cdcd_buf b;
        cdcd_buf_init(&b, 0);
        bson_random_document(&r, &b, 0);
        char *exact = malloc(b.len); /* for the sanitizer */
        memcpy(exact, b.ptr, b.len);
        for (int form = 0; form < FORMS; form++) {
            struct cdcd_bson_style style = {.form = (enum cdcd_bson_form)form, .spaced = i & 1};
            check_random_document((struct cdcd_slice){exact, b.len}, &style, &a);
        }
        free(exact);
        cdcd_buf_free(&b);
        cdcd_arena_reset(&a, 0);
    }
    cdcd_arena_free(&a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_type_in_every_form),
        cmocka_unit_test(values_of_another_length_are_refused),
        cmocka_unit_test(separators),
        cmocka_unit_test(the_document_of_a_real_record),
        cmocka_unit_test(random_documents_inside_a_string),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
