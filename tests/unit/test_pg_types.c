/*
 * The PostgreSQL plugin's types: modifiers and domains to columns, the server's text to cells,
 * default expressions to constants.
 */
#include "types.h"

#include <cdcd/event.h>

#include <setjmp.h>
#include <stdlib.h>

#include <cmocka.h>

enum {
    OID_INT4_ARRAY = 1007,
    OID_TEXT_ARRAY = 1009,
    OID_INTERVAL_ARRAY = 1187,
    OID_NUMERIC_ARRAY = 1231,
    OID_TIMESTAMPTZ_ARRAY = 1185,
    OID_BYTEA_ARRAY = 1001,
    OID_JSONB_ARRAY = 3807,
    OID_BOX_ARRAY = 1020,
    OID_POINT_ARRAY = 1017,
    OID_BIT_ARRAY = 1561,
    OID_MONEY_ARRAY = 791,
    OID_INET = 869,
    OID_INT2VECTOR = 22,
    OID_INT2VECTOR_ARRAY = 1006,
    OID_MOOD = 20001,
    OID_MOOD_ARRAY,
    OID_POSINT,
    OID_POSINT_ARRAY,
    OID_TAGLIST,
    OID_TAGLIST_ARRAY,
    OID_AMOUNT,
    OID_AMOUNT_POS,
    OID_PAIR,
    OID_PAIR_ARRAY,
    OID_HSTORE,
    OID_HSTORE_ARRAY,
    OID_LTREE,
    OID_CITEXT,
    OID_GEOMETRY,
    OID_GEOMETRY_ARRAY,
    OID_VECTOR,
    OID_VECTOR_ARRAY,
    OID_HALFVEC,
    OID_SPARSEVEC,
    OID_VECTOR_ENUM,
    OID_LOOP,
};

static char *mood_labels[] = {"sad", "ok", "very happy, \"quoted\"", NULL};

#define NUMERIC(p, s) ((((p) << 16) | ((s)&0x7ff)) + 4)

static const struct pg_type types[] = {
    {.oid = PG_OID_BOOL, .name = "bool"},
    {.oid = PG_OID_BYTEA, .name = "bytea"},
    {.oid = PG_OID_CHAR, .name = "char"},
    {.oid = PG_OID_NAME, .name = "name"},
    {.oid = PG_OID_INT8, .name = "int8"},
    {.oid = PG_OID_INT2, .name = "int2"},
    {.oid = PG_OID_INT4, .name = "int4"},
    {.oid = PG_OID_TEXT, .name = "text"},
    {.oid = PG_OID_OID, .name = "oid"},
    {.oid = PG_OID_JSON, .name = "json"},
    {.oid = PG_OID_XML, .name = "xml"},
    {.oid = PG_OID_POINT, .name = "point"},
    {.oid = PG_OID_LSEG, .name = "lseg"},
    {.oid = PG_OID_PATH, .name = "path"},
    {.oid = PG_OID_BOX, .name = "box", .delim = ';'},
    {.oid = PG_OID_POLYGON, .name = "polygon"},
    {.oid = PG_OID_LINE, .name = "line"},
    {.oid = PG_OID_FLOAT4, .name = "float4"},
    {.oid = PG_OID_FLOAT8, .name = "float8"},
    {.oid = PG_OID_CIRCLE, .name = "circle"},
    {.oid = PG_OID_MONEY, .name = "money"},
    {.oid = OID_INET, .name = "inet"},
    {.oid = OID_INT2VECTOR, .name = "int2vector"},
    {.oid = PG_OID_BPCHAR, .name = "bpchar"},
    {.oid = PG_OID_VARCHAR, .name = "varchar"},
    {.oid = PG_OID_DATE, .name = "date"},
    {.oid = PG_OID_TIME, .name = "time"},
    {.oid = PG_OID_TIMESTAMP, .name = "timestamp"},
    {.oid = PG_OID_TIMESTAMPTZ, .name = "timestamptz"},
    {.oid = PG_OID_INTERVAL, .name = "interval"},
    {.oid = PG_OID_TIMETZ, .name = "timetz"},
    {.oid = PG_OID_BIT, .name = "bit"},
    {.oid = PG_OID_VARBIT, .name = "varbit"},
    {.oid = PG_OID_NUMERIC, .name = "numeric"},
    {.oid = PG_OID_UUID, .name = "uuid"},
    {.oid = PG_OID_TSVECTOR, .name = "tsvector"},
    {.oid = PG_OID_JSONB, .name = "jsonb"},
    {.oid = OID_INT4_ARRAY, .name = "_int4", .elem = PG_OID_INT4},
    {.oid = OID_TEXT_ARRAY, .name = "_text", .elem = PG_OID_TEXT},
    {.oid = OID_INTERVAL_ARRAY, .name = "_interval", .elem = PG_OID_INTERVAL},
    {.oid = OID_NUMERIC_ARRAY, .name = "_numeric", .elem = PG_OID_NUMERIC},
    {.oid = OID_TIMESTAMPTZ_ARRAY, .name = "_timestamptz", .elem = PG_OID_TIMESTAMPTZ},
    {.oid = OID_BYTEA_ARRAY, .name = "_bytea", .elem = PG_OID_BYTEA},
    {.oid = OID_JSONB_ARRAY, .name = "_jsonb", .elem = PG_OID_JSONB},
    {.oid = OID_BOX_ARRAY, .name = "_box", .elem = PG_OID_BOX, .delim = ';'},
    {.oid = OID_POINT_ARRAY, .name = "_point", .elem = PG_OID_POINT},
    {.oid = OID_BIT_ARRAY, .name = "_bit", .elem = PG_OID_BIT},
    {.oid = OID_MONEY_ARRAY, .name = "_money", .elem = PG_OID_MONEY},
    {.oid = OID_INT2VECTOR_ARRAY, .name = "_int2vector", .elem = OID_INT2VECTOR},
    {.oid = OID_MOOD, .name = "public.mood", .typtype = 'e', .labels = mood_labels},
    {.oid = OID_MOOD_ARRAY, .name = "public._mood", .elem = OID_MOOD},
    {.oid = OID_POSINT,
     .name = "public.posint",
     .typtype = 'd',
     .base = PG_OID_INT4,
     .base_typmod = -1},
    {.oid = OID_POSINT_ARRAY, .name = "public._posint", .elem = OID_POSINT},
    {.oid = OID_TAGLIST,
     .name = "public.taglist",
     .typtype = 'd',
     .base = OID_TEXT_ARRAY,
     .base_typmod = -1},
    {.oid = OID_TAGLIST_ARRAY, .name = "public._taglist", .elem = OID_TAGLIST},
    {.oid = OID_AMOUNT,
     .name = "public.amount",
     .typtype = 'd',
     .base = PG_OID_NUMERIC,
     .base_typmod = NUMERIC(10, 2)},
    {.oid = OID_AMOUNT_POS,
     .name = "public.amount_pos",
     .typtype = 'd',
     .base = OID_AMOUNT,
     .base_typmod = -1},
    {.oid = OID_PAIR, .name = "public.pair", .typtype = 'c'},
    {.oid = OID_PAIR_ARRAY, .name = "public._pair", .elem = OID_PAIR},
    {.oid = OID_HSTORE, .name = "public.hstore", .bare_name = "hstore"},
    {.oid = OID_HSTORE_ARRAY, .name = "public._hstore", .elem = OID_HSTORE},
    {.oid = OID_LTREE, .name = "public.ltree", .bare_name = "ltree"},
    {.oid = OID_CITEXT, .name = "public.citext", .bare_name = "citext"},
    {.oid = OID_GEOMETRY, .name = "public.geometry", .bare_name = "geometry", .delim = ':'},
    {.oid = OID_GEOMETRY_ARRAY, .name = "public._geometry", .elem = OID_GEOMETRY, .delim = ':'},
    {.oid = OID_VECTOR, .name = "public.vector", .bare_name = "vector"},
    {.oid = OID_VECTOR_ARRAY, .name = "public._vector", .elem = OID_VECTOR},
    {.oid = OID_HALFVEC, .name = "public.halfvec", .bare_name = "halfvec"},
    {.oid = OID_SPARSEVEC, .name = "public.sparsevec", .bare_name = "sparsevec"},
    {.oid = OID_VECTOR_ENUM, .name = "public.vector", .bare_name = "vector", .typtype = 'e'},
    {.oid = OID_LOOP, .name = "public.loop", .elem = OID_LOOP},
};

