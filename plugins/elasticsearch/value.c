/*
 * Values of columns, as they stand in records -> plain JSON. What is plain already is passed on
 * byte for byte, so that numbers keep all their digits.
 *
 *   decimals          numbers with all digits; NaN and the infinities as strings
 *   dates             "2024-02-29"
 *   times             "04:05:06.789"; spans of MySQL "-838:59:59"
 *   timestamps        "2024-02-29T13:14:15.123456"; with a zone "...Z"
 *   intervals         "PT10H14M21S", or as they were written ("P1Y2M3DT4H5M6.78S")
 *   infinite ones     "infinity", "-infinity"
 *   bytes, bits       base64
 *   JSON, hstore      the text; with json: nested the JSON itself
 *   points            {"x":1.5,"y":2.0}, with "srid" when there is one
 *   geometry          {"wkt":"POLYGON ((...))","srid":4326}
 *   arrays            arrays
 */
#include "convert.h"

#include <stdio.h>

bool es_no_value(struct es_values *x, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    vsnprintf(x->why, sizeof x->why, fmt, args);
    va_end(args);
    return false;
}

uint64_t es_hash(uint64_t seed, const void *p, size_t n)
{
    const unsigned char *s = p;
    uint64_t h = seed;
    for (; n >= 8; n -= 8, s += 8) {
        uint64_t v;
        memcpy(&v, s, 8);
        h = (h ^ v) * UINT64_C(0x9e3779b97f4a7c15);
        h ^= h >> 29;
    }
    for (; n; n--, s++)
        h = (h ^ *s) * UINT64_C(0x100000001b3);
    return h ^ h >> 32;
}

/* ---- names ---- */

/* Metadata fields of the servers: a document with one of these names on its first level is
 * refused. */
static const char *const reserved[] = {
    "_id",
    "_index",
    "_type",
    "_source",
    "_routing",
    "_field_names",
    "_ignored",
    "_seq_no",
    "_primary_term",
    "_version",
    "_doc_count",
    "_size",
    "_tier",
    "_nested_path",
    "_data_stream_timestamp",
    "_ignored_source",
    "_tsid",
    "_ts_routing_hash",
    "_recovery_source",
    "_inference_fields",
    "_parent",
    "_feature",
};

bool es_name_reserved(struct cdcd_slice name)
{
    if (!name.len || name.ptr[0] != '_')
        return false;
    for (size_t i = 0; i < sizeof reserved / sizeof reserved[0]; i++) {
        if (es_slice_is(name, reserved[i]))
            return true;
    }
    return false;
}

void es_name_write(struct cdcd_writer *w, struct cdcd_slice raw)
{
    struct cdcd_slice inner = {raw.ptr + 1, raw.len - 2};
    if (!es_name_reserved(inner)) {
        es_put(w, raw);
        cdcd_writer_char(w, ':');
        return;
    }
    cdcd_writer_char(w, '"');
    es_put(w, inner);
    cdcd_writer_lit(w, "_\":");
}

/* ---- base64 ---- */

static int sextet(unsigned char c)
{
    return c >= 'A' && c <= 'Z'   ? c - 'A'
           : c >= 'a' && c <= 'z' ? c - 'a' + 26
           : c >= '0' && c <= '9' ? c - '0' + 52
           : c == '+'             ? 62
           : c == '/'             ? 63
                                  : -1;
}

bool es_base64(struct es_values *x, struct cdcd_slice text, struct cdcd_slice *out)
{
    size_t n = text.len;
    while (n && text.ptr[n - 1] == '=')
        n--;
    if (text.len % 4 || text.len - n > 2)
        return false;
    char *p = cdcd_arena_alloc(&x->tmp, n / 4 * 3 + 3), *o = p;
    uint32_t bits = 0;
    for (size_t i = 0; i < n; i++) {
        int v = sextet((unsigned char)text.ptr[i]);
        if (v < 0)
            return false;
        bits = bits << 6 | (uint32_t)v;
        if (i % 4)
            *o++ = (char)(bits >> (6 - 2 * (i % 4)));
    }
    *out = (struct cdcd_slice){p, (size_t)(o - p)};
    return true;
}

/* ---- numbers ---- */

/* PostgreSQL's numeric goes from 131072 digits before the point to 16383 behind it. */
#define SCALE_MAX 200000

static bool put_decimal(struct es_values *x, struct cdcd_writer *w, const struct cdcd_json_value *v,
                        int64_t scale)
{
    struct cdcd_slice bytes;
    if (v->kind != CDCD_JSON_STRING || !es_base64(x, cdcd_json_text(v, &x->tmp), &bytes))
        return es_no_value(x, "%.*s is no decimal in base64",
                           (int)(v->raw.len < 80 ? v->raw.len : 80), v->raw.ptr);
    if (scale > SCALE_MAX || scale < -SCALE_MAX)
        return es_no_value(x, "a decimal has the scale %lld", (long long)scale);
    es_decimal_write(x, w, bytes, scale);
    return true;
}

