/*
 * types: the catalogue of types, what a column of a type is in our terms, and the way from the
 * server's text to a cell.
 */
#include "types.h"

#include <stdlib.h>

/* ---- the catalogue: an open-addressed table by oid; entries keep their address ---- */

struct pg_types {
    struct pg_type **slot;
    size_t n, cap; /* cap is a power of two */
};

struct pg_types *pg_types_new(void)
{
    struct pg_types *t = cdcd_xcalloc(1, sizeof *t);

    t->cap = 1024;
    t->slot = cdcd_xcalloc(t->cap, sizeof *t->slot);
    return t;
}

static void type_clear(struct pg_type *e)
{
    free(e->name);
    free(e->schema);
    free(e->bare_name);
    for (char **l = e->labels; l && *l; l++)
        free(*l);
    free(e->labels);
    memset(e, 0, sizeof *e);
}

void pg_types_free(struct pg_types *t)
{
    if (!t)
        return;
    for (size_t i = 0; i < t->cap; i++) {
        if (t->slot[i]) {
            type_clear(t->slot[i]);
            free(t->slot[i]);
        }
    }
    free(t->slot);
    free(t);
}

static size_t slot_of(const struct pg_types *t, uint32_t oid)
{
    size_t i = (oid * UINT32_C(2654435769)) & (t->cap - 1);

    while (t->slot[i] && t->slot[i]->oid != oid)
        i = (i + 1) & (t->cap - 1);
    return i;
}

const struct pg_type *pg_types_find(const struct pg_types *t, uint32_t oid)
{
    return t->slot[slot_of(t, oid)];
}

static void types_grow(struct pg_types *t)
{
    struct pg_type **old = t->slot;
    size_t cap = t->cap;

    t->cap *= 2;
    t->slot = cdcd_xcalloc(t->cap, sizeof *t->slot);
    for (size_t i = 0; i < cap; i++) {
        if (old[i])
            t->slot[slot_of(t, old[i]->oid)] = old[i];
    }
    free(old);
}

/* The entry of an oid, emptied if it is there. */
static struct pg_type *types_entry(struct pg_types *t, uint32_t oid)
{
    size_t i = slot_of(t, oid);

    if (t->slot[i]) {
        type_clear(t->slot[i]);
    } else {
        if ((t->n + 1) * 2 > t->cap) {
            types_grow(t);
            i = slot_of(t, oid);
        }
        t->slot[i] = cdcd_xcalloc(1, sizeof *t->slot[i]);
        t->n++;
    }
    t->slot[i]->oid = oid;
    return t->slot[i];
}

static void add_label(struct pg_type *e, size_t n, const char *label)
{
    e->labels = cdcd_xrealloc(e->labels, (n + 2) * sizeof *e->labels);
    e->labels[n] = cdcd_xstrdup(label);
    e->labels[n + 1] = NULL;
}

void pg_types_put(struct pg_types *t, const struct pg_type *type)
{
    struct pg_type *e = types_entry(t, type->oid);
    const char *bare = type->bare_name ? type->bare_name : type->name ? type->name : "";

    e->name = cdcd_xstrdup(type->name ? type->name : bare);
    e->schema = cdcd_xstrdup(type->schema ? type->schema : "");
    e->bare_name = cdcd_xstrdup(bare);
    e->typtype = type->typtype ? type->typtype : 'b';
    e->delim = type->delim ? type->delim : ',';
    e->elem = type->elem;
    e->base = type->base;
    e->base_typmod = type->base_typmod;
    for (size_t i = 0; type->labels && type->labels[i]; i++)
        add_label(e, i, type->labels[i]);
}

/* ---- reading it ---- */

/* Only true arrays have an element type here: int2vector, point and others have typelem set too,
 * but print another text. */
#define TYPE_COLUMNS                                                                      \
    "SELECT t.oid, n.nspname, t.typname, t.typtype, t.typdelim,"                          \
    " CASE WHEN t.typoutput = 'pg_catalog.array_out'::pg_catalog.regproc"                 \
    " THEN t.typelem ELSE 0 END, t.typbasetype, t.typtypmod, e.enumlabel"                 \
    " FROM pg_catalog.pg_type t JOIN pg_catalog.pg_namespace n ON n.oid = t.typnamespace" \
    " LEFT JOIN pg_catalog.pg_enum e ON e.enumtypid = t.oid"

