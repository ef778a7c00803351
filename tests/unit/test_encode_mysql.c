/* MySQL's types: a table of all of them, then what becomes of values that have no form there. */
#include "../support/mysql_types.h"

#include <cdcd/log.h>

static struct cdcd_schema *make_table(const char *table, const struct et_column *columns,
                                      uint32_t n)
{
    struct cdcd_schema *s = et_schema(table, columns, n);
    s->db = "cdc";
    s->schema = "";
    return s;
}

static struct cdcd_schema *all_types(void)
{
    struct et_column columns[NCASES];
    for (size_t i = 0; i < NCASES; i++)
        columns[i] = (struct et_column){.name = cases[i].name,
                                        .type = cases[i].is.type,
                                        .length = cases[i].is.length,
                                        .scale = cases[i].is.scale,
                                        .labels = cases[i].is.labels,
                                        .required = i == 0,
                                        .key = i == 0};
    return make_table("types_t", columns, NCASES);
}

static bool has(struct cdcd_slice s, const char *text)
{
    return s.ptr && memmem(s.ptr, s.len, text, strlen(text));
}

static void must_have(struct cdcd_slice s, const char *text)
{
    if (!has(s, text))
        fail_msg("%.*s\nlacks %s", (int)s.len, s.ptr ? s.ptr : "", text);
}

static void rows_of_every_type(void **state)
{
    struct cdcd_debezium_config cfg = et_config();
    struct et t;
    (void)state;
    et_open_source(&t, &cfg, "srv", false, &et_mysql);
    struct cdcd_schema *s = all_types();
    struct cdcd_cell cells[3][NCASES];
    for (size_t r = 0; r < 3; r++) {
        for (size_t i = 0; i < NCASES; i++)
            cells[r][i] = cases[i].rows[r].cell;
        et_event(&t, CDCD_OP_CREATE, s, NULL, cells[r])->source = NULL;
    }
    et_encode(&t);
    for (unsigned r = 0; r < 3; r++) {
        struct cdcd_buf want;
        cdcd_buf_init(&want, 0);
        for (size_t i = 0; i < NCASES; i++) {
            cdcd_buf_clear(&want);
            cdcd_buf_addf(&want, "%s\"%s\":%s%s", i ? "," : "\"after\":{", cases[i].name,
                          cases[i].rows[r].json, i + 1 < NCASES ? "," : "},\"source\"");
            must_have(et_record(&t, r)->value, cdcd_buf_cstr(&want));
        }
        cdcd_buf_free(&want);
    }
    et_slice_is(et_record(&t, 0)->topic->name, "srv.cdc.types_t");
    cdcd_schema_unref(s);
    et_close(&t);
}

static void schemas_of_every_type(void **state)
{
    struct cdcd_debezium_config cfg = et_config();
    struct et t;
    struct cdcd_cell cells[NCASES];
    (void)state;
    cfg.schemas_enable = true;
    et_open_source(&t, &cfg, "srvs", false, &et_mysql);
    struct cdcd_schema *s = all_types();
    for (size_t i = 0; i < NCASES; i++)
        cells[i] = cases[i].rows[0].cell;
    s->columns[NCASES - 1].has_default = true; /* c_inv */
    s->columns[NCASES - 1].default_cell = &cells[1];
    cells[1] = cdcd_cell_int(5);
    et_event(&t, CDCD_OP_CREATE, s, NULL, cells)->source = NULL;
    et_encode(&t);
    for (size_t i = 0; i < NCASES; i++)
        must_have(et_record(&t, 0)->value, cases[i].schema);
    /* As Decimal, since int64 does not reach. */
    must_have(et_record(&t, 0)->value, "\"c_biu\":\"ASoF8gA=\"");
    cdcd_schema_unref(s);
    et_close(&t);
}

/* ---- one column under options ---- */

struct one {
    enum cdcd_type type;
    int32_t scale;
    bool required;
    struct cdcd_cell cell;
};

