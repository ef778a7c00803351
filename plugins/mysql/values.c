/*
 * values: one value of a row image -> its cell. Widths and forms are those of the log
 * (log_event.cc, log_event_print_value; field.cc, Field_*::pack).
 */
#include "value_int.h"

#include <stdio.h>

enum cdcd_rc my_value_bad(const struct my_column_decoder *d, struct cdcd_error *err,
                          const char *fmt, ...)
{
    char reason[256];
    va_list args;

    va_start(args, fmt);
    vsnprintf(reason, sizeof reason, fmt, args);
    va_end(args);
    return cdcd_error_set(err, CDCD_ERR_DATA, "the value of column %s has no meaning: %s", d->name,
                          reason);
}

static enum cdcd_rc too_short(const struct my_column_decoder *d, struct cdcd_error *err)
{
    return cdcd_error_set(err, CDCD_ERR_FATAL,
                          "a row image ends within column %s (type %u, metadata %u): the table's "
                          "shape is not the one that the row was written with",
                          d->name, d->type, d->meta);
}

/* Bytes of the length in front of a value; 0: the type has a fixed size. */
static unsigned prefix_size(const struct my_column_decoder *d)
{
    switch (d->type) {
    case MY_VARCHAR:
    case MY_VAR_STRING:
    case MY_VARCHAR_COMPRESSED:
    case MY_STRING: return d->meta > 255 ? 2 : 1;
    case MY_TINY_BLOB: return 1;
    case MY_MEDIUM_BLOB: return 3;
    case MY_LONG_BLOB:
    case MY_TYPED_ARRAY: return 4;
    case MY_BLOB:
    case MY_BLOB_COMPRESSED:
    case MY_GEOMETRY:
    case MY_JSON:
    case MY_VECTOR: return d->meta >= 1 && d->meta <= 4 ? d->meta : 4;
    default: return 0;
    }
}

/* SIZE_MAX: a type without a known size. */
static size_t fixed_size(const struct my_column_decoder *d)
{
    switch (d->type) {
    case MY_TINY:
    case MY_YEAR: return 1;
    case MY_SHORT: return 2;
    case MY_INT24:
    case MY_DATE:
    case MY_NEWDATE:
    case MY_TIME: return 3;
    case MY_LONG:
    case MY_FLOAT:
    case MY_TIMESTAMP: return 4;
    case MY_LONGLONG:
    case MY_DOUBLE:
    case MY_DATETIME: return 8;
    case MY_TIMESTAMP2: return d->meta <= 6 ? 4 + my_fraction_size(d->meta) : SIZE_MAX;
    case MY_DATETIME2: return d->meta <= 6 ? 5 + my_fraction_size(d->meta) : SIZE_MAX;
    case MY_TIME2: return d->meta <= 6 ? 3 + my_fraction_size(d->meta) : SIZE_MAX;
    case MY_BIT: return (d->meta >> 8) + ((d->meta & 0xff) != 0);
    case MY_ENUM: return d->meta >= 1 && d->meta <= 2 ? d->meta : SIZE_MAX;
    case MY_SET: return d->meta >= 1 && d->meta <= 8 ? d->meta : SIZE_MAX;
    case MY_NEWDECIMAL: {
        unsigned precision = d->meta & 0xff, scale = d->meta >> 8;
        return precision <= MY_DECIMAL_MAX && scale <= precision ? my_decimal_size(precision, scale)
                                                                 : SIZE_MAX;
    }
    case MY_NULL: return 0;
    default: return SIZE_MAX;
    }
}

/* The bytes of the value, without the length in front. */
static enum cdcd_rc take(const struct my_column_decoder *d, const uint8_t **p, const uint8_t *end,
                         struct cdcd_slice *out, struct cdcd_error *err)
{
    unsigned prefix = prefix_size(d);
    size_t left = (size_t)(end - *p), n;

    if (prefix) {
        if (left < prefix)
            return too_short(d, err);
        n = (size_t)my_le(*p, prefix);
        *p += prefix;
        left -= prefix;
    } else {
        n = fixed_size(d);
        if (n == SIZE_MAX)
            return cdcd_error_set(err, CDCD_ERR_FATAL,
                                  "column %s has type %u with metadata %u, which is not supported",
                                  d->name, d->type, d->meta);
    }
    if (left < n)
        return too_short(d, err);
    *out = (struct cdcd_slice){(const char *)*p, n};
    *p += n;
    return CDCD_OK;
}

enum cdcd_rc my_value_skip(const struct my_column_decoder *d, const uint8_t **p, const uint8_t *end,
                           struct cdcd_error *err)
{
    struct cdcd_slice value;

    return take(d, p, end, &value, err);
}

