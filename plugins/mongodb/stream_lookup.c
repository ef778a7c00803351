/*
 * stream_lookup.c: the documents that events of a batch still lack, many in one query; and the
 * rules of the overlap with a snapshot (stream.h).
 *
 * Changes up to `until` are under those rules. A lookup for them may see later changes of the same
 * document, which must then not be given as they were: so each such lookup leaves its time in a
 * table, by hash of the document's name. Two documents in one slot cost a lookup too many.
 */
#include "stream_int.h"

#include <inttypes.h>
#include <stdlib.h>

/* Documents of one query, together, as far as their sizes can be foreseen. */
#define QUERY_BYTES (1u << 20)
#define QUERY_MAX   512
/* A slot whose document is about to be looked up. */
#define SOON UINT64_MAX

/* ---- the overlap ---- */

static void end_overlap(struct mg_stream *st)
{
    free(st->slots);
    st->slots = NULL;
    st->until = st->overlap_end = (struct mg_time){0, 0};
}

bool mg_overlap_has(struct mg_stream *st, const struct mg_change *c, const struct mg_name *n,
                    uint32_t *slot)
{
    bool within = st->until_open || mg_time_cmp(c->ts, st->until) <= 0;
    if (!within && mg_time_cmp(c->ts, st->overlap_end) > 0) {
        if (st->overlap_end.t && !st->npending)
            end_overlap(st);
        if (!st->slots)
            return false;
    }
    uint64_t h = mg_hash(n->hash ^ c->id.aux, c->id.ptr, c->id.len);
    *slot = (uint32_t)(h >> 20 & (MG_SLOTS - 1));
    return within || (st->slots && mg_time_number(c->ts) <= st->slots[*slot]);
}

static void note_slot(struct mg_stream *st, uint32_t slot, uint64_t time)
{
    if (!st->slots)
        st->slots = cdcd_xcalloc(MG_SLOTS, sizeof *st->slots);
    if (time == SOON || st->slots[slot] == SOON || st->slots[slot] < time)
        st->slots[slot] = time;
}

/* ---- what is pending ---- */

void mg_pending_add(struct mg_stream *st, struct mg_pending p)
{
    if (st->npending == st->pending_cap) {
        st->pending_cap = st->pending_cap ? 2 * st->pending_cap : 64;
        st->pending = cdcd_xrealloc(st->pending, st->pending_cap * sizeof *st->pending);
    }
    st->pending[st->npending++] = p;
    if (p.overlap)
        note_slot(st, p.slot, SOON);
}

bool mg_pending_full(const struct mg_stream *st)
{
    return st->npending >= st->lookup_most;
}

/* The next query may be of as many documents as would fit if they were like these; of twice as many
 * at most, so that large ones are met in small number. */
static void learn_size(struct mg_stream *st, const struct cdcd_slice *found, size_t n)
{
    size_t sum = 0, some = 0;
    for (size_t i = 0; i < n; i++) {
        sum += found[i].len;
        some += found[i].ptr != NULL;
    }
    size_t fit = some ? QUERY_BYTES / (sum / some + 1) : QUERY_MAX;
    size_t most = n >= st->lookup_most ? 2 * st->lookup_most : st->lookup_most;
    most = most > fit ? fit : most;
    st->lookup_most = most > QUERY_MAX ? QUERY_MAX : most ? most : 1;
}

/* ---- results ---- */

/* Marks an event that is not to be given: see sweep(). */
#define LEFT_OUT 0xff

