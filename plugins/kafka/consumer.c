/*
 * The consumer: what librdkafka brings becomes records of a batch, and its errors become ours. A
 * lost connection is no error: librdkafka goes on by itself, and what was read stays where it is.
 */
#include "source.h"

#include <cdcd/jsonscan.h>

#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define POSITION_MS       1000 /* a position without records is not given more often */
#define STALLED_MS        2000 /* nobody takes batches for so long: stop fetching, stay a member */
#define COMPLAIN_MS       10000
#define COMPLAIN_AGAIN_MS 30000
#define BATCH_BYTES       ((size_t)512 << 10) /* nothing is encoded into it later */
#define REVOKE_WAIT_MS    20
#define DESTROY_S         3

/* ---- begin and end ---- */

static enum cdcd_rc set_source(struct cdcd_source *s, rd_kafka_conf_t *conf, struct cdcd_error *err)
{
    char refresh[32];
    /* A replay is in no group, but the API wants the name of one; nothing is committed to it. */
    char *group = s->env->replay ? cdcd_xasprintf("%s.replay", s->group) : cdcd_xstrdup(s->group);
    snprintf(refresh, sizeof refresh, "%" PRId64, s->config->refresh_ms);
    const char *const settings[][2] = {
        {"group.id", group},
        {"isolation.level", "read_committed"},
        {"enable.auto.commit", "false"},
        {"enable.auto.offset.store", "false"},
        {"enable.partition.eof", "true"},
        {"auto.offset.reset", "error"}, /* where to begin is decided in kafka_place */
        {"partition.assignment.strategy", "cooperative-sticky"},
        {"topic.metadata.refresh.interval.ms", refresh},
    };
    enum cdcd_rc rc = CDCD_OK;
    for (size_t i = 0; rc == CDCD_OK && i < sizeof settings / sizeof *settings; i++)
        rc = kafka_conf_set(&s->link, conf, settings[i][0], settings[i][1], err);
    free(group);
    return rc;
}

enum cdcd_rc kafka_consumer_begin(struct cdcd_source *s, struct cdcd_error *err)
{
    rd_kafka_conf_t *conf = kafka_conf(&s->link, err);
    if (!conf)
        return CDCD_ERROR;
    rd_kafka_conf_set_rebalance_cb(conf, kafka_rebalance);
    rd_kafka_conf_set_offset_commit_cb(conf, kafka_committed);
    if (set_source(s, conf, err) != CDCD_OK) {
        rd_kafka_conf_destroy(conf);
        return CDCD_ERROR;
    }
    atomic_store(&s->link.joining, false);
    atomic_store(&s->link.half_joined, false);
    atomic_store(&s->link.was_assigned, false);
    s->rk = kafka_client(&s->link, RD_KAFKA_CONSUMER, conf, err);
    if (!s->rk)
        return CDCD_ERROR;
    s->last_answer = s->last_read = cdcd_now_ms();
    return CDCD_OK;
}

static void *destroy(void *rk)
{
    rd_kafka_destroy(rk);
    return NULL;
}

/* librdkafka 2.0 waits for ever for a thread of its own after a partition was read whose topic was
 * deleted. It is left to wait alone then: nothing of ours is called any more. */
void kafka_destroy_or_leave(rd_kafka_t *rk)
{
    pthread_t thread;
    struct timespec until;
    if (pthread_create(&thread, NULL, destroy, rk) != 0) {
        rd_kafka_destroy(rk);
        return;
    }
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += DESTROY_S;
    if (pthread_timedjoin_np(thread, NULL, &until) != 0) {
        cdcd_debug("kafka", "librdkafka does not end: it is left alone");
        pthread_detach(thread);
    }
}

void kafka_consumer_end(struct cdcd_source *s)
{
    kafka_wake_end(&s->wake);
    if (s->stash)
        rd_kafka_message_destroy(s->stash);
    s->stash = NULL;
    if (!s->rk)
        return;
    s->closing = true;
    bool may_close = !s->started || s->env->replay || kafka_group_leave(s);
    rd_kafka_set_log_level(s->rk, 0); /* nothing refers to us from here on */
    if (!may_close && kafka_source_stopping(s)) {
        s->rk = NULL; /* it ends with the process, and the group will miss it */
        return;
    }
    if (s->started)
        rd_kafka_consumer_close(s->rk);
    kafka_destroy_or_leave(s->rk);
    s->rk = NULL;
}

/* ---- records ---- */

