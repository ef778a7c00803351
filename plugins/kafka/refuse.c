/*
 * Records that the broker refuses: too large, a timestamp it does not take, and the like.
 *
 * The broker refuses whole sets of records, and librdkafka does not say which record of a set
 * was to blame. So a refusal only counts when its record was alone in its set; otherwise the
 * producer is made anew in the careful mode, one record a set, and everything since the last
 * commit is replayed. Within a transaction a refusal poisons the transaction: it is given up,
 * and on the replay the record is met again and treated by the policy.
 */
#include "kafka.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>

/* How long a refusal for size is taken as the broker's mind for other records as large. */
#define REFUSED_MS 30000
/* Values over this size do not go to the dead-letter topic: they would be refused there too. */
#define DEAD_LETTER_VALUE 900000

size_t kafka_record_bytes(const struct cdcd_record *r)
{
    size_t n = r->key.len + r->value.len;
    for (uint32_t i = 0; i < r->nheaders; i++)
        n += r->headers[i].name.len + r->headers[i].value.len;
    return n;
}

static struct cdcd_slice record_pos(const struct cdcd_record *r)
{
    const struct cdcd_slice name = cdcd_slice_str("cdcd.pos");
    for (uint32_t i = 0; i < r->nheaders; i++)
        if (cdcd_slice_eq(r->headers[i].name, name))
            return r->headers[i].value;
    return (struct cdcd_slice){"", 0};
}

/* Keys are shown in messages; a long one is cut, control characters become '?'. */
static char *shown_key(const void *p, size_t n)
{
    if (!p)
        return cdcd_xstrdup("null");
    char *text = cdcd_xstrndup(p, n > 200 ? 200 : n);
    for (size_t i = 0; i < (n > 200 ? 200 : n); i++)
        if ((unsigned char)text[i] < 0x20)
            text[i] = '?';
    return text;
}

static struct kafka_refusal *refusal_add(struct cdcd_sink *s, const char *topic,
                                         struct cdcd_slice pos, const void *key, size_t key_len,
                                         size_t bytes, rd_kafka_resp_err_t code)
{
    if (s->nrefusals == s->refusals_cap) {
        s->refusals_cap = s->refusals_cap ? s->refusals_cap * 2 : 16;
        s->refusals = cdcd_xrealloc(s->refusals, s->refusals_cap * sizeof *s->refusals);
    }
    struct kafka_refusal *f = &s->refusals[s->nrefusals++];
    *f = (struct kafka_refusal){.topic = cdcd_xstrdup(topic),
                                .pos = cdcd_xstrndup(pos.ptr, pos.len),
                                .key = shown_key(key, key_len),
                                .whole_key = key ? cdcd_xstrndup(key, key_len) : NULL,
                                .key_len = key_len,
                                .bytes = bytes,
                                .code = code};
    s->counters.refused++;
    return f;
}

static struct kafka_refusal *refusal_find(struct cdcd_sink *s, struct cdcd_slice pos,
                                          const char *topic)
{
    for (size_t i = 0; pos.len && i < s->nrefusals; i++)
        if (cdcd_slice_eq(cdcd_slice_str(s->refusals[i].pos), pos) &&
            strcmp(s->refusals[i].topic, topic) == 0)
            return &s->refusals[i];
    return NULL;
}

/* A position that a snapshot row has: the kind stands behind the 16 digits of the commit. */
static bool is_snapshot_pos(struct cdcd_slice pos)
{
    return pos.len > 17 && pos.ptr[17] == '0';
}

/* The same row of a snapshot that was begun again: it has another position, since the view is
 * another, and its numbers may have a few digits more or less. */
static bool same_snapshot_row(const struct kafka_refusal *f, const struct cdcd_record *r,
                              struct cdcd_slice pos)
{
    size_t bytes = kafka_record_bytes(r);
    size_t apart = bytes > f->bytes ? bytes - f->bytes : f->bytes - bytes;
    return r->key.ptr && f->whole_key && f->key_len == r->key.len && apart <= 64 &&
           is_snapshot_pos(pos) && is_snapshot_pos(cdcd_slice_str(f->pos)) &&
           memcmp(f->whole_key, r->key.ptr, f->key_len) == 0;
}

