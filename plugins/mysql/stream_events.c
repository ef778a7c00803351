/*
 * stream_events.c: one event of the log: where groups begin and how they end. See stream_int.h.
 *
 * MySQL:    GTID (or ANONYMOUS_GTID), then QUERY BEGIN ... XID, QUERY COMMIT or ROLLBACK;
 *           or QUERY XA START ... QUERY XA END, XA_PREPARE; or one statement.
 * MariaDB:  GTID, with the standalone flag: one statement; without: no BEGIN, the same ends.
 * Both:     XA COMMIT and XA ROLLBACK are single statements. A compressed transaction (MySQL) is
 *           one event in the place of all from BEGIN to the end.
 */
#include "stream_int.h"

#include <inttypes.h>
#include <stdlib.h>

/* MariaDB's Gtid_log_event: flags2 and flags_extra (log_event.h). An ALTER in two phases
 * (binlog_alter_two_phase) is logged twice with its whole text: when it begins, and when it has
 * been done or has failed. */
#define FL_GROUP_COMMIT_ID   0x02
#define FL_PREPARED_XA       0x40
#define FL_COMPLETED_XA      0x80
#define EXTRA_MULTI_ENGINE   0x01
#define EXTRA_START_ALTER    0x02
#define EXTRA_ROLLBACK_ALTER 0x08

static enum cdcd_rc misplaced(const struct my_stream *st, const struct my_event *e, const char *why,
                              struct cdcd_error *err)
{
    return cdcd_error_set(err, CDCD_ERR_FATAL,
                          "the event of type %u at %s:%" PRIu64
                          " %s; nothing of it was used and the position has not moved. Was the "
                          "position that of another server or of a log that was replaced?",
                          e->type, st->file, st->at, why);
}

/* ---- the open group ---- */

static void forget_savepoints(struct my_open *o, size_t from)
{
    while (o->nsavepoints > from)
        free(o->savepoints[--o->nsavepoints].name);
}

void my_open_reset(struct my_stream *st)
{
    struct my_open *o = &st->open;
    forget_savepoints(o, 0);
    struct my_savepoint *kept = o->savepoints;
    size_t cap = o->savepoints_cap;
    *o = (struct my_open){.savepoints = kept, .savepoints_cap = cap};
    my_group_reset(st->group);
}

/* The name of a savepoint is all after the keyword: `a``b`, in quotes on both servers. */
static char *savepoint_name(struct cdcd_slice text)
{
    const char *p = text.ptr, *end = p + text.len;
    const char *quote = memchr(p, '`', text.len);
    if (!quote) {
        while (end > p && (end[-1] == ' ' || end[-1] == ';'))
            end--;
        const char *q = end;
        while (q > p && q[-1] != ' ')
            q--;
        return cdcd_xstrndup(q, (size_t)(end - q));
    }
    char *name = cdcd_xmalloc(text.len + 1), *to = name;
    for (p = quote + 1; p < end; p++) {
        if (*p == '`' && (++p == end || *p != '`'))
            break;
        *to++ = *p;
    }
    *to = 0;
    return name;
}

static size_t find_savepoint(const struct my_open *o, const char *name)
{
    size_t i = o->nsavepoints;
    while (i-- > 0)
        if (my_name_equal(o->savepoints[i].name, name))
            return i;
    return SIZE_MAX;
}

/* One of the same name replaces the older. */
static void savepoint(struct my_stream *st, struct cdcd_slice text)
{
    struct my_open *o = &st->open;
    char *name = savepoint_name(text);
    size_t i = find_savepoint(o, name);
    if (i != SIZE_MAX) {
        free(o->savepoints[i].name);
        memmove(&o->savepoints[i], &o->savepoints[i + 1],
                (o->nsavepoints - i - 1) * sizeof *o->savepoints);
        o->nsavepoints--;
    }
    if (o->nsavepoints == o->savepoints_cap) {
        o->savepoints_cap = o->savepoints_cap ? 2 * o->savepoints_cap : 8;
        o->savepoints = cdcd_xrealloc(o->savepoints, o->savepoints_cap * sizeof *o->savepoints);
    }
    o->savepoints[o->nsavepoints++] = (struct my_savepoint){name, my_group_mark(st->group)};
}

static enum cdcd_rc rollback_to(struct my_stream *st, const struct my_event *e,
                                struct cdcd_error *err)
{
    struct my_open *o = &st->open;
    char *name = savepoint_name(e->query.text);
    size_t i = find_savepoint(o, name);
    free(name);
    if (i == SIZE_MAX)
        return misplaced(st, e, "goes back to a savepoint that was never set", err);
    forget_savepoints(o, i + 1);
    return my_group_cut(st->group, o->savepoints[i].mark, err);
}

