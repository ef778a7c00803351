/*
 * Every byte that comes from Kafka and every reply of a search server goes through here, so
 * strings, most of what there is, are passed 16 (SSE2) or 8 bytes at a time.
 */
#include <cdcd/jsonscan.h>

#ifdef __SSE2__
#include <emmintrin.h>
#endif

static const char *skip_blanks(const char *p, const char *end)
{
    while (p < end && (*p == ' ' || *p == '\t' || *p == '\n' || *p == '\r'))
        p++;
    return p;
}

/* ---- well-formedness: each returns the place behind the value, or NULL ---- */

static const char *scan_value(const char *p, const char *end, int depth,
                              struct cdcd_json_value *out);

static bool is_hex(char c)
{
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
}

/* Behind the backslash. */
static const char *scan_escape(const char *p, const char *end)
{
    if (p == end)
        return NULL;
    switch (*p) {
    case '"':
    case '\\':
    case '/':
    case 'b':
    case 'f':
    case 'n':
    case 'r':
    case 't': return p + 1;
    case 'u': break;
    default: return NULL;
    }
    for (int i = 1; i <= 4; i++) {
        if (p + i >= end || !is_hex(p[i]))
            return NULL;
    }
    return p + 5;
}

/* The first quote, backslash or control character, or the end. */
static inline const char *pass_plain(const char *p, const char *end)
{
#ifdef __SSE2__
    const __m128i quote = _mm_set1_epi8('"'), backslash = _mm_set1_epi8('\\');
    const __m128i last_control = _mm_set1_epi8(0x1f);
    for (; end - p >= 16; p += 16) {
        __m128i v = _mm_loadu_si128((const __m128i *)(const void *)p);
        __m128i control = _mm_cmpeq_epi8(_mm_min_epu8(v, last_control), v);
        __m128i special = _mm_or_si128(
            control, _mm_or_si128(_mm_cmpeq_epi8(v, quote), _mm_cmpeq_epi8(v, backslash)));
        unsigned mask = (unsigned)_mm_movemask_epi8(special);
        if (mask)
            return p + __builtin_ctz(mask);
    }
#endif
    /* A byte above 0x7f ends the steps of eight too: whoever is without SSE2 goes slower there. */
    const uint64_t ones = 0x0101010101010101u, high = 0x8080808080808080u;
    for (; end - p >= 8; p += 8) {
        uint64_t v;
        memcpy(&v, p, 8);
        uint64_t q = v ^ (ones * '"'), b = v ^ (ones * '\\');
        if ((v | (v - ones * ' ') | (q - ones) | (b - ones)) & high)
            break;
    }
    while (p < end && *p != '"' && *p != '\\' && (unsigned char)*p >= 0x20)
        p++;
    return p;
}

/* At the opening quote. */
static const char *scan_string(const char *p, const char *end, bool *escaped)
{
    *escaped = false;
    for (p++;; *escaped = true) {
        p = pass_plain(p, end);
        if (p == end || (unsigned char)*p < 0x20)
            return NULL;
        if (*p == '"')
            return p + 1;
        p = scan_escape(p + 1, end);
        if (!p)
            return NULL;
    }
}

static const char *scan_digits(const char *p, const char *end)
{
    const char *start = p;
    while (p < end && *p >= '0' && *p <= '9')
        p++;
    return p > start ? p : NULL;
}

static const char *scan_number(const char *p, const char *end)
{
    if (*p == '-')
        p++;
    if (p < end && *p == '0')
        p++;
    else if (!(p = scan_digits(p, end)))
        return NULL;
    if (p < end && *p == '.' && !(p = scan_digits(p + 1, end)))
        return NULL;
    if (p < end && (*p == 'e' || *p == 'E')) {
        p++;
        if (p < end && (*p == '+' || *p == '-'))
            p++;
        p = scan_digits(p, end);
    }
    return p;
}

static const char *scan_array(const char *p, const char *end, int depth)
{
    struct cdcd_json_value v;
    p = skip_blanks(p + 1, end);
    if (p < end && *p == ']')
        return p + 1;
    while ((p = scan_value(p, end, depth, &v))) {
        p = skip_blanks(p, end);
        if (p == end)
            return NULL;
        if (*p == ']')
            return p + 1;
        if (*p != ',')
            return NULL;
        p = skip_blanks(p + 1, end);
    }
    return NULL;
}

