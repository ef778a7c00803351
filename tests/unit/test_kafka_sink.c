/* The Kafka sink against librdkafka's mock cluster: no service is needed. */
#include "kafka_test.h"

#include <librdkafka/rdkafka_mock.h>

/* Numbers of the Kafka protocol (kafka.apache.org/protocol, "Api Keys"). */
enum { API_PRODUCE = 0, API_INIT_PRODUCER_ID = 22, API_ADD_PARTITIONS = 24, API_END_TXN = 26 };

struct mock {
    struct bench bench;
    rd_kafka_t *rk; /* carries the cluster */
    rd_kafka_mock_cluster_t *cluster;
    const char *bootstrap;
};

static void no_log(const rd_kafka_t *rk, int level, const char *facility, const char *text)
{
    (void)rk, (void)level, (void)facility, (void)text;
}

/* The mock cluster has no CreateTopics. */
static void make_topics(struct mock *m)
{
    char name[128];
    for (size_t i = 0; i < MAX_TOPICS; i++)
        rd_kafka_mock_topic_create(m->cluster, m->bench.topic_names[i], 1, 1);
    snprintf(name, sizeof name, "__cdcd.position.%s", m->bench.pipeline);
    rd_kafka_mock_topic_create(m->cluster, name, 1, 1);
    snprintf(name, sizeof name, "__cdcd.notes.%s", m->bench.pipeline);
    rd_kafka_mock_topic_create(m->cluster, name, 1, 1);
    snprintf(name, sizeof name, "%s.dead-letter", m->bench.prefix);
    rd_kafka_mock_topic_create(m->cluster, name, 1, 1);
}

static int setup(void **state)
{
    struct mock *m = cdcd_xcalloc(1, sizeof *m);
    char text[256];
    rd_kafka_conf_t *conf = rd_kafka_conf_new();
    rd_kafka_conf_set_log_cb(conf, no_log);
    m->rk = rd_kafka_new(RD_KAFKA_PRODUCER, conf, text, sizeof text);
    assert_non_null(m->rk);
    m->cluster = rd_kafka_mock_cluster_new(m->rk, 1);
    assert_non_null(m->cluster);
    m->bootstrap = rd_kafka_mock_cluster_bootstraps(m->cluster);
    bench_init(&m->bench, m->bootstrap);
    make_topics(m);
    *state = m;
    return 0;
}

static int teardown(void **state)
{
    struct mock *m = *state;
    bench_free(&m->bench);
    rd_kafka_mock_cluster_destroy(m->cluster);
    rd_kafka_destroy(m->rk);
    free(m);
    return 0;
}

static void push_errors(struct mock *m, int16_t api, size_t n, rd_kafka_resp_err_t err)
{
    rd_kafka_resp_err_t errors[16];
    assert_true(n <= 16);
    for (size_t i = 0; i < n; i++)
        errors[i] = err;
    rd_kafka_mock_push_request_errors_array(m->cluster, api, n, errors);
}

/* ---- plain delivery ---- */

static void check_record(const rd_kafka_message_t *m, long n, size_t bytes)
{
    rd_kafka_headers_t *headers;
    rd_kafka_timestamp_type_t type;
    const void *value;
    size_t len;
    char key[32], pos[32];
    int klen = snprintf(key, sizeof key, "{\"id\":%ld}", n);
    snprintf(pos, sizeof pos, "%016lx", n);
    assert_int_equal(m->key_len, klen);
    assert_memory_equal(m->key, key, (size_t)klen);
    assert_int_equal(m->len, bytes);
    assert_int_equal(rd_kafka_message_timestamp(m, &type), INT64_C(1700000000000) + n);
    assert_int_equal(rd_kafka_message_headers(m, &headers), RD_KAFKA_RESP_ERR_NO_ERROR);
    assert_int_equal(rd_kafka_header_get_last(headers, "cdcd.pos", &value, &len),
                     RD_KAFKA_RESP_ERR_NO_ERROR);
    assert_int_equal(len, 16);
    assert_memory_equal(value, pos, 16);
}

