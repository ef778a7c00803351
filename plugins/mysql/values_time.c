/*
 * values_time: dates and times, from the log and from the server's text.
 *
 * What is no day (zero, zero in date, 30 February) becomes TEXT: the server's own text of it.
 */
#include "value_int.h"

#include <stdio.h>

static bool leap(int year)
{
    return (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
}

/* Days of the proleptic Gregorian calendar, counted in eras of 400 years that begin in March. */
bool my_days(int year, int month, int day, int64_t *out)
{
    static const uint8_t length[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};

    if (year < 0 || month < 1 || month > 12 || day < 1 ||
        day > length[month - 1] + (month == 2 && leap(year)))
        return false;
    int64_t y = (int64_t)year - (month <= 2);
    int64_t era = (y >= 0 ? y : y - 399) / 400, of_era = y - era * 400;
    int64_t of_year = (153 * (month + (month > 2 ? -3 : 9)) + 2) / 5 + day - 1;
    *out = era * 146097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719468;
    return true;
}

struct moment {
    int year, month, day, hour, minute, second;
    uint32_t micros;
    int digits; /* of the fraction in the text; 0 none */
};

static char *moment_text(const struct moment *m, bool date_only, struct cdcd_arena *a, size_t *len)
{
    char *s = cdcd_arena_alloc(a, 80);
    int n = snprintf(s, 80, "%04d-%02d-%02d", m->year, m->month, m->day);

    if (!date_only)
        n += snprintf(s + n, 80 - (size_t)n, " %02d:%02d:%02d", m->hour, m->minute, m->second);
    if (m->digits) {
        char fraction[16];
        snprintf(fraction, sizeof fraction, "%06u", (unsigned)m->micros);
        n += snprintf(s + n, 80 - (size_t)n, ".%.*s", m->digits, fraction);
    }
    *len = (size_t)n;
    return s;
}

static void put_date(const struct moment *m, struct cdcd_arena *a, struct cdcd_cell *out)
{
    int64_t days;
    size_t n;

    if (my_days(m->year, m->month, m->day, &days)) {
        *out = (struct cdcd_cell){.kind = CDCD_C_DATE, .i = days};
    } else {
        const char *text = moment_text(m, true, a, &n);
        *out = cdcd_cell_text(text, n);
    }
}

static void put_moment(const struct moment *m, struct cdcd_arena *a, struct cdcd_cell *out)
{
    int64_t days;
    size_t n;

    if (m->hour < 24 && m->minute < 60 && m->second < 60 &&
        my_days(m->year, m->month, m->day, &days)) {
        *out = (struct cdcd_cell){.kind = CDCD_C_TIMESTAMP,
                                  .i = days * 86400 + m->hour * 3600 + m->minute * 60 + m->second,
                                  .len = m->micros * 1000};
    } else {
        const char *text = moment_text(m, false, a, &n);
        *out = cdcd_cell_text(text, n);
    }
}

/* ---- the types before 5.6 ---- */

/* Three bytes, little-endian: day 5 bits, month 4, year 15. */
void my_read_date(const uint8_t *p, struct cdcd_arena *a, struct cdcd_cell *out)
{
    uint32_t v = (uint32_t)my_le(p, 3);
    struct moment m = {.year = (int)(v >> 9), .month = v >> 5 & 15, .day = v & 31};

    put_date(&m, a, out);
}

/* Three bytes, little-endian and signed: the digits HHHMMSS. */
void my_read_old_time(const uint8_t *p, struct cdcd_cell *out)
{
    int32_t v = (int32_t)((uint32_t)my_le(p, 3) << 8) >> 8;
    int64_t n = v < 0 ? -(int64_t)v : v;
    int64_t seconds = n / 10000 * 3600 + n / 100 % 100 * 60 + n % 100;

    *out = (struct cdcd_cell){.kind = CDCD_C_TIME, .i = (v < 0 ? -seconds : seconds) * 1000000};
}

/* Eight bytes, little-endian: the digits YYYYMMDDhhmmss. */
void my_read_old_datetime(const uint8_t *p, struct cdcd_arena *a, struct cdcd_cell *out)
{
    uint64_t v = my_le(p, 8), date = v / 1000000, time = v % 1000000;
    struct moment m = {.year = (int)(date / 10000 % 100000),
                       .month = (int)(date / 100 % 100),
                       .day = (int)(date % 100),
                       .hour = (int)(time / 10000),
                       .minute = (int)(time / 100 % 100),
                       .second = (int)(time % 100)};

    put_moment(&m, a, out);
}

static void put_timestamp(uint32_t seconds, uint32_t micros, unsigned digits, struct cdcd_arena *a,
                          struct cdcd_cell *out)
{
    if (seconds == 0 && micros == 0) {
        struct moment zero = {.digits = (int)digits};
        put_moment(&zero, a, out);
    } else {
        *out = (struct cdcd_cell){.kind = CDCD_C_TIMESTAMP, .i = seconds, .len = micros * 1000};
    }
}

void my_read_old_timestamp(const uint8_t *p, struct cdcd_arena *a, struct cdcd_cell *out)
{
    put_timestamp((uint32_t)my_le(p, 4), 0, 0, a, out);
}

/* ---- since 5.6: my_time.cc, my_*_packed_from_binary ---- */

static uint32_t read_fraction(const uint8_t *p, unsigned digits)
{
    static const uint32_t unit[] = {1, 10000, 100, 1};
    unsigned bytes = my_fraction_size(digits);

    return (uint32_t)my_be(p, bytes) * unit[bytes];
}

/* Three bytes: hours 10 bits, minutes 6, seconds 6, and the fraction behind, all as one signed
 * number with an offset; so a fraction below zero borrows from the seconds. */
void my_read_time2(const uint8_t *p, unsigned digits, struct cdcd_cell *out)
{
    unsigned bytes = my_fraction_size(digits), bits = 8 * bytes;
    static const int64_t unit[] = {1, 10000, 100, 1};
    int64_t v = (int64_t)my_be(p, 3 + bytes) - (INT64_C(0x800000) << bits);
    bool negative = v < 0;

    if (negative)
        v = -v;
    int64_t whole = v >> bits, fraction = (v & ((INT64_C(1) << bits) - 1)) * unit[bytes];
    int64_t micros = ((whole >> 12) * 3600 + (whole >> 6 & 63) * 60 + (whole & 63)) * 1000000;
    micros += fraction;
    *out = (struct cdcd_cell){.kind = CDCD_C_TIME, .i = negative ? -micros : micros};
}

/* Five bytes: a sign, year * 13 + month 17 bits, day 5, hour 5, minute 6, second 6. */
void my_read_datetime2(const uint8_t *p, unsigned digits, struct cdcd_arena *a,
                       struct cdcd_cell *out)
{
    uint64_t v = my_be(p, 5) & UINT64_C(0x7fffffffff);
    uint32_t year_month = (uint32_t)(v >> 22);
    struct moment m = {.year = (int)(year_month / 13),
                       .month = (int)(year_month % 13),
                       .day = v >> 17 & 31,
                       .hour = v >> 12 & 31,
                       .minute = v >> 6 & 63,
                       .second = v & 63,
                       .micros = read_fraction(p + 5, digits),
                       .digits = (int)digits};

    put_moment(&m, a, out);
}

/* Four bytes of seconds, as a number without sign: MariaDB 11.5 goes on to 2106. */
void my_read_timestamp2(const uint8_t *p, unsigned digits, struct cdcd_arena *a,
                        struct cdcd_cell *out)
{
    put_timestamp((uint32_t)my_be(p, 4), read_fraction(p + 4, digits), digits, a, out);
}

/* ---- text ---- */

struct text {
    const char *p, *end;
};

/* A number of min to max digits; -1: none. */
static int take_number(struct text *t, int min, int max)
{
    int v = 0, n = 0;

    for (; n < max && t->p < t->end && *t->p >= '0' && *t->p <= '9'; n++)
        v = v * 10 + (*t->p++ - '0');
    return n < min ? -1 : v;
}

static bool take_char(struct text *t, char c)
{
    if (t->p == t->end || *t->p != c)
        return false;
    t->p++;
    return true;
}

/* An optional fraction up to the end. */
static bool take_fraction(struct text *t, uint32_t *micros, int *digits)
{
    *micros = 0;
    *digits = 0;
    if (t->p == t->end)
        return true;
    if (!take_char(t, '.'))
        return false;
    const char *start = t->p;
    int v = take_number(t, 1, 6);
    *digits = (int)(t->p - start);
    for (int i = *digits; v >= 0 && i < 6; i++)
        v *= 10;
    *micros = (uint32_t)v;
    return v >= 0 && t->p == t->end;
}

static bool take_date(struct text *t, struct moment *m)
{
    m->year = take_number(t, 4, 4);
    if (m->year < 0 || !take_char(t, '-'))
        return false;
    m->month = take_number(t, 2, 2);
    if (m->month < 0 || !take_char(t, '-'))
        return false;
    m->day = take_number(t, 2, 2);
    return m->day >= 0;
}

static bool take_clock(struct text *t, int max_hour_digits, struct moment *m)
{
    m->hour = take_number(t, 2, max_hour_digits);
    if (m->hour < 0 || !take_char(t, ':'))
        return false;
    m->minute = take_number(t, 2, 2);
    if (m->minute < 0 || !take_char(t, ':'))
        return false;
    m->second = take_number(t, 2, 2);
    return m->second >= 0 && take_fraction(t, &m->micros, &m->digits);
}

bool my_parse_date(const char *p, size_t n, struct cdcd_arena *a, struct cdcd_cell *out)
{
    struct text t = {p, p + n};
    struct moment m = {0};

    if (!take_date(&t, &m) || t.p != t.end)
        return false;
    put_date(&m, a, out);
    return true;
}

bool my_parse_time(const char *p, size_t n, struct cdcd_cell *out)
{
    struct text t = {p, p + n};
    struct moment m = {0};
    bool negative = take_char(&t, '-');

    if (!take_clock(&t, 3, &m))
        return false;
    int64_t micros = ((int64_t)m.hour * 3600 + m.minute * 60 + m.second) * 1000000 + m.micros;
    *out = (struct cdcd_cell){.kind = CDCD_C_TIME, .i = negative ? -micros : micros};
    return true;
}

bool my_parse_datetime(const char *p, size_t n, struct cdcd_arena *a, struct cdcd_cell *out)
{
    struct text t = {p, p + n};
    struct moment m = {0};

    if (!take_date(&t, &m) || !take_char(&t, ' ') || !take_clock(&t, 2, &m))
        return false;
    put_moment(&m, a, out);
    return true;
}
