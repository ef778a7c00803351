/*
 * What is the same for all records of a schema, computed once: names and punctuation between
 * the values, schema text, key, headers.
 */
#include "dbz.h"

#include <cdcd/log.h>
#include <cdcd/version.h>

#include <stdlib.h>

const char *dbz_str(const char *configured, const char *default_)
{
    return configured && *configured ? configured : default_;
}

/* ---- message.key.columns: TABLE:COLUMN,COLUMN;TABLE:... ---- */

static bool is_space(char c)
{
    return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

static struct cdcd_slice trim(struct cdcd_slice s)
{
    while (s.len && is_space(s.ptr[0])) {
        s.ptr++;
        s.len--;
    }
    while (s.len && is_space(s.ptr[s.len - 1]))
        s.len--;
    return s;
}

/* The part before the next separator; what follows stays in *rest. */
static struct cdcd_slice next_part(struct cdcd_slice *rest, char separator)
{
    const char *p = memchr(rest->ptr, separator, rest->len);
    struct cdcd_slice part = {rest->ptr, p ? (size_t)(p - rest->ptr) : rest->len};
    size_t used = part.len + (p != NULL);
    rest->ptr += used;
    rest->len -= used;
    return trim(part);
}

static enum cdcd_rc rule_parse(struct cdcd_encoder *e, struct cdcd_slice entry,
                               struct dbz_key_rule **out, struct cdcd_error *err)
{
    const char *colon = memrchr(entry.ptr, ':', entry.len);
    struct cdcd_slice table = {entry.ptr, colon ? (size_t)(colon - entry.ptr) : 0};
    table = trim(table);
    if (!table.len || colon + 1 == entry.ptr + entry.len)
        return cdcd_error_set(err, CDCD_ERR_CONFIG,
                              "message.key.columns: \"%.*s\" is not of the form "
                              "TABLE:COLUMN,COLUMN;TABLE:COLUMN",
                              (int)entry.len, entry.ptr);
    struct cdcd_slice columns = {colon + 1, (size_t)(entry.ptr + entry.len - colon - 1)};
    struct dbz_key_rule *r = cdcd_arena_alloc(&e->arena, sizeof(*r));
    *r = (struct dbz_key_rule){0};
    r->columns = cdcd_arena_alloc(&e->arena, (columns.len / 2 + 1) * sizeof(char *));
    while (columns.len) {
        struct cdcd_slice name = next_part(&columns, ',');
        if (!name.len)
            return cdcd_error_set(err, CDCD_ERR_CONFIG,
                                  "message.key.columns: an empty column name in \"%.*s\"",
                                  (int)entry.len, entry.ptr);
        r->columns[r->ncolumns++] = cdcd_arena_dup(&e->arena, name.ptr, name.len);
    }
    char *pattern = cdcd_xasprintf("^(%.*s)$", (int)table.len, table.ptr);
    char why[128];
    int rc = regcomp(&r->table, pattern, REG_EXTENDED | REG_ICASE | REG_NOSUB);
    free(pattern);
    if (rc != 0) {
        regerror(rc, &r->table, why, sizeof(why));
        return cdcd_error_set(err, CDCD_ERR_CONFIG,
                              "message.key.columns: \"%.*s\" is not a regular expression: %s",
                              (int)table.len, table.ptr, why);
    }
    *out = r;
    return CDCD_OK;
}

enum cdcd_rc dbz_rules_parse(struct cdcd_encoder *e, const char *text, struct cdcd_error *err)
{
    struct cdcd_slice rest = cdcd_slice_str(text ? text : "");
    struct dbz_key_rule **end = &e->rules;
    while (rest.len) {
        struct cdcd_slice entry = next_part(&rest, ';');
        if (!entry.len)
            continue;
        if (rule_parse(e, entry, end, err) != CDCD_OK)
            return CDCD_ERROR;
        end = &(*end)->next;
    }
    return CDCD_OK;
}

void dbz_rules_free(struct cdcd_encoder *e)
{
    for (struct dbz_key_rule *r = e->rules; r; r = r->next)
        regfree(&r->table);
    e->rules = NULL;
}

/* "schema.table", or "db.table" where there are no schemas. */
static char *label_of(const char *db, const char *schema, const char *table)
{
    return cdcd_xasprintf("%s.%s", schema[0] ? schema : db, table);
}

static char *table_label(const struct cdcd_schema *s)
{
    return label_of(s->db, s->schema, s->table);
}

static const struct dbz_key_rule *rule_of(const struct cdcd_encoder *e, const char *label)
{
    for (const struct dbz_key_rule *r = e->rules; r; r = r->next) {
        if (regexec(&r->table, label, 0, NULL, 0) == 0)
            return r;
    }
    return NULL;
}

/* ---- topic ---- */

struct cdcd_topic *cdcd_encoder_topic_named(struct cdcd_encoder *e, const char *db,
                                            const char *schema, const char *table, bool keyed)
{
    char *label = label_of(db, schema, table);
    const char *delimiter = dbz_str(e->d.cfg->topic_delimiter, ".");
    char *name = cdcd_xasprintf("%s%s%s%s%s", e->env.topic_prefix, delimiter,
                                schema[0] ? schema : db, delimiter, table);
    struct cdcd_topic *t = cdcd_topics_get(&e->topics, name, strlen(name), label,
                                           keyed || rule_of(e, label));
    free(name);
    free(label);
    return t;
}

struct cdcd_topic *cdcd_encoder_topic(struct cdcd_encoder *e, const struct cdcd_schema *s)
{
    return cdcd_encoder_topic_named(e, s->db, s->schema, s->table, s->nkeys > 0);
}

/* ---- templates ---- */

static void column_init(struct cdcd_encoder *e, struct dbz_table *t, struct dbz_column *c,
                        const struct cdcd_column *col)
{
    struct dbz_column *elem = NULL;
    *c = (struct dbz_column){.col = col, .form = dbz_form_of(&e->d, col)};
    c->write = dbz_forms[c->form].write;
    if (c->form == DBZ_ARRAY) {
        elem = cdcd_arena_alloc(&t->arena, sizeof(*elem));
        column_init(e, t, elem, col->elem);
        c->elem = elem;
    }
    dbz_column_constants(&e->d, &t->arena, c);
}

static struct cdcd_slice field_name(struct cdcd_arena *a, const char *name, bool first)
{
    struct cdcd_writer w;
    cdcd_writer_begin(&w, a);
    if (!first)
        cdcd_writer_char(&w, ',');
    cdcd_json_string(&w, name, strlen(name));
    cdcd_writer_char(&w, ':');
    return cdcd_writer_end(&w);
}

static enum cdcd_rc keys_from_rule(struct dbz_table *t, const struct cdcd_schema *s,
                                   const struct dbz_key_rule *r, struct cdcd_error *err)
{
    t->keys = cdcd_arena_alloc(&t->arena, r->ncolumns * sizeof(uint32_t));
    for (size_t i = 0; i < r->ncolumns; i++) {
        uint32_t c = 0;
        while (c < s->ncolumns && strcmp(s->columns[c].name, r->columns[i]) != 0)
            c++;
        if (c == s->ncolumns)
            return cdcd_error_set(err, CDCD_ERR_CONFIG,
                                  "message.key.columns: table %s.%s has no column \"%s\"",
                                  s->schema[0] ? s->schema : s->db, s->table, r->columns[i]);
        t->keys[t->nkeys++] = c;
    }
    return CDCD_OK;
}

static enum cdcd_rc keys_init(struct cdcd_encoder *e, struct dbz_table *t,
                              const struct cdcd_schema *s, struct cdcd_error *err)
{
    char *label = table_label(s);
    const struct dbz_key_rule *r = rule_of(e, label);
    free(label);
    if (r) {
        if (keys_from_rule(t, s, r, err) != CDCD_OK)
            return CDCD_ERROR;
    } else {
        t->nkeys = s->nkeys;
        t->keys = s->keys;
    }
    t->key_names = cdcd_arena_alloc(&t->arena, (t->nkeys + 1) * sizeof(struct cdcd_slice));
    for (uint32_t i = 0; i < t->nkeys; i++)
        t->key_names[i] = field_name(&t->arena, s->columns[t->keys[i]].name, i == 0);
    return CDCD_OK;
}

static const char *const mark_names[CDCD_SNAP_LAST + 1] = {
    [CDCD_SNAP_NONE] = "false",
    [CDCD_SNAP_TRUE] = "true",
    [CDCD_SNAP_FIRST] = "first",
    [CDCD_SNAP_FIRST_IN_TABLE] = "first_in_data_collection",
    [CDCD_SNAP_LAST_IN_TABLE] = "last_in_data_collection",
    [CDCD_SNAP_LAST] = "last",
};

static void source_init(struct cdcd_encoder *e, struct cdcd_arena *a, struct dbz_source_text *s,
                        const char *db)
{
    struct cdcd_writer w;
    cdcd_writer_begin(&w, a);
    cdcd_writer_lit(&w, ",\"source\":{\"version\":\"" CDCD_VERSION "\",\"connector\":");
    cdcd_json_string(&w, e->connector, strlen(e->connector));
    cdcd_writer_lit(&w, ",\"name\":");
    cdcd_json_string(&w, e->env.topic_prefix, strlen(e->env.topic_prefix));
    cdcd_writer_lit(&w, ",\"ts_ms\":");
    s->prefix = cdcd_writer_end(&w);
    for (int i = 0; i <= CDCD_SNAP_LAST; i++) {
        cdcd_writer_begin(&w, a);
        cdcd_writer_lit(&w, ",\"snapshot\":\"");
        dbz_adds(&w, mark_names[i]);
        cdcd_writer_lit(&w, "\",\"db\":");
        cdcd_json_string(&w, db, strlen(db));
        cdcd_writer_lit(&w, ",\"sequence\":");
        s->mark[i] = cdcd_writer_end(&w);
    }
}

static struct cdcd_header header(const char *name, struct cdcd_slice value, bool json)
{
    return (struct cdcd_header){.name = cdcd_slice_str(name), .value = value, .json = json};
}

static struct cdcd_slice version_text(struct cdcd_arena *a, uint64_t version)
{
    static const char digits[] = "0123456789ABCDEF";
    char *text = cdcd_arena_alloc(a, 16);
    for (int i = 0; i < 16; i++)
        text[i] = digits[version >> (60 - 4 * i) & 15];
    return (struct cdcd_slice){text, 16};
}

/* All but the value of cdcd.pos and the headers of a key change. `context`: those of the
 * connector may be added. */
static void headers_init(struct cdcd_encoder *e, struct dbz_table *t, bool context,
                         const struct cdcd_schema *s)
{
    if (context && e->d.cfg->extended_headers) {
        t->headers[t->nheaders++] = header("__debezium.context.connectorLogicalName",
                                           cdcd_slice_str(e->env.topic_prefix), false);
        t->headers[t->nheaders++] = header("__debezium.context.taskId", cdcd_slice_str("0"), true);
        t->headers[t->nheaders++] = header("__debezium.context.connectorName",
                                           cdcd_slice_str(e->connector), false);
    }
    t->pos_header = t->nheaders;
    t->headers[t->nheaders++] = header("cdcd.pos", (struct cdcd_slice){NULL, 0}, false);
    if (s)
        t->headers[t->nheaders++] = header(
            "cdcd.schema", version_text(&t->arena, s->version ^ dbz_forms_version(e->d.cfg)),
            false);
}

static void templates_init(struct cdcd_encoder *e, struct dbz_table *t)
{
    bool schemas = e->d.cfg->schemas_enable;
    struct cdcd_writer w;
    cdcd_writer_begin(&w, &t->arena);
    if (schemas) {
        cdcd_writer_lit(&w, "{\"schema\":");
        dbz_schema_key(e, &w, t);
        cdcd_writer_lit(&w, ",\"payload\":");
    }
    cdcd_writer_char(&w, '{');
    t->key_prefix = cdcd_writer_end(&w);
    t->key_suffix = cdcd_slice_str(schemas ? "}}" : "}");

    cdcd_writer_begin(&w, &t->arena);
    if (schemas) {
        cdcd_writer_lit(&w, "{\"schema\":");
        dbz_schema_envelope(e, &w, t);
        cdcd_writer_lit(&w, ",\"payload\":");
    }
    cdcd_writer_lit(&w, "{\"before\":");
    t->value_prefix = cdcd_writer_end(&w);
    t->value_suffix = cdcd_slice_str(schemas ? "}" : "");
}

void dbz_table_free(void *table)
{
    struct dbz_table *t = table;
    if (!t)
        return;
    cdcd_arena_free(&t->arena);
    free(t);
}

static struct dbz_table *table_new(const struct cdcd_encoder *e)
{
    struct dbz_table *t = cdcd_xcalloc(1, sizeof(*t));
    cdcd_arena_init(&t->arena, 8192);
    t->owner = e->id;
    return t;
}

/* bigint.unsigned.handling.mode long: once a topic, with the columns. */
static void warn_wrapping(struct cdcd_encoder *e, const struct dbz_table *t,
                          const struct cdcd_schema *s)
{
    struct cdcd_buf names;
    for (const struct dbz_wrapping *x = e->wrapping; x; x = x->next) {
        if (x->topic == t->topic)
            return;
    }
    cdcd_buf_init(&names, 0);
    for (uint32_t i = 0; i < t->ncolumns; i++) {
        if (t->columns[i].form == DBZ_UINT64_WRAPPED)
            cdcd_buf_addf(&names, "%s%s", names.len ? ", " : "", t->columns[i].col->name);
    }
    if (names.len) {
        struct dbz_wrapping *x = cdcd_arena_alloc(&e->arena, sizeof *x);
        *x = (struct dbz_wrapping){e->wrapping, t->topic};
        e->wrapping = x;
        cdcd_warn("encode",
                  "table %s.%s: with bigint.unsigned.handling.mode long, values of %s above "
                  "9223372036854775807 become negative numbers, in keys too",
                  s->schema[0] ? s->schema : s->db, s->table, cdcd_buf_cstr(&names));
    }
    cdcd_buf_free(&names);
}

static enum cdcd_rc columns_init(struct cdcd_encoder *e, struct dbz_table *t,
                                 const struct cdcd_schema *s, struct cdcd_error *err)
{
    t->ncolumns = s->ncolumns;
    t->columns = cdcd_arena_alloc(&t->arena, (s->ncolumns + 1) * sizeof(struct dbz_column));
    for (uint32_t i = 0; i < s->ncolumns; i++) {
        column_init(e, t, &t->columns[i], &s->columns[i]);
        t->columns[i].name = field_name(&t->arena, s->columns[i].name, i == 0);
    }
    return keys_init(e, t, s, err);
}

/* A collection has no columns; its key is the _id. */
static enum cdcd_rc document_init(struct cdcd_encoder *e, struct dbz_table *t,
                                  const struct cdcd_schema *s, struct cdcd_error *err)
{
    char *label = table_label(s);
    const struct dbz_key_rule *r = rule_of(e, label);
    t->document = true;
    if (r)
        cdcd_error_set(err, CDCD_ERR_CONFIG,
                       "message.key.columns: %s is a collection of documents, and the key of a "
                       "document is always its _id; take out what matches it",
                       label);
    free(label);
    return r ? CDCD_ERROR : CDCD_OK;
}

static enum cdcd_rc table_build(struct cdcd_encoder *e, struct cdcd_schema *s,
                                struct dbz_table **out, struct cdcd_error *err)
{
    struct dbz_table *t = table_new(e);
    if ((s->document ? document_init : columns_init)(e, t, s, err) != CDCD_OK) {
        dbz_table_free(t);
        return CDCD_ERROR;
    }
    if (!e->db || strcmp(e->db, s->db) != 0) {
        free(e->db);
        e->db = cdcd_xstrdup(s->db);
    }
    t->topic = cdcd_encoder_topic(e, s);
    source_init(e, &t->arena, &t->source, s->db);
    headers_init(e, t, true, s);
    templates_init(e, t);
    warn_wrapping(e, t, s);
    *out = t;
    return CDCD_OK;
}

enum cdcd_rc dbz_table_get(struct cdcd_encoder *e, struct cdcd_schema *s, struct dbz_table **out,
                           struct cdcd_error *err)
{
    struct dbz_table *t = s->enc;
    if (t && t->owner == e->id) {
        *out = t;
        return CDCD_OK;
    }
    if (table_build(e, s, &t, err) != CDCD_OK)
        return CDCD_ERROR;
    dbz_table_free(s->enc);
    s->enc = t;
    s->enc_free = dbz_table_free;
    *out = t;
    return CDCD_OK;
}

struct dbz_table *dbz_message_get(struct cdcd_encoder *e, const char *db)
{
    if (!db)
        db = e->db ? e->db : "";
    if (e->message && strcmp(e->message_db, db) == 0)
        return e->message;
    dbz_table_free(e->message);
    struct dbz_table *t = table_new(e);
    struct cdcd_writer w;
    source_init(e, &t->arena, &t->source, db);
    headers_init(e, t, false, NULL);
    cdcd_writer_begin(&w, &t->arena);
    if (e->d.cfg->schemas_enable) {
        cdcd_writer_lit(&w, "{\"schema\":");
        dbz_schema_message(e, &w);
        cdcd_writer_lit(&w, ",\"payload\":");
    }
    cdcd_writer_lit(&w, "{\"op\":\"m\",\"ts_ms\":");
    t->value_prefix = cdcd_writer_end(&w);
    t->value_suffix = cdcd_slice_str(e->d.cfg->schemas_enable ? "}" : "");
    e->message_db = cdcd_arena_dup(&t->arena, db, strlen(db));
    e->message = t;
    return t;
}

struct dbz_table *dbz_ddl_get(struct cdcd_encoder *e, struct cdcd_slice name)
{
    if (e->ddl && cdcd_slice_eq(cdcd_slice_str(e->ddl_db), name))
        return e->ddl;
    dbz_table_free(e->ddl);
    struct dbz_table *t = table_new(e);
    struct cdcd_writer w;
    e->ddl_db = cdcd_arena_dup(&t->arena, name.ptr ? name.ptr : "", name.len);
    source_init(e, &t->arena, &t->source, e->ddl_db);
    t->source.prefix.ptr++; /* the source block comes first: no comma */
    t->source.prefix.len--;
    headers_init(e, t, true, NULL);
    cdcd_writer_begin(&w, &t->arena);
    if (e->d.cfg->schemas_enable) {
        cdcd_writer_lit(&w, "{\"schema\":");
        dbz_schema_ddl(e, &w);
        cdcd_writer_lit(&w, ",\"payload\":");
    }
    cdcd_writer_char(&w, '{');
    t->value_prefix = cdcd_writer_end(&w);
    t->value_suffix = cdcd_slice_str(e->d.cfg->schemas_enable ? "}" : "");
    e->ddl = t;
    return t;
}
