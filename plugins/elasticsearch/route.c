/*
 * Topics -> indexes: by the first route whose regular expression matches the topic, else by the
 * option index, else the topic's own name.
 *
 * ${topic} is all of it; PREFIX.SCHEMA.TABLE gives ${prefix}, ${schema} and ${table}. ${db} is the
 * same as ${schema}: topics of MySQL and MongoDB have the database there, those of PostgreSQL the
 * schema.
 */
#include "convert.h"

#include <cdcd/pattern.h>

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>

/* 255 bytes is the servers' limit; the indexes themselves are NAME-000001 and so on. */
#define NAME_MAX_BYTES 240

struct route {
    regex_t topic;
    const char *pattern; /* borrowed from the config */
};

struct target {
    struct target *next;
    struct cdcd_slice topic, index;
    struct cdcd_slice expanded; /* before it was made a name of an index */
};

#define BUCKETS 256

struct es_routes {
    struct cdcd_arena arena;
    const char *prefix;
    const char *pattern; /* "" = the topic */
    struct route *routes;
    size_t nroutes;
    struct target *buckets[BUCKETS];
};

/* ---- patterns ---- */

struct parts {
    struct cdcd_slice topic, prefix, schema, table;
};

/* The part behind the last dot; the rest stays in *s, without that dot. */
static struct cdcd_slice cut_last(struct cdcd_slice *s)
{
    const char *dot = s->len ? memrchr(s->ptr, '.', s->len) : NULL;
    struct cdcd_slice last = *s;
    if (!dot) {
        *s = (struct cdcd_slice){s->ptr, 0};
        return last;
    }
    last.ptr = dot + 1;
    last.len = (size_t)(s->ptr + s->len - last.ptr);
    s->len = (size_t)(dot - s->ptr);
    return last;
}

/* What is in front of the first dot is the schema where the prefix is known; else the prefix is
 * what the last two parts leave. */
static struct parts split(const struct es_routes *r, struct cdcd_slice topic)
{
    struct parts p = {.topic = topic};
    struct cdcd_slice rest = topic;
    size_t n = strlen(r->prefix);
    if (topic.len > n + 1 && n && memcmp(topic.ptr, r->prefix, n) == 0 && topic.ptr[n] == '.') {
        p.prefix = (struct cdcd_slice){topic.ptr, n};
        rest = (struct cdcd_slice){topic.ptr + n + 1, topic.len - n - 1};
        const char *dot = memchr(rest.ptr, '.', rest.len);
        size_t at = dot ? (size_t)(dot - rest.ptr) : 0;
        p.schema = (struct cdcd_slice){rest.ptr, at};
        p.table = dot ? (struct cdcd_slice){dot + 1, rest.len - at - 1} : rest;
        return p;
    }
    p.table = cut_last(&rest);
    p.schema = cut_last(&rest);
    p.prefix = rest;
    return p;
}

static const struct {
    const char *name;
    size_t offset;
} variables[] = {
    {"topic", offsetof(struct parts, topic)}, {"prefix", offsetof(struct parts, prefix)},
    {"db", offsetof(struct parts, schema)},   {"schema", offsetof(struct parts, schema)},
    {"table", offsetof(struct parts, table)},
};
#define NVARIABLES (sizeof variables / sizeof variables[0])

/* The variable at p, which stands behind "${". NULL: none. *len: what it takes up to the brace. */
static const struct cdcd_slice *variable(const char *p, const struct parts *parts, size_t *len)
{
    const char *end = strchr(p, '}');
    for (size_t i = 0; end && i < NVARIABLES; i++) {
        if (strlen(variables[i].name) == (size_t)(end - p) &&
            memcmp(variables[i].name, p, (size_t)(end - p)) == 0) {
            *len = (size_t)(end - p) + 1;
            return (const struct cdcd_slice *)(const void *)((const char *)parts +
                                                             variables[i].offset);
        }
    }
    return NULL;
}

static enum cdcd_rc check_pattern(const char *option, const char *pattern, struct cdcd_error *err)
{
    static const struct parts none;
    size_t len;
    for (const char *p = pattern; (p = strstr(p, "${")); p += 2) {
        if (!variable(p + 2, &none, &len))
            return cdcd_error_set(err, CDCD_ERR_CONFIG,
                                  "%s: \"%s\" has a variable that there is none of; these can "
                                  "stand in it: ${topic} ${prefix} ${db} ${schema} ${table}",
                                  option, pattern);
    }
    return CDCD_OK;
}

static struct cdcd_slice expand(struct cdcd_arena *a, const char *pattern,
                                const struct parts *parts)
{
    struct cdcd_writer w;
    size_t len;
    cdcd_writer_begin(&w, a);
    for (const char *p = pattern; *p;) {
        const struct cdcd_slice *v = p[0] == '$' && p[1] == '{' ? variable(p + 2, parts, &len)
                                                                : NULL;
        if (v) {
            es_put(&w, *v);
            p += 2 + len;
        } else {
            cdcd_writer_char(&w, *p++);
        }
    }
    return cdcd_writer_end(&w);
}

