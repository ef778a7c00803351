/* Schema changes: records of the topic PREFIX, and their schemas, byte for byte what Debezium 3.6
 * writes but for clocks and versions. Transaction metadata of a source with GTIDs. */
#include "../support/encode_test.h"

static const char ddl_key_schema[] =
    "{\"schema\":{\"type\":\"struct\",\"fields\":[{\"type\":\"string\",\"optional\":false"
    ",\"field\":\"databaseName\"}],\"optional\":false,\"name\":\"io.debezium.connector.my"
    "sql.SchemaChangeKey\",\"version\":1},";

static const char ddl_value_schema[] =
    "{\"schema\":{\"type\":\"struct\",\"fields\":[{\"type\":\"struct\",\"fields\":[{\"typ"
    "e\":\"string\",\"optional\":false,\"field\":\"version\"},{\"type\":\"string\",\"opti"
    "onal\":false,\"field\":\"connector\"},{\"type\":\"string\",\"optional\":false,\"fiel"
    "d\":\"name\"},{\"type\":\"int64\",\"optional\":false,\"field\":\"ts_ms\"},{\"type\":"
    "\"string\",\"optional\":true,\"name\":\"io.debezium.data.Enum\",\"version\":1,\"para"
    "meters\":{\"allowed\":\"true,first,first_in_data_collection,last_in_data_collection,"
    "last,false,incremental\"},\"default\":\"false\",\"field\":\"snapshot\"},{\"type\":\""
    "string\",\"optional\":false,\"field\":\"db\"},{\"type\":\"string\",\"optional\":true"
    ",\"field\":\"sequence\"},{\"type\":\"int64\",\"optional\":true,\"field\":\"ts_us\"},"
    "{\"type\":\"int64\",\"optional\":true,\"field\":\"ts_ns\"},{\"type\":\"string\",\"op"
    "tional\":true,\"field\":\"table\"},{\"type\":\"int64\",\"optional\":false,\"field\":"
    "\"server_id\"},{\"type\":\"string\",\"optional\":true,\"field\":\"gtid\"},{\"type\":"
    "\"string\",\"optional\":false,\"field\":\"file\"},{\"type\":\"int64\",\"optional\":f"
    "alse,\"field\":\"pos\"},{\"type\":\"int32\",\"optional\":false,\"field\":\"row\"},{\""
    "type\":\"int64\",\"optional\":true,\"field\":\"thread\"},{\"type\":\"string\",\"opti"
    "onal\":true,\"field\":\"query\"}],\"optional\":false,\"name\":\"io.debezium.connecto"
    "r.mysql.Source\",\"version\":1,\"field\":\"source\"},{\"type\":\"int64\",\"optional\""
    ":false,\"field\":\"ts_ms\"},{\"type\":\"string\",\"optional\":true,\"field\":\"datab"
    "aseName\"},{\"type\":\"string\",\"optional\":true,\"field\":\"schemaName\"},{\"type\""
    ":\"string\",\"optional\":true,\"field\":\"ddl\"},{\"type\":\"array\",\"items\":{\"ty"
    "pe\":\"struct\",\"fields\":[{\"type\":\"string\",\"optional\":false,\"field\":\"type"
    "\"},{\"type\":\"string\",\"optional\":false,\"field\":\"id\"},{\"type\":\"struct\",\""
    "fields\":[{\"type\":\"string\",\"optional\":true,\"field\":\"defaultCharsetName\"},{"
    "\"type\":\"array\",\"items\":{\"type\":\"string\",\"optional\":false},\"optional\":t"
    "rue,\"field\":\"primaryKeyColumnNames\"},{\"type\":\"array\",\"items\":{\"type\":\"s"
    "truct\",\"fields\":[{\"type\":\"string\",\"optional\":false,\"field\":\"name\"},{\"t"
    "ype\":\"int32\",\"optional\":false,\"field\":\"jdbcType\"},{\"type\":\"int32\",\"opt"
    "ional\":true,\"field\":\"nativeType\"},{\"type\":\"string\",\"optional\":false,\"fie"
    "ld\":\"typeName\"},{\"type\":\"string\",\"optional\":true,\"field\":\"typeExpression"
    "\"},{\"type\":\"string\",\"optional\":true,\"field\":\"charsetName\"},{\"type\":\"in"
    "t32\",\"optional\":true,\"field\":\"length\"},{\"type\":\"int32\",\"optional\":true,"
    "\"field\":\"scale\"},{\"type\":\"int32\",\"optional\":false,\"field\":\"position\"},"
    "{\"type\":\"boolean\",\"optional\":true,\"field\":\"optional\"},{\"type\":\"boolean\""
    ",\"optional\":true,\"field\":\"autoIncremented\"},{\"type\":\"boolean\",\"optional\""
    ":true,\"field\":\"generated\"},{\"type\":\"string\",\"optional\":true,\"field\":\"co"
    "mment\"},{\"type\":\"string\",\"optional\":true,\"field\":\"defaultValueExpression\""
    "},{\"type\":\"array\",\"items\":{\"type\":\"string\",\"optional\":false},\"optional\""
    ":true,\"field\":\"enumValues\"}],\"optional\":false,\"name\":\"io.debezium.connector"
    ".schema.Column\",\"version\":1},\"optional\":false,\"field\":\"columns\"},{\"type\":"
    "\"string\",\"optional\":true,\"field\":\"comment\"}],\"optional\":true,\"name\":\"io"
    ".debezium.connector.schema.Table\",\"version\":1,\"field\":\"table\"}],\"optional\":"
    "false,\"name\":\"io.debezium.connector.schema.Change\",\"version\":1},\"optional\":f"
    "alse,\"field\":\"tableChanges\"}],\"optional\":false,\"name\":\"io.debezium.connecto"
    "r.mysql.SchemaChangeValue\",\"version\":1},";

