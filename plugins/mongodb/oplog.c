/*
 * oplog.c: one entry of local.oplog.rs -> what it is, and its operations.
 *
 * An entry: {op, ns, ui, o, o2, ts, t, v, wall, lsid, txnNumber, stmtId, prevOpTime, ...}; op is
 * i, u, d, c (a command) or n. Operations within an applyOps have the same fields as far as they
 * need them. Everything points into the entry.
 *
 * Fields that say nothing here, and are skipped: h, _id, b (upsert), preImageOpTime,
 * postImageOpTime, needsRetryImage, destinedRecipient, tid, versionContext, and any new one: what
 * changes how an entry must be read changes `v`.
 */
#include "oplog.h"

#include <math.h>
#include <stdio.h>

/* The highest format of entries that is known. 1 is that of servers up to 2.4 (no `ui`). */
#define ENTRY_VERSION 2

/* The entry's fields as they come, before it is known what they must be. */
struct raw {
    struct cdcd_slice op, ns;
    bool has_op, has_ns, has_ts, has_v, has_t, has_stmt, bad_v;
    struct mg_time ts, prev;
    int64_t v, wall_ms, txn_number, multi_op_type;
    bool has_txn_number, from_migrate;
    struct cdcd_slice o, o2, uuid, lsid;
};

static struct cdcd_slice string_value(const struct cdcd_bson_element *e)
{
    return (struct cdcd_slice){e->value.ptr + 4, e->value.len - 5};
}

static struct mg_time timestamp_value(const struct cdcd_bson_element *e)
{
    uint64_t n = (uint64_t)cdcd_bson_int64(e->value);
    return (struct mg_time){.t = (uint32_t)(n >> 32), .i = (uint32_t)n};
}

/* Numbers may be written as doubles, by the shell and by old servers. */
static bool number_value(const struct cdcd_bson_element *e, int64_t *out)
{
    double d;

    switch (e->type) {
    case CDCD_BSON_INT32: *out = cdcd_bson_int32(e->value); return true;
    case CDCD_BSON_INT64: *out = cdcd_bson_int64(e->value); return true;
    case CDCD_BSON_DOUBLE:
        memcpy(&d, e->value.ptr, sizeof d);
        if (!(d >= -9e15 && d <= 9e15) || d != floor(d))
            return false;
        *out = (int64_t)d;
        return true;
    default: return false;
    }
}

static bool truth_value(const struct cdcd_bson_element *e)
{
    int64_t n;

    if (e->type == CDCD_BSON_BOOL)
        return e->value.ptr[0] != 0;
    return number_value(e, &n) && n != 0;
}

static int cut(struct cdcd_slice s)
{
    return (int)(s.len > 200 ? 200 : s.len);
}

static enum cdcd_rc bad(const struct raw *r, struct cdcd_error *err, const char *fmt, ...)
    CDCD_PRINTF(3, 4);
static enum cdcd_rc bad(const struct raw *r, struct cdcd_error *err, const char *fmt, ...)
{
    char what[400];
    va_list args;

    va_start(args, fmt);
    vsnprintf(what, sizeof what, fmt, args);
    va_end(args);
    if (r->has_ts)
        return cdcd_error_set(err, CDCD_ERR_DATA, "oplog entry at %u:%u (op %.*s, ns %.*s): %s",
                              r->ts.t, r->ts.i, cut(r->op), r->has_op ? r->op.ptr : "", cut(r->ns),
                              r->has_ns ? r->ns.ptr : "", what);
    return cdcd_error_set(err, CDCD_ERR_DATA, "oplog entry (op %.*s, ns %.*s): %s", cut(r->op),
                          r->has_op ? r->op.ptr : "", cut(r->ns), r->has_ns ? r->ns.ptr : "", what);
}

/* ---- fields ---- */

