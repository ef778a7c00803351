/*
 * Ids of documents: the key of a record in plain form.
 */
#include "convert.h"

#include <openssl/evp.h>
#include <stdlib.h>

#define SHOWN 120

/* A value in plain form, in tmp. */
static bool plain(struct es_values *x, const struct es_column *c, const struct cdcd_json_value *v,
                  struct cdcd_json_value *out)
{
    struct cdcd_writer w;
    /* What is converted takes from tmp, so the writer is on an arena of its own. */
    struct cdcd_arena a;
    cdcd_arena_init(&a, 1024);
    cdcd_writer_begin(&w, &a);
    bool ok = es_value_write(x, &w, c, v);
    struct cdcd_slice s = cdcd_writer_end(&w);
    char *copy = cdcd_arena_dup(&x->tmp, s.ptr, s.len);
    cdcd_arena_free(&a);
    return ok && cdcd_json_scan((struct cdcd_slice){copy, s.len}, out);
}

/* One way to write a string, whatever escapes the writer of the topic uses: only what JSON
 * demands. */
static void put_string(struct cdcd_writer *w, struct cdcd_slice text)
{
    static const char hex[] = "0123456789abcdef";
    cdcd_writer_char(w, '"');
    for (size_t i = 0; i < text.len; i++) {
        unsigned char c = (unsigned char)text.ptr[i];
        if (c == '"' || c == '\\') {
            cdcd_writer_char(w, '\\');
            cdcd_writer_char(w, (char)c);
        } else if (c < 0x20) {
            static const char shorts[] = "btn\0fr";
            char letter = c >= 8 && c <= 13 ? shorts[c - 8] : 0;
            cdcd_writer_char(w, '\\');
            if (letter) {
                cdcd_writer_char(w, letter);
            } else {
                cdcd_writer_lit(w, "u00");
                cdcd_writer_char(w, hex[c >> 4]);
                cdcd_writer_char(w, hex[c & 15]);
            }
        } else {
            cdcd_writer_char(w, (char)c);
        }
    }
    cdcd_writer_char(w, '"');
}

/* Compact, strings in one form, members in their order. */
static void put_canonical(struct es_values *x, struct cdcd_writer *w,
                          const struct cdcd_json_value *v)
{
    struct cdcd_json_iter it;
    struct cdcd_json_value name, item;
    bool first = true, object = v->kind == CDCD_JSON_OBJECT;
    if (v->kind == CDCD_JSON_STRING) {
        put_string(w, cdcd_json_text(v, &x->tmp));
        return;
    }
    if (!object && v->kind != CDCD_JSON_ARRAY) {
        es_put(w, v->raw);
        return;
    }
    cdcd_writer_char(w, object ? '{' : '[');
    cdcd_json_iter_init(&it, v);
    while (cdcd_json_iter_next(&it, &name, &item)) {
        if (!first)
            cdcd_writer_char(w, ',');
        first = false;
        if (object) {
            put_string(w, cdcd_json_text(&name, &x->tmp));
            cdcd_writer_char(w, ':');
        }
        put_canonical(x, w, &item);
    }
    cdcd_writer_char(w, object ? '}' : ']');
}

static struct cdcd_slice text_of(struct es_values *x, const struct cdcd_json_value *v,
                                 struct cdcd_arena *a)
{
    struct cdcd_writer w;
    if (v->kind == CDCD_JSON_STRING) {
        struct cdcd_slice s = cdcd_json_text(v, &x->tmp);
        return (struct cdcd_slice){cdcd_arena_dup(a, s.ptr, s.len), s.len};
    }
    cdcd_writer_begin(&w, a);
    put_canonical(x, &w, v);
    return cdcd_writer_end(&w);
}

struct cdcd_slice es_id_fit(struct cdcd_slice id, struct cdcd_arena *a)
{
    static const char hex[] = "0123456789abcdef";
    unsigned char digest[EVP_MAX_MD_SIZE];
    unsigned n = 0;
    if (id.len <= ES_ID_MAX)
        return id;
    char *p = cdcd_arena_alloc(a, 7 + 64 + 1), *o = p + 7;
    memcpy(p, "sha256:", 7);
    EVP_Digest(id.ptr, id.len, digest, &n, EVP_sha256(), NULL);
    for (unsigned i = 0; i < n && i < 32; i++) {
        *o++ = hex[digest[i] >> 4];
        *o++ = hex[digest[i] & 15];
    }
    return (struct cdcd_slice){p, (size_t)(o - p)};
}

