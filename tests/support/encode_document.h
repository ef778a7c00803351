/*
 * What the tests of documents share: a source like MongoDB's, documents by hand, events of them.
 */
#ifndef CDCD_TESTS_ENCODE_DOCUMENT_H
#define CDCD_TESTS_ENCODE_DOCUMENT_H

#include "encode_test.h"

#include "bson_build.h"

#include <cdcd/bson.h>

static const struct cdcd_column et_mongodb_columns[] = {
    SOURCE_COLUMN("collection", CDCD_T_STRING, false),
    SOURCE_COLUMN("ord", CDCD_T_INT32, false),
    SOURCE_COLUMN("lsid", CDCD_T_STRING, true),
    SOURCE_COLUMN("txnNumber", CDCD_T_INT64, true),
    SOURCE_COLUMN("wallTime", CDCD_T_INT64, true),
};
static const struct cdcd_source_ops et_mongodb = {
    .connector = "mongodb",
    .source_columns = et_mongodb_columns,
    .nsource_columns = 5,
    .source_schema_name = "io.debezium.connector.mongo.Source",
    .few_marks = true,
};

static inline struct cdcd_cell ed_int32(const int32_t *v)
{
    return cdcd_cell_bson(0x10, (const char *)v, 4);
}

/* Both cells of an image, in the batch. document.ptr NULL: it is not there. */
static inline struct cdcd_cell *ed_image(struct et *t, struct cdcd_cell id,
                                         struct cdcd_slice document)
{
    struct cdcd_cell *image = cdcd_batch_cells(t->batch, CDCD_DOC_COLUMNS);
    image[CDCD_DOC_ID] = id;
    image[CDCD_DOC_DOCUMENT] = document.ptr ? cdcd_cell_bson(3, document.ptr, document.len)
                                            : (struct cdcd_cell){.kind = CDCD_C_NULL};
    return image;
}

static const int64_t ed_wall_ms = 1795991132054;

/* An event of one collection, with the source block of a change outside of transactions. */
static inline struct cdcd_event *ed_event(struct et *t, enum cdcd_op op, struct cdcd_schema *s,
                                          const struct cdcd_cell *before,
                                          const struct cdcd_cell *after)
{
    struct cdcd_event *ev = cdcd_batch_event(t->batch, op, s);
    struct cdcd_cell *source = cdcd_batch_cells(t->batch, 5);
    source[0] = cdcd_cell_text(s->table, strlen(s->table));
    source[1] = cdcd_cell_int(8);
    source[2] = source[3] = (struct cdcd_cell){.kind = CDCD_C_NULL};
    source[4] = cdcd_cell_int(ed_wall_ms);
    ev->before = before;
    ev->after = after;
    ev->source = source;
    ev->ts_us = ed_wall_ms * 1000;
    ev->pos = (struct cdcd_pos){
        .commit = UINT64_C(1795991132) << 32 | 8, .ordinal = 1, .stream = true};
    return ev;
}

/* Its source block in the record. */
#define ED_SOURCE                                                                              \
    "\"source\":{\"version\":\"" CDCD_VERSION                                                  \
    "\",\"connector\":\"mongodb\",\"name\":\"srv\",\"ts_ms\":1795991132054,\"snapshot\":"      \
    "\"false\",\"db\":\"shop\",\"sequence\":null,\"ts_us\":1795991132054000,\"ts_ns\":"        \
    "1795991132054000000,\"collection\":\"ids\",\"ord\":8,\"lsid\":null,\"txnNumber\":null,\"" \
    "wallTime\":1795991132054}"

/* The envelope's clock becomes 0: it follows the op. */
static inline char *ed_fold_clock(const char *p, size_t n)
{
    char *text = cdcd_xstrndup(p, n), *at = NULL;
    for (char *next = strstr(text, "\"op\":\""); next; next = strstr(next + 1, "\"op\":\""))
        at = next;
    if (!at)
        return text;
    char *clock = at + strlen("\"op\":\"c\",\"ts_ms\":");
    size_t digits = strspn(clock, "0123456789");
    assert_int_equal(digits, 13);
    *clock = '0';
    memmove(clock + 1, clock + digits, strlen(clock + digits) + 1);
    return text;
}

static inline void ed_value_is(struct cdcd_slice got, const char *expected)
{
    assert_non_null(got.ptr);
    char *text = ed_fold_clock(got.ptr, got.len);
    if (strcmp(text, expected) != 0)
        fail_msg("got      %s\nexpected %s", text, expected);
    free(text);
}

#endif
