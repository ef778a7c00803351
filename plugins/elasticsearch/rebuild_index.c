/*
 * What cdcd replay asks of the server: names of indexes, blocks, comparisons, the swap of aliases.
 */
#include "rebuild.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define SAMPLE   10000 /* the most that a search gives in one piece */
#define PAGE     5000
#define EXAMPLES 5

static const struct cdcd_slice nothing = {NULL, 0};

void es_rebuild_nap(int ms)
{
    const struct timespec nap = {ms / 1000, ms % 1000 * 1000000L};
    nanosleep(&nap, NULL);
}

static enum cdcd_rc call(struct cdcd_sink *s, const char *method, char *path, struct cdcd_buf *body,
                         struct es_reply *r, struct cdcd_error *err)
{
    *r = (struct es_reply){0};
    enum cdcd_rc rc = es_call(s, method, path, body ? cdcd_buf_slice(body) : nothing, r, err);
    if (rc != CDCD_OK)
        *r = (struct es_reply){0};
    return rc;
}

enum cdcd_rc es_rebuild_exists(struct cdcd_sink *s, struct cdcd_slice index, bool *out,
                               struct cdcd_error *err)
{
    struct es_reply r;
    if (call(s, "HEAD", es_path("/%I", index), NULL, &r, err) != CDCD_OK)
        return CDCD_ERROR;
    enum cdcd_rc rc = CDCD_OK;
    *out = r.status == 200;
    if (r.status != 200 && r.status != 404)
        rc = es_fail(err, &r, "index %.*s", (int)index.len, index.ptr);
    es_reply_free(&r);
    return rc;
}

static enum cdcd_rc refresh(struct cdcd_sink *s, struct cdcd_slice index, struct cdcd_error *err)
{
    struct es_reply r;
    if (call(s, "POST", es_path("/%I/_refresh", index), NULL, &r, err) != CDCD_OK)
        return CDCD_ERROR;
    enum cdcd_rc rc = CDCD_OK;
    if (r.status != 200)
        rc = es_fail(err, &r, "refreshing the index %.*s", (int)index.len, index.ptr);
    es_reply_free(&r);
    return rc;
}

/* ---- names ---- */

/* The only index behind the alias, in the arena; ptr NULL: there is no such alias. */
static enum cdcd_rc behind(struct cdcd_sink *s, struct cdcd_slice alias, struct cdcd_slice *out,
                           struct cdcd_error *err)
{
    struct es_reply r;
    struct cdcd_json_value root, name, value;
    struct cdcd_json_iter it;
    struct cdcd_arena *a = &s->rebuild->arena;
    *out = nothing;
    if (call(s, "GET", es_path("/_alias/%I", alias), NULL, &r, err) != CDCD_OK)
        return CDCD_ERROR;
    enum cdcd_rc rc = CDCD_OK;
    if (r.status != 200 && r.status != 404) {
        rc = es_fail(err, &r, "alias %.*s", (int)alias.len, alias.ptr);
    } else if (r.status == 200) {
        if (!cdcd_json_scan(cdcd_buf_slice(&r.body), &root) || root.kind != CDCD_JSON_OBJECT)
            rc = cdcd_error_set(err, CDCD_ERR_RETRY,
                                "the server's answer about the alias %.*s is "
                                "not complete",
                                (int)alias.len, alias.ptr);
        else
            cdcd_json_iter_init(&it, &root);
        while (rc == CDCD_OK && cdcd_json_iter_next(&it, &name, &value)) {
            if (out->ptr)
                rc = cdcd_error_set(err, CDCD_ERR_CONFIG,
                                    "the alias %.*s stands for several indexes: which of them the "
                                    "replay is to replace is not known; leave it to one of them",
                                    (int)alias.len, alias.ptr);
            struct cdcd_slice text = cdcd_json_text(&name, a);
            *out = (struct cdcd_slice){cdcd_arena_dup(a, text.ptr, text.len), text.len};
        }
    }
    es_reply_free(&r);
    return rc;
}

