/*
 * Dates, times and spans in plain form: ISO 8601, proleptic Gregorian, as many digits of a second
 * as it takes.
 */
#include "convert.h"

#define DAY_SECONDS INT64_C(86400)

/* Digits with leading zeros up to a width. */
static char *put_digits(char *p, uint64_t v, int width)
{
    char digits[24];
    int n = 0;
    for (; v || n < width; v /= 10)
        digits[n++] = (char)('0' + v % 10);
    while (n)
        *p++ = digits[--n];
    return p;
}

/* After "chrono-Compatible Low-Level Date Algorithms" (H. Hinnant): eras of 400 years. */
static char *put_date(char *p, int64_t days)
{
    days += 719468;
    int64_t era = (days >= 0 ? days : days - 146096) / 146097;
    int64_t doe = days - era * 146097;
    int64_t yoe = (doe - doe / 1460 + doe / 36524 - doe / 146096) / 365;
    int64_t doy = doe - (365 * yoe + yoe / 4 - yoe / 100);
    int64_t mp = (5 * doy + 2) / 153;
    int64_t month = mp < 10 ? mp + 3 : mp - 9;
    int64_t year = yoe + era * 400 + (month <= 2);
    if (year < 0)
        *p++ = '-';
    else if (year > 9999)
        *p++ = '+';
    p = put_digits(p, (uint64_t)(year < 0 ? -year : year), 4);
    *p++ = '-';
    p = put_digits(p, (uint64_t)month, 2);
    *p++ = '-';
    return put_digits(p, (uint64_t)(doy - (153 * mp + 2) / 5 + 1), 2);
}

/* .123: `rest` of per_second, without zeros at its end; nothing for none. */
static char *put_fraction(char *p, uint64_t rest, uint64_t per_second)
{
    if (!rest)
        return p;
    int width = 0;
    for (uint64_t u = per_second; u > 1; u /= 10)
        width++;
    for (; rest % 10 == 0; rest /= 10)
        width--;
    *p++ = '.';
    return put_digits(p, rest, width);
}

static char *put_clock(char *p, uint64_t seconds, uint64_t rest, uint64_t per_second)
{
    p = put_digits(p, seconds / 3600, 2);
    *p++ = ':';
    p = put_digits(p, seconds / 60 % 60, 2);
    *p++ = ':';
    p = put_digits(p, seconds % 60, 2);
    return put_fraction(p, rest, per_second);
}

static int64_t floor_div(int64_t a, int64_t b)
{
    return a / b - (a % b != 0 && (a < 0) != (b < 0));
}

void es_date_write(struct cdcd_writer *w, int64_t days)
{
    char *p = cdcd_writer_room(w, 48);
    *p++ = '"';
    p = put_date(p, days);
    *p++ = '"';
    w->pos = p;
}

void es_time_write(struct cdcd_writer *w, int64_t units, int64_t per_second)
{
    char *p = cdcd_writer_room(w, 64);
    uint64_t u = units < 0 ? 0 - (uint64_t)units : (uint64_t)units, per = (uint64_t)per_second;
    *p++ = '"';
    if (units < 0)
        *p++ = '-';
    p = put_clock(p, u / per, u % per, per);
    *p++ = '"';
    w->pos = p;
}

void es_timestamp_write(struct cdcd_writer *w, int64_t units, int64_t per_second, const char *zone)
{
    char *p = cdcd_writer_room(w, 80);
    int64_t seconds = floor_div(units, per_second);
    int64_t days = floor_div(seconds, DAY_SECONDS);
    /* Below the first second that int64 holds in these units its product would overflow. */
    uint64_t rest = (uint64_t)units - (uint64_t)seconds * (uint64_t)per_second;
    *p++ = '"';
    p = put_date(p, days);
    *p++ = 'T';
    p = put_clock(p, (uint64_t)(seconds - days * DAY_SECONDS), rest, (uint64_t)per_second);
    while (*zone)
        *p++ = *zone++;
    *p++ = '"';
    w->pos = p;
}

/* PT10H14M21.5S; a span that is negative has a sign before each part, as Java and PostgreSQL read
 * it. */
void es_duration_write(struct cdcd_writer *w, int64_t units, int64_t per_second)
{
    char *p = cdcd_writer_room(w, 96);
    bool negative = units < 0;
    uint64_t u = negative ? 0 - (uint64_t)units : (uint64_t)units, per = (uint64_t)per_second;
    uint64_t seconds = u / per, rest = u % per;
    memcpy(p, "\"PT", 3);
    p += 3;
    if (seconds >= 3600) {
        if (negative)
            *p++ = '-';
        p = put_digits(p, seconds / 3600, 1);
        *p++ = 'H';
    }
    if (seconds / 60 % 60) {
        if (negative)
            *p++ = '-';
        p = put_digits(p, seconds / 60 % 60, 1);
        *p++ = 'M';
    }
    if (seconds % 60 || rest || !seconds) {
        if (negative)
            *p++ = '-';
        p = put_fraction(put_digits(p, seconds % 60, 1), rest, per);
        *p++ = 'S';
    }
    *p++ = '"';
    w->pos = p;
}
