/* Every type in every handling mode: one cell in, its JSON out. */
#include "../support/encode_test.h"

#pragma GCC diagnostic ignored "-Wmissing-field-initializers" /* most rows need no more */

enum tweak {
    DEFAULT,
    DEC_DOUBLE,
    DEC_STRING,
    TIME_ATU,
    TIME_CONNECT,
    TIME_ISO,
    TIME_US,
    TIME_NS,
    SATURATE,
    SATURATE_NS,
    BIN_B64,
    BIN_URL,
    BIN_HEX,
    IV_STRING,
    HS_MAP,
    PLACEHOLDER_HEX,
    SCHEMAS,
};

static struct cdcd_debezium_config tweaked(enum tweak how)
{
    struct cdcd_debezium_config c = et_config();
    switch (how) {
    case DEFAULT: break;
    case DEC_DOUBLE: c.decimal_mode = CDCD_DECIMAL_DOUBLE; break;
    case DEC_STRING: c.decimal_mode = CDCD_DECIMAL_STRING; break;
    case TIME_ATU: c.time_mode = CDCD_TIME_ADAPTIVE_MICROS; break;
    case TIME_CONNECT: c.time_mode = CDCD_TIME_CONNECT; break;
    case TIME_ISO: c.time_mode = CDCD_TIME_ISO; break;
    case TIME_US: c.time_mode = CDCD_TIME_MICROS; break;
    case TIME_NS: c.time_mode = CDCD_TIME_NANOS; break;
    case SATURATE: c.time_overflow = CDCD_OVERFLOW_SATURATE; break;
    case SATURATE_NS:
        c.time_overflow = CDCD_OVERFLOW_SATURATE;
        c.time_mode = CDCD_TIME_NANOS;
        break;
    case BIN_B64: c.binary_mode = CDCD_BINARY_BASE64; break;
    case BIN_URL: c.binary_mode = CDCD_BINARY_BASE64_URL; break;
    case BIN_HEX: c.binary_mode = CDCD_BINARY_HEX; break;
    case IV_STRING: c.interval_mode = CDCD_INTERVAL_STRING; break;
    case HS_MAP: c.hstore_mode = CDCD_HSTORE_MAP; break;
    case PLACEHOLDER_HEX: c.unavailable_value_placeholder = (char *)(uintptr_t) "hex:ff00"; break;
    case SCHEMAS: c.schemas_enable = true; break;
    }
    return c;
}

struct value {
    struct et_column column; /* type, length, scale */
    struct cdcd_cell cell;
    const char *json;  /* NULL: a DATA error... */
    const char *error; /* ...with this in its text */
    enum tweak how;
};

#define COL(t, l, s)                                          \
    {                                                         \
        .name = "v", .type = (t), .length = (l), .scale = (s) \
    }
#define ARR(e)                                                                     \
    {                                                                              \
        .name = "v", .type = CDCD_T_ARRAY, .length = -1, .scale = -1, .elem = &(e) \
    }

static const struct cdcd_column e_int = {
    .type = CDCD_T_INT32, .length = -1, .scale = -1, .optional = true};
static const struct cdcd_column e_text = {
    .type = CDCD_T_STRING, .length = -1, .scale = -1, .optional = true};
static const struct cdcd_column e_dec = {
    .type = CDCD_T_DECIMAL, .length = 10, .scale = 2, .optional = true};
static const struct cdcd_column e_ts = {
    .type = CDCD_T_TIMESTAMP, .length = -1, .scale = -1, .optional = true};
static const struct cdcd_column e_tstz = {
    .type = CDCD_T_TIMESTAMPTZ, .length = -1, .scale = -1, .optional = true};
static const struct cdcd_column e_bytes = {
    .type = CDCD_T_BYTES, .length = -1, .scale = -1, .optional = true};
static const struct cdcd_column e_uuid = {
    .type = CDCD_T_UUID, .length = -1, .scale = -1, .optional = true};
static const struct cdcd_column e_point = {
    .type = CDCD_T_POINT, .length = -1, .scale = -1, .optional = true};
static const struct cdcd_column e_enum = {
    .type = CDCD_T_ENUM, .length = -1, .scale = -1, .optional = true};

