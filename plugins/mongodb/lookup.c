/*
 * lookup.c: documents by _id, and pre-images. See stream.h.
 *
 * All in one session with causal consistency: libmongoc then says afterClusterTime, and knows the
 * time at which the server looked.
 */
#include "stream_int.h"

#include <stdlib.h>

/* Of the _ids in one query; the server takes commands of up to 48 MB. */
#define QUERY_BYTES (4u << 20)

struct mg_session {
    mongoc_client_session_t *cs; /* NULL: the server has no sessions */
};

void mg_session_free(struct mg_session *x)
{
    if (!x)
        return;
    if (x->cs)
        mongoc_client_session_destroy(x->cs);
    free(x);
}

static struct mg_session *session_of(struct cdcd_source *s)
{
    if (!s->stream)
        return NULL;
    if (!s->stream->session) {
        bson_error_t ignored;
        s->stream->session = cdcd_xcalloc(1, sizeof *s->stream->session);
        s->stream->session->cs = mongoc_client_start_session(s->client, NULL, &ignored);
    }
    return s->stream->session;
}

/* ---- the query ---- */

static void put_int(struct cdcd_buf *b, size_t at, uint32_t n)
{
    for (int i = 0; i < 4; i++)
        b->ptr[at + (size_t)i] = (char)(n >> 8 * i & 0xff);
}

/* {_id: {$in: [...]}} */
static void put_filter(struct cdcd_buf *b, const struct cdcd_cell *ids, size_t n)
{
    cdcd_buf_add(b, "\0\0\0\0\003_id\0\0\0\0\0\004$in\0\0\0\0\0", 22);
    for (size_t i = 0; i < n; i++) {
        char type = (char)ids[i].aux;
        cdcd_buf_add(b, &type, 1);
        cdcd_buf_addf(b, "%zu", i);
        cdcd_buf_add(b, "", 1);
        cdcd_buf_add(b, ids[i].ptr, ids[i].len);
    }
    cdcd_buf_add(b, "\0\0\0", 3);
    put_int(b, 0, (uint32_t)b->len);
    put_int(b, 9, (uint32_t)(b->len - 9 - 1));
    put_int(b, 18, (uint32_t)(b->len - 18 - 2));
}

static void majority(bson_t *opts)
{
    bson_t level;
    BSON_APPEND_DOCUMENT_BEGIN(opts, "readConcern", &level);
    BSON_APPEND_UTF8(&level, "level", "majority");
    bson_append_document_end(opts, &level);
}

/* A cursor over those documents. NULL: err is set. */
static mongoc_cursor_t *find(struct cdcd_source *s, struct mg_session *x, struct cdcd_slice db,
                             struct cdcd_slice collection, const bson_t *filter, size_t n,
                             struct mg_time at_least, struct cdcd_error *err)
{
    bson_error_t e;
    bson_t opts = BSON_INITIALIZER;
    majority(&opts);
    BSON_APPEND_INT64(&opts, "batchSize", (int64_t)n + 1);
    if (x && x->cs) {
        mongoc_client_session_advance_operation_time(x->cs, at_least.t, at_least.i);
        if (!mongoc_client_session_append(x->cs, &opts, &e)) {
            bson_destroy(&opts);
            mg_error(err, &e, NULL, "cannot look up documents of %.*s.%.*s", (int)db.len, db.ptr,
                     (int)collection.len, collection.ptr);
            return NULL;
        }
    }
    char *d = cdcd_xstrndup(db.ptr, db.len), *c = cdcd_xstrndup(collection.ptr, collection.len);
    mongoc_collection_t *coll = mongoc_client_get_collection(s->client, d, c);
    mongoc_cursor_t *cursor = mongoc_collection_find_with_opts(coll, filter, &opts, NULL);
    mongoc_collection_destroy(coll);
    free(d);
    free(c);
    bson_destroy(&opts);
    return cursor;
}

