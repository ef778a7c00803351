/*
 * stream_read.c: the source ops of the stream: where it may go on, the dump, when a batch is handed
 * on. It never looks into an event; that is stream_events.c's.
 */
#include "stream_int.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

/* A position without events is a record of its own in the sink: seldom, or when much log would be
 * kept for want of it. */
#define IDLE_POSITION_MS    5000
#define IDLE_POSITION_BYTES (UINT64_C(16) << 20)
/* How often the clock is looked at while events come without end. */
#define CLOCK_EVERY 256
/* When a batch has events and no more bytes are there, it waits a little for company: for the rest
 * of a transaction that is half here; else for what is written right now; longer when the newest
 * change is old, since then there is a backlog and latency is gone anyway. */
#define LINGER_TX_MS     50
#define LINGER_LIVE_MS   1
#define LINGER_BEHIND_MS 20
#define BEHIND_US        2000000
#define LAG_EVERY_MS     2000
/* Tries to read information_schema while no statement changes it. */
#define FRESH_TRIES 20

struct my_reading {
    struct my_dump *dump;
    struct cdcd_slice held; /* an event beyond the barrier, of the dump; ptr NULL: none */
    bool at_barrier, idle;
    struct cdcd_error pending; /* met after events that had to be handed on first */
    uint64_t bytes;            /* of events read */
    /* the last position handed on */
    uint64_t emitted_bytes, emitted_pos, emitted_seq;
    char *emitted_file;
    int64_t emitted_ms;
    char *acked_file;
    uint64_t acked_pos;
    int64_t next_lag, lag_bytes;
};

void my_reading_free(struct my_reading *r)
{
    if (!r)
        return;
    my_dump_close(r->dump);
    free(r->emitted_file);
    free(r->acked_file);
    free(r);
}

/* ---- may it go on? ---- */

static enum cdcd_rc unreadable(struct cdcd_slice from, struct cdcd_error *err)
{
    return cdcd_error_set(err, CDCD_ERR_FATAL, "the stored position %.*s cannot be read",
                          (int)from.len, from.ptr);
}

static enum cdcd_rc verify_mysql_gtid(MYSQL *m, const struct my_position *p, struct cdcd_error *err)
{
    MYSQL_RES *r = NULL;
    if (my_queryf(m, &r, err,
                  "SELECT GTID_SUBTRACT(%L, @@global.gtid_executed), "
                  "GTID_SUBTRACT(@@global.gtid_purged, %L)",
                  p->gtid, p->gtid) != CDCD_OK)
        return CDCD_ERROR;
    MYSQL_ROW row = mysql_fetch_row(r);
    const char *ahead = row && row[0] ? row[0] : "", *purged = row && row[1] ? row[1] : "";
    enum cdcd_rc rc = CDCD_OK;
    if (*ahead)
        rc = cdcd_error_set(
            err, CDCD_ERR_LOSS,
            "the position is ahead of this server, which lacks the delivered "
            "transactions %.600s: it is a replica that did not have them when it "
            "took over, or was restored from a backup. Connect to a server that has "
            "them, or start a new snapshot",
            ahead);
    else if (*purged)
        rc = cdcd_error_set(
            err, CDCD_ERR_LOSS,
            "the server has purged transactions from its log that are not delivered "
            "yet: %.600s. Start a new snapshot, and keep the log longer "
            "(binlog_expire_logs_seconds)",
            purged);
    mysql_free_result(r);
    return rc;
}

static enum cdcd_rc verify_mariadb_gtid(MYSQL *m, const struct my_server *server,
                                        const struct my_position *p, struct cdcd_error *err)
{
    struct my_log_end end;
    const char *last = p->done && p->done[0] ? p->done : p->gtid;
    if (my_log_end(m, server, &end, err) != CDCD_OK)
        return CDCD_ERROR;
    struct my_gtid_set *has = my_gtid_set_new(MY_MARIADB), *want = my_gtid_set_new(MY_MARIADB);
    my_gtid_set_parse(end.gtid, strlen(end.gtid), has);
    my_gtid_set_parse(last, strlen(last), want);
    enum cdcd_rc rc = CDCD_OK;
    if (!my_gtid_set_contains(has, want))
        rc = cdcd_error_set(err, CDCD_ERR_LOSS,
                            "the position is ahead of this server: delivered is %.300s and its log "
                            "ends at %.300s. It is a replica that did not have these transactions "
                            "when it took over, or its log was reset. Connect to a server that has "
                            "them, or start a new snapshot",
                            last, end.gtid);
    my_gtid_set_free(has);
    my_gtid_set_free(want);
    my_log_end_free(&end);
    return rc;
}

