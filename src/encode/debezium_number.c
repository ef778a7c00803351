/*
 * Floats in the form of Java's Double.toString, which JSON libraries on the JVM print, and
 * decimals as Connect's Decimal: the unscaled value, big-endian, in two's complement, in as few
 * bytes as possible.
 */
#include "dbz.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

/* ---- floats ---- */

/* A double has at most 17 significant digits and 309 before the point; twice that is plenty. */
#define FLOAT_DIGITS 700

/* The text as 0.DIGITS * 10^exponent, without zeros around DIGITS; none at all for zero. */
struct float_text {
    bool negative;
    int exponent;
    int n;
    char digits[FLOAT_DIGITS];
};

static bool float_parse_exponent(const char *p, const char *end, int *out)
{
    bool negative = p < end && *p == '-';
    if (p < end && (*p == '-' || *p == '+'))
        p++;
    if (p == end || end - p > 5)
        return false;
    int v = 0;
    for (; p < end; p++) {
        if (*p < '0' || *p > '9')
            return false;
        v = v * 10 + (*p - '0');
    }
    *out = negative ? -v : v;
    return true;
}

static bool float_parse(const char *p, size_t len, struct float_text *f)
{
    const char *end = p + len;
    int exponent = 0, shift = 0;
    bool any = false, point = false;
    f->n = 0;
    f->negative = p < end && *p == '-';
    if (f->negative)
        p++;
    for (; p < end && *p != 'e' && *p != 'E'; p++) {
        if (*p == '.' && !point) {
            point = true;
            continue;
        }
        if (*p < '0' || *p > '9' || f->n == FLOAT_DIGITS)
            return false;
        any = true;
        if (f->n || *p != '0') {
            f->digits[f->n++] = *p;
            shift += !point;
        } else {
            shift -= point;
        }
    }
    if (!any || (p < end && !float_parse_exponent(p + 1, end, &exponent)))
        return false;
    while (f->n && f->digits[f->n - 1] == '0')
        f->n--;
    f->exponent = shift + exponent;
    return true;
}

/* Java: plain from 10^-3 up to 10^7, else computerised scientific notation; always a digit on
 * both sides of the point. */
static void float_put(struct cdcd_writer *w, const struct float_text *f)
{
    int e = f->exponent - 1; /* of the first digit */
    if (f->negative)
        cdcd_writer_char(w, '-');
    if (!f->n) {
        cdcd_writer_lit(w, "0.0");
    } else if (e < -3 || e >= 7) {
        cdcd_writer_char(w, f->digits[0]);
        cdcd_writer_char(w, '.');
        if (f->n > 1)
            cdcd_writer_add(w, f->digits + 1, (size_t)f->n - 1);
        else
            cdcd_writer_char(w, '0');
        cdcd_writer_char(w, 'E');
        cdcd_json_int(w, e);
    } else if (e < 0) {
        cdcd_writer_add(w, "0.00", (size_t)(1 - e)); /* "0." and up to two zeros */
        cdcd_writer_add(w, f->digits, (size_t)f->n);
    } else {
        for (int i = 0; i <= e; i++)
            cdcd_writer_char(w, i < f->n ? f->digits[i] : '0');
        cdcd_writer_char(w, '.');
        if (f->n > e + 1)
            cdcd_writer_add(w, f->digits + e + 1, (size_t)(f->n - e - 1));
        else
            cdcd_writer_char(w, '0');
    }
}

/* "NaN", "Infinity", "-Infinity". */
static bool is_special(const struct cdcd_cell *v)
{
    return v->len > 0 && (v->ptr[0] == 'N' || v->ptr[0] == 'I' ||
                          (v->ptr[0] == '-' && v->len > 1 && v->ptr[1] == 'I'));
}

static void put_quoted(struct cdcd_writer *w, const struct cdcd_cell *v)
{
    cdcd_writer_char(w, '"');
    cdcd_writer_add(w, v->ptr, v->len);
    cdcd_writer_char(w, '"');
}