static struct kafka_refusal *refusal_find_record(struct cdcd_sink *s, const struct cdcd_record *r,
                                                 const char *topic)
{
    struct cdcd_slice pos = record_pos(r);
    struct kafka_refusal *f = refusal_find(s, pos, topic);
    for (size_t i = 0; !f && i < s->nrefusals; i++)
        if (strcmp(s->refusals[i].topic, topic) == 0 && same_snapshot_row(&s->refusals[i], r, pos))
            f = &s->refusals[i];
    return f;
}

static void refusal_free(struct kafka_refusal *f)
{
    free(f->whole_key);
    free(f->topic);
    free(f->pos);
    free(f->key);
}

void kafka_refusals_free(struct cdcd_sink *s)
{
    for (size_t i = 0; i < s->nrefusals; i++)
        refusal_free(&s->refusals[i]);
    free(s->refusals);
    s->refusals = NULL;
    s->nrefusals = s->refusals_cap = 0;
}

/* ---- delivery reports ---- */

static void set_fault(struct cdcd_sink *s, enum cdcd_error_class class, const char *topic,
                      const char *reason, const char *mend)
{
    if (s->fault_set)
        return;
    s->fault_set = true;
    cdcd_error_set(&s->fault, class, "topic %s: %s%s%s", topic, reason, *mend ? "; " : "", mend);
}

static size_t message_bytes(const rd_kafka_message_t *m, struct cdcd_slice *pos)
{
    rd_kafka_headers_t *headers;
    size_t bytes = m->key_len + m->len, len;
    const char *name;
    const void *value;
    *pos = (struct cdcd_slice){"", 0};
    if (rd_kafka_message_headers(m, &headers) != RD_KAFKA_RESP_ERR_NO_ERROR)
        return bytes;
    for (size_t i = 0;
         rd_kafka_header_get_all(headers, i, &name, &value, &len) == RD_KAFKA_RESP_ERR_NO_ERROR;
         i++) {
        bytes += strlen(name) + len;
        if (strcmp(name, "cdcd.pos") == 0)
            *pos = (struct cdcd_slice){value, len};
    }
    return bytes;
}

static void refused_data(struct cdcd_sink *s, const rd_kafka_message_t *m, const char *topic)
{
    struct cdcd_slice pos;
    size_t bytes = message_bytes(m, &pos);
    bool alone = s->careful || (int64_t)bytes >= s->batch_size;
    if (refusal_find(s, pos, topic)) {
        /* What the policy made of it is refused as well. */
        set_fault(s, CDCD_ERR_DATA, topic, rd_kafka_err2str(m->err),
                  "a record that was refused elsewhere cannot be written here either; set "
                  "sink.kafka.errors.policy to skip, or sink.kafka.dead.letter.topic to another "
                  "topic");
        return;
    }
    if (alone && (pos.len || s->config->policy == KAFKA_STOP)) {
        if (s->fault_set && !s->fault_refusal)
            return;
        refusal_add(s, topic, pos, m->key, m->key_len, bytes, m->err);
        s->fault_set = s->fault_refusal = true;
        return;
    }
    s->careful = true;
    set_fault(s, alone ? CDCD_ERR_DATA : CDCD_ERR_RETRY, topic, rd_kafka_err2str(m->err),
              alone ? "the record has no position, so the policy cannot be followed"
                    : "the records since the last commit are sent again one by one, to find which "
                      "of them the broker refuses");
}