static const struct value values[] = {
    /* numbers */
    {COL(CDCD_T_BOOL, -1, -1), C_BOOL(1), "true"},
    {COL(CDCD_T_BOOL, -1, -1), C_BOOL(0), "false"},
    {COL(CDCD_T_INT16, -1, -1), C_INT(-32768), "-32768"},
    {COL(CDCD_T_INT64, -1, -1), C_INT(INT64_MAX), "9223372036854775807"},
    {COL(CDCD_T_INT64, -1, -1), C_INT(INT64_MIN), "-9223372036854775808"},
    {COL(CDCD_T_UINT64, -1, -1), C_UINT(UINT64_MAX), "18446744073709551615"},
    {COL(CDCD_T_INT64, -1, -1), C_INT(4294967295), "4294967295"},
    {COL(CDCD_T_YEAR, -1, -1), C_INT(2024), "2024"},
    {COL(CDCD_T_INT32, -1, -1), C_NULL, "null"},

    /* floats as Java prints them */
    {COL(CDCD_T_FLOAT32, -1, -1), C_FLOAT("1.1"), "1.1"},
    {COL(CDCD_T_FLOAT32, -1, -1), C_FLOAT("-0"), "-0.0"},
    {COL(CDCD_T_FLOAT64, -1, -1), C_FLOAT("0"), "0.0"},
    {COL(CDCD_T_FLOAT64, -1, -1), C_FLOAT("1e+300"), "1.0E300"},
    {COL(CDCD_T_FLOAT64, -1, -1), C_FLOAT("2.2250738585072014e-300"), "2.2250738585072014E-300"},
    {COL(CDCD_T_FLOAT64, -1, -1), C_FLOAT("0.30000000000000004"), "0.30000000000000004"},
    {COL(CDCD_T_FLOAT64, -1, -1), C_FLOAT("0.001"), "0.001"},
    {COL(CDCD_T_FLOAT64, -1, -1), C_FLOAT("0.0125"), "0.0125"},
    {COL(CDCD_T_FLOAT64, -1, -1), C_FLOAT("0.5"), "0.5"},
    {COL(CDCD_T_FLOAT64, -1, -1), C_FLOAT("0.0001"), "1.0E-4"},
    {COL(CDCD_T_FLOAT64, -1, -1), C_FLOAT("0.00099"), "9.9E-4"},
    {COL(CDCD_T_FLOAT64, -1, -1), C_FLOAT("1e-05"), "1.0E-5"},
    {COL(CDCD_T_FLOAT64, -1, -1), C_FLOAT("9999999"), "9999999.0"},
    {COL(CDCD_T_FLOAT64, -1, -1), C_FLOAT("10000000"), "1.0E7"},
    {COL(CDCD_T_FLOAT64, -1, -1), C_FLOAT("123456789"), "1.23456789E8"},
    {COL(CDCD_T_FLOAT64, -1, -1), C_FLOAT("-1234567.125"), "-1234567.125"},
    {COL(CDCD_T_FLOAT64, -1, -1), C_FLOAT("100"), "100.0"},
    {COL(CDCD_T_FLOAT64, -1, -1), C_FLOAT("5e-324"), "5.0E-324"},
    {COL(CDCD_T_FLOAT64, -1, -1), C_FLOAT("NaN"), "\"NaN\""},
    {COL(CDCD_T_FLOAT64, -1, -1), C_FLOAT("Infinity"), "\"Infinity\""},
    {COL(CDCD_T_FLOAT64, -1, -1), C_FLOAT("-Infinity"), "\"-Infinity\""},
    {COL(CDCD_T_FLOAT64, -1, -1), C_FLOAT("1.5x"), NULL, "1.5x"},

    /* decimals: base64 of the unscaled value in two's complement */
    {COL(CDCD_T_DECIMAL, 10, 2), C_DEC("12345678.90"), "\"SZYC0g==\""},
    {COL(CDCD_T_DECIMAL, 5, 0), C_DEC("99999"), "\"AYaf\""},
    {COL(CDCD_T_DECIMAL, 10, 2), C_DEC("-0.01"), "\"/w==\""},
    {COL(CDCD_T_DECIMAL, 10, 2), C_DEC("1.10"), "\"bg==\""},
    {COL(CDCD_T_DECIMAL, 10, 2), C_DEC("1.1"), "\"bg==\""},
    {COL(CDCD_T_DECIMAL, 10, 2), C_DEC("12.50"), "\"BOI=\""},
    {COL(CDCD_T_DECIMAL, 10, 2), C_DEC("0"), "\"AA==\""},
    {COL(CDCD_T_DECIMAL, 10, 2), C_DEC("-0.00"), "\"AA==\""},
    {COL(CDCD_T_DECIMAL, 10, 2), C_DEC("1.27"), "\"fw==\""},
    {COL(CDCD_T_DECIMAL, 10, 2), C_DEC("1.28"), "\"AIA=\""},
    {COL(CDCD_T_DECIMAL, 10, 2), C_DEC("-1.28"), "\"gA==\""},
    {COL(CDCD_T_DECIMAL, 10, 2), C_DEC("-1.29"), "\"/38=\""},
    {COL(CDCD_T_DECIMAL, 10, 2), C_DEC("1.500"), "\"AJY=\""},
    {COL(CDCD_T_DECIMAL, 10, 2), C_DEC("1.501"), NULL, "scale of 2"},
    {COL(CDCD_T_DECIMAL, 2, -3), C_DEC("12000"), "\"DA==\""},
    {COL(CDCD_T_DECIMAL, 2, -3), C_DEC("12500"), NULL, "scale of -3"},
    {COL(CDCD_T_DECIMAL, 18, 0), C_DEC("999999999999999999"), "\"DeC2s6dj//8=\""},
    {COL(CDCD_T_DECIMAL, 19, 0), C_DEC("-9223372036854775808"), "\"gAAAAAAAAAA=\""},
    {COL(CDCD_T_DECIMAL, 38, 0), C_DEC("9223372036854775808"), "\"AIAAAAAAAAAA\""},
    {COL(CDCD_T_DECIMAL, 38, 0), C_DEC("99999999999999999999999999999999999999"),
     "\"SztMqFqGxHoJiiI//////w==\""},
    {COL(CDCD_T_DECIMAL, 50, 0), C_DEC("1000000000000000000000000000000000000000"),
     "\"AvBQ/pOJQ6zEX2VWgAAAAAA=\""},
    {COL(CDCD_T_DECIMAL, 10, 2), C_DEC("NaN"), "\"NaN\""},
    {COL(CDCD_T_DECIMAL, 10, 2), C_DEC("NaN"), NULL, "decimal.handling.mode", SCHEMAS},
    {COL(CDCD_T_DECIMAL, 10, 2), C_DEC("12a"), NULL, "12a"},
    {COL(CDCD_T_MONEY, -1, 2), C_DEC("1234.56"), "\"AeJA\""},
    {COL(CDCD_T_VARDECIMAL, -1, -1), C_DEC("123456789.123456789"),
     "{\"scale\":9,\"value\":\"AbabS6zQXxU=\"}"},
    {COL(CDCD_T_VARDECIMAL, -1, -1), C_DEC("-0.00001"), "{\"scale\":5,\"value\":\"/w==\"}"},
    {COL(CDCD_T_VARDECIMAL, -1, -1), C_DEC("1.10"), "{\"scale\":2,\"value\":\"bg==\"}"},
    {COL(CDCD_T_VARDECIMAL, -1, -1), C_DEC("1000000000000000000000000000000"),
     "{\"scale\":0,\"value\":\"DJ8snNBGdO3qQAAAAA==\"}"},
    {COL(CDCD_T_VARDECIMAL, -1, -1), C_DEC("Infinity"), "\"Infinity\""},
    {COL(CDCD_T_VARDECIMAL, -1, -1), C_DEC("-Infinity"), NULL, "-Infinity", SCHEMAS},
    {COL(CDCD_T_DECIMAL, 10, 2), C_DEC("1.10"), "\"1.10\"", NULL, DEC_STRING},
    {COL(CDCD_T_VARDECIMAL, -1, -1), C_DEC("NaN"), "\"NaN\"", NULL, DEC_STRING},
    {COL(CDCD_T_MONEY, -1, 2), C_DEC("-1234.56"), "\"-1234.56\"", NULL, DEC_STRING},
    {COL(CDCD_T_DECIMAL, 10, 2), C_DEC("1.10"), "1.1", NULL, DEC_DOUBLE},
    {COL(CDCD_T_VARDECIMAL, -1, -1), C_DEC("123456789012345678901"), "1.2345678901234568E20", NULL,
     DEC_DOUBLE},
    {COL(CDCD_T_VARDECIMAL, -1, -1), C_DEC("-Infinity"), "\"-Infinity\"", NULL, DEC_DOUBLE},

    /* text */
    {COL(CDCD_T_STRING, -1, -1), C_TEXT("h\xc3\xa9llo \"q\" \n\t \\ \xf0\x9f\x98\x80 \x01"),
     "\"h\xc3\xa9llo \\\"q\\\" \\n\\t \\\\ \\uD83D\\uDE00 \\u0001\""},
    {COL(CDCD_T_STRING, -1, -1), C_TEXT(""), "\"\""},
    {COL(CDCD_T_STRING, -1, -1), C_INT(1), NULL, "kind integer"},
    {COL(CDCD_T_JSON, -1, -1), C_TEXT("{\"a\": 1,  \"a\":2}"), "\"{\\\"a\\\": 1,  \\\"a\\\":2}\""},
    {COL(CDCD_T_UUID, -1, -1), C_TEXT("a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11"),
     "\"a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11\""},
    {COL(CDCD_T_ENUM, -1, -1), C_TEXT("happy"), "\"happy\""},
    {COL(CDCD_T_TIMETZ, -1, -1), C_TEXT("10:44:15.123456Z"), "\"10:44:15.123456Z\""},

    /* bytes and bits */
    {COL(CDCD_T_BYTES, -1, -1), C_BYTES("\x00\xff\x10\xab"), "\"AP8Qqw==\""},
    {COL(CDCD_T_BYTES, -1, -1), C_BYTES(""), "\"\""},
    {COL(CDCD_T_BYTES, -1, -1), C_BYTES("\xfb\xff"), "\"+/8=\"", NULL, BIN_B64},
    {COL(CDCD_T_BYTES, -1, -1), C_BYTES("\xfb\xff"), "\"-_8=\"", NULL, BIN_URL},
    {COL(CDCD_T_BYTES, -1, -1), C_BYTES("\x00\xff\x10\xab"), "\"00ff10ab\"", NULL, BIN_HEX},
    {COL(CDCD_T_BITS, 1, -1), C_BYTES("\x01"), "true"},
    {COL(CDCD_T_BITS, 1, -1), C_BYTES("\x00"), "false"},
    {COL(CDCD_T_BITS, 1, -1), C_BYTES(""), NULL, "no form as a boolean"},
    {COL(CDCD_T_BITS, 8, -1), C_BYTES("\xaa"), "\"qg==\""},

    /* dates and times */
    {COL(CDCD_T_DATE, -1, -1), C_DATE(19782), "19782"},
    {COL(CDCD_T_DATE, -1, -1), C_DATE(19782), "19782", NULL, TIME_CONNECT},
    {COL(CDCD_T_DATE, -1, -1), C_DATE(19782), "\"2024-02-29Z\"", NULL, TIME_ISO},
    {COL(CDCD_T_DATE, -1, -1), C_DATE(-735160), "\"-0043-03-15Z\"", NULL, TIME_ISO},
    {COL(CDCD_T_DATE, -1, -1), C_DATE(2145042905), "\"+5874897-12-31Z\"", NULL, TIME_ISO},
    {COL(CDCD_T_DATE, -1, -1), C_INF(CDCD_C_DATE, 1), "-2147472692"},
    {COL(CDCD_T_DATE, -1, -1), C_INF(CDCD_C_DATE, -1), "-2147472691"},
    {COL(CDCD_T_DATE, -1, -1), C_INF(CDCD_C_DATE, -1), "\"-infinity\"", NULL, TIME_ISO},
    {COL(CDCD_T_TIME, -1, -1), C_TIME(47655123456), "47655123456"},
    {COL(CDCD_T_TIME, -1, 6), C_TIME(86400000000), "86400000000"},
    {COL(CDCD_T_TIME, -1, 3), C_TIME(47655123000), "47655123"},
    {COL(CDCD_T_TIME, -1, 0), C_TIME(47655000000), "47655000"},
    {COL(CDCD_T_TIME, -1, 3), C_TIME(47655123000), "47655123000", NULL, TIME_ATU},
    {COL(CDCD_T_TIME, -1, 3), C_TIME(47655123000), "47655123000", NULL, TIME_US},
    {COL(CDCD_T_TIME, -1, -1), C_TIME(47655123456), "47655123456000", NULL, TIME_NS},
    {COL(CDCD_T_TIME, -1, -1), C_TIME(47655123456), "47655123", NULL, TIME_CONNECT},
    {COL(CDCD_T_TIME, -1, -1), C_TIME(14711789000), "\"04:05:11.789Z\"", NULL, TIME_ISO},
    {COL(CDCD_T_TIME, -1, -1), C_TIME(0), "\"00:00:00Z\"", NULL, TIME_ISO},
    {COL(CDCD_T_TIME, -1, -1), C_TIME(86400000000), "\"24:00:00Z\"", NULL, TIME_ISO},
    {COL(CDCD_T_TIME, -1, -1), C_TIME(-3020399000000), "\"-838:59:59Z\"", NULL, TIME_ISO},
    {COL(CDCD_T_TIMESTAMP, -1, -1), C_TS(1709212455, 123456000), "1709212455123456"},
    {COL(CDCD_T_TIMESTAMP, -1, 3), C_TS(1709212455, 123000000), "1709212455123"},
    {COL(CDCD_T_TIMESTAMP, -1, 3), C_TS(1709212455, 123000000), "1709212455123000", NULL, TIME_US},
    {COL(CDCD_T_TIMESTAMP, -1, -1), C_TS(1709212455, 123456000), "1709212455123456000", NULL,
     TIME_NS},
    {COL(CDCD_T_TIMESTAMP, -1, -1), C_TS(1709212455, 123456000), "1709212455123", NULL,
     TIME_CONNECT},
    {COL(CDCD_T_TIMESTAMP, -1, -1), C_TS(1562639337, 123456000), "\"2019-07-09T02:28:57.123456Z\"",
     NULL, TIME_ISO},
    {COL(CDCD_T_TIMESTAMP, -1, -1), C_TS(1562639337, 120000000), "\"2019-07-09T02:28:57.12Z\"",
     NULL, TIME_ISO},
    {COL(CDCD_T_TIMESTAMP, -1, -1), C_TS(0, 0), "\"1970-01-01T00:00:00Z\"", NULL, TIME_ISO},
    {COL(CDCD_T_TIMESTAMP, -1, -1), C_INF(CDCD_C_TIMESTAMP, 1), "\"infinity\"", NULL, TIME_ISO},
    {COL(CDCD_T_TIMESTAMP, -1, -1), C_INF(CDCD_C_TIMESTAMP, 1), "9223372036854775807", NULL,
     TIME_NS},
    {COL(CDCD_T_TIMESTAMP, -1, -1), C_INF(CDCD_C_TIMESTAMP, -1), "-9223372036854775808", NULL,
     TIME_NS},
    {COL(CDCD_T_TIMESTAMPTZ, -1, -1), C_TS(1709205255, 123456000),
     "\"2024-02-29T11:14:15.123456Z\""},
    {COL(CDCD_T_TIMESTAMPTZ, -1, -1), C_TS(-2208988800, 0), "\"1900-01-01T00:00:00.000000Z\""},
    {COL(CDCD_T_TIMESTAMPTZ, -1, 3), C_TS(1700000001, 582000000), "\"2023-11-14T22:13:21.582Z\""},
    {COL(CDCD_T_TIMESTAMPTZ, -1, 0), C_TS(1700000001, 0), "\"2023-11-14T22:13:21Z\""},
    {COL(CDCD_T_TIMESTAMPTZ, -1, -1), C_TS(1700000001, 0), "\"2023-11-14T22:13:21.000000Z\"", NULL,
     TIME_CONNECT},

    /* the extremes: infinity, BC, the first year, before 1970, the far future */
    {COL(CDCD_T_TIMESTAMP, -1, -1), C_INF(CDCD_C_TIMESTAMP, 1), "9223372036825200000"},
    {COL(CDCD_T_TIMESTAMP, -1, -1), C_INF(CDCD_C_TIMESTAMP, -1), "-9223372036832400000"},
    {COL(CDCD_T_TIMESTAMP, -1, 3), C_INF(CDCD_C_TIMESTAMP, 1), "9223372036825200"},
    {COL(CDCD_T_TIMESTAMP, -1, 3), C_INF(CDCD_C_TIMESTAMP, -1), "-9223372036832400"},
    {COL(CDCD_T_TIMESTAMPTZ, -1, -1), C_INF(CDCD_C_TIMESTAMP, 1), "\"infinity\""},
    {COL(CDCD_T_TIMESTAMPTZ, -1, -1), C_INF(CDCD_C_TIMESTAMP, -1), "\"-infinity\""},
    {COL(CDCD_T_DATE, -1, -1), C_DATE(-735160), "-735160"},
    {COL(CDCD_T_TIMESTAMP, -1, -1), C_TS(-63517780800, 0), "-63517780800000000"},
    {COL(CDCD_T_TIMESTAMP, -1, 3), C_TS(-63517780800, 500000000), "-63517780799500"},
    {COL(CDCD_T_TIMESTAMPTZ, -1, -1), C_TS(-63517780800, 0), "\"-0043-03-15T12:00:00.000000Z\""},
    {COL(CDCD_T_TIMESTAMP, -1, -1), C_TS(-60772248000, 0), "-60772248000000000"},
    {COL(CDCD_T_TIMESTAMPTZ, -1, -1), C_TS(-60772248000, 0), "\"0044-03-15T12:00:00.000000Z\""},
    {COL(CDCD_T_TIMESTAMPTZ, -1, -1), C_TS(-62135596800, 0), "\"0001-01-01T00:00:00.000000Z\""},
    {COL(CDCD_T_TIMESTAMP, -1, -1), C_TS(-1, 999999000), "-1"},
    {COL(CDCD_T_TIMESTAMP, -1, 3), C_TS(-1, 999000000), "-1"},
    {COL(CDCD_T_TIMESTAMPTZ, -1, -1), C_TS(-1, 999999000), "\"1969-12-31T23:59:59.999999Z\""},
    {COL(CDCD_T_TIMESTAMP, -1, -1), C_TS(9223372036854, 775807000), "9223372036854775807"},
    {COL(CDCD_T_TIMESTAMP, -1, 3), C_TS(9223372036854, 775000000), "9223372036854775"},
    {COL(CDCD_T_TIMESTAMP, -1, -1), C_TS(-9223372036855, 224192000), "-9223372036854775808"},
    {COL(CDCD_T_TIMESTAMP, -1, -1), C_TS(-9223372036855, 224191000), NULL, "does not fit"},
    {COL(CDCD_T_TIMESTAMPTZ, -1, -1), C_TS(9223372036854, 775807000),
     "\"+294247-01-10T04:00:54.775807Z\""},
    {COL(CDCD_T_TIMESTAMP, -1, -1), C_TS(9224318015999, 999999000), NULL,
     "+294276-12-31T23:59:59.999999Z does not fit"},
    {COL(CDCD_T_TIMESTAMP, -1, -1), C_TS(9224318015999, 999999000), "9223372036854775807", NULL,
     SATURATE},
    {COL(CDCD_T_TIMESTAMP, -1, -1), C_TS(-63517780800, 0), NULL, "does not fit", TIME_NS},
    {COL(CDCD_T_TIMESTAMP, -1, -1), C_TS(-63517780800, 0), "-9223372036854775808", NULL,
     SATURATE_NS},
    {COL(CDCD_T_TIMESTAMP, -1, 3), C_TS(-210866803200, 0), "-210866803200000"},

    /* intervals: a month has 30.4375 days */
    {COL(CDCD_T_INTERVAL, -1, -1), C_IV(14, 3, 14706789000), "37091106789000"},
    {COL(CDCD_T_INTERVAL, -1, -1), C_IV(1, -1, 1000000), "2543401000000"},
    {COL(CDCD_T_INTERVAL, -1, -1), C_IV(-27, 4, -18367000008), "-70677367000008"},
    {COL(CDCD_T_INTERVAL, -1, -1), C_IV(0, 0, -654321), "-654321"},
    {COL(CDCD_T_INTERVAL, -1, -1), C_IV(178000000 * 12, 0, 0), NULL,
     "P178000000Y0M0DT0H0M0S does not fit"},
    {COL(CDCD_T_INTERVAL, -1, -1), C_IV(-178000000 * 12, 0, 0), "-9223372036854775808", NULL,
     SATURATE},
    {COL(CDCD_T_INTERVAL, -1, -1), C_IV(0, -1, 86399000000), "-1000000"},
    {COL(CDCD_T_INTERVAL, -1, -1), C_IV(0, 1, 0), "86400000000"},
    {COL(CDCD_T_INTERVAL, -1, -1), C_INF(CDCD_C_INTERVAL, 1), "9223372036854775807"},
    {COL(CDCD_T_INTERVAL, -1, -1), C_IV(14, 3, 14706780000), "\"P1Y2M3DT4H5M6.78S\"", NULL,
     IV_STRING},
    {COL(CDCD_T_INTERVAL, -1, -1), C_IV(1, -1, 1000000), "\"P0Y1M-1DT0H0M1S\"", NULL, IV_STRING},
    {COL(CDCD_T_INTERVAL, -1, -1), C_IV(-27, 4, -18367000008), "\"P-2Y-3M4DT-5H-6M-7.000008S\"",
     NULL, IV_STRING},
    {COL(CDCD_T_INTERVAL, -1, -1), C_IV(0, 0, -654321), "\"P0Y0M0DT0H0M-0.654321S\"", NULL,
     IV_STRING},
    {COL(CDCD_T_INTERVAL, -1, -1), C_IV(0, -1, 86399000000), "\"P0Y0M-1DT23H59M59S\"", NULL,
     IV_STRING},
    {COL(CDCD_T_INTERVAL, -1, -1), C_IV(178000000 * 12, 0, 0), "\"P178000000Y0M0DT0H0M0S\"", NULL,
     IV_STRING},
    {COL(CDCD_T_INTERVAL, -1, -1), C_IV(0, 0, -120000000), "\"P0Y0M0DT0H-2M0S\"", NULL, IV_STRING},
    {COL(CDCD_T_INTERVAL, -1, -1), C_INF(CDCD_C_INTERVAL, -1), "\"-infinity\"", NULL, IV_STRING},

    /* hstore, shapes, vectors */
    {COL(CDCD_T_HSTORE, -1, -1), C_MAP(4, C_TEXT("a"), C_TEXT("1"), C_TEXT("b"), C_NULL),
     "\"{\\\"a\\\":\\\"1\\\",\\\"b\\\":null}\""},
    {COL(CDCD_T_HSTORE, -1, -1), C_MAP(2, C_TEXT("q\"\\\n\x01"), C_TEXT("\xf0\x9f\x98\x80\t")),
     "\"{\\\"q\\\\\\\"\\\\\\\\\\\\n\\\\u0001\\\":\\\"\\uD83D\\uDE00\\\\t\\\"}\""},
    {COL(CDCD_T_HSTORE, -1, -1), C_MAP(4, C_TEXT("a"), C_TEXT("1"), C_TEXT("b"), C_NULL),
     "{\"a\":\"1\",\"b\":null}", NULL, HS_MAP},
    {COL(CDCD_T_HSTORE, -1, -1), C_MAP(0, C_NULL), "\"{}\""},
    {COL(CDCD_T_POINT, -1, -1), C_LIST(2, C_FLOAT("1.5"), C_FLOAT("-2.25")),
     "{\"x\":1.5,\"y\":-2.25,\"wkb\":\"AQEAAAAAAAAAAAD4PwAAAAAAAALA\",\"srid\":null}"},
    {COL(CDCD_T_GEOMETRY, -1, -1),
     {.kind = CDCD_C_GEOM, .len = 3, .aux = 4326, .ptr = "\x01\x02\x03"},
     "{\"wkb\":\"AQID\",\"srid\":4326}"},
    {COL(CDCD_T_GEOMETRY, -1, -1),
     {.kind = CDCD_C_GEOM, .inf = -CDCD_SHAPE_PATH_CLOSED, .len = 3, .ptr = "\x01\x02\x03"},
     "{\"wkb\":\"AQID\",\"srid\":null,\"extensions\":{\"type\":\"path\",\"closed\":\"true\"}}"},
    {COL(CDCD_T_VECTOR64, -1, -1), C_LIST(3, C_FLOAT("1"), C_FLOAT("-2.5"), C_FLOAT("1e-05")),
     "[1.0,-2.5,1.0E-5]"},
    {COL(CDCD_T_VECTOR32, -1, -1), C_LIST(0, C_NULL), "[]"},
    {COL(CDCD_T_SPARSEVEC, -1, -1),
     C_LIST(5, C_INT(3000), C_INT(1), C_FLOAT("301"), C_INT(9), C_FLOAT("309")),
     "{\"dimensions\":3000,\"vector\":[[1,301.0],[9,309.0]]}"},

    /* arrays */
    {ARR(e_int), C_LIST(3, C_INT(1), C_INT(2), C_NULL), "[1,2,null]"},
    {ARR(e_int), C_LIST(0, C_NULL), "[]"},
    {ARR(e_int), C_LIST(2, C_LIST(2, C_INT(1), C_INT(2)), C_LIST(2, C_INT(3), C_NULL)),
     "[[1,2],[3,null]]"},
    {ARR(e_text), C_LIST(4, C_TEXT("a"), C_TEXT("b c"), C_NULL, C_TEXT("q\"x")),
     "[\"a\",\"b c\",null,\"q\\\"x\"]"},
    {ARR(e_text), C_LIST(1, C_TEXT("")), "[\"\"]"},
    {ARR(e_text), C_LIST(1, C_LIST(1, C_LIST(1, C_TEXT("x")))), "[[[\"x\"]]]"},
    {ARR(e_dec), C_LIST(2, C_DEC("1.10"), C_DEC("-0.01")), "[\"bg==\",\"/w==\"]"},
    {ARR(e_ts), C_LIST(1, C_TS(1709212455, 123456000)), "[1709212455123456]"},
    {ARR(e_tstz), C_LIST(2, C_INF(CDCD_C_TIMESTAMP, 1), C_TS(-63517780800, 0)),
     "[\"infinity\",\"-0043-03-15T12:00:00.000000Z\"]"},
    {ARR(e_bytes), C_LIST(2, C_BYTES("\x00\xff"), C_BYTES("")), "[\"AP8=\",\"\"]"},
    {ARR(e_enum), C_LIST(2, C_TEXT("sad"), C_NULL), "[\"sad\",null]"},
    {ARR(e_point), C_LIST(2, C_LIST(2, C_FLOAT("0"), C_FLOAT("0")), C_NULL),
     "[{\"x\":0.0,\"y\":0.0,\"wkb\":\"AQEAAAAAAAAAAAAAAAAAAAAAAAAA\",\"srid\":null},null]"},
    {ARR(e_int), C_LIST(1, C_TEXT("x")), NULL, "column v"},

    /* values that the log left out because they did not change */
    {COL(CDCD_T_STRING, -1, -1), C_UNCHANGED, "\"__debezium_unavailable_value\""},
    {COL(CDCD_T_JSON, -1, -1), C_UNCHANGED, "\"__debezium_unavailable_value\""},
    {COL(CDCD_T_BYTES, -1, -1), C_UNCHANGED, "\"X19kZWJleml1bV91bmF2YWlsYWJsZV92YWx1ZQ==\""},
    {COL(CDCD_T_BYTES, -1, -1), C_UNCHANGED, "\"__debezium_unavailable_value\"", NULL, BIN_HEX},
    {COL(CDCD_T_VARDECIMAL, -1, -1), C_UNCHANGED, "\"__debezium_unavailable_value\""},
    {COL(CDCD_T_VARDECIMAL, -1, -1), C_UNCHANGED,
     "{\"scale\":0,\"value\":\"X19kZWJleml1bV91bmF2YWlsYWJsZV92YWx1ZQ==\"}", NULL, SCHEMAS},
    {COL(CDCD_T_HSTORE, -1, -1), C_UNCHANGED,
     "\"{\\\"__debezium_unavailable_value\\\":\\\"__debezium_unavailable_value\\\"}\""},
    {COL(CDCD_T_HSTORE, -1, -1), C_UNCHANGED,
     "{\"__debezium_unavailable_value\":\"__debezium_unavailable_value\"}", NULL, HS_MAP},
    {ARR(e_text), C_UNCHANGED, "[\"__debezium_unavailable_value\"]"},
    {ARR(e_bytes), C_UNCHANGED, "[\"X19kZWJleml1bV91bmF2YWlsYWJsZV92YWx1ZQ==\"]"},
    {ARR(e_int), C_UNCHANGED, "[-1,0]", NULL, PLACEHOLDER_HEX},
    {COL(CDCD_T_BYTES, -1, -1), C_UNCHANGED, "\"/wA=\"", NULL, PLACEHOLDER_HEX},
    {ARR(e_int), C_UNCHANGED,
     "[95,95,100,101,98,101,122,105,117,109,95,117,110,97,118,97,105,108,97,98,108,101,95,118,97,"
     "108,117,101]"},
    {ARR(e_uuid), C_UNCHANGED, "[\"b68a35a7-17ad-35b3-af2a-ae46edb4545a\"]"},
};

