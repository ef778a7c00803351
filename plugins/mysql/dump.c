/*
 * dump.c: the raw dump of the binlog: a connection that has asked for it, and packets out of its
 * bytes. Never parses an event.
 *
 * The client libraries read one packet at a time and wait for it as long as it takes. So from the
 * request on the socket is read here: with deadlines, and in large pieces. An encrypted connection
 * can be read by its library only: there a thread of ours does that and passes the packets on
 * through a pair of sockets, from which they are read in the same way. The thread owns the
 * connection from its start to its end, and nothing else is shared with it.
 *
 * A packet: u24 length, u8 sequence number, then that many bytes; one of 0xffffff bytes goes on in
 * the next. Of a dump's packet the first byte is 0 (an event follows), 0xff (an error) or 0xfe (the
 * end).
 */
#include "shim.h"

#include <errmsg.h>
#include <mysqld_error.h>

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <strings.h>
#include <sys/socket.h>
#include <unistd.h>

#define BUFFER_SIZE (1u << 20)             /* of ordinary times: a hundred events and more */
#define BUFFER_MAX  ((1ull << 30) + 65536) /* the largest event that a server writes is 1 GiB */
#define PART_MAX    0xffffffu

#define FLAG_ANNOTATE     2 /* MariaDB: BINLOG_SEND_ANNOTATE_ROWS_EVENT */
#define FLAG_HEARTBEAT_V2 2 /* MySQL 8.0.26: USE_HEARTBEAT_EVENT_V2 */

struct my_dump {
    MYSQL *m;
    struct my_shim_dump shim;
    char *what; /* for messages */
    int fd;     /* that packets are read from: the connection's, or our end of the pair */
    char *buf;
    size_t cap, start, end; /* bytes that are not read yet */
    size_t joined;          /* bytes of the packet at `start` whose parts are complete */
    size_t taken;           /* of the packet that was given out last */
    uint8_t sequence;
    int64_t last_life; /* when bytes came last, monotonic ms */
    int64_t silence_ms;
    bool pumping;
    int pump_fd;
    pthread_t pump;
};

/* ---- the thread of an encrypted connection ---- */

static bool send_all(int fd, const void *bytes, size_t n)
{
    for (const char *p = bytes; n;) {
        ssize_t k = send(fd, p, n, MSG_NOSIGNAL);
        if (k < 0 && errno == EINTR)
            continue;
        if (k < 0)
            return false;
        p += k;
        n -= (size_t)k;
    }
    return true;
}

static bool send_packet(int fd, uint8_t *sequence, struct cdcd_slice packet)
{
    size_t n;
    do {
        n = packet.len < PART_MAX ? packet.len : PART_MAX;
        uint8_t head[4] = {(uint8_t)n, (uint8_t)(n >> 8), (uint8_t)(n >> 16), (*sequence)++};
        if (!send_all(fd, head, 4) || !send_all(fd, packet.ptr, n))
            return false;
        packet.ptr += n;
        packet.len -= n;
    } while (n == PART_MAX);
    return true;
}

/* As the server would write it. */
static void send_error(int fd, uint8_t *sequence, MYSQL *m)
{
    char text[1024];
    unsigned number = mysql_errno(m) ? mysql_errno(m) : CR_SERVER_LOST;
    int n = snprintf(text, sizeof text, "%c%c%c#%.5s%s", 0xff, number & 0xff, number >> 8,
                     mysql_sqlstate(m), mysql_error(m));
    size_t len = n < (int)sizeof text ? (size_t)n : sizeof text - 1;
    send_packet(fd, sequence, (struct cdcd_slice){text, len});
}

static void *pump_main(void *arg)
{
    struct my_dump *d = arg;
    uint8_t sequence = 1;
    struct cdcd_slice packet;
    enum cdcd_rc rc;
    mysql_thread_init();
    while ((rc = my_shim_dump_packet(d->m, &d->shim, &packet)) == CDCD_OK &&
           send_packet(d->pump_fd, &sequence, packet))
        ;
    if (rc == CDCD_END)
        send_packet(d->pump_fd, &sequence, (struct cdcd_slice){"\xfe\0\0\0\0", 5});
    else if (rc == CDCD_ERROR)
        send_error(d->pump_fd, &sequence, d->m);
    shutdown(d->pump_fd, SHUT_WR);
    mysql_thread_end();
    return NULL;
}

