/*
 * ddl_type.c: types of columns, as both servers' grammars have them (sql_yacc.yy: type), under the
 * names and lengths that information_schema shows.
 */
#include "ddl.h"

#include <stdlib.h>

enum form {
    F_PLAIN,
    F_INT,    /* (width), signs */
    F_DEC,    /* (p,s), signs */
    F_FLOAT,  /* (p) or (m,d), signs */
    F_DOUBLE, /* (m,d), signs */
    F_WIDTH,  /* (n), kept: BIT, YEAR, VECTOR */
    F_TIME,   /* (fraction digits) */
    F_CHAR,   /* (n), charset */
    F_BYTES,  /* (n) */
    F_TEXT,   /* charset */
    F_TEXTN,  /* (n) picks the size, charset */
    F_BLOBN,  /* (n) picks the size */
    F_LABELS, /* ('a',...), charset */
};

struct type {
    const char *word, *name;
    enum form form;
};

static const struct type types[] = {
    {"INT", "INT", F_INT},
    {"INTEGER", "INT", F_INT},
    {"INT4", "INT", F_INT},
    {"TINYINT", "TINYINT", F_INT},
    {"INT1", "TINYINT", F_INT},
    {"SMALLINT", "SMALLINT", F_INT},
    {"INT2", "SMALLINT", F_INT},
    {"MEDIUMINT", "MEDIUMINT", F_INT},
    {"INT3", "MEDIUMINT", F_INT},
    {"MIDDLEINT", "MEDIUMINT", F_INT},
    {"BIGINT", "BIGINT", F_INT},
    {"INT8", "BIGINT", F_INT},
    {"DECIMAL", "DECIMAL", F_DEC},
    {"DEC", "DECIMAL", F_DEC},
    {"NUMERIC", "DECIMAL", F_DEC},
    {"FIXED", "DECIMAL", F_DEC},
    {"NUMBER", "DECIMAL", F_DEC},
    {"FLOAT", "FLOAT", F_FLOAT},
    {"FLOAT4", "FLOAT", F_FLOAT},
    {"DOUBLE", "DOUBLE", F_DOUBLE},
    {"FLOAT8", "DOUBLE", F_DOUBLE},
    {"REAL", "DOUBLE", F_DOUBLE},
    {"BIT", "BIT", F_WIDTH},
    {"YEAR", "YEAR", F_WIDTH},
    {"DATE", "DATE", F_PLAIN},
    {"TIME", "TIME", F_TIME},
    {"DATETIME", "DATETIME", F_TIME},
    {"TIMESTAMP", "TIMESTAMP", F_TIME},
    {"CHAR", "CHAR", F_CHAR},
    {"CHARACTER", "CHAR", F_CHAR},
    {"NCHAR", "CHAR", F_CHAR},
    {"VARCHAR", "VARCHAR", F_CHAR},
    {"VARCHARACTER", "VARCHAR", F_CHAR},
    {"VARCHAR2", "VARCHAR", F_CHAR},
    {"NVARCHAR", "VARCHAR", F_CHAR},
    {"BINARY", "BINARY", F_BYTES},
    {"VARBINARY", "VARBINARY", F_BYTES},
    {"RAW", "VARBINARY", F_BYTES},
    {"TINYTEXT", "TINYTEXT", F_TEXT},
    {"TEXT", "TEXT", F_TEXTN},
    {"MEDIUMTEXT", "MEDIUMTEXT", F_TEXT},
    {"LONGTEXT", "LONGTEXT", F_TEXT},
    {"CLOB", "LONGTEXT", F_TEXT},
    {"TINYBLOB", "TINYBLOB", F_PLAIN},
    {"BLOB", "BLOB", F_BLOBN},
    {"MEDIUMBLOB", "MEDIUMBLOB", F_PLAIN},
    {"LONGBLOB", "LONGBLOB", F_PLAIN},
    {"ENUM", "ENUM", F_LABELS},
    {"SET", "SET", F_LABELS},
    {"JSON", "JSON", F_PLAIN},
    {"GEOMETRY", "GEOMETRY", F_PLAIN},
    {"POINT", "POINT", F_PLAIN},
    {"LINESTRING", "LINESTRING", F_PLAIN},
    {"POLYGON", "POLYGON", F_PLAIN},
    {"MULTIPOINT", "MULTIPOINT", F_PLAIN},
    {"MULTILINESTRING", "MULTILINESTRING", F_PLAIN},
    {"MULTIPOLYGON", "MULTIPOLYGON", F_PLAIN},
    {"GEOMETRYCOLLECTION", "GEOMETRYCOLLECTION", F_PLAIN},
    {"GEOMCOLLECTION", "GEOMETRYCOLLECTION", F_PLAIN},
    {"VECTOR", "VECTOR", F_WIDTH},
    {"UUID", "UUID", F_PLAIN},
    {"INET4", "INET4", F_PLAIN},
    {"INET6", "INET6", F_PLAIN},
    {"XMLTYPE", "XMLTYPE", F_TEXT},
};

