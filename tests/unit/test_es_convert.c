/* Records -> actions on an index: envelopes, tombstones, rows, documents of MongoDB, ids, versions,
 * what is left alone, and what is refused. */
#include "../support/es_test.h"

#define TOPIC "srv.public.t"

/* ---- envelopes ---- */

static void changes_and_deletes(void **state)
{
    (void)state;
    struct et t;
    et_init(&t);
    et_open(&t);
    const char *const ops[] = {"c", "r", "u"};
    for (int i = 0; i < 3; i++) {
        char *v = et_envelope(ops[i], "{\"id\":7,\"name\":\"a \\\"b\\\" \\u00e9\",\"n\":null,\"f\":"
                                      "1.50,\"big\":9223372036854775808}");
        et_give(&t, TOPIC, "{\"id\":7}", v);
        free(v);
        assert_int_equal(t.out.kind, ES_INDEX);
        et_is(t.out.index, TOPIC);
        et_is(t.out.id, "7");
        /* Nothing is known of the columns: all as it stands. */
        et_is(t.out.source, "{\"id\":7,\"name\":\"a \\\"b\\\" \\u00e9\",\"n\":null,\"f\":1.50,"
                            "\"big\":9223372036854775808}");
        assert_int_equal(t.out.version, 7 * 1000 + 500 + 3);
        assert_int_equal(t.out.nmissing, 0);
        assert_null(t.out.shape);
    }
    char *v = et_envelope("d", "null");
    et_give(&t, TOPIC, "{\"id\":7}", v);
    free(v);
    assert_int_equal(t.out.kind, ES_DELETE);
    et_is(t.out.id, "7");
    assert_int_equal(t.out.version, 7503);
    et_give(&t, TOPIC, "{\"id\":7}", NULL);
    assert_int_equal(t.out.kind, ES_DELETE);
    et_is(t.out.id, "7");
    et_give(&t, TOPIC, "{\"id\":7}", "null");
    assert_int_equal(t.out.kind, ES_DELETE);
    et_close(&t);
}

static void empty_row_and_odd_names(void **state)
{
    (void)state;
    struct et t;
    et_init(&t);
    et_open(&t);
    char *v = et_envelope("c", "{}");
    et_give(&t, TOPIC, "{\"id\":7}", v);
    et_is(t.out.source, "{}");
    free(v);
    /* Names that the servers keep for themselves; others with a _ are ordinary. */
    v = et_envelope("c", " { \"_id\" : 1 , \"_source\":2,\"_mine\":3, \"op\":4,\"payload\":5 } ");
    et_give(&t, TOPIC, "{\"_id\":1}", v);
    et_is(t.out.source, "{\"_id_\":1,\"_source_\":2,\"_mine\":3,\"op\":4,\"payload\":5}");
    free(v);
    et_close(&t);
}

static void nothing_to_index(void **state)
{
    (void)state;
    static const struct {
        const char *topic, *key, *value;
    } records[] = {
        {"__debezium-heartbeat.srv", "{\"serverName\":\"srv\"}", "{\"ts_ms\":1795991105004}"},
        {"hb.srv", "{\"serverName\":\"srv\"}", "{\"ts_ms\":1795991105004}"},
        {"srv.transaction", "{\"id\":\"1:2\"}",
         "{\"status\":\"BEGIN\",\"id\":\"1:2\",\"event_count\":null,\"data_collections\":null,"
         "\"ts_ms\":1}"},
        {"srv.transaction", "{\"id\":\"1:2\"}",
         "{\"status\":\"END\",\"id\":\"1:2\",\"event_count\":2,\"data_collections\":[],\"ts_ms\":"
         "1}"},
        {"srv.message", "{\"prefix\":\"p\"}",
         "{\"op\":\"m\",\"ts_ms\":1,\"source\":{},\"message\":{\"prefix\":\"p\",\"content\":\"\"}"
         "}"},
        {"srv", "{\"databaseName\":\"shop\"}",
         "{\"source\":{},\"ts_ms\":1,\"databaseName\":\"shop\",\"schemaName\":null,\"ddl\":\"DROP "
         "TABLE x\",\"tableChanges\":[]}"},
        {"__cdcd.state", "anything", "at all"},
    };
    struct et t;
    et_init(&t);
    et_open(&t);
    for (size_t i = 0; i < sizeof records / sizeof records[0]; i++) {
        et_give(&t, records[i].topic, records[i].key, records[i].value);
        assert_int_equal(t.out.kind, ES_NOTHING);
    }
    /* And with their schemas. */
    et_give(&t, "hb.srv",
            "{\"schema\":{\"type\":\"struct\",\"fields\":[{\"type\":\"string\","
            "\"field\":\"serverName\"}]},\"payload\":{\"serverName\":\"srv\"}}",
            "{\"schema\":{\"type\":\"struct\",\"fields\":[{\"type\":\"int64\",\"field\":\"ts_ms\"}"
            "]},\"payload\":{\"ts_ms\":1}}");
    assert_int_equal(t.out.kind, ES_NOTHING);
    et_close(&t);
}

