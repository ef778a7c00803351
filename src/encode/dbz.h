/*
 * dbz.h: what the files of the Debezium encoder share.
 *
 *   debezium.c          the encoder, rows -> records
 *   debezium_other.c    records that belong to no table
 *   debezium_document.c documents -> records
 *   debezium_options.c  the option table
 *   debezium_table.c    what is computed once for a schema: templates, key, headers
 *   debezium_schema.c   the schema text of schemas.enable
 *   debezium_announce.c the schemas of rows as records of their own
 *   debezium_value.c    the table of forms; cells -> JSON
 *   debezium_number.c   floats and decimals
 *   debezium_time.c     dates, times, intervals
 *   debezium_default.c  column defaults, zero values, the placeholder of values not sent
 *   topic.c             topics
 */
#ifndef CDCD_ENCODE_DBZ_H
#define CDCD_ENCODE_DBZ_H

#include "encoder.h"
#include "topic.h"

#include <cdcd/json.h>
#include <cdcd/plugin.h>

#include <regex.h>

struct dbz;
struct dbz_column;

/* How a column is written: its type and the handling modes together. */
enum dbz_form {
    DBZ_BOOL,
    DBZ_INT8,
    DBZ_INT16,
    DBZ_INT32,
    DBZ_INT64,
    DBZ_UINT64,
    DBZ_UINT64_WRAPPED,
    DBZ_UINT64_DECIMAL,
    DBZ_FLOAT32,
    DBZ_FLOAT64,
    DBZ_DECIMAL,
    DBZ_VARDECIMAL,
    DBZ_DECIMAL_DOUBLE,
    DBZ_DECIMAL_STRING,
    DBZ_STRING,
    DBZ_BYTES,
    DBZ_BYTES_BASE64,
    DBZ_BYTES_BASE64_URL,
    DBZ_BYTES_HEX,
    DBZ_BIT,
    DBZ_BITS,
    DBZ_DATE,
    DBZ_DATE_CONNECT,
    DBZ_DATE_ISO,
    DBZ_TIME_MS,
    DBZ_TIME_US,
    DBZ_TIME_NS,
    DBZ_TIME_CONNECT,
    DBZ_TIME_ISO,
    DBZ_TIMETZ,
    DBZ_TS_MS,
    DBZ_TS_US,
    DBZ_TS_NS,
    DBZ_TS_CONNECT,
    DBZ_TS_ISO,
    DBZ_TSTZ,
    DBZ_INTERVAL,
    DBZ_INTERVAL_ISO,
    DBZ_UUID,
    DBZ_JSON,
    DBZ_XML,
    DBZ_ENUM,
    DBZ_ENUMSET,
    DBZ_LTREE,
    DBZ_TSVECTOR,
    DBZ_HSTORE_JSON,
    DBZ_HSTORE_MAP,
    DBZ_POINT,
    DBZ_GEOMETRY,
    DBZ_VECTOR64,
    DBZ_VECTOR32,
    DBZ_SPARSEVEC,
    DBZ_YEAR,
    DBZ_ARRAY,
    DBZ_FORMS
};

/* Writes a cell that is neither NULL, ABSENT nor UNCHANGED. False: d->reason says why not. */
typedef bool dbz_write_fn(struct dbz *d, struct cdcd_writer *w, const struct dbz_column *c,
                          const struct cdcd_cell *v);

struct dbz_form_info {
    const char *type; /* of the Connect schema */
    const char *name; /* its logical name, or NULL */
    const char *doc;
    const char *zero; /* JSON that stands for an absent value of a NOT NULL column */
    dbz_write_fn *write;
};
extern const struct dbz_form_info dbz_forms[DBZ_FORMS];

struct dbz_column {
    const struct cdcd_column *col; /* borrowed from the schema */
    dbz_write_fn *write;
    enum dbz_form form;
    struct cdcd_slice name;        /* `"id":`, with a comma before it from the second on */
    struct cdcd_slice absent;      /* for ABSENT */
    struct cdcd_slice unavailable; /* for UNCHANGED */
    struct cdcd_slice default_;    /* the column's default as JSON; ptr NULL: none */
    const struct dbz_column *elem; /* of an array */
};

/* What conversions need of the configuration, and their scratch. One encoder, one thread. */
struct dbz {
    const struct cdcd_debezium_config *cfg;
    bool time_micros;                   /* of the source's ops */
    bool key_warned;                    /* of zero dates in keys */
    struct cdcd_slice placeholder;      /* bytes */
    struct cdcd_slice placeholder_json; /* as a JSON string */
    char placeholder_uuid[37];          /* name-based UUID of the bytes */
    struct cdcd_buf scratch;            /* of one conversion */
    const struct dbz_column *bad;       /* column of the last failure */
    char reason[512];                   /* what is wrong with its value, and what to do */
};

bool dbz_fail(struct dbz *d, const struct dbz_column *c, const char *fmt, ...) CDCD_PRINTF(3, 4);

