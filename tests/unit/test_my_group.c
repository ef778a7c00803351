/*
 * A group of events: in memory and in its file, cut back, limited, read again.
 */
#include "stream.h"

#include <dirent.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

static char dir[] = "/tmp/test_my_group.XXXXXX";

/* The i-th event: its length and bytes follow from i alone. */
static size_t event_of(unsigned i, size_t size, char *out)
{
    size_t n = 1 + (i + 1) * 2654435761u % size;
    for (size_t k = 0; k < n; k++)
        out[k] = (char)(i + k * 31);
    return n;
}

static void add(struct my_group *g, unsigned i, size_t size)
{
    struct cdcd_error err = {0};
    char *p = malloc(size + 1);
    size_t n = event_of(i, size, p);
    if (my_group_add(g, (struct cdcd_slice){p, n}, 1000 + i, &err) != CDCD_OK)
        fail_msg("%s", err.text);
    free(p);
}

static void check(struct my_group *g, unsigned n, size_t size)
{
    struct cdcd_error err = {0};
    struct cdcd_slice got;
    uint64_t place;
    char *p = malloc(size + 1);
    assert_int_equal(my_group_rewind(g, &err), CDCD_OK);
    for (unsigned i = 0; i < n; i++) {
        if (my_group_next(g, &got, &place, &err) != CDCD_OK)
            fail_msg("event %u: %s", i, err.text);
        assert_int_equal(got.len, event_of(i, size, p));
        assert_memory_equal(got.ptr, p, got.len);
        assert_int_equal(place, 1000 + i);
    }
    assert_int_equal(my_group_next(g, &got, &place, &err), CDCD_END);
    free(p);
}

static void test_sizes(void **state)
{
    (void)state;
    static const struct {
        unsigned n;
        size_t size;
        bool on_disk;
    } cases[] = {
        {0, 1, false},      {1, 1, false},      {3, 100, false},    {1000, 500, false},
        {20000, 500, true}, {40, 200000, true}, {3, 5 << 20, true}, {1, 3 << 20, false},
    };
    struct my_group_pool pool = {.dir = dir};
    struct my_group *g = my_group_new(&pool);
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
        for (unsigned i = 0; i < cases[c].n; i++)
            add(g, i, cases[c].size);
        check(g, cases[c].n, cases[c].size);
        check(g, cases[c].n, cases[c].size); /* once more from the start */
        assert_int_equal(pool.used > 0, cases[c].on_disk);
        my_group_reset(g);
        assert_int_equal(pool.used, 0);
        assert_int_equal(my_group_mark(g), 0);
    }
    my_group_free(g);
}

/* Back to every mark, in memory and in the file, and on from there. */
static void test_cut(void **state)
{
    (void)state;
    static const unsigned total[] = {10, 30000};
    struct my_group_pool pool = {.dir = dir};
    for (size_t t = 0; t < 2; t++) {
        unsigned n = total[t];
        static const unsigned parts[] = {0, 1, 2, 5, 9};
        for (size_t k = 0; k < 5; k++) {
            struct my_group *g = my_group_new(&pool);
            struct cdcd_error err = {0};
            uint64_t mark = 0;
            for (unsigned i = 0; i < n; i++) {
                if (i == n / 10 * parts[k])
                    mark = my_group_mark(g);
                add(g, i, 400);
            }
            assert_int_equal(my_group_cut(g, mark, &err), CDCD_OK);
            check(g, n / 10 * parts[k], 400);
            for (unsigned i = n / 10 * parts[k]; i < n; i++)
                add(g, i, 400);
            check(g, n, 400);
            my_group_free(g);
            assert_int_equal(pool.used, 0);
        }
    }
}

/* Two that wait at the same time do not touch each other; the file of none has a name. */
static void test_together(void **state)
{
    (void)state;
    struct my_group_pool pool = {.dir = dir};
    struct my_group *a = my_group_new(&pool), *b = my_group_new(&pool);
    for (unsigned i = 0; i < 20000; i++) {
        add(a, i, 500);
        add(b, i, 300);
    }
    my_group_pause(a);
    DIR *d = opendir(dir);
    struct dirent *e;
    while ((e = readdir(d)))
        assert_true(e->d_name[0] == '.');
    closedir(d);
    check(b, 20000, 300);
    check(a, 20000, 500);
    my_group_free(a);
    check(b, 20000, 300);
    my_group_free(b);
    assert_int_equal(pool.used, 0);
}

static void test_limit(void **state)
{
    (void)state;
    struct my_group_pool pool = {.dir = dir, .max = 8 << 20};
    struct my_group *g = my_group_new(&pool);
    struct cdcd_error err = {0};
    static char event[100000];
    enum cdcd_rc rc = CDCD_OK;
    int n = 0;
    while (rc == CDCD_OK && n < 1000) {
        rc = my_group_add(g, (struct cdcd_slice){event, sizeof event}, 4, &err);
        n++;
    }
    assert_int_equal(rc, CDCD_ERROR);
    assert_int_equal(err.class, CDCD_ERR_FATAL);
    assert_non_null(strstr(err.text, "spill.max.bytes (8388608 bytes)"));
    assert_true(n > 80 && n < 120);
    my_group_free(g);
}

static void test_no_folder(void **state)
{
    (void)state;
    struct my_group_pool pool = {.dir = "/nowhere/at/all"};
    struct my_group *g = my_group_new(&pool);
    struct cdcd_error err = {0};
    static char event[1 << 20];
    enum cdcd_rc rc = CDCD_OK;
    for (int i = 0; rc == CDCD_OK && i < 10; i++)
        rc = my_group_add(g, (struct cdcd_slice){event, sizeof event}, 4, &err);
    assert_int_equal(rc, CDCD_ERROR);
    assert_int_equal(err.class, CDCD_ERR_FATAL);
    assert_non_null(strstr(err.text, "/nowhere/at/all"));
    my_group_free(g);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sizes),     cmocka_unit_test(test_cut),
        cmocka_unit_test(test_together),  cmocka_unit_test(test_limit),
        cmocka_unit_test(test_no_folder),
    };
    if (!mkdtemp(dir))
        return 1;
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    rmdir(dir);
    return failed;
}
