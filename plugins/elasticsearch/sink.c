/*
 * The sink for OpenSearch and Elasticsearch: options, sessions, and the calls of the pipeline.
 * README.md tells how the parts play together. All calls come from the publish thread, but those
 * of check and rebuild.
 */
#include "sink.h"

#include <cdcd/version.h>

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>

#define FLUSH_MS          15000 /* a flush without any progress for so long fails */
#define COMPLAIN_MS       10000 /* silence of the server that is worth a line in the log */
#define COMPLAIN_AGAIN_MS 30000

static const char *const policy_names[] = {"stop", "dead-letter", "skip", NULL};
static const char *const version_names[] = {"auto", "position", "offset", NULL};
static const char *const truncate_names[] = {"empty", "stop", "ignore", NULL};
static const char *const missing_names[] = {"merge", "stop", "leave-out", NULL};
static const char *const json_names[] = {"text", "nested", NULL};
static const char *const dots_names[] = {"fail", "rename", NULL};
static const char *const record_names[] = {"envelope", "row", NULL};

#define FIELD(f) .offset = offsetof(struct es_config, f)

const struct cdcd_option es_options[] = {
    {.name = "url",
     .type = CDCD_OPT_LIST,
     FIELD(url),
     .flags = CDCD_OPT_REQUIRED | CDCD_OPT_SAMPLE,
     .sample = "[http://127.0.0.1:9200]",
     .doc = "One or more addresses of OpenSearch 1 to 3 or Elasticsearch 7 to 9, "
            "http(s)://HOST:PORT. Requests are shared among them; one that does not answer is left "
            "alone for a while."},
    {.name = "index",
     .type = CDCD_OPT_STR,
     FIELD(index),
     .default_ = "",
     .flags = CDCD_OPT_TEMPLATE | CDCD_OPT_SAMPLE,
     .sample = "${topic}",
     .doc = "Name of the index for a topic: text with ${topic}, ${prefix}, ${db}, ${schema} and "
            "${table}, in lower case, with _ for what an index may not bear. Default: ${topic}."},
    {.name = "index.routes",
     .type = CDCD_OPT_MAP,
     FIELD(routes),
     .flags = CDCD_OPT_TEMPLATE,
     .sample = "{\"shop[.]public[.]order.*\": orders}",
     .doc = "Anchored regular expression for the topic -> name as in index; the first that "
            "matches counts before index."},
    {.name = "index.manage",
     .type = CDCD_OPT_BOOL,
     FIELD(manage_index),
     .default_ = "true",
     .doc = "Make an index template and the index NAME-000001 behind the alias NAME from the "
            "table's columns, and add new columns to its mapping. false: whatever is there is "
            "used, and the server makes what is not."},
    {.name = "index.settings",
     .type = CDCD_OPT_MAP,
     FIELD(index_settings),
     .sample = "{number_of_shards: 3, number_of_replicas: 1}",
     .doc = "Settings of indexes that cdcd makes, by the server's names without \"index.\"."},
    {.name = "index.gc.deletes",
     .type = CDCD_OPT_STR,
     FIELD(gc_deletes),
     .default_ = "24h",
     .doc = "index.gc_deletes of indexes that cdcd makes: how long a deleted document's version "
            "is remembered, so that an older record that comes again cannot bring it back."},
    {.name = "username",
     .type = CDCD_OPT_STR,
     FIELD(username),
     .default_ = "",
     .doc = "For basic authentication; a login in the url counts before it.",
     .sample = "cdcd"},
    {.name = "password",
     .type = CDCD_OPT_STR,
     FIELD(password),
     .default_ = "",
     .flags = CDCD_OPT_SECRET,
     .sample = "${ES_PASSWORD}",
     .doc = "Of username."},
    {.name = "api.key",
     .type = CDCD_OPT_STR,
     FIELD(api_key),
     .default_ = "",
     .flags = CDCD_OPT_SECRET,
     .sample = "${ES_API_KEY}",
     .doc = "Encoded API key of Elasticsearch, instead of username and password."},
    {.name = "ssl.ca",
     .type = CDCD_OPT_STR,
     FIELD(ssl_ca),
     .default_ = "",
     .sample = "/etc/cdcd/ca.pem",
     .doc = "File with the certificates of authorities that the servers' are checked against. "
            "Default: those of the system."},
    {.name = "ssl.cert",
     .type = CDCD_OPT_STR,
     FIELD(ssl_cert),
     .default_ = "",
     .doc = "File with cdcd's own certificate, PEM."},
    {.name = "ssl.key",
     .type = CDCD_OPT_STR,
     FIELD(ssl_key),
     .default_ = "",
     .doc = "File with the key of ssl.cert, PEM."},
    {.name = "ssl.verify",
     .type = CDCD_OPT_BOOL,
     FIELD(ssl_verify),
     .default_ = "true",
     .doc = "Check the servers' certificates and names. false only for tests."},
    {.name = "gzip",
     .type = CDCD_OPT_BOOL,
     FIELD(gzip),
     .default_ = "false",
     .doc = "Compress requests and ask for compressed replies: for servers far away."},
    {.name = "bulk.max.bytes",
     .type = CDCD_OPT_SIZE,
     FIELD(bulk_bytes),
     .default_ = "2MB",
     .min = 1024,
     .max = INT64_C(512) << 20,
     .doc = "Largest body of a bulk request. It gets smaller by itself when the server says that "
            "requests are too large or too many. One document may be larger."},
    {.name = "bulk.max.requests",
     .type = CDCD_OPT_INT,
     FIELD(bulk_requests),
     .default_ = "2",
     .min = 1,
     .max = 64,
     .doc = "Bulk requests under way at a time. Changes of one document are always in order."},
    {.name = "bulk.max.delay.ms",
     .type = CDCD_OPT_DURATION,
     FIELD(bulk_delay_ms),
     .default_ = "200ms",
     .min = 0,
     .max = 60000,
     .doc = "While more changes are coming a request waits at most so long to get full. Without "
            "more it is sent at once."},
    {.name = "request.timeout.ms",
     .type = CDCD_OPT_DURATION,
     FIELD(request_timeout_ms),
     .default_ = "60s",
     .min = 100,
     .max = 3600000,
     .doc = "A request without an answer for so long is sent again."},
    {.name = "retry.delay.ms",
     .type = CDCD_OPT_DURATION,
     FIELD(retry_ms),
     .default_ = "100ms",
     .min = 1,
     .max = 60000,
     .doc = "First pause before what the server had no room or no time for is sent again; it "
            "doubles up to 5 s."},
    {.name = "errors.policy",
     .type = CDCD_OPT_ENUM,
     FIELD(policy),
     .default_ = "stop",
     .values = policy_names,
     .doc = "What to do with a document that the index refuses (a field of another type, too many "
            "fields, too large) and with a record that is no change. stop: stop before it. "
            "dead-letter: write the record and the reason to dead.letter.index. skip: leave it "
            "out, with a count."},
    {.name = "dead.letter.index",
     .type = CDCD_OPT_STR,
     FIELD(dead_letter_index),
     .default_ = "cdcd-dead-letter",
     .doc = "Index for errors.policy dead-letter; made when it is not there."},
    {.name = "version",
     .type = CDCD_OPT_ENUM,
     FIELD(version_mode),
     .default_ = "auto",
     .values = version_names,
     .doc = "Where the version of a document comes from, by which the index refuses what is older. "
            "position: from the record's position in the database's log (header cdcd.pos). offset: "
            "from its offset in Kafka. auto: offset when the source is Kafka, else position. All "
            "that write one index must use the same."},
    {.name = "truncate",
     .type = CDCD_OPT_ENUM,
     FIELD(truncate_mode),
     .default_ = "empty",
     .values = truncate_names,
     .doc = "What a TRUNCATE of the table does (skipped.operations must not hold t). empty: all "
            "older documents are deleted. stop: an error. ignore: nothing, with a count."},
    {.name = "missing.columns",
     .type = CDCD_OPT_ENUM,
     FIELD(missing_mode),
     .default_ = "merge",
     .values = missing_names,
     .doc = "What becomes of a column that the log does not carry as it did not change (TOAST of "
            "PostgreSQL). merge: its value is taken from the document as it is. stop: an error. "
            "leave-out: the document is written without it."},
    {.name = "json",
     .type = CDCD_OPT_ENUM,
     FIELD(json_mode),
     .default_ = "text",
     .values = json_names,
     .doc = "Columns of JSON. text: as one string, which fits every value. nested: as objects, "
            "whose fields get mappings; values of other types than the first are refused."},
    {.name = "field.dots",
     .type = CDCD_OPT_ENUM,
     FIELD(dots_mode),
     .default_ = "fail",
     .values = dots_names,
     .doc = "Names with dots in documents of MongoDB, which an index takes for objects in objects. "
            "fail: an error, see errors.policy. rename: _ for the dot."},
    {.name = "record",
     .type = CDCD_OPT_ENUM,
     FIELD(record_form),
     .default_ = "envelope",
     .values = record_names,
     .doc = "What the values of a Kafka source's records are. envelope: Debezium's, with before, "
            "after and op. row: the row itself, a null value deletes."},
    {.name = "state.index",
     .type = CDCD_OPT_STR,
     FIELD(state_index),
     .default_ = "cdcd-state",
     .doc = "Index in which the positions of pipelines are kept (not of those from Kafka, which "
            "keeps them itself) and what replays have to remember. Made when it is not there."},
    {0},
};

