/*
 * binlog_gtid: the events that begin a group of the log, and XA identifiers.
 */
#include "decoder.h"

#include <stdio.h>

/* ---- MySQL: Gtid_event (control_events.h) ----
 *
 * flags 1, uuid 16, number 8, then 2 and logical clock 8 + 8, immediate commit time 7 bytes of
 * microseconds whose top bit says that the original one follows in 7 more, then the transaction's
 * length (length-encoded) and what is of no use here. Older servers end earlier. */

static void read_commit_times(struct cdcd_cursor *c, struct my_event *e)
{
    const uint64_t has_original = UINT64_C(1) << 55;
    uint64_t immediate = my_cur_le(c, 7);

    e->gtid.commit_us = immediate & ~has_original;
    e->gtid.original_commit_us = immediate & has_original ? my_cur_le(c, 7) : immediate;
    if (cdcd_cur_left(c))
        e->gtid.transaction_length = my_cur_lenenc(c);
}

enum cdcd_rc my_decode_gtid(struct my_event *out, struct cdcd_error *err)
{
    enum { LOGICAL_CLOCK = 2 };
    struct cdcd_cursor c = cdcd_cur(out->body.ptr, out->body.len);

    out->kind = MY_EV_GTID;
    out->gtid.has_gtid = out->type == MY_T_GTID;
    out->gtid.id.flavor = MY_MYSQL;
    cdcd_cur_u8(&c);
    const uint8_t *uuid = cdcd_cur_take(&c, 16);
    if (uuid)
        memcpy(out->gtid.id.uuid, uuid, 16);
    out->gtid.id.number = my_cur_u64(&c);
    if (cdcd_cur_left(&c) && cdcd_cur_u8(&c) == LOGICAL_CLOCK) {
        cdcd_cur_take(&c, 16);
        if (cdcd_cur_left(&c))
            read_commit_times(&c, out);
    }
    if (c.bad || (out->gtid.has_gtid && out->gtid.id.number == 0))
        return my_event_bad(out, err, "its fields do not fit its length");
    return CDCD_OK;
}

/* ---- MySQL 8.3 and later: Gtid_event in the form of mysql::serialization ----
 *
 * Integers: the number of low one-bits of the first byte is the number of bytes that follow; the
 * value is in the bits above the first zero-bit, little-endian. Signed ones have their sign in the
 * lowest bit of the value. A message: version, size, the last field that may not be ignored, then
 * fields: id and value. */

static uint64_t cur_varint(struct cdcd_cursor *c)
{
    uint8_t first = cdcd_cur_u8(c);
    unsigned more = 0;

    while (more < 8 && first >> more & 1)
        more++;
    if (more == 8)
        return my_cur_le(c, 8);
    uint64_t rest = my_cur_le(c, more); /* at most 7 bytes */
    return (uint64_t)(first >> (more + 1)) | (more == 7 ? rest : rest << (7 - more));
}

static int64_t cur_signed_varint(struct cdcd_cursor *c)
{
    uint64_t v = cur_varint(c);

    return v & 1 ? (int64_t) ~(v >> 1) : (int64_t)(v >> 1);
}

enum {
    FIELD_FLAGS,
    FIELD_UUID,
    FIELD_NUMBER,
    FIELD_TAG,
    FIELD_LAST_COMMITTED,
    FIELD_SEQUENCE_NUMBER,
    FIELD_IMMEDIATE_COMMIT,
    FIELD_ORIGINAL_COMMIT,
    FIELD_TRANSACTION_LENGTH,
    FIELD_IMMEDIATE_VERSION,
    FIELD_ORIGINAL_VERSION,
    FIELD_COMMIT_GROUP_TICKET,
};

static void read_tagged_field(struct cdcd_cursor *c, uint64_t id, struct my_event *e)
{
    struct my_gtid *g = &e->gtid.id;

    switch (id) {
    case FIELD_UUID:
        for (int i = 0; i < 16; i++)
            g->uuid[i] = (uint8_t)cur_varint(c);
        break;
    case FIELD_NUMBER: g->number = (uint64_t)cur_signed_varint(c); break;
    case FIELD_TAG: {
        uint64_t n = cur_varint(c);
        if (n >= sizeof g->tag)
            c->bad = true;
        struct cdcd_slice tag = cdcd_cur_bytes(c, c->bad ? 0 : (size_t)n);
        memcpy(g->tag, tag.ptr, tag.len);
        g->tag[tag.len] = '\0';
        break;
    }
    case FIELD_IMMEDIATE_COMMIT: e->gtid.commit_us = cur_varint(c); break;
    case FIELD_ORIGINAL_COMMIT: e->gtid.original_commit_us = cur_varint(c); break;
    case FIELD_TRANSACTION_LENGTH: e->gtid.transaction_length = cur_varint(c); break;
    default: cur_varint(c); break; /* all others are integers */
    }
}

