/*
 * The binlog decoder on hostile bytes. Input: a byte of options, then a stream of events as in a
 * file. The sizes and checksums of the events are made right first, so that what is behind them is
 * reached. Whatever comes, nothing may be read out of bounds, and cells are within their event or
 * the arena (each event is in memory of exactly its size, freed after its rows).
 */
#include "decoder.h"
#include "table.h"
#include "value.h"

#include <assert.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { INNER = 1, MARIADB = 2, LABELS = 4, SPECIALS = 8, SKIP = 16 };

static struct {
    uint8_t options;
    struct my_decoder *decoder;
    struct my_shape shape;
    struct cdcd_arena arena, out;
    uint64_t checked;
    int payloads;
} f;

static void free_shape(void)
{
    cdcd_schema_unref(f.shape.schema);
    f.shape.schema = NULL;
    cdcd_arena_reset(&f.arena, 1 << 16);
}

static const char *const labels[] = {"one", "two", "three", NULL};

static void make_column(const struct my_map_column *c, uint32_t i, struct my_column_decoder *d)
{
    struct cdcd_error err;

    *d = (struct my_column_decoder){.type = c->type,
                                    .meta = c->meta,
                                    .unsigned_ = c->unsigned_,
                                    .column = (int32_t)i,
                                    .name = "column",
                                    .labels = labels,
                                    .nlabels = f.options & LABELS ? 3 : 0};
    if (c->has_collation && my_charset_by_collation(c->collation, &d->charset, &err) != CDCD_OK)
        d->special = MY_BINARY;
    if (f.options & SPECIALS) {
        d->special = c->meta % 7;
        if (c->type == MY_GEOMETRY)
            d->special = MY_POINT;
    }
    if (f.options & SKIP && i % 3 == 1)
        d->column = -1;
}

static void make_shape(const struct my_table_map *m)
{
    uint32_t used = 0;

    free_shape();
    f.shape = (struct my_shape){.ncolumns = m->ncolumns, .captured = true, .label = (char *)"t"};
    f.shape.columns = cdcd_arena_alloc(&f.arena, m->ncolumns * sizeof *f.shape.columns);
    for (uint32_t i = 0; i < m->ncolumns; i++) {
        make_column(&m->columns[i], i, &f.shape.columns[i]);
        if (f.shape.columns[i].column >= 0)
            f.shape.columns[i].column = (int32_t)used++;
    }
    f.shape.schema = cdcd_schema_new("d", "", "t", used);
}

static void touch(const struct cdcd_cell *c)
{
    if (c->kind == CDCD_C_LIST) {
        for (uint32_t i = 0; i < c->len; i++)
            touch(&c->cells[i]);
    } else if (c->kind == CDCD_C_TEXT || c->kind == CDCD_C_BYTES || c->kind == CDCD_C_GEOM ||
               c->kind == CDCD_C_FLOAT || c->kind == CDCD_C_DECIMAL) {
        for (uint32_t i = 0; i < c->len; i++)
            f.checked += (uint8_t)c->ptr[i];
    } else {
        f.checked += (uint64_t)c->i;
        assert(c->kind == CDCD_C_NULL || c->kind == CDCD_C_ABSENT || c->kind == CDCD_C_BOOL ||
               c->kind == CDCD_C_INT || c->kind == CDCD_C_UINT || c->kind == CDCD_C_DATE ||
               c->kind == CDCD_C_TIME || c->kind == CDCD_C_TIMESTAMP);
    }
}

static void read_rows(const struct my_rows *rows)
{
    struct my_row_reader reader;
    struct cdcd_cell *images[2];
    struct cdcd_error err;
    const uint8_t *last = NULL;

    if (!f.shape.schema)
        return;
    my_rows_begin(&f.shape, rows, &reader);
    while (my_rows_next(&reader, &f.out, &images[0], &images[1], &err) == CDCD_OK) {
        assert(images[0] || images[1]);
        assert(reader.p > last && reader.p <= reader.end);
        last = reader.p;
        for (int i = 0; i < 2; i++) {
            for (uint32_t k = 0; images[i] && k < f.shape.schema->ncolumns; k++)
                touch(&images[i][k]);
        }
        if (f.out.used > 1 << 20)
            cdcd_arena_reset(&f.out, 1 << 20);
    }
}

