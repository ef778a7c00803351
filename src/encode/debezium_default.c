/*
 * Constants of a column: its default, what stands for it when a NOT NULL value is absent, and
 * the placeholder of a value that the log left out because it did not change.
 *
 * The absent rule: an optional column is null; a NOT NULL one cannot be in a Connect struct, so
 * it gets its default, or the zero of its type. A default that is computed (nextval, now(), ...)
 * counts as the zero of its type.
 */
#include "dbz.h"

/* ---- MD5 (RFC 1321), for name-based UUIDs (version 3) only ---- */

static const uint32_t md5_sines[64] = {
    0xd76aa478, 0xe8c7b756, 0x242070db, 0xc1bdceee, 0xf57c0faf, 0x4787c62a, 0xa8304613, 0xfd469501,
    0x698098d8, 0x8b44f7af, 0xffff5bb1, 0x895cd7be, 0x6b901122, 0xfd987193, 0xa679438e, 0x49b40821,
    0xf61e2562, 0xc040b340, 0x265e5a51, 0xe9b6c7aa, 0xd62f105d, 0x02441453, 0xd8a1e681, 0xe7d3fbc8,
    0x21e1cde6, 0xc33707d6, 0xf4d50d87, 0x455a14ed, 0xa9e3e905, 0xfcefa3f8, 0x676f02d9, 0x8d2a4c8a,
    0xfffa3942, 0x8771f681, 0x6d9d6122, 0xfde5380c, 0xa4beea44, 0x4bdecfa9, 0xf6bb4b60, 0xbebfbc70,
    0x289b7ec6, 0xeaa127fa, 0xd4ef3085, 0x04881d05, 0xd9d4d039, 0xe6db99e5, 0x1fa27cf8, 0xc4ac5665,
    0xf4292244, 0x432aff97, 0xab9423a7, 0xfc93a039, 0x655b59c3, 0x8f0ccc92, 0xffeff47d, 0x85845dd1,
    0x6fa87e4f, 0xfe2ce6e0, 0xa3014314, 0x4e0811a1, 0xf7537e82, 0xbd3af235, 0x2ad7d2bb, 0xeb86d391,
};
static const uint8_t md5_shifts[16] = {7, 12, 17, 22, 5, 9, 14, 20, 4, 11, 16, 23, 6, 10, 15, 21};

static void md5_block(uint32_t h[4], const uint8_t *p)
{
    uint32_t m[16], a = h[0], b = h[1], c = h[2], d = h[3];
    for (int i = 0; i < 16; i++)
        m[i] = (uint32_t)p[4 * i] | (uint32_t)p[4 * i + 1] << 8 | (uint32_t)p[4 * i + 2] << 16 |
               (uint32_t)p[4 * i + 3] << 24;
    for (int i = 0; i < 64; i++) {
        uint32_t f;
        int g;
        if (i < 16) {
            f = (b & c) | (~b & d);
            g = i;
        } else if (i < 32) {
            f = (d & b) | (~d & c);
            g = (5 * i + 1) % 16;
        } else if (i < 48) {
            f = b ^ c ^ d;
            g = (3 * i + 5) % 16;
        } else {
            f = c ^ (b | ~d);
            g = 7 * i % 16;
        }
        f += a + md5_sines[i] + m[g];
        int s = md5_shifts[i / 16 * 4 + i % 4];
        a = d;
        d = c;
        c = b;
        b += f << s | f >> (32 - s);
    }
    h[0] += a;
    h[1] += b;
    h[2] += c;
    h[3] += d;
}

static void md5(const uint8_t *p, size_t n, uint8_t out[16])
{
    uint32_t h[4] = {0x67452301, 0xefcdab89, 0x98badcfe, 0x10325476};
    uint8_t tail[128] = {0};
    size_t whole = n / 64 * 64, rest = n - whole;
    for (size_t i = 0; i < whole; i += 64)
        md5_block(h, p + i);
    memcpy(tail, p + whole, rest);
    tail[rest] = 0x80;
    size_t end = rest < 56 ? 64 : 128;
    for (int i = 0; i < 8; i++)
        tail[end - 8 + (size_t)i] = (uint8_t)((uint64_t)n * 8 >> (8 * i));
    for (size_t i = 0; i < end; i += 64)
        md5_block(h, tail + i);
    for (int i = 0; i < 16; i++)
        out[i] = (uint8_t)(h[i / 4] >> (8 * (i % 4)));
}

static void uuid_from_name(struct cdcd_slice name, char out[37])
{
    static const char hex[] = "0123456789abcdef";
    uint8_t b[16];
    char *p = out;
    md5((const uint8_t *)name.ptr, name.len, b);
    b[6] = (uint8_t)((b[6] & 0x0f) | 0x30);
    b[8] = (uint8_t)((b[8] & 0x3f) | 0x80);
    for (int i = 0; i < 16; i++) {
        if (i == 4 || i == 6 || i == 8 || i == 10)
            *p++ = '-';
        *p++ = hex[b[i] >> 4];
        *p++ = hex[b[i] & 15];
    }
    *p = 0;
}

