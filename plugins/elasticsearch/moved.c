/*
 * Rows whose key has changed, and whose large columns the log left out as they did not change.
 *
 * The log has such a change as a delete of the old id and a row of the new one, and of the two only
 * the document that is deleted has the columns. So before the delete it is put into the state
 * index, under the new id, and merge.c takes the columns from there. In the database's log and in a
 * topic of one partition the row comes right behind the delete, and when it carries all columns
 * nothing is kept. In a topic of several they may come in any order, even to two instances: then a
 * row that finds nothing kept waits for it in doubt.c.
 *
 * What was kept goes when the row is in the index. A crash before that leaves it there, and the
 * records come again. The delete then finds no document, or that of another row which has got the
 * id since: what is kept already stays as it is. (A delete that comes again after the row has been
 * written by another instance may leave something kept that nobody asks for.)
 */
#include "sink.h"

#include <stdlib.h>

#define CHAIN_MS 5000

struct es_moved {
    struct es_moved *next;
    const struct cdcd_batch *batch;
    char *doc;
};

/* Of the document in the state index. */
static char *doc_id(const struct cdcd_sink *s, const struct es_action *a)
{
    struct cdcd_slice to = a->moves_to.ptr ? a->moves_to : a->id;
    return cdcd_xasprintf("%s.moved.%016llx%016llx", s->env->pipeline,
                          (unsigned long long)es_item_hash(a->index, to),
                          (unsigned long long)es_item_hash(a->move, to));
}

/* A replay takes what it lacks from the live index. */
static bool merges(const struct cdcd_sink *s)
{
    return s->config->missing_mode == ES_MISSING_MERGE && !s->env->replay;
}

/* The new id's record stands behind the delete, and carries all columns. */
static bool carries_all(struct cdcd_sink *s, const struct es_item *item)
{
    const struct cdcd_record *r = item->record->next;
    struct cdcd_error ignored = {0};
    struct es_action a;
    if (r && !r->value.ptr) /* the tombstone */
        r = r->next;
    if (!r || es_convert(s->converter, r, &item->batch->arena, &a, &ignored) != CDCD_OK ||
        a.kind != ES_INDEX || !cdcd_slice_eq(a.moved_from, item->action.id) || a.nmissing > 0)
        return false;
    s->moved_whole = r;
    return true;
}

static enum cdcd_rc put(struct cdcd_sink *s, const struct es_item *item, struct cdcd_slice source,
                        struct cdcd_error *err)
{
    const struct es_action *a = &item->action;
    struct cdcd_buf text, before;
    struct es_guard guard;
    char *doc = doc_id(s, a);
    cdcd_buf_init(&text, 0);
    cdcd_buf_init(&before, 0);
    cdcd_buf_adds(&text, "{\"v\":1,\"index\":");
    es_json_string(&text, a->index);
    cdcd_buf_adds(&text, ",\"id\":");
    es_json_string(&text, a->moves_to);
    cdcd_buf_adds(&text, ",\"from\":");
    es_json_string(&text, a->id);
    cdcd_buf_adds(&text, ",\"source\":");
    cdcd_buf_add(&text, source.ptr, source.len);
    cdcd_buf_adds(&text, "}");
    enum cdcd_rc rc = es_doc_get(s, doc, &before, &guard, err);
    if (rc == CDCD_OK && guard.seq_no < 0)
        rc = es_doc_put(s, doc, cdcd_buf_slice(&text), &guard, err);
    if (rc == CDCD_AGAIN)
        rc = cdcd_error_set(err, CDCD_ERR_RETRY, "the document %s of the state index changes", doc);
    cdcd_buf_free(&before);
    cdcd_buf_free(&text);
    free(doc);
    return rc;
}

