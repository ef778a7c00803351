/* The Kafka source: positions and times as text, and reading from librdkafka's mock cluster. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "source.h"

#include <librdkafka/rdkafka_mock.h>
#include <stdio.h>
#include <stdlib.h>

extern const struct cdcd_plugin cdcd_plugin_kafka;
#define OPS (cdcd_plugin_kafka.source)

/* ---- positions ---- */

static void take(void *ctx, const char *topic, int32_t partition, const struct kafka_mark *mark)
{
    struct kafka_part *p = kafka_offsets_part(ctx, topic, partition);
    p->known = true;
    p->read = *mark;
}

static void positions_are_read_as_written(void **state)
{
    (void)state;
    static const char *const texts[] = {
        "{\"topics\":{}}",
        "{\"topics\":{\"a\":{\"0\":[17,15,1700000000000]}}}",
        "{\"topics\":{\"a\":{\"0\":[1,0,5],\"3\":[9,-1,-1]},\"b.c\":{\"11\":[0,-1,-1]}}}",
    };
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        struct kafka_offsets o = {0};
        struct cdcd_buf b;
        cdcd_buf_init(&b, 0);
        assert_true(kafka_offsets_parse(cdcd_slice_str(texts[i]), take, &o));
        kafka_offsets_write(&o, &b);
        assert_string_equal(cdcd_buf_cstr(&b), texts[i]);
        cdcd_buf_free(&b);
        kafka_offsets_free(&o);
    }
}

static void other_positions_are_refused(void **state)
{
    (void)state;
    static const char *const texts[] = {
        "",
        "null",
        "{}",
        "{\"lsn\":1}",
        "{\"topics\":[]}",
        "{\"topics\":{\"a\":1}}",
        "{\"topics\":{\"a\":{\"x\":1}}}",
        "{\"topics\":{\"a\":{\"-1\":1}}}",
        "{\"topics\":{\"a\":{\"0\":-1}}}",
        "{\"topics\":{\"a\":{\"0\":[]}}}",
        "{\"topics\":{\"a\":{\"0\":[1,2,3]}}}",   /* the newest record is behind the next */
        "{\"topics\":{\"a\":{\"0\":[3,2,1,0]}}}", /* one too many */
        "{\"topics\":{\"a\":{\"0\":[1.5,0,1]}}}",
        "{\"topics\":{\"a\":{\"99999999\":1}}}",
        "{\"topics\":{\"\":{\"0\":1}}}",
        "{\"topics\":{\"a\\u0062\":{\"0\":1}}}",
        "{\"topics\":{\"a\":{\"0\":1}}",
    };
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        struct kafka_offsets o = {0};
        if (kafka_offsets_parse(cdcd_slice_str(texts[i]), take, &o))
            fail_msg("%s was taken", texts[i]);
        kafka_offsets_free(&o);
    }
}

static void positions_are_described(void **state)
{
    (void)state;
    static const char *const pairs[][2] = {
        {"{\"topics\":{}}", "where the consumer group stands"},
        {"{\"topics\":{\"a\":{\"0\":17,\"2\":[4,3,1]}}}", "a/0@17, a/2@4"},
        {"{\"topics\":{\"a\":{\"0\":1,\"1\":2,\"2\":3,\"3\":4,\"4\":5}}}",
         "5 partitions, offsets 15 in all"},
        {"no position", "no position"},
    };
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
        struct cdcd_buf b;
        cdcd_buf_init(&b, 0);
        kafka_offsets_describe(cdcd_slice_str(pairs[i][0]), &b);
        assert_string_equal(cdcd_buf_cstr(&b), pairs[i][1]);
        cdcd_buf_free(&b);
    }
}

