/*
 * fields.c: field.exclude.list, within documents and within the paths of an update.
 *
 * An item is DATABASE.COLLECTION.PATH; * stands for any characters in the first two parts. Where
 * the collection's part ends is open (a name of a collection may have dots), so every way of
 * cutting that fits the collection counts. A path goes through arrays: items.price is left out in
 * each element of items, and so is items.0.price in the first one only. Names within documents may
 * have dots as well: a rest of the path is compared as text, so that the field "a.b" and the field
 * b of a are both what "a.b" means.
 */
#include "filter.h"
#include "oplog.h"

#include <ctype.h>
#include <stdlib.h>

struct mg_fields {
    struct mg_fields *next;
    size_t n;
    const char *paths[]; /* borrowed from the list's items */
};

struct mg_field_rules {
    const struct cdcd_strlist *list;
    struct mg_fields *made;
};

/* ---- which paths count for a collection ---- */

/* * is any number of any characters. */
static bool glob(const char *p, const char *end, struct cdcd_slice s)
{
    size_t i = 0, retry = 0;
    const char *star = NULL;
    while (i < s.len) {
        if (p < end && *p == '*') {
            star = ++p;
            retry = i;
        } else if (p < end && *p == s.ptr[i]) {
            p++;
            i++;
        } else if (star) {
            p = star;
            i = ++retry;
        } else {
            return false;
        }
    }
    while (p < end && *p == '*')
        p++;
    return p == end;
}

static bool has_empty_part(const char *item)
{
    return *item == '.' || *item == 0 || strstr(item, "..") || item[strlen(item) - 1] == '.';
}

enum cdcd_rc mg_field_rules_new(const struct cdcd_strlist *list, struct mg_field_rules **out,
                                struct cdcd_error *err)
{
    *out = NULL;
    for (size_t i = 0; i < list->n; i++) {
        const char *item = list->items[i], *dot = strchr(item, '.');
        if (!dot || !strchr(dot + 1, '.') || has_empty_part(item))
            return cdcd_error_set(err, CDCD_ERR_CONFIG,
                                  "field.exclude.list: \"%s\" must have the form "
                                  "DATABASE.COLLECTION.FIELD; * stands for any characters in the "
                                  "names of database and collection",
                                  item);
    }
    *out = cdcd_xcalloc(1, sizeof **out);
    (*out)->list = list;
    return CDCD_OK;
}

void mg_field_rules_free(struct mg_field_rules *r)
{
    while (r && r->made) {
        struct mg_fields *x = r->made;
        r->made = x->next;
        free(x);
    }
    free(r);
}

/* All ways to cut the item; the paths go to `out`, which has room for one a dot. */
static size_t paths_of(const char *item, struct cdcd_slice db, struct cdcd_slice collection,
                       const char **out)
{
    const char *dot = strchr(item, '.'), *coll = dot + 1;
    size_t n = 0;
    if (!glob(item, dot, db))
        return 0;
    for (const char *end = strchr(coll, '.'); end; end = strchr(end + 1, '.')) {
        if (glob(coll, end, collection))
            out[n++] = end + 1;
    }
    return n;
}

static size_t count_dots(const char *item)
{
    size_t n = 0;
    for (; *item; item++)
        n += *item == '.';
    return n;
}

const struct mg_fields *mg_field_rules_get(struct mg_field_rules *r, struct cdcd_slice db,
                                           struct cdcd_slice collection)
{
    size_t n = 0, most = 0;
    for (size_t i = 0; i < r->list->n; i++)
        most += count_dots(r->list->items[i]);
    struct mg_fields *x = cdcd_xcalloc(1, sizeof *x + most * sizeof *x->paths);
    for (size_t i = 0; i < r->list->n; i++)
        n += paths_of(r->list->items[i], db, collection, x->paths + n);
    x->n = n;
    for (struct mg_fields *y = r->made; y && n; y = y->next) {
        if (y->n == n && memcmp(y->paths, x->paths, n * sizeof *x->paths) == 0) {
            free(x);
            return y;
        }
    }
    if (n == 0) {
        free(x);
        return NULL;
    }
    x->next = r->made;
    r->made = x;
    return x;
}

/* ---- walking ---- */

/* Rests of paths that are still to be found below where we are. */
#define FEW 16
struct rests {
    const char **items;
    size_t n;
    const char *few[FEW];
};

/* Room for up to n; free it after. */
static void rests_init(struct rests *r, size_t n)
{
    r->n = 0;
    r->items = n > FEW ? cdcd_xmalloc(n * sizeof *r->items) : r->few;
}

static void rests_free(struct rests *r)
{
    if (r->items != r->few)
        free(r->items);
}

enum step { MISS, BELOW, HIT };

/* What the field `name` is for the rest of a path; BELOW: *after is what is left of it. */
static enum step take(const char *rest, struct cdcd_slice name, const char **after)
{
    if (memchr(name.ptr, 0, name.len) || strncmp(rest, name.ptr, name.len) != 0)
        return MISS;
    *after = rest + name.len + 1;
    return rest[name.len] == 0 ? HIT : rest[name.len] == '.' ? BELOW : MISS;
}

/* The rests below an element of a document or array. True: it is left out itself. */
static bool descend(const struct rests *in, struct cdcd_slice name, bool array, struct rests *out)
{
    rests_init(out, in->n * 2);
    for (size_t i = 0; i < in->n; i++) {
        const char *after;
        enum step s = take(in->items[i], name, &after);
        if (s == HIT && !array) /* an element of an array cannot go: others would move up */
            return true;
        if (s == BELOW)
            out->items[out->n++] = after;
        if (array)
            out->items[out->n++] = in->items[i];
    }
    return false;
}