static bool write_decimal(struct es_values *x, struct cdcd_writer *w, const struct es_column *c,
                          const struct cdcd_json_value *v)
{
    /* No base64; the infinities would be, but a column with a scale holds none. Numbers: written
     * with decimal.handling.mode double. */
    if (es_string_is(v, "NaN") || v->kind == CDCD_JSON_NUMBER) {
        es_put(w, v->raw);
        return true;
    }
    return put_decimal(x, w, v, c->scale);
}

static bool write_vardecimal(struct es_values *x, struct cdcd_writer *w,
                             const struct cdcd_json_value *v)
{
    struct cdcd_json_value scale, value;
    int64_t n;
    if (v->kind != CDCD_JSON_OBJECT) { /* NaN, Infinity, -Infinity */
        es_put(w, v->raw);
        return true;
    }
    if (!cdcd_json_member(v, "scale", &scale) || !cdcd_json_int64(&scale, &n) ||
        !cdcd_json_member(v, "value", &value))
        return es_no_value(x, "%.*s is no decimal with its scale",
                           (int)(v->raw.len < 80 ? v->raw.len : 80), v->raw.ptr);
    return put_decimal(x, w, &value, n);
}

/* ---- times ---- */

/* What the peer's driver makes of infinity. */
#define DATE_INFINITY        INT64_C(-2147472692)
#define DATE_MINUS_INFINITY  INT64_C(-2147472691)
#define TS_INFINITY_US       INT64_C(9223372036825200000)
#define TS_MINUS_INFINITY_US INT64_C(-9223372036832400000)

static bool put_infinity(struct cdcd_writer *w, bool positive, bool negative)
{
    if (positive)
        cdcd_writer_lit(w, "\"infinity\"");
    else if (negative)
        cdcd_writer_lit(w, "\"-infinity\"");
    return positive || negative;
}

/* *units: the infinities in units of a second are those in microseconds, made coarser; those in
 * nanoseconds are the ends of int64. */
static bool put_infinite_ts(struct cdcd_writer *w, int64_t n, int64_t per_second)
{
    if (per_second > 1000000)
        return put_infinity(w, n == INT64_MAX, n == INT64_MIN);
    int64_t by = 1000000 / per_second;
    return put_infinity(w, n == TS_INFINITY_US / by, n == TS_MINUS_INFINITY_US / by);
}

static bool write_time(struct es_values *x, struct cdcd_writer *w, const struct es_column *c,
                       const struct cdcd_json_value *v)
{
    int64_t n;
    /* What is no date stands as text ("0000-00-00"), if it is not null. */
    if (v->kind == CDCD_JSON_STRING) {
        es_put(w, v->raw);
        return true;
    }
    if (!cdcd_json_int64(v, &n))
        return es_no_value(x, "%.*s is no whole number, as a time has to be",
                           (int)(v->raw.len < 80 ? v->raw.len : 80), v->raw.ptr);
    switch (c->form) {
    case ES_F_DATE:
        if (n > INT32_MAX || n < INT32_MIN)
            return es_no_value(x, "a date is %lld days from 1970", (long long)n);
        if (!put_infinity(w, n == DATE_INFINITY, n == DATE_MINUS_INFINITY))
            es_date_write(w, n);
        break;
    case ES_F_TIME_MS: es_time_write(w, n, 1000); break;
    case ES_F_TIME_US: es_time_write(w, n, 1000000); break;
    case ES_F_TIME_NS: es_time_write(w, n, 1000000000); break;
    case ES_F_TS_MS:
        if (!put_infinite_ts(w, n, 1000))
            es_timestamp_write(w, n, 1000, "");
        break;
    case ES_F_TS_US:
        if (!put_infinite_ts(w, n, 1000000))
            es_timestamp_write(w, n, 1000000, "");
        break;
    case ES_F_TS_NS:
        if (!put_infinite_ts(w, n, 1000000000))
            es_timestamp_write(w, n, 1000000000, "");
        break;
    default:
        if (!put_infinity(w, n == INT64_MAX, n == INT64_MIN))
            es_duration_write(w, n, c->scale > 6 ? 1000000000 : 1000000);
        break;
    }
    return true;
}

/* scale 1: the Z says nothing (isostring without zone). */
static bool write_text_time(struct cdcd_writer *w, const struct es_column *c,
                            const struct cdcd_json_value *v)
{
    struct cdcd_slice raw = v->raw;
    if (c->scale == 1 && v->kind == CDCD_JSON_STRING && raw.len > 3 &&
        raw.ptr[raw.len - 2] == 'Z') {
        cdcd_writer_add(w, raw.ptr, raw.len - 2);
        cdcd_writer_char(w, '"');
    } else {
        es_put(w, raw);
    }
    return true;
}

