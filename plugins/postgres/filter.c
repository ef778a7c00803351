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

#include <regex.h>
#include <stdlib.h>

struct regexes {
    regex_t *v;
    size_t n;
};

enum { SCHEMA_IN, SCHEMA_EX, TABLE_IN, TABLE_EX, COLUMN_IN, COLUMN_EX, LISTS };

struct pg_filter {
    struct regexes list[LISTS];
};

/* What stands for \c. Inside of brackets POSIX takes a backslash as itself. */
static void translate_escape(char c, bool bracket, struct cdcd_buf *out)
{
    if (c == 'd') {
        cdcd_buf_adds(out, bracket ? "0-9" : "[0-9]");
    } else if (c == 'D' && !bracket) {
        cdcd_buf_adds(out, "[^0-9]");
    } else if (c == 'w' && bracket) {
        cdcd_buf_adds(out, "[:alnum:]_");
    } else {
        if (!bracket)
            cdcd_buf_adds(out, "\\");
        cdcd_buf_add(out, &c, 1);
    }
}

/* ^(item)$ in POSIX terms. */
static void translate(const char *item, struct cdcd_buf *out)
{
    bool bracket = false;

    cdcd_buf_adds(out, "^(");
    for (const char *p = item; *p; p++) {
        if (*p == '\\' && p[1]) {
            translate_escape(*++p, bracket, out);
            continue;
        }
        cdcd_buf_add(out, p, 1);
        if (*p == '[' && !bracket) { /* a ']' that comes first is one of the set */
            bracket = true;
            if (p[1] == '^')
                cdcd_buf_add(out, ++p, 1);
            if (p[1] == ']')
                cdcd_buf_add(out, ++p, 1);
        } else if (*p == ']') {
            bracket = false;
        }
    }
    cdcd_buf_adds(out, ")$");
}

static enum cdcd_rc compile(const struct cdcd_strlist *items, const char *option,
                            struct regexes *out, struct cdcd_error *err)
{
    struct cdcd_buf b;
    enum cdcd_rc rc = CDCD_OK;

    cdcd_buf_init(&b, 0);
    out->v = cdcd_xcalloc(items->n ? items->n : 1, sizeof *out->v);
    for (size_t i = 0; i < items->n && rc == CDCD_OK; i++) {
        cdcd_buf_clear(&b);
        translate(items->items[i], &b);
        int e = regcomp(&out->v[i], cdcd_buf_cstr(&b), REG_EXTENDED | REG_NOSUB);
        if (e == 0) {
            out->n++;
        } else {
            char why[128];
            regerror(e, &out->v[i], why, sizeof why);
            rc = cdcd_error_set(err, CDCD_ERR_CONFIG,
                                "%s: \"%s\" is not a POSIX extended regular expression: %s", option,
                                items->items[i], why);
        }
    }
    cdcd_buf_free(&b);
    return rc;
}

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
        if (compile(lists[i].items, lists[i].option, &f->list[i], err) != CDCD_OK) {
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
    for (int i = 0; i < LISTS; i++) {
        for (size_t k = 0; k < f->list[i].n; k++)
            regfree(&f->list[i].v[k]);
        free(f->list[i].v);
    }
    free(f);
}

static bool matches(const struct regexes *list, const char *name)
{
    for (size_t i = 0; i < list->n; i++) {
        if (regexec(&list->v[i], name, 0, NULL, 0) == 0)
            return true;
    }
    return false;
}

static bool passes(const struct pg_filter *f, int include, int exclude, const char *name)
{
    return (f->list[include].n == 0 || matches(&f->list[include], name)) &&
           !matches(&f->list[exclude], name);
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