/* members may be NULL. */
static inline const char *scan_object(const char *p, const char *end, int depth,
                                      struct cdcd_json_members *members)
{
    struct cdcd_json_value name = {.kind = CDCD_JSON_STRING}, v;
    p = skip_blanks(p + 1, end);
    if (p < end && *p == '}')
        return p + 1;
    while (p < end && *p == '"') {
        const char *start = p;
        if (!(p = scan_string(p, end, &name.escaped)))
            return NULL;
        name.raw = (struct cdcd_slice){start, (size_t)(p - start)};
        p = skip_blanks(p, end);
        if (p == end || *p != ':')
            return NULL;
        if (!(p = scan_value(skip_blanks(p + 1, end), end, depth, &v)))
            return NULL;
        if (members && members->n++ < CDCD_JSON_MEMBERS) {
            members->names[members->n - 1] = name;
            members->values[members->n - 1] = v;
        }
        p = skip_blanks(p, end);
        if (p == end)
            return NULL;
        if (*p == '}')
            return p + 1;
        if (*p != ',')
            return NULL;
        p = skip_blanks(p + 1, end);
    }
    return NULL;
}

static const char *scan_word(const char *p, const char *end, const char *word)
{
    size_t n = strlen(word);
    return (size_t)(end - p) >= n && memcmp(p, word, n) == 0 ? p + n : NULL;
}

static const char *scan_value(const char *p, const char *end, int depth,
                              struct cdcd_json_value *out)
{
    const char *start = p;
    out->escaped = false;
    if (p == end || depth > CDCD_JSON_DEPTH)
        return NULL;
    switch (*p) {
    case '{':
        out->kind = CDCD_JSON_OBJECT;
        p = scan_object(p, end, depth + 1, NULL);
        break;
    case '[':
        out->kind = CDCD_JSON_ARRAY;
        p = scan_array(p, end, depth + 1);
        break;
    case '"':
        out->kind = CDCD_JSON_STRING;
        p = scan_string(p, end, &out->escaped);
        break;
    case 't':
        out->kind = CDCD_JSON_TRUE;
        p = scan_word(p, end, "true");
        break;
    case 'f':
        out->kind = CDCD_JSON_FALSE;
        p = scan_word(p, end, "false");
        break;
    case 'n':
        out->kind = CDCD_JSON_NULL;
        p = scan_word(p, end, "null");
        break;
    default:
        out->kind = CDCD_JSON_NUMBER;
        p = *p == '-' || (*p >= '0' && *p <= '9') ? scan_number(p, end) : NULL;
    }
    out->raw = (struct cdcd_slice){start, p ? (size_t)(p - start) : 0};
    return p;
}

bool cdcd_json_scan(struct cdcd_slice text, struct cdcd_json_value *out)
{
    if (!text.ptr)
        return false;
    const char *end = text.ptr + text.len;
    const char *p = scan_value(skip_blanks(text.ptr, end), end, 0, out);
    return p && skip_blanks(p, end) == end;
}

bool cdcd_json_scan_members(struct cdcd_slice text, struct cdcd_json_value *out,
                            struct cdcd_json_members *members)
{
    members->n = 0;
    if (!text.ptr)
        return false;
    const char *end = text.ptr + text.len, *start = skip_blanks(text.ptr, end);
    if (start == end || *start != '{')
        return cdcd_json_scan(text, out);
    const char *p = scan_object(start, end, 1, members);
    if (!p || skip_blanks(p, end) != end)
        return false;
    *out = (struct cdcd_json_value){CDCD_JSON_OBJECT, {start, (size_t)(p - start)}, false};
    return true;
}

/* ---- walking what is known to be well-formed ---- */

/* The place behind a value, by brackets and quotes alone. */
static const char *pass_value(const char *p, const char *end, struct cdcd_json_value *out)
{
    if (*p != '{' && *p != '[')
        return scan_value(p, end, 0, out);
    const char *start = p;
    bool escaped;
    int open = 0;
    out->kind = *p == '{' ? CDCD_JSON_OBJECT : CDCD_JSON_ARRAY;
    out->escaped = false;
    do {
        if (*p == '"') {
            p = scan_string(p, end, &escaped);
            continue;
        }
        open += *p == '{' || *p == '[';
        open -= *p == '}' || *p == ']';
        p++;
    } while (p && p < end && open > 0);
    out->raw = (struct cdcd_slice){start, p ? (size_t)(p - start) : 0};
    return p;
}

void cdcd_json_iter_init(struct cdcd_json_iter *it, const struct cdcd_json_value *v)
{
    bool holds = v->kind == CDCD_JSON_OBJECT || v->kind == CDCD_JSON_ARRAY;
    it->object = v->kind == CDCD_JSON_OBJECT;
    it->pos = holds ? v->raw.ptr + 1 : v->raw.ptr;
    it->end = holds ? v->raw.ptr + v->raw.len - 1 : v->raw.ptr;
}

