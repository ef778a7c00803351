/*
 * types_scalar: numbers, money, booleans, bytes and bits in the server's text form.
 */
#include "types.h"

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static const char *skip_digits(const char *p, const char *end)
{
    while (p < end && is_digit(*p))
        p++;
    return p;
}

static bool text_is(const char *p, size_t n, const char *word)
{
    return n == strlen(word) && memcmp(p, word, n) == 0;
}

bool pg_parse_int(const char *p, size_t n, int64_t min, int64_t max, int64_t *out)
{
    bool negative = n > 0 && *p == '-';
    const char *end = p + n;
    uint64_t v = 0;

    p += negative;
    if (p == end || end - p > 19) /* 19 digits stay below 2^64 */
        return false;
    for (; p < end; p++) {
        if (!is_digit(*p))
            return false;
        v = v * 10 + (uint64_t)(*p - '0');
    }
    if (v > (uint64_t)INT64_MAX + negative)
        return false;
    int64_t i = negative ? (int64_t)(0 - v) : (int64_t)v;
    if (i < min || i > max)
        return false;
    *out = i;
    return true;
}

static bool is_special(const char *p, size_t n)
{
    return text_is(p, n, "NaN") || text_is(p, n, "Infinity") || text_is(p, n, "-Infinity");
}

/* Behind [-]digits[.digits]; NULL when that is not what stands there. */
static const char *skip_plain_number(const char *q, const char *end)
{
    const char *digits;

    if (q < end && *q == '-')
        q++;
    digits = q;
    q = skip_digits(q, end);
    if (q == digits)
        return NULL;
    if (q < end && *q == '.') {
        digits = ++q;
        q = skip_digits(q, end);
        if (q == digits)
            return NULL;
    }
    return q;
}

/* [-]digits[.digits][e[+-]digits], as float4out and float8out print it. */
bool pg_parse_float(const char *p, size_t n)
{
    const char *end = p + n, *q = skip_plain_number(p, end), *digits;

    if (!q)
        return is_special(p, n);
    if (q < end && (*q == 'e' || *q == 'E')) {
        q++;
        if (q < end && (*q == '+' || *q == '-'))
            q++;
        digits = q;
        q = skip_digits(q, end);
        if (q == digits)
            return false;
    }
    return q == end;
}

/* [-]digits[.digits]: numeric_out knows no exponent. */
bool pg_parse_numeric(const char *p, size_t n)
{
    const char *end = p + n, *q = skip_plain_number(p, end);

    return q ? q == end : is_special(p, n);
}

/* lc_monetary is pinned to C: "$1,234.56", "-$0.01". A server that prints another form by
 * locale, "($1.00)" or "1.234,56 EUR", is understood where it is unambiguous: the last
 * separator is the decimal point if it has one or two digits behind it. */
bool pg_parse_money(const char *p, size_t n, struct cdcd_arena *a, struct cdcd_cell *out)
{
    size_t last = n, ndigits = 0, behind = 0;
    bool negative = false;

    if (n > 64)
        return false;
    for (size_t i = 0; i < n; i++) {
        if (is_digit(p[i])) {
            ndigits++;
            behind++;
        } else if ((p[i] == '.' || p[i] == ',') && ndigits > 0 && i + 1 < n && is_digit(p[i + 1])) {
            last = i;
            behind = 0;
        } else if (p[i] == '-' || p[i] == '(') {
            negative = true;
        }
    }
    if (ndigits == 0)
        return false;
    if (last < n && p[last] == ',' && behind == 3)
        last = n; /* groups of thousands and no fraction: "$1,234" */
    char *s = cdcd_arena_alloc(a, n + 2), *w = s;
    if (negative)
        *w++ = '-';
    for (size_t i = 0; i < n; i++) {
        if (is_digit(p[i]))
            *w++ = p[i];
        else if (i == last)
            *w++ = '.';
    }
    *out = (struct cdcd_cell){.kind = CDCD_C_DECIMAL, .len = (uint32_t)(w - s), .ptr = s};
    return true;
}

int pg_hex_digit(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    if (c >= 'A' && c <= 'F')
        return c - 'A' + 10;
    return -1;
}

static bool bytea_hex(const char *p, size_t n, struct cdcd_arena *a, struct cdcd_cell *out)
{
    if (n % 2)
        return false;
    char *b = cdcd_arena_alloc(a, n / 2 + 1);
    for (size_t i = 0; i < n; i += 2) {
        int hi = pg_hex_digit(p[i]), lo = pg_hex_digit(p[i + 1]);
        if (hi < 0 || lo < 0)
            return false;
        b[i / 2] = (char)(hi << 4 | lo);
    }
    *out = (struct cdcd_cell){.kind = CDCD_C_BYTES, .len = (uint32_t)(n / 2), .ptr = b};
    return true;
}

/* bytea_output = escape: \\ is a backslash, \ooo an octet, all else itself. */
static bool bytea_escape(const char *p, size_t n, struct cdcd_arena *a, struct cdcd_cell *out)
{
    char *b = cdcd_arena_alloc(a, n + 1), *w = b;

    for (size_t i = 0; i < n;) {
        if (p[i] != '\\') {
            *w++ = p[i++];
        } else if (n - i >= 2 && p[i + 1] == '\\') {
            *w++ = '\\';
            i += 2;
        } else if (n - i >= 4 && p[i + 1] >= '0' && p[i + 1] <= '3' && p[i + 2] >= '0' &&
                   p[i + 2] <= '7' && p[i + 3] >= '0' && p[i + 3] <= '7') {
            *w++ = (char)((p[i + 1] - '0') << 6 | (p[i + 2] - '0') << 3 | (p[i + 3] - '0'));
            i += 4;
        } else {
            return false;
        }
    }
    *out = (struct cdcd_cell){.kind = CDCD_C_BYTES, .len = (uint32_t)(w - b), .ptr = b};
    return true;
}

bool pg_parse_bytea(const char *p, size_t n, struct cdcd_arena *a, struct cdcd_cell *out)
{
    if (n >= 2 && p[0] == '\\' && p[1] == 'x')
        return bytea_hex(p + 2, n - 2, a, out);
    return bytea_escape(p, n, a, out);
}

/* The rightmost bit is bit 0 of byte 0. Bytes behind the highest set bit are left out, as
 * consumers of the bit set form have it: the declared width is in the schema. */
bool pg_parse_bits(const char *p, size_t n, struct cdcd_arena *a, struct cdcd_cell *out)
{
    size_t first = 0;

    while (first < n && p[first] == '0')
        first++;
    size_t bits = n - first, bytes = (bits + 7) / 8;
    unsigned char *b = cdcd_arena_alloc(a, bytes + 1);
    memset(b, 0, bytes);
    for (size_t i = 0; i < bits; i++) {
        char c = p[n - 1 - i];
        if (c == '1')
            b[i / 8] |= (unsigned char)(1u << (i % 8));
        else if (c != '0')
            return false;
    }
    *out = (struct cdcd_cell){.kind = CDCD_C_BYTES, .len = (uint32_t)bytes, .ptr = (char *)b};
    return true;
}

bool pg_parse_uuid(const char *p, size_t n)
{
    if (n != 36)
        return false;
    for (size_t i = 0; i < n; i++) {
        bool dash = i == 8 || i == 13 || i == 18 || i == 23;
        if (dash ? p[i] != '-' : pg_hex_digit(p[i]) < 0)
            return false;
    }
    return true;
}