static const char ddl_alter_add[] =
    "\"databaseName\":\"cdc\",\"schemaName\":null,\"ddl\":\"ALTER TABLE ddl_t ADD COLUMN "
    "b DECIMAL(8,3) UNSIGNED NULL AFTER id\",\"tableChanges\":[{\"type\":\"ALTER\",\"id\""
    ":\"\\\"cdc\\\".\\\"ddl_t\\\"\",\"table\":{\"defaultCharsetName\":\"utf8mb4\",\"prima"
    "ryKeyColumnNames\":[\"id\"],\"columns\":[{\"name\":\"id\",\"jdbcType\":4,\"nativeTyp"
    "e\":null,\"typeName\":\"INT\",\"typeExpression\":\"INT\",\"charsetName\":null,\"leng"
    "th\":null,\"scale\":null,\"position\":1,\"optional\":false,\"autoIncremented\":false"
    ",\"generated\":false,\"comment\":null,\"defaultValueExpression\":null,\"enumValues\""
    ":null},{\"name\":\"b\",\"jdbcType\":3,\"nativeType\":null,\"typeName\":\"DECIMAL UNS"
    "IGNED\",\"typeExpression\":\"DECIMAL UNSIGNED\",\"charsetName\":null,\"length\":8,\""
    "scale\":3,\"position\":2,\"optional\":true,\"autoIncremented\":false,\"generated\":f"
    "alse,\"comment\":null,\"defaultValueExpression\":null,\"enumValues\":null},{\"name\""
    ":\"a\",\"jdbcType\":12,\"nativeType\":null,\"typeName\":\"VARCHAR\",\"typeExpression"
    "\":\"VARCHAR\",\"charsetName\":\"utf8mb4\",\"length\":10,\"scale\":null,\"position\""
    ":3,\"optional\":false,\"autoIncremented\":false,\"generated\":false,\"comment\":null"
    ",\"defaultValueExpression\":\"d\",\"enumValues\":null}],\"comment\":null}}]}";

