/* Events -> records: envelopes, keys, tombstones, key changes, headers, the records that belong
 * to no table, and what happens to events that have no form. */
#include "../support/encode_test.h"

static const struct et_column rif_columns[] = {
    {.name = "id", .type = CDCD_T_INT32, .length = -1, .scale = -1, .required = true, .key = true},
    {.name = "name", .type = CDCD_T_STRING, .length = -1, .scale = -1},
    {.name = "amt", .type = CDCD_T_DECIMAL, .length = 8, .scale = 2},
};
static const struct et_column nopk_columns[] = {
    {.name = "a", .type = CDCD_T_INT32, .length = -1, .scale = -1},
    {.name = "b", .type = CDCD_T_STRING, .length = -1, .scale = -1},
};
static const struct cdcd_cell row_1[] = {C_INT(1), C_TEXT("one"), C_DEC("1.50")};
static const struct cdcd_cell row_1b[] = {C_INT(1), C_TEXT("one"), C_DEC("9.99")};
static const struct cdcd_cell row_2[] = {C_INT(2), C_TEXT("two"), C_DEC("2.25")};
static const struct cdcd_cell row_20[] = {C_INT(20), C_TEXT("two"), C_DEC("2.25")};
static const struct cdcd_cell key_2[] = {C_INT(2), C_ABSENT, C_ABSENT};
static const struct cdcd_cell nothing[] = {C_ABSENT, C_ABSENT, C_ABSENT};

#define SOURCE(table)                                                                             \
    "\"source\":{\"version\":\"" CDCD_VERSION "\",\"connector\":\"postgresql\",\"name\":\"srv\"," \
    "\"ts_ms\":1795986694821,\"snapshot\":\"false\",\"db\":\"typesdb\",\"sequence\":"             \
    "\"[null,\\\"27163256\\\"]\",\"ts_us\":1795986694821056,\"ts_ns\":1795986694821056000,"       \
    "\"schema\":\"public\",\"table\":\"" table "\",\"txId\":752,\"lsn\":27163256,\"xmin\":null,"  \
    "\"origin\":null,\"origin_lsn\":null}"
#define NO_TX ",\"transaction\":null"
#define TX(n)                                                                                      \
    ",\"transaction\":{\"id\":\"752:27163256\",\"total_order\":" n ",\"data_collection_order\":" n \
    "}"

struct fixture {
    struct et t;
    struct cdcd_schema *rif, *nopk;
};

static void open_with(struct fixture *f, const struct cdcd_debezium_config *cfg, bool compacted)
{
    et_open_kafka(&f->t, cfg, "srv", compacted);
    f->rif = et_schema("rif", rif_columns, 3);
    f->nopk = et_schema("nopk", nopk_columns, 2);
}

static void open_default(struct fixture *f)
{
    struct cdcd_debezium_config cfg = et_config();
    open_with(f, &cfg, false);
}

static void close_all(struct fixture *f)
{
    cdcd_schema_unref(f->rif);
    cdcd_schema_unref(f->nopk);
    et_close(&f->t);
}

static void record_is(struct fixture *f, unsigned n, const char *key, const char *value)
{
    const struct cdcd_record *r = et_record(&f->t, n);
    et_slice_is(r->key, key);
    if (value)
        et_value_is(r->value, value);
    else
        assert_null(r->value.ptr);
    assert_int_equal(r->timestamp_ms, 1795986694821);
}

static void header_is(const struct cdcd_record *r, const char *name, const char *value, bool json)
{
    const struct cdcd_header *h = et_header(r, name);
    if (!value) {
        assert_null(h);
        return;
    }
    assert_non_null(h);
    et_slice_is(h->value, value);
    assert_int_equal(h->json, json);
}

static bool has(struct cdcd_slice s, const char *text)
{
    return s.ptr && memmem(s.ptr, s.len, text, strlen(text));
}

