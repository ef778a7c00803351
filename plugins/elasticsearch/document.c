/*
 * Documents of MongoDB: Extended JSON (v1 strict, v2 canonical and relaxed) or plain JSON -> plain
 * JSON, the same from all of them: numbers as numbers, Decimal128 and ObjectId as strings, dates
 * ISO 8601 in UTC, binary as base64, NaN, the infinities and undefined null, symbols and code as
 * strings,
 * "/pattern/options", {"t":..,"i":..} for a timestamp, "MinKey" and "MaxKey".
 *
 * A dot in a name would make an object of it in the index ("a.b" and a: {b} are the same field
 * there), and an empty name is refused by the servers: by field.dots such a document is an
 * error, or the name gets a _ instead.
 */
#include "convert.h"

#define SHOWN             80
#define NAMES_AS_THEY_ARE (-1) /* dots_mode, within an _id: that is only text */

struct path {
    const struct path *up;
    struct cdcd_slice name;
};

static bool put_value(struct es_values *x, struct cdcd_writer *w, const struct cdcd_json_value *v,
                      const struct path *path);

/* ---- names ---- */

static bool is_blank(struct cdcd_slice s)
{
    for (size_t i = 0; i < s.len; i++) {
        if (s.ptr[i] != ' ' && s.ptr[i] != '\t')
            return false;
    }
    return true;
}

static bool is_plain_name(struct cdcd_slice s)
{
    return !is_blank(s) && !memchr(s.ptr, '.', s.len);
}

/* The name in the index, in tmp. */
static struct cdcd_slice renamed(struct es_values *x, struct cdcd_slice s, bool top)
{
    bool reserved = top && es_name_reserved(s);
    if (is_blank(s))
        return cdcd_slice_str("_");
    if (!reserved && !memchr(s.ptr, '.', s.len))
        return s;
    char *p = cdcd_arena_alloc(&x->tmp, s.len + 1);
    for (size_t i = 0; i < s.len; i++)
        p[i] = s.ptr[i] == '.' ? '_' : s.ptr[i];
    p[s.len] = '_';
    return (struct cdcd_slice){p, s.len + reserved};
}

/* a.b.c of the objects around, for a message. */
static void put_path(const struct path *p, char *out, size_t size)
{
    size_t used = 0;
    const struct path *chain[32];
    int n = 0;
    for (; p && n < 32; p = p->up)
        chain[n++] = p;
    out[0] = 0;
    while (n-- > 0 && used + 2 < size) {
        size_t len = chain[n]->name.len;
        if (len > size - used - 2)
            len = size - used - 2;
        memcpy(out + used, chain[n]->name.ptr, len);
        used += len;
        out[used++] = n ? '/' : 0;
        out[used - (n == 0)] = 0;
    }
}

/* Two names of one object that become the same would leave one value in the index. */
static bool collides(struct es_values *x, const struct cdcd_json_value *object, uint32_t self,
                     struct cdcd_slice name, bool top)
{
    struct cdcd_json_iter it;
    struct cdcd_json_value other, v;
    cdcd_json_iter_init(&it, object);
    for (uint32_t i = 0; cdcd_json_iter_next(&it, &other, &v); i++) {
        if (i != self && cdcd_slice_eq(renamed(x, cdcd_json_text(&other, &x->tmp), top), name))
            return true;
    }
    return false;
}

static bool put_name(struct es_values *x, struct cdcd_writer *w,
                     const struct cdcd_json_value *object, uint32_t self,
                     const struct cdcd_json_value *name, const struct path *path)
{
    char where[256];
    bool top = !path->up;
    struct cdcd_slice text = path->name, now;
    if (x->dots_mode == NAMES_AS_THEY_ARE ||
        (is_plain_name(text) && !(top && es_name_reserved(text)))) {
        es_put(w, name->raw);
        cdcd_writer_char(w, ':');
        return true;
    }
    put_path(path, where, sizeof where);
    if (x->dots_mode == ES_DOTS_FAIL && !is_plain_name(text))
        return es_no_value(x,
                           "the document has the name \"%.*s\" (%s), and in an index %s. Set "
                           "field.dots to rename, or rename the field",
                           (int)(text.len < SHOWN ? text.len : SHOWN), text.ptr, where,
                           is_blank(text) ? "a name may not be empty"
                                          : "a dot makes it a field within another");
    now = renamed(x, text, top);
    if (collides(x, object, self, now, top))
        return es_no_value(x,
                           "the document has two names that both become \"%.*s\" in the index: %s",
                           (int)(now.len < SHOWN ? now.len : SHOWN), now.ptr, where);
    /* Of a name without escapes the new one has none; else it is written anew. */
    cdcd_writer_char(w, '"');
    for (size_t i = 0; i < now.len; i++) {
        unsigned char c = (unsigned char)now.ptr[i];
        static const char hex[] = "0123456789abcdef";
        if (c == '"' || c == '\\')
            cdcd_writer_char(w, '\\');
        if (c < 0x20) {
            cdcd_writer_lit(w, "\\u00");
            cdcd_writer_char(w, hex[c >> 4]);
            cdcd_writer_char(w, hex[c & 15]);
        } else {
            cdcd_writer_char(w, (char)c);
        }
    }
    cdcd_writer_lit(w, "\":");
    return true;
}

