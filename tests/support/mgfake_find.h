/* mgfake_find.h: find, getMore, aggregate and count of the fake server. Part of mgfake.c. */
#ifndef MGFAKE_FIND_H
#define MGFAKE_FIND_H

#include "mgfake_server.h"

enum {
    BAD_VALUE = 2,
    CURSOR_NOT_FOUND = 43,
    INVALID_OPTIONS = 72,
    NOT_SUPPORTED = 115,
    CAPPED_POSITION_LOST = 136,
    SNAPSHOT_TOO_OLD = 239,
};

#define FAIL(r, code, ...) (snprintf((r)->message, sizeof(r)->message, __VA_ARGS__), (code))

static bool is_oplog(const char *ns)
{
    return strcmp(ns, "local.oplog.rs") == 0;
}

/* ---- the oplog ---- */

struct range {
    uint64_t from, until; /* ts, both inclusive */
};

static int narrow(struct request *r, struct range *x, const char *op, size_t len, struct value v)
{
    uint64_t ts;
    if (!time_of(v, &ts))
        return FAIL(r, BAD_VALUE, "mgfake compares ts with timestamps only");
    if (len == 4 && memcmp(op, "$gte", 4) == 0)
        x->from = ts > x->from ? ts : x->from;
    else if (len == 3 && memcmp(op, "$gt", 3) == 0)
        x->from = ts + 1 > x->from ? ts + 1 : x->from;
    else if (len == 4 && memcmp(op, "$lte", 4) == 0)
        x->until = ts < x->until ? ts : x->until;
    else if (len == 3 && memcmp(op, "$lt", 3) == 0)
        x->until = ts - 1 < x->until ? ts - 1 : x->until;
    else if (len == 3 && memcmp(op, "$eq", 3) == 0)
        x->from = x->until = ts;
    else
        return FAIL(r, BAD_VALUE, "mgfake knows no %.*s of ts", (int)len, op);
    return 0;
}

/* What the filter says of ts. Other conditions are refused: leaving one out would be a lie. */
static int oplog_range(struct request *r, struct cdcd_slice filter, struct range *out)
{
    struct cdcd_bson_iter it, ops;
    struct cdcd_bson_element e, op;
    int code = 0;

    *out = (struct range){0, UINT64_MAX};
    if (!filter.ptr || !cdcd_bson_iter_init(&it, filter))
        return 0;
    while (!code && cdcd_bson_iter_next(&it, &e) > 0) {
        if (!cdcd_slice_eq(e.name, cdcd_slice_str("ts")))
            return FAIL(r, BAD_VALUE, "mgfake filters the oplog by ts only, not by %.*s",
                        (int)e.name.len, e.name.ptr);
        if (e.type == CDCD_BSON_TIMESTAMP) {
            code = narrow(r, out, "$eq", 3, (struct value){e.type, e.value});
            continue;
        }
        if (e.type != CDCD_BSON_DOCUMENT || !cdcd_bson_iter_init(&ops, e.value))
            return FAIL(r, BAD_VALUE, "mgfake wants a timestamp or operators for ts");
        while (!code && cdcd_bson_iter_next(&ops, &op) > 0)
            code = narrow(r, out, op.name.ptr, op.name.len, (struct value){op.type, op.value});
    }
    return code;
}

static void put_entry(struct cdcd_buf *b, const char *name, uint64_t number)
{
    uint64_t ts;
    const struct entry *e = oplog_entry(&server.oplog, number, &ts);
    put_name(b, CDCD_BSON_DOCUMENT, name);
    size_t at = b->len;
    cdcd_buf_add(b, e->bytes, e->len);
    if (b->len > at)
        memcpy(b->ptr + at + e->ts_at, &ts, sizeof ts);
}

/* The entries that are there, as far as they go into one batch. */
static void batch_of_entries(struct cdcd_buf *b, struct cursor *c, int64_t most)
{
    const struct oplog *o = &server.oplog;
    size_t begin = b->len, n = 0;
    char name[24];

    while (c->next < o->end && c->left != 0 && (most < 0 || (int64_t)n < most)) {
        uint64_t ts;
        const struct entry *e = oplog_entry(o, c->next, &ts);
        if (ts > c->until || (n && b->len - begin + e->len > REPLY_BYTES))
            break;
        put_index(name, sizeof name, n++);
        put_entry(b, name, c->next);
        c->last = c->next++;
        c->left -= c->left > 0;
    }
    server.sent += (int64_t)n;
}