struct fixture {
    struct pg_types *types;
    struct cdcd_schema *schema;
    struct cdcd_arena arena;
    struct cdcd_buf shown;
    struct cdcd_error err;
};

static int set_up(void **state)
{
    struct fixture *f = cdcd_xcalloc(1, sizeof *f);

    f->types = pg_types_new();
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        pg_types_put(f->types, &types[i]);
    f->schema = cdcd_schema_new("db", "public", "t", 1);
    cdcd_arena_init(&f->arena, 4096);
    cdcd_buf_init(&f->shown, 0);
    *state = f;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *f = *state;

    pg_types_free(f->types);
    cdcd_schema_unref(f->schema);
    cdcd_arena_free(&f->arena);
    cdcd_buf_free(&f->shown);
    free(f);
    return 0;
}

static void show(struct cdcd_buf *b, const struct cdcd_cell *c);

static void show_bytes(struct cdcd_buf *b, const char *kind, const struct cdcd_cell *c)
{
    cdcd_buf_adds(b, kind);
    for (uint32_t i = 0; i < c->len; i++)
        cdcd_buf_addf(b, "%02x", (unsigned char)c->ptr[i]);
}

static void show_cells(struct cdcd_buf *b, char open, char close, const struct cdcd_cell *c)
{
    cdcd_buf_addf(b, "%c", open);
    for (uint32_t i = 0; i < c->len; i++) {
        if (i)
            cdcd_buf_adds(b, " ");
        show(b, &c->cells[i]);
    }
    cdcd_buf_addf(b, "%c", close);
}

/* Each kind looks different, so that a wrong kind is seen. */
static void show(struct cdcd_buf *b, const struct cdcd_cell *c)
{
    static const char *const shapes[] = {"", "box", "lseg", "open", "closed", "polygon"};

    if (c->inf && c->kind != CDCD_C_GEOM) {
        cdcd_buf_adds(b, c->inf > 0 ? "+inf" : "-inf");
        return;
    }
    switch ((enum cdcd_cell_kind)c->kind) {
    case CDCD_C_NULL: cdcd_buf_adds(b, "null"); break;
    case CDCD_C_BOOL: cdcd_buf_adds(b, c->i ? "true" : "false"); break;
    case CDCD_C_INT: cdcd_buf_addf(b, "%lld", (long long)c->i); break;
    case CDCD_C_FLOAT: cdcd_buf_addf(b, "f:%.*s", (int)c->len, c->ptr); break;
    case CDCD_C_DECIMAL: cdcd_buf_addf(b, "n:%.*s", (int)c->len, c->ptr); break;
    case CDCD_C_TEXT: cdcd_buf_addf(b, "'%.*s'", (int)c->len, c->ptr); break;
    case CDCD_C_BYTES: show_bytes(b, "x:", c); break;
    case CDCD_C_DATE: cdcd_buf_addf(b, "d:%lld", (long long)c->i); break;
    case CDCD_C_TIME: cdcd_buf_addf(b, "t:%lld", (long long)c->i); break;
    case CDCD_C_TIMESTAMP: cdcd_buf_addf(b, "ts:%lld.%09u", (long long)c->i, c->len); break;
    case CDCD_C_INTERVAL:
        cdcd_buf_addf(b, "iv:%d/%d/%lld", c->iv->months, c->iv->days, (long long)c->iv->micros);
        break;
    case CDCD_C_LIST: show_cells(b, '[', ']', c); break;
    case CDCD_C_MAP: show_cells(b, '{', '}', c); break;
    case CDCD_C_GEOM:
        cdcd_buf_addf(b, "%s/%u/", shapes[cdcd_cell_shape(c)], cdcd_cell_srid(c));
        show_bytes(b, "", c);
        break;
    default: cdcd_buf_addf(b, "kind %d", c->kind); break;
    }
}

static struct cdcd_column column(struct fixture *f, uint32_t oid, int32_t typmod)
{
    struct cdcd_column c = {.name = "col", .name_len = 3};

    pg_column_set_type(f->types, f->schema, &c, oid, typmod, NULL);
    return c;
}

/* The value shown, or "bad". The text lies in memory of exactly its size, for the sanitizers. */
static const char *parse(struct fixture *f, uint32_t oid, int32_t typmod, const char *text)
{
    struct cdcd_column c = column(f, oid, typmod);
    struct cdcd_cell cell;
    size_t n = strlen(text);
    char *exact = malloc(n ? n : 1);

    memcpy(exact, text, n);
    memset(&f->err, 0, sizeof f->err);
    cdcd_buf_clear(&f->shown);
    if (pg_cell_parse(&c, exact, n, &f->arena, &cell, &f->err) == CDCD_OK)
        show(&f->shown, &cell);
    else
        cdcd_buf_adds(&f->shown, "bad");
    free(exact);
    return cdcd_buf_cstr(&f->shown);
}

struct value {
    uint32_t oid;
    int32_t typmod;
    const char *text, *want;
};

