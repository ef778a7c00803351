/*
 * encoder: events -> records (topic, key, value, headers), in the batch's own arena.
 *
 * Used by one thread, the publish thread, except for new and free.
 */
#ifndef CDCD_ENCODE_ENCODER_H
#define CDCD_ENCODE_ENCODER_H

#include "debezium.h"

#include <cdcd/batch.h>

struct cdcd_source_ops;
struct cdcd_encoder;

/* What an encoder is told about its pipeline; the strings are borrowed for its life. */
struct cdcd_encoder_env {
    const char *pipeline, *topic_prefix;
    const struct cdcd_source_ops *source;
    /* The sink's topics may be compacted and then refuse null keys: the truncate of a table
     * with a key goes to PREFIX.truncate, keyed by the table. */
    bool compacted_truncates;
    /* The sink wants the schemas of rows: one record of CDCD_SCHEMA_TOPIC before the first record
     * that needs it in each session. */
    bool schemas;
};

/* CONFIG errors: a regular expression, an operation, a placeholder or a prefix that is none. */
enum cdcd_rc cdcd_encoder_new(const struct cdcd_debezium_config *cfg,
                              const struct cdcd_encoder_env *env, struct cdcd_encoder **out,
                              struct cdcd_error *err) CDCD_MUSTCHECK;
/* Frees the topics too: the sink must be closed before. NULL is fine. */
void cdcd_encoder_free(struct cdcd_encoder *e);

/* What the server that the source met is called (source_ops.names). Before the first event of a
 * session, on the capture thread. Static strings. */
void cdcd_encoder_name_source(struct cdcd_encoder *e, const char *connector,
                              const char *source_schema_name);

/* A new session of the sink: what was announced in earlier ones may not have been stored. Between
 * sessions, when no batch is on its way. */
void cdcd_encoder_session(struct cdcd_encoder *e);

/* Encodes all events of the batch in order and adds up batch->bytes. A DATA error names table,
 * column, key and position; the records before it stay in the batch. */
enum cdcd_rc cdcd_encoder_encode(struct cdcd_encoder *e, struct cdcd_batch *b,
                                 struct cdcd_error *err) CDCD_MUSTCHECK;

/* The topic of a table, made on first use, never NULL. Two tables that share a topic are
 * reported once, by a warning. */
struct cdcd_topic *cdcd_encoder_topic(struct cdcd_encoder *e, const struct cdcd_schema *schema);

/* The same before there is a schema; `schema` is "" where the source has none. */
struct cdcd_topic *cdcd_encoder_topic_named(struct cdcd_encoder *e, const char *db,
                                            const char *schema, const char *table, bool keyed);

/* For records that come with the name of their topic (source_ops.records): gives each its topic and
 * adds up batch->bytes. */
void cdcd_encoder_route(struct cdcd_encoder *e, struct cdcd_batch *b);

/* Events left out because event.processing.failure.handling.mode is warn or skip. */
uint64_t cdcd_encoder_skipped(const struct cdcd_encoder *e);

#endif