static bool entries_left(const struct cursor *c)
{
    if (c->left == 0)
        return false;
    if (c->tailable)
        return true;
    return c->next < server.oplog.end && oplog_ts(&server.oplog, c->next) <= c->until;
}

/* Newest first: copied, as it is for a few only. */
static void oplog_newest(struct cursor *c, const struct range *x)
{
    const struct oplog *o = &server.oplog;
    struct cdcd_buf b;
    char name[24];

    c->oplog = false;
    for (uint64_t k = o->end; k-- > o->first && c->left != 0;) {
        uint64_t ts = oplog_ts(o, k);
        if (ts < x->from || ts > x->until)
            continue;
        cdcd_buf_init(&b, 0); /* lives as long as the process, as all documents do */
        put_index(name, sizeof name, 0);
        put_entry(&b, name, k);
        size_t head = 1 + strlen(name) + 1;
        c->list = cdcd_xrealloc(c->list, (c->n + 1) * sizeof *c->list);
        c->list[c->n++] = (struct cdcd_slice){b.ptr + head, b.len - head};
        c->left -= c->left > 0;
    }
    c->left = -1;
}

static int find_entries(struct request *r, struct cursor *c)
{
    struct cdcd_slice sort = get_document(r->body, "sort");
    struct range x;
    int code = oplog_range(r, get_document(r->body, "filter"), &x);

    if (code)
        return code;
    c->oplog = true;
    c->tailable = get_flag(r->body, "tailable");
    c->await = get_flag(r->body, "awaitData");
    c->until = x.until;
    if (get_number(sort, "$natural", 1) < 0 || get_number(sort, "ts", 1) < 0) {
        oplog_newest(c, &x);
        return 0;
    }
    c->next = c->last = oplog_find(&server.oplog, server.oplog.first, x.from);
    if (c->tailable && server.oplog.end == server.oplog.first)
        c->tailable = false; /* a cursor of an empty collection is dead at once */
    return 0;
}

/* ---- documents ---- */

struct wanted {
    struct value eq, ge, gt, le, lt; /* of _id */
    struct cdcd_slice in;
    uint64_t at;
};

static int wanted_parse(struct request *r, struct wanted *w)
{
    struct cdcd_slice filter = get_document(r->body, "filter");
    struct cdcd_bson_iter it;
    struct cdcd_bson_element e;

    if (filter.ptr && cdcd_bson_iter_init(&it, filter))
        while (cdcd_bson_iter_next(&it, &e) > 0) {
            struct value v = {e.type, e.value};
            if (!cdcd_slice_eq(e.name, cdcd_slice_str("_id")))
                return FAIL(r, BAD_VALUE, "mgfake filters documents by _id only, not by %.*s",
                            (int)e.name.len, e.name.ptr);
            w->in = e.type == CDCD_BSON_DOCUMENT ? get_document(e.value, "$in") : w->in;
            w->ge = e.type == CDCD_BSON_DOCUMENT ? get(e.value, "$gte") : w->ge;
            w->gt = e.type == CDCD_BSON_DOCUMENT ? get(e.value, "$gt") : w->gt;
            w->le = e.type == CDCD_BSON_DOCUMENT ? get(e.value, "$lte") : w->le;
            w->lt = e.type == CDCD_BSON_DOCUMENT ? get(e.value, "$lt") : w->lt;
            struct value eq = e.type == CDCD_BSON_DOCUMENT ? get(e.value, "$eq") : v;
            if (!w->in.ptr && !w->ge.type && !w->gt.type && !w->le.type && !w->lt.type)
                w->eq = eq.type ? eq : v;
        }
    return 0;
}

static bool comparable(struct value a, struct value b)
{
    return class_of(a.type) == class_of(b.type);
}

static bool wants(const struct wanted *w, struct value id)
{
    struct cdcd_bson_iter it;
    struct cdcd_bson_element e;

    if (w->eq.type && compare_values(id, w->eq) != 0)
        return false;
    if ((w->ge.type && !(comparable(id, w->ge) && compare_values(id, w->ge) >= 0)) ||
        (w->gt.type && !(comparable(id, w->gt) && compare_values(id, w->gt) > 0)) ||
        (w->le.type && !(comparable(id, w->le) && compare_values(id, w->le) <= 0)) ||
        (w->lt.type && !(comparable(id, w->lt) && compare_values(id, w->lt) < 0)))
        return false;
    if (!w->in.ptr)
        return true;
    for (cdcd_bson_iter_init(&it, w->in); cdcd_bson_iter_next(&it, &e) > 0;)
        if (compare_values(id, (struct value){e.type, e.value}) == 0)
            return true;
    return false;
}