static void plain_operations(void **state)
{
    struct fixture f;
    (void)state;
    open_default(&f);
    et_event(&f.t, CDCD_OP_CREATE, f.rif, NULL, row_1);
    et_event(&f.t, CDCD_OP_UPDATE, f.rif, row_1, row_1b);
    et_event(&f.t, CDCD_OP_UPDATE, f.rif, NULL, row_1b);
    et_event(&f.t, CDCD_OP_UPDATE, f.rif, nothing, row_1b);
    et_event(&f.t, CDCD_OP_DELETE, f.rif, row_1b, NULL);
    et_event(&f.t, CDCD_OP_DELETE, f.rif, key_2, NULL);
    et_encode(&f.t);
    assert_int_equal(f.t.batch->nrecords, 8);
    record_is(&f, 0, "{\"id\":1}",
              "{\"before\":null,\"after\":{\"id\":1,\"name\":\"one\",\"amt\":\"AJY=\"}," SOURCE(
                  "rif") NO_TX ",\"op\":\"c\"");
    record_is(&f, 1, "{\"id\":1}",
              "{\"before\":{\"id\":1,\"name\":\"one\",\"amt\":\"AJY=\"},\"after\":{\"id\":1,"
              "\"name\":\"one\",\"amt\":\"A+c=\"}," SOURCE("rif") NO_TX ",\"op\":\"u\"");
    for (unsigned i = 2; i <= 3; i++)
        record_is(&f, i, "{\"id\":1}",
                  "{\"before\":null,\"after\":{\"id\":1,\"name\":\"one\",\"amt\":\"A+c=\"}," SOURCE(
                      "rif") NO_TX ",\"op\":\"u\"");
    record_is(&f, 4, "{\"id\":1}",
              "{\"before\":{\"id\":1,\"name\":\"one\",\"amt\":\"A+c=\"},\"after\":null," SOURCE(
                  "rif") NO_TX ",\"op\":\"d\"");
    record_is(&f, 5, "{\"id\":1}", NULL);
    record_is(&f, 6, "{\"id\":2}",
              "{\"before\":{\"id\":2,\"name\":null,\"amt\":null},\"after\":null," SOURCE("rif")
                  NO_TX ",\"op\":\"d\"");
    record_is(&f, 7, "{\"id\":2}", NULL);
    size_t bytes = 0;
    for (const struct cdcd_record *r = f.t.batch->records; r; r = r->next)
        bytes += r->key.len + r->value.len;
    assert_int_equal(f.t.batch->bytes, bytes);
    assert_true(et_record(&f.t, 0)->topic->keyed);
    et_slice_is(et_record(&f.t, 0)->topic->name_json, "\"srv.public.rif\"");
    close_all(&f);
}

static void snapshot_marks(void **state)
{
    static const char *const texts[] = {
        "false", "true", "first", "first_in_data_collection", "last_in_data_collection", "last"};
    struct fixture f;
    (void)state;
    open_default(&f);
    for (unsigned i = 0; i < 6; i++) {
        struct cdcd_event *ev = et_event(&f.t, CDCD_OP_READ, f.rif, NULL, row_1);
        ev->snapshot = (uint8_t)i;
        ev->pos.stream = false;
    }
    et_encode(&f.t);
    for (unsigned i = 0; i < 6; i++) {
        char expected[64];
        const struct cdcd_record *r = et_record(&f.t, i);
        snprintf(expected, sizeof(expected), "\"snapshot\":\"%s\",\"db\"", texts[i]);
        assert_true(has(r->value, expected));
        assert_true(has(r->value, "\"op\":\"r\""));
        header_is(r, "cdcd.pos", "00000000019E7EF8-0-000000000000000C", false);
    }
    close_all(&f);
}

static void key_change(void **state)
{
    struct cdcd_debezium_config cfg = et_config();
    struct fixture f;
    (void)state;
    cfg.extended_headers = true;
    open_with(&f, &cfg, false);
    const struct cdcd_cell *before[] = {row_2, key_2};
    for (unsigned i = 0; i < 2; i++) {
        struct cdcd_event *ev = et_event(&f.t, CDCD_OP_UPDATE, f.rif, before[i], row_20);
        ev->tx_id = cdcd_slice_str("752:27163256");
        ev->total_order = ev->data_collection_order = 1;
        assert_true(cdcd_event_key_changed(ev));
    }
    et_encode(&f.t);
    assert_int_equal(f.t.batch->nrecords, 6);
    record_is(&f, 0, "{\"id\":2}",
              "{\"before\":{\"id\":2,\"name\":\"two\",\"amt\":\"AOE=\"},\"after\":null," SOURCE(
                  "rif") TX("1") ",\"op\":\"d\"");
    record_is(&f, 1, "{\"id\":2}", NULL);
    record_is(&f, 2, "{\"id\":20}",
              "{\"before\":null,\"after\":{\"id\":20,\"name\":\"two\",\"amt\":\"AOE=\"}," SOURCE(
                  "rif") TX("2") ",\"op\":\"c\"");
    record_is(&f, 3, "{\"id\":2}",
              "{\"before\":{\"id\":2,\"name\":null,\"amt\":null},\"after\":null," SOURCE("rif")
                  TX("1") ",\"op\":\"d\"");
    header_is(et_record(&f.t, 0), "__debezium.newkey", "{\"id\":20}", true);
    header_is(et_record(&f.t, 1), "__debezium.newkey", "{\"id\":20}", true);
    header_is(et_record(&f.t, 2), "__debezium.newkey", NULL, false);
    header_is(et_record(&f.t, 2), "__debezium.oldkey", "{\"id\":2}", true);
    header_is(et_record(&f.t, 0), "cdcd.pos", "00000000019E7EF8-1-000000000000000C", false);
    header_is(et_record(&f.t, 1), "cdcd.pos", "00000000019E7EF8-1-000000000000000D", false);
    header_is(et_record(&f.t, 2), "cdcd.pos", "00000000019E7EF8-1-000000000000000E", false);
    for (unsigned i = 0; i < 3; i++) {
        const struct cdcd_record *r = et_record(&f.t, i);
        char version[17];
        header_is(r, "__debezium.context.connectorLogicalName", "srv", false);
        header_is(r, "__debezium.context.taskId", "0", true);
        header_is(r, "__debezium.context.connectorName", "postgresql", false);
        snprintf(version, sizeof(version), "%016llX", (unsigned long long)f.rif->version);
        header_is(r, "cdcd.schema", version, false);
        assert_int_equal(r->nheaders, 6);
    }
    close_all(&f);
}