static void check_values(struct fixture *f, const struct value *v, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const char *got = parse(f, v[i].oid, v[i].typmod, v[i].text);
        if (strcmp(got, v[i].want) != 0)
            fail_msg("type %u, text \"%s\": got %s, want %s (%s)", v[i].oid, v[i].text, got,
                     v[i].want, f->err.text);
        bool bad = strcmp(v[i].want, "bad") == 0;
        assert_int_equal(f->err.class, bad ? CDCD_ERR_DATA : CDCD_ERR_NONE);
        if (bad)
            assert_non_null(strstr(f->err.text, "col"));
    }
}
#define CHECK_VALUES(f, table) check_values(f, table, sizeof(table) / sizeof *(table))

static void numbers(void **state)
{
    static const struct value values[] = {
        {PG_OID_BOOL, -1, "t", "true"},
        {PG_OID_BOOL, -1, "f", "false"},
        {PG_OID_BOOL, -1, "", "bad"},
        {PG_OID_BOOL, -1, "true", "bad"},
        {PG_OID_INT2, -1, "-32768", "-32768"},
        {PG_OID_INT2, -1, "32767", "32767"},
        {PG_OID_INT2, -1, "32768", "bad"},
        {PG_OID_INT2, -1, "-32769", "bad"},
        {PG_OID_INT4, -1, "2147483647", "2147483647"},
        {PG_OID_INT4, -1, "-2147483648", "-2147483648"},
        {PG_OID_INT4, -1, "2147483648", "bad"},
        {PG_OID_INT8, -1, "9223372036854775807", "9223372036854775807"},
        {PG_OID_INT8, -1, "-9223372036854775808", "-9223372036854775808"},
        {PG_OID_INT8, -1, "9223372036854775808", "bad"},
        {PG_OID_INT8, -1, "-9223372036854775809", "bad"},
        {PG_OID_INT8, -1, "18446744073709551617", "bad"},
        {PG_OID_INT8, -1, "", "bad"},
        {PG_OID_INT8, -1, "-", "bad"},
        {PG_OID_INT8, -1, "1 ", "bad"},
        {PG_OID_INT8, -1, "+1", "bad"},
        {PG_OID_OID, -1, "4294967295", "4294967295"},
        {OID_POSINT, -1, "7", "7"},
        {PG_OID_FLOAT4, -1, "1.1", "f:1.1"},
        {PG_OID_FLOAT4, -1, "NaN", "f:NaN"},
        {PG_OID_FLOAT8, -1, "-0", "f:-0"},
        {PG_OID_FLOAT8, -1, "1e+300", "f:1e+300"},
        {PG_OID_FLOAT8, -1, "2.2250738585072014e-308", "f:2.2250738585072014e-308"},
        {PG_OID_FLOAT8, -1, "Infinity", "f:Infinity"},
        {PG_OID_FLOAT8, -1, "-Infinity", "f:-Infinity"},
        {PG_OID_FLOAT8, -1, "-NaN", "bad"},
        {PG_OID_FLOAT8, -1, "1e", "bad"},
        {PG_OID_FLOAT8, -1, "1.", "bad"},
        {PG_OID_FLOAT8, -1, ".5", "bad"},
        {PG_OID_FLOAT8, -1, "", "bad"},
        {PG_OID_NUMERIC, -1, "123456789.123456789", "n:123456789.123456789"},
        {PG_OID_NUMERIC, NUMERIC(10, 2), "-0.01", "n:-0.01"},
        {PG_OID_NUMERIC, -1, "NaN", "n:NaN"},
        {PG_OID_NUMERIC, -1, "-Infinity", "n:-Infinity"},
        {PG_OID_NUMERIC, -1, "1e5", "bad"},
        {PG_OID_NUMERIC, -1, "-", "bad"},
        {PG_OID_NUMERIC, -1, "", "bad"},
        {OID_AMOUNT_POS, -1, "12.50", "n:12.50"},
        {PG_OID_MONEY, -1, "$1,234.56", "n:1234.56"},
        {PG_OID_MONEY, -1, "-$0.01", "n:-0.01"},
        {PG_OID_MONEY, -1, "$-0.01", "n:-0.01"},
        {PG_OID_MONEY, -1, "-$92,233,720,368,547,758.08", "n:-92233720368547758.08"},
        {PG_OID_MONEY, -1, "($1.00)", "n:-1.00"},
        {PG_OID_MONEY, -1, "1.234,56 EUR", "n:1234.56"},
        {PG_OID_MONEY, -1, "$1,234", "n:1234"},
        {PG_OID_MONEY, -1, "$", "bad"},
    };
    CHECK_VALUES(*state, values);
}

static void text_and_bytes(void **state)
{
    static const struct value values[] = {
        {PG_OID_TEXT, -1, "", "''"},
        {PG_OID_TEXT, -1, "NULL", "'NULL'"},
        {PG_OID_TEXT, -1, "\\N", "'\\N'"},
        {PG_OID_BPCHAR, 9, "ab   ", "'ab   '"},
        {PG_OID_BPCHAR, 9, "\xc3\xb1    ", "'\xc3\xb1    '"},
        {OID_CITEXT, -1, "MiXed", "'MiXed'"},
        {OID_LTREE, -1, "a.b", "'a.b'"},
        {OID_INET, -1, "192.168.0.1/24", "'192.168.0.1/24'"},
        {PG_OID_TSVECTOR, -1, "'fox' 'quick':1A 'the'", "''fox' 'quick':1A 'the''"},
        {PG_OID_JSON, -1, "{\"a\": 1,  \"a\":2}", "'{\"a\": 1,  \"a\":2}'"},
        {PG_OID_CIRCLE, -1, "<(1,2),3>", "'<(1,2),3>'"},
        {PG_OID_LINE, -1, "{1,-1,0}", "'{1,-1,0}'"},
        {OID_INT2VECTOR, -1, "1 2 3", "'1 2 3'"},
        {OID_PAIR, -1, "(1,\"a \"\"q\"\", (b)\",ok)", "'(1,\"a \"\"q\"\", (b)\",ok)'"},
        {99999, -1, "whatever", "'whatever'"},
        {OID_MOOD, -1, "a label of tomorrow", "'a label of tomorrow'"},
        {PG_OID_UUID, -1, "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11",
         "'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11'"},
        {PG_OID_UUID, -1, "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a1", "bad"},
        {PG_OID_UUID, -1, "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a1g", "bad"},
        {PG_OID_UUID, -1, "a0eebc9909c0b-4ef8-bb6d-6bb9bd380a11", "bad"},
        {PG_OID_BYTEA, -1, "\\x", "x:"},
        {PG_OID_BYTEA, -1, "", "x:"},
        {PG_OID_BYTEA, -1, "\\xc0FFee00", "x:c0ffee00"},
        {PG_OID_BYTEA, -1, "\\xc", "bad"},
        {PG_OID_BYTEA, -1, "\\xzz", "bad"},
        {PG_OID_BYTEA, -1, "abc\\\\def\\300\\000", "x:6162635c646566c000"},
        {PG_OID_BYTEA, -1, "\\400", "bad"},
        {PG_OID_BYTEA, -1, "\\30", "bad"},
        {PG_OID_BYTEA, -1, "a\\", "bad"},
        {PG_OID_BIT, 1, "1", "true"},
        {PG_OID_BIT, 1, "0", "false"},
        {PG_OID_BIT, 1, "2", "bad"},
        {PG_OID_BIT, 8, "10101010", "x:aa"},
        {PG_OID_VARBIT, 16, "1010101", "x:55"},
        {PG_OID_BIT, 12, "100000000001", "x:0108"},
        {PG_OID_BIT, 16, "0000000000000001", "x:01"},
        {PG_OID_VARBIT, -1, "", "x:"},
        {PG_OID_VARBIT, -1, "102", "bad"},
    };
    CHECK_VALUES(*state, values);
}

