/*
 * Events -> Debezium records: envelopes, keys, tombstones, headers.
 */
#include "dbz.h"

#include <cdcd/log.h>

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

/* ---- the encoder ---- */

static void source_names_init(struct cdcd_encoder *e)
{
    const struct cdcd_source_ops *ops = e->env.source;
    e->source_names = cdcd_arena_alloc(&e->arena,
                                       (ops->nsource_columns + 1) * sizeof(e->source_names[0]));
    for (size_t i = 0; i < ops->nsource_columns; i++) {
        struct cdcd_writer w;
        cdcd_writer_begin(&w, &e->arena);
        cdcd_writer_char(&w, ',');
        cdcd_json_string(&w, ops->source_columns[i].name, strlen(ops->source_columns[i].name));
        cdcd_writer_char(&w, ':');
        e->source_names[i] = cdcd_writer_end(&w);
    }
}

enum cdcd_rc cdcd_encoder_new(const struct cdcd_debezium_config *cfg,
                              const struct cdcd_encoder_env *env, struct cdcd_encoder **out,
                              struct cdcd_error *err)
{
    static _Atomic uint64_t ids;
    struct cdcd_encoder *e = cdcd_xcalloc(1, sizeof(*e));
    e->id = atomic_fetch_add(&ids, 1) + 1;
    e->d.cfg = cfg;
    e->d.time_micros = env->source->time_micros;
    e->env = *env;
    e->session = 1;
    cdcd_encoder_name_source(e, env->source->connector, env->source->source_schema_name);
    cdcd_arena_init(&e->arena, 8192);
    cdcd_buf_init(&e->d.scratch, 0);
    cdcd_topics_init(&e->topics);
    e->ts_us = INT64_MIN;
    if (dbz_check_options(cfg, err) != CDCD_OK ||
        dbz_placeholder_init(&e->d, &e->arena, err) != CDCD_OK ||
        dbz_rules_parse(e, cfg->message_key_columns, err) != CDCD_OK) {
        cdcd_encoder_free(e);
        return CDCD_ERROR;
    }
    for (int op = 0; op <= CDCD_OP_MESSAGE; op++)
        e->skip |= cdcd_debezium_skips(cfg, (enum cdcd_op)op) ? 1u << op : 0;
    source_names_init(e);
    *out = e;
    return CDCD_OK;
}

void cdcd_encoder_name_source(struct cdcd_encoder *e, const char *connector,
                              const char *source_schema_name)
{
    e->connector = connector;
    e->source_schema_name = source_schema_name;
}

void cdcd_encoder_free(struct cdcd_encoder *e)
{
    if (!e)
        return;
    dbz_rules_free(e);
    dbz_table_free(e->message);
    dbz_table_free(e->ddl);
    free(e->db);
    cdcd_topics_free(&e->topics);
    cdcd_buf_free(&e->d.scratch);
    cdcd_arena_free(&e->arena);
    free(e);
}

void cdcd_encoder_session(struct cdcd_encoder *e)
{
    e->session++;
}

uint64_t cdcd_encoder_skipped(const struct cdcd_encoder *e)
{
    return e->skipped;
}

/* ---- parts of an envelope ---- */

static size_t digits_of(char *out, int64_t v)
{
    char text[24];
    size_t n = 0;
    uint64_t u = v < 0 ? 0 - (uint64_t)v : (uint64_t)v;
    do
        text[n++] = (char)('0' + u % 10);
    while (u /= 10);
    if (v < 0)
        text[n++] = '-';
    for (size_t i = 0; i < n; i++)
        out[i] = text[n - 1 - i];
    return n;
}

/* The commit time as microseconds in text. Its first digits are the milliseconds. */
static void ts_prepare(struct cdcd_encoder *e, int64_t us)
{
    if (e->ts_us == us)
        return;
    e->ts_us = us;
    e->ts_len = digits_of(e->ts_text, us);
}