/* The value (a part of after, or of the key) as JSON; NULL: it is an error. */
static const char *encode_one(const struct cdcd_debezium_config *cfg, const struct one *c, bool key)
{
    static char text[8192];
    struct et t;
    struct et_column columns[] = {{.name = "k",
                                   .type = CDCD_T_INT32,
                                   .length = -1,
                                   .scale = -1,
                                   .required = true,
                                   .key = !key},
                                  {.name = "c",
                                   .type = c->type,
                                   .length = -1,
                                   .scale = c->scale,
                                   .required = c->required,
                                   .key = key}};
    struct cdcd_cell cells[] = {C_INT(1), c->cell};
    et_open_source(&t, cfg, "srv", false, &et_mysql);
    struct cdcd_schema *s = make_table("t", columns, 2);
    et_event(&t, CDCD_OP_CREATE, s, NULL, cells)->source = NULL;
    bool ok = cdcd_encoder_encode(t.encoder, t.batch, &t.err) == CDCD_OK;
    if (ok) {
        struct cdcd_slice v = key ? et_record(&t, 0)->key : et_record(&t, 0)->value;
        const char *from = memmem(v.ptr, v.len, "\"c\":", 4);
        if (cfg->schemas_enable)
            from = memmem(from, (size_t)(v.ptr + v.len - from), "\"c\":", 4);
        assert_non_null(from);
        from += 4;
        size_t n = (size_t)(v.ptr + v.len - from);
        const char *end = memchr(from, '}', n);
        assert_non_null(end);
        snprintf(text, sizeof text, "%.*s", (int)(end - from), from);
    } else {
        assert_int_equal(t.err.class, CDCD_ERR_DATA);
        snprintf(text, sizeof text, "%s", t.err.text);
    }
    cdcd_schema_unref(s);
    et_close(&t);
    return ok ? text : NULL;
}

static void one_is(const struct cdcd_debezium_config *cfg, const struct one *c, bool key,
                   const char *want)
{
    const char *is = encode_one(cfg, c, key);
    if ((!is) != (!want) || (is && strcmp(is, want) != 0))
        fail_msg("got %s, expected %s", is ? is : "an error", want ? want : "an error");
}

static void unsigned_numbers(void **state)
{
    static const struct {
        int mode;
        bool schemas;
        uint64_t value;
        const char *json;
    } table[] = {
        {CDCD_UNSIGNED_EXACT, false, 0, "0"},
        {CDCD_UNSIGNED_EXACT, false, UINT64_MAX, "18446744073709551615"},
        {CDCD_UNSIGNED_EXACT, false, UINT64_C(1) << 63, "9223372036854775808"},
        {CDCD_UNSIGNED_EXACT, true, UINT64_MAX, "\"AP//////////\""},
        {CDCD_UNSIGNED_LONG, false, UINT64_MAX, "-1"},
        {CDCD_UNSIGNED_LONG, false, UINT64_C(1) << 63, "-9223372036854775808"},
        {CDCD_UNSIGNED_LONG, true, 5000000000, "5000000000"},
        {CDCD_UNSIGNED_PRECISE, false, 0, "\"AA==\""},
        {CDCD_UNSIGNED_PRECISE, false, 127, "\"fw==\""},
        {CDCD_UNSIGNED_PRECISE, false, 128, "\"AIA=\""},
        {CDCD_UNSIGNED_PRECISE, true, UINT64_C(1) << 63, "\"AIAAAAAAAAAA\""},
    };
    (void)state;
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        struct cdcd_debezium_config cfg = et_config();
        struct one c = {CDCD_T_UINT64, -1, true, C_UINT(table[i].value)};
        cfg.unsigned_mode = table[i].mode;
        cfg.schemas_enable = table[i].schemas;
        one_is(&cfg, &c, false, table[i].json);
        one_is(&cfg, &c, true, table[i].json);
    }
}

static void schema_of_unsigned(void **state)
{
    static const char *const types[] = {
        [CDCD_UNSIGNED_EXACT] = "{\"type\":\"bytes\",\"optional\":false,\"name\":"
                                "\"org.apache.kafka.connect.data.Decimal\",\"version\":1,"
                                "\"parameters\":{\"scale\":\"0\"},\"default\":\"BQ==\","
                                "\"field\":\"u\"}",
        [CDCD_UNSIGNED_LONG] = ("{\"type\":\"int64\",\"optional\":false,\"default\":5,\"field\":"
                                "\"u\"}"),
        [CDCD_UNSIGNED_PRECISE] = "\"parameters\":{\"scale\":\"0\"},\"default\":\"BQ==\"",
    };
    static const struct et_column columns[] = {
        {.name = "u", .type = CDCD_T_UINT64, .length = -1, .scale = -1, .required = true}};
    static const struct cdcd_cell cell[] = {C_UINT(5)};
    (void)state;
    for (int mode = CDCD_UNSIGNED_EXACT; mode <= CDCD_UNSIGNED_PRECISE; mode++) {
        struct cdcd_debezium_config cfg = et_config();
        struct et t;
        cfg.schemas_enable = true;
        cfg.unsigned_mode = mode;
        et_open_source(&t, &cfg, "srv", false, &et_mysql);
        struct cdcd_schema *s = make_table("t", columns, 1);
        s->columns[0].has_default = true;
        s->columns[0].default_cell = cell;
        et_event(&t, CDCD_OP_CREATE, s, NULL, cell)->source = NULL;
        et_encode(&t);
        must_have(et_record(&t, 0)->value, types[mode]);
        cdcd_schema_unref(s);
        et_close(&t);
    }
}

