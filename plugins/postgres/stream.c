/*
 * stream.c: see stream.h.
 */
#include "stream.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

/* Messages of one pg_stream_replay call: some milliseconds, so that status replies go out. */
#define REPLAY_STEP 4096

/* ---- construction ---- */

void pg_stream_set_last(struct pg_stream *st, pg_lsn last)
{
    st->last = last;
    int n = last ? snprintf(st->sequence, sizeof st->sequence, "[\"%" PRIu64 "\",\"", last)
                 : snprintf(st->sequence, sizeof st->sequence, "[null,\"");
    st->sequence_len = (size_t)n;
}

enum cdcd_rc pg_stream_new(const struct pg_config *cfg, const struct cdcd_source_env *env,
                           const struct pg_rel_env *rel_env, const struct pg_position *from,
                           struct pg_stream **out, struct cdcd_error *err)
{
    struct pg_stream *st = cdcd_xcalloc(1, sizeof *st);
    *out = st;
    st->cfg = cfg;
    st->env = env;
    st->rel_env = *rel_env;
    st->from_lsn = st->seen = from->lsn;
    st->from_done = st->done = from->done > from->lsn ? from->done : from->lsn;
    st->skip_tx = from->tx;
    st->skip_ord = from->ord;
    memcpy(st->sys, from->sys, sizeof st->sys);
    pg_stream_set_last(st, from->last);
    cdcd_buf_init(&st->tx.origin, 0);
    st->scratch = cdcd_batch_new();
    st->db_schema = cdcd_schema_new(rel_env->db, "", "", 0);
    cdcd_schema_finish(st->db_schema);
    char *owner = cdcd_xasprintf("%s.%s", from->sys[0] ? from->sys : "0", cfg->slot_name);
    st->spools = pg_spools_new(cfg->spill_dir, owner, cfg->spill_max_bytes);
    free(owner);
    enum cdcd_rc rc = cdcd_patterns_compile(&cfg->message_include, "message.prefix.include.list",
                                            false, &st->message_include, err);
    if (rc == CDCD_OK)
        rc = cdcd_patterns_compile(&cfg->message_exclude, "message.prefix.exclude.list", false,
                                   &st->message_exclude, err);
    if (rc != CDCD_OK) {
        pg_stream_free(st);
        *out = NULL;
    }
    return rc;
}

static void forget_tx_tables(struct pg_stream *st)
{
    for (size_t i = 0; i < st->ntx_tables; i++)
        free(st->tx_tables[i].label);
    st->ntx_tables = 0;
}

void pg_stream_free(struct pg_stream *st)
{
    if (!st)
        return;
    pg_wal_free(st->wal);
    forget_tx_tables(st);
    free(st->tx_tables);
    pg_decoder_free(&st->decoder);
    pg_rels_clear(&st->rels);
    pg_rels_clear(&st->overlay);
    pg_spools_free(st->spools);
    cdcd_batch_free(st->scratch);
    cdcd_schema_unref(st->db_schema);
    cdcd_buf_free(&st->tx.origin);
    cdcd_patterns_free(&st->message_include);
    cdcd_patterns_free(&st->message_exclude);
    free(st);
}

/* ---- errors ---- */

enum cdcd_rc pg_stream_misplaced(const struct pg_message *m, pg_lsn lsn, const char *why,
                                 struct cdcd_error *err)
{
    return cdcd_error_set(err, CDCD_ERR_FATAL,
                          "pgoutput message '%c' at LSN " PG_LSN_FMT " %s; nothing of it was used "
                          "and the position has not moved",
                          m->type, PG_LSN_ARGS(lsn), why);
}

/* The transaction that is half delivered must come again, and with no fewer changes. */
enum cdcd_rc pg_stream_vanished(const struct pg_stream *st, struct cdcd_error *err)
{
    return cdcd_error_set(
        err, CDCD_ERR_LOSS,
        "of the transaction that commits at LSN " PG_LSN_FMT " %" PRIu64 " changes are delivered, "
        "but the server does not send it again as it was: publication \"%s\", `origin` or "
        "the slot was changed meanwhile. Undo that change, or start a new snapshot",
        PG_LSN_ARGS(st->tx.open && st->tx.skip ? st->tx.commit_lsn : st->skip_tx),
        st->tx.open && st->tx.skip ? st->tx.skip : st->skip_ord, st->cfg->publication_name);
}

/* ---- positions ---- */

void pg_stream_advance(struct pg_stream *st, pg_lsn lsn)
{
    if (lsn > st->done)
        st->done = lsn;
    if (lsn > st->seen)
        st->seen = lsn;
}

