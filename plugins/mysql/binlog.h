/*
 * binlog.h: one binlog event -> struct my_event; row images -> cells. Pure functions over bytes:
 * no socket, no file, so that tests and fuzzers can feed them anything. Every length is checked
 * against the bytes that are there (cursor.h).
 */
#ifndef CDCD_PLUGIN_MYSQL_BINLOG_H
#define CDCD_PLUGIN_MYSQL_BINLOG_H

#include "my.h"

/* What an event means; types that mean the same have one kind. */
enum my_event_kind {
    MY_EV_IGNORE,     /* nothing for us: known and harmless, or unknown with the ignorable flag */
    MY_EV_FORMAT,     /* format description */
    MY_EV_ROTATE,     /* file, pos */
    MY_EV_HEARTBEAT,  /* file, pos (v2: 64 bits) */
    MY_EV_GTID,       /* MySQL GTID, tagged GTID, ANONYMOUS_GTID (has_gtid false); MariaDB GTID */
    MY_EV_QUERY,      /* thread, db, text: BEGIN, COMMIT, ROLLBACK, SAVEPOINT, XA ..., DDL, DML */
    MY_EV_XID,        /* commit */
    MY_EV_XA_PREPARE, /* xid; one_phase: is a commit */
    MY_EV_TABLE_MAP,
    MY_EV_ROWS,
    MY_EV_ROWS_QUERY,     /* text: MySQL ROWS_QUERY, MariaDB ANNOTATE_ROWS */
    MY_EV_PAYLOAD,        /* MySQL compressed transaction: iterate with my_payload_* */
    MY_EV_INCIDENT,       /* the log has a gap: text */
    MY_EV_STATEMENT_DATA, /* LOAD DATA in statement format, INTVAR, RAND, USER_VAR: a statement
                             follows */
    MY_EV_STOP,
};

enum my_rows_op { MY_ROWS_WRITE, MY_ROWS_UPDATE, MY_ROWS_DELETE, MY_ROWS_PARTIAL_UPDATE };

/* Of a TABLE_MAP event. Arrays are the decoder's, valid until its next table map; names and
 * strings point into the event. Optional metadata (MySQL's
 * Table_map_event::Optional_metadata_field_type, MariaDB the same) is there as far as the server
 * logs it. */
struct my_map_column {
    uint8_t type;  /* real type: STRING resolved to ENUM, SET or STRING */
    uint16_t meta; /* as logged (real-type byte removed from STRING: the length) */
    bool nullable;
    bool has_sign, unsigned_;
    bool has_collation;
    uint32_t collation;
    struct cdcd_slice name;        /* ptr NULL: not logged */
    uint32_t first_label, nlabels; /* ENUM, SET: in labels; in the column's own charset */
    uint32_t geometry;             /* geometry type, 0 not logged */
    uint32_t dimension;            /* VECTOR, 0 not logged */
    bool has_visibility, visible;
};
struct my_table_map {
    uint64_t id;
    struct cdcd_slice db, table; /* utf8mb3 */
    uint32_t ncolumns;
    struct my_map_column *columns;
    struct cdcd_slice *labels;
    bool full; /* names are there */
    bool has_keys;
    uint32_t nkeys;
    uint32_t *keys;        /* column numbers, in key order */
    uint32_t *key_prefix;  /* 0: the whole column */
    struct cdcd_slice raw; /* the body: equal bytes mean an equal map */
};

struct my_rows {
    enum my_rows_op op;
    uint64_t table_id;
    uint16_t flags; /* 1: end of statement */
    uint32_t ncolumns;
    const uint8_t *present[2]; /* bitmaps of before (or the only one) and after images */
    struct cdcd_slice body;    /* the images; uncompressed, the decoder's until its next event */
};

