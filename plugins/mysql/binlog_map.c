/*
 * binlog_map: TABLE_MAP events: the columns of a table before its rows, and the metadata that a
 * server with binlog_row_metadata=FULL adds.
 *
 * Table_map_event (rows_event.h): table id, flags 2; length 1, name of the database, NUL; the same
 * for the table; number of columns (length-encoded); a type byte each; length-encoded length of
 * their metadata, and the metadata; a bit each that says whether NULL is allowed; optional metadata
 * as type 1, length (length-encoded), value.
 */
#include "decoder.h"

/* Table_map_event::Optional_metadata_field_type, MariaDB the same up to 11. */
enum {
    OPT_SIGNEDNESS = 1,
    OPT_DEFAULT_CHARSET = 2,
    OPT_COLUMN_CHARSET = 3,
    OPT_COLUMN_NAME = 4,
    OPT_SET_LABELS = 5,
    OPT_ENUM_LABELS = 6,
    OPT_GEOMETRY_TYPE = 7,
    OPT_SIMPLE_KEY = 8,
    OPT_PREFIX_KEY = 9,
    OPT_LABEL_DEFAULT_CHARSET = 10,
    OPT_LABEL_COLUMN_CHARSET = 11,
    OPT_VISIBILITY = 12,
    OPT_VECTOR_DIMENSION = 13,
    OPT_COUNT
};

/* ---- types and their metadata ---- */

static bool is_numeric(const struct my_map_column *c)
{
    switch (c->type) {
    case MY_TINY:
    case MY_SHORT:
    case MY_INT24:
    case MY_LONG:
    case MY_LONGLONG:
    case MY_NEWDECIMAL:
    case MY_FLOAT:
    case MY_DOUBLE:
    case MY_YEAR: return true;
    default: return false;
    }
}

static bool is_character(const struct my_map_column *c)
{
    switch (c->type) {
    case MY_STRING:
    case MY_VAR_STRING:
    case MY_VARCHAR:
    case MY_TINY_BLOB:
    case MY_MEDIUM_BLOB:
    case MY_LONG_BLOB:
    case MY_BLOB:
    case MY_BLOB_COMPRESSED:
    case MY_VARCHAR_COMPRESSED: return true;
    default: return false;
    }
}

/* MariaDB's geometry fields are text in this respect (Field_geom is a Field_blob). */
static bool is_character_mariadb(const struct my_map_column *c)
{
    return c->type == MY_GEOMETRY || is_character(c);
}

static bool is_set(const struct my_map_column *c)
{
    return c->type == MY_SET;
}

static bool is_enum(const struct my_map_column *c)
{
    return c->type == MY_ENUM;
}

static bool is_labelled(const struct my_map_column *c)
{
    return is_set(c) || is_enum(c);
}

static bool is_geometry(const struct my_map_column *c)
{
    return c->type == MY_GEOMETRY;
}

static bool is_vector(const struct my_map_column *c)
{
    return c->type == MY_VECTOR;
}

/* CHAR, ENUM and SET come as STRING: the first byte is the real type, the second the length in
 * bytes; two bits of the type take what a length above 255 needs (Field_string::do_save_field_
 * metadata). */
static void resolve_string(struct my_map_column *col, uint8_t first, uint8_t second)
{
    if (first == 0) { /* logs of 5.0 */
        col->meta = second;
    } else if ((first & 0x30) != 0x30) {
        col->meta = (uint16_t)(second | ((first & 0x30) ^ 0x30) << 4);
        col->type = first | 0x30;
    } else {
        col->type = first;
        col->meta = second;
    }
}

static void read_meta(struct cdcd_cursor *c, struct my_map_column *col)
{
    switch (col->type) {
    case MY_FLOAT:
    case MY_DOUBLE:
    case MY_TINY_BLOB:
    case MY_MEDIUM_BLOB:
    case MY_LONG_BLOB:
    case MY_BLOB:
    case MY_BLOB_COMPRESSED:
    case MY_GEOMETRY:
    case MY_JSON:
    case MY_VECTOR:
    case MY_TIME2:
    case MY_DATETIME2:
    case MY_TIMESTAMP2: col->meta = cdcd_cur_u8(c); break;
    case MY_VARCHAR:
    case MY_VARCHAR_COMPRESSED:
    case MY_VAR_STRING:
    case MY_BIT: col->meta = my_cur_u16(c); break;
    case MY_NEWDECIMAL: {
        uint8_t precision = cdcd_cur_u8(c);
        col->meta = (uint16_t)(precision | cdcd_cur_u8(c) << 8);
        break;
    }
    case MY_STRING:
    case MY_ENUM:
    case MY_SET: {
        uint8_t first = cdcd_cur_u8(c);
        resolve_string(col, first, cdcd_cur_u8(c));
        break;
    }
    case MY_TYPED_ARRAY: { /* the type of its elements, and their metadata */
        struct my_map_column element = {.type = cdcd_cur_u8(c)};
        if (element.type != MY_TYPED_ARRAY)
            read_meta(c, &element);
        break;
    }
    default: break;
    }
}

