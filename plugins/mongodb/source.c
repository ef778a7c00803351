/*
 * source.c: options and the ops table of the MongoDB source. The work is done in stream.c and
 * snapshot.c; this file connects, and takes everything down again.
 */
#include "snapshot.h"
#include "stream.h"

#include <cdcd/version.h>

#include <stdlib.h>

#define OPT(name, type, field, def) name, CDCD_OPT_##type, offsetof(struct mg_config, field), def

static const char *const capture_values[] = {"change_stream", "oplog", NULL};
static const char *const scope_values[] = {"deployment", "database", "collection", NULL};
static const char *const mode_values[] = {"change_streams_update_full", "change_streams",
                                          "change_streams_with_pre_image",
                                          "change_streams_update_full_with_pre_image", NULL};
static const char *const full_values[] = {"lookup", "post_image", NULL};
static const char *const oversize_values[] = {"fail", "skip", "split", NULL};
static const char *const read_values[] = {"auto", "at_cluster_time", "overlap", NULL};
static const char *const replaced_values[] = {"warn", "fail", NULL};

const struct cdcd_option mg_options[] = {
    {OPT("url", STR, url, NULL), 0, 0, NULL, CDCD_OPT_REQUIRED | CDCD_OPT_SECRET | CDCD_OPT_SAMPLE,
     "Where the servers are: mongodb://USER:PASSWORD@HOST:PORT,.../?replicaSet=NAME, or "
     "mongodb+srv://; reserved characters of the password as %XX. TLS (tls, tlsCAFile, "
     "tlsCertificateKeyFile), authSource, authMechanism and readPreference are given here, too. "
     "The "
     "user needs readAnyDatabase on admin, with capture: oplog also read on local.",
     "mongodb://cdcd:${MONGODBPASSWORD}@127.0.0.1:27017/?replicaSet=rs0"},
    {OPT("capture", ENUM, capture, "change_stream"), 0, 0, capture_values, CDCD_OPT_SAMPLE,
     "Where changes come from: change_stream, for replica sets and sharded clusters; oplog reads "
     "local.oplog.rs of a replica set itself.",
     NULL},
    {OPT("database.include.list", LIST, database_include, NULL), 0, 0, NULL,
     CDCD_OPT_REGEX | CDCD_OPT_SAMPLE,
     "Capture only collections of these databases: anchored regular expressions. Default: all but "
     "admin, local and config.",
     "[shop]"},
    {OPT("database.exclude.list", LIST, database_exclude, NULL), 0, 0, NULL, CDCD_OPT_REGEX,
     "Capture all databases but these: anchored regular expressions.", "[scratch]"},
    {OPT("collection.include.list", LIST, collection_include, NULL), 0, 0, NULL,
     CDCD_OPT_REGEX | CDCD_OPT_SAMPLE,
     "Capture only these collections: anchored regular expressions for DATABASE.COLLECTION. "
     "Collections named system.* need an item that has \"system\" in it.",
     "[shop.orders, \"shop.cust.*\"]"},
    {OPT("collection.exclude.list", LIST, collection_exclude, NULL), 0, 0, NULL, CDCD_OPT_REGEX,
     "Capture all collections but these: anchored regular expressions for DATABASE.COLLECTION.",
     "[shop.audit]"},
    {OPT("field.exclude.list", LIST, field_exclude, NULL), 0, 0, NULL, 0,
     "Leave these fields out: DATABASE.COLLECTION.PATH.OF.FIELD, also within arrays. * stands for "
     "any characters in the first two parts; no regular expressions.",
     "[shop.customers.password, \"*.orders.lines.price\"]"},
    {OPT("capture.mode", ENUM, capture_mode, "change_streams_update_full"), 0, 0, mode_values, 0,
     "What an update brings besides what it changed: the whole document (update_full), the "
     "document before (with_pre_image), both, or neither (change_streams). Images of before need "
     "changeStreamPreAndPostImages on the collection (MongoDB 6.0).",
     NULL},
    {OPT("capture.mode.full.update.type", ENUM, full_update, "lookup"), 0, 0, full_values, 0,
     "Where the whole document of an update comes from: lookup reads it afterwards, so that it may "
     "be newer than the change; post_image is exact, and needs changeStreamPreAndPostImages on the "
     "collection (MongoDB 6.0).",
     NULL},
    {OPT("capture.scope", ENUM, scope, "deployment"), 0, 0, scope_values, 0,
     "What a change stream is opened on, where the account may not see the whole deployment; see "
     "capture.target.",
     NULL},
    {OPT("capture.target", STR, target, NULL), 0, 0, NULL, 0,
     "The DATABASE or DATABASE.COLLECTION of capture.scope.", "shop"},
    {OPT("capture.start.op.time", INT, start_op_time, "-1"), -1, 0, NULL, 0,
     "Without a position begin at this time: a BSON timestamp as a number, seconds << 32 | "
     "increment. -1: now.",
     "7301444403200000000"},
    {OPT("cursor.oversize.handling.mode", ENUM, oversize, "fail"), 0, 0, oversize_values, 0,
     "What to do with a change of a change stream that is over 16 MB with its documents: fail "
     "stops "
     "the pipeline, skip leaves it out with a warning, split has the server send it in pieces "
     "(MongoDB 6.0.9, 7.0).",
     NULL},
    {OPT("cursor.max.await.time.ms", DURATION, await_ms, "500ms"), 1, 60000, NULL, 0,
     "How long the server holds a request for changes when there are none.", NULL},
    {OPT("cursor.batch.size", INT, batch_size, "0"), 0, INT32_MAX, NULL, 0,
     "The most changes that one request brings; 0: as many as 16 MB hold.", NULL},
    {OPT("collection.replaced.handling.mode", ENUM, replaced, "warn"), 0, 0, replaced_values, 0,
     "What to do when a captured collection is replaced as a whole by renaming another over it "
     "($out): warn goes on without its new documents, fail stops with exit code 3, or begins a new "
     "snapshot with snapshot.mode: when_needed.",
     NULL},
    {OPT("snapshot.read.mode", ENUM, read_mode, "auto"), 0, 0, read_values, 0,
     "How a snapshot is read: at_cluster_time at one time (MongoDB 5.0), overlap as the documents "
     "are when they are read, after which the stream sees to it that none goes back; auto the "
     "first where the server can do it.",
     NULL},
    {OPT("snapshot.chunk.rows", INT, snapshot_chunk_rows, "100000"), 1, 0, NULL, 0,
     "A snapshot reads collections in ranges of about this many documents by _id; each is a unit "
     "of parallel work.",
     NULL},
    {OPT("connect.timeout.ms", DURATION, connect_timeout_ms, "10s"), 100, 600000, NULL, 0,
     "The longest that one attempt to connect, or to find a server of the wanted kind, may take; "
     "connectTimeoutMS and serverSelectionTimeoutMS in url go first.",
     NULL},
    {OPT("oplog.window.warn.ms", DURATION, window_warn_ms, "24h"), 0, 0, NULL, 0,
     "check warns when the oplog reaches back less than this: a pipeline that is stopped for "
     "longer needs a new snapshot.",
     NULL},
    {NULL, 0, 0, NULL, 0, 0, NULL, 0, NULL, NULL},
};

