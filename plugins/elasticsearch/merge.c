/*
 * Columns that a record does not carry (unchanged TOAST): taken from the document as it is.
 *
 * What stands before an item in its own body counts first, then what the index holds. That is read
 * with _mget, which sees writes that no search does yet; all earlier writes to an id have been
 * settled by then, as a lane has one request under way. Members are copied byte for byte. The write
 * itself bears the external version: if the index has something newer, it is refused like any other
 * and nothing is lost, so versions need not be looked at here.
 *
 * A document that is not there may have been deleted already, by a record behind this one that was
 * applied before a crash. Then its delete has left a version that refuses older ones, and this
 * record is done with. Or it was never there: a snapshot that was interrupted reads the rows that
 * are left after the changes up to its new view, whose records say so (header cdcd.row). Otherwise
 * it is refused, but not before doubt.c.
 *
 * A row whose key has changed is deleted under its old id: see moved.c.
 *
 * While an index is built beside the live one, a document that the new one lacks is looked for in
 * the live one: compaction may have left of a row only a record without the column. If that does
 * not have it either, the row was deleted since, or its record could not be applied there; the
 * comparison before the swap tells.
 */
#include "sink.h"

#include <cdcd/json.h>

#include <stdlib.h>

/* Documents of one _mget: such columns are large, and the reply is in memory as a whole. */
#define MGET_DOCS 64

/* What an item needs of the index. */
struct want {
    struct es_item *item;
    bool live; /* asked for in the live index */
    bool found;
    struct cdcd_json_value source; /* in a reply, or in an earlier item */
};

/* The nearest one before items[i] that says what the document is; NULL: none. */
static const struct es_item *earlier(struct es_item *const *items, size_t i)
{
    for (size_t k = i; k > 0; k--)
        if (es_same_document(items[k - 1], items[i]))
            return items[k - 1];
    return NULL;
}

/* ---- one document ---- */

static bool member(const struct cdcd_json_value *object, struct cdcd_slice name,
                   struct cdcd_arena *a, struct cdcd_json_value *raw_name,
                   struct cdcd_json_value *out)
{
    struct cdcd_json_iter it;
    struct cdcd_json_value n, v;
    bool found = false;
    cdcd_json_iter_init(&it, object);
    while (cdcd_json_iter_next(&it, &n, &v)) {
        if (n.raw.len < name.len + 2 || !cdcd_slice_eq(cdcd_json_text(&n, a), name))
            continue;
        *raw_name = n;
        *out = v;
        found = true;
    }
    return found;
}

static const char *refusal(struct es_item *item, struct cdcd_slice column)
{
    struct cdcd_arena *a = &item->batch->arena;
    const struct es_action *x = &item->action;
    char *text = column.ptr
                     ? cdcd_xasprintf("the record does not carry the unchanged column %.*s, and "
                                      "the document in the index does not have it either",
                                      (int)column.len, column.ptr)
                     : cdcd_xasprintf("the record does not carry the unchanged column %.*s, and "
                                      "the index lacks the document with the earlier value",
                                      (int)x->missing[0].len, x->missing[0].ptr);
    char *whole = cdcd_xasprintf(
        "%s. Write the row once more in the database (UPDATE of that column), or read the table "
        "anew from the beginning with its snapshot; ALTER TABLE ... REPLICA IDENTITY FULL lets the "
        "log carry such columns always; missing.columns: leave-out writes it without",
        text);
    const char *out = cdcd_arena_dup(a, whole, strlen(whole));
    free(text);
    free(whole);
    return out;
}

/* The item's document with the missing members of `base` behind its own. */
static void complete(struct es_item *item, const struct cdcd_json_value *base)
{
    struct es_action *x = &item->action;
    struct cdcd_arena tmp;
    struct cdcd_writer w;
    cdcd_arena_init(&tmp, 4096);
    size_t end = x->source.len;
    while (end > 0 && x->source.ptr[end - 1] != '}')
        end--;
    cdcd_writer_begin(&w, &item->batch->arena);
    cdcd_writer_add(&w, x->source.ptr, end ? end - 1 : 0);
    bool first = memchr(x->source.ptr, '"', end) == NULL;
    struct cdcd_slice lacking = {NULL, 0};
    for (uint32_t i = 0; i < x->nmissing && !lacking.ptr; i++) {
        struct cdcd_json_value name, value;
        if (!member(base, x->missing[i], &tmp, &name, &value)) {
            lacking = x->missing[i];
            break;
        }
        if (!first)
            cdcd_writer_char(&w, ',');
        first = false;
        cdcd_writer_add(&w, name.raw.ptr, name.raw.len);
        cdcd_writer_char(&w, ':');
        cdcd_writer_add(&w, value.raw.ptr, value.raw.len);
    }
    cdcd_writer_char(&w, '}');
    struct cdcd_slice whole = cdcd_writer_end(&w);
    cdcd_arena_free(&tmp);
    if (lacking.ptr) {
        item->refused = refusal(item, lacking);
        return;
    }
    x->source = whole;
    x->missing = NULL;
    x->nmissing = 0;
}

