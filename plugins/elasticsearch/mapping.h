/*
 * mapping.h: what mapping.c and mapping_write.c share.
 */
#ifndef CDCD_PLUGIN_ELASTICSEARCH_MAPPING_H
#define CDCD_PLUGIN_ELASTICSEARCH_MAPPING_H

#include "convert.h"
#include "sink.h"

/* The field of a column in a mapping, as JSON; static. NULL: left to the server. */
const char *es_field_json(const struct es_config *cfg, const struct es_column *c);
/* The column's name in the document, with quotes and colon. */
void es_field_name(const struct es_column *c, struct cdcd_buf *out);
/* A new index: {"settings":..,"mappings":..}, and with `alias` (ptr not NULL) that one. */
void es_mapping_body(const struct es_config *cfg, const struct es_shape *shape,
                     struct cdcd_slice alias, struct cdcd_buf *out);
/* The template for all of NAME-000001, NAME-000002, ... */
void es_template_body(const struct es_config *cfg, const struct es_shape *shape,
                      struct cdcd_slice index, bool legacy, struct cdcd_buf *out);

#endif