/* ---- names ---- */

static bool may_stand(unsigned char c)
{
    return c > 0x20 && c != 0x7f && !strchr("\\/*?\"<>|,#:", c);
}

/* Lower case (of ASCII; the servers refuse other capitals, and topics have none); _ for what may
 * not stand there. A name may not begin with - _ + and should not with a dot. What is too long
 * keeps apart by a hash. */
static struct cdcd_slice index_name(struct cdcd_arena *a, struct cdcd_slice s)
{
    while (s.len && strchr("-_+.", s.ptr[0]) && s.ptr[0]) {
        s.ptr++;
        s.len--;
    }
    if (!s.len)
        s = cdcd_slice_str("cdcd");
    size_t n = s.len > NAME_MAX_BYTES ? NAME_MAX_BYTES - 17 : s.len;
    char *p = cdcd_arena_alloc(a, NAME_MAX_BYTES + 1);
    for (size_t i = 0; i < n; i++) {
        unsigned char c = (unsigned char)s.ptr[i];
        p[i] = may_stand(c) ? (char)tolower(c) : '_';
    }
    if (n < s.len) {
        snprintf(p + n, 18, "-%016llx", (unsigned long long)es_hash(ES_HASH_SEED, s.ptr, s.len));
        n += 17;
    }
    p[n] = 0;
    return (struct cdcd_slice){p, n};
}

/* ---- routes ---- */

enum cdcd_rc es_routes_new(const struct es_config *cfg, const char *topic_prefix,
                           struct es_routes **out, struct cdcd_error *err)
{
    struct es_routes *r = cdcd_xcalloc(1, sizeof *r);
    char why[CDCD_PATTERN_WHY];
    cdcd_arena_init(&r->arena, 4096);
    r->prefix = topic_prefix ? topic_prefix : "";
    r->pattern = cfg->index && *cfg->index ? cfg->index : "${topic}";
    r->routes = cdcd_xcalloc(cfg->routes.n + 1, sizeof *r->routes);
    enum cdcd_rc rc = check_pattern("index", r->pattern, err);
    for (size_t i = 0; rc == CDCD_OK && i < cfg->routes.n; i++) {
        const struct cdcd_strpair *pair = &cfg->routes.items[i];
        if (!cdcd_pattern_compile(pair->key, false, &r->routes[i].topic, why)) {
            rc = cdcd_error_set(err, CDCD_ERR_CONFIG,
                                "index.routes: \"%s\" is no valid extended regular expression: %s",
                                pair->key, why);
            break;
        }
        r->routes[r->nroutes++].pattern = pair->value;
        rc = check_pattern("index.routes", pair->value, err);
    }
    if (rc != CDCD_OK) {
        es_routes_free(r);
        return CDCD_ERROR;
    }
    *out = r;
    return CDCD_OK;
}

void es_routes_free(struct es_routes *r)
{
    if (!r)
        return;
    for (size_t i = 0; i < r->nroutes; i++)
        regfree(&r->routes[i].topic);
    free(r->routes);
    cdcd_arena_free(&r->arena);
    free(r);
}

static const char *pattern_of(const struct es_routes *r, const char *topic)
{
    for (size_t i = 0; i < r->nroutes; i++) {
        if (regexec(&r->routes[i].topic, topic, 0, NULL, 0) == 0)
            return r->routes[i].pattern;
    }
    return r->pattern;
}

/* Two tables in one index overwrite each other's rows where keys are the same. With a pattern that
 * means it nothing is said. */
static void check_mixed(const struct es_routes *r, const struct target *t)
{
    for (size_t b = 0; b < BUCKETS; b++) {
        for (const struct target *o = r->buckets[b]; o; o = o->next) {
            if (o == t || !cdcd_slice_eq(o->index, t->index) ||
                cdcd_slice_eq(o->expanded, t->expanded))
                continue;
            cdcd_warn("elasticsearch",
                      "topics %.*s and %.*s both go to the index %.*s: rows with the same key "
                      "overwrite each other there; give one of them another index in index.routes",
                      (int)o->topic.len, o->topic.ptr, (int)t->topic.len, t->topic.ptr,
                      (int)t->index.len, t->index.ptr);
            return;
        }
    }
}

struct cdcd_slice es_route(struct es_routes *r, struct cdcd_slice topic)
{
    struct target **bucket = &r->buckets[es_hash(ES_HASH_SEED, topic.ptr, topic.len) % BUCKETS];
    for (const struct target *t = *bucket; t; t = t->next) {
        if (cdcd_slice_eq(t->topic, topic))
            return t->index;
    }
    struct target *t = cdcd_arena_alloc(&r->arena, sizeof *t);
    *t = (struct target){.next = *bucket};
    const char *name = cdcd_arena_dup(&r->arena, topic.ptr, topic.len);
    t->topic = (struct cdcd_slice){name, topic.len};
    struct parts parts = split(r, t->topic);
    t->expanded = expand(&r->arena, pattern_of(r, name), &parts);
    t->index = index_name(&r->arena, t->expanded);
    *bucket = t;
    check_mixed(r, t);
    return t->index;
}
