/*
 * stream.h: the streaming state. A feed gives one change at a time; stream.c counts them, leaves
 * out what is delivered already or not wanted, makes events of them and says how far they reach.
 *
 * Overlap. A snapshot that is not read at one time (snapshot.h) has rows that already hold changes
 * of the log after the position where the stream starts. Up to position.until every change of a
 * document is therefore given with the document as it is now (a lookup), never with an older one:
 * an insert or replacement whose document is gone by now is left out (its delete is still to come),
 * and so is a delete whose document is there again (its insert is still to come). So no document
 * goes back. Updates are looked up in any case, unless capture.mode says otherwise; of one that is
 * looked up only because of the overlap nothing is given either when its document is gone. Such a
 * lookup may itself see more of the log than `until`: changes of the same document up to the time
 * of the lookup are treated in the same way.
 *
 * A resumed snapshot reads its rows while the stream, which was brought to the view before, is held
 * by stop_at(view). Where that view bears until_open, changes after it may be in the rows, too:
 * every position written from stop_at(view) on bears until_open, and stop_at(NULL), after the last
 * row, makes `until` the cluster time of that moment.
 */
#ifndef CDCD_PLUGIN_MONGODB_STREAM_H
#define CDCD_PLUGIN_MONGODB_STREAM_H

#include "mg.h"
#include "oplog.h"

/* ---- a feed ---- */

struct mg_change {
    enum cdcd_op op;                  /* CREATE, UPDATE, DELETE, or DDL */
    struct cdcd_slice db, collection; /* collection ptr NULL: of the whole database (DDL) */
    struct mg_time ts;
    int64_t wall_ms; /* INT64_MIN: none */
    bool transaction;
    struct cdcd_slice lsid; /* BSON document; only where `transaction` */
    int64_t txn_number;
    struct cdcd_slice lsid_json; /* set by the stream: lsid as text, in the batch's arena */
    /* Documents: */
    struct cdcd_cell id;              /* BSON */
    struct cdcd_slice after;          /* ptr NULL: not there */
    struct cdcd_slice before;         /* pre-image; ptr NULL: none */
    const struct cdcd_update *update; /* in the arena given to next() */
    bool replaces;                    /* UPDATE that is a replacement: `after` is exact */
    bool after_lookup;                /* the server looked `after` up, after the change */
    bool lookup_done; /* `after` NULL is the result of a lookup, too: do not look again */
    /* Oplog, for pre-images: the collection's uuid (ptr NULL: none), the op's `o`, the time of the
     * entry that has the op (a part of a transaction: not ts), and its place in its applyOps. */
    struct cdcd_slice uuid, entry_o;
    struct mg_time entry_ts;
    uint32_t apply_ops_index;
    /* DDL: */
    struct mg_command command;
    /* Change streams: the token after this change, as BSON document; ptr NULL: none. */
    struct cdcd_slice token;
};

struct mg_feed;
struct mg_feed_ops {
    /* Starts after `from`; feeds from ts on (inclusive): the stream leaves out what was delivered.
     * LOSS: the position is gone (history lost, rolled back). */
    enum cdcd_rc (*open)(struct cdcd_source *s, const struct mg_position *from,
                         struct mg_feed **out, struct cdcd_error *err);
    void (*close)(struct mg_feed *f);
    /* The next change of a captured collection, or command about one. All it points to lives until
     * the next call, but `update`, which is in the arena. Does not return what filter.c leaves out,
     * but DDL that a captured collection comes from or goes to. AGAIN: nothing more before
     * deadline_ms (monotonic; 0: do not wait). */
    enum cdcd_rc (*next)(struct mg_feed *f, struct cdcd_arena *a, int64_t deadline_ms,
                         struct mg_change *out, struct cdcd_error *err);
    /* More is here already: next(.., 0, ..) will not say AGAIN. */
    bool (*ready)(const struct mg_feed *f);
    /* How far everything is read and given: after AGAIN the time (and token, as BSON document) that
     * the server vouches for, although no captured change came (noops, postBatchResumeToken). The
     * time of the last change given: the server was asked after that change and had nothing more,
     * so what happened at that time, a transaction for instance, is whole.
     * False: neither is known. */
    bool (*mark)(const struct mg_feed *f, struct mg_time *ts, struct cdcd_slice *token);
    /* Whether such a position can be opened: without opening it (resume()). */
    enum cdcd_rc (*verify)(struct cdcd_source *s, const struct mg_position *from,
                           struct cdcd_error *err);
    /* Optional, after open. True: it starts right behind the last event that the position has (a
     * resume token), so its first change is number from.ord + 1 of from.ts, if it is of that time.
     * False, or NULL: it starts with the first change at from.ts. */
    bool (*starts_behind)(const struct mg_feed *f);
};
extern const struct mg_feed_ops mg_tail_feed;          /* tail.c */
extern const struct mg_feed_ops mg_change_stream_feed; /* change_stream.c */

