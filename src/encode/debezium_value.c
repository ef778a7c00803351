/*
 * Cells -> JSON: the table of forms, and the writers of everything but numbers and times.
 */
#include "dbz.h"

#include <stdio.h>

bool dbz_fail(struct dbz *d, const struct dbz_column *c, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    vsnprintf(d->reason, sizeof(d->reason), fmt, args);
    va_end(args);
    d->bad = c;
    return false;
}

static const char *kind_name(uint8_t kind)
{
    static const char *const names[] = {
        [CDCD_C_NULL] = "null",           [CDCD_C_ABSENT] = "absent",
        [CDCD_C_UNCHANGED] = "unchanged", [CDCD_C_BOOL] = "boolean",
        [CDCD_C_INT] = "integer",         [CDCD_C_UINT] = "unsigned integer",
        [CDCD_C_FLOAT] = "float",         [CDCD_C_DECIMAL] = "decimal",
        [CDCD_C_TEXT] = "text",           [CDCD_C_BYTES] = "bytes",
        [CDCD_C_DATE] = "date",           [CDCD_C_TIME] = "time",
        [CDCD_C_TIMESTAMP] = "timestamp", [CDCD_C_INTERVAL] = "interval",
        [CDCD_C_LIST] = "list",           [CDCD_C_MAP] = "map",
        [CDCD_C_GEOM] = "geometry",
    };
    return kind < sizeof(names) / sizeof(names[0]) ? names[kind] : "unknown";
}

bool dbz_wrong_kind(struct dbz *d, const struct dbz_column *c, const struct cdcd_cell *v)
{
    return dbz_fail(d, c,
                    "the source gave a value of kind %s for type %s; this is a bug in the source "
                    "plugin, please report it",
                    kind_name(v->kind), c->col->type_name ? c->col->type_name : "(unnamed)");
}

static bool write_bool(struct dbz *d, struct cdcd_writer *w, const struct dbz_column *c,
                       const struct cdcd_cell *v)
{
    if (v->kind != CDCD_C_BOOL && v->kind != CDCD_C_INT)
        return dbz_wrong_kind(d, c, v);
    dbz_adds(w, v->i ? "true" : "false");
    return true;
}

static bool write_int(struct dbz *d, struct cdcd_writer *w, const struct dbz_column *c,
                      const struct cdcd_cell *v)
{
    if (v->kind == CDCD_C_INT)
        cdcd_json_int(w, v->i);
    else if (v->kind == CDCD_C_UINT)
        cdcd_json_uint(w, v->u);
    else
        return dbz_wrong_kind(d, c, v);
    return true;
}

/* As the peer: the same 64 bits, signed. */
static bool write_wrapped(struct dbz *d, struct cdcd_writer *w, const struct dbz_column *c,
                          const struct cdcd_cell *v)
{
    if (v->kind != CDCD_C_INT && v->kind != CDCD_C_UINT)
        return dbz_wrong_kind(d, c, v);
    cdcd_json_int(w, v->i);
    return true;
}

static bool write_text(struct dbz *d, struct cdcd_writer *w, const struct dbz_column *c,
                       const struct cdcd_cell *v)
{
    if (v->kind != CDCD_C_TEXT)
        return dbz_wrong_kind(d, c, v);
    cdcd_json_string(w, v->ptr, v->len);
    return true;
}

static bool write_base64(struct dbz *d, struct cdcd_writer *w, const struct dbz_column *c,
                         const struct cdcd_cell *v)
{
    if (v->kind != CDCD_C_BYTES)
        return dbz_wrong_kind(d, c, v);
    cdcd_json_base64(w, v->ptr, v->len, false);
    return true;
}

static bool write_base64_url(struct dbz *d, struct cdcd_writer *w, const struct dbz_column *c,
                             const struct cdcd_cell *v)
{
    if (v->kind != CDCD_C_BYTES)
        return dbz_wrong_kind(d, c, v);
    cdcd_json_base64(w, v->ptr, v->len, true);
    return true;
}

