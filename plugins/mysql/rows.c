/*
 * rows: the images of a rows event -> cells.
 *
 * An image (rows_event.h): a bit for each column that it has, set for NULL; then the values of
 * those that are not. The after image of a partial update begins with a length-encoded integer
 * whose lowest bit says that a bit for each JSON column of the table follows: set where the value
 * is a list of differences to the before image instead of the document.
 *
 * This is the hot path: nothing is allocated but from the batch's arena, and each image's bytes
 * are copied once.
 */
#include "table.h"
#include "value_int.h"

enum { PARTIAL_JSON = 1 };

void my_rows_begin(const struct my_shape *shape, const struct my_rows *rows,
                   struct my_row_reader *out)
{
    *out = (struct my_row_reader){shape, rows, (const uint8_t *)rows->body.ptr,
                                  (const uint8_t *)rows->body.ptr + rows->body.len};
}

struct image {
    const uint8_t *present;
    const uint8_t *partial;        /* bits of the JSON columns, or NULL */
    const struct cdcd_slice *base; /* the before image's documents, with partial */
    struct cdcd_slice *keep;       /* where this image's documents are told, or NULL */
    struct cdcd_cell *cells;
};

static bool bit(const uint8_t *bits, uint32_t i)
{
    return bits[i / 8] >> i % 8 & 1;
}

static uint32_t count_bits(const uint8_t *bits, uint32_t n)
{
    uint32_t count = 0;

    for (uint32_t i = 0; i < n / 8; i++)
        count += (uint32_t)__builtin_popcount(bits[i]);
    return count + (n % 8 ? (uint32_t)__builtin_popcount(bits[n / 8] & ((1u << n % 8) - 1)) : 0);
}

static enum cdcd_rc row_bad(const struct my_row_reader *r, struct cdcd_error *err,
                            const char *reason)
{
    return cdcd_error_set(err, CDCD_ERR_FATAL, "a row of table %s cannot be read: %s",
                          r->shape->label, reason);
}

/* Whatever the metadata says, differences have a length of four bytes. */
static enum cdcd_rc apply_diff(struct my_row_reader *r, const struct my_column_decoder *d,
                               struct cdcd_slice base, struct cdcd_arena *a, struct cdcd_cell *cell,
                               struct cdcd_error *err)
{
    struct cdcd_cursor c = cdcd_cur(r->p, (size_t)(r->end - r->p));
    uint32_t n = my_cur_u32(&c);
    struct cdcd_slice diffs = cdcd_cur_bytes(&c, n), text;

    if (c.bad)
        return row_bad(r, err, "it ends within the differences of a JSON value");
    r->p = c.pos;
    if (!cell)
        return CDCD_OK;
    if (!base.ptr)
        return cdcd_error_set(err, CDCD_ERR_DATA,
                              "column %s of table %s is a partial update of a JSON value that the "
                              "before image lacks; set binlog_row_image=FULL on the server",
                              d->name, r->shape->label);
    if (my_json_apply((const uint8_t *)base.ptr, base.len, (const uint8_t *)diffs.ptr, diffs.len, a,
                      &text, err) != CDCD_OK)
        return cdcd_error_context(err, "column %s", d->name);
    *cell = cdcd_cell_text(text.ptr, text.len);
    return CDCD_OK;
}

static enum cdcd_rc read_value(struct my_row_reader *r, const struct my_column_decoder *d,
                               struct cdcd_arena *a, struct cdcd_cell *cell,
                               struct cdcd_slice *keep, struct cdcd_error *err)
{
    const uint8_t *start = r->p;
    enum cdcd_rc rc = cell ? my_value_read(d, &r->p, r->end, a, cell, err)
                           : my_value_skip(d, &r->p, r->end, err);

    if (rc == CDCD_OK && keep) {
        size_t prefix = d->meta >= 1 && d->meta <= 4 ? d->meta : 4;
        *keep = (struct cdcd_slice){(const char *)start + prefix, (size_t)(r->p - start) - prefix};
    }
    return rc;
}

static enum cdcd_rc read_columns(struct my_row_reader *r, const struct image *im,
                                 const uint8_t *nulls, struct cdcd_arena *a, struct cdcd_error *err)
{
    enum cdcd_rc rc = CDCD_OK;
    uint32_t nth = 0, json = 0;

    for (uint32_t i = 0; rc == CDCD_OK && i < r->shape->ncolumns; i++) {
        const struct my_column_decoder *d = &r->shape->columns[i];
        struct cdcd_cell *cell = d->column >= 0 ? &im->cells[d->column] : NULL;
        bool is_json = d->type == MY_JSON;
        bool partial = is_json && im->partial && bit(im->partial, json);
        uint32_t k = is_json ? json++ : 0;
        if (!bit(im->present, i))
            continue;
        if (bit(nulls, nth++)) {
            if (cell)
                *cell = (struct cdcd_cell){.kind = CDCD_C_NULL};
        } else if (partial) {
            rc = apply_diff(r, d, im->base[k], a, cell, err);
        } else {
            rc = read_value(r, d, a, cell, is_json && im->keep ? &im->keep[k] : NULL, err);
        }
    }
    return rc == CDCD_OK ? rc : cdcd_error_context(err, "table %s", r->shape->label);
}

