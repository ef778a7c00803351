/*
 * types_default: what is known of a column's default from the expression that pg_get_expr() prints.
 *
 * A constant is a literal with casts behind it: 5, 'x'::text, ('now'::text)::date, '-1'::integer.
 * A literal that the column's type does not take as it stands (its value comes out of the casts)
 * is no constant. Only types that have a plain form as a schema default are looked at.
 */
#include "types.h"

#include <ctype.h>
#include <strings.h>

struct text {
    const char *p, *end;
};

static void skip_space(struct text *t)
{
    while (t->p < t->end && *t->p == ' ')
        t->p++;
}

static bool take(struct text *t, const char *s)
{
    size_t n = strlen(s);

    if ((size_t)(t->end - t->p) < n || memcmp(t->p, s, n) != 0)
        return false;
    t->p += n;
    return true;
}

static bool is_word(char c)
{
    return isalnum((unsigned char)c) || c == '_' || c == '.' || (unsigned char)c >= 0x80;
}

/* 'it''s'; with standard_conforming_strings a backslash is itself. */
static bool read_string(struct text *t, struct cdcd_arena *a, struct cdcd_slice *out)
{
    char *s = cdcd_arena_alloc(a, (size_t)(t->end - t->p) + 1), *w = s;

    if (!take(t, "'"))
        return false;
    while (t->p < t->end) {
        if (*t->p == '\'') {
            t->p++;
            if (t->p == t->end || *t->p != '\'') {
                *out = (struct cdcd_slice){s, (size_t)(w - s)};
                return true;
            }
        }
        *w++ = *t->p++;
    }
    return false;
}

/* A number or a word: 5, 1.5, 1e10, true, NULL. */
static bool read_plain(struct text *t, struct cdcd_slice *out)
{
    const char *start = t->p;

    take(t, "-");
    while (t->p < t->end && is_word(*t->p))
        t->p++;
    *out = (struct cdcd_slice){start, (size_t)(t->p - start)};
    if (out->len == 0)
        return false;
    return (*start >= '0' && *start <= '9') || *start == '-' ||
           (out->len == 4 && strncasecmp(start, "true", 4) == 0) ||
           (out->len == 5 && strncasecmp(start, "false", 5) == 0) ||
           (out->len == 4 && strncasecmp(start, "NULL", 4) == 0);
}

/* The name of a type behind "::", with its modifier and brackets: no more than that is checked. */
static bool read_type(struct text *t)
{
    const char *start = t->p;

    while (t->p < t->end) {
        if (is_word(*t->p) || *t->p == ' ' || *t->p == '[' || *t->p == ']') {
            t->p++;
        } else if (*t->p == '"') {
            const char *close = memchr(t->p + 1, '"', (size_t)(t->end - t->p - 1));
            if (!close)
                return false;
            t->p = close + 1;
        } else if (*t->p == '(') {
            const char *close = memchr(t->p, ')', (size_t)(t->end - t->p));
            if (!close)
                return false;
            t->p = close + 1;
        } else {
            break;
        }
    }
    return t->p > start;
}

static bool read_constant(struct text *t, struct cdcd_arena *a, struct cdcd_slice *out, int depth)
{
    bool ok;

    skip_space(t);
    if (t->p < t->end && *t->p == '(') {
        t->p++;
        ok = depth < 16 && read_constant(t, a, out, depth + 1) && take(t, ")");
    } else if (t->p < t->end && *t->p == '\'') {
        ok = read_string(t, a, out);
    } else {
        ok = read_plain(t, out);
    }
    skip_space(t);
    while (ok && take(t, "::"))
        ok = read_type(t);
    return ok;
}

/* name(...) or (name(...) ...: the value is computed for each row. */
static bool is_call(struct cdcd_slice e)
{
    static const char *const words[] = {"CURRENT_TIMESTAMP", "CURRENT_TIME",   "CURRENT_DATE",
                                        "LOCALTIME",         "LOCALTIMESTAMP", "CURRENT_USER",
                                        "SESSION_USER",      "CURRENT_ROLE",   "USER"};
    size_t i = e.len > 0 && e.ptr[0] == '(', start = i;

    while (i < e.len && is_word(e.ptr[i]))
        i++;
    if (i == start)
        return false;
    if (i < e.len && e.ptr[i] == '(')
        return true;
    for (size_t w = 0; w < sizeof words / sizeof *words; w++) {
        if (strlen(words[w]) == i - start && strncasecmp(words[w], e.ptr + start, i - start) == 0)
            return true;
    }
    return false;
}

