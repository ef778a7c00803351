/* Topics -> names of indexes. */
#include "../support/es_test.h"

struct routes {
    struct es_config cfg;
    struct es_routes *r;
    struct cdcd_error err;
    struct cdcd_strpair pairs[4];
};

static void open_routes(struct routes *t, const char *index)
{
    t->cfg.index = (char *)(uintptr_t)index;
    t->cfg.routes.items = t->pairs;
    if (es_routes_new(&t->cfg, "srv", &t->r, &t->err) != CDCD_OK)
        fail_msg("%s", t->err.text);
}

static void goes(struct routes *t, const char *topic, const char *index)
{
    et_is(es_route(t->r, cdcd_slice_str(topic)), index);
    et_is(es_route(t->r, cdcd_slice_str(topic)), index); /* once more, from the cache */
}

static void by_topic(void **state)
{
    (void)state;
    struct routes t = {0};
    open_routes(&t, "");
    goes(&t, "srv.public.orders", "srv.public.orders");
    goes(&t, "SRV.Public.Orders", "srv.public.orders");
    goes(&t, "a b\\/*?\"<>|,#:c", "a_b___________c");
    goes(&t, "-x", "x");
    goes(&t, "_+.x", "x");
    goes(&t, "..", "cdcd");
    goes(&t, "h\xc3\xa9llo", "h\xc3\xa9llo");
    es_routes_free(t.r);
}

static void long_names(void **state)
{
    (void)state;
    struct routes t = {0};
    char a[260], b[260];
    open_routes(&t, NULL);
    memset(a, 'a', sizeof a);
    a[249] = 0;
    memcpy(b, a, sizeof b);
    b[248] = 'b';
    struct cdcd_slice one = es_route(t.r, cdcd_slice_str(a)),
                      two = es_route(t.r, cdcd_slice_str(b));
    /* With -000001 behind it a name has at most 255 bytes. */
    assert_true(one.len <= 248 && two.len <= 248);
    assert_false(cdcd_slice_eq(one, two));
    a[240] = 0;
    goes(&t, a, a);
    es_routes_free(t.r);
}

static void patterns(void **state)
{
    (void)state;
    struct routes t = {0};
    open_routes(&t, "${prefix}-${db}.${schema}_${table}");
    goes(&t, "srv.public.orders", "srv-public.public_orders");
    goes(&t, "srv.public.with.dots", "srv-public.public_with.dots");
    goes(&t, "other.a.b.c", "other.a-b.b_c");
    goes(&t, "a.b", "a.a_b"); /* no prefix: what is left is empty, and - may not come first */
    goes(&t, "one", "one");   /* .-._one: nothing but a name may stand first */
    es_routes_free(t.r);
}

static void routes(void **state)
{
    (void)state;
    struct routes t = {0};
    t.pairs[0] = (struct cdcd_strpair){(char *)"srv[.]public[.]order.*", (char *)"orders"};
    t.pairs[1] = (struct cdcd_strpair){(char *)".*[.]secret", (char *)"x-${table}"};
    t.cfg.routes.n = 2;
    open_routes(&t, "all-${topic}");
    goes(&t, "srv.public.orders", "orders");
    goes(&t, "srv.public.order_lines", "orders");
    goes(&t, "srv.public.secret", "x-secret");
    goes(&t, "srv.public.t", "all-srv.public.t");
    goes(&t, "xsrv.public.orders", "all-xsrv.public.orders");
    es_routes_free(t.r);
}

static void bad_config(void **state)
{
    (void)state;
    struct routes t = {0};
    t.cfg.index = (char *)"x${tabel}";
    assert_int_equal(es_routes_new(&t.cfg, "srv", &t.r, &t.err), CDCD_ERROR);
    assert_int_equal(t.err.class, CDCD_ERR_CONFIG);
    assert_non_null(strstr(t.err.text, "x${tabel}"));
    t.cfg.index = (char *)"";
    t.pairs[0] = (struct cdcd_strpair){(char *)"a(", (char *)"x"};
    t.cfg.routes.items = t.pairs;
    t.cfg.routes.n = 1;
    assert_int_equal(es_routes_new(&t.cfg, "srv", &t.r, &t.err), CDCD_ERROR);
    assert_int_equal(t.err.class, CDCD_ERR_CONFIG);
    assert_non_null(strstr(t.err.text, "\"a(\""));
    t.pairs[0] = (struct cdcd_strpair){(char *)"a", (char *)"${x}"};
    assert_int_equal(es_routes_new(&t.cfg, "srv", &t.r, &t.err), CDCD_ERROR);
    assert_int_equal(t.err.class, CDCD_ERR_CONFIG);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(by_topic), cmocka_unit_test(long_names), cmocka_unit_test(patterns),
        cmocka_unit_test(routes),   cmocka_unit_test(bad_config),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