/* Cells that point into the event are made to point to a copy that lives as long as the arena. */
static void move_cells(const uint8_t *start, const uint8_t *end, struct cdcd_cell *cells,
                       uint32_t n, struct cdcd_arena *a)
{
    char *copy = NULL;

    for (uint32_t i = 0; i < n; i++) {
        struct cdcd_cell *c = &cells[i];
        if (c->kind != CDCD_C_TEXT && c->kind != CDCD_C_BYTES && c->kind != CDCD_C_GEOM)
            continue;
        if (c->len == 0)
            c->ptr = "";
        if ((const uint8_t *)c->ptr < start || (const uint8_t *)c->ptr >= end)
            continue;
        if (!copy) {
            copy = cdcd_arena_alloc(a, (size_t)(end - start));
            memcpy(copy, start, (size_t)(end - start));
        }
        c->ptr = copy + ((const uint8_t *)c->ptr - start);
    }
}

static enum cdcd_rc read_image(struct my_row_reader *r, struct image *im, struct cdcd_arena *a,
                               struct cdcd_error *err)
{
    uint32_t n = r->shape->ncolumns, want = r->shape->schema->ncolumns;
    uint32_t present = count_bits(im->present, n);
    size_t null_bytes = (present + 7) / 8;
    const uint8_t *start = r->p;

    if ((size_t)(r->end - r->p) < null_bytes)
        return row_bad(r, err, "it ends within its NULL bits");
    im->cells = cdcd_arena_alloc(a, want * sizeof *im->cells);
    if (present != n) {
        for (uint32_t i = 0; i < want; i++)
            im->cells[i] = (struct cdcd_cell){.kind = CDCD_C_ABSENT};
    }
    r->p += null_bytes;
    enum cdcd_rc rc = read_columns(r, im, start, a, err);
    if (rc == CDCD_OK)
        move_cells(start, r->p, im->cells, want, a);
    return rc;
}

static enum cdcd_rc read_partial_head(struct my_row_reader *r, uint32_t njson, struct image *im,
                                      struct cdcd_error *err)
{
    struct cdcd_cursor c = cdcd_cur(r->p, (size_t)(r->end - r->p));
    uint64_t options = my_cur_lenenc(&c);

    if (options & ~(uint64_t)PARTIAL_JSON)
        return row_bad(r, err, "its partial update has options that are not known");
    if (options & PARTIAL_JSON)
        im->partial = cdcd_cur_take(&c, (njson + 7) / 8);
    if (c.bad)
        return row_bad(r, err, "it ends within the head of its after image");
    r->p = c.pos;
    return CDCD_OK;
}

static enum cdcd_rc read_update(struct my_row_reader *r, struct cdcd_arena *a,
                                struct cdcd_cell **before, struct cdcd_cell **after,
                                struct cdcd_error *err)
{
    struct image old = {.present = r->rows->present[0]}, new = {.present = r->rows->present[1]};
    bool partial = r->rows->op == MY_ROWS_PARTIAL_UPDATE;
    uint32_t njson = 0;

    for (uint32_t i = 0; partial && i < r->shape->ncolumns; i++)
        njson += r->shape->columns[i].type == MY_JSON;
    if (njson) {
        old.keep = cdcd_arena_alloc(a, njson * sizeof *old.keep);
        memset(old.keep, 0, njson * sizeof *old.keep);
        new.base = old.keep;
    }
    enum cdcd_rc rc = read_image(r, &old, a, err);
    if (rc == CDCD_OK && partial)
        rc = read_partial_head(r, njson, &new, err);
    if (rc == CDCD_OK)
        rc = read_image(r, &new, a, err);
    *before = old.cells;
    *after = new.cells;
    return rc;
}

enum cdcd_rc my_rows_next(struct my_row_reader *r, struct cdcd_arena *a, struct cdcd_cell **before,
                          struct cdcd_cell **after, struct cdcd_error *err)
{
    struct image im = {.present = r->rows->present[0]};
    enum cdcd_rc rc;

    *before = *after = NULL;
    /* Such an image has no bytes, so nothing tells how many rows there are. */
    if (r->rows->body.len == 0)
        return row_bad(r, err, "its image has no column at all; set binlog_row_image=FULL");
    if (r->p == r->end)
        return CDCD_END;
    if (r->rows->ncolumns != r->shape->ncolumns)
        return cdcd_error_set(err, CDCD_ERR_FATAL,
                              "a row of table %s has %u columns where its table map has %u",
                              r->shape->label, r->rows->ncolumns, r->shape->ncolumns);
    const uint8_t *start = r->p;
    switch (r->rows->op) {
    case MY_ROWS_UPDATE:
    case MY_ROWS_PARTIAL_UPDATE: rc = read_update(r, a, before, after, err); break;
    case MY_ROWS_DELETE:
        rc = read_image(r, &im, a, err);
        *before = im.cells;
        break;
    default:
        rc = read_image(r, &im, a, err);
        *after = im.cells;
        break;
    }
    if (rc == CDCD_OK && r->p == start) /* no column at all: there would be no end of rows */
        return row_bad(r, err, "it is empty");
    return rc;
}
