/*
 * The position, in the index state.index: the document NAME holds
 *
 *     {"v":1,"pipeline":"shop","owner":"<random hex>","n":17,"state":"<the pipeline's own text>",
 *      "notes":{"set":"<owner>.3","parts":2}}
 *
 * and the documents NAME.notes.SET.0, .1, ... the source's notes (notes.h), which change seldom and
 * are written as a whole each time, before the state that needs them; then those of the set before
 * are deleted.
 *
 * Each write says which version of the document it replaces (if_seq_no, if_primary_term). load()
 * makes this process the owner; an older instance's next write then fails, and it stops. A reply
 * that was lost is told apart by owner and n.
 */
#include "sink.h"

#include <cdcd/json.h>

#include <openssl/evp.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/random.h>

#define STORE_MS    200 /* while more is coming, states are stored so far apart */
#define RETRY_MS    1000
#define CLAIMS      5 /* attempts to become the owner */
#define NOTES_BYTES ((size_t)1 << 20)
#define PARTS_MAX   10000 /* of a set whose parts were not counted */

struct es_state {
    char *name;     /* owned: the document's id */
    char owner[33]; /* this process, in hex */
    struct es_guard guard;
    uint64_t n; /* writes of the owner */
    struct cdcd_buf text;
    bool dirty, notes_dirty, index_ready;
    bool fresh;               /* nothing was stored when the session began */
    struct cdcd_notes *notes; /* all of them, as settled */
    char *set;                /* owned: of the notes that are stored; NULL: none */
    uint64_t nset, parts;
};

struct es_state *es_state_new(const struct cdcd_sink_env *env)
{
    struct es_state *st = cdcd_xcalloc(1, sizeof *st);
    unsigned char raw[16];
    st->name = cdcd_xasprintf("%s%s", env->pipeline, env->replay ? ".replay" : "");
    for (size_t n = 0; n < sizeof raw;) {
        ssize_t k = getrandom(raw + n, sizeof raw - n, 0);
        if (k > 0)
            n += (size_t)k;
    }
    for (size_t i = 0; i < sizeof raw; i++)
        snprintf(st->owner + 2 * i, 3, "%02x", raw[i]);
    cdcd_buf_init(&st->text, 0);
    st->notes = cdcd_notes_new();
    return st;
}

void es_state_free(struct es_state *st)
{
    if (!st)
        return;
    cdcd_buf_free(&st->text);
    cdcd_notes_free(st->notes);
    free(st->name);
    free(st->set);
    free(st);
}

/* ---- documents of the state index ---- */

static const char state_mapping[] = "{\"settings\":{\"number_of_shards\":1,"
                                    "\"auto_expand_replicas\":\"0-1\"},"
                                    "\"mappings\":{\"enabled\":false}}";

static struct cdcd_slice index_of(const struct cdcd_sink *s)
{
    return cdcd_slice_str(s->config->state_index);
}

static enum cdcd_rc make_index(struct cdcd_sink *s, struct cdcd_error *err)
{
    struct es_reply r;
    char type[96], reason[256];
    if (s->state->index_ready)
        return CDCD_OK;
    if (es_call(s, "HEAD", es_path("/%I", index_of(s)), (struct cdcd_slice){NULL, 0}, &r, err) !=
        CDCD_OK)
        return CDCD_ERROR;
    s->state->index_ready = r.status == 200;
    es_reply_free(&r);
    if (s->state->index_ready)
        return CDCD_OK;
    if (es_call(s, "PUT", es_path("/%I", index_of(s)), cdcd_slice_str(state_mapping), &r, err) !=
        CDCD_OK)
        return CDCD_ERROR;
    es_reason(cdcd_buf_slice(&r.body), type, sizeof type, reason, sizeof reason);
    enum cdcd_rc rc = CDCD_OK;
    if (r.status != 200 && strcmp(type, "resource_already_exists_exception") != 0)
        rc = es_fail(err, &r, "the index for positions cannot be made");
    s->state->index_ready = rc == CDCD_OK;
    es_reply_free(&r);
    return rc;
}

