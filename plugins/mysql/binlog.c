/*
 * binlog: one event of the log -> struct my_event. The header and the checksum, the format
 * description, the small events; the larger ones are in binlog_*.c.
 *
 * Every event (MySQL's binlog_event.h, Log_event_header): timestamp 4, type 1, server_id 4,
 * size 4, end position 4, flags 2; then the body; then, when the format description says so, the
 * CRC32 of all before it.
 */
#include "decoder.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

const char *my_event_name(uint8_t type)
{
    static const char *const names[256] = {
        [MY_T_QUERY] = "QUERY",
        [MY_T_STOP] = "STOP",
        [MY_T_ROTATE] = "ROTATE",
        [MY_T_INTVAR] = "INTVAR",
        [MY_T_APPEND_BLOCK] = "APPEND_BLOCK",
        [MY_T_DELETE_FILE] = "DELETE_FILE",
        [MY_T_RAND] = "RAND",
        [MY_T_USER_VAR] = "USER_VAR",
        [MY_T_FORMAT] = "FORMAT_DESCRIPTION",
        [MY_T_XID] = "XID",
        [MY_T_BEGIN_LOAD_QUERY] = "BEGIN_LOAD_QUERY",
        [MY_T_EXECUTE_LOAD_QUERY] = "EXECUTE_LOAD_QUERY",
        [MY_T_TABLE_MAP] = "TABLE_MAP",
        [MY_T_WRITE_V1] = "WRITE_ROWS_V1",
        [MY_T_UPDATE_V1] = "UPDATE_ROWS_V1",
        [MY_T_DELETE_V1] = "DELETE_ROWS_V1",
        [MY_T_INCIDENT] = "INCIDENT",
        [MY_T_HEARTBEAT] = "HEARTBEAT",
        [MY_T_IGNORABLE] = "IGNORABLE",
        [MY_T_ROWS_QUERY] = "ROWS_QUERY",
        [MY_T_WRITE_V2] = "WRITE_ROWS",
        [MY_T_UPDATE_V2] = "UPDATE_ROWS",
        [MY_T_DELETE_V2] = "DELETE_ROWS",
        [MY_T_GTID] = "GTID",
        [MY_T_ANONYMOUS_GTID] = "ANONYMOUS_GTID",
        [MY_T_PREVIOUS_GTIDS] = "PREVIOUS_GTIDS",
        [MY_T_TRANSACTION_CONTEXT] = "TRANSACTION_CONTEXT",
        [MY_T_VIEW_CHANGE] = "VIEW_CHANGE",
        [MY_T_XA_PREPARE] = "XA_PREPARE",
        [MY_T_PARTIAL_UPDATE] = "PARTIAL_UPDATE_ROWS",
        [MY_T_PAYLOAD] = "TRANSACTION_PAYLOAD",
        [MY_T_HEARTBEAT_V2] = "HEARTBEAT_V2",
        [MY_T_TAGGED_GTID] = "GTID_TAGGED",
        [MY_T_ANNOTATE_ROWS] = "ANNOTATE_ROWS",
        [MY_T_BINLOG_CHECKPOINT] = "BINLOG_CHECKPOINT",
        [MY_T_MARIADB_GTID] = "MARIADB_GTID",
        [MY_T_GTID_LIST] = "GTID_LIST",
        [MY_T_START_ENCRYPTION] = "START_ENCRYPTION",
        [MY_T_QUERY_COMPRESSED] = "QUERY_COMPRESSED",
        [MY_T_WRITE_COMPRESSED_V1] = "WRITE_ROWS_COMPRESSED_V1",
        [MY_T_UPDATE_COMPRESSED_V1] = "UPDATE_ROWS_COMPRESSED_V1",
        [MY_T_DELETE_COMPRESSED_V1] = "DELETE_ROWS_COMPRESSED_V1",
        [MY_T_WRITE_COMPRESSED] = "WRITE_ROWS_COMPRESSED",
        [MY_T_UPDATE_COMPRESSED] = "UPDATE_ROWS_COMPRESSED",
        [MY_T_DELETE_COMPRESSED] = "DELETE_ROWS_COMPRESSED",
    };

    return names[type] ? names[type] : "unknown";
}

enum cdcd_rc my_event_bad(const struct my_event *e, struct cdcd_error *err, const char *fmt, ...)
{
    char reason[256], hex[3 * 32 + 1];
    va_list args;

    va_start(args, fmt);
    vsnprintf(reason, sizeof reason, fmt, args);
    va_end(args);
    hex[0] = '\0';
    for (size_t i = 0; i < e->raw.len && i < 32; i++)
        snprintf(hex + 3 * i, 4, " %02x", (uint8_t)e->raw.ptr[i]);
    return cdcd_error_set(err, CDCD_ERR_FATAL,
                          "binlog event of type %u (%s), %zu bytes, that ends at position %u: %s; "
                          "it begins with%s",
                          e->type, my_event_name(e->type), e->raw.len, e->end_pos, reason, hex);
}

