/*
 * ddl_column.c: the attributes of a column (sql_yacc.yy: column_attribute).
 */
#include "ddl.h"

#include <stdlib.h>

static bool read_charset_attribute(struct my_lex *lx, struct my_column_def *def, bool *took)
{
    struct my_column *c = &def->c;

    *took = true;
    if (my_lex_take(lx, "CHARSET") || my_lex_take2(lx, "CHARACTER", "SET") ||
        my_lex_take2(lx, "CHAR", "SET")) {
        const char *name = my_ddl_charset_name(lx);
        def->charset_given = name != NULL;
        my_set_string(&c->charset, name);
        if (!def->collation_given)
            my_set_string(&c->collation, NULL);
        return true;
    }
    if (my_lex_take(lx, "COLLATE")) {
        const char *name = my_ddl_charset_name(lx);
        def->collation_given = name != NULL;
        my_set_string(&c->collation, name);
        return true;
    }
    if (def->text && my_lex_take(lx, "BINARY")) {
        def->binary = true;
        return true;
    }
    const char *charset = !def->text                   ? NULL
                          : my_lex_take(lx, "ASCII")   ? "latin1"
                          : my_lex_take(lx, "UNICODE") ? "ucs2"
                          : my_lex_take(lx, "BYTE")    ? "binary"
                                                       : NULL;
    if (charset) {
        def->charset_given = true;
        my_set_string(&c->charset, charset);
        return true;
    }
    *took = false;
    return true;
}

static bool read_sign_attribute(struct my_lex *lx, struct my_column *c)
{
    if (my_lex_take(lx, "UNSIGNED"))
        c->unsigned_ = true;
    else if (my_lex_take(lx, "ZEROFILL"))
        c->unsigned_ = c->zerofill = true;
    else
        return my_lex_take(lx, "SIGNED");
    return true;
}

/* CHECK (json_valid(`own name`)) makes MariaDB's longtext JSON. */
static bool read_check(struct my_lex *lx, struct my_column *c)
{
    struct my_lex inner = *lx;
    const char *name;

    if (!my_lex_is_punct(lx, '(') || !my_lex_skip_brackets(lx))
        return false;
    if (my_lex_take_punct(&inner, '(') && my_lex_take(&inner, "JSON_VALID") &&
        my_lex_take_punct(&inner, '(') && (name = my_lex_name(&inner)) &&
        my_lex_take_punct(&inner, ')') && my_lex_take_punct(&inner, ')') &&
        inner.t.begin == lx->t.begin && c->name && my_name_equal(name, c->name) &&
        strcmp(c->type, "LONGTEXT") == 0 && lx->flavor == MY_MARIADB)
        c->json_alias = true;
    if (!my_lex_take2(lx, "NOT", "ENFORCED"))
        my_lex_take(lx, "ENFORCED");
    return true;
}

/* [GENERATED ALWAYS] AS (expression) or AS ROW START; at AS. */
static bool read_generated(struct my_lex *lx, struct my_column_def *def)
{
    struct my_column *c = &def->c;

    if (!my_lex_take(lx, "AS"))
        return false;
    c->generated = true;
    if (my_lex_take(lx, "ROW")) {
        c->row_start = my_lex_take(lx, "START");
        c->row_end = !c->row_start && my_lex_take(lx, "END");
        c->nullable = false;
        def->null_given = true;
        return c->row_start || c->row_end;
    }
    if (!my_lex_is_punct(lx, '(') || !my_lex_skip_brackets(lx))
        return false;
    c->virtual_ = !my_lex_take(lx, "STORED") && !my_lex_take(lx, "PERSISTENT");
    my_lex_take(lx, "VIRTUAL");
    return true;
}

