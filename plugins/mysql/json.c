/*
 * json: MySQL's binary JSON -> text, and the server's text -> the same.
 *
 * The text is the server's own (json_dom.cc, wrapper_to_string) without white space, in the order
 * of the stored keys, with one difference: a whole number of eight digits or more that is no
 * integer (1e10) loses the server's ".0", as Debezium prints it from 1e7 on.
 */
#include "json_int.h"

#include <cdcd/json.h>

#include <math.h>
#include <stdio.h>

enum cdcd_rc my_json_bad(struct cdcd_error *err, const uint8_t *p, size_t n)
{
    char hex[3 * 16 + 1] = "";

    for (size_t i = 0; i < n && i < 16; i++)
        snprintf(hex + 3 * i, 4, " %02x", p[i]);
    return cdcd_error_set(err, CDCD_ERR_DATA, "%zu bytes are no binary JSON; they begin with%s", n,
                          hex);
}

/* ---- reading ---- */

bool my_json_root(const uint8_t *p, size_t n, struct my_json *out)
{
    if (n == 0)
        return false;
    *out = (struct my_json){p[0], p + 1, n - 1};
    return true;
}

bool my_json_is_box(const struct my_json *v)
{
    return v->type <= MY_J_LARGE_ARRAY;
}

static size_t key_entry(const struct my_json_box *b)
{
    return b->object ? b->width + 2u : 0;
}

bool my_json_open(const struct my_json *v, struct my_json_box *out)
{
    uint8_t width = v->type & 1 ? 4 : 2;

    if (v->n < 2u * width)
        return false;
    uint64_t count = my_le(v->p, width), size = my_le(v->p + width, width);
    *out = (struct my_json_box){
        .p = v->p, .n = (size_t)size, .object = v->type <= MY_J_LARGE_OBJECT, .width = width};
    size_t entry = key_entry(out) + 1u + width;
    if (size > v->n || size < 2u * width || count > (size - 2u * width) / entry)
        return false;
    out->count = (uint32_t)count;
    return true;
}

size_t my_json_head_size(const struct my_json_box *b)
{
    return b->count * (key_entry(b) + 1u + b->width);
}

static bool is_inlined(uint8_t type, uint8_t width)
{
    switch (type) {
    case MY_J_LITERAL:
    case MY_J_INT16:
    case MY_J_UINT16: return true;
    case MY_J_INT32:
    case MY_J_UINT32: return width == 4;
    default: return false;
    }
}

bool my_json_at(const struct my_json_box *b, uint32_t i, struct my_json *out)
{
    const uint8_t *entry = b->p + 2u * b->width + b->count * key_entry(b) + i * (1u + b->width);

    if (is_inlined(entry[0], b->width)) {
        *out = (struct my_json){entry[0], entry + 1, b->width};
        return true;
    }
    uint64_t offset = my_le(entry + 1, b->width);
    if (offset >= b->n)
        return false;
    *out = (struct my_json){entry[0], b->p + offset, b->n - (size_t)offset};
    return true;
}

bool my_json_key(const struct my_json_box *b, uint32_t i, struct cdcd_slice *out)
{
    const uint8_t *entry = b->p + 2u * b->width + i * key_entry(b);
    uint64_t offset = my_le(entry, b->width), n = my_le(entry + b->width, 2);

    if (offset > b->n || n > b->n - offset)
        return false;
    *out = (struct cdcd_slice){(const char *)b->p + offset, (size_t)n};
    return true;
}

/* Seven bits a byte, the lowest first; the top bit says that more follow. */
static bool read_length(struct cdcd_cursor *c, size_t *out)
{
    uint64_t v = 0;

    for (int i = 0; i < 5; i++) {
        uint8_t b = cdcd_cur_u8(c);
        v |= (uint64_t)(b & 0x7f) << (7 * i);
        if (!(b & 0x80)) {
            *out = (size_t)v;
            return !c->bad && v <= UINT32_MAX;
        }
    }
    return false;
}

/* ---- writing ---- */

