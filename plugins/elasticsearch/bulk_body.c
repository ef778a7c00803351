/*
 * The body of a bulk: which items of a lane's queue, and how they are written.
 *
 * An id is in a body once: of several changes of a row only the newest is sent, and the others are
 * kept until it is settled. So what has to be sent again can be put in front of the queue, and
 * nothing that is newer is overtaken. (All changes of a row in one transaction may have one
 * version, and then only the order tells which is the newest.)
 */
#include "sink.h"

#include <cdcd/json.h>

#include <stdlib.h>

/* Once around FNV's multiplication for each byte; index and id are short. */
uint64_t es_item_hash(struct cdcd_slice index, struct cdcd_slice id)
{
    uint64_t h = UINT64_C(0xcbf29ce484222325);
    for (size_t i = 0; i < index.len; i++)
        h = (h ^ (unsigned char)index.ptr[i]) * UINT64_C(0x100000001b3);
    h = (h ^ 0xff) * UINT64_C(0x100000001b3);
    for (size_t i = 0; i < id.len; i++)
        h = (h ^ (unsigned char)id.ptr[i]) * UINT64_C(0x100000001b3);
    return h ^ h >> 29;
}

/* ---- which items ---- */

/* Less is not worth a request of its own while there is more. */
#define WORTHWHILE ((size_t)256 << 10)

/* The batches that go round bound what there is of documents. Were all of them under way at a time,
 * all lanes would wait for the answers, and then the server for all that comes next: so one half is
 * under way, and the other is ready when the answers come. */
size_t es_body_most(const struct cdcd_sink *s)
{
    size_t bytes = 0;
    for (unsigned i = 0; i < s->nlanes; i++)
        bytes += s->lanes[i].queue.bytes + (s->lanes[i].busy ? s->lanes[i].body.len : 0);
    size_t share = bytes / 2 / s->active;
    if (share < WORTHWHILE)
        share = WORTHWHILE;
    return share < s->bulk_bytes ? share : s->bulk_bytes;
}

static void take_items(struct cdcd_sink *s, struct es_lane *lane)
{
    size_t most_bytes = es_body_most(s);
    struct es_queue *q = &lane->queue;
    size_t bytes = 0, most = lane->most_items ? lane->most_items : SIZE_MAX;
    lane->nitems = 0;
    while (q->first && lane->nitems < most) {
        struct es_item *item = q->first;
        size_t n = es_item_bytes(item);
        if (lane->nitems > 0 && bytes + n > most_bytes)
            break;
        bytes += n;
        q->first = item->next;
        if (!q->first)
            q->last = NULL;
        q->n--;
        q->bytes -= n;
        item->next = NULL;
        if (lane->nitems == lane->items_cap) {
            lane->items_cap = lane->items_cap ? lane->items_cap * 2 : 64;
            lane->items = cdcd_xrealloc(lane->items, lane->items_cap * sizeof(struct es_item *));
        }
        lane->items[lane->nitems++] = item;
    }
}

/* A document that cannot be completed. */
static enum cdcd_rc drop_refused(struct cdcd_sink *s, struct es_lane *lane, struct cdcd_error *err)
{
    size_t kept = 0;
    for (size_t i = 0; i < lane->nitems; i++) {
        struct es_item *item = lane->items[i];
        enum es_fate fate = ES_FATE_SEND;
        if (item->refused && item->doubtful) {
            es_doubt(s, item);
            continue;
        }
        if (item->refused) {
            const char *why = item->refused;
            if (es_refuse(s, item, "incomplete_document", why, &fate, err) != CDCD_OK) {
                while (i < lane->nitems)
                    lane->items[kept++] = lane->items[i++];
                lane->nitems = kept;
                return CDCD_ERROR;
            }
            item->hash = es_item_hash(item->action.index, item->action.id);
        }
        if (fate == ES_FATE_SETTLE)
            es_settle(s, item);
        else
            lane->items[kept++] = item;
    }
    lane->nitems = kept;
    return CDCD_OK;
}

/* ---- newest of each id ---- */

static void stand_for(struct es_item *newer, struct es_item *older)
{
    struct es_item **to = &newer->older;
    while (*to)
        to = &(*to)->older;
    *to = older;
}

/* The mask of a table for n items. */
static size_t clear_table(struct cdcd_sink *s, size_t n)
{
    size_t cap = 64;
    while (cap < 2 * n)
        cap *= 2;
    if (cap > s->table_cap) {
        free(s->table);
        s->table = cdcd_xmalloc(cap * sizeof *s->table);
        s->table_cap = cap;
    }
    memset(s->table, 0, cap * sizeof *s->table);
    return cap - 1;
}

