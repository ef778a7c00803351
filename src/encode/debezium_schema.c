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
    case DBZ_UINT64_DECIMAL:
        put_parameter(w, "scale", 0, true);
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
    if (c->col->comment || f->doc) {
        const char *doc = c->col->comment ? c->col->comment : f->doc;
        cdcd_writer_lit(w, ",\"doc\":");
        cdcd_json_string(w, doc, strlen(doc));
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

/* Simple fields: {"type":"string","optional":false,"field":"id"} */
struct field {
    const char *type;
    bool optional;
    const char *name;
};

static void put_fields(struct cdcd_writer *w, const struct field *fields, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        dbz_adds(w, i ? ",{\"type\":\"" : "{\"type\":\"");
        dbz_adds(w, fields[i].type);
        dbz_adds(w, fields[i].optional ? "\",\"optional\":true" : "\",\"optional\":false");
        cdcd_writer_lit(w, ",\"field\":\"");
        dbz_adds(w, fields[i].name);
        cdcd_writer_lit(w, "\"}");
    }
}
#define PUT_FIELDS(w, fields) put_fields((w), (fields), sizeof(fields) / sizeof((fields)[0]))

static const char struct_open[] = "{\"type\":\"struct\",\"fields\":[";

static const struct field vardecimal_fields[] = {
    {"int32", false, "scale"},
    {"bytes", false, "value"},
};
static const struct field point_fields[] = {
    {"double", false, "x"},
    {"double", false, "y"},
    {"bytes", true, "wkb"},
    {"int32", true, "srid"},
};
static const struct field geometry_fields[] = {
    {"bytes", false, "wkb"},
    {"int32", true, "srid"},
};

/* PostgreSQL's own shapes, as opposed to those of PostGIS. */
static bool is_native_shape(const struct cdcd_column *col)
{
    static const char *const names[] = {"box", "lseg", "path", "polygon"};
    for (size_t i = 0; col->type_name && i < sizeof(names) / sizeof(names[0]); i++) {
        if (strcmp(col->type_name, names[i]) == 0)
            return true;
    }
    return false;
}

