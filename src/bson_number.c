/*
 * Numbers and times of Extended JSON as text.
 *
 * The digits of doubles are found as in Raffaello Giulietti's "The Schubfach way to render
 * doubles", which Java's Double.toString follows: v is within an interval of reals that are rounded
 * to it; scaled by a power of ten with 128 bits, the interval holds at most two integers that are
 * multiples of ten or, when none, a few that are not.
 */
#include "bson_int.h"

static const char two_digits[] = "00010203040506070809101112131415161718192021222324"
                                 "25262728293031323334353637383940414243444546474849"
                                 "50515253545556575859606162636465666768697071727374"
                                 "75767778798081828384858687888990919293949596979899";

static inline void put_two(char *d, uint32_t v)
{
    memcpy(d, two_digits + 2 * v, 2);
}

static inline void put_four(char *d, uint32_t v)
{
    put_two(d, v / 100);
    put_two(d + 2, v % 100);
}

static inline void put_eight(char *d, uint32_t v)
{
    put_four(d, v / 10000);
    put_four(d + 4, v % 10000);
}

/* Writes v below 10^18 with 18 digits, leading zeros too. */
static inline void put_eighteen(char *d, uint64_t v)
{
    const uint64_t e8 = 100000000;
    uint64_t high = v / e8;
    put_two(d, (uint32_t)(high / e8));
    put_eight(d + 2, (uint32_t)(high % e8));
    put_eight(d + 10, (uint32_t)(v % e8));
}

/* ---- doubles ---- */

#define FRACTION_BITS 52
#define EXPONENT_MIN  (-1074) /* of the last bit of the smallest numbers */

static inline int floor_log10_pow2(int e, bool three_quarters)
{
    return (e * 1262611 - (three_quarters ? 524031 : 0)) >> 22;
}

static inline int floor_log2_pow10(int e)
{
    return (e * 1741647) >> 19;
}

/* The high part of g * cp, its last bit set when anything but rounding of g is below it. */
static inline uint64_t round_to_odd(const uint64_t g[2], uint64_t cp)
{
    unsigned __int128 x = (unsigned __int128)g[1] * cp;
    unsigned __int128 y = (unsigned __int128)g[0] * cp + (uint64_t)(x >> 64);
    return (uint64_t)(y >> 64) | ((uint64_t)y > 1);
}

/* c * 2^q as digits * 10^*exponent. */
static uint64_t shortest(uint64_t c, int q, int *exponent)
{
    const uint64_t out = c & 1; /* odd: the ends of the interval are not in it */
    /* Below a power of two the neighbours are half as far. */
    const bool narrow = c == (uint64_t)1 << FRACTION_BITS && q > EXPONENT_MIN;
    const int k = floor_log10_pow2(q, narrow);
    const int h = q + floor_log2_pow10(-k) + 1;
    const uint64_t *g = cdcd_bson_powers[-k - BSON_POWER_FIRST];
    const uint64_t cb = c << 2;
    const uint64_t low = round_to_odd(g, (cb - 2 + narrow) << h);
    const uint64_t mid = round_to_odd(g, cb << h);
    const uint64_t high = round_to_odd(g, (cb + 2) << h);
    const uint64_t s = mid >> 2;

    *exponent = k;
    if (s >= 100) { /* two digits at least */
        uint64_t s10 = s / 10 * 10, t10 = s10 + 10;
        bool s_in = low + out <= s10 << 2, t_in = (t10 << 2) + out <= high;
        if (s_in != t_in)
            return s_in ? s10 : t10;
    }
    bool s_in = low + out <= s << 2, t_in = ((s + 1) << 2) + out <= high;
    if (s_in != t_in)
        return s_in ? s : s + 1;
    uint64_t half = (s << 2) + 2;
    return mid < half || (mid == half && !(s & 1)) ? s : s + 1;
}