static void times(void **state)
{
    static const struct value values[] = {
        {PG_OID_DATE, -1, "1970-01-01", "d:0"},
        {PG_OID_DATE, -1, "2024-02-29", "d:19782"},
        {PG_OID_DATE, -1, "infinity", "+inf"},
        {PG_OID_DATE, -1, "-infinity", "-inf"},
        {PG_OID_DATE, -1, "0044-03-15 BC", "d:-735160"},
        {PG_OID_DATE, -1, "0044-03-15", "d:-703383"},
        {PG_OID_DATE, -1, "0001-01-01", "d:-719162"},
        {PG_OID_DATE, -1, "1969-12-31", "d:-1"},
        {PG_OID_DATE, -1, "5874897-12-31", "d:2145042905"},
        {PG_OID_DATE, -1, "4714-11-24 BC", "d:-2440588"},
        {PG_OID_DATE, -1, "0001-02-29 BC", "d:-719469"},
        {PG_OID_DATE, -1, "2023-02-29", "bad"},
        {PG_OID_DATE, -1, "2023-13-01", "bad"},
        {PG_OID_DATE, -1, "2023-00-01", "bad"},
        {PG_OID_DATE, -1, "2023-04-31", "bad"},
        {PG_OID_DATE, -1, "0000-01-01", "bad"},
        {PG_OID_DATE, -1, "03.02.2024", "bad"},
        {PG_OID_DATE, -1, "2024-02-2", "bad"},
        {PG_OID_DATE, -1, "2024-02-20 ", "bad"},
        {PG_OID_DATE, -1, "", "bad"},
        {PG_OID_TIME, -1, "24:00:00", "t:86400000000"},
        {PG_OID_TIME, -1, "00:00:00", "t:0"},
        {PG_OID_TIME, -1, "00:00:00.000001", "t:1"},
        {PG_OID_TIME, -1, "23:59:59.999999", "t:86399999999"},
        {PG_OID_TIME, 3, "13:14:15.1", "t:47655100000"},
        {PG_OID_TIME, -1, "24:00:00.000001", "bad"},
        {PG_OID_TIME, -1, "12:60:00", "bad"},
        {PG_OID_TIME, -1, "12:00", "bad"},
        {PG_OID_TIME, -1, "12:00:00.", "bad"},
        {PG_OID_TIMETZ, -1, "13:14:15.123456+02:30", "'10:44:15.123456Z'"},
        {PG_OID_TIMETZ, -1, "23:59:59.999999-15:59", "'15:58:59.999999Z'"},
        {PG_OID_TIMETZ, -1, "00:00:00.000001+15:59", "'08:01:00.000001Z'"},
        {PG_OID_TIMETZ, -1, "12:00:00+05:45", "'06:15:00Z'"},
        {PG_OID_TIMETZ, -1, "12:00:00-03:30", "'15:30:00Z'"},
        {PG_OID_TIMETZ, -1, "12:00:00.5+00:00:01", "'11:59:59.5Z'"},
        {PG_OID_TIMETZ, -1, "00:00:00+00", "'00:00:00Z'"},
        {PG_OID_TIMETZ, -1, "24:00:00+00", "'24:00:00Z'"},
        {PG_OID_TIMETZ, -1, "24:00:00+02", "'22:00:00Z'"},
        {PG_OID_TIMETZ, -1, "24:00:00-02", "'02:00:00Z'"},
        {PG_OID_TIMETZ, -1, "12:00:00.100100+00", "'12:00:00.1001Z'"},
        {PG_OID_TIMETZ, -1, "12:00:00", "bad"},
        {PG_OID_TIMETZ, -1, "12:00:00+16", "bad"},
        {PG_OID_TIMETZ, -1, "12:00:00+0", "bad"},
        {PG_OID_TIMESTAMP, -1, "2024-02-29 13:14:15.123456", "ts:1709212455.123456000"},
        {PG_OID_TIMESTAMP, -1, "0044-03-15 12:00:00.5 BC", "ts:-63517780800.500000000"},
        {PG_OID_TIMESTAMP, -1, "0044-03-15 12:00:00", "ts:-60772248000.000000000"},
        {PG_OID_TIMESTAMP, -1, "1969-12-31 23:59:59.999999", "ts:-1.999999000"},
        {PG_OID_TIMESTAMP, -1, "294247-01-10 04:00:54.775807", "ts:9223372036854.775807000"},
        {PG_OID_TIMESTAMP, -1, "294276-12-31 23:59:59.999999", "ts:9224318015999.999999000"},
        {PG_OID_TIMESTAMP, 3, "4714-11-24 00:00:00 BC", "ts:-210866803200.000000000"},
        {PG_OID_TIMESTAMP, -1, "infinity", "+inf"},
        {PG_OID_TIMESTAMP, -1, "-infinity", "-inf"},
        {PG_OID_TIMESTAMP, -1, "2024-02-29", "bad"},
        {PG_OID_TIMESTAMP, -1, "2024-02-29T13:14:15", "bad"},
        {PG_OID_TIMESTAMP, -1, "2024-02-29 13:14:15+00", "bad"},
        {PG_OID_TIMESTAMP, -1, "2024-02-29 13:14:15 AD", "bad"},
        {PG_OID_TIMESTAMPTZ, -1, "2024-02-29 11:14:15.123456+00", "ts:1709205255.123456000"},
        {PG_OID_TIMESTAMPTZ, -1, "2024-02-29 13:14:15.123456+02", "ts:1709205255.123456000"},
        {PG_OID_TIMESTAMPTZ, -1, "2024-02-29 05:29:15-05:45", "ts:1709205255.000000000"},
        {PG_OID_TIMESTAMPTZ, -1, "0044-03-15 12:00:00+00 BC", "ts:-63517780800.000000000"},
        {PG_OID_TIMESTAMPTZ, -1, "1900-01-01 00:00:00+00", "ts:-2208988800.000000000"},
        {PG_OID_TIMESTAMPTZ, -1, "infinity", "+inf"},
        {PG_OID_TIMESTAMPTZ, -1, "2024-02-29 11:14:15", "bad"},
        {PG_OID_INTERVAL, -1, "1 year 2 mons 3 days 04:05:06.789", "iv:14/3/14706789000"},
        {PG_OID_INTERVAL, -1, "1 mon -1 days +00:00:01", "iv:1/-1/1000000"},
        {PG_OID_INTERVAL, -1, "-2 years -3 mons +4 days -05:06:07.000008", "iv:-27/4/-18367000008"},
        {PG_OID_INTERVAL, -1, "-00:00:00.654321", "iv:0/0/-654321"},
        {PG_OID_INTERVAL, -1, "00:00:00", "iv:0/0/0"},
        {PG_OID_INTERVAL, -1, "-1 days +23:59:59", "iv:0/-1/86399000000"},
        {PG_OID_INTERVAL, -1, "178000000 years", "iv:2136000000/0/0"},
        {PG_OID_INTERVAL, -1, "-178000000 years", "iv:-2136000000/0/0"},
        {PG_OID_INTERVAL, -1, "-178956970 years -8 mons", "iv:-2147483648/0/0"},
        {PG_OID_INTERVAL, -1, "1 day", "iv:0/1/0"},
        {PG_OID_INTERVAL, -1, "-2147483648 days", "iv:0/-2147483648/0"},
        {PG_OID_INTERVAL, -1, "2562047788:00:54.775807", "iv:0/0/9223372036854775807"},
        {PG_OID_INTERVAL, -1, "-2562047788:00:54.775808", "iv:0/0/-9223372036854775808"},
        {PG_OID_INTERVAL, -1, "2562047788:00:54.775808", "bad"},
        {PG_OID_INTERVAL, -1, "99999999999:00:00", "bad"},
        {PG_OID_INTERVAL, -1, "178956971 years", "bad"},
        {PG_OID_INTERVAL, -1, "infinity", "+inf"},
        {PG_OID_INTERVAL, -1, "-infinity", "-inf"},
        {PG_OID_INTERVAL, -1, "+1-2 -3 +4:05:06", "bad"},
        {PG_OID_INTERVAL, -1, "1 day 2", "bad"},
        {PG_OID_INTERVAL, -1, "1 day ", "bad"},
        {PG_OID_INTERVAL, -1, "1 daily", "bad"},
        {PG_OID_INTERVAL, -1, "04:05:06 1 day", "bad"},
        {PG_OID_INTERVAL, -1, "", "bad"},
    };
    CHECK_VALUES(*state, values);
}