static void delivers(struct mock *m, int delivery)
{
    struct bench *t = &m->bench;
    t->config.delivery = delivery;
    t->tombstone = 7;
    bench_open(t);
    assert_int_equal(bench_load(t), 0);
    if (bench_run(t, 1, 95) != CDCD_OK)
        fail_msg("%s", t->err.text);
    assert_int_equal(bench_flush(t), CDCD_OK);
    assert_int_equal(t->made, t->given_back);
    struct seen s = seen_read(m->bootstrap, t->topic_names[0]);
    assert_int_equal(s.count, 95);
    for (long n = 1; n <= 95; n++)
        check_record(s.messages[n - 1], n, n == 7 ? 0 : 100);
    assert_null(s.messages[6]->payload);
    seen_free(&s);
    bench_close(t);
    bench_open(t);
    assert_int_equal(bench_load(t), 95);
}

static void exactly_once(void **state)
{
    delivers(*state, CDCD_EXACTLY_ONCE);
}

static void at_least_once(void **state)
{
    delivers(*state, CDCD_AT_LEAST_ONCE);
}

static void at_most_once(void **state)
{
    delivers(*state, CDCD_AT_MOST_ONCE);
}

/* Loads check that the notes are those of the state. */
static void notes_go_with_the_state(void **state)
{
    struct mock *m = *state;
    struct bench *t = &m->bench;
    static const int deliveries[] = {CDCD_EXACTLY_ONCE, CDCD_AT_LEAST_ONCE, CDCD_AT_MOST_ONCE};
    long n = 0;
    t->noted = true;
    for (size_t i = 0; i < 6; i++) {
        t->config.delivery = deliveries[i % 3];
        bench_open(t);
        assert_int_equal(bench_load(t), n);
        assert_int_equal(bench_run(t, n + 1, n + 130), CDCD_OK);
        n += 130;
        assert_int_equal(bench_load(t), n);
        assert_int_equal(bench_run(t, n + 1, n + 20), CDCD_OK);
        n += 20;
        /* Written and not waited for: the close may or may not have it delivered. */
        bench_write(t, n + 1, n + 10);
        OPS->poll(t->sink, 0, true, false, &t->err);
        bench_close(t);
        bench_open(t);
        long held = bench_load(t);
        assert_true(held == n || held == n + 10);
        n = held;
        bench_close(t);
    }
}

/* A broker that refuses some requests: every session begins with notes that fit. Not in
 * transactions: here what was aborted stays visible. */
static void notes_survive_errors(void **state)
{
    struct mock *m = *state;
    struct bench *t = &m->bench;
    static const int deliveries[] = {CDCD_AT_LEAST_ONCE, CDCD_AT_MOST_ONCE};
    t->noted = true;
    long n = 0;
    for (size_t i = 0; i < 2; i++) {
        t->config.delivery = deliveries[i];
        bench_open(t);
        bench_load(t);
        for (int round = 0; round < 4; round++, n += 50) {
            push_errors(m, API_PRODUCE, (size_t)round + 1,
                        RD_KAFKA_RESP_ERR_TOPIC_AUTHORIZATION_FAILED);
            if (bench_run(t, n + 1, n + 50) != CDCD_OK) {
                rd_kafka_mock_clear_request_errors(m->cluster, API_PRODUCE);
                bench_run_retrying(t, bench_load(t) + 1, n + 50, 10);
            }
            rd_kafka_mock_clear_request_errors(m->cluster, API_PRODUCE);
        }
        assert_int_equal(bench_load(t), n);
        bench_close(t);
    }
}

static void empty_batches(void **state)
{
    struct mock *m = *state;
    for (int delivery = CDCD_EXACTLY_ONCE; delivery <= CDCD_AT_MOST_ONCE; delivery++) {
        struct bench *t = &m->bench;
        t->config.delivery = delivery;
        bench_open(t);
        bench_load(t);
        struct cdcd_batch *b = cdcd_batch_new();
        b->seq = ++t->seq;
        t->made++;
        assert_int_equal(OPS->write(t->sink, b, &t->err), CDCD_OK);
        assert_int_equal(bench_flush(t), CDCD_OK);
        assert_int_equal(t->durable, 1);
        long mark = 1000 + delivery;
        assert_int_equal(bench_write(t, mark + 1, mark), CDCD_OK);
        assert_int_equal(bench_flush(t), CDCD_OK);
        assert_int_equal(t->durable, 2);
        bench_close(t);
        bench_open(t);
        assert_int_equal(bench_load(t), mark);
        bench_close(t);
    }
}

