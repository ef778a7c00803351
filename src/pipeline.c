/*
 * The pipeline's state machine and its capture side. See pipeline.h.
 *
 * A session: sink.load, source.open, decide (snapshot, go on, or start now), stream, drain.
 * The publish thread runs from load to drain. Everything between two sessions is forgotten,
 * except what the sink durably holds: resuming after a crash and resuming after an error are
 * the same thing.
 */
#include "pipeline_int.h"

#include <cdcd/log.h>

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define READ_WAIT_MS     250
#define TAKE_WAIT_MS     200
#define IDLE_EVERY_MS    200
#define BACKOFF_FIRST_MS 100

static const char *const phase_names[] = {"connecting", "snapshot", "streaming",
                                          "backoff",    "draining", "stopped"};

const char *cdcd_phase_name(enum cdcd_phase phase)
{
    return phase_names[phase];
}

void cdcd_pipeline_phase(struct cdcd_pipeline *p, enum cdcd_phase phase)
{
    pthread_mutex_lock(&p->lock);
    p->stats.phase = phase;
    if (phase == CDCD_PHASE_BACKOFF || phase == CDCD_PHASE_STOPPED)
        p->stats.lag_bytes = p->stats.lag_ms = -1; /* nobody measures it */
    pthread_mutex_unlock(&p->lock);
}

void cdcd_pipeline_snapshot_table(struct cdcd_pipeline *p, const char *label, int64_t expected,
                                  size_t index, size_t tables)
{
    pthread_mutex_lock(&p->lock);
    snprintf(p->stats.snapshot.table, sizeof p->stats.snapshot.table, "%s", label);
    p->stats.snapshot.expected = expected;
    p->stats.snapshot.index = index;
    p->stats.snapshot.tables = tables;
    p->stats.snapshot.rows = 0;
    pthread_mutex_unlock(&p->lock);
}

void cdcd_pipeline_snapshot_rows(struct cdcd_pipeline *p, uint32_t n)
{
    pthread_mutex_lock(&p->lock);
    p->stats.snapshot.rows += n;
    pthread_mutex_unlock(&p->lock);
}

void cdcd_pipeline_stop(struct cdcd_pipeline *p)
{
    atomic_store(&p->stop, true);
}

bool cdcd_pipeline_ending(struct cdcd_pipeline *p)
{
    return atomic_load(&p->stop) || atomic_load(&p->publish_bad);
}

/* ---- services for the capture thread ---- */

static void serve_acks(struct cdcd_pipeline *p)
{
    pthread_mutex_lock(&p->lock);
    char *position = p->durable_position;
    p->durable_position = NULL;
    pthread_mutex_unlock(&p->lock);
    if (!position)
        return;
    p->source_ops->ack(p->source, cdcd_slice_str(position));
    free(p->last_acked);
    p->last_acked = position;
}

static enum cdcd_rc serve_heartbeat(struct cdcd_pipeline *p, int64_t now)
{
    int64_t every = p->config->format.heartbeat_interval_ms;
    if (every <= 0 || now < p->next_heartbeat)
        return CDCD_OK;
    struct cdcd_batch *b = cdcd_queue_pop(&p->free, 0);
    if (!b)
        return CDCD_OK; /* behind: the data itself shows life */
    p->next_heartbeat = now + every;
    struct cdcd_event *e = cdcd_batch_event(b, CDCD_OP_HEARTBEAT, NULL);
    e->ts_us = cdcd_wallclock_us();
    /* Behind everything so far, before the next transaction, and never twice the same. */
    e->pos = (struct cdcd_pos){p->last_pos.commit, (uint64_t)e->ts_us, true};
    b->caught_up = true;
    cdcd_pipeline_push(p, b);
    return CDCD_OK;
}

enum cdcd_rc cdcd_pipeline_serve(struct cdcd_pipeline *p, struct cdcd_error *err)
{
    serve_acks(p);
    int64_t now = cdcd_now_ms();
    if (now < p->next_idle)
        return CDCD_OK;
    p->next_idle = now + IDLE_EVERY_MS;
    if (p->source_ops->idle(p->source, now, err) == CDCD_ERROR)
        return CDCD_ERROR;
    struct cdcd_lag lag = {-1, -1};
    if (p->source_ops->lag)
        p->source_ops->lag(p->source, &lag);
    uint64_t done = 0, total = 0;
    if (p->source_ops->progress && p->options.replay)
        p->source_ops->progress(p->source, &done, &total);
    pthread_mutex_lock(&p->lock);
    p->stats.lag_bytes = lag.bytes;
    p->stats.lag_ms = lag.millis;
    p->stats.replayed = done;
    p->stats.to_replay = total;
    bool streaming = p->stats.phase == CDCD_PHASE_STREAM;
    pthread_mutex_unlock(&p->lock);
    return streaming ? serve_heartbeat(p, now) : CDCD_OK;
}

