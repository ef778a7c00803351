/*
 * queue: a closable FIFO of batches, mutex + condition. The number of batches is fixed,
 * so a queue needs no bound of its own: no free batch is the bound.
 * Any thread may push or pop. Pushing hands over all rights to the batch.
 */
#ifndef CDCD_QUEUE_H
#define CDCD_QUEUE_H

#include <cdcd/batch.h>

#include <pthread.h>

struct cdcd_queue {
    pthread_mutex_t lock;
    pthread_cond_t ready;
    struct cdcd_batch *head, *tail;
    size_t len;
    bool closed;
};

void cdcd_queue_init(struct cdcd_queue *q);
void cdcd_queue_destroy(struct cdcd_queue *q); /* frees the batches that are in it */
void cdcd_queue_push(struct cdcd_queue *q, struct cdcd_batch *b); /* also when closed */
/* The oldest batch; waits up to timeout_ms for one. NULL on timeout, or when the queue is
 * closed and empty. */
struct cdcd_batch *cdcd_queue_pop(struct cdcd_queue *q, int timeout_ms);
size_t cdcd_queue_len(struct cdcd_queue *q);
/* Wakes all waiters; pop goes on giving what is there and then NULL at once. */
void cdcd_queue_close(struct cdcd_queue *q);
void cdcd_queue_reopen(struct cdcd_queue *q);
bool cdcd_queue_drained(struct cdcd_queue *q); /* closed and empty */

#endif