/* Any cell, in place. */
static inline bool dbz_write(struct dbz *d, struct cdcd_writer *w, const struct dbz_column *c,
                             const struct cdcd_cell *v)
{
    switch (v->kind) {
    case CDCD_C_NULL: cdcd_writer_lit(w, "null"); return true;
    case CDCD_C_ABSENT: cdcd_writer_add(w, c->absent.ptr, c->absent.len); return true;
    case CDCD_C_UNCHANGED: cdcd_writer_add(w, c->unavailable.ptr, c->unavailable.len); return true;
    default: return c->write(d, w, c, v);
    }
}

static inline void dbz_add(struct cdcd_writer *w, struct cdcd_slice s)
{
    cdcd_writer_add(w, s.ptr, s.len);
}
static inline void dbz_adds(struct cdcd_writer *w, const char *s)
{
    cdcd_writer_add(w, s, strlen(s));
}

/* ---- debezium_value.c ---- */
enum dbz_form dbz_form_of(const struct dbz *d, const struct cdcd_column *col);
/* The cell is not of the kind that the column's type demands. */
bool dbz_wrong_kind(struct dbz *d, const struct dbz_column *c, const struct cdcd_cell *v);

/* ---- debezium_number.c ---- */
dbz_write_fn dbz_write_float, dbz_write_decimal, dbz_write_vardecimal, dbz_write_decimal_double,
    dbz_write_decimal_string;
dbz_write_fn dbz_write_uint64_decimal;
/* The shortest text that reads back the same. */
void dbz_put_double(struct cdcd_writer *w, double v);
/* A FLOAT cell as a double. */
bool dbz_float_value(const struct cdcd_cell *v, double *out);

/* ---- debezium_time.c ---- */
dbz_write_fn dbz_write_date, dbz_write_date_iso, dbz_write_time_ms, dbz_write_time_us,
    dbz_write_time_ns, dbz_write_time_iso, dbz_write_ts_ms, dbz_write_ts_us, dbz_write_ts_ns,
    dbz_write_ts_iso, dbz_write_tstz, dbz_write_interval, dbz_write_interval_iso;
/* A TEXT cell under a date or timestamp: what is no date, by zero.date.handling.mode. */
bool dbz_write_no_date(struct dbz *d, struct cdcd_writer *w, const struct dbz_column *c,
                       const struct cdcd_cell *v);

/* ---- debezium_default.c ---- */
/* Fills default_, absent and unavailable of a column; strings go to the arena. */
void dbz_column_constants(struct dbz *d, struct cdcd_arena *a, struct dbz_column *c);
/* Sets the placeholder's forms from its option. */
enum cdcd_rc dbz_placeholder_init(struct dbz *d, struct cdcd_arena *a, struct cdcd_error *err);

/* ---- debezium_table.c ---- */

/* One entry of message.key.columns. */
struct dbz_key_rule {
    struct dbz_key_rule *next;
    regex_t table;
    char **columns;
    size_t ncolumns;
};

/* `,"source":{...,"db":"x","sequence":`, in the parts between the values. */
struct dbz_source_text {
    struct cdcd_slice prefix;                   /* up to the value of ts_ms */
    struct cdcd_slice mark[CDCD_SNAP_LAST + 1]; /* from there to the value of sequence */
};

#define DBZ_MAX_HEADERS 8

/* Everything that is the same for all records of a schema; schema->enc. */
struct dbz_table {
    struct cdcd_arena arena;
    uint64_t owner;   /* id of the encoder that made it */
    uint64_t session; /* in which its schema was announced; 0: never */
    struct cdcd_topic *topic;
    bool document; /* a collection: no columns and keys, the _id is the key */
    uint32_t ncolumns, nkeys;
    struct dbz_column *columns;
    uint32_t *keys; /* columns of the key, in its order */
    struct cdcd_slice *key_names;
    struct cdcd_slice key_prefix, key_suffix;
    struct cdcd_slice value_prefix, value_suffix;
    struct dbz_source_text source;
    struct cdcd_header headers[DBZ_MAX_HEADERS]; /* of every record; [pos_header] is filled in */
    uint32_t nheaders, pos_header;
};

/* Topics whose bigint.unsigned.handling.mode long was warned about. */
struct dbz_wrapping {
    struct dbz_wrapping *next;
    const struct cdcd_topic *topic;
};

struct cdcd_encoder {
    uint64_t id; /* of this encoder in the process, never used again */
    struct dbz d;
    struct cdcd_encoder_env env;
    const char *connector, *source_schema_name; /* static; of the server that the source met */
    struct cdcd_arena arena;                    /* constants that live as long as the encoder */
    struct cdcd_topics topics;
    struct dbz_key_rule *rules;
    uint32_t skip; /* bits of enum cdcd_op */
    uint64_t skipped;
    struct cdcd_slice *source_names; /* `,"lsn":` of the connector's own fields */
    struct cdcd_topic *message_topic, *transaction_topic, *heartbeat_topic, *truncate_topic;
    struct cdcd_topic *ddl_topic, *schema_topic;
    uint64_t session; /* of the sink, counted from 1 */
    /* Templates of records without a table, each for one database; its name is in their arena. */
    struct dbz_table *message, *ddl;
    const char *message_db, *ddl_db;
    struct dbz_wrapping *wrapping;
    char *db; /* the last one seen; owned */
    /* Of the batch in hand: */
    struct cdcd_slice now_us, now_ms;
    char now_text[24];
    struct cdcd_slice tail; /* `,"ts_ms":...}`: the end of an envelope */
    int64_t ts_us;          /* of ts_text */
    char ts_text[24];
    size_t ts_len;
};