void pg_stream_position(const struct pg_stream *st, struct pg_position *out)
{
    pg_lsn held = pg_spools_held(st->spools);
    memset(out, 0, sizeof *out);
    out->done = out->lsn = st->done;
    /* After a resume from before a PREPARE, the held transactions are known again only when the
     * stream has reached what was done. */
    if (st->seen < st->from_done)
        out->lsn = st->from_lsn;
    else if (held && held < out->lsn)
        out->lsn = held;
    const struct pg_tx *tx = &st->tx;
    uint64_t ord = tx->ord > tx->skip ? tx->ord : tx->skip;
    if (tx->open && !tx->skip_all && ord) {
        out->tx = tx->commit_lsn;
        out->ord = ord;
    } else if (st->skip_tx) {
        out->tx = st->skip_tx;
        out->ord = st->skip_ord;
    }
    out->last = st->last;
    memcpy(out->sys, st->sys, sizeof out->sys);
}

enum cdcd_rc pg_stream_keepalive(struct pg_stream *st, pg_lsn wal_end, struct cdcd_error *err)
{
    if (!pg_stream_between(st))
        return CDCD_OK;
    if (st->skip_tx && wal_end > st->skip_tx)
        return pg_stream_vanished(st, err);
    pg_stream_advance(st, wal_end);
    return CDCD_OK;
}

/* Takes back what was appended after `last`. */
void pg_stream_undo(struct cdcd_batch *b, struct cdcd_event *last, uint32_t n)
{
    if (last)
        last->next = NULL;
    else
        b->events = NULL;
    b->last_event = last;
    b->nevents = n;
}

/* ---- transactions ---- */

static bool beyond_barrier(const struct pg_stream *st, pg_lsn commit_lsn)
{
    return st->barrier && commit_lsn >= st->barrier;
}

static enum cdcd_rc begin(struct pg_stream *st, uint32_t xid, pg_lsn commit_lsn, pg_lsn first_lsn,
                          int64_t ts_us, struct cdcd_error *err)
{
    struct pg_tx *tx = &st->tx;
    if (st->skip_tx && commit_lsn > st->skip_tx)
        return pg_stream_vanished(st, err);
    tx->open = true;
    tx->skip_all = commit_lsn < st->done;
    tx->begun = false;
    tx->xid = xid;
    tx->commit_lsn = commit_lsn;
    tx->first_lsn = first_lsn;
    tx->ts_us = ts_us;
    tx->ord = tx->total = 0;
    tx->skip = !tx->skip_all && commit_lsn == st->skip_tx ? st->skip_ord : 0;
    tx->seq++;
    cdcd_buf_clear(&tx->origin);
    forget_tx_tables(st);
    st->last_ts_us = ts_us;
    return CDCD_OK;
}

static enum cdcd_rc commit(struct pg_stream *st, pg_lsn end_lsn, struct cdcd_batch *b,
                           struct cdcd_error *err)
{
    struct pg_tx *tx = &st->tx;
    if (tx->ord < tx->skip)
        return pg_stream_vanished(st, err);
    if (tx->begun && !tx->skip_all)
        pg_change_end(st, b, end_lsn);
    if (!tx->skip_all)
        pg_stream_set_last(st, end_lsn);
    if (st->skip_tx == tx->commit_lsn)
        st->skip_tx = st->skip_ord = 0;
    tx->open = false;
    pg_stream_advance(st, end_lsn);
    return CDCD_OK;
}

/* ---- replay ---- */

static enum cdcd_rc start_replay(struct pg_stream *st, struct pg_spool *sp,
                                 const struct pg_message *m, struct cdcd_error *err)
{
    if (begin(st, sp->xid, m->lsn, sp->first_lsn, m->ts_us, err) != CDCD_OK)
        return CDCD_ERROR;
    st->replay = sp;
    st->replay_end = m->end_lsn;
    return pg_spool_rewind(st->spools, sp, err);
}

/* Relation messages in a spool are older than others that were read while it lay there. The
 * server takes what it last sent for known, so an older one must not replace a newer: it then
 * counts for this replay only. One in an aborted subtransaction counts too, since the server does
 * not send it again. */
static enum cdcd_rc replay_relation(struct pg_stream *st, const struct pg_message *m,
                                    const struct pg_spooled *rec, struct cdcd_error *err)
{
    bool streamed = st->replay->streamed;
    const struct pg_rel *known = pg_rels_get(&st->rels, m->oid);
    bool older = known && known->seq > rec->seq;
    st->last_rel = NULL;
    if (!older &&
        pg_rels_put(&st->rels, &st->rel_env, m, rec->message, streamed, rec->seq, err) != CDCD_OK)
        return CDCD_ERROR;
    if (older || pg_rels_get(&st->overlay, m->oid))
        return pg_rels_put(&st->overlay, &st->rel_env, m, rec->message, streamed, rec->seq, err);
    return CDCD_OK;
}