static enum cdcd_rc pump_start(struct my_dump *d, struct cdcd_error *err)
{
    int pair[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) != 0)
        return cdcd_error_set(err, CDCD_ERR_RETRY, "%s: no pair of sockets: %s", d->what,
                              strerror(errno));
    d->fd = pair[0];
    d->pump_fd = pair[1];
    if (pthread_create(&d->pump, NULL, pump_main, d) != 0) {
        close(pair[0]);
        close(pair[1]);
        return cdcd_error_set(err, CDCD_ERR_RETRY, "%s: cannot start its thread", d->what);
    }
    d->pumping = true;
    return CDCD_OK;
}

static void pump_stop(struct my_dump *d)
{
    if (!d->pumping)
        return;
    int fd = my_shim_socket(d->m); /* no more once the library has closed it by itself */
    if (fd >= 0)
        shutdown(fd, SHUT_RDWR);
    shutdown(d->fd, SHUT_RDWR);
    pthread_join(d->pump, NULL);
    close(d->fd);
    close(d->pump_fd);
    d->pumping = false;
}

/* ---- session ---- */

/* The same for the same pipeline, so that the server ends what a crash of ours left behind. A UUID
 * of version 8 from two FNV-1a sums. */
static void replica_uuid(const struct my_config *cfg, char out[37])
{
    uint64_t h[2] = {UINT64_C(14695981039346656037), UINT64_C(0x6c62272e07bb0142)};
    char *name = cdcd_xasprintf("cdcd %s %" PRId64, cfg->pipeline ? cfg->pipeline : "",
                                cfg->server_id);
    for (int i = 0; i < 2; i++) {
        for (const char *p = name; *p; p++)
            h[i] = (h[i] ^ (uint8_t)*p) * UINT64_C(1099511628211);
    }
    free(name);
    h[0] = (h[0] & ~UINT64_C(0xf000)) | 0x8000;
    h[1] = (h[1] & ~(UINT64_C(3) << 62)) | UINT64_C(1) << 63;
    snprintf(out, 37, "%08x-%04x-%04x-%04x-%012" PRIx64, (unsigned)(h[0] >> 32),
             (unsigned)(h[0] >> 16 & 0xffff), (unsigned)(h[0] & 0xffff), (unsigned)(h[1] >> 48),
             h[1] & UINT64_C(0xffffffffffff));
}

static void host_name(const struct my_config *cfg, char out[61])
{
    snprintf(out, 61, "cdcd %s", cfg->pipeline ? cfg->pipeline : "");
}

static int column(MYSQL_RES *r, const char *name)
{
    unsigned n = mysql_num_fields(r);
    MYSQL_FIELD *f = mysql_fetch_fields(r);
    for (unsigned i = 0; i < n; i++) {
        if (strcasecmp(f[i].name, name) == 0)
            return (int)i;
    }
    return -1;
}

/* Among those that are registered now. One that does not register is not seen here; the newer one
 * of two is the one that a server keeps, and the older gets an error that says so. */
