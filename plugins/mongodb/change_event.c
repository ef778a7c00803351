/*
 * change_event.c: see change_event.h.
 */
#include "change_event.h"

#include <inttypes.h>

static const struct {
    const char *name;
    enum mg_event_kind kind;
    enum cdcd_op op;
    enum mg_command_kind command;
} types[] = {
    {"insert", MG_EVENT_DOCUMENT, CDCD_OP_CREATE, MG_CMD_OTHER},
    {"update", MG_EVENT_DOCUMENT, CDCD_OP_UPDATE, MG_CMD_OTHER},
    {"replace", MG_EVENT_DOCUMENT, CDCD_OP_UPDATE, MG_CMD_OTHER},
    {"delete", MG_EVENT_DOCUMENT, CDCD_OP_DELETE, MG_CMD_OTHER},
    {"invalidate", MG_EVENT_INVALIDATE, CDCD_OP_DDL, MG_CMD_OTHER},
    {"create", MG_EVENT_COMMAND, CDCD_OP_DDL, MG_CMD_CREATE},
    {"drop", MG_EVENT_COMMAND, CDCD_OP_DDL, MG_CMD_DROP},
    {"dropDatabase", MG_EVENT_COMMAND, CDCD_OP_DDL, MG_CMD_DROP_DATABASE},
    {"rename", MG_EVENT_COMMAND, CDCD_OP_DDL, MG_CMD_RENAME},
    {"modify", MG_EVENT_COMMAND, CDCD_OP_DDL, MG_CMD_MODIFY},
    {"createIndexes", MG_EVENT_COMMAND, CDCD_OP_DDL, MG_CMD_INDEX},
    {"dropIndexes", MG_EVENT_COMMAND, CDCD_OP_DDL, MG_CMD_INDEX},
    {"startIndexBuild", MG_EVENT_COMMAND, CDCD_OP_DDL, MG_CMD_INDEX},
    {"commitIndexBuild", MG_EVENT_COMMAND, CDCD_OP_DDL, MG_CMD_INDEX},
    {"abortIndexBuild", MG_EVENT_COMMAND, CDCD_OP_DDL, MG_CMD_INDEX},
    {"shardCollection", MG_EVENT_COMMAND, CDCD_OP_DDL, MG_CMD_OTHER},
    {"refineCollectionShardKey", MG_EVENT_COMMAND, CDCD_OP_DDL, MG_CMD_OTHER},
    {"reshardCollection", MG_EVENT_COMMAND, CDCD_OP_DDL, MG_CMD_OTHER},
};

static bool is(struct cdcd_slice a, const char *b)
{
    return a.len == strlen(b) && memcmp(a.ptr, b, a.len) == 0;
}

/* The text of a string element, without length and NUL. */
static struct cdcd_slice text_of(struct cdcd_slice v)
{
    return (struct cdcd_slice){v.ptr + 4, v.len - 5};
}

void mg_event_describe(const struct mg_event *e, struct cdcd_buf *out)
{
    if (e->type.ptr)
        cdcd_buf_add(out, e->type.ptr, e->type.len);
    else
        cdcd_buf_adds(out, "an event");
    if (e->db.ptr) {
        cdcd_buf_addf(out, " of %.*s", (int)e->db.len, e->db.ptr);
        if (e->collection.ptr)
            cdcd_buf_addf(out, ".%.*s", (int)e->collection.len, e->collection.ptr);
    }
    if (e->ts.t)
        cdcd_buf_addf(out, " at %" PRIu32 ":%" PRIu32, e->ts.t, e->ts.i);
}

static enum cdcd_rc bad(const struct mg_event *e, const char *why, struct cdcd_error *err)
{
    struct cdcd_buf where;
    cdcd_buf_init(&where, 0);
    mg_event_describe(e, &where);
    cdcd_error_set(err, CDCD_ERR_DATA, "change stream: %s: %s", cdcd_buf_cstr(&where), why);
    cdcd_buf_free(&where);
    return CDCD_ERROR;
}

