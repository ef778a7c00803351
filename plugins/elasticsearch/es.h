/*
 * es.h: what the files of the Elasticsearch and OpenSearch sink share.
 *
 *   sink.c       options, ops table, sessions: load, write, poll
 *   http.c       libcurl: requests one by one and side by side, TLS, logins, gzip; error classes
 *   server.c     what the server is and can
 *   bulk*.c      lanes: items in queues, bodies, what replies do to them, sizes that adapt
 *   reply.c      the items of a bulk's reply: done, again, refused
 *   stale.c      refused as older: whether it is
 *   policy.c     refused documents: stop, dead-letter index, skip
 *   convert.c    one record -> what is to be done in the index; its parts: convert_*.c, convert.h
 *   document.c   documents of MongoDB -> plain JSON
 *   value.c      column values -> plain JSON (times, decimals, bytes)
 *   shape.c      Connect schemas -> how columns are written
 *   route.c      topic -> index; ids
 *   mapping.c    shape -> mappings, the index template, indexes and their aliases
 *   merge.c      columns that a record does not carry: taken from the document as it is
 *   moved.c      such columns of a row whose key has changed
 *   doubt.c      records without such columns whose document is not there, until it is known why
 *   truncate.c   a TRUNCATE: older documents deleted
 *   state.c      the position, notes, and which instance has the pipeline
 *   rebuild.c    the steps of cdcd replay; rebuild_index.c: what they ask of the server
 *   check.c      the checks of `cdcd check`
 *
 * Threads: all on the publish thread, but check (main) and rebuild (main, between sessions).
 *
 * Order and versions. A document's id is its key. Records of one id go through one lane, which has
 * one request under way, so they arrive in order. Every write carries an external version made from
 * the record's position (or its Kafka offset), with version_type external_gte: what comes again or
 * late is refused by the server (409) and counts as done. Deletes leave a version behind for
 * index.gc_deletes, which is set large.
 */
#ifndef CDCD_PLUGIN_ELASTICSEARCH_ES_H
#define CDCD_PLUGIN_ELASTICSEARCH_ES_H

#include <cdcd/jsonscan.h>
#include <cdcd/log.h>
#include <cdcd/plugin.h>

#include <curl/curl.h>

/* ---- options ---- */

enum es_policy { ES_STOP, ES_DEAD_LETTER, ES_SKIP };
enum es_version_mode { ES_VERSION_AUTO, ES_VERSION_POSITION, ES_VERSION_OFFSET };
enum es_truncate_mode { ES_TRUNCATE_EMPTY, ES_TRUNCATE_STOP, ES_TRUNCATE_IGNORE };
enum es_missing_mode { ES_MISSING_MERGE, ES_MISSING_STOP, ES_MISSING_LEAVE_OUT };
enum es_json_mode { ES_JSON_TEXT, ES_JSON_NESTED };
enum es_dots_mode { ES_DOTS_FAIL, ES_DOTS_RENAME }; /* names with dots, of documents */
enum es_record_form { ES_ENVELOPE, ES_ROW };

struct es_config {
    struct cdcd_strlist url; /* one or more http(s)://[user:password@]host:port[/path] */
    char *index; /* pattern: ${topic} ${prefix} ${db} ${schema} ${table}; "" = ${topic} */
    struct cdcd_strmap routes; /* regular expression for the topic -> pattern; before `index` */
    char *username, *password, *api_key;
    char *ssl_ca, *ssl_cert, *ssl_key;
    bool ssl_verify;
    bool gzip;
    int64_t bulk_bytes;    /* largest body to begin with; 413 and 429 make it smaller */
    int64_t bulk_requests; /* lanes */
    int64_t bulk_delay_ms; /* the longest that a document waits for others */
    int64_t request_timeout_ms;
    int64_t retry_ms; /* item-level and request-level 429, 503: first delay */
    int policy;       /* errors.policy */
    char *dead_letter_index;
    int version_mode, truncate_mode, missing_mode, json_mode, dots_mode, record_form;
    bool manage_index;                 /* index.manage: template, index and alias are made */
    struct cdcd_strmap index_settings; /* index.settings: number_of_shards, ... */
    char *gc_deletes;
    char *state_index; /* "cdcd-state" */
};
extern const struct cdcd_option es_options[];

