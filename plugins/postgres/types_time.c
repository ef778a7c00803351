/*
 * types_time: dates, times, timestamps and intervals in the server's text form, with DateStyle ISO
 * and IntervalStyle postgres.
 *
 *   date         YYYY-MM-DD[ BC] | [-]infinity          years of four digits or more
 *   time         HH:MM:SS[.ffffff]                      up to 24:00:00
 *   timetz       time, then +HH[:MM[:SS]]
 *   timestamp    YYYY-MM-DD HH:MM:SS[.ffffff][zone][ BC] | [-]infinity
 *   interval     [N year[s]] [N mon[s]] [N day[s]] [[+-]HH:MM:SS[.ffffff]], each with its own sign
 *
 * Everything is computed in integers of the proleptic Gregorian calendar; year 1 BC is year 0.
 */
#include "types.h"

#define US_PER_S   INT64_C(1000000)
#define US_PER_DAY (86400 * US_PER_S)

struct text {
    const char *p, *end;
};

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static bool take(struct text *t, char c)
{
    if (t->p == t->end || *t->p != c)
        return false;
    t->p++;
    return true;
}

static bool two_digits(struct text *t, int *out)
{
    if (t->end - t->p < 2 || !is_digit(t->p[0]) || !is_digit(t->p[1]))
        return false;
    *out = (t->p[0] - '0') * 10 + (t->p[1] - '0');
    t->p += 2;
    return true;
}

/* Days from 1970-01-01. The year begins on 1 March here, so that the leap day is its last. */
static int64_t days_from_civil(int64_t y, int m, int d)
{
    y -= m <= 2;
    int64_t era = (y >= 0 ? y : y - 399) / 400;
    int64_t yoe = y - era * 400;
    int64_t doy = (153 * (m > 2 ? m - 3 : m + 9) + 2) / 5 + d - 1;
    int64_t doe = yoe * 365 + yoe / 4 - yoe / 100 + doy;
    return era * 146097 + doe - 719468;
}

static bool valid_day(int64_t y, int m, int d)
{
    static const int8_t days[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};

    if (m < 1 || m > 12 || d < 1 || d > 31)
        return false;
    if (m == 2 && d == 29)
        return y % 4 == 0 && (y % 100 != 0 || y % 400 == 0);
    return d <= days[m - 1];
}

struct ymd {
    int64_t year;
    int month, day;
};

static bool read_ymd(struct text *t, struct ymd *out)
{
    const char *start = t->p;

    out->year = 0;
    while (t->p < t->end && is_digit(*t->p) && t->p - start < 7)
        out->year = out->year * 10 + (*t->p++ - '0');
    return t->p - start >= 4 && take(t, '-') && two_digits(t, &out->month) && take(t, '-') &&
           two_digits(t, &out->day);
}

/* The end of a date: nothing, or " BC". */
static bool read_days(struct text *t, const struct ymd *d, int64_t *days)
{
    int64_t year = d->year;

    if (year == 0)
        return false;
    if (t->end - t->p == 3 && memcmp(t->p, " BC", 3) == 0) {
        year = 1 - year;
        t->p += 3;
    }
    if (t->p != t->end || !valid_day(year, d->month, d->day))
        return false;
    *days = days_from_civil(year, d->month, d->day);
    return true;
}

/* .f to .ffffff, or nothing. */
static bool read_fraction(struct text *t, int *us)
{
    *us = 0;
    if (!take(t, '.'))
        return true;
    int digits = 0;
    for (; t->p < t->end && is_digit(*t->p) && digits < 6; digits++)
        *us = *us * 10 + (*t->p++ - '0');
    if (digits == 0)
        return false;
    for (; digits < 6; digits++)
        *us *= 10;
    return true;
}