/* A header whose bytes are an object, an array or a string of JSON. */
static bool is_json(struct cdcd_slice v)
{
    struct cdcd_json_value value;
    return v.len > 1 && (v.ptr[0] == '{' || v.ptr[0] == '[' || v.ptr[0] == '"') &&
           cdcd_json_scan(v, &value);
}

static struct cdcd_slice copy(struct cdcd_batch *b, const void *p, size_t n)
{
    if (!p)
        return (struct cdcd_slice){NULL, 0};
    return (struct cdcd_slice){cdcd_arena_dup(&b->arena, p, n), n};
}

static const struct cdcd_header *copy_headers(struct cdcd_batch *b, const rd_kafka_message_t *m,
                                              uint32_t *count)
{
    rd_kafka_headers_t *headers;
    const char *name;
    const void *value;
    size_t len, n;
    *count = 0;
    if (rd_kafka_message_headers(m, &headers) != RD_KAFKA_RESP_ERR_NO_ERROR)
        return NULL;
    n = rd_kafka_header_cnt(headers);
    struct cdcd_header *out = cdcd_arena_alloc(&b->arena, n * sizeof *out);
    for (size_t i = 0; i < n; i++) {
        if (rd_kafka_header_get_all(headers, i, &name, &value, &len) != RD_KAFKA_RESP_ERR_NO_ERROR)
            break;
        out[i].name = copy(b, name, strlen(name));
        out[i].value = copy(b, value, len);
        out[i].json = value && is_json(out[i].value);
        *count = (uint32_t)i + 1;
    }
    return out;
}

static int64_t timestamp_of(const rd_kafka_message_t *m)
{
    rd_kafka_timestamp_type_t type;
    int64_t ms = rd_kafka_message_timestamp(m, &type);
    return type == RD_KAFKA_TIMESTAMP_NOT_AVAILABLE || ms < 0 ? 0 : ms;
}

/* Too large records are an error or left out. AGAIN: leave it out. */
static enum cdcd_rc judge_size(struct cdcd_source *s, const rd_kafka_message_t *m,
                               struct cdcd_error *err)
{
    size_t bytes = m->len + m->key_len;
    if (s->env->max_event_bytes <= 0 || bytes <= (size_t)s->env->max_event_bytes)
        return CDCD_OK;
    cdcd_error_set(err, CDCD_ERR_DATA,
                   "topic %s, partition %d, offset %" PRId64 ": the record has %zu bytes, over "
                   "max.event.bytes (%" PRId64 "): raise it, and the sink's limits with it, or set "
                   "source.kafka.errors.policy to skip",
                   rd_kafka_topic_name(m->rkt), (int)m->partition, m->offset, bytes,
                   s->env->max_event_bytes);
    if (s->config->policy != KAFKA_SOURCE_SKIP)
        return CDCD_ERROR;
    s->skipped++;
    cdcd_warn("kafka", "%s; left out (%" PRIu64 " so far)", err->text, s->skipped);
    *err = (struct cdcd_error){0};
    return CDCD_AGAIN;
}

static enum cdcd_rc append(struct cdcd_source *s, struct cdcd_batch *b, const rd_kafka_message_t *m,
                           struct cdcd_error *err)
{
    uint32_t n;
    const struct cdcd_header *headers = copy_headers(b, m, &n);
    for (uint32_t i = 0; s->env->want_schemas && i < n; i++)
        if (cdcd_slice_eq(headers[i].name, cdcd_slice_str("cdcd.schema")) &&
            kafka_schemas_need(s, b, headers[i].value, err) != CDCD_OK)
            return CDCD_ERROR;
    const char *topic = rd_kafka_topic_name(m->rkt);
    if (!s->topic_at || strcmp(s->topic_at, topic) != 0)
        s->topic_at = cdcd_arena_dup(&b->arena, topic, strlen(topic));
    struct cdcd_record *r = cdcd_batch_record(b);
    r->topic_name = cdcd_slice_str(s->topic_at);
    r->partition = m->partition;
    r->offset = m->offset;
    r->key = copy(b, m->key, m->key_len);
    r->value = copy(b, m->payload, m->len);
    r->headers = headers;
    r->nheaders = n;
    r->timestamp_ms = timestamp_of(m);
    if (r->timestamp_ms > s->newest_ms)
        s->newest_ms = r->timestamp_ms;
    return CDCD_OK;
}