void dbz_put_source(struct dbz_job *j)
{
    struct cdcd_encoder *e = j->e;
    struct cdcd_writer *w = &j->w;
    const struct cdcd_event *ev = j->ev;
    const struct dbz_source_text *s = &j->t->source;
    ts_prepare(e, ev->ts_us);
    dbz_add(w, s->prefix);
    if (ev->ts_us >= 1000)
        cdcd_writer_add(w, e->ts_text, e->ts_len - 3);
    else
        cdcd_writer_char(w, '0');
    dbz_add(w, s->mark[ev->snapshot <= CDCD_SNAP_LAST ? ev->snapshot : 0]);
    if (ev->sequence.ptr)
        cdcd_json_string(w, ev->sequence.ptr, ev->sequence.len);
    else
        cdcd_writer_lit(w, "null");
    cdcd_writer_lit(w, ",\"ts_us\":");
    cdcd_writer_add(w, e->ts_text, e->ts_len);
    cdcd_writer_lit(w, ",\"ts_ns\":");
    cdcd_writer_add(w, e->ts_text, e->ts_len);
    if (ev->ts_us)
        cdcd_writer_lit(w, "000");
    for (size_t i = 0; i < e->env.source->nsource_columns; i++) {
        const struct cdcd_cell *v = ev->source ? &ev->source[i] : NULL;
        dbz_add(w, e->source_names[i]);
        switch (v ? v->kind : CDCD_C_NULL) {
        case CDCD_C_TEXT: cdcd_json_string(w, v->ptr, v->len); break;
        case CDCD_C_INT: cdcd_json_int(w, v->i); break;
        case CDCD_C_UINT: cdcd_json_uint(w, v->u); break;
        case CDCD_C_BOOL: dbz_adds(w, v->i ? "true" : "false"); break;
        default: cdcd_writer_lit(w, "null"); break;
        }
    }
    cdcd_writer_char(w, '}');
}

void dbz_put_transaction(struct dbz_job *j, uint64_t extra)
{
    const struct cdcd_event *ev = j->ev;
    if (!ev->tx_id.ptr) {
        cdcd_writer_lit(&j->w, ",\"transaction\":null");
        return;
    }
    cdcd_writer_lit(&j->w, ",\"transaction\":{\"id\":");
    cdcd_json_string(&j->w, ev->tx_id.ptr, ev->tx_id.len);
    cdcd_writer_lit(&j->w, ",\"total_order\":");
    cdcd_json_uint(&j->w, ev->total_order + extra);
    cdcd_writer_lit(&j->w, ",\"data_collection_order\":");
    cdcd_json_uint(&j->w, ev->data_collection_order + extra);
    cdcd_writer_char(&j->w, '}');
}

/* A value that did not change is taken from the other image when that has it. */
static bool put_row(struct dbz_job *j, const struct cdcd_cell *row, const struct cdcd_cell *other)
{
    struct dbz *d = &j->e->d;
    struct cdcd_writer *w = &j->w;
    const struct dbz_table *t = j->t;
    if (!row) {
        cdcd_writer_lit(w, "null");
        return true;
    }
    cdcd_writer_char(w, '{');
    for (uint32_t i = 0; i < t->ncolumns; i++) {
        const struct dbz_column *c = &t->columns[i];
        const struct cdcd_cell *v = &row[i];
        if (v->kind == CDCD_C_UNCHANGED && other && cdcd_cell_present(&other[i]))
            v = &other[i];
        cdcd_writer_add(w, c->name.ptr, c->name.len);
        if (!dbz_write(d, w, c, v))
            return false;
    }
    cdcd_writer_char(w, '}');
    return true;
}

struct images {
    const struct cdcd_cell *before, *after, *other; /* other: fills what is unchanged in after */
    uint64_t extra;
    char op;
};

static bool put_envelope(struct dbz_job *j, const struct images *im, struct cdcd_slice *out)
{
    char op[] = ",\"op\":\"?\"";
    cdcd_writer_begin(&j->w, &j->b->arena);
    dbz_add(&j->w, j->t->value_prefix);
    if (!put_row(j, im->before, NULL))
        return false;
    cdcd_writer_lit(&j->w, ",\"after\":");
    if (!put_row(j, im->after, im->other))
        return false;
    dbz_put_source(j);
    dbz_put_transaction(j, im->extra);
    op[sizeof(op) - 3] = im->op;
    cdcd_writer_add(&j->w, op, sizeof(op) - 1);
    dbz_add(&j->w, j->e->tail);
    dbz_add(&j->w, j->t->value_suffix);
    *out = cdcd_writer_end(&j->w);
    return true;
}

/* ---- keys ---- */