/* {db, coll} */
static void read_namespace(struct cdcd_slice doc, struct cdcd_slice *db, struct cdcd_slice *coll)
{
    struct cdcd_bson_element e;
    if (cdcd_bson_find(doc, "db", &e) && e.type == CDCD_BSON_STRING)
        *db = text_of(e.value);
    if (cdcd_bson_find(doc, "coll", &e) && e.type == CDCD_BSON_STRING)
        *coll = text_of(e.value);
}

static bool number_of(const struct cdcd_bson_element *e, int64_t *out)
{
    if (e->type == CDCD_BSON_INT32)
        *out = cdcd_bson_int32(e->value);
    else if (e->type == CDCD_BSON_INT64)
        *out = cdcd_bson_int64(e->value);
    else
        return false;
    return true;
}

static void read_split(struct cdcd_slice doc, struct mg_event *out)
{
    struct cdcd_bson_element e;
    int64_t fragment = 0, of = 0;
    if (cdcd_bson_find(doc, "fragment", &e))
        (void)number_of(&e, &fragment);
    if (cdcd_bson_find(doc, "of", &e))
        (void)number_of(&e, &of);
    if (fragment < 1 || of < fragment || of > 1000)
        fragment = of = -1;
    out->fragment = (int32_t)fragment;
    out->of = (int32_t)of;
}

static void read_time(struct cdcd_slice v, struct mg_time *out)
{
    uint64_t n = (uint64_t)cdcd_bson_int64(v);
    *out = (struct mg_time){(uint32_t)(n >> 32), (uint32_t)n};
}

/* Fields that are documents, and where they go. */
static struct cdcd_slice *document_field(struct mg_event *out, struct cdcd_slice name)
{
    switch (name.len) {
    case 3: return is(name, "_id") ? &out->token : NULL;
    case 4: return is(name, "lsid") ? &out->lsid : NULL;
    case 11: return is(name, "documentKey") ? &out->key : NULL;
    case 12: return is(name, "fullDocument") ? &out->after : NULL;
    case 17: return is(name, "updateDescription") ? &out->update : NULL;
    case 20: return is(name, "operationDescription") ? &out->description : NULL;
    case 24: return is(name, "fullDocumentBeforeChange") ? &out->before : NULL;
    default: return NULL;
    }
}

static void read_field(const struct cdcd_bson_element *e, struct mg_event *out)
{
    struct cdcd_slice *document = document_field(out, e->name);
    if (document) {
        out->has_after |= document == &out->after;
        if (e->type == CDCD_BSON_DOCUMENT)
            *document = e->value;
    } else if (is(e->name, "operationType") && e->type == CDCD_BSON_STRING) {
        out->type = text_of(e->value);
    } else if (is(e->name, "clusterTime") && e->type == CDCD_BSON_TIMESTAMP) {
        read_time(e->value, &out->ts);
    } else if (is(e->name, "wallTime") && e->type == CDCD_BSON_DATE) {
        out->wall_ms = cdcd_bson_int64(e->value);
    } else if (is(e->name, "ns") && e->type == CDCD_BSON_DOCUMENT) {
        read_namespace(e->value, &out->db, &out->collection);
    } else if (is(e->name, "to") && e->type == CDCD_BSON_DOCUMENT) {
        read_namespace(e->value, &out->to_db, &out->to_collection);
    } else if (is(e->name, "txnNumber")) {
        out->has_txn = number_of(e, &out->txn_number);
    } else if (is(e->name, "collectionUUID") && e->type == CDCD_BSON_BINARY && e->value.len == 21) {
        out->uuid = (struct cdcd_slice){e->value.ptr + 5, 16};
    } else if (is(e->name, "splitEvent") && e->type == CDCD_BSON_DOCUMENT) {
        read_split(e->value, out);
    }
}

