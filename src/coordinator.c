/*
 * The snapshot coordinator.
 *
 *   first run:   view at P  -> store P in the sink -> read all chunks -> stream from P
 *   killed, run  view at P2 -> stream from the stored position up to P2, hold the stream ->
 *   again:       read the chunks that are left -> let the stream go on
 *
 * The view is exact: it holds every transaction before its position and none after. So rows of
 * a resumed snapshot stand in the output exactly where they belong in the log, and no key ever
 * goes back to an older value.
 *
 * Tables go one after another in order of their label, so that "what is done" is one label plus
 * the unread chunks of one table. Several workers read chunks of the same table. All batches
 * pass through submit() under one lock, which fixes their order, keeps one batch back (its last
 * row may be the last of its table, or of all), and writes into each batch the state that holds
 * once that batch is durable.
 */
#include "pipeline_int.h"

#include "progress.h"

#include <cdcd/log.h>
#include <cdcd/pattern.h>

#include <stdlib.h>
#include <time.h>

/* Numbers of chunks go into cdcd.pos: chunk << 40 | row, times four, in 64 bits. */
#define MAX_CHUNKS (1u << 22)

struct chunk {
    uint32_t number;
    char *begin, *end; /* begin moves on with what is pushed */
    bool taken, done;
};

/* Progress that comes after the batch that is held back. */
struct update {
    struct chunk *chunk;
    char *cursor; /* owned; NULL: done */
};

struct coordinator {
    struct cdcd_pipeline *p;
    char *position; /* of the view */
    struct cdcd_strlist only;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool quit;      /* no more work: finished or failed */
    bool failed;    /* error is set */
    bool abandoned; /* the session ends */
    struct cdcd_error error;
    unsigned alive; /* workers */

    /* the table at work */
    const struct cdcd_snapshot_table *table;
    uint64_t passed; /* fingerprint of the tables before it */
    struct chunk *chunks;
    size_t nchunks, next_chunk, unfinished;
    uint32_t next_number;

    /* publishing order */
    struct cdcd_batch *held;
    struct update *updates;
    size_t nupdates, updates_cap;
    bool first_row_pushed, first_in_table;
    struct cdcd_progress *progress;
};

/* ---- state and order; under lock ---- */

static struct cdcd_slice render_state(struct coordinator *c, struct cdcd_arena *a)
{
    struct cdcd_state s = {.position = c->position,
                           .in_snapshot = true,
                           .table = (char *)(c->table ? c->table->label : ""),
                           .identity = (char *)(c->table ? c->table->identity : ""),
                           .passed = c->passed,
                           .only = c->only};
    struct cdcd_range *ranges = cdcd_xcalloc(c->nchunks + 1, sizeof *ranges);
    for (size_t i = 0; i < c->nchunks; i++) {
        if (!c->chunks[i].done)
            ranges[s.nranges++] = (struct cdcd_range){c->chunks[i].begin, c->chunks[i].end};
    }
    s.ranges = ranges;
    struct cdcd_buf text;
    cdcd_buf_init(&text, 0);
    cdcd_state_write(&s, &text);
    struct cdcd_slice out = {cdcd_arena_dup(a, text.ptr, text.len), text.len};
    cdcd_buf_free(&text);
    free(ranges);
    return out;
}

static void apply_update(struct update *u)
{
    if (u->cursor) {
        free(u->chunk->begin);
        u->chunk->begin = u->cursor;
    } else {
        u->chunk->done = true;
    }
}

static void add_update(struct coordinator *c, struct chunk *chunk, char *cursor)
{
    if (c->nupdates == c->updates_cap) {
        c->updates_cap = c->updates_cap ? c->updates_cap * 2 : 16;
        c->updates = cdcd_xrealloc(c->updates, c->updates_cap * sizeof *c->updates);
    }
    c->updates[c->nupdates++] = (struct update){chunk, cursor};
}

/* Pushes the batch that was held back, with the state that holds after it. */
static void release_held(struct coordinator *c)
{
    for (size_t i = 0; i < c->nupdates; i++)
        apply_update(&c->updates[i]);
    c->nupdates = 0;
    struct cdcd_batch *b = c->held;
    if (!b)
        return;
    c->held = NULL;
    b->state = render_state(c, &b->arena);
    cdcd_pipeline_push(c->p, b);
}

