/*
 * Strings of Extended JSON. Which characters stand as they are is the Java driver's choice:
 * letters, numbers, spaces, punctuation and symbols below U+10000; all others are \uXXXX in
 * lower-case hex, those above U+FFFF as two surrogates. Ill-formed UTF-8 becomes U+FFFD as
 * Java decodes it: one for the longest part that could begin a character, one for an encoded
 * surrogate.
 *
 * Runs of plain ASCII are found and copied 16 bytes at a time.
 */
#include "bson_int.h"

#ifdef __SSE2__
#include <emmintrin.h>
#endif

static const char hex_digits[] = "0123456789abcdef";

/* Copies 16 bytes and returns a bit for each that is not plain: control characters, quotes,
 * backslashes, DEL and what is above. */
static inline unsigned copy16(char *d, const uint8_t *s)
{
#ifdef __SSE2__
    __m128i v = _mm_loadu_si128((const __m128i *)(const void *)s);
    _mm_storeu_si128((__m128i *)(void *)d, v);
    /* A signed compare; one more, so that DEL counts as negative, too. */
    __m128i special = _mm_cmplt_epi8(_mm_add_epi8(v, _mm_set1_epi8(1)), _mm_set1_epi8(' ' + 1));
    special = _mm_or_si128(special, _mm_cmpeq_epi8(v, _mm_set1_epi8('"')));
    special = _mm_or_si128(special, _mm_cmpeq_epi8(v, _mm_set1_epi8('\\')));
    return (unsigned)_mm_movemask_epi8(special);
#else
    unsigned mask = 0;
    memcpy(d, s, 16);
    for (unsigned i = 0; i < 16; i++)
        mask |= (unsigned)(s[i] < ' ' || s[i] >= 0x7f || s[i] == '"' || s[i] == '\\') << i;
    return mask;
#endif
}

static inline char *put_u16(char *d, unsigned v, bool quoted)
{
    d[0] = d[1] = '\\';
    d += 1 + quoted;
    d[0] = 'u';
    d[1] = hex_digits[v >> 12 & 15];
    d[2] = hex_digits[v >> 8 & 15];
    d[3] = hex_digits[v >> 4 & 15];
    d[4] = hex_digits[v & 15];
    return d + 5;
}

/* One ASCII character that is not plain. */
static char *put_escape(char *d, uint8_t c, bool quoted)
{
    static const char letters[32] = {
        ['\b'] = 'b', ['\t'] = 't', ['\n'] = 'n', ['\f'] = 'f', ['\r'] = 'r',
    };
    char letter = c < 32 ? letters[c] : (char)0;
    if (c == '"' || c == '\\')
        letter = (char)c;
    if (!letter)
        return put_u16(d, c, quoted);
    *d++ = '\\';
    if (quoted) {
        *d++ = '\\';
        if (letter == (char)c) /* a backslash before it in the outer text, too */
            *d++ = '\\';
    }
    *d++ = letter;
    return d;
}

/* Reads one character above ASCII; *c is U+FFFD when it is ill-formed. Returns how many bytes it
 * took. */
static size_t read_wide(const uint8_t *s, size_t n, unsigned *c)
{
    size_t len = s[0] < 0xe0 ? 2 : s[0] < 0xf0 ? 3 : 4;
    uint8_t low = 0x80, high = 0xbf;
    *c = 0xfffd;
    if (s[0] < 0xc2 || s[0] > 0xf4)
        return 1;
    if (s[0] == 0xe0)
        low = 0xa0;
    else if (s[0] == 0xf0)
        low = 0x90;
    else if (s[0] == 0xf4)
        high = 0x8f;
    unsigned v = s[0] & (0x7fu >> len);
    for (size_t i = 1; i < len; i++, low = 0x80, high = 0xbf) {
        if (i >= n || s[i] < low || s[i] > high)
            return i;
        v = v << 6 | (s[i] & 63u);
    }
    if (v < 0xd800 || v > 0xdfff)
        *c = v;
    return len;
}

static inline bool stands_raw(unsigned c)
{
    return cdcd_bson_raw_words[cdcd_bson_raw_index[c >> 6]] >> (c & 63) & 1;
}

static inline char *put_utf8(char *d, unsigned c) /* 0x80..0xffff */
{
    if (c < 0x800) {
        d[0] = (char)(0xc0 | c >> 6);
        d[1] = (char)(0x80 | (c & 63));
        return d + 2;
    }
    d[0] = (char)(0xe0 | c >> 12);
    d[1] = (char)(0x80 | (c >> 6 & 63));
    d[2] = (char)(0x80 | (c & 63));
    return d + 3;
}

/* The characters above ASCII from *s on. */
static char *put_wide(struct cdcd_writer *w, char *d, const uint8_t **s, const uint8_t *end,
                      bool quoted)
{
    const uint8_t *p = *s;
    while (p < end && *p >= 0x80) {
        unsigned c;
        p += read_wide(p, (size_t)(end - p), &c);
        d = cdcd_bson_room(w, d);
        if (c > 0xffff) {
            c -= 0x10000;
            d = put_u16(d, 0xd800 + (c >> 10), quoted);
            d = put_u16(d, 0xdc00 + (c & 0x3ff), quoted);
        } else if (stands_raw(c)) {
            d = put_utf8(d, c);
        } else {
            d = put_u16(d, c, quoted);
        }
    }
    *s = p;
    return d;
}

char *cdcd_bson_put_text(struct cdcd_writer *w, char *d, const uint8_t *s, size_t n,
                         const uint8_t *limit, bool quoted)
{
    const uint8_t *end = s + n;
    for (;;) {
        d = cdcd_bson_room(w, d);
        size_t left = (size_t)(end - s);
        unsigned mask;
        if (limit - s >= 16) {
            mask = copy16(d, s);
        } else {
            uint8_t last[16] = {0};
            memcpy(last, s, left);
            mask = copy16(d, last);
        }
        if (left < 16)
            mask &= (1u << left) - 1;
        if (!mask) {
            if (left <= 16)
                return d + left;
            d += 16;
            s += 16;
            continue;
        }
        unsigned plain = (unsigned)__builtin_ctz(mask);
        d += plain;
        s += plain;
        if (*s >= 0x80)
            d = put_wide(w, d, &s, end, quoted);
        else
            d = put_escape(d, *s++, quoted);
    }
}

char *cdcd_bson_put_name(struct cdcd_writer *w, char *d, const uint8_t **s, const uint8_t *end,
                         const uint8_t *limit, bool quoted)
{
    const uint8_t *p = *s;
    /* Short plain names, nearly all there are, are found and copied in one step. */
    if (limit - p >= 16) {
        unsigned mask = copy16(d, p);
        unsigned plain = mask ? (unsigned)__builtin_ctz(mask) : 0;
        if (mask && !p[plain] && p + plain < end) {
            *s = p + plain + 1;
            return d + plain;
        }
    }
    const uint8_t *nul = p < end ? memchr(p, 0, (size_t)(end - p)) : NULL;
    if (!nul)
        return NULL;
    *s = nul + 1;
    return cdcd_bson_put_text(w, d, p, (size_t)(nul - p), limit, quoted);
}