static const char load_sql[] = TYPE_COLUMNS
    /* The row types of tables, and arrays of them, are read when a column is of one. */
    " LEFT JOIN pg_catalog.pg_type m ON m.oid = t.typelem"
    " WHERE t.typtype <> 'c' AND m.typtype IS DISTINCT FROM 'c'"
    " ORDER BY t.oid, e.enumsortorder";

static const char refresh_sql[] =
    "WITH RECURSIVE need(oid) AS (SELECT u FROM pg_catalog.unnest($1::pg_catalog.oid[]) u"
    " UNION SELECT v.x FROM need JOIN pg_catalog.pg_type t ON t.oid = need.oid,"
    " LATERAL (VALUES (t.typelem), (t.typbasetype)) v(x) WHERE v.x <> 0) " TYPE_COLUMNS
    " WHERE t.oid IN (SELECT oid FROM need) ORDER BY t.oid, e.enumsortorder";

static uint32_t oid_at(const PGresult *r, int row, int col)
{
    return (uint32_t)strtoul(PQgetvalue(r, row, col), NULL, 10);
}

/* One row a type, or one a label of an enum, in order. */
static void types_fill(struct pg_types *t, const PGresult *r)
{
    struct pg_type *e = NULL;
    size_t nlabels = 0;

    for (int i = 0; i < PQntuples(r); i++) {
        uint32_t oid = oid_at(r, i, 0);
        if (!e || e->oid != oid) {
            const char *schema = PQgetvalue(r, i, 1), *name = PQgetvalue(r, i, 2);
            e = types_entry(t, oid);
            e->schema = cdcd_xstrdup(schema);
            e->bare_name = cdcd_xstrdup(name);
            e->name = strcmp(schema, "pg_catalog") == 0 ? cdcd_xstrdup(name)
                                                        : cdcd_xasprintf("%s.%s", schema, name);
            e->typtype = *PQgetvalue(r, i, 3);
            e->delim = *PQgetvalue(r, i, 4);
            e->elem = oid_at(r, i, 5);
            e->base = oid_at(r, i, 6);
            e->base_typmod = (int32_t)strtol(PQgetvalue(r, i, 7), NULL, 10);
            nlabels = 0;
        }
        if (!PQgetisnull(r, i, 8))
            add_label(e, nlabels++, PQgetvalue(r, i, 8));
    }
}

enum cdcd_rc pg_types_load(struct pg_types *t, PGconn *sql, struct cdcd_error *err)
{
    PGresult *r = NULL;

    if (pg_query(sql, &r, err, load_sql, 0, NULL) != CDCD_OK)
        return cdcd_error_context(err, "reading the data types");
    types_fill(t, r);
    PQclear(r);
    return CDCD_OK;
}

enum cdcd_rc pg_types_refresh(struct pg_types *t, PGconn *sql, const uint32_t *oids, size_t n,
                              struct cdcd_error *err)
{
    struct cdcd_buf list;
    PGresult *r = NULL;
    enum cdcd_rc rc;

    if (!sql || n == 0)
        return CDCD_OK;
    cdcd_buf_init(&list, 0);
    for (size_t i = 0; i < n; i++)
        cdcd_buf_addf(&list, "%c%u", i ? ',' : '{', oids[i]);
    cdcd_buf_adds(&list, "}");
    const char *params[] = {cdcd_buf_cstr(&list)};
    rc = pg_query(sql, &r, err, refresh_sql, 1, params);
    if (rc == CDCD_OK)
        types_fill(t, r);
    else
        cdcd_error_context(err, "reading the data types %s", params[0]);
    PQclear(r);
    cdcd_buf_free(&list);
    return rc;
}

enum cdcd_rc pg_types_get(struct pg_types *t, PGconn *sql, uint32_t oid, bool refresh,
                          const struct pg_type **out, struct cdcd_error *err)
{
    *out = pg_types_find(t, oid);
    if (*out && !refresh)
        return CDCD_OK;
    if (pg_types_refresh(t, sql, &oid, 1, err) != CDCD_OK)
        return CDCD_ERROR;
    *out = pg_types_find(t, oid);
    return CDCD_OK;
}

/* ---- columns ---- */

#define TYPMOD_HEADER 4  /* VARHDRSZ: what typmods of numeric and of strings are shifted by */
#define MAX_DOMAINS   64 /* domains over domains; a catalogue that is half old cannot loop */

struct builtin {
    uint32_t oid;
    enum cdcd_type type;
};

