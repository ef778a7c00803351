/*
 * schema.c: a table as its rows are decoded, from its model (snapshots), or from the log's table
 * map together with the model. Both ways make the same schema of the same table.
 */
#include "schema.h"
#include "ddl.h"
#include "decoder.h"
#include "value.h"

#include <stdio.h>
#include <stdlib.h>

enum { GEOMETRY_POINT = 1, BINARY_COLLATION = 63 };

/* ---- what a type means ---- */

static bool starts(const char *s, const char *prefix)
{
    return strncmp(s, prefix, strlen(prefix)) == 0;
}

static enum cdcd_type integer_type(const char *type, bool is_unsigned)
{
    if (starts(type, "TINYINT"))
        return CDCD_T_INT16;
    if (starts(type, "SMALLINT"))
        return is_unsigned ? CDCD_T_INT32 : CDCD_T_INT16;
    if (starts(type, "BIGINT"))
        return is_unsigned ? CDCD_T_UINT64 : CDCD_T_INT64;
    return is_unsigned && !starts(type, "MEDIUMINT") ? CDCD_T_INT64 : CDCD_T_INT32;
}

static const struct {
    const char *name;
    enum cdcd_type type;
    enum my_special special;
} meanings[] = {
    {"YEAR", CDCD_T_YEAR, MY_PLAIN},
    {"DATE", CDCD_T_DATE, MY_PLAIN},
    {"TIME", CDCD_T_TIME, MY_PLAIN},
    {"DATETIME", CDCD_T_TIMESTAMP, MY_PLAIN},
    {"TIMESTAMP", CDCD_T_TIMESTAMPTZ, MY_PLAIN},
    {"CHAR", CDCD_T_STRING, MY_PLAIN},
    {"VARCHAR", CDCD_T_STRING, MY_PLAIN},
    {"TINYTEXT", CDCD_T_STRING, MY_PLAIN},
    {"TEXT", CDCD_T_STRING, MY_PLAIN},
    {"MEDIUMTEXT", CDCD_T_STRING, MY_PLAIN},
    {"LONGTEXT", CDCD_T_STRING, MY_PLAIN},
    {"XMLTYPE", CDCD_T_XML, MY_PLAIN},
    {"BINARY", CDCD_T_BYTES, MY_BINARY},
    {"VARBINARY", CDCD_T_BYTES, MY_BINARY},
    {"TINYBLOB", CDCD_T_BYTES, MY_BINARY},
    {"BLOB", CDCD_T_BYTES, MY_BINARY},
    {"MEDIUMBLOB", CDCD_T_BYTES, MY_BINARY},
    {"LONGBLOB", CDCD_T_BYTES, MY_BINARY},
    {"ENUM", CDCD_T_ENUM, MY_PLAIN},
    {"SET", CDCD_T_ENUMSET, MY_PLAIN},
    {"JSON", CDCD_T_JSON, MY_PLAIN},
    {"POINT", CDCD_T_POINT, MY_POINT},
    {"VECTOR", CDCD_T_VECTOR32, MY_PLAIN},
    {"UUID", CDCD_T_UUID, MY_UUID},
    {"INET6", CDCD_T_STRING, MY_INET6},
    {"INET4", CDCD_T_STRING, MY_INET4},
};

static void set_number(const struct my_column *m, struct cdcd_column *c,
                       struct my_column_decoder *d)
{
    if (starts(m->type, "DECIMAL")) {
        c->type = CDCD_T_DECIMAL;
        c->length = m->length;
        c->scale = m->scale > 0 ? m->scale : 0;
    } else if (starts(m->type, "FLOAT")) {
        /* FLOAT(M,D) is what a double shows of it */
        c->type = m->scale >= 0 ? CDCD_T_FLOAT64 : CDCD_T_FLOAT32;
    } else if (starts(m->type, "DOUBLE")) {
        c->type = CDCD_T_FLOAT64;
    } else if (strcmp(m->type, "BIT") == 0) {
        c->type = m->length == 1 ? CDCD_T_BOOL : CDCD_T_BITS;
        c->length = m->length == 1 ? -1 : m->length;
        d->special = m->length == 1 ? MY_BOOL : MY_PLAIN;
    } else {
        c->type = integer_type(m->type, m->unsigned_);
    }
}