struct cdcd_batch *cdcd_pipeline_take(struct cdcd_pipeline *p, struct cdcd_error *err)
{
    for (;;) {
        struct cdcd_batch *b = cdcd_queue_pop(&p->free, TAKE_WAIT_MS);
        if (b)
            return b;
        if (cdcd_pipeline_ending(p))
            return NULL;
        if (cdcd_pipeline_serve(p, err) == CDCD_ERROR)
            return NULL;
    }
}

void cdcd_pipeline_push(struct cdcd_pipeline *p, struct cdcd_batch *b)
{
    if (b->position.ptr && !b->state.ptr && !p->sink_env.stateless)
        b->state = cdcd_state_stream(&b->arena, b->position);
    if (b->last_event && b->last_event->op != CDCD_OP_HEARTBEAT)
        p->last_pos = b->last_event->pos;
    cdcd_queue_push(&p->full, b);
}

enum cdcd_rc cdcd_pipeline_flush(struct cdcd_pipeline *p, struct cdcd_error *err)
{
    const struct timespec nap = {0, 1000000};
    for (;;) {
        if (atomic_load(&p->publish_bad))
            return CDCD_AGAIN;
        pthread_mutex_lock(&p->lock);
        bool clean = p->durable_seq == p->written_seq;
        pthread_mutex_unlock(&p->lock);
        /* Every batch at home: nothing is in the queue, in the encoder or in the sink. */
        if (clean && cdcd_queue_len(&p->free) == (size_t)p->config->batches)
            return CDCD_OK;
        if (cdcd_pipeline_serve(p, err) == CDCD_ERROR)
            return CDCD_ERROR;
        nanosleep(&nap, NULL);
    }
}

static bool follows(const struct cdcd_catch_up *c, const struct cdcd_schema *s)
{
    for (size_t i = 0; s && i < c->nfollow; i++) {
        const struct cdcd_snapshot_table *t = &c->follow[i];
        if (strcmp(t->table, s->table) == 0 && strcmp(t->schema, s->schema) == 0 &&
            (!t->db || strcmp(t->db, s->db) == 0))
            return true;
    }
    return false;
}

static void caught(const struct cdcd_source_ops *ops, struct cdcd_catch_up *c, struct cdcd_batch *b)
{
    for (struct cdcd_event *e = b->events; e; e = e->next)
        e->row_follows = e->op == CDCD_OP_UPDATE && follows(c, e->schema) &&
                         (ops->follows_new_keys || !cdcd_event_key_changed(e));
    if (!b->position.ptr)
        return;
    if (c->unfinished) {
        struct cdcd_state s = *c->unfinished;
        struct cdcd_buf text;
        cdcd_buf_init(&text, 0);
        s.position = cdcd_arena_dup(&b->arena, b->position.ptr, b->position.len);
        cdcd_state_write(&s, &text);
        b->state.ptr = cdcd_arena_dup(&b->arena, text.ptr, text.len);
        b->state.len = text.len;
        cdcd_buf_free(&text);
    }
    cdcd_buf_clear(&c->reached);
    cdcd_buf_add(&c->reached, b->position.ptr, b->position.len);
}

enum cdcd_rc cdcd_pipeline_stream(struct cdcd_pipeline *p, struct cdcd_catch_up *catch_up,
                                  struct cdcd_error *err)
{
    struct cdcd_batch *b = NULL;
    enum cdcd_rc rc = CDCD_AGAIN;
    while (!cdcd_pipeline_ending(p)) {
        if (cdcd_pipeline_serve(p, err) == CDCD_ERROR) {
            rc = CDCD_ERROR;
            break;
        }
        if (!b && !(b = cdcd_pipeline_take(p, err))) {
            rc = err->class != CDCD_ERR_NONE ? CDCD_ERROR : CDCD_AGAIN;
            break;
        }
        rc = p->source_ops->read(p->source, b, cdcd_now_ms() + READ_WAIT_MS, err);
        if (rc == CDCD_AGAIN)
            continue;
        if (rc == CDCD_OK || (rc == CDCD_END && (b->nevents || b->nrecords || b->position.ptr))) {
            if (catch_up)
                caught(p->source_ops, catch_up, b);
            cdcd_pipeline_push(p, b);
            b = NULL;
        }
        if (rc != CDCD_OK)
            break;
        rc = CDCD_AGAIN;
    }
    if (b)
        cdcd_publish_batch_done(p, b);
    return rc;
}

