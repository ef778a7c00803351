/*
 * Replies of bulks, item by item, reasons, and paths.
 */
#include "sink.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

/* ---- verdicts ---- */

static void verdicts(void **state)
{
    static const struct {
        long status;
        const char *type, *reason;
        bool is_delete;
        enum es_verdict verdict;
    } cases[] = {
        {200, "", "", false, ES_DONE},
        {201, "", "", false, ES_DONE},
        {200, "", "", true, ES_DONE},
        {404, "", "", true, ES_GONE},
        {409, "version_conflict_engine_exception", "[1]: version conflict", false, ES_STALE},
        {409, "version_conflict_engine_exception", "[1]: version conflict", true, ES_STALE},
        {409, "something_else_exception", "", false, ES_AGAIN},
        {429, "es_rejected_execution_exception", "rejected execution", false, ES_AGAIN},
        {429, "rejected_execution_exception", "rejected execution", false, ES_AGAIN},
        {429, "circuit_breaking_exception", "[parent] Data too large", false, ES_AGAIN},
        {503, "unavailable_shards_exception", "primary shard is not active", false, ES_AGAIN},
        {503, "process_cluster_event_timeout_exception", "", false, ES_AGAIN},
        {500, "illegal_state_exception", "", false, ES_AGAIN},
        {403, "cluster_block_exception", "index [i] blocked by: [FORBIDDEN/8/index write (api)]",
         false, ES_BLOCKED},
        {429, "cluster_block_exception",
         "index [i] blocked by: [TOO_MANY_REQUESTS/12/disk usage exceeded flood-stage watermark]",
         false, ES_BLOCKED},
        {400, "index_closed_exception", "closed", false, ES_BLOCKED},
        {404, "index_not_found_exception", "no such index [i]", false, ES_LOST},
        {404, "index_not_found_exception", "no such index [i]", true, ES_LOST},
        {400, "illegal_argument_exception", "no write index is defined for alias [i]. ...", false,
         ES_LOST},
        {400, "mapper_parsing_exception", "failed to parse field [f]", false, ES_REFUSED},
        {400, "document_parsing_exception", "failed to parse field [f]", false, ES_REFUSED},
        {400, "strict_dynamic_mapping_exception", "", false, ES_REFUSED},
        {400, "illegal_argument_exception", "Limit of total fields [1000] has been exceeded", false,
         ES_REFUSED},
        {400, "illegal_argument_exception", "Document contains at least one immense term", false,
         ES_REFUSED},
        {413, "", "", false, ES_REFUSED},
        {403, "security_exception", "no permissions", false, ES_DENIED},
        {401, "security_exception", "", true, ES_DENIED},
        {408, "", "", false, ES_AGAIN},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        assert_int_equal(
            es_judge(cases[i].status, cases[i].type, cases[i].reason, cases[i].is_delete),
            cases[i].verdict);
}

/* ---- items ---- */

struct taken {
    size_t n;
    struct es_result items[8];
};

static void take(void *ctx, size_t i, const struct es_result *r)
{
    struct taken *t = ctx;
    assert_int_equal(i, t->n);
    t->items[t->n++] = *r;
}

static bool items(const char *body, size_t n, struct taken *t)
{
    *t = (struct taken){0};
    return es_bulk_items(cdcd_slice_str(body), n, take, t);
}

static void items_of_opensearch(void **state)
{
    struct taken t;
    (void)state;
    assert_true(items(
        "{\"errors\":true,\"items\":[{\"index\":{\"status\":201}},{\"delete\":{\"status\":404}},"
        "{\"index\":{\"status\":400,\"error\":{\"type\":\"mapper_parsing_exception\",\"reason\":"
        "\"failed to parse field [f] of type [long]\",\"caused_by\":{\"type\":"
        "\"illegal_argument_exception\",\"reason\":\"For input string: \\\"text\\\"\"}}}}]}",
        3, &t));
    assert_int_equal(t.n, 3);
    assert_int_equal(t.items[0].verdict, ES_DONE);
    assert_int_equal(t.items[1].verdict, ES_GONE);
    assert_int_equal(t.items[2].verdict, ES_REFUSED);
    assert_string_equal(t.items[2].type, "mapper_parsing_exception");
    assert_string_equal(t.items[2].reason,
                        "failed to parse field [f] of type [long]: For input string: \"text\"");
}

static void items_of_elasticsearch_7(void **state)
{
    struct taken t;
    (void)state;
    assert_true(
        items("{\"took\":3,\"errors\":true,\"items\":[{\"index\":{\"_index\":\"i\",\"_type\":\"_"
              "doc\",\"_id\":\"1\","
              "\"status\":409,\"error\":{\"type\":\"version_conflict_engine_exception\",\"reason\":"
              "\"[1]: "
              "version conflict\",\"index_uuid\":\"x\",\"shard\":\"0\",\"index\":\"i\"}}}]}",
              1, &t));
    assert_int_equal(t.items[0].verdict, ES_STALE);
}

/* Nothing counts as done because of a reply that is none. */
static void replies_that_are_none(void **state)
{
    static const char *const bodies[] = {
        "",
        "{}",
        "null",
        "<html>",
        "{\"errors\":false}",
        "{\"errors\":false,\"items\":{}}",
        "{\"errors\":false,\"items\":[]}",
        "{\"errors\":false,\"items\":[1]}",
        "{\"errors\":false,\"items\":[{}]}",
        "{\"errors\":false,\"items\":[{\"index\":1}]}",
        "{\"errors\":false,\"items\":[{\"index\":{}}]}",
        "{\"errors\":false,\"items\":[{\"index\":{\"status\":\"200\"}}]}",
        "{\"errors\":false,\"items\":[{\"index\":{\"status\":20.5}}]}",
        "{\"errors\":false,\"items\":[{\"index\":{\"status\":200}},{\"index\":{\"status\":200}}]}",
        "{\"errors\":false,\"items\":[{\"index\":{\"status\":200}}]",
    };
    struct taken t;
    (void)state;
    for (size_t i = 0; i < sizeof bodies / sizeof *bodies; i++) {
        assert_false(items(bodies[i], 1, &t));
        assert_int_equal(t.n, 0);
    }
    assert_true(items("{\"errors\":false,\"items\":[{\"index\":{\"status\":200}}]}", 1, &t));
}

/* ---- reasons ---- */

static void reasons(void **state)
{
    static const struct {
        const char *body, *type, *reason;
    } cases[] = {
        {"{\"error\":{\"type\":\"t\",\"reason\":\"a\",\"caused_by\":{\"type\":\"u\",\"reason\":"
         "\"b\"}}}",
         "t", "a: b"},
        {"{\"error\":{\"type\":\"t\",\"reason\":\"a: b\",\"caused_by\":{\"reason\":\"b\"}}}", "t",
         "a: b"},
        {"{\"error\":\"alias [x] missing\",\"status\":404}", "", "alias [x] missing"},
        {"{\"error\":{\"type\":\"t\",\"reason\":\"two\\nlines\"}}", "t", "two lines"},
        {"{\"error\":{}}", "", ""},
        {"{\"error\":null}", "", ""},
        {"{\"ok\":1}", "", ""},
        {"<html>\n502", "", "<html> 502"},
        {"", "", ""},
    };
    char type[96], reason[64];
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        es_reason(cdcd_slice_str(cases[i].body), type, sizeof type, reason, sizeof reason);
        assert_string_equal(type, cases[i].type);
        assert_string_equal(reason, cases[i].reason);
    }
    es_reason(cdcd_slice_str(
                  "{\"error\":{\"type\":\"t\",\"reason\":\"1234567890123456789012345678901234567890"
                  "123456789012345678901234567890\"}}"),
              type, sizeof type, reason, sizeof reason);
    assert_int_equal(strlen(reason), sizeof reason - 1);
}

