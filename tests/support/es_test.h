/*
 * What the unit tests of documents share: a converter, records by hand, and what becomes of them.
 */
#ifndef CDCD_TESTS_ES_TEST_H
#define CDCD_TESTS_ES_TEST_H

#include "../../plugins/elasticsearch/convert.h"

#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

struct et {
    struct es_config cfg;
    struct cdcd_sink_env env;
    struct es_converter *c;
    struct cdcd_arena arena;
    struct es_action out;
    struct cdcd_error err;
    struct cdcd_header headers[4];
    uint32_t nheaders;
    int32_t partition;
    int64_t offset;
};

static inline uint64_t et_version(struct cdcd_pos pos)
{
    return pos.commit * 1000 + pos.stream * 500 + pos.ordinal;
}

/* A database as the source, whose records bear cdcd.pos. */
static inline void et_init(struct et *t)
{
    *t = (struct et){.partition = -1};
    t->env.topic_prefix = "srv";
    t->env.pipeline = "shop";
    t->env.version = et_version;
    t->cfg.index = (char *)"";
    t->headers[0] = (struct cdcd_header){
        cdcd_slice_str("cdcd.pos"), cdcd_slice_str("0000000000000007-1-000000000000000C"), false};
    t->nheaders = 1;
    cdcd_arena_init(&t->arena, 4096);
}

static inline void et_open(struct et *t)
{
    if (es_converter_new(&t->cfg, &t->env, &t->c, &t->err) != CDCD_OK)
        fail_msg("%s", t->err.text);
}

/* Records of Kafka: offsets, no headers. */
static inline void et_kafka(struct et *t)
{
    t->partition = 3;
    t->offset = 41;
    t->nheaders = 0;
    t->env.version = NULL;
}

static inline void et_close(struct et *t)
{
    es_converter_free(t->c);
    t->c = NULL;
    cdcd_arena_free(&t->arena);
}

/* NULL: a null key, a null value. */
static inline enum cdcd_rc et_try(struct et *t, const char *topic, const char *key,
                                  const char *value)
{
    struct cdcd_topic own = {.name = cdcd_slice_str(topic)};
    struct cdcd_record r = {.topic = &own,
                            .key = cdcd_slice_str(key),
                            .value = cdcd_slice_str(value),
                            .headers = t->headers,
                            .nheaders = t->nheaders,
                            .partition = t->partition,
                            .offset = t->offset};
    t->err = (struct cdcd_error){0};
    return es_convert(t->c, &r, &t->arena, &t->out, &t->err);
}

static inline void et_give(struct et *t, const char *topic, const char *key, const char *value)
{
    if (et_try(t, topic, key, value) != CDCD_OK)
        fail_msg("%s", t->err.text);
}

static inline void et_is(struct cdcd_slice s, const char *expected)
{
    if (!es_slice_is(s, expected))
        fail_msg("\n is %.*s\nnot %s", (int)s.len, s.ptr ? s.ptr : "", expected);
}

/* An error of that class that has all these texts in it; the last one is NULL. */
static inline void et_fails(struct et *t, enum cdcd_error_class class, const char *const *texts)
{
    assert_int_equal(t->err.class, class);
    for (; *texts; texts++) {
        if (!strstr(t->err.text, *texts))
            fail_msg("\"%s\" is not in: %s", *texts, t->err.text);
    }
}
#define ET_FAILS(t, class, ...) et_fails((t), (class), (const char *const[]){__VA_ARGS__, NULL})

static inline char *et_envelope(const char *op, const char *after)
{
    return cdcd_xasprintf("{\"before\":null,\"after\":%s,\"source\":{\"connector\":\"postgresql\","
                          "\"name\":\"srv\"},\"op\":\"%s\",\"ts_ms\":1}",
                          after, op);
}

/* One column of that schema in a record with its schemas. The document, or NULL and t->err. */
static inline const char *et_column(struct et *t, const char *schema, const char *value)
{
    char *v = cdcd_xasprintf(
        "{\"schema\":{\"type\":\"struct\",\"fields\":[{\"type\":\"struct\",\"fields\":[{%s,"
        "\"optional\":true,\"field\":\"v\"}],\"optional\":true,\"field\":\"before\"},{\"type\":"
        "\"struct\",\"fields\":[{%s,\"optional\":true,\"field\":\"v\"}],\"optional\":true,"
        "\"field\":\"after\"},{\"type\":\"string\",\"field\":\"op\"}]},\"payload\":{\"before\":"
        "null,\"after\":{\"v\":%s},\"source\":{\"connector\":\"postgresql\"},\"op\":\"c\"}}",
        schema, schema, value);
    enum cdcd_rc rc = et_try(t, "srv.public.t", "{\"id\":1}", v);
    free(v);
    if (rc != CDCD_OK)
        return NULL;
    return cdcd_arena_dup(&t->arena, t->out.source.ptr, t->out.source.len);
}

#endif