static void many_topics(void **state)
{
    struct mock *m = *state;
    struct bench *t = &m->bench;
    struct cdcd_topic *list[3] = {&t->topics[0], &t->topics[1], &t->topics[1]};
    t->ntopics = MAX_TOPICS;
    bench_open(t);
    bench_load(t);
    assert_int_equal(OPS->prepare(t->sink, list, 3, &t->err), CDCD_OK);
    assert_int_equal(bench_run(t, 1, 400), CDCD_OK);
    for (size_t i = 0; i < MAX_TOPICS; i++) {
        struct seen s = seen_read(m->bootstrap, t->topic_names[i]);
        assert_int_equal(s.count, 100);
        seen_free(&s);
    }
}

static void more_makes_larger_transactions(void **state)
{
    struct mock *m = *state;
    struct bench *t = &m->bench;
    bench_open(t);
    bench_load(t);
    assert_int_equal(bench_write(t, 1, 10), CDCD_OK);
    int64_t start = cdcd_now_ms();
    while (t->durable == 0 && cdcd_now_ms() - start < 5000) {
        assert_int_equal(OPS->poll(t->sink, 5, true, false, &t->err), CDCD_OK);
        usleep(1000);
    }
    int64_t took = cdcd_now_ms() - start;
    assert_int_equal(t->durable, 1);
    assert_true(took >= 450);
    /* Nothing more waits: at once. Of several, since one may meet a machine that is busy. */
    int64_t quickest = INT64_MAX;
    for (int i = 1; i <= 10; i++) {
        assert_int_equal(bench_write(t, i * 10 + 1, i * 10 + 10), CDCD_OK);
        start = cdcd_now_ms();
        while (t->durable == (uint64_t)i)
            assert_int_equal(OPS->poll(t->sink, 5, false, false, &t->err), CDCD_OK);
        took = cdcd_now_ms() - start;
        quickest = took < quickest ? took : quickest;
    }
    assert_true(quickest < 450);
}

/* ---- errors of the broker ---- */

static void retriable_errors_are_retried(void **state)
{
    struct mock *m = *state;
    struct bench *t = &m->bench;
    for (int delivery = CDCD_EXACTLY_ONCE; delivery <= CDCD_AT_MOST_ONCE; delivery++) {
        t->config.delivery = delivery;
        bench_open(t);
        long n = bench_load(t);
        push_errors(m, API_PRODUCE, 3, RD_KAFKA_RESP_ERR_NOT_ENOUGH_REPLICAS);
        if (delivery == CDCD_EXACTLY_ONCE) {
            push_errors(m, API_ADD_PARTITIONS, 2, RD_KAFKA_RESP_ERR_COORDINATOR_LOAD_IN_PROGRESS);
            push_errors(m, API_END_TXN, 2, RD_KAFKA_RESP_ERR_NOT_COORDINATOR);
        }
        if (bench_run(t, n + 1, n + 50) != CDCD_OK)
            fail_msg("%s", t->err.text);
        assert_int_equal(bench_flush(t), CDCD_OK);
        bench_close(t);
    }
    assert_log(m->bootstrap, t->topic_names[0], 1, 150, 0);
}

static void abortable_error_is_a_retry(void **state)
{
    struct mock *m = *state;
    struct bench *t = &m->bench;
    bench_open(t);
    bench_load(t);
    assert_int_equal(bench_run(t, 1, 20), CDCD_OK);
    push_errors(m, API_END_TXN, 1, RD_KAFKA_RESP_ERR_INVALID_PRODUCER_ID_MAPPING);
    assert_int_equal(bench_run(t, 21, 40), CDCD_ERROR);
    assert_int_equal(t->err.class, CDCD_ERR_RETRY);
    assert_int_equal(t->durable, 2);
    /* Nothing works until the session is begun anew. */
    assert_int_equal(bench_write(t, 41, 50), CDCD_ERROR);
    assert_int_equal(t->err.class, CDCD_ERR_RETRY);
    /* The mock shows aborted records too, so its position is the aborted one: not compared. */
    long n = bench_load(t);
    assert_int_equal(bench_run(t, n + 1, n + 20), CDCD_OK);
}

