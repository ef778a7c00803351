/*
 * BSON by hand, for tests: elements are appended to a document that is open.
 *
 *   struct bson_build b;
 *   bb_begin(&b);
 *   bb_int32(&b, "a", 1);
 *   bb_open(&b, 3, "sub"); ... bb_close(&b);
 *   struct cdcd_slice document = bb_end(&b);    valid until bb_free
 */
#ifndef CDCD_TESTS_BSON_BUILD_H
#define CDCD_TESTS_BSON_BUILD_H

#include <cdcd/buf.h>

#define BB_DEPTH 16

struct bson_build {
    struct cdcd_buf buf;
    size_t open[BB_DEPTH]; /* where the documents that are open begin */
    int depth;
};

static inline void bb_u32(struct bson_build *b, uint32_t v)
{
    cdcd_buf_add(&b->buf, &v, 4); /* tests run on little-endian machines only, as cdcd does */
}
static inline void bb_push(struct bson_build *b)
{
    b->open[b->depth++] = b->buf.len;
    bb_u32(b, 0);
}
static inline void bb_begin(struct bson_build *b)
{
    *b = (struct bson_build){.depth = 0};
    cdcd_buf_init(&b->buf, 0);
    bb_push(b);
}
static inline void bb_close(struct bson_build *b)
{
    size_t start = b->open[--b->depth];
    cdcd_buf_add(&b->buf, "", 1);
    uint32_t n = (uint32_t)(b->buf.len - start);
    memcpy(b->buf.ptr + start, &n, 4);
}
static inline struct cdcd_slice bb_end(struct bson_build *b)
{
    bb_close(b);
    return cdcd_buf_slice(&b->buf);
}
static inline void bb_free(struct bson_build *b)
{
    cdcd_buf_free(&b->buf);
}

static inline void bb_name(struct bson_build *b, uint8_t type, const char *name)
{
    cdcd_buf_add(&b->buf, &type, 1);
    cdcd_buf_add(&b->buf, name, strlen(name) + 1);
}
/* Any element whose value is these bytes. */
static inline void bb_raw(struct bson_build *b, uint8_t type, const char *name, const void *p,
                          size_t n)
{
    bb_name(b, type, name);
    cdcd_buf_add(&b->buf, p, n);
}
static inline void bb_int32(struct bson_build *b, const char *name, int32_t v)
{
    bb_raw(b, 0x10, name, &v, 4);
}
static inline void bb_int64(struct bson_build *b, const char *name, int64_t v)
{
    bb_raw(b, 0x12, name, &v, 8);
}
static inline void bb_double(struct bson_build *b, const char *name, double v)
{
    bb_raw(b, 0x01, name, &v, 8);
}
static inline void bb_date(struct bson_build *b, const char *name, int64_t ms)
{
    bb_raw(b, 0x09, name, &ms, 8);
}
static inline void bb_bool(struct bson_build *b, const char *name, bool v)
{
    bb_raw(b, 0x08, name, v ? "\1" : "", 1);
}
/* Strings, and with their types code (0x0d) and symbol (0x0e). */
static inline void bb_text(struct bson_build *b, uint8_t type, const char *name, const char *s)
{
    bb_name(b, type, name);
    bb_u32(b, (uint32_t)strlen(s) + 1);
    cdcd_buf_add(&b->buf, s, strlen(s) + 1);
}
static inline void bb_string(struct bson_build *b, const char *name, const char *s)
{
    bb_text(b, 0x02, name, s);
}
static inline void bb_binary(struct bson_build *b, const char *name, uint8_t subtype, const void *p,
                             uint32_t n)
{
    bb_name(b, 0x05, name);
    bb_u32(b, subtype == 2 ? n + 4 : n);
    cdcd_buf_add(&b->buf, &subtype, 1);
    if (subtype == 2) /* the old form has its length twice */
        bb_u32(b, n);
    cdcd_buf_add(&b->buf, p, n);
}
/* Bytes of a decimal128, the low half first. */
static inline void bb_decimal(struct bson_build *b, const char *name, uint64_t high, uint64_t low)
{
    bb_raw(b, 0x13, name, &low, 8);
    cdcd_buf_add(&b->buf, &high, 8);
}
/* A document (3) or array (4) within. */
static inline void bb_open(struct bson_build *b, uint8_t type, const char *name)
{
    bb_name(b, type, name);
    bb_push(b);
}

#endif