static struct kafka_part *part_of(struct cdcd_source *s, const rd_kafka_message_t *m)
{
    const char *topic = rd_kafka_topic_name(m->rkt);
    if (!s->found || strcmp(s->found->topic, topic) != 0)
        s->found = kafka_offsets_find(&s->offsets, topic);
    if (!s->found || m->partition < 0 || m->partition >= s->found->n)
        return NULL;
    struct kafka_part *p = &s->found->items[m->partition];
    return p->assigned ? p : NULL;
}

static void set_eof(struct cdcd_source *s, struct kafka_part *p, bool eof)
{
    s->at_end += (int32_t)eof - (int32_t)p->eof;
    p->eof = eof;
}

/* Everything up to `next` was read. */
static void advance(struct cdcd_source *s, struct kafka_part *p, int64_t next)
{
    if (next <= p->read.next)
        return;
    p->read.next = next;
    p->known = true;
    s->position_new = true;
}

static void end_reached(struct cdcd_source *s, struct kafka_part *p)
{
    if (!s->env->replay || p->ended || p->read.next < p->end)
        return;
    p->ended = true;
    s->ended++;
}

static enum cdcd_rc take_record(struct cdcd_source *s, struct cdcd_batch *b,
                                const rd_kafka_message_t *m, struct cdcd_error *err)
{
    struct kafka_part *p = part_of(s, m);
    if (!p || p->ended)
        return CDCD_OK; /* given back meanwhile, or behind the end */
    if (p->verify && m->offset == p->read.last && timestamp_of(m) != p->read.last_ms)
        return kafka_other_topic(s, s->found->topic, m->partition, err);
    p->verify = false;
    if (m->offset < p->read.next)
        return CDCD_OK;
    if (s->env->replay && m->offset >= p->end) {
        advance(s, p, p->end);
        end_reached(s, p);
        return CDCD_OK;
    }
    set_eof(s, p, false);
    enum cdcd_rc rc = judge_size(s, m, err);
    if (rc == CDCD_OK)
        rc = append(s, b, m, err);
    if (rc == CDCD_ERROR)
        return CDCD_ERROR;
    advance(s, p, m->offset + 1);
    p->read.last = m->offset;
    p->read.last_ms = timestamp_of(m);
    end_reached(s, p);
    return CDCD_OK;
}

/* ---- what is no record ---- */

static void take_eof(struct cdcd_source *s, const rd_kafka_message_t *m)
{
    struct kafka_part *p = part_of(s, m);
    if (!p)
        return;
    p->verify = false;
    /* Control records and aborted ones are behind the newest record. */
    advance(s, p, s->env->replay && m->offset > p->end ? p->end : m->offset);
    set_eof(s, p, true);
    end_reached(s, p);
}

/* The offset is not there: looked at once more, which says why when it is a loss. */
static enum cdcd_rc out_of_range(struct cdcd_source *s, const rd_kafka_message_t *m,
                                 struct cdcd_error *err)
{
    const char *topic = rd_kafka_topic_name(m->rkt);
    if (!part_of(s, m))
        return CDCD_OK;
    rd_kafka_topic_partition_list_t *one = rd_kafka_topic_partition_list_new(1);
    rd_kafka_topic_partition_list_add(one, topic, m->partition);
    enum cdcd_rc rc = kafka_place(s, one, err);
    rd_kafka_topic_partition_list_destroy(one);
    if (rc == CDCD_OK)
        rc = cdcd_error_set(err, CDCD_ERR_RETRY,
                            "topic %s, partition %d: the broker did not have the offset that is "
                            "next for a moment",
                            topic, (int)m->partition);
    return rc;
}

/* A broker that has just started may not know a topic; one that was deleted stays unknown, and one
 * that was made anew is known again, with other records. */
static enum cdcd_rc unknown_topic(struct cdcd_source *s, const rd_kafka_message_t *m,
                                  struct cdcd_error *err)
{
    struct kafka_part *p = m->rkt ? part_of(s, m) : NULL;
    s->next_refresh = 0;
    if (!p)
        return CDCD_OK;
    if (kafka_source_refresh(s, err) != CDCD_OK)
        return CDCD_ERROR;
    struct kafka_parts *t = kafka_offsets_find(&s->offsets, rd_kafka_topic_name(m->rkt));
    if (!t || t->missing)
        return CDCD_OK; /* decided by the next lists */
    return cdcd_error_set(err, CDCD_ERR_RETRY, "topic %s was unknown to the broker for a moment",
                          t->topic);
}

