/*
 * snapshot_plan.c: keys, cursors and ranges of keys as SQL, and how a table is cut into chunks.
 *
 * Comparisons and order are the server's own, in the column's collation: nothing here decides
 * which of two keys is the greater. So a cut may stand anywhere, and need not be a key of the view
 * that is read; all that matters is that a range begins where the one before it ends.
 *
 * Ranges are open at their begin and closed at their end. Under a collation in which several
 * spellings are equal, a unique key has at most one row of them, so "greater than this row's key"
 * is exactly what has not been read.
 */
#include "snapshot_int.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

/* All that are unread stand in the state that goes with every batch. */
#define CHUNKS_MAX     1000
#define CHUNKS_TEXT    (128u << 10)
#define GAP_MAX        8 /* integer keys with more gaps than rows are cut by walking the index */
#define WALK_MAX_MS    30000
#define CURSOR_MAX_LEN 65536

/* ---- keys ---- */

static const struct {
    const char *type;
    enum my_key_kind kind;
} key_types[] = {
    {"TINYINT", MY_KEY_NUMBER}, {"SMALLINT", MY_KEY_NUMBER},   {"MEDIUMINT", MY_KEY_NUMBER},
    {"INT", MY_KEY_NUMBER},     {"INTEGER", MY_KEY_NUMBER},    {"BIGINT", MY_KEY_NUMBER},
    {"BOOL", MY_KEY_NUMBER},    {"BOOLEAN", MY_KEY_NUMBER},    {"DECIMAL", MY_KEY_NUMBER},
    {"NUMERIC", MY_KEY_NUMBER}, {"YEAR", MY_KEY_NUMBER},       {"FLOAT", MY_KEY_FLOAT},
    {"DOUBLE", MY_KEY_FLOAT},   {"REAL", MY_KEY_FLOAT},        {"BIT", MY_KEY_INDEX},
    {"ENUM", MY_KEY_INDEX},     {"SET", MY_KEY_INDEX},         {"DATE", MY_KEY_TEMPORAL},
    {"TIME", MY_KEY_TEMPORAL},  {"DATETIME", MY_KEY_TEMPORAL}, {"TIMESTAMP", MY_KEY_TEMPORAL},
    {"UUID", MY_KEY_NAMED},     {"INET4", MY_KEY_NAMED},       {"INET6", MY_KEY_NAMED},
    {"CHAR", MY_KEY_TEXT},      {"VARCHAR", MY_KEY_TEXT},      {"TINYTEXT", MY_KEY_TEXT},
    {"TEXT", MY_KEY_TEXT},      {"MEDIUMTEXT", MY_KEY_TEXT},   {"LONGTEXT", MY_KEY_TEXT},
    {"BINARY", MY_KEY_BINARY},  {"VARBINARY", MY_KEY_BINARY},  {"TINYBLOB", MY_KEY_BINARY},
    {"BLOB", MY_KEY_BINARY},    {"MEDIUMBLOB", MY_KEY_BINARY}, {"LONGBLOB", MY_KEY_BINARY},
};

/* The types whose values are cut by arithmetic. */
static bool is_integer(const char *type, size_t n)
{
    return n >= 3 && memcmp(type + n - 3, "INT", 3) == 0;
}

static bool is_name(const char *s)
{
    if (!s || !*s)
        return false;
    for (; *s; s++) {
        if (!isalnum((unsigned char)*s) && *s != '_')
            return false;
    }
    return true;
}

static struct my_key_column key_column(const struct my_column *c)
{
    size_t n = strcspn(c->type, " (");
    struct my_key_column k = {.name = c->name, .unsigned_ = c->unsigned_};
    for (size_t i = 0; i < sizeof key_types / sizeof *key_types; i++) {
        if (strlen(key_types[i].type) == n && memcmp(key_types[i].type, c->type, n) == 0)
            k.kind = key_types[i].kind;
    }
    k.integer = k.kind == MY_KEY_NUMBER && is_integer(c->type, n);
    if (k.kind == MY_KEY_TEXT && c->charset && strcmp(c->charset, "binary") == 0)
        k.kind = MY_KEY_BINARY;
    k.charset = c->charset;
    if (k.kind == MY_KEY_TEXT && !is_name(c->charset))
        k.kind = MY_KEY_NONE;
    return k;
}