static bool key_fail(struct dbz_job *j, const struct dbz_column *c, const char *why)
{
    return dbz_fail(&j->e->d, c,
                    "%s, so the record's key is unknown; have the whole old row logged "
                    "(PostgreSQL: ALTER TABLE ... REPLICA IDENTITY FULL; MySQL: "
                    "binlog_row_image=FULL), or leave the column out of message.key.columns",
                    why);
}

/* The key from one image, or from the other where the first does not have a value. No key
 * columns: a null key. */
static bool put_key(struct dbz_job *j, const struct cdcd_cell *row, const struct cdcd_cell *other,
                    struct cdcd_slice *out)
{
    const struct dbz_table *t = j->t;
    *out = (struct cdcd_slice){NULL, 0};
    if (!t->nkeys)
        return true;
    cdcd_writer_begin(&j->w, &j->b->arena);
    dbz_add(&j->w, t->key_prefix);
    for (uint32_t i = 0; i < t->nkeys; i++) {
        uint32_t n = t->keys[i];
        const struct dbz_column *c = &t->columns[n];
        const struct cdcd_cell *v = row ? &row[n] : NULL;
        if ((!v || !cdcd_cell_present(v)) && other && cdcd_cell_present(&other[n]))
            v = &other[n];
        if (!v || v->kind == CDCD_C_ABSENT)
            return key_fail(j, c, "the log does not carry this column");
        if (v->kind == CDCD_C_UNCHANGED)
            return key_fail(j, c, "this replica identity column is unchanged TOAST");
        dbz_add(&j->w, t->key_names[i]);
        if (!dbz_write(&j->e->d, &j->w, c, v))
            return false;
    }
    dbz_add(&j->w, t->key_suffix);
    *out = cdcd_writer_end(&j->w);
    return true;
}

static bool key_present(const struct dbz_table *t, const struct cdcd_cell *row)
{
    for (uint32_t i = 0; i < t->nkeys; i++) {
        if (!cdcd_cell_present(&row[t->keys[i]]))
            return false;
    }
    return t->nkeys > 0;
}

struct cdcd_slice dbz_bare_key(const struct dbz_table *t, struct cdcd_slice key)
{
    size_t skip = t->key_prefix.len - 1, end = t->key_suffix.len - 1;
    return (struct cdcd_slice){key.ptr + skip, key.len - skip - end};
}

/* ---- records ---- */

static void put_hex(char *p, uint64_t v)
{
    static const char digits[] = "0123456789ABCDEF";
    for (int i = 16; i-- > 0; v >>= 4)
        p[i] = digits[v & 15];
}

/* COMMIT-KIND-ORDINAL, of fixed width, so that the order of the bytes is that of the log. `sub`
 * tells the records of one event apart. */
static struct cdcd_slice pos_text(struct cdcd_arena *a, const struct cdcd_pos *pos, unsigned sub)
{
    char *p = cdcd_arena_alloc(a, 35);
    put_hex(p, pos->commit);
    p[16] = '-';
    p[17] = pos->stream ? '1' : '0';
    p[18] = '-';
    put_hex(p + 19, pos->ordinal * 4 + sub);
    return (struct cdcd_slice){p, 35};
}

struct cdcd_record *dbz_add_record(struct dbz_job *j, struct cdcd_topic *topic,
                                   struct cdcd_slice key, struct cdcd_slice value, unsigned sub,
                                   const struct cdcd_header *first, uint32_t extra)
{
    const struct dbz_table *t = j->t;
    struct cdcd_arena *a = &j->b->arena;
    struct cdcd_header *h = cdcd_arena_alloc(a, (t->nheaders + extra) * sizeof(*h));
    if (extra)
        memcpy(h, first, extra * sizeof(*h));
    memcpy(h + extra, t->headers, t->nheaders * sizeof(*h));
    h[extra + t->pos_header].value = pos_text(a, &j->ev->pos, sub);

    struct cdcd_record *r = cdcd_batch_record(j->b);
    r->topic = topic;
    r->key = key;
    r->value = value;
    r->headers = h;
    r->nheaders = t->nheaders + extra;
    r->timestamp_ms = j->ev->ts_us / 1000;
    j->b->bytes += key.len + value.len;
    return r;
}

static const struct cdcd_slice none = {NULL, 0};