/* ---- which document is whose ---- */

/* Places of the _ids, by hash; the same one may be there several times. */
struct places {
    uint32_t *first, *next; /* number + 1; 0: none */
    size_t mask;
};

static uint64_t hash_id(uint8_t type, const char *p, size_t n)
{
    return mg_hash(type, p, n);
}

static void places_init(struct places *x, const struct cdcd_cell *ids, size_t n)
{
    size_t size = 16;
    while (size < 2 * n)
        size *= 2;
    x->mask = size - 1;
    x->first = cdcd_xcalloc(size + n, sizeof *x->first);
    x->next = x->first + size;
    for (size_t i = 0; i < n; i++) {
        uint32_t *head = &x->first[hash_id((uint8_t)ids[i].aux, ids[i].ptr, ids[i].len) & x->mask];
        x->next[i] = *head;
        *head = (uint32_t)i + 1;
    }
}

/* The one whose _id is that, byte for byte: 1 and 1.0 are the same to the server's index, but not
 * to who reads the keys. */
static void put_document(const struct places *x, const struct cdcd_cell *ids,
                         struct cdcd_slice document, struct cdcd_arena *a, struct cdcd_slice *out)
{
    struct cdcd_bson_element id;
    struct cdcd_slice copy = {NULL, 0};
    if (!cdcd_bson_find(document, "_id", &id))
        return;
    uint32_t i = x->first[hash_id(id.type, id.value.ptr, id.value.len) & x->mask];
    for (; i; i = x->next[i - 1]) {
        const struct cdcd_cell *c = &ids[i - 1];
        if (c->aux != id.type || !cdcd_slice_eq((struct cdcd_slice){c->ptr, c->len}, id.value))
            continue;
        if (!copy.ptr)
            copy = (struct cdcd_slice){cdcd_arena_dup(a, document.ptr, document.len), document.len};
        out[i - 1] = copy;
    }
}

/* ---- lookups ---- */

static enum cdcd_rc read_all(mongoc_cursor_t *cursor, const struct cdcd_cell *ids, size_t n,
                             struct cdcd_arena *a, struct cdcd_slice *out, struct cdcd_slice db,
                             struct cdcd_slice collection, struct cdcd_error *err)
{
    const bson_t *doc, *reply = NULL;
    bson_error_t e;
    struct places x;
    places_init(&x, ids, n);
    while (mongoc_cursor_next(cursor, &doc))
        put_document(&x, ids, mg_slice(doc), a, out);
    free(x.first);
    if (!mongoc_cursor_error_document(cursor, &e, &reply))
        return CDCD_OK;
    return mg_error(err, &e, reply, "cannot look up documents of %.*s.%.*s", (int)db.len, db.ptr,
                    (int)collection.len, collection.ptr);
}

static enum cdcd_rc seen_at(struct cdcd_source *s, struct mg_session *x, struct mg_time at_least,
                            struct mg_time *seen, struct cdcd_error *err)
{
    *seen = (struct mg_time){0, 0};
    if (x && x->cs)
        mongoc_client_session_get_operation_time(x->cs, &seen->t, &seen->i);
    if (seen->t == 0 && mg_cluster_time(s->client, seen, err) != CDCD_OK)
        return CDCD_ERROR;
    if (mg_time_cmp(*seen, at_least) < 0)
        *seen = at_least;
    return CDCD_OK;
}

