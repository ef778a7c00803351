/*
 * The hottest code there is: every byte of every text value goes through
 * cdcd_json_string. Plain runs are found and copied 16 (SSE2) or 8 bytes at a time;
 * only quotes, backslashes, control characters and bytes above 0x7f leave that path.
 */
#include <cdcd/json.h>

#ifdef __SSE2__
#include <emmintrin.h>
#endif

#define RUN 16 /* bytes that one step of the fast path may write beyond the text */

static const char hex_digits[] = "0123456789ABCDEF";

/* 0: as it is; 1: \u00XX; 2: above ASCII; else the letter of the short escape. */
static const uint8_t byte_class[256] = {
    1,           1,
    1,           1,
    1,           1,
    1,           1,
    'b',         't',
    'n',         1,
    'f',         'r',
    1,           1, /* 00 */
    1,           1,
    1,           1,
    1,           1,
    1,           1,
    1,           1,
    1,           1,
    1,           1,
    1,           1, /* 10 */
    ['"'] = '"', ['\\'] = '\\',
    [0x80] = 2,  2,
    2,           2,
    2,           2,
    2,           2,
    2,           2,
    2,           2,
    2,           2,
    2,           2, /* 80 */
    2,           2,
    2,           2,
    2,           2,
    2,           2,
    2,           2,
    2,           2,
    2,           2,
    2,           2, /* 90 */
    2,           2,
    2,           2,
    2,           2,
    2,           2,
    2,           2,
    2,           2,
    2,           2,
    2,           2, /* a0 */
    2,           2,
    2,           2,
    2,           2,
    2,           2,
    2,           2,
    2,           2,
    2,           2,
    2,           2, /* b0 */
    2,           2,
    2,           2,
    2,           2,
    2,           2,
    2,           2,
    2,           2,
    2,           2,
    2,           2, /* c0 */
    2,           2,
    2,           2,
    2,           2,
    2,           2,
    2,           2,
    2,           2,
    2,           2,
    2,           2, /* d0 */
    2,           2,
    2,           2,
    2,           2,
    2,           2,
    2,           2,
    2,           2,
    2,           2,
    2,           2, /* e0 */
    2,           2,
    2,           2,
    2,           2,
    2,           2,
    2,           2,
    2,           2,
    2,           2,
    2,           2, /* f0 */
};

/* Copies the plain bytes at s to d and returns their number. Up to RUN bytes more than
 * that are written at d. */
static inline size_t copy_plain(char *d, const uint8_t *s, size_t n)
{
    size_t i = 0;
#ifdef __SSE2__
    const __m128i quote = _mm_set1_epi8('"'), backslash = _mm_set1_epi8('\\');
    const __m128i space = _mm_set1_epi8(' ');
    for (; n - i >= 16; i += 16) {
        __m128i v = _mm_loadu_si128((const __m128i *)(const void *)(s + i));
        _mm_storeu_si128((__m128i *)(void *)(d + i), v);
        /* A signed compare: below ' ' are the control characters and all above 0x7f. */
        __m128i special = _mm_or_si128(
            _mm_cmplt_epi8(v, space),
            _mm_or_si128(_mm_cmpeq_epi8(v, quote), _mm_cmpeq_epi8(v, backslash)));
        unsigned mask = (unsigned)_mm_movemask_epi8(special);
        if (mask)
            return i + (size_t)__builtin_ctz(mask);
    }
#endif
    const uint64_t ones = 0x0101010101010101u, high = 0x8080808080808080u;
    for (; n - i >= 8; i += 8) {
        uint64_t v;
        memcpy(&v, s + i, 8);
        memcpy(d + i, &v, 8);
        uint64_t q = v ^ (ones * '"'), b = v ^ (ones * '\\');
        if ((v | (v - ones * ' ') | (q - ones) | (b - ones)) & high)
            break;
    }
    for (; i < n && !byte_class[s[i]]; i++)
        d[i] = (char)s[i];
    return i;
}

