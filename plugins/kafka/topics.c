/*
 * Topics are looked up, created and examined before their first record, all of a batch or of
 * a start in a few requests. They are created here and not by the broker's auto-creation,
 * which would give them its own default policy: so nothing may ask librdkafka for a topic by
 * name before it exists.
 */
#include "kafka.h"

#include <stdio.h>
#include <stdlib.h>

#define ADMIN_MS     30000
#define LIST_MS      15000
#define DOWN_MS      3000 /* no broker can be reached for so long: enough */
#define ADMIN_TOPICS 200  /* a request */

static rd_kafka_event_t *admin_wait(rd_kafka_t *rk, rd_kafka_queue_t *q)
{
    int64_t give_up = cdcd_now_ms() + ADMIN_MS + 5000;
    rd_kafka_event_t *ev = NULL;
    while (!ev && cdcd_now_ms() < give_up) {
        ev = rd_kafka_queue_poll(q, 200);
        rd_kafka_poll(rk, 0);
    }
    return ev;
}

static rd_kafka_AdminOptions_t *admin_options(rd_kafka_t *rk, rd_kafka_admin_op_t op)
{
    char text[256];
    rd_kafka_AdminOptions_t *o = rd_kafka_AdminOptions_new(rk, op);
    rd_kafka_AdminOptions_set_request_timeout(o, ADMIN_MS, text, sizeof text);
    if (op == RD_KAFKA_ADMIN_OP_CREATETOPICS)
        rd_kafka_AdminOptions_set_operation_timeout(o, ADMIN_MS / 2, text, sizeof text);
    return o;
}

/* ---- looking up ---- */

static int by_name(const void *a, const void *b)
{
    return strcmp(((const rd_kafka_metadata_topic_t *)a)->topic,
                  ((const rd_kafka_metadata_topic_t *)b)->topic);
}

enum cdcd_rc kafka_list(struct kafka_link *link, rd_kafka_t *rk,
                        const struct rd_kafka_metadata **out, struct cdcd_error *err)
{
    rd_kafka_resp_err_t code;
    int64_t start = cdcd_now_ms(), waited;
    do {
        code = rd_kafka_metadata(rk, 1, NULL, out, 1000);
        rd_kafka_poll(rk, 0);
        waited = cdcd_now_ms() - start;
    } while ((code == RD_KAFKA_RESP_ERR__TIMED_OUT || code == RD_KAFKA_RESP_ERR__TRANSPORT) &&
             waited < LIST_MS && !link->denied && !(link->all_down && waited > DOWN_MS));
    if (code)
        return kafka_fail(link, err, code, NULL, "listing topics");
    int32_t controller = rd_kafka_controllerid(rk, 0);
    link->has_controller = false;
    link->brokers = (*out)->broker_cnt;
    for (int i = 0; i < (*out)->broker_cnt; i++)
        link->has_controller = link->has_controller || (*out)->brokers[i].id == controller;
    qsort((*out)->topics, (size_t)(*out)->topic_cnt, sizeof *(*out)->topics, by_name);
    return CDCD_OK;
}

enum cdcd_rc kafka_list_topics(struct cdcd_sink *s, const struct rd_kafka_metadata **out,
                               struct cdcd_error *err)
{
    return kafka_list(&s->link, s->rk, out, err);
}

const rd_kafka_metadata_topic_t *kafka_find_topic(const struct rd_kafka_metadata *md,
                                                  const char *name)
{
    rd_kafka_metadata_topic_t key = {.topic = (char *)(uintptr_t)name};
    const rd_kafka_metadata_topic_t *t = md->topic_cnt == 0
                                             ? NULL
                                             : bsearch(&key, md->topics, (size_t)md->topic_cnt,
                                                       sizeof key, by_name);
    return t && t->err != RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART && t->partition_cnt > 0 ? t
                                                                                          : NULL;
}