enum cdcd_rc my_dump_check_double(MYSQL *m, const struct my_config *cfg,
                                  const struct my_server *server, struct cdcd_error *err)
{
    char uuid[37], host[61];
    replica_uuid(cfg, uuid);
    host_name(cfg, host);
    MYSQL_RES *r = NULL;
    struct cdcd_error ignored = {0};
    bool replicas = server->flavor == MY_MYSQL && server->version >= 80022;
    if (server->server_id == (uint32_t)cfg->server_id)
        return cdcd_error_set(err, CDCD_ERR_CONFIG,
                              "server.id %" PRId64 " is the server's own server_id: choose another",
                              cfg->server_id);
    if (my_query(m, &r, &ignored, replicas ? "SHOW REPLICAS" : "SHOW SLAVE HOSTS") != CDCD_OK) {
        cdcd_debug("mysql", "cannot look for a second client with server.id %" PRId64 ": %s",
                   cfg->server_id, ignored.text);
        return CDCD_OK;
    }
    int id = column(r, "Server_id"), name = column(r, "Host"), port = column(r, "Port");
    int other = column(r, replicas ? "Replica_UUID" : "Slave_UUID");
    enum cdcd_rc rc = CDCD_OK;
    MYSQL_ROW row;
    while (rc == CDCD_OK && id >= 0 && name >= 0 && (row = mysql_fetch_row(r))) {
        if (!row[id] || strtoll(row[id], NULL, 10) != cfg->server_id)
            continue;
        bool ours = other >= 0 && row[other] ? strcasecmp(row[other], uuid) == 0
                                             : row[name] && strcmp(row[name], host) == 0;
        if (!ours)
            rc = cdcd_error_set(
                err, CDCD_ERR_CONFIG,
                "server.id %" PRId64 " is in use by the replica at \"%s\" port %s%s%s: "
                "choose another server.id, or stop that one",
                cfg->server_id, row[name] ? row[name] : "",
                port >= 0 && row[port] ? row[port] : "0", other >= 0 ? ", UUID " : "",
                other >= 0 && row[other] ? row[other] : "");
    }
    mysql_free_result(r);
    return rc;
}

/* CRC32: a server that logs checksums refuses who does not understand them, and one that does not
 * sends none; what a file has is in its format description. */
static enum cdcd_rc set_up_mysql(struct my_dump *d, const struct my_config *cfg, const char *uuid,
                                 struct cdcd_error *err)
{
    unsigned long long ns = (unsigned long long)cfg->heartbeat_ms * 1000000;
    return my_queryf(d->m, NULL, err,
                     "SET @source_binlog_checksum = 'CRC32', @master_binlog_checksum = 'CRC32', "
                     "@source_heartbeat_period = %llu, @master_heartbeat_period = %llu, "
                     "@replica_uuid = %L, @slave_uuid = %L",
                     ns, ns, uuid, uuid);
}

/* Capability 4: GTID events come as they are. Strict: a GTID that the log does not have is an error
 * and not a reason to begin at the next one. */
static enum cdcd_rc set_up_mariadb(struct my_dump *d, const struct my_config *cfg, const char *gtid,
                                   struct cdcd_error *err)
{
    unsigned long long ns = (unsigned long long)cfg->heartbeat_ms * 1000000;
    enum cdcd_rc rc = my_queryf(d->m, NULL, err,
                                "SET @master_binlog_checksum = 'CRC32', "
                                "@master_heartbeat_period = %llu, @mariadb_slave_capability = 4",
                                ns);
    if (rc == CDCD_OK && *gtid)
        rc = my_queryf(d->m, NULL, err,
                       "SET @slave_connect_state = %L, @slave_gtid_strict_mode = 1, "
                       "@slave_gtid_ignore_duplicates = 0",
                       gtid);
    return rc;
}

static enum cdcd_rc set_up(struct my_dump *d, const struct my_config *cfg,
                           const struct my_server *server, const char *gtid, struct cdcd_error *err)
{
    char uuid[37], host[61];
    replica_uuid(cfg, uuid);
    host_name(cfg, host);
    enum cdcd_rc rc = my_dump_check_double(d->m, cfg, server, err);
    if (rc == CDCD_OK)
        rc = server->flavor == MY_MARIADB ? set_up_mariadb(d, cfg, gtid, err)
                                          : set_up_mysql(d, cfg, uuid, err);
    if (rc != CDCD_OK)
        return rc;
    rc = my_shim_register(d->m, (uint32_t)cfg->server_id, host, err);
    if (rc != CDCD_OK && mysql_errno(d->m) == ER_ACCESS_DENIED_ERROR) /* of no one in particular */
        cdcd_error_set(err, CDCD_ERR_CONFIG,
                       "the account may not read the log: GRANT REPLICATION SLAVE ON *.* to it");
    return rc;
}

