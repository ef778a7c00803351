/*
 * ddl_default.c: the literal of a DEFAULT in one form, however a statement or information_schema
 * writes it:
 *   integers          digits
 *   DECIMAL           with as many fraction digits as the column has; FLOAT(M,D) too
 *   BIT               binary digits without leading zeros
 *   dates and times   as the server prints them, with the column's fraction digits
 *   ENUM, SET         the labels' own spelling, in their order
 *   BINARY(n)         filled up to n; in bytes, a NUL is "\0" and a backslash "\\"
 *   other text        the value; one with a NUL has no form (NULL)
 */
#include "ddl.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

static bool starts(const char *s, const char *prefix)
{
    return strncmp(s, prefix, strlen(prefix)) == 0;
}

static bool is_integer(const char *type)
{
    return starts(type, "TINYINT") || starts(type, "SMALLINT") || starts(type, "MEDIUMINT") ||
           starts(type, "INT ") || strcmp(type, "INT") == 0 || starts(type, "BIGINT");
}

static int hex_digit(char c)
{
    return c >= '0' && c <= '9'                 ? c - '0'
           : (c | 32) >= 'a' && (c | 32) <= 'f' ? (c | 32) - 'a' + 10
                                                : -1;
}

/* Bytes of a literal of any kind. */
static void literal_bytes(enum my_token_kind kind, struct cdcd_slice text, struct cdcd_buf *out)
{
    if (kind == MY_TOK_HEX) {
        size_t odd = text.len & 1;
        for (size_t i = 0; i < text.len; i += i == 0 && odd ? 1 : 2) {
            int hi = i == 0 && odd ? 0 : hex_digit(text.ptr[i]);
            int lo = hex_digit(text.ptr[i == 0 && odd ? 0 : i + 1]);
            char c = (char)((hi < 0 ? 0 : hi) << 4 | (lo < 0 ? 0 : lo));
            cdcd_buf_add(out, &c, 1);
        }
        return;
    }
    if (kind == MY_TOK_BITS) {
        for (size_t i = 0, n = text.len; i < n;) {
            char c = 0;
            size_t take = (n - i) % 8 ? (n - i) % 8 : 8;
            for (size_t k = 0; k < take; k++)
                c = (char)(c << 1 | (text.ptr[i++] == '1'));
            cdcd_buf_add(out, &c, 1);
        }
        return;
    }
    cdcd_buf_add(out, text.ptr, text.len);
}

/* The number of a literal in hex or bits; false: more than 64 bits. */
static bool literal_number(enum my_token_kind kind, struct cdcd_slice text, uint64_t *out)
{
    struct cdcd_buf b;

    cdcd_buf_init(&b, 0);
    literal_bytes(kind, text, &b);
    *out = 0;
    size_t skip = 0;
    while (skip < b.len && b.ptr[skip] == 0)
        skip++;
    bool ok = b.len - skip <= 8;
    for (size_t i = skip; ok && i < b.len; i++)
        *out = *out << 8 | (uint8_t)b.ptr[i];
    cdcd_buf_free(&b);
    return ok;
}

/* Blanks around it and a plus sign away. */
static struct cdcd_slice trim_number(struct cdcd_slice s)
{
    while (s.len && (s.ptr[0] == ' ' || s.ptr[0] == '+'))
        s = (struct cdcd_slice){s.ptr + 1, s.len - 1};
    while (s.len && s.ptr[s.len - 1] == ' ')
        s.len--;
    return s;
}

static bool all_digits(struct cdcd_slice s)
{
    for (size_t i = 0; i < s.len; i++) {
        if (!isdigit((unsigned char)s.ptr[i]))
            return false;
    }
    return s.len > 0;
}

static unsigned to_number(struct cdcd_slice digits)
{
    unsigned v = 0;

    for (size_t i = 0; i < digits.len; i++)
        v = v * 10 + (unsigned)(digits.ptr[i] - '0');
    return v;
}

static char *canon_integer(struct cdcd_slice s)
{
    s = trim_number(s);
    bool minus = s.len && s.ptr[0] == '-';
    struct cdcd_slice digits = {s.ptr + minus, s.len - minus};
    const char *point = memchr(digits.ptr, '.', digits.len);
    if (point && all_digits((struct cdcd_slice){digits.ptr, (size_t)(point - digits.ptr)})) {
        size_t zeros = (size_t)(digits.ptr + digits.len - point) - 1;
        while (zeros && point[zeros] == '0')
            zeros--;
        if (zeros == 0)
            digits.len = (size_t)(point - digits.ptr);
    }
    while (digits.len > 1 && digits.ptr[0] == '0' && all_digits(digits))
        digits = (struct cdcd_slice){digits.ptr + 1, digits.len - 1};
    return cdcd_xasprintf("%s%.*s", minus ? "-" : "", (int)digits.len, digits.ptr);
}