static bool write_hex(struct dbz *d, struct cdcd_writer *w, const struct dbz_column *c,
                      const struct cdcd_cell *v)
{
    static const char digits[] = "0123456789abcdef";
    if (v->kind != CDCD_C_BYTES)
        return dbz_wrong_kind(d, c, v);
    char *p = cdcd_writer_room(w, 2 * (size_t)v->len + 2);
    *p++ = '"';
    for (size_t i = 0; i < v->len; i++) {
        *p++ = digits[(uint8_t)v->ptr[i] >> 4];
        *p++ = digits[(uint8_t)v->ptr[i] & 15];
    }
    *p++ = '"';
    w->pos = p;
    return true;
}

/* A string of one bit is a boolean. */
static bool write_bit(struct dbz *d, struct cdcd_writer *w, const struct dbz_column *c,
                      const struct cdcd_cell *v)
{
    if (v->kind != CDCD_C_BYTES)
        return write_bool(d, w, c, v);
    if (v->len != 1)
        return dbz_fail(d, c, "a bit string of %u bytes has no form as a boolean",
                        (unsigned)v->len);
    dbz_adds(w, v->ptr[0] & 1 ? "true" : "false");
    return true;
}

/* ---- hstore ---- */

/* A JSON string that will itself become part of a JSON string, so that characters outside the
 * BMP are left to the outer one. */
static void inner_string(struct cdcd_buf *b, const char *s, size_t n)
{
    static const char hex[] = "0123456789ABCDEF";
    static const char shorts[] = "btn\0fr";
    char *p = cdcd_buf_reserve(b, 6 * n + 2);
    if (!p)
        return;
    char *start = p;
    *p++ = '"';
    for (size_t i = 0; i < n; i++) {
        uint8_t c = (uint8_t)s[i];
        if (c == '"' || c == '\\') {
            *p++ = '\\';
            *p++ = (char)c;
        } else if (c >= 8 && c <= 13 && shorts[c - 8]) {
            *p++ = '\\';
            *p++ = shorts[c - 8];
        } else if (c < 0x20) {
            memcpy(p, "\\u00", 4);
            p[4] = hex[c >> 4];
            p[5] = hex[c & 15];
            p += 6;
        } else {
            *p++ = (char)c;
        }
    }
    *p++ = '"';
    b->len += (size_t)(p - start);
}

static bool check_map(struct dbz *d, const struct dbz_column *c, const struct cdcd_cell *v)
{
    if (v->kind != CDCD_C_MAP || v->len % 2)
        return dbz_wrong_kind(d, c, v);
    for (uint32_t i = 0; i < v->len; i++) {
        uint8_t kind = v->cells[i].kind;
        if (kind != CDCD_C_TEXT && !(i % 2 && kind == CDCD_C_NULL))
            return dbz_wrong_kind(d, c, &v->cells[i]);
    }
    return true;
}

static bool write_map_text(struct dbz *d, struct cdcd_writer *w, const struct dbz_column *c,
                           const struct cdcd_cell *v)
{
    if (!check_map(d, c, v))
        return false;
    struct cdcd_buf *b = &d->scratch;
    cdcd_buf_clear(b);
    cdcd_buf_add(b, "{", 1);
    for (uint32_t i = 0; i < v->len; i += 2) {
        const struct cdcd_cell *key = &v->cells[i], *value = &v->cells[i + 1];
        if (i)
            cdcd_buf_add(b, ",", 1);
        inner_string(b, key->ptr, key->len);
        cdcd_buf_add(b, ":", 1);
        if (value->kind == CDCD_C_NULL)
            cdcd_buf_add(b, "null", 4);
        else
            inner_string(b, value->ptr, value->len);
    }
    cdcd_buf_add(b, "}", 1);
    if (b->failed)
        return dbz_fail(d, c, "the value is too large");
    cdcd_json_string(w, b->ptr, b->len);
    return true;
}

static bool write_map(struct dbz *d, struct cdcd_writer *w, const struct dbz_column *c,
                      const struct cdcd_cell *v)
{
    if (!check_map(d, c, v))
        return false;
    cdcd_writer_char(w, '{');
    for (uint32_t i = 0; i < v->len; i += 2) {
        const struct cdcd_cell *key = &v->cells[i], *value = &v->cells[i + 1];
        if (i)
            cdcd_writer_char(w, ',');
        cdcd_json_string(w, key->ptr, key->len);
        cdcd_writer_char(w, ':');
        if (value->kind == CDCD_C_NULL)
            cdcd_writer_lit(w, "null");
        else
            cdcd_json_string(w, value->ptr, value->len);
    }
    cdcd_writer_char(w, '}');
    return true;
}

