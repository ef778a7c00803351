/*
 * filter.h: between filter.c and fields.c.
 */
#ifndef CDCD_PLUGIN_MONGODB_FILTER_H
#define CDCD_PLUGIN_MONGODB_FILTER_H

#include "mg.h"

struct mg_field_rules;
/* `list` is borrowed for the life of the rules. CONFIG error: an item has no path. */
enum cdcd_rc mg_field_rules_new(const struct cdcd_strlist *list, struct mg_field_rules **out,
                                struct cdcd_error *err);
void mg_field_rules_free(struct mg_field_rules *r);
/* What is left out in that collection, or NULL. Owned by the rules, and the same for collections
 * of which the same is left out. One thread at a time; what it gives may be used by any. */
const struct mg_fields *mg_field_rules_get(struct mg_field_rules *r, struct cdcd_slice db,
                                           struct cdcd_slice collection);

#endif