/* json_dom.cc, double_quote(). */
void my_json_put_string(struct cdcd_writer *w, struct cdcd_slice s)
{
    static const char hex[] = "0123456789abcdef";
    static const char shorts[] = "btn\0fr";
    char *o = cdcd_writer_room(w, 6 * s.len + 2);

    *o++ = '"';
    for (size_t i = 0; i < s.len; i++) {
        uint8_t c = (uint8_t)s.ptr[i];
        if (c == '"' || c == '\\') {
            *o++ = '\\';
            *o++ = (char)c;
        } else if (c >= 0x20) {
            *o++ = (char)c;
        } else if (c >= 8 && c <= 13 && shorts[c - 8]) {
            *o++ = '\\';
            *o++ = shorts[c - 8];
        } else {
            memcpy(o, "\\u00", 4);
            o[4] = hex[c >> 4];
            o[5] = hex[c & 15];
            o += 6;
        }
    }
    *o++ = '"';
    w->pos = o;
}

/* The one form of a number's text, wherever the text comes from. */
static void put_number(struct cdcd_writer *w, const char *p, size_t n)
{
    enum { MIN_DIGITS = 8 };
    size_t digits = n > 0 && p[0] == '-' ? 1 : 0, first = digits;

    while (digits < n && p[digits] >= '0' && p[digits] <= '9')
        digits++;
    if (digits - first >= MIN_DIGITS && n - digits == 2 && memcmp(p + digits, ".0", 2) == 0)
        n = digits;
    cdcd_writer_add(w, p, n);
}

static bool put_double(struct cdcd_writer *w, const uint8_t *p)
{
    char text[MY_DOUBLE_TEXT + 2];
    uint64_t bits = my_le(p, 8);
    double v;

    memcpy(&v, &bits, sizeof v);
    if (!isfinite(v))
        return false;
    size_t n = my_double_text(v, text);
    if (!memchr(text, '.', n) && !memchr(text, 'e', n)) {
        memcpy(text + n, ".0", 2);
        n += 2;
    }
    put_number(w, text, n);
    return true;
}

/* Packed as in memory: hours, minutes and seconds or year and month and so on as in the log's
 * forms, shifted by 24 bits of microseconds. */
static bool put_time(struct cdcd_writer *w, uint8_t type, struct cdcd_slice data)
{
    char text[64];
    int n;

    if (data.len != 8)
        return false;
    int64_t packed = (int64_t)my_le((const uint8_t *)data.ptr, 8);
    bool negative = packed < 0;
    uint64_t v = negative ? 0 - (uint64_t)packed : (uint64_t)packed;
    unsigned micros = v & 0xffffff, clock = v >> 24 & 0x1ffff;
    uint64_t days = v >> 41, year_month = days >> 5;
    if (type == MY_TIME) {
        unsigned whole = v >> 24 & 0x3fffffff;
        n = snprintf(text, sizeof text, "\"%s%02u:%02u:%02u.%06u\"", negative ? "-" : "",
                     whole >> 12, whole >> 6 & 63, whole & 63, micros);
    } else if (type == MY_DATE) {
        n = snprintf(text, sizeof text, "\"%04u-%02u-%02u\"", (unsigned)(year_month / 13),
                     (unsigned)(year_month % 13), (unsigned)(days & 31));
    } else {
        n = snprintf(text, sizeof text, "\"%04u-%02u-%02u %02u:%02u:%02u.%06u\"",
                     (unsigned)(year_month / 13), (unsigned)(year_month % 13),
                     (unsigned)(days & 31), clock >> 12, clock >> 6 & 63, clock & 63, micros);
    }
    if (n < 0 || (size_t)n >= sizeof text)
        return false;
    cdcd_writer_add(w, text, (size_t)n);
    return true;
}

static bool put_decimal(struct cdcd_writer *w, struct cdcd_slice data)
{
    char text[MY_DECIMAL_TEXT];
    const uint8_t *p = (const uint8_t *)data.ptr;

    if (data.len < 2 || p[0] > MY_DECIMAL_MAX || p[1] > p[0] ||
        data.len != 2 + my_decimal_size(p[0], p[1]))
        return false;
    put_number(w, text, my_decimal_text(p + 2, p[0], p[1], text));
    return true;
}

