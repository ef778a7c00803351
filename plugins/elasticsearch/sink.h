/*
 * sink.h: the sink itself, and what its working files share: bulk.c, reply.c, policy.c, merge.c,
 * truncate.c, state.c, mapping.c, rebuild.c.
 *
 * The way of a record: write() takes its batch; es_bulk_pump converts it into an item, which lives
 * in the arena of the batch and stands in the queue of its lane; when the lane is free, a body is
 * made of the first items, newest of each id only (es_merge has completed them before); the
 * reply settles each item, or puts it in front of the queue again. A batch whose items are all
 * settled is given back, in order; then its state is stored, then it is durable.
 */
#ifndef CDCD_PLUGIN_ELASTICSEARCH_SINK_H
#define CDCD_PLUGIN_ELASTICSEARCH_SINK_H

#include "es.h"

/* Into logs: of what is repeated for each record only so many lines, then each so-many-th. */
#define ES_LINES 20

/* ---- items and lanes ---- */

/* One action on its way. Lives in the arena of its batch, until it is settled. */
struct es_item {
    struct es_item *next; /* in its lane's queue */
    /* An earlier item of the same id that is not sent because this one is newer. It is settled
     * with this one; when this one is refused it takes its place. */
    struct es_item *older;
    struct cdcd_batch *batch;
    const struct cdcd_record *record;
    struct es_action action;
    uint64_t hash;       /* of index and id */
    const char *refused; /* in the arena: not to be sent, why. Set by es_merge, and for records that
                            are none */
    bool ready;          /* its index is, and action.index is where it goes */
    uint32_t sent;       /* how often */
    int64_t doubted;     /* monotonic ms: when it was first; 0: never. See doubt.c */
    int64_t held;        /* a delete of moved.c: since when; 0: it is not */
    unsigned lane;
    bool again;    /* while a reply is read: put in front of the queue afterwards */
    bool doubtful; /* refused, as its document is not there: see doubt.c */
    bool sure;     /* nothing that came since tells why */
    bool dead;     /* it is the document of the dead-letter index for its record */
    bool bare;     /* dead, without the record's value */
};

/* Both are about one document. One that is not in a queue yet has no hash. */
static inline bool es_same_document(const struct es_item *a, const struct es_item *b)
{
    return (a->hash == b->hash || !a->hash || !b->hash) &&
           cdcd_slice_eq(a->action.id, b->action.id) &&
           cdcd_slice_eq(a->action.index, b->action.index);
}

struct es_queue {
    struct es_item *first, *last;
    size_t n, bytes;
};

struct es_lane {
    struct es_queue queue;
    int64_t oldest; /* monotonic ms: since when the first of the queue waits */
    /* The request that is under way: */
    bool busy;
    struct es_item **items; /* in the order of the body */
    size_t nitems, items_cap;
    struct cdcd_buf body;
    bool brief; /* its reply tells only whether all was taken, see bulk_reply.c */
    /* Later: */
    int64_t not_before; /* monotonic ms */
    unsigned failures;  /* in a row */
    unsigned details;   /* so many requests ask for a reply about each item */
    size_t most_items;  /* of the next body; 0: any number */
};

/* Counted since open; told when the sink closes. */
struct es_counters {
    uint64_t documents, deletes, requests, bytes, conflicts, missing, retried, refused,
        dead_lettered, skipped, superseded, truncates, too_large, throttled, incomplete;
};

/* A document of the state index. seq_no -1: it is not there. */
struct es_guard {
    int64_t seq_no, primary_term;
};

struct es_state; /* state.c */
struct es_moved; /* moved.c */

struct cdcd_sink {
    const struct es_config *config;
    const struct cdcd_sink_env *env;
    struct es_http *http;
    struct es_server server;
    struct es_converter *converter;
    struct es_indexes *indexes; /* mapping.c; NULL until it is first needed */
    struct es_rebuild *rebuild; /* rebuild.c; NULL until it is first needed */
    struct es_state *state;

