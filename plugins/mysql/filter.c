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

#include <cdcd/pattern.h>

#include <stdlib.h>
#include <strings.h>

enum { DATABASE_IN, DATABASE_EX, TABLE_IN, TABLE_EX, COLUMN_IN, COLUMN_EX, LISTS };

struct my_filter {
    struct cdcd_patterns list[2][LISTS]; /* by fold: as written, without regard to case */
    int fold;
};

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
        if (cdcd_patterns_compile(lists[which].items, lists[which].option, fold,
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
    for (int i = 0; i < 2 * LISTS; i++)
        cdcd_patterns_free(&f->list[i / LISTS][i % LISTS]);
    free(f);
}

void my_filter_fold(struct my_filter *f, bool fold)
{
    f->fold = fold;
}

static bool passes(const struct my_filter *f, int include, int exclude, const char *name)
{
    const struct cdcd_patterns *list = f->list[f->fold];
    return cdcd_patterns_pass(&list[include], &list[exclude], name);
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
    const struct cdcd_patterns *list = f->list[f->fold];
    if (list[COLUMN_IN].n == 0 && list[COLUMN_EX].n == 0)
        return true;
    char *name = cdcd_xasprintf("%s.%s.%s", db, table, column);
    bool ok = passes(f, COLUMN_IN, COLUMN_EX, name);
    free(name);
    return ok;
}
