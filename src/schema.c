#include <cdcd/schema.h>

#include <stdlib.h>

struct cdcd_schema *cdcd_schema_new(const char *db, const char *schema, const char *table,
                                    uint32_t ncolumns)
{
    struct cdcd_schema *s = cdcd_xcalloc(1, sizeof(*s));
    size_t columns = ncolumns * sizeof(struct cdcd_column);
    size_t keys = ncolumns * sizeof(uint32_t);
    atomic_init(&s->refs, 1);
    /* Most schemas fit one chunk: names and type names take some 40 bytes a column. */
    cdcd_arena_init(&s->arena, columns + keys + 256 + 40 * (size_t)ncolumns);
    s->columns = cdcd_arena_alloc(&s->arena, columns);
    s->keys = cdcd_arena_alloc(&s->arena, keys);
    if (ncolumns) {
        memset(s->columns, 0, columns);
        memset(s->keys, 0, keys);
    }
    s->ncolumns = ncolumns;
    s->db = cdcd_schema_strdup(s, db, strlen(db));
    s->schema = cdcd_schema_strdup(s, schema, strlen(schema));
    s->table = cdcd_schema_strdup(s, table, strlen(table));
    return s;
}

struct cdcd_schema *cdcd_schema_document(const char *db, const char *collection)
{
    struct cdcd_schema *s = cdcd_schema_new(db, "", collection, CDCD_DOC_COLUMNS);
    s->document = true;
    s->columns[CDCD_DOC_ID] = (struct cdcd_column){.name = "id",
                                                   .name_len = 2,
                                                   .type = CDCD_T_BSON,
                                                   .length = -1,
                                                   .scale = -1,
                                                   .key = true,
                                                   .type_name = "_id"};
    s->columns[CDCD_DOC_DOCUMENT] = (struct cdcd_column){.name = "document",
                                                         .name_len = 8,
                                                         .type = CDCD_T_BSON,
                                                         .length = -1,
                                                         .scale = -1,
                                                         .optional = true,
                                                         .type_name = "document"};
    s->nkeys = 1; /* keys[0] is CDCD_DOC_ID */
    cdcd_schema_finish(s);
    return s;
}

char *cdcd_schema_strdup(struct cdcd_schema *s, const char *str, size_t len)
{
    return cdcd_arena_dup(&s->arena, str, len);
}

/* FNV-1a, 64 bits. */
static void hash_bytes(uint64_t *h, const void *p, size_t n)
{
    const uint8_t *s = p;
    for (size_t i = 0; i < n; i++)
        *h = (*h ^ s[i]) * 0x100000001b3u;
}

static void hash_int(uint64_t *h, uint32_t v)
{
    uint8_t b[4] = {(uint8_t)v, (uint8_t)(v >> 8), (uint8_t)(v >> 16), (uint8_t)(v >> 24)};
    hash_bytes(h, b, sizeof(b));
}

/* NULL and "" differ; the NUL keeps neighbours apart. */
static void hash_str(uint64_t *h, const char *s)
{
    hash_int(h, s ? 1 : 0);
    if (s)
        hash_bytes(h, s, strlen(s) + 1);
}

static void hash_column(uint64_t *h, const struct cdcd_column *c)
{
    hash_str(h, c->name);
    hash_int(h, (uint32_t)c->type);
    hash_int(h, (uint32_t)c->length);
    hash_int(h, (uint32_t)c->scale);
    hash_int(h, (uint32_t)c->optional | (uint32_t)c->key << 1 | (uint32_t)c->has_default << 2 |
                    (uint32_t)c->unsigned_ << 3);
    hash_str(h, c->default_text);
    hash_str(h, c->type_name);
    for (const char *const *l = c->labels; l && *l; l++)
        hash_str(h, *l);
    hash_int(h, c->elem ? 1 : 0);
    if (c->elem)
        hash_column(h, c->elem);
}

void cdcd_schema_finish(struct cdcd_schema *s)
{
    uint64_t h = 0xcbf29ce484222325u;
    hash_str(&h, s->db);
    hash_str(&h, s->schema);
    hash_str(&h, s->table);
    hash_int(&h, s->ncolumns);
    for (uint32_t i = 0; i < s->ncolumns; i++)
        hash_column(&h, &s->columns[i]);
    hash_int(&h, s->nkeys);
    for (uint32_t i = 0; i < s->nkeys; i++)
        hash_int(&h, s->keys[i]);
    s->version = h;
}

struct cdcd_schema *cdcd_schema_ref(struct cdcd_schema *s)
{
    atomic_fetch_add_explicit(&s->refs, 1, memory_order_relaxed);
    return s;
}

void cdcd_schema_unref(struct cdcd_schema *s)
{
    if (!s || atomic_fetch_sub_explicit(&s->refs, 1, memory_order_acq_rel) != 1)
        return;
    if (s->enc && s->enc_free)
        s->enc_free(s->enc);
    cdcd_arena_free(&s->arena);
    free(s);
}