/* ---- the beginning of a group ---- */

static bool alter_unfinished(const struct my_event *e)
{
    const uint8_t *p = (const uint8_t *)e->body.ptr, *end = p + e->body.len;
    if (e->body.len < 13)
        return false;
    uint8_t flags = p[12];
    p += 13;
    if (flags & FL_GROUP_COMMIT_ID)
        p += 8;
    if (flags & (FL_PREPARED_XA | FL_COMPLETED_XA)) {
        if (end - p < 6)
            return false;
        p += 6 + (size_t)p[4] + p[5];
    }
    return p < end && (*p & (EXTRA_START_ALTER | EXTRA_ROLLBACK_ALTER));
}

static bool beyond_barrier(const struct my_stream *st, const struct my_event *e)
{
    if (!st->barrier)
        return false;
    if (st->barrier_set && e->gtid.has_gtid)
        return !my_gtid_set_has(st->barrier_set, &e->gtid.id);
    int c = my_file_compare(st->file, st->barrier_file);
    return c > 0 || (c == 0 && st->pos >= st->barrier_pos);
}

/* Delivered before: what the resume position says, and on MySQL any GTID that was met. */
static bool delivered(struct my_stream *st, const struct my_event *e)
{
    if (st->window) {
        bool covered;
        if (st->window_set && e->gtid.has_gtid) {
            covered = my_gtid_set_has(st->window_set, &e->gtid.id);
        } else {
            int c = my_file_compare(st->file, st->from.done_file);
            covered = c < 0 || (c == 0 && st->at < st->from.done_pos);
        }
        st->window = covered;
        if (covered)
            return true;
    }
    return st->gtids && e->gtid.has_gtid && st->e.server->flavor == MY_MYSQL &&
           my_gtid_set_has(st->seen, &e->gtid.id);
}

static enum cdcd_rc on_gtid(struct my_stream *st, const struct my_event *e, struct cdcd_error *err)
{
    struct my_open *o = &st->open;
    bool mysql = st->e.server->flavor == MY_MYSQL;
    if (st->gtids && !e->gtid.has_gtid)
        return cdcd_error_set(err, CDCD_ERR_LOSS,
                              "the transaction at %s:%" PRIu64
                              " has no GTID, but the position is a GTID set, which cannot count "
                              "it: gtid_mode was turned off. Turn it on again and start a new "
                              "snapshot",
                              st->file, st->at);
    my_open_reset(st);
    o->open = true;
    o->begun = !mysql && !e->gtid.standalone;
    o->skip = delivered(st, e);
    o->unfinished = !mysql && alter_unfinished(e);
    o->has_gtid = e->gtid.has_gtid;
    o->gtid = e->gtid.id;
    o->server_id = e->server_id;
    o->start = st->at;
    o->gtid_us = (int64_t)e->timestamp * 1000000;
    uint64_t us = e->gtid.original_commit_us ? e->gtid.original_commit_us : e->gtid.commit_us;
    o->ts_us = (int64_t)us;
    return CDCD_OK;
}

/* ---- the end of a group ---- */

static enum cdcd_rc unknown_xa(const struct my_stream *st, struct cdcd_slice xid,
                               struct cdcd_error *err)
{
    return cdcd_error_set(err, CDCD_ERR_LOSS,
                          "XA transaction %.*s is committed at %s:%" PRIu64
                          ", but it was prepared before this pipeline's start in the log, so its "
                          "changes are unknown. Start a new snapshot",
                          (int)xid.len, xid.ptr, st->file, st->open.start);
}

static enum cdcd_rc end_xa_commit(struct my_stream *st, struct cdcd_slice xid,
                                  struct cdcd_error *err)
{
    struct my_held *h = my_xa_find(st, xid);
    if (!h)
        return unknown_xa(st, xid, err);
    return my_replay_start(st, h->events, h, err);
}