/* [-]digits[.digits] gets the column's fraction digits; with more than those, or an exponent, it
 * stays as it is. */
static char *canon_decimal(const struct my_column *c, struct cdcd_slice s)
{
    s = trim_number(s);
    bool minus = s.len && s.ptr[0] == '-';
    const char *p = s.ptr + minus, *end = s.ptr + s.len, *point = memchr(p, '.', (size_t)(end - p));
    struct cdcd_slice whole = {p, (size_t)((point ? point : end) - p)};
    struct cdcd_slice part = {point ? point + 1 : end, point ? (size_t)(end - point) - 1 : 0};

    while (part.len > (size_t)(c->scale > 0 ? c->scale : 0) && part.ptr[part.len - 1] == '0')
        part.len--;
    if ((whole.len && !all_digits(whole)) || (part.len && !all_digits(part)) ||
        whole.len + part.len == 0 || part.len > (size_t)(c->scale > 0 ? c->scale : 0))
        return cdcd_xstrndup(s.ptr, s.len);
    while (whole.len > 1 && whole.ptr[0] == '0')
        whole = (struct cdcd_slice){whole.ptr + 1, whole.len - 1};
    struct cdcd_buf b;
    cdcd_buf_init(&b, 0);
    cdcd_buf_addf(&b, "%s%.*s", minus ? "-" : "", (int)(whole.len ? whole.len : 1),
                  whole.len ? whole.ptr : "0");
    if (c->scale > 0)
        cdcd_buf_addf(&b, ".%.*s%.*s", (int)part.len, part.ptr, c->scale - (int)part.len,
                      "000000000000000000000000000000");
    char *out = cdcd_xstrdup(cdcd_buf_cstr(&b));
    cdcd_buf_free(&b);
    return out;
}

static char *canon_bits(enum my_token_kind kind, struct cdcd_slice text)
{
    char digits[65], *w = digits + 64;
    uint64_t v = 0;

    if (kind == MY_TOK_NUMBER) {
        for (size_t i = 0; i < text.len; i++) {
            if (!isdigit((unsigned char)text.ptr[i]))
                return NULL;
            v = v * 10 + (uint64_t)(text.ptr[i] - '0');
        }
    } else if (!literal_number(kind, text, &v)) {
        return NULL;
    }
    *w = 0;
    do
        *--w = (char)('0' + (v & 1));
    while (v >>= 1);
    return cdcd_xstrdup(w);
}

/* ---- dates and times ---- */

struct parts {
    unsigned n[7]; /* year, month, day, hour, minute, second, microseconds */
    int found;     /* how many before the fraction */
    bool minus;
};

/* Numbers between other characters; a fraction of a second is scaled to microseconds. */
static bool split_parts(struct cdcd_slice s, struct parts *out)
{
    const char *p = s.ptr, *end = s.ptr + s.len;
    bool fraction = false;

    *out = (struct parts){0};
    if (p < end && *p == '-') {
        out->minus = true;
        p++;
    }
    while (p < end) {
        unsigned v = 0, width = 0;
        while (p < end && isdigit((unsigned char)*p)) {
            if (!fraction || width < 6)
                v = v * 10 + (unsigned)(*p - '0');
            p++;
            width++;
        }
        if (width == 0 || (!fraction && (width > 6 || out->found == 6)))
            return false;
        if (fraction) {
            for (; width < 6; width++)
                v *= 10;
            out->n[6] = v;
            return p == end;
        }
        out->n[out->found++] = v;
        if (p == end)
            return true;
        fraction = *p == '.' && out->found >= 3;
        p++;
        while (p < end && *p == ' ')
            p++;
    }
    return p == end && out->found > 0;
}