static void topics_are_found_by_name(void **state)
{
    (void)state;
    struct kafka_offsets o = {0};
    char name[16];
    for (int i = 0; i < 200; i++) {
        snprintf(name, sizeof name, "t%d", i * 37 % 200);
        kafka_offsets_part(&o, name, i % 5)->read.next = i;
    }
    assert_int_equal(o.n, 200);
    for (int i = 0; i < 200; i++) {
        snprintf(name, sizeof name, "t%d", i * 37 % 200);
        assert_int_equal(kafka_offsets_find(&o, name)->n, i % 5 + 1);
        assert_int_equal(kafka_offsets_part(&o, name, i % 5)->read.next, i);
    }
    kafka_offsets_forget(&o, "t7");
    kafka_offsets_forget(&o, "t7");
    assert_null(kafka_offsets_find(&o, "t7"));
    assert_int_equal(o.n, 199);
    kafka_offsets_free(&o);
}

static void times(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        int64_t ms;
    } good[] = {
        {"1700000000123", 1700000000123},
        {"2024-02-29", 1709164800000},
        {"2024-02-29T12:34:56Z", 1709210096000},
        {"2024-02-29T12:34:56.7Z", 1709210096700},
        {"2024-02-29 12:34:56.78901", 1709210096789},
        {"2024-02-29T12:34", 1709210040000},
        {"2024-02-29T12:34:56+02:00", 1709202896000},
        {"2024-02-29T12:34:56-0130", 1709215496000},
    };
    static const char *const bad[] = {"",           "now",        "17",
                                      "2024-13-01", "2024-02-32", "2024-02-29T25:00:00",
                                      "2024-2-9",   "yesterday",  "2024-02-29T12:34:56 Mars",
                                      "2024-02-29x"};
    int64_t ms;
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        if (!kafka_parse_time(good[i].text, &ms))
            fail_msg("%s was refused", good[i].text);
        assert_int_equal(ms, good[i].ms);
    }
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        if (kafka_parse_time(bad[i], &ms))
            fail_msg("%s was taken for %lld", bad[i], (long long)ms);
}

static void replay_bounds(void **state)
{
    (void)state;
    struct cdcd_error err = {0};
    static const char *const good[] = {NULL,         "",
                                       "beginning",  "0",
                                       "17",         "2024-02-29T12:34:56Z",
                                       "1700000000", "{\"topics\":{\"a\":{\"0\":17}}}"};
    for (size_t i = 0; i < sizeof good / sizeof *good; i++)
        assert_int_equal(kafka_replay_valid(good[i], "--from", &err), CDCD_OK);
    assert_int_equal(kafka_replay_valid("{\"lsn\":1}", "--from", &err), CDCD_ERROR);
    assert_int_equal(err.class, CDCD_ERR_CONFIG);
    assert_non_null(strstr(err.text, "--from {\"lsn\":1} is neither"));
    assert_int_equal(kafka_replay_valid("-5", "--to", &err), CDCD_ERROR);
}

/* ---- reading ---- */

#define TOPIC "shop.t"
#define PARTS 3
#define SINCE INT64_C(1700000000000)

struct mock {
    rd_kafka_t *rk; /* carries the cluster, and writes */
    rd_kafka_mock_cluster_t *cluster;
    struct kafka_source_config config;
    struct cdcd_source_env env;
    struct cdcd_source *s;
    struct cdcd_error err;
};

static void no_log(const rd_kafka_t *rk, int level, const char *facility, const char *text)
{
    (void)rk, (void)level, (void)facility, (void)text;
}

static int setup(void **state)
{
    struct mock *m = cdcd_xcalloc(1, sizeof *m);
    char text[256];
    rd_kafka_conf_t *conf = rd_kafka_conf_new();
    rd_kafka_conf_set_log_cb(conf, no_log);
    rd_kafka_conf_set(conf, "test.mock.num.brokers", "1", text, sizeof text);
    m->rk = rd_kafka_new(RD_KAFKA_PRODUCER, conf, text, sizeof text);
    assert_non_null(m->rk);
    m->cluster = rd_kafka_handle_mock_cluster(m->rk);
    rd_kafka_mock_topic_create(m->cluster, TOPIC, PARTS, 1);
    rd_kafka_mock_topic_create(m->cluster, CDCD_SCHEMA_TOPIC, 1, 1);
    m->config = (struct kafka_source_config){
        .bootstrap = (char *)(uintptr_t)rd_kafka_mock_cluster_bootstraps(m->cluster),
        .group = (char *)(uintptr_t) "",
        .refresh_ms = 1000,
        .schema_topic = (char *)(uintptr_t)CDCD_SCHEMA_TOPIC};
    m->env = (struct cdcd_source_env){
        .pipeline = "shop", .topic_prefix = "shop", .max_event_bytes = 1 << 20, .replay = true};
    *state = m;
    return 0;
}

