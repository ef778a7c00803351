/* Shapes -> mappings, settings and templates: well-formed, and what each type becomes. */
#include "../support/es_test.h"

#include "../../plugins/elasticsearch/mapping.h"

#include <jansson.h>

static const struct es_shape *shape_of(struct et *t, const char *fields)
{
    char *value = cdcd_xasprintf(
        "{\"topic\":\"x\",\"key\":null,\"row\":{\"type\":\"struct\",\"fields\":[%s]}}", fields);
    et_give(t, CDCD_SCHEMA_TOPIC, "0000000000000001", value);
    free(value);
    t->headers[1] = (struct cdcd_header){cdcd_slice_str("cdcd.schema"),
                                         cdcd_slice_str("0000000000000001"), false};
    t->nheaders = 2;
    char *row = et_envelope("c", "{}");
    et_give(t, "srv.public.t", "{\"id\":1}", row);
    free(row);
    assert_non_null(t->out.shape);
    return t->out.shape;
}

static json_t *body_of(const struct et *t, const struct es_shape *shape)
{
    struct cdcd_buf b;
    json_error_t why;
    cdcd_buf_init(&b, 0);
    es_mapping_write(&t->cfg, shape, &b);
    json_t *root = json_loadb(b.ptr, b.len, JSON_REJECT_DUPLICATES, &why);
    if (!root)
        fail_msg("%s: %.*s", why.text, (int)b.len, b.ptr);
    cdcd_buf_free(&b);
    return root;
}

static json_t *field(json_t *root, const char *name)
{
    return json_object_get(json_object_get(json_object_get(root, "mappings"), "properties"), name);
}

static void type_is(json_t *root, const char *name, const char *type)
{
    const char *is = json_string_value(json_object_get(field(root, name), "type"));
    if (!is || strcmp(is, type) != 0)
        fail_msg("%s is %s, not %s", name, is ? is : "nothing", type);
}

#define F(name, type) "{\"type\":\"" type "\",\"field\":\"" name "\"}"
#define L(name, type, logical) \
    "{\"type\":\"" type "\",\"name\":\"" logical "\",\"field\":\"" name "\"}"
#define DEC(name, scale, precision)                                                               \
    "{\"type\":\"bytes\",\"name\":\"org.apache.kafka.connect.data.Decimal\",\"parameters\":"      \
    "{\"scale\":\"" scale "\",\"connect.decimal.precision\":\"" precision "\"},\"field\":\"" name \
    "\"}"

static void types(void **state)
{
    (void)state;
    struct et t;
    et_init(&t);
    et_open(&t);
    const struct es_shape *s = shape_of(
        &t,
        F("i8", "int8") "," F("i64", "int64") "," F("f", "float") "," F("b", "boolean") "," F("s", "string") "," F("bin", "bytes") "," DEC("d", "2", "10") "," DEC(
            "w", "0",
            "18") "," DEC("big", "0",
                          "38") "," L("day", "int32",
                                      "io.debezium.time."
                                      "Date") "," L("ts",
                                                    "strin"
                                                    "g",
                                                    "io."
                                                    "debezi"
                                                    "um."
                                                    "time."
                                                    "ZonedT"
                                                    "imesta"
                                                    "mp") "," L("tod", "int64",
                                                                "io.debezium.time."
                                                                "MicroTime") "," L("j",
                                                                                   "s"
                                                                                   "t"
                                                                                   "r"
                                                                                   "i"
                                                                                   "n"
                                                                                   "g",
                                                                                   "i"
                                                                                   "o"
                                                                                   "."
                                                                                   "d"
                                                                                   "e"
                                                                                   "b"
                                                                                   "e"
                                                                                   "z"
                                                                                   "i"
                                                                                   "u"
                                                                                   "m"
                                                                                   "."
                                                                                   "d"
                                                                                   "a"
                                                                                   "t"
                                                                                   "a"
                                                                                   "."
                                                                                   "J"
                                                                                   "s"
                                                                                   "o"
                                                                                   "n") "," L("u",
                                                                                              "stri"
                                                                                              "ng",
                                                                                              "io."
                                                                                              "debe"
                                                                                              "zium"
                                                                                              ".dat"
                                                                                              "a."
                                                                                              "Uui"
                                                                                              "d") "," L("p",
                                                                                                         "stru"
                                                                                                         "ct",
                                                                                                         "io."
                                                                                                         "debe"
                                                                                                         "zium"
                                                                                                         ".dat"
                                                                                                         "a."
                                                                                                         "geom"
                                                                                                         "etry"
                                                                                                         ".Poi"
                                                                                                         "nt") "," L("ul",
                                                                                                                     "int64",
                                                                                                                     "cdcd.data.UnsignedLong") ","
                                                                                                                                               "{\"type\":\"array\",\"items\":{\"type\":\"string\"},\"field\":\"words\"},"
                                                                                                                                               "{\"type\":\"map\",\"field\":\"m\"}," F(
                                                                                                                                                   "_id",
                                                                                                                                                   "int32") "," F("q\\\"",
                                                                                                                                                                  "int32"));
    json_t *root = body_of(&t, s);
    static const char *const expected[][2] = {
        {"i8", "long"},    {"i64", "long"},   {"f", "double"},  {"b", "boolean"},
        {"s", "text"},     {"bin", "binary"}, {"d", "double"},  {"w", "long"},
        {"big", "double"}, {"day", "date"},   {"ts", "date"},   {"tod", "keyword"},
        {"j", "keyword"},  {"u", "keyword"},  {"ul", "double"}, {"words", "text"},
        {"_id_", "long"},  {"q\"", "long"},
    };
    for (size_t i = 0; i < sizeof expected / sizeof expected[0]; i++)
        type_is(root, expected[i][0], expected[i][1]);
    assert_null(field(root, "m"));
    assert_null(field(root, "_id"));
    assert_non_null(json_object_get(json_object_get(field(root, "p"), "properties"), "x"));
    /* Exact ones are found by their digits, too, and refuse nothing. */
    static const char *const exact[] = {"d", "w", "big", "ul"};
    for (int i = 0; i < 4; i++) {
        assert_true(json_is_true(json_object_get(field(root, exact[i]), "ignore_malformed")));
        assert_non_null(json_object_get(json_object_get(field(root, exact[i]), "fields"), "exact"));
    }
    assert_null(json_object_get(field(root, "i64"), "ignore_malformed"));
    json_decref(root);
    /* Nested JSON is left to the server. */
    t.cfg.json_mode = ES_JSON_NESTED;
    root = body_of(&t, s);
    assert_null(field(root, "j"));
    json_decref(root);
    et_close(&t);
}

