/*
 * pipeline: one source, one encoder, one sink, and the batches that go round between them.
 *
 *   CONNECT > SNAPSHOT > STREAM > DRAIN > STOPPED,  and BACKOFF after a RETRY error
 *
 * The caller's thread becomes the capture thread: it owns the source. The publish thread owns
 * the sink while a session lasts. A session ends by stop, by the end of its work, or by an
 * error; what was captured before is still published, then the next session starts from what
 * the sink durably holds.
 */
#ifndef CDCD_PIPELINE_H
#define CDCD_PIPELINE_H

#include "config.h"

#include <cdcd/plugin.h>

enum cdcd_phase {
    CDCD_PHASE_CONNECT,
    CDCD_PHASE_SNAPSHOT,
    CDCD_PHASE_STREAM,
    CDCD_PHASE_BACKOFF,
    CDCD_PHASE_DRAIN,
    CDCD_PHASE_STOPPED,
};

struct cdcd_pipeline;

struct cdcd_run_options {
    bool snapshot_only;              /* the snapshot command */
    const struct cdcd_strlist *only; /* tables of the snapshot, or NULL */
    bool ephemeral;                  /* the tail command: leave nothing on the source */
    bool replay;                     /* the replay command; see plugin.h */
    const char *replay_from, *replay_to;
};

/* Opens nothing yet. `config` is borrowed for the life of the pipeline. */
enum cdcd_rc cdcd_pipeline_new(const struct cdcd_config *config,
                               const struct cdcd_run_options *options, struct cdcd_pipeline **out,
                               struct cdcd_error *err);
void cdcd_pipeline_free(struct cdcd_pipeline *p);
/* Runs until stopped, done, or an error that no retry can mend. */
enum cdcd_rc cdcd_pipeline_run(struct cdcd_pipeline *p, struct cdcd_error *err);
/* Any thread: asks for an orderly end (drain, commit, stop). */
void cdcd_pipeline_stop(struct cdcd_pipeline *p);

/* A step of cdcd replay, between two runs of the pipeline. CONFIG error: the sink has no such
 * thing. */
enum cdcd_rc cdcd_pipeline_rebuild(struct cdcd_pipeline *p, enum cdcd_rebuild step,
                                   struct cdcd_report *report, struct cdcd_error *err);

/* The environment that a source or sink of this config sees; used by check and drop too. */
void cdcd_pipeline_source_env(const struct cdcd_config *config, struct cdcd_source_env *out);
void cdcd_pipeline_sink_env(const struct cdcd_config *config, struct cdcd_sink_env *out);

/* Numbers for logs, status and metrics; any thread. */
struct cdcd_stats {
    enum cdcd_phase phase;
    uint64_t events, records, bytes; /* written to the sink */
    uint64_t snapshot_rows;
    uint64_t skipped; /* events left out by event.processing.failure.handling.mode */
    uint64_t retries;
    int64_t lag_bytes, lag_ms; /* of the sink behind the source; -1 unknown */
    int64_t commit_age_ms;     /* since something became durable; -1: nothing has */
    struct {
        char table[160];
        size_t index, tables; /* index from 0; tables 0: no snapshot is being taken */
        uint64_t rows;        /* of the table, read by this process */
        int64_t expected;     /* estimate, -1 unknown */
    } snapshot;
    uint64_t replayed, to_replay; /* records, of a replay; 0, 0: none */
    bool failed;                  /* has ended with an error: last_error */
    char position[256];           /* durable, described; "": none yet */
    char last_error[512];
    int64_t last_error_us; /* 0: none */
};
void cdcd_pipeline_stats(struct cdcd_pipeline *p, struct cdcd_stats *out);
const char *cdcd_phase_name(enum cdcd_phase phase);

#endif
