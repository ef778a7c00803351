/*
 * stream.c: construction, places in the log, positions, the barrier. See stream_int.h.
 */
#include "stream_int.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

/* LOG_EVENT_ARTIFICIAL_F: made up by the server for this connection, not in the file. */
#define ARTIFICIAL 0x20

/* ---- construction ---- */

static void load_sets(struct my_stream *st)
{
    enum my_flavor flavor = st->e.server->flavor;
    const struct my_position *from = &st->from;
    st->gtids = from->gtid[0] || flavor == MY_MARIADB;
    st->seen = my_gtid_set_new(flavor);
    st->safe = my_gtid_set_new(flavor);
    my_gtid_set_parse(from->gtid, strlen(from->gtid), st->seen);
    my_gtid_set_parse(from->gtid, strlen(from->gtid), st->safe);
    if (!from->done)
        return;
    st->window = true;
    if (from->done[0]) {
        st->window_set = my_gtid_set_new(flavor);
        my_gtid_set_parse(from->done, strlen(from->done), st->window_set);
    }
}

enum cdcd_rc my_stream_new(const struct my_stream_env *env, const struct my_position *from,
                           struct my_stream **out, struct cdcd_error *err)
{
    *out = NULL;
    if (from->flavor != env->server->flavor)
        return cdcd_error_set(err, CDCD_ERR_LOSS,
                              "the stored position is of a %s server and this one is %s: connect "
                              "to the right server, or start a new snapshot",
                              from->flavor == MY_MARIADB ? "MariaDB" : "MySQL",
                              env->server->flavor == MY_MARIADB ? "MariaDB" : "MySQL");
    struct my_stream *st = cdcd_xcalloc(1, sizeof *st);
    st->e = *env;
    st->decoder = my_decoder_new(env->server->flavor);
    st->pool.dir = env->cfg->spill_dir ? env->cfg->spill_dir : "/tmp";
    st->pool.max = env->cfg->spill_max_bytes > 0 ? (uint64_t)env->cfg->spill_max_bytes : 0;
    my_position_copy(from, &st->from);
    load_sets(st);
    st->file = cdcd_xstrdup(st->from.file);
    st->done_file = cdcd_xstrdup(st->from.file);
    st->pos = st->at = st->done_pos = from->pos;
    st->seq = from->seq;
    st->skip_ord = from->ord;
    st->group = my_group_new(&st->pool);
    st->held_end = &st->held;
    cdcd_buf_init(&st->query, 0);
    cdcd_arena_init(&st->scratch, 16 << 10);
    *out = st;
    return CDCD_OK;
}

static void free_tx_tables(struct my_stream *st)
{
    for (size_t i = 0; i < st->ntx_tables; i++)
        free(st->tx_tables[i].label);
    free(st->tx_tables);
}

void my_stream_free(struct my_stream *st)
{
    if (!st)
        return;
    my_reading_free(st->r);
    my_open_reset(st);
    free(st->open.savepoints);
    while (st->held)
        my_xa_drop(st, st->held);
    my_group_free(st->group);
    my_entries_clear(&st->entries);
    free(st->entries.buckets);
    my_decoder_free(st->decoder);
    free(st->file);
    free(st->done_file);
    my_gtid_set_free(st->seen);
    my_gtid_set_free(st->safe);
    my_gtid_set_free(st->window_set);
    my_position_free(&st->from);
    free_tx_tables(st);
    cdcd_buf_free(&st->query);
    cdcd_arena_free(&st->scratch);
    my_gtid_set_free(st->barrier_set);
    free(st->barrier_file);
    free(st);
}

uint64_t my_stream_seq(const struct my_stream *st)
{
    return st ? st->seq : 0;
}

/* ---- messages ---- */

const char *my_stream_where(const struct my_stream *st, char out[static 256])
{
    const struct my_tx *tx = &st->tx;
    if (tx->open && tx->gtid_text.ptr)
        snprintf(out, 256, "GTID %.*s (%s:%" PRIu64 ")", (int)tx->gtid_text.len, tx->gtid_text.ptr,
                 st->file, st->rows_at ? st->rows_at : tx->start);
    else
        snprintf(out, 256, "%s:%" PRIu64, st->file, st->rows_at ? st->rows_at : st->at);
    return out;
}

enum cdcd_rc my_stream_vanished(const struct my_stream *st, const char *what,
                                struct cdcd_error *err)
{
    return cdcd_error_set(err, CDCD_ERR_LOSS,
                          "of the transaction %s%s %" PRIu64
                          " changes are delivered, but the server %s. Was its log replaced, or the "
                          "include and exclude lists changed in between? Undo that, or start a new "
                          "snapshot",
                          st->from.tx[0] ? "" : "after ",
                          st->from.tx[0] ? st->from.tx : st->from.file, st->skip_ord, what);
}

/* ---- places ---- */

/* binlog.000009 < binlog.000010 < binlog.1000000: by number. */
int my_file_compare(const char *a, const char *b)
{
    const char *x = strrchr(a, '.'), *y = strrchr(b, '.');
    x = x ? x + 1 : a;
    y = y ? y + 1 : b;
    while (*x == '0')
        x++;
    while (*y == '0')
        y++;
    size_t n = strlen(x), m = strlen(y);
    return n != m ? (n < m ? -1 : 1) : strcmp(x, y);
}

/* Offsets have 64 bits and the log writes the lower 32 of them: the first such place from here on.
 * The server tells (by a heartbeat) when it leaves out more than that. */
static uint64_t widen(uint64_t here, uint32_t low)
{
    uint64_t there = (here & ~(uint64_t)UINT32_MAX) | low;
    return there < here ? there + (UINT64_C(1) << 32) : there;
}

