/*
 * Connect's Decimal -> a JSON number with all its digits.
 */
#include "convert.h"

#include <stdlib.h>

/* Servers refuse a whole document with a number that is longer (Jackson: 1000 characters). Such
 * numbers become strings: as text they are as exact, and no server could compute with them. */
#define NUMBER_MAX 1000

/* Appends a number's digits in groups of 18, most significant first. */
struct digits {
    char *p; /* of the first digit */
    size_t n;
};

__extension__ typedef unsigned __int128 wide;
#define GROUP UINT64_C(1000000000000000000)

static size_t put_group(char *end, uint64_t v, bool first)
{
    size_t n = 0;
    for (; v || (!first && n < 18); v /= 10)
        *--end = (char)('0' + v % 10), n++;
    return n;
}

/* words: the number in base 2^64, least significant first; it is used up. */
static struct digits to_digits(struct cdcd_arena *tmp, uint64_t *words, size_t n)
{
    size_t room = n * 20 + 20;
    char *end = (char *)cdcd_arena_alloc(tmp, room) + room, *p = end;
    while (n && !words[n - 1])
        n--;
    while (n) {
        uint64_t rest = 0;
        for (size_t i = n; i-- > 0;) {
            wide v = (wide)rest << 64 | words[i];
            words[i] = (uint64_t)(v / GROUP);
            rest = (uint64_t)(v % GROUP);
        }
        while (n && !words[n - 1])
            n--;
        p -= put_group(p, rest, n == 0);
    }
    if (p == end)
        *--p = '0';
    return (struct digits){p, (size_t)(end - p)};
}

/* The magnitude of two's complement. */
static uint64_t *to_words(struct cdcd_arena *tmp, struct cdcd_slice bytes, bool negative, size_t *n)
{
    const uint8_t *b = (const uint8_t *)bytes.ptr;
    *n = bytes.len / 8 + 1;
    uint64_t *words = cdcd_arena_alloc(tmp, *n * sizeof(uint64_t));
    memset(words, negative ? 0xff : 0, *n * sizeof(uint64_t));
    for (size_t i = 0; i < bytes.len; i++) {
        size_t at = bytes.len - 1 - i; /* weight of b[i] */
        unsigned shift = (unsigned)(at % 8) * 8;
        words[at / 8] = (words[at / 8] & ~(UINT64_C(0xff) << shift)) | (uint64_t)b[i] << shift;
    }
    if (negative) {
        bool carry = true;
        for (size_t i = 0; i < *n; i++) {
            words[i] = ~words[i] + carry;
            carry = carry && !words[i];
        }
    }
    return words;
}

static void put_zeros(struct cdcd_writer *w, size_t n)
{
    memset(cdcd_writer_room(w, n), '0', n);
    w->pos += n;
}

void es_decimal_write(struct es_values *x, struct cdcd_writer *w, struct cdcd_slice bytes,
                      int64_t scale)
{
    bool negative = bytes.len && (bytes.ptr[0] & 0x80);
    size_t n, before;
    uint64_t *words = to_words(&x->tmp, bytes, negative, &n);
    struct digits d = to_digits(&x->tmp, words, n);
    bool zero = d.n == 1 && *d.p == '0';
    size_t fraction = scale > 0 ? (size_t)scale : 0;
    size_t zeros = scale < 0 && !zero ? (size_t)-scale : 0;
    before = d.n > fraction ? d.n - fraction : 0;
    bool quoted = (d.n > fraction ? d.n : fraction) + zeros + 3 > NUMBER_MAX;
    if (quoted)
        cdcd_writer_char(w, '"');
    if (negative)
        cdcd_writer_char(w, '-');
    if (before)
        cdcd_writer_add(w, d.p, before);
    else
        cdcd_writer_char(w, '0');
    put_zeros(w, zeros);
    if (fraction) {
        cdcd_writer_char(w, '.');
        put_zeros(w, d.n < fraction ? fraction - d.n : 0);
        cdcd_writer_add(w, d.p + before, d.n - before);
    }
    if (quoted)
        cdcd_writer_char(w, '"');
}
