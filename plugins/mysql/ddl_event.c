/*
 * ddl_event.c: models as schema change events have them, in the peer's form: java.sql.Types, an
 * ENUM of length 1, a SET as long as all its one-letter labels with commas, defaults and labels as
 * they stand between the quotes of a statement, comments from MariaDB only.
 */
#include "ddl.h"

#include <stdlib.h>

/* java.sql.Types */
enum {
    JDBC_BIT = -7,
    JDBC_BIGINT = -5,
    JDBC_VARBINARY = -3,
    JDBC_BINARY = -2,
    JDBC_CHAR = 1,
    JDBC_DECIMAL = 3,
    JDBC_INTEGER = 4,
    JDBC_SMALLINT = 5,
    JDBC_FLOAT = 6,
    JDBC_DOUBLE = 8,
    JDBC_VARCHAR = 12,
    JDBC_DATE = 91,
    JDBC_TIME = 92,
    JDBC_TIMESTAMP = 93,
    JDBC_OTHER = 1111,
    JDBC_BLOB = 2004,
    JDBC_TIMESTAMP_WITH_TIMEZONE = 2014,
};

static int jdbc_type(const char *type)
{
    static const struct {
        const char *type;
        int jdbc;
    } map[] = {
        {"TINYINT", JDBC_SMALLINT},
        {"SMALLINT", JDBC_SMALLINT},
        {"MEDIUMINT", JDBC_INTEGER},
        {"INT", JDBC_INTEGER},
        {"BIGINT", JDBC_BIGINT},
        {"YEAR", JDBC_INTEGER},
        {"DECIMAL", JDBC_DECIMAL},
        {"FLOAT", JDBC_FLOAT},
        {"DOUBLE", JDBC_DOUBLE},
        {"BIT", JDBC_BIT},
        {"DATE", JDBC_DATE},
        {"TIME", JDBC_TIME},
        {"DATETIME", JDBC_TIMESTAMP},
        {"TIMESTAMP", JDBC_TIMESTAMP_WITH_TIMEZONE},
        {"CHAR", JDBC_CHAR},
        {"ENUM", JDBC_CHAR},
        {"SET", JDBC_CHAR},
        {"VARCHAR", JDBC_VARCHAR},
        {"TINYTEXT", JDBC_VARCHAR},
        {"TEXT", JDBC_VARCHAR},
        {"MEDIUMTEXT", JDBC_VARCHAR},
        {"LONGTEXT", JDBC_VARCHAR},
        {"XMLTYPE", JDBC_VARCHAR},
        {"BINARY", JDBC_BINARY},
        {"VARBINARY", JDBC_VARBINARY},
        {"TINYBLOB", JDBC_BLOB},
        {"BLOB", JDBC_BLOB},
        {"MEDIUMBLOB", JDBC_BLOB},
        {"LONGBLOB", JDBC_BLOB},
    };
    size_t n = strcspn(type, " ");

    for (size_t i = 0; i < sizeof map / sizeof *map; i++) {
        if (strlen(map[i].type) == n && memcmp(map[i].type, type, n) == 0)
            return map[i].jdbc;
    }
    return JDBC_OTHER;
}

static struct cdcd_slice copy(struct cdcd_arena *a, const char *s)
{
    if (!s)
        return (struct cdcd_slice){NULL, 0};
    return (struct cdcd_slice){cdcd_arena_dup(a, s, strlen(s)), strlen(s)};
}

/* As between the quotes of a literal. `raw`: backslashes are escapes already. */
static struct cdcd_slice escaped(struct cdcd_arena *a, const char *s, const char *quote, bool raw)
{
    struct cdcd_writer w;

    cdcd_writer_begin(&w, a);
    cdcd_writer_add(&w, quote, strlen(quote));
    for (; *s; s++) {
        if (*s == '\'')
            cdcd_writer_lit(&w, "''");
        else if (*s == '\\' && !raw)
            cdcd_writer_lit(&w, "\\\\");
        else if (*s == '\n')
            cdcd_writer_lit(&w, "\\n");
        else
            cdcd_writer_char(&w, *s);
    }
    cdcd_writer_add(&w, quote, strlen(quote));
    return cdcd_writer_end(&w);
}

static struct cdcd_slice default_of(const struct my_column *c, struct cdcd_arena *a)
{
    if (!c->default_)
        return (struct cdcd_slice){NULL, 0};
    if (!c->default_expr)
        return escaped(a, c->default_, "", strstr(c->type, "BINARY") != NULL);
    if (strncmp(c->default_, "CURRENT_TIMESTAMP", 17) == 0)
        return cdcd_slice_str("1970-01-01 00:00:00");
    return (struct cdcd_slice){NULL, 0};
}

static void fill_labels(const struct my_column *c, struct cdcd_arena *a,
                        struct cdcd_ddl_column *out)
{
    uint32_t n = 0;

    while (c->labels[n])
        n++;
    struct cdcd_slice *labels = cdcd_arena_alloc(a, (n + 1) * sizeof *labels);
    for (uint32_t i = 0; i < n; i++)
        labels[i] = escaped(a, c->labels[i], "'", false);
    out->labels = labels;
    out->nlabels = n;
    out->length = strcmp(c->type, "SET") == 0 && n > 0 ? (int32_t)(2 * n - 1) : 1;
}

