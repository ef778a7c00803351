/*
 * types.h: what the types_*.c files share. Nothing outside of them includes it but catalog.c
 * (column defaults) and tests.
 *
 *   types.c          the type catalogue, column types, and the dispatch of pg_cell_parse()
 *   types_scalar.c   numbers, money, booleans, bytes, bits
 *   types_time.c     dates, times, timestamps, intervals
 *   types_nested.c   arrays, hstore, points, vectors
 *   types_geom.c     geometric types and PostGIS
 *   types_default.c  column defaults
 *
 * The parsers take text that ends at a length, not at a NUL, and never read outside of it. They
 * return false when the text is not of the type, and leave the error text to pg_cell_parse().
 */
#ifndef CDCD_PLUGIN_POSTGRES_TYPES_H
#define CDCD_PLUGIN_POSTGRES_TYPES_H

#include "pg.h"

/* Object identifiers of built-in types (pg_type.dat); they never change. */
enum {
    PG_OID_BOOL = 16,
    PG_OID_BYTEA = 17,
    PG_OID_CHAR = 18,
    PG_OID_NAME = 19,
    PG_OID_INT8 = 20,
    PG_OID_INT2 = 21,
    PG_OID_INT4 = 23,
    PG_OID_TEXT = 25,
    PG_OID_OID = 26,
    PG_OID_JSON = 114,
    PG_OID_XML = 142,
    PG_OID_POINT = 600,
    PG_OID_LSEG = 601,
    PG_OID_PATH = 602,
    PG_OID_BOX = 603,
    PG_OID_POLYGON = 604,
    PG_OID_LINE = 628,
    PG_OID_FLOAT4 = 700,
    PG_OID_FLOAT8 = 701,
    PG_OID_CIRCLE = 718,
    PG_OID_MONEY = 790,
    PG_OID_BPCHAR = 1042,
    PG_OID_VARCHAR = 1043,
    PG_OID_DATE = 1082,
    PG_OID_TIME = 1083,
    PG_OID_TIMESTAMP = 1114,
    PG_OID_TIMESTAMPTZ = 1184,
    PG_OID_INTERVAL = 1186,
    PG_OID_TIMETZ = 1266,
    PG_OID_BIT = 1560,
    PG_OID_VARBIT = 1562,
    PG_OID_NUMERIC = 1700,
    PG_OID_UUID = 2950,
    PG_OID_TSVECTOR = 3614,
    PG_OID_JSONB = 3802,
    PG_OID_FIRST_USER = 16384,
};

/* cdcd_column.source_data of this plugin's columns: what the type alone does not tell. */
struct pg_coltype {
    uint32_t base; /* after domains are resolved */
    char delim;    /* ARRAY: between elements */
};

/* ---- types_scalar.c ---- */
bool pg_parse_int(const char *p, size_t n, int64_t min, int64_t max, int64_t *out);
bool pg_parse_float(const char *p, size_t n);
bool pg_parse_numeric(const char *p, size_t n);
bool pg_parse_money(const char *p, size_t n, struct cdcd_arena *a, struct cdcd_cell *out);
bool pg_parse_bytea(const char *p, size_t n, struct cdcd_arena *a, struct cdcd_cell *out);
bool pg_parse_bits(const char *p, size_t n, struct cdcd_arena *a, struct cdcd_cell *out);
bool pg_parse_uuid(const char *p, size_t n);
int pg_hex_digit(char c); /* -1 when it is none */

/* ---- types_time.c ---- */
bool pg_parse_date(const char *p, size_t n, struct cdcd_cell *out);
bool pg_parse_time(const char *p, size_t n, struct cdcd_cell *out);
bool pg_parse_timetz(const char *p, size_t n, struct cdcd_arena *a, struct cdcd_cell *out);
bool pg_parse_timestamp(const char *p, size_t n, bool zone, struct cdcd_cell *out);
bool pg_parse_interval(const char *p, size_t n, struct cdcd_arena *a, struct cdcd_cell *out);

/* ---- types_nested.c ---- */

/* A growing list of cells in an arena. */
struct pg_cells {
    struct cdcd_arena *arena;
    struct cdcd_cell *v;
    size_t n, cap;
};
struct cdcd_cell *pg_cells_add(struct pg_cells *l);
enum cdcd_rc pg_parse_array(const struct cdcd_column *c, const char *p, size_t n,
                            struct cdcd_arena *a, struct cdcd_cell *out, struct cdcd_error *err);
bool pg_parse_hstore(const char *p, size_t n, struct cdcd_arena *a, struct cdcd_cell *out);
bool pg_parse_point(const char *p, size_t n, struct cdcd_arena *a, struct cdcd_cell *out);
bool pg_parse_vector(const char *p, size_t n, struct cdcd_arena *a, struct cdcd_cell *out);
bool pg_parse_sparsevec(const char *p, size_t n, struct cdcd_arena *a, struct cdcd_cell *out);

/* ---- types_geom.c ---- */
bool pg_parse_shape(uint32_t oid, const char *p, size_t n, struct cdcd_arena *a,
                    struct cdcd_cell *out);
bool pg_parse_ewkb(const char *p, size_t n, struct cdcd_arena *a, struct cdcd_cell *out);

/* ---- types.c ---- */
/* Reads the types (and those they are made of) in one round trip; used by pg_types_get() and for
 * all the types of a relation at once. */
enum cdcd_rc pg_types_refresh(struct pg_types *t, PGconn *sql, const uint32_t *oids, size_t n,
                              struct cdcd_error *err);
/* What is known now, or NULL. */
const struct pg_type *pg_types_find(const struct pg_types *t, uint32_t oid);
/* DATA error for a value that is not of the column's type. */
enum cdcd_rc pg_cell_bad(const struct cdcd_column *c, const char *text, size_t len,
                         struct cdcd_error *err);

/* ---- types_default.c ---- */
enum pg_default {
    PG_DEFAULT_NONE,     /* NULL, or an expression of which nothing is known */
    PG_DEFAULT_CONSTANT, /* *text is set */
    PG_DEFAULT_COMPUTED, /* a function call, CURRENT_TIMESTAMP and the like */
};
/* What pg_get_expr() printed for a default. *text is in the arena or in expr. */
enum pg_default pg_default_read(struct cdcd_slice expr, struct cdcd_arena *a,
                                struct cdcd_slice *text);
/* Sets has_default, default_text and default_cell of the column. */
void pg_column_set_default(struct cdcd_schema *s, struct cdcd_column *c, struct cdcd_slice expr);

#endif
