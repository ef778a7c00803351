/*
 * The whole core against a model: a source that is an array of changes, a sink that keeps what it
 * committed, and errors at random moments. Whatever happens,
 *   - every change behind the first view's position is committed exactly once, in order,
 *   - every key's values never go back, and the last one equals the table,
 *   - a row of the snapshot is committed at most once,
 *   - a position that the source is told was durable before,
 *   - the notes that a session begins with are those of its position.
 */
#include "pipeline.h"

#include <cdcd/plugin.h>

#include <jansson.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#define KEYS      90
#define PER_TABLE 30
#define LOG_MAX   4000
#define NTABLES   (KEYS / PER_TABLE)

/* ---- the database ---- */

struct change {
    int key;
    bool delete_;
};

static struct model {
    struct change log[LOG_MAX];
    _Atomic int n; /* what is below it is never changed again */
    int limit;
    unsigned seed;
    int fail_one_in; /* 0: never */
    int64_t lose_at; /* the log is gone from here on, once; 0: never */
    int64_t first_view;
    _Atomic int64_t durable_p; /* newest committed position */
    /* Positions carry the time when they were made. The source forgets what lies before one that
     * it was told is durable, so no older one may ever come back. */
    _Atomic int64_t clock, told_q;
    struct cdcd_pipeline *pipeline;
    bool snapshot_only;  /* ends by itself */
    unsigned begun_with; /* the seed, for messages */
    bool with_rows;      /* there is a snapshot: the store is the table from its end on */
    bool complete;
    unsigned notes_seen; /* sessions that began with some */
} M;

static int rnd(int n)
{
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    pthread_mutex_lock(&lock);
    int r = rand_r(&M.seed) % n;
    pthread_mutex_unlock(&lock);
    return r;
}

static pthread_mutex_t model_lock = PTHREAD_MUTEX_INITIALIZER;

static void grow(int n)
{
    pthread_mutex_lock(&model_lock);
    for (int i = 0; i < n && M.n < M.limit; i++) {
        M.log[M.n] = (struct change){rnd(KEYS), rnd(5) == 0};
        M.n++;
    }
    pthread_mutex_unlock(&model_lock);
}

/* Index of the newest change of a key before position p, -1 when there is no such row. */
static int row_at(int key, int64_t p)
{
    for (int64_t i = p - 1; i >= 0; i--) {
        if (M.log[i].key == key)
            return M.log[i].delete_ ? -1 : (int)i;
    }
    return -1;
}

/* ---- the source ---- */

struct cdcd_source {
    const struct cdcd_source_env *env;
    struct cdcd_schema *schemas[NTABLES];
    int64_t next, barrier, view, begin;
};

struct cdcd_worker {
    struct cdcd_source *s;
    int key, end, row;
    uint32_t chunk;
};

static int64_t parse_member(struct cdcd_slice s, const char *name)
{
    json_t *o = json_loadb(s.ptr, s.len, 0, NULL);
    int64_t p = json_integer_value(json_object_get(o, name));
    json_decref(o);
    return p;
}

static int64_t parse_p(struct cdcd_slice s)
{
    return parse_member(s, "p");
}

static void add_position(struct cdcd_buf *out, int64_t p)
{
    cdcd_buf_addf(out, "{\"p\":%lld,\"q\":%lld}", (long long)p, (long long)++M.clock);
}

static struct cdcd_schema *make_schema(int t)
{
    char name[16];
    snprintf(name, sizeof name, "t%d", t);
    struct cdcd_schema *s = cdcd_schema_new("db", "s", name, 2);
    static const char *const names[] = {"k", "v"};
    for (int i = 0; i < 2; i++) {
        s->columns[i].name = names[i];
        s->columns[i].name_len = 1;
        s->columns[i].type = CDCD_T_INT32;
        s->columns[i].length = s->columns[i].scale = -1;
        s->columns[i].type_name = "int4";
    }
    s->columns[0].key = true;
    s->nkeys = 1;
    s->keys = cdcd_arena_alloc(&s->arena, sizeof *s->keys);
    s->keys[0] = 0;
    cdcd_schema_finish(s);
    return s;
}

/* The source notes of some keys which change is their newest one; forgotten when they have no
 * row. So the notes follow from the position. */
#define NOTED 12

