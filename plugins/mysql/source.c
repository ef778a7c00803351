/*
 * source.c: options and the ops table of the MySQL and MariaDB source. The work is done in stream.c
 * and snapshot.c; this file connects, and takes everything down again.
 */
#include "snapshot.h"
#include "stream.h"
#include "table.h"

#include <cdcd/version.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/random.h>

#define OPT(name, type, field, def) name, CDCD_OPT_##type, offsetof(struct my_config, field), def

static const char *const lock_values[] = {"auto", "none", "minimal", NULL};
static const char *const statement_values[] = {"fail", "warn", NULL};
static const char *const image_values[] = {"fail", "placeholder", NULL};
static const char *const ssl_values[] = {"disabled",  "preferred",       "required",
                                         "verify_ca", "verify_identity", NULL};

const struct cdcd_option my_options[] = {
    {OPT("url", STR, url, NULL), 0, 0, NULL, CDCD_OPT_REQUIRED | CDCD_OPT_SECRET | CDCD_OPT_SAMPLE,
     "Where the server is: mysql://USER:PASSWORD@HOST:PORT/, or mariadb:// with the same meaning; "
     "reserved characters of the password as %XX; ?socket=PATH for a local socket. The user needs "
     "REPLICATION SLAVE, REPLICATION CLIENT (MariaDB: BINLOG MONITOR) and SELECT on the captured "
     "tables, on MySQL also RELOAD or FLUSH_TABLES for the snapshot.",
     "mysql://cdcd:${MYSQLPASSWORD}@127.0.0.1:3306/"},
    {OPT("server.id", INT, server_id, "0"), 0, UINT32_MAX, NULL, 0,
     "The number under which the log is read; unique among the server's replicas. 0: one that is "
     "made from the pipeline's name.",
     "184054"},
    {OPT("database.include.list", LIST, database_include, NULL), 0, 0, NULL,
     CDCD_OPT_REGEX | CDCD_OPT_SAMPLE,
     "Capture only tables of these databases: anchored regular expressions. Default: all but the "
     "server's own.",
     "[shop]"},
    {OPT("database.exclude.list", LIST, database_exclude, NULL), 0, 0, NULL, CDCD_OPT_REGEX,
     "Capture all databases but these: anchored regular expressions.", "[scratch]"},
    {OPT("table.include.list", LIST, table_include, NULL), 0, 0, NULL,
     CDCD_OPT_REGEX | CDCD_OPT_SAMPLE,
     "Capture only these tables: anchored regular expressions for DATABASE.TABLE.",
     "[shop.orders, \"shop.cust.*\"]"},
    {OPT("table.exclude.list", LIST, table_exclude, NULL), 0, 0, NULL, CDCD_OPT_REGEX,
     "Capture all tables but these: anchored regular expressions for DATABASE.TABLE.",
     "[shop.audit]"},
    {OPT("column.include.list", LIST, column_include, NULL), 0, 0, NULL, CDCD_OPT_REGEX,
     "Capture only these columns: anchored regular expressions for DATABASE.TABLE.COLUMN. Key "
     "columns are always captured.",
     "[\"shop.orders.(id|total)\"]"},
    {OPT("column.exclude.list", LIST, column_exclude, NULL), 0, 0, NULL, CDCD_OPT_REGEX,
     "Capture all columns but these: anchored regular expressions for DATABASE.TABLE.COLUMN.",
     "[shop.customers.password]"},
    {OPT("include.query", BOOL, include_query, "false"), 0, 0, NULL, 0,
     "Fill source.query with the statement that made a change, where the server logs it "
     "(binlog_rows_query_log_events, MariaDB binlog_annotate_row_events).",
     NULL},
    {OPT("statement.handling.mode", ENUM, statement_mode, "fail"), 0, 0, statement_values, 0,
     "What to do when the log has a statement instead of rows that changes a captured table "
     "(binlog_format STATEMENT or MIXED): fail stops the pipeline, warn goes on without those "
     "changes.",
     NULL},
    {OPT("row.image.handling.mode", ENUM, row_image_mode, "fail"), 0, 0, image_values, 0,
     "What to do with rows that lack columns (binlog_row_image MINIMAL or NOBLOB): fail stops the "
     "pipeline, placeholder writes unavailable.value.placeholder for them.",
     NULL},
    {OPT("snapshot.locking.mode", ENUM, lock_mode, "auto"), 0, 0, lock_values, 0,
     "How a snapshot fixes its place in the log: auto without a lock where server and privileges "
     "allow it, else with a read lock of milliseconds; minimal always with that lock; none never.",
     NULL},
    {OPT("snapshot.lock.timeout.ms", DURATION, lock_timeout_ms, "10s"), 0, 0, NULL, 0,
     "The longest to wait for a lock in a snapshot.", NULL},
    {OPT("snapshot.chunk.rows", INT, snapshot_chunk_rows, "100000"), 1, 0, NULL, 0,
     "A snapshot reads tables in ranges of about this many rows of the key; each is a unit of "
     "parallel work.",
     NULL},
    {OPT("spill.dir", STR, spill_dir, NULL), 0, 0, NULL, 0,
     "Folder for transactions whose end has not been read yet. Default: the state folder.",
     "/var/lib/cdcd/spill"},
    {OPT("spill.max.bytes", SIZE, spill_max_bytes, "20GB"), 1 << 20, 0, NULL, 0,
     "The most that spill.dir may hold; a larger transaction stops the pipeline.", NULL},
    {OPT("connect.timeout.ms", DURATION, connect_timeout_ms, "10s"), 1000, 0, NULL, 0,
     "The longest that one attempt to connect may take; rounded up to seconds.", NULL},
    {OPT("binlog.heartbeat.interval.ms", DURATION, heartbeat_ms, "5s"), 500, 4000000000, NULL, 0,
     "How often the server shows life while the log does not grow. A connection on which nothing "
     "comes for three times as long and 30 seconds is given up.",
     NULL},
    {OPT("ssl.mode", ENUM, ssl_mode, "preferred"), 0, 0, ssl_values, 0,
     "TLS: disabled; preferred if the server has it; required; verify_ca checks the server's "
     "certificate; verify_identity its host name, too. ssl-mode in url goes first.",
     NULL},
    {OPT("ssl.ca", STR, ssl_ca, NULL), 0, 0, NULL, 0,
     "File with the certificates of the authorities that are trusted.", "/etc/cdcd/ca.pem"},
    {OPT("ssl.cert", STR, ssl_cert, NULL), 0, 0, NULL, 0, "File with our own certificate.",
     "/etc/cdcd/client.pem"},
    {OPT("ssl.key", STR, ssl_key, NULL), 0, 0, NULL, 0, "File with its private key.",
     "/etc/cdcd/client-key.pem"},
    {NULL, 0, 0, NULL, 0, 0, NULL, 0, NULL, NULL},
};

