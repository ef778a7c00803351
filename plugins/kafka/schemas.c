/*
 * The schemas of rows, from their topic: each under the number that stands in the records' header
 * cdcd.schema. A number means one schema for ever, so all that was ever written is good, also what
 * is not committed yet: a record and its schema are written in one transaction, and the schema's
 * partition may show it later than the record's.
 */
#include "source.h"

#include <stdlib.h>

static unsigned bucket_of(const char *p, size_t n)
{
    uint32_t h = 2166136261u; /* FNV-1a */
    for (size_t i = 0; i < n; i++)
        h = (h ^ (unsigned char)p[i]) * 16777619u;
    return h % KAFKA_SCHEMA_BUCKETS;
}

static struct kafka_schema *find(const struct kafka_schemas *m, struct cdcd_slice version)
{
    struct kafka_schema *k = m->buckets ? m->buckets[bucket_of(version.ptr, version.len)] : NULL;
    while (k && !cdcd_slice_eq(cdcd_slice_str(k->version), version))
        k = k->next;
    return k;
}

static struct kafka_schema *find_or_make(struct kafka_schemas *m, struct cdcd_slice version)
{
    struct kafka_schema *k = find(m, version);
    if (k)
        return k;
    if (!m->buckets)
        m->buckets = cdcd_xcalloc(KAFKA_SCHEMA_BUCKETS, sizeof(struct kafka_schema *));
    struct kafka_schema **to = &m->buckets[bucket_of(version.ptr, version.len)];
    k = cdcd_xcalloc(1, sizeof *k);
    k->version = cdcd_xstrndup(version.ptr, version.len);
    k->next = *to;
    *to = k;
    m->n++;
    return k;
}

void kafka_schemas_free(struct kafka_schemas *m)
{
    for (size_t i = 0; m->buckets && i < KAFKA_SCHEMA_BUCKETS; i++)
        while (m->buckets[i]) {
            struct kafka_schema *k = m->buckets[i];
            m->buckets[i] = k->next;
            free(k->version);
            free(k->text);
            free(k);
        }
    free(m->buckets);
    *m = (struct kafka_schemas){0};
}

static bool take(void *ctx, const rd_kafka_message_t *msg)
{
    struct kafka_schemas *m = ctx;
    rd_kafka_timestamp_type_t type;
    if (!msg->key || !msg->key_len || !msg->payload)
        return false;
    struct kafka_schema *k = find_or_make(m, (struct cdcd_slice){msg->key, msg->key_len});
    free(k->text);
    k->text = cdcd_xstrndup(msg->payload, msg->len);
    k->text_len = msg->len;
    k->timestamp_ms = rd_kafka_message_timestamp(msg, &type);
    return false;
}

/* Reads on from where it stopped. */
static enum cdcd_rc read_on(struct cdcd_source *s, struct cdcd_error *err)
{
    struct kafka_schemas *m = &s->schemas;
    int64_t end = m->next;
    const struct kafka_reading what = {.topic = s->config->schema_topic,
                                       .whole = true,
                                       .uncommitted = true,
                                       .from = m->next,
                                       .end = &end,
                                       .ctx = m,
                                       .take = take};
    if (kafka_read(&s->link, &what, err) != CDCD_OK)
        return CDCD_ERROR;
    m->next = end;
    return CDCD_OK;
}

enum cdcd_rc kafka_schemas_begin(struct cdcd_source *s, struct cdcd_error *err)
{
    if (!s->env->want_schemas || !*s->config->schema_topic)
        return CDCD_OK;
    if (read_on(s, err) != CDCD_OK)
        return CDCD_ERROR;
    cdcd_debug("kafka", "%zu schemas in topic %s", s->schemas.n, s->config->schema_topic);
    return CDCD_OK;
}

static void give(struct kafka_schema *k, struct cdcd_batch *b)
{
    struct cdcd_record *r = cdcd_batch_record(b);
    size_t n = strlen(k->version);
    r->topic_name = cdcd_slice_str(CDCD_SCHEMA_TOPIC);
    r->key = (struct cdcd_slice){cdcd_arena_dup(&b->arena, k->version, n), n};
    r->value = (struct cdcd_slice){cdcd_arena_dup(&b->arena, k->text, k->text_len), k->text_len};
    r->timestamp_ms = k->timestamp_ms;
}

enum cdcd_rc kafka_schemas_need(struct cdcd_source *s, struct cdcd_batch *b,
                                struct cdcd_slice version, struct cdcd_error *err)
{
    if (!*s->config->schema_topic || !version.len)
        return CDCD_OK;
    struct kafka_schema *k = find(&s->schemas, version);
    if (!k) {
        if (read_on(s, err) != CDCD_OK)
            return CDCD_ERROR;
        k = find_or_make(&s->schemas, version);
    }
    if (k->given)
        return CDCD_OK;
    k->given = true; /* or said to be missing, once */
    if (k->text)
        give(k, b);
    else
        cdcd_warn("kafka",
                  "topic %s does not have schema %s, which records bear: their values are passed "
                  "on without it",
                  s->config->schema_topic, k->version);
    return CDCD_OK;
}
