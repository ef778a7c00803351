/*
 * stream_int.h: what the server sends, in order, turned into what the pipeline gets, in order. No
 * socket: stream_read.c feeds it, tests do too. Capture thread only.
 *
 *   stream.c         construction, the places in the log, positions, the barrier
 *   stream_events.c  one event of the log: where groups begin and how they end
 *   stream_replay.c  a group whose end is known, into batches
 *   stream_tables.c  table maps by id
 *   change.c         one row -> its event
 *   xa.c             prepared transactions
 *   stream_read.c    the dump, resuming, batches
 *
 * A group leaves whole and only after its end: COMMIT or XID; a standalone statement; XA PREPARE
 * keeps it until XA COMMIT. What ends in ROLLBACK is forgotten: in row format both servers log the
 * rows of engines without transactions in groups of their own, so nothing in such a group lasts.
 * For the same reason rows between SAVEPOINT and ROLLBACK TO are forgotten (MariaDB leaves them in
 * the log, MySQL cuts them out).
 *
 * The rows of an XA transaction come with its XA COMMIT and carry that group's GTID, file, offset
 * and time, since only then did they happen; source.row counts them through the transaction.
 *
 * `ord` counts what of a group is delivered: rows of captured tables, TRUNCATEs of them, and schema
 * changes, wanted or not. It does not depend on how rows are packed into events, so it holds also
 * on a replica. `seq` counts groups, also empty ones, but not those that end in XA PREPARE, which
 * a server sends again.
 */
#ifndef CDCD_PLUGIN_MYSQL_STREAM_INT_H
#define CDCD_PLUGIN_MYSQL_STREAM_INT_H

#include "stream.h"

/* What a stream needs; borrowed for its life. */
struct my_stream_env {
    const struct my_config *cfg;
    const struct cdcd_source_env *env;
    const struct my_server *server;
    const struct my_filter *filter;
    struct my_shapes *shapes;
    struct cdcd_source *source; /* for information_schema; NULL in tests: never looked at */
};

struct my_savepoint {
    char *name;
    uint64_t mark;
};

/* The group that is being received. */
struct my_open {
    bool open;
    bool begun;      /* BEGIN or XA START was there, or none is needed: it goes on until its end */
    bool skip;       /* delivered before the resume */
    bool unfinished; /* MariaDB: the start, or a failed end, of an ALTER in two phases */
    bool has_thread, has_gtid;
    uint32_t thread, server_id;
    int64_t ts_us;   /* of the commit; 0: each event has its own */
    int64_t gtid_us; /* of the GTID event's header */
    uint64_t start;
    struct my_gtid gtid;
    struct my_savepoint *savepoints;
    size_t nsavepoints, savepoints_cap;
};

enum my_end {
    MY_END_COMMIT,
    MY_END_ROLLBACK,
    MY_END_PREPARE,
    MY_END_XA_COMMIT,
    MY_END_XA_ROLLBACK,
};

/* A prepared XA transaction. */
struct my_held {
    struct my_held *next; /* newer */
    char *xid;
    struct my_group *events;
    bool has_gtid;
    struct my_gtid gtid;
    /* where the log must be read from to get it again */
    char *gtid_before, *file_before;
    uint64_t pos_before;
};

/* A table map. */
struct my_entry {
    struct my_entry *next; /* of its bucket */
    uint64_t id;
    char *raw;
    size_t raw_len;
    char *db, *table;
    bool captured;
    struct my_shape *shape; /* NULL: not captured, not needed yet, or `why` */
    char *why;              /* no shape fits: the reason */
    uint64_t tx_seq;        /* tx_index is of this group */
    size_t tx_index;
};

struct my_entries {
    struct my_entry **buckets;
    size_t nbuckets, n;
    struct my_entry *last;
};

struct my_tx_table {
    char *label;
    uint64_t count;
};