/* ---- values of Extended JSON ---- */

/* The only member of an object, or two. False: it has others. */
struct members {
    unsigned n;
    struct cdcd_json_value names[2], values[2];
};

static bool read_members(const struct cdcd_json_value *v, struct members *m)
{
    struct cdcd_json_iter it;
    struct cdcd_json_value name, value;
    m->n = 0;
    cdcd_json_iter_init(&it, v);
    while (cdcd_json_iter_next(&it, &name, &value)) {
        if (m->n == 2)
            return false;
        m->names[m->n] = name;
        m->values[m->n++] = value;
    }
    return true;
}

static bool is_string(const struct cdcd_json_value *v)
{
    return v->kind == CDCD_JSON_STRING;
}

/* A number as the text of a string. */
static bool put_number(struct cdcd_writer *w, const struct cdcd_json_value *v)
{
    struct cdcd_json_value number;
    struct cdcd_slice text = {v->raw.ptr + 1, v->raw.len - 2};
    if (!is_string(v) || v->escaped || !cdcd_json_scan(text, &number) ||
        number.kind != CDCD_JSON_NUMBER)
        return false;
    es_put(w, number.raw);
    return true;
}

static bool put_double(struct cdcd_writer *w, const struct cdcd_json_value *v)
{
    if (es_string_is(v, "NaN") || es_string_is(v, "Infinity") || es_string_is(v, "-Infinity")) {
        cdcd_writer_lit(w, "null");
        return true;
    }
    return put_number(w, v);
}

/* Milliseconds, {"$numberLong": "..."} or text that is ISO 8601. */
static bool put_date(struct cdcd_writer *w, const struct cdcd_json_value *v)
{
    struct cdcd_json_value n = *v, inner;
    int64_t millis;
    if (is_string(v)) {
        es_put(w, v->raw);
        return true;
    }
    if (v->kind == CDCD_JSON_OBJECT) {
        if (!cdcd_json_member(v, "$numberLong", &inner) || !is_string(&inner))
            return false;
        n.kind = CDCD_JSON_NUMBER;
        n.raw = (struct cdcd_slice){inner.raw.ptr + 1, inner.raw.len - 2};
    }
    if (!n.raw.len || !cdcd_json_int64(&n, &millis))
        return false;
    es_timestamp_write(w, millis, 1000, "Z");
    return true;
}

static bool put_regex(struct cdcd_writer *w, const struct cdcd_json_value *pattern,
                      const struct cdcd_json_value *options)
{
    if (!is_string(pattern) || !is_string(options))
        return false;
    cdcd_writer_lit(w, "\"/");
    cdcd_writer_add(w, pattern->raw.ptr + 1, pattern->raw.len - 2);
    cdcd_writer_char(w, '/');
    cdcd_writer_add(w, options->raw.ptr + 1, options->raw.len - 1);
    return true;
}

static bool put_string(struct cdcd_writer *w, const struct cdcd_json_value *v)
{
    if (!is_string(v))
        return false;
    es_put(w, v->raw);
    return true;
}

static bool put_inner(struct cdcd_writer *w, const struct cdcd_json_value *v, const char *name)
{
    struct cdcd_json_value inner;
    return cdcd_json_member(v, name, &inner) && put_string(w, &inner);
}

static bool put_timestamp(struct cdcd_writer *w, const struct cdcd_json_value *v)
{
    struct cdcd_json_value t, i;
    if (!cdcd_json_member(v, "t", &t) || !cdcd_json_member(v, "i", &i) ||
        t.kind != CDCD_JSON_NUMBER || i.kind != CDCD_JSON_NUMBER)
        return false;
    cdcd_writer_lit(w, "{\"t\":");
    es_put(w, t.raw);
    cdcd_writer_lit(w, ",\"i\":");
    es_put(w, i.raw);
    cdcd_writer_char(w, '}');
    return true;
}

static bool put_literal(struct cdcd_writer *w, const char *text)
{
    es_puts(w, text);
    return true;
}

static bool put_regular_expression(struct cdcd_writer *w, const struct cdcd_json_value *v)
{
    struct cdcd_json_value pattern, options;
    return cdcd_json_member(v, "pattern", &pattern) && cdcd_json_member(v, "options", &options) &&
           put_regex(w, &pattern, &options);
}

/* True: the object was a value of Extended JSON, and is written. Whatever else begins with $ is
 * an ordinary object. */
