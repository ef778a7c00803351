/*
 * wal.c: the stream's connection: START_REPLICATION, CopyData in both directions, status replies,
 * and when a batch is handed on. It never looks into a pgoutput message; that is stream.c's.
 *
 * https://www.postgresql.org/docs/current/protocol-replication.html
 *   w  start u64, end u64, server clock i64, payload       k  end u64, clock i64, reply at once u8
 *   r  written u64, flushed u64, applied u64, clock i64, reply at once u8
 */
#include "publication.h"
#include "stream.h"

#include <cdcd/cursor.h>

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

/* A position without events is a record of its own in the sink: seldom, or when much log would
 * be kept for want of it. */
#define IDLE_POSITION_MS    5000
#define IDLE_POSITION_BYTES (UINT64_C(16) << 20)
/* An acknowledgement reaches the server at most this late, so that it can recycle its log. */
#define ACK_MS 1000
/* How often a keepalive is asked for while a barrier is waited for on a quiet server. */
#define BARRIER_POLL_MS 100
/* How often the clock is looked at while messages come without end. */
#define CLOCK_EVERY 256

/* When a batch has events and no more bytes are there, it waits a little for company: for the rest
 * of its transaction, which the server has already; else for what is written right now; longer
 * when the newest change is old, since then there is a backlog and latency is gone anyway. */
#define LINGER_TX_MS     50
#define LINGER_LIVE_MS   1
#define LINGER_BEHIND_MS 20
#define BEHIND_US        2000000
/* With a backlog the socket is let fill up for a moment instead of being watched: a wake-up for
 * each message costs both sides more than the message. The nap is as long as brings NAP_FEW to
 * NAP_MANY messages; a Unix socket holds some 250, and then the server waits for us. */
#define NAP_MIN_NS 50000
#define NAP_MAX_NS 4000000
#define NAP_FEW    64
#define NAP_MANY   160

struct pg_wal {
    PGconn *conn; /* = source->repl, borrowed */
    PGconn *sql;  /* = source->sql, borrowed */
    bool in_recovery;
    char *held; /* CopyData that lies beyond the barrier; from libpq */
    int held_len;
    bool at_barrier;
    struct cdcd_error pending; /* met after events that had to be handed on first */
    pg_lsn acked;              /* what the server may forget */
    pg_lsn told;               /* the last of it that was sent */
    pg_lsn server;             /* the server's log ended here when it last spoke or was asked */
    pg_lsn demanded; /* the server waits for word of this: it shuts down, or fears we are gone */
    int64_t nap_ns;
    int64_t sent_us; /* the server's clock when it sent the newest message */
    int64_t status_every, next_status, last_status, next_ask, next_lag;
    pg_lsn emitted; /* `done` of the last position handed on */
    int64_t emitted_ms;
    bool idle; /* the last read met the end of what the server had */
};

void pg_wal_free(struct pg_wal *w)
{
    if (!w)
        return;
    PQfreemem(w->held);
    free(w);
}

/* ---- status ---- */

static void put64(char *p, uint64_t v)
{
    for (int i = 7; i >= 0; i--, v >>= 8)
        p[i] = (char)(v & 0xff);
}

/* Written = flushed: the server then sends a keepalive each time it has nothing left for us, and
 * that is what moves the position of an idle or filtered pipeline. */
static enum cdcd_rc send_status(struct pg_wal *w, int64_t now, bool ask, struct cdcd_error *err)
{
    char m[34];
    m[0] = 'r';
    put64(m + 1, w->acked);
    put64(m + 9, w->acked);
    put64(m + 17, w->acked);
    put64(m + 25, (uint64_t)(cdcd_wallclock_us() - PG_EPOCH_US));
    m[33] = ask;
    /* 0: libpq's buffer is full, so an earlier reply is still on its way */
    if (PQputCopyData(w->conn, m, sizeof m) < 0 || PQflush(w->conn) < 0)
        return pg_error(w->conn, NULL, err, "send status to PostgreSQL");
    w->told = w->acked;
    w->last_status = now;
    w->next_status = now + w->status_every;
    return CDCD_OK;
}