/* ---- a session ---- */

static bool sink_forgets(const struct cdcd_pipeline *p)
{
    return p->sink_ops->forgetful && p->sink_ops->forgetful(p->config->sink_config);
}

static enum cdcd_rc load_state(struct cdcd_pipeline *p, struct cdcd_state *out,
                               struct cdcd_error *err)
{
    struct cdcd_buf text;
    cdcd_buf_init(&text, 0);
    *out = (struct cdcd_state){0};
    if (sink_forgets(p))
        cdcd_publish_take_notes(p);
    else
        cdcd_notes_clear(p->notes);
    enum cdcd_rc rc = p->sink_ops->load(p->sink, &text, p->notes, err);
    if (rc == CDCD_OK && sink_forgets(p) && p->memory) {
        cdcd_buf_clear(&text);
        cdcd_buf_adds(&text, p->memory);
    }
    if (rc == CDCD_OK && text.len > 0)
        rc = cdcd_state_parse(cdcd_buf_slice(&text), out, err);
    cdcd_buf_free(&text);
    return rc;
}

/* Stores a position before anything is streamed from it. */
static enum cdcd_rc store_position(struct cdcd_pipeline *p, struct cdcd_slice position,
                                   struct cdcd_error *err)
{
    struct cdcd_batch *b = cdcd_pipeline_take(p, err);
    if (!b)
        return err->class != CDCD_ERR_NONE ? CDCD_ERROR : CDCD_AGAIN;
    b->position.ptr = cdcd_arena_dup(&b->arena, position.ptr, position.len);
    b->position.len = position.len;
    b->caught_up = true;
    if (p->source_ops->notes)
        p->source_ops->notes(p->source, b);
    cdcd_pipeline_push(p, b);
    return cdcd_pipeline_flush(p, err);
}

enum plan { PLAN_STREAM, PLAN_SNAPSHOT, PLAN_NOTHING };

static enum plan decide(const struct cdcd_pipeline *p, const struct cdcd_state *state)
{
    int mode = p->config->snapshot_mode;
    if (p->source_ops->records)
        return PLAN_STREAM;
    if (state->in_snapshot)
        return PLAN_SNAPSHOT;
    if (p->options.snapshot_only)
        return PLAN_SNAPSHOT;
    if (!state->position)
        return mode == CDCD_SNAPSHOT_NO_DATA ? PLAN_STREAM : PLAN_SNAPSHOT;
    if (mode == CDCD_SNAPSHOT_ALWAYS && !p->ran_before)
        return PLAN_SNAPSHOT;
    return mode == CDCD_SNAPSHOT_INITIAL_ONLY ? PLAN_NOTHING : PLAN_STREAM;
}

static bool ends_after_snapshot(const struct cdcd_pipeline *p)
{
    return p->options.snapshot_only || p->config->snapshot_mode == CDCD_SNAPSHOT_INITIAL_ONLY;
}

static void log_position(struct cdcd_pipeline *p, const char *what, struct cdcd_slice position)
{
    struct cdcd_buf text;
    cdcd_buf_init(&text, 0);
    if (p->source_ops->describe)
        p->source_ops->describe(position, &text);
    else
        cdcd_buf_add(&text, position.ptr, position.len);
    cdcd_info("pipeline", "%s %s", what, cdcd_buf_cstr(&text));
    cdcd_buf_free(&text);
}

static bool is_loss(const struct cdcd_pipeline *p, const struct cdcd_error *err)
{
    return err->class == CDCD_ERR_LOSS && !p->source_ops->records &&
           p->config->snapshot_mode == CDCD_SNAPSHOT_WHEN_NEEDED;
}

