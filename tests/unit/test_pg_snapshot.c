/*
 * The PostgreSQL snapshot without a server: COPY text, cursors, and that chunks cover a table
 * once, whatever its size and partitions.
 */
#include "snapshot.h"

#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

static void copy_text(void **state)
{
    (void)state;
    static const struct {
        const char *row;
        size_t max, n;
        const char *fields[4]; /* NULL: null */
        size_t len[4];         /* 0: strlen */
    } cases[] = {
        {"(0,1)\tabc\t1", 3, 3, {"(0,1)", "abc", "1"}, {0}},
        {"a\t\tb", 3, 3, {"a", "", "b"}, {0}},
        {"\\N\t\\\\N\tN", 3, 3, {NULL, "\\N", "N"}, {0}},
        {"\\N", 1, 1, {NULL}, {0}},
        {"x\\ty\\nz\\\\\t\\b\\f\\r\\v", 2, 2, {"x\ty\nz\\", "\b\f\r\v"}, {0}},
        {"\\\\.", 1, 1, {"\\."}, {0}},
        {"\\.", 1, 1, {"."}, {0}},
        {"a\\N", 1, 1, {"aN"}, {0}},
        {"", 1, 1, {""}, {0}},
        {"\t", 2, 2, {"", ""}, {0}},
        {"p\303\244ron\t\360\237\220\230", 2, 2, {"p\303\244ron", "\360\237\220\230"}, {0}},
        {"a\tb\tc", 2, 3, {"a", "b"}, {0}}, /* one too many is told */
        {"a", 2, 1, {"a"}, {0}},            /* one too few as well */
        {"trailing\\", 1, 1, {"trailing\\"}, {0}},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct cdcd_slice fields[4];
        char *row = cdcd_xstrdup(cases[i].row);
        size_t n = pg_copy_split(row, strlen(row), fields, cases[i].max);
        assert_int_equal(n, cases[i].n);
        for (size_t k = 0; k < n && k < cases[i].max; k++) {
            if (!cases[i].fields[k]) {
                assert_null(fields[k].ptr);
                continue;
            }
            assert_non_null(fields[k].ptr);
            assert_int_equal(fields[k].len, strlen(cases[i].fields[k]));
            assert_string_equal(fields[k].ptr, cases[i].fields[k]); /* ends with NUL */
        }
        free(row);
    }
}

static struct pg_leaf leaves[] = {
    {.oid = 10, .heap = true}, {.oid = 20, .heap = true}, {.oid = 30, .heap = true}};
static const struct pg_snap_table plain = {.leaves = leaves, .nleaves = 1};
static const struct pg_snap_table parted = {.root = true, .leaves = leaves, .nleaves = 3};

static void cursors(void **state)
{
    (void)state;
    static const struct {
        const struct pg_snap_table *t;
        const char *text;
        bool end, ok;
        struct pg_cursor c;
    } cases[] = {
        {&plain, "", false, true, {0, 0, 0}},
        {&plain, "", true, true, {1, 0, 0}},
        {&plain, "(12,34)", false, true, {0, 12, 34}},
        {&plain, "(4294967295,65535)", true, true, {0, UINT32_MAX, 65535}},
        {&plain, "(12,34", false, false, {0}},
        {&plain, "(12,34)x", false, false, {0}},
        {&plain, "12", false, false, {0}},
        {&plain, "(1,65536)", false, false, {0}},
        {&plain, "10:(1,1)", false, false, {0}},
        {&parted, "", false, true, {0, 0, 0}},
        {&parted, "", true, true, {3, 0, 0}},
        {&parted, "20:(5,6)", false, true, {1, 5, 6}},
        {&parted, "20:(5,6)", true, true, {1, 5, 6}},
        {&parted, "10:(5,6)", true, true, {0, 5, 6}},
        {&parted, "(5,6)", false, false, {0}},
        /* A partition that is gone: on from the next one, up to the one before. */
        {&parted, "15:(5,6)", false, true, {1, 0, 0}},
        {&parted, "15:(5,6)", true, true, {1, 0, 0}},
        {&parted, "40:(5,6)", false, true, {3, 0, 0}},
        {&parted, "40:(5,6)", true, true, {3, 0, 0}},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct pg_cursor c;
        bool ok = pg_cursor_parse(cases[i].t, cases[i].text, cases[i].end, &c);
        if (ok != cases[i].ok)
            fail_msg("\"%s\" %s", cases[i].text, ok ? "passed" : "was refused");
        if (!ok)
            continue;
        if (c.leaf != cases[i].c.leaf || c.block != cases[i].c.block ||
            c.offset != cases[i].c.offset)
            fail_msg("\"%s\": %zu (%u,%u)", cases[i].text, c.leaf, c.block, c.offset);
    }
}