static bool is_number(const char *type)
{
    static const char *const names[] = {"TINYINT", "SMALLINT", "MEDIUMINT", "INT ",
                                        "BIGINT",  "DECIMAL",  "FLOAT",     "DOUBLE"};

    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        if (starts(type, names[i]))
            return true;
    }
    return strcmp(type, "INT") == 0 || strcmp(type, "BIT") == 0;
}

static void set_meaning(const struct my_column *m, struct cdcd_column *c,
                        struct my_column_decoder *d)
{
    c->length = c->scale = -1;
    c->type = CDCD_T_GEOMETRY;
    if (is_number(m->type)) {
        set_number(m, c, d);
        return;
    }
    for (size_t i = 0; i < sizeof meanings / sizeof *meanings; i++) {
        if (strcmp(m->type, meanings[i].name) != 0)
            continue;
        c->type = meanings[i].type;
        d->special = (uint8_t)meanings[i].special;
    }
    if (c->type == CDCD_T_TIME || c->type == CDCD_T_TIMESTAMP || c->type == CDCD_T_TIMESTAMPTZ)
        c->scale = m->length > 0 ? m->length : 0;
    if (m->json_alias) /* a string for the peer, as for the server */
        d->special = MY_JSON_TEXT;
}

/* ---- building ---- */

/* One column on the way: what the model says and how the log has it. */
struct part {
    const struct my_column *model;
    uint8_t type;
    uint16_t meta;
    bool hidden; /* the server's own: nobody sees it */
};

struct plan {
    const char *db, *name;
    struct part *parts;
    uint32_t n;
    const char *const *keys; /* names */
    size_t nkeys;
    bool sequence, versioned;
};

static bool is_hidden(const struct my_column *c)
{
    return (c->row_start || c->row_end) && !c->generated;
}

static bool is_key(const struct plan *p, const char *name)
{
    for (size_t i = 0; i < p->nkeys; i++) {
        if (my_name_equal(p->keys[i], name))
            return true;
    }
    return false;
}

static enum cdcd_rc fill_decoder(struct my_shape *s, const struct part *part,
                                 struct my_column_decoder *d, enum my_flavor flavor,
                                 struct cdcd_error *err)
{
    const struct my_column *m = part->model;

    d->type = part->type;
    d->meta = part->meta;
    d->unsigned_ = m->unsigned_;
    d->nullable = m->nullable;
    d->name = cdcd_arena_dup(&s->arena, m->name, strlen(m->name));
    if (m->charset && strcmp(m->charset, "binary") != 0 && d->special != MY_BINARY &&
        my_charset_by_name(m->charset, &d->charset, err) != CDCD_OK)
        return cdcd_error_context(err, "column %s.%s", s->label, m->name);
    if (flavor == MY_MARIADB && strcmp(m->type, "VECTOR") == 0 && d->type == MY_VARCHAR) {
        d->meta = d->meta > 255 ? 2 : 1; /* a VARBINARY, but read as a vector */
        d->type = MY_VECTOR;
    }
    if (m->labels) {
        while (m->labels[d->nlabels])
            d->nlabels++;
        const char **labels = cdcd_arena_alloc(&s->arena, (d->nlabels + 1) * sizeof *labels);
        for (uint32_t i = 0; i < d->nlabels; i++)
            labels[i] = cdcd_arena_dup(&s->arena, m->labels[i], strlen(m->labels[i]));
        labels[d->nlabels] = NULL;
        d->labels = labels;
    }
    return CDCD_OK;
}

static void fill_column(struct cdcd_schema *schema, struct cdcd_column *c, const struct part *part,
                        const struct my_column_decoder *d, enum my_flavor flavor)
{
    const struct my_column *m = part->model;

    c->name_len = (uint32_t)strlen(m->name);
    c->name = cdcd_schema_strdup(schema, m->name, c->name_len);
    c->optional = m->nullable;
    c->unsigned_ = m->unsigned_;
    c->type_name = cdcd_schema_strdup(schema, m->type, strlen(m->type));
    c->source_type = part->type;
    if (m->comment && flavor == MY_MARIADB) /* the peer has those of MySQL only on demand */
        c->comment = cdcd_schema_strdup(schema, m->comment, strlen(m->comment));
    if (m->labels) {
        const char **labels = cdcd_arena_alloc(&schema->arena, (d->nlabels + 1) * sizeof *labels);
        for (uint32_t i = 0; i < d->nlabels; i++)
            labels[i] = cdcd_schema_strdup(schema, m->labels[i], strlen(m->labels[i]));
        labels[d->nlabels] = NULL;
        c->labels = labels;
    }
    my_column_default(schema, c, d, m);
}

