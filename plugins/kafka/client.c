/*
 * librdkafka's configuration and callbacks, and what its error codes mean for a pipeline.
 */
#include "kafka.h"

#include <stdio.h>
#include <stdlib.h>

struct reserved {
    const char *name, *why;
};

/* What cdcd sets itself, and why the user may not. */
static const struct reserved sink_reserved[] = {
    {"bootstrap.servers", "use sink.kafka.bootstrap.servers"},
    {"metadata.broker.list", "use sink.kafka.bootstrap.servers"},
    {"transactional.id", "use sink.kafka.transactional.id"},
    {"enable.idempotence", "sink.kafka.delivery decides it"},
    {"isolation.level", "cdcd reads its position with read_committed"},
    {"delivery.report.only.error", "cdcd needs every delivery report"},
    {"enable.partition.eof", "cdcd needs it to find its position"},
    {0},
};
static const struct reserved source_reserved[] = {
    {"bootstrap.servers", "use source.kafka.bootstrap.servers"},
    {"metadata.broker.list", "use source.kafka.bootstrap.servers"},
    {"group.id", "use source.kafka.group.id"},
    {"isolation.level", "what was aborted is never passed on (read_committed)"},
    {"enable.partition.eof", "cdcd needs it to know whether it has caught up"},
    {"enable.auto.commit", "cdcd commits what the sink holds, and nothing else"},
    {"auto.commit.enable", "cdcd commits what the sink holds, and nothing else"},
    {"enable.auto.offset.store", "cdcd commits what the sink holds, and nothing else"},
    {"auto.offset.reset",
     "a partition without a position is read from its beginning, and one whose "
     "position is lost stops the pipeline"},
    {"partition.assignment.strategy", "cdcd shares partitions with cooperative-sticky"},
    {0},
};

/* Defaults that differ from librdkafka's; the user's properties come after them. */
static const char *const common_defaults[][2] = {
    {"socket.nagle.disable", "true"},
    {"socket.keepalive.enable", "true"},
    {"reconnect.backoff.max.ms", "1000"},
    {"log.connection.close", "false"},
    {0},
};
static const char *const sink_defaults[][2] = {
    {"partitioner", "murmur2_random"}, /* as the Java clients: joins depend on it */
    /* Not a delay: what must go out is flushed (kafka_serve, commits). An idempotent librdkafka
     * sends one set at a time to each partition, and while one is under way it spins if another
     * record has waited for longer than this. */
    {"linger.ms", "10000"},
    {"batch.size", "1000000"},
    {"batch.num.messages", "100000"},
    {"queue.buffering.max.messages", "100000"},
    {"queue.buffering.max.kbytes", "32768"},
    /* Below the broker's default socket.request.max.bytes: over that one the broker closes the
     * connection instead of refusing. Under it the topic's limit decides. */
    {"message.max.bytes", "104000000"},
    {0},
};
static const char *const source_defaults[][2] = {
    /* What waits in the client, and what one answer brings: memory, and not much is needed, see
     * consumer_wake.c. A record that is larger comes all the same. A client that has too much
     * begins with the same partition each time it fetches again, so one answer has room for
     * several: with 1 MB of each, eight of a broker are read evenly. */
    {"queued.max.messages.kbytes", "2048"},
    {"queued.min.messages", "100000"},
    {"fetch.max.bytes", "8388608"},
    {"fetch.message.max.bytes", "1048576"},
    {"receive.message.max.bytes", "1100000000"},
    {"check.crcs", "true"},
    {"debug", "cgrp"}, /* for follow_join */
    {0},
};

void kafka_link_init(struct kafka_link *link, bool source, const char *bootstrap,
                     const char *pipeline, const struct cdcd_strmap *properties)
{
    *link = (struct kafka_link){.source = source,
                                .section = source ? "source.kafka" : "sink.kafka",
                                .bootstrap = bootstrap,
                                .pipeline = pipeline,
                                .properties = properties};
}

/* Since librdkafka 2.2: how soon a consumer with too much in it looks whether it still is so. */
static const char fetch_backoff[] = "fetch.queue.backoff.ms";
#define FETCH_BACKOFF_MS "10"

static bool starts(const char *text, const char *with)
{
    return strncmp(text, with, strlen(with)) == 0;
}

/* 'Group "g" changed join state wait-join -> wait-sync (state up)': there is no other way to know.
 * Until 2.10 a commit between the two ends of a join makes librdkafka lose all partitions, and
 * until 2.3 closing a consumer there ends the process. */
