/* The bounded reader. */
#include <cdcd/cursor.h>

#include <setjmp.h>
#include <stdio.h>

#include <cmocka.h>

static void reads_in_network_order(void **state)
{
    (void)state;
    static const uint8_t bytes[] = {0x01, 0xff, 0xfe, 0x80, 0x00, 0x00, 0x01, 0xde, 0xad,
                                    0xbe, 0xef, 0x00, 0x00, 0x00, 0x05, 'h',  'i',  0};
    struct cdcd_cursor c = cdcd_cur(bytes, sizeof(bytes));
    assert_int_equal(cdcd_cur_u8(&c), 0x01);
    assert_int_equal(cdcd_cur_u16be(&c), 0xfffe);
    assert_int_equal(cdcd_cur_u32be(&c), 0x80000001u);
    assert_true(cdcd_cur_u64be(&c) == 0xdeadbeef00000005u);
    assert_false(cdcd_cur_end(&c));
    assert_true(cdcd_slice_eq(cdcd_cur_cstr(&c), cdcd_slice_str("hi")));
    assert_true(cdcd_cur_end(&c));
}

static void underflow_is_sticky(void **state)
{
    (void)state;
    static const uint8_t bytes[] = {1, 2, 3};
    struct cdcd_cursor c = cdcd_cur(bytes, sizeof(bytes));
    assert_int_equal(cdcd_cur_u32be(&c), 0);
    assert_true(c.bad);
    /* What is there is not read any more. */
    assert_int_equal(cdcd_cur_u8(&c), 0);
    assert_int_equal(cdcd_cur_bytes(&c, 1).len, 0);
    assert_non_null(cdcd_cur_bytes(&c, 1).ptr);
    assert_int_equal(cdcd_cur_cstr(&c).len, 0);
    assert_false(cdcd_cur_end(&c));
}

static void eight_bytes_need_eight(void **state)
{
    (void)state;
    static const uint8_t bytes[] = {1, 2, 3, 4, 5, 6, 7};
    struct cdcd_cursor c = cdcd_cur(bytes, sizeof(bytes));
    assert_true(cdcd_cur_u64be(&c) == 0);
    assert_true(c.bad);
}

static void huge_lengths_do_not_overflow(void **state)
{
    (void)state;
    static const uint8_t bytes[] = {1, 2, 3};
    static const size_t lengths[] = {4, SIZE_MAX, SIZE_MAX - 1, SIZE_MAX / 2, 1u << 31};
    for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
        struct cdcd_cursor c = cdcd_cur(bytes, sizeof(bytes));
        assert_null(cdcd_cur_take(&c, lengths[i]));
        assert_true(c.bad);
    }
}

static void string_without_nul_is_bad(void **state)
{
    (void)state;
    struct cdcd_cursor c = cdcd_cur("abc", 3);
    assert_int_equal(cdcd_cur_cstr(&c).len, 0);
    assert_true(c.bad);
}

static void a_part_cannot_read_beyond_itself(void **state)
{
    (void)state;
    static const uint8_t bytes[] = {1, 2, 3, 4};
    struct cdcd_cursor c = cdcd_cur(bytes, sizeof(bytes));
    struct cdcd_cursor part = cdcd_cur_sub(&c, 2);
    assert_int_equal(cdcd_cur_u8(&part), 1);
    assert_int_equal(cdcd_cur_u16be(&part), 0);
    assert_true(part.bad);
    assert_false(c.bad);
    assert_int_equal(cdcd_cur_u8(&c), 3);
    struct cdcd_cursor none = cdcd_cur_sub(&c, 2);
    assert_true(none.bad && c.bad);
    assert_int_equal(cdcd_cur_left(&none), 0);
}

static void counts_must_fit_what_is_left(void **state)
{
    (void)state;
    static const uint8_t bytes[10] = {0};
    static const struct {
        size_t n, min_size, want;
    } cases[] = {{5, 2, 5},   {6, 2, 0},         {10, 1, 10}, {11, 0, 0},
                 {10, 0, 10}, {SIZE_MAX, 16, 0}, {0, 4, 0}};
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct cdcd_cursor c = cdcd_cur(bytes, sizeof(bytes));
        assert_int_equal(cdcd_cur_count(&c, cases[i].n, cases[i].min_size), cases[i].want);
        assert_int_equal(c.bad, cases[i].want != cases[i].n);
    }
}

static void nothing_is_an_orderly_end(void **state)
{
    (void)state;
    struct cdcd_cursor c = cdcd_cur("", 0);
    assert_true(cdcd_cur_end(&c));
    assert_int_equal(cdcd_cur_bytes(&c, 0).len, 0);
    assert_true(cdcd_cur_end(&c));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads_in_network_order),
        cmocka_unit_test(underflow_is_sticky),
        cmocka_unit_test(eight_bytes_need_eight),
        cmocka_unit_test(huge_lengths_do_not_overflow),
        cmocka_unit_test(string_without_nul_is_bad),
        cmocka_unit_test(a_part_cannot_read_beyond_itself),
        cmocka_unit_test(counts_must_fit_what_is_left),
        cmocka_unit_test(nothing_is_an_orderly_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
