/* Documents: modes of JSON, keys, headers, schemas, and what has no form. */
#include "../support/encode_document.h"

static struct cdcd_schema *ids;

static int make_schema(void **state)
{
    (void)state;
    ids = cdcd_schema_document("shop", "ids");
    return 0;
}

static int free_schema(void **state)
{
    (void)state;
    cdcd_schema_unref(ids);
    return 0;
}

static void open_mongodb(struct et *t, const struct cdcd_debezium_config *cfg)
{
    et_open_source(t, cfg, "srv", false, &et_mongodb);
}

static void must_have(struct cdcd_slice s, const char *text)
{
    if (!s.ptr || !memmem(s.ptr, s.len, text, strlen(text)))
        fail_msg("%.*s\nlacks %s", (int)s.len, s.ptr ? s.ptr : "", text);
}

static void error_has(const struct et *t, const char *text)
{
    if (!strstr(t->err.text, text))
        fail_msg("%s\nlacks %s", t->err.text, text);
}

static void header_is(const struct cdcd_record *r, const char *name, const char *value, bool json)
{
    const struct cdcd_header *h = et_header(r, name);
    assert_non_null(h);
    et_slice_is(h->value, value);
    assert_int_equal(h->json, json);
}

/* {"_id": 7, "v": 1} with a 64-bit _id. */
static const char seven[] = "\7\0\0\0\0\0\0\0";
static const char small[] = "\x19\0\0\0\x12_id\0\7\0\0\0\0\0\0\0\x10v\0\1\0\0\0";

static struct cdcd_cell seven_id(void)
{
    return cdcd_cell_bson(0x12, seven, 8);
}
static struct cdcd_slice small_document(void)
{
    return (struct cdcd_slice){small, sizeof(small)};
}

/* ---- json.serialization.mode ---- */

struct mode_case {
    enum cdcd_document_mode mode;
    const char *key, *document, *updated;
};
static const struct mode_case mode_cases[] = {
    {CDCD_DOCUMENT_LEGACY, "{\"id\":\"{\\\"$date\\\": \\\"2024-01-01T00:00:00Z\\\"}\"}",
     "{\\\"d\\\": {\\\"$date\\\": 1704067200000},\\\"l\\\": {\\\"$numberLong\\\": "
     "\\\"5\\\"},\\\"i\\\": 1}",
     "{\\\"d\\\": {\\\"$date\\\": \\\"2024-01-01T00:00:00Z\\\"}, \\\"l\\\": 5, \\\"i\\\": 1}"},
    {CDCD_DOCUMENT_STRICT, "{\"id\":\"{\\\"$date\\\": \\\"2024-01-01T00:00:00Z\\\"}\"}",
     "{\\\"d\\\": {\\\"$date\\\": 1704067200000},\\\"l\\\": {\\\"$numberLong\\\": "
     "\\\"5\\\"},\\\"i\\\": 1}",
     "{\\\"d\\\": {\\\"$date\\\": 1704067200000},\\\"l\\\": {\\\"$numberLong\\\": "
     "\\\"5\\\"},\\\"i\\\": 1}"},
    {CDCD_DOCUMENT_EXTENDED, "{\"id\":\"{\\\"$date\\\": \\\"2024-01-01T00:00:00Z\\\"}\"}",
     "{\\\"d\\\": {\\\"$date\\\": {\\\"$numberLong\\\": \\\"1704067200000\\\"}},\\\"l\\\": "
     "{\\\"$numberLong\\\": \\\"5\\\"},\\\"i\\\": {\\\"$numberInt\\\": \\\"1\\\"}}",
     "{\\\"d\\\": {\\\"$date\\\": {\\\"$numberLong\\\": \\\"1704067200000\\\"}},\\\"l\\\": "
     "{\\\"$numberLong\\\": \\\"5\\\"},\\\"i\\\": {\\\"$numberInt\\\": \\\"1\\\"}}"},
    {CDCD_DOCUMENT_RELAXED, "{\"id\":\"{\\\"$date\\\": \\\"2024-01-01T00:00:00Z\\\"}\"}",
     "{\\\"d\\\": {\\\"$date\\\": \\\"2024-01-01T00:00:00Z\\\"},\\\"l\\\": 5,\\\"i\\\": 1}",
     "{\\\"d\\\": {\\\"$date\\\": \\\"2024-01-01T00:00:00Z\\\"},\\\"l\\\": 5,\\\"i\\\": 1}"},
    {CDCD_DOCUMENT_PLAIN, "{\"id\":\"\\\"2024-01-01T00:00:00Z\\\"\"}",
     "{\\\"d\\\": \\\"2024-01-01T00:00:00Z\\\",\\\"l\\\": 5,\\\"i\\\": 1}",
     "{\\\"d\\\": \\\"2024-01-01T00:00:00Z\\\",\\\"l\\\": 5,\\\"i\\\": 1}"},
};

