/*
 * number: decimal texts of binary numbers.
 */
#include "number.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

static const double powers[] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,
                                1e8,  1e9,  1e10, 1e11, 1e12, 1e13, 1e14, 1e15,
                                1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};

/* Most numbers in tables have few digits. An integer below 2^53 divided by a power of ten up to
 * 10^22 is rounded correctly, so the quotient is what the text reads back as; and a text of at
 * most 15 digits (a float: 6, and few of them behind the point) is the only one so short. */
static bool few_digits(double v, bool single, struct my_digits *out)
{
    const double limit = single ? 1e6 : 1e15;
    const int last = single ? 8 : 20;

    if (v >= limit)
        return false;
    for (int k = 0; k <= last; k++) {
        double scaled = v * powers[k];
        if (scaled >= limit)
            return false;
        uint64_t r = (uint64_t)(scaled + 0.5);
        double back = (double)r / powers[k];
        if (single ? (float)back != (float)v : back != v)
            continue;
        char *end = out->digits + sizeof out->digits, *w = end;
        for (; r; r /= 10)
            *--w = (char)('0' + r % 10);
        out->n = (int)(end - w);
        out->exponent = out->n - k;
        memmove(out->digits, w, (size_t)out->n);
        return true;
    }
    return false;
}

static void many_digits(double v, bool single, struct my_digits *out)
{
    char text[40];
    int precision = single ? 6 : 15, last = single ? 9 : 17;

    if (v < (single ? FLT_MIN : DBL_MIN)) /* subnormal: fewer bits, so fewer digits may do */
        precision = 1;
    for (; precision <= last; precision++) {
        snprintf(text, sizeof text, "%.*e", precision - 1, v);
        if (single ? strtof(text, NULL) == (float)v : strtod(text, NULL) == v)
            break;
    }
    char *e = strchr(text, 'e');
    out->n = 0;
    for (const char *p = text; p < e; p++) {
        if (*p >= '0' && *p <= '9')
            out->digits[out->n++] = *p;
    }
    out->exponent = (int)strtol(e + 1, NULL, 10) + 1;
}

void my_shortest(double v, bool single, struct my_digits *out)
{
    out->negative = signbit(v);
    v = fabs(v);
    if (v == 0) {
        out->n = 1;
        out->exponent = 1;
        out->digits[0] = '0';
        return;
    }
    if (!few_digits(v, single, out))
        many_digits(v, single, out);
    while (out->n > 1 && out->digits[out->n - 1] == '0')
        out->n--;
}

static char *put_plain(char *w, const struct my_digits *d)
{
    if (d->exponent <= 0) {
        *w++ = '0';
        *w++ = '.';
        for (int i = d->exponent; i < 0; i++)
            *w++ = '0';
        memcpy(w, d->digits, (size_t)d->n);
        return w + d->n;
    }
    for (int i = 0; i < d->n || i < d->exponent; i++) {
        if (i == d->exponent)
            *w++ = '.';
        *w++ = i < d->n ? d->digits[i] : '0';
    }
    return w;
}

static char *put_exponent(char *w, const struct my_digits *d)
{
    *w++ = d->digits[0];
    if (d->n > 1) {
        *w++ = '.';
        memcpy(w, d->digits + 1, (size_t)d->n - 1);
        w += d->n - 1;
    }
    /* Of a double: three digits and a sign at the most. */
    return w + snprintf(w, 6, "e%d", d->exponent - 1);
}

size_t my_double_text(double v, char out[MY_DOUBLE_TEXT])
{
    enum { MAX_PLAIN = 15 };
    struct my_digits d;
    char *w = out;

    my_shortest(v, false, &d);
    if (d.negative)
        *w++ = '-';
    if (d.exponent > -MAX_PLAIN && (d.exponent <= MAX_PLAIN || d.n > d.exponent))
        w = put_plain(w, &d);
    else
        w = put_exponent(w, &d);
    return (size_t)(w - out);
}

void my_cell_float(double v, bool single, struct cdcd_arena *a, struct cdcd_cell *out)
{
    enum { MAX_PLAIN = 17 };
    char text[MY_DOUBLE_TEXT], *w = text;
    struct my_digits d;

    if (isnan(v)) {
        *out = (struct cdcd_cell){.kind = CDCD_C_FLOAT, .len = 3, .ptr = "NaN"};
        return;
    }
    if (isinf(v)) {
        *out = (struct cdcd_cell){
            .kind = CDCD_C_FLOAT, .len = v < 0 ? 9 : 8, .ptr = v < 0 ? "-Infinity" : "Infinity"};
        return;
    }
    my_shortest(v, single, &d);
    if (d.negative)
        *w++ = '-';
    if (d.exponent > -MAX_PLAIN && d.exponent <= MAX_PLAIN)
        w = put_plain(w, &d);
    else
        w = put_exponent(w, &d);
    char *p = cdcd_arena_alloc(a, (size_t)(w - text));
    memcpy(p, text, (size_t)(w - text));
    *out = (struct cdcd_cell){.kind = CDCD_C_FLOAT, .len = (uint32_t)(w - text), .ptr = p};
}

/* ---- decimals ---- */

static const uint8_t group_bytes[10] = {0, 1, 1, 2, 2, 3, 3, 4, 4, 4};

size_t my_decimal_size(unsigned precision, unsigned scale)
{
    unsigned whole = precision - scale;

    return whole / 9 * 4 + group_bytes[whole % 9] + scale / 9 * 4 + group_bytes[scale % 9];
}

struct decimal_reader {
    const uint8_t *p;
    uint8_t flip, first; /* xor of each byte; and of the first one once more */
};

static uint32_t read_group(struct decimal_reader *r, unsigned digits)
{
    uint32_t v = 0;

    for (unsigned i = 0; i < group_bytes[digits]; i++) {
        v = v << 8 | (uint8_t)(*r->p++ ^ r->flip ^ r->first);
        r->first = 0;
    }
    return v;
}

/* The lowest `digits` digits, with leading zeros. */
static char *put_group(char *w, uint32_t v, unsigned digits)
{
    for (unsigned i = digits; i-- > 0; v /= 10)
        w[i] = (char)('0' + v % 10);
    return w + digits;
}

size_t my_decimal_text(const uint8_t *p, unsigned precision, unsigned scale,
                       char out[MY_DECIMAL_TEXT])
{
    unsigned whole = precision - scale;
    bool negative = my_decimal_size(precision, scale) && !(p[0] & 0x80);
    struct decimal_reader r = {p, negative ? 0xff : 0, 0x80};
    char digits[MY_DECIMAL_TEXT], *w = digits, *o = out;

    w = put_group(w, read_group(&r, whole % 9), whole % 9);
    for (unsigned i = 0; i < whole / 9; i++)
        w = put_group(w, read_group(&r, 9), 9);
    char *point = w;
    for (unsigned i = 0; i < scale / 9; i++)
        w = put_group(w, read_group(&r, 9), 9);
    w = put_group(w, read_group(&r, scale % 9), scale % 9);

    char *first = digits;
    while (first < point && *first == '0')
        first++;
    for (char *z = first; negative && z <= w; z++) {
        if (z == w)
            negative = false; /* no digit but zeros */
        else if (*z != '0')
            break;
    }
    if (negative)
        *o++ = '-';
    if (first == point)
        *o++ = '0';
    memcpy(o, first, (size_t)(point - first));
    o += point - first;
    if (scale) {
        *o++ = '.';
        memcpy(o, point, scale);
        o += scale;
    }
    return (size_t)(o - out);
}
