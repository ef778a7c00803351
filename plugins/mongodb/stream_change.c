/*
 * stream_change.c: one change of the feed -> its event, with its number and the transaction's
 * metadata; or nothing, when it was delivered before. See stream_int.h.
 */
#include "stream_int.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

const char *mg_stream_where(const struct mg_change *c, char out[static 512])
{
    int db = c->db.len > 64 ? 64 : (int)c->db.len;
    int coll = c->collection.len > 255 ? 255 : (int)c->collection.len;
    snprintf(out, 512, "%.*s.%.*s at %" PRIu32 ":%" PRIu32, db, c->db.ptr, coll,
             c->collection.ptr ? c->collection.ptr : "", c->ts.t, c->ts.i);
    return out;
}

/* ---- transactions ---- */

static void boundary(struct mg_stream *st, struct cdcd_batch *b, enum cdcd_op op, uint64_t ordinal)
{
    struct mg_tx *tx = &st->tx;
    struct cdcd_event *e = cdcd_batch_event(b, op, NULL);
    e->source = mg_source_cells(b, NULL, (int32_t)tx->ts.i, tx->lsid_json.ptr, tx->lsid_json.len,
                                tx->txn_number, tx->wall_ms);
    e->tx_id = tx->id;
    e->ts_us = tx->ts_us;
    e->in_tx = true;
    e->pos = (struct cdcd_pos){mg_time_number(tx->ts), ordinal, true};
}

/* Its texts in the arena of this batch. */
static void tx_texts(struct mg_stream *st, struct cdcd_batch *b)
{
    struct mg_tx *tx = &st->tx;
    if (tx->read == st->reads)
        return;
    tx->read = st->reads;
    tx->id = (struct cdcd_slice){cdcd_arena_dup(&b->arena, tx->text.ptr, tx->text.len),
                                 tx->text.len};
    tx->lsid_json = (struct cdcd_slice){tx->id.ptr, tx->lsid_text};
}

void mg_stream_close_tx(struct mg_stream *st, struct cdcd_batch *b)
{
    struct mg_tx *tx = &st->tx;
    if (!tx->open)
        return;
    tx->open = false;
    if (!st->s->env->tx_metadata || !tx->begun)
        return;
    tx_texts(st, b);
    boundary(st, b, CDCD_OP_TX_END, (uint64_t)st->ord + 1);
    struct cdcd_event *e = b->last_event;
    struct cdcd_tx_collection *c = cdcd_arena_alloc(&b->arena, (tx->ncollections + 1) * sizeof *c);
    for (size_t i = 0; i < tx->ncollections; i++) {
        struct cdcd_slice label = tx->collections[i].name->label;
        c[i].name = (struct cdcd_slice){cdcd_arena_dup(&b->arena, label.ptr, label.len), label.len};
        c[i].count = tx->collections[i].count;
    }
    e->total_order = tx->total;
    e->collections = c;
    e->ncollections = (uint32_t)tx->ncollections;
    st->all = true;
}

static enum cdcd_rc open_tx(struct mg_stream *st, const struct mg_change *c, struct cdcd_error *err)
{
    static const struct cdcd_bson_style style = {.form = CDCD_BSON_STRICT};
    struct mg_tx *tx = &st->tx;
    const char *why = "there is none";
    char where[512];
    struct cdcd_arena a = {0};
    struct cdcd_writer w;
    cdcd_arena_init(&a, 512);
    cdcd_writer_begin(&w, &a);
    bool ok = c->lsid.ptr && cdcd_bson_json(&w, c->lsid, &style, &why);
    struct cdcd_slice text = cdcd_writer_end(&w);
    cdcd_buf_clear(&tx->lsid);
    cdcd_buf_clear(&tx->text);
    if (ok) {
        cdcd_buf_add(&tx->lsid, c->lsid.ptr, c->lsid.len);
        cdcd_buf_add(&tx->text, text.ptr, text.len);
        cdcd_buf_addf(&tx->text, ":%" PRId64, c->txn_number);
    }
    cdcd_arena_free(&a);
    if (!ok)
        return cdcd_error_set(err, CDCD_ERR_DATA,
                              "the lsid of a transaction's change of %s is bad: %s",
                              mg_stream_where(c, where), why);
    tx->lsid_text = text.len;
    tx->open = true;
    tx->begun = false;
    tx->number = ++st->transactions;
    tx->txn_number = c->txn_number;
    tx->ts = c->ts;
    tx->wall_ms = c->wall_ms;
    tx->ts_us = c->wall_ms != INT64_MIN ? c->wall_ms * 1000 : (int64_t)c->ts.t * 1000000;
    tx->total = 0;
    tx->ncollections = 0;
    tx->read = 0;
    return CDCD_OK;
}