static enum cdcd_rc verify_file(MYSQL *m, const struct my_position *p, struct cdcd_error *err)
{
    MYSQL_RES *r = NULL;
    MYSQL_ROW row;
    bool found = false;
    uint64_t size = 0;
    if (my_query(m, &r, err, "SHOW BINARY LOGS") != CDCD_OK)
        return CDCD_ERROR;
    while (!found && (row = mysql_fetch_row(r))) {
        found = row[0] && strcmp(row[0], p->file) == 0;
        size = row[1] ? strtoull(row[1], NULL, 10) : 0;
    }
    mysql_free_result(r);
    if (!found)
        return cdcd_error_set(err, CDCD_ERR_LOSS,
                              "the server has purged log file %s, of which changes from offset "
                              "%" PRIu64
                              " on are not delivered yet. Start a new snapshot, and keep "
                              "the log longer (binlog_expire_logs_seconds)",
                              p->file, p->pos);
    if (size < p->pos)
        return cdcd_error_set(err, CDCD_ERR_LOSS,
                              "log file %s of the server ends at %" PRIu64 ", before the position "
                              "%" PRIu64 ": its log was reset. Start a new snapshot",
                              p->file, size, p->pos);
    return CDCD_OK;
}

static void name_server(const struct my_server *server, char out[48])
{
    if (server->flavor == MY_MYSQL)
        snprintf(out, 48, "%s", server->uuid);
    else
        snprintf(out, 48, "%" PRIu32, server->server_id);
}

static enum cdcd_rc verify(struct cdcd_source *s, MYSQL *m, const struct my_position *p,
                           struct cdcd_error *err)
{
    char name[48];
    if (p->flavor != s->server.flavor)
        return cdcd_error_set(err, CDCD_ERR_LOSS,
                              "the stored position is of a %s server and this one is %s: connect "
                              "to the right server, or start a new snapshot",
                              p->flavor == MY_MARIADB ? "MariaDB" : "MySQL", s->server.text);
    if (p->gtid[0] && p->flavor == MY_MYSQL && !s->server.gtid)
        return cdcd_error_set(err, CDCD_ERR_LOSS,
                              "the position is a GTID set and gtid_mode of the server is not ON. "
                              "Turn it on, or start a new snapshot");
    if (p->gtid[0])
        return p->flavor == MY_MYSQL ? verify_mysql_gtid(m, p, err)
                                     : verify_mariadb_gtid(m, &s->server, p, err);
    name_server(&s->server, name);
    if (p->server[0] && strcmp(p->server, name) != 0)
        return cdcd_error_set(err, CDCD_ERR_LOSS,
                              "the position is a file and an offset of server %s and this is "
                              "server %s, whose files are others: without GTIDs a pipeline cannot "
                              "move to another server. Connect to the old one, or start a new "
                              "snapshot",
                              p->server, name);
    return verify_file(m, p, err);
}

/* ---- a first start ---- */

static enum cdcd_rc catalog_text(struct cdcd_source *s, MYSQL *m, struct cdcd_buf *out,
                                 struct cdcd_error *err)
{
    struct my_table_list list = {0};
    cdcd_buf_clear(out);
    if (my_catalog_read(m, &s->server, s->filter, NULL, NULL, &list, err) != CDCD_OK)
        return CDCD_ERROR;
    for (size_t i = 0; i < list.n; i++)
        my_table_write(list.items[i], out);
    my_table_list_free(&list);
    return CDCD_OK;
}

/* Shapes as of the end of the log, without a lock: the catalogue is the same before and after both
 * were read, so no statement that matters came in between. */