static void no_tombstones(void **state)
{
    struct cdcd_debezium_config cfg = et_config();
    struct fixture f;
    (void)state;
    cfg.tombstones_on_delete = false;
    open_with(&f, &cfg, false);
    et_event(&f.t, CDCD_OP_DELETE, f.rif, row_2, NULL);
    et_event(&f.t, CDCD_OP_UPDATE, f.rif, row_2, row_20);
    et_encode(&f.t);
    assert_int_equal(f.t.batch->nrecords, 3);
    assert_non_null(et_record(&f.t, 1)->value.ptr);
    close_all(&f);
}

static const struct et_column toast_columns[] = {
    {.name = "k", .type = CDCD_T_STRING, .length = -1, .scale = -1, .required = true, .key = true},
    {.name = "v", .type = CDCD_T_INT32, .length = -1, .scale = -1},
};

/* The server sends the old key of a row whose key is TOAST, changed or not. */
static void toast_key(void **state)
{
    static const struct cdcd_cell old[] = {C_TEXT("kkk"), C_ABSENT};
    static const struct cdcd_cell unchanged[] = {C_UNCHANGED, C_INT(2)};
    struct cdcd_debezium_config cfg = et_config();
    struct cdcd_schema *s = et_schema("t_key", toast_columns, 2);
    struct et t;
    (void)state;
    et_open(&t, &cfg);
    assert_false(cdcd_event_key_changed(et_event(&t, CDCD_OP_UPDATE, s, old, unchanged)));
    et_encode(&t);
    assert_int_equal(t.batch->nrecords, 1);
    et_slice_is(et_record(&t, 0)->key, "{\"k\":\"kkk\"}");
    et_value_is(et_record(&t, 0)->value,
                "{\"before\":null,\"after\":{\"k\":\"kkk\",\"v\":2}," SOURCE("t_key") NO_TX
                ",\"op\":\"u\"");

    cdcd_batch_reset(t.batch);
    et_event(&t, CDCD_OP_UPDATE, s, NULL, unchanged);
    assert_int_equal(cdcd_encoder_encode(t.encoder, t.batch, &t.err), CDCD_ERROR);
    assert_int_equal(t.err.class, CDCD_ERR_DATA);
    assert_non_null(strstr(t.err.text, "public.t_key, column k"));
    assert_non_null(strstr(t.err.text, "unchanged TOAST"));
    assert_int_equal(t.batch->nrecords, 0);
    et_close(&t);
    cdcd_schema_unref(s);
}

/* REPLICA IDENTITY FULL: a value that did not change is in the old row. */
static void unchanged_filled_from_before(void **state)
{
    static const struct cdcd_cell after[] = {C_INT(20), C_UNCHANGED, C_DEC("2.25")};
    struct fixture f;
    (void)state;
    open_default(&f);
    et_event(&f.t, CDCD_OP_UPDATE, f.rif, row_2, after);
    et_event(&f.t, CDCD_OP_UPDATE, f.rif, key_2, after);
    et_encode(&f.t);
    assert_true(has(et_record(&f.t, 2)->value, "\"name\":\"two\""));
    assert_true(has(et_record(&f.t, 5)->value, "\"name\":\"__debezium_unavailable_value\""));
    close_all(&f);
}

