/* Documents: every record of tests/golden/mongodb is built from BSON by hand and compared, byte for
 * byte but for the clock of the envelope, nanoseconds of snapshots and the version. */
#include "../support/encode_document.h"

#include <jansson.h>
#include <math.h>

/* ---- documents ---- */

static void put_strings_and_bytes(struct bson_build *b)
{
    static const uint8_t sixteen[16] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
    static const uint8_t ones[16] = {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1};
    static const uint8_t twos[16] = {2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2};
    bb_binary(b, "bin0", 0, "\0\xff\x10", 3);
    bb_binary(b, "bin2", 2, "ab", 2);
    bb_binary(b, "uuid3", 3, ones, 16);
    bb_binary(b, "uuid4", 4, sixteen, 16);
    bb_binary(b, "md5", 5, twos, 16);
    bb_binary(b, "binusr", 128, "u", 1);
}

static const char oid[] = "\x65\xe0\xa1\xb2\xc3\xd4\xe5\xf6\x01\x02\x03\x04";

static void put_containers(struct bson_build *b)
{
    bb_open(b, 3, "obj");
    bb_open(b, 3, "p");
    bb_int32(b, "q", 1);
    bb_close(b);
    bb_open(b, 3, "e");
    bb_close(b);
    bb_close(b);
    bb_open(b, 4, "arr");
    bb_int32(b, "0", 1);
    bb_string(b, "1", "a");
    bb_raw(b, 0x0a, "2", "", 0);
    bb_open(b, 4, "3");
    bb_int32(b, "0", 2);
    bb_open(b, 4, "1");
    bb_int32(b, "0", 3);
    bb_close(b);
    bb_close(b);
    bb_open(b, 3, "4");
    bb_int64(b, "z", 1);
    bb_close(b);
    bb_close(b);
    bb_open(b, 4, "earr");
    bb_close(b);
}

static void put_code_with_scope(struct bson_build *b)
{
    size_t start;
    bb_name(b, 0x0f, "codews");
    start = b->buf.len;
    bb_u32(b, 0);
    bb_u32(b, 2);
    cdcd_buf_add(&b->buf, "x", 2);
    bb_push(b);
    bb_int32(b, "y", 1);
    bb_close(b);
    uint32_t n = (uint32_t)(b->buf.len - start);
    memcpy(b->buf.ptr + start, &n, 4);
}

/* Every type that is in use. */
static void all_types(struct bson_build *b, int32_t id)
{
    static const uint64_t timestamp = UINT64_C(1700000000) << 32 | 7;
    bb_int32(b, "_id", id);
    bb_double(b, "dbl", 1.5);
    bb_double(b, "dbl1", 1.0);
    bb_double(b, "dbig", 1e300);
    bb_double(b, "dneg0", -0.0);
    bb_double(b, "dnan", (double)NAN);
    bb_double(b, "dinf", (double)INFINITY);
    bb_double(b, "dninf", -(double)INFINITY);
    bb_string(b, "str", "h\xc3\xa9llo \"q\" \n\t \\ \xf0\x9f\x98\x80 \x01 /");
    put_containers(b);
    put_strings_and_bytes(b);
    bb_raw(b, 0x07, "oid", oid, 12);
    bb_bool(b, "t", true);
    bb_bool(b, "f", false);
    bb_date(b, "date", 1709212455123);
    bb_date(b, "dateneg", -315619200000);
    bb_date(b, "date9999", 253402300799999);
    bb_raw(b, 0x0a, "null", "", 0);
    bb_raw(b, 0x0b, "re", "^a/b\"c$\0im", 11);
    bb_text(b, 0x0d, "code", "function(){return 1}");
    put_code_with_scope(b);
    bb_int32(b, "i32", INT32_MAX);
    bb_int32(b, "i32n", INT32_MIN);
    bb_raw(b, 0x11, "ts", &timestamp, 8);
    bb_int64(b, "i64", INT64_MAX);
    bb_int64(b, "i64s", 5);
    bb_decimal(b, "dec", 0x303a000000000000, 0x1e23a);
    bb_decimal(b, "decbig", 0x5fffed09bead87c0, 0x378d8e63ffffffff);
    bb_decimal(b, "decnan", 0x7c00000000000000, 0);
    bb_decimal(b, "decinf", 0xf800000000000000, 0);
    bb_decimal(b, "decn0", 0xb02c000000000000, 0);
    bb_raw(b, 0xff, "min", "", 0);
    bb_raw(b, 0x7f, "max", "", 0);
    bb_open(b, 3, "dbref");
    bb_string(b, "$ref", "coll");
    bb_raw(b, 0x07, "$id", oid, 12);
    bb_string(b, "$db", "db2");
    bb_close(b);
    bb_int32(b, "a.b", 1);
    bb_int32(b, "$d", 2);
    bb_int32(b, "", 3);
}