/* A key of several columns: the JSON array of their values. */
static bool id_of_columns(struct es_values *x, const struct es_shape *shape,
                          const struct cdcd_json_value *key, struct cdcd_arena *a,
                          struct cdcd_slice *out)
{
    struct cdcd_json_iter it;
    struct cdcd_json_value name, v, first;
    struct cdcd_buf all;
    uint32_t n = 0;
    bool ok = true;
    cdcd_buf_init(&all, 0);
    cdcd_json_iter_init(&it, key);
    while (ok && cdcd_json_iter_next(&it, &name, &v)) {
        const struct es_column *c = NULL;
        if (shape && shape->nkeys)
            c = es_shape_column(shape->keys, shape->nkeys, n % shape->nkeys, &name, &x->tmp);
        ok = plain(x, c, &v, &v);
        if (!ok)
            break;
        if (n++ == 0)
            first = v;
        struct cdcd_slice text;
        struct cdcd_writer w;
        struct cdcd_arena own;
        cdcd_arena_init(&own, 512);
        cdcd_writer_begin(&w, &own);
        put_canonical(x, &w, &v);
        text = cdcd_writer_end(&w);
        cdcd_buf_adds(&all, n == 1 ? "[" : ",");
        cdcd_buf_add(&all, text.ptr, text.len);
        cdcd_arena_free(&own);
    }
    cdcd_buf_adds(&all, "]");
    if (ok && n == 0)
        ok = es_no_value(x, "the key has no columns");
    if (ok && n == 1)
        *out = text_of(x, &first, a);
    else if (ok)
        *out = (struct cdcd_slice){cdcd_arena_dup(a, all.ptr, all.len), all.len};
    cdcd_buf_free(&all);
    return ok;
}

/* ---- characters ---- */

/* The length of the character at p; 0: there is none. */
static size_t utf8_char(const unsigned char *p, size_t n)
{
    static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
    size_t len = p[0] < 0x80 ? 1 : p[0] < 0xc2 ? 0 : p[0] < 0xe0 ? 2 : p[0] < 0xf0 ? 3 : 4;
    if (len < 2)
        return len;
    if (p[0] > 0xf4 || len > n)
        return 0;
    uint32_t c = p[0] & (0xffu >> (len + 1));
    for (size_t i = 1; i < len; i++) {
        if ((p[i] & 0xc0) != 0x80)
            return 0;
        c = c << 6 | (p[i] & 0x3f);
    }
    return c < least[len] || (c >= 0xd800 && c < 0xe000) || c > 0x10ffff ? 0 : len;
}

/* The code unit of \uXXXX at p; -1: it is none. JSON that was scanned has all digits. */
static long escaped_unit(const char *p, size_t n)
{
    char digits[5] = "";
    if (n < 6 || p[0] != '\\' || p[1] != 'u')
        return -1;
    memcpy(digits, p + 2, 4);
    return strtol(digits, NULL, 16);
}

/* Whether all of a JSON text is characters. What is none becomes U+FFFD on its way into an _id, and
 * two keys could be one. */
static bool all_characters(struct cdcd_slice json)
{
    for (size_t i = 0; i < json.len;) {
        size_t left = json.len - i, len = utf8_char((const unsigned char *)json.ptr + i, left);
        long unit = escaped_unit(json.ptr + i, left);
        if (unit >= 0xd800 && unit < 0xdc00) {
            long low = escaped_unit(json.ptr + i + 6, left - 6);
            len = low >= 0xdc00 && low < 0xe000 ? 12 : 0;
        } else if (unit >= 0xdc00 && unit < 0xe000) {
            len = 0;
        } else if (json.ptr[i] == '\\') {
            len = 2;
        }
        if (!len)
            return false;
        i += len;
    }
    return true;
}

bool es_id_make(struct es_values *x, const struct es_shape *shape, bool document,
                const struct cdcd_json_value *key, struct cdcd_arena *a, struct cdcd_slice *out)
{
    struct cdcd_json_value id;
    if (key->kind == CDCD_JSON_NULL)
        return es_no_value(x,
                           "the key is null, so there is no _id to write it under. Give the table "
                           "a primary key, or name its key in message.key.columns where it is "
                           "captured, or leave it out");
    if (!all_characters(key->raw))
        return es_no_value(x,
                           "the key is no valid UTF-8 (or has half a surrogate pair), and the _id "
                           "of its document would be that of others too; have the topic written "
                           "with keys that are text");
    if (document) {
        struct cdcd_slice text;
        if (!cdcd_json_member(key, "id", &id) || id.kind != CDCD_JSON_STRING)
            return es_no_value(x, "the key of a document is {\"id\":\"...\"}, not %.*s",
                               (int)(key->raw.len < SHOWN ? key->raw.len : SHOWN), key->raw.ptr);
        if (!es_document_id(x, cdcd_json_text(&id, &x->tmp), &text))
            return false;
        *out = (struct cdcd_slice){cdcd_arena_dup(a, text.ptr, text.len), text.len};
    } else if (key->kind == CDCD_JSON_OBJECT) {
        if (!id_of_columns(x, shape, key, a, out))
            return false;
    } else {
        *out = text_of(x, key, a);
    }
    if (!out->len)
        return es_no_value(x, "the key is the empty string, and no document can have that as its "
                              "_id");
    *out = es_id_fit(*out, a);
    return true;
}