static void modes(void **state)
{
    static const int64_t date = 1704067200000;
    struct bson_build b;
    (void)state;
    bb_begin(&b);
    bb_date(&b, "d", date);
    bb_int64(&b, "l", 5);
    bb_int32(&b, "i", 1);
    struct cdcd_slice document = bb_end(&b);
    struct cdcd_update u = {.updated = document};
    for (size_t i = 0; i < sizeof(mode_cases) / sizeof(mode_cases[0]); i++) {
        const struct mode_case *c = &mode_cases[i];
        struct cdcd_debezium_config cfg = et_config();
        struct et t;
        cfg.document_mode = c->mode;
        open_mongodb(&t, &cfg);
        struct cdcd_cell *image = ed_image(&t, cdcd_cell_bson(9, (const char *)&date, 8), document);
        ed_event(&t, CDCD_OP_UPDATE, ids, image, image)->update = &u;
        et_encode(&t);
        char *want = cdcd_xasprintf("{\"before\":\"%s\",\"after\":\"%s\",\"updateDescription\":{"
                                    "\"removedFields\":null,\"updatedFields\":\"%s\","
                                    "\"truncatedArrays\":null}," ED_SOURCE ",\"op\":\"u\","
                                    "\"ts_ms\":0,\"transaction\":null}",
                                    c->document, c->document, c->updated);
        et_slice_is(et_record(&t, 0)->key, c->key);
        ed_value_is(et_record(&t, 0)->value, want);
        free(want);
        et_close(&t);
    }
    bb_free(&b);
}

/* ---- operations ---- */

#define SMALL_TEXT "\"{\\\"_id\\\": {\\\"$numberLong\\\": \\\"7\\\"},\\\"v\\\": 1}\""
#define END(op)    ED_SOURCE ",\"op\":\"" op "\",\"ts_ms\":0,\"transaction\":null}"

static void operations(void **state)
{
    struct cdcd_debezium_config cfg = et_config();
    struct et t;
    (void)state;
    open_mongodb(&t, &cfg);
    struct cdcd_cell *full = ed_image(&t, seven_id(), small_document());
    struct cdcd_cell *bare = ed_image(&t, seven_id(), (struct cdcd_slice){NULL, 0});
    ed_event(&t, CDCD_OP_CREATE, ids, NULL, full);
    ed_event(&t, CDCD_OP_READ, ids, NULL, full);
    ed_event(&t, CDCD_OP_UPDATE, ids, full, full); /* a replacement, with its pre-image */
    ed_event(&t, CDCD_OP_UPDATE, ids, bare, bare);
    ed_event(&t, CDCD_OP_DELETE, ids, full, NULL);
    ed_event(&t, CDCD_OP_DELETE, ids, bare, NULL);
    et_encode(&t);
    static const char *const values[] = {
        "{\"before\":null,\"after\":" SMALL_TEXT ",\"updateDescription\":null," END("c"),
        "{\"before\":null,\"after\":" SMALL_TEXT ",\"updateDescription\":null," END("r"),
        "{\"before\":" SMALL_TEXT ",\"after\":" SMALL_TEXT ",\"updateDescription\":null," END("u"),
        "{\"before\":null,\"after\":null,\"updateDescription\":null," END("u"),
        "{\"before\":" SMALL_TEXT ",\"after\":null,\"updateDescription\":null," END("d"),
        NULL,
        "{\"before\":null,\"after\":null,\"updateDescription\":null," END("d"),
        NULL,
    };
    size_t bytes = 0;
    assert_int_equal(t.batch->nrecords, 8);
    for (unsigned i = 0; i < 8; i++) {
        const struct cdcd_record *r = et_record(&t, i);
        et_slice_is(r->topic->name, "srv.shop.ids");
        assert_true(r->topic->keyed);
        et_slice_is(r->key, "{\"id\":\"7\"}");
        if (values[i])
            ed_value_is(r->value, values[i]);
        else
            assert_null(r->value.ptr);
        assert_int_equal(r->timestamp_ms, ed_wall_ms);
        bytes += r->key.len + r->value.len;
    }
    assert_int_equal(t.batch->bytes, bytes);
    et_close(&t);
}

