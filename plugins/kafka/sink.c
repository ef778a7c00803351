/*
 * The Kafka sink: options, sessions, and the calls of the pipeline. README.md tells how the
 * parts play together. All calls come from the publish thread.
 */
#include "source.h"

#include <cdcd/version.h>

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/random.h>

#define FLUSH_MS          15000 /* a flush without any progress for so long fails */
#define COMPLAIN_MS       10000 /* silence of the broker that is worth a line in the log */
#define COMPLAIN_AGAIN_MS 30000

static const char *const delivery_names[] = {"exactly-once", "at-least-once", "at-most-once", NULL};
static const char *const policy_names[] = {"stop", "dead-letter", "skip", NULL};

#define FIELD(f) .offset = offsetof(struct kafka_config, f)

static const struct cdcd_option kafka_options[] = {
    {.name = "bootstrap.servers",
     .type = CDCD_OPT_STR,
     FIELD(bootstrap),
     .flags = CDCD_OPT_REQUIRED | CDCD_OPT_SAMPLE,
     .sample = "127.0.0.1:9092",
     .doc = "Brokers to begin with, HOST:PORT, comma-separated."},
    {.name = "delivery",
     .type = CDCD_OPT_ENUM,
     FIELD(delivery),
     .default_ = "exactly-once",
     .values = delivery_names,
     .flags = CDCD_OPT_SAMPLE,
     .doc = "exactly-once: data and position in one transaction; readers must set "
            "isolation.level=read_committed. at-least-once: idempotent, no transactions; a crash "
            "repeats records. at-most-once: the position goes first; a crash loses records."},
    {.name = "topic.partitions",
     .type = CDCD_OPT_INT,
     FIELD(partitions),
     .default_ = "1",
     .min = -1,
     .max = 100000,
     .flags = CDCD_OPT_SAMPLE,
     .doc = "Partitions of topics that cdcd creates; -1: the broker's default. With one the order "
            "of transactions is kept in the topic, with more the order of each key."},
    {.name = "topic.replication.factor",
     .type = CDCD_OPT_INT,
     FIELD(replication),
     .default_ = "-1",
     .min = -1,
     .max = 1000,
     .doc = "Replicas of topics that cdcd creates; -1: the broker's default.",
     .sample = "3"},
    {.name = "topic.cleanup.policy",
     .type = CDCD_OPT_STR,
     FIELD(cleanup_policy),
     .default_ = "compact",
     .doc = "cleanup.policy of topics that cdcd creates for records with keys. Topics of records "
            "without keys always get delete. Existing topics are left as they are."},
    {.name = "topic.config",
     .type = CDCD_OPT_MAP,
     FIELD(topic_config),
     .doc = "More settings of topics that cdcd creates, by the broker's names.",
     .sample = "{min.insync.replicas: 2}"},
    {.name = "properties",
     .type = CDCD_OPT_MAP,
     FIELD(properties),
     .doc = "Properties of librdkafka, passed on as they are: security, compression, timeouts.",
     .sample = "{compression.type: lz4}"},
    {.name = "transactional.id",
     .type = CDCD_OPT_STR,
     FIELD(transactional_id),
     .default_ = "",
     .doc = "Default: cdcd-NAME. A second instance with the same one takes over from the first."},
    {.name = "position.topic",
     .type = CDCD_OPT_STR,
     FIELD(position_topic),
     .default_ = "",
     .doc = "Compacted topic of one partition in which the pipeline's position is kept, for this "
            "pipeline alone. Default: __cdcd.position.NAME. What a source must remember besides, "
            "such as the shapes of MySQL's tables, is kept in a second topic: __cdcd.notes.NAME, "
            "or this name with .notes behind it."},
    {.name = "transaction.max.ms",
     .type = CDCD_OPT_DURATION,
     FIELD(transaction_ms),
     .default_ = "500ms",
     .min = 1,
     .max = 600000,
     .doc = "A transaction is committed at once when nothing waits, and after this time at the "
            "latest when more is waiting. exactly-once only."},
    {.name = "transaction.max.bytes",
     .type = CDCD_OPT_SIZE,
     FIELD(transaction_bytes),
     .default_ = "128MB",
     .min = 1024,
     .doc = "A transaction is committed when it has this many bytes of keys and values."},
    {.name = "errors.policy",
     .type = CDCD_OPT_ENUM,
     FIELD(policy),
     .default_ = "stop",
     .values = policy_names,
     .doc = "What to do with a record that is too large or that the broker refuses for another "
            "reason of its own. stop: stop before it; nothing of its transaction is visible. "
            "dead-letter: write it to dead.letter.topic instead. skip: leave it out, with a "
            "warning."},
    {.name = "dead.letter.topic",
     .type = CDCD_OPT_STR,
     FIELD(dead_letter_topic),
     .default_ = "",
     .doc = "Topic for errors.policy dead-letter, with the headers cdcd.error.*. Default: "
            "PREFIX.dead-letter."},
    {.name = "schema.topic",
     .type = CDCD_OPT_STR,
     FIELD(schema_topic),
     .default_ = CDCD_SCHEMA_TOPIC,
     .doc = "Compacted topic of one partition in which the schemas of rows are kept, by the number "
            "in the records' header cdcd.schema: with them a search index knows dates and decimals "
            "from numbers and text. All pipelines may share it. Empty: they are not written."},
    {0},
};