/* With a line feed, which JSON escapes, after each 76 characters (base64.h, base64_encode). */
static void put_base64(struct cdcd_writer *w, const uint8_t *p, size_t n)
{
    enum { LINE = 57 };

    for (size_t at = 0; at < n; at += LINE) {
        size_t part = n - at < LINE ? n - at : LINE;
        if (at)
            cdcd_writer_lit(w, "\\n");
        size_t start = (size_t)(w->pos - w->start);
        cdcd_json_base64(w, p + at, part, false);
        char *quoted = w->start + start; /* its quotes are not wanted here */
        w->pos -= 2;
        memmove(quoted, quoted + 1, (size_t)(w->pos - quoted));
    }
}

static bool put_opaque(struct my_json_writer *o, struct cdcd_cursor c)
{
    char head[32];
    uint8_t type = cdcd_cur_u8(&c);
    size_t n;

    if (!read_length(&c, &n))
        return false;
    struct cdcd_slice data = cdcd_cur_bytes(&c, n);
    if (c.bad || n > o->budget)
        return false;
    o->budget -= n;
    switch (type) {
    case MY_NEWDECIMAL: return put_decimal(o->w, data);
    case MY_DATE:
    case MY_TIME:
    case MY_DATETIME:
    case MY_TIMESTAMP: return put_time(o->w, type, data);
    default: break;
    }
    cdcd_writer_add(o->w, head, (size_t)snprintf(head, sizeof head, "\"base64:type%u:", type));
    put_base64(o->w, (const uint8_t *)data.ptr, data.len);
    cdcd_writer_char(o->w, '"');
    return true;
}

static bool put_string(struct my_json_writer *o, struct cdcd_cursor c)
{
    size_t n;

    if (!read_length(&c, &n))
        return false;
    struct cdcd_slice s = cdcd_cur_bytes(&c, n);
    if (c.bad || n > o->budget)
        return false;
    o->budget -= n;
    my_json_put_string(o->w, s);
    return true;
}

static bool put_literal(struct cdcd_writer *w, uint8_t which)
{
    static const char *const texts[] = {"null", "true", "false"};

    if (which > 2)
        return false;
    cdcd_writer_add(w, texts[which], strlen(texts[which]));
    return true;
}

static bool put_box(struct my_json_writer *o, const struct my_json *v)
{
    struct my_json_box b;

    if (++o->depth > MY_JSON_MAX_DEPTH || !my_json_open(v, &b))
        return false;
    size_t head = my_json_head_size(&b);
    if (head > o->budget)
        return false;
    o->budget -= head;
    cdcd_writer_char(o->w, b.object ? '{' : '[');
    for (uint32_t i = 0; i < b.count; i++) {
        struct cdcd_slice key;
        struct my_json item;
        if (i)
            cdcd_writer_char(o->w, ',');
        if (b.object) {
            if (!my_json_key(&b, i, &key) || key.len > o->budget)
                return false;
            o->budget -= key.len;
            my_json_put_string(o->w, key);
            cdcd_writer_char(o->w, ':');
        }
        if (!my_json_at(&b, i, &item) || !my_json_put(o, &item))
            return false;
    }
    cdcd_writer_char(o->w, b.object ? '}' : ']');
    o->depth--;
    return true;
}

