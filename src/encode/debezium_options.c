/*
 * The options of format.debezium.
 */
#include "dbz.h"

#define ROW(key, kind, field, def)                                                     \
    .name = key, .type = kind, .offset = offsetof(struct cdcd_debezium_config, field), \
    .default_ = def

static const char *const decimal_modes[] = {"precise", "double", "string", NULL};
static const char *const time_modes[] = {
    "adaptive", "adaptive_time_microseconds", "connect", "isostring", "microseconds", "nanoseconds",
    NULL};
static const char *const overflow_modes[] = {"error", "saturate", NULL};
static const char *const binary_modes[] = {"bytes", "base64", "base64-url-safe", "hex", NULL};
static const char *const interval_modes[] = {"numeric", "string", NULL};
static const char *const hstore_modes[] = {"json", "map", NULL};
static const char *const unsigned_modes[] = {"exact", "long", "precise", NULL};
static const char *const zero_date_modes[] = {"convert", "text", "fail", NULL};
static const char *const document_modes[] = {"legacy",  "strict", "extended",
                                             "relaxed", "plain",  NULL};
static const char *const failure_modes[] = {"fail", "warn", "skip", NULL};
static const char *const name_modes[] = {"none", "avro", NULL};

const struct cdcd_option cdcd_debezium_options[] = {
    {ROW("decimal.handling.mode", CDCD_OPT_ENUM, decimal_mode, "precise"), .values = decimal_modes,
     .flags = CDCD_OPT_SAMPLE,
     .doc = "How numeric, decimal and money are written: precise is Connect's Decimal (base64 of "
            "the unscaled value), exact; string is exact and readable; double is rounded."},
    {ROW("time.precision.mode", CDCD_OPT_ENUM, time_mode, "adaptive"), .values = time_modes,
     .doc = "How date, time and timestamp are written: numbers in the column's own unit "
            "(adaptive; TIME of MySQL and MariaDB always in microseconds), in one unit (connect: "
            "milliseconds, microseconds, nanoseconds), or ISO 8601 text (isostring). timestamptz, "
            "timetz and MySQL's TIMESTAMP are always text."},
    {ROW("time.overflow", CDCD_OPT_ENUM, time_overflow, "error"), .values = overflow_modes,
     .doc = "What becomes of a timestamp or interval that 64 bits (a time in milliseconds: 32 "
            "bits) do not hold in its unit: an error that names column and value, or the largest "
            "(smallest) number."},
    {ROW("binary.handling.mode", CDCD_OPT_ENUM, binary_mode, "bytes"), .values = binary_modes,
     .doc = "How binary columns are written. In JSON, bytes and base64 look the same; they differ "
            "in the schema."},
    {ROW("interval.handling.mode", CDCD_OPT_ENUM, interval_mode, "numeric"),
     .values = interval_modes,
     .doc = "numeric: microseconds, a month counted as 365.25 / 12 days; string: ISO 8601 "
            "(P1Y2M3DT4H5M6.78S), exact."},
    {ROW("bigint.unsigned.handling.mode", CDCD_OPT_ENUM, unsigned_mode, "exact"),
     .values = unsigned_modes,
     .doc = "BIGINT UNSIGNED (MySQL, MariaDB). exact: the number as it is, in keys too; with "
            "schemas.enable, whose int64 ends at 2^63-1, as precise. precise: Connect's Decimal. "
            "long: int64; values above 2^63-1 become negative, as with Debezium."},
    {ROW("zero.date.handling.mode", CDCD_OPT_ENUM, zero_date_mode, "convert"),
     .values = zero_date_modes,
     .doc = "What becomes of a MySQL or MariaDB value that is no date (0000-00-00, 2024-02-00). "
            "convert: null, or 1970-01-01 where null is not allowed, as with Debezium; text: the "
            "value itself as a JSON string (not with schemas.enable); fail: an error that names "
            "column and value."},
    {ROW("hstore.handling.mode", CDCD_OPT_ENUM, hstore_mode, "json"), .values = hstore_modes,
     .doc = "hstore as JSON text in a string, or as an object."},
    {ROW("json.serialization.mode", CDCD_OPT_ENUM, document_mode, "legacy"),
     .values = document_modes,
     .doc =
         "The text of documents (MongoDB). legacy: Extended JSON v1 in strict form, updatedFields "
         "in v2 relaxed; strict: v1 everywhere; extended: v2 canonical; relaxed: v2 relaxed; "
         "plain: ordinary JSON for search indexes (dates as ISO 8601, ObjectIds and decimals as "
         "strings). Keys are v2 relaxed in all of them, plain in plain."},
    {ROW("schemas.enable", CDCD_OPT_BOOL, schemas_enable, "false"),
     .doc = "Writes {\"schema\":...,\"payload\":...} as Kafka Connect's JsonConverter does with "
            "its schemas.enable. Records become several times larger."},
    {ROW("schema.name.adjustment.mode", CDCD_OPT_ENUM, schema_name_mode, "none"),
     .values = name_modes,
     .doc = "avro: characters that an Avro name may not have become _ in schema names."},
    {ROW("tombstones.on.delete", CDCD_OPT_BOOL, tombstones_on_delete, "true"),
     .doc = "A delete is followed by a record with the same key and no value, so that compaction "
            "can forget the key."},
    {ROW("skipped.operations", CDCD_OPT_LIST, skipped_operations, "t"),
     .doc = "Operations that become no records: c (create), u (update), d (delete), t (truncate), "
            "r (snapshot rows), m (logical messages); none."},
    {ROW("message.key.columns", CDCD_OPT_STR, message_key_columns, NULL),
     .doc = "Other columns than the primary key as the record key: TABLE:COLUMN,COLUMN;TABLE:..., "
            "where TABLE is a regular expression for schema.table.",
     .sample = "public.orders:customer_id,id"},
    {ROW("unavailable.value.placeholder", CDCD_OPT_STR, unavailable_value_placeholder,
         "__debezium_unavailable_value"),
     .doc = "Stands for a value that did not change and that the log therefore does not carry "
            "(TOAST). hex:... gives its bytes."},
    {ROW("provide.transaction.metadata", CDCD_OPT_BOOL, provide_transaction_metadata, "false"),
     .doc = "Adds a transaction block to every record, and BEGIN and END records in the "
            "transaction topic."},
    {ROW("topic.delimiter", CDCD_OPT_STR, topic_delimiter, "."),
     .doc = "Between the parts of a topic's name."},
    {ROW("topic.transaction", CDCD_OPT_STR, topic_transaction, "transaction"),
     .doc = "Transaction metadata go to PREFIX.NAME."},
    {ROW("topic.heartbeat.prefix", CDCD_OPT_STR, topic_heartbeat_prefix, "__debezium-heartbeat"),
     .doc = "Heartbeats go to NAME.PREFIX."},
    {ROW("heartbeat.interval.ms", CDCD_OPT_DURATION, heartbeat_interval_ms, "0"),
     .doc = "A heartbeat record this often; 0: none."},
    {ROW("extended.headers.enabled", CDCD_OPT_BOOL, extended_headers, "false"),
     .doc = "Adds the headers __debezium.context.* (connector, task) to every data record. Off by "
            "default, other than Debezium's: they are the same in every record of a pipeline and "
            "cost a sixth of its bytes."},
    {ROW("include.schema.changes", CDCD_OPT_BOOL, include_schema_changes, "true"),
     .doc = "Statements that change tables go to the topic PREFIX, with the tables as they are "
            "after it (MySQL, MariaDB)."},
    {ROW("event.processing.failure.handling.mode", CDCD_OPT_ENUM, failure_mode, "fail"),
     .values = failure_modes,
     .doc = "What becomes of an event that has no form under these options: fail stops the "
            "pipeline before it, warn logs and leaves it out, skip leaves it out and counts it."},
    {.name = NULL},
};

