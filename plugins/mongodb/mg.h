/*
 * mg.h: what the files of the MongoDB plugin share.
 *
 *   conn.c         clients, commands, errors -> classes
 *   server.c       what the server says of itself, and what open() insists on
 *   position.c     the resume position as JSON
 *   filter.c       include and exclude lists; fields.c   the same of fields, within documents
 *   oplog*.c       bytes of oplog entries -> operations; no socket                     oplog.h
 *   diff.c         what an update says it changed; no socket                           oplog.h
 *   stream.c       the streaming state: ordinals, positions, transactions              stream.h
 *   change.c       one change -> its event                                             stream.h
 *   tail.c         the feed of local.oplog.rs                                          stream.h
 *   transaction.c  the parts of a transaction of several entries                       stream.h
 *   change_stream.c, change_event.c   the feed of change streams                       stream.h
 *   lookup.c       documents by _id, pre-images                                        stream.h
 *   snapshot*.c    collections, ranges of _id, documents                               snapshot.h
 *   check.c        the checks of `cdcd check`
 *   source.c       options and the ops table
 *
 * Threads: as plugin.h says. A mongoc_client_t belongs to one thread: the capture thread has
 * s->client, each worker one of its own.
 *
 * libmongoc 1.23 to 2.x from one source: include only <mongoc/mongoc.h> and <bson/bson.h>, and use
 * nothing that 2.0 removed (bson_string_t, bson_as_json, mongoc_*_command without _simple or
 * _with_opts, mongoc_cursor_is_alive, mongoc_collection_find, ...).
 */
#ifndef CDCD_PLUGIN_MONGODB_MG_H
#define CDCD_PLUGIN_MONGODB_MG_H

#include <cdcd/bson.h>
#include <cdcd/log.h>
#include <cdcd/plugin.h>

#include <mongoc/mongoc.h>

/* ---- options ---- */

enum mg_capture { MG_CHANGE_STREAM, MG_OPLOG };
enum mg_scope { MG_SCOPE_DEPLOYMENT, MG_SCOPE_DATABASE, MG_SCOPE_COLLECTION };
/* capture.mode, Debezium's names: what is asked for besides the change itself. */
enum mg_capture_mode {
    MG_MODE_UPDATE_FULL,           /* change_streams_update_full */
    MG_MODE_PLAIN,                 /* change_streams */
    MG_MODE_PRE_IMAGE,             /* change_streams_with_pre_image */
    MG_MODE_UPDATE_FULL_PRE_IMAGE, /* change_streams_update_full_with_pre_image */
};
enum mg_full_update { MG_FULL_LOOKUP, MG_FULL_POST_IMAGE };
enum mg_oversize { MG_OVERSIZE_FAIL, MG_OVERSIZE_SKIP, MG_OVERSIZE_SPLIT };
enum mg_read_mode { MG_READ_AUTO, MG_READ_AT_CLUSTER_TIME, MG_READ_OVERLAP };
enum mg_replaced { MG_REPLACED_WARN, MG_REPLACED_FAIL };

struct mg_config {
    char *url;                                              /* mongodb:// or mongodb+srv:// */
    int capture;                                            /* enum mg_capture */
    int scope;                                              /* enum mg_scope, change streams */
    char *target;                                           /* capture.target: "db" or "db.coll" */
    struct cdcd_strlist database_include, database_exclude; /* of "db" */
    struct cdcd_strlist collection_include, collection_exclude; /* of "db.coll" */
    struct cdcd_strlist field_exclude; /* of "db.coll.path.of.field": no regular expressions; *
                                          stands for any characters in the first two parts */
    int capture_mode;                  /* enum mg_capture_mode */
    int full_update;                   /* enum mg_full_update */
    int64_t start_op_time;             /* capture.start.op.time: BSON timestamp as a number; -1 */
    int oversize;                      /* cursor.oversize.handling.mode */
    int64_t await_ms;                  /* cursor.max.await.time.ms */
    int64_t batch_size;                /* cursor.batch.size; 0: the server's */
    int read_mode;                     /* snapshot.read.mode, enum mg_read_mode */
    int replaced;                      /* collection.replaced.handling.mode, enum mg_replaced */
    int64_t snapshot_chunk_rows;
    int64_t connect_timeout_ms;
    int64_t window_warn_ms; /* oplog.window.warn.ms: check warns of a smaller window */
};
extern const struct cdcd_option mg_options[];