static void cursor_round_trip(void **state)
{
    (void)state;
    const struct pg_cursor in = {2, UINT32_MAX, 65535};
    struct pg_cursor out;
    char text[64];
    pg_cursor_write(&parted, &in, text);
    assert_string_equal(text, "30:(4294967295,65535)");
    assert_true(pg_cursor_parse(&parted, text, false, &out));
    assert_memory_equal(&in, &out, sizeof in);
}

static void tails(void **state)
{
    (void)state;
    pg_lsn lsn = 0;
    uint64_t xmin = 0;
    assert_true(pg_tail_parse("TA/1B:42949672961", &lsn, &xmin));
    assert_int_equal(lsn, 0xA0000001B);
    assert_int_equal(xmin, UINT64_C(42949672961));
    static const char *const bad[] = {"",        "T",   "T0/1",  "T0/1:",  "T0/1:x",
                                      "T0/1:1x", "T:5", "(1,1)", "T0/1:-1"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        if (pg_tail_parse(bad[i], &lsn, &xmin))
            fail_msg("\"%s\" passed", bad[i]);
    }
}

/* Chunks follow one another without gap or overlap, begin at the start and end at the end. */
static void check_cover(const struct pg_snap_table *t, int64_t per_chunk, size_t max)
{
    struct cdcd_chunks chunks = {0};
    cdcd_arena_init(&chunks.arena, 0);
    pg_snap_cut(t, per_chunk, &chunks);
    assert_true(chunks.n >= 1);
    if (chunks.n > max)
        fail_msg("%zu chunks", chunks.n);
    assert_string_equal(chunks.items[0].begin, "");
    assert_string_equal(chunks.items[chunks.n - 1].end, "");
    for (size_t i = 0; i < chunks.n; i++) {
        struct pg_cursor b, e;
        assert_int_equal(chunks.items[i].number, i);
        assert_true(pg_cursor_parse(t, chunks.items[i].begin, false, &b));
        assert_true(pg_cursor_parse(t, chunks.items[i].end, true, &e));
        if (i + 1 < chunks.n)
            assert_string_equal(chunks.items[i].end, chunks.items[i + 1].begin);
        assert_true(b.leaf < e.leaf || (b.leaf == e.leaf && b.block < e.block) || t->nleaves == 0);
        /* A leaf that has no ctids is read in one piece. */
        for (size_t k = 0; k < t->nleaves; k++) {
            if (!t->leaves[k].heap && (b.leaf == k || e.leaf == k)) {
                assert_true(b.leaf != k || b.block == 0);
                assert_true(e.leaf != k || e.block == 0);
            }
        }
    }
    cdcd_arena_free(&chunks.arena);
}

static void chunks_cover(void **state)
{
    (void)state;
    static const int64_t sizes[] = {0, 1, 2, 7, 8, 9, 100, 8192, INT64_C(4000000000)};
    static const int64_t per[] = {1, 2, 8, 8192};
    const size_t n = sizeof sizes / sizeof *sizes;
    for (size_t p = 0; p < sizeof per / sizeof *per; p++) {
        for (size_t i = 0; i < n; i++) {
            leaves[0].blocks = sizes[i];
            check_cover(&plain, per[p], 4002);
            for (size_t k = 0; k < n * n; k++) {
                leaves[1].blocks = sizes[k % n];
                leaves[2].blocks = sizes[k / n];
                for (unsigned heap = 0; heap < 8; heap++) {
                    for (unsigned l = 0; l < 3; l++)
                        leaves[l].heap = heap >> l & 1;
                    if (heap == 7 || sizes[i] <= 100)
                        check_cover(&parted, per[p], 4010);
                }
            }
        }
    }
    for (unsigned l = 0; l < 3; l++)
        leaves[l].heap = true;
}

static void small_leaves_share(void **state)
{
    (void)state;
    struct pg_leaf *many = cdcd_xcalloc(1000, sizeof *many);
    for (uint32_t i = 0; i < 1000; i++)
        many[i] = (struct pg_leaf){.oid = 100 + i, .heap = true, .blocks = 1};
    const struct pg_snap_table t = {.root = true, .leaves = many, .nleaves = 1000};
    check_cover(&t, 100, 10);
    free(many);
    const struct pg_snap_table none = {.root = true};
    check_cover(&none, 100, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(copy_text),          cmocka_unit_test(cursors),
        cmocka_unit_test(cursor_round_trip),  cmocka_unit_test(chunks_cover),
        cmocka_unit_test(small_leaves_share), cmocka_unit_test(tails),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
