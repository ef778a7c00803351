/*
 * ddl_type.c: type and attributes of a column, as both servers' grammars have them (sql_yacc.yy:
 * type, column_attribute), under the names and lengths that information_schema shows.
 */
#include "ddl.h"

#include <stdlib.h>
#include <strings.h>

/* ---- charsets by name ---- */

/* In lower case; utf8 is utf8mb3, and servers of today show it so. */
char *my_charset_canon(const char *name)
{
    bool old = strncasecmp(name, "utf8", 4) == 0 && (name[4] == 0 || name[4] == '_');
    char *s = old ? cdcd_xasprintf("utf8mb3%s", name + 4) : cdcd_xstrdup(name);

    for (char *p = s; *p; p++)
        *p = (char)(*p >= 'A' && *p <= 'Z' ? *p + 32 : *p);
    return s;
}

/* "utf8mb4_0900_ai_ci" -> "utf8mb4". MariaDB's "uca1400_ai_ci" is of several charsets: NULL. */
char *my_charset_of_collation(const char *collation)
{
    char *s = my_charset_canon(collation), *end = strchr(s, '_');

    if (end)
        *end = 0;
    if (strncmp(s, "uca", 3) == 0) {
        free(s);
        return NULL;
    }
    return s;
}

void my_collation_complete(const char *charset, char **collation)
{
    if (!charset || !*collation || strncmp(*collation, "uca", 3) != 0)
        return;
    char *whole = cdcd_xasprintf("%s_%s", charset, *collation);
    free(*collation);
    *collation = whole;
}

uint32_t my_charset_max_bytes(const char *charset)
{
    static const struct {
        const char *name;
        uint32_t bytes;
    } wide[] = {
        {"utf8mb4", 4}, {"utf8mb3", 3}, {"ucs2", 2},  {"utf16", 4},   {"utf16le", 4},
        {"utf32", 4},   {"sjis", 2},    {"cp932", 2}, {"big5", 2},    {"gbk", 2},
        {"gb2312", 2},  {"euckr", 2},   {"ujis", 3},  {"eucjpms", 3}, {"gb18030", 4},
    };

    for (size_t i = 0; charset && i < sizeof wide / sizeof *wide; i++) {
        if (strcmp(charset, wide[i].name) == 0)
            return wide[i].bytes;
    }
    return 1;
}

static void set(char **field, const char *value)
{
    char *copy = value ? cdcd_xstrdup(value) : NULL;

    free(*field);
    *field = copy;
}

const char *my_ddl_charset_name(struct my_lex *lx)
{
    my_lex_take_punct(lx, '=');
    if (my_lex_take(lx, "DEFAULT"))
        return NULL;
    if (lx->t.kind != MY_TOK_WORD && lx->t.kind != MY_TOK_NAME && lx->t.kind != MY_TOK_STRING)
        return NULL;
    char *canon = my_charset_canon(lx->t.text.ptr);
    const char *name = cdcd_arena_dup(lx->a, canon, strlen(canon));
    free(canon);
    my_lex_next(lx);
    return name;
}

/* ---- types ---- */

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

static bool read_number(struct my_lex *lx, int64_t *out)
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
    if (!read_number(lx, n))
        return false;
    if (my_lex_take_punct(lx, ',') && !read_number(lx, m))
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
    set(&def->c.type, "LONGTEXT");
    set(&def->c.charset, "utf8mb4");
    set(&def->c.collation, "utf8mb4_bin");
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
            set(&c->type, "DOUBLE");
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

static bool read_type(struct my_lex *lx, const struct my_server *server, struct my_column_def *def)
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
        set(&c->type, "TINYINT");
        c->length = 1;
        return true;
    }
    if (my_lex_take(lx, "SERIAL")) {
        set(&c->type, "BIGINT");
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
    set(&c->type, shown_name(type, server, oracle));
    if (!set_form(lx, type, server, def))
        return false;
    if (national && def->text) {
        set(&c->charset, "utf8mb3");
        def->charset_given = true;
    }
    return true;
}

/* UNSIGNED and ZEROFILL are part of the name. */
static void finish_type(struct my_column *c)
{
    if (c->zerofill)
        c->unsigned_ = true;
    char *name = cdcd_xasprintf("%s%s%s", c->type, c->unsigned_ ? " UNSIGNED" : "",
                                c->zerofill ? " ZEROFILL" : "");
    free(c->type);
    c->type = name;
}

/* ---- charset and size ---- */

static const char *text_of_size(uint64_t bytes)
{
    return bytes < 256         ? "TINYTEXT"
           : bytes < 65536     ? "TEXT"
           : bytes < 16777216u ? "MEDIUMTEXT"
                               : "LONGTEXT";
}