/* ---- transaction.c: the parts of a transaction of several oplog entries ---- */

struct mg_chain;
/* From its COMMIT entry: finds all parts by `prev` (point reads on local.oplog.rs). LOSS: one of
 * them is no longer in the oplog. */
enum cdcd_rc mg_chain_open(mongoc_client_t *c, const struct mg_entry *commit, struct mg_chain **out,
                           struct cdcd_error *err);
/* Its operations in order, those of the commit entry last. One entry is in memory at a time; *ts is
 * its time. */
enum cdcd_rc mg_chain_next(struct mg_chain *ch, struct mg_op *out, struct mg_time *ts,
                           struct cdcd_error *err);
void mg_chain_close(struct mg_chain *ch);

/* ---- lookup.c ---- */

/* The document of that _id as it is now (majority, primary unless the URL says otherwise), copied
 * to the arena; ptr NULL: there is none. `at_least`: not older than this time (afterClusterTime).
 */
enum cdcd_rc mg_lookup(struct cdcd_source *s, struct cdcd_slice db, struct cdcd_slice collection,
                       const struct cdcd_cell *id, struct mg_time at_least, struct cdcd_arena *a,
                       struct cdcd_slice *document, struct cdcd_error *err);
/* From config.system.preimages, for the oplog feed; ptr NULL: not recorded. */
enum cdcd_rc mg_pre_image(struct cdcd_source *s, struct cdcd_slice uuid, struct mg_time ts,
                          uint32_t apply_ops_index, struct cdcd_arena *a,
                          struct cdcd_slice *document, struct cdcd_error *err);

/* ---- stream.c: the source ops ---- */
enum cdcd_rc mg_stream_resume(struct cdcd_source *s, struct cdcd_slice from,
                              struct cdcd_buf *position, struct cdcd_error *err);
enum cdcd_rc mg_stream_start(struct cdcd_source *s, struct cdcd_slice from, struct cdcd_error *err);
enum cdcd_rc mg_stream_read(struct cdcd_source *s, struct cdcd_batch *b, int64_t deadline_ms,
                            struct cdcd_error *err);
enum cdcd_rc mg_stream_stop_at(struct cdcd_source *s, struct cdcd_slice position,
                               struct cdcd_error *err);
void mg_stream_ack(struct cdcd_source *s, struct cdcd_slice position);
enum cdcd_rc mg_stream_idle(struct cdcd_source *s, int64_t now, struct cdcd_error *err);
void mg_stream_lag(struct cdcd_source *s, struct cdcd_lag *out);
void mg_stream_free(struct mg_stream *st);

/* ---- change.c ---- */

/* The collection's schema, made on first use; owned by the stream's (or snapshot's) cache. */
struct mg_schemas;
struct mg_schemas *mg_schemas_new(void);
void mg_schemas_free(struct mg_schemas *c);
struct cdcd_schema *mg_schemas_get(struct mg_schemas *c, struct cdcd_slice db,
                                   struct cdcd_slice collection);

/* The cells of the source block, in the batch's arena. ord -1 for snapshot rows. */
const struct cdcd_cell *mg_source_cells(struct cdcd_batch *b, const char *collection, int32_t ord,
                                        const char *lsid, size_t lsid_len, int64_t txn_number,
                                        int64_t wall_ms);
/* One change -> its event in the batch; copies what it needs. after/before: as they shall be. */
struct cdcd_event *mg_change_event(struct cdcd_batch *b, const struct mg_change *c,
                                   struct cdcd_schema *schema);
/* The command as a DDL event: topic PREFIX, ddl is its text as relaxed Extended JSON. */
struct cdcd_event *mg_ddl_event(struct cdcd_batch *b, const struct mg_change *c);

#endif
