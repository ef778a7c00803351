/*
 * ddl_lex.c: SQL text -> tokens, one at a time, as both servers' lexers have it (sql_lex.cc):
 * comments are passed over; what is in a versioned comment counts when the server is new enough.
 */
#include "ddl.h"

#include <ctype.h>
#include <stdlib.h>
#include <strings.h>

static bool is_word_byte(char c)
{
    return isalnum((unsigned char)c) || c == '_' || c == '$' || (unsigned char)c >= 0x80;
}

static char at(const struct my_lex *lx, size_t i)
{
    return (size_t)(lx->end - lx->p) > i ? lx->p[i] : 0;
}

/* ---- comments ---- */

/* Behind the end of a comment; another one within it is counted. */
static void skip_comment(struct my_lex *lx)
{
    int depth = 1;

    while (lx->p < lx->end) {
        if (at(lx, 0) == '*' && at(lx, 1) == '/') {
            lx->p += 2;
            if (--depth == 0)
                return;
        } else if (at(lx, 0) == '/' && at(lx, 1) == '*') {
            lx->p += 2;
            depth++;
        } else {
            lx->p++;
        }
    }
}

static void skip_plain_comment(struct my_lex *lx)
{
    while (lx->p < lx->end && !(at(lx, 0) == '*' && at(lx, 1) == '/'))
        lx->p++;
    lx->p = lx->end - lx->p < 2 ? lx->end : lx->p + 2;
}

/* At the digits of a versioned comment, 5 or 6 of them, or none: is it executed? */
static bool takes_version(struct my_lex *lx, bool mariadb_only)
{
    int n = 0, version = 0;

    while (n < 6 && isdigit((unsigned char)at(lx, (size_t)n)))
        version = version * 10 + (at(lx, (size_t)n++) - '0');
    if (n < 5)
        return true;
    lx->p += n;
    if (lx->flavor == MY_MARIADB && !mariadb_only && version >= 50700 && version <= 99999)
        return false; /* of MySQL 5.7 and later: MariaDB leaves them out */
    return version <= lx->version;
}

/* True when something was passed over. */
static bool skip_one_comment(struct my_lex *lx)
{
    if (at(lx, 0) == '#' ||
        (at(lx, 0) == '-' && at(lx, 1) == '-' && (unsigned char)at(lx, 2) <= ' ')) {
        while (lx->p < lx->end && *lx->p != '\n')
            lx->p++;
        return true;
    }
    if (lx->executable && at(lx, 0) == '*' && at(lx, 1) == '/') {
        lx->p += 2;
        lx->executable--;
        return true;
    }
    if (at(lx, 0) != '/' || at(lx, 1) != '*')
        return false;
    bool mariadb = at(lx, 2) == 'M' && at(lx, 3) == '!';
    if (at(lx, 2) != '!' && !(mariadb && lx->flavor == MY_MARIADB)) {
        lx->p += 2;
        skip_plain_comment(lx);
        return true;
    }
    lx->p += mariadb ? 4 : 3;
    if (takes_version(lx, mariadb))
        lx->executable++;
    else
        skip_comment(lx);
    return true;
}

static void skip_blank(struct my_lex *lx)
{
    while (lx->p < lx->end) {
        if ((unsigned char)*lx->p <= ' ')
            lx->p++;
        else if (!skip_one_comment(lx))
            return;
    }
}

/* ---- tokens ---- */

static char unescape(char c)
{
    switch (c) {
    case '0': return 0;
    case 'b': return '\b';
    case 'n': return '\n';
    case 'r': return '\r';
    case 't': return '\t';
    case 'Z': return 26;
    default: return c;
    }
}

