/*
 * BSON -> Extended JSON in one pass. What surrounds a value stands ready in every style, so that
 * writing it is a copy of fixed length.
 *
 * A function that writes takes where to (d) and returns where it stopped; NULL: malformed, with
 * o->why set.
 */
#include "bson_int.h"

#include <cdcd/json.h>

#include <math.h>

enum word {
    W_NAME, /* between a name and its value */
    W_NEXT, /* between two elements */
    W_QUOTE,
    W_TEXT_END, /* "} */
    W_TEXT_END2,
    W_OID,
    W_NUMBER_INT,
    W_NUMBER_LONG,
    W_NUMBER_DOUBLE,
    W_NUMBER_DECIMAL,
    W_DATE,
    W_DATE_TEXT,
    W_DATE_LONG,
    W_BINARY,
    W_BINARY_TYPE,
    W_BINARY2,
    W_BINARY2_TYPE,
    W_REGEX,
    W_REGEX_OPTIONS,
    W_REGEX2,
    W_REGEX2_OPTIONS,
    W_TIMESTAMP,
    W_TIMESTAMP_I,
    W_PLAIN_TIME,
    W_DBPOINTER,
    W_REF,
    W_REF_ID,
    W_CODE,
    W_SCOPE,
    W_SYMBOL,
    W_UNDEFINED,
    W_MIN_KEY,
    W_MAX_KEY,
    W_COUNT
};

struct word_text {
    uint8_t len;
    char text[47];
};
_Static_assert(sizeof(struct word_text) <= BSON_TAIL, "a word is copied whole");

#define W(s)             \
    {                    \
        sizeof(s) - 1, s \
    }
/* q: the quote; s: between elements. */
#define WORDS(q, s)                                                                             \
    {                                                                                           \
        [W_NAME] = W(q ": "), [W_NEXT] = W(s), [W_QUOTE] = W(q), [W_TEXT_END] = W(q "}"),       \
        [W_TEXT_END2] = W(q "}}"), [W_OID] = W("{" q "$oid" q ": " q),                          \
        [W_NUMBER_INT] = W("{" q "$numberInt" q ": " q),                                        \
        [W_NUMBER_LONG] = W("{" q "$numberLong" q ": " q),                                      \
        [W_NUMBER_DOUBLE] = W("{" q "$numberDouble" q ": " q),                                  \
        [W_NUMBER_DECIMAL] = W("{" q "$numberDecimal" q ": " q),                                \
        [W_DATE] = W("{" q "$date" q ": "), [W_DATE_TEXT] = W("{" q "$date" q ": " q),          \
        [W_DATE_LONG] = W("{" q "$date" q ": {" q "$numberLong" q ": " q),                      \
        [W_BINARY] = W("{" q "$binary" q ": " q), [W_BINARY_TYPE] = W(q s q "$type" q ": " q),  \
        [W_BINARY2] = W("{" q "$binary" q ": {" q "base64" q ": " q),                           \
        [W_BINARY2_TYPE] = W(q s q "subType" q ": " q), [W_REGEX] = W("{" q "$regex" q ": " q), \
        [W_REGEX_OPTIONS] = W(q s q "$options" q ": " q),                                       \
        [W_REGEX2] = W("{" q "$regularExpression" q ": {" q "pattern" q ": " q),                \
        [W_REGEX2_OPTIONS] = W(q s q "options" q ": " q),                                       \
        [W_TIMESTAMP] = W("{" q "$timestamp" q ": {" q "t" q ": "),                             \
        [W_TIMESTAMP_I] = W(s q "i" q ": "), [W_PLAIN_TIME] = W("{" q "t" q ": "),              \
        [W_DBPOINTER] = W("{" q "$dbPointer" q ": "), [W_REF] = W("{" q "$ref" q ": " q),       \
        [W_REF_ID] = W(q s q "$id" q ": "), [W_CODE] = W("{" q "$code" q ": " q),               \
        [W_SCOPE] = W(q s q "$scope" q ": "), [W_SYMBOL] = W("{" q "$symbol" q ": " q),         \
        [W_UNDEFINED] = W("{" q "$undefined" q ": true}"),                                      \
        [W_MIN_KEY] = W("{" q "$minKey" q ": 1}"), [W_MAX_KEY] = W("{" q "$maxKey" q ": 1}"),   \
    }
