/*
 * table.c: the model of a table: memory, names, which columns are its key, and the note it becomes.
 *
 * A note is JSON: {"v":1,"db":..,"name":..,"columns":[{"n":name,"t":type,...}],"indexes":[...]}.
 * Members that have their ordinary value are left out; unknown members pass, so that an older cdcd
 * can read what a newer one wrote as long as the version is the same.
 */
#include "ddl.h"

#include <jansson.h>
#include <locale.h>
#include <pthread.h>
#include <stdlib.h>
#include <wctype.h>

enum { NOTE_VERSION = 1 };

/* ---- names ---- */

static locale_t fold_locale;

static void fold_setup(void)
{
    fold_locale = newlocale(LC_CTYPE_MASK, "C.UTF-8", (locale_t)0);
}

/* The next code point of a NUL-terminated string; a byte that is not UTF-8 counts for itself. */
static uint32_t next_code_point(const char **p)
{
    const uint8_t *s = (const uint8_t *)*p;
    unsigned n = s[0] < 0xc0 ? 1 : s[0] < 0xe0 ? 2 : s[0] < 0xf0 ? 3 : 4;
    uint32_t c = n == 1 ? s[0] : s[0] & (0xffu >> (n + 1));

    for (unsigned i = 1; i < n; i++) {
        if ((s[i] & 0xc0) != 0x80) {
            *p += 1;
            return s[0];
        }
        c = c << 6 | (s[i] & 0x3f);
    }
    *p += n;
    return c;
}

static uint32_t lower(uint32_t c)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;

    if (c < 0x80)
        return c >= 'A' && c <= 'Z' ? c + 32 : c;
    pthread_once(&once, fold_setup);
    return fold_locale ? (uint32_t)towlower_l((wint_t)c, fold_locale) : c;
}

bool my_name_equal(const char *a, const char *b)
{
    while (*a && *b) {
        if (lower(next_code_point(&a)) != lower(next_code_point(&b)))
            return false;
    }
    return *a == *b;
}

static void put_utf8(struct cdcd_buf *b, uint32_t c)
{
    char u[4];
    size_t n = c < 0x80 ? 1 : c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
    static const uint8_t lead[5] = {0, 0, 0xc0, 0xe0, 0xf0};

    for (size_t i = n; i-- > 1; c >>= 6)
        u[i] = (char)(0x80 | (c & 0x3f));
    u[0] = (char)(lead[n == 1 ? 0 : n] | c);
    cdcd_buf_add(b, u, n);
}

char *my_name_fold(const char *name)
{
    struct cdcd_buf b;

    cdcd_buf_init(&b, 0);
    for (const char *p = name; *p;) {
        const char *start = p;
        uint32_t c = next_code_point(&p);
        if (c >= 0x80 && p == start + 1) /* not UTF-8: as it is */
            cdcd_buf_add(&b, start, 1);
        else
            put_utf8(&b, lower(c));
    }
    char *s = cdcd_xstrdup(cdcd_buf_cstr(&b));
    cdcd_buf_free(&b);
    return s;
}

/* ---- memory ---- */

static char *dup_or_null(const char *s)
{
    return s ? cdcd_xstrdup(s) : NULL;
}

void my_set_string(char **field, const char *value)
{
    char *copy = dup_or_null(value);

    free(*field);
    *field = copy;
}

static void free_strings(char **list, size_t n)
{
    for (size_t i = 0; list && i < n; i++)
        free(list[i]);
    free(list);
}

static size_t count_strings(char *const *list)
{
    size_t n = 0;

    while (list && list[n])
        n++;
    return n;
}

/* With a NULL behind. */
static char **copy_strings(char *const *list, size_t n)
{
    char **out = cdcd_xcalloc(n + 1, sizeof *out);

    for (size_t i = 0; i < n; i++)
        out[i] = cdcd_xstrdup(list[i]);
    return out;
}

void my_column_free(struct my_column *c)
{
    free(c->name);
    free(c->type);
    free(c->charset);
    free(c->collation);
    free(c->default_);
    free(c->comment);
    free_strings(c->labels, count_strings(c->labels));
}

void my_column_copy(const struct my_column *from, struct my_column *to)
{
    *to = *from;
    to->name = dup_or_null(from->name);
    to->type = dup_or_null(from->type);
    to->charset = dup_or_null(from->charset);
    to->collation = dup_or_null(from->collation);
    to->default_ = dup_or_null(from->default_);
    to->comment = dup_or_null(from->comment);
    to->labels = from->labels ? copy_strings(from->labels, count_strings(from->labels)) : NULL;
}