static int teardown(void **state)
{
    struct mock *m = *state;
    if (m->s)
        OPS->close(m->s);
    rd_kafka_destroy(m->rk);
    free(m);
    return 0;
}

static void put(struct mock *m, const char *topic, int32_t partition, int64_t ms, const char *key,
                const char *value, const char *schema)
{
    rd_kafka_resp_err_t code = rd_kafka_producev(
        m->rk, RD_KAFKA_V_TOPIC(topic), RD_KAFKA_V_PARTITION(partition), RD_KAFKA_V_TIMESTAMP(ms),
        RD_KAFKA_V_KEY(key, strlen(key)),
        RD_KAFKA_V_VALUE((void *)(uintptr_t)value, value ? strlen(value) : 0),
        RD_KAFKA_V_MSGFLAGS(RD_KAFKA_MSG_F_COPY),
        RD_KAFKA_V_HEADER("cdcd.schema", schema, schema ? (ssize_t)strlen(schema) : 0),
        RD_KAFKA_V_HEADER("j", "{\"a\":1}", 7), RD_KAFKA_V_END);
    assert_int_equal(code, RD_KAFKA_RESP_ERR_NO_ERROR);
    assert_int_equal(rd_kafka_flush(m->rk, 10000), RD_KAFKA_RESP_ERR_NO_ERROR);
}

/* n records in each partition, a second apart. */
static void fill(struct mock *m, int from, int to)
{
    char key[32];
    for (int i = from; i < to; i++)
        for (int p = 0; p < PARTS; p++) {
            snprintf(key, sizeof key, "%d/%d", p, i);
            put(m, TOPIC, p, SINCE + i * 1000, key, i % 4 == 3 ? NULL : "{\"x\":1}", "s1");
        }
}

struct got {
    int next[PARTS], first[PARTS];
    int records, schemas;
    char position[1024];
    bool ended;
};

static void take_batch(struct got *g, const struct cdcd_batch *b)
{
    for (const struct cdcd_record *r = b->records; r; r = r->next) {
        char key[32];
        if (strcmp(r->topic_name.ptr, CDCD_SCHEMA_TOPIC) == 0) {
            assert_int_equal(r->partition, -1);
            g->schemas++;
            continue;
        }
        assert_string_equal(r->topic_name.ptr, TOPIC);
        assert_in_range(r->partition, 0, PARTS - 1);
        if (g->next[r->partition] < 0)
            g->first[r->partition] = g->next[r->partition] = (int)r->offset;
        assert_int_equal(r->offset, g->next[r->partition]++);
        int n = snprintf(key, sizeof key, "%d/%d", (int)r->partition, (int)r->offset);
        assert_int_equal(r->key.len, n);
        assert_memory_equal(r->key.ptr, key, (size_t)n);
        assert_int_equal(r->timestamp_ms, SINCE + r->offset * 1000);
        assert_int_equal(r->value.ptr == NULL, r->offset % 4 == 3);
        assert_int_equal(r->nheaders, 2);
        assert_string_equal(r->headers[0].name.ptr, "cdcd.schema");
        assert_false(r->headers[0].json);
        assert_true(r->headers[1].json);
        g->records++;
    }
    if (b->position.ptr)
        snprintf(g->position, sizeof g->position, "%s", b->position.ptr);
}

