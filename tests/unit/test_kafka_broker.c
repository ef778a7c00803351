/*
 * The Kafka sink against a real broker, whose address is in CDCD_KAFKA_BOOTSTRAP; without it
 * everything is skipped (scripts/test starts one). What only a real broker shows: aborted
 * transactions are invisible, instances are fenced, limits of topics hold.
 */
#include "kafka_test.h"

#include <signal.h>
#include <sys/wait.h>

static const char *bootstrap;

static int setup(void **state)
{
    if (!bootstrap)
        return 0;
    struct bench *t = cdcd_xcalloc(1, sizeof *t);
    bench_init(t, bootstrap);
    *state = t;
    return 0;
}

static int teardown(void **state)
{
    if (*state)
        bench_free(*state);
    free(*state);
    return 0;
}

static struct bench *begin(void **state)
{
    if (!bootstrap)
        skip();
    return *state;
}

/* ---- topics made by hand ---- */

static void make_topic(const char *name, int partitions, const char *const (*set)[2], size_t n)
{
    char text[256];
    rd_kafka_conf_t *conf = rd_kafka_conf_new();
    seen_set(conf, "bootstrap.servers", bootstrap);
    rd_kafka_t *rk = rd_kafka_new(RD_KAFKA_PRODUCER, conf, text, sizeof text);
    rd_kafka_queue_t *q = rd_kafka_queue_new(rk);
    rd_kafka_NewTopic_t *topic = rd_kafka_NewTopic_new(name, partitions, 1, text, sizeof text);
    for (size_t i = 0; i < n; i++)
        rd_kafka_NewTopic_set_config(topic, set[i][0], set[i][1]);
    rd_kafka_CreateTopics(rk, &topic, 1, NULL, q);
    rd_kafka_event_t *ev = rd_kafka_queue_poll(q, 20000);
    assert_non_null(ev);
    assert_int_equal(rd_kafka_event_error(ev), RD_KAFKA_RESP_ERR_NO_ERROR);
    rd_kafka_event_destroy(ev);
    rd_kafka_NewTopic_destroy(topic);
    rd_kafka_queue_destroy(q);
    rd_kafka_destroy(rk);
    usleep(200000);
}

static void topic_limit(const struct bench *t, size_t i, const char *bytes)
{
    const char *const set[][2] = {{"cleanup.policy", "compact"}, {"max.message.bytes", bytes}};
    make_topic(t->topic_names[i], 1, set, 2);
}

/* ---- what is created ---- */

static void topics_are_compacted(void **state)
{
    struct bench *t = begin(state);
    struct kafka_setting set[3];
    t->config.partitions = 3;
    t->topics[1].keyed = false;
    struct cdcd_topic *list[2] = {&t->topics[0], &t->topics[1]};
    bench_open(t);
    assert_int_equal(bench_load(t), 0);
    assert_int_equal(OPS->prepare(t->sink, list, 2, &t->err), CDCD_OK);
    const char *const names[] = {t->topic_names[0], t->topic_names[1], t->sink->position_name};
    kafka_describe(t->sink, names, 3, set);
    assert_string_equal(set[0].cleanup_policy, "compact");
    assert_string_equal(set[1].cleanup_policy, "delete");
    assert_string_equal(set[2].cleanup_policy, "compact");
    /* A broker that has just made the topic may not know its settings yet: then they are unknown,
     * and asked for again when they matter. */
    struct kafka_topic *first = t->topics[0].sink;
    for (int i = 0; i < 50 && !first->max_bytes; i++) {
        kafka_topic_refresh(t->sink, first);
        usleep(100000);
    }
    assert_int_equal(first->max_bytes, 1048588);
    /* Again, when they exist. */
    bench_close(t);
    bench_open(t);
    assert_int_equal(bench_load(t), 0);
    assert_int_equal(OPS->prepare(t->sink, list, 2, &t->err), CDCD_OK);
    assert_int_equal(((struct kafka_topic *)t->topics[0].sink)->partitions, 3);
}

