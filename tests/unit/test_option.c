/* Option tables: values, ranges, lists, expansion, suggestions. */
#include "settings.h"

#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

struct target {
    char *text;
    char *secret;
    char *pattern;
    int64_t number, size, duration;
    bool flag;
    int choice;
    struct cdcd_strlist list, patterns;
    struct cdcd_strmap map;
};

static const char *const choices[] = {"red", "dark_blue", NULL};

#define AT(m) offsetof(struct target, m)
static const struct cdcd_option table[] = {
    {"text", CDCD_OPT_STR, AT(text), "dflt", 0, 0, NULL, 0, "Text.", NULL},
    {"the.secret", CDCD_OPT_INT, AT(number), NULL, 0, 9, NULL, CDCD_OPT_SECRET, "Secret.", NULL},
    {"index", CDCD_OPT_STR, AT(pattern), NULL, 0, 0, NULL, CDCD_OPT_TEMPLATE, "Index.", NULL},
    {"number", CDCD_OPT_INT, AT(number), "7", -1, 100, NULL, 0, "Number.", NULL},
    {"size", CDCD_OPT_SIZE, AT(size), "1MB", 1, 0, NULL, 0, "Size.", NULL},
    {"duration", CDCD_OPT_DURATION, AT(duration), NULL, 0, 3600000, NULL, 0, "Time.", NULL},
    {"flag", CDCD_OPT_BOOL, AT(flag), "true", 0, 0, NULL, 0, "Flag.", NULL},
    {"choice", CDCD_OPT_ENUM, AT(choice), "dark_blue", 0, 0, choices, 0, "Choice.", NULL},
    {"list", CDCD_OPT_LIST, AT(list), NULL, 0, 0, NULL, 0, "List.", NULL},
    {"table.include.list", CDCD_OPT_LIST, AT(patterns), NULL, 0, 0, NULL, CDCD_OPT_REGEX,
     "Patterns.", NULL},
    {"properties", CDCD_OPT_MAP, AT(map), NULL, 0, 0, NULL, 0, "Map.", NULL},
    {0},
};

/* Applies YAML to a target. */
static enum cdcd_rc apply(const char *yaml, struct target *t, struct cdcd_error *err)
{
    struct cdcd_settings s;
    *t = (struct target){0};
    *err = (struct cdcd_error){0};
    if (cdcd_settings_parse(&s, "f.yaml", yaml, strlen(yaml), err) != CDCD_OK)
        return CDCD_ERROR;
    enum cdcd_rc rc = cdcd_options_apply(table, t, &s, "", NULL, err);
    cdcd_settings_free(&s);
    return rc;
}

static void expect_error(const char *yaml, const char *want)
{
    struct target t;
    struct cdcd_error err;
    enum cdcd_rc rc = apply(yaml, &t, &err);
    if (rc != CDCD_ERROR || err.class != CDCD_ERR_CONFIG || strcmp(err.text, want) != 0)
        fail_msg("%s\n got: %d %s\nwant: %s", yaml, rc, err.text, want);
    cdcd_options_free(table, &t);
}

static void defaults(void **state)
{
    (void)state;
    struct target t;
    struct cdcd_error err;
    assert_int_equal(apply("{}", &t, &err), CDCD_OK);
    assert_string_equal(t.text, "dflt");
    assert_int_equal(t.number, 7);
    assert_int_equal(t.size, 1 << 20);
    assert_int_equal(t.duration, 0);
    assert_true(t.flag);
    assert_int_equal(t.choice, 1);
    assert_int_equal(t.list.n, 0);
    assert_null(t.pattern);
    cdcd_options_free(table, &t);
}

