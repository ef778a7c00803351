/*
 * my.h: what the files of the MySQL and MariaDB plugin share.
 *
 *   conn.c        connections, queries, errors
 *   url.c, shim.c, server.c, grants.c   where the server is, client libraries, what it says of
 *                 itself, what the account may do                  url.h, shim.h, grants.h
 *   dump.c        the raw dump of the binlog; never parses an event
 *   gtid.c        GTID sets of both servers
 *   position.c    the resume position as JSON
 *   filter.c      include and exclude lists
 *   binlog*.c, decoder.h, crc32.c   bytes of events -> struct my_event; no socket      binlog.h
 *   payload.c     compressed transactions and compressed MariaDB events                 binlog.h
 *   rows.c        row images -> cells                                                   binlog.h
 *   values*.c, number.c, charset*.c, collation_table.c, json*.c   single values         value.h
 *   snapshot_value.c   the same values as a query gives them                            value.h
 *   table.c       the model of a table; as a note and back                              table.h
 *   catalog.c     information_schema -> models                                          table.h
 *   ddl*.c        statements -> what they are, changed models, schema changes   table.h, ddl.h
 *   schema*.c     model and table map -> struct cdcd_schema, and how to decode a row    table.h
 *   shapes.c      all tables by name and time, their notes                              table.h
 *   group.c       one transaction of the log, held until its end is known               stream.h
 *   stream*.c     the streaming state: groups, skip after a resume, barrier             stream.h
 *   xa.c          prepared transactions of the log                                      stream.h
 *   change.c      one row -> its event                                                  stream.h
 *   snapshot*.c   the view of all workers, tables, chunks, rows                         snapshot.h
 *   check.c       the checks of `cdcd check`, and `cdcd drop`
 *   source.c      options and the ops table
 */
#ifndef CDCD_PLUGIN_MYSQL_MY_H
#define CDCD_PLUGIN_MYSQL_MY_H

#include <cdcd/log.h>
#include <cdcd/plugin.h>

#include <mysql.h>

/* ---- options ---- */

enum my_lock_mode { MY_LOCK_AUTO, MY_LOCK_NONE, MY_LOCK_MINIMAL };
enum my_statement_mode { MY_STATEMENT_FAIL, MY_STATEMENT_WARN };
enum my_row_image_mode { MY_IMAGE_FAIL, MY_IMAGE_PLACEHOLDER };

struct my_config {
    const char *pipeline; /* set by my_config_resolve(); "" before */
    char *url;            /* mysql://user:password@host:port/db?ssl-mode=...&socket=... */
    int64_t server_id;    /* 0: chosen from the pipeline's name */
    struct cdcd_strlist database_include, database_exclude; /* of "db" */
    struct cdcd_strlist table_include, table_exclude;       /* of "db.table" */
    struct cdcd_strlist column_include, column_exclude;     /* of "db.table.column" */
    bool include_query; /* source.query from rows query and annotate events */
    int statement_mode; /* enum my_statement_mode: a logged statement that changes a captured table
                         */
    int row_image_mode; /* enum my_row_image_mode: a row image that lacks columns */
    int lock_mode;      /* enum my_lock_mode: snapshot.locking.mode auto | none | minimal */
    int64_t lock_timeout_ms;
    int64_t snapshot_chunk_rows;
    int64_t connect_timeout_ms;
    int64_t heartbeat_ms; /* of the dump: the server shows life this often */
    int64_t spill_max_bytes;
    char *spill_dir;
    char *ssl_ca, *ssl_cert, *ssl_key;
    int ssl_mode; /* disabled | preferred | required | verify_ca | verify_identity */
};
extern const struct cdcd_option my_options[];
/* source.c: a copy with what depends on the pipeline filled in. */
enum cdcd_rc my_config_resolve(const void *config, const struct cdcd_source_env *env,
                               struct my_config **out, struct cdcd_error *err);
void my_config_free(struct my_config *resolved);

/* ---- conn.c ---- */

enum my_flavor { MY_MYSQL, MY_MARIADB };

struct my_server {
    enum my_flavor flavor;
    int version;   /* 90704, 101119 */
    char text[64]; /* as the server says it */
    char uuid[40]; /* server_uuid; MariaDB: "" */
    uint32_t server_id;
    bool gtid; /* the log has GTIDs: gtid_mode ON; MariaDB: always */
    bool log_bin;
    char binlog_format[16], row_image[16], row_metadata[16];
    int lower_case_table_names;
    char charset[32], collation[64]; /* character_set_server, collation_server */
};

