/*
 * config: the parsed configuration of one pipeline. Immutable after loading, so that any
 * thread may read it.
 */
#ifndef CDCD_CONFIG_H
#define CDCD_CONFIG_H

#include "encode/debezium.h"

#include <cdcd/log.h>
#include <cdcd/plugin.h>

enum cdcd_snapshot_mode {
    CDCD_SNAPSHOT_INITIAL,
    CDCD_SNAPSHOT_ALWAYS,
    CDCD_SNAPSHOT_INITIAL_ONLY,
    CDCD_SNAPSHOT_NO_DATA,
    CDCD_SNAPSHOT_WHEN_NEEDED,
};

struct cdcd_config {
    char *file; /* owned; as named by the user, NULL when built from arguments */
    char *name;
    char *topic_prefix;
    int snapshot_mode; /* enum cdcd_snapshot_mode */
    int64_t snapshot_workers;
    char *state_dir;               /* exists and is writable */
    int log_format;                /* index of "text", "json" */
    int log_level;                 /* enum cdcd_log_level */
    char *http_listen;             /* or NULL */
    int64_t http_ready_max_lag_ms; /* 0: no limit */
    int64_t max_event_bytes;
    int64_t batches;
    int64_t max_retries; /* -1: for ever */
    int64_t retry_delay_max_ms;

    struct cdcd_debezium_config format;
    const struct cdcd_plugin *source_plugin, *sink_plugin; /* never unloaded */
    void *source_config, *sink_config;                     /* owned; the plugins' own structs */
};

/* The top-level options; offsets are in struct cdcd_config. */
extern const struct cdcd_option cdcd_config_options[];

/* Reads a YAML or JSON file. Errors are of class CONFIG and name file, line and key. */
CDCD_MUSTCHECK enum cdcd_rc cdcd_config_load(const char *path, struct cdcd_config **out,
                                             struct cdcd_error *err);
/* A file of which some keys are replaced: "key=value" pairs as in from_args. A pair of the section
 * source or sink replaces that whole section. */
CDCD_MUSTCHECK enum cdcd_rc cdcd_config_load_with(const char *path, const char *const *pairs,
                                                  size_t n, struct cdcd_config **out,
                                                  struct cdcd_error *err);
/* The same from text; `name` stands for the file in errors. */
CDCD_MUSTCHECK enum cdcd_rc cdcd_config_parse(const char *name, const char *text, size_t len,
                                              struct cdcd_config **out, struct cdcd_error *err);
/* From "key=value" strings with full keys ("source.postgres.url=..."); lists are comma-separated.
 * Values are taken as they are: nothing in them is expanded. */
CDCD_MUSTCHECK enum cdcd_rc cdcd_config_from_args(const char *const *pairs, size_t n,
                                                  struct cdcd_config **out, struct cdcd_error *err);
void cdcd_config_free(struct cdcd_config *c); /* NULL is fine */

#endif