/* At the quote. A quote that does not end takes the rest. */
static void read_quoted(struct my_lex *lx, enum my_token_kind kind)
{
    char quote = *lx->p++;
    bool backslash = kind == MY_TOK_STRING && !lx->no_backslash;
    const char *start = lx->p;

    while (lx->p < lx->end) {
        if (backslash && *lx->p == '\\' && lx->p + 1 < lx->end) {
            lx->p += 2;
        } else if (*lx->p == quote) {
            if (at(lx, 1) != quote)
                break;
            lx->p += 2;
        } else {
            lx->p++;
        }
    }
    const char *stop = lx->p;
    if (lx->p < lx->end)
        lx->p++;

    char *out = cdcd_arena_alloc(lx->a, (size_t)(stop - start) + 1), *w = out;
    for (const char *p = start; p < stop; p++) {
        if (backslash && *p == '\\' && p + 1 < stop) {
            p++;
            if (*p == '%' || *p == '_') /* stay as they are, for LIKE */
                *w++ = '\\';
            *w++ = unescape(*p);
        } else {
            if (*p == quote && p + 1 < stop)
                p++;
            *w++ = *p;
        }
    }
    *w = 0;
    lx->t.kind = kind;
    lx->t.text = (struct cdcd_slice){out, (size_t)(w - out)};
}

/* x'..' and b'..': at the quote. */
static void read_digits(struct my_lex *lx, enum my_token_kind kind)
{
    const char *start = ++lx->p;

    while (lx->p < lx->end && *lx->p != '\'')
        lx->p++;
    lx->t.kind = kind;
    lx->t.text = (struct cdcd_slice){start, (size_t)(lx->p - start)};
    if (lx->p < lx->end)
        lx->p++;
}

static void set_word(struct my_lex *lx, const char *start)
{
    size_t n = (size_t)(lx->p - start);

    lx->t.kind = MY_TOK_WORD;
    lx->t.text = (struct cdcd_slice){cdcd_arena_dup(lx->a, start, n), n};
}

static void read_fraction(struct my_lex *lx)
{
    while (isdigit((unsigned char)at(lx, 0)))
        lx->p++;
    bool sign = at(lx, 1) == '-' || at(lx, 1) == '+';
    if ((at(lx, 0) == 'e' || at(lx, 0) == 'E') && isdigit((unsigned char)at(lx, sign ? 2 : 1))) {
        lx->p += sign ? 2 : 1;
        while (isdigit((unsigned char)at(lx, 0)))
            lx->p++;
    }
}

static bool all_of(const char *p, const char *end, const char *set)
{
    for (; p < end; p++) {
        if (!strchr(set, *p))
            return false;
    }
    return true;
}

/* 12, 1.5, 1e-3, 0x1f, 0b101; and names that begin with a digit. */
static void read_number(struct my_lex *lx)
{
    const char *start = lx->p;

    while (lx->p < lx->end && is_word_byte(*lx->p))
        lx->p++;
    const char *word_end = lx->p;
    bool prefixed = word_end - start > 2 && start[0] == '0';
    if (prefixed && start[1] == 'x' && all_of(start + 2, word_end, "0123456789abcdefABCDEF")) {
        lx->t.kind = MY_TOK_HEX;
        lx->t.text = (struct cdcd_slice){start + 2, (size_t)(word_end - start) - 2};
        return;
    }
    if (prefixed && start[1] == 'b' && all_of(start + 2, word_end, "01")) {
        lx->t.kind = MY_TOK_BITS;
        lx->t.text = (struct cdcd_slice){start + 2, (size_t)(word_end - start) - 2};
        return;
    }
    lx->p = start;
    while (isdigit((unsigned char)at(lx, 0)))
        lx->p++;
    if (at(lx, 0) == '.')
        lx->p++;
    read_fraction(lx);
    if (lx->p < word_end) { /* 2024_log */
        lx->p = word_end;
        set_word(lx, start);
        return;
    }
    lx->t.kind = MY_TOK_NUMBER;
    lx->t.text = (struct cdcd_slice){start, (size_t)(lx->p - start)};
}

static void read_word(struct my_lex *lx)
{
    const char *start = lx->p;
    char c = *start, quote = at(lx, 1);

    if (quote == '\'' && (c == 'x' || c == 'X' || c == 'b' || c == 'B')) {
        lx->p++;
        read_digits(lx, c == 'x' || c == 'X' ? MY_TOK_HEX : MY_TOK_BITS);
        return;
    }
    if (quote == '\'' && (c == 'n' || c == 'N')) {
        lx->p++;
        read_quoted(lx, MY_TOK_STRING);
        return;
    }
    while (lx->p < lx->end && is_word_byte(*lx->p))
        lx->p++;
    set_word(lx, start);
}