/* ---- geometry ---- */

static void put_srid(struct cdcd_writer *w, const struct cdcd_cell *v)
{
    uint32_t srid = cdcd_cell_srid(v);
    cdcd_writer_lit(w, ",\"srid\":");
    if (srid)
        cdcd_json_uint(w, srid);
    else
        cdcd_writer_lit(w, "null");
}

static void put_le(uint8_t *p, const void *value, size_t n)
{
    uint64_t v = 0;
    memcpy(&v, value, n);
    for (size_t i = 0; i < n; i++)
        p[i] = (uint8_t)(v >> (8 * i));
}

/* Well-known binary of a point in two dimensions, in either order of bytes. */
static bool read_point(const struct cdcd_cell *v, double *xy)
{
    const uint8_t *p = (const uint8_t *)v->ptr;
    if (v->len != 21 || p[0] > 1)
        return false;
    for (int i = 0; i < 2; i++) {
        uint64_t bits = 0;
        for (int k = 0; k < 8; k++)
            bits |= (uint64_t)p[5 + 8 * i + (p[0] ? k : 7 - k)] << (8 * k);
        memcpy(&xy[i], &bits, 8);
    }
    return true;
}

/* A point with its spatial reference. */
static bool write_point_geom(struct dbz *d, struct cdcd_writer *w, const struct dbz_column *c,
                             const struct cdcd_cell *v)
{
    double xy[2];
    if (!read_point(v, xy))
        return dbz_fail(d, c, "%u bytes of well-known binary are no point", (unsigned)v->len);
    cdcd_writer_lit(w, "{\"x\":");
    dbz_put_double(w, xy[0]);
    cdcd_writer_lit(w, ",\"y\":");
    dbz_put_double(w, xy[1]);
    cdcd_writer_lit(w, ",\"wkb\":");
    cdcd_json_base64(w, v->ptr, v->len, false);
    put_srid(w, v);
    cdcd_writer_char(w, '}');
    return true;
}

/* x, y and the same point as little-endian well-known binary. */
static bool write_point(struct dbz *d, struct cdcd_writer *w, const struct dbz_column *c,
                        const struct cdcd_cell *v)
{
    uint8_t wkb[21] = {1, 1, 0, 0, 0};
    double xy[2];
    if (v->kind == CDCD_C_GEOM)
        return write_point_geom(d, w, c, v);
    if (v->kind != CDCD_C_LIST || v->len != 2)
        return dbz_wrong_kind(d, c, v);
    for (int i = 0; i < 2; i++) {
        if (!dbz_float_value(&v->cells[i], &xy[i]))
            return dbz_wrong_kind(d, c, &v->cells[i]);
        put_le(wkb + 5 + 8 * i, &xy[i], 8);
    }
    cdcd_writer_lit(w, "{\"x\":");
    if (!dbz_write_float(d, w, c, &v->cells[0]))
        return false;
    cdcd_writer_lit(w, ",\"y\":");
    if (!dbz_write_float(d, w, c, &v->cells[1]))
        return false;
    cdcd_writer_lit(w, ",\"wkb\":");
    cdcd_json_base64(w, wkb, sizeof(wkb), false);
    put_srid(w, v);
    cdcd_writer_char(w, '}');
    return true;
}

/* The source's own shapes say in `extensions` what their well-known binary does not. */
static void put_shape(struct cdcd_writer *w, enum cdcd_shape shape)
{
    static const char *const texts[] = {
        [CDCD_SHAPE_BOX] = "{\"type\":\"box\"}",
        [CDCD_SHAPE_LSEG] = "{\"type\":\"lseg\"}",
        [CDCD_SHAPE_PATH_OPEN] = "{\"type\":\"path\",\"closed\":\"false\"}",
        [CDCD_SHAPE_PATH_CLOSED] = "{\"type\":\"path\",\"closed\":\"true\"}",
        [CDCD_SHAPE_POLYGON] = "{\"type\":\"polygon\"}",
    };
    cdcd_writer_lit(w, ",\"extensions\":");
    dbz_adds(w, texts[shape]);
}