/* ---- open and close ---- */

static bool es_wants_schemas(const void *config)
{
    (void)config;
    return true;
}

static void es_close(struct cdcd_sink *s)
{
    if (!s)
        return;
    if (s->lanes)
        es_bulk_reset(s);
    const struct es_counters *c = &s->counters;
    cdcd_debug(
        "elasticsearch",
        "%llu documents, %llu deleted, %llu requests, %llu bytes, %llu older than the index, "
        "%llu deleted before, %llu sent again, %llu refused, %llu dead-lettered, %llu left "
        "out, %llu not sent as newer ones followed, %llu truncates, %llu times too large, "
        "%llu times too much",
        (unsigned long long)c->documents, (unsigned long long)c->deletes,
        (unsigned long long)c->requests, (unsigned long long)c->bytes,
        (unsigned long long)c->conflicts, (unsigned long long)c->missing,
        (unsigned long long)c->retried, (unsigned long long)c->refused,
        (unsigned long long)c->dead_lettered, (unsigned long long)c->skipped,
        (unsigned long long)c->superseded, (unsigned long long)c->truncates,
        (unsigned long long)c->too_large, (unsigned long long)c->throttled);
    if (c->skipped || c->dead_lettered)
        cdcd_warn("elasticsearch", "%llu documents were left out, %llu went to %s",
                  (unsigned long long)c->skipped, (unsigned long long)c->dead_lettered,
                  s->config->dead_letter_index);
    es_rebuild_free(s->rebuild);
    es_indexes_free(s->indexes);
    es_converter_free(s->converter);
    es_state_free(s->state);
    es_bulk_free(s);
    es_http_free(s->http);
    free(s);
}

