/*
 * relations.c: see relations.h.
 */
#include "relations.h"

#include <stdlib.h>

/* A label that stays unknown (it was renamed since) must not cost a query a row. */
#define REBUILD_EVERY_MS 5000

static size_t bucket_of(const struct pg_rels *r, uint32_t oid)
{
    return (oid * UINT32_C(2654435761)) >> 7 & (r->nbuckets - 1);
}

static void rel_free(struct pg_rel *rel)
{
    pg_table_free(rel->table);
    free(rel->raw);
    free(rel->enums);
    free(rel);
}

void pg_rels_clear(struct pg_rels *r)
{
    for (size_t i = 0; i < r->nbuckets; i++) {
        struct pg_rel *next;
        for (struct pg_rel *rel = r->buckets[i]; rel; rel = next) {
            next = rel->next;
            rel_free(rel);
        }
    }
    free(r->buckets);
    memset(r, 0, sizeof *r);
}

struct pg_rel *pg_rels_get(const struct pg_rels *r, uint32_t oid)
{
    if (r->n == 0)
        return NULL;
    struct pg_rel *rel = r->buckets[bucket_of(r, oid)];
    while (rel && rel->oid != oid)
        rel = rel->next;
    return rel;
}

static void grow(struct pg_rels *r)
{
    struct pg_rels bigger = {.nbuckets = r->nbuckets ? 2 * r->nbuckets : 64, .n = r->n};
    bigger.buckets = cdcd_xcalloc(bigger.nbuckets, sizeof *bigger.buckets);
    for (size_t i = 0; i < r->nbuckets; i++) {
        struct pg_rel *next;
        for (struct pg_rel *rel = r->buckets[i]; rel; rel = next) {
            next = rel->next;
            size_t b = bucket_of(&bigger, rel->oid);
            rel->next = bigger.buckets[b];
            bigger.buckets[b] = rel;
        }
    }
    free(r->buckets);
    *r = bigger;
}

static bool is_enum(const struct cdcd_column *c)
{
    while (c->type == CDCD_T_ARRAY && c->elem)
        c = c->elem;
    return c->type == CDCD_T_ENUM;
}

/* What hangs on the table's schema. */
static void set_table(struct pg_rel *rel, struct pg_table *t)
{
    pg_table_free(rel->table);
    rel->table = t;
    free(rel->enums);
    rel->enums = NULL;
    rel->nenums = 0;
    if (!t->captured)
        return;
    rel->schema = cdcd_slice_str(t->schema->schema);
    rel->name = cdcd_slice_str(t->schema->table);
    rel->enums = cdcd_xcalloc(t->schema->ncolumns + (size_t)1, sizeof *rel->enums);
    for (uint32_t i = 0; i < t->schema->ncolumns; i++)
        if (is_enum(&t->schema->columns[i]))
            rel->enums[rel->nenums++] = i;
}

enum cdcd_rc pg_rels_put(struct pg_rels *r, const struct pg_rel_env *env,
                         const struct pg_message *m, struct cdcd_slice raw, bool streamed,
                         uint64_t seq, struct cdcd_error *err)
{
    struct pg_table *t;
    if (pg_table_build(&m->relation, env->db, env->sql, env->types, env->filter, &t, err) !=
        CDCD_OK)
        return CDCD_ERROR;
    struct pg_rel *rel = pg_rels_get(r, m->oid);
    if (!rel) {
        if (r->n >= r->nbuckets)
            grow(r);
        rel = cdcd_xcalloc(1, sizeof *rel);
        rel->oid = m->oid;
        size_t b = bucket_of(r, rel->oid);
        rel->next = r->buckets[b];
        r->buckets[b] = rel;
        r->n++;
    }
    set_table(rel, t);
    rel->seq = seq;
    rel->rebuilt_ms = 0;
    size_t skip = streamed ? 4 : 0; /* the xid, behind the type */
    free(rel->raw);
    rel->raw_len = raw.len - skip;
    rel->raw = cdcd_xmalloc(rel->raw_len);
    rel->raw[0] = raw.ptr[0];
    memcpy(rel->raw + 1, raw.ptr + 1 + skip, rel->raw_len - 1);
    return CDCD_OK;
}

static bool label_known(const struct cdcd_column *c, const struct cdcd_cell *v)
{
    if (v->kind == CDCD_C_LIST) {
        for (uint32_t i = 0; i < v->len; i++)
            if (!label_known(c, &v->cells[i]))
                return false;
        return true;
    }
    while (c->type == CDCD_T_ARRAY && c->elem)
        c = c->elem;
    if (v->kind != CDCD_C_TEXT || !c->labels)
        return true;
    for (const char *const *l = c->labels; *l; l++)
        if (strlen(*l) == v->len && memcmp(*l, v->ptr, v->len) == 0)
            return true;
    return false;
}

bool pg_rel_new_label(const struct pg_rel *rel, const struct cdcd_cell *cells)
{
    for (uint32_t i = 0; cells && i < rel->nenums; i++) {
        uint32_t col = rel->enums[i];
        if (!label_known(&rel->table->schema->columns[col], &cells[col]))
            return true;
    }
    return false;
}

enum cdcd_rc pg_rel_rebuild(struct pg_rel *rel, const struct pg_rel_env *env, int64_t now_ms,
                            bool *changed, struct cdcd_error *err)
{
    *changed = false;
    if (!env->sql || (rel->rebuilt_ms && now_ms - rel->rebuilt_ms < REBUILD_EVERY_MS))
        return CDCD_OK;
    rel->rebuilt_ms = now_ms;
    struct pg_decoder d = {0};
    struct pg_message m;
    struct pg_table *t = NULL;
    enum cdcd_rc rc = pg_decode(&d, (struct cdcd_slice){rel->raw, rel->raw_len}, 0, false, &m, err);
    if (rc == CDCD_OK)
        rc = pg_table_build(&m.relation, env->db, env->sql, env->types, env->filter, &t, err);
    if (rc == CDCD_OK) {
        set_table(rel, t);
        *changed = true;
    }
    pg_decoder_free(&d);
    return rc;
}
