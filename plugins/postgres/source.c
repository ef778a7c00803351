/*
 * source.c: options and the ops table of the PostgreSQL source. The work is done in stream.c
 * and snapshot.c; this file connects, and takes everything down again.
 */
#include "pg.h"
#include "publication.h"

#include <cdcd/version.h>

#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define OPT(name, type, field, def) name, CDCD_OPT_##type, offsetof(struct pg_config, field), def

static const char *const autocreate_values[] = {"all_tables", "filtered", "disabled", NULL};
static const char *const streaming_values[] = {"off", "on", "parallel", NULL};
static const char *const origin_values[] = {"any", "none", NULL};

const struct cdcd_option pg_options[] = {
    {OPT("url", STR, url, NULL), 0, 0, NULL, CDCD_OPT_REQUIRED | CDCD_OPT_SECRET | CDCD_OPT_SAMPLE,
     "Where the database is: a libpq URI or key=value string. The user needs LOGIN, REPLICATION "
     "and SELECT on the captured tables.",
     "postgresql://cdcd:${PGPASSWORD}@127.0.0.1:5432/shop"},
    {OPT("slot.name", STR, slot_name, NULL), 0, 0, NULL, CDCD_OPT_SAMPLE,
     "The logical replication slot; created when it is not there. Default: cdcd_ and the "
     "pipeline's name.",
     "cdcd_shop"},
    {OPT("slot.failover", BOOL, slot_failover, "false"), 0, 0, NULL, 0,
     "Create the slot with failover, so that standbys keep a copy of it (PostgreSQL 17 or later).",
     NULL},
    {OPT("slot.drop.on.stop", BOOL, slot_drop_on_stop, "false"), 0, 0, NULL, 0,
     "Drop the slot at an orderly stop. Changes made until the next start are then lost: for "
     "tests and trials only.",
     NULL},
    {OPT("publication.name", STR, publication_name, NULL), 0, 0, NULL, CDCD_OPT_SAMPLE,
     "The publication; created when it is not there, see publication.autocreate.mode. Default: "
     "the slot's name.",
     "cdcd_shop"},
    {OPT("publication.autocreate.mode", ENUM, publication_autocreate, "filtered"), 0, 0,
     autocreate_values, CDCD_OPT_SAMPLE,
     "What a created publication holds: all tables, the tables that pass the filters, or nothing "
     "is ever created (disabled).",
     NULL},
    {OPT("publish.via.partition.root", BOOL, publish_via_root, "false"), 0, 0, NULL, 0,
     "Publish changes of partitions under the name of the partitioned table.", NULL},
    {OPT("table.include.list", LIST, table_include, NULL), 0, 0, NULL,
     CDCD_OPT_REGEX | CDCD_OPT_SAMPLE,
     "Capture only these tables: anchored regular expressions for SCHEMA.TABLE.",
     "[public.orders, \"public.cust.*\"]"},
    {OPT("table.exclude.list", LIST, table_exclude, NULL), 0, 0, NULL, CDCD_OPT_REGEX,
     "Capture all tables but these: anchored regular expressions for SCHEMA.TABLE.",
     "[public.audit]"},
    {OPT("schema.include.list", LIST, schema_include, NULL), 0, 0, NULL, CDCD_OPT_REGEX,
     "Capture only tables of these schemas: anchored regular expressions.", "[public]"},
    {OPT("schema.exclude.list", LIST, schema_exclude, NULL), 0, 0, NULL, CDCD_OPT_REGEX,
     "Capture all schemas but these: anchored regular expressions.", "[scratch]"},
    {OPT("column.include.list", LIST, column_include, NULL), 0, 0, NULL, CDCD_OPT_REGEX,
     "Capture only these columns: anchored regular expressions for SCHEMA.TABLE.COLUMN. Key "
     "columns are always captured.",
     "[\"public.orders.(id|total)\"]"},
    {OPT("column.exclude.list", LIST, column_exclude, NULL), 0, 0, NULL, CDCD_OPT_REGEX,
     "Capture all columns but these: anchored regular expressions for SCHEMA.TABLE.COLUMN.",
     "[public.customers.password]"},
    {OPT("message.prefix.include.list", LIST, message_include, NULL), 0, 0, NULL, CDCD_OPT_REGEX,
     "Pass on only logical messages (pg_logical_emit_message) with these prefixes: anchored "
     "regular expressions.",
     "[outbox]"},
    {OPT("message.prefix.exclude.list", LIST, message_exclude, NULL), 0, 0, NULL, CDCD_OPT_REGEX,
     "Pass on all logical messages but those with these prefixes.", "[debug]"},
    {OPT("streaming", ENUM, streaming, "parallel"), 0, 0, streaming_values, 0,
     "Let the server send large transactions before they commit; they wait in spill.dir. Lowered "
     "to what the server has (parallel: PostgreSQL 16).",
     NULL},
    {OPT("origin", ENUM, origin, "any"), 0, 0, origin_values, 0,
     "none: leave out changes that came to the server by replication (PostgreSQL 16 or later).",
     NULL},
    {OPT("spill.dir", STR, spill_dir, NULL), 0, 0, NULL, 0,
     "Folder for transactions that are not committed yet. Default: the state folder.",
     "/var/lib/cdcd/spill"},
    {OPT("spill.max.bytes", SIZE, spill_max_bytes, "20GB"), 1 << 20, 0, NULL, 0,
     "The most that spill.dir may hold; a larger transaction stops the pipeline.", NULL},
    {OPT("snapshot.chunk.size", SIZE, snapshot_chunk_bytes, "64MB"), 8 << 10, 0, NULL, 0,
     "A snapshot reads tables in ranges of about this size on disk; each is a unit of parallel "
     "work.",
     NULL},
    {OPT("status.update.interval.ms", DURATION, status_interval_ms, "10s"), 100, 0, NULL, 0,
     "How often the server is told what is durable; never less often than a third of its "
     "wal_sender_timeout.",
     NULL},
    {OPT("connect.timeout.ms", DURATION, connect_timeout_ms, "10s"), 100, 0, NULL, 0,
     "The longest that one attempt to connect may take.", NULL},
    {OPT("snapshot.lock.timeout.ms", DURATION, lock_timeout_ms, "10s"), 0, 0, NULL, 0,
     "The longest to wait for a table's lock (ACCESS SHARE) in a snapshot.", NULL},
    {NULL, 0, 0, NULL, 0, 0, NULL, 0, NULL, NULL},
};