/* Connects, and pins the session: utf8mb4 names, time_zone +00:00, sql_mode without
 * NO_BACKSLASH_ESCAPES, ANSI_QUOTES, PAD_CHAR_TO_FULL_LENGTH, NO_ZERO_DATE ..., autocommit on,
 * long net timeouts, lock_wait_timeout. Password never in an error. Classes: wrong password, host
 * name or database -> CONFIG on the first connection of the process; refused, shutdown, too many
 * connections -> RETRY. */
enum cdcd_rc my_connect(const struct my_config *cfg, MYSQL **out, struct cdcd_error *err);
/* Error from the connection, class by errno, "what" in front. LOSS for 1236 texts that mean
 * purged, ahead, or bad start position (see my_dump_error in conn.c). */
enum cdcd_rc my_error(MYSQL *m, struct cdcd_error *err, const char *fmt, ...) CDCD_PRINTF(3, 4);
/* Runs SQL. out NULL: wants no rows. Stored result. */
enum cdcd_rc my_query(MYSQL *m, MYSQL_RES **out, struct cdcd_error *err, const char *sql);
/* The same with printf-like text: %I quotes an identifier, %L a string literal, %s %d %u %llu %%.
 */
enum cdcd_rc my_queryf(MYSQL *m, MYSQL_RES **out, struct cdcd_error *err, const char *fmt, ...);
char *my_sql(const char *fmt, ...); /* malloc'ed; the same directives */
enum cdcd_rc my_server_info(MYSQL *m, struct my_server *out, struct cdcd_error *err);
/* server.c: whether anything that the filter captures can be seen. CONFIG error when no database of
 * it can, and the account may not read all: it lacks SELECT, and a snapshot would be of nothing. A
 * warning when there are databases, but no tables yet. */
struct my_filter;
enum cdcd_rc my_server_sees(MYSQL *m, const struct my_server *server, const struct my_filter *f,
                            struct cdcd_error *err);

/* The current end of the log. gtid: executed set (MySQL) or gtid_binlog_pos (MariaDB), "" without
 * GTIDs; owned by the caller, as file. */
struct my_log_end {
    char *file, *gtid;
    uint64_t pos;
};
enum cdcd_rc my_log_end(MYSQL *m, const struct my_server *server, struct my_log_end *out,
                        struct cdcd_error *err);
void my_log_end_free(struct my_log_end *e);

/* The raw dump. A connection of its own. */
struct my_dump;
struct my_position;
/* Registers nothing permanent; checks that the server_id is nobody else's. Starts at the position:
 * by GTID set where position->gtid is not empty, else by file and pos. CRC32 on, heartbeats on. */
enum cdcd_rc my_dump_open(const struct my_config *cfg, const struct my_server *server,
                          const struct my_position *from, struct my_dump **out,
                          struct cdcd_error *err);
void my_dump_close(struct my_dump *d);
/* CONFIG error when another client is registered at the server under our server_id. */
enum cdcd_rc my_dump_check_double(MYSQL *m, const struct my_config *cfg,
                                  const struct my_server *server, struct cdcd_error *err);
/* One event, header and checksum included, borrowed until the next call. AGAIN: none before the
 * deadline (monotonic ms; 0: do not wait). RETRY when the connection breaks, LOSS when the server
 * says that the log is purged or it lacks the GTIDs. An EOF packet is RETRY. */
enum cdcd_rc my_dump_read(struct my_dump *d, int64_t deadline_ms, struct cdcd_slice *event,
                          struct cdcd_error *err);
/* True when an event is already here: reading on will not wait. */
bool my_dump_ready(struct my_dump *d);

/* ---- gtid.c ---- */

/* Of MySQL ("uuid[:tag]:1-5:7,...") or MariaDB ("domain-server-seq,...": newest of each domain). */
struct my_gtid_set;
struct my_gtid {
    enum my_flavor flavor;
    uint8_t uuid[16];
    char tag[33];            /* MySQL; "" none */
    uint32_t domain, server; /* MariaDB */
    uint64_t number;
};
struct my_gtid_set *my_gtid_set_new(enum my_flavor flavor);
void my_gtid_set_free(struct my_gtid_set *s);
struct my_gtid_set *my_gtid_set_copy(const struct my_gtid_set *s);
/* False: not a set of this flavor. Blanks and new lines are skipped. */
bool my_gtid_set_parse(const char *text, size_t n, struct my_gtid_set *out);
void my_gtid_set_write(const struct my_gtid_set *s, struct cdcd_buf *out);
void my_gtid_set_add(struct my_gtid_set *s, const struct my_gtid *g);
/* MariaDB: the set has this or a later number in its domain. */
bool my_gtid_set_has(const struct my_gtid_set *s, const struct my_gtid *g);
bool my_gtid_set_contains(const struct my_gtid_set *s, const struct my_gtid_set *sub);
bool my_gtid_set_empty(const struct my_gtid_set *s);
/* MySQL: the data of COM_BINLOG_DUMP_GTID (8.3+ servers: the tagged form when a tag is in it). */
void my_gtid_set_encode(const struct my_gtid_set *s, struct cdcd_buf *out);
/* "uuid[:tag]:number" or "domain-server-number", as Debezium's source.gtid. */
void my_gtid_write(const struct my_gtid *g, struct cdcd_buf *out);
bool my_gtid_parse(const char *text, size_t n, enum my_flavor flavor, struct my_gtid *out);