static void fill_column(const struct my_column *c, enum my_flavor flavor, struct cdcd_arena *a,
                        struct cdcd_ddl_column *out)
{
    bool counted = c->auto_increment || (c->on_update_now && flavor == MY_MYSQL);

    *out = (struct cdcd_ddl_column){
        .name = copy(a, c->name),
        .type_name = copy(a, c->type),
        .charset = copy(a, c->charset),
        .comment = copy(a, flavor == MY_MARIADB ? c->comment : NULL),
        .default_ = default_of(c, a),
        .jdbc_type = jdbc_type(c->type),
        .length = c->length,
        .scale = c->scale,
        .optional = c->nullable,
        .auto_incremented = counted,
        .generated = counted,
    };
    out->type_expression = out->type_name;
    if (c->labels)
        fill_labels(c, a, out);
}

void my_ddl_table_change(const struct my_table *t, enum cdcd_ddl_type type, enum my_flavor flavor,
                         struct cdcd_arena *a, struct cdcd_ddl_table *out)
{
    struct cdcd_ddl_column *columns = cdcd_arena_alloc(a, (t->ncolumns + 1) * sizeof *columns);
    struct cdcd_slice *keys = cdcd_arena_alloc(a, (t->nkeys + 1) * sizeof *keys);

    *out = (struct cdcd_ddl_table){
        .type = type,
        .db = copy(a, t->db),
        .table = copy(a, t->name),
        .charset = copy(a, t->charset),
        .comment = copy(a, flavor == MY_MARIADB ? t->comment : NULL),
        .columns = columns,
        .keys = keys,
        .nkeys = (uint32_t)t->nkeys,
    };
    for (size_t i = 0; i < t->ncolumns; i++) {
        const struct my_column *c = &t->columns[i];
        bool hidden = (c->row_start || c->row_end) && !c->generated;
        if (!hidden)
            fill_column(c, flavor, a, &columns[out->ncolumns++]);
    }
    for (size_t i = 0; i < t->nkeys; i++)
        keys[i] = copy(a, t->keys[i]);
}

/* ---- the peer's order of several tables ---- */

/* String.hashCode(): over UTF-16 units. */
static uint32_t java_hash(uint32_t h, const char *s)
{
    const uint8_t *p = (const uint8_t *)s;

    while (*p) {
        unsigned n = *p < 0xc0 ? 1 : *p < 0xe0 ? 2 : *p < 0xf0 ? 3 : 4;
        uint32_t c = n == 1 ? *p : *p & (0xffu >> (n + 1));
        for (p++; n > 1 && (*p & 0xc0) == 0x80; n--)
            c = c << 6 | (*p++ & 0x3f);
        if (c >= 0x10000) {
            h = 31 * h + (0xd800 + ((c - 0x10000) >> 10));
            c = 0xdc00 + ((c - 0x10000) & 0x3ff);
        }
        h = 31 * h + c;
    }
    return h;
}

struct hashed {
    const char *name;
    uint32_t hash;
};

static bool is_there(const struct hashed *list, size_t n, const char *name)
{
    for (size_t i = 0; i < n; i++) {
        if (strcmp(list[i].name, name) == 0)
            return true;
    }
    return false;
}

/* A Java HashSet has a power of two of buckets, at least 16 and 4/3 of what is in it, by the hash
 * with its upper half mixed in; within a bucket the order of insertion. */
struct cdcd_slice my_ddl_table_list(const struct my_effect *effects, const char *db,
                                    struct cdcd_arena *a)
{
    size_t n = 0, cap = 0, buckets = 16;
    struct cdcd_buf b;

    for (const struct my_effect *e = effects; e; e = e->next)
        cap++;
    struct hashed *list = cdcd_xcalloc(cap + 1, sizeof *list);
    for (const struct my_effect *e = effects; e; e = e->next) {
        if (e->kind != MY_EFFECT_TABLE || strcmp(e->db, db) != 0 || is_there(list, n, e->table))
            continue;
        uint32_t h = java_hash(java_hash(java_hash(0, db), "."), e->table);
        list[n++] = (struct hashed){e->table, h ^ h >> 16};
    }
    while (buckets * 3 / 4 < n)
        buckets *= 2;
    for (size_t i = 1; i < n; i++) {
        struct hashed x = list[i];
        size_t k = i;
        for (; k > 0 && (list[k - 1].hash & (buckets - 1)) > (x.hash & (buckets - 1)); k--)
            list[k] = list[k - 1];
        list[k] = x;
    }
    cdcd_buf_init(&b, 0);
    for (size_t i = 0; i < n; i++)
        cdcd_buf_addf(&b, "%s%s", i ? "," : "", list[i].name);
    struct cdcd_slice out = {cdcd_arena_dup(a, b.ptr ? b.ptr : "", b.len), b.len};
    cdcd_buf_free(&b);
    free(list);
    return out;
}
