/*
 * spool.c: see spool.h.
 *
 * A file is a run of: length u32, sequence u64, LSN u64 (all in the machine's order: no other
 * machine and no later run reads it), message. It need not survive a crash, so nothing is synced:
 * the server sends an uncommitted transaction again from its start.
 *
 * The list of spools is linear: it has as many entries as there are large transactions at one
 * time, which is seldom more than a few.
 */
#include "spool.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define PREFIX "cdcd-spool."
#define HEADER 20
/* Large enough that a system call a block is nothing beside the copying. */
#define BUFFER ((size_t)64 << 10)
/* A buffer that one huge message made grow is given back after the replay. */
#define KEEP_BUFFER ((size_t)1 << 20)

/* 4,096 transaction numbers a page: subtransactions of one transaction lie close together. */
struct pg_xid_page {
    uint32_t number;
    uint64_t bits[64];
};

struct pg_spools {
    char *dir, *owner;
    uint64_t max_bytes, bytes;
    struct pg_spool *list;
    /* what is appended but not yet written; of one spool at a time */
    char *wbuf;
    size_t wlen;
    struct pg_spool *writing;
    /* read-ahead of the replay: [rpos, rlen) is not consumed */
    char *rbuf;
    size_t rcap, rpos, rlen;
};

/* Part of the names: a number that comes twice, in one pipeline or two, gives two files. */
static atomic_uint_fast64_t files;

struct pg_spools *pg_spools_new(const char *dir, const char *owner, int64_t max_bytes)
{
    struct pg_spools *s = cdcd_xcalloc(1, sizeof *s);
    s->dir = cdcd_xstrdup(dir);
    s->owner = cdcd_xstrdup(owner);
    s->max_bytes = max_bytes > 0 ? (uint64_t)max_bytes : UINT64_MAX;
    return s;
}

void pg_spools_free(struct pg_spools *s)
{
    if (!s)
        return;
    while (s->list)
        pg_spool_drop(s, s->list);
    free(s->wbuf);
    free(s->rbuf);
    free(s->dir);
    free(s->owner);
    free(s);
}

enum cdcd_rc pg_spools_clean(struct pg_spools *s, struct cdcd_error *err)
{
    DIR *d = opendir(s->dir);
    if (!d)
        return cdcd_error_set(err, CDCD_ERR_CONFIG,
                              "cannot open the spill folder %s: %s; create it, or set spill.dir to "
                              "a folder that cdcd may write to",
                              s->dir, strerror(errno));
    char *mine = cdcd_xasprintf(PREFIX "%s.", s->owner);
    struct dirent *e;
    while ((e = readdir(d)))
        if (strncmp(e->d_name, mine, strlen(mine)) == 0 && unlinkat(dirfd(d), e->d_name, 0) == 0)
            cdcd_debug("postgres", "removed %s/%s of an earlier run", s->dir, e->d_name);
    closedir(d);
    free(mine);
    return CDCD_OK;
}

pg_lsn pg_spools_held(const struct pg_spools *s)
{
    pg_lsn min = 0;
    for (const struct pg_spool *sp = s->list; sp; sp = sp->next)
        if (sp->gid && (min == 0 || sp->prepare_lsn < min))
            min = sp->prepare_lsn;
    return min;
}

size_t pg_spools_count(const struct pg_spools *s)
{
    size_t n = 0;
    for (const struct pg_spool *sp = s->list; sp; sp = sp->next)
        n++;
    return n;
}

uint64_t pg_spools_bytes(const struct pg_spools *s)
{
    return s->bytes;
}

struct pg_spool *pg_spool_find(struct pg_spools *s, uint32_t xid)
{
    struct pg_spool *sp = s->list;
    while (sp && sp->xid != xid)
        sp = sp->next;
    return sp;
}

struct pg_spool *pg_spool_new(struct pg_spools *s, uint32_t xid, bool streamed, pg_lsn lsn)
{
    struct pg_spool *sp = cdcd_xcalloc(1, sizeof *sp);
    sp->xid = xid;
    sp->streamed = streamed;
    sp->first_lsn = lsn;
    sp->fd = -1;
    sp->path = cdcd_xasprintf("%s/" PREFIX "%s.%u.%" PRIuFAST64, s->dir, s->owner, xid,
                              atomic_fetch_add(&files, 1));
    sp->next = s->list;
    s->list = sp;
    return sp;
}