void kafka_refused(struct cdcd_sink *s, const rd_kafka_message_t *m)
{
    const char *topic = m->rkt ? rd_kafka_topic_name(m->rkt) : "?";
    switch (m->err) {
    case RD_KAFKA_RESP_ERR__PURGE_QUEUE:
    case RD_KAFKA_RESP_ERR__PURGE_INFLIGHT:
    case RD_KAFKA_RESP_ERR__DESTROY:
        /* Consequences of something that is reported elsewhere, perhaps later. */
        s->given_up = true;
        return;
    case RD_KAFKA_RESP_ERR__FENCED:
    case RD_KAFKA_RESP_ERR_INVALID_PRODUCER_EPOCH:
    case RD_KAFKA_RESP_ERR_PRODUCER_FENCED:
        set_fault(s, CDCD_ERR_LOSS, topic, rd_kafka_err2str(m->err), "");
        s->fenced = true;
        return;
    default: break;
    }
    if (kafka_class(m->err) == CDCD_ERR_DATA)
        refused_data(s, m, topic);
    else
        set_fault(s, kafka_class(m->err), topic, rd_kafka_err2str(m->err), kafka_mend(m->err));
}

static struct kafka_topic *topic_named(struct cdcd_sink *s, const char *name)
{
    struct kafka_topic *kt = s->topics;
    while (kt && strcmp(kt->name, name) != 0)
        kt = kt->next;
    return kt;
}

/* What to raise so that the record passes. */
static void size_mend(const struct cdcd_sink *s, const struct kafka_refusal *f,
                      const struct kafka_topic *kt, char *to, size_t size)
{
    long long want = ((long long)f->bytes / 1048576 + 2) * 1048576;
    if (f->code != RD_KAFKA_RESP_ERR_MSG_SIZE_TOO_LARGE) {
        snprintf(to, size,
                 f->code == RD_KAFKA_RESP_ERR_INVALID_TIMESTAMP
                     ? "; raise message.timestamp.before.max.ms and .after.max.ms of the "
                       "topic"
                     : "");
        return;
    }
    char limit[64] = "";
    if (kt && kt->max_bytes)
        snprintf(limit, sizeof limit, "; its limit max.message.bytes is %lld",
                 (long long)kt->max_bytes);
    snprintf(to, size,
             "%s; run: kafka-configs.sh --bootstrap-server %s --alter --topic %s --add-config "
             "max.message.bytes=%lld (and raise the consumers' max.partition.fetch.bytes, and "
             "message.max.bytes in sink.kafka.properties for records over 100 MB)",
             limit, s->config->bootstrap, f->topic, want);
}

static enum cdcd_rc refusal_error(struct cdcd_sink *s, const struct kafka_refusal *f,
                                  enum cdcd_error_class class, struct cdcd_error *err)
{
    char mend[640];
    const struct kafka_topic *kt = topic_named(s, f->topic);
    size_mend(s, f, kt, mend, sizeof mend);
    return cdcd_error_set(
        err, class, "topic %s: the record with key %s (%zu bytes, cdcd.pos %s) is refused: %s%s%s",
        f->topic, f->key, f->bytes, *f->pos ? f->pos : "none", rd_kafka_err2str(f->code), mend,
        class == CDCD_ERR_DATA ? "; or set sink.kafka.errors.policy to dead-letter or skip"
                               : "; the transaction is repeated without it");
}

enum cdcd_rc kafka_refusal_error(struct cdcd_sink *s, struct cdcd_error *err)
{
    const struct kafka_refusal *f = &s->refusals[s->nrefusals - 1];
    struct kafka_topic *kt = topic_named(s, f->topic);
    if (kt && f->code == RD_KAFKA_RESP_ERR_MSG_SIZE_TOO_LARGE) {
        kafka_topic_refresh(s, kt);
        kt->refused_until = cdcd_now_ms() + REFUSED_MS;
    }
    return refusal_error(s, f, s->config->policy == KAFKA_STOP ? CDCD_ERR_DATA : CDCD_ERR_RETRY,
                         err);
}

/* ---- before producing ---- */

/* Never of KAFKA_STOP: there a record is neither dropped nor sent elsewhere. */
static enum kafka_verdict by_policy(const struct cdcd_sink *s)
{
    assert(s->config->policy != KAFKA_STOP);
    return s->config->policy == KAFKA_DEAD_LETTER ? KAFKA_SEND_DEAD_LETTER : KAFKA_DROP;
}