static enum cdcd_rc request(struct my_dump *d, const struct my_config *cfg,
                            const struct my_server *server, const struct my_position *from,
                            struct cdcd_error *err)
{
    struct cdcd_buf set;
    cdcd_buf_init(&set, 0);
    bool mariadb = server->flavor == MY_MARIADB, gtid = from->gtid && *from->gtid;
    d->shim.server_id = (uint32_t)cfg->server_id;
    d->shim.file = gtid ? "" : from->file;
    d->shim.pos = gtid ? 4 : (uint32_t)from->pos;
    if (mariadb)
        d->shim.flags = cfg->include_query ? FLAG_ANNOTATE : 0;
    else
        d->shim.flags = server->version >= 80026 ? FLAG_HEARTBEAT_V2 : 0;
    enum cdcd_rc rc = CDCD_OK;
    if (gtid && !mariadb) {
        struct my_gtid_set *s = my_gtid_set_new(MY_MYSQL);
        if (my_gtid_set_parse(from->gtid, strlen(from->gtid), s))
            my_gtid_set_encode(s, &set);
        else
            rc = cdcd_error_set(err, CDCD_ERR_FATAL, "the position's GTID set cannot be read: %s",
                                from->gtid);
        my_gtid_set_free(s);
        d->shim.set = cdcd_buf_slice(&set);
    }
    if (rc == CDCD_OK)
        rc = my_shim_dump_start(d->m, &d->shim, err);
    d->shim.set = (struct cdcd_slice){NULL, 0};
    cdcd_buf_free(&set);
    return rc;
}

static enum cdcd_rc check_position(const struct my_server *server, const struct my_position *from,
                                   struct cdcd_error *err)
{
    bool gtid = from->gtid && *from->gtid;
    if (from->flavor != server->flavor)
        return cdcd_error_set(err, CDCD_ERR_LOSS,
                              "the stored position is of a %s server and this one is %s: start a "
                              "new snapshot (snapshot.mode: when_needed)",
                              from->flavor == MY_MARIADB ? "MariaDB" : "MySQL", server->text);
    if (!gtid && (!from->file || !*from->file))
        return cdcd_error_set(err, CDCD_ERR_FATAL,
                              "the position has neither a GTID set nor a file");
    if (!gtid && from->pos > UINT32_MAX)
        return cdcd_error_set(err, CDCD_ERR_LOSS,
                              "position %s:%" PRIu64 " needs GTID: the protocol has 32 bits for an "
                              "offset, so a log file cannot be read from beyond 4 GiB. Turn on "
                              "gtid_mode, or set max_binlog_size and keep transactions smaller, "
                              "and start a new snapshot (snapshot.mode: when_needed)",
                              from->file, from->pos);
    return CDCD_OK;
}

static char *describe(const struct my_position *from)
{
    if (from->gtid && *from->gtid)
        return cdcd_xasprintf("binlog behind GTID %.300s%s", from->gtid,
                              strlen(from->gtid) > 300 ? "..." : "");
    return cdcd_xasprintf("binlog from %s:%" PRIu64, from->file ? from->file : "", from->pos);
}

enum cdcd_rc my_dump_open(const struct my_config *cfg, const struct my_server *server,
                          const struct my_position *from, struct my_dump **out,
                          struct cdcd_error *err)
{
    *out = NULL;
    if (check_position(server, from, err) != CDCD_OK)
        return CDCD_ERROR;
    struct my_dump *d = cdcd_xcalloc(1, sizeof *d);
    d->what = describe(from);
    d->cap = BUFFER_SIZE;
    d->buf = cdcd_xmalloc(d->cap);
    d->sequence = 1;
    d->silence_ms = 3 * cfg->heartbeat_ms + 30000;
    enum cdcd_rc rc = my_connect(cfg, &d->m, err);
    if (rc == CDCD_OK)
        rc = set_up(d, cfg, server, from->gtid ? from->gtid : "", err);
    if (rc == CDCD_OK)
        rc = request(d, cfg, server, from, err);
    if (rc == CDCD_OK) {
        d->fd = my_shim_socket(d->m);
        d->last_life = cdcd_now_ms();
        if (mysql_get_ssl_cipher(d->m))
            rc = pump_start(d, err);
    }
    if (rc != CDCD_OK) {
        cdcd_error_context(err, "%s", d->what);
        my_dump_close(d);
        return rc;
    }
    *out = d;
    return CDCD_OK;
}