/* A lost position in when_needed mode: what is stored is of no use any more. */
static bool starts_over(struct cdcd_pipeline *p, struct cdcd_state *state, struct cdcd_error *err)
{
    if (!is_loss(p, err) || !state->position)
        return false;
    cdcd_warn("pipeline",
              "%s. snapshot.mode is when_needed: taking a new snapshot. Rows that were deleted in "
              "the gap stay in the target until they are removed there",
              err->text);
    *err = (struct cdcd_error){0};
    cdcd_state_free(state);
    return true;
}

/* Verifies the position and starts the stream there. In when_needed mode a lost position turns
 * into a new snapshot (*plan). */
static enum cdcd_rc resume_stream(struct cdcd_pipeline *p, struct cdcd_state *state,
                                  enum plan *plan, struct cdcd_error *err)
{
    struct cdcd_buf position;
    cdcd_buf_init(&position, 0);
    struct cdcd_slice from = cdcd_slice_str(state->position);
    enum cdcd_rc rc = p->source_ops->resume(p->source, from, &position, err);
    if (rc == CDCD_ERROR && starts_over(p, state, err)) {
        *plan = PLAN_SNAPSHOT;
        rc = CDCD_OK;
        goto out;
    }
    if (rc == CDCD_OK && !state->position && !p->sink_env.stateless)
        rc = store_position(p, cdcd_buf_slice(&position), err);
    if (rc == CDCD_OK) {
        log_position(p, "streaming from", cdcd_buf_slice(&position));
        rc = p->source_ops->start(p->source, cdcd_buf_slice(&position), err);
    }
out:
    cdcd_buf_free(&position);
    return rc;
}

static enum cdcd_rc take_snapshot(struct cdcd_pipeline *p, struct cdcd_state *state,
                                  struct cdcd_error *err)
{
    struct cdcd_buf position;
    cdcd_buf_init(&position, 0);
    bool started = false;
    cdcd_pipeline_phase(p, CDCD_PHASE_SNAPSHOT);
    enum cdcd_rc rc = cdcd_coordinator_run(p, state, &position, &started, err);
    if (rc == CDCD_ERROR && starts_over(p, state, err)) {
        cdcd_buf_clear(&position);
        rc = cdcd_coordinator_run(p, state, &position, &started, err);
    }
    /* Complete is what the sink holds: a refused row may still end this session. */
    if (rc == CDCD_OK)
        rc = cdcd_pipeline_flush(p, err);
    p->ran_before = p->ran_before || rc == CDCD_OK;
    if (rc == CDCD_OK && ends_after_snapshot(p)) {
        log_position(p, "snapshot complete; a later run streams from", cdcd_buf_slice(&position));
        rc = CDCD_END;
    } else if (rc == CDCD_OK) {
        log_position(p, "snapshot complete; streaming from", cdcd_buf_slice(&position));
        if (!started)
            rc = p->source_ops->start(p->source, cdcd_buf_slice(&position), err);
    }
    cdcd_buf_free(&position);
    return rc;
}

static enum cdcd_rc capture(struct cdcd_pipeline *p, struct cdcd_state *state,
                            struct cdcd_error *err)
{
    if (p->source_ops->open(&p->source, p->config->source_config, &p->source_env, err) != CDCD_OK)
        return CDCD_ERROR;
    if (p->source_ops->names) {
        const char *connector = p->source_ops->connector;
        const char *schema = p->source_ops->source_schema_name;
        p->source_ops->names(p->source, &connector, &schema);
        cdcd_encoder_name_source(p->encoder, connector, schema);
    }
    enum plan plan = decide(p, state);
    if (p->start_over) {
        cdcd_state_free(state);
        plan = PLAN_SNAPSHOT;
        p->start_over = false;
    }
    if (plan == PLAN_NOTHING) {
        cdcd_info("pipeline", "the snapshot is already complete: nothing to do in "
                              "snapshot.mode initial_only");
        return CDCD_END;
    }
    enum cdcd_rc rc = CDCD_OK;
    if (plan == PLAN_STREAM)
        rc = resume_stream(p, state, &plan, err);
    if (rc == CDCD_OK && plan == PLAN_SNAPSHOT)
        rc = take_snapshot(p, state, err);
    if (rc != CDCD_OK)
        return rc;
    p->ran_before = true;
    cdcd_pipeline_phase(p, CDCD_PHASE_STREAM);
    rc = cdcd_pipeline_stream(p, NULL, err);
    p->start_over = rc == CDCD_ERROR && is_loss(p, err);
    return rc;
}

