/* GTID sets of MySQL and MariaDB. */
#include "my.h"

#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#define A "3e11fa47-71ca-11e1-9e33-c80aa9429562"
#define B "4e11fa47-71ca-11e1-9e33-c80aa9429562"

static struct my_gtid_set *set_of(enum my_flavor flavor, const char *text)
{
    struct my_gtid_set *s = my_gtid_set_new(flavor);
    if (!my_gtid_set_parse(text, strlen(text), s))
        fail_msg("\"%s\" is not a set", text);
    return s;
}

static void assert_set(const struct my_gtid_set *s, const char *expected)
{
    struct cdcd_buf b;
    cdcd_buf_init(&b, 0);
    my_gtid_set_write(s, &b);
    assert_string_equal(cdcd_buf_cstr(&b), expected);
    cdcd_buf_free(&b);
}

struct text_case {
    enum my_flavor flavor;
    const char *text;
    const char *written; /* NULL: no set */
};

static void texts(void **state)
{
    static const struct text_case cases[] = {
        {MY_MYSQL, "", ""},
        {MY_MYSQL, " \n", ""},
        {MY_MYSQL, A ":1", A ":1"},
        {MY_MYSQL, "3E11FA47-71CA-11E1-9E33-C80AA9429562:1-5", A ":1-5"},
        {MY_MYSQL, A ":7:1-5:6", A ":1-7"},
        {MY_MYSQL, A ":10-12:1-5:3-8", A ":1-8:10-12"},
        {MY_MYSQL, A ":1-2:4-5:8-9:2-8", A ":1-9"},
        {MY_MYSQL, B ":1,\n" A ":3", A ":3," B ":1"},
        {MY_MYSQL, A ":1," A ":2", A ":1-2"},
        {MY_MYSQL, A " : 1 - 3 , " B ":2", A ":1-3," B ":2"},
        {MY_MYSQL, A ":tag:1-3", A ":tag:1-3"},
        {MY_MYSQL, A ":1-2:Tag_1:5:6:b:9", A ":1-2:b:9:tag_1:5-6"},
        {MY_MYSQL, A ":9223372036854775806", A ":9223372036854775806"},
        {MY_MYSQL, A ":9223372036854775807", NULL},
        {MY_MYSQL, A ":0", NULL},
        {MY_MYSQL, A ":5-3", NULL},
        {MY_MYSQL, A ":1-", NULL},
        {MY_MYSQL, A ":", NULL},
        {MY_MYSQL, A, NULL},
        {MY_MYSQL, A ":tag", NULL},
        {MY_MYSQL, A ":tag:", NULL},
        {MY_MYSQL, A ":tag:tag:1", NULL},
        {MY_MYSQL, A ":1x", NULL},
        {MY_MYSQL, A ":1 2", NULL},
        {MY_MYSQL, A ":1;" B ":1", NULL},
        {MY_MYSQL, "3e11fa4771ca11e19e33c80aa9429562:1", NULL},
        {MY_MYSQL, "3e11fa47-71ca-11e1-9e33-c80aa942956:1", NULL},
        {MY_MYSQL, "0-1-5", NULL},
        {MY_MYSQL, A ":a23456789012345678901234567890123:1", NULL}, /* 33 characters */
        {MY_MYSQL, A ":a2345678901234567890123456789012:1",
         A ":a2345678901234567890123456789012:1"},
        {MY_MARIADB, "", ""},
        {MY_MARIADB, "0-1-5", "0-1-5"},
        {MY_MARIADB, "7-2-1, 0-1-18446744073709551615", "0-1-18446744073709551615,7-2-1"},
        {MY_MARIADB, "4294967295-4294967295-0", "4294967295-4294967295-0"},
        {MY_MARIADB, "4294967296-1-1", NULL},
        {MY_MARIADB, "0-1-18446744073709551616", NULL},
        {MY_MARIADB, "0-1", NULL},
        {MY_MARIADB, "0-1-5,0-2-6", NULL}, /* one id a domain */
        {MY_MARIADB, "0-1-5x", NULL},
        {MY_MARIADB, A ":1", NULL},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct my_gtid_set *s = my_gtid_set_new(cases[i].flavor);
        bool ok = my_gtid_set_parse(cases[i].text, strlen(cases[i].text), s);
        if (ok != (cases[i].written != NULL))
            fail_msg("\"%s\"", cases[i].text);
        assert_set(s, ok ? cases[i].written : "");
        assert_int_equal(my_gtid_set_empty(s), !ok || !*cases[i].written);
        my_gtid_set_free(s);
    }
}