void my_dump_close(struct my_dump *d)
{
    if (!d)
        return;
    pump_stop(d);
    my_shim_dump_free(&d->shim);
    if (d->m) {
        /* The server is sending: a word of goodbye would not be read, and may block. */
        int fd = my_shim_socket(d->m);
        if (fd >= 0)
            shutdown(fd, SHUT_RDWR);
        mysql_close(d->m);
    }
    free(d->buf);
    free(d->what);
    free(d);
}

/* ---- packets ---- */

/* Bytes behind the parts that are complete already, at the header of the next. */
static size_t head_at(const struct my_dump *d)
{
    return d->start + (d->joined ? 4 + d->joined : 0);
}

static size_t part_length(const struct my_dump *d, size_t head)
{
    const uint8_t *h = (const uint8_t *)d->buf + head;
    return (size_t)h[0] | (size_t)h[1] << 8 | (size_t)h[2] << 16;
}

/* OK: *packet is complete. AGAIN: *need more bytes at least. */
static enum cdcd_rc assemble(struct my_dump *d, struct cdcd_slice *packet, size_t *need,
                             struct cdcd_error *err)
{
    for (;;) {
        size_t head = head_at(d), have = d->end - head;
        size_t n = have < 4 ? 0 : part_length(d, head);
        if (have < 4 + n) {
            *need = 4 + n - have;
            return CDCD_AGAIN;
        }
        if ((uint8_t)d->buf[head + 3] != d->sequence)
            return cdcd_error_set(err, CDCD_ERR_RETRY, "%s: packets come out of order", d->what);
        d->sequence++;
        if (d->joined) { /* the header goes, so that the parts stand behind one another */
            memmove(d->buf + head, d->buf + head + 4, have - 4);
            d->end -= 4;
        }
        d->joined += n;
        if (n < PART_MAX) {
            *packet = (struct cdcd_slice){d->buf + d->start + 4, d->joined};
            d->taken = 4 + d->joined;
            d->joined = 0;
            return CDCD_OK;
        }
    }
}

/* Lets go of the packet that was given out, and of the memory of a very large one. */
static void release(struct my_dump *d)
{
    d->start += d->taken;
    d->taken = 0;
    if (d->start == d->end)
        d->start = d->end = 0;
    if (d->cap > 4 * BUFFER_SIZE && d->end - d->start < BUFFER_SIZE / 2) {
        memmove(d->buf, d->buf + d->start, d->end - d->start);
        d->end -= d->start;
        d->start = 0;
        d->cap = BUFFER_SIZE;
        d->buf = cdcd_xrealloc(d->buf, d->cap);
    }
}

static enum cdcd_rc make_room(struct my_dump *d, size_t need, struct cdcd_error *err)
{
    if (d->cap - d->end >= need)
        return CDCD_OK;
    memmove(d->buf, d->buf + d->start, d->end - d->start);
    d->end -= d->start;
    d->start = 0;
    if (d->cap - d->end >= need)
        return CDCD_OK;
    if (d->end + need > BUFFER_MAX)
        return cdcd_error_set(err, CDCD_ERR_FATAL, "%s: an event is larger than 1 GiB", d->what);
    size_t cap = d->cap * 2 > BUFFER_MAX ? BUFFER_MAX : d->cap * 2;
    d->cap = cap > d->end + need ? cap : d->end + need;
    d->buf = cdcd_xrealloc(d->buf, d->cap);
    return CDCD_OK;
}

/* Some bytes more, without waiting. A large packet is not read beyond its end: what is behind it
 * would have to be moved when its parts are joined. */