/* ---- the others ---- */

static bool write_json(struct es_values *x, struct cdcd_writer *w, const struct cdcd_json_value *v)
{
    struct cdcd_json_value inner;
    if (x->json_mode == ES_JSON_TEXT || v->kind != CDCD_JSON_STRING) {
        es_put(w, v->raw);
        return true;
    }
    struct cdcd_slice text = cdcd_json_text(v, &x->tmp);
    if (!text.len || !cdcd_json_scan(text, &inner))
        return es_no_value(x, "what should be JSON is none: %.*s",
                           (int)(text.len < 80 ? text.len : 80), text.ptr);
    es_put(w, inner.raw);
    return true;
}

static bool is_null(const struct cdcd_json_value *v)
{
    return v->kind == CDCD_JSON_NULL;
}

static void put_srid(struct cdcd_writer *w, const struct cdcd_json_value *v)
{
    struct cdcd_json_value srid;
    if (cdcd_json_member(v, "srid", &srid) && !is_null(&srid)) {
        cdcd_writer_lit(w, ",\"srid\":");
        es_put(w, srid.raw);
    }
}

static bool write_point(struct cdcd_writer *w, const struct cdcd_json_value *v)
{
    struct cdcd_json_value px, py;
    if (!cdcd_json_member(v, "x", &px) || !cdcd_json_member(v, "y", &py)) {
        es_put(w, v->raw);
        return true;
    }
    cdcd_writer_lit(w, "{\"x\":");
    es_put(w, px.raw);
    cdcd_writer_lit(w, ",\"y\":");
    es_put(w, py.raw);
    put_srid(w, v);
    cdcd_writer_char(w, '}');
    return true;
}

/* What is no well-known binary that is known here is passed on as it is. */
static bool write_geometry(struct es_values *x, struct cdcd_writer *w,
                           const struct cdcd_json_value *v)
{
    struct cdcd_json_value wkb;
    struct cdcd_slice bytes;
    size_t start = (size_t)(w->pos - w->start);
    int64_t srid;
    if (!cdcd_json_member(v, "wkb", &wkb) || wkb.kind != CDCD_JSON_STRING ||
        !es_base64(x, cdcd_json_text(&wkb, &x->tmp), &bytes)) {
        es_put(w, v->raw);
        return true;
    }
    cdcd_writer_lit(w, "{\"wkt\":");
    if (!es_wkt_write(w, bytes, &srid)) {
        w->pos = w->start + start;
        es_put(w, v->raw);
        return true;
    }
    size_t before = (size_t)(w->pos - w->start);
    put_srid(w, v);
    if (srid >= 0 && (size_t)(w->pos - w->start) == before) {
        char text[32];
        snprintf(text, sizeof text, ",\"srid\":%lld", (long long)srid);
        es_puts(w, text);
    }
    cdcd_writer_char(w, '}');
    return true;
}

/* More dimensions are lists in lists. */
static bool write_array(struct es_values *x, struct cdcd_writer *w, const struct es_column *elem,
                        const struct cdcd_json_value *v)
{
    struct cdcd_json_iter it;
    struct cdcd_json_value item;
    bool first = true;
    cdcd_json_iter_init(&it, v);
    cdcd_writer_char(w, '[');
    while (cdcd_json_iter_next(&it, NULL, &item)) {
        if (!first)
            cdcd_writer_char(w, ',');
        first = false;
        bool ok = item.kind == CDCD_JSON_ARRAY ? write_array(x, w, elem, &item)
                                               : es_value_write(x, w, elem, &item);
        if (!ok)
            return false;
    }
    cdcd_writer_char(w, ']');
    return true;
}

bool es_value_write(struct es_values *x, struct cdcd_writer *w, const struct es_column *c,
                    const struct cdcd_json_value *v)
{
    if (!c || is_null(v)) {
        es_put(w, v->raw);
        return true;
    }
    if (c->elem && v->kind == CDCD_JSON_ARRAY)
        return write_array(x, w, c->elem, v);
    switch (c->form) {
    case ES_F_DECIMAL: return write_decimal(x, w, c, v);
    case ES_F_VARDECIMAL: return write_vardecimal(x, w, v);
    case ES_F_DATE:
    case ES_F_TIME_MS:
    case ES_F_TIME_US:
    case ES_F_TIME_NS:
    case ES_F_TS_MS:
    case ES_F_TS_US:
    case ES_F_TS_NS:
    case ES_F_DURATION: return write_time(x, w, c, v);
    case ES_F_TEXT_TIME: return write_text_time(w, c, v);
    case ES_F_JSON: return write_json(x, w, v);
    case ES_F_POINT: return write_point(w, v);
    case ES_F_GEOMETRY: return write_geometry(x, w, v);
    default: es_put(w, v->raw); return true;
    }
}