static void add_note(struct cdcd_batch *b, int key, int row)
{
    char name[32], value[32];
    int n = snprintf(value, sizeof value, "%d", row);
    snprintf(name, sizeof name, "key %d", key);
    cdcd_batch_note(b, cdcd_slice_str(name),
                    (struct cdcd_slice){row < 0 ? NULL : value, (size_t)n});
}

/* All notes at the first position. Some may be there from before a loss. */
static void src_notes(struct cdcd_source *s, struct cdcd_batch *b)
{
    for (int k = 0; k < NOTED; k++)
        add_note(b, k, row_at(k, s->begin));
}

static void assert_notes(const struct cdcd_notes *notes, int64_t p)
{
    size_t n = 0;
    for (int k = 0; k < NOTED; k++) {
        char name[32], want[32] = "";
        int row = row_at(k, p);
        snprintf(name, sizeof name, "key %d", k);
        struct cdcd_slice is = cdcd_notes_get(notes, cdcd_slice_str(name));
        if (row >= 0)
            snprintf(want, sizeof want, "%d", row);
        n += row >= 0;
        if ((row >= 0) != (is.ptr != NULL) || !cdcd_slice_eq(is, cdcd_slice_str(want)))
            fail_msg("seed %u: at %lld note \"%s\" is %.*s, not %s", M.begun_with, (long long)p,
                     name, (int)is.len, is.ptr ? is.ptr : "", want);
    }
    assert_int_equal(cdcd_notes_count(notes), n);
}

static enum cdcd_rc src_open(struct cdcd_source **out, const void *config,
                             const struct cdcd_source_env *env, struct cdcd_error *err)
{
    (void)config, (void)err;
    struct cdcd_source *s = cdcd_xcalloc(1, sizeof *s);
    s->env = env;
    for (int t = 0; t < NTABLES; t++)
        s->schemas[t] = make_schema(t);
    s->barrier = -1;
    *out = s;
    return CDCD_OK;
}

static void src_close(struct cdcd_source *s)
{
    for (int t = 0; t < NTABLES; t++)
        cdcd_schema_unref(s->schemas[t]);
    free(s);
}

static enum cdcd_rc src_resume(struct cdcd_source *s, struct cdcd_slice from,
                               struct cdcd_buf *position, struct cdcd_error *err)
{
    (void)err;
    if (!from.ptr) {
        M.first_view = s->begin = M.n;
        add_position(position, M.n);
        return CDCD_OK;
    }
    assert_true(parse_p(from) <= M.durable_p);
    assert_true(parse_member(from, "q") >= M.told_q);
    assert_notes(s->env->notes, parse_p(from));
    M.notes_seen += cdcd_notes_count(s->env->notes) > 0;
    cdcd_buf_add(position, from.ptr, from.len);
    return CDCD_OK;
}

static enum cdcd_rc src_start(struct cdcd_source *s, struct cdcd_slice from, struct cdcd_error *err)
{
    (void)err;
    s->next = parse_p(from);
    return CDCD_OK;
}

static void add_row(struct cdcd_source *s, struct cdcd_batch *b, enum cdcd_op op, int key,
                    int64_t value, struct cdcd_pos pos)
{
    struct cdcd_event *e = cdcd_batch_event(b, op, s->schemas[key / PER_TABLE]);
    struct cdcd_cell *cells = cdcd_batch_cells(b, 2);
    cells[0] = cdcd_cell_int(key);
    cells[1] = cdcd_cell_int(value);
    if (op == CDCD_OP_DELETE)
        e->before = cells;
    else
        e->after = cells;
    e->pos = pos;
    e->ts_us = 1;
}

