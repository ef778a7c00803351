/* mgfake_bson.h: BSON as the fake server writes, finds and compares it. Part of mgfake.c. */
#ifndef MGFAKE_BSON_H
#define MGFAKE_BSON_H

#include <cdcd/bson.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

/* ---- writing: elements appended to a buffer ---- */

static void put_name(struct cdcd_buf *b, uint8_t type, const char *name)
{
    cdcd_buf_add(b, &type, 1);
    cdcd_buf_add(b, name, strlen(name) + 1);
}

/* A document begins; its length is put in by put_close(). Name NULL: the outermost one. */
static size_t put_open(struct cdcd_buf *b, uint8_t type, const char *name)
{
    if (name)
        put_name(b, type, name);
    size_t at = b->len;
    cdcd_buf_add(b, "\0\0\0", 4);
    return at;
}

static void put_close(struct cdcd_buf *b, size_t at)
{
    cdcd_buf_add(b, "", 1);
    uint32_t n = (uint32_t)(b->len - at);
    memcpy(b->ptr + at, &n, 4);
}

static size_t put_document(struct cdcd_buf *b, const char *name)
{
    return put_open(b, CDCD_BSON_DOCUMENT, name);
}

static size_t put_array(struct cdcd_buf *b, const char *name)
{
    return put_open(b, CDCD_BSON_ARRAY, name);
}

static void put_value(struct cdcd_buf *b, const char *name, uint8_t type, struct cdcd_slice value)
{
    put_name(b, type, name);
    cdcd_buf_add(b, value.ptr, value.len);
}

static void put_fixed(struct cdcd_buf *b, const char *name, uint8_t type, const void *p, size_t n)
{
    put_value(b, name, type, (struct cdcd_slice){p, n});
}

static void put_int32(struct cdcd_buf *b, const char *name, int32_t n)
{
    put_fixed(b, name, CDCD_BSON_INT32, &n, sizeof n);
}

static void put_int64(struct cdcd_buf *b, const char *name, int64_t n)
{
    put_fixed(b, name, CDCD_BSON_INT64, &n, sizeof n);
}

static void put_double(struct cdcd_buf *b, const char *name, double n)
{
    put_fixed(b, name, CDCD_BSON_DOUBLE, &n, sizeof n);
}

static void put_time(struct cdcd_buf *b, const char *name, uint64_t ts)
{
    put_fixed(b, name, CDCD_BSON_TIMESTAMP, &ts, sizeof ts);
}

static void put_date(struct cdcd_buf *b, const char *name, int64_t ms)
{
    put_fixed(b, name, CDCD_BSON_DATE, &ms, sizeof ms);
}

static void put_bool(struct cdcd_buf *b, const char *name, bool yes)
{
    put_fixed(b, name, CDCD_BSON_BOOL, yes ? "\1" : "\0", 1);
}

static void put_text(struct cdcd_buf *b, const char *name, const char *s, size_t len)
{
    uint32_t n = (uint32_t)len + 1;
    put_name(b, CDCD_BSON_STRING, name);
    cdcd_buf_add(b, &n, 4);
    cdcd_buf_add(b, s, len);
    cdcd_buf_add(b, "", 1);
}

static void put_string(struct cdcd_buf *b, const char *name, const char *s)
{
    put_text(b, name, s, strlen(s));
}

/* An array's names are its numbers. */
static void put_index(char *name, size_t size, size_t n)
{
    snprintf(name, size, "%zu", n);
}

/* ---- reading ---- */

struct value {
    uint8_t type; /* 0: none */
    struct cdcd_slice s;
};

static struct value get(struct cdcd_slice document, const char *name)
{
    struct cdcd_bson_element e;
    if (!document.ptr || !cdcd_bson_find(document, name, &e))
        return (struct value){0};
    return (struct value){e.type, e.value};
}

static struct cdcd_slice get_document(struct cdcd_slice document, const char *name)
{
    struct value v = get(document, name);
    return v.type == CDCD_BSON_DOCUMENT || v.type == CDCD_BSON_ARRAY ? v.s : (struct cdcd_slice){0};
}

static double number_of(struct value v)
{
    double d;
    switch (v.type) {
    case CDCD_BSON_INT32: return cdcd_bson_int32(v.s);
    case CDCD_BSON_INT64: return (double)cdcd_bson_int64(v.s);
    case CDCD_BSON_BOOL: return v.s.ptr[0] != 0;
    case CDCD_BSON_DOUBLE: memcpy(&d, v.s.ptr, sizeof d); return d;
    default: return 0;
    }
}

static int64_t get_number(struct cdcd_slice document, const char *name, int64_t otherwise)
{
    struct value v = get(document, name);
    return v.type ? (int64_t)number_of(v) : otherwise;
}

static bool get_flag(struct cdcd_slice document, const char *name)
{
    return get_number(document, name, 0) != 0;
}

/* A string without its length and NUL; "" when it is none. */
static struct cdcd_slice text_of(struct value v)
{
    if (v.type != CDCD_BSON_STRING)
        return (struct cdcd_slice){"", 0};
    return (struct cdcd_slice){v.s.ptr + 4, v.s.len - 5};
}