void pg_spool_drop(struct pg_spools *s, struct pg_spool *sp)
{
    struct pg_spool **p = &s->list;
    while (*p && *p != sp)
        p = &(*p)->next;
    if (*p)
        *p = sp->next;
    if (s->writing == sp) {
        s->writing = NULL;
        s->wlen = 0;
    }
    if (sp->fd >= 0)
        close(sp->fd);
    if (sp->created)
        unlink(sp->path);
    s->bytes -= sp->bytes;
    s->rpos = s->rlen = 0;
    if (s->rcap > KEEP_BUFFER) {
        free(s->rbuf);
        s->rbuf = NULL;
        s->rcap = 0;
    }
    free(sp->path);
    free(sp->gid);
    free(sp->aborted);
    free(sp);
}

/* ---- writing ---- */

static enum cdcd_rc write_error(const struct pg_spools *s, const struct pg_spool *sp, int e,
                                struct cdcd_error *err)
{
    return cdcd_error_set(err, CDCD_ERR_FATAL,
                          "cannot write %s: %s. Transaction %u waits there for its commit (%" PRIu64
                          " bytes). Free space in %s or set spill.dir to a larger file system; the "
                          "position has not moved, nothing is lost",
                          sp->path, strerror(e), sp->xid, sp->bytes, s->dir);
}

static enum cdcd_rc write_all(struct pg_spools *s, struct pg_spool *sp, const char *p, size_t n,
                              struct cdcd_error *err)
{
    if (sp->fd < 0) {
        int create = sp->created ? 0 : O_CREAT | O_EXCL;
        sp->fd = open(sp->path, O_WRONLY | O_APPEND | O_CLOEXEC | O_NOFOLLOW | create, 0600);
        if (sp->fd < 0)
            return write_error(s, sp, errno, err);
        sp->created = true;
    }
    while (n) {
        ssize_t k = write(sp->fd, p, n);
        if (k < 0 && errno == EINTR)
            continue;
        if (k <= 0)
            return write_error(s, sp, k < 0 ? errno : ENOSPC, err);
        p += k;
        n -= (size_t)k;
    }
    return CDCD_OK;
}

static enum cdcd_rc flush(struct pg_spools *s, struct pg_spool *sp, struct cdcd_error *err)
{
    enum cdcd_rc rc = CDCD_OK;
    if (s->wlen)
        rc = write_all(s, sp, s->wbuf, s->wlen, err);
    s->wlen = 0;
    return rc;
}

enum cdcd_rc pg_spool_append(struct pg_spools *s, struct pg_spool *sp, pg_lsn lsn, uint64_t seq,
                             struct cdcd_slice message, struct cdcd_error *err)
{
    uint64_t need = HEADER + (uint64_t)message.len;
    if (need > s->max_bytes - (s->bytes < s->max_bytes ? s->bytes : s->max_bytes))
        return cdcd_error_set(
            err, CDCD_ERR_FATAL,
            "uncommitted transactions need more than spill.max.bytes (%" PRIu64
            " bytes) in %s: transaction %u alone has %" PRIu64
            ". Raise spill.max.bytes, or set streaming: off to let the server keep them; the "
            "position has not moved, nothing is lost",
            s->max_bytes, s->dir, sp->xid, sp->bytes);
    if (s->writing != sp) {
        if (s->writing && pg_spool_pause(s, s->writing, err) != CDCD_OK)
            return CDCD_ERROR;
        s->writing = sp;
    }
    if (!s->wbuf)
        s->wbuf = cdcd_xmalloc(BUFFER);
    if (BUFFER - s->wlen < HEADER + message.len && flush(s, sp, err) != CDCD_OK)
        return CDCD_ERROR;
    uint32_t len = (uint32_t)message.len;
    char *h = s->wbuf + s->wlen;
    memcpy(h, &len, 4);
    memcpy(h + 4, &seq, 8);
    memcpy(h + 12, &lsn, 8);
    s->wlen += HEADER;
    sp->bytes += need;
    s->bytes += need;
    if (BUFFER - s->wlen >= message.len) {
        memcpy(s->wbuf + s->wlen, message.ptr, message.len);
        s->wlen += message.len;
        return CDCD_OK;
    }
    if (flush(s, sp, err) != CDCD_OK)
        return CDCD_ERROR;
    return write_all(s, sp, message.ptr, message.len, err);
}

enum cdcd_rc pg_spool_pause(struct pg_spools *s, struct pg_spool *sp, struct cdcd_error *err)
{
    enum cdcd_rc rc = CDCD_OK;
    if (s->writing == sp) {
        rc = flush(s, sp, err);
        s->writing = NULL;
    }
    if (sp->fd >= 0)
        close(sp->fd);
    sp->fd = -1;
    return rc;
}

/* ---- aborted subtransactions ---- */