static enum cdcd_rc src_read(struct cdcd_source *s, struct cdcd_batch *b, int64_t deadline_ms,
                             struct cdcd_error *err)
{
    (void)deadline_ms;
    grow(rnd(4));
    int n = 0, most = 1 + rnd(5);
    while (n < most && s->next < M.n && s->next != s->barrier) {
        struct change c = M.log[s->next];
        add_row(s, b, c.delete_ ? CDCD_OP_DELETE : CDCD_OP_UPDATE, c.key, s->next,
                (struct cdcd_pos){(uint64_t)s->next, 1, true});
        if (c.key < NOTED)
            add_note(b, c.key, c.delete_ ? -1 : (int)s->next);
        s->next++;
        n++;
    }
    if (M.fail_one_in && rnd(M.fail_one_in) == 0)
        return cdcd_error_set(err, CDCD_ERR_RETRY, "the source is gone");
    if (M.lose_at && s->next >= M.lose_at) {
        M.lose_at = 0;
        return cdcd_error_set(err, CDCD_ERR_LOSS, "the log is gone");
    }
    if (n > 0 || s->next == s->barrier) {
        struct cdcd_buf text;
        cdcd_buf_init(&text, 0);
        add_position(&text, s->next);
        b->position.ptr = cdcd_arena_dup(&b->arena, text.ptr, text.len);
        b->position.len = text.len;
        cdcd_buf_free(&text);
        b->caught_up = s->next == M.n;
    }
    if (s->next == s->barrier)
        return CDCD_END;
    return n ? CDCD_OK : CDCD_AGAIN;
}

static enum cdcd_rc src_stop_at(struct cdcd_source *s, struct cdcd_slice position,
                                struct cdcd_error *err)
{
    (void)err;
    s->barrier = position.ptr ? parse_p(position) : -1;
    return CDCD_OK;
}

static void src_ack(struct cdcd_source *s, struct cdcd_slice position)
{
    (void)s;
    assert_true(parse_p(position) <= M.durable_p);
    if (parse_member(position, "q") > M.told_q)
        M.told_q = parse_member(position, "q");
}

static enum cdcd_rc src_idle(struct cdcd_source *s, int64_t now, struct cdcd_error *err)
{
    (void)s, (void)now, (void)err;
    return CDCD_OK;
}

static enum cdcd_rc src_snapshot_begin(struct cdcd_source *s, struct cdcd_slice from,
                                       struct cdcd_buf *position, struct cdcd_error *err)
{
    (void)err;
    grow(rnd(30));
    s->view = M.n;
    if (!from.ptr)
        M.first_view = M.n;
    else
        assert_true(parse_p(from) <= s->view);
    if (from.ptr) {
        assert_true(parse_member(from, "q") >= M.told_q);
        assert_notes(s->env->notes, parse_p(from));
        M.notes_seen += cdcd_notes_count(s->env->notes) > 0;
    }
    s->begin = s->view;
    add_position(position, s->view);
    return CDCD_OK;
}

static enum cdcd_rc src_tables(struct cdcd_source *s, struct cdcd_snapshot_tables *out,
                               struct cdcd_error *err)
{
    (void)s, (void)err;
    static const char *const labels[] = {"s.t0", "s.t1", "s.t2"};
    cdcd_arena_init(&out->arena, 4096);
    out->items = cdcd_arena_alloc(&out->arena, NTABLES * sizeof *out->items);
    out->n = NTABLES;
    for (int t = 0; t < NTABLES; t++)
        out->items[t] = (struct cdcd_snapshot_table){
            .schema = "s", .table = labels[t] + 2, .label = labels[t], .identity = "1", .rows = -1};
    return CDCD_OK;
}

static enum cdcd_rc src_plan(struct cdcd_source *s, const struct cdcd_snapshot_table *t,
                             struct cdcd_chunks *out, struct cdcd_error *err)
{
    (void)s, (void)err;
    int first = (t->table[1] - '0') * PER_TABLE;
    cdcd_arena_init(&out->arena, 4096);
    out->n = 4;
    out->items = cdcd_arena_alloc(&out->arena, out->n * sizeof *out->items);
    for (uint32_t i = 0; i < out->n; i++) {
        char text[16];
        snprintf(text, sizeof text, "%u", (unsigned)first + i * 8);
        out->items[i].begin = cdcd_arena_dup(&out->arena, text, strlen(text));
        unsigned end = i == 3 ? (unsigned)first + PER_TABLE : (unsigned)first + (i + 1) * 8;
        snprintf(text, sizeof text, "%u", end);
        out->items[i].end = cdcd_arena_dup(&out->arena, text, strlen(text));
    }
    return CDCD_OK;
}

static void src_snapshot_end(struct cdcd_source *s)
{
    s->view = -1;
}

static enum cdcd_rc wrk_open(struct cdcd_source *s, struct cdcd_worker **out,
                             struct cdcd_error *err)
{
    (void)err;
    *out = cdcd_xcalloc(1, sizeof **out);
    (*out)->s = s;
    return CDCD_OK;
}

