/*
 * The producer's life: begun with each session, fenced or ended, begun anew.
 *
 * Exactly once: everything since the last commit is in one transaction, and so is the position
 * record. The transaction is as large as the backlog makes it: with nothing waiting it is
 * committed at once, else when it is old or large enough. An error inside it is never repaired:
 * the session ends, the next one lets the broker settle what became of the transaction, and
 * reads from the position topic where to go on.
 *
 * At least once: idempotent, no transactions; the position follows the prefix of batches that
 * are delivered. At most once: the position goes first.
 */
#include "kafka.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>

#define BEGIN_MS        30000
#define DOWN_MS         3000 /* all brokers unreachable for so long: give up, the pipeline backs off */
#define COMMIT_SLICE_MS 200
#define POSITION_MS     200 /* at least once: apart, while more is waiting */
#define CAREFUL_MS      30000
#define GAP_START_MS    2
#define GAP_MAX_MS      8
#define GAP_MISSED_MS   18         /* librdkafka's pause is 20 */
#define GAP_BYTES       (64 << 10) /* only small transactions tell */
#define END_MS          60000
#define REASON_MS       1000
/* Nothing was confirmed for so long, and no partition is sure to have a full set to send: there
 * may be small ones that wait for more records. */
#define NUDGE_MS 20

/* ---- beginning ---- */

static bool user_has(const struct cdcd_sink *s, const char *name)
{
    for (size_t i = 0; i < s->config->properties.n; i++)
        if (strcmp(s->config->properties.items[i].key, name) == 0)
            return true;
    return false;
}

static int64_t conf_int(const rd_kafka_conf_t *conf, const char *name)
{
    char text[64];
    size_t size = sizeof text;
    if (rd_kafka_conf_get(conf, name, text, &size) != RD_KAFKA_CONF_OK)
        return 0;
    return strtoll(text, NULL, 10);
}

static enum cdcd_rc set_delivery(struct cdcd_sink *s, rd_kafka_conf_t *conf, struct cdcd_error *err)
{
    if (s->config->delivery == CDCD_EXACTLY_ONCE)
        return kafka_conf_set(&s->link, conf, "transactional.id", s->transactional_id, err);
    if (kafka_conf_set(&s->link, conf, "enable.idempotence", "true", err) != CDCD_OK)
        return CDCD_ERROR;
    /* An outage of any length only waits. */
    if (!user_has(s, "message.timeout.ms") && !user_has(s, "delivery.timeout.ms"))
        return kafka_conf_set(&s->link, conf, "message.timeout.ms", "0", err);
    return CDCD_OK;
}

static enum cdcd_rc set_number(struct cdcd_sink *s, rd_kafka_conf_t *conf, const char *name,
                               int64_t value, struct cdcd_error *err)
{
    char text[32];
    snprintf(text, sizeof text, "%lld", (long long)value);
    return kafka_conf_set(&s->link, conf, name, text, err);
}

/* Settings that follow from others. */
static enum cdcd_rc set_derived(struct cdcd_sink *s, rd_kafka_conf_t *conf, struct cdcd_error *err)
{
    /* It has to be shorter than the time that a record has. */
    if (s->tx_timeout / 2 < conf_int(conf, "linger.ms") && !user_has(s, "linger.ms") &&
        set_number(s, conf, "linger.ms", s->tx_timeout / 2, err) != CDCD_OK)
        return CDCD_ERROR;
    /* A record larger than the queue would never get into it. */
    int64_t queue = conf_int(conf, "message.max.bytes") / 1024 + 1024;
    if (queue > conf_int(conf, "queue.buffering.max.kbytes") &&
        set_number(s, conf, "queue.buffering.max.kbytes", queue, err) != CDCD_OK)
        return CDCD_ERROR;
    if (s->careful && set_number(s, conf, "batch.num.messages", 1, err) != CDCD_OK)
        return CDCD_ERROR;
    return set_number(s, conf, "batch.size", s->batch_size, err);
}

