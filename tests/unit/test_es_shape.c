/* Schemas -> forms -> plain values: every logical type, schemas in records and in their own topic,
 * and the records that Debezium itself wrote. */
#include "../support/es_test.h"

#define N(name)       "\"type\":\"string\",\"name\":\"" name "\",\"version\":1"
#define T(type, name) "\"type\":\"" type "\",\"name\":\"" name "\",\"version\":1"
#define DEC(scale)                                                                         \
    "\"type\":\"bytes\",\"name\":\"org.apache.kafka.connect.data.Decimal\",\"version\":1," \
    "\"parameters\":{\"scale\":\"" scale "\",\"connect.decimal.precision\":\"12\"}"
#define DATA "io.debezium.data."
#define TIME "io.debezium.time."

struct value {
    const char *schema, *in, *out;
};

static void check(const struct value *values, size_t n, int json_mode)
{
    struct et t;
    char expected[4096];
    et_init(&t);
    t.cfg.json_mode = json_mode;
    et_open(&t);
    for (size_t i = 0; i < n; i++) {
        const char *doc = et_column(&t, values[i].schema, values[i].in);
        if (!doc)
            fail_msg("%s: %s", values[i].schema, t.err.text);
        snprintf(expected, sizeof expected, "{\"v\":%s}", values[i].out);
        if (strcmp(doc, expected) != 0)
            fail_msg("\n%s of %s\n is %s\nnot %s", values[i].in, values[i].schema, doc, expected);
    }
    et_close(&t);
}
#define CHECK(values) check((values), sizeof(values) / sizeof((values)[0]), ES_JSON_TEXT)

static void numbers(void **state)
{
    (void)state;
    static const struct value values[] = {
        {"\"type\":\"int64\"", "-9223372036854775808", "-9223372036854775808"},
        {"\"type\":\"double\"", "1.0E300", "1.0E300"},
        {"\"type\":\"double\"", "\"NaN\"", "\"NaN\""},
        {"\"type\":\"boolean\"", "true", "true"},
        {T("int64", "cdcd.data.UnsignedLong"), "18446744073709551615", "18446744073709551615"},
        {T("int32", TIME "Year"), "2024", "2024"},
        {DEC("2"), "\"BOI=\"", "12.50"},
        {DEC("2"), "\"AA==\"", "0.00"},
        {DEC("2"), "\"/w==\"", "-0.01"},
        {DEC("2"), "\"gA==\"", "-1.28"},
        {DEC("2"), "\"AP8=\"", "2.55"},
        {DEC("0"), "\"AYaf\"", "99999"},
        {DEC("0"), "\"\"", "0"},
        {DEC("0"), "\"AP//////////\"", "18446744073709551615"},
        {DEC("0"), "\"gAAAAAAAAAA=\"", "-9223372036854775808"},
        {DEC("0"), "\"AQAAAAAAAAAAAAAAAAAAAAA=\"",
         "340282366920938463463374607431768211456"
         "" /* 2^128 */},
        {DEC("0"), "\"/wAAAAAAAAAAAAAAAAAAAAA=\"", "-340282366920938463463374607431768211456"},
        {DEC("30"), "\"DJ8snNBGdO3qQAAAAA==\"", "1.000000000000000000000000000000"},
        {DEC("40"), "\"AQ==\"", "0.0000000000000000000000000000000000000001"},
        {DEC("2"), "\"NaN\"", "\"NaN\""},
        {T("struct", DATA "VariableScaleDecimal"), "{\"scale\":9,\"value\":\"AbabS6zQXxU=\"}",
         "123456789.123456789"},
        {T("struct", DATA "VariableScaleDecimal"), "{\"scale\":-3,\"value\":\"Bw==\"}", "7000"},
        {T("struct", DATA "VariableScaleDecimal"), "{\"scale\":-3,\"value\":\"AA==\"}", "0"},
        {T("struct", DATA "VariableScaleDecimal"), "\"Infinity\"", "\"Infinity\""},
    };
    CHECK(values);
}

