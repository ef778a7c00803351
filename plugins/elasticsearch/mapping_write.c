/*
 * Shapes -> mappings: what the index makes of each column.
 *
 * The document keeps every value as it is; a mapping is only how it is found. So where a value does
 * not fit its field (NaN in a number, a year that no date has) it is left out of the field and
 * stays in the document (ignore_malformed), rather than refused with all of the row. Integers keep
 * that check: what is no number there is a column that has changed its type.
 */
#include "mapping.h"

#include <stdlib.h>

#define ADD(b, s) cdcd_buf_add((b), "" s "", sizeof(s) - 1)

/* A term has at most 32766 bytes, a character at most 4 in UTF-8; longer text is not refused, but
 * not found by its whole either. */
#define KEYWORD "{\"type\":\"keyword\",\"ignore_above\":8191}"
#define DOUBLE  "{\"type\":\"double\",\"ignore_malformed\":true}"
/* Found by value, and exactly by the text of all its digits. */
#define EXACT                                                                                 \
    "\"ignore_malformed\":true,\"fields\":{\"exact\":{\"type\":\"keyword\",\"ignore_above\":" \
    "1024}}}"

static const struct {
    const char *type, *json;
} fields[] = {
    {"long", "{\"type\":\"long\"}"},
    {"double", DOUBLE},
    {"boolean", "{\"type\":\"boolean\"}"},
    {"text", "{\"type\":\"text\",\"fields\":{\"keyword\":" KEYWORD "}}"},
    {"keyword", KEYWORD},
    {"date", "{\"type\":\"date\",\"format\":\"strict_date_optional_time\",\"ignore_malformed\":"
             "true}"},
    {"binary", "{\"type\":\"binary\"}"},
    {"decimal", "{\"type\":\"double\"," EXACT},
    {"whole", "{\"type\":\"long\"," EXACT},
    {"point", "{\"properties\":{\"x\":" DOUBLE ",\"y\":" DOUBLE ",\"srid\":{\"type\":\"long\"}}}"},
    {"geometry", "{\"properties\":{\"wkt\":" KEYWORD ",\"wkb\":{\"type\":\"binary\"},\"srid\":"
                 "{\"type\":\"long\"}}}"},
    {"object", "{\"type\":\"object\",\"enabled\":false}"},
};

const char *es_field_json(const struct es_config *cfg, const struct es_column *c)
{
    const struct es_column *leaf = c;
    while (leaf->elem)
        leaf = leaf->elem;
    if (!leaf->es_type || (leaf->form == ES_F_JSON && cfg->json_mode == ES_JSON_NESTED))
        return NULL;
    for (size_t i = 0; i < sizeof fields / sizeof fields[0]; i++) {
        if (strcmp(fields[i].type, leaf->es_type) == 0)
            return fields[i].json;
    }
    return NULL;
}

void es_field_name(const struct es_column *c, struct cdcd_buf *out)
{
    if (!es_name_reserved(c->name)) {
        cdcd_buf_add(out, c->name_json.ptr, c->name_json.len);
        return;
    }
    cdcd_buf_add(out, c->name_json.ptr, c->name_json.len - 2);
    ADD(out, "_\":");
}

/* ---- settings ---- */

static bool has_setting(const struct es_config *cfg, const char *name)
{
    for (size_t i = 0; i < cfg->index_settings.n; i++) {
        const char *key = cfg->index_settings.items[i].key;
        if (strcmp(strncmp(key, "index.", 6) == 0 ? key + 6 : key, name) == 0)
            return true;
    }
    return false;
}

static void add_setting(struct cdcd_buf *out, const char *name, const char *value, bool first)
{
    struct cdcd_buf key;
    cdcd_buf_init(&key, 0);
    if (strncmp(name, "index.", 6) != 0)
        ADD(&key, "index.");
    cdcd_buf_adds(&key, name);
    if (!first)
        ADD(out, ",");
    es_json_string(out, cdcd_buf_slice(&key));
    ADD(out, ":");
    es_json_string(out, cdcd_slice_str(value));
    cdcd_buf_free(&key);
}