bool dbz_write_float(struct dbz *d, struct cdcd_writer *w, const struct dbz_column *c,
                     const struct cdcd_cell *v)
{
    if (v->kind == CDCD_C_INT) { /* a whole number from a source that knows it is one */
        cdcd_json_int(w, v->i);
        cdcd_writer_lit(w, ".0");
        return true;
    }
    if (v->kind != CDCD_C_FLOAT)
        return dbz_wrong_kind(d, c, v);
    if (is_special(v)) {
        put_quoted(w, v);
        return true;
    }
    struct float_text f;
    if (!float_parse(v->ptr, v->len, &f))
        return dbz_fail(d, c, "\"%.*s\" is not a floating-point number", (int)v->len, v->ptr);
    float_put(w, &f);
    return true;
}

void dbz_put_double(struct cdcd_writer *w, double v)
{
    char text[40];
    struct float_text f;
    if (isnan(v) || isinf(v)) {
        dbz_adds(w, isnan(v) ? "\"NaN\"" : v > 0 ? "\"Infinity\"" : "\"-Infinity\"");
        return;
    }
    for (int digits = 15; digits <= 17; digits++) {
        snprintf(text, sizeof(text), "%.*g", digits, v);
        if (strtod(text, NULL) == v)
            break;
    }
    float_parse(text, strlen(text), &f);
    float_put(w, &f);
}

bool dbz_float_value(const struct cdcd_cell *v, double *out)
{
    char text[FLOAT_DIGITS + 16];
    if (v->kind == CDCD_C_INT) {
        *out = (double)v->i;
        return true;
    }
    if (v->kind != CDCD_C_FLOAT || v->len == 0 || v->len >= sizeof(text))
        return false;
    memcpy(text, v->ptr, v->len);
    text[v->len] = 0;
    char *end;
    *out = strtod(text, &end);
    return *end == 0;
}

/* ---- decimals ---- */

/* The digits of the unscaled value at a scale, as parts of the text: what stands before the
 * point, what after it, and zeros. */
struct decimal {
    bool negative;
    const char *whole, *fraction;
    size_t nwhole, nfraction, zeros;
};

static bool all_digits(const char *p, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (p[i] < '0' || p[i] > '9')
            return false;
    }
    return true;
}

/* [-]digits[.digits]; leading zeros are dropped. */
static bool decimal_parse(const struct cdcd_cell *v, struct decimal *x)
{
    const char *p = v->ptr, *end = p + v->len;
    x->negative = p < end && *p == '-';
    if (x->negative)
        p++;
    const char *point = memchr(p, '.', (size_t)(end - p));
    x->whole = p;
    x->nwhole = (size_t)((point ? point : end) - p);
    x->fraction = point ? point + 1 : end;
    x->nfraction = (size_t)(end - x->fraction);
    x->zeros = 0;
    if (x->nwhole + x->nfraction == 0 || !all_digits(x->whole, x->nwhole) ||
        !all_digits(x->fraction, x->nfraction))
        return false;
    while (x->nwhole && *x->whole == '0') {
        x->whole++;
        x->nwhole--;
    }
    return true;
}

/* Takes n zeros off the end. */
static bool drop_zeros(struct decimal *x, size_t n)
{
    for (; n && x->nfraction; n--) {
        if (x->fraction[--x->nfraction] != '0')
            return false;
    }
    for (; n && x->nwhole; n--) {
        if (x->whole[--x->nwhole] != '0')
            return false;
    }
    return true;
}

/* False when digits other than zero would be lost. */
static bool decimal_rescale(struct decimal *x, int32_t scale)
{
    int64_t more = (int64_t)scale - (int64_t)x->nfraction;
    if (more < 0)
        return drop_zeros(x, (size_t)-more);
    x->zeros = (size_t)more;
    return true;
}

/* Multiplies the number of *n limbs (least significant first) and adds. */
static void big_muladd(uint32_t *limbs, size_t *n, uint32_t mul, uint32_t add)
{
    uint64_t carry = add;
    for (size_t i = 0; i < *n; i++) {
        carry += (uint64_t)limbs[i] * mul;
        limbs[i] = (uint32_t)carry;
        carry >>= 32;
    }
    if (carry)
        limbs[(*n)++] = (uint32_t)carry;
}

struct big {
    uint32_t *limbs;
    size_t n;
    uint32_t chunk, mul; /* digits not yet added, nine at a time */
};

static void big_digit(struct big *b, uint32_t digit)
{
    b->chunk = b->chunk * 10 + digit;
    b->mul *= 10;
    if (b->mul == 1000000000) {
        big_muladd(b->limbs, &b->n, b->mul, b->chunk);
        b->chunk = 0;
        b->mul = 1;
    }
}