static bool read_references(struct my_lex *lx)
{
    const char *db = "", *name;

    if (!my_lex_qualified(lx, &db, &name))
        return false;
    if (my_lex_is_punct(lx, '(') && !my_lex_skip_brackets(lx))
        return false;
    for (;;) {
        if (my_lex_take(lx, "MATCH")) {
            my_lex_next(lx);
        } else if (my_lex_take2(lx, "ON", "DELETE") || my_lex_take2(lx, "ON", "UPDATE")) {
            if (!my_lex_take2(lx, "SET", "NULL") && !my_lex_take2(lx, "SET", "DEFAULT") &&
                !my_lex_take2(lx, "NO", "ACTION"))
                my_lex_next(lx); /* CASCADE, RESTRICT */
        } else {
            return true;
        }
    }
}

/* Name [=] value, for what has no bearing on the shape. */
static bool skip_value(struct my_lex *lx)
{
    my_lex_take_punct(lx, '=');
    if (lx->t.kind == MY_TOK_END || lx->t.kind == MY_TOK_PUNCT)
        return false;
    my_lex_next(lx);
    return true;
}

static bool read_key_attribute(struct my_lex *lx, struct my_column_def *def, bool *took)
{
    *took = true;
    if (my_lex_take(lx, "PRIMARY")) {
        my_lex_take(lx, "KEY");
        def->primary = true;
    } else if (my_lex_take(lx, "UNIQUE")) {
        my_lex_take(lx, "KEY");
        def->unique = true;
    } else if (my_lex_take(lx, "KEY")) {
        def->primary = true;
    } else {
        *took = false;
    }
    return true;
}

static bool read_null_attribute(struct my_lex *lx, struct my_column_def *def, bool *took)
{
    struct my_column *c = &def->c;

    *took = true;
    if (my_lex_take2(lx, "NOT", "NULL")) {
        c->nullable = false;
        def->null_given = true;
    } else if (my_lex_take2(lx, "NOT", "SECONDARY")) {
        return true;
    } else if (my_lex_take(lx, "NULL")) {
        c->nullable = true;
        def->null_given = true;
    } else if (my_lex_take(lx, "AUTO_INCREMENT")) {
        c->auto_increment = true;
        c->nullable = false;
    } else if (my_lex_is(lx, "SERIAL")) { /* SERIAL DEFAULT VALUE */
        my_lex_next(lx);
        c->auto_increment = def->unique = true;
        c->nullable = false;
        return my_lex_take2(lx, "DEFAULT", "VALUE");
    } else {
        *took = false;
    }
    return true;
}

static bool read_other_attribute(struct my_lex *lx, struct my_column_def *def)
{
    struct my_column *c = &def->c;
    char *ignored = NULL;

    if (my_lex_take(lx, "DEFAULT"))
        return my_ddl_default(lx, c);
    if (my_lex_take2(lx, "ON", "UPDATE")) {
        c->on_update_now = true;
        bool ok = my_ddl_is_now(lx) && my_ddl_now(lx, &ignored);
        free(ignored);
        return ok;
    }
    if (my_lex_take(lx, "COMMENT")) {
        my_lex_take_punct(lx, '=');
        if (lx->t.kind != MY_TOK_STRING)
            return false;
        my_set_string(&c->comment, lx->t.text.len ? lx->t.text.ptr : NULL);
        my_lex_next(lx);
        return true;
    }
    if (my_lex_take2(lx, "GENERATED", "ALWAYS") || my_lex_is(lx, "AS"))
        return read_generated(lx, def);
    if (my_lex_take(lx, "REFERENCES"))
        return read_references(lx);
    if (my_lex_take(lx, "CONSTRAINT")) {
        if (!my_lex_is(lx, "CHECK") && !my_lex_name(lx))
            return false;
        return my_lex_take(lx, "CHECK") ? read_check(lx, c)
                                        : my_lex_take(lx, "REFERENCES") && read_references(lx);
    }
    if (my_lex_take(lx, "CHECK"))
        return read_check(lx, c);
    if (my_lex_take(lx, "INVISIBLE")) {
        c->invisible = true;
        return true;
    }
    if (my_lex_take(lx, "VISIBLE"))
        return true;
    if (my_lex_is(lx, "WITH") || my_lex_is(lx, "WITHOUT")) {
        def->versioned = my_lex_is(lx, "WITH");
        my_lex_next(lx);
        return my_lex_take2(lx, "SYSTEM", "VERSIONING");
    }
    if (my_lex_take(lx, "COMPRESSED")) {
        c->compressed = true;
        return !my_lex_is_punct(lx, '=') || skip_value(lx);
    }
    if (my_lex_take(lx, "SRID") || my_lex_take(lx, "COLUMN_FORMAT") || my_lex_take(lx, "STORAGE") ||
        my_lex_take(lx, "ENGINE_ATTRIBUTE") || my_lex_take(lx, "SECONDARY_ENGINE_ATTRIBUTE") ||
        my_lex_take(lx, "REF_SYSTEM_ID"))
        return skip_value(lx);
    /* MariaDB: an attribute of the engine, name = value */
    struct my_token next = my_lex_peek(lx);
    if (next.kind == MY_TOK_PUNCT && next.punct == '=' && my_lex_name(lx))
        return skip_value(lx);
    return false;
}

