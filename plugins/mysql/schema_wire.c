/*
 * schema_wire.c: columns of models as the binlog's table maps have them, and back: type code and
 * metadata (Field::binlog_type and do_save_field_metadata in field.cc of both servers; MariaDB's
 * own types in sql_type_*.h and plugin/type_*).
 */
#include "ddl.h"
#include "decoder.h"
#include "schema.h"
#include "value.h"

#include <stdio.h>
#include <stdlib.h>

enum kind {
    K_FIXED, /* metadata is `meta` */
    K_DECIMAL,
    K_BIT,
    K_TIME,    /* metadata is the fraction's digits */
    K_STRING,  /* length in bytes */
    K_VARCHAR, /* the same */
    K_ENUM,
    K_SET,
    K_VECTOR,
};

struct wire {
    const char *name; /* of the model's type, without UNSIGNED and ZEROFILL */
    uint8_t type;
    uint8_t meta;
    enum kind kind;
};

static const struct wire wires[] = {
    {"TINYINT", MY_TINY, 0, K_FIXED},
    {"SMALLINT", MY_SHORT, 0, K_FIXED},
    {"MEDIUMINT", MY_INT24, 0, K_FIXED},
    {"INT", MY_LONG, 0, K_FIXED},
    {"BIGINT", MY_LONGLONG, 0, K_FIXED},
    {"FLOAT", MY_FLOAT, 4, K_FIXED},
    {"DOUBLE", MY_DOUBLE, 8, K_FIXED},
    {"DECIMAL", MY_NEWDECIMAL, 0, K_DECIMAL},
    {"BIT", MY_BIT, 0, K_BIT},
    {"YEAR", MY_YEAR, 0, K_FIXED},
    {"DATE", MY_DATE, 0, K_FIXED},
    {"TIME", MY_TIME2, 0, K_TIME},
    {"DATETIME", MY_DATETIME2, 0, K_TIME},
    {"TIMESTAMP", MY_TIMESTAMP2, 0, K_TIME},
    {"CHAR", MY_STRING, 0, K_STRING},
    {"BINARY", MY_STRING, 0, K_STRING},
    {"VARCHAR", MY_VARCHAR, 0, K_VARCHAR},
    {"VARBINARY", MY_VARCHAR, 0, K_VARCHAR},
    {"TINYTEXT", MY_BLOB, 1, K_FIXED},
    {"TEXT", MY_BLOB, 2, K_FIXED},
    {"MEDIUMTEXT", MY_BLOB, 3, K_FIXED},
    {"LONGTEXT", MY_BLOB, 4, K_FIXED},
    {"XMLTYPE", MY_BLOB, 4, K_FIXED},
    {"TINYBLOB", MY_BLOB, 1, K_FIXED},
    {"BLOB", MY_BLOB, 2, K_FIXED},
    {"MEDIUMBLOB", MY_BLOB, 3, K_FIXED},
    {"LONGBLOB", MY_BLOB, 4, K_FIXED},
    {"ENUM", MY_ENUM, 0, K_ENUM},
    {"SET", MY_SET, 0, K_SET},
    {"JSON", MY_JSON, 4, K_FIXED},
    {"GEOMETRY", MY_GEOMETRY, 4, K_FIXED},
    {"POINT", MY_GEOMETRY, 4, K_FIXED},
    {"LINESTRING", MY_GEOMETRY, 4, K_FIXED},
    {"POLYGON", MY_GEOMETRY, 4, K_FIXED},
    {"MULTIPOINT", MY_GEOMETRY, 4, K_FIXED},
    {"MULTILINESTRING", MY_GEOMETRY, 4, K_FIXED},
    {"MULTIPOLYGON", MY_GEOMETRY, 4, K_FIXED},
    {"GEOMETRYCOLLECTION", MY_GEOMETRY, 4, K_FIXED},
    {"GEOMCOLLECTION", MY_GEOMETRY, 4, K_FIXED},
    {"VECTOR", MY_VECTOR, 4, K_VECTOR},
    {"UUID", MY_STRING, 16, K_FIXED},
    {"INET6", MY_STRING, 16, K_FIXED},
    {"INET4", MY_STRING, 4, K_FIXED},
};

static const struct wire *find(const char *type)
{
    size_t n = strcspn(type, " ");

    for (size_t i = 0; i < sizeof wires / sizeof *wires; i++) {
        if (strlen(wires[i].name) == n && memcmp(wires[i].name, type, n) == 0)
            return &wires[i];
    }
    return NULL;
}

static uint32_t count_labels(const struct my_column *c)
{
    uint32_t n = 0;

    while (c->labels && c->labels[n])
        n++;
    return n;
}

static uint16_t set_bytes(uint32_t labels)
{
    uint32_t n = (labels + 7) / 8;

    return (uint16_t)(n > 4 ? 8 : n ? n : 1);
}