static enum cdcd_rc tick(struct pg_stream *st, int64_t now, struct cdcd_error *err)
{
    struct pg_wal *w = st->wal;
    bool ask = st->barrier && !w->at_barrier && now >= w->next_ask;
    if (ask)
        w->next_ask = now + BARRIER_POLL_MS;
    if (ask || now >= w->next_status || (w->acked != w->told && now >= w->last_status + ACK_MS))
        return send_status(w, now, ask, err);
    return CDCD_OK;
}

/* ---- start ---- */

static char *start_command(const struct cdcd_source *s, const struct pg_slot *slot, pg_lsn lsn)
{
    int v = s->server.version;
    int proto = v >= 160000 ? 4 : v >= 150000 ? 3 : 2;
    int streaming = s->cfg->streaming;
    if (streaming == PG_STREAMING_PARALLEL && proto < 4)
        streaming = PG_STREAMING_ON;
    char *pub = pg_sql("%I", s->cfg->publication_name); /* an identifier within the literal */
    char *sql = pg_sql("START_REPLICATION SLOT %I LOGICAL %X (proto_version '%d', "
                       "publication_names %L, messages 'true'%s%s%s)",
                       s->cfg->slot_name, lsn, proto, pub,
                       streaming == PG_STREAMING_PARALLEL ? ", streaming 'parallel'"
                       : streaming == PG_STREAMING_ON     ? ", streaming 'on'"
                                                          : "",
                       s->cfg->origin == PG_ORIGIN_NONE && v >= 160000 ? ", origin 'none'" : "",
                       slot->two_phase && proto >= 3 ? ", two_phase 'on'" : "");
    free(pub);
    return sql;
}

static enum cdcd_rc start_replication(struct cdcd_source *s, pg_lsn lsn, struct cdcd_error *err)
{
    struct pg_slot slot;
    if (s->cfg->origin == PG_ORIGIN_NONE && s->server.version < 160000)
        return cdcd_error_set(
            err, CDCD_ERR_CONFIG,
            "origin: none needs PostgreSQL 16 or later, this server is %d: remove "
            "the option",
            s->server.version / 10000);
    if (pg_slot_read(s->sql, s->server.version, s->cfg->slot_name, &slot, err) != CDCD_OK)
        return CDCD_ERROR;
    char *sql = start_command(s, &slot, lsn);
    PGresult *r = PQexec(s->repl, sql);
    enum cdcd_rc rc = CDCD_OK;
    if (PQresultStatus(r) != PGRES_COPY_BOTH)
        rc = pg_error(s->repl, r, err, "cannot stream from replication slot \"%s\" at " PG_LSN_FMT,
                      s->cfg->slot_name, PG_LSN_ARGS(lsn));
    PQclear(r);
    free(sql);
    if (rc == CDCD_OK && PQsetnonblocking(s->repl, 1) != 0)
        rc = pg_error(s->repl, NULL, err, "set the replication connection non-blocking");
    return rc;
}

static struct pg_wal *wal_new(const struct cdcd_source *s, const struct pg_position *from)
{
    struct pg_wal *w = cdcd_xcalloc(1, sizeof *w);
    w->conn = s->repl;
    w->sql = s->sql;
    w->in_recovery = s->server.in_recovery;
    w->acked = w->told = w->server = from->lsn;
    w->emitted = from->done;
    w->emitted_ms = cdcd_now_ms();
    w->nap_ns = NAP_MIN_NS;
    w->status_every = s->cfg->status_interval_ms > 0 ? s->cfg->status_interval_ms : 10000;
    int64_t third = s->server.wal_sender_timeout_ms / 3;
    if (third > 0 && third < w->status_every)
        w->status_every = third;
    return w;
}