static bool write_geometry(struct dbz *d, struct cdcd_writer *w, const struct dbz_column *c,
                           const struct cdcd_cell *v)
{
    if (v->kind != CDCD_C_GEOM)
        return dbz_wrong_kind(d, c, v);
    enum cdcd_shape shape = cdcd_cell_shape(v);
    cdcd_writer_lit(w, "{\"wkb\":");
    cdcd_json_base64(w, v->ptr, v->len, false);
    put_srid(w, v);
    if (shape > CDCD_SHAPE_NONE && shape <= CDCD_SHAPE_POLYGON)
        put_shape(w, shape);
    cdcd_writer_char(w, '}');
    return true;
}

/* ---- lists ---- */

static bool write_vector(struct dbz *d, struct cdcd_writer *w, const struct dbz_column *c,
                         const struct cdcd_cell *v)
{
    if (v->kind != CDCD_C_LIST)
        return dbz_wrong_kind(d, c, v);
    cdcd_writer_char(w, '[');
    for (uint32_t i = 0; i < v->len; i++) {
        if (i)
            cdcd_writer_char(w, ',');
        if (!dbz_write_float(d, w, c, &v->cells[i]))
            return false;
    }
    cdcd_writer_char(w, ']');
    return true;
}

/* Connect's JSON form of a map whose keys are no strings is a list of pairs. */
static bool write_sparse(struct dbz *d, struct cdcd_writer *w, const struct dbz_column *c,
                         const struct cdcd_cell *v)
{
    if (v->kind != CDCD_C_LIST || v->len % 2 == 0 || v->cells[0].kind != CDCD_C_INT)
        return dbz_wrong_kind(d, c, v);
    cdcd_writer_lit(w, "{\"dimensions\":");
    cdcd_json_int(w, v->cells[0].i);
    cdcd_writer_lit(w, ",\"vector\":[");
    for (uint32_t i = 1; i < v->len; i += 2) {
        if (v->cells[i].kind != CDCD_C_INT)
            return dbz_wrong_kind(d, c, &v->cells[i]);
        dbz_adds(w, i > 1 ? ",[" : "[");
        cdcd_json_int(w, v->cells[i].i);
        cdcd_writer_char(w, ',');
        if (!dbz_write_float(d, w, c, &v->cells[i + 1]))
            return false;
        cdcd_writer_char(w, ']');
    }
    cdcd_writer_lit(w, "]}");
    return true;
}

/* Elements that are lists themselves hold numbers; an inner dimension holds lists. */
static bool is_inner_dimension(const struct dbz_column *elem, const struct cdcd_cell *v)
{
    if (v->kind != CDCD_C_LIST)
        return false;
    bool list_type = elem->form == DBZ_POINT || elem->form == DBZ_VECTOR64 ||
                     elem->form == DBZ_VECTOR32 || elem->form == DBZ_SPARSEVEC;
    return !list_type || v->len == 0 ||
           (v->cells[0].kind != CDCD_C_FLOAT && v->cells[0].kind != CDCD_C_INT);
}

/* PostgreSQL allows six dimensions. */
#define MAX_DIMENSIONS 16

static bool put_list(struct dbz *d, struct cdcd_writer *w, const struct dbz_column *c,
                     const struct cdcd_cell *v, int depth)
{
    if (depth > MAX_DIMENSIONS)
        return dbz_fail(d, c, "the array has more than %d dimensions", MAX_DIMENSIONS);
    cdcd_writer_char(w, '[');
    for (uint32_t i = 0; i < v->len; i++) {
        const struct cdcd_cell *item = &v->cells[i];
        if (i)
            cdcd_writer_char(w, ',');
        bool ok = is_inner_dimension(c->elem, item) ? put_list(d, w, c, item, depth + 1)
                                                    : dbz_write(d, w, c->elem, item);
        if (!ok) {
            d->bad = c; /* elements have no name of their own */
            return false;
        }
    }
    cdcd_writer_char(w, ']');
    return true;
}

static bool write_array(struct dbz *d, struct cdcd_writer *w, const struct dbz_column *c,
                        const struct cdcd_cell *v)
{
    if (v->kind != CDCD_C_LIST)
        return dbz_wrong_kind(d, c, v);
    return put_list(d, w, c, v, 1);
}

/* ---- forms ---- */

#define DATA    "io.debezium.data."
#define TIME    "io.debezium.time."
#define CONNECT "org.apache.kafka.connect.data."