struct my_decoder *my_decoder_new(enum my_flavor flavor)
{
    struct my_decoder *d = cdcd_xcalloc(1, sizeof *d);

    d->flavor = flavor;
    cdcd_arena_init(&d->arena, 16 << 10);
    cdcd_buf_init(&d->scratch, 0);
    return d;
}

void my_decoder_free(struct my_decoder *d)
{
    if (!d)
        return;
    cdcd_arena_free(&d->arena);
    cdcd_buf_free(&d->scratch);
    free(d);
}

/* ---- header and checksum ---- */

static enum cdcd_rc read_header(struct cdcd_slice event, bool inner, struct my_event *out,
                                struct cdcd_error *err)
{
    struct cdcd_cursor c = cdcd_cur(event.ptr, event.len);

    *out = (struct my_event){.raw = event};
    out->timestamp = my_cur_u32(&c);
    out->type = cdcd_cur_u8(&c);
    out->server_id = my_cur_u32(&c);
    out->size = my_cur_u32(&c);
    out->end_pos = my_cur_u32(&c);
    out->flags = my_cur_u16(&c);
    if (c.bad)
        return my_event_bad(out, err, "shorter than the header of an event");
    /* A group is held without the checksums that its sizes count. */
    if (out->size != event.len && !(inner && out->size == event.len + MY_CHECKSUM_LEN))
        return my_event_bad(out, err, "its header says %u bytes", out->size);
    out->body = cdcd_cur_bytes(&c, cdcd_cur_left(&c));
    return CDCD_OK;
}

/* The mark that a file is open is set after the checksum was made (log_event.cc,
 * Log_event::write_header). */
static bool checksum_fits(const struct my_event *e)
{
    size_t n = e->raw.len - MY_CHECKSUM_LEN;
    const uint8_t *p = (const uint8_t *)e->raw.ptr, *sum = p + n;
    uint32_t want = sum[0] | (uint32_t)sum[1] << 8 | (uint32_t)sum[2] << 16 |
                    (uint32_t)sum[3] << 24;

    if (e->type != MY_T_FORMAT || !(e->flags & MY_FLAG_IN_USE))
        return my_crc32(0, p, n) == want;
    uint8_t flags[2] = {p[17] & (uint8_t)~MY_FLAG_IN_USE, p[18]};
    uint32_t crc = my_crc32(0, p, 17);
    crc = my_crc32(crc, flags, sizeof flags);
    return my_crc32(crc, p + MY_HEADER_LEN, n - MY_HEADER_LEN) == want;
}

static void cut_checksum(struct my_event *e)
{
    e->raw.len -= MY_CHECKSUM_LEN;
    e->body.len -= MY_CHECKSUM_LEN;
}

/* A damaged event may be the network's or a wrong start position's: the log is read once more. */
static enum cdcd_rc checksum_wrong(const struct my_event *e, struct cdcd_error *err)
{
    static _Atomic bool seen;
    enum cdcd_rc rc = my_event_bad(e, err,
                                   "its checksum is wrong: the log is damaged, or it was asked for "
                                   "from a position that is no event's");

    if (err && !atomic_exchange(&seen, true))
        err->class = CDCD_ERR_RETRY;
    return rc;
}

static enum cdcd_rc check_sum(struct my_decoder *d, struct my_event *e, struct cdcd_error *err)
{
    bool room = e->body.len >= MY_CHECKSUM_LEN;

    /* A server makes up the first rotate event of a dump with or without a checksum, whatever the
     * format of the file that follows. */
    if (e->type == MY_T_ROTATE && (e->flags & MY_FLAG_ARTIFICIAL || !d->checksum)) {
        if (room && checksum_fits(e))
            cut_checksum(e);
        return CDCD_OK;
    }
    if (d->checksum == MY_CHECKSUM_OFF)
        return CDCD_OK;
    if (d->checksum == MY_CHECKSUM_UNKNOWN)
        return my_event_bad(e, err, "it comes before any format description");
    if (!room)
        return my_event_bad(e, err, "too short for its checksum");
    if (!checksum_fits(e))
        return checksum_wrong(e, err);
    cut_checksum(e);
    return CDCD_OK;
}

/* ---- format description ---- */

/* Servers that know of checksums say in the format description which one is used, and put one
 * there even when it is none: MySQL from 5.6.1, MariaDB from 5.3. */
static bool knows_checksums(struct cdcd_slice version)
{
    char text[51] = "";
    int v[3] = {0, 0, 0};

    memcpy(text, version.ptr, version.len < 50 ? version.len : 50);
    sscanf(text, "%d.%d.%d", &v[0], &v[1], &v[2]);
    int number = v[0] * 10000 + v[1] * 100 + v[2];
    return number >= (strstr(text, "MariaDB") ? 50300 : 50601);
}

