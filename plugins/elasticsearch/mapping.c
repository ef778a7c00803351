/*
 * Indexes: found, or made behind an alias; fields added as columns come.
 *
 * NAME is an alias, and the index behind it is NAME-000001, NAME-000002 after a replay, and so on.
 * An index that has the name itself was made by somebody else: it is used as it is. What was found
 * or made is noted in the state index, so that an index which was deleted under us is not made anew
 * without a word: it would lack all that will not come again.
 *
 * Servers make an index by themselves for a write to a name that they do not know. Where writes can
 * say that they are for an alias they do not; where they cannot, the index's uuid is looked at
 * after each request, before any of it counts as written.
 *
 * The template does not count for what cdcd makes itself (the same is in the request); it is there
 * for those who make the next index by hand.
 */
#include "mapping.h"

#include <stdio.h>
#include <stdlib.h>

struct known {
    struct known *next;
    struct cdcd_slice index, target; /* target: what is written to, on replay another one */
    bool alias, made;
    char uuid[ES_UUID_MAX];         /* of an index that has the name itself */
    const struct es_shape **shapes; /* owned: those whose columns the mapping has */
    size_t nshapes, shapes_cap;
};

#define BUCKETS 256

struct es_indexes {
    struct cdcd_arena arena;
    struct known *buckets[BUCKETS];
    struct known *last;
    const struct es_shape *last_shape; /* of last, ready */
};

/* ---- what is known ---- */

void es_indexes_free(struct es_indexes *x)
{
    if (!x)
        return;
    for (size_t b = 0; b < BUCKETS; b++) {
        for (struct known *k = x->buckets[b]; k; k = k->next)
            free(k->shapes);
    }
    cdcd_arena_free(&x->arena);
    free(x);
}

void es_indexes_forget(struct cdcd_sink *s)
{
    es_indexes_free(s->indexes);
    s->indexes = NULL;
}

static struct known *find(const struct es_indexes *x, struct cdcd_slice index)
{
    if (!x)
        return NULL;
    if (x->last && cdcd_slice_eq(x->last->index, index))
        return x->last;
    struct known *k = x->buckets[es_hash(ES_HASH_SEED, index.ptr, index.len) % BUCKETS];
    while (k && !cdcd_slice_eq(k->index, index))
        k = k->next;
    return k;
}

static struct known *add(struct es_indexes *x, struct cdcd_slice index)
{
    struct known **bucket = &x->buckets[es_hash(ES_HASH_SEED, index.ptr, index.len) % BUCKETS];
    struct known *k = cdcd_arena_alloc(&x->arena, sizeof *k);
    *k = (struct known){.next = *bucket};
    k->index = (struct cdcd_slice){cdcd_arena_dup(&x->arena, index.ptr, index.len), index.len};
    k->target = k->index;
    *bucket = k;
    return k;
}

static bool has_shape(const struct known *k, const struct es_shape *shape)
{
    for (size_t i = 0; i < k->nshapes; i++) {
        if (k->shapes[i] == shape)
            return true;
    }
    return false;
}

static void add_shape(struct known *k, const struct es_shape *shape)
{
    if (k->nshapes == k->shapes_cap) {
        k->shapes_cap = k->shapes_cap ? k->shapes_cap * 2 : 4;
        k->shapes = cdcd_xrealloc(k->shapes, k->shapes_cap * sizeof *k->shapes);
    }
    k->shapes[k->nshapes++] = shape;
}

/* Servers before 7.10 do not know require_alias. */
static bool knows_alias(const struct cdcd_sink *s)
{
    return s->server.opensearch || s->server.version >= 71000;
}

bool es_index_through_alias(const struct cdcd_sink *s, struct cdcd_slice index)
{
    const struct known *k = find(s->indexes, index);
    return k && k->alias && knows_alias(s);
}

struct cdcd_slice es_target(struct cdcd_sink *s, struct cdcd_slice index)
{
    const struct known *k = find(s->indexes, index);
    return k ? k->target : index;
}

/* ---- requests ---- */

