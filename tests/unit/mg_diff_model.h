/*
 * A small model of documents for the property test of diffs: random documents, and a writer of
 * diffs ($v 2) that knows nothing of the decoder. Values live in an arena.
 */
#ifndef MG_DIFF_MODEL_H
#define MG_DIFF_MODEL_H

#include "mg_oplog_test.h"

struct value {
    uint8_t type; /* INT32, STRING, NULL, BOOL, DOCUMENT, ARRAY */
    int32_t n;    /* INT32, BOOL; STRING: which */
    uint32_t count;
    struct field *fields;
};
struct field {
    const char *name; /* arrays: NULL */
    struct value value;
};

struct random {
    uint64_t state;
    struct cdcd_arena *arena;
    bool dots; /* names with dots, too */
};

static inline uint32_t below(struct random *r, uint32_t n)
{
    r->state ^= r->state << 13;
    r->state ^= r->state >> 7;
    r->state ^= r->state << 17;
    return (uint32_t)(r->state >> 20) % n;
}

/* Names like the format's own, like indexes, empty, with dollars; the last few with dots. */
static const char *const names[] = {"a",  "b", "d",   "i",   "u",  "l",  "s",   "s0",
                                    "u0", "0", "1",   "10",  "01", "$v", "_id", "",
                                    "sa", "x", "a.b", "0.a", ".",  "a."};
enum { NAMES = sizeof names / sizeof *names, NAMES_WITH_DOTS = 4 };

static inline struct value random_value(struct random *r, int depth);

/* Of those that no field before it has; NULL: there is none. */
static inline const char *random_name(struct random *r, const struct field *before, uint32_t n)
{
    for (int tries = 0; tries < 8; tries++) {
        const char *name = names[below(r, r->dots ? NAMES : NAMES - NAMES_WITH_DOTS)];
        bool used = false;
        for (uint32_t i = 0; i < n; i++)
            used |= strcmp(before[i].name, name) == 0;
        if (!used)
            return name;
    }
    return NULL;
}

static inline struct value random_container(struct random *r, uint8_t type, int depth)
{
    struct value v = {.type = type};
    uint32_t n = below(r, type == CDCD_BSON_DOCUMENT ? 7 : 6);

    v.fields = cdcd_arena_alloc(r->arena, 16 * sizeof *v.fields);
    for (uint32_t i = 0; i < n; i++) {
        const char *name = NULL;
        if (type == CDCD_BSON_DOCUMENT && !(name = random_name(r, v.fields, v.count)))
            continue;
        v.fields[v.count++] = (struct field){name, random_value(r, depth - 1)};
    }
    return v;
}

static inline struct value random_value(struct random *r, int depth)
{
    switch (below(r, depth > 0 ? 8 : 4)) {
    case 0: return (struct value){.type = CDCD_BSON_NULL};
    case 1: return (struct value){.type = CDCD_BSON_STRING, .n = (int32_t)below(r, 3)};
    case 2: return (struct value){.type = CDCD_BSON_BOOL, .n = (int32_t)below(r, 2)};
    case 3: return (struct value){.type = CDCD_BSON_INT32, .n = (int32_t)below(r, 4)};
    case 4:
    case 5: return random_container(r, CDCD_BSON_ARRAY, depth);
    default: return random_container(r, CDCD_BSON_DOCUMENT, depth);
    }
}

static inline struct value change(struct random *r, const struct value *v, int depth);

/* Some elements changed, then some left out at the end, or new ones added. */
static inline struct value change_array(struct random *r, const struct value *v, int depth)
{
    struct value out = {.type = CDCD_BSON_ARRAY, .count = v->count};

    out.fields = cdcd_arena_alloc(r->arena, 16 * sizeof *out.fields);
    for (uint32_t i = 0; i < v->count; i++)
        out.fields[i].value = change(r, &v->fields[i].value, depth - 1);
    for (uint32_t n = below(r, 4); n && out.count < 12; n--)
        out.fields[out.count++].value = random_value(r, depth - 1);
    if (below(r, 3) == 0)
        out.count = below(r, out.count + 1);
    for (uint32_t i = 0; i < out.count; i++)
        out.fields[i].name = NULL;
    return out;
}