/* Takes all batches that are still in the full queue back to the free one. */
static void recall_batches(struct cdcd_pipeline *p)
{
    struct cdcd_batch *b;
    while ((b = cdcd_queue_pop(&p->full, 0)))
        cdcd_publish_batch_done(p, b);
}

static enum cdcd_rc run_session(struct cdcd_pipeline *p, struct cdcd_error *err)
{
    struct cdcd_state state;
    cdcd_pipeline_phase(p, CDCD_PHASE_CONNECT);
    cdcd_publish_reset(p);
    cdcd_encoder_session(p->encoder);
    cdcd_queue_reopen(&p->free);
    cdcd_queue_reopen(&p->full);
    if (load_state(p, &state, err) != CDCD_OK)
        return CDCD_ERROR;
    if (state.position) {
        pthread_mutex_lock(&p->lock);
        free(p->shown_position);
        p->shown_position = cdcd_xstrdup(state.position);
        pthread_mutex_unlock(&p->lock);
    }
    recall_batches(p);
    p->next_idle = 0;
    p->next_heartbeat = 0;

    pthread_t publish;
    if (pthread_create(&publish, NULL, cdcd_publish_main, p) != 0) {
        cdcd_state_free(&state);
        return cdcd_error_set(err, CDCD_ERR_FATAL,
                              "cannot start the publish thread: out of "
                              "threads or memory");
    }
    enum cdcd_rc rc = capture(p, &state, err);
    cdcd_state_free(&state);
    cdcd_pipeline_phase(p, CDCD_PHASE_DRAIN);
    cdcd_queue_close(&p->full);
    pthread_join(publish, NULL);
    if (p->source) {
        serve_acks(p);
        struct cdcd_error last = {0};
        if (rc != CDCD_ERROR)
            p->source_ops->idle(p->source, cdcd_now_ms(), &last);
        p->source_ops->close(p->source);
        p->source = NULL;
    }
    /* The publish thread's error is the cause of a capture that ended without one of its own. */
    if (p->publish_bad && (rc != CDCD_ERROR || err->class == CDCD_ERR_NONE)) {
        *err = p->publish_error;
        rc = CDCD_ERROR;
    }
    recall_batches(p);
    return rc == CDCD_ERROR ? CDCD_ERROR : CDCD_OK;
}

/* ---- sessions until done ---- */

static void backoff(struct cdcd_pipeline *p, int64_t *delay)
{
    unsigned seed = (unsigned)cdcd_wallclock_us();
    int64_t jitter = *delay / 2 + rand_r(&seed) % (*delay / 2 + 1);
    int64_t until = cdcd_now_ms() + jitter;
    const struct timespec nap = {0, 1000000 * (jitter < 20 ? jitter + 1 : 20)};
    cdcd_pipeline_phase(p, CDCD_PHASE_BACKOFF);
    while (!atomic_load(&p->stop) && cdcd_now_ms() < until)
        nanosleep(&nap, NULL);
    *delay *= 2;
    if (*delay > p->config->retry_delay_max_ms)
        *delay = p->config->retry_delay_max_ms;
}

static bool may_retry(struct cdcd_pipeline *p, const struct cdcd_error *err, int64_t retries)
{
    if (err->class != CDCD_ERR_RETRY || atomic_load(&p->stop))
        return false;
    return p->config->max_retries < 0 || retries < p->config->max_retries;
}

static int64_t first_delay(const struct cdcd_pipeline *p)
{
    int64_t most = p->config->retry_delay_max_ms;
    return most < BACKOFF_FIRST_MS ? most : BACKOFF_FIRST_MS;
}

/* The lock is held. */
static void set_last_error(struct cdcd_pipeline *p, const char *text)
{
    snprintf(p->stats.last_error, sizeof p->stats.last_error, "%.500s", text);
    p->stats.last_error_us = cdcd_wallclock_us();
}

static void note_error(struct cdcd_pipeline *p, const struct cdcd_error *err, bool again)
{
    pthread_mutex_lock(&p->lock);
    set_last_error(p, err->text);
    p->stats.retries += again;
    p->stats.failed = !again;
    pthread_mutex_unlock(&p->lock);
}

