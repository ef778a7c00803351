/*
 * pg_messages.h: writes pgoutput messages for tests, byte by byte as the protocol's documentation
 * has them.
 */
#ifndef CDCD_TESTS_PG_MESSAGES_H
#define CDCD_TESTS_PG_MESSAGES_H

#include "pg.h"

struct msg {
    uint8_t data[4096];
    size_t len;
};

static inline struct cdcd_slice msg_slice(const struct msg *m)
{
    return (struct cdcd_slice){(const char *)m->data, m->len};
}
static inline void put8(struct msg *m, unsigned v)
{
    m->data[m->len++] = (uint8_t)v;
}
static inline void put16(struct msg *m, unsigned v)
{
    put8(m, v >> 8);
    put8(m, v & 255);
}
static inline void put32(struct msg *m, uint32_t v)
{
    put16(m, v >> 16);
    put16(m, v & 65535);
}
static inline void put64(struct msg *m, uint64_t v)
{
    put32(m, (uint32_t)(v >> 32));
    put32(m, (uint32_t)v);
}
static inline void puts0(struct msg *m, const char *s)
{
    memcpy(m->data + m->len, s, strlen(s) + 1);
    m->len += strlen(s) + 1;
}
static inline void begin_msg(struct msg *m, char type, uint32_t xid)
{
    m->len = 0;
    put8(m, (unsigned char)type);
    if (xid)
        put32(m, xid);
}

/* A tuple in short: columns apart by '|'; "~" not sent, "!" NULL, all else text. */
static inline void put_tuple(struct msg *m, char kind, const char *row)
{
    unsigned n = 1;
    for (const char *p = row; *p; p++)
        n += *p == '|';
    put8(m, (unsigned char)kind);
    put16(m, n);
    for (;;) {
        size_t len = strcspn(row, "|");
        if (len == 1 && row[0] == '!') {
            put8(m, 'n');
        } else if (len == 1 && row[0] == '~') {
            put8(m, 'u');
        } else {
            put8(m, 't');
            put32(m, (uint32_t)len);
            memcpy(m->data + m->len, row, len);
            m->len += len;
        }
        if (!row[len])
            return;
        row += len + 1;
    }
}

