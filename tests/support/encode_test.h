/*
 * What the encoder's unit tests share: schemas and cells by hand, one event through an encoder.
 */
#ifndef CDCD_TESTS_ENCODE_TEST_H
#define CDCD_TESTS_ENCODE_TEST_H

#include <cdcd/plugin.h>
#include <cdcd/version.h>

#include <cdcd/json.h>

#include "encoder.h"

#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#define SOURCE_COLUMN(n, t, opt)                                         \
    {                                                                    \
        .name = n, .type = t, .optional = opt, .length = -1, .scale = -1 \
    }
static const struct cdcd_column et_source_columns[] = {
    SOURCE_COLUMN("schema", CDCD_T_STRING, false),   SOURCE_COLUMN("table", CDCD_T_STRING, false),
    SOURCE_COLUMN("txId", CDCD_T_INT64, true),       SOURCE_COLUMN("lsn", CDCD_T_INT64, true),
    SOURCE_COLUMN("xmin", CDCD_T_INT64, true),       SOURCE_COLUMN("origin", CDCD_T_STRING, true),
    SOURCE_COLUMN("origin_lsn", CDCD_T_INT64, true),
};
static const struct cdcd_source_ops et_source = {
    .connector = "postgresql",
    .source_columns = et_source_columns,
    .nsource_columns = 7,
    .source_schema_name = "io.debezium.connector.postgresql.Source",
};

static const struct cdcd_column et_mysql_columns[] = {
    SOURCE_COLUMN("table", CDCD_T_STRING, true), SOURCE_COLUMN("server_id", CDCD_T_INT64, false),
    SOURCE_COLUMN("gtid", CDCD_T_STRING, true),  SOURCE_COLUMN("file", CDCD_T_STRING, false),
    SOURCE_COLUMN("pos", CDCD_T_INT64, false),   SOURCE_COLUMN("row", CDCD_T_INT32, false),
    SOURCE_COLUMN("thread", CDCD_T_INT64, true), SOURCE_COLUMN("query", CDCD_T_STRING, true),
};
static const struct cdcd_source_ops et_mysql = {
    .connector = "mysql",
    .source_columns = et_mysql_columns,
    .nsource_columns = 8,
    .source_schema_name = "io.debezium.connector.mysql.Source",
    .time_micros = true,
};

/* Debezium's defaults. */
static inline struct cdcd_debezium_config et_config(void)
{
    return (struct cdcd_debezium_config){.tombstones_on_delete = true};
}

struct et_column {
    const char *name;
    enum cdcd_type type;
    int32_t length, scale;
    bool required, key;
    const char *const *labels;
    const struct cdcd_column *elem;
};

static inline struct cdcd_schema *et_schema(const char *table, const struct et_column *columns,
                                            uint32_t n)
{
    struct cdcd_schema *s = cdcd_schema_new("typesdb", "public", table, n);
    for (uint32_t i = 0; i < n; i++) {
        struct cdcd_column *c = &s->columns[i];
        const struct et_column *e = &columns[i];
        c->name = cdcd_schema_strdup(s, e->name, strlen(e->name));
        c->name_len = (uint32_t)strlen(e->name);
        c->type = e->type;
        c->length = e->length;
        c->scale = e->scale;
        c->optional = !e->required;
        c->key = e->key;
        c->labels = e->labels;
        c->elem = e->elem;
        c->type_name = "some type";
        if (e->key)
            s->keys[s->nkeys++] = i;
    }
    cdcd_schema_finish(s);
    return s;
}

/* ---- cells ---- */
#define C_NULL              \
    {                       \
        .kind = CDCD_C_NULL \
    }
#define C_ABSENT              \
    {                         \
        .kind = CDCD_C_ABSENT \
    }
#define C_UNCHANGED              \
    {                            \
        .kind = CDCD_C_UNCHANGED \
    }
#define C_BOOL(v)                     \
    {                                 \
        .kind = CDCD_C_BOOL, .i = (v) \
    }
#define C_INT(v)                     \
    {                                \
        .kind = CDCD_C_INT, .i = (v) \
    }
#define C_UINT(v)                     \
    {                                 \
        .kind = CDCD_C_UINT, .u = (v) \
    }
#define C_STR(k, s)                                   \
    {                                                 \
        .kind = (k), .len = sizeof(s) - 1, .ptr = (s) \
    }
#define C_TEXT(s)  C_STR(CDCD_C_TEXT, s)
#define C_FLOAT(s) C_STR(CDCD_C_FLOAT, s)
#define C_DEC(s)   C_STR(CDCD_C_DECIMAL, s)
#define C_BYTES(s) C_STR(CDCD_C_BYTES, s)
#define C_DATE(d)                     \
    {                                 \
        .kind = CDCD_C_DATE, .i = (d) \
    }
#define C_TIME(us)                     \
    {                                  \
        .kind = CDCD_C_TIME, .i = (us) \
    }
#define C_TS(s, ns)                                     \
    {                                                   \
        .kind = CDCD_C_TIMESTAMP, .i = (s), .len = (ns) \
    }
#define C_INF(k, sign)             \
    {                              \
        .kind = (k), .inf = (sign) \
    }
#define C_IV(...)                                                     \
    {                                                                 \
        .kind = CDCD_C_INTERVAL, .iv = (const struct cdcd_interval[]) \
        {                                                             \
            {                                                         \
                __VA_ARGS__                                           \
            }                                                         \
        }                                                             \
    }