static void single(void **state)
{
    static const struct text_case cases[] = {
        {MY_MYSQL, A ":7", A ":7"},     {MY_MYSQL, A ":tag:7", A ":tag:7"},
        {MY_MYSQL, A ":1-7", NULL},     {MY_MYSQL, A ":tag", NULL},
        {MY_MYSQL, A ":0", NULL},       {MY_MYSQL, "", NULL},
        {MY_MARIADB, "0-1-7", "0-1-7"}, {MY_MARIADB, "0-1-7,1-1-1", NULL},
        {MY_MARIADB, "0-1", NULL},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct my_gtid g;
        struct cdcd_buf b;
        cdcd_buf_init(&b, 0);
        bool ok = my_gtid_parse(cases[i].text, strlen(cases[i].text), cases[i].flavor, &g);
        if (ok != (cases[i].written != NULL))
            fail_msg("\"%s\"", cases[i].text);
        if (ok) {
            my_gtid_write(&g, &b);
            assert_string_equal(cdcd_buf_cstr(&b), cases[i].written);
        }
        cdcd_buf_free(&b);
    }
}

static void adding(void **state)
{
    static const struct {
        enum my_flavor flavor;
        const char *before, *added[6], *after;
    } cases[] = {
        {MY_MYSQL, "", {A ":1", A ":2", A ":3"}, A ":1-3"},
        {MY_MYSQL, A ":1-5", {A ":7", A ":6"}, A ":1-7"},
        {MY_MYSQL, A ":1-5", {A ":3", A ":5"}, A ":1-5"},
        {MY_MYSQL, A ":5", {A ":1", A ":3", A ":4", A ":2"}, A ":1-5"},
        {MY_MYSQL, A ":1-5", {A ":9", A ":7", A ":8"}, A ":1-5:7-9"},
        {MY_MYSQL, A ":1-5", {B ":1", A ":6", B ":2", A ":t:1"}, A ":1-6:t:1," B ":1-2"},
        {MY_MARIADB, "0-1-5", {"0-1-6", "0-1-7"}, "0-1-7"},
        {MY_MARIADB, "0-1-5", {"1-1-1", "0-2-6"}, "0-2-6,1-1-1"},
        {MY_MARIADB, "0-1-5", {"0-2-3"}, "0-2-3"}, /* the order in the log decides */
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct my_gtid_set *s = set_of(cases[i].flavor, cases[i].before);
        for (size_t k = 0; k < 6 && cases[i].added[k]; k++) {
            struct my_gtid g;
            assert_true(
                my_gtid_parse(cases[i].added[k], strlen(cases[i].added[k]), cases[i].flavor, &g));
            my_gtid_set_add(s, &g);
            assert_true(my_gtid_set_has(s, &g));
        }
        assert_set(s, cases[i].after);
        my_gtid_set_free(s);
    }
}

/* Against a plain table of flags. */
static void adding_in_any_order(void **state)
{
    enum { N = 400 };
    (void)state;
    for (unsigned seed = 1; seed <= 20; seed++) {
        bool have[N + 2] = {false};
        struct my_gtid_set *s = set_of(MY_MYSQL, "");
        struct my_gtid g;
        assert_true(my_gtid_parse(A ":1", strlen(A ":1"), MY_MYSQL, &g));
        srand(seed);
        for (int i = 0; i < N; i++) {
            /* mostly ahead, as parallel commits come */
            g.number = (uint64_t)(1 + (seed % 2 ? (i + rand() % 8) % N : rand() % N));
            have[g.number] = true;
            my_gtid_set_add(s, &g);
        }
        struct cdcd_buf expected;
        cdcd_buf_init(&expected, 0);
        cdcd_buf_adds(&expected, A);
        for (int i = 1; i <= N; i++) {
            g.number = (uint64_t)i;
            assert_int_equal(my_gtid_set_has(s, &g), have[i]);
            if (!have[i] || have[i - 1])
                continue;
            int last = i;
            while (have[last + 1])
                last++;
            cdcd_buf_addf(&expected, last > i ? ":%d-%d" : ":%d", i, last);
        }
        assert_set(s, cdcd_buf_cstr(&expected));
        cdcd_buf_free(&expected);
        my_gtid_set_free(s);
    }
}

