/*
 * The PostgreSQL plugin's slot and publication: what is told apart, with which class, and which
 * tables a publication must name.
 */
#include "publication.h"

#include <setjmp.h>
#include <stdlib.h>

#include <cmocka.h>

#define LSN(x) ((pg_lsn)(x))

static const struct pg_server primary = {
    .version = 150000, .system_id = "77", .db = (char *)"shop"};
static const struct pg_server standby = {
    .version = 170000, .in_recovery = true, .system_id = "77", .db = (char *)"shop"};

#define SLOT(plug, base, status) \
    .exists = true, .plugin = plug, .database = base, .wal_status = status
#define GOOD SLOT("pgoutput", "shop", "reserved")

static void slot_states(void **state)
{
    (void)state;
    static const struct pg_position at100 = {.lsn = 100, .done = 100, .sys = "77"};
    static const struct pg_position other = {.lsn = 100, .done = 100, .sys = "78"};
    static const struct pg_position no_sys = {.lsn = 100, .done = 100};
    static const struct {
        const char *what;
        struct pg_slot slot;
        const struct pg_server *server;
        pg_lsn server_lsn;
        const struct pg_position *stored;
        enum cdcd_error_class class; /* NONE: good */
        const char *text;            /* must be in the message */
    } cases[] = {
        {"fresh", {.exists = false}, &primary, 500, NULL, CDCD_ERR_NONE, NULL},
        {"made beforehand",
         {GOOD, .confirmed_flush = 90},
         &primary,
         500,
         NULL,
         CDCD_ERR_NONE,
         NULL},
        {"ours", {GOOD, .confirmed_flush = 100}, &primary, 500, &at100, CDCD_ERR_NONE, NULL},
        {"not confirmed yet",
         {GOOD, .confirmed_flush = 60},
         &primary,
         100,
         &at100,
         CDCD_ERR_NONE,
         NULL},
        {"old state without an identifier",
         {GOOD, .confirmed_flush = 60},
         &primary,
         500,
         &no_sys,
         CDCD_ERR_NONE,
         NULL},
        {"short of log",
         {SLOT("pgoutput", "shop", "unreserved")},
         &primary,
         500,
         NULL,
         CDCD_ERR_NONE,
         NULL},
        {"dropped",
         {.exists = false},
         &primary,
         500,
         &at100,
         CDCD_ERR_LOSS,
         "\"s\" does not exist"},
        {"recreated",
         {GOOD, .confirmed_flush = 101},
         &primary,
         500,
         &at100,
         CDCD_ERR_LOSS,
         "already past our position"},
        {"lost",
         {SLOT("pgoutput", "shop", "lost")},
         &primary,
         500,
         &at100,
         CDCD_ERR_LOSS,
         "invalidated (wal_status lost)"},
        {"lost, nothing stored",
         {SLOT("pgoutput", "shop", "lost")},
         &primary,
         500,
         NULL,
         CDCD_ERR_LOSS,
         "pg_drop_replication_slot('s')"},
        {"invalidated",
         {GOOD, .invalidation = "idle_timeout"},
         &primary,
         500,
         &at100,
         CDCD_ERR_LOSS,
         "reason idle_timeout"},
        {"lost and active",
         {SLOT("pgoutput", "shop", "lost"), .active = true},
         &primary,
         500,
         &at100,
         CDCD_ERR_LOSS,
         "invalidated"},
        {"restored from a backup",
         {GOOD, .confirmed_flush = 50},
         &primary,
         99,
         &at100,
         CDCD_ERR_LOSS,
         "before the stored position"},
        {"another server",
         {GOOD, .confirmed_flush = 100},
         &primary,
         500,
         &other,
         CDCD_ERR_LOSS,
         "another database system"},
        {"failed over without the slot",
         {.exists = false},
         &primary,
         50,
         &at100,
         CDCD_ERR_LOSS,
         "failed over"},
        {"active",
         {GOOD, .active = true, .active_pid = 4711},
         &primary,
         500,
         &at100,
         CDCD_ERR_RETRY,
         "pg_terminate_backend(4711)"},
        {"active, nothing stored",
         {GOOD, .active = true, .active_pid = 12},
         &primary,
         500,
         NULL,
         CDCD_ERR_RETRY,
         "is active for PID 12"},
        {"recreated and active",
         {GOOD, .active = true, .confirmed_flush = 200},
         &primary,
         500,
         &at100,
         CDCD_ERR_LOSS,
         "already past"},
        {"another plugin",
         {SLOT("wal2json", "shop", "reserved")},
         &primary,
         500,
         NULL,
         CDCD_ERR_CONFIG,
         "wal2json"},
        {"a physical slot", {.exists = true}, &primary, 500, NULL, CDCD_ERR_CONFIG, "physical"},
        {"another database",
         {SLOT("pgoutput", "crm", "reserved")},
         &primary,
         500,
         &at100,
         CDCD_ERR_CONFIG,
         "\"crm\""},
        {"synced on a standby",
         {GOOD, .synced = true},
         &standby,
         500,
         NULL,
         CDCD_ERR_CONFIG,
         "standby"},
        {"synced, after the failover",
         {GOOD, .synced = true},
         &primary,
         500,
         NULL,
         CDCD_ERR_NONE,
         NULL},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct cdcd_error err = {0};
        enum cdcd_rc rc = pg_slot_verify(&cases[i].slot, "s", "shop", cases[i].server,
                                         cases[i].server_lsn, cases[i].stored, &err);
        if ((rc == CDCD_OK) != (cases[i].class == CDCD_ERR_NONE) || err.class != cases[i].class)
            fail_msg("%s: class %s: %s", cases[i].what, cdcd_error_class_name(err.class), err.text);
        if (cases[i].text && !strstr(err.text, cases[i].text))
            fail_msg("%s: \"%s\" is not in: %s", cases[i].what, cases[i].text, err.text);
    }
}