static void refused(void **state)
{
    (void)state;
    static const struct {
        const char *key, *value, *text;
    } records[] = {
        {"{\"id\":1}", "{\"id\":1,", "no JSON"},
        {"{\"id\":1}", "", "no JSON"},
        {"{\"id\":1", "{\"op\":\"c\",\"after\":{}}", "key is no JSON"},
        {"{\"id\":1}", "[1]", "no envelope"},
        {"{\"id\":1}", "17", "no envelope"},
        {"{\"id\":1}", "{\"id\":1,\"name\":\"x\"}", "no envelope"},
        {"{\"id\":1}", "{\"op\":\"x\",\"after\":{}}", "none that is known"},
        {"{\"id\":1}", "{\"op\":5,\"after\":{}}", "no envelope"},
        {"{\"id\":1}", "{\"op\":\"c\",\"after\":null}", "no row in `after`"},
        {"{\"id\":1}", "{\"op\":\"u\"}", "no row in `after`"},
        {"{\"id\":1}", "{\"op\":\"c\",\"after\":[]}", "no row in `after`"},
        {NULL, "{\"op\":\"c\",\"after\":{\"a\":1}}", "the key is null"},
        {"null", "{\"op\":\"c\",\"after\":{\"a\":1}}", "the key is null"},
        {"{}", "{\"op\":\"c\",\"after\":{\"a\":1}}", "no columns"},
        {"{\"id\":\"\"}", "{\"op\":\"c\",\"after\":{\"id\":\"\"}}", "empty string"},
        {"{\"id\":\"\xff\"}", "{\"op\":\"c\",\"after\":{\"a\":1}}", "no valid UTF-8"},
        {"{\"id\":\"\xc0\xaf\"}", "{\"op\":\"c\",\"after\":{\"a\":1}}", "no valid UTF-8"},
        {"{\"id\":\"\xed\xa0\x80\"}", "{\"op\":\"c\",\"after\":{\"a\":1}}", "no valid UTF-8"},
        {"{\"id\":\"\xe4\xb8\"}", "{\"op\":\"c\",\"after\":{\"a\":1}}", "no valid UTF-8"},
        {"{\"id\":\"\\ud83d\"}", "{\"op\":\"c\",\"after\":{\"a\":1}}", "no valid UTF-8"},
        {"{\"id\":\"\\ude00\\ud83d\"}", "{\"op\":\"c\",\"after\":{\"a\":1}}", "no valid UTF-8"},
        {NULL, NULL, "the key is null"},
    };
    struct et t;
    et_init(&t);
    et_kafka(&t);
    et_open(&t);
    for (size_t i = 0; i < sizeof records / sizeof records[0]; i++) {
        assert_int_equal(et_try(&t, TOPIC, records[i].key, records[i].value), CDCD_ERROR);
        ET_FAILS(&t, CDCD_ERR_DATA, records[i].text, "topic srv.public.t, partition 3, offset 41",
                 "(key ");
    }
    et_close(&t);
    et_init(&t);
    et_open(&t);
    assert_int_equal(et_try(&t, TOPIC, "{\"id\":1}", "{}"), CDCD_ERROR);
    ET_FAILS(&t, CDCD_ERR_DATA, "cdcd.pos 0000000000000007-1-000000000000000C", "{\"id\":1}");
    et_close(&t);
}

/* ---- ids ---- */

static void id_is(struct et *t, const char *key, const char *id)
{
    et_give(t, TOPIC, key, NULL);
    et_is(t->out.id, id);
}

