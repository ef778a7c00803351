/*
 * decode.c: pgoutput messages, protocol versions 1 to 4.
 * https://www.postgresql.org/docs/current/protocol-logicalrep-message-formats.html
 *
 * Integers are big-endian. [xid] stands only between Stream Start and Stream Stop.
 *
 *   B  commit_lsn u64, commit time i64, xid u32
 *   C  flags u8, commit_lsn u64, end_lsn u64, commit time i64
 *   O  origin's commit lsn u64, name\0
 *   R  [xid u32] oid u32, schema\0, table\0, replica identity u8, n u16,
 *      n * (flags u8, name\0, type u32, typmod i32)
 *   Y  [xid u32] oid u32, schema\0, name\0
 *   I  [xid u32] oid u32, 'N' tuple
 *   U  [xid u32] oid u32, ('K'|'O' tuple)?, 'N' tuple
 *   D  [xid u32] oid u32, 'K'|'O' tuple
 *   T  [xid u32] n u32, flags u8, n * oid u32
 *   M  [xid u32] flags u8 (1: transactional), lsn u64, prefix\0, length u32, bytes
 *   S  xid u32, first segment u8          E  (nothing)
 *   c  xid u32, flags u8, commit_lsn u64, end_lsn u64, commit time i64
 *   A  xid u32, subxid u32 [, abort_lsn u64, abort time i64: streaming 'parallel']
 *   b  prepare_lsn u64, end_lsn u64, time i64, xid u32, gid\0
 *   P  flags u8, prepare_lsn u64, end_lsn u64, time i64, xid u32, gid\0        p  the same
 *   K  flags u8, commit_lsn u64, end_lsn u64, time i64, xid u32, gid\0
 *   r  flags u8, prepare_end_lsn u64, rollback_end_lsn u64, prepare time i64, rollback time i64,
 *      xid u32, gid\0
 *   tuple: n u16, n * ('n' | 'u' | 't' length u32, text)       ('b' only when asked for)
 */
#include "decode.h"

#include <cdcd/cursor.h>

#include <stdio.h>
#include <stdlib.h>

void pg_decoder_free(struct pg_decoder *d)
{
    free(d->values[0]);
    free(d->values[1]);
    free(d->attrs);
    memset(d, 0, sizeof *d);
}

static int64_t take_time(struct cdcd_cursor *c)
{
    return (int64_t)(cdcd_cur_u64be(c) + (uint64_t)PG_EPOCH_US);
}

/* The parsers return NULL, or why the message is garbled; running out of bytes is found at the
 * end, by the cursor. */

static const char *take_tuple(struct cdcd_cursor *c, struct pg_decoder *d, int which,
                              struct pg_tuple *out)
{
    size_t n = cdcd_cur_count(c, cdcd_cur_u16be(c), 1);
    if (n > d->values_cap[which]) {
        d->values[which] = cdcd_xrealloc(d->values[which], n * sizeof(struct pg_value));
        d->values_cap[which] = n;
    }
    struct pg_value *v = d->values[which];
    for (size_t i = 0; i < n; i++, v++) {
        v->kind = (char)cdcd_cur_u8(c);
        v->ptr = NULL;
        v->len = 0;
        if (v->kind == 't') {
            v->len = cdcd_cur_u32be(c);
            v->ptr = (const char *)cdcd_cur_take(c, v->len);
        } else if (v->kind == 'b') {
            return "a column in binary form, which was not asked for";
        } else if (v->kind != 'n' && v->kind != 'u' && !c->bad) {
            return "unknown column kind";
        }
        if (c->bad)
            return NULL;
    }
    out->n = n;
    out->values = d->values[which];
    return NULL;
}

static const char *parse_row(struct cdcd_cursor *c, struct pg_decoder *d, struct pg_message *m)
{
    const char *why = NULL;
    m->oid = cdcd_cur_u32be(c);
    char kind = (char)cdcd_cur_u8(c);
    if (m->type != 'I' && (kind == 'K' || kind == 'O')) {
        m->old_kind = kind;
        why = take_tuple(c, d, 0, &m->old_row);
        if (why || m->type == 'D')
            return why;
        kind = (char)cdcd_cur_u8(c);
    }
    if (c->bad)
        return NULL;
    if (m->type == 'D' || kind != 'N')
        return "unknown tuple kind";
    return take_tuple(c, d, 1, &m->new_row);
}