static void error_classes(void **state)
{
    static const struct {
        long status;
        const char *body;
        enum cdcd_error_class class;
    } cases[] = {
        {401, "{}", CDCD_ERR_CONFIG},
        {403, "{\"error\":{\"type\":\"security_exception\",\"reason\":\"no\"}}", CDCD_ERR_CONFIG},
        {403, "{\"error\":{\"type\":\"cluster_block_exception\",\"reason\":\"x\"}}",
         CDCD_ERR_RETRY},
        {429, "", CDCD_ERR_RETRY},
        {502, "<html>", CDCD_ERR_RETRY},
        {503, "{}", CDCD_ERR_RETRY},
        {404, "{}", CDCD_ERR_FATAL},
        {400, "{}", CDCD_ERR_FATAL},
        {302, "", CDCD_ERR_FATAL},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct es_reply r = {.status = cases[i].status};
        struct cdcd_error err = {0};
        cdcd_buf_init(&r.body, 0);
        cdcd_buf_adds(&r.body, cases[i].body);
        assert_int_equal(es_fail(&err, &r, "what"), CDCD_ERROR);
        assert_int_equal(err.class, cases[i].class);
        es_reply_free(&r);
    }
    struct es_reply none = {.status = 0, .error = "http://h:1: refused"};
    struct cdcd_error err = {0};
    es_fail(&err, &none, "what");
    assert_int_equal(err.class, CDCD_ERR_RETRY);
    assert_non_null(strstr(err.text, "no answer from http://h:1: refused"));
    none.misconfigured = true;
    es_fail(&err, &none, "what");
    assert_int_equal(err.class, CDCD_ERR_CONFIG);
}

/* ---- requests ---- */

static void paths(void **state)
{
    (void)state;
    char *path = es_path("/%I/_doc/%I?x=1", cdcd_slice_str("a.b-c_d"), cdcd_slice_str("ä /%?#1"));
    assert_string_equal(path, "/a.b-c_d/_doc/%C3%A4%20%2F%25%3F%231?x=1");
    free(path);
}

static void strings(void **state)
{
    static const struct {
        const char *text, *json;
    } cases[] = {{"", "\"\""},
                 {"plain 1", "\"plain 1\""},
                 {"a\"b\\c", "\"a\\\"b\\\\c\""},
                 {"[\"a\",1]", "\"[\\\"a\\\",1]\""},
                 {"\n", "\"\\n\""},
                 {"\xff", "\"\xef\xbf\xbd\""},
                 {"ä", "\"ä\""}};
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct cdcd_buf b;
        cdcd_buf_init(&b, 0);
        es_json_string(&b, cdcd_slice_str(cases[i].text));
        assert_string_equal(cdcd_buf_cstr(&b), cases[i].json);
        cdcd_buf_free(&b);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(verdicts),
        cmocka_unit_test(items_of_opensearch),
        cmocka_unit_test(items_of_elasticsearch_7),
        cmocka_unit_test(replies_that_are_none),
        cmocka_unit_test(reasons),
        cmocka_unit_test(error_classes),
        cmocka_unit_test(paths),
        cmocka_unit_test(strings),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
