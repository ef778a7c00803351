/*
 * Batches go in at one end: their records are produced with the value by pointer. Delivery
 * reports come out at the other, and a batch is given back after its last one. All of this
 * runs on the publish thread; librdkafka calls kafka_delivered only from within a call of ours.
 */
#include "kafka.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>

void kafka_durable(struct cdcd_sink *s, uint64_t seq)
{
    if (seq <= s->durable)
        return;
    s->durable = seq;
    kafka_refusals_settle(s, seq);
    s->env->durable(s->env->ctx, seq);
}

/* ---- states that wait for their batches (not for exactly once) ---- */

void kafka_mark(struct cdcd_sink *s, const struct cdcd_batch *b)
{
    if (!b->state.ptr)
        return;
    if (s->nmarks == s->marks_cap) {
        s->marks_cap = s->marks_cap ? s->marks_cap * 2 : 64;
        s->marks = cdcd_xrealloc(s->marks, s->marks_cap * sizeof *s->marks);
    }
    s->marks[s->nmarks++] = (struct kafka_state_mark){
        .seq = b->seq, .state = {cdcd_xstrndup(b->state.ptr, b->state.len), b->state.len}};
    kafka_notes_change(&s->marks[s->nmarks - 1].notes, b);
}

void kafka_marks_take(struct cdcd_sink *s, uint64_t seq)
{
    size_t n = 0;
    while (n < s->nmarks && s->marks[n].seq <= seq) {
        cdcd_buf_clear(&s->state);
        cdcd_buf_add(&s->state, s->marks[n].state.ptr, s->marks[n].state.len);
        s->state_new = true;
        if (s->marks[n].notes)
            kafka_notes_add(&s->notes, s->marks[n].notes);
        cdcd_notes_free(s->marks[n].notes);
        free((char *)(uintptr_t)s->marks[n++].state.ptr);
    }
    if (n)
        memmove(s->marks, s->marks + n, (s->nmarks - n) * sizeof *s->marks);
    s->nmarks -= n;
}

/* ---- delivery reports ---- */

static void release(struct cdcd_sink *s, struct cdcd_batch *b)
{
    assert(b->outstanding > 0);
    if (--b->outstanding > 0)
        return;
    if (s->config->delivery == CDCD_AT_LEAST_ONCE && !s->fault_set && !s->given_up && !s->broken)
        cdcd_tracker_done(&s->tracker, b->seq);
    s->env->batch_done(s->env->ctx, b);
}

void kafka_in_flight(struct cdcd_sink *s, struct kafka_topic *kt, int64_t bytes)
{
    kt->in_flight_bytes += bytes;
    s->in_flight_bytes += bytes;
    bool busy = kt->in_flight_bytes > s->batch_size * kt->partitions;
    if (busy == kt->busy)
        return;
    kt->busy = busy;
    s->busy_topics += busy ? 1 : -1u;
}

void kafka_delivered(rd_kafka_t *rk, const rd_kafka_message_t *m, void *opaque)
{
    struct cdcd_sink *s = opaque;
    (void)rk;
    s->in_flight--;
    kafka_in_flight(s, rd_kafka_topic_opaque(m->rkt), -(int64_t)(m->len + m->key_len));
    if (s->tx != KAFKA_TX_NONE && !s->tx_first_report)
        s->tx_first_report = cdcd_now_ms();
    if (m->err)
        kafka_refused(s, m);
    if (m->_private == &s->notes) {
        s->notes.in_flight--;
        return;
    }
    if (m->_private != s) {
        release(s, m->_private);
        return;
    }
    s->position_in_flight = false;
    if (!m->err && !s->broken && s->config->delivery != CDCD_EXACTLY_ONCE) {
        s->gate = s->position_seq;
        kafka_durable(s, s->position_seq);
    }
}

/* ---- producing ---- */

static rd_kafka_vu_t *vu_room(struct cdcd_sink *s, size_t n)
{
    if (n > s->vu_cap) {
        s->vu_cap = n + 16;
        s->vu = cdcd_xrealloc(s->vu, s->vu_cap * sizeof *s->vu);
    }
    return s->vu;
}

static void vu_header(rd_kafka_vu_t *vu, const char *name, const void *value, size_t len)
{
    *vu = (rd_kafka_vu_t){.vtype = RD_KAFKA_VTYPE_HEADER, .u.header = {name, value, (ssize_t)len}};
}