static enum cdcd_rc plain_index(struct cdcd_slice alias, struct cdcd_error *err)
{
    int n = (int)alias.len;
    return cdcd_error_set(
        err, CDCD_ERR_CONFIG,
        "%.*s is an index itself, no alias, so none can be put in its place without a gap. Once, "
        "while nothing writes: block it (PUT %.*s/_block/write), clone it (POST "
        "%.*s/_clone/%.*s-000001), then in one request POST /_aliases {\"actions\":[{\"remove_"
        "index\":{\"index\":\"%.*s\"}},{\"add\":{\"index\":\"%.*s-000001\",\"alias\":\"%.*s\","
        "\"is_write_index\":true}}]}, and unblock the clone (index.blocks.write: false); or send "
        "the topic to another index (index, index.routes)",
        n, alias.ptr, n, alias.ptr, n, alias.ptr, n, alias.ptr, n, alias.ptr, n, alias.ptr, n,
        alias.ptr);
}

/* The number behind NAME-; 0: none. */
static unsigned number_of(struct cdcd_slice alias, struct cdcd_slice index)
{
    unsigned n = 0;
    if (index.len < alias.len + 2 || index.len > alias.len + 8 ||
        memcmp(index.ptr, alias.ptr, alias.len) != 0 || index.ptr[alias.len] != '-')
        return 0;
    for (size_t i = alias.len + 1; i < index.len; i++) {
        if (index.ptr[i] < '0' || index.ptr[i] > '9')
            return 0;
        n = n * 10 + (unsigned)(index.ptr[i] - '0');
    }
    return n;
}

enum cdcd_rc es_rebuild_name(struct cdcd_sink *s, struct es_rebuilt *x, struct cdcd_error *err)
{
    bool there = true;
    if (behind(s, x->alias, &x->old, err) != CDCD_OK)
        return CDCD_ERROR;
    if (!x->old.ptr) {
        x->old = cdcd_slice_str("");
        if (es_rebuild_exists(s, x->alias, &there, err) != CDCD_OK)
            return CDCD_ERROR;
        if (there)
            return plain_index(x->alias, err);
    }
    for (unsigned n = number_of(x->alias, x->old) + 1; there || !x->target.ptr; n++) {
        char *name = cdcd_xasprintf("%.*s-%06u", (int)x->alias.len, x->alias.ptr,
                                    x->old.len && n == 1 ? 2 : n);
        x->target = cdcd_slice_str(cdcd_arena_dup(&s->rebuild->arena, name, strlen(name)));
        free(name);
        if (es_rebuild_exists(s, x->target, &there, err) != CDCD_OK)
            return CDCD_ERROR;
    }
    return CDCD_OK;
}

/* ---- blocks ---- */

/* The API that waits for writes under way; before it came there were only settings. */
static bool has_block_api(const struct cdcd_sink *s)
{
    return s->server.opensearch || s->server.version >= 70900;
}

/* AGAIN: not all shards have said that no write is under way. */
static enum cdcd_rc set_block(struct cdcd_sink *s, struct cdcd_slice index, bool block,
                              struct cdcd_error *err)
{
    struct es_reply r;
    struct cdcd_buf body;
    struct cdcd_json_value root, done;
    bool api = block && has_block_api(s);
    cdcd_buf_init(&body, 0);
    if (!api)
        cdcd_buf_addf(&body, "{\"index.blocks.write\":%s}", block ? "true" : "null");
    char *path = es_path(api ? "/%I/_block/write" : "/%I/_settings", index);
    enum cdcd_rc rc = call(s, "PUT", path, &body, &r, err);
    cdcd_buf_free(&body);
    if (rc != CDCD_OK)
        return rc;
    if (r.status == 404 && !block)
        rc = CDCD_OK; /* deleted by hand */
    else if (r.status != 200)
        rc = es_fail(err, &r, "%s writes to the index %.*s", block ? "blocking" : "letting in",
                     (int)index.len, index.ptr);
    else if (!cdcd_json_scan(cdcd_buf_slice(&r.body), &root) ||
             !cdcd_json_member(&root, api ? "shards_acknowledged" : "acknowledged", &done) ||
             done.kind != CDCD_JSON_TRUE)
        rc = CDCD_AGAIN;
    es_reply_free(&r);
    return rc;
}

