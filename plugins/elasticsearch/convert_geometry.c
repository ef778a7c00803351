/*
 * Geometry: well-known binary, that of ISO (types 1001.. have Z, 2001.. M) and the extended one of
 * PostGIS (flags for Z, M and a spatial reference) -> well-known text.
 */
#include "convert.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { POINT = 1, LINESTRING, POLYGON, MULTIPOINT, MULTILINESTRING, MULTIPOLYGON, COLLECTION };

static const char *const names[] = {
    "",           "POINT",           "LINESTRING",   "POLYGON",
    "MULTIPOINT", "MULTILINESTRING", "MULTIPOLYGON", "GEOMETRYCOLLECTION"};

struct wkb {
    const uint8_t *p, *end;
    struct cdcd_writer *w;
    int64_t srid; /* -1: none */
};

struct head {
    bool little;
    uint32_t type;
    unsigned dims;
    const char *tag; /* " Z", " M", " ZM" or "" */
};

static bool read_u32(struct wkb *g, bool little, uint32_t *out)
{
    if (g->end - g->p < 4)
        return false;
    *out = 0;
    for (int i = 0; i < 4; i++)
        *out |= (uint32_t)g->p[little ? i : 3 - i] << (8 * i);
    g->p += 4;
    return true;
}

static bool read_head(struct wkb *g, struct head *h)
{
    uint32_t type, srid;
    if (g->p >= g->end || *g->p > 1)
        return false;
    h->little = *g->p++ == 1;
    if (!read_u32(g, h->little, &type))
        return false;
    bool z = type & 0x80000000u, m = type & 0x40000000u;
    if (type & 0x20000000u) {
        if (!read_u32(g, h->little, &srid))
            return false;
        g->srid = srid;
    }
    type &= 0x0fffffffu;
    z = z || type / 1000 == 1 || type / 1000 == 3;
    m = m || type / 1000 == 2 || type / 1000 == 3;
    if (type >= 4000)
        return false;
    h->type = type % 1000;
    h->dims = 2 + (unsigned)z + (unsigned)m;
    h->tag = z && m ? " ZM" : z ? " Z" : m ? " M" : "";
    return h->type >= POINT && h->type <= COLLECTION;
}

/* The shortest text that reads back the same. */
static void put_double(struct cdcd_writer *w, double v)
{
    char text[40];
    for (int digits = 15; digits <= 17; digits++) {
        snprintf(text, sizeof text, "%.*g", digits, v);
        if (strtod(text, NULL) == v)
            break;
    }
    es_puts(w, text);
}

static bool read_doubles(struct wkb *g, const struct head *h, double *out)
{
    if ((size_t)(g->end - g->p) < 8 * h->dims)
        return false;
    for (unsigned d = 0; d < h->dims; d++, g->p += 8) {
        uint64_t bits = 0;
        for (int i = 0; i < 8; i++)
            bits |= (uint64_t)g->p[h->little ? i : 7 - i] << (8 * i);
        memcpy(&out[d], &bits, 8);
    }
    return true;
}

static bool put_position(struct wkb *g, const struct head *h)
{
    double v[4];
    if (!read_doubles(g, h, v))
        return false;
    for (unsigned d = 0; d < h->dims; d++) {
        if (d)
            cdcd_writer_char(g->w, ' ');
        put_double(g->w, v[d]);
    }
    return true;
}

/* (1 2, 3 4) */
static bool put_line(struct wkb *g, const struct head *h)
{
    uint32_t n;
    if (!read_u32(g, h->little, &n))
        return false;
    if (!n) {
        cdcd_writer_lit(g->w, "EMPTY");
        return true;
    }
    for (uint32_t i = 0; i < n; i++) {
        es_puts(g->w, i ? ", " : "(");
        if (!put_position(g, h))
            return false;
    }
    cdcd_writer_char(g->w, ')');
    return true;
}

static bool put_point(struct wkb *g, const struct head *h)
{
    const uint8_t *start = g->p;
    double v[4];
    if (!read_doubles(g, h, v))
        return false;
    if (isnan(v[0]) && isnan(v[1])) {
        cdcd_writer_lit(g->w, "EMPTY");
        return true;
    }
    g->p = start;
    cdcd_writer_char(g->w, '(');
    if (!put_position(g, h))
        return false;
    cdcd_writer_char(g->w, ')');
    return true;
}

#define NESTED_MAX 32

static bool put_geometry(struct wkb *g, bool named, int depth);

/* Of rings (polygon) or of whole geometries, which in a collection have their names. */
static bool put_parts(struct wkb *g, const struct head *h, int depth)
{
    uint32_t n;
    if (!read_u32(g, h->little, &n))
        return false;
    if (!n) {
        cdcd_writer_lit(g->w, "EMPTY");
        return true;
    }
    for (uint32_t i = 0; i < n; i++) {
        es_puts(g->w, i ? ", " : "(");
        bool ok = h->type == POLYGON ? put_line(g, h)
                                     : put_geometry(g, h->type == COLLECTION, depth + 1);
        if (!ok)
            return false;
    }
    cdcd_writer_char(g->w, ')');
    return true;
}

static bool put_geometry(struct wkb *g, bool named, int depth)
{
    struct head h;
    if (depth > NESTED_MAX || !read_head(g, &h))
        return false;
    if (named) {
        es_puts(g->w, names[h.type]);
        es_puts(g->w, h.tag);
        cdcd_writer_char(g->w, ' ');
    }
    switch (h.type) {
    case POINT: return put_point(g, &h);
    case LINESTRING: return put_line(g, &h);
    default: return put_parts(g, &h, depth);
    }
}

bool es_wkt_write(struct cdcd_writer *w, struct cdcd_slice bytes, int64_t *srid)
{
    const uint8_t *p = (const uint8_t *)bytes.ptr;
    struct wkb g = {.p = p, .end = p + bytes.len, .w = w, .srid = -1};
    cdcd_writer_char(w, '"');
    if (!put_geometry(&g, true, 0) || g.p != g.end)
        return false;
    cdcd_writer_char(w, '"');
    *srid = g.srid;
    return true;
}
