/*
 * convert.h: what the files share that make documents of records: convert*.c, document.c, value.c,
 * shape.c, route.c, mapping*.c.
 */
#ifndef CDCD_PLUGIN_ELASTICSEARCH_CONVERT_H
#define CDCD_PLUGIN_ELASTICSEARCH_CONVERT_H

#include "es.h"

/* What the conversion of values needs, and where it says what is wrong. One converter, one thread.
 * While a writer is open on the caller's arena, nothing else is taken from that: what lives for one
 * record only is in tmp. */
struct es_values {
    struct cdcd_arena tmp;
    int json_mode, dots_mode; /* enum es_json_mode, enum es_dots_mode */
    char why[512];
};
/* Sets x->why. Always false. */
bool es_no_value(struct es_values *x, const char *fmt, ...) CDCD_PRINTF(2, 3);

static inline bool es_slice_is(struct cdcd_slice s, const char *text)
{
    return cdcd_slice_eq(s, cdcd_slice_str(text));
}
/* A JSON string without escapes that is exactly this text. */
static inline bool es_string_is(const struct cdcd_json_value *v, const char *text)
{
    return v->kind == CDCD_JSON_STRING && !v->escaped && v->raw.len == strlen(text) + 2 &&
           memcmp(v->raw.ptr + 1, text, v->raw.len - 2) == 0;
}
static inline void es_put(struct cdcd_writer *w, struct cdcd_slice s)
{
    cdcd_writer_add(w, s.ptr, s.len);
}
static inline void es_puts(struct cdcd_writer *w, const char *s)
{
    cdcd_writer_add(w, s, strlen(s));
}
uint64_t es_hash(uint64_t seed, const void *p, size_t n); /* for tables, not for names */
#define ES_HASH_SEED UINT64_C(0xcbf29ce484222325)

/* ---- value.c ---- */
/* A value of a column as it stands in a record, in plain form. c NULL: nothing is known of it, and
 * it is passed on. False: it is not what its column's form demands, see x->why. */
bool es_value_write(struct es_values *x, struct cdcd_writer *w, const struct es_column *c,
                    const struct cdcd_json_value *v);
/* A name as a member of the document, with quotes and colon. `raw` has its quotes. Names that the
 * server keeps for itself (_id, _source, ...) get a _ behind them on the first level. */
void es_name_write(struct cdcd_writer *w, struct cdcd_slice raw);
bool es_name_reserved(struct cdcd_slice name);
/* Base64, standard alphabet with padding, in tmp. False: it is none. */
bool es_base64(struct es_values *x, struct cdcd_slice text, struct cdcd_slice *out);

/* ---- convert_number.c ---- */
/* The number that a Decimal is, with all its digits: big-endian two's complement and scale. */
void es_decimal_write(struct es_values *x, struct cdcd_writer *w, struct cdcd_slice bytes,
                      int64_t scale);

/* ---- convert_time.c ---- */
void es_date_write(struct cdcd_writer *w, int64_t days);
/* Of a day, or a span that may be negative or longer (MySQL); per_second: units of a second. */
void es_time_write(struct cdcd_writer *w, int64_t units, int64_t per_second);
/* zone: "Z" or "". */
void es_timestamp_write(struct cdcd_writer *w, int64_t units, int64_t per_second, const char *zone);
void es_duration_write(struct cdcd_writer *w, int64_t units, int64_t per_second);

/* ---- convert_geometry.c ---- */
/* Well-known binary (ISO and extended) as well-known text with quotes. False: it is none. */
bool es_wkt_write(struct cdcd_writer *w, struct cdcd_slice wkb, int64_t *srid);

/* ---- document.c ---- */
/* Documents of MongoDB: Extended JSON of any kind (v1, v2, plain) -> plain JSON. The object's _id
 * is left out: it is the id of the document in the index. False: x->why. */
bool es_document_write(struct es_values *x, struct cdcd_writer *w,
                       const struct cdcd_json_value *doc);
/* The text of an _id: strings as they are, ObjectIds in hex, numbers as digits, else JSON. In tmp.
 */
bool es_document_id(struct es_values *x, struct cdcd_slice text, struct cdcd_slice *out);

/* ---- convert_parts.c ---- */
/* Of an envelope. kind NULL: not there. */
struct es_envelope {
    struct cdcd_json_value after, op, source, update, message, status, ddl, changes, ts_ms;
};
/* members: those of v as cdcd_json_scan_members found them, or NULL. */
void es_envelope_read(const struct cdcd_json_value *v, const struct cdcd_json_members *members,
                      struct es_envelope *e);
/* {"schema":...,"payload":...} and nothing else: *v becomes the payload. False: it is not that. */
bool es_unwrap(struct cdcd_json_value *v, struct cdcd_slice *schema);
/* COMMIT(16)-KIND(1)-ORDINAL(16). The last two bits of the ordinal tell the records of one event
 * apart, which have different ids, or are a delete and its tombstone. */
bool es_pos_read(struct cdcd_slice s, struct cdcd_pos *out);

/* ---- convert_missing.c ---- */
/* The forms that the placeholder of a value which did not change takes in records. */
struct es_placeholder {
    struct cdcd_arena arena;
    struct cdcd_slice strings[4];   /* the text of JSON strings */
    struct cdcd_slice composed[16]; /* JSON, as it stands in records */
    unsigned nstrings, ncomposed;
};
/* configured: unavailable.value.placeholder; NULL: its default. */
void es_placeholder_init(struct es_placeholder *p, const char *configured);
void es_placeholder_free(struct es_placeholder *p);
bool es_is_placeholder(const struct es_placeholder *p, const struct cdcd_json_value *v,
                       struct cdcd_arena *tmp);

/* ---- convert_key.c ---- */
#define ES_ID_MAX 512
/* The id from a key: see es.h. `key` without its schema. The id is in the arena. False: x->why. */
bool es_id_make(struct es_values *x, const struct es_shape *shape, bool document,
                const struct cdcd_json_value *key, struct cdcd_arena *a, struct cdcd_slice *out);
/* An id as it is to be sent: those over ES_ID_MAX bytes as sha256:HEX. */
struct cdcd_slice es_id_fit(struct cdcd_slice id, struct cdcd_arena *a);

/* ---- shape.c ---- */
/* The column of a row by its raw name; hint: where it probably stands. NULL: none. */
const struct es_column *es_shape_column(const struct es_column *columns, uint32_t n, uint32_t hint,
                                        const struct cdcd_json_value *name, struct cdcd_arena *tmp);

#endif
