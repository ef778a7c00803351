/*
 * Dates, times and intervals. All is proleptic Gregorian and UTC, years are ISO years (1 BC is
 * 0000), fractions of a second are floored, so that instants before 1970 come out right.
 */
#include "dbz.h"

#include <cdcd/log.h>

__extension__ typedef __int128 wide;

#define DAY_SECONDS INT64_C(86400)
#define DAY_MICROS  INT64_C(86400000000)
/* 365.25 / 12 days, exactly. */
#define MONTH_MICROS INT64_C(2629800000000)

/* What the peer's driver makes of infinity: 32-bit days shifted by its epoch and wrapped; for
 * timestamps the driver's two markers. All are apart from each other and from finite dates. */
#define DATE_INFINITY        INT64_C(-2147472692)
#define DATE_MINUS_INFINITY  INT64_C(-2147472691)
#define TS_INFINITY_US       INT64_C(9223372036825200000)
#define TS_MINUS_INFINITY_US INT64_C(-9223372036832400000)

static int64_t floor_div(int64_t a, int64_t b)
{
    int64_t q = a / b;
    return q - (a % b != 0 && (a < 0) != (b < 0));
}

/* After "chrono-Compatible Low-Level Date Algorithms" (H. Hinnant): eras of 400 years. */
static void civil_from_days(int64_t days, int64_t *year, int *month, int *day)
{
    days += 719468;
    int64_t era = floor_div(days, 146097);
    int64_t doe = days - era * 146097;
    int64_t yoe = (doe - doe / 1460 + doe / 36524 - doe / 146096) / 365;
    int64_t doy = doe - (365 * yoe + yoe / 4 - yoe / 100);
    int64_t mp = (5 * doy + 2) / 153;
    *day = (int)(doy - (153 * mp + 2) / 5 + 1);
    *month = (int)(mp < 10 ? mp + 3 : mp - 9);
    *year = yoe + era * 400 + (*month <= 2);
}

static char *put2(char *p, int v)
{
    p[0] = (char)('0' + v / 10);
    p[1] = (char)('0' + v % 10);
    return p + 2;
}

/* Four digits at least; a sign before years that have more, or are negative. */
static char *put_year(char *p, int64_t y)
{
    char digits[24];
    int n = 0;
    uint64_t v = y < 0 ? 0 - (uint64_t)y : (uint64_t)y;
    if (y < 0)
        *p++ = '-';
    else if (y > 9999)
        *p++ = '+';
    for (; v || n < 4; v /= 10)
        digits[n++] = (char)('0' + v % 10);
    while (n)
        *p++ = digits[--n];
    return p;
}

static char *put_date(char *p, int64_t days)
{
    int64_t year;
    int month, day;
    civil_from_days(days, &year, &month, &day);
    p = put_year(p, year);
    *p++ = '-';
    p = put2(p, month);
    *p++ = '-';
    return put2(p, day);
}

/* digits < 0: as many as it takes, none for zero. */
static char *put_fraction(char *p, uint32_t nanos, int digits)
{
    if (digits < 0) {
        if (!nanos)
            return p;
        for (digits = 9; nanos % 10 == 0; digits--)
            nanos /= 10;
    } else {
        for (int i = 9; i > digits; i--)
            nanos /= 10;
    }
    if (digits == 0)
        return p;
    *p++ = '.';
    for (int i = digits; i-- > 0; nanos /= 10)
        p[i] = (char)('0' + nanos % 10);
    return p + digits;
}

static char *put_number(char *p, int64_t v)
{
    char digits[24];
    int n = 0;
    uint64_t u = v < 0 ? 0 - (uint64_t)v : (uint64_t)v;
    if (v < 0)
        *p++ = '-';
    do
        digits[n++] = (char)('0' + u % 10);
    while (u /= 10);
    while (n)
        *p++ = digits[--n];
    return p;
}

static char *put_clock(char *p, int64_t seconds)
{
    int64_t hours = seconds / 3600;
    if (hours < 100)
        p = put2(p, (int)hours);
    else
        p = put_number(p, hours); /* MySQL's longest has three digits */
    *p++ = ':';
    p = put2(p, (int)(seconds / 60 % 60));
    *p++ = ':';
    return put2(p, (int)(seconds % 60));
}

