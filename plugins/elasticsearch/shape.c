/*
 * Connect schemas -> how the columns of a table are written, and what the index makes of them.
 *
 * They come in records of CDCD_SCHEMA_TOPIC, known by the version in the header cdcd.schema, or in
 * each record itself ("schema" beside "payload"), known by their text. What a column is, is told by
 * the name of its type where it has one: Debezium's and Connect's logical types.
 *
 * Shapes are never freed before the cache: actions on their way point to them.
 */
#include "convert.h"

#include <stdio.h>
#include <stdlib.h>

struct entry {
    struct es_shape shape; /* first: found by it */
    struct entry *next;
    /* Of in-record schemas, owned: */
    char *key_text, *value_text;
    size_t key_len, value_len;
};

struct es_shapes {
    struct entry *announced, *inline_; /* newest, or last used, first */
};

struct es_shapes *es_shapes_new(void)
{
    return cdcd_xcalloc(1, sizeof(struct es_shapes));
}

static void free_entries(struct entry *e)
{
    while (e) {
        struct entry *next = e->next;
        cdcd_arena_free(&e->shape.arena);
        free(e->key_text);
        free(e->value_text);
        free(e);
        e = next;
    }
}

void es_shapes_free(struct es_shapes *s)
{
    if (!s)
        return;
    free_entries(s->announced);
    free_entries(s->inline_);
    free(s);
}

/* ---- logical types ---- */

struct logical {
    const char *name;
    enum es_form form;
    const char *es_type; /* NULL: left to the server */
    int32_t scale;       /* see the forms */
};

#define DATA    "io.debezium.data."
#define TIME    "io.debezium.time."
#define CONNECT "org.apache.kafka.connect.data."

static const struct logical logicals[] = {
    {CONNECT "Decimal", ES_F_DECIMAL, "decimal", 0},
    {CONNECT "Date", ES_F_DATE, "date", 0},
    {CONNECT "Time", ES_F_TIME_MS, "keyword", 0},
    {CONNECT "Timestamp", ES_F_TS_MS, "date", 0},
    {DATA "VariableScaleDecimal", ES_F_VARDECIMAL, "decimal", 0},
    {DATA "Bits", ES_F_BYTES, "binary", 0},
    {DATA "Json", ES_F_JSON, "keyword", 0},
    {DATA "Xml", ES_F_RAW, "text", 0},
    {DATA "Uuid", ES_F_RAW, "keyword", 0},
    {DATA "Enum", ES_F_RAW, "keyword", 0},
    {DATA "EnumSet", ES_F_RAW, "keyword", 0},
    {DATA "Ltree", ES_F_RAW, "keyword", 0},
    {DATA "Tsvector", ES_F_RAW, "text", 0},
    {DATA "DoubleVector", ES_F_RAW, "double", 0},
    {DATA "FloatVector", ES_F_RAW, "double", 0},
    {DATA "SparseDoubleVector", ES_F_STRUCT, "object", 0},
    {DATA "geometry.Point", ES_F_POINT, "point", 0},
    {DATA "geometry.Geometry", ES_F_GEOMETRY, "geometry", 0},
    {DATA "geometry.Geography", ES_F_GEOMETRY, "geometry", 0},
    {DATA "geometry.Circle", ES_F_STRUCT, "object", 0},
    {DATA "geometry.Line", ES_F_STRUCT, "object", 0},
    {TIME "Date", ES_F_DATE, "date", 0},
    {TIME "Time", ES_F_TIME_MS, "keyword", 0},
    {TIME "MicroTime", ES_F_TIME_US, "keyword", 0},
    {TIME "NanoTime", ES_F_TIME_NS, "keyword", 0},
    {TIME "Timestamp", ES_F_TS_MS, "date", 0},
    {TIME "MicroTimestamp", ES_F_TS_US, "date", 0},
    {TIME "NanoTimestamp", ES_F_TS_NS, "date", 0},
    {TIME "ZonedTimestamp", ES_F_TEXT_TIME, "date", 0},
    {TIME "ZonedTime", ES_F_TEXT_TIME, "keyword", 0},
    {TIME "IsoDate", ES_F_TEXT_TIME, "date", 1},
    {TIME "IsoTime", ES_F_TEXT_TIME, "keyword", 1},
    {TIME "IsoTimestamp", ES_F_TEXT_TIME, "date", 1},
    {TIME "MicroDuration", ES_F_DURATION, "keyword", 6},
    {TIME "NanoDuration", ES_F_DURATION, "keyword", 9},
    {TIME "Interval", ES_F_RAW, "keyword", 0},
    {TIME "Year", ES_F_RAW, "long", 0},
    {"cdcd.data.UnsignedLong", ES_F_RAW, "decimal", 0},
};