/* A column takes up to three fields of a limit that is 1000 at first. */
#define FIELDS_MOST    1000
#define FIELDS_COLUMN  3
#define FIELDS_DYNAMIC 500

static void add_settings(const struct es_config *cfg, const struct es_shape *shape,
                         struct cdcd_buf *out)
{
    bool first = true;
    uint32_t n = shape ? shape->ncolumns * FIELDS_COLUMN : 0;
    ADD(out, "{");
    if (cfg->gc_deletes && *cfg->gc_deletes && !has_setting(cfg, "gc_deletes")) {
        add_setting(out, "gc_deletes", cfg->gc_deletes, first);
        first = false;
    }
    if (n > FIELDS_MOST - FIELDS_DYNAMIC && !has_setting(cfg, "mapping.total_fields.limit")) {
        char *limit = cdcd_xasprintf("%u", (unsigned)(n + FIELDS_DYNAMIC));
        add_setting(out, "mapping.total_fields.limit", limit, first);
        free(limit);
        first = false;
    }
    for (size_t i = 0; i < cfg->index_settings.n; i++, first = false)
        add_setting(out, cfg->index_settings.items[i].key, cfg->index_settings.items[i].value,
                    first);
    ADD(out, "}");
}

static void add_mappings(const struct es_config *cfg, const struct es_shape *shape,
                         struct cdcd_buf *out)
{
    bool first = true;
    ADD(out, "{\"dynamic\":true,\"date_detection\":false,\"numeric_detection\":false,"
             "\"properties\":{");
    for (uint32_t i = 0; shape && i < shape->ncolumns; i++) {
        const char *json = es_field_json(cfg, &shape->columns[i]);
        if (!json)
            continue;
        if (!first)
            ADD(out, ",");
        first = false;
        es_field_name(&shape->columns[i], out);
        cdcd_buf_adds(out, json);
    }
    ADD(out, "}}");
}

void es_mapping_body(const struct es_config *cfg, const struct es_shape *shape,
                     struct cdcd_slice alias, struct cdcd_buf *out)
{
    ADD(out, "{\"settings\":");
    add_settings(cfg, shape, out);
    ADD(out, ",\"mappings\":");
    add_mappings(cfg, shape, out);
    if (alias.ptr) {
        ADD(out, ",\"aliases\":{");
        es_json_string(out, alias);
        ADD(out, ":{\"is_write_index\":true}}");
    }
    ADD(out, "}");
}

void es_mapping_write(const struct es_config *cfg, const struct es_shape *shape,
                      struct cdcd_buf *out)
{
    es_mapping_body(cfg, shape, (struct cdcd_slice){NULL, 0}, out);
}

/* Legacy templates (before 7.8) have settings and mappings on their first level. */
void es_template_body(const struct es_config *cfg, const struct es_shape *shape,
                      struct cdcd_slice index, bool legacy, struct cdcd_buf *out)
{
    struct cdcd_buf pattern, body;
    cdcd_buf_init(&pattern, 0);
    cdcd_buf_init(&body, 0);
    cdcd_buf_add(&pattern, index.ptr, index.len);
    ADD(&pattern, "-000*");
    es_mapping_write(cfg, shape, &body);
    ADD(out, "{\"index_patterns\":[");
    es_json_string(out, cdcd_buf_slice(&pattern));
    if (legacy) {
        ADD(out, "],\"order\":100,");
        cdcd_buf_add(out, body.ptr + 1, body.len - 1);
    } else {
        ADD(out, "],\"priority\":100,\"_meta\":{\"made_by\":\"cdcd\"},\"template\":");
        cdcd_buf_add(out, body.ptr, body.len);
        ADD(out, "}");
    }
    cdcd_buf_free(&body);
    cdcd_buf_free(&pattern);
}