/* ---- what depends on the pipeline ---- */

/* A slot's name has lower-case letters, digits and underscores, at most 63. */
static char *slot_name_of(const char *pipeline)
{
    char *name = cdcd_xasprintf("cdcd_%.58s", pipeline);
    for (char *p = name; *p; p++) {
        int c = tolower((unsigned char)*p);
        *p = (char)((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') ? c : '_');
    }
    return name;
}

static bool slot_name_valid(const char *s)
{
    size_t n = strlen(s);
    return n > 0 && n < 64 && strspn(s, "abcdefghijklmnopqrstuvwxyz0123456789_") == n;
}

enum cdcd_rc pg_config_resolve(const void *config, const struct cdcd_source_env *env,
                               struct pg_config **out, struct cdcd_error *err)
{
    const struct pg_config *given = config;
    *out = NULL;
    if (given->slot_name && *given->slot_name && !slot_name_valid(given->slot_name))
        return cdcd_error_set(err, CDCD_ERR_CONFIG,
                              "slot.name \"%s\" is not a slot's name: use lower-case letters, "
                              "digits and underscores, at most 63",
                              given->slot_name);
    if (given->publication_name && strlen(given->publication_name) > 63)
        return cdcd_error_set(err, CDCD_ERR_CONFIG,
                              "publication.name is longer than the 63 bytes of an identifier");
    struct pg_config *c = cdcd_xmalloc(sizeof *c);
    *c = *given;
    c->pipeline = env->pipeline ? env->pipeline : "";
    /* A tail must not touch the slot of the pipeline whose config it was given. */
    c->slot_name = given->slot_name && *given->slot_name && !env->ephemeral
                       ? cdcd_xstrdup(given->slot_name)
                       : slot_name_of(c->pipeline);
    c->publication_name = cdcd_xstrdup(given->publication_name && *given->publication_name
                                           ? given->publication_name
                                           : c->slot_name);
    const char *state = env->state_dir && *env->state_dir ? env->state_dir : "/tmp";
    c->spill_dir = cdcd_xstrdup(given->spill_dir && *given->spill_dir ? given->spill_dir : state);
    *out = c;
    return CDCD_OK;
}

void pg_config_free(struct pg_config *resolved)
{
    if (!resolved)
        return;
    free(resolved->slot_name);
    free(resolved->publication_name);
    free(resolved->spill_dir);
    free(resolved);
}

/* ---- open and close ---- */

static bool stopping(const struct cdcd_source *s)
{
    return s->env->stopping && s->env->stopping(s->env->ctx);
}

/* The walsender lets go of the slot a moment after its connection is closed. */
static void drop_slot(struct cdcd_source *s)
{
    const struct timespec nap = {0, 100 * 1000 * 1000};
    struct cdcd_error err = {0};
    char *sql = pg_sql("SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots "
                       "WHERE slot_name = %L",
                       s->cfg->slot_name);
    enum cdcd_rc rc = CDCD_ERROR;
    for (int i = 0; i < 50 && rc != CDCD_OK; i++) {
        if (i)
            nanosleep(&nap, NULL);
        rc = pg_query(s->sql, NULL, &err, sql, 0, NULL);
    }
    if (rc == CDCD_OK)
        cdcd_info("postgres", "dropped replication slot \"%s\" (slot.drop.on.stop)",
                  s->cfg->slot_name);
    else
        cdcd_warn("postgres", "slot.drop.on.stop: %s", err.text);
    free(sql);
}

static void source_close(struct cdcd_source *s)
{
    if (!s)
        return;
    bool drop = s->cfg && s->cfg->slot_drop_on_stop && s->sql && stopping(s);
    if (s->snapshot)
        pg_snapshot_end(s);
    pg_stream_free(s->stream);
    s->stream = NULL;
    PQfinish(s->repl);
    s->repl = NULL;
    if (s->own_publication)
        pg_publication_drop_own(s->sql, s->cfg->publication_name);
    if (drop)
        drop_slot(s);
    PQfinish(s->sql);
    pg_types_free(s->types);
    pg_filter_free(s->filter);
    pg_server_free(&s->server);
    pg_config_free((struct pg_config *)s->cfg);
    free(s);
}

static enum cdcd_rc source_open(struct cdcd_source **out, const void *config,
                                const struct cdcd_source_env *env, struct cdcd_error *err)
{
    struct pg_config *cfg;
    *out = NULL;
    if (pg_config_resolve(config, env, &cfg, err) != CDCD_OK)
        return CDCD_ERROR;
    struct cdcd_source *s = cdcd_xcalloc(1, sizeof *s);
    s->cfg = cfg;
    s->env = env;
    enum cdcd_rc rc = pg_filter_new(cfg, &s->filter, err);
    if (rc == CDCD_OK)
        rc = pg_connect(cfg, false, &s->sql, err);
    if (rc == CDCD_OK)
        rc = pg_server_info(s->sql, NULL, &s->server, err);
    if (rc == CDCD_OK) {
        s->types = pg_types_new();
        rc = pg_types_load(s->types, s->sql, err);
    }
    if (rc != CDCD_OK) {
        source_close(s);
        return rc;
    }
    *out = s;
    return CDCD_OK;
}

static enum cdcd_rc source_idle(struct cdcd_source *s, int64_t now, struct cdcd_error *err)
{
    enum cdcd_rc rc = CDCD_OK;
    if (s->stream)
        rc = pg_stream_idle(s, now, err);
    if (rc != CDCD_ERROR && s->snapshot)
        rc = pg_snapshot_idle(s, now, err);
    return rc;
}

static void source_describe(struct cdcd_slice position, struct cdcd_buf *out)
{
    struct pg_position p;
    if (!pg_position_parse(position, &p)) {
        cdcd_buf_add(out, position.ptr, position.len);
        return;
    }
    cdcd_buf_addf(out, "LSN " PG_LSN_FMT, PG_LSN_ARGS(p.done));
    if (p.tx)
        cdcd_buf_addf(out,
                      " (%" PRIu64 " changes into the transaction that commits at " PG_LSN_FMT ")",
                      p.ord, PG_LSN_ARGS(p.tx));
    if (p.lsn < p.done)
        cdcd_buf_addf(out, " (prepared transactions held from " PG_LSN_FMT ")", PG_LSN_ARGS(p.lsn));
}

#define COLUMN(n, t, opt)                                                           \
    {                                                                               \
        .name = n, .name_len = sizeof(n) - 1, .type = t, .length = -1, .scale = -1, \
        .optional = opt                                                             \
    }

static const struct cdcd_column source_columns[PG_SRC_COUNT] = {
    [PG_SRC_SCHEMA] = COLUMN("schema", CDCD_T_STRING, false),
    [PG_SRC_TABLE] = COLUMN("table", CDCD_T_STRING, false),
    [PG_SRC_TXID] = COLUMN("txId", CDCD_T_INT64, true),
    [PG_SRC_LSN] = COLUMN("lsn", CDCD_T_INT64, true),
    [PG_SRC_XMIN] = COLUMN("xmin", CDCD_T_INT64, true),
    [PG_SRC_ORIGIN] = COLUMN("origin", CDCD_T_STRING, true),
    [PG_SRC_ORIGIN_LSN] = COLUMN("origin_lsn", CDCD_T_INT64, true),
};

/* Records of the WAL begin at multiples of 8 (access/xlogrecord.h, MAXALIGN): 46 bits are 562 TB of
 * it. */
static uint64_t source_version(struct cdcd_pos pos)
{
    return cdcd_pos_version(pos.commit >> 3, 46, pos);
}

static const struct cdcd_source_ops source_ops = {
    .connector = "postgresql",
    .follows_new_keys = true,
    .options = pg_options,
    .config_size = sizeof(struct pg_config),
    .source_columns = source_columns,
    .nsource_columns = PG_SRC_COUNT,
    .source_schema_name = "io.debezium.connector.postgresql.Source",
    .open = source_open,
    .close = source_close,
    .check = pg_check,
    .drop = pg_drop,
    .resume = pg_stream_resume,
    .start = pg_stream_start,
    .read = pg_stream_read,
    .stop_at = pg_stream_stop_at,
    .ack = pg_stream_ack,
    .idle = source_idle,
    .lag = pg_stream_lag,
    .snapshot_begin = pg_snapshot_begin,
    .snapshot_tables = pg_snapshot_tables,
    .snapshot_plan = pg_snapshot_plan,
    .snapshot_end = pg_snapshot_end,
    .worker_open = pg_worker_open,
    .worker_close = pg_worker_close,
    .worker_begin = pg_worker_begin,
    .worker_read = pg_worker_read,
    .describe = source_describe,
    .version = source_version,
};

CDCD_EXPORT const struct cdcd_plugin CDCD_PLUGIN_SYMBOL(postgres) = {
    .abi = CDCD_PLUGIN_ABI,
    .size = sizeof(struct cdcd_plugin),
    .name = "postgres",
    .version = CDCD_VERSION,
    .doc = "PostgreSQL 14 to 18 by logical replication (pgoutput)",
    .source = &source_ops,
};