static enum cdcd_rc es_open(struct cdcd_sink **out, const void *config,
                            const struct cdcd_sink_env *env, struct cdcd_error *err)
{
    *out = NULL;
    struct cdcd_sink *s = cdcd_xcalloc(1, sizeof *s);
    s->config = config;
    s->env = env;
    s->broken = true;
    if (es_http_new(s->config, env, &s->http, err) != CDCD_OK ||
        es_converter_new(s->config, env, &s->converter, err) != CDCD_OK) {
        es_close(s);
        return CDCD_ERROR;
    }
    s->state = es_state_new(env);
    es_bulk_init(s);
    *out = s;
    return CDCD_OK;
}

/* ---- sessions ---- */

static enum cdcd_rc es_load(struct cdcd_sink *s, struct cdcd_buf *state, struct cdcd_notes *notes,
                            struct cdcd_error *err)
{
    cdcd_buf_clear(state);
    es_bulk_reset(s);
    s->broken = true;
    s->blocked = false;
    s->complaint[0] = 0;
    s->next_store = 0;
    s->last_progress = cdcd_now_ms();
    struct es_server before = s->server;
    if (es_server_info(s->http, &s->server, err) != CDCD_OK)
        return CDCD_ERROR;
    if (before.version != s->server.version)
        cdcd_info("elasticsearch", "%s %s, cluster %s",
                  s->server.opensearch ? "OpenSearch" : "Elasticsearch", s->server.text,
                  s->server.cluster);
    es_indexes_forget(s);
    s->dead_letter_ready = false;
    if (!s->env->stateless && es_state_load(s, state, notes, err) != CDCD_OK)
        return CDCD_ERROR;
    if (s->env->replay && es_rebuild_load(s, err) != CDCD_OK)
        return CDCD_ERROR;
    s->broken = false;
    return CDCD_OK;
}

