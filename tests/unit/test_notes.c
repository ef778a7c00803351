/* Notes by key, and notes of a batch. */
#include <cdcd/batch.h>

#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

#include <setjmp.h>

#include <cmocka.h>

static struct cdcd_slice s(const char *text)
{
    return cdcd_slice_str(text);
}

static void sorted_and_replaced(void **state)
{
    (void)state;
    struct cdcd_notes *n = cdcd_notes_new();
    for (int i = 99; i >= 0; i--) {
        char key[16];
        snprintf(key, sizeof key, "k%02d", i);
        cdcd_notes_set(n, s(key), s("old"));
        cdcd_notes_set(n, s(key), s(key + 1));
    }
    assert_int_equal(cdcd_notes_count(n), 100);
    assert_true(cdcd_slice_eq(cdcd_notes_get(n, s("k42")), s("42")));
    for (size_t i = 0; i < 100; i++) {
        struct cdcd_slice key, value;
        char want[16];
        snprintf(want, sizeof want, "k%02zu", i);
        cdcd_notes_at(n, i, &key, &value);
        assert_true(cdcd_slice_eq(key, s(want)));
        assert_true(cdcd_slice_eq(value, s(want + 1)));
    }
    cdcd_notes_free(n);
}

static void removed(void **state)
{
    (void)state;
    struct cdcd_notes *n = cdcd_notes_new();
    cdcd_notes_set(n, s("a"), s("1"));
    cdcd_notes_set(n, s("ab"), s(""));
    cdcd_notes_set(n, s("a"), (struct cdcd_slice){NULL, 0});
    cdcd_notes_set(n, s("never"), (struct cdcd_slice){NULL, 0});
    assert_int_equal(cdcd_notes_count(n), 1);
    assert_null(cdcd_notes_get(n, s("a")).ptr);
    assert_non_null(cdcd_notes_get(n, s("ab")).ptr);
    cdcd_notes_clear(n);
    assert_int_equal(cdcd_notes_count(n), 0);
    cdcd_notes_free(n);
}

static void in_a_batch(void **state)
{
    (void)state;
    struct cdcd_batch *b = cdcd_batch_new();
    char key[] = "one", value[] = "two";
    cdcd_batch_note(b, s(key), s(value));
    cdcd_batch_note(b, s("gone"), (struct cdcd_slice){NULL, 0});
    key[0] = value[0] = '-';
    assert_true(cdcd_slice_eq(b->notes->key, s("one")));
    assert_true(cdcd_slice_eq(b->notes->value, s("two")));
    assert_ptr_equal(b->notes->next, b->last_note);
    assert_null(b->last_note->value.ptr);
    cdcd_batch_reset(b);
    assert_null(b->notes);
    cdcd_batch_free(b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sorted_and_replaced),
        cmocka_unit_test(removed),
        cmocka_unit_test(in_a_batch),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
