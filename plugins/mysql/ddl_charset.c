/*
 * ddl_charset.c: charsets and collations by name, and what they make of a column: its type may
 * depend on how many bytes its characters have.
 */
#include "ddl.h"

#include <stdlib.h>
#include <strings.h>

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
        my_set_string(&c->type, pairs[i][1]);
        my_set_string(&c->charset, NULL);
        my_set_string(&c->collation, NULL);
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
        my_set_string(&c->type,
                      def->chars == 0 ? "TEXT" : text_of_size((uint64_t)def->chars * width));
    if (def->chars > 0 && strcmp(c->type, "BLOB") == 0)
        my_set_string(&c->type, blob_of_size((uint64_t)def->chars));
    def->chars = -1;
    if (strcmp(c->type, "VARCHAR") == 0 && (uint64_t)c->length * width > 65535) {
        my_set_string(&c->type, text_of_size((uint64_t)c->length * width));
        c->length = -1;
    } else if (strcmp(c->type, "VARBINARY") == 0 && c->length > 65535) {
        my_set_string(&c->type, blob_of_size((uint64_t)c->length));
        c->length = -1;
    }
}

void my_ddl_column_charset(struct my_column_def *def, const char *charset, const char *collation)
{
    struct my_column *c = &def->c;

    if (def->text && !def->charset_given) {
        char *of = def->collation_given ? my_charset_of_collation(c->collation) : NULL;
        my_set_string(&c->charset, of ? of : charset);
        if (!def->collation_given)
            my_set_string(&c->collation, collation);
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
        my_set_string(&c->charset, NULL);
        my_set_string(&c->collation, NULL);
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
        my_set_string(&c->type, text_of_size(sizes[i].bytes / old_width * width));
        break;
    }
    my_set_string(&c->charset, charset);
    my_set_string(&c->collation, collation);
    def.c = *c;
    my_ddl_column_charset(&def, charset, collation);
    *c = def.c;
}
