/*
 * A look at one record, with a connection of its own: whether a topic still is the one that a sink
 * has its offsets from.
 */
#include "source.h"

#include <stdlib.h>
#include <time.h>

#define ASK_MS     5000
#define BEHIND_MS  5000 /* how long a new leader may show an end that is behind */
#define BEHIND_NAP 200

static bool stopping(const struct cdcd_source_env *env)
{
    return env->stopping && env->stopping(env->ctx);
}

static enum cdcd_rc find_end(struct kafka_link *link, rd_kafka_t *rk,
                             const struct cdcd_source_env *env, struct cdcd_place *place,
                             int64_t *begin, struct cdcd_error *err)
{
    const struct timespec nap = {0, BEHIND_NAP * 1000000L};
    int64_t give_up = cdcd_now_ms() + BEHIND_MS;
    for (;;) {
        rd_kafka_resp_err_t code = rd_kafka_query_watermark_offsets(
            rk, place->topic, place->partition, begin, &place->end, ASK_MS);
        if (code)
            return kafka_fail(link, err, code, NULL, "looking up offsets of topic %s",
                              place->topic);
        if (place->offset < place->end || cdcd_now_ms() > give_up)
            return CDCD_OK;
        if (stopping(env))
            return cdcd_error_set(err, CDCD_ERR_RETRY, "told to stop");
        nanosleep(&nap, NULL);
    }
}

static enum cdcd_rc read_key(struct kafka_link *link, rd_kafka_t *rk, struct cdcd_place *place,
                             struct cdcd_error *err)
{
    rd_kafka_topic_t *rkt = rd_kafka_topic_new(rk, place->topic, NULL);
    rd_kafka_resp_err_t code = RD_KAFKA_RESP_ERR_NO_ERROR;
    rd_kafka_message_t *m = NULL;
    if (!rkt || rd_kafka_consume_start(rkt, place->partition, place->offset) != 0) {
        code = rd_kafka_last_error();
    } else {
        m = rd_kafka_consume(rkt, place->partition, ASK_MS);
        code = m ? m->err : RD_KAFKA_RESP_ERR__TIMED_OUT;
        place->found = !code && m->offset == place->offset;
        if (place->found)
            cdcd_buf_add(&place->key, m->key, m->key_len);
        if (m)
            rd_kafka_message_destroy(m);
        rd_kafka_consume_stop(rkt, place->partition);
    }
    if (rkt)
        rd_kafka_topic_destroy(rkt);
    /* Nothing behind it that can be read. */
    if (!code || code == RD_KAFKA_RESP_ERR__PARTITION_EOF ||
        code == RD_KAFKA_RESP_ERR__AUTO_OFFSET_RESET)
        return CDCD_OK;
    return kafka_fail(link, err, code, NULL, "reading topic %s at offset %lld", place->topic,
                      (long long)place->offset);
}

enum cdcd_rc kafka_source_look(const void *config, const struct cdcd_source_env *env,
                               struct cdcd_place *place, struct cdcd_error *err)
{
    const struct kafka_source_config *c = config;
    struct kafka_link link;
    int64_t begin = 0;
    kafka_link_init(&link, true, c->bootstrap, env->pipeline, &c->properties);
    rd_kafka_conf_t *conf = kafka_conf(&link, err);
    if (!conf)
        return CDCD_ERROR;
    if (kafka_conf_set(&link, conf, "enable.partition.eof", "true", err) != CDCD_OK ||
        kafka_conf_set(&link, conf, "isolation.level", "read_committed", err) != CDCD_OK ||
        kafka_conf_set(&link, conf, "auto.offset.reset", "error", err) != CDCD_OK) {
        rd_kafka_conf_destroy(conf);
        return CDCD_ERROR;
    }
    rd_kafka_t *rk = kafka_client(&link, RD_KAFKA_CONSUMER, conf, err);
    if (!rk)
        return CDCD_ERROR;
    enum cdcd_rc rc = find_end(&link, rk, env, place, &begin, err);
    if (rc == CDCD_OK && place->offset >= begin && place->offset < place->end)
        rc = read_key(&link, rk, place, err);
    rd_kafka_set_log_level(rk, 0); /* nothing refers to the link from here on */
    kafka_destroy_or_leave(rk);
    return rc;
}
