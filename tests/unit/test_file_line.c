#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "file.h"

#include <stdlib.h>

static const struct {
    const char *text;
    bool valid;
} json_cases[] = {
    {"{}", true},
    {"[]", true},
    {" [1, 2] ", true},
    {"{\"id\":1}", true},
    {"{\"a\":[true,false,null,{\"b\":\"\\u00e9\\n\"}],\"c\":-1.5e+10}", true},
    {"\"text\"", true},
    {"0", true},
    {"-0", true},
    {"0.5", true},
    {"1e5", true},
    {"12345678", true},
    {"true", true},
    {"", false},
    {" ", false},
    {"007", false},
    {"0000000001a2b3c4", false},
    {"-", false},
    {"1.", false},
    {"1e", false},
    {"tru", false},
    {"truex", false},
    {"nulll", false},
    {"{", false},
    {"{\"a\"}", false},
    {"{\"a\":}", false},
    {"{\"a\":1,}", false},
    {"{a:1}", false},
    {"[1 2]", false},
    {"[1,]", false},
    {"[1]]", false},
    {"\"open", false},
    {"\"bad \\x escape\"", false},
    {"\"bad \\u12g4\"", false},
    {"\"short \\u12\"", false},
    {"\"raw\nnewline\"", false},
    {"{} {}", false},
    {"1f2e", false},
};

static void json_values(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof json_cases / sizeof *json_cases; i++)
        if (file_json_valid(json_cases[i].text, strlen(json_cases[i].text)) != json_cases[i].valid)
            fail_msg("%s", json_cases[i].text);
    char deep[4001];
    memset(deep, '[', 2000);
    memset(deep + 2000, ']', 2000);
    assert_false(file_json_valid(deep, 4000));
    assert_true(file_json_valid(deep + 1990, 20));
    /* A number at the very end of what may be read. */
    assert_true(file_json_valid("12", 1));
}

static const struct {
    const char *key, *value;
    struct cdcd_header headers[2];
    uint32_t nheaders;
    const char *line;
} line_cases[] = {
    {"{\"id\":1}",
     "{\"op\":\"c\"}",
     {{{0}, {0}, false}},
     0,
     "{\"topic\":\"a\\\"b\",\"key\":{\"id\":1},\"value\":{\"op\":\"c\"},\"headers\":{}}\n"},
    {"{\"id\":1}",
     NULL,
     {{{0}, {0}, false}},
     0,
     "{\"topic\":\"a\\\"b\",\"key\":{\"id\":1},\"value\":null,\"headers\":{}}\n"},
    {NULL,
     "{}",
     {{{"h", 1}, {"00ff", 4}, false}, {{"j", 1}, {"{\"id\":2}", 8}, true}},
     2,
     "{\"topic\":\"a\\\"b\",\"key\":null,\"value\":{},\"headers\":{\"h\":\"00ff\",\"j\":{\"id\":2}}"
     "}"
     "\n"},
    {NULL,
     "{}",
     {{{"n", 1}, {NULL, 0}, false}, {{"i", 1}, {"12", 2}, false}},
     2,
     "{\"topic\":\"a\\\"b\",\"key\":null,\"value\":{},\"headers\":{\"n\":null,\"i\":12}}\n"},
    {NULL,
     "{}",
     {{{"q\"", 2}, {"a\"\n", 3}, false}, {{"e", 1}, {"", 0}, false}},
     2,
     "{\"topic\":\"a\\\"b\",\"key\":null,\"value\":{},\"headers\":{\"q\\\"\":\"a\\\"\\n\",\"e\":"
     "\"\"}"
     "}\n"},
    {"\001\002x",
     "plain",
     {{{0}, {0}, false}},
     0,
     "{\"topic\":\"a\\\"b\",\"key\":\"\\u0001\\u0002x\",\"value\":\"plain\",\"headers\":{}}\n"},
};

static void lines(void **state)
{
    (void)state;
    struct cdcd_topic topic = {.name = {"a\"b", 3}, .name_json = {"\"a\\\"b\"", 6}};
    for (size_t i = 0; i < sizeof line_cases / sizeof *line_cases; i++) {
        struct cdcd_buf out;
        cdcd_buf_init(&out, 0);
        struct cdcd_record r = {.topic = &topic,
                                .key = cdcd_slice_str(line_cases[i].key),
                                .value = cdcd_slice_str(line_cases[i].value),
                                .headers = line_cases[i].headers,
                                .nheaders = line_cases[i].nheaders};
        assert_true(file_line_append(&out, &r));
        assert_string_equal(cdcd_buf_cstr(&out), line_cases[i].line);
        cdcd_buf_free(&out);
    }
}

static void too_large_leaves_nothing(void **state)
{
    (void)state;
    struct cdcd_topic topic = {.name = {"t", 1}, .name_json = {"\"t\"", 3}};
    struct cdcd_record r = {.topic = &topic, .value = {"{\"a\":\"0123456789012345678\"}", 27}};
    struct cdcd_buf out;
    cdcd_buf_init(&out, 120);
    assert_true(file_line_append(&out, &r));
    size_t len = out.len;
    assert_false(file_line_append(&out, &r));
    assert_int_equal(out.len, len);
    cdcd_buf_free(&out);
}

static void names(void **state)
{
    static const struct {
        const char *topic, *name;
    } cases[] = {
        {"shop.public.orders", "shop.public.orders.jsonl"},
        {"../etc", "%2E.%2Fetc.jsonl"},
        {".hidden", "%2Ehidden.jsonl"},
        {"a b%", "a%20b%25.jsonl"},
        {"\xc3\xa9", "%C3%A9.jsonl"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char *name = file_output_name(cases[i].topic, strlen(cases[i].topic));
        assert_string_equal(name, cases[i].name);
        free(name);
    }
    char longer[600];
    memset(longer, 'x', sizeof longer);
    char *one = file_output_name(longer, 599), *two = file_output_name(longer, 600);
    assert_true(strlen(one) < 255);
    assert_string_not_equal(one, two);
    free(one);
    free(two);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(json_values),
        cmocka_unit_test(lines),
        cmocka_unit_test(too_large_leaves_nothing),
        cmocka_unit_test(names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