static enum cdcd_rc end_group(struct my_stream *st, enum my_end how, struct cdcd_slice xid,
                              struct cdcd_error *err)
{
    struct my_open *o = &st->open;
    if (how == MY_END_PREPARE) {
        if (my_xa_hold(st, xid.ptr, err) != CDCD_OK)
            return CDCD_ERROR;
        my_stream_finish_group(st, true);
        return CDCD_OK;
    }
    struct my_held *h = how == MY_END_XA_ROLLBACK || o->skip ? my_xa_find(st, xid) : NULL;
    if (h && (how == MY_END_XA_ROLLBACK || how == MY_END_XA_COMMIT)) {
        if (h->has_gtid && st->gtids)
            my_gtid_set_add(st->safe, &h->gtid);
        my_xa_drop(st, h);
    }
    if (o->skip) {
        my_stream_finish_group(st, false);
        return CDCD_OK;
    }
    if (how == MY_END_XA_COMMIT)
        return end_xa_commit(st, xid, err);
    if (how == MY_END_COMMIT && my_group_mark(st->group) > 0)
        return my_replay_start(st, st->group, NULL, err);
    return my_replay_nothing(st, err);
}

static const struct cdcd_slice no_xid = {"", 0};

/* ---- statements ---- */

static bool is(struct cdcd_slice text, const char *word)
{
    return cdcd_slice_eq(text, cdcd_slice_str(word));
}

/* What a statement of the log is, for our purpose. */
static void tell(struct my_stream *st, const struct my_event *e, struct my_statement_info *out)
{
    *out = (struct my_statement_info){.kind = MY_ST_OTHER};
    if (is(e->query.text, "BEGIN"))
        out->kind = MY_ST_BEGIN;
    else if (is(e->query.text, "COMMIT"))
        out->kind = MY_ST_COMMIT;
    else if (is(e->query.text, "ROLLBACK"))
        out->kind = MY_ST_ROLLBACK;
    else {
        cdcd_arena_reset(&st->scratch, 64 << 10);
        my_statement_of(e, st->e.server->flavor, st->e.server->version, &st->scratch, out);
    }
}

static enum cdcd_rc on_query(struct my_stream *st, const struct my_event *e, uint64_t place,
                             struct cdcd_error *err)
{
    struct my_open *o = &st->open;
    struct my_statement_info info;
    tell(st, e, &info);
    switch (info.kind) {
    case MY_ST_BEGIN:
        o->begun = true;
        o->thread = e->query.thread;
        o->has_thread = st->e.server->flavor == MY_MYSQL;
        return CDCD_OK;
    case MY_ST_XA_START: o->begun = true; return CDCD_OK;
    case MY_ST_XA_END: return CDCD_OK;
    case MY_ST_SAVEPOINT: savepoint(st, e->query.text); return CDCD_OK;
    case MY_ST_ROLLBACK_TO: return rollback_to(st, e, err);
    case MY_ST_COMMIT: return end_group(st, MY_END_COMMIT, no_xid, err);
    case MY_ST_ROLLBACK: return end_group(st, MY_END_ROLLBACK, no_xid, err);
    case MY_ST_XA_COMMIT: return end_group(st, MY_END_XA_COMMIT, info.xid, err);
    case MY_ST_XA_ROLLBACK: return end_group(st, MY_END_XA_ROLLBACK, info.xid, err);
    case MY_ST_DDL:
    case MY_ST_TRUNCATE:
    case MY_ST_DML:
        if (!info.temporary && !o->unfinished &&
            my_group_add(st->group, e->raw, place, err) != CDCD_OK)
            return CDCD_ERROR;
        break;
    case MY_ST_OTHER: break;
    }
    return o->begun ? CDCD_OK : end_group(st, MY_END_COMMIT, no_xid, err);
}

/* ---- what stands within a group ---- */

/* Rows of tables that are not captured are not kept: a table's map tells. */
static enum cdcd_rc on_map(struct my_stream *st, const struct my_event *e, uint64_t place,
                           struct cdcd_error *err)
{
    const struct my_entry *t = my_entries_put(st, e->map);
    return t->captured ? my_group_add(st->group, e->raw, place, err) : CDCD_OK;
}

static enum cdcd_rc on_rows(struct my_stream *st, const struct my_event *e, uint64_t place,
                            struct cdcd_error *err)
{
    const struct my_entry *t = my_entries_get(&st->entries, e->rows.table_id);
    if (!t && e->rows.ncolumns) /* an event of no table ends a statement: MySQL's dummy table id */
        return misplaced(st, e, "is of a table that was never described", err);
    return t && t->captured ? my_group_add(st->group, e->raw, place, err) : CDCD_OK;
}

static enum cdcd_rc on_payload(struct my_stream *st, const struct my_event *e,
                               struct cdcd_error *err);