void my_index_free(struct my_index *i)
{
    free(i->name);
    free_strings(i->columns, i->ncolumns);
}

struct my_table *my_table_new(const char *db, const char *name)
{
    struct my_table *t = cdcd_xcalloc(1, sizeof *t);

    t->db = cdcd_xstrdup(db);
    t->name = cdcd_xstrdup(name);
    return t;
}

void my_table_free(struct my_table *t)
{
    if (!t)
        return;
    for (size_t i = 0; i < t->ncolumns; i++)
        my_column_free(&t->columns[i]);
    for (size_t i = 0; i < t->nindexes; i++)
        my_index_free(&t->indexes[i]);
    free_strings(t->keys, t->nkeys);
    free(t->columns);
    free(t->indexes);
    free(t->db);
    free(t->name);
    free(t->charset);
    free(t->collation);
    free(t->comment);
    free(t->why);
    free(t);
}

struct my_table *my_table_copy(const struct my_table *t)
{
    struct my_table *c = cdcd_xmalloc(sizeof *c);

    *c = *t;
    c->db = cdcd_xstrdup(t->db);
    c->name = cdcd_xstrdup(t->name);
    c->charset = dup_or_null(t->charset);
    c->collation = dup_or_null(t->collation);
    c->comment = dup_or_null(t->comment);
    c->why = dup_or_null(t->why);
    c->columns = cdcd_xcalloc(t->ncolumns + 1, sizeof *c->columns);
    for (size_t i = 0; i < t->ncolumns; i++)
        my_column_copy(&t->columns[i], &c->columns[i]);
    c->indexes = cdcd_xcalloc(t->nindexes + 1, sizeof *c->indexes);
    for (size_t i = 0; i < t->nindexes; i++) {
        c->indexes[i] = t->indexes[i];
        c->indexes[i].name = dup_or_null(t->indexes[i].name);
        c->indexes[i].columns = copy_strings(t->indexes[i].columns, t->indexes[i].ncolumns);
    }
    c->keys = copy_strings(t->keys, t->nkeys);
    return c;
}

/* ---- the key ---- */

int my_table_column(const struct my_table *t, const char *name)
{
    for (size_t i = 0; i < t->ncolumns; i++) {
        if (my_name_equal(t->columns[i].name, name))
            return (int)i;
    }
    return -1;
}

static bool identifies_rows(const struct my_table *t, const struct my_index *x)
{
    if (!x->unique || x->expression || x->ncolumns == 0)
        return false;
    for (size_t i = 0; i < x->ncolumns; i++) {
        int c = my_table_column(t, x->columns[i]);
        if (c < 0 || t->columns[c].nullable)
            return false;
    }
    return true;
}

/* InnoDB's longest key. Other engines have shorter ones, which a model does not tell. */
enum { MAX_KEY_BYTES = 3072 };

static size_t part_bytes(const struct my_column *c)
{
    if (strstr(c->type, "TEXT") || strstr(c->type, "BLOB"))
        return MAX_KEY_BYTES + 1;
    if (strstr(c->type, "CHAR") || strstr(c->type, "BINARY"))
        return (size_t)(c->length > 0 ? c->length : 0) * my_charset_max_bytes(c->charset);
    return 8;
}

/* MariaDB's unique keys of any length are kept as a hash (HA_KEY_ALG_LONG_HASH). */
static bool is_hashed(const struct my_table *t, const struct my_index *x)
{
    size_t bytes = 0;

    for (size_t i = 0; x->unique && !x->primary && !x->partial && i < x->ncolumns; i++) {
        int c = my_table_column(t, x->columns[i]);
        bytes += c >= 0 ? part_bytes(&t->columns[c]) : 0;
    }
    return bytes > MAX_KEY_BYTES;
}

size_t my_table_hash_columns(const struct my_table *t)
{
    size_t n = 0;

    for (size_t i = 0; i < t->nindexes; i++)
        n += is_hashed(t, &t->indexes[i]);
    return n;
}

/* The server's order: the primary key, unique ones of whole columns, those without NULL first, then
 * the rest; else as they were defined (sql_table.cc: sort_keys). */