static void times(void **state)
{
    (void)state;
    static const struct value values[] = {
        {T("int32", TIME "Date"), "19782", "\"2024-02-29\""},
        {T("int32", TIME "Date"), "0", "\"1970-01-01\""},
        {T("int32", TIME "Date"), "-1", "\"1969-12-31\""},
        {T("int32", TIME "Date"), "-719162", "\"0001-01-01\""},
        {T("int32", TIME "Date"), "-719529", "\"-0001-12-31\""},
        {T("int32", TIME "Date"), "-719528", "\"0000-01-01\""},
        {T("int32", TIME "Date"), "2932896", "\"9999-12-31\""},
        {T("int32", TIME "Date"), "2932897", "\"+10000-01-01\""},
        {T("int32", TIME "Date"), "-2147472692", "\"infinity\""},
        {T("int32", TIME "Date"), "-2147472691", "\"-infinity\""},
        {T("int32", TIME "Date"), "\"0000-00-00\"", "\"0000-00-00\""},
        {T("int32", "org.apache.kafka.connect.data.Date"), "19782", "\"2024-02-29\""},
        {N(TIME "IsoDate"), "\"2024-02-29Z\"", "\"2024-02-29\""},
        {N(TIME "IsoDate"), "\"infinity\"", "\"infinity\""},
        {T("int32", TIME "Time"), "47655123", "\"13:14:15.123\""},
        {T("int32", TIME "Time"), "47655000", "\"13:14:15\""},
        {T("int32", "org.apache.kafka.connect.data.Time"), "0", "\"00:00:00\""},
        {T("int64", TIME "MicroTime"), "86400000000", "\"24:00:00\""},
        {T("int64", TIME "MicroTime"), "47655120000", "\"13:14:15.12\""},
        {T("int64", TIME "MicroTime"), "-3020399000001", "\"-838:59:59.000001\""},
        {T("int64", TIME "NanoTime"), "1", "\"00:00:00.000000001\""},
        {N(TIME "IsoTime"), "\"04:05:11.789Z\"", "\"04:05:11.789\""},
        {N(TIME "ZonedTime"), "\"10:44:15.123456Z\"", "\"10:44:15.123456Z\""},
        {T("int64", TIME "Timestamp"), "1709212455123", "\"2024-02-29T13:14:15.123\""},
        {T("int64", TIME "Timestamp"), "-1", "\"1969-12-31T23:59:59.999\""},
        {T("int64", TIME "Timestamp"), "9223372036825200", "\"infinity\""},
        {T("int64", "org.apache.kafka.connect.data.Timestamp"), "0", "\"1970-01-01T00:00:00\""},
        {T("int64", TIME "MicroTimestamp"), "1709212455123456", "\"2024-02-29T13:14:15.123456\""},
        {T("int64", TIME "MicroTimestamp"), "-2208988800000000", "\"1900-01-01T00:00:00\""},
        {T("int64", TIME "MicroTimestamp"), "9223372036825200000", "\"infinity\""},
        {T("int64", TIME "MicroTimestamp"), "-9223372036832400000", "\"-infinity\""},
        {T("int64", TIME "MicroTimestamp"), "9223371331199999999",
         "\"+294247-01-01T23:59:59.999999\""},
        {T("int64", TIME "NanoTimestamp"), "1709212455123456789",
         "\"2024-02-29T13:14:15.123456789\""},
        {T("int64", TIME "NanoTimestamp"), "-9223372036854775807",
         "\"1677-09-21T00:12:43.145224193\""},
        {T("int64", TIME "NanoTimestamp"), "-9223372036854775808", "\"-infinity\""},
        {N(TIME "IsoTimestamp"), "\"2019-07-09T02:28:57.123456Z\"",
         "\"2019-07-09T02:28:57.123456\""},
        {N(TIME "ZonedTimestamp"), "\"2024-02-29T11:14:15.123456Z\"",
         "\"2024-02-29T11:14:15.123456Z\""},
        {T("int64", TIME "MicroDuration"), "37091106789000", "\"PT10303H5M6.789S\""},
        {T("int64", TIME "MicroDuration"), "0", "\"PT0S\""},
        {T("int64", TIME "MicroDuration"), "-3661500000", "\"PT-1H-1M-1.5S\""},
        {T("int64", TIME "MicroDuration"), "-500000", "\"PT-0.5S\""},
        {T("int64", TIME "MicroDuration"), "7200000000", "\"PT2H\""},
        {T("int64", TIME "MicroDuration"), "9223372036854775807", "\"infinity\""},
        {T("int64", TIME "NanoDuration"), "1", "\"PT0.000000001S\""},
        {N(TIME "Interval"), "\"P1Y2M3DT4H5M6.78S\"", "\"P1Y2M3DT4H5M6.78S\""},
    };
    CHECK(values);
}

