/*
 * Records that belong to no table: logical messages, transaction metadata, heartbeats, schema
 * changes.
 */
#include "dbz.h"

#include <stdlib.h>

struct cdcd_topic *dbz_own_topic(struct cdcd_encoder *e, const char *first, const char *second,
                                 bool keyed)
{
    char *name = cdcd_xasprintf("%s%s%s", first, dbz_str(e->d.cfg->topic_delimiter, "."), second);
    struct cdcd_topic *t = cdcd_topics_get(&e->topics, name, strlen(name), NULL, keyed);
    free(name);
    return t;
}

bool dbz_begin_fixed(struct dbz_job *j, enum dbz_fixed which)
{
    cdcd_writer_begin(&j->w, &j->b->arena);
    if (!j->e->d.cfg->schemas_enable)
        return false;
    cdcd_writer_lit(&j->w, "{\"schema\":");
    dbz_schema_fixed(j->e, &j->w, which);
    cdcd_writer_lit(&j->w, ",\"payload\":");
    return true;
}

struct cdcd_slice dbz_put_wrapped(struct dbz_job *j, enum dbz_fixed schema, const char *open,
                                  struct cdcd_slice text)
{
    bool schemas = dbz_begin_fixed(j, schema);
    dbz_adds(&j->w, open);
    cdcd_json_string(&j->w, text.ptr ? text.ptr : "", text.len);
    dbz_adds(&j->w, schemas ? "}}" : "}");
    return cdcd_writer_end(&j->w);
}

bool dbz_encode_message(struct dbz_job *j)
{
    struct cdcd_encoder *e = j->e;
    const struct cdcd_event *ev = j->ev;
    static const struct cdcd_column content_column = {
        .name = "content", .type = CDCD_T_BYTES, .type_name = "bytea"};
    struct dbz_column content = {.col = &content_column,
                                 .form = dbz_form_of(&e->d, &content_column)};
    const struct cdcd_cell *prefix = &ev->after[0], *body = &ev->after[1];
    content.write = dbz_forms[content.form].write;
    if (!e->message_topic)
        e->message_topic = dbz_own_topic(e, e->env.topic_prefix, "message", false);
    struct cdcd_slice name = {prefix->kind == CDCD_C_TEXT ? prefix->ptr : "",
                              prefix->kind == CDCD_C_TEXT ? prefix->len : 0};
    struct cdcd_slice key = dbz_put_wrapped(j, DBZ_MESSAGE_KEY, "{\"prefix\":", name);

    cdcd_writer_begin(&j->w, &j->b->arena);
    dbz_add(&j->w, j->t->value_prefix);
    dbz_add(&j->w, e->now_ms);
    dbz_put_source(j);
    dbz_put_transaction(j, 0);
    cdcd_writer_lit(&j->w, ",\"message\":{\"prefix\":");
    cdcd_json_string(&j->w, name.ptr, name.len);
    cdcd_writer_lit(&j->w, ",\"content\":");
    if (!dbz_write(&e->d, &j->w, &content, body)) {
        e->d.bad = NULL;
        return false;
    }
    cdcd_writer_lit(&j->w, "}}");
    dbz_add(&j->w, j->t->value_suffix);
    dbz_add_record(j, e->message_topic, key, cdcd_writer_end(&j->w), 0, NULL, 0);
    return true;
}

static void put_collections(struct dbz_job *j)
{
    const struct cdcd_event *ev = j->ev;
    uint64_t total = 0;
    for (uint32_t i = 0; i < ev->ncollections; i++)
        total += ev->collections[i].count;
    cdcd_json_uint(&j->w, total);
    cdcd_writer_lit(&j->w, ",\"data_collections\":[");
    for (uint32_t i = 0; i < ev->ncollections; i++) {
        dbz_adds(&j->w, i ? ",{\"data_collection\":" : "{\"data_collection\":");
        cdcd_json_string(&j->w, ev->collections[i].name.ptr, ev->collections[i].name.len);
        cdcd_writer_lit(&j->w, ",\"event_count\":");
        cdcd_json_uint(&j->w, ev->collections[i].count);
        cdcd_writer_char(&j->w, '}');
    }
    cdcd_writer_char(&j->w, ']');
}