enum cdcd_rc es_rebuild_block(struct cdcd_sink *s, struct cdcd_slice index, bool block,
                              struct cdcd_error *err)
{
    enum cdcd_rc rc = set_block(s, index, block, err);
    /* An index that is blocked already (a replay that was killed) does not ask its shards. */
    if (rc == CDCD_AGAIN && block) {
        rc = set_block(s, index, false, err);
        if (rc == CDCD_OK)
            rc = set_block(s, index, true, err);
    }
    if (rc == CDCD_AGAIN)
        return cdcd_error_set(err, CDCD_ERR_RETRY,
                              "not all shards of the index %.*s have taken the block of writes",
                              (int)index.len, index.ptr);
    return rc;
}

/* ---- comparison ---- */

static bool int_member(const struct cdcd_json_value *o, const char *name, int64_t *out)
{
    struct cdcd_json_value v;
    return cdcd_json_member(o, name, &v) && cdcd_json_int64(&v, out);
}

static enum cdcd_rc count(struct cdcd_sink *s, struct cdcd_slice index, int64_t *out,
                          struct cdcd_error *err)
{
    struct es_reply r;
    struct cdcd_json_value root, shards;
    int64_t failed = 1;
    if (refresh(s, index, err) != CDCD_OK ||
        call(s, "GET", es_path("/%I/_count", index), NULL, &r, err) != CDCD_OK)
        return CDCD_ERROR;
    enum cdcd_rc rc = CDCD_OK;
    if (r.status != 200)
        rc = es_fail(err, &r, "counting the index %.*s", (int)index.len, index.ptr);
    else if (!cdcd_json_scan(cdcd_buf_slice(&r.body), &root) || !int_member(&root, "count", out) ||
             !cdcd_json_member(&root, "_shards", &shards) ||
             !int_member(&shards, "failed", &failed) || failed != 0)
        rc = cdcd_error_set(err, CDCD_ERR_RETRY, "not all shards of the index %.*s can be counted",
                            (int)index.len, index.ptr);
    es_reply_free(&r);
    return rc;
}

struct hit {
    struct cdcd_slice id; /* JSON */
    int64_t version;
};

struct comparison {
    struct cdcd_sink *s;
    const struct es_rebuilt *x;
    struct hit hits[SAMPLE]; /* of a page of the old index; then those that the new one lacks */
    size_t n;
    uint64_t compared, missing, unexplained;
    char examples[EXAMPLES * 80];
};

static bool take_hits(struct comparison *c, const struct cdcd_json_value *root)
{
    struct cdcd_json_value hits, list, hit, id;
    struct cdcd_json_iter it;
    c->n = 0;
    if (!cdcd_json_member(root, "hits", &hits) || !cdcd_json_member(&hits, "hits", &list) ||
        list.kind != CDCD_JSON_ARRAY)
        return false;
    cdcd_json_iter_init(&it, &list);
    while (c->n < SAMPLE && cdcd_json_iter_next(&it, NULL, &hit)) {
        struct hit *h = &c->hits[c->n++];
        if (!cdcd_json_member(&hit, "_id", &id) || !int_member(&hit, "_version", &h->version))
            return false;
        h->id = id.raw;
    }
    return true;
}