enum cdcd_rc cdcd_pipeline_run(struct cdcd_pipeline *p, struct cdcd_error *err)
{
    int64_t delay = first_delay(p), retries = 0;
    enum cdcd_rc rc;
    for (;;) {
        *err = (struct cdcd_error){0};
        rc = CDCD_OK;
        if (!p->sink)
            rc = p->sink_ops->open(&p->sink, p->config->sink_config, &p->sink_env, err);
        if (rc == CDCD_OK)
            rc = run_session(p, err);
        if (rc != CDCD_ERROR || atomic_load(&p->stop))
            break;
        if (p->progress) {
            delay = first_delay(p);
            retries = 0;
        }
        /* What was read before the loss is drained: a new session takes the snapshot. */
        bool again = may_retry(p, err, retries) || p->start_over;
        note_error(p, err, again);
        if (!again)
            break;
        retries++;
        cdcd_warn("pipeline", "%s; trying again in %lld ms", err->text, (long long)delay);
        backoff(p, &delay);
    }
    /* A stop that meets a broken connection is still an orderly end: nothing is lost. */
    if (rc == CDCD_ERROR && atomic_load(&p->stop) && err->class == CDCD_ERR_RETRY) {
        cdcd_warn("pipeline", "stopped while not connected: %s", err->text);
        rc = CDCD_OK;
    }
    cdcd_pipeline_phase(p, CDCD_PHASE_STOPPED);
    return rc;
}

/* ---- making and freeing ---- */

static bool stopping(void *ctx)
{
    return cdcd_pipeline_ending(ctx);
}

static void sink_waits(void *ctx, const char *why)
{
    struct cdcd_pipeline *p = ctx;
    pthread_mutex_lock(&p->lock);
    set_last_error(p, why);
    pthread_mutex_unlock(&p->lock);
}

static enum cdcd_rc look(void *ctx, struct cdcd_place *place, struct cdcd_error *err)
{
    const struct cdcd_pipeline *p = ctx;
    return p->source_ops->look(p->config->source_config, &p->source_env, place, err);
}

void cdcd_pipeline_sink_env(const struct cdcd_config *c, struct cdcd_sink_env *out)
{
    const struct cdcd_source_ops *source = c->source_plugin->source;
    *out = (struct cdcd_sink_env){
        .pipeline = c->name,
        .topic_prefix = c->topic_prefix,
        .stateless = source->keeps_position && c->sink_plugin->sink->idempotent,
        .version = source->version,
        .placeholder = c->format.unavailable_value_placeholder,
        .source_config = c->source_plugin == c->sink_plugin ? c->source_config : NULL,
    };
}

static bool wants_schemas(const struct cdcd_pipeline *p)
{
    return p->sink_ops->wants_schemas && p->sink_ops->wants_schemas(p->config->sink_config);
}

/* What a source of records cannot do. */
static enum cdcd_rc check_options(const struct cdcd_pipeline *p, struct cdcd_error *err)
{
    const char *source = p->config->source_plugin->name;
    if (p->source_ops->records && p->options.snapshot_only)
        return cdcd_error_set(
            err, CDCD_ERR_CONFIG,
            "source %s has no snapshot: its topics hold the newest record of each "
            "key. cdcd replay reads them from the beginning",
            source);
    if (p->options.replay && !p->source_ops->records)
        return cdcd_error_set(err, CDCD_ERR_CONFIG,
                              "replay reads topics again, and source %s has none: put Kafka in "
                              "between, or take a snapshot (cdcd snapshot)",
                              source);
    return CDCD_OK;
}

void cdcd_pipeline_source_env(const struct cdcd_config *c, struct cdcd_source_env *out)
{
    *out = (struct cdcd_source_env){
        .pipeline = c->name,
        .topic_prefix = c->topic_prefix,
        .tx_metadata = c->format.provide_transaction_metadata,
        .want_truncate = !cdcd_debezium_skips(&c->format, CDCD_OP_TRUNCATE),
        .want_message = !cdcd_debezium_skips(&c->format, CDCD_OP_MESSAGE),
        .want_ddl = c->format.include_schema_changes,
        .state_dir = c->state_dir,
        .max_event_bytes = c->max_event_bytes,
        .workers = (int)c->snapshot_workers,
        .when_needed = c->snapshot_mode == CDCD_SNAPSHOT_WHEN_NEEDED,
    };
}