static void ids(void **state)
{
    (void)state;
    struct et t;
    et_init(&t);
    et_open(&t);
    char *v = et_envelope("c", "{}");
    et_give(&t, TOPIC, "{\"id\":1}", v); /* rows, so that {"id":"..."} is no document */
    free(v);
    id_is(&t, "{\"id\":\"\\ud83d\\ude00\"}", "\xf0\x9f\x98\x80");
    id_is(&t, "{\"id\":\"\xf0\x9f\x98\x80\"}", "\xf0\x9f\x98\x80");
    id_is(&t, "{\"id\":\"\\\\ud83d\"}", "\\ud83d");
    id_is(&t, "{\"id\":-9223372036854775808}", "-9223372036854775808");
    id_is(&t, "{\"id\":18446744073709551615}", "18446744073709551615");
    id_is(&t, "{\"n\":12.50}", "12.50");
    id_is(&t, "{\"id\":\"a b\"}", "a b");
    id_is(&t, "{\"id\":\"\\\"q\\\"\"}", "\"q\"");
    id_is(&t, "{\"id\":\"\\u00e9\\ud83d\\ude00\\n\"}", "\xc3\xa9\xf0\x9f\x98\x80\n");
    id_is(&t, "{\"id\":true}", "true");
    id_is(&t, "{\"a\":\"a\",\"b\":1}", "[\"a\",1]");
    id_is(&t, "{\"a\": \"x\\u00e9\\ud83d\\ude00\\u001f\\n\\\"\\\\/\\/\" , \"b\" : null}",
          "[\"x\xc3\xa9\xf0\x9f\x98\x80\\u001f\\n\\\"\\\\//\",null]");
    id_is(&t, "{\"a\":1.0,\"b\":[1, 2],\"c\":{\"x\": 1}}", "[1.0,[1,2],{\"x\":1}]");
    id_is(&t, "\"plain\"", "plain");
    id_is(&t, "17", "17");
    id_is(&t, "{\"schema\":\"public\",\"table\":\"t\"}", "[\"public\",\"t\"]");
    id_is(&t, "{\"schema\":\"s\",\"payload\":\"p\"}", "[\"s\",\"p\"]");
    et_close(&t);
}

/* 512 bytes are the servers' limit. */
static void long_ids(void **state)
{
    (void)state;
    struct et t;
    char key[700], text[600];
    et_init(&t);
    et_open(&t);
    memset(text, 'x', sizeof text);
    text[512] = 0;
    snprintf(key, sizeof key, "{\"k\":\"%s\"}", text);
    id_is(&t, key, text);
    text[512] = 'x';
    text[513] = 0;
    snprintf(key, sizeof key, "{\"k\":\"%s\"}", text);
    /* printf 'x%.0s' $(seq 513) | sha256sum */
    id_is(&t, key, "sha256:35ade0090e64e74d6ad04204009c23a4e34b82bdf0f4f317fbcc5f26f9b10241");
    et_close(&t);
}

/* With a schema the parts of a key are in plain form, as the columns are. */
static void typed_ids(void **state)
{
    (void)state;
    struct et t;
    et_init(&t);
    et_open(&t);
    id_is(&t,
          "{\"schema\":{\"type\":\"struct\",\"fields\":[{\"type\":\"int32\",\"name\":"
          "\"io.debezium.time.Date\",\"field\":\"d\"}]},\"payload\":{\"d\":19782}}",
          "2024-02-29");
    id_is(&t,
          "{\"schema\":{\"type\":\"struct\",\"fields\":[{\"type\":\"bytes\",\"name\":"
          "\"org.apache.kafka.connect.data.Decimal\",\"parameters\":{\"scale\":\"2\"},\"field\":"
          "\"n\"},{\"type\":\"int64\",\"name\":\"io.debezium.time.MicroTimestamp\",\"field\":"
          "\"ts\"},{\"type\":\"string\",\"field\":\"s\"}]},\"payload\":{\"n\":\"BOI=\",\"ts\":"
          "1709212455123456,\"s\":\"x\"}}",
          "[12.50,\"2024-02-29T13:14:15.123456\",\"x\"]");
    et_close(&t);
}

/* ---- versions ---- */

static void versions(void **state)
{
    (void)state;
    struct et t;
    et_init(&t);
    et_kafka(&t);
    et_open(&t);
    et_give(&t, TOPIC, "{\"id\":1}", NULL);
    assert_int_equal(t.out.version, 41);
    t.offset = 0;
    et_give(&t, TOPIC, "{\"id\":1}", NULL);
    assert_int_equal(t.out.version, 0);
    et_close(&t);

    et_init(&t);
    et_open(&t);
    t.headers[0].value = cdcd_slice_str("00000000000000ff-0-0000010000000004");
    et_give(&t, TOPIC, "{\"id\":1}", NULL);
    assert_int_equal(t.out.version, 255 * 1000 + (UINT64_C(1) << 38) + 1);
    static const char *const bad[] = {
        "", "0000000000000007-1-000000000000000", "0000000000000007-2-000000000000000C",
        "000000000000000G-1-000000000000000C", "0000000000000007+1-000000000000000C"};
    for (size_t i = 0; i < 5; i++) {
        t.headers[0].value = cdcd_slice_str(bad[i]);
        assert_int_equal(et_try(&t, TOPIC, "{\"id\":1}", NULL), CDCD_ERROR);
        ET_FAILS(&t, CDCD_ERR_DATA, "no header cdcd.pos");
    }
    t.nheaders = 0;
    assert_int_equal(et_try(&t, TOPIC, "{\"id\":1}", NULL), CDCD_ERROR);
    ET_FAILS(&t, CDCD_ERR_DATA, "no header cdcd.pos");
    et_close(&t);
}