/* ---- cluster time ---- */
struct mg_time {
    uint32_t t, i; /* seconds since 1970, increment; 0,0: none */
};
static inline uint64_t mg_time_number(struct mg_time x)
{
    return (uint64_t)x.t << 32 | x.i;
}
static inline int mg_time_cmp(struct mg_time a, struct mg_time b)
{
    uint64_t x = mg_time_number(a), y = mg_time_number(b);
    return x < y ? -1 : x > y;
}

/* ---- conn.c ---- */

struct mg_server {
    char version[32];
    int version_number; /* 80211; 0 unknown */
    char set[64];       /* replica set's name; "" for mongos and standalone */
    bool mongos, standalone;
    bool writable_primary; /* of the member that answered */
    bool secondary, arbiter;
    bool uninitiated; /* started as a member, but rs.initiate() has not been run */
    int max_wire;
};

/* mongoc_init() once in the process. A client with appname cdcd, timeouts from cfg; reads from the
 * URL's read preference. Does not talk to the server yet. CONFIG error: the URL; no password in it.
 */
enum cdcd_rc mg_client_new(const struct mg_config *cfg, mongoc_client_t **out,
                           struct cdcd_error *err);
/* hello and buildInfo. CONFIG: wrong credentials or auth source (on the first connection of the
 * process, as retrying cannot help), TLS; RETRY: not reachable. */
enum cdcd_rc mg_server_info(mongoc_client_t *c, struct mg_server *out, struct cdcd_error *err);
/* Sets err from libmongoc's error and, where there is one, the server's reply (code, codeName,
 * errorLabels), "what" in front. Classes, told apart by code and label:
 *   CONFIG  18 AuthenticationFailed, 13 Unauthorized, 8000 (Atlas), 40573 (change streams need a
 *           replica set), unknown host in the URL on the first connection
 *   LOSS    286 ChangeStreamHistoryLost, 280 ChangeStreamFatalError, 136 CappedPositionLost where
 *           the gap check finds that the position is gone (tail.c decides; here it is RETRY)
 *   RETRY   network, 91 11600 11602 10107 13435 13436 189 (shutdown, election, stepdown),
 *           43 CursorNotFound, 237 CursorKilled, 136, 50 MaxTimeMSExpired, 262, 9001, 6, 7, 89,
 *           labels ResumableChangeStreamError, RetryableError, TransientTransactionError
 *   DATA    10334 BSONObjectTooLarge in a change stream (split or skip, see oversize)
 *   FATAL   anything else */
enum cdcd_rc mg_error(struct cdcd_error *err, const bson_error_t *e, const bson_t *reply,
                      const char *fmt, ...) CDCD_PRINTF(4, 5);
/* The server's code of that failure (reply's, else e's where e is of the server's domain); 0. */
int mg_error_code(const bson_error_t *e, const bson_t *reply);
/* Runs a command that reads; reply is to be destroyed by the caller also on error. */
enum cdcd_rc mg_command(mongoc_client_t *c, const char *db, const bson_t *cmd, bson_t *reply,
                        struct cdcd_error *err);
/* The newest majority-committed time: lastWrite.majorityOpTime of the member that answers. mongos
 * has none: there it is the cluster time, to which a shard may still have to come. A read that
 * must not be older says afterClusterTime. */