enum cdcd_rc es_moved_keep(struct cdcd_sink *s, struct es_item *item, struct cdcd_error *err)
{
    struct es_reply r;
    struct cdcd_json_value root, source, v;
    int64_t version;
    if (!merges(s) || (!item->held && carries_all(s, item)))
        return CDCD_OK;
    if (!item->held)
        item->held = cdcd_now_ms();
    if (s->open > s->ndoubts)
        return CDCD_AGAIN;
    /* From one key to the next and the next; but not for ever: after a crash the documents between
     * may be gone, and what was kept for them. */
    if (es_doubts_moved(s, item) && cdcd_now_ms() - item->held < CHAIN_MS)
        return CDCD_AGAIN;
    char *path = es_path("/%I/_doc/%I", item->action.index, item->action.id);
    if (es_call(s, "GET", path, (struct cdcd_slice){NULL, 0}, &r, err) != CDCD_OK)
        return cdcd_error_context(err, "the document of a row whose key changes");
    enum cdcd_rc rc = CDCD_OK;
    if (r.status == 200 && cdcd_json_scan(cdcd_buf_slice(&r.body), &root) &&
        cdcd_json_member(&root, "_source", &source) && source.kind == CDCD_JSON_OBJECT &&
        cdcd_json_member(&root, "_version", &v) && cdcd_json_int64(&v, &version)) {
        /* Else it is of another row, which has got the id since: the records come again. */
        if ((uint64_t)version <= item->action.version)
            rc = put(s, item, source.raw, err);
    } else if (r.status != 404)
        rc = es_fail(err, &r, "reading the document of a row whose key changes");
    es_reply_free(&r);
    s->doubts_look = 0; /* somebody may wait for it */
    return rc;
}

void es_moved_note(struct cdcd_sink *s, struct es_item *item)
{
    if (!merges(s) || s->moved_whole == item->record)
        return;
    struct cdcd_arena *a = &item->batch->arena;
    struct es_moved *m = cdcd_arena_alloc(a, sizeof *m);
    char *doc = doc_id(s, &item->action);
    *m = (struct es_moved){.batch = item->batch, .doc = cdcd_arena_dup(a, doc, strlen(doc))};
    free(doc);
    *(s->moved ? s->moved_end : &s->moved) = m;
    s->moved_end = &m->next;
}

static bool is(const struct cdcd_json_value *root, const char *name, struct cdcd_slice text,
               struct cdcd_arena *tmp)
{
    struct cdcd_json_value v;
    return cdcd_json_member(root, name, &v) && v.kind == CDCD_JSON_STRING &&
           cdcd_slice_eq(cdcd_json_text(&v, tmp), text);
}

enum cdcd_rc es_moved_find(struct cdcd_sink *s, const struct es_item *item, struct cdcd_buf *kept,
                           struct cdcd_json_value *source, struct cdcd_error *err)
{
    const struct es_action *a = &item->action;
    struct cdcd_arena *tmp = &item->batch->arena;
    struct cdcd_json_value root;
    struct es_guard guard;
    source->kind = CDCD_JSON_NULL;
    if (!merges(s))
        return CDCD_OK;
    char *doc = doc_id(s, a);
    enum cdcd_rc rc = es_doc_get(s, doc, kept, &guard, err);
    free(doc);
    if (rc == CDCD_OK && guard.seq_no >= 0 && cdcd_json_scan(cdcd_buf_slice(kept), &root) &&
        is(&root, "index", a->index, tmp) && is(&root, "id", a->id, tmp) &&
        is(&root, "from", a->moved_from, tmp) && !cdcd_json_member(&root, "source", source))
        source->kind = CDCD_JSON_NULL;
    return rc;
}

void es_moved_drop(struct cdcd_sink *s, const struct cdcd_batch *b)
{
    struct cdcd_error err = {0};
    for (; s->moved && s->moved->batch == b; s->moved = s->moved->next) {
        if (!err.text[0] && es_doc_delete(s, s->moved->doc, &err) != CDCD_OK)
            cdcd_debug("elasticsearch", "%s stays where it is: %s", s->moved->doc, err.text);
    }
}
