/*
 * change.c: collections by name, and one change -> its event. See stream.h.
 */
#include "stream_int.h"

#include <stdlib.h>

/* ---- collections by name ---- */

struct mg_schemas {
    struct mg_name **buckets;
    size_t nbuckets, n; /* a power of two */
    struct mg_name *last;
};

uint64_t mg_hash(uint64_t seed, const void *p, size_t n)
{
    const uint8_t *s = p;
    uint64_t h = seed ^ UINT64_C(0xcbf29ce484222325);
    for (; n >= 8; s += 8, n -= 8) {
        uint64_t x;
        memcpy(&x, s, 8);
        h = (h ^ x) * UINT64_C(0x9fb21c651e98df25);
        h ^= h >> 32;
    }
    for (; n; s++, n--)
        h = (h ^ *s) * UINT64_C(0x100000001b3);
    h ^= h >> 29;
    return h * UINT64_C(0x9fb21c651e98df25) >> 1;
}

struct mg_schemas *mg_schemas_new(void)
{
    struct mg_schemas *c = cdcd_xcalloc(1, sizeof *c);
    c->nbuckets = 64;
    c->buckets = cdcd_xcalloc(c->nbuckets, sizeof *c->buckets);
    return c;
}

void mg_schemas_free(struct mg_schemas *c)
{
    if (!c)
        return;
    for (size_t i = 0; i < c->nbuckets; i++) {
        for (struct mg_name *n = c->buckets[i], *next; n; n = next) {
            next = n->next;
            cdcd_schema_unref(n->schema);
            free((char *)n->db.ptr);
            free((char *)n->collection.ptr);
            free((char *)n->label.ptr);
            free(n);
        }
    }
    free(c->buckets);
    free(c);
}

static void grow(struct mg_schemas *c)
{
    size_t nbuckets = 2 * c->nbuckets;
    struct mg_name **buckets = cdcd_xcalloc(nbuckets, sizeof(struct mg_name *));
    for (size_t i = 0; i < c->nbuckets; i++) {
        for (struct mg_name *n = c->buckets[i], *next; n; n = next) {
            next = n->next;
            n->next = buckets[n->hash & (nbuckets - 1)];
            buckets[n->hash & (nbuckets - 1)] = n;
        }
    }
    free(c->buckets);
    c->buckets = buckets;
    c->nbuckets = nbuckets;
}

static struct mg_name *add(struct mg_schemas *c, uint64_t hash, struct cdcd_slice db,
                           struct cdcd_slice collection)
{
    if (c->n == c->nbuckets)
        grow(c);
    struct mg_name *n = cdcd_xcalloc(1, sizeof *n);
    n->hash = hash;
    n->db = (struct cdcd_slice){cdcd_xstrndup(db.ptr, db.len), db.len};
    n->collection = (struct cdcd_slice){cdcd_xstrndup(collection.ptr, collection.len),
                                        collection.len};
    n->label = cdcd_slice_str(cdcd_xasprintf("%s.%s", n->db.ptr, n->collection.ptr));
    n->next = c->buckets[hash & (c->nbuckets - 1)];
    c->buckets[hash & (c->nbuckets - 1)] = n;
    c->n++;
    return n;
}

struct mg_name *mg_schemas_name(struct mg_schemas *c, struct cdcd_slice db,
                                struct cdcd_slice collection)
{
    struct mg_name *n = c->last;
    if (n && cdcd_slice_eq(n->collection, collection) && cdcd_slice_eq(n->db, db))
        return n;
    uint64_t hash = mg_hash(mg_hash(0, db.ptr, db.len), collection.ptr, collection.len);
    n = c->buckets[hash & (c->nbuckets - 1)];
    while (n && !(n->hash == hash && cdcd_slice_eq(n->collection, collection) &&
                  cdcd_slice_eq(n->db, db)))
        n = n->next;
    if (!n)
        n = add(c, hash, db, collection);
    c->last = n;
    return n;
}

struct cdcd_schema *mg_name_schema(struct mg_name *n)
{
    if (!n->schema)
        n->schema = cdcd_schema_document(n->db.ptr, n->collection.ptr);
    return n->schema;
}

struct cdcd_schema *mg_schemas_get(struct mg_schemas *c, struct cdcd_slice db,
                                   struct cdcd_slice collection)
{
    return mg_name_schema(mg_schemas_name(c, db, collection));
}

/* ---- events ---- */