/* A column may be made wider (int to bigint, real to double precision), but a field of an index
 * keeps its type: so all of a kind get the widest. */
static const struct logical plains[] = {
    {"int8", ES_F_RAW, "long", 0},       {"int16", ES_F_RAW, "long", 0},
    {"int32", ES_F_RAW, "long", 0},      {"int64", ES_F_RAW, "long", 0},
    {"float", ES_F_RAW, "double", 0},    {"double", ES_F_RAW, "double", 0},
    {"boolean", ES_F_RAW, "boolean", 0}, {"string", ES_F_RAW, "text", 0},
    {"bytes", ES_F_BYTES, "binary", 0},  {"map", ES_F_RAW, NULL, 0},
    {"struct", ES_F_STRUCT, NULL, 0},    {"array", ES_F_RAW, NULL, 0},
};

static const struct logical *find_logical(const struct logical *table, size_t n,
                                          const struct cdcd_json_value *name)
{
    for (size_t i = 0; i < n; i++) {
        if (es_string_is(name, table[i].name))
            return &table[i];
    }
    return NULL;
}
#define FIND(table, name) find_logical((table), sizeof(table) / sizeof((table)[0]), (name))

/* ---- columns ---- */

/* Parameters are strings: {"scale":"2"}. */
static bool parameter(const struct cdcd_json_value *parameters, const char *name, int32_t *out)
{
    struct cdcd_json_value v;
    int64_t n;
    if (!cdcd_json_member(parameters, name, &v))
        return false;
    if (v.kind == CDCD_JSON_STRING && v.raw.len > 2) {
        v.raw = (struct cdcd_slice){v.raw.ptr + 1, v.raw.len - 2};
        v.kind = CDCD_JSON_NUMBER;
    }
    if (!cdcd_json_int64(&v, &n) || n > INT32_MAX || n < INT32_MIN)
        return false;
    *out = (int32_t)n;
    return true;
}

#define NESTED_MAX 16

static bool column_init(struct cdcd_arena *a, struct es_column *c,
                        const struct cdcd_json_value *schema, int depth)
{
    struct cdcd_json_value type, name, items, parameters;
    const struct logical *l;
    int32_t precision;
    if (depth > NESTED_MAX || !cdcd_json_member(schema, "type", &type) ||
        type.kind != CDCD_JSON_STRING)
        return false;
    bool named = cdcd_json_member(schema, "name", &name) && name.kind == CDCD_JSON_STRING;
    if (!(named && (l = FIND(logicals, &name))) && !(l = FIND(plains, &type)))
        return false;
    c->form = l->form;
    c->es_type = l->es_type;
    c->scale = l->scale;
    if (cdcd_json_member(schema, "parameters", &parameters) && l->form == ES_F_DECIMAL) {
        parameter(&parameters, "scale", &c->scale);
        /* What fits is a whole number for the index, too. */
        if (c->scale == 0 && parameter(&parameters, "connect.decimal.precision", &precision) &&
            precision <= 18)
            c->es_type = "whole";
    }
    if (es_string_is(&type, "array") && cdcd_json_member(schema, "items", &items)) {
        struct es_column *elem = cdcd_arena_alloc(a, sizeof *elem);
        *elem = (struct es_column){0};
        if (!column_init(a, elem, &items, depth + 1))
            return false;
        c->elem = elem;
        if (!c->es_type)
            c->es_type = elem->es_type;
    }
    return true;
}

static void column_name(struct cdcd_arena *a, struct es_column *c,
                        const struct cdcd_json_value *name)
{
    struct cdcd_slice text = cdcd_json_text(name, a);
    c->name = (struct cdcd_slice){cdcd_arena_dup(a, text.ptr, text.len), text.len};
    char *p = cdcd_arena_alloc(a, name->raw.len + 1);
    memcpy(p, name->raw.ptr, name->raw.len);
    p[name->raw.len] = ':';
    c->name_json = (struct cdcd_slice){p, name->raw.len + 1};
}