/* ---- the placeholder ---- */

static int hex_value(char c)
{
    return c >= '0' && c <= '9'   ? c - '0'
           : c >= 'a' && c <= 'f' ? c - 'a' + 10
           : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                  : -1;
}

enum cdcd_rc dbz_placeholder_init(struct dbz *d, struct cdcd_arena *a, struct cdcd_error *err)
{
    const char *text = dbz_str(d->cfg->unavailable_value_placeholder,
                               "__debezium_unavailable_value");
    size_t n = strlen(text);
    if (strncmp(text, "hex:", 4) == 0) {
        const char *hex = text + 4;
        n = (n - 4) / 2;
        char *bytes = cdcd_arena_alloc(a, n + 1);
        bool ok = strlen(hex) % 2 == 0;
        for (size_t i = 0; ok && i < n; i++) {
            int hi = hex_value(hex[2 * i]), lo = hex_value(hex[2 * i + 1]);
            ok = hi >= 0 && lo >= 0;
            bytes[i] = (char)(hi * 16 + lo);
        }
        if (!ok)
            return cdcd_error_set(err, CDCD_ERR_CONFIG,
                                  "unavailable.value.placeholder: \"%s\" is not pairs of "
                                  "hexadecimal digits after \"hex:\"",
                                  text);
        d->placeholder = (struct cdcd_slice){bytes, n};
    } else {
        d->placeholder = (struct cdcd_slice){cdcd_arena_dup(a, text, n), n};
    }
    struct cdcd_writer w;
    cdcd_writer_begin(&w, a);
    cdcd_json_string(&w, d->placeholder.ptr, n);
    d->placeholder_json = cdcd_writer_end(&w);
    uuid_from_name(d->placeholder, d->placeholder_uuid);
    return CDCD_OK;
}

static bool is_integer(enum dbz_form f)
{
    return f == DBZ_INT8 || f == DBZ_INT16 || f == DBZ_INT32 || f == DBZ_INT64 || f == DBZ_UINT64;
}

/* Lists of numbers hold the placeholder's bytes (signed, as Java has them). */
static void put_byte_values(const struct dbz *d, struct cdcd_writer *w, const char *after)
{
    cdcd_writer_char(w, '[');
    for (size_t i = 0; i < d->placeholder.len; i++) {
        if (i)
            cdcd_writer_char(w, ',');
        cdcd_json_int(w, (signed char)d->placeholder.ptr[i]);
        dbz_adds(w, after);
    }
    cdcd_writer_char(w, ']');
}

static void put_array_placeholder(const struct dbz *d, struct cdcd_writer *w,
                                  const struct dbz_column *elem)
{
    if (is_integer(elem->form)) {
        put_byte_values(d, w, "");
        return;
    }
    cdcd_writer_char(w, '[');
    if (elem->form == DBZ_UUID)
        cdcd_json_string(w, d->placeholder_uuid, 36);
    else
        dbz_add(w, elem->unavailable);
    cdcd_writer_char(w, ']');
}

static void put_hstore_placeholder(const struct dbz *d, struct cdcd_writer *w)
{
    cdcd_writer_char(w, '{');
    dbz_add(w, d->placeholder_json);
    cdcd_writer_char(w, ':');
    dbz_add(w, d->placeholder_json);
    cdcd_writer_char(w, '}');
}

/* Without a schema a number's placeholder is the string; with one it must be bytes. */
static void put_decimal_placeholder(const struct dbz *d, struct cdcd_writer *w, bool variable)
{
    if (!d->cfg->schemas_enable) {
        dbz_add(w, d->placeholder_json);
        return;
    }
    if (variable)
        cdcd_writer_lit(w, "{\"scale\":0,\"value\":");
    cdcd_json_base64(w, d->placeholder.ptr, d->placeholder.len, false);
    if (variable)
        cdcd_writer_char(w, '}');
}

