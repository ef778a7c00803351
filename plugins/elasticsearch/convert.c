/*
 * One record -> what is to be done in the index.
 *
 * Records are Debezium's: an envelope ({"before","after","op",...}), bare or as the payload beside
 * its schema; null is a tombstone. With record: row they are rows, as ExtractNewRecordState of
 * Kafka Connect leaves them.
 */
#include "convert.h"

#include <stdio.h>
#include <stdlib.h>

/* What is known of a topic from the records that came. */
struct topic {
    struct topic *next;
    struct cdcd_slice name, index;
    enum { TABLE_UNKNOWN, TABLE_ROWS, TABLE_DOCUMENTS } kind;
    bool own, schemas;    /* cdcd's own; CDCD_SCHEMA_TOPIC */
    bool warned_no_after; /* of an update without its document */
};

#define BUCKETS 256

struct es_converter {
    const struct es_config *cfg;
    const struct cdcd_sink_env *env;
    struct es_routes *routes;
    struct es_shapes *shapes;
    struct es_placeholder placeholder;
    struct es_values x;
    struct cdcd_arena arena; /* topics */
    struct topic *buckets[BUCKETS], *last;
};

/* One record on its way; lives on the stack. */
struct job {
    struct es_converter *c;
    const struct cdcd_record *r;
    struct cdcd_arena *a;
    struct es_action *out;
    struct cdcd_error *err;
    struct topic *topic;
    struct cdcd_json_value key, value; /* without their schemas; kind NULL: none */
    struct cdcd_json_members *members; /* of the value; NULL when it had a schema */
    const struct es_shape *shape;
};

static const struct cdcd_json_value nothing = {.kind = CDCD_JSON_NULL};

/* ---- the converter ---- */

static enum cdcd_rc check_version(const struct es_config *cfg, const struct cdcd_sink_env *env,
                                  struct cdcd_error *err)
{
    if (cfg->version_mode == ES_VERSION_POSITION && !env->version)
        return cdcd_error_set(err, CDCD_ERR_CONFIG,
                              "version: position needs a database as the source; with topics it is "
                              "offset (or auto)");
    return CDCD_OK;
}

enum cdcd_rc es_converter_new(const struct es_config *cfg, const struct cdcd_sink_env *env,
                              struct es_converter **out, struct cdcd_error *err)
{
    struct es_converter *c = cdcd_xcalloc(1, sizeof *c);
    c->cfg = cfg;
    c->env = env;
    cdcd_arena_init(&c->arena, 4096);
    cdcd_arena_init(&c->x.tmp, 16384);
    c->x.json_mode = cfg->json_mode;
    c->x.dots_mode = cfg->dots_mode;
    es_placeholder_init(&c->placeholder, env->placeholder);
    c->shapes = es_shapes_new();
    if (check_version(cfg, env, err) != CDCD_OK ||
        es_routes_new(cfg, env->topic_prefix, &c->routes, err) != CDCD_OK) {
        es_converter_free(c);
        return CDCD_ERROR;
    }
    *out = c;
    return CDCD_OK;
}

void es_converter_free(struct es_converter *c)
{
    if (!c)
        return;
    es_routes_free(c->routes);
    es_shapes_free(c->shapes);
    es_placeholder_free(&c->placeholder);
    cdcd_arena_free(&c->arena);
    cdcd_arena_free(&c->x.tmp);
    free(c);
}

static bool starts(struct cdcd_slice s, const char *with)
{
    size_t n = strlen(with);
    return s.len >= n && memcmp(s.ptr, with, n) == 0;
}

