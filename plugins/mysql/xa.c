/*
 * xa.c: prepared XA transactions, kept by their xid until they are committed or rolled back. See
 * stream_int.h.
 *
 * The list is in the order of the log, and short: each entry holds locks on its server.
 */
#include "stream_int.h"

#include <stdlib.h>

static char *seen_text(const struct my_stream *st)
{
    struct cdcd_buf b;
    cdcd_buf_init(&b, 0);
    my_gtid_set_write(st->seen, &b);
    cdcd_buf_cstr(&b);
    return b.ptr;
}

struct my_held *my_xa_find(struct my_stream *st, struct cdcd_slice xid)
{
    struct my_held *h = st->held;
    while (h && !cdcd_slice_eq(cdcd_slice_str(h->xid), xid))
        h = h->next;
    return h;
}

void my_xa_drop(struct my_stream *st, struct my_held *h)
{
    struct my_held **p = &st->held;
    while (*p != h)
        p = &(*p)->next;
    *p = h->next;
    if (st->held_end == &h->next)
        st->held_end = p;
    my_group_free(h->events);
    free(h->xid);
    free(h->gtid_before);
    free(h->file_before);
    free(h);
}

/* The group st->open, whose events are st->group. Its start is where the log is read from again;
 * what was there before it counts, as it is not in `seen` yet. */
enum cdcd_rc my_xa_hold(struct my_stream *st, const char *xid, struct cdcd_error *err)
{
    const struct my_open *o = &st->open;
    struct my_held *h = my_xa_find(st, cdcd_slice_str(xid));
    if (h) {
        char where[256];
        return cdcd_error_set(err, CDCD_ERR_FATAL,
                              "the XA transaction %s is prepared twice, the second time at %s; "
                              "nothing of it was used and the position has not moved",
                              xid, my_stream_where(st, where));
    }
    h = cdcd_xcalloc(1, sizeof *h);
    h->xid = cdcd_xstrdup(xid);
    h->has_gtid = o->has_gtid;
    h->gtid = o->gtid;
    h->gtid_before = st->gtids ? seen_text(st) : cdcd_xstrdup("");
    h->file_before = cdcd_xstrdup(st->file);
    h->pos_before = o->start;
    h->events = st->group;
    my_group_pause(h->events);
    st->group = my_group_new(&st->pool);
    *st->held_end = h;
    st->held_end = &h->next;
    return CDCD_OK;
}