/* ---- what depends on the pipeline ---- */

/* Between 2^30 and 2^31 - 1, where nobody numbers servers by hand: the same for the same name. */
static uint32_t server_id_of(const char *pipeline)
{
    uint32_t h = 2166136261u; /* FNV-1a */
    for (const char *p = pipeline; *p; p++)
        h = (h ^ (uint8_t)*p) * 16777619u;
    return (h & 0x3fffffff) | 0x40000000;
}

/* From 2^31 on. A tail must not end the dump of the pipeline whose config it was given. */
static uint32_t random_server_id(void)
{
    uint32_t n;
    if (getrandom(&n, sizeof n, 0) != (ssize_t)sizeof n)
        n = (uint32_t)cdcd_wallclock_us();
    return (n & 0x7ffffffe) | 0x80000000;
}

enum cdcd_rc my_config_resolve(const void *config, const struct cdcd_source_env *env,
                               struct my_config **out, struct cdcd_error *err)
{
    const struct my_config *given = config;
    *out = NULL;
    if ((given->ssl_cert && *given->ssl_cert) != (given->ssl_key && *given->ssl_key))
        return cdcd_error_set(err, CDCD_ERR_CONFIG,
                              "ssl.cert and ssl.key belong together: give both or none");
    struct my_config *c = cdcd_xmalloc(sizeof *c);
    *c = *given;
    c->pipeline = env->pipeline ? env->pipeline : "";
    if (env->ephemeral)
        c->server_id = random_server_id();
    else if (!given->server_id)
        c->server_id = server_id_of(c->pipeline);
    const char *state = env->state_dir && *env->state_dir ? env->state_dir : "/tmp";
    c->spill_dir = cdcd_xstrdup(given->spill_dir && *given->spill_dir ? given->spill_dir : state);
    *out = c;
    return CDCD_OK;
}

void my_config_free(struct my_config *resolved)
{
    if (!resolved)
        return;
    free(resolved->spill_dir);
    free(resolved);
}

/* ---- open and close ---- */

enum cdcd_rc my_source_sql(struct cdcd_source *s, MYSQL **out, struct cdcd_error *err)
{
    *out = NULL;
    if (s->sql && mysql_ping(s->sql) != 0) {
        mysql_close(s->sql);
        s->sql = NULL;
    }
    if (!s->sql && my_connect(s->cfg, &s->sql, err) != CDCD_OK)
        return CDCD_ERROR;
    *out = s->sql;
    return CDCD_OK;
}

