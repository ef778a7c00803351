/* Include and exclude lists of the PostgreSQL plugin. */
#include "pg.h"

#include <setjmp.h>

#include <cmocka.h>

#define LIST(...)                                                                               \
    {                                                                                           \
        .items = (char *[]){__VA_ARGS__}, .n = sizeof((char *[]){__VA_ARGS__}) / sizeof(char *) \
    }

static struct pg_filter *compile(const struct pg_config *cfg)
{
    struct pg_filter *f = NULL;
    struct cdcd_error err = {0};

    if (pg_filter_new(cfg, &f, &err) != CDCD_OK)
        fail_msg("%s", err.text);
    return f;
}

struct expect {
    const char *schema, *table;
    bool pass;
};

static void check(const struct pg_config *cfg, const struct expect *e, size_t n)
{
    struct pg_filter *f = compile(cfg);

    for (size_t i = 0; i < n; i++) {
        if (pg_filter_table(f, e[i].schema, e[i].table) != e[i].pass)
            fail_msg("%s.%s should %spass", e[i].schema, e[i].table, e[i].pass ? "" : "not ");
    }
    pg_filter_free(f);
}
#define CHECK(cfg, ...)                        \
    check(cfg, (struct expect[]){__VA_ARGS__}, \
          sizeof((struct expect[]){__VA_ARGS__}) / sizeof(struct expect))

static void no_lists(void **state)
{
    struct pg_config cfg = {0};

    (void)state;
    CHECK(&cfg, {"public", "orders", true}, {"My.Schema", "Ta.ble \"q\" \xc3\xb1", true},
          {"pg_catalog", "pg_class", false}, {"information_schema", "tables", false},
          {"pg_toast", "pg_toast_1", false}, {"pg_temp_3", "t", false},
          {"pg_toast_temp_3", "t", false}, {"", "pg_class", false}, {"pgbench", "t", true},
          {"information_schema2", "t", true});
}

static void whole_names(void **state)
{
    struct pg_config cfg = {.table_include = LIST("public.orders", "public\\.cust.*")};

    (void)state;
    CHECK(&cfg, {"public", "orders", true}, {"public", "orders2", false},
          {"public", "my_orders", false}, {"xpublic", "orders", false},
          {"public", "customers", true}, {"public", "cust", true}, {"public", "Orders", false},
          {"pg_catalog", "orders", false});
}

static void alternatives_stay_anchored(void **state)
{
    struct pg_config cfg = {.table_include = LIST("public.a|public.b")};

    (void)state;
    CHECK(&cfg, {"public", "a", true}, {"public", "b", true}, {"public", "ab", false},
          {"xpublic", "b", false});
}

static void exclude_wins(void **state)
{
    struct pg_config cfg = {.schema_include = LIST("public", "s\\d+"),
                            .schema_exclude = LIST("s3"),
                            .table_exclude = LIST("public\\.tmp_[\\d_]+", ".*\\.secret")};

    (void)state;
    CHECK(&cfg, {"public", "t", true}, {"s12", "t", true}, {"s3", "t", false}, {"sx", "t", false},
          {"public", "tmp_1_2", false}, {"public", "tmp_x", true}, {"s1", "secret", false});
}

static void odd_names(void **state)
{
    struct pg_config cfg = {.table_include = LIST("public\\.a\\.b", "public\\.order\\$2024",
                                                  "My\\.Schema\\..*", "public\\.[\\w.]+_x",
                                                  "public\\.[]\\[]q", "public\\.[^\\d]z")};

    (void)state;
    CHECK(&cfg, {"public", "a.b", true}, {"a", "b", false}, {"public", "order$2024", true},
          {"public", "order#2024", false}, {"My.Schema", "Ta.ble \"q\" \xf0\x9f\x90\x98", true},
          {"public", "w.1_x", true}, {"public", "w-1_x", false}, {"public", "]q", true},
          {"public", "[q", true}, {"public", "az", true}, {"public", "1z", false});
}

static void columns(void **state)
{
    struct pg_config none = {0};
    struct pg_config cfg = {.column_exclude = LIST("public\\.users\\.(password|ssn)")};
    struct pg_config only = {.column_include = LIST("public\\.users\\.id", "public\\.t\\..*")};
    struct pg_filter *f = compile(&none);

    (void)state;
    assert_true(pg_filter_column(f, "public", "users", "password"));
    pg_filter_free(f);
    f = compile(&cfg);
    assert_false(pg_filter_column(f, "public", "users", "password"));
    assert_true(pg_filter_column(f, "public", "users", "password2"));
    assert_true(pg_filter_column(f, "public", "user", "ssn"));
    pg_filter_free(f);
    f = compile(&only);
    assert_true(pg_filter_column(f, "public", "users", "id"));
    assert_false(pg_filter_column(f, "public", "users", "name"));
    assert_true(pg_filter_column(f, "public", "t", "anything"));
    pg_filter_free(f);
}

static void bad_expression(void **state)
{
    struct pg_config cfg = {.table_exclude = LIST("public.ok", "public.(bad")};
    struct pg_filter *f = NULL;
    struct cdcd_error err = {0};

    (void)state;
    assert_int_equal(pg_filter_new(&cfg, &f, &err), CDCD_ERROR);
    assert_int_equal(err.class, CDCD_ERR_CONFIG);
    assert_non_null(strstr(err.text, "table.exclude.list"));
    assert_non_null(strstr(err.text, "public.(bad"));
    assert_null(f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_lists),
        cmocka_unit_test(whole_names),
        cmocka_unit_test(alternatives_stay_anchored),
        cmocka_unit_test(exclude_wins),
        cmocka_unit_test(odd_names),
        cmocka_unit_test(columns),
        cmocka_unit_test(bad_expression),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
