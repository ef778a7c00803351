/* Schemas of rows as records of their own: when, with what, and which versions they bear. */
#include "../support/encode_document.h"

static const struct et_column columns[] = {
    {.name = "id", .type = CDCD_T_INT32, .length = -1, .scale = -1, .required = true, .key = true},
    {.name = "day", .type = CDCD_T_DATE, .length = -1, .scale = -1},
    {.name = "n", .type = CDCD_T_UINT64, .length = -1, .scale = -1},
    {.name = "amt", .type = CDCD_T_DECIMAL, .length = 8, .scale = 2},
};
static const struct cdcd_cell row[] = {C_INT(1), C_DATE(19782), C_UINT(7), C_DEC("1.50")};

#define KEY_FIELD "{\"type\":\"int32\",\"optional\":false,\"field\":\"id\"}"
#define KEY_SCHEMA                                \
    "{\"type\":\"struct\",\"fields\":[" KEY_FIELD \
    "],\"optional\":false,\"name\":\"srv.public.t.Key\"}"
#define AMT                                                                                     \
    "{\"type\":\"bytes\",\"optional\":true,\"name\":\"org.apache.kafka.connect.data.Decimal\"," \
    "\"version\":1,\"parameters\":{\"scale\":\"2\",\"connect.decimal.precision\":\"8\"},"       \
    "\"field\":"                                                                                \
    "\"amt\"}"
#define ROW_SCHEMA                                                                                 \
    "{\"type\":\"struct\",\"fields\":[" KEY_FIELD                                                  \
    ",{\"type\":\"int32\",\"optional\":true,\"name\":"                                             \
    "\"io.debezium.time.Date\",\"version\":1,\"field\":\"day\"},{\"type\":\"int64\",\"optional\":" \
    "true,\"name\":\"cdcd.data.UnsignedLong\",\"version\":1,\"field\":\"n\"}," AMT                 \
    "],\"optional\":"                                                                              \
    "true,\"name\":\"srv.public.t.Value\"}"

static void open_with(struct et *t, const struct cdcd_debezium_config *cfg,
                      const struct cdcd_source_ops *source, bool schemas)
{
    struct cdcd_encoder_env env = {
        .pipeline = "test", .topic_prefix = "srv", .source = source, .schemas = schemas};
    *t = (struct et){.cfg = *cfg, .batch = cdcd_batch_new()};
    if (cdcd_encoder_new(&t->cfg, &env, &t->encoder, &t->err) != CDCD_OK)
        fail_msg("%s", t->err.text);
}

static void open_default(struct et *t, bool schemas)
{
    struct cdcd_debezium_config cfg = et_config();
    open_with(t, &cfg, &et_source, schemas);
}

static void is_schema(struct et *t, unsigned n)
{
    et_slice_is(et_record(t, n)->topic->name, CDCD_SCHEMA_TOPIC);
}

static void is_data(struct et *t, unsigned n)
{
    et_slice_is(et_record(t, n)->topic->name, "srv.public.t");
}

static void before_the_first_row(void **state)
{
    (void)state;
    struct et t;
    struct cdcd_schema *s = et_schema("t", columns, 4);
    open_default(&t, true);
    et_event(&t, CDCD_OP_CREATE, s, NULL, row);
    et_event(&t, CDCD_OP_UPDATE, s, NULL, row);
    et_encode(&t);
    assert_int_equal(t.batch->nrecords, 3);
    is_schema(&t, 0);
    is_data(&t, 1);
    is_data(&t, 2);
    struct cdcd_record *r = et_record(&t, 0);
    assert_true(r->topic->keyed);
    assert_int_equal(r->timestamp_ms, 1795986694821);
    assert_int_equal(r->partition, -1);
    assert_int_equal(r->nheaders, 0);
    assert_int_equal(r->key.len, 16);
    et_slice_is(r->value,
                "{\"topic\":\"srv.public.t\",\"key\":" KEY_SCHEMA ",\"row\":" ROW_SCHEMA "}");
    const struct cdcd_header *h = et_header(et_record(&t, 1), "cdcd.schema");
    assert_true(cdcd_slice_eq(h->value, r->key));
    size_t bytes = 0;
    for (unsigned i = 0; i < 3; i++)
        bytes += et_record(&t, i)->key.len + et_record(&t, i)->value.len;
    assert_int_equal(t.batch->bytes, bytes);
    cdcd_schema_unref(s);
    et_close(&t);
}

static void once_a_session(void **state)
{
    (void)state;
    struct et t;
    struct cdcd_schema *s = et_schema("t", columns, 4);
    open_default(&t, true);
    for (int session = 0; session < 3; session++) {
        cdcd_encoder_session(t.encoder);
        for (int batch = 0; batch < 2; batch++) {
            cdcd_batch_reset(t.batch);
            et_event(&t, CDCD_OP_DELETE, s, row, NULL);
            et_encode(&t);
            assert_int_equal(t.batch->nrecords, batch ? 2 : 3);
            if (!batch)
                is_schema(&t, 0);
            is_data(&t, batch ? 0 : 1);
        }
    }
    cdcd_schema_unref(s);
    et_close(&t);
}

