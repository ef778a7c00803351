/*
 * The Kafka source: options, sessions, and the calls of the pipeline. README.md tells how the parts
 * play together.
 */
#include "source.h"

#include <inttypes.h>
#include <stdlib.h>
#include <time.h>

static const char *const policy_names[] = {"stop", "skip", NULL};

#define FIELD(f) .offset = offsetof(struct kafka_source_config, f)

static const struct cdcd_option source_options[] = {
    {.name = "bootstrap.servers",
     .type = CDCD_OPT_STR,
     FIELD(bootstrap),
     .flags = CDCD_OPT_REQUIRED | CDCD_OPT_SAMPLE,
     .sample = "127.0.0.1:9092",
     .doc = "Brokers to begin with, HOST:PORT, comma-separated."},
    {.name = "topics",
     .type = CDCD_OPT_LIST,
     FIELD(topics),
     .flags = CDCD_OPT_REGEX | CDCD_OPT_SAMPLE,
     .sample = "shop\\..*",
     .doc = "Topics to read, as regular expressions; new ones that match are read as they appear. "
            "Default: all that begin with topic.prefix and a dot. Topics that begin with two "
            "underscores are never read."},
    {.name = "topics.exclude",
     .type = CDCD_OPT_LIST,
     FIELD(exclude),
     .flags = CDCD_OPT_REGEX,
     .doc = "Topics that match `topics` and are not to be read all the same.",
     .sample = "shop\\.audit.*"},
    {.name = "group.id",
     .type = CDCD_OPT_STR,
     FIELD(group),
     .default_ = "",
     .flags = CDCD_OPT_SAMPLE,
     .sample = "cdcd-shop",
     .doc = "Consumer group. Instances with the same one share the partitions. A new group reads "
            "from the beginning. Default: cdcd-NAME."},
    {.name = "topics.refresh.interval.ms",
     .type = CDCD_OPT_DURATION,
     FIELD(refresh_ms),
     .default_ = "10s",
     .min = 100,
     .max = 3600000,
     .doc = "How often to look for new topics and partitions."},
    {.name = "schema.topic",
     .type = CDCD_OPT_STR,
     FIELD(schema_topic),
     .default_ = CDCD_SCHEMA_TOPIC,
     .doc = "Topic with the schemas of rows, which a Kafka sink of cdcd has written; for sinks "
            "that want them. Empty: none."},
    {.name = "errors.policy",
     .type = CDCD_OPT_ENUM,
     FIELD(policy),
     .default_ = "stop",
     .values = policy_names,
     .doc = "What to do with a record over max.event.bytes: stop, or skip it with a warning."},
    {.name = "properties",
     .type = CDCD_OPT_MAP,
     FIELD(properties),
     .doc = "Properties of librdkafka, passed on as they are: security, session.timeout.ms, "
            "max.poll.interval.ms, group.instance.id (static membership), fetch sizes.",
     .sample = "{session.timeout.ms: 45000}"},
    {0},
};

/* ---- open and close ---- */

/* The prefix as a regular expression. */
static char *prefix_pattern(const char *prefix)
{
    struct cdcd_buf b;
    cdcd_buf_init(&b, 0);
    for (const char *p = prefix; *p; p++)
        cdcd_buf_addf(&b, strchr(".[]{}()*+?^$|\\", *p) ? "\\%c" : "%c", *p);
    cdcd_buf_adds(&b, "\\..*");
    char *out = cdcd_xstrdup(cdcd_buf_cstr(&b));
    cdcd_buf_free(&b);
    return out;
}

static enum cdcd_rc compile_topics(struct cdcd_source *s, struct cdcd_error *err)
{
    char *fallback = prefix_pattern(s->env->topic_prefix);
    const struct cdcd_strlist list = {&fallback, 1};
    enum cdcd_rc rc = cdcd_patterns_compile(s->config->topics.n ? &s->config->topics : &list,
                                            "source.kafka.topics", false, &s->include, err);
    if (rc == CDCD_OK)
        rc = cdcd_patterns_compile(&s->config->exclude, "source.kafka.topics.exclude", false,
                                   &s->exclude, err);
    free(fallback);
    return rc;
}

struct cdcd_source *kafka_source_new(const struct kafka_source_config *config,
                                     const struct cdcd_source_env *env, struct cdcd_error *err)
{
    struct cdcd_source *s = cdcd_xcalloc(1, sizeof *s);
    s->config = config;
    s->env = env;
    kafka_link_init(&s->link, true, config->bootstrap, env->pipeline, &config->properties);
    s->group = *config->group ? cdcd_xstrdup(config->group)
                              : cdcd_xasprintf("cdcd-%s", env->pipeline);
    if (compile_topics(s, err) == CDCD_OK)
        return s;
    kafka_source_free(s);
    return NULL;
}

void kafka_source_free(struct cdcd_source *s)
{
    kafka_consumer_end(s);
    kafka_offsets_free(&s->offsets);
    kafka_schemas_free(&s->schemas);
    for (size_t i = 0; i < s->subscribed.n; i++)
        free(s->subscribed.items[i]);
    free(s->subscribed.items);
    cdcd_patterns_free(&s->include);
    cdcd_patterns_free(&s->exclude);
    free(s->group);
    free(s);
}

