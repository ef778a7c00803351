/*
 * snapshot_catalog.c: which collections a snapshot has, how large they are, and whether a name
 * still stands for the collection that it stood for.
 */
#include "snapshot_int.h"

#include <stdlib.h>

/* ---- commands whose reply is a cursor ---- */

/* Reads the whole of it: lists of collections may take several replies. */
typedef enum cdcd_rc each_fn(void *ctx, const bson_t *document, struct cdcd_error *err);

static enum cdcd_rc each_of(mongoc_client_t *c, const char *db, const bson_t *command,
                            const char *what, each_fn *fn, void *ctx, int *code,
                            struct cdcd_error *err)
{
    struct mg_find f = {0};
    const bson_t *doc;
    enum cdcd_rc rc = mg_find_open(&f, c, db, command, code, err);
    while (rc == CDCD_OK && (rc = mg_find_next(&f, what, &doc, code, err)) == CDCD_OK)
        rc = fn(ctx, doc, err);
    mg_find_close(&f);
    return rc == CDCD_END ? CDCD_OK : rc;
}

static struct cdcd_slice text_of(const bson_t *doc, const char *path)
{
    bson_iter_t it, at;
    uint32_t len = 0;
    if (!bson_iter_init(&it, doc) || !bson_iter_find_descendant(&it, path, &at) ||
        !BSON_ITER_HOLDS_UTF8(&at))
        return (struct cdcd_slice){"", 0};
    const char *p = bson_iter_utf8(&at, &len);
    return (struct cdcd_slice){p, len};
}

static bool true_at(const bson_t *doc, const char *path)
{
    bson_iter_t it, at;
    return bson_iter_init(&it, doc) && bson_iter_find_descendant(&it, path, &at) &&
           bson_iter_as_bool(&at);
}

static int64_t number_at(const bson_t *doc, const char *path, int64_t none)
{
    bson_iter_t it, at;
    if (!bson_iter_init(&it, doc) || !bson_iter_find_descendant(&it, path, &at) ||
        !BSON_ITER_HOLDS_NUMBER(&at))
        return none;
    return bson_iter_as_int64(&at);
}

/* info.uuid; false where the server gives none. */
static bool uuid_of(const bson_t *doc, uint8_t *out)
{
    bson_iter_t it, at;
    bson_subtype_t subtype;
    const uint8_t *p;
    uint32_t len;
    if (!bson_iter_init(&it, doc) || !bson_iter_find_descendant(&it, "info.uuid", &at) ||
        !BSON_ITER_HOLDS_BINARY(&at))
        return false;
    bson_iter_binary(&at, &subtype, &len, &p);
    if (len != 16)
        return false;
    memcpy(out, p, 16);
    return true;
}

/* ---- databases ---- */