static void arrays(void **state)
{
    static const struct value values[] = {
        {OID_TEXT_ARRAY, -1, "{}", "[]"},
        {OID_TEXT_ARRAY, -1, "{\"\"}", "['']"},
        {OID_TEXT_ARRAY, -1, "{NULL,\"NULL\",NULL,\"null\"}", "[null 'NULL' null 'null']"},
        {OID_TEXT_ARRAY, -1,
         "{\"a,b\",\"q\\\"uote\",\"back\\\\slash\",\"{br}\",\" sp \",\"new\nline\",\"tab\t\"}",
         "['a,b' 'q\"uote' 'back\\slash' '{br}' ' sp ' 'new\nline' 'tab\t']"},
        {OID_TEXT_ARRAY, -1, "[2:3][-1:0]={{a,b},{c,d}}", "[['a' 'b'] ['c' 'd']]"},
        {OID_TEXT_ARRAY, -1, "{{{x}}}", "[[['x']]]"},
        {OID_INT4_ARRAY, -1, "{1,2,NULL}", "[1 2 null]"},
        {OID_INT4_ARRAY, -1, "{NULL}", "[null]"},
        {OID_INT4_ARRAY, -1, "{{1,2},{3,NULL}}", "[[1 2] [3 null]]"},
        {OID_INT4_ARRAY, -1, "[0:1]={7,8}", "[7 8]"},
        {OID_INT4_ARRAY, -1, "[5:5]={9}", "[9]"},
        {OID_INT4_ARRAY, -1, "{{{{{{1}}}}}}", "[[[[[[1]]]]]]"},
        {OID_INT4_ARRAY, -1, "{{{{{{{1}}}}}}}", "bad"},
        {OID_INT4_ARRAY, -1, "{1,x}", "bad"},
        {OID_INT4_ARRAY, -1, "{1,}", "bad"},
        {OID_INT4_ARRAY, -1, "{,1}", "bad"},
        {OID_INT4_ARRAY, -1, "{1", "bad"},
        {OID_INT4_ARRAY, -1, "{\"1", "bad"},
        {OID_INT4_ARRAY, -1, "{\"1\\", "bad"},
        {OID_INT4_ARRAY, -1, "{1}}", "bad"},
        {OID_INT4_ARRAY, -1, "1", "bad"},
        {OID_INT4_ARRAY, -1, "", "bad"},
        {OID_INT4_ARRAY, -1, "[0:1]", "bad"},
        {OID_INT4_ARRAY, -1, "[0:1]=", "bad"},
        {OID_NUMERIC_ARRAY, NUMERIC(10, 2), "{1.10,-0.01}", "[n:1.10 n:-0.01]"},
        {OID_TIMESTAMPTZ_ARRAY, -1, "{infinity,\"0044-03-15 12:00:00+00 BC\"}",
         "[+inf ts:-63517780800.000000000]"},
        {OID_INTERVAL_ARRAY, -1, "{\"1 day\",00:00:01}", "[iv:0/1/0 iv:0/0/1000000]"},
        {OID_BYTEA_ARRAY, -1, "{\"\\\\x00ff\",\"\\\\x\"}", "[x:00ff x:]"},
        {OID_JSONB_ARRAY, -1, "{\"{\\\"a\\\": \\\"b,c\\\"}\",\"[1, \\\"}\\\"]\"}",
         "['{\"a\": \"b,c\"}' '[1, \"}\"]']"},
        {OID_MONEY_ARRAY, -1, "{\"$1,234.56\",-$0.01}", "[n:1234.56 n:-0.01]"},
        {OID_BIT_ARRAY, 1, "{1,0}", "[true false]"},
        {OID_BIT_ARRAY, 4, "{1010}", "[x:0a]"},
        {OID_BOX_ARRAY, -1, "{(3,4),(1,2);(7,8),(5,6)}", "['(3,4),(1,2)' '(7,8),(5,6)']"},
        {OID_POINT_ARRAY, -1, "{\"(1,2)\",NULL}", "['(1,2)' null]"},
        {OID_INT2VECTOR_ARRAY, -1, "{\"1 2\",3}", "['1 2' '3']"},
        {OID_MOOD_ARRAY, -1, "{sad,NULL,\"very happy, \\\"quoted\\\"\"}",
         "['sad' null 'very happy, \"quoted\"']"},
        {OID_POSINT_ARRAY, -1, "{1,2}", "[1 2]"},
        {OID_TAGLIST, -1, "{x,\"y z\"}", "['x' 'y z']"},
        {OID_TAGLIST_ARRAY, -1, "{\"{x,\\\"y z\\\"}\",NULL}", "[['x' 'y z'] null]"},
        {OID_PAIR_ARRAY, -1, "{\"(1,,)\",NULL,\"(,\\\"\\\",)\"}", "['(1,,)' null '(,\"\",)']"},
        {OID_HSTORE_ARRAY, -1, "{\"\\\"a\\\"=>\\\"1\\\"\"}", "[{'a' '1'}]"},
        {OID_VECTOR_ARRAY, -1, "{\"[1,2]\"}", "['[1,2]']"},
        {OID_GEOMETRY_ARRAY, -1, "{010100000000000000000000000000000000000000:010700000000000000}",
         "[/0/010100000000000000000000000000000000000000 /0/010700000000000000]"},
    };
    CHECK_VALUES(*state, values);
}