static enum cdcd_rc put_document(struct mg_stream *st, struct cdcd_batch *b,
                                 const struct mg_pending *p, struct cdcd_slice document,
                                 struct cdcd_error *err)
{
    struct cdcd_event *e = p->e;
    int64_t max = st->s->env->max_event_bytes;
    if (p->name->fields && !mg_fields_strip(p->name->fields, &b->arena, document, &document))
        return cdcd_error_set(err, CDCD_ERR_DATA, "a document of %s is malformed",
                              p->name->label.ptr);
    if (max > 0 && document.len > (uint64_t)max)
        return cdcd_error_set(err, CDCD_ERR_DATA,
                              "a document of %s has %zu bytes, over max.event.bytes (%" PRId64
                              "): raise it, and the sink's limits with it",
                              p->name->label.ptr, document.len, max);
    struct cdcd_cell *cells = (struct cdcd_cell *)e->after; /* made by mg_change_event() */
    cells[CDCD_DOC_DOCUMENT] = cdcd_cell_bson(CDCD_BSON_DOCUMENT, document.ptr, document.len);
    e->after_lookup = true;
    return CDCD_OK;
}

static enum cdcd_rc put_result(struct mg_stream *st, struct cdcd_batch *b,
                               const struct mg_pending *p, struct cdcd_slice document,
                               struct cdcd_error *err)
{
    struct cdcd_event *e = p->e;
    if (e->op == CDCD_OP_DELETE) {
        if (document.ptr)
            e->op = LEFT_OUT; /* it is there again: its insert is still to come */
        return CDCD_OK;
    }
    if (document.ptr)
        return put_document(st, b, p, document, err);
    if (p->overlap && (e->op != CDCD_OP_UPDATE || !e->update || p->only))
        e->op = LEFT_OUT; /* its delete is still to come */
    return CDCD_OK;
}

/* Takes out the events that are left out. */
static void sweep(struct cdcd_batch *b)
{
    struct cdcd_event **to = &b->events, *last = NULL;
    uint32_t n = 0;
    for (struct cdcd_event *e = b->events; e; e = e->next) {
        if (e->op == LEFT_OUT)
            continue;
        *to = last = e;
        to = &e->next;
        n++;
    }
    *to = NULL;
    b->last_event = last;
    b->nevents = n;
}

/* All that are pending of one collection: those from `first` on with the same name. */
static enum cdcd_rc resolve_name(struct mg_stream *st, struct cdcd_batch *b, size_t first,
                                 struct cdcd_cell *ids, struct cdcd_slice *found,
                                 struct cdcd_error *err)
{
    struct mg_name *name = st->pending[first].name;
    struct mg_time seen;
    size_t n = 0;
    for (size_t i = first; i < st->npending; i++) {
        const struct cdcd_event *e = st->pending[i].e;
        if (st->pending[i].name == name)
            ids[n++] = (e->op == CDCD_OP_DELETE ? e->before : e->after)[CDCD_DOC_ID];
    }
    if (st->reads_from->many(st->s, name->db, name->collection, ids, n, st->ts, &b->arena, found,
                             &seen, err) != CDCD_OK)
        return CDCD_ERROR;
    learn_size(st, found, n);
    n = 0;
    for (size_t i = first; i < st->npending; i++) {
        struct mg_pending *p = &st->pending[i];
        if (p->name != name)
            continue;
        if (p->overlap) {
            note_slot(st, p->slot, mg_time_number(seen));
            if (mg_time_cmp(seen, st->overlap_end) > 0)
                st->overlap_end = seen;
        }
        if (put_result(st, b, p, found[n++], err) != CDCD_OK)
            return CDCD_ERROR;
        p->name = NULL;
    }
    return CDCD_OK;
}

enum cdcd_rc mg_pending_resolve(struct mg_stream *st, struct cdcd_batch *b, struct cdcd_error *err)
{
    size_t n = st->npending;
    if (!n)
        return CDCD_OK;
    struct cdcd_cell *ids = cdcd_xcalloc(n, sizeof *ids);
    struct cdcd_slice *found = cdcd_xcalloc(n, sizeof *found);
    enum cdcd_rc rc = CDCD_OK;
    for (size_t i = 0; i < n && rc == CDCD_OK; i++)
        if (st->pending[i].name)
            rc = resolve_name(st, b, i, ids, found, err);
    st->npending = 0;
    free(ids);
    free(found);
    if (rc == CDCD_OK)
        sweep(b);
    return rc;
}
