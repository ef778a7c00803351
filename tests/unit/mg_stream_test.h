/*
 * The MongoDB stream without a server: a feed that a test writes change by change, and documents
 * as they are "now". Documents are {_id: ID, n: VERSION}. What comes out is compared as text, a
 * line an event, and again after a resume from every position that could have been stored.
 */
#ifndef CDCD_TEST_MG_STREAM_TEST_H
#define CDCD_TEST_MG_STREAM_TEST_H

#include "stream_int.h"

#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

/* ---- the log ---- */

struct item {
    uint32_t t, i;
    char op; /* i insert, r replace, u update, d delete, c command, ! error */
    int id, n;
    int tx; /* txnNumber; 0: none */
    const char *collection;
};
#define MAX_ITEMS 64
#define DOCS      16

static struct {
    struct item items[MAX_ITEMS];
    size_t n;
    bool behind;     /* positions have tokens, and a feed starts behind them */
    bool one_by_one; /* AGAIN after each change */
    bool whole;      /* a mark has the time of the last change */
    struct mg_time mark;
    int now[DOCS]; /* version of each document; 0: there is none */
    struct mg_time now_ts;
    int before[DOCS]; /* version of its pre-image; 0: none */
    unsigned queries, asked;
    bool fail_lookup;
    bool large; /* documents that are looked up have twice the size */
} world;

static struct mg_config cfg;
static struct cdcd_source_env env;
static struct cdcd_source source;

static inline void add(uint32_t t, uint32_t i, char op, int id, int n, int tx)
{
    world.items[world.n++] = (struct item){t, i, op, id, n, tx, "t"};
}

static inline void put_int(char *to, int n)
{
    for (int i = 0; i < 4; i++)
        to[i] = (char)((unsigned)n >> 8 * i & 0xff);
}

#define DOC_LEN 21
/* {_id: id, n: n} */
static inline struct cdcd_slice document(char to[static DOC_LEN], int id, int n)
{
    memcpy(to, "\x15\0\0\0\x10_id\0....\x10n\0....", DOC_LEN - 1);
    to[DOC_LEN - 1] = 0;
    put_int(to + 9, id);
    put_int(to + 16, n);
    return (struct cdcd_slice){to, DOC_LEN};
}

static inline int doc_n(struct cdcd_slice document)
{
    struct cdcd_bson_element e;
    assert_true(cdcd_bson_find(document, "n", &e));
    return cdcd_bson_int32(e.value);
}

/* ---- the feed ---- */

struct mg_feed {
    size_t next;
    bool paused;
    bool behind;
    char doc[DOC_LEN], update[DOC_LEN], lsid[16], token[16], id[4];
};

static inline enum cdcd_rc feed_open(struct cdcd_source *s, const struct mg_position *from,
                                     struct mg_feed **out, struct cdcd_error *err)
{
    (void)s;
    (void)err;
    struct mg_feed *f = cdcd_xcalloc(1, sizeof *f);
    f->behind = from->token != NULL;
    if (from->token)
        f->next = (size_t)strtoul(strchr(from->token, ':') + 1, NULL, 10) + 1;
    else
        while (f->next < world.n &&
               mg_time_cmp((struct mg_time){world.items[f->next].t, world.items[f->next].i},
                           from->ts) < 0)
            f->next++;
    *out = f;
    return CDCD_OK;
}

static inline void feed_close(struct mg_feed *f)
{
    free(f);
}

