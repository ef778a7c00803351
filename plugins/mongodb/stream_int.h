/*
 * stream_int.h: what the files of the stream share. Capture thread only.
 *
 *   stream.c         the source ops: where it may start, batches, positions
 *   stream_change.c  one change of the feed: its number, whether it is wanted, transactions
 *   stream_lookup.c  documents that a batch still lacks; the overlap with a snapshot
 *   change.c         collections by name; one change -> its event
 *   tail.c, tail_cursor.c, tail_names.c   the feed of local.oplog.rs: entries -> changes; its
 *                    cursor; what became of collections                              tail_int.h
 *   transaction.c    the parts of a transaction of several entries
 *   lookup.c         documents by _id, pre-images
 */
#ifndef CDCD_PLUGIN_MONGODB_STREAM_INT_H
#define CDCD_PLUGIN_MONGODB_STREAM_INT_H

#include "stream.h"

/* ---- change.c: a collection by name ---- */

struct mg_name {
    struct mg_name *next; /* of its bucket */
    uint64_t hash;
    struct cdcd_slice db, collection; /* NUL-terminated */
    struct cdcd_slice label;          /* "db.collection" */
    struct cdcd_schema *schema;       /* made on first use */
    bool looked;                      /* the next three are known */
    bool captured, buckets;
    const struct mg_fields *fields;
    uint64_t tx_number; /* the stream: tx_index is of this transaction */
    size_t tx_index;
    bool has_uuid; /* tail.c: the uuid of what is under this name now */
    uint8_t uuid[16];
};
struct mg_name *mg_schemas_name(struct mg_schemas *c, struct cdcd_slice db,
                                struct cdcd_slice collection);
struct cdcd_schema *mg_name_schema(struct mg_name *n);
/* captured, buckets, fields. */
static inline void mg_name_look(struct mg_name *n, struct mg_filter *f)
{
    if (n->looked)
        return;
    n->looked = true;
    n->captured = mg_filter_collection(f, n->db, n->collection);
    n->fields = n->captured ? mg_filter_fields(f, n->db, n->collection) : NULL;
    n->buckets = n->collection.len > 15 && memcmp(n->collection.ptr, "system.buckets.", 15) == 0;
}
uint64_t mg_hash(uint64_t seed, const void *p, size_t n);

/* ---- lookup.c ---- */

struct mg_session; /* of the capture thread's client; made on first use */
void mg_session_free(struct mg_session *x);
/* n documents by _id in one query; out[i].ptr NULL: there is none. *seen: a time that is not before
 * what the server looked at. */
enum cdcd_rc mg_lookup_many(struct cdcd_source *s, struct cdcd_slice db,
                            struct cdcd_slice collection, const struct cdcd_cell *ids, size_t n,
                            struct mg_time at_least, struct cdcd_arena *a, struct cdcd_slice *out,
                            struct mg_time *seen, struct cdcd_error *err);

/* What the stream reads beside its feed; tests have their own. */
struct mg_reads {
    enum cdcd_rc (*many)(struct cdcd_source *s, struct cdcd_slice db, struct cdcd_slice collection,
                         const struct cdcd_cell *ids, size_t n, struct mg_time at_least,
                         struct cdcd_arena *a, struct cdcd_slice *out, struct mg_time *seen,
                         struct cdcd_error *err);
    enum cdcd_rc (*pre_image)(struct cdcd_source *s, struct cdcd_slice uuid, struct mg_time ts,
                              uint32_t apply_ops_index, struct cdcd_arena *a,
                              struct cdcd_slice *document, struct cdcd_error *err);
    enum cdcd_rc (*now)(struct cdcd_source *s, struct mg_time *out, struct cdcd_error *err);
};

/* tail.c: the first entry of the oplog at or after *ts. CONFIG: it begins later, or there is none
 * yet. */
enum cdcd_rc mg_tail_find(struct cdcd_source *s, struct mg_time *ts, struct cdcd_error *err);

/* tail_names.c: `to`, which is captured, was replaced as a whole by renaming another collection:
 * warns, or LOSS where that is to stop the pipeline. */
enum cdcd_rc mg_replaced_by(const struct mg_config *cfg, const struct mg_name *from,
                            const struct mg_name *to, bool dropped, struct mg_time ts,
                            struct cdcd_error *err);

/* ---- the stream ---- */

struct mg_tx_collection {
    struct mg_name *name;
    uint64_t count;
};