/* [spaced][quoted] */
static const struct word_text word_texts[2][2][W_COUNT] = {
    {WORDS("\"", ","), WORDS("\\\"", ",")},
    {WORDS("\"", ", "), WORDS("\\\"", ", ")},
};

struct out {
    struct cdcd_writer *w;
    const struct word_text *words;
    const uint8_t *limit; /* end of all input: bytes before it may be read */
    const char *why;
    unsigned depth;
    uint8_t form;
    bool quoted;
};

char *cdcd_bson_more(struct cdcd_writer *w, char *d)
{
    w->pos = d;
    /* More than asked for, so that long texts do not come here for each part. */
    return cdcd_writer_room(w, BSON_ROOM + (size_t)(d - w->start) / 2);
}

static inline char *put_word(const struct out *o, char *d, enum word word)
{
    const struct word_text *t = &o->words[word];
    memcpy(d, t->text, sizeof t->text);
    return d + t->len;
}

static char *put_text(struct out *o, char *d, const uint8_t *s, size_t n)
{
    return cdcd_bson_put_text(o->w, d, s, n, o->limit, o->quoted);
}

static inline char *put_int(struct out *o, char *d, int64_t v)
{
    o->w->pos = d;
    cdcd_json_int(o->w, v);
    return o->w->pos;
}

static char *put_long(struct out *o, char *d, enum word before, int64_t v, enum word after)
{
    return put_word(o, put_int(o, put_word(o, d, before), v), after);
}

static inline int64_t read_i64(const uint8_t *p)
{
    int64_t v;
    memcpy(&v, p, sizeof v);
    return v;
}

static inline uint32_t read_u32(const uint8_t *p)
{
    uint32_t v;
    memcpy(&v, p, sizeof v);
    return v;
}

static char *put_hex(char *d, const uint8_t *p, size_t n)
{
    static const char digits[] = "0123456789abcdef";
    for (size_t i = 0; i < n; i++) {
        *d++ = digits[p[i] >> 4];
        *d++ = digits[p[i] & 15];
    }
    return d;
}

static char *put_quoted_hex(struct out *o, char *d, const uint8_t *p, size_t n)
{
    return put_word(o, put_hex(put_word(o, d, W_QUOTE), p, n), W_QUOTE);
}

static char *put_oid(struct out *o, char *d, const uint8_t *p)
{
    return put_word(o, put_hex(put_word(o, d, W_OID), p, 12), W_TEXT_END);
}

/* Text between two words. */
static char *put_enclosed(struct out *o, char *d, enum word before, const uint8_t *s, size_t n,
                          enum word after)
{
    return put_word(o, put_text(o, put_word(o, d, before), s, n), after);
}

/* ---- numbers ---- */

static char *put_double(struct out *o, char *d, double v)
{
    if (isfinite(v)) {
        if (o->form != CDCD_BSON_EXTENDED)
            return cdcd_bson_put_double(d, v);
        d = cdcd_bson_put_double(put_word(o, d, W_NUMBER_DOUBLE), v);
        return put_word(o, d, W_TEXT_END);
    }
    if (o->form == CDCD_BSON_PLAIN) {
        memcpy(d, "null", 4);
        return d + 4;
    }
    d = put_word(o, d, W_NUMBER_DOUBLE);
    if (v < 0)
        *d++ = '-';
    memcpy(d, isnan(v) ? "NaN\0\0\0\0\0" : "Infinity", 8);
    return put_word(o, d + (isnan(v) ? 3 : 8), W_TEXT_END);
}

static char *put_decimal(struct out *o, char *d, const uint8_t *p)
{
    bool plain = o->form == CDCD_BSON_PLAIN;
    d = put_word(o, d, plain ? W_QUOTE : W_NUMBER_DECIMAL);
    d = cdcd_bson_put_decimal(d, p);
    return put_word(o, d, plain ? W_QUOTE : W_TEXT_END);
}