/* The exponent of a double in E notation. */
static char *put_exponent(char *d, int e)
{
    *d++ = 'E';
    if (e < 0) {
        *d++ = '-';
        e = -e;
    }
    if (e >= 100) {
        *d++ = (char)('0' + e / 100);
        put_two(d, (uint32_t)(e % 100));
        return d + 2;
    }
    if (e >= 10) {
        put_two(d, (uint32_t)e);
        return d + 2;
    }
    *d++ = (char)('0' + e);
    return d;
}

/* 0.DIGITS * 10^point in Java's form: plain from 10^-3 up to 10^7; digits has 32 bytes, zeros
 * behind the n that count. */
static char *put_digits(char *d, const char *digits, int n, int point)
{
    if (point > 0 && point <= 7) {
        memcpy(d, digits, 8);
        d += point;
        *d++ = '.';
        memcpy(d, digits + point, 18);
        return d + (n > point ? n - point : 1);
    }
    if (point <= 0 && point > -3) {
        memcpy(d, "0.00", 4);
        d += 2 - point;
        memcpy(d, digits, 18);
        return d + n;
    }
    *d++ = digits[0];
    *d++ = '.';
    memcpy(d, digits + 1, 18);
    d += n > 1 ? n - 1 : 1;
    return put_exponent(d, point - 1);
}

char *cdcd_bson_put_double(char *d, double v)
{
    uint64_t bits, digits;
    memcpy(&bits, &v, sizeof bits);
    if (bits >> 63)
        *d++ = '-';
    uint64_t c = bits & (((uint64_t)1 << FRACTION_BITS) - 1);
    int q = (int)(bits >> FRACTION_BITS & 0x7ff), exponent = 0;
    if (!q && !c) {
        memcpy(d, "0.0", 3);
        return d + 3;
    }
    if (q)
        c |= (uint64_t)1 << FRACTION_BITS;
    q = (q ? q : 1) + EXPONENT_MIN - 1;
    if (q <= 0 && q > -FRACTION_BITS - 1 && !(c & (((uint64_t)1 << -q) - 1)))
        digits = c >> -q; /* a whole number */
    else if (c < 3 && q == EXPONENT_MIN)
        digits = shortest(c * 10, q, &exponent), exponent--; /* too few digits without the ten */
    else
        digits = shortest(c, q, &exponent);

    char text[48];
    put_eighteen(text, digits);
    memset(text + 18, '0', sizeof text - 18);
    int first = 0, end = 18;
    while (text[first] == '0')
        first++;
    while (text[end - 1] == '0')
        end--;
    return put_digits(d, text + first, end - first, 18 - first + exponent);
}

/* ---- Decimal128 ---- */

#define DECIMAL_BIAS 6176

/* The digits of a number below 2^113, without leading zeros; end - what is returned is their
 * number, 1 for zero. */
static char *decimal_digits(char *end, unsigned __int128 v)
{
    const uint64_t e18 = 1000000000000000000;
    char *p = end;
    for (int i = 0; i < 2; i++) {
        p -= 18;
        put_eighteen(p, (uint64_t)(v % e18));
        v /= e18;
    }
    while (p < end - 1 && *p == '0')
        p++;
    return p;
}

static char *decimal_plain(char *d, const char *digits, int n, int exponent)
{
    int pad = -exponent - n;
    if (pad >= 0) {
        memcpy(d, "0.000000", 8);
        d += 2 + pad;
        memcpy(d, digits, (size_t)n);
        return d + n;
    }
    memcpy(d, digits, (size_t)(n + exponent));
    d += n + exponent;
    if (exponent) {
        *d++ = '.';
        memcpy(d, digits + n + exponent, (size_t)-exponent);
        d -= exponent;
    }
    return d;
}