static enum cdcd_rc begin(struct mock *m, const char *from)
{
    struct cdcd_buf position;
    struct cdcd_slice slice = {from, from ? strlen(from) : 0};
    cdcd_buf_init(&position, 0);
    if (m->s)
        OPS->close(m->s);
    m->s = NULL;
    enum cdcd_rc rc = OPS->open(&m->s, &m->config, &m->env, &m->err);
    if (rc == CDCD_OK)
        rc = OPS->resume(m->s, slice, &position, &m->err);
    if (rc == CDCD_OK)
        rc = OPS->start(m->s, cdcd_buf_slice(&position), &m->err);
    cdcd_buf_free(&position);
    return rc;
}

/* To the end, or until so many records. */
static struct got read_some(struct mock *m, int most)
{
    struct got g = {.next = {-1, -1, -1}};
    int64_t give_up = cdcd_now_ms() + 30000;
    while (!g.ended && g.records < most) {
        struct cdcd_batch *b = cdcd_batch_new();
        enum cdcd_rc rc = OPS->read(m->s, b, cdcd_now_ms() + 100, &m->err);
        if (rc == CDCD_ERROR)
            fail_msg("%s", m->err.text);
        take_batch(&g, b);
        g.ended = rc == CDCD_END;
        cdcd_batch_free(b);
        if (cdcd_now_ms() > give_up)
            fail_msg("%d records in 30 s", g.records);
    }
    return g;
}

static struct got replay(struct mock *m, const char *from)
{
    if (begin(m, from) != CDCD_OK)
        fail_msg("%s", m->err.text);
    return read_some(m, INT32_MAX);
}

static void replay_reads_to_the_end(void **state)
{
    struct mock *m = *state;
    uint64_t done, total;
    fill(m, 0, 20);
    struct got g = replay(m, NULL);
    assert_int_equal(g.records, 20 * PARTS);
    assert_int_equal(g.schemas, 0);
    assert_non_null(strstr(g.position, "\"0\":[20,19,1700000019000]"));
    OPS->progress(m->s, &done, &total);
    assert_int_equal(done, 60);
    assert_int_equal(total, 60);
    /* Nothing is new: it ends at once, with the position. */
    char position[1024];
    memcpy(position, g.position, sizeof position);
    g = replay(m, position);
    assert_int_equal(g.records, 0);
    assert_string_equal(g.position, position);
    /* What came meanwhile, and no more. */
    fill(m, 20, 25);
    g = replay(m, position);
    assert_int_equal(g.records, 5 * PARTS);
    for (int p = 0; p < PARTS; p++)
        assert_int_equal(g.first[p], 20);
}

static void replay_from_and_to(void **state)
{
    struct mock *m = *state;
    fill(m, 0, 20);
    m->env.replay_from = "5";
    m->env.replay_to = "12";
    struct got g = replay(m, NULL);
    assert_int_equal(g.records, 7 * PARTS);
    for (int p = 0; p < PARTS; p++) {
        assert_int_equal(g.first[p], 5);
        assert_int_equal(g.next[p], 12);
    }
    m->env.replay_from = "{\"topics\":{\"shop.t\":{\"1\":15}}}";
    m->env.replay_to = "{\"topics\":{\"shop.t\":{\"0\":2,\"1\":18}}}";
    g = replay(m, NULL);
    assert_int_equal(g.next[0], 2);
    assert_int_equal(g.first[1], 15);
    assert_int_equal(g.next[1], 18);
    assert_int_equal(g.next[2], -1);
    m->env.replay_from = "100"; /* behind the end */
    m->env.replay_to = NULL;
    assert_int_equal(replay(m, NULL).records, 0);
    m->env.replay_from = "soon";
    assert_int_equal(begin(m, NULL), CDCD_ERROR);
    assert_int_equal(m->err.class, CDCD_ERR_CONFIG);
}

static void replay_without_topics(void **state)
{
    struct mock *m = *state;
    m->env.topic_prefix = "other";
    assert_int_equal(begin(m, NULL), CDCD_ERROR);
    assert_int_equal(m->err.class, CDCD_ERR_CONFIG);
    assert_non_null(strstr(m->err.text, "no topic at"));
}