static void keyless_into_compacted(void **state)
{
    const char *const compact[][2] = {{"cleanup.policy", "compact"}};
    struct bench *t = begin(state);
    make_topic(t->topic_names[0], 1, compact, 1);
    t->topics[0].keyed = false;
    bench_open(t);
    bench_load(t);
    assert_int_equal(bench_run(t, 1, 10), CDCD_ERROR);
    assert_int_equal(t->err.class, CDCD_ERR_CONFIG);
    assert_non_null(strstr(t->err.text, t->topic_names[0]));
    assert_non_null(strstr(t->err.text, "cleanup.policy=delete"));
}

static void thousand_topics(void **state)
{
    enum { N = 1000 };
    struct bench *t = begin(state);
    struct cdcd_topic *topics = cdcd_xcalloc(N, sizeof *topics);
    struct cdcd_topic **list = cdcd_xcalloc(N, sizeof(struct cdcd_topic *));
    char(*names)[96] = cdcd_xcalloc(N, sizeof *names);
    for (size_t i = 0; i < N; i++) {
        snprintf(names[i], sizeof names[i], "%s.many%zu", t->prefix, i);
        topics[i] = (struct cdcd_topic){.name = cdcd_slice_str(names[i]), .keyed = true};
        list[i] = &topics[i];
    }
    bench_open(t);
    bench_load(t);
    int64_t start = cdcd_now_ms();
    if (OPS->prepare(t->sink, list, N, &t->err) != CDCD_OK)
        fail_msg("%s", t->err.text);
    print_message("created 1000 topics in %lld ms\n", (long long)(cdcd_now_ms() - start));
    start = cdcd_now_ms();
    bench_load(t);
    print_message("loaded with 1000 topics in %lld ms\n", (long long)(cdcd_now_ms() - start));
    bench_close(t);
    free(names);
    free(list);
    free(topics);
}

/* ---- exactly once ---- */

static void delivers(void **state)
{
    struct bench *t = begin(state);
    bench_open(t);
    assert_int_equal(bench_load(t), 0);
    assert_int_equal(bench_run(t, 1, 1000), CDCD_OK);
    bench_close(t);
    bench_open(t);
    assert_int_equal(bench_load(t), 1000);
    assert_int_equal(bench_run(t, 1001, 1100), CDCD_OK);
    assert_log(bootstrap, t->topic_names[0], 1, 1100, 0);
}

/* A child writes without committing and is gone, again and again; each time it goes on from what
 * the sink holds. The child's part of the work is what a killed process would have done. */
static void child_dies(struct bench *t, unsigned commits)
{
    long n = bench_load(t);
    for (unsigned i = 0; i < commits; i++, n += 20)
        if (bench_run(t, n + 1, n + 20) != CDCD_OK)
            _exit(9);
    for (int i = 0; i < 20; i++, n += 10)
        if (bench_write(t, n + 1, n + 10) != CDCD_OK ||
            OPS->poll(t->sink, 1, true, false, &t->err) != CDCD_OK)
            _exit(9);
    kill(getpid(), SIGKILL);
}

static void killed_processes(void **state)
{
    struct bench *t = begin(state);
    for (unsigned round = 0; round < 5; round++) {
        int status;
        pid_t pid = fork();
        assert_true(pid >= 0);
        if (pid == 0) {
            bench_open(t);
            child_dies(t, round);
        }
        assert_int_equal(waitpid(pid, &status, 0), pid);
        assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
    }
    bench_open(t);
    long n = bench_load(t);
    /* 0 + 1 + 2 + 3 + 4 times 20; what was written behind them never counted, except where the
     * transaction's time was over. */
    assert_true(n >= 200);
    assert_int_equal(bench_run(t, n + 1, n + 50), CDCD_OK);
    assert_log(bootstrap, t->topic_names[0], 1, n + 50, 0);
}

static void close_aborts(void **state)
{
    struct bench *t = begin(state);
    bench_open(t);
    bench_load(t);
    assert_int_equal(bench_run(t, 1, 10), CDCD_OK);
    assert_int_equal(bench_write(t, 11, 20), CDCD_OK);
    bench_close(t);
    assert_log(bootstrap, t->topic_names[0], 1, 10, 0);
    bench_open(t);
    assert_int_equal(bench_load(t), 10);
}