bool dbz_encode_transaction(struct dbz_job *j)
{
    struct cdcd_encoder *e = j->e;
    const struct cdcd_event *ev = j->ev;
    bool end = ev->op == CDCD_OP_TX_END;
    if (!e->transaction_topic)
        e->transaction_topic = dbz_own_topic(
            e, e->env.topic_prefix, dbz_str(e->d.cfg->topic_transaction, "transaction"), false);
    struct cdcd_slice key = dbz_put_wrapped(j, DBZ_TX_KEY, "{\"id\":", ev->tx_id);

    bool schemas = dbz_begin_fixed(j, DBZ_TX_VALUE);
    dbz_adds(&j->w, end ? "{\"status\":\"END\",\"id\":" : "{\"status\":\"BEGIN\",\"id\":");
    cdcd_json_string(&j->w, ev->tx_id.ptr ? ev->tx_id.ptr : "", ev->tx_id.len);
    cdcd_writer_lit(&j->w, ",\"event_count\":");
    if (end)
        put_collections(j);
    else
        cdcd_writer_lit(&j->w, "null,\"data_collections\":null");
    cdcd_writer_lit(&j->w, ",\"ts_ms\":");
    cdcd_json_int(&j->w, ev->ts_us / 1000);
    dbz_adds(&j->w, schemas ? "}}" : "}");
    dbz_add_record(j, e->transaction_topic, key, cdcd_writer_end(&j->w), 0, NULL, 0);
    return true;
}

bool dbz_encode_heartbeat(struct dbz_job *j)
{
    struct cdcd_encoder *e = j->e;
    if (!e->heartbeat_topic)
        e->heartbeat_topic = dbz_own_topic(
            e, dbz_str(e->d.cfg->topic_heartbeat_prefix, "__debezium-heartbeat"),
            e->env.topic_prefix, true);
    struct cdcd_slice key = dbz_put_wrapped(
        j, DBZ_HEARTBEAT_KEY, "{\"serverName\":", cdcd_slice_str(e->env.topic_prefix));
    bool schemas = dbz_begin_fixed(j, DBZ_HEARTBEAT_VALUE);
    cdcd_writer_lit(&j->w, "{\"ts_ms\":");
    dbz_add(&j->w, e->now_ms);
    dbz_adds(&j->w, schemas ? "}}" : "}");
    struct cdcd_record *r = dbz_add_record(j, e->heartbeat_topic, key, cdcd_writer_end(&j->w), 0,
                                           NULL, 0);
    r->timestamp_ms = cdcd_wallclock_us() / 1000;
    return true;
}

/* ---- schema changes ---- */

static void put_text(struct cdcd_writer *w, struct cdcd_slice s)
{
    if (s.ptr)
        cdcd_json_string(w, s.ptr, s.len);
    else
        cdcd_writer_lit(w, "null");
}

static void put_field_text(struct cdcd_writer *w, const char *name, struct cdcd_slice s)
{
    dbz_adds(w, name);
    put_text(w, s);
}

/* -1 is null. */
static void put_field_number(struct cdcd_writer *w, const char *name, int32_t v)
{
    dbz_adds(w, name);
    if (v < 0)
        cdcd_writer_lit(w, "null");
    else
        cdcd_json_int(w, v);
}

static void put_field_bool(struct cdcd_writer *w, const char *name, bool v)
{
    dbz_adds(w, name);
    dbz_adds(w, v ? "true" : "false");
}

static void put_texts(struct cdcd_writer *w, const struct cdcd_slice *items, uint32_t n)
{
    cdcd_writer_char(w, '[');
    for (uint32_t i = 0; i < n; i++) {
        if (i)
            cdcd_writer_char(w, ',');
        put_text(w, items[i]);
    }
    cdcd_writer_char(w, ']');
}

static void put_ddl_column(struct cdcd_writer *w, const struct cdcd_ddl_column *c,
                           uint32_t position)
{
    put_field_text(w, "{\"name\":", c->name);
    cdcd_writer_lit(w, ",\"jdbcType\":");
    cdcd_json_int(w, c->jdbc_type);
    put_field_text(w, ",\"nativeType\":null,\"typeName\":", c->type_name);
    put_field_text(w, ",\"typeExpression\":", c->type_expression);
    put_field_text(w, ",\"charsetName\":", c->charset);
    put_field_number(w, ",\"length\":", c->length);
    put_field_number(w, ",\"scale\":", c->scale);
    cdcd_writer_lit(w, ",\"position\":");
    cdcd_json_uint(w, position);
    put_field_bool(w, ",\"optional\":", c->optional);
    put_field_bool(w, ",\"autoIncremented\":", c->auto_incremented);
    put_field_bool(w, ",\"generated\":", c->generated);
    put_field_text(w, ",\"comment\":", c->comment);
    put_field_text(w, ",\"defaultValueExpression\":", c->default_);
    cdcd_writer_lit(w, ",\"enumValues\":");
    if (c->nlabels)
        put_texts(w, c->labels, c->nlabels);
    else
        cdcd_writer_lit(w, "null");
    cdcd_writer_char(w, '}');
}