/* The one value of the one column of a record. */
static struct cdcd_slice value_of(const struct cdcd_record *r)
{
    static const char start[] = "\"after\":{\"v\":", end[] = "},\"source\":";
    const char *p = memmem(r->value.ptr, r->value.len, start, strlen(start));
    /* With schemas the payload's comes after the schema's text, which has no such part. */
    assert_non_null(p);
    p += strlen(start);
    const char *q = memmem(p, (size_t)(r->value.ptr + r->value.len - p), end, strlen(end));
    assert_non_null(q);
    return (struct cdcd_slice){p, (size_t)(q - p)};
}

static void every_value(void **state)
{
    unsigned bad = 0;
    (void)state;
    for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); i++) {
        const struct value *v = &values[i];
        struct cdcd_debezium_config cfg = tweaked(v->how);
        struct cdcd_schema *s = et_schema("t", &v->column, 1);
        struct et t;
        et_open(&t, &cfg);
        et_event(&t, CDCD_OP_CREATE, s, NULL, &v->cell);
        enum cdcd_rc rc = cdcd_encoder_encode(t.encoder, t.batch, &t.err);
        struct cdcd_slice got = {"", 0};
        bool ok;
        if (v->json) {
            if (rc == CDCD_OK)
                got = value_of(et_record(&t, 0));
            else
                got = cdcd_slice_str(t.err.text);
            ok = rc == CDCD_OK && cdcd_slice_eq(got, cdcd_slice_str(v->json));
        } else {
            got = cdcd_slice_str(t.err.text);
            ok = rc == CDCD_ERROR && t.err.class == CDCD_ERR_DATA && strstr(t.err.text, v->error) &&
                 strstr(t.err.text, "public.t, column v");
        }
        if (!ok) {
            print_error("values[%zu]: got %.*s, expected %s\n", i, (int)got.len, got.ptr,
                        v->json ? v->json : v->error);
            bad++;
        }
        et_close(&t);
        cdcd_schema_unref(s);
    }
    assert_int_equal(bad, 0);
}

