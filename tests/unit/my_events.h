/*
 * Events of the binlog as the servers write them, made by hand, and a log of them that is sent from
 * any position in it.
 *
 * Layouts: MySQL's libs/mysql/binlog/event/, MariaDB's sql/log_event.h.
 */
#ifndef MY_EVENTS_H
#define MY_EVENTS_H

#include "stream_int.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <zlib.h>
#include <zstd.h>

#include <cmocka.h>

#define UUID_TEXT "11111111-1111-1111-1111-111111111111"

struct my_log_event {
    char *data;
    size_t len;
    uint64_t start;
    int group;   /* number of the group that it is of; -1: none */
    bool always; /* sent whatever the position is: format */
    struct my_gtid gtid;
};

struct my_log {
    enum my_flavor flavor;
    bool gtids; /* MySQL: with GTIDs */
    struct my_log_event items[512];
    size_t n;
    uint64_t end; /* of the file so far */
    int group;
    uint64_t gno;
    uint32_t time;
    bool inner; /* events go into `payload`, not into the log */
    struct cdcd_buf payload;
    struct my_gtid current;
};

/* ---- bytes ---- */

static inline void le(struct cdcd_buf *b, uint64_t v, int n)
{
    for (int i = 0; i < n; i++, v >>= 8) {
        char c = (char)(v & 0xff);
        cdcd_buf_add(b, &c, 1);
    }
}

static inline void ev_lenenc(struct cdcd_buf *b, uint64_t v)
{
    if (v < 251) {
        le(b, v, 1);
    } else if (v < 65536) {
        le(b, 0xfc, 1);
        le(b, v, 2);
    } else {
        le(b, 0xfd, 1);
        le(b, v, 3);
    }
}

static inline void ev_add(struct my_log *l, uint8_t type, uint16_t flags, struct cdcd_buf *body)
{
    struct cdcd_buf e;
    bool whole = !l->inner;
    cdcd_buf_init(&e, 0);
    uint32_t size = (uint32_t)(19 + body->len + (whole ? 4 : 0));
    le(&e, l->time, 4);
    le(&e, type, 1);
    le(&e, 7, 4);
    le(&e, size, 4);
    le(&e, whole ? l->end + size : 0, 4);
    le(&e, flags, 2);
    cdcd_buf_add(&e, body->ptr, body->len);
    cdcd_buf_free(body);
    if (!whole) {
        cdcd_buf_add(&l->payload, e.ptr, e.len);
        cdcd_buf_free(&e);
        return;
    }
    le(&e, crc32(0, (const Bytef *)e.ptr, (uInt)e.len), 4);
    assert_true(l->n < 512);
    l->items[l->n++] = (struct my_log_event){
        .data = e.ptr,
        .len = e.len,
        .start = l->end,
        .group = l->group,
        .always = type == 15,
        .gtid = l->current,
    };
    l->end += size;
}

#define EV_BODY(b)     \
    struct cdcd_buf b; \
    cdcd_buf_init(&b, 0)

/* ---- events ---- */

/* Post-header lengths as MySQL 9 and MariaDB 10.11 have them. */
static inline void ev_format(struct my_log *l)
{
    static const uint8_t mysql[] = {0,  13, 0,  8,  0,  0,  0, 0,  4,  0, 4,  0,  0, 0,
                                    98, 0,  4,  26, 8,  0,  0, 0,  8,  8, 8,  2,  0, 0,
                                    0,  10, 10, 10, 42, 42, 0, 18, 52, 0, 10, 40, 0, 0};
    EV_BODY(b);
    char version[50] = {0};
    bool maria = l->flavor == MY_MARIADB;
    snprintf(version, sizeof version, "%s", maria ? "10.11.19-MariaDB-log" : "9.7.4");
    size_t n = maria ? 171 : sizeof mysql;
    le(&b, 4, 2);
    cdcd_buf_add(&b, version, 50);
    le(&b, 0, 4);
    le(&b, 19, 1);
    for (size_t i = 0; i < n; i++)
        le(&b, i == 14 ? 57 + n : i < sizeof mysql ? mysql[i] : i == 161 ? 19 : 0, 1);
    le(&b, 1, 1); /* CRC32 */
    ev_add(l, 15, 0, &b);
}