/* Transaction metadata: the transaction that is being delivered. */
struct mg_tx {
    bool open;
    bool begun;           /* its BEGIN record is delivered, now or before a resume */
    uint64_t number;      /* of the stream's transactions */
    struct cdcd_buf lsid; /* as BSON */
    struct cdcd_buf text; /* lsid as JSON, ":", txnNumber */
    size_t lsid_text;     /* length of its first part */
    int64_t txn_number;
    struct mg_time ts;
    int64_t wall_ms, ts_us;
    uint64_t total;
    struct mg_tx_collection *collections;
    size_t ncollections, collections_cap;
    uint64_t read;                   /* st->reads when the next two were made */
    struct cdcd_slice id, lsid_json; /* `text` in the arena of the current batch */
};

/* An event whose document is still to be looked up. */
struct mg_pending {
    struct cdcd_event *e;
    struct mg_name *name;
    uint32_t slot; /* of the overlap's table */
    bool overlap;  /* under the rules of the overlap */
    bool only;     /* UPDATE: looked up only because of it */
};

#define MG_SLOTS        65536
#define MG_LOOKUP_FIRST 4 /* documents of the first query: their size is not known */

struct mg_stream {
    struct cdcd_source *s;
    const struct mg_feed_ops *ops;
    const struct mg_reads *reads_from;
    struct mg_feed *feed;
    struct mg_session *session; /* lookup.c's */
    struct mg_schemas *schemas;
    uint64_t reads; /* batches begun */

    /* The place: `ord` changes at `ts` are given (also those that were left out). */
    struct mg_time ts;
    int64_t ord;
    bool all;              /* nothing more can come at ts */
    struct cdcd_buf token; /* BSON; empty: none */
    struct mg_time skip_ts;
    int64_t skip_ord; /* so many changes at skip_ts are delivered */
    char *set;
    bool in_tx; /* the newest change is of a transaction of which more may come */
    struct mg_tx tx;
    uint64_t transactions;

    /* The overlap: up to `until`, and by document up to the time in its slot. */
    struct mg_time until, overlap_end;
    bool until_open; /* rows are still being read: its end is not known */
    uint64_t *slots; /* MG_SLOTS times as numbers, by hash of the document's name */

    struct mg_pending *pending;
    size_t npending, pending_cap;
    size_t lookup_most; /* documents of one query, as far as their sizes can be foreseen */

    bool barrier, at_barrier;
    struct mg_time barrier_ts;
    int64_t barrier_ord;
    struct cdcd_arena hold; /* of the change read while there is a barrier */
    struct mg_change held;  /* beyond it */
    bool has_held;
    bool from_hold; /* the change being taken is in `hold`, not in the batch's arena */

    struct cdcd_error pending_error; /* met after events that had to be handed on first */
    struct mg_time emitted_ts;       /* the last position handed on */
    int64_t emitted_ord, emitted_ms;
    bool emitted_in_tx, emitted_until;
    bool idle;
    int64_t last_ts_us; /* time of the newest change */
};

/* stream.c. `reads` NULL: the real ones. Takes the place of s->stream. */
enum cdcd_rc mg_stream_open(struct cdcd_source *s, const struct mg_feed_ops *ops,
                            const struct mg_reads *reads, struct cdcd_slice from,
                            struct cdcd_error *err);

/* stream_change.c. OK: consumed. END: it is beyond the barrier, and was not consumed. */
enum cdcd_rc mg_stream_take(struct mg_stream *st, struct cdcd_batch *b, const struct mg_change *c,
                            struct cdcd_error *err);
/* The END record of the open transaction, if there is one. */
void mg_stream_close_tx(struct mg_stream *st, struct cdcd_batch *b);
/* "db.collection at t:i" for messages. */
const char *mg_stream_where(const struct mg_change *c, char out[static 512]);

/* stream_lookup.c */
/* Whether the rules of the overlap hold for the change. */
bool mg_overlap_has(struct mg_stream *st, const struct mg_change *c, const struct mg_name *n,
                    uint32_t *slot);
void mg_pending_add(struct mg_stream *st, struct mg_pending p);
/* Enough for one query. */
bool mg_pending_full(const struct mg_stream *st);
enum cdcd_rc mg_pending_resolve(struct mg_stream *st, struct cdcd_batch *b, struct cdcd_error *err);

#endif