static void numbers(void **state)
{
    (void)state;
    static const struct {
        const char *yaml;
        int64_t number, size, duration;
    } cases[] = {
        {"number: -1", -1, 1 << 20, 0},
        {"number: '100'", 100, 1 << 20, 0},
        {"size: 64KB", 7, 64 << 10, 0},
        {"size: 2 GiB", 7, INT64_C(2) << 30, 0},
        {"size: 12", 7, 12, 0},
        {"size: 3m", 7, 3 << 20, 0},
        {"duration: 10s", 7, 1 << 20, 10000},
        {"duration: 250", 7, 1 << 20, 250},
        {"duration: 5m", 7, 1 << 20, 300000},
        {"duration: 1h", 7, 1 << 20, 3600000},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct target t;
        struct cdcd_error err;
        assert_int_equal(apply(cases[i].yaml, &t, &err), CDCD_OK);
        assert_int_equal(t.number, cases[i].number);
        assert_int_equal(t.size, cases[i].size);
        assert_int_equal(t.duration, cases[i].duration);
        cdcd_options_free(table, &t);
    }
}

static void texts_lists_and_maps(void **state)
{
    (void)state;
    struct target t;
    struct cdcd_error err;
    assert_int_equal(apply("text: 'true'\nflag: off\nchoice: RED\n"
                           "list: \" a b ,, c\\\\,d \"\n"
                           "table.include.list:\n  - public.orders\n  - public.(a|b){1,2}\n"
                           "properties: {compression.type: lz4, a: {b: 1}}\n",
                           &t, &err),
                     CDCD_OK);
    assert_string_equal(t.text, "true");
    assert_false(t.flag);
    assert_int_equal(t.choice, 0);
    assert_int_equal(t.list.n, 2);
    assert_string_equal(t.list.items[0], "a b");
    assert_string_equal(t.list.items[1], "c,d");
    assert_int_equal(t.patterns.n, 2);
    assert_string_equal(t.patterns.items[1], "public.(a|b){1,2}");
    assert_int_equal(t.map.n, 2);
    assert_string_equal(t.map.items[0].key, "compression.type");
    assert_string_equal(t.map.items[0].value, "lz4");
    assert_string_equal(t.map.items[1].key, "a.b");
    cdcd_options_free(table, &t);
    assert_int_equal(apply("list: []\nproperties:\ntext: ''\n", &t, &err), CDCD_OK);
    assert_int_equal(t.list.n + t.map.n, 0);
    assert_string_equal(t.text, "");
    cdcd_options_free(table, &t);
}

static void errors_name_line_key_and_reason(void **state)
{
    (void)state;
    static const struct {
        const char *yaml, *want;
    } cases[] = {
        {"text: a\nnumber: many", "f.yaml:2: number: expected a whole number, not \"many\""},
        {"number: 1.5", "f.yaml:1: number: expected a whole number, not \"1.5\""},
        {"number: 99999999999999999999",
         "f.yaml:1: number: expected a whole number, not \"99999999999999999999\""},
        {"number: 101", "f.yaml:1: number: 101 is out of range: expected -1 to 100"},
        {"the: {secret: hunter2}", "f.yaml:1: the.secret: expected a whole number"},
        {"size: 5 parsecs",
         "f.yaml:1: size: expected a size such as 64KB, 16MB or 2GB, not \"5 parsecs\""},
        {"size: 9000000000T",
         "f.yaml:1: size: expected a size such as 64KB, 16MB or 2GB, not \"9000000000T\""},
        {"size: 0", "f.yaml:1: size: 0 is out of range: expected 1 or more"},
        {"duration: 2h", "f.yaml:1: duration: 2h is out of range: expected 0 to 1h"},
        {"flag: perhaps", "f.yaml:1: flag: expected true or false, not \"perhaps\""},
        {"choice: green", "f.yaml:1: choice: expected red or dark_blue, not \"green\""},
        {"text: [a]", "f.yaml:1: text: expected one value, not a list"},
        {"text:", "f.yaml:1: text: has no value; give one or remove the line"},
        {"text: {}", "f.yaml:1: text: has no value; give one or remove the line"},
        {"properties: 5", "f.yaml:1: properties: expected keys with values"},
        {"properties: {a: [1]}", "f.yaml:1: properties.a: expected one value"},
        {"list: [[a]]", "f.yaml:1: list: a list may hold only plain values"},
        {"\n\ntable.include.list: ['a', '(b']",
         "f.yaml:3: table.include.list: \"(b\" is no valid extended regular expression: "
         "Unmatched ( or \\("},
        {"txet: a", "f.yaml:1: txet: unknown key; did you mean text?"},
        {"table: {include.lst: a}",
         "f.yaml:1: table.include.lst: unknown key; did you mean table.include.list?"},
        {"zzzzzzzz: a",
         "f.yaml:1: zzzzzzzz: unknown key; `cdcd config --reference` lists all keys"},
        {"text: a\nnumber: 3\ntext: b", "f.yaml:3: text: is given twice, first on line 1"},
        {"the.secret: 1\nthe: {secret: 2}",
         "f.yaml:2: the.secret: is given twice, first on line 1"},
        {"text: ${NO_SUCH_VARIABLE_}",
         "f.yaml:1: text: the environment variable NO_SUCH_VARIABLE_ is not set"},
        {"text: ${file:/nonexistent/x}",
         "f.yaml:1: text: cannot read the file /nonexistent/x: No such file or directory"},
        {"text: ${HOME", "f.yaml:1: text: ${ without }; write $${ for a literal ${"},
        {"list: [a, '${NO_SUCH_VARIABLE_}']",
         "f.yaml:1: list: the environment variable NO_SUCH_VARIABLE_ is not set"},
        {"", "f.yaml:1: the file is empty; `cdcd config --sample postgres` prints one"},
        {"- a", "f.yaml:1: expected keys with values"},
        {"text: a\n---\ntext: b", "f.yaml:2: only one YAML document is allowed in a file"},
        {"text: &x a\nindex: *x",
         "f.yaml:2: index: YAML aliases are not supported; write the value out"},
        {"? [a]\n: b", "f.yaml:1: a key must be a plain string"},
        {"'': b", "f.yaml:1: a key may not be empty"},
        {"text: \"a\\0b\"", "f.yaml:1: text: holds a NUL character"},
    };
    unsetenv("NO_SUCH_VARIABLE_");
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        expect_error(cases[i].yaml, cases[i].want);
}

