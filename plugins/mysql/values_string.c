/*
 * values_string: text, bytes, and what is stored like them.
 */
#include "value_int.h"

#include <stdlib.h>
#include <zlib.h>

static struct cdcd_cell bytes_cell(const void *p, size_t n)
{
    return (struct cdcd_cell){.kind = CDCD_C_BYTES, .len = (uint32_t)n, .ptr = p};
}

/* What the log has cut off at the end comes back as zeros. */
static const uint8_t *padded(const uint8_t *p, size_t n, size_t want, struct cdcd_arena *a)
{
    if (n >= want)
        return p;
    uint8_t *s = cdcd_arena_alloc(a, want);
    memcpy(s, p, n);
    memset(s + n, 0, want - n);
    return s;
}

/* ---- MariaDB's own types: bytes in the order of their text ---- */

static void put_uuid(const uint8_t *p, struct cdcd_arena *a, struct cdcd_cell *out)
{
    static const char hex[] = "0123456789abcdef";
    char *s = cdcd_arena_alloc(a, 36), *w = s;

    for (int i = 0; i < 16; i++) {
        if (i == 4 || i == 6 || i == 8 || i == 10)
            *w++ = '-';
        *w++ = hex[p[i] >> 4];
        *w++ = hex[p[i] & 15];
    }
    *out = cdcd_cell_text(s, 36);
}

/* Without leading zeros; base 10 or 16. Returns the place behind it. */
static char *put_number(char *w, unsigned v, unsigned base)
{
    char digits[10];
    int n = 0;
    do
        digits[n++] = "0123456789abcdef"[v % base];
    while (v /= base);
    while (n)
        *w++ = digits[--n];
    return w;
}

static char *put_ipv4(char *w, const uint8_t *p)
{
    for (int i = 0; i < 4; i++) {
        if (i)
            *w++ = '.';
        w = put_number(w, p[i], 10);
    }
    return w;
}

static void put_inet4(const uint8_t *p, struct cdcd_arena *a, struct cdcd_cell *out)
{
    char *s = cdcd_arena_alloc(a, 16);

    *out = cdcd_cell_text(s, (size_t)(put_ipv4(s, p) - s));
}

/* As MariaDB prints it (sql_type_inet.cc, Inet6::to_string): the first longest run of zero groups,
 * be it of one, as "::"; an IPv4 part where only zeros, or zeros and ffff, stand before it. */
static void put_inet6(const uint8_t *p, struct cdcd_arena *a, struct cdcd_cell *out)
{
    enum { GROUPS = 8 };
    unsigned word[GROUPS];
    int gap = -1, gap_len = 0;
    char *s = cdcd_arena_alloc(a, 48), *w = s;

    for (int i = 0; i < GROUPS; i++)
        word[i] = (unsigned)my_be(p + 2 * i, 2);
    for (int i = 0, run = 0; i < GROUPS; i++) {
        run = word[i] ? 0 : run + 1;
        if (run > gap_len) {
            gap_len = run;
            gap = i - run + 1;
        }
    }
    for (int i = 0; i < GROUPS; i++) {
        if (i == gap) {
            if (i == 0)
                *w++ = ':';
            *w++ = ':';
            i += gap_len - 1;
        } else if (i == 6 && gap == 0 && (gap_len == 6 || (gap_len == 5 && word[5] == 0xffff))) {
            w = put_ipv4(w, p + 12);
            break;
        } else {
            w = put_number(w, word[i], 16);
            if (i + 1 < GROUPS)
                *w++ = ':';
        }
    }
    *out = cdcd_cell_text(s, (size_t)(w - s));
}

/* ---- text and bytes ---- */

enum cdcd_rc my_read_string(const struct my_column_decoder *d, const uint8_t *p, size_t n,
                            struct cdcd_arena *a, struct cdcd_cell *out, struct cdcd_error *err)
{
    struct cdcd_slice text;
    enum cdcd_rc rc;