    struct es_lane *lanes;
    unsigned nlanes, active; /* active: how many may be under way now */
    unsigned busy;           /* how many are */
    unsigned turn;           /* which lane is asked first */
    size_t bulk_bytes;       /* largest body now */
    size_t too_large;        /* smallest body that was too large; 0: none was */
    unsigned smooth;         /* requests in a row that were taken at once */
    int64_t calm_since;      /* monotonic ms of the last 429 or 413 */

    struct cdcd_batch *first, *last; /* held, in order of seq */
    struct cdcd_batch *converting;   /* the one that is being converted, or the next one */
    struct cdcd_record *cursor;      /* next record of it, when begun */
    bool begun;
    struct es_item *held;   /* of the record at the cursor, converted: it waits for the server to
                               have its index ready, or, a TRUNCATE, for all before it. In the
                               arena of its batch */
    int64_t held_until;     /* monotonic ms: it is not tried before */
    unsigned held_tries;    /* that failed, in a row */
    size_t open;            /* items that are not settled */
    struct es_item *doubts; /* of them, those that wait to be told of, the newest first */
    size_t ndoubts;
    int64_t doubts_since; /* monotonic ms of the last record that came */
    int64_t doubts_look;  /* those of rows whose key has changed are not tried before */
    struct es_moved *moved, **moved_end; /* in order of their batches, in whose arenas they live */
    const struct cdcd_record *moved_whole; /* the record of a new key that carries all columns */
    uint64_t taken;                        /* seq of the last batch that was taken */
    uint64_t settled;                      /* up to here everything is in the index */
    uint64_t durable;                      /* up to here it is reported */
    int64_t last_progress, next_complaint;
    int64_t stored, next_store; /* the state; it is not stored before */
    int64_t next_look;          /* the topic is not looked at before, see stale.c */
    bool blocked;               /* the complaint is about an index that takes no writes */
    char complaint[512];        /* why the last item or request has to be sent again */

    uint32_t *table; /* of ids, while a body is made */
    size_t table_cap;

    bool broken; /* an error was returned: nothing but load helps */
    bool dead_letter_ready;
    struct es_counters counters;
};

/* ---- http.c, reply.c: small help for requests ---- */
/* "/NAME/..." with what must be escaped in a path escaped: each %I takes a struct cdcd_slice.
 * Owned by the caller. */
char *es_path(const char *fmt, ...);
/* One request, waiting; path is made by es_path and is taken. body may be empty; it is NDJSON when
 * the path is that of _bulk, else JSON. Errors as es_http_do. */
enum cdcd_rc es_call(struct cdcd_sink *s, const char *method, char *path, struct cdcd_slice body,
                     struct es_reply *out, struct cdcd_error *err);
/* A JSON string with quotes. */
void es_json_string(struct cdcd_buf *b, struct cdcd_slice text);

/* ---- bulk.c ---- */
void es_bulk_init(struct cdcd_sink *s);
void es_bulk_free(struct cdcd_sink *s);
/* Ends all that is under way and gives back all batches. */
void es_bulk_reset(struct cdcd_sink *s);
/* Takes a batch. */
void es_bulk_add(struct cdcd_sink *s, struct cdcd_batch *b);
/* Converts what was taken, sends what can be sent and gives back what is settled. now: do not wait
 * for more documents. */
enum cdcd_rc es_bulk_pump(struct cdcd_sink *s, bool now, struct cdcd_error *err);
/* An item is done with: also those that it stood for. */
void es_settle(struct cdcd_sink *s, struct es_item *item);
/* Puts an item in front of its lane's queue: it is sent (again) next. */
void es_again(struct cdcd_sink *s, struct es_item *item);
/* Gives back the batches that are settled. */
void es_give_back(struct cdcd_sink *s);
/* Reports what is settled as durable. */
void es_durable(struct cdcd_sink *s);