/* What the server of the samples stored for undefined, a symbol and a DBPointer. */
static void deprecated(struct bson_build *b, int32_t id)
{
    bb_int32(b, "_id", id);
    bb_raw(b, 0x0a, "undef", "", 0);
    bb_string(b, "sym", "abc");
    bb_open(b, 3, "ptr");
    bb_string(b, "$ref", "db.c");
    bb_raw(b, 0x07, "$id", "\0\1\2\3\4\5\6\7\x08\x09\x0a\x0b", 12);
    bb_close(b);
}

/* What document 203 is after its nth update. */
static void updated(struct bson_build *b, int n)
{
    static const int32_t second[] = {2, 99, 99, 99, 99};
    bb_int32(b, "_id", 203);
    bb_open(b, 3, "o");
    bb_int32(b, "x", 2);
    bb_close(b);
    bb_open(b, 4, "arr");
    bb_int32(b, "0", 1);
    bb_int32(b, "1", second[n]);
    bb_int32(b, "2", 3);
    if (n == 2)
        bb_int32(b, "3", 4);
    bb_close(b);
    bb_string(b, "n", "new");
    bb_date(b, "dt", 1704067200000);
    if (n == 4)
        bb_int32(b, "w", 2);
}

/* What that update set. */
static void set_by(struct bson_build *b, int n)
{
    switch (n) {
    case 0:
        bb_int32(b, "o.x", 2);
        bb_string(b, "n", "new");
        bb_date(b, "dt", 1704067200000);
        break;
    case 1: bb_int32(b, "arr.1", 99); break;
    case 2: bb_int32(b, "arr.3", 4); break;
    case 3:
        bb_open(b, 4, "arr");
        bb_int32(b, "0", 1);
        bb_int32(b, "1", 99);
        bb_int32(b, "2", 3);
        bb_close(b);
        break;
    default: bb_int32(b, "w", 2); break;
    }
}

static void put_id(struct bson_build *b, int key)
{
    static const uint8_t uuid[16] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
    static const uint64_t timestamp = UINT64_C(1) << 32 | 2;
    switch (key) {
    case 0: bb_string(b, "_id", "str"); break;
    case 1: bb_int64(b, "_id", 7); break;
    case 2: bb_double(b, "_id", 1.5); break;
    case 3: bb_raw(b, 0x07, "_id", oid, 12); break;
    case 4:
        bb_open(b, 3, "_id");
        bb_int32(b, "a", 1);
        bb_string(b, "b", "x");
        bb_close(b);
        break;
    case 5: bb_binary(b, "_id", 0, "\1\2", 2); break;
    case 6: bb_binary(b, "_id", 4, uuid, 16); break;
    case 7: bb_date(b, "_id", 1709164800000); break;
    case 8: bb_bool(b, "_id", true); break;
    case 9: bb_decimal(b, "_id", 0x303e000000000000, 0xb); break;
    case 10: bb_raw(b, 0x0a, "_id", "", 0); break;
    default: bb_raw(b, 0x11, "_id", &timestamp, 8); break;
    }
}

/* ---- the changes of the samples ---- */

