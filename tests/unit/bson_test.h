/*
 * Documents for the tests of BSON: from a list of bytes, or at random.
 */
#ifndef BSON_TEST_H
#define BSON_TEST_H

#include <cdcd/bson.h>

#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

/* Bytes of a literal with NULs in it, as two arguments. */
#define BYTES(s) (s), sizeof(s) - 1

/* A document of these elements, with its frame. */
static inline void bson_frame(struct cdcd_buf *b, const void *elements, size_t n)
{
    uint32_t len = (uint32_t)n + 5;
    cdcd_buf_add(b, &len, 4);
    cdcd_buf_add(b, elements, n);
    cdcd_buf_add(b, "", 1);
}

static inline void bson_from_hex(struct cdcd_buf *b, const char *hex)
{
    for (; *hex; hex += 2) {
        char two[3] = {hex[0], hex[1], 0};
        char byte = (char)strtoul(two, NULL, 16);
        cdcd_buf_add(b, &byte, 1);
    }
}

/* ---- random documents: every type, well-formed, strings of any bytes ---- */

struct bson_random {
    uint64_t state;
};

static inline uint64_t bson_draw(struct bson_random *r)
{
    r->state ^= r->state << 13;
    r->state ^= r->state >> 7;
    r->state ^= r->state << 17;
    return r->state * 0x2545f4914f6cdd1du;
}

static inline unsigned bson_below(struct bson_random *r, unsigned n)
{
    return (unsigned)(bson_draw(r) >> 33) % n;
}

/* Text without NUL: plain, with what must be escaped, of many scripts, or broken. */
static inline void bson_random_text(struct bson_random *r, struct cdcd_buf *b)
{
    static const char *const pieces[] = {
        "a",  "plain text", "\"",       "\\",           "\n",           "\x01",
        "/",  "\x7f",       "\xc3\xbc", "\xe6\x97\xa5", "\xcc\x81",     "\xf0\x9f\x98\x80",
        "$x", ".",          "\xff",     "\xed\xa0\x80", "\xe2\x80\xa8", "\xf0\x9f",
    };
    for (unsigned n = bson_below(r, 8); n; n--) {
        const char *piece = pieces[bson_below(r, 6 * 3)];
        cdcd_buf_adds(b, piece);
        if (!bson_below(r, 8))
            cdcd_buf_adds(b, "a run of plain letters that is longer than a vector");
    }
}

static inline void bson_random_bytes(struct bson_random *r, struct cdcd_buf *b, size_t n)
{
    for (; n; n--) {
        char byte = (char)bson_draw(r);
        cdcd_buf_add(b, &byte, 1);
    }
}

static inline void bson_random_string(struct bson_random *r, struct cdcd_buf *b)
{
    size_t at = b->len;
    cdcd_buf_add(b, "\0\0\0\0", 4);
    bson_random_text(r, b);
    if (!bson_below(r, 10))
        cdcd_buf_add(b, "\0x", 2);
    cdcd_buf_add(b, "", 1);
    uint32_t n = (uint32_t)(b->len - at - 4);
    memcpy(b->ptr + at, &n, 4);
}

static inline void bson_random_document(struct bson_random *r, struct cdcd_buf *b, int depth);

static inline void bson_random_value(struct bson_random *r, struct cdcd_buf *b, uint8_t type,
                                     int depth)
{
    size_t at = b->len;
    uint32_t n;
    double number;
    switch (type) {
    case CDCD_BSON_STRING:
    case CDCD_BSON_CODE:
    case CDCD_BSON_SYMBOL: bson_random_string(r, b); return;
    case CDCD_BSON_DOCUMENT:
    case CDCD_BSON_ARRAY: bson_random_document(r, b, depth + 1); return;
    case CDCD_BSON_BINARY:
        n = bson_below(r, 20);
        cdcd_buf_add(b, &n, 4);
        bson_random_bytes(r, b, n + 1);
        return;
    case CDCD_BSON_REGEX:
        bson_random_text(r, b);
        cdcd_buf_add(b, "", 1);
        cdcd_buf_add(b, "xmi", 1 + bson_below(r, 3));
        cdcd_buf_add(b, "", 1);
        return;
    case CDCD_BSON_DBPOINTER:
        bson_random_string(r, b);
        bson_random_bytes(r, b, 12);
        return;
    case CDCD_BSON_CODE_W_SCOPE:
        cdcd_buf_add(b, "\0\0\0\0", 4);
        bson_random_string(r, b);
        bson_random_document(r, b, depth + 1);
        n = (uint32_t)(b->len - at);
        memcpy(b->ptr + at, &n, 4);
        return;
    case CDCD_BSON_BOOL: cdcd_buf_add(b, bson_below(r, 2) ? "\1" : "\0", 1); return;
    case CDCD_BSON_DOUBLE:
        number = (double)(int64_t)bson_draw(r) / (1 + bson_below(r, 1000));
        if (bson_below(r, 2)) {
            cdcd_buf_add(b, &number, 8);
            return;
        }
        bson_random_bytes(r, b, 8);
        return;
    case CDCD_BSON_DATE:
    case CDCD_BSON_TIMESTAMP:
    case CDCD_BSON_INT64: bson_random_bytes(r, b, 8); return;
    case CDCD_BSON_INT32: bson_random_bytes(r, b, 4); return;
    case CDCD_BSON_OID: bson_random_bytes(r, b, 12); return;
    case CDCD_BSON_DECIMAL: bson_random_bytes(r, b, 16); return;
    default: return;
    }
}

static inline void bson_random_document(struct bson_random *r, struct cdcd_buf *b, int depth)
{
    static const uint8_t types[] = {1,  2,  3,  4,  5,  6,  7,  8,  9, 10,   11,
                                    12, 13, 14, 15, 16, 17, 18, 19, 2, 0x7f, 0xff};
    size_t at = b->len;
    cdcd_buf_add(b, "\0\0\0\0", 4);
    for (unsigned n = bson_below(r, depth ? 4 : 10); n; n--) {
        uint8_t type = types[bson_below(r, sizeof types)];
        if (depth > 6 && (type == 3 || type == 4 || type == 15))
            type = CDCD_BSON_STRING;
        cdcd_buf_add(b, &type, 1);
        bson_random_text(r, b);
        cdcd_buf_add(b, "", 1);
        bson_random_value(r, b, type, depth);
    }
    cdcd_buf_add(b, "", 1);
    uint32_t len = (uint32_t)(b->len - at);
    memcpy(b->ptr + at, &len, 4);
}

#endif