/* What is special about the first row of a batch. */
static void mark_first(struct coordinator *c, struct cdcd_event *e)
{
    if (!c->p->source_ops->few_marks && !c->first_row_pushed)
        e->snapshot = CDCD_SNAP_FIRST;
    else if (!c->p->source_ops->few_marks && c->first_in_table)
        e->snapshot = CDCD_SNAP_FIRST_IN_TABLE;
    c->first_row_pushed = true;
    c->first_in_table = false;
}

/* Takes the batch. */
static void submit(struct coordinator *c, struct chunk *chunk, struct cdcd_batch *b)
{
    char *cursor = b->chunk_cursor.ptr ? cdcd_xstrndup(b->chunk_cursor.ptr, b->chunk_cursor.len)
                                       : NULL;
    bool done = b->chunk_done;
    for (struct cdcd_event *e = b->events; e; e = e->next)
        e->snapshot = CDCD_SNAP_TRUE;
    pthread_mutex_lock(&c->lock);
    if (b->nevents > 0) {
        release_held(c);
        mark_first(c, b->events);
        c->held = b;
        cdcd_progress_rows(c->progress, b->nevents);
        cdcd_pipeline_snapshot_rows(c->p, b->nevents);
    } else {
        cdcd_publish_batch_done(c->p, b);
    }
    if (cursor)
        add_update(c, chunk, cursor);
    if (done) {
        /* A table's last chunk ends last: a source may put there what must be read again as long
         * as any other chunk of the table is unread. */
        bool last = chunk == &c->chunks[c->nchunks - 1];
        while (last && c->unfinished > 1 && !c->quit)
            pthread_cond_wait(&c->changed, &c->lock);
        if (!last || c->unfinished == 1) {
            add_update(c, chunk, NULL);
            c->unfinished--;
        }
        pthread_cond_broadcast(&c->changed);
    }
    pthread_mutex_unlock(&c->lock);
}

/* ---- workers ---- */

static void fail(struct coordinator *c, const struct cdcd_error *err)
{
    pthread_mutex_lock(&c->lock);
    if (!c->failed && err->class != CDCD_ERR_NONE) {
        c->failed = true;
        c->error = *err;
    }
    c->abandoned = c->abandoned || err->class == CDCD_ERR_NONE;
    c->quit = true;
    pthread_cond_broadcast(&c->changed);
    pthread_mutex_unlock(&c->lock);
}

static bool quitting(struct coordinator *c)
{
    pthread_mutex_lock(&c->lock);
    bool q = c->quit;
    pthread_mutex_unlock(&c->lock);
    return q || cdcd_pipeline_ending(c->p);
}

static struct chunk *next_chunk(struct coordinator *c, const struct cdcd_snapshot_table **table)
{
    struct chunk *found = NULL;
    pthread_mutex_lock(&c->lock);
    while (!c->quit && c->next_chunk >= c->nchunks)
        pthread_cond_wait(&c->changed, &c->lock);
    if (!c->quit) {
        found = &c->chunks[c->next_chunk++];
        *table = c->table;
    }
    pthread_mutex_unlock(&c->lock);
    return found;
}

static struct cdcd_batch *worker_take(struct coordinator *c)
{
    struct cdcd_batch *b = NULL;
    while (!b && !quitting(c))
        b = cdcd_queue_pop(&c->p->free, 100);
    return b;
}

/* OK: the chunk is finished. AGAIN: the session ends. */
static enum cdcd_rc read_chunk(struct coordinator *c, struct cdcd_worker *w,
                               const struct cdcd_snapshot_table *table, struct chunk *chunk,
                               struct cdcd_error *err)
{
    const struct cdcd_source_ops *ops = c->p->source_ops;
    char *begin = cdcd_xstrdup(chunk->begin); /* chunk->begin moves while we read */
    struct cdcd_chunk range = {chunk->number, begin, chunk->end};
    enum cdcd_rc rc = ops->worker_begin(w, table, &range, err);
    while (rc == CDCD_OK) {
        struct cdcd_batch *b = worker_take(c);
        if (!b) {
            rc = CDCD_AGAIN;
            break;
        }
        rc = ops->worker_read(w, b, err);
        if (rc == CDCD_ERROR) {
            cdcd_publish_batch_done(c->p, b);
            break;
        }
        b->snapshot = true;
        b->chunk = chunk->number;
        b->chunk_done = rc == CDCD_END;
        submit(c, chunk, b);
    }
    free(begin);
    if (rc == CDCD_ERROR)
        return cdcd_error_context(err, "snapshot of %s", table->label);
    return rc == CDCD_END ? CDCD_OK : rc;
}

