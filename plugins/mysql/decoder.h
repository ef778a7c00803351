/*
 * decoder.h: what the files of the event decoder share. Nothing outside of them includes it.
 *
 *   binlog.c         header, checksum, format description, the small events, dispatch
 *   binlog_gtid.c    GTID events of both servers, XA identifiers
 *   binlog_query.c   QUERY with its status variables
 *   binlog_map.c     TABLE_MAP with its optional metadata
 *   binlog_rows.c    the head of row events
 *   payload.c        zstd and zlib
 *   crc32.c          the checksum
 *
 * Numbers in the log are little-endian where nothing else is said.
 */
#ifndef CDCD_PLUGIN_MYSQL_DECODER_H
#define CDCD_PLUGIN_MYSQL_DECODER_H

#include "binlog.h"

#include <cdcd/cursor.h>

/* Event types: MySQL's Log_event_type (binlog_event.h), MariaDB's from 160 on (log_event.h). */
enum my_event_type {
    MY_T_QUERY = 2,
    MY_T_STOP = 3,
    MY_T_ROTATE = 4,
    MY_T_INTVAR = 5,
    MY_T_APPEND_BLOCK = 9,
    MY_T_DELETE_FILE = 11,
    MY_T_RAND = 13,
    MY_T_USER_VAR = 14,
    MY_T_FORMAT = 15,
    MY_T_XID = 16,
    MY_T_BEGIN_LOAD_QUERY = 17,
    MY_T_EXECUTE_LOAD_QUERY = 18,
    MY_T_TABLE_MAP = 19,
    MY_T_WRITE_V1 = 23,
    MY_T_UPDATE_V1 = 24,
    MY_T_DELETE_V1 = 25,
    MY_T_INCIDENT = 26,
    MY_T_HEARTBEAT = 27,
    MY_T_IGNORABLE = 28,
    MY_T_ROWS_QUERY = 29,
    MY_T_WRITE_V2 = 30,
    MY_T_UPDATE_V2 = 31,
    MY_T_DELETE_V2 = 32,
    MY_T_GTID = 33,
    MY_T_ANONYMOUS_GTID = 34,
    MY_T_PREVIOUS_GTIDS = 35,
    MY_T_TRANSACTION_CONTEXT = 36,
    MY_T_VIEW_CHANGE = 37,
    MY_T_XA_PREPARE = 38,
    MY_T_PARTIAL_UPDATE = 39,
    MY_T_PAYLOAD = 40,
    MY_T_HEARTBEAT_V2 = 41,
    MY_T_TAGGED_GTID = 42,
    MY_T_ANNOTATE_ROWS = 160,
    MY_T_BINLOG_CHECKPOINT = 161,
    MY_T_MARIADB_GTID = 162,
    MY_T_GTID_LIST = 163,
    MY_T_START_ENCRYPTION = 164,
    MY_T_QUERY_COMPRESSED = 165,
    MY_T_WRITE_COMPRESSED_V1 = 166,
    MY_T_UPDATE_COMPRESSED_V1 = 167,
    MY_T_DELETE_COMPRESSED_V1 = 168,
    MY_T_WRITE_COMPRESSED = 169,
    MY_T_UPDATE_COMPRESSED = 170,
    MY_T_DELETE_COMPRESSED = 171,
};

/* Column types: enum_field_types of both servers (field_types.h). */
enum my_column_type {
    MY_DECIMAL = 0,
    MY_TINY = 1,
    MY_SHORT = 2,
    MY_LONG = 3,
    MY_FLOAT = 4,
    MY_DOUBLE = 5,
    MY_NULL = 6,
    MY_TIMESTAMP = 7,
    MY_LONGLONG = 8,
    MY_INT24 = 9,
    MY_DATE = 10,
    MY_TIME = 11,
    MY_DATETIME = 12,
    MY_YEAR = 13,
    MY_NEWDATE = 14,
    MY_VARCHAR = 15,
    MY_BIT = 16,
    MY_TIMESTAMP2 = 17,
    MY_DATETIME2 = 18,
    MY_TIME2 = 19,
    MY_TYPED_ARRAY = 20,
    MY_BLOB_COMPRESSED = 140,
    MY_VARCHAR_COMPRESSED = 141,
    MY_VECTOR = 242,
    MY_JSON = 245,
    MY_NEWDECIMAL = 246,
    MY_ENUM = 247,
    MY_SET = 248,
    MY_TINY_BLOB = 249,
    MY_MEDIUM_BLOB = 250,
    MY_LONG_BLOB = 251,
    MY_BLOB = 252,
    MY_VAR_STRING = 253,
    MY_STRING = 254,
    MY_GEOMETRY = 255,
};

