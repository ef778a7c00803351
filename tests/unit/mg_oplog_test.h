/*
 * What the tests of the oplog decoder share: documents from Extended JSON (by libbson, so that
 * nothing of ours is trusted), their text, and files of the golden folder.
 */
#ifndef MG_OPLOG_TEST_H
#define MG_OPLOG_TEST_H

#include "oplog.h"

#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

/* The document in memory of exactly its size, so that a sanitizer sees every byte too far. */
static inline struct cdcd_slice from_json(const char *json)
{
    bson_error_t error;
    bson_t *b = bson_new_from_json((const uint8_t *)json, -1, &error);

    if (!b) {
        print_error("%s: %s\n", json, error.message);
        fail();
    }
    char *copy = cdcd_xmalloc(b->len);
    memcpy(copy, bson_get_data(b), b->len);
    struct cdcd_slice out = {copy, b->len};
    bson_destroy(b);
    return out;
}

static inline void drop(struct cdcd_slice s)
{
    free((char *)s.ptr);
}

static const struct cdcd_bson_style relaxed = {.form = CDCD_BSON_RELAXED};

/* Without the spaces between names and values. */
static inline void add_compact(struct cdcd_buf *out, struct cdcd_slice json)
{
    bool quoted = false;

    for (size_t i = 0; i < json.len; i++) {
        char c = json.ptr[i];
        if (c == ' ' && !quoted)
            continue;
        if (c == '\\')
            cdcd_buf_add(out, json.ptr + i++, 1);
        else if (c == '"')
            quoted = !quoted;
        cdcd_buf_add(out, json.ptr + i, 1);
    }
}

static inline void add_json(struct cdcd_buf *out, uint8_t type, struct cdcd_slice value)
{
    struct cdcd_arena a;
    struct cdcd_writer w;
    const char *why = "";

    cdcd_arena_init(&a, 4096);
    cdcd_writer_begin(&w, &a);
    bool ok = cdcd_bson_json_value(&w, type, value, &relaxed, &why);
    struct cdcd_slice text = cdcd_writer_end(&w);
    if (!ok) {
        print_error("no BSON: %s\n", why);
        fail();
    }
    add_compact(out, text);
    cdcd_arena_free(&a);
}

static inline void add_json_string(struct cdcd_buf *out, struct cdcd_slice s)
{
    cdcd_buf_add(out, "\"", 1);
    for (size_t i = 0; i < s.len; i++) {
        if (s.ptr[i] == '"' || s.ptr[i] == '\\')
            cdcd_buf_add(out, "\\", 1);
        cdcd_buf_add(out, s.ptr + i, 1);
    }
    cdcd_buf_add(out, "\"", 1);
}

/* As expect.py writes it. */
static inline void add_description(struct cdcd_buf *out, const struct cdcd_update *u)
{
    cdcd_buf_adds(out, "{\"updatedFields\":");
    add_json(out, CDCD_BSON_DOCUMENT, u->updated);
    cdcd_buf_adds(out, ",\"removedFields\":[");
    for (uint32_t i = 0; i < u->nremoved; i++) {
        cdcd_buf_adds(out, i ? "," : "");
        add_json_string(out, u->removed[i]);
    }
    cdcd_buf_adds(out, "],\"truncatedArrays\":[");
    for (uint32_t i = 0; i < u->ntruncated; i++) {
        cdcd_buf_adds(out, i ? ",{\"field\":" : "{\"field\":");
        add_json_string(out, u->truncated[i].field);
        cdcd_buf_addf(out, ",\"newSize\":%d}", u->truncated[i].size);
    }
    cdcd_buf_adds(out, "]");
    if (u->ambiguous.ptr) {
        cdcd_buf_adds(out, ",\"disambiguatedPaths\":");
        add_json(out, CDCD_BSON_DOCUMENT, u->ambiguous);
    }
    cdcd_buf_adds(out, "}");
}

static inline char *golden_path(const char *name)
{
    const char *source = getenv("CDCD_SOURCE_DIR");

    return cdcd_xasprintf("%s/tests/golden/oplog/%s", source ? source : ".", name);
}

/* The whole file; the caller frees it. */
static inline void read_file(const char *path, struct cdcd_buf *out)
{
    FILE *f = fopen(path, "rb");
    char block[4096];
    size_t n;

    if (!f) {
        print_error("%s: not there\n", path);
        fail();
    }
    while ((n = fread(block, 1, sizeof block, f)) > 0)
        cdcd_buf_add(out, block, n);
    fclose(f);
}

#endif
