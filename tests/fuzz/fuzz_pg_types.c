/*
 * Values of PostgreSQL in text form. The first byte picks the column's type, the rest is the text;
 * it is copied to memory of exactly its size. Default expressions are tried as well.
 */
#include "types.h"

#include <cdcd/event.h>

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { ARRAYS = 20000 }; /* the array of type X has the oid ARRAYS + X */

static const struct pg_type extra[] = {
    {.oid = 19001, .name = "hstore"},
    {.oid = 19002, .name = "geometry", .delim = ':'},
    {.oid = 19003, .name = "vector"},
    {.oid = 19004, .name = "sparsevec"},
    {.oid = 19005, .name = "list", .typtype = 'd', .base = ARRAYS + PG_OID_TEXT, .base_typmod = -1},
    {.oid = 19006, .name = "mood", .typtype = 'e'},
};

static const struct {
    uint32_t oid;
    int32_t typmod;
} picks[] = {
    {PG_OID_BOOL, -1},
    {PG_OID_BYTEA, -1},
    {PG_OID_INT8, -1},
    {PG_OID_INT2, -1},
    {PG_OID_INT4, -1},
    {PG_OID_TEXT, -1},
    {PG_OID_POINT, -1},
    {PG_OID_LSEG, -1},
    {PG_OID_PATH, -1},
    {PG_OID_BOX, -1},
    {PG_OID_POLYGON, -1},
    {PG_OID_FLOAT8, -1},
    {PG_OID_MONEY, -1},
    {PG_OID_DATE, -1},
    {PG_OID_TIME, -1},
    {PG_OID_TIMETZ, -1},
    {PG_OID_TIMESTAMP, -1},
    {PG_OID_TIMESTAMPTZ, 3},
    {PG_OID_INTERVAL, -1},
    {PG_OID_BIT, 1},
    {PG_OID_VARBIT, -1},
    {PG_OID_NUMERIC, -1},
    {PG_OID_NUMERIC, (10 << 16 | 2) + 4},
    {PG_OID_UUID, -1},
    {19001, -1},
    {19002, -1},
    {19003, -1},
    {19004, -1},
    {19005, -1},
    {19006, -1},
};

static struct pg_types *catalogue(void)
{
    struct pg_types *t = pg_types_new();

    for (size_t i = 0; i < sizeof extra / sizeof *extra; i++)
        pg_types_put(t, &extra[i]);
    for (size_t i = 0; i < sizeof picks / sizeof *picks; i++) {
        struct pg_type base = {.oid = picks[i].oid, .name = "base"};
        struct pg_type array = {
            .oid = ARRAYS + picks[i].oid, .name = "array", .elem = picks[i].oid};
        if (picks[i].oid == PG_OID_BOX)
            base.delim = ';';
        if (picks[i].oid < PG_OID_FIRST_USER)
            pg_types_put(t, &base);
        pg_types_put(t, &array);
    }
    return t;
}

static volatile unsigned sink; /* keeps the reads from being optimised away */

/* Reads every byte of a cell, for the sanitizers. */
static unsigned touch(const struct cdcd_cell *c)
{
    unsigned sum = c->kind;

    switch ((enum cdcd_cell_kind)c->kind) {
    case CDCD_C_FLOAT:
    case CDCD_C_DECIMAL:
    case CDCD_C_TEXT:
    case CDCD_C_BYTES:
    case CDCD_C_GEOM:
        for (uint32_t i = 0; i < c->len; i++)
            sum += (unsigned char)c->ptr[i];
        break;
    case CDCD_C_LIST:
    case CDCD_C_MAP:
        for (uint32_t i = 0; i < c->len; i++)
            sum += touch(&c->cells[i]);
        break;
    case CDCD_C_INTERVAL: sum += (unsigned)c->iv->days; break;
    default: break;
    }
    return sum;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct pg_types *types;
    const size_t npicks = sizeof picks / sizeof *picks;
    struct cdcd_cell cell;
    struct cdcd_arena arena;
    struct cdcd_error err;

    if (size < 1)
        return 0;
    if (!types)
        types = catalogue();
    size_t pick = data[0] % (2 * npicks), n = size - 1;
    uint32_t oid = picks[pick % npicks].oid + (pick < npicks ? 0 : ARRAYS);
    char *text = malloc(n ? n : 1);
    memcpy(text, data + 1, n);

    struct cdcd_schema *s = cdcd_schema_new("db", "s", "t", 1);
    struct cdcd_column *c = &s->columns[0];
    c->name = "c";
    c->name_len = 1;
    pg_column_set_type(types, s, c, oid, picks[pick % npicks].typmod, NULL);
    cdcd_arena_init(&arena, 1024);
    if (pg_cell_parse(c, text, n, &arena, &cell, &err) == CDCD_OK)
        sink = touch(&cell);
    else if (err.class != CDCD_ERR_DATA || !strstr(err.text, "\"c\""))
        abort();
    pg_column_set_default(s, c, (struct cdcd_slice){text, n});
    free(text);
    if (c->default_cell)
        sink = touch(c->default_cell);
    cdcd_arena_free(&arena);
    cdcd_schema_unref(s);
    return 0;
}