static inline void ev_rotate(struct my_log *l, const char *file, uint64_t pos, bool artificial)
{
    EV_BODY(b);
    le(&b, pos, 8);
    cdcd_buf_adds(&b, file);
    ev_add(l, 4, artificial ? 0x20 : 0, &b);
    if (artificial) {
        struct my_log_event *e = &l->items[l->n - 1];
        e->always = true;
        memset(e->data + 13, 0, 4);
        uint32_t crc = (uint32_t)crc32(0, (const Bytef *)e->data, (uInt)e->len - 4);
        for (int i = 0; i < 4; i++)
            e->data[e->len - 4 + (size_t)i] = (char)(crc >> 8 * i & 0xff);
        l->end = e->start;
    } else {
        l->end = pos;
    }
}

static inline void ev_log(struct my_log *l, enum my_flavor flavor, bool gtids)
{
    memset(l, 0, sizeof *l);
    l->flavor = flavor;
    l->gtids = gtids;
    l->group = -1;
    l->time = 1700000000;
    l->end = 4;
    cdcd_buf_init(&l->payload, 0);
    ev_rotate(l, "bin.000001", 4, true);
    ev_format(l);
}

static inline void ev_free(struct my_log *l)
{
    for (size_t i = 0; i < l->n; i++)
        free(l->items[i].data);
    cdcd_buf_free(&l->payload);
}

/* flags: MariaDB's flags2. xid: of an XA group there, "ab" is gtrid "ab". */
static inline void ev_gtid(struct my_log *l, unsigned flags, const char *xid)
{
    EV_BODY(b);
    l->group++;
    l->time++;
    l->gno++;
    l->current = (struct my_gtid){.flavor = l->flavor, .number = l->gno};
    memset(l->current.uuid, 0x11, 16);
    if (l->flavor == MY_MARIADB) {
        l->current.server = 7;
        le(&b, l->gno, 8);
        le(&b, 0, 4);
        le(&b, flags, 1);
        if (flags & 0xc0) {
            le(&b, 1, 4);
            le(&b, strlen(xid), 1);
            le(&b, 0, 1);
            cdcd_buf_adds(&b, xid);
        }
        while (b.len < 19)
            le(&b, 0, 1);
        ev_add(l, 162, 8, &b);
        return;
    }
    le(&b, 1, 1);
    cdcd_buf_add(&b, l->current.uuid, 16);
    le(&b, l->gtids ? l->gno : 0, 8);
    le(&b, 2, 1);
    le(&b, 0, 8);
    le(&b, 1, 8);
    le(&b, (uint64_t)l->time * 1000000 + 123456, 7);
    ev_lenenc(&b, 500);
    le(&b, 90704, 4);
    ev_add(l, l->gtids ? 33 : 34, 0, &b);
}

static inline void ev_query(struct my_log *l, const char *text)
{
    EV_BODY(b);
    le(&b, 99, 4);
    le(&b, 0, 4);
    le(&b, 1, 1);
    le(&b, 0, 2);
    le(&b, 0, 2);
    cdcd_buf_add(&b, "d", 2);
    cdcd_buf_adds(&b, text);
    ev_add(l, 2, 0, &b);
}

static inline void ev_xid(struct my_log *l)
{
    EV_BODY(b);
    le(&b, 5, 8);
    ev_add(l, 16, 0, &b);
}

static inline void ev_xa_prepare(struct my_log *l, const char *xid, bool one_phase)
{
    EV_BODY(b);
    le(&b, one_phase, 1);
    le(&b, 1, 4);
    le(&b, strlen(xid), 4);
    le(&b, 0, 4);
    cdcd_buf_adds(&b, xid);
    ev_add(l, 38, 0, &b);
}

static inline void ev_rows_query(struct my_log *l, const char *text)
{
    EV_BODY(b);
    if (l->flavor == MY_MYSQL)
        le(&b, strlen(text) < 255 ? strlen(text) : 255, 1);
    cdcd_buf_adds(&b, text);
    ev_add(l, l->flavor == MY_MYSQL ? 29 : 160, 0x80, &b);
}

/* Table d.NAME (id int PRIMARY KEY, v int), with its names in the map. */
static inline void ev_map(struct my_log *l, uint64_t id, const char *name)
{
    EV_BODY(b);
    le(&b, id, 6);
    le(&b, 1, 2);
    le(&b, 1, 1);
    cdcd_buf_add(&b, "d", 2);
    le(&b, strlen(name), 1);
    cdcd_buf_add(&b, name, strlen(name) + 1);
    le(&b, 2, 1);
    le(&b, 0x0303, 2);
    le(&b, 0, 1);                       /* no type has metadata */
    le(&b, 2, 1);                       /* v may be NULL */
    cdcd_buf_add(&b, "\1\1\0", 3);      /* both have a sign */
    cdcd_buf_add(&b, "\4\5\2id\1v", 7); /* names */
    cdcd_buf_add(&b, "\10\1\0", 3);     /* primary key: column 0 */
    ev_add(l, 19, 0, &b);
}