static void authorization_is_config(void **state)
{
    struct mock *m = *state;
    struct bench *t = &m->bench;
    bench_open(t);
    bench_load(t);
    push_errors(m, API_ADD_PARTITIONS, 1, RD_KAFKA_RESP_ERR_TOPIC_AUTHORIZATION_FAILED);
    assert_int_equal(bench_run(t, 1, 20), CDCD_ERROR);
    /* librdkafka 2.0 reports it as an error of the transaction. */
    assert_true(t->err.class == CDCD_ERR_CONFIG || t->err.class == CDCD_ERR_RETRY);
    assert_int_equal(t->durable, 0);
    bench_close(t);
    bench_open(t);
    push_errors(m, API_INIT_PRODUCER_ID, 1,
                RD_KAFKA_RESP_ERR_TRANSACTIONAL_ID_AUTHORIZATION_FAILED);
    assert_int_equal(bench_try_load(t), -1);
    assert_int_equal(t->err.class, CDCD_ERR_CONFIG);
    assert_non_null(strstr(t->err.text, "kafka-acls.sh"));
    assert_true(bench_load(t) >= 0);
}

/* The broker refuses a set: sent again one by one, the refused record stops the pipeline. */
static void refusal_stops(void **state)
{
    struct mock *m = *state;
    struct bench *t = &m->bench;
    bench_open(t);
    bench_load(t);
    push_errors(m, API_PRODUCE, 1, RD_KAFKA_RESP_ERR_MSG_SIZE_TOO_LARGE);
    assert_int_equal(bench_run(t, 1, 10), CDCD_ERROR);
    assert_int_equal(t->err.class, CDCD_ERR_RETRY);
    assert_non_null(strstr(t->err.text, "one by one"));
    bench_load(t);
    push_errors(m, API_PRODUCE, 1, RD_KAFKA_RESP_ERR_MSG_SIZE_TOO_LARGE);
    assert_int_equal(bench_run(t, 1, 10), CDCD_ERROR);
    assert_int_equal(t->err.class, CDCD_ERR_DATA);
    assert_non_null(strstr(t->err.text, "max.message.bytes"));
    /* The error hits whatever is sent first: the data or the position. */
    assert_true(strstr(t->err.text, "{\"id\":") || strstr(t->err.text, "__cdcd.position"));
    assert_int_equal(t->durable, 0);
}

static void refusal_is_skipped(void **state)
{
    struct mock *m = *state;
    struct bench *t = &m->bench;
    t->config.policy = KAFKA_SKIP;
    t->config.delivery = CDCD_AT_LEAST_ONCE; /* the mock does not hide aborted records */
    t->value_bytes = 2000;
    bench_property(t, "batch.size", "1000"); /* every record is alone in its set */
    bench_open(t);
    bench_load(t);
    push_errors(m, API_PRODUCE, 1, RD_KAFKA_RESP_ERR_MSG_SIZE_TOO_LARGE);
    assert_int_equal(bench_run(t, 1, 10), CDCD_ERROR);
    assert_int_equal(t->err.class, CDCD_ERR_RETRY);
    assert_non_null(strstr(t->err.text, "{\"id\":1}"));
    assert_int_equal(bench_load(t), 0);
    assert_int_equal(bench_run(t, 1, 10), CDCD_OK);
    assert_int_equal(t->durable, 1);
    assert_int_equal(t->sink->counters.skipped, 1);
    assert_int_equal(t->sink->nrefusals, 0);
    struct seen s = seen_read(m->bootstrap, t->topic_names[0]);
    for (size_t i = 0; i < s.count; i++)
        assert_int_not_equal(s.n[i], 1);
    seen_free(&s);
}

/* A record over librdkafka's own limit never leaves. */
static void local_limit(void **state)
{
    struct mock *m = *state;
    struct bench *t = &m->bench;
    bench_property(t, "message.max.bytes", "5000");
    t->large = 15;
    t->large_bytes = 6000;
    bench_open(t);
    bench_load(t);
    assert_int_equal(bench_run(t, 1, 10), CDCD_OK);
    assert_int_equal(bench_run(t, 11, 20), CDCD_ERROR);
    assert_int_equal(t->err.class, CDCD_ERR_DATA);
    assert_non_null(strstr(t->err.text, "{\"id\":15}"));
    bench_close(t);
    t->config.policy = KAFKA_DEAD_LETTER;
    bench_open(t);
    bench_load(t);
    if (bench_run(t, 21, 30) != CDCD_OK)
        fail_msg("%s", t->err.text);
    t->large = 33;
    if (bench_run(t, 31, 40) != CDCD_OK)
        fail_msg("%s", t->err.text);
    assert_int_equal(t->sink->counters.dead_lettered, 1);
}