static bool index_is_key(const struct my_table *t, const struct my_index *x)
{
    if (x->expression || x->ncolumns != t->nkeys || !(x->primary || x->unique))
        return false;
    for (size_t i = 0; i < t->nkeys; i++) {
        if (!my_name_equal(x->columns[i], t->keys[i]))
            return false;
    }
    return true;
}

void my_snap_key_of(const struct my_table *t, struct cdcd_arena *a, struct my_snap_key *out)
{
    *out = (struct my_snap_key){0};
    out->columns = cdcd_arena_alloc(a, (t->nkeys + 1) * sizeof *out->columns);
    for (size_t i = 0; i < t->nkeys; i++) {
        int c = my_table_column(t, t->keys[i]);
        if (c < 0)
            return;
        out->columns[i] = key_column(&t->columns[c]);
        if (out->columns[i].kind == MY_KEY_NONE)
            return;
    }
    for (size_t i = 0; i < t->nindexes && !out->index; i++) {
        if (index_is_key(t, &t->indexes[i]))
            out->index = t->indexes[i].name;
    }
    out->n = t->nkeys;
}

const char *my_snap_identity(const struct my_table *t, const struct my_snap_key *k,
                             struct cdcd_arena *a)
{
    struct cdcd_buf b;
    cdcd_buf_init(&b, 0);
    for (size_t i = 0; i < k->n; i++) {
        const struct my_key_column *c = &k->columns[i];
        const struct my_column *m = &t->columns[my_table_column(t, c->name)];
        cdcd_buf_addf(&b, "%s%s %d", i ? "," : "", c->name, (int)c->kind);
        if (c->kind == MY_KEY_TEXT)
            cdcd_buf_addf(&b, " %s %s", c->charset, m->collation ? m->collation : "");
        for (char **l = m->labels; l && *l; l++)
            cdcd_buf_addf(&b, "|%s", *l);
    }
    const char *text = cdcd_arena_dup(a, b.ptr ? b.ptr : "", b.len);
    cdcd_buf_free(&b);
    return text;
}

/* ---- cursors ---- */

bool my_cursor_parse(const struct my_snap_key *k, const char *text, struct cdcd_arena *a,
                     struct cdcd_slice **values, size_t *n)
{
    *n = 0;
    *values = cdcd_arena_alloc(a, (k->n + 1) * sizeof **values);
    if (*text++ != '[')
        return false;
    for (;;) {
        if (*n == k->n || *text++ != '"')
            return false;
        size_t len = strcspn(text, "\"\\");
        if (text[len] != '"' || len > CURSOR_MAX_LEN)
            return false;
        (*values)[(*n)++] = (struct cdcd_slice){cdcd_arena_dup(a, text, len), len};
        text += len + 1;
        if (*text != ',')
            break;
        text++;
    }
    return text[0] == ']' && text[1] == '\0';
}

void my_cursor_write(const struct cdcd_slice *values, size_t n, struct cdcd_buf *out)
{
    for (size_t i = 0; i < n; i++) {
        cdcd_buf_adds(out, i ? ",\"" : "[\"");
        cdcd_buf_add(out, values[i].ptr, values[i].len);
        cdcd_buf_adds(out, "\"");
    }
    cdcd_buf_adds(out, "]");
}

static bool only_of(struct cdcd_slice v, const char *set)
{
    return strspn(v.ptr, set) == v.len;
}