static void read_map(const struct my_table_map *m)
{
    for (uint32_t i = 0; i < m->ncolumns; i++) {
        const struct my_map_column *c = &m->columns[i];
        f.checked += c->type + c->name.len + (c->name.len ? (uint8_t)c->name.ptr[0] : 0);
        for (uint32_t k = 0; k < c->nlabels; k++)
            f.checked += m->labels[c->first_label + k].len;
    }
    for (uint32_t i = 0; i < m->nkeys; i++)
        assert(m->keys[i] < m->ncolumns);
    make_shape(m);
}

static bool read_event(struct cdcd_slice event, bool inner);

static void read_payload(const struct my_event *e)
{
    struct my_payload *p;
    struct cdcd_slice event;
    struct cdcd_error err;

    if (f.payloads++ > 2 || my_payload_open(e, 1 << 20, &p, &err) != CDCD_OK)
        return;
    for (int i = 0; i < 100 && my_payload_next(p, &event, &err) == CDCD_OK; i++)
        read_event(event, true);
    my_payload_close(p);
}

static bool read_event(struct cdcd_slice event, bool inner)
{
    struct my_event e;
    struct cdcd_error err;

    if (my_decode(f.decoder, event, inner, &e, &err) != CDCD_OK)
        return false;
    if (e.kind == MY_EV_TABLE_MAP)
        read_map(e.map);
    else if (e.kind == MY_EV_ROWS)
        read_rows(&e.rows);
    else if (e.kind == MY_EV_PAYLOAD)
        read_payload(&e);
    else if (e.kind == MY_EV_QUERY)
        f.checked += e.query.text.len ? (uint8_t)e.query.text.ptr[e.query.text.len - 1] : 0;
    else if (e.kind == MY_EV_GTID)
        f.checked += strlen(e.gtid.id.tag) + e.gtid.xid.len;
    return true;
}

static void put_u32(char *p, uint32_t v)
{
    for (int i = 0; i < 4; i++)
        p[i] = (char)(v >> (8 * i));
}

/* Text forms that a query returns, from the same bytes. */
static void read_text(const uint8_t *data, size_t size)
{
    static const uint8_t types[] = {MY_TINY, MY_LONGLONG, MY_FLOAT, MY_NEWDECIMAL,
                                    MY_DATE, MY_TIME2,    MY_JSON,  MY_DATETIME2,
                                    MY_BIT,  MY_VECTOR,   MY_SET,   MY_GEOMETRY};
    struct cdcd_error err;
    struct cdcd_cell cell;

    for (size_t i = 0; i < sizeof types; i++) {
        struct my_column_decoder d = {.type = types[i], .name = "c", .unsigned_ = f.options & 1};
        if (my_value_text(&d, NULL, (const char *)data, size, &f.out, &cell, &err) == CDCD_OK)
            touch(&cell);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 1)
        return 0;
    f.options = data[0];
    f.payloads = 0;
    f.decoder = my_decoder_new(f.options & MARIADB ? MY_MARIADB : MY_MYSQL);
    f.decoder->checksum = f.options & INNER ? MY_CHECKSUM_OFF : MY_CHECKSUM_CRC32;
    if (!f.arena.chunk_size) {
        cdcd_arena_init(&f.arena, 1 << 16);
        cdcd_arena_init(&f.out, 1 << 16);
    }
    if (size < 200)
        read_text(data + 1, size - 1);
    for (size_t at = 1; at + MY_HEADER_LEN <= size;) {
        struct cdcd_cursor c = cdcd_cur(data + at + 9, 4);
        size_t n = my_cur_u32(&c);
        if (n < MY_HEADER_LEN || n > size - at)
            n = size - at;
        size_t sum = f.options & INNER ? 0 : MY_CHECKSUM_LEN;
        char *copy = malloc(n + sum);
        memcpy(copy, data + at, n);
        put_u32(copy + 9, (uint32_t)(n + sum));
        if (sum)
            put_u32(copy + n, my_crc32(0, copy, n));
        bool ok = read_event((struct cdcd_slice){copy, n + sum}, !sum);
        free(copy);
        at += n;
        if (!ok && f.options & 128)
            break;
    }
    free_shape();
    cdcd_arena_reset(&f.out, 1 << 20);
    my_decoder_free(f.decoder);
    return 0;
}