static void left_out(void **state)
{
    static char *skipped[] = {(char *)"u", (char *)"r"};
    struct cdcd_debezium_config cfg = {.skipped_operations = {skipped, 2}};
    struct et t;
    (void)state;
    open_mongodb(&t, &cfg);
    struct cdcd_cell *full = ed_image(&t, seven_id(), small_document());
    ed_event(&t, CDCD_OP_READ, ids, NULL, full);
    ed_event(&t, CDCD_OP_UPDATE, ids, NULL, full);
    ed_event(&t, CDCD_OP_DELETE, ids, full, NULL);
    et_encode(&t);
    assert_int_equal(t.batch->nrecords, 1); /* and no tombstone */
    must_have(et_record(&t, 0)->value, "\"op\":\"d\"");
    et_close(&t);
}

/* ---- what an update changed ---- */

static void descriptions(void **state)
{
    static const struct cdcd_slice removed[] = {{"a.b", 3}, {"q\"\n", 3}, {"x\xff", 2}};
    static const struct cdcd_truncated truncated[] = {{{"arr", 3}, 0}, {{"o.list", 6}, 12}};
    struct bson_build b;
    struct cdcd_debezium_config cfg = et_config();
    struct et t;
    (void)state;
    bb_begin(&b);
    struct cdcd_update u = {.updated = bb_end(&b),
                            .removed = removed,
                            .nremoved = 3,
                            .truncated = truncated,
                            .ntruncated = 2};
    open_mongodb(&t, &cfg);
    struct cdcd_cell *bare = ed_image(&t, seven_id(), (struct cdcd_slice){NULL, 0});
    ed_event(&t, CDCD_OP_UPDATE, ids, NULL, bare)->update = &u;
    et_encode(&t);
    ed_value_is(et_record(&t, 0)->value,
                "{\"before\":null,\"after\":null,\"updateDescription\":{\"removedFields\":[\"a.b\","
                "\"q\\\"\\n\",\"x\xef\xbf\xbd\"],\"updatedFields\":\"{}\",\"truncatedArrays\":["
                "{\"field\":\"arr\",\"size\":0},{\"field\":\"o.list\",\"size\":12}]}," END("u"));
    et_close(&t);
    bb_free(&b);
}

static void headers(void **state)
{
    struct bson_build b;
    struct cdcd_debezium_config cfg = et_config();
    struct et t;
    (void)state;
    bb_begin(&b);
    bb_open(&b, 4, "a.b.0");
    bb_string(&b, "0", "a.b");
    bb_int32(&b, "1", 0);
    bb_close(&b);
    struct cdcd_update u = {.updated = small_document(), .ambiguous = bb_end(&b)};
    cfg.extended_headers = true;
    open_mongodb(&t, &cfg);
    struct cdcd_cell *full = ed_image(&t, seven_id(), small_document());
    ed_event(&t, CDCD_OP_CREATE, ids, NULL, full);
    struct cdcd_event *ev = ed_event(&t, CDCD_OP_UPDATE, ids, NULL, full);
    ev->update = &u;
    ev->after_lookup = true;
    ev->pos.ordinal = 2;
    ev = ed_event(&t, CDCD_OP_DELETE, ids, full, NULL);
    ev->pos = (struct cdcd_pos){.commit = UINT64_MAX, .ordinal = 3, .stream = true};
    et_encode(&t);
    const struct cdcd_record *r = et_record(&t, 0);
    assert_int_equal(r->nheaders, 5);
    header_is(r, "cdcd.pos", "6B0CA65C00000008-1-0000000000000004", false);
    header_is(r, "__debezium.context.connectorName", "mongodb", false);
    header_is(r, "__debezium.context.connectorLogicalName", "srv", false);
    header_is(r, "__debezium.context.taskId", "0", true);
    assert_int_equal(et_header(r, "cdcd.schema")->value.len, 16);
    r = et_record(&t, 1);
    assert_int_equal(r->nheaders, 7);
    header_is(r, "cdcd.after", "lookup", false);
    header_is(r, "cdcd.paths", "{\"a.b.0\": [\"a.b\",0]}", true);
    header_is(r, "cdcd.pos", "6B0CA65C00000008-1-0000000000000008", false);
    r = et_record(&t, 3); /* the tombstone */
    assert_int_equal(r->nheaders, 5);
    header_is(r, "cdcd.pos", "FFFFFFFFFFFFFFFF-1-000000000000000D", false);
    et_close(&t);
    bb_free(&b);
}

