/* Include and exclude lists of the MySQL plugin. */
#include "my.h"

#include <setjmp.h>

#include <cmocka.h>

#define LIST(...)                                                                               \
    {                                                                                           \
        .items = (char *[]){__VA_ARGS__}, .n = sizeof((char *[]){__VA_ARGS__}) / sizeof(char *) \
    }

static struct my_filter *compile(const struct my_config *cfg, bool fold)
{
    struct my_filter *f = NULL;
    struct cdcd_error err = {0};

    if (my_filter_new(cfg, &f, &err) != CDCD_OK)
        fail_msg("%s", err.text);
    my_filter_fold(f, fold);
    return f;
}

struct expect {
    const char *db, *table;
    bool pass;
};

static void check(const struct my_config *cfg, bool fold, const struct expect *e, size_t n)
{
    struct my_filter *f = compile(cfg, fold);

    for (size_t i = 0; i < n; i++) {
        bool pass = *e[i].table ? my_filter_table(f, e[i].db, e[i].table)
                                : my_filter_database(f, e[i].db);
        if (pass != e[i].pass)
            fail_msg("%s.%s should %spass", e[i].db, e[i].table, e[i].pass ? "" : "not ");
    }
    my_filter_free(f);
}
#define CHECK(cfg, fold, ...)                        \
    check(cfg, fold, (struct expect[]){__VA_ARGS__}, \
          sizeof((struct expect[]){__VA_ARGS__}) / sizeof(struct expect))

static void no_lists(void **state)
{
    struct my_config cfg = {0};

    (void)state;
    CHECK(&cfg, false, {"shop", "orders", true}, {"shop", "", true},
          {"My.Db", "Ta.ble \"q\" \xc3\xb1", true}, {"mysql", "user", false}, {"mysql", "", false},
          {"sys", "sys_config", false}, {"information_schema", "tables", false},
          {"INFORMATION_SCHEMA", "TABLES", false}, {"performance_schema", "t", false},
          {"mysql2", "t", true}, {"", "t", false});
}

static void whole_names(void **state)
{
    struct my_config cfg = {.table_include = LIST("shop.orders", "shop\\.cust.*")};

    (void)state;
    CHECK(&cfg, false, {"shop", "orders", true}, {"shop", "orders2", false},
          {"shop", "my_orders", false}, {"xshop", "orders", false}, {"shop", "customers", true},
          {"shop", "cust", true}, {"shop", "Orders", false}, {"mysql", "orders", false});
}

static void case_folds_with_the_server(void **state)
{
    struct my_config cfg = {.database_include = LIST("Shop"),
                            .table_include = LIST("Shop.Ord[A-Z]rs"),
                            .table_exclude = LIST(".*\\.SECRET")};

    (void)state;
    CHECK(&cfg, false, {"Shop", "OrdErs", true}, {"shop", "orders", false}, {"shop", "", false});
    CHECK(&cfg, true, {"Shop", "OrdErs", true}, {"shop", "orders", true}, {"SHOP", "", true},
          {"shop", "secret", false});
}

static void exclude_wins(void **state)
{
    struct my_config cfg = {.database_include = LIST("shop", "s\\d+"),
                            .database_exclude = LIST("s3"),
                            .table_exclude = LIST("shop\\.tmp_[\\d_]+", ".*\\.secret")};

    (void)state;
    CHECK(&cfg, false, {"shop", "t", true}, {"s12", "t", true}, {"s3", "t", false},
          {"sx", "t", false}, {"shop", "tmp_1_2", false}, {"shop", "tmp_x", true},
          {"s1", "secret", false}, {"s3", "", false}, {"s4", "", true});
}

static void alternatives_stay_anchored(void **state)
{
    struct my_config cfg = {.table_include = LIST("shop.a|shop.b")};

    (void)state;
    CHECK(&cfg, false, {"shop", "a", true}, {"shop", "b", true}, {"shop", "ab", false},
          {"xshop", "b", false});
}

static void columns(void **state)
{
    struct my_config none = {0};
    struct my_config cfg = {.column_exclude = LIST("shop\\.users\\.(password|ssn)")};
    struct my_config only = {.column_include = LIST("shop\\.users\\.id", "shop\\.t\\..*")};
    struct my_filter *f = compile(&none, false);

    (void)state;
    assert_true(my_filter_column(f, "shop", "users", "password"));
    my_filter_free(f);
    f = compile(&cfg, false);
    assert_false(my_filter_column(f, "shop", "users", "password"));
    assert_true(my_filter_column(f, "shop", "users", "password2"));
    assert_true(my_filter_column(f, "shop", "user", "ssn"));
    my_filter_free(f);
    f = compile(&only, false);
    assert_true(my_filter_column(f, "shop", "users", "id"));
    assert_false(my_filter_column(f, "shop", "users", "name"));
    assert_true(my_filter_column(f, "shop", "t", "anything"));
    my_filter_free(f);
}

static void bad_expression(void **state)
{
    struct my_config cfg = {.table_exclude = LIST("shop.ok", "shop.(bad")};
    struct my_filter *f = NULL;
    struct cdcd_error err = {0};

    (void)state;
    assert_int_equal(my_filter_new(&cfg, &f, &err), CDCD_ERROR);
    assert_int_equal(err.class, CDCD_ERR_CONFIG);
    assert_non_null(strstr(err.text, "table.exclude.list"));
    assert_non_null(strstr(err.text, "shop.(bad"));
    assert_null(f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_lists),
        cmocka_unit_test(whole_names),
        cmocka_unit_test(case_folds_with_the_server),
        cmocka_unit_test(exclude_wins),
        cmocka_unit_test(alternatives_stay_anchored),
        cmocka_unit_test(columns),
        cmocka_unit_test(bad_expression),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