/* The fields of a struct's schema. */
static bool columns_init(struct cdcd_arena *a, const struct cdcd_json_value *schema,
                         struct es_column **out, uint32_t *n)
{
    struct cdcd_json_value fields, field, name;
    struct cdcd_json_iter it;
    *out = NULL;
    *n = 0;
    if (!cdcd_json_member(schema, "fields", &fields) || fields.kind != CDCD_JSON_ARRAY)
        return false;
    uint32_t count = 0;
    for (cdcd_json_iter_init(&it, &fields); cdcd_json_iter_next(&it, NULL, &field);)
        count++;
    struct es_column *columns = cdcd_arena_alloc(a, (count + 1) * sizeof *columns);
    *out = columns;
    for (cdcd_json_iter_init(&it, &fields); cdcd_json_iter_next(&it, NULL, &field); (*n)++) {
        struct es_column *c = &columns[*n];
        *c = (struct es_column){0};
        if (!cdcd_json_member(&field, "field", &name) || name.kind != CDCD_JSON_STRING ||
            !column_init(a, c, &field, 0))
            return false;
        column_name(a, c, &name);
    }
    return true;
}

const struct es_column *es_shape_column(const struct es_column *columns, uint32_t n, uint32_t hint,
                                        const struct cdcd_json_value *name, struct cdcd_arena *tmp)
{
    size_t len = name->raw.len;
    for (uint32_t i = 0; i < n; i++) {
        const struct es_column *c = &columns[(hint + i) % n];
        if (c->name_json.len == len + 1 && memcmp(c->name_json.ptr, name->raw.ptr, len) == 0)
            return c;
    }
    if (!name->escaped)
        return NULL;
    struct cdcd_slice text = cdcd_json_text(name, tmp);
    for (uint32_t i = 0; i < n; i++) {
        if (cdcd_slice_eq(columns[i].name, text))
            return &columns[i];
    }
    return NULL;
}

/* ---- shapes ---- */

static bool is_struct(const struct cdcd_json_value *schema)
{
    struct cdcd_json_value type;
    return schema->kind == CDCD_JSON_OBJECT && cdcd_json_member(schema, "type", &type) &&
           es_string_is(&type, "struct");
}

static bool shape_init(struct es_shape *s, const struct cdcd_json_value *key,
                       const struct cdcd_json_value *row)
{
    if (is_struct(key) && !columns_init(&s->arena, key, &s->keys, &s->nkeys))
        return false;
    if (is_struct(row))
        return columns_init(&s->arena, row, &s->columns, &s->ncolumns);
    return row->kind == CDCD_JSON_NULL;
}

static struct entry *entry_new(void)
{
    struct entry *e = cdcd_xcalloc(1, sizeof *e);
    cdcd_arena_init(&e->shape.arena, 2048);
    return e;
}

static void drop(struct entry *e)
{
    e->next = NULL;
    free_entries(e);
}

/* ---- announced ones ---- */

const struct es_shape *es_shapes_find(const struct es_shapes *s, struct cdcd_slice version)
{
    for (const struct entry *e = s->announced; e; e = e->next) {
        if (version.len == strlen(e->shape.version) &&
            memcmp(e->shape.version, version.ptr, version.len) == 0)
            return &e->shape;
    }
    return NULL;
}

static bool known(const struct es_shapes *s, const struct cdcd_record *r)
{
    const struct es_shape *old = es_shapes_find(s, r->key);
    const struct entry *e = (const struct entry *)(const void *)old;
    return old && e->value_len == r->value.len &&
           memcmp(e->value_text, r->value.ptr, r->value.len) == 0;
}

static enum cdcd_rc no_schema(const struct cdcd_record *r, const char *why, struct cdcd_error *err)
{
    return cdcd_error_set(err, CDCD_ERR_DATA,
                          "a record of topic " CDCD_SCHEMA_TOPIC
                          " (key %.*s) is no schema of a table: %s; only cdcd writes to this topic",
                          (int)(r->key.len < 80 ? r->key.len : 80),
                          r->key.ptr ? r->key.ptr : "null", why);
}