static void impossible_versions(void **state)
{
    (void)state;
    struct et t;
    et_init(&t);
    t.env.version = NULL;
    et_open(&t);
    assert_int_equal(et_try(&t, TOPIC, "{\"id\":1}", NULL), CDCD_ERROR);
    ET_FAILS(&t, CDCD_ERR_CONFIG, "no positions");
    et_close(&t);
    et_init(&t);
    t.cfg.version_mode = ES_VERSION_OFFSET;
    et_open(&t);
    assert_int_equal(et_try(&t, TOPIC, "{\"id\":1}", NULL), CDCD_ERROR);
    ET_FAILS(&t, CDCD_ERR_CONFIG, "version: offset");
    et_close(&t);
    et_init(&t);
    t.cfg.version_mode = ES_VERSION_POSITION;
    t.env.version = NULL;
    assert_int_equal(es_converter_new(&t.cfg, &t.env, &t.c, &t.err), CDCD_ERROR);
    ET_FAILS(&t, CDCD_ERR_CONFIG, "version: position");
    cdcd_arena_free(&t.arena);
}

/* ---- truncates ---- */

static void truncates(void **state)
{
    (void)state;
    static const char value[] =
        "{\"before\":null,\"after\":null,\"source\":{\"connector\":\"postgresql\",\"name\":\"srv\","
        "\"schema\":\"public\",\"table\":\"t\"},\"op\":\"t\",\"ts_ms\":1}";
    struct et t;
    et_init(&t);
    et_open(&t);
    et_give(&t, TOPIC, NULL, value);
    assert_int_equal(t.out.kind, ES_EMPTY);
    et_is(t.out.index, TOPIC);
    assert_int_equal(t.out.version, 7503);
    /* Of a table whose topic is compacted. */
    et_give(&t, "srv.truncate", "{\"schema\":\"public\",\"table\":\"t\"}", value);
    assert_int_equal(t.out.kind, ES_EMPTY);
    et_is(t.out.index, TOPIC);
    et_close(&t);
    /* Offsets do not tell what was before. */
    et_init(&t);
    et_kafka(&t);
    et_open(&t);
    assert_int_equal(et_try(&t, "srv.truncate", "{\"schema\":\"public\",\"table\":\"t\"}", value),
                     CDCD_ERROR);
    ET_FAILS(&t, CDCD_ERR_DATA, "srv.public.t was truncated", "truncate: ignore");
    et_close(&t);
    et_init(&t);
    et_kafka(&t);
    t.cfg.truncate_mode = ES_TRUNCATE_IGNORE;
    et_open(&t);
    et_give(&t, "srv.truncate", "{\"schema\":\"public\",\"table\":\"t\"}", value);
    assert_int_equal(t.out.kind, ES_EMPTY);
    et_close(&t);
}

/* ---- values that did not change ---- */

#define PH   "\"__debezium_unavailable_value\""
#define PH64 "X19kZWJleml1bV91bmF2YWlsYWJsZV92YWx1ZQ=="

static void unchanged(void **state)
{
    (void)state;
    struct et t;
    et_init(&t);
    et_open(&t);
    char *v = et_envelope(
        "u",
        "{\"id\":1,\"txt\":" PH ",\"bin\":\"" PH64 "\",\"num\":{\"scale\":0,\"value\":\"" PH64
        "\"},\"hs\":\"{\\\"__debezium_unavailable_value\\\":\\\"__debezium_unavailable_value\\\"}"
        "\","
        "\"map\":{" PH ":" PH "},\"texts\":[" PH "],\"bins\":[\"" PH64 "\"],\"ints\":[95,95,100,"
        "101,98,101,122,105,117,109,95,117,110,97,118,97,105,108,97,98,108,101,95,118,97,108,117,"
        "101],\"uuids\":[\"b68a35a7-17ad-35b3-af2a-ae46edb4545a\"],\"geom\":{\"wkb\":\"" PH64
        "\",\"srid\":null},\"kept\":\"__debezium_unavailable_value!\",\"short\":\"x\",\"list\":["
        "\"a\"]}");
    et_give(&t, TOPIC, "{\"id\":1}", v);
    free(v);
    et_is(t.out.source, "{\"id\":1,\"kept\":\"__debezium_unavailable_value!\",\"short\":\"x\","
                        "\"list\":[\"a\"]}");
    static const char *const names[] = {"txt",   "bin",  "num",  "hs",    "map",
                                        "texts", "bins", "ints", "uuids", "geom"};
    assert_int_equal(t.out.nmissing, 10);
    for (int i = 0; i < 10; i++)
        et_is(t.out.missing[i], names[i]);
    et_close(&t);
}

