/*
 * Pre-flight checks. Nothing here may disturb a running instance: the transactional id that is
 * tried is another one.
 */
#include "kafka.h"

#include <stdio.h>
#include <stdlib.h>

struct checking {
    struct cdcd_sink *s;
    struct cdcd_report *report;
    const struct rd_kafka_metadata *md;
};

static void add(const struct checking *c, enum cdcd_check_level level, const char *what,
                const char *mend, const char *fmt, ...) CDCD_PRINTF(5, 6);

static void add(const struct checking *c, enum cdcd_check_level level, const char *what,
                const char *mend, const char *fmt, ...)
{
    char text[2048];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    c->report->add(c->report->ctx, level, what, text, mend);
}

static bool check_reachable(struct checking *c)
{
    struct cdcd_sink *s = c->s;
    struct cdcd_error err = {0};
    rd_kafka_conf_t *conf = kafka_conf(&s->link, &err);
    s->rk = conf ? kafka_client(&s->link, RD_KAFKA_PRODUCER, conf, &err) : NULL;
    if (!s->rk) {
        add(c, CDCD_CHECK_FAIL, "sink.kafka", NULL, "%s", err.text);
        return false;
    }
    if (kafka_list_topics(s, &c->md, &err) != CDCD_OK) {
        add(c, CDCD_CHECK_FAIL, "sink.kafka broker", NULL, "%s", err.text);
        return false;
    }
    add(c, CDCD_CHECK_OK, "sink.kafka broker", NULL, "%s answers: %d broker(s), %d topics",
        s->config->bootstrap, c->md->broker_cnt, c->md->topic_cnt);
    return true;
}

static void check_transactions(struct checking *c)
{
    struct cdcd_sink *s = c->s;
    struct cdcd_error err = {0};
    rd_kafka_error_t *e = NULL;
    rd_kafka_t *rk = NULL;
    char *id = cdcd_xasprintf("%s-check", s->transactional_id);
    rd_kafka_conf_t *conf = kafka_conf(&s->link, &err);
    if (conf && kafka_conf_set(&s->link, conf, "transactional.id", id, &err) != CDCD_OK)
        rd_kafka_conf_destroy(conf);
    else if (conf)
        rk = kafka_client(&s->link, RD_KAFKA_PRODUCER, conf, &err);
    if (rk)
        e = rd_kafka_init_transactions(rk, 15000);
    if (!rk) {
        add(c, CDCD_CHECK_FAIL, "sink.kafka transactions", NULL, "%s", err.text);
    } else if (e) {
        const char *mend = kafka_mend(rd_kafka_error_code(e));
        add(c, CDCD_CHECK_FAIL, "sink.kafka transactions", *mend ? mend : NULL, "%s: %s", id,
            rd_kafka_error_string(e));
    } else {
        add(c, CDCD_CHECK_OK, "sink.kafka transactions", NULL, "exactly-once works");
    }
    if (e)
        rd_kafka_error_destroy(e);
    if (rk)
        rd_kafka_destroy(rk);
    free(id);
}

static const char *policy_command(struct cdcd_sink *s, const char *topic, const char *policy)
{
    return cdcd_xasprintf("kafka-configs.sh --bootstrap-server %s --alter --topic %s --add-config "
                          "cleanup.policy=%s",
                          s->config->bootstrap, topic, policy);
}

static void check_position(struct checking *c)
{
    struct cdcd_sink *s = c->s;
    struct cdcd_error err = {0};
    struct kafka_setting set;
    struct cdcd_buf state;
    struct kafka_held held;
    bool there = false;
    for (int i = 0; i < c->md->topic_cnt; i++)
        there = there || strcmp(c->md->topics[i].topic, s->position_name) == 0;
    if (!there) {
        add(c, CDCD_CHECK_OK, "sink.kafka position", NULL,
            "topic %s does not exist yet: it will be created, and the pipeline begins anew",
            s->position_name);
        return;
    }
    kafka_describe(s, (const char *const[]){s->position_name}, 1, &set);
    if (*set.cleanup_policy && !strstr(set.cleanup_policy, "compact")) {
        const char *command = policy_command(s, s->position_name, "compact");
        add(c, CDCD_CHECK_FAIL, "sink.kafka position", command,
            "topic %s has cleanup.policy=%s: the position would be deleted one day",
            s->position_name, set.cleanup_policy);
        free((char *)(uintptr_t)command);
        return;
    }
    cdcd_buf_init(&state, 0);
    struct cdcd_notes *notes = cdcd_notes_new();
    if (kafka_position_read(s, &state, &held, &err) != CDCD_OK ||
        kafka_notes_read(s, &held, notes, &err) != CDCD_OK)
        add(c, CDCD_CHECK_FAIL, "sink.kafka position", NULL, "%s", err.text);
    else
        add(c, CDCD_CHECK_OK, "sink.kafka position", NULL, "topic %s %s", s->position_name,
            state.len ? "holds a position: the pipeline goes on from there"
                      : "holds no position: the pipeline begins anew");
    cdcd_notes_free(notes);
    cdcd_buf_free(&state);
}