static void *worker_main(void *arg)
{
    struct coordinator *c = arg;
    const struct cdcd_source_ops *ops = c->p->source_ops;
    struct cdcd_error err = {0};
    struct cdcd_worker *w = NULL;
    const struct cdcd_snapshot_table *table = NULL;
    struct chunk *chunk;
    enum cdcd_rc rc = ops->worker_open(c->p->source, &w, &err);
    while (rc == CDCD_OK && (chunk = next_chunk(c, &table)))
        rc = read_chunk(c, w, table, chunk, &err);
    if (rc != CDCD_OK)
        fail(c, &err);
    if (w)
        ops->worker_close(w);
    pthread_mutex_lock(&c->lock);
    c->alive--;
    pthread_cond_broadcast(&c->changed);
    pthread_mutex_unlock(&c->lock);
    return NULL;
}

/* ---- the capture thread's side ---- */

static void wait_changed(struct coordinator *c, int ms)
{
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_nsec += (long)ms * 1000000;
    until.tv_sec += until.tv_nsec / 1000000000;
    until.tv_nsec %= 1000000000;
    pthread_cond_timedwait(&c->changed, &c->lock, &until);
}

/* Waits for the workers to finish the table, and keeps the source alive meanwhile. */
static enum cdcd_rc wait_table(struct coordinator *c, struct cdcd_error *err)
{
    enum cdcd_rc rc = CDCD_OK;
    pthread_mutex_lock(&c->lock);
    while (rc == CDCD_OK && c->unfinished > 0) {
        wait_changed(c, 100);
        if (c->failed) {
            *err = c->error;
            rc = CDCD_ERROR;
        } else if (c->abandoned) {
            rc = CDCD_AGAIN;
        } else if (c->unfinished > 0) {
            pthread_mutex_unlock(&c->lock);
            if (cdcd_pipeline_ending(c->p))
                rc = CDCD_AGAIN;
            else if (cdcd_pipeline_serve(c->p, err) == CDCD_ERROR)
                rc = CDCD_ERROR;
            cdcd_progress_show(c->progress);
            pthread_mutex_lock(&c->lock);
        }
    }
    pthread_mutex_unlock(&c->lock);
    return rc;
}

static void free_chunks(struct coordinator *c)
{
    for (size_t i = 0; i < c->nchunks; i++) {
        free(c->chunks[i].begin);
        free(c->chunks[i].end);
    }
    free(c->chunks);
    c->chunks = NULL;
    c->nchunks = c->next_chunk = 0;
}

/* The chunks of a table: planned anew, or those that an earlier run left. Not under lock. */
static enum cdcd_rc plan_table(struct coordinator *c, const struct cdcd_snapshot_table *t,
                               const struct cdcd_state *left, struct chunk **out, size_t *n,
                               struct cdcd_error *err)
{
    bool resumed = left && strcmp(left->table, t->label) == 0;
    if (resumed && strcmp(left->identity, t->identity) != 0) {
        cdcd_warn("snapshot",
                  "%s was rewritten or truncated since its snapshot began: reading it again from "
                  "its start",
                  t->label);
        resumed = false;
    }
    struct cdcd_chunks planned = {0};
    if (!resumed && c->p->source_ops->snapshot_plan(c->p->source, t, &planned, err) != CDCD_OK)
        return CDCD_ERROR;
    *n = resumed ? left->nranges : planned.n;
    *out = cdcd_xcalloc(*n + 1, sizeof **out);
    for (size_t i = 0; i < *n; i++) {
        (*out)[i].number = c->next_number++;
        (*out)[i].begin = cdcd_xstrdup(resumed ? left->ranges[i].begin : planned.items[i].begin);
        (*out)[i].end = cdcd_xstrdup(resumed ? left->ranges[i].end : planned.items[i].end);
    }
    if (!resumed)
        cdcd_arena_free(&planned.arena);
    if (c->next_number >= MAX_CHUNKS)
        return cdcd_error_set(err, CDCD_ERR_FATAL, "more than %u chunks: raise the chunk size",
                              MAX_CHUNKS);
    return CDCD_OK;
}