    switch ((enum my_special)d->special) {
    case MY_BINARY:
        if (d->type == MY_STRING && n < d->meta) {
            p = padded(p, n, d->meta, a);
            n = d->meta;
        }
        *out = bytes_cell(p, n);
        return CDCD_OK;
    case MY_UUID:
    case MY_INET6:
        if (n > 16)
            return my_value_bad(d, err, "it has %zu bytes, more than 16", n);
        p = padded(p, n, 16, a);
        (d->special == MY_UUID ? put_uuid : put_inet6)(p, a, out);
        return CDCD_OK;
    case MY_INET4:
        if (n > 4)
            return my_value_bad(d, err, "it has %zu bytes, more than 4", n);
        put_inet4(padded(p, n, 4, a), a, out);
        return CDCD_OK;
    default: break;
    }
    if (!d->charset) {
        *out = cdcd_cell_text((const char *)p, n);
        return CDCD_OK;
    }
    rc = my_charset_decode(d->charset, (const char *)p, n, a, &text, err);
    if (rc != CDCD_OK)
        return cdcd_error_context(err, "column %s", d->name);
    *out = cdcd_cell_text(text.ptr, text.len);
    return CDCD_OK;
}

/* ---- MariaDB's compressed columns: Field_longstr::uncompress (field.cc) ----
 *
 * Nothing for the empty value; else a byte and the rest. The byte's high half is the method: 0
 * stored as it is, 8 zlib, where the low half has the number of bytes of the length (3 bits) and
 * whether the stream has no zlib header (top bit); the length follows, most significant byte
 * first. */
static enum cdcd_rc inflate_value(const struct my_column_decoder *d, const uint8_t *p, size_t n,
                                  uint8_t *to, size_t len, int window, struct cdcd_error *err)
{
    z_stream z = {.next_in = (Bytef *)(uintptr_t)p,
                  .avail_in = (uInt)n,
                  .next_out = to,
                  .avail_out = (uInt)len};

    if (inflateInit2(&z, window) != Z_OK)
        abort();
    int rc = inflate(&z, Z_FINISH);
    inflateEnd(&z);
    if (rc != Z_STREAM_END || z.total_out != len)
        return my_value_bad(d, err, "its compressed form is damaged");
    return CDCD_OK;
}

enum cdcd_rc my_read_compressed(const struct my_column_decoder *d, const uint8_t *p, size_t n,
                                struct cdcd_arena *a, struct cdcd_cell *out, struct cdcd_error *err)
{
    enum { STORED = 0, ZLIB = 8, MAX_RATIO = 1100 }; /* deflate does not reach 1032 */

    if (n == 0)
        return my_read_string(d, p, 0, a, out, err);
    uint8_t head = *p++;
    n--;
    if (head >> 4 == STORED)
        return my_read_string(d, p, n, a, out, err);
    unsigned width = head & 7;
    if (head >> 4 != ZLIB || width == 0 || width > 4 || n < width)
        return my_value_bad(d, err, "its compression method %u is not known", head >> 4);
    size_t len = (size_t)my_be(p, width);
    p += width;
    n -= width;
    if (len > (uint64_t)n * MAX_RATIO)
        return my_value_bad(d, err, "its compressed form is damaged");
    uint8_t *to = cdcd_arena_alloc(a, len);
    enum cdcd_rc rc = inflate_value(d, p, n, to, len, head & 8 ? -MAX_WBITS : MAX_WBITS, err);
    return rc == CDCD_OK ? my_read_string(d, to, len, a, out, err) : rc;
}

/* ---- enum, set, bits ---- */

enum cdcd_rc my_cell_enum(const struct my_column_decoder *d, uint32_t index, struct cdcd_arena *a,
                          struct cdcd_cell *out, struct cdcd_error *err)
{
    if (index > d->nlabels)
        return my_value_bad(d, err, "it is value %u of an ENUM of %u", index, d->nlabels);
    const char *label = index ? d->labels[index - 1] : "";
    size_t n = strlen(label);
    *out = cdcd_cell_text(cdcd_arena_dup(a, label, n), n);
    return CDCD_OK;
}

enum cdcd_rc my_read_set(const struct my_column_decoder *d, uint64_t bits, struct cdcd_arena *a,
                         struct cdcd_cell *out, struct cdcd_error *err)
{
    struct cdcd_writer w;