static enum cdcd_rc read_fresh(struct cdcd_source *s, MYSQL *m, struct my_log_end *end,
                               struct cdcd_error *err)
{
    struct cdcd_buf before, after;
    cdcd_buf_init(&before, 0);
    cdcd_buf_init(&after, 0);
    enum cdcd_rc rc = catalog_text(s, m, &before, err);
    for (int i = 0; rc == CDCD_OK; i++) {
        rc = my_log_end(m, &s->server, end, err);
        if (rc != CDCD_OK)
            break;
        rc = my_shapes_read(s->shapes, m, err);
        if (rc == CDCD_OK)
            rc = catalog_text(s, m, &after, err);
        if (rc == CDCD_OK && cdcd_slice_eq(cdcd_buf_slice(&before), cdcd_buf_slice(&after)))
            break;
        my_log_end_free(end);
        if (rc == CDCD_OK && i + 1 == FRESH_TRIES)
            rc = cdcd_error_set(err, CDCD_ERR_RETRY,
                                "tables are altered all the time: their shapes could not be read "
                                "as of one place in the log");
        struct cdcd_buf swap = before;
        before = after;
        after = swap;
    }
    cdcd_buf_free(&before);
    cdcd_buf_free(&after);
    return rc;
}

static enum cdcd_rc fresh(struct cdcd_source *s, MYSQL *m, struct my_position *out,
                          struct cdcd_error *err)
{
    struct my_log_end end;
    char name[48];
    if (read_fresh(s, m, &end, err) != CDCD_OK)
        return CDCD_ERROR;
    name_server(&s->server, name);
    *out = (struct my_position){
        .flavor = s->server.flavor,
        .server = cdcd_xstrdup(name),
        .gtid = cdcd_xstrdup(s->server.gtid ? end.gtid : ""),
        .file = cdcd_xstrdup(end.file),
        .pos = end.pos,
        .seq = (uint64_t)cdcd_wallclock_us(),
        .tx = cdcd_xstrdup(""),
    };
    my_log_end_free(&end);
    return CDCD_OK;
}

enum cdcd_rc my_stream_resume(struct cdcd_source *s, struct cdcd_slice from,
                              struct cdcd_buf *position, struct cdcd_error *err)
{
    struct my_position p = {0};
    MYSQL *m;
    bool stored = from.ptr != NULL;
    if (stored && !my_position_parse(from, &p))
        return unreadable(from, err);
    enum cdcd_rc rc = my_source_sql(s, &m, err);
    if (rc == CDCD_OK)
        rc = stored ? verify(s, m, &p, err) : fresh(s, m, &p, err);
    if (rc == CDCD_OK)
        my_position_write(&p, position);
    my_position_free(&p);
    return rc;
}

/* ---- start ---- */

/* A position of a time without GTIDs, at the very end of the log: the server's set is what is
 * delivered. *empty: and nothing is in it, which a position cannot say. */
static enum cdcd_rc adopt_gtids(struct cdcd_source *s, struct my_position *p, bool *empty,
                                struct cdcd_error *err)
{
    MYSQL *m;
    struct my_log_end end;
    *empty = false;
    if (s->server.flavor != MY_MYSQL || !s->server.gtid || p->gtid[0] || p->done || p->ord)
        return CDCD_OK;
    if (my_source_sql(s, &m, err) != CDCD_OK || my_log_end(m, &s->server, &end, err) != CDCD_OK)
        return CDCD_ERROR;
    if (strcmp(end.file, p->file) == 0 && end.pos == p->pos) {
        free(p->gtid);
        p->gtid = cdcd_xstrdup(end.gtid);
        *empty = end.gtid[0] == 0;
    }
    my_log_end_free(&end);
    return CDCD_OK;
}

enum cdcd_rc my_stream_start(struct cdcd_source *s, struct cdcd_slice from, struct cdcd_error *err)
{
    struct my_position p;
    struct my_stream *st = NULL;
    bool empty;
    if (!my_position_parse(from, &p))
        return unreadable(from, err);
    my_stream_free(s->stream);
    s->stream = NULL;
    struct my_stream_env env = {s->cfg, s->env, &s->server, s->filter, s->shapes, s};
    enum cdcd_rc rc = adopt_gtids(s, &p, &empty, err);
    if (rc == CDCD_OK)
        rc = my_stream_new(&env, &p, &st, err);
    if (rc == CDCD_OK) {
        st->gtids |= empty;
        st->r = cdcd_xcalloc(1, sizeof *st->r);
        st->r->emitted_file = cdcd_xstrdup(p.file);
        st->r->emitted_pos = p.pos;
        st->r->emitted_seq = p.seq;
        st->r->emitted_ms = cdcd_now_ms();
        st->r->acked_file = cdcd_xstrdup(p.file);
        st->r->acked_pos = p.pos;
        st->r->lag_bytes = -1;
        rc = my_dump_open(s->cfg, &s->server, &p, &st->r->dump, err);
    }
    if (rc == CDCD_OK)
        s->stream = st;
    else
        my_stream_free(st);
    my_position_free(&p);
    return rc;
}