#define GEO(name)                                                                                 \
    "\"type\":\"struct\",\"name\":\"" DATA "geometry." name "\",\"fields\":[{\"type\":\"bytes\"," \
    "\"field\":\"wkb\"}]"

static void others(void **state)
{
    (void)state;
    static const struct value values[] = {
        {"\"type\":\"string\"", "\"a \\u00e9 \\\" \"", "\"a \\u00e9 \\\" \""},
        {"\"type\":\"bytes\"", "\"AP8Qqw==\"", "\"AP8Qqw==\""},
        {T("bytes", DATA "Bits"), "\"qg==\"", "\"qg==\""},
        {N(DATA "Json"), "\"{\\\"a\\\": 1.50}\"", "\"{\\\"a\\\": 1.50}\""},
        {N(DATA "Uuid"), "\"a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11\"",
         "\"a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11\""},
        {N(DATA "Enum"), "\"sun\"", "\"sun\""},
        {"\"type\":\"map\",\"keys\":{\"type\":\"string\"},\"values\":{\"type\":\"string\"}",
         "{\"a\":\"1\",\"b\":null}", "{\"a\":\"1\",\"b\":null}"},
        {T("struct", DATA "geometry.Point"),
         "{\"x\":1.5,\"y\":-2.25,\"wkb\":\"AQEAAAAAAAAAAAD4PwAAAAAAAALA\",\"srid\":null}",
         "{\"x\":1.5,\"y\":-2.25}"},
        {T("struct", DATA "geometry.Point"), "{\"x\":1.0,\"y\":2.0,\"wkb\":\"\",\"srid\":4326}",
         "{\"x\":1.0,\"y\":2.0,\"srid\":4326}"},
        {"\"type\":\"array\",\"items\":{\"type\":\"int32\",\"optional\":true}", "[1,2,null]",
         "[1,2,null]"},
        {"\"type\":\"array\",\"items\":{" DEC("2") "}", "[\"bg==\",\"AOE=\",[\"AA==\"],[]]",
         "[1.10,2.25,[0.00],[]]"},
        {"\"type\":\"array\",\"items\":{" T("int64", TIME "MicroTimestamp") "}",
         "[1709212455123456]", "[\"2024-02-29T13:14:15.123456\"]"},
        {"\"type\":\"array\",\"items\":{\"type\":\"float\"},\"name\":\"" DATA "FloatVector\"",
         "[1.0,2.5]", "[1.0,2.5]"},
    };
    CHECK(values);
}

/* Made with PostGIS 3.3: encode(ST_AsBinary(..)), encode(ST_AsEWKB(..)). */
static void geometries(void **state)
{
    (void)state;
    static const struct value values[] = {
        {GEO("Geometry"), "{\"wkb\":\"AQEAAAAAAAAAAADwPwAAAAAAAABA\",\"srid\":null}",
         "{\"wkt\":\"POINT (1 2)\"}"},
        {GEO("Geography"), "{\"wkb\":\"AQEAACDmEAAAAAAAAAAA8D8AAAAAAAAAQA==\",\"srid\":4326}",
         "{\"wkt\":\"POINT (1 2)\",\"srid\":4326}"},
        {GEO("Geometry"), "{\"wkb\":\"AQEAACDmEAAAAAAAAAAA8D8AAAAAAAAAQA==\",\"srid\":null}",
         "{\"wkt\":\"POINT (1 2)\",\"srid\":4326}"},
        {GEO("Geometry"), "{\"wkb\":\"AAAAAAE/uZmZmZmZmsAAAAAAAAAA\"}",
         "{\"wkt\":\"POINT (0.1 -2)\"}"},
        {GEO("Geometry"),
         "{\"wkb\":\"AQIAAAACAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAPA/AAAAAAAA8D8=\",\"srid\":null,"
         "\"extensions\":{\"type\":\"path\",\"closed\":\"false\"}}",
         "{\"wkt\":\"LINESTRING (0 0, 1 1)\"}"},
        {GEO("Geometry"), "{\"wkb\":\"AQcAAAAAAAAA\",\"srid\":null}",
         "{\"wkt\":\"GEOMETRYCOLLECTION EMPTY\"}"},
        {GEO("Geometry"), "{\"wkb\":\"AekDAAAAAAAAAADwPwAAAAAAAABAAAAAAAAACEA=\",\"srid\":null}",
         "{\"wkt\":\"POINT Z (1 2 3)\"}"},
        /* What is none is passed on. */
        {GEO("Geometry"), "{\"wkb\":\"AQEAAAAAAAAA\",\"srid\":1}",
         "{\"wkb\":\"AQEAAAAAAAAA\",\"srid\":1}"},
        {GEO("Geometry"), "{\"wkb\":\"/////w==\",\"srid\":1}", "{\"wkb\":\"/////w==\",\"srid\":1}"},
        {GEO("Geometry"), "{\"wkb\":5}", "{\"wkb\":5}"},
    };
    CHECK(values);
}