static void wrk_close(struct cdcd_worker *w)
{
    free(w);
}

static enum cdcd_rc wrk_begin(struct cdcd_worker *w, const struct cdcd_snapshot_table *t,
                              const struct cdcd_chunk *chunk, struct cdcd_error *err)
{
    (void)t, (void)err;
    w->key = (int)strtol(chunk->begin, NULL, 10);
    w->end = (int)strtol(chunk->end, NULL, 10);
    w->chunk = chunk->number;
    w->row = 0;
    return CDCD_OK;
}

static enum cdcd_rc wrk_read(struct cdcd_worker *w, struct cdcd_batch *b, struct cdcd_error *err)
{
    int most = 1 + rnd(3);
    for (int n = 0; n < most && w->key < w->end; w->key++) {
        pthread_mutex_lock(&model_lock);
        int v = row_at(w->key, w->s->view);
        pthread_mutex_unlock(&model_lock);
        if (v < 0)
            continue;
        add_row(w->s, b, CDCD_OP_READ, w->key, v,
                (struct cdcd_pos){(uint64_t)w->s->view,
                                  (uint64_t)w->chunk << 40 | (unsigned)++w->row, false});
        n++;
    }
    if (M.fail_one_in && rnd(M.fail_one_in) == 0)
        return cdcd_error_set(err, CDCD_ERR_RETRY, "the worker's connection is gone");
    char text[16];
    snprintf(text, sizeof text, "%d", w->key);
    b->chunk_cursor.ptr = cdcd_arena_dup(&b->arena, text, strlen(text));
    b->chunk_cursor.len = strlen(text);
    return w->key < w->end ? CDCD_OK : CDCD_END;
}

static struct cdcd_source_ops source_ops = {
    .connector = "model",
    .source_schema_name = "model",
    .open = src_open,
    .close = src_close,
    .resume = src_resume,
    .start = src_start,
    .read = src_read,
    .stop_at = src_stop_at,
    .ack = src_ack,
    .idle = src_idle,
    .snapshot_begin = src_snapshot_begin,
    .snapshot_tables = src_tables,
    .snapshot_plan = src_plan,
    .snapshot_end = src_snapshot_end,
    .worker_open = wrk_open,
    .worker_close = wrk_close,
    .worker_begin = wrk_begin,
    .worker_read = wrk_read,
    .notes = src_notes,
};

/* ---- the sink ---- */

struct row {
    char op;
    int key;
    int64_t value;
    char snapshot[32];
    char pos[64];
};

struct cdcd_sink {
    const struct cdcd_sink_env *env;
    struct row *rows; /* committed, then pending */
    size_t ncommitted, n, cap;
    char *state, *pending_state;
    struct cdcd_notes *notes; /* committed */
    struct cdcd_batch *noted; /* holds those that are pending */
    uint64_t last_seq;
    bool dirty;
};

static struct cdcd_sink *the_sink;

static enum cdcd_rc snk_open(struct cdcd_sink **out, const void *config,
                             const struct cdcd_sink_env *env, struct cdcd_error *err)
{
    (void)config, (void)err;
    struct cdcd_sink *s = cdcd_xcalloc(1, sizeof *s);
    s->env = env;
    s->notes = cdcd_notes_new();
    s->noted = cdcd_batch_new();
    the_sink = *out = s;
    return CDCD_OK;
}

static void snk_close(struct cdcd_sink *s)
{
    (void)s; /* looked at and freed by the test */
}

static enum cdcd_rc snk_load(struct cdcd_sink *s, struct cdcd_buf *state, struct cdcd_notes *notes,
                             struct cdcd_error *err)
{
    (void)err;
    cdcd_batch_reset(s->noted);
    for (size_t i = 0; i < cdcd_notes_count(s->notes); i++) {
        struct cdcd_slice key, value;
        cdcd_notes_at(s->notes, i, &key, &value);
        cdcd_notes_set(notes, key, value);
    }
    s->n = s->ncommitted;
    s->dirty = false;
    free(s->pending_state);
    s->pending_state = NULL;
    if (s->state)
        cdcd_buf_adds(state, s->state);
    return CDCD_OK;
}

