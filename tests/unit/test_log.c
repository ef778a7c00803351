/* Log lines, as they arrive on standard error. */
#include <cdcd/log.h>

#include <jansson.h>
#include <setjmp.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static char text[8192];

/* Standard error goes into a file while `write` runs; what it wrote is in `text`. */
static void capture(void (*write_lines)(void))
{
    FILE *f = tmpfile();
    int saved = dup(STDERR_FILENO);
    assert_non_null(f);
    dup2(fileno(f), STDERR_FILENO);
    write_lines();
    dup2(saved, STDERR_FILENO);
    close(saved);
    rewind(f);
    text[fread(text, 1, sizeof(text) - 1, f)] = 0;
    fclose(f);
}

static void odd_message(void)
{
    cdcd_info("postgres", "ERROR:  \"x\"\nLINE %d:\ty\x01\xff\n", 1);
}

static void text_is_one_line(void **state)
{
    (void)state;
    cdcd_log_setup(CDCD_LOG_INFO, false, "shop");
    capture(odd_message);
    /* 2026-01-01T00:00:00.000Z info  shop postgres: ... */
    assert_int_equal(text[10], 'T');
    assert_int_equal(text[23], 'Z');
    assert_string_equal(text + 25, "info  shop postgres: ERROR:  \"x\"\\nLINE 1: y \xff\n");
}

static void json_can_be_parsed(void **state)
{
    (void)state;
    cdcd_log_setup(CDCD_LOG_INFO, true, "shop");
    capture(odd_message);
    json_t *j = json_loads(text, 0, NULL);
    assert_non_null(j);
    assert_string_equal(json_string_value(json_object_get(j, "level")), "info");
    assert_string_equal(json_string_value(json_object_get(j, "component")), "postgres");
    assert_string_equal(json_string_value(json_object_get(j, "pipeline")), "shop");
    assert_string_equal(json_string_value(json_object_get(j, "message")),
                        "ERROR:  \"x\"\nLINE 1:\ty\x01\xef\xbf\xbd\n");
    assert_int_equal(strlen(json_string_value(json_object_get(j, "ts"))), 24);
    json_decref(j);
}

static int formatted;
static int count(void)
{
    return ++formatted;
}

static void below_the_level(void)
{
    cdcd_debug("x", "%d", count());
    cdcd_info("x", "%d", count());
    cdcd_warn("x", "%d", count());
}

static void what_is_below_the_level_is_not_formatted(void **state)
{
    (void)state;
    formatted = 0;
    cdcd_log_setup(CDCD_LOG_WARN, false, "");
    capture(below_the_level);
    assert_int_equal(formatted, 1);
    assert_string_equal(text + 25, "warn  x: 1\n");
}

static void long_one(void)
{
    char big[5000];
    memset(big, 'a', sizeof(big) - 1);
    big[sizeof(big) - 1] = 0;
    cdcd_err("x", "%s", big);
}

static void long_messages_are_whole(void **state)
{
    (void)state;
    cdcd_log_setup(CDCD_LOG_INFO, false, "");
    capture(long_one);
    assert_int_equal(strlen(text), 25 + strlen("error x: ") + 4999 + 1);
}

static void errors_collect_context(void **state)
{
    (void)state;
    struct cdcd_error err;
    assert_int_equal(cdcd_error_set(&err, CDCD_ERR_LOSS, "slot %s is gone", "s"), CDCD_ERROR);
    cdcd_error_context(&err, "pipeline %d", 1);
    assert_string_equal(err.text, "pipeline 1: slot s is gone");
    assert_int_equal(err.class, CDCD_ERR_LOSS);
    cdcd_error_set(&err, CDCD_ERR_FATAL, "again: %s", err.text);
    assert_string_equal(err.text, "again: pipeline 1: slot s is gone");
    for (int i = 0; i < 500; i++)
        cdcd_error_context(&err, "context %d", i);
    assert_int_equal(strlen(err.text), sizeof(err.text) - 1);
    assert_memory_equal(err.text, "context 499: context 498: ", 26);
    assert_int_equal(cdcd_error_set(NULL, CDCD_ERR_DATA, "x"), CDCD_ERROR);
    assert_int_equal(cdcd_error_context(NULL, "x"), CDCD_ERROR);
}

static void exit_codes(void **state)
{
    (void)state;
    static const struct {
        enum cdcd_error_class class;
        int code;
        const char *name;
    } cases[] = {{CDCD_ERR_NONE, 0, "none"}, {CDCD_ERR_RETRY, 1, "retry"},
                 {CDCD_ERR_DATA, 1, "data"}, {CDCD_ERR_CONFIG, 2, "config"},
                 {CDCD_ERR_LOSS, 3, "loss"}, {CDCD_ERR_FATAL, 1, "fatal"}};
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        assert_int_equal(cdcd_error_exit_code(cases[i].class), cases[i].code);
        assert_string_equal(cdcd_error_class_name(cases[i].class), cases[i].name);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(text_is_one_line),
        cmocka_unit_test(json_can_be_parsed),
        cmocka_unit_test(what_is_below_the_level_is_not_formatted),
        cmocka_unit_test(long_messages_are_whole),
        cmocka_unit_test(errors_collect_context),
        cmocka_unit_test(exit_codes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