static bool same_tx(const struct mg_tx *tx, const struct mg_change *c)
{
    return c->transaction && tx->txn_number == c->txn_number && mg_time_cmp(tx->ts, c->ts) == 0 &&
           cdcd_slice_eq(cdcd_buf_slice(&tx->lsid), c->lsid);
}

static struct mg_tx_collection *tx_collection(struct mg_tx *tx, struct mg_name *n)
{
    if (n->tx_number == tx->number)
        return &tx->collections[n->tx_index];
    if (tx->ncollections == tx->collections_cap) {
        tx->collections_cap = tx->collections_cap ? 2 * tx->collections_cap : 8;
        tx->collections = cdcd_xrealloc(tx->collections,
                                        tx->collections_cap * sizeof *tx->collections);
    }
    n->tx_number = tx->number;
    n->tx_index = tx->ncollections;
    tx->collections[tx->ncollections] = (struct mg_tx_collection){.name = n};
    return &tx->collections[tx->ncollections++];
}

/* Counts a change of the open transaction; e NULL: it was delivered before. */
static void count(struct mg_stream *st, struct mg_name *n, struct cdcd_event *e)
{
    struct mg_tx *tx = &st->tx;
    struct mg_tx_collection *c = tx_collection(tx, n);
    tx->begun = true;
    tx->total++;
    c->count++;
    if (!e)
        return;
    e->tx_id = tx->id;
    e->total_order = tx->total;
    e->data_collection_order = c->count;
}

/* ---- documents ---- */

/* How an event gets its document. */
struct wish {
    bool lookup, post_image, pre_image;
    bool overlap, only;
    uint32_t slot;
};

static struct wish wish_of(struct mg_stream *st, const struct mg_change *c, struct mg_name *n)
{
    const struct mg_config *cfg = st->s->cfg;
    struct wish w = {0};
    bool patch = c->op == CDCD_OP_UPDATE && !c->replaces;
    bool full = cfg->capture_mode == MG_MODE_UPDATE_FULL ||
                cfg->capture_mode == MG_MODE_UPDATE_FULL_PRE_IMAGE;
    bool pre = cfg->capture_mode == MG_MODE_PRE_IMAGE ||
               cfg->capture_mode == MG_MODE_UPDATE_FULL_PRE_IMAGE;
    w.overlap = mg_overlap_has(st, c, n, &w.slot);
    w.pre_image = pre && c->op != CDCD_OP_CREATE && !c->before.ptr && c->uuid.ptr;
    bool lacking = patch && full && !c->after.ptr && !c->lookup_done;
    w.post_image = lacking && cfg->full_update == MG_FULL_POST_IMAGE && !w.overlap;
    w.lookup = w.overlap || (lacking && !w.post_image);
    w.only = patch && !full;
    return w;
}

static enum cdcd_rc get_post_image(struct mg_stream *st, struct cdcd_batch *b, struct mg_change *c,
                                   const struct mg_name *n, struct cdcd_error *err)
{
    char where[512];
    struct cdcd_slice before = c->before;
    if (!before.ptr && c->uuid.ptr &&
        st->reads_from->pre_image(st->s, c->uuid, c->entry_ts, c->apply_ops_index, &b->arena,
                                  &before, err) != CDCD_OK)
        return CDCD_ERROR;
    if (!before.ptr)
        return cdcd_error_set(
            err, CDCD_ERR_CONFIG,
            "the update of %s has no pre-image, from which its post image would be made "
            "(capture.mode.full.update.type: post_image). Record them: db.getSiblingDB(\"%s\")"
            ".runCommand({collMod: \"%s\", changeStreamPreAndPostImages: {enabled: true}}); for "
            "changes before that, and those older than expireAfterSeconds, set "
            "capture.mode.full.update.type: lookup",
            mg_stream_where(c, where), n->db.ptr, n->collection.ptr);
    if (mg_update_apply(before, c->entry_o, &b->arena, &c->after, err) != CDCD_OK)
        return cdcd_error_context(err, "the update of %s", mg_stream_where(c, where));
    return CDCD_OK;
}

static struct cdcd_slice dup_slice(struct cdcd_arena *a, struct cdcd_slice s)
{
    return (struct cdcd_slice){s.ptr ? cdcd_arena_dup(a, s.ptr, s.len) : NULL, s.len};
}

/* `ambiguous` without the paths that are left out. */
static struct cdcd_slice strip_ambiguous(const struct mg_fields *x, struct cdcd_arena *a,
                                         struct cdcd_slice document)
{
    struct cdcd_bson_iter it;
    struct cdcd_bson_element e;
    struct mg_writer w;
    size_t n = 0;
    if (!document.ptr || !cdcd_bson_iter_init(&it, document))
        return (struct cdcd_slice){NULL, 0};
    mg_bson_begin(&w, a);
    while (cdcd_bson_iter_next(&it, &e) == 1) {
        if (mg_fields_excluded(x, e.name))
            continue;
        mg_bson_element(&w, e.type, e.name, e.value);
        n++;
    }
    struct cdcd_slice out = mg_bson_end(&w);
    return n ? out : (struct cdcd_slice){NULL, 0};
}

