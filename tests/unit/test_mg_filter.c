/* Include and exclude lists of the MongoDB plugin, and its filter for the server. */
#include "mg.h"

#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#define LIST(...)                                                                               \
    {                                                                                           \
        .items = (char *[]){__VA_ARGS__}, .n = sizeof((char *[]){__VA_ARGS__}) / sizeof(char *) \
    }
#define S cdcd_slice_str

static struct mg_filter *compile(const struct mg_config *cfg)
{
    struct mg_filter *f = NULL;
    struct cdcd_error err = {0};
    if (mg_filter_new(cfg, &f, &err) != CDCD_OK)
        fail_msg("%s", err.text);
    return f;
}

struct expect {
    const char *db, *collection; /* NULL: the database */
    bool pass;
};

/* Twice, since the second answer comes from memory. */
static void check(const struct mg_config *cfg, const struct expect *e, size_t n)
{
    struct mg_filter *f = compile(cfg);
    for (size_t i = 0; i < 2 * n; i++) {
        const struct expect *x = &e[i % n];
        bool pass = x->collection ? mg_filter_collection(f, S(x->db), S(x->collection))
                                  : mg_filter_database(f, S(x->db));
        if (pass != x->pass)
            fail_msg("%s.%s should %spass", x->db, x->collection ? x->collection : "(all)",
                     x->pass ? "" : "not ");
    }
    mg_filter_free(f);
}
#define CHECK(cfg, ...)                        \
    check(cfg, (struct expect[]){__VA_ARGS__}, \
          sizeof((struct expect[]){__VA_ARGS__}) / sizeof(struct expect))

static void no_lists(void **state)
{
    struct mg_config cfg = {0};
    (void)state;
    CHECK(&cfg, {"shop", "orders", true}, {"shop", NULL, true}, {"admin", NULL, false},
          {"admin", "x", false}, {"local", "oplog.rs", false}, {"config", "chunks", false},
          {"Admin", "x", true}, {"admin2", "x", true}, {"", NULL, false}, {"", "x", false},
          {"shop", "", false}, {"shop", "$cmd", false}, {"shop", "system.views", false},
          {"shop", "system.buckets.w", false}, {"shop", "systems", true},
          {"shop", "my.system.x", true}, {"shop", "a.b.c", true}, {"shop", "\xc3\xb1 \"q\"", true});
}

static void whole_names(void **state)
{
    struct mg_config cfg = {.collection_include = LIST("shop.orders", "shop\\.cust.*", "b\\d.t")};
    (void)state;
    CHECK(&cfg, {"shop", "orders", true}, {"shop", "orders2", false}, {"shop", "Orders", false},
          {"workshop", "orders", false}, {"shop", "customers", true}, {"shop", "cust.a.b", true},
          {"b1", "t", true}, {"bx", "t", false}, {"shop", NULL, true}, {"shop", "other", false});
}

static void databases_and_exclusion(void **state)
{
    struct mg_config cfg = {.database_include = LIST("shop.*", "eu"),
                            .database_exclude = LIST("shop_test"),
                            .collection_exclude = LIST(".*\\.tmp_.*")};
    (void)state;
    CHECK(&cfg, {"shop", NULL, true}, {"shop", "t", true}, {"shop2", "t", true}, {"eu", "t", true},
          {"eu2", "t", false}, {"shop_test", NULL, false}, {"shop_test", "t", false},
          {"shop", "tmp_1", false}, {"eu", "a.tmp_1", false}, {"us", "t", false});
}

/* A wide expression does not bring the server's own collections; one that names them does. */
static void system_collections(void **state)
{
    struct mg_config wide = {.collection_include = LIST("shop.*")};
    struct mg_config named = {.collection_include = LIST("shop.*", "shop\\.system\\.buckets\\..*")};
    (void)state;
    CHECK(&wide, {"shop", "system.views", false}, {"shop", "system.buckets.w", false},
          {"shop", "t", true});
    CHECK(&named, {"shop", "system.views", false}, {"shop", "system.buckets.w", true},
          {"shop", "t", true}, {"eu", "system.buckets.w", false});
}

static void scopes(void **state)
{
    struct mg_config db = {.scope = MG_SCOPE_DATABASE, .target = (char *)"shop"};
    struct mg_config coll = {.scope = MG_SCOPE_COLLECTION, .target = (char *)"shop.a.b"};
    (void)state;
    CHECK(&db, {"shop", NULL, true}, {"shop", "x", true}, {"shop2", NULL, false},
          {"shop2", "x", false});
    CHECK(&coll, {"shop", NULL, true}, {"shop", "a.b", true}, {"shop", "a", false},
          {"shop", "a.b.c", false}, {"eu", "a.b", false});
}