static int index_class(const struct my_table *t, const struct my_index *x)
{
    bool nullable = false;

    if (x->primary)
        return 0;
    if (!x->unique)
        return 5;
    for (size_t i = 0; i < x->ncolumns; i++) {
        int c = my_table_column(t, x->columns[i]);
        nullable = nullable || (c >= 0 && t->columns[c].nullable);
    }
    return 1 + 2 * (x->partial || x->expression || is_hashed(t, x)) + nullable;
}

/* Stable: an order from before stays where nothing else decides. */
static void sort_indexes(struct my_table *t)
{
    for (size_t i = 1; i < t->nindexes; i++) {
        struct my_index x = t->indexes[i];
        int class = index_class(t, &x);
        size_t k = i;
        for (; k > 0 && index_class(t, &t->indexes[k - 1]) > class; k--)
            t->indexes[k] = t->indexes[k - 1];
        t->indexes[k] = x;
    }
}

static void primary_not_null(struct my_table *t, const struct my_index *primary)
{
    for (size_t k = 0; k < primary->ncolumns; k++) {
        int c = my_table_column(t, primary->columns[k]);
        if (c >= 0)
            t->columns[c].nullable = false;
    }
}

void my_table_set_keys(struct my_table *t)
{
    const struct my_index *key = NULL;

    free_strings(t->keys, t->nkeys);
    t->keys = NULL;
    t->nkeys = 0;
    t->primary = false;
    for (size_t i = 0; i < t->nindexes; i++) {
        if (t->indexes[i].primary)
            primary_not_null(t, &t->indexes[i]);
    }
    sort_indexes(t);
    for (size_t i = 0; !key && i < t->nindexes; i++) {
        if (t->indexes[i].primary || identifies_rows(t, &t->indexes[i]))
            key = &t->indexes[i];
    }
    t->primary = key && key->primary;
    if (!key)
        return;
    t->nkeys = key->ncolumns;
    t->keys = copy_strings(key->columns, key->ncolumns);
    for (size_t k = 0; k < t->nkeys; k++) { /* in the columns' own spelling */
        int c = my_table_column(t, t->keys[k]);
        if (c < 0)
            continue;
        free(t->keys[k]);
        t->keys[k] = cdcd_xstrdup(t->columns[c].name);
    }
}

/* ---- the note ---- */

/* What of it is a flag, by the member's name. */
#define COLUMN_FLAGS(X)      \
    X("null", nullable)      \
    X("ai", auto_increment)  \
    X("gen", generated)      \
    X("virt", virtual_)      \
    X("inv", invisible)      \
    X("uns", unsigned_)      \
    X("zf", zerofill)        \
    X("json", json_alias)    \
    X("comp", compressed)    \
    X("onup", on_update_now) \
    X("def", has_default)    \
    X("expr", default_expr)  \
    X("rs", row_start)       \
    X("re", row_end)
#define TABLE_FLAGS(X)        \
    X("sequence", sequence)   \
    X("versioned", versioned) \
    X("view", view)           \
    X("unsure", unsure)
#define INDEX_FLAGS(X)    \
    X("primary", primary) \
    X("unique", unique)   \
    X("partial", partial) \
    X("expr", expression)

#define WRITE_FLAG(key, member) \
    if (x->member)              \
        json_object_set_new(o, key, json_true());
#define READ_FLAG(key, member) x->member = json_is_true(json_object_get(o, key));

static void set_string(json_t *o, const char *key, const char *value)
{
    if (value)
        json_object_set_new(o, key, json_string(value)); /* NULL (no UTF-8): left out */
}

static char *get_string(const json_t *o, const char *key)
{
    return dup_or_null(json_string_value(json_object_get(o, key)));
}

static json_t *write_strings(char *const *list, size_t n)
{
    json_t *a = json_array();

    for (size_t i = 0; i < n; i++) {
        json_t *s = json_string(list[i]);
        json_array_append_new(a, s ? s : json_string(""));
    }
    return a;
}

static char **read_strings(const json_t *a, size_t *n)
{
    char **out = cdcd_xcalloc(json_array_size(a) + 1, sizeof *out);

    *n = json_array_size(a);
    for (size_t i = 0; i < *n; i++) {
        const char *s = json_string_value(json_array_get(a, i));
        out[i] = cdcd_xstrdup(s ? s : "");
    }
    return out;
}

