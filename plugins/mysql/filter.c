/*
 * filter: include and exclude lists over "db", "db.table" and "db.table.column".
 *
 * An item is a POSIX extended regular expression that must match the whole name. \d and \D are
 * understood too, since lists are written in the habit of other tools. Names are not quoted: the
 * table "a.b" of shop is shop.a.b. Case counts, unless the server's lower_case_table_names says
 * that it does not for names of databases and tables.
 *
 * A name passes when it matches the include list, or there is none, and does not match the exclude
 * list. The server's own databases never pass.
 */
#include "my.h"

#include <regex.h>
#include <stdlib.h>
#include <strings.h>

struct regexes {
    regex_t *v;
    size_t n;
};

enum { DATABASE_IN, DATABASE_EX, TABLE_IN, TABLE_EX, COLUMN_IN, COLUMN_EX, LISTS };

struct my_filter {
    struct regexes list[2][LISTS]; /* by fold: as written, without regard to case */
    int fold;
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

static enum cdcd_rc compile(const struct cdcd_strlist *items, const char *option, int flags,
                            struct regexes *out, struct cdcd_error *err)
{
    struct cdcd_buf b;
    enum cdcd_rc rc = CDCD_OK;

    cdcd_buf_init(&b, 0);
    out->v = cdcd_xcalloc(items->n ? items->n : 1, sizeof *out->v);
    for (size_t i = 0; i < items->n && rc == CDCD_OK; i++) {
        cdcd_buf_clear(&b);
        translate(items->items[i], &b);
        int e = regcomp(&out->v[i], cdcd_buf_cstr(&b), REG_EXTENDED | REG_NOSUB | flags);
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

enum cdcd_rc my_filter_new(const struct my_config *cfg, struct my_filter **out,
                           struct cdcd_error *err)
{
    const struct {
        const struct cdcd_strlist *items;
        const char *option;
    } lists[LISTS] = {
        [DATABASE_IN] = {&cfg->database_include, "database.include.list"},
        [DATABASE_EX] = {&cfg->database_exclude, "database.exclude.list"},
        [TABLE_IN] = {&cfg->table_include, "table.include.list"},
        [TABLE_EX] = {&cfg->table_exclude, "table.exclude.list"},
        [COLUMN_IN] = {&cfg->column_include, "column.include.list"},
        [COLUMN_EX] = {&cfg->column_exclude, "column.exclude.list"},
    };
    struct my_filter *f = cdcd_xcalloc(1, sizeof *f);

    for (int i = 0; i < 2 * LISTS; i++) {
        int fold = i / LISTS, which = i % LISTS;
        if (compile(lists[which].items, lists[which].option, fold ? REG_ICASE : 0,
                    &f->list[fold][which], err) != CDCD_OK) {
            my_filter_free(f);
            return CDCD_ERROR;
        }
    }
    *out = f;
    return CDCD_OK;
}

void my_filter_free(struct my_filter *f)
{
    if (!f)
        return;
    for (int i = 0; i < 2 * LISTS; i++) {
        struct regexes *list = &f->list[i / LISTS][i % LISTS];
        for (size_t k = 0; k < list->n; k++)
            regfree(&list->v[k]);
        free(list->v);
    }
    free(f);
}

void my_filter_fold(struct my_filter *f, bool fold)
{
    f->fold = fold;
}

static bool matches(const struct regexes *list, const char *name)
{
    for (size_t i = 0; i < list->n; i++) {
        if (regexec(&list->v[i], name, 0, NULL, 0) == 0)
            return true;
    }
    return false;
}

static bool passes(const struct my_filter *f, int include, int exclude, const char *name)
{
    const struct regexes *list = f->list[f->fold];
    return (list[include].n == 0 || matches(&list[include], name)) &&
           !matches(&list[exclude], name);
}

static bool is_system(const char *db)
{
    static const char *const own[] = {"mysql", "sys", "information_schema", "performance_schema"};
    for (size_t i = 0; i < sizeof own / sizeof *own; i++) {
        if (strcasecmp(db, own[i]) == 0)
            return true;
    }
    return *db == '\0';
}

bool my_filter_database(const struct my_filter *f, const char *db)
{
    return !is_system(db) && passes(f, DATABASE_IN, DATABASE_EX, db);
}

bool my_filter_table(const struct my_filter *f, const char *db, const char *table)
{
    if (!my_filter_database(f, db))
        return false;
    char *name = cdcd_xasprintf("%s.%s", db, table);
    bool ok = passes(f, TABLE_IN, TABLE_EX, name);
    free(name);
    return ok;
}

bool my_filter_column(const struct my_filter *f, const char *db, const char *table,
                      const char *column)
{
    const struct regexes *list = f->list[f->fold];
    if (list[COLUMN_IN].n == 0 && list[COLUMN_EX].n == 0)
        return true;
    char *name = cdcd_xasprintf("%s.%s.%s", db, table, column);
    bool ok = passes(f, COLUMN_IN, COLUMN_EX, name);
    free(name);
    return ok;
}
