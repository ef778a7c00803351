/*
 * The MongoDB stream without a server: a feed that a test writes change by change, and documents
 * as they are "now". Documents are {_id: ID, n: VERSION}.
 */
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

static void add(uint32_t t, uint32_t i, char op, int id, int n, int tx)
{
    world.items[world.n++] = (struct item){t, i, op, id, n, tx, "t"};
}

static void put_int(char *to, int n)
{
    for (int i = 0; i < 4; i++)
        to[i] = (char)((unsigned)n >> 8 * i & 0xff);
}

#define DOC_LEN 21
/* {_id: id, n: n} */
static struct cdcd_slice document(char to[static DOC_LEN], int id, int n)
{
    memcpy(to, "\x15\0\0\0\x10_id\0....\x10n\0....", DOC_LEN - 1);
    to[DOC_LEN - 1] = 0;
    put_int(to + 9, id);
    put_int(to + 16, n);
    return (struct cdcd_slice){to, DOC_LEN};
}

static int doc_n(struct cdcd_slice document)
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

static enum cdcd_rc feed_open(struct cdcd_source *s, const struct mg_position *from,
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

static void feed_close(struct mg_feed *f)
{
    free(f);
}

static enum cdcd_rc feed_next(struct mg_feed *f, struct cdcd_arena *a, int64_t deadline_ms,
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

static bool feed_ready(const struct mg_feed *f)
{
    return f->next < world.n && !(world.one_by_one && f->paused);
}

static bool feed_mark(const struct mg_feed *f, struct mg_time *ts, struct cdcd_slice *token)
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

static bool feed_behind(const struct mg_feed *f)
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

static enum cdcd_rc read_many(struct cdcd_source *s, struct cdcd_slice db,
                              struct cdcd_slice collection, const struct cdcd_cell *ids, size_t n,
                              struct mg_time at_least, struct cdcd_arena *a, struct cdcd_slice *out,
                              struct mg_time *seen, struct cdcd_error *err)
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

static enum cdcd_rc read_pre_image(struct cdcd_source *s, struct cdcd_slice uuid, struct mg_time ts,
                                   uint32_t apply_ops_index, struct cdcd_arena *a,
                                   struct cdcd_slice *out, struct cdcd_error *err)
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

static enum cdcd_rc read_now(struct cdcd_source *s, struct mg_time *out, struct cdcd_error *err)
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

static void put_image(struct cdcd_buf *out, const char *sign, const struct cdcd_cell *image)
{
    if (!image)
        return;
    const struct cdcd_cell *d = &image[CDCD_DOC_DOCUMENT];
    if (d->kind == CDCD_C_NULL)
        cdcd_buf_addf(out, " %s?", sign);
    else
        cdcd_buf_addf(out, " %s%d", sign, doc_n((struct cdcd_slice){d->ptr, d->len}));
}

static int event_id(const struct cdcd_event *e)
{
    const struct cdcd_cell *id = &(e->after ? e->after : e->before)[CDCD_DOC_ID];
    assert_int_equal(id->aux, CDCD_BSON_INT32);
    return cdcd_bson_int32((struct cdcd_slice){id->ptr, id->len});
}

static void put_tx(struct cdcd_buf *out, const struct cdcd_event *e)
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
static char *line_of(const struct cdcd_event *e)
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

static void take_lines(struct lines *l, const struct cdcd_batch *b)
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

static void free_lines(struct lines *l)
{
    for (size_t i = 0; i < l->n; i++)
        free(l->items[i]);
    free(l->position);
    *l = (struct lines){0};
}

static void check_lines(struct lines *l, const char *const *want)
{
    for (size_t i = 0; want[i] || i < l->n; i++) {
        const char *got = i < l->n ? l->items[i] : "(nothing)";
        assert_string_equal(got, want[i] ? want[i] : "(nothing)");
    }
}

static char *position_text(struct mg_position p)
{
    struct cdcd_buf out;
    cdcd_buf_init(&out, 0);
    mg_position_write(&p, &out);
    cdcd_buf_cstr(&out);
    return out.ptr;
}

static void start_at(const char *position)
{
    struct cdcd_error err = {0};
    mg_stream_free(source.stream);
    source.stream = NULL;
    assert_int_equal(mg_stream_open(&source, &feed_ops, &reads, cdcd_slice_str(position), &err),
                     CDCD_OK);
}

static void start(struct mg_position p)
{
    char *text = position_text(p);
    start_at(text);
    free(text);
}

/* One read. */
static enum cdcd_rc read_once(struct lines *l, struct cdcd_error *err)
{
    struct cdcd_batch *b = cdcd_batch_new();
    enum cdcd_rc rc = mg_stream_read(&source, b, cdcd_now_ms() + 1000, err);
    if (rc == CDCD_OK || rc == CDCD_END)
        take_lines(l, b);
    cdcd_batch_free(b);
    return rc;
}

/* Until nothing more comes. */
static enum cdcd_rc read_all(struct lines *l)
{
    struct cdcd_error err = {0};
    enum cdcd_rc rc;
    do
        rc = read_once(l, &err);
    while (rc == CDCD_OK);
    assert_int_not_equal(rc, CDCD_ERROR);
    return rc;
}

static void check(struct mg_position from, const char *const *want)
{
    struct lines l = {0};
    start(from);
    read_all(&l);
    check_lines(&l, want);
    free_lines(&l);
}

static const struct mg_position origin = {.capture = MG_OPLOG, .ts = {1, 1}, .ord = MG_ORD_ALL};

/* All of it in one go, and again with a stop after each batch of one change: the same. */
static void check_cut(struct mg_position from, const char *const *want)
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

static int setup(void **state)
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

static int teardown(void **state)
{
    (void)state;
    mg_stream_free(source.stream);
    mg_filter_free(source.filter);
    return 0;
}

/* ---- numbers, and where a resume goes on ---- */

static void numbers(void **state)
{
    (void)state;
    add(1, 1, 'i', 1, 1, 0); /* the position has it */
    add(1, 2, 'i', 2, 1, 0);
    add(1, 2, 'r', 2, 2, 0);
    add(1, 2, 'd', 2, 0, 0);
    add(1, 3, 'i', 3, 1, 0);
    add(2, 1, 'u', 3, 2, 0);
    world.now[3] = 9;
    check_cut(origin, (const char *const[]){"1:2.1 c2 +1", "1:2.2 u2 +2", "1:2.3 d2 -?",
                                            "1:3.1 c3 +1", "2:1.1 u3 +9 u=2 lookup", NULL});
    struct mg_position two = {.capture = MG_OPLOG, .ts = {1, 2}, .ord = 2};
    check(two, (const char *const[]){"1:2.3 d2 -?", "1:3.1 c3 +1", "2:1.1 u3 +9 u=2 lookup", NULL});
    two.ord = 0;
    two.ts.i = 3;
    check(two, (const char *const[]){"1:3.1 c3 +1", "2:1.1 u3 +9 u=2 lookup", NULL});
}

static void add_transactions(void)
{
    add(2, 1, 'i', 1, 1, 7);
    add(2, 1, 'i', 2, 1, 7);
    world.items[world.n - 1].collection = "v";
    add(2, 1, 'u', 1, 2, 7);
    add(2, 1, 'd', 2, 0, 7);
    add(2, 2, 'i', 3, 1, 0);
    add(2, 3, 'i', 4, 1, 8);
    add(2, 4, 'i', 5, 1, 9);
    add(2, 4, 'i', 6, 1, 9);
    world.now[1] = 2;
}

static void transactions(void **state)
{
    (void)state;
    add_transactions();
    check_cut(origin, (const char *const[]){"2:1.1 c1 +1", "2:1.2 cv2 +1", "2:1.3 u1 +2 u=2 lookup",
                                            "2:1.4 d2 -?", "2:2.1 c3 +1", "2:3.1 c4 +1",
                                            "2:4.1 c5 +1", "2:4.2 c6 +1", NULL});
    env.tx_metadata = true;
    static const char *const want[] = {
        "2:1.0 B tx={\"id\": 7}:7",
        "2:1.1 c1 +1 tx={\"id\": 7}:7 1/1",
        "2:1.2 cv2 +1 tx={\"id\": 7}:7 2/1",
        "2:1.3 u1 +2 u=2 lookup tx={\"id\": 7}:7 3/2",
        "2:1.4 d2 -? tx={\"id\": 7}:7 4/3",
        "2:1.5 E tx={\"id\": 7}:7 4/0 d.t:3 d.v:1",
        "2:2.1 c3 +1",
        "2:3.0 B tx={\"id\": 7}:8",
        "2:3.1 c4 +1 tx={\"id\": 7}:8 1/1",
        "2:3.2 E tx={\"id\": 7}:8 1/0 d.t:1",
        "2:4.0 B tx={\"id\": 7}:9",
        "2:4.1 c5 +1 tx={\"id\": 7}:9 1/1",
        "2:4.2 c6 +1 tx={\"id\": 7}:9 2/2",
        "2:4.3 E tx={\"id\": 7}:9 2/0 d.t:2",
        NULL,
    };
    world.mark = (struct mg_time){2, 4};
    world.whole = false;
    check_cut(origin, want);
}

/* END only when the transaction is known to be whole. */
static void half_transaction(void **state)
{
    (void)state;
    struct lines l = {0};
    env.tx_metadata = true;
    world.whole = false;
    add(2, 1, 'i', 1, 1, 7);
    start(origin);
    read_all(&l);
    check_lines(&l, (const char *const[]){"2:1.0 B tx={\"id\": 7}:7",
                                          "2:1.1 c1 +1 tx={\"id\": 7}:7 1/1", NULL});
    add(2, 1, 'i', 2, 1, 7);
    read_all(&l);
    assert_int_equal(l.n, 3);
    world.mark = (struct mg_time){2, 1};
    read_all(&l);
    assert_int_equal(l.n, 4);
    assert_string_equal(l.items[3], "2:1.3 E tx={\"id\": 7}:7 2/0 d.t:2");
    assert_string_equal(l.position, "{\"mode\":\"oplog\",\"ts\":[2,1],\"ord\":-1}");
    free_lines(&l);
}

/* A command counts whether it is wanted or not. */
static void commands(void **state)
{
    (void)state;
    add(2, 1, 'c', 0, 1, 0);
    add(2, 1, 'i', 1, 1, 0);
    check_cut(origin, (const char *const[]){"2:1.1 D", "2:1.2 c1 +1", NULL});
    env.want_ddl = false;
    check_cut(origin, (const char *const[]){"2:1.2 c1 +1", NULL});
}

static void marks(void **state)
{
    (void)state;
    struct lines l = {0};
    struct cdcd_error err = {0};
    add(2, 1, 'i', 1, 1, 0);
    start(origin);
    assert_int_equal(read_once(&l, &err), CDCD_OK);
    assert_string_equal(l.position, "{\"mode\":\"oplog\",\"ts\":[2,1],\"ord\":1}");
    world.mark = (struct mg_time){3, 4};
    assert_int_equal(read_once(&l, &err), CDCD_AGAIN); /* not for each noop */
    source.stream->emitted_ms = 0;
    assert_int_equal(read_once(&l, &err), CDCD_OK);
    assert_string_equal(l.position, "{\"mode\":\"oplog\",\"ts\":[3,4],\"ord\":0}");
    source.stream->emitted_ms = 0;
    assert_int_equal(read_once(&l, &err), CDCD_AGAIN); /* the same again */
    free_lines(&l);
}

/* ---- trouble ---- */

static void errors(void **state)
{
    (void)state;
    struct lines l = {0};
    struct cdcd_error err = {0};
    add(2, 1, 'i', 1, 1, 0);
    add(2, 2, 'u', 1, 2, 0);
    add(0, 0, '!', 0, 0, 0);
    world.now[1] = 2;
    start(origin);
    assert_int_equal(read_once(&l, &err), CDCD_OK);
    check_lines(&l, (const char *const[]){"2:1.1 c1 +1", "2:2.1 u1 +2 u=2 lookup", NULL});
    assert_string_equal(l.position, "{\"mode\":\"oplog\",\"ts\":[2,2],\"ord\":1}");
    assert_int_equal(read_once(&l, &err), CDCD_ERROR);
    assert_int_equal(err.class, CDCD_ERR_RETRY);
    free_lines(&l);
    /* Without their documents, events are not given. */
    world.fail_lookup = true;
    start(origin);
    assert_int_equal(read_once(&l, &err), CDCD_ERROR);
    assert_string_equal(err.text, "no server");
    free_lines(&l);
}

/* The position is before the change that fails. */
static void too_large(void **state)
{
    (void)state;
    struct lines l = {0};
    struct cdcd_error err = {0};
    add(2, 1, 'i', 1, 1, 0);
    add(2, 1, 'u', 1, 2, 0);
    add(2, 1, 'i', 2, 1, 0);
    cfg.capture_mode = MG_MODE_PRE_IMAGE;
    world.before[1] = 1;
    env.max_event_bytes = DOC_LEN;
    start(origin);
    assert_int_equal(read_once(&l, &err), CDCD_OK);
    check_lines(&l, (const char *const[]){"2:1.1 c1 +1", NULL});
    assert_string_equal(l.position, "{\"mode\":\"oplog\",\"ts\":[2,1],\"ord\":1}");
    assert_int_equal(read_once(&l, &err), CDCD_ERROR);
    assert_int_equal(err.class, CDCD_ERR_DATA);
    assert_non_null(strstr(err.text, "d.t at 2:1 has 42 bytes"));
    free_lines(&l);
    /* So is a document that was looked up. */
    cfg.capture_mode = MG_MODE_UPDATE_FULL;
    world.large = true;
    world.now[1] = 2;
    start(origin);
    err = (struct cdcd_error){0};
    assert_int_equal(read_once(&l, &err), CDCD_ERROR);
    assert_int_equal(err.class, CDCD_ERR_DATA);
    assert_non_null(strstr(err.text, "a document of d.t has 42 bytes"));
    free_lines(&l);
}

static void log_goes_back(void **state)
{
    (void)state;
    struct lines l = {0};
    struct cdcd_error err = {0};
    add(2, 2, 'i', 1, 1, 0);
    add(2, 1, 'i', 2, 1, 0);
    start(origin);
    assert_int_equal(read_once(&l, &err), CDCD_OK);
    assert_int_equal(l.n, 1);
    assert_int_equal(read_once(&l, &err), CDCD_ERROR);
    assert_int_equal(err.class, CDCD_ERR_FATAL);
    free_lines(&l);
}

/* ---- images ---- */

static void modes(void **state)
{
    (void)state;
    add(2, 1, 'i', 1, 1, 0);
    add(2, 2, 'u', 1, 2, 0);
    add(2, 3, 'r', 1, 3, 0);
    add(2, 4, 'd', 1, 0, 0);
    world.now[1] = 9;
    world.before[1] = 5;
    cfg.capture_mode = MG_MODE_PLAIN;
    check(origin, (const char *const[]){"2:1.1 c1 +1", "2:2.1 u1 +? u=2", "2:3.1 u1 +3",
                                        "2:4.1 d1 -?", NULL});
    assert_int_equal(world.queries, 0);
    cfg.capture_mode = MG_MODE_PRE_IMAGE;
    check(origin, (const char *const[]){"2:1.1 c1 +1", "2:2.1 u1 -5 +? u=2", "2:3.1 u1 -5 +3",
                                        "2:4.1 d1 -5", NULL});
    cfg.capture_mode = MG_MODE_UPDATE_FULL_PRE_IMAGE;
    check(origin, (const char *const[]){"2:1.1 c1 +1", "2:2.1 u1 -5 +9 u=2 lookup",
                                        "2:3.1 u1 -5 +3", "2:4.1 d1 -5", NULL});
    world.now[1] = 0;
    cfg.capture_mode = MG_MODE_UPDATE_FULL;
    check(origin, (const char *const[]){"2:1.1 c1 +1", "2:2.1 u1 +? u=2", "2:3.1 u1 +3",
                                        "2:4.1 d1 -?", NULL});
}

/* The update's `o` is a whole document here, which is what it then becomes. */
static void post_images(void **state)
{
    (void)state;
    struct lines l = {0};
    struct cdcd_error err = {0};
    add(2, 2, 'u', 1, 2, 0);
    cfg.full_update = MG_FULL_POST_IMAGE;
    world.before[1] = 1;
    check(origin, (const char *const[]){"2:2.1 u1 +2 u=2", NULL});
    assert_int_equal(world.queries, 0);
    world.before[1] = 0;
    start(origin);
    assert_int_equal(read_once(&l, &err), CDCD_ERROR);
    assert_int_equal(err.class, CDCD_ERR_CONFIG);
    assert_non_null(strstr(err.text, "changeStreamPreAndPostImages"));
    free_lines(&l);
}

static void many_in_one(void **state)
{
    (void)state;
    for (int i = 1; i <= 40; i++)
        add(2, (uint32_t)i, 'u', i % 10 + 1, i, 0);
    for (int i = 1; i <= 10; i++)
        world.now[i] = 50;
    struct lines l = {0};
    start(origin);
    read_all(&l);
    assert_int_equal(l.n, 40);
    for (size_t i = 0; i < l.n; i++)
        assert_non_null(strstr(l.items[i], " +50 u="));
    assert_int_equal(world.asked, 40);
    assert_int_equal(world.queries, 4); /* of 4, 8, 16 and the rest */
    free_lines(&l);
}

static void fields_left_out(void **state)
{
    (void)state;
    char *list[] = {(char *)"d.t.n"};
    struct cdcd_error err = {0};
    struct cdcd_bson_element e;
    cfg.field_exclude = (struct cdcd_strlist){list, 1};
    mg_filter_free(source.filter);
    assert_int_equal(mg_filter_new(&cfg, &source.filter, &err), CDCD_OK);
    add(2, 1, 'i', 1, 1, 0);
    add(2, 2, 'u', 1, 2, 0);
    world.now[1] = 2;
    start(origin);
    struct cdcd_batch *b = cdcd_batch_new();
    assert_int_equal(mg_stream_read(&source, b, cdcd_now_ms() + 1000, &err), CDCD_OK);
    assert_int_equal(b->nevents, 2);
    for (const struct cdcd_event *x = b->events; x; x = x->next) {
        const struct cdcd_cell *d = &x->after[CDCD_DOC_DOCUMENT];
        struct cdcd_slice doc = {d->ptr, d->len};
        assert_true(cdcd_bson_find(doc, "_id", &e));
        assert_false(cdcd_bson_find(doc, "n", &e));
    }
    assert_false(cdcd_bson_find(b->last_event->update->updated, "n", &e));
    cdcd_batch_free(b);
}

/* ---- the overlap ---- */

static const struct mg_position overlap = {
    .capture = MG_OPLOG, .ts = {1, 1}, .ord = MG_ORD_ALL, .until = {3, 0}};

/* What was written after all lookups cannot have been read before them. */
static void check_then(const char *const *want, void (*later)(void))
{
    struct lines l = {0};
    size_t n = world.n;
    start(overlap);
    read_all(&l);
    later();
    read_all(&l);
    check_lines(&l, want);
    free_lines(&l);
    world.n = n;
}

static void after_overlap(void)
{
    add(200, 1, 'i', 4, 1, 0);
    add(200, 2, 'd', 2, 0, 0);
    add(200, 3, 'r', 1, 3, 0);
}

static void overlap_rules(void **state)
{
    (void)state;
    add(2, 1, 'i', 1, 1, 0); /* gone by now */
    add(2, 2, 'i', 2, 1, 0);
    add(2, 3, 'r', 2, 2, 0);
    add(2, 4, 'u', 1, 2, 0); /* gone by now */
    add(2, 5, 'd', 1, 0, 0);
    add(2, 6, 'd', 3, 0, 0); /* there again */
    world.now[2] = world.now[3] = 9;
    check_then((const char *const[]){"2:2.1 c2 +9 lookup", "2:3.1 u2 +9 lookup", "2:4.1 u1 +? u=2",
                                     "2:5.1 d1 -?", "200:1.1 c4 +1", "200:2.1 d2 -?",
                                     "200:3.1 u1 +3", NULL},
               after_overlap);
    cfg.capture_mode = MG_MODE_PLAIN; /* nothing is looked up but for the overlap */
    check_then((const char *const[]){"2:2.1 c2 +9 lookup", "2:3.1 u2 +9 lookup", "2:5.1 d1 -?",
                                     "200:1.1 c4 +1", "200:2.1 d2 -?", "200:3.1 u1 +3", NULL},
               after_overlap);
}

/* What a lookup saw of a document is not taken back by its changes before that; those of others
 * after `until` are as they are logged. */
static void overlap_of_one_document(void **state)
{
    (void)state;
    add(2, 1, 'r', 1, 1, 0);
    add(4, 1, 'r', 1, 2, 0); /* after `until`, before the lookup at 100:1 */
    add(4, 2, 'r', 2, 2, 0);
    world.now[1] = world.now[2] = 9;
    for (int i = 0; i < 2; i++) {
        world.one_by_one = i;
        check_then((const char *const[]){"2:1.1 u1 +9 lookup", "4:1.1 u1 +9 lookup", "4:2.1 u2 +2",
                                         "200:1.1 c4 +1", "200:2.1 d2 -?", "200:3.1 u1 +3", NULL},
                   after_overlap);
    }
}

static void overlap_in_positions(void **state)
{
    (void)state;
    struct lines l = {0};
    add(2, 1, 'r', 1, 1, 0);
    add(4, 1, 'r', 1, 2, 0);
    world.now[1] = 9;
    world.one_by_one = true;
    struct mg_position from = overlap;
    from.until_open = true;
    world.now_ts = (struct mg_time){3, 5};
    start(from);
    world.now_ts = (struct mg_time){100, 1};
    struct cdcd_error err = {0};
    assert_int_equal(read_once(&l, &err), CDCD_OK);
    /* A restart would know no more which documents were looked up: all up to that time. */
    assert_string_equal(l.position,
                        "{\"mode\":\"oplog\",\"ts\":[2,1],\"ord\":1,\"until\":[100,1]}");
    add(200, 1, 'i', 2, 1, 0);
    read_all(&l);
    check_lines(&l, (const char *const[]){"2:1.1 u1 +9 lookup", "4:1.1 u1 +9 lookup",
                                          "200:1.1 c2 +1", NULL});
    assert_string_equal(l.position, "{\"mode\":\"oplog\",\"ts\":[200,1],\"ord\":1}");
    free_lines(&l);
}

/* ---- the barrier ---- */

static enum cdcd_rc stop_at(struct mg_position p)
{
    struct cdcd_error err = {0};
    char *text = position_text(p);
    enum cdcd_rc rc = mg_stream_stop_at(&source, cdcd_slice_str(text), &err);
    free(text);
    return rc;
}

static enum cdcd_rc go_on(void)
{
    struct cdcd_error err = {0};
    return mg_stream_stop_at(&source, (struct cdcd_slice){NULL, 0}, &err);
}

static void barrier(void **state)
{
    (void)state;
    struct lines l = {0};
    struct cdcd_error err = {0};
    struct mg_position view = {.capture = MG_OPLOG, .ts = {2, 2}, .ord = MG_ORD_ALL};
    env.tx_metadata = true;
    add(2, 1, 'i', 1, 1, 0);
    add(2, 2, 'i', 2, 1, 7);
    add(2, 2, 'u', 2, 2, 7);
    add(2, 3, 'u', 2, 3, 0);
    world.now[2] = 3;
    start(origin);
    assert_int_equal(stop_at(view), CDCD_OK);
    assert_int_equal(read_all(&l), CDCD_END);
    check_lines(&l, (const char *const[]){"2:1.1 c1 +1", "2:2.0 B tx={\"id\": 7}:7",
                                          "2:2.1 c2 +1 tx={\"id\": 7}:7 1/1",
                                          "2:2.2 u2 +3 u=2 lookup tx={\"id\": 7}:7 2/2",
                                          "2:2.3 E tx={\"id\": 7}:7 2/0 d.t:2", NULL});
    assert_string_equal(l.position, "{\"mode\":\"oplog\",\"ts\":[2,2],\"ord\":-1}");
    assert_int_equal(read_once(&l, &err), CDCD_END);
    assert_int_equal(go_on(), CDCD_OK);
    read_all(&l);
    assert_string_equal(l.items[5], "2:3.1 u2 +3 u=3 lookup");
    assert_int_equal(l.n, 6);
    free_lines(&l);
    /* From where it already stands. */
    start(view);
    assert_int_equal(stop_at(view), CDCD_OK);
    assert_int_equal(read_all(&l), CDCD_END);
    assert_int_equal(l.n, 0);
    assert_non_null(l.position);
    free_lines(&l);
    /* By a mark. */
    view.ts.i = 9;
    start(origin);
    assert_int_equal(stop_at(view), CDCD_OK);
    assert_int_not_equal(read_all(&l), CDCD_END);
    world.mark = view.ts;
    assert_int_equal(read_all(&l), CDCD_END);
    free_lines(&l);
}

/* The rows of a resumed snapshot are read while the stream is held. */
static void barrier_with_overlap(void **state)
{
    (void)state;
    struct lines l = {0};
    struct mg_position view = {
        .capture = MG_OPLOG, .ts = {2, 1}, .ord = MG_ORD_ALL, .until_open = true};
    add(2, 1, 'i', 1, 1, 0);
    add(2, 2, 'r', 1, 2, 0);
    add(120, 1, 'r', 2, 2, 0);
    add(160, 1, 'r', 3, 2, 0);
    world.now[1] = world.now[2] = world.now[3] = 9;
    start(origin);
    assert_int_equal(stop_at(view), CDCD_OK);
    assert_int_equal(read_all(&l), CDCD_END);
    assert_non_null(strstr(l.position, "\"until_open\":true"));
    world.now_ts = (struct mg_time){150, 1};
    assert_int_equal(go_on(), CDCD_OK);
    read_all(&l);
    check_lines(&l, (const char *const[]){"2:1.1 c1 +9 lookup", "2:2.1 u1 +9 lookup",
                                          "120:1.1 u2 +9 lookup", "160:1.1 u3 +2", NULL});
    assert_string_equal(l.position, "{\"mode\":\"oplog\",\"ts\":[160,1],\"ord\":1}");
    free_lines(&l);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(numbers),
        TEST(transactions),
        TEST(half_transaction),
        TEST(commands),
        TEST(marks),
        TEST(errors),
        TEST(too_large),
        TEST(log_goes_back),
        TEST(modes),
        TEST(post_images),
        TEST(many_in_one),
        TEST(fields_left_out),
        TEST(overlap_rules),
        TEST(overlap_of_one_document),
        TEST(overlap_in_positions),
        TEST(barrier),
        TEST(barrier_with_overlap),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