enum change_kind { TYPES, DEPRECATED, KEY, SMALL, UPDATED };

struct sample {
    const char *name;
    enum cdcd_op op;
    enum change_kind kind;
    int n;                     /* id, number of the key or of the update */
    const char *fields[4];     /* SMALL: int32 fields (1, but repl: true) behind the _id */
    const char *set, *removed; /* SMALL: a field that was set to 1 */
    bool gone;                 /* the document is not there any more */
    bool replaces;
};

static const struct sample samples[] = {
    {.name = "insert-all-bson", .op = CDCD_OP_CREATE, .kind = TYPES, .n = 101},
    {.name = "insert-deprecated-bson", .op = CDCD_OP_CREATE, .kind = DEPRECATED, .n = 102},
    {.name = "snapshot-read-all-bson", .op = CDCD_OP_READ, .kind = TYPES, .n = 1},
    {.name = "snapshot-read-deprecated-bson", .op = CDCD_OP_READ, .kind = DEPRECATED, .n = 2},
    {.name = "key-00", .op = CDCD_OP_READ, .kind = KEY, .n = 0},
    {.name = "key-01", .op = CDCD_OP_READ, .kind = KEY, .n = 1},
    {.name = "key-02", .op = CDCD_OP_READ, .kind = KEY, .n = 2},
    {.name = "key-03", .op = CDCD_OP_READ, .kind = KEY, .n = 3},
    {.name = "key-04", .op = CDCD_OP_READ, .kind = KEY, .n = 4},
    {.name = "key-05", .op = CDCD_OP_READ, .kind = KEY, .n = 5},
    {.name = "key-06", .op = CDCD_OP_READ, .kind = KEY, .n = 6},
    {.name = "key-07", .op = CDCD_OP_READ, .kind = KEY, .n = 7},
    {.name = "key-08", .op = CDCD_OP_READ, .kind = KEY, .n = 8},
    {.name = "key-09", .op = CDCD_OP_READ, .kind = KEY, .n = 9},
    {.name = "key-10", .op = CDCD_OP_READ, .kind = KEY, .n = 10},
    {.name = "key-11", .op = CDCD_OP_READ, .kind = KEY, .n = 11},
    {.name = "update-0-set-unset", .op = CDCD_OP_UPDATE, .kind = UPDATED, .n = 0, .removed = "v"},
    {.name = "update-1-array-elem", .op = CDCD_OP_UPDATE, .kind = UPDATED, .n = 1},
    {.name = "update-2-push", .op = CDCD_OP_UPDATE, .kind = UPDATED, .n = 2},
    {.name = "update-3-pop", .op = CDCD_OP_UPDATE, .kind = UPDATED, .n = 3},
    {.name = "update-4-pipeline", .op = CDCD_OP_UPDATE, .kind = UPDATED, .n = 4},
    {.name = "update-5-replace",
     .op = CDCD_OP_UPDATE,
     .kind = SMALL,
     .n = 203,
     .fields = {"repl"},
     .replaces = true},
    {.name = "update-6-update-many",
     .op = CDCD_OP_UPDATE,
     .kind = SMALL,
     .n = 104,
     .fields = {"u", "m"},
     .set = "m"},
    {.name = "update-deleted-before-lookup-after-null",
     .op = CDCD_OP_UPDATE,
     .kind = SMALL,
     .n = 103,
     .removed = "v",
     .gone = true},
    {.name = "upsert-create", .op = CDCD_OP_CREATE, .kind = SMALL, .n = 104, .fields = {"u"}},
    {.name = "tx-insert", .op = CDCD_OP_CREATE, .kind = SMALL, .n = 1},
    {.name = "tx-update",
     .op = CDCD_OP_UPDATE,
     .kind = SMALL,
     .n = 104,
     .fields = {"u", "m", "tx"},
     .set = "tx"},
    {.name = "delete", .op = CDCD_OP_DELETE, .kind = SMALL, .n = 103, .gone = true},
};
#define NSAMPLES (sizeof(samples) / sizeof(samples[0]))