/* A value that the log does not carry, of a row that a snapshot has still to read. */
static void row_that_follows(void **state)
{
    static const struct cdcd_cell after[] = {C_INT(2), C_UNCHANGED, C_DEC("2.25")};
    struct fixture f;
    (void)state;
    open_default(&f);
    et_event(&f.t, CDCD_OP_UPDATE, f.rif, NULL, after)->row_follows = true;
    et_event(&f.t, CDCD_OP_UPDATE, f.rif, NULL, after);
    et_event(&f.t, CDCD_OP_UPDATE, f.rif, NULL, row_2)->row_follows = true;
    /* Under another key, too. */
    static const struct cdcd_cell before[] = {C_INT(1), C_ABSENT, C_ABSENT};
    et_event(&f.t, CDCD_OP_UPDATE, f.rif, before, after)->row_follows = true;
    et_encode(&f.t);
    header_is(et_record(&f.t, 3), "cdcd.row", NULL, false);
    header_is(et_record(&f.t, 5), "__debezium.oldkey", "{\"id\":1}", true);
    header_is(et_record(&f.t, 5), "cdcd.row", "follows", false);
    header_is(et_record(&f.t, 0), "cdcd.row", "follows", false);
    header_is(et_record(&f.t, 1), "cdcd.row", NULL, false);
    header_is(et_record(&f.t, 2), "cdcd.row", NULL, false);
    assert_non_null(et_header(et_record(&f.t, 0), "cdcd.pos"));
    close_all(&f);
}

static void without_key(void **state)
{
    static const struct cdcd_cell row[] = {C_INT(2), C_TEXT("y")};
    struct fixture f;
    (void)state;
    open_default(&f);
    et_event(&f.t, CDCD_OP_CREATE, f.nopk, NULL, row);
    et_event(&f.t, CDCD_OP_UPDATE, f.nopk, row, row);
    et_event(&f.t, CDCD_OP_DELETE, f.nopk, row, NULL);
    et_event(&f.t, CDCD_OP_TRUNCATE, f.nopk, NULL, NULL);
    et_encode(&f.t);
    assert_int_equal(f.t.batch->nrecords, 5);
    assert_false(et_record(&f.t, 0)->topic->keyed);
    record_is(&f, 0, NULL,
              "{\"before\":null,\"after\":{\"a\":2,\"b\":\"y\"}," SOURCE("nopk") NO_TX
              ",\"op\":\"c\"");
    record_is(&f, 1, NULL,
              "{\"before\":{\"a\":2,\"b\":\"y\"},\"after\":{\"a\":2,\"b\":\"y\"}," SOURCE("nopk")
                  NO_TX ",\"op\":\"u\"");
    record_is(&f, 3, NULL, NULL);
    record_is(&f, 4, NULL, "{\"before\":null,\"after\":null," SOURCE("nopk") NO_TX ",\"op\":\"t\"");
    close_all(&f);
}

static void truncates(void **state)
{
    struct cdcd_debezium_config cfg = et_config();
    (void)state;
    for (int compacted = 0; compacted < 2; compacted++) {
        for (int schemas = 0; schemas < 2; schemas++) {
            struct fixture f;
            cfg.schemas_enable = schemas;
            open_with(&f, &cfg, compacted);
            et_event(&f.t, CDCD_OP_TRUNCATE, f.rif, NULL, NULL);
            et_event(&f.t, CDCD_OP_TRUNCATE, f.nopk, NULL, NULL);
            et_encode(&f.t);
            const struct cdcd_record *r = et_record(&f.t, 0);
            et_slice_is(r->topic->name, compacted ? "srv.truncate" : "srv.public.rif");
            if (!compacted)
                assert_null(r->key.ptr);
            else if (!schemas)
                et_slice_is(r->key, "{\"schema\":\"public\",\"table\":\"rif\"}");
            else
                assert_true(has(r->key, "\"payload\":{\"schema\":\"public\",\"table\":"
                                        "\"rif\"}}"));
            et_slice_is(et_record(&f.t, 1)->topic->name, "srv.public.nopk");
            assert_null(et_record(&f.t, 1)->key.ptr);
            close_all(&f);
        }
    }
}

static void skipped_operations(void **state)
{
    char *items[] = {(char *)(uintptr_t) "t", (char *)(uintptr_t) "d"};
    struct cdcd_debezium_config cfg = et_config();
    struct fixture f;
    (void)state;
    cfg.skipped_operations = (struct cdcd_strlist){items, 2};
    assert_true(cdcd_debezium_skips(&cfg, CDCD_OP_TRUNCATE));
    assert_false(cdcd_debezium_skips(&cfg, CDCD_OP_MESSAGE));
    assert_false(cdcd_debezium_skips(&cfg, CDCD_OP_HEARTBEAT));
    open_with(&f, &cfg, false);
    et_event(&f.t, CDCD_OP_TRUNCATE, f.rif, NULL, NULL);
    et_event(&f.t, CDCD_OP_DELETE, f.rif, row_1, NULL);
    et_event(&f.t, CDCD_OP_CREATE, f.rif, NULL, row_1);
    et_encode(&f.t);
    assert_int_equal(f.t.batch->nrecords, 1);
    close_all(&f);
}

