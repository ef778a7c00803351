#include "queue.h"

#include <assert.h>
#include <time.h>

void cdcd_queue_init(struct cdcd_queue *q)
{
    *q = (struct cdcd_queue){0};
    pthread_mutex_init(&q->lock, NULL);
    pthread_condattr_t attr;
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(&q->ready, &attr);
    pthread_condattr_destroy(&attr);
}

void cdcd_queue_destroy(struct cdcd_queue *q)
{
    while (q->head) {
        struct cdcd_batch *b = q->head;
        q->head = b->next;
        cdcd_batch_free(b);
    }
    pthread_cond_destroy(&q->ready);
    pthread_mutex_destroy(&q->lock);
}

void cdcd_queue_push(struct cdcd_queue *q, struct cdcd_batch *b)
{
    assert(b && !b->next);
    pthread_mutex_lock(&q->lock);
    if (q->tail)
        q->tail->next = b;
    else
        q->head = b;
    q->tail = b;
    q->len++;
    pthread_cond_signal(&q->ready);
    pthread_mutex_unlock(&q->lock);
}

static struct timespec deadline_in(int ms)
{
    struct timespec ts;
    clock_gettime(CLOCK_MONOTONIC, &ts);
    ts.tv_sec += ms / 1000;
    ts.tv_nsec += (long)(ms % 1000) * 1000000;
    if (ts.tv_nsec >= 1000000000) {
        ts.tv_sec++;
        ts.tv_nsec -= 1000000000;
    }
    return ts;
}

struct cdcd_batch *cdcd_queue_pop(struct cdcd_queue *q, int timeout_ms)
{
    pthread_mutex_lock(&q->lock);
    if (!q->head && !q->closed && timeout_ms > 0) {
        struct timespec until = deadline_in(timeout_ms);
        while (!q->head && !q->closed && pthread_cond_timedwait(&q->ready, &q->lock, &until) == 0)
            ;
    }
    struct cdcd_batch *b = q->head;
    if (b) {
        q->head = b->next;
        if (!q->head)
            q->tail = NULL;
        b->next = NULL;
        q->len--;
    }
    pthread_mutex_unlock(&q->lock);
    return b;
}

size_t cdcd_queue_len(struct cdcd_queue *q)
{
    pthread_mutex_lock(&q->lock);
    size_t n = q->len;
    pthread_mutex_unlock(&q->lock);
    return n;
}

void cdcd_queue_close(struct cdcd_queue *q)
{
    pthread_mutex_lock(&q->lock);
    q->closed = true;
    pthread_cond_broadcast(&q->ready);
    pthread_mutex_unlock(&q->lock);
}

void cdcd_queue_reopen(struct cdcd_queue *q)
{
    pthread_mutex_lock(&q->lock);
    q->closed = false;
    pthread_mutex_unlock(&q->lock);
}

bool cdcd_queue_drained(struct cdcd_queue *q)
{
    pthread_mutex_lock(&q->lock);
    bool d = q->closed && !q->head;
    pthread_mutex_unlock(&q->lock);
    return d;
}
