/*
 * ddl_statement.c: what a statement of the log is, from its first words.
 */
#include "ddl.h"
#include "value.h"

#include <stdio.h>
#include <stdlib.h>

enum { UTF8_BINARY_COLLATION = 63 };

bool my_query_text(const struct my_event *query, struct cdcd_arena *a, struct cdcd_slice *out)
{
    const struct my_charset *charset = NULL;
    struct cdcd_error err;
    uint32_t id = query->query.charset_client;

    *out = query->query.text;
    if (id == 0 || id == UTF8_BINARY_COLLATION)
        return true;
    if (my_charset_by_collation(id, &charset, &err) != CDCD_OK)
        return false;
    if (!charset)
        return true;
    return my_charset_decode(charset, query->query.text.ptr, query->query.text.len, a, out, &err) ==
           CDCD_OK;
}

/* SET STATEMENT var = value, ... FOR statement: the values are looked over for FOR. */
static void skip_set_statement(struct my_lex *lx)
{
    if (!my_lex_take2(lx, "SET", "STATEMENT"))
        return;
    while (lx->t.kind != MY_TOK_END && !my_lex_take(lx, "FOR")) {
        if (!my_lex_is_punct(lx, '('))
            my_lex_next(lx);
        else if (!my_lex_skip_brackets(lx))
            return;
    }
}

static void skip_prefixes(struct my_lex *lx)
{
    skip_set_statement(lx);
    while (my_lex_take_punct(lx, '('))
        ;
}

/* ---- XA ---- */

static void put_hex(struct cdcd_buf *b, const struct my_token *t)
{
    cdcd_buf_adds(b, "X'");
    if (t->kind == MY_TOK_HEX) {
        for (size_t i = 0; i < t->text.len; i++) {
            char c = t->text.ptr[i];
            c = (char)(c >= 'A' && c <= 'F' ? c + 32 : c);
            cdcd_buf_add(b, &c, 1);
        }
    } else {
        for (size_t i = 0; i < t->text.len; i++)
            cdcd_buf_addf(b, "%02x", (unsigned char)t->text.ptr[i]);
    }
    cdcd_buf_adds(b, "'");
}

/* gtrid[, bqual[, format]] as X'..',X'..',n with small digits. */
static struct cdcd_slice read_xid(struct my_lex *lx, struct cdcd_arena *a)
{
    struct my_token empty = {.kind = MY_TOK_HEX, .text = {"", 0}};
    struct cdcd_buf b;

    cdcd_buf_init(&b, 0);
    put_hex(&b, &lx->t);
    my_lex_next(lx);
    bool more = my_lex_take_punct(lx, ',');
    cdcd_buf_adds(&b, ",");
    put_hex(&b, more ? &lx->t : &empty);
    if (more)
        my_lex_next(lx);
    if (more && my_lex_take_punct(lx, ',') && lx->t.kind == MY_TOK_NUMBER)
        cdcd_buf_addf(&b, ",%.*s", (int)lx->t.text.len, lx->t.text.ptr);
    else
        cdcd_buf_adds(&b, ",1");
    struct cdcd_slice out = {cdcd_arena_dup(a, b.ptr, b.len), b.len};
    cdcd_buf_free(&b);
    return out;
}

static void read_xa(struct my_lex *lx, struct cdcd_arena *a, struct my_statement_info *out)
{
    out->kind = my_lex_take(lx, "START") || my_lex_take(lx, "BEGIN") ? MY_ST_XA_START
                : my_lex_take(lx, "END")                             ? MY_ST_XA_END
                : my_lex_take(lx, "COMMIT")                          ? MY_ST_XA_COMMIT
                : my_lex_take(lx, "ROLLBACK")                        ? MY_ST_XA_ROLLBACK
                                                                     : MY_ST_OTHER;
    if (out->kind != MY_ST_OTHER)
        out->xid = read_xid(lx, a);
}

/* ---- rows ---- */

static void read_table(struct my_lex *lx, struct my_statement_info *out)
{
    const char *db = out->db, *name;

    if (my_lex_qualified(lx, &db, &name)) {
        out->db = db;
        out->table = name;
    }
}

static bool skip_modifiers(struct my_lex *lx)
{
    static const char *const words[] = {"LOW_PRIORITY", "HIGH_PRIORITY", "DELAYED", "QUICK",
                                        "IGNORE",       "HISTORY",       NULL};

    for (;;) {
        const char *const *w = words;
        while (*w && !my_lex_take(lx, *w))
            w++;
        if (!*w)
            return true;
    }
}

static bool is_any(const struct my_lex *lx, const char *const *words)
{
    for (; *words; words++) {
        if (my_lex_is(lx, *words))
            return true;
    }
    return false;
}

/* Behind the one table of an UPDATE or DELETE: anything else is an alias, or another table. */
static bool ends_table(const struct my_lex *lx)
{
    static const char *const words[] = {"SET",   "WHERE", "ORDER",     "LIMIT", "RETURNING",
                                        "FORCE", "USE",   "PARTITION", "FOR",   NULL};
    return lx->t.kind == MY_TOK_END || my_lex_is_punct(lx, ';') || is_any(lx, words);
}

static void read_only_table(struct my_lex *lx, struct my_statement_info *out)
{
    const char *db = out->db;

    read_table(lx, out);
    if (!ends_table(lx) && (my_lex_take(lx, "AS") || !my_lex_is(lx, "USING")))
        my_lex_name(lx);
    if (!ends_table(lx)) {
        out->db = db;
        out->table = "";
    }
}