static const char ddl_alter_modify_pk[] =
    "\"databaseName\":\"cdc\",\"schemaName\":null,\"ddl\":\"ALTER TABLE ddl_t MODIFY b BI"
    "GINT UNSIGNED, ADD c ENUM('p','q'), DROP PRIMARY KEY, ADD PRIMARY KEY (id,aa)\",\"ta"
    "bleChanges\":[{\"type\":\"ALTER\",\"id\":\"\\\"cdc\\\".\\\"ddl_t\\\"\",\"table\":{\""
    "defaultCharsetName\":\"utf8mb4\",\"primaryKeyColumnNames\":[\"id\",\"aa\"],\"columns"
    "\":[{\"name\":\"id\",\"jdbcType\":4,\"nativeType\":null,\"typeName\":\"INT\",\"typeE"
    "xpression\":\"INT\",\"charsetName\":null,\"length\":null,\"scale\":null,\"position\""
    ":1,\"optional\":false,\"autoIncremented\":false,\"generated\":false,\"comment\":null"
    ",\"defaultValueExpression\":null,\"enumValues\":null},{\"name\":\"b\",\"jdbcType\":-"
    "5,\"nativeType\":null,\"typeName\":\"BIGINT UNSIGNED\",\"typeExpression\":\"BIGINT U"
    "NSIGNED\",\"charsetName\":null,\"length\":null,\"scale\":null,\"position\":2,\"optio"
    "nal\":true,\"autoIncremented\":false,\"generated\":false,\"comment\":null,\"defaultV"
    "alueExpression\":null,\"enumValues\":null},{\"name\":\"aa\",\"jdbcType\":12,\"native"
    "Type\":null,\"typeName\":\"VARCHAR\",\"typeExpression\":\"VARCHAR\",\"charsetName\":"
    "\"utf8mb4\",\"length\":10,\"scale\":null,\"position\":3,\"optional\":false,\"autoInc"
    "remented\":false,\"generated\":false,\"comment\":null,\"defaultValueExpression\":\"d"
    "\",\"enumValues\":null},{\"name\":\"c\",\"jdbcType\":1,\"nativeType\":null,\"typeNam"
    "e\":\"ENUM\",\"typeExpression\":\"ENUM\",\"charsetName\":\"utf8mb4\",\"length\":1,\""
    "scale\":null,\"position\":4,\"optional\":true,\"autoIncremented\":false,\"generated\""
    ":false,\"comment\":null,\"defaultValueExpression\":null,\"enumValues\":[\"'p'\",\"'q"
    "'\"]}],\"comment\":null}}]}";

static const char ddl_drop_two_1[] =
    "\"databaseName\":\"cdc\",\"schemaName\":null,\"ddl\":\"DROP TABLE `cdc`.`l1`\",\"tab"
    "leChanges\":[{\"type\":\"DROP\",\"id\":\"\\\"cdc\\\".\\\"l1\\\"\",\"table\":null}]}";

static const char ddl_create_database[] =
    "\"databaseName\":\"other\",\"schemaName\":null,\"ddl\":\"CREATE DATABASE other CHARA"
    "CTER SET latin1\",\"tableChanges\":[]}";

static const char ddl_snapshot_set_charset[] =
    "\"databaseName\":\"\",\"schemaName\":null,\"ddl\":\"SET character_set_server=utf8mb4"
    ", collation_server=utf8mb4_0900_ai_ci\",\"tableChanges\":[]}";

static struct cdcd_event *ddl_event(struct et *t, const struct cdcd_ddl *ddl)
{
    struct cdcd_event *ev = et_event(t, CDCD_OP_DDL, NULL, NULL, NULL);
    ev->ddl = ddl;
    ev->sequence = (struct cdcd_slice){NULL, 0};
    t->source[0] = (struct cdcd_cell){.kind = CDCD_C_NULL};
    if (ddl->table.ptr)
        t->source[0] = cdcd_cell_text(ddl->table.ptr, ddl->table.len);
    t->source[1] = cdcd_cell_int(9700);
    t->source[2] = cdcd_cell_text("u:136", 5);
    t->source[3] = cdcd_cell_text("b.000001", 8);
    t->source[4] = cdcd_cell_int(206836);
    t->source[5] = cdcd_cell_int(0);
    t->source[6] = t->source[7] = (struct cdcd_cell){.kind = CDCD_C_NULL};
    return ev;
}

#define SLICE(s)           \
    {                      \
        (s), sizeof(s) - 1 \
    }
#define COLUMN(n, type, jdbc, len, sc, opt)                                         \
    {                                                                               \
        .name = SLICE(n), .type_name = SLICE(type), .type_expression = SLICE(type), \
        .jdbc_type = (jdbc), .length = (len), .scale = (sc), .optional = (opt)      \
    }