/* The time that documents are to be seen at. */
static int seen_at(struct request *r, struct cursor *c, uint64_t *at)
{
    struct cdcd_slice concern = get_document(r->body, "readConcern");
    const struct oplog *o = &server.oplog;
    uint64_t oldest = server.documents.oldest;

    *at = UINT64_MAX;
    if (!concern.ptr || !is_text(get(concern, "level"), "snapshot"))
        return 0;
    if (server.max_wire < 13)
        return FAIL(r, INVALID_OPTIONS, "read concern snapshot is for transactions only");
    if (!oldest && o->end > o->first)
        oldest = oplog_ts(o, o->first);
    if (!time_of(get(concern, "atClusterTime"), at))
        *at = oplog_last_ts(o);
    if (*at < oldest)
        return FAIL(
            r, SNAPSHOT_TOO_OLD,
            "Read timestamp Timestamp(%u, %u) is older than the oldest available timestamp.",
            (unsigned)(*at >> 32), (unsigned)*at);
    c->seen_at = *at;
    return 0;
}

static struct cdcd_slice only_id(const struct version *v)
{
    struct cdcd_buf b;
    cdcd_buf_init(&b, 0);
    size_t at = put_document(&b, NULL);
    put_value(&b, "_id", v->id.type, v->id.s);
    put_close(&b, at);
    return cdcd_buf_slice(&b);
}

static bool is_projection_of_id(struct cdcd_slice projection)
{
    struct cdcd_bson_iter it;
    struct cdcd_bson_element e, more;
    return projection.ptr && cdcd_bson_iter_init(&it, projection) &&
           cdcd_bson_iter_next(&it, &e) > 0 && cdcd_slice_eq(e.name, cdcd_slice_str("_id")) &&
           number_of((struct value){e.type, e.value}) != 0 && cdcd_bson_iter_next(&it, &more) == 0;
}

static void list_reverse(struct cursor *c)
{
    for (size_t i = 0; i < c->n / 2; i++) {
        struct cdcd_slice s = c->list[i];
        c->list[i] = c->list[c->n - 1 - i];
        c->list[c->n - 1 - i] = s;
    }
}

static int find_documents(struct request *r, struct cursor *c)
{
    struct collection *from = documents_get(&server.documents, cdcd_slice_str(c->ns), false);
    struct value low = get(get_document(r->body, "min"), "_id");
    struct value high = get(get_document(r->body, "max"), "_id");
    bool ids = is_projection_of_id(get_document(r->body, "projection"));
    int64_t skip = get_number(r->body, "skip", 0);
    struct wanted w = {0};
    const struct version *v;
    int code = seen_at(r, c, &w.at);

    code = code ? code : wanted_parse(r, &w);
    if (code || !from)
        return code;
    collection_sort(from);
    size_t i = w.eq.type ? collection_find(from, w.eq) : low.type ? collection_find(from, low) : 0;
    size_t cap = 0;
    while (i < from->n) {
        struct value id = from->versions[i].id;
        if ((high.type && compare_values(id, high) >= 0) ||
            (w.eq.type && compare_values(id, w.eq) > 0))
            break;
        i = collection_at(from, i, w.at, &v);
        if (!v || !wants(&w, id) || skip-- > 0)
            continue;
        if (c->n == cap) {
            cap = cap ? cap * 2 : 64;
            c->list = cdcd_xrealloc(c->list, cap * sizeof *c->list);
        }
        c->list[c->n++] = ids ? only_id(v) : v->document;
    }
    if (get_number(get_document(r->body, "sort"), "_id", 1) < 0)
        list_reverse(c);
    return 0;
}

static void batch_of_documents(struct cdcd_buf *b, struct cursor *c, int64_t most)
{
    size_t begin = b->len, n = 0;
    char name[24];

    while (c->at < c->n && c->left != 0 && (most < 0 || (int64_t)n < most)) {
        struct cdcd_slice s = c->list[c->at];
        if (n && b->len - begin + s.len > REPLY_BYTES)
            break;
        put_index(name, sizeof name, n++);
        put_value(b, name, CDCD_BSON_DOCUMENT, s);
        c->at++;
        c->left -= c->left > 0;
    }
}

