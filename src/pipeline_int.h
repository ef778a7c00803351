/* What pipeline.c, publish.c and coordinator.c share. */
#ifndef CDCD_PIPELINE_INT_H
#define CDCD_PIPELINE_INT_H

#include "encode/encoder.h"
#include "pipeline.h"
#include "queue.h"
#include "state.h"

#include <stdatomic.h>

/* A position that waits for its batch to be durable. */
struct pending_ack {
    uint64_t seq;
    char *position; /* owned */
};

struct cdcd_pipeline {
    const struct cdcd_config *config;
    struct cdcd_run_options options;
    const struct cdcd_source_ops *source_ops;
    const struct cdcd_sink_ops *sink_ops;
    struct cdcd_source_env source_env;
    struct cdcd_sink_env sink_env;
    struct cdcd_encoder *encoder;
    struct cdcd_sink *sink;     /* open over sessions */
    struct cdcd_source *source; /* of this session */
    struct cdcd_queue free, full;
    atomic_bool stop;        /* orderly end asked for */
    atomic_bool publish_bad; /* the publish thread has failed: publish_error */

    /* capture thread */
    bool ran_before; /* a session has done its snapshot decision: "always" means once */
    bool start_over; /* the stream met a loss, and snapshot.mode is when_needed */
    char *last_acked;
    int64_t next_idle, next_heartbeat;
    struct cdcd_pos last_pos; /* of the last event pushed; heartbeats are put behind it */

    /* publish thread */
    struct cdcd_error publish_error;
    uint64_t seq;                /* of the last batch written */
    char *memory;                /* state of a forgetful sink: what it was last told, durable */
    struct cdcd_notes *notes;    /* the source's, as loaded; of a forgetful sink kept up here */
    struct pending_ack *pending; /* ring: [head, tail) */
    size_t pending_cap, pending_head, pending_tail;
    struct {
        uint64_t seq;
        char *state;
        struct cdcd_note *notes; /* copies */
    } * remember;                /* forgetful sinks only: states not durable yet */
    size_t nremember, remember_cap;
    struct cdcd_note *durable_notes, **durable_notes_tail; /* move to `notes` at the next load */

    /* shared, under lock */
    pthread_mutex_t lock;
    uint64_t durable_seq, written_seq;
    char *durable_position; /* owned; newest */
    bool progress;          /* something became durable in this session */
    /* Tables that a snapshot will write: the publish thread makes their topics before its next
     * batch. Borrowed from the coordinator. */
    const struct cdcd_snapshot_tables *announced;
    char *shown_position;   /* owned; newest that was ever durable, for stats */
    int64_t committed_ms;   /* when something last became durable; 0: never */
    int64_t unpublished_ms; /* since when written_seq is ahead of durable_seq */
    struct cdcd_stats stats;
};

/* ---- publish.c ---- */
void *cdcd_publish_main(void *pipeline);
void cdcd_publish_batch_done(void *ctx, struct cdcd_batch *b);
void cdcd_publish_durable(void *ctx, uint64_t seq);
/* Between sessions: what a forgetful sink was durably told becomes part of p->notes. */
void cdcd_publish_take_notes(struct cdcd_pipeline *p);
void cdcd_publish_reset(struct cdcd_pipeline *p); /* between sessions: forgets what is pending */

/* ---- pipeline.c: for the capture thread ---- */
/* A free batch; keeps the source alive while it waits. NULL: the session must end. */
struct cdcd_batch *cdcd_pipeline_take(struct cdcd_pipeline *p, struct cdcd_error *err);
/* Hands a batch to the publish thread. A position in it becomes the state to store, if no state
 * was set by the caller. */
void cdcd_pipeline_push(struct cdcd_pipeline *p, struct cdcd_batch *b);
/* Serves the source between reads: acknowledgements, keepalives, heartbeats, lag. */
enum cdcd_rc cdcd_pipeline_serve(struct cdcd_pipeline *p, struct cdcd_error *err);
/* True when the session must end: stop asked for or the publish thread failed. */
bool cdcd_pipeline_ending(struct cdcd_pipeline *p);
/* Waits until everything pushed is durable. AGAIN: the session is ending. */
enum cdcd_rc cdcd_pipeline_flush(struct cdcd_pipeline *p, struct cdcd_error *err);
/* The stream up to a snapshot's view, see coordinator.c. */
struct cdcd_catch_up {
    const struct cdcd_state *unfinished;      /* a snapshot that the states carry on, or NULL */
    const struct cdcd_snapshot_table *follow; /* tables that are read afterwards */
    size_t nfollow;
    struct cdcd_buf reached; /* the last position that was pushed */
};
/* Reads the stream until END (the barrier) or the session ends (AGAIN). */
enum cdcd_rc cdcd_pipeline_stream(struct cdcd_pipeline *p, struct cdcd_catch_up *catch_up,
                                  struct cdcd_error *err);
void cdcd_pipeline_phase(struct cdcd_pipeline *p, enum cdcd_phase phase);
/* Snapshot progress for stats; any thread. tables 0: the snapshot has ended. */
void cdcd_pipeline_snapshot_table(struct cdcd_pipeline *p, const char *label, int64_t expected,
                                  size_t index, size_t tables);
void cdcd_pipeline_snapshot_rows(struct cdcd_pipeline *p, uint32_t n);

/* ---- coordinator.c ---- */
/* Takes, or goes on with, a snapshot. `state`: what the sink holds (position NULL: nothing).
 * On OK the snapshot is complete and pushed, and *position is where the stream goes on:
 * *started tells that it is already running. AGAIN: the session is ending. */
enum cdcd_rc cdcd_coordinator_run(struct cdcd_pipeline *p, const struct cdcd_state *state,
                                  struct cdcd_buf *position, bool *started, struct cdcd_error *err);

#endif