static void transactions(void **state)
{
    struct cdcd_debezium_config cfg = et_config();
    struct et t;
    (void)state;
    open_mongodb(&t, &cfg);
    struct cdcd_cell *full = ed_image(&t, seven_id(), small_document());
    struct cdcd_event *ev = ed_event(&t, CDCD_OP_CREATE, ids, NULL, full);
    ev->tx_id = cdcd_slice_str("{\"id\": 1}:14");
    ev->total_order = 3;
    ev->data_collection_order = 2;
    et_encode(&t);
    ed_value_is(et_record(&t, 0)->value,
                "{\"before\":null,\"after\":" SMALL_TEXT ",\"updateDescription\":null," ED_SOURCE
                ",\"op\":\"c\",\"ts_ms\":0,\"transaction\":{\"id\":\"{\\\"id\\\": 1}:14\","
                "\"total_order\":3,\"data_collection_order\":2}}");
    et_close(&t);
}

/* ---- schemas ---- */

#define STRING(opt, name) "{\"type\":\"string\",\"optional\":" opt ",\"field\":\"" name "\"}"
#define INT64(opt, name)  "{\"type\":\"int64\",\"optional\":" opt ",\"field\":\"" name "\"}"
#define INT32(opt, name)  "{\"type\":\"int32\",\"optional\":" opt ",\"field\":\"" name "\"}"
#define JSON_TEXT(name)                                                                     \
    "{\"type\":\"string\",\"optional\":true,\"name\":\"io.debezium.data.Json\",\"version\"" \
    ":1,\"field\":\"" name "\"}"

static const char key_schema[] = "{\"schema\":{\"type\":\"struct\",\"fields\":[" STRING(
    "false",
    "id") "],\"optional\":false,\"name\":\"srv.shop.ids.Key\"},\"payload\":{\"id\":\"7\"}}";

