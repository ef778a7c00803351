/*
 * ddl_literal.c: what stands behind DEFAULT, in a statement and in information_schema.
 */
#include "ddl.h"

#include <stdlib.h>
#include <strings.h>

static void add_text(struct cdcd_buf *b, struct cdcd_slice s)
{
    cdcd_buf_add(b, s.ptr, s.len);
}

bool my_ddl_is_now(const struct my_lex *lx)
{
    return my_lex_is(lx, "CURRENT_TIMESTAMP") || my_lex_is(lx, "NOW") ||
           my_lex_is(lx, "LOCALTIME") || my_lex_is(lx, "LOCALTIMESTAMP");
}

/* NOW, with brackets and digits or without; the text in the server's form. */
bool my_ddl_now(struct my_lex *lx, char **text)
{
    int64_t digits = 0;

    my_lex_next(lx);
    if (my_lex_take_punct(lx, '(')) {
        if (!my_lex_is_punct(lx, ')') && !my_ddl_number(lx, &digits))
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

bool my_ddl_default(struct my_lex *lx, struct my_column *c)
{
    const char *begin = lx->t.begin;

    c->has_default = true;
    c->default_expr = false;
    my_set_string(&c->default_, NULL);
    if (my_lex_take(lx, "NULL"))
        return true;
    if (read_literal(lx, c))
        return true;
    c->default_expr = true;
    if (my_ddl_is_now(lx))
        return my_ddl_now(lx, &c->default_);
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

/* ---- information_schema ---- */

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
        bool ok = my_ddl_default(&lx, c) && lx.t.kind == MY_TOK_END;
        /* a byte that is no UTF-8 is shown as a question mark */
        if (!ok || (strstr(c->type, "BINARY") && strchr(text, '?'))) {
            c->default_expr = true;
            my_set_string(&c->default_, text);
        }
    } else if (expression) {
        c->has_default = c->default_expr = true;
        my_set_string(&c->default_, text);
    } else if (strcmp(c->type, "BIT") == 0) {
        bit_default(c, text);
    } else if (strstr(c->type, "BINARY") && strncmp(text, "0x", 2) == 0) {
        set_literal(c, MY_TOK_HEX, cdcd_slice_str(text + 2));
    } else {
        set_literal(c, MY_TOK_STRING, cdcd_slice_str(text));
    }
    cdcd_arena_free(&a);
}