static const char *setting(json_t *root, const char *name)
{
    return json_string_value(json_object_get(json_object_get(root, "settings"), name));
}

static void settings(void **state)
{
    (void)state;
    struct et t;
    struct cdcd_strpair pairs[] = {{(char *)"number_of_shards", (char *)"3"},
                                   {(char *)"index.refresh_interval", (char *)"\"5s\""},
                                   {(char *)"gc_deletes", (char *)"7d"}};
    et_init(&t);
    json_t *root = body_of(&t, NULL);
    assert_int_equal(json_object_size(json_object_get(root, "settings")), 0);
    json_decref(root);
    t.cfg.gc_deletes = (char *)"24h";
    root = body_of(&t, NULL);
    assert_string_equal(setting(root, "index.gc_deletes"), "24h");
    assert_true(
        json_is_false(json_object_get(json_object_get(root, "mappings"), "date_detection")));
    json_decref(root);
    t.cfg.index_settings.items = pairs;
    t.cfg.index_settings.n = 3;
    root = body_of(&t, NULL);
    assert_string_equal(setting(root, "index.number_of_shards"), "3");
    assert_string_equal(setting(root, "index.refresh_interval"), "\"5s\"");
    assert_string_equal(setting(root, "index.gc_deletes"), "7d"); /* the user's, once */
    json_decref(root);
    cdcd_arena_free(&t.arena);
}

/* PostgreSQL allows 1600 columns. */
static void many_columns(void **state)
{
    (void)state;
    struct et t;
    struct cdcd_buf b;
    et_init(&t);
    et_open(&t);
    cdcd_buf_init(&b, 0);
    for (int i = 0; i < 1600; i++)
        cdcd_buf_addf(&b, "%s{\"type\":\"string\",\"field\":\"c%d\"}", i ? "," : "", i);
    json_t *root = body_of(&t, shape_of(&t, cdcd_buf_cstr(&b)));
    assert_true(atoll(setting(root, "index.mapping.total_fields.limit")) >= 3200);
    json_decref(root);
    cdcd_buf_free(&b);
    et_close(&t);
}

static void bodies(void **state)
{
    (void)state;
    struct et t;
    struct cdcd_buf b;
    et_init(&t);
    cdcd_buf_init(&b, 0);
    es_mapping_body(&t.cfg, NULL, cdcd_slice_str("shop"), &b);
    json_t *root = json_loadb(b.ptr, b.len, JSON_REJECT_DUPLICATES, NULL);
    assert_true(json_is_true(json_object_get(
        json_object_get(json_object_get(root, "aliases"), "shop"), "is_write_index")));
    json_decref(root);
    for (int legacy = 0; legacy < 2; legacy++) {
        cdcd_buf_clear(&b);
        es_template_body(&t.cfg, NULL, cdcd_slice_str("shop"), legacy, &b);
        root = json_loadb(b.ptr, b.len, JSON_REJECT_DUPLICATES, NULL);
        json_t *inner = legacy ? root : json_object_get(root, "template");
        assert_non_null(json_object_get(inner, "mappings"));
        assert_non_null(json_object_get(inner, "settings"));
        assert_string_equal(
            json_string_value(json_array_get(json_object_get(root, "index_patterns"), 0)),
            "shop-000*");
        json_decref(root);
    }
    cdcd_buf_free(&b);
    cdcd_arena_free(&t.arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(types),
        cmocka_unit_test(settings),
        cmocka_unit_test(many_columns),
        cmocka_unit_test(bodies),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