/* ---- optional metadata ---- */

typedef bool column_test(const struct my_map_column *c);

static void read_signs(struct my_table_map *m, struct cdcd_cursor *c)
{
    uint32_t n = 0;
    uint8_t bits = 0;

    for (uint32_t i = 0; i < m->ncolumns && !c->bad; i++) {
        struct my_map_column *col = &m->columns[i];
        if (!is_numeric(col))
            continue;
        if (n % 8 == 0)
            bits = cdcd_cur_u8(c);
        col->has_sign = !c->bad;
        col->unsigned_ = bits & 0x80 >> n % 8;
        n++;
    }
}

/* One collation each. */
static void read_charsets(struct my_table_map *m, struct cdcd_cursor *c, column_test *wanted)
{
    for (uint32_t i = 0; i < m->ncolumns && !c->bad; i++) {
        struct my_map_column *col = &m->columns[i];
        if (!wanted(col))
            continue;
        col->collation = (uint32_t)my_cur_lenenc(c);
        col->has_collation = !c->bad;
    }
}

/* One collation for most, then pairs: number among those columns, collation. */
static void read_default_charset(struct my_table_map *m, struct cdcd_cursor *c, column_test *wanted)
{
    uint32_t collation = (uint32_t)my_cur_lenenc(c), n = 0;
    uint64_t next = UINT64_MAX;
    uint32_t other = 0;

    for (uint32_t i = 0; i < m->ncolumns && !c->bad; i++) {
        struct my_map_column *col = &m->columns[i];
        if (!wanted(col))
            continue;
        if ((next == UINT64_MAX || next < n) && cdcd_cur_left(c)) {
            next = my_cur_lenenc(c);
            other = (uint32_t)my_cur_lenenc(c);
        }
        col->collation = next == n ? other : collation;
        col->has_collation = !c->bad;
        n++;
    }
}

static void read_names(struct my_table_map *m, struct cdcd_cursor *c)
{
    for (uint32_t i = 0; i < m->ncolumns && !c->bad; i++)
        m->columns[i].name = my_cur_lenenc_bytes(c);
    m->full = !c->bad;
}

/* m->labels has room for one label a byte of the metadata. */
static void read_labels(struct my_table_map *m, struct cdcd_cursor *c, column_test *wanted,
                        uint32_t *nlabels)
{
    for (uint32_t i = 0; i < m->ncolumns && !c->bad; i++) {
        struct my_map_column *col = &m->columns[i];
        if (!wanted(col))
            continue;
        uint64_t n = my_cur_lenenc(c);
        if (n > cdcd_cur_left(c))
            c->bad = true;
        col->first_label = *nlabels;
        for (uint64_t k = 0; k < n && !c->bad; k++)
            m->labels[(*nlabels)++] = my_cur_lenenc_bytes(c);
        col->nlabels = *nlabels - col->first_label;
    }
}

static void read_key(struct my_table_map *m, struct cdcd_cursor *c, bool prefixes,
                     struct cdcd_arena *a)
{
    size_t room = cdcd_cur_left(c);

    m->keys = cdcd_arena_alloc(a, room * sizeof *m->keys);
    m->key_prefix = cdcd_arena_alloc(a, room * sizeof *m->key_prefix);
    m->has_keys = true;
    m->nkeys = 0; /* an event may have both kinds of key, which no server writes */
    while (!c->bad && cdcd_cur_left(c)) {
        uint64_t column = my_cur_lenenc(c);
        if (column >= m->ncolumns)
            c->bad = true;
        m->keys[m->nkeys] = (uint32_t)column;
        m->key_prefix[m->nkeys++] = prefixes ? (uint32_t)my_cur_lenenc(c) : 0;
    }
}

static void read_visibility(struct my_table_map *m, struct cdcd_cursor *c)
{
    uint8_t bits = 0;

    for (uint32_t i = 0; i < m->ncolumns && !c->bad; i++) {
        if (i % 8 == 0)
            bits = cdcd_cur_u8(c);
        m->columns[i].has_visibility = !c->bad;
        m->columns[i].visible = bits & 0x80 >> i % 8;
    }
}

static void read_geometry(struct my_table_map *m, struct cdcd_cursor *c)
{
    for (uint32_t i = 0; i < m->ncolumns && !c->bad; i++) {
        if (is_geometry(&m->columns[i]) && cdcd_cur_left(c))
            m->columns[i].geometry = (uint32_t)my_cur_lenenc(c);
    }
}

static void read_dimensions(struct my_table_map *m, struct cdcd_cursor *c)
{
    for (uint32_t i = 0; i < m->ncolumns && !c->bad; i++) {
        if (is_vector(&m->columns[i]))
            m->columns[i].dimension = (uint32_t)my_cur_lenenc(c);
    }
}

