/*
 * Spool files: what goes in comes out, in order, whatever its size; bounded; removed.
 */
#include "spool.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

static char dir[] = "/tmp/test_pg_spool.XXXXXX";

static size_t size_of(unsigned i)
{
    static const size_t sizes[] = {1, 30, 200, 0, 5000, 65516, 65517, 66000, 300000, 7};
    return sizes[i % (sizeof sizes / sizeof *sizes)];
}

static char *content(unsigned i)
{
    char *p = malloc(size_of(i) + 1);
    for (size_t k = 0; k < size_of(i); k++)
        p[k] = (char)(i * 31 + k * 7);
    return p;
}

static void append(struct pg_spools *s, struct pg_spool *sp, unsigned i)
{
    struct cdcd_error err = {0};
    char *p = content(i);
    if (pg_spool_append(s, sp, 1000 + i, i / 3, (struct cdcd_slice){p, size_of(i)}, &err) !=
        CDCD_OK)
        fail_msg("%s", err.text);
    free(p);
}

static void expect_all(struct pg_spools *s, struct pg_spool *sp, unsigned begin, unsigned end,
                       unsigned step)
{
    struct pg_spooled rec;
    assert_int_equal(pg_spool_rewind(s, sp, NULL), CDCD_OK);
    for (unsigned i = begin; i < end; i += step) {
        char *p = content(i);
        assert_int_equal(pg_spool_next(s, sp, &rec, NULL), CDCD_OK);
        assert_int_equal(rec.lsn, 1000 + i);
        assert_int_equal(rec.seq, i / 3);
        assert_int_equal(rec.message.len, size_of(i));
        assert_memory_equal(rec.message.ptr, p, size_of(i));
        free(p);
    }
    assert_int_equal(pg_spool_next(s, sp, &rec, NULL), CDCD_END);
}

/* Two transactions in turns, with and without pauses. */
static void in_and_out(void **state)
{
    (void)state;
    struct pg_spools *s = pg_spools_new(dir, "1.slot", 0);
    struct pg_spool *a = pg_spool_new(s, 10, true, 1), *b = pg_spool_new(s, 11, true, 2);
    for (unsigned i = 0; i < 100; i++) {
        append(s, i % 2 ? b : a, i);
        if (i % 7 == 0)
            assert_int_equal(pg_spool_pause(s, i % 2 ? b : a, NULL), CDCD_OK);
    }
    assert_ptr_equal(pg_spool_find(s, 10), a);
    assert_ptr_equal(pg_spool_find(s, 11), b);
    assert_null(pg_spool_find(s, 12));
    assert_int_equal(pg_spools_count(s), 2);
    expect_all(s, a, 0, 100, 2);
    pg_spool_drop(s, a);
    expect_all(s, b, 1, 100, 2);
    expect_all(s, b, 1, 100, 2);
    pg_spool_drop(s, b);
    assert_int_equal(pg_spools_bytes(s), 0);
    struct pg_spool *empty = pg_spool_new(s, 10, true, 1);
    expect_all(s, empty, 0, 0, 1);
    pg_spools_free(s);
}

static void aborted(void **state)
{
    (void)state;
    struct pg_spools *s = pg_spools_new(dir, "1.slot", 0);
    struct pg_spool *sp = pg_spool_new(s, 10, true, 1);
    static const uint32_t ids[] = {0, 4095, 4096, 1000000, 12, 4294967295u, 63, 64};
    for (size_t i = 0; i < sizeof ids / sizeof *ids; i++) {
        assert_false(pg_spool_aborted(sp, ids[i]));
        pg_spool_abort(sp, ids[i]);
        for (size_t k = 0; k <= i; k++)
            assert_true(pg_spool_aborted(sp, ids[k]));
    }
    assert_false(pg_spool_aborted(sp, 1));
    assert_false(pg_spool_aborted(sp, 4097));
    assert_false(pg_spool_aborted(sp, 4294967294u));
    pg_spools_free(s);
}

static void held(void **state)
{
    (void)state;
    struct pg_spools *s = pg_spools_new(dir, "1.slot", 0);
    assert_int_equal(pg_spools_held(s), 0);
    for (uint32_t i = 0; i < 4; i++) {
        static const pg_lsn lsns[] = {50, 30, 40, 10};
        struct pg_spool *sp = pg_spool_new(s, i, false, 1);
        if (i < 3)
            sp->gid = cdcd_xstrdup("g");
        sp->prepare_lsn = lsns[i];
    }
    assert_int_equal(pg_spools_held(s), 30);
    pg_spool_drop(s, pg_spool_find(s, 1));
    assert_int_equal(pg_spools_held(s), 40);
    pg_spools_free(s);
}