static const struct builtin builtins[] = {
    {PG_OID_BOOL, CDCD_T_BOOL},
    {PG_OID_BYTEA, CDCD_T_BYTES},
    {PG_OID_INT8, CDCD_T_INT64},
    {PG_OID_INT2, CDCD_T_INT16},
    {PG_OID_INT4, CDCD_T_INT32},
    {PG_OID_OID, CDCD_T_INT64},
    {PG_OID_JSON, CDCD_T_JSON},
    {PG_OID_JSONB, CDCD_T_JSON},
    {PG_OID_XML, CDCD_T_XML},
    {PG_OID_POINT, CDCD_T_POINT},
    {PG_OID_LSEG, CDCD_T_GEOMETRY},
    {PG_OID_PATH, CDCD_T_GEOMETRY},
    {PG_OID_BOX, CDCD_T_GEOMETRY},
    {PG_OID_POLYGON, CDCD_T_GEOMETRY},
    {PG_OID_FLOAT4, CDCD_T_FLOAT32},
    {PG_OID_FLOAT8, CDCD_T_FLOAT64},
    {PG_OID_MONEY, CDCD_T_MONEY},
    {PG_OID_DATE, CDCD_T_DATE},
    {PG_OID_TIME, CDCD_T_TIME},
    {PG_OID_TIMETZ, CDCD_T_TIMETZ},
    {PG_OID_TIMESTAMP, CDCD_T_TIMESTAMP},
    {PG_OID_TIMESTAMPTZ, CDCD_T_TIMESTAMPTZ},
    {PG_OID_INTERVAL, CDCD_T_INTERVAL},
    {PG_OID_BIT, CDCD_T_BITS},
    {PG_OID_VARBIT, CDCD_T_BITS},
    {PG_OID_NUMERIC, CDCD_T_VARDECIMAL},
    {PG_OID_UUID, CDCD_T_UUID},
    {PG_OID_TSVECTOR, CDCD_T_TSVECTOR},
};

/* Types of extensions have no fixed oid; their names are as good, since only a superuser can make
 * a base type. */
static const struct {
    const char *name;
    enum cdcd_type type;
} extensions[] = {
    {"hstore", CDCD_T_HSTORE},       {"ltree", CDCD_T_LTREE},     {"geometry", CDCD_T_GEOMETRY},
    {"geography", CDCD_T_GEOMETRY},  {"vector", CDCD_T_VECTOR64}, {"halfvec", CDCD_T_VECTOR32},
    {"sparsevec", CDCD_T_SPARSEVEC},
};

static enum cdcd_type type_of(const struct pg_type *e, uint32_t oid)
{
    for (size_t i = 0; i < sizeof builtins / sizeof *builtins; i++) {
        if (builtins[i].oid == oid)
            return builtins[i].type;
    }
    if (!e)
        return CDCD_T_STRING;
    if (e->elem)
        return CDCD_T_ARRAY;
    if (e->typtype == 'e')
        return CDCD_T_ENUM;
    if (e->typtype == 'b' && oid >= PG_OID_FIRST_USER) {
        for (size_t i = 0; i < sizeof extensions / sizeof *extensions; i++) {
            if (strcmp(extensions[i].name, e->bare_name) == 0)
                return extensions[i].type;
        }
    }
    return CDCD_T_STRING; /* text types, ranges, composites, and all that is not known */
}

static void set_numeric(struct cdcd_column *c, int32_t typmod)
{
    if (typmod < TYPMOD_HEADER)
        return;
    uint32_t m = (uint32_t)(typmod - TYPMOD_HEADER);
    c->type = CDCD_T_DECIMAL;
    c->length = (int32_t)(m >> 16 & 0xffff);
    c->scale = (int32_t)((m & 0x7ff) ^ 1024) - 1024; /* 11 bits, signed from 15 on */
}

static void set_modifiers(struct cdcd_column *c, uint32_t oid, int32_t typmod)
{
    switch (oid) {
    case PG_OID_NUMERIC: set_numeric(c, typmod); break;
    case PG_OID_MONEY: c->scale = 2; break;
    case PG_OID_BIT:
    case PG_OID_VARBIT:
        c->length = typmod > 0 ? typmod : INT32_MAX;
        if (oid == PG_OID_BIT && typmod == 1) {
            c->type = CDCD_T_BOOL;
            c->length = -1;
        }
        break;
    case PG_OID_BPCHAR:
    case PG_OID_VARCHAR:
        if (typmod >= TYPMOD_HEADER)
            c->length = typmod - TYPMOD_HEADER;
        break;
    case PG_OID_TIME:
    case PG_OID_TIMETZ:
    case PG_OID_TIMESTAMP:
    case PG_OID_TIMESTAMPTZ:
        c->scale = typmod >= 0 && typmod <= 6 ? typmod : 6; /* without one: microseconds */
        break;
    default: break;
    }
}