static void messages(void **state)
{
    static const struct cdcd_cell content[] = {C_TEXT("pfx"), C_BYTES("hello-nontx")};
    struct cdcd_debezium_config cfg = et_config();
    struct cdcd_schema *db = cdcd_schema_new("typesdb", "", "", 0);
    struct fixture f;
    (void)state;
    cdcd_schema_finish(db);
    cfg.extended_headers = true;
    open_with(&f, &cfg, false);
    et_event(&f.t, CDCD_OP_MESSAGE, db, NULL, content);
    f.t.source[2] = (struct cdcd_cell)C_NULL;
    et_encode(&f.t);
    const struct cdcd_record *r = et_record(&f.t, 0);
    et_slice_is(r->topic->name, "srv.message");
    assert_false(r->topic->keyed);
    et_slice_is(r->key, "{\"prefix\":\"pfx\"}");
    char text[1024];
    long long ms;
    int end = 0;
    snprintf(text, sizeof(text), "%.*s", (int)r->value.len, r->value.ptr);
    assert_int_equal(sscanf(text, "{\"op\":\"m\",\"ts_ms\":%lld%n", &ms, &end), 1);
    assert_string_equal(
        text + end,
        ",\"source\":{\"version\":\"" CDCD_VERSION
        "\",\"connector\":\"postgresql\",\"name\":\"srv\",\"ts_ms\":1795986694821,"
        "\"snapshot\":\"false\",\"db\":\"typesdb\",\"sequence\":\"[null,\\\"27163256\\\"]\","
        "\"ts_us\":1795986694821056,\"ts_ns\":1795986694821056000,\"schema\":\"\",\"table\":\"\","
        "\"txId\":null,\"lsn\":27163256,\"xmin\":null,\"origin\":null,\"origin_lsn\":null},"
        "\"transaction\":null,\"message\":{\"prefix\":\"pfx\",\"content\":"
        "\"aGVsbG8tbm9udHg=\"}}");
    assert_int_equal(r->nheaders, 1); /* cdcd.pos only */
    header_is(r, "cdcd.pos", "00000000019E7EF8-1-000000000000000C", false);
    close_all(&f);
    cdcd_schema_unref(db);
}

static void transaction_records(void **state)
{
    static const struct cdcd_tx_collection collections[] = {
        {{"public.types_t", 14}, 5},
        {{"public.rif", 10}, 1},
    };
    struct fixture f;
    (void)state;
    open_default(&f);
    et_event(&f.t, CDCD_OP_TX_BEGIN, NULL, NULL, NULL)->tx_id = cdcd_slice_str("752:27163256");
    struct cdcd_event *end = et_event(&f.t, CDCD_OP_TX_END, NULL, NULL, NULL);
    end->tx_id = cdcd_slice_str("752:27165000");
    end->collections = collections;
    end->ncollections = 2;
    et_encode(&f.t);
    et_slice_is(et_record(&f.t, 0)->topic->name, "srv.transaction");
    assert_false(et_record(&f.t, 0)->topic->keyed);
    et_slice_is(et_record(&f.t, 0)->key, "{\"id\":\"752:27163256\"}");
    et_slice_is(et_record(&f.t, 0)->value,
                "{\"status\":\"BEGIN\",\"id\":\"752:27163256\",\"event_count\":null,"
                "\"data_collections\":null,\"ts_ms\":1795986694821}");
    et_slice_is(et_record(&f.t, 1)->value,
                "{\"status\":\"END\",\"id\":\"752:27165000\",\"event_count\":6,"
                "\"data_collections\":[{\"data_collection\":\"public.types_t\",\"event_count\":5},"
                "{\"data_collection\":\"public.rif\",\"event_count\":1}],"
                "\"ts_ms\":1795986694821}");
    close_all(&f);
}

static void heartbeats(void **state)
{
    struct fixture f;
    long long ms;
    int end = 0;
    (void)state;
    open_default(&f);
    et_event(&f.t, CDCD_OP_HEARTBEAT, NULL, NULL, NULL);
    et_encode(&f.t);
    const struct cdcd_record *r = et_record(&f.t, 0);
    et_slice_is(r->topic->name, "__debezium-heartbeat.srv");
    assert_true(r->topic->keyed);
    et_slice_is(r->key, "{\"serverName\":\"srv\"}");
    char text[64];
    snprintf(text, sizeof(text), "%.*s", (int)r->value.len, r->value.ptr);
    assert_int_equal(sscanf(text, "{\"ts_ms\":%lld}%n", &ms, &end), 1);
    assert_int_equal((size_t)end, r->value.len);
    close_all(&f);
}

