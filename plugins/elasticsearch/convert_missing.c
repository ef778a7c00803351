/*
 * The placeholder of a value that the log left out since it did not change (unchanged TOAST of
 * PostgreSQL). What stands in its place depends on the column's type: the text, its bytes in
 * base64, a list of it, ... (Debezium's rules; src/encode/debezium_default.c writes them). Without
 * a schema the type is not known, so all forms count, for any column.
 */
#include "convert.h"

#include <cdcd/json.h>

#include <openssl/evp.h>
#include <stdio.h>

static int hex_value(char c)
{
    return c >= '0' && c <= '9'   ? c - '0'
           : c >= 'a' && c <= 'f' ? c - 'a' + 10
           : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                  : -1;
}

/* "hex:" and pairs of digits are bytes. */
static struct cdcd_slice placeholder_bytes(struct cdcd_arena *a, const char *text)
{
    size_t n = strlen(text), len = 0;
    if (strncmp(text, "hex:", 4) != 0)
        return (struct cdcd_slice){cdcd_arena_dup(a, text, n), n};
    char *bytes = cdcd_arena_alloc(a, n);
    for (const char *p = text + 4; hex_value(p[0]) >= 0 && hex_value(p[1]) >= 0; p += 2)
        bytes[len++] = (char)(hex_value(p[0]) * 16 + hex_value(p[1]));
    return (struct cdcd_slice){bytes, len};
}

static void add_string(struct es_placeholder *p, struct cdcd_slice text)
{
    p->strings[p->nstrings++] = text;
}

/* `open` and `close` around a text. */
static struct cdcd_slice compose(struct es_placeholder *p, const char *open, struct cdcd_slice text,
                                 const char *close)
{
    struct cdcd_writer w;
    cdcd_writer_begin(&w, &p->arena);
    es_puts(&w, open);
    es_put(&w, text);
    es_puts(&w, close);
    return cdcd_writer_end(&w);
}

static struct cdcd_slice add_composed(struct es_placeholder *p, const char *open,
                                      struct cdcd_slice text, const char *close)
{
    struct cdcd_slice s = compose(p, open, text, close);
    p->composed[p->ncomposed++] = s;
    return s;
}

static struct cdcd_slice json_string(struct es_placeholder *p, struct cdcd_slice text)
{
    struct cdcd_writer w;
    cdcd_writer_begin(&w, &p->arena);
    cdcd_json_string(&w, text.ptr, text.len);
    return cdcd_writer_end(&w);
}

/* Lists of numbers hold the bytes, signed as Java has them. */
static void add_numbers(struct es_placeholder *p, struct cdcd_slice bytes, const char *after)
{
    struct cdcd_writer w;
    cdcd_writer_begin(&w, &p->arena);
    for (size_t i = 0; i < bytes.len; i++) {
        if (i)
            cdcd_writer_char(&w, ',');
        cdcd_json_int(&w, (signed char)bytes.ptr[i]);
        es_puts(&w, after);
    }
    add_composed(p, "[", cdcd_writer_end(&w), "]");
}

/* The name-based UUID (version 3) of the bytes. */
static void add_uuid(struct es_placeholder *p, struct cdcd_slice bytes)
{
    unsigned char b[EVP_MAX_MD_SIZE];
    unsigned n = 0;
    char text[40], *t = text;
    if (!EVP_Digest(bytes.ptr, bytes.len, b, &n, EVP_md5(), NULL) || n != 16)
        return; /* a libcrypto without MD5: then no list of UUIDs is told from the placeholder */
    b[6] = (unsigned char)((b[6] & 0x0f) | 0x30);
    b[8] = (unsigned char)((b[8] & 0x3f) | 0x80);
    for (int i = 0; i < 16; i++)
        t += snprintf(t, 4, i == 4 || i == 6 || i == 8 || i == 10 ? "-%02x" : "%02x", b[i]);
    add_composed(p, "[\"", cdcd_slice_str(text), "\"]");
}

void es_placeholder_init(struct es_placeholder *p, const char *configured)
{
    *p = (struct es_placeholder){0};
    cdcd_arena_init(&p->arena, 1024);
    const char *text = configured && *configured ? configured : "__debezium_unavailable_value";
    struct cdcd_slice bytes = placeholder_bytes(&p->arena, text), base64, map;
    struct cdcd_slice json = json_string(p, bytes);
    struct cdcd_writer w;
    cdcd_writer_begin(&w, &p->arena);
    cdcd_json_base64(&w, bytes.ptr, bytes.len, false);
    base64 = cdcd_writer_end(&w);

    add_string(p, bytes);
    add_string(p, (struct cdcd_slice){base64.ptr + 1, base64.len - 2});
    cdcd_writer_begin(&w, &p->arena);
    es_put(&w, json);
    cdcd_writer_char(&w, ':');
    es_put(&w, json);
    map = add_composed(p, "{", cdcd_writer_end(&w), "}");
    add_string(p, map);
    struct cdcd_slice decimal = add_composed(p, "{\"scale\":0,\"value\":", base64, "}");
    struct cdcd_slice shape = add_composed(p, "{\"wkb\":", base64, ",\"srid\":null}");
    add_composed(p, "{\"wkb\":", base64, ",\"srid\":null,\"extensions\":null}");
    add_composed(p, "[", json, "]");
    add_composed(p, "[", base64, "]");
    add_composed(p, "[", json_string(p, map), "]");
    add_composed(p, "[", map, "]");
    add_composed(p, "[", decimal, "]");
    add_composed(p, "[", shape, "]");
    add_numbers(p, bytes, "");
    add_numbers(p, bytes, ".0");
    add_uuid(p, bytes);
}

void es_placeholder_free(struct es_placeholder *p)
{
    cdcd_arena_free(&p->arena);
}

bool es_is_placeholder(const struct es_placeholder *p, const struct cdcd_json_value *v,
                       struct cdcd_arena *tmp)
{
    if (v->kind == CDCD_JSON_STRING) {
        /* An escape makes a text longer, so what is shorter than all of them is none. */
        if (v->raw.len < p->strings[0].len + 2)
            return false;
        if (v->escaped && v->raw.len > 6 * (p->strings[2].len + 8))
            return false;
        struct cdcd_slice text = cdcd_json_text(v, tmp);
        for (unsigned i = 0; i < p->nstrings; i++) {
            if (cdcd_slice_eq(p->strings[i], text))
                return true;
        }
        return false;
    }
    if (v->kind != CDCD_JSON_OBJECT && v->kind != CDCD_JSON_ARRAY)
        return false;
    for (unsigned i = 0; i < p->ncomposed; i++) {
        if (cdcd_slice_eq(p->composed[i], v->raw))
            return true;
    }
    return false;
}