/* Start of the algorithm byte's block: behind as many lengths as the event's own entry in them
 * says. Some servers (Amazon's Aurora) put zeros between the lengths and the block. */
static enum cdcd_rc decode_format(struct my_decoder *d, struct my_event *e, bool inner,
                                  struct cdcd_error *err)
{
    enum { FIXED = 2 + 50 + 4 + 1 };
    struct cdcd_cursor c = cdcd_cur(e->body.ptr, e->body.len);
    uint16_t version = my_cur_u16(&c);
    struct cdcd_slice server = cdcd_cur_bytes(&c, 50);
    enum my_checksum checksum = MY_CHECKSUM_OFF;

    my_cur_u32(&c);
    uint8_t header_len = cdcd_cur_u8(&c);
    if (c.bad || version != 4 || header_len != MY_HEADER_LEN)
        return my_event_bad(e, err, "version %u of the log's format; 4 is the only one supported",
                            version);
    size_t n = cdcd_cur_left(&c), tail = knows_checksums(server) ? 1u + MY_CHECKSUM_LEN : 0;
    if (tail && inner && e->size != e->raw.len)
        tail = 1;
    if (n < tail)
        return my_event_bad(e, err, "too short for its checksum");
    if (tail) {
        uint8_t algorithm = (uint8_t)c.pos[n - tail];
        if (algorithm > 1)
            return my_event_bad(e, err, "checksum algorithm %u is not known", algorithm);
        if (algorithm == 1)
            checksum = MY_CHECKSUM_CRC32;
        n -= tail;
    }
    if (checksum == MY_CHECKSUM_CRC32 && !inner && !checksum_fits(e))
        return checksum_wrong(e, err);
    if (tail > MY_CHECKSUM_LEN)
        cut_checksum(e);
    if (n >= MY_T_FORMAT && c.pos[MY_T_FORMAT - 1] >= FIXED &&
        c.pos[MY_T_FORMAT - 1] - (size_t)FIXED < n)
        n = c.pos[MY_T_FORMAT - 1] - (size_t)FIXED;
    memset(d->post_header, 0, sizeof d->post_header);
    for (size_t i = 0; i < n && i + 1 < sizeof d->post_header; i++)
        d->post_header[i + 1] = c.pos[i];
    d->checksum = checksum;
    e->kind = MY_EV_FORMAT;
    return CDCD_OK;
}

/* ---- small events ---- */

static enum cdcd_rc decode_rotate(struct my_event *e, struct cdcd_error *err)
{
    struct cdcd_cursor c = cdcd_cur(e->body.ptr, e->body.len);

    e->kind = MY_EV_ROTATE;
    e->rotate.pos = my_cur_u64(&c);
    e->rotate.file = cdcd_cur_bytes(&c, cdcd_cur_left(&c));
    if (c.bad || e->rotate.file.len == 0)
        return my_event_bad(e, err, "no file name");
    return CDCD_OK;
}

static enum cdcd_rc decode_heartbeat(struct my_event *e)
{
    e->kind = MY_EV_HEARTBEAT;
    e->rotate.file = e->body;
    e->rotate.pos = e->end_pos;
    return CDCD_OK;
}

/* Heartbeat_event_v2: type, length, value, each a length-encoded integer but the name; 0 ends. */
static enum cdcd_rc decode_heartbeat_v2(struct my_event *e, struct cdcd_error *err)
{
    enum { END = 0, FILE_NAME = 1, POSITION = 2 };
    struct cdcd_cursor c = cdcd_cur(e->body.ptr, e->body.len);

    e->kind = MY_EV_HEARTBEAT;
    e->rotate.pos = e->end_pos;
    while (!c.bad && cdcd_cur_left(&c)) {
        uint64_t type = my_cur_lenenc(&c);
        if (type == END)
            break;
        struct cdcd_slice value = my_cur_lenenc_bytes(&c);
        struct cdcd_cursor v = cdcd_cur(value.ptr, value.len);
        if (type == FILE_NAME)
            e->rotate.file = value;
        else if (type == POSITION)
            e->rotate.pos = my_cur_lenenc(&v);
        c.bad |= v.bad;
    }
    return c.bad ? my_event_bad(e, err, "its fields do not fit its length") : CDCD_OK;
}

static enum cdcd_rc decode_incident(struct my_event *e, struct cdcd_error *err)
{
    struct cdcd_cursor c = cdcd_cur(e->body.ptr, e->body.len);

    e->kind = MY_EV_INCIDENT;
    my_cur_u16(&c);
    e->text = cdcd_cur_bytes(&c, cdcd_cur_u8(&c));
    return c.bad ? my_event_bad(e, err, "its text does not fit its length") : CDCD_OK;
}