bool kafka_dead_letter_value(struct cdcd_sink *s, const struct cdcd_record *r, uint64_t seq)
{
    struct kafka_refusal *f = refusal_find_record(s, r, s->dead_letter_name);
    if (f)
        f->met = seq;
    return !f && r->value.len <= DEAD_LETTER_VALUE;
}

static struct kafka_refusal *refuse_now(struct cdcd_sink *s, const struct cdcd_record *r,
                                        const struct kafka_topic *kt, uint64_t seq,
                                        rd_kafka_resp_err_t code)
{
    struct kafka_refusal *f = refusal_add(s, kt->name, record_pos(r), r->key.ptr, r->key.len,
                                          kafka_record_bytes(r), code);
    f->met = seq;
    return f;
}

enum kafka_verdict kafka_judge(struct cdcd_sink *s, const struct cdcd_record *r,
                               struct kafka_topic *kt, uint64_t seq, rd_kafka_resp_err_t *code,
                               struct cdcd_error *err)
{
    if (!r->key.ptr && kt->compacted) {
        cdcd_error_set(err, CDCD_ERR_CONFIG,
                       "topic %s is compacted, and the broker refuses a record without a key "
                       "there; give the table a key (message.key.columns), or run: "
                       "kafka-configs.sh --bootstrap-server %s --alter --topic %s --add-config "
                       "cleanup.policy=delete",
                       kt->name, s->config->bootstrap, kt->name);
        return KAFKA_FAIL;
    }
    if (!s->nrefusals && !kt->refused_until)
        return KAFKA_SEND;
    struct kafka_refusal *f = refusal_find_record(s, r, kt->name);
    if (f)
        f->met = seq;
    else if (kt->refused_until && kt->max_bytes && !s->compressed &&
             (int64_t)(r->key.len + r->value.len) > kt->max_bytes &&
             s->config->policy != KAFKA_STOP && cdcd_now_ms() < kt->refused_until)
        f = refuse_now(s, r, kt, seq, RD_KAFKA_RESP_ERR_MSG_SIZE_TOO_LARGE);
    if (!f)
        return KAFKA_SEND;
    *code = f->code;
    if (s->config->policy == KAFKA_STOP) {
        /* The report of its refusal came late, while the session was given up for another
         * reason, so that nobody has been told yet. */
        refusal_error(s, f, CDCD_ERR_DATA, err);
        return KAFKA_FAIL;
    }
    return by_policy(s);
}

enum kafka_verdict kafka_judge_local(struct cdcd_sink *s, const struct cdcd_record *r,
                                     struct kafka_topic *kt, uint64_t seq, rd_kafka_resp_err_t code,
                                     struct cdcd_error *err)
{
    struct kafka_refusal *f = refuse_now(s, r, kt, seq, code);
    if (s->config->policy != KAFKA_STOP)
        return by_policy(s);
    refusal_error(s, f, CDCD_ERR_DATA, err);
    return KAFKA_FAIL;
}

void kafka_refusals_settle(struct cdcd_sink *s, uint64_t seq)
{
    size_t kept = 0;
    bool skip = s->config->policy == KAFKA_SKIP;
    for (size_t i = 0; i < s->nrefusals; i++) {
        struct kafka_refusal *f = &s->refusals[i];
        if (!f->met || f->met > seq) {
            s->refusals[kept++] = *f;
            continue;
        }
        cdcd_warn("kafka", "topic %s: the record with key %s (%zu bytes, cdcd.pos %s) was %s%s: %s",
                  f->topic, f->key, f->bytes, f->pos, skip ? "skipped" : "written to topic ",
                  skip ? "" : s->dead_letter_name, rd_kafka_err2str(f->code));
        *(skip ? &s->counters.skipped : &s->counters.dead_lettered) += 1;
        refusal_free(f);
    }
    s->nrefusals = kept;
}