enum cdcd_rc pg_stream_start(struct cdcd_source *s, struct cdcd_slice from, struct cdcd_error *err)
{
    struct pg_position p;
    if (!pg_position_parse(from, &p))
        return cdcd_error_set(err, CDCD_ERR_FATAL, "the stored position %.*s cannot be read",
                              (int)from.len, from.ptr);
    if (!p.sys[0])
        memcpy(p.sys, s->server.system_id, sizeof p.sys);
    struct pg_rel_env env = {s->server.db, s->sql, s->types, s->filter};
    struct pg_stream *st = NULL;
    pg_stream_free(s->stream);
    s->stream = NULL;
    if (pg_stream_new(s->cfg, s->env, &env, &p, &st, err) != CDCD_OK)
        return CDCD_ERROR;
    enum cdcd_rc rc = s->repl ? CDCD_OK : pg_connect(s->cfg, true, &s->repl, err);
    if (rc == CDCD_OK)
        rc = start_replication(s, p.lsn, err);
    /* the slot is ours now, and with it the files that carry its name */
    if (rc == CDCD_OK && s->cfg->streaming != PG_STREAMING_OFF)
        rc = pg_spools_clean(st->spools, err);
    if (rc == CDCD_OK) {
        st->wal = wal_new(s, &p);
        s->stream = st;
        rc = send_status(st->wal, cdcd_now_ms(), false, err);
    } else {
        pg_stream_free(st);
    }
    return rc;
}

enum cdcd_rc pg_stream_resume(struct cdcd_source *s, struct cdcd_slice from,
                              struct cdcd_buf *position, struct cdcd_error *err)
{
    struct pg_position p = {0};
    struct pg_slot slot;
    pg_lsn end;
    bool stored = from.ptr != NULL, created;
    if (stored && !pg_position_parse(from, &p))
        return cdcd_error_set(err, CDCD_ERR_FATAL, "the stored position %.*s cannot be read",
                              (int)from.len, from.ptr);
    if (s->env->ephemeral && !stored)
        pg_publication_sweep(s->sql);
    /* Before the slot: a publication is looked up as it was at each point of the log. */
    if (pg_publication_ensure(s->sql, s->cfg, s->filter, s->server.version, &created, err) !=
            CDCD_OK ||
        pg_slot_read(s->sql, s->server.version, s->cfg->slot_name, &slot, err) != CDCD_OK ||
        pg_slot_server_lsn(s->sql, s->server.in_recovery, &end, err) != CDCD_OK)
        return CDCD_ERROR;
    s->own_publication = s->env->ephemeral && (s->own_publication || created);
    if (stored || slot.exists) {
        if (pg_slot_verify(&slot, s->cfg->slot_name, s->server.db, &s->server, end,
                           stored ? &p : NULL, err) != CDCD_OK)
            return CDCD_ERROR;
        if (!stored)
            p.lsn = p.done = slot.confirmed_flush;
    } else {
        bool temporary = s->env->ephemeral;
        PGconn *repl = NULL;
        enum cdcd_rc rc = pg_connect(s->cfg, true, &repl, err);
        if (rc == CDCD_OK)
            rc = pg_slot_create(repl, s, s->cfg->slot_name, temporary, false, &p.lsn, NULL, err);
        if (temporary && rc == CDCD_OK)
            s->repl = repl; /* the slot lives as long as this connection: stream on it */
        else
            PQfinish(repl);
        if (rc != CDCD_OK)
            return rc;
        p.done = p.lsn;
        cdcd_info("postgres", "created replication slot \"%s\" at " PG_LSN_FMT, s->cfg->slot_name,
                  PG_LSN_ARGS(p.lsn));
    }
    if (!p.sys[0])
        memcpy(p.sys, s->server.system_id, sizeof p.sys);
    pg_position_write(&p, position);
    return CDCD_OK;
}

/* ---- reading ---- */