enum field {
    F_OP,
    F_NS,
    F_O,
    F_O2,
    F_UI,
    F_TS,
    F_T,
    F_V,
    F_WALL,
    F_LSID,
    F_TXN_NUMBER,
    F_STMT_ID,
    F_PREV,
    F_MULTI,
    F_FROM_MIGRATE,
    F_COUNT
};
static const struct {
    const char *name;
    uint8_t len, type; /* type 0: looked at where it is read */
} fields[F_COUNT] = {
    [F_OP] = {"op", 2, CDCD_BSON_STRING},
    [F_NS] = {"ns", 2, CDCD_BSON_STRING},
    [F_O] = {"o", 1, CDCD_BSON_DOCUMENT},
    [F_O2] = {"o2", 2, CDCD_BSON_DOCUMENT},
    [F_UI] = {"ui", 2, CDCD_BSON_BINARY},
    [F_TS] = {"ts", 2, CDCD_BSON_TIMESTAMP},
    [F_T] = {"t", 1, 0},
    [F_V] = {"v", 1, 0},
    [F_WALL] = {"wall", 4, CDCD_BSON_DATE},
    [F_LSID] = {"lsid", 4, CDCD_BSON_DOCUMENT},
    [F_TXN_NUMBER] = {"txnNumber", 9, 0},
    [F_STMT_ID] = {"stmtId", 6, 0},
    [F_PREV] = {"prevOpTime", 10, CDCD_BSON_DOCUMENT},
    [F_MULTI] = {"multiOpType", 11, 0},
    [F_FROM_MIGRATE] = {"fromMigrate", 11, 0},
};

static enum field which(struct cdcd_slice name)
{
    for (int i = 0; i < F_COUNT; i++) { /* few names come as far as memcmp */
        if (name.len == fields[i].len && name.ptr[0] == fields[i].name[0] &&
            memcmp(name.ptr, fields[i].name, name.len) == 0)
            return i;
    }
    return F_COUNT;
}

/* False: it is not what that field must be. */
static bool take(struct raw *r, enum field f, const struct cdcd_bson_element *e)
{
    struct cdcd_bson_element inner;

    if (fields[f].type && fields[f].type != e->type)
        return false;
    switch (f) {
    case F_OP:
        r->op = string_value(e);
        r->has_op = true;
        return true;
    case F_NS:
        r->ns = string_value(e);
        r->has_ns = true;
        return true;
    case F_O: r->o = e->value; return true;
    case F_O2: r->o2 = e->value; return true;
    case F_UI:
        if (e->value.len != 5 + 16)
            return false;
        r->uuid = (struct cdcd_slice){e->value.ptr + 5, 16};
        return true;
    case F_TS:
        r->ts = timestamp_value(e);
        r->has_ts = true;
        return true;
    case F_T: r->has_t = true; return true;
    case F_V: r->has_v = true; return number_value(e, &r->v);
    case F_WALL: r->wall_ms = cdcd_bson_int64(e->value); return true;
    case F_LSID: r->lsid = e->value; return true;
    case F_TXN_NUMBER: r->has_txn_number = true; return number_value(e, &r->txn_number);
    case F_STMT_ID: r->has_stmt = true; return true;
    case F_PREV:
        if (!cdcd_bson_find(e->value, "ts", &inner) || inner.type != CDCD_BSON_TIMESTAMP)
            return false;
        r->prev = timestamp_value(&inner);
        return true;
    case F_MULTI: return number_value(e, &r->multi_op_type);
    case F_FROM_MIGRATE: r->from_migrate = truth_value(e); return true;
    default: return true;
    }
}

/* Reads on after a field that is wrong, so that the message can name the entry. */
static enum cdcd_rc read_fields(struct cdcd_slice document, struct raw *r, struct cdcd_error *err)
{
    struct cdcd_bson_iter it;
    struct cdcd_bson_element e;
    enum field wrong = F_COUNT;
    int more;