/* ---- bulk_body.c ---- */
/* About what it takes in a body. */
static inline size_t es_item_bytes(const struct es_item *item)
{
    /* What is missing is large, else the log would carry it. */
    return item->action.source.len + item->action.id.len + item->action.index.len + 80 +
           (size_t)item->action.nmissing * 4096;
}
/* About how large the next body should be at most; one document may be larger. */
size_t es_body_most(const struct cdcd_sink *s);
/* Moves items from the queue into the lane's body; nitems may be 0 when all were left out. */
enum cdcd_rc es_body_make(struct cdcd_sink *s, struct es_lane *lane, struct cdcd_error *err);
/* "/_bulk?..." for the lane's items; lane->brief: its reply tells of no item. Owned by the caller.
 */
char *es_body_path(const struct cdcd_sink *s, const struct es_lane *lane);
/* The same for lines that name no index, or name it themselves. */
char *es_bulk_path(const struct cdcd_sink *s, struct cdcd_slice index);
/* Of index and id. */
uint64_t es_item_hash(struct cdcd_slice index, struct cdcd_slice id);

/* ---- bulk_reply.c ---- */
/* Waits at most timeout_ms for a reply and serves all that are there. */
enum cdcd_rc es_bulk_serve(struct cdcd_sink *s, int timeout_ms, struct cdcd_error *err);
/* The pause before the n-th attempt, n = 1.. failures in a row. */
int64_t es_backoff(const struct cdcd_sink *s, unsigned failures);
/* What a request besides the bulks failed with, and it is a RETRY: it is remembered for whoever
 * asks what the sink waits for, and *err is cleared. */
void es_complain(struct cdcd_sink *s, struct cdcd_error *err);
/* A lane's body cannot be made for now: its items go back into the queue for a while. */
void es_put_off(struct cdcd_sink *s, struct es_lane *lane, struct cdcd_error *err);
/* LOSS: the index was deleted while it was written to. */
enum cdcd_rc es_lost(struct cdcd_slice index, const char *type, const char *reason,
                     struct cdcd_error *err);
/* A lane's request has this reply. */
enum cdcd_rc es_bulk_answer(struct cdcd_sink *s, struct es_lane *lane, const struct es_reply *r,
                            struct cdcd_error *err);

/* ---- reply.c ---- */
enum es_verdict {
    ES_DONE,    /* 200, 201 */
    ES_STALE,   /* 409: the index has this or something newer */
    ES_GONE,    /* 404 of a delete */
    ES_AGAIN,   /* 429, 503, ... of this item */
    ES_BLOCKED, /* the index takes no writes for now: closed, read-only, disk full */
    ES_LOST,    /* the index is not there any more */
    ES_REFUSED, /* by the document's own fault */
    ES_DENIED,  /* 401, 403 of this item */
};
struct es_result {
    long status;
    enum es_verdict verdict;
    char type[96], reason[512]; /* "" when done */
};
/* Reads a bulk's reply item by item: calls take(ctx, i, result) for i = 0.. in order. False: the
 * body is not a bulk's reply with n items. Nothing is called then. */
bool es_bulk_items(struct cdcd_slice body, size_t n,
                   void (*take)(void *ctx, size_t i, const struct es_result *r), void *ctx);
/* What a status and a type of error mean for one item. */
enum es_verdict es_judge(long status, const char *type, const char *reason, bool is_delete);

/* ---- stale.c ---- */
/* The version that the index has, from the reason of a 409. False: it does not tell. */
bool es_held_version(const char *reason, int64_t *out);
/* An item was refused as the index has something newer (reason: the server's). LOSS: that is of
 * another log. RETRY: it cannot be told now. */
enum cdcd_rc es_stale(struct cdcd_sink *s, const struct es_item *item, const char *reason,
                      struct cdcd_error *err);

/* ---- policy.c ---- */
enum es_fate {
    ES_FATE_SETTLE, /* it is left out, and counted */
    ES_FATE_SEND,   /* the item is now the document of the dead-letter index, to be sent */
};
/* A document that the index refuses, or a record that is none, by the policy. DATA error: stop. */
enum cdcd_rc es_refuse(struct cdcd_sink *s, struct es_item *item, const char *type,
                       const char *reason, enum es_fate *fate, struct cdcd_error *err);