static void put_document(struct bson_build *b, const struct sample *s)
{
    switch (s->kind) {
    case TYPES: all_types(b, s->n); return;
    case DEPRECATED: deprecated(b, s->n); return;
    case KEY:
        put_id(b, s->n);
        bb_int32(b, "v", 1);
        return;
    case UPDATED: updated(b, s->n); return;
    case SMALL: break;
    }
    bb_int32(b, "_id", s->n);
    for (int i = 0; i < 4 && s->fields[i]; i++) {
        if (strcmp(s->fields[i], "repl") == 0)
            bb_bool(b, "repl", true);
        else
            bb_int32(b, s->fields[i], 1);
    }
}

static void put_set(struct bson_build *b, const struct sample *s)
{
    if (s->kind == UPDATED) {
        set_by(b, s->n);
    } else if (s->gone) {
        bb_int32(b, "o.x", 2);
        bb_string(b, "n", "new");
    } else {
        bb_int32(b, s->set, 1);
    }
}

static struct cdcd_slice keep(struct et *t, struct bson_build *b)
{
    struct cdcd_slice d = bb_end(b);
    d.ptr = cdcd_arena_dup(&t->batch->arena, d.ptr, d.len);
    bb_free(b);
    return d;
}

static const struct cdcd_update *update_of(struct et *t, const struct sample *s)
{
    struct cdcd_update *u = cdcd_arena_alloc(&t->batch->arena, sizeof *u);
    struct cdcd_slice *removed = cdcd_arena_alloc(&t->batch->arena, sizeof *removed);
    struct bson_build b;
    bb_begin(&b);
    put_set(&b, s);
    *u = (struct cdcd_update){.updated = keep(t, &b)};
    if (s->removed) {
        *removed = cdcd_slice_str(s->removed);
        u->removed = removed;
        u->nremoved = 1;
    }
    return u;
}

static struct cdcd_cell id_of(struct cdcd_slice document)
{
    struct cdcd_bson_element e;
    assert_true(cdcd_bson_find(document, "_id", &e));
    return cdcd_cell_bson(e.type, e.value.ptr, e.value.len);
}

/* ---- the file ---- */

struct golden {
    char *name, *topic, *key, *value; /* value NULL: a tombstone */
    json_t *parsed;                   /* of the value */
};
static struct golden golden[64];
static size_t ngolden;

/* The text of the object that begins at `p`, and where it ends. */
static char *object_at(const char *p, const char **end)
{
    size_t depth = 0;
    bool string = false;
    const char *q = p;
    for (; *q; q++) {
        if (string && *q == '\\')
            q++;
        else if (*q == '"')
            string = !string;
        else if (!string && *q == '{')
            depth++;
        else if (!string && *q == '}' && --depth == 0)
            break;
    }
    *end = q + 1;
    return cdcd_xstrndup(p, (size_t)(q + 1 - p));
}

static void load_line(const char *line)
{
    struct golden *g = &golden[ngolden++];
    json_t *doc = json_loads(line, 0, NULL);
    const char *end;
    assert_non_null(doc);
    g->name = cdcd_xstrdup(json_string_value(json_object_get(doc, "name")));
    g->topic = cdcd_xstrdup(json_string_value(json_object_get(doc, "topic")));
    const char *key = strstr(line, ",\"key\":");
    assert_non_null(key);
    g->key = object_at(key + 7, &end);
    assert_int_equal(strncmp(end, ",\"value\":", 9), 0);
    g->value = end[9] == '{' ? object_at(end + 9, &end) : NULL;
    g->parsed = json_incref(json_object_get(doc, "value"));
    json_decref(doc);
}

static int load(void **state)
{
    const char *root = getenv("CDCD_SOURCE_DIR");
    char *path = cdcd_xasprintf("%s/tests/golden/mongodb/expected.jsonl", root ? root : ".");
    FILE *f = fopen(path, "r");
    char *line = NULL;
    size_t cap = 0;
    (void)state;
    if (!f)
        fail_msg("%s cannot be read; set CDCD_SOURCE_DIR", path);
    while (f && getline(&line, &cap, f) > 0)
        load_line(line);
    free(line);
    free(path);
    return f ? fclose(f) : 1;
}

