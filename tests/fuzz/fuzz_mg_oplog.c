/*
 * The decoder of oplog entries and of updates on hostile bytes. Input: a byte of options, two of a
 * length, a document of that length (what an update is applied to), and then either an entry or an
 * update. With REPAIR, lengths are made right first, so that what is behind them is reached.
 * Whatever comes, nothing may be read out of bounds (each document is in memory of exactly its
 * size), and what comes of well-formed documents is well-formed.
 */
#include "oplog.h"

#include <assert.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { UPDATE = 1, REPAIR = 2, BUCKETS = 4 };

static struct {
    uint8_t options;
    struct cdcd_arena arena;
    struct cdcd_slice before;
    uint64_t checked;
} f;

/* ---- lengths made right ---- */

static void put_u32(char *p, size_t v)
{
    for (int i = 0; i < 4; i++)
        p[i] = (char)(v >> (8 * i));
}

static size_t get_u32(const char *p)
{
    size_t v = 0;
    for (int i = 0; i < 4; i++)
        v |= (size_t)(uint8_t)p[i] << (8 * i);
    return v;
}

static void repair(char *p, size_t n, int depth);

/* Bytes of a value at p, at most `left`; 0: it does not fit. */
static size_t repair_value(uint8_t type, char *p, size_t left, int depth)
{
    size_t n;

    switch (type) {
    case CDCD_BSON_DOUBLE:
    case CDCD_BSON_DATE:
    case CDCD_BSON_TIMESTAMP:
    case CDCD_BSON_INT64: return left < 8 ? 0 : 8;
    case CDCD_BSON_INT32: return left < 4 ? 0 : 4;
    case CDCD_BSON_OID: return left < 12 ? 0 : 12;
    case CDCD_BSON_BOOL: return left < 1 ? 0 : 1;
    case CDCD_BSON_DECIMAL: return left < 16 ? 0 : 16;
    case CDCD_BSON_STRING:
        if (left < 5)
            return 0;
        n = get_u32(p);
        if (n < 1 || n > left - 4)
            n = 1 + n % (left - 4);
        put_u32(p, n);
        p[3 + n] = 0;
        return 4 + n;
    case CDCD_BSON_BINARY:
        if (left < 5)
            return 0;
        n = get_u32(p);
        if (n > left - 5)
            n %= left - 4;
        put_u32(p, n);
        return 5 + n;
    case CDCD_BSON_DOCUMENT:
    case CDCD_BSON_ARRAY:
        if (left < 5)
            return 0;
        n = get_u32(p);
        if (n < 5 || n > left)
            n = 5 + n % (left - 4);
        repair(p, n, depth + 1);
        return n;
    default: return 0;
    }
}

static void repair(char *p, size_t n, int depth)
{
    size_t at = 4;

    put_u32(p, n);
    p[n - 1] = 0;
    while (at + 1 < n) {
        char *end = memchr(p + at + 1, 0, n - at - 2);
        size_t value = end ? (size_t)(end + 1 - p) : n - 1;
        size_t len = depth < CDCD_BSON_DEPTH
                         ? repair_value((uint8_t)p[at], p + value, n - 1 - value, depth)
                         : 0;
        if (len == 0) { /* a null whose name is all the rest */
            p[at] = CDCD_BSON_NULL;
            for (size_t i = at + 1; i + 2 < n; i++)
                p[i] = p[i] ? p[i] : '.';
            if (at + 2 < n)
                p[n - 2] = 0;
            return;
        }
        at = value + len;
    }
}

static struct cdcd_slice document(const uint8_t *data, size_t size)
{
    char *copy = malloc(size ? size : 1);

    if (size)
        memcpy(copy, data, size);
    if (f.options & REPAIR && size >= 5)
        repair(copy, size, 0);
    return (struct cdcd_slice){copy, size};
}

/* ---- what is checked ---- */

static void touch(struct cdcd_slice s)
{
    for (size_t i = 0; i < s.len; i++)
        f.checked += (uint8_t)s.ptr[i];
}

static bool valid(struct cdcd_slice s)
{
    const char *why;
    return cdcd_bson_valid(s, &why);
}

static void check_update(const struct cdcd_update *u, bool whole)
{
    touch(u->updated);
    assert(u->updated.len >= 5);
    assert(!whole || valid(u->updated));
    assert(!u->ambiguous.ptr || !whole || valid(u->ambiguous));
    for (uint32_t i = 0; i < u->nremoved; i++)
        touch(u->removed[i]);
    for (uint32_t i = 0; i < u->ntruncated; i++) {
        touch(u->truncated[i].field);
        assert(u->truncated[i].size >= 0);
    }
}

static void read_update(struct cdcd_slice o)
{
    struct cdcd_update *u;
    struct cdcd_slice replacement, after;
    struct cdcd_error err;
    const char *why = "";
    bool whole = valid(o);

    if (mg_update_parse(o, f.options & BUCKETS, &f.arena, &u, &replacement, &err) == CDCD_OK) {
        assert(!u == !!replacement.ptr);
        if (u)
            check_update(u, whole);
    }
    if (mg_update_apply(f.before, o, &f.arena, &after, &err) == CDCD_OK) {
        touch(after);
        if (whole && valid(f.before) && !cdcd_bson_valid(after, &why))
            assert(strstr(why, "deep")); /* a deep value in a deep place */
    }
}

static void read_command(const struct mg_op *op)
{
    struct mg_command c;
    struct cdcd_error err;

    if (mg_command_parse(op->ns, op->o, op->uuid, &c, &err) != CDCD_OK)
        return;
    touch(c.db);
    touch(c.collection);
    touch(c.to_db);
    touch(c.to_collection);
    touch(c.uuid);
    touch(c.target_uuid);
}

static void read_op(const struct mg_op *op)
{
    touch(op->what);
    touch(op->ns);
    touch(op->uuid);
    touch(op->o);
    touch(op->o2);
    assert(strchr("iudc?", op->op));
    if (op->op == 'i' || op->op == 'u' || op->op == 'd') {
        assert(op->id.kind == CDCD_C_BSON && op->db.len && op->collection.len && op->o.ptr);
        touch((struct cdcd_slice){op->id.ptr, op->id.len});
    }
    if (op->op == 'u')
        read_update(op->o);
    if (op->op == 'c')
        read_command(op);
}

static void read_entry(struct cdcd_slice entry)
{
    struct mg_entry e;
    struct mg_ops ops;
    struct mg_op op;
    struct cdcd_error err;

    if (mg_entry_parse(entry, &e, &err) != CDCD_OK)
        return;
    touch(e.lsid);
    touch(e.what);
    if (e.kind == MG_ENTRY_COMMAND)
        read_command(&e.op);
    if (mg_ops_begin(&e, &ops, &err) != CDCD_OK)
        return;
    while (mg_ops_next(&ops, &op, &err) == CDCD_OK)
        read_op(&op);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 3)
        return 0;
    if (!f.arena.chunk_size)
        cdcd_arena_init(&f.arena, 1 << 12);
    f.options = data[0];
    size_t n = data[1] | (size_t)data[2] << 8;
    if (n > size - 3)
        n = size - 3;
    f.before = document(data + 3, n);
    struct cdcd_slice rest = document(data + 3 + n, size - 3 - n);
    if (f.options & UPDATE)
        read_update(rest);
    else
        read_entry(rest);
    free((char *)f.before.ptr);
    free((char *)rest.ptr);
    cdcd_arena_reset(&f.arena, 1 << 20);
    return 0;
}