static void second_instance_takes_over(void **state)
{
    struct bench *t = begin(state), other;
    bench_open(t);
    bench_load(t);
    assert_int_equal(bench_run(t, 1, 20), CDCD_OK);
    assert_int_equal(bench_write(t, 21, 30), CDCD_OK);
    bench_init(&other, bootstrap);
    snprintf(other.pipeline, sizeof other.pipeline, "%s", t->pipeline);
    memcpy(other.topic_names, t->topic_names, sizeof other.topic_names);
    bench_open(&other);
    assert_int_equal(bench_load(&other), 20);
    assert_int_equal(bench_run(t, 31, 40), CDCD_ERROR);
    if (t->err.class != CDCD_ERR_LOSS)
        fail_msg("%s", t->err.text);
    assert_int_equal(bench_run(&other, 21, 50), CDCD_OK);
    assert_int_equal(t->durable, 2);
    bench_close(t);
    bench_close(&other);
    bench_free(&other);
    assert_log(bootstrap, t->topic_names[0], 1, 50, 0);
}

/* The producer stands still for longer than its transaction may last. */
static void transaction_expires(void **state)
{
    struct bench *t = begin(state);
    bench_property(t, "transaction.timeout.ms", "1000");
    bench_open(t);
    bench_load(t);
    assert_int_equal(bench_run(t, 1, 20), CDCD_OK);
    assert_int_equal(bench_write(t, 21, 30), CDCD_OK);
    assert_int_equal(OPS->poll(t->sink, 50, true, false, &t->err), CDCD_OK);
    sleep(13); /* the broker looks every 10 s */
    bench_run_retrying(t, 31, 60, 5);
    assert_log(bootstrap, t->topic_names[0], 1, 60, 0);
}

static void position_after_many_commits(void **state)
{
    struct bench *t = begin(state);
    bench_open(t);
    bench_load(t);
    for (long n = 1; n <= 400; n++) {
        assert_int_equal(bench_write(t, n, n), CDCD_OK);
        assert_int_equal(bench_flush(t), CDCD_OK);
    }
    /* Behind the last position record: aborted ones. */
    bench_close(t);
    for (int i = 0; i < 3; i++) {
        bench_open(t);
        assert_int_equal(bench_load(t), 400);
        assert_int_equal(bench_write(t, 401, 401), CDCD_OK);
        bench_close(t);
    }
}

/* ---- records that are too large ---- */

static void large_stops(void **state)
{
    struct bench *t = begin(state);
    t->large = 25;
    t->large_bytes = 1280000;
    bench_open(t);
    bench_load(t);
    assert_int_equal(bench_run(t, 1, 20), CDCD_OK);
    for (int i = 0; i < 2; i++) {
        enum cdcd_rc rc = bench_run(t, 21, 40);
        assert_int_equal(rc, CDCD_ERROR);
        if (t->err.class != CDCD_ERR_DATA)
            fail_msg("%s", t->err.text);
        assert_non_null(strstr(t->err.text, "{\"id\":25}"));
        assert_non_null(strstr(t->err.text, "max.message.bytes is 1048588"));
        assert_non_null(strstr(t->err.text, t->topic_names[0]));
        assert_non_null(strstr(t->err.text, "0000000000000019"));
        bench_close(t);
        assert_log(bootstrap, t->topic_names[0], 1, 20, 0);
        bench_open(t);
        assert_int_equal(bench_load(t), 20);
    }
}

static void large_by_policy(void **state, int policy)
{
    struct bench *t = begin(state);
    t->config.policy = policy;
    t->large = 25;
    t->large_bytes = 1280000;
    bench_open(t);
    bench_load(t);
    bench_run_retrying(t, 1, 60, 3);
    assert_log(bootstrap, t->topic_names[0], 1, 60, 25);
    assert_int_equal(t->sink->counters.refused, 1);
    t->large = 75; /* known to be too large: no transaction is given up */
    assert_int_equal(bench_run(t, 61, 100), CDCD_OK);
    assert_int_equal(t->sink->nrefusals, 0);
}

