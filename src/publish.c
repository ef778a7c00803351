/*
 * The publish thread: takes full batches, encodes them, gives them to the sink, serves the
 * sink's deliveries and commits. It owns the sink while a session lasts, so neither the
 * encoder nor the sink needs a lock.
 */
#include "pipeline_int.h"

#include <cdcd/log.h>

#include <stdlib.h>

/* How long a source that said "there is more" may take to bring it before what has been
 * written is committed all the same. */
#define MORE_WAIT_MS 5
/* The same within a transaction of the source: it should become visible in one piece. */
#define TX_WAIT_MS   500
#define IDLE_WAIT_MS 50

void cdcd_publish_batch_done(void *ctx, struct cdcd_batch *b)
{
    struct cdcd_pipeline *p = ctx;
    cdcd_batch_reset(b);
    cdcd_queue_push(&p->free, b);
}

static struct cdcd_note *copy_notes(const struct cdcd_batch *b)
{
    struct cdcd_note *first = NULL, **to = &first;
    for (const struct cdcd_note *n = b->notes; n; n = n->next) {
        *to = cdcd_xcalloc(1, sizeof **to);
        (*to)->key = (struct cdcd_slice){cdcd_xstrndup(n->key.ptr, n->key.len), n->key.len};
        if (n->value.ptr)
            (*to)->value = (struct cdcd_slice){cdcd_xstrndup(n->value.ptr, n->value.len),
                                               n->value.len};
        to = &(*to)->next;
    }
    return first;
}

static void remember_state(struct cdcd_pipeline *p, const struct cdcd_batch *b)
{
    if (p->nremember == p->remember_cap) {
        p->remember_cap = p->remember_cap ? p->remember_cap * 2 : 16;
        p->remember = cdcd_xrealloc(p->remember, p->remember_cap * sizeof *p->remember);
    }
    p->remember[p->nremember].seq = b->seq;
    p->remember[p->nremember].notes = copy_notes(b);
    p->remember[p->nremember++].state = cdcd_xstrndup(b->state.ptr, b->state.len);
}

static void free_notes(struct cdcd_note *n)
{
    while (n) {
        struct cdcd_note *next = n->next;
        free((char *)(uintptr_t)n->key.ptr);
        free((char *)(uintptr_t)n->value.ptr);
        free(n);
        n = next;
    }
}

void cdcd_publish_take_notes(struct cdcd_pipeline *p)
{
    for (const struct cdcd_note *n = p->durable_notes; n; n = n->next)
        cdcd_notes_set(p->notes, n->key, n->value);
    free_notes(p->durable_notes);
    p->durable_notes = NULL;
}

static void add_durable_notes(struct cdcd_pipeline *p, struct cdcd_note *notes)
{
    if (!p->durable_notes)
        p->durable_notes_tail = &p->durable_notes;
    for (*p->durable_notes_tail = notes; notes; notes = notes->next)
        p->durable_notes_tail = &notes->next;
}

/* A sink that forgets over restarts still must not repeat within one process. */
static void forgetful_durable(struct cdcd_pipeline *p, uint64_t seq)
{
    size_t n = 0;
    while (n < p->nremember && p->remember[n].seq <= seq) {
        free(p->memory);
        add_durable_notes(p, p->remember[n].notes);
        p->memory = p->remember[n++].state;
    }
    if (n == 0)
        return;
    memmove(p->remember, p->remember + n, (p->nremember - n) * sizeof *p->remember);
    p->nremember -= n;
}

static void pending_push(struct cdcd_pipeline *p, const struct cdcd_batch *b)
{
    if (p->pending_tail == p->pending_cap) {
        size_t n = p->pending_tail - p->pending_head;
        if (p->pending_head > 0) {
            memmove(p->pending, p->pending + p->pending_head, n * sizeof *p->pending);
            p->pending_head = 0;
            p->pending_tail = n;
        }
        if (n == p->pending_cap || !p->pending_cap) {
            p->pending_cap = p->pending_cap ? p->pending_cap * 2 : 64;
            p->pending = cdcd_xrealloc(p->pending, p->pending_cap * sizeof *p->pending);
        }
    }
    p->pending[p->pending_tail++] = (struct pending_ack){
        b->seq, cdcd_xstrndup(b->position.ptr, b->position.len)};
}

void cdcd_publish_durable(void *ctx, uint64_t seq)
{
    struct cdcd_pipeline *p = ctx;
    char *newest = NULL;
    while (p->pending_head < p->pending_tail && p->pending[p->pending_head].seq <= seq) {
        free(newest);
        newest = p->pending[p->pending_head++].position;
    }
    forgetful_durable(p, seq);
    pthread_mutex_lock(&p->lock);
    p->durable_seq = seq;
    p->progress = true;
    p->committed_ms = p->unpublished_ms = cdcd_now_ms();
    if (newest) {
        free(p->durable_position);
        p->durable_position = newest;
        free(p->shown_position);
        p->shown_position = cdcd_xstrdup(newest);
    }
    pthread_mutex_unlock(&p->lock);
}