static const char *const *copy_labels(struct cdcd_schema *s, char *const *labels)
{
    size_t n = 0;

    while (labels && labels[n])
        n++;
    const char **copy = cdcd_arena_alloc(&s->arena, (n + 1) * sizeof *copy);
    for (size_t i = 0; i < n; i++)
        copy[i] = cdcd_schema_strdup(s, labels[i], strlen(labels[i]));
    copy[n] = NULL;
    return copy;
}

/* Resolves domains; the modifier is the one of the innermost domain that gives one. */
static const struct pg_type *resolve(const struct pg_types *t, uint32_t *oid, int32_t *typmod)
{
    const struct pg_type *e = pg_types_find(t, *oid);

    for (int i = 0; e && e->typtype == 'd' && e->base && i < MAX_DOMAINS; i++) {
        if (e->base_typmod >= 0)
            *typmod = e->base_typmod;
        *oid = e->base;
        e = pg_types_find(t, *oid);
    }
    return e;
}

/* Elements that are lists themselves would look like one more dimension, and shapes in arrays have
 * no form that anybody reads: both stay text. */
static bool text_in_arrays(enum cdcd_type type, uint32_t oid)
{
    return type == CDCD_T_POINT || type == CDCD_T_VECTOR64 || type == CDCD_T_VECTOR32 ||
           type == CDCD_T_SPARSEVEC || (type == CDCD_T_GEOMETRY && oid < PG_OID_FIRST_USER);
}

static void set_type(struct pg_types *t, struct cdcd_schema *s, struct cdcd_column *c, uint32_t oid,
                     int32_t typmod, int depth, bool *unknown)
{
    uint32_t base = oid;
    const struct pg_type *e = resolve(t, &base, &typmod);
    struct pg_coltype *ct = cdcd_arena_alloc(&s->arena, sizeof *ct);

    *ct = (struct pg_coltype){.base = base, .delim = ','};
    c->type = type_of(e, base);
    c->length = -1;
    c->scale = -1;
    c->labels = NULL;
    c->elem = NULL;
    c->source_type = oid;
    c->source_data = ct;
    if (e) {
        c->type_name = cdcd_schema_strdup(s, e->name, strlen(e->name));
    } else {
        char name[32];
        int n = snprintf(name, sizeof name, "type %u", base);
        c->type_name = cdcd_schema_strdup(s, name, (size_t)n);
        *unknown = true;
    }
    if (c->type == CDCD_T_ARRAY && depth >= MAX_DOMAINS)
        c->type = CDCD_T_STRING;
    if (c->type == CDCD_T_ENUM)
        c->labels = copy_labels(s, e->labels);
    if (c->type != CDCD_T_ARRAY) {
        set_modifiers(c, base, typmod);
        return;
    }
    struct cdcd_column *elem = cdcd_arena_alloc(&s->arena, sizeof *elem);
    *elem = (struct cdcd_column){.name = c->name, .name_len = c->name_len, .optional = true};
    set_type(t, s, elem, e->elem, typmod, depth + 1, unknown);
    const struct pg_type *et = pg_types_find(t, e->elem);
    ct->delim = et ? et->delim : e->delim;
    if (text_in_arrays(elem->type, ((const struct pg_coltype *)elem->source_data)->base))
        elem->type = CDCD_T_STRING;
    c->elem = elem;
}

void pg_column_set_type(struct pg_types *t, struct cdcd_schema *s, struct cdcd_column *c,
                        uint32_t oid, int32_t typmod, bool *unknown_out)
{
    bool unknown = false;

    set_type(t, s, c, oid, typmod, 0, &unknown);
    if (unknown_out)
        *unknown_out = unknown;
}

/* ---- values ---- */

/* Cuts at a character and puts '?' for what would garble a log line. */
static void quote_value(char *out, size_t size, const char *text, size_t len)
{
    size_t n = len < size - 4 ? len : size - 4;

    while (n < len && n > 0 && ((unsigned char)text[n] & 0xc0) == 0x80)
        n--;
    for (size_t i = 0; i < n; i++)
        out[i] = (unsigned char)text[i] < ' ' ? '?' : text[i];
    memcpy(out + n, n < len ? "..." : "", n < len ? 4 : 1);
}

enum cdcd_rc pg_cell_bad(const struct cdcd_column *c, const char *text, size_t len,
                         struct cdcd_error *err)
{
    char value[80];