static char *put_timestamp(char *p, const struct cdcd_cell *v, int digits)
{
    int64_t days = floor_div(v->i, DAY_SECONDS);
    p = put_date(p, days);
    *p++ = 'T';
    p = put_clock(p, v->i - days * DAY_SECONDS);
    p = put_fraction(p, v->len, digits);
    *p++ = 'Z';
    return p;
}

static bool put_infinity(struct cdcd_writer *w, int inf)
{
    if (inf > 0)
        cdcd_writer_lit(w, "\"infinity\"");
    else
        cdcd_writer_lit(w, "\"-infinity\"");
    return true;
}

/* A number that int64 does not hold. `what` is the value as text. */
static bool overflow(struct dbz *d, struct cdcd_writer *w, const struct dbz_column *c,
                     bool negative, const char *what, const char *other)
{
    if (d->cfg->time_overflow == CDCD_OVERFLOW_SATURATE) {
        cdcd_json_int(w, negative ? INT64_MIN : INT64_MAX);
        return true;
    }
    return dbz_fail(d, c,
                    "%s does not fit 64 bits in this unit; set %s, or time.overflow: saturate",
                    what, other);
}

/* ---- what is no date ---- */

/* Two rows whose keys differ only in what is no date get the same key. */
static void warn_key(struct dbz *d, const struct dbz_column *c, const struct cdcd_cell *v)
{
    if (!c->col->key || d->key_warned)
        return;
    d->key_warned = true;
    cdcd_warn("encode",
              "key column %s: %.*s is no date and is written as 1970-01-01, as all such values "
              "are, so that rows may get the same key; set zero.date.handling.mode to text",
              c->col->name, (int)(v->len < 80 ? v->len : 80), v->ptr);
}

bool dbz_write_no_date(struct dbz *d, struct cdcd_writer *w, const struct dbz_column *c,
                       const struct cdcd_cell *v)
{
    int shown = (int)(v->len < 80 ? v->len : 80);
    if (v->kind != CDCD_C_TEXT)
        return dbz_wrong_kind(d, c, v);
    switch (d->cfg->zero_date_mode) {
    case CDCD_ZERO_DATE_CONVERT:
        if (c->col->optional) {
            cdcd_writer_lit(w, "null");
        } else {
            warn_key(d, c, v);
            dbz_adds(w, dbz_forms[c->form].zero);
        }
        return true;
    case CDCD_ZERO_DATE_TEXT:
        if (d->cfg->schemas_enable)
            return dbz_fail(d, c,
                            "\"%.*s\" is no date and has no form in zero.date.handling.mode: text "
                            "with schemas.enable: true; set one of them otherwise",
                            shown, v->ptr);
        cdcd_json_string(w, v->ptr, v->len);
        return true;
    default:
        return dbz_fail(d, c,
                        "\"%.*s\" is no date; set zero.date.handling.mode to convert or text, or "
                        "correct the row",
                        shown, v->ptr);
    }
}

/* ---- date ---- */

bool dbz_write_date(struct dbz *d, struct cdcd_writer *w, const struct dbz_column *c,
                    const struct cdcd_cell *v)
{
    if (v->kind != CDCD_C_DATE)
        return dbz_write_no_date(d, w, c, v);
    cdcd_json_int(w, v->inf > 0 ? DATE_INFINITY : v->inf < 0 ? DATE_MINUS_INFINITY : v->i);
    return true;
}

bool dbz_write_date_iso(struct dbz *d, struct cdcd_writer *w, const struct dbz_column *c,
                        const struct cdcd_cell *v)
{
    if (v->kind != CDCD_C_DATE)
        return dbz_write_no_date(d, w, c, v);
    if (v->inf)
        return put_infinity(w, v->inf);
    char *p = cdcd_writer_room(w, 48);
    *p++ = '"';
    p = put_date(p, v->i);
    *p++ = 'Z';
    *p++ = '"';
    w->pos = p;
    return true;
}

/* ---- time ---- */