static bool read_time(struct text *t, int64_t *us)
{
    int h, m, s, f;

    if (!two_digits(t, &h) || !take(t, ':') || !two_digits(t, &m) || !take(t, ':') ||
        !two_digits(t, &s) || !read_fraction(t, &f))
        return false;
    if (h > 24 || m > 59 || s > 59)
        return false;
    *us = ((int64_t)h * 3600 + m * 60 + s) * US_PER_S + f;
    return *us <= US_PER_DAY;
}

/* +HH[:MM[:SS]] east of Greenwich. */
static bool read_zone(struct text *t, int *seconds)
{
    int h, m = 0, s = 0;
    bool west = t->p < t->end && *t->p == '-';

    if (!west && (t->p == t->end || *t->p != '+'))
        return false;
    t->p++;
    if (!two_digits(t, &h))
        return false;
    if (take(t, ':') && (!two_digits(t, &m) || (take(t, ':') && !two_digits(t, &s))))
        return false;
    if (h > 15 || m > 59 || s > 59)
        return false;
    *seconds = h * 3600 + m * 60 + s;
    if (west)
        *seconds = -*seconds;
    return true;
}

static int infinity(const char *p, size_t n)
{
    if (n == 8 && memcmp(p, "infinity", 8) == 0)
        return 1;
    return n == 9 && memcmp(p, "-infinity", 9) == 0 ? -1 : 0;
}

bool pg_parse_date(const char *p, size_t n, struct cdcd_cell *out)
{
    struct text t = {p, p + n};
    struct ymd d;
    int64_t days;

    *out = (struct cdcd_cell){.kind = CDCD_C_DATE, .inf = (int8_t)infinity(p, n)};
    if (out->inf)
        return true;
    if (!read_ymd(&t, &d) || !read_days(&t, &d, &days))
        return false;
    out->i = days;
    return true;
}

bool pg_parse_time(const char *p, size_t n, struct cdcd_cell *out)
{
    struct text t = {p, p + n};
    int64_t us;

    if (!read_time(&t, &us) || t.p != t.end)
        return false;
    *out = (struct cdcd_cell){.kind = CDCD_C_TIME, .i = us};
    return true;
}

/* ISO 8601 in UTC, seconds always, as many fraction digits as there are. 24:00:00+00 has no other
 * time of day that sorts where it does, so it stays "24:00:00Z". */
bool pg_parse_timetz(const char *p, size_t n, struct cdcd_arena *a, struct cdcd_cell *out)
{
    struct text t = {p, p + n};
    int64_t us;
    int zone;

    if (!read_time(&t, &us) || !read_zone(&t, &zone) || t.p != t.end)
        return false;
    if (us != US_PER_DAY || zone != 0) {
        us = (us - zone * US_PER_S) % US_PER_DAY;
        if (us < 0)
            us += US_PER_DAY;
    }
    int s = (int)(us / US_PER_S), f = (int)(us % US_PER_S);
    char *w = cdcd_arena_alloc(a, 17), *start = w;
    const int parts[] = {s / 3600, s / 60 % 60, s % 60};
    for (int i = 0; i < 3; i++) {
        if (i)
            *w++ = ':';
        *w++ = (char)('0' + parts[i] / 10);
        *w++ = (char)('0' + parts[i] % 10);
    }
    if (f) {
        *w++ = '.';
        for (int unit = 100000; f; f %= unit, unit /= 10)
            *w++ = (char)('0' + f / unit);
    }
    *w++ = 'Z';
    *out = cdcd_cell_text(start, (size_t)(w - start));
    return true;
}

bool pg_parse_timestamp(const char *p, size_t n, bool zone, struct cdcd_cell *out)
{
    struct text t = {p, p + n};
    struct ymd d;
    int64_t days, us;
    int offset = 0;

    *out = (struct cdcd_cell){.kind = CDCD_C_TIMESTAMP, .inf = (int8_t)infinity(p, n)};
    if (out->inf)
        return true;
    if (!read_ymd(&t, &d) || !take(&t, ' ') || !read_time(&t, &us) ||
        (zone && !read_zone(&t, &offset)) || !read_days(&t, &d, &days))
        return false;
    out->i = days * 86400 + us / US_PER_S - offset;
    out->len = (uint32_t)(us % US_PER_S) * 1000;
    return true;
}