/* YYYYMMDD[hhmmss] and HHMMSS without anything between. */
static bool split_digits(struct cdcd_slice s, bool time, struct parts *out)
{
    char padded[15] = "00000000000000";

    *out = (struct parts){0};
    if (!all_digits(s) || s.len > 14)
        return false;
    if (time) {
        if (s.len > 7)
            return false;
        unsigned v = to_number(s);
        out->n[0] = v / 10000;
        out->n[1] = v / 100 % 100;
        out->n[2] = v % 100;
        out->found = 3;
        return true;
    }
    if (s.len == 8 || s.len == 14)
        memcpy(padded, s.ptr, s.len);
    else if (s.len != 1 || s.ptr[0] != '0')
        return false;
    out->found = sscanf(padded, "%4u%2u%2u%2u%2u%2u", &out->n[0], &out->n[1], &out->n[2],
                        &out->n[3], &out->n[4], &out->n[5]);
    return out->found == 6;
}

static char *with_fraction(const struct my_column *c, char *text, unsigned micros)
{
    char digits[8];

    if (c->length <= 0)
        return text;
    snprintf(digits, sizeof digits, "%06u", micros % 1000000);
    char *out = cdcd_xasprintf("%s.%.*s", text, c->length > 6 ? 6 : c->length, digits);
    free(text);
    return out;
}

static char *canon_date(const struct my_column *c, struct cdcd_slice text)
{
    struct parts p;
    struct cdcd_slice s = trim_number(text);
    bool date = strcmp(c->type, "DATE") == 0;

    if (!split_digits(s, false, &p) && !(split_parts(s, &p) && p.found >= 3))
        return cdcd_xstrndup(text.ptr, text.len);
    if (p.minus || p.n[0] < 100) /* two digits of a year, or no date: the server decides */
        if (p.n[0] || p.n[1] || p.n[2])
            return cdcd_xstrndup(text.ptr, text.len);
    if (date)
        return cdcd_xasprintf("%04u-%02u-%02u", p.n[0], p.n[1], p.n[2]);
    return with_fraction(c,
                         cdcd_xasprintf("%04u-%02u-%02u %02u:%02u:%02u", p.n[0], p.n[1], p.n[2],
                                        p.n[3], p.n[4], p.n[5]),
                         p.n[6]);
}

static char *canon_time(const struct my_column *c, struct cdcd_slice text)
{
    struct parts p;
    struct cdcd_slice s = trim_number(text);

    if (memchr(s.ptr, ' ', s.len) ||
        (!split_digits(s, true, &p) && !(split_parts(s, &p) && p.found >= 2 && p.found <= 3)))
        return cdcd_xstrndup(text.ptr, text.len);
    return with_fraction(
        c, cdcd_xasprintf("%s%02u:%02u:%02u", p.minus ? "-" : "", p.n[0], p.n[1], p.n[2]), p.n[6]);
}

static char *canon_year(struct cdcd_slice s)
{
    s = trim_number(s);
    if (!all_digits(s) || s.len > 4)
        return cdcd_xstrndup(s.ptr, s.len);
    unsigned y = to_number(s);
    if (s.len <= 2)
        y += y == 0 && s.len == 1 ? 0 : y < 70 ? 2000 : 1900;
    return cdcd_xasprintf("%04u", y);
}

/* ---- text and bytes ---- */

static const char *find_label(const struct my_column *c, const char *text, size_t *index)
{
    for (size_t i = 0; c->labels && c->labels[i]; i++) {
        if (my_name_equal(c->labels[i], text)) {
            *index = i;
            return c->labels[i];
        }
    }
    return NULL;
}

static char *canon_enum(const struct my_column *c, struct cdcd_slice text)
{
    char *s = cdcd_xstrndup(text.ptr, text.len);
    size_t i;
    const char *label = find_label(c, s, &i);

    if (!label)
        return s;
    free(s);
    return cdcd_xstrdup(label);
}

static char *canon_set(const struct my_column *c, struct cdcd_slice text)
{
    char *s = cdcd_xstrndup(text.ptr, text.len), *rest = s, *part;
    uint64_t bits = 0;
    bool known = true;
    size_t i = 0;

    while ((part = strsep(&rest, ","))) {
        if (*part == 0)
            continue;
        if (find_label(c, part, &i) && i < 64)
            bits |= UINT64_C(1) << i;
        else
            known = false;
    }
    free(s);
    if (!known)
        return cdcd_xstrndup(text.ptr, text.len);
    struct cdcd_buf b;
    cdcd_buf_init(&b, 0);
    for (i = 0; c->labels && c->labels[i] && i < 64; i++) {
        if (bits >> i & 1)
            cdcd_buf_addf(&b, "%s%s", b.len ? "," : "", c->labels[i]);
    }
    char *out = cdcd_xstrdup(cdcd_buf_cstr(&b));
    cdcd_buf_free(&b);
    return out;
}

