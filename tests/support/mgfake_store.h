/*
 * mgfake_store.h: what the fake server keeps. Part of mgfake.c.
 *
 * Entries of the oplog bear numbers that never change: 0 is the first one of the file. What is
 * there is first <= number < end. A file that is repeated is not kept more than once: entry k is
 * entry k modulo count, its ts later by k / count times the file's span.
 *
 * Bytes are never freed, so that cursors may hold on to them. All under the server's lock.
 */
#ifndef MGFAKE_STORE_H
#define MGFAKE_STORE_H

#include "mgfake_bson.h"

#include <stdio.h>

struct entry {
    const char *bytes;
    uint32_t len;
    uint32_t ts_at; /* offset of the eight bytes */
};

struct oplog {
    struct entry *file, *more;           /* of --oplog; appended ones */
    uint64_t count, nmore, cap, capfile; /* of the file; of more */
    uint64_t repeated;                   /* count times --repeat */
    uint64_t span;                       /* added to ts for each repetition */
    uint64_t first, end;
    bool sorted, rising; /* rising: entries appended now shall be */
};

static uint64_t ts_in(const struct entry *e)
{
    uint64_t ts;
    memcpy(&ts, e->bytes + e->ts_at, sizeof ts);
    return ts;
}

static const struct entry *oplog_entry(const struct oplog *o, uint64_t k, uint64_t *ts)
{
    const struct entry *e = k < o->repeated ? &o->file[k % o->count] : &o->more[k - o->repeated];
    *ts = ts_in(e) + (k < o->repeated ? k / o->count * o->span : 0);
    return e;
}

static uint64_t oplog_ts(const struct oplog *o, uint64_t k)
{
    uint64_t ts;
    oplog_entry(o, k, &ts);
    return ts;
}

static uint64_t oplog_last_ts(const struct oplog *o)
{
    return o->end > o->first ? oplog_ts(o, o->end - 1) : 0;
}