static bool has_leaders(const struct rd_kafka_metadata *md, const char *name)
{
    const rd_kafka_metadata_topic_t *t = kafka_find_topic(md, name);
    if (!t || t->err)
        return false;
    for (int i = 0; i < t->partition_cnt; i++)
        if (t->partitions[i].leader < 0)
            return false;
    return true;
}

/* ---- creating ---- */

/* The topics in which the sink remembers. */
static bool is_memory(const struct cdcd_sink *s, const struct kafka_topic *kt)
{
    return kt == &s->position || kt == &s->notes_topic;
}

/* Everything that is fixed when a topic is made. */
struct shape {
    const char *name, *cleanup_policy;
    int partitions;
    const struct cdcd_strmap *more;
    bool small; /* positions, notes, schemas: short segments, cleaned early */
};

static enum cdcd_rc add_setting(struct cdcd_sink *s, rd_kafka_NewTopic_t *t, const char *name,
                                const char *value, struct cdcd_error *err)
{
    rd_kafka_resp_err_t code = rd_kafka_NewTopic_set_config(t, name, value);
    return code ? kafka_fail(&s->link, err, code, NULL, "sink.kafka.topic.config.%s", name)
                : CDCD_OK;
}

static enum cdcd_rc new_topic(struct cdcd_sink *s, const struct shape *shape,
                              rd_kafka_NewTopic_t **out, struct cdcd_error *err)
{
    static const char *const small[][2] = {
        {"segment.bytes", "20971520"}, /* a record must fit in one */
        {"min.cleanable.dirty.ratio", "0.1"},
        {"max.message.bytes", "16777216"}, /* the state of a large snapshot */
    };
    char text[256];
    *out = rd_kafka_NewTopic_new(shape->name, shape->partitions, (int)s->config->replication, text,
                                 sizeof text);
    if (!*out)
        return cdcd_error_set(err, CDCD_ERR_CONFIG, "topic %s: %s", shape->name, text);
    enum cdcd_rc rc = CDCD_OK;
    if (*shape->cleanup_policy)
        rc = add_setting(s, *out, "cleanup.policy", shape->cleanup_policy, err);
    for (size_t i = 0; shape->small && rc == CDCD_OK && i < 3; i++)
        rc = add_setting(s, *out, small[i][0], small[i][1], err);
    for (size_t i = 0; shape->more && rc == CDCD_OK && i < shape->more->n; i++)
        rc = add_setting(s, *out, shape->more->items[i].key, shape->more->items[i].value, err);
    return rc;
}

static enum cdcd_rc create_result(struct cdcd_sink *s, rd_kafka_event_t *ev, struct cdcd_error *err)
{
    size_t n = 0;
    rd_kafka_resp_err_t code = rd_kafka_event_error(ev);
    /* Without CreateTopics the broker's auto-creation has to do. */
    if (code == RD_KAFKA_RESP_ERR__UNSUPPORTED_FEATURE)
        return CDCD_OK;
    if (code)
        return kafka_fail(&s->link, err, code, rd_kafka_event_error_string(ev), "creating topics");
    const rd_kafka_topic_result_t **results = rd_kafka_CreateTopics_result_topics(
        rd_kafka_event_CreateTopics_result(ev), &n);
    for (size_t i = 0; i < n; i++) {
        const char *name = rd_kafka_topic_result_name(results[i]);
        code = rd_kafka_topic_result_error(results[i]);
        if (code == RD_KAFKA_RESP_ERR_NO_ERROR)
            cdcd_info("kafka", "topic %s created", name);
        else if (code == RD_KAFKA_RESP_ERR_INVALID_REPLICATION_FACTOR &&
                 s->config->replication <= s->link.brokers)
            /* Brokers that have just started do not count yet. */
            return cdcd_error_set(err, CDCD_ERR_RETRY, "topic %s cannot be created now: %s", name,
                                  rd_kafka_topic_result_error_string(results[i]));
        else if (code != RD_KAFKA_RESP_ERR_TOPIC_ALREADY_EXISTS)
            return kafka_fail(&s->link, err, code, rd_kafka_topic_result_error_string(results[i]),
                              "topic %s does not exist and cannot be created", name);
    }
    return CDCD_OK;
}