/* The server has ended the copy, or the connection broke. */
static enum cdcd_rc copy_ended(struct pg_wal *w, int n, struct cdcd_error *err)
{
    if (n < -1)
        return pg_error(w->conn, NULL, err, "read from PostgreSQL's replication stream");
    PGresult *r = PQgetResult(w->conn);
    enum cdcd_rc rc;
    if (PQresultStatus(r) == PGRES_FATAL_ERROR)
        rc = pg_error(w->conn, r, err, "PostgreSQL ended the replication stream");
    else
        rc = cdcd_error_set(err, CDCD_ERR_RETRY,
                            "PostgreSQL ended the replication stream: it is shutting down");
    PQclear(r);
    return rc;
}

static enum cdcd_rc short_frame(int n, struct cdcd_error *err)
{
    return cdcd_error_set(
        err, CDCD_ERR_FATAL,
        "garbled replication stream: a frame of %d bytes is of no known kind; the "
        "position has not moved",
        n);
}

/* One CopyData. END: beyond the barrier, not consumed. */
static enum cdcd_rc take_frame(struct pg_stream *st, const char *buf, int n, struct cdcd_batch *b,
                               struct cdcd_error *err)
{
    struct pg_wal *w = st->wal;
    struct cdcd_cursor c = cdcd_cur(buf, (size_t)n);
    char kind = (char)cdcd_cur_u8(&c);
    if (kind == 'w') {
        pg_lsn lsn = cdcd_cur_u64be(&c);
        cdcd_cur_u64be(&c);
        int64_t sent = (int64_t)(cdcd_cur_u64be(&c) + (uint64_t)PG_EPOCH_US);
        if (c.bad)
            return short_frame(n, err);
        if (lsn > w->server)
            w->server = lsn;
        w->sent_us = sent;
        return pg_stream_feed(st, lsn, sent,
                              (struct cdcd_slice){(const char *)c.pos, cdcd_cur_left(&c)}, b, err);
    }
    if (kind != 'k')
        return short_frame(n, err);
    pg_lsn end = cdcd_cur_u64be(&c);
    cdcd_cur_u64be(&c);
    bool reply = cdcd_cur_u8(&c);
    if (!cdcd_cur_end(&c))
        return short_frame(n, err);
    if (end > w->server)
        w->server = end;
    if (pg_stream_keepalive(st, end, err) != CDCD_OK)
        return CDCD_ERROR;
    if (reply) {
        w->demanded = end;
        if (send_status(w, cdcd_now_ms(), false, err) != CDCD_OK)
            return CDCD_ERROR;
    }
    return st->barrier && end >= st->barrier && pg_stream_between(st) ? CDCD_END : CDCD_OK;
}

/* The next frame, or one step of a replay. AGAIN: nothing is there. */
static enum cdcd_rc step(struct pg_stream *st, struct cdcd_batch *b, struct cdcd_error *err)
{
    struct pg_wal *w = st->wal;
    if (pg_stream_replaying(st))
        return pg_stream_replay(st, b, err);
    char *buf = w->held;
    int n = w->held_len;
    w->held = NULL;
    if (!buf)
        n = PQgetCopyData(w->conn, &buf, 1);
    if (n == 0) {
        if (!PQconsumeInput(w->conn))
            return pg_error(w->conn, NULL, err, "read from PostgreSQL's replication stream");
        n = PQgetCopyData(w->conn, &buf, 1);
    }
    if (n == 0)
        return CDCD_AGAIN;
    if (n < 0)
        return copy_ended(w, n, err);
    enum cdcd_rc rc = take_frame(st, buf, n, b, err);
    if (rc == CDCD_END && buf[0] == 'w') {
        w->held = buf;
        w->held_len = n;
    } else {
        PQfreemem(buf);
    }
    return rc;
}