static const struct type *find_type(const struct my_lex *lx)
{
    for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
        if (my_lex_is(lx, types[i].word))
            return &types[i];
    }
    return NULL;
}

bool my_ddl_number(struct my_lex *lx, int64_t *out)
{
    char digits[24];

    if (lx->t.kind != MY_TOK_NUMBER || lx->t.text.len >= sizeof digits)
        return false;
    memcpy(digits, lx->t.text.ptr, lx->t.text.len);
    digits[lx->t.text.len] = 0;
    *out = strtoll(digits, NULL, 10);
    my_lex_next(lx);
    return *out >= 0;
}

/* (n) or (n,m); -1 for what is not there. Oracle's (n CHAR) too. */
static bool read_lengths(struct my_lex *lx, int64_t *n, int64_t *m)
{
    *n = *m = -1;
    if (!my_lex_take_punct(lx, '('))
        return true;
    if (!my_ddl_number(lx, n))
        return false;
    if (my_lex_take_punct(lx, ',') && !my_ddl_number(lx, m))
        return false;
    (void)(my_lex_take(lx, "CHAR") || my_lex_take(lx, "BYTE"));
    return my_lex_take_punct(lx, ')');
}

static bool read_labels(struct my_lex *lx, struct my_column *c)
{
    size_t n = 0, cap = 0;

    if (!my_lex_take_punct(lx, '('))
        return false;
    do {
        if (lx->t.kind == MY_TOK_WORD && lx->t.text.ptr[0] == '_')
            my_lex_next(lx); /* an introducer */
        if (lx->t.kind != MY_TOK_STRING)
            return false;
        if (n + 1 >= cap) {
            cap = cap ? cap * 2 : 8;
            c->labels = cdcd_xrealloc(c->labels, cap * sizeof *c->labels);
        }
        /* Trailing blanks are no part of a label (sql_table.cc: prepare_enum_field). */
        size_t len = lx->t.text.len;
        while (len > 0 && lx->t.text.ptr[len - 1] == ' ')
            len--;
        c->labels[n++] = cdcd_xstrndup(lx->t.text.ptr, len);
        c->labels[n] = NULL;
        my_lex_next(lx);
    } while (my_lex_take_punct(lx, ','));
    return my_lex_take_punct(lx, ')');
}

static void to_json_alias(struct my_column_def *def)
{
    my_set_string(&def->c.type, "LONGTEXT");
    my_set_string(&def->c.charset, "utf8mb4");
    my_set_string(&def->c.collation, "utf8mb4_bin");
    def->c.json_alias = def->text = def->charset_given = def->collation_given = true;
}

static bool set_form(struct my_lex *lx, const struct type *type, const struct my_server *server,
                     struct my_column_def *def)
{
    struct my_column *c = &def->c;
    int64_t n, m;

    if (type->form == F_LABELS) {
        def->text = true;
        return read_labels(lx, c);
    }
    if (!read_lengths(lx, &n, &m))
        return false;
    switch (type->form) {
    case F_INT:
    case F_WIDTH:
        c->length = (int32_t)n;
        if (n < 0 && strcmp(c->type, "BIT") == 0)
            c->length = 1;
        if (n < 0 && strcmp(c->type, "VECTOR") == 0)
            c->length = 2048;
        break;
    case F_DEC:
        c->length = (int32_t)(n > 0 ? n : 10);
        c->scale = (int32_t)(m > 0 ? m : 0);
        break;
    case F_FLOAT:
        if (m < 0 && n > 24)
            my_set_string(&c->type, "DOUBLE");
        /* fall through */
    case F_DOUBLE:
        c->length = (int32_t)(m < 0 ? -1 : n);
        c->scale = (int32_t)m;
        break;
    case F_TIME: c->length = (int32_t)(n > 0 ? n : -1); break;
    case F_CHAR:
        def->text = true;
        /* fall through */
    case F_BYTES: c->length = (int32_t)(n < 0 ? 1 : n > INT32_MAX ? INT32_MAX : n); break;
    case F_TEXTN:
        def->chars = n;
        /* fall through */
    case F_TEXT: def->text = true; break;
    case F_BLOBN: def->chars = n; break;
    default:
        if (strcmp(type->name, "JSON") == 0 && server->flavor == MY_MARIADB)
            to_json_alias(def);
        break;
    }
    return true;
}