bool my_wire_of(const struct my_column *c, enum my_flavor flavor, uint8_t *type, uint16_t *meta)
{
    const struct wire *w = find(c->type);
    uint32_t length = c->length > 0 ? (uint32_t)c->length : 0;

    if (!w)
        return false;
    *type = w->type;
    *meta = w->meta;
    switch (w->kind) {
    case K_FIXED:
        if (c->compressed)
            *type = MY_BLOB_COMPRESSED;
        break;
    case K_DECIMAL: *meta = (uint16_t)(length | (c->scale > 0 ? c->scale : 0) << 8); break;
    case K_BIT: *meta = (uint16_t)(length % 8 | length / 8 << 8); break;
    case K_TIME: *meta = (uint16_t)length; break;
    case K_STRING: *meta = (uint16_t)(length * my_charset_max_bytes(c->charset)); break;
    case K_VARCHAR:
        *meta = (uint16_t)(length * my_charset_max_bytes(c->charset));
        if (c->compressed) {
            *type = MY_VARCHAR_COMPRESSED;
            *meta = (uint16_t)(*meta + 1); /* the header of a compressed value */
        }
        break;
    case K_ENUM: *meta = count_labels(c) < 256 ? 1 : 2; break;
    case K_SET: *meta = set_bytes(count_labels(c)); break;
    case K_VECTOR:
        if (flavor == MY_MARIADB) { /* a VARBINARY of floats */
            *type = MY_VARCHAR;
            *meta = (uint16_t)(4 * length);
        }
        break;
    }
    return true;
}

/* ---- does a model fit ---- */

static bool same_type(uint8_t map, uint8_t want)
{
    return map == want || (want == MY_DATE && map == MY_NEWDATE) ||
           (want == MY_STRING && map == MY_VAR_STRING);
}

/* The formats from before MySQL 5.6, which MariaDB can still be told to use; they hold whole
 * seconds. */
static bool old_time(const struct my_map_column *map, const struct my_column *c, uint8_t want)
{
    return c->length <= 0 && ((want == MY_TIME2 && map->type == MY_TIME) ||
                              (want == MY_DATETIME2 && map->type == MY_DATETIME) ||
                              (want == MY_TIMESTAMP2 && map->type == MY_TIMESTAMP));
}

static bool charset_fits(const struct my_map_column *map, const struct my_column *c)
{
    const char *name = my_charset_name(map->collation);

    if (!map->has_collation || !name)
        return true;
    if (strcmp(name, "utf8") == 0)
        name = "utf8mb3";
    if (!c->charset)
        return map->collation == 63 || strcmp(c->type, "UUID") == 0 ||
               strncmp(c->type, "INET", 4) == 0 || strcmp(c->type, "VECTOR") == 0;
    return strcmp(name, c->charset) == 0;
}

static bool sign_fits(const struct my_map_column *map, const struct my_column *c)
{
    const struct wire *w = find(c->type);

    if (!map->has_sign || !w || w->type == MY_YEAR)
        return true;
    switch (w->type) {
    case MY_TINY:
    case MY_SHORT:
    case MY_INT24:
    case MY_LONG:
    case MY_LONGLONG:
    case MY_NEWDECIMAL: return map->unsigned_ == c->unsigned_;
    default: return true;
    }
}

bool my_wire_fits(const struct my_map_column *map, const struct my_column *c, enum my_flavor flavor,
                  bool full, const char **why)
{
    uint8_t type;
    uint16_t meta;

    *why = NULL;
    if (!my_wire_of(c, flavor, &type, &meta))
        *why = "a type that is not known";
    else if (old_time(map, c, type))
        *why = NULL;
    else if (!same_type(map->type, type))
        *why = "another type";
    else if (map->meta != meta)
        *why = "another length";
    else if (!charset_fits(map, c))
        *why = "another character set";
    else if (!sign_fits(map, c))
        *why = "another sign";
    /* A TIMESTAMP's nullability may depend on a setting that the statement does not tell. */
    else if (!full && map->nullable != c->nullable && strcmp(c->type, "TIMESTAMP") != 0)
        *why = map->nullable ? "NULL, which the log allows" : "NOT NULL in the log";
    return *why == NULL;
}

/* ---- a column from its map ---- */

bool my_wire_ambiguous(const struct my_map_column *map, enum my_flavor flavor)
{
    return flavor == MY_MARIADB && map->type == MY_STRING && (map->meta == 16 || map->meta == 4) &&
           (!map->has_collation || map->collation == 63);
}

static const char *geometry_name(uint32_t code)
{
    static const char *const names[] = {
        "GEOMETRY",   "POINT",           "LINESTRING",   "POLYGON",
        "MULTIPOINT", "MULTILINESTRING", "MULTIPOLYGON", "GEOMETRYCOLLECTION"};

    return names[code < sizeof names / sizeof *names ? code : 0];
}

static const char *blob_name(uint16_t meta, bool text)
{
    static const char *const names[2][4] = {{"TINYBLOB", "BLOB", "MEDIUMBLOB", "LONGBLOB"},
                                            {"TINYTEXT", "TEXT", "MEDIUMTEXT", "LONGTEXT"}};

    return names[text][meta >= 1 && meta <= 4 ? meta - 1 : 3];
}