static char *put_u16(char *d, unsigned v)
{
    *d++ = '\\';
    *d++ = 'u';
    *d++ = hex_digits[v >> 12 & 15];
    *d++ = hex_digits[v >> 8 & 15];
    *d++ = hex_digits[v >> 4 & 15];
    *d++ = hex_digits[v & 15];
    return d;
}

/* Length of the well-formed character at s, or 0 with *bad = the length of the longest
 * ill-formed part that one U+FFFD stands for (Unicode, "maximal subpart"). */
static size_t utf8_length(const uint8_t *s, size_t n, size_t *bad)
{
    size_t len = s[0] < 0xe0 ? 2 : s[0] < 0xf0 ? 3 : 4;
    uint8_t low = 0x80, high = 0xbf;
    *bad = 1;
    if (s[0] < 0xc2 || s[0] > 0xf4)
        return 0;
    if (s[0] == 0xe0)
        low = 0xa0;
    else if (s[0] == 0xed)
        high = 0x9f;
    else if (s[0] == 0xf0)
        low = 0x90;
    else if (s[0] == 0xf4)
        high = 0x8f;
    for (size_t i = 1; i < len; i++, low = 0x80, high = 0xbf) {
        if (i >= n || s[i] < low || s[i] > high) {
            *bad = i;
            return 0;
        }
    }
    return len;
}

/* One character above ASCII; returns how many bytes of s it took. */
static size_t put_wide(char **to, const uint8_t *s, size_t n)
{
    char *d = *to;
    size_t bad, len = utf8_length(s, n, &bad);
    if (!len) {
        memcpy(d, "\xef\xbf\xbd", 3);
        *to = d + 3;
        return bad;
    }
    if (len == 4) {
        unsigned c = (s[0] & 7u) << 18 | (s[1] & 63u) << 12 | (s[2] & 63u) << 6 | (s[3] & 63u);
        c -= 0x10000;
        d = put_u16(d, 0xd800 + (c >> 10));
        *to = put_u16(d, 0xdc00 + (c & 0x3ff));
        return 4;
    }
    memcpy(d, s, len);
    *to = d + len;
    return len;
}

/* Well-formed characters of two and three bytes, with single ASCII letters between them: the
 * text of most languages. Stops at anything else, and before the last few bytes. */
static inline size_t copy_wide(char *d, const uint8_t *s, size_t n)
{
    size_t i = 0;
    while (n - i >= 4) {
        const uint8_t *c = s + i;
        memcpy(d + i, c, 4);
        if (c[0] >= 0xc2 && c[0] <= 0xdf) {
            if ((c[1] & 0xc0) != 0x80)
                break;
            i += 2;
        } else if (c[0] >= 0xe1 && c[0] <= 0xec) {
            if ((c[1] & 0xc0) != 0x80 || (c[2] & 0xc0) != 0x80)
                break;
            i += 3;
        } else if (!byte_class[c[0]] && c[1] >= 0x80) {
            i++;
        } else {
            break;
        }
    }
    return i;
}

void cdcd_json_string(struct cdcd_writer *w, const char *p, size_t n)
{
    const uint8_t *s = (const uint8_t *)p;
    char *d = cdcd_writer_room(w, n + 2 + RUN);
    *d++ = '"';
    for (;;) {
        size_t run = copy_plain(d, s, n);
        d += run;
        s += run;
        n -= run;
        if (!n)
            break;
        if (byte_class[*s] == 2 && (run = copy_wide(d, s, n)) > 0) {
            d += run;
            s += run;
            n -= run;
            continue;
        }
        /* The longest form of one character has 12 bytes. */
        w->pos = d;
        d = cdcd_writer_room(w, n + 12 + 2 + RUN);
        while (n && byte_class[*s] == 2 && (size_t)(w->end - d) > n + 12 + 2 + RUN) {
            size_t took = put_wide(&d, s, n);
            s += took;
            n -= took;
        }
        if (!n || !byte_class[*s])
            continue;
        w->pos = d;
        d = cdcd_writer_room(w, n + 12 + 2 + RUN);
        uint8_t class = byte_class[*s];
        if (class == 2) {
            size_t took = put_wide(&d, s, n);
            s += took;
            n -= took;
            continue;
        }
        if (class == 1) {
            d = put_u16(d, *s);
        } else {
            *d++ = '\\';
            *d++ = (char)class;
        }
        s++;
        n--;
    }
    *d++ = '"';
    w->pos = d;
}

