/*
 * Lanes: records become items, items stand in queues, queues become requests.
 *
 * Everything of an item lives in the arena of its batch, and a batch is given back when all its
 * items are settled, in order: the batches that go round bound the memory, and a server that does
 * not keep up is backpressure.
 */
#include "sink.h"

#include <assert.h>
#include <stdlib.h>

/* Of a body that was larger than usual, no more than this is kept for the next one. */
#define BODY_KEEP ((size_t)4 << 20)

void es_bulk_init(struct cdcd_sink *s)
{
    s->nlanes = s->active = (unsigned)s->config->bulk_requests;
    s->bulk_bytes = (size_t)s->config->bulk_bytes;
    s->lanes = cdcd_xcalloc(s->nlanes, sizeof *s->lanes);
    for (unsigned i = 0; i < s->nlanes; i++)
        cdcd_buf_init(&s->lanes[i].body, 0);
}

void es_bulk_free(struct cdcd_sink *s)
{
    for (unsigned i = 0; i < s->nlanes; i++) {
        cdcd_buf_free(&s->lanes[i].body);
        free(s->lanes[i].items);
    }
    free(s->lanes);
    free(s->table);
}

void es_bulk_reset(struct cdcd_sink *s)
{
    es_http_abort(s->http);
    for (unsigned i = 0; i < s->nlanes; i++) {
        struct es_lane *lane = &s->lanes[i];
        lane->queue = (struct es_queue){0};
        lane->busy = false;
        lane->nitems = lane->most_items = 0;
        lane->not_before = 0;
        lane->failures = 0;
    }
    s->busy = 0;
    s->open = 0;
    while (s->first) {
        struct cdcd_batch *b = s->first;
        s->first = b->next;
        b->next = NULL;
        s->env->batch_done(s->env->ctx, b);
    }
    s->last = s->converting = NULL;
    s->cursor = NULL;
    s->begun = false;
    s->held = NULL;
    s->held_until = 0;
    s->held_tries = 0;
    s->doubts = NULL;
    s->ndoubts = 0;
    s->moved = NULL;
    s->moved_whole = NULL;
    s->taken = s->settled = s->durable = 0;
}

void es_bulk_add(struct cdcd_sink *s, struct cdcd_batch *b)
{
    b->next = NULL;
    b->outstanding = 0;
    s->doubts_since = cdcd_now_ms();
    *(s->last ? &s->last->next : &s->first) = b;
    s->last = b;
    s->taken = b->seq;
    if (!s->converting)
        s->converting = b;
}

/* ---- queues ---- */

static void append(struct cdcd_sink *s, struct es_item *item)
{
    struct es_lane *lane = &s->lanes[item->lane];
    item->next = NULL;
    if (!lane->queue.first)
        lane->oldest = cdcd_now_ms();
    *(lane->queue.last ? &lane->queue.last->next : &lane->queue.first) = item;
    lane->queue.last = item;
    lane->queue.n++;
    lane->queue.bytes += es_item_bytes(item);
}

void es_again(struct cdcd_sink *s, struct es_item *item)
{
    struct es_queue *q = &s->lanes[item->lane].queue;
    item->next = q->first;
    if (!q->first)
        q->last = item;
    q->first = item;
    q->n++;
    q->bytes += es_item_bytes(item);
}

void es_settle(struct cdcd_sink *s, struct es_item *item)
{
    for (; item; item = item->older) {
        assert(item->batch->outstanding > 0 && s->open > 0);
        item->batch->outstanding--;
        s->open--;
    }
    s->last_progress = cdcd_now_ms();
}

/* ---- records ---- */

static void add_item(struct cdcd_sink *s, struct es_item *item)
{
    item->hash = es_item_hash(item->action.index, item->action.id);
    item->lane = (unsigned)((item->hash >> 32) % s->nlanes);
    item->batch->outstanding++;
    s->open++;
    append(s, item);
}

static void refuse_later(struct es_item *item, struct cdcd_error *err)
{
    item->refused = cdcd_arena_dup(&item->batch->arena, err->text, strlen(err->text));
    item->action = (struct es_action){0};
    *err = (struct cdcd_error){0};
}

/* The record is none that can be indexed. */
static enum cdcd_rc refuse_record(struct cdcd_sink *s, struct es_item *item, struct cdcd_error *err)
{
    enum es_fate fate;
    const char *why = item->refused;
    if (es_refuse(s, item, "bad_record", why, &fate, err) != CDCD_OK) {
        if (err->class == CDCD_ERR_DATA)
            cdcd_error_set(err, CDCD_ERR_DATA, "%s", why); /* it names the place already */
        return CDCD_ERROR;
    }
    if (fate == ES_FATE_SEND)
        add_item(s, item);
    return CDCD_OK;
}

static enum cdcd_rc truncate_now(struct cdcd_sink *s, const struct es_item *item,
                                 struct cdcd_error *err)
{
    if (s->open > 0)
        return CDCD_AGAIN;
    if (es_truncate(s, &item->action, item->record, err) != CDCD_OK)
        return CDCD_ERROR;
    s->last_progress = cdcd_now_ms();
    return CDCD_OK;
}

/* What is left to do with an item that is not in a queue yet. Each step may be taken again. */
static enum cdcd_rc place_item(struct cdcd_sink *s, struct es_item *item, struct cdcd_error *err)
{
    struct es_action *a = &item->action;
    if (!item->refused && !item->ready) {
        if (es_index_ready(s, a->index, a->shape, err) != CDCD_OK) {
            if (err->class != CDCD_ERR_DATA)
                return CDCD_ERROR;
            refuse_later(item, err);
        } else {
            a->index = es_target(s, a->index);
            item->ready = true;
        }
    }
    if (item->refused)
        return refuse_record(s, item, err);
    if (a->kind == ES_EMPTY)
        return truncate_now(s, item, err);
    if (a->kind == ES_DELETE && a->moves_to.ptr) {
        enum cdcd_rc rc = es_moved_keep(s, item, err);
        if (rc != CDCD_OK)
            return rc;
    }
    if (a->kind == ES_INDEX && a->moved_from.ptr)
        es_moved_note(s, item);
    add_item(s, item);
    return CDCD_OK;
}

