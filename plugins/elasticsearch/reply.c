/*
 * Replies: what became of each item of a bulk, and the server's reasons as text. Also small help
 * for making requests.
 */
#include "sink.h"

#include <cdcd/json.h>

#include <stdio.h>
#include <stdlib.h>

/* ---- requests ---- */

void es_json_string(struct cdcd_buf *b, struct cdcd_slice text)
{
    bool plain = true;
    for (size_t i = 0; i < text.len && plain; i++) {
        unsigned char c = (unsigned char)text.ptr[i];
        plain = c >= 0x20 && c < 0x7f && c != '"' && c != '\\';
    }
    if (plain) {
        char *to = cdcd_buf_reserve(b, text.len + 2);
        if (!to)
            return;
        to[0] = '"';
        if (text.len)
            memcpy(to + 1, text.ptr, text.len);
        to[text.len + 1] = '"';
        b->len += text.len + 2;
        return;
    }
    struct cdcd_arena a;
    struct cdcd_writer w;
    cdcd_arena_init(&a, text.len * 2 + 64);
    cdcd_writer_begin(&w, &a);
    cdcd_json_string(&w, text.ptr, text.len);
    struct cdcd_slice json = cdcd_writer_end(&w);
    cdcd_buf_add(b, json.ptr, json.len);
    cdcd_arena_free(&a);
}

static void add_escaped(struct cdcd_buf *b, struct cdcd_slice s)
{
    for (size_t i = 0; i < s.len; i++) {
        char c = s.ptr[i];
        if ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
            c == '-' || c == '_' || c == '.' || c == '~')
            cdcd_buf_add(b, &c, 1);
        else
            cdcd_buf_addf(b, "%%%02X", (unsigned)(unsigned char)c);
    }
}

char *es_path(const char *fmt, ...)
{
    struct cdcd_buf b;
    va_list ap;
    cdcd_buf_init(&b, 0);
    va_start(ap, fmt);
    for (const char *p = fmt; *p; p++) {
        if (p[0] == '%' && p[1] == 'I') {
            add_escaped(&b, va_arg(ap, struct cdcd_slice));
            p++;
        } else {
            cdcd_buf_add(&b, p, 1);
        }
    }
    va_end(ap);
    cdcd_buf_cstr(&b);
    return b.ptr;
}

enum cdcd_rc es_call(struct cdcd_sink *s, const char *method, char *path, struct cdcd_slice body,
                     struct es_reply *out, struct cdcd_error *err)
{
    struct es_request q = {.method = method, .path = path, .body = body};
    if (strstr(path, "/_bulk"))
        q.content_type = "application/x-ndjson";
    enum cdcd_rc rc = es_http_do(s->http, &q, out, err);
    free(path);
    return rc;
}

/* ---- reasons ---- */

static void add_text(char *out, size_t size, const char *before,
                     const struct cdcd_json_value *string, struct cdcd_arena *a)
{
    size_t n = strlen(out);
    struct cdcd_slice text = cdcd_json_text(string, a);
    /* What contains an earlier reason, or is in it, says nothing new. */
    if (text.len == 0 || n + 8 > size || memmem(out, n, text.ptr, text.len))
        return;
    snprintf(out + n, size - n, "%s%.*s", n ? before : "", (int)text.len, text.ptr);
    for (char *p = out + n; *p; p++)
        if ((unsigned char)*p < 0x20)
            *p = ' ';
}

static void reason_of(const struct cdcd_json_value *error, char *type, size_t type_size,
                      char *reason, size_t reason_size)
{
    struct cdcd_json_value v = *error, m;
    struct cdcd_arena a;
    cdcd_arena_init(&a, 1024);
    type[0] = reason[0] = 0;
    if (v.kind == CDCD_JSON_STRING) { /* as proxies and old servers say it */
        add_text(reason, reason_size, "", &v, &a);
    } else {
        if (cdcd_json_member(&v, "type", &m) && m.kind == CDCD_JSON_STRING)
            add_text(type, type_size, "", &m, &a);
        for (int depth = 0; depth < 8 && v.kind == CDCD_JSON_OBJECT; depth++) {
            if (cdcd_json_member(&v, "reason", &m) && m.kind == CDCD_JSON_STRING)
                add_text(reason, reason_size, ": ", &m, &a);
            if (!cdcd_json_member(&v, "caused_by", &m))
                break;
            v = m;
        }
    }
    cdcd_arena_free(&a);
}