/* ---- what is no date ---- */

static void zero_dates(void **state)
{
    static const struct {
        enum cdcd_type type;
        int32_t scale;
        int time_mode;
        const char *zero;
    } table[] = {
        {CDCD_T_DATE, -1, CDCD_TIME_ADAPTIVE, "0"},
        {CDCD_T_DATE, -1, CDCD_TIME_CONNECT, "0"},
        {CDCD_T_DATE, -1, CDCD_TIME_ISO, "\"1970-01-01Z\""},
        {CDCD_T_TIMESTAMP, 0, CDCD_TIME_ADAPTIVE, "0"},
        {CDCD_T_TIMESTAMP, 6, CDCD_TIME_ADAPTIVE, "0"},
        {CDCD_T_TIMESTAMP, 6, CDCD_TIME_NANOS, "0"},
        {CDCD_T_TIMESTAMP, 6, CDCD_TIME_CONNECT, "0"},
        {CDCD_T_TIMESTAMP, 3, CDCD_TIME_ISO, "\"1970-01-01T00:00:00Z\""},
        {CDCD_T_TIMESTAMPTZ, 0, CDCD_TIME_ADAPTIVE, "\"1970-01-01T00:00:00Z\""},
        {CDCD_T_TIMESTAMPTZ, 6, CDCD_TIME_ADAPTIVE, "\"1970-01-01T00:00:00Z\""},
    };
    (void)state;
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        struct cdcd_debezium_config cfg = et_config();
        struct one c = {table[i].type, table[i].scale, true, C_TEXT("2024-02-00 01:02:03")};
        cfg.time_mode = table[i].time_mode;
        for (int schemas = 0; schemas < 2; schemas++) {
            cfg.schemas_enable = schemas;
            cfg.zero_date_mode = CDCD_ZERO_DATE_CONVERT;
            c.required = true;
            one_is(&cfg, &c, false, table[i].zero);
            one_is(&cfg, &c, true, table[i].zero);
            c.required = false;
            one_is(&cfg, &c, false, "null");
            cfg.zero_date_mode = CDCD_ZERO_DATE_TEXT;
            one_is(&cfg, &c, false, schemas ? NULL : "\"2024-02-00 01:02:03\"");
            one_is(&cfg, &c, true, schemas ? NULL : "\"2024-02-00 01:02:03\"");
            cfg.zero_date_mode = CDCD_ZERO_DATE_FAIL;
            one_is(&cfg, &c, false, NULL);
        }
    }
    /* Anything else is no value of a time. */
    struct cdcd_debezium_config cfg = et_config();
    struct one c = {CDCD_T_TIME, 0, false, C_TEXT("x")};
    one_is(&cfg, &c, false, NULL);
}