static enum cdcd_rc source_open(struct cdcd_source **out, const void *config,
                                const struct cdcd_source_env *env, struct cdcd_error *err)
{
    const struct rd_kafka_metadata *md;
    *out = NULL;
    struct cdcd_source *s = kafka_source_new(config, env, err);
    if (!s)
        return CDCD_ERROR;
    if ((env->replay && (kafka_replay_valid(env->replay_from, "--from", err) != CDCD_OK ||
                         kafka_replay_valid(env->replay_to, "--to", err) != CDCD_OK)) ||
        kafka_consumer_begin(s, err) != CDCD_OK ||
        kafka_list(&s->link, s->rk, &md, err) != CDCD_OK) {
        kafka_source_free(s);
        return CDCD_ERROR;
    }
    rd_kafka_metadata_destroy(md);
    *out = s;
    return CDCD_OK;
}

static void source_close(struct cdcd_source *s)
{
    if (s)
        kafka_source_free(s);
}

/* ---- stream ---- */

static void ignore_part(void *ctx, const char *topic, int32_t partition,
                        const struct kafka_mark *mark)
{
    (void)ctx, (void)topic, (void)partition, (void)mark;
}

static enum cdcd_rc source_resume(struct cdcd_source *s, struct cdcd_slice from,
                                  struct cdcd_buf *position, struct cdcd_error *err)
{
    cdcd_buf_clear(position);
    if (!from.ptr) {
        kafka_offsets_write(&s->offsets, position);
        return CDCD_OK;
    }
    if (!kafka_offsets_parse(from, ignore_part, NULL))
        return cdcd_error_set(err, CDCD_ERR_CONFIG,
                              "the position that the sink holds is not of a Kafka source: %.*s; "
                              "was the pipeline another one before? Give it another name, or an "
                              "empty target",
                              (int)(from.len < 200 ? from.len : 200), from.ptr);
    cdcd_buf_add(position, from.ptr, from.len);
    return CDCD_OK;
}

static void take_known(void *ctx, const char *topic, int32_t partition,
                       const struct kafka_mark *mark)
{
    struct cdcd_source *s = ctx;
    struct kafka_part *p = kafka_offsets_part(&s->offsets, topic, partition);
    p->known = true;
    p->read = p->held = *mark;
    p->pushed = mark->next;
}

static bool some_missing(const struct cdcd_source *s)
{
    for (size_t i = 0; i < s->offsets.n; i++)
        if (s->offsets.topics[i]->missing)
            return true;
    return false;
}

/* Looks at the topics until it is sure that none is gone. */
static enum cdcd_rc find_topics(struct cdcd_source *s, struct cdcd_error *err)
{
    const struct timespec nap = {0, 100000000};
    enum cdcd_rc rc = kafka_source_refresh(s, err);
    while (rc == CDCD_OK && some_missing(s) && !kafka_source_stopping(s)) {
        if (cdcd_now_ms() < s->next_refresh)
            nanosleep(&nap, NULL);
        else
            rc = kafka_source_refresh(s, err);
    }
    return rc;
}

static enum cdcd_rc source_start(struct cdcd_source *s, struct cdcd_slice from,
                                 struct cdcd_error *err)
{
    kafka_offsets_parse(from, take_known, s);
    if (kafka_schemas_begin(s, err) != CDCD_OK || find_topics(s, err) != CDCD_OK)
        return CDCD_ERROR;
    if (s->env->replay && kafka_replay_start(s, err) != CDCD_OK)
        return CDCD_ERROR;
    s->started = true;
    s->link.loaded_once = true;
    s->last_read = s->last_answer = cdcd_now_ms();
    return CDCD_OK;
}

static enum cdcd_rc source_read(struct cdcd_source *s, struct cdcd_batch *b, int64_t deadline_ms,
                                struct cdcd_error *err)
{
    return kafka_consumer_read(s, b, deadline_ms, err);
}

static void take_held(void *ctx, const char *topic, int32_t partition,
                      const struct kafka_mark *mark)
{
    struct cdcd_source *s = ctx;
    struct kafka_parts *t = kafka_offsets_find(&s->offsets, topic);
    if (t && partition < t->n && mark->next > t->items[partition].held.next)
        t->items[partition].held = *mark;
}

static void source_ack(struct cdcd_source *s, struct cdcd_slice position)
{
    kafka_offsets_parse(position, take_held, s);
}

static enum cdcd_rc source_idle(struct cdcd_source *s, int64_t now, struct cdcd_error *err)
{
    return kafka_consumer_idle(s, now, err);
}

static void source_lag(struct cdcd_source *s, struct cdcd_lag *out)
{
    out->bytes = out->millis = -1;
    if (!s->started)
        return;
    int64_t now = cdcd_wallclock_us() / 1000;
    if (s->at_end >= s->assigned)
        out->millis = 0;
    else if (s->newest_ms > 0)
        out->millis = now > s->newest_ms ? now - s->newest_ms : 0;
}

const struct cdcd_source_ops kafka_source = {
    .connector = "kafka",
    .options = source_options,
    .config_size = sizeof(struct kafka_source_config),
    .open = source_open,
    .close = source_close,
    .check = kafka_source_check,
    .drop = kafka_source_drop,
    .resume = source_resume,
    .start = source_start,
    .read = source_read,
    .ack = source_ack,
    .idle = source_idle,
    .lag = source_lag,
    .describe = kafka_offsets_describe,
    .records = true,
    .keeps_position = true,
    .look = kafka_source_look,
    .progress = kafka_replay_progress,
};