static void schemas_come_first(void **state)
{
    struct mock *m = *state;
    m->env.want_schemas = true;
    put(m, CDCD_SCHEMA_TOPIC, 0, SINCE, "s1", "{\"topic\":\"shop.t\"}", NULL);
    fill(m, 0, 10);
    if (begin(m, NULL) != CDCD_OK)
        fail_msg("%s", m->err.text);
    struct cdcd_batch *b = cdcd_batch_new();
    while (!b->nrecords)
        if (OPS->read(m->s, b, cdcd_now_ms() + 100, &m->err) == CDCD_ERROR)
            fail_msg("%s", m->err.text);
    assert_string_equal(b->records->topic_name.ptr, CDCD_SCHEMA_TOPIC);
    assert_memory_equal(b->records->key.ptr, "s1", 2);
    assert_memory_equal(b->records->value.ptr, "{\"topic\":\"shop.t\"}", 18);
    struct got g = {.next = {-1, -1, -1}};
    take_batch(&g, b);
    cdcd_batch_free(b);
    struct got rest = {.ended = false};
    if (g.records < 10 * PARTS) {
        /* Once a session. */
        while (!rest.ended) {
            b = cdcd_batch_new();
            enum cdcd_rc rc = OPS->read(m->s, b, cdcd_now_ms() + 100, &m->err);
            assert_int_not_equal(rc, CDCD_ERROR);
            take_batch(&g, b);
            rest.ended = rc == CDCD_END;
            cdcd_batch_free(b);
        }
    }
    assert_int_equal(g.records, 10 * PARTS);
    assert_int_equal(g.schemas, 1);
}

/* A schema that comes up after the start is found, and one that nobody has is no reason to stop. */
static void late_and_missing_schemas(void **state)
{
    struct mock *m = *state;
    m->env.want_schemas = true;
    fill(m, 0, 1); /* s1 */
    put(m, TOPIC, 0, SINCE + 1000, "0/1", "{}", "s2");
    if (begin(m, NULL) != CDCD_OK)
        fail_msg("%s", m->err.text);
    put(m, CDCD_SCHEMA_TOPIC, 0, SINCE, "s2", "{\"topic\":\"shop.t\"}", NULL);
    struct got g = read_some(m, INT32_MAX);
    assert_int_equal(g.records, PARTS + 1);
    assert_int_equal(g.schemas, 1);
}

static bool is_read(const struct mock *m, const char *topic)
{
    struct cdcd_error err = {0};
    struct cdcd_source *s = kafka_source_new(&m->config, &m->env, &err);
    if (!s)
        fail_msg("%s", err.text);
    bool yes = kafka_source_matches(s, topic);
    kafka_source_free(s);
    return yes;
}

static void topics_by_pattern(void **state)
{
    struct mock *m = *state;
    char *wanted[] = {(char *)(uintptr_t) "(shop|cust)\\.\\d+", (char *)(uintptr_t) "__.*"};
    char *not_wanted[] = {(char *)(uintptr_t) ".*\\.7"};
    m->env.topic_prefix = "a.b";
    assert_true(is_read(m, "a.b.c"));
    assert_false(is_read(m, "aXb.c"));
    assert_false(is_read(m, "a.b"));
    m->config.topics = (struct cdcd_strlist){wanted, 2};
    m->config.exclude = (struct cdcd_strlist){not_wanted, 1};
    assert_true(is_read(m, "shop.12"));
    assert_true(is_read(m, "cust.1"));
    assert_false(is_read(m, "shop.7"));
    assert_false(is_read(m, "shop.12x"));
    assert_false(is_read(m, "__consumer_offsets"));
    assert_false(is_read(m, "__cdcd.schemas"));
    assert_false(is_read(m, "__transaction_state"));
}