/* More digits than __int128 holds: schoolbook, quadratic; PostgreSQL's largest numeric (147,455
 * digits) takes some tenths of a second. */
static void put_big(struct dbz *d, struct cdcd_writer *w, const struct decimal *x, size_t digits)
{
    cdcd_buf_clear(&d->scratch);
    size_t cap = digits / 9 + 2; /* a limb holds more than nine digits */
    char *room = cdcd_buf_reserve(&d->scratch, cap * 4 + 8 + cap * 4 + 1);
    struct big b = {.limbs = (uint32_t *)(void *)(room + (-(uintptr_t)room & 7)), .mul = 1};
    for (size_t i = 0; i < x->nwhole; i++)
        big_digit(&b, (uint32_t)(x->whole[i] - '0'));
    for (size_t i = 0; i < x->nfraction; i++)
        big_digit(&b, (uint32_t)(x->fraction[i] - '0'));
    for (size_t i = 0; i < x->zeros; i++)
        big_digit(&b, 0);
    if (b.mul > 1)
        big_muladd(b.limbs, &b.n, b.mul, b.chunk);

    uint8_t *bytes = (uint8_t *)(b.limbs + b.n), *p = bytes + 1;
    bytes[0] = 0;
    for (size_t i = b.n; i-- > 0; p += 4) {
        for (int k = 0; k < 4; k++)
            p[k] = (uint8_t)(b.limbs[i] >> (24 - 8 * k));
    }
    size_t n = (size_t)(p - bytes);
    unsigned carry = 1;
    for (size_t i = n; x->negative && i-- > 0;) {
        carry += (uint8_t)~bytes[i];
        bytes[i] = (uint8_t)carry;
        carry >>= 8;
    }
    /* A sign byte that the next byte's top bit repeats says nothing. */
    while (n > 1 &&
           ((bytes[0] == 0 && bytes[1] < 0x80) || (bytes[0] == 0xff && bytes[1] >= 0x80))) {
        bytes++;
        n--;
    }
    cdcd_json_base64(w, bytes, n, false);
}

static void put_int64(struct cdcd_writer *w, int64_t v)
{
    uint8_t bytes[8];
    size_t n = 1;
    /* As many bytes as hold the value with its sign bit. */
    uint64_t magnitude = (uint64_t)(v < 0 ? ~v : v);
    if (magnitude >= 0x80)
        n = (size_t)(64 - __builtin_clzll(magnitude)) / 8 + 1;
    for (size_t i = 0; i < n; i++)
        bytes[i] = (uint8_t)((uint64_t)v >> (8 * (n - 1 - i)));
    cdcd_json_base64(w, bytes, n, false);
}

__extension__ typedef __int128 wide;
__extension__ typedef unsigned __int128 uwide;

static void put_wide(struct cdcd_writer *w, wide v)
{
    uint8_t bytes[16];
    size_t n = 16;
    for (size_t i = 0; i < 16; i++)
        bytes[i] = (uint8_t)((uwide)v >> (8 * (15 - i)));
    uint8_t *p = bytes;
    while (n > 1 && ((p[0] == 0 && p[1] < 0x80) || (p[0] == 0xff && p[1] >= 0x80))) {
        p++;
        n--;
    }
    cdcd_json_base64(w, p, n, false);
}

static void put_unscaled(struct dbz *d, struct cdcd_writer *w, const struct decimal *x)
{
    size_t digits = x->nwhole + x->nfraction + x->zeros;
    if (digits <= 18) {
        int64_t v = 0;
        for (size_t i = 0; i < x->nwhole; i++)
            v = v * 10 + (x->whole[i] - '0');
        for (size_t i = 0; i < x->nfraction; i++)
            v = v * 10 + (x->fraction[i] - '0');
        for (size_t i = 0; i < x->zeros; i++)
            v *= 10;
        put_int64(w, x->negative ? -v : v);
    } else if (digits <= 38) {
        wide v = 0;
        for (size_t i = 0; i < x->nwhole; i++)
            v = v * 10 + (x->whole[i] - '0');
        for (size_t i = 0; i < x->nfraction; i++)
            v = v * 10 + (x->fraction[i] - '0');
        for (size_t i = 0; i < x->zeros; i++)
            v *= 10;
        put_wide(w, x->negative ? -v : v);
    } else {
        put_big(d, w, x, digits);
    }
}