static bool is_text(struct value v, const char *s)
{
    return v.type == CDCD_BSON_STRING && cdcd_slice_eq(text_of(v), cdcd_slice_str(s));
}

static bool time_of(struct value v, uint64_t *ts)
{
    if (v.type != CDCD_BSON_TIMESTAMP)
        return false;
    memcpy(ts, v.s.ptr, sizeof *ts);
    return true;
}

/* ---- the order of values, as an index has it ---- */

static int class_of(uint8_t type)
{
    switch (type) {
    case CDCD_BSON_MINKEY: return 0;
    case CDCD_BSON_UNDEFINED: return 1;
    case CDCD_BSON_NULL: return 2;
    case CDCD_BSON_DOUBLE:
    case CDCD_BSON_INT32:
    case CDCD_BSON_INT64:
    case CDCD_BSON_DECIMAL: return 3;
    case CDCD_BSON_STRING:
    case CDCD_BSON_SYMBOL: return 4;
    case CDCD_BSON_DOCUMENT: return 5;
    case CDCD_BSON_ARRAY: return 6;
    case CDCD_BSON_BINARY: return 7;
    case CDCD_BSON_OID: return 8;
    case CDCD_BSON_BOOL: return 9;
    case CDCD_BSON_DATE: return 10;
    case CDCD_BSON_TIMESTAMP: return 11;
    case CDCD_BSON_REGEX: return 12;
    case CDCD_BSON_DBPOINTER: return 13;
    case CDCD_BSON_CODE: return 14;
    case CDCD_BSON_CODE_W_SCOPE: return 15;
    default: return 16;
    }
}

static int compare_bytes(struct cdcd_slice a, struct cdcd_slice b)
{
    size_t n = a.len < b.len ? a.len : b.len;
    int c = n ? memcmp(a.ptr, b.ptr, n) : 0;
    return c ? c : (a.len > b.len) - (a.len < b.len);
}

/* Near enough for the _ids of tests: digits beyond a long double's are not told apart. */
static long double exact_of(struct value v)
{
    struct cdcd_arena a;
    struct cdcd_writer w;
    const char *why;
    long double d = 0;

    if (v.type == CDCD_BSON_INT64)
        return (long double)cdcd_bson_int64(v.s);
    if (v.type != CDCD_BSON_DECIMAL)
        return (long double)number_of(v);
    cdcd_arena_init(&a, 256);
    cdcd_writer_begin(&w, &a);
    if (cdcd_bson_json_value(&w, v.type, v.s, &(struct cdcd_bson_style){.form = CDCD_BSON_PLAIN},
                             &why)) {
        cdcd_writer_char(&w, 0);
        const char *text = cdcd_writer_end(&w).ptr;
        d = strtold(text[0] == '"' ? text + 1 : text, NULL);
    }
    cdcd_arena_free(&a);
    return d;
}

static int compare_numbers(struct value a, struct value b)
{
    long double x = exact_of(a), y = exact_of(b);
    if (isnan(x) || isnan(y))
        return isnan(y) - isnan(x); /* NaN stands before all others */
    return (x > y) - (x < y);
}

static int compare_values(struct value a, struct value b);

static int compare_documents(struct cdcd_slice a, struct cdcd_slice b, bool names)
{
    struct cdcd_bson_iter x, y;
    struct cdcd_bson_element e, f;
    cdcd_bson_iter_init(&x, a);
    cdcd_bson_iter_init(&y, b);
    for (;;) {
        bool more = cdcd_bson_iter_next(&x, &e) > 0, other = cdcd_bson_iter_next(&y, &f) > 0;
        if (!more || !other)
            return more - other;
        int c = class_of(e.type) - class_of(f.type);
        if (!c && names)
            c = compare_bytes(e.name, f.name);
        if (!c)
            c = compare_values((struct value){e.type, e.value}, (struct value){f.type, f.value});
        if (c)
            return c;
    }
}

static int compare_values(struct value a, struct value b)
{
    int c = class_of(a.type) - class_of(b.type);
    int64_t x, y;

    if (c)
        return c;
    switch (class_of(a.type)) {
    case 3: return compare_numbers(a, b);
    case 4:
        return compare_bytes((struct cdcd_slice){a.s.ptr + 4, a.s.len - 5},
                             (struct cdcd_slice){b.s.ptr + 4, b.s.len - 5});
    case 5: return compare_documents(a.s, b.s, true);
    case 6: return compare_documents(a.s, b.s, false);
    case 7: /* length, then subtype, then bytes: as they are stored, the length little-endian */
        x = cdcd_bson_int32(a.s), y = cdcd_bson_int32(b.s);
        if (x != y)
            return (x > y) - (x < y);
        return memcmp(a.s.ptr + 4, b.s.ptr + 4, a.s.len - 4);
    case 10: x = cdcd_bson_int64(a.s), y = cdcd_bson_int64(b.s); return (x > y) - (x < y);
    case 11:
        x = cdcd_bson_int64(a.s), y = cdcd_bson_int64(b.s);
        return ((uint64_t)x > (uint64_t)y) - ((uint64_t)x < (uint64_t)y);
    default: return compare_bytes(a.s, b.s);
    }
}

#endif