static enum cdcd_rc call(struct cdcd_sink *s, const char *method, char *path, struct cdcd_buf *body,
                         struct es_reply *r, struct cdcd_error *err)
{
    struct cdcd_slice b = body ? cdcd_buf_slice(body) : (struct cdcd_slice){NULL, 0};
    return es_call(s, method, path, b, r, err);
}

/* A request whose reply is only looked at for its status; 404 is an answer. */
static enum cdcd_rc exists(struct cdcd_sink *s, const char *fmt, struct cdcd_slice index, bool *out,
                           struct cdcd_error *err)
{
    struct es_reply r;
    if (call(s, "GET", es_path(fmt, index), NULL, &r, err) != CDCD_OK)
        return CDCD_ERROR;
    enum cdcd_rc rc = CDCD_OK;
    *out = r.status == 200;
    if (r.status != 200 && r.status != 404)
        rc = es_fail(err, &r, "index %.*s", (int)index.len, index.ptr);
    es_reply_free(&r);
    return rc;
}

/* Composable templates came with 7.8; OpenSearch has them always. */
static bool legacy_templates(const struct cdcd_sink *s)
{
    return !s->server.opensearch && s->server.version < 70800;
}

/* Without the right to make templates everything else goes on. */
static enum cdcd_rc put_template(struct cdcd_sink *s, const struct known *k,
                                 const struct es_shape *shape, struct cdcd_error *err)
{
    bool legacy = legacy_templates(s);
    struct cdcd_buf body;
    struct es_reply r;
    struct cdcd_error own = {0};
    cdcd_buf_init(&body, 0);
    es_template_body(s->config, shape, k->index, legacy, &body);
    char *path = es_path(legacy ? "/_template/cdcd-%I" : "/_index_template/cdcd-%I", k->index);
    enum cdcd_rc rc = call(s, "PUT", path, &body, &r, &own);
    cdcd_buf_free(&body);
    if (rc == CDCD_OK) {
        if (r.status >= 400)
            rc = es_fail(&own, &r, "template cdcd-%.*s", (int)k->index.len, k->index.ptr);
        es_reply_free(&r);
    }
    if (rc == CDCD_OK)
        return CDCD_OK;
    if (own.class == CDCD_ERR_RETRY) {
        *err = own;
        return CDCD_ERROR;
    }
    cdcd_warn("elasticsearch",
              "%s. Goes on without: only an index that is made by hand would lack its settings and "
              "mappings",
              own.text);
    return CDCD_OK;
}

/* ---- making an index ---- */

/* NAME-000001 is there and the alias is not. */
static enum cdcd_rc no_alias(const struct known *k, struct cdcd_error *err)
{
    return cdcd_error_set(
        err, CDCD_ERR_CONFIG,
        "the index %.*s-000001 is there, but not the alias %.*s for it. If it is the right one: "
        "POST /_aliases {\"actions\":[{\"add\":{\"index\":\"%.*s-000001\",\"alias\":\"%.*s\","
        "\"is_write_index\":true}}]}; else delete it",
        (int)k->index.len, k->index.ptr, (int)k->index.len, k->index.ptr, (int)k->index.len,
        k->index.ptr, (int)k->index.len, k->index.ptr);
}

/* {"NAME":{"settings":{"index":{"uuid":"..."}}}} -> the uuid; "" when NAME is an alias. False: the
 * text is another one. */
static bool read_uuid(struct cdcd_slice body, struct cdcd_slice index, char out[ES_UUID_MAX])
{
    struct cdcd_json_value root, name, v;
    struct cdcd_json_iter it;
    out[0] = 0;
    if (!cdcd_json_scan(body, &root) || root.kind != CDCD_JSON_OBJECT)
        return false;
    cdcd_json_iter_init(&it, &root);
    if (!cdcd_json_iter_next(&it, &name, &v))
        return false;
    if (name.raw.len != index.len + 2 || memcmp(name.raw.ptr + 1, index.ptr, index.len) != 0)
        return true;
    if (!cdcd_json_member(&v, "settings", &v) || !cdcd_json_member(&v, "index", &v) ||
        !cdcd_json_member(&v, "uuid", &v) || v.kind != CDCD_JSON_STRING || v.raw.len > ES_UUID_MAX)
        return false;
    snprintf(out, ES_UUID_MAX, "%.*s", (int)v.raw.len - 2, v.raw.ptr + 1);
    return true;
}