static enum cdcd_rc replay_one(struct pg_stream *st, struct cdcd_batch *b, struct cdcd_error *err)
{
    struct pg_spool *sp = st->replay;
    struct pg_spooled rec;
    struct pg_message m;
    enum cdcd_rc rc = pg_spool_next(st->spools, sp, &rec, err);
    if (rc != CDCD_OK)
        return rc;
    if (pg_decode(&st->decoder, rec.message, rec.lsn, sp->streamed, &m, err) != CDCD_OK)
        return CDCD_ERROR;
    if (m.type == 'R')
        return replay_relation(st, &m, &rec, err);
    if (sp->streamed && strchr("IUDTM", m.type) && pg_spool_aborted(sp, m.xid))
        return CDCD_OK;
    return pg_change(st, &m, rec.message, rec.lsn, b, err);
}

enum cdcd_rc pg_stream_replay(struct pg_stream *st, struct cdcd_batch *b, struct cdcd_error *err)
{
    enum cdcd_rc rc = CDCD_OK;
    for (int i = 0; i < REPLAY_STEP && rc == CDCD_OK && !cdcd_batch_full(b); i++) {
        struct cdcd_event *last = b->last_event;
        uint32_t n = b->nevents;
        rc = replay_one(st, b, err);
        if (rc == CDCD_ERROR)
            pg_stream_undo(b, last, n);
    }
    if (rc != CDCD_END)
        return rc;
    pg_rels_clear(&st->overlay);
    st->last_rel = NULL;
    if (commit(st, st->replay_end, b, err) != CDCD_OK)
        return CDCD_ERROR;
    pg_spool_drop(st->spools, st->replay);
    st->replay = NULL;
    return CDCD_OK;
}

/* ---- spooling ---- */

static enum cdcd_rc on_stream_start(struct pg_stream *st, const struct pg_message *m, pg_lsn lsn,
                                    struct cdcd_error *err)
{
    struct pg_spool *sp = pg_spool_find(st->spools, m->xid);
    if (m->first_segment && sp) {
        pg_spool_drop(st->spools, sp);
        sp = NULL;
    }
    if (!m->first_segment && !sp)
        return pg_stream_misplaced(m, lsn, "goes on with a transaction that was never begun", err);
    st->block = sp ? sp : pg_spool_new(st->spools, m->xid, true, lsn);
    return CDCD_OK;
}

static enum cdcd_rc on_stream_abort(struct pg_stream *st, const struct pg_message *m)
{
    struct pg_spool *sp = pg_spool_find(st->spools, m->xid);
    if (sp && m->xid == m->subxid)
        pg_spool_drop(st->spools, sp);
    else if (sp)
        pg_spool_abort(sp, m->subxid);
    return CDCD_OK;
}

static enum cdcd_rc on_stream_commit(struct pg_stream *st, const struct pg_message *m, pg_lsn lsn,
                                     struct cdcd_error *err)
{
    if (beyond_barrier(st, m->lsn))
        return CDCD_END;
    struct pg_spool *sp = pg_spool_find(st->spools, m->xid);
    if (!sp)
        return pg_stream_misplaced(m, lsn, "commits a transaction that was never begun", err);
    return start_replay(st, sp, m, err);
}

/* From its stream's PREPARE on, as from its commit, the server takes what it described within a
 * streamed transaction for known to all others; its rows come only with K. */
static enum cdcd_rc learn_relations(struct pg_stream *st, struct pg_spool *sp,
                                    struct cdcd_error *err)
{
    struct pg_spooled rec;
    struct pg_message m;
    enum cdcd_rc rc = sp->relations ? pg_spool_rewind(st->spools, sp, err) : CDCD_OK;
    for (size_t seen = 0; rc == CDCD_OK && seen < sp->relations;) {
        rc = pg_spool_next(st->spools, sp, &rec, err);
        if (rc != CDCD_OK || rec.message.ptr[0] != 'R')
            continue;
        seen++;
        rc = pg_decode(&st->decoder, rec.message, rec.lsn, true, &m, err);
        const struct pg_rel *known = rc == CDCD_OK ? pg_rels_get(&st->rels, m.oid) : NULL;
        if (rc == CDCD_OK && !(known && known->seq > rec.seq))
            rc = pg_rels_put(&st->rels, &st->rel_env, &m, rec.message, true, rec.seq, err);
    }
    st->last_rel = NULL;
    return rc == CDCD_END ? CDCD_OK : rc;
}