/* Leaves those that the new index does not have. */
static enum cdcd_rc only_missing(struct comparison *c, struct cdcd_error *err)
{
    struct es_reply r;
    struct cdcd_buf body;
    struct cdcd_json_value root, docs = {0}, doc, found;
    struct cdcd_json_iter it;
    size_t i = 0, left = 0;
    cdcd_buf_init(&body, 0);
    for (i = 0; i < c->n; i++) {
        cdcd_buf_adds(&body, i ? "," : "{\"ids\":[");
        cdcd_buf_add(&body, c->hits[i].id.ptr, c->hits[i].id.len);
    }
    cdcd_buf_adds(&body, "]}");
    char *path = es_path("/%I/_mget?_source=false", c->x->target);
    enum cdcd_rc rc = call(c->s, "POST", path, &body, &r, err);
    cdcd_buf_free(&body);
    if (rc == CDCD_OK && r.status != 200)
        rc = es_fail(err, &r, "comparing the index %.*s", (int)c->x->target.len, c->x->target.ptr);
    bool fits = rc == CDCD_OK && cdcd_json_scan(cdcd_buf_slice(&r.body), &root) &&
                cdcd_json_member(&root, "docs", &docs) && docs.kind == CDCD_JSON_ARRAY;
    if (fits)
        cdcd_json_iter_init(&it, &docs);
    for (i = 0; fits && i < c->n && cdcd_json_iter_next(&it, NULL, &doc); i++) {
        fits = cdcd_json_member(&doc, "found", &found);
        if (fits && found.kind != CDCD_JSON_TRUE)
            c->hits[left++] = c->hits[i];
    }
    if (rc == CDCD_OK && (!fits || i < c->n))
        rc = cdcd_error_set(err, CDCD_ERR_RETRY, "the server's answer to _mget is not complete");
    es_reply_free(&r);
    c->compared += c->n;
    c->n = left;
    c->missing += left;
    return rc;
}

static void take_probe(void *ctx, size_t i, const struct es_result *r)
{
    struct comparison *c = ctx;
    if (r->verdict == ES_STALE)
        return;
    size_t len = strlen(c->examples);
    struct cdcd_slice id = c->hits[i].id;
    if (c->unexplained++ < EXAMPLES)
        snprintf(c->examples + len, sizeof c->examples - len, "%s%.*s", len ? ", " : "",
                 id.len > 60 ? 60 : (int)id.len, id.ptr);
}

/* A delete with the version of the old document: where a newer delete has been, its version is
 * remembered (index.gc_deletes) and refuses this one. Where none has been, there is nothing to be
 * deleted, and anything that may come later has at least this version. */
static enum cdcd_rc explain(struct comparison *c, struct cdcd_error *err)
{
    struct es_reply r;
    struct cdcd_buf body;
    if (c->n == 0)
        return CDCD_OK;
    cdcd_buf_init(&body, 0);
    for (size_t i = 0; i < c->n; i++) {
        cdcd_buf_adds(&body, "{\"delete\":{\"_id\":");
        cdcd_buf_add(&body, c->hits[i].id.ptr, c->hits[i].id.len);
        cdcd_buf_addf(&body, ",\"version\":%lld,\"version_type\":\"external_gte\"}}\n",
                      (long long)c->hits[i].version);
    }
    char *path = es_path("/%I/_bulk?filter_path=errors,error,items.*.status,items.*.error",
                         c->x->target);
    enum cdcd_rc rc = call(c->s, "POST", path, &body, &r, err);
    cdcd_buf_free(&body);
    if (rc == CDCD_OK && r.status != 200)
        rc = es_fail(err, &r, "comparing the index %.*s", (int)c->x->target.len, c->x->target.ptr);
    else if (rc == CDCD_OK && !es_bulk_items(cdcd_buf_slice(&r.body), c->n, take_probe, c))
        rc = cdcd_error_set(err, CDCD_ERR_RETRY, "the server's answer to a bulk is not complete");
    es_reply_free(&r);
    return rc;
}

static enum cdcd_rc compare_page(struct comparison *c, const struct cdcd_json_value *root,
                                 struct cdcd_error *err)
{
    if (!take_hits(c, root))
        return cdcd_error_set(err, CDCD_ERR_RETRY,
                              "the server's answer to a search is not "
                              "complete");
    if (c->n == 0)
        return CDCD_OK;
    return only_missing(c, err) == CDCD_OK ? explain(c, err) : CDCD_ERROR;
}

static enum cdcd_rc compare_sample(struct comparison *c, struct cdcd_error *err)
{
    struct es_reply r;
    struct cdcd_buf body;
    struct cdcd_json_value root;
    cdcd_buf_init(&body, 0);
    cdcd_buf_addf(&body,
                  "{\"size\":%d,\"_source\":false,\"version\":true,\"query\":{\"function_score\":"
                  "{\"query\":{\"match_all\":{}},\"random_score\":{}}}}",
                  SAMPLE);
    enum cdcd_rc rc = call(c->s, "POST", es_path("/%I/_search", c->x->old), &body, &r, err);
    cdcd_buf_free(&body);
    if (rc == CDCD_OK && r.status != 200)
        rc = es_fail(err, &r, "searching the index %.*s", (int)c->x->old.len, c->x->old.ptr);
    else if (rc == CDCD_OK && !cdcd_json_scan(cdcd_buf_slice(&r.body), &root))
        rc = cdcd_error_set(err, CDCD_ERR_RETRY,
                            "the server's answer to a search is not "
                            "complete");
    if (rc == CDCD_OK)
        rc = compare_page(c, &root, err);
    es_reply_free(&r);
    return rc;
}