/* The uuid of the index that has this name itself; "": an alias has it. */
static enum cdcd_rc ask_uuid(struct cdcd_sink *s, struct cdcd_slice index, char out[ES_UUID_MAX],
                             bool *found, struct cdcd_error *err)
{
    struct es_reply r;
    char *path = es_path("/%I/_settings?filter_path=*.settings.index.uuid", index);
    if (call(s, "GET", path, NULL, &r, err) != CDCD_OK)
        return CDCD_ERROR;
    enum cdcd_rc rc = CDCD_OK;
    out[0] = 0;
    *found = r.status == 200;
    if (r.status != 200 && r.status != 404)
        rc = es_fail(err, &r, "index %.*s", (int)index.len, index.ptr);
    else if (*found && !read_uuid(cdcd_buf_slice(&r.body), index, out))
        rc = cdcd_error_set(err, CDCD_ERR_RETRY,
                            "the server's answer for the settings of the index %.*s is not "
                            "complete",
                            (int)index.len, index.ptr);
    es_reply_free(&r);
    return rc;
}

static enum cdcd_rc look(struct cdcd_sink *s, struct known *k, bool *found, struct cdcd_error *err)
{
    if (exists(s, "/_alias/%I", k->index, &k->alias, err) != CDCD_OK)
        return CDCD_ERROR;
    *found = k->alias;
    return k->alias ? CDCD_OK : ask_uuid(s, k->index, k->uuid, found, err);
}

static enum cdcd_rc create(struct cdcd_sink *s, struct known *k, const struct es_shape *shape,
                           struct cdcd_error *err)
{
    struct cdcd_buf body;
    struct es_reply r;
    bool found = true;
    if (put_template(s, k, shape, err) != CDCD_OK)
        return CDCD_ERROR;
    cdcd_buf_init(&body, 0);
    es_mapping_body(s->config, shape, k->index, &body);
    enum cdcd_rc rc = call(s, "PUT", es_path("/%I-000001", k->index), &body, &r, err);
    cdcd_buf_free(&body);
    if (rc != CDCD_OK)
        return CDCD_ERROR;
    if (r.status < 300) {
        k->alias = k->made = true;
        cdcd_info("elasticsearch", "made the index %.*s-000001 behind the alias %.*s",
                  (int)k->index.len, k->index.ptr, (int)k->index.len, k->index.ptr);
    } else if (memmem(r.body.ptr ? r.body.ptr : "", r.body.len, "already_exists", 14)) {
        rc = look(s, k, &found, err); /* another instance was faster */
        if (rc == CDCD_OK && !found)
            rc = no_alias(k, err);
    } else {
        rc = es_fail(err, &r, "making the index %.*s-000001", (int)k->index.len, k->index.ptr);
    }
    es_reply_free(&r);
    return rc;
}

static enum cdcd_rc deleted_under_us(const struct cdcd_sink *s, const struct known *k,
                                     struct cdcd_error *err)
{
    return cdcd_error_set(
        err, CDCD_ERR_LOSS,
        "the index %.*s was deleted: a new one would lack all that was in it and does not come "
        "again. Restore it from a snapshot; or take the data in anew: with topics as the source by "
        "another group.id, with a database by another name of the pipeline (after deleting the "
        "document %s.index.%.*s of the index %s)",
        (int)k->index.len, k->index.ptr, s->env->pipeline, (int)k->index.len, k->index.ptr,
        s->config->state_index);
}