/* ---- open and close ---- */

static char *name_or(const char *name, const char *fallback, const char *of)
{
    return name && *name ? cdcd_xstrdup(name) : cdcd_xasprintf("%s%s", fallback, of);
}

/* Bytes that a topic's name may not have become '_'. */
static void make_topic_name(char *name)
{
    for (char *p = name; *p; p++)
        if (!((*p >= 'a' && *p <= 'z') || (*p >= 'A' && *p <= 'Z') || (*p >= '0' && *p <= '9') ||
              *p == '.' || *p == '_' || *p == '-'))
            *p = '_';
}

static void make_instance(char to[33])
{
    unsigned char raw[16];
    for (size_t n = 0; n < sizeof raw;) {
        ssize_t k = getrandom(raw + n, sizeof raw - n, 0);
        if (k > 0)
            n += (size_t)k;
    }
    for (size_t i = 0; i < sizeof raw; i++)
        snprintf(to + 2 * i, 3, "%02x", raw[i]);
}

struct cdcd_sink *kafka_sink_new(const struct kafka_config *config, const struct cdcd_sink_env *env)
{
    struct cdcd_sink *s = cdcd_xcalloc(1, sizeof *s);
    s->config = config;
    s->env = env;
    kafka_link_init(&s->link, false, config->bootstrap, env->pipeline, &config->properties);
    s->broken = true;
    s->transactional_id = name_or(config->transactional_id, "cdcd-", env->pipeline);
    s->position_name = name_or(config->position_topic, "__cdcd.position.", env->pipeline);
    make_topic_name(s->position_name);
    s->notes_name = config->position_topic && *config->position_topic
                        ? cdcd_xasprintf("%s.notes", config->position_topic)
                        : cdcd_xasprintf("__cdcd.notes.%s", env->pipeline);
    make_topic_name(s->notes_name);
    s->dead_letter_name = config->dead_letter_topic && *config->dead_letter_topic
                              ? cdcd_xstrdup(config->dead_letter_topic)
                              : cdcd_xasprintf("%s.dead-letter", env->topic_prefix);
    make_topic_name(s->dead_letter_name);
    s->position = (struct kafka_topic){.name = s->position_name, .keyed = true};
    s->notes_topic = (struct kafka_topic){.name = s->notes_name, .keyed = true};
    kafka_notes_init(&s->notes);
    s->dead_letter = (struct kafka_topic){.name = s->dead_letter_name};
    make_instance(s->instance);
    cdcd_buf_init(&s->state, 0);
    cdcd_tracker_init(&s->tracker);
    return s;
}

void kafka_sink_free(struct cdcd_sink *s)
{
    while (s->topics) {
        struct kafka_topic *kt = s->topics;
        s->topics = kt->next;
        kt->topic->sink = NULL;
        free(kt);
    }
    kafka_refusals_free(s);
    kafka_marks_take(s, UINT64_MAX);
    free(s->marks);
    cdcd_tracker_free(&s->tracker);
    cdcd_buf_free(&s->state);
    kafka_notes_free(&s->notes);
    free(s->vu);
    free(s->position_name);
    free(s->notes_name);
    free(s->transactional_id);
    free(s->dead_letter_name);
    free(s);
}

static enum cdcd_rc kafka_open(struct cdcd_sink **out, const void *config,
                               const struct cdcd_sink_env *env, struct cdcd_error *err)
{
    *out = NULL;
    struct cdcd_sink *s = kafka_sink_new(config, env);
    /* A wrong property is said now and not at the first connection. */
    rd_kafka_conf_t *conf = kafka_conf(&s->link, err);
    if (!conf) {
        kafka_sink_free(s);
        return CDCD_ERROR;
    }
    rd_kafka_conf_destroy(conf);
    *out = s;
    return CDCD_OK;
}