static const char *blob_of_size(uint64_t bytes)
{
    return bytes < 256         ? "TINYBLOB"
           : bytes < 65536     ? "BLOB"
           : bytes < 16777216u ? "MEDIUMBLOB"
                               : "LONGBLOB";
}

/* Text in the charset binary is bytes. */
static void to_bytes(struct my_column_def *def)
{
    static const char *const pairs[][2] = {
        {"CHAR", "BINARY"}, {"VARCHAR", "VARBINARY"},     {"TINYTEXT", "TINYBLOB"},
        {"TEXT", "BLOB"},   {"MEDIUMTEXT", "MEDIUMBLOB"}, {"LONGTEXT", "LONGBLOB"},
    };
    struct my_column *c = &def->c;

    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
        if (strcmp(c->type, pairs[i][0]) != 0)
            continue;
        set(&c->type, pairs[i][1]);
        set(&c->charset, NULL);
        set(&c->collation, NULL);
        def->text = false;
        if (c->default_ && !c->default_expr) {
            char *canon = my_default_canon(c, MY_TOK_STRING, cdcd_slice_str(c->default_));
            free(c->default_);
            c->default_ = canon;
        }
        return;
    }
}

/* A VARCHAR that is too long becomes text (sql_table.cc: prepare_blob_field). */
static void fit_size(struct my_column_def *def)
{
    struct my_column *c = &def->c;
    uint64_t width = my_charset_max_bytes(c->charset);

    if (def->chars >= 0 && strcmp(c->type, "TEXT") == 0)
        set(&c->type, def->chars == 0 ? "TEXT" : text_of_size((uint64_t)def->chars * width));
    if (def->chars > 0 && strcmp(c->type, "BLOB") == 0)
        set(&c->type, blob_of_size((uint64_t)def->chars));
    def->chars = -1;
    if (strcmp(c->type, "VARCHAR") == 0 && (uint64_t)c->length * width > 65535) {
        set(&c->type, text_of_size((uint64_t)c->length * width));
        c->length = -1;
    } else if (strcmp(c->type, "VARBINARY") == 0 && c->length > 65535) {
        set(&c->type, blob_of_size((uint64_t)c->length));
        c->length = -1;
    }
}

void my_ddl_column_charset(struct my_column_def *def, const char *charset, const char *collation)
{
    struct my_column *c = &def->c;

    if (def->text && !def->charset_given) {
        char *of = def->collation_given ? my_charset_of_collation(c->collation) : NULL;
        set(&c->charset, of ? of : charset);
        if (!def->collation_given)
            set(&c->collation, collation);
        free(of);
    }
    if (def->text && def->binary && c->charset) {
        free(c->collation);
        c->collation = cdcd_xasprintf("%s_bin", c->charset);
    }
    if (def->text && c->charset && strcmp(c->charset, "binary") == 0)
        to_bytes(def);
    fit_size(def);
    my_collation_complete(c->charset, &c->collation);
    if (!def->text) {
        set(&c->charset, NULL);
        set(&c->collation, NULL);
    }
}

/* A TEXT keeps room for as many characters as it may have had (Create_field's constructor). */
void my_ddl_column_convert(struct my_column *c, const char *charset, const char *collation)
{
    static const struct {
        const char *type;
        uint64_t bytes;
    } sizes[] = {
        {"TINYTEXT", 255}, {"TEXT", 65535}, {"MEDIUMTEXT", 16777215}, {"LONGTEXT", UINT32_MAX}};
    struct my_column_def def = {.chars = -1, .text = true, .charset_given = true};
    uint64_t old_width = my_charset_max_bytes(c->charset), width = my_charset_max_bytes(charset);

    if (!c->charset)
        return;
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        if (strcmp(c->type, sizes[i].type) != 0 || width == old_width)
            continue;
        set(&c->type, text_of_size(sizes[i].bytes / old_width * width));
        break;
    }
    set(&c->charset, charset);
    set(&c->collation, collation);
    def.c = *c;
    my_ddl_column_charset(&def, charset, collation);
    *c = def.c;
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
            set(&c->default_, *first ? "CURRENT_TIMESTAMP" : "0000-00-00 00:00:00");
        }
    }
    *first = false;
}

/* ---- defaults ---- */

static void add_text(struct cdcd_buf *b, struct cdcd_slice s)
{
    cdcd_buf_add(b, s.ptr, s.len);
}