static const char *parse_relation(struct cdcd_cursor *c, struct pg_decoder *d, struct pg_message *m)
{
    struct pg_relation *r = &m->relation;
    m->oid = r->oid = cdcd_cur_u32be(c);
    r->schema = cdcd_cur_cstr(c);
    r->table = cdcd_cur_cstr(c);
    r->replident = (char)cdcd_cur_u8(c);
    r->nattrs = cdcd_cur_count(c, cdcd_cur_u16be(c), 10);
    if (r->nattrs > d->attrs_cap) {
        d->attrs = cdcd_xrealloc(d->attrs, r->nattrs * sizeof(struct pg_attr));
        d->attrs_cap = r->nattrs;
    }
    for (size_t i = 0; i < r->nattrs; i++) {
        struct pg_attr *a = &d->attrs[i];
        a->identity = cdcd_cur_u8(c) & 1;
        a->name = cdcd_cur_cstr(c);
        a->type = cdcd_cur_u32be(c);
        a->typmod = (int32_t)cdcd_cur_u32be(c);
    }
    r->attrs = d->attrs;
    if (r->schema.len == 0) /* pgoutput's way to say pg_catalog */
        r->schema = cdcd_slice_str("pg_catalog");
    if (!c->bad && (r->replident == 0 || !strchr("dnfi", r->replident)))
        return "unknown replica identity";
    return NULL;
}

static void parse_commit(struct cdcd_cursor *c, struct pg_message *m)
{
    cdcd_cur_u8(c); /* flags: none are defined */
    m->lsn = cdcd_cur_u64be(c);
    m->end_lsn = cdcd_cur_u64be(c);
    m->ts_us = take_time(c);
}

static void parse_rollback_prepared(struct cdcd_cursor *c, struct pg_message *m)
{
    cdcd_cur_u8(c);
    m->lsn = cdcd_cur_u64be(c);
    m->end_lsn = cdcd_cur_u64be(c);
    take_time(c); /* of the PREPARE */
    m->ts_us = take_time(c);
    m->xid = cdcd_cur_u32be(c);
    m->gid = cdcd_cur_cstr(c);
}

static const char *parse_abort(struct cdcd_cursor *c, struct pg_message *m)
{
    m->xid = cdcd_cur_u32be(c);
    m->subxid = cdcd_cur_u32be(c);
    if (cdcd_cur_left(c) > 0) {
        m->lsn = cdcd_cur_u64be(c);
        m->ts_us = take_time(c);
    }
    return NULL;
}

static void parse_logical_message(struct cdcd_cursor *c, struct pg_message *m)
{
    m->transactional = cdcd_cur_u8(c) & 1;
    m->lsn = cdcd_cur_u64be(c);
    m->name = cdcd_cur_cstr(c);
    m->content = cdcd_cur_bytes(c, cdcd_cur_u32be(c));
}

static void parse_truncate(struct cdcd_cursor *c, struct pg_message *m)
{
    uint32_t n = cdcd_cur_u32be(c);
    cdcd_cur_u8(c); /* CASCADE, RESTART IDENTITY */
    m->nrelations = cdcd_cur_count(c, n, 4);
    m->relations = cdcd_cur_take(c, 4 * m->nrelations);
}