enum { WRITE = 0, UPDATE = 1, DELETE = 2 };

/* images: `n` of them, two values each; present: a bitmap for each kind of image. */
static inline void ev_rows_of(struct my_log *l, uint64_t id, int op, const uint8_t present[2],
                              const int (*images)[2], size_t n)
{
    EV_BODY(b);
    bool v1 = l->flavor == MY_MARIADB;
    le(&b, id, 6);
    le(&b, 1, 2);
    if (!v1)
        le(&b, 2, 2);
    le(&b, 2, 1);
    le(&b, present[0], 1);
    if (op == UPDATE)
        le(&b, present[1], 1);
    for (size_t i = 0; i < n; i++) {
        uint8_t here = present[op == UPDATE ? i % 2 : 0];
        le(&b, here == 3 ? 0xfc : 0xfe, 1);
        for (int c = 0; c < 2; c++)
            if (here >> c & 1)
                le(&b, (uint32_t)images[i][c], 4);
    }
    ev_add(l, (uint8_t)((v1 ? 23 : 30) + op), 0, &b);
}

static inline void ev_rows(struct my_log *l, uint64_t id, int op, const int (*images)[2], size_t n)
{
    static const uint8_t all[2] = {3, 3};
    ev_rows_of(l, id, op, all, images, n);
}

/* From here on events are of a compressed transaction, until ev_payload_end. */
static inline void ev_payload_begin(struct my_log *l)
{
    l->inner = true;
    cdcd_buf_clear(&l->payload);
}

static inline void ev_payload_end(struct my_log *l)
{
    EV_BODY(b);
    size_t cap = ZSTD_compressBound(l->payload.len);
    char *z = malloc(cap);
    size_t n = ZSTD_compress(z, cap, l->payload.ptr, l->payload.len, 3);
    l->inner = false;
    struct cdcd_buf v;
    uint64_t fields[][2] = {{2, 0}, {3, l->payload.len}, {1, n}};
    for (int i = 0; i < 3; i++) {
        cdcd_buf_init(&v, 0);
        ev_lenenc(&v, fields[i][1]);
        ev_lenenc(&b, fields[i][0]);
        ev_lenenc(&b, v.len);
        cdcd_buf_add(&b, v.ptr, v.len);
        cdcd_buf_free(&v);
    }
    ev_lenenc(&b, 0);
    cdcd_buf_add(&b, z, n);
    free(z);
    ev_add(l, 40, 0, &b);
}

/* ---- groups ---- */

static inline void tx_begin(struct my_log *l)
{
    ev_gtid(l, 0x0c, NULL);
    if (l->flavor == MY_MYSQL)
        ev_query(l, "BEGIN");
}

static inline void tx_end(struct my_log *l)
{
    ev_xid(l);
    l->group++;
}

static inline void insert(struct my_log *l, const char *table, uint64_t id, int first, int n)
{
    int rows[64][2];
    for (int i = 0; i < n; i++) {
        rows[i][0] = first + i;
        rows[i][1] = (first + i) * 10;
    }
    ev_map(l, id, table);
    ev_rows(l, id, WRITE, rows, (size_t)n);
}

static inline void statement(struct my_log *l, const char *text)
{
    ev_gtid(l, 0x29, NULL);
    ev_query(l, text);
}

static inline void xa_begin(struct my_log *l, const char *xid)
{
    char text[64];
    ev_gtid(l, 0x4c, xid);
    snprintf(text, sizeof text, "XA START X'%02x',X'',1", xid[0]);
    if (l->flavor == MY_MYSQL)
        ev_query(l, text);
}

static inline void xa_end(struct my_log *l, const char *xid, bool one_phase)
{
    char text[64];
    snprintf(text, sizeof text, "XA END X'%02x',X'',1", xid[0]);
    ev_query(l, text);
    ev_xa_prepare(l, xid, one_phase);
}

static inline void xa_finish(struct my_log *l, const char *what, const char *xid)
{
    char text[64];
    ev_gtid(l, 0x8d, xid);
    snprintf(text, sizeof text, "XA %s X'%02x',X'',1", what, xid[0]);
    ev_query(l, text);
}

#endif
