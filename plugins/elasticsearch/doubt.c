/*
 * Records without a value that the log left out, whose document is not there, and nothing tells
 * that it was deleted.
 *
 * After a crash records come again, and a document that one of them is about may be deleted
 * already, by one that comes after it. The index tells so as long as it remembers the delete's
 * version; but that it forgets when its server is restarted. So such a record is kept back,
 * together with its batch, until another of the same id comes that says all of it: a delete or a
 * whole row. When nothing comes any more, or all batches are held, it is refused.
 */
#include "sink.h"

#define QUIET_MS 1000 /* without another record */

void es_doubt(struct cdcd_sink *s, struct es_item *item)
{
    item->next = s->doubts;
    s->doubts = item;
    s->ndoubts++;
    s->doubts_since = cdcd_now_ms();
}

static bool tells(const struct es_item *item, const struct es_item *doubt)
{
    return item->hash == doubt->hash && !item->dead &&
           item->action.version >= doubt->action.version &&
           cdcd_slice_eq(item->action.id, doubt->action.id) &&
           cdcd_slice_eq(item->action.index, doubt->action.index);
}

/* Those of one id are taken from the newest to the oldest, and so they stand behind one another. */
static void tell(struct cdcd_sink *s, struct es_item *item)
{
    struct es_item **at = &s->doubts, **to = &item->older;
    while (*to)
        to = &(*to)->older;
    while (*at) {
        struct es_item *doubt = *at;
        if (!tells(item, doubt)) {
            at = &doubt->next;
            continue;
        }
        *at = doubt->next;
        s->ndoubts--;
        doubt->next = NULL;
        doubt->refused = NULL;
        doubt->doubtful = false;
        *to = doubt;
        to = &doubt->older;
    }
}

void es_doubts_tell(struct cdcd_sink *s, const struct es_lane *lane)
{
    for (size_t i = 0; i < lane->nitems && s->doubts; i++)
        tell(s, lane->items[i]);
}

int64_t es_doubts_end(const struct cdcd_sink *s)
{
    bool more = !s->doubts || s->open > s->ndoubts || (s->converting && !s->held);
    return more ? INT64_MAX : s->doubts_since + QUIET_MS;
}

void es_doubts_serve(struct cdcd_sink *s)
{
    if (cdcd_now_ms() < es_doubts_end(s))
        return;
    while (s->doubts) {
        struct es_item *item = s->doubts;
        s->doubts = item->next;
        item->sure = true;
        item->doubtful = false;
        item->refused = NULL;
        es_again(s, item);
    }
    s->ndoubts = 0;
}