#define STRUCT(fields, name)                               \
    "{\"schema\":{\"type\":\"struct\",\"fields\":[" fields \
    "],\"optional\":false,\"name\":\"io.debezium.connector.common." name "\",\"version\":1},"

static void fixed_schemas(void **state)
{
    static const struct cdcd_tx_collection collection = {{"public.rif", 10}, 1};
    struct cdcd_debezium_config cfg = et_config();
    struct fixture f;
    (void)state;
    cfg.schemas_enable = true;
    open_with(&f, &cfg, false);
    struct cdcd_event *end = et_event(&f.t, CDCD_OP_TX_END, NULL, NULL, NULL);
    end->tx_id = cdcd_slice_str("10777:779913560");
    end->ts_us = 1795987191567000;
    end->collections = &collection;
    end->ncollections = 1;
    et_event(&f.t, CDCD_OP_HEARTBEAT, NULL, NULL, NULL);
    et_encode(&f.t);
    et_slice_is(et_record(&f.t, 0)->key,
                STRUCT("{\"type\":\"string\",\"optional\":false,\"field\":\"id\"}",
                       "TransactionMetadataKey") "\"payload\":{\"id\":\"10777:779913560\"}}");
    et_slice_is(et_record(&f.t, 0)->value,
                STRUCT("{\"type\":\"string\",\"optional\":false,\"field\":\"status\"},"
                       "{\"type\":\"string\",\"optional\":false,\"field\":\"id\"},"
                       "{\"type\":\"int64\",\"optional\":true,\"field\":\"event_count\"},"
                       "{\"type\":\"array\",\"items\":{\"type\":\"struct\",\"fields\":["
                       "{\"type\":\"string\",\"optional\":false,\"field\":\"data_collection\"},"
                       "{\"type\":\"int64\",\"optional\":false,\"field\":\"event_count\"}],"
                       "\"optional\":true,\"name\":\"event.collection\",\"version\":1},"
                       "\"optional\":true,\"field\":\"data_collections\"},"
                       "{\"type\":\"int64\",\"optional\":false,\"field\":\"ts_ms\"}",
                       "TransactionMetadataValue") "\"payload\":{\"status\":\"END\",\"id\":"
                                                   "\"10777:779913560\",\"event_count\":1,"
                                                   "\"data_collections\":[{\"data_collection\":"
                                                   "\"public.rif\",\"event_count\":1}],"
                                                   "\"ts_ms\":1795987191567}}");
    et_slice_is(et_record(&f.t, 1)->key,
                STRUCT("{\"type\":\"string\",\"optional\":false,\"field\":\"serverName\"}",
                       "ServerNameKey") "\"payload\":{\"serverName\":\"srv\"}}");
    static const char heartbeat[] = STRUCT(
        "{\"type\":\"int64\",\"optional\":false,\"field\":\"ts_ms\"}",
        "Heartbeat") "\"payload\":{\"ts_ms\":";
    assert_memory_equal(et_record(&f.t, 1)->value.ptr, heartbeat, strlen(heartbeat));
    close_all(&f);
}

/* With schemas the headers of a key change still hold the bare key. */
static void key_change_with_schema(void **state)
{
    struct cdcd_debezium_config cfg = et_config();
    struct fixture f;
    (void)state;
    cfg.schemas_enable = true;
    open_with(&f, &cfg, false);
    et_event(&f.t, CDCD_OP_UPDATE, f.rif, row_2, row_20);
    et_encode(&f.t);
    et_slice_is(et_record(&f.t, 0)->key,
                "{\"schema\":{\"type\":\"struct\",\"fields\":[{\"type\":\"int32\",\"optional\":"
                "false,\"field\":\"id\"}],\"optional\":false,\"name\":\"srv.public.rif.Key\"},"
                "\"payload\":{\"id\":2}}");
    header_is(et_record(&f.t, 0), "__debezium.newkey", "{\"id\":20}", true);
    header_is(et_record(&f.t, 2), "__debezium.oldkey", "{\"id\":2}", true);
    assert_null(et_record(&f.t, 1)->value.ptr);
    close_all(&f);
}

