/*
 * plugin.h: what a source and a sink are. One shared object exports one constant,
 *
 *     CDCD_EXPORT const struct cdcd_plugin cdcd_plugin = { CDCD_PLUGIN_ABI, sizeof ..., ... };
 *
 * and nothing else; with -DCDCD_STATIC_PLUGINS=ON the same objects are linked into the
 * binary under the name cdcd_plugin_<name>. Use CDCD_PLUGIN_SYMBOL(name) for both.
 * The tables grow only at their ends; the loader checks abi, size and every required slot.
 * A plugin is never unloaded.
 *
 * Threads: all source calls come from the capture thread, which owns the source connection,
 * except worker_* which come each from its own worker thread. All sink calls come from the
 * publish thread. open, check and drop come from the main thread before those start.
 */
#ifndef CDCD_PLUGIN_H
#define CDCD_PLUGIN_H

#include "batch.h"
#include "option.h"

#define CDCD_PLUGIN_ABI 4

#ifdef CDCD_STATIC_PLUGINS
#define CDCD_PLUGIN_SYMBOL(name) cdcd_plugin_##name
#else
#define CDCD_PLUGIN_SYMBOL(name) cdcd_plugin
#endif

/* ---- check: one line a finding ---- */
enum cdcd_check_level { CDCD_CHECK_OK, CDCD_CHECK_WARN, CDCD_CHECK_FAIL };

struct cdcd_report {
    void *ctx;
    /* `what` names the thing ("wal_level", "slot shop"), `text` says what was found, `mend` is
     * the command or SQL to run, or NULL. All borrowed. */
    void (*add)(void *ctx, enum cdcd_check_level level, const char *what, const char *text,
                const char *mend);
};

/* report.c. The text by printf; mend is taken (malloc'ed; may be NULL). */
void cdcd_report_addf(const struct cdcd_report *r, enum cdcd_check_level level, const char *what,
                      char *mend, const char *fmt, ...) CDCD_PRINTF(5, 6);
/* Of one kind of finding about tables only the first CDCD_REPORT_LINES get a line, so that the
 * report of a thousand tables can be read. More: whether this one does. End: says how many did
 * not, and begins anew. */
#define CDCD_REPORT_LINES 50
bool cdcd_report_more(size_t *lines);
void cdcd_report_end(const struct cdcd_report *r, size_t *lines, const char *what);

/* ---- source ---- */

/* What a source is told about its pipeline. Borrowed for the life of the source. */
struct cdcd_source_env {
    const char *pipeline; /* name */
    const char *topic_prefix;
    bool tx_metadata;      /* fill tx_id and orders, append TX_BEGIN and TX_END events */
    bool want_truncate;    /* false: skipped.operations holds t */
    bool want_message;     /* false: skipped.operations holds m */
    const char *state_dir; /* for spill files: exists and is writable, or "" */
    int64_t max_event_bytes;
    int workers;       /* snapshot workers */
    bool ephemeral;    /* tail: everything made on the server goes with the connection */
    bool when_needed;  /* the source may answer "position lost" with a new snapshot */
    bool want_ddl;     /* append DDL events (include.schema.changes) */
    bool want_schemas; /* a source of records: put the schemas of rows before the records that need
                          them, see CDCD_SCHEMA_TOPIC in batch.h */
    /* cdcd replay, a source of records: read everything from `replay_from` (a position, an offset,
     * a time; NULL: the beginning) or from the position that resume gets, with no group, up to
     * `replay_to` (NULL: the end as it is when start is called); then read says END. */
    bool replay;
    const char *replay_from, *replay_to;
    /* What the sink holds of the source's notes (notes.h), as of the start of the session. */
    const struct cdcd_notes *notes;
    /* True once the process was asked to end: give up long waits with RETRY. May be NULL. Any
     * thread. */
    bool (*stopping)(void *ctx);
    void *ctx;
};

struct cdcd_source; /* the plugin's own */
struct cdcd_worker; /* the plugin's own */

/* A table to snapshot, as named by the source. Strings owned by the list's arena. */
struct cdcd_snapshot_table {
    const char *db, *schema, *table; /* as in struct cdcd_schema; db may be NULL where schema is
                                        not "" */
    const char *label;               /* "schema.table": the order of tables, progress, state */
    const char *identity;            /* changes when chunk cursors become meaningless (a rewrite) */
    uint64_t id;                     /* the table's own, whatever its name; 0: it has none */
    int64_t rows;                    /* estimate, -1 unknown */
    bool keyed;                      /* its events have a key */
    void *source_data;
};

