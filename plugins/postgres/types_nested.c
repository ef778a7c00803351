/*
 * types_nested: values made of values: arrays, hstore, points, pgvector's vectors.
 *
 * The text of an array (array_out):
 *
 *   [lower:upper][..]={..}   bounds only where a lower bound is not 1
 *   {element,element}        separated by the element type's delimiter
 *   {{..},{..}}              more dimensions
 *   NULL                     unquoted: no value; "NULL" is a text
 *   "a \"b\" \\"             quoted where it has to be, with backslash escapes
 */
#include "types.h"

#define MAX_DIMENSIONS 6 /* MAXDIM of the server */

struct cdcd_cell *pg_cells_add(struct pg_cells *l)
{
    if (l->n == l->cap) {
        size_t cap = l->cap ? l->cap * 2 : 4;
        struct cdcd_cell *v = cdcd_arena_alloc(l->arena, cap * sizeof *v);
        if (l->n)
            memcpy(v, l->v, l->n * sizeof *v);
        l->v = v;
        l->cap = cap;
    }
    return &l->v[l->n++];
}

static struct cdcd_cell cells_list(const struct pg_cells *l, enum cdcd_cell_kind kind)
{
    return (struct cdcd_cell){.kind = (uint8_t)kind, .len = (uint32_t)l->n, .cells = l->v};
}

struct text {
    const char *p, *end;
};

static bool take(struct text *t, char c)
{
    if (t->p == t->end || *t->p != c)
        return false;
    t->p++;
    return true;
}

/* A text in double quotes with backslash escapes; t->p is behind the opening quote. Without an
 * escape *out points into the text. */
static bool read_quoted(struct text *t, struct cdcd_arena *a, struct cdcd_slice *out)
{
    const char *start = t->p;
    bool escapes = false;

    while (t->p < t->end && *t->p != '"') {
        if (*t->p == '\\') {
            escapes = true;
            t->p++;
            if (t->p == t->end)
                return false;
        }
        t->p++;
    }
    *out = (struct cdcd_slice){start, (size_t)(t->p - start)};
    if (!take(t, '"'))
        return false;
    if (!escapes)
        return true;
    char *s = cdcd_arena_alloc(a, out->len), *w = s;
    for (size_t i = 0; i < out->len; i++) {
        if (start[i] == '\\')
            i++;
        *w++ = start[i];
    }
    *out = (struct cdcd_slice){s, (size_t)(w - s)};
    return true;
}

/* ---- arrays ---- */

struct array {
    const struct cdcd_column *column;
    struct text t;
    char delim;
    struct cdcd_arena *arena;
    struct cdcd_error *err;
    bool bad; /* the array's own syntax; else an element's error is in *err */
};

static enum cdcd_rc array_bad(struct array *s)
{
    s->bad = true;
    return CDCD_ERROR;
}

static bool is_null(struct cdcd_slice s)
{
    return s.len == 4 && (s.ptr[0] | 32) == 'n' && (s.ptr[1] | 32) == 'u' &&
           (s.ptr[2] | 32) == 'l' && (s.ptr[3] | 32) == 'l';
}

static enum cdcd_rc array_element(struct array *s, struct cdcd_cell *out)
{
    struct cdcd_slice text;

    if (take(&s->t, '"')) {
        if (!read_quoted(&s->t, s->arena, &text))
            return array_bad(s);
    } else {
        const char *start = s->t.p, *p = start;
        while (p < s->t.end && *p != s->delim && *p != '}') {
            if (*p == '{' || *p == '"' || *p == '\\')
                return array_bad(s);
            p++;
        }
        s->t.p = p;
        text = (struct cdcd_slice){start, (size_t)(p - start)};
        if (text.len == 0)
            return array_bad(s);
        if (is_null(text)) {
            *out = (struct cdcd_cell){.kind = CDCD_C_NULL};
            return CDCD_OK;
        }
    }
    return pg_cell_parse(s->column->elem, text.ptr, text.len, s->arena, out, s->err);
}

/* One {..}; t.p is behind the opening brace. */
static enum cdcd_rc array_level(struct array *s, int depth, struct cdcd_cell *out)
{
    struct pg_cells list = {.arena = s->arena};
    bool more = !take(&s->t, '}');

    while (more) {
        struct cdcd_cell cell;
        enum cdcd_rc rc;
        if (take(&s->t, '{'))
            rc = depth < MAX_DIMENSIONS ? array_level(s, depth + 1, &cell) : array_bad(s);
        else
            rc = array_element(s, &cell);
        if (rc != CDCD_OK)
            return rc;
        *pg_cells_add(&list) = cell;
        more = take(&s->t, s->delim);
        if (!more && !take(&s->t, '}'))
            return array_bad(s);
    }
    *out = cells_list(&list, CDCD_C_LIST);
    return CDCD_OK;
}

/* "[0:1][2:3]=": says where subscripts begin, which no consumer of a list can use. */
static bool skip_bounds(struct text *t)
{
    if (t->p == t->end || *t->p != '[')
        return true;
    while (t->p < t->end && *t->p != '=') {
        char c = *t->p++;
        if (!(c >= '0' && c <= '9') && c != '[' && c != ']' && c != ':' && c != '-' && c != '+')
            return false;
    }
    return take(t, '=');
}