/* More digits than any machine word, both signs, against a plain doubling of bytes. */
static void large_decimals(void **state)
{
    static const struct et_column column = {
        .name = "v", .type = CDCD_T_DECIMAL, .length = 1000, .scale = 0};
    (void)state;
    for (size_t digits = 30; digits < 400; digits += 37) {
        char text[512];
        uint8_t bytes[256] = {0};
        size_t n = sizeof(bytes);
        for (size_t i = 0; i < digits; i++) {
            text[1 + i] = (char)('1' + (i * 7 + digits) % 9);
            unsigned carry = (unsigned)(text[1 + i] - '0');
            for (size_t k = n; k-- > 0;) {
                carry += bytes[k] * 10u;
                bytes[k] = (uint8_t)carry;
                carry >>= 8;
            }
        }
        for (int negative = 0; negative < 2; negative++) {
            uint8_t two[256];
            unsigned carry = 1;
            memcpy(two, bytes, n);
            for (size_t k = n; negative && k-- > 0;) {
                carry += (uint8_t)~two[k];
                two[k] = (uint8_t)carry;
                carry >>= 8;
            }
            size_t skip = 0;
            uint8_t sign = negative ? 0xff : 0;
            while (skip + 1 < n && two[skip] == sign && (two[skip + 1] & 0x80) == (sign & 0x80))
                skip++;
            text[0] = '-';
            struct cdcd_cell cell = cdcd_cell_text(text + !negative, digits + (size_t)negative);
            cell.kind = CDCD_C_DECIMAL;
            struct cdcd_schema *s = et_schema("t", &column, 1);
            struct cdcd_debezium_config cfg = et_config();
            struct et t;
            et_open(&t, &cfg);
            et_event(&t, CDCD_OP_CREATE, s, NULL, &cell);
            et_encode(&t);
            struct cdcd_arena a;
            struct cdcd_writer w;
            cdcd_arena_init(&a, 4096);
            cdcd_writer_begin(&w, &a);
            cdcd_json_base64(&w, two + skip, n - skip, false);
            cdcd_writer_char(&w, 0);
            et_slice_is(value_of(et_record(&t, 0)), cdcd_writer_end(&w).ptr);
            cdcd_arena_free(&a);
            et_close(&t);
            cdcd_schema_unref(s);
        }
    }
}