enum cdcd_rc es_shapes_learn(struct es_shapes *s, const struct cdcd_record *r,
                             struct cdcd_error *err)
{
    struct cdcd_json_value v, key, row;
    if (!r->value.ptr)
        return CDCD_OK;
    if (!r->key.ptr || !r->key.len || r->key.len >= sizeof((struct es_shape *)0)->version)
        return no_schema(r, "the key is no version", err);
    if (known(s, r))
        return CDCD_OK;
    if (!cdcd_json_scan(r->value, &v) || !cdcd_json_member(&v, "key", &key) ||
        !cdcd_json_member(&v, "row", &row))
        return no_schema(r, "it is no JSON object with \"key\" and \"row\"", err);
    struct entry *e = entry_new();
    memcpy(e->shape.version, r->key.ptr, r->key.len);
    e->shape.document = row.kind == CDCD_JSON_NULL;
    if (!shape_init(&e->shape, &key, &row)) {
        drop(e);
        return no_schema(r, "its schemas are none of Kafka Connect's", err);
    }
    e->value_text = cdcd_xstrndup(r->value.ptr, r->value.len);
    e->value_len = r->value.len;
    e->next = s->announced;
    s->announced = e;
    return CDCD_OK;
}

/* ---- those in records ---- */

static bool same(const char *text, size_t len, struct cdcd_slice s)
{
    return len == s.len && (!len || memcmp(text, s.ptr, len) == 0);
}

/* Moves the one that is found to the front: neighbours are mostly of one table. */
static const struct es_shape *find_inline(struct es_shapes *s, struct cdcd_slice key,
                                          struct cdcd_slice value)
{
    for (struct entry **p = &s->inline_; *p; p = &(*p)->next) {
        struct entry *e = *p;
        if (!same(e->value_text, e->value_len, value) || !same(e->key_text, e->key_len, key))
            continue;
        *p = e->next;
        e->next = s->inline_;
        s->inline_ = e;
        return &e->shape;
    }
    return NULL;
}

/* The schema of the row: that of the envelope's `after`, or the struct itself when it is no
 * envelope. *document: the image is JSON text (MongoDB). */
static struct cdcd_json_value row_schema(const struct cdcd_json_value *value, bool *document)
{
    struct cdcd_json_value fields, field, name, after = {.kind = CDCD_JSON_NULL};
    struct cdcd_json_iter it;
    bool has_op = false, has_after = false;
    *document = false;
    if (!cdcd_json_member(value, "fields", &fields) || fields.kind != CDCD_JSON_ARRAY)
        return *value;
    for (cdcd_json_iter_init(&it, &fields); cdcd_json_iter_next(&it, NULL, &field);) {
        if (!cdcd_json_member(&field, "field", &name))
            continue;
        if (es_string_is(&name, "op"))
            has_op = true;
        if (es_string_is(&name, "after")) {
            has_after = true;
            after = field;
        }
    }
    if (!has_op || !has_after)
        return *value;
    *document = !is_struct(&after);
    return after;
}

static void put_version(struct es_shape *s, struct cdcd_slice key, struct cdcd_slice value)
{
    uint64_t h = es_hash(es_hash(ES_HASH_SEED, key.ptr ? key.ptr : "", key.len),
                         value.ptr ? value.ptr : "", value.len);
    snprintf(s->version, sizeof s->version, "%016llx", (unsigned long long)h);
}

enum cdcd_rc es_shapes_of_record(struct es_shapes *s, struct cdcd_slice key_schema,
                                 struct cdcd_slice value_schema, const struct es_shape **out,
                                 struct cdcd_error *err)
{
    struct cdcd_json_value key = {.kind = CDCD_JSON_NULL}, value = key, row = key;
    *out = find_inline(s, key_schema, value_schema);
    if (*out)
        return CDCD_OK;
    struct entry *e = entry_new();
    bool ok = (!key_schema.len || cdcd_json_scan(key_schema, &key)) &&
              (!value_schema.len || cdcd_json_scan(value_schema, &value));
    if (ok && value.kind == CDCD_JSON_OBJECT)
        row = row_schema(&value, &e->shape.document);
    if (e->shape.document)
        row.kind = CDCD_JSON_NULL;
    if (!ok || !shape_init(&e->shape, &key, &row)) {
        drop(e);
        return cdcd_error_set(
            err, CDCD_ERR_DATA,
            "the schema within the record is none of Kafka Connect's; "
            "value.converter must be org.apache.kafka.connect.json.JsonConverter");
    }
    put_version(&e->shape, key_schema, value_schema);
    e->key_len = key_schema.len;
    e->value_len = value_schema.len;
    e->key_text = cdcd_xstrndup(key_schema.ptr ? key_schema.ptr : "", key_schema.len);
    e->value_text = cdcd_xstrndup(value_schema.ptr ? value_schema.ptr : "", value_schema.len);
    e->next = s->inline_;
    s->inline_ = e;
    *out = &e->shape;
    return CDCD_OK;
}