void my_lex_next(struct my_lex *lx)
{
    lx->last_end = lx->t.end;
    skip_blank(lx);
    lx->t = (struct my_token){.kind = MY_TOK_END, .begin = lx->p, .end = lx->p};
    if (lx->p >= lx->end)
        return;
    char c = *lx->p;
    bool dot = lx->after_dot;
    lx->after_dot = false;
    if (c == '`' || (c == '"' && lx->ansi_quotes)) {
        read_quoted(lx, MY_TOK_NAME);
    } else if (c == '\'' || c == '"') {
        read_quoted(lx, MY_TOK_STRING);
    } else if (isdigit((unsigned char)c) && !dot) {
        read_number(lx);
    } else if (c == '.' && isdigit((unsigned char)at(lx, 1)) && lx->t.begin != lx->last_end) {
        const char *start = lx->p++;
        read_fraction(lx);
        lx->t.kind = MY_TOK_NUMBER;
        lx->t.text = (struct cdcd_slice){start, (size_t)(lx->p - start)};
    } else if (is_word_byte(c)) {
        read_word(lx);
    } else {
        lx->t.kind = MY_TOK_PUNCT;
        lx->t.punct = c;
        lx->t.text = (struct cdcd_slice){lx->p++, 1};
        lx->after_dot = c == '.';
    }
    lx->t.end = lx->p;
}

void my_lex_begin(struct my_lex *lx, struct cdcd_slice text, enum my_flavor flavor, int version,
                  bool ansi_quotes, bool no_backslash, struct cdcd_arena *a)
{
    static const char none[1];

    *lx = (struct my_lex){
        .p = text.ptr ? text.ptr : none,
        .end = text.ptr ? text.ptr + text.len : none,
        .flavor = flavor,
        .version = version,
        .ansi_quotes = ansi_quotes,
        .no_backslash = no_backslash,
        .a = a,
    };
    my_lex_next(lx);
}

/* ---- reading ---- */

bool my_lex_is(const struct my_lex *lx, const char *word)
{
    return lx->t.kind == MY_TOK_WORD && strcasecmp(lx->t.text.ptr, word) == 0;
}

bool my_lex_is_punct(const struct my_lex *lx, char c)
{
    return lx->t.kind == MY_TOK_PUNCT && lx->t.punct == c;
}

bool my_lex_take(struct my_lex *lx, const char *word)
{
    if (!my_lex_is(lx, word))
        return false;
    my_lex_next(lx);
    return true;
}

bool my_lex_take2(struct my_lex *lx, const char *first, const char *second)
{
    if (!my_lex_is(lx, first))
        return false;
    struct my_lex saved = *lx;
    my_lex_next(lx);
    if (my_lex_take(lx, second))
        return true;
    *lx = saved;
    return false;
}

bool my_lex_take_punct(struct my_lex *lx, char c)
{
    if (!my_lex_is_punct(lx, c))
        return false;
    my_lex_next(lx);
    return true;
}

const char *my_lex_name(struct my_lex *lx)
{
    if (lx->t.kind != MY_TOK_WORD && lx->t.kind != MY_TOK_NAME)
        return NULL;
    const char *name = lx->t.text.ptr;
    my_lex_next(lx);
    return name;
}

bool my_lex_qualified(struct my_lex *lx, const char **db, const char **name)
{
    my_lex_take_punct(lx, '.'); /* .name */
    *name = my_lex_name(lx);
    if (*name && my_lex_take_punct(lx, '.')) {
        *db = *name;
        *name = my_lex_name(lx);
    }
    return *name != NULL;
}

bool my_lex_skip_brackets(struct my_lex *lx)
{
    int depth = 0;

    do {
        if (my_lex_is_punct(lx, '('))
            depth++;
        else if (my_lex_is_punct(lx, ')'))
            depth--;
        else if (lx->t.kind == MY_TOK_END)
            return false;
        my_lex_next(lx);
    } while (depth > 0);
    return true;
}

struct my_token my_lex_peek(const struct my_lex *lx)
{
    struct my_lex copy = *lx;

    my_lex_next(&copy);
    return copy.t;
}