static rd_kafka_conf_t *producer_conf(struct cdcd_sink *s, struct cdcd_error *err)
{
    char text[64] = "";
    size_t size = sizeof text;
    rd_kafka_conf_t *conf = kafka_conf(&s->link, err);
    if (!conf)
        return NULL;
    rd_kafka_conf_set_dr_msg_cb(conf, kafka_delivered);
    int64_t batch = conf_int(conf, "batch.size");
    if (!s->batch_size || s->batch_size > batch)
        s->batch_size = batch;
    s->tx_timeout = conf_int(conf, "transaction.timeout.ms");
    if (rd_kafka_conf_get(conf, "compression.codec", text, &size) != RD_KAFKA_CONF_OK)
        text[0] = 0;
    s->compressed = strcmp(text, "none") != 0;
    if (set_delivery(s, conf, err) == CDCD_OK && set_derived(s, conf, err) == CDCD_OK)
        return conf;
    rd_kafka_conf_destroy(conf);
    return NULL;
}

static enum cdcd_rc init_failed(struct cdcd_sink *s, rd_kafka_error_t *e, struct cdcd_error *err)
{
    rd_kafka_resp_err_t code = rd_kafka_error_code(e);
    enum cdcd_rc rc = code == RD_KAFKA_RESP_ERR__TIMED_OUT || s->link.all_down || s->link.denied
                          ? kafka_unreachable(&s->link, err)
                          : kafka_fail(&s->link, err, code, rd_kafka_error_string(e),
                                       "beginning transactions as %s at %s", s->transactional_id,
                                       s->config->bootstrap);
    rd_kafka_error_destroy(e);
    return rc;
}

/* Fences an older instance and has the broker settle its open transaction. */
static enum cdcd_rc init_transactions(struct cdcd_sink *s, struct cdcd_error *err)
{
    int64_t start = cdcd_now_ms();
    for (;;) {
        rd_kafka_error_t *e = rd_kafka_init_transactions(s->rk, 500);
        rd_kafka_poll(s->rk, 0);
        if (!e)
            return CDCD_OK;
        int64_t waited = cdcd_now_ms() - start;
        if (!rd_kafka_error_is_retriable(e) || s->link.denied || waited > BEGIN_MS ||
            (s->link.all_down && waited > DOWN_MS))
            return init_failed(s, e, err);
        rd_kafka_error_destroy(e);
    }
}

enum cdcd_rc kafka_producer_begin(struct cdcd_sink *s, struct cdcd_error *err)
{
    rd_kafka_conf_t *conf = producer_conf(s, err);
    if (!conf)
        return CDCD_ERROR;
    s->rk = kafka_client(&s->link, RD_KAFKA_PRODUCER, conf, err);
    if (!s->rk)
        return CDCD_ERROR;
    s->generation++;
    s->restart_wanted = false;
    s->careful_since = cdcd_now_ms();
    s->last_report = s->careful_since;
    s->tx_gap = GAP_START_MS;
    s->tx_ended = 0;
    /* Well before the broker would end it. */
    s->tx_max_ms = s->config->transaction_ms;
    if (s->tx_timeout && s->tx_max_ms > s->tx_timeout / 3)
        s->tx_max_ms = s->tx_timeout / 3;
    return s->config->delivery == CDCD_EXACTLY_ONCE ? init_transactions(s, err) : CDCD_OK;
}

/* ---- ending ---- */

static void producer_destroy(struct cdcd_sink *s)
{
    kafka_topics_release(s);
    rd_kafka_destroy(s->rk);
    s->rk = NULL;
}

void kafka_producer_end(struct cdcd_sink *s)
{
    s->broken = true;
    kafka_pump_drop(s);
    if (!s->rk)
        return;
    /* So that readers need not wait for the broker to time the transaction out. */
    if (s->tx != KAFKA_TX_NONE && !s->link.all_down && !rd_kafka_fatal_error(s->rk, NULL, 0)) {
        rd_kafka_error_t *e = rd_kafka_abort_transaction(s->rk, 2000);
        s->counters.aborts++;
        if (e)
            cdcd_debug("kafka", "giving up the transaction: %s", rd_kafka_error_string(e));
        if (e)
            rd_kafka_error_destroy(e);
    }
    s->tx = KAFKA_TX_NONE;
    rd_kafka_purge(s->rk, RD_KAFKA_PURGE_F_QUEUE | RD_KAFKA_PURGE_F_INFLIGHT);
    int64_t give_up = cdcd_now_ms() + END_MS;
    while (s->in_flight > 0 && cdcd_now_ms() < give_up)
        rd_kafka_flush(s->rk, 100);
    /* Every record has its report after a purge; a batch may not go back before. */
    assert(s->in_flight == 0);
    assert(s->in_flight_bytes == 0);
    producer_destroy(s);
}