/* NATIONAL CHAR, NCHAR VARYING, CHARACTER VARYING, LONG VARBINARY, DOUBLE PRECISION: which type
 * comes of it; NULL: it is none of these. *national: utf8mb3. */
static const char *read_compound(struct my_lex *lx, bool *national)
{
    *national = my_lex_take(lx, "NATIONAL") || my_lex_is(lx, "NCHAR") || my_lex_is(lx, "NVARCHAR");
    if (my_lex_take(lx, "LONG")) {
        if (my_lex_take(lx, "VARBINARY"))
            return "MEDIUMBLOB";
        if (my_lex_take(lx, "CHAR") || my_lex_take(lx, "CHARACTER"))
            my_lex_take(lx, "VARYING");
        else
            (void)(my_lex_take(lx, "VARCHAR") || my_lex_take(lx, "VARCHARACTER"));
        return "MEDIUMTEXT";
    }
    if (my_lex_take2(lx, "NCHAR", "VARCHAR") || my_lex_take2(lx, "NCHAR", "VARCHARACTER") ||
        my_lex_take2(lx, "NCHAR", "VARYING") || my_lex_take2(lx, "CHAR", "VARYING") ||
        my_lex_take2(lx, "CHARACTER", "VARYING"))
        return "VARCHAR";
    if (my_lex_take2(lx, "DOUBLE", "PRECISION"))
        return "DOUBLE";
    return NULL;
}

static const struct type *type_by_name(const char *name)
{
    for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
        if (strcmp(types[i].word, name) == 0)
            return &types[i];
    }
    return NULL;
}

static const char *shown_name(const struct type *type, const struct my_server *server, bool oracle)
{
    if (oracle && strcmp(type->name, "DATE") == 0)
        return "DATETIME";
    if (server->flavor == MY_MYSQL && strcmp(type->name, "GEOMETRYCOLLECTION") == 0)
        return "GEOMCOLLECTION";
    return type->name;
}

bool my_ddl_type(struct my_lex *lx, const struct my_server *server, struct my_column_def *def)
{
    struct my_column *c = &def->c;
    bool national = false, oracle = my_lex_is(lx, "oracle_schema");

    /* mariadb_schema.date and the like: the type's own name, whatever sql_mode is. */
    struct my_token next = my_lex_peek(lx);
    if (lx->t.kind == MY_TOK_WORD && next.kind == MY_TOK_PUNCT && next.punct == '.') {
        my_lex_next(lx);
        my_lex_next(lx);
    }
    c->length = c->scale = -1;
    def->chars = -1;
    c->nullable = true;
    if (my_lex_take(lx, "BOOL") || my_lex_take(lx, "BOOLEAN")) {
        my_set_string(&c->type, "TINYINT");
        c->length = 1;
        return true;
    }
    if (my_lex_take(lx, "SERIAL")) {
        my_set_string(&c->type, "BIGINT");
        c->unsigned_ = c->auto_increment = def->unique = true;
        c->nullable = false;
        return true;
    }
    const char *compound = read_compound(lx, &national);
    const struct type *type = compound ? type_by_name(compound) : find_type(lx);
    if (!type)
        return false;
    if (!compound)
        my_lex_next(lx);
    my_set_string(&c->type, shown_name(type, server, oracle));
    if (!set_form(lx, type, server, def))
        return false;
    if (national && def->text) {
        my_set_string(&c->charset, "utf8mb3");
        def->charset_given = true;
    }
    return true;
}

/* UNSIGNED and ZEROFILL are part of the name. */
void my_ddl_type_name(struct my_column *c)
{
    if (c->zerofill)
        c->unsigned_ = true;
    char *name = cdcd_xasprintf("%s%s%s", c->type, c->unsigned_ ? " UNSIGNED" : "",
                                c->zerofill ? " ZEROFILL" : "");
    free(c->type);
    c->type = name;
}
