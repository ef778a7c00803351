/*
 * debezium: the options that shape events. Names, values and defaults are Debezium's, so that
 * a connector's configuration can be carried over; time.overflow, zero.date.handling.mode and
 * bigint.unsigned.handling.mode exact are our own.
 */
#ifndef CDCD_ENCODE_DEBEZIUM_H
#define CDCD_ENCODE_DEBEZIUM_H

#include <cdcd/event.h>
#include <cdcd/option.h>

enum cdcd_decimal_mode { CDCD_DECIMAL_PRECISE, CDCD_DECIMAL_DOUBLE, CDCD_DECIMAL_STRING };

enum cdcd_time_mode {
    CDCD_TIME_ADAPTIVE,
    CDCD_TIME_ADAPTIVE_MICROS,
    CDCD_TIME_CONNECT,
    CDCD_TIME_ISO,
    CDCD_TIME_MICROS,
    CDCD_TIME_NANOS,
};

enum cdcd_binary_mode {
    CDCD_BINARY_BYTES,
    CDCD_BINARY_BASE64,
    CDCD_BINARY_BASE64_URL,
    CDCD_BINARY_HEX,
};

enum cdcd_interval_mode { CDCD_INTERVAL_NUMERIC, CDCD_INTERVAL_STRING };
enum cdcd_hstore_mode { CDCD_HSTORE_JSON, CDCD_HSTORE_MAP };
enum cdcd_failure_mode { CDCD_FAILURE_FAIL, CDCD_FAILURE_WARN, CDCD_FAILURE_SKIP };
enum cdcd_name_mode { CDCD_NAMES_NONE, CDCD_NAMES_AVRO };
enum cdcd_unsigned_mode { CDCD_UNSIGNED_EXACT, CDCD_UNSIGNED_LONG, CDCD_UNSIGNED_PRECISE };
enum cdcd_zero_date_mode { CDCD_ZERO_DATE_CONVERT, CDCD_ZERO_DATE_TEXT, CDCD_ZERO_DATE_FAIL };
/* Extended JSON of documents (MongoDB). plain is our own. */
enum cdcd_document_mode {
    CDCD_DOCUMENT_LEGACY,
    CDCD_DOCUMENT_STRICT,
    CDCD_DOCUMENT_EXTENDED,
    CDCD_DOCUMENT_RELAXED,
    CDCD_DOCUMENT_PLAIN,
};
enum cdcd_overflow_mode { CDCD_OVERFLOW_ERROR, CDCD_OVERFLOW_SATURATE };

/* Filled from cdcd_debezium_options; borrowed by the encoder for its life. */
struct cdcd_debezium_config {
    int decimal_mode; /* enum cdcd_decimal_mode; the same for those below */
    int time_mode;
    int time_overflow;
    int binary_mode;
    int interval_mode;
    int hstore_mode;
    int unsigned_mode;
    int zero_date_mode;
    int document_mode;
    int failure_mode;
    int schema_name_mode;
    bool schemas_enable;
    bool tombstones_on_delete;
    bool provide_transaction_metadata;
    bool extended_headers;
    bool include_schema_changes;
    struct cdcd_strlist skipped_operations;
    char *message_key_columns;
    char *unavailable_value_placeholder;
    int64_t heartbeat_interval_ms;
    char *topic_heartbeat_prefix;
    char *topic_delimiter;
    char *topic_transaction;
};

extern const struct cdcd_option cdcd_debezium_options[];

/* skipped.operations names this kind of event. */
bool cdcd_debezium_skips(const struct cdcd_debezium_config *cfg, enum cdcd_op op);

#endif