    *r = (struct raw){.wall_ms = INT64_MIN};
    if (!cdcd_bson_iter_init(&it, document))
        return bad(r, err, "no BSON document of %zu bytes", document.len);
    while ((more = cdcd_bson_iter_next(&it, &e)) == 1) {
        enum field f = which(e.name);
        if (f != F_COUNT && !take(r, f, &e))
            wrong = f;
    }
    if (more < 0)
        return bad(r, err, "malformed BSON");
    if (wrong != F_COUNT)
        return bad(r, err, "field %s has a wrong type or value", fields[wrong].name);
    if (!r->has_op)
        return bad(r, err, "it has no op");
    return CDCD_OK;
}

/* ---- one operation ---- */

static bool split_ns(struct mg_op *op)
{
    const char *dot = op->ns.len ? memchr(op->ns.ptr, '.', op->ns.len) : NULL;

    if (!dot)
        return false;
    op->db = (struct cdcd_slice){op->ns.ptr, (size_t)(dot - op->ns.ptr)};
    op->collection = (struct cdcd_slice){dot + 1, (size_t)(op->ns.ptr + op->ns.len - dot - 1)};
    return op->db.len && op->collection.len;
}

/* The documents's _id: of `o`, for updates of `o2` (a replacement has it in `o`, too). A sharded
 * delete's `o` has the shard key besides. */
static bool find_id(struct mg_op *op)
{
    struct cdcd_bson_element e;
    bool found = op->op == 'u' && op->o2.ptr && cdcd_bson_find(op->o2, "_id", &e);

    if (!found && !cdcd_bson_find(op->o, "_id", &e))
        return false;
    op->id = cdcd_cell_bson(e.type, e.value.ptr, e.value.len);
    return true;
}

static enum cdcd_rc make_op(const struct raw *r, struct mg_op *op, struct cdcd_error *err)
{
    *op = (struct mg_op){.op = r->op.len == 1 ? r->op.ptr[0] : '?',
                         .what = r->op,
                         .ns = r->ns,
                         .uuid = r->uuid,
                         .id = {.kind = CDCD_C_ABSENT},
                         .o = r->o,
                         .o2 = r->o2,
                         .from_migrate = r->from_migrate};
    bool split = split_ns(op);
    if (op->op != 'i' && op->op != 'u' && op->op != 'd') {
        if (op->op != 'c' && op->op != 'n')
            op->op = '?';
        if (op->op == 'c' && !op->o.ptr)
            return bad(r, err, "it has no o");
        return CDCD_OK;
    }
    if (!split)
        return bad(r, err, "its ns is no \"db.collection\"");
    if (!op->o.ptr)
        return bad(r, err, "it has no o");
    if (find_id(op))
        return CDCD_OK;
    /* Indexes were documents of their own once, without _id. */
    if (cdcd_slice_eq(op->collection, cdcd_slice_str("system.indexes"))) {
        op->op = '?';
        return CDCD_OK;
    }
    return bad(r, err, "it has no _id");
}

/* ---- what an entry is ---- */

static bool flag(struct cdcd_slice document, const char *name)
{
    struct cdcd_bson_element e;

    return cdcd_bson_find(document, name, &e) && truth_value(&e);
}

/* An applyOps: of a transaction (the whole, a part, the last part), of a vectored insert, or the
 * command itself. Parts are linked by prevOpTime; large batches outside of sessions are cut and
 * linked the same way. Vectored inserts are linked, too, but each is complete. */
static enum cdcd_rc apply_ops_kind(const struct raw *r, const struct cdcd_bson_element *first,
                                   struct mg_entry *out, struct cdcd_error *err)
{
    struct cdcd_bson_element count;
    bool separate = r->multi_op_type == 1;

