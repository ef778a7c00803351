/*
 * slice: bytes owned by somebody else.   buf: a growing byte buffer with a maximum.
 * arena: memory with one lifetime, freed all at once.
 *
 * Running out of *memory* aborts the process: a killed cdcd loses nothing and
 * resumes, and no half-handled allocation failure can. Running over a *maximum*
 * is an ordinary error (the buf becomes `failed`).
 */
#ifndef CDCD_BUF_H
#define CDCD_BUF_H

#include "error.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

struct cdcd_slice {
    const char *ptr;
    size_t len;
};

static inline struct cdcd_slice cdcd_slice_str(const char *s)
{
    return (struct cdcd_slice){s, s ? strlen(s) : 0};
}

static inline bool cdcd_slice_eq(struct cdcd_slice a, struct cdcd_slice b)
{
    return a.len == b.len && (a.len == 0 || memcmp(a.ptr, b.ptr, a.len) == 0);
}

void *cdcd_xmalloc(size_t n);
void *cdcd_xcalloc(size_t n, size_t size);
void *cdcd_xrealloc(void *p, size_t n);
char *cdcd_xstrdup(const char *s);
char *cdcd_xstrndup(const char *s, size_t n);
char *cdcd_xasprintf(const char *fmt, ...) CDCD_PRINTF(1, 2);

/* ---- buf: owned heap memory, always NUL-terminable ---- */
struct cdcd_buf {
    char *ptr;
    size_t len, cap, max; /* max: 0 means 1 GiB - 1 */
    bool failed;          /* an append went over max and was dropped */
};

void cdcd_buf_init(struct cdcd_buf *b, size_t max);
void cdcd_buf_free(struct cdcd_buf *b);
static inline void cdcd_buf_clear(struct cdcd_buf *b)
{
    b->len = 0;
    b->failed = false;
}
/* Room for n more bytes; NULL (and failed) if that goes over max. */
char *cdcd_buf_reserve(struct cdcd_buf *b, size_t n);
void cdcd_buf_add(struct cdcd_buf *b, const void *p, size_t n);
void cdcd_buf_adds(struct cdcd_buf *b, const char *s);
void cdcd_buf_addf(struct cdcd_buf *b, const char *fmt, ...) CDCD_PRINTF(2, 3);
/* Appends NUL without counting it, and returns the string. */
const char *cdcd_buf_cstr(struct cdcd_buf *b);
static inline struct cdcd_slice cdcd_buf_slice(const struct cdcd_buf *b)
{
    return (struct cdcd_slice){b->ptr, b->len};
}

/* ---- arena ---- */
struct cdcd_arena_chunk {
    struct cdcd_arena_chunk *next;
    size_t cap;
    char data[];
};

struct cdcd_arena {
    struct cdcd_arena_chunk *first, *current; /* chunks before current are full */
    char *pos, *end;                          /* free room in current */
    size_t chunk_size;                        /* of ordinary chunks */
    size_t used;                              /* bytes handed out since the last reset */
};

void cdcd_arena_init(struct cdcd_arena *a, size_t chunk_size);
void cdcd_arena_free(struct cdcd_arena *a);
/* Forgets everything handed out. Ordinary chunks are kept up to `keep` bytes, others freed. */
void cdcd_arena_reset(struct cdcd_arena *a, size_t keep);
void *cdcd_arena_grow(struct cdcd_arena *a, size_t n); /* slow path of the two below */

/* n bytes, aligned to 8, uninitialised; never NULL. */
static inline void *cdcd_arena_alloc(struct cdcd_arena *a, size_t n)
{
    size_t need = (n + 7) & ~(size_t)7;
    if (need < n || (size_t)(a->end - a->pos) < need)
        return cdcd_arena_grow(a, n);
    void *p = a->pos;
    a->pos += need;
    a->used += need;
    return p;
}

char *cdcd_arena_dup(struct cdcd_arena *a, const void *p, size_t n); /* a NUL is put behind */

/* ---- writer: streams bytes into an arena without knowing their number first ----
 * One writer may be open on an arena at a time, and nothing else may be allocated from
 * it meanwhile. When the chunk is full the open part moves to a larger one. */
struct cdcd_writer {
    struct cdcd_arena *arena;
    char *start, *pos, *end;
};

static inline void cdcd_writer_begin(struct cdcd_writer *w, struct cdcd_arena *a)
{
    w->arena = a;
    w->start = w->pos = a->pos;
    w->end = a->end;
}
void cdcd_writer_grow(struct cdcd_writer *w, size_t n);
/* Makes room for n bytes at w->pos; the caller writes there and moves w->pos. */
static inline char *cdcd_writer_room(struct cdcd_writer *w, size_t n)
{
    if ((size_t)(w->end - w->pos) < n)
        cdcd_writer_grow(w, n);
    return w->pos;
}
static inline void cdcd_writer_add(struct cdcd_writer *w, const void *p, size_t n)
{
    memcpy(cdcd_writer_room(w, n), p, n);
    w->pos += n;
}
static inline void cdcd_writer_char(struct cdcd_writer *w, char c)
{
    *cdcd_writer_room(w, 1) = c;
    w->pos++;
}
#define cdcd_writer_lit(w, s) cdcd_writer_add((w), "" s "", sizeof(s) - 1)
/* Closes the writer; the bytes live as long as the arena. */
struct cdcd_slice cdcd_writer_end(struct cdcd_writer *w);

#endif