static enum cdcd_rc create_some(struct cdcd_sink *s, const struct shape *shapes, size_t n,
                                struct cdcd_error *err)
{
    rd_kafka_NewTopic_t *topics[ADMIN_TOPICS] = {NULL};
    rd_kafka_event_t *ev = NULL;
    rd_kafka_queue_t *q = rd_kafka_queue_new(s->rk);
    enum cdcd_rc rc = CDCD_OK;
    for (size_t i = 0; rc == CDCD_OK && i < n; i++)
        rc = new_topic(s, &shapes[i], &topics[i], err);
    if (rc == CDCD_OK) {
        rd_kafka_AdminOptions_t *o = admin_options(s->rk, RD_KAFKA_ADMIN_OP_CREATETOPICS);
        rd_kafka_CreateTopics(s->rk, topics, n, o, q);
        rd_kafka_AdminOptions_destroy(o);
        ev = admin_wait(s->rk, q);
        rc = ev ? create_result(s, ev, err)
                : kafka_fail(&s->link, err, RD_KAFKA_RESP_ERR__TIMED_OUT, NULL, "creating topics");
    }
    if (ev)
        rd_kafka_event_destroy(ev);
    for (size_t i = 0; i < n && topics[i]; i++)
        rd_kafka_NewTopic_destroy(topics[i]);
    rd_kafka_queue_destroy(q);
    return rc;
}

/* Creates those that are missing, of which *created is the number. Notes how many partitions
 * the others have. */
static enum cdcd_rc create_missing(struct cdcd_sink *s, struct kafka_topic **topics,
                                   const struct shape *shapes, size_t n, size_t *created,
                                   struct cdcd_error *err)
{
    const struct rd_kafka_metadata *md = NULL;
    struct shape *missing = cdcd_xcalloc(n ? n : 1, sizeof *missing);
    size_t k = 0;
    enum cdcd_rc rc = kafka_list_topics(s, &md, err);
    for (size_t i = 0; rc == CDCD_OK && i < n; i++) {
        const rd_kafka_metadata_topic_t *t = kafka_find_topic(md, shapes[i].name);
        topics[i]->partitions = t ? t->partition_cnt : shapes[i].partitions;
        if (topics[i]->partitions < 1)
            topics[i]->partitions = 1;
        if (!t)
            missing[k++] = shapes[i];
    }
    if (rc == CDCD_OK && k && !s->link.has_controller)
        rc = cdcd_error_set(err, CDCD_ERR_RETRY,
                            "topic %s cannot be created: the cluster has no controller now",
                            missing[0].name);
    for (size_t at = 0; rc == CDCD_OK && at < k; at += ADMIN_TOPICS)
        rc = create_some(s, missing + at, k - at < ADMIN_TOPICS ? k - at : ADMIN_TOPICS, err);
    if (md)
        rd_kafka_metadata_destroy(md);
    free(missing);
    *created = k;
    return rc;
}

/* ---- settings ---- */

static void take_setting(struct kafka_setting *to, const char *name, const char *value)
{
    if (!value)
        return;
    if (strcmp(name, "cleanup.policy") == 0)
        snprintf(to->cleanup_policy, sizeof to->cleanup_policy, "%s", value);
    else if (strcmp(name, "max.message.bytes") == 0)
        to->max_bytes = strtoll(value, NULL, 10);
}