/* ---- open and close ---- */

static void source_close(struct cdcd_source *s)
{
    if (!s)
        return;
    if (s->snapshot)
        mg_snapshot_end(s);
    mg_stream_free(s->stream);
    mg_filter_free(s->filter);
    if (s->client)
        mongoc_client_destroy(s->client);
    free(s);
}

/* What needs a newer server than the rest. */
static enum cdcd_rc check_version(const struct mg_config *cfg, const struct mg_server *server,
                                  struct cdcd_error *err)
{
    bool pre = mg_wants_before(cfg);
    int v = server->version_number;
    if (!v)
        return CDCD_OK;
    if (v < 60000 && (pre || mg_wants_post_image(cfg)))
        return cdcd_error_set(err, CDCD_ERR_CONFIG, "%s needs MongoDB 6.0 or later, this is %s",
                              pre ? "capture.mode with pre_image"
                                  : "capture.mode.full.update.type: post_image",
                              server->version);
    if (v < 60009 && cfg->oversize == MG_OVERSIZE_SPLIT && cfg->capture != MG_OPLOG)
        return cdcd_error_set(err, CDCD_ERR_CONFIG,
                              "cursor.oversize.handling.mode: split needs MongoDB 6.0.9 or later, "
                              "this is %s",
                              server->version);
    if (v < 50000 && cfg->read_mode == MG_READ_AT_CLUSTER_TIME)
        return cdcd_error_set(err, CDCD_ERR_CONFIG,
                              "snapshot.read.mode: at_cluster_time needs MongoDB 5.0 or later, "
                              "this is %s",
                              server->version);
    return CDCD_OK;
}

static enum cdcd_rc check_config(const struct mg_config *cfg, struct cdcd_error *err)
{
    if (cfg->full_update == MG_FULL_POST_IMAGE && !mg_wants_post_image(cfg))
        return cdcd_error_set(err, CDCD_ERR_CONFIG,
                              "capture.mode.full.update.type: post_image is of a capture.mode with "
                              "update_full; this one asks for no whole document");
    return CDCD_OK;
}