/* Of a table under its name; those of several tables are added up, in any order. */
static uint64_t fingerprint(const struct cdcd_snapshot_table *t)
{
    uint64_t h = UINT64_C(14695981039346656037); /* FNV-1a */
    for (const char *p = t->label; *p; p++)
        h = (h ^ (unsigned char)*p) * UINT64_C(1099511628211);
    for (unsigned i = 0; i < 8; i++)
        h = (h ^ (t->id >> 8 * i & 0xff)) * UINT64_C(1099511628211);
    return h;
}

/* Whether the tables before the one that is left are those that are done. A rename may have
 * brought there one that was not read; which one, nobody knows. */
static bool passed_are_done(struct coordinator *c, const struct cdcd_snapshot_tables *tables,
                            const struct cdcd_state *left)
{
    uint64_t passed = 0;
    for (size_t i = 0; i < tables->n; i++) {
        if (strcmp(tables->items[i].label, left->table) < 0)
            passed += fingerprint(&tables->items[i]);
    }
    if (passed != left->passed) {
        cdcd_warn("snapshot",
                  "tables were renamed, made or dropped since the snapshot began, and one that is "
                  "not read yet may stand before %s now: reading all tables again",
                  left->table);
        return false;
    }
    c->passed = passed;
    return true;
}

/* Between two tables: what is held back is the last row of its table so far. */
static void begin_table(struct coordinator *c, const struct cdcd_snapshot_table *t,
                        struct chunk *chunks, size_t n)
{
    pthread_mutex_lock(&c->lock);
    if (c->held && c->held->last_event->snapshot != CDCD_SNAP_FIRST && !c->p->source_ops->few_marks)
        c->held->last_event->snapshot = CDCD_SNAP_LAST_IN_TABLE;
    /* The held batch's state would name chunks that are freed now: all of them are done. */
    for (size_t i = 0; i < c->nupdates; i++)
        apply_update(&c->updates[i]);
    c->nupdates = 0;
    free_chunks(c);
    if (c->table)
        c->passed += fingerprint(c->table);
    c->table = t;
    c->chunks = chunks;
    c->nchunks = c->unfinished = n;
    c->first_in_table = true;
    pthread_cond_broadcast(&c->changed);
    pthread_mutex_unlock(&c->lock);
}

static enum cdcd_rc read_tables(struct coordinator *c, const struct cdcd_snapshot_tables *tables,
                                const struct cdcd_state *left, struct cdcd_error *err)
{
    if (left && !passed_are_done(c, tables, left))
        left = NULL;
    for (size_t i = 0; i < tables->n; i++) {
        const struct cdcd_snapshot_table *t = &tables->items[i];
        if (left && strcmp(t->label, left->table) < 0)
            continue;
        struct chunk *chunks = NULL;
        size_t n = 0;
        if (plan_table(c, t, left, &chunks, &n, err) != CDCD_OK) {
            free(chunks);
            return CDCD_ERROR;
        }
        cdcd_progress_table(c->progress, t->label, t->rows, i, tables->n);
        cdcd_pipeline_snapshot_table(c->p, t->label, t->rows, i, tables->n);
        begin_table(c, t, chunks, n);
        enum cdcd_rc rc = wait_table(c, err);
        if (rc != CDCD_OK)
            return rc;
        cdcd_progress_table_done(c->progress);
    }
    return CDCD_OK;
}

/* The last row of all, and the state in which the snapshot is complete. */
static enum cdcd_rc finish(struct coordinator *c, struct cdcd_error *err)
{
    pthread_mutex_lock(&c->lock);
    if (c->held)
        c->held->last_event->snapshot = CDCD_SNAP_LAST;
    release_held(c);
    pthread_mutex_unlock(&c->lock);
    struct cdcd_batch *b = cdcd_pipeline_take(c->p, err);
    if (!b)
        return err->class != CDCD_ERR_NONE ? CDCD_ERROR : CDCD_AGAIN;
    b->position.len = strlen(c->position);
    b->position.ptr = cdcd_arena_dup(&b->arena, c->position, b->position.len);
    b->caught_up = true;
    cdcd_pipeline_push(c->p, b);
    return CDCD_OK;
}