/* NOT NULL columns that the log does not carry: the default, or the zero of the type. */
static void absent_values(void **state)
{
    static const struct cdcd_cell seven = C_INT(7), text = C_TEXT("x\"y"), dec = C_DEC("1.50");
    static const struct {
        enum cdcd_type type;
        int32_t scale;
        bool required, has_default;
        const struct cdcd_cell *default_;
        const char *json;
    } cases[] = {
        {CDCD_T_INT32, -1, false, true, &seven, "null"},
        {CDCD_T_INT32, -1, true, true, &seven, "7"},
        {CDCD_T_INT32, -1, true, false, NULL, "0"},
        {CDCD_T_INT64, -1, true, true, NULL, "0"},
        {CDCD_T_STRING, -1, true, true, &text, "\"x\\\"y\""},
        {CDCD_T_STRING, -1, true, false, NULL, "\"\""},
        {CDCD_T_DECIMAL, 2, true, true, &dec, "\"AJY=\""},
        {CDCD_T_DECIMAL, 2, true, false, NULL, "\"AA==\""},
        {CDCD_T_BOOL, -1, true, false, NULL, "false"},
        {CDCD_T_FLOAT64, -1, true, false, NULL, "0.0"},
        {CDCD_T_JSON, -1, true, true, NULL, "\"{}\""},
        {CDCD_T_JSON, -1, true, false, NULL, "\"\""},
        {CDCD_T_TIMESTAMPTZ, -1, true, true, NULL, "\"1970-01-01T00:00:00.000000Z\""},
        {CDCD_T_TIMESTAMPTZ, -1, true, false, NULL, "\"1970-01-01T00:00:00Z\""},
        {CDCD_T_UUID, -1, true, true, NULL, "\"00000000-0000-0000-0000-000000000000\""},
        {CDCD_T_BYTES, -1, true, false, NULL, "\"\""},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        const struct et_column column = {.name = "v",
                                         .type = cases[i].type,
                                         .length = -1,
                                         .scale = cases[i].scale,
                                         .required = cases[i].required};
        const struct cdcd_cell cell = C_ABSENT;
        struct cdcd_debezium_config cfg = et_config();
        struct cdcd_schema *s = et_schema("t", &column, 1);
        s->columns[0].has_default = cases[i].has_default;
        s->columns[0].default_cell = cases[i].default_;
        struct et t;
        et_open(&t, &cfg);
        et_event(&t, CDCD_OP_CREATE, s, NULL, &cell);
        et_encode(&t);
        et_slice_is(value_of(et_record(&t, 0)), cases[i].json);
        et_close(&t);
        cdcd_schema_unref(s);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_value),
        cmocka_unit_test(large_decimals),
        cmocka_unit_test(absent_values),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