bool cdcd_json_iter_next(struct cdcd_json_iter *it, struct cdcd_json_value *name,
                         struct cdcd_json_value *out)
{
    struct cdcd_json_value ignored;
    const char *p = skip_blanks(it->pos, it->end);
    if (p < it->end && *p == ',')
        p = skip_blanks(p + 1, it->end);
    if (p >= it->end)
        return false;
    if (it->object) {
        p = pass_value(p, it->end, name ? name : &ignored);
        p = p ? skip_blanks(p, it->end) : NULL;
        if (!p || p >= it->end)
            return false;
        p = skip_blanks(p + 1, it->end); /* the colon */
    }
    p = p < it->end ? pass_value(p, it->end, out) : NULL;
    it->pos = p ? p : it->end;
    return p != NULL;
}

bool cdcd_json_member(const struct cdcd_json_value *v, const char *name,
                      struct cdcd_json_value *out)
{
    struct cdcd_json_iter it;
    struct cdcd_json_value key, value;
    size_t n = strlen(name);
    bool found = false;
    if (v->kind != CDCD_JSON_OBJECT)
        return false;
    cdcd_json_iter_init(&it, v);
    while (cdcd_json_iter_next(&it, &key, &value)) {
        if (key.raw.len == n + 2 && memcmp(key.raw.ptr + 1, name, n) == 0) {
            *out = value;
            found = true;
        }
    }
    return found;
}

/* ---- values ---- */

static uint32_t hex4(const char *p)
{
    uint32_t v = 0;
    for (int i = 0; i < 4; i++) {
        char c = p[i];
        v = v << 4 | (uint32_t)(c <= '9' ? c - '0' : (c | 0x20) - 'a' + 10);
    }
    return v;
}

static char *put_utf8(char *o, uint32_t c)
{
    if (c < 0x80) {
        *o++ = (char)c;
    } else if (c < 0x800) {
        *o++ = (char)(0xc0 | c >> 6);
        *o++ = (char)(0x80 | (c & 0x3f));
    } else if (c < 0x10000) {
        *o++ = (char)(0xe0 | c >> 12);
        *o++ = (char)(0x80 | (c >> 6 & 0x3f));
        *o++ = (char)(0x80 | (c & 0x3f));
    } else {
        *o++ = (char)(0xf0 | c >> 18);
        *o++ = (char)(0x80 | (c >> 12 & 0x3f));
        *o++ = (char)(0x80 | (c >> 6 & 0x3f));
        *o++ = (char)(0x80 | (c & 0x3f));
    }
    return o;
}

/* At the u of \\uXXXX; with its low half, if both are a pair. */
static const char *unescape_unit(const char *p, const char *end, char **o)
{
    uint32_t c = hex4(p + 1);
    p += 5;
    if (c >= 0xd800 && c < 0xdc00 && end - p >= 6 && p[0] == '\\' && p[1] == 'u') {
        uint32_t low = hex4(p + 2);
        if (low >= 0xdc00 && low < 0xe000) {
            c = 0x10000 + ((c - 0xd800) << 10) + (low - 0xdc00);
            p += 6;
        }
    }
    *o = put_utf8(*o, c >= 0xd800 && c < 0xe000 ? 0xfffd : c);
    return p;
}

static char plain_escape(char c)
{
    switch (c) {
    case 'b': return '\b';
    case 'f': return '\f';
    case 'n': return '\n';
    case 'r': return '\r';
    case 't': return '\t';
    default: return c;
    }
}

struct cdcd_slice cdcd_json_text(const struct cdcd_json_value *s, struct cdcd_arena *a)
{
    const char *p = s->raw.ptr + 1, *end = s->raw.ptr + s->raw.len - 1;
    if (!s->escaped)
        return (struct cdcd_slice){p, (size_t)(end - p)};
    /* Never longer: an escape of six bytes gives at most three, a pair of twelve gives four. */
    char *out = cdcd_arena_alloc(a, (size_t)(end - p) + 1), *o = out;
    while (p < end) {
        const char *stop = memchr(p, '\\', (size_t)(end - p));
        size_t run = stop ? (size_t)(stop - p) : (size_t)(end - p);
        memcpy(o, p, run);
        o += run;
        p += run;
        if (p == end)
            break;
        p++;
        if (*p == 'u') {
            p = unescape_unit(p, end, &o);
        } else {
            *o++ = plain_escape(*p);
            p++;
        }
    }
    *o = 0;
    return (struct cdcd_slice){out, (size_t)(o - out)};
}

bool cdcd_json_int64(const struct cdcd_json_value *number, int64_t *out)
{
    const char *p = number->raw.ptr, *end = p + number->raw.len;
    if (number->kind != CDCD_JSON_NUMBER)
        return false;
    bool negative = *p == '-';
    uint64_t v = 0, most = negative ? (uint64_t)INT64_MAX + 1 : (uint64_t)INT64_MAX;
    for (p += negative; p < end; p++) {
        uint64_t digit = (uint64_t)(*p - '0');
        if (*p < '0' || *p > '9' || v > (most - digit) / 10)
            return false;
        v = v * 10 + digit;
    }
    *out = negative ? (int64_t)(0 - v) : (int64_t)v;
    return true;
}