static const char *parse(struct cdcd_cursor *c, struct pg_decoder *d, bool streamed,
                         struct pg_message *m)
{
    m->type = (char)cdcd_cur_u8(c);
    if (c->bad)
        return "it is empty";
    if (streamed && strchr("RYIUDTM", m->type))
        m->xid = cdcd_cur_u32be(c);
    switch (m->type) {
    case 'I':
    case 'U':
    case 'D': return parse_row(c, d, m);
    case 'B':
        m->lsn = cdcd_cur_u64be(c);
        m->ts_us = take_time(c);
        m->xid = cdcd_cur_u32be(c);
        return NULL;
    case 'C': parse_commit(c, m); return NULL;
    case 'R': return parse_relation(c, d, m);
    case 'Y':
        m->oid = cdcd_cur_u32be(c);
        cdcd_cur_cstr(c);
        m->name = cdcd_cur_cstr(c);
        return NULL;
    case 'T': parse_truncate(c, m); return NULL;
    case 'M': parse_logical_message(c, m); return NULL;
    case 'O':
        m->lsn = cdcd_cur_u64be(c);
        m->name = cdcd_cur_cstr(c);
        return NULL;
    case 'S':
        m->xid = cdcd_cur_u32be(c);
        m->first_segment = cdcd_cur_u8(c) == 1;
        return NULL;
    case 'E': return NULL;
    case 'c':
        m->xid = cdcd_cur_u32be(c);
        parse_commit(c, m);
        return NULL;
    case 'A': return parse_abort(c, m);
    case 'b':
        m->lsn = cdcd_cur_u64be(c);
        m->end_lsn = cdcd_cur_u64be(c);
        m->ts_us = take_time(c);
        m->xid = cdcd_cur_u32be(c);
        m->gid = cdcd_cur_cstr(c);
        return NULL;
    case 'P':
    case 'p':
    case 'K':
        parse_commit(c, m);
        m->xid = cdcd_cur_u32be(c);
        m->gid = cdcd_cur_cstr(c);
        return NULL;
    case 'r': parse_rollback_prepared(c, m); return NULL;
    default: return "unknown message type";
    }
}

static enum cdcd_rc garbled(struct cdcd_slice raw, pg_lsn lsn, const char *why,
                            struct cdcd_error *err)
{
    char hex[3 * 32 + 1] = "";
    size_t n = raw.len < 32 ? raw.len : 32;
    for (size_t i = 0; i < n; i++)
        snprintf(hex + 3 * i, 4, "%02x ", (unsigned char)raw.ptr[i]);
    char type[8] = "none";
    if (raw.len) {
        unsigned char ch = (unsigned char)raw.ptr[0];
        snprintf(type, sizeof type, ch > ' ' && ch < 127 ? "'%c'" : "0x%02x", ch);
    }
    return cdcd_error_set(err, CDCD_ERR_FATAL,
                          "garbled pgoutput message (type %s, %zu bytes) at LSN " PG_LSN_FMT
                          ": %s; it begins %s- nothing of it was used and the position has not "
                          "moved; if it comes again after a restart, report it with the server's "
                          "version",
                          type, raw.len, PG_LSN_ARGS(lsn), why, hex);
}

enum cdcd_rc pg_decode(struct pg_decoder *d, struct cdcd_slice raw, pg_lsn lsn, bool streamed,
                       struct pg_message *out, struct cdcd_error *err)
{
    struct cdcd_cursor c = cdcd_cur(raw.ptr, raw.len);
    memset(out, 0, sizeof *out);
    const char *why = parse(&c, d, streamed, out);
    if (!why && c.bad)
        why = "it ends too early";
    else if (!why && !cdcd_cur_end(&c))
        why = "bytes are left over";
    return why ? garbled(raw, lsn, why, err) : CDCD_OK;
}

/* ---- rows ---- */

struct row {
    const struct pg_table *t;
    const char *from, *to; /* the message and its copy in the arena */
    struct cdcd_arena *arena;
    pg_lsn lsn;
};

static enum cdcd_rc misfit(const struct row *r, const struct pg_tuple *tuple,
                           struct cdcd_error *err)
{
    return cdcd_error_set(err, CDCD_ERR_FATAL,
                          "a change of %.*s at LSN " PG_LSN_FMT " has %zu columns, its relation "
                          "message %zu; the position has not moved",
                          (int)r->t->label.len, r->t->label.ptr, PG_LSN_ARGS(r->lsn), tuple->n,
                          r->t->nattrs);
}

/* One tuple -> cells. identity_only: a K tuple, in which every other column stands as NULL
 * whatever it is. */
