/*
 * pg.h: what the files of the PostgreSQL plugin share.
 *
 *   conn.c      sockets: libpq connections, replication commands, copy-both; never parses pgoutput
 *   wal.c       the stream's connection: CopyData in both directions, status replies, batches
 *   stream.c    the streaming state: spool or batch, skip after a resume, barrier, positions
 *   change.c    one change of a transaction -> its event, unless filtered or delivered before
 *   decode.c    bytes of pgoutput messages -> rows; never touches a socket
 *   relations.c what the server has described, by oid
 *   spool.c     disk files for transactions that are not committed yet
 *   position.c  the resume position as JSON
 *   types.c     type catalogue, column types, text values -> cells
 *   catalog.c   tables: primary keys, nullability, defaults; relation -> schema
 *   slot.c      the slot: create, verify, tell apart lost, taken, recreated
 *   publication.c  the publication: create, extend, verify
 *   snapshot.c  exported snapshot, chunks by ctid range, COPY rows -> events
 *   check.c     the checks of `cdcd check`, and `cdcd drop`
 *   source.c    options and the ops table
 */
#ifndef CDCD_PLUGIN_POSTGRES_PG_H
#define CDCD_PLUGIN_POSTGRES_PG_H

#include <cdcd/log.h>
#include <cdcd/plugin.h>

#include <libpq-fe.h>

typedef uint64_t pg_lsn;

/* Microseconds between 1970-01-01 and PostgreSQL's epoch 2000-01-01. */
#define PG_EPOCH_US INT64_C(946684800000000)

enum pg_autocreate { PG_AUTOCREATE_ALL, PG_AUTOCREATE_FILTERED, PG_AUTOCREATE_DISABLED };

enum pg_streaming { PG_STREAMING_OFF, PG_STREAMING_ON, PG_STREAMING_PARALLEL };
enum pg_origin { PG_ORIGIN_ANY, PG_ORIGIN_NONE };

struct pg_config {
    const char *pipeline; /* set by pg_config_resolve(); "" before */
    char *url;
    char *slot_name;
    bool slot_failover;
    bool slot_drop_on_stop;
    char *publication_name;
    int publication_autocreate; /* enum pg_autocreate */
    bool publish_via_root;
    struct cdcd_strlist table_include, table_exclude;     /* of "schema.table" */
    struct cdcd_strlist schema_include, schema_exclude;   /* of "schema" */
    struct cdcd_strlist column_include, column_exclude;   /* of "schema.table.column" */
    struct cdcd_strlist message_include, message_exclude; /* of a logical message's prefix */
    int streaming; /* enum pg_streaming, capped by the server's protocol version */
    int origin;    /* enum pg_origin */
    char *spill_dir;
    int64_t spill_max_bytes;
    int64_t status_interval_ms;
    int64_t snapshot_chunk_bytes;
    int64_t connect_timeout_ms;
    int64_t lock_timeout_ms;
};
extern const struct cdcd_option pg_options[];
/* source.c: a copy with the names filled in that depend on the pipeline (slot.name,
 * publication.name, spill.dir). `config` is borrowed for the life of the copy. Everything but the
 * option parser works with a resolved one: s->cfg is resolved; check and drop do it themselves. */
enum cdcd_rc pg_config_resolve(const void *config, const struct cdcd_source_env *env,
                               struct pg_config **out, struct cdcd_error *err);
void pg_config_free(struct pg_config *resolved);

/* ---- conn.c ---- */

struct pg_server {
    int version; /* 150020 */
    bool in_recovery;
    char system_id[32]; /* IDENTIFY_SYSTEM */
    uint32_t timeline;
    char *db; /* current_database(); owned, freed by pg_server_free() */
    int64_t wal_sender_timeout_ms;
};

/* Opens a connection with every setting that shapes text output pinned (DateStyle ISO,
 * IntervalStyle postgres, TimeZone UTC, bytea_output hex, extra_float_digits 3, lc_monetary C,
 * client_encoding UTF8, xmlbinary base64, statement and idle timeouts off ...), in the start-up
 * packet, so that a database's or role's own settings change nothing. replication: a walsender
 * connection (replication=database). The password never appears in an error. Classes: wrong
 * password, database or host name -> CONFIG on the first connection of the process,
 * connection refused, shutdown, too many connections ... -> RETRY. */
enum cdcd_rc pg_connect(const struct pg_config *cfg, bool replication, PGconn **out,
                        struct cdcd_error *err);