/* Common arguments; returns their number. The value stays the batch's. */
static size_t vu_record(struct cdcd_sink *s, rd_kafka_topic_t *rkt, struct cdcd_batch *b,
                        const struct cdcd_record *r, struct cdcd_slice value, size_t more)
{
    rd_kafka_vu_t *vu = vu_room(s, 5 + r->nheaders + more);
    size_t n = 5;
    vu[0].vtype = RD_KAFKA_VTYPE_RKT;
    vu[0].u.rkt = rkt;
    vu[1].vtype = RD_KAFKA_VTYPE_KEY;
    vu[1].u.mem.ptr = (void *)(uintptr_t)r->key.ptr;
    vu[1].u.mem.size = r->key.len;
    vu[2].vtype = RD_KAFKA_VTYPE_VALUE;
    vu[2].u.mem.ptr = (void *)(uintptr_t)value.ptr;
    vu[2].u.mem.size = value.len;
    vu[3].vtype = RD_KAFKA_VTYPE_OPAQUE;
    vu[3].u.ptr = b;
    vu[4].vtype = RD_KAFKA_VTYPE_TIMESTAMP;
    vu[4].u.i64 = r->timestamp_ms;
    /* Header names are NUL-terminated constants of the encoder. */
    for (uint32_t i = 0; i < r->nheaders; i++)
        vu_header(&vu[n++], r->headers[i].name.ptr, r->headers[i].value.ptr,
                  r->headers[i].value.len);
    return n;
}

static rd_kafka_error_t *send_record(struct cdcd_sink *s, struct kafka_topic *kt,
                                     struct cdcd_batch *b, const struct cdcd_record *r)
{
    size_t n = vu_record(s, kt->rkt, b, r, r->value, 0);
    return rd_kafka_produceva(s->rk, s->vu, n);
}

/* The record with its headers, and what happened to it; with_value unless that is too large. */
static rd_kafka_error_t *send_dead_letter(struct cdcd_sink *s, struct kafka_topic *kt,
                                          struct cdcd_batch *b, const struct cdcd_record *r,
                                          rd_kafka_resp_err_t code, bool with_value)
{
    char bytes[32];
    int len = snprintf(bytes, sizeof bytes, "%zu", r->value.len);
    const char *why = rd_kafka_err2str(code);
    struct cdcd_slice value = r->value;
    if (!with_value)
        value = (struct cdcd_slice){NULL, 0};
    size_t n = vu_record(s, s->dead_letter.rkt, b, r, value, 3);
    if (code == RD_KAFKA_RESP_ERR_INVALID_TIMESTAMP)
        s->vu[4].u.i64 = cdcd_wallclock_us() / 1000;
    vu_header(&s->vu[n++], "cdcd.error.topic", kt->name, strlen(kt->name));
    vu_header(&s->vu[n++], "cdcd.error.reason", why, strlen(why));
    vu_header(&s->vu[n++], "cdcd.error.value.bytes", bytes, (size_t)len);
    return rd_kafka_produceva(s->rk, s->vu, n);
}

static enum cdcd_rc begin_transaction(struct cdcd_sink *s, struct cdcd_error *err)
{
    rd_kafka_error_t *e = rd_kafka_begin_transaction(s->rk);
    if (e)
        return kafka_error(s, e, "beginning a transaction", err);
    s->tx = KAFKA_TX_OPEN;
    s->tx_closing = s->tx_position = false;
    s->tx_since = cdcd_now_ms();
    s->tx_first_report = 0;
    s->tx_bytes = 0;
    return CDCD_OK;
}

/* One record, by what is known of it. AGAIN: the queue is full. */
static enum cdcd_rc produce(struct cdcd_sink *s, struct kafka_topic *kt, struct cdcd_batch *b,
                            const struct cdcd_record *r, struct cdcd_error *err)
{
    rd_kafka_resp_err_t code = RD_KAFKA_RESP_ERR_NO_ERROR;
    enum kafka_verdict verdict = kafka_judge(s, r, kt, b->seq, &code, err);
    bool with_value = true;
    while (verdict == KAFKA_SEND || verdict == KAFKA_SEND_DEAD_LETTER) {
        if (verdict == KAFKA_SEND_DEAD_LETTER)
            with_value = with_value && kafka_dead_letter_value(s, r, b->seq);
        rd_kafka_error_t *e = verdict == KAFKA_SEND
                                  ? send_record(s, kt, b, r)
                                  : send_dead_letter(s, kt, b, r, code, with_value);
        if (!e) {
            b->outstanding++;
            s->in_flight++;
            kafka_in_flight(s, verdict == KAFKA_SEND ? kt : &s->dead_letter,
                            (int64_t)(s->vu[1].u.mem.size + s->vu[2].u.mem.size));
            s->counters.records++;
            return CDCD_OK;
        }
        rd_kafka_resp_err_t why = rd_kafka_error_code(e);
        bool dead = verdict == KAFKA_SEND_DEAD_LETTER;
        if (why != RD_KAFKA_RESP_ERR__QUEUE_FULL &&
            (kafka_class(why) != CDCD_ERR_DATA || (dead && !with_value)))
            return kafka_error(s, e, kt->name, err);
        rd_kafka_error_destroy(e);
        if (why == RD_KAFKA_RESP_ERR__QUEUE_FULL)
            return CDCD_AGAIN;
        if (dead) {
            with_value = false;
            continue;
        }
        code = why;
        verdict = kafka_judge_local(s, r, kt, b->seq, code, err);
    }
    return verdict == KAFKA_DROP ? CDCD_OK : CDCD_ERROR;
}