static inline enum cdcd_rc feed_next(struct mg_feed *f, struct cdcd_arena *a, int64_t deadline_ms,
                                     struct mg_change *out, struct cdcd_error *err)
{
    (void)deadline_ms;
    if (f->next == world.n || (world.one_by_one && f->paused)) {
        f->paused = false;
        return CDCD_AGAIN;
    }
    f->paused = true;
    const struct item *x = &world.items[f->next];
    *out = (struct mg_change){.ts = {x->t, x->i},
                              .wall_ms = (int64_t)x->t * 1000 + 5,
                              .db = {"d", 1},
                              .collection = cdcd_slice_str(x->collection),
                              .transaction = x->tx != 0,
                              .txn_number = x->tx};
    if (x->op == '!')
        return cdcd_error_set(err, CDCD_ERR_RETRY, "as the test wants it");
    memcpy(f->lsid, "\x0e\0\0\0\x10id\0\7\0\0\0\0\0", 14);
    put_int(f->lsid, 13);
    if (x->tx)
        out->lsid = (struct cdcd_slice){f->lsid, 13};
    if (world.behind) {
        memcpy(f->token, "\x0c\0\0\0\x10n\0....", 11);
        f->token[11] = 0;
        put_int(f->token + 7, (int)f->next);
        out->token = (struct cdcd_slice){f->token, 12};
    }
    f->next++;
    put_int(f->id, x->id);
    out->id = cdcd_cell_bson(CDCD_BSON_INT32, f->id, 4);
    out->op = x->op == 'i'   ? CDCD_OP_CREATE
              : x->op == 'd' ? CDCD_OP_DELETE
              : x->op == 'c' ? CDCD_OP_DDL
                             : CDCD_OP_UPDATE;
    if (x->op == 'i' || x->op == 'r')
        out->after = document(f->doc, x->id, x->n);
    out->replaces = x->op == 'r';
    out->uuid = (struct cdcd_slice){"0123456789abcdef", 16};
    out->entry_o = document(f->update, x->id, x->n);
    out->entry_ts = out->ts;
    if (x->op == 'u') {
        struct cdcd_update *u = cdcd_arena_alloc(a, sizeof *u);
        memset(u, 0, sizeof *u);
        char *text = cdcd_arena_alloc(a, DOC_LEN);
        u->updated = document(text, x->id, x->n);
        out->update = u;
    }
    if (x->op == 'c')
        out->command.o = document(f->doc, 0, x->n);
    return CDCD_OK;
}

static inline bool feed_ready(const struct mg_feed *f)
{
    return f->next < world.n && !(world.one_by_one && f->paused);
}

static inline bool feed_mark(const struct mg_feed *f, struct mg_time *ts, struct cdcd_slice *token)
{
    const struct item *last = f->next ? &world.items[f->next - 1] : NULL;
    token->ptr = NULL;
    if (f->next == world.n && world.mark.t) {
        *ts = world.mark;
        return true;
    }
    if (!world.whole || !last)
        return false;
    *ts = (struct mg_time){last->t, last->i};
    return true;
}

static inline bool feed_behind(const struct mg_feed *f)
{
    return f->behind;
}

static const struct mg_feed_ops feed_ops = {.open = feed_open,
                                            .close = feed_close,
                                            .next = feed_next,
                                            .ready = feed_ready,
                                            .mark = feed_mark,
                                            .starts_behind = feed_behind};

/* ---- documents ---- */

static inline enum cdcd_rc read_many(struct cdcd_source *s, struct cdcd_slice db,
                                     struct cdcd_slice collection, const struct cdcd_cell *ids,
                                     size_t n, struct mg_time at_least, struct cdcd_arena *a,
                                     struct cdcd_slice *out, struct mg_time *seen,
                                     struct cdcd_error *err)
{
    (void)s;
    (void)db;
    (void)collection;
    (void)at_least;
    world.queries++;
    world.asked += (unsigned)n;
    if (world.fail_lookup)
        return cdcd_error_set(err, CDCD_ERR_RETRY, "no server");
    for (size_t i = 0; i < n; i++) {
        int id = cdcd_bson_int32((struct cdcd_slice){ids[i].ptr, ids[i].len});
        out[i] = (struct cdcd_slice){NULL, 0};
        if (!world.now[id])
            continue;
        char *text = cdcd_arena_alloc(a, 2 * DOC_LEN);
        memset(text, 0, 2 * DOC_LEN);
        out[i] = document(text, id, world.now[id]);
        if (world.large) /* as far as anyone looks here */
            out[i].len = 2 * DOC_LEN;
    }
    *seen = world.now_ts;
    return CDCD_OK;
}