static enum cdcd_rc query(struct cdcd_source *s, struct cdcd_slice db, struct cdcd_slice collection,
                          const struct cdcd_cell *ids, size_t n, struct mg_time at_least,
                          struct cdcd_arena *a, struct cdcd_slice *out, struct mg_time *seen,
                          struct cdcd_error *err)
{
    struct mg_session *x = session_of(s);
    struct cdcd_buf text;
    bson_t filter;
    enum cdcd_rc rc = CDCD_ERROR;
    cdcd_buf_init(&text, 0);
    put_filter(&text, ids, n);
    bson_init_static(&filter, (const uint8_t *)text.ptr, text.len);
    mongoc_cursor_t *cursor = find(s, x, db, collection, &filter, n, at_least, err);
    if (cursor) {
        rc = read_all(cursor, ids, n, a, out, db, collection, err);
        mongoc_cursor_destroy(cursor);
    }
    cdcd_buf_free(&text);
    return rc == CDCD_OK ? seen_at(s, x, at_least, seen, err) : rc;
}

enum cdcd_rc mg_lookup_many(struct cdcd_source *s, struct cdcd_slice db,
                            struct cdcd_slice collection, const struct cdcd_cell *ids, size_t n,
                            struct mg_time at_least, struct cdcd_arena *a, struct cdcd_slice *out,
                            struct mg_time *seen, struct cdcd_error *err)
{
    *seen = at_least;
    memset(out, 0, n * sizeof *out);
    for (size_t i = 0, k; i < n; i = k) {
        struct mg_time at;
        size_t bytes = 0;
        for (k = i; k < n && (k == i || bytes + ids[k].len <= QUERY_BYTES); k++)
            bytes += ids[k].len;
        if (query(s, db, collection, &ids[i], k - i, at_least, a, &out[i], &at, err) != CDCD_OK)
            return CDCD_ERROR;
        if (mg_time_cmp(at, *seen) > 0)
            *seen = at;
    }
    return CDCD_OK;
}

enum cdcd_rc mg_lookup(struct cdcd_source *s, struct cdcd_slice db, struct cdcd_slice collection,
                       const struct cdcd_cell *id, struct mg_time at_least, struct cdcd_arena *a,
                       struct cdcd_slice *document, struct cdcd_error *err)
{
    struct mg_time seen;
    return mg_lookup_many(s, db, collection, id, 1, at_least, a, document, &seen, err);
}

/* ---- pre-images ---- */

enum cdcd_rc mg_pre_image(struct cdcd_source *s, struct cdcd_slice uuid, struct mg_time ts,
                          uint32_t apply_ops_index, struct cdcd_arena *a,
                          struct cdcd_slice *document, struct cdcd_error *err)
{
    static const struct cdcd_slice db = {"config", 6}, collection = {"system.preimages", 16};
    bson_t filter = BSON_INITIALIZER, id;
    *document = (struct cdcd_slice){NULL, 0};
    if (uuid.len != 16)
        return CDCD_OK;
    BSON_APPEND_DOCUMENT_BEGIN(&filter, "_id", &id);
    BSON_APPEND_BINARY(&id, "nsUUID", BSON_SUBTYPE_UUID, (const uint8_t *)uuid.ptr, 16);
    BSON_APPEND_TIMESTAMP(&id, "ts", ts.t, ts.i);
    BSON_APPEND_INT64(&id, "applyOpsIndex", apply_ops_index);
    bson_append_document_end(&filter, &id);
    mongoc_cursor_t *cursor = find(s, session_of(s), db, collection, &filter, 1, ts, err);
    bson_destroy(&filter);
    if (!cursor)
        return CDCD_ERROR;
    const bson_t *doc, *reply = NULL;
    bson_error_t e;
    struct cdcd_bson_element image;
    if (mongoc_cursor_next(cursor, &doc) && cdcd_bson_find(mg_slice(doc), "preImage", &image) &&
        image.type == CDCD_BSON_DOCUMENT)
        *document = (struct cdcd_slice){cdcd_arena_dup(a, image.value.ptr, image.value.len),
                                        image.value.len};
    enum cdcd_rc rc = CDCD_OK;
    if (mongoc_cursor_error_document(cursor, &e, &reply))
        rc = mg_error(err, &e, reply, "cannot read pre-images (config.system.preimages)");
    mongoc_cursor_destroy(cursor);
    return rc;
}