/* An int32, which MySQL's longest, 838:59:59, is beyond. */
bool dbz_write_time_ms(struct dbz *d, struct cdcd_writer *w, const struct dbz_column *c,
                       const struct cdcd_cell *v)
{
    if (v->kind != CDCD_C_TIME)
        return dbz_wrong_kind(d, c, v);
    int64_t ms = floor_div(v->i, 1000);
    if (ms < INT32_MIN || ms > INT32_MAX) {
        if (d->cfg->time_overflow != CDCD_OVERFLOW_SATURATE)
            return dbz_fail(d, c,
                            "a time of %lld ms does not fit 32 bits; set time.precision.mode: "
                            "microseconds, or time.overflow: saturate",
                            (long long)ms);
        ms = ms < 0 ? INT32_MIN : INT32_MAX;
    }
    cdcd_json_int(w, ms);
    return true;
}

bool dbz_write_time_us(struct dbz *d, struct cdcd_writer *w, const struct dbz_column *c,
                       const struct cdcd_cell *v)
{
    if (v->kind != CDCD_C_TIME)
        return dbz_wrong_kind(d, c, v);
    cdcd_json_int(w, v->i);
    return true;
}

bool dbz_write_time_ns(struct dbz *d, struct cdcd_writer *w, const struct dbz_column *c,
                       const struct cdcd_cell *v)
{
    if (v->kind != CDCD_C_TIME)
        return dbz_wrong_kind(d, c, v);
    int64_t ns;
    if (__builtin_mul_overflow(v->i, 1000, &ns))
        return overflow(d, w, c, v->i < 0, "the time", "time.precision.mode: microseconds");
    cdcd_json_int(w, ns);
    return true;
}

bool dbz_write_time_iso(struct dbz *d, struct cdcd_writer *w, const struct dbz_column *c,
                        const struct cdcd_cell *v)
{
    if (v->kind != CDCD_C_TIME)
        return dbz_wrong_kind(d, c, v);
    char *p = cdcd_writer_room(w, 48);
    uint64_t us = v->i < 0 ? 0 - (uint64_t)v->i : (uint64_t)v->i;
    *p++ = '"';
    if (v->i < 0)
        *p++ = '-';
    p = put_clock(p, (int64_t)(us / 1000000));
    p = put_fraction(p, (uint32_t)(us % 1000000) * 1000, -1);
    *p++ = 'Z';
    *p++ = '"';
    w->pos = p;
    return true;
}

/* ---- timestamp ---- */

/* seconds * per_second + nanos / nanos_per_unit */
static bool put_ts(struct dbz *d, struct cdcd_writer *w, const struct dbz_column *c,
                   const struct cdcd_cell *v, int64_t per_second)
{
    int64_t n;
    /* The last second before 1970-01-01 minus 2^63 units reaches down to INT64_MIN only when it
     * is counted from the second after it. */
    int64_t seconds = v->i, rest = v->len / (1000000000 / per_second);
    if (seconds < 0) {
        seconds++;
        rest -= per_second;
    }
    if (__builtin_mul_overflow(seconds, per_second, &n) || __builtin_add_overflow(n, rest, &n)) {
        char text[64];
        *put_timestamp(text, v, -1) = 0;
        return overflow(d, w, c, v->i < 0, text, "time.precision.mode: isostring");
    }
    cdcd_json_int(w, n);
    return true;
}

bool dbz_write_ts_ms(struct dbz *d, struct cdcd_writer *w, const struct dbz_column *c,
                     const struct cdcd_cell *v)
{
    if (v->kind != CDCD_C_TIMESTAMP)
        return dbz_write_no_date(d, w, c, v);
    if (v->inf) {
        cdcd_json_int(w, (v->inf > 0 ? TS_INFINITY_US : TS_MINUS_INFINITY_US) / 1000);
        return true;
    }
    return put_ts(d, w, c, v, 1000);
}

bool dbz_write_ts_us(struct dbz *d, struct cdcd_writer *w, const struct dbz_column *c,
                     const struct cdcd_cell *v)
{
    if (v->kind != CDCD_C_TIMESTAMP)
        return dbz_write_no_date(d, w, c, v);
    if (v->inf) {
        cdcd_json_int(w, v->inf > 0 ? TS_INFINITY_US : TS_MINUS_INFINITY_US);
        return true;
    }
    return put_ts(d, w, c, v, 1000000);
}

