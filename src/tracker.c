#include <cdcd/buf.h>
#include <cdcd/tracker.h>

#include <assert.h>
#include <stdlib.h>

static bool bit_get(const uint64_t *bits, size_t cap, uint64_t seq)
{
    size_t i = (size_t)(seq & (cap - 1));
    return bits[i / 64] >> (i % 64) & 1;
}

static void bit_set(uint64_t *bits, size_t cap, uint64_t seq)
{
    size_t i = (size_t)(seq & (cap - 1));
    bits[i / 64] |= UINT64_C(1) << (i % 64);
}

static void bit_clear(uint64_t *bits, size_t cap, uint64_t seq)
{
    size_t i = (size_t)(seq & (cap - 1));
    bits[i / 64] &= ~(UINT64_C(1) << (i % 64));
}

void cdcd_tracker_init(struct cdcd_tracker *t)
{
    *t = (struct cdcd_tracker){0};
}

void cdcd_tracker_free(struct cdcd_tracker *t)
{
    free(t->bits);
    *t = (struct cdcd_tracker){0};
}

void cdcd_tracker_reset(struct cdcd_tracker *t)
{
    t->prefix = t->last = 0;
    if (t->bits)
        memset(t->bits, 0, t->cap / 8);
}

static void tracker_grow(struct cdcd_tracker *t)
{
    size_t cap = t->cap ? t->cap * 2 : 64;
    uint64_t *bits = cdcd_xcalloc(cap / 64, sizeof *bits);
    for (uint64_t s = t->prefix + 1; s <= t->last; s++)
        if (bit_get(t->bits, t->cap, s))
            bit_set(bits, cap, s);
    free(t->bits);
    t->bits = bits;
    t->cap = cap;
}

void cdcd_tracker_begin(struct cdcd_tracker *t, uint64_t seq)
{
    assert(seq == t->last + 1);
    if (cdcd_tracker_open(t) == t->cap)
        tracker_grow(t);
    t->last = seq;
}

bool cdcd_tracker_done(struct cdcd_tracker *t, uint64_t seq)
{
    assert(seq > t->prefix && seq <= t->last && !bit_get(t->bits, t->cap, seq));
    bit_set(t->bits, t->cap, seq);
    if (seq != t->prefix + 1)
        return false;
    while (t->prefix < t->last && bit_get(t->bits, t->cap, t->prefix + 1))
        bit_clear(t->bits, t->cap, ++t->prefix);
    return true;
}