static void broken_yaml_names_the_line(void **state)
{
    (void)state;
    static const char *const cases[] = {
        "text: a\n bad: b\n", "text: 'a\n", "a: {b: c", "text: a\n\tnumber: 1\n",
        "text: \xff\xfe\n",   "%",          "a: b: c"};
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct target t;
        struct cdcd_error err;
        assert_int_equal(apply(cases[i], &t, &err), CDCD_ERROR);
        assert_int_equal(err.class, CDCD_ERR_CONFIG);
        assert_memory_equal(err.text, "f.yaml:", 7);
        assert_true(err.text[7] >= '1' && err.text[7] <= '9');
    }
}

static void nesting_is_bounded(void **state)
{
    (void)state;
    struct cdcd_buf b;
    struct target t;
    struct cdcd_error err;
    cdcd_buf_init(&b, 0);
    for (int i = 0; i < 5000; i++)
        cdcd_buf_adds(&b, "{a: ");
    assert_int_equal(apply(cdcd_buf_cstr(&b), &t, &err), CDCD_ERROR);
    assert_non_null(strstr(err.text, "nested too deeply"));
    cdcd_buf_free(&b);
}

static void expansion(void **state)
{
    (void)state;
    char path[] = "/tmp/test_option.XXXXXX";
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, "s3cret\n\n", 8), 8);
    close(fd);
    char *file = cdcd_xasprintf("[${file:%s}]", path);
    setenv("TEST_OPTION_A", "va:lue", 1);
    setenv("TEST_OPTION_EMPTY", "", 1);
    unsetenv("TEST_OPTION_UNSET");
    const struct {
        const char *in, *want;
    } cases[] = {
        {"", ""},
        {"plain $HOME {x} $", "plain $HOME {x} $"},
        {"postgresql://u:${TEST_OPTION_A}@h/d", "postgresql://u:va:lue@h/d"},
        {"$${TEST_OPTION_A}", "${TEST_OPTION_A}"},
        {"$$", "$$"},
        {"<${TEST_OPTION_EMPTY}>", "<>"},
        {"<${TEST_OPTION_EMPTY:-d}>", "<d>"},
        {"<${TEST_OPTION_UNSET:-}>", "<>"},
        {"<${TEST_OPTION_UNSET:-a b}>", "<a b>"},
        {file, "[s3cret\n]"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        char *why, *got = cdcd_option_expand(cases[i].in, &why);
        assert_non_null(got);
        assert_null(why);
        assert_string_equal(got, cases[i].want);
        free(got);
    }
    unlink(path);
    free(file);
    static const char *const bad[] = {"${}",      "${1}",     "${TEST_OPTION_UNSET}", "${", "${a",
                                      "${file:}", "${ HOME}", "${file:/dev/zero}"};
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        char *why;
        assert_null(cdcd_option_expand(bad[i], &why));
        assert_non_null(why);
        free(why);
    }
}