/* What its kind must have; NULL: all of it is there. */
static const char *lacks(const struct mg_event *e)
{
    if (!e->token.ptr)
        return "it has no resume token (_id)";
    if (e->kind == MG_EVENT_INVALIDATE || e->kind == MG_EVENT_UNKNOWN)
        return NULL;
    if (!e->ts.t)
        return "it has no clusterTime";
    if (!e->db.ptr)
        return "it has no ns";
    if (e->kind == MG_EVENT_COMMAND) {
        if (e->command == MG_CMD_RENAME && (!e->to_db.ptr || !e->to_collection.ptr))
            return "a rename without its new name";
        if (e->command != MG_CMD_DROP_DATABASE && !e->collection.ptr)
            return "it names no collection";
        return NULL;
    }
    if (!e->collection.ptr)
        return "it names no collection";
    if (!e->key.ptr)
        return "it has no documentKey";
    return NULL;
}

enum cdcd_rc mg_event_parse(struct cdcd_slice document, struct mg_event *out,
                            struct cdcd_error *err)
{
    *out = (struct mg_event){.wall_ms = INT64_MIN};
    struct cdcd_bson_iter it;
    struct cdcd_bson_element e;
    int more = cdcd_bson_iter_init(&it, document) ? 1 : -1;
    while (more == 1 && (more = cdcd_bson_iter_next(&it, &e)) == 1)
        read_field(&e, out);
    if (more < 0)
        return bad(out, "it is no well-formed BSON", err);
    if (out->fragment < 0)
        return bad(out, "its splitEvent makes no sense", err);
    if (out->of > 1) {
        out->kind = MG_EVENT_FRAGMENT;
        return out->token.ptr ? CDCD_OK : bad(out, "it has no resume token (_id)", err);
    }
    if (!out->type.ptr)
        return bad(out, "it has no operationType", err);
    out->kind = MG_EVENT_UNKNOWN;
    for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
        if (is(out->type, types[i].name)) {
            out->kind = types[i].kind;
            out->op = types[i].op;
            out->command = types[i].command;
            out->replaces = is(out->type, "replace");
            break;
        }
    }
    const char *why = lacks(out);
    return why ? bad(out, why, err) : CDCD_OK;
}

/* ---- an update ---- */

/* Elements of an array; -1: malformed. */
static int64_t count(struct cdcd_slice array)
{
    struct cdcd_bson_iter it;
    struct cdcd_bson_element e;
    int64_t n = 0;
    if (!cdcd_bson_iter_init(&it, array))
        return -1;
    for (int more; (more = cdcd_bson_iter_next(&it, &e)) != 0; n++) {
        if (more < 0)
            return -1;
    }
    return n;
}

static const char *read_removed(struct cdcd_slice array, struct cdcd_arena *a,
                                struct cdcd_update *out)
{
    int64_t n = count(array);
    if (n < 0)
        return "removedFields is malformed";
    struct cdcd_slice *names = cdcd_arena_alloc(a, (size_t)n * sizeof *names);
    struct cdcd_bson_iter it;
    struct cdcd_bson_element e;
    cdcd_bson_iter_init(&it, array);
    for (int64_t i = 0; i < n && cdcd_bson_iter_next(&it, &e) == 1; i++) {
        if (e.type != CDCD_BSON_STRING)
            return "removedFields holds something else than names";
        names[i] = text_of(e.value);
    }
    out->removed = names;
    out->nremoved = (uint32_t)n;
    return NULL;
}

static const char *read_truncated(struct cdcd_slice array, struct cdcd_arena *a,
                                  struct cdcd_update *out)
{
    int64_t n = count(array);
    if (n < 0)
        return "truncatedArrays is malformed";
    struct cdcd_truncated *list = cdcd_arena_alloc(a, (size_t)n * sizeof *list);
    struct cdcd_bson_iter it;
    struct cdcd_bson_element e, field, size;
    cdcd_bson_iter_init(&it, array);
    for (int64_t i = 0; i < n && cdcd_bson_iter_next(&it, &e) == 1; i++) {
        int64_t length = -1;
        if (e.type != CDCD_BSON_DOCUMENT || !cdcd_bson_find(e.value, "field", &field) ||
            field.type != CDCD_BSON_STRING || !cdcd_bson_find(e.value, "newSize", &size) ||
            !number_of(&size, &length) || length < 0 || length > INT32_MAX)
            return "truncatedArrays holds something else than {field, newSize}";
        list[i] = (struct cdcd_truncated){text_of(field.value), (int32_t)length};
    }
    out->truncated = list;
    out->ntruncated = (uint32_t)n;
    return NULL;
}