static inline struct value change_document(struct random *r, const struct value *v, int depth)
{
    struct value out = {.type = CDCD_BSON_DOCUMENT};

    out.fields = cdcd_arena_alloc(r->arena, 16 * sizeof *out.fields);
    for (uint32_t i = 0; i < v->count; i++) {
        if (below(r, 5))
            out.fields[out.count++] = (struct field){v->fields[i].name,
                                                     change(r, &v->fields[i].value, depth - 1)};
    }
    for (uint32_t n = below(r, 3); n && out.count < 12; n--) {
        const char *name = random_name(r, out.fields, out.count);
        if (name)
            out.fields[out.count++] = (struct field){name, random_value(r, depth - 1)};
    }
    if (out.count > 1 && below(r, 6) == 0) { /* another order */
        uint32_t i = below(r, out.count);
        struct field f = out.fields[i];
        out.fields[i] = out.fields[0];
        out.fields[0] = f;
    }
    return out;
}

static inline struct value change(struct random *r, const struct value *v, int depth)
{
    if (below(r, 3) == 0)
        return *v;
    if (depth > 0 && v->type == CDCD_BSON_DOCUMENT && below(r, 6))
        return change_document(r, v, depth);
    if (depth > 0 && v->type == CDCD_BSON_ARRAY && below(r, 6))
        return change_array(r, v, depth);
    return random_value(r, depth);
}

static inline bool equal(const struct value *a, const struct value *b)
{
    if (a->type != b->type || a->n != b->n || a->count != b->count)
        return false;
    for (uint32_t i = 0; i < a->count; i++) {
        if ((a->fields[i].name && strcmp(a->fields[i].name, b->fields[i].name)) ||
            !equal(&a->fields[i].value, &b->fields[i].value))
            return false;
    }
    return true;
}

/* ---- to BSON ---- */

static inline void write_value(struct mg_writer *w, const char *name, const struct value *v)
{
    static const char strings[3][8] = {"\1\0\0\0\0", "\2\0\0\0x\0", "\3\0\0\0\xc3\xa4\0"};
    struct cdcd_slice key = cdcd_slice_str(name), bytes = {NULL, 0};
    char digits[12], flag = (char)v->n;

    switch (v->type) {
    case CDCD_BSON_DOCUMENT:
    case CDCD_BSON_ARRAY:
        assert_true(mg_bson_open(w, v->type, key));
        for (uint32_t i = 0; i < v->count; i++) {
            snprintf(digits, sizeof digits, "%u", i);
            write_value(w, v->type == CDCD_BSON_ARRAY ? digits : v->fields[i].name,
                        &v->fields[i].value);
        }
        mg_bson_close(w);
        return;
    case CDCD_BSON_STRING: bytes = (struct cdcd_slice){strings[v->n], 5 + (size_t)v->n}; break;
    case CDCD_BSON_BOOL: bytes = (struct cdcd_slice){&flag, 1}; break;
    case CDCD_BSON_INT32: bytes = (struct cdcd_slice){(const char *)&v->n, 4}; break;
    default: break;
    }
    if (v->type == CDCD_BSON_STRING && v->n == 2)
        bytes.len = 7;
    mg_bson_element(w, v->type, key, bytes);
}

static inline struct cdcd_slice to_bson(struct cdcd_arena *a, const struct value *document)
{
    struct mg_writer w;

    mg_bson_begin(&w, a);
    for (uint32_t i = 0; i < document->count; i++)
        write_value(&w, document->fields[i].name, &document->fields[i].value);
    return mg_bson_end(&w);
}

/* ---- the diff of two documents ---- */

static inline void diff_document(struct random *r, struct mg_writer *w, const struct value *a,
                                 const struct value *b);
static inline void diff_array(struct random *r, struct mg_writer *w, const struct value *a,
                              const struct value *b);

/* As a diff within, where that is possible, or as the new value. */
static inline bool within(struct random *r, const struct value *a, const struct value *b)
{
    return a->type == b->type && (a->type == CDCD_BSON_DOCUMENT || a->type == CDCD_BSON_ARRAY) &&
           below(r, 4);
}

static inline void write_sub(struct random *r, struct mg_writer *w, const char *name,
                             const struct value *a, const struct value *b)
{
    char key[40];

    snprintf(key, sizeof key, "s%s", name);
    assert_true(mg_bson_open(w, CDCD_BSON_DOCUMENT, cdcd_slice_str(key)));
    if (a->type == CDCD_BSON_ARRAY)
        diff_array(r, w, a, b);
    else
        diff_document(r, w, a, b);
    mg_bson_close(w);
}