static void nested_json(void **state)
{
    (void)state;
    static const struct value values[] = {
        {N(DATA "Json"),
         "\"{\\\"a\\\": 1.50, \\\"i\\\":9007199254740993,\\\"s\\\":\\\"\\\\u00e9\\\"}\"",
         "{\"a\": 1.50, \"i\":9007199254740993,\"s\":\"\\u00e9\"}"},
        {N(DATA "Json"), "\" 5 \"", "5"},
        {N(DATA "Json"), "null", "null"},
        {"\"type\":\"array\",\"items\":{" N(DATA "Json") "}", "[\"{}\",null,\"[1]\"]",
         "[{},null,[1]]"},
    };
    struct et t;
    check(values, sizeof values / sizeof values[0], ES_JSON_NESTED);
    et_init(&t);
    t.cfg.json_mode = ES_JSON_NESTED;
    et_open(&t);
    assert_null(et_column(&t, N(DATA "Json"), "\"{oops\""));
    ET_FAILS(&t, CDCD_ERR_DATA, "column v: what should be JSON is none: {oops");
    et_close(&t);
}

/* A number of more than 1000 digits, which servers refuse, becomes a string. */
static void huge_numbers(void **state)
{
    (void)state;
    struct et t;
    char digits[1400], value[2000];
    et_init(&t);
    et_open(&t);
    /* 2^8000 - 1 has 2409 digits, 2^3000 904. */
    for (int n = 0; n < 2; n++) {
        size_t bytes = n ? 1001 : 376, groups = bytes / 3;
        size_t used = 0;
        memcpy(digits, "AP//", 4); /* 0 and ones */
        used = 4;
        for (size_t i = 1; i < groups; i++, used += 4)
            memcpy(digits + used, "////", 4);
        digits[used] = 0;
        snprintf(value, sizeof value, "\"%s\"", digits);
        const char *doc = et_column(&t, DEC("3"), value);
        assert_non_null(doc);
        assert_int_equal(doc[5] == '"', n == 1);
        assert_true(strlen(doc) > (n ? 2300 : 890));
    }
    et_close(&t);
}

static void what_does_not_fit(void **state)
{
    (void)state;
    static const struct value values[] = {
        {DEC("2"), "\"a\"", "no decimal in base64"},
        {DEC("2"), "\"a*==\"", "no decimal in base64"},
        {DEC("2"), "{}", "no decimal in base64"},
        {DEC("999999999"), "\"AQ==\"", "scale 999999999"},
        {T("struct", DATA "VariableScaleDecimal"), "{\"scale\":1}", "no decimal with its scale"},
        {T("struct", DATA "VariableScaleDecimal"), "{\"scale\":99999999,\"value\":\"AQ==\"}",
         "scale"},
        {T("int32", TIME "Date"), "1.5", "no whole number"},
        {T("int32", TIME "Date"), "99999999999", "days from 1970"},
        {T("int64", TIME "Timestamp"), "true", "no whole number"},
        {"\"type\":\"array\",\"items\":{" T("int32", TIME "Date") "}", "[[{}]]", "no whole number"},
    };
    struct et t;
    et_init(&t);
    et_open(&t);
    for (size_t i = 0; i < sizeof values / sizeof values[0]; i++) {
        assert_null(et_column(&t, values[i].schema, values[i].in));
        ET_FAILS(&t, CDCD_ERR_DATA, values[i].out, "column v:", "topic srv.public.t");
    }
    assert_null(et_column(&t, "\"type\":\"decimal128\"", "1"));
    ET_FAILS(&t, CDCD_ERR_DATA, "none of Kafka Connect's");
    assert_null(et_column(&t, "\"name\":\"x\"", "1"));
    ET_FAILS(&t, CDCD_ERR_DATA, "none of Kafka Connect's");
    et_close(&t);
}

/* ---- the topic of schemas ---- */