static const char *read_update_field(const struct cdcd_bson_element *e, struct cdcd_arena *a,
                                     struct cdcd_update *out)
{
    if (e->type == CDCD_BSON_NULL)
        return NULL;
    if (is(e->name, "updatedFields")) {
        if (e->type != CDCD_BSON_DOCUMENT)
            return "updatedFields is no document";
        out->updated = e->value;
        return NULL;
    }
    if (is(e->name, "removedFields"))
        return e->type == CDCD_BSON_ARRAY ? read_removed(e->value, a, out)
                                          : "removedFields is no array";
    if (is(e->name, "truncatedArrays"))
        return e->type == CDCD_BSON_ARRAY ? read_truncated(e->value, a, out)
                                          : "truncatedArrays is no array";
    if (is(e->name, "disambiguatedPaths")) {
        if (e->type != CDCD_BSON_DOCUMENT)
            return "disambiguatedPaths is no document";
        if (e->value.len > 5) /* an empty one says that nothing is ambiguous */
            out->ambiguous = e->value;
        return NULL;
    }
    /* What is not understood may say how the document changed. */
    return "updateDescription has a field that is not known";
}

static const char *read_update(struct cdcd_slice description, struct cdcd_arena *a,
                               struct cdcd_update **out)
{
    struct cdcd_update *u = cdcd_arena_alloc(a, sizeof *u);
    *u = (struct cdcd_update){.updated = {"\5\0\0\0", 5}};
    /* One copy for all that it points to, since it outlives the server's reply. */
    struct cdcd_slice copy = {cdcd_arena_dup(a, description.ptr, description.len), description.len};
    struct cdcd_bson_iter it;
    struct cdcd_bson_element e;
    if (!cdcd_bson_iter_init(&it, copy))
        return "updateDescription is malformed";
    for (int more; (more = cdcd_bson_iter_next(&it, &e)) != 0;) {
        const char *why = more < 0 ? "updateDescription is malformed" : read_update_field(&e, a, u);
        if (why)
            return why;
    }
    *out = u;
    return NULL;
}

/* ---- a command ---- */

static struct cdcd_slice bson_string(struct cdcd_arena *a, struct cdcd_slice db,
                                     struct cdcd_slice collection)
{
    size_t n = db.len + collection.len + (db.len && collection.len ? 1 : 0);
    char *p = cdcd_arena_alloc(a, 4 + n + 1), *at = p + 4;
    int32_t length = (int32_t)n + 1;
    memcpy(p, &length, 4);
    if (db.len)
        memcpy(at, db.ptr, db.len);
    at += db.len;
    if (db.len && collection.len)
        *at++ = '.';
    if (collection.len)
        memcpy(at, collection.ptr, collection.len);
    p[4 + n] = '\0';
    return (struct cdcd_slice){p, 4 + n + 1};
}

/* How the command is called, where the event has another name for it. */
static struct cdcd_slice command_name(const struct mg_event *e)
{
    if (e->command == MG_CMD_RENAME)
        return cdcd_slice_str("renameCollection");
    if (e->command == MG_CMD_MODIFY)
        return cdcd_slice_str("collMod");
    return e->type;
}