#define MILLIS_9999 253402300799999 /* the last of the year 9999 */

static char *put_date(struct out *o, char *d, int64_t millis)
{
    switch (o->form) {
    case CDCD_BSON_STRICT:
        d = put_int(o, put_word(o, d, W_DATE), millis);
        *d++ = '}';
        return d;
    case CDCD_BSON_RELAXED:
        if (millis < 0 || millis > MILLIS_9999)
            break;
        d = cdcd_bson_put_time(put_word(o, d, W_DATE_TEXT), millis);
        return put_word(o, d, W_TEXT_END);
    case CDCD_BSON_PLAIN:
        return put_word(o, cdcd_bson_put_time(put_word(o, d, W_QUOTE), millis), W_QUOTE);
    default: break;
    }
    return put_long(o, d, W_DATE_LONG, millis, W_TEXT_END2);
}

static char *put_timestamp(struct out *o, char *d, const uint8_t *p)
{
    bool plain = o->form == CDCD_BSON_PLAIN;
    d = put_int(o, put_word(o, d, plain ? W_PLAIN_TIME : W_TIMESTAMP), read_u32(p + 4));
    d = put_int(o, put_word(o, d, W_TIMESTAMP_I), read_u32(p));
    memcpy(d, "}}", 2);
    return d + 2 - plain;
}

/* ---- binary data, regular expressions, code ---- */

/* Base64 without the quotes around it. */
static char *put_base64(struct out *o, char *d, const uint8_t *p, size_t n)
{
    o->w->pos = d - 1; /* its quote replaces a character that is then put back */
    char before = d[-1];
    char *start = o->w->start;
    size_t at = (size_t)(d - start);
    cdcd_json_base64(o->w, p, n, false);
    d = o->w->pos - 1;
    o->w->start[at - 1] = before;
    return cdcd_bson_room(o->w, d);
}

static char *put_binary(struct out *o, char *d, const uint8_t *p, size_t n)
{
    static const char digits[] = "0123456789ABCDEF";
    bool extended = o->form != CDCD_BSON_STRICT, plain = o->form == CDCD_BSON_PLAIN;
    uint8_t subtype = p[4];
    p += 5;
    n -= 5;
    /* The old form has a second length; where that is wrong all bytes are the data. */
    if (subtype == 2 && n >= 4 && read_u32(p) == n - 4) {
        p += 4;
        n -= 4;
    }
    d = put_word(o, d, plain ? W_QUOTE : extended ? W_BINARY2 : W_BINARY);
    d = put_base64(o, d, p, n);
    if (plain)
        return put_word(o, d, W_QUOTE);
    d = put_word(o, d, extended ? W_BINARY2_TYPE : W_BINARY_TYPE);
    *d++ = digits[subtype >> 4];
    *d++ = digits[subtype & 15];
    return put_word(o, d, extended ? W_TEXT_END2 : W_TEXT_END);
}

/* The letters in their order, as the driver has them; anything else but ASCII stays as it is. */
static char *put_options(struct out *o, char *d, const uint8_t *s, size_t n)
{
    size_t count[128] = {0};
    bool sorted = true;
    for (size_t i = 0; i < n; i++) {
        if (s[i] >= 0x80)
            return put_text(o, d, s, n);
        count[s[i]]++;
        sorted &= !i || s[i - 1] <= s[i];
    }
    if (sorted)
        return put_text(o, d, s, n);
    for (unsigned c = 0; c < 128; c++) {
        const uint8_t letter = (uint8_t)c;
        for (size_t i = 0; i < count[c]; i++)
            d = cdcd_bson_put_text(o->w, d, &letter, 1, &letter + 1, o->quoted);
    }
    return d;
}