/* ---- what the index holds ---- */

static void add_doc(struct cdcd_buf *b, struct cdcd_slice index, struct cdcd_slice id)
{
    cdcd_buf_adds(b, b->len ? ",{\"_index\":" : "{\"docs\":[{\"_index\":");
    es_json_string(b, index);
    cdcd_buf_adds(b, ",\"_id\":");
    es_json_string(b, id);
    cdcd_buf_adds(b, "}");
}

static enum cdcd_rc bad_answer(struct cdcd_error *err)
{
    return cdcd_error_set(err, CDCD_ERR_RETRY,
                          "the server's answer to _mget for columns that records do not carry is "
                          "not complete");
}

/* One element of "docs". An error of one document is that of its index or its shard. */
static enum cdcd_rc take_doc(struct want *w, const struct cdcd_json_value *doc,
                             struct cdcd_error *err)
{
    struct cdcd_json_value error, found, type;
    const struct es_action *x = &w->item->action;
    if (cdcd_json_member(doc, "error", &error)) {
        cdcd_json_member(&error, "type", &type);
        bool gone = memmem(error.raw.ptr, error.raw.len, "index_not_found_exception", 25) != NULL;
        if (gone && w->live)
            return CDCD_OK;
        return cdcd_error_set(err, gone ? CDCD_ERR_LOSS : CDCD_ERR_RETRY,
                              "a document of the index %.*s cannot be read to complete a record "
                              "that lacks unchanged columns: %.*s",
                              (int)x->index.len, x->index.ptr,
                              (int)(error.raw.len < 400 ? error.raw.len : 400), error.raw.ptr);
    }
    if (!cdcd_json_member(doc, "found", &found))
        return bad_answer(err);
    w->found = found.kind == CDCD_JSON_TRUE;
    if (w->found &&
        (!cdcd_json_member(doc, "_source", &w->source) || w->source.kind != CDCD_JSON_OBJECT))
        return cdcd_error_set(err, CDCD_ERR_CONFIG,
                              "the index %.*s does not keep _source, from which columns are taken "
                              "that records do not carry: switch it on in the mapping, or set "
                              "missing.columns: leave-out",
                              (int)x->index.len, x->index.ptr);
    return CDCD_OK;
}

/* Fills in what was found. The values point into *reply, which the caller frees. */
static enum cdcd_rc mget(struct cdcd_sink *s, struct want *wants, size_t n, struct es_reply *reply,
                         struct cdcd_error *err)
{
    struct cdcd_buf body;
    struct cdcd_json_value root, docs, doc;
    struct cdcd_json_iter it;
    size_t i = 0;
    cdcd_buf_init(&body, 0);
    for (i = 0; i < n; i++) {
        struct cdcd_slice index = wants[i].item->action.index;
        add_doc(&body, wants[i].live ? es_rebuild_live(s, index) : index, wants[i].item->action.id);
    }
    cdcd_buf_adds(&body, "]}");
    enum cdcd_rc rc = es_call(s, "POST", es_path("/_mget"), cdcd_buf_slice(&body), reply, err);
    cdcd_buf_free(&body);
    if (rc != CDCD_OK) {
        *reply = (struct es_reply){0};
        return cdcd_error_context(err, "columns that records do not carry");
    }
    if (reply->status != 200)
        return es_fail(err, reply, "reading documents to complete records");
    if (!cdcd_json_scan(cdcd_buf_slice(&reply->body), &root) ||
        !cdcd_json_member(&root, "docs", &docs) || docs.kind != CDCD_JSON_ARRAY)
        return bad_answer(err);
    cdcd_json_iter_init(&it, &docs);
    for (i = 0; i < n && cdcd_json_iter_next(&it, NULL, &doc); i++)
        if (take_doc(&wants[i], &doc, err) != CDCD_OK)
            return CDCD_ERROR;
    return i == n ? CDCD_OK : bad_answer(err);
}

/* Completes those that were found; leaves those that were not in front of `wants`. */
static enum cdcd_rc ask(struct cdcd_sink *s, struct want *wants, size_t *n, struct cdcd_error *err)
{
    struct es_reply reply = {0};
    size_t left = 0;
    enum cdcd_rc rc = mget(s, wants, *n, &reply, err);
    for (size_t i = 0; rc == CDCD_OK && i < *n; i++) {
        if (wants[i].found)
            complete(wants[i].item, &wants[i].source);
        else
            wants[left++] = wants[i];
    }
    es_reply_free(&reply);
    *n = left;
    return rc;
}