/* ---- instances and outages ---- */

/* The mock does not fence by itself; the errors are those of a broker that does. */
static void second_instance_fences(void **state)
{
    struct mock *m = *state;
    struct bench *t = &m->bench, other;
    bench_open(t);
    bench_load(t);
    assert_int_equal(bench_run(t, 1, 20), CDCD_OK);
    bench_init(&other, m->bootstrap);
    snprintf(other.pipeline, sizeof other.pipeline, "%s", t->pipeline);
    bench_open(&other);
    assert_int_equal(bench_load(&other), 20);
    /* For the data and for the position. */
    push_errors(m, API_PRODUCE, 2, RD_KAFKA_RESP_ERR_INVALID_PRODUCER_EPOCH);
    assert_int_equal(bench_run(t, 21, 30), CDCD_ERROR);
    if (t->err.class != CDCD_ERR_LOSS)
        fail_msg("%s", t->err.text);
    assert_non_null(strstr(t->err.text, "another instance"));
    bench_free(&other);
}

/* The same errors when nobody else took over: the producer slept too long. */
static void expired_transaction(void **state)
{
    static const struct {
        int16_t api;
        rd_kafka_resp_err_t err;
    } cases[] = {
        {API_PRODUCE, RD_KAFKA_RESP_ERR_INVALID_PRODUCER_EPOCH},
        {API_END_TXN, RD_KAFKA_RESP_ERR_PRODUCER_FENCED},
        {API_END_TXN, RD_KAFKA_RESP_ERR_INVALID_TXN_STATE},
    };
    struct mock *m = *state;
    struct bench *t = &m->bench;
    bench_open(t);
    long n = bench_load(t);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        push_errors(m, cases[i].api, 1, cases[i].err);
        assert_int_equal(bench_run(t, n + 1, n + 10), CDCD_ERROR);
        if (t->err.class != CDCD_ERR_RETRY)
            fail_msg("%zu: %s", i, t->err.text);
        n = bench_load(t);
        assert_int_equal(bench_run(t, n + 1, n + 10), CDCD_OK);
        n += 10;
    }
}

static void outage_waits(void **state)
{
    struct mock *m = *state;
    struct bench *t = &m->bench;
    bench_open(t);
    bench_load(t);
    assert_int_equal(bench_run(t, 1, 20), CDCD_OK);
    rd_kafka_mock_broker_set_down(m->cluster, 1);
    assert_int_equal(bench_write(t, 21, 30), CDCD_OK);
    int64_t start = cdcd_now_ms(), quickest = INT64_MAX;
    while (cdcd_now_ms() - start < 1500) {
        int64_t before = cdcd_now_ms();
        if (OPS->poll(t->sink, 5, false, false, &t->err) == CDCD_ERROR)
            fail_msg("%s", t->err.text);
        int64_t took = cdcd_now_ms() - before;
        quickest = took < quickest ? took : quickest;
    }
    assert_true(quickest < 1000); /* an outage does not hold up the caller */
    assert_int_equal(t->durable, 2);
    rd_kafka_mock_broker_set_up(m->cluster, 1);
    while (t->durable < 3 && cdcd_now_ms() - start < 30000)
        if (OPS->poll(t->sink, 5, false, false, &t->err) == CDCD_ERROR)
            fail_msg("%s", t->err.text);
    assert_int_equal(t->durable, 3);
    assert_log(m->bootstrap, t->topic_names[0], 1, 30, 0);
}

/* Closing in an outage gives every batch back and does not hang. */
static void close_in_outage(void **state)
{
    struct mock *m = *state;
    struct bench *t = &m->bench;
    bench_open(t);
    bench_load(t);
    assert_int_equal(bench_run(t, 1, 10), CDCD_OK);
    rd_kafka_mock_broker_set_down(m->cluster, 1);
    for (int i = 1; i < 20; i++)
        assert_int_equal(bench_write(t, i * 10 + 1, i * 10 + 10), CDCD_OK);
    int64_t start = cdcd_now_ms();
    bench_close(t);
    assert_true(cdcd_now_ms() - start < 60000); /* not until the broker is back */
    assert_int_equal(t->durable, 1);
    rd_kafka_mock_broker_set_up(m->cluster, 1);
}