enum cdcd_rc pg_parse_array(const struct cdcd_column *c, const char *p, size_t n,
                            struct cdcd_arena *a, struct cdcd_cell *out, struct cdcd_error *err)
{
    const struct pg_coltype *ct = c->source_data;
    struct array s = {.column = c,
                      .t = {p, p + n},
                      .delim = ct && ct->delim ? ct->delim : ',',
                      .arena = a,
                      .err = err};
    enum cdcd_rc rc;

    if (!c->elem || !skip_bounds(&s.t) || !take(&s.t, '{'))
        rc = array_bad(&s);
    else
        rc = array_level(&s, 1, out);
    if (rc == CDCD_OK && s.t.p != s.t.end)
        rc = array_bad(&s);
    return s.bad ? pg_cell_bad(c, p, n, err) : rc;
}

/* ---- hstore: "key"=>"value", "key"=>NULL ---- */

bool pg_parse_hstore(const char *p, size_t n, struct cdcd_arena *a, struct cdcd_cell *out)
{
    struct text t = {p, p + n};
    struct pg_cells list = {.arena = a};
    struct cdcd_slice s;

    while (t.p < t.end) {
        if (!take(&t, '"') || !read_quoted(&t, a, &s))
            return false;
        *pg_cells_add(&list) = cdcd_cell_text(s.ptr, s.len);
        if (!take(&t, '=') || !take(&t, '>'))
            return false;
        if (t.end - t.p >= 4 && memcmp(t.p, "NULL", 4) == 0) {
            t.p += 4;
            *pg_cells_add(&list) = (struct cdcd_cell){.kind = CDCD_C_NULL};
        } else if (take(&t, '"') && read_quoted(&t, a, &s)) {
            *pg_cells_add(&list) = cdcd_cell_text(s.ptr, s.len);
        } else {
            return false;
        }
        if (t.p < t.end && (!take(&t, ',') || !take(&t, ' ') || t.p == t.end))
            return false;
    }
    *out = cells_list(&list, CDCD_C_MAP);
    return true;
}

/* ---- points and vectors ---- */

/* A number up to one of the two stops, which is not taken. */
static bool read_float(struct text *t, char stop, char stop2, struct cdcd_cell *out)
{
    const char *start = t->p;

    while (t->p < t->end && *t->p != stop && *t->p != stop2)
        t->p++;
    size_t n = (size_t)(t->p - start);
    *out = (struct cdcd_cell){.kind = CDCD_C_FLOAT, .len = (uint32_t)n, .ptr = start};
    return pg_parse_float(start, n);
}

/* (x,y) */
bool pg_parse_point(const char *p, size_t n, struct cdcd_arena *a, struct cdcd_cell *out)
{
    struct text t = {p, p + n};
    struct cdcd_cell *xy = cdcd_arena_alloc(a, 2 * sizeof *xy);

    if (!take(&t, '(') || !read_float(&t, ',', ',', &xy[0]) || !take(&t, ',') ||
        !read_float(&t, ')', ')', &xy[1]) || !take(&t, ')') || t.p != t.end)
        return false;
    *out = (struct cdcd_cell){.kind = CDCD_C_LIST, .len = 2, .cells = xy};
    return true;
}

/* [1,2.5,3] */
bool pg_parse_vector(const char *p, size_t n, struct cdcd_arena *a, struct cdcd_cell *out)
{
    struct text t = {p, p + n};
    struct pg_cells list = {.arena = a};

    if (!take(&t, '['))
        return false;
    bool more = !take(&t, ']');
    while (more) {
        if (!read_float(&t, ',', ']', pg_cells_add(&list)))
            return false;
        more = take(&t, ',');
        if (!more && !take(&t, ']'))
            return false;
    }
    if (t.p != t.end)
        return false;
    *out = cells_list(&list, CDCD_C_LIST);
    return true;
}

static bool read_index(struct text *t, struct cdcd_cell *out)
{
    const char *start = t->p;
    int64_t i;

    while (t->p < t->end && *t->p >= '0' && *t->p <= '9')
        t->p++;
    if (!pg_parse_int(start, (size_t)(t->p - start), 0, INT32_MAX, &i))
        return false;
    *out = cdcd_cell_int(i);
    return true;
}

/* {1:1.5,3:2}/5 -> 5, 1, 1.5, 3, 2 */
bool pg_parse_sparsevec(const char *p, size_t n, struct cdcd_arena *a, struct cdcd_cell *out)
{
    struct text t = {p, p + n};
    struct pg_cells list = {.arena = a};

    pg_cells_add(&list);
    if (!take(&t, '{'))
        return false;
    bool more = !take(&t, '}');
    while (more) {
        if (!read_index(&t, pg_cells_add(&list)) || !take(&t, ':') ||
            !read_float(&t, ',', '}', pg_cells_add(&list)))
            return false;
        more = take(&t, ',');
        if (!more && !take(&t, '}'))
            return false;
    }
    if (!take(&t, '/') || !read_index(&t, &list.v[0]) || t.p != t.end)
        return false;
    *out = cells_list(&list, CDCD_C_LIST);
    return true;
}
