/*
 * catalog: relations as pgoutput describes them, completed with what only the catalogue knows.
 *
 * A Relation message is of the time of the change, the catalogue of now: the table may have been
 * altered, renamed or dropped since. So the message decides on names, types and order, and a
 * catalogue column counts only if it has the name and the type of the message's. The message's
 * flags are the identity of then; where they contradict the catalogue's primary key, they win.
 */
#include "types.h"

#include <stdlib.h>

/* One catalogue column that fits an attribute of the relation. */
struct extra {
    bool found, not_null;
    int pk, ident; /* position in the primary key and in the identity index, -1: not in it */
    struct cdcd_slice default_expr;
};

struct facts {
    PGresult *r; /* owns the text of the expressions */
    struct extra *attr;
    int npk, nident;    /* key columns that the catalogue has */
    bool pk_deferrable; /* the server then does not take it as the default identity */
};

/* Positions count from 0; columns of INCLUDE are behind the key columns. */
static const char facts_sql[] =
    "SELECT a.attname, a.atttypid, a.attnotnull OR (t.typtype = 'd' AND t.typnotnull),"
    " CASE WHEN a.attgenerated = '' THEN pg_catalog.pg_get_expr(d.adbin, d.adrelid) END,"
    " pg_catalog.array_position(pk.indkey::pg_catalog.int2[], a.attnum), pk.indnkeyatts,"
    " pg_catalog.array_position(ri.indkey::pg_catalog.int2[], a.attnum), ri.indnkeyatts,"
    " NOT pk.indimmediate"
    " FROM pg_catalog.pg_attribute a"
    " JOIN pg_catalog.pg_type t ON t.oid = a.atttypid"
    " LEFT JOIN pg_catalog.pg_attrdef d ON d.adrelid = a.attrelid AND d.adnum = a.attnum"
    " LEFT JOIN pg_catalog.pg_index pk ON pk.indrelid = a.attrelid AND pk.indisprimary"
    " LEFT JOIN pg_catalog.pg_index ri ON ri.indrelid = a.attrelid AND ri.indisreplident"
    " WHERE a.attrelid = $1::pg_catalog.oid AND a.attnum > 0 AND NOT a.attisdropped"
    " ORDER BY a.attnum";

static int int_at(const PGresult *r, int row, int col)
{
    return PQgetisnull(r, row, col) ? -1 : (int)strtol(PQgetvalue(r, row, col), NULL, 10);
}

static bool bool_at(const PGresult *r, int row, int col)
{
    return *PQgetvalue(r, row, col) == 't';
}

static int position_at(const PGresult *r, int row, int col)
{
    int position = int_at(r, row, col);

    return position >= int_at(r, row, col + 1) ? -1 : position;
}

static struct cdcd_slice slice_at(const PGresult *r, int row, int col)
{
    if (PQgetisnull(r, row, col))
        return (struct cdcd_slice){0};
    return (struct cdcd_slice){PQgetvalue(r, row, col), (size_t)PQgetlength(r, row, col)};
}

static const struct pg_attr *find_attr(const struct pg_relation *rel, struct cdcd_slice name,
                                       uint32_t type, size_t hint, size_t *index)
{
    for (size_t n = 0; n < rel->nattrs; n++) {
        size_t i = (hint + n) % rel->nattrs; /* mostly in the same order */
        if (cdcd_slice_eq(rel->attrs[i].name, name)) {
            *index = i;
            return rel->attrs[i].type == type ? &rel->attrs[i] : NULL;
        }
    }
    return NULL;
}

static enum cdcd_rc facts_read(const struct pg_relation *rel, PGconn *sql, struct facts *f,
                               struct cdcd_error *err)
{
    char oid[16];
    const char *params[] = {oid};

    f->attr = cdcd_xcalloc(rel->nattrs ? rel->nattrs : 1, sizeof *f->attr);
    for (size_t i = 0; i < rel->nattrs; i++)
        f->attr[i].pk = f->attr[i].ident = -1;
    if (!sql)
        return CDCD_OK;
    snprintf(oid, sizeof oid, "%u", rel->oid);
    if (pg_query(sql, &f->r, err, facts_sql, 1, params) != CDCD_OK)
        return CDCD_ERROR;
    for (int row = 0; row < PQntuples(f->r); row++) {
        int pk = position_at(f->r, row, 4), ident = position_at(f->r, row, 6);
        uint32_t type = (uint32_t)strtoul(PQgetvalue(f->r, row, 1), NULL, 10);
        size_t i;
        f->npk += pk >= 0;
        f->nident += ident >= 0;
        f->pk_deferrable |= pk >= 0 && bool_at(f->r, row, 8);
        if (!find_attr(rel, slice_at(f->r, row, 0), type, (size_t)row, &i))
            continue;
        f->attr[i] = (struct extra){.found = true,
                                    .not_null = bool_at(f->r, row, 2),
                                    .pk = pk,
                                    .ident = ident,
                                    .default_expr = slice_at(f->r, row, 3)};
    }
    return CDCD_OK;
}