static void row_that_follows(void **state)
{
    (void)state;
    struct et t;
    et_init(&t);
    et_open(&t);
    char *lacks = et_envelope("u", "{\"id\":1,\"a\":" PH "}");
    et_give(&t, TOPIC, "{\"id\":1}", lacks);
    assert_false(t.out.row_follows);
    t.headers[t.nheaders++] = (struct cdcd_header){.name = cdcd_slice_str("cdcd.row"),
                                                   .value = cdcd_slice_str("follows")};
    et_give(&t, TOPIC, "{\"id\":1}", lacks);
    assert_true(t.out.row_follows);
    assert_int_equal(t.out.nmissing, 1);
    free(lacks);
    et_close(&t);
}

static void give_with_key(struct et *t, const char *header, const char *other, const char *value)
{
    t->headers[t->nheaders++] = (struct cdcd_header){.name = cdcd_slice_str(header),
                                                     .value = cdcd_slice_str(other)};
    et_give(t, TOPIC, "{\"id\":1}", value);
    t->nheaders--;
}

/* The other id of a row whose key has changed; a header that is none says nothing. */
static void moved_rows(void **state)
{
    (void)state;
    struct et t;
    et_init(&t);
    et_open(&t);
    char *gone = et_envelope("d", "null"), *made = et_envelope("c", "{\"id\":1,\"a\":" PH "}");
    give_with_key(&t, "__debezium.newkey", "{\"id\":2}", gone);
    assert_int_equal(t.out.kind, ES_DELETE);
    assert_true(es_slice_is(t.out.moves_to, "2"));
    give_with_key(&t, "__debezium.oldkey", "{\"id\":3}", made);
    assert_true(es_slice_is(t.out.moved_from, "3"));
    give_with_key(&t, "__debezium.newkey", "{\"schema\":null,\"payload\":{\"id\":4}}", gone);
    assert_true(es_slice_is(t.out.moves_to, "4"));
    give_with_key(&t, "__debezium.newkey", "no JSON", gone);
    assert_null(t.out.moves_to.ptr);
    give_with_key(&t, "__debezium.newkey", "{\"id\":2}", NULL); /* a tombstone */
    assert_int_equal(t.out.kind, ES_DELETE);
    assert_null(t.out.moves_to.ptr);
    free(gone);
    free(made);
    et_close(&t);
}

static void own_placeholder(void **state)
{
    (void)state;
    struct et t;
    et_init(&t);
    t.env.placeholder = "hex:E2809822"; /* ‘" */
    et_open(&t);
    char *v = et_envelope("u", "{\"a\":\"\\u2018\\\"\",\"b\":\"\xe2\x80\x98\\\"\",\"c\":" PH
                               ",\"d\":\"4oCYIg==\",\"_id\":\"\xe2\x80\x98\\\"\"}");
    et_give(&t, TOPIC, "{\"id\":1}", v);
    free(v);
    et_is(t.out.source, "{\"c\":" PH "}");
    assert_int_equal(t.out.nmissing, 4);
    et_is(t.out.missing[3], "_id_"); /* as it is called in the document */
    et_close(&t);
}

/* ---- rows ---- */

static void rows(void **state)
{
    (void)state;
    struct et t;
    et_init(&t);
    et_kafka(&t);
    t.cfg.record_form = ES_ROW;
    et_open(&t);
    et_give(&t, TOPIC, "{\"id\":1}", "{\"id\":1,\"op\":\"c\",\"after\":2}");
    assert_int_equal(t.out.kind, ES_INDEX);
    et_is(t.out.source, "{\"id\":1,\"op\":\"c\",\"after\":2}");
    et_give(&t, TOPIC, "{\"id\":1}", NULL);
    assert_int_equal(t.out.kind, ES_DELETE);
    et_give(&t, TOPIC, "{\"id\":1}", "{\"id\":1,\"__deleted\":\"true\"}");
    assert_int_equal(t.out.kind, ES_DELETE);
    et_give(&t, TOPIC, "{\"id\":1}", "{\"id\":1,\"__deleted\":\"false\"}");
    assert_int_equal(t.out.kind, ES_INDEX);
    et_give(&t, TOPIC, "key-17", "{\"id\":1}");
    et_is(t.out.id, "key-17");
    et_give(&t, TOPIC, "{\"id\":1}",
            "{\"schema\":{\"type\":\"struct\",\"fields\":[{\"type\":\"int32\",\"name\":"
            "\"io.debezium.time.Date\",\"field\":\"d\"}]},\"payload\":{\"d\":0}}");
    et_is(t.out.source, "{\"d\":\"1970-01-01\"}");
    assert_int_equal(et_try(&t, TOPIC, "{\"id\":1}", "[]"), CDCD_ERROR);
    ET_FAILS(&t, CDCD_ERR_DATA, "no row");
    et_close(&t);
}