static void take_settings(rd_kafka_event_t *ev, const char *const *names, size_t n,
                          struct kafka_setting *out)
{
    size_t nres = 0, nset = 0;
    const rd_kafka_ConfigResource_t **res = rd_kafka_DescribeConfigs_result_resources(
        rd_kafka_event_DescribeConfigs_result(ev), &nres);
    for (size_t i = 0, at = 0; i < nres; i++) {
        const char *name = rd_kafka_ConfigResource_name(res[i]);
        /* Answers come in the order of the request; do not rely on it, but begin there. */
        for (size_t k = 0; k < n && strcmp(names[at % n], name) != 0; k++)
            at++;
        if (rd_kafka_ConfigResource_error(res[i]) || strcmp(names[at % n], name) != 0)
            continue;
        const rd_kafka_ConfigEntry_t **set = rd_kafka_ConfigResource_configs(res[i], &nset);
        for (size_t k = 0; k < nset; k++)
            take_setting(&out[at % n], rd_kafka_ConfigEntry_name(set[k]),
                         rd_kafka_ConfigEntry_value(set[k]));
    }
}

static void describe_some(rd_kafka_t *rk, const char *const *names, size_t n,
                          struct kafka_setting *out)
{
    rd_kafka_ConfigResource_t *res[ADMIN_TOPICS];
    rd_kafka_queue_t *q = rd_kafka_queue_new(rk);
    rd_kafka_AdminOptions_t *o = admin_options(rk, RD_KAFKA_ADMIN_OP_DESCRIBECONFIGS);
    for (size_t i = 0; i < n; i++) {
        res[i] = rd_kafka_ConfigResource_new(RD_KAFKA_RESOURCE_TOPIC, names[i]);
        /* Only these are asked for; the values mean nothing here. */
        rd_kafka_ConfigResource_set_config(res[i], "cleanup.policy", "");
        rd_kafka_ConfigResource_set_config(res[i], "max.message.bytes", "");
    }
    rd_kafka_DescribeConfigs(rk, res, n, o, q);
    rd_kafka_event_t *ev = admin_wait(rk, q);
    if (ev && !rd_kafka_event_error(ev))
        take_settings(ev, names, n, out);
    else if (ev)
        cdcd_debug("kafka", "settings of topics stay unknown: %s", rd_kafka_event_error_string(ev));
    if (ev)
        rd_kafka_event_destroy(ev);
    rd_kafka_AdminOptions_destroy(o);
    rd_kafka_ConfigResource_destroy_array(res, n);
    rd_kafka_queue_destroy(q);
}

void kafka_settings(struct kafka_link *link, rd_kafka_t *rk, const char *const *names, size_t n,
                    struct kafka_setting *out)
{
    memset(out, 0, n * sizeof *out);
    /* librdkafka would wait its whole time for a controller. */
    if (!link->has_controller)
        return;
    for (size_t at = 0; at < n; at += ADMIN_TOPICS)
        describe_some(rk, names + at, n - at < ADMIN_TOPICS ? n - at : ADMIN_TOPICS, out + at);
}

void kafka_describe(struct cdcd_sink *s, const char *const *names, size_t n,
                    struct kafka_setting *out)
{
    kafka_settings(&s->link, s->rk, names, n, out);
}

/* ---- making ready ---- */

static void shape_of(const struct cdcd_sink *s, const struct kafka_topic *kt, struct shape *shape)
{
    *shape = (struct shape){.name = kt->name,
                            .partitions = (int)s->config->partitions,
                            .cleanup_policy = kt->keyed ? s->config->cleanup_policy : "delete",
                            .more = &s->config->topic_config};
    if (!kt->topic) {
        shape->more = NULL;
        shape->partitions = 1;
    }
    if (kt->schemas)
        shape->partitions = 1; /* in the order in which they came up */
    if (is_memory(s, kt) || kt->schemas) {
        shape->cleanup_policy = "compact";
        shape->small = true;
    }
}

static bool is_compacted(const char *policy)
{
    return strstr(policy, "compact") != NULL;
}