static const struct cdcd_ddl_column add_columns[] = {
    COLUMN("id", "INT", 4, -1, -1, false),
    COLUMN("b", "DECIMAL UNSIGNED", 3, 8, 3, true),
    {.name = SLICE("a"),
     .type_name = SLICE("VARCHAR"),
     .type_expression = SLICE("VARCHAR"),
     .jdbc_type = 12,
     .charset = SLICE("utf8mb4"),
     .length = 10,
     .scale = -1,
     .default_ = SLICE("d")},
};
static const struct cdcd_slice p_q[] = {SLICE("'p'"), SLICE("'q'")};
static const struct cdcd_ddl_column modify_columns[] = {
    COLUMN("id", "INT", 4, -1, -1, false),
    COLUMN("b", "BIGINT UNSIGNED", -5, -1, -1, true),
    {.name = SLICE("aa"),
     .type_name = SLICE("VARCHAR"),
     .type_expression = SLICE("VARCHAR"),
     .jdbc_type = 12,
     .charset = SLICE("utf8mb4"),
     .length = 10,
     .scale = -1,
     .default_ = SLICE("d")},
    {.name = SLICE("c"),
     .type_name = SLICE("ENUM"),
     .type_expression = SLICE("ENUM"),
     .jdbc_type = 1,
     .charset = SLICE("utf8mb4"),
     .length = 1,
     .scale = -1,
     .optional = true,
     .labels = p_q,
     .nlabels = 2},
};
static const struct cdcd_slice key_names[] = {SLICE("id"), SLICE("aa")};

static const struct cdcd_ddl_table add_table = {.type = CDCD_DDL_ALTER,
                                                .db = SLICE("cdc"),
                                                .table = SLICE("ddl_t"),
                                                .charset = SLICE("utf8mb4"),
                                                .columns = add_columns,
                                                .ncolumns = 3,
                                                .keys = key_names,
                                                .nkeys = 1};
static const struct cdcd_ddl_table modify_table = {.type = CDCD_DDL_ALTER,
                                                   .db = SLICE("cdc"),
                                                   .table = SLICE("ddl_t"),
                                                   .charset = SLICE("utf8mb4"),
                                                   .columns = modify_columns,
                                                   .ncolumns = 4,
                                                   .keys = key_names,
                                                   .nkeys = 2};
static const struct cdcd_ddl_table drop_table = {
    .type = CDCD_DDL_DROP, .db = SLICE("cdc"), .table = SLICE("l1")};

static const struct {
    struct cdcd_ddl ddl;
    const char *key, *db, *table, *rest;
} cases[] = {
    {{.db = SLICE("cdc"),
      .table = SLICE("ddl_t"),
      .text = SLICE("ALTER TABLE ddl_t ADD COLUMN b DECIMAL(8,3) UNSIGNED NULL AFTER id"),
      .tables = &add_table,
      .ntables = 1},
     "{\"databaseName\":\"cdc\"}",
     "cdc",
     "\"ddl_t\"",
     ddl_alter_add},
    {{.db = SLICE("cdc"),
      .table = SLICE("ddl_t"),
      .text = SLICE("ALTER TABLE ddl_t MODIFY b BIGINT UNSIGNED, ADD c ENUM('p','q'), DROP PRIMARY "
                    "KEY, ADD PRIMARY KEY (id,aa)"),
      .tables = &modify_table,
      .ntables = 1},
     "{\"databaseName\":\"cdc\"}",
     "cdc",
     "\"ddl_t\"",
     ddl_alter_modify_pk},
    {{.db = SLICE("cdc"),
      .table = SLICE("l2,l1"),
      .text = SLICE("DROP TABLE `cdc`.`l1`"),
      .tables = &drop_table,
      .ntables = 1},
     "{\"databaseName\":\"cdc\"}",
     "cdc",
     "\"l2,l1\"",
     ddl_drop_two_1},
    {{.db = SLICE("other"), .text = SLICE("CREATE DATABASE other CHARACTER SET latin1")},
     "{\"databaseName\":\"other\"}",
     "other",
     "null",
     ddl_create_database},
    {{.db = SLICE(""),
      .text = SLICE("SET character_set_server=utf8mb4, collation_server=utf8mb4_0900_ai_ci")},
     "{\"databaseName\":\"\"}",
     "",
     "null",
     ddl_snapshot_set_charset},
};
#define NCASES (sizeof cases / sizeof *cases)