/* ---- documents ---- */

#define MONGO(after, op)                                                                         \
    "{\"before\":null,\"after\":" after ",\"updateDescription\":null,\"source\":{\"connector\":" \
    "\"mongodb\",\"name\":\"srv\",\"db\":\"shop\",\"collection\":\"c\"},\"op\":\"" op            \
    "\",\"ts_ms\":1,\"transaction\":null}"
#define DOCS "srv.shop.c"

static void document_is(struct et *t, const char *json, const char *source)
{
    struct cdcd_writer w;
    cdcd_writer_begin(&w, &t->arena);
    cdcd_writer_lit(&w, "{\"after\":\"");
    for (const char *p = json; *p; p++) {
        if (*p == '"' || *p == '\\')
            cdcd_writer_char(&w, '\\');
        cdcd_writer_char(&w, *p);
    }
    cdcd_writer_lit(&w, "\",\"source\":{\"connector\":\"mongodb\"},\"op\":\"c\"}");
    cdcd_writer_char(&w, 0);
    et_give(t, DOCS, "{\"id\":\"1\"}", cdcd_writer_end(&w).ptr);
    assert_int_equal(t->out.kind, ES_INDEX);
    et_is(t->out.source, source);
}

/* The same document in all the forms that json.serialization.mode knows. */
static void documents_of_every_form(void **state)
{
    (void)state;
    static const char plain[] =
        "{\"i\":1,\"l\":9223372036854775807,\"d\":1.5,\"nan\":null,\"dec\":\"123.450\",\"oid\":"
        "\"65e0a1b2c3d4e5f601020304\",\"date\":\"2024-02-29T13:14:15.123Z\",\"old\":"
        "\"1959-12-27T00:00:00Z\",\"bin\":\"AP8Q\",\"re\":\"/^a\\\"c$/"
        "im\",\"ts\":{\"t\":17,\"i\":7}"
        ",\"sym\":\"s\",\"code\":\"f()\",\"undef\":null,\"min\":\"MinKey\",\"max\":\"MaxKey\","
        "\"arr\":[1,[\"x\",null],{\"z\":2}],\"ref\":{\"$ref\":\"c\",\"$id\":"
        "\"65e0a1b2c3d4e5f601020304\"},\"o\":{\"_id\":3,\"$price\":4},\"e\":{}}";
    struct et t;
    et_init(&t);
    et_open(&t);
    document_is(
        &t,
        "{\"_id\": {\"$numberLong\": \"1\"},\"i\": 1,\"l\": {\"$numberLong\": "
        "\"9223372036854775807\"},\"d\": 1.5,\"nan\": {\"$numberDouble\": \"NaN\"},\"dec\": "
        "{\"$numberDecimal\": \"123.450\"},\"oid\": {\"$oid\": \"65e0a1b2c3d4e5f601020304\"},"
        "\"date\": {\"$date\": 1709212455123},\"old\": {\"$date\": -316051200000},\"bin\": "
        "{\"$binary\": \"AP8Q\",\"$type\": \"00\"},\"re\": {\"$regex\": \"^a\\\"c$\",\"$options\": "
        "\"im\"},\"ts\": {\"$timestamp\": {\"t\": 17,\"i\": 7}},\"sym\": {\"$symbol\": \"s\"},"
        "\"code\": {\"$code\": \"f()\"},\"undef\": {\"$undefined\": true},\"min\": {\"$minKey\": "
        "1},"
        "\"max\": {\"$maxKey\": 1},\"arr\": [1,[\"x\",null],{\"z\": {\"$numberLong\": \"2\"}}],"
        "\"ref\": {\"$ref\": \"c\",\"$id\": {\"$oid\": \"65e0a1b2c3d4e5f601020304\"}},\"o\": "
        "{\"_id\": 3,\"$price\": 4},\"e\": {}}",
        plain);
    document_is(
        &t,
        "{\"_id\": 1, \"i\": {\"$numberInt\": \"1\"}, \"l\": {\"$numberLong\": "
        "\"9223372036854775807\"}, \"d\": {\"$numberDouble\": \"1.5\"}, \"nan\": "
        "{\"$numberDouble\": \"-Infinity\"}, \"dec\": {\"$numberDecimal\": \"123.450\"}, \"oid\": "
        "{\"$oid\": \"65e0a1b2c3d4e5f601020304\"}, \"date\": {\"$date\": {\"$numberLong\": "
        "\"1709212455123\"}}, \"old\": {\"$date\": {\"$numberLong\": \"-316051200000\"}}, \"bin\": "
        "{\"$binary\": {\"base64\": \"AP8Q\", \"subType\": \"00\"}}, \"re\": "
        "{\"$regularExpression\": {\"pattern\": \"^a\\\"c$\", \"options\": \"im\"}}, \"ts\": "
        "{\"$timestamp\": {\"t\": 17, \"i\": 7}}, \"sym\": {\"$symbol\": \"s\"}, \"code\": "
        "{\"$code\": \"f()\"}, \"undef\": {\"$undefined\": true}, \"min\": {\"$minKey\": 1}, "
        "\"max\": {\"$maxKey\": 1}, \"arr\": [{\"$numberInt\": \"1\"}, [\"x\", null], {\"z\": "
        "{\"$numberInt\": \"2\"}}], \"ref\": {\"$dbPointer\": {\"$ref\": \"c\", \"$id\": "
        "{\"$oid\": "
        "\"65e0a1b2c3d4e5f601020304\"}}}, \"o\": {\"_id\": {\"$numberInt\": \"3\"}, \"$price\": "
        "4}, "
        "\"e\": {}}",
        plain);
    document_is(&t, "{\"date\":{\"$date\":\"2024-02-29T13:14:15.123Z\"}}",
                "{\"date\":\"2024-02-29T13:14:15.123Z\"}");
    document_is(&t, plain, plain);
    /* What only looks like it is an ordinary object. */
    document_is(&t,
                "{\"a\":{\"$oid\":5},\"b\":{\"$numberLong\":\"x\"},\"c\":{\"$date\":{\"x\":1}}}",
                "{\"a\":{\"$oid\":5},\"b\":{\"$numberLong\":\"x\"},\"c\":{\"$date\":{\"x\":1}}}");
    et_close(&t);
}