/* Error from the result or connection with SQLSTATE mapped to a class, text trimmed, with
 * "what" in front. Frees nothing. */
enum cdcd_rc pg_error(PGconn *c, const PGresult *r, struct cdcd_error *err, const char *fmt, ...)
    CDCD_PRINTF(4, 5);
/* Runs SQL and demands rows (PGRES_TUPLES_OK) or a command (PGRES_COMMAND_OK); *out may be NULL
 * for commands; the caller clears it. nparams text parameters, or 0. */
enum cdcd_rc pg_query(PGconn *c, PGresult **out, struct cdcd_error *err, const char *sql,
                      int nparams, const char *const *params);
/* printf-like; %I quotes an identifier, %L a literal (const char *), %s, %d, %u, %X lsn (pg_lsn),
 * %%; nothing else. */
char *pg_sql(const char *fmt, ...); /* malloc'ed */
bool pg_lsn_parse(const char *s, size_t n, pg_lsn *out);
#define PG_LSN_FMT     "%X/%X"
#define PG_LSN_ARGS(l) (unsigned)((l) >> 32), (unsigned)(l)
enum cdcd_rc pg_server_info(PGconn *sql, PGconn *repl /* may be NULL */, struct pg_server *out,
                            struct cdcd_error *err);
void pg_server_free(struct pg_server *server);
const char *pg_sqlstate(const PGresult *r); /* "" when none */

/* ---- position: the JSON text that the core stores ----
 * {"lsn":"0/16B3748","done":"0/16B3748","tx":"0/16B3F00","ord":5,"sys":"7123...","last":"0/16B3748"}
 */
struct pg_position {
    pg_lsn lsn;  /* the slot may be confirmed up to here; START_REPLICATION from here */
    pg_lsn done; /* transactions whose commit record begins before this are delivered. Normally
                    equal to lsn; beyond it while prepared transactions (two_phase) are held */
    pg_lsn tx;   /* commit LSN of a transaction of which `ord` events are delivered; 0 = none */
    uint64_t ord;
    pg_lsn last; /* source.sequence: end of the last commit, 0 = none yet */
    char sys[32];
};
bool pg_position_parse(struct cdcd_slice json, struct pg_position *out);
void pg_position_write(const struct pg_position *p, struct cdcd_buf *out);

/* ---- types.c ---- */

struct pg_type {
    uint32_t oid;
    char *name;               /* "numeric", "public.mood" */
    char *schema, *bare_name; /* for extension types: bare_name "hstore", "vector", ... */
    char typtype;  /* b base, c composite, d domain, e enum, r range, m multirange, p pseudo */
    char delim;    /* array delimiter, ',' but ';' for box */
    uint32_t elem; /* element type if this is a true array type, else 0 */
    uint32_t base; /* domain: base type */
    int32_t base_typmod;
    char **labels; /* enum, in enumsortorder; NULL-terminated */
};

struct pg_types; /* the catalogue; owned by one thread; grows */
struct pg_types *pg_types_new(void);
void pg_types_free(struct pg_types *t);
/* Reads all types in one query (pg_type left join pg_enum). Again to refresh. */
enum cdcd_rc pg_types_load(struct pg_types *t, PGconn *sql, struct cdcd_error *err);
/* Reads one type (and what it needs) if unknown or if `refresh`. NULL-safe sql: then only what is
 * known. Unknown stays unknown: *out NULL, still OK. */
enum cdcd_rc pg_types_get(struct pg_types *t, PGconn *sql, uint32_t oid, bool refresh,
                          const struct pg_type **out, struct cdcd_error *err);
/* For tests: adds an entry. */
void pg_types_put(struct pg_types *t, const struct pg_type *type);

/* Fills type, length, scale, labels, elem, type_name, source_type, source_data of `c` (strings and
 * structs in the schema's arena) from a type oid and modifier. Unknown oids become STRING.
 * `unknown_out` (may be NULL) tells that the oid was not in the catalogue. */
void pg_column_set_type(struct pg_types *t, struct cdcd_schema *s, struct cdcd_column *c,
                        uint32_t oid, int32_t typmod, bool *unknown_out);

/* One value in the server's text output form -> cell. The bytes `text` must live as long as the
 * arena (they are pointed to where that is possible). DATA error naming the column and the value
 * (cut) when it is not of the type. Hot path: one call a column. */