/* What is in a cursor becomes a part of a statement: nothing passes but what the kind allows. */
static bool add_literal(const struct my_key_column *c, struct cdcd_slice v, struct cdcd_buf *out)
{
    static const char hex[] = "0123456789ABCDEFabcdef";
    switch (c->kind) {
    case MY_KEY_NUMBER:
        if (v.len == 0 || !only_of(v, "0123456789.-"))
            return false;
        cdcd_buf_adds(out, v.ptr);
        return true;
    case MY_KEY_FLOAT:
        if (v.len == 0 || !only_of(v, "0123456789.-+e"))
            return false;
        /* With an exponent it is a double, as the column is; without it would be a decimal. */
        cdcd_buf_addf(out, "%s%s", v.ptr, strchr(v.ptr, 'e') ? "" : "e0");
        return true;
    case MY_KEY_INDEX:
        if (v.len == 0 || !only_of(v, "0123456789"))
            return false;
        cdcd_buf_adds(out, v.ptr);
        return true;
    case MY_KEY_TEMPORAL:
        if (v.len == 0 || !only_of(v, "0123456789-:. "))
            return false;
        cdcd_buf_addf(out, "'%s'", v.ptr);
        return true;
    case MY_KEY_NAMED:
        if (v.len == 0 || !only_of(v, "0123456789ABCDEFabcdef-:."))
            return false;
        cdcd_buf_addf(out, "'%s'", v.ptr);
        return true;
    case MY_KEY_TEXT:
    case MY_KEY_BINARY:
        if (v.len % 2 != 0 || !only_of(v, hex))
            return false;
        cdcd_buf_addf(out, "_%s X'%s'", c->kind == MY_KEY_TEXT ? c->charset : "binary", v.ptr);
        return true;
    default: return false;
    }
}

static void add_name(const char *name, struct cdcd_buf *out)
{
    char *quoted = my_sql("%I", name);
    cdcd_buf_adds(out, quoted);
    free(quoted);
}

void my_key_expression(const struct my_key_column *c, struct cdcd_buf *out)
{
    bool bytes = c->kind == MY_KEY_TEXT || c->kind == MY_KEY_BINARY;
    cdcd_buf_adds(out, bytes ? "HEX(" : "");
    add_name(c->name, out);
    cdcd_buf_adds(out, bytes                     ? ")"
                       : c->kind == MY_KEY_FLOAT ? "+0e0"
                       : c->kind == MY_KEY_INDEX ? "+0"
                                                 : "");
}

/* ---- ranges ---- */

/* (a > 1 OR (a = 1 AND (b > 2 OR (b = 2 AND c > 3)))): both servers' range optimizers make ranges
 * of the index of it, as they do not of (a,b,c) > (1,2,3). */
static bool add_bound(const struct my_snap_key *k, const struct cdcd_slice *v, size_t n,
                      const char *op, const char *last_op, struct cdcd_buf *out)
{
    for (size_t i = 0; i < n; i++) {
        const struct my_key_column *c = &k->columns[i];
        bool last = i + 1 == n;
        if (!last)
            cdcd_buf_adds(out, "(");
        add_name(c->name, out);
        cdcd_buf_addf(out, " %s ", last ? last_op : op);
        if (!add_literal(c, v[i], out))
            return false;
        if (last)
            break;
        cdcd_buf_adds(out, " OR (");
        add_name(c->name, out);
        cdcd_buf_adds(out, " = ");
        add_literal(c, v[i], out);
        cdcd_buf_adds(out, " AND ");
    }
    for (size_t i = 1; i < n; i++)
        cdcd_buf_adds(out, "))");
    return true;
}

bool my_range_where(const struct my_snap_key *k, const char *begin, const char *end,
                    struct cdcd_buf *out)
{
    struct cdcd_arena a;
    struct cdcd_slice *v;
    size_t n;
    bool good = true;
    cdcd_arena_init(&a, 1024);
    if (*begin) {
        cdcd_buf_adds(out, " WHERE ");
        good = my_cursor_parse(k, begin, &a, &v, &n) && add_bound(k, v, n, ">", ">", out);
    }
    if (good && *end) {
        cdcd_buf_adds(out, *begin ? " AND " : " WHERE ");
        good = my_cursor_parse(k, end, &a, &v, &n) && add_bound(k, v, n, "<", "<=", out);
    }
    cdcd_arena_free(&a);
    return good;
}