enum cdcd_rc mg_cluster_time(mongoc_client_t *c, struct mg_time *out, struct cdcd_error *err);
/* First and newest entry of local.oplog.rs. CONFIG: no oplog (standalone, mongos), no privilege. */
enum cdcd_rc mg_oplog_window(mongoc_client_t *c, struct mg_time *first, struct mg_time *last,
                             struct cdcd_error *err);
struct mg_filter;
/* The whole reply of hello, to be destroyed also on error. */
enum cdcd_rc mg_hello(mongoc_client_t *c, bson_t *reply, struct cdcd_error *err);
/* Does what capturing begins with, to find out whether the account may: reads the oplog's ends, or
 * opens a change stream and closes it. *refused: it may not; mg_grant_command() is the mend. */
enum cdcd_rc mg_try_capture(mongoc_client_t *c, const struct mg_config *cfg, bool *refused,
                            struct cdcd_error *err);
/* The command that gives cdcd's user what cfg needs; malloc'ed. */
char *mg_grant_command(mongoc_client_t *c, const struct mg_config *cfg);
/* The captured databases that the account can see, to be freed by bson_strfreev(). */
enum cdcd_rc mg_database_names(mongoc_client_t *c, const struct mg_config *cfg,
                               const struct mg_filter *f, char ***out, struct cdcd_error *err);
/* Whether anything that the account can see is captured: warns when not. */
enum cdcd_rc mg_server_sees(mongoc_client_t *c, const struct mg_config *cfg, struct mg_filter *f,
                            struct cdcd_error *err);
/* Begins an array within a document, to be ended by bson_append_array_end(). libbson 2 has another
 * name for it, and warns of the old one. */
static inline bool mg_array_begin(bson_t *b, const char *name, bson_t *child)
{
#ifdef BSON_APPEND_ARRAY_UNSAFE_BEGIN
    return BSON_APPEND_ARRAY_UNSAFE_BEGIN(b, name, child);
#else
    return BSON_APPEND_ARRAY_BEGIN(b, name, child);
#endif
}
/* Between libbson's documents and ours; no copy. */
static inline struct cdcd_slice mg_slice(const bson_t *b)
{
    return (struct cdcd_slice){(const char *)bson_get_data(b), b->len};
}

/* ---- position.c: the JSON text that the core stores ----
 * {"mode":"oplog","ts":[1700000000,7],"ord":2,"until":[1700000000,9]}
 * {"mode":"change_stream","ts":[...],"ord":1,"token":{"_data":"82..."},"set":"rs0"}
 *
 * ts is the cluster time of the last entry of which something is delivered, ord how many of the
 * events at exactly that time are: the stream begins at ts again and leaves those out. So entries
 * that share a time, a transaction cut in two, and a change of the way of capture all resume right.
 */
#define MG_ORD_ALL INT64_MAX /* written as -1: all events at ts are delivered */
struct mg_position {
    int capture; /* enum mg_capture */
    struct mg_time ts;
    int64_t ord;
    char *token; /* change streams: the resume token after the last event as relaxed Extended JSON,
                    or NULL: start at ts */
    /* The snapshot that this position follows was not read at one time: a change up to and
     * including `until` may already be in its rows, see "overlap" in stream.h. 0,0: none. */
    struct mg_time until;
    bool until_open; /* its end is not known yet: `until` is the time at which the stream starts */
    char *set;       /* replica set's name, for the message when another one comes; or NULL */
};
bool mg_position_parse(struct cdcd_slice json, struct mg_position *out); /* free it after */
void mg_position_write(const struct mg_position *p, struct cdcd_buf *out);
void mg_position_copy(const struct mg_position *p, struct mg_position *out);
void mg_position_free(struct mg_position *p);
void mg_describe(struct cdcd_slice position, struct cdcd_buf *out);

/* ---- filter.c: include and exclude lists; any thread ---- */
enum cdcd_rc mg_filter_new(const struct mg_config *cfg, struct mg_filter **out,
                           struct cdcd_error *err);