static void large_is_skipped(void **state)
{
    large_by_policy(state, KAFKA_SKIP);
    assert_int_equal(((struct bench *)*state)->sink->counters.skipped, 2);
}

static void large_is_dead_lettered(void **state)
{
    char name[128];
    large_by_policy(state, KAFKA_DEAD_LETTER);
    struct bench *t = *state;
    assert_int_equal(t->sink->counters.dead_lettered, 2);
    snprintf(name, sizeof name, "%s.dead-letter", t->prefix);
    struct seen s = seen_read(bootstrap, name);
    rd_kafka_headers_t *headers;
    const void *value;
    size_t len;
    assert_int_equal(s.count, 2);
    assert_int_equal(s.n[0], 25);
    assert_int_equal(s.n[1], 75);
    assert_null(s.messages[0]->payload);
    assert_int_equal(rd_kafka_message_headers(s.messages[0], &headers), 0);
    assert_int_equal(rd_kafka_header_get_last(headers, "cdcd.error.topic", &value, &len), 0);
    assert_int_equal(len, strlen(t->topic_names[0]));
    assert_memory_equal(value, t->topic_names[0], len);
    assert_int_equal(rd_kafka_header_get_last(headers, "cdcd.error.value.bytes", &value, &len), 0);
    assert_memory_equal(value, "1280000", 7);
    assert_int_equal(rd_kafka_header_get_last(headers, "cdcd.pos", &value, &len), 0);
    seen_free(&s);
}

/* Compression brings the set under the broker's limit: what counts is the broker's answer. */
static void large_but_compressed(void **state)
{
    struct bench *t = begin(state);
    bench_property(t, "compression.type", "lz4");
    t->large = 25;
    t->large_bytes = 1200000;
    bench_open(t);
    bench_load(t);
    struct cdcd_batch *b = cdcd_batch_new();
    bench_record(t, b, 25);
    memset((char *)(uintptr_t)b->records->value.ptr, 'z', 1200000);
    b->seq = ++t->seq;
    t->made++;
    assert_int_equal(OPS->write(t->sink, b, &t->err), CDCD_OK);
    assert_int_equal(bench_flush(t), CDCD_OK);
    assert_log(bootstrap, t->topic_names[0], 25, 25, 0);
}

/* Larger than what librdkafka queues by default. */
static void very_large(void **state)
{
    struct bench *t = begin(state);
    topic_limit(t, 0, "60000000");
    t->large = 25;
    t->large_bytes = 40000000;
    bench_open(t);
    bench_load(t);
    if (bench_run(t, 1, 60) != CDCD_OK)
        fail_msg("%s", t->err.text);
    assert_log(bootstrap, t->topic_names[0], 1, 60, 0);
}

/* Somebody deletes a topic that is in use: made anew, and everything comes that is not durable. */
static void deleted_topic(void **state)
{
    struct bench *t = begin(state);
    char text[256];
    if (!getenv("CDCD_KAFKA_OUTAGES"))
        skip(); /* takes as long as a transaction may last */
    bench_open(t);
    bench_load(t);
    assert_int_equal(bench_run(t, 1, 60), CDCD_OK);
    rd_kafka_DeleteTopic_t *topic = rd_kafka_DeleteTopic_new(t->topic_names[0]);
    rd_kafka_conf_t *conf = rd_kafka_conf_new();
    seen_set(conf, "bootstrap.servers", bootstrap);
    rd_kafka_t *rk = rd_kafka_new(RD_KAFKA_PRODUCER, conf, text, sizeof text);
    rd_kafka_queue_t *q = rd_kafka_queue_new(rk);
    rd_kafka_DeleteTopics(rk, &topic, 1, NULL, q);
    rd_kafka_event_t *ev = rd_kafka_queue_poll(q, 20000);
    assert_non_null(ev);
    rd_kafka_event_destroy(ev);
    rd_kafka_DeleteTopic_destroy(topic);
    rd_kafka_queue_destroy(q);
    rd_kafka_destroy(rk);
    int64_t start = cdcd_now_ms();
    bench_run_retrying(t, 61, 120, 10);
    print_message("went on after %lld ms\n", (long long)(cdcd_now_ms() - start));
    assert_log(bootstrap, t->topic_names[0], 61, 120, 0);
}