const struct dbz_form_info dbz_forms[DBZ_FORMS] = {
    [DBZ_BOOL] = {"boolean", NULL, NULL, "false", write_bool},
    [DBZ_INT8] = {"int8", NULL, NULL, "0", write_int},
    [DBZ_INT16] = {"int16", NULL, NULL, "0", write_int},
    [DBZ_INT32] = {"int32", NULL, NULL, "0", write_int},
    [DBZ_INT64] = {"int64", NULL, NULL, "0", write_int},
    [DBZ_UINT64] = {"int64", "cdcd.data.UnsignedLong", NULL, "0", write_int},
    [DBZ_UINT64_WRAPPED] = {"int64", NULL, NULL, "0", write_wrapped},
    [DBZ_UINT64_DECIMAL] = {"bytes", CONNECT "Decimal", NULL, "\"AA==\"", dbz_write_uint64_decimal},
    [DBZ_FLOAT32] = {"float", NULL, NULL, "0.0", dbz_write_float},
    [DBZ_FLOAT64] = {"double", NULL, NULL, "0.0", dbz_write_float},
    [DBZ_DECIMAL] = {"bytes", CONNECT "Decimal", NULL, "\"AA==\"", dbz_write_decimal},
    [DBZ_VARDECIMAL] = {"struct", DATA "VariableScaleDecimal", "Variable scaled decimal",
                        "{\"scale\":0,\"value\":\"AA==\"}", dbz_write_vardecimal},
    [DBZ_DECIMAL_DOUBLE] = {"double", NULL, NULL, "0.0", dbz_write_decimal_double},
    [DBZ_DECIMAL_STRING] = {"string", NULL, NULL, "\"0\"", dbz_write_decimal_string},
    [DBZ_STRING] = {"string", NULL, NULL, "\"\"", write_text},
    [DBZ_BYTES] = {"bytes", NULL, NULL, "\"\"", write_base64},
    [DBZ_BYTES_BASE64] = {"string", NULL, NULL, "\"\"", write_base64},
    [DBZ_BYTES_BASE64_URL] = {"string", NULL, NULL, "\"\"", write_base64_url},
    [DBZ_BYTES_HEX] = {"string", NULL, NULL, "\"\"", write_hex},
    [DBZ_BIT] = {"boolean", NULL, NULL, "false", write_bit},
    [DBZ_BITS] = {"bytes", DATA "Bits", NULL, "\"\"", write_base64},
    [DBZ_DATE] = {"int32", TIME "Date", NULL, "0", dbz_write_date},
    [DBZ_DATE_CONNECT] = {"int32", CONNECT "Date", NULL, "0", dbz_write_date},
    [DBZ_DATE_ISO] = {"string", TIME "IsoDate", NULL, "\"1970-01-01Z\"", dbz_write_date_iso},
    [DBZ_TIME_MS] = {"int32", TIME "Time", NULL, "0", dbz_write_time_ms},
    [DBZ_TIME_US] = {"int64", TIME "MicroTime", NULL, "0", dbz_write_time_us},
    [DBZ_TIME_NS] = {"int64", TIME "NanoTime", NULL, "0", dbz_write_time_ns},
    [DBZ_TIME_CONNECT] = {"int32", CONNECT "Time", NULL, "0", dbz_write_time_ms},
    [DBZ_TIME_ISO] = {"string", TIME "IsoTime", NULL, "\"00:00:00Z\"", dbz_write_time_iso},
    [DBZ_TIMETZ] = {"string", TIME "ZonedTime", NULL, "\"00:00:00Z\"", write_text},
    [DBZ_TS_MS] = {"int64", TIME "Timestamp", NULL, "0", dbz_write_ts_ms},
    [DBZ_TS_US] = {"int64", TIME "MicroTimestamp", NULL, "0", dbz_write_ts_us},
    [DBZ_TS_NS] = {"int64", TIME "NanoTimestamp", NULL, "0", dbz_write_ts_ns},
    [DBZ_TS_CONNECT] = {"int64", CONNECT "Timestamp", NULL, "0", dbz_write_ts_ms},
    [DBZ_TS_ISO] = {"string", TIME "IsoTimestamp", NULL, "\"1970-01-01T00:00:00Z\"",
                    dbz_write_ts_iso},
    [DBZ_TSTZ] = {"string", TIME "ZonedTimestamp", NULL, "\"1970-01-01T00:00:00Z\"",
                  dbz_write_tstz},
    [DBZ_INTERVAL] = {"int64", TIME "MicroDuration", NULL, "0", dbz_write_interval},
    [DBZ_INTERVAL_ISO] = {"string", TIME "Interval", NULL, "\"P0Y0M0DT0H0M0S\"",
                          dbz_write_interval_iso},
    [DBZ_UUID] = {"string", DATA "Uuid", NULL, "\"\"", write_text},
    [DBZ_JSON] = {"string", DATA "Json", NULL, "\"\"", write_text},
    [DBZ_XML] = {"string", DATA "Xml", NULL, "\"\"", write_text},
    [DBZ_ENUM] = {"string", DATA "Enum", NULL, "\"\"", write_text},
    [DBZ_ENUMSET] = {"string", DATA "EnumSet", NULL, "\"\"", write_text},
    [DBZ_LTREE] = {"string", DATA "Ltree", NULL, "\"\"", write_text},
    [DBZ_TSVECTOR] = {"string", DATA "Tsvector", NULL, "\"\"", write_text},
    [DBZ_HSTORE_JSON] = {"string", DATA "Json", NULL, "\"{}\"", write_map_text},
    [DBZ_HSTORE_MAP] = {"map", NULL, NULL, "{}", write_map},
    [DBZ_POINT] = {"struct", DATA "geometry.Point", "Geometry (POINT)",
                   "{\"x\":0.0,\"y\":0.0,\"wkb\":\"AQEAAAAAAAAAAAAAAAAAAAAAAAAA\",\"srid\":null}",
                   write_point},
    [DBZ_GEOMETRY] = {"struct", DATA "geometry.Geometry", "Geometry",
                      "{\"wkb\":\"AQcAAAAAAAAA\",\"srid\":null}", write_geometry},
    [DBZ_VECTOR64] = {"array", DATA "DoubleVector", NULL, "[]", write_vector},
    [DBZ_VECTOR32] = {"array", DATA "FloatVector", NULL, "[]", write_vector},
    [DBZ_SPARSEVEC] = {"struct", DATA "SparseDoubleVector", "Sparse double vector",
                       "{\"dimensions\":0,\"vector\":[]}", write_sparse},
    [DBZ_YEAR] = {"int32", TIME "Year", NULL, "0", write_int},
    [DBZ_ARRAY] = {"array", NULL, NULL, "[]", write_array},
};

