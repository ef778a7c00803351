/*
 * schema.h: what schema.c, schema_wire.c and schema_default.c share.
 */
#ifndef CDCD_PLUGIN_MYSQL_SCHEMA_H
#define CDCD_PLUGIN_MYSQL_SCHEMA_H

#include "table.h"

/* schema_wire.c: how the server logs a column of the model. False: its type is not known. */
bool my_wire_of(const struct my_column *c, enum my_flavor flavor, uint8_t *type, uint16_t *meta);
/* Whether a logged column can be the model's; else *why says what differs (static). full: it goes
 * by the same name, so that NULL or NOT NULL need not be the same. */
bool my_wire_fits(const struct my_map_column *map, const struct my_column *c, enum my_flavor flavor,
                  bool full, const char **why);
/* A column as far as the table map tells it: type, length, sign, charset, nullability; name and
 * labels too when they are there. Free it with my_column_free. DATA or CONFIG error: labels that
 * are not of their charset, an unknown charset. */
enum cdcd_rc my_wire_column(const struct my_table_map *map, uint32_t i, struct my_column *out,
                            struct cdcd_error *err);
/* The map alone cannot tell a UUID or an address from bytes. */
bool my_wire_ambiguous(const struct my_map_column *map, enum my_flavor flavor);

/* schema_default.c: fills in has_default, default_text and default_cell. */
void my_column_default(struct cdcd_schema *s, struct cdcd_column *c,
                       const struct my_column_decoder *d, const struct my_column *model);

#endif