static enum cdcd_rc run_workers(struct coordinator *c, const struct cdcd_snapshot_tables *tables,
                                const struct cdcd_state *left, struct cdcd_error *err)
{
    int n = c->p->source_env.workers;
    pthread_t *threads = cdcd_xcalloc((size_t)n, sizeof *threads);
    int started = 0;
    enum cdcd_rc rc = CDCD_OK;
    for (; started < n; started++) {
        pthread_mutex_lock(&c->lock);
        c->alive++;
        pthread_mutex_unlock(&c->lock);
        if (pthread_create(&threads[started], NULL, worker_main, c) != 0) {
            pthread_mutex_lock(&c->lock);
            c->alive--;
            pthread_mutex_unlock(&c->lock);
            rc = cdcd_error_set(err, CDCD_ERR_FATAL, "cannot start snapshot worker %d", started);
            break;
        }
    }
    if (rc == CDCD_OK)
        rc = read_tables(c, tables, left, err);
    pthread_mutex_lock(&c->lock);
    c->quit = true;
    pthread_cond_broadcast(&c->changed);
    pthread_mutex_unlock(&c->lock);
    for (int i = 0; i < started; i++)
        pthread_join(threads[i], NULL);
    free(threads);
    if (rc == CDCD_OK)
        rc = finish(c, err);
    return rc;
}

/* The first state: where the stream will start, and that no table has been begun. It is durable
 * before the first row is read. */
static enum cdcd_rc store_begin(struct coordinator *c, struct cdcd_error *err)
{
    struct cdcd_batch *b = cdcd_pipeline_take(c->p, err);
    if (!b)
        return err->class != CDCD_ERR_NONE ? CDCD_ERROR : CDCD_AGAIN;
    b->state = render_state(c, &b->arena);
    b->caught_up = true;
    if (c->p->source_ops->notes)
        c->p->source_ops->notes(c->p->source, b);
    cdcd_pipeline_push(c->p, b);
    return cdcd_pipeline_flush(c->p, err);
}

/* How many of the tables are read whole. */
static size_t tables_done(const struct cdcd_snapshot_tables *tables, const struct cdcd_state *left)
{
    size_t n = 0;
    int order;
    while (n < tables->n && ((order = strcmp(tables->items[n].label, left->table)) < 0 ||
                             (order == 0 && left->nranges == 0)))
        n++;
    return n;
}

/* A resumed snapshot: publishes the stream up to the new view and holds it there. Where it then
 * stands is the position from here on, not the view's own: a keepalive may have moved the stream
 * a little beyond the view, prepared transactions may hold its resume point back, and what it
 * has told the server as durable must not be taken back. */
static enum cdcd_rc catch_up(struct coordinator *c, const struct cdcd_state *state,
                             const struct cdcd_snapshot_tables *tables, struct cdcd_error *err)
{
    const struct cdcd_source_ops *ops = c->p->source_ops;
    struct cdcd_slice view = cdcd_slice_str(c->position);
    if (ops->start(c->p->source, cdcd_slice_str(state->position), err) != CDCD_OK ||
        ops->stop_at(c->p->source, view, err) != CDCD_OK)
        return CDCD_ERROR;
    cdcd_info("snapshot", "publishing the changes up to the new snapshot first");
    size_t done = state->in_snapshot ? tables_done(tables, state) : 0;
    struct cdcd_catch_up x = {.unfinished = state->in_snapshot ? state : NULL,
                              .follow = tables->items + done,
                              .nfollow = tables->n - done};
    cdcd_buf_init(&x.reached, 0);
    enum cdcd_rc rc = cdcd_pipeline_stream(c->p, &x, err);
    if (rc == CDCD_END && x.reached.len) {
        free(c->position);
        c->position = cdcd_xstrndup(x.reached.ptr, x.reached.len);
    }
    cdcd_buf_free(&x.reached);
    return rc == CDCD_END ? CDCD_OK : rc;
}

static void announce(struct cdcd_pipeline *p, const struct cdcd_snapshot_tables *tables)
{
    pthread_mutex_lock(&p->lock);
    p->announced = tables;
    pthread_mutex_unlock(&p->lock);
}

static bool same_list(const struct cdcd_strlist *a, const struct cdcd_strlist *b)
{
    for (size_t i = 0; i < a->n && i < b->n; i++) {
        if (strcmp(a->items[i], b->items[i]) != 0)
            return false;
    }
    return a->n == b->n;
}