#define ROW_SCHEMA(columns)                                                         \
    "{\"topic\":\"srv.public.t\",\"key\":{\"type\":\"struct\",\"fields\":[" columns \
    "],\"optional\":"                                                               \
    "false},\"row\":{\"type\":\"struct\",\"fields\":[" columns "],\"optional\":true}}"
#define DAY "{\"type\":\"int32\",\"name\":\"io.debezium.time.Date\",\"field\":\"d\"}"

static void learned(void **state)
{
    (void)state;
    struct et t;
    et_init(&t);
    t.headers[1] = (struct cdcd_header){cdcd_slice_str("cdcd.schema"),
                                        cdcd_slice_str("00000000DEADBEEF"), false};
    et_open(&t);
    t.nheaders = 2;
    char *v = et_envelope("c", "{\"d\":19782,\"new\":1}");
    assert_int_equal(et_try(&t, "srv.public.t", "{\"d\":1}", v), CDCD_ERROR);
    ET_FAILS(&t, CDCD_ERR_DATA, "no schema 00000000DEADBEEF", "__cdcd.schemas");
    et_give(&t, CDCD_SCHEMA_TOPIC, "00000000DEADBEEF", ROW_SCHEMA(DAY));
    assert_int_equal(t.out.kind, ES_NOTHING);
    et_give(&t, "srv.public.t", "{\"d\":19782}", v);
    et_is(t.out.id, "2024-02-29");
    et_is(t.out.source, "{\"d\":\"2024-02-29\",\"new\":1}");
    const struct es_shape *shape = t.out.shape;
    assert_non_null(shape);
    assert_int_equal(shape->ncolumns, 1);
    assert_int_equal(shape->nkeys, 1);
    assert_string_equal(shape->version, "00000000DEADBEEF");
    /* The same again changes nothing; another one counts from then on; a tombstone is ignored. */
    et_give(&t, CDCD_SCHEMA_TOPIC, "00000000DEADBEEF", ROW_SCHEMA(DAY));
    et_give(&t, CDCD_SCHEMA_TOPIC, "00000000DEADBEEF", NULL);
    et_give(&t, "srv.public.t", "{\"d\":1}", v);
    assert_ptr_equal(t.out.shape, shape);
    et_give(&t, CDCD_SCHEMA_TOPIC, "00000000DEADBEEF",
            ROW_SCHEMA("{\"type\":\"int32\",\"field\":\"d\"}"));
    et_give(&t, "srv.public.t", "{\"d\":1}", v);
    et_is(t.out.source, "{\"d\":19782,\"new\":1}");
    /* A tombstone has the version, too. */
    et_give(&t, CDCD_SCHEMA_TOPIC, "0000000000000001",
            "{\"topic\":\"x\",\"key\":null,\"row\":null}");
    t.headers[1].value = cdcd_slice_str("0000000000000001");
    et_give(&t, "srv.shop.c", "{\"id\":\"\\\"x\\\"\"}", NULL);
    et_is(t.out.id, "x");
    assert_true(t.out.shape->document);
    free(v);
    et_close(&t);
}

static void not_learned(void **state)
{
    (void)state;
    static const char *const values[] = {
        "",
        "{",
        "[]",
        "{\"topic\":\"x\"}",
        "{\"topic\":\"x\",\"key\":null,\"row\":5}",
        "{\"topic\":\"x\",\"key\":null,\"row\":{\"type\":\"struct\"}}",
        "{\"topic\":\"x\",\"key\":null,\"row\":{\"type\":\"struct\",\"fields\":[5]}}",
        "{\"topic\":\"x\",\"key\":null,\"row\":{\"type\":\"struct\",\"fields\":[{\"type\":"
        "\"int32\"}"
        "]}}",
    };
    struct et t;
    et_init(&t);
    et_open(&t);
    for (size_t i = 0; i < sizeof values / sizeof values[0]; i++) {
        assert_int_equal(et_try(&t, CDCD_SCHEMA_TOPIC, "00000000DEADBEEF", values[i]), CDCD_ERROR);
        ET_FAILS(&t, CDCD_ERR_DATA, CDCD_SCHEMA_TOPIC, "00000000DEADBEEF");
    }
    assert_int_equal(et_try(&t, CDCD_SCHEMA_TOPIC, NULL, ROW_SCHEMA(DAY)), CDCD_ERROR);
    ET_FAILS(&t, CDCD_ERR_DATA, "no version");
    et_close(&t);
}