/* A topic with a limit under the size of a set: sets are made smaller, nothing is refused. */
static void small_limit(void **state)
{
    struct bench *t = begin(state);
    topic_limit(t, 1, "20000");
    t->ntopics = 2;
    t->value_bytes = 3000;
    bench_open(t);
    bench_load(t);
    bench_run_retrying(t, 1, 200, 0);
    struct seen s = seen_read(bootstrap, t->topic_names[1]);
    assert_int_equal(s.count, 100);
    seen_free(&s);
}

/* The limit was lowered meanwhile: found out by sending one by one. */
static void refused_among_others(void **state)
{
    struct bench *t = begin(state);
    t->config.policy = KAFKA_SKIP;
    topic_limit(t, 0, "20000");
    t->value_bytes = 1000;
    t->large = 25;
    t->large_bytes = 25000;
    bench_open(t);
    bench_load(t);
    bench_run_retrying(t, 1, 60, 4);
    assert_log(bootstrap, t->topic_names[0], 1, 60, 25);
}

/* ---- the other deliveries ---- */

static void at_least_once(void **state)
{
    struct bench *t = begin(state);
    t->config.delivery = CDCD_AT_LEAST_ONCE;
    bench_open(t);
    bench_load(t);
    assert_int_equal(bench_run(t, 1, 500), CDCD_OK);
    bench_close(t);
    t->config.delivery = CDCD_AT_MOST_ONCE;
    bench_open(t);
    assert_int_equal(bench_load(t), 500);
    assert_int_equal(bench_run(t, 501, 600), CDCD_OK);
    assert_int_equal(bench_flush(t), CDCD_OK);
    bench_close(t);
    t->config.delivery = CDCD_EXACTLY_ONCE;
    bench_open(t);
    assert_int_equal(bench_load(t), 600);
    assert_log(bootstrap, t->topic_names[0], 1, 600, 0);
}

/* ---- notes: each load checks that they are those of the state ---- */

static void notes_topic_is_made(void **state)
{
    struct bench *t = begin(state);
    struct kafka_setting set;
    bench_open(t);
    bench_load(t);
    assert_int_equal(bench_run(t, 1, 10), CDCD_OK);
    bench_close(t);
    t->noted = true;
    bench_open(t);
    OPS->load(t->sink, &t->state, t->notes, &t->err);
    assert_int_equal(cdcd_notes_count(t->notes), 0);
    t->seq = t->durable = 0;
    struct cdcd_batch *b = cdcd_batch_new();
    b->state = cdcd_slice_str("{\"n\":10}");
    b->seq = ++t->seq;
    bench_note(b, 10);
    t->made++;
    assert_int_equal(OPS->write(t->sink, b, &t->err), CDCD_OK);
    assert_int_equal(bench_flush(t), CDCD_OK);
    assert_int_equal(bench_load(t), 10);
    const char *const names[] = {t->sink->notes_name};
    for (int i = 0; i < 50; i++) {
        kafka_describe(t->sink, names, 1, &set);
        if (*set.cleanup_policy)
            break;
        usleep(100000);
    }
    assert_string_equal(set.cleanup_policy, "compact");
}

static void notes_of_killed_processes(void **state)
{
    static const int deliveries[] = {CDCD_EXACTLY_ONCE, CDCD_AT_LEAST_ONCE, CDCD_AT_MOST_ONCE};
    struct bench *t = begin(state);
    long last = 0;
    t->noted = true;
    for (unsigned round = 0; round < 9; round++) {
        int status;
        t->config.delivery = deliveries[round % 3];
        pid_t pid = fork();
        assert_true(pid >= 0);
        if (pid == 0) {
            bench_open(t);
            child_dies(t, round);
        }
        assert_int_equal(waitpid(pid, &status, 0), pid);
        assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
        bench_open(t);
        long n = bench_load(t);
        assert_true(n >= last + 20 * (long)round);
        bench_close(t);
        last = n;
    }
}

/* A process that is gone between a set of notes and its position: the set does not count, now or
 * after the next one. */
