#include <cdcd/buf.h>

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define BUF_MAX (((size_t)1 << 30) - 1)

/* Nothing is lost by dying here: the next start resumes from what the sink holds. */
static _Noreturn void out_of_memory(void)
{
    static const char text[] = "cdcd: out of memory\n";
    if (write(STDERR_FILENO, text, sizeof(text) - 1) < 0)
        abort();
    abort();
}

void *cdcd_xmalloc(size_t n)
{
    void *p = malloc(n ? n : 1);
    if (!p)
        out_of_memory();
    return p;
}

void *cdcd_xcalloc(size_t n, size_t size)
{
    void *p = calloc(n ? n : 1, size ? size : 1);
    if (!p)
        out_of_memory();
    return p;
}

void *cdcd_xrealloc(void *p, size_t n)
{
    p = realloc(p, n ? n : 1);
    if (!p)
        out_of_memory();
    return p;
}

char *cdcd_xstrdup(const char *s)
{
    return cdcd_xstrndup(s, strlen(s));
}

char *cdcd_xstrndup(const char *s, size_t n)
{
    char *p = cdcd_xmalloc(n + 1);
    if (n)
        memcpy(p, s, n);
    p[n] = 0;
    return p;
}

char *cdcd_xasprintf(const char *fmt, ...)
{
    char *s = NULL;
    va_list ap;
    va_start(ap, fmt);
    int n = vasprintf(&s, fmt, ap);
    va_end(ap);
    if (n < 0)
        out_of_memory();
    return s;
}

/* ---- buf ---- */

void cdcd_buf_init(struct cdcd_buf *b, size_t max)
{
    *b = (struct cdcd_buf){.max = max};
}

void cdcd_buf_free(struct cdcd_buf *b)
{
    free(b->ptr);
    *b = (struct cdcd_buf){.max = b->max};
}

/* Capacity is always above the length, so that a NUL can be put behind. */
char *cdcd_buf_reserve(struct cdcd_buf *b, size_t n)
{
    size_t max = b->max ? b->max : BUF_MAX;
    if (b->failed || b->len > max || n > max - b->len) {
        b->failed = true;
        return NULL;
    }
    size_t need = b->len + n + 1;
    if (need > b->cap) {
        size_t cap = b->cap < 64 ? 64 : b->cap;
        while (cap < need)
            cap += cap / 2;
        b->ptr = cdcd_xrealloc(b->ptr, cap);
        b->cap = cap;
    }
    return b->ptr + b->len;
}

void cdcd_buf_add(struct cdcd_buf *b, const void *p, size_t n)
{
    char *to = cdcd_buf_reserve(b, n);
    if (!to || !n)
        return;
    memcpy(to, p, n);
    b->len += n;
}

void cdcd_buf_adds(struct cdcd_buf *b, const char *s)
{
    cdcd_buf_add(b, s, strlen(s));
}

void cdcd_buf_addf(struct cdcd_buf *b, const char *fmt, ...)
{
    va_list ap, again;
    va_start(ap, fmt);
    va_copy(again, ap);
    int n = vsnprintf(NULL, 0, fmt, ap);
    va_end(ap);
    char *to = n < 0 ? NULL : cdcd_buf_reserve(b, (size_t)n);
    if (to) {
        vsnprintf(to, (size_t)n + 1, fmt, again);
        b->len += (size_t)n;
    } else {
        b->failed = true;
    }
    va_end(again);
}

const char *cdcd_buf_cstr(struct cdcd_buf *b)
{
    if (!b->ptr) {
        b->ptr = cdcd_xmalloc(64);
        b->cap = 64;
    }
    b->ptr[b->len] = 0;
    return b->ptr;
}

/* ---- arena ---- */

/* An arena without a chunk points here, so that pos is never NULL. */
static char no_chunk[8];

static size_t align8(size_t n)
{
    return (n + 7) & ~(size_t)7;
}

static struct cdcd_arena_chunk *chunk_new(size_t cap)
{
    struct cdcd_arena_chunk *c = cdcd_xmalloc(sizeof(*c) + cap);
    c->next = NULL;
    c->cap = cap;
    return c;
}

static void arena_enter(struct cdcd_arena *a, struct cdcd_arena_chunk *c)
{
    a->current = c;
    a->pos = c ? c->data : no_chunk;
    a->end = c ? c->data + c->cap : no_chunk;
}

