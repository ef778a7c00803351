/*
 * A TRUNCATE: all documents of the index that are older are deleted.
 *
 * Everything before it is in the index by then, and nothing is under way. All ids are walked with a
 * scroll (which needs no field to sort by) and deleted with the truncate's version: what is newer
 * already, since this is done for the second time, answers 409 and stays.
 */
#include "sink.h"

#include <stdlib.h>
#include <time.h>

#define PAGE      2000
#define AGAIN_MS  200
#define AGAIN_FOR 30000 /* a server without room for so long: the session begins anew */

struct page {
    struct cdcd_sink *s;
    const struct es_action *action;
    struct cdcd_buf body;
    size_t n;
    uint64_t deleted;
    bool again;
    bool failed;
    struct es_result worst; /* when failed */
};

static bool stopping(const struct cdcd_sink *s)
{
    return s->env->stopping && s->env->stopping(s->env->ctx);
}

static void take_result(void *ctx, size_t i, const struct es_result *r)
{
    struct page *p = ctx;
    (void)i;
    switch (r->verdict) {
    case ES_DONE: p->deleted++; break;
    case ES_STALE:
    case ES_GONE: break;
    case ES_AGAIN: p->again = true; break;
    default:
        if (!p->failed)
            p->worst = *r;
        p->failed = true;
    }
}

static enum cdcd_rc send_page(struct page *p, struct cdcd_error *err)
{
    struct es_reply r;
    struct cdcd_slice index = p->action->index;
    p->again = false;
    if (es_call(p->s, "POST", es_bulk_path(p->s, index), cdcd_buf_slice(&p->body), &r, err) !=
        CDCD_OK)
        return CDCD_ERROR;
    enum cdcd_rc rc = CDCD_OK;
    if (r.status != 200)
        rc = es_fail(err, &r, "deleting what was truncated");
    else if (!es_bulk_items(cdcd_buf_slice(&r.body), p->n, take_result, p))
        rc = cdcd_error_set(err, CDCD_ERR_RETRY, "the server's answer to a bulk is not complete");
    else if (p->failed && p->worst.verdict == ES_LOST)
        rc = es_lost(index, p->worst.type, p->worst.reason, err);
    else if (p->failed)
        rc = cdcd_error_set(err, p->worst.verdict == ES_DENIED ? CDCD_ERR_CONFIG : CDCD_ERR_RETRY,
                            "what was truncated cannot be deleted from the index %.*s: %s: %s",
                            (int)index.len, index.ptr, p->worst.type, p->worst.reason);
    es_reply_free(&r);
    return rc;
}

static enum cdcd_rc delete_page(struct page *p, struct cdcd_error *err)
{
    const struct timespec nap = {0, AGAIN_MS * 1000000};
    int64_t until = cdcd_now_ms() + AGAIN_FOR;
    for (;;) {
        if (send_page(p, err) != CDCD_OK)
            return CDCD_ERROR;
        if (!p->again)
            return CDCD_OK;
        if (stopping(p->s) || cdcd_now_ms() > until)
            return cdcd_error_set(err, CDCD_ERR_RETRY,
                                  "the server has no room for the deletes of a truncate");
        nanosleep(&nap, NULL);
    }
}

/* The hits as lines of a bulk. False: the reply is none. */
static bool fill_page(struct page *p, const struct cdcd_json_value *root)
{
    struct cdcd_json_value hits, list, hit, id;
    struct cdcd_json_iter it;
    cdcd_buf_clear(&p->body);
    p->n = 0;
    if (!cdcd_json_member(root, "hits", &hits) || !cdcd_json_member(&hits, "hits", &list) ||
        list.kind != CDCD_JSON_ARRAY)
        return false;
    cdcd_json_iter_init(&it, &list);
    while (cdcd_json_iter_next(&it, NULL, &hit)) {
        if (!cdcd_json_member(&hit, "_id", &id))
            return false;
        cdcd_buf_adds(&p->body, "{\"delete\":{\"_id\":");
        cdcd_buf_add(&p->body, id.raw.ptr, id.raw.len);
        cdcd_buf_addf(&p->body, ",\"version\":%llu,\"version_type\":\"external_gte\"}}\n",
                      (unsigned long long)p->action->version);
        p->n++;
    }
    return true;
}

static enum cdcd_rc index_failure(const struct es_reply *r, struct cdcd_slice index,
                                  const char *what, struct cdcd_error *err)
{
    char type[96], reason[256];
    es_reason(cdcd_buf_slice(&r->body), type, sizeof type, reason, sizeof reason);
    if (r->status == 404 && strcmp(type, "index_not_found_exception") == 0)
        return es_lost(index, type, reason, err);
    return es_fail(err, r, "%s the index %.*s", what, (int)index.len, index.ptr);
}

static enum cdcd_rc refresh(struct cdcd_sink *s, struct cdcd_slice index, struct cdcd_error *err)
{
    struct es_reply r;
    if (es_call(s, "POST", es_path("/%I/_refresh", index), (struct cdcd_slice){NULL, 0}, &r, err) !=
        CDCD_OK)
        return CDCD_ERROR;
    enum cdcd_rc rc = r.status == 200 ? CDCD_OK : index_failure(&r, index, "refreshing", err);
    es_reply_free(&r);
    return rc;
}