/* ---- http.c ---- */

struct es_http; /* connections, credentials; borrowed config */
struct es_request {
    const char *method; /* static */
    char *path;         /* owned: "/_bulk?..." with what must be escaped escaped */
    const char *content_type;
    struct cdcd_slice body; /* borrowed until the reply; gzip'ed on the way if config->gzip */
};
struct es_reply {
    long status; /* 0: none came, see error */
    struct cdcd_buf body;
    char error[256];        /* libcurl's, when status is 0 */
    int64_t retry_after_ms; /* -1: not said */
    bool cut;               /* status 0 after the connection was there */
    bool misconfigured;     /* status 0 because of TLS or the like: trying again does not help */
};
/* env: for stopping(); NULL: nobody asks to stop. */
enum cdcd_rc es_http_new(const struct es_config *cfg, const struct cdcd_sink_env *env,
                         struct es_http **out, struct cdcd_error *err);
void es_http_free(struct es_http *h);
/* One request, waiting. RETRY: unreachable, timed out, 429, 5xx; CONFIG: 401, 403, TLS. Another
 * status of 400 and more is OK here: the caller looks at it. Gives up with RETRY when stopping()
 * says so. */
enum cdcd_rc es_http_do(struct es_http *h, const struct es_request *q, struct es_reply *out,
                        struct cdcd_error *err);
/* Several at a time: begins one; the reply is filled in when es_http_poll says that slot is done.
 */
enum cdcd_rc es_http_begin(struct es_http *h, unsigned slot, const struct es_request *q,
                           struct cdcd_error *err);
/* Waits at most timeout_ms. *slot: one that is done, its reply moved to *out (free its body).
 * AGAIN: none. A failure of the request is in the reply, not an error. */
enum cdcd_rc es_http_poll(struct es_http *h, int timeout_ms, unsigned *slot, struct es_reply *out,
                          struct cdcd_error *err);
/* Ends all that is under way; their replies never come. */
void es_http_abort(struct es_http *h);
void es_reply_free(struct es_reply *r);
/* Error from a reply: class by status, the server's reason in front of what to do about it. */
enum cdcd_rc es_fail(struct cdcd_error *err, const struct es_reply *r, const char *fmt, ...)
    CDCD_PRINTF(3, 4);

/* reply.c. The "error" of a reply: its type and reasons, as plain text, cut to the sizes; "" when
 * there is none. */
void es_reason(struct cdcd_slice body, char *type, size_t type_size, char *reason,
               size_t reason_size);

/* ---- server.c ---- */
struct es_server {
    bool opensearch;
    int version; /* 21906, 71729 */
    char text[64];
    char name[64], cluster[64];
};
enum cdcd_rc es_server_info(struct es_http *h, struct es_server *out, struct cdcd_error *err);

/* ---- shape.c: how the columns of a table are written in records ---- */

enum es_form {
    ES_F_RAW,     /* the JSON value as it is: numbers, booleans, strings, arrays of them */
    ES_F_DECIMAL, /* Connect's Decimal: base64 of the unscaled value; scale */
    ES_F_VARDECIMAL,
    ES_F_DATE, /* days */
    ES_F_TIME_MS,
    ES_F_TIME_US,
    ES_F_TIME_NS,
    ES_F_TS_MS,
    ES_F_TS_US,
    ES_F_TS_NS,
    ES_F_TEXT_TIME, /* text that is ISO 8601 already (zoned ones, isostring) */
    ES_F_BYTES,     /* base64 */
    ES_F_JSON,      /* JSON text in a string */
    ES_F_DURATION,  /* MicroDuration */
    ES_F_GEOMETRY,  /* struct of wkb and srid */
    ES_F_POINT,
    ES_F_STRUCT,
};
struct es_column {
    struct cdcd_slice name, name_json; /* plain; with quotes and colon */
    enum es_form form;
    int32_t scale;
    const char *es_type; /* what the index makes of it, see mapping_write.c; NULL: left to it */
    const struct es_column *elem; /* of an array */
};
struct es_shape {
    struct es_shape *next;
    struct cdcd_arena arena;
    char version[17]; /* header cdcd.schema, or a hash of the schema in the record */
    uint32_t ncolumns, nkeys;
    struct es_column *columns, *keys;
    bool document; /* of MongoDB */
};
struct es_shapes; /* cache by version and by the text of in-record schemas */
struct es_shapes *es_shapes_new(void);
void es_shapes_free(struct es_shapes *s);
/* From a record of CDCD_SCHEMA_TOPIC. DATA error: it is none. */
enum cdcd_rc es_shapes_learn(struct es_shapes *s, const struct cdcd_record *r,
                             struct cdcd_error *err);
