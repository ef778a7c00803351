/*
 * Records without a value that the log left out, whose document is not there, and nothing tells
 * that it was deleted.
 *
 * After a crash records come again, and a document that one of them is about may be deleted
 * already, by one that comes after it. The index tells so as long as it remembers the delete's
 * version; but that it forgets when its server is restarted. So such a record is kept back,
 * together with its batch, until another of the same id comes that says all of it: a delete or a
 * whole row. When nothing comes any more, or all batches are held, it is refused.
 *
 * Rows whose key has changed may wait for what is kept of them (moved.c): they are tried again and
 * again for a while, with all that waits behind them.
 */
#include "sink.h"

#define QUIET_MS    1000  /* without another record */
#define LOOK_MS     500   /* between two looks for what another instance may keep, see moved.c */
#define PATIENCE_MS 30000 /* and so long */

void es_doubt(struct cdcd_sink *s, struct es_item *item)
{
    int64_t now = cdcd_now_ms();
    item->next = s->doubts;
    s->doubts = item;
    s->ndoubts++;
    s->doubts_look = now + LOOK_MS;
    if (item->doubted)
        return;
    item->doubted = now;
    s->doubts_since = now;
}

static bool tells(const struct es_item *item, const struct es_item *doubt)
{
    return es_same_document(item, doubt) && !item->dead &&
           item->action.version >= doubt->action.version;
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

static bool may_be_kept(const struct es_item *item, int64_t now)
{
    return item->action.moved_from.ptr && now - item->doubted < PATIENCE_MS;
}

/* What it lacks, or what one before it of the same id lacks, may be kept by another instance, or by
 * this one later. */
static bool is_patient(const struct cdcd_sink *s, const struct es_item *of, int64_t now)
{
    for (const struct es_item *item = s->doubts; item; item = item->next)
        if (may_be_kept(item, now) && es_same_document(item, of))
            return true;
    return false;
}

static int64_t quiet_at(const struct cdcd_sink *s)
{
    bool more = !s->doubts || s->open > s->ndoubts || (s->converting && !s->held);
    return more ? INT64_MAX : s->doubts_since + QUIET_MS;
}

int64_t es_doubts_end(const struct cdcd_sink *s)
{
    int64_t end = quiet_at(s), now = cdcd_now_ms();
    for (const struct es_item *item = s->doubts; item; item = item->next)
        if (may_be_kept(item, now) && s->doubts_look < end)
            end = s->doubts_look;
    return end;
}

void es_doubts_serve(struct cdcd_sink *s)
{
    int64_t now = cdcd_now_ms();
    bool quiet = now >= quiet_at(s), look = now >= s->doubts_look;
    struct es_item *out = NULL, **end = &out;
    if (!quiet && !look)
        return;
    for (struct es_item *item = s->doubts; item; item = item->next) {
        bool patient = is_patient(s, item, now);
        item->sure = !patient && quiet;
        item->doubtful = !item->sure && !(patient && look);
    }
    for (struct es_item **at = &s->doubts; *at;) {
        struct es_item *item = *at;
        if (item->doubtful) {
            at = &item->next;
            continue;
        }
        *at = item->next;
        s->ndoubts--;
        item->refused = NULL;
        *end = item;
        end = &item->next;
    }
    *end = NULL;
    while (out) {
        struct es_item *item = out;
        out = item->next;
        es_again(s, item);
    }
}

bool es_doubts_moved(const struct cdcd_sink *s, const struct es_item *of)
{
    for (const struct es_item *item = s->doubts; item; item = item->next)
        if (item->action.moved_from.ptr && es_same_document(item, of))
            return true;
    return false;
}