/* A template keeps its ${...}; arguments of the command line are taken as they are. */
static void what_is_not_expanded(void **state)
{
    (void)state;
    struct target t;
    struct cdcd_error err;
    assert_int_equal(apply("index: '${topic}-${table}'", &t, &err), CDCD_OK);
    assert_string_equal(t.pattern, "${topic}-${table}");
    cdcd_options_free(table, &t);

    struct cdcd_settings s = {0};
    t = (struct target){0};
    assert_int_equal(cdcd_settings_add_arg(&s, "text=a=${HOME}", &err), CDCD_OK);
    assert_int_equal(cdcd_settings_add_arg(&s, "list=a,b", &err), CDCD_OK);
    assert_int_equal(cdcd_settings_add_arg(&s, "text", &err), CDCD_ERROR);
    assert_int_equal(cdcd_settings_add_arg(&s, "text=again", &err), CDCD_ERROR);
    assert_int_equal(cdcd_options_apply(table, &t, &s, "", NULL, &err), CDCD_OK);
    assert_string_equal(t.text, "a=${HOME}");
    assert_int_equal(t.list.n, 2);
    cdcd_options_free(table, &t);
    cdcd_settings_free(&s);
}

static void required_keys(void **state)
{
    (void)state;
    static const struct cdcd_option required[] = {
        {"url", CDCD_OPT_STR, 0, NULL, 0, 0, NULL, CDCD_OPT_REQUIRED, "Where it is.", "x"},
        {0},
    };
    static const struct {
        const char *yaml, *want;
    } cases[] = {
        {"{}", "f: s.url: is required: Where it is."},
        {"s: {url: ''}", "f:1: s.url: may not be empty"},
    };
    for (size_t i = 0; i < 2; i++) {
        struct cdcd_settings s;
        struct cdcd_error err;
        char *target = NULL;
        assert_int_equal(cdcd_settings_parse(&s, "f", cases[i].yaml, strlen(cases[i].yaml), &err),
                         CDCD_OK);
        assert_int_equal(cdcd_options_apply(required, &target, &s, "s.", NULL, &err), CDCD_ERROR);
        assert_string_equal(err.text, cases[i].want);
        cdcd_options_free(required, &target);
        cdcd_settings_free(&s);
    }
}

static void suggestions(void **state)
{
    (void)state;
    static const struct {
        const char *name, *want;
    } cases[] = {
        {"lsit", "list"},
        {"sizes", "size"},
        {"secret", "the.secret"},
        {"table.include", "table.include.list"},
        {"include.list", "table.include.list"},
        {"propertys", "properties"},
        {"qqqqqqq", NULL},
        {"", NULL},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        const char *got = cdcd_option_suggest(table, cases[i].name);
        if (cases[i].want)
            assert_string_equal(got, cases[i].want);
        else
            assert_null(got);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(defaults),
        cmocka_unit_test(numbers),
        cmocka_unit_test(texts_lists_and_maps),
        cmocka_unit_test(errors_name_line_key_and_reason),
        cmocka_unit_test(broken_yaml_names_the_line),
        cmocka_unit_test(nesting_is_bounded),
        cmocka_unit_test(expansion),
        cmocka_unit_test(what_is_not_expanded),
        cmocka_unit_test(required_keys),
        cmocka_unit_test(suggestions),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