static enum cdcd_rc receive(struct my_dump *d, size_t need, struct cdcd_error *err)
{
    if (make_room(d, need, err) != CDCD_OK)
        return CDCD_ERROR;
    size_t most = d->joined || need > BUFFER_SIZE / 2 ? need : d->cap - d->end;
    ssize_t n = recv(d->fd, d->buf + d->end, most, MSG_DONTWAIT);
    if (n > 0) {
        d->end += (size_t)n;
        d->last_life = cdcd_now_ms();
        return CDCD_OK;
    }
    if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR))
        return CDCD_AGAIN;
    return cdcd_error_set(err, CDCD_ERR_RETRY, "%s: the connection to the server is lost%s%s",
                          d->what, n < 0 ? ": " : "", n < 0 ? strerror(errno) : "");
}

/* OK: there may be bytes. AGAIN: the deadline has passed. */
static enum cdcd_rc wait_for_bytes(struct my_dump *d, int64_t deadline_ms, struct cdcd_error *err)
{
    int64_t now = cdcd_now_ms(), left = deadline_ms - now;
    if (now - d->last_life > d->silence_ms)
        return cdcd_error_set(err, CDCD_ERR_RETRY,
                              "%s: nothing has come from the server for %" PRId64
                              " ms, not even a heartbeat",
                              d->what, now - d->last_life);
    if (left <= 0)
        return CDCD_AGAIN;
    if (left > d->silence_ms)
        left = d->silence_ms;
    struct pollfd p = {.fd = d->fd, .events = POLLIN};
    poll(&p, 1, left > INT_MAX ? INT_MAX : (int)left);
    return CDCD_OK;
}

static enum cdcd_rc next_packet(struct my_dump *d, int64_t deadline_ms, struct cdcd_slice *packet,
                                struct cdcd_error *err)
{
    release(d);
    for (;;) {
        size_t need = 0;
        enum cdcd_rc rc = assemble(d, packet, &need, err);
        if (rc != CDCD_AGAIN)
            return rc;
        rc = receive(d, need, err);
        if (rc == CDCD_AGAIN)
            rc = wait_for_bytes(d, deadline_ms, err);
        if (rc != CDCD_OK)
            return rc;
    }
}

/* 0xff, u16 number, '#' and five characters of SQLSTATE, text. */
static enum cdcd_rc server_error(const struct my_dump *d, struct cdcd_slice p,
                                 struct cdcd_error *err)
{
    char text[1024];
    if (p.len < 3)
        return cdcd_error_set(err, CDCD_ERR_RETRY, "%s: a garbled error of the server", d->what);
    const uint8_t *b = (const uint8_t *)p.ptr;
    unsigned number = b[1] | (unsigned)b[2] << 8;
    size_t skip = p.len >= 9 && p.ptr[3] == '#' ? 9 : 3;
    snprintf(text, sizeof text, "%.*s", (int)(p.len - skip > 1000 ? 1000 : p.len - skip),
             p.ptr + skip);
    return my_dump_error(number, text, err, d->what);
}

enum cdcd_rc my_dump_read(struct my_dump *d, int64_t deadline_ms, struct cdcd_slice *event,
                          struct cdcd_error *err)
{
    struct cdcd_slice p;
    enum cdcd_rc rc = next_packet(d, deadline_ms, &p, err);
    if (rc != CDCD_OK)
        return rc;
    uint8_t first = p.len ? (uint8_t)p.ptr[0] : 0xfe;
    if (first == 0xff)
        return server_error(d, p, err);
    if (first == 0xfe && p.len < 9)
        return cdcd_error_set(err, CDCD_ERR_RETRY, "%s: the server has ended it", d->what);
    if (first != 0 || p.len < 1 + 19) /* the header of an event */
        return cdcd_error_set(err, CDCD_ERR_RETRY, "%s: a garbled packet of %zu bytes", d->what,
                              p.len);
    *event = (struct cdcd_slice){p.ptr + 1, p.len - 1};
    return CDCD_OK;
}

bool my_dump_ready(struct my_dump *d)
{
    size_t at = d->start + d->taken, have = d->end - at;
    if (!d->joined && have >= 4 && have >= 4 + part_length(d, at))
        return true;
    struct pollfd p = {.fd = d->fd, .events = POLLIN};
    return poll(&p, 1, 0) > 0;
}
