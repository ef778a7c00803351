/*
 * Connect schemas as JSON, for schemas.enable: the order of the fields of each object is that of
 * Kafka Connect's JsonConverter (type, parts, optional, name, version, doc, parameters, default,
 * field).
 */
#include "dbz.h"

static void put_parts(struct cdcd_writer *w, const struct dbz_column *c);

static void put_parameter(struct cdcd_writer *w, const char *name, int64_t value, bool first)
{
    dbz_adds(w, first ? ",\"parameters\":{\"" : ",\"");
    dbz_adds(w, name);
    cdcd_writer_lit(w, "\":\"");
    cdcd_json_int(w, value);
    cdcd_writer_char(w, '"');
}

/* The labels joined by commas; a comma in a label has a backslash before it. */
static void put_labels(struct cdcd_writer *w, const char *const *labels)
{
    struct cdcd_buf joined;
    cdcd_buf_init(&joined, 0);
    for (const char *const *l = labels; l && *l; l++) {
        if (l != labels)
            cdcd_buf_add(&joined, ",", 1);
        for (const char *p = *l; *p; p++) {
            if (*p == ',')
                cdcd_buf_add(&joined, "\\", 1);
            cdcd_buf_add(&joined, p, 1);
        }
    }
    cdcd_writer_lit(w, ",\"parameters\":{\"allowed\":");
    cdcd_json_string(w, joined.len ? joined.ptr : "", joined.len);
    cdcd_writer_char(w, '}');
    cdcd_buf_free(&joined);
}

static void put_parameters(struct cdcd_writer *w, const struct dbz_column *c)
{
    const struct cdcd_column *col = c->col;
    switch (c->form) {
    case DBZ_DECIMAL:
        put_parameter(w, "scale", col->scale, true);
        if (col->type == CDCD_T_DECIMAL && col->length > 0)
            put_parameter(w, "connect.decimal.precision", col->length, false);
        cdcd_writer_char(w, '}');
        break;
    case DBZ_BITS:
        put_parameter(w, "length", col->length < 0 ? INT32_MAX : col->length, true);
        cdcd_writer_char(w, '}');
        break;
    case DBZ_ENUM:
    case DBZ_ENUMSET: put_labels(w, col->labels); break;
    default: break;
    }
}

/* A whole schema; `field` NULL for an element of an array. */
static void put_schema(struct cdcd_writer *w, const struct dbz_column *c, const char *field)
{
    const struct dbz_form_info *f = &dbz_forms[c->form];
    cdcd_writer_lit(w, "{\"type\":\"");
    dbz_adds(w, f->type);
    cdcd_writer_char(w, '"');
    put_parts(w, c);
    dbz_adds(w, field && !c->col->optional ? ",\"optional\":false" : ",\"optional\":true");
    if (f->name) {
        cdcd_writer_lit(w, ",\"name\":\"");
        dbz_adds(w, f->name);
        cdcd_writer_lit(w, "\",\"version\":1");
    }
    if (f->doc) {
        cdcd_writer_lit(w, ",\"doc\":\"");
        dbz_adds(w, f->doc);
        cdcd_writer_char(w, '"');
    }
    put_parameters(w, c);
    if (field && c->default_.ptr) {
        cdcd_writer_lit(w, ",\"default\":");
        dbz_add(w, c->default_);
    }
    if (field) {
        cdcd_writer_lit(w, ",\"field\":");
        cdcd_json_string(w, field, strlen(field));
    }
    cdcd_writer_char(w, '}');
}

static void put_parts(struct cdcd_writer *w, const struct dbz_column *c)
{
    switch (c->form) {
    case DBZ_VARDECIMAL:
        cdcd_writer_lit(w, ",\"fields\":[{\"type\":\"int32\",\"optional\":false,\"field\":"
                           "\"scale\"},{\"type\":\"bytes\",\"optional\":false,\"field\":"
                           "\"value\"}]");
        break;
    case DBZ_POINT:
        cdcd_writer_lit(w, ",\"fields\":[{\"type\":\"double\",\"optional\":false,\"field\":\"x\"},"
                           "{\"type\":\"double\",\"optional\":false,\"field\":\"y\"},"
                           "{\"type\":\"bytes\",\"optional\":true,\"field\":\"wkb\"},"
                           "{\"type\":\"int32\",\"optional\":true,\"field\":\"srid\"}]");
        break;
    case DBZ_GEOMETRY:
        cdcd_writer_lit(w, ",\"fields\":[{\"type\":\"bytes\",\"optional\":false,\"field\":"
                           "\"wkb\"},{\"type\":\"int32\",\"optional\":true,\"field\":\"srid\"}]");
        break;
    case DBZ_SPARSEVEC:
        cdcd_writer_lit(w, ",\"fields\":[{\"type\":\"int16\",\"optional\":false,\"field\":"
                           "\"dimensions\"},{\"type\":\"map\",\"keys\":{\"type\":\"int16\","
                           "\"optional\":false},\"values\":{\"type\":\"double\",\"optional\":"
                           "false},\"optional\":false,\"field\":\"vector\"}]");
        break;
    case DBZ_HSTORE_MAP:
        cdcd_writer_lit(w, ",\"keys\":{\"type\":\"string\",\"optional\":false},\"values\":"
                           "{\"type\":\"string\",\"optional\":true}");
        break;
    case DBZ_VECTOR64:
        cdcd_writer_lit(w, ",\"items\":{\"type\":\"double\",\"optional\":false}");
        break;
    case DBZ_VECTOR32:
        cdcd_writer_lit(w, ",\"items\":{\"type\":\"float\",\"optional\":false}");
        break;
    case DBZ_ARRAY:
        cdcd_writer_lit(w, ",\"items\":");
        put_schema(w, c->elem, NULL);
        break;
    default: break;
    }
}