static void facts_free(struct facts *f)
{
    PQclear(f->r);
    free(f->attr);
}

/* ---- the key ---- */

/* Attributes in the order of an index: its position for each, of n; 0 when not all of them are in
 * the relation. */
static size_t index_key(const struct pg_relation *rel, const struct facts *f, bool pk, size_t *key)
{
    size_t n = (size_t)(pk ? f->npk : f->nident), found = 0;

    if (n == 0 || n > rel->nattrs)
        return 0;
    for (size_t i = 0; i < rel->nattrs; i++) {
        int at = pk ? f->attr[i].pk : f->attr[i].ident;
        if (at >= 0 && (size_t)at < n) {
            key[at] = i;
            found++;
        }
    }
    return found == n ? n : 0;
}

static size_t flagged_key(const struct pg_relation *rel, size_t *key)
{
    size_t n = 0;

    for (size_t i = 0; i < rel->nattrs; i++) {
        if (rel->attrs[i].identity)
            key[n++] = i;
    }
    return n;
}

/* Every column of the key is in the replica identity. */
static bool covered(const struct pg_relation *rel, const size_t *key, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (!rel->attrs[key[i]].identity)
            return false;
    }
    return true;
}

/* The key is the replica identity. */
static bool all_flagged(const struct pg_relation *rel, const size_t *key, size_t n)
{
    size_t flagged = 0;

    for (size_t i = 0; i < rel->nattrs; i++)
        flagged += rel->attrs[i].identity;
    return flagged == n && covered(rel, key, n);
}

/* Attributes that are the key, in its order, into key[nattrs]. */
static size_t choose_key(const struct pg_relation *rel, const struct facts *f, size_t *key)
{
    size_t n = index_key(rel, f, true, key);

    switch (rel->replident) {
    case 'd':
        if (n > 0 && (all_flagged(rel, key, n) || (f->pk_deferrable && flagged_key(rel, key) == 0)))
            return index_key(rel, f, true, key);
        return flagged_key(rel, key);
    case 'i':
        /* Deletes carry the index's columns and no others. */
        if (n > 0 && covered(rel, key, n))
            return n;
        n = index_key(rel, f, false, key);
        return n > 0 && all_flagged(rel, key, n) ? n : flagged_key(rel, key);
    default: return n;
    }
}

/* ---- types ---- */

static bool is_enum(const struct pg_types *types, uint32_t oid)
{
    for (int depth = 0; depth < 64; depth++) { /* domains and arrays of each other */
        const struct pg_type *e = pg_types_find(types, oid);
        if (!e || e->typtype == 'e')
            return e != NULL;
        if (!e->elem && !e->base)
            return false;
        oid = e->elem ? e->elem : e->base;
    }
    return false;
}

/* Reads what is not known yet, and labels of enums again: they may have been added or renamed. */
static enum cdcd_rc refresh_types(const struct pg_relation *rel, PGconn *sql,
                                  struct pg_types *types, struct cdcd_error *err)
{
    uint32_t *oids;
    size_t n = 0;

    if (!sql)
        return CDCD_OK;
    oids = cdcd_xcalloc(rel->nattrs ? rel->nattrs : 1, sizeof *oids);
    for (size_t i = 0; i < rel->nattrs; i++) {
        if (!pg_types_find(types, rel->attrs[i].type) || is_enum(types, rel->attrs[i].type))
            oids[n++] = rel->attrs[i].type;
    }
    enum cdcd_rc rc = pg_types_refresh(types, sql, oids, n, err);
    free(oids);
    return rc;
}

/* ---- the table ---- */

/* One block: the struct, its arrays and the label, "schema.table" with a NUL. */
static struct pg_table *table_new(const struct pg_relation *rel)
{
    size_t ints = rel->nattrs * sizeof(int32_t), bools = rel->nattrs * sizeof(bool);
    size_t label = rel->schema.len + 1 + rel->table.len;
    struct pg_table *t = cdcd_xcalloc(1, sizeof *t + ints + bools + label + 1);
    char *p = (char *)(t + 1);