/* ---- documents that are not there ---- */

/* Nothing is to be written: a delete that the index refuses or that finds nothing. */
static void make_void(struct es_item *item)
{
    item->action.kind = ES_DELETE;
    item->action.source = (struct cdcd_slice){NULL, 0};
    item->action.missing = NULL;
    item->action.nmissing = 0;
}

struct probe {
    struct want *wants;
    bool failed;
};

static void take_probe(void *ctx, size_t i, const struct es_result *r)
{
    struct probe *p = ctx;
    struct es_item *item = p->wants[i].item;
    int64_t held = -1;
    if (r->verdict == ES_STALE && !es_held_version(r->reason, &held)) {
        p->failed = true;
        return;
    }
    if (r->verdict == ES_STALE && (uint64_t)held >= item->action.version)
        make_void(item);
    else if (r->verdict == ES_STALE || r->verdict == ES_GONE) {
        item->refused = refusal(item, (struct cdcd_slice){NULL, 0});
        item->doubtful = !item->sure;
    } else
        p->failed = true;
}

/* Deletes with the lowest version of all: refused where something was deleted, and the refusal
 * tells its version. They change nothing: what another instance writes meanwhile has a higher one.
 */
static enum cdcd_rc probe_deleted(struct cdcd_sink *s, struct want *wants, size_t n,
                                  struct cdcd_error *err)
{
    struct es_reply r;
    struct cdcd_buf body;
    struct probe p = {.wants = wants};
    struct cdcd_slice first = wants[0].item->action.index;
    cdcd_buf_init(&body, 0);
    for (size_t i = 0; i < n; i++) {
        const struct es_action *x = &wants[i].item->action;
        cdcd_buf_adds(&body, "{\"delete\":{\"_index\":");
        es_json_string(&body, x->index);
        cdcd_buf_adds(&body, ",\"_id\":");
        es_json_string(&body, x->id);
        cdcd_buf_adds(&body, ",\"version\":0,\"version_type\":\"external_gte\"}}\n");
    }
    char *path = es_path("/%I/_bulk?filter_path=errors,error,items.*.status,items.*.error", first);
    enum cdcd_rc rc = es_call(s, "POST", path, cdcd_buf_slice(&body), &r, err);
    cdcd_buf_free(&body);
    if (rc != CDCD_OK)
        return rc;
    if (r.status != 200)
        rc = es_fail(err, &r, "looking for deleted documents");
    else if (!es_bulk_items(cdcd_buf_slice(&r.body), n, take_probe, &p) || p.failed)
        rc = cdcd_error_set(err, CDCD_ERR_RETRY,
                            "whether a document was deleted cannot be told for now");
    es_reply_free(&r);
    return rc;
}

static void left_out(struct cdcd_sink *s, struct es_item *item)
{
    char place[512];
    s->counters.incomplete++;
    if (s->counters.incomplete <= ES_LINES || s->counters.incomplete % 1000 == 0) {
        es_place(item->record, place, sizeof place);
        cdcd_warn("elasticsearch",
                  "neither the new index nor the live one has the document %.*s, which a record "
                  "without its unchanged column %.*s (%s) is about: left out, as it was deleted "
                  "since%s",
                  item->action.id.len > 200 ? 200 : (int)item->action.id.len, item->action.id.ptr,
                  (int)item->action.missing[0].len, item->action.missing[0].ptr, place,
                  s->counters.incomplete == ES_LINES ? "; from here on each thousandth is told"
                                                     : "");
    }
    make_void(item);
}

/* From what was kept of the row under its old id; *found. */
static enum cdcd_rc complete_moved(struct cdcd_sink *s, struct es_item *item, bool *found,
                                   struct cdcd_error *err)
{
    struct cdcd_buf kept;
    struct cdcd_json_value source;
    *found = false;
    if (!item->action.moved_from.ptr)
        return CDCD_OK;
    cdcd_buf_init(&kept, 0);
    enum cdcd_rc rc = es_moved_find(s, item, &kept, &source, err);
    *found = rc == CDCD_OK && source.kind == CDCD_JSON_OBJECT;
    if (*found)
        complete(item, &source);
    cdcd_buf_free(&kept);
    return rc;
}