/* Makes the dead-letter index, once. */
enum cdcd_rc es_dead_letter_ready(struct cdcd_sink *s, struct cdcd_error *err);
/* "topic shop.public.t, partition 3, offset 17" or "topic ..., cdcd.pos ...". */
void es_place(const struct cdcd_record *r, char *out, size_t size);

/* ---- merge.c ---- */
/* Items of one lane that are to go into one body, in order, two of one id among them too: those
 * with missing columns (action.nmissing) get a complete action.source, in the arena of their
 * batch, and nmissing 0; or item->refused is set; or they become deletes that do nothing, where the
 * document was deleted by something newer. What an earlier item of `items` says of the same id
 * counts before what the index holds. Those that a later one of `items` overtakes stay as they are.
 * Called before each body; cheap when nothing is missing. */
enum cdcd_rc es_merge(struct cdcd_sink *s, struct es_item *const *items, size_t n,
                      struct cdcd_error *err);

/* ---- moved.c ---- */
/* A delete whose row goes on under another id, before it is placed: what the log may leave out
 * under that is kept in the state index. Cheap when nothing is left out. AGAIN: those before it are
 * still under way. RETRY error: to be tried again. */
enum cdcd_rc es_moved_keep(struct cdcd_sink *s, struct es_item *item, struct cdcd_error *err);
/* The row under its new id, when it is placed: what was kept is deleted after its batch. */
void es_moved_note(struct cdcd_sink *s, struct es_item *item);
/* The document that an item's row was before its key changed, appended to *kept (*source points
 * into it), or ->kind NULL: none was kept. */
enum cdcd_rc es_moved_find(struct cdcd_sink *s, const struct es_item *item, struct cdcd_buf *kept,
                           struct cdcd_json_value *source, struct cdcd_error *err);
/* The batch is settled: what was kept for its rows is needed no more. */
void es_moved_drop(struct cdcd_sink *s, const struct cdcd_batch *b);

/* ---- doubt.c ---- */
/* Keeps an item back whose document is not there. */
void es_doubt(struct cdcd_sink *s, struct es_item *item);
/* What is about to be sent tells of earlier ones of its id. */
void es_doubts_tell(struct cdcd_sink *s, const struct es_lane *lane);
/* When it is time for es_doubts_serve, monotonic ms; INT64_MAX: not before another record comes. */
int64_t es_doubts_end(const struct cdcd_sink *s);
/* Those for which no more waiting helps are tried once more, and refused then. */
void es_doubts_serve(struct cdcd_sink *s);
/* The item's document waits to be completed by what is kept of its row under another id. */
bool es_doubts_moved(const struct cdcd_sink *s, const struct es_item *of);

/* ---- truncate.c ---- */
/* Called when everything before is settled and nothing is under way. May be repeated. */
enum cdcd_rc es_truncate(struct cdcd_sink *s, const struct es_action *a,
                         const struct cdcd_record *r, struct cdcd_error *err);
/* All documents of an index page by page, as a search sees them: the hits have _id and _version, no
 * source. *scroll is empty at first; a page without hits is the last one. *root points into *r,
 * which the caller frees, also on error. */
enum cdcd_rc es_walk_page(struct cdcd_sink *s, struct cdcd_slice index, unsigned size,
                          struct cdcd_buf *scroll, struct es_reply *r, struct cdcd_json_value *root,
                          struct cdcd_error *err);
void es_walk_end(struct cdcd_sink *s, struct cdcd_buf *scroll); /* frees it */

/* ---- mapping.c ---- */
void es_indexes_free(struct es_indexes *x); /* NULL is fine */
/* A new session: what is known of the server's indexes is looked up again. */
void es_indexes_forget(struct cdcd_sink *s);
/* Writes must go through an alias: `index` is one, as es_index_ready has found. Then the server is
 * told so, and does not make an index by itself when it was deleted. */