void my_key_force(const struct my_snap_key *k, struct cdcd_buf *out)
{
    if (k->n == 0 || !k->index)
        return;
    cdcd_buf_adds(out, " FORCE INDEX (");
    add_name(k->index, out);
    cdcd_buf_adds(out, ")");
}

void my_key_order(const struct my_snap_key *k, struct cdcd_buf *out)
{
    for (size_t i = 0; i < k->n; i++) {
        cdcd_buf_adds(out, i ? ", " : " ORDER BY ");
        add_name(k->columns[i].name, out);
    }
}

/* ---- cutting ---- */

static void add_cut(struct cdcd_chunks *out, const struct cdcd_slice *values, size_t n)
{
    struct cdcd_buf b;
    cdcd_buf_init(&b, 0);
    my_cursor_write(values, n, &b);
    struct cdcd_chunk *last = &out->items[out->n - 1];
    last->end = cdcd_arena_dup(&out->arena, b.ptr, b.len);
    out->items[out->n] = (struct cdcd_chunk){(uint32_t)out->n, last->end, ""};
    out->n++;
    cdcd_buf_free(&b);
}

static void one_chunk(struct cdcd_chunks *out)
{
    cdcd_arena_init(&out->arena, 4096);
    out->items = cdcd_arena_alloc(&out->arena, (CHUNKS_MAX + 2) * sizeof *out->items);
    out->items[0] = (struct cdcd_chunk){0, "", ""};
    out->n = 1;
}

bool my_cut_integers(const char *min, const char *max, bool unsigned_, int64_t rows,
                     int64_t per_chunk, struct cdcd_chunks *out)
{
    uint64_t lo = unsigned_ ? strtoull(min, NULL, 10) : (uint64_t)strtoll(min, NULL, 10);
    uint64_t hi = unsigned_ ? strtoull(max, NULL, 10) : (uint64_t)strtoll(max, NULL, 10);
    uint64_t span = hi - lo; /* right for negative numbers too: arithmetic modulo 2^64 */
    uint64_t step = per_chunk > 0 ? (uint64_t)per_chunk : 1;
    uint64_t gap = rows > 0 ? span / (uint64_t)rows : 1;
    if (gap > GAP_MAX && span / step >= CHUNKS_MAX)
        return false;
    if (gap > 1)
        step *= gap > GAP_MAX ? GAP_MAX : gap;
    if (span / step >= CHUNKS_MAX)
        step = span / CHUNKS_MAX + 1;
    for (uint64_t at = lo; hi - at >= step && hi != at;) {
        char text[24];
        at += step;
        uint64_t end = at - 1;
        int n = unsigned_ ? snprintf(text, sizeof text, "%" PRIu64, end)
                          : snprintf(text, sizeof text, "%" PRId64, (int64_t)end);
        add_cut(out, &(struct cdcd_slice){text, (size_t)n}, 1);
    }
    return true;
}

static enum cdcd_rc cut_by_numbers(MYSQL *m, const struct my_snap_table *t, int64_t per_chunk,
                                   struct cdcd_chunks *out, bool *done, struct cdcd_error *err)
{
    MYSQL_RES *r = NULL;
    const char *name = t->key.columns[0].name;
    enum cdcd_rc rc = my_queryf(m, &r, err, "SELECT MIN(%I), MAX(%I) FROM %I.%I", name, name,
                                t->model->db, t->model->name);
    if (rc != CDCD_OK)
        return rc;
    MYSQL_ROW row = mysql_fetch_row(r);
    *done = !row || !row[0] || !row[1] ||
            my_cut_integers(row[0], row[1], t->key.columns[0].unsigned_, t->stamp.rows, per_chunk,
                            out);
    mysql_free_result(r);
    return CDCD_OK;
}