static void newest_only(struct cdcd_sink *s, struct es_lane *lane)
{
    struct es_item **items = lane->items;
    size_t mask = clear_table(s, lane->nitems);
    for (size_t i = 0; i < lane->nitems; i++) {
        size_t at = items[i]->hash & mask;
        while (s->table[at] && !es_same_document(items[s->table[at] - 1], items[i]))
            at = (at + 1) & mask;
        size_t before = s->table[at];
        s->table[at] = (uint32_t)i + 1;
        if (!before)
            continue;
        struct es_item *earlier = items[before - 1], *later = items[i];
        /* Not so when a source has gone back. */
        bool wins = later->action.version >= earlier->action.version;
        stand_for(wins ? later : earlier, wins ? earlier : later);
        items[i] = wins ? later : earlier;
        items[before - 1] = NULL;
        s->counters.superseded++;
    }
    size_t kept = 0;
    for (size_t i = 0; i < lane->nitems; i++)
        if (items[i])
            items[kept++] = items[i];
    lane->nitems = kept;
}

/* ---- lines ---- */

static bool through_alias(const struct cdcd_sink *s, const struct es_item *item)
{
    return !item->dead && es_index_through_alias(s, item->action.index);
}

static void add_uint(struct cdcd_buf *b, uint64_t v)
{
    char digits[20];
    size_t n = sizeof digits;
    do
        digits[--n] = (char)('0' + v % 10);
    while (v /= 10);
    cdcd_buf_add(b, digits + n, sizeof digits - n);
}

#define ADD(b, s) cdcd_buf_add((b), "" s "", sizeof(s) - 1)

/* The path names the first item's index. */
static void add_item(const struct cdcd_sink *s, const struct es_item *item,
                     const struct es_item *first, struct cdcd_buf *b)
{
    const struct es_action *a = &item->action;
    bool is_delete = a->kind == ES_DELETE;
    if (is_delete)
        ADD(b, "{\"delete\":{\"_id\":");
    else
        ADD(b, "{\"index\":{\"_id\":");
    es_json_string(b, a->id);
    if (!cdcd_slice_eq(a->index, first->action.index)) {
        ADD(b, ",\"_index\":");
        es_json_string(b, a->index);
        if (through_alias(s, item) != through_alias(s, first))
            cdcd_buf_adds(b, through_alias(s, item) ? ",\"require_alias\":true"
                                                    : ",\"require_alias\":false");
    }
    if (!item->dead) {
        ADD(b, ",\"version\":");
        add_uint(b, a->version);
        ADD(b, ",\"version_type\":\"external_gte\"");
    }
    ADD(b, "}}\n");
    if (is_delete)
        return;
    cdcd_buf_add(b, a->source.ptr, a->source.len);
    ADD(b, "\n");
}

#define BULK "/%I/_bulk?filter_path=errors,error"

static char *bulk_path(struct cdcd_slice index, bool alias, bool brief)
{
    const char *fmt = alias ? BULK ",items.*.status,items.*.error&require_alias=true"
                            : BULK ",items.*.status,items.*.error";
    if (brief)
        fmt = alias ? BULK "&require_alias=true" : BULK;
    return es_path(fmt, index);
}

char *es_body_path(const struct cdcd_sink *s, const struct es_lane *lane)
{
    const struct es_item *first = lane->items[0];
    return bulk_path(first->action.index, through_alias(s, first), lane->brief);
}

char *es_bulk_path(const struct cdcd_sink *s, struct cdcd_slice index)
{
    return bulk_path(index, es_index_through_alias(s, index), false);
}

enum cdcd_rc es_body_make(struct cdcd_sink *s, struct es_lane *lane, struct cdcd_error *err)
{
    take_items(s, lane);
    bool missing = false, refused = false;
    for (size_t i = 0; i < lane->nitems; i++)
        missing |= lane->items[i]->action.nmissing > 0;
    if (missing && es_merge(s, lane->items, lane->nitems, err) != CDCD_OK)
        return CDCD_ERROR;
    for (size_t i = 0; missing && i < lane->nitems; i++)
        refused |= lane->items[i]->refused != NULL;
    if (refused && drop_refused(s, lane, err) != CDCD_OK)
        return CDCD_ERROR;
    newest_only(s, lane);
    es_doubts_tell(s, lane);
    size_t bytes = 0;
    for (size_t i = 0; i < lane->nitems; i++)
        bytes += es_item_bytes(lane->items[i]) + 32;
    cdcd_buf_clear(&lane->body);
    cdcd_buf_reserve(&lane->body, bytes);
    for (size_t i = 0; i < lane->nitems; i++)
        add_item(s, lane->items[i], lane->items[0], &lane->body);
    if (lane->body.failed)
        return cdcd_error_set(err, CDCD_ERR_DATA,
                              "a document of the index %.*s is larger than 1 GB: leave the large "
                              "column out (column.exclude.list)",
                              (int)lane->items[0]->action.index.len,
                              lane->items[0]->action.index.ptr);
    return CDCD_OK;
}