static void put_parts(struct cdcd_writer *w, const struct dbz_column *c)
{
    switch (c->form) {
    case DBZ_VARDECIMAL:
        cdcd_writer_lit(w, ",\"fields\":[");
        PUT_FIELDS(w, vardecimal_fields);
        cdcd_writer_char(w, ']');
        break;
    case DBZ_POINT:
        cdcd_writer_lit(w, ",\"fields\":[");
        PUT_FIELDS(w, point_fields);
        cdcd_writer_char(w, ']');
        break;
    case DBZ_GEOMETRY:
        cdcd_writer_lit(w, ",\"fields\":[");
        PUT_FIELDS(w, geometry_fields);
        if (is_native_shape(c->col))
            cdcd_writer_lit(w, ",{\"type\":\"map\",\"keys\":{\"type\":\"string\",\"optional\":"
                               "false},\"values\":{\"type\":\"string\",\"optional\":false},"
                               "\"optional\":true,\"field\":\"extensions\"}");
        cdcd_writer_char(w, ']');
        break;
    case DBZ_SPARSEVEC:
        cdcd_writer_lit(w, ",\"fields\":[{\"type\":\"int32\",\"optional\":false,\"field\":"
                           "\"dimensions\"},{\"type\":\"map\",\"keys\":{\"type\":\"int32\","
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
    static const struct field id[] = {{"string", false, "id"}};
    dbz_adds(w, struct_open);
    if (t->document)
        PUT_FIELDS(w, id);
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

/* field NULL: not one of a struct. */
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
    if (field) {
        cdcd_writer_lit(w, ",\"field\":\"");
        dbz_adds(w, field);
        cdcd_writer_char(w, '"');
    }
    cdcd_writer_char(w, '}');
}

void dbz_schema_row(struct cdcd_encoder *e, struct cdcd_writer *w, const struct dbz_table *t)
{
    put_row(e, w, t, NULL);
}

static const struct field source_fields_1[] = {
    {"string", false, "version"},
    {"string", false, "connector"},
    {"string", false, "name"},
    {"int64", false, "ts_ms"},
};
static const struct field source_fields_2[] = {
    {"string", false, "db"},
    {"string", true, "sequence"},
    {"int64", true, "ts_us"},
    {"int64", true, "ts_ns"},
};
static const struct field transaction_fields[] = {
    {"string", false, "id"},
    {"int64", false, "total_order"},
    {"int64", false, "data_collection_order"},
};
static const struct field envelope_end[] = {
    {"string", false, "op"},
    {"int64", true, "ts_ms"},
    {"int64", true, "ts_us"},
    {"int64", true, "ts_ns"},
};
static const struct field message_start[] = {
    {"string", false, "op"},
    {"int64", true, "ts_ms"},
};
static const struct field tx_value_fields[] = {
    {"string", false, "status"},
    {"string", false, "id"},
    {"int64", true, "event_count"},
};
static const struct field tx_collection_fields[] = {
    {"string", false, "data_collection"},
    {"int64", false, "event_count"},
};
static const struct field ts_ms_field[] = {{"int64", false, "ts_ms"}};
static const struct field truncate_key_fields[] = {
    {"string", false, "schema"},
    {"string", false, "table"},
};

/* The end of a struct: its name, version 1, and its field in the struct around it, if any. */
static void close_struct(struct cdcd_writer *w, bool optional, const char *name, size_t name_len,
                         const char *last, const char *field)
{
    dbz_adds(w, optional ? "],\"optional\":true,\"name\":\"" : "],\"optional\":false,\"name\":\"");
    cdcd_writer_add(w, name, name_len);
    dbz_adds(w, last);
    cdcd_writer_lit(w, "\",\"version\":1");
    if (field) {
        cdcd_writer_lit(w, ",\"field\":\"");
        dbz_adds(w, field);
        cdcd_writer_char(w, '"');
    }
    cdcd_writer_char(w, '}');
}

/* The source block: the common fields, then the connector's own. */
static void put_source(struct cdcd_encoder *e, struct cdcd_writer *w)
{
    const struct cdcd_source_ops *ops = e->env.source;
    dbz_adds(w, struct_open);
    PUT_FIELDS(w, source_fields_1);
    cdcd_writer_lit(w, ",{\"type\":\"string\",\"optional\":true,\"name\":"
                       "\"io.debezium.data.Enum\",\"version\":1,\"parameters\":{\"allowed\":"
                       "\"true,first,first_in_data_collection,last_in_data_collection,last,false,"
                       "incremental\"},\"default\":\"false\",\"field\":\"snapshot\"},");
    PUT_FIELDS(w, source_fields_2);
    for (size_t i = 0; i < ops->nsource_columns; i++) {
        struct dbz_column c = {.col = &ops->source_columns[i],
                               .form = dbz_form_of(&e->d, &ops->source_columns[i])};
        cdcd_writer_char(w, ',');
        put_schema(w, &c, c.col->name);
    }
    close_struct(w, false, e->source_schema_name, strlen(e->source_schema_name), "", "source");
}

static void put_transaction(struct cdcd_writer *w)
{
    dbz_adds(w, struct_open);
    PUT_FIELDS(w, transaction_fields);
    close_struct(w, true, "event.block", 11, "", "transaction");
}

/* ---- documents ---- */

static void put_strings(struct cdcd_writer *w, const char *field)
{
    cdcd_writer_lit(w, "{\"type\":\"array\",\"items\":{\"type\":\"string\",\"optional\":false},"
                       "\"optional\":true,\"field\":\"");
    dbz_adds(w, field);
    cdcd_writer_lit(w, "\"}");
}

/* JSON text in a string. */
static void put_json_text(struct cdcd_writer *w, const char *field)
{
    cdcd_writer_lit(w, "{\"type\":\"string\",\"optional\":true,\"name\":\"io.debezium.data.Json\","
                       "\"version\":1,\"field\":\"");
    dbz_adds(w, field);
    cdcd_writer_lit(w, "\"}");
}

static const struct field truncated_fields[] = {
    {"string", false, "field"},
    {"int32", false, "size"},
};
static const struct field document_end[] = {
    {"string", true, "op"},
    {"int64", true, "ts_ms"},
};

static void put_update_description(struct cdcd_writer *w)
{
    static const char name[] = "io.debezium.connector.mongodb.changestream.";
    dbz_adds(w, struct_open);
    put_strings(w, "removedFields");
    cdcd_writer_char(w, ',');
    put_json_text(w, "updatedFields");
    cdcd_writer_lit(w, ",{\"type\":\"array\",\"items\":");
    dbz_adds(w, struct_open);
    PUT_FIELDS(w, truncated_fields);
    close_struct(w, false, name, strlen(name), "truncatedarray", NULL);
    cdcd_writer_lit(w, ",\"optional\":true,\"field\":\"truncatedArrays\"}");
    close_struct(w, true, name, strlen(name), "updatedescription", "updateDescription");
}

/* Other than a table's, this envelope has no version. */
static void document_envelope(struct cdcd_encoder *e, struct cdcd_writer *w,
                              const struct dbz_table *t)
{
    dbz_adds(w, struct_open);
    put_json_text(w, "before");
    cdcd_writer_char(w, ',');
    put_json_text(w, "after");
    cdcd_writer_char(w, ',');
    put_update_description(w);
    cdcd_writer_char(w, ',');
    put_source(e, w);
    cdcd_writer_char(w, ',');
    PUT_FIELDS(w, document_end);
    cdcd_writer_char(w, ',');
    put_transaction(w);
    cdcd_writer_lit(w, "],\"optional\":false,");
    put_name(e, w, t, ".Envelope");
    cdcd_writer_char(w, '}');
}

void dbz_schema_envelope(struct cdcd_encoder *e, struct cdcd_writer *w, const struct dbz_table *t)
{
    if (t->document) {
        document_envelope(e, w, t);
        return;
    }
    dbz_adds(w, struct_open);
    put_row(e, w, t, "before");
    cdcd_writer_char(w, ',');
    put_row(e, w, t, "after");
    cdcd_writer_char(w, ',');
    put_source(e, w);
    cdcd_writer_char(w, ',');
    put_transaction(w);
    cdcd_writer_char(w, ',');
    PUT_FIELDS(w, envelope_end);
    cdcd_writer_lit(w, "],\"optional\":false,");
    put_name(e, w, t, ".Envelope");
    cdcd_writer_lit(w, ",\"version\":2}");
}

/* "io.debezium.connector.postgresql." of "io.debezium.connector.postgresql.Source" */
static size_t connector_prefix(const struct cdcd_encoder *e)
{
    const char *dot = strrchr(e->source_schema_name, '.');
    return dot ? (size_t)(dot + 1 - e->source_schema_name) : 0;
}

void dbz_schema_message(struct cdcd_encoder *e, struct cdcd_writer *w)
{
    const char *connector = e->source_schema_name;
    size_t n = connector_prefix(e);
    struct field fields[] = {
        {"string", true, "prefix"},
        {e->d.cfg->binary_mode == CDCD_BINARY_BYTES ? "bytes" : "string", true, "content"},
    };
    dbz_adds(w, struct_open);
    PUT_FIELDS(w, message_start);
    cdcd_writer_char(w, ',');
    put_source(e, w);
    cdcd_writer_char(w, ',');
    put_transaction(w);
    cdcd_writer_char(w, ',');
    dbz_adds(w, struct_open);
    PUT_FIELDS(w, fields);
    close_struct(w, false, connector, n, "Message", "message");
    close_struct(w, false, connector, n, "MessageValue", NULL);
}

/* ---- schema changes ---- */

static const struct field ddl_start[] = {
    {"int64", false, "ts_ms"},
    {"string", true, "databaseName"},
    {"string", true, "schemaName"},
    {"string", true, "ddl"},
};
static const struct field ddl_change[] = {
    {"string", false, "type"},
    {"string", false, "id"},
};
static const struct field ddl_charset[] = {{"string", true, "defaultCharsetName"}};
static const struct field ddl_column[] = {
    {"string", false, "name"},
    {"int32", false, "jdbcType"},
    {"int32", true, "nativeType"},
    {"string", false, "typeName"},
    {"string", true, "typeExpression"},
    {"string", true, "charsetName"},
    {"int32", true, "length"},
    {"int32", true, "scale"},
    {"int32", false, "position"},
    {"boolean", true, "optional"},
    {"boolean", true, "autoIncremented"},
    {"boolean", true, "generated"},
    {"string", true, "comment"},
    {"string", true, "defaultValueExpression"},
};
static const struct field ddl_comment[] = {{"string", true, "comment"}};

static void put_ddl_table(struct cdcd_writer *w)
{
    static const char name[] = "io.debezium.connector.schema.";
    dbz_adds(w, struct_open);
    PUT_FIELDS(w, ddl_charset);
    cdcd_writer_char(w, ',');
    put_strings(w, "primaryKeyColumnNames");
    cdcd_writer_lit(w, ",{\"type\":\"array\",\"items\":");
    dbz_adds(w, struct_open);
    PUT_FIELDS(w, ddl_column);
    cdcd_writer_char(w, ',');
    put_strings(w, "enumValues");
    close_struct(w, false, name, strlen(name), "Column", NULL);
    cdcd_writer_lit(w, ",\"optional\":false,\"field\":\"columns\"},");
    PUT_FIELDS(w, ddl_comment);
    close_struct(w, true, name, strlen(name), "Table", "table");
}

void dbz_schema_ddl(struct cdcd_encoder *e, struct cdcd_writer *w)
{
    static const char name[] = "io.debezium.connector.schema.";
    dbz_adds(w, struct_open);
    put_source(e, w);
    cdcd_writer_char(w, ',');
    PUT_FIELDS(w, ddl_start);
    cdcd_writer_lit(w, ",{\"type\":\"array\",\"items\":");
    dbz_adds(w, struct_open);
    PUT_FIELDS(w, ddl_change);
    cdcd_writer_char(w, ',');
    put_ddl_table(w);
    close_struct(w, false, name, strlen(name), "Change", NULL);
    cdcd_writer_lit(w, ",\"optional\":false,\"field\":\"tableChanges\"}");
    close_struct(w, false, e->source_schema_name, connector_prefix(e), "SchemaChangeValue", NULL);
}

static const char common[] = "io.debezium.connector.common.";

void dbz_schema_fixed(struct cdcd_encoder *e, struct cdcd_writer *w, enum dbz_fixed which)
{
    struct field key[] = {{"string", which == DBZ_MESSAGE_KEY,
                           which == DBZ_MESSAGE_KEY     ? "prefix"
                           : which == DBZ_HEARTBEAT_KEY ? "serverName"
                           : which == DBZ_DDL_KEY       ? "databaseName"
                                                        : "id"}};
    dbz_adds(w, struct_open);
    switch (which) {
    case DBZ_MESSAGE_KEY:
        PUT_FIELDS(w, key);
        close_struct(w, false, e->source_schema_name, connector_prefix(e), "MessageKey", NULL);
        break;
    case DBZ_TX_KEY:
        PUT_FIELDS(w, key);
        close_struct(w, false, common, strlen(common), "TransactionMetadataKey", NULL);
        break;
    case DBZ_TX_VALUE:
        PUT_FIELDS(w, tx_value_fields);
        cdcd_writer_lit(w, ",{\"type\":\"array\",\"items\":");
        dbz_adds(w, struct_open);
        PUT_FIELDS(w, tx_collection_fields);
        close_struct(w, true, "event.collection", 16, "", NULL);
        cdcd_writer_lit(w, ",\"optional\":true,\"field\":\"data_collections\"},");
        PUT_FIELDS(w, ts_ms_field);
        close_struct(w, false, common, strlen(common), "TransactionMetadataValue", NULL);
        break;
    case DBZ_HEARTBEAT_KEY:
        PUT_FIELDS(w, key);
        close_struct(w, false, common, strlen(common), "ServerNameKey", NULL);
        break;
    case DBZ_HEARTBEAT_VALUE:
        PUT_FIELDS(w, ts_ms_field);
        close_struct(w, false, common, strlen(common), "Heartbeat", NULL);
        break;
    case DBZ_TRUNCATE_KEY:
        PUT_FIELDS(w, truncate_key_fields);
        close_struct(w, false, "cdcd.TruncateKey", 16, "", NULL);
        break;
    case DBZ_DDL_KEY:
        PUT_FIELDS(w, key);
        close_struct(w, false, e->source_schema_name, connector_prefix(e), "SchemaChangeKey", NULL);
        break;
    }
}