/* The key that stands `step` rows behind `begin`; out stays empty at the end of the table. */
static enum cdcd_rc step_on(MYSQL *m, const struct my_snap_table *t, const char *begin,
                            int64_t step, struct cdcd_chunks *out, bool *end,
                            struct cdcd_error *err)
{
    struct cdcd_buf b;
    MYSQL_RES *r = NULL;
    cdcd_buf_init(&b, 0);
    cdcd_buf_adds(&b, "SELECT ");
    for (size_t i = 0; i < t->key.n; i++) {
        cdcd_buf_adds(&b, i ? ", " : "");
        my_key_expression(&t->key.columns[i], &b);
    }
    char *from = my_sql(" FROM %I.%I", t->model->db, t->model->name);
    cdcd_buf_adds(&b, from);
    free(from);
    my_key_force(&t->key, &b);
    my_range_where(&t->key, begin, "", &b);
    my_key_order(&t->key, &b);
    cdcd_buf_addf(&b, " LIMIT 1 OFFSET %" PRId64, step - 1);
    enum cdcd_rc rc = my_query(m, &r, err, cdcd_buf_cstr(&b));
    cdcd_buf_free(&b);
    if (rc != CDCD_OK)
        return rc;
    MYSQL_ROW row = mysql_fetch_row(r);
    *end = row == NULL;
    if (row) {
        struct cdcd_slice *v = cdcd_arena_alloc(&out->arena, t->key.n * sizeof *v);
        for (size_t i = 0; i < t->key.n; i++)
            v[i] = cdcd_slice_str(row[i]);
        add_cut(out, v, t->key.n);
    }
    mysql_free_result(r);
    return CDCD_OK;
}

/* Walking reads the index from its begin: what is not cut after some time is left in one piece. */
static enum cdcd_rc cut_by_walking(struct cdcd_source *s, MYSQL *m, const struct my_snap_table *t,
                                   int64_t per_chunk, struct cdcd_chunks *out,
                                   struct cdcd_error *err)
{
    int64_t until = cdcd_now_ms() + WALK_MAX_MS, step = per_chunk;
    size_t text = 0;
    bool end = t->stamp.rows >= 0 && t->stamp.rows <= per_chunk;
    if (t->stamp.rows / CHUNKS_MAX >= step)
        step = t->stamp.rows / CHUNKS_MAX + 1;
    while (!end && out->n <= CHUNKS_MAX && text < CHUNKS_TEXT && cdcd_now_ms() < until) {
        if (s->env->stopping && s->env->stopping(s->env->ctx))
            return cdcd_error_set(err, CDCD_ERR_RETRY, "asked to end");
        const char *begin = out->items[out->n - 1].begin;
        text += 2 * strlen(begin);
        enum cdcd_rc rc = step_on(m, t, begin, step, out, &end, err);
        if (rc != CDCD_OK)
            return rc;
    }
    return CDCD_OK;
}

enum cdcd_rc my_snapshot_plan(struct cdcd_source *s, const struct cdcd_snapshot_table *table,
                              struct cdcd_chunks *out, struct cdcd_error *err)
{
    const struct my_snap_table *t = table->source_data;
    int64_t per_chunk = s->cfg->snapshot_chunk_rows > 0 ? s->cfg->snapshot_chunk_rows : 1;
    bool done = false;
    *out = (struct cdcd_chunks){0};
    one_chunk(out);
    /* Chunks are for several workers; going on after a kill needs none. */
    if (t->key.n == 0 || s->snapshot->nviews < 2)
        return CDCD_OK;
    MYSQL *m = s->snapshot->catalog;
    pthread_mutex_lock(&s->snapshot->catalog_lock);
    enum cdcd_rc rc = CDCD_OK;
    if (t->key.n == 1 && t->key.columns[0].integer)
        rc = cut_by_numbers(m, t, per_chunk, out, &done, err);
    /* A condition on ENUM and SET is no range of the index: each chunk would read all of it. */
    if (rc == CDCD_OK && !done && t->key.columns[0].kind != MY_KEY_INDEX)
        rc = cut_by_walking(s, m, t, per_chunk, out, err);
    if (rc != CDCD_OK)
        rc = my_snap_error(s, m, t, err);
    pthread_mutex_unlock(&s->snapshot->catalog_lock);
    if (rc != CDCD_OK) {
        cdcd_arena_free(&out->arena);
        *out = (struct cdcd_chunks){0};
        return cdcd_error_context(err, "snapshot of %s", table->label);
    }
    return CDCD_OK;
}