    t->oid = rel->oid;
    t->replident = rel->replident;
    t->nattrs = rel->nattrs;
    t->column = (int32_t *)(void *)p;
    t->identity = (bool *)(p + ints);
    p += ints + bools;
    if (rel->schema.len)
        memcpy(p, rel->schema.ptr, rel->schema.len);
    p[rel->schema.len] = '.';
    if (rel->table.len)
        memcpy(p + rel->schema.len + 1, rel->table.ptr, rel->table.len);
    t->label = (struct cdcd_slice){p, label};
    for (size_t i = 0; i < rel->nattrs; i++) {
        t->column[i] = -1;
        t->identity[i] = rel->attrs[i].identity;
    }
    return t;
}

void pg_table_free(struct pg_table *t)
{
    if (!t)
        return;
    cdcd_schema_unref(t->schema);
    free(t);
}

/* Gives each attribute that is not excluded its column. Key columns cannot be excluded: without
 * them the records would have another key. */
static uint32_t assign_columns(const struct pg_relation *rel, const struct pg_filter *filter,
                               const char *schema, const char *table, const size_t *key,
                               size_t nkeys, struct pg_table *t)
{
    uint32_t n = 0;

    for (size_t k = 0; k < nkeys; k++)
        t->column[key[k]] = 0;
    for (size_t i = 0; i < rel->nattrs; i++) {
        bool take = t->column[i] == 0 || !filter;
        if (!take) {
            char *name = cdcd_xstrndup(rel->attrs[i].name.ptr, rel->attrs[i].name.len);
            take = pg_filter_column(filter, schema, table, name);
            free(name);
        }
        t->column[i] = take ? (int32_t)n++ : -1;
    }
    return n;
}

static void fill_schema(const struct pg_relation *rel, const struct facts *f,
                        struct pg_types *types, const size_t *key, size_t nkeys, struct pg_table *t)
{
    struct cdcd_schema *s = t->schema;

    s->source_id = rel->oid;
    for (size_t i = 0; i < rel->nattrs; i++) {
        if (t->column[i] < 0)
            continue;
        struct cdcd_column *c = &s->columns[t->column[i]];
        c->name = cdcd_schema_strdup(s, rel->attrs[i].name.ptr, rel->attrs[i].name.len);
        c->name_len = (uint32_t)rel->attrs[i].name.len;
        pg_column_set_type(types, s, c, rel->attrs[i].type, rel->attrs[i].typmod, NULL);
        c->optional = !f->attr[i].not_null;
        if (f->attr[i].default_expr.ptr)
            pg_column_set_default(s, c, f->attr[i].default_expr);
    }
    s->nkeys = (uint32_t)nkeys;
    for (size_t k = 0; k < nkeys; k++) {
        s->keys[k] = (uint32_t)t->column[key[k]];
        s->columns[s->keys[k]].key = true;
        /* Index columns of REPLICA IDENTITY must be NOT NULL, as those of a primary key are. */
        s->columns[s->keys[k]].optional = false;
    }
    cdcd_schema_finish(s);
}

static enum cdcd_rc table_describe(const struct pg_relation *rel, const char *db,
                                   const char *schema, const char *table, PGconn *sql,
                                   struct pg_types *types, const struct pg_filter *filter,
                                   struct pg_table *t, struct cdcd_error *err)
{
    struct facts f = {0};
    size_t *key = cdcd_xcalloc(rel->nattrs ? rel->nattrs : 1, sizeof *key);
    enum cdcd_rc rc = facts_read(rel, sql, &f, err);

    if (rc == CDCD_OK)
        rc = refresh_types(rel, sql, types, err);
    if (rc == CDCD_OK) {
        size_t nkeys = choose_key(rel, &f, key);
        uint32_t n = assign_columns(rel, filter, schema, table, key, nkeys, t);
        t->schema = cdcd_schema_new(db, schema, table, n);
        fill_schema(rel, &f, types, key, nkeys, t);
    } else {
        cdcd_error_context(err, "reading the catalogue for table %s.%s", schema, table);
    }
    free(key);
    facts_free(&f);
    return rc;
}

enum cdcd_rc pg_table_build(const struct pg_relation *rel, const char *db, PGconn *sql,
                            struct pg_types *types, const struct pg_filter *filter,
                            struct pg_table **out, struct cdcd_error *err)
{
    char *schema = cdcd_xstrndup(rel->schema.ptr, rel->schema.len);
    char *table = cdcd_xstrndup(rel->table.ptr, rel->table.len);
    struct pg_table *t = table_new(rel);
    enum cdcd_rc rc = CDCD_OK;