static bool nested(uint8_t type)
{
    return type == CDCD_BSON_DOCUMENT || type == CDCD_BSON_ARRAY;
}

/* 1: something within is left out; 0: nothing; -1: malformed. */
static int touches(struct cdcd_slice document, bool array, const struct rests *rests, int depth)
{
    struct cdcd_bson_iter it;
    struct cdcd_bson_element e;
    int more = 0, found = 0;
    if (depth > CDCD_BSON_DEPTH || !cdcd_bson_iter_init(&it, document))
        return -1;
    while (!found && (more = cdcd_bson_iter_next(&it, &e)) == 1) {
        struct rests below;
        found = descend(rests, e.name, array, &below) ? 1
                : below.n && nested(e.type)
                    ? touches(e.value, e.type == CDCD_BSON_ARRAY, &below, depth + 1)
                    : 0;
        rests_free(&below);
    }
    return more < 0 ? -1 : found;
}

static bool copy(struct mg_writer *w, struct cdcd_slice document, bool array,
                 const struct rests *rests);

/* An element of which `below` is left out. */
static bool copy_element(struct mg_writer *w, const struct cdcd_bson_element *e,
                         const struct rests *below)
{
    if (below->n == 0 || !nested(e->type)) {
        mg_bson_element(w, e->type, e->name, e->value);
        return true;
    }
    if (!mg_bson_open(w, e->type, e->name) || !copy(w, e->value, e->type == CDCD_BSON_ARRAY, below))
        return false;
    mg_bson_close(w);
    return true;
}

static bool copy(struct mg_writer *w, struct cdcd_slice document, bool array,
                 const struct rests *rests)
{
    struct cdcd_bson_iter it;
    struct cdcd_bson_element e;
    bool ok = cdcd_bson_iter_init(&it, document);
    int more = 0;
    while (ok && (more = cdcd_bson_iter_next(&it, &e)) == 1) {
        struct rests below;
        if (!descend(rests, e.name, array, &below))
            ok = copy_element(w, &e, &below);
        rests_free(&below);
    }
    return ok && more == 0;
}

bool mg_fields_strip(const struct mg_fields *x, struct cdcd_arena *a, struct cdcd_slice document,
                     struct cdcd_slice *out)
{
    struct rests all = {.items = x ? (const char **)(uintptr_t)x->paths : NULL, .n = x ? x->n : 0};
    *out = document;
    if (!all.n)
        return true;
    int found = touches(document, false, &all, 0);
    if (found <= 0)
        return found == 0;
    struct mg_writer w;
    mg_bson_begin(&w, a);
    bool ok = copy(&w, document, false, &all);
    *out = mg_bson_end(&w);
    return ok;
}

/* ---- dotted paths ---- */

/* A part of digits only: the number of an element of an array, most likely. */
static bool is_index(struct cdcd_slice part)
{
    for (size_t i = 0; i < part.len; i++) {
        if (!isdigit((unsigned char)part.ptr[i]))
            return false;
    }
    return part.len > 0;
}

/* Follows `path` along the rest. HIT: it is the excluded one or below it. BELOW: the path ends
 * first, and *after is what of the rest is to be found in its value. */
static enum step follow(const char *rest, struct cdcd_slice path, const char **after)
{
    while (path.len) {
        const char *dot = memchr(path.ptr, '.', path.len);
        struct cdcd_slice part = {path.ptr, dot ? (size_t)(dot - path.ptr) : path.len};
        size_t used = part.len + (dot != NULL);
        const char *next;
        enum step s = take(rest, part, &next);
        if (s == HIT)
            return HIT;
        if (s == BELOW)
            rest = next;
        else if (!is_index(part))
            return MISS;
        path = (struct cdcd_slice){path.ptr + used, path.len - used};
    }
    *after = rest;
    return BELOW;
}

bool mg_fields_excluded(const struct mg_fields *x, struct cdcd_slice path)
{
    const char *after;
    for (size_t i = 0; x && i < x->n; i++) {
        if (follow(x->paths[i], path, &after) == HIT)
            return true;
    }
    return false;
}

/* As descend(), for a path. */
static bool descend_path(const struct mg_fields *x, struct cdcd_slice path, struct rests *out)
{
    rests_init(out, x->n);
    for (size_t i = 0; i < x->n; i++) {
        const char *after;
        enum step s = follow(x->paths[i], path, &after);
        if (s == HIT)
            return true;
        if (s == BELOW)
            out->items[out->n++] = after;
    }
    return false;
}

bool mg_fields_strip_updated(const struct mg_fields *x, struct cdcd_arena *a,
                             struct cdcd_slice updated, struct cdcd_slice *out)
{
    struct cdcd_bson_iter it;
    struct cdcd_bson_element e;
    struct mg_writer w;
    int more = 0;
    *out = updated;
    if (!x)
        return true;
    bool ok = cdcd_bson_iter_init(&it, updated);
    mg_bson_begin(&w, a);
    while (ok && (more = cdcd_bson_iter_next(&it, &e)) == 1) {
        struct rests below;
        if (!descend_path(x, e.name, &below))
            ok = copy_element(&w, &e, &below);
        rests_free(&below);
    }
    *out = mg_bson_end(&w);
    return ok && more == 0;
}