static void nested(void **state)
{
    static const struct value values[] = {
        {OID_HSTORE, -1, "", "{}"},
        {OID_HSTORE, -1, "\"a\"=>\"1\", \"b\"=>NULL", "{'a' '1' 'b' null}"},
        {OID_HSTORE, -1, "\"q\\\"k\"=>\"NULL\", \"\"=>\"b\\\\, \\\"x\\\"=>\"",
         "{'q\"k' 'NULL' '' 'b\\, \"x\"=>'}"},
        {OID_HSTORE, -1, "a=>1", "bad"},
        {OID_HSTORE, -1, "\"a\"=>", "bad"},
        {OID_HSTORE, -1, "\"a\"", "bad"},
        {OID_HSTORE, -1, "\"a\"=>\"1\",", "bad"},
        {OID_HSTORE, -1, "\"a\"=>\"1\", ", "bad"},
        {OID_HSTORE, -1, "\"a\"=>\"1", "bad"},
        {PG_OID_POINT, -1, "(1.5,-2.25)", "[f:1.5 f:-2.25]"},
        {PG_OID_POINT, -1, "(1e+300,NaN)", "[f:1e+300 f:NaN]"},
        {PG_OID_POINT, -1, "(1.5)", "bad"},
        {PG_OID_POINT, -1, "(1,2", "bad"},
        {PG_OID_POINT, -1, "(1,2,3)", "bad"},
        {OID_VECTOR, 7, "[1,2.5,-3]", "[f:1 f:2.5 f:-3]"},
        {OID_VECTOR, -1, "[]", "[]"},
        {OID_VECTOR, -1, "[1,]", "bad"},
        {OID_VECTOR, -1, "[1", "bad"},
        {OID_HALFVEC, -1, "[1]", "[f:1]"},
        {OID_SPARSEVEC, -1, "{1:1.5,3:2}/5", "[5 1 f:1.5 3 f:2]"},
        {OID_SPARSEVEC, -1, "{}/5", "[5]"},
        {OID_SPARSEVEC, -1, "{1:1.5}", "bad"},
        {OID_SPARSEVEC, -1, "{1}/5", "bad"},
        {OID_VECTOR_ENUM, -1, "[1]", "'[1]'"},
        {PG_OID_BOX, -1, "(3,4),(1,2)",
         "box/0/01030000000100000005000000000000000000084000000000000010400000000000000840"
         "0000000000000040000000000000f03f0000000000000040000000000000f03f0000000000001040"
         "00000000000008400000000000001040"},
        {PG_OID_LSEG, -1, "[(1,2),(3,4)]",
         "lseg/0/"
         "010200000002000000000000000000f03f000000000000004000000000000008400000000000001040"},
        {PG_OID_PATH, -1, "[(1,2)]", "open/0/010200000001000000000000000000f03f0000000000000040"},
        {PG_OID_PATH, -1, "((1,2))", "closed/0/010200000001000000000000000000f03f0000000000000040"},
        {PG_OID_POLYGON, -1, "((0,0),(1,0),(0,1))",
         "polygon/0/0103000000010000000400000000000000000000000000000000000000000000000000f03f"
         "00000000000000000000000000000000000000000000f03f00000000000000000000000000000000"},
        {PG_OID_POLYGON, -1, "((1,2))",
         "polygon/0/01030000000100000001000000000000000000f03f0000000000000040"},
        {PG_OID_LSEG, -1, "[(1,2)]", "bad"},
        {PG_OID_LSEG, -1, "((1,2),(3,4))", "bad"},
        {PG_OID_BOX, -1, "(3,4)", "bad"},
        {PG_OID_PATH, -1, "[(1,2))", "bad"},
        {PG_OID_PATH, -1, "[]", "bad"},
        {PG_OID_POLYGON, -1, "(1,2)", "bad"},
        {OID_GEOMETRY, -1, "0101000020E6100000000000000000F03F0000000000000040",
         "/4326/0101000020e6100000000000000000f03f0000000000000040"},
        {OID_GEOMETRY, -1, "010100002031BF0D00000000000000F03F0000000000000040",
         "/900913/010100002031bf0d00000000000000f03f0000000000000040"},
        {OID_GEOMETRY, -1, "0020000001000010e63ff00000000000004000000000000000",
         "/4326/0020000001000010e63ff00000000000004000000000000000"},
        {OID_GEOMETRY, -1, "0101000000000000000000F03F0000000000000040",
         "/0/0101000000000000000000f03f0000000000000040"},
        {OID_GEOMETRY, -1, "0101", "bad"},
        {OID_GEOMETRY, -1, "0101000020", "bad"},
        {OID_GEOMETRY, -1, "010100000000000000zz", "bad"},
    };
    CHECK_VALUES(*state, values);
}