static const char value_schema[] = "{\"schema\":{\"type\":\"struct\",\"fields\":[" JSON_TEXT(
    "befor"
    "e") "," JSON_TEXT("after") ","
                                "{\"type\":\"struct\",\"fields\":["
                                "{\"type\":\"array\",\"items\":{\"type\":\"string\",\"optional\":"
                                "false},\"optional\":"
                                "true,"
                                "\"field\":\"removedFields\"}," JSON_TEXT(
                                    "updatedFields") ","
                                                     "{\"type\":\"array\",\"items\":{\"type\":"
                                                     "\"struct\",\"fields\":"
                                                     "[" STRING("false", "field") "," INT32(
                                                         "false",
                                                         "size") "],\"optional\":false,\"name\":"
                                                                 "\"io.debezium.connector.mongodb."
                                                                 "changestream."
                                                                 "truncatedarray\",\"version\":1},"
                                                                 "\"optional\":true,\"field\":"
                                                                 "\"truncatedArrays\"}],"
                                                                 "\"optional\":true,\"name\":"
                                                                 "\"io.debezium.connector.mongodb."
                                                                 "changestream."
                                                                 "updatedescription\",\"version\":"
                                                                 "1,"
                                                                 "\"field\":\"updateDescription\"},"
                                                                 "{\"type\":\"struct\",\"fields\":"
                                                                 "[" STRING("false", "version") "," STRING("false", "connector") "," STRING("false", "name") "," INT64(
                                                                     "false",
                                                                     "ts_ms") ","
                                                                              "{\"type\":"
                                                                              "\"string\","
                                                                              "\"optional\""
                                                                              ":true,"
                                                                              "\"name\":"
                                                                              "\"io."
                                                                              "debezium."
                                                                              "data.Enum\","
                                                                              "\"version\":"
                                                                              "1,"
                                                                              "\"parameters"
                                                                              "\":{"
                                                                              "\"allowed\":"
                                                                              "\"true,"
                                                                              "first,first_"
                                                                              "in_data_"
                                                                              "collection,"
                                                                              "last_in_"
                                                                              "data_"
                                                                              "collection,"
                                                                              "last,false,"
                                                                              "incremental"
                                                                              "\"},"
                                                                              "\"default\":"
                                                                              "\"false\","
                                                                              "\"field\":"
                                                                              "\"snapshot\""
                                                                              "}," STRING("false", "db") "," STRING(
                                                                                  "true", "sequenc"
                                                                                          "e") "," INT64("true",
                                                                                                         "ts_us") "," INT64("true",
                                                                                                                            "ts_ns") "," STRING("false",
                                                                                                                                                "collection") "," INT32("false",
                                                                                                                                                                        "ord") "," STRING("true",
                                                                                                                                                                                          "lsid") "," INT64("true", "txnNumber") "," INT64("true",
                                                                                                                                                                                                                                           "wallTime") "],\"optional\":false,\"name\":\"io.debezium.connector.mongo.Source\",\"version\":1,"
                                                                                                                                                                                                                                                       "\"field\":\"source\"}," STRING("true", "op") "," INT64("true", "ts_ms") ","
                                                                                                                                                                                                                                                                                                                                "{\"type\":\"struct\",\"fields\":[" STRING("false", "id") "," INT64("false", "total_order") "," INT64(
                                                                                                                                                                                                                                                                                                                                    "false",
                                                                                                                                                                                                                                                                                                                                    "data_collection_order") "],\"optional\":true,\"name\":\"event.block\","
                                                                                                                                                                                                                                                                                                                                                             "\"version\":1,\"field\":\"transaction\"}],\"optional\":false,\"name\":"
                                                                                                                                                                                                                                                                                                                                                             "\"srv.shop.ids.Envelope\"},\"payload\":{\"before\":null,\"after\":" SMALL_TEXT
                                                                                                                                                                                                                                                                                                                                                             ",\"updateDescription\":null," END(
                                                                                                                                                                                                                                                                                                                                                                 "c") "}";

static void schemas(void **state)
{
    struct cdcd_debezium_config cfg = et_config();
    struct et t;
    (void)state;
    cfg.schemas_enable = true;
    open_mongodb(&t, &cfg);
    ed_event(&t, CDCD_OP_CREATE, ids, NULL, ed_image(&t, seven_id(), small_document()));
    et_encode(&t);
    et_slice_is(et_record(&t, 0)->key, key_schema);
    ed_value_is(et_record(&t, 0)->value, value_schema);
    et_close(&t);
}

static void avro_names(void **state)
{
    struct cdcd_debezium_config cfg = et_config();
    struct cdcd_schema *s = cdcd_schema_document("my-shop", "ids");
    struct et t;
    (void)state;
    cfg.schemas_enable = true;
    cfg.schema_name_mode = CDCD_NAMES_AVRO;
    open_mongodb(&t, &cfg);
    ed_event(&t, CDCD_OP_CREATE, s, NULL, ed_image(&t, seven_id(), small_document()));
    et_encode(&t);
    must_have(et_record(&t, 0)->key, "\"name\":\"srv.my_shop.ids.Key\"");
    must_have(et_record(&t, 0)->value, "\"name\":\"srv.my_shop.ids.Envelope\"");
    et_slice_is(et_record(&t, 0)->topic->name, "srv.my-shop.ids");
    et_close(&t);
    cdcd_schema_unref(s);
}

/* ---- schema changes ---- */