static void follow_join(struct kafka_link *link, const char *text)
{
    static const char *const joining[] = {"wait-join ", "wait-metadata ", "wait-sync "};
    const char *state = strstr(text, " -> ");
    bool is = false;
    for (size_t i = 0; state && i < sizeof joining / sizeof *joining; i++)
        is = is || starts(state + 4, joining[i]);
    atomic_store(&link->joining, is);
    /* A first join that the group answered, and that came to no assignment (a member left
     * meanwhile): the next one follows after a while as init, and until it is done closing ends
     * the process too. */
    if (state && (starts(state + 4, "wait-assign-call ") || starts(state + 4, "steady ")))
        atomic_store(&link->was_assigned, true);
    if (is && !starts(state + 4, "wait-join ") && !atomic_load(&link->was_assigned))
        atomic_store(&link->half_joined, true);
}

bool kafka_may_close(struct kafka_link *link)
{
    return !atomic_load(&link->joining) &&
           (atomic_load(&link->was_assigned) || !atomic_load(&link->half_joined));
}

static void on_log(const rd_kafka_t *rk, int level, const char *facility, const char *text)
{
    struct kafka_link *link = rd_kafka_opaque(rk);
    if (link && link->source && level == 7) {
        if (strcmp(facility, "CGRPJOINSTATE") == 0)
            follow_join(link, text);
        if (!link->debug)
            return;
    }
    /* Lost connections are told by on_error, once an outage, not once an attempt. */
    cdcd_debug("kafka", "librdkafka %d %s: %s", level, facility, text);
}

static void on_error(rd_kafka_t *rk, int code, const char *reason, void *opaque)
{
    struct kafka_link *link = opaque;
    char text[512];
    rd_kafka_resp_err_t err = (rd_kafka_resp_err_t)code;
    if (err == RD_KAFKA_RESP_ERR__FATAL) {
        err = rd_kafka_fatal_error(rk, text, sizeof text);
        cdcd_debug("kafka", "fatal: %s: %s", rd_kafka_err2name(err), text);
        return;
    }
    if (err == RD_KAFKA_RESP_ERR__ALL_BROKERS_DOWN) {
        link->all_down = true;
        return;
    }
    link->broker_code = err;
    link->denied = err == RD_KAFKA_RESP_ERR__AUTHENTICATION || err == RD_KAFKA_RESP_ERR__SSL ||
                   err == RD_KAFKA_RESP_ERR_SASL_AUTHENTICATION_FAILED;
    snprintf(link->broker_error, sizeof link->broker_error, "%s", reason);
    cdcd_debug("kafka", "%s: %s", rd_kafka_err2name(err), reason);
}

enum cdcd_rc kafka_conf_set(const struct kafka_link *link, rd_kafka_conf_t *conf, const char *name,
                            const char *value, struct cdcd_error *err)
{
    char text[512];
    if (rd_kafka_conf_set(conf, name, value, text, sizeof text) == RD_KAFKA_CONF_OK)
        return CDCD_OK;
    return cdcd_error_set(err, CDCD_ERR_CONFIG, "%s.properties.%s: %s", link->section, name, text);
}

static enum cdcd_rc set_user(struct kafka_link *link, rd_kafka_conf_t *conf,
                             const struct cdcd_strpair *p, struct cdcd_error *err)
{
    const struct reserved *r = link->source ? source_reserved : sink_reserved;
    for (; r->name; r++)
        if (strcmp(p->key, r->name) == 0)
            return cdcd_error_set(err, CDCD_ERR_CONFIG, "%s.properties.%s may not be set: %s",
                                  link->section, p->key, r->why);
    if (strcmp(p->key, "debug") == 0)
        link->debug = true;
    return kafka_conf_set(link, conf, p->key, p->value, err);
}

static enum cdcd_rc set_all(const struct kafka_link *link, rd_kafka_conf_t *conf,
                            const char *const (*pairs)[2], struct cdcd_error *err)
{
    for (; (*pairs)[0]; pairs++)
        if (kafka_conf_set(link, conf, (*pairs)[0], (*pairs)[1], err) != CDCD_OK)
            return CDCD_ERROR;
    return CDCD_OK;
}