static void left_behind(void **state, int delivery)
{
    struct bench *t = begin(state);
    t->noted = true;
    t->config.delivery = delivery;
    bench_open(t);
    bench_load(t);
    assert_int_equal(bench_run(t, 1, 100), CDCD_OK);
    struct cdcd_batch *b = cdcd_batch_new();
    bench_note(b, 110);
    cdcd_batch_note(b, cdcd_slice_str("stray"), cdcd_slice_str("x"));
    cdcd_batch_note(b, cdcd_slice_str("always"), (struct cdcd_slice){NULL, 0});
    b->seq = 1000;
    kafka_notes_change(&t->sink->notes.changed, b);
    cdcd_batch_free(b);
    if (delivery == CDCD_EXACTLY_ONCE)
        rd_kafka_begin_transaction(t->sink->rk);
    enum cdcd_rc rc;
    while ((rc = kafka_notes_produce(t->sink, &t->err)) == CDCD_AGAIN)
        rd_kafka_poll(t->sink->rk, 10);
    assert_int_equal(rc, CDCD_OK);
    if (delivery == CDCD_EXACTLY_ONCE) {
        rd_kafka_error_t *e = rd_kafka_commit_transaction(t->sink->rk, 10000);
        assert_null(e);
    }
    bench_close(t);
    bench_open(t);
    assert_int_equal(bench_load(t), 100);
    assert_int_equal(bench_load(t), 100);
    assert_int_equal(bench_run(t, 101, 200), CDCD_OK);
    assert_int_equal(bench_load(t), 200);
    bench_close(t);
    bench_open(t);
    assert_int_equal(bench_load(t), 200);
}

static void notes_left_behind(void **state)
{
    left_behind(state, CDCD_AT_LEAST_ONCE);
}

static void notes_left_behind_at_most(void **state)
{
    left_behind(state, CDCD_AT_MOST_ONCE);
}

static void notes_left_behind_exactly(void **state)
{
    left_behind(state, CDCD_EXACTLY_ONCE);
}

/* Far more than fits a set of records, and large ones. */
static void many_notes(void **state)
{
    enum { N = 5000 };
    struct bench *t = begin(state);
    size_t size = 6 << 20;
    char key[64], *large = cdcd_xcalloc(1, size);
    memset(large, 'x', size);
    bench_open(t);
    bench_load(t);
    struct cdcd_batch *b = cdcd_batch_new();
    b->state = cdcd_slice_str("{\"n\":1}");
    b->seq = ++t->seq;
    for (int i = 0; i < N; i++) {
        int len = snprintf(key, sizeof key, "[\"db\",\"table%d\"]", i);
        cdcd_batch_note(b, (struct cdcd_slice){key, (size_t)len}, (struct cdcd_slice){large, 2000});
    }
    cdcd_batch_note(b, cdcd_slice_str("large"), (struct cdcd_slice){large, size});
    t->made++;
    assert_int_equal(OPS->write(t->sink, b, &t->err), CDCD_OK);
    int64_t start = cdcd_now_ms();
    if (bench_flush(t) != CDCD_OK)
        fail_msg("%s", t->err.text);
    print_message("wrote %d notes in %lld ms\n", N, (long long)(cdcd_now_ms() - start));
    start = cdcd_now_ms();
    assert_int_equal(bench_load(t), 1);
    print_message("loaded them in %lld ms\n", (long long)(cdcd_now_ms() - start));
    assert_int_equal(cdcd_notes_count(t->notes), N + 1);
    assert_int_equal(cdcd_notes_get(t->notes, cdcd_slice_str("large")).len, size);
    free(large);
}

static void delete_topic(const char *name)
{
    char text[256];
    rd_kafka_conf_t *conf = rd_kafka_conf_new();
    seen_set(conf, "bootstrap.servers", bootstrap);
    rd_kafka_t *rk = rd_kafka_new(RD_KAFKA_PRODUCER, conf, text, sizeof text);
    rd_kafka_queue_t *q = rd_kafka_queue_new(rk);
    rd_kafka_DeleteTopic_t *topic = rd_kafka_DeleteTopic_new(name);
    rd_kafka_DeleteTopics(rk, &topic, 1, NULL, q);
    rd_kafka_event_t *ev = rd_kafka_queue_poll(q, 20000);
    assert_non_null(ev);
    rd_kafka_event_destroy(ev);
    rd_kafka_DeleteTopic_destroy(topic);
    rd_kafka_queue_destroy(q);
    rd_kafka_destroy(rk);
    usleep(500000);
}

