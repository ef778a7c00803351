/*
 * schema_default.c: the default of a column as a cell, from the model's text of it.
 *
 * A constant goes through the reader of the snapshot's values, so that a default and a value that
 * are the same are the same cell. What is computed counts only where it is the time of the
 * statement (the peer has the epoch there); of any other expression nothing is claimed.
 */
#include "schema.h"
#include "value.h"

#include <stdlib.h>

/* "101" -> bytes as a query returns them: big-endian, as many as the column has. */
static struct cdcd_slice bits_text(const char *digits, int32_t bits, struct cdcd_arena *a)
{
    size_t n = bits > 0 ? ((size_t)bits + 7) / 8 : 1;
    char *out = cdcd_arena_alloc(a, n);
    uint64_t v = strtoull(digits, NULL, 2);

    for (size_t i = n; i-- > 0; v >>= 8)
        out[i] = (char)v;
    return (struct cdcd_slice){out, n};
}

/* "\0" and "\\" back to bytes. */
static struct cdcd_slice bytes_text(const char *s, struct cdcd_arena *a)
{
    char *out = cdcd_arena_alloc(a, strlen(s) + 1), *w = out;

    for (; *s; s++) {
        if (*s == '\\' && s[1])
            *w++ = *++s == '0' ? 0 : *s;
        else
            *w++ = *s;
    }
    return (struct cdcd_slice){out, (size_t)(w - out)};
}

static bool is_bytes(const char *type)
{
    return strcmp(type, "BINARY") == 0 || strcmp(type, "VARBINARY") == 0 || strstr(type, "BLOB");
}

/* A literal with more fraction digits than the column is rounded by the server. */
static bool has_scale(const struct cdcd_column *c, const char *text)
{
    const char *point = strchr(text, '.');
    size_t digits = point ? strlen(point + 1) : 0;

    return digits == (size_t)(c->scale > 0 ? c->scale : 0);
}

static bool is_now(const struct my_column *model)
{
    return model->default_expr && model->default_ &&
           strncmp(model->default_, "CURRENT_TIMESTAMP", 17) == 0;
}

static bool takes_constant(enum cdcd_type type)
{
    switch (type) {
    case CDCD_T_POINT:
    case CDCD_T_GEOMETRY:
    case CDCD_T_VECTOR32: return false;
    default: return true;
    }
}

void my_column_default(struct cdcd_schema *s, struct cdcd_column *c,
                       const struct my_column_decoder *d, const struct my_column *model)
{
    struct cdcd_slice text;

    if (!model->has_default || !model->default_)
        return;
    if (is_now(model)) {
        c->has_default = c->type == CDCD_T_TIMESTAMP || c->type == CDCD_T_TIMESTAMPTZ;
        return;
    }
    if (model->default_expr || !takes_constant(c->type))
        return;
    if (c->type == CDCD_T_DECIMAL && !has_scale(c, model->default_))
        return;
    if (strcmp(model->type, "BIT") == 0)
        text = bits_text(model->default_, model->length, &s->arena);
    else if (is_bytes(model->type))
        text = bytes_text(model->default_, &s->arena);
    else
        text = cdcd_slice_str(model->default_);
    struct cdcd_cell *cell = cdcd_arena_alloc(&s->arena, sizeof *cell);
    if (my_value_text(d, c, text.ptr, text.len, &s->arena, cell, NULL) != CDCD_OK)
        return;
    c->has_default = true;
    c->default_text = cdcd_schema_strdup(s, model->default_, strlen(model->default_));
    c->default_cell = cell;
}