/* The command as the oplog has it: its name and collection first, then its description. */
static struct cdcd_slice command_document(const struct mg_event *e, struct cdcd_arena *a)
{
    bool whole = e->command == MG_CMD_RENAME || e->command == MG_CMD_OTHER;
    struct cdcd_slice none = {NULL, 0}, one = {"\1\0\0\0", 4};
    struct cdcd_slice value = e->command == MG_CMD_DROP_DATABASE
                                  ? one
                                  : bson_string(a, whole ? e->db : none, e->collection);
    struct cdcd_slice to = none;
    if (e->command == MG_CMD_RENAME)
        to = bson_string(a, e->to_db, e->to_collection);
    struct mg_writer w;
    mg_bson_begin(&w, a);
    mg_bson_element(&w, e->command == MG_CMD_DROP_DATABASE ? CDCD_BSON_INT32 : CDCD_BSON_STRING,
                    command_name(e), value);
    if (to.ptr)
        mg_bson_element(&w, CDCD_BSON_STRING, cdcd_slice_str("to"), to);
    struct cdcd_bson_iter it;
    struct cdcd_bson_element x;
    if (e->description.ptr && cdcd_bson_iter_init(&it, e->description)) {
        while (cdcd_bson_iter_next(&it, &x) == 1) {
            if (!to.ptr || !is(x.name, "to"))
                mg_bson_element(&w, x.type, x.name, x.value);
        }
    }
    return mg_bson_end(&w);
}

static void read_command(const struct mg_event *e, struct cdcd_arena *a, struct mg_command *out)
{
    struct cdcd_bson_element x;
    *out = (struct mg_command){
        .kind = e->command,
        .db = e->db,
        .collection = e->collection,
        .to_db = e->to_db,
        .to_collection = e->to_collection,
        .uuid = e->uuid,
        .o = command_document(e, a),
    };
    if (e->command == MG_CMD_RENAME && e->description.ptr &&
        cdcd_bson_find(e->description, "dropTarget", &x)) {
        out->drop_target = true;
        if (x.type == CDCD_BSON_BINARY && x.value.len == 21)
            out->target_uuid = (struct cdcd_slice){x.value.ptr + 5, 16};
    }
}

enum cdcd_rc mg_event_change(const struct mg_event *e, struct cdcd_arena *a, struct mg_change *out,
                             struct cdcd_error *err)
{
    *out = (struct mg_change){
        .op = e->op,
        .db = e->db,
        .collection = e->collection,
        .ts = e->ts,
        .wall_ms = e->wall_ms,
        .token = e->token,
    };
    /* The server names the session in events of transactions only. */
    if (e->lsid.ptr && e->has_txn) {
        out->transaction = true;
        out->lsid = e->lsid;
        out->txn_number = e->txn_number;
    }
    if (e->kind == MG_EVENT_COMMAND) {
        read_command(e, a, &out->command);
        return CDCD_OK;
    }
    struct cdcd_bson_element id;
    if (!cdcd_bson_find(e->key, "_id", &id))
        return bad(e, "its documentKey has no _id", err);
    if (!e->after.ptr && (e->op == CDCD_OP_CREATE || e->replaces))
        return bad(e, "it has no fullDocument", err);
    if (e->op == CDCD_OP_UPDATE && !e->replaces && !e->update.ptr)
        return bad(e, "it has no updateDescription", err);
    out->id = cdcd_cell_bson(id.type, id.value.ptr, id.value.len);
    out->replaces = e->replaces;
    out->before = e->before;
    if (e->op != CDCD_OP_DELETE)
        out->after = e->after;
    if (e->op == CDCD_OP_UPDATE && !e->replaces) {
        struct cdcd_update *update = NULL;
        const char *why = read_update(e->update, a, &update);
        if (why)
            return bad(e, why, err);
        out->update = update;
    }
    return CDCD_OK;
}

/* ---- fragments ---- */

/* A raw element within its document: from its type byte to its value's end. */
static struct cdcd_slice raw(const struct cdcd_bson_element *e)
{
    const char *begin = e->name.ptr - 1;
    return (struct cdcd_slice){begin, (size_t)(e->value.ptr + e->value.len - begin)};
}