/* ---- reading ---- */

struct reading {
    int64_t deadline, first_event_ms;
    unsigned steps;
};

static bool moved(const struct my_stream *st)
{
    const struct my_reading *r = st->r;
    return r->emitted_seq != st->seq || r->emitted_pos != st->done_pos ||
           strcmp(r->emitted_file, st->done_file) != 0;
}

static bool position_due(const struct my_stream *st, int64_t now)
{
    const struct my_reading *r = st->r;
    return st->notes_due || (moved(st) && (now - r->emitted_ms >= IDLE_POSITION_MS ||
                                           r->bytes - r->emitted_bytes >= IDLE_POSITION_BYTES));
}

/* How long the next event may be waited for. */
static int64_t wait_until(struct my_stream *st, struct reading *rd, const struct cdcd_batch *b)
{
    if (!b->nevents)
        return rd->deadline;
    int64_t now = cdcd_now_ms();
    int64_t linger = st->open.open                                      ? LINGER_TX_MS
                     : cdcd_wallclock_us() - st->last_ts_us > BEHIND_US ? LINGER_BEHIND_MS
                                                                        : LINGER_LIVE_MS;
    if (!rd->first_event_ms)
        rd->first_event_ms = now;
    return rd->first_event_ms + linger;
}

/* The next event, or one step of a replay. AGAIN: nothing came. END: the barrier. */
static enum cdcd_rc step(struct my_stream *st, struct reading *rd, struct cdcd_batch *b,
                         struct cdcd_error *err)
{
    struct my_reading *r = st->r;
    if (my_stream_replaying(st))
        return my_stream_replay(st, b, err);
    if (my_stream_reached(st))
        return CDCD_END;
    struct cdcd_slice event = r->held;
    r->held.ptr = NULL;
    if (!event.ptr) {
        bool ready = my_dump_ready(r->dump);
        enum cdcd_rc rc = my_dump_read(r->dump, ready ? 0 : wait_until(st, rd, b), &event, err);
        if (rc != CDCD_OK)
            return rc;
        r->bytes += event.len;
    }
    enum cdcd_rc rc = my_stream_feed(st, event, err);
    if (rc == CDCD_END)
        r->held = event;
    return rc;
}

static enum cdcd_rc fill(struct my_stream *st, struct reading *rd, struct cdcd_batch *b,
                         struct cdcd_error *err)
{
    st->r->idle = false;
    while (!cdcd_batch_full(b)) {
        enum cdcd_rc rc = step(st, rd, b, err);
        st->r->idle = rc == CDCD_AGAIN;
        if (rc != CDCD_OK)
            return rc;
        if (++rd->steps % CLOCK_EVERY == 0 || my_stream_replaying(st)) {
            int64_t now = cdcd_now_ms();
            if (b->nevents == 0 && (now >= rd->deadline || position_due(st, now)))
                return CDCD_AGAIN;
        }
    }
    return CDCD_OK;
}

/* The shapes are as of the position, so what changed of them goes with it. */
static void put_position(struct my_stream *st, struct cdcd_batch *b, int64_t now)
{
    struct my_reading *r = st->r;
    struct my_position p;
    struct cdcd_buf text;
    my_stream_position(st, &p);
    cdcd_buf_init(&text, 0);
    my_position_write(&p, &text);
    my_position_free(&p);
    b->position.ptr = cdcd_arena_dup(&b->arena, text.ptr, text.len);
    b->position.len = text.len;
    cdcd_buf_free(&text);
    if (st->notes_due)
        my_shapes_notes(st->e.shapes, b);
    st->notes_due = false;
    if (strcmp(r->emitted_file, st->done_file) != 0) {
        free(r->emitted_file);
        r->emitted_file = cdcd_xstrdup(st->done_file);
    }
    r->emitted_pos = st->done_pos;
    r->emitted_seq = st->seq;
    r->emitted_bytes = r->bytes;
    r->emitted_ms = now;
}