    if (first->type != CDCD_BSON_ARRAY)
        return bad(r, err, "applyOps is no array");
    if (r->multi_op_type != 0 && r->multi_op_type != 1)
        return bad(r, err, "multiOpType %lld is not known", (long long)r->multi_op_type);
    out->ops = first->value;
    out->transaction = !separate && r->lsid.ptr && r->has_txn_number;
    out->prepared = flag(r->o, "prepare");
    if (cdcd_bson_find(r->o, "count", &count) && !number_value(&count, &out->count))
        return bad(r, err, "count is no number");
    if (flag(r->o, "partialTxn") || out->prepared)
        out->kind = MG_ENTRY_PART;
    else if (!separate && mg_time_number(r->prev))
        out->kind = MG_ENTRY_COMMIT;
    else
        out->kind = MG_ENTRY_OPS;
    return CDCD_OK;
}

static enum cdcd_rc command_kind(const struct raw *r, struct mg_entry *out, struct cdcd_error *err)
{
    struct cdcd_bson_iter it;
    struct cdcd_bson_element first;
    enum mg_command_kind kind;

    if (!cdcd_bson_iter_init(&it, r->o) || cdcd_bson_iter_next(&it, &first) != 1)
        return bad(r, err, "its command (o) is malformed or empty");
    out->what = first.name;
    if (cdcd_slice_eq(first.name, cdcd_slice_str("applyOps")))
        return apply_ops_kind(r, &first, out, err);
    if (cdcd_slice_eq(first.name, cdcd_slice_str("commitTransaction"))) {
        if (!mg_time_number(r->prev))
            return bad(r, err, "commitTransaction without prevOpTime: what it commits is unknown");
        out->kind = MG_ENTRY_COMMIT;
        out->transaction = r->lsid.ptr && r->has_txn_number;
        return CDCD_OK;
    }
    if (cdcd_slice_eq(first.name, cdcd_slice_str("abortTransaction"))) {
        out->kind = MG_ENTRY_ABORT;
        return CDCD_OK;
    }
    out->kind = mg_command_known(first.name, &kind) ? MG_ENTRY_COMMAND : MG_ENTRY_UNKNOWN;
    if (out->kind == MG_ENTRY_COMMAND && !r->ns.len)
        return bad(r, err, "command %.*s has no ns", cut(first.name), first.name.ptr);
    return CDCD_OK;
}

static enum cdcd_rc entry_kind(const struct raw *r, struct mg_entry *out, struct cdcd_error *err)
{
    switch (out->op.op) {
    case 'n': out->kind = MG_ENTRY_NOOP; return CDCD_OK;
    case 'c': return command_kind(r, out, err);
    case '?': out->kind = MG_ENTRY_UNKNOWN; return CDCD_OK;
    default:
        out->kind = MG_ENTRY_OPS;
        out->transaction = r->lsid.ptr && r->has_txn_number && !r->has_stmt && !r->has_t;
        return CDCD_OK;
    }
}

enum cdcd_rc mg_entry_parse(struct cdcd_slice document, struct mg_entry *out,
                            struct cdcd_error *err)
{
    struct raw r;

    if (read_fields(document, &r, err) != CDCD_OK)
        return CDCD_ERROR;
    if (!r.has_ts)
        return bad(&r, err, "it has no ts");
    if (r.has_v && (r.v < 1 || r.v > ENTRY_VERSION))
        return bad(&r, err,
                   "its version (v) is %lld; this cdcd knows 1 to %d: a newer one is needed",
                   (long long)r.v, ENTRY_VERSION);
    *out = (struct mg_entry){.ts = r.ts,
                             .prev = r.prev,
                             .wall_ms = r.wall_ms,
                             .ns = r.ns,
                             .lsid = r.lsid,
                             .has_txn_number = r.has_txn_number,
                             .txn_number = r.txn_number,
                             .from_migrate = r.from_migrate,
                             .count = -1,
                             .body = document,
                             .what = r.op};
    if (make_op(&r, &out->op, err) != CDCD_OK)
        return CDCD_ERROR;
    return entry_kind(&r, out, err);
}

/* ---- operations of an entry ---- */