static int by_name(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* Of a user who may not list all of them the server lists those that the user may read. */
static enum cdcd_rc list_databases(struct cdcd_source *s, struct cdcd_arena *a, char ***out,
                                   size_t *n, struct cdcd_error *err)
{
    bson_t command, reply;
    bson_init(&command);
    BSON_APPEND_INT32(&command, "listDatabases", 1);
    BSON_APPEND_BOOL(&command, "nameOnly", true);
    enum cdcd_rc rc = mg_command(s->client, "admin", &command, &reply, err);
    size_t cap = 0;
    *out = NULL;
    *n = 0;
    bson_iter_t it, list;
    if (rc == CDCD_OK && bson_iter_init_find(&it, &reply, "databases") &&
        bson_iter_recurse(&it, &list)) {
        while (bson_iter_next(&list)) {
            bson_iter_t name;
            if (!bson_iter_recurse(&list, &name) || !bson_iter_find(&name, "name") ||
                !BSON_ITER_HOLDS_UTF8(&name))
                continue;
            uint32_t len;
            const char *p = bson_iter_utf8(&name, &len);
            if (!mg_filter_database(s->filter, (struct cdcd_slice){p, len}))
                continue;
            if (*n == cap) {
                cap = cap ? cap * 2 : 16;
                *out = cdcd_xrealloc(*out, cap * sizeof **out);
            }
            (*out)[(*n)++] = cdcd_arena_dup(a, p, len);
        }
    }
    if (*n)
        qsort(*out, *n, sizeof **out, by_name);
    bson_destroy(&command);
    bson_destroy(&reply);
    return rc == CDCD_OK ? CDCD_OK : cdcd_error_context(err, "listing the databases");
}

/* ---- collections ---- */

struct reading {
    struct cdcd_source *s;
    struct cdcd_arena *a;
    struct mg_snap_list *list;
    const char *db;
};

/* What the position of a chunk means depends on: the collection and the order of its _id index. */
static const char *identity_of(const struct mg_snap_table *t, const bson_t *doc,
                               struct cdcd_arena *a)
{
    static const char hex[] = "0123456789abcdef";
    if (t->has_uuid) {
        char text[33];
        for (size_t i = 0; i < 16; i++) {
            text[2 * i] = hex[t->uuid[i] >> 4];
            text[2 * i + 1] = hex[t->uuid[i] & 15];
        }
        return cdcd_arena_dup(a, text, 32);
    }
    struct cdcd_slice locale = text_of(doc, "options.collation.locale");
    return cdcd_arena_dup(a, locale.ptr, locale.len);
}

/* Its buckets bear the option, too, and are a collection. */
static bool is_series(const bson_t *doc, struct cdcd_slice name, struct cdcd_slice type)
{
    static const char buckets[] = "system.buckets.";
    bson_iter_t it, at;
    if (cdcd_slice_eq(type, cdcd_slice_str("timeseries")))
        return true;
    return (name.len < sizeof buckets || memcmp(name.ptr, buckets, sizeof buckets - 1) != 0) &&
           bson_iter_init(&it, doc) && bson_iter_find_descendant(&it, "options.timeseries", &at);
}

static enum cdcd_rc add_collection(void *ctx, const bson_t *doc, struct cdcd_error *err)
{
    struct reading *r = ctx;
    struct cdcd_slice name = text_of(doc, "name"), type = text_of(doc, "type");
    struct cdcd_slice db = cdcd_slice_str(r->db);
    (void)err;
    if (!name.len || !mg_filter_collection(r->s->filter, db, name))
        return CDCD_OK;
    if (cdcd_slice_eq(type, cdcd_slice_str("view")))
        return CDCD_OK; /* documents of its own it has none */
    if (is_series(doc, name, type)) {
        cdcd_warn("mongodb",
                  "%s.%.*s is a time series and is not captured: its log has buckets of "
                  "measurements, no documents. To capture these as they are, include "
                  "%s.system.buckets.%.*s",
                  r->db, (int)name.len, name.ptr, r->db, (int)name.len, name.ptr);
        return CDCD_OK;
    }
    struct mg_snap_list *l = r->list;
    if (l->n == l->cap) {
        l->cap = l->cap ? l->cap * 2 : 32;
        l->items = cdcd_xrealloc(l->items, l->cap * sizeof *l->items);
    }
    struct mg_snap_table *t = &l->items[l->n++];
    *t = (struct mg_snap_table){.db = r->db,
                                .collection = cdcd_arena_dup(r->a, name.ptr, name.len),
                                .capped = true_at(doc, "options.capped"),
                                .rows = -1,
                                .bytes = -1};
    char *label = cdcd_xasprintf("%s.%s", t->db, t->collection);
    t->label = cdcd_arena_dup(r->a, label, strlen(label));
    free(label);
    t->has_uuid = uuid_of(doc, t->uuid);
    t->identity = identity_of(t, doc, r->a);
    t->fields = mg_filter_fields(r->s->filter, db, name);
    t->schema = cdcd_schema_document(t->db, t->collection);
    return CDCD_OK;
}

static void begin_list(bson_t *command, const char *name)
{
    bson_t filter;
    bson_init(command);
    BSON_APPEND_INT32(command, "listCollections", 1);
    if (name) {
        BSON_APPEND_DOCUMENT_BEGIN(command, "filter", &filter);
        BSON_APPEND_UTF8(&filter, "name", name);
        bson_append_document_end(command, &filter);
    }
    BSON_APPEND_DOCUMENT_BEGIN(command, "cursor", &filter);
    bson_append_document_end(command, &filter);
}

/* ---- estimates ---- */

struct size {
    int64_t rows, bytes;
};

/* One document a shard. */
static enum cdcd_rc add_size(void *ctx, const bson_t *doc, struct cdcd_error *err)
{
    struct size *z = ctx;
    (void)err;
    z->rows += number_at(doc, "storageStats.count", 0);
    z->bytes += number_at(doc, "storageStats.size", 0);
    return CDCD_OK;
}

/* Estimates are for progress and for the size of chunks: without them it works as well. */
static void estimate(mongoc_client_t *c, struct mg_snap_table *t)
{
    bson_t command, stages, stage, stats, storage, cursor;
    struct size z = {0};
    struct cdcd_error ignored;
    int code = 0;
    bson_init(&command);
    BSON_APPEND_UTF8(&command, "aggregate", t->collection);
    mg_array_begin(&command, "pipeline", &stages);
    BSON_APPEND_DOCUMENT_BEGIN(&stages, "0", &stage);
    BSON_APPEND_DOCUMENT_BEGIN(&stage, "$collStats", &stats);
    BSON_APPEND_DOCUMENT_BEGIN(&stats, "storageStats", &storage);
    bson_append_document_end(&stats, &storage);
    bson_append_document_end(&stage, &stats);
    bson_append_document_end(&stages, &stage);
    bson_append_array_end(&command, &stages);
    BSON_APPEND_DOCUMENT_BEGIN(&command, "cursor", &cursor);
    bson_append_document_end(&command, &cursor);
    if (each_of(c, t->db, &command, t->label, add_size, &z, &code, &ignored) == CDCD_OK) {
        t->rows = z.rows;
        t->bytes = z.rows > 0 && z.bytes > 0 ? z.bytes / z.rows : -1;
    }
    bson_destroy(&command);
    if (t->rows >= 0)
        return;
    bson_t reply;
    bson_init(&command);
    BSON_APPEND_UTF8(&command, "count", t->collection);
    if (mg_command(c, t->db, &command, &reply, &ignored) == CDCD_OK)
        t->rows = number_at(&reply, "n", -1);
    bson_destroy(&command);
    bson_destroy(&reply);
}

/* ---- all of them ---- */

static int by_label(const void *a, const void *b)
{
    return strcmp(((const struct mg_snap_table *)a)->label,
                  ((const struct mg_snap_table *)b)->label);
}

enum cdcd_rc mg_snap_list_read(struct cdcd_source *s, struct cdcd_arena *a,
                               struct mg_snap_list *out, struct cdcd_error *err)
{
    char **dbs;
    size_t n;
    enum cdcd_rc rc = list_databases(s, a, &dbs, &n, err);
    for (size_t i = 0; rc == CDCD_OK && i < n; i++) {
        struct reading r = {s, a, out, dbs[i]};
        bson_t command;
        int code = 0;
        begin_list(&command, NULL);
        rc = each_of(s->client, dbs[i], &command, dbs[i], add_collection, &r, &code, err);
        if (rc != CDCD_OK)
            rc = cdcd_error_context(err, "listing the collections of %s", dbs[i]);
        bson_destroy(&command);
    }
    free(dbs);
    if (out->n)
        qsort(out->items, out->n, sizeof *out->items, by_label);
    for (size_t i = 0; rc == CDCD_OK && i < out->n; i++)
        estimate(s->client, &out->items[i]);
    return rc;
}

void mg_snap_list_free(struct mg_snap_list *l)
{
    for (size_t i = 0; i < l->n; i++)
        cdcd_schema_unref(l->items[i].schema);
    free(l->items);
    *l = (struct mg_snap_list){0};
}

/* ---- the same collection still ---- */

struct compared {
    const struct mg_snap_table *t;
    bool found, same;
};

static enum cdcd_rc compare(void *ctx, const bson_t *doc, struct cdcd_error *err)
{
    struct compared *x = ctx;
    uint8_t uuid[16];
    (void)err;
    if (!cdcd_slice_eq(text_of(doc, "name"), cdcd_slice_str(x->t->collection)))
        return CDCD_OK;
    x->found = true;
    x->same = x->t->has_uuid ? uuid_of(doc, uuid) && memcmp(uuid, x->t->uuid, 16) == 0
                             : !cdcd_slice_eq(text_of(doc, "type"), cdcd_slice_str("view"));
    return CDCD_OK;
}

enum cdcd_rc mg_snap_same(mongoc_client_t *c, const struct mg_snap_table *t, bool *same,
                          struct cdcd_error *err)
{
    struct compared x = {.t = t};
    bson_t command;
    int code = 0;
    begin_list(&command, t->collection);
    enum cdcd_rc rc = each_of(c, t->db, &command, t->label, compare, &x, &code, err);
    bson_destroy(&command);
    *same = x.found && x.same;
    return rc;
}

enum cdcd_rc mg_snap_moved(const struct mg_snap_table *t, struct cdcd_error *err)
{
    return cdcd_error_set(err, CDCD_ERR_RETRY,
                          "%s was dropped, renamed or replaced while it was read: the snapshot "
                          "goes on under a new view, with the collections that are there then",
                          t->label);
}