bool my_json_put(struct my_json_writer *o, const struct my_json *v)
{
    static const uint8_t sizes[] = {
        [MY_J_LITERAL] = 1, [MY_J_INT16] = 2, [MY_J_UINT16] = 2, [MY_J_INT32] = 4,
        [MY_J_UINT32] = 4,  [MY_J_INT64] = 8, [MY_J_UINT64] = 8, [MY_J_DOUBLE] = 8};
    struct cdcd_cursor c = cdcd_cur(v->p, v->n);

    if (v->type < sizeof sizes && v->n < sizes[v->type])
        return false;
    switch ((enum my_json_type)v->type) {
    case MY_J_SMALL_OBJECT:
    case MY_J_LARGE_OBJECT:
    case MY_J_SMALL_ARRAY:
    case MY_J_LARGE_ARRAY: return put_box(o, v);
    case MY_J_LITERAL: return put_literal(o->w, v->p[0]);
    case MY_J_INT16: cdcd_json_int(o->w, (int16_t)my_le(v->p, 2)); return true;
    case MY_J_INT32: cdcd_json_int(o->w, (int32_t)my_le(v->p, 4)); return true;
    case MY_J_INT64: cdcd_json_int(o->w, (int64_t)my_le(v->p, 8)); return true;
    case MY_J_UINT16: cdcd_json_uint(o->w, my_le(v->p, 2)); return true;
    case MY_J_UINT32: cdcd_json_uint(o->w, my_le(v->p, 4)); return true;
    case MY_J_UINT64: cdcd_json_uint(o->w, my_le(v->p, 8)); return true;
    case MY_J_DOUBLE: return put_double(o->w, v->p);
    case MY_J_STRING: return put_string(o, c);
    case MY_J_OPAQUE: return put_opaque(o, c);
    }
    return false;
}

enum cdcd_rc my_json_text(const uint8_t *p, size_t n, struct cdcd_arena *a, struct cdcd_slice *out,
                          struct cdcd_error *err)
{
    struct my_json root;
    struct cdcd_writer w;

    if (n == 0) { /* what a NOT NULL column has where a value could not be stored */
        *out = (struct cdcd_slice){"null", 4};
        return CDCD_OK;
    }
    struct my_json_writer o = {.w = &w, .budget = n};
    cdcd_writer_begin(&w, a);
    bool ok = my_json_root(p, n, &root) && my_json_put(&o, &root);
    *out = cdcd_writer_end(&w);
    return ok ? CDCD_OK : my_json_bad(err, p, n);
}

/* ---- the server's text ---- */

static bool copy_string(struct cdcd_writer *w, const char **pp, const char *end)
{
    const char *p = *pp + 1;

    cdcd_writer_char(w, '"');
    while (p < end && *p != '"') {
        const char *run = p;
        while (p < end && *p != '"' && *p != '\\' && *p != '\n')
            p++;
        cdcd_writer_add(w, run, (size_t)(p - run));
        if (p < end && *p == '\n') { /* of base64 texts: not escaped by all versions */
            cdcd_writer_lit(w, "\\n");
            p++;
        } else if (p < end && *p == '\\') {
            if (end - p < 2)
                return false;
            cdcd_writer_add(w, p, 2);
            p += 2;
        }
    }
    if (p == end)
        return false;
    cdcd_writer_char(w, '"');
    *pp = p + 1;
    return true;
}

static bool is_token(char c)
{
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || c == '-' || c == '+' || c == '.' ||
           c == 'E';
}

static bool copy_token(struct cdcd_writer *w, const char **pp, const char *end)
{
    const char *p = *pp;

    while (p < end && is_token(*p))
        p++;
    size_t n = (size_t)(p - *pp);
    if (n == 0)
        return false;
    put_number(w, *pp, n);
    *pp = p;
    return true;
}

static bool copy_canonical(struct cdcd_writer *w, const char *p, const char *end)
{
    while (p < end) {
        bool ok = true;
        switch (*p) {
        case ' ':
        case '\t':
        case '\n':
        case '\r': p++; break;
        case '{':
        case '}':
        case '[':
        case ']':
        case ',':
        case ':': cdcd_writer_char(w, *p++); break;
        case '"': ok = copy_string(w, &p, end); break;
        default: ok = copy_token(w, &p, end); break;
        }
        if (!ok)
            return false;
    }
    return true;
}

enum cdcd_rc my_json_canon(const char *text, size_t n, struct cdcd_arena *a, struct cdcd_slice *out,
                           struct cdcd_error *err)
{
    struct cdcd_writer w;

    cdcd_writer_begin(&w, a);
    bool ok = n && copy_canonical(&w, text, text + n);
    *out = cdcd_writer_end(&w);
    if (!ok)
        return cdcd_error_set(err, CDCD_ERR_DATA, "\"%.*s\"%s is no JSON text",
                              n > 64 ? 64 : (int)n, text, n > 64 ? "..." : "");
    return CDCD_OK;
}
