/*
 * How rows are written, told in records of their own: for sinks that make something else of the
 * values (a search index) or keep it for readers that do (topics). The envelope itself stays the
 * standard one, and without schemas.enable nothing in it tells a date from a number.
 *
 * Topic CDCD_SCHEMA_TOPIC, key: the version that the header cdcd.schema of the table's records has,
 * value: {"topic":"...","key":SCHEMA|null,"row":SCHEMA|null}, the Connect schemas as schemas.enable
 * writes them. row null: documents.
 */
#include "dbz.h"

static void mix(uint64_t *h, uint64_t v)
{
    *h = (*h ^ v) * UINT64_C(0x100000001b3);
}

uint64_t dbz_forms_version(const struct cdcd_debezium_config *cfg)
{
    const int modes[] = {cfg->decimal_mode,  cfg->time_mode,     cfg->binary_mode,
                         cfg->interval_mode, cfg->hstore_mode,   cfg->unsigned_mode,
                         cfg->document_mode, cfg->schemas_enable};
    const char *columns = dbz_str(cfg->message_key_columns, "");
    uint64_t h = UINT64_C(0xcbf29ce484222325);
    bool any = *columns;
    for (size_t i = 0; i < sizeof(modes) / sizeof(modes[0]); i++) {
        any = any || modes[i];
        mix(&h, (uint64_t)modes[i]);
    }
    for (; *columns; columns++)
        mix(&h, (unsigned char)*columns);
    return any ? h : 0;
}

static struct cdcd_slice put_schemas(struct dbz_job *j)
{
    struct cdcd_writer *w = &j->w;
    const struct dbz_table *t = j->t;
    cdcd_writer_begin(w, &j->b->arena);
    cdcd_writer_lit(w, "{\"topic\":");
    dbz_add(w, t->topic->name_json);
    cdcd_writer_lit(w, ",\"key\":");
    if (t->nkeys || t->document)
        dbz_schema_key(j->e, w, t);
    else
        cdcd_writer_lit(w, "null");
    cdcd_writer_lit(w, ",\"row\":");
    if (t->document)
        cdcd_writer_lit(w, "null");
    else
        dbz_schema_row(j->e, w, t);
    cdcd_writer_char(w, '}');
    return cdcd_writer_end(w);
}

void dbz_announce(struct dbz_job *j)
{
    struct cdcd_encoder *e = j->e;
    struct dbz_table *t = j->t;
    if (!e->schema_topic)
        e->schema_topic = cdcd_topics_get(&e->topics, CDCD_SCHEMA_TOPIC, strlen(CDCD_SCHEMA_TOPIC),
                                          NULL, true);
    struct cdcd_slice value = put_schemas(j);
    struct cdcd_record *r = cdcd_batch_record(j->b);
    r->topic = e->schema_topic;
    r->key = t->headers[t->nheaders - 1].value; /* cdcd.schema is the last one */
    r->key.ptr = cdcd_arena_dup(&j->b->arena, r->key.ptr, r->key.len);
    r->value = value;
    r->timestamp_ms = j->ev->ts_us / 1000;
    j->b->bytes += r->key.len + r->value.len;
    t->session = e->session;
}