static bool read_guard(const struct cdcd_json_value *root, struct es_guard *guard)
{
    struct cdcd_json_value seq_no, term;
    return cdcd_json_member(root, "_seq_no", &seq_no) &&
           cdcd_json_member(root, "_primary_term", &term) &&
           cdcd_json_int64(&seq_no, &guard->seq_no) && cdcd_json_int64(&term, &guard->primary_term);
}

enum cdcd_rc es_doc_get(struct cdcd_sink *s, const char *id, struct cdcd_buf *source,
                        struct es_guard *guard, struct cdcd_error *err)
{
    struct es_reply r;
    struct cdcd_json_value root, value;
    *guard = (struct es_guard){-1, -1};
    char *path = es_path("/%I/_doc/%I", index_of(s), cdcd_slice_str(id));
    if (es_call(s, "GET", path, (struct cdcd_slice){NULL, 0}, &r, err) != CDCD_OK)
        return cdcd_error_context(err, "the state index");
    enum cdcd_rc rc = CDCD_OK;
    if (r.status == 404) {
        char type[96], reason[256];
        es_reason(cdcd_buf_slice(&r.body), type, sizeof type, reason, sizeof reason);
        if (*type && strcmp(type, "index_not_found_exception") != 0)
            rc = es_fail(err, &r, "the state index %s", s->config->state_index);
    } else if (r.status != 200) {
        rc = es_fail(err, &r, "the state index %s", s->config->state_index);
    } else if (!cdcd_json_scan(cdcd_buf_slice(&r.body), &root) || !read_guard(&root, guard) ||
               !cdcd_json_member(&root, "_source", &value)) {
        rc = cdcd_error_set(err, CDCD_ERR_RETRY,
                            "the server's answer for the document %s of the state index %s is not "
                            "complete",
                            id, s->config->state_index);
    } else {
        cdcd_buf_add(source, value.raw.ptr, value.raw.len);
    }
    es_reply_free(&r);
    return rc;
}

static char *put_path(struct cdcd_sink *s, const char *id, const struct es_guard *guard)
{
    char *path = es_path("/%I/_doc/%I", index_of(s), cdcd_slice_str(id));
    char *whole = guard->seq_no < 0
                      ? cdcd_xasprintf("%s?op_type=create", path)
                      : cdcd_xasprintf("%s?if_seq_no=%lld&if_primary_term=%lld", path,
                                       (long long)guard->seq_no, (long long)guard->primary_term);
    free(path);
    return whole;
}

enum cdcd_rc es_doc_put(struct cdcd_sink *s, const char *id, struct cdcd_slice source,
                        struct es_guard *guard, struct cdcd_error *err)
{
    struct es_reply r;
    struct cdcd_json_value root;
    if (make_index(s, err) != CDCD_OK ||
        es_call(s, "PUT", put_path(s, id, guard), source, &r, err) != CDCD_OK)
        return cdcd_error_context(err, "the state index");
    enum cdcd_rc rc = CDCD_OK;
    if (r.status == 409)
        rc = CDCD_AGAIN;
    else if (r.status != 200 && r.status != 201)
        rc = es_fail(err, &r, "the state index %s", s->config->state_index);
    else if (!cdcd_json_scan(cdcd_buf_slice(&r.body), &root) || !read_guard(&root, guard))
        rc = cdcd_error_set(err, CDCD_ERR_RETRY,
                            "the server's answer to a write to the state index %s is not complete",
                            s->config->state_index);
    if (r.status == 404)
        s->state->index_ready = false;
    es_reply_free(&r);
    return rc;
}