static enum cdcd_rc examine(struct cdcd_sink *s, struct kafka_topic *kt,
                            const struct kafka_setting *set, struct cdcd_error *err)
{
    kt->compacted = is_compacted(set->cleanup_policy);
    kt->max_bytes = set->max_bytes;
    if (kt->compacted && !kt->keyed)
        return cdcd_error_set(
            err, CDCD_ERR_CONFIG,
            "topic %s has cleanup.policy=%s, but its records have no key and "
            "the broker refuses those in a compacted topic; run: kafka-configs.sh "
            "--bootstrap-server %s --alter --topic %s --add-config "
            "cleanup.policy=delete",
            kt->name, set->cleanup_policy, s->config->bootstrap, kt->name);
    if (is_memory(s, kt) && *set->cleanup_policy && !kt->compacted)
        return cdcd_error_set(
            err, CDCD_ERR_CONFIG,
            "topic %s holds the pipeline's position or notes but has "
            "cleanup.policy=%s, so they would be deleted one day; run: kafka-configs.sh "
            "--bootstrap-server %s --alter --topic %s --add-config "
            "cleanup.policy=compact",
            kt->name, set->cleanup_policy, s->config->bootstrap, kt->name);
    if (!kt->warned && kt->keyed && *set->cleanup_policy && !kt->compacted &&
        is_compacted(s->config->cleanup_policy)) {
        kt->warned = true;
        cdcd_warn("kafka",
                  "topic %s exists with cleanup.policy=%s: its records will be deleted by age or "
                  "size; to keep the last one of each key run: kafka-configs.sh "
                  "--bootstrap-server %s --alter --topic %s --add-config cleanup.policy=compact",
                  kt->name, set->cleanup_policy, s->config->bootstrap, kt->name);
    }
    /* A set of small records that is too large as a set must not come up. */
    int64_t fits = kt->max_bytes - kt->max_bytes / 20 - 512;
    if (kt->max_bytes && fits < s->batch_size) {
        s->batch_size = fits > 1000 ? fits : 1000;
        s->restart_wanted = true;
    }
    return CDCD_OK;
}

/* Until each of them can be produced to; otherwise librdkafka would find out late. */
static enum cdcd_rc wait_known(struct cdcd_sink *s, struct kafka_topic **topics, size_t n,
                               struct cdcd_error *err)
{
    int64_t give_up = cdcd_now_ms() + ADMIN_MS;
    size_t at = 0;
    for (int wait = 10; at < n; wait = wait < 640 ? wait * 2 : 640) {
        const struct rd_kafka_metadata *md;
        size_t before = at;
        if (kafka_list_topics(s, &md, err) != CDCD_OK)
            return CDCD_ERROR;
        while (at < n && has_leaders(md, topics[at]->name))
            at++;
        rd_kafka_metadata_destroy(md);
        if (at > before)
            give_up = cdcd_now_ms() + ADMIN_MS;
        if (at < n && cdcd_now_ms() > give_up)
            return cdcd_error_set(err, CDCD_ERR_RETRY,
                                  "topic %s has partitions without a leader; look at the brokers",
                                  topics[at]->name);
        if (at < n)
            rd_kafka_poll(s->rk, wait);
    }
    return CDCD_OK;
}

static void release(struct kafka_topic *kt)
{
    if (kt->rkt)
        rd_kafka_topic_destroy(kt->rkt);
    kt->rkt = NULL;
}

static enum cdcd_rc bind_topics(struct cdcd_sink *s, struct kafka_topic **topics, size_t n,
                                struct cdcd_error *err)
{
    for (size_t i = 0; i < n; i++) {
        struct kafka_topic *kt = topics[i];
        release(kt);
        rd_kafka_topic_conf_t *conf = rd_kafka_default_topic_conf_dup(s->rk);
        rd_kafka_topic_conf_set_opaque(conf, kt);
        kt->rkt = rd_kafka_topic_new(s->rk, kt->name, conf);
        if (!kt->rkt)
            return kafka_fail(&s->link, err, rd_kafka_last_error(), NULL, "topic %s", kt->name);
        kt->generation = s->generation;
    }
    return CDCD_OK;
}