static const char *type_name(const struct my_map_column *m, bool text)
{
    switch ((enum my_column_type)m->type) {
    case MY_TINY: return "TINYINT";
    case MY_SHORT: return "SMALLINT";
    case MY_INT24: return "MEDIUMINT";
    case MY_LONG: return "INT";
    case MY_LONGLONG: return "BIGINT";
    case MY_FLOAT: return "FLOAT";
    case MY_DOUBLE: return "DOUBLE";
    case MY_DECIMAL:
    case MY_NEWDECIMAL: return "DECIMAL";
    case MY_BIT: return "BIT";
    case MY_YEAR: return "YEAR";
    case MY_DATE:
    case MY_NEWDATE: return "DATE";
    case MY_TIME:
    case MY_TIME2: return "TIME";
    case MY_DATETIME:
    case MY_DATETIME2: return "DATETIME";
    case MY_TIMESTAMP:
    case MY_TIMESTAMP2: return "TIMESTAMP";
    case MY_STRING:
    case MY_VAR_STRING: return text ? "CHAR" : "BINARY";
    case MY_VARCHAR:
    case MY_VARCHAR_COMPRESSED: return text ? "VARCHAR" : "VARBINARY";
    case MY_TINY_BLOB:
    case MY_MEDIUM_BLOB:
    case MY_LONG_BLOB:
    case MY_BLOB:
    case MY_BLOB_COMPRESSED: return blob_name(m->meta, text);
    case MY_ENUM: return "ENUM";
    case MY_SET: return "SET";
    case MY_JSON:
    case MY_TYPED_ARRAY: return "JSON";
    case MY_GEOMETRY: return geometry_name(m->geometry);
    case MY_VECTOR: return "VECTOR";
    case MY_NULL: break;
    }
    return NULL;
}

static void set_lengths(const struct my_map_column *m, struct my_column *c)
{
    uint32_t width = my_charset_max_bytes(c->charset);

    switch ((enum my_column_type)m->type) {
    case MY_NEWDECIMAL:
        c->length = m->meta & 0xff;
        c->scale = m->meta >> 8;
        break;
    case MY_BIT: c->length = (m->meta >> 8) * 8 + (m->meta & 0xff); break;
    case MY_TIME2:
    case MY_DATETIME2:
    case MY_TIMESTAMP2: c->length = m->meta > 0 ? m->meta : -1; break;
    case MY_STRING:
    case MY_VAR_STRING:
    case MY_VARCHAR:
    case MY_VARCHAR_COMPRESSED: c->length = (int32_t)(m->meta / width); break;
    case MY_VECTOR: c->length = (int32_t)m->dimension; break;
    default: break;
    }
}

static enum cdcd_rc read_labels(const struct my_table_map *map, const struct my_map_column *m,
                                struct my_column *c, struct cdcd_error *err)
{
    const struct my_charset *charset = NULL;
    struct cdcd_arena a;
    enum cdcd_rc rc = CDCD_OK;

    if (m->has_collation && m->collation != 63 &&
        my_charset_by_collation(m->collation, &charset, err) != CDCD_OK)
        return CDCD_ERROR;
    cdcd_arena_init(&a, 1024);
    c->labels = cdcd_xcalloc(m->nlabels + 1, sizeof *c->labels);
    for (uint32_t i = 0; rc == CDCD_OK && i < m->nlabels; i++) {
        struct cdcd_slice s = map->labels[m->first_label + i];
        if (charset)
            rc = my_charset_decode(charset, s.ptr, s.len, &a, &s, err);
        if (rc == CDCD_OK)
            c->labels[i] = cdcd_xstrndup(s.len ? s.ptr : "", s.len);
    }
    cdcd_arena_free(&a);
    return rc;
}

enum cdcd_rc my_wire_column(const struct my_table_map *map, uint32_t i, struct my_column *out,
                            struct cdcd_error *err)
{
    const struct my_map_column *m = &map->columns[i];
    const char *charset = m->has_collation ? my_charset_name(m->collation) : NULL;
    bool labelled = m->type == MY_ENUM || m->type == MY_SET;
    bool text = charset && (labelled || m->collation != 63);
    const char *type = type_name(m, text);

    *out = (struct my_column){.length = -1, .scale = -1, .nullable = m->nullable};
    if (!type)
        return cdcd_error_set(err, CDCD_ERR_FATAL,
                              "column %u of table %.*s.%.*s is logged with the type %u, which is "
                              "not known",
                              i + 1, (int)map->db.len, map->db.ptr, (int)map->table.len,
                              map->table.ptr, m->type);
    out->name = m->name.ptr ? cdcd_xstrndup(m->name.ptr, m->name.len) : NULL;
    out->unsigned_ = m->has_sign && m->unsigned_ && m->type != MY_YEAR;
    out->type = cdcd_xasprintf("%s%s", type, out->unsigned_ ? " UNSIGNED" : "");
    out->charset = text ? my_charset_canon(charset) : NULL;
    out->compressed = m->type == MY_BLOB_COMPRESSED || m->type == MY_VARCHAR_COMPRESSED;
    set_lengths(m, out);
    return labelled ? read_labels(map, m, out, err) : CDCD_OK;
}