static enum dbz_form decimal_form(const struct cdcd_debezium_config *cfg, enum dbz_form precise)
{
    switch (cfg->decimal_mode) {
    case CDCD_DECIMAL_DOUBLE: return DBZ_DECIMAL_DOUBLE;
    case CDCD_DECIMAL_STRING: return DBZ_DECIMAL_STRING;
    default: return precise;
    }
}

static enum dbz_form bytes_form(const struct cdcd_debezium_config *cfg)
{
    static const enum dbz_form forms[] = {
        [CDCD_BINARY_BYTES] = DBZ_BYTES,
        [CDCD_BINARY_BASE64] = DBZ_BYTES_BASE64,
        [CDCD_BINARY_BASE64_URL] = DBZ_BYTES_BASE64_URL,
        [CDCD_BINARY_HEX] = DBZ_BYTES_HEX,
    };
    return forms[cfg->binary_mode];
}

/* Without a schema a JSON number has no end. */
static enum dbz_form unsigned_form(const struct cdcd_debezium_config *cfg)
{
    switch (cfg->unsigned_mode) {
    case CDCD_UNSIGNED_LONG: return DBZ_UINT64_WRAPPED;
    case CDCD_UNSIGNED_PRECISE: return DBZ_UINT64_DECIMAL;
    default: return cfg->schemas_enable ? DBZ_UINT64_DECIMAL : DBZ_UINT64;
    }
}

/* Not given means microseconds. */
static int fraction_digits(const struct cdcd_column *col)
{
    return col->scale < 0 ? 6 : col->scale;
}

static enum dbz_form date_form(const struct cdcd_debezium_config *cfg)
{
    return cfg->time_mode == CDCD_TIME_CONNECT ? DBZ_DATE_CONNECT
           : cfg->time_mode == CDCD_TIME_ISO   ? DBZ_DATE_ISO
                                               : DBZ_DATE;
}