static bool is_now(const struct my_lex *lx)
{
    return my_lex_is(lx, "CURRENT_TIMESTAMP") || my_lex_is(lx, "NOW") ||
           my_lex_is(lx, "LOCALTIME") || my_lex_is(lx, "LOCALTIMESTAMP");
}

/* NOW, with brackets and digits or without; the text in the server's form. */
static bool read_now(struct my_lex *lx, char **text)
{
    int64_t digits = 0;

    my_lex_next(lx);
    if (my_lex_take_punct(lx, '(')) {
        if (!my_lex_is_punct(lx, ')') && !read_number(lx, &digits))
            return false;
        if (!my_lex_take_punct(lx, ')'))
            return false;
    }
    free(*text);
    *text = digits > 0 ? cdcd_xasprintf("CURRENT_TIMESTAMP(%d)", (int)digits)
                       : cdcd_xstrdup("CURRENT_TIMESTAMP");
    return true;
}

static void set_literal(struct my_column *c, enum my_token_kind kind, struct cdcd_slice text)
{
    free(c->default_);
    c->default_ = my_default_canon(c, kind, text);
    c->has_default = true;
    if (!c->default_) { /* no form that could be a constant */
        c->default_expr = true;
        c->default_ = cdcd_xstrdup("?");
    }
}

static bool is_ascii(struct cdcd_slice s)
{
    for (size_t i = 0; i < s.len; i++) {
        if ((unsigned char)s.ptr[i] >= 0x80)
            return false;
    }
    return true;
}

/* Strings that stand side by side are one. */
static struct cdcd_slice read_string(struct my_lex *lx)
{
    struct cdcd_slice first = lx->t.text;
    struct cdcd_buf b;

    my_lex_next(lx);
    if (lx->t.kind != MY_TOK_STRING)
        return first;
    cdcd_buf_init(&b, 0);
    add_text(&b, first);
    for (; lx->t.kind == MY_TOK_STRING; my_lex_next(lx))
        add_text(&b, lx->t.text);
    struct cdcd_slice all = {cdcd_arena_dup(lx->a, b.ptr, b.len), b.len};
    cdcd_buf_free(&b);
    return all;
}

/* A literal at the lexer; false (and nothing read): it is none. */
static bool read_literal(struct my_lex *lx, struct my_column *c)
{
    struct my_lex saved = *lx;
    bool negative = false, foreign = false;

    if (my_lex_take(lx, "TRUE") || my_lex_take(lx, "FALSE")) {
        set_literal(c, MY_TOK_NUMBER, cdcd_slice_str(my_lex_is(&saved, "TRUE") ? "1" : "0"));
        return true;
    }
    if (my_lex_take_punct(lx, '-'))
        negative = true;
    else
        my_lex_take_punct(lx, '+');
    if (lx->t.kind == MY_TOK_WORD) {
        bool prefix = my_lex_is(lx, "DATE") || my_lex_is(lx, "TIME") || my_lex_is(lx, "TIMESTAMP");
        bool introducer = lx->t.text.ptr[0] == '_';
        foreign = introducer && strncasecmp(lx->t.text.ptr, "_utf8", 5) != 0;
        if (prefix || introducer)
            my_lex_next(lx);
    }
    enum my_token_kind kind = lx->t.kind;
    struct cdcd_slice text = lx->t.text;
    if (kind != MY_TOK_STRING && kind != MY_TOK_NUMBER && kind != MY_TOK_HEX &&
        kind != MY_TOK_BITS) {
        *lx = saved;
        return false;
    }
    if (kind == MY_TOK_STRING)
        text = read_string(lx);
    else
        my_lex_next(lx);
    if (negative) {
        char *s = cdcd_arena_alloc(lx->a, text.len + 2);
        s[0] = '-';
        memcpy(s + 1, text.ptr, text.len);
        text = (struct cdcd_slice){s, text.len + 1};
    }
    set_literal(c, kind, text);
    if (foreign && !is_ascii(text))
        c->default_expr = true;
    return true;
}

static bool read_default(struct my_lex *lx, struct my_column *c)
{
    const char *begin = lx->t.begin;

    c->has_default = true;
    c->default_expr = false;
    set(&c->default_, NULL);
    if (my_lex_take(lx, "NULL"))
        return true;
    if (read_literal(lx, c))
        return true;
    c->default_expr = true;
    if (is_now(lx))
        return read_now(lx, &c->default_);
    if (my_lex_is_punct(lx, '(')) {
        if (!my_lex_skip_brackets(lx))
            return false;
    } else if (my_lex_take(lx, "NEXT") || my_lex_take(lx, "PREVIOUS")) {
        const char *db = "", *name;
        if (!my_lex_take2(lx, "VALUE", "FOR") || !my_lex_qualified(lx, &db, &name))
            return false;
    } else {
        if (!my_lex_name(lx))
            return false;
        while (my_lex_take_punct(lx, '.')) {
            if (!my_lex_name(lx))
                return false;
        }
        if (my_lex_is_punct(lx, '(') && !my_lex_skip_brackets(lx))
            return false;
    }
    free(c->default_);
    c->default_ = cdcd_xstrndup(begin, (size_t)(lx->last_end - begin));
    return true;
}