static void document_names(void **state)
{
    (void)state;
    struct et t;
    static const char value[] = MONGO("\"{\\\"_id\\\":1,\\\"o\\\":{\\\"a.b\\\":1}}\"", "c");
    static const char empty[] = MONGO("\"{\\\"\\\":1}\"", "c");
    et_init(&t);
    et_open(&t);
    assert_int_equal(et_try(&t, DOCS, "{\"id\":\"1\"}", value), CDCD_ERROR);
    ET_FAILS(&t, CDCD_ERR_DATA, "\"a.b\" (o/a.b)", "field.dots", "srv.shop.c");
    assert_int_equal(et_try(&t, DOCS, "{\"id\":\"1\"}", empty), CDCD_ERROR);
    ET_FAILS(&t, CDCD_ERR_DATA, "may not be empty");
    et_close(&t);
    et_init(&t);
    t.cfg.dots_mode = ES_DOTS_RENAME;
    et_open(&t);
    document_is(&t, "{\"a.b\":1,\" \":3,\"_source\":4,\"o\":{\"_source\":5,\"x.\":6,\"q\\\".\":7}}",
                "{\"a_b\":1,\"_\":3,\"_source_\":4,\"o\":{\"_source\":5,\"x_\":6,\"q\\\"_\":7}}");
    et_close(&t);
}

static void renamed_names_collide(void **state)
{
    (void)state;
    static const char *const values[] = {MONGO("\"{\\\"a.b\\\":1,\\\"a_b\\\":2}\"", "c"),
                                         MONGO("\"{\\\"x\\\":{\\\"\\\":1,\\\" \\\":2}}\"", "c"),
                                         MONGO("\"{\\\"_source\\\":1,\\\"_source_\\\":2}\"", "c")};
    struct et t;
    et_init(&t);
    t.cfg.dots_mode = ES_DOTS_RENAME;
    et_open(&t);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(et_try(&t, DOCS, "{\"id\":\"1\"}", values[i]), CDCD_ERROR);
        ET_FAILS(&t, CDCD_ERR_DATA, "both become");
    }
    et_close(&t);
}