/* ---- the commands ---- */

/* The cursor's part of the answer; a cursor that has no more ends. */
static void put_batch(struct cdcd_buf *b, struct cursor *c, const char *batch, int64_t most,
                      bool single)
{
    size_t cursor = put_document(b, "cursor"), array = put_array(b, batch);
    if (c->oplog)
        batch_of_entries(b, c, most);
    else
        batch_of_documents(b, c, most);
    put_close(b, array);
    bool more = !single && (c->oplog ? entries_left(c) : c->at < c->n && c->left != 0);
    put_int64(b, "id", more ? c->id : 0);
    put_string(b, "ns", c->ns);
    if (c->seen_at)
        put_time(b, "atClusterTime", c->seen_at);
    put_close(b, cursor);
    if (!more)
        cursor_kill(c->id);
}

static void namespace_of(const struct request *r, struct cdcd_slice collection, char *ns, size_t n)
{
    snprintf(ns, n, "%s.%.*s", r->db, (int)collection.len, collection.ptr);
}

static int do_find(struct request *r, struct cdcd_buf *b)
{
    char ns[256];
    namespace_of(r, text_of(r->first), ns, sizeof ns);
    struct cursor *c = cursor_new(ns);
    int64_t limit = get_number(r->body, "limit", 0);
    int64_t first = get_number(r->body, "batchSize", FIRST_BATCH);
    c->left = limit > 0 ? limit : -1;
    c->batch = get_number(r->body, "batchSize", 0);
    int code = is_oplog(ns) ? find_entries(r, c) : find_documents(r, c);
    if (code)
        cursor_kill(c->id);
    else
        put_batch(b, c, "firstBatch", first, get_flag(r->body, "singleBatch"));
    return code;
}

/* Waits for entries; the cursor may be gone after that. */
static void await_entries(struct cursor *c, int64_t id, int64_t ms)
{
    int64_t until = now_ms(CLOCK_MONOTONIC) + ms;
    struct timespec t = {until / 1000, until % 1000 * 1000000};
    while (c && c->next >= server.oplog.end && c->next >= server.oplog.first)
        if (pthread_cond_timedwait(&server.changed, &server.lock, &t) == ETIMEDOUT)
            break;
        else
            c = cursor_get(id);
}

static int do_get_more(struct request *r, struct cdcd_buf *b)
{
    int64_t id = (int64_t)cdcd_bson_int64(r->first.s);
    struct cursor *c = r->first.type == CDCD_BSON_INT64 ? cursor_get(id) : NULL;

    if (c && c->oplog && c->tailable && c->await) {
        await_entries(c, id, get_number(r->body, "maxTimeMS", 1000));
        c = cursor_get(id);
    }
    if (!c)
        return FAIL(r, CURSOR_NOT_FOUND, "cursor id %lld not found", (long long)id);
    if (c->oplog && (c->last < server.oplog.first || c->next > server.oplog.end)) {
        cursor_kill(id);
        return FAIL(r, CAPPED_POSITION_LOST,
                    "CollectionScan died due to position in capped collection being deleted.");
    }
    int64_t batch = get_number(r->body, "batchSize", c->batch);
    put_batch(b, c, "nextBatch", batch > 0 ? batch : -1, false);
    return 0;
}

static int do_kill_cursors(struct request *r, struct cdcd_buf *b)
{
    struct cdcd_bson_iter it;
    struct cdcd_bson_element e;
    struct cdcd_slice ids = get_document(r->body, "cursors");
    char name[24];
    size_t n = 0, killed = put_array(b, "cursorsKilled");

    if (ids.ptr && cdcd_bson_iter_init(&it, ids))
        while (cdcd_bson_iter_next(&it, &e) > 0 && e.type == CDCD_BSON_INT64) {
            put_index(name, sizeof name, n++);
            put_value(b, name, e.type, e.value);
            cursor_kill(cdcd_bson_int64(e.value));
        }
    put_close(b, killed);
    return 0;
}