static const char op_letters[] = {
    [CDCD_OP_CREATE] = 'c', [CDCD_OP_READ] = 'r',     [CDCD_OP_UPDATE] = 'u',
    [CDCD_OP_DELETE] = 'd', [CDCD_OP_TRUNCATE] = 't', [CDCD_OP_MESSAGE] = 'm',
};

bool cdcd_debezium_skips(const struct cdcd_debezium_config *cfg, enum cdcd_op op)
{
    if ((size_t)op >= sizeof(op_letters))
        return false;
    for (size_t i = 0; i < cfg->skipped_operations.n; i++) {
        const char *item = cfg->skipped_operations.items[i];
        if (item[0] == op_letters[op] && item[1] == 0)
            return true;
    }
    return false;
}

enum cdcd_rc dbz_check_options(const struct cdcd_debezium_config *cfg, struct cdcd_error *err)
{
    for (size_t i = 0; i < cfg->skipped_operations.n; i++) {
        const char *item = cfg->skipped_operations.items[i];
        if (strcmp(item, "none") != 0 && (!item[0] || item[1] || !strchr("crudtm", item[0])))
            return cdcd_error_set(err, CDCD_ERR_CONFIG,
                                  "skipped.operations: \"%s\" is none of c, u, d, t, r, m, none",
                                  item);
    }
    return CDCD_OK;
}
