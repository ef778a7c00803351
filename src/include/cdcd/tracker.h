/*
 * tracker: which sequence numbers are done, when they get done in any order.
 *
 * A sink that has several batches in flight learns of their ends in any order, but may only
 * report the unbroken prefix as durable. One thread uses a tracker; it does no I/O.
 */
#ifndef CDCD_TRACKER_H
#define CDCD_TRACKER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct cdcd_tracker {
    uint64_t prefix; /* every number up to and including this one is done */
    uint64_t last;   /* highest number begun */
    uint64_t *bits;  /* ring: bit (seq mod cap) of the numbers after prefix */
    size_t cap;      /* in numbers; a power of two, at least 64; 0 before the first use */
};

/* Numbers start at 1. */
void cdcd_tracker_init(struct cdcd_tracker *t);
void cdcd_tracker_free(struct cdcd_tracker *t);
/* Forgets everything; the next number is 1 again. */
void cdcd_tracker_reset(struct cdcd_tracker *t);
/* A number comes into flight. Numbers come in order, without gaps. */
void cdcd_tracker_begin(struct cdcd_tracker *t, uint64_t seq);
/* A number in flight is done. True when the prefix moved. */
bool cdcd_tracker_done(struct cdcd_tracker *t, uint64_t seq);

/* Numbers begun that the prefix has not passed. */
static inline uint64_t cdcd_tracker_open(const struct cdcd_tracker *t)
{
    return t->last - t->prefix;
}

#endif