static void value_is(const struct cdcd_record *r, size_t i, const char *snapshot, const char *close)
{
    char want[8192];
    long long ms;
    int at = 0, n = snprintf(want, sizeof want,
                             "{\"source\":{\"version\":\"" CDCD_VERSION
                             "\",\"connector\":\"mysql\",\"name\":\"srv\",\"ts_ms\":1795986694821,"
                             "\"snapshot\":\"%s\",\"db\":\"%s\",\"sequence\":null,\"ts_us\":"
                             "1795986694821056,\"ts_ns\":1795986694821056000,\"table\":%s,"
                             "\"server_id\":9700,\"gtid\":\"u:136\",\"file\":\"b.000001\",\"pos\":"
                             "206836,\"row\":0,\"thread\":null,\"query\":null},\"ts_ms\":",
                             snapshot, cases[i].db, cases[i].table);
    char *value = cdcd_xstrndup(r->value.ptr, r->value.len);
    char *payload = *close ? strstr(value, "{\"source\":{\"version\"") : value;
    assert_non_null(payload);
    if (strncmp(payload, want, (size_t)n) != 0)
        fail_msg("got      %s\nexpected %s", payload, want);
    assert_int_equal(sscanf(payload + n, "%lld,%n", &ms, &at), 1);
    assert_true(ms > 1700000000000 && at == 14);
    snprintf(want, sizeof want, "%s%s", cases[i].rest, close);
    if (strcmp(payload + n + at, want) != 0)
        fail_msg("got      %s\nexpected %s", payload + n + at, want);
    free(value);
}

static void statements(void **state)
{
    struct cdcd_debezium_config cfg = et_config();
    (void)state;
    cfg.extended_headers = true;
    for (size_t i = 0; i < NCASES; i++) {
        struct et t;
        et_open_source(&t, &cfg, "srv", true, &et_mysql);
        ddl_event(&t, &cases[i].ddl);
        ddl_event(&t, &cases[i].ddl)->snapshot = CDCD_SNAP_TRUE;
        et_encode(&t);
        assert_int_equal(t.batch->nrecords, 2);
        const struct cdcd_record *r = et_record(&t, 0);
        et_slice_is(r->topic->name, "srv");
        assert_false(r->topic->keyed); /* the newest statement does not stand for all */
        et_slice_is(r->key, cases[i].key);
        value_is(r, i, "false", "");
        value_is(et_record(&t, 1), i, "true", "");
        assert_int_equal(r->nheaders, 4);
        et_slice_is(et_header(r, "__debezium.context.connectorName")->value, "mysql");
        et_slice_is(et_header(r, "cdcd.pos")->value, "00000000019E7EF8-1-000000000000000C");
        assert_int_equal(r->timestamp_ms, 1795986694821);
        et_close(&t);
    }
}

/* One encoder, databases in turn: the templates follow. */
static void databases_in_turn(void **state)
{
    struct cdcd_debezium_config cfg = et_config();
    struct et t;
    (void)state;
    et_open_source(&t, &cfg, "srv", false, &et_mysql);
    for (unsigned round = 0; round < 2 * NCASES; round++) {
        size_t i = round * 3 % NCASES;
        ddl_event(&t, &cases[i].ddl);
        et_encode(&t);
        et_slice_is(et_record(&t, 0)->key, cases[i].key);
        value_is(et_record(&t, 0), i, "false", "");
        cdcd_batch_reset(t.batch);
    }
    et_close(&t);
}

static void with_schema(void **state)
{
    struct cdcd_debezium_config cfg = et_config();
    struct et t;
    (void)state;
    cfg.schemas_enable = true;
    et_open_source(&t, &cfg, "srv", false, &et_mysql);
    ddl_event(&t, &cases[1].ddl);
    et_encode(&t);
    const struct cdcd_record *r = et_record(&t, 0);
    char *key = cdcd_xasprintf("%s\"payload\":{\"databaseName\":\"cdc\"}}", ddl_key_schema);
    et_slice_is(r->key, key);
    free(key);
    assert_true(r->value.len > sizeof ddl_value_schema);
    et_slice_is((struct cdcd_slice){r->value.ptr, sizeof ddl_value_schema - 1}, ddl_value_schema);
    value_is(r, 1, "false", "}");
    et_close(&t);
}

