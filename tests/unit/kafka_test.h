/*
 * What the tests of the Kafka sink share: a pipeline's end of the sink contract, and a reader.
 * A "log" of numbered records stands for the source; the state is the number of the last one,
 * so after a failure the test goes on from what load says, like a pipeline.
 */
#ifndef CDCD_TEST_KAFKA_TEST_H
#define CDCD_TEST_KAFKA_TEST_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "kafka.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

extern const struct cdcd_plugin cdcd_plugin_kafka;
#define OPS (cdcd_plugin_kafka.sink)

#define PER_BATCH  10
#define MAX_TOPICS 4

struct bench {
    struct kafka_config config;
    struct cdcd_strpair properties[8];
    struct cdcd_sink_env env;
    char pipeline[64], prefix[64];
    struct cdcd_sink *sink;
    struct cdcd_topic topics[MAX_TOPICS];
    char topic_names[MAX_TOPICS][96];
    size_t ntopics;
    struct cdcd_error err;
    struct cdcd_buf state;
    struct cdcd_notes *notes;
    uint64_t seq, durable;
    unsigned made, given_back;
    size_t value_bytes; /* of ordinary records */
    long large;         /* number of a record of large_bytes; 0: none */
    size_t large_bytes;
    long tombstone; /* number of a record without value; 0: none */
    bool noted;     /* batches have notes; they must end at multiples of PER_BATCH */
};

static inline void bench_batch_done(void *ctx, struct cdcd_batch *b)
{
    ((struct bench *)ctx)->given_back++;
    cdcd_batch_free(b);
}

static inline void bench_durable(void *ctx, uint64_t seq)
{
    struct bench *t = ctx;
    assert_true(seq > t->durable);
    assert_true(seq <= t->seq);
    t->durable = seq;
}

static inline void bench_init(struct bench *t, const char *bootstrap)
{
    static unsigned serial;
    memset(t, 0, sizeof *t);
    snprintf(t->pipeline, sizeof t->pipeline, "p%ld-%u", (long)getpid(), ++serial);
    snprintf(t->prefix, sizeof t->prefix, "t%ld-%u", (long)getpid(), serial);
    t->config = (struct kafka_config){.bootstrap = (char *)(uintptr_t)bootstrap,
                                      .delivery = CDCD_EXACTLY_ONCE,
                                      .partitions = 1,
                                      .replication = -1,
                                      .cleanup_policy = (char *)(uintptr_t) "compact",
                                      .transaction_ms = 500,
                                      .transaction_bytes = 128 << 20};
    t->config.properties.items = t->properties;
    t->env = (struct cdcd_sink_env){.pipeline = t->pipeline,
                                    .topic_prefix = t->prefix,
                                    .ctx = t,
                                    .batch_done = bench_batch_done,
                                    .durable = bench_durable};
    t->ntopics = 1;
    t->value_bytes = 100;
    for (size_t i = 0; i < MAX_TOPICS; i++) {
        snprintf(t->topic_names[i], sizeof t->topic_names[i], "%s.%zu", t->prefix, i);
        t->topics[i] = (struct cdcd_topic){.name = cdcd_slice_str(t->topic_names[i]),
                                           .keyed = true};
    }
    cdcd_buf_init(&t->state, 0);
}

static inline void bench_property(struct bench *t, const char *name, const char *value)
{
    t->properties[t->config.properties.n++] = (struct cdcd_strpair){(char *)(uintptr_t)name,
                                                                    (char *)(uintptr_t)value};
}

static inline void bench_open(struct bench *t)
{
    if (OPS->open(&t->sink, &t->config, &t->env, &t->err) != CDCD_OK)
        fail_msg("%s", t->err.text);
}

static inline void bench_close(struct bench *t)
{
    OPS->close(t->sink);
    t->sink = NULL;
    assert_int_equal(t->made, t->given_back);
}

static inline void bench_free(struct bench *t)
{
    if (t->sink)
        bench_close(t);
    cdcd_buf_free(&t->state);
    cdcd_notes_free(t->notes);
}

/* ---- notes: what the source of the log would remember ---- */

/* The batch that ends at n sets "always" and one of seven keys, and forgets another. */
static inline void bench_note(struct cdcd_batch *b, long n)
{
    char key[32], value[64];
    int len = snprintf(value, sizeof value, "{\"n\":%ld}", n);
    cdcd_batch_note(b, cdcd_slice_str("always"), (struct cdcd_slice){value, (size_t)len});
    snprintf(key, sizeof key, "[\"db\",\"t/%ld\"]", n / PER_BATCH % 7);
    cdcd_batch_note(b, cdcd_slice_str(key),
                    (struct cdcd_slice){value, n / PER_BATCH % 5 ? (size_t)len : 0});
    snprintf(key, sizeof key, "[\"db\",\"t/%ld\"]", (n / PER_BATCH + 3) % 7);
    cdcd_batch_note(b, cdcd_slice_str(key), (struct cdcd_slice){NULL, 0});
}