/* The id is "db"."table", a quote in a name doubled. */
static void put_quoted_name(struct cdcd_buf *b, struct cdcd_slice name)
{
    cdcd_buf_add(b, "\"", 1);
    for (size_t i = 0; i < name.len; i++) {
        if (name.ptr[i] == '"')
            cdcd_buf_add(b, "\"", 1);
        cdcd_buf_add(b, name.ptr + i, 1);
    }
    cdcd_buf_add(b, "\"", 1);
}

static void put_table_id(struct dbz *d, struct cdcd_writer *w, const struct cdcd_ddl_table *t)
{
    cdcd_buf_clear(&d->scratch);
    put_quoted_name(&d->scratch, t->db);
    cdcd_buf_add(&d->scratch, ".", 1);
    put_quoted_name(&d->scratch, t->table);
    cdcd_json_string(w, d->scratch.ptr, d->scratch.len);
}

static void put_ddl_table(struct dbz *d, struct cdcd_writer *w, const struct cdcd_ddl_table *t)
{
    static const char *const types[] = {
        [CDCD_DDL_CREATE] = "CREATE", [CDCD_DDL_ALTER] = "ALTER", [CDCD_DDL_DROP] = "DROP"};
    cdcd_writer_lit(w, "{\"type\":\"");
    dbz_adds(w, types[t->type]);
    cdcd_writer_lit(w, "\",\"id\":");
    put_table_id(d, w, t);
    cdcd_writer_lit(w, ",\"table\":");
    if (t->type == CDCD_DDL_DROP) {
        cdcd_writer_lit(w, "null}");
        return;
    }
    put_field_text(w, "{\"defaultCharsetName\":", t->charset);
    cdcd_writer_lit(w, ",\"primaryKeyColumnNames\":");
    put_texts(w, t->keys, t->nkeys);
    cdcd_writer_lit(w, ",\"columns\":[");
    for (uint32_t i = 0; i < t->ncolumns; i++) {
        if (i)
            cdcd_writer_char(w, ',');
        put_ddl_column(w, &t->columns[i], i + 1);
    }
    put_field_text(w, "],\"comment\":", t->comment);
    cdcd_writer_lit(w, "}}");
}

/* Topic PREFIX. Its records have keys, but the newest one of a database does not stand for the
 * others: the topic is not to be compacted. */
bool dbz_encode_ddl(struct dbz_job *j)
{
    struct cdcd_encoder *e = j->e;
    const struct cdcd_ddl *ddl = j->ev->ddl;
    const char *prefix = e->env.topic_prefix;
    if (!e->ddl_topic)
        e->ddl_topic = cdcd_topics_get(&e->topics, prefix, strlen(prefix), NULL, false);
    struct cdcd_slice key = dbz_put_wrapped(j, DBZ_DDL_KEY, "{\"databaseName\":", ddl->db);

    cdcd_writer_begin(&j->w, &j->b->arena);
    dbz_add(&j->w, j->t->value_prefix);
    dbz_put_source(j);
    cdcd_writer_lit(&j->w, ",\"ts_ms\":");
    dbz_add(&j->w, e->now_ms);
    cdcd_writer_lit(&j->w, ",\"databaseName\":");
    cdcd_json_string(&j->w, ddl->db.ptr ? ddl->db.ptr : "", ddl->db.len);
    put_field_text(&j->w, ",\"schemaName\":null,\"ddl\":", ddl->text);
    cdcd_writer_lit(&j->w, ",\"tableChanges\":[");
    for (uint32_t i = 0; i < ddl->ntables; i++) {
        if (i)
            cdcd_writer_char(&j->w, ',');
        put_ddl_table(&e->d, &j->w, &ddl->tables[i]);
    }
    cdcd_writer_lit(&j->w, "]}");
    dbz_add(&j->w, j->t->value_suffix);
    dbz_add_record(j, e->ddl_topic, key, cdcd_writer_end(&j->w), 0, NULL, 0);
    return true;
}