enum cdcd_rc cdcd_pipeline_new(const struct cdcd_config *config,
                               const struct cdcd_run_options *options, struct cdcd_pipeline **out,
                               struct cdcd_error *err)
{
    struct cdcd_pipeline *p = cdcd_xcalloc(1, sizeof *p);
    *out = NULL;
    p->config = config;
    p->options = *options;
    p->source_ops = config->source_plugin->source;
    p->sink_ops = config->sink_plugin->sink;
    cdcd_pipeline_source_env(config, &p->source_env);
    cdcd_pipeline_sink_env(config, &p->sink_env);
    p->sink_env.ctx = p;
    p->sink_env.batch_done = cdcd_publish_batch_done;
    p->sink_env.durable = cdcd_publish_durable;
    p->sink_env.stateless = p->sink_env.stateless && !options->replay;
    p->sink_env.replay = options->replay;
    p->sink_env.stopping = stopping;
    p->sink_env.waits = sink_waits;
    p->sink_env.look = p->source_ops->look ? look : NULL;
    p->source_env.want_schemas = wants_schemas(p);
    p->source_env.replay = options->replay;
    p->source_env.replay_from = options->replay_from;
    p->source_env.replay_to = options->replay_to;
    p->source_env.ephemeral = options->ephemeral;
    p->source_env.stopping = stopping;
    p->source_env.notes = p->notes = cdcd_notes_new();
    p->source_env.ctx = p;
    p->stats.lag_bytes = p->stats.lag_ms = p->stats.commit_age_ms = -1;
    pthread_mutex_init(&p->lock, NULL);
    cdcd_queue_init(&p->free);
    cdcd_queue_init(&p->full);
    for (int64_t i = 0; i < config->batches; i++)
        cdcd_queue_push(&p->free, cdcd_batch_new());
    struct cdcd_encoder_env env = {
        .pipeline = config->name,
        .topic_prefix = config->topic_prefix,
        .source = p->source_ops,
        .compacted_truncates = strcmp(config->sink_plugin->name, "kafka") == 0,
        .schemas = wants_schemas(p),
    };
    if (check_options(p, err) != CDCD_OK ||
        cdcd_encoder_new(&config->format, &env, &p->encoder, err) != CDCD_OK) {
        cdcd_pipeline_free(p);
        return CDCD_ERROR;
    }
    *out = p;
    return CDCD_OK;
}

enum cdcd_rc cdcd_pipeline_rebuild(struct cdcd_pipeline *p, enum cdcd_rebuild step,
                                   struct cdcd_report *report, struct cdcd_error *err)
{
    if (!p->sink_ops->rebuild)
        return cdcd_error_set(err, CDCD_ERR_CONFIG,
                              "sink %s cannot be built anew beside the live one",
                              p->config->sink_plugin->name);
    if (!p->sink &&
        p->sink_ops->open(&p->sink, p->config->sink_config, &p->sink_env, err) != CDCD_OK)
        return CDCD_ERROR;
    return p->sink_ops->rebuild(p->sink, step, report, err);
}

void cdcd_pipeline_free(struct cdcd_pipeline *p)
{
    if (!p)
        return;
    if (p->sink)
        p->sink_ops->close(p->sink);
    cdcd_queue_destroy(&p->full);
    cdcd_queue_destroy(&p->free);
    cdcd_encoder_free(p->encoder);
    cdcd_publish_reset(p);
    free(p->pending);
    free(p->remember);
    free(p->memory);
    cdcd_publish_take_notes(p);
    cdcd_notes_free(p->notes);
    free(p->last_acked);
    free(p->shown_position);
    pthread_mutex_destroy(&p->lock);
    free(p);
}

void cdcd_pipeline_stats(struct cdcd_pipeline *p, struct cdcd_stats *out)
{
    struct cdcd_buf text;
    cdcd_buf_init(&text, 0);
    pthread_mutex_lock(&p->lock);
    int64_t now = cdcd_now_ms();
    *out = p->stats;
    out->commit_age_ms = p->committed_ms ? now - p->committed_ms : -1;
    if (p->shown_position && p->source_ops->describe)
        p->source_ops->describe(cdcd_slice_str(p->shown_position), &text);
    else if (p->shown_position)
        cdcd_buf_adds(&text, p->shown_position);
    /* The source is not behind when it is the sink that does not take what was read. */
    if (out->phase == CDCD_PHASE_STREAM && p->written_seq != p->durable_seq &&
        out->lag_ms < now - p->unpublished_ms)
        out->lag_ms = now - p->unpublished_ms;
    pthread_mutex_unlock(&p->lock);
    snprintf(out->position, sizeof out->position, "%s", cdcd_buf_cstr(&text));
    cdcd_buf_free(&text);
}