enum cdcd_rc pg_cell_parse(const struct cdcd_column *c, const char *text, size_t len,
                           struct cdcd_arena *a, struct cdcd_cell *out, struct cdcd_error *err);

/* ---- catalog.c ---- */

/* One column of a Relation message or of the catalogue. */
struct pg_attr {
    struct cdcd_slice name;
    uint32_t type;
    int32_t typmod;
    bool identity; /* flag 1 of the Relation message */
};

struct pg_relation {
    uint32_t oid;
    struct cdcd_slice schema, table;
    char replident; /* d default, n nothing, f full, i index */
    size_t nattrs;
    struct pg_attr *attrs;
};

/* What a decoder keeps for a relation: which attribute of a tuple goes to which column. */
struct pg_table {
    uint32_t oid;
    char replident;
    bool captured;              /* passes the include and exclude lists */
    struct cdcd_schema *schema; /* owned reference; NULL when not captured */
    size_t nattrs;              /* as in the tuples */
    int32_t *column;            /* attribute -> column of the schema, -1: excluded */
    bool *identity;             /* attribute is part of the replica identity */
    struct cdcd_slice label;    /* "schema.table", owned by the schema or by the table */
    uint64_t tx_seq, tx_count;  /* the stream's data_collection_order counter */
};

struct pg_filter; /* compiled include and exclude lists */
enum cdcd_rc pg_filter_new(const struct pg_config *cfg, struct pg_filter **out,
                           struct cdcd_error *err);
void pg_filter_free(struct pg_filter *f);
bool pg_filter_table(const struct pg_filter *f, const char *schema, const char *table);
bool pg_filter_column(const struct pg_filter *f, const char *schema, const char *table,
                      const char *column);

/* Looks up what a Relation message does not carry (primary key and its order, nullability,
 * defaults, enum labels) and builds the table. With sql NULL (unit tests, fuzzing) the message
 * alone decides. Columns of the message are authoritative; the catalogue is read now and may be
 * newer: what does not fit the message is ignored. The key: the primary key's columns in its
 * order; the replica identity index's columns where that index is set and lacks some of those, or
 * there is no primary key; else none. Never the columns of REPLICA IDENTITY FULL. */
enum cdcd_rc pg_table_build(const struct pg_relation *rel, const char *db, PGconn *sql,
                            struct pg_types *types, const struct pg_filter *filter,
                            struct pg_table **out, struct cdcd_error *err);
void pg_table_free(struct pg_table *t);

/* The relation as the catalogue has it now, for snapshots: columns that COPY and pgoutput send
 * (no dropped ones; generated stored ones only if the publication publishes them; column lists of
 * the publication respected). */
enum cdcd_rc pg_relation_read(PGconn *sql, uint32_t oid, const char *publication,
                              struct cdcd_arena *a, struct pg_relation *out,
                              struct cdcd_error *err);

/* ---- slot.c, publication.c ---- */

struct pg_slot {
    bool exists, active, temporary, two_phase, failover, synced;
    int active_pid;
    char plugin[64], database[64];
    pg_lsn restart_lsn, confirmed_flush;
    char wal_status[16];   /* reserved extended unreserved lost */
    char invalidation[64]; /* 16+: reason or "" */
};
enum cdcd_rc pg_slot_read(PGconn *sql, int server_version, const char *name, struct pg_slot *out,
                          struct cdcd_error *err);
/* Errors that name slot, positions and mend:
 *   LOSS  missing though a position is stored, lost, invalidated, wrong plugin or database
 *         (CONFIG), confirmed beyond the stored position, server behind the stored position,
 *         another system identifier
 *   RETRY active for another pid ("is active for PID n") */
enum cdcd_rc pg_slot_verify(const struct pg_slot *slot, const char *name, const char *db,
                            const struct pg_server *server, pg_lsn server_lsn,
                            const struct pg_position *stored /* NULL: none */,
                            struct cdcd_error *err);
/* Creates the slot over a replication connection (not s->repl: the caller's choice). snapshot:
 * EXPORT_SNAPSHOT, the name is in snapshot_out (valid while the connection lives and runs no other
 * command). Waits for the transactions that run now; logs what it waits for, and gives up with
 * RETRY when env->stopping says so. s->sql is used for the hint and may be NULL. */
enum cdcd_rc pg_slot_create(PGconn *repl, struct cdcd_source *s, const char *name, bool temporary,
                            bool snapshot, pg_lsn *consistent_point, char snapshot_out[64],
                            struct cdcd_error *err);