static enum cdcd_rc within(struct my_stream *st, const struct my_event *e, uint64_t place,
                           struct cdcd_error *err)
{
    struct my_open *o = &st->open;
    if (!o->open)
        return misplaced(st, e, "stands outside of any transaction", err);
    switch (e->kind) {
    case MY_EV_QUERY: return on_query(st, e, place, err);
    case MY_EV_XID: return end_group(st, MY_END_COMMIT, no_xid, err);
    case MY_EV_XA_PREPARE:
        return end_group(st, e->xa.one_phase ? MY_END_COMMIT : MY_END_PREPARE,
                         cdcd_slice_str(e->xa.xid), err);
    case MY_EV_TABLE_MAP: return on_map(st, e, place, err);
    case MY_EV_ROWS: return on_rows(st, e, place, err);
    case MY_EV_ROWS_QUERY:
        return st->e.cfg->include_query ? my_group_add(st->group, e->raw, place, err) : CDCD_OK;
    case MY_EV_PAYLOAD: return on_payload(st, e, err);
    default: return CDCD_OK; /* STATEMENT_DATA: the statement itself follows */
    }
}

/* All events of a compressed transaction have the place of the event that they came in. */
static enum cdcd_rc on_payload(struct my_stream *st, const struct my_event *e,
                               struct cdcd_error *err)
{
    struct my_payload *p = NULL;
    struct cdcd_slice raw;
    struct my_event inner;
    uint64_t place = st->at;
    enum cdcd_rc rc = my_payload_open(e, (size_t)1 << 32, &p, err);
    while (rc == CDCD_OK && (rc = my_payload_next(p, &raw, err)) == CDCD_OK) {
        if (st->replay)
            rc = misplaced(st, e, "goes on after the end of its transaction", err);
        else
            rc = my_decode(st->decoder, raw, true, &inner, err);
        if (rc == CDCD_OK && inner.kind == MY_EV_PAYLOAD)
            rc = misplaced(st, e, "has a compressed transaction within one", err);
        if (rc == CDCD_OK)
            rc = within(st, &inner, place, err);
    }
    my_payload_close(p);
    return rc == CDCD_END ? CDCD_OK : rc;
}

/* ---- the log ---- */

/* A file that ends, or a server that begins one, within a group: the server died while it wrote it,
 * and its own recovery has rolled it back. */
static void cut_off(struct my_stream *st)
{
    if (!st->open.open)
        return;
    cdcd_warn("mysql",
              "the transaction at %s:%" PRIu64
              " has no end in its file: the server stopped while it "
              "wrote it. It counts as rolled back",
              st->file, st->open.start);
    my_open_reset(st);
}

static enum cdcd_rc outside(struct my_stream *st, const struct my_event *e, struct cdcd_error *err)
{
    switch (e->kind) {
    case MY_EV_INCIDENT:
        return cdcd_error_set(err, CDCD_ERR_LOSS,
                              "the server's log has a gap at %s:%" PRIu64
                              ": it logged the incident \"%.*s\", so changes are missing. Start a "
                              "new snapshot",
                              st->file, st->at, (int)e->text.len, e->text.ptr);
    case MY_EV_FORMAT:
    case MY_EV_ROTATE:
    case MY_EV_STOP:
        /* those that are made up for this connection say nothing about the file */
        if (e->end_pos && !(e->flags & 0x20))
            cut_off(st);
        if (e->kind == MY_EV_FORMAT)
            my_entries_clear(&st->entries); /* a restarted server counts its table ids anew */
        break;
    default: break;
    }
    if (!st->open.open)
        my_stream_settle(st);
    return CDCD_OK;
}

enum cdcd_rc my_stream_feed(struct my_stream *st, struct cdcd_slice event, struct cdcd_error *err)
{
    struct my_event e;
    if (my_decode(st->decoder, event, false, &e, err) != CDCD_OK)
        return cdcd_error_context(err, "at %s:%" PRIu64, st->file, st->pos);
    uint64_t at = st->at, pos = st->pos;
    if (e.kind == MY_EV_GTID && beyond_barrier(st, &e))
        return CDCD_END;
    my_stream_place(st, &e);
    enum cdcd_rc rc;
    switch (e.kind) {
    case MY_EV_GTID:
        rc = st->open.open ? misplaced(st, &e, "begins a transaction within another", err)
                           : on_gtid(st, &e, err);
        break;
    case MY_EV_IGNORE:
    case MY_EV_FORMAT:
    case MY_EV_ROTATE:
    case MY_EV_HEARTBEAT:
    case MY_EV_STOP:
    case MY_EV_INCIDENT: rc = outside(st, &e, err); break;
    default: rc = within(st, &e, st->at, err); break;
    }
    if (rc == CDCD_ERROR) {
        st->at = at;
        st->pos = pos;
    }
    return rc;
}