static void message_key_columns(void **state)
{
    struct cdcd_debezium_config cfg = et_config();
    struct fixture f;
    (void)state;
    cfg.message_key_columns = (char *)(uintptr_t) " public\\.n.* : b , a ; (public\\.)?rif:name";
    open_with(&f, &cfg, false);
    static const struct cdcd_cell row[] = {C_INT(2), C_TEXT("y")};
    static const struct cdcd_cell renamed[] = {C_INT(2), C_TEXT("deux"), C_DEC("2.25")};
    et_event(&f.t, CDCD_OP_CREATE, f.nopk, NULL, row);
    struct cdcd_event *ev = et_event(&f.t, CDCD_OP_UPDATE, f.rif, row_2, renamed);
    ev->tx_id = cdcd_slice_str("752:27163256");
    ev->total_order = ev->data_collection_order = 4;
    et_encode(&f.t);
    et_slice_is(et_record(&f.t, 0)->key, "{\"b\":\"y\",\"a\":2}");
    assert_true(et_record(&f.t, 0)->topic->keyed);
    assert_int_equal(f.t.batch->nrecords, 4);
    et_slice_is(et_record(&f.t, 1)->key, "{\"name\":\"two\"}");
    et_slice_is(et_record(&f.t, 3)->key, "{\"name\":\"deux\"}");
    /* The source does not know this key, and counted one. */
    assert_true(has(et_record(&f.t, 3)->value, "\"total_order\":4"));

    /* The key of a delete must be in the log. */
    cdcd_batch_reset(f.t.batch);
    et_event(&f.t, CDCD_OP_DELETE, f.rif, key_2, NULL);
    assert_int_equal(cdcd_encoder_encode(f.t.encoder, f.t.batch, &f.t.err), CDCD_ERROR);
    assert_non_null(strstr(f.t.err.text, "column name"));
    assert_non_null(strstr(f.t.err.text, "REPLICA IDENTITY"));
    close_all(&f);
}