/* What was loaded are exactly the notes of the state of record n. */
static inline void assert_notes(const struct bench *t, long n)
{
    struct cdcd_notes *want = cdcd_notes_new();
    struct cdcd_batch *b = cdcd_batch_new();
    for (long to = PER_BATCH; to <= n; to += PER_BATCH)
        bench_note(b, to);
    for (const struct cdcd_note *note = b->notes; note; note = note->next)
        cdcd_notes_set(want, note->key, note->value);
    cdcd_batch_free(b);
    if (cdcd_notes_count(t->notes) != cdcd_notes_count(want))
        fail_msg("%zu notes at %ld, not %zu", cdcd_notes_count(t->notes), n,
                 cdcd_notes_count(want));
    for (size_t i = 0; i < cdcd_notes_count(want); i++) {
        struct cdcd_slice key, value, is_key, is_value;
        cdcd_notes_at(want, i, &key, &value);
        cdcd_notes_at(t->notes, i, &is_key, &is_value);
        if (!cdcd_slice_eq(key, is_key) || !cdcd_slice_eq(value, is_value))
            fail_msg("at %ld: %.*s is %.*s, not %.*s", n, (int)is_key.len, is_key.ptr,
                     (int)is_value.len, is_value.ptr, (int)value.len, value.ptr);
    }
    cdcd_notes_free(want);
}

/* Loads; the number of the last record that the sink holds, or -1. */
static inline long bench_try_load(struct bench *t)
{
    long n = 0;
    t->seq = t->durable = 0;
    if (!t->notes)
        t->notes = cdcd_notes_new();
    cdcd_notes_clear(t->notes);
    if (OPS->load(t->sink, &t->state, t->notes, &t->err) != CDCD_OK)
        return -1;
    assert_int_equal(t->made, t->given_back);
    if (t->state.len)
        assert_int_equal(sscanf(cdcd_buf_cstr(&t->state), "{\"n\":%ld}", &n), 1);
    if (t->noted)
        assert_notes(t, n);
    return n;
}

static inline long bench_load(struct bench *t)
{
    long n = bench_try_load(t);
    if (n < 0)
        fail_msg("%s", t->err.text);
    return n;
}

static inline void bench_record(struct bench *t, struct cdcd_batch *b, long n)
{
    struct cdcd_record *r = cdcd_batch_record(b);
    struct cdcd_header *h = cdcd_arena_alloc(&b->arena, sizeof *h);
    size_t bytes = n == t->large ? t->large_bytes : t->value_bytes;
    char text[64];
    int len = snprintf(text, sizeof text, "{\"id\":%ld}", n);
    r->topic = &t->topics[(size_t)n % t->ntopics];
    r->key = (struct cdcd_slice){cdcd_arena_dup(&b->arena, text, (size_t)len), (size_t)len};
    if (n != t->tombstone) {
        /* Noise, so that compression does not help. */
        char *value = cdcd_arena_alloc(&b->arena, bytes);
        uint32_t x = (uint32_t)n * 2654435761u + 1;
        for (size_t i = 0; i < bytes; i++) {
            x = x * 1664525u + 1013904223u;
            value[i] = (char)('!' + (x >> 24) % 90);
        }
        r->value = (struct cdcd_slice){value, bytes};
    }
    len = snprintf(text, sizeof text, "%016lx", n);
    h[0] = (struct cdcd_header){
        {"cdcd.pos", 8}, {cdcd_arena_dup(&b->arena, text, (size_t)len), (size_t)len}, false};
    r->headers = h;
    r->nheaders = 1;
    r->timestamp_ms = INT64_C(1700000000000) + n;
    b->bytes += r->key.len + r->value.len;
}

/* Writes records from..to as one batch with the state {"n":to}. */
static inline enum cdcd_rc bench_write(struct bench *t, long from, long to)
{
    struct cdcd_batch *b = cdcd_batch_new();
    char text[64];
    int len = snprintf(text, sizeof text, "{\"n\":%ld}", to);
    for (long n = from; n <= to; n++)
        bench_record(t, b, n);
    if (t->noted)
        bench_note(b, to);
    b->state = (struct cdcd_slice){cdcd_arena_dup(&b->arena, text, (size_t)len), (size_t)len};
    b->seq = ++t->seq;
    t->made++;
    return OPS->write(t->sink, b, &t->err);
}

static inline enum cdcd_rc bench_flush(struct bench *t)
{
    return OPS->poll(t->sink, 0, false, true, &t->err);
}

/* Like a pipeline: from record `from` to `to`, batch by batch, until all is durable. Returns
 * what went wrong. */