static void every_shape(void **state)
{
    (void)state;
    struct et t;
    struct cdcd_schema *a = et_schema("t", columns, 4), *b = et_schema("t", columns, 3);
    open_default(&t, true);
    et_event(&t, CDCD_OP_CREATE, a, NULL, row);
    et_event(&t, CDCD_OP_CREATE, b, NULL, row);
    et_event(&t, CDCD_OP_CREATE, a, NULL, row);
    et_encode(&t);
    assert_int_equal(t.batch->nrecords, 5);
    is_schema(&t, 0);
    is_data(&t, 1);
    is_schema(&t, 2);
    is_data(&t, 3);
    is_data(&t, 4);
    assert_false(cdcd_slice_eq(et_record(&t, 0)->key, et_record(&t, 2)->key));
    cdcd_schema_unref(a);
    cdcd_schema_unref(b);
    et_close(&t);
}

static void nobody_asked(void **state)
{
    (void)state;
    struct et t;
    struct cdcd_schema *s = et_schema("t", columns, 4);
    open_default(&t, false);
    et_event(&t, CDCD_OP_CREATE, s, NULL, row);
    et_encode(&t);
    assert_int_equal(t.batch->nrecords, 1);
    is_data(&t, 0);
    cdcd_schema_unref(s);
    et_close(&t);
}

static void no_table_no_schema(void **state)
{
    (void)state;
    struct et t;
    open_default(&t, true);
    et_event(&t, CDCD_OP_HEARTBEAT, NULL, NULL, NULL);
    et_encode(&t);
    assert_int_equal(t.batch->nrecords, 1);
    assert_null(et_header(et_record(&t, 0), "cdcd.schema"));
    et_close(&t);
}

/* A table without a key; and with schemas.enable the key of the record stays the bare version. */
static void without_key(void **state)
{
    (void)state;
    struct et t;
    static const struct et_column keyless[] = {
        {.name = "a", .type = CDCD_T_STRING, .length = -1, .scale = -1}};
    static const struct cdcd_cell cells[] = {C_TEXT("x")};
    struct cdcd_debezium_config cfg = et_config();
    struct cdcd_schema *s = et_schema("t", keyless, 1);
    cfg.schemas_enable = true;
    open_with(&t, &cfg, &et_source, true);
    et_event(&t, CDCD_OP_CREATE, s, NULL, cells);
    et_encode(&t);
    is_schema(&t, 0);
    assert_int_equal(et_record(&t, 0)->key.len, 16);
    et_slice_is(
        et_record(&t, 0)->value,
        "{\"topic\":\"srv.public.t\",\"key\":null,\"row\":{\"type\":\"struct\",\"fields\":["
        "{\"type\":\"string\",\"optional\":true,\"field\":\"a\"}],\"optional\":true,\"name\":"
        "\"srv.public.t.Value\"}}");
    cdcd_schema_unref(s);
    et_close(&t);
}

static void documents(void **state)
{
    (void)state;
    struct et t;
    static const int32_t id = 5;
    struct cdcd_debezium_config cfg = et_config();
    struct cdcd_schema *s = cdcd_schema_document("shop", "c");
    open_with(&t, &cfg, &et_mongodb, true);
    struct cdcd_cell *image = ed_image(&t, ed_int32(&id), (struct cdcd_slice){NULL, 0});
    ed_event(&t, CDCD_OP_DELETE, s, image, NULL);
    et_encode(&t);
    et_slice_is(et_record(&t, 0)->topic->name, CDCD_SCHEMA_TOPIC);
    et_slice_is(et_record(&t, 0)->value,
                "{\"topic\":\"srv.shop.c\",\"key\":{\"type\":\"struct\",\"fields\":[{\"type\":"
                "\"string\",\"optional\":false,\"field\":\"id\"}],\"optional\":false,\"name\":"
                "\"srv.shop.c.Key\"},\"row\":null}");
    cdcd_schema_unref(s);
    et_close(&t);
}

static struct cdcd_slice version_with(struct et *t, const struct cdcd_debezium_config *cfg,
                                      struct cdcd_schema *s)
{
    open_with(t, cfg, &et_source, true);
    et_event(t, CDCD_OP_CREATE, s, NULL, row);
    et_encode(t);
    return et_record(t, 0)->key;
}

/* What is written in another way has another version, though the table is the same: records of
 * before stay readable. */
static void versions_of_options(void **state)
{
    (void)state;
    struct et t[5];
    struct cdcd_debezium_config cfg[5];
    struct cdcd_slice v[5];
    struct cdcd_schema *s = et_schema("t", columns, 4);
    char text[17];
    for (int i = 0; i < 5; i++)
        cfg[i] = et_config();
    cfg[1].decimal_mode = CDCD_DECIMAL_STRING;
    cfg[2].time_mode = CDCD_TIME_ISO;
    cfg[3].message_key_columns = (char *)(uintptr_t) "public.t:day";
    cfg[4].tombstones_on_delete = false; /* no form */
    for (int i = 0; i < 5; i++)
        v[i] = version_with(&t[i], &cfg[i], s);
    /* By default it is that of the shape alone. */
    snprintf(text, sizeof text, "%016llX", (unsigned long long)s->version);
    et_slice_is(v[0], text);
    et_slice_is(v[4], text);
    for (int i = 0; i < 4; i++) {
        for (int k = 0; k < i; k++)
            assert_false(cdcd_slice_eq(v[i], v[k]));
    }
    for (int i = 0; i < 5; i++)
        et_close(&t[i]);
    cdcd_schema_unref(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(before_the_first_row),
        cmocka_unit_test(once_a_session),
        cmocka_unit_test(every_shape),
        cmocka_unit_test(nobody_asked),
        cmocka_unit_test(no_table_no_schema),
        cmocka_unit_test(without_key),
        cmocka_unit_test(documents),
        cmocka_unit_test(versions_of_options),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