struct cdcd_snapshot_tables {
    struct cdcd_arena arena;
    struct cdcd_snapshot_table *items;
    size_t n;
};

/* A part of a table, from `begin` (a cursor; "" = the start) to `end` ("" = the end). */
struct cdcd_chunk {
    uint32_t number;
    const char *begin, *end;
};

struct cdcd_chunks {
    struct cdcd_arena arena;
    struct cdcd_chunk *items;
    size_t n;
};

struct cdcd_lag {
    int64_t bytes;  /* server's write position minus the acknowledged one; -1 unknown */
    int64_t millis; /* age of the newest event read; -1 unknown */
};

/* A record of a source of records, asked for by its place. */
struct cdcd_place {
    const char *topic;
    int32_t partition;
    int64_t offset;
    int64_t end;         /* set: the partition ends before this offset */
    bool found;          /* set: the record is there, and */
    struct cdcd_buf key; /* this is its key; owned by who asks */
};

struct cdcd_source_ops {
    const char *connector; /* source.connector: "postgresql" */
    const struct cdcd_option *options;
    size_t config_size;
    /* The fields that the connector adds to the source block, in order. */
    const struct cdcd_column *source_columns;
    size_t nsource_columns;
    const char *source_schema_name; /* "io.debezium.connector.postgresql.Source" */

    /* Connects, checks the server. `config` is borrowed for the life of the source. */
    enum cdcd_rc (*open)(struct cdcd_source **out, const void *config,
                         const struct cdcd_source_env *env, struct cdcd_error *err);
    void (*close)(struct cdcd_source *s);
    /* Pre-flight: reports every finding; returns ERROR only when it could not look. */
    enum cdcd_rc (*check)(const void *config, const struct cdcd_source_env *env,
                          struct cdcd_report *report, struct cdcd_error *err);
    /* Lists (dry) or removes what cdcd created on the server; one report line each. */
    enum cdcd_rc (*drop)(const void *config, const struct cdcd_source_env *env, bool dry,
                         struct cdcd_report *report, struct cdcd_error *err);

    /* -- stream -- */
    /* Verifies that the stream can go on from `from` (ptr NULL: no position, i.e. the current
     * one or an existing slot's) without a gap: LOSS error when not. Creates what is missing
     * when from.ptr is NULL. Writes the position that the stream will start from. */
    enum cdcd_rc (*resume)(struct cdcd_source *s, struct cdcd_slice from, struct cdcd_buf *position,
                           struct cdcd_error *err);
    /* Starts streaming from a position that resume or snapshot_begin gave. */
    enum cdcd_rc (*start)(struct cdcd_source *s, struct cdcd_slice from, struct cdcd_error *err);
    /* Appends events until the batch is full, nothing more is there, or the deadline
     * (monotonic ms) has passed; sets batch->position and caught_up.
     * OK: something was appended (events or a new position). AGAIN: nothing. END: the barrier
     * (stop_at) is reached, and what was appended before it is in the batch. */
    enum cdcd_rc (*read)(struct cdcd_source *s, struct cdcd_batch *b, int64_t deadline_ms,
                         struct cdcd_error *err);
    /* read returns END before the first event at or after this position; ptr NULL: no barrier. */
    enum cdcd_rc (*stop_at)(struct cdcd_source *s, struct cdcd_slice position,
                            struct cdcd_error *err);
    /* The sink durably holds everything up to this position. */
    void (*ack)(struct cdcd_source *s, struct cdcd_slice position);
    /* Called about every second while the capture thread waits for anything (also during
     * snapshots): keep the connection alive, send status. `now` is monotonic ms. */
    enum cdcd_rc (*idle)(struct cdcd_source *s, int64_t now, struct cdcd_error *err);
    void (*lag)(struct cdcd_source *s, struct cdcd_lag *out);