static void document_ids(void **state)
{
    (void)state;
    static const struct {
        const char *key, *id;
    } ids[] = {
        {"101", "101"},
        {"1.5", "1.5"},
        {"{\\\"$numberLong\\\": \\\"5\\\"}", "5"},
        {"\\\"a \\\\\\\"b\\\\\\\"\\\"", "a \"b\""},
        {"{\\\"$oid\\\":\\\"65e0a1b2c3d4e5f601020304\\\"}", "65e0a1b2c3d4e5f601020304"},
        {"{\\\"$date\\\": 1709212455123}", "2024-02-29T13:14:15.123Z"},
        {"true", "true"},
        {"null", "null"},
        {"{\\\"a.b\\\": 1, \\\"_id\\\": {\\\"$numberLong\\\":\\\"7\\\"}}", "{\"a.b\":1,\"_id\":7}"},
        {"{\\\"$binary\\\":\\\"AAEC\\\",\\\"$type\\\":\\\"04\\\"}", "AAEC"},
    };
    struct et t;
    char key[200];
    et_init(&t);
    et_open(&t);
    et_give(&t, DOCS, "{\"id\":\"1\"}", MONGO("null", "d"));
    assert_int_equal(t.out.kind, ES_DELETE);
    for (size_t i = 0; i < sizeof ids / sizeof ids[0]; i++) {
        snprintf(key, sizeof key, "{\"id\":\"%s\"}", ids[i].key);
        et_give(&t, DOCS, key, NULL);
        assert_int_equal(t.out.kind, ES_DELETE);
        et_is(t.out.id, ids[i].id);
    }
    assert_int_equal(et_try(&t, DOCS, "{\"id\":\"abc\"}", NULL), CDCD_ERROR);
    ET_FAILS(&t, CDCD_ERR_DATA, "no JSON");
    et_close(&t);
}

/* Tombstones of a topic that nothing is known of. */
static void tombstones_first(void **state)
{
    (void)state;
    struct et t;
    et_init(&t);
    et_open(&t);
    et_give(&t, "srv.a.x", "{\"id\":\"\\\"abc\\\"\"}", NULL);
    et_is(t.out.id, "abc");
    et_give(&t, "srv.a.x", "{\"id\":\"{\\\"$oid\\\":\\\"65e0a1b2c3d4e5f601020304\\\"}\"}", NULL);
    et_is(t.out.id, "65e0a1b2c3d4e5f601020304");
    et_give(&t, "srv.a.x", "{\"id\":\"abc\"}", NULL);
    et_is(t.out.id, "abc");
    et_give(&t, "srv.a.x", "{\"id\":\"17\"}", NULL);
    et_is(t.out.id, "17");
    et_give(&t, "srv.a.x",
            "{\"schema\":{\"type\":\"struct\",\"fields\":[{\"type\":\"string\",\"field\":\"id\"}]},"
            "\"payload\":{\"id\":\"\\\"abc\\\"\"}}",
            NULL);
    et_is(t.out.id, "abc");
    et_close(&t);
}

static void updates_without_documents(void **state)
{
    (void)state;
    struct et t;
    et_init(&t);
    et_open(&t);
    et_give(&t, DOCS, "{\"id\":\"1\"}", MONGO("null", "u"));
    assert_int_equal(t.out.kind, ES_NOTHING);
    assert_int_equal(et_try(&t, DOCS, "{\"id\":\"1\"}", MONGO("null", "c")), CDCD_ERROR);
    ET_FAILS(&t, CDCD_ERR_DATA, "no document in `after`");
    assert_int_equal(et_try(&t, DOCS, "{\"id\":\"1\"}", MONGO("\"{\"", "c")), CDCD_ERROR);
    ET_FAILS(&t, CDCD_ERR_DATA, "no JSON");
    assert_int_equal(et_try(&t, DOCS, "{\"id\":\"1\"}", MONGO("\"[1]\"", "c")), CDCD_ERROR);
    ET_FAILS(&t, CDCD_ERR_DATA, "no JSON object");
    et_close(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(changes_and_deletes),
        cmocka_unit_test(empty_row_and_odd_names),
        cmocka_unit_test(nothing_to_index),
        cmocka_unit_test(refused),
        cmocka_unit_test(ids),
        cmocka_unit_test(long_ids),
        cmocka_unit_test(typed_ids),
        cmocka_unit_test(versions),
        cmocka_unit_test(impossible_versions),
        cmocka_unit_test(truncates),
        cmocka_unit_test(unchanged),
        cmocka_unit_test(row_that_follows),
        cmocka_unit_test(moved_rows),
        cmocka_unit_test(own_placeholder),
        cmocka_unit_test(rows),
        cmocka_unit_test(documents_of_every_form),
        cmocka_unit_test(document_names),
        cmocka_unit_test(renamed_names_collide),
        cmocka_unit_test(document_ids),
        cmocka_unit_test(tombstones_first),
        cmocka_unit_test(updates_without_documents),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
