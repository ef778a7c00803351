/*
 * value.h: single values. The binlog's bytes and the snapshot's text give the same cells.
 */
#ifndef CDCD_PLUGIN_MYSQL_VALUE_H
#define CDCD_PLUGIN_MYSQL_VALUE_H

#include "binlog.h"

#include <cdcd/cursor.h>

/* values.c: one value in the binlog's form; *p moves behind it. Dispatches on d->type. A cell of
 * bytes or of text that needs no conversion points into the input: my_rows_next() copies a row
 * once and moves its cells there. */
enum cdcd_rc my_value_read(const struct my_column_decoder *d, const uint8_t **p, const uint8_t *end,
                           struct cdcd_arena *a, struct cdcd_cell *out, struct cdcd_error *err);
/* Its length without decoding it (for excluded columns). */
enum cdcd_rc my_value_skip(const struct my_column_decoder *d, const uint8_t **p, const uint8_t *end,
                           struct cdcd_error *err);
/* snapshot_value.c: one value as a query returns it in the text protocol, with utf8mb4 results,
 * time_zone +00:00; FLOAT and DOUBLE columns selected as `c*1e0` (so that FLOAT comes as a double;
 * `c+0e0` would lose the sign of zero), BIT, GEOMETRY and VECTOR as bytes. */
enum cdcd_rc my_value_text(const struct my_column_decoder *d, const struct cdcd_column *c,
                           const char *text, size_t len, struct cdcd_arena *a,
                           struct cdcd_cell *out, struct cdcd_error *err);

/* What both share (values.c, values_time.c): */
void my_cell_float(double v, bool single, struct cdcd_arena *a,
                   struct cdcd_cell *out); /* shortest */
/* False: no such day (zero, zero in date, 30 February): the caller makes a TEXT cell. */
bool my_days(int year, int month, int day, int64_t *out);
/* Enum index 0 is "", a set's bits joined with ",". */
enum cdcd_rc my_cell_enum(const struct my_column_decoder *d, uint32_t index, struct cdcd_arena *a,
                          struct cdcd_cell *out, struct cdcd_error *err);
/* srid + WKB (little endian, as MySQL stores it) -> GEOM, or for a column that is MY_POINT the LIST
 * of x and y, whose spatial reference cdcd_cell_srid() tells too. GEOM points into p. */
enum cdcd_rc my_cell_geometry(const struct my_column_decoder *d, const uint8_t *p, size_t n,
                              struct cdcd_arena *a, struct cdcd_cell *out, struct cdcd_error *err);

/* charset.c: by collation id of MySQL and MariaDB (MariaDB's 10.10+ UCA1400 ids 2048 and up too),
 * or by name. NULL in *out: UTF-8 (or ASCII) already. Binary (63) is no charset: false. Unknown:
 * CONFIG error naming the column and the id. latin1 is cp1252 with MySQL's five extra code points.
 * iconv handles are per thread or locked inside. Static data: never freed. */
enum cdcd_rc my_charset_by_collation(uint32_t collation, const struct my_charset **out,
                                     struct cdcd_error *err);
enum cdcd_rc my_charset_by_name(const char *name, const struct my_charset **out,
                                struct cdcd_error *err);
/* "utf8mb4", ...; also for binary. NULL unknown. */
const char *my_charset_name(uint32_t collation);
/* The id of a charset's default collation; 0 unknown. */
uint32_t my_charset_default_collation(const char *charset);
uint32_t my_collation_by_name(const char *collation); /* 0 unknown */
/* To UTF-8, in the arena. DATA error when the bytes are not of the charset. */
enum cdcd_rc my_charset_decode(const struct my_charset *c, const char *p, size_t n,
                               struct cdcd_arena *a, struct cdcd_slice *out,
                               struct cdcd_error *err);

/* json.c: MySQL's binary JSON -> text. No white space; numbers, opaque values and times as the
 * server's own text has them, then both ways (binlog and query) through my_json_canon, so that
 * snapshot and stream agree byte for byte. Depth and every offset are bounded. */
enum cdcd_rc my_json_text(const uint8_t *p, size_t n, struct cdcd_arena *a, struct cdcd_slice *out,
                          struct cdcd_error *err);
/* The server's JSON text (JSON column in a query) -> the same canonical text. */
enum cdcd_rc my_json_canon(const char *text, size_t n, struct cdcd_arena *a, struct cdcd_slice *out,
                           struct cdcd_error *err);
/* json_diff.c: applies the diffs of a partial update to a binary JSON document; the result is
 * canonical text. (Json_diff_vector::read_binary: operation, path, value.) */
enum cdcd_rc my_json_apply(const uint8_t *doc, size_t ndoc, const uint8_t *diffs, size_t ndiffs,
                           struct cdcd_arena *a, struct cdcd_slice *out, struct cdcd_error *err);

#endif
