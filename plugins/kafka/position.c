/*
 * The position topic: one partition, compacted, one key a pipeline. With exactly once its
 * records are written in the transactions of the data, so its end is always true to the data.
 */
#include "kafka.h"

#include <stdio.h>

#define READ_MS      30000
#define FIRST_WINDOW 256

struct reading {
    struct cdcd_sink *s;
    rd_kafka_t *rk;
    rd_kafka_topic_t *rkt;
    int64_t low, high; /* offsets [low, high) */
    struct cdcd_buf *state;
    char *instance;
    bool found;
    int64_t give_up;
};

static rd_kafka_t *reader_new(struct cdcd_sink *s, struct cdcd_error *err)
{
    static const char *const settings[][2] = {
        {"isolation.level", "read_committed"},  {"enable.partition.eof", "true"},
        {"auto.offset.reset", "earliest"},      {"fetch.wait.max.ms", "10"},
        {"queued.max.messages.kbytes", "4096"}, {"check.crcs", "true"},
    };
    rd_kafka_conf_t *conf = kafka_conf(s, err);
    if (!conf)
        return NULL;
    for (size_t i = 0; i < sizeof settings / sizeof *settings; i++)
        if (kafka_conf_set(conf, settings[i][0], settings[i][1], err) != CDCD_OK) {
            rd_kafka_conf_destroy(conf);
            return NULL;
        }
    return kafka_client(RD_KAFKA_CONSUMER, conf, err);
}

static void take(struct reading *r, const rd_kafka_message_t *m)
{
    size_t n = strlen(r->s->env->pipeline), len;
    rd_kafka_headers_t *headers;
    const void *value;
    if (m->key_len != n || memcmp(m->key, r->s->env->pipeline, n) != 0)
        return;
    r->found = true;
    cdcd_buf_clear(r->state);
    cdcd_buf_add(r->state, m->payload, m->payload ? m->len : 0);
    r->instance[0] = 0;
    if (rd_kafka_message_headers(m, &headers) == RD_KAFKA_RESP_ERR_NO_ERROR &&
        rd_kafka_header_get_last(headers, "cdcd.instance", &value, &len) ==
            RD_KAFKA_RESP_ERR_NO_ERROR &&
        len < 33) {
        memcpy(r->instance, value, len);
        r->instance[len] = 0;
    }
}

/* Reads from an offset to the end; control records and aborted ones never come up, so only the
 * end-of-partition event tells that the end is reached. */
static enum cdcd_rc scan(struct reading *r, int64_t from, struct cdcd_error *err)
{
    enum cdcd_rc rc = CDCD_AGAIN;
    if (rd_kafka_consume_start(r->rkt, 0, from) != 0)
        return kafka_fail(r->s, err, rd_kafka_last_error(), NULL, "reading topic %s",
                          r->s->position_name);
    while (rc == CDCD_AGAIN) {
        rd_kafka_message_t *m = rd_kafka_consume(r->rkt, 0, 200);
        rd_kafka_poll(r->rk, 0);
        if (m && m->err == RD_KAFKA_RESP_ERR_NO_ERROR) {
            take(r, m);
            rc = m->offset + 1 >= r->high ? CDCD_OK : CDCD_AGAIN;
        } else if (m && m->err == RD_KAFKA_RESP_ERR__PARTITION_EOF) {
            rc = m->offset >= r->high ? CDCD_OK : CDCD_AGAIN;
        } else if (m && kafka_class(m->err) != CDCD_ERR_RETRY) {
            rc = kafka_fail(r->s, err, m->err, rd_kafka_message_errstr(m), "reading topic %s",
                            r->s->position_name);
        }
        if (m)
            rd_kafka_message_destroy(m);
        if (rc == CDCD_AGAIN && cdcd_now_ms() > r->give_up)
            rc = cdcd_error_set(err, CDCD_ERR_RETRY,
                                "topic %s cannot be read to its end (offset %lld) in %d s: the "
                                "broker does not answer, or an open transaction holds the end back",
                                r->s->position_name, (long long)r->high, READ_MS / 1000);
    }
    rd_kafka_consume_stop(r->rkt, 0);
    return rc;
}

