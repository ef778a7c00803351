/*
 * binlog_rows: the head of row events, up to the images.
 *
 * Rows_event (rows_event.h): table id 6 (4 in old logs), flags 2, in version 2 the length of extra
 * data 2 (itself included) and the data; the number of columns (length-encoded), a bit for each
 * column that the images have, for updates a second row of bits for the after images; the images,
 * in MariaDB's compressed events as one compressed block.
 */
#include "decoder.h"

uint64_t my_cur_table_id(const struct my_decoder *d, uint8_t type, struct cdcd_cursor *c)
{
    enum { OLD_POST_HEADER = 6 };

    return my_cur_le(c, d->post_header[type] == OLD_POST_HEADER ? 4 : 6);
}

struct rows_type {
    uint8_t op;
    bool version2, compressed;
};

static struct rows_type type_of(uint8_t type)
{
    switch (type) {
    case MY_T_WRITE_V1: return (struct rows_type){MY_ROWS_WRITE, false, false};
    case MY_T_UPDATE_V1: return (struct rows_type){MY_ROWS_UPDATE, false, false};
    case MY_T_DELETE_V1: return (struct rows_type){MY_ROWS_DELETE, false, false};
    case MY_T_WRITE_COMPRESSED_V1: return (struct rows_type){MY_ROWS_WRITE, false, true};
    case MY_T_UPDATE_COMPRESSED_V1: return (struct rows_type){MY_ROWS_UPDATE, false, true};
    case MY_T_DELETE_COMPRESSED_V1: return (struct rows_type){MY_ROWS_DELETE, false, true};
    case MY_T_WRITE_V2: return (struct rows_type){MY_ROWS_WRITE, true, false};
    case MY_T_UPDATE_V2: return (struct rows_type){MY_ROWS_UPDATE, true, false};
    case MY_T_DELETE_V2: return (struct rows_type){MY_ROWS_DELETE, true, false};
    case MY_T_WRITE_COMPRESSED: return (struct rows_type){MY_ROWS_WRITE, true, true};
    case MY_T_UPDATE_COMPRESSED: return (struct rows_type){MY_ROWS_UPDATE, true, true};
    case MY_T_DELETE_COMPRESSED: return (struct rows_type){MY_ROWS_DELETE, true, true};
    default: return (struct rows_type){MY_ROWS_PARTIAL_UPDATE, true, false};
    }
}

enum cdcd_rc my_decode_rows(struct my_decoder *d, struct my_event *out, struct cdcd_error *err)
{
    struct cdcd_cursor c = cdcd_cur(out->body.ptr, out->body.len);
    enum { NO_TABLE = 0xffffff }; /* an event that only ends a statement */
    struct rows_type t = type_of(out->type);
    struct my_rows *r = &out->rows;

    out->kind = MY_EV_ROWS;
    r->op = (enum my_rows_op)t.op;
    r->table_id = my_cur_table_id(d, out->type, &c);
    r->flags = my_cur_u16(&c);
    if (t.version2) {
        uint16_t extra = my_cur_u16(&c);
        if (extra < 2)
            c.bad = true;
        cdcd_cur_take(&c, c.bad ? 0 : extra - 2u);
    }
    uint64_t n = my_cur_lenenc(&c);
    if (n > 8 * (uint64_t)cdcd_cur_left(&c))
        c.bad = true;
    size_t bytes = c.bad ? 0 : ((size_t)n + 7) / 8;
    r->ncolumns = c.bad ? 0 : (uint32_t)n;
    r->present[0] = cdcd_cur_take(&c, bytes);
    if (r->op == MY_ROWS_UPDATE || r->op == MY_ROWS_PARTIAL_UPDATE)
        r->present[1] = cdcd_cur_take(&c, bytes);
    if (!c.bad && (r->table_id & NO_TABLE) == NO_TABLE && cdcd_cur_left(&c) == 0) {
        out->kind = MY_EV_IGNORE;
        return CDCD_OK;
    }
    if (c.bad || r->ncolumns == 0)
        return my_event_bad(out, err, "its fields do not fit its length");
    if (t.compressed)
        return my_inflate(d, out, &c, &r->body, err);
    r->body = cdcd_cur_bytes(&c, cdcd_cur_left(&c));
    return CDCD_OK;
}