/* NaN and infinities have no form as a Connect Decimal: a JSON string without a schema, an
 * error with one; never null. */
static bool put_special(struct dbz *d, struct cdcd_writer *w, const struct dbz_column *c,
                        const struct cdcd_cell *v)
{
    if (d->cfg->schemas_enable)
        return dbz_fail(d, c,
                        "%.*s has no form in decimal.handling.mode: precise with schemas.enable: "
                        "true; set decimal.handling.mode to string or double",
                        (int)v->len, v->ptr);
    put_quoted(w, v);
    return true;
}

static bool bad_decimal(struct dbz *d, const struct dbz_column *c, const struct cdcd_cell *v)
{
    return dbz_fail(d, c, "\"%.*s\" is not a decimal number", (int)(v->len < 80 ? v->len : 80),
                    v->ptr);
}

bool dbz_write_decimal(struct dbz *d, struct cdcd_writer *w, const struct dbz_column *c,
                       const struct cdcd_cell *v)
{
    struct decimal x;
    if (v->kind != CDCD_C_DECIMAL)
        return dbz_wrong_kind(d, c, v);
    if (is_special(v))
        return put_special(d, w, c, v);
    if (!decimal_parse(v, &x))
        return bad_decimal(d, c, v);
    if (!decimal_rescale(&x, c->col->scale))
        return dbz_fail(d, c, "%.*s has more fraction digits than the column's scale of %d",
                        (int)(v->len < 80 ? v->len : 80), v->ptr, (int)c->col->scale);
    put_unscaled(d, w, &x);
    return true;
}

bool dbz_write_vardecimal(struct dbz *d, struct cdcd_writer *w, const struct dbz_column *c,
                          const struct cdcd_cell *v)
{
    struct decimal x;
    if (v->kind != CDCD_C_DECIMAL)
        return dbz_wrong_kind(d, c, v);
    if (is_special(v))
        return put_special(d, w, c, v);
    if (!decimal_parse(v, &x))
        return bad_decimal(d, c, v);
    cdcd_writer_lit(w, "{\"scale\":");
    cdcd_json_uint(w, x.nfraction);
    cdcd_writer_lit(w, ",\"value\":");
    put_unscaled(d, w, &x);
    cdcd_writer_char(w, '}');
    return true;
}

bool dbz_write_decimal_string(struct dbz *d, struct cdcd_writer *w, const struct dbz_column *c,
                              const struct cdcd_cell *v)
{
    struct decimal x;
    if (v->kind != CDCD_C_DECIMAL)
        return dbz_wrong_kind(d, c, v);
    if (!is_special(v) && !decimal_parse(v, &x))
        return bad_decimal(d, c, v);
    put_quoted(w, v);
    return true;
}

bool dbz_write_decimal_double(struct dbz *d, struct cdcd_writer *w, const struct dbz_column *c,
                              const struct cdcd_cell *v)
{
    struct decimal x;
    if (v->kind != CDCD_C_DECIMAL)
        return dbz_wrong_kind(d, c, v);
    if (is_special(v)) {
        put_quoted(w, v);
        return true;
    }
    if (!decimal_parse(v, &x))
        return bad_decimal(d, c, v);
    cdcd_buf_clear(&d->scratch);
    cdcd_buf_add(&d->scratch, v->ptr, v->len);
    double value = strtod(cdcd_buf_cstr(&d->scratch), NULL);
    if (isinf(value))
        return dbz_fail(d, c,
                        "%.*s is beyond the range of a double; set decimal.handling.mode to "
                        "precise or string",
                        (int)(v->len < 80 ? v->len : 80), v->ptr);
    dbz_put_double(w, value);
    return true;
}

bool dbz_write_uint64_decimal(struct dbz *d, struct cdcd_writer *w, const struct dbz_column *c,
                              const struct cdcd_cell *v)
{
    if (v->kind == CDCD_C_UINT)
        put_wide(w, (wide)v->u);
    else if (v->kind == CDCD_C_INT)
        put_int64(w, v->i);
    else
        return dbz_wrong_kind(d, c, v);
    return true;
}