static enum cdcd_rc delete_doc(struct cdcd_sink *s, const char *id, bool *was_there,
                               struct cdcd_error *err)
{
    struct es_reply r;
    char *path = es_path("/%I/_doc/%I", index_of(s), cdcd_slice_str(id));
    if (es_call(s, "DELETE", path, (struct cdcd_slice){NULL, 0}, &r, err) != CDCD_OK)
        return cdcd_error_context(err, "the state index");
    enum cdcd_rc rc = r.status == 200 || r.status == 404
                          ? CDCD_OK
                          : es_fail(err, &r, "the state index %s", s->config->state_index);
    *was_there = r.status == 200;
    es_reply_free(&r);
    return rc;
}

enum cdcd_rc es_doc_delete(struct cdcd_sink *s, const char *id, struct cdcd_error *err)
{
    bool was_there;
    return delete_doc(s, id, &was_there, err);
}

/* ---- indexes that were there ---- */

static char *known_id(const struct cdcd_sink *s, struct cdcd_slice index)
{
    return cdcd_xasprintf("%s.index.%.*s", s->env->pipeline, (int)index.len, index.ptr);
}

enum cdcd_rc es_known_get(struct cdcd_sink *s, struct cdcd_slice index, struct es_known *out,
                          struct cdcd_error *err)
{
    struct cdcd_buf source;
    struct cdcd_json_value root, v;
    char *id = known_id(s, index);
    *out = (struct es_known){0};
    cdcd_buf_init(&source, 0);
    enum cdcd_rc rc = es_doc_get(s, id, &source, &out->guard, err);
    if (rc == CDCD_OK && cdcd_json_scan(cdcd_buf_slice(&source), &root)) {
        out->alias = cdcd_json_member(&root, "alias", &v) && v.kind == CDCD_JSON_TRUE;
        if (cdcd_json_member(&root, "uuid", &v) && v.kind == CDCD_JSON_STRING)
            snprintf(out->uuid, sizeof out->uuid, "%.*s", (int)v.raw.len - 2, v.raw.ptr + 1);
    }
    cdcd_buf_free(&source);
    free(id);
    return rc;
}

enum cdcd_rc es_known_put(struct cdcd_sink *s, struct cdcd_slice index, struct es_known *known,
                          struct cdcd_error *err)
{
    char *id = known_id(s, index);
    char *text = known->alias ? cdcd_xstrdup("{\"v\":1,\"alias\":true}")
                              : cdcd_xasprintf("{\"v\":1,\"uuid\":\"%s\"}", known->uuid);
    enum cdcd_rc rc = es_doc_put(s, id, cdcd_slice_str(text), &known->guard, err);
    free(text);
    free(id);
    return rc == CDCD_AGAIN ? CDCD_OK : rc;
}

/* ---- the state's document ---- */

static void write_document(const struct es_state *st, uint64_t n, struct cdcd_buf *out)
{
    cdcd_buf_addf(out, "{\"v\":1,\"pipeline\":");
    es_json_string(out, cdcd_slice_str(st->name));
    cdcd_buf_addf(out, ",\"owner\":\"%s\",\"n\":%llu,\"state\":", st->owner, (unsigned long long)n);
    es_json_string(out, cdcd_buf_slice(&st->text));
    if (st->set)
        cdcd_buf_addf(out, ",\"notes\":{\"set\":\"%s\",\"parts\":%llu}", st->set,
                      (unsigned long long)st->parts);
    cdcd_buf_adds(out, "}");
}

struct held {
    struct cdcd_slice owner, state, set;
    int64_t n, parts;
};

static struct cdcd_slice text_member(const struct cdcd_json_value *o, const char *name,
                                     struct cdcd_arena *a)
{
    struct cdcd_json_value v;
    if (!cdcd_json_member(o, name, &v) || v.kind != CDCD_JSON_STRING)
        return (struct cdcd_slice){NULL, 0};
    return cdcd_json_text(&v, a);
}