/* Where the page of this number is, or would be inserted. */
static size_t page_place(const struct pg_spool *sp, uint32_t number)
{
    size_t lo = 0, hi = sp->naborted;
    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;
        if (sp->aborted[mid].number < number)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo;
}

void pg_spool_abort(struct pg_spool *sp, uint32_t subxid)
{
    uint32_t number = subxid >> 12, bit = subxid & 4095;
    size_t i = page_place(sp, number);
    if (i == sp->naborted || sp->aborted[i].number != number) {
        if (sp->naborted == sp->aborted_cap) {
            sp->aborted_cap = sp->aborted_cap ? 2 * sp->aborted_cap : 4;
            sp->aborted = cdcd_xrealloc(sp->aborted, sp->aborted_cap * sizeof *sp->aborted);
        }
        memmove(&sp->aborted[i + 1], &sp->aborted[i], (sp->naborted - i) * sizeof *sp->aborted);
        sp->naborted++;
        memset(&sp->aborted[i], 0, sizeof sp->aborted[i]);
        sp->aborted[i].number = number;
    }
    sp->aborted[i].bits[bit / 64] |= UINT64_C(1) << bit % 64;
}

bool pg_spool_aborted(const struct pg_spool *sp, uint32_t xid)
{
    if (sp->naborted == 0)
        return false;
    uint32_t number = xid >> 12, bit = xid & 4095;
    size_t i = page_place(sp, number);
    return i < sp->naborted && sp->aborted[i].number == number &&
           (sp->aborted[i].bits[bit / 64] >> bit % 64 & 1);
}

/* ---- reading ---- */

static enum cdcd_rc read_error(const struct pg_spool *sp, const char *what, struct cdcd_error *err)
{
    return cdcd_error_set(err, CDCD_ERR_RETRY,
                          "cannot read back %s: %s; the server will send transaction %u again",
                          sp->path, what, sp->xid);
}

enum cdcd_rc pg_spool_rewind(struct pg_spools *s, struct pg_spool *sp, struct cdcd_error *err)
{
    if (pg_spool_pause(s, sp, err) != CDCD_OK)
        return CDCD_ERROR;
    s->rpos = s->rlen = 0;
    if (sp->bytes == 0)
        return CDCD_OK; /* no message, no file */
    sp->fd = open(sp->path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    if (sp->fd < 0)
        return read_error(sp, strerror(errno), err);
    posix_fadvise(sp->fd, 0, 0, POSIX_FADV_SEQUENTIAL);
    return CDCD_OK;
}

/* At least n bytes at rpos. END: the file ended exactly at rpos. */
static enum cdcd_rc need(struct pg_spools *s, struct pg_spool *sp, size_t n, struct cdcd_error *err)
{
    if (s->rlen - s->rpos >= n)
        return CDCD_OK;
    memmove(s->rbuf, s->rbuf + s->rpos, s->rlen - s->rpos);
    s->rlen -= s->rpos;
    s->rpos = 0;
    if (s->rcap < n) {
        s->rcap = n > BUFFER ? n : BUFFER;
        s->rbuf = cdcd_xrealloc(s->rbuf, s->rcap);
    }
    while (s->rlen < n) {
        ssize_t k = read(sp->fd, s->rbuf + s->rlen, s->rcap - s->rlen);
        if (k < 0 && errno == EINTR)
            continue;
        if (k < 0)
            return read_error(sp, strerror(errno), err);
        if (k == 0)
            return s->rlen == 0 ? CDCD_END : read_error(sp, "it ends too early", err);
        s->rlen += (size_t)k;
    }
    return CDCD_OK;
}

enum cdcd_rc pg_spool_next(struct pg_spools *s, struct pg_spool *sp, struct pg_spooled *out,
                           struct cdcd_error *err)
{
    if (sp->fd < 0)
        return CDCD_END;
    if (!s->rbuf) {
        s->rbuf = cdcd_xmalloc(BUFFER);
        s->rcap = BUFFER;
    }
    enum cdcd_rc rc = need(s, sp, HEADER, err);
    if (rc != CDCD_OK)
        return rc;
    uint32_t len;
    memcpy(&len, s->rbuf + s->rpos, 4);
    rc = need(s, sp, HEADER + (size_t)len, err);
    if (rc != CDCD_OK)
        return rc == CDCD_END ? read_error(sp, "it ends too early", err) : rc;
    const char *h = s->rbuf + s->rpos;
    memcpy(&out->seq, h + 4, 8);
    memcpy(&out->lsn, h + 12, 8);
    out->message = (struct cdcd_slice){h + HEADER, len};
    s->rpos += HEADER + (size_t)len;
    return CDCD_OK;
}