/* Columns are found by name, wherever they stand, and however the name is escaped. */
static void order_and_escapes(void **state)
{
    (void)state;
    struct et t;
    et_init(&t);
    et_open(&t);
    et_give(&t, CDCD_SCHEMA_TOPIC, "0000000000000001",
            "{\"topic\":\"x\",\"key\":null,\"row\":{\"type\":\"struct\",\"fields\":[{\"type\":"
            "\"int32\",\"field\":\"a\"},{\"type\":\"int32\",\"name\":\"io.debezium.time.Date\","
            "\"field\":\"\xc3\xa9\\\"\"},{\"type\":\"string\",\"field\":\"c\"}]}}");
    t.headers[1] = (struct cdcd_header){cdcd_slice_str("cdcd.schema"),
                                        cdcd_slice_str("0000000000000001"), false};
    t.nheaders = 2;
    char *v = et_envelope("c", "{\"c\":\"x\",\"\\u00e9\\\"\":0,\"a\":1}");
    et_give(&t, "srv.public.t", "{\"a\":1}", v);
    et_is(t.out.source, "{\"c\":\"x\",\"\\u00e9\\\"\":\"1970-01-01\",\"a\":1}");
    free(v);
    et_close(&t);
}

/* ---- Debezium's own records ---- */

static const char every_type[] =
    "{\"id\":1,\"flag\":true,\"i2\":-32768,\"i4\":2147483647,\"i8\":9223372036854775807,\"f4\":1.1,"
    "\"f8\":2.2250738585072014e-300,\"num\":123456789.123456789,\"num_10_2\":12345678.90,\"num_5\":"
    "99999,\"price\":1234.56,\"txt\":\"h\xc3\xa9"
    "llo \\\"q\\\" \\n\\t \\\\ \xf0\x9f\x98\x80 \\u0001\","
    "\"vc\":\"varchar\",\"fixed\":\"ab   \",\"bin\":\"AP8Qqw==\",\"day\":\"2024-02-29\",\"tod\":"
    "\"13:14:15.123456\",\"tod3\":\"13:14:15.123\",\"todtz\":\"10:44:15.123456Z\",\"ts\":"
    "\"2024-02-29T13:14:15.123456\",\"ts3\":\"2024-02-29T13:14:15.123\",\"tstz\":"
    "\"2024-02-29T11:14:15.123456Z\",\"span\":\"PT10303H5M6.789S\",\"uid\":"
    "\"a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11\",\"js\":\"{\\\"a\\\": 1,  \\\"b\\\":[true,null]}\","
    "\"jsb\":\"{\\\"a\\\": 1.50, \\\"b\\\": [true, null]}\",\"ints\":[1,2,null],\"words\":[\"a\","
    "\"b c\",null,\"q\\\"x\"],\"nums\":[1.10,2.25],\"stamps\":[\"2024-02-29T13:14:15.123456\"],"
    "\"mood\":\"sun\",\"host\":\"192.168.0.1/24\",\"net\":\"10.0.0.0/8\",\"mac\":"
    "\"08:00:2b:01:02:03\",\"mac8\":\"08:00:2b:01:02:03:04:05\",\"spot\":{\"x\":1.5,\"y\":-2.25},"
    "\"pairs\":\"{\\\"a\\\":\\\"1\\\",\\\"b\\\":null}\",\"markup\":\"<x a=\\\"1\\\">t</x>\",\"b1\":"
    "true,\"b8\":\"qg==\",\"bv\":\"VQ==\",\"r4\":\"[1,10)\",\"rtz\":\"[\\\"2024-01-01 "
    "00:00:00+00\\\",infinity)\",\"vec\":\"'fox' 'quick':1A "
    "'the'\",\"pos\":7,\"home\":\"(Main,5)\","
    "\"ref\":4294967295,\"note\":\"plain\",\"nothing\":null}";

struct counts {
    unsigned index, delete_, empty, nothing, null_keys;
};