/* An unfinished snapshot goes on with the tables it was begun for. */
static enum cdcd_rc note_scope(struct coordinator *c, const struct cdcd_state *state,
                               struct cdcd_error *err)
{
    const struct cdcd_strlist *only = c->p->options.only;
    if (state->in_snapshot && only && !same_list(only, &state->only))
        return cdcd_error_set(err, CDCD_ERR_CONFIG,
                              "a snapshot of %s is unfinished; end it first with `cdcd snapshot` "
                              "or `cdcd run` without --table, then ask for these tables",
                              state->only.n ? "other tables" : "all tables");
    if (state->in_snapshot)
        c->only = state->only;
    else if (only)
        c->only = *only;
    return CDCD_OK;
}

/* --table: labels or patterns. Of a snapshot that was begun, tables may be gone meanwhile. */
static enum cdcd_rc keep_wanted(const struct cdcd_strlist *only, bool begun,
                                struct cdcd_snapshot_tables *tables, struct cdcd_error *err)
{
    struct cdcd_patterns patterns;
    enum cdcd_rc rc = cdcd_patterns_compile(only, "--table", false, &patterns, err);
    size_t n = 0;
    for (size_t i = 0; rc == CDCD_OK && i < tables->n; i++) {
        bool wanted = cdcd_patterns_match(&patterns, tables->items[i].label);
        for (size_t k = 0; k < only->n && !wanted; k++)
            wanted = strcmp(only->items[k], tables->items[i].label) == 0;
        if (wanted)
            tables->items[n++] = tables->items[i];
    }
    cdcd_patterns_free(&patterns);
    if (rc != CDCD_OK)
        return rc;
    tables->n = n;
    if (n == 0 && !begun)
        return cdcd_error_set(err, CDCD_ERR_CONFIG,
                              "no captured table matches \"%s\" (a table is named SCHEMA.TABLE, "
                              "with MySQL DATABASE.TABLE)",
                              only->items[0]);
    if (n == 0)
        cdcd_warn("snapshot",
                  "the snapshot was asked for tables that are not there any more: \"%s\"",
                  only->items[0]);
    return CDCD_OK;
}

enum cdcd_rc cdcd_coordinator_run(struct cdcd_pipeline *p, const struct cdcd_state *state,
                                  struct cdcd_buf *position, bool *started, struct cdcd_error *err)
{
    const struct cdcd_source_ops *ops = p->source_ops;
    struct coordinator c = {.p = p};
    struct cdcd_snapshot_tables tables = {0};
    pthread_mutex_init(&c.lock, NULL);
    pthread_condattr_t attr;
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(&c.changed, &attr);
    pthread_condattr_destroy(&attr);
    bool again = state->position != NULL; /* the stream was begun before */
    const struct cdcd_state *left = state->in_snapshot ? state : NULL;
    enum cdcd_rc rc = note_scope(&c, state, err);
    if (rc == CDCD_OK)
        rc = ops->snapshot_begin(p->source, cdcd_slice_str(state->position), position, err);
    if (rc != CDCD_OK)
        goto out;
    c.position = cdcd_xstrndup(position->ptr, position->len);
    rc = ops->snapshot_tables(p->source, &tables, err);
    if (rc == CDCD_OK && c.only.n > 0)
        rc = keep_wanted(&c.only, state->in_snapshot, &tables, err);
    announce(p, &tables);
    if (rc == CDCD_OK)
        rc = again ? catch_up(&c, state, &tables, err) : store_begin(&c, err);
    if (rc == CDCD_OK) {
        c.progress = cdcd_progress_new(tables.n);
        rc = run_workers(&c, &tables, left, err);
        cdcd_progress_free(c.progress, rc == CDCD_OK);
        cdcd_pipeline_snapshot_table(p, "", -1, 0, 0);
    }
    announce(p, NULL);
    ops->snapshot_end(p->source);
    if (rc == CDCD_OK && again) {
        *started = true;
        rc = ops->stop_at(p->source, (struct cdcd_slice){NULL, 0}, err);
    }
out:
    if (c.held)
        cdcd_publish_batch_done(p, c.held);
    for (size_t i = 0; i < c.nupdates; i++)
        free(c.updates[i].cursor);
    free(c.updates);
    free_chunks(&c);
    cdcd_arena_free(&tables.arena);
    free(c.position);
    pthread_cond_destroy(&c.changed);
    pthread_mutex_destroy(&c.lock);
    return rc;
}