static void kafka_close(struct cdcd_sink *s)
{
    if (!s)
        return;
    kafka_producer_end(s);
    cdcd_debug("kafka",
               "%llu records, %llu bytes, %llu commits, %llu aborted, %llu refused, %llu skipped, "
               "%llu dead-lettered, %llu sessions",
               (unsigned long long)s->counters.records, (unsigned long long)s->counters.bytes,
               (unsigned long long)s->counters.commits, (unsigned long long)s->counters.aborts,
               (unsigned long long)s->counters.refused, (unsigned long long)s->counters.skipped,
               (unsigned long long)s->counters.dead_lettered,
               (unsigned long long)s->counters.sessions);
    kafka_sink_free(s);
}

/* ---- sessions ---- */

static void session_reset(struct cdcd_sink *s)
{
    kafka_producer_end(s);
    kafka_marks_take(s, UINT64_MAX);
    cdcd_buf_clear(&s->state);
    kafka_notes_clear(&s->notes);
    s->state_new = false;
    cdcd_tracker_reset(&s->tracker);
    s->taken = s->submitted = s->durable = s->commit_seq = 0;
    s->gate = s->position_seq = 0;
    s->position_in_flight = false;
    s->position_at = 0;
    s->tx_closing = s->tx_position = false;
    s->tx_bytes = 0;
    s->fault_set = s->fault_refusal = s->fenced = s->given_up = false;
    s->link.denied = s->link.all_down = false;
    s->link.broker_error[0] = 0;
    s->next_complaint = 0;
    for (size_t i = 0; i < s->nrefusals; i++)
        s->refusals[i].met = 0;
    s->counters.sessions++;
}

static enum cdcd_rc session_begin(struct cdcd_sink *s, struct cdcd_notes *notes,
                                  struct cdcd_error *err)
{
    struct kafka_held held;
    if (kafka_producer_begin(s, err) != CDCD_OK || kafka_topics_again(s, err) != CDCD_OK)
        return CDCD_ERROR;
    if (s->restart_wanted && kafka_producer_restart(s, err) != CDCD_OK)
        return CDCD_ERROR;
    /* After the older instance is fenced and its transaction settled: what is there now is the
     * truth. */
    if (kafka_position_read(s, &s->state, &held, err) != CDCD_OK ||
        kafka_notes_read(s, &held, notes, err) != CDCD_OK)
        return CDCD_ERROR;
    return s->config->delivery == CDCD_EXACTLY_ONCE ? kafka_claim(s, err) : CDCD_OK;
}

static enum cdcd_rc kafka_load(struct cdcd_sink *s, struct cdcd_buf *state,
                               struct cdcd_notes *notes, struct cdcd_error *err)
{
    cdcd_buf_clear(state);
    session_reset(s);
    if (!s->no_loop && kafka_refuse_loop(s->config, s->env, err) != CDCD_OK)
        return CDCD_ERROR;
    s->no_loop = true;
    if (session_begin(s, notes, err) != CDCD_OK)
        return CDCD_ERROR;
    cdcd_buf_add(state, s->state.ptr, s->state.len);
    s->broken = false;
    s->link.loaded_once = true;
    return CDCD_OK;
}

static enum cdcd_rc done(struct cdcd_sink *s, enum cdcd_rc rc)
{
    if (rc == CDCD_ERROR)
        s->broken = true;
    return rc;
}

static enum cdcd_rc not_begun(struct cdcd_error *err)
{
    return cdcd_error_set(err, CDCD_ERR_RETRY, "the Kafka sink has failed and was not begun anew");
}

static enum cdcd_rc kafka_prepare(struct cdcd_sink *s, struct cdcd_topic *const *topics, size_t n,
                                  struct cdcd_error *err)
{
    if (s->broken)
        return not_begun(err);
    if (kafka_topics_prepare(s, topics, n, err) != CDCD_OK)
        return done(s, CDCD_ERROR);
    if (s->restart_wanted && s->tx == KAFKA_TX_NONE && s->in_flight == 0)
        return done(s, kafka_producer_restart(s, err));
    return CDCD_OK;
}