static void containing(void **state)
{
    static const struct {
        enum my_flavor flavor;
        const char *set, *sub;
        bool contains;
    } cases[] = {
        {MY_MYSQL, "", "", true},
        {MY_MYSQL, A ":1-5", "", true},
        {MY_MYSQL, "", A ":1", false},
        {MY_MYSQL, A ":1-5", A ":1-5", true},
        {MY_MYSQL, A ":1-5", A ":2:4", true},
        {MY_MYSQL, A ":1-5:7-9", A ":5-7", false},
        {MY_MYSQL, A ":1-5:7-9", A ":8-9", true},
        {MY_MYSQL, A ":1-5:7-9", A ":6", false},
        {MY_MYSQL, A ":1-5:7-9", A ":10", false},
        {MY_MYSQL, A ":1-5", B ":1", false},
        {MY_MYSQL, A ":1-5," B ":1-3", B ":1," A ":5", true},
        {MY_MYSQL, A ":1-5", A ":t:1", false},
        {MY_MYSQL, A ":1-5:t:1-2", A ":t:2", true},
        {MY_MARIADB, "0-1-5", "0-2-5", true},
        {MY_MARIADB, "0-1-5", "0-1-6", false},
        {MY_MARIADB, "0-1-5", "1-1-1", false},
        {MY_MARIADB, "0-1-5,1-1-3", "1-1-1", true},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct my_gtid_set *s = set_of(cases[i].flavor, cases[i].set);
        struct my_gtid_set *sub = set_of(cases[i].flavor, cases[i].sub);
        if (my_gtid_set_contains(s, sub) != cases[i].contains)
            fail_msg("\"%s\" and \"%s\"", cases[i].set, cases[i].sub);
        my_gtid_set_free(s);
        my_gtid_set_free(sub);
    }
}

/* A copy goes its own way. */
static void copying(void **state)
{
    static const char *const sets[] = {"", A ":1-5:7:t:3," B ":2"};
    struct my_gtid g;
    (void)state;
    assert_true(my_gtid_parse(A ":6", strlen(A ":6"), MY_MYSQL, &g));
    for (size_t i = 0; i < 2; i++) {
        struct my_gtid_set *s = set_of(MY_MYSQL, sets[i]);
        struct my_gtid_set *c = my_gtid_set_copy(s);
        assert_set(c, sets[i]);
        my_gtid_set_add(c, &g);
        assert_set(s, sets[i]);
        assert_true(my_gtid_set_has(c, &g));
        my_gtid_set_free(s);
        my_gtid_set_free(c);
    }
    struct my_gtid_set *m = set_of(MY_MARIADB, "0-1-5,2-1-9"), *c = my_gtid_set_copy(m);
    my_gtid_set_free(m);
    assert_set(c, "0-1-5,2-1-9");
    my_gtid_set_free(c);
}

#define UUID_A "3e11fa4771ca11e19e33c80aa9429562"
#define UUID_B "4e11fa4771ca11e19e33c80aa9429562"

static void encoding(void **state)
{
    static const struct {
        const char *set, *hex;
    } cases[] = {
        {"", "0000000000000000"},
        {A ":1-5", "0100000000000000" UUID_A "0100000000000000"
                   "0100000000000000"
                   "0600000000000000"},
        {A ":1:3-4," B ":2", "0200000000000000" UUID_A "0200000000000000"
                             "0100000000000000"
                             "0200000000000000"
                             "0300000000000000"
                             "0500000000000000" UUID_B "0100000000000000"
                             "0200000000000000"
                             "0300000000000000"},
        {A ":1:tag:3", "0102000000000001" UUID_A "00"
                       "0100000000000000"
                       "0100000000000000"
                       "0200000000000000" UUID_A "06746167"
                       "0100000000000000"
                       "0300000000000000"
                       "0400000000000000"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct my_gtid_set *s = set_of(MY_MYSQL, cases[i].set);
        struct cdcd_buf b, hex;
        cdcd_buf_init(&b, 0);
        cdcd_buf_init(&hex, 0);
        my_gtid_set_encode(s, &b);
        for (size_t k = 0; k < b.len; k++)
            cdcd_buf_addf(&hex, "%02x", (unsigned char)b.ptr[k]);
        assert_string_equal(cdcd_buf_cstr(&hex), cases[i].hex);
        cdcd_buf_free(&b);
        cdcd_buf_free(&hex);
        my_gtid_set_free(s);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(texts),      cmocka_unit_test(single),
        cmocka_unit_test(adding),     cmocka_unit_test(adding_in_any_order),
        cmocka_unit_test(containing), cmocka_unit_test(copying),
        cmocka_unit_test(encoding),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