static void fill_keys(struct my_shape *s, const struct plan *p)
{
    struct cdcd_schema *schema = s->schema;

    for (size_t k = 0; k < p->nkeys; k++) {
        for (uint32_t i = 0; i < p->n; i++) {
            int32_t column = s->columns[i].column;
            if (column < 0 || !my_name_equal(p->keys[k], p->parts[i].model->name))
                continue;
            schema->columns[column].key = true;
            schema->keys[schema->nkeys++] = (uint32_t)column;
            break;
        }
    }
}

/* The key's columns are always taken: without them the key would be another one. */
static uint32_t choose_columns(struct my_shape *s, const struct plan *p, const struct my_filter *f)
{
    uint32_t n = 0;

    for (uint32_t i = 0; i < p->n; i++) {
        const struct my_column *m = p->parts[i].model;
        bool take = !p->parts[i].hidden &&
                    (is_key(p, m->name) || !f || my_filter_column(f, p->db, p->name, m->name));
        s->columns[i].column = take ? (int32_t)n++ : -1;
        if (m->row_end)
            s->row_end = (int32_t)i;
    }
    return n;
}

static enum cdcd_rc build(const struct plan *p, const struct my_server *server,
                          const struct my_filter *f, struct my_shape **out, struct cdcd_error *err)
{
    struct my_shape *s = cdcd_xcalloc(1, sizeof *s);
    enum cdcd_rc rc = CDCD_OK;

    cdcd_arena_init(&s->arena, 1024 + p->n * (sizeof *s->columns + 32));
    s->db = cdcd_arena_dup(&s->arena, p->db, strlen(p->db));
    s->table = cdcd_arena_dup(&s->arena, p->name, strlen(p->name));
    s->label = cdcd_xasprintf("%s.%s", p->db, p->name);
    s->ncolumns = p->n;
    s->row_end = -1;
    s->versioned = p->versioned;
    s->sequence = p->sequence;
    s->captured = !f || my_filter_table(f, p->db, p->name);
    *out = s;
    if (!s->captured)
        return CDCD_OK;
    s->columns = cdcd_arena_alloc(&s->arena, (p->n + 1) * sizeof *s->columns);
    memset(s->columns, 0, (p->n + 1) * sizeof *s->columns);
    s->schema = cdcd_schema_new(p->db, "", p->name, choose_columns(s, p, f));
    for (uint32_t i = 0; rc == CDCD_OK && i < p->n; i++) {
        struct my_column_decoder *d = &s->columns[i];
        struct cdcd_column unused = {0};
        struct cdcd_column *c = d->column < 0 ? &unused : &s->schema->columns[d->column];
        set_meaning(p->parts[i].model, c, d);
        rc = fill_decoder(s, &p->parts[i], d, server->flavor, err);
        if (rc == CDCD_OK && d->column >= 0)
            fill_column(s->schema, c, &p->parts[i], d, server->flavor);
    }
    if (rc == CDCD_OK) {
        fill_keys(s, p);
        cdcd_schema_finish(s->schema);
    } else {
        my_shape_free(s);
        *out = NULL;
    }
    return rc;
}

void my_shape_free(struct my_shape *s)
{
    if (!s)
        return;
    cdcd_schema_unref(s->schema);
    cdcd_arena_free(&s->arena);
    free(s->label);
    free(s);
}

/* ---- from the model alone ---- */

enum cdcd_rc my_shape_of_table(const struct my_table *t, const struct my_server *server,
                               const struct my_filter *f, struct my_shape **out,
                               struct cdcd_error *err)
{
    struct part *parts = cdcd_xcalloc(t->ncolumns + 1, sizeof *parts);
    struct plan p = {
        .db = t->db,
        .name = t->name,
        .parts = parts,
        .n = (uint32_t)t->ncolumns,
        .keys = (const char *const *)t->keys,
        .nkeys = t->nkeys,
        .sequence = t->sequence,
        .versioned = t->versioned,
    };
    enum cdcd_rc rc = CDCD_OK;

