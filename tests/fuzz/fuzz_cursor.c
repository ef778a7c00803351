/* The input is a little program of reads over the rest of itself: no read leaves its bounds, and
 * after an underflow nothing is read any more. */
#include <cdcd/cursor.h>

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool what)
{
    if (!what)
        abort();
}

static void inside(const struct cdcd_cursor *c, struct cdcd_slice s, const uint8_t *begin)
{
    if (c->bad)
        must(s.len == 0 && s.ptr);
    else
        must((const uint8_t *)s.ptr >= begin && (const uint8_t *)s.ptr + s.len <= c->end);
    volatile uint8_t sum = 0;
    for (size_t i = 0; i < s.len; i++)
        sum = (uint8_t)(sum + (uint8_t)s.ptr[i]);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    size_t steps = size / 3;
    struct cdcd_cursor c = cdcd_cur(data + steps, size - steps);
    const uint8_t *begin = c.pos;
    for (size_t i = 0; i < steps; i++) {
        bool was_bad = c.bad;
        const uint8_t *pos = c.pos;
        size_t n = data[i] >> 3;
        switch (data[i] & 7) {
        case 0: cdcd_cur_u8(&c); break;
        case 1: cdcd_cur_u16be(&c); break;
        case 2: cdcd_cur_u32be(&c); break;
        case 3: cdcd_cur_u64be(&c); break;
        case 4: inside(&c, cdcd_cur_bytes(&c, n == 31 ? SIZE_MAX : n), begin); break;
        case 5: inside(&c, cdcd_cur_cstr(&c), begin); break;
        case 6: {
            struct cdcd_cursor sub = cdcd_cur_sub(&c, n);
            must(sub.bad ? cdcd_cur_left(&sub) == 0 : cdcd_cur_left(&sub) == n);
            inside(&sub, cdcd_cur_cstr(&sub), begin);
            break;
        }
        default: must(cdcd_cur_count(&c, n * n, n) <= cdcd_cur_left(&c)); break;
        }
        must(c.pos >= begin && c.pos <= c.end);
        must(!was_bad || (c.bad && c.pos == pos));
    }
    return 0;
}