static struct cdcd_slice dup_slice(struct cdcd_batch *b, struct cdcd_slice s)
{
    if (s.ptr)
        s.ptr = cdcd_arena_dup(&b->arena, s.ptr, s.len);
    return s;
}

const struct cdcd_cell *mg_source_cells(struct cdcd_batch *b, const char *collection, int32_t ord,
                                        const char *lsid, size_t lsid_len, int64_t txn_number,
                                        int64_t wall_ms)
{
    static const struct cdcd_cell null_cell = {.kind = CDCD_C_NULL};
    struct cdcd_cell *c = cdcd_batch_cells(b, MG_SRC_COUNT);
    c[MG_SRC_COLLECTION] = collection ? cdcd_cell_text(collection, strlen(collection)) : null_cell;
    c[MG_SRC_ORD] = cdcd_cell_int(ord);
    c[MG_SRC_LSID] = lsid ? cdcd_cell_text(lsid, lsid_len) : null_cell;
    c[MG_SRC_TXN_NUMBER] = lsid ? cdcd_cell_int(txn_number) : null_cell;
    c[MG_SRC_WALL_TIME] = wall_ms != INT64_MIN ? cdcd_cell_int(wall_ms) : null_cell;
    return c;
}

static const struct cdcd_cell *source_of(struct cdcd_batch *b, const struct mg_change *c,
                                         const char *collection)
{
    return mg_source_cells(b, collection, (int32_t)c->ts.i, c->lsid_json.ptr, c->lsid_json.len,
                           c->txn_number, c->wall_ms);
}

static int64_t time_of(const struct mg_change *c)
{
    return c->wall_ms != INT64_MIN ? c->wall_ms * 1000 : (int64_t)c->ts.t * 1000000;
}

static const struct cdcd_cell *image(struct cdcd_batch *b, struct cdcd_cell id,
                                     struct cdcd_slice document)
{
    struct cdcd_cell *c = cdcd_batch_cells(b, CDCD_DOC_COLUMNS);
    c[CDCD_DOC_ID] = id;
    c[CDCD_DOC_DOCUMENT] =
        document.ptr
            ? cdcd_cell_bson(CDCD_BSON_DOCUMENT,
                             cdcd_arena_dup(&b->arena, document.ptr, document.len), document.len)
            : (struct cdcd_cell){.kind = CDCD_C_NULL};
    return c;
}

struct cdcd_event *mg_change_event(struct cdcd_batch *b, const struct mg_change *c,
                                   struct cdcd_schema *schema)
{
    struct cdcd_event *e = cdcd_batch_event(b, c->op, schema);
    struct cdcd_cell id = c->id;
    id.ptr = cdcd_arena_dup(&b->arena, id.ptr, id.len);
    if (c->op != CDCD_OP_DELETE)
        e->after = image(b, id, c->after);
    if (c->op == CDCD_OP_DELETE || c->before.ptr)
        e->before = image(b, id, c->before);
    e->update = c->op == CDCD_OP_UPDATE ? c->update : NULL;
    e->after_lookup = c->after_lookup && c->after.ptr;
    e->source = source_of(b, c, schema->table);
    e->ts_us = time_of(c);
    return e;
}

static struct cdcd_slice command_text(struct cdcd_batch *b, struct cdcd_slice o)
{
    static const struct cdcd_bson_style style = {.form = CDCD_BSON_RELAXED};
    const char *why;
    struct cdcd_writer w;
    cdcd_writer_begin(&w, &b->arena);
    if (o.ptr && cdcd_bson_json(&w, o, &style, &why))
        return cdcd_writer_end(&w);
    cdcd_writer_end(&w);
    return (struct cdcd_slice){"{}", 2};
}

struct cdcd_event *mg_ddl_event(struct cdcd_batch *b, const struct mg_change *c)
{
    struct cdcd_ddl *ddl = cdcd_arena_alloc(&b->arena, sizeof *ddl);
    *ddl = (struct cdcd_ddl){
        .db = dup_slice(b, c->db),
        .table = dup_slice(b, c->collection),
        .text = command_text(b, c->command.o),
    };
    struct cdcd_event *e = cdcd_batch_event(b, CDCD_OP_DDL, NULL);
    e->ddl = ddl;
    /* The column is not optional: a whole database has no collection. */
    e->source = source_of(b, c, ddl->table.ptr ? ddl->table.ptr : "");
    e->ts_us = time_of(c);
    return e;
}