/* A copy of it in the batch (deep: what there is may be in another arena), without what is left
 * out. */
static bool copy_update(struct mg_stream *st, struct cdcd_batch *b, const struct mg_fields *x,
                        const struct cdcd_update **update)
{
    const struct cdcd_update *u = *update;
    struct cdcd_arena *a = &b->arena;
    if (!u || (!x && !st->from_hold))
        return true;
    struct cdcd_update *c = cdcd_arena_alloc(a, sizeof *c);
    *c = (struct cdcd_update){.updated = dup_slice(a, u->updated)};
    if (x && !mg_fields_strip_updated(x, a, u->updated, &c->updated))
        return false;
    struct cdcd_slice *removed = cdcd_arena_alloc(a, (u->nremoved + 1) * sizeof *removed);
    for (uint32_t i = 0; i < u->nremoved; i++)
        if (!x || !mg_fields_excluded(x, u->removed[i]))
            removed[c->nremoved++] = dup_slice(a, u->removed[i]);
    struct cdcd_truncated *cut = cdcd_arena_alloc(a, (u->ntruncated + 1) * sizeof *cut);
    for (uint32_t i = 0; i < u->ntruncated; i++)
        if (!x || !mg_fields_excluded(x, u->truncated[i].field))
            cut[c->ntruncated++] = (struct cdcd_truncated){dup_slice(a, u->truncated[i].field),
                                                           u->truncated[i].size};
    c->removed = removed;
    c->truncated = cut;
    c->ambiguous = x ? strip_ambiguous(x, a, u->ambiguous) : dup_slice(a, u->ambiguous);
    *update = c;
    return true;
}

static enum cdcd_rc strip(struct mg_stream *st, struct cdcd_batch *b, struct mg_change *c,
                          const struct mg_name *n, struct cdcd_error *err)
{
    char where[512];
    const struct mg_fields *x = n->fields;
    bool ok = copy_update(st, b, x, &c->update);
    if (ok && x && c->after.ptr)
        ok = mg_fields_strip(x, &b->arena, c->after, &c->after);
    if (ok && x && c->before.ptr)
        ok = mg_fields_strip(x, &b->arena, c->before, &c->before);
    return ok ? CDCD_OK
              : cdcd_error_set(err, CDCD_ERR_DATA, "the document of a change of %s is malformed",
                               mg_stream_where(c, where));
}

static enum cdcd_rc check_size(struct mg_stream *st, const struct mg_change *c,
                               struct cdcd_error *err)
{
    char where[512];
    int64_t max = st->s->env->max_event_bytes;
    size_t size = c->after.len + c->before.len + (c->update ? c->update->updated.len : 0);
    if (max <= 0 || size <= (uint64_t)max)
        return CDCD_OK;
    return cdcd_error_set(err, CDCD_ERR_DATA,
                          "a change of %s has %zu bytes, over max.event.bytes (%" PRId64
                          "): raise it, and the sink's limits with it",
                          mg_stream_where(c, where), size, max);
}

static enum cdcd_rc put_document(struct mg_stream *st, struct cdcd_batch *b,
                                 const struct mg_change *given, struct mg_name *n,
                                 struct cdcd_error *err)
{
    struct mg_change c = *given;
    struct wish w = wish_of(st, &c, n);
    if (w.pre_image && st->reads_from->pre_image(st->s, c.uuid, c.entry_ts, c.apply_ops_index,
                                                 &b->arena, &c.before, err) != CDCD_OK)
        return CDCD_ERROR;
    if (w.post_image && get_post_image(st, b, &c, n, err) != CDCD_OK)
        return CDCD_ERROR;
    if (w.lookup)
        c.after = (struct cdcd_slice){NULL, 0};
    if ((n->fields || st->from_hold) && strip(st, b, &c, n, err) != CDCD_OK)
        return CDCD_ERROR;
    if (check_size(st, &c, err) != CDCD_OK)
        return CDCD_ERROR;
    if (c.transaction) {
        tx_texts(st, b);
        c.lsid_json = st->tx.lsid_json;
        if (st->s->env->tx_metadata && !st->tx.begun)
            boundary(st, b, CDCD_OP_TX_BEGIN, 0);
    }
    struct cdcd_event *e = mg_change_event(b, &c, mg_name_schema(n));
    e->in_tx = c.transaction;
    e->pos = (struct cdcd_pos){mg_time_number(c.ts), (uint64_t)st->ord, true};
    if (c.transaction && st->s->env->tx_metadata)
        count(st, n, e);
    if (w.lookup)
        mg_pending_add(st, (struct mg_pending){e, n, w.slot, w.overlap, w.only});
    return CDCD_OK;
}