/* Topics that never have keys. */
static bool is_keyless(const struct cdcd_sink *s, const char *name)
{
    const char *rest = name + strlen(s->env->topic_prefix);
    return strcmp(rest, ".message") == 0 || strcmp(rest, ".transaction") == 0 ||
           strcmp(name, s->dead_letter_name) == 0;
}

static void check_topic(struct checking *c, const char *name, const struct kafka_setting *set)
{
    struct cdcd_sink *s = c->s;
    bool compacted = strstr(set->cleanup_policy, "compact") != NULL;
    char *what = cdcd_xasprintf("topic %s", name);
    const char *command = NULL;
    if (!*set->cleanup_policy) {
        add(c, CDCD_CHECK_WARN, what, "allow the user of cdcd DescribeConfigs on the topic",
            "its settings may not be read");
    } else if (is_keyless(s, name) && compacted) {
        command = policy_command(s, name, "delete");
        add(c, CDCD_CHECK_FAIL, what, command,
            "cleanup.policy=%s, but its records have no key: the broker will refuse them",
            set->cleanup_policy);
    } else if (!is_keyless(s, name) && !compacted && strstr(s->config->cleanup_policy, "compact")) {
        command = policy_command(s, name, "compact");
        add(c, CDCD_CHECK_WARN, what, command,
            "cleanup.policy=%s: records are deleted by age or size, keys too (fine for a table "
            "without a key)",
            set->cleanup_policy);
    } else {
        add(c, CDCD_CHECK_OK, what, NULL, "cleanup.policy=%s, max.message.bytes=%lld",
            set->cleanup_policy, (long long)set->max_bytes);
    }
    free((char *)(uintptr_t)command);
    free(what);
}

static void check_topics(struct checking *c)
{
    size_t n = 0, plen = strlen(c->s->env->topic_prefix), count = (size_t)c->md->topic_cnt;
    const char **names = cdcd_xcalloc(count + 1, sizeof *names);
    struct kafka_setting *set = cdcd_xcalloc(count + 1, sizeof *set);
    for (size_t i = 0; i < count; i++) {
        const char *name = c->md->topics[i].topic;
        if (strncmp(name, c->s->env->topic_prefix, plen) == 0 && name[plen] == '.')
            names[n++] = name;
    }
    if (n)
        kafka_describe(c->s, names, n, set);
    for (size_t i = 0; i < n; i++)
        check_topic(c, names[i], &set[i]);
    if (!n)
        add(c, CDCD_CHECK_OK, "sink.kafka topics", NULL,
            "none begins with %s. yet: they will be created with cleanup.policy=%s",
            c->s->env->topic_prefix, c->s->config->cleanup_policy);
    free(set);
    free(names);
}

enum cdcd_rc kafka_check(const void *config, const struct cdcd_sink_env *env,
                         struct cdcd_report *report, struct cdcd_error *err)
{
    struct checking c = {.s = kafka_sink_new(config, env), .report = report};
    (void)err;
    struct cdcd_error loop = {0};
    if (check_reachable(&c)) {
        if (kafka_refuse_loop(config, env, &loop) != CDCD_OK)
            add(&c, CDCD_CHECK_FAIL, "sink.kafka", NULL, "%s", loop.text);
        if (c.s->config->delivery == CDCD_EXACTLY_ONCE)
            check_transactions(&c);
        check_position(&c);
        check_topics(&c);
    }
    if (c.md)
        rd_kafka_metadata_destroy(c.md);
    if (c.s->rk)
        rd_kafka_destroy(c.s->rk);
    c.s->rk = NULL;
    kafka_sink_free(c.s);
    return CDCD_OK;
}