rd_kafka_conf_t *kafka_conf(struct kafka_link *link, struct cdcd_error *err)
{
    rd_kafka_conf_t *conf = rd_kafka_conf_new();
    char client[256];
    enum cdcd_rc rc = CDCD_OK;
    snprintf(client, sizeof client, "cdcd-%s", link->pipeline);
    rd_kafka_conf_set_opaque(conf, link);
    rd_kafka_conf_set_log_cb(conf, on_log);
    rd_kafka_conf_set_error_cb(conf, on_error);
    if (kafka_conf_set(link, conf, "bootstrap.servers", link->bootstrap, err) != CDCD_OK ||
        kafka_conf_set(link, conf, "client.id", client, err) != CDCD_OK ||
        set_all(link, conf, common_defaults, err) != CDCD_OK ||
        set_all(link, conf, link->source ? source_defaults : sink_defaults, err) != CDCD_OK)
        rc = CDCD_ERROR;
    link->sleeps = link->source && rd_kafka_conf_set(conf, fetch_backoff, FETCH_BACKOFF_MS, NULL,
                                                     0) != RD_KAFKA_CONF_OK;
    for (size_t i = 0; rc == CDCD_OK && i < link->properties->n; i++)
        rc = set_user(link, conf, &link->properties->items[i], err);
    if (rc == CDCD_OK)
        return conf;
    rd_kafka_conf_destroy(conf);
    return NULL;
}

rd_kafka_t *kafka_client(const struct kafka_link *link, rd_kafka_type_t type, rd_kafka_conf_t *conf,
                         struct cdcd_error *err)
{
    char text[512];
    rd_kafka_t *rk = rd_kafka_new(type, conf, text, sizeof text);
    if (rk)
        return rk;
    rd_kafka_conf_destroy(conf);
    cdcd_error_set(err, CDCD_ERR_CONFIG, "%s.properties: %s", link->section, text);
    return NULL;
}

/* ---- errors ---- */

static const struct {
    rd_kafka_resp_err_t code;
    enum cdcd_error_class class;
    const char *mend;
} known[] = {
    {RD_KAFKA_RESP_ERR__AUTHENTICATION, CDCD_ERR_CONFIG, "check the sasl.* settings in properties"},
    {RD_KAFKA_RESP_ERR_SASL_AUTHENTICATION_FAILED, CDCD_ERR_CONFIG,
     "check the sasl.* settings in properties"},
    {RD_KAFKA_RESP_ERR__SSL, CDCD_ERR_CONFIG,
     "check security.protocol and the ssl.* settings in properties"},
    {RD_KAFKA_RESP_ERR_GROUP_AUTHORIZATION_FAILED, CDCD_ERR_CONFIG,
     "allow the user of cdcd Read and Describe on its consumer group (kafka-acls.sh --group)"},
    {RD_KAFKA_RESP_ERR_INVALID_SESSION_TIMEOUT, CDCD_ERR_CONFIG,
     "change session.timeout.ms in source.kafka.properties to what the broker's "
     "group.min.session.timeout.ms and group.max.session.timeout.ms allow"},
    {RD_KAFKA_RESP_ERR_INCONSISTENT_GROUP_PROTOCOL, CDCD_ERR_CONFIG,
     "other members of the group share partitions in another way: give cdcd a "
     "source.kafka.group.id "
     "of its own"},
    {RD_KAFKA_RESP_ERR_FENCED_INSTANCE_ID, CDCD_ERR_CONFIG,
     "another instance has the same group.instance.id in source.kafka.properties: each needs its "
     "own"},
    {RD_KAFKA_RESP_ERR_TOPIC_AUTHORIZATION_FAILED, CDCD_ERR_CONFIG,
     "allow the user of cdcd the operations Describe and DescribeConfigs on the topic, Read for a "
     "source, Write and Create for a sink (kafka-acls.sh)"},
    {RD_KAFKA_RESP_ERR_CLUSTER_AUTHORIZATION_FAILED, CDCD_ERR_CONFIG,
     "allow the user of cdcd IdempotentWrite on the cluster, and Create on it or on the topics "
     "(kafka-acls.sh)"},
    {RD_KAFKA_RESP_ERR_TRANSACTIONAL_ID_AUTHORIZATION_FAILED, CDCD_ERR_CONFIG,
     "allow the user of cdcd Describe and Write on its transactional id (kafka-acls.sh "
     "--transactional-id), or set sink.kafka.delivery to at-least-once"},
    {RD_KAFKA_RESP_ERR_INVALID_TRANSACTION_TIMEOUT, CDCD_ERR_CONFIG,
     "lower transaction.timeout.ms in sink.kafka.properties to what the broker's "
     "transaction.max.timeout.ms allows"},
    {RD_KAFKA_RESP_ERR__UNSUPPORTED_FEATURE, CDCD_ERR_CONFIG,
     "this needs a broker of version 0.11 or later, or sink.kafka.delivery at-least-once"},
    {RD_KAFKA_RESP_ERR_UNSUPPORTED_VERSION, CDCD_ERR_CONFIG,
     "this needs a broker of version 0.11 or later, or sink.kafka.delivery at-least-once"},
    {RD_KAFKA_RESP_ERR_POLICY_VIOLATION, CDCD_ERR_CONFIG,
     "the cluster's policy forbids a topic like this: change sink.kafka.topic.* or create it by "
     "hand"},
    {RD_KAFKA_RESP_ERR_INVALID_REPLICATION_FACTOR, CDCD_ERR_CONFIG,
     "set sink.kafka.topic.replication.factor to at most the number of brokers"},
    {RD_KAFKA_RESP_ERR_INVALID_PARTITIONS, CDCD_ERR_CONFIG, "change sink.kafka.topic.partitions"},
    {RD_KAFKA_RESP_ERR_INVALID_CONFIG, CDCD_ERR_CONFIG,
     "change sink.kafka.topic.config or topic.cleanup.policy"},
    {RD_KAFKA_RESP_ERR_TOPIC_EXCEPTION, CDCD_ERR_CONFIG,
     "a topic's name may have letters, digits, '.', '_' and '-', at most 249, and may not differ "
     "from another only by '.' for '_'"},
    {RD_KAFKA_RESP_ERR__INVALID_ARG, CDCD_ERR_CONFIG, ""},
    {RD_KAFKA_RESP_ERR_MSG_SIZE_TOO_LARGE, CDCD_ERR_DATA, ""},
    {RD_KAFKA_RESP_ERR_RECORD_LIST_TOO_LARGE, CDCD_ERR_DATA, ""},
    {RD_KAFKA_RESP_ERR_INVALID_RECORD, CDCD_ERR_DATA, ""},
    {RD_KAFKA_RESP_ERR_INVALID_TIMESTAMP, CDCD_ERR_DATA, ""},
    {RD_KAFKA_RESP_ERR_INVALID_MSG, CDCD_ERR_DATA, ""},
};