/* The mends fit into the buffer, also with names and positions of full length. */
static void texts_are_whole(void **state)
{
    (void)state;
    char name[64];
    memset(name, 'x', 63);
    name[63] = '\0';
    const struct pg_slot lost = {SLOT("pgoutput", "shop", "lost"),
                                 .invalidation = "wal_level_insufficient"};
    const struct pg_position stored = {.lsn = UINT64_MAX, .sys = "77"};
    struct cdcd_error err = {0};
    assert_int_equal(pg_slot_verify(&lost, name, "shop", &primary, 5, &stored, &err), CDCD_ERROR);
    assert_non_null(strstr(err.text, "removed there"));
}

/* ---- publication ---- */

static struct pg_pub_table tables[] = {
    /* oid, parent, schema, table, partitioned, captured, member, published */
    {.oid = 10, .schema = "public", .table = "plain", .captured = true, .published = true},
    {.oid = 20, .schema = "public", .table = "root", .partitioned = true, .captured = true},
    {.oid = 21, .parent = 20, .schema = "public", .table = "mid", .partitioned = true},
    {.oid = 22, .parent = 21, .schema = "public", .table = "leaf", .captured = true},
    {.oid = 30, .schema = "public", .table = "other_root", .partitioned = true},
    {.oid = 31, .parent = 30, .schema = "public", .table = "other_leaf", .captured = true},
    {.oid = 40, .schema = "public", .table = "ignored"},
};
#define NTABLES (sizeof tables / sizeof *tables)

static struct pg_pub_table *find(const char *name)
{
    for (size_t i = 0; i < NTABLES; i++) {
        if (strcmp(tables[i].table, name) == 0)
            return &tables[i];
    }
    fail();
    return NULL;
}