enum cdcd_rc kafka_producer_restart(struct cdcd_sink *s, struct cdcd_error *err)
{
    assert(s->tx == KAFKA_TX_NONE && s->in_flight == 0);
    producer_destroy(s);
    if (kafka_producer_begin(s, err) != CDCD_OK)
        return CDCD_ERROR;
    return kafka_topics_again(s, err);
}

/* ---- errors and fencing ---- */

/* The broker calls a producer fenced also when the producer slept so long that its transaction
 * timed out. The position topic tells the two apart: every instance writes its name there when
 * it begins. */
static enum cdcd_rc fenced(struct cdcd_sink *s, struct cdcd_error *err)
{
    struct cdcd_buf state;
    struct kafka_held held = {0};
    const char *instance = held.instance;
    bool slept = s->tx_timeout && cdcd_now_ms() - s->last_report > s->tx_timeout / 2;
    enum cdcd_rc rc = CDCD_OK;
    cdcd_buf_init(&state, 0);
    for (int attempt = 0; rc == CDCD_OK && attempt < (slept ? 1 : 6); attempt++) {
        if (attempt)
            rd_kafka_poll(s->rk, 500);
        rc = kafka_position_read(s, &state, &held, err);
        if (*instance && strcmp(instance, s->instance) != 0)
            break;
    }
    cdcd_buf_free(&state);
    if (rc != CDCD_OK)
        return rc;
    if (*instance && strcmp(instance, s->instance) != 0)
        return cdcd_error_set(err, CDCD_ERR_LOSS,
                              "another instance of pipeline %s took over (transactional.id %s at "
                              "%s); run only one, or give this one another name",
                              s->env->pipeline, s->transactional_id, s->config->bootstrap);
    return cdcd_error_set(err, CDCD_ERR_RETRY,
                          "the transaction timed out at the broker (transaction.timeout.ms %lld) "
                          "and is repeated",
                          (long long)s->tx_timeout);
}

static bool is_fencing(rd_kafka_resp_err_t code)
{
    return code == RD_KAFKA_RESP_ERR__FENCED || code == RD_KAFKA_RESP_ERR_PRODUCER_FENCED ||
           code == RD_KAFKA_RESP_ERR_INVALID_PRODUCER_EPOCH;
}

/* Records came back unsent: the report that says why may still be on its way. */
static void await_reason(struct cdcd_sink *s)
{
    int64_t give_up = cdcd_now_ms() + REASON_MS;
    while (!s->fault_set && s->in_flight > 0 && cdcd_now_ms() < give_up)
        rd_kafka_poll(s->rk, 10);
}

static enum cdcd_rc fault(struct cdcd_sink *s, struct cdcd_error *err)
{
    if (!s->fault_set)
        return cdcd_error_set(err, CDCD_ERR_RETRY,
                              "the transaction was given up by the Kafka client");
    if (s->fenced)
        return fenced(s, err);
    if (s->fault_refusal)
        return kafka_refusal_error(s, err);
    *err = s->fault;
    return CDCD_ERROR;
}

enum cdcd_rc kafka_error(struct cdcd_sink *s, rd_kafka_error_t *e, const char *doing,
                         struct cdcd_error *err)
{
    rd_kafka_resp_err_t code = rd_kafka_error_code(e), fatal;
    char text[512];
    enum cdcd_rc rc;
    rd_kafka_poll(s->rk, 0);
    if (s->given_up)
        await_reason(s);
    fatal = rd_kafka_fatal_error(s->rk, text, sizeof text);
    if (is_fencing(code) || is_fencing(fatal))
        rc = fenced(s, err);
    else if (s->fault_set)
        rc = fault(s, err); /* says more than the error that follows from it */
    else if (fatal)
        rc = kafka_fail(&s->link, err, fatal, text, "%s", doing);
    else
        rc = kafka_fail(&s->link, err, code, rd_kafka_error_string(e), "%s", doing);
    rd_kafka_error_destroy(e);
    return rc;
}