static bool read_document(struct cdcd_slice text, struct cdcd_arena *a, struct held *out)
{
    struct cdcd_json_value root, v, notes;
    int64_t version = 0;
    *out = (struct held){0};
    if (!cdcd_json_scan(text, &root) || !cdcd_json_member(&root, "v", &v) ||
        !cdcd_json_int64(&v, &version) || version != 1 || !cdcd_json_member(&root, "n", &v) ||
        !cdcd_json_int64(&v, &out->n))
        return false;
    out->owner = text_member(&root, "owner", a);
    out->state = text_member(&root, "state", a);
    if (cdcd_json_member(&root, "notes", &notes)) {
        out->set = text_member(&notes, "set", a);
        if (!out->set.ptr || !cdcd_json_member(&notes, "parts", &v) ||
            !cdcd_json_int64(&v, &out->parts))
            return false;
    }
    return out->owner.ptr && out->state.ptr;
}

static enum cdcd_rc unreadable(const struct cdcd_sink *s, struct cdcd_error *err)
{
    return cdcd_error_set(err, CDCD_ERR_FATAL,
                          "the document %s of the index %s cannot be read: it was written by "
                          "another version of cdcd or by another program; if it is not needed, "
                          "delete it, and the pipeline begins anew",
                          s->state->name, s->config->state_index);
}

static enum cdcd_rc fenced(const struct cdcd_sink *s, struct cdcd_error *err)
{
    return cdcd_error_set(err, CDCD_ERR_LOSS,
                          "another instance of pipeline %s has taken over (document %s of the "
                          "index %s); stop one of them, or give one another name",
                          s->env->pipeline, s->state->name, s->config->state_index);
}

/* ---- notes ---- */

static char *part_id(const struct es_state *st, const char *set, uint64_t i)
{
    return cdcd_xasprintf("%s.notes.%s.%llu", st->name, set, (unsigned long long)i);
}

static void add_base64(struct cdcd_buf *out, struct cdcd_slice bytes)
{
    char *to = cdcd_buf_reserve(out, bytes.len / 3 * 4 + 8);
    if (!to)
        return;
    *to++ = '"';
    int n = EVP_EncodeBlock((unsigned char *)to, (const unsigned char *)bytes.ptr, (int)bytes.len);
    to[n] = '"';
    out->len += (size_t)n + 2;
}

static bool from_base64(const struct cdcd_json_value *v, struct cdcd_arena *a,
                        struct cdcd_slice *out)
{
    if (v->kind != CDCD_JSON_STRING)
        return false;
    struct cdcd_slice text = cdcd_json_text(v, a);
    char *to = cdcd_arena_alloc(a, text.len + 4);
    int n = EVP_DecodeBlock((unsigned char *)to, (const unsigned char *)text.ptr, (int)text.len);
    if (n < 0)
        return false;
    for (size_t i = text.len; i > 0 && text.ptr[i - 1] == '=' && n > 0; i--)
        n--;
    *out = (struct cdcd_slice){to, (size_t)n};
    return true;
}

static enum cdcd_rc write_part(struct cdcd_sink *s, const char *set, uint64_t i,
                               struct cdcd_buf *part, struct cdcd_error *err)
{
    struct es_reply r;
    char *id = part_id(s->state, set, i);
    cdcd_buf_adds(part, "]}");
    char *path = es_path("/%I/_doc/%I", index_of(s), cdcd_slice_str(id));
    free(id);
    if (make_index(s, err) != CDCD_OK) {
        free(path);
        return CDCD_ERROR;
    }
    if (es_call(s, "PUT", path, cdcd_buf_slice(part), &r, err) != CDCD_OK)
        return CDCD_ERROR;
    enum cdcd_rc rc = r.status == 200 || r.status == 201
                          ? CDCD_OK
                          : es_fail(err, &r, "the state index %s", s->config->state_index);
    es_reply_free(&r);
    cdcd_buf_clear(part);
    return rc;
}

