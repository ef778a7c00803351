/*
 * group.c: the events of one transaction, raw, until its end is known. See stream.h.
 *
 * A group begins in memory. One that grows beyond MEMORY goes to a file that has no name: it needs
 * no clean-up, and need not survive a crash, since the server sends the group again. A record is:
 * length u32, place u64 (both in the machine's order), event.
 */
#include "stream.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <unistd.h>

#define HEADER 12
#define MEMORY ((size_t)2 << 20)
#define BUFFER ((size_t)128 << 10)

struct my_group {
    struct my_group_pool *pool;
    /* The tail that is not in the file; all of it while there is none. */
    char *mem;
    size_t len, cap;
    int fd;        /* -1: no file */
    uint64_t flen; /* bytes in the file */
    /* reading */
    uint64_t rpos; /* of the next record, counted over file and memory */
    char *rbuf;    /* a window of the file */
    size_t rcap, rlen;
    uint64_t rbase; /* where the window begins */
};

struct my_group *my_group_new(struct my_group_pool *pool)
{
    struct my_group *g = cdcd_xcalloc(1, sizeof *g);
    g->pool = pool;
    g->fd = -1;
    return g;
}

static void drop_file(struct my_group *g)
{
    if (g->fd >= 0)
        close(g->fd);
    g->fd = -1;
    g->pool->used -= g->flen;
    g->flen = 0;
    free(g->rbuf);
    g->rbuf = NULL;
    g->rcap = g->rlen = 0;
}

void my_group_free(struct my_group *g)
{
    if (!g)
        return;
    drop_file(g);
    free(g->mem);
    free(g);
}

void my_group_reset(struct my_group *g)
{
    drop_file(g);
    g->len = 0;
    g->rpos = 0;
    if (g->cap > MEMORY) { /* one huge event made it grow */
        free(g->mem);
        g->mem = NULL;
        g->cap = 0;
    }
}

uint64_t my_group_mark(const struct my_group *g)
{
    return g->flen + g->len;
}

/* ---- writing ---- */

static enum cdcd_rc write_error(const struct my_group *g, int e, struct cdcd_error *err)
{
    return cdcd_error_set(err, CDCD_ERR_FATAL,
                          "cannot keep a transaction of %" PRIu64
                          " bytes in %s until its end: %s. Free space there, or set spill.dir to "
                          "a larger file system; the position has not moved, nothing is lost",
                          my_group_mark(g), g->pool->dir, strerror(e));
}