const struct es_shape *es_shapes_find(const struct es_shapes *s, struct cdcd_slice version);
/* From the "schema" members of a key and a value written with schemas.enable. */
enum cdcd_rc es_shapes_of_record(struct es_shapes *s, struct cdcd_slice key_schema,
                                 struct cdcd_slice value_schema, const struct es_shape **out,
                                 struct cdcd_error *err);

/* ---- convert.c ---- */

enum es_action_kind {
    ES_NOTHING, /* heartbeat, transaction metadata, logical message, schema change, learned schema
                 */
    ES_INDEX,
    ES_DELETE,
    ES_EMPTY, /* TRUNCATE: all documents of the index that are older than `version` */
};
struct es_action {
    enum es_action_kind kind;
    struct cdcd_slice index, id; /* id as it is, not escaped */
    uint64_t version;
    struct cdcd_slice source;         /* INDEX: JSON object */
    const struct cdcd_slice *missing; /* INDEX: names of columns that the record does not carry */
    uint32_t nmissing;
    bool row_follows; /* with `missing`: a later record has the whole row, unless it is deleted */
    struct cdcd_slice moves_to;   /* DELETE: the row goes on under this id; ptr NULL: it does not */
    struct cdcd_slice moved_from; /* INDEX: the row had this id before; ptr NULL: it had not */
    struct cdcd_slice move;       /* with these: text that both records of the change bear */
    const struct es_shape *shape; /* or NULL: nothing is known of the columns */
};
struct es_converter;
enum cdcd_rc es_converter_new(const struct es_config *cfg, const struct cdcd_sink_env *env,
                              struct es_converter **out, struct cdcd_error *err);
void es_converter_free(struct es_converter *c);
/* One record. All of *out lives in the arena. DATA error: what the record is not, with topic, key
 * and place; the policy decides what becomes of it. */
enum cdcd_rc es_convert(struct es_converter *c, const struct cdcd_record *r, struct cdcd_arena *a,
                        struct es_action *out, struct cdcd_error *err);

/* route.c */
struct es_routes;
enum cdcd_rc es_routes_new(const struct es_config *cfg, const char *topic_prefix,
                           struct es_routes **out, struct cdcd_error *err);
void es_routes_free(struct es_routes *r);
/* Lower case, what an index may not bear as _; cached; lives as long as the routes. */
struct cdcd_slice es_route(struct es_routes *r, struct cdcd_slice topic);

/* ---- mapping.c ---- */
/* Makes the index (NAME-000001 behind the alias NAME) and the template, or adds the fields that the
 * shape brings, once per index and shape. On replay: the new one, see es_target. Nothing when
 * index.manage is off. */
struct es_indexes;
enum cdcd_rc es_index_ready(struct cdcd_sink *s, struct cdcd_slice index,
                            const struct es_shape *shape, struct cdcd_error *err);
/* Where writes for an index go: itself (the alias), on replay the index that is built beside. */
struct cdcd_slice es_target(struct cdcd_sink *s, struct cdcd_slice index);
/* "settings" and "mappings" of a new index, as JSON. */
void es_mapping_write(const struct es_config *cfg, const struct es_shape *shape,
                      struct cdcd_buf *out);

/* The sink itself (struct cdcd_sink) and what bulk.c, merge.c, truncate.c, state.c, policy.c and
 * rebuild.c share is in sink.h. */

#endif