static void read_option(struct my_decoder *d, unsigned type, struct cdcd_cursor *c,
                        uint32_t *nlabels)
{
    struct my_table_map *m = &d->map;
    struct cdcd_arena *a = &d->arena;
    column_test *text = d->flavor == MY_MARIADB ? is_character_mariadb : is_character;
    switch (type) {
    case OPT_SIGNEDNESS: read_signs(m, c); break;
    case OPT_DEFAULT_CHARSET: read_default_charset(m, c, text); break;
    case OPT_COLUMN_CHARSET: read_charsets(m, c, text); break;
    case OPT_COLUMN_NAME: read_names(m, c); break;
    case OPT_SET_LABELS: read_labels(m, c, is_set, nlabels); break;
    case OPT_ENUM_LABELS: read_labels(m, c, is_enum, nlabels); break;
    case OPT_GEOMETRY_TYPE: read_geometry(m, c); break;
    case OPT_SIMPLE_KEY: read_key(m, c, false, a); break;
    case OPT_PREFIX_KEY: read_key(m, c, true, a); break;
    case OPT_LABEL_DEFAULT_CHARSET: read_default_charset(m, c, is_labelled); break;
    case OPT_LABEL_COLUMN_CHARSET: read_charsets(m, c, is_labelled); break;
    case OPT_VISIBILITY: read_visibility(m, c); break;
    case OPT_VECTOR_DIMENSION: read_dimensions(m, c); break;
    default: break;
    }
}

static enum cdcd_rc read_options(struct my_decoder *d, struct my_event *e, struct cdcd_cursor *c,
                                 struct cdcd_error *err)
{
    struct my_table_map *m = &d->map;
    struct cdcd_slice fields[OPT_COUNT] = {{NULL, 0}};
    uint32_t nlabels = 0;

    while (!c->bad && cdcd_cur_left(c)) {
        uint8_t type = cdcd_cur_u8(c);
        struct cdcd_slice value = my_cur_lenenc_bytes(c);
        if (type < OPT_COUNT) /* later ones say nothing that is needed */
            fields[type] = value;
    }
    if (c->bad)
        return my_event_bad(e, err, "its optional metadata does not fit its length");
    size_t room = fields[OPT_SET_LABELS].len + fields[OPT_ENUM_LABELS].len;
    m->labels = cdcd_arena_alloc(&d->arena, room * sizeof *m->labels);
    for (unsigned i = 1; i < OPT_COUNT; i++) {
        if (!fields[i].ptr)
            continue;
        struct cdcd_cursor value = cdcd_cur(fields[i].ptr, fields[i].len);
        read_option(d, i, &value, &nlabels);
        if (value.bad)
            return my_event_bad(e, err, "its optional metadata of type %u does not fit its columns",
                                i);
    }
    return CDCD_OK;
}

/* ---- the event ---- */

static void read_columns(struct my_decoder *d, struct cdcd_cursor *c)
{
    struct my_table_map *m = &d->map;

    m->ncolumns = (uint32_t)cdcd_cur_count(c, (size_t)my_cur_lenenc(c), 1);
    m->columns = cdcd_arena_alloc(&d->arena, m->ncolumns * sizeof *m->columns);
    memset(m->columns, 0, m->ncolumns * sizeof *m->columns);
    for (uint32_t i = 0; i < m->ncolumns; i++)
        m->columns[i].type = cdcd_cur_u8(c);
    struct cdcd_slice metadata = my_cur_lenenc_bytes(c);
    struct cdcd_cursor meta = cdcd_cur(metadata.ptr, metadata.len);
    for (uint32_t i = 0; i < m->ncolumns; i++)
        read_meta(&meta, &m->columns[i]);
    const uint8_t *nulls = cdcd_cur_take(c, (m->ncolumns + 7) / 8);
    for (uint32_t i = 0; nulls && i < m->ncolumns; i++)
        m->columns[i].nullable = nulls[i / 8] >> i % 8 & 1;
    c->bad |= !cdcd_cur_end(&meta);
}

enum cdcd_rc my_decode_table_map(struct my_decoder *d, struct my_event *out, struct cdcd_error *err)
{
    struct cdcd_cursor c = cdcd_cur(out->body.ptr, out->body.len);
    struct my_table_map *m = &d->map;

    cdcd_arena_reset(&d->arena, 64 << 10);
    *m = (struct my_table_map){.raw = out->body};
    out->kind = MY_EV_TABLE_MAP;
    out->map = m;
    m->id = my_cur_table_id(d, out->type, &c);
    my_cur_u16(&c);
    m->db = cdcd_cur_bytes(&c, cdcd_cur_u8(&c));
    uint8_t nul = cdcd_cur_u8(&c);
    m->table = cdcd_cur_bytes(&c, cdcd_cur_u8(&c));
    nul |= cdcd_cur_u8(&c);
    read_columns(d, &c);
    if (c.bad || nul || m->ncolumns == 0)
        return my_event_bad(out, err, "its fields do not fit its length");
    return read_options(d, out, &c, err);
}
