/*
 * filter.c: include and exclude lists over "db" and "db.collection", and the scope.
 *
 * An item is a POSIX extended regular expression that must match the whole name, see pattern.h. A
 * name passes when it matches the include list, or there is none, and does not match the exclude
 * list. The server's own databases never pass; collections named system.* only where an item of
 * collection.include.list has "system." in it.
 *
 * Decisions are kept by namespace: the feeds ask for every change, and a regular expression takes
 * longer than reading the change. The lock is for the snapshot's workers.
 */
#include "filter.h"

#include <cdcd/pattern.h>

#include <ctype.h>
#include <pthread.h>
#include <stdlib.h>

enum { DATABASE_IN, DATABASE_EX, COLLECTION_IN, COLLECTION_EX, LISTS };

/* More namespaces than any server should have; then the memory is begun anew. */
#define KNOWN_MAX 65536

struct known {
    struct known *next;
    const struct mg_fields *fields;
    bool pass, fields_known;
    size_t len;
    char name[]; /* "db.collection", NUL-terminated */
};

struct mg_filter {
    const struct mg_config *cfg;
    struct cdcd_patterns list[LISTS];
    bool system; /* some item of the include list names system collections */
    struct mg_field_rules *rules;
    pthread_mutex_t lock; /* of what follows */
    struct known **slots;
    size_t nslots, nknown; /* nslots: a power of two */
};

/* ---- the target ---- */

/* "db.collection" of the target; false: it has no such form. */
static bool target_parts(const struct mg_config *cfg, struct cdcd_slice *db,
                         struct cdcd_slice *collection)
{
    const char *target = cfg->target ? cfg->target : "", *dot = strchr(target, '.');
    *db = (struct cdcd_slice){target, dot ? (size_t)(dot - target) : strlen(target)};
    *collection = cdcd_slice_str(dot ? dot + 1 : "");
    if (cfg->scope == MG_SCOPE_DATABASE)
        return db->len > 0 && !dot;
    return db->len > 0 && collection->len > 0;
}

static bool scope_takes(const struct mg_filter *f, struct cdcd_slice db,
                        const struct cdcd_slice *collection)
{
    struct cdcd_slice want_db, want;
    if (f->cfg->capture == MG_OPLOG || f->cfg->scope == MG_SCOPE_DEPLOYMENT)
        return true;
    target_parts(f->cfg, &want_db, &want);
    if (!cdcd_slice_eq(db, want_db))
        return false;
    return !collection || f->cfg->scope == MG_SCOPE_DATABASE || cdcd_slice_eq(*collection, want);
}

/* ---- making ---- */

static enum cdcd_rc check_scope(const struct mg_config *cfg, struct cdcd_error *err)
{
    struct cdcd_slice db, collection;
    bool targeted = cfg->target && *cfg->target;
    if (cfg->scope == MG_SCOPE_DEPLOYMENT)
        return targeted ? cdcd_error_set(err, CDCD_ERR_CONFIG,
                                         "capture.target is \"%s\", but capture.scope is "
                                         "deployment: set capture.scope to database or "
                                         "collection, or leave capture.target out",
                                         cfg->target)
                        : CDCD_OK;
    if (cfg->capture == MG_OPLOG)
        return cdcd_error_set(err, CDCD_ERR_CONFIG,
                              "capture.scope is of change streams: with capture: oplog leave it "
                              "out, and set database.include.list or collection.include.list");
    if (target_parts(cfg, &db, &collection))
        return CDCD_OK;
    return cdcd_error_set(err, CDCD_ERR_CONFIG,
                          "capture.scope: %s needs a capture.target of the "
                          "form %s; it is \"%s\"",
                          cfg->scope == MG_SCOPE_DATABASE ? "database" : "collection",
                          cfg->scope == MG_SCOPE_DATABASE ? "DATABASE" : "DATABASE.COLLECTION",
                          targeted ? cfg->target : "");
}

enum cdcd_rc mg_filter_new(const struct mg_config *cfg, struct mg_filter **out,
                           struct cdcd_error *err)
{
    const struct {
        const struct cdcd_strlist *items;
        const char *option;
    } lists[LISTS] = {
        [DATABASE_IN] = {&cfg->database_include, "database.include.list"},
        [DATABASE_EX] = {&cfg->database_exclude, "database.exclude.list"},
        [COLLECTION_IN] = {&cfg->collection_include, "collection.include.list"},
        [COLLECTION_EX] = {&cfg->collection_exclude, "collection.exclude.list"},
    };
    *out = NULL;
    if (check_scope(cfg, err) != CDCD_OK)
        return CDCD_ERROR;
    struct mg_filter *f = cdcd_xcalloc(1, sizeof *f);
    f->cfg = cfg;
    pthread_mutex_init(&f->lock, NULL);
    f->nslots = 64;
    f->slots = cdcd_xcalloc(f->nslots, sizeof *f->slots);
    enum cdcd_rc rc = mg_field_rules_new(&cfg->field_exclude, &f->rules, err);
    for (int i = 0; i < LISTS && rc == CDCD_OK; i++)
        rc = cdcd_patterns_compile(lists[i].items, lists[i].option, false, &f->list[i], err);
    if (rc != CDCD_OK) {
        mg_filter_free(f);
        return rc;
    }
    for (size_t i = 0; i < cfg->collection_include.n; i++)
        f->system |= strstr(cfg->collection_include.items[i], "system") != NULL;
    *out = f;
    return CDCD_OK;
}