bool es_index_through_alias(const struct cdcd_sink *s, struct cdcd_slice index);
/* Where that cannot be said (the index has the name itself, or the server is too old): whether what
 * was written up to now went into the index that was found. LOSS: it was deleted. Cheap else. */
enum cdcd_rc es_index_same(struct cdcd_sink *s, struct cdcd_slice index, struct cdcd_error *err);

/* ---- rebuild.c ---- */
/* At the start of a session with env.replay: which indexes are built. Nothing else. */
enum cdcd_rc es_rebuild_load(struct cdcd_sink *s, struct cdcd_error *err);
/* The index that is built beside the alias `index`: its name; it is made when it is not there. */
enum cdcd_rc es_rebuild_target(struct cdcd_sink *s, struct cdcd_slice index,
                               const struct es_shape *shape, struct cdcd_slice *out,
                               struct cdcd_error *err);
enum cdcd_rc es_rebuild(struct cdcd_sink *s, enum cdcd_rebuild step, struct cdcd_report *report,
                        struct cdcd_error *err);
/* The alias that `target` is built beside; ptr NULL: there is none, or nothing is live yet. */
struct cdcd_slice es_rebuild_live(const struct cdcd_sink *s, struct cdcd_slice target);
void es_rebuild_free(struct es_rebuild *r); /* NULL is fine */

/* ---- state.c ---- */
/* Documents of the state index, by id: what rebuild.c keeps there too. *source is appended to;
 * guard->seq_no -1: it is not there. */
enum cdcd_rc es_doc_get(struct cdcd_sink *s, const char *id, struct cdcd_buf *source,
                        struct es_guard *guard, struct cdcd_error *err);
/* Only if it is still as *guard says (seq_no -1: not there); *guard is then the new one. AGAIN:
 * somebody else has written it. Makes the state index when it is not there. */
enum cdcd_rc es_doc_put(struct cdcd_sink *s, const char *id, struct cdcd_slice source,
                        struct es_guard *guard, struct cdcd_error *err);
enum cdcd_rc es_doc_delete(struct cdcd_sink *s, const char *id, struct cdcd_error *err);
/* Which indexes this pipeline has made or found: one that was there and is not any more was
 * deleted under us, and a new one would lack what it held. For mapping.c. */
#define ES_UUID_MAX 64
struct es_known {
    struct es_guard guard;  /* seq_no -1: it was not there before */
    bool alias;             /* it was an alias */
    char uuid[ES_UUID_MAX]; /* of an index that has the name itself; "": not noted */
};
enum cdcd_rc es_known_get(struct cdcd_sink *s, struct cdcd_slice index, struct es_known *out,
                          struct cdcd_error *err);
enum cdcd_rc es_known_put(struct cdcd_sink *s, struct cdcd_slice index, struct es_known *known,
                          struct cdcd_error *err);

struct es_state *es_state_new(const struct cdcd_sink_env *env);
void es_state_free(struct es_state *st);
/* Claims the pipeline and reads what is stored. */
enum cdcd_rc es_state_load(struct cdcd_sink *s, struct cdcd_buf *state, struct cdcd_notes *notes,
                           struct cdcd_error *err);
/* A settled batch's state and notes are the newest ones now. */
void es_state_take(struct cdcd_sink *s, const struct cdcd_batch *b);
/* Stores the newest state, if it is not stored and it is time; then everything up to s->settled is
 * durable. more: it may be put off. An outage is no error: it is tried again later. */
enum cdcd_rc es_state_store(struct cdcd_sink *s, bool more, struct cdcd_error *err);
/* The pipeline began anew with this session: nothing was stored. */
bool es_state_fresh(const struct cdcd_sink *s);
/* There is something to store. */
bool es_state_dirty(const struct cdcd_sink *s);

/* ---- check.c ---- */
enum cdcd_rc es_check(const void *config, const struct cdcd_sink_env *env,
                      struct cdcd_report *report, struct cdcd_error *err);

#endif