    if (d->nlabels < 64 && bits >> d->nlabels)
        return my_value_bad(d, err, "it has more values than the %u of its SET", d->nlabels);
    cdcd_writer_begin(&w, a);
    for (uint32_t i = 0; bits; i++, bits >>= 1) {
        if (!(bits & 1))
            continue;
        if (w.pos != w.start)
            cdcd_writer_char(&w, ',');
        cdcd_writer_add(&w, d->labels[i], strlen(d->labels[i]));
    }
    struct cdcd_slice text = cdcd_writer_end(&w);
    *out = cdcd_cell_text(text.ptr, text.len);
    return CDCD_OK;
}

void my_read_bits(const struct my_column_decoder *d, const uint8_t *p, size_t n,
                  struct cdcd_arena *a, struct cdcd_cell *out)
{
    if (d->special == MY_BOOL) {
        *out = (struct cdcd_cell){.kind = CDCD_C_BOOL, .i = n && p[n - 1] & 1};
        return;
    }
    uint8_t *s = cdcd_arena_alloc(a, n);
    for (size_t i = 0; i < n; i++)
        s[i] = p[n - 1 - i];
    *out = bytes_cell(s, n);
}

/* ---- vectors and geometry ---- */

static double le_double(const uint8_t *p)
{
    uint64_t bits = my_le(p, 8);
    double v;

    memcpy(&v, &bits, sizeof v);
    return v;
}

enum cdcd_rc my_read_vector(const struct my_column_decoder *d, const uint8_t *p, size_t n,
                            struct cdcd_arena *a, struct cdcd_cell *out, struct cdcd_error *err)
{
    if (n % 4)
        return my_value_bad(d, err, "%zu bytes are no vector of 4-byte floats", n);
    struct cdcd_cell *cells = cdcd_arena_alloc(a, n / 4 * sizeof *cells);
    for (size_t i = 0; i < n / 4; i++) {
        uint32_t bits = (uint32_t)my_le(p + 4 * i, 4);
        float v;
        memcpy(&v, &bits, sizeof v);
        my_cell_float(v, true, a, &cells[i]);
    }
    *out = (struct cdcd_cell){.kind = CDCD_C_LIST, .len = (uint32_t)(n / 4), .cells = cells};
    return CDCD_OK;
}

enum cdcd_rc my_cell_geometry(const struct my_column_decoder *d, const uint8_t *p, size_t n,
                              struct cdcd_arena *a, struct cdcd_cell *out, struct cdcd_error *err)
{
    enum { SRID = 4, WKB_HEAD = 5, WKB_POINT = 1 };

    if (n < SRID + WKB_HEAD + 4 || p[SRID] > 1)
        return my_value_bad(d, err, "%zu bytes are no geometry", n);
    uint32_t srid = (uint32_t)my_le(p, SRID);
    if (srid > CDCD_SRID_MAX)
        return my_value_bad(d, err, "its spatial reference %u is above %u", srid, CDCD_SRID_MAX);
    struct cdcd_cell geom = cdcd_cell_geom((const char *)p + SRID, n - SRID, srid, CDCD_SHAPE_NONE);
    if (d->special != MY_POINT) {
        *out = geom;
        return CDCD_OK;
    }
    const uint8_t *wkb = p + SRID;
    if (n != SRID + WKB_HEAD + 16 || wkb[0] != 1 || my_le(wkb + 1, 4) != WKB_POINT)
        return my_value_bad(d, err, "%zu bytes are no point", n);
    struct cdcd_cell *xy = cdcd_arena_alloc(a, 2 * sizeof *xy);
    my_cell_float(le_double(wkb + WKB_HEAD), false, a, &xy[0]);
    my_cell_float(le_double(wkb + WKB_HEAD + 8), false, a, &xy[1]);
    *out = (struct cdcd_cell){
        .kind = CDCD_C_LIST, .inf = geom.inf, .aux = geom.aux, .len = 2, .cells = xy};
    return CDCD_OK;
}