    *out = NULL;
    for (size_t i = 0; rc == CDCD_OK && i < t->ncolumns; i++) {
        parts[i].model = &t->columns[i];
        parts[i].hidden = is_hidden(&t->columns[i]);
        if (!my_wire_of(&t->columns[i], server->flavor, &parts[i].type, &parts[i].meta))
            rc = cdcd_error_set(err, CDCD_ERR_CONFIG,
                                "column %s.%s.%s has the type %s, which is not supported; leave it "
                                "out with column.exclude.list",
                                t->db, t->name, t->columns[i].name, t->columns[i].type);
    }
    if (rc == CDCD_OK)
        rc = build(&p, server, f, out, err);
    free(parts);
    return rc;
}

/* ---- from a table map ---- */

/* What a map's column is: the map's own, over the model's where that is of the same kind. */
struct merged {
    struct my_column *columns;
    uint32_t n;
};

static void merged_free(struct merged *m)
{
    for (uint32_t i = 0; i < m->n; i++)
        my_column_free(&m->columns[i]);
    free(m->columns);
}

static void take_over(char **to, char **from)
{
    free(*to);
    *to = *from;
    *from = NULL;
}

/* The map is right in what it says; the rest (the exact type, defaults, ...) is the model's. */
static void merge_column(const struct my_map_column *map, struct my_column *own,
                         const struct my_column *model)
{
    struct my_column c;

    my_column_copy(model, &c);
    c.nullable = map->nullable;
    if (own->name)
        take_over(&c.name, &own->name);
    if (map->has_collation && own->charset)
        take_over(&c.charset, &own->charset);
    if (own->labels && own->labels[0]) {
        for (size_t i = 0; c.labels && c.labels[i]; i++)
            free(c.labels[i]);
        free(c.labels);
        c.labels = own->labels;
        own->labels = NULL;
    }
    my_column_free(own);
    *own = c;
}

static const struct my_column *model_column(const struct my_table_map *map, uint32_t i,
                                            const struct my_table *model)
{
    if (!model)
        return NULL;
    if (!map->full)
        return i < model->ncolumns ? &model->columns[i] : NULL;
    char *name = cdcd_xstrndup(map->columns[i].name.ptr, map->columns[i].name.len);
    int k = my_table_column(model, name);
    free(name);
    return k < 0 ? NULL : &model->columns[k];
}

/* A column of MariaDB's own for a long unique index: the last ones, which the table lacks. */
static bool is_hash(const struct my_table_map *map, uint32_t i, const struct my_table *model,
                    enum my_flavor flavor)
{
    static const char prefix[] = MY_HASH_COLUMN;
    const struct my_map_column *c = &map->columns[i];

    if (flavor != MY_MARIADB || c->type != MY_LONGLONG || model_column(map, i, model))
        return false;
    if (!map->full)
        return model && i >= model->ncolumns;
    return c->name.len > sizeof prefix - 1 && memcmp(c->name.ptr, prefix, sizeof prefix - 1) == 0;
}

/* Of the names that both have, MySQL's differs for one type. */
static void keep_flavor_names(struct my_column *c, enum my_flavor flavor)
{
    if (flavor == MY_MYSQL && strcmp(c->type, "GEOMETRYCOLLECTION") == 0) {
        free(c->type);
        c->type = cdcd_xstrdup("GEOMCOLLECTION");
    }
}

static bool geometry_fits(const struct my_map_column *map, const struct my_column *model)
{
    return map->type != MY_GEOMETRY ||
           (map->geometry == GEOMETRY_POINT) == (strcmp(model->type, "POINT") == 0) ||
           map->geometry == 0;
}

