/*
 * snapshot_plan.c: cursors, and cutting a collection into ranges of _id.
 *
 * A range goes from its begin to before its end, both as min and max of a find, which follow the
 * order of the _id index whatever the types: query operators ($gt) would compare within one type
 * only. A range that was read in part begins at the last _id that was delivered, which is left out
 * (snapshot_read.c).
 */
#include "snapshot_int.h"

#include <stdlib.h>

#define MAX_RANGES 1000  /* of one collection: they are all in the stored state until read */
#define SAMPLES    10    /* of each range */
#define SKIP_ROWS  20000 /* up to here boundaries are found by skipping */
#define LARGEST_ID 1024  /* for a boundary: the stored state has all of them */

/* ---- cursors ---- */

static const char hex_digits[] = "0123456789abcdef";

static void add_hex(struct cdcd_buf *out, const void *bytes, size_t n)
{
    const uint8_t *p = bytes;
    char *to = cdcd_buf_reserve(out, 2 * n);
    if (!to)
        return;
    for (size_t i = 0; i < n; i++) {
        to[2 * i] = hex_digits[p[i] >> 4];
        to[2 * i + 1] = hex_digits[p[i] & 15];
    }
    out->len += 2 * n;
}

void mg_cursor_write(const struct mg_cursor *c, struct cdcd_buf *out)
{
    uint8_t type = (uint8_t)c->id.aux;
    cdcd_buf_adds(out, c->past ? ">" : ">=");
    add_hex(out, &type, 1);
    add_hex(out, c->id.ptr, c->id.len);
}

