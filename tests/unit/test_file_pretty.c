/* Lines for people: rows, documents, statements. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "file.h"

#include <stdlib.h>
#include <time.h>

struct pretty_case {
    const char *key, *value, *line; /* behind the time */
};

static const struct pretty_case cases[] = {
    {"{\"id\":7}",
     "{\"before\":{\"id\":7,\"s\":\"a\"},\"after\":{\"id\":7,\"s\":\"b\"},\"source\":{\"schema\":"
     "\"public\",\"table\":\"orders\"},\"op\":\"u\"}",
     "update    public.orders  {\"id\":7}  s: \"a\" -> \"b\"\n"},
    {"{\"id\":7}",
     "{\"before\":null,\"after\":{\"id\":7},\"source\":{\"table\":\"t\"},\"op\":\"c\"}",
     "insert    t  {\"id\":7}  id: 7\n"},
    {"{\"id\":\"7\"}",
     "{\"before\":null,\"after\":\"{\\\"_id\\\": 7,\\\"s\\\": \\\"q\\\\n\\\"}\","
     "\"updateDescription\":null,\"source\":{\"db\":\"shop\",\"collection\":\"a.b\"},\"op\":\"r\"}",
     "row       shop.a.b  {\"_id\": 7}  {\"_id\": 7,\"s\": \"q\\n\"}\n"},
    {"{\"id\":\"{\\\"$oid\\\": \\\"65\\\"}\"}",
     "{\"before\":null,\"after\":null,\"updateDescription\":{\"removedFields\":[\"v\",\"w\"],"
     "\"updatedFields\":\"{\\\"o.x\\\": 2, \\\"n\\\": 1}\",\"truncatedArrays\":[{\"field\":"
     "\"arr\",\"size\":3}]},\"source\":{\"db\":\"shop\",\"collection\":\"t\"},\"op\":\"u\"}",
     "update    shop.t  {\"_id\": {\"$oid\": \"65\"}}  {\"o.x\": 2, \"n\": 1}, without \"v\", "
     "without \"w\", \"arr\" cut to 3\n"},
    {"{\"id\":\"7\"}",
     "{\"before\":null,\"after\":\"{}\",\"updateDescription\":{\"removedFields\":[\"v\"],"
     "\"updatedFields\":\"{}\",\"truncatedArrays\":null},\"source\":{\"db\":\"shop\","
     "\"collection\":\"t\"},\"op\":\"u\"}",
     "update    shop.t  {\"_id\": 7}  without \"v\"\n"},
    {"{\"id\":\"7\"}",
     "{\"before\":\"{\\\"a\\\": 1}\",\"after\":\"{\\\"a\\\": 2}\",\"updateDescription\":null,"
     "\"source\":{\"db\":\"shop\",\"collection\":\"t\"},\"op\":\"u\"}",
     "update    shop.t  {\"_id\": 7}  {\"a\": 1} -> {\"a\": 2}\n"},
    {"{\"id\":\"7\"}",
     "{\"before\":null,\"after\":null,\"updateDescription\":null,\"source\":{\"db\":\"shop\","
     "\"collection\":\"t\"},\"op\":\"d\"}",
     "delete    shop.t  {\"_id\": 7}  \n"},
    {"{\"schema\":{},\"payload\":{\"id\":\"7\"}}",
     "{\"schema\":{},\"payload\":{\"before\":null,\"after\":\"{\\\"a\\\": 2}\","
     "\"updateDescription\":null,\"source\":{\"db\":\"shop\",\"collection\":\"t\"},\"op\":\"c\"}}",
     "insert    shop.t  {\"_id\": 7}  {\"a\": 2}\n"},
    {"{\"databaseName\":\"shop\"}",
     "{\"source\":{\"db\":\"shop\",\"collection\":\"t\"},\"databaseName\":\"shop\",\"ddl\":"
     "\"{\\\"drop\\\": \\\"t\\\"}\",\"tableChanges\":[]}",
     "event     shop.t  {\"databaseName\":\"shop\"}  \"{\\\"drop\\\": \\\"t\\\"}\"\n"},
};

static void lines(void **state)
{
    static const char time[] = "10:11:12.345  ";
    struct cdcd_topic topic = {.name = {"srv.t", 5}, .name_json = {"\"srv.t\"", 7}};
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct cdcd_record r = {.topic = &topic,
                                .key = cdcd_slice_str(cases[i].key),
                                .value = cdcd_slice_str(cases[i].value),
                                .timestamp_ms = 1709201472345};
        struct cdcd_buf out;
        cdcd_buf_init(&out, 0);
        assert_true(file_pretty_append(&out, &r, false));
        assert_true(strncmp(cdcd_buf_cstr(&out), time, sizeof time - 1) == 0);
        assert_string_equal(out.ptr + sizeof time - 1, cases[i].line);
        cdcd_buf_free(&out);
    }
}

static void no_line(void **state)
{
    struct cdcd_topic topic = {.name = {"srv.t", 5}, .name_json = {"\"srv.t\"", 7}};
    struct cdcd_record tombstone = {.topic = &topic, .key = cdcd_slice_str("{\"id\":\"7\"}")};
    struct cdcd_buf out;
    (void)state;
    cdcd_buf_init(&out, 0);
    assert_true(file_pretty_append(&out, &tombstone, false));
    assert_int_equal(out.len, 0);
    cdcd_buf_free(&out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lines),
        cmocka_unit_test(no_line),
    };
    setenv("TZ", "UTC", 1);
    tzset();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