/* The row of every type, as the golden file's JSON writer spells it (blanks, é). */
static void check_line(struct et *t, const struct cdcd_json_value *line, struct counts *n)
{
    struct cdcd_json_value topic, key, value;
    assert_true(cdcd_json_member(line, "topic", &topic) && cdcd_json_member(line, "key", &key) &&
                cdcd_json_member(line, "value", &value));
    char *name = cdcd_xstrndup(topic.raw.ptr + 1, topic.raw.len - 2);
    char *k = key.kind == CDCD_JSON_NULL ? NULL : cdcd_xstrndup(key.raw.ptr, key.raw.len);
    char *v = value.kind == CDCD_JSON_NULL ? NULL : cdcd_xstrndup(value.raw.ptr, value.raw.len);
    if (et_try(t, name, k, v) != CDCD_OK) {
        ET_FAILS(t, CDCD_ERR_DATA, "the key is null");
        assert_null(k);
        n->null_keys++;
    } else {
        n->index += t->out.kind == ES_INDEX;
        n->delete_ += t->out.kind == ES_DELETE;
        n->empty += t->out.kind == ES_EMPTY;
        n->nothing += t->out.kind == ES_NOTHING;
        struct cdcd_json_value doc;
        if (t->out.kind == ES_INDEX)
            assert_true(cdcd_json_scan(t->out.source, &doc) && doc.kind == CDCD_JSON_OBJECT);
    }
    free(name);
    free(k);
    free(v);
}

static struct counts golden(const char *path, struct et *t, const char *wanted, bool *found)
{
    struct counts n = {0};
    char *file = cdcd_xasprintf("%s/tests/golden/%s",
                                getenv("CDCD_SOURCE_DIR") ? getenv("CDCD_SOURCE_DIR") : ".", path);
    char *text = NULL;
    size_t cap = 0;
    FILE *f = fopen(file, "r");
    if (!f)
        fail_msg("cannot open %s", file);
    while (getline(&text, &cap, f) > 0) {
        struct cdcd_json_value line;
        if (*text == '#')
            continue;
        assert_true(cdcd_json_scan(cdcd_slice_str(text), &line));
        check_line(t, &line, &n);
        if (wanted && t->out.kind == ES_INDEX && es_slice_is(t->out.source, wanted))
            *found = true;
    }
    fclose(f);
    free(text);
    free(file);
    return n;
}

static void golden_postgres(void **state)
{
    (void)state;
    struct et t;
    bool found = false;
    et_init(&t);
    et_open(&t);
    struct counts n = golden("postgres/expected-schemas.jsonl", &t, every_type, &found);
    assert_true(found);
    printf("%u rows, %u deletes, %u truncates, %u of no row, %u without key\n", n.index, n.delete_,
           n.empty, n.nothing, n.null_keys);
    assert_true(n.index == 14 && n.delete_ == 8 && n.null_keys == 2 && n.empty == 1);
    et_close(&t);
    et_init(&t);
    et_open(&t);
    struct counts bare = golden("postgres/expected.jsonl", &t, NULL, &found);
    assert_int_equal(bare.index, 17);
    assert_true(bare.delete_ >= 8);
    et_close(&t);
}

static void golden_mysql(void **state)
{
    (void)state;
    static const char *const files[] = {"mysql/expected-schemas.jsonl", "mysql/expected.jsonl",
                                        "mariadb/expected-schemas.jsonl", "mariadb/expected.jsonl"};
    for (int i = 0; i < 4; i++) {
        struct et t;
        et_init(&t);
        et_open(&t);
        struct counts n = golden(files[i], &t, NULL, NULL);
        printf("%s: %u rows, %u deletes, %u truncates, %u of no row, %u without key\n", files[i],
               n.index, n.delete_, n.empty, n.nothing, n.null_keys);
        assert_true(n.index >= 10 && n.delete_ >= 2);
        et_close(&t);
    }
}

static void golden_mongodb(void **state)
{
    (void)state;
    struct et t;
    et_init(&t);
    t.cfg.dots_mode = ES_DOTS_RENAME;
    et_open(&t);
    struct counts n = golden("mongodb/expected.jsonl", &t, NULL, NULL);
    assert_true(n.index >= 10 && n.delete_ >= 2 && n.null_keys == 0);
    et_close(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(numbers),
        cmocka_unit_test(times),
        cmocka_unit_test(others),
        cmocka_unit_test(geometries),
        cmocka_unit_test(nested_json),
        cmocka_unit_test(huge_numbers),
        cmocka_unit_test(what_does_not_fit),
        cmocka_unit_test(learned),
        cmocka_unit_test(not_learned),
        cmocka_unit_test(order_and_escapes),
        cmocka_unit_test(golden_postgres),
        cmocka_unit_test(golden_mysql),
        cmocka_unit_test(golden_mongodb),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