static void columns(void **state)
{
    static const struct {
        uint32_t oid;
        int32_t typmod;
        enum cdcd_type type;
        int32_t length, scale;
        const char *name;
    } want[] = {
        {PG_OID_NUMERIC, -1, CDCD_T_VARDECIMAL, -1, -1, "numeric"},
        {PG_OID_NUMERIC, NUMERIC(10, 2), CDCD_T_DECIMAL, 10, 2, "numeric"},
        {PG_OID_NUMERIC, NUMERIC(1000, 1000), CDCD_T_DECIMAL, 1000, 1000, "numeric"},
        {PG_OID_NUMERIC, NUMERIC(5, 0), CDCD_T_DECIMAL, 5, 0, "numeric"},
        {PG_OID_NUMERIC, NUMERIC(5, -2), CDCD_T_DECIMAL, 5, -2, "numeric"},
        {PG_OID_NUMERIC, NUMERIC(3, -1000), CDCD_T_DECIMAL, 3, -1000, "numeric"},
        {OID_AMOUNT_POS, -1, CDCD_T_DECIMAL, 10, 2, "numeric"},
        {PG_OID_MONEY, -1, CDCD_T_MONEY, -1, 2, "money"},
        {PG_OID_VARCHAR, 24, CDCD_T_STRING, 20, -1, "varchar"},
        {PG_OID_BPCHAR, 9, CDCD_T_STRING, 5, -1, "bpchar"},
        {PG_OID_TEXT, -1, CDCD_T_STRING, -1, -1, "text"},
        {PG_OID_BIT, 1, CDCD_T_BOOL, -1, -1, "bit"},
        {PG_OID_BIT, 8, CDCD_T_BITS, 8, -1, "bit"},
        {PG_OID_VARBIT, 1, CDCD_T_BITS, 1, -1, "varbit"},
        {PG_OID_VARBIT, -1, CDCD_T_BITS, INT32_MAX, -1, "varbit"},
        {PG_OID_TIMESTAMP, -1, CDCD_T_TIMESTAMP, -1, 6, "timestamp"},
        {PG_OID_TIMESTAMP, 3, CDCD_T_TIMESTAMP, -1, 3, "timestamp"},
        {PG_OID_TIMESTAMPTZ, 0, CDCD_T_TIMESTAMPTZ, -1, 0, "timestamptz"},
        {PG_OID_TIME, -1, CDCD_T_TIME, -1, 6, "time"},
        {PG_OID_TIMETZ, -1, CDCD_T_TIMETZ, -1, 6, "timetz"},
        {PG_OID_OID, -1, CDCD_T_INT64, -1, -1, "oid"},
        {PG_OID_CHAR, -1, CDCD_T_STRING, -1, -1, "char"},
        {OID_POSINT, -1, CDCD_T_INT32, -1, -1, "int4"},
        {OID_PAIR, -1, CDCD_T_STRING, -1, -1, "public.pair"},
        {OID_GEOMETRY, -1, CDCD_T_GEOMETRY, -1, -1, "public.geometry"},
        {OID_TAGLIST, -1, CDCD_T_ARRAY, -1, -1, "_text"},
        {424242, -1, CDCD_T_STRING, -1, -1, "type 424242"},
    };
    struct fixture *f = *state;

    for (size_t i = 0; i < sizeof want / sizeof *want; i++) {
        struct cdcd_column c = column(f, want[i].oid, want[i].typmod);
        if (c.type != want[i].type || c.length != want[i].length || c.scale != want[i].scale)
            fail_msg("type %u(%d): got %d %d %d", want[i].oid, want[i].typmod, (int)c.type,
                     (int)c.length, (int)c.scale);
        assert_string_equal(c.type_name, want[i].name);
        assert_int_equal(c.source_type, want[i].oid);
    }
}

static void column_elements_and_labels(void **state)
{
    struct fixture *f = *state;
    struct cdcd_column c = column(f, OID_NUMERIC_ARRAY, NUMERIC(10, 2));
    bool unknown;

    assert_int_equal(c.elem->type, CDCD_T_DECIMAL);
    assert_int_equal(c.elem->scale, 2);
    assert_true(c.elem->optional);
    c = column(f, OID_MOOD_ARRAY, -1);
    assert_int_equal(c.elem->type, CDCD_T_ENUM);
    assert_string_equal(c.elem->labels[2], mood_labels[2]);
    assert_null(c.elem->labels[3]);
    c = column(f, OID_BOX_ARRAY, -1);
    assert_int_equal(c.elem->type, CDCD_T_STRING);
    c = column(f, OID_TAGLIST_ARRAY, -1);
    assert_int_equal(c.elem->type, CDCD_T_ARRAY);
    assert_int_equal(c.elem->elem->type, CDCD_T_STRING);

    pg_column_set_type(f->types, f->schema, &c, 424242, -1, &unknown);
    assert_true(unknown);
    pg_column_set_type(f->types, f->schema, &c, PG_OID_INT4, -1, &unknown);
    assert_false(unknown);
    column(f, OID_LOOP, -1); /* a catalogue that contradicts itself must not loop */
}

static void catalogue(void **state)
{
    struct fixture *f = *state;
    char *labels[] = {"blue", "ok", NULL};
    struct pg_type mood = {
        .oid = OID_MOOD, .name = "public.mood", .typtype = 'e', .labels = labels};
    const struct pg_type *before, *after;

    assert_int_equal(pg_types_get(f->types, NULL, OID_MOOD, false, &before, &f->err), CDCD_OK);
    assert_string_equal(before->labels[0], "sad");
    pg_types_put(f->types, &mood);
    assert_int_equal(pg_types_get(f->types, NULL, OID_MOOD, true, &after, &f->err), CDCD_OK);
    assert_ptr_equal(before, after);
    assert_string_equal(after->labels[0], "blue");
    assert_int_equal(pg_types_get(f->types, NULL, 1, true, &after, &f->err), CDCD_OK);
    assert_null(after);
    for (uint32_t oid = 30000; oid < 40000; oid++) {
        struct pg_type t = {.oid = oid, .name = "n"};
        pg_types_put(f->types, &t);
    }
    for (uint32_t oid = 30000; oid < 40000; oid++)
        assert_int_equal(pg_types_find(f->types, oid)->oid, oid);
    assert_string_equal(pg_types_find(f->types, PG_OID_INT4)->name, "int4");
}

static void error_text(void **state)
{
    struct fixture *f = *state;
    char text[200];

    parse(f, PG_OID_DATE, -1, "03.02.2024\nx");
    assert_non_null(strstr(f->err.text, "column \"col\""));
    assert_non_null(strstr(f->err.text, "\"03.02.2024?x\" (12 bytes) as date"));
    memset(text, 'x', sizeof text - 1);
    text[sizeof text - 1] = '\0';
    memcpy(text + 75, "\xf0\x9f\x90\x98", 4); /* not to be cut in two */
    parse(f, PG_OID_INT4, -1, text);
    assert_non_null(strstr(f->err.text, "xxx...\" (199 bytes) as int4"));
    assert_null(strchr(f->err.text, (char)0xf0));
}