static enum cdcd_rc take_error(struct cdcd_source *s, const rd_kafka_message_t *m,
                               struct cdcd_error *err)
{
    char text[512];
    rd_kafka_resp_err_t code = m->err;
    switch ((int)code) {
    case RD_KAFKA_RESP_ERR__AUTO_OFFSET_RESET:
    case RD_KAFKA_RESP_ERR_OFFSET_OUT_OF_RANGE: return out_of_range(s, m, err);
    case RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART:
    case RD_KAFKA_RESP_ERR__UNKNOWN_TOPIC:
    case RD_KAFKA_RESP_ERR__UNKNOWN_PARTITION: return unknown_topic(s, m, err);
    case RD_KAFKA_RESP_ERR__MAX_POLL_EXCEEDED:
        cdcd_warn("kafka", "the group took this instance for stuck: %s",
                  rd_kafka_message_errstr(m));
        return CDCD_OK;
    case RD_KAFKA_RESP_ERR__BAD_MSG:
    case RD_KAFKA_RESP_ERR__BAD_COMPRESSION:
        return cdcd_error_set(err, CDCD_ERR_RETRY, "topic %s, partition %d cannot be read: %s",
                              m->rkt ? rd_kafka_topic_name(m->rkt) : "?", (int)m->partition,
                              rd_kafka_message_errstr(m));
    default: break;
    }
    if (code == RD_KAFKA_RESP_ERR__FATAL)
        code = rd_kafka_fatal_error(s->rk, text, sizeof text);
    else
        snprintf(text, sizeof text, "%s", rd_kafka_message_errstr(m));
    if (m->err == RD_KAFKA_RESP_ERR__FATAL || kafka_class(code) == CDCD_ERR_CONFIG)
        return kafka_fail(&s->link, err, code, text, "reading as group %s", s->group);
    cdcd_debug("kafka", "consumer: %s: %s", rd_kafka_err2name(code), text);
    return CDCD_OK;
}

static enum cdcd_rc take(struct cdcd_source *s, struct cdcd_batch *b, rd_kafka_message_t *m,
                         struct cdcd_error *err)
{
    enum cdcd_rc rc = CDCD_OK;
    if (!m->err || m->err == RD_KAFKA_RESP_ERR__PARTITION_EOF) {
        s->last_answer = cdcd_now_ms();
        s->link.all_down = false;
        s->link.loaded_once = true;
    }
    if (!m->err) {
        kafka_wake_taken(s, m);
        rc = take_record(s, b, m, err);
    } else if (m->err == RD_KAFKA_RESP_ERR__PARTITION_EOF)
        take_eof(s, m);
    else
        rc = take_error(s, m, err);
    rd_kafka_message_destroy(m);
    return rc;
}

/* ---- reading ---- */

static rd_kafka_message_t *next_message(struct cdcd_source *s, int wait_ms)
{
    rd_kafka_message_t *m = s->stash;
    s->stash = NULL;
    return m ? m : rd_kafka_consumer_poll(s->rk, wait_ms);
}

static bool full(const struct cdcd_batch *b)
{
    return b->arena.used >= BATCH_BYTES || b->nrecords >= CDCD_BATCH_EVENTS;
}

static bool finished(const struct cdcd_source *s)
{
    return s->env->replay && s->started && s->ended >= s->to_end;
}

/* What was read is in the batch: it gets the position. */
static void put_position(struct cdcd_source *s, struct cdcd_batch *b)
{
    struct cdcd_buf text;
    cdcd_buf_init(&text, 0);
    kafka_offsets_write(&s->offsets, &text);
    b->position.ptr = cdcd_arena_dup(&b->arena, text.ptr, text.len);
    b->position.len = text.len;
    cdcd_buf_free(&text);
    for (size_t i = 0; i < s->offsets.n; i++)
        for (int32_t k = 0; k < s->offsets.topics[i]->n; k++)
            s->offsets.topics[i]->items[k].pushed = s->offsets.topics[i]->items[k].read.next;
    s->position_new = false;
    s->position_at = cdcd_now_ms();
}

static enum cdcd_rc fill(struct cdcd_source *s, struct cdcd_batch *b, int64_t deadline,
                         struct cdcd_error *err)
{
    while (!full(b) && !finished(s)) {
        int64_t wait = b->nrecords ? 0 : deadline - cdcd_now_ms();
        if (s->revoking && wait > REVOKE_WAIT_MS)
            wait = REVOKE_WAIT_MS; /* the sink's word for it is heard between two calls of read */
        rd_kafka_message_t *m = next_message(s, wait > 0 ? (int)wait : 0);
        if (m && take(s, b, m, err) != CDCD_OK)
            return CDCD_ERROR;
        if (s->fault_set) {
            *err = s->fault;
            return CDCD_ERROR;
        }
        if (!m && (b->nrecords || s->revoking || cdcd_now_ms() >= deadline))
            return CDCD_OK;
    }
    return CDCD_OK;
}