static void forget(struct mg_filter *f)
{
    for (size_t i = 0; i < f->nslots; i++) {
        while (f->slots[i]) {
            struct known *k = f->slots[i];
            f->slots[i] = k->next;
            free(k);
        }
    }
    f->nknown = 0;
}

void mg_filter_free(struct mg_filter *f)
{
    if (!f)
        return;
    forget(f);
    free(f->slots);
    for (int i = 0; i < LISTS; i++)
        cdcd_patterns_free(&f->list[i]);
    mg_field_rules_free(f->rules);
    pthread_mutex_destroy(&f->lock);
    free(f);
}

/* ---- deciding ---- */

static bool slice_is(struct cdcd_slice s, const char *text)
{
    return cdcd_slice_eq(s, cdcd_slice_str(text));
}

static bool begins(struct cdcd_slice s, const char *text)
{
    size_t n = strlen(text);
    return s.len >= n && memcmp(s.ptr, text, n) == 0;
}

static bool passes(const struct mg_filter *f, int include, int exclude, const char *name)
{
    return cdcd_patterns_pass(&f->list[include], &f->list[exclude], name);
}

bool mg_filter_database(const struct mg_filter *f, struct cdcd_slice db)
{
    char name[256]; /* the server allows 63 bytes */
    if (db.len == 0 || db.len >= sizeof name || slice_is(db, "admin") || slice_is(db, "local") ||
        slice_is(db, "config") || !scope_takes(f, db, NULL))
        return false;
    memcpy(name, db.ptr, db.len);
    name[db.len] = 0;
    return passes(f, DATABASE_IN, DATABASE_EX, name);
}

/* Of the include list only those items count that have "system" in them. */
static bool system_named(const struct mg_filter *f, const char *name)
{
    for (size_t i = 0; f->system && i < f->list[COLLECTION_IN].n; i++) {
        if (strstr(f->cfg->collection_include.items[i], "system") &&
            regexec(&f->list[COLLECTION_IN].items[i], name, 0, NULL, 0) == 0)
            return true;
    }
    return false;
}

static bool decide(const struct mg_filter *f, struct cdcd_slice db, struct cdcd_slice collection,
                   const char *name)
{
    if (collection.len == 0 || slice_is(collection, "$cmd") || !mg_filter_database(f, db) ||
        !scope_takes(f, db, &collection))
        return false;
    if (begins(collection, "system.") && !system_named(f, name))
        return false;
    return passes(f, COLLECTION_IN, COLLECTION_EX, name);
}

/* ---- memory of decisions ---- */

static uint64_t hash(uint64_t h, struct cdcd_slice s)
{
    for (size_t i = 0; i < s.len; i++)
        h = (h ^ (uint8_t)s.ptr[i]) * 1099511628211u; /* FNV-1a */
    return h;
}

static bool is_name(const struct known *k, struct cdcd_slice db, struct cdcd_slice collection)
{
    return k->len == db.len + 1 + collection.len && memcmp(k->name, db.ptr, db.len) == 0 &&
           k->name[db.len] == '.' &&
           memcmp(k->name + db.len + 1, collection.ptr, collection.len) == 0;
}

static void grow(struct mg_filter *f)
{
    size_t n = f->nslots * 4;
    struct known **slots = cdcd_xcalloc(n, sizeof *slots);
    for (size_t i = 0; i < f->nslots; i++) {
        for (struct known *k = f->slots[i], *next; k; k = next) {
            struct known **to = &slots[hash(0, (struct cdcd_slice){k->name, k->len}) & (n - 1)];
            next = k->next;
            k->next = *to;
            *to = k;
        }
    }
    free(f->slots);
    f->slots = slots;
    f->nslots = n;
}

static struct known *learn(struct mg_filter *f, struct cdcd_slice db, struct cdcd_slice collection,
                           uint64_t h)
{
    if (f->nknown >= KNOWN_MAX)
        forget(f);
    if (f->nknown >= f->nslots)
        grow(f);
    struct known **slot = &f->slots[h & (f->nslots - 1)];
    size_t len = db.len + 1 + collection.len;
    struct known *k = cdcd_xcalloc(1, sizeof *k + len + 1);
    k->len = len;
    memcpy(k->name, db.ptr, db.len);
    k->name[db.len] = '.';
    if (collection.len)
        memcpy(k->name + db.len + 1, collection.ptr, collection.len);
    k->pass = decide(f, db, collection, k->name);
    k->next = *slot;
    *slot = k;
    f->nknown++;
    return k;
}