/* The first number from `from` on whose ts is not less. */
static uint64_t oplog_find(const struct oplog *o, uint64_t from, uint64_t ts)
{
    uint64_t low = from, high = o->end;
    if (!o->sorted) {
        while (low < high && oplog_ts(o, low) < ts)
            low++;
        return low;
    }
    while (low < high) {
        uint64_t middle = low + (high - low) / 2;
        if (oplog_ts(o, middle) < ts)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* A copy of the entry, with a ts of its own where it has none. */
static struct entry entry_of(const struct oplog *o, struct cdcd_slice document)
{
    struct value v = get(document, "ts");
    struct cdcd_buf b;
    uint64_t ts;

    cdcd_buf_init(&b, 0);
    if (time_of(v, &ts)) {
        uint32_t at = (uint32_t)(v.s.ptr - document.ptr);
        uint64_t least = oplog_last_ts(o) + 1;
        cdcd_buf_add(&b, document.ptr, document.len);
        if (o->rising && ts < least)
            memcpy(b.ptr + at, &least, sizeof least);
        return (struct entry){b.ptr, (uint32_t)b.len, at};
    }
    ts = oplog_last_ts(o);
    ts = ts ? ts + 1 : (uint64_t)1700000000 << 32 | 1;
    size_t at = put_document(&b, NULL);
    put_time(&b, "ts", ts);
    cdcd_buf_add(&b, document.ptr + 4, document.len - 5);
    put_close(&b, at);
    return (struct entry){b.ptr, (uint32_t)b.len, 4 + 1 + 3};
}

static void oplog_append(struct oplog *o, struct cdcd_slice document, bool of_file)
{
    struct entry e = entry_of(o, document);
    struct entry **list = of_file ? &o->file : &o->more;
    uint64_t *n = of_file ? &o->count : &o->nmore, *cap = of_file ? &o->capfile : &o->cap;

    if (*n == *cap) {
        *cap = *cap ? *cap * 2 : 64;
        *list = cdcd_xrealloc(*list, *cap * sizeof(struct entry));
    }
    if (o->end > o->first && ts_in(&e) < oplog_last_ts(o))
        o->sorted = false;
    (*list)[(*n)++] = e;
    if (of_file)
        o->repeated = o->count;
    o->end++;
}

static void oplog_repeat(struct oplog *o, uint64_t times)
{
    if (!o->count || times < 2)
        return;
    uint64_t first = ts_in(&o->file[0]) >> 32, last = ts_in(&o->file[o->count - 1]) >> 32;
    o->span = (last - first + 1) << 32;
    o->repeated = o->end = o->count * times;
}

static void oplog_rollback(struct oplog *o, uint64_t n)
{
    while (n-- && o->end > o->first) {
        o->end--;
        if (o->nmore)
            o->nmore--;
        else
            o->repeated--;
    }
}

/* ---- documents, in versions ---- */

struct version {
    struct value id;
    uint64_t ts;                /* there from this cluster time on */
    struct cdcd_slice document; /* ptr NULL: deleted */
};

struct collection {
    char *ns;                 /* "db.collection" */
    struct version *versions; /* by _id, then by age */
    size_t n, cap;
    bool loose; /* not in order yet */
};

struct documents {
    struct collection *items;
    size_t n;
    uint64_t oldest; /* the oldest time that can be read at; 0: that of the first entry */
};

static struct collection *documents_get(struct documents *d, struct cdcd_slice ns, bool make)
{
    for (size_t i = 0; i < d->n; i++)
        if (cdcd_slice_eq(cdcd_slice_str(d->items[i].ns), ns))
            return &d->items[i];
    if (!make)
        return NULL;
    d->items = cdcd_xrealloc(d->items, (d->n + 1) * sizeof *d->items);
    d->items[d->n] = (struct collection){.ns = cdcd_xstrndup(ns.ptr, ns.len)};
    return &d->items[d->n++];
}

static int compare_versions(const void *a, const void *b)
{
    const struct version *x = a, *y = b;
    int c = compare_values(x->id, y->id);
    return c ? c : (x->ts > y->ts) - (x->ts < y->ts);
}

static void collection_sort(struct collection *c)
{
    if (c->loose)
        qsort(c->versions, c->n, sizeof *c->versions, compare_versions);
    c->loose = false;
}

/* The first version whose _id is not less. */
static size_t collection_find(const struct collection *c, struct value id)
{
    size_t low = 0, high = c->n;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (compare_values(c->versions[middle].id, id) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* document without bytes: the one of that _id is gone. Takes copies. */
static void collection_add(struct collection *c, struct value id, struct cdcd_slice document,
                           uint64_t ts, bool loose)
{
    struct version v = {.id = {id.type, {cdcd_xstrndup(id.s.ptr, id.s.len), id.s.len}}, .ts = ts};
    if (document.ptr)
        v.document = (struct cdcd_slice){cdcd_xstrndup(document.ptr, document.len), document.len};
    if (c->n == c->cap) {
        c->cap = c->cap ? c->cap * 2 : 16;
        c->versions = cdcd_xrealloc(c->versions, c->cap * sizeof *c->versions);
    }
    size_t at = c->n;
    if (!loose) {
        collection_sort(c);
        at = collection_find(c, id);
        while (at < c->n && compare_values(c->versions[at].id, id) == 0 && c->versions[at].ts <= ts)
            at++;
        memmove(&c->versions[at + 1], &c->versions[at], (c->n - at) * sizeof v);
    }
    c->loose = c->loose || loose;
    c->versions[at] = v;
    c->n++;
}

/* The index behind the versions of the _id at `i`; *out is the one that is seen at that time, NULL
 * when there was none or it was deleted. */
static size_t collection_at(const struct collection *c, size_t i, uint64_t ts,
                            const struct version **out)
{
    size_t k = i;
    *out = NULL;
    for (; k < c->n && compare_values(c->versions[k].id, c->versions[i].id) == 0; k++)
        if (c->versions[k].ts <= ts)
            *out = &c->versions[k];
    if (*out && !(*out)->document.ptr)
        *out = NULL;
    return k;
}

/* ---- files of BSON, one document after another ---- */

/* False: *err says why; documents before the bad one were given. */
static bool file_documents(const char *path, void (*each)(void *ctx, struct cdcd_slice document),
                           void *ctx, char *err, size_t errlen)
{
    FILE *f = fopen(path, "rb");
    struct cdcd_buf b;
    int32_t n;

    if (!f) {
        snprintf(err, errlen, "cannot open %s", path);
        return false;
    }
    cdcd_buf_init(&b, 0);
    bool good = true;
    while (good && fread(&n, 1, 4, f) == 4) {
        cdcd_buf_clear(&b);
        good = n >= 5;
        char *p = good ? cdcd_buf_reserve(&b, (size_t)n) : NULL;
        if (p) {
            memcpy(p, &n, 4);
            good = fread(p + 4, 1, (size_t)n - 4, f) == (size_t)n - 4;
        }
        if (good)
            each(ctx, (struct cdcd_slice){p, (size_t)n});
        else
            snprintf(err, errlen, "%s is no file of BSON documents", path);
    }
    cdcd_buf_free(&b);
    fclose(f);
    return good;
}

#endif
