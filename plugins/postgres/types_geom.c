/*
 * types_geom: the server's own shapes and PostGIS as well-known binary.
 *
 * Little-endian well-known binary (OGC 06-103r4, 8.2): byte 1; uint32 type: 2 line string,
 * 3 polygon; a line string: uint32 number of points, then x and y as doubles; a polygon: uint32
 * number of rings, each like a line string's points and closed.
 *
 *   box      (x,y),(x,y)         polygon: a ring of the four corners
 *   lseg     [(x,y),(x,y)]       line string
 *   path     [(x,y),...] open, ((x,y),...) closed: line string of the points as they are
 *   polygon  ((x,y),...)         polygon
 *
 * Circles and infinite lines have no such form and stay text.
 */
#include "types.h"

#include <stdlib.h>

struct text {
    const char *p, *end;
};

struct points {
    struct cdcd_arena *arena;
    double (*v)[2];
    size_t n, cap;
};

static bool take(struct text *t, char c)
{
    if (t->p == t->end || *t->p != c)
        return false;
    t->p++;
    return true;
}

static bool read_double(struct text *t, char stop, double *out)
{
    char s[64];
    const char *start = t->p;

    while (t->p < t->end && *t->p != stop)
        t->p++;
    size_t n = (size_t)(t->p - start);
    if (n >= sizeof s || !pg_parse_float(start, n))
        return false;
    memcpy(s, start, n);
    s[n] = '\0';
    *out = strtod(s, NULL);
    return take(t, stop);
}

static bool read_point(struct text *t, struct points *l)
{
    if (l->n == l->cap) {
        size_t cap = l->cap ? l->cap * 2 : 8;
        double(*v)[2] = cdcd_arena_alloc(l->arena, cap * sizeof *v);
        if (l->n)
            memcpy(v, l->v, l->n * sizeof *v);
        l->v = v;
        l->cap = cap;
    }
    if (!take(t, '(') || !read_double(t, ',', &l->v[l->n][0]) ||
        !read_double(t, ')', &l->v[l->n][1]))
        return false;
    l->n++;
    return true;
}

static char *put_u32(char *w, uint32_t v)
{
    for (int i = 0; i < 4; i++)
        *w++ = (char)(v >> (8 * i));
    return w;
}

static char *put_double(char *w, double d)
{
    uint64_t v;

    memcpy(&v, &d, sizeof v);
    for (int i = 0; i < 8; i++)
        *w++ = (char)(v >> (8 * i));
    return w;
}

enum { WKB_LINESTRING = 2, WKB_POLYGON = 3 };

static void put_shape(const struct points *l, uint32_t type, enum cdcd_shape shape,
                      struct cdcd_arena *a, struct cdcd_cell *out)
{
    char *s = cdcd_arena_alloc(a, 13 + l->n * 16), *w = s;

    *w++ = 1;
    w = put_u32(w, type);
    if (type == WKB_POLYGON)
        w = put_u32(w, 1);
    w = put_u32(w, (uint32_t)l->n);
    for (size_t i = 0; i < l->n; i++) {
        w = put_double(w, l->v[i][0]);
        w = put_double(w, l->v[i][1]);
    }
    *out = cdcd_cell_geom(s, (size_t)(w - s), 0, shape);
}

static bool parse_box(struct text *t, struct points *l, struct cdcd_arena *a, struct cdcd_cell *out)
{
    if (!read_point(t, l) || !take(t, ',') || !read_point(t, l) || t->p != t->end)
        return false;
    double ring[5][2];
    const double *p = l->v[0], *q = l->v[1];
    for (int i = 0; i < 5; i++) {
        ring[i][0] = i == 2 || i == 3 ? q[0] : p[0];
        ring[i][1] = i == 1 || i == 2 ? q[1] : p[1];
    }
    put_shape(&(struct points){.v = ring, .n = 5}, WKB_POLYGON, CDCD_SHAPE_BOX, a, out);
    return true;
}

/* The points of [..] or (..). */
static bool read_points(struct text *t, struct points *l, char close)
{
    do {
        if (!read_point(t, l))
            return false;
    } while (take(t, ','));
    return take(t, close) && t->p == t->end;
}

static bool parse_polygon(struct text *t, struct points *l, struct cdcd_arena *a,
                          struct cdcd_cell *out)
{
    struct text first;

    if (!take(t, '('))
        return false;
    first = *t;
    if (!read_points(t, l, ')'))
        return false;
    if (l->n >= 2 && (l->v[0][0] != l->v[l->n - 1][0] || l->v[0][1] != l->v[l->n - 1][1]) &&
        !read_point(&first, l)) /* the first one again closes the ring */
        return false;
    put_shape(l, WKB_POLYGON, CDCD_SHAPE_POLYGON, a, out);
    return true;
}

bool pg_parse_shape(uint32_t oid, const char *p, size_t n, struct cdcd_arena *a,
                    struct cdcd_cell *out)
{
    struct text t = {p, p + n};
    struct points l = {.arena = a};
    enum cdcd_shape shape = CDCD_SHAPE_LSEG;

    if (oid == PG_OID_BOX)
        return parse_box(&t, &l, a, out);
    if (oid == PG_OID_POLYGON)
        return parse_polygon(&t, &l, a, out);
    bool open = take(&t, '[');
    if (!open && !take(&t, '('))
        return false;
    if (oid == PG_OID_PATH)
        shape = open ? CDCD_SHAPE_PATH_OPEN : CDCD_SHAPE_PATH_CLOSED;
    if (!read_points(&t, &l, open ? ']' : ')'))
        return false;
    if (oid == PG_OID_LSEG && (!open || l.n != 2))
        return false;
    put_shape(&l, WKB_LINESTRING, shape, a, out);
    return true;
}

/* PostGIS prints extended well-known binary in hexadecimal: the type word may have a flag that a
 * spatial reference follows it. The bytes stay as they are; the reference is given beside them. */
bool pg_parse_ewkb(const char *p, size_t n, struct cdcd_arena *a, struct cdcd_cell *out)
{
    const uint32_t has_srid = 0x20000000;
    uint32_t word[2] = {0, 0};

    if (n % 2 || n < 10)
        return false;
    unsigned char *b = cdcd_arena_alloc(a, n / 2);
    for (size_t i = 0; i < n; i += 2) {
        int hi = pg_hex_digit(p[i]), lo = pg_hex_digit(p[i + 1]);
        if (hi < 0 || lo < 0)
            return false;
        b[i / 2] = (unsigned char)(hi << 4 | lo);
    }
    if (b[0] > 1)
        return false;
    for (size_t i = 0; i < 8 && 1 + i < n / 2; i++) {
        unsigned shift = b[0] ? 8 * (i % 4) : 24 - 8 * (i % 4);
        word[i / 4] |= (uint32_t)b[1 + i] << shift;
    }
    uint32_t srid = word[0] & has_srid ? word[1] : 0;
    if (srid > CDCD_SRID_MAX || (word[0] & has_srid && n / 2 < 9))
        return false;
    *out = cdcd_cell_geom((char *)b, n / 2, srid, CDCD_SHAPE_NONE);
    return true;
}