static void unreachable_broker(void **state)
{
    struct mock *m = *state;
    struct bench *t = &m->bench;
    t->config.bootstrap = (char *)(uintptr_t) "127.0.0.1:1";
    bench_open(t);
    assert_int_equal(bench_try_load(t), -1);
    assert_int_equal(t->err.class, CDCD_ERR_RETRY);
    assert_non_null(strstr(t->err.text, "127.0.0.1:1"));
    assert_int_equal(bench_try_load(t), -1);
}

static void full_queue_keeps_batches(void **state)
{
    struct mock *m = *state;
    struct bench *t = &m->bench;
    bench_property(t, "queue.buffering.max.messages", "25");
    bench_open(t);
    bench_load(t);
    assert_int_equal(bench_run(t, 1, 500), CDCD_OK);
    assert_int_equal(bench_flush(t), CDCD_OK);
    assert_log(m->bootstrap, t->topic_names[0], 1, 500, 0);
}

/* ---- configuration ---- */

static void bad_properties(void **state)
{
    static const struct {
        const char *name, *value, *says;
    } cases[] = {
        {"no.such.thing", "1", "sink.kafka.properties.no.such.thing"},
        {"linger.ms", "soon", "sink.kafka.properties.linger.ms"},
        {"transactional.id", "x", "sink.kafka.transactional.id"},
        {"enable.idempotence", "false", "sink.kafka.delivery"},
    };
    struct mock *m = *state;
    struct bench *t = &m->bench;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        t->config.properties.n = 0;
        bench_property(t, cases[i].name, cases[i].value);
        assert_int_equal(OPS->open(&t->sink, &t->config, &t->env, &t->err), CDCD_ERROR);
        assert_int_equal(t->err.class, CDCD_ERR_CONFIG);
        assert_non_null(strstr(t->err.text, cases[i].says));
    }
    /* Only librdkafka as a whole can tell that these do not go together. */
    t->config.properties.n = 0;
    bench_property(t, "acks", "1");
    bench_open(t);
    assert_int_equal(bench_try_load(t), -1);
    assert_int_equal(t->err.class, CDCD_ERR_CONFIG);
}

struct findings {
    unsigned n[3];
};

static void finding(void *ctx, enum cdcd_check_level level, const char *what, const char *text,
                    const char *mend)
{
    (void)what, (void)text, (void)mend;
    ((struct findings *)ctx)->n[level]++;
}

static void checks(void **state)
{
    struct mock *m = *state;
    struct bench *t = &m->bench;
    struct findings f = {{0}};
    struct cdcd_report report = {&f, finding};
    assert_int_equal(OPS->check(&t->config, &t->env, &report, &t->err), CDCD_OK);
    assert_int_equal(f.n[CDCD_CHECK_FAIL], 0);
    assert_true(f.n[CDCD_CHECK_OK] >= 3);
    t->config.bootstrap = (char *)(uintptr_t) "127.0.0.1:1";
    assert_int_equal(OPS->check(&t->config, &t->env, &report, &t->err), CDCD_OK);
    assert_int_equal(f.n[CDCD_CHECK_FAIL], 1);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(exactly_once),
        TEST(at_least_once),
        TEST(at_most_once),
        TEST(notes_go_with_the_state),
        TEST(notes_survive_errors),
        TEST(empty_batches),
        TEST(many_topics),
        TEST(more_makes_larger_transactions),
        TEST(retriable_errors_are_retried),
        TEST(abortable_error_is_a_retry),
        TEST(authorization_is_config),
        TEST(refusal_stops),
        TEST(refusal_is_skipped),
        TEST(local_limit),
        TEST(second_instance_fences),
        TEST(expired_transaction),
        TEST(outage_waits),
        TEST(close_in_outage),
        TEST(unreachable_broker),
        TEST(full_queue_keeps_batches),
        TEST(bad_properties),
        TEST(checks),
    };
    cdcd_log_setup(getenv("CDCD_TEST_DEBUG") ? CDCD_LOG_DEBUG : CDCD_LOG_ERROR, false, "");
    if (getenv("CDCD_TEST_FILTER"))
        cmocka_set_test_filter(getenv("CDCD_TEST_FILTER"));
    return cmocka_run_group_tests(tests, NULL, NULL);
}