static bool has_field(const struct cdcd_buf *fields, struct cdcd_slice name)
{
    struct cdcd_bson_iter it = {(const uint8_t *)fields->ptr,
                                (const uint8_t *)fields->ptr + fields->len};
    struct cdcd_bson_element e;
    while (cdcd_bson_iter_next(&it, &e) == 1) {
        if (cdcd_slice_eq(e.name, name))
            return true;
    }
    return false;
}

enum cdcd_rc mg_event_merge(struct cdcd_slice fragment, struct cdcd_buf *fields,
                            struct cdcd_error *err)
{
    struct cdcd_bson_iter it;
    struct cdcd_bson_element e;
    int more = cdcd_bson_iter_init(&it, fragment) ? 1 : -1;
    while (more == 1 && (more = cdcd_bson_iter_next(&it, &e)) == 1) {
        if (is(e.name, "_id") || is(e.name, "splitEvent") ||
            (fields->len > 0 && has_field(fields, e.name)))
            continue;
        struct cdcd_slice element = raw(&e);
        cdcd_buf_add(fields, element.ptr, element.len);
    }
    if (more < 0)
        return cdcd_error_set(err, CDCD_ERR_DATA,
                              "change stream: a fragment of a large event is no well-formed BSON");
    if (fields->failed)
        return cdcd_error_set(err, CDCD_ERR_DATA,
                              "change stream: the fragments of one event make more than %zu bytes",
                              fields->max);
    return CDCD_OK;
}

void mg_event_merged(struct cdcd_buf *fields, struct cdcd_slice token)
{
    struct cdcd_buf whole;
    cdcd_buf_init(&whole, 0);
    int32_t length = (int32_t)(4 + 5 + token.len + fields->len + 1);
    cdcd_buf_add(&whole, &length, 4);
    cdcd_buf_add(&whole, "\3_id", 5);
    cdcd_buf_add(&whole, token.ptr, token.len);
    cdcd_buf_add(&whole, fields->ptr, fields->len);
    cdcd_buf_add(&whole, "", 1);
    size_t max = fields->max;
    cdcd_buf_free(fields);
    *fields = whole;
    fields->max = max;
}

/* ---- tokens ---- */

static int hex_digit(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    c |= 0x20;
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* Bytes of the hexadecimal text; those that fit. 0: it is no such text. */
static size_t hex_bytes(struct cdcd_slice text, uint8_t *out, size_t max)
{
    size_t n = text.len / 2 < max ? text.len / 2 : max;
    for (size_t i = 0; i < n; i++) {
        int high = hex_digit(text.ptr[2 * i]), low = hex_digit(text.ptr[2 * i + 1]);
        if (high < 0 || low < 0)
            return 0;
        out[i] = (uint8_t)(high << 4 | low);
    }
    return n;
}

bool mg_token_time(struct cdcd_slice token, struct mg_time *out)
{
    struct cdcd_bson_element data, t;
    if (!token.ptr || !cdcd_bson_find(token, "_data", &data) || data.type != CDCD_BSON_STRING)
        return false;
    uint8_t bytes[4096];
    size_t n = hex_bytes(text_of(data.value), bytes, sizeof bytes);
    /* A key string: the type of a timestamp (130), then its eight bytes, the highest first. */
    if (n >= 9 && bytes[0] == 0x82) {
        out->t = (uint32_t)bytes[1] << 24 | (uint32_t)bytes[2] << 16 | (uint32_t)bytes[3] << 8 |
                 bytes[4];
        out->i = (uint32_t)bytes[5] << 24 | (uint32_t)bytes[6] << 16 | (uint32_t)bytes[7] << 8 |
                 bytes[8];
        return true;
    }
    /* SecantusDB: a BSON document whose "t" it is. */
    struct cdcd_slice document = {(const char *)bytes, n};
    if (n >= 5 && cdcd_bson_find(document, "t", &t) && t.type == CDCD_BSON_TIMESTAMP) {
        read_time(t.value, out);
        return true;
    }
    return false;
}