/* For each field of b the place of the one of a that it is; -1: it comes anew, with all that
 * follow. */
static inline void match(const struct value *a, const struct value *b, int *places)
{
    uint32_t at = 0;
    bool anew = false;

    for (uint32_t i = 0; i < b->count; i++) {
        uint32_t k = at;
        while (!anew && k < a->count && strcmp(a->fields[k].name, b->fields[i].name))
            k++;
        anew |= k == a->count;
        places[i] = anew ? -1 : (int)k;
        at = anew ? at : k + 1;
    }
}

static inline void section(struct mg_writer *w, bool *open, const char *name)
{
    if (!*open)
        mg_bson_open(w, CDCD_BSON_DOCUMENT, cdcd_slice_str(name));
    *open = true;
}

static inline void write_deleted(struct mg_writer *w, const struct value *a, const struct value *b)
{
    struct value no = {.type = CDCD_BSON_BOOL};
    bool open = false;

    for (uint32_t k = 0; k < a->count; k++) {
        bool kept = false; /* what comes anew says itself that it is not where it was */
        for (uint32_t i = 0; i < b->count; i++)
            kept |= strcmp(a->fields[k].name, b->fields[i].name) == 0;
        if (!kept) {
            section(w, &open, "d");
            write_value(w, a->fields[k].name, &no);
        }
    }
    if (open)
        mg_bson_close(w);
}

static inline void diff_document(struct random *r, struct mg_writer *w, const struct value *a,
                                 const struct value *b)
{
    int places[16];
    bool sub[16] = {false}, open = false;

    match(a, b, places);
    write_deleted(w, a, b);
    for (uint32_t i = 0; i < b->count; i++) {
        const struct value *before = places[i] < 0 ? NULL : &a->fields[places[i]].value;
        if (!before || equal(before, &b->fields[i].value))
            continue;
        if ((sub[i] = within(r, before, &b->fields[i].value)))
            continue;
        section(w, &open, "u");
        write_value(w, b->fields[i].name, &b->fields[i].value);
    }
    if (open)
        mg_bson_close(w);
    open = false;
    for (uint32_t i = 0; i < b->count; i++) {
        if (places[i] < 0) {
            section(w, &open, "i");
            write_value(w, b->fields[i].name, &b->fields[i].value);
        }
    }
    if (open)
        mg_bson_close(w);
    for (uint32_t i = 0; i < b->count; i++) {
        if (sub[i])
            write_sub(r, w, b->fields[i].name, &a->fields[places[i]].value, &b->fields[i].value);
    }
}

static inline void diff_array(struct random *r, struct mg_writer *w, const struct value *a,
                              const struct value *b)
{
    struct value yes = {.type = CDCD_BSON_BOOL, .n = 1};
    struct value size = {.type = CDCD_BSON_INT32, .n = (int32_t)b->count};
    char digits[12], key[16];

    write_value(w, "a", &yes);
    bool sized = b->count < a->count || below(r, 4) == 0;
    if (sized)
        write_value(w, "l", &size);
    for (uint32_t i = 0; i < b->count; i++) {
        const struct value *v = &b->fields[i].value;
        snprintf(digits, sizeof digits, "%u", i);
        snprintf(key, sizeof key, "u%u", i);
        if (i < a->count && equal(&a->fields[i].value, v))
            continue;
        if (i < a->count && within(r, &a->fields[i].value, v))
            write_sub(r, w, digits, &a->fields[i].value, v);
        else if (i < a->count || v->type != CDCD_BSON_NULL || (!sized && i + 1 == b->count) ||
                 below(r, 2)) /* nulls in a gap need not be said */
            write_value(w, key, v);
    }
}

/* {$v: 2, diff: ...} */
static inline struct cdcd_slice write_diff(struct random *r, struct cdcd_arena *out,
                                           const struct value *a, const struct value *b)
{
    struct value two = {.type = CDCD_BSON_INT32, .n = 2};
    struct mg_writer w;

    mg_bson_begin(&w, out);
    write_value(&w, "$v", &two);
    mg_bson_open(&w, CDCD_BSON_DOCUMENT, cdcd_slice_str("diff"));
    diff_document(r, &w, a, b);
    mg_bson_close(&w);
    return mg_bson_end(&w);
}

#endif