static void keep_record(struct cdcd_sink *s, const struct cdcd_record *r)
{
    if (!r->value.ptr)
        return; /* tombstone */
    json_t *v = json_loadb(r->value.ptr, r->value.len, 0, NULL);
    assert_non_null(v);
    struct row row = {0};
    row.op = json_string_value(json_object_get(v, "op"))[0];
    json_t *image = json_object_get(v, row.op == 'd' ? "before" : "after");
    row.key = (int)json_integer_value(json_object_get(image, "k"));
    row.value = json_integer_value(json_object_get(image, "v"));
    snprintf(row.snapshot, sizeof row.snapshot, "%s",
             json_string_value(json_object_get(json_object_get(v, "source"), "snapshot")));
    for (uint32_t i = 0; i < r->nheaders; i++) {
        if (cdcd_slice_eq(r->headers[i].name, cdcd_slice_str("cdcd.pos")))
            snprintf(row.pos, sizeof row.pos, "%.*s", (int)r->headers[i].value.len,
                     r->headers[i].value.ptr);
    }
    json_decref(v);
    if (s->n == s->cap) {
        s->cap = s->cap ? s->cap * 2 : 1024;
        s->rows = cdcd_xrealloc(s->rows, s->cap * sizeof *s->rows);
    }
    s->rows[s->n++] = row;
}

/* What is committed, applied in order to an empty store, is the table at position p. */
static void assert_store_is_table(const struct cdcd_sink *s, int64_t p)
{
    int64_t store[KEYS];
    for (int k = 0; k < KEYS; k++)
        store[k] = -1;
    for (size_t i = 0; i < s->ncommitted; i++)
        store[s->rows[i].key] = s->rows[i].op == 'd' ? -1 : s->rows[i].value;
    for (int k = 0; k < KEYS; k++) {
        if (store[k] != row_at(k, p))
            fail_msg("seed %u: key %d is %lld, not %d", M.begun_with, k, (long long)store[k],
                     row_at(k, p));
    }
}

static void commit(struct cdcd_sink *s)
{
    if (!s->dirty)
        return;
    s->ncommitted = s->n;
    s->dirty = false;
    for (const struct cdcd_note *n = s->noted->notes; n; n = n->next)
        cdcd_notes_set(s->notes, n->key, n->value);
    cdcd_batch_reset(s->noted);
    if (s->pending_state) {
        free(s->state);
        s->state = s->pending_state;
        s->pending_state = NULL;
        json_t *doc = json_loads(s->state, 0, NULL);
        M.durable_p = json_integer_value(json_object_get(json_object_get(doc, "position"), "p"));
        if (M.with_rows && !M.complete && !json_object_get(doc, "snapshot")) {
            M.complete = true;
            assert_store_is_table(s, M.durable_p);
        }
        json_decref(doc);
    }
    s->env->durable(s->env->ctx, s->last_seq);
    /* A resumed snapshot may publish the whole log before its last rows are read. */
    bool whole = M.complete || !M.with_rows;
    if (!M.snapshot_only && whole && M.n >= M.limit && M.durable_p >= M.limit)
        cdcd_pipeline_stop(M.pipeline);
}

static enum cdcd_rc snk_write(struct cdcd_sink *s, struct cdcd_batch *b, struct cdcd_error *err)
{
    for (const struct cdcd_record *r = b->records; r; r = r->next)
        keep_record(s, r);
    assert_true(b->state.ptr || !b->notes);
    for (const struct cdcd_note *n = b->notes; n; n = n->next)
        cdcd_batch_note(s->noted, n->key, n->value);
    if (b->state.ptr) {
        free(s->pending_state);
        s->pending_state = cdcd_xstrndup(b->state.ptr, b->state.len);
    }
    s->last_seq = b->seq;
    s->dirty = true;
    s->env->batch_done(s->env->ctx, b);
    if (M.fail_one_in && rnd(M.fail_one_in) == 0)
        return cdcd_error_set(err, CDCD_ERR_RETRY, "the sink is gone");
    return CDCD_OK;
}

static enum cdcd_rc snk_poll(struct cdcd_sink *s, int timeout_ms, bool more, bool flush,
                             struct cdcd_error *err)
{
    (void)timeout_ms;
    if (M.fail_one_in && s->dirty && rnd(M.fail_one_in) == 0)
        return cdcd_error_set(err, CDCD_ERR_RETRY, "the commit failed");
    if (flush || !more || rnd(4) == 0)
        commit(s);
    return CDCD_OK;
}