static void a_position_behind_the_end_is_a_loss(void **state)
{
    struct mock *m = *state;
    fill(m, 0, 5);
    assert_int_equal(begin(m, "{\"topics\":{\"shop.t\":{\"0\":[9,8,1700000008000]}}}"), CDCD_ERROR);
    assert_int_equal(m->err.class, CDCD_ERR_LOSS);
    assert_non_null(strstr(m->err.text, "was read up to offset 9, but ends at 5"));
}

static void another_record_is_a_loss(void **state)
{
    struct mock *m = *state;
    struct cdcd_batch *b = cdcd_batch_new();
    fill(m, 0, 5);
    if (begin(m, "{\"topics\":{\"shop.t\":{\"0\":[3,2,1700000002001]}}}") != CDCD_OK)
        fail_msg("%s", m->err.text);
    enum cdcd_rc rc = CDCD_OK;
    while (rc == CDCD_OK || rc == CDCD_AGAIN)
        rc = OPS->read(m->s, b, cdcd_now_ms() + 100, &m->err);
    assert_int_equal(rc, CDCD_ERROR);
    assert_int_equal(m->err.class, CDCD_ERR_LOSS);
    assert_non_null(strstr(m->err.text, "was made anew"));
    cdcd_batch_free(b);
    /* The same one is fine. */
    struct got g = replay(m, "{\"topics\":{\"shop.t\":{\"0\":[3,2,1700000002000]}}}");
    assert_int_equal(g.first[0], 3);
    assert_int_equal(g.records, 2 + 5 + 5);
}

static void a_topic_that_is_gone_is_a_loss(void **state)
{
    struct mock *m = *state;
    fill(m, 0, 1);
    assert_int_equal(begin(m, "{\"topics\":{\"shop.gone\":{\"0\":[9,8,1700000008000]}}}"),
                     CDCD_ERROR);
    assert_int_equal(m->err.class, CDCD_ERR_LOSS);
    assert_non_null(strstr(m->err.text, "topic shop.gone does not exist any more"));
    /* Not when nobody wants it any more. */
    char *gone = (char *)(uintptr_t) ".*gone";
    m->config.exclude = (struct cdcd_strlist){&gone, 1};
    if (begin(m, "{\"topics\":{\"shop.gone\":{\"0\":[9,8,1700000008000]}}}") != CDCD_OK)
        fail_msg("%s", m->err.text);
}

/* ---- properties ---- */

static void reserved_properties(void **state)
{
    struct mock *m = *state;
    static const char *const bad[][2] = {
        {"group.id", "source.kafka.group.id"},
        {"isolation.level", "source.kafka.properties.isolation.level may not be set"},
        {"enable.auto.commit", "source.kafka.properties.enable.auto.commit may not be set"},
        {"auto.offset.reset", "source.kafka.properties.auto.offset.reset may not be set"},
        {"no.such.thing", "source.kafka.properties.no.such.thing"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct cdcd_strpair p = {(char *)(uintptr_t)bad[i][0], (char *)(uintptr_t) "1"};
        m->config.properties = (struct cdcd_strmap){&p, 1};
        assert_int_equal(OPS->open(&m->s, &m->config, &m->env, &m->err), CDCD_ERROR);
        assert_int_equal(m->err.class, CDCD_ERR_CONFIG);
        if (!strstr(m->err.text, bad[i][1]))
            fail_msg("%s", m->err.text);
    }
}

#define MOCKED(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(positions_are_read_as_written),
        cmocka_unit_test(other_positions_are_refused),
        cmocka_unit_test(positions_are_described),
        cmocka_unit_test(topics_are_found_by_name),
        cmocka_unit_test(times),
        cmocka_unit_test(replay_bounds),
        MOCKED(replay_reads_to_the_end),
        MOCKED(replay_from_and_to),
        MOCKED(replay_without_topics),
        MOCKED(schemas_come_first),
        MOCKED(late_and_missing_schemas),
        MOCKED(topics_by_pattern),
        MOCKED(a_position_behind_the_end_is_a_loss),
        MOCKED(another_record_is_a_loss),
        MOCKED(a_topic_that_is_gone_is_a_loss),
        MOCKED(reserved_properties),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