static void set_file(char **to, const char *p, size_t n)
{
    if (strlen(*to) == n && memcmp(*to, p, n) == 0)
        return;
    free(*to);
    *to = cdcd_xstrndup(p, n);
}

void my_stream_place(struct my_stream *st, const struct my_event *e)
{
    if (e->kind == MY_EV_ROTATE) {
        set_file(&st->file, e->rotate.file.ptr, e->rotate.file.len);
        st->pos = st->at = e->rotate.pos;
        return;
    }
    if (e->kind == MY_EV_HEARTBEAT) {
        if (e->rotate.file.len == strlen(st->file) &&
            memcmp(e->rotate.file.ptr, st->file, e->rotate.file.len) == 0)
            st->pos = st->at = e->rotate.pos >= st->pos ? e->rotate.pos
                                                        : widen(st->pos, (uint32_t)e->rotate.pos);
        return;
    }
    if (e->end_pos == 0 || e->flags & ARTIFICIAL)
        return;
    st->pos = widen(st->pos, e->end_pos);
    st->at = st->pos > e->size ? st->pos - e->size : st->pos;
}

/* The window after a resume closes where everything is as it was: nothing of it is moved before. */
static void close_window(struct my_stream *st)
{
    if (!st->window)
        return;
    if (st->window_set ? !my_gtid_set_contains(st->seen, st->window_set)
                       : my_file_compare(st->file, st->from.done_file) < 0 ||
                             (my_file_compare(st->file, st->from.done_file) == 0 &&
                              st->pos < st->from.done_pos))
        return;
    st->window = false;
}

static void settle_here(struct my_stream *st)
{
    set_file(&st->done_file, st->file, strlen(st->file));
    st->done_pos = st->pos;
    close_window(st);
}

/* A dump by GTIDs begins at the start of a file and leaves out what is delivered: the place does
 * not go back for that. */
void my_stream_settle(struct my_stream *st)
{
    if (st->pos >= st->done_pos || strcmp(st->file, st->done_file) != 0)
        settle_here(st);
}

void my_stream_finish_group(struct my_stream *st, bool prepared)
{
    const struct my_open *o = &st->open;
    if (o->has_gtid && st->gtids) {
        my_gtid_set_add(st->seen, &o->gtid);
        if (!prepared)
            my_gtid_set_add(st->safe, &o->gtid);
    }
    my_open_reset(st);
    settle_here(st);
}

/* ---- positions ---- */

static char *set_text(const struct my_gtid_set *s)
{
    struct cdcd_buf b;
    cdcd_buf_init(&b, 0);
    my_gtid_set_write(s, &b);
    cdcd_buf_cstr(&b);
    return b.ptr;
}

/* True when prepared transactions keep the place in the log back, since no GTID set can leave them
 * out. An empty set is no place, so the first ones of a new server count too. */
static bool held_back(const struct my_stream *st)
{
    if (!st->held)
        return false;
    return st->e.server->flavor == MY_MARIADB || !st->gtids || my_gtid_set_empty(st->safe);
}

void my_stream_position(const struct my_stream *st, struct my_position *out)
{
    const struct my_tx *tx = &st->tx;
    if (st->window) {
        my_position_copy(&st->from, out);
        return;
    }
    *out = (struct my_position){.flavor = st->e.server->flavor, .seq = st->seq};
    out->server = cdcd_xstrdup(st->from.server);
    if (held_back(st)) {
        const struct my_held *h = st->held;
        out->gtid = cdcd_xstrdup(h->gtid_before);
        out->file = cdcd_xstrdup(h->file_before);
        out->pos = h->pos_before;
        out->done = st->gtids ? set_text(st->seen) : cdcd_xstrdup("");
        out->done_file = cdcd_xstrdup(st->done_file);
        out->done_pos = st->done_pos;
    } else {
        out->gtid = st->gtids ? set_text(st->safe) : cdcd_xstrdup("");
        out->file = cdcd_xstrdup(st->done_file);
        out->pos = st->done_pos;
    }
    if (tx->open && (tx->ord || tx->skip)) {
        out->ord = tx->ord > tx->skip ? tx->ord : tx->skip;
        out->tx = tx->gtid_text.ptr ? cdcd_xstrndup(tx->id, tx->id_len) : cdcd_xstrdup("");
    } else {
        out->ord = st->skip_ord;
        out->tx = cdcd_xstrdup(st->skip_ord ? st->from.tx : "");
    }
}

/* ---- the barrier ---- */

void my_stream_set_barrier(struct my_stream *st, const struct my_position *p)
{
    my_gtid_set_free(st->barrier_set);
    free(st->barrier_file);
    st->barrier_set = NULL;
    st->barrier_file = NULL;
    st->barrier = p != NULL;
    if (!p)
        return;
    st->barrier_file = cdcd_xstrdup(p->done ? p->done_file : p->file);
    st->barrier_pos = p->done ? p->done_pos : p->pos;
    if (!st->gtids)
        return;
    const char *set = p->done && p->done[0] ? p->done : p->gtid;
    st->barrier_set = my_gtid_set_new(p->flavor);
    my_gtid_set_parse(set, strlen(set), st->barrier_set);
}

bool my_stream_reached(const struct my_stream *st)
{
    if (!st->barrier || st->open.open || st->replay || st->window || st->skip_ord)
        return false;
    if (st->barrier_set)
        return my_gtid_set_contains(st->seen, st->barrier_set);
    int c = my_file_compare(st->done_file, st->barrier_file);
    return c > 0 || (c == 0 && st->done_pos >= st->barrier_pos);
}