/* AGAIN: it has to wait, for those before it or for the server. */
static enum cdcd_rc take_record(struct cdcd_sink *s, struct cdcd_batch *b, struct cdcd_record *r,
                                struct cdcd_error *err)
{
    if (!s->held) {
        struct es_item *item = cdcd_arena_alloc(&b->arena, sizeof *item);
        *item = (struct es_item){.batch = b, .record = r};
        if (es_convert(s->converter, r, &b->arena, &item->action, err) != CDCD_OK) {
            if (err->class != CDCD_ERR_DATA)
                return CDCD_ERROR;
            refuse_later(item, err);
        } else if (item->action.kind == ES_NOTHING) {
            return CDCD_OK;
        }
        s->held = item;
    } else if (cdcd_now_ms() < s->held_until) {
        return CDCD_AGAIN;
    }
    enum cdcd_rc rc = place_item(s, s->held, err);
    if (rc == CDCD_ERROR && err->class == CDCD_ERR_RETRY) {
        es_complain(s, err);
        s->held_until = cdcd_now_ms() + es_backoff(s, ++s->held_tries);
        return CDCD_AGAIN;
    }
    if (rc != CDCD_OK)
        return rc;
    s->held = NULL;
    s->held_until = 0;
    s->held_tries = 0;
    return CDCD_OK;
}

static enum cdcd_rc convert(struct cdcd_sink *s, struct cdcd_error *err)
{
    while (s->converting) {
        struct cdcd_batch *b = s->converting;
        if (!s->begun)
            s->cursor = b->records;
        s->begun = true;
        for (; s->cursor; s->cursor = s->cursor->next) {
            enum cdcd_rc rc = take_record(s, b, s->cursor, err);
            if (rc != CDCD_OK)
                return rc == CDCD_AGAIN ? CDCD_OK : rc;
        }
        s->begun = false;
        s->converting = b->next;
    }
    return CDCD_OK;
}

/* ---- requests ---- */

static bool due(const struct cdcd_sink *s, const struct es_lane *lane, bool now, int64_t ms)
{
    if (lane->busy || !lane->queue.n || ms < lane->not_before)
        return false;
    return now || s->held || lane->queue.bytes >= es_body_most(s) ||
           ms - lane->oldest >= s->config->bulk_delay_ms;
}

static enum cdcd_rc start(struct cdcd_sink *s, unsigned i, struct cdcd_error *err)
{
    struct es_lane *lane = &s->lanes[i];
    if (es_body_make(s, lane, err) != CDCD_OK) {
        if (err->class != CDCD_ERR_RETRY)
            return CDCD_ERROR;
        es_put_off(s, lane, err);
        return CDCD_OK;
    }
    lane->oldest = cdcd_now_ms();
    if (lane->nitems == 0)
        return CDCD_OK;
    lane->brief = lane->details == 0;
    lane->details -= lane->details > 0;
    struct es_request q = {
        .method = "POST",
        .path = es_body_path(s, lane),
        .content_type = "application/x-ndjson",
        .body = cdcd_buf_slice(&lane->body),
    };
    enum cdcd_rc rc = es_http_begin(s->http, i, &q, err);
    free(q.path);
    if (rc != CDCD_OK)
        return rc;
    lane->busy = true;
    s->busy++;
    s->counters.requests++;
    s->counters.bytes += lane->body.len;
    return CDCD_OK;
}

static enum cdcd_rc start_lanes(struct cdcd_sink *s, bool now, struct cdcd_error *err)
{
    int64_t ms = cdcd_now_ms();
    for (unsigned n = 0; n < s->nlanes && s->busy < s->active; n++) {
        /* Whoever waits longest is not the last one every time. */
        unsigned i = (s->turn + n) % s->nlanes;
        if (!due(s, &s->lanes[i], now, ms))
            continue;
        if (s->lanes[i].body.cap > BODY_KEEP && s->lanes[i].body.cap > 2 * s->bulk_bytes)
            cdcd_buf_free(&s->lanes[i].body);
        if (start(s, i, err) != CDCD_OK)
            return CDCD_ERROR;
        if (s->busy >= s->active)
            s->turn = i + 1;
    }
    return CDCD_OK;
}

void es_durable(struct cdcd_sink *s)
{
    if (s->durable == s->settled)
        return;
    s->durable = s->settled;
    s->env->durable(s->env->ctx, s->durable);
}

void es_give_back(struct cdcd_sink *s)
{
    while (s->first && s->first != s->converting && s->first->outstanding == 0) {
        struct cdcd_batch *b = s->first;
        s->first = b->next;
        if (!s->first)
            s->last = NULL;
        es_moved_drop(s, b);
        es_state_take(s, b);
        s->settled = b->seq;
        s->last_progress = cdcd_now_ms();
        b->next = NULL;
        s->env->batch_done(s->env->ctx, b);
    }
    if (!es_state_dirty(s))
        es_durable(s);
}

enum cdcd_rc es_bulk_pump(struct cdcd_sink *s, bool now, struct cdcd_error *err)
{
    if (convert(s, err) != CDCD_OK)
        return CDCD_ERROR;
    es_doubts_serve(s);
    if (start_lanes(s, now, err) != CDCD_OK)
        return CDCD_ERROR;
    es_give_back(s);
    return CDCD_OK;
}