enum cdcd_rc kafka_serve(struct cdcd_sink *s, int wait_ms, bool now, struct cdcd_error *err)
{
    uint64_t before = s->in_flight;
    char text[512];
    if (s->in_flight > 0 && now && s->in_flight_bytes <= s->batch_size)
        rd_kafka_flush(s->rk, wait_ms > 0 ? wait_ms : 1);
    else if (s->in_flight > 0 && !s->busy_topics && cdcd_now_ms() - s->last_report > NUDGE_MS)
        rd_kafka_flush(s->rk, 1);
    else
        rd_kafka_poll(s->rk, wait_ms);
    if (s->in_flight < before || (!s->in_flight && s->tx != KAFKA_TX_COMMITTING)) {
        s->last_report = cdcd_now_ms();
        s->link.all_down = false;
    }
    if (s->given_up)
        await_reason(s);
    rd_kafka_resp_err_t code = rd_kafka_fatal_error(s->rk, text, sizeof text);
    if (code && is_fencing(code))
        return fenced(s, err);
    if (s->fault_set || (s->given_up && !code))
        return fault(s, err);
    if (code)
        return kafka_fail(&s->link, err, code, text, "the producer cannot go on");
    return CDCD_OK;
}

/* ---- exactly once ---- */

static enum cdcd_rc open_for_position(struct cdcd_sink *s, struct cdcd_error *err)
{
    rd_kafka_error_t *e = rd_kafka_begin_transaction(s->rk);
    if (e)
        return kafka_error(s, e, "beginning a transaction", err);
    s->tx = KAFKA_TX_OPEN;
    s->tx_position = false;
    return CDCD_OK;
}

/* The broker ends a transaction a little after it said so, and refuses the next one's first
 * request until then; librdkafka tries again after 20 ms. So a small gap between transactions
 * makes them faster. How large, shows in how long first reports take. */
int kafka_gap(const struct cdcd_sink *s)
{
    if (s->tx != KAFKA_TX_NONE || !s->tx_gap)
        return 0;
    int64_t left = s->tx_ended + s->tx_gap - cdcd_now_ms();
    return left > 0 ? (int)left : 0;
}

static void learn_gap(struct cdcd_sink *s)
{
    bool small = s->tx_bytes < GAP_BYTES && s->tx_first_report;
    if (!small || s->tx_since - s->tx_ended > 3 * GAP_MAX_MS)
        return;
    if (s->tx_first_report - s->tx_since >= GAP_MISSED_MS) {
        s->tx_gap = s->tx_gap < GAP_MAX_MS ? s->tx_gap + 1 : s->tx_gap;
        s->tx_smooth = 0;
    } else if (++s->tx_smooth >= 100) {
        s->tx_gap = s->tx_gap > 0 ? s->tx_gap - 1 : 0;
        s->tx_smooth = 0;
    }
}

static void committed(struct cdcd_sink *s)
{
    learn_gap(s);
    s->tx_ended = cdcd_now_ms();
    s->tx = KAFKA_TX_NONE;
    s->tx_closing = s->tx_position = false;
    s->tx_bytes = 0;
    s->last_report = cdcd_now_ms();
    s->link.all_down = false;
    s->counters.commits++;
    kafka_durable(s, s->commit_seq);
}

/* One step towards the commit. The outcome is known only when the call says so: until then it
 * is repeated, however long that takes. */
static enum cdcd_rc commit_step(struct cdcd_sink *s, struct cdcd_error *err)
{
    if (s->tx == KAFKA_TX_NONE && open_for_position(s, err) != CDCD_OK)
        return CDCD_ERROR;
    if (s->tx == KAFKA_TX_OPEN && s->state_new && !s->tx_position) {
        enum cdcd_rc rc = kafka_notes_produce(s, err);
        if (rc == CDCD_OK)
            rc = kafka_position_produce(s, err);
        if (rc != CDCD_OK)
            return rc == CDCD_AGAIN ? kafka_serve(s, 5, false, err) : CDCD_ERROR;
        s->notes.sending = false;
        s->tx_position = true;
        s->state_new = false;
    }
    if (s->tx == KAFKA_TX_OPEN) {
        s->tx = KAFKA_TX_COMMITTING;
        s->commit_seq = s->submitted;
    }
    rd_kafka_error_t *e = rd_kafka_commit_transaction(s->rk, COMMIT_SLICE_MS);
    if (!e) {
        committed(s);
        return CDCD_OK;
    }
    if (!rd_kafka_error_is_retriable(e) || s->fault_set)
        return kafka_error(s, e, "committing the transaction", err);
    rd_kafka_error_destroy(e);
    return kafka_serve(s, 0, false, err);
}