static int64_t count_of(const char *ns, int64_t *bytes)
{
    struct collection *c = documents_get(&server.documents, cdcd_slice_str(ns), false);
    const struct version *v;
    int64_t n = 0;

    *bytes = 0;
    if (is_oplog(ns)) {
        uint64_t ts;
        n = (int64_t)(server.oplog.end - server.oplog.first);
        if (n)
            *bytes = n * oplog_entry(&server.oplog, server.oplog.first, &ts)->len;
        return n;
    }
    if (!c)
        return 0;
    collection_sort(c);
    for (size_t i = 0; i < c->n;) {
        i = collection_at(c, i, UINT64_MAX, &v);
        n += v != NULL;
        *bytes += v ? (int64_t)v->document.len : 0;
    }
    return n;
}

static int do_count(struct request *r, struct cdcd_buf *b)
{
    char ns[256];
    int64_t bytes;
    namespace_of(r, text_of(r->first), ns, sizeof ns);
    put_int32(b, "n", (int32_t)count_of(ns, &bytes));
    return 0;
}

static void put_stats(struct cdcd_buf *b, const char *ns)
{
    int64_t bytes, n = count_of(ns, &bytes);
    put_int64(b, "size", bytes);
    put_int64(b, "count", n);
    put_int64(b, "avgObjSize", n ? bytes / n : 0);
    put_int64(b, "storageSize", bytes);
    put_bool(b, "capped", is_oplog(ns));
    if (is_oplog(ns))
        put_int64(b, "maxSize", (int64_t)990 << 20);
}

static int do_coll_stats(struct request *r, struct cdcd_buf *b)
{
    char ns[256];
    namespace_of(r, text_of(r->first), ns, sizeof ns);
    put_string(b, "ns", ns);
    put_stats(b, ns);
    return 0;
}

/* One document that says how many there are, of a pipeline that counts. */
static struct cdcd_slice summary(const char *ns, bool stats, const char *count)
{
    struct cdcd_buf b;
    int64_t bytes;

    cdcd_buf_init(&b, 0);
    size_t at = put_document(&b, NULL);
    if (stats) {
        put_string(&b, "ns", ns);
        put_int64(&b, "count", count_of(ns, &bytes));
        size_t inner = put_document(&b, "storageStats");
        put_stats(&b, ns);
        put_close(&b, inner);
    } else {
        put_int32(&b, "_id", 1);
        put_int32(&b, count, (int32_t)count_of(ns, &bytes));
    }
    put_close(&b, at);
    return cdcd_buf_slice(&b);
}

static void list_one(struct cursor *c, struct cdcd_slice document)
{
    c->list = cdcd_xrealloc(c->list, (c->n + 1) * sizeof *c->list);
    c->list[c->n++] = document;
}

/* $sample: every n-th document's _id, in order, which is as good as any. */
static void sample(struct cursor *c, int64_t size)
{
    struct collection *from = documents_get(&server.documents, cdcd_slice_str(c->ns), false);
    const struct version *v;
    int64_t bytes, all = count_of(c->ns, &bytes), k = 0;

    for (size_t i = 0; from && size > 0 && i < from->n;) {
        i = collection_at(from, i, UINT64_MAX, &v);
        if (v && (k * size) / all != ((k + 1) * size) / all)
            list_one(c, only_id(v));
        k += v != NULL;
    }
}

/* The few pipelines that sources of changes need for a snapshot. */
static int do_aggregate(struct request *r, struct cdcd_buf *b)
{
    struct cdcd_slice pipeline = get_document(r->body, "pipeline");
    struct cdcd_slice stage = get_document(pipeline, "0"), second = get_document(pipeline, "1");
    struct value counted = get(second, "$count");
    char ns[256];
    int code = 0;

    namespace_of(r, text_of(r->first), ns, sizeof ns);
    struct cursor *c = cursor_new(ns);
    if (get(stage, "$collStats").type)
        list_one(c, summary(ns, true, NULL));
    else if (get(stage, "$sample").type)
        sample(c, get_number(get_document(stage, "$sample"), "size", 0));
    else if (get(stage, "$match").type && (get(second, "$group").type || counted.type))
        list_one(c, summary(ns, false, counted.type ? text_of(counted).ptr : "n"));
    else
        code = FAIL(r, NOT_SUPPORTED, "mgfake does not know this pipeline%s",
                    get(stage, "$changeStream").type ? ": it has no change streams" : "");
    if (code)
        cursor_kill(c->id);
    else
        put_batch(b, c, "firstBatch", -1, false);
    return code;
}

#endif