    /* -- snapshot -- */
    /* Fixes a consistent view of the data at one log position. from.ptr NULL: the first
     * snapshot of this pipeline; the stream will start at *position. Otherwise a snapshot is
     * resumed: the stream goes on from `from`, and *position (never before `from`) is where the
     * new view stands in the log: the coordinator streams up to it before it reads chunks. */
    enum cdcd_rc (*snapshot_begin)(struct cdcd_source *s, struct cdcd_slice from,
                                   struct cdcd_buf *position, struct cdcd_error *err);
    /* All captured tables of the view in order of their label. */
    enum cdcd_rc (*snapshot_tables)(struct cdcd_source *s, struct cdcd_snapshot_tables *out,
                                    struct cdcd_error *err);
    /* The chunks of a table. Workers begin them in order; the last one is recorded as finished
     * only when all others are. */
    enum cdcd_rc (*snapshot_plan)(struct cdcd_source *s, const struct cdcd_snapshot_table *t,
                                  struct cdcd_chunks *out, struct cdcd_error *err);
    void (*snapshot_end)(struct cdcd_source *s);
    /* A worker has a connection of its own, pinned to the view. Called on worker threads. */
    enum cdcd_rc (*worker_open)(struct cdcd_source *s, struct cdcd_worker **out,
                                struct cdcd_error *err);
    void (*worker_close)(struct cdcd_worker *w);
    enum cdcd_rc (*worker_begin)(struct cdcd_worker *w, const struct cdcd_snapshot_table *t,
                                 const struct cdcd_chunk *chunk, struct cdcd_error *err);
    /* Appends READ events; sets batch->chunk_cursor. OK: batch full, more to come.
     * END: the chunk is finished. */
    enum cdcd_rc (*worker_read)(struct cdcd_worker *w, struct cdcd_batch *b,
                                struct cdcd_error *err);

    /* Human-readable form of a position, for logs and status; any thread. */
    void (*describe)(struct cdcd_slice position, struct cdcd_buf *out);

    /* Optional: what `connector` and `source_schema_name` are for the server that open() met, where
     * one source serves several systems. Static strings. Called once after open. */
    void (*names)(const struct cdcd_source *s, const char **connector,
                  const char **source_schema_name);
    /* Optional: appends what must be durable with the first position (before the first row of a
     * snapshot, before the stream of no_data): notes, and the schema changes that would make the
     * tables of a snapshot. Called after snapshot_begin and snapshot_tables, or after resume with
     * no position. */
    void (*notes)(struct cdcd_source *s, struct cdcd_batch *b);
    /* TIME is a span that may be negative or longer than a day (MySQL): microseconds under
     * time.precision.mode adaptive, whatever its digits. */
    bool time_micros;
    /* Gives records instead of events: batch->records with topic NULL and topic_name set. Such a
     * source has no snapshot: those slots may be NULL. */
    bool records;
    /* The source's own system keeps the position (a consumer group): ack() stores it there, and
     * resume without a position begins from what it holds. With an idempotent sink nothing else is
     * stored, so that several instances can share the work. */
    bool keeps_position;
    /* Optional: the position of a record as one number below 2^63 that grows with it, for systems
     * whose versions are such numbers. Two positions may have the same number only when they are
     * of one transaction. Any thread. */
    uint64_t (*version)(struct cdcd_pos pos);
    /* Optional, with env.replay: how far it has come, in records. */
    void (*progress)(struct cdcd_source *s, uint64_t *done, uint64_t *total);
    /* Optional, a source of records: looks at one, with a connection of its own. Not found before
     * the end: it is not kept any more. Any thread. */
    enum cdcd_rc (*look)(const void *config, const struct cdcd_source_env *env,
                         struct cdcd_place *place, struct cdcd_error *err);
    /* Rows of a snapshot are marked `true`, its last one `last`; no other marks (MongoDB). */
    bool few_marks;
    /* A snapshot that goes on after an interruption also brings rows whose key has changed since,
     * wherever they are now, when the log left out some of their values. */
    bool follows_new_keys;
};

/* ---- sink ---- */

enum cdcd_delivery { CDCD_EXACTLY_ONCE, CDCD_AT_LEAST_ONCE, CDCD_AT_MOST_ONCE };

struct cdcd_sink_env {
    const char *pipeline, *topic_prefix;
    void *ctx; /* first argument of the callbacks below; they are called on the publish thread */
    bool stateless; /* the source keeps the position: batches have no state, nothing is to be stored
                       or loaded, and other instances may write at the same time */
    bool replay;    /* cdcd replay: write beside what is live, see rebuild */
    uint64_t (*version)(struct cdcd_pos pos); /* of the source; NULL: it has none */
    /* True once the process was asked to end. May be NULL. Any thread. */
    bool (*stopping)(void *ctx);
    /* The sink needs the batch's bytes no more: takes the batch. */
    void (*batch_done)(void *ctx, struct cdcd_batch *b);
    /* All batches up to and including seq, and their states, are durable in the sink. */
    void (*durable)(void *ctx, uint64_t seq);
    /* For who asks for the status: the sink waits for its server, and why; it goes on by itself.
     * NULL in checks. */
    void (*waits)(void *ctx, const char *why);
    /* unavailable.value.placeholder, as configured: what stands in records for a value that the log
     * left out since it did not change. NULL: the default. */
    const char *placeholder;
    /* The configuration of the source, when it is of the same plugin as the sink: it can tell
     * whether it would write what is read. Else NULL. */
    const void *source_config;
    /* Looks at a record of the source, see cdcd_source_ops. NULL: it cannot. */
    enum cdcd_rc (*look)(void *ctx, struct cdcd_place *place, struct cdcd_error *err);
};