static const struct cdcd_sink_ops sink_ops = {
    .open = snk_open, .close = snk_close, .load = snk_load, .write = snk_write, .poll = snk_poll};

static const struct cdcd_plugin source_plugin = {.name = "model", .source = &source_ops};
static const struct cdcd_plugin sink_plugin = {.name = "model", .sink = &sink_ops};

/* ---- running and judging ---- */

static void run_pipeline(unsigned seed, int limit, int fail_one_in, int mode, bool snapshot_only)
{
    struct cdcd_config config = {
        .name = (char *)"m",
        .topic_prefix = (char *)"m",
        .snapshot_mode = mode,
        .snapshot_workers = 3,
        .state_dir = (char *)"",
        .max_event_bytes = 1 << 20,
        .batches = 8,
        .max_retries = -1,
        .retry_delay_max_ms = 2,
        .source_plugin = &source_plugin,
        .sink_plugin = &sink_plugin,
    };
    config.format.tombstones_on_delete = true;
    config.format.unavailable_value_placeholder = (char *)"x";
    config.format.topic_heartbeat_prefix = (char *)"h";
    config.format.topic_delimiter = (char *)".";
    config.format.topic_transaction = (char *)"transaction";
    M.seed = seed;
    M.limit = limit;
    M.fail_one_in = fail_one_in;
    M.snapshot_only = snapshot_only;
    M.with_rows = mode != CDCD_SNAPSHOT_NO_DATA;
    struct cdcd_run_options options = {.snapshot_only = snapshot_only};
    struct cdcd_error err = {0};
    assert_int_equal(cdcd_pipeline_new(&config, &options, &M.pipeline, &err), CDCD_OK);
    enum cdcd_rc rc = cdcd_pipeline_run(M.pipeline, &err);
    if (rc != CDCD_OK)
        print_message("%s\n", err.text);
    assert_int_equal(rc, CDCD_OK);
    cdcd_pipeline_free(M.pipeline);
}

/* with_rows: there was a snapshot, so that rows older than the stream are there too. */
static void judge(bool complete, bool with_rows)
{
    struct cdcd_sink *s = the_sink;
    int64_t next = M.first_view, newest[KEYS];
    bool read_once[KEYS] = {false};
    const char *pos[KEYS] = {NULL};
    for (int k = 0; k < KEYS; k++)
        newest[k] = -1;
    for (size_t i = 0; i < s->ncommitted; i++) {
        const struct row *r = &s->rows[i];
        assert_in_range(r->key, 0, KEYS - 1);
        if (r->op == 'r') {
            assert_false(read_once[r->key]);
            read_once[r->key] = true;
            assert_true(r->value >= newest[r->key]);
        } else {
            assert_int_equal(r->value, next); /* each change, once, in order */
            next++;
        }
        newest[r->key] = r->value;
        if (pos[r->key])
            assert_true(strcmp(pos[r->key], r->pos) < 0);
        pos[r->key] = r->pos;
    }
    if (!complete)
        return;
    assert_int_equal(next, M.n);
    for (int k = 0; k < KEYS; k++) {
        int want = row_at(k, M.n);
        if (want >= (with_rows ? 0 : M.first_view))
            assert_int_equal(newest[k], want);
    }
}

static void begin_model(unsigned seed)
{
    M = (struct model){0};
    M.seed = M.begun_with = seed;
    M.limit = LOG_MAX;
    M.first_view = -1;
    grow(200);
}

static void free_sink(void)
{
    free(the_sink->rows);
    free(the_sink->state);
    free(the_sink->pending_state);
    cdcd_notes_free(the_sink->notes);
    cdcd_batch_free(the_sink->noted);
    free(the_sink);
    the_sink = NULL;
}