/* ---- one change ---- */

static bool beyond_barrier(const struct mg_stream *st, const struct mg_change *c)
{
    if (!st->barrier)
        return false;
    int d = mg_time_cmp(c->ts, st->barrier_ts);
    if (d != 0)
        return d > 0;
    return (mg_time_cmp(c->ts, st->ts) == 0 ? st->ord : 0) >= st->barrier_ord;
}

static enum cdcd_rc went_back(const struct mg_stream *st, const struct mg_change *c,
                              struct cdcd_error *err)
{
    char where[512];
    return cdcd_error_set(err, CDCD_ERR_FATAL,
                          "the log went back: a change of %s came after %" PRIu32 ":%" PRIu32
                          " was reached",
                          mg_stream_where(c, where), st->ts.t, st->ts.i);
}

static void put_ddl(struct mg_stream *st, struct cdcd_batch *b, const struct mg_change *c)
{
    if (!st->s->env->want_ddl)
        return;
    struct cdcd_event *e = mg_ddl_event(b, c);
    e->pos = (struct cdcd_pos){mg_time_number(c->ts), (uint64_t)st->ord, true};
}

/* The feed of the oplog looks at renames itself, together with the uuids of what follows. */
static enum cdcd_rc check_rename(struct mg_stream *st, const struct mg_change *c,
                                 struct cdcd_error *err)
{
    const struct mg_command *m = &c->command;
    if (m->kind != MG_CMD_RENAME || st->s->cfg->capture == MG_OPLOG)
        return CDCD_OK;
    struct mg_name *to = mg_schemas_name(st->schemas, m->to_db, m->to_collection);
    mg_name_look(to, st->s->filter);
    if (!to->captured)
        return CDCD_OK;
    return mg_replaced_by(st->s->cfg, mg_schemas_name(st->schemas, m->db, m->collection), to,
                          m->drop_target, c->ts, err);
}

/* The change's number, and the transaction that it is of. */
static enum cdcd_rc enter(struct mg_stream *st, const struct mg_change *c, struct cdcd_error *err)
{
    if (c->transaction && !st->tx.open && open_tx(st, c, err) != CDCD_OK)
        return CDCD_ERROR;
    if (mg_time_cmp(c->ts, st->ts) != 0) {
        st->ts = c->ts;
        st->ord = 0;
    }
    st->ord++;
    st->all = false;
    st->in_tx = c->transaction;
    st->last_ts_us = c->wall_ms != INT64_MIN ? c->wall_ms * 1000 : (int64_t)c->ts.t * 1000000;
    return CDCD_OK;
}

static enum cdcd_rc put_change(struct mg_stream *st, struct cdcd_batch *b,
                               const struct mg_change *c, struct cdcd_error *err)
{
    bool skip = mg_time_cmp(c->ts, st->skip_ts) == 0 && st->ord <= st->skip_ord;
    if (c->op == CDCD_OP_DDL) {
        if (!skip && check_rename(st, c, err) != CDCD_OK)
            return CDCD_ERROR;
        if (!skip)
            put_ddl(st, b, c);
        return CDCD_OK;
    }
    struct mg_name *n = mg_schemas_name(st->schemas, c->db, c->collection);
    mg_name_look(n, st->s->filter);
    if (!skip)
        return put_document(st, b, c, n, err);
    /* All of it was delivered: its END record, too. */
    if (c->transaction && st->s->env->tx_metadata && st->skip_ord != MG_ORD_ALL)
        count(st, n, NULL);
    return CDCD_OK;
}

enum cdcd_rc mg_stream_take(struct mg_stream *st, struct cdcd_batch *b, const struct mg_change *c,
                            struct cdcd_error *err)
{
    if (beyond_barrier(st, c)) {
        mg_stream_close_tx(st, b);
        return CDCD_END;
    }
    if (mg_time_cmp(c->ts, st->ts) < 0)
        return went_back(st, c, err);
    /* The place before it, should it fail: END of the transaction before it is not undone. */
    if (st->tx.open && !same_tx(&st->tx, c))
        mg_stream_close_tx(st, b);
    struct mg_time ts = st->ts;
    int64_t ord = st->ord;
    bool all = st->all, in_tx = st->in_tx;
    if (enter(st, c, err) != CDCD_OK || put_change(st, b, c, err) != CDCD_OK) {
        st->ts = ts;
        st->ord = ord;
        st->all = all;
        st->in_tx = in_tx;
        return CDCD_ERROR;
    }
    if (c->token.ptr) {
        cdcd_buf_clear(&st->token);
        cdcd_buf_add(&st->token, c->token.ptr, c->token.len);
    }
    return CDCD_OK;
}