static struct topic *find_topic(struct es_converter *c, struct cdcd_slice name)
{
    if (c->last && cdcd_slice_eq(c->last->name, name))
        return c->last;
    struct topic **bucket = &c->buckets[es_hash(ES_HASH_SEED, name.ptr, name.len) % BUCKETS];
    struct topic *t = *bucket;
    while (t && !cdcd_slice_eq(t->name, name))
        t = t->next;
    if (!t) {
        t = cdcd_arena_alloc(&c->arena, sizeof *t);
        *t = (struct topic){.next = *bucket};
        t->name = (struct cdcd_slice){cdcd_arena_dup(&c->arena, name.ptr, name.len), name.len};
        t->schemas = es_slice_is(name, CDCD_SCHEMA_TOPIC);
        t->own = starts(name, "__cdcd.") || starts(name, "__debezium-heartbeat");
        *bucket = t;
    }
    c->last = t;
    return t;
}

/* ---- errors ---- */

static const struct cdcd_header *header(const struct cdcd_record *r, const char *name)
{
    for (uint32_t i = 0; i < r->nheaders; i++) {
        if (es_slice_is(r->headers[i].name, name))
            return &r->headers[i];
    }
    return NULL;
}

static enum cdcd_rc fail(const struct job *j, const char *why)
{
    const struct cdcd_record *r = j->r;
    const struct cdcd_header *pos = header(r, "cdcd.pos");
    char where[128] = "";
    size_t shown = r->key.len < 200 ? r->key.len : 200;
    if (r->partition >= 0)
        snprintf(where, sizeof where, ", partition %d, offset %lld", (int)r->partition,
                 (long long)r->offset);
    else if (pos)
        snprintf(where, sizeof where, ", cdcd.pos %.*s", (int)pos->value.len, pos->value.ptr);
    return cdcd_error_set(j->err, CDCD_ERR_DATA, "topic %.*s%s (key %.*s): %s",
                          (int)j->topic->name.len, j->topic->name.ptr, where,
                          r->key.ptr ? (int)shown : 4, r->key.ptr ? r->key.ptr : "null", why);
}

/* ---- versions ---- */

static enum cdcd_rc set_version(struct job *j)
{
    const struct es_config *cfg = j->c->cfg;
    const struct cdcd_header *h;
    struct cdcd_pos pos;
    bool offset = cfg->version_mode == ES_VERSION_OFFSET ||
                  (cfg->version_mode == ES_VERSION_AUTO && j->r->partition >= 0);
    if (offset && j->r->partition < 0)
        return cdcd_error_set(j->err, CDCD_ERR_CONFIG,
                              "version: offset needs topics as the source; with a database it is "
                              "position (or auto)");
    if (offset) {
        j->out->version = (uint64_t)j->r->offset;
        return CDCD_OK;
    }
    if (!j->c->env->version)
        return cdcd_error_set(j->err, CDCD_ERR_CONFIG,
                              "this source has no positions that can be versions of documents: put "
                              "Kafka between it and the index");
    h = header(j->r, "cdcd.pos");
    if (!h || !es_pos_read(h->value, &pos))
        return fail(j, "the record has no header cdcd.pos, which tells its place in the log");
    j->out->version = j->c->env->version(pos);
    return CDCD_OK;
}

/* ---- schemas ---- */

static enum cdcd_rc read_record(struct job *j)
{
    const struct cdcd_record *r = j->r;
    j->key = j->value = nothing;
    j->members->n = 0;
    if (r->value.ptr && !cdcd_json_scan_members(r->value, &j->value, j->members))
        return fail(j, "the value is no JSON");
    if (!r->key.ptr || cdcd_json_scan(r->key, &j->key))
        return CDCD_OK;
    if (j->c->cfg->record_form == ES_ENVELOPE)
        return fail(j, "the key is no JSON");
    /* Written by StringConverter: the key is the id, as it is. */
    j->key = (struct cdcd_json_value){.kind = CDCD_JSON_NUMBER, .raw = r->key};
    return CDCD_OK;
}