static void publication_names(void **state)
{
    (void)state;
    struct pg_pub_tables all = {.items = tables, .n = NTABLES};
    size_t n = 0;
    char *list = pg_pub_list_sql(&all, false, &n);
    /* The leaf goes with its captured root; other_leaf stands for itself. */
    assert_string_equal(list, "ONLY \"public\".\"plain\", \"public\".\"root\", "
                              "ONLY \"public\".\"other_leaf\"");
    assert_int_equal(n, 3);
    free(list);
    find("root")->member = true;
    list = pg_pub_list_sql(&all, true, &n);
    assert_string_equal(list, "ONLY \"public\".\"plain\", ONLY \"public\".\"other_leaf\"");
    free(list);
    find("root")->member = false;
}

static void publication_covers(void **state)
{
    (void)state;
    struct pg_pub_tables all = {.items = tables, .n = NTABLES};
    struct pg_publication by_root = {.exists = true, .via_root = true};
    struct pg_publication by_leaf = {.exists = true};
    assert_true(pg_pub_table_covered(&all, find("plain"), &by_leaf));
    assert_false(pg_pub_table_covered(&all, find("leaf"), &by_root));
    assert_false(pg_pub_table_covered(&all, find("root"), &by_root));
    assert_false(pg_pub_table_covered(&all, find("root"), &by_leaf));

    find("root")->published = true; /* via root */
    assert_true(pg_pub_table_covered(&all, find("root"), &by_root));
    assert_true(pg_pub_table_covered(&all, find("leaf"), &by_root));
    find("root")->published = false;

    find("leaf")->published = true; /* by leaf: the root's changes come under the leaf's name */
    assert_true(pg_pub_table_covered(&all, find("root"), &by_leaf));
    assert_true(pg_pub_table_covered(&all, find("leaf"), &by_leaf));
    find("leaf")->published = false;

    /* Published as its root, which is not captured: the records would be filtered out. */
    find("other_root")->published = true;
    assert_false(pg_pub_table_covered(&all, find("other_leaf"), &by_root));
    find("other_root")->published = false;
}

static void replica_identities(void **state)
{
    (void)state;
    static const struct {
        struct pg_pub_table t;
        bool breaks;
    } cases[] = {
        {{.replident = 'd', .has_key = true}, false},     {{.replident = 'd'}, true},
        {{.replident = 'n', .has_key = true}, true},      {{.replident = 'f'}, false},
        {{.replident = 'i', .has_key = true}, false},     {{.replident = 'i'}, true},
        {{.replident = 'd', .partitioned = true}, false},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        assert_int_equal(pg_pub_table_breaks(&cases[i].t), cases[i].breaks);
}

static void count_clash(void *ctx, const char *text)
{
    size_t *n = ctx;
    (*n)++;
    assert_true(strstr(text, "\"order$2024\"") || strstr(text, "\"a.b\""));
    assert_true(strstr(text, "\"order#2024\"") || strstr(text, "\"public.a\""));
}

static void topics_clash(void **state)
{
    (void)state;
    static struct pg_pub_table named[] = {
        {.schema = "public", .table = "order$2024", .captured = true},
        {.schema = "public", .table = "order#2024", .captured = true},
        {.schema = "public", .table = "order%2024"}, /* not captured */
        {.schema = "public", .table = "Orders", .captured = true},
        {.schema = "public", .table = "orders", .captured = true},
        {.schema = "public", .table = "a.b", .captured = true},
        {.schema = "public.a", .table = "b", .captured = true},
    };
    struct pg_pub_tables all = {.items = named, .n = sizeof named / sizeof *named};
    size_t n = 0;
    pg_pub_topic_clashes(&all, count_clash, &n);
    assert_int_equal(n, 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(slot_states),        cmocka_unit_test(texts_are_whole),
        cmocka_unit_test(publication_names),  cmocka_unit_test(publication_covers),
        cmocka_unit_test(replica_identities), cmocka_unit_test(topics_clash),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