/* P and p: from here on the transaction waits, under its name, for K or r. */
static enum cdcd_rc on_prepare(struct pg_stream *st, const struct pg_message *m, pg_lsn lsn,
                               struct cdcd_error *err)
{
    struct pg_spool *sp = m->type == 'P' ? st->block : pg_spool_find(st->spools, m->xid);
    if (!sp || sp->xid != m->xid)
        return pg_stream_misplaced(m, lsn, "prepares a transaction that was never begun", err);
    st->block = NULL;
    free(sp->gid);
    sp->gid = cdcd_xstrndup(m->gid.ptr, m->gid.len);
    sp->prepare_lsn = m->lsn;
    if (m->end_lsn > st->seen)
        st->seen = m->end_lsn;
    enum cdcd_rc rc = m->type == 'p' ? learn_relations(st, sp, err) : CDCD_OK;
    return rc == CDCD_OK ? pg_spool_pause(st->spools, sp, err) : rc;
}

static struct pg_spool *find_prepared(struct pg_stream *st, const struct pg_message *m)
{
    struct pg_spool *sp = pg_spool_find(st->spools, m->xid);
    return sp && sp->gid && cdcd_slice_eq(cdcd_slice_str(sp->gid), m->gid) ? sp : NULL;
}

static enum cdcd_rc on_commit_prepared(struct pg_stream *st, const struct pg_message *m,
                                       struct cdcd_error *err)
{
    if (beyond_barrier(st, m->lsn))
        return CDCD_END;
    struct pg_spool *sp = find_prepared(st, m);
    if (sp)
        return start_replay(st, sp, m, err);
    if (m->lsn < st->done) { /* delivered before, and its PREPARE lies before our start */
        pg_stream_advance(st, m->end_lsn);
        return CDCD_OK;
    }
    return cdcd_error_set(
        err, CDCD_ERR_LOSS,
        "prepared transaction \"%.*s\" is committed at LSN " PG_LSN_FMT
        ", but its changes were sent "
        "before this pipeline's position in slot \"%s\" (a slot with two_phase sends them once, at "
        "PREPARE). Start a new snapshot, or use a slot without two_phase",
        (int)m->gid.len, m->gid.ptr, PG_LSN_ARGS(m->lsn), st->cfg->slot_name);
}

static enum cdcd_rc on_rollback_prepared(struct pg_stream *st, const struct pg_message *m)
{
    struct pg_spool *sp = find_prepared(st, m);
    if (sp)
        pg_spool_drop(st->spools, sp);
    pg_stream_advance(st, m->end_lsn);
    return CDCD_OK;
}

static enum cdcd_rc relation(struct pg_stream *st, const struct pg_message *m,
                             struct cdcd_slice raw, struct cdcd_error *err)
{
    st->last_rel = NULL;
    return pg_rels_put(&st->rels, &st->rel_env, m, raw, false, ++st->rel_seq, err);
}

/* The spool of a prepared transaction gets the description of each of its relations, as it is now,
 * in front of the first row: when it is replayed, there may be a newer one. */
static enum cdcd_rc describe_in_block(struct pg_stream *st, const struct pg_message *m,
                                      uint32_t oid, pg_lsn lsn, struct cdcd_error *err)
{
    struct pg_rel *rel = pg_rels_get(&st->rels, oid);
    if (!rel)
        return pg_stream_misplaced(m, lsn, "is of a relation that was never described", err);
    if (rel->in_block == st->blocks)
        return CDCD_OK;
    rel->in_block = st->blocks;
    return pg_spool_append(st->spools, st->block, lsn, rel->seq,
                           (struct cdcd_slice){rel->raw, rel->raw_len}, err);
}

/* Within b..P the server takes what it describes for known from then on, for all transactions. */
static enum cdcd_rc spool_prepared(struct pg_stream *st, pg_lsn lsn, struct cdcd_slice raw,
                                   struct cdcd_error *err)
{
    struct pg_message m;
    enum cdcd_rc rc = pg_decode(&st->decoder, raw, lsn, false, &m, err);
    if (rc == CDCD_OK && m.type == 'R') {
        rc = relation(st, &m, raw, err);
        return rc == CDCD_OK ? describe_in_block(st, &m, m.oid, lsn, err) : rc;
    }
    if (rc == CDCD_OK && (m.type == 'I' || m.type == 'U' || m.type == 'D'))
        rc = describe_in_block(st, &m, m.oid, lsn, err);
    for (size_t i = 0; rc == CDCD_OK && i < m.nrelations; i++)
        rc = describe_in_block(st, &m, pg_message_relation(&m, i), lsn, err);
    return rc == CDCD_OK ? pg_spool_append(st->spools, st->block, lsn, st->rel_seq, raw, err) : rc;
}

