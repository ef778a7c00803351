/*
 * mgfake_server.h: the fake server's state, its connections and messages. Part of mgfake.c.
 *
 * Wire: OP_MSG (2013) both ways, and OP_QUERY (2004), answered by OP_REPLY (1), for the first
 * hello. A thread a connection; everything but sockets is under server.lock.
 */
#ifndef MGFAKE_SERVER_H
#define MGFAKE_SERVER_H

#include "mgfake_store.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define REPLY_BYTES ((size_t)16 << 20) /* of documents in one batch */
#define FIRST_BATCH 101
#define LABELS      8

struct cursor {
    int64_t id;
    char *ns;
    struct cursor *following;
    int64_t batch, left; /* batchSize, 0: none; documents up to the limit, -1: no limit */
    /* The oplog's: */
    bool oplog, tailable, await;
    uint64_t next, last; /* number of the next entry, of the last one given */
    uint64_t until;      /* ts of the last entry wanted */
    /* Documents: */
    struct cdcd_slice *list;
    size_t n, at;
    uint64_t seen_at; /* atClusterTime to be told; 0: none */
};

/* The next `times` commands of that name fail. */
struct fault {
    char *command, *collection, *message;
    char *labels[LABELS];
    int code, nlabels; /* code 0: the connection is cut */
    int64_t times;
};

struct connection {
    int fd;
    int64_t number;
    struct connection *following;
};

struct counter {
    char *name;
    int64_t n;
};

static struct {
    pthread_mutex_t lock;
    pthread_cond_t changed; /* entries came, cursors were killed; monotonic clock */
    struct oplog oplog;
    struct documents documents;
    struct cursor *cursors;
    struct connection *connections;
    struct fault *faults;
    size_t nfaults;
    struct counter *counters;
    size_t ncounters;
    int64_t next_cursor, next_connection, sent;
    int64_t secondary_until; /* monotonic ms */
    /* options */
    int port, max_wire;
    const char *set, *version;
    bool mongos, standalone;
} server = {.lock = PTHREAD_MUTEX_INITIALIZER,
            .next_cursor = 1000,
            .max_wire = 21,
            .set = "rs0",
            .version = "7.0.14"};

/* A command and what becomes of it. */
struct request {
    struct cdcd_slice body; /* the command's document */
    struct connection *connection;
    char name[64], db[128];
    struct value first; /* of the element that bears the command's name */
    char message[400];  /* of an error */
    const struct fault *fault;
    bool cut; /* no answer: the connection ends */
};

static int64_t now_ms(clockid_t clock)
{
    struct timespec t;
    clock_gettime(clock, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

/* ---- cursors ---- */

static struct cursor *cursor_new(const char *ns)
{
    struct cursor *c = cdcd_xcalloc(1, sizeof *c);
    c->id = ++server.next_cursor * 7919;
    c->ns = cdcd_xstrdup(ns);
    c->left = -1;
    c->following = server.cursors;
    server.cursors = c;
    return c;
}

static struct cursor *cursor_get(int64_t id)
{
    struct cursor *c = server.cursors;
    while (c && c->id != id)
        c = c->following;
    return c;
}

static void cursor_kill(int64_t id)
{
    for (struct cursor **p = &server.cursors; *p; p = &(*p)->following)
        if ((*p)->id == id) {
            struct cursor *c = *p;
            *p = c->following;
            free(c->list);
            free(c->ns);
            free(c);
            break;
        }
    pthread_cond_broadcast(&server.changed);
}

static int64_t cursors_kill_all(void)
{
    int64_t n = 0;
    for (; server.cursors; n++)
        cursor_kill(server.cursors->id);
    return n;
}

/* ---- connections ---- */

static void connections_cut(const struct connection *but)
{
    for (struct connection *c = server.connections; c; c = c->following)
        if (c != but)
            shutdown(c->fd, SHUT_RDWR);
}

static void connection_forget(struct connection *c)
{
    struct connection **p = &server.connections;
    while (*p != c)
        p = &(*p)->following;
    *p = c->following;
    close(c->fd);
    free(c);
}

static bool read_all(int fd, void *to, size_t n)
{
    char *p = to;
    while (n) {
        ssize_t got = recv(fd, p, n, 0);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            return false;
        p += got;
        n -= (size_t)got;
    }
    return true;
}

static bool write_all(int fd, const char *p, size_t n)
{
    while (n) {
        ssize_t done = send(fd, p, n, MSG_NOSIGNAL);
        if (done < 0 && errno == EINTR)
            continue;
        if (done <= 0)
            return false;
        p += done;
        n -= (size_t)done;
    }
    return true;
}

/* ---- messages ---- */

enum { OP_REPLY = 1, OP_QUERY = 2004, OP_MSG = 2013 };
#define MESSAGE_MAX  48000000
#define MORE_TO_COME 2u

struct header {
    int32_t length, id, answer_to, op;
};

static bool document_at(struct cdcd_slice message, size_t at, struct cdcd_slice *out)
{
    int32_t n;
    if (at + 5 > message.len)
        return false;
    memcpy(&n, message.ptr + at, 4);
    if (n < 5 || (size_t)n > message.len - at)
        return false;
    *out = (struct cdcd_slice){message.ptr + at, (size_t)n};
    return true;
}

/* The command within a message; sequences of documents (of writes) are not understood. */
static bool message_command(int32_t op, struct cdcd_slice message, struct cdcd_slice *command,
                            bool *answer)
{
    uint32_t flags;
    if (message.len < 5)
        return false;
    memcpy(&flags, message.ptr, 4);
    *answer = true;
    if (op == OP_MSG) {
        *answer = !(flags & MORE_TO_COME);
        return message.ptr[4] == 0 && document_at(message, 5, command);
    }
    if (op != OP_QUERY)
        return false;
    size_t name = strnlen(message.ptr + 4, message.len - 4);
    return document_at(message, 4 + name + 1 + 8, command);
}

/* What stands before the document of an answer; its length is put in by answer_end(). */
static void answer_begin(struct cdcd_buf *b, const struct header *to)
{
    static int32_t number;
    struct header h = {0, __atomic_add_fetch(&number, 1, __ATOMIC_RELAXED), to->id,
                       to->op == OP_QUERY ? OP_REPLY : OP_MSG};
    cdcd_buf_clear(b);
    cdcd_buf_add(b, &h, sizeof h);
    if (to->op == OP_QUERY) {
        int32_t flags = 8, from = 0, returned = 1;
        int64_t cursor = 0;
        cdcd_buf_add(b, &flags, 4);
        cdcd_buf_add(b, &cursor, 8);
        cdcd_buf_add(b, &from, 4);
        cdcd_buf_add(b, &returned, 4);
    } else {
        cdcd_buf_add(b, "\0\0\0\0", 5); /* no flags; a section of kind 0 */
    }
}

static void answer_end(struct cdcd_buf *b)
{
    int32_t n = (int32_t)b->len;
    memcpy(b->ptr, &n, 4);
}

#endif