void mg_filter_free(struct mg_filter *f);
/* admin, local and config never pass; system.* collections only where an include list names them
 * (system.buckets.* of a time series, as its raw buckets). Scope and target count, too. */
bool mg_filter_database(const struct mg_filter *f, struct cdcd_slice db);
bool mg_filter_collection(struct mg_filter *f, struct cdcd_slice db, struct cdcd_slice collection);
/* A filter for the server where the lists are plain names: the $match stage of a change stream, as
 * a BSON array of stages to put behind $changeStream; empty array: nothing to filter there. */
void mg_filter_pipeline(const struct mg_filter *f, bson_t *stages);

/* ---- fields.c: field.exclude.list ---- */
struct mg_fields; /* of one collection; NULL: nothing is left out there */
const struct mg_fields *mg_filter_fields(struct mg_filter *f, struct cdcd_slice db,
                                         struct cdcd_slice collection);
/* The document without those fields (also inside arrays of documents), in the arena; the document
 * itself when there is nothing to leave out. false: malformed. */
bool mg_fields_strip(const struct mg_fields *x, struct cdcd_arena *a, struct cdcd_slice document,
                     struct cdcd_slice *out);
/* The same of an updatedFields document, whose names are dotted paths: those that are left out, or
 * lie below such a one, go, and the others lose what is left out within their value. */
bool mg_fields_strip_updated(const struct mg_fields *x, struct cdcd_arena *a,
                             struct cdcd_slice updated, struct cdcd_slice *out);
/* Whether a dotted path (of removedFields, truncatedArrays) is one of them, or below one. */
bool mg_fields_excluded(const struct mg_fields *x, struct cdcd_slice path);

/* ---- the source ---- */
struct mg_stream;
struct mg_snapshot;

struct cdcd_source {
    const struct mg_config *cfg;
    const struct cdcd_source_env *env;
    mongoc_client_t *client; /* of the capture thread; lookups, catalogue, feeds */
    struct mg_server server;
    struct mg_filter *filter;
    struct mg_stream *stream;
    struct mg_snapshot *snapshot;
};

/* Of cfg: images of before, whole documents after an update from the server's post images. */
static inline bool mg_wants_before(const struct mg_config *cfg)
{
    return cfg->capture_mode == MG_MODE_PRE_IMAGE ||
           cfg->capture_mode == MG_MODE_UPDATE_FULL_PRE_IMAGE;
}
static inline bool mg_wants_full(const struct mg_config *cfg)
{
    return cfg->capture_mode == MG_MODE_UPDATE_FULL ||
           cfg->capture_mode == MG_MODE_UPDATE_FULL_PRE_IMAGE;
}
static inline bool mg_wants_post_image(const struct mg_config *cfg)
{
    return mg_wants_full(cfg) && cfg->full_update == MG_FULL_POST_IMAGE;
}

/* ---- check.c ---- */
enum cdcd_rc mg_check(const void *config, const struct cdcd_source_env *env,
                      struct cdcd_report *report, struct cdcd_error *err);
enum cdcd_rc mg_drop(const void *config, const struct cdcd_source_env *env, bool dry,
                     struct cdcd_report *report, struct cdcd_error *err);
/* server.c: what must be right before anything is captured: a replica set (or mongos with change
 * streams), version, privileges. CONFIG error with the mend. Called by open. */
enum cdcd_rc mg_check_topology(const struct mg_config *cfg, const struct mg_server *server,
                               struct cdcd_error *err);
enum cdcd_rc mg_check_server(mongoc_client_t *c, const struct mg_config *cfg,
                             const struct mg_server *server, struct cdcd_error *err);

/* The source block's columns, in Debezium's order. */
enum {
    MG_SRC_COLLECTION,
    MG_SRC_ORD,
    MG_SRC_LSID,
    MG_SRC_TXN_NUMBER,
    MG_SRC_WALL_TIME,
    MG_SRC_COUNT
};

#endif