bool my_ddl_default(struct my_ddl *d, struct my_column *c)
{
    return read_default(&d->lx, c);
}

/* ---- attributes ---- */

static bool read_charset_attribute(struct my_lex *lx, struct my_column_def *def, bool *took)
{
    struct my_column *c = &def->c;

    *took = true;
    if (my_lex_take(lx, "CHARSET") || my_lex_take2(lx, "CHARACTER", "SET") ||
        my_lex_take2(lx, "CHAR", "SET")) {
        const char *name = my_ddl_charset_name(lx);
        def->charset_given = name != NULL;
        set(&c->charset, name);
        if (!def->collation_given)
            set(&c->collation, NULL);
        return true;
    }
    if (my_lex_take(lx, "COLLATE")) {
        const char *name = my_ddl_charset_name(lx);
        def->collation_given = name != NULL;
        set(&c->collation, name);
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
        set(&c->charset, charset);
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
        return read_default(lx, c);
    if (my_lex_take2(lx, "ON", "UPDATE")) {
        c->on_update_now = true;
        bool ok = is_now(lx) && read_now(lx, &ignored);
        free(ignored);
        return ok;
    }
    if (my_lex_take(lx, "COMMENT")) {
        my_lex_take_punct(lx, '=');
        if (lx->t.kind != MY_TOK_STRING)
            return false;
        set(&c->comment, lx->t.text.len ? lx->t.text.ptr : NULL);
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
    if (!read_type(&d->lx, d->server, def) || !read_attributes(&d->lx, def))
        return false;
    if (strcmp(def->c.type, "LONGTEXT") != 0)
        def->c.json_alias = false;
    if (def->c.auto_increment || def->primary)
        def->c.nullable = false;
    finish_type(&def->c);
    return true;
}

/* ---- information_schema ---- */

bool my_catalog_type(struct my_column *c, const char *text, const struct my_server *server)
{
    struct my_column_def def = {.c = *c};
    struct cdcd_arena a;
    struct my_lex lx;

    cdcd_arena_init(&a, 4096);
    my_lex_begin(&lx, cdcd_slice_str(text), server->flavor, server->version, false, false, &a);
    bool ok = read_type(&lx, server, &def) && read_attributes(&lx, &def);
    if (ok)
        finish_type(&def.c);
    *c = def.c;
    cdcd_arena_free(&a);
    return ok;
}

static void bit_default(struct my_column *c, const char *text)
{
    size_t n = strlen(text);

    if (n >= 3 && text[0] == 'b' && text[1] == '\'')
        set_literal(c, MY_TOK_BITS, (struct cdcd_slice){text + 2, n - 3});
    else
        set_literal(c, MY_TOK_NUMBER, cdcd_slice_str(text));
}

/* MySQL shows a literal's value (of bytes in hex, of bits as b'..'), an expression as it is.
 * MariaDB shows both as they would stand in a statement. */
void my_catalog_default(struct my_column *c, const char *text, bool expression,
                        const struct my_server *server)
{
    struct cdcd_arena a;
    struct my_lex lx;

    if (!text)
        return;
    cdcd_arena_init(&a, 4096);
    if (server->flavor == MY_MARIADB) {
        my_lex_begin(&lx, cdcd_slice_str(text), server->flavor, server->version, false, false, &a);
        bool ok = read_default(&lx, c) && lx.t.kind == MY_TOK_END;
        /* a byte that is no UTF-8 is shown as a question mark */
        if (!ok || (strstr(c->type, "BINARY") && strchr(text, '?'))) {
            c->default_expr = true;
            set(&c->default_, text);
        }
    } else if (expression) {
        c->has_default = c->default_expr = true;
        set(&c->default_, text);
    } else if (strcmp(c->type, "BIT") == 0) {
        bit_default(c, text);
    } else if (strstr(c->type, "BINARY") && strncmp(text, "0x", 2) == 0) {
        set_literal(c, MY_TOK_HEX, cdcd_slice_str(text + 2));
    } else {
        set_literal(c, MY_TOK_STRING, cdcd_slice_str(text));
    }
    cdcd_arena_free(&a);
}