static enum dbz_form time_form(const struct cdcd_debezium_config *cfg, bool micros, int digits)
{
    switch (cfg->time_mode) {
    case CDCD_TIME_CONNECT: return DBZ_TIME_CONNECT;
    case CDCD_TIME_ISO: return DBZ_TIME_ISO;
    case CDCD_TIME_NANOS: return DBZ_TIME_NS;
    case CDCD_TIME_ADAPTIVE:
        return micros        ? DBZ_TIME_US
               : digits <= 3 ? DBZ_TIME_MS
               : digits <= 6 ? DBZ_TIME_US
                             : DBZ_TIME_NS;
    default: return DBZ_TIME_US;
    }
}

static enum dbz_form timestamp_form(const struct cdcd_debezium_config *cfg, int digits)
{
    switch (cfg->time_mode) {
    case CDCD_TIME_CONNECT: return DBZ_TS_CONNECT;
    case CDCD_TIME_ISO: return DBZ_TS_ISO;
    case CDCD_TIME_NANOS: return DBZ_TS_NS;
    case CDCD_TIME_MICROS: return DBZ_TS_US;
    default: return digits <= 3 ? DBZ_TS_MS : digits <= 6 ? DBZ_TS_US : DBZ_TS_NS;
    }
}

enum dbz_form dbz_form_of(const struct dbz *d, const struct cdcd_column *col)
{
    const struct cdcd_debezium_config *cfg = d->cfg;
    static const enum dbz_form plain[CDCD_T_COUNT] = {
        [CDCD_T_BOOL] = DBZ_BOOL,         [CDCD_T_INT8] = DBZ_INT8,
        [CDCD_T_INT16] = DBZ_INT16,       [CDCD_T_INT32] = DBZ_INT32,
        [CDCD_T_INT64] = DBZ_INT64,       [CDCD_T_FLOAT32] = DBZ_FLOAT32,
        [CDCD_T_FLOAT64] = DBZ_FLOAT64,   [CDCD_T_STRING] = DBZ_STRING,
        [CDCD_T_TIMETZ] = DBZ_TIMETZ,     [CDCD_T_TIMESTAMPTZ] = DBZ_TSTZ,
        [CDCD_T_UUID] = DBZ_UUID,         [CDCD_T_JSON] = DBZ_JSON,
        [CDCD_T_XML] = DBZ_XML,           [CDCD_T_ENUM] = DBZ_ENUM,
        [CDCD_T_ENUMSET] = DBZ_ENUMSET,   [CDCD_T_LTREE] = DBZ_LTREE,
        [CDCD_T_TSVECTOR] = DBZ_TSVECTOR, [CDCD_T_POINT] = DBZ_POINT,
        [CDCD_T_GEOMETRY] = DBZ_GEOMETRY, [CDCD_T_VECTOR64] = DBZ_VECTOR64,
        [CDCD_T_VECTOR32] = DBZ_VECTOR32, [CDCD_T_SPARSEVEC] = DBZ_SPARSEVEC,
        [CDCD_T_YEAR] = DBZ_YEAR,         [CDCD_T_ARRAY] = DBZ_ARRAY,
    };
    switch (col->type) {
    case CDCD_T_DECIMAL:
    case CDCD_T_MONEY: return decimal_form(cfg, DBZ_DECIMAL);
    case CDCD_T_VARDECIMAL: return decimal_form(cfg, DBZ_VARDECIMAL);
    case CDCD_T_UINT64: return unsigned_form(cfg);
    case CDCD_T_BYTES: return bytes_form(cfg);
    case CDCD_T_BITS: return col->length == 1 ? DBZ_BIT : DBZ_BITS;
    case CDCD_T_DATE: return date_form(cfg);
    case CDCD_T_TIME: return time_form(cfg, d->time_micros, fraction_digits(col));
    case CDCD_T_TIMESTAMP: return timestamp_form(cfg, fraction_digits(col));
    case CDCD_T_INTERVAL:
        return cfg->interval_mode == CDCD_INTERVAL_STRING ? DBZ_INTERVAL_ISO : DBZ_INTERVAL;
    case CDCD_T_HSTORE:
        return cfg->hstore_mode == CDCD_HSTORE_MAP ? DBZ_HSTORE_MAP : DBZ_HSTORE_JSON;
    default: return plain[col->type];
    }
}