static void commands(void **state)
{
    static const struct cdcd_ddl ddl = {
        .db = {"shop", 4}, .table = {"ids", 3}, .text = {"{\"drop\": \"ids\"}", 15}};
    struct cdcd_debezium_config cfg = et_config();
    struct et t;
    (void)state;
    open_mongodb(&t, &cfg);
    struct cdcd_event *ev = ed_event(&t, CDCD_OP_DDL, ids, NULL, NULL);
    ev->schema = NULL;
    ev->ddl = &ddl;
    et_encode(&t);
    const struct cdcd_record *r = et_record(&t, 0);
    et_slice_is(r->topic->name, "srv");
    et_slice_is(r->key, "{\"databaseName\":\"shop\"}");
    must_have(r->value, "{" ED_SOURCE ",\"ts_ms\":");
    must_have(r->value, ",\"databaseName\":\"shop\",\"schemaName\":null,\"ddl\":\"{\\\"drop\\\": "
                        "\\\"ids\\\"}\",\"tableChanges\":[]}");
    et_close(&t);
}

/* ---- what has no form ---- */

static void fails(struct et *t, enum cdcd_error_class class, const char *text)
{
    assert_int_equal(cdcd_encoder_encode(t->encoder, t->batch, &t->err), CDCD_ERROR);
    assert_int_equal(t->err.class, class);
    error_has(t, text);
}

static void malformed(void **state)
{
    struct cdcd_debezium_config cfg = et_config();
    struct cdcd_slice cut = {small, sizeof(small) - 1};
    struct cdcd_update u = {.updated = cut}, odd = {.updated = small_document(), .ambiguous = cut};
    struct et t;
    (void)state;
    open_mongodb(&t, &cfg);
    struct cdcd_cell *good = ed_image(&t, seven_id(), small_document());
    ed_event(&t, CDCD_OP_CREATE, ids, NULL, good);
    ed_event(&t, CDCD_OP_CREATE, ids, NULL, ed_image(&t, seven_id(), cut));
    fails(&t, CDCD_ERR_DATA,
          "shop.ids (key {\"id\":\"7\"}, position 6B0CA65C00000008-1-0000000000000001): the "
          "document is no well-formed BSON: ");
    error_has(&t, "event.processing.failure.handling.mode");
    assert_int_equal(t.batch->nrecords, 1);

    cdcd_batch_reset(t.batch);
    ed_event(&t, CDCD_OP_DELETE, ids, ed_image(&t, seven_id(), cut), NULL);
    fails(&t, CDCD_ERR_DATA, "the document before the change");

    cdcd_batch_reset(t.batch);
    good = ed_image(&t, seven_id(), small_document());
    ed_event(&t, CDCD_OP_UPDATE, ids, NULL, good)->update = &u;
    fails(&t, CDCD_ERR_DATA, "what the update set");

    cdcd_batch_reset(t.batch);
    good = ed_image(&t, seven_id(), small_document());
    ed_event(&t, CDCD_OP_UPDATE, ids, NULL, good)->update = &odd;
    fails(&t, CDCD_ERR_DATA, "(its paths)");

    cdcd_batch_reset(t.batch);
    struct cdcd_cell short_id = cdcd_cell_bson(0x12, seven, 7);
    ed_event(&t, CDCD_OP_CREATE, ids, NULL, ed_image(&t, short_id, small_document()));
    fails(&t, CDCD_ERR_DATA, "shop.ids (key null, position ");
    error_has(&t, "the _id is no");
    assert_int_equal(t.batch->nrecords, 0);
    et_close(&t);
}

static void malformed_left_out(void **state)
{
    struct cdcd_debezium_config cfg = et_config();
    struct cdcd_slice cut = {small, sizeof(small) - 1};
    struct et t;
    (void)state;
    cfg.failure_mode = CDCD_FAILURE_SKIP;
    open_mongodb(&t, &cfg);
    struct cdcd_cell *good = ed_image(&t, seven_id(), small_document());
    ed_event(&t, CDCD_OP_CREATE, ids, NULL, ed_image(&t, seven_id(), cut));
    ed_event(&t, CDCD_OP_CREATE, ids, NULL, good);
    et_encode(&t);
    assert_int_equal(t.batch->nrecords, 1);
    assert_int_equal(cdcd_encoder_skipped(t.encoder), 1);
    ed_value_is(et_record(&t, 0)->value,
                "{\"before\":null,\"after\":" SMALL_TEXT ",\"updateDescription\":null," END("c"));
    et_close(&t);
}