static void put_placeholder(struct dbz *d, struct cdcd_writer *w, const struct dbz_column *c)
{
    struct cdcd_cell text = cdcd_cell_text(d->placeholder.ptr, d->placeholder.len);
    struct cdcd_cell pair[2] = {text, text};
    struct cdcd_cell map = {.kind = CDCD_C_MAP, .len = 2, .cells = pair};
    switch (c->form) {
    case DBZ_BYTES:
    case DBZ_BITS: cdcd_json_base64(w, d->placeholder.ptr, d->placeholder.len, false); break;
    case DBZ_DECIMAL:
    case DBZ_UINT64_DECIMAL: put_decimal_placeholder(d, w, false); break;
    case DBZ_VARDECIMAL: put_decimal_placeholder(d, w, true); break;
    case DBZ_HSTORE_JSON: dbz_forms[DBZ_HSTORE_JSON].write(d, w, c, &map); break;
    case DBZ_HSTORE_MAP: put_hstore_placeholder(d, w); break;
    case DBZ_ARRAY: put_array_placeholder(d, w, c->elem); break;
    case DBZ_VECTOR64:
    case DBZ_VECTOR32: put_byte_values(d, w, ".0"); break;
    case DBZ_GEOMETRY:
        cdcd_writer_lit(w, "{\"wkb\":");
        cdcd_json_base64(w, d->placeholder.ptr, d->placeholder.len, false);
        cdcd_writer_lit(w, ",\"srid\":null}");
        break;
    default: dbz_add(w, d->placeholder_json); break;
    }
}

/* ---- defaults ---- */

static struct cdcd_slice constant(struct cdcd_arena *a, const char *json)
{
    return (struct cdcd_slice){cdcd_arena_dup(a, json, strlen(json)), strlen(json)};
}

/* The zero of a decimal has the column's scale. */
static struct cdcd_slice zero_of(struct cdcd_arena *a, const struct dbz_column *c)
{
    if (c->form != DBZ_DECIMAL_STRING || c->col->type == CDCD_T_VARDECIMAL || c->col->scale <= 0)
        return constant(a, dbz_forms[c->form].zero);
    struct cdcd_writer w;
    cdcd_writer_begin(&w, a);
    cdcd_writer_lit(&w, "\"0.");
    for (int32_t i = 0; i < c->col->scale; i++)
        cdcd_writer_char(&w, '0');
    cdcd_writer_char(&w, '"');
    return cdcd_writer_end(&w);
}

/* What a computed default counts as; NULL: the column is then without one. */
static struct cdcd_slice computed_default(struct dbz *d, struct cdcd_arena *a,
                                          const struct dbz_column *c)
{
    struct cdcd_cell epoch = {.kind = CDCD_C_TIMESTAMP};
    struct cdcd_writer w;
    switch (c->form) {
    case DBZ_UUID: return constant(a, "\"00000000-0000-0000-0000-000000000000\"");
    case DBZ_JSON: return constant(a, "\"{}\"");
    case DBZ_TSTZ:
        cdcd_writer_begin(&w, a);
        c->write(d, &w, c, &epoch);
        return cdcd_writer_end(&w);
    case DBZ_ENUM:
    case DBZ_ENUMSET:
    case DBZ_VARDECIMAL:
    case DBZ_TIMETZ:
    case DBZ_BYTES:
    case DBZ_BYTES_BASE64:
    case DBZ_BYTES_BASE64_URL:
    case DBZ_BYTES_HEX:
    case DBZ_INTERVAL:
    case DBZ_INTERVAL_ISO:
    case DBZ_LTREE:
    case DBZ_TSVECTOR:
    case DBZ_HSTORE_JSON:
    case DBZ_HSTORE_MAP:
    case DBZ_POINT:
    case DBZ_GEOMETRY:
    case DBZ_VECTOR64:
    case DBZ_VECTOR32:
    case DBZ_SPARSEVEC:
    case DBZ_ARRAY: return (struct cdcd_slice){NULL, 0};
    default: return zero_of(a, c);
    }
}

static struct cdcd_slice default_of(struct dbz *d, struct cdcd_arena *a, const struct dbz_column *c)
{
    const struct cdcd_slice none = {NULL, 0};
    const struct cdcd_cell *v = c->col->default_cell;
    if (!c->col->has_default)
        return none;
    if (!v)
        return computed_default(d, a, c);
    /* Connect allows no struct as a default. */
    if (strcmp(dbz_forms[c->form].type, "struct") == 0 || v->kind <= CDCD_C_UNCHANGED)
        return none;
    struct cdcd_writer w;
    cdcd_writer_begin(&w, a);
    if (!c->write(d, &w, c, v))
        return none;
    /* What is no date may have become null, which is none. */
    struct cdcd_slice json = cdcd_writer_end(&w);
    return cdcd_slice_eq(json, cdcd_slice_str("null")) ? none : json;
}

void dbz_column_constants(struct dbz *d, struct cdcd_arena *a, struct dbz_column *c)
{
    struct cdcd_writer w;
    cdcd_writer_begin(&w, a);
    put_placeholder(d, &w, c);
    c->unavailable = cdcd_writer_end(&w);
    c->default_ = default_of(d, a, c);
    if (c->col->optional)
        c->absent = constant(a, "null");
    else if (c->default_.ptr)
        c->absent = c->default_;
    else
        c->absent = zero_of(a, c);
}