bool dbz_write_ts_ns(struct dbz *d, struct cdcd_writer *w, const struct dbz_column *c,
                     const struct cdcd_cell *v)
{
    if (v->kind != CDCD_C_TIMESTAMP)
        return dbz_write_no_date(d, w, c, v);
    if (v->inf) {
        cdcd_json_int(w, v->inf > 0 ? INT64_MAX : INT64_MIN);
        return true;
    }
    return put_ts(d, w, c, v, 1000000000);
}

static bool put_ts_text(struct dbz *d, struct cdcd_writer *w, const struct dbz_column *c,
                        const struct cdcd_cell *v, int digits)
{
    if (v->kind != CDCD_C_TIMESTAMP)
        return dbz_write_no_date(d, w, c, v);
    if (v->inf)
        return put_infinity(w, v->inf);
    char *p = cdcd_writer_room(w, 64);
    *p++ = '"';
    p = put_timestamp(p, v, digits);
    *p++ = '"';
    w->pos = p;
    return true;
}

bool dbz_write_ts_iso(struct dbz *d, struct cdcd_writer *w, const struct dbz_column *c,
                      const struct cdcd_cell *v)
{
    return put_ts_text(d, w, c, v, -1);
}

bool dbz_write_tstz(struct dbz *d, struct cdcd_writer *w, const struct dbz_column *c,
                    const struct cdcd_cell *v)
{
    int32_t scale = c->col->scale;
    return put_ts_text(d, w, c, v, scale < 0 ? 6 : scale > 9 ? 9 : scale);
}

/* ---- interval ---- */

/* P1Y2M3DT4H5M6.78S: every part with its own sign, none left out. */
static char *put_interval(char *p, const struct cdcd_interval *iv)
{
    uint64_t us = iv->micros < 0 ? 0 - (uint64_t)iv->micros : (uint64_t)iv->micros;
    int64_t sign = iv->micros < 0 ? -1 : 1;
    int64_t seconds = (int64_t)(us / 1000000);
    *p++ = 'P';
    p = put_number(p, iv->months / 12);
    *p++ = 'Y';
    p = put_number(p, iv->months % 12);
    *p++ = 'M';
    p = put_number(p, iv->days);
    *p++ = 'D';
    *p++ = 'T';
    p = put_number(p, sign * (seconds / 3600));
    *p++ = 'H';
    p = put_number(p, sign * (seconds / 60 % 60));
    *p++ = 'M';
    if (sign < 0 && us % 60000000)
        *p++ = '-';
    p = put_number(p, seconds % 60);
    p = put_fraction(p, (uint32_t)(us % 1000000) * 1000, -1);
    *p++ = 'S';
    return p;
}

bool dbz_write_interval(struct dbz *d, struct cdcd_writer *w, const struct dbz_column *c,
                        const struct cdcd_cell *v)
{
    if (v->kind != CDCD_C_INTERVAL)
        return dbz_wrong_kind(d, c, v);
    if (v->inf) {
        cdcd_json_int(w, v->inf > 0 ? INT64_MAX : INT64_MIN);
        return true;
    }
    wide us = (wide)v->iv->months * MONTH_MICROS + (wide)v->iv->days * DAY_MICROS + v->iv->micros;
    if (us < INT64_MIN || us > INT64_MAX) {
        char text[160];
        *put_interval(text, v->iv) = 0;
        return overflow(d, w, c, us < 0, text, "interval.handling.mode: string");
    }
    cdcd_json_int(w, (int64_t)us);
    return true;
}

bool dbz_write_interval_iso(struct dbz *d, struct cdcd_writer *w, const struct dbz_column *c,
                            const struct cdcd_cell *v)
{
    if (v->kind != CDCD_C_INTERVAL)
        return dbz_wrong_kind(d, c, v);
    if (v->inf)
        return put_infinity(w, v->inf);
    char *p = cdcd_writer_room(w, 160);
    *p++ = '"';
    p = put_interval(p, v->iv);
    *p++ = '"';
    w->pos = p;
    return true;
}