/* Another index bears the name now. */
static enum cdcd_rc made_anew(const struct cdcd_sink *s, const struct known *k,
                              const struct es_known *before, struct cdcd_error *err)
{
    return cdcd_error_set(
        err, CDCD_ERR_LOSS,
        "the index %.*s was deleted, and another one has its name now (%s%s; its uuid is %s), as "
        "servers make one by themselves for a write: it lacks all that was in it and does not come "
        "again. Delete it, and take the data in anew: with topics as the source by another "
        "group.id, with a database by another name of the pipeline; after deleting the document "
        "%s.index.%.*s of the index %s. If it is complete, restored from a snapshot for example, "
        "delete that document only",
        (int)k->index.len, k->index.ptr, before->alias ? "an alias had it before" : "it had ",
        before->alias ? "" : before->uuid, k->uuid, s->env->pipeline, (int)k->index.len,
        k->index.ptr, s->config->state_index);
}

enum cdcd_rc es_index_same(struct cdcd_sink *s, struct cdcd_slice index, struct cdcd_error *err)
{
    const struct known *k = find(s->indexes, index);
    struct known now;
    bool found;
    if (!k || s->env->replay || (k->alias && knows_alias(s)))
        return CDCD_OK;
    now = *k;
    if (ask_uuid(s, index, now.uuid, &found, err) != CDCD_OK)
        return CDCD_ERROR;
    if (!found)
        return deleted_under_us(s, k, err);
    struct es_known before = {.alias = k->alias};
    memcpy(before.uuid, k->uuid, sizeof before.uuid);
    /* An alias in front of the index, or behind it, is no loss. */
    bool same = !*now.uuid || (!k->alias && strcmp(now.uuid, k->uuid) == 0);
    return same ? CDCD_OK : made_anew(s, &now, &before, err);
}

/* A pipeline that begins with an index which is not empty: a snapshot brings what is there now, and
 * no deletes. */
static void warn_documents(struct cdcd_sink *s, const struct known *k)
{
    struct es_reply r;
    struct cdcd_error ignored = {0};
    struct cdcd_json_value root, v;
    int64_t n = 0;
    if (call(s, "GET", es_path("/%I/_count", k->index), NULL, &r, &ignored) != CDCD_OK)
        return;
    if (r.status == 200 && cdcd_json_scan(cdcd_buf_slice(&r.body), &root) &&
        cdcd_json_member(&root, "count", &v) && cdcd_json_int64(&v, &n) && n > 0)
        cdcd_warn("elasticsearch",
                  "the index %.*s has %lld documents already, and this pipeline begins anew: those "
                  "of rows that were deleted before stay in it. If it must equal the table, stop, "
                  "delete the index and the documents %s and %s.index.%.*s of the index %s, and "
                  "start again",
                  (int)k->index.len, k->index.ptr, (long long)n, s->env->pipeline, s->env->pipeline,
                  (int)k->index.len, k->index.ptr, s->config->state_index);
    es_reply_free(&r);
}

static enum cdcd_rc find_or_make(struct cdcd_sink *s, struct known *k, const struct es_shape *shape,
                                 struct cdcd_error *err)
{
    bool found;
    struct es_known before;
    if (look(s, k, &found, err) != CDCD_OK || es_known_get(s, k->index, &before, err) != CDCD_OK)
        return CDCD_ERROR;
    if (!found && before.guard.seq_no >= 0)
        return deleted_under_us(s, k, err);
    if (found && !k->alias && (before.alias || (*before.uuid && strcmp(before.uuid, k->uuid) != 0)))
        return made_anew(s, k, &before, err);
    if (!found && create(s, k, shape, err) != CDCD_OK)
        return CDCD_ERROR;
    if (found && !k->alias)
        cdcd_warn("elasticsearch",
                  "%.*s is an index, no alias: it is used as it is, and cdcd replay cannot put "
                  "another in its place",
                  (int)k->index.len, k->index.ptr);
    if (found && (before.guard.seq_no < 0 || es_state_fresh(s)))
        warn_documents(s, k);
    /* A note of an earlier version says neither. */
    if (before.guard.seq_no >= 0 && before.alias == k->alias && (k->alias || *before.uuid))
        return CDCD_OK;
    before.alias = k->alias;
    memcpy(before.uuid, k->uuid, sizeof before.uuid);
    return es_known_put(s, k->index, &before, err);
}

/* ---- columns ---- */