static char *put_regex(struct out *o, char *d, const uint8_t *p, size_t n)
{
    size_t pattern = strlen((const char *)p), options = n - pattern - 2;
    const uint8_t *letters = p + pattern + 1;
    if (o->form == CDCD_BSON_PLAIN) {
        d = put_word(o, d, W_QUOTE);
        *d++ = '/';
        d = put_text(o, d, p, pattern);
        *d++ = '/';
        return put_word(o, put_options(o, d, letters, options), W_QUOTE);
    }
    bool extended = o->form != CDCD_BSON_STRICT;
    d = put_text(o, put_word(o, d, extended ? W_REGEX2 : W_REGEX), p, pattern);
    d = put_word(o, d, extended ? W_REGEX2_OPTIONS : W_REGEX_OPTIONS);
    d = put_options(o, d, letters, options);
    return put_word(o, d, extended ? W_TEXT_END2 : W_TEXT_END);
}

static char *put_document(struct out *o, char *d, const uint8_t *p, size_t n, bool array);

static char *put_code_with_scope(struct out *o, char *d, const uint8_t *p, size_t n)
{
    size_t code = read_u32(p + 4);
    d = put_enclosed(o, d, W_CODE, p + 8, code - 1, W_SCOPE);
    d = put_document(o, d, p + 8 + code, n - 8 - code, false);
    if (d)
        *d++ = '}';
    return d;
}

static char *put_dbpointer(struct out *o, char *d, const uint8_t *p, size_t n)
{
    bool plain = o->form == CDCD_BSON_PLAIN, extended = o->form == CDCD_BSON_EXTENDED;
    if (extended)
        d = put_word(o, d, W_DBPOINTER);
    d = put_enclosed(o, d, W_REF, p + 4, n - 12 - 5, W_REF_ID);
    d = plain ? put_quoted_hex(o, d, p + n - 12, 12) : put_oid(o, d, p + n - 12);
    memcpy(d, "}}", 2);
    return d + 1 + extended;
}

/* ---- values ---- */

static char *put_other(struct out *o, char *d, uint8_t type, const uint8_t *p, size_t n)
{
    bool plain = o->form == CDCD_BSON_PLAIN;
    switch (type) {
    case CDCD_BSON_BINARY: return put_binary(o, d, p, n);
    case CDCD_BSON_REGEX: return put_regex(o, d, p, n);
    case CDCD_BSON_DBPOINTER: return put_dbpointer(o, d, p, n);
    case CDCD_BSON_CODE_W_SCOPE: return put_code_with_scope(o, d, p, n);
    case CDCD_BSON_TIMESTAMP: return put_timestamp(o, d, p);
    case CDCD_BSON_DECIMAL: return put_decimal(o, d, p);
    case CDCD_BSON_CODE:
        return put_enclosed(o, d, plain ? W_QUOTE : W_CODE, p + 4, n - 5,
                            plain ? W_QUOTE : W_TEXT_END);
    case CDCD_BSON_SYMBOL:
        return put_enclosed(o, d, plain ? W_QUOTE : W_SYMBOL, p + 4, n - 5,
                            plain ? W_QUOTE : W_TEXT_END);
    case CDCD_BSON_UNDEFINED:
        if (!plain)
            return put_word(o, d, W_UNDEFINED);
        memcpy(d, "null", 4);
        return d + 4;
    case CDCD_BSON_MINKEY:
    case CDCD_BSON_MAXKEY:
        if (!plain)
            return put_word(o, d, type == CDCD_BSON_MINKEY ? W_MIN_KEY : W_MAX_KEY);
        d = put_word(o, d, W_QUOTE);
        memcpy(d, type == CDCD_BSON_MINKEY ? "MinKey" : "MaxKey", 6);
        return put_word(o, d + 6, W_QUOTE);
    default: o->why = "an element has an unknown type"; return NULL;
    }
}