static void source_close(struct cdcd_source *s)
{
    if (!s)
        return;
    if (s->snapshot)
        my_snapshot_end(s);
    my_stream_free(s->stream);
    my_shapes_free(s->shapes);
    my_filter_free(s->filter);
    if (s->sql)
        mysql_close(s->sql);
    my_position_free(&s->view);
    my_config_free((struct my_config *)s->cfg);
    free(s);
}

static enum cdcd_rc open_server(struct cdcd_source *s, struct cdcd_error *err)
{
    enum cdcd_rc rc = my_connect(s->cfg, &s->sql, err);
    if (rc == CDCD_OK)
        rc = my_server_info(s->sql, &s->server, err);
    if (rc == CDCD_OK)
        rc = my_check_server(s->sql, &s->server, err);
    if (rc != CDCD_OK)
        return rc;
    my_filter_fold(s->filter, s->server.lower_case_table_names != 0);
    rc = my_server_sees(s->sql, &s->server, s->filter, err);
    if (rc != CDCD_OK)
        return rc;
    s->shapes = my_shapes_new(&s->server, s->filter);
    if (s->env->notes)
        rc = my_shapes_load(s->shapes, s->env->notes, err);
    return rc;
}

static enum cdcd_rc source_open(struct cdcd_source **out, const void *config,
                                const struct cdcd_source_env *env, struct cdcd_error *err)
{
    struct my_config *cfg;
    *out = NULL;
    if (my_config_resolve(config, env, &cfg, err) != CDCD_OK)
        return CDCD_ERROR;
    struct cdcd_source *s = cdcd_xcalloc(1, sizeof *s);
    s->cfg = cfg;
    s->env = env;
    enum cdcd_rc rc = my_filter_new(cfg, &s->filter, err);
    if (rc == CDCD_OK)
        rc = open_server(s, err);
    if (rc != CDCD_OK) {
        source_close(s);
        return rc;
    }
    cdcd_debug("mysql", "%s, server_id %u, read as server.id %" PRId64, s->server.text,
               s->server.server_id, cfg->server_id);
    *out = s;
    return CDCD_OK;
}

/* ---- snapshot ---- */

/* The view's place is kept for the statements that describe it, see notes(). */
static enum cdcd_rc source_snapshot_begin(struct cdcd_source *s, struct cdcd_slice from,
                                          struct cdcd_buf *position, struct cdcd_error *err)
{
    size_t before = position->len;
    my_position_free(&s->view);
    enum cdcd_rc rc = my_snapshot_begin(s, from, position, err);
    if (rc != CDCD_OK)
        return rc;
    struct cdcd_slice json = {position->ptr + before, position->len - before};
    if (!my_position_parse(json, &s->view))
        return cdcd_error_set(err, CDCD_ERR_FATAL, "the snapshot's position cannot be read: %.*s",
                              (int)(json.len > 500 ? 500 : json.len), json.ptr);
    return CDCD_OK;
}

static struct cdcd_cell text_cell(struct cdcd_slice text)
{
    return text.ptr ? cdcd_cell_text(text.ptr, text.len) : (struct cdcd_cell){.kind = CDCD_C_NULL};
}

static const struct cdcd_cell *view_source(const struct cdcd_source *s, struct cdcd_batch *b,
                                           const struct cdcd_ddl *ddl)
{
    struct cdcd_cell *c = cdcd_batch_cells(b, MY_SRC_COUNT);
    size_t n = strlen(s->view.file);
    const char *file = cdcd_arena_dup(&b->arena, s->view.file, n);
    memset(c, 0, MY_SRC_COUNT * sizeof *c);
    c[MY_SRC_TABLE] = text_cell(ddl->table);
    c[MY_SRC_SERVER_ID] = cdcd_cell_int(0);
    c[MY_SRC_FILE] = cdcd_cell_text(file, n);
    c[MY_SRC_POS] = cdcd_cell_int((int64_t)s->view.pos);
    c[MY_SRC_ROW] = cdcd_cell_int(0);
    return c;
}

/* The statements that would make the view's tables, before their first row. */
static enum cdcd_rc describe_view(struct cdcd_source *s, struct cdcd_batch *b,
                                  struct cdcd_error *err)
{
    MYSQL *m;
    struct cdcd_ddl *ddl = NULL;
    size_t n = 0;
    if (my_source_sql(s, &m, err) != CDCD_OK ||
        my_shapes_snapshot_ddl(s->shapes, m, &b->arena, &ddl, &n, err) != CDCD_OK)
        return CDCD_ERROR;
    int64_t now = cdcd_wallclock_us();
    for (size_t i = 0; i < n; i++) {
        struct cdcd_event *e = cdcd_batch_event(b, CDCD_OP_DDL, NULL);
        e->snapshot = CDCD_SNAP_TRUE;
        e->ddl = &ddl[i];
        e->ts_us = now;
        e->pos = (struct cdcd_pos){s->view.seq, i, false};
        e->source = view_source(s, b, &ddl[i]);
    }
    return CDCD_OK;
}