/* ---- interval ---- */

/* [+-]digits; at most 18 of them. */
static bool read_number(struct text *t, bool *negative, int64_t *out)
{
    *negative = false;
    if (t->p < t->end && (*t->p == '-' || *t->p == '+'))
        *negative = *t->p++ == '-';
    const char *start = t->p;
    *out = 0;
    while (t->p < t->end && is_digit(*t->p) && t->p - start < 18)
        *out = *out * 10 + (*t->p++ - '0');
    return t->p > start && (t->p == t->end || !is_digit(*t->p));
}

/* :MM:SS[.ffffff] behind hours. The magnitude of the lowest value is one above the highest. */
static bool read_clock(struct text *t, int64_t hours, bool negative, int64_t *micros)
{
    int m, s, f;
    uint64_t us, limit = (uint64_t)INT64_MAX + negative;

    if (!take(t, ':') || !two_digits(t, &m) || !take(t, ':') || !two_digits(t, &s) ||
        !read_fraction(t, &f) || m > 59 || s > 59)
        return false;
    if (hours > INT64_C(2562047788)) /* hours in 2^63 microseconds */
        return false;
    us = ((uint64_t)hours * 3600 + (uint64_t)(m * 60 + s)) * (uint64_t)US_PER_S + (uint64_t)f;
    if (us > limit)
        return false;
    *micros = negative ? (int64_t)(0 - us) : (int64_t)us;
    return true;
}

static bool unit_is(struct text *t, const char *unit)
{
    size_t n = strlen(unit);

    if ((size_t)(t->end - t->p) < n || memcmp(t->p, unit, n) != 0)
        return false;
    t->p += n;
    take(t, 's');
    return t->p == t->end || *t->p == ' ';
}

static bool fits_int32(int64_t v)
{
    return v >= INT32_MIN && v <= INT32_MAX;
}

static bool read_interval(struct text *t, struct cdcd_interval *iv)
{
    int64_t months = 0, days = 0, n;
    bool negative;

    do {
        if (!read_number(t, &negative, &n))
            return false;
        if (t->p < t->end && *t->p == ':') {
            if (!read_clock(t, n, negative, &iv->micros) || t->p != t->end)
                return false;
            break;
        }
        if (n > INT32_MAX + INT64_C(1) || !take(t, ' '))
            return false;
        if (negative)
            n = -n;
        if (unit_is(t, "year"))
            months += n * 12;
        else if (unit_is(t, "mon"))
            months += n;
        else if (unit_is(t, "day"))
            days += n;
        else
            return false;
        if (!fits_int32(months) || !fits_int32(days))
            return false;
    } while (take(t, ' '));
    iv->months = (int32_t)months;
    iv->days = (int32_t)days;
    return t->p == t->end;
}

/* Infinite intervals (PostgreSQL 17) carry the extreme values beside `inf`, as in the server, so
 * that arithmetic that does not look at `inf` overflows rather than yielding zero. */
bool pg_parse_interval(const char *p, size_t n, struct cdcd_arena *a, struct cdcd_cell *out)
{
    struct text t = {p, p + n};
    struct cdcd_interval *iv = cdcd_arena_alloc(a, sizeof *iv);
    int inf = infinity(p, n);

    if (inf > 0)
        *iv = (struct cdcd_interval){INT32_MAX, INT32_MAX, INT64_MAX};
    else if (inf < 0)
        *iv = (struct cdcd_interval){INT32_MIN, INT32_MIN, INT64_MIN};
    else
        *iv = (struct cdcd_interval){0};
    if (!inf && !read_interval(&t, iv))
        return false;
    *out = (struct cdcd_cell){.kind = CDCD_C_INTERVAL, .inf = (int8_t)inf, .iv = iv};
    return true;
}