static inline enum cdcd_rc read_pre_image(struct cdcd_source *s, struct cdcd_slice uuid,
                                          struct mg_time ts, uint32_t apply_ops_index,
                                          struct cdcd_arena *a, struct cdcd_slice *out,
                                          struct cdcd_error *err)
{
    (void)s;
    (void)apply_ops_index;
    (void)err;
    assert_int_equal(uuid.len, 16);
    *out = (struct cdcd_slice){NULL, 0};
    for (size_t i = 0; i < world.n; i++) {
        const struct item *x = &world.items[i];
        if (x->t == ts.t && x->i == ts.i && world.before[x->id])
            *out = document(cdcd_arena_alloc(a, DOC_LEN), x->id, world.before[x->id]);
    }
    return CDCD_OK;
}

static inline enum cdcd_rc read_now(struct cdcd_source *s, struct mg_time *out,
                                    struct cdcd_error *err)
{
    (void)s;
    (void)err;
    *out = world.now_ts;
    return CDCD_OK;
}

static const struct mg_reads reads = {read_many, read_pre_image, read_now};

/* ---- what comes out ---- */

struct lines {
    char *items[256];
    size_t n;
    char *position;
};

static inline void put_image(struct cdcd_buf *out, const char *sign, const struct cdcd_cell *image)
{
    if (!image)
        return;
    const struct cdcd_cell *d = &image[CDCD_DOC_DOCUMENT];
    if (d->kind == CDCD_C_NULL)
        cdcd_buf_addf(out, " %s?", sign);
    else
        cdcd_buf_addf(out, " %s%d", sign, doc_n((struct cdcd_slice){d->ptr, d->len}));
}

static inline int event_id(const struct cdcd_event *e)
{
    const struct cdcd_cell *id = &(e->after ? e->after : e->before)[CDCD_DOC_ID];
    assert_int_equal(id->aux, CDCD_BSON_INT32);
    return cdcd_bson_int32((struct cdcd_slice){id->ptr, id->len});
}

static inline void put_tx(struct cdcd_buf *out, const struct cdcd_event *e)
{
    if (!e->tx_id.ptr)
        return;
    cdcd_buf_addf(out, " tx=%.*s", (int)e->tx_id.len, e->tx_id.ptr);
    if (e->op != CDCD_OP_TX_BEGIN)
        cdcd_buf_addf(out, " %d/%d", (int)e->total_order, (int)e->data_collection_order);
    for (uint32_t i = 0; i < e->ncollections; i++)
        cdcd_buf_addf(out, " %.*s:%d", (int)e->collections[i].name.len, e->collections[i].name.ptr,
                      (int)e->collections[i].count);
}

/* "T:I.ORD op ID -before +after", "lookup" when it was; updates as u=N. */
static inline char *line_of(const struct cdcd_event *e)
{
    static const char ops[] = "crudtmBEhD";
    struct cdcd_buf out;
    cdcd_buf_init(&out, 0);
    assert_true(e->pos.stream);
    cdcd_buf_addf(&out, "%d:%d.%d %c", (int)(e->pos.commit >> 32), (int)(e->pos.commit & 0xffff),
                  (int)e->pos.ordinal, ops[e->op]);
    if (e->schema) {
        cdcd_buf_addf(&out, "%s%d", strcmp(e->schema->table, "t") ? e->schema->table : "",
                      event_id(e));
        assert_int_equal(e->source[MG_SRC_ORD].i, e->pos.commit & 0xffff);
        assert_int_equal(e->source[MG_SRC_WALL_TIME].i * 1000, e->ts_us);
        assert_int_equal(e->source[MG_SRC_LSID].kind, e->in_tx ? CDCD_C_TEXT : CDCD_C_NULL);
    }
    put_image(&out, "-", e->schema ? e->before : NULL);
    put_image(&out, "+", e->schema ? e->after : NULL);
    if (e->update)
        cdcd_buf_addf(&out, " u=%d", doc_n(e->update->updated));
    if (e->after_lookup)
        cdcd_buf_adds(&out, " lookup");
    put_tx(&out, e);
    cdcd_buf_cstr(&out);
    return out.ptr;
}

static inline void take_lines(struct lines *l, const struct cdcd_batch *b)
{
    uint32_t n = 0;
    for (const struct cdcd_event *e = b->events; e; e = e->next, n++) {
        assert_true(l->n < 256);
        l->items[l->n++] = line_of(e);
        assert_true(e->next || e == b->last_event);
    }
    assert_int_equal(n, b->nevents);
    if (b->position.ptr) {
        free(l->position);
        l->position = cdcd_xstrndup(b->position.ptr, b->position.len);
    }
}