static enum cdcd_rc kafka_write(struct cdcd_sink *s, struct cdcd_batch *b, struct cdcd_error *err)
{
    if (s->broken) {
        s->env->batch_done(s->env->ctx, b);
        return not_begun(err);
    }
    assert(b->state.ptr || !b->notes);
    b->next = NULL;
    *(s->last ? &s->last->next : &s->first) = b;
    s->last = b;
    s->taken = b->seq;
    if (s->config->delivery != CDCD_EXACTLY_ONCE)
        kafka_mark(s, b);
    return done(s, kafka_pump(s, err));
}

/* ---- poll ---- */

static bool idle(const struct cdcd_sink *s)
{
    return !s->first && s->in_flight == 0 && s->tx == KAFKA_TX_NONE && s->durable == s->taken;
}

/* An outage is told once in a while, not at each attempt to connect. */
static void complain(struct cdcd_sink *s)
{
    if (s->in_flight == 0 && s->tx != KAFKA_TX_COMMITTING)
        return;
    int64_t now = cdcd_now_ms();
    if (now - s->last_report < COMPLAIN_MS || now < s->next_complaint)
        return;
    s->next_complaint = now + COMPLAIN_AGAIN_MS;
    char text[640];
    snprintf(text, sizeof text,
             "Kafka at %.200s has confirmed nothing for %lld s (%llu records wait)%s%s",
             s->config->bootstrap, (long long)(now - s->last_report) / 1000,
             (unsigned long long)s->in_flight, *s->link.broker_error ? ": " : "",
             s->link.broker_error);
    cdcd_warn("kafka", "%s", text);
    if (s->env->waits)
        s->env->waits(s->env->ctx, text);
}

static enum cdcd_rc poll_once(struct cdcd_sink *s, int wait_ms, bool more, bool flush,
                              struct cdcd_error *err)
{
    /* A commit flushes by itself. */
    bool now = !more && s->config->delivery != CDCD_EXACTLY_ONCE;
    if (kafka_serve(s, 0, false, err) != CDCD_OK || kafka_pump(s, err) != CDCD_OK ||
        kafka_settle(s, more, flush, err) != CDCD_OK)
        return CDCD_ERROR;
    complain(s);
    int gap = kafka_gap(s);
    if (gap && (s->first || s->state_new)) {
        /* Nothing is under way, so the wait is short and then the work is done. */
        if (wait_ms == 0)
            return CDCD_OK;
        if (kafka_serve(s, gap < wait_ms ? gap : wait_ms, false, err) != CDCD_OK ||
            kafka_pump(s, err) != CDCD_OK)
            return CDCD_ERROR;
        return kafka_settle(s, more, flush, err);
    }
    if (now || (wait_ms > 0 && (s->in_flight > 0 || s->first)))
        return kafka_serve(s, wait_ms, now, err);
    return CDCD_OK;
}

static enum cdcd_rc flush_all(struct cdcd_sink *s, struct cdcd_error *err)
{
    while (!idle(s)) {
        if (poll_once(s, 5, false, true, err) != CDCD_OK)
            return CDCD_ERROR;
        if (cdcd_now_ms() - s->last_report > FLUSH_MS)
            return kafka_unreachable(&s->link, err);
    }
    return CDCD_OK;
}

static enum cdcd_rc kafka_poll(struct cdcd_sink *s, int timeout_ms, bool more, bool flush,
                               struct cdcd_error *err)
{
    if (s->broken)
        return not_begun(err);
    return done(s, flush ? flush_all(s, err) : poll_once(s, timeout_ms, more, false, err));
}

static bool kafka_wants_schemas(const void *config)
{
    return *((const struct kafka_config *)config)->schema_topic != 0;
}

static const struct cdcd_sink_ops kafka_sink = {
    .options = kafka_options,
    .config_size = sizeof(struct kafka_config),
    .open = kafka_open,
    .close = kafka_close,
    .check = kafka_check,
    .load = kafka_load,
    .prepare = kafka_prepare,
    .write = kafka_write,
    .poll = kafka_poll,
    .wants_schemas = kafka_wants_schemas,
};

extern const struct cdcd_plugin CDCD_PLUGIN_SYMBOL(kafka);
CDCD_EXPORT const struct cdcd_plugin CDCD_PLUGIN_SYMBOL(kafka) = {
    .abi = CDCD_PLUGIN_ABI,
    .size = sizeof(struct cdcd_plugin),
    .name = "kafka",
    .version = CDCD_VERSION,
    .doc = "Apache Kafka topics: compacted, exactly once; as a source, shared by a consumer group.",
    .source = &kafka_source,
    .sink = &kafka_sink,
};