static void no_other_keys(void **state)
{
    struct cdcd_debezium_config cfg = et_config();
    struct cdcd_schema *other = cdcd_schema_document("shop", "other");
    struct et t;
    (void)state;
    cfg.message_key_columns = (char *)"shop.ids:v";
    open_mongodb(&t, &cfg);
    ed_event(&t, CDCD_OP_CREATE, other, NULL, ed_image(&t, seven_id(), small_document()));
    et_encode(&t);
    assert_int_equal(t.batch->nrecords, 1);
    cdcd_batch_reset(t.batch);
    ed_event(&t, CDCD_OP_CREATE, ids, NULL, ed_image(&t, seven_id(), small_document()));
    fails(&t, CDCD_ERR_CONFIG, "message.key.columns: shop.ids is a collection of documents");
    et_close(&t);
    cdcd_schema_unref(other);
}

static void broken_contract(void **state)
{
    struct cdcd_debezium_config cfg = et_config();
    struct et t;
    (void)state;
    open_mongodb(&t, &cfg);
    ed_event(&t, CDCD_OP_CREATE, ids, NULL, NULL);
    fails(&t, CDCD_ERR_FATAL, "a change of shop.ids without an _id");
    cdcd_batch_reset(t.batch);
    struct cdcd_cell none = {.kind = CDCD_C_NULL};
    ed_event(&t, CDCD_OP_DELETE, ids, ed_image(&t, none, small_document()), NULL);
    fails(&t, CDCD_ERR_FATAL, "without an _id");
    cdcd_batch_reset(t.batch);
    ed_event(&t, CDCD_OP_TRUNCATE, ids, NULL, NULL);
    fails(&t, CDCD_ERR_FATAL, "please report it");
    et_close(&t);
}

/* The text of a document at the server's limit, all of it quotes, is four times as long. */
static void largest(void **state)
{
    const size_t n = (16u << 20) - 64;
    char *quotes = cdcd_xmalloc(n + 1);
    struct bson_build b;
    struct cdcd_debezium_config cfg = et_config();
    struct et t;
    (void)state;
    memset(quotes, '"', n);
    quotes[n] = 0;
    bb_begin(&b);
    bb_int32(&b, "_id", 1);
    bb_string(&b, "s", quotes);
    open_mongodb(&t, &cfg);
    ed_event(&t, CDCD_OP_CREATE, ids, NULL, ed_image(&t, seven_id(), bb_end(&b)));
    ed_event(&t, CDCD_OP_CREATE, ids, NULL, ed_image(&t, seven_id(), small_document()));
    et_encode(&t);
    struct cdcd_slice v = et_record(&t, 0)->value;
    static const char start[] = "{\"before\":null,\"after\":\"{\\\"_id\\\": 1,\\\"s\\\": \\\"";
    assert_memory_equal(v.ptr, start, sizeof(start) - 1);
    const char *p = v.ptr + sizeof(start) - 1;
    for (size_t i = 0; i < n; i++, p += 4)
        assert_memory_equal(p, "\\\\\\\"", 4);
    assert_memory_equal(p, "\\\"}\",\"updateDescription\":null,", 30);
    ed_value_is(et_record(&t, 1)->value,
                "{\"before\":null,\"after\":" SMALL_TEXT ",\"updateDescription\":null," END("c"));
    et_close(&t);
    bb_free(&b);
    free(quotes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(modes),
        cmocka_unit_test(operations),
        cmocka_unit_test(left_out),
        cmocka_unit_test(descriptions),
        cmocka_unit_test(headers),
        cmocka_unit_test(transactions),
        cmocka_unit_test(schemas),
        cmocka_unit_test(avro_names),
        cmocka_unit_test(commands),
        cmocka_unit_test(malformed),
        cmocka_unit_test(malformed_left_out),
        cmocka_unit_test(no_other_keys),
        cmocka_unit_test(broken_contract),
        cmocka_unit_test(largest),
    };
    return cmocka_run_group_tests(tests, make_schema, free_schema);
}
