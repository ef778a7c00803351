/*
 * stream_version.c: rows of MariaDB's system-versioned tables. See stream_int.h.
 *
 * The log tells how the table keeps its history, not what was done:
 *     INSERT           WRITE, row_end is the end of time
 *     UPDATE           UPDATE (row_end stays the end of time), then WRITE of the old row as history
 *     DELETE           UPDATE that sets row_end
 *     DELETE HISTORY   DELETE of rows whose row_end has passed
 * The end of time is the largest value of the column: TIMESTAMP(6) 2038-01-19 03:14:07.999999, from
 * MariaDB 11.5 on 2106-02-07 06:28:15.999999, or 2^64-1 for tables with transaction ids.
 *
 * row_end may be hidden and then is no column of the schema, so it is read from the image itself.
 */
#include "stream_int.h"
#include "value.h"

/* Moves *p behind the image that begins there; *value: where the column `want` is, NULL when it is
 * NULL or not there. */
static enum cdcd_rc walk(const struct my_shape *s, const uint8_t *present, const uint8_t **p,
                         const uint8_t *end, uint32_t want, const uint8_t **value,
                         struct cdcd_error *err)
{
    uint32_t n = 0;
    *value = NULL;
    for (uint32_t i = 0; i < s->ncolumns; i++)
        n += present[i / 8] >> i % 8 & 1;
    const uint8_t *nulls = *p;
    if ((size_t)(end - *p) < (n + 7) / 8)
        return cdcd_error_set(err, CDCD_ERR_FATAL, "a row of %s is cut off", s->label);
    *p += (n + 7) / 8;
    for (uint32_t i = 0, k = 0; i < s->ncolumns; i++) {
        if (!(present[i / 8] >> i % 8 & 1))
            continue;
        bool null = nulls[k / 8] >> k % 8 & 1;
        k++;
        if (null)
            continue;
        if (i == want)
            *value = *p;
        if (my_value_skip(&s->columns[i], p, end, err) != CDCD_OK)
            return CDCD_ERROR;
    }
    return CDCD_OK;
}

static bool all_ones(const uint8_t *p, size_t n)
{
    while (n && *p == 0xff) {
        p++;
        n--;
    }
    return n == 0;
}

/* TIMESTAMP2: seconds in 4 bytes and microseconds in 3, big-endian; BIGINT UNSIGNED: 8 bytes. A
 * length that neither has cannot be: the column's type was checked when its shape was made. */
static bool end_of_time(const struct my_column_decoder *d, const uint8_t *p)
{
    static const uint8_t to_2038[] = {0x7f, 0xff, 0xff, 0xff}, micros[] = {0x0f, 0x42, 0x3f};
    if (!p)
        return true;
    if (d->type == 8) /* LONGLONG */
        return all_ones(p, 8);
    return (memcmp(p, to_2038, 4) == 0 || all_ones(p, 4)) &&
           (d->meta != 6 || memcmp(p + 4, micros, 3) == 0);
}

static bool is_key(const struct my_shape *s, int32_t column)
{
    for (uint32_t i = 0; column >= 0 && i < s->schema->nkeys; i++)
        if (s->schema->keys[i] == (uint32_t)column)
            return true;
    return false;
}

enum cdcd_rc my_version_of(struct my_stream *st, const struct my_row_reader *at,
                           enum my_versioned *out, struct cdcd_error *err)
{
    const struct my_shape *s = at->shape;
    const struct my_rows *rows = &st->rows_event.rows;
    const uint8_t *p = at->p, *first, *second = NULL;
    uint32_t column = (uint32_t)s->row_end;
    const struct my_column_decoder *d = &s->columns[column];
    bool update = rows->op == MY_ROWS_UPDATE || rows->op == MY_ROWS_PARTIAL_UPDATE;
    if (walk(s, rows->present[0], &p, at->end, column, &first, err) != CDCD_OK)
        return CDCD_ERROR;
    if (update && walk(s, rows->present[1], &p, at->end, column, &second, err) != CDCD_OK)
        return CDCD_ERROR;
    bool live = end_of_time(d, first);
    if (rows->op == MY_ROWS_WRITE)
        *out = live ? MY_V_AS_LOGGED : MY_V_NOTHING;
    else if (rows->op == MY_ROWS_DELETE)
        /* A history row is one of its own only where its end is in the key. */
        *out = live || is_key(s, d->column) ? MY_V_AS_LOGGED : MY_V_NOTHING;
    else if (!live)
        *out = MY_V_NOTHING;
    else
        *out = end_of_time(d, second) ? MY_V_AS_LOGGED : MY_V_DELETE;
    return CDCD_OK;
}