/* The group that is being delivered. */
struct my_tx {
    bool open;
    bool begun;  /* its BEGIN record is delivered (transaction metadata) */
    bool blocks; /* its events belong to a transaction (transaction metadata) */
    bool has_gtid, has_thread, is_xa;
    struct my_gtid gtid;
    char id[128]; /* GTID, or file and offset */
    size_t id_len;
    struct cdcd_slice gtid_text; /* in id; ptr NULL: none */
    uint64_t start;              /* XA: the place of all its events */
    uint32_t thread, server_id;
    int64_t ts_us, begin_us, end_us;
    uint64_t seq, ord, skip, total;
    uint64_t row; /* XA: rows so far */
    struct my_held *held;
};

/* source cells that all rows of an event share, in the arena of the current batch */
struct my_source_cells {
    uint64_t read; /* st->reads when they were made; 0: none */
    struct cdcd_slice gtid, file, id, query;
    bool query_made;
};

struct my_stream {
    struct my_stream_env e;
    struct my_decoder *decoder;
    struct my_entries entries;
    struct my_group_pool pool;

    /* The log. file, pos: end of the newest event; at: where it began. */
    char *file;
    uint64_t pos, at;
    /* The same after the last finished group, or event outside of any: safe to resume at. */
    char *done_file;
    uint64_t done_pos;
    uint64_t seq;
    bool gtids;               /* positions are GTID sets */
    struct my_gtid_set *seen; /* all groups met */
    struct my_gtid_set *safe; /* MySQL: without those that are prepared */
    struct my_position from;  /* as resumed */
    bool window;              /* between from and from.done */
    struct my_gtid_set *window_set;
    uint64_t skip_ord; /* so many events of the next group are delivered; 0: none */

    struct my_open open;
    struct my_group *group; /* of `open`, then of the replay */
    struct my_held *held, **held_end;

    struct my_group *replay; /* `group`, or a held one */
    struct my_tx tx;
    struct my_tx_table *tx_tables;
    size_t ntx_tables, tx_tables_cap;
    bool in_rows; /* in the middle of a rows event */
    struct my_entry *rows_entry;
    struct my_event rows_event;
    struct my_row_reader reader;
    bool partial_image; /* columns are missing in the event's images */
    uint32_t row;
    uint64_t rows_at;
    int64_t rows_us;
    uint32_t rows_server;
    struct cdcd_buf query; /* of the statement, when wanted */

    struct my_source_cells cells;
    uint64_t reads; /* batches begun */
    struct cdcd_arena scratch;

    bool barrier;
    struct my_gtid_set *barrier_set; /* NULL: by file and offset */
    char *barrier_file;
    uint64_t barrier_pos;

    bool notes_due;       /* shapes changed since the last position was handed on */
    uint64_t statements;  /* that changed captured tables and were passed over
                             (statement.handling.mode) */
    int64_t last_ts_us;   /* commit time of the newest group */
    struct my_reading *r; /* stream_read.c; NULL in tests */
};

/* ---- stream.c ---- */
enum cdcd_rc my_stream_new(const struct my_stream_env *env, const struct my_position *from,
                           struct my_stream **out, struct cdcd_error *err);
/* Where to resume after what is in the batch. Free it after. */
void my_stream_position(const struct my_stream *st, struct my_position *out);
/* Begins a new batch: nothing is in its arena yet. */
static inline void my_stream_begin(struct my_stream *st)
{
    st->reads++;
}
/* No group is half received or half delivered. */
static inline bool my_stream_between(const struct my_stream *st)
{
    return !st->open.open && !st->replay && !st->skip_ord && !st->window;
}
void my_stream_set_barrier(struct my_stream *st, const struct my_position *p); /* NULL: none */
/* All that is before the barrier is delivered. */
bool my_stream_reached(const struct my_stream *st);
/* The place of an event, and the new end of the log. */
void my_stream_place(struct my_stream *st, const struct my_event *e);
/* Something outside of groups is done. */
void my_stream_settle(struct my_stream *st);
/* The open group is done: it is in the sets. `prepared`: it waits for its XA COMMIT. */
void my_stream_finish_group(struct my_stream *st, bool prepared);
int my_file_compare(const char *a, const char *b);
/* "GTID at file:pos" for messages. */
const char *my_stream_where(const struct my_stream *st, char out[static 256]);
enum cdcd_rc my_stream_vanished(const struct my_stream *st, const char *what,
                                struct cdcd_error *err);