enum cdcd_rc kafka_topics_ready(struct cdcd_sink *s, struct kafka_topic **topics, size_t n,
                                struct cdcd_error *err)
{
    struct shape *shapes = cdcd_xcalloc(n ? n : 1, sizeof *shapes);
    struct kafka_setting *set = cdcd_xcalloc(n ? n : 1, sizeof *set);
    const char **names = cdcd_xcalloc(n ? n : 1, sizeof *names);
    size_t created = 0;
    for (size_t i = 0; i < n; i++) {
        shape_of(s, topics[i], &shapes[i]);
        names[i] = topics[i]->name;
    }
    enum cdcd_rc rc = n ? create_missing(s, topics, shapes, n, &created, err) : CDCD_OK;
    if (rc == CDCD_OK && n)
        kafka_describe(s, names, n, set);
    for (size_t i = 0; rc == CDCD_OK && i < n; i++)
        rc = examine(s, topics[i], &set[i], err);
    if (rc == CDCD_OK)
        rc = bind_topics(s, topics, n, err);
    if (rc == CDCD_OK && created)
        rc = wait_known(s, topics, n, err);
    free(names);
    free(set);
    free(shapes);
    return rc;
}

enum cdcd_rc kafka_topics_prepare(struct cdcd_sink *s, struct cdcd_topic *const *topics, size_t n,
                                  struct cdcd_error *err)
{
    struct kafka_topic **list = cdcd_xcalloc(n ? n : 1, sizeof(struct kafka_topic *));
    size_t k = 0;
    for (size_t i = 0; i < n; i++) {
        struct kafka_topic *kt = topics[i]->sink;
        if (!kt) {
            kt = cdcd_xcalloc(1, sizeof *kt);
            kt->topic = topics[i];
            kt->schemas = strcmp(topics[i]->name.ptr, CDCD_SCHEMA_TOPIC) == 0;
            kt->name = kt->schemas ? s->config->schema_topic : topics[i]->name.ptr;
            kt->keyed = topics[i]->keyed;
            kt->next = s->topics;
            s->topics = kt;
            topics[i]->sink = kt;
        }
        if (kt->listed || kt->generation == s->generation)
            continue;
        kt->listed = true;
        list[k++] = kt;
    }
    for (size_t i = 0; i < k; i++)
        list[i]->listed = false;
    enum cdcd_rc rc = k ? kafka_topics_ready(s, list, k, err) : CDCD_OK;
    free(list);
    return rc;
}

enum cdcd_rc kafka_topics_again(struct cdcd_sink *s, struct cdcd_error *err)
{
    size_t n = 2, k = 0;
    for (struct kafka_topic *kt = s->topics; kt; kt = kt->next)
        n++;
    struct kafka_topic **list = cdcd_xcalloc(n, sizeof(struct kafka_topic *));
    for (struct kafka_topic *kt = s->topics; kt; kt = kt->next)
        list[k++] = kt;
    list[k++] = &s->position;
    if (s->config->policy == KAFKA_DEAD_LETTER)
        list[k++] = &s->dead_letter;
    enum cdcd_rc rc = kafka_topics_ready(s, list, k, err);
    free(list);
    return rc;
}

void kafka_topics_release(struct cdcd_sink *s)
{
    for (struct kafka_topic *kt = s->topics; kt; kt = kt->next)
        release(kt);
    release(&s->position);
    release(&s->notes_topic);
    release(&s->dead_letter);
}

void kafka_topic_refresh(struct cdcd_sink *s, struct kafka_topic *kt)
{
    struct kafka_setting set;
    kafka_describe(s, &kt->name, 1, &set);
    if (set.max_bytes)
        kt->max_bytes = set.max_bytes;
}