static void without_errors(void **state)
{
    (void)state;
    begin_model(1);
    run_pipeline(1, 1500, 0, CDCD_SNAPSHOT_INITIAL, false);
    judge(true, true);
    assert_string_equal(the_sink->rows[0].snapshot, "first");
    int last = 0, first_in = 0, last_in = 0;
    for (size_t i = 0; i < the_sink->ncommitted; i++) {
        last += strcmp(the_sink->rows[i].snapshot, "last") == 0;
        first_in += strcmp(the_sink->rows[i].snapshot, "first_in_data_collection") == 0;
        last_in += strcmp(the_sink->rows[i].snapshot, "last_in_data_collection") == 0;
    }
    assert_int_equal(last, 1);
    assert_int_equal(first_in, NTABLES - 1);
    assert_int_equal(last_in, NTABLES - 1);
    free_sink();
}

/* MongoDB's: the last row of the snapshot has a mark, no other. */
static void few_marks(void **state)
{
    size_t rows = 0, last = 0, marked = 0;
    (void)state;
    begin_model(1);
    source_ops.few_marks = true;
    run_pipeline(1, 1500, 0, CDCD_SNAPSHOT_INITIAL, false);
    source_ops.few_marks = false;
    judge(true, true);
    for (size_t i = 0; i < the_sink->ncommitted; i++) {
        const struct row *r = &the_sink->rows[i];
        if (r->op != 'r')
            continue;
        rows++;
        last = strcmp(r->snapshot, "last") == 0 ? rows : last;
        marked += strcmp(r->snapshot, "true") != 0;
    }
    assert_true(rows > 1);
    assert_int_equal(last, rows);
    assert_int_equal(marked, 1);
    free_sink();
}

static void errors_at_random_moments(void **state)
{
    (void)state;
    for (unsigned seed = 1; seed <= 30; seed++) {
        begin_model(seed);
        run_pipeline(seed, 1200, 5 + (int)seed, CDCD_SNAPSHOT_INITIAL, false);
        judge(true, true);
        assert_notes(the_sink->notes, M.durable_p);
        assert_true(M.notes_seen > 5);
        free_sink();
    }
}

static void no_data_has_only_changes(void **state)
{
    (void)state;
    begin_model(7);
    run_pipeline(7, 800, 30, CDCD_SNAPSHOT_NO_DATA, false);
    judge(true, false);
    assert_notes(the_sink->notes, M.durable_p);
    assert_true(M.notes_seen > 0);
    for (size_t i = 0; i < the_sink->ncommitted; i++)
        assert_int_not_equal(the_sink->rows[i].op, 'r');
    free_sink();
}

/* when_needed: a loss in the middle of the stream becomes a new snapshot, without a restart. */
static void loss_becomes_a_snapshot(void **state)
{
    (void)state;
    begin_model(3);
    M.lose_at = 600;
    run_pipeline(3, 1500, 0, CDCD_SNAPSHOT_WHEN_NEEDED, false);
    struct cdcd_sink *s = the_sink;
    assert_notes(s->notes, M.durable_p);
    int reads[KEYS] = {0}, twice = 0;
    int64_t newest[KEYS];
    for (int k = 0; k < KEYS; k++)
        newest[k] = -1;
    for (size_t i = 0; i < s->ncommitted; i++) {
        twice += s->rows[i].op == 'r' && reads[s->rows[i].key]++ == 1;
        newest[s->rows[i].key] = s->rows[i].value;
    }
    assert_true(twice > KEYS / 2);
    for (int k = 0; k < KEYS; k++) {
        if (row_at(k, M.n) >= 0)
            assert_int_equal(newest[k], row_at(k, M.n));
    }
    free_sink();
}

static void snapshot_command_ends(void **state)
{
    (void)state;
    for (unsigned seed = 1; seed <= 20; seed++) {
        begin_model(seed);
        run_pipeline(seed, LOG_MAX, seed % 2 ? 0 : 20, CDCD_SNAPSHOT_INITIAL, true);
        judge(false, true);
        assert_non_null(the_sink->state);
        if (strstr(the_sink->state, "snapshot")) /* not complete */
            fail_msg("seed %u: %s", seed, the_sink->state);
        free_sink();
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(without_errors),           cmocka_unit_test(errors_at_random_moments),
        cmocka_unit_test(no_data_has_only_changes), cmocka_unit_test(loss_becomes_a_snapshot),
        cmocka_unit_test(snapshot_command_ends),    cmocka_unit_test(few_marks),
    };
    cdcd_log_setup(CDCD_LOG_ERROR, false, "");
    return cmocka_run_group_tests(tests, NULL, NULL);
}