/* ---- position.c: the JSON text that the core stores ----
 * {"flavor":"mysql","server":"UUID","gtid":"...","file":"binlog.000003","pos":4711,"seq":17...,
 *  "ord":5,"tx":"UUID:66","done":...,"done_file":...,"done_pos":...}
 *
 * gtid, file and pos: everything before is delivered, the stream is asked for from here. While XA
 * transactions are prepared: MySQL's gtid lacks theirs, so the server sends them again; without
 * such sets (MariaDB, file and offset) gtid, file and pos stay before the oldest prepared group
 * and done, done_file, done_pos tell up to where all other groups are delivered.
 */
struct my_position {
    enum my_flavor flavor;
    char *server; /* server_uuid, or MariaDB's server_id; matters where there is no GTID */
    char *gtid;   /* "": no GTIDs */
    char *file;
    uint64_t pos; /* 64 bits: added up from event sizes, never taken from end_log_pos alone */
    uint64_t seq; /* transactions so far, counted from the wall clock (us) of the first position:
                     cdcd.pos's commit part of the group that ended here. So positions grow over
                     a switch to another server, a reset of its logs, and a new snapshot */
    uint64_t ord; /* events delivered of the next group */
    char *tx;     /* its GTID, for the message when another one comes instead; "" */
    char *done, *done_file; /* NULL: nothing is prepared */
    uint64_t done_pos;
};
bool my_position_parse(struct cdcd_slice json, struct my_position *out); /* free it after */
void my_position_write(const struct my_position *p, struct cdcd_buf *out);
void my_position_free(struct my_position *p);
void my_position_copy(const struct my_position *p, struct my_position *out);
void my_describe(struct cdcd_slice position, struct cdcd_buf *out);

/* ---- filter.c ---- */
struct my_filter;
enum cdcd_rc my_filter_new(const struct my_config *cfg, struct my_filter **out,
                           struct cdcd_error *err);
void my_filter_free(struct my_filter *f);
/* System databases (mysql, sys, information_schema, performance_schema) never pass. With
 * lower_case_table_names != 0 names are compared without regard to case. */
void my_filter_fold(struct my_filter *f, bool fold);
bool my_filter_database(const struct my_filter *f, const char *db);
bool my_filter_table(const struct my_filter *f, const char *db, const char *table);
bool my_filter_column(const struct my_filter *f, const char *db, const char *table,
                      const char *column);

/* ---- the source ---- */
struct my_shapes;
struct my_stream;
struct my_snapshot;

struct cdcd_source {
    const struct my_config *cfg;
    const struct cdcd_source_env *env;
    MYSQL *sql; /* ordinary connection: catalogue, variables; may be closed and reopened */
    struct my_server server;
    struct my_filter *filter;
    /* As of the position that start() gets: open() loads them from the notes; where there is no
     * position yet, resume and snapshot_begin read them anew. */
    struct my_shapes *shapes;
    struct my_stream *stream;
    struct my_snapshot *snapshot;
    struct my_position view; /* source.c: where the newest view stands; all NULL: none yet */
};
/* source.c: s->sql, reconnected if it has died meanwhile. */
enum cdcd_rc my_source_sql(struct cdcd_source *s, MYSQL **out, struct cdcd_error *err);

/* ---- check.c ---- */
enum cdcd_rc my_check(const void *config, const struct cdcd_source_env *env,
                      struct cdcd_report *report, struct cdcd_error *err);
enum cdcd_rc my_drop(const void *config, const struct cdcd_source_env *env, bool dry,
                     struct cdcd_report *report, struct cdcd_error *err);
/* What must be right before anything is captured: log_bin, binlog_format ROW or MIXED, privileges.
 * CONFIG error with the mend. Also called by open. */
enum cdcd_rc my_check_server(MYSQL *m, const struct my_server *server, struct cdcd_error *err);

/* The source block's columns, in Debezium's order. */
enum {
    MY_SRC_TABLE,
    MY_SRC_SERVER_ID,
    MY_SRC_GTID,
    MY_SRC_FILE,
    MY_SRC_POS,
    MY_SRC_ROW,
    MY_SRC_THREAD,
    MY_SRC_QUERY,
    MY_SRC_COUNT
};

#endif