static const char two_digits[] = "00010203040506070809101112131415161718192021222324"
                                 "25262728293031323334353637383940414243444546474849"
                                 "50515253545556575859606162636465666768697071727374"
                                 "75767778798081828384858687888990919293949596979899";

static inline char *put_two(char *d, uint32_t v)
{
    memcpy(d, two_digits + 2 * v, 2);
    return d + 2;
}

static inline char *put_four(char *d, uint32_t v)
{
    return put_two(put_two(d, v / 100), v % 100);
}

static inline char *put_eight(char *d, uint32_t v)
{
    return put_four(put_four(d, v / 10000), v % 10000);
}

/* Below 10,000, without leading zeros. */
static inline char *put_up_to_four(char *d, uint32_t v)
{
    if (v >= 100) {
        uint32_t high = v / 100;
        if (high >= 10)
            d = put_two(d, high);
        else
            *d++ = (char)('0' + high);
        return put_two(d, v % 100);
    }
    if (v >= 10)
        return put_two(d, v);
    *d++ = (char)('0' + v);
    return d;
}

static inline char *put_up_to_eight(char *d, uint32_t v)
{
    if (v < 10000)
        return put_up_to_four(d, v);
    return put_four(put_up_to_four(d, v / 10000), v % 10000);
}

static inline char *put_uint(char *d, uint64_t v)
{
    const uint64_t e8 = 100000000, e16 = e8 * e8;
    if (v < e8)
        return put_up_to_eight(d, (uint32_t)v);
    if (v < e16)
        return put_eight(put_up_to_eight(d, (uint32_t)(v / e8)), (uint32_t)(v % e8));
    d = put_up_to_four(d, (uint32_t)(v / e16));
    v %= e16;
    return put_eight(put_eight(d, (uint32_t)(v / e8)), (uint32_t)(v % e8));
}

void cdcd_json_int(struct cdcd_writer *w, int64_t v)
{
    char *d = cdcd_writer_room(w, 20);
    if (v < 0)
        *d++ = '-';
    w->pos = put_uint(d, v < 0 ? 0 - (uint64_t)v : (uint64_t)v);
}

void cdcd_json_uint(struct cdcd_writer *w, uint64_t v)
{
    w->pos = put_uint(cdcd_writer_room(w, 20), v);
}

static const char base64_std[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
static const char base64_url[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

void cdcd_json_base64(struct cdcd_writer *w, const void *p, size_t n, bool url)
{
    const char *digits = url ? base64_url : base64_std;
    const uint8_t *s = p;
    char *d = cdcd_writer_room(w, n / 3 * 4 + 4 + 2);
    *d++ = '"';
    for (; n >= 3; n -= 3, s += 3) {
        unsigned v = (unsigned)s[0] << 16 | (unsigned)s[1] << 8 | s[2];
        *d++ = digits[v >> 18];
        *d++ = digits[v >> 12 & 63];
        *d++ = digits[v >> 6 & 63];
        *d++ = digits[v & 63];
    }
    if (n) {
        unsigned v = (unsigned)s[0] << 16 | (n == 2 ? (unsigned)s[1] << 8 : 0);
        *d++ = digits[v >> 18];
        *d++ = digits[v >> 12 & 63];
        *d++ = n == 2 ? digits[v >> 6 & 63] : '=';
        *d++ = '=';
    }
    *d++ = '"';
    w->pos = d;
}