enum cdcd_rc my_stream_read(struct cdcd_source *s, struct cdcd_batch *b, int64_t deadline_ms,
                            struct cdcd_error *err)
{
    struct my_stream *st = s->stream;
    struct my_reading *r = st->r;
    if (r->pending.class != CDCD_ERR_NONE) {
        *err = r->pending;
        return CDCD_ERROR;
    }
    if (r->at_barrier)
        return CDCD_END;
    struct reading rd = {.deadline = deadline_ms};
    my_stream_begin(st);
    enum cdcd_rc rc = fill(st, &rd, b, err);
    if (rc == CDCD_ERROR) {
        if (b->nevents == 0)
            return rc;
        /* What came before the trouble is good, and is delivered. */
        r->pending = *err;
        *err = (struct cdcd_error){0};
        rc = CDCD_OK;
    }
    int64_t now = cdcd_now_ms();
    r->at_barrier = rc == CDCD_END;
    /* The rows of the view that stands here get a place of their own: behind the last group, before
     * the next, and no other than those of an earlier view at the same place. */
    st->seq += r->at_barrier;
    bool some = b->nevents || rc == CDCD_END || position_due(st, now);
    if (some)
        put_position(st, b, now);
    b->caught_up = rc != CDCD_OK || r->pending.class != CDCD_ERR_NONE;
    b->in_tx = st->replay != NULL;
    return rc == CDCD_END ? CDCD_END : some ? CDCD_OK : CDCD_AGAIN;
}

enum cdcd_rc my_stream_stop_at(struct cdcd_source *s, struct cdcd_slice position,
                               struct cdcd_error *err)
{
    struct my_position p;
    if (position.ptr && !my_position_parse(position, &p))
        return unreadable(position, err);
    my_stream_set_barrier(s->stream, position.ptr ? &p : NULL);
    s->stream->r->at_barrier = false;
    if (position.ptr)
        my_position_free(&p);
    return CDCD_OK;
}

void my_stream_ack(struct cdcd_source *s, struct cdcd_slice position)
{
    struct my_position p;
    if (!s->stream || !my_position_parse(position, &p))
        return;
    struct my_reading *r = s->stream->r;
    free(r->acked_file);
    r->acked_file = cdcd_xstrdup(p.done ? p.done_file : p.file);
    r->acked_pos = p.done ? p.done_pos : p.pos;
    my_position_free(&p);
}

/* The server waits with its end of the dump for as long as its session says (conn.c sets that to
 * the most there is), and an ordinary connection that was closed meanwhile is opened again when it
 * is used. */
enum cdcd_rc my_stream_idle(struct cdcd_source *s, int64_t now, struct cdcd_error *err)
{
    (void)s;
    (void)now;
    (void)err;
    return CDCD_OK;
}

/* ---- lag ---- */

/* Bytes of the log from a place on; -1: its file is not there. */
static int64_t bytes_after(MYSQL *m, const char *file, uint64_t pos)
{
    MYSQL_RES *r = NULL;
    MYSQL_ROW row;
    struct cdcd_error ignored = {0}; /* the next query that matters will meet it too */
    int64_t sum = -1;
    if (my_query(m, &r, &ignored, "SHOW BINARY LOGS") != CDCD_OK)
        return -1;
    while ((row = mysql_fetch_row(r))) {
        int64_t size = row[1] ? strtoll(row[1], NULL, 10) : 0;
        if (sum >= 0)
            sum += size;
        else if (row[0] && strcmp(row[0], file) == 0)
            sum = size > (int64_t)pos ? size - (int64_t)pos : 0;
    }
    mysql_free_result(r);
    return sum;
}

void my_stream_lag(struct cdcd_source *s, struct cdcd_lag *out)
{
    *out = (struct cdcd_lag){-1, -1};
    if (!s->stream)
        return;
    struct my_stream *st = s->stream;
    struct my_reading *r = st->r;
    int64_t now = cdcd_now_ms();
    if (now >= r->next_lag) {
        MYSQL *m;
        struct cdcd_error ignored = {0};
        r->next_lag = now + LAG_EVERY_MS;
        r->lag_bytes = my_source_sql(s, &m, &ignored) == CDCD_OK
                           ? bytes_after(m, r->acked_file, r->acked_pos)
                           : -1;
    }
    out->bytes = r->lag_bytes;
    int64_t age = (cdcd_wallclock_us() - st->last_ts_us) / 1000;
    out->millis = r->idle ? 0 : st->last_ts_us ? (age > 0 ? age : 0) : -1;
}