/* Waits for bytes or until `until`. */
static enum cdcd_rc wait_socket(struct pg_wal *w, int64_t now, int64_t until,
                                struct cdcd_error *err)
{
    if (until <= now)
        return CDCD_OK;
    /* TLS may hold decrypted bytes that poll() does not see */
    int64_t ms = PQsslInUse(w->conn) && until - now > 10 ? 10 : until - now;
    struct pollfd p = {.fd = PQsocket(w->conn), .events = POLLIN};
    if (p.fd < 0)
        return pg_error(w->conn, NULL, err, "read from PostgreSQL's replication stream");
    int flush = PQflush(w->conn);
    if (flush < 0)
        return pg_error(w->conn, NULL, err, "send status to PostgreSQL");
    if (flush > 0)
        p.events |= POLLOUT;
    if (poll(&p, 1, (int)(ms > 1000 ? 1000 : ms)) < 0 && errno != EINTR)
        return cdcd_error_set(err, CDCD_ERR_RETRY, "poll: %s", strerror(errno));
    return CDCD_OK;
}

/* A shutdown of the server waits until all it has sent is confirmed, so a demand is met at once. */
static bool position_due(const struct pg_stream *st, int64_t now)
{
    const struct pg_wal *w = st->wal;
    return st->done > w->emitted &&
           (now - w->emitted_ms >= IDLE_POSITION_MS ||
            st->done - w->emitted >= IDLE_POSITION_BYTES || w->emitted < w->demanded);
}

struct reading {
    int64_t deadline, first_event_ms;
    unsigned steps, steps_at_nap; /* messages read */
};

static void nap(struct pg_wal *w, struct reading *rd)
{
    unsigned got = rd->steps - rd->steps_at_nap;
    if (got < NAP_FEW && w->nap_ns < NAP_MAX_NS)
        w->nap_ns += w->nap_ns / 2;
    else if (got > NAP_MANY && w->nap_ns > NAP_MIN_NS)
        w->nap_ns -= w->nap_ns / 3;
    rd->steps_at_nap = rd->steps;
    const struct timespec t = {0, w->nap_ns};
    nanosleep(&t, NULL);
}

/* Nothing is buffered. AGAIN: hand on what there is; OK: look again. */
static enum cdcd_rc no_data(struct pg_stream *st, struct reading *rd, const struct cdcd_batch *b,
                            struct cdcd_error *err)
{
    struct pg_wal *w = st->wal;
    int64_t now = cdcd_now_ms();
    if (tick(st, now, err) != CDCD_OK)
        return CDCD_ERROR;
    int64_t until = rd->deadline;
    if (b->nevents) {
        int64_t age_us = w->sent_us - st->last_ts_us; /* both by the server's clock */
        int64_t linger = st->tx.open          ? LINGER_TX_MS
                         : age_us > BEHIND_US ? LINGER_BEHIND_MS
                                              : LINGER_LIVE_MS;
        if (!rd->first_event_ms)
            rd->first_event_ms = now;
        until = rd->first_event_ms + linger;
        if (until <= now)
            return CDCD_AGAIN;
        if (age_us > BEHIND_US) {
            nap(w, rd);
            return CDCD_OK;
        }
    } else if (now >= until || position_due(st, now)) {
        return CDCD_AGAIN;
    } else {
        int64_t soonest = st->barrier && !w->at_barrier ? w->next_ask : w->next_status;
        if (soonest < until)
            until = soonest > now ? soonest : now + 1;
    }
    return wait_socket(w, now, until, err);
}

static enum cdcd_rc fill(struct pg_stream *st, struct cdcd_batch *b, struct reading *rd,
                         struct cdcd_error *err)
{
    st->wal->idle = false;
    while (!cdcd_batch_full(b)) {
        enum cdcd_rc rc = step(st, b, err);
        if (rc == CDCD_AGAIN) {
            rc = no_data(st, rd, b, err);
            st->wal->idle = rc == CDCD_AGAIN;
            if (rc != CDCD_OK)
                return rc;
            continue;
        }
        if (rc != CDCD_OK)
            return rc;
        if (++rd->steps % CLOCK_EVERY == 0 || pg_stream_replaying(st)) {
            int64_t now = cdcd_now_ms();
            if (tick(st, now, err) != CDCD_OK)
                return CDCD_ERROR;
            if (now >= rd->deadline && b->nevents == 0)
                return CDCD_AGAIN;
        }
    }
    return CDCD_OK;
}