struct my_event {
    enum my_event_kind kind;
    uint8_t type; /* as logged */
    uint16_t flags;
    uint32_t timestamp; /* seconds */
    uint32_t server_id;
    uint32_t size;          /* of the event as logged, header and checksum included */
    uint32_t end_pos;       /* as logged: 32 bits, wraps; 0 inside a payload */
    struct cdcd_slice body; /* after the header, without checksum */
    struct cdcd_slice raw;  /* header and body, without checksum */
    union {
        struct {
            struct cdcd_slice file;
            uint64_t pos;
        } rotate; /* HEARTBEAT too */
        struct {
            struct my_gtid id;
            bool has_gtid;
            bool standalone; /* MariaDB: no COMMIT follows, the group is one statement */
            bool ddl;        /* MariaDB: FL_DDL */
            bool prepared_xa, completed_xa; /* MariaDB FL_PREPARED_XA, FL_COMPLETED_XA */
            struct cdcd_slice xid; /* MariaDB: of an XA group, "X'..',X'..',1" like MySQL's */
            uint64_t commit_us, original_commit_us; /* MySQL 8; 0: not logged */
            uint64_t transaction_length;
        } gtid;
        struct {
            uint32_t thread;
            uint16_t error_code;
            struct cdcd_slice db, text; /* text uncompressed */
            uint16_t charset_client;    /* collation id, 0 unknown: the text's charset */
            bool sql_mode_no_backslash, sql_mode_ansi_quotes;
            uint32_t collation_database, collation_server; /* 0 not logged */
        } query;
        struct {
            bool one_phase;
            char xid[300]; /* "X'67',X'62',1": formatted as in XA COMMIT statements of the log */
        } xa;
        struct my_table_map *map; /* the decoder's */
        struct my_rows rows;
        struct cdcd_slice text; /* ROWS_QUERY, INCIDENT */
    };
};

/* Keeps the format description (checksum algorithm, post-header lengths) and scratch memory. */
struct my_decoder;
struct my_decoder *my_decoder_new(enum my_flavor flavor);
void my_decoder_free(struct my_decoder *d);
/* One event whole. `inner`: from a payload or a held group (no checksum). Errors: FATAL with type,
 * reason and the first bytes; a checksum that is wrong is RETRY the first time it is seen in a
 * process and FATAL then. An unknown type without LOG_EVENT_IGNORABLE_F (0x80) is FATAL: its
 * message names type and position and the versions that are supported. */
enum cdcd_rc my_decode(struct my_decoder *d, struct cdcd_slice event, bool inner,
                       struct my_event *out, struct cdcd_error *err);

/* payload.c: the events in a MY_EV_PAYLOAD event, inflated one after the other. The compressed
 * bytes are e's and must stay; an event in it may have `max` bytes (an error beyond). FATAL "built
 * without zstd" when there is none. */
struct my_payload;
enum cdcd_rc my_payload_open(const struct my_event *e, size_t max, struct my_payload **out,
                             struct cdcd_error *err);
/* END after the last one; borrowed until the next call. */
enum cdcd_rc my_payload_next(struct my_payload *p, struct cdcd_slice *event,
                             struct cdcd_error *err);
void my_payload_close(struct my_payload *p);

/* rows.c. How to decode one column; made by schema.c (my_shape). */
struct my_charset; /* charset.c */
struct my_column_decoder {
    uint8_t type; /* of the table map */
    uint16_t meta;
    bool unsigned_;
    uint8_t special;                  /* enum my_special */
    int32_t column;                   /* of the cdcd_schema; -1: excluded, skipped over */
    const struct my_charset *charset; /* text: NULL means UTF-8 already */
    const char *const *labels;        /* ENUM, SET: UTF-8 */
    uint32_t nlabels;
    const char *name; /* for messages */
    bool nullable;
};
enum my_special {
    MY_PLAIN = 0,
    MY_BINARY, /* bytes: VARBINARY, BLOBs, BINARY(n), which is padded with 0x00 up to meta; any
                  string type without it is text */
    MY_UUID,   /* MariaDB, 16 bytes, trailing zeros cut off */
    MY_INET6,
    MY_INET4,
    MY_JSON_TEXT, /* MariaDB: longtext with json_valid */
    MY_BOOL,      /* BIT(1) */
    MY_POINT,     /* GEOMETRY of a POINT column: x and y; other geometry columns are MY_PLAIN */
};
struct my_shape; /* table.h */

/* A cursor over the images of one rows event. */
struct my_row_reader {
    const struct my_shape *shape;
    const struct my_rows *rows;
    const uint8_t *p, *end;
};
void my_rows_begin(const struct my_shape *shape, const struct my_rows *rows,
                   struct my_row_reader *out);
/* The next row: *before and *after are arrays of shape->schema->ncolumns cells in the arena, or
 * NULL where the operation has no such image. What an image lacks is ABSENT (never NULL). Bytes are
 * copied into the arena. Partial JSON updates: the diffs are applied to the before image's value;
 * DATA error naming the column when the before image lacks it. END after the last row. FATAL when
 * the bytes do not fit the shape, DATA when a value has no meaning; messages name table and column.
 */
enum cdcd_rc my_rows_next(struct my_row_reader *r, struct cdcd_arena *a, struct cdcd_cell **before,
                          struct cdcd_cell **after, struct cdcd_error *err);

#endif
