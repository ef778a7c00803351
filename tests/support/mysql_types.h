/*
 * A column of every MySQL type and three rows of it (ordinary, largest, smallest): the cells that
 * the source makes, the JSON that Debezium 3.6 writes for the same rows and its schemas, except
 * where those are wrong: FLOAT(7,2) and DOUBLE(10,4) rounded twice, a BIGINT UNSIGNED that wraps,
 * a backslash in the value of an ENUM.
 */
#ifndef CDCD_TESTS_MYSQL_TYPES_H
#define CDCD_TESTS_MYSQL_TYPES_H

#include "encode_test.h"

static const char *const enum_labels[] = {"a", "b", "ç", "d,e", "it's", NULL};
static const char *const set_labels[] = {"x", "y", "z", NULL};

static const struct {
    const char *name;
    struct {
        enum cdcd_type type;
        int32_t length, scale;
        const char *const *labels;
    } is;
    struct {
        struct cdcd_cell cell;
        const char *json;
    } rows[3];
    const char *schema;
} cases[] = {
    {"id",
     {CDCD_T_INT32, -1, -1, NULL},
     {{C_INT(101), "101"}, {C_INT(102), "102"}, {C_INT(103), "103"}},
     "{\"type\":\"int32\",\"optional\":false,\"field\":\"id\"}"},
    {"c_ti",
     {CDCD_T_INT16, -1, -1, NULL},
     {{C_INT(-5), "-5"}, {C_INT(127), "127"}, {C_INT(-128), "-128"}},
     "{\"type\":\"int16\",\"optional\":true,\"field\":\"c_ti\"}"},
    {"c_tiu",
     {CDCD_T_INT16, -1, -1, NULL},
     {{C_INT(200), "200"}, {C_INT(255), "255"}, {C_INT(0), "0"}},
     "{\"type\":\"int16\",\"optional\":true,\"field\":\"c_tiu\"}"},
    {"c_ti1",
     {CDCD_T_INT16, -1, -1, NULL},
     {{C_INT(1), "1"}, {C_INT(127), "127"}, {C_INT(-128), "-128"}},
     "{\"type\":\"int16\",\"optional\":true,\"field\":\"c_ti1\"}"},
    {"c_ti1u",
     {CDCD_T_INT16, -1, -1, NULL},
     {{C_INT(1), "1"}, {C_INT(255), "255"}, {C_INT(0), "0"}},
     "{\"type\":\"int16\",\"optional\":true,\"field\":\"c_ti1u\"}"},
    {"c_bool",
     {CDCD_T_INT16, -1, -1, NULL},
     {{C_INT(1), "1"}, {C_INT(2), "2"}, {C_INT(0), "0"}},
     "{\"type\":\"int16\",\"optional\":true,\"field\":\"c_bool\"}"},
    {"c_si",
     {CDCD_T_INT16, -1, -1, NULL},
     {{C_INT(-300), "-300"}, {C_INT(32767), "32767"}, {C_INT(-32768), "-32768"}},
     "{\"type\":\"int16\",\"optional\":true,\"field\":\"c_si\"}"},
    {"c_siu",
     {CDCD_T_INT32, -1, -1, NULL},
     {{C_INT(40000), "40000"}, {C_INT(65535), "65535"}, {C_INT(0), "0"}},
     "{\"type\":\"int32\",\"optional\":true,\"field\":\"c_siu\"}"},
    {"c_mi",
     {CDCD_T_INT32, -1, -1, NULL},
     {{C_INT(-70000), "-70000"}, {C_INT(8388607), "8388607"}, {C_INT(-8388608), "-8388608"}},
     "{\"type\":\"int32\",\"optional\":true,\"field\":\"c_mi\"}"},
    {"c_miu",
     {CDCD_T_INT32, -1, -1, NULL},
     {{C_INT(9000000), "9000000"}, {C_INT(16777215), "16777215"}, {C_INT(0), "0"}},
     "{\"type\":\"int32\",\"optional\":true,\"field\":\"c_miu\"}"},
    {"c_i",
     {CDCD_T_INT32, -1, -1, NULL},
     {{C_INT(-100000), "-100000"},
      {C_INT(2147483647), "2147483647"},
      {C_INT(INT64_C(-2147483648)), "-2147483648"}},
     "{\"type\":\"int32\",\"optional\":true,\"field\":\"c_i\"}"},
    {"c_iu",
     {CDCD_T_INT64, -1, -1, NULL},
     {{C_INT(INT64_C(3000000000)), "3000000000"},
      {C_INT(INT64_C(4294967295)), "4294967295"},
      {C_INT(0), "0"}},
     "{\"type\":\"int64\",\"optional\":true,\"field\":\"c_iu\"}"},
    {"c_izf",
     {CDCD_T_INT64, -1, -1, NULL},
     {{C_INT(42), "42"}, {C_INT(INT64_C(4294967295)), "4294967295"}, {C_INT(0), "0"}},
     "{\"type\":\"int64\",\"optional\":true,\"field\":\"c_izf\"}"},
    {"c_bi",
     {CDCD_T_INT64, -1, -1, NULL},
     {{C_INT(INT64_C(-5000000000)), "-5000000000"},
      {C_INT(INT64_C(9223372036854775807)), "9223372036854775807"},
      {C_INT(INT64_MIN), "-9223372036854775808"}},
     "{\"type\":\"int64\",\"optional\":true,\"field\":\"c_bi\"}"},
    {"c_biu",
     {CDCD_T_UINT64, -1, -1, NULL},
     {{C_UINT(UINT64_C(5000000000)), "5000000000"},
      {C_UINT(UINT64_C(18446744073709551615)), "18446744073709551615"},
      {C_UINT(UINT64_C(9223372036854775808)), "9223372036854775808"}},
     "{\"type\":\"bytes\",\"optional\":true,\"name\":\"org.apache.kafka.connect.data.Decimal\","
     "\"version\":1,\"parameters\":{\"scale\":\"0\"},\"field\":\"c_biu\"}"},
    {"c_dec",
     {CDCD_T_DECIMAL, 10, 2, NULL},
     {{C_DEC("12345.67"), "\"EtaH\""},
      {C_DEC("99999999.99"), "\"AlQL4/8=\""},
      {C_DEC("-99999999.99"), "\"/av0HAE=\""}},
     "{\"type\":\"bytes\",\"optional\":true,\"name\":\"org.apache.kafka.connect.data.Decimal\","
     "\"version\":1,\"parameters\":{\"scale\":\"2\",\"connect.decimal.precision\":\"10\"},"
     "\"field\":\"c_dec\"}"},
    {"c_dec50",
     {CDCD_T_DECIMAL, 5, 0, NULL},
     {{C_DEC("99999"), "\"AYaf\""}, {C_DEC("99999"), "\"AYaf\""}, {C_DEC("-99999"), "\"/nlh\""}},
     "{\"type\":\"bytes\",\"optional\":true,\"name\":\"org.apache.kafka.connect.data.Decimal\","
     "\"version\":1,\"parameters\":{\"scale\":\"0\",\"connect.decimal.precision\":\"5\"},\"field\":"
     "\"c_dec50\"}"},
    {"c_dec65",
     {CDCD_T_DECIMAL, 65, 30, NULL},
     {{C_DEC("12345678901234567890.123456789012345678901234567890"),
       "\"CHJ/Y2mq+DyhUCZ0evjH8ZbOPwrS\""},
      {C_DEC("99999999999999999999999999999999999.999999999999999999999999999999"),
       "\"APMWJxx/w5CKi+9GTjlF73olNgn//////////w==\""},
      {C_DEC("-99999999999999999999999999999999999.999999999999999999999999999999"),
       "\"/wzp2OOAPG91dBC5sca6EIXayfYAAAAAAAAAAQ==\""}},
     "{\"type\":\"bytes\",\"optional\":true,\"name\":\"org.apache.kafka.connect.data.Decimal\","
     "\"version\":1,\"parameters\":{\"scale\":\"30\",\"connect.decimal.precision\":\"65\"},"
     "\"field\":\"c_dec65\"}"},
    {"c_decu",
     {CDCD_T_DECIMAL, 10, 2, NULL},
     {{C_DEC("1.10"), "\"bg==\""},
      {C_DEC("99999999.99"), "\"AlQL4/8=\""},
      {C_DEC("0.00"), "\"AA==\""}},
     "{\"type\":\"bytes\",\"optional\":true,\"name\":\"org.apache.kafka.connect.data.Decimal\","
     "\"version\":1,\"parameters\":{\"scale\":\"2\",\"connect.decimal.precision\":\"10\"},"
     "\"field\":\"c_decu\"}"},
    {"c_num",
     {CDCD_T_DECIMAL, 10, 0, NULL},
     {{C_DEC("7"), "\"Bw==\""},
      {C_DEC("9999999999"), "\"AlQL4/8=\""},
      {C_DEC("-9999999999"), "\"/av0HAE=\""}},
     "{\"type\":\"bytes\",\"optional\":true,\"name\":\"org.apache.kafka.connect.data.Decimal\","
     "\"version\":1,\"parameters\":{\"scale\":\"0\",\"connect.decimal.precision\":\"10\"},"
     "\"field\":\"c_num\"}"},
    {"c_f",
     {CDCD_T_FLOAT32, -1, -1, NULL},
     {{C_FLOAT("1.1"), "1.1"},
      {C_FLOAT("3.402823e38"), "3.402823E38"},
      {C_FLOAT("-3.402823e38"), "-3.402823E38"}},
     "{\"type\":\"float\",\"optional\":true,\"field\":\"c_f\"}"},
    {"c_f72",
     {CDCD_T_FLOAT64, -1, -1, NULL},
     {{C_FLOAT("123.45"), "123.45"},
      {C_FLOAT("99999.99"), "99999.99"},
      {C_FLOAT("-99999.99"), "-99999.99"}},
     "{\"type\":\"double\",\"optional\":true,\"field\":\"c_f72\"}"},
    {"c_f30",
     {CDCD_T_FLOAT64, -1, -1, NULL},
     {{C_FLOAT("1.1"), "1.1"},
      {C_FLOAT("3.402823e38"), "3.402823E38"},
      {C_FLOAT("1e-37"), "1.0E-37"}},
     "{\"type\":\"double\",\"optional\":true,\"field\":\"c_f30\"}"},
    {"c_d",
     {CDCD_T_FLOAT64, -1, -1, NULL},
     {{C_FLOAT("2.2250738585072014e-300"), "2.2250738585072014E-300"},
      {C_FLOAT("1.7976931348623157e308"), "1.7976931348623157E308"},
      {C_FLOAT("-1.7976931348623157e308"), "-1.7976931348623157E308"}},
     "{\"type\":\"double\",\"optional\":true,\"field\":\"c_d\"}"},
    {"c_d104",
     {CDCD_T_FLOAT64, -1, -1, NULL},
     {{C_FLOAT("1234.5678"), "1234.5678"},
      {C_FLOAT("999999.9999"), "999999.9999"},
      {C_FLOAT("-0.0001"), "-1.0E-4"}},
     "{\"type\":\"double\",\"optional\":true,\"field\":\"c_d104\"}"},
    {"c_real",
     {CDCD_T_FLOAT64, -1, -1, NULL},
     {{C_FLOAT("0.1"), "0.1"}, {C_FLOAT("1e15"), "1.0E15"}, {C_FLOAT("0"), "0.0"}},
     "{\"type\":\"double\",\"optional\":true,\"field\":\"c_real\"}"},
    {"c_bit",
     {CDCD_T_BITS, 1, -1, NULL},
     {{C_BYTES("\001"), "true"}, {C_BYTES("\001"), "true"}, {C_BYTES("\000"), "false"}},
     "{\"type\":\"boolean\",\"optional\":true,\"field\":\"c_bit\"}"},
    {"c_bit1",
     {CDCD_T_BITS, 1, -1, NULL},
     {{C_BYTES("\001"), "true"}, {C_BYTES("\001"), "true"}, {C_BYTES("\000"), "false"}},
     "{\"type\":\"boolean\",\"optional\":true,\"field\":\"c_bit1\"}"},
    {"c_bit5",
     {CDCD_T_BITS, 5, -1, NULL},
     {{C_BYTES("\025"), "\"FQ==\""}, {C_BYTES("\037"), "\"Hw==\""}, {C_BYTES("\000"), "\"AA==\""}},
     "{\"type\":\"bytes\",\"optional\":true,\"name\":\"io.debezium.data.Bits\",\"version\":1,"
     "\"parameters\":{\"length\":\"5\"},\"field\":\"c_bit5\"}"},
    {"c_bit13",
     {CDCD_T_BITS, 13, -1, NULL},
     {{C_BYTES("\125\025"), "\"VRU=\""},
      {C_BYTES("\377\037"), "\"/x8=\""},
      {C_BYTES("\001\000"), "\"AQA=\""}},
     "{\"type\":\"bytes\",\"optional\":true,\"name\":\"io.debezium.data.Bits\",\"version\":1,"
     "\"parameters\":{\"length\":\"13\"},\"field\":\"c_bit13\"}"},
    {"c_bit64",
     {CDCD_T_BITS, 64, -1, NULL},
     {{C_BYTES("\010\007\006\005\004\003\002\001"), "\"CAcGBQQDAgE=\""},
      {C_BYTES("\377\377\377\377\377\377\377\377"), "\"//////////8=\""},
      {C_BYTES("\000\000\000\000\000\000\000\200"), "\"AAAAAAAAAIA=\""}},
     "{\"type\":\"bytes\",\"optional\":true,\"name\":\"io.debezium.data.Bits\",\"version\":1,"
     "\"parameters\":{\"length\":\"64\"},\"field\":\"c_bit64\"}"},
    {"c_year",
     {CDCD_T_YEAR, -1, -1, NULL},
     {{C_INT(2024), "2024"}, {C_INT(2155), "2155"}, {C_INT(1901), "1901"}},
     "{\"type\":\"int32\",\"optional\":true,\"name\":\"io.debezium.time.Year\",\"version\":1,"
     "\"field\":\"c_year\"}"},
    {"c_date",
     {CDCD_T_DATE, -1, -1, NULL},
     {{C_DATE(19782), "19782"}, {C_DATE(2932896), "2932896"}, {C_DATE(-354285), "-354285"}},
     "{\"type\":\"int32\",\"optional\":true,\"name\":\"io.debezium.time.Date\",\"version\":1,"
     "\"field\":\"c_date\"}"},
    {"c_t0",
     {CDCD_T_TIME, -1, 0, NULL},
     {{C_TIME(INT64_C(47655000000)), "47655000000"},
      {C_TIME(INT64_C(3020399000000)), "3020399000000"},
      {C_TIME(INT64_C(-3020399000000)), "-3020399000000"}},
     "{\"type\":\"int64\",\"optional\":true,\"name\":\"io.debezium.time.MicroTime\",\"version\":1,"
     "\"field\":\"c_t0\"}"},
    {"c_t3",
     {CDCD_T_TIME, -1, 3, NULL},
     {{C_TIME(INT64_C(47655123000)), "47655123000"},
      {C_TIME(INT64_C(3020398999000)), "3020398999000"},
      {C_TIME(INT64_C(-3020398999000)), "-3020398999000"}},
     "{\"type\":\"int64\",\"optional\":true,\"name\":\"io.debezium.time.MicroTime\",\"version\":1,"
     "\"field\":\"c_t3\"}"},
    {"c_t6",
     {CDCD_T_TIME, -1, 6, NULL},
     {{C_TIME(INT64_C(47655123456)), "47655123456"},
      {C_TIME(INT64_C(3020398999999)), "3020398999999"},
      {C_TIME(INT64_C(-1)), "-1"}},
     "{\"type\":\"int64\",\"optional\":true,\"name\":\"io.debezium.time.MicroTime\",\"version\":1,"
     "\"field\":\"c_t6\"}"},
    {"c_dt0",
     {CDCD_T_TIMESTAMP, -1, 0, NULL},
     {{C_TS(INT64_C(1709212455), 0), "1709212455000"},
      {C_TS(INT64_C(253402300799), 0), "253402300799000"},
      {C_TS(INT64_C(-30610224000), 0), "-30610224000000"}},
     "{\"type\":\"int64\",\"optional\":true,\"name\":\"io.debezium.time.Timestamp\",\"version\":1,"
     "\"field\":\"c_dt0\"}"},
    {"c_dt3",
     {CDCD_T_TIMESTAMP, -1, 3, NULL},
     {{C_TS(INT64_C(1709212455), 123000000), "1709212455123"},
      {C_TS(INT64_C(253402300799), 999000000), "253402300799999"},
      {C_TS(INT64_C(-30610224000), 1000000), "-30610223999999"}},
     "{\"type\":\"int64\",\"optional\":true,\"name\":\"io.debezium.time.Timestamp\",\"version\":1,"
     "\"field\":\"c_dt3\"}"},
    {"c_dt6",
     {CDCD_T_TIMESTAMP, -1, 6, NULL},
     {{C_TS(INT64_C(1709212455), 123456000), "1709212455123456"},
      {C_TS(INT64_C(253402300799), 999999000), "253402300799999999"},
      {C_TS(INT64_C(-30610224000), 1000), "-30610223999999999"}},
     "{\"type\":\"int64\",\"optional\":true,\"name\":\"io.debezium.time.MicroTimestamp\","
     "\"version\":1,\"field\":\"c_dt6\"}"},
    {"c_ts0",
     {CDCD_T_TIMESTAMPTZ, -1, 0, NULL},
     {{C_TS(INT64_C(1709212455), 0), "\"2024-02-29T13:14:15Z\""},
      {C_TS(INT64_C(2147483647), 0), "\"2038-01-19T03:14:07Z\""},
      {C_TS(INT64_C(1), 0), "\"1970-01-01T00:00:01Z\""}},
     "{\"type\":\"string\",\"optional\":true,\"name\":\"io.debezium.time.ZonedTimestamp\","
     "\"version\":1,\"field\":\"c_ts0\"}"},
    {"c_ts3",
     {CDCD_T_TIMESTAMPTZ, -1, 3, NULL},
     {{C_TS(INT64_C(1709212455), 120000000), "\"2024-02-29T13:14:15.120Z\""},
      {C_TS(INT64_C(2147483647), 999000000), "\"2038-01-19T03:14:07.999Z\""},
      {C_TS(INT64_C(1), 1000000), "\"1970-01-01T00:00:01.001Z\""}},
     "{\"type\":\"string\",\"optional\":true,\"name\":\"io.debezium.time.ZonedTimestamp\","
     "\"version\":1,\"field\":\"c_ts3\"}"},
    {"c_ts6",
     {CDCD_T_TIMESTAMPTZ, -1, 6, NULL},
     {{C_TS(INT64_C(1709212455), 123456000), "\"2024-02-29T13:14:15.123456Z\""},
      {C_TS(INT64_C(2147483647), 999999000), "\"2038-01-19T03:14:07.999999Z\""},
      {C_TS(INT64_C(1), 1000), "\"1970-01-01T00:00:01.000001Z\""}},
     "{\"type\":\"string\",\"optional\":true,\"name\":\"io.debezium.time.ZonedTimestamp\","
     "\"version\":1,\"field\":\"c_ts6\"}"},
    {"c_char",
     {CDCD_T_STRING, -1, -1, NULL},
     {{C_TEXT("ab"), "\"ab\""}, {C_NULL, "null"}, {C_TEXT(""), "\"\""}},
     "{\"type\":\"string\",\"optional\":true,\"field\":\"c_char\"}"},
    {"c_charl",
     {CDCD_T_STRING, -1, -1, NULL},
     {{C_TEXT("café"), "\"café\""}, {C_TEXT("€ÿ"), "\"€ÿ\""}, {C_TEXT(" x"), "\" x\""}},
     "{\"type\":\"string\",\"optional\":true,\"field\":\"c_charl\"}"},
    {"c_vc",
     {CDCD_T_STRING, -1, -1, NULL},
     {{C_TEXT("héllo \"q\" \n\t \\ 😀 \001"),
       "\"héllo \\\"q\\\" \\n\\t \\\\ \\uD83D\\uDE00 \\u0001\""},
      {C_NULL, "null"},
      {C_TEXT(""), "\"\""}},
     "{\"type\":\"string\",\"optional\":true,\"field\":\"c_vc\"}"},
    {"c_vcl",
     {CDCD_T_STRING, -1, -1, NULL},
     {{C_TEXT("café"), "\"café\""}, {C_NULL, "null"}, {C_TEXT(""), "\"\""}},
     "{\"type\":\"string\",\"optional\":true,\"field\":\"c_vcl\"}"},
    {"c_vc16",
     {CDCD_T_STRING, -1, -1, NULL},
     {{C_TEXT("hé😀"), "\"hé\\uD83D\\uDE00\""}, {C_TEXT("日本"), "\"日本\""}, {C_TEXT(""), "\"\""}},
     "{\"type\":\"string\",\"optional\":true,\"field\":\"c_vc16\"}"},
    {"c_vcb",
     {CDCD_T_BYTES, -1, -1, NULL},
     {{C_BYTES("\141\142"), "\"YWI=\""}, {C_BYTES("\377\000"), "\"/wA=\""}, {C_BYTES(""), "\"\""}},
     "{\"type\":\"bytes\",\"optional\":true,\"field\":\"c_vcb\"}"},
    {"c_vccp",
     {CDCD_T_STRING, -1, -1, NULL},
     {{C_TEXT("Да"), "\"Да\""}, {C_TEXT("Я"), "\"Я\""}, {C_TEXT(""), "\"\""}},
     "{\"type\":\"string\",\"optional\":true,\"field\":\"c_vccp\"}"},
    {"c_vcsj",
     {CDCD_T_STRING, -1, -1, NULL},
     {{C_TEXT("日本"), "\"日本\""}, {C_TEXT("ｶ"), "\"ｶ\""}, {C_TEXT(""), "\"\""}},
     "{\"type\":\"string\",\"optional\":true,\"field\":\"c_vcsj\"}"},
    {"c_tt",
     {CDCD_T_STRING, -1, -1, NULL},
     {{C_TEXT("tt"), "\"tt\""}, {C_NULL, "null"}, {C_TEXT(""), "\"\""}},
     "{\"type\":\"string\",\"optional\":true,\"field\":\"c_tt\"}"},
    {"c_tx",
     {CDCD_T_STRING, -1, -1, NULL},
     {{C_TEXT("tèxt"), "\"tèxt\""}, {C_NULL, "null"}, {C_TEXT(""), "\"\""}},
     "{\"type\":\"string\",\"optional\":true,\"field\":\"c_tx\"}"},
    {"c_txl",
     {CDCD_T_STRING, -1, -1, NULL},
     {{C_TEXT("tèxt"), "\"tèxt\""}, {C_TEXT("ÿ"), "\"ÿ\""}, {C_TEXT(""), "\"\""}},
     "{\"type\":\"string\",\"optional\":true,\"field\":\"c_txl\"}"},
    {"c_mt",
     {CDCD_T_STRING, -1, -1, NULL},
     {{C_TEXT("mt"), "\"mt\""}, {C_TEXT("mt"), "\"mt\""}, {C_TEXT(""), "\"\""}},
     "{\"type\":\"string\",\"optional\":true,\"field\":\"c_mt\"}"},
    {"c_lt",
     {CDCD_T_STRING, -1, -1, NULL},
     {{C_TEXT("lt"), "\"lt\""}, {C_TEXT("lt"), "\"lt\""}, {C_TEXT(""), "\"\""}},
     "{\"type\":\"string\",\"optional\":true,\"field\":\"c_lt\"}"},
    {"c_bin",
     {CDCD_T_BYTES, -1, -1, NULL},
     {{C_BYTES("\000\001\000\000\000\000\000\000"), "\"AAEAAAAAAAA=\""},
      {C_BYTES("\377\377\377\377\377\377\377\377"), "\"//////////8=\""},
      {C_BYTES("\000\000\000\000\000\000\000\000"), "\"AAAAAAAAAAA=\""}},
     "{\"type\":\"bytes\",\"optional\":true,\"field\":\"c_bin\"}"},
    {"c_vb",
     {CDCD_T_BYTES, -1, -1, NULL},
     {{C_BYTES("\000\377\020\253"), "\"AP8Qqw==\""}, {C_NULL, "null"}, {C_BYTES(""), "\"\""}},
     "{\"type\":\"bytes\",\"optional\":true,\"field\":\"c_vb\"}"},
    {"c_tb",
     {CDCD_T_BYTES, -1, -1, NULL},
     {{C_BYTES("\000\377"), "\"AP8=\""}, {C_BYTES("\377"), "\"/w==\""}, {C_BYTES(""), "\"\""}},
     "{\"type\":\"bytes\",\"optional\":true,\"field\":\"c_tb\"}"},
    {"c_bl",
     {CDCD_T_BYTES, -1, -1, NULL},
     {{C_BYTES("\336\255\276\357\000"), "\"3q2+7wA=\""},
      {C_BYTES("\000\000\000\000"), "\"AAAAAA==\""},
      {C_BYTES(""), "\"\""}},
     "{\"type\":\"bytes\",\"optional\":true,\"field\":\"c_bl\"}"},
    {"c_mb",
     {CDCD_T_BYTES, -1, -1, NULL},
     {{C_BYTES("\001"), "\"AQ==\""}, {C_BYTES("\001"), "\"AQ==\""}, {C_BYTES(""), "\"\""}},
     "{\"type\":\"bytes\",\"optional\":true,\"field\":\"c_mb\"}"},
    {"c_lb",
     {CDCD_T_BYTES, -1, -1, NULL},
     {{C_BYTES("\002"), "\"Ag==\""}, {C_BYTES("\002"), "\"Ag==\""}, {C_BYTES(""), "\"\""}},
     "{\"type\":\"bytes\",\"optional\":true,\"field\":\"c_lb\"}"},
    {"c_enum",
     {CDCD_T_ENUM, -1, -1, enum_labels},
     {{C_TEXT("ç"), "\"ç\""}, {C_TEXT("it's"), "\"it's\""}, {C_TEXT("d,e"), "\"d,e\""}},
     "{\"type\":\"string\",\"optional\":true,\"name\":\"io.debezium.data.Enum\",\"version\":1,"
     "\"parameters\":{\"allowed\":\"a,b,ç,d\\\\,e,it's\"},\"field\":\"c_enum\"}"},
    {"c_set",
     {CDCD_T_ENUMSET, -1, -1, set_labels},
     {{C_TEXT("x,z"), "\"x,z\""}, {C_TEXT("x,y,z"), "\"x,y,z\""}, {C_TEXT(""), "\"\""}},
     "{\"type\":\"string\",\"optional\":true,\"name\":\"io.debezium.data.EnumSet\",\"version\":1,"
     "\"parameters\":{\"allowed\":\"x,y,z\"},\"field\":\"c_set\"}"},
    {"c_json",
     {CDCD_T_JSON, -1, -1, NULL},
     {{C_TEXT("{\"a\":[1,-2,3.5,10000000000,\"s\",null,true,{\"deep\":\"é😀\"}],\"b\":1,\"big\":"
              "18446744073709551615}"),
       "\"{\\\"a\\\":[1,-2,3.5,10000000000,\\\"s\\\",null,true,{\\\"deep\\\":"
       "\\\"é\\uD83D\\uDE00\\\"}],\\\"b\\\":1,\\\"big\\\":18446744073709551615}\""},
      {C_TEXT("[]"), "\"[]\""},
      {C_TEXT("{}"), "\"{}\""}},
     "{\"type\":\"string\",\"optional\":true,\"name\":\"io.debezium.data.Json\",\"version\":1,"
     "\"field\":\"c_json\"}"},
    {"c_geom",
     {CDCD_T_GEOMETRY, -1, -1, NULL},
     {{C_GEOM("\001\002\000\000\000\002\000\000\000\000\000\000\000\000\000\000\000\000\000\000\000"
              "\000\000\000\000\000\000\000\000\000\000\360\077\000\000\000\000\000\000\360\077",
              0),
       "{\"wkb\":\"AQIAAAACAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAPA/AAAAAAAA8D8=\",\"srid\":null}"},
      {C_GEOM(
           "\001\001\000\000\000\000\000\000\000\000\000\000\100\000\000\000\000\000\000\360\077",
           4326),
       "{\"wkb\":\"AQEAAAAAAAAAAAAAQAAAAAAAAPA/\",\"srid\":4326}"},
      {C_GEOM("\001\007\000\000\000\000\000\000\000", 0),
       "{\"wkb\":\"AQcAAAAAAAAA\",\"srid\":null}"}},
     "{\"type\":\"struct\",\"fields\":[{\"type\":\"bytes\",\"optional\":false,\"field\":\"wkb\"},{"
     "\"type\":\"int32\",\"optional\":true,\"field\":\"srid\"}],\"optional\":true,\"name\":\"io."
     "debezium.data.geometry.Geometry\",\"version\":1,\"doc\":\"Geometry\",\"field\":\"c_geom\"}"},
    {"c_point",
     {CDCD_T_POINT, -1, -1, NULL},
     {{C_LIST(2, C_FLOAT("1.5"), C_FLOAT("-2.25")),
       "{\"x\":1.5,\"y\":-2.25,\"wkb\":\"AQEAAAAAAAAAAAD4PwAAAAAAAALA\",\"srid\":null}"},
      {C_LIST(2, C_FLOAT("1e100"), C_FLOAT("-1e100")),
       "{\"x\":1.0E100,\"y\":-1.0E100,\"wkb\":\"AQEAAAB9w5QlrUmyVH3DlCWtSbLU\",\"srid\":null}"},
      {C_LIST(2, C_FLOAT("0.0"), C_FLOAT("0.0")),
       "{\"x\":0.0,\"y\":0.0,\"wkb\":\"AQEAAAAAAAAAAAAAAAAAAAAAAAAA\",\"srid\":null}"}},
     "{\"type\":\"struct\",\"fields\":[{\"type\":\"double\",\"optional\":false,\"field\":\"x\"},{"
     "\"type\":\"double\",\"optional\":false,\"field\":\"y\"},{\"type\":\"bytes\",\"optional\":"
     "true,\"field\":\"wkb\"},{\"type\":\"int32\",\"optional\":true,\"field\":\"srid\"}],"
     "\"optional\":true,\"name\":\"io.debezium.data.geometry.Point\",\"version\":1,\"doc\":"
     "\"Geometry (POINT)\",\"field\":\"c_point\"}"},
    {"c_ls",
     {CDCD_T_GEOMETRY, -1, -1, NULL},
     {{C_GEOM("\001\002\000\000\000\003\000\000\000\000\000\000\000\000\000\000\000\000\000\000\000"
              "\000\000\000\000\000\000\000\000\000\000\360\077\000\000\000\000\000\000\360\077\000"
              "\000\000\000\000\000\000\100\000\000\000\000\000\000\000\100",
              0),
       "{\"wkb\":\"AQIAAAADAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAPA/"
       "AAAAAAAA8D8AAAAAAAAAQAAAAAAAAABA\",\"srid\":null}"},
      {C_NULL, "null"},
      {C_NULL, "null"}},
     "{\"type\":\"struct\",\"fields\":[{\"type\":\"bytes\",\"optional\":false,\"field\":\"wkb\"},{"
     "\"type\":\"int32\",\"optional\":true,\"field\":\"srid\"}],\"optional\":true,\"name\":\"io."
     "debezium.data.geometry.Geometry\",\"version\":1,\"doc\":\"Geometry\",\"field\":\"c_ls\"}"},
    {"c_poly",
     {CDCD_T_GEOMETRY, -1, -1, NULL},
     {{C_GEOM("\001\003\000\000\000\002\000\000\000\005\000\000\000\000\000\000\000\000\000\000\000"
              "\000\000\000\000\000\000\000\000\000\000\000\000\000\000\020\100\000\000\000\000\000"
              "\000\000\000\000\000\000\000\000\000\020\100\000\000\000\000\000\000\020\100\000\000"
              "\000\000\000\000\000\000\000\000\000\000\000\000\020\100\000\000\000\000\000\000\000"
              "\000\000\000\000\000\000\000\000\000\005\000\000\000\000\000\000\000\000\000\360\077"
              "\000\000\000\000\000\000\360\077\000\000\000\000\000\000\000\100\000\000\000\000\000"
              "\000\360\077\000\000\000\000\000\000\000\100\000\000\000\000\000\000\000\100\000\000"
              "\000\000\000\000\360\077\000\000\000\000\000\000\000\100\000\000\000\000\000\000\360"
              "\077\000\000\000\000\000\000\360\077",
              0),
       "{\"wkb\":"
       "\"AQMAAAACAAAABQAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAQQAAAAAAAAAAAAAAAAAAAEEAAAAAAAAAQQAAAAAAAA"
       "AAAAAAAAAAAEEAAAAAAAAAAAAAAAAAAAAAABQAAAAAAAAAAAPA/AAAAAAAA8D8AAAAAAAAAQAAAAAAAAPA/"
       "AAAAAAAAAEAAAAAAAAAAQAAAAAAAAPA/AAAAAAAAAEAAAAAAAADwPwAAAAAAAPA/\",\"srid\":null}"},
      {C_NULL, "null"},
      {C_NULL, "null"}},
     "{\"type\":\"struct\",\"fields\":[{\"type\":\"bytes\",\"optional\":false,\"field\":\"wkb\"},{"
     "\"type\":\"int32\",\"optional\":true,\"field\":\"srid\"}],\"optional\":true,\"name\":\"io."
     "debezium.data.geometry.Geometry\",\"version\":1,\"doc\":\"Geometry\",\"field\":\"c_poly\"}"},
    {"c_mp",
     {CDCD_T_GEOMETRY, -1, -1, NULL},
     {{C_GEOM("\001\004\000\000\000\002\000\000\000\001\001\000\000\000\000\000\000\000\000\000\000"
              "\000\000\000\000\000\000\000\000\000\001\001\000\000\000\000\000\000\000\000\000\360"
              "\077\000\000\000\000\000\000\360\077",
              0),
       "{\"wkb\":\"AQQAAAACAAAAAQEAAAAAAAAAAAAAAAAAAAAAAAAAAQEAAAAAAAAAAADwPwAAAAAAAPA/"
       "\",\"srid\":null}"},
      {C_NULL, "null"},
      {C_NULL, "null"}},
     "{\"type\":\"struct\",\"fields\":[{\"type\":\"bytes\",\"optional\":false,\"field\":\"wkb\"},{"
     "\"type\":\"int32\",\"optional\":true,\"field\":\"srid\"}],\"optional\":true,\"name\":\"io."
     "debezium.data.geometry.Geometry\",\"version\":1,\"doc\":\"Geometry\",\"field\":\"c_mp\"}"},
    {"c_mls",
     {CDCD_T_GEOMETRY, -1, -1, NULL},
     {{C_GEOM("\001\005\000\000\000\002\000\000\000\001\002\000\000\000\002\000\000\000\000\000\000"
              "\000\000\000\000\000\000\000\000\000\000\000\000\000\000\000\000\000\000\000\360\077"
              "\000\000\000\000\000\000\360\077\001\002\000\000\000\002\000\000\000\000\000\000\000"
              "\000\000\000\100\000\000\000\000\000\000\000\100\000\000\000\000\000\000\010\100\000"
              "\000\000\000\000\000\010\100",
              0),
       "{\"wkb\":\"AQUAAAACAAAAAQIAAAACAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAPA/"
       "AAAAAAAA8D8BAgAAAAIAAAAAAAAAAAAAQAAAAAAAAABAAAAAAAAACEAAAAAAAAAIQA==\",\"srid\":null}"},
      {C_NULL, "null"},
      {C_NULL, "null"}},
     "{\"type\":\"struct\",\"fields\":[{\"type\":\"bytes\",\"optional\":false,\"field\":\"wkb\"},{"
     "\"type\":\"int32\",\"optional\":true,\"field\":\"srid\"}],\"optional\":true,\"name\":\"io."
     "debezium.data.geometry.Geometry\",\"version\":1,\"doc\":\"Geometry\",\"field\":\"c_mls\"}"},
    {"c_mpoly",
     {CDCD_T_GEOMETRY, -1, -1, NULL},
     {{C_GEOM("\001\006\000\000\000\001\000\000\000\001\003\000\000\000\001\000\000\000\004\000\000"
              "\000\000\000\000\000\000\000\000\000\000\000\000\000\000\000\000\000\000\000\000\000"
              "\000\000\360\077\000\000\000\000\000\000\000\000\000\000\000\000\000\000\360\077\000"
              "\000\000\000\000\000\360\077\000\000\000\000\000\000\000\000\000\000\000\000\000\000"
              "\000\000",
              0),
       "{\"wkb\":"
       "\"AQYAAAABAAAAAQMAAAABAAAABAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAADwPwAAAAAAAAAAAAAAAAAA8D8AAAAAA"
       "ADwPwAAAAAAAAAAAAAAAAAAAAA=\",\"srid\":null}"},
      {C_NULL, "null"},
      {C_NULL, "null"}},
     "{\"type\":\"struct\",\"fields\":[{\"type\":\"bytes\",\"optional\":false,\"field\":\"wkb\"},{"
     "\"type\":\"int32\",\"optional\":true,\"field\":\"srid\"}],\"optional\":true,\"name\":\"io."
     "debezium.data.geometry.Geometry\",\"version\":1,\"doc\":\"Geometry\",\"field\":\"c_mpoly\"}"},
    {"c_gc",
     {CDCD_T_GEOMETRY, -1, -1, NULL},
     {{C_GEOM("\001\007\000\000\000\002\000\000\000\001\001\000\000\000\000\000\000\000\000\000\360"
              "\077\000\000\000\000\000\000\360\077\001\002\000\000\000\002\000\000\000\000\000\000"
              "\000\000\000\000\000\000\000\000\000\000\000\000\000\000\000\000\000\000\000\360\077"
              "\000\000\000\000\000\000\360\077",
              0),
       "{\"wkb\":\"AQcAAAACAAAAAQEAAAAAAAAAAADwPwAAAAAAAPA/"
       "AQIAAAACAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAPA/AAAAAAAA8D8=\",\"srid\":null}"},
      {C_NULL, "null"},
      {C_NULL, "null"}},
     "{\"type\":\"struct\",\"fields\":[{\"type\":\"bytes\",\"optional\":false,\"field\":\"wkb\"},{"
     "\"type\":\"int32\",\"optional\":true,\"field\":\"srid\"}],\"optional\":true,\"name\":\"io."
     "debezium.data.geometry.Geometry\",\"version\":1,\"doc\":\"Geometry\",\"field\":\"c_gc\"}"},
    {"c_vec",
     {CDCD_T_VECTOR32, -1, -1, NULL},
     {{C_LIST(4, C_FLOAT("1"), C_FLOAT("2.5"), C_FLOAT("-3"), C_FLOAT("0.1")),
       "[1.0,2.5,-3.0,0.1]"},
      {C_LIST(4, C_FLOAT("3.4e38"), C_FLOAT("-3.4e38"), C_FLOAT("0"), C_FLOAT("1")),
       "[3.4E38,-3.4E38,0.0,1.0]"},
      {C_LIST(1, C_FLOAT("0")), "[0.0]"}},
     "{\"type\":\"array\",\"items\":{\"type\":\"float\",\"optional\":false},\"optional\":true,"
     "\"name\":\"io.debezium.data.FloatVector\",\"version\":1,\"field\":\"c_vec\"}"},
    {"c_gs",
     {CDCD_T_INT32, -1, -1, NULL},
     {{C_INT(202), "202"}, {C_INT(204), "204"}, {C_INT(206), "206"}},
     "{\"type\":\"int32\",\"optional\":true,\"field\":\"c_gs\"}"},
    {"c_gv",
     {CDCD_T_INT32, -1, -1, NULL},
     {{C_INT(303), "303"}, {C_INT(306), "306"}, {C_INT(309), "309"}},
     "{\"type\":\"int32\",\"optional\":true,\"field\":\"c_gv\"}"},
    {"c_inv",
     {CDCD_T_INT32, -1, -1, NULL},
     {{C_INT(5), "5"}, {C_INT(5), "5"}, {C_INT(5), "5"}},
     "{\"type\":\"int32\",\"optional\":true,\"default\":5,\"field\":\"c_inv\"}"},
};
#define NCASES (sizeof cases / sizeof *cases)

#endif