/* A value whose length has been checked. */
static inline char *put_value(struct out *o, char *d, uint8_t type, const uint8_t *p, size_t n)
{
    double number;
    switch (type) {
    case CDCD_BSON_STRING: return put_enclosed(o, d, W_QUOTE, p + 4, n - 5, W_QUOTE);
    case CDCD_BSON_DOCUMENT:
    case CDCD_BSON_ARRAY: return put_document(o, d, p, n, type == CDCD_BSON_ARRAY);
    case CDCD_BSON_INT32:
        if (o->form == CDCD_BSON_EXTENDED)
            return put_long(o, d, W_NUMBER_INT, (int32_t)read_u32(p), W_TEXT_END);
        return put_int(o, d, (int32_t)read_u32(p));
    case CDCD_BSON_INT64:
        if (o->form == CDCD_BSON_EXTENDED || o->form == CDCD_BSON_STRICT)
            return put_long(o, d, W_NUMBER_LONG, read_i64(p), W_TEXT_END);
        return put_int(o, d, read_i64(p));
    case CDCD_BSON_DOUBLE: memcpy(&number, p, 8); return put_double(o, d, number);
    case CDCD_BSON_DATE: return put_date(o, d, read_i64(p));
    case CDCD_BSON_OID:
        return o->form == CDCD_BSON_PLAIN ? put_quoted_hex(o, d, p, 12) : put_oid(o, d, p);
    case CDCD_BSON_BOOL: memcpy(d, *p ? "true" : "false", 5); return d + 5 - *p;
    case CDCD_BSON_NULL: memcpy(d, "null", 4); return d + 4;
    default: return put_other(o, d, type, p, n);
    }
}

static char *put_name(struct out *o, char *d, const uint8_t **p, const uint8_t *end)
{
    d = put_word(o, d, W_QUOTE);
    d = cdcd_bson_put_name(o->w, d, p, end, o->limit, o->quoted);
    return d ? put_word(o, d, W_NAME) : NULL;
}

/* One element, from its name on. */
static inline char *put_element(struct out *o, char *d, uint8_t type, const uint8_t **p,
                                const uint8_t *end, bool array)
{
    const uint8_t *value = *p;
    if (!array) {
        d = put_name(o, d, &value, end);
    } else {
        value = value < end ? memchr(value, 0, (size_t)(end - value)) : NULL;
        if (!value)
            d = NULL;
        else
            value++;
    }
    if (!d) {
        o->why = "a name has no end";
        return NULL;
    }
    ptrdiff_t n = cdcd_bson_value_length(type, value, (size_t)(end - value), &o->why);
    if (n < 0)
        return NULL;
    *p = value + n;
    return put_value(o, cdcd_bson_room(o->w, d), type, value, (size_t)n);
}

/* n bytes with a frame that has been checked. */
static char *put_document(struct out *o, char *d, const uint8_t *p, size_t n, bool array)
{
    const uint8_t *end = p + n - 1;
    if (o->depth == CDCD_BSON_DEPTH) {
        o->why = "documents are nested too deep";
        return NULL;
    }
    o->depth++;
    *d++ = array ? '[' : '{';
    p += 4;
    for (bool first = true; p < end; first = false) {
        uint8_t type = *p++;
        d = cdcd_bson_room(o->w, d);
        if (!first)
            d = put_word(o, d, W_NEXT);
        d = put_element(o, d, type, &p, end, array);
        if (!d)
            return NULL;
    }
    d = cdcd_bson_room(o->w, d);
    *d++ = array ? ']' : '}';
    o->depth--;
    return d;
}

bool cdcd_bson_json_value(struct cdcd_writer *w, uint8_t type, struct cdcd_slice value,
                          const struct cdcd_bson_style *style, const char **why)
{
    const uint8_t *p = (const uint8_t *)value.ptr;
    struct out o = {
        .w = w,
        .words = word_texts[style->spaced][style->quoted],
        .limit = p + value.len,
        .form = (uint8_t)style->form,
        .quoted = style->quoted,
    };
    ptrdiff_t n = cdcd_bson_value_length(type, p, value.len, why);
    if (n < 0)
        return false;
    if ((size_t)n != value.len) {
        *why = "the length of a value is wrong";
        return false;
    }
    char *d = put_value(&o, cdcd_writer_room(w, value.len + BSON_ROOM), type, p, value.len);
    if (!d) {
        *why = o.why;
        return false;
    }
    w->pos = d;
    return true;
}

bool cdcd_bson_json(struct cdcd_writer *w, struct cdcd_slice document,
                    const struct cdcd_bson_style *style, const char **why)
{
    return cdcd_bson_frame((const uint8_t *)document.ptr, document.len, why) &&
           cdcd_bson_json_value(w, CDCD_BSON_DOCUMENT, document, style, why);
}