/* Between transactions: settings that need a new producer, the end of the careful mode. */
static enum cdcd_rc between(struct cdcd_sink *s, struct cdcd_error *err)
{
    if (s->careful && cdcd_now_ms() - s->careful_since > CAREFUL_MS && !s->nrefusals) {
        s->careful = false;
        s->restart_wanted = true;
    }
    if (!s->restart_wanted || s->in_flight > 0)
        return CDCD_OK;
    return kafka_producer_restart(s, err);
}

static enum cdcd_rc settle_exactly(struct cdcd_sink *s, bool more, bool flush,
                                   struct cdcd_error *err)
{
    if (s->tx == KAFKA_TX_COMMITTING)
        return commit_step(s, err);
    if (s->begun || kafka_gap(s))
        return CDCD_OK; /* a transaction ends between batches */
    if (s->tx == KAFKA_TX_NONE && !s->state_new) {
        kafka_durable(s, s->submitted);
        return between(s, err);
    }
    /* A source that has nothing more may be waiting for the batches that are in flight. They
     * must be delivered before a commit anyway. */
    bool waiting = more || s->first || s->in_flight_bytes > s->batch_size;
    bool due = flush || !waiting || s->tx_closing || cdcd_now_ms() - s->tx_since >= s->tx_max_ms ||
               s->tx_bytes >= (size_t)s->config->transaction_bytes;
    if (!due)
        return CDCD_OK;
    /* With more to come, all but the last set drains while the pipeline goes on encoding. */
    s->tx_closing = true;
    if (!flush && s->in_flight_bytes > s->batch_size)
        return CDCD_OK;
    if (commit_step(s, err) != CDCD_OK)
        return CDCD_ERROR;
    return s->tx == KAFKA_TX_NONE ? between(s, err) : CDCD_OK;
}

enum cdcd_rc kafka_claim(struct cdcd_sink *s, struct cdcd_error *err)
{
    int64_t give_up = cdcd_now_ms() + BEGIN_MS;
    s->state_new = true;
    do {
        if (commit_step(s, err) != CDCD_OK)
            return CDCD_ERROR;
    } while (s->tx != KAFKA_TX_NONE && cdcd_now_ms() < give_up);
    return s->tx == KAFKA_TX_NONE ? CDCD_OK : kafka_unreachable(&s->link, err);
}

/* ---- at least once, at most once ---- */

/* Its notes go first. Until they are confirmed the state stays as it is, and this is called
 * again. */
static enum cdcd_rc send_position(struct cdcd_sink *s, uint64_t seq, struct cdcd_error *err)
{
    s->position_seq = seq;
    enum cdcd_rc rc = kafka_notes_produce(s, err);
    if (rc == CDCD_OK)
        rc = kafka_position_produce(s, err);
    if (rc == CDCD_AGAIN)
        return CDCD_OK;
    if (rc != CDCD_OK)
        return rc;
    s->notes.sending = false;
    s->position_in_flight = true;
    s->position_at = cdcd_now_ms();
    s->state_new = false;
    return CDCD_OK;
}

static enum cdcd_rc settle_least(struct cdcd_sink *s, bool more, bool flush, struct cdcd_error *err)
{
    uint64_t seq = s->tracker.prefix;
    if (s->notes.sending)
        return send_position(s, s->position_seq, err);
    kafka_marks_take(s, seq);
    if (s->position_in_flight)
        return CDCD_OK;
    if (!s->state_new) {
        kafka_durable(s, seq);
        return between(s, err);
    }
    if (!flush && more && cdcd_now_ms() - s->position_at < POSITION_MS)
        return CDCD_OK;
    return send_position(s, seq, err);
}

static enum cdcd_rc settle_most(struct cdcd_sink *s, struct cdcd_error *err)
{
    if (s->notes.sending)
        return send_position(s, s->position_seq, err);
    if (s->position_in_flight || s->gate == s->taken)
        return CDCD_OK;
    kafka_marks_take(s, s->taken);
    if (s->state_new)
        return send_position(s, s->taken, err);
    s->gate = s->taken;
    kafka_durable(s, s->taken);
    return CDCD_OK;
}

enum cdcd_rc kafka_settle(struct cdcd_sink *s, bool more, bool flush, struct cdcd_error *err)
{
    switch (s->config->delivery) {
    case CDCD_EXACTLY_ONCE: return settle_exactly(s, more, flush, err);
    case CDCD_AT_LEAST_ONCE: return settle_least(s, more, flush, err);
    default: return settle_most(s, err);
    }
}