void kafka_consumer_resume(struct cdcd_source *s, const rd_kafka_topic_partition_list_t *list)
{
    rd_kafka_topic_partition_list_t *l = rd_kafka_topic_partition_list_new(list->cnt);
    for (int i = 0; i < list->cnt; i++) {
        const rd_kafka_topic_partition_t *tp = &list->elems[i];
        struct kafka_part *p = kafka_offsets_part(&s->offsets, tp->topic, tp->partition);
        if (p->paused)
            rd_kafka_topic_partition_list_add(l, tp->topic, tp->partition);
        p->paused = false;
    }
    if (l->cnt)
        rd_kafka_resume_partitions(s->rk, l);
    rd_kafka_topic_partition_list_destroy(l);
}

static void pause_all(struct cdcd_source *s)
{
    rd_kafka_topic_partition_list_t *list;
    if (rd_kafka_assignment(s->rk, &list) != RD_KAFKA_RESP_ERR_NO_ERROR)
        return;
    rd_kafka_pause_partitions(s->rk, list);
    for (int i = 0; i < list->cnt; i++)
        kafka_offsets_part(&s->offsets, list->elems[i].topic, list->elems[i].partition)->paused =
            true;
    rd_kafka_topic_partition_list_destroy(list);
    s->paused = true;
}

static void resume_all(struct cdcd_source *s)
{
    rd_kafka_topic_partition_list_t *list;
    if (rd_kafka_assignment(s->rk, &list) != RD_KAFKA_RESP_ERR_NO_ERROR)
        return;
    kafka_consumer_resume(s, list);
    rd_kafka_topic_partition_list_destroy(list);
    s->paused = false;
}

enum cdcd_rc kafka_consumer_read(struct cdcd_source *s, struct cdcd_batch *b, int64_t deadline,
                                 struct cdcd_error *err)
{
    s->topic_at = NULL;
    s->last_read = cdcd_now_ms();
    rd_kafka_poll(s->rk, 0); /* errors and commits; not rd_kafka_poll_set_consumer, with which this
                              * call, in kafka_list too, would meet records and abort */
    if (s->paused)
        resume_all(s);
    if (!s->env->replay) {
        kafka_group_serve(s);
        if (s->last_read >= s->next_refresh && kafka_source_refresh(s, err) != CDCD_OK)
            return CDCD_ERROR;
    }
    if (fill(s, b, deadline, err) != CDCD_OK)
        return CDCD_ERROR;
    b->caught_up = s->at_end >= s->assigned;
    bool due = b->nrecords || finished(s) || cdcd_now_ms() - s->position_at >= POSITION_MS;
    if (s->position_new && due)
        put_position(s, b);
    if (finished(s))
        return CDCD_END;
    return b->nrecords || b->position.ptr ? CDCD_OK : CDCD_AGAIN;
}

/* ---- while nobody reads ---- */

static void complain(struct cdcd_source *s, int64_t now)
{
    if (!s->link.all_down || now - s->last_answer < COMPLAIN_MS || now < s->next_complaint)
        return;
    s->next_complaint = now + COMPLAIN_AGAIN_MS;
    cdcd_warn("kafka", "Kafka at %s has not answered for %lld s%s%s", s->config->bootstrap,
              (long long)(now - s->last_answer) / 1000, *s->link.broker_error ? ": " : "",
              s->link.broker_error);
}

/* The sink takes nothing: what is fetched would only wait. Polling goes on, so that the group does
 * not take us for dead. */
static void stay(struct cdcd_source *s)
{
    if (!s->paused)
        pause_all(s);
    rd_kafka_poll(s->rk, 0);
    if (!s->stash)
        s->stash = rd_kafka_consumer_poll(s->rk, 0);
}

enum cdcd_rc kafka_consumer_idle(struct cdcd_source *s, int64_t now, struct cdcd_error *err)
{
    if (!s->started)
        return CDCD_OK;
    complain(s, now);
    if (now - s->last_read > STALLED_MS)
        stay(s);
    if (!s->env->replay) {
        kafka_group_serve(s);
        kafka_group_commit(s, false);
    }
    if (s->fault_set) {
        *err = s->fault;
        return CDCD_ERROR;
    }
    return CDCD_OK;
}