static inline enum cdcd_rc bench_run(struct bench *t, long from, long to)
{
    for (; from <= to; from += PER_BATCH) {
        long last = from + PER_BATCH - 1 < to ? from + PER_BATCH - 1 : to;
        if (bench_write(t, from, last) != CDCD_OK ||
            OPS->poll(t->sink, 0, last < to, false, &t->err) == CDCD_ERROR)
            return CDCD_ERROR;
    }
    while (t->durable < t->seq)
        if (OPS->poll(t->sink, 5, false, false, &t->err) == CDCD_ERROR)
            return CDCD_ERROR;
    return CDCD_OK;
}

/* As the pipeline does: after a RETRY error load, and go on from there. */
static inline void bench_run_retrying(struct bench *t, long from, long to, unsigned attempts)
{
    while (bench_run(t, from, to) != CDCD_OK) {
        do {
            if (t->err.class != CDCD_ERR_RETRY || attempts-- == 0)
                fail_msg("%s: %s", cdcd_error_class_name(t->err.class), t->err.text);
            usleep(100000);
            from = bench_try_load(t) + 1;
        } while (from == 0);
    }
}

/* ---- reading back ---- */

struct seen {
    long *n; /* numbers in the order of their offsets */
    size_t count, cap;
    rd_kafka_message_t **messages; /* kept until seen_free */
    rd_kafka_t *rk;
    rd_kafka_topic_t *rkt;
};

static inline void seen_set(rd_kafka_conf_t *conf, const char *name, const char *value)
{
    char text[256];
    if (rd_kafka_conf_set(conf, name, value, text, sizeof text) != RD_KAFKA_CONF_OK)
        fail_msg("%s", text);
}

static inline void seen_add(struct seen *s, rd_kafka_message_t *m)
{
    if (s->count == s->cap) {
        s->cap = s->cap ? s->cap * 2 : 256;
        s->n = cdcd_xrealloc(s->n, s->cap * sizeof *s->n);
        s->messages = cdcd_xrealloc(s->messages, s->cap * sizeof *s->messages);
    }
    s->n[s->count] = -1;
    if (m->key)
        sscanf(m->key, "{\"id\":%ld}", &s->n[s->count]);
    s->messages[s->count++] = m;
}

/* All committed records of partition 0 of a topic. */
static inline struct seen seen_read(const char *bootstrap, const char *topic)
{
    struct seen s = {0};
    char text[256];
    rd_kafka_conf_t *conf = rd_kafka_conf_new();
    seen_set(conf, "bootstrap.servers", bootstrap);
    seen_set(conf, "isolation.level", "read_committed");
    seen_set(conf, "enable.partition.eof", "true");
    seen_set(conf, "fetch.wait.max.ms", "10");
    seen_set(conf, "fetch.message.max.bytes", "8388608");
    s.rk = rd_kafka_new(RD_KAFKA_CONSUMER, conf, text, sizeof text);
    assert_non_null(s.rk);
    s.rkt = rd_kafka_topic_new(s.rk, topic, NULL);
    assert_int_equal(rd_kafka_consume_start(s.rkt, 0, RD_KAFKA_OFFSET_BEGINNING), 0);
    int64_t give_up = cdcd_now_ms() + 20000;
    for (;;) {
        assert_true(cdcd_now_ms() < give_up);
        rd_kafka_message_t *m = rd_kafka_consume(s.rkt, 0, 500);
        if (m && m->err == RD_KAFKA_RESP_ERR_NO_ERROR) {
            seen_add(&s, m);
            continue;
        }
        bool end = m && m->err == RD_KAFKA_RESP_ERR__PARTITION_EOF;
        if (m)
            rd_kafka_message_destroy(m);
        if (end)
            break;
    }
    rd_kafka_consume_stop(s.rkt, 0);
    return s;
}

static inline void seen_free(struct seen *s)
{
    for (size_t i = 0; i < s->count; i++)
        rd_kafka_message_destroy(s->messages[i]);
    free(s->messages);
    free(s->n);
    rd_kafka_topic_destroy(s->rkt);
    rd_kafka_destroy(s->rk);
}

/* The topic holds exactly from..to in order, each once; `without` is left out. */
static inline void assert_log(const char *bootstrap, const char *topic, long from, long to,
                              long without)
{
    struct seen s = seen_read(bootstrap, topic);
    size_t i = 0;
    for (long n = from; n <= to; n++) {
        if (n == without)
            continue;
        if (i >= s.count || s.n[i] != n)
            fail_msg("record %zu of %s is %ld of %zu, not %ld", i, topic, i < s.count ? s.n[i] : -1,
                     s.count, n);
        i++;
    }
    assert_int_equal(i, s.count);
    seen_free(&s);
}

#endif