/* Under the lock. */
static struct known *know(struct mg_filter *f, struct cdcd_slice db, struct cdcd_slice collection)
{
    uint64_t h = hash(hash(hash(0, db), cdcd_slice_str(".")), collection);
    for (struct known *k = f->slots[h & (f->nslots - 1)]; k; k = k->next) {
        if (is_name(k, db, collection))
            return k;
    }
    return learn(f, db, collection, h);
}

bool mg_filter_collection(struct mg_filter *f, struct cdcd_slice db, struct cdcd_slice collection)
{
    pthread_mutex_lock(&f->lock);
    bool pass = know(f, db, collection)->pass;
    pthread_mutex_unlock(&f->lock);
    return pass;
}

const struct mg_fields *mg_filter_fields(struct mg_filter *f, struct cdcd_slice db,
                                         struct cdcd_slice collection)
{
    if (f->cfg->field_exclude.n == 0)
        return NULL;
    pthread_mutex_lock(&f->lock);
    struct known *k = know(f, db, collection);
    if (!k->fields_known) {
        k->fields = mg_field_rules_get(f->rules, db, collection);
        k->fields_known = true;
    }
    const struct mg_fields *fields = k->fields;
    pthread_mutex_unlock(&f->lock);
    return fields;
}

/* ---- for the server ---- */

/* Letters, digits, _ and -: as an expression it matches itself only. With one dot between two such
 * names it can only match that database and collection, as no name of a database has a dot. */
static bool plain(const char *item, int dots)
{
    for (; *item; item++) {
        if (*item == '.')
            dots--;
        else if (!isalnum((unsigned char)*item) && *item != '_' && *item != '-')
            return false;
    }
    return dots == 0;
}

static bool all_plain(const struct cdcd_strlist *list, int dots)
{
    for (size_t i = 0; i < list->n; i++) {
        if (!plain(list->items[i], dots))
            return false;
    }
    return list->n > 0;
}

/* Keys of an array; the server does not look at them, but they must be there. */
static void append_condition(bson_t *array, uint32_t *n, const bson_t *condition)
{
    char buffer[16];
    const char *key;
    size_t len = bson_uint32_to_string((*n)++, &key, buffer, sizeof buffer);
    bson_append_document(array, key, (int)len, condition);
}

/* {<what>.db: db, <what>.coll: collection}, the second where there is one. */
static void append_name(bson_t *array, uint32_t *n, const char *what, const char *item)
{
    const char *dot = strchr(item, '.');
    char *db = cdcd_xasprintf("%s.db", what), *coll = cdcd_xasprintf("%s.coll", what);
    bson_t one = BSON_INITIALIZER;
    bson_append_utf8(&one, db, -1, item, dot ? (int)(dot - item) : -1);
    if (dot)
        bson_append_utf8(&one, coll, -1, dot + 1, -1);
    append_condition(array, n, &one);
    bson_destroy(&one);
    free(db);
    free(coll);
}

/* Whatever is not about one collection (dropDatabase, invalidate) must come as well. */
static void append_whole(bson_t *array, uint32_t *n)
{
    bson_t one = BSON_INITIALIZER, exists;
    bson_append_document_begin(&one, "ns.coll", -1, &exists);
    bson_append_bool(&exists, "$exists", -1, false);
    bson_append_document_end(&one, &exists);
    append_condition(array, n, &one);
    bson_destroy(&one);
}

void mg_filter_pipeline(const struct mg_filter *f, bson_t *stages)
{
    const struct cdcd_strlist *list = all_plain(&f->cfg->collection_include, 1)
                                          ? &f->cfg->collection_include
                                      : all_plain(&f->cfg->database_include, 0)
                                          ? &f->cfg->database_include
                                          : NULL;
    if (!list || f->cfg->scope == MG_SCOPE_COLLECTION)
        return;
    bson_t stage = BSON_INITIALIZER, match, either;
    uint32_t n = 0, nstages = bson_count_keys(stages);
    bson_append_document_begin(&stage, "$match", -1, &match);
    mg_array_begin(&match, "$or", &either);
    for (size_t i = 0; i < list->n; i++) {
        append_name(&either, &n, "ns", list->items[i]);
        append_name(&either, &n, "to", list->items[i]);
    }
    append_whole(&either, &n);
    bson_append_array_end(&match, &either);
    bson_append_document_end(&stage, &match);
    append_condition(stages, &nstages, &stage);
    bson_destroy(&stage);
}