void cdcd_arena_init(struct cdcd_arena *a, size_t chunk_size)
{
    *a = (struct cdcd_arena){.chunk_size = align8(chunk_size ? chunk_size : 4096)};
    arena_enter(a, NULL);
}

void cdcd_arena_free(struct cdcd_arena *a)
{
    for (struct cdcd_arena_chunk *c = a->first, *next; c; c = next) {
        next = c->next;
        free(c);
    }
    cdcd_arena_init(a, a->chunk_size);
}

void cdcd_arena_reset(struct cdcd_arena *a, size_t keep)
{
    struct cdcd_arena_chunk *kept = NULL;
    for (struct cdcd_arena_chunk *c = a->first, *next; c; c = next) {
        next = c->next;
        if (c->cap == a->chunk_size && c->cap <= keep) {
            keep -= c->cap;
            c->next = kept;
            kept = c;
        } else {
            free(c);
        }
    }
    a->first = kept;
    a->used = 0;
    arena_enter(a, kept);
}

/* Makes a chunk of at least `need` bytes the current one: the next kept one if it will do. */
static void arena_advance(struct cdcd_arena *a, size_t need, size_t cap)
{
    struct cdcd_arena_chunk *next = a->current ? a->current->next : a->first;
    if (!next || next->cap < need) {
        struct cdcd_arena_chunk *c = chunk_new(cap < need ? need : cap);
        c->next = next;
        if (a->current)
            a->current->next = c;
        else
            a->first = c;
        next = c;
    }
    arena_enter(a, next);
}

void *cdcd_arena_grow(struct cdcd_arena *a, size_t n)
{
    if (n > SIZE_MAX / 4)
        out_of_memory();
    size_t need = align8(n);
    if (!a->chunk_size)
        cdcd_arena_init(a, 4096);
    a->used += need;
    if (need > a->chunk_size / 4 && a->current) {
        /* A chunk of its own, in front: what is left of the current one stays in use. */
        struct cdcd_arena_chunk *c = chunk_new(need);
        c->next = a->first;
        a->first = c;
        return c->data;
    }
    arena_advance(a, need, a->chunk_size);
    char *p = a->pos;
    a->pos += need;
    return p;
}

char *cdcd_arena_dup(struct cdcd_arena *a, const void *p, size_t n)
{
    if (n == SIZE_MAX)
        out_of_memory();
    char *s = cdcd_arena_alloc(a, n + 1);
    if (n)
        memcpy(s, p, n);
    s[n] = 0;
    return s;
}

/* ---- writer ---- */

/* Enlarges the current chunk, which holds nothing but the open part. */
static void chunk_enlarge(struct cdcd_arena *a, size_t cap)
{
    struct cdcd_arena_chunk **link = &a->first;
    while (*link != a->current)
        link = &(*link)->next;
    struct cdcd_arena_chunk *c = cdcd_xrealloc(a->current, sizeof(*c) + cap);
    c->cap = cap;
    *link = c;
    arena_enter(a, c);
}

void cdcd_writer_grow(struct cdcd_writer *w, size_t n)
{
    struct cdcd_arena *a = w->arena;
    size_t len = (size_t)(w->pos - w->start);
    if (n > SIZE_MAX / 4 || len > SIZE_MAX / 4)
        out_of_memory();
    size_t need = align8(len + n);
    if (!a->chunk_size)
        cdcd_arena_init(a, 4096);
    if (a->current && w->start == a->current->data && len) {
        chunk_enlarge(a, need + need / 2);
    } else {
        const char *old = w->start;
        size_t cap = need > a->chunk_size / 2 ? 2 * need : a->chunk_size;
        arena_advance(a, need, cap < a->chunk_size ? a->chunk_size : align8(cap));
        if (len)
            memcpy(a->pos, old, len);
    }
    w->start = a->pos;
    w->pos = w->start + len;
    w->end = a->end;
}

struct cdcd_slice cdcd_writer_end(struct cdcd_writer *w)
{
    struct cdcd_arena *a = w->arena;
    size_t len = (size_t)(w->pos - w->start);
    size_t taken = align8(len);
    a->pos = w->start + taken;
    a->used += taken;
    return (struct cdcd_slice){w->start, len};
}
