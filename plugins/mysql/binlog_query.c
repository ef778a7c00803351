/*
 * binlog_query: statements in the log, with the session variables that they were run under.
 *
 * Query_event (statement_events.h): thread 4, seconds 4, length of the database's name 1, error
 * code 2, length of the status variables 2; the variables; the name and a NUL; the statement.
 * EXECUTE_LOAD_QUERY has 13 bytes more before the variables.
 */
#include "decoder.h"

/* Query_event::Query_event_status_vars, and MariaDB's from 128 on (log_event.h). */
enum {
    VAR_FLAGS2 = 0,
    VAR_SQL_MODE = 1,
    VAR_CATALOG = 2,
    VAR_AUTO_INCREMENT = 3,
    VAR_CHARSET = 4,
    VAR_TIME_ZONE = 5,
    VAR_CATALOG_NZ = 6,
    VAR_LC_TIME_NAMES = 7,
    VAR_CHARSET_DATABASE = 8,
    VAR_TABLE_MAP_FOR_UPDATE = 9,
    VAR_MASTER_DATA_WRITTEN = 10,
    VAR_INVOKER = 11,
    VAR_UPDATED_DB_NAMES = 12,
    VAR_MICROSECONDS = 13,
    VAR_EXPLICIT_DEFAULTS = 16,
    VAR_DDL_XID = 17,
    VAR_UTF8MB4_COLLATION = 18,
    VAR_REQUIRE_PRIMARY_KEY = 19,
    VAR_TABLE_ENCRYPTION = 20,
    VAR_HRNOW = 128,
    VAR_XID = 129,
};

static void read_mode(struct cdcd_cursor *c, struct my_event *e)
{
    enum { ANSI_QUOTES = 4, NO_BACKSLASH_ESCAPES = 1 << 20 };
    uint64_t mode = my_cur_u64(c);

    e->query.sql_mode_ansi_quotes = mode & ANSI_QUOTES;
    e->query.sql_mode_no_backslash = mode & NO_BACKSLASH_ESCAPES;
}

static void skip_names(struct cdcd_cursor *c)
{
    enum { TOO_MANY = 254 };
    uint8_t n = cdcd_cur_u8(c);

    for (unsigned i = 0; n != TOO_MANY && i < n && !c->bad; i++)
        cdcd_cur_cstr(c);
}

/* False: a variable of unknown length, so that the rest cannot be read. */
static bool read_variable(struct cdcd_cursor *c, uint8_t code, struct my_event *e)
{
    switch (code) {
    case VAR_SQL_MODE: read_mode(c, e); return true;
    case VAR_CHARSET:
        e->query.charset_client = my_cur_u16(c);
        my_cur_u16(c);
        e->query.collation_server = my_cur_u16(c);
        return true;
    case VAR_CHARSET_DATABASE: e->query.collation_database = my_cur_u16(c); return true;
    case VAR_CATALOG: cdcd_cur_take(c, cdcd_cur_u8(c) + 1u); return true;
    case VAR_TIME_ZONE:
    case VAR_CATALOG_NZ: cdcd_cur_take(c, cdcd_cur_u8(c)); return true;
    case VAR_INVOKER:
        cdcd_cur_take(c, cdcd_cur_u8(c));
        cdcd_cur_take(c, cdcd_cur_u8(c));
        return true;
    case VAR_UPDATED_DB_NAMES: skip_names(c); return true;
    case VAR_FLAGS2:
    case VAR_AUTO_INCREMENT:
    case VAR_MASTER_DATA_WRITTEN: cdcd_cur_take(c, 4); return true;
    case VAR_LC_TIME_NAMES:
    case VAR_UTF8MB4_COLLATION: cdcd_cur_take(c, 2); return true;
    case VAR_TABLE_MAP_FOR_UPDATE:
    case VAR_DDL_XID:
    case VAR_XID: cdcd_cur_take(c, 8); return true;
    case VAR_MICROSECONDS:
    case VAR_HRNOW: cdcd_cur_take(c, 3); return true;
    case VAR_EXPLICIT_DEFAULTS:
    case VAR_REQUIRE_PRIMARY_KEY:
    case VAR_TABLE_ENCRYPTION: cdcd_cur_take(c, 1); return true;
    default: return false;
    }
}

enum cdcd_rc my_decode_query(struct my_decoder *d, struct my_event *out, struct cdcd_error *err)
{
    struct cdcd_cursor c = cdcd_cur(out->body.ptr, out->body.len);

    out->kind = MY_EV_QUERY;
    out->query.thread = my_cur_u32(&c);
    my_cur_u32(&c);
    uint8_t db_len = cdcd_cur_u8(&c);
    out->query.error_code = my_cur_u16(&c);
    uint16_t vars_len = my_cur_u16(&c);
    if (out->type == MY_T_EXECUTE_LOAD_QUERY)
        cdcd_cur_take(&c, 13);
    struct cdcd_cursor vars = cdcd_cur_sub(&c, vars_len);
    while (!vars.bad && cdcd_cur_left(&vars)) {
        if (!read_variable(&vars, cdcd_cur_u8(&vars), out))
            break;
    }
    out->query.db = cdcd_cur_bytes(&c, db_len);
    uint8_t nul = cdcd_cur_u8(&c);
    if (c.bad || vars.bad || nul)
        return my_event_bad(out, err, "its fields do not fit its length");
    if (out->type == MY_T_QUERY_COMPRESSED)
        return my_inflate(d, out, &c, &out->query.text, err);
    out->query.text = cdcd_cur_bytes(&c, cdcd_cur_left(&c));
    return CDCD_OK;
}