static bool avro_name_char(char c, bool first)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' ||
           (!first && ((c >= '0' && c <= '9') || c == '.'));
}

/* The schema's name is the topic's and a suffix, made an Avro name if so configured. */
static void put_name(const struct cdcd_encoder *e, struct cdcd_writer *w, const struct dbz_table *t,
                     const char *suffix)
{
    bool avro = e->d.cfg->schema_name_mode == CDCD_NAMES_AVRO;
    cdcd_writer_lit(w, "\"name\":\"");
    for (size_t i = 0; i < t->topic->name.len; i++) {
        char c = t->topic->name.ptr[i];
        cdcd_writer_char(w, avro && !avro_name_char(c, i == 0) ? '_' : c);
    }
    dbz_adds(w, suffix);
    cdcd_writer_char(w, '"');
}

void dbz_schema_key(struct cdcd_encoder *e, struct cdcd_writer *w, const struct dbz_table *t)
{
    cdcd_writer_lit(w, "{\"type\":\"struct\",\"fields\":[");
    for (uint32_t i = 0; i < t->nkeys; i++) {
        const struct dbz_column *c = &t->columns[t->keys[i]];
        if (i)
            cdcd_writer_char(w, ',');
        put_schema(w, c, c->col->name);
    }
    cdcd_writer_lit(w, "],\"optional\":false,");
    put_name(e, w, t, ".Key");
    cdcd_writer_char(w, '}');
}

static void put_row(struct cdcd_encoder *e, struct cdcd_writer *w, const struct dbz_table *t,
                    const char *field)
{
    cdcd_writer_lit(w, "{\"type\":\"struct\",\"fields\":[");
    for (uint32_t i = 0; i < t->ncolumns; i++) {
        if (i)
            cdcd_writer_char(w, ',');
        put_schema(w, &t->columns[i], t->columns[i].col->name);
    }
    cdcd_writer_lit(w, "],\"optional\":true,");
    put_name(e, w, t, ".Value");
    cdcd_writer_lit(w, ",\"field\":\"");
    dbz_adds(w, field);
    cdcd_writer_lit(w, "\"}");
}

#define FIELD(type, optional, name) \
    "{\"type\":\"" type "\",\"optional\":" optional ",\"field\":\"" name "\"}"

/* The source block: the common fields, then the connector's own. */
static void put_source(struct cdcd_encoder *e, struct cdcd_writer *w)
{
    const struct cdcd_source_ops *ops = e->env.source;
    cdcd_writer_lit(
        w,
        "{\"type\":\"struct\",\"fields\":[" FIELD("string", "false", "version") "," FIELD("string", "false", "connector") "," FIELD(
            "string", "false",
            "name") "," FIELD("int64", "false",
                              "ts_ms") ",{\"type\":\"string\",\"optional\":true,\"name\":\"io."
                                       "debezium.data.Enum\","
                                       "\"version\":1,\"parameters\":{\"allowed\":\"true,first,"
                                       "first_in_data_collection,"
                                       "last_in_data_collection,last,false,incremental\"},"
                                       "\"default\":\"false\","
                                       "\"field\":\"snapshot\"}," FIELD("string", "false", "db") "," FIELD(
                                           "string", "true",
                                           "sequence") "," FIELD("int64", "true",
                                                                 "ts_us") "," FIELD("int64", "true",
                                                                                    "ts_ns"));
    for (size_t i = 0; i < ops->nsource_columns; i++) {
        struct dbz_column c = {.col = &ops->source_columns[i],
                               .form = dbz_form_of(e->d.cfg, &ops->source_columns[i])};
        cdcd_writer_char(w, ',');
        put_schema(w, &c, c.col->name);
    }
    cdcd_writer_lit(w, "],\"optional\":false,\"name\":\"");
    dbz_adds(w, ops->source_schema_name);
    cdcd_writer_lit(w, "\",\"version\":1,\"field\":\"source\"}");
}