enum cdcd_error_class kafka_class(rd_kafka_resp_err_t code)
{
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (known[i].code == code)
            return known[i].class;
    return CDCD_ERR_RETRY;
}

const char *kafka_mend(rd_kafka_resp_err_t code)
{
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (known[i].code == code)
            return known[i].mend;
    return "";
}

enum cdcd_rc kafka_fail(struct kafka_link *link, struct cdcd_error *err, rd_kafka_resp_err_t code,
                        const char *reason, const char *fmt, ...)
{
    char what[512];
    va_list ap;
    enum cdcd_error_class class = kafka_class(code);
    const char *mend = kafka_mend(code);
    va_start(ap, fmt);
    vsnprintf(what, sizeof what, fmt, ap);
    va_end(ap);
    if (code == RD_KAFKA_RESP_ERR__TIMED_OUT || code == RD_KAFKA_RESP_ERR__TRANSPORT ||
        code == RD_KAFKA_RESP_ERR__ALL_BROKERS_DOWN) {
        kafka_unreachable(link, err);
        return cdcd_error_context(err, "%s", what);
    }
    return cdcd_error_set(err, class, "%s: %s%s%s", what, reason ? reason : rd_kafka_err2str(code),
                          *mend ? "; " : "", mend);
}

enum cdcd_rc kafka_unreachable(struct kafka_link *link, struct cdcd_error *err)
{
    /* Refused credentials are the user's to mend at the start; later they are an outage. */
    enum cdcd_error_class class = link->denied && !link->loaded_once ? CDCD_ERR_CONFIG
                                                                     : CDCD_ERR_RETRY;
    const char *mend = link->denied
                           ? kafka_mend(link->broker_code)
                           : "check that the broker runs and that its advertised.listeners "
                             "can be reached from here";
    return cdcd_error_set(err, class, "Kafka at %s does not answer%s%s; %s", link->bootstrap,
                          *link->broker_error ? ": " : "", link->broker_error, mend);
}