static enum cdcd_rc done(struct cdcd_sink *s, enum cdcd_rc rc)
{
    if (rc == CDCD_ERROR)
        s->broken = true;
    return rc;
}

static enum cdcd_rc not_begun(struct cdcd_error *err)
{
    return cdcd_error_set(err, CDCD_ERR_RETRY, "the search sink has failed and was not begun anew");
}

static enum cdcd_rc es_write(struct cdcd_sink *s, struct cdcd_batch *b, struct cdcd_error *err)
{
    if (s->broken) {
        s->env->batch_done(s->env->ctx, b);
        return not_begun(err);
    }
    assert(b->state.ptr || !b->notes);
    if (!s->first)
        s->last_progress = cdcd_now_ms();
    es_bulk_add(s, b);
    return done(s, es_bulk_pump(s, false, err));
}

/* ---- poll ---- */

static bool idle(const struct cdcd_sink *s)
{
    return !s->first && !es_state_dirty(s) && s->durable == s->taken;
}

/* An outage is told once in a while, not at each attempt. */
static void complain(struct cdcd_sink *s)
{
    int64_t now = cdcd_now_ms();
    if (idle(s) || now - s->last_progress < COMPLAIN_MS || now < s->next_complaint)
        return;
    s->next_complaint = now + COMPLAIN_AGAIN_MS;
    char text[640];
    snprintf(text, sizeof text, "nothing could be written for %lld s (%zu documents wait)%s%s",
             (long long)(now - s->last_progress) / 1000, s->open + (s->held != NULL),
             *s->complaint ? ": " : "", s->complaint);
    cdcd_warn("elasticsearch", "%s", text);
    if (s->env->waits)
        s->env->waits(s->env->ctx, text);
}

static enum cdcd_rc poll_once(struct cdcd_sink *s, int wait_ms, bool more, struct cdcd_error *err)
{
    if (es_bulk_serve(s, 0, err) != CDCD_OK || es_bulk_pump(s, !more, err) != CDCD_OK ||
        es_state_store(s, more, err) != CDCD_OK)
        return CDCD_ERROR;
    complain(s);
    if (wait_ms <= 0 || idle(s))
        return CDCD_OK;
    if (es_bulk_serve(s, wait_ms, err) != CDCD_OK || es_bulk_pump(s, !more, err) != CDCD_OK)
        return CDCD_ERROR;
    return es_state_store(s, more, err);
}

static enum cdcd_rc flush_all(struct cdcd_sink *s, struct cdcd_error *err)
{
    while (!idle(s)) {
        if (poll_once(s, 20, false, err) != CDCD_OK)
            return CDCD_ERROR;
        if (!idle(s) && cdcd_now_ms() - s->last_progress > FLUSH_MS)
            return cdcd_error_set(err, CDCD_ERR_RETRY, "nothing could be written for %d s%s%s",
                                  FLUSH_MS / 1000, *s->complaint ? ": " : "", s->complaint);
    }
    return CDCD_OK;
}

static enum cdcd_rc es_poll(struct cdcd_sink *s, int timeout_ms, bool more, bool flush,
                            struct cdcd_error *err)
{
    if (s->broken)
        return not_begun(err);
    return done(s, flush ? flush_all(s, err) : poll_once(s, timeout_ms, more, err));
}

static const struct cdcd_sink_ops es_sink = {
    .options = es_options,
    .config_size = sizeof(struct es_config),
    .open = es_open,
    .close = es_close,
    .check = es_check,
    .load = es_load,
    .write = es_write,
    .poll = es_poll,
    .idempotent = true,
    .wants_schemas = es_wants_schemas,
    .rebuild = es_rebuild,
};

extern const struct cdcd_plugin CDCD_PLUGIN_SYMBOL(elasticsearch);
CDCD_EXPORT const struct cdcd_plugin CDCD_PLUGIN_SYMBOL(elasticsearch) = {
    .abi = CDCD_PLUGIN_ABI,
    .size = sizeof(struct cdcd_plugin),
    .name = "elasticsearch",
    .version = CDCD_VERSION,
    .doc = "Indexes of OpenSearch and Elasticsearch, one document a row.",
    .sink = &es_sink,
};