static char *decimal_scientific(char *d, const char *digits, int n, int exponent)
{
    *d++ = digits[0];
    if (n > 1) {
        *d++ = '.';
        memcpy(d, digits + 1, (size_t)n - 1);
        d += n - 1;
    }
    *d++ = 'E';
    *d++ = exponent < 0 ? '-' : '+';
    char text[4];
    int at = 0;
    put_four(text, (uint32_t)(exponent < 0 ? -exponent : exponent));
    while (at < 3 && text[at] == '0')
        at++;
    memcpy(d, text + at, 4 - (size_t)at);
    return d + 4 - at;
}

char *cdcd_bson_put_decimal(char *d, const uint8_t value[16])
{
    uint64_t low, high;
    memcpy(&low, value, 8);
    memcpy(&high, value + 8, 8);
    if ((high >> 58 & 31) == 31) {
        memcpy(d, "NaN", 3);
        return d + 3;
    }
    if (high >> 63)
        *d++ = '-';
    if ((high >> 58 & 31) == 30) {
        memcpy(d, "Infinity", 8);
        return d + 8;
    }
    /* With both high bits set the digits would be beyond 10^34; those count as zero, as do the
     * rest of what is beyond. */
    bool large = (high >> 61 & 3) == 3;
    int exponent = (int)(high >> (large ? 47 : 49) & 0x3fff) - DECIMAL_BIAS;
    unsigned __int128 v = (unsigned __int128)(high & 0x1ffffffffffff) << 64 | low;
    const unsigned __int128 limit = (unsigned __int128)10000000000000000 * 1000000000000000000;
    if (large || v >= limit)
        v = 0;

    char text[36], *end = text + sizeof text, *first = decimal_digits(end, v);
    int n = (int)(end - first);
    if (exponent <= 0 && exponent + n - 1 >= -6)
        return decimal_plain(d, first, n, exponent);
    return decimal_scientific(d, first, n, exponent + n - 1);
}

/* ---- times ---- */

/* Days since 1970-01-01 -> year, month, day of the proleptic Gregorian calendar. */
static void civil(int64_t days, int64_t *year, unsigned *month, unsigned *day)
{
    days += 719468; /* since 0000-03-01 */
    int64_t era = (days >= 0 ? days : days - 146096) / 146097;
    unsigned doe = (unsigned)(days - era * 146097);
    unsigned yoe = (doe - doe / 1460 + doe / 36524 - doe / 146096) / 365;
    unsigned doy = doe - (365 * yoe + yoe / 4 - yoe / 100);
    unsigned m = (5 * doy + 2) / 153;
    *day = doy - (153 * m + 2) / 5 + 1;
    *month = m < 10 ? m + 3 : m - 9;
    *year = (int64_t)yoe + era * 400 + (*month <= 2);
}

static char *put_year(char *d, int64_t year)
{
    if (year < 0 || year > 9999)
        *d++ = year < 0 ? '-' : '+';
    uint64_t y = (uint64_t)(year < 0 ? -year : year);
    char text[18];
    int first = 0;
    put_eighteen(text, y);
    while (first < 14 && text[first] == '0')
        first++;
    memcpy(d, text + first, 18 - (size_t)first);
    return d + 18 - first;
}

char *cdcd_bson_put_time(char *d, int64_t millis)
{
    const int64_t day_millis = 86400000;
    const bool before = millis % day_millis < 0;
    int64_t days = millis / day_millis - before, year;
    uint32_t rest = (uint32_t)(millis % day_millis + (before ? day_millis : 0));
    unsigned month, day;
    civil(days, &year, &month, &day);
    d = put_year(d, year);
    memcpy(d, "-00-00T00:00:00.000", 19);
    put_two(d + 1, month);
    put_two(d + 4, day);
    put_two(d + 7, rest / 3600000);
    put_two(d + 10, rest / 60000 % 60);
    put_two(d + 13, rest / 1000 % 60);
    d += 15;
    uint32_t fraction = rest % 1000;
    if (fraction) {
        d[1] = (char)('0' + fraction / 100);
        put_two(d + 2, fraction % 100);
        d += 4;
        while (d[-1] == '0')
            d--;
    }
    *d++ = 'Z';
    return d;
}
