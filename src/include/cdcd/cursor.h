/*
 * cursor: reads bytes that nobody vouches for.
 *
 * The error is sticky: after an underflow every read returns 0 or an empty slice
 * and `bad` stays set, so a decoder reads a whole message and tests once, before
 * it acts on what it read. Checks have the subtract form (n > end - pos), which
 * cannot overflow. Every length-prefixed part gets a cursor of its own
 * (cdcd_cur_sub), every count that sizes a loop or an allocation goes through
 * cdcd_cur_count, every message ends with cdcd_cur_end. Slices are borrowed from
 * the message.
 */
#ifndef CDCD_CURSOR_H
#define CDCD_CURSOR_H

#include "buf.h"

struct cdcd_cursor {
    const uint8_t *pos, *end;
    bool bad;
};

static inline struct cdcd_cursor cdcd_cur(const void *p, size_t n)
{
    return (struct cdcd_cursor){(const uint8_t *)p, (const uint8_t *)p + n, false};
}

static inline size_t cdcd_cur_left(const struct cdcd_cursor *c)
{
    return (size_t)(c->end - c->pos);
}

/* n bytes, or NULL when there are fewer. */
static inline const uint8_t *cdcd_cur_take(struct cdcd_cursor *c, size_t n)
{
    if (c->bad || n > (size_t)(c->end - c->pos)) {
        c->bad = true;
        return NULL;
    }
    const uint8_t *p = c->pos;
    c->pos += n;
    return p;
}

static inline uint8_t cdcd_cur_u8(struct cdcd_cursor *c)
{
    const uint8_t *p = cdcd_cur_take(c, 1);
    return p ? p[0] : 0;
}

static inline uint16_t cdcd_cur_u16be(struct cdcd_cursor *c)
{
    const uint8_t *p = cdcd_cur_take(c, 2);
    return p ? (uint16_t)(p[0] << 8 | p[1]) : 0;
}

static inline uint32_t cdcd_cur_u32be(struct cdcd_cursor *c)
{
    const uint8_t *p = cdcd_cur_take(c, 4);
    return p ? (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3] : 0;
}

static inline uint64_t cdcd_cur_u64be(struct cdcd_cursor *c)
{
    uint64_t hi = cdcd_cur_u32be(c);
    uint64_t lo = cdcd_cur_u32be(c);
    return c->bad ? 0 : hi << 32 | lo;
}

static inline struct cdcd_slice cdcd_cur_bytes(struct cdcd_cursor *c, size_t n)
{
    const uint8_t *p = cdcd_cur_take(c, n);
    return p ? (struct cdcd_slice){(const char *)p, n} : (struct cdcd_slice){"", 0};
}

/* A NUL-terminated string, without its NUL. */
static inline struct cdcd_slice cdcd_cur_cstr(struct cdcd_cursor *c)
{
    const uint8_t *nul = c->bad ? NULL
                                : (const uint8_t *)memchr(c->pos, 0, (size_t)(c->end - c->pos));
    if (!nul) {
        c->bad = true;
        return (struct cdcd_slice){"", 0};
    }
    struct cdcd_slice s = {(const char *)c->pos, (size_t)(nul - c->pos)};
    c->pos = nul + 1;
    return s;
}

/* The next n bytes as a cursor of their own. */
static inline struct cdcd_cursor cdcd_cur_sub(struct cdcd_cursor *c, size_t n)
{
    const uint8_t *p = cdcd_cur_take(c, n);
    struct cdcd_cursor s = {p ? p : (const uint8_t *)"", p ? p + n : (const uint8_t *)"", !p};
    return s;
}

/* A count of things of at least `min_size` bytes each: bad when they cannot be there. */
static inline size_t cdcd_cur_count(struct cdcd_cursor *c, size_t n, size_t min_size)
{
    if (c->bad || n > cdcd_cur_left(c) / (min_size ? min_size : 1)) {
        c->bad = true;
        return 0;
    }
    return n;
}

/* True when all was read and nothing went wrong. */
static inline bool cdcd_cur_end(const struct cdcd_cursor *c)
{
    return !c->bad && c->pos == c->end;
}

#endif