/* A length of one byte that says nothing for longer texts, and the text. */
static enum cdcd_rc decode_rows_query(struct my_event *e, struct cdcd_error *err)
{
    struct cdcd_cursor c = cdcd_cur(e->body.ptr, e->body.len);

    e->kind = MY_EV_ROWS_QUERY;
    cdcd_cur_u8(&c);
    e->text = cdcd_cur_bytes(&c, cdcd_cur_left(&c));
    return c.bad ? my_event_bad(e, err, "it is empty") : CDCD_OK;
}

static enum cdcd_rc decode_unknown(struct my_event *e, struct cdcd_error *err)
{
    e->kind = MY_EV_IGNORE;
    if (e->flags & MY_FLAG_IGNORABLE)
        return CDCD_OK;
    return my_event_bad(e, err,
                        "this version of cdcd does not know what it means, and it may not be left "
                        "out (supported: logs of MySQL 8.0 to 9.7 and MariaDB 10.6 to 11.8)");
}

static enum cdcd_rc dispatch(struct my_decoder *d, struct my_event *e, struct cdcd_error *err)
{
    switch ((enum my_event_type)e->type) {
    case MY_T_QUERY:
    case MY_T_QUERY_COMPRESSED:
    case MY_T_EXECUTE_LOAD_QUERY: return my_decode_query(d, e, err);
    case MY_T_ROTATE: return decode_rotate(e, err);
    case MY_T_STOP: e->kind = MY_EV_STOP; return CDCD_OK;
    case MY_T_INTVAR:
    case MY_T_APPEND_BLOCK:
    case MY_T_DELETE_FILE:
    case MY_T_RAND:
    case MY_T_USER_VAR:
    case MY_T_BEGIN_LOAD_QUERY: e->kind = MY_EV_STATEMENT_DATA; return CDCD_OK;
    case MY_T_XID: e->kind = MY_EV_XID; return CDCD_OK;
    case MY_T_TABLE_MAP: return my_decode_table_map(d, e, err);
    case MY_T_WRITE_V1:
    case MY_T_UPDATE_V1:
    case MY_T_DELETE_V1:
    case MY_T_WRITE_V2:
    case MY_T_UPDATE_V2:
    case MY_T_DELETE_V2:
    case MY_T_PARTIAL_UPDATE:
    case MY_T_WRITE_COMPRESSED_V1:
    case MY_T_UPDATE_COMPRESSED_V1:
    case MY_T_DELETE_COMPRESSED_V1:
    case MY_T_WRITE_COMPRESSED:
    case MY_T_UPDATE_COMPRESSED:
    case MY_T_DELETE_COMPRESSED: return my_decode_rows(d, e, err);
    case MY_T_INCIDENT: return decode_incident(e, err);
    case MY_T_HEARTBEAT: return decode_heartbeat(e);
    case MY_T_HEARTBEAT_V2: return decode_heartbeat_v2(e, err);
    case MY_T_ROWS_QUERY: return decode_rows_query(e, err);
    case MY_T_ANNOTATE_ROWS:
        e->kind = MY_EV_ROWS_QUERY;
        e->text = e->body;
        return CDCD_OK;
    case MY_T_GTID:
    case MY_T_ANONYMOUS_GTID: return my_decode_gtid(e, err);
    case MY_T_TAGGED_GTID: return my_decode_tagged_gtid(e, err);
    case MY_T_MARIADB_GTID: return my_decode_mariadb_gtid(d, e, err);
    case MY_T_XA_PREPARE: return my_decode_xa_prepare(e, err);
    case MY_T_PAYLOAD: e->kind = MY_EV_PAYLOAD; return CDCD_OK;
    case MY_T_FORMAT: /* not here: its checksum is its own affair */
    case MY_T_IGNORABLE:
    case MY_T_PREVIOUS_GTIDS:
    case MY_T_TRANSACTION_CONTEXT:
    case MY_T_VIEW_CHANGE:
    case MY_T_BINLOG_CHECKPOINT:
    case MY_T_GTID_LIST:
    case MY_T_START_ENCRYPTION: e->kind = MY_EV_IGNORE; return CDCD_OK;
    }
    return decode_unknown(e, err);
}

enum cdcd_rc my_decode(struct my_decoder *d, struct cdcd_slice event, bool inner,
                       struct my_event *out, struct cdcd_error *err)
{
    enum cdcd_rc rc = read_header(event, inner, out, err);

    if (rc != CDCD_OK)
        return rc;
    if (out->type == MY_T_FORMAT)
        return decode_format(d, out, inner, err);
    if (!inner) {
        rc = check_sum(d, out, err);
        if (rc != CDCD_OK)
            return rc;
    }
    return dispatch(d, out, err);
}