/* The caller goes on: FIRST, AFTER, and partitions, which follow the last clause without a comma.
 */
static bool at_end_of_column(const struct my_lex *lx)
{
    return lx->t.kind == MY_TOK_END || my_lex_is_punct(lx, ',') || my_lex_is_punct(lx, ')') ||
           my_lex_is_punct(lx, ';') || my_lex_is(lx, "FIRST") || my_lex_is(lx, "AFTER") ||
           my_lex_is(lx, "PARTITION") || my_lex_is(lx, "REMOVE");
}

static bool read_attributes(struct my_lex *lx, struct my_column_def *def)
{
    while (!at_end_of_column(lx)) {
        bool took = read_sign_attribute(lx, &def->c), ok = true;
        if (!took)
            ok = read_charset_attribute(lx, def, &took);
        if (ok && !took)
            ok = read_key_attribute(lx, def, &took);
        if (ok && !took)
            ok = read_null_attribute(lx, def, &took);
        if (ok && !took)
            ok = read_other_attribute(lx, def);
        if (!ok)
            return false;
    }
    return true;
}

bool my_ddl_column(struct my_ddl *d, struct my_column_def *def)
{
    if (!my_ddl_type(&d->lx, d->server, def) || !read_attributes(&d->lx, def))
        return false;
    if (strcmp(def->c.type, "LONGTEXT") != 0)
        def->c.json_alias = false;
    if (def->c.auto_increment || def->primary)
        def->c.nullable = false;
    my_ddl_type_name(&def->c);
    return true;
}

void my_ddl_timestamp_defaults(struct my_column_def *def, const struct my_server *server,
                               bool *first)
{
    struct my_column *c = &def->c;
    bool explicit_defaults = server->flavor == MY_MYSQL || server->version >= 101000;

    if (strcmp(c->type, "TIMESTAMP") != 0 || c->generated || c->row_start || c->row_end)
        return;
    if (!explicit_defaults && !def->null_given) {
        c->nullable = false;
        if (!c->has_default && !c->on_update_now) {
            c->has_default = true;
            c->default_expr = c->on_update_now = *first;
            my_set_string(&c->default_, *first ? "CURRENT_TIMESTAMP" : "0000-00-00 00:00:00");
        }
    }
    *first = false;
}

/* ---- information_schema ---- */

bool my_catalog_type(struct my_column *c, const char *text, const struct my_server *server)
{
    struct my_column_def def = {.c = *c};
    struct cdcd_arena a;
    struct my_lex lx;

    cdcd_arena_init(&a, 4096);
    my_lex_begin(&lx, cdcd_slice_str(text), server->flavor, server->version, false, false, &a);
    bool ok = my_ddl_type(&lx, server, &def) && read_attributes(&lx, &def);
    if (ok)
        my_ddl_type_name(&def.c);
    *c = def.c;
    cdcd_arena_free(&a);
    return ok;
}
