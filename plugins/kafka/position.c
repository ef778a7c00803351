/*
 * The position topic: one partition, compacted, one key a pipeline. With exactly once its
 * records are written in the transactions of the data, so its end is always true to the data.
 * Headers: cdcd.instance, the process that wrote it; cdcd.notes, where the source has notes, the
 * number of their last set and how many there are (notes.c).
 */
#include "kafka.h"

#include <inttypes.h>
#include <stdio.h>

#define READ_MS      30000
#define FIRST_WINDOW 256

struct reading {
    struct kafka_link *link;
    const struct kafka_reading *what;
    rd_kafka_t *rk;
    rd_kafka_topic_t *rkt;
    int64_t low, high; /* offsets [low, high) */
    bool found;
    int64_t give_up;
};

static rd_kafka_t *reader_new(struct kafka_link *link, bool uncommitted, struct cdcd_error *err)
{
    const char *const settings[][2] = {
        {"isolation.level", uncommitted ? "read_uncommitted" : "read_committed"},
        {"enable.partition.eof", "true"},
        {"auto.offset.reset", "earliest"},
        {"fetch.wait.max.ms", "10"},
        {"queued.max.messages.kbytes", "4096"},
        {"check.crcs", "true"},
    };
    rd_kafka_conf_t *conf = kafka_conf(link, err);
    if (!conf)
        return NULL;
    for (size_t i = 0; i < sizeof settings / sizeof *settings; i++)
        if (kafka_conf_set(link, conf, settings[i][0], settings[i][1], err) != CDCD_OK) {
            rd_kafka_conf_destroy(conf);
            return NULL;
        }
    return kafka_client(link, RD_KAFKA_CONSUMER, conf, err);
}

/* Reads from an offset to the end; control records and aborted ones never come up, so only the
 * end-of-partition event tells that the end is reached. */
static enum cdcd_rc scan(struct reading *r, int64_t from, struct cdcd_error *err)
{
    enum cdcd_rc rc = CDCD_AGAIN;
    if (rd_kafka_consume_start(r->rkt, 0, from) != 0)
        return kafka_fail(r->link, err, rd_kafka_last_error(), NULL, "reading topic %s",
                          r->what->topic);
    while (rc == CDCD_AGAIN) {
        rd_kafka_message_t *m = rd_kafka_consume(r->rkt, 0, 200);
        rd_kafka_poll(r->rk, 0);
        if (m && m->err == RD_KAFKA_RESP_ERR_NO_ERROR) {
            r->found = r->what->take(r->what->ctx, m) || r->found;
            rc = m->offset + 1 >= r->high ? CDCD_OK : CDCD_AGAIN;
        } else if (m && m->err == RD_KAFKA_RESP_ERR__PARTITION_EOF) {
            rc = m->offset >= r->high ? CDCD_OK : CDCD_AGAIN;
        } else if (m && kafka_class(m->err) != CDCD_ERR_RETRY) {
            rc = kafka_fail(r->link, err, m->err, rd_kafka_message_errstr(m), "reading topic %s",
                            r->what->topic);
        }
        if (m)
            rd_kafka_message_destroy(m);
        if (rc == CDCD_AGAIN && cdcd_now_ms() > r->give_up)
            rc = cdcd_error_set(err, CDCD_ERR_RETRY,
                                "topic %s cannot be read to its end (offset %lld) in %d s: the "
                                "broker does not answer, or an open transaction holds the end back",
                                r->what->topic, (long long)r->high, READ_MS / 1000);
    }
    rd_kafka_consume_stop(r->rkt, 0);
    return rc;
}

static bool is_unknown(rd_kafka_resp_err_t code)
{
    return code == RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART ||
           code == RD_KAFKA_RESP_ERR__UNKNOWN_TOPIC || code == RD_KAFKA_RESP_ERR__UNKNOWN_PARTITION;
}

/* Only the broker's list of topics says that there is none: librdkafka 2.0 calls a topic unknown
 * also while its partition has no leader, or one that the client has not heard of yet
 * (rd_kafka_topic_partition_list_query_leaders in rdkafka_partition.c). */
static enum cdcd_rc is_there(struct reading *r, bool *there, struct cdcd_error *err)
{
    const struct rd_kafka_metadata *md;
    *there = r->what->there;
    if (*there)
        return CDCD_OK;
    if (kafka_list(r->link, r->rk, &md, err) != CDCD_OK)
        return cdcd_error_context(err, "looking for topic %s", r->what->topic);
    *there = kafka_find_topic(md, r->what->topic) != NULL;
    rd_kafka_metadata_destroy(md);
    return CDCD_OK;
}