/* The shape of the row: from the record itself, or by the version in its header. */
static enum cdcd_rc find_shape(struct job *j)
{
    struct cdcd_slice key_schema, value_schema;
    es_unwrap(&j->key, &key_schema);
    if (es_unwrap(&j->value, &value_schema))
        j->members = NULL;
    if (key_schema.ptr || value_schema.ptr) {
        struct cdcd_error own;
        if (es_shapes_of_record(j->c->shapes, key_schema, value_schema, &j->shape, &own) != CDCD_OK)
            return fail(j, own.text);
        return CDCD_OK;
    }
    const struct cdcd_header *h = header(j->r, "cdcd.schema");
    if (!h)
        return CDCD_OK;
    j->shape = es_shapes_find(j->c->shapes, h->value);
    if (j->shape)
        return CDCD_OK;
    char why[512];
    snprintf(why, sizeof why,
             "nothing tells how its row is written: topic " CDCD_SCHEMA_TOPIC
             " has no schema %.*s. "
             "Where topics are copied, copy that one too; or capture with schemas.enable",
             (int)(h->value.len < 40 ? h->value.len : 40), h->value.ptr);
    return fail(j, why);
}

/* ---- keys ---- */

/* A tombstone of a topic that has brought nothing else yet may be of a table whose key is a text
 * column named id, or of a collection: then its text is JSON. */
static bool looks_like_document(struct job *j)
{
    struct cdcd_json_value id, inner;
    if (!cdcd_json_member(&j->key, "id", &id) || id.kind != CDCD_JSON_STRING)
        return false;
    return cdcd_json_scan(cdcd_json_text(&id, &j->c->x.tmp), &inner) &&
           (inner.kind == CDCD_JSON_STRING || inner.kind == CDCD_JSON_OBJECT);
}

static bool is_document(struct job *j)
{
    if (j->shape && j->shape->document)
        return true;
    /* The schema in a tombstone's key tells nothing of the value. */
    if (j->topic->kind == TABLE_UNKNOWN && (!j->shape || !j->shape->ncolumns))
        return looks_like_document(j);
    return j->topic->kind == TABLE_DOCUMENTS;
}

static enum cdcd_rc set_target(struct job *j, enum es_action_kind kind)
{
    struct es_values *x = &j->c->x;
    if (set_version(j) != CDCD_OK)
        return CDCD_ERROR;
    if (!j->topic->index.ptr)
        j->topic->index = es_route(j->c->routes, j->topic->name);
    j->out->index = j->topic->index;
    j->out->shape = j->shape;
    if (!es_id_make(x, j->shape, is_document(j), &j->key, j->a, &j->out->id))
        return fail(j, x->why);
    j->out->kind = kind;
    return CDCD_OK;
}

/* The id under which the row was before its key changed, or is afterwards. Whatever else the header
 * may hold says nothing. The two records of one change have the same source block, and no others
 * have that. */
static void read_other_id(struct job *j, const struct es_envelope *e, const char *name,
                          struct cdcd_slice *out)
{
    struct cdcd_json_value key;
    struct cdcd_slice schema, id;
    const struct cdcd_header *h = header(j->r, name);
    if (!h || !h->value.ptr || !cdcd_json_scan(h->value, &key))
        return;
    es_unwrap(&key, &schema);
    if (!es_id_make(&j->c->x, j->shape, false, &key, j->a, &id))
        return;
    *out = id;
    j->out->move = e->source.raw;
}

/* ---- documents ---- */

struct names {
    struct cdcd_slice *items;
    uint32_t n, cap;
};

static void add_name(struct cdcd_arena *a, struct names *list, struct cdcd_slice name)
{
    if (list->n == list->cap) {
        uint32_t cap = list->cap ? list->cap * 2 : 8;
        struct cdcd_slice *items = cdcd_arena_alloc(a, cap * sizeof *items);
        if (list->n)
            memcpy(items, list->items, list->n * sizeof *items);
        list->items = items;
        list->cap = cap;
    }
    list->items[list->n++] = name;
}