/* The properties of the first index of GET /NAME/_mapping. */
static bool properties(struct cdcd_slice body, struct cdcd_json_value *out)
{
    struct cdcd_json_value root, index, mappings;
    struct cdcd_json_iter it;
    if (!cdcd_json_scan(body, &root) || root.kind != CDCD_JSON_OBJECT)
        return false;
    cdcd_json_iter_init(&it, &root);
    if (!cdcd_json_iter_next(&it, NULL, &index) || !cdcd_json_member(&index, "mappings", &mappings))
        return false;
    return cdcd_json_member(&mappings, "properties", out) && out->kind == CDCD_JSON_OBJECT;
}

/* The field of that name; its JSON name has quotes and colon. */
static bool find_field(const struct cdcd_json_value *fields, struct cdcd_slice name,
                       struct cdcd_arena *tmp, struct cdcd_json_value *out)
{
    struct cdcd_json_iter it;
    struct cdcd_json_value field;
    cdcd_json_iter_init(&it, fields);
    while (cdcd_json_iter_next(&it, &field, out)) {
        if (cdcd_slice_eq(cdcd_json_text(&field, tmp), name))
            return true;
    }
    return false;
}

/* An object has no type in mappings. */
static bool same_type(const char *wanted, const struct cdcd_json_value *field)
{
    struct cdcd_json_value want, a, b;
    if (!cdcd_json_scan(cdcd_slice_str(wanted), &want))
        return false;
    bool has_a = cdcd_json_member(&want, "type", &a) && !es_string_is(&a, "object");
    bool has_b = cdcd_json_member(field, "type", &b) && !es_string_is(&b, "object");
    return has_a == has_b && (!has_a || cdcd_slice_eq(a.raw, b.raw));
}

static void warn_type(const struct known *k, const struct es_column *c, const char *wanted,
                      const struct cdcd_json_value *field)
{
    struct cdcd_json_value type = {.raw = {"object", 6}};
    cdcd_json_member(field, "type", &type);
    cdcd_warn("elasticsearch",
              "index %.*s: column %.*s is %s now, but the field is %.*s there and stays it; values "
              "that do not fit are refused, until cdcd replay has built the index anew",
              (int)k->index.len, k->index.ptr, (int)c->name.len, c->name.ptr, wanted,
              (int)type.raw.len, type.raw.ptr);
}

/* {"properties":{...}} of what the index does not have. False: it has all. */
static bool missing_fields(struct cdcd_sink *s, const struct known *k, const struct es_shape *shape,
                           const struct cdcd_json_value *fields, struct cdcd_buf *out)
{
    struct cdcd_arena tmp;
    struct cdcd_buf name;
    bool any = false;
    cdcd_arena_init(&tmp, 4096);
    cdcd_buf_init(&name, 0);
    cdcd_buf_adds(out, "{\"properties\":{");
    for (uint32_t i = 0; i < shape->ncolumns; i++) {
        const struct es_column *c = &shape->columns[i];
        const char *json = es_field_json(s->config, c);
        struct cdcd_json_value field;
        if (!json)
            continue;
        cdcd_buf_clear(&name);
        cdcd_buf_add(&name, c->name.ptr, c->name.len);
        if (es_name_reserved(c->name))
            cdcd_buf_adds(&name, "_");
        if (fields && find_field(fields, cdcd_buf_slice(&name), &tmp, &field)) {
            if (!same_type(json, &field))
                warn_type(k, c, json, &field);
            continue;
        }
        if (any)
            cdcd_buf_adds(out, ",");
        any = true;
        es_field_name(c, out);
        cdcd_buf_adds(out, json);
    }
    cdcd_buf_adds(out, "}}");
    cdcd_buf_free(&name);
    cdcd_arena_free(&tmp);
    return any;
}

/* A mapping that the server does not take is no reason to stop: it maps what comes by itself, and
 * what it cannot take is refused document by document, by the policy. */