/* A message within S..E goes to disk unread; only its type and, of a Relation message, its place
 * in the order of arrival are looked at. */
static enum cdcd_rc spool(struct pg_stream *st, pg_lsn lsn, struct cdcd_slice raw,
                          struct cdcd_error *err)
{
    if (!st->block->streamed)
        return spool_prepared(st, lsn, raw, err);
    if (raw.ptr[0] == 'R') {
        st->rel_seq++;
        st->block->relations++;
    }
    return pg_spool_append(st->spools, st->block, lsn, st->rel_seq, raw, err);
}

static bool spoolable(const struct pg_stream *st, struct cdcd_slice raw)
{
    return st->block && raw.len && raw.ptr[0] && strchr("IUDRYTMO", raw.ptr[0]);
}

/* ---- the messages that frame transactions ---- */

static enum cdcd_rc frame(struct pg_stream *st, const struct pg_message *m, pg_lsn lsn,
                          struct cdcd_batch *b, struct cdcd_error *err)
{
    bool ends_block = st->block && m->type == (st->block->streamed ? 'E' : 'P');
    if (st->block && !ends_block)
        return pg_stream_misplaced(m, lsn, "stands within a streamed block", err);
    if (!st->block && (m->type == 'E' || m->type == 'P'))
        return pg_stream_misplaced(m, lsn, "ends a block that was never begun", err);
    if (st->tx.open != (m->type == 'C'))
        return pg_stream_misplaced(m, lsn,
                                   st->tx.open ? "stands within a transaction"
                                               : "ends a transaction that was never begun",
                                   err);
    enum cdcd_rc rc;
    switch (m->type) {
    case 'B':
        return beyond_barrier(st, m->lsn) ? CDCD_END
                                          : begin(st, m->xid, m->lsn, lsn, m->ts_us, err);
    case 'C':
        if (m->lsn != st->tx.commit_lsn)
            return pg_stream_misplaced(m, lsn, "does not end the transaction that was begun", err);
        return commit(st, m->end_lsn, b, err);
    case 'S': return on_stream_start(st, m, lsn, err);
    case 'E':
        rc = pg_spool_pause(st->spools, st->block, err);
        st->block = NULL;
        return rc;
    case 'c': return on_stream_commit(st, m, lsn, err);
    case 'A': return on_stream_abort(st, m);
    case 'b':
        if ((st->block = pg_spool_find(st->spools, m->xid)))
            pg_spool_drop(st->spools, st->block);
        st->block = pg_spool_new(st->spools, m->xid, false, lsn);
        st->blocks++;
        return CDCD_OK;
    case 'P':
    case 'p': return on_prepare(st, m, lsn, err);
    case 'K': return on_commit_prepared(st, m, err);
    default: return on_rollback_prepared(st, m);
    }
}

enum cdcd_rc pg_stream_feed(struct pg_stream *st, pg_lsn lsn, int64_t sent_us,
                            struct cdcd_slice message, struct cdcd_batch *b, struct cdcd_error *err)
{
    if (spoolable(st, message))
        return spool(st, lsn, message, err);
    struct pg_message m;
    if (pg_decode(&st->decoder, message, lsn, false, &m, err) != CDCD_OK)
        return CDCD_ERROR;
    struct cdcd_event *last = b->last_event;
    uint32_t n = b->nevents;
    enum cdcd_rc rc;
    switch (m.type) {
    case 'R': rc = relation(st, &m, message, err); break;
    case 'Y': rc = CDCD_OK; break;
    case 'M':
        if (!m.transactional && !st->tx.open) {
            rc = pg_change_lone_message(st, &m, lsn, sent_us, b, err);
            break;
        }
        /* fall through */
    case 'I':
    case 'U':
    case 'D':
    case 'T':
    case 'O':
        rc = st->tx.open ? pg_change(st, &m, message, lsn, b, err)
                         : pg_stream_misplaced(&m, lsn, "stands outside of any transaction", err);
        break;
    default: rc = frame(st, &m, lsn, b, err); break;
    }
    if (rc == CDCD_ERROR)
        pg_stream_undo(b, last, n);
    return rc;
}