struct cdcd_sink;

/* The steps of cdcd replay, in their order; each may be taken again. */
enum cdcd_rebuild {
    CDCD_REBUILD_BEGIN,   /* before the first run: take over what an earlier process left, to go on
                             with it; CONFIG error: another one is at it */
    CDCD_REBUILD_FREEZE,  /* nothing is written to the live one from now on */
    CDCD_REBUILD_VERIFY,  /* compare both; a report line each; ERROR DATA: they differ too much */
    CDCD_REBUILD_SWAP,    /* readers and writers see the new one, in one step */
    CDCD_REBUILD_FINISH,  /* forget that a replay was under way */
    CDCD_REBUILD_THAW,    /* instead of going on: undo FREEZE */
    CDCD_REBUILD_DROP,    /* later: remove what SWAP replaced */
    CDCD_REBUILD_ABANDON, /* instead of going on: remove the new one */
};

struct cdcd_sink_ops {
    const struct cdcd_option *options;
    size_t config_size;
    enum cdcd_rc (*open)(struct cdcd_sink **out, const void *config,
                         const struct cdcd_sink_env *env, struct cdcd_error *err);
    void (*close)(struct cdcd_sink *s);
    enum cdcd_rc (*check)(const void *config, const struct cdcd_sink_env *env,
                          struct cdcd_report *report, struct cdcd_error *err);
    /* Begins a session: undoes what an earlier one left unfinished, fences an older instance,
     * gives back all batches still held, and reads the state that the sink durably holds for
     * this pipeline (empty buf: none) and the notes of its source (`notes` is empty at first).
     * Sequence numbers start at 1 again. */
    enum cdcd_rc (*load)(struct cdcd_sink *s, struct cdcd_buf *state, struct cdcd_notes *notes,
                         struct cdcd_error *err);
    /* Topics that will be written, so that they can be made in one go. Optional, may be called
     * again with more. */
    enum cdcd_rc (*prepare)(struct cdcd_sink *s, struct cdcd_topic *const *topics, size_t n,
                            struct cdcd_error *err);
    /* Takes the batch, also on error. Its notes become durable with its state. */
    enum cdcd_rc (*write)(struct cdcd_sink *s, struct cdcd_batch *b, struct cdcd_error *err);
    /* Serves delivery reports and commits. more: other batches wait to be written, so a commit
     * may be put off to make it larger; !more: commit what there is now. flush: commit
     * everything written before returning. Waits at most timeout_ms when !flush. */
    enum cdcd_rc (*poll)(struct cdcd_sink *s, int timeout_ms, bool more, bool flush,
                         struct cdcd_error *err);
    /* Remembers nothing over restarts (stdout): load always gives an empty state. */
    bool (*forgetful)(const void *config);
    /* A record that comes again does no harm and brings nothing older back. */
    bool idempotent;
    /* Wants the schemas of rows, as records of CDCD_SCHEMA_TOPIC. May be NULL: no. */
    bool (*wants_schemas)(const void *config);
    /* Optional: the steps of cdcd replay, in their order, between sessions with env.replay. On the
     * main thread. */
    enum cdcd_rc (*rebuild)(struct cdcd_sink *s, enum cdcd_rebuild step, struct cdcd_report *report,
                            struct cdcd_error *err);
};

struct cdcd_plugin {
    uint32_t abi;
    uint32_t size; /* sizeof(struct cdcd_plugin) */
    const char *name;
    const char *version;
    const char *doc;                      /* one line */
    const struct cdcd_source_ops *source; /* or NULL */
    const struct cdcd_sink_ops *sink;     /* or NULL */
};

/* ---- small services of the core for plugins ---- */
int64_t cdcd_now_ms(void); /* monotonic */
int64_t cdcd_wallclock_us(void);

#endif