static enum cdcd_rc put_fields(struct cdcd_sink *s, const struct known *k, struct cdcd_buf *body,
                               struct cdcd_error *err)
{
    struct es_reply r;
    struct cdcd_error own = {0};
    if (call(s, "PUT", es_path("/%I/_mapping", k->target), body, &r, err) != CDCD_OK)
        return CDCD_ERROR;
    enum cdcd_rc rc = CDCD_OK;
    if (r.status == 400) {
        es_fail(&own, &r, "new columns of the index %.*s", (int)k->target.len, k->target.ptr);
        cdcd_warn("elasticsearch", "%s", own.text);
    } else if (r.status >= 300) {
        rc = es_fail(err, &r, "new columns of the index %.*s", (int)k->target.len, k->target.ptr);
    } else {
        cdcd_info("elasticsearch", "index %.*s has new columns", (int)k->target.len, k->target.ptr);
    }
    es_reply_free(&r);
    return rc;
}

static enum cdcd_rc add_columns(struct cdcd_sink *s, const struct known *k,
                                const struct es_shape *shape, struct cdcd_error *err)
{
    struct es_reply r;
    struct cdcd_json_value fields;
    struct cdcd_buf body;
    if (!shape || !shape->ncolumns)
        return CDCD_OK;
    if (call(s, "GET", es_path("/%I/_mapping", k->target), NULL, &r, err) != CDCD_OK)
        return CDCD_ERROR;
    if (r.status != 200) {
        es_fail(err, &r, "the mapping of the index %.*s", (int)k->target.len, k->target.ptr);
        es_reply_free(&r);
        return CDCD_ERROR;
    }
    cdcd_buf_init(&body, 0);
    bool has = properties(cdcd_buf_slice(&r.body), &fields);
    bool any = missing_fields(s, k, shape, has ? &fields : NULL, &body);
    es_reply_free(&r);
    enum cdcd_rc rc = any ? put_fields(s, k, &body, err) : CDCD_OK;
    cdcd_buf_free(&body);
    if (rc == CDCD_OK && any && k->alias)
        rc = put_template(s, k, shape, err);
    return rc;
}

/* ---- ready ---- */

static enum cdcd_rc first_seen(struct cdcd_sink *s, struct known *k, const struct es_shape *shape,
                               struct cdcd_error *err)
{
    if (s->env->replay) {
        if (es_rebuild_target(s, k->index, shape, &k->target, err) != CDCD_OK)
            return CDCD_ERROR;
        k->target.ptr = cdcd_arena_dup(&s->indexes->arena, k->target.ptr, k->target.len);
        return CDCD_OK;
    }
    return find_or_make(s, k, shape, err);
}

/* An entry stands only when the index is there. */
static enum cdcd_rc enter(struct cdcd_sink *s, struct cdcd_slice index,
                          const struct es_shape *shape, struct known **out, struct cdcd_error *err)
{
    struct es_indexes *x = s->indexes;
    *out = find(x, index);
    if (*out)
        return CDCD_OK;
    struct known *k = add(x, index);
    if (first_seen(s, k, shape, err) != CDCD_OK) {
        struct known **p = &x->buckets[es_hash(ES_HASH_SEED, index.ptr, index.len) % BUCKETS];
        *p = k->next; /* it was put first */
        return CDCD_ERROR;
    }
    *out = k;
    return CDCD_OK;
}

enum cdcd_rc es_index_ready(struct cdcd_sink *s, struct cdcd_slice index,
                            const struct es_shape *shape, struct cdcd_error *err)
{
    struct known *k;
    if (!s->config->manage_index && !s->env->replay)
        return CDCD_OK;
    if (!s->indexes) {
        s->indexes = cdcd_xcalloc(1, sizeof *s->indexes);
        cdcd_arena_init(&s->indexes->arena, 4096);
    }
    struct es_indexes *x = s->indexes;
    if (x->last && x->last_shape == shape && cdcd_slice_eq(x->last->index, index))
        return CDCD_OK;
    if (enter(s, index, shape, &k, err) != CDCD_OK)
        return CDCD_ERROR;
    if (!has_shape(k, shape)) {
        /* What was just made has the columns. */
        if (!k->made && add_columns(s, k, shape, err) != CDCD_OK)
            return CDCD_ERROR;
        k->made = false;
        add_shape(k, shape);
    }
    x->last = k;
    x->last_shape = shape;
    return CDCD_OK;
}