/* Names in `missing` are those in the document, as text. */
static void take_missing(struct job *j, const struct names *list)
{
    struct cdcd_slice *out = list->n ? cdcd_arena_alloc(j->a, list->n * sizeof *out) : NULL;
    for (uint32_t i = 0; i < list->n; i++) {
        struct cdcd_slice s = list->items[i];
        bool reserved = es_name_reserved(s);
        char *p = cdcd_arena_alloc(j->a, s.len + 2);
        memcpy(p, s.ptr, s.len);
        p[s.len] = '_';
        p[s.len + reserved] = 0;
        out[i] = (struct cdcd_slice){p, s.len + reserved};
    }
    const struct cdcd_header *h = list->n ? header(j->r, "cdcd.row") : NULL;
    j->out->missing = out;
    j->out->nmissing = list->n;
    j->out->row_follows = h && es_slice_is(h->value, "follows");
}

static enum cdcd_rc bad_column(struct job *j, struct cdcd_slice name)
{
    char why[700];
    snprintf(why, sizeof why, "column %.*s: %s", (int)(name.len < 128 ? name.len : 128), name.ptr,
             j->c->x.why);
    return fail(j, why);
}

static enum cdcd_rc write_row(struct job *j, const struct cdcd_json_value *row)
{
    struct es_values *x = &j->c->x;
    struct cdcd_json_iter it;
    struct cdcd_json_value name, v;
    struct names missing = {0};
    struct cdcd_writer w;
    bool first = true;
    cdcd_writer_begin(&w, j->a);
    cdcd_writer_char(&w, '{');
    cdcd_json_iter_init(&it, row);
    for (uint32_t i = 0; cdcd_json_iter_next(&it, &name, &v); i++) {
        if (es_is_placeholder(&j->c->placeholder, &v, &x->tmp)) {
            add_name(&x->tmp, &missing, cdcd_json_text(&name, &x->tmp));
            continue;
        }
        const struct es_column *c = NULL;
        if (j->shape && j->shape->ncolumns)
            c = es_shape_column(j->shape->columns, j->shape->ncolumns, i % j->shape->ncolumns,
                                &name, &x->tmp);
        if (!first)
            cdcd_writer_char(&w, ',');
        first = false;
        es_name_write(&w, name.raw);
        if (!es_value_write(x, &w, c, &v)) {
            cdcd_writer_end(&w);
            return bad_column(j, cdcd_json_text(&name, &x->tmp));
        }
    }
    cdcd_writer_char(&w, '}');
    j->out->source = cdcd_writer_end(&w);
    take_missing(j, &missing);
    return CDCD_OK;
}

static enum cdcd_rc write_document(struct job *j, const struct cdcd_json_value *image)
{
    struct es_values *x = &j->c->x;
    struct cdcd_json_value doc = *image;
    struct cdcd_writer w;
    if (image->kind == CDCD_JSON_STRING && !cdcd_json_scan(cdcd_json_text(image, &x->tmp), &doc))
        return fail(j, "the document in `after` is no JSON");
    cdcd_writer_begin(&w, j->a);
    bool ok = es_document_write(x, &w, &doc);
    j->out->source = cdcd_writer_end(&w);
    return ok ? CDCD_OK : fail(j, x->why);
}

/* ---- envelopes ---- */

static bool has_key(const struct job *j, const char *name)
{
    struct cdcd_json_value v;
    return cdcd_json_member(&j->key, name, &v);
}

/* Records that tell of no row: heartbeats, transaction metadata, changes of schemas. */
static bool tells_no_row(const struct job *j, const struct es_envelope *e)
{
    if (e->ts_ms.kind == CDCD_JSON_NUMBER && has_key(j, "serverName"))
        return true;
    if (es_string_is(&e->status, "BEGIN") || es_string_is(&e->status, "END"))
        return true;
    return e->changes.kind == CDCD_JSON_ARRAY ||
           (e->ddl.kind == CDCD_JSON_STRING && has_key(j, "databaseName"));
}

