/*
 * One record as one line:
 *
 *   {"topic":"t","key":{...}|null,"value":{...}|null,"headers":{"name":...}}
 *
 * Keys and values are the encoder's bytes. Bytes that cannot be JSON (a binary format) are
 * written as a JSON string.
 */
#include "file.h"

#include <cdcd/json.h>

static const char *skip_space(const char *p, const char *end)
{
    while (p < end && (*p == ' ' || *p == '\t' || *p == '\n' || *p == '\r'))
        p++;
    return p;
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static bool is_hex(char c)
{
    return is_digit(c) || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
}

/* The scanners return the end of what they scanned, or NULL. */
static const char *scan_string(const char *p, const char *end)
{
    for (p++; p < end; p++) {
        if (*p == '"')
            return p + 1;
        if ((unsigned char)*p < 0x20)
            return NULL;
        if (*p != '\\')
            continue;
        if (++p == end)
            return NULL;
        if (*p == 'u') {
            if (end - p < 5 || !is_hex(p[1]) || !is_hex(p[2]) || !is_hex(p[3]) || !is_hex(p[4]))
                return NULL;
            p += 4;
        } else if (!*p || !strchr("\"\\/bfnrt", *p)) {
            return NULL;
        }
    }
    return NULL;
}

static const char *scan_digits(const char *p, const char *end)
{
    const char *start = p;
    while (p < end && is_digit(*p))
        p++;
    return p == start ? NULL : p;
}

static const char *scan_number(const char *p, const char *end)
{
    if (p < end && *p == '-')
        p++;
    if (p < end && *p == '0')
        p++;
    else if (!(p = scan_digits(p, end)))
        return NULL;
    if (p < end && *p == '.' && !(p = scan_digits(p + 1, end)))
        return NULL;
    if (p < end && (*p == 'e' || *p == 'E')) {
        p++;
        if (p < end && (*p == '+' || *p == '-'))
            p++;
        return scan_digits(p, end);
    }
    return p;
}

static const char *scan_literal(const char *p, const char *end)
{
    static const char *const literals[] = {"true", "false", "null"};
    for (size_t i = 0; i < 3; i++) {
        size_t n = strlen(literals[i]);
        if ((size_t)(end - p) >= n && memcmp(p, literals[i], n) == 0)
            return p + n;
    }
    return NULL;
}

#define MAX_DEPTH 64

static const char *scan_value(const char *p, const char *end, int depth);

static const char *scan_list(const char *p, const char *end, int depth)
{
    char close = *p == '{' ? '}' : ']';
    bool object = *p == '{';
    p = skip_space(p + 1, end);
    if (p < end && *p == close)
        return p + 1;
    for (;;) {
        if (object) {
            if (p == end || *p != '"' || !(p = scan_string(p, end)))
                return NULL;
            p = skip_space(p, end);
            if (p == end || *p != ':')
                return NULL;
            p = skip_space(p + 1, end);
        }
        if (!(p = scan_value(p, end, depth + 1)))
            return NULL;
        p = skip_space(p, end);
        if (p == end)
            return NULL;
        if (*p == close)
            return p + 1;
        if (*p != ',')
            return NULL;
        p = skip_space(p + 1, end);
    }
}

static const char *scan_value(const char *p, const char *end, int depth)
{
    if (p == end || depth > MAX_DEPTH)
        return NULL;
    if (*p == '{' || *p == '[')
        return scan_list(p, end, depth);
    if (*p == '"')
        return scan_string(p, end);
    if (*p == '-' || is_digit(*p))
        return scan_number(p, end);
    return scan_literal(p, end);
}

bool file_json_valid(const char *p, size_t n)
{
    const char *end = p + n;
    p = scan_value(skip_space(p, end), end, 0);
    return p && skip_space(p, end) == end;
}

static bool may_begin_json(char c)
{
    return c == '{' || c == '[' || c == '"' || c == '-' || is_digit(c) || c == 't' || c == 'f' ||
           c == 'n';
}

static bool plain(const char *p, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if ((unsigned char)p[i] < 0x20 || (unsigned char)p[i] >= 0x7f || p[i] == '"' ||
            p[i] == '\\')
            return false;
    return true;
}

static void add_string(struct cdcd_buf *out, struct cdcd_slice s)
{
    if (plain(s.ptr, s.len)) {
        cdcd_buf_add(out, "\"", 1);
        cdcd_buf_add(out, s.ptr, s.len);
        cdcd_buf_add(out, "\"", 1);
        return;
    }
    struct cdcd_arena arena;
    struct cdcd_writer w;
    cdcd_arena_init(&arena, 1024);
    cdcd_writer_begin(&w, &arena);
    cdcd_json_string(&w, s.ptr, s.len);
    struct cdcd_slice quoted = cdcd_writer_end(&w);
    cdcd_buf_add(out, quoted.ptr, quoted.len);
    cdcd_arena_free(&arena);
}

static void add_value(struct cdcd_buf *out, struct cdcd_slice v)
{
    if (!v.ptr)
        cdcd_buf_add(out, "null", 4);
    else if (v.len && may_begin_json(v.ptr[0]))
        cdcd_buf_add(out, v.ptr, v.len);
    else
        add_string(out, v);
}

static void add_header(struct cdcd_buf *out, const struct cdcd_header *h)
{
    add_string(out, h->name);
    cdcd_buf_add(out, ":", 1);
    if (!h->value.ptr)
        cdcd_buf_add(out, "null", 4);
    else if (h->json || (h->value.len && may_begin_json(h->value.ptr[0]) &&
                         file_json_valid(h->value.ptr, h->value.len)))
        cdcd_buf_add(out, h->value.ptr, h->value.len);
    else
        add_string(out, h->value);
}

#define add_literal(out, s) cdcd_buf_add((out), "" s, sizeof(s) - 1)

bool file_line_append(struct cdcd_buf *out, const struct cdcd_record *r)
{
    size_t start = out->len;
    add_literal(out, "{\"topic\":");
    cdcd_buf_add(out, r->topic->name_json.ptr, r->topic->name_json.len);
    add_literal(out, ",\"key\":");
    add_value(out, r->key);
    add_literal(out, ",\"value\":");
    add_value(out, r->value);
    add_literal(out, ",\"headers\":{");
    for (uint32_t i = 0; i < r->nheaders; i++) {
        if (i)
            cdcd_buf_add(out, ",", 1);
        add_header(out, &r->headers[i]);
    }
    add_literal(out, "}}\n");
    if (out->failed) {
        out->len = start;
        out->failed = false;
        return false;
    }
    return true;
}