static int open_unnamed(const char *dir)
{
    int fd = open(dir, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    if (fd >= 0 || (errno != EOPNOTSUPP && errno != EISDIR && errno != EINVAL))
        return fd;
    char *path = cdcd_xasprintf("%s/cdcd-group.XXXXXX", dir);
    fd = mkostemp(path, O_CLOEXEC);
    if (fd >= 0)
        unlink(path);
    free(path);
    return fd;
}

static enum cdcd_rc write_out(struct my_group *g, const char *p, size_t n, struct cdcd_error *err)
{
    if (g->fd < 0 && (g->fd = open_unnamed(g->pool->dir)) < 0)
        return write_error(g, errno, err);
    while (n) {
        ssize_t k = pwrite(g->fd, p, n, (off_t)g->flen);
        if (k < 0 && errno == EINTR)
            continue;
        if (k <= 0)
            return write_error(g, k < 0 ? errno : ENOSPC, err);
        p += k;
        n -= (size_t)k;
        g->flen += (uint64_t)k;
        g->pool->used += (uint64_t)k;
    }
    return CDCD_OK;
}

/* The tail to the file; from then on the memory is no more than a buffer. */
static enum cdcd_rc flush(struct my_group *g, struct cdcd_error *err)
{
    uint64_t max = g->pool->max;
    if (max && g->len > max - (g->pool->used < max ? g->pool->used : max))
        return cdcd_error_set(
            err, CDCD_ERR_FATAL,
            "transactions that wait for their end need more than spill.max.bytes (%" PRIu64
            " bytes) in %s; one of them has %" PRIu64
            " so far. Raise spill.max.bytes; the position has not moved, nothing is lost",
            max, g->pool->dir, my_group_mark(g));
    size_t n = g->len;
    enum cdcd_rc rc = write_out(g, g->mem, n, err);
    if (rc == CDCD_OK)
        g->len = 0;
    return rc;
}

enum cdcd_rc my_group_add(struct my_group *g, struct cdcd_slice event, uint64_t place,
                          struct cdcd_error *err)
{
    uint32_t n = (uint32_t)event.len;
    size_t need = HEADER + event.len;
    if (g->len && g->len + need > (g->fd >= 0 ? BUFFER : MEMORY) && flush(g, err) != CDCD_OK)
        return CDCD_ERROR;
    if (g->len + need > g->cap) {
        size_t cap = g->cap ? 2 * g->cap : 4096;
        while (cap < g->len + need)
            cap *= 2;
        g->mem = cdcd_xrealloc(g->mem, cap);
        g->cap = cap;
    }
    char *p = g->mem + g->len;
    memcpy(p, &n, 4);
    memcpy(p + 4, &place, 8);
    memcpy(p + HEADER, event.ptr, event.len);
    g->len += need;
    return CDCD_OK;
}

enum cdcd_rc my_group_cut(struct my_group *g, uint64_t mark, struct cdcd_error *err)
{
    if (mark >= g->flen) {
        g->len = (size_t)(mark - g->flen);
        return CDCD_OK;
    }
    if (ftruncate(g->fd, (off_t)mark) != 0)
        return write_error(g, errno, err);
    g->pool->used -= g->flen - mark;
    g->flen = mark;
    g->len = 0;
    return CDCD_OK;
}

void my_group_pause(struct my_group *g)
{
    if (g->cap > g->len) {
        g->mem = g->len ? cdcd_xrealloc(g->mem, g->len) : (free(g->mem), NULL);
        g->cap = g->len;
    }
}

/* ---- reading ---- */

static enum cdcd_rc read_error(const struct my_group *g, const char *what, struct cdcd_error *err)
{
    return cdcd_error_set(err, CDCD_ERR_RETRY,
                          "cannot read back a transaction from its file in %s: %s; the server will "
                          "send it again",
                          g->pool->dir, what);
}

enum cdcd_rc my_group_rewind(struct my_group *g, struct cdcd_error *err)
{
    g->rpos = g->rbase = 0;
    g->rlen = 0;
    return g->fd >= 0 && g->len ? flush(g, err) : CDCD_OK;
}

/* n bytes of the file at rpos, in the window. */
static enum cdcd_rc window(struct my_group *g, size_t n, const char **out, struct cdcd_error *err)
{
    size_t skip = (size_t)(g->rpos - g->rbase);
    if (skip > g->rlen || g->rlen - skip < n) {
        size_t left = skip < g->rlen ? g->rlen - skip : 0;
        size_t cap = n > BUFFER ? n : BUFFER;
        if (left)
            memmove(g->rbuf, g->rbuf + skip, left);
        if (g->rcap < cap) {
            g->rbuf = cdcd_xrealloc(g->rbuf, cap);
            g->rcap = cap;
        }
        g->rbase = g->rpos;
        g->rlen = left;
        skip = 0;
        while (g->rlen < n) {
            ssize_t k = pread(g->fd, g->rbuf + g->rlen, g->rcap - g->rlen,
                              (off_t)(g->rbase + g->rlen));
            if (k < 0 && errno == EINTR)
                continue;
            if (k <= 0)
                return read_error(g, k < 0 ? strerror(errno) : "it ends too early", err);
            g->rlen += (size_t)k;
        }
    }
    *out = g->rbuf + skip;
    return CDCD_OK;
}

enum cdcd_rc my_group_next(struct my_group *g, struct cdcd_slice *event, uint64_t *place,
                           struct cdcd_error *err)
{
    const char *p;
    uint32_t n;
    if (g->rpos >= my_group_mark(g))
        return CDCD_END;
    if (g->fd < 0) {
        p = g->mem + g->rpos;
        memcpy(&n, p, 4);
    } else {
        if (window(g, HEADER, &p, err) != CDCD_OK)
            return CDCD_ERROR;
        memcpy(&n, p, 4);
        if (window(g, HEADER + (size_t)n, &p, err) != CDCD_OK)
            return CDCD_ERROR;
    }
    memcpy(place, p + 4, 8);
    *event = (struct cdcd_slice){p + HEADER, n};
    g->rpos += HEADER + (uint64_t)n;
    return CDCD_OK;
}