/* The topic that rows of the table go to, from the source block: the truncate of a table whose
 * topic is compacted stands in another, PREFIX.truncate. */
static struct cdcd_slice table_topic(struct job *j, const struct es_envelope *e)
{
    struct cdcd_arena *tmp = &j->c->x.tmp;
    struct cdcd_json_value schema, table, prefix;
    struct cdcd_slice name = j->topic->name, parts[3], delimiter;
    struct cdcd_writer w;
    size_t end = strlen("truncate");
    if (!has_key(j, "table") || name.len <= end ||
        memcmp(name.ptr + name.len - end, "truncate", end) != 0 ||
        !cdcd_json_member(&j->key, "schema", &schema) ||
        !cdcd_json_member(&j->key, "table", &table) || schema.kind != CDCD_JSON_STRING ||
        table.kind != CDCD_JSON_STRING || !cdcd_json_member(&e->source, "name", &prefix) ||
        prefix.kind != CDCD_JSON_STRING)
        return name;
    parts[0] = cdcd_json_text(&prefix, tmp);
    parts[1] = cdcd_json_text(&schema, tmp);
    parts[2] = cdcd_json_text(&table, tmp);
    if (parts[0].len + end > name.len)
        return name;
    delimiter = (struct cdcd_slice){name.ptr + parts[0].len, name.len - parts[0].len - end};
    cdcd_writer_begin(&w, tmp);
    for (int i = 0; i < 3; i++) {
        if (i)
            es_put(&w, delimiter);
        es_put(&w, parts[i]);
    }
    return cdcd_writer_end(&w);
}

/* Offsets order the records of one partition only, and a truncate stands in one, the rows that it
 * ends in all: applied by its offset it could leave old rows, or take new ones away. */
static enum cdcd_rc empty(struct job *j, const struct es_envelope *e)
{
    struct cdcd_slice topic = table_topic(j, e);
    if (j->r->partition >= 0 && j->c->cfg->truncate_mode == ES_TRUNCATE_EMPTY) {
        char why[768];
        snprintf(why, sizeof why,
                 "the table of topic %.*s was truncated, and offsets do not tell which rows of its "
                 "partitions were there before. Delete rows instead of TRUNCATE, capture straight "
                 "into the index, or set truncate: ignore and build the index anew (cdcd "
                 "replay) after the old records have left the topic",
                 (int)topic.len, topic.ptr);
        return fail(j, why);
    }
    if (set_version(j) != CDCD_OK)
        return CDCD_ERROR;
    j->out->index = es_route(j->c->routes, topic);
    j->out->kind = ES_EMPTY;
    return CDCD_OK;
}

static void learn_kind(struct job *j, const struct es_envelope *e)
{
    struct cdcd_json_value connector = nothing;
    bool may_be_row = e->after.kind != CDCD_JSON_STRING && e->update.kind != CDCD_JSON_OBJECT;
    if (j->topic->kind == TABLE_ROWS && may_be_row)
        return; /* the source block is long, and the connector of a topic stays the same */
    if (e->source.kind == CDCD_JSON_OBJECT)
        cdcd_json_member(&e->source, "connector", &connector);
    bool document = es_string_is(&connector, "mongodb") || !may_be_row;
    j->topic->kind = document ? TABLE_DOCUMENTS : TABLE_ROWS;
}

/* The document was deleted before it could be looked up: its delete follows. Or the capture brings
 * none. */
static void warn_no_after(struct job *j)
{
    if (j->topic->warned_no_after)
        return;
    j->topic->warned_no_after = true;
    cdcd_warn("elasticsearch",
              "topic %.*s has an update without its document. That happens when the document is "
              "deleted soon after; if it goes on, capture.mode must be change_streams_update_full "
              "where it is captured, or the index will be out of date",
              (int)j->topic->name.len, j->topic->name.ptr);
}