enum pg_default pg_default_read(struct cdcd_slice expr, struct cdcd_arena *a,
                                struct cdcd_slice *text)
{
    struct text t = {expr.ptr, expr.ptr + expr.len};

    if (read_constant(&t, a, text, 0) && t.p == t.end) {
        bool quoted = text->ptr < expr.ptr || text->ptr >= expr.ptr + expr.len;
        if (!quoted && text->len == 4 && strncasecmp(text->ptr, "NULL", 4) == 0)
            return PG_DEFAULT_NONE;
        return PG_DEFAULT_CONSTANT;
    }
    return is_call(expr) ? PG_DEFAULT_COMPUTED : PG_DEFAULT_NONE;
}

static bool takes_default(const struct cdcd_column *c)
{
    uint32_t oid = ((const struct pg_coltype *)c->source_data)->base;

    switch (c->type) {
    case CDCD_T_BOOL:
    case CDCD_T_INT16:
    case CDCD_T_INT32:
    case CDCD_T_FLOAT32:
    case CDCD_T_FLOAT64:
    case CDCD_T_DECIMAL:
    case CDCD_T_VARDECIMAL:
    case CDCD_T_BITS:
    case CDCD_T_DATE:
    case CDCD_T_TIME:
    case CDCD_T_TIMESTAMP:
    case CDCD_T_TIMESTAMPTZ:
    case CDCD_T_INTERVAL:
    case CDCD_T_UUID:
    case CDCD_T_JSON:
    case CDCD_T_XML:
    case CDCD_T_ENUM: return true;
    case CDCD_T_INT64: return oid != PG_OID_OID;
    case CDCD_T_STRING: return oid == PG_OID_TEXT || oid == PG_OID_VARCHAR || oid == PG_OID_BPCHAR;
    default: return false;
    }
}

/* numeric(10,2) DEFAULT 0 stores 0.00. A literal with more digits than the column would be rounded
 * by the server: then nothing is claimed. */
static bool pad_decimal(struct cdcd_schema *s, int32_t scale, struct cdcd_slice *text)
{
    const char *point = memchr(text->ptr, '.', text->len);
    size_t have = point ? (size_t)(text->ptr + text->len - point) - 1 : 0;

    if (!pg_parse_numeric(text->ptr, text->len) || scale < 0 || have > (size_t)scale)
        return false;
    if (have == (size_t)scale || text->ptr[text->len - 1] == 'N' || text->ptr[text->len - 1] == 'y')
        return true;
    size_t zeros = (size_t)scale - have, n = text->len + !point + zeros;
    char *p = cdcd_arena_alloc(&s->arena, n + 1), *w = p + text->len;
    memcpy(p, text->ptr, text->len);
    if (!point)
        *w++ = '.';
    memset(w, '0', zeros);
    *text = (struct cdcd_slice){p, n};
    return true;
}

/* true and false are printed bare; the text form of a value is t and f. */
static void bare_bool(struct cdcd_slice *text)
{
    if (text->len == 4 && strncasecmp(text->ptr, "true", 4) == 0)
        *text = cdcd_slice_str("t");
    else if (text->len == 5 && strncasecmp(text->ptr, "false", 5) == 0)
        *text = cdcd_slice_str("f");
}

void pg_column_set_default(struct cdcd_schema *s, struct cdcd_column *c, struct cdcd_slice expr)
{
    struct cdcd_slice text = {0};

    c->has_default = false;
    c->default_text = NULL;
    c->default_cell = NULL;
    if (!takes_default(c))
        return;
    enum pg_default kind = pg_default_read(expr, &s->arena, &text);
    if (kind == PG_DEFAULT_COMPUTED)
        c->has_default = true;
    if (kind != PG_DEFAULT_CONSTANT)
        return;
    if (c->type == CDCD_T_BOOL)
        bare_bool(&text);
    if (c->type == CDCD_T_DECIMAL && !pad_decimal(s, c->scale, &text))
        return;
    char *copy = cdcd_schema_strdup(s, text.ptr, text.len);
    struct cdcd_cell *cell = cdcd_arena_alloc(&s->arena, sizeof *cell);
    if (pg_cell_parse(c, copy, text.len, &s->arena, cell, NULL) != CDCD_OK)
        return;
    c->has_default = true;
    c->default_text = copy;
    c->default_cell = cell;
}
