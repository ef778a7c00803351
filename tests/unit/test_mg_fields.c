/* field.exclude.list within documents and updates. Documents are written as Extended JSON. */
#include "mg.h"

#include <setjmp.h>
#include <stdlib.h>

#include <cmocka.h>

#define LIST(...)                                                                               \
    {                                                                                           \
        .items = (char *[]){__VA_ARGS__}, .n = sizeof((char *[]){__VA_ARGS__}) / sizeof(char *) \
    }
#define S cdcd_slice_str

static struct cdcd_arena arena;
static struct mg_filter *filter;

/* What is left out in shop.c. */
static const struct mg_fields *rules(const struct mg_config *cfg)
{
    struct cdcd_error err = {0};
    mg_filter_free(filter);
    if (mg_filter_new(cfg, &filter, &err) != CDCD_OK)
        fail_msg("%s", err.text);
    return mg_filter_fields(filter, S("shop"), S("c"));
}

static bson_t *parse(const char *json)
{
    bson_error_t e;
    bson_t *b = bson_new_from_json((const uint8_t *)json, -1, &e);
    if (!b)
        fail_msg("%s: %s", e.message, json);
    return b;
}

typedef bool strip_fn(const struct mg_fields *x, struct cdcd_arena *a, struct cdcd_slice document,
                      struct cdcd_slice *out);

static void assert_strips(strip_fn *fn, const struct mg_fields *x, const char *json,
                          const char *want)
{
    bson_t *doc = parse(json), *expect = parse(want);
    struct cdcd_slice out;
    assert_true(fn(x, &arena, mg_slice(doc), &out));
    if (!cdcd_slice_eq(out, mg_slice(expect))) {
        bson_t got;
        assert_true(bson_init_static(&got, (const uint8_t *)out.ptr, out.len));
        fail_msg("%s became %s", json, bson_as_relaxed_extended_json(&got, NULL));
    }
    if (fn == mg_fields_strip && strcmp(json, want) == 0)
        assert_ptr_equal(out.ptr, bson_get_data(doc)); /* no copy */
    bson_destroy(doc);
    bson_destroy(expect);
}

static void strips(const struct mg_fields *x, const char *json, const char *want)
{
    assert_strips(mg_fields_strip, x, json, want);
}

static void strips_updated(const struct mg_fields *x, const char *json, const char *want)
{
    assert_strips(mg_fields_strip_updated, x, json, want);
}

static void no_rule(void **state)
{
    struct mg_config none = {0}, other = {.field_exclude = LIST("eu.c.a", "shop.c2.a", "shop.d.c")};
    (void)state;
    assert_null(rules(&none));
    assert_null(rules(&other));
    strips(NULL, "{\"a\":1}", "{\"a\":1}");
    strips_updated(NULL, "{\"a.b\":1}", "{\"a.b\":1}");
    assert_false(mg_fields_excluded(NULL, S("a")));
}

static void first_level(void **state)
{
    struct mg_config cfg = {.field_exclude = LIST("shop.c.a", "shop.c.z")};
    const struct mg_fields *x = rules(&cfg);
    (void)state;
    strips(x, "{\"_id\":1,\"a\":2,\"b\":3}", "{\"_id\":1,\"b\":3}");
    strips(x, "{\"z\":{\"q\":1},\"a\":[1,2]}", "{}");
    strips(x, "{\"_id\":1,\"aa\":2,\"b\":{\"a\":1,\"z\":2},\"A\":1}",
           "{\"_id\":1,\"aa\":2,\"b\":{\"a\":1,\"z\":2},\"A\":1}");
    strips(x, "{}", "{}");
}

static void nested(void **state)
{
    struct mg_config cfg = {.field_exclude = LIST("shop.c.a.b.c", "shop.c.a.x", "shop.c.p.q")};
    const struct mg_fields *x = rules(&cfg);
    (void)state;
    strips(x, "{\"a\":{\"b\":{\"c\":1,\"d\":2},\"x\":3,\"y\":4},\"c\":5,\"p\":6}",
           "{\"a\":{\"b\":{\"d\":2},\"y\":4},\"c\":5,\"p\":6}");
    strips(x, "{\"a\":{\"b\":{\"c\":1}}}", "{\"a\":{\"b\":{}}}");
    strips(x, "{\"a\":1,\"p\":\"q\"}", "{\"a\":1,\"p\":\"q\"}");
    /* A name with a dot is the same text as the path. */
    strips(x, "{\"a.x\":1,\"a\":{\"b.c\":1,\"b.d\":2},\"a.b\":{\"c\":1}}",
           "{\"a\":{\"b.d\":2},\"a.b\":{}}");
}

static void arrays(void **state)
{
    struct mg_config cfg = {.field_exclude = LIST("shop.c.l.p", "shop.c.m.1.p", "shop.c.n.0")};
    const struct mg_fields *x = rules(&cfg);
    (void)state;
    strips(x, "{\"l\":[{\"p\":1,\"q\":2},3,[{\"p\":4}],{\"q\":{\"p\":5}}]}",
           "{\"l\":[{\"q\":2},3,[{}],{\"q\":{\"p\":5}}]}");
    strips(x, "{\"m\":[{\"p\":1},{\"p\":2},{\"p\":3}]}", "{\"m\":[{\"p\":1},{},{\"p\":3}]}");
    /* Others would move up: elements themselves stay. */
    strips(x, "{\"n\":[1,2]}", "{\"n\":[1,2]}");
    strips(x, "{\"n\":{\"0\":1,\"1\":2}}", "{\"n\":{\"1\":2}}");
}

