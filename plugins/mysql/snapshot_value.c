/*
 * snapshot_value: values as a query returns them -> the cells that the log gives for them.
 */
#include "value_int.h"

#include <errno.h>
#include <stdlib.h>

static bool parse_int(const char *p, size_t n, struct cdcd_cell *out)
{
    bool negative = n > 0 && p[0] == '-';
    uint64_t v = 0;

    if (n - negative < 1 || n - negative > 19)
        return false;
    for (size_t i = negative; i < n; i++) {
        if (p[i] < '0' || p[i] > '9')
            return false;
        v = v * 10 + (uint64_t)(p[i] - '0');
    }
    if (v > (uint64_t)INT64_MAX + negative)
        return false;
    *out = cdcd_cell_int(negative ? (int64_t)(0 - v) : (int64_t)v);
    return true;
}

static bool parse_uint(const char *p, size_t n, struct cdcd_cell *out)
{
    uint64_t v = 0;

    if (n < 1 || n > 20)
        return false;
    for (size_t i = 0; i < n; i++) {
        uint64_t digit = (uint64_t)(uint8_t)p[i] - '0';
        if (digit > 9 || v > (UINT64_MAX - digit) / 10)
            return false;
        v = v * 10 + digit;
    }
    *out = (struct cdcd_cell){.kind = CDCD_C_UINT, .u = v};
    return true;
}

static bool parse_float(const char *p, size_t n, bool single, struct cdcd_arena *a,
                        struct cdcd_cell *out)
{
    char text[400], *end;

    if (n == 0 || n >= sizeof text)
        return false;
    memcpy(text, p, n);
    text[n] = '\0';
    double v = strtod(text, &end);
    if (*end)
        return false;
    my_cell_float(single ? (double)(float)v : v, single, a, out);
    return true;
}

/* ZEROFILL has zeros in front; the log has none, nor a negative zero. */
static bool parse_decimal(const char *p, size_t n, struct cdcd_arena *a, struct cdcd_cell *out)
{
    bool negative = n > 0 && p[0] == '-', zero = true, point = false;

    p += negative;
    n -= negative;
    if (n == 0 || p[n - 1] == '.')
        return false;
    for (size_t i = 0; i < n; i++) {
        if (p[i] == '.' && i && !point)
            point = true;
        else if (p[i] < '0' || p[i] > '9')
            return false;
        zero &= p[i] == '0' || p[i] == '.';
    }
    while (n > 1 && p[0] == '0' && p[1] != '.') {
        p++;
        n--;
    }
    negative &= !zero;
    char *s = cdcd_arena_alloc(a, n + 1);
    s[0] = '-';
    memcpy(s + negative, p, n);
    *out = (struct cdcd_cell){.kind = CDCD_C_DECIMAL, .len = (uint32_t)(n + negative), .ptr = s};
    return true;
}

/* Text is UTF-8 here whatever the column's charset, and complete: nothing was cut off. */
static void string_cell(const struct my_column_decoder *d, const char *p, size_t n,
                        struct cdcd_arena *a, struct cdcd_cell *out)
{
    *out = (struct cdcd_cell){.kind = d->special == MY_BINARY ? CDCD_C_BYTES : CDCD_C_TEXT,
                              .len = (uint32_t)n,
                              .ptr = cdcd_arena_dup(a, p, n)};
}

static enum cdcd_rc json_cell(const char *p, size_t n, struct cdcd_arena *a, struct cdcd_cell *out,
                              struct cdcd_error *err)
{
    struct cdcd_slice text;
    enum cdcd_rc rc = my_json_canon(p, n, a, &text, err);

    if (rc == CDCD_OK)
        *out = cdcd_cell_text(text.ptr, text.len);
    return rc;
}

static bool parse_number(const struct my_column_decoder *d, const char *p, size_t n,
                         struct cdcd_arena *a, struct cdcd_cell *out)
{
    switch (d->type) {
    case MY_LONGLONG:
        if (d->unsigned_)
            return parse_uint(p, n, out);
        return parse_int(p, n, out);
    case MY_FLOAT: return parse_float(p, n, true, a, out);
    case MY_DOUBLE: return parse_float(p, n, false, a, out);
    case MY_NEWDECIMAL: return parse_decimal(p, n, a, out);
    default: return parse_int(p, n, out);
    }
}

static bool parse_moment(const struct my_column_decoder *d, const char *p, size_t n,
                         struct cdcd_arena *a, struct cdcd_cell *out)
{
    switch (d->type) {
    case MY_DATE:
    case MY_NEWDATE: return my_parse_date(p, n, a, out);
    case MY_TIME:
    case MY_TIME2: return my_parse_time(p, n, out);
    default: return my_parse_datetime(p, n, a, out);
    }
}

enum cdcd_rc my_value_text(const struct my_column_decoder *d, const struct cdcd_column *c,
                           const char *text, size_t len, struct cdcd_arena *a,
                           struct cdcd_cell *out, struct cdcd_error *err)
{
    bool ok = true;

    (void)c;
    switch ((enum my_column_type)d->type) {
    case MY_TINY:
    case MY_SHORT:
    case MY_INT24:
    case MY_LONG:
    case MY_LONGLONG:
    case MY_YEAR:
    case MY_FLOAT:
    case MY_DOUBLE:
    case MY_NEWDECIMAL: ok = parse_number(d, text, len, a, out); break;
    case MY_DATE:
    case MY_NEWDATE:
    case MY_TIME:
    case MY_TIME2:
    case MY_DATETIME:
    case MY_DATETIME2:
    case MY_TIMESTAMP:
    case MY_TIMESTAMP2: ok = parse_moment(d, text, len, a, out); break;
    case MY_BIT: my_read_bits(d, (const uint8_t *)text, len, a, out); break;
    case MY_JSON:
    case MY_TYPED_ARRAY: return json_cell(text, len, a, out, err);
    case MY_GEOMETRY:
        return my_cell_geometry(d, (const uint8_t *)cdcd_arena_dup(a, text, len), len, a, out, err);
    case MY_VECTOR: return my_read_vector(d, (const uint8_t *)text, len, a, out, err);
    case MY_NULL: *out = (struct cdcd_cell){.kind = CDCD_C_NULL}; break;
    default: string_cell(d, text, len, a, out); break;
    }
    if (!ok)
        return my_value_bad(d, err, "the server sent \"%.*s\"%s", len > 64 ? 64 : (int)len, text,
                            len > 64 ? "..." : "");
    return CDCD_OK;
}