enum cdcd_rc my_decode_tagged_gtid(struct my_event *out, struct cdcd_error *err)
{
    struct cdcd_cursor c = cdcd_cur(out->body.ptr, out->body.len);
    bool number = false;

    out->kind = MY_EV_GTID;
    out->gtid.has_gtid = true;
    out->gtid.id.flavor = MY_MYSQL;
    cur_varint(&c);
    uint64_t size = cur_varint(&c);
    cur_varint(&c);
    if (c.bad || size > out->body.len)
        return my_event_bad(out, err, "its fields do not fit its length");
    c.end = (const uint8_t *)out->body.ptr + size;
    while (!c.bad && c.pos < c.end) {
        uint64_t id = cur_varint(&c);
        if (id > FIELD_COMMIT_GROUP_TICKET) /* of a later version, and may be ignored */
            break;
        read_tagged_field(&c, id, out);
        number |= id == FIELD_NUMBER;
    }
    if (c.bad || !number || (int64_t)out->gtid.id.number <= 0)
        return my_event_bad(out, err, "its fields do not fit its length");
    if (!out->gtid.original_commit_us)
        out->gtid.original_commit_us = out->gtid.commit_us;
    return CDCD_OK;
}

/* ---- XA ---- */

/* As the servers write it in the XA statements of the log: X'67',X'62',1 */
static bool write_xid(struct cdcd_cursor *c, uint32_t format, size_t gtrid, size_t bqual,
                      char out[300])
{
    enum { MAX_PART = 64 };
    static const char digits[] = "0123456789abcdef";
    const uint8_t *p = gtrid <= MAX_PART && bqual <= MAX_PART ? cdcd_cur_take(c, gtrid + bqual)
                                                              : NULL;
    char hex[2][2 * MAX_PART + 1] = {"", ""};

    if (!p)
        return false;
    for (size_t i = 0; i < gtrid + bqual; i++) {
        char *to = i < gtrid ? hex[0] + 2 * i : hex[1] + 2 * (i - gtrid);
        to[0] = digits[p[i] >> 4];
        to[1] = digits[p[i] & 15];
        to[2] = 0;
    }
    snprintf(out, 300, "X'%s',X'%s',%d", hex[0], hex[1], (int)(int32_t)format);
    return true;
}

/* XA_prepare_event: one phase 1, format 4, lengths of the two parts 4 + 4, both parts. */
enum cdcd_rc my_decode_xa_prepare(struct my_event *out, struct cdcd_error *err)
{
    struct cdcd_cursor c = cdcd_cur(out->body.ptr, out->body.len);

    out->kind = MY_EV_XA_PREPARE;
    out->xa.one_phase = cdcd_cur_u8(&c);
    uint32_t format = my_cur_u32(&c), gtrid = my_cur_u32(&c), bqual = my_cur_u32(&c);
    if (c.bad || !write_xid(&c, format, gtrid, bqual, out->xa.xid))
        return my_event_bad(out, err, "its identifier does not fit its length");
    return CDCD_OK;
}

/* ---- MariaDB: Gtid_log_event ----
 *
 * number 8, domain 4, flags 1, then the group commit's id 8, or zeros; with an XA flag instead of
 * the zeros: format 4, lengths of the two parts 1 + 1, both parts. The server's id is the
 * header's. */
enum cdcd_rc my_decode_mariadb_gtid(struct my_decoder *d, struct my_event *out,
                                    struct cdcd_error *err)
{
    enum {
        STANDALONE = 1,
        GROUP_COMMIT_ID = 2,
        DDL = 32,
        PREPARED_XA = 64,
        COMPLETED_XA = 128,
    };
    struct cdcd_cursor c = cdcd_cur(out->body.ptr, out->body.len);

    out->kind = MY_EV_GTID;
    out->gtid.has_gtid = true;
    out->gtid.id.flavor = MY_MARIADB;
    out->gtid.id.server = out->server_id;
    out->gtid.id.number = my_cur_u64(&c);
    out->gtid.id.domain = my_cur_u32(&c);
    uint8_t flags = cdcd_cur_u8(&c);
    out->gtid.standalone = flags & STANDALONE;
    out->gtid.ddl = flags & DDL;
    out->gtid.prepared_xa = flags & PREPARED_XA;
    out->gtid.completed_xa = flags & COMPLETED_XA;
    if (flags & GROUP_COMMIT_ID)
        my_cur_u64(&c);
    if (flags & (PREPARED_XA | COMPLETED_XA)) {
        uint32_t format = my_cur_u32(&c);
        uint8_t gtrid = cdcd_cur_u8(&c), bqual = cdcd_cur_u8(&c);
        if (c.bad || !write_xid(&c, format, gtrid, bqual, d->xid))
            return my_event_bad(out, err, "its XA identifier does not fit its length");
        out->gtid.xid = cdcd_slice_str(d->xid);
    }
    return c.bad ? my_event_bad(out, err, "too short") : CDCD_OK;
}