static void wildcards(void **state)
{
    static const struct {
        const char *item;
        bool counts;
    } items[] = {
        {"*.c.a", true},       {"*.*.a", true},     {"sh*.c.a", true},    {"*p.c*.a", true},
        {"shop.*c*.a", true},  {"sh*x.c.a", false}, {"shop.*d.a", false}, {"Shop.c.a", false},
        {"s*h*o*p.c.a", true}, {"shop.c.b", false},
    };
    (void)state;
    for (size_t i = 0; i < sizeof items / sizeof *items; i++) {
        struct mg_config cfg = {.field_exclude = LIST((char *)(uintptr_t)items[i].item)};
        const struct mg_fields *x = rules(&cfg);
        if (mg_fields_excluded(x, S("a")) != items[i].counts)
            fail_msg("%s", items[i].item);
    }
}

/* Names of collections may have dots: both ways to cut the item count. */
static void dotted_collections(void **state)
{
    struct mg_config cfg = {.field_exclude = LIST("shop.c.d.e")};
    const struct mg_fields *x = rules(&cfg);
    (void)state;
    strips(x, "{\"d\":{\"e\":1,\"f\":2},\"e\":3}", "{\"d\":{\"f\":2},\"e\":3}");
    x = mg_filter_fields(filter, S("shop"), S("c.d"));
    strips(x, "{\"d\":{\"e\":1},\"e\":3}", "{\"d\":{\"e\":1}}");
}

static void paths(void **state)
{
    struct mg_config cfg = {.field_exclude = LIST("shop.c.a.b", "shop.c.z", "shop.c.l.0.p")};
    const struct mg_fields *x = rules(&cfg);
    static const struct {
        const char *path;
        bool excluded;
    } cases[] = {
        {"a", false},    {"a.b", true},     {"a.b.c", true}, {"a.bc", false},  {"a.c", false},
        {"a.3.b", true}, {"a.3.b.4", true}, {"a.3", false},  {"z", true},      {"z.0", true},
        {"zz", false},   {"b.z", false},    {"l.0.p", true}, {"l.1.p", false}, {"l.0", false},
        {"", false},     {"a..b", false},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        if (mg_fields_excluded(x, S(cases[i].path)) != cases[i].excluded)
            fail_msg("%s", cases[i].path);
    }
}

static void updated_fields(void **state)
{
    struct mg_config cfg = {.field_exclude = LIST("shop.c.a.b", "shop.c.z", "shop.c.l.p")};
    const struct mg_fields *x = rules(&cfg);
    (void)state;
    strips_updated(x, "{\"a.b\":1,\"a.c\":2,\"z.q\":3,\"y\":4}", "{\"a.c\":2,\"y\":4}");
    strips_updated(x, "{\"a\":{\"b\":1,\"c\":2},\"b\":5}", "{\"a\":{\"c\":2},\"b\":5}");
    strips_updated(x, "{\"l.3\":{\"p\":1,\"q\":2},\"l.4.p\":7,\"l.4.q\":8}",
                   "{\"l.3\":{\"q\":2},\"l.4.q\":8}");
    strips_updated(x, "{\"l\":[{\"p\":1},{\"q\":2}]}", "{\"l\":[{},{\"q\":2}]}");
    strips_updated(x, "{\"b\":1}", "{\"b\":1}");
    strips_updated(x, "{}", "{}");
}

/* More rules than there is room for on the stack, and documents as deep as they may be. */
static void large(void **state)
{
    char *items[200];
    struct mg_config cfg = {.field_exclude = {.items = items, .n = 200}};
    (void)state;
    for (int i = 0; i < 200; i++)
        items[i] = cdcd_xasprintf("shop.c.x.f%d", i);
    const struct mg_fields *x = rules(&cfg);
    strips(x, "{\"x\":{\"f0\":1,\"f199\":2,\"f200\":3}}", "{\"x\":{\"f200\":3}}");
    strips(x, "{\"x\":[[[{\"f7\":1}]]]}", "{\"x\":[[[{}]]]}");
    for (int i = 0; i < 200; i++)
        free(items[i]);
}

static void malformed(void **state)
{
    struct mg_config cfg = {.field_exclude = LIST("shop.c.a.b")};
    const struct mg_fields *x = rules(&cfg);
    bson_t *doc = parse("{\"a\":{\"b\":1,\"c\":\"text\"},\"d\":2}");
    struct cdcd_slice out;
    (void)state;
    for (uint32_t n = 0; n < doc->len; n++) { /* cut anywhere */
        struct cdcd_slice cut = {(const char *)bson_get_data(doc), n};
        assert_false(mg_fields_strip(x, &arena, cut, &out));
        assert_false(mg_fields_strip_updated(x, &arena, cut, &out));
    }
    bson_destroy(doc);
}

static int teardown(void **state)
{
    (void)state;
    mg_filter_free(filter);
    cdcd_arena_free(&arena);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_rule),   cmocka_unit_test(first_level),
        cmocka_unit_test(nested),    cmocka_unit_test(arrays),
        cmocka_unit_test(wildcards), cmocka_unit_test(dotted_collections),
        cmocka_unit_test(paths),     cmocka_unit_test(updated_fields),
        cmocka_unit_test(large),     cmocka_unit_test(malformed),
    };
    cdcd_arena_init(&arena, 1 << 16);
    return cmocka_run_group_tests(tests, NULL, teardown);
}