static enum cdcd_rc change(struct job *j, const struct es_envelope *e)
{
    learn_kind(j, e);
    if (j->topic->kind == TABLE_DOCUMENTS) {
        if (e->after.kind == CDCD_JSON_NULL && es_string_is(&e->op, "u")) {
            warn_no_after(j);
            return CDCD_OK;
        }
        if (e->after.kind != CDCD_JSON_STRING && e->after.kind != CDCD_JSON_OBJECT)
            return fail(j, "the record has no document in `after`");
        return set_target(j, ES_INDEX) == CDCD_OK ? write_document(j, &e->after) : CDCD_ERROR;
    }
    if (e->after.kind != CDCD_JSON_OBJECT)
        return fail(j, "the record has no row in `after`");
    if (set_target(j, ES_INDEX) != CDCD_OK)
        return CDCD_ERROR;
    read_other_id(j, e, "__debezium.oldkey", &j->out->moved_from);
    return write_row(j, &e->after);
}

static enum cdcd_rc delete (struct job *j, const struct es_envelope *e) {
    learn_kind(j, e); if (set_target(j, ES_DELETE) != CDCD_OK) return CDCD_ERROR;
    if (j->topic->kind == TABLE_ROWS) read_other_id(j, e, "__debezium.newkey", &j->out->moves_to);
    return CDCD_OK;
}

static enum cdcd_rc convert_envelope(struct job *j)
{
    struct es_envelope e;
    if (j->value.kind != CDCD_JSON_OBJECT)
        return fail(j, "the value is no envelope of a change: it is no JSON object");
    es_envelope_read(&j->value, j->members, &e);
    if (e.op.kind != CDCD_JSON_STRING || e.op.raw.len != 3) {
        if (tells_no_row(j, &e))
            return CDCD_OK;
        return fail(j, "the value is no envelope of a change: it has no \"op\". Set record: row "
                       "for rows as ExtractNewRecordState leaves them; or leave the topic out");
    }
    switch (e.op.raw.ptr[1]) {
    case 'c':
    case 'r':
    case 'u': return change(j, &e);
    case 'd': return delete (j, &e);
    case 't': return empty(j, &e);
    case 'm': return CDCD_OK;
    default: return fail(j, "the \"op\" of its envelope is none that is known (c, r, u, d, t, m)");
    }
}

/* ---- rows ---- */

static enum cdcd_rc convert_row(struct job *j)
{
    struct cdcd_json_value deleted;
    if (j->value.kind != CDCD_JSON_OBJECT)
        return fail(j, "the value is no row: it is no JSON object");
    if (cdcd_json_member(&j->value, "__deleted", &deleted) &&
        (es_string_is(&deleted, "true") || deleted.kind == CDCD_JSON_TRUE))
        return set_target(j, ES_DELETE);
    return set_target(j, ES_INDEX) == CDCD_OK ? write_row(j, &j->value) : CDCD_ERROR;
}

enum cdcd_rc es_convert(struct es_converter *c, const struct cdcd_record *r, struct cdcd_arena *a,
                        struct es_action *out, struct cdcd_error *err)
{
    struct cdcd_json_members members; /* not in the job, which is cleared */
    struct job j = {.c = c, .r = r, .a = a, .out = out, .err = err, .members = &members};
    struct cdcd_slice name = r->topic ? r->topic->name : r->topic_name;
    *out = (struct es_action){.kind = ES_NOTHING};
    cdcd_arena_reset(&c->x.tmp, 1u << 20);
    j.topic = find_topic(c, name);
    if (j.topic->schemas)
        return es_shapes_learn(c->shapes, r, err);
    if (j.topic->own)
        return CDCD_OK;
    if (read_record(&j) != CDCD_OK || find_shape(&j) != CDCD_OK)
        return CDCD_ERROR;
    if (j.value.kind == CDCD_JSON_NULL)
        return set_target(&j, ES_DELETE);
    return c->cfg->record_form == ES_ROW ? convert_row(&j) : convert_envelope(&j);
}
