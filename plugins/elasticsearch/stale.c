/*
 * Writes that the index refuses since it has something newer (409).
 *
 * Where versions are offsets, newer means further on in the same partition. The index has met that
 * offset before, so the partition must have it, with this document's key, unless compaction or
 * retention has taken it since. If it does not, the offsets are of another log: the topic was made
 * anew, or partitions were added and the key has moved. Then what is refused is not older, and to
 * pass it over would lose it without a word.
 *
 * Looking costs a connection, and after a crash many are refused in good order: no more than a
 * tenth of the time goes into it. One that comes alone is always looked at.
 */
#include "sink.h"

#include <stdlib.h>

/* "[7]: version conflict, current version [12] is higher than the one provided [3]" */
bool es_held_version(const char *reason, int64_t *out)
{
    static const char before[] = "current version [";
    const char *p = strstr(reason, before), *digits = p ? p + sizeof before - 1 : NULL;
    char *end;
    if (!digits || *digits < '0' || *digits > '9')
        return false;
    *out = strtoll(digits, &end, 10);
    return *end == ']';
}

/* The key there gives the document's id too; its bytes may differ, as columns get other forms. */
static bool same_document(struct cdcd_sink *s, const struct es_item *item, struct cdcd_slice key)
{
    struct cdcd_record r = *item->record;
    struct es_action a;
    struct cdcd_arena arena;
    struct cdcd_error ignored = {0};
    if (cdcd_slice_eq(key, r.key))
        return true;
    r.key = key;
    cdcd_arena_init(&arena, 4096);
    bool same = es_convert(s->converter, &r, &arena, &a, &ignored) == CDCD_OK &&
                cdcd_slice_eq(a.id, item->action.id);
    cdcd_arena_free(&arena);
    return same;
}

static enum cdcd_rc other_log(const struct es_item *item, const struct cdcd_place *place,
                              struct cdcd_error *err)
{
    const struct es_action *a = &item->action;
    char where[512], why[256];
    es_place(item->record, where, sizeof where);
    if (place->offset >= place->end)
        snprintf(why, sizeof why, "the partition ends at offset %lld", (long long)place->end);
    else
        snprintf(why, sizeof why, "the record there has the key %.*s",
                 place->key.len > 100 ? 100 : (int)place->key.len,
                 place->key.ptr ? place->key.ptr : "");
    return cdcd_error_set(
        err, CDCD_ERR_LOSS,
        "index %.*s, _id %.*s: %s is refused as older than version %lld, but %s. The topic was "
        "made anew, or partitions were added to it and the key has moved, or another topic or "
        "program writes this index: offsets do not tell any more what is newer. Build the index "
        "anew from the topic (cdcd replay); where partitions were added, have the table written "
        "into a new topic first; give each topic an index of its own (index, index.routes)",
        (int)a->index.len, a->index.ptr, a->id.len > 200 ? 200 : (int)a->id.len, a->id.ptr, where,
        (long long)place->offset, why);
}

enum cdcd_rc es_stale(struct cdcd_sink *s, const struct es_item *item, const char *reason,
                      struct cdcd_error *err)
{
    const struct cdcd_record *r = item->record;
    struct cdcd_place place = {.partition = r->partition, .end = -1};
    int64_t begun = cdcd_now_ms();
    if (!s->env->look || r->partition < 0 || item->action.version != (uint64_t)r->offset ||
        !es_held_version(reason, &place.offset) || begun < s->next_look)
        return CDCD_OK;
    struct cdcd_slice name = r->topic ? r->topic->name : r->topic_name;
    char *topic = cdcd_xstrndup(name.ptr, name.len);
    place.topic = topic;
    cdcd_buf_init(&place.key, 0);
    enum cdcd_rc rc = s->env->look(s->env->ctx, &place, err);
    int64_t now = cdcd_now_ms();
    s->next_look = now + 10 * (now - begun);
    if (rc == CDCD_OK && (place.offset >= place.end ||
                          (place.found && !same_document(s, item, cdcd_buf_slice(&place.key)))))
        rc = other_log(item, &place, err);
    cdcd_buf_free(&place.key);
    free(topic);
    return rc;
}