#define C_LIST(n, ...)                                                       \
    {                                                                        \
        .kind = CDCD_C_LIST, .len = (n), .cells = (const struct cdcd_cell[]) \
        {                                                                    \
            __VA_ARGS__                                                      \
        }                                                                    \
    }
#define C_MAP(n, ...)                                                       \
    {                                                                       \
        .kind = CDCD_C_MAP, .len = (n), .cells = (const struct cdcd_cell[]) \
        {                                                                   \
            __VA_ARGS__                                                     \
        }                                                                   \
    }

#define C_GEOM(s, id)                                                      \
    {                                                                      \
        .kind = CDCD_C_GEOM, .aux = (id), .len = sizeof(s) - 1, .ptr = (s) \
    }

/* ---- an encoder and a batch ---- */
struct et {
    struct cdcd_debezium_config cfg;
    struct cdcd_encoder *encoder;
    struct cdcd_batch *batch;
    struct cdcd_error err;
    struct cdcd_cell source[8];
};

static inline void et_open_source(struct et *t, const struct cdcd_debezium_config *cfg,
                                  const char *prefix, bool compacted,
                                  const struct cdcd_source_ops *source)
{
    struct cdcd_encoder_env env = {.pipeline = "test",
                                   .topic_prefix = prefix,
                                   .source = source,
                                   .compacted_truncates = compacted};
    *t = (struct et){.cfg = *cfg, .batch = cdcd_batch_new()};
    if (cdcd_encoder_new(&t->cfg, &env, &t->encoder, &t->err) != CDCD_OK)
        fail_msg("%s", t->err.text);
}

static inline void et_open_kafka(struct et *t, const struct cdcd_debezium_config *cfg,
                                 const char *prefix, bool compacted)
{
    et_open_source(t, cfg, prefix, compacted, &et_source);
}

static inline void et_open(struct et *t, const struct cdcd_debezium_config *cfg)
{
    et_open_kafka(t, cfg, "srv", false);
}

static inline void et_close(struct et *t)
{
    cdcd_batch_free(t->batch);
    cdcd_encoder_free(t->encoder);
}

static inline struct cdcd_event *et_event(struct et *t, enum cdcd_op op, struct cdcd_schema *s,
                                          const struct cdcd_cell *before,
                                          const struct cdcd_cell *after)
{
    struct cdcd_event *ev = cdcd_batch_event(t->batch, op, s);
    const char *schema = s ? s->schema : "", *table = s ? s->table : "";
    ev->before = before;
    ev->after = after;
    ev->ts_us = 1795986694821056;
    ev->pos = (struct cdcd_pos){.commit = 0x19e7ef8, .ordinal = 3, .stream = true};
    ev->sequence = cdcd_slice_str("[null,\"27163256\"]");
    t->source[0] = cdcd_cell_text(schema, strlen(schema));
    t->source[1] = cdcd_cell_text(table, strlen(table));
    t->source[2] = cdcd_cell_int(752);
    t->source[3] = cdcd_cell_int(27163256);
    ev->source = t->source;
    return ev;
}

static inline void et_encode(struct et *t)
{
    if (cdcd_encoder_encode(t->encoder, t->batch, &t->err) != CDCD_OK)
        fail_msg("%s", t->err.text);
}

static inline struct cdcd_record *et_record(struct et *t, unsigned n)
{
    struct cdcd_record *r = t->batch->records;
    while (r && n--)
        r = r->next;
    assert_non_null(r);
    return r;
}

static inline void et_slice_is(struct cdcd_slice s, const char *expected)
{
    if (!expected) {
        assert_null(s.ptr);
        return;
    }
    if (s.len != strlen(expected) || memcmp(s.ptr, expected, s.len) != 0)
        fail_msg("got      %.*s\nexpected %s", (int)s.len, s.ptr, expected);
}

/* A value up to the envelope's own clock fields, which must be three equal times. */
static inline void et_value_is(struct cdcd_slice s, const char *expected)
{
    char text[32768];
    long long ms, us, ns;
    int end = 0;
    assert_true(s.len < sizeof(text));
    memcpy(text, s.ptr, s.len);
    text[s.len] = 0;
    char *tail = strstr(text, ",\"ts_ms\":17");
    for (char *next = tail; next; next = strstr(next + 1, ",\"ts_ms\":1"))
        tail = next;
    assert_non_null(tail);
    int n = sscanf(tail, ",\"ts_ms\":%lld,\"ts_us\":%lld,\"ts_ns\":%lld}%n", &ms, &us, &ns, &end);
    assert_int_equal(n, 3);
    assert_true(tail[end] == 0 || strcmp(tail + end, "}") == 0);
    assert_true(us / 1000 == ms && ns / 1000 == us);
    *tail = 0;
    if (strcmp(text, expected) != 0)
        fail_msg("got      %s\nexpected %s", text, expected);
}

static inline const struct cdcd_header *et_header(const struct cdcd_record *r, const char *name)
{
    for (uint32_t i = 0; i < r->nheaders; i++) {
        if (cdcd_slice_eq(r->headers[i].name, cdcd_slice_str(name)))
            return &r->headers[i];
    }
    return NULL;
}

#endif