/* has_default, and the constant as a cell */
static void defaults(void **state)
{
    static const struct {
        uint32_t oid;
        int32_t typmod;
        const char *expr, *want; /* NULL: no default; "?": computed */
    } want[] = {
        {PG_OID_INT4, -1, "5", "5"},
        {PG_OID_INT8, -1, "5", "5"},
        {PG_OID_INT2, -1, "'-5'::integer", "-5"},
        {PG_OID_INT2, -1, "(5)::smallint", "5"},
        {PG_OID_INT8, -1, "'9223372036854775807'::bigint", "9223372036854775807"},
        {PG_OID_INT4, -1, "('1.6'::numeric)::integer", NULL},
        {PG_OID_INT4, -1, "(1 + 2)", NULL},
        {PG_OID_INT4, -1, "NULL::integer", NULL},
        {PG_OID_INT8, -1, "nextval('t_id_seq'::regclass)", "?"},
        {PG_OID_INT8, -1, "nextval('public.\"T_id_seq\"'::regclass)", "?"},
        {PG_OID_NUMERIC, NUMERIC(10, 2), "0", "n:0.00"},
        {PG_OID_NUMERIC, NUMERIC(10, 2), "'-1.5'::numeric", "n:-1.50"},
        {PG_OID_NUMERIC, NUMERIC(5, 2), "1.234", NULL},
        {PG_OID_NUMERIC, NUMERIC(5, 2), "'NaN'::numeric", "n:NaN"},
        {PG_OID_NUMERIC, -1, "1.234", "n:1.234"},
        {PG_OID_TEXT, -1, "'a''b\\c'::text", "'a'b\\c'"},
        {PG_OID_TEXT, -1, "''::text", "''"},
        {PG_OID_TEXT, -1, "'NULL'::text", "'NULL'"},
        {PG_OID_TEXT, -1, "'a\nb'::text", "'a\nb'"},
        {PG_OID_TEXT, -1, "('a'::text || 'b'::text)", NULL},
        {PG_OID_TEXT, -1, "'x'::text COLLATE \"C\"", "'x'"},
        {PG_OID_TEXT, -1, "CURRENT_USER", "?"},
        {PG_OID_VARCHAR, 9, "'x'::character varying", "'x'"},
        {PG_OID_BPCHAR, 9, "'ab'::bpchar", "'ab'"},
        {PG_OID_BPCHAR, 9, "'ab'::character(5)", "'ab'"},
        {PG_OID_BOOL, -1, "true", "true"},
        {PG_OID_BOOL, -1, "false", "false"},
        {PG_OID_BOOL, -1, "(1 = 1)", NULL},
        {PG_OID_FLOAT8, -1, "1.5", "f:1.5"},
        {PG_OID_FLOAT4, -1, "'-Infinity'::real", "f:-Infinity"},
        {PG_OID_FLOAT8, -1, "(0)::double precision", "f:0"},
        {PG_OID_TIMESTAMP, -1, "now()", "?"},
        {PG_OID_TIMESTAMP, -1, "(now() AT TIME ZONE 'utc'::text)", "?"},
        {PG_OID_TIMESTAMPTZ, -1, "(now() + '1 day'::interval)", "?"},
        {PG_OID_TIMESTAMPTZ, -1, "'2019-12-31 22:00:00+00'::timestamp with time zone",
         "ts:1577829600.000000000"},
        {PG_OID_TIMESTAMPTZ, -1, "CURRENT_TIMESTAMP", "?"},
        {PG_OID_TIMESTAMPTZ, -1, "CURRENT_TIMESTAMP(3)", "?"},
        {PG_OID_DATE, -1, "CURRENT_DATE", "?"},
        {PG_OID_DATE, -1, "('now'::text)::date", NULL},
        {PG_OID_DATE, -1, "'2020-01-01'::date", "d:18262"},
        {PG_OID_TIME, -1, "'10:00:00'::time without time zone", "t:36000000000"},
        {PG_OID_INTERVAL, -1, "'1 day'::interval", "iv:0/1/0"},
        {PG_OID_BIT, 4, "'1010'::\"bit\"", "x:0a"},
        {PG_OID_UUID, -1, "gen_random_uuid()", "?"},
        {PG_OID_UUID, -1, "public.uuid_generate_v4()", "?"},
        {PG_OID_JSONB, -1, "'{}'::jsonb", "'{}'"},
        {OID_MOOD, -1, "'ok'::public.mood", "'ok'"},
        {OID_MOOD, -1, "'ok'::\"odd ::'name\".mood", "'ok'"},
        {OID_AMOUNT_POS, -1, "5", "n:5.00"},
        {OID_TEXT_ARRAY, -1, "'{}'::text[]", NULL},
        {PG_OID_BYTEA, -1, "'\\x00'::bytea", NULL},
        {PG_OID_INT4, -1, "", NULL},
        {PG_OID_TEXT, -1, "'", NULL},
        {PG_OID_TEXT, -1, "'x'::", NULL},
        {PG_OID_TEXT, -1, "((((((((((((((((((((((((((((((1", NULL},
    };
    struct fixture *f = *state;

    for (size_t i = 0; i < sizeof want / sizeof *want; i++) {
        struct cdcd_column c = column(f, want[i].oid, want[i].typmod);
        size_t n = strlen(want[i].expr);
        char *exact = malloc(n ? n : 1);
        memcpy(exact, want[i].expr, n);
        pg_column_set_default(f->schema, &c, (struct cdcd_slice){exact, n});
        free(exact);
        cdcd_buf_clear(&f->shown);
        if (c.default_cell)
            show(&f->shown, c.default_cell);
        else if (c.has_default)
            cdcd_buf_adds(&f->shown, "?");
        const char *got = cdcd_buf_cstr(&f->shown), *expect = want[i].want ? want[i].want : "";
        if (strcmp(got, expect) != 0)
            fail_msg("default %s: got %s, want %s", want[i].expr, got, expect);
        assert_int_equal(c.has_default, want[i].want != NULL);
        assert_int_equal(c.default_cell != NULL, c.default_text != NULL);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(numbers, set_up, tear_down),
        cmocka_unit_test_setup_teardown(text_and_bytes, set_up, tear_down),
        cmocka_unit_test_setup_teardown(times, set_up, tear_down),
        cmocka_unit_test_setup_teardown(arrays, set_up, tear_down),
        cmocka_unit_test_setup_teardown(nested, set_up, tear_down),
        cmocka_unit_test_setup_teardown(columns, set_up, tear_down),
        cmocka_unit_test_setup_teardown(column_elements_and_labels, set_up, tear_down),
        cmocka_unit_test_setup_teardown(catalogue, set_up, tear_down),
        cmocka_unit_test_setup_teardown(error_text, set_up, tear_down),
        cmocka_unit_test_setup_teardown(defaults, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