static bool encode_plain(struct dbz_job *j, const struct images *im)
{
    struct cdcd_slice key, value;
    if (!put_key(j, im->after, im->before, &key) || !put_envelope(j, im, &value))
        return false;
    dbz_add_record(j, j->t->topic, key, value, 0, NULL, 0);
    return true;
}

static bool encode_delete(struct dbz_job *j)
{
    struct images im = {.before = j->ev->before, .op = 'd'};
    struct cdcd_slice key, value;
    if (!put_key(j, im.before, NULL, &key) || !put_envelope(j, &im, &value))
        return false;
    dbz_add_record(j, j->t->topic, key, value, 0, NULL, 0);
    if (j->e->d.cfg->tombstones_on_delete)
        dbz_add_record(j, j->t->topic, key, none, 1, NULL, 0);
    return true;
}

/* The log does not carry a value of the row, and the snapshot that has it comes later. */
static bool lacks_until_row_follows(const struct dbz_job *j)
{
    for (uint32_t i = 0; j->ev->row_follows && i < j->t->ncolumns; i++)
        if (j->ev->after[i].kind == CDCD_C_UNCHANGED)
            return true;
    return false;
}

/* The header that says so. */
static struct cdcd_header row_follows(void)
{
    return (struct cdcd_header){.name = cdcd_slice_str("cdcd.row"),
                                .value = cdcd_slice_str("follows")};
}

/* Delete and tombstone of the old key, create of the new one. */
static bool encode_key_change(struct dbz_job *j, struct cdcd_slice old_key,
                              struct cdcd_slice new_key)
{
    const struct cdcd_event *ev = j->ev;
    struct images gone = {.before = ev->before, .op = 'd'};
    struct images made = {.after = ev->after,
                          .other = ev->before,
                          .op = 'c',
                          .extra = cdcd_event_key_changed(ev) ? 1 : 0};
    struct cdcd_header to = {.name = cdcd_slice_str("__debezium.newkey"),
                             .value = dbz_bare_key(j->t, new_key),
                             .json = true};
    struct cdcd_header from[2] = {{.name = cdcd_slice_str("__debezium.oldkey"),
                                   .value = dbz_bare_key(j->t, old_key),
                                   .json = true},
                                  row_follows()};
    struct cdcd_slice delete_value, create_value;
    if (!put_envelope(j, &gone, &delete_value) || !put_envelope(j, &made, &create_value))
        return false;
    dbz_add_record(j, j->t->topic, old_key, delete_value, 0, &to, 1);
    if (j->e->d.cfg->tombstones_on_delete)
        dbz_add_record(j, j->t->topic, old_key, none, 1, &to, 1);
    dbz_add_record(j, j->t->topic, new_key, create_value, 2, from,
                   lacks_until_row_follows(j) ? 2 : 1);
    return true;
}

/* A before image that has only what `after` has in its key says nothing: the server sends the
 * key of the old row when it is TOAST, changed or not. */
static bool tells_nothing(const struct dbz_job *j)
{
    const struct cdcd_event *ev = j->ev;
    const struct dbz_table *t = j->t;
    bool absent = false;
    for (uint32_t i = 0; i < t->ncolumns; i++) {
        if (ev->before[i].kind == CDCD_C_ABSENT) {
            absent = true;
            continue;
        }
        bool key = false;
        for (uint32_t k = 0; k < t->nkeys && !key; k++)
            key = t->keys[k] == i;
        if (!key)
            return false;
    }
    return absent || t->ncolumns == 0;
}

static bool encode_update(struct dbz_job *j)
{
    const struct cdcd_event *ev = j->ev;
    struct images im = {.before = ev->before, .after = ev->after, .other = ev->before, .op = 'u'};
    struct cdcd_slice key, old_key, value;
    if (!put_key(j, ev->after, ev->before, &key))
        return false;
    if (ev->before && key_present(j->t, ev->before)) {
        if (!put_key(j, ev->before, NULL, &old_key))
            return false;
        if (!cdcd_slice_eq(key, old_key))
            return encode_key_change(j, old_key, key);
    }
    if (ev->before && tells_nothing(j))
        im.before = NULL;
    if (!put_envelope(j, &im, &value))
        return false;
    const struct cdcd_header lacks = row_follows();
    dbz_add_record(j, j->t->topic, key, value, 0, &lacks, lacks_until_row_follows(j) ? 1 : 0);
    return true;
}