/* ---- stream_events.c ---- */
/* One event as sent. OK: consumed. END: it begins a group beyond the barrier and was not consumed.
 * Not to be called while my_stream_replaying(). */
enum cdcd_rc my_stream_feed(struct my_stream *st, struct cdcd_slice event, struct cdcd_error *err);
void my_open_reset(struct my_stream *st);

/* ---- stream_replay.c ---- */
static inline bool my_stream_replaying(const struct my_stream *st)
{
    return st->replay != NULL;
}
/* The events of `events` become those of the group st->open; held: a prepared one. */
enum cdcd_rc my_replay_start(struct my_stream *st, struct my_group *events, struct my_held *held,
                             struct cdcd_error *err);
/* Goes on until the group is delivered, the batch is full or a bounded number of events is read.
 * After an error nothing of the event is in the batch and the position is the one before it. */
enum cdcd_rc my_stream_replay(struct my_stream *st, struct cdcd_batch *b, struct cdcd_error *err);
/* A group that has nothing to deliver. */
enum cdcd_rc my_replay_nothing(struct my_stream *st, struct cdcd_error *err);

/* ---- xa.c ---- */
enum cdcd_rc my_xa_hold(struct my_stream *st, const char *xid, struct cdcd_error *err);
struct my_held *my_xa_find(struct my_stream *st, struct cdcd_slice xid);
void my_xa_drop(struct my_stream *st, struct my_held *h);

/* ---- stream_tables.c ---- */
void my_entries_clear(struct my_entries *t);
/* By a table map; made when it is new. No shape yet. */
struct my_entry *my_entries_put(struct my_stream *st, const struct my_table_map *map);
struct my_entry *my_entries_get(struct my_entries *t, uint64_t id);
/* Gives a captured entry its shape, or `why` there is none. */
enum cdcd_rc my_entry_shape(struct my_stream *st, struct my_entry *e,
                            const struct my_table_map *map, struct cdcd_error *err);
/* The stop for rows that no shape fits. */
enum cdcd_rc my_entry_unknown(const struct my_stream *st, const struct my_entry *e,
                              struct cdcd_error *err);

/* ---- stream_read.c ---- */
struct my_reading;
void my_reading_free(struct my_reading *r);

/* ---- change.c ---- */
/* A rows event begins: checks its images. */
enum cdcd_rc my_change_begin(struct my_stream *st, struct cdcd_error *err);
/* Its next row: an event, or none when the row is no change or delivered before. END: no more. */
enum cdcd_rc my_change_next(struct my_stream *st, struct cdcd_batch *b, struct cdcd_error *err);
enum cdcd_rc my_change_truncate(struct my_stream *st, const struct my_event *e, const char *db,
                                const char *table, struct cdcd_batch *b, struct cdcd_error *err);
enum cdcd_rc my_change_ddl(struct my_stream *st, const struct my_event *e, struct cdcd_batch *b,
                           struct cdcd_error *err);
/* The END record of the transaction metadata. */
void my_change_end(struct my_stream *st, struct cdcd_batch *b);

/* ---- stream_version.c ---- */
/* What a row of a system-versioned table is: MY_V_*. */
enum my_versioned { MY_V_NOTHING, MY_V_AS_LOGGED, MY_V_DELETE };
enum cdcd_rc my_version_of(struct my_stream *st, const struct my_row_reader *before,
                           enum my_versioned *out, struct cdcd_error *err);

#endif