static void put_position(struct pg_stream *st, struct cdcd_batch *b, int64_t now)
{
    struct pg_position p;
    struct cdcd_buf text;
    pg_stream_position(st, &p);
    cdcd_buf_init(&text, 0);
    pg_position_write(&p, &text);
    b->position.ptr = cdcd_arena_dup(&b->arena, text.ptr, text.len);
    b->position.len = text.len;
    cdcd_buf_free(&text);
    st->wal->emitted = p.done;
    st->wal->emitted_ms = now;
}

enum cdcd_rc pg_stream_read(struct cdcd_source *s, struct cdcd_batch *b, int64_t deadline_ms,
                            struct cdcd_error *err)
{
    struct pg_stream *st = s->stream;
    struct pg_wal *w = st->wal;
    if (w->pending.class != CDCD_ERR_NONE) {
        *err = w->pending;
        return CDCD_ERROR;
    }
    if (w->at_barrier)
        return CDCD_END;
    struct reading rd = {.deadline = deadline_ms};
    enum cdcd_rc rc = fill(st, b, &rd, err);
    if (rc == CDCD_ERROR) {
        if (b->nevents == 0)
            return rc;
        /* What came before the trouble is good, and is delivered. */
        w->pending = *err;
        *err = (struct cdcd_error){0};
        rc = CDCD_OK;
    }
    int64_t now = cdcd_now_ms();
    if (rc == CDCD_END) {
        w->at_barrier = true;
        if (st->done < st->barrier)
            st->done = st->barrier;
    }
    bool some = b->nevents || rc == CDCD_END || position_due(st, now);
    if (some)
        put_position(st, b, now);
    b->caught_up = rc != CDCD_OK || w->pending.class != CDCD_ERR_NONE;
    b->in_tx = st->tx.open;
    return rc == CDCD_END ? CDCD_END : some ? CDCD_OK : CDCD_AGAIN;
}

enum cdcd_rc pg_stream_stop_at(struct cdcd_source *s, struct cdcd_slice position,
                               struct cdcd_error *err)
{
    struct pg_position p = {0};
    if (position.ptr && !pg_position_parse(position, &p))
        return cdcd_error_set(err, CDCD_ERR_FATAL, "the position %.*s cannot be read",
                              (int)position.len, position.ptr);
    struct pg_stream *st = s->stream;
    st->barrier = p.done;
    st->wal->at_barrier = false;
    st->wal->next_ask = 0;
    return CDCD_OK;
}

void pg_stream_ack(struct cdcd_source *s, struct cdcd_slice position)
{
    struct pg_position p;
    if (s->stream && pg_position_parse(position, &p) && p.lsn > s->stream->wal->acked)
        s->stream->wal->acked = p.lsn;
}

enum cdcd_rc pg_stream_idle(struct cdcd_source *s, int64_t now, struct cdcd_error *err)
{
    struct pg_stream *st = s->stream;
    if (PQstatus(st->wal->conn) != CONNECTION_OK)
        return pg_error(st->wal->conn, NULL, err, "PostgreSQL's replication stream");
    return tick(st, now, err);
}

void pg_stream_lag(struct cdcd_source *s, struct cdcd_lag *out)
{
    *out = (struct cdcd_lag){-1, -1};
    if (!s->stream)
        return;
    struct pg_wal *w = s->stream->wal;
    int64_t now = cdcd_now_ms();
    pg_lsn end;
    struct cdcd_error ignored = {0}; /* the next query that matters will meet it too */
    if (now >= w->next_lag) {
        w->next_lag = now + 2000;
        if (pg_slot_server_lsn(w->sql, w->in_recovery, &end, &ignored) == CDCD_OK &&
            end > w->server)
            w->server = end;
    }
    out->bytes = w->server > w->acked ? (int64_t)(w->server - w->acked) : 0;
    int64_t age = (cdcd_wallclock_us() - s->stream->last_ts_us) / 1000;
    out->millis = w->idle ? 0 : s->stream->last_ts_us ? (age > 0 ? age : 0) : -1;
}