/* The templates of a schema, made on first use. CONFIG error: the key does not fit. */
enum cdcd_rc dbz_table_get(struct cdcd_encoder *e, struct cdcd_schema *s, struct dbz_table **out,
                           struct cdcd_error *err);
void dbz_table_free(void *table);
/* Templates of records that belong to no table. db NULL: the database last seen. */
struct dbz_table *dbz_message_get(struct cdcd_encoder *e, const char *db);
/* The same of schema changes. */
struct dbz_table *dbz_ddl_get(struct cdcd_encoder *e, struct cdcd_slice db);
enum cdcd_rc dbz_rules_parse(struct cdcd_encoder *e, const char *text, struct cdcd_error *err);
void dbz_rules_free(struct cdcd_encoder *e);
const char *dbz_str(const char *configured, const char *default_);

/* ---- debezium_options.c ---- */
enum cdcd_rc dbz_check_options(const struct cdcd_debezium_config *cfg, struct cdcd_error *err);

/* ---- debezium_schema.c ---- */
/* The Connect schema of the envelope, of the key, ... as JSON text. */
void dbz_schema_key(struct cdcd_encoder *e, struct cdcd_writer *w, const struct dbz_table *t);
void dbz_schema_envelope(struct cdcd_encoder *e, struct cdcd_writer *w, const struct dbz_table *t);
void dbz_schema_message(struct cdcd_encoder *e, struct cdcd_writer *w);
void dbz_schema_ddl(struct cdcd_encoder *e, struct cdcd_writer *w);
enum dbz_fixed {
    DBZ_MESSAGE_KEY,
    DBZ_TX_KEY,
    DBZ_TX_VALUE,
    DBZ_HEARTBEAT_KEY,
    DBZ_HEARTBEAT_VALUE,
    DBZ_TRUNCATE_KEY,
    DBZ_DDL_KEY,
};
void dbz_schema_fixed(struct cdcd_encoder *e, struct cdcd_writer *w, enum dbz_fixed which);

/* The row's, alone. */
void dbz_schema_row(struct cdcd_encoder *e, struct cdcd_writer *w, const struct dbz_table *t);

/* ---- debezium_announce.c ---- */

/* What tells the forms of values apart besides the shape of the table: options that are not at
 * their defaults. 0: all are. Part of the version in cdcd.schema. */
uint64_t dbz_forms_version(const struct cdcd_debezium_config *cfg);
struct dbz_job;
/* The record that tells how the table's rows are written, if this session has not had it. */
void dbz_announce(struct dbz_job *j);

/* ---- debezium.c ---- */

/* One event on its way; lives on the stack. */
struct dbz_job {
    struct cdcd_encoder *e;
    struct cdcd_batch *b;
    const struct cdcd_event *ev;
    struct dbz_table *t;
    struct cdcd_writer w;
};

/* `,"source":{...}` (without the comma where the templates begin with it). */
void dbz_put_source(struct dbz_job *j);
/* `extra` is 1 for the second record of an event that the source counted as two. */
void dbz_put_transaction(struct dbz_job *j, uint64_t extra);
/* `sub` tells the records of one event apart; `first`: `extra` headers before the others. */
struct cdcd_record *dbz_add_record(struct dbz_job *j, struct cdcd_topic *topic,
                                   struct cdcd_slice key, struct cdcd_slice value, unsigned sub,
                                   const struct cdcd_header *first, uint32_t extra);

/* The key without its schema, for headers and messages. */
struct cdcd_slice dbz_bare_key(const struct dbz_table *t, struct cdcd_slice key);

/* ---- debezium_document.c ---- */
/* An event of a collection (t->document). */
bool dbz_encode_document(struct dbz_job *j);
/* Its key, for a message, as it stands in the record; ptr NULL: it has no form. */
struct cdcd_slice dbz_document_key(struct dbz_job *j);
/* What the contract of events (event.h) demands of one. FATAL error: it is broken. */
enum cdcd_rc dbz_check_document(const struct cdcd_event *ev, struct cdcd_error *err);

/* ---- debezium_other.c ---- */
struct cdcd_topic *dbz_own_topic(struct cdcd_encoder *e, const char *first, const char *second,
                                 bool keyed);
/* Opens the writer for a value of a fixed schema. True: it is wrapped, and ends with "}}". */
bool dbz_begin_fixed(struct dbz_job *j, enum dbz_fixed which);
/* A key of one string. */
struct cdcd_slice dbz_put_wrapped(struct dbz_job *j, enum dbz_fixed schema, const char *open,
                                  struct cdcd_slice text);
bool dbz_encode_message(struct dbz_job *j);
bool dbz_encode_transaction(struct dbz_job *j);
bool dbz_encode_heartbeat(struct dbz_job *j);
bool dbz_encode_ddl(struct dbz_job *j);

#endif