/* False: *why. Of a FULL map a model that does not fit is left aside. */
static enum cdcd_rc merge(const struct my_table_map *map, const struct my_table *model,
                          enum my_flavor flavor, struct merged *out, bool *fits, char why[256],
                          struct cdcd_error *err)
{
    out->columns = cdcd_xcalloc(map->ncolumns + 1, sizeof *out->columns);
    for (uint32_t i = 0; i < map->ncolumns; i++) {
        const struct my_column *m = model_column(map, i, model);
        const char *differs = NULL;
        if (my_wire_column(map, i, &out->columns[i], err) != CDCD_OK) {
            out->n = i + 1;
            return CDCD_ERROR;
        }
        out->n = i + 1;
        keep_flavor_names(&out->columns[i], flavor);
        bool same = m && my_wire_fits(&map->columns[i], m, flavor, map->full, &differs) &&
                    geometry_fits(&map->columns[i], m);
        if (same) {
            merge_column(&map->columns[i], &out->columns[i], m);
        } else if (is_hash(map, i, model, flavor)) {
            if (!out->columns[i].name)
                out->columns[i].name = cdcd_xasprintf(MY_HASH_COLUMN "%u", i);
        } else if (!map->full) {
            *fits = false;
            snprintf(why, 256, "column %u (%s) is known as %s, the log has %s", i + 1,
                     m ? m->name : "?", m ? m->type : "nothing",
                     differs ? differs : "another type");
            return CDCD_OK;
        } else if (my_wire_ambiguous(&map->columns[i], flavor)) {
            *fits = false;
            snprintf(why, 256,
                     "column %s may be bytes, a UUID or an address: its definition is not known",
                     out->columns[i].name);
            return CDCD_OK;
        }
    }
    return CDCD_OK;
}

static bool counts_fit(const struct my_table_map *map, const struct my_table *model,
                       enum my_flavor flavor, char why[256])
{
    size_t hashes = model && flavor == MY_MARIADB ? my_table_hash_columns(model) : 0;

    if (map->full)
        return true;
    if (!model)
        snprintf(why, 256, "nothing is known of the table");
    else if (model->unsure)
        snprintf(why, 256, "%s", model->why ? model->why : "its definition is not certain");
    else if (model->ncolumns + hashes != map->ncolumns)
        snprintf(why, 256, "%zu columns are known, the log has %u", model->ncolumns + hashes,
                 map->ncolumns);
    else
        return true;
    return false;
}

/* A key of the log is the primary key. System-versioned tables have row_end in it, which is the
 * same in all rows that are now: it counts only where it was put there by the user. */
static void map_keys(const struct my_table_map *map, const struct my_table *model,
                     const struct merged *m, const char ***keys, size_t *n)
{
    bool given = model && (!map->has_keys || !map->full) && !(map->full && model->primary);

    *n = 0;
    *keys = cdcd_xcalloc(map->nkeys + (model ? model->nkeys : 0) + 1, sizeof **keys);
    for (size_t i = 0; given && i < model->nkeys; i++)
        (*keys)[(*n)++] = model->keys[i];
    for (uint32_t i = 0; !given && map->has_keys && i < map->nkeys; i++) {
        if (map->keys[i] >= m->n)
            continue;
        const struct my_column *c = &m->columns[map->keys[i]];
        bool own = false;
        for (size_t k = 0; model && c->row_end && k < model->nkeys; k++)
            own = own || my_name_equal(model->keys[k], c->name);
        if (!c->row_end || own)
            (*keys)[(*n)++] = c->name;
    }
}

enum cdcd_rc my_shape_of_map(const struct my_table_map *map, const struct my_table *model,
                             const struct my_server *server, const struct my_filter *f,
                             struct my_shape **out, bool *fits, char why[256],
                             struct cdcd_error *err)
{
    char *db = cdcd_xstrndup(map->db.ptr, map->db.len);
    char *name = cdcd_xstrndup(map->table.ptr, map->table.len);
    struct part *parts = cdcd_xcalloc(map->ncolumns + 1, sizeof *parts);
    struct merged m = {0};
    const char **keys = NULL;
    enum cdcd_rc rc = CDCD_OK;

    *out = NULL;
    why[0] = 0;
    *fits = counts_fit(map, model, server->flavor, why);
    if (!*fits)
        goto out;
    rc = merge(map, model, server->flavor, &m, fits, why, err);
    if (rc != CDCD_OK || !*fits)
        goto out;
    struct plan p = {
        .db = db,
        .name = name,
        .parts = parts,
        .n = map->ncolumns,
        .sequence = model && model->sequence,
        .versioned = model && model->versioned,
    };
    for (uint32_t i = 0; i < map->ncolumns; i++)
        parts[i] = (struct part){
            .model = &m.columns[i],
            .type = map->columns[i].type,
            .meta = map->columns[i].meta,
            .hidden = is_hidden(&m.columns[i]) || is_hash(map, i, model, server->flavor),
        };
    map_keys(map, model, &m, &keys, &p.nkeys);
    p.keys = keys;
    rc = build(&p, server, f, out, err);
out:
    merged_free(&m);
    free(keys);
    free(parts);
    free(db);
    free(name);
    return rc;
}