    t->captured = !filter || pg_filter_table(filter, schema, table);
    if (t->captured)
        rc = table_describe(rel, db, schema, table, sql, types, filter, t, err);
    if (rc == CDCD_OK) {
        *out = t;
    } else {
        pg_table_free(t);
        *out = NULL;
    }
    free(schema);
    free(table);
    return rc;
}

/* ---- the relation of now ---- */

/* Which columns a publication sends: its column list (15+) if it has one; without one all but
 * generated columns, stored ones too if it says so (18+). Virtual ones are never sent. */
static const char *published_sql(int version)
{
    if (version >= 180000)
        return "CASE WHEN pr.prattrs IS NOT NULL"
               " THEN a.attnum = ANY (pr.prattrs::pg_catalog.int2[])"
               " ELSE a.attgenerated = '' OR (a.attgenerated = 's' AND p.pubgencols = 's') END";
    if (version >= 150000)
        return "a.attgenerated = '' AND (pr.prattrs IS NULL"
               " OR a.attnum = ANY (pr.prattrs::pg_catalog.int2[]))";
    return "a.attgenerated = ''";
}

static char *relation_sql(int version)
{
    return cdcd_xasprintf(
        "SELECT n.nspname, c.relname, c.relreplident, a.attname, a.atttypid, a.atttypmod,"
        " CASE c.relreplident WHEN 'f' THEN true WHEN 'n' THEN false"
        " WHEN 'i' THEN coalesce(pg_catalog.array_position(ri.indkey::pg_catalog.int2[], a.attnum)"
        " < ri.indnkeyatts, false)"
        " ELSE coalesce(pg_catalog.array_position(pk.indkey::pg_catalog.int2[], a.attnum)"
        " < pk.indnkeyatts, false) END"
        " FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace"
        " LEFT JOIN pg_catalog.pg_publication p ON p.pubname = $2"
        " LEFT JOIN pg_catalog.pg_publication_rel pr ON pr.prpubid = p.oid AND pr.prrelid = c.oid"
        " LEFT JOIN pg_catalog.pg_index ri ON ri.indrelid = c.oid AND ri.indisreplident"
        " LEFT JOIN pg_catalog.pg_index pk ON pk.indrelid = c.oid AND pk.indisprimary"
        " AND pk.indimmediate"
        " LEFT JOIN pg_catalog.pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0"
        " AND NOT a.attisdropped AND %s"
        " WHERE c.oid = $1::pg_catalog.oid ORDER BY a.attnum",
        published_sql(version));
}

static struct cdcd_slice keep(struct cdcd_arena *a, const PGresult *r, int row, int col)
{
    struct cdcd_slice s = slice_at(r, row, col);

    return (struct cdcd_slice){cdcd_arena_dup(a, s.ptr ? s.ptr : "", s.len), s.len};
}

static void relation_fill(const PGresult *r, uint32_t oid, struct cdcd_arena *a,
                          struct pg_relation *out)
{
    size_t rows = (size_t)PQntuples(r);

    *out = (struct pg_relation){.oid = oid,
                                .schema = keep(a, r, 0, 0),
                                .table = keep(a, r, 0, 1),
                                .replident = *PQgetvalue(r, 0, 2)};
    out->attrs = cdcd_arena_alloc(a, rows * sizeof *out->attrs);
    for (int i = 0; i < (int)rows; i++) {
        if (PQgetisnull(r, i, 3)) /* the only row of a table without columns */
            continue;
        out->attrs[out->nattrs++] = (struct pg_attr){
            .name = keep(a, r, i, 3),
            .type = (uint32_t)strtoul(PQgetvalue(r, i, 4), NULL, 10),
            .typmod = (int32_t)strtol(PQgetvalue(r, i, 5), NULL, 10),
            .identity = bool_at(r, i, 6)};
    }
}

enum cdcd_rc pg_relation_read(PGconn *sql, uint32_t oid, const char *publication,
                              struct cdcd_arena *a, struct pg_relation *out, struct cdcd_error *err)
{
    char *query = relation_sql(PQserverVersion(sql)), number[16];
    const char *params[] = {number, publication ? publication : ""};
    PGresult *r = NULL;

    snprintf(number, sizeof number, "%u", oid);
    enum cdcd_rc rc = pg_query(sql, &r, err, query, 2, params);
    free(query);
    if (rc != CDCD_OK)
        return cdcd_error_context(err, "reading the columns of the table with oid %u", oid);
    if (PQntuples(r) == 0)
        rc = cdcd_error_set(err, CDCD_ERR_RETRY,
                            "the table with oid %u is not there any more; it was dropped "
                            "meanwhile: the tables are listed again",
                            oid);
    else
        relation_fill(r, oid, a, out);
    PQclear(r);
    return rc;
}