void es_reason(struct cdcd_slice body, char *type, size_t type_size, char *reason,
               size_t reason_size)
{
    struct cdcd_json_value root, error;
    type[0] = reason[0] = 0;
    if (!cdcd_json_scan(body, &root)) {
        /* Not the server itself, but something before it. */
        size_t n = body.len < reason_size - 1 ? body.len : reason_size - 1;
        n = n > 200 ? 200 : n;
        for (size_t i = 0; i < n; i++)
            reason[i] = (unsigned char)body.ptr[i] < 0x20 ? ' ' : body.ptr[i];
        reason[n] = 0;
        return;
    }
    if (cdcd_json_member(&root, "error", &error))
        reason_of(&error, type, type_size, reason, reason_size);
}

/* ---- items ---- */

static bool contains(const char *text, const char *part)
{
    return strstr(text, part) != NULL;
}

static enum es_verdict judge_type(long status, const char *type, const char *reason)
{
    if (strcmp(type, "cluster_block_exception") == 0 || strcmp(type, "index_closed_exception") == 0)
        return ES_BLOCKED;
    if (strcmp(type, "index_not_found_exception") == 0 ||
        (strcmp(type, "illegal_argument_exception") == 0 &&
         contains(reason, "no write index is defined for alias")))
        return ES_LOST;
    if (status == 409)
        return contains(type, "version_conflict") ? ES_STALE : ES_AGAIN;
    if (status == 401 || status == 403)
        return ES_DENIED;
    return status == 408 || status == 429 || status >= 500 ? ES_AGAIN : ES_REFUSED;
}

enum es_verdict es_judge(long status, const char *type, const char *reason, bool is_delete)
{
    if (status >= 200 && status < 300)
        return ES_DONE;
    if (status == 404 && is_delete && !*type)
        return ES_GONE;
    return judge_type(status, type, reason);
}

/* {"index":{"status":200}} */
static bool read_item(const struct cdcd_json_value *item, struct es_result *out)
{
    struct cdcd_json_iter it;
    struct cdcd_json_value name, inner, v;
    int64_t status;
    if (item->kind != CDCD_JSON_OBJECT)
        return false;
    cdcd_json_iter_init(&it, item);
    if (!cdcd_json_iter_next(&it, &name, &inner) || !cdcd_json_member(&inner, "status", &v) ||
        v.kind != CDCD_JSON_NUMBER || !cdcd_json_int64(&v, &status))
        return false;
    out->status = (long)status;
    out->type[0] = out->reason[0] = 0;
    if (status >= 300 && cdcd_json_member(&inner, "error", &v))
        reason_of(&v, out->type, sizeof out->type, out->reason, sizeof out->reason);
    bool is_delete = name.raw.len == 8 && memcmp(name.raw.ptr, "\"delete\"", 8) == 0;
    out->verdict = es_judge(out->status, out->type, out->reason, is_delete);
    return true;
}

bool es_bulk_items(struct cdcd_slice body, size_t n,
                   void (*take)(void *ctx, size_t i, const struct es_result *r), void *ctx)
{
    struct cdcd_json_value root, items, item;
    struct cdcd_json_iter it;
    struct es_result r;
    if (!cdcd_json_scan(body, &root) || !cdcd_json_member(&root, "items", &items) ||
        items.kind != CDCD_JSON_ARRAY)
        return false;
    size_t count = 0;
    cdcd_json_iter_init(&it, &items);
    while (cdcd_json_iter_next(&it, NULL, &item)) {
        if (!read_item(&item, &r))
            return false;
        count++;
    }
    if (count != n)
        return false;
    cdcd_json_iter_init(&it, &items);
    for (size_t i = 0; cdcd_json_iter_next(&it, NULL, &item); i++) {
        read_item(&item, &r);
        take(ctx, i, &r);
    }
    return true;
}