static enum cdcd_rc fill(const struct row *r, const struct pg_tuple *tuple, bool identity_only,
                         struct cdcd_cell *cells, struct cdcd_error *err)
{
    const struct pg_table *t = r->t;
    if (tuple->n != t->nattrs)
        return misfit(r, tuple, err);
    for (uint32_t i = 0; i < t->schema->ncolumns; i++)
        cells[i] = (struct cdcd_cell){.kind = CDCD_C_ABSENT};
    for (size_t i = 0; i < tuple->n; i++) {
        int32_t col = t->column[i];
        if (col < 0 || (identity_only && !t->identity[i]))
            continue;
        const struct pg_value *v = &tuple->values[i];
        struct cdcd_cell *cell = &cells[col];
        if (v->kind == 't') {
            if (pg_cell_parse(&t->schema->columns[col], r->to + (v->ptr - r->from), v->len,
                              r->arena, cell, err) != CDCD_OK)
                return cdcd_error_context(err, "%.*s at LSN " PG_LSN_FMT, (int)t->label.len,
                                          t->label.ptr, PG_LSN_ARGS(r->lsn));
        } else {
            cell->kind = v->kind == 'n' ? CDCD_C_NULL : CDCD_C_UNCHANGED;
        }
    }
    return CDCD_OK;
}

/* A key that is not known must never be guessed. */
static enum cdcd_rc check_key(const struct row *r, char type, const struct cdcd_cell *cells,
                              struct cdcd_error *err)
{
    const struct cdcd_schema *s = r->t->schema;
    for (uint32_t i = 0; i < s->nkeys; i++) {
        const struct cdcd_cell *c = &cells[s->keys[i]];
        if (cdcd_cell_present(c))
            continue;
        const char *name = s->columns[s->keys[i]].name;
        if (c->kind == CDCD_C_UNCHANGED)
            return cdcd_error_set(
                err, CDCD_ERR_FATAL,
                "replica identity column %s of %.*s is unchanged TOAST; key unknown "
                "(LSN " PG_LSN_FMT
                "). The position is kept. Update the server to its current minor release, which "
                "sends such keys, or run ALTER TABLE %.*s REPLICA IDENTITY FULL for later changes",
                name, (int)r->t->label.len, r->t->label.ptr, PG_LSN_ARGS(r->lsn),
                (int)r->t->label.len, r->t->label.ptr);
        return cdcd_error_set(
            err, CDCD_ERR_FATAL,
            "%s of %.*s at LSN " PG_LSN_FMT " does not carry key column %s: the replica identity "
            "does not cover the key. The position is kept. Run ALTER TABLE %.*s REPLICA IDENTITY "
            "FULL (or DEFAULT) for later changes, and take a new snapshot",
            type == 'D' ? "a delete" : "a change", (int)r->t->label.len, r->t->label.ptr,
            PG_LSN_ARGS(r->lsn), name, (int)r->t->label.len, r->t->label.ptr);
    }
    return CDCD_OK;
}

enum cdcd_rc pg_decode_row(const struct pg_table *t, const struct pg_message *m,
                           struct cdcd_slice raw, pg_lsn lsn, struct cdcd_batch *b,
                           struct cdcd_event **out, struct cdcd_error *err)
{
    struct row r = {.t = t, .from = raw.ptr, .arena = &b->arena, .lsn = lsn};
    uint32_t n = t->schema->ncolumns;
    struct cdcd_cell *before = NULL, *after = NULL;
    char *copy = cdcd_arena_alloc(&b->arena, raw.len);
    memcpy(copy, raw.ptr, raw.len);
    r.to = copy;

    if (m->old_kind) {
        before = cdcd_batch_cells(b, n);
        if (fill(&r, &m->old_row, m->old_kind == 'K', before, err) != CDCD_OK)
            return CDCD_ERROR;
    }
    if (m->type != 'D') {
        after = cdcd_batch_cells(b, n);
        if (fill(&r, &m->new_row, false, after, err) != CDCD_OK)
            return CDCD_ERROR;
        for (uint32_t i = 0; before && i < n; i++)
            if (after[i].kind == CDCD_C_UNCHANGED && cdcd_cell_present(&before[i]))
                after[i] = before[i];
    }
    if (check_key(&r, m->type, after ? after : before, err) != CDCD_OK)
        return CDCD_ERROR;

    struct cdcd_event *e = cdcd_batch_event(b,
                                            m->type == 'I'   ? CDCD_OP_CREATE
                                            : m->type == 'U' ? CDCD_OP_UPDATE
                                                             : CDCD_OP_DELETE,
                                            t->schema);
    e->before = before;
    e->after = after;
    *out = e;
    return CDCD_OK;
}