static void notes_taken_away(void **state)
{
    const char *const compact[][2] = {{"cleanup.policy", "compact"}};
    struct bench *t = begin(state);
    t->noted = true;
    bench_open(t);
    bench_load(t);
    assert_int_equal(bench_run(t, 1, 100), CDCD_OK);
    delete_topic(t->sink->notes_name);
    make_topic(t->sink->notes_name, 1, compact, 1);
    assert_int_equal(bench_try_load(t), -1);
    assert_int_equal(t->err.class, CDCD_ERR_LOSS);
    assert_non_null(strstr(t->err.text, t->sink->notes_name));
    /* With both gone the pipeline begins anew; what is left of notes does not count. */
    delete_topic(t->sink->position_name);
    bench_close(t);
    bench_open(t);
    assert_int_equal(bench_load(t), 0);
}

/* ---- outages: the broker process is stopped for a while ---- */

static void broker_signal(int sig)
{
    const char *pid = getenv("CDCD_KAFKA_PID");
    if (pid)
        kill((pid_t)strtol(pid, NULL, 10), sig);
}

static void outage(void **state, const char *timeout, unsigned seconds)
{
    struct bench *t = begin(state);
    if (!getenv("CDCD_KAFKA_PID") || !getenv("CDCD_KAFKA_OUTAGES"))
        skip();
    bench_property(t, "transaction.timeout.ms", timeout);
    bench_open(t);
    /* A broker that was stopped a moment ago may still be fenced by its controller. */
    for (int i = 0; bench_try_load(t) < 0; i++) {
        if (t->err.class != CDCD_ERR_RETRY || i == 100)
            fail_msg("%s", t->err.text);
        usleep(200000);
    }
    assert_int_equal(bench_run(t, 1, 50), CDCD_OK);
    pid_t child = fork();
    if (child == 0) {
        broker_signal(SIGSTOP);
        sleep(seconds);
        broker_signal(SIGCONT);
        _exit(0);
    }
    usleep(200000);
    bench_run_retrying(t, 51, 500, 100);
    assert_int_equal(waitpid(child, NULL, 0), child);
    assert_log(bootstrap, t->topic_names[0], 1, 500, 0);
}

static void short_outage(void **state)
{
    outage(state, "60000", 4);
}

static void long_outage(void **state)
{
    outage(state, "3000", 15);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(topics_are_compacted),
        TEST(keyless_into_compacted),
        TEST(thousand_topics),
        TEST(delivers),
        TEST(killed_processes),
        TEST(close_aborts),
        TEST(second_instance_takes_over),
        TEST(transaction_expires),
        TEST(position_after_many_commits),
        TEST(large_stops),
        TEST(large_is_skipped),
        TEST(large_is_dead_lettered),
        TEST(large_but_compressed),
        TEST(very_large),
        TEST(deleted_topic),
        TEST(small_limit),
        TEST(refused_among_others),
        TEST(at_least_once),
        TEST(notes_topic_is_made),
        TEST(notes_of_killed_processes),
        TEST(notes_left_behind),
        TEST(notes_left_behind_at_most),
        TEST(notes_left_behind_exactly),
        TEST(many_notes),
        TEST(notes_taken_away),
        TEST(short_outage),
        TEST(long_outage),
    };
    bootstrap = getenv("CDCD_KAFKA_BOOTSTRAP");
    cdcd_log_setup(getenv("CDCD_TEST_DEBUG") ? CDCD_LOG_DEBUG : CDCD_LOG_ERROR, false, "");
    if (getenv("CDCD_TEST_FILTER"))
        cmocka_set_test_filter(getenv("CDCD_TEST_FILTER"));
    return cmocka_run_group_tests(tests, NULL, NULL);
}