static json_t *write_column(const struct my_column *x)
{
    json_t *o = json_object();

    set_string(o, "n", x->name);
    set_string(o, "t", x->type);
    if (x->length >= 0)
        json_object_set_new(o, "l", json_integer(x->length));
    if (x->scale >= 0)
        json_object_set_new(o, "s", json_integer(x->scale));
    set_string(o, "cs", x->charset);
    set_string(o, "co", x->collation);
    COLUMN_FLAGS(WRITE_FLAG)
    set_string(o, "d", x->default_);
    set_string(o, "c", x->comment);
    if (x->labels)
        json_object_set_new(o, "lb", write_strings(x->labels, count_strings(x->labels)));
    return o;
}

static int32_t get_length(const json_t *o, const char *key)
{
    const json_t *v = json_object_get(o, key);

    return json_is_integer(v) ? (int32_t)json_integer_value(v) : -1;
}

static bool read_column(const json_t *o, struct my_column *x)
{
    size_t n;

    x->name = get_string(o, "n");
    x->type = get_string(o, "t");
    x->length = get_length(o, "l");
    x->scale = get_length(o, "s");
    x->charset = get_string(o, "cs");
    x->collation = get_string(o, "co");
    COLUMN_FLAGS(READ_FLAG)
    x->default_ = get_string(o, "d");
    x->comment = get_string(o, "c");
    if (json_is_array(json_object_get(o, "lb")))
        x->labels = read_strings(json_object_get(o, "lb"), &n);
    return x->name && x->type;
}

static json_t *write_index(const struct my_index *x)
{
    json_t *o = json_object();

    set_string(o, "n", x->name);
    json_object_set_new(o, "c", write_strings(x->columns, x->ncolumns));
    INDEX_FLAGS(WRITE_FLAG)
    return o;
}

static void read_index(const json_t *o, struct my_index *x)
{
    x->name = get_string(o, "n");
    x->columns = read_strings(json_object_get(o, "c"), &x->ncolumns);
    INDEX_FLAGS(READ_FLAG)
}

void my_table_write(const struct my_table *x, struct cdcd_buf *out)
{
    json_t *o = json_object(), *columns = json_array(), *indexes = json_array();

    json_object_set_new(o, "v", json_integer(NOTE_VERSION));
    set_string(o, "db", x->db);
    set_string(o, "name", x->name);
    set_string(o, "charset", x->charset);
    set_string(o, "collation", x->collation);
    set_string(o, "comment", x->comment);
    TABLE_FLAGS(WRITE_FLAG)
    set_string(o, "why", x->why);
    for (size_t i = 0; i < x->ncolumns; i++)
        json_array_append_new(columns, write_column(&x->columns[i]));
    json_object_set_new(o, "columns", columns);
    for (size_t i = 0; i < x->nindexes; i++)
        json_array_append_new(indexes, write_index(&x->indexes[i]));
    json_object_set_new(o, "indexes", indexes);

    char *text = json_dumps(o, JSON_COMPACT);
    if (text)
        cdcd_buf_adds(out, text);
    free(text);
    json_decref(o);
}

static bool read_members(const json_t *o, struct my_table *x)
{
    const json_t *columns = json_object_get(o, "columns"), *indexes = json_object_get(o, "indexes");
    bool ok = json_is_array(columns);

    x->charset = get_string(o, "charset");
    x->collation = get_string(o, "collation");
    x->comment = get_string(o, "comment");
    x->why = get_string(o, "why");
    TABLE_FLAGS(READ_FLAG)
    x->ncolumns = json_array_size(columns);
    x->columns = cdcd_xcalloc(x->ncolumns + 1, sizeof *x->columns);
    for (size_t i = 0; i < x->ncolumns; i++)
        ok = read_column(json_array_get(columns, i), &x->columns[i]) && ok;
    x->nindexes = json_array_size(indexes);
    x->indexes = cdcd_xcalloc(x->nindexes + 1, sizeof *x->indexes);
    for (size_t i = 0; i < x->nindexes; i++)
        read_index(json_array_get(indexes, i), &x->indexes[i]);
    return ok;
}

struct my_table *my_table_read(struct cdcd_slice note)
{
    struct my_table *t = NULL;
    json_t *o = note.ptr ? json_loadb(note.ptr, note.len, 0, NULL) : NULL;
    const char *db = json_string_value(json_object_get(o, "db"));
    const char *name = json_string_value(json_object_get(o, "name"));

    if (db && name && json_integer_value(json_object_get(o, "v")) == NOTE_VERSION) {
        t = my_table_new(db, name);
        if (read_members(o, t)) {
            my_table_set_keys(t);
        } else {
            my_table_free(t);
            t = NULL;
        }
    }
    json_decref(o);
    return t;
}
