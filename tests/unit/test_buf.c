/* buf, arena and writer. */
#include <cdcd/buf.h>

#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

static void buf_grows_and_keeps_room_for_nul(void **state)
{
    (void)state;
    struct cdcd_buf b;
    cdcd_buf_init(&b, 0);
    assert_string_equal(cdcd_buf_cstr(&b), "");
    for (int i = 0; i < 1000; i++)
        cdcd_buf_addf(&b, "%d,", i);
    assert_false(b.failed);
    assert_int_equal(b.len, strlen(cdcd_buf_cstr(&b)));
    assert_memory_equal(b.ptr, "0,1,2,", 6);
    assert_string_equal(b.ptr + b.len - 4, "999,");
    cdcd_buf_clear(&b);
    assert_string_equal(cdcd_buf_cstr(&b), "");
    cdcd_buf_free(&b);
}

static void buf_over_max_fails_and_stays_failed(void **state)
{
    (void)state;
    struct cdcd_buf b;
    cdcd_buf_init(&b, 10);
    cdcd_buf_adds(&b, "0123456789");
    assert_false(b.failed);
    cdcd_buf_adds(&b, "x");
    assert_true(b.failed);
    assert_int_equal(b.len, 10);
    cdcd_buf_clear(&b);
    cdcd_buf_addf(&b, "%s", "01234567890");
    assert_true(b.failed);
    assert_int_equal(b.len, 0);
    /* What would fit must not go in after something was left out. */
    cdcd_buf_adds(&b, "y");
    assert_int_equal(b.len, 0);
    assert_null(cdcd_buf_reserve(&b, SIZE_MAX));
    cdcd_buf_free(&b);
}

static void buf_takes_bytes_with_nul(void **state)
{
    (void)state;
    struct cdcd_buf b;
    cdcd_buf_init(&b, 0);
    cdcd_buf_add(&b, "a\0b", 3);
    cdcd_buf_add(&b, NULL, 0);
    assert_true(cdcd_slice_eq(cdcd_buf_slice(&b), (struct cdcd_slice){"a\0b", 3}));
    cdcd_buf_free(&b);
}

static void arena_keeps_what_it_handed_out(void **state)
{
    (void)state;
    struct cdcd_arena a;
    unsigned char *parts[300];
    size_t sizes[300];
    cdcd_arena_init(&a, 256);
    for (unsigned round = 0; round < 3; round++) {
        for (unsigned i = 0; i < 300; i++) {
            sizes[i] = (i * 7919u) % (i % 50 == 0 ? 5000 : 90);
            parts[i] = cdcd_arena_alloc(&a, sizes[i]);
            assert_non_null(parts[i]);
            assert_int_equal((uintptr_t)parts[i] % 8, 0);
            memset(parts[i], (int)(i & 255), sizes[i]);
        }
        for (unsigned i = 0; i < 300; i++) {
            for (size_t k = 0; k < sizes[i]; k++)
                assert_int_equal(parts[i][k], i & 255);
        }
        assert_true(a.used > 0);
        cdcd_arena_reset(&a, 1024);
        assert_int_equal(a.used, 0);
        size_t kept = 0;
        for (struct cdcd_arena_chunk *c = a.first; c; c = c->next) {
            assert_int_equal(c->cap, 256);
            kept += c->cap;
        }
        assert_true(kept <= 1024);
    }
    cdcd_arena_free(&a);
    assert_null(a.first);
}

static void arena_of_zeroed_memory_works(void **state)
{
    (void)state;
    struct cdcd_arena a = {0};
    assert_string_equal(cdcd_arena_dup(&a, "abc", 3), "abc");
    cdcd_arena_free(&a);
}

static void arena_dup_puts_nul_behind(void **state)
{
    (void)state;
    struct cdcd_arena a;
    cdcd_arena_init(&a, 64);
    char *s = cdcd_arena_dup(&a, "abcdef", 3);
    assert_string_equal(s, "abc");
    assert_string_equal(cdcd_arena_dup(&a, NULL, 0), "");
    cdcd_arena_free(&a);
}

/* A writer's bytes stay whole through every way of growing, beside other allocations. */
static void writer_survives_growing(void **state)
{
    (void)state;
    struct cdcd_arena a;
    cdcd_arena_init(&a, 256);
    static const size_t lengths[] = {0, 1, 7, 8, 100, 255, 256, 257, 511, 3000, 100000};
    struct cdcd_slice got[11];
    size_t used = 0;
    for (size_t i = 0; i < 11; i++) {
        memset(cdcd_arena_alloc(&a, 40), 0x55, 40);
        used += 40;
        struct cdcd_writer w;
        cdcd_writer_begin(&w, &a);
        for (size_t k = 0; k < lengths[i]; k++)
            cdcd_writer_char(&w, (char)('a' + (k + i) % 26));
        got[i] = cdcd_writer_end(&w);
        used += (lengths[i] + 7) / 8 * 8;
        assert_int_equal(got[i].len, lengths[i]);
        assert_non_null(got[i].ptr);
    }
    assert_int_equal(a.used, used);
    for (size_t i = 0; i < 11; i++) {
        for (size_t k = 0; k < lengths[i]; k++)
            assert_int_equal(got[i].ptr[k], 'a' + (k + i) % 26);
    }
    cdcd_arena_free(&a);
}

static void writer_goes_on_in_kept_chunks(void **state)
{
    (void)state;
    struct cdcd_arena a;
    cdcd_arena_init(&a, 1024);
    for (int round = 0; round < 50; round++) {
        for (int i = 0; i < 20; i++) {
            struct cdcd_writer w;
            cdcd_writer_begin(&w, &a);
            for (int k = 0; k < 30; k++)
                cdcd_writer_lit(&w, "0123456789");
            assert_int_equal(cdcd_writer_end(&w).len, 300);
        }
        size_t chunks = 0;
        for (struct cdcd_arena_chunk *c = a.first; c; c = c->next)
            chunks++;
        assert_true(chunks <= 8);
        cdcd_arena_reset(&a, 16384);
    }
    cdcd_arena_free(&a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(buf_grows_and_keeps_room_for_nul),
        cmocka_unit_test(buf_over_max_fails_and_stays_failed),
        cmocka_unit_test(buf_takes_bytes_with_nul),
        cmocka_unit_test(arena_keeps_what_it_handed_out),
        cmocka_unit_test(arena_of_zeroed_memory_works),
        cmocka_unit_test(arena_dup_puts_nul_behind),
        cmocka_unit_test(writer_survives_growing),
        cmocka_unit_test(writer_goes_on_in_kept_chunks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