static void source_notes(struct cdcd_source *s, struct cdcd_batch *b)
{
    struct cdcd_error err = {0};
    my_shapes_notes(s->shapes, b);
    if (!s->snapshot || !s->env->want_ddl || !s->view.file)
        return;
    /* A reader of the schema topic can do without; the rows cannot wait for it. */
    if (describe_view(s, b, &err) != CDCD_OK)
        cdcd_warn("mysql", "the schema change topic lacks the snapshot's tables: %s", err.text);
}

/* ---- the rest ---- */

static enum cdcd_rc source_idle(struct cdcd_source *s, int64_t now, struct cdcd_error *err)
{
    enum cdcd_rc rc = CDCD_OK;
    if (s->stream)
        rc = my_stream_idle(s, now, err);
    if (rc != CDCD_ERROR && s->snapshot)
        rc = my_snapshot_idle(s, now, err);
    return rc;
}

static void source_names(const struct cdcd_source *s, const char **connector,
                         const char **source_schema_name)
{
    bool mariadb = s->server.flavor == MY_MARIADB;
    *connector = mariadb ? "mariadb" : "mysql";
    *source_schema_name = mariadb ? "io.debezium.connector.mariadb.Source"
                                  : "io.debezium.connector.mysql.Source";
}

#define COLUMN(n, t, opt)                                                           \
    {                                                                               \
        .name = n, .name_len = sizeof(n) - 1, .type = t, .length = -1, .scale = -1, \
        .optional = opt                                                             \
    }

static const struct cdcd_column source_columns[MY_SRC_COUNT] = {
    [MY_SRC_TABLE] = COLUMN("table", CDCD_T_STRING, true),
    [MY_SRC_SERVER_ID] = COLUMN("server_id", CDCD_T_INT64, false),
    [MY_SRC_GTID] = COLUMN("gtid", CDCD_T_STRING, true),
    [MY_SRC_FILE] = COLUMN("file", CDCD_T_STRING, false),
    [MY_SRC_POS] = COLUMN("pos", CDCD_T_INT64, false),
    [MY_SRC_ROW] = COLUMN("row", CDCD_T_INT32, false),
    [MY_SRC_THREAD] = COLUMN("thread", CDCD_T_INT64, true),
    [MY_SRC_QUERY] = COLUMN("query", CDCD_T_STRING, true),
};

/* The commit part counts transactions from the wall clock in microseconds: from 2005 on, and until
 * 2041, it fits 50 bits. */
#define VERSION_BASE (UINT64_C(1) << 50)
static uint64_t source_version(struct cdcd_pos pos)
{
    return cdcd_pos_version(pos.commit > VERSION_BASE ? pos.commit - VERSION_BASE : 0, 50, pos);
}

static const struct cdcd_source_ops source_ops = {
    .connector = "mysql",
    .options = my_options,
    .config_size = sizeof(struct my_config),
    .source_columns = source_columns,
    .nsource_columns = MY_SRC_COUNT,
    .source_schema_name = "io.debezium.connector.mysql.Source",
    .open = source_open,
    .close = source_close,
    .check = my_check,
    .drop = my_drop,
    .resume = my_stream_resume,
    .start = my_stream_start,
    .read = my_stream_read,
    .stop_at = my_stream_stop_at,
    .ack = my_stream_ack,
    .idle = source_idle,
    .lag = my_stream_lag,
    .snapshot_begin = source_snapshot_begin,
    .snapshot_tables = my_snapshot_tables,
    .snapshot_plan = my_snapshot_plan,
    .snapshot_end = my_snapshot_end,
    .worker_open = my_worker_open,
    .worker_close = my_worker_close,
    .worker_begin = my_worker_begin,
    .worker_read = my_worker_read,
    .describe = my_describe,
    .version = source_version,
    .names = source_names,
    .notes = source_notes,
    .time_micros = true,
};

CDCD_EXPORT const struct cdcd_plugin CDCD_PLUGIN_SYMBOL(mysql) = {
    .abi = CDCD_PLUGIN_ABI,
    .size = sizeof(struct cdcd_plugin),
    .name = "mysql",
    .version = CDCD_VERSION,
    .doc = "MySQL 8.0 to 9.7 and MariaDB 10.6 to 11.8 by their binlog",
    .source = &source_ops,
};