static int unload(void **state)
{
    (void)state;
    for (size_t i = 0; i < ngolden; i++) {
        json_decref(golden[i].parsed);
        free(golden[i].name);
        free(golden[i].topic);
        free(golden[i].key);
        free(golden[i].value);
    }
    return 0;
}

static const struct golden *find(const char *name)
{
    for (size_t i = 0; i < ngolden; i++) {
        if (strcmp(golden[i].name, name) == 0)
            return &golden[i];
    }
    fail_msg("expected.jsonl has no %s", name);
    return NULL;
}

/* ---- comparing ---- */

static struct cdcd_cell text_cell(const json_t *v)
{
    return json_is_string(v) ? cdcd_cell_text(json_string_value(v), json_string_length(v))
                             : (struct cdcd_cell){.kind = CDCD_C_NULL};
}
static struct cdcd_cell int_cell(const json_t *v)
{
    return json_is_integer(v) ? cdcd_cell_int(json_integer_value(v))
                              : (struct cdcd_cell){.kind = CDCD_C_NULL};
}

/* What the log says of the change beside the documents comes from the sample itself. */
static void set_source(struct et *t, struct cdcd_event *ev, const struct golden *g)
{
    const json_t *source = json_object_get(g->parsed, "source");
    const json_t *tx = json_object_get(g->parsed, "transaction");
    const char *mark = json_string_value(json_object_get(source, "snapshot"));
    struct cdcd_cell *cells = cdcd_batch_cells(t->batch, 5);
    cells[0] = text_cell(json_object_get(source, "collection"));
    cells[1] = int_cell(json_object_get(source, "ord"));
    cells[2] = text_cell(json_object_get(source, "lsid"));
    cells[3] = int_cell(json_object_get(source, "txnNumber"));
    cells[4] = int_cell(json_object_get(source, "wallTime"));
    ev->source = cells;
    ev->ts_us = json_integer_value(json_object_get(source, "ts_us"));
    ev->snapshot = strcmp(mark, "true") == 0   ? CDCD_SNAP_TRUE
                   : strcmp(mark, "last") == 0 ? CDCD_SNAP_LAST
                                               : CDCD_SNAP_NONE;
    if (json_is_object(tx)) {
        ev->tx_id = cdcd_slice_str(json_string_value(json_object_get(tx, "id")));
        ev->total_order = (uint64_t)json_integer_value(json_object_get(tx, "total_order"));
        ev->data_collection_order = (uint64_t)json_integer_value(
            json_object_get(tx, "data_collection_order"));
    }
}

/* Puts `with` in place of what stands between `after` and the next `until`. */
static char *fold(char *text, const char *after, char until, const char *with)
{
    char *at = strstr(text, after);
    if (!at)
        return text;
    at += strlen(after);
    char *end = strchr(at, until);
    char *folded = cdcd_xasprintf("%.*s%s%s", (int)(at - text), text, with, end);
    free(text);
    return folded;
}

/* Samples of a snapshot have nanoseconds of their own clock. */
static char *folded(const char *p, size_t n)
{
    char *text = fold(ed_fold_clock(p, n), "\"source\":{\"version\":\"", '"', "VERSION");
    return strstr(text, "\"ord\":-1") ? fold(text, "\"ts_ns\":", ',', "0") : text;
}

static void record_is(const struct cdcd_record *r, const struct golden *g)
{
    et_slice_is(r->topic->name, g->topic);
    et_slice_is(r->key, g->key);
    if (!g->value) {
        assert_null(r->value.ptr);
        return;
    }
    char *got = folded(r->value.ptr, r->value.len);
    char *want = folded(g->value, strlen(g->value));
    if (strcmp(got, want) != 0)
        fail_msg("%s\ngot      %s\nexpected %s", g->name, got, want);
    free(got);
    free(want);
}