static enum cdcd_rc compare_all(struct comparison *c, struct cdcd_error *err)
{
    struct cdcd_buf scroll;
    enum cdcd_rc rc = CDCD_OK;
    cdcd_buf_init(&scroll, 0);
    uint64_t before;
    do {
        struct es_reply r;
        struct cdcd_json_value root;
        before = c->compared;
        rc = es_walk_page(c->s, c->x->old, PAGE, &scroll, &r, &root, err);
        if (rc == CDCD_OK)
            rc = compare_page(c, &root, err);
        es_reply_free(&r);
    } while (rc == CDCD_OK && c->compared > before);
    es_walk_end(c->s, &scroll);
    return rc;
}

static enum cdcd_rc lacks(const struct comparison *c, int64_t was, int64_t is,
                          struct cdcd_error *err)
{
    const struct es_rebuilt *x = c->x;
    return cdcd_error_set(
        err, CDCD_ERR_DATA,
        "the new index %.*s (%lld documents) lacks %llu of %llu documents of %.*s (%lld documents) "
        "that were looked at, and no delete explains it; for example _id %s. Have records left the "
        "topics, was errors.policy skip, or was --from given? cdcd replay --yes swaps all the "
        "same, "
        "cdcd replay --abandon deletes the new one",
        (int)x->target.len, x->target.ptr, (long long)is, (unsigned long long)c->unexplained,
        (unsigned long long)c->compared, (int)x->old.len, x->old.ptr, (long long)was, c->examples);
}

/* The whole where the new one has fewer documents, else a sample by chance: the pipeline that
 * writes to the old one waits meanwhile. */
enum cdcd_rc es_rebuild_compare(struct cdcd_sink *s, const struct es_rebuilt *x,
                                struct cdcd_report *report, struct cdcd_error *err)
{
    int64_t was = 0, is = 0;
    char *what = cdcd_xasprintf("index %.*s", (int)x->target.len, x->target.ptr);
    enum cdcd_rc rc = count(s, x->target, &is, err);
    struct comparison *c = cdcd_xcalloc(1, sizeof *c);
    c->s = s;
    c->x = x;
    if (rc == CDCD_OK && !x->old.len) {
        cdcd_report_addf(report, CDCD_CHECK_OK, what, NULL, "%lld documents; nothing was live",
                         (long long)is);
    } else if (rc == CDCD_OK) {
        rc = count(s, x->old, &was, err);
        if (rc == CDCD_OK && was > 0)
            rc = is < was ? compare_all(c, err) : compare_sample(c, err);
        if (rc == CDCD_OK)
            cdcd_report_addf(report, c->unexplained ? CDCD_CHECK_FAIL : CDCD_CHECK_OK, what, NULL,
                             "%lld documents, %.*s has %lld; of %llu of its documents %llu are not "
                             "in the new one, %llu of them deleted since",
                             (long long)is, (int)x->old.len, x->old.ptr, (long long)was,
                             (unsigned long long)c->compared, (unsigned long long)c->missing,
                             (unsigned long long)(c->missing - c->unexplained));
        if (rc == CDCD_OK && c->unexplained)
            rc = lacks(c, was, is, err);
    }
    free(c);
    free(what);
    return rc;
}

/* ---- the swap ---- */