static void read_databases(struct my_lex *lx, struct my_statement_info *out)
{
    while (lx->t.kind != MY_TOK_END) {
        const char *name = my_lex_name(lx);
        if (!name) {
            my_lex_next(lx);
        } else if (my_lex_is_punct(lx, '.')) {
            unsigned i = 0;
            while (i < out->ndatabases && i < MY_STATEMENT_DATABASES &&
                   strcmp(out->databases[i], name) != 0)
                i++;
            if (i < MY_STATEMENT_DATABASES)
                out->databases[i] = name;
            out->ndatabases += i == out->ndatabases;
        }
    }
}

/* The table that a statement changes, where it says so. */
static void read_changed_table(struct my_lex *lx, struct my_statement_info *out)
{
    if (my_lex_take(lx, "INSERT") || my_lex_take(lx, "REPLACE")) {
        skip_modifiers(lx);
        my_lex_take(lx, "INTO");
        read_table(lx, out);
    } else if (my_lex_take(lx, "UPDATE")) {
        skip_modifiers(lx);
        read_only_table(lx, out);
    } else if (my_lex_take(lx, "DELETE")) {
        skip_modifiers(lx);
        if (my_lex_take(lx, "FROM"))
            read_only_table(lx, out);
    } else if (my_lex_take(lx, "LOAD")) {
        while (lx->t.kind != MY_TOK_END && !my_lex_take2(lx, "INTO", "TABLE"))
            my_lex_next(lx);
        read_table(lx, out);
    }
}

/* ---- definitions ---- */

static bool is_create_ddl(struct my_lex *lx, bool *temporary)
{
    static const char *const words[] = {"TABLE",    "DATABASE", "SCHEMA", "INDEX",    "UNIQUE",
                                        "FULLTEXT", "SPATIAL",  "VECTOR", "SEQUENCE", NULL};

    my_lex_take2(lx, "OR", "REPLACE");
    *temporary = my_lex_take(lx, "TEMPORARY");
    if (!my_lex_take(lx, "ONLINE"))
        my_lex_take(lx, "OFFLINE");
    return is_any(lx, words);
}

static bool is_ddl(struct my_lex *lx, bool *temporary)
{
    static const char *const alters[] = {"TABLE", "DATABASE", "SCHEMA", NULL};
    static const char *const drops[] = {"TABLE", "TABLES",   "DATABASE", "SCHEMA",
                                        "INDEX", "SEQUENCE", NULL};

    *temporary = false;
    if (my_lex_take(lx, "CREATE"))
        return is_create_ddl(lx, temporary);
    if (my_lex_take(lx, "ALTER")) {
        if (!my_lex_take(lx, "ONLINE"))
            my_lex_take(lx, "OFFLINE");
        my_lex_take(lx, "IGNORE");
        return is_any(lx, alters);
    }
    if (my_lex_take(lx, "DROP")) {
        *temporary = my_lex_take(lx, "TEMPORARY");
        if (!my_lex_take(lx, "ONLINE"))
            my_lex_take(lx, "OFFLINE");
        return is_any(lx, drops);
    }
    return my_lex_take(lx, "RENAME") && (my_lex_is(lx, "TABLE") || my_lex_is(lx, "TABLES"));
}

static enum my_statement transaction_word(struct my_lex *lx)
{
    if (my_lex_is(lx, "BEGIN") || my_lex_take2(lx, "START", "TRANSACTION"))
        return MY_ST_BEGIN;
    if (my_lex_is(lx, "COMMIT"))
        return MY_ST_COMMIT;
    if (my_lex_is(lx, "SAVEPOINT") || my_lex_take2(lx, "RELEASE", "SAVEPOINT"))
        return MY_ST_SAVEPOINT;
    if (my_lex_take(lx, "ROLLBACK")) {
        my_lex_take(lx, "WORK");
        return my_lex_is(lx, "TO") ? MY_ST_ROLLBACK_TO : MY_ST_ROLLBACK;
    }
    return MY_ST_OTHER;
}

void my_statement_of(const struct my_event *query, enum my_flavor flavor, int version,
                     struct cdcd_arena *a, struct my_statement_info *out)
{
    /* A SELECT or DO is logged only for a function that changes rows. */
    static const char *const rows[] = {"INSERT", "UPDATE", "DELETE",  "REPLACE", "LOAD", "CALL",
                                       "WITH",   "SELECT", "EXECUTE", "DO",      NULL};
    struct my_lex lx;
    struct cdcd_slice text, db = query->query.db;

    *out = (struct my_statement_info){.kind = MY_ST_OTHER, .xid = {"", 0}, .table = ""};
    out->db = cdcd_arena_dup(a, db.ptr ? db.ptr : "", db.len);
    my_query_text(query, a, &text);
    my_lex_begin(&lx, text, flavor, version, query->query.sql_mode_ansi_quotes,
                 query->query.sql_mode_no_backslash, a);
    skip_prefixes(&lx);
    struct my_lex start = lx;
    if ((out->kind = transaction_word(&lx)) != MY_ST_OTHER)
        return;
    lx = start;
    if (my_lex_take(&lx, "XA")) {
        read_xa(&lx, a, out);
    } else if (is_any(&lx, rows)) {
        out->kind = MY_ST_DML;
        read_changed_table(&lx, out);
        if (!out->table[0])
            read_databases(&start, out);
    } else if (my_lex_take(&lx, "TRUNCATE")) {
        out->kind = MY_ST_TRUNCATE;
        my_lex_take(&lx, "TABLE");
        read_table(&lx, out);
    } else if (is_ddl(&lx, &out->temporary)) {
        out->kind = MY_ST_DDL;
    }
}