/* Topics of these records, all at once: there may be many new ones. */
static enum cdcd_rc prepare_from(struct cdcd_sink *s, const struct cdcd_record *from,
                                 struct cdcd_error *err)
{
    size_t n = 0, k = 0;
    for (const struct cdcd_record *r = from; r; r = r->next)
        n++;
    struct cdcd_topic **topics = cdcd_xcalloc(n, sizeof(struct cdcd_topic *));
    for (const struct cdcd_record *r = from; r; r = r->next)
        topics[k++] = r->topic;
    enum cdcd_rc rc = kafka_topics_prepare(s, topics, k, err);
    free(topics);
    return rc;
}

static bool topic_ready(const struct cdcd_sink *s, const struct cdcd_topic *t)
{
    const struct kafka_topic *kt = t->sink;
    return kt && kt->generation == s->generation;
}

static enum cdcd_rc produce_batch(struct cdcd_sink *s, struct cdcd_batch *b, struct cdcd_error *err)
{
    for (; s->cursor; s->cursor = s->cursor->next) {
        const struct cdcd_record *r = s->cursor;
        if (!topic_ready(s, r->topic) && prepare_from(s, r, err) != CDCD_OK)
            return CDCD_ERROR;
        if (s->restart_wanted && s->tx == KAFKA_TX_NONE && s->in_flight == 0 &&
            kafka_producer_restart(s, err) != CDCD_OK)
            return CDCD_ERROR;
        if (s->config->delivery == CDCD_EXACTLY_ONCE && s->tx == KAFKA_TX_NONE &&
            begin_transaction(s, err) != CDCD_OK)
            return CDCD_ERROR;
        enum cdcd_rc rc = produce(s, r->topic->sink, b, r, err);
        if (rc != CDCD_OK)
            return rc;
    }
    return CDCD_OK;
}

static void begin_batch(struct cdcd_sink *s, struct cdcd_batch *b)
{
    s->begun = true;
    s->cursor = b->records;
    b->outstanding = 1; /* until the last record is produced */
    if (s->config->delivery == CDCD_AT_LEAST_ONCE)
        cdcd_tracker_begin(&s->tracker, b->seq);
}

static void end_batch(struct cdcd_sink *s, struct cdcd_batch *b)
{
    s->begun = false;
    s->first = b->next;
    if (!s->first)
        s->last = NULL;
    b->next = NULL;
    s->submitted = b->seq;
    s->tx_bytes += b->bytes;
    s->counters.bytes += b->bytes;
    if (s->config->delivery == CDCD_EXACTLY_ONCE && b->state.ptr) {
        cdcd_buf_clear(&s->state);
        cdcd_buf_add(&s->state, b->state.ptr, b->state.len);
        kafka_notes_change(&s->notes.changed, b);
        if (s->tx == KAFKA_TX_NONE && !s->state_new)
            s->tx_since = cdcd_now_ms();
        s->state_new = true;
    }
    release(s, b);
}

static bool may_produce(const struct cdcd_sink *s, const struct cdcd_batch *b)
{
    switch (s->config->delivery) {
    case CDCD_EXACTLY_ONCE:
        return s->tx != KAFKA_TX_COMMITTING && !s->tx_closing && (s->begun || !kafka_gap(s));
    case CDCD_AT_MOST_ONCE: return b->seq <= s->gate;
    default: return true;
    }
}

enum cdcd_rc kafka_pump(struct cdcd_sink *s, struct cdcd_error *err)
{
    while (s->first && may_produce(s, s->first)) {
        struct cdcd_batch *b = s->first;
        if (!s->begun)
            begin_batch(s, b);
        enum cdcd_rc rc = produce_batch(s, b, err);
        if (rc != CDCD_OK)
            return rc == CDCD_AGAIN ? CDCD_OK : CDCD_ERROR;
        end_batch(s, b);
    }
    return CDCD_OK;
}

void kafka_pump_drop(struct cdcd_sink *s)
{
    while (s->first) {
        struct cdcd_batch *b = s->first;
        s->first = b->next;
        b->next = NULL;
        if (s->begun)
            release(s, b);
        else
            s->env->batch_done(s->env->ctx, b);
        s->begun = false;
    }
    s->last = NULL;
    s->cursor = NULL;
}