static enum cdcd_rc write_notes(struct cdcd_sink *s, const char *set, uint64_t *parts,
                                struct cdcd_error *err)
{
    const struct es_state *st = s->state;
    struct cdcd_buf part;
    enum cdcd_rc rc = CDCD_OK;
    cdcd_buf_init(&part, 0);
    *parts = 0;
    size_t n = cdcd_notes_count(st->notes);
    for (size_t i = 0; rc == CDCD_OK && i < n; i++) {
        struct cdcd_slice key, value;
        cdcd_notes_at(st->notes, i, &key, &value);
        cdcd_buf_adds(&part, part.len ? ",[" : "{\"notes\":[[");
        add_base64(&part, key);
        cdcd_buf_adds(&part, ",");
        add_base64(&part, value);
        cdcd_buf_adds(&part, "]");
        if (part.len >= NOTES_BYTES || i + 1 == n)
            rc = write_part(s, set, (*parts)++, &part, err);
    }
    cdcd_buf_free(&part);
    return rc == CDCD_OK ? CDCD_OK : cdcd_error_context(err, "the source's notes");
}

/* Takes the set's name. What cannot be deleted stays, and does no harm. */
static void delete_notes(struct cdcd_sink *s, char *set)
{
    struct cdcd_error err = {0};
    bool more = true;
    for (uint64_t i = 0; more && i < PARTS_MAX; i++) {
        char *id = part_id(s->state, set, i);
        if (delete_doc(s, id, &more, &err) != CDCD_OK) {
            cdcd_debug("elasticsearch", "old notes stay: %s", err.text);
            more = false;
        }
        free(id);
    }
    free(set);
}

/* A process that was killed while it stored notes has left the set behind that it was about to name
 * in the state, or the one that was named there before. */
static void delete_left_notes(struct cdcd_sink *s, const char *owner)
{
    const char *set = s->state->set, *dot = set ? strrchr(set, '.') : NULL;
    unsigned long long k = dot ? strtoull(dot + 1, NULL, 10) : 0;
    if (k > 1)
        delete_notes(s, cdcd_xasprintf("%.*s.%llu", (int)(dot - set), set, k - 1));
    if (k > 0)
        delete_notes(s, cdcd_xasprintf("%.*s.%llu", (int)(dot - set), set, k + 1));
    if (!set || strncmp(set, owner, 8) != 0)
        delete_notes(s, cdcd_xasprintf("%.8s.1", owner));
}

static bool read_part(struct cdcd_slice text, struct cdcd_arena *a, struct cdcd_notes *out)
{
    struct cdcd_json_value root, list, pair, k, v;
    struct cdcd_json_iter it, in;
    if (!cdcd_json_scan(text, &root) || !cdcd_json_member(&root, "notes", &list) ||
        list.kind != CDCD_JSON_ARRAY)
        return false;
    cdcd_json_iter_init(&it, &list);
    while (cdcd_json_iter_next(&it, NULL, &pair)) {
        struct cdcd_slice key, value;
        if (pair.kind != CDCD_JSON_ARRAY)
            return false;
        cdcd_json_iter_init(&in, &pair);
        if (!cdcd_json_iter_next(&in, NULL, &k) || !cdcd_json_iter_next(&in, NULL, &v) ||
            !from_base64(&k, a, &key) || !from_base64(&v, a, &value))
            return false;
        cdcd_notes_set(out, key, value);
    }
    return true;
}