static enum cdcd_rc open_server(struct cdcd_source *s, struct cdcd_error *err)
{
    enum cdcd_rc rc = mg_client_new(s->cfg, &s->client, err);
    if (rc == CDCD_OK)
        rc = mg_server_info(s->client, &s->server, err);
    if (rc == CDCD_OK)
        rc = mg_check_server(s->client, s->cfg, &s->server, err);
    if (rc == CDCD_OK)
        rc = check_version(s->cfg, &s->server, err);
    return rc == CDCD_OK ? mg_server_sees(s->client, s->cfg, s->filter, err) : rc;
}

static enum cdcd_rc source_open(struct cdcd_source **out, const void *config,
                                const struct cdcd_source_env *env, struct cdcd_error *err)
{
    *out = NULL;
    if (check_config(config, err) != CDCD_OK)
        return CDCD_ERROR;
    struct cdcd_source *s = cdcd_xcalloc(1, sizeof *s);
    s->cfg = config;
    s->env = env;
    enum cdcd_rc rc = mg_filter_new(s->cfg, &s->filter, err);
    if (rc == CDCD_OK)
        rc = open_server(s, err);
    if (rc != CDCD_OK) {
        source_close(s);
        return rc;
    }
    cdcd_debug("mongodb", "MongoDB %s, %s%s, libmongoc %s", s->server.version,
               s->server.mongos ? "mongos" : "replica set ", s->server.set, mongoc_get_version());
    *out = s;
    return CDCD_OK;
}

/* ---- the table ---- */

#define COLUMN(n, t, opt)                                                           \
    {                                                                               \
        .name = n, .name_len = sizeof(n) - 1, .type = t, .length = -1, .scale = -1, \
        .optional = opt                                                             \
    }

static const struct cdcd_column source_columns[MG_SRC_COUNT] = {
    [MG_SRC_COLLECTION] = COLUMN("collection", CDCD_T_STRING, false),
    [MG_SRC_ORD] = COLUMN("ord", CDCD_T_INT32, false),
    [MG_SRC_LSID] = COLUMN("lsid", CDCD_T_STRING, true),
    [MG_SRC_TXN_NUMBER] = COLUMN("txnNumber", CDCD_T_INT64, true),
    [MG_SRC_WALL_TIME] = COLUMN("wallTime", CDCD_T_INT64, true),
};

/* Cluster times as 49 bits: seconds since 2020 (29 bits, until 2037), and increments of a second up
 * to a million. */
#define VERSION_BASE 1577836800
static uint64_t source_version(struct cdcd_pos pos)
{
    uint64_t seconds = pos.commit >> 32, increment = pos.commit & 0xffffffff;
    uint64_t since = seconds > VERSION_BASE ? seconds - VERSION_BASE : 0;
    return cdcd_pos_version(since << 20 | (increment < 0xfffff ? increment : 0xfffff), 49, pos);
}

static const struct cdcd_source_ops source_ops = {
    .connector = "mongodb",
    .options = mg_options,
    .config_size = sizeof(struct mg_config),
    .source_columns = source_columns,
    .nsource_columns = MG_SRC_COUNT,
    .source_schema_name = "io.debezium.connector.mongo.Source",
    .open = source_open,
    .close = source_close,
    .check = mg_check,
    .drop = mg_drop,
    .resume = mg_stream_resume,
    .start = mg_stream_start,
    .read = mg_stream_read,
    .stop_at = mg_stream_stop_at,
    .ack = mg_stream_ack,
    .idle = mg_stream_idle,
    .lag = mg_stream_lag,
    .snapshot_begin = mg_snapshot_begin,
    .snapshot_tables = mg_snapshot_tables,
    .snapshot_plan = mg_snapshot_plan,
    .snapshot_end = mg_snapshot_end,
    .worker_open = mg_worker_open,
    .worker_close = mg_worker_close,
    .worker_begin = mg_worker_begin,
    .worker_read = mg_worker_read,
    .describe = mg_describe,
    .version = source_version,
    .few_marks = true,
};

CDCD_EXPORT const struct cdcd_plugin CDCD_PLUGIN_SYMBOL(mongodb) = {
    .abi = CDCD_PLUGIN_ABI,
    .size = sizeof(struct cdcd_plugin),
    .name = "mongodb",
    .version = CDCD_VERSION,
    .doc = "MongoDB 4.2 to 8.x by change streams or its oplog",
    .source = &source_ops,
};