static bool is_unknown(rd_kafka_resp_err_t code)
{
    return code == RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART ||
           code == RD_KAFKA_RESP_ERR__UNKNOWN_TOPIC || code == RD_KAFKA_RESP_ERR__UNKNOWN_PARTITION;
}

static enum cdcd_rc read_end(struct reading *r, struct cdcd_error *err)
{
    /* A topic that was found ready is there: a broker that does not know it has just started.
     * Taking that for an empty topic would begin the pipeline anew. */
    bool ready = r->s->position.rkt != NULL;
    rd_kafka_resp_err_t code;
    do {
        code = rd_kafka_query_watermark_offsets(r->rk, r->s->position_name, 0, &r->low, &r->high,
                                                2000);
        rd_kafka_poll(r->rk, code && is_unknown(code) && ready ? 100 : 0);
    } while (code && kafka_class(code) == CDCD_ERR_RETRY && !r->s->denied &&
             (ready || !is_unknown(code)) && cdcd_now_ms() < r->give_up);
    if (is_unknown(code) && !ready)
        return CDCD_OK;
    if (code)
        return kafka_fail(r->s, err, code, NULL, "looking for the end of topic %s",
                          r->s->position_name);
    for (int64_t window = FIRST_WINDOW; !r->found && r->low < r->high; window *= 16) {
        int64_t from = r->high - window > r->low ? r->high - window : r->low;
        if (scan(r, from, err) != CDCD_OK)
            return CDCD_ERROR;
        if (from == r->low)
            break;
    }
    return CDCD_OK;
}

enum cdcd_rc kafka_position_read(struct cdcd_sink *s, struct cdcd_buf *state, char instance[33],
                                 struct cdcd_error *err)
{
    struct reading r = {.s = s, .state = state, .instance = instance};
    enum cdcd_rc rc = CDCD_ERROR;
    cdcd_buf_clear(state);
    instance[0] = 0;
    r.give_up = cdcd_now_ms() + READ_MS;
    r.rk = reader_new(s, err);
    if (!r.rk)
        return CDCD_ERROR;
    r.rkt = rd_kafka_topic_new(r.rk, s->position_name, NULL);
    if (r.rkt)
        rc = read_end(&r, err);
    else
        kafka_fail(s, err, rd_kafka_last_error(), NULL, "topic %s", s->position_name);
    if (r.rkt)
        rd_kafka_topic_destroy(r.rkt);
    rd_kafka_destroy(r.rk);
    return rc;
}

enum cdcd_rc kafka_position_produce(struct cdcd_sink *s, struct cdcd_error *err)
{
    rd_kafka_vu_t vu[] = {
        {.vtype = RD_KAFKA_VTYPE_RKT, .u.rkt = s->position.rkt},
        {.vtype = RD_KAFKA_VTYPE_PARTITION, .u.i32 = 0},
        {.vtype = RD_KAFKA_VTYPE_MSGFLAGS, .u.i = RD_KAFKA_MSG_F_COPY},
        {.vtype = RD_KAFKA_VTYPE_KEY,
         .u.mem = {(void *)(uintptr_t)s->env->pipeline, strlen(s->env->pipeline)}},
        /* An empty value, not a tombstone, when there is no state yet. */
        {.vtype = RD_KAFKA_VTYPE_VALUE,
         .u.mem = {(void *)(uintptr_t)cdcd_buf_cstr(&s->state), s->state.len}},
        {.vtype = RD_KAFKA_VTYPE_HEADER,
         .u.header = {"cdcd.instance", s->instance, (ssize_t)strlen(s->instance)}},
        {.vtype = RD_KAFKA_VTYPE_OPAQUE, .u.ptr = s},
    };
    rd_kafka_error_t *e = rd_kafka_produceva(s->rk, vu, sizeof vu / sizeof *vu);
    if (!e) {
        s->in_flight++;
        kafka_in_flight(s, &s->position, (int64_t)(vu[3].u.mem.size + vu[4].u.mem.size));
        return CDCD_OK;
    }
    rd_kafka_resp_err_t code = rd_kafka_error_code(e);
    enum cdcd_rc rc = CDCD_AGAIN;
    if (code != RD_KAFKA_RESP_ERR__QUEUE_FULL)
        rc = kafka_fail(s, err, code, rd_kafka_error_string(e), "writing the position to topic %s",
                        s->position_name);
    rd_kafka_error_destroy(e);
    return rc;
}