static void add_sample(struct et *t, const struct sample *s, struct cdcd_schema *schema,
                       const struct golden *g)
{
    struct bson_build b;
    bb_begin(&b);
    put_document(&b, s);
    struct cdcd_slice document = keep(t, &b);
    struct cdcd_cell *image = ed_image(t, id_of(document),
                                       s->gone ? (struct cdcd_slice){NULL, 0} : document);
    bool deleted = s->op == CDCD_OP_DELETE;
    struct cdcd_event *ev = ed_event(t, s->op, schema, deleted ? image : NULL,
                                     deleted ? NULL : image);
    set_source(t, ev, g);
    if (s->op == CDCD_OP_UPDATE && !s->replaces)
        ev->update = update_of(t, s);
}

static void documents(void **state)
{
    struct cdcd_debezium_config cfg = et_config();
    struct et t;
    (void)state;
    et_open_source(&t, &cfg, "srv", false, &et_mongodb);
    for (size_t i = 0; i < NSAMPLES; i++) {
        const struct golden *g = find(samples[i].name);
        const json_t *source = json_object_get(g->parsed, "source");
        struct cdcd_schema *s = cdcd_schema_document(
            "shop", json_string_value(json_object_get(source, "collection")));
        cdcd_batch_reset(t.batch);
        add_sample(&t, &samples[i], s, g);
        et_encode(&t);
        record_is(et_record(&t, 0), g);
        bool deleted = samples[i].op == CDCD_OP_DELETE;
        assert_int_equal(t.batch->nrecords, deleted ? 2 : 1);
        if (deleted)
            record_is(et_record(&t, 1), find("tombstone"));
        cdcd_schema_unref(s);
    }
    et_close(&t);
}

/* Records that belong to no collection. */
static void others(void **state)
{
    static const struct cdcd_tx_collection collections[] = {
        {{"shop.ids", 8}, 1},
        {{"shop.types_t", 12}, 1},
        {{"shop.tx1", 8}, 1},
    };
    struct cdcd_debezium_config cfg = et_config();
    const struct golden *begin = find("tx-begin"), *end = find("tx-end");
    const struct golden *beat = find("heartbeat");
    struct et t;
    (void)state;
    et_open_source(&t, &cfg, "srv", false, &et_mongodb);
    struct cdcd_event *ev = et_event(&t, CDCD_OP_TX_BEGIN, NULL, NULL, NULL);
    ev->tx_id = cdcd_slice_str(json_string_value(json_object_get(begin->parsed, "id")));
    ev->ts_us = json_integer_value(json_object_get(begin->parsed, "ts_ms")) * 1000;
    ev = et_event(&t, CDCD_OP_TX_END, NULL, NULL, NULL);
    ev->tx_id = cdcd_slice_str(json_string_value(json_object_get(end->parsed, "id")));
    ev->ts_us = json_integer_value(json_object_get(end->parsed, "ts_ms")) * 1000;
    ev->collections = collections;
    ev->ncollections = 3;
    et_event(&t, CDCD_OP_HEARTBEAT, NULL, NULL, NULL);
    et_encode(&t);
    record_is(et_record(&t, 0), begin);
    record_is(et_record(&t, 1), end);
    const struct cdcd_record *r = et_record(&t, 2);
    et_slice_is(r->topic->name, beat->topic);
    et_slice_is(r->key, beat->key);
    assert_int_equal(r->value.len, strlen(beat->value));
    assert_memory_equal(r->value.ptr, "{\"ts_ms\":1", 10);
    et_close(&t);
}

/* No line of the file is left out: the tombstone and those of others() are not in the table. */
static void all_lines(void **state)
{
    (void)state;
    for (size_t i = 0; i < NSAMPLES; i++)
        find(samples[i].name);
    assert_int_equal(ngolden, NSAMPLES + 4);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(documents),
        cmocka_unit_test(others),
        cmocka_unit_test(all_lines),
    };
    return cmocka_run_group_tests(tests, load, unload);
}