static inline struct cdcd_slice msg_begin(struct msg *m, pg_lsn commit, uint32_t xid)
{
    begin_msg(m, 'B', 0);
    put64(m, commit);
    put64(m, commit * 1000);
    put32(m, xid);
    return msg_slice(m);
}
static inline void put_commit(struct msg *m, pg_lsn commit, pg_lsn end)
{
    put8(m, 0);
    put64(m, commit);
    put64(m, end);
    put64(m, commit * 1000);
}
static inline struct cdcd_slice msg_commit(struct msg *m, pg_lsn commit, pg_lsn end)
{
    begin_msg(m, 'C', 0);
    put_commit(m, commit, end);
    return msg_slice(m);
}
static inline struct cdcd_slice msg_stream_commit(struct msg *m, uint32_t xid, pg_lsn commit,
                                                  pg_lsn end)
{
    begin_msg(m, 'c', xid);
    put_commit(m, commit, end);
    return msg_slice(m);
}
/* P, p and K, which look alike. */
static inline struct cdcd_slice msg_prepared(struct msg *m, char type, uint32_t xid, pg_lsn lsn,
                                             pg_lsn end, const char *gid)
{
    begin_msg(m, type, 0);
    put_commit(m, lsn, end);
    put32(m, xid);
    puts0(m, gid);
    return msg_slice(m);
}
static inline struct cdcd_slice msg_begin_prepare(struct msg *m, uint32_t xid, pg_lsn lsn,
                                                  pg_lsn end, const char *gid)
{
    begin_msg(m, 'b', 0);
    put64(m, lsn);
    put64(m, end);
    put64(m, lsn * 1000);
    put32(m, xid);
    puts0(m, gid);
    return msg_slice(m);
}
static inline struct cdcd_slice msg_rollback_prepared(struct msg *m, uint32_t xid,
                                                      pg_lsn prepare_end, pg_lsn end,
                                                      const char *gid)
{
    begin_msg(m, 'r', 0);
    put8(m, 0);
    put64(m, prepare_end);
    put64(m, end);
    put64(m, 1);
    put64(m, 2);
    put32(m, xid);
    puts0(m, gid);
    return msg_slice(m);
}
static inline struct cdcd_slice msg_stream_start(struct msg *m, uint32_t xid, bool first)
{
    begin_msg(m, 'S', xid);
    put8(m, first);
    return msg_slice(m);
}
static inline struct cdcd_slice msg_stream_stop(struct msg *m)
{
    begin_msg(m, 'E', 0);
    return msg_slice(m);
}
static inline struct cdcd_slice msg_stream_abort(struct msg *m, uint32_t xid, uint32_t subxid)
{
    begin_msg(m, 'A', xid);
    put32(m, subxid);
    return msg_slice(m);
}
/* Columns in short: "name:oid" apart by spaces, "*" in front of those of the identity. */
static inline struct cdcd_slice msg_relation(struct msg *m, uint32_t xid, uint32_t oid,
                                             const char *table, char replident, const char *columns)
{
    begin_msg(m, 'R', xid);
    put32(m, oid);
    puts0(m, "public");
    puts0(m, table);
    put8(m, (unsigned char)replident);
    unsigned n = 1;
    for (const char *p = columns; *p; p++)
        n += *p == ' ';
    put16(m, n);
    for (const char *p = columns; *p; p += *p == ' ') {
        bool key = *p == '*';
        p += key;
        size_t len = strcspn(p, ":");
        put8(m, key);
        memcpy(m->data + m->len, p, len);
        m->len += len;
        put8(m, 0);
        p += len + 1;
        uint32_t type = 0;
        for (; *p >= '0' && *p <= '9'; p++)
            type = type * 10 + (uint32_t)(*p - '0');
        put32(m, type);
        put32(m, UINT32_MAX);
    }
    return msg_slice(m);
}
static inline struct cdcd_slice msg_insert(struct msg *m, uint32_t xid, uint32_t oid,
                                           const char *row)
{
    begin_msg(m, 'I', xid);
    put32(m, oid);
    put_tuple(m, 'N', row);
    return msg_slice(m);
}
/* kind: K, O, or 0 for none. */
static inline struct cdcd_slice msg_update(struct msg *m, uint32_t xid, uint32_t oid, char kind,
                                           const char *old, const char *row)
{
    begin_msg(m, 'U', xid);
    put32(m, oid);
    if (kind)
        put_tuple(m, kind, old);
    put_tuple(m, 'N', row);
    return msg_slice(m);
}
static inline struct cdcd_slice msg_delete(struct msg *m, uint32_t xid, uint32_t oid, char kind,
                                           const char *old)
{
    begin_msg(m, 'D', xid);
    put32(m, oid);
    put_tuple(m, kind, old);
    return msg_slice(m);
}
static inline struct cdcd_slice msg_truncate(struct msg *m, uint32_t xid, size_t n,
                                             const uint32_t *oids)
{
    begin_msg(m, 'T', xid);
    put32(m, (uint32_t)n);
    put8(m, 0);
    for (size_t i = 0; i < n; i++)
        put32(m, oids[i]);
    return msg_slice(m);
}
static inline struct cdcd_slice msg_logical(struct msg *m, uint32_t xid, bool transactional,
                                            pg_lsn lsn, const char *prefix, const char *content)
{
    begin_msg(m, 'M', xid);
    put8(m, transactional);
    put64(m, lsn);
    puts0(m, prefix);
    put32(m, (uint32_t)strlen(content));
    memcpy(m->data + m->len, content, strlen(content));
    m->len += strlen(content);
    return msg_slice(m);
}
static inline struct cdcd_slice msg_origin(struct msg *m, pg_lsn lsn, const char *name)
{
    begin_msg(m, 'O', 0);
    put64(m, lsn);
    puts0(m, name);
    return msg_slice(m);
}

#endif