static enum cdcd_rc read_end(struct reading *r, struct cdcd_error *err)
{
    bool there;
    rd_kafka_resp_err_t code;
    if (is_there(r, &there, err) != CDCD_OK)
        return CDCD_ERROR;
    if (!there)
        return CDCD_OK;
    do {
        code = rd_kafka_query_watermark_offsets(r->rk, r->what->topic, 0, &r->low, &r->high, 2000);
        rd_kafka_poll(r->rk, code && is_unknown(code) ? 100 : 0);
    } while (code && kafka_class(code) == CDCD_ERR_RETRY && !r->link->denied &&
             cdcd_now_ms() < r->give_up);
    if (is_unknown(code) && r->what->gone)
        return cdcd_error_set(err, CDCD_ERR_LOSS,
                              "topic %s does not exist, but the position in %s needs it: %s; "
                              "bring it back, or delete the position's topic too, to begin with a "
                              "new snapshot",
                              r->what->topic, r->what->needed_by, r->what->gone);
    if (code)
        return kafka_fail(r->link, err, code, NULL, "looking for the end of topic %s",
                          r->what->topic);
    if (r->what->end)
        *r->what->end = r->high;
    if (r->what->whole) {
        int64_t from = r->what->from > r->low ? r->what->from : r->low;
        return from < r->high ? scan(r, from, err) : CDCD_OK;
    }
    for (int64_t window = FIRST_WINDOW; !r->found && r->low < r->high; window *= 16) {
        int64_t from = r->high - window > r->low ? r->high - window : r->low;
        if (scan(r, from, err) != CDCD_OK)
            return CDCD_ERROR;
        if (from == r->low)
            break;
    }
    return CDCD_OK;
}

enum cdcd_rc kafka_read(struct kafka_link *link, const struct kafka_reading *what,
                        struct cdcd_error *err)
{
    struct reading r = {.link = link, .what = what};
    enum cdcd_rc rc = CDCD_ERROR;
    r.give_up = cdcd_now_ms() + READ_MS;
    r.rk = reader_new(link, what->uncommitted, err);
    if (!r.rk)
        return CDCD_ERROR;
    r.rkt = rd_kafka_topic_new(r.rk, what->topic, NULL);
    if (r.rkt)
        rc = read_end(&r, err);
    else
        kafka_fail(link, err, rd_kafka_last_error(), NULL, "topic %s", what->topic);
    if (r.rkt)
        rd_kafka_topic_destroy(r.rkt);
    rd_kafka_destroy(r.rk);
    return rc;
}

/* ---- the position ---- */

struct position {
    const struct cdcd_sink *s;
    struct cdcd_buf *state;
    struct kafka_held *held;
};

/* The header as text; false: it is not there or too long. */
static bool header(const rd_kafka_message_t *m, const char *name, char *to, size_t size)
{
    rd_kafka_headers_t *headers;
    const void *value;
    size_t len;
    if (rd_kafka_message_headers(m, &headers) != RD_KAFKA_RESP_ERR_NO_ERROR ||
        rd_kafka_header_get_last(headers, name, &value, &len) != RD_KAFKA_RESP_ERR_NO_ERROR ||
        len >= size)
        return false;
    memcpy(to, value, len);
    to[len] = 0;
    return true;
}

static bool take_position(void *ctx, const rd_kafka_message_t *m)
{
    struct position *p = ctx;
    size_t n = strlen(p->s->env->pipeline);
    char text[64];
    if (m->key_len != n || memcmp(m->key, p->s->env->pipeline, n) != 0)
        return false;
    cdcd_buf_clear(p->state);
    cdcd_buf_add(p->state, m->payload, m->payload ? m->len : 0);
    *p->held = (struct kafka_held){0};
    if (!header(m, "cdcd.instance", p->held->instance, sizeof p->held->instance))
        p->held->instance[0] = 0;
    if (header(m, "cdcd.notes", text, sizeof text) &&
        sscanf(text, "%" SCNu64 " %" SCNu64, &p->held->set, &p->held->live) != 2)
        p->held->set = p->held->live = 0;
    return true;
}

enum cdcd_rc kafka_position_read(struct cdcd_sink *s, struct cdcd_buf *state,
                                 struct kafka_held *held, struct cdcd_error *err)
{
    struct position p = {s, state, held};
    /* A topic that was found ready is there: taking it for an empty one would begin the pipeline
     * anew. */
    const struct kafka_reading what = {.topic = s->position_name,
                                       .there = s->position.rkt != NULL,
                                       .ctx = &p,
                                       .take = take_position};
    cdcd_buf_clear(state);
    *held = (struct kafka_held){0};
    return kafka_read(&s->link, &what, err);
}

enum cdcd_rc kafka_position_produce(struct cdcd_sink *s, struct cdcd_error *err)
{
    char notes[64];
    int n = snprintf(notes, sizeof notes, "%" PRIu64 " %zu", s->notes.set,
                     cdcd_notes_count(s->notes.live));
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
        {.vtype = RD_KAFKA_VTYPE_HEADER, .u.header = {"cdcd.notes", notes, n}}, /* the last */
    };
    size_t count = sizeof vu / sizeof *vu - !s->notes.set;
    rd_kafka_error_t *e = rd_kafka_produceva(s->rk, vu, count);
    if (!e) {
        s->in_flight++;
        kafka_in_flight(s, &s->position, (int64_t)(vu[3].u.mem.size + vu[4].u.mem.size));
        return CDCD_OK;
    }
    rd_kafka_resp_err_t code = rd_kafka_error_code(e);
    enum cdcd_rc rc = CDCD_AGAIN;
    if (code != RD_KAFKA_RESP_ERR__QUEUE_FULL)
        rc = kafka_fail(&s->link, err, code, rd_kafka_error_string(e),
                        "writing the position to topic %s", s->position_name);
    rd_kafka_error_destroy(e);
    return rc;
}