enum cdcd_rc mg_ops_begin(const struct mg_entry *e, struct mg_ops *out, struct cdcd_error *err)
{
    out->entry = e; /* not all of it: it is large, and most entries are one operation */
    out->single = false;
    out->depth = 0;
    if (e->kind == MG_ENTRY_OPS && !e->ops.ptr) {
        out->single = true;
        return CDCD_OK;
    }
    if (!e->ops.ptr)
        return CDCD_OK;
    if (!cdcd_bson_iter_init(&out->it[0], e->ops))
        return cdcd_error_set(err, CDCD_ERR_DATA, "oplog entry at %u:%u: malformed applyOps",
                              e->ts.t, e->ts.i);
    out->index[0] = 0;
    out->depth = 1;
    return CDCD_OK;
}

static enum cdcd_rc at_entry(const struct mg_ops *ops, struct cdcd_error *err)
{
    const struct mg_entry *e = ops->entry;
    return cdcd_error_context(err, "oplog entry at %u:%u (applyOps), operation %u", e->ts.t,
                              e->ts.i, ops->depth ? ops->index[ops->depth - 1] : 0);
}

/* Descends where the operation is an applyOps itself: *nested. */
static enum cdcd_rc enter_nested(struct mg_ops *ops, const struct mg_op *op, bool *nested,
                                 struct cdcd_error *err)
{
    struct cdcd_bson_iter it;
    struct cdcd_bson_element first;

    *nested = false;
    if (!cdcd_bson_iter_init(&it, op->o) || cdcd_bson_iter_next(&it, &first) != 1)
        return cdcd_error_set(err, CDCD_ERR_DATA, "its command (o) is malformed or empty");
    if (!cdcd_slice_eq(first.name, cdcd_slice_str("applyOps")))
        return CDCD_OK;
    if (ops->depth == MG_APPLY_OPS_DEPTH)
        return cdcd_error_set(err, CDCD_ERR_DATA, "more than %d applyOps within each other",
                              MG_APPLY_OPS_DEPTH);
    if (first.type != CDCD_BSON_ARRAY || !cdcd_bson_iter_init(&ops->it[ops->depth], first.value))
        return cdcd_error_set(err, CDCD_ERR_DATA, "applyOps is no array");
    ops->index[ops->depth++] = 0;
    *nested = true;
    return CDCD_OK;
}

static enum cdcd_rc read_op(const struct mg_ops *ops, const struct cdcd_bson_element *e,
                            struct mg_op *out, struct cdcd_error *err)
{
    struct raw r;

    if (e->type != CDCD_BSON_DOCUMENT)
        return cdcd_error_set(err, CDCD_ERR_DATA, "it is no document");
    if (read_fields(e->value, &r, err) != CDCD_OK || make_op(&r, out, err) != CDCD_OK)
        return CDCD_ERROR;
    out->index = ops->index[ops->depth - 1];
    out->from_migrate |= ops->entry->from_migrate;
    return CDCD_OK;
}

enum cdcd_rc mg_ops_next(struct mg_ops *ops, struct mg_op *out, struct cdcd_error *err)
{
    struct cdcd_bson_element e;
    bool nested = false;

    if (ops->single) {
        ops->single = false;
        *out = ops->entry->op;
        return CDCD_OK;
    }
    while (ops->depth) {
        int more = cdcd_bson_iter_next(&ops->it[ops->depth - 1], &e);
        if (more < 0) {
            cdcd_error_set(err, CDCD_ERR_DATA, "malformed BSON");
            return at_entry(ops, err);
        }
        if (more == 0) {
            if (--ops->depth) /* the applyOps that held it was an element, too */
                ops->index[ops->depth - 1]++;
            continue;
        }
        if (read_op(ops, &e, out, err) != CDCD_OK ||
            (out->op == 'c' && enter_nested(ops, out, &nested, err) != CDCD_OK))
            return at_entry(ops, err);
        if (out->op == 'c' && nested)
            continue;
        ops->index[ops->depth - 1]++;
        if (out->op != 'n')
            return CDCD_OK;
    }
    return CDCD_END;
}