static void refused(void **state)
{
    const struct {
        struct mg_config cfg;
        const char *says;
    } bad[] = {
        {{.collection_include = LIST("shop.(t")}, "collection.include.list"},
        {{.collection_exclude = LIST("*")}, "collection.exclude.list"},
        {{.database_include = LIST("(")}, "database.include.list"},
        {{.database_exclude = LIST("[")}, "database.exclude.list"},
        {{.field_exclude = LIST("shop.orders")}, "field.exclude.list"},
        {{.field_exclude = LIST("shop..x.y")}, "field.exclude.list"},
        {{.scope = MG_SCOPE_DATABASE}, "capture.target"},
        {{.scope = MG_SCOPE_DATABASE, .target = (char *)"shop.t"}, "capture.target"},
        {{.scope = MG_SCOPE_COLLECTION, .target = (char *)"shop"}, "capture.target"},
        {{.scope = MG_SCOPE_COLLECTION, .target = (char *)"shop."}, "capture.target"},
        {{.scope = MG_SCOPE_DEPLOYMENT, .target = (char *)"shop"}, "capture.scope"},
        {{.capture = MG_OPLOG, .scope = MG_SCOPE_DATABASE, .target = (char *)"shop"},
         "capture.scope"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct mg_filter *f;
        struct cdcd_error err = {0};
        assert_int_equal(mg_filter_new(&bad[i].cfg, &f, &err), CDCD_ERROR);
        assert_int_equal(err.class, CDCD_ERR_CONFIG);
        assert_null(f);
        if (!strstr(err.text, bad[i].says))
            fail_msg("does not say %s: %s", bad[i].says, err.text);
    }
}

/* Many namespaces: what is known grows, and is begun anew. */
static void many(void **state)
{
    struct mg_config cfg = {.collection_include = LIST("shop\\.c[0-9]*[02468]"),
                            .field_exclude = LIST("shop.c*.secret")};
    struct mg_filter *f = compile(&cfg);
    const struct mg_fields *fields = mg_filter_fields(f, S("shop"), S("c0"));
    (void)state;
    assert_non_null(fields);
    for (int i = 0; i < 150000; i++) {
        char name[32];
        snprintf(name, sizeof name, "c%d", i);
        assert_int_equal(mg_filter_collection(f, S("shop"), S(name)), i % 2 == 0);
        if (i % 1000 == 0)
            assert_ptr_equal(mg_filter_fields(f, S("shop"), S(name)), fields);
    }
    assert_null(mg_filter_fields(f, S("eu"), S("c0")));
    mg_filter_free(f);
}

/* ---- for the server ---- */

static void stages(const struct mg_config *cfg, const char *want)
{
    struct mg_filter *f = compile(cfg);
    bson_t b = BSON_INITIALIZER, doc = BSON_INITIALIZER;
    mg_filter_pipeline(f, &b);
    bson_append_array(&doc, "", 0, &b);
    char *json = bson_as_relaxed_extended_json(&doc, NULL);
    assert_string_equal(json, want);
    bson_free(json);
    bson_destroy(&b);
    bson_destroy(&doc);
    mg_filter_free(f);
}

static void none_for_the_server(void **state)
{
    struct mg_config none = {0};
    struct mg_config expression = {.collection_include = LIST("shop.orders", "shop.cust.*")};
    struct mg_config dots = {.collection_include = LIST("shop.a.b")};
    struct mg_config exclude = {.collection_exclude = LIST("shop.orders")};
    (void)state;
    stages(&none, "{ \"\" : [  ] }");
    stages(&expression, "{ \"\" : [  ] }");
    stages(&dots, "{ \"\" : [  ] }"); /* matches a1b of shop, too, which an equality would not */
    stages(&exclude, "{ \"\" : [  ] }");
}

#define WHOLE "{ \"ns.coll\" : { \"$exists\" : false } }"

static void for_the_server(void **state)
{
    struct mg_config collections = {.collection_include = LIST("shop.orders", "e-u.b_2")};
    struct mg_config databases = {.database_include = LIST("shop"),
                                  .collection_include = LIST("shop.c.*")};
    (void)state;
    stages(&collections,
           "{ \"\" : [ { \"$match\" : { \"$or\" : [ { \"ns.db\" : \"shop\", \"ns.coll\" : "
           "\"orders\" }, { "
           "\"to.db\" : \"shop\", \"to.coll\" : \"orders\" }, { \"ns.db\" : \"e-u\", \"ns.coll\" : "
           "\"b_2\" }, { \"to.db\" : \"e-u\", \"to.coll\" : \"b_2\" }, " WHOLE " ] } } ] }");
    stages(&databases,
           "{ \"\" : [ { \"$match\" : { \"$or\" : [ { \"ns.db\" : \"shop\" }, { \"to.db\" : "
           "\"shop\" }, " WHOLE " ] } } ] }");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_lists),
        cmocka_unit_test(whole_names),
        cmocka_unit_test(databases_and_exclusion),
        cmocka_unit_test(system_collections),
        cmocka_unit_test(scopes),
        cmocka_unit_test(refused),
        cmocka_unit_test(many),
        cmocka_unit_test(none_for_the_server),
        cmocka_unit_test(for_the_server),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
