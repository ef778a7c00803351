/*
 * stream.h: what the server sends, in order, turned into what the pipeline gets, in order. No
 * socket: wal.c feeds it, tests do too. Capture thread only.
 *
 * Transactions leave in the order of their commit records, whole and only after their commit.
 * Every change message of a transaction has an ordinal, from 1, counted before any filter (one
 * for each relation of a TRUNCATE; none for changes of aborted subtransactions), so that the same
 * transaction counts the same when the server sends it again, streamed or not.
 *
 * Positions. `done`: every transaction whose commit record begins before it is delivered. `tx`,
 * `ord`: of the transaction that commits there so many changes are delivered. `lsn`: what the
 * slot may be confirmed up to; behind `done` only while prepared transactions are held, because a
 * two-phase slot sends those again only from before their PREPARE record. In-progress
 * transactions never hold a position back: the slot's restart_lsn keeps them, and the server
 * sends them whole.
 */
#ifndef CDCD_PLUGIN_POSTGRES_STREAM_H
#define CDCD_PLUGIN_POSTGRES_STREAM_H

#include "relations.h"
#include "spool.h"

#include <cdcd/pattern.h>

/* The transaction whose changes are being read or replayed. */
struct pg_tx {
    bool open;
    bool skip_all; /* delivered before */
    bool begun;    /* its BEGIN record is delivered (transaction metadata) */
    uint32_t xid;
    pg_lsn commit_lsn, first_lsn;
    int64_t ts_us;
    uint64_t ord;   /* changes so far */
    uint64_t skip;  /* so many of them were delivered before */
    uint64_t total; /* records so far (transaction metadata) */
    uint64_t seq;   /* distinct for each transaction; see pg_rel.tx_seq */
    struct cdcd_buf origin;
    pg_lsn origin_lsn;
};

struct pg_tx_table {
    uint32_t oid;
    char *label;
    size_t len;
    uint64_t count;
};

struct pg_stream {
    const struct cdcd_source_env *env;
    const struct pg_config *cfg;
    struct pg_rel_env rel_env;
    struct pg_decoder decoder;
    struct pg_rels rels;
    struct pg_rels overlay;  /* see replay_relation() */
    struct pg_rel *last_rel; /* of the last row: mostly that of the next one */
    uint64_t rel_seq;        /* Relation messages received */
    struct pg_spools *spools;
    struct pg_spool *block;  /* open S..E or b..P */
    uint64_t blocks;         /* b..P blocks so far; see pg_rel.in_block */
    struct pg_spool *replay; /* committed, being read back */
    pg_lsn replay_end;
    struct pg_tx tx;
    struct pg_tx_table *tx_tables; /* of tx */
    size_t ntx_tables, tx_tables_cap;
    struct cdcd_batch *scratch;    /* for changes that only count */
    struct cdcd_schema *db_schema; /* names the database for messages */
    struct cdcd_patterns message_include, message_exclude;

    pg_lsn done, last;
    pg_lsn from_lsn, from_done, seen; /* see pg_stream_position() */
    pg_lsn skip_tx;                   /* half delivered, not met yet; 0: none */
    uint64_t skip_ord;
    pg_lsn barrier;     /* 0: none */
    int64_t last_ts_us; /* commit time of the newest change */
    char sys[32];
    char sequence[32]; /* the part of source.sequence that names the last commit */
    size_t sequence_len;

    struct pg_wal *wal; /* the connection's side; owned, NULL in tests */
};

/* `from` as stored. The position of `owner` files: see pg_spools_new. Borrows cfg, env, rel_env's
 * pointers for its life. */
enum cdcd_rc pg_stream_new(const struct pg_config *cfg, const struct cdcd_source_env *env,
                           const struct pg_rel_env *rel_env, const struct pg_position *from,
                           struct pg_stream **out, struct cdcd_error *err);

/* One message. OK: consumed. END: it is the first one at or beyond the barrier and was not
 * consumed. After an error nothing of the message is in the batch and the position is the one
 * before it. Not to be called while pg_stream_replaying(). */
enum cdcd_rc pg_stream_feed(struct pg_stream *st, pg_lsn lsn, int64_t sent_us,
                            struct cdcd_slice message, struct cdcd_batch *b,
                            struct cdcd_error *err);
static inline bool pg_stream_replaying(const struct pg_stream *st)
{
    return st->replay != NULL;
}
/* Goes on with a replay until the batch is full or a bounded number of messages is read. */
enum cdcd_rc pg_stream_replay(struct pg_stream *st, struct cdcd_batch *b, struct cdcd_error *err);
/* The server has sent everything that commits before wal_end. */
enum cdcd_rc pg_stream_keepalive(struct pg_stream *st, pg_lsn wal_end, struct cdcd_error *err);
/* Nothing is half done: no transaction, block or replay is open. */
static inline bool pg_stream_between(const struct pg_stream *st)
{
    return !st->tx.open && !st->block && !st->replay;
}
/* Where to resume after what is in the batch. */
void pg_stream_position(const struct pg_stream *st, struct pg_position *out);

/* ---- shared by stream.c and change.c ---- */
enum cdcd_rc pg_stream_misplaced(const struct pg_message *m, pg_lsn lsn, const char *why,
                                 struct cdcd_error *err);
/* The transaction that is half delivered must come again, and with no fewer changes. */
enum cdcd_rc pg_stream_vanished(const struct pg_stream *st, struct cdcd_error *err);
/* All that commits before `lsn` is delivered. */
void pg_stream_advance(struct pg_stream *st, pg_lsn lsn);
void pg_stream_set_last(struct pg_stream *st, pg_lsn last);
/* Takes back what was appended to a batch after `last`, its n-th event. */
void pg_stream_undo(struct cdcd_batch *b, struct cdcd_event *last, uint32_t n);

/* ---- change.c ---- */
/* Everything that may stand within a transaction but R: I U D T M O Y. */
enum cdcd_rc pg_change(struct pg_stream *st, const struct pg_message *m, struct cdcd_slice raw,
                       pg_lsn lsn, struct cdcd_batch *b, struct cdcd_error *err);
/* A logical message outside of any transaction. */
enum cdcd_rc pg_change_lone_message(struct pg_stream *st, const struct pg_message *m, pg_lsn lsn,
                                    int64_t sent_us, struct cdcd_batch *b, struct cdcd_error *err);
/* The END record of the transaction metadata. */
void pg_change_end(struct pg_stream *st, struct cdcd_batch *b, pg_lsn end_lsn);

/* ---- wal.c ---- */
void pg_wal_free(struct pg_wal *w);

#endif