static void bad_options(void **state)
{
    static const struct {
        const char *keys, *placeholder, *operation, *expected;
    } cases[] = {
        {"public.t", NULL, NULL, "public.t"},       {"public.t:", NULL, NULL, "TABLE:COLUMN"},
        {":a", NULL, NULL, "TABLE:COLUMN"},         {"t:a,,b", NULL, NULL, "empty column"},
        {"(t:a", NULL, NULL, "regular expression"}, {NULL, "hex:0", NULL, "hex:0"},
        {NULL, "hex:0g", NULL, "hexadecimal"},      {NULL, NULL, "x", "skipped.operations"},
        {NULL, NULL, "cd", "skipped.operations"},   {NULL, NULL, "", "skipped.operations"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct cdcd_debezium_config cfg = et_config();
        struct cdcd_encoder_env env = {"test", "srv", &et_source, false, false};
        struct cdcd_encoder *e = NULL;
        struct cdcd_error err = {0};
        char *operation = (char *)(uintptr_t)cases[i].operation;
        cfg.message_key_columns = (char *)(uintptr_t)cases[i].keys;
        cfg.unavailable_value_placeholder = (char *)(uintptr_t)cases[i].placeholder;
        if (operation)
            cfg.skipped_operations = (struct cdcd_strlist){&operation, 1};
        assert_int_equal(cdcd_encoder_new(&cfg, &env, &e, &err), CDCD_ERROR);
        assert_int_equal(err.class, CDCD_ERR_CONFIG);
        if (!strstr(err.text, cases[i].expected))
            fail_msg("%s", err.text);
    }
    /* A column that a table does not have is seen when the table is. */
    struct cdcd_debezium_config cfg = et_config();
    struct fixture f;
    cfg.message_key_columns = (char *)(uintptr_t) "public.rif:nome";
    open_with(&f, &cfg, false);
    et_event(&f.t, CDCD_OP_CREATE, f.rif, NULL, row_1);
    assert_int_equal(cdcd_encoder_encode(f.t.encoder, f.t.batch, &f.t.err), CDCD_ERROR);
    assert_int_equal(f.t.err.class, CDCD_ERR_CONFIG);
    assert_non_null(strstr(f.t.err.text, "public.rif has no column \"nome\""));
    close_all(&f);
}

/* What an event without a form does, by event.processing.failure.handling.mode. */
static void failures(void **state)
{
    static const struct cdcd_cell bad[] = {C_INT(7), C_TEXT("x"), C_DEC("1.555")};
    (void)state;
    for (int mode = 0; mode < 3; mode++) {
        struct cdcd_debezium_config cfg = et_config();
        struct fixture f;
        cfg.failure_mode = mode;
        open_with(&f, &cfg, false);
        et_event(&f.t, CDCD_OP_CREATE, f.rif, NULL, row_1);
        et_event(&f.t, CDCD_OP_CREATE, f.rif, NULL, bad);
        et_event(&f.t, CDCD_OP_UPDATE, f.rif, row_2, bad);
        et_event(&f.t, CDCD_OP_CREATE, f.rif, NULL, row_2);
        enum cdcd_rc rc = cdcd_encoder_encode(f.t.encoder, f.t.batch, &f.t.err);
        if (mode == CDCD_FAILURE_FAIL) {
            assert_int_equal(rc, CDCD_ERROR);
            assert_int_equal(f.t.err.class, CDCD_ERR_DATA);
            assert_non_null(strstr(f.t.err.text, "public.rif, column amt (key {\"id\":7}, position "
                                                 "0000000001"));
            assert_non_null(strstr(f.t.err.text, "1.555"));
            assert_int_equal(f.t.batch->nrecords, 1);
        } else {
            assert_int_equal(rc, CDCD_OK);
            assert_int_equal(f.t.batch->nrecords, 2);
            assert_int_equal(cdcd_encoder_skipped(f.t.encoder), 2);
            et_slice_is(et_record(&f.t, 1)->key, "{\"id\":2}");
        }
        close_all(&f);
    }
}

static struct cdcd_topic *topic_of(struct et *t, const char *schema, const char *table)
{
    struct cdcd_schema *s = cdcd_schema_new("db", schema, table, 1);
    s->columns[0].name = "a";
    s->nkeys = 1;
    cdcd_schema_finish(s);
    struct cdcd_topic *topic = cdcd_encoder_topic(t->encoder, s);
    cdcd_schema_unref(s);
    return topic;
}

static void topics(void **state)
{
    struct cdcd_debezium_config cfg = et_config();
    struct et t;
    char longest[300];
    (void)state;
    et_open(&t, &cfg);
    et_slice_is(topic_of(&t, "My.Schema", "Ta.ble \"q\"")->name, "srv.My.Schema.Ta.ble__q_");
    et_slice_is(topic_of(&t, "", "t")->name, "srv.db.t");
    et_slice_is(topic_of(&t, "public", "\xc3\xb1")->name, "srv.public._");
    et_slice_is(topic_of(&t, "public", "\xf0\x9f\x90\x98z")->name, "srv.public.__z");
    struct cdcd_topic *one = topic_of(&t, "public", "order$2024");
    assert_ptr_equal(one, topic_of(&t, "public", "order#2024"));
    assert_ptr_equal(one, topic_of(&t, "public", "order$2024"));
    assert_ptr_not_equal(topic_of(&t, "public", "Orders"), topic_of(&t, "public", "orders"));
    memset(longest, 'x', sizeof(longest));
    longest[299] = 0;
    assert_int_equal(topic_of(&t, "public", longest)->name.len, 249);
    et_close(&t);

    cfg.topic_delimiter = (char *)(uintptr_t) "-";
    et_open(&t, &cfg);
    et_slice_is(topic_of(&t, "public", "t")->name, "srv-public-t");
    et_close(&t);
}

/* A second encoder must not use what a first one cached in a schema. */
static void schema_outlives_encoder(void **state)
{
    struct cdcd_debezium_config cfg = et_config();
    struct cdcd_schema *s = et_schema("rif", rif_columns, 3);
    struct et t;
    (void)state;
    for (int i = 0; i < 2; i++) {
        cfg.decimal_mode = i ? CDCD_DECIMAL_STRING : CDCD_DECIMAL_PRECISE;
        et_open(&t, &cfg);
        et_event(&t, CDCD_OP_CREATE, s, NULL, row_1);
        et_encode(&t);
        assert_true(has(et_record(&t, 0)->value, i ? "\"1.50\"" : "\"AJY=\""));
        et_close(&t);
    }
    cdcd_schema_unref(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(plain_operations),
        cmocka_unit_test(snapshot_marks),
        cmocka_unit_test(key_change),
        cmocka_unit_test(no_tombstones),
        cmocka_unit_test(toast_key),
        cmocka_unit_test(unchanged_filled_from_before),
        cmocka_unit_test(row_that_follows),
        cmocka_unit_test(without_key),
        cmocka_unit_test(truncates),
        cmocka_unit_test(skipped_operations),
        cmocka_unit_test(messages),
        cmocka_unit_test(transaction_records),
        cmocka_unit_test(heartbeats),
        cmocka_unit_test(fixed_schemas),
        cmocka_unit_test(key_change_with_schema),
        cmocka_unit_test(message_key_columns),
        cmocka_unit_test(bad_options),
        cmocka_unit_test(failures),
        cmocka_unit_test(topics),
        cmocka_unit_test(schema_outlives_encoder),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