static struct cdcd_slice truncate_key(struct dbz_job *j)
{
    const struct cdcd_schema *s = j->ev->schema;
    bool schemas = dbz_begin_fixed(j, DBZ_TRUNCATE_KEY);
    cdcd_writer_lit(&j->w, "{\"schema\":");
    const char *schema = s->schema[0] ? s->schema : s->db;
    cdcd_json_string(&j->w, schema, strlen(schema));
    cdcd_writer_lit(&j->w, ",\"table\":");
    cdcd_json_string(&j->w, s->table, strlen(s->table));
    dbz_adds(&j->w, schemas ? "}}" : "}");
    return cdcd_writer_end(&j->w);
}

/* A compacted topic takes no null key: the truncate of a keyed table goes elsewhere. */
static bool encode_truncate(struct dbz_job *j)
{
    struct cdcd_encoder *e = j->e;
    struct images im = {.op = 't'};
    struct cdcd_slice value, key = none;
    struct cdcd_topic *topic = j->t->topic;
    if (e->env.compacted_truncates && topic->keyed) {
        if (!e->truncate_topic)
            e->truncate_topic = dbz_own_topic(e, e->env.topic_prefix, "truncate", true);
        topic = e->truncate_topic;
        key = truncate_key(j);
    }
    if (!put_envelope(j, &im, &value))
        return false;
    dbz_add_record(j, topic, key, value, 0, NULL, 0);
    return true;
}

/* ---- events ---- */

/* Debezium's clock fields: when the record was made. One clock reading a batch. */
static void begin_batch(struct cdcd_encoder *e, struct cdcd_batch *b)
{
    int64_t us = cdcd_wallclock_us();
    size_t n = digits_of(e->now_text, us);
    struct cdcd_writer w;
    e->now_us = (struct cdcd_slice){e->now_text, n};
    e->now_ms = (struct cdcd_slice){e->now_text, n > 3 ? n - 3 : n};
    cdcd_writer_begin(&w, &b->arena);
    cdcd_writer_lit(&w, ",\"ts_ms\":");
    dbz_add(&w, e->now_ms);
    cdcd_writer_lit(&w, ",\"ts_us\":");
    dbz_add(&w, e->now_us);
    cdcd_writer_lit(&w, ",\"ts_ns\":");
    dbz_add(&w, e->now_us);
    cdcd_writer_lit(&w, "000}");
    e->tail = cdcd_writer_end(&w);
}

static bool encode_data(struct dbz_job *j)
{
    const struct cdcd_event *ev = j->ev;
    struct images im = {.after = ev->after};
    switch (ev->op) {
    case CDCD_OP_CREATE: im.op = 'c'; return encode_plain(j, &im);
    case CDCD_OP_READ: im.op = 'r'; return encode_plain(j, &im);
    case CDCD_OP_UPDATE: return encode_update(j);
    case CDCD_OP_DELETE: return encode_delete(j);
    default: return encode_truncate(j);
    }
}

/* The key as it stands in the record, for a message. */
static struct cdcd_slice failed_key(struct dbz_job *j)
{
    const struct cdcd_event *ev = j->ev;
    const struct cdcd_cell *row = ev->after ? ev->after : ev->before;
    struct cdcd_slice key = none;
    if (j->t->document)
        return dbz_document_key(j);
    if (row && put_key(j, row, ev->before, &key) && key.ptr)
        return dbz_bare_key(j->t, key);
    return none;
}

/* What the error is about: table, column, key, position. */
static enum cdcd_rc describe_failure(struct dbz_job *j, struct cdcd_error *err)
{
    const struct cdcd_event *ev = j->ev;
    struct dbz *d = &j->e->d;
    char reason[sizeof(d->reason)], where[64] = "";
    snprintf(reason, sizeof(reason), "%s", d->reason);
    const char *column = d->bad ? d->bad->col->name : "";
    snprintf(where, sizeof(where), "%016llX-%c-%016llX", (unsigned long long)ev->pos.commit,
             ev->pos.stream ? '1' : '0', (unsigned long long)ev->pos.ordinal);
    if (!ev->schema || (!j->t->ncolumns && !j->t->document))
        return cdcd_error_set(err, CDCD_ERR_DATA, "logical message at position %s: %s", where,
                              reason);
    struct cdcd_slice key = failed_key(j);
    return cdcd_error_set(err, CDCD_ERR_DATA, "%s.%s%s%s (key %.*s, position %s): %s",
                          ev->schema->schema[0] ? ev->schema->schema : ev->schema->db,
                          ev->schema->table, *column ? ", column " : "", column,
                          key.ptr ? (int)(key.len < 300 ? key.len : 300) : 4,
                          key.ptr ? key.ptr : "null", where, reason);
}