static enum cdcd_rc absent(struct cdcd_sink *s, struct want *wants, size_t n,
                           struct cdcd_error *err)
{
    size_t left = 0;
    for (size_t i = 0; i < n; i++) {
        bool found;
        if (complete_moved(s, wants[i].item, &found, err) != CDCD_OK)
            return CDCD_ERROR;
        if (found)
            continue;
        if (wants[i].item->action.row_follows)
            make_void(wants[i].item);
        else if (s->env->replay && es_rebuild_live(s, wants[i].item->action.index).ptr)
            left_out(s, wants[i].item);
        else
            wants[left++] = wants[i];
    }
    /* In an index that the server has made by itself nothing is to be found. */
    for (size_t i = 0; i < left; i++) {
        struct cdcd_slice index = wants[i].item->action.index;
        if ((i == 0 || !cdcd_slice_eq(index, wants[i - 1].item->action.index)) &&
            es_index_same(s, index, err) != CDCD_OK)
            return CDCD_ERROR;
    }
    return left ? probe_deleted(s, wants, left, err) : CDCD_OK;
}

static enum cdcd_rc complete_from_index(struct cdcd_sink *s, struct want *wants, size_t n,
                                        struct cdcd_error *err)
{
    if (ask(s, wants, &n, err) != CDCD_OK)
        return CDCD_ERROR;
    struct want live[MGET_DOCS];
    size_t nlive = 0, none = 0;
    for (size_t i = 0; i < n; i++) {
        if (s->env->replay && es_rebuild_live(s, wants[i].item->action.index).ptr) {
            live[nlive] = wants[i];
            live[nlive++].live = true;
        } else {
            wants[none++] = wants[i];
        }
    }
    if (nlive > 0 && (ask(s, live, &nlive, err) != CDCD_OK ||
                      (nlive > 0 && absent(s, live, nlive, err) != CDCD_OK)))
        return CDCD_ERROR;
    return none > 0 ? absent(s, wants, none, err) : CDCD_OK;
}

/* ---- a body ---- */

/* A later one in the same body says all of it: this one is not sent, see bulk_body.c. */
static bool overtaken(struct es_item *const *items, size_t n, size_t i)
{
    for (size_t k = i + 1; k < n; k++)
        if (es_same_document(items[k], items[i]) && items[k]->action.nmissing == 0 &&
            items[k]->action.version >= items[i]->action.version)
            return true;
    return false;
}

static bool open_item(struct es_item *const *items, size_t n, size_t i)
{
    return items[i]->action.nmissing > 0 && !items[i]->refused && !overtaken(items, n, i);
}

static enum cdcd_rc complete_from_item(struct cdcd_sink *s, struct es_item *item,
                                       const struct es_item *before, struct cdcd_error *err)
{
    struct cdcd_json_value base;
    if (before->action.kind == ES_INDEX && before->action.nmissing == 0 &&
        cdcd_json_scan(before->action.source, &base) && base.kind == CDCD_JSON_OBJECT) {
        complete(item, &base);
        return CDCD_OK;
    }
    struct want one = {.item = item};
    return absent(s, &one, 1, err);
}

/* missing.columns leave-out and stop: the index is not asked. */
static void by_mode(const struct cdcd_sink *s, struct es_item *const *items, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        struct es_action *x = &items[i]->action;
        if (x->nmissing == 0)
            continue;
        if (s->config->missing_mode == ES_MISSING_LEAVE_OUT) {
            x->missing = NULL;
            x->nmissing = 0;
            continue;
        }
        char *text = cdcd_xasprintf(
            "the record does not carry the unchanged column %.*s, and missing.columns is stop: "
            "with merge it is taken from the document as it is",
            (int)x->missing[0].len, x->missing[0].ptr);
        items[i]->refused = cdcd_arena_dup(&items[i]->batch->arena, text, strlen(text));
        free(text);
    }
}

enum cdcd_rc es_merge(struct cdcd_sink *s, struct es_item *const *items, size_t n,
                      struct cdcd_error *err)
{
    if (s->config->missing_mode != ES_MISSING_MERGE) {
        by_mode(s, items, n);
        return CDCD_OK;
    }
    struct want wants[MGET_DOCS];
    size_t nwants = 0;
    /* Those that depend on the index alone, then, in order, those that depend on one before. */
    for (size_t i = 0; i < n; i++) {
        if (items[i]->action.nmissing == 0 || !open_item(items, n, i) || earlier(items, i))
            continue;
        wants[nwants++] = (struct want){.item = items[i]};
        if (nwants == MGET_DOCS) {
            if (complete_from_index(s, wants, nwants, err) != CDCD_OK)
                return CDCD_ERROR;
            nwants = 0;
        }
    }
    if (nwants > 0 && complete_from_index(s, wants, nwants, err) != CDCD_OK)
        return CDCD_ERROR;
    for (size_t i = 0; i < n; i++)
        if (items[i]->action.nmissing > 0 && open_item(items, n, i) &&
            complete_from_item(s, items[i], earlier(items, i), err) != CDCD_OK)
            return CDCD_ERROR;
    return CDCD_OK;
}