    quote_value(value, sizeof value, text, len);
    return cdcd_error_set(err, CDCD_ERR_DATA,
                          "column \"%s\": cannot read the value \"%s\" (%zu bytes) as %s; exclude "
                          "the column, or report this value with the type's definition",
                          c->name ? c->name : "?", value, len,
                          c->type_name ? c->type_name : "its type");
}

static uint32_t base_oid(const struct cdcd_column *c)
{
    const struct pg_coltype *ct = c->source_data;

    return ct ? ct->base : c->source_type;
}

static bool parse_bool(const char *p, size_t n, struct cdcd_cell *out)
{
    if (n != 1 || (*p != 't' && *p != 'f' && *p != '1' && *p != '0')) /* 1, 0: bit(1) */
        return false;
    *out = (struct cdcd_cell){.kind = CDCD_C_BOOL, .i = *p == 't' || *p == '1'};
    return true;
}

static bool parse_int(const struct cdcd_column *c, const char *p, size_t n, struct cdcd_cell *out)
{
    int64_t i = 0, max = INT64_MAX;

    if (c->type == CDCD_T_INT32)
        max = INT32_MAX;
    else if (c->type == CDCD_T_INT16)
        max = INT16_MAX;
    if (!pg_parse_int(p, n, -max - 1, max, &i))
        return false;
    *out = cdcd_cell_int(i);
    return true;
}

static bool parse_geometry(const struct cdcd_column *c, const char *p, size_t n,
                           struct cdcd_arena *a, struct cdcd_cell *out)
{
    uint32_t oid = base_oid(c);

    return oid < PG_OID_FIRST_USER ? pg_parse_shape(oid, p, n, a, out)
                                   : pg_parse_ewkb(p, n, a, out);
}

enum cdcd_rc pg_cell_parse(const struct cdcd_column *c, const char *text, size_t len,
                           struct cdcd_arena *a, struct cdcd_cell *out, struct cdcd_error *err)
{
    bool ok = true;

    switch (c->type) {
    case CDCD_T_INT16:
    case CDCD_T_INT32:
    case CDCD_T_INT64: ok = parse_int(c, text, len, out); break;
    case CDCD_T_BOOL: ok = parse_bool(text, len, out); break;
    case CDCD_T_FLOAT32:
    case CDCD_T_FLOAT64:
        *out = cdcd_cell_text(text, len);
        out->kind = CDCD_C_FLOAT;
        ok = pg_parse_float(text, len);
        break;
    case CDCD_T_DECIMAL:
    case CDCD_T_VARDECIMAL:
        *out = cdcd_cell_text(text, len);
        out->kind = CDCD_C_DECIMAL;
        ok = pg_parse_numeric(text, len);
        break;
    case CDCD_T_UUID:
        *out = cdcd_cell_text(text, len);
        ok = pg_parse_uuid(text, len);
        break;
    case CDCD_T_MONEY: ok = pg_parse_money(text, len, a, out); break;
    case CDCD_T_BYTES: ok = pg_parse_bytea(text, len, a, out); break;
    case CDCD_T_BITS: ok = pg_parse_bits(text, len, a, out); break;
    case CDCD_T_DATE: ok = pg_parse_date(text, len, out); break;
    case CDCD_T_TIME: ok = pg_parse_time(text, len, out); break;
    case CDCD_T_TIMETZ: ok = pg_parse_timetz(text, len, a, out); break;
    case CDCD_T_TIMESTAMP: ok = pg_parse_timestamp(text, len, false, out); break;
    case CDCD_T_TIMESTAMPTZ: ok = pg_parse_timestamp(text, len, true, out); break;
    case CDCD_T_INTERVAL: ok = pg_parse_interval(text, len, a, out); break;
    case CDCD_T_HSTORE: ok = pg_parse_hstore(text, len, a, out); break;
    case CDCD_T_POINT: ok = pg_parse_point(text, len, a, out); break;
    case CDCD_T_GEOMETRY: ok = parse_geometry(c, text, len, a, out); break;
    case CDCD_T_VECTOR64:
    case CDCD_T_VECTOR32: ok = pg_parse_vector(text, len, a, out); break;
    case CDCD_T_SPARSEVEC: ok = pg_parse_sparsevec(text, len, a, out); break;
    case CDCD_T_ARRAY: return pg_parse_array(c, text, len, a, out, err);
    default: *out = cdcd_cell_text(text, len); break; /* all that is text */
    }
    return ok ? CDCD_OK : pg_cell_bad(c, text, len, err);
}
