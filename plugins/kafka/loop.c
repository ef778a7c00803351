/*
 * A pipeline from Kafka to Kafka. Records keep the names of their topics, so in one cluster it
 * would read what it writes, and each record would come again, for ever. Clusters are told by their
 * ids: one has many addresses.
 */
#include "source.h"

#include <stdlib.h>

#define ASK_MS 10000

/* Owned by the caller; NULL with OK: brokers before 0.10 have none. */
static enum cdcd_rc cluster_of(struct kafka_link *link, char **out, struct cdcd_error *err)
{
    const struct rd_kafka_metadata *md;
    rd_kafka_conf_t *conf = kafka_conf(link, err);
    rd_kafka_t *rk = NULL;
    *out = NULL;
    if (conf)
        rk = kafka_client(link, link->source ? RD_KAFKA_CONSUMER : RD_KAFKA_PRODUCER, conf, err);
    if (!rk)
        return CDCD_ERROR;
    enum cdcd_rc rc = kafka_list(link, rk, &md, err);
    if (rc == CDCD_OK) {
        rd_kafka_metadata_destroy(md);
        char *id = rd_kafka_clusterid(rk, ASK_MS);
        if (id)
            *out = cdcd_xstrdup(id);
        rd_kafka_mem_free(rk, id);
    }
    rd_kafka_destroy(rk);
    return rc;
}

enum cdcd_rc kafka_refuse_loop(const struct kafka_config *config, const struct cdcd_sink_env *env,
                               struct cdcd_error *err)
{
    const struct kafka_source_config *from = env->source_config;
    struct kafka_link source, sink;
    char *a = NULL, *b = NULL;
    if (!from)
        return CDCD_OK;
    kafka_link_init(&source, true, from->bootstrap, env->pipeline, &from->properties);
    kafka_link_init(&sink, false, config->bootstrap, env->pipeline, &config->properties);
    enum cdcd_rc rc = cluster_of(&source, &a, err);
    if (rc == CDCD_OK)
        rc = cluster_of(&sink, &b, err);
    if (rc != CDCD_OK)
        cdcd_error_context(err, "whether source and sink are one cluster");
    else if (a && b ? strcmp(a, b) == 0 : strcmp(from->bootstrap, config->bootstrap) == 0)
        rc = cdcd_error_set(err, CDCD_ERR_CONFIG,
                            "source.kafka (%s) and sink.kafka (%s) are the same cluster%s%s, and "
                            "records keep the names of their topics: each one that is written "
                            "would be read again, for ever. Write into another cluster, or choose "
                            "another sink",
                            from->bootstrap, config->bootstrap, a ? ", " : "", a ? a : "");
    free(a);
    free(b);
    return rc;
}
