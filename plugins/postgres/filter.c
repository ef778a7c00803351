/*
 * filter: include and exclude lists over "schema", "schema.table" and "schema.table.column".
 *
 * An item is a POSIX extended regular expression that must match the whole name, case and all, as
 * the server tells Orders from orders. \d and \D are understood too, since lists are written in the
 * habit of other tools. Names are not quoted: the table "a.b" of public is public.a.b.
 *
 * A name passes when it matches the include list, or there is none, and does not match the exclude
 * list. System schemas never pass: information_schema, and every schema that begins with pg_, which
 * the server keeps for itself (pg_catalog, pg_toast, pg_temp_3, pg_toast_temp_3).
 */
#include "types.h"

#include <cdcd/pattern.h>

#include <stdlib.h>

enum { SCHEMA_IN, SCHEMA_EX, TABLE_IN, TABLE_EX, COLUMN_IN, COLUMN_EX, LISTS };

struct pg_filter {
    struct cdcd_patterns list[LISTS];
};

enum cdcd_rc pg_filter_new(const struct pg_config *cfg, struct pg_filter **out,
                           struct cdcd_error *err)
{
    const struct {
        const struct cdcd_strlist *items;
        const char *option;
    } lists[LISTS] = {
        [SCHEMA_IN] = {&cfg->schema_include, "schema.include.list"},
        [SCHEMA_EX] = {&cfg->schema_exclude, "schema.exclude.list"},
        [TABLE_IN] = {&cfg->table_include, "table.include.list"},
        [TABLE_EX] = {&cfg->table_exclude, "table.exclude.list"},
        [COLUMN_IN] = {&cfg->column_include, "column.include.list"},
        [COLUMN_EX] = {&cfg->column_exclude, "column.exclude.list"},
    };
    struct pg_filter *f = cdcd_xcalloc(1, sizeof *f);

    for (int i = 0; i < LISTS; i++) {
        if (cdcd_patterns_compile(lists[i].items, lists[i].option, false, &f->list[i], err) !=
            CDCD_OK) {
            pg_filter_free(f);
            return CDCD_ERROR;
        }
    }
    *out = f;
    return CDCD_OK;
}

void pg_filter_free(struct pg_filter *f)
{
    if (!f)
        return;
    for (int i = 0; i < LISTS; i++)
        cdcd_patterns_free(&f->list[i]);
    free(f);
}

static bool passes(const struct pg_filter *f, int include, int exclude, const char *name)
{
    return cdcd_patterns_pass(&f->list[include], &f->list[exclude], name);
}

bool pg_filter_table(const struct pg_filter *f, const char *schema, const char *table)
{
    /* pgoutput sends pg_catalog as an empty name */
    if (*schema == '\0' || strncmp(schema, "pg_", 3) == 0 ||
        strcmp(schema, "information_schema") == 0)
        return false;
    if (!passes(f, SCHEMA_IN, SCHEMA_EX, schema))
        return false;
    char *name = cdcd_xasprintf("%s.%s", schema, table);
    bool ok = passes(f, TABLE_IN, TABLE_EX, name);
    free(name);
    return ok;
}

bool pg_filter_column(const struct pg_filter *f, const char *schema, const char *table,
                      const char *column)
{
    if (f->list[COLUMN_IN].n == 0 && f->list[COLUMN_EX].n == 0)
        return true;
    char *name = cdcd_xasprintf("%s.%s.%s", schema, table, column);
    bool ok = passes(f, COLUMN_IN, COLUMN_EX, name);
    free(name);
    return ok;
}