/* Where the server's log ends now: insert position, on a standby what is replayed. */
enum cdcd_rc pg_slot_server_lsn(PGconn *sql, bool in_recovery, pg_lsn *out, struct cdcd_error *err);
/* Creates the publication by publication.autocreate.mode, or verifies the existing one (all
 * captured tables are in it, publishes insert, update, delete [truncate], via root as configured).
 * created tells whether it was made now. */
enum cdcd_rc pg_publication_ensure(PGconn *sql, const struct pg_config *cfg,
                                   const struct pg_filter *filter, int server_version,
                                   bool *created, struct cdcd_error *err);

/* ---- spool.c: see spool.h ----  decode.c: see decode.h ----  stream.c: see stream.h ---- */

/* ---- the source ---- */
struct pg_stream;
struct pg_snapshot;

struct cdcd_source {
    const struct pg_config *cfg;
    const struct cdcd_source_env *env;
    PGconn *sql;  /* ordinary connection: catalogue, slot state */
    PGconn *repl; /* replication connection of the stream alone, streaming when stream != NULL;
                     snapshots have their own */
    struct pg_server server;
    struct pg_types *types;
    struct pg_filter *filter;
    struct pg_stream *stream;
    struct pg_snapshot *snapshot;
    bool own_publication; /* ephemeral: made by this source, dropped when it closes */
};

/* ---- stream.c ---- */
enum cdcd_rc pg_stream_resume(struct cdcd_source *s, struct cdcd_slice from,
                              struct cdcd_buf *position, struct cdcd_error *err);
enum cdcd_rc pg_stream_start(struct cdcd_source *s, struct cdcd_slice from, struct cdcd_error *err);
enum cdcd_rc pg_stream_read(struct cdcd_source *s, struct cdcd_batch *b, int64_t deadline_ms,
                            struct cdcd_error *err);
enum cdcd_rc pg_stream_stop_at(struct cdcd_source *s, struct cdcd_slice position,
                               struct cdcd_error *err);
void pg_stream_ack(struct cdcd_source *s, struct cdcd_slice position);
enum cdcd_rc pg_stream_idle(struct cdcd_source *s, int64_t now, struct cdcd_error *err);
void pg_stream_lag(struct cdcd_source *s, struct cdcd_lag *out);
void pg_stream_free(struct pg_stream *st);

/* ---- snapshot.c ---- */
enum cdcd_rc pg_snapshot_begin(struct cdcd_source *s, struct cdcd_slice from,
                               struct cdcd_buf *position, struct cdcd_error *err);
enum cdcd_rc pg_snapshot_tables(struct cdcd_source *s, struct cdcd_snapshot_tables *out,
                                struct cdcd_error *err);
enum cdcd_rc pg_snapshot_plan(struct cdcd_source *s, const struct cdcd_snapshot_table *t,
                              struct cdcd_chunks *out, struct cdcd_error *err);
enum cdcd_rc pg_snapshot_idle(struct cdcd_source *s, int64_t now, struct cdcd_error *err);
void pg_snapshot_end(struct cdcd_source *s);
enum cdcd_rc pg_worker_open(struct cdcd_source *s, struct cdcd_worker **out,
                            struct cdcd_error *err);
void pg_worker_close(struct cdcd_worker *w);
enum cdcd_rc pg_worker_begin(struct cdcd_worker *w, const struct cdcd_snapshot_table *t,
                             const struct cdcd_chunk *chunk, struct cdcd_error *err);
enum cdcd_rc pg_worker_read(struct cdcd_worker *w, struct cdcd_batch *b, struct cdcd_error *err);

/* ---- check.c ---- */
enum cdcd_rc pg_check(const void *config, const struct cdcd_source_env *env,
                      struct cdcd_report *report, struct cdcd_error *err);
enum cdcd_rc pg_drop(const void *config, const struct cdcd_source_env *env, bool dry,
                     struct cdcd_report *report, struct cdcd_error *err);

/* The source block's columns: schema, table, txId, lsn, xmin, origin, origin_lsn. */
enum {
    PG_SRC_SCHEMA,
    PG_SRC_TABLE,
    PG_SRC_TXID,
    PG_SRC_LSN,
    PG_SRC_XMIN,
    PG_SRC_ORIGIN,
    PG_SRC_ORIGIN_LSN,
    PG_SRC_COUNT
};

#endif