/* The templates of the event. Records that belong to no table use those of messages. */
static enum cdcd_rc job_table(struct dbz_job *j, struct cdcd_error *err)
{
    const struct cdcd_event *ev = j->ev;
    switch (ev->op) {
    case CDCD_OP_CREATE:
    case CDCD_OP_READ:
    case CDCD_OP_UPDATE:
    case CDCD_OP_DELETE:
    case CDCD_OP_TRUNCATE:
        if (!ev->schema)
            return cdcd_error_set(err, CDCD_ERR_FATAL,
                                  "the source gave a row without a schema; this is a bug in the "
                                  "source plugin, please report it");
        if (ev->schema->document && dbz_check_document(ev, err) != CDCD_OK)
            return CDCD_ERROR;
        return dbz_table_get(j->e, ev->schema, &j->t, err);
    case CDCD_OP_MESSAGE:
        if (!ev->after)
            return cdcd_error_set(err, CDCD_ERR_FATAL,
                                  "the source gave a message without content; this is a bug in "
                                  "the source plugin, please report it");
        j->t = dbz_message_get(j->e, ev->schema ? ev->schema->db : NULL);
        return CDCD_OK;
    case CDCD_OP_DDL:
        if (!ev->ddl)
            return cdcd_error_set(err, CDCD_ERR_FATAL,
                                  "the source gave a schema change without its statement; this is "
                                  "a bug in the source plugin, please report it");
        j->t = dbz_ddl_get(j->e, ev->ddl->db);
        return CDCD_OK;
    default: j->t = dbz_message_get(j->e, NULL); return CDCD_OK;
    }
}

static enum cdcd_rc encode_event(struct dbz_job *j, struct cdcd_error *err)
{
    bool ok = false;
    if (job_table(j, err) != CDCD_OK)
        return CDCD_ERROR;
    j->e->d.bad = NULL;
    if (j->e->env.schemas && j->t->topic && j->t->session != j->e->session)
        dbz_announce(j);
    switch (j->ev->op) {
    case CDCD_OP_MESSAGE: ok = dbz_encode_message(j); break;
    case CDCD_OP_TX_BEGIN:
    case CDCD_OP_TX_END: ok = dbz_encode_transaction(j); break;
    case CDCD_OP_HEARTBEAT: ok = dbz_encode_heartbeat(j); break;
    case CDCD_OP_DDL: ok = dbz_encode_ddl(j); break;
    default: ok = j->t->document ? dbz_encode_document(j) : encode_data(j); break;
    }
    return ok ? CDCD_OK : describe_failure(j, err);
}

/* event.processing.failure.handling.mode. True: go on without the event. */
static bool forgive(struct cdcd_encoder *e, const struct cdcd_error *err)
{
    if (err->class != CDCD_ERR_DATA || e->d.cfg->failure_mode == CDCD_FAILURE_FAIL)
        return false;
    e->skipped++;
    if (e->d.cfg->failure_mode == CDCD_FAILURE_WARN)
        cdcd_warn("encode", "event left out: %s", err->text);
    else
        cdcd_debug("encode", "event left out: %s", err->text);
    return true;
}

enum cdcd_rc cdcd_encoder_encode(struct cdcd_encoder *e, struct cdcd_batch *b,
                                 struct cdcd_error *err)
{
    struct dbz_job j = {.e = e, .b = b};
    struct cdcd_error own;
    begin_batch(e, b);
    for (const struct cdcd_event *ev = b->events; ev; ev = ev->next) {
        if (ev->op <= CDCD_OP_MESSAGE && e->skip >> ev->op & 1)
            continue;
        j.ev = ev;
        if (encode_event(&j, &own) == CDCD_OK || forgive(e, &own))
            continue;
        return cdcd_error_set(err, own.class, "%s", own.text);
    }
    return CDCD_OK;
}