static void zero_date_as_default(void **state)
{
    static const struct et_column columns[] = {
        {.name = "d", .type = CDCD_T_DATE, .length = -1, .scale = -1, .required = true},
        {.name = "o", .type = CDCD_T_DATE, .length = -1, .scale = -1},
        {.name = "ts", .type = CDCD_T_TIMESTAMPTZ, .length = -1, .scale = 0, .required = true}};
    static const struct cdcd_cell zero = C_TEXT("0000-00-00");
    static const struct cdcd_cell row[] = {C_DATE(1), C_DATE(2), C_TS(0, 0)};
    struct cdcd_debezium_config cfg = et_config();
    struct et t;
    (void)state;
    cfg.schemas_enable = true;
    et_open_source(&t, &cfg, "srv", false, &et_mysql);
    struct cdcd_schema *s = make_table("t", columns, 3);
    for (int i = 0; i < 3; i++) {
        s->columns[i].has_default = true;
        s->columns[i].default_cell = &zero;
    }
    s->columns[0].comment = "a \"comment\"";
    et_event(&t, CDCD_OP_CREATE, s, NULL, row)->source = NULL;
    et_encode(&t);
    must_have(et_record(&t, 0)->value,
              "{\"type\":\"int32\",\"optional\":false,\"name\":\"io.debezium.time.Date\","
              "\"version\":1,\"doc\":\"a \\\"comment\\\"\",\"default\":0,\"field\":\"d\"},{\"type\""
              ":\"int32\",\"optional\":true,\"name\":\"io.debezium.time.Date\",\"version\":1,"
              "\"field\":\"o\"},{\"type\":\"string\",\"optional\":false,\"name\":"
              "\"io.debezium.time.ZonedTimestamp\",\"version\":1,\"default\":"
              "\"1970-01-01T00:00:00Z\",\"field\":\"ts\"}");
    cdcd_schema_unref(s);
    et_close(&t);
}

/* ---- times beyond a day, and points ---- */

static void long_times(void **state)
{
    static const int64_t longest = INT64_C(3020399000000); /* 838:59:59 */
    static const struct {
        int mode, overflow;
        int64_t us;
        const char *json;
    } table[] = {
        {CDCD_TIME_ADAPTIVE, 0, -1, "-1"},
        {CDCD_TIME_ADAPTIVE_MICROS, 0, -longest, "-3020399000000"},
        {CDCD_TIME_MICROS, 0, longest, "3020399000000"},
        {CDCD_TIME_NANOS, 0, -longest, "-3020399000000000"},
        {CDCD_TIME_CONNECT, 0, INT64_C(86400000000), "86400000"},
        {CDCD_TIME_CONNECT, 0, -1000, "-1"},
        {CDCD_TIME_CONNECT, CDCD_OVERFLOW_ERROR, longest, NULL},
        {CDCD_TIME_CONNECT, CDCD_OVERFLOW_SATURATE, longest, "2147483647"},
        {CDCD_TIME_CONNECT, CDCD_OVERFLOW_SATURATE, -longest, "-2147483648"},
        {CDCD_TIME_ISO, 0, longest, "\"838:59:59Z\""},
        {CDCD_TIME_ISO, 0, -longest, "\"-838:59:59Z\""},
        {CDCD_TIME_ISO, 0, -1, "\"-00:00:00.000001Z\""},
    };
    (void)state;
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        struct cdcd_debezium_config cfg = et_config();
        cfg.time_mode = table[i].mode;
        cfg.time_overflow = table[i].overflow;
        for (int32_t digits = 0; digits <= 6; digits += 3) {
            struct one c = {CDCD_T_TIME, digits, false, C_TIME(table[i].us)};
            one_is(&cfg, &c, false, table[i].json);
        }
    }
}

static void points_with_a_reference(void **state)
{
    static const struct {
        struct cdcd_cell cell;
        const char *json;
    } table[] = {
        {C_GEOM("\1\1\0\0\0\0\0\0\0\0\0\370\77\0\0\0\0\0\0\2\300", 4326),
         "{\"x\":1.5,\"y\":-2.25,\"wkb\":\"AQEAAAAAAAAAAAD4PwAAAAAAAALA\",\"srid\":4326"},
        {C_GEOM("\0\0\0\0\1\77\370\0\0\0\0\0\0\300\2\0\0\0\0\0\0", 0),
         "{\"x\":1.5,\"y\":-2.25,\"wkb\":\"AAAAAAE/+AAAAAAAAMACAAAAAAAA\",\"srid\":null"},
        {C_GEOM("\1\1\0\0\0\0\0", 0), NULL},
    };
    struct cdcd_debezium_config cfg = et_config();
    (void)state;
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        struct one c = {CDCD_T_POINT, -1, false, table[i].cell};
        one_is(&cfg, &c, false, table[i].json);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_of_every_type), cmocka_unit_test(schemas_of_every_type),
        cmocka_unit_test(unsigned_numbers),   cmocka_unit_test(schema_of_unsigned),
        cmocka_unit_test(zero_dates),         cmocka_unit_test(zero_date_as_default),
        cmocka_unit_test(long_times),         cmocka_unit_test(points_with_a_reference),
    };
    cdcd_log_setup(CDCD_LOG_ERROR, false, "");
    return cmocka_run_group_tests(tests, NULL, NULL);
}