#define TRANSACTION                                                                               \
    "{\"type\":\"struct\",\"fields\":[" FIELD("string", "false", "id") "," FIELD(                 \
        "int64", "false",                                                                         \
        "total_order") "," FIELD("int64", "false",                                                \
                                 "data_collection_order") "],\"optional\":true,\"name\":\"event." \
                                                          "block\",\"version\":1,\"field\":"      \
                                                          "\"transaction\"}"

void dbz_schema_envelope(struct cdcd_encoder *e, struct cdcd_writer *w, const struct dbz_table *t)
{
    cdcd_writer_lit(w, "{\"type\":\"struct\",\"fields\":[");
    put_row(e, w, t, "before");
    cdcd_writer_char(w, ',');
    put_row(e, w, t, "after");
    cdcd_writer_char(w, ',');
    put_source(e, w);
    cdcd_writer_lit(
        w,
        "," TRANSACTION
        "," FIELD("string", "false", "op") "," FIELD("int64", "true", "ts_ms") "," FIELD(
            "int64", "true", "ts_us") "," FIELD("int64", "true", "ts_ns") "],\"optional\":false,");
    put_name(e, w, t, ".Envelope");
    cdcd_writer_lit(w, ",\"version\":2}");
}

/* "io.debezium.connector.postgresql.Source" without "Source" */
static void put_connector_name(struct cdcd_encoder *e, struct cdcd_writer *w, const char *last)
{
    const char *name = e->env.source->source_schema_name;
    const char *dot = strrchr(name, '.');
    cdcd_writer_lit(w, "\"name\":\"");
    cdcd_writer_add(w, name, dot ? (size_t)(dot + 1 - name) : 0);
    dbz_adds(w, last);
    cdcd_writer_lit(w, "\",\"version\":1");
}

void dbz_schema_message(struct cdcd_encoder *e, struct cdcd_writer *w)
{
    cdcd_writer_lit(w, "{\"type\":\"struct\",\"fields\":[" FIELD("string", "false", "op") "," FIELD(
                           "int64", "true", "ts_ms") ",");
    put_source(e, w);
    cdcd_writer_lit(w, "," TRANSACTION
                       ",{\"type\":\"struct\",\"fields\":[" FIELD("string", "true", "prefix") ",");
    dbz_adds(w, e->d.cfg->binary_mode == CDCD_BINARY_BYTES ? FIELD("bytes", "true", "content")
                                                           : FIELD("string", "true", "content"));
    cdcd_writer_lit(w, "],\"optional\":false,");
    put_connector_name(e, w, "Message");
    cdcd_writer_lit(w, ",\"field\":\"message\"}],\"optional\":false,");
    put_connector_name(e, w, "MessageValue");
    cdcd_writer_char(w, '}');
}

#define STRUCT(fields, name)                                                           \
    "{\"type\":\"struct\",\"fields\":[" fields "],\"optional\":false,\"name\":\"" name \
    "\",\"version\":1}"
#define COMMON "io.debezium.connector.common."

const char dbz_schema_message_key[] = STRUCT(FIELD("string", "true", "prefix"),
                                             "io.debezium.connector.postgresql.MessageKey");
const char dbz_schema_tx_key[] = STRUCT(FIELD("string", "false", "id"),
                                        COMMON "TransactionMetadataKey");
const char dbz_schema_tx_value[] = STRUCT(
    FIELD("string", "false", "status") "," FIELD("string", "false", "id") "," FIELD(
        "int64", "true",
        "event_count") ",{\"type\":\"array\",\"items\":{\"type\":\"struct\","
                       "\"fields\":[" FIELD("string", "false", "data_collection") "," FIELD(
                           "int64", "false",
                           "event_count") "],\"optional\":true,\"name\":\"event.collection\","
                                          "\"version\":1},\"optional\":true,\"field\":"
                                          "\"data_collections\"}," FIELD("int64", "false", "ts_ms"),
    COMMON "TransactionMetadataValue");
const char dbz_schema_heartbeat_key[] = STRUCT(FIELD("string", "false", "serverName"),
                                               COMMON "ServerNameKey");
const char dbz_schema_heartbeat_value[] = STRUCT(FIELD("int64", "false", "ts_ms"),
                                                 COMMON "Heartbeat");
const char dbz_schema_truncate_key[] = STRUCT(
    FIELD("string", "false", "schema") "," FIELD("string", "false", "table"), "cdcd.TruncateKey");
