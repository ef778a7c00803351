#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <cdcd/tracker.h>

#include <stdlib.h>

/* The plain truth that the tracker is compared with: one flag a number. */
struct model {
    bool done[64];
    uint64_t begun;
};

static uint64_t model_prefix(const struct model *m)
{
    uint64_t p = 0;
    while (p < m->begun && m->done[p + 1])
        p++;
    return p;
}

static unsigned long walked;

static struct cdcd_tracker tracker_copy(const struct cdcd_tracker *t)
{
    struct cdcd_tracker c = *t;
    if (t->bits) {
        c.bits = malloc(t->cap / 8);
        assert_non_null(c.bits);
        for (size_t i = 0; i < t->cap / 64; i++)
            c.bits[i] = t->bits[i];
    }
    return c;
}

/* Tries every next step: begin the next number, or finish any number in flight. */
static void walk(const struct cdcd_tracker *t, const struct model *m, uint64_t n)
{
    walked++;
    assert_int_equal(t->prefix, model_prefix(m));
    assert_int_equal(cdcd_tracker_open(t), m->begun - model_prefix(m));
    if (m->begun < n) {
        struct cdcd_tracker c = tracker_copy(t);
        struct model mc = *m;
        cdcd_tracker_begin(&c, ++mc.begun);
        walk(&c, &mc, n);
        cdcd_tracker_free(&c);
    }
    for (uint64_t s = 1; s <= m->begun; s++) {
        if (m->done[s])
            continue;
        struct cdcd_tracker c = tracker_copy(t);
        struct model mc = *m;
        mc.done[s] = true;
        bool moved = cdcd_tracker_done(&c, s);
        assert_int_equal(moved, model_prefix(&mc) != model_prefix(m));
        walk(&c, &mc, n);
        cdcd_tracker_free(&c);
    }
}

static void all_interleavings(void **state)
{
    (void)state;
    for (uint64_t n = 0; n <= 5; n++) {
        struct cdcd_tracker t;
        struct model m = {0};
        cdcd_tracker_init(&t);
        walk(&t, &m, n);
        cdcd_tracker_free(&t);
    }
    assert_true(walked > 1000);
}

/* All n! orders of finishing when all are in flight, at every place of the ring. */
static void permute(struct cdcd_tracker *t, uint64_t base, unsigned left, unsigned n)
{
    for (unsigned i = 0; i < n; i++) {
        if (!(left >> i & 1))
            continue;
        struct cdcd_tracker c = tracker_copy(t);
        unsigned rest = left & ~(1u << i);
        cdcd_tracker_done(&c, base + i + 1);
        uint64_t expect = base;
        while (expect < base + n && !(rest >> (expect - base) & 1))
            expect++;
        assert_int_equal(c.prefix, expect);
        permute(&c, base, rest, n);
        cdcd_tracker_free(&c);
    }
}

static void all_orders_around_the_ring(void **state)
{
    (void)state;
    for (uint64_t base = 0; base < 70; base++) {
        struct cdcd_tracker t;
        cdcd_tracker_init(&t);
        for (uint64_t s = 1; s <= base; s++) {
            cdcd_tracker_begin(&t, s);
            assert_true(cdcd_tracker_done(&t, s));
        }
        for (uint64_t s = base + 1; s <= base + 5; s++)
            cdcd_tracker_begin(&t, s);
        permute(&t, base, 31, 5);
        cdcd_tracker_free(&t);
    }
}

static void grows_with_holes(void **state)
{
    (void)state;
    struct cdcd_tracker t;
    cdcd_tracker_init(&t);
    for (uint64_t s = 1; s <= 40; s++) {
        cdcd_tracker_begin(&t, s);
        cdcd_tracker_done(&t, s);
    }
    for (uint64_t s = 41; s <= 1040; s++) {
        cdcd_tracker_begin(&t, s);
        if (s > 41)
            assert_false(cdcd_tracker_done(&t, s));
    }
    assert_int_equal(t.prefix, 40);
    assert_int_equal(cdcd_tracker_open(&t), 1000);
    assert_true(cdcd_tracker_done(&t, 41));
    assert_int_equal(t.prefix, 1040);
    assert_int_equal(t.cap, 1024);
    cdcd_tracker_reset(&t);
    cdcd_tracker_begin(&t, 1);
    assert_int_equal(t.prefix, 0);
    assert_true(cdcd_tracker_done(&t, 1));
    cdcd_tracker_free(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_interleavings),
        cmocka_unit_test(all_orders_around_the_ring),
        cmocka_unit_test(grows_with_holes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