static enum cdcd_rc is_swapped(struct cdcd_sink *s, const struct es_rebuilt *x, bool *out,
                               struct cdcd_error *err)
{
    struct cdcd_slice index;
    if (behind(s, x->alias, &index, err) != CDCD_OK)
        return CDCD_ERROR;
    *out = index.ptr && cdcd_slice_eq(index, x->target);
    if (*out || (index.ptr ? cdcd_slice_eq(index, x->old) : !x->old.len))
        return CDCD_OK;
    return cdcd_error_set(err, CDCD_ERR_CONFIG,
                          "the alias %.*s has changed since the replay began: it stands for %.*s, "
                          "no more for \"%.*s\". Begin anew: cdcd replay --abandon, cdcd replay",
                          (int)x->alias.len, x->alias.ptr, index.ptr ? (int)index.len : 4,
                          index.ptr ? index.ptr : "none", (int)x->old.len, x->old.ptr);
}

static void add_names(struct cdcd_buf *b, const char *action, struct cdcd_slice index,
                      struct cdcd_slice alias)
{
    cdcd_buf_addf(b, "%s{\"%s\":{\"index\":", b->ptr[b->len - 1] == '[' ? "" : ",", action);
    es_json_string(b, index);
    cdcd_buf_adds(b, ",\"alias\":");
    es_json_string(b, alias);
}

/* Another alias of the old index moves too, as it is. */
static void move_alias(struct cdcd_buf *b, const struct es_rebuilt *x, struct cdcd_slice alias,
                       const struct cdcd_json_value *how)
{
    struct cdcd_json_iter it;
    struct cdcd_json_value name, value;
    bool ours = cdcd_slice_eq(alias, x->alias);
    add_names(b, "remove", x->old, alias);
    cdcd_buf_adds(b, "}}");
    add_names(b, "add", x->target, alias);
    cdcd_json_iter_init(&it, how);
    while (cdcd_json_iter_next(&it, &name, &value)) {
        if (ours && cdcd_slice_eq(name.raw, cdcd_slice_str("\"is_write_index\"")))
            continue;
        cdcd_buf_adds(b, ",");
        cdcd_buf_add(b, name.raw.ptr, name.raw.len);
        cdcd_buf_adds(b, ":");
        cdcd_buf_add(b, value.raw.ptr, value.raw.len);
    }
    cdcd_buf_adds(b, ours ? ",\"is_write_index\":true}}" : "}}");
}

static enum cdcd_rc move_aliases(struct cdcd_sink *s, const struct es_rebuilt *x,
                                 struct cdcd_buf *b, struct cdcd_error *err)
{
    struct es_reply r;
    struct cdcd_json_value root, index, aliases = {0}, name, how;
    struct cdcd_json_iter it;
    if (!x->old.len) {
        add_names(b, "add", x->target, x->alias);
        cdcd_buf_adds(b, ",\"is_write_index\":true}}");
        return CDCD_OK;
    }
    if (call(s, "GET", es_path("/%I/_alias", x->old), NULL, &r, err) != CDCD_OK)
        return CDCD_ERROR;
    enum cdcd_rc rc = CDCD_OK;
    if (r.status != 200)
        rc = es_fail(err, &r, "aliases of the index %.*s", (int)x->old.len, x->old.ptr);
    else if (!cdcd_json_scan(cdcd_buf_slice(&r.body), &root) || root.kind != CDCD_JSON_OBJECT)
        rc = cdcd_error_set(err, CDCD_ERR_RETRY,
                            "the server's answer about aliases is not "
                            "complete");
    if (rc == CDCD_OK) {
        cdcd_json_iter_init(&it, &root);
        if (cdcd_json_iter_next(&it, NULL, &index) &&
            cdcd_json_member(&index, "aliases", &aliases) && aliases.kind == CDCD_JSON_OBJECT) {
            cdcd_json_iter_init(&it, &aliases);
            while (cdcd_json_iter_next(&it, &name, &how))
                move_alias(b, x, cdcd_json_text(&name, &s->rebuild->arena), &how);
        }
    }
    es_reply_free(&r);
    return rc;
}