void cdcd_publish_reset(struct cdcd_pipeline *p)
{
    while (p->pending_head < p->pending_tail)
        free(p->pending[p->pending_head++].position);
    p->pending_head = p->pending_tail = 0;
    for (size_t i = 0; i < p->nremember; i++) {
        free(p->remember[i].state);
        free_notes(p->remember[i].notes);
    }
    p->nremember = 0;
    p->seq = 0;
    pthread_mutex_lock(&p->lock);
    free(p->durable_position);
    p->durable_position = NULL;
    p->written_seq = p->durable_seq = 0;
    p->progress = false;
    pthread_mutex_unlock(&p->lock);
    p->publish_bad = false;
    p->publish_error = (struct cdcd_error){0};
}

/* A thousand topics in one request take seconds, one by one minutes. */
static enum cdcd_rc prepare_topics(struct cdcd_pipeline *p, struct cdcd_error *err)
{
    pthread_mutex_lock(&p->lock);
    const struct cdcd_snapshot_tables *tables = p->announced;
    p->announced = NULL;
    size_t n = tables && p->sink_ops->prepare ? tables->n : 0;
    struct cdcd_topic **topics = n ? cdcd_xcalloc(n, sizeof(struct cdcd_topic *)) : NULL;
    /* Under lock: a coordinator that fails takes its tables away. */
    for (size_t i = 0; i < n; i++) {
        const struct cdcd_snapshot_table *t = &tables->items[i];
        topics[i] = cdcd_encoder_topic_named(p->encoder, t->db ? t->db : t->schema, t->schema,
                                             t->table, t->keyed);
    }
    pthread_mutex_unlock(&p->lock);
    enum cdcd_rc rc = n ? p->sink_ops->prepare(p->sink, topics, n, err) : CDCD_OK;
    free(topics);
    return rc == CDCD_ERROR ? CDCD_ERROR : CDCD_OK;
}

static enum cdcd_rc encode_batch(struct cdcd_pipeline *p, struct cdcd_batch *b,
                                 struct cdcd_error *err)
{
    if (!p->source_ops->records)
        return cdcd_encoder_encode(p->encoder, b, err);
    cdcd_encoder_route(p->encoder, b);
    return CDCD_OK;
}

static enum cdcd_rc publish_batch(struct cdcd_pipeline *p, struct cdcd_batch *b,
                                  struct cdcd_error *err)
{
    if (prepare_topics(p, err) != CDCD_OK || encode_batch(p, b, err) != CDCD_OK) {
        cdcd_publish_batch_done(p, b);
        return CDCD_ERROR;
    }
    b->seq = ++p->seq;
    if (b->position.ptr)
        pending_push(p, b);
    if (b->state.ptr && p->sink_ops->forgetful && p->sink_ops->forgetful(p->config->sink_config))
        remember_state(p, b);
    /* Counted as written before it is: the sink may give the batch back within write, and a
     * batch at home whose number is not known yet would look like one that is durable. */
    pthread_mutex_lock(&p->lock);
    if (p->written_seq == p->durable_seq)
        p->unpublished_ms = cdcd_now_ms();
    p->written_seq = p->seq;
    p->stats.skipped = cdcd_encoder_skipped(p->encoder);
    p->stats.events += p->source_ops->records ? b->nrecords : b->nevents;
    p->stats.records += b->nrecords;
    p->stats.bytes += b->bytes;
    if (b->snapshot)
        p->stats.snapshot_rows += b->nevents;
    pthread_mutex_unlock(&p->lock);
    return p->sink_ops->write(p->sink, b, err);
}

static bool all_durable(struct cdcd_pipeline *p)
{
    pthread_mutex_lock(&p->lock);
    bool yes = p->durable_seq == p->written_seq;
    pthread_mutex_unlock(&p->lock);
    return yes;
}

/* How long to hold back the commit of what was just written, in expectation of more. */
static int64_t hold_for(const struct cdcd_batch *b)
{
    return b->in_tx ? TX_WAIT_MS : b->caught_up ? 0 : MORE_WAIT_MS;
}

static enum cdcd_rc publish_loop(struct cdcd_pipeline *p, struct cdcd_error *err)
{
    int64_t hold_until = 0; /* monotonic ms */
    for (;;) {
        bool holding = cdcd_now_ms() < hold_until;
        int wait = holding ? MORE_WAIT_MS : all_durable(p) ? IDLE_WAIT_MS : 0;
        struct cdcd_batch *b = cdcd_queue_pop(&p->full, wait);
        if (b) {
            int64_t hold = hold_for(b);
            if (publish_batch(p, b, err) != CDCD_OK)
                return CDCD_ERROR;
            hold_until = hold ? cdcd_now_ms() + hold : 0;
            bool more = hold || cdcd_queue_len(&p->full) > 0;
            if (p->sink_ops->poll(p->sink, 0, more, false, err) == CDCD_ERROR)
                return CDCD_ERROR;
            continue;
        }
        if (cdcd_queue_drained(&p->full))
            return p->sink_ops->poll(p->sink, 0, false, true, err) == CDCD_ERROR ? CDCD_ERROR
                                                                                 : CDCD_OK;
        if (p->sink_ops->poll(p->sink, all_durable(p) || holding ? 0 : MORE_WAIT_MS, holding, false,
                              err) == CDCD_ERROR)
            return CDCD_ERROR;
    }
}

void *cdcd_publish_main(void *arg)
{
    struct cdcd_pipeline *p = arg;
    if (publish_loop(p, &p->publish_error) != CDCD_OK) {
        atomic_store(&p->publish_bad, true);
        /* Wakes a capture thread or worker that waits for a free batch. */
        cdcd_queue_close(&p->free);
    }
    return NULL;
}