static enum cdcd_rc read_notes(struct cdcd_sink *s, struct cdcd_notes *out, struct cdcd_error *err)
{
    struct es_state *st = s->state;
    enum cdcd_rc rc = CDCD_OK;
    for (uint64_t i = 0; rc == CDCD_OK && st->set && i < st->parts; i++) {
        struct cdcd_buf source;
        struct cdcd_arena a;
        struct es_guard guard;
        cdcd_buf_init(&source, 0);
        cdcd_arena_init(&a, 64 << 10);
        char *id = part_id(st, st->set, i);
        rc = es_doc_get(s, id, &source, &guard, err);
        if (rc == CDCD_OK &&
            (guard.seq_no < 0 || !read_part(cdcd_buf_slice(&source), &a, st->notes)))
            rc = cdcd_error_set(err, CDCD_ERR_LOSS,
                                "the document %s of the index %s, part of what the source must "
                                "remember with its position, is gone or broken; delete the "
                                "document %s there, and the pipeline begins anew with a snapshot",
                                id, s->config->state_index, st->name);
        free(id);
        cdcd_arena_free(&a);
        cdcd_buf_free(&source);
    }
    for (size_t i = 0; rc == CDCD_OK && i < cdcd_notes_count(st->notes); i++) {
        struct cdcd_slice key, value;
        cdcd_notes_at(st->notes, i, &key, &value);
        cdcd_notes_set(out, key, value);
    }
    return rc;
}

/* ---- load ---- */

/* Reads what is there, and writes it again as ours. AGAIN: somebody else was faster. */
static enum cdcd_rc claim(struct cdcd_sink *s, struct cdcd_error *err)
{
    struct es_state *st = s->state;
    struct cdcd_buf text;
    struct cdcd_arena a;
    struct held held = {0};
    cdcd_buf_init(&text, 0);
    cdcd_arena_init(&a, 4096);
    enum cdcd_rc rc = es_doc_get(s, st->name, &text, &st->guard, err);
    if (rc == CDCD_OK && st->guard.seq_no >= 0 && !read_document(cdcd_buf_slice(&text), &a, &held))
        rc = unreadable(s, err);
    char *before = rc == CDCD_OK && held.owner.ptr ? cdcd_xstrndup(held.owner.ptr, held.owner.len)
                                                   : NULL;
    if (rc == CDCD_OK) {
        cdcd_buf_clear(&st->text);
        cdcd_buf_add(&st->text, held.state.ptr, held.state.len);
        free(st->set);
        st->set = held.set.ptr ? cdcd_xstrndup(held.set.ptr, held.set.len) : NULL;
        st->parts = (uint64_t)held.parts;
        st->n = 1;
        cdcd_buf_clear(&text);
        write_document(st, st->n, &text);
        rc = es_doc_put(s, st->name, cdcd_buf_slice(&text), &st->guard, err);
    }
    if (rc == CDCD_OK && before)
        delete_left_notes(s, before);
    free(before);
    cdcd_arena_free(&a);
    cdcd_buf_free(&text);
    return rc;
}

enum cdcd_rc es_state_load(struct cdcd_sink *s, struct cdcd_buf *state, struct cdcd_notes *notes,
                           struct cdcd_error *err)
{
    struct es_state *st = s->state;
    enum cdcd_rc rc = CDCD_AGAIN;
    st->dirty = st->notes_dirty = st->index_ready = false;
    cdcd_notes_clear(st->notes);
    for (int i = 0; rc == CDCD_AGAIN && i < CLAIMS; i++)
        rc = claim(s, err);
    if (rc == CDCD_AGAIN)
        return fenced(s, err);
    if (rc != CDCD_OK || read_notes(s, notes, err) != CDCD_OK)
        return CDCD_ERROR;
    cdcd_buf_add(state, st->text.ptr, st->text.len);
    st->fresh = st->text.len == 0;
    return CDCD_OK;
}

bool es_state_fresh(const struct cdcd_sink *s)
{
    return s->state->fresh;
}

/* ---- store ---- */

void es_state_take(struct cdcd_sink *s, const struct cdcd_batch *b)
{
    struct es_state *st = s->state;
    if (s->env->stateless || !b->state.ptr)
        return;
    cdcd_buf_clear(&st->text);
    cdcd_buf_add(&st->text, b->state.ptr, b->state.len);
    st->dirty = true;
    for (const struct cdcd_note *n = b->notes; n; n = n->next) {
        cdcd_notes_set(st->notes, n->key, n->value);
        st->notes_dirty = true;
    }
}

bool es_state_dirty(const struct cdcd_sink *s)
{
    return s->state->dirty;
}