static int hex_value(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* An element of that type and these bytes as {_id: value}; false: it is no BSON. */
static bool id_document(uint8_t type, const char *value, size_t len, bson_t **out)
{
    uint32_t total = (uint32_t)(4 + 1 + 4 + len + 1);
    uint8_t *p = cdcd_xmalloc(total);
    uint32_t le = BSON_UINT32_TO_LE(total);
    memcpy(p, &le, 4);
    p[4] = type;
    memcpy(p + 5, "_id", 4);
    if (len)
        memcpy(p + 9, value, len);
    p[total - 1] = 0;
    const char *why;
    bool good = cdcd_bson_valid((struct cdcd_slice){(char *)p, total}, &why);
    *out = good ? bson_new_from_data(p, total) : NULL;
    free(p);
    return *out != NULL;
}

bool mg_cursor_parse(const char *text, struct cdcd_arena *a, struct mg_cursor *out)
{
    if (*text++ != '>')
        return false;
    out->past = *text != '=';
    text += !out->past;
    size_t n = strlen(text);
    if (n < 2 || n % 2)
        return false;
    n /= 2;
    char *bytes = cdcd_arena_alloc(a, n);
    for (size_t i = 0; i < n; i++) {
        int hi = hex_value(text[2 * i]), lo = hex_value(text[2 * i + 1]);
        if (hi < 0 || lo < 0)
            return false;
        bytes[i] = (char)(hi << 4 | lo);
    }
    out->id = cdcd_cell_bson((uint8_t)bytes[0], bytes + 1, n - 1);
    bson_t *whole;
    if (!id_document((uint8_t)bytes[0], bytes + 1, n - 1, &whole))
        return false;
    bson_destroy(whole);
    return true;
}

bool mg_cursor_append(bson_t *to, const char *name, const struct cdcd_cell *id)
{
    bson_t *whole;
    if (!id_document((uint8_t)id->aux, id->ptr, id->len, &whole))
        return false;
    bool good = BSON_APPEND_DOCUMENT(to, name, whole);
    bson_destroy(whole);
    return good;
}

bool mg_id_of(struct cdcd_slice document, struct cdcd_cell *out)
{
    struct cdcd_bson_element e;
    if (!cdcd_bson_find(document, "_id", &e))
        return false;
    *out = cdcd_cell_bson(e.type, e.value.ptr, e.value.len);
    return true;
}

/* ---- boundaries ---- */

struct cutting {
    struct cdcd_chunks *out;
    size_t cap;
    struct cdcd_cell last; /* in out->arena; kind 0 at first */
    size_t seen, every;    /* of a sorted sample: each `every`th is taken */
};

static struct cdcd_chunk *add_chunk(struct cutting *c)
{
    if (c->out->n == c->cap) {
        c->cap = c->cap ? c->cap * 2 : 16;
        struct cdcd_chunk *more = cdcd_arena_alloc(&c->out->arena, c->cap * sizeof *more);
        if (c->out->n)
            memcpy(more, c->out->items, c->out->n * sizeof *more);
        c->out->items = more;
    }
    struct cdcd_chunk *k = &c->out->items[c->out->n];
    *k = (struct cdcd_chunk){(uint32_t)c->out->n, "", ""};
    c->out->n++;
    return k;
}

/* The last range ends here, and another one begins. */
static void cut_at(struct cutting *c, const struct cdcd_cell *id)
{
    struct cdcd_arena *a = &c->out->arena;
    if (c->last.kind == CDCD_C_BSON && cdcd_cell_equal(&c->last, id))
        return; /* a sample may have a document twice */
    c->last = cdcd_cell_bson((uint8_t)id->aux, cdcd_arena_dup(a, id->ptr, id->len), id->len);
    struct mg_cursor cursor = {.id = c->last};
    struct cdcd_buf text;
    cdcd_buf_init(&text, 0);
    mg_cursor_write(&cursor, &text);
    const char *kept = cdcd_arena_dup(a, text.ptr, text.len);
    cdcd_buf_free(&text);
    c->out->items[c->out->n - 1].end = kept;
    add_chunk(c)->begin = kept;
}

static bool usable(const bson_t *doc, struct cdcd_cell *id)
{
    return mg_id_of(mg_slice(doc), id) && id->len <= LARGEST_ID;
}

static void append_id_key(bson_t *to, const char *name)
{
    bson_t key;
    BSON_APPEND_DOCUMENT_BEGIN(to, name, &key);
    BSON_APPEND_INT32(&key, "_id", 1);
    bson_append_document_end(to, &key);
}

/* The _id that `rows` documents stand before, from the last cut on. *found: there is one. */
static enum cdcd_rc skip_rows(mongoc_client_t *client, const struct mg_snap_table *t,
                              struct cutting *c, int64_t rows, bool *found, struct cdcd_error *err)
{
    struct mg_find f = {0};
    bson_t command;
    const bson_t *doc = NULL;
    struct cdcd_cell id;
    int code = 0;
    bson_init(&command);
    BSON_APPEND_UTF8(&command, "find", t->collection);
    if (c->last.kind == CDCD_C_BSON && !mg_cursor_append(&command, "min", &c->last)) {
        bson_destroy(&command);
        return cdcd_error_set(err, CDCD_ERR_DATA, "an _id of %s is malformed", t->label);
    }
    append_id_key(&command, "hint");
    append_id_key(&command, "sort");
    append_id_key(&command, "projection");
    BSON_APPEND_INT64(&command, "skip", rows);
    BSON_APPEND_INT64(&command, "limit", 1);
    enum cdcd_rc rc = mg_find_open(&f, client, t->db, &command, &code, err);
    if (rc == CDCD_OK)
        rc = mg_find_next(&f, t->label, &doc, &code, err);
    *found = rc == CDCD_OK && usable(doc, &id);
    if (*found)
        cut_at(c, &id);
    mg_find_close(&f);
    bson_destroy(&command);
    return rc == CDCD_END ? CDCD_OK : rc;
}

static enum cdcd_rc cut_by_skipping(mongoc_client_t *client, const struct mg_snap_table *t,
                                    struct cutting *c, int64_t rows, struct cdcd_error *err)
{
    bool found = true;
    enum cdcd_rc rc = CDCD_OK;
    while (rc == CDCD_OK && found && c->out->n < MAX_RANGES)
        rc = skip_rows(client, t, c, rows, &found, err);
    return rc;
}

/* A random cursor of the server gives the sample, sorted by the server in its own order of types:
 * cheap when it is less than a twentieth of the collection. */
static enum cdcd_rc cut_by_sample(mongoc_client_t *client, const struct mg_snap_table *t,
                                  struct cutting *c, int64_t ranges, struct cdcd_error *err)
{
    struct mg_find f = {0};
    bson_t command, stages, stage, part;
    const bson_t *doc;
    int code = 0;
    bson_init(&command);
    BSON_APPEND_UTF8(&command, "aggregate", t->collection);
    mg_array_begin(&command, "pipeline", &stages);
    BSON_APPEND_DOCUMENT_BEGIN(&stages, "0", &stage);
    BSON_APPEND_DOCUMENT_BEGIN(&stage, "$sample", &part);
    BSON_APPEND_INT64(&part, "size", ranges * SAMPLES);
    bson_append_document_end(&stage, &part);
    bson_append_document_end(&stages, &stage);
    BSON_APPEND_DOCUMENT_BEGIN(&stages, "1", &stage);
    append_id_key(&stage, "$project");
    bson_append_document_end(&stages, &stage);
    BSON_APPEND_DOCUMENT_BEGIN(&stages, "2", &stage);
    append_id_key(&stage, "$sort");
    bson_append_document_end(&stages, &stage);
    bson_append_array_end(&command, &stages);
    BSON_APPEND_BOOL(&command, "allowDiskUse", true);
    BSON_APPEND_DOCUMENT_BEGIN(&command, "cursor", &part);
    bson_append_document_end(&command, &part);
    c->every = SAMPLES;
    enum cdcd_rc rc = mg_find_open(&f, client, t->db, &command, &code, err);
    while (rc == CDCD_OK && (rc = mg_find_next(&f, t->label, &doc, &code, err)) == CDCD_OK) {
        struct cdcd_cell id;
        if (++c->seen % c->every == 0 && c->seen < (size_t)(ranges * SAMPLES) && usable(doc, &id))
            cut_at(c, &id);
    }
    mg_find_close(&f);
    bson_destroy(&command);
    return rc == CDCD_END ? CDCD_OK : rc;
}

enum cdcd_rc mg_snapshot_plan(struct cdcd_source *s, const struct cdcd_snapshot_table *table,
                              struct cdcd_chunks *out, struct cdcd_error *err)
{
    const struct mg_snap_table *t = table->source_data;
    int64_t per_chunk = s->cfg->snapshot_chunk_rows > 0 ? s->cfg->snapshot_chunk_rows : 1;
    *out = (struct cdcd_chunks){0};
    cdcd_arena_init(&out->arena, 4096);
    struct cutting c = {.out = out};
    add_chunk(&c);
    int64_t ranges = t->rows / per_chunk + (t->rows % per_chunk != 0);
    if (ranges > MAX_RANGES)
        ranges = MAX_RANGES;
    if (t->rows >= 0 && ranges < 2)
        return CDCD_OK;
    /* What is found is only where ranges meet: nothing is lost by it, however old it is. */
    enum cdcd_rc rc = t->rows <= SKIP_ROWS || ranges < 2
                          ? cut_by_skipping(s->client, t, &c, per_chunk, err)
                          : cut_by_sample(s->client, t, &c, ranges, err);
    if (rc != CDCD_OK) {
        cdcd_arena_free(&out->arena);
        *out = (struct cdcd_chunks){0};
        return cdcd_error_context(err, "cutting %s into chunks", t->label);
    }
    return CDCD_OK;
}