enum {
    MY_HEADER_LEN = 19,
    MY_CHECKSUM_LEN = 4,
    MY_FLAG_IN_USE = 0x01,     /* LOG_EVENT_BINLOG_IN_USE_F */
    MY_FLAG_ARTIFICIAL = 0x20, /* LOG_EVENT_ARTIFICIAL_F */
    MY_FLAG_IGNORABLE = 0x80,  /* LOG_EVENT_IGNORABLE_F */
};

enum my_checksum { MY_CHECKSUM_UNKNOWN = 0, MY_CHECKSUM_OFF, MY_CHECKSUM_CRC32 };

struct my_decoder {
    enum my_flavor flavor;
    enum my_checksum checksum;
    uint8_t post_header[256]; /* by type; 0: not told */
    struct cdcd_arena arena;  /* of the last table map */
    struct my_table_map map;
    struct cdcd_buf scratch; /* what the last compressed event inflates to */
    char xid[300];           /* of the last GTID event */
};

/* ---- numbers, over cursor.h ---- */

static inline uint64_t my_cur_le(struct cdcd_cursor *c, unsigned bytes)
{
    const uint8_t *p = cdcd_cur_take(c, bytes);
    uint64_t v = 0;

    for (unsigned i = 0; p && i < bytes; i++)
        v |= (uint64_t)p[i] << (8 * i);
    return v;
}

static inline uint16_t my_cur_u16(struct cdcd_cursor *c)
{
    return (uint16_t)my_cur_le(c, 2);
}

static inline uint32_t my_cur_u32(struct cdcd_cursor *c)
{
    return (uint32_t)my_cur_le(c, 4);
}

static inline uint64_t my_cur_u64(struct cdcd_cursor *c)
{
    return my_cur_le(c, 8);
}

/* The protocol's length-encoded integer: one byte up to 250, or 252, 253, 254 and 2, 3, 8 bytes. */
static inline uint64_t my_cur_lenenc(struct cdcd_cursor *c)
{
    uint8_t first = cdcd_cur_u8(c);

    if (first < 251)
        return first;
    switch (first) {
    case 252: return my_cur_le(c, 2);
    case 253: return my_cur_le(c, 3);
    case 254: return my_cur_le(c, 8);
    default: c->bad = true; return 0;
    }
}

static inline struct cdcd_slice my_cur_lenenc_bytes(struct cdcd_cursor *c)
{
    uint64_t n = my_cur_lenenc(c);

    if (n > cdcd_cur_left(c))
        c->bad = true;
    return cdcd_cur_bytes(c, c->bad ? 0 : (size_t)n);
}

/* ---- errors ---- */

/* FATAL: names the event's type and place, the reason, and its first bytes. */
enum cdcd_rc my_event_bad(const struct my_event *e, struct cdcd_error *err, const char *fmt, ...)
    CDCD_PRINTF(3, 4);
const char *my_event_name(uint8_t type);

/* ---- one kind of event each; `out` has its header and body ---- */
enum cdcd_rc my_decode_gtid(struct my_event *out, struct cdcd_error *err);
enum cdcd_rc my_decode_tagged_gtid(struct my_event *out, struct cdcd_error *err);
enum cdcd_rc my_decode_mariadb_gtid(struct my_decoder *d, struct my_event *out,
                                    struct cdcd_error *err);
enum cdcd_rc my_decode_xa_prepare(struct my_event *out, struct cdcd_error *err);
enum cdcd_rc my_decode_query(struct my_decoder *d, struct my_event *out, struct cdcd_error *err);
enum cdcd_rc my_decode_table_map(struct my_decoder *d, struct my_event *out,
                                 struct cdcd_error *err);
enum cdcd_rc my_decode_rows(struct my_decoder *d, struct my_event *out, struct cdcd_error *err);
/* The id of a table in the heads of table maps and row events: 6 bytes, 4 in old logs. */
uint64_t my_cur_table_id(const struct my_decoder *d, uint8_t type, struct cdcd_cursor *c);

/* payload.c: MariaDB's compressed part of an event; the result is in d->scratch. */
enum cdcd_rc my_inflate(struct my_decoder *d, const struct my_event *e, struct cdcd_cursor *c,
                        struct cdcd_slice *out, struct cdcd_error *err);

/* crc32.c: zlib's crc32(), faster. */
uint32_t my_crc32(uint32_t crc, const void *p, size_t n);

#endif