static void end_scroll(struct cdcd_sink *s, const struct cdcd_buf *scroll)
{
    struct es_reply r;
    struct cdcd_error ignored = {0};
    struct cdcd_buf body;
    if (!scroll->len)
        return;
    cdcd_buf_init(&body, 0);
    cdcd_buf_addf(&body, "{\"scroll_id\":%.*s}", (int)scroll->len, scroll->ptr);
    if (es_call(s, "DELETE", es_path("/_search/scroll"), cdcd_buf_slice(&body), &r, &ignored) ==
        CDCD_OK)
        es_reply_free(&r);
    cdcd_buf_free(&body);
}

enum cdcd_rc es_walk_page(struct cdcd_sink *s, struct cdcd_slice index, unsigned size,
                          struct cdcd_buf *scroll, struct es_reply *r, struct cdcd_json_value *root,
                          struct cdcd_error *err)
{
    struct cdcd_buf body;
    struct cdcd_json_value id, shards, failed;
    int64_t n = 0;
    cdcd_buf_init(&body, 0);
    *r = (struct es_reply){0};
    char *path;
    if (scroll->len) {
        path = es_path("/_search/scroll");
        cdcd_buf_addf(&body, "{\"scroll\":\"5m\",\"scroll_id\":%.*s}", (int)scroll->len,
                      scroll->ptr);
    } else {
        path = es_path("/%I/_search?scroll=5m", index);
        cdcd_buf_addf(&body,
                      "{\"query\":{\"match_all\":{}},\"size\":%u,\"version\":true,"
                      "\"_source\":false,\"sort\":[\"_doc\"]}",
                      size);
    }
    enum cdcd_rc rc = es_call(s, "POST", path, cdcd_buf_slice(&body), r, err);
    cdcd_buf_free(&body);
    if (rc != CDCD_OK) {
        *r = (struct es_reply){0};
        return rc;
    }
    if (r->status != 200)
        return index_failure(r, index, "walking through", err);
    if (!cdcd_json_scan(cdcd_buf_slice(&r->body), root) ||
        !cdcd_json_member(root, "_scroll_id", &id) || id.kind != CDCD_JSON_STRING)
        return cdcd_error_set(err, CDCD_ERR_RETRY,
                              "the server's answer to a scroll is not "
                              "complete");
    /* A shard that did not answer would leave its documents out without a word. */
    if (!cdcd_json_member(root, "_shards", &shards) ||
        !cdcd_json_member(&shards, "failed", &failed) || !cdcd_json_int64(&failed, &n) || n != 0)
        return cdcd_error_set(err, CDCD_ERR_RETRY,
                              "not all shards of the index %.*s answer to a search", (int)index.len,
                              index.ptr);
    cdcd_buf_clear(scroll);
    cdcd_buf_add(scroll, id.raw.ptr, id.raw.len);
    return CDCD_OK;
}

void es_walk_end(struct cdcd_sink *s, struct cdcd_buf *scroll)
{
    end_scroll(s, scroll);
    cdcd_buf_free(scroll);
}

static enum cdcd_rc empty(struct cdcd_sink *s, const struct es_action *a, const char *place,
                          struct cdcd_error *err)
{
    struct page p = {.s = s, .action = a};
    struct cdcd_buf scroll;
    if (refresh(s, a->index, err) != CDCD_OK)
        return cdcd_error_context(err, "TRUNCATE, %s", place);
    cdcd_buf_init(&scroll, 0);
    cdcd_buf_init(&p.body, 0);
    enum cdcd_rc rc = CDCD_OK;
    do {
        struct es_reply reply;
        struct cdcd_json_value root;
        rc = es_walk_page(s, a->index, PAGE, &scroll, &reply, &root, err);
        if (rc == CDCD_OK && !fill_page(&p, &root))
            rc = cdcd_error_set(err, CDCD_ERR_RETRY, "the server's answer has no hits");
        es_reply_free(&reply);
        if (rc == CDCD_OK && p.n > 0)
            rc = delete_page(&p, err);
        if (rc == CDCD_OK && stopping(s))
            rc = cdcd_error_set(err, CDCD_ERR_RETRY, "told to stop");
    } while (rc == CDCD_OK && p.n > 0);
    es_walk_end(s, &scroll);
    cdcd_buf_free(&p.body);
    if (rc == CDCD_OK)
        rc = es_index_same(s, a->index, err);
    if (rc != CDCD_OK)
        return cdcd_error_context(err, "TRUNCATE, %s", place);
    s->counters.truncates++;
    s->counters.deletes += p.deleted;
    cdcd_info("elasticsearch", "TRUNCATE: %llu documents deleted from the index %.*s (%s)",
              (unsigned long long)p.deleted, (int)a->index.len, a->index.ptr, place);
    return CDCD_OK;
}

enum cdcd_rc es_truncate(struct cdcd_sink *s, const struct es_action *a,
                         const struct cdcd_record *r, struct cdcd_error *err)
{
    char place[512];
    es_place(r, place, sizeof place);
    switch (s->config->truncate_mode) {
    case ES_TRUNCATE_IGNORE:
        s->counters.truncates++;
        cdcd_warn(
            "elasticsearch",
            "TRUNCATE passed over (truncate: ignore): the index %.*s keeps its documents (%s)",
            (int)a->index.len, a->index.ptr, place);
        return CDCD_OK;
    case ES_TRUNCATE_STOP:
        return cdcd_error_set(
            err, CDCD_ERR_DATA,
            "the table of the index %.*s was truncated, and truncate is stop "
            "(%s). Set truncate: empty to delete its documents, or ignore to keep "
            "them",
            (int)a->index.len, a->index.ptr, place);
    default: return empty(s, a, place, err);
    }
}