/* The write was refused: was it ours, with a reply that was lost, or somebody else's? */
static enum cdcd_rc settle_conflict(struct cdcd_sink *s, struct cdcd_error *err)
{
    struct es_state *st = s->state;
    struct cdcd_buf text;
    struct cdcd_arena a;
    struct held held;
    cdcd_buf_init(&text, 0);
    cdcd_arena_init(&a, 4096);
    enum cdcd_rc rc = es_doc_get(s, st->name, &text, &st->guard, err);
    if (rc == CDCD_OK && st->guard.seq_no < 0)
        rc = cdcd_error_set(err, CDCD_ERR_LOSS,
                            "the document %s of the index %s, which holds the pipeline's position, "
                            "was deleted while it ran. Restore it; or delete the indexes too and "
                            "start again, and the pipeline begins anew with a snapshot (into "
                            "indexes that are kept it comes as well, but rows that were deleted "
                            "meanwhile stay in them)",
                            st->name, s->config->state_index);
    else if (rc == CDCD_OK && !read_document(cdcd_buf_slice(&text), &a, &held))
        rc = unreadable(s, err);
    else if (rc == CDCD_OK && !cdcd_slice_eq(held.owner, cdcd_slice_str(st->owner)))
        rc = fenced(s, err);
    else if (rc == CDCD_OK && (uint64_t)held.n != st->n)
        rc = CDCD_AGAIN; /* an earlier one of ours: the guard is right now */
    cdcd_arena_free(&a);
    cdcd_buf_free(&text);
    return rc;
}

static enum cdcd_rc put_state(struct cdcd_sink *s, struct cdcd_error *err)
{
    struct es_state *st = s->state;
    struct cdcd_buf text;
    enum cdcd_rc rc = CDCD_AGAIN;
    cdcd_buf_init(&text, 0);
    write_document(st, ++st->n, &text);
    for (int i = 0; rc == CDCD_AGAIN && i < 2; i++) {
        rc = es_doc_put(s, st->name, cdcd_buf_slice(&text), &st->guard, err);
        if (rc == CDCD_AGAIN)
            rc = settle_conflict(s, err);
    }
    cdcd_buf_free(&text);
    return rc == CDCD_AGAIN ? fenced(s, err) : rc;
}

static enum cdcd_rc store(struct cdcd_sink *s, struct cdcd_error *err)
{
    struct es_state *st = s->state;
    char *old = NULL;
    if (st->notes_dirty) {
        char *set = cdcd_xasprintf("%.8s.%llu", st->owner, (unsigned long long)++st->nset);
        uint64_t parts;
        if (write_notes(s, set, &parts, err) != CDCD_OK) {
            free(set);
            return CDCD_ERROR;
        }
        old = st->set;
        st->set = set;
        st->parts = parts;
        st->notes_dirty = false;
    }
    if (put_state(s, err) != CDCD_OK) {
        free(old); /* which of them the state names is not known: both stay */
        return CDCD_ERROR;
    }
    st->dirty = false;
    if (old)
        delete_notes(s, old);
    return CDCD_OK;
}

enum cdcd_rc es_state_store(struct cdcd_sink *s, bool more, struct cdcd_error *err)
{
    int64_t now = cdcd_now_ms();
    if (!s->state->dirty || now < s->next_store || (more && now < s->stored + STORE_MS))
        return CDCD_OK;
    if (store(s, err) == CDCD_OK) {
        s->stored = cdcd_now_ms();
        s->last_progress = s->stored;
        es_durable(s);
        return CDCD_OK;
    }
    if (err->class != CDCD_ERR_RETRY)
        return CDCD_ERROR;
    snprintf(s->complaint, sizeof s->complaint, "%.500s", err->text);
    cdcd_debug("elasticsearch", "%s", err->text);
    *err = (struct cdcd_error){0};
    s->next_store = cdcd_now_ms() + RETRY_MS;
    return CDCD_OK;
}