static bool is_utf8(const char *s, size_t n)
{
    const uint8_t *p = (const uint8_t *)s;

    for (size_t i = 0; i < n;) {
        size_t len = p[i] < 0x80 ? 1 : p[i] < 0xc2 ? 0 : p[i] < 0xe0 ? 2 : p[i] < 0xf0 ? 3 : 4;
        if (len == 0 || p[i] > 0xf4 || len > n - i)
            return false;
        for (size_t k = 1; k < len; k++) {
            if ((p[i + k] & 0xc0) != 0x80)
                return false;
        }
        i += len;
    }
    return true;
}

/* Bytes that are no UTF-8 have no form: information_schema does not show them truly, and a note
 * cannot hold them. */
static char *canon_binary(const struct my_column *c, const struct cdcd_buf *bytes)
{
    size_t n = bytes->len;
    struct cdcd_buf b;

    if (!is_utf8(bytes->ptr, n))
        return NULL;
    if (strcmp(c->type, "BINARY") == 0 && c->length > 0 && (size_t)c->length > n)
        n = (size_t)c->length;
    cdcd_buf_init(&b, 0);
    for (size_t i = 0; i < n; i++) {
        char byte = i < bytes->len ? bytes->ptr[i] : 0;
        if (byte == 0)
            cdcd_buf_adds(&b, "\\0");
        else if (byte == '\\')
            cdcd_buf_adds(&b, "\\\\");
        else
            cdcd_buf_add(&b, &byte, 1);
    }
    char *out = cdcd_xstrdup(cdcd_buf_cstr(&b));
    cdcd_buf_free(&b);
    return out;
}

static char *canon_text(const struct my_column *c, const struct cdcd_buf *bytes)
{
    size_t n = bytes->len;

    if (n && memchr(bytes->ptr, 0, n))
        return NULL;
    while (strcmp(c->type, "CHAR") == 0 && n && bytes->ptr[n - 1] == ' ')
        n--;
    return cdcd_xstrndup(n ? bytes->ptr : "", n);
}

static bool is_bytes(const char *type)
{
    return strcmp(type, "BINARY") == 0 || strcmp(type, "VARBINARY") == 0 || strstr(type, "BLOB");
}

static bool is_number(const char *type)
{
    return is_integer(type) || starts(type, "DECIMAL") || starts(type, "FLOAT") ||
           starts(type, "DOUBLE") || strcmp(type, "YEAR") == 0;
}

static char *canon_number(const struct my_column *c, enum my_token_kind kind,
                          struct cdcd_slice text)
{
    char digits[24];
    uint64_t v;

    if (kind == MY_TOK_HEX || kind == MY_TOK_BITS) {
        if (!literal_number(kind, text, &v))
            return NULL;
        snprintf(digits, sizeof digits, "%" PRIu64, v);
        text = cdcd_slice_str(digits);
    }
    if (starts(c->type, "DECIMAL") || c->scale >= 0) /* FLOAT(M,D) too */
        return canon_decimal(c, text);
    if (strcmp(c->type, "YEAR") == 0)
        return canon_year(text);
    if (is_integer(c->type))
        return canon_integer(text);
    text = trim_number(text);
    return cdcd_xstrndup(text.ptr, text.len);
}

char *my_default_canon(const struct my_column *c, enum my_token_kind kind, struct cdcd_slice text)
{
    struct cdcd_buf bytes;
    char *out;

    if (strcmp(c->type, "BIT") == 0)
        return canon_bits(kind, text);
    if (is_number(c->type))
        return canon_number(c, kind, text);
    if (strcmp(c->type, "DATE") == 0 || strcmp(c->type, "DATETIME") == 0 ||
        strcmp(c->type, "TIMESTAMP") == 0)
        return canon_date(c, text);
    if (strcmp(c->type, "TIME") == 0)
        return canon_time(c, text);
    if (strcmp(c->type, "ENUM") == 0)
        return canon_enum(c, text);
    if (strcmp(c->type, "SET") == 0)
        return canon_set(c, text);
    cdcd_buf_init(&bytes, 0);
    literal_bytes(kind, text, &bytes);
    out = is_bytes(c->type) ? canon_binary(c, &bytes) : canon_text(c, &bytes);
    cdcd_buf_free(&bytes);
    return out;
}