static inline void free_lines(struct lines *l)
{
    for (size_t i = 0; i < l->n; i++)
        free(l->items[i]);
    free(l->position);
    *l = (struct lines){0};
}

static inline void check_lines(struct lines *l, const char *const *want)
{
    for (size_t i = 0; want[i] || i < l->n; i++) {
        const char *got = i < l->n ? l->items[i] : "(nothing)";
        assert_string_equal(got, want[i] ? want[i] : "(nothing)");
    }
}

static inline char *position_text(struct mg_position p)
{
    struct cdcd_buf out;
    cdcd_buf_init(&out, 0);
    mg_position_write(&p, &out);
    cdcd_buf_cstr(&out);
    return out.ptr;
}

static inline void start_at(const char *position)
{
    struct cdcd_error err = {0};
    mg_stream_free(source.stream);
    source.stream = NULL;
    assert_int_equal(mg_stream_open(&source, &feed_ops, &reads, cdcd_slice_str(position), &err),
                     CDCD_OK);
}

static inline void start(struct mg_position p)
{
    char *text = position_text(p);
    start_at(text);
    free(text);
}

/* One read. */
static inline enum cdcd_rc read_once(struct lines *l, struct cdcd_error *err)
{
    struct cdcd_batch *b = cdcd_batch_new();
    enum cdcd_rc rc = mg_stream_read(&source, b, cdcd_now_ms() + 1000, err);
    if (rc == CDCD_OK || rc == CDCD_END)
        take_lines(l, b);
    cdcd_batch_free(b);
    return rc;
}

/* Until nothing more comes. */
static inline enum cdcd_rc read_all(struct lines *l)
{
    struct cdcd_error err = {0};
    enum cdcd_rc rc;
    do
        rc = read_once(l, &err);
    while (rc == CDCD_OK);
    assert_int_not_equal(rc, CDCD_ERROR);
    return rc;
}

static inline void check(struct mg_position from, const char *const *want)
{
    struct lines l = {0};
    start(from);
    read_all(&l);
    check_lines(&l, want);
    free_lines(&l);
}

static const struct mg_position origin = {.capture = MG_OPLOG, .ts = {1, 1}, .ord = MG_ORD_ALL};

/* All of it in one go, and again with a stop after each batch of one change: the same. */
static inline void check_cut(struct mg_position from, const char *const *want)
{
    for (int behind = 0; behind < 2; behind++) {
        struct lines l = {0};
        world.behind = behind;
        world.one_by_one = false;
        start(from);
        read_all(&l);
        check_lines(&l, want);
        free_lines(&l);
        world.one_by_one = true;
        l.position = position_text(from);
        for (size_t before = SIZE_MAX; before != l.n;) {
            struct cdcd_error err = {0};
            before = l.n;
            start_at(l.position);
            while (l.n == before && read_once(&l, &err) == CDCD_OK)
                ;
            for (size_t i = 0; before == l.n && i < world.n + 1; i++)
                read_once(&l, &err);
            assert_int_equal(err.class, CDCD_ERR_NONE);
        }
        check_lines(&l, want);
        free_lines(&l);
        world.one_by_one = false;
    }
    world.behind = false;
}

static inline int setup(void **state)
{
    (void)state;
    struct cdcd_error err = {0};
    memset(&world, 0, sizeof world);
    world.whole = true;
    world.now_ts = (struct mg_time){100, 1};
    cfg = (struct mg_config){
        .url = (char *)"mongodb://h", .capture = MG_OPLOG, .start_op_time = -1};
    env = (struct cdcd_source_env){.pipeline = "p", .topic_prefix = "p", .want_ddl = true};
    source = (struct cdcd_source){.cfg = &cfg, .env = &env};
    return mg_filter_new(&cfg, &source.filter, &err) == CDCD_OK ? 0 : -1;
}

static inline int teardown(void **state)
{
    (void)state;
    mg_stream_free(source.stream);
    mg_filter_free(source.filter);
    return 0;
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

#endif