static bool put_extended(struct es_values *x, struct cdcd_writer *w, const struct members *m,
                         const struct path *path)
{
    const struct cdcd_json_value *n = &m->names[0], *v = &m->values[0];
    if (m->n == 0 || n->raw.len < 3 || n->raw.ptr[1] != '$')
        return false;
    if (m->n == 2) {
        const struct cdcd_json_value *n2 = &m->names[1], *v2 = &m->values[1];
        if (es_string_is(n, "$binary") && es_string_is(n2, "$type"))
            return put_string(w, v);
        if (es_string_is(n, "$regex") && es_string_is(n2, "$options"))
            return put_regex(w, v, v2);
        return false;
    }
    if (es_string_is(n, "$oid") || es_string_is(n, "$numberDecimal") || es_string_is(n, "$uuid") ||
        es_string_is(n, "$symbol") || es_string_is(n, "$code"))
        return put_string(w, v);
    if (es_string_is(n, "$numberLong") || es_string_is(n, "$numberInt"))
        return put_number(w, v);
    if (es_string_is(n, "$numberDouble"))
        return put_double(w, v);
    if (es_string_is(n, "$date"))
        return put_date(w, v);
    if (es_string_is(n, "$binary"))
        return put_inner(w, v, "base64");
    if (es_string_is(n, "$timestamp"))
        return put_timestamp(w, v);
    if (es_string_is(n, "$regularExpression"))
        return put_regular_expression(w, v);
    if (es_string_is(n, "$undefined"))
        return put_literal(w, "null");
    if (es_string_is(n, "$minKey"))
        return put_literal(w, "\"MinKey\"");
    if (es_string_is(n, "$maxKey"))
        return put_literal(w, "\"MaxKey\"");
    if (es_string_is(n, "$dbPointer") && v->kind == CDCD_JSON_OBJECT)
        return put_value(x, w, v, path);
    return false;
}

/* ---- objects and arrays ---- */

static bool put_object(struct es_values *x, struct cdcd_writer *w,
                       const struct cdcd_json_value *object, const struct path *up)
{
    struct cdcd_json_iter it;
    struct cdcd_json_value name, v;
    bool first = true;
    cdcd_writer_char(w, '{');
    cdcd_json_iter_init(&it, object);
    for (uint32_t i = 0; cdcd_json_iter_next(&it, &name, &v); i++) {
        struct path here = {up, cdcd_json_text(&name, &x->tmp)};
        if (!up && es_slice_is(here.name, "_id"))
            continue;
        if (!first)
            cdcd_writer_char(w, ',');
        first = false;
        if (!put_name(x, w, object, i, &name, &here) || !put_value(x, w, &v, &here))
            return false;
    }
    cdcd_writer_char(w, '}');
    return true;
}

static bool put_array(struct es_values *x, struct cdcd_writer *w, const struct cdcd_json_value *v,
                      const struct path *path)
{
    struct cdcd_json_iter it;
    struct cdcd_json_value item;
    bool first = true;
    cdcd_writer_char(w, '[');
    cdcd_json_iter_init(&it, v);
    while (cdcd_json_iter_next(&it, NULL, &item)) {
        if (!first)
            cdcd_writer_char(w, ',');
        first = false;
        if (!put_value(x, w, &item, path))
            return false;
    }
    cdcd_writer_char(w, ']');
    return true;
}

static bool put_value(struct es_values *x, struct cdcd_writer *w, const struct cdcd_json_value *v,
                      const struct path *path)
{
    struct members m;
    size_t start = (size_t)(w->pos - w->start);
    switch (v->kind) {
    case CDCD_JSON_OBJECT:
        if (read_members(v, &m)) {
            if (put_extended(x, w, &m, path))
                return true;
            w->pos = w->start + start;
        }
        return put_object(x, w, v, path);
    case CDCD_JSON_ARRAY: return put_array(x, w, v, path);
    default: es_put(w, v->raw); return true;
    }
}

bool es_document_write(struct es_values *x, struct cdcd_writer *w,
                       const struct cdcd_json_value *doc)
{
    if (doc->kind != CDCD_JSON_OBJECT)
        return es_no_value(x, "the document is no JSON object: %.*s",
                           (int)(doc->raw.len < SHOWN ? doc->raw.len : SHOWN), doc->raw.ptr);
    return put_object(x, w, doc, NULL);
}

bool es_document_id(struct es_values *x, struct cdcd_slice text, struct cdcd_slice *out)
{
    static const struct path inside = {NULL, {"_id", 3}};
    struct cdcd_json_value v, plain;
    struct cdcd_arena own;
    struct cdcd_writer w;
    int dots = x->dots_mode;
    if (!cdcd_json_scan(text, &v))
        return es_no_value(x, "the id in the key is no JSON: %.*s",
                           (int)(text.len < SHOWN ? text.len : SHOWN), text.ptr);
    cdcd_arena_init(&own, 1024);
    cdcd_writer_begin(&w, &own);
    x->dots_mode = NAMES_AS_THEY_ARE;
    bool ok = put_value(x, &w, &v, &inside);
    x->dots_mode = dots;
    struct cdcd_slice s = cdcd_writer_end(&w);
    char *copy = cdcd_arena_dup(&x->tmp, s.ptr, s.len);
    cdcd_arena_free(&own);
    if (!ok || !cdcd_json_scan((struct cdcd_slice){copy, s.len}, &plain))
        return false;
    *out = plain.kind == CDCD_JSON_STRING ? cdcd_json_text(&plain, &x->tmp) : plain.raw;
    return true;
}