static enum cdcd_rc send_swap(struct cdcd_sink *s, struct cdcd_buf *body, struct cdcd_error *err)
{
    struct es_reply r;
    struct cdcd_json_value root, done;
    if (call(s, "POST", es_path("/_aliases"), body, &r, err) != CDCD_OK)
        return CDCD_ERROR;
    enum cdcd_rc rc = CDCD_OK;
    if (r.status != 200)
        rc = es_fail(err, &r, "swapping the aliases");
    else if (!cdcd_json_scan(cdcd_buf_slice(&r.body), &root) ||
             !cdcd_json_member(&root, "acknowledged", &done) || done.kind != CDCD_JSON_TRUE)
        rc = cdcd_error_set(err, CDCD_ERR_RETRY, "the swap of the aliases is not acknowledged");
    es_reply_free(&r);
    return rc;
}

enum cdcd_rc es_rebuild_swap(struct cdcd_sink *s, struct cdcd_error *err)
{
    struct cdcd_buf body;
    bool any = false;
    enum cdcd_rc rc = CDCD_OK;
    cdcd_buf_init(&body, 0);
    cdcd_buf_adds(&body, "{\"actions\":[");
    for (const struct es_rebuilt *x = s->rebuild->first; rc == CDCD_OK && x; x = x->next) {
        bool done = false;
        rc = is_swapped(s, x, &done, err);
        if (rc != CDCD_OK || done)
            continue;
        any = true;
        rc = refresh(s, x->target, err);
        if (rc == CDCD_OK)
            rc = move_aliases(s, x, &body, err);
    }
    cdcd_buf_adds(&body, "]}");
    if (rc == CDCD_OK && any)
        rc = send_swap(s, &body, err);
    cdcd_buf_free(&body);
    return rc;
}

enum cdcd_rc es_rebuild_swapped(struct cdcd_sink *s, struct cdcd_error *err)
{
    for (const struct es_rebuilt *x = s->rebuild->first; x; x = x->next) {
        struct cdcd_slice index;
        if (behind(s, x->alias, &index, err) != CDCD_OK)
            return CDCD_ERROR;
        if (index.ptr && cdcd_slice_eq(index, x->target))
            return cdcd_error_set(err, CDCD_ERR_CONFIG,
                                  "the alias %.*s stands for the new index %.*s already: cdcd "
                                  "replay finishes it",
                                  (int)x->alias.len, x->alias.ptr, (int)x->target.len,
                                  x->target.ptr);
    }
    return CDCD_OK;
}

/* ---- dropping ---- */

enum cdcd_rc es_rebuild_drop(struct cdcd_sink *s, struct cdcd_slice index,
                             struct cdcd_report *report, struct cdcd_error *err)
{
    struct es_reply r;
    struct cdcd_json_value root, one, aliases;
    struct cdcd_json_iter it;
    char *what = cdcd_xasprintf("index %.*s", (int)index.len, index.ptr);
    enum cdcd_rc rc = call(s, "GET", es_path("/%I/_alias", index), NULL, &r, err);
    bool gone = rc == CDCD_OK && r.status == 404;
    if (rc == CDCD_OK && r.status != 200 && !gone)
        rc = es_fail(err, &r, "%s", what);
    if (rc == CDCD_OK && !gone && cdcd_json_scan(cdcd_buf_slice(&r.body), &root) &&
        root.kind == CDCD_JSON_OBJECT) {
        cdcd_json_iter_init(&it, &root);
        if (cdcd_json_iter_next(&it, NULL, &one) && cdcd_json_member(&one, "aliases", &aliases) &&
            memchr(aliases.raw.ptr, '"', aliases.raw.len))
            rc = cdcd_error_set(err, CDCD_ERR_CONFIG,
                                "%s has aliases, so somebody uses it: %.*s; it is not deleted",
                                what, (int)(aliases.raw.len < 300 ? aliases.raw.len : 300),
                                aliases.raw.ptr);
    }
    es_reply_free(&r);
    if (rc == CDCD_OK && !gone)
        rc = call(s, "DELETE", es_path("/%I", index), NULL, &r, err);
    if (rc == CDCD_OK && !gone) {
        if (r.status != 200 && r.status != 404)
            rc = es_fail(err, &r, "deleting the %s", what);
        es_reply_free(&r);
    }
    if (rc == CDCD_OK)
        cdcd_report_addf(report, CDCD_CHECK_OK, what, NULL, gone ? "is gone already" : "deleted");
    free(what);
    return rc;
}