static void names_of_the_server(void **state)
{
    struct cdcd_debezium_config cfg = et_config();
    struct et t;
    (void)state;
    cfg.schemas_enable = true;
    et_open_source(&t, &cfg, "srv", false, &et_mysql);
    cdcd_encoder_name_source(t.encoder, "mariadb", "io.debezium.connector.mariadb.Source");
    ddl_event(&t, &cases[3].ddl);
    et_encode(&t);
    const struct cdcd_slice key = et_record(&t, 0)->key, value = et_record(&t, 0)->value;
    assert_non_null(memmem(key.ptr, key.len, "io.debezium.connector.mariadb.SchemaChangeKey", 45));
    assert_non_null(
        memmem(value.ptr, value.len, "io.debezium.connector.mariadb.SchemaChangeValue", 47));
    assert_non_null(memmem(value.ptr, value.len, "\"connector\":\"mariadb\"", 21));
    assert_null(memmem(value.ptr, value.len, "mysql", 5));
    et_close(&t);
}

static void quotes_in_names(void **state)
{
    static const struct cdcd_ddl_table table = {
        .type = CDCD_DDL_DROP, .db = SLICE("a\"b"), .table = SLICE("wéird \"T\"")};
    static const struct cdcd_ddl ddl = {
        .db = SLICE("a\"b"), .text = SLICE("DROP TABLE x"), .tables = &table, .ntables = 1};
    struct cdcd_debezium_config cfg = et_config();
    struct et t;
    (void)state;
    et_open_source(&t, &cfg, "srv", false, &et_mysql);
    ddl_event(&t, &ddl);
    et_encode(&t);
    const struct cdcd_slice v = et_record(&t, 0)->value;
    static const char id[] = "\"id\":\"\\\"a\\\"\\\"b\\\".\\\"wéird \\\"\\\"T\\\"\\\"\\\"\"";
    if (!memmem(v.ptr, v.len, id, sizeof id - 1))
        fail_msg("%.*s lacks %s", (int)v.len, v.ptr, id);
    et_slice_is(et_record(&t, 0)->key, "{\"databaseName\":\"a\\\"b\"}");
    et_close(&t);
}

/* A transaction of another database, or of tables that are left out. */
static void empty_transactions(void **state)
{
    static const char gtid[] = "0290ceca-ec42-11f1-bd41-02fc00000001:126";
    struct cdcd_debezium_config cfg = et_config();
    struct et t;
    (void)state;
    et_open_source(&t, &cfg, "srv", false, &et_mysql);
    et_event(&t, CDCD_OP_TX_BEGIN, NULL, NULL, NULL)->tx_id = cdcd_slice_str(gtid);
    et_event(&t, CDCD_OP_TX_END, NULL, NULL, NULL)->tx_id = cdcd_slice_str(gtid);
    et_encode(&t);
    et_slice_is(et_record(&t, 0)->value,
                "{\"status\":\"BEGIN\",\"id\":\"0290ceca-ec42-11f1-bd41-02fc00000001:126\","
                "\"event_count\":null,\"data_collections\":null,\"ts_ms\":1795986694821}");
    et_slice_is(et_record(&t, 1)->key, "{\"id\":\"0290ceca-ec42-11f1-bd41-02fc00000001:126\"}");
    et_slice_is(et_record(&t, 1)->value,
                "{\"status\":\"END\",\"id\":\"0290ceca-ec42-11f1-bd41-02fc00000001:126\","
                "\"event_count\":0,\"data_collections\":[],\"ts_ms\":1795986694821}");
    et_close(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(statements),      cmocka_unit_test(databases_in_turn),
        cmocka_unit_test(with_schema),     cmocka_unit_test(names_of_the_server),
        cmocka_unit_test(quotes_in_names), cmocka_unit_test(empty_transactions),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