static void limit(void **state)
{
    (void)state;
    char data[100] = "";
    struct cdcd_error err = {0};
    struct pg_spools *s = pg_spools_new(dir, "1.slot", 1000);
    struct pg_spool *a = pg_spool_new(s, 10, true, 1), *b = pg_spool_new(s, 11, true, 1);
    struct cdcd_slice hundred = {data, sizeof data};
    for (int i = 0; i < 8; i++)
        assert_int_equal(pg_spool_append(s, i % 2 ? a : b, 1, 1, hundred, &err), CDCD_OK);
    assert_int_equal(pg_spool_append(s, a, 1, 1, hundred, &err), CDCD_ERROR);
    assert_int_equal(err.class, CDCD_ERR_FATAL);
    assert_non_null(strstr(err.text, "spill.max.bytes"));
    assert_non_null(strstr(err.text, "position has not moved"));
    pg_spool_drop(s, b);
    assert_int_equal(pg_spool_append(s, a, 1, 1, hundred, &err), CDCD_OK);
    pg_spools_free(s);
}

static void touch(const char *name)
{
    char path[300];
    snprintf(path, sizeof path, "%s/%s", dir, name);
    int fd = open(path, O_CREAT | O_WRONLY, 0600);
    assert_true(fd >= 0);
    close(fd);
}

static bool there(const char *name, bool then_remove)
{
    char path[300];
    struct stat st;
    snprintf(path, sizeof path, "%s/%s", dir, name);
    bool yes = stat(path, &st) == 0;
    if (yes && then_remove)
        unlink(path);
    return yes;
}

static void leftovers(void **state)
{
    (void)state;
    static const char *const mine = "cdcd-spool.1.slot.99.1";
    static const char *const others[] = {"cdcd-spool.1.slot2.99.1", "cdcd-spool.2.slot.99.1",
                                         "position.json"};
    struct pg_spools *s = pg_spools_new(dir, "1.slot", 0);
    touch(mine);
    for (int i = 0; i < 3; i++)
        touch(others[i]);
    assert_int_equal(pg_spools_clean(s, NULL), CDCD_OK);
    assert_false(there(mine, true));
    for (int i = 0; i < 3; i++)
        assert_true(there(others[i], true));
    pg_spools_free(s);
}

static void bad_folder(void **state)
{
    (void)state;
    struct cdcd_error err = {0};
    struct pg_spools *s = pg_spools_new("/nonexistent/spill", "1.slot", 0);
    assert_int_equal(pg_spools_clean(s, &err), CDCD_ERROR);
    assert_int_equal(err.class, CDCD_ERR_CONFIG);
    assert_non_null(strstr(err.text, "/nonexistent/spill"));
    struct pg_spool *sp = pg_spool_new(s, 10, true, 1);
    assert_int_equal(pg_spool_append(s, sp, 1, 1, cdcd_slice_str("x"), &err), CDCD_OK);
    assert_int_equal(pg_spool_pause(s, sp, &err), CDCD_ERROR);
    assert_int_equal(err.class, CDCD_ERR_FATAL);
    assert_non_null(strstr(err.text, "spill.dir"));
    pg_spools_free(s);
}

static void full_disk(void **state)
{
    (void)state;
    if (access("/dev/full", W_OK) != 0)
        skip();
    struct cdcd_error err = {0};
    struct pg_spools *s = pg_spools_new(dir, "1.slot", 0);
    struct pg_spool *sp = pg_spool_new(s, 10, true, 1);
    sp->fd = open("/dev/full", O_WRONLY);
    assert_int_equal(pg_spool_append(s, sp, 1, 1, cdcd_slice_str("x"), &err), CDCD_OK);
    assert_int_equal(pg_spool_pause(s, sp, &err), CDCD_ERROR);
    assert_int_equal(err.class, CDCD_ERR_FATAL);
    assert_non_null(strstr(err.text, "No space left"));
    assert_non_null(strstr(err.text, dir));
    pg_spools_free(s);
}

static int setup(void **state)
{
    (void)state;
    return mkdtemp(dir) ? 0 : -1;
}

static int teardown(void **state)
{
    (void)state;
    return rmdir(dir); /* fails when a file is left */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(in_and_out), cmocka_unit_test(aborted),   cmocka_unit_test(held),
        cmocka_unit_test(limit),      cmocka_unit_test(leftovers), cmocka_unit_test(bad_folder),
        cmocka_unit_test(full_disk),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