static void read_int(const uint8_t *p, unsigned bytes, bool unsigned_, struct cdcd_cell *out)
{
    uint64_t v = my_le(p, bytes);

    if (!unsigned_) {
        unsigned unused = 64 - 8 * bytes;
        *out = cdcd_cell_int((int64_t)(v << unused) >> unused);
    } else if (bytes == 8) {
        *out = (struct cdcd_cell){.kind = CDCD_C_UINT, .u = v};
    } else {
        *out = cdcd_cell_int((int64_t)v);
    }
}

static void read_float(const uint8_t *p, struct cdcd_arena *a, struct cdcd_cell *out)
{
    uint32_t bits = (uint32_t)my_le(p, 4);
    float v;

    memcpy(&v, &bits, sizeof v);
    my_cell_float(v, true, a, out);
}

static void read_double(const uint8_t *p, struct cdcd_arena *a, struct cdcd_cell *out)
{
    uint64_t bits = my_le(p, 8);
    double v;

    memcpy(&v, &bits, sizeof v);
    my_cell_float(v, false, a, out);
}

static void read_decimal(const struct my_column_decoder *d, const uint8_t *p, struct cdcd_arena *a,
                         struct cdcd_cell *out)
{
    char *text = cdcd_arena_alloc(a, MY_DECIMAL_TEXT);
    size_t n = my_decimal_text(p, d->meta & 0xff, d->meta >> 8, text);

    *out = (struct cdcd_cell){.kind = CDCD_C_DECIMAL, .len = (uint32_t)n, .ptr = text};
}

static enum cdcd_rc read_json(const struct my_column_decoder *d, const uint8_t *p, size_t n,
                              struct cdcd_arena *a, struct cdcd_cell *out, struct cdcd_error *err)
{
    struct cdcd_slice text;

    if (my_json_text(p, n, a, &text, err) != CDCD_OK)
        return cdcd_error_context(err, "column %s", d->name);
    *out = cdcd_cell_text(text.ptr, text.len);
    return CDCD_OK;
}

enum cdcd_rc my_value_read(const struct my_column_decoder *d, const uint8_t **pp,
                           const uint8_t *end, struct cdcd_arena *a, struct cdcd_cell *out,
                           struct cdcd_error *err)
{
    struct cdcd_slice value;
    enum cdcd_rc rc = take(d, pp, end, &value, err);

    if (rc != CDCD_OK)
        return rc;
    const uint8_t *p = (const uint8_t *)value.ptr;
    size_t n = value.len;
    switch ((enum my_column_type)d->type) {
    case MY_TINY:
    case MY_SHORT:
    case MY_INT24:
    case MY_LONG:
    case MY_LONGLONG: read_int(p, (unsigned)n, d->unsigned_, out); return CDCD_OK;
    case MY_FLOAT: read_float(p, a, out); return CDCD_OK;
    case MY_DOUBLE: read_double(p, a, out); return CDCD_OK;
    case MY_NEWDECIMAL: read_decimal(d, p, a, out); return CDCD_OK;
    case MY_YEAR: *out = cdcd_cell_int(p[0] ? 1900 + p[0] : 0); return CDCD_OK;
    case MY_DATE:
    case MY_NEWDATE: my_read_date(p, a, out); return CDCD_OK;
    case MY_TIME: my_read_old_time(p, out); return CDCD_OK;
    case MY_DATETIME: my_read_old_datetime(p, a, out); return CDCD_OK;
    case MY_TIMESTAMP: my_read_old_timestamp(p, a, out); return CDCD_OK;
    case MY_TIME2: my_read_time2(p, d->meta, out); return CDCD_OK;
    case MY_DATETIME2: my_read_datetime2(p, d->meta, a, out); return CDCD_OK;
    case MY_TIMESTAMP2: my_read_timestamp2(p, d->meta, a, out); return CDCD_OK;
    case MY_BIT: my_read_bits(d, p, n, a, out); return CDCD_OK;
    case MY_ENUM: return my_cell_enum(d, (uint32_t)my_le(p, (unsigned)n), a, out, err);
    case MY_SET: return my_read_set(d, my_le(p, (unsigned)n), a, out, err);
    case MY_VARCHAR:
    case MY_VAR_STRING:
    case MY_STRING:
    case MY_TINY_BLOB:
    case MY_MEDIUM_BLOB:
    case MY_LONG_BLOB:
    case MY_BLOB: return my_read_string(d, p, n, a, out, err);
    case MY_BLOB_COMPRESSED:
    case MY_VARCHAR_COMPRESSED: return my_read_compressed(d, p, n, a, out, err);
    case MY_GEOMETRY: return my_cell_geometry(d, p, n, a, out, err);
    case MY_JSON:
    case MY_TYPED_ARRAY: return read_json(d, p, n, a, out, err);
    case MY_VECTOR: return my_read_vector(d, p, n, a, out, err);
    case MY_DECIMAL:
    case MY_NULL: break;
    }
    *out = (struct cdcd_cell){.kind = CDCD_C_NULL};
    return CDCD_OK;
}
