/*
 * The stream's state without a server: order, resuming at every place, aborted subtransactions,
 * relations in spools, prepared transactions, barrier, filters, transaction metadata.
 *
 * A log is a list of messages. `from` says from which start position on the server sends a message
 * again: what commits, prepares or stands alone before the start is left out, relations of plain
 * transactions come in every session.
 */
#include "pg_messages.h"
#include "stream.h"

#include <inttypes.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

#define ALWAYS UINT64_MAX

struct entry {
    pg_lsn lsn, from;
    char *data;
    size_t len;
};

struct log {
    struct entry items[128];
    size_t n;
};

static struct pg_types *types;
static char dir[] = "/tmp/test_pg_stream.XXXXXX";
static struct pg_config cfg = {.slot_name = "s", .publication_name = "p", .spill_dir = dir};
static struct cdcd_source_env env;

static void reset_env(void)
{
    env = (struct cdcd_source_env){.pipeline = "t", .want_truncate = true, .want_message = true};
    cfg.message_include = cfg.message_exclude = (struct cdcd_strlist){NULL, 0};
    cfg.spill_max_bytes = 0;
}

static void add(struct log *l, pg_lsn lsn, pg_lsn from, struct cdcd_slice raw)
{
    struct entry *e = &l->items[l->n++];
    assert_true(l->n <= 128);
    *e = (struct entry){lsn, from, malloc(raw.len), raw.len};
    memcpy(e->data, raw.ptr, raw.len);
}

static void free_log(struct log *l)
{
    for (size_t i = 0; i < l->n; i++)
        free(l->items[i].data);
    l->n = 0;
}

/* ---- a run ---- */

struct run {
    struct pg_stream *st;
    struct cdcd_batch *b;
    char *lines[512];
    size_t n;
};

static void open_run(struct run *r, const char *position)
{
    struct pg_position p;
    struct cdcd_error err = {0};
    struct pg_rel_env rel_env = {.db = "db", .types = types};
    memset(r, 0, sizeof *r);
    assert_true(pg_position_parse(cdcd_slice_str(position), &p));
    if (pg_stream_new(&cfg, &env, &rel_env, &p, &r->st, &err) != CDCD_OK)
        fail_msg("%s", err.text);
    r->b = cdcd_batch_new();
}

static void close_run(struct run *r)
{
    for (size_t i = 0; i < r->n; i++)
        free(r->lines[i]);
    cdcd_batch_free(r->b);
    pg_stream_free(r->st);
}

static void add_cells(struct cdcd_buf *out, const char *name, const struct cdcd_cell *c, uint32_t n)
{
    if (!c)
        return;
    cdcd_buf_addf(out, " %s", name);
    for (uint32_t i = 0; i < n; i++) {
        cdcd_buf_adds(out, i ? "|" : "=");
        if (c[i].kind == CDCD_C_INT)
            cdcd_buf_addf(out, "%" PRId64, c[i].i);
        else if (c[i].kind == CDCD_C_TEXT || c[i].kind == CDCD_C_BYTES)
            cdcd_buf_add(out, c[i].ptr, c[i].len);
        else
            cdcd_buf_adds(out, c[i].kind == CDCD_C_NULL ? "!" : "-");
    }
}

static char *line_of(const struct cdcd_event *e)
{
    static const char ops[] = "crudtmBE";
    struct cdcd_buf out;
    cdcd_buf_init(&out, 0);
    cdcd_buf_addf(&out, "%" PRIu64 ".%" PRIu64 " %c", e->pos.commit, e->pos.ordinal, ops[e->op]);
    if (e->schema && e->schema->ncolumns)
        cdcd_buf_addf(&out, " %s", e->schema->table);
    add_cells(&out, "before", e->before, e->schema ? e->schema->ncolumns : 0);
    add_cells(&out, "after", e->after,
              e->op == CDCD_OP_MESSAGE ? 2
              : e->schema              ? e->schema->ncolumns
                                       : 0);
    if (e->source[PG_SRC_ORIGIN].kind == CDCD_C_TEXT)
        cdcd_buf_addf(&out, " origin=%.*s", (int)e->source[PG_SRC_ORIGIN].len,
                      e->source[PG_SRC_ORIGIN].ptr);
    if (e->tx_id.ptr)
        cdcd_buf_addf(&out, " tx=%.*s/%" PRIu64 "/%" PRIu64, (int)e->tx_id.len, e->tx_id.ptr,
                      e->total_order, e->data_collection_order);
    for (uint32_t i = 0; i < e->ncollections; i++)
        cdcd_buf_addf(&out, " %.*s:%" PRIu64, (int)e->collections[i].name.len,
                      e->collections[i].name.ptr, e->collections[i].count);
    cdcd_buf_addf(&out, " seq=%.*s", (int)e->sequence.len, e->sequence.ptr);
    cdcd_buf_cstr(&out);
    return out.ptr;
}

static void take_events(struct run *r)
{
    for (const struct cdcd_event *e = r->b->events; e; e = e->next) {
        assert_true(r->n < 512);
        r->lines[r->n++] = line_of(e);
    }
    cdcd_batch_reset(r->b);
}

static char *position_of(const struct run *r)
{
    struct pg_position p;
    struct cdcd_buf out;
    cdcd_buf_init(&out, 0);
    pg_stream_position(r->st, &p);
    pg_position_write(&p, &out);
    cdcd_buf_cstr(&out);
    return out.ptr;
}

/* Called after each step with what is delivered so far. */
typedef void (*after_step)(struct run *r, size_t next, void *arg);

static enum cdcd_rc feed(struct run *r, const struct entry *e, struct cdcd_error *err)
{
    return pg_stream_feed(r->st, e->lsn, 777, (struct cdcd_slice){e->data, e->len}, r->b, err);
}

static void run_log(struct run *r, const struct log *l, size_t begin, pg_lsn start, after_step step,
                    void *arg)
{
    for (size_t i = begin; i < l->n; i++) {
        const struct entry *e = &l->items[i];
        struct cdcd_error err = {0};
        if (e->from != ALWAYS && e->from < start)
            continue;
        if (feed(r, e, &err) != CDCD_OK)
            fail_msg("message %zu '%c': %s", i, e->data[0], err.text);
        take_events(r);
        while (pg_stream_replaying(r->st)) {
            /* one event a batch: each place within a replay is a place to resume */
            r->b->nevents = CDCD_BATCH_EVENTS - 1;
            if (pg_stream_replay(r->st, r->b, &err) != CDCD_OK)
                fail_msg("replay after message %zu: %s", i, err.text);
            take_events(r);
            if (step && pg_stream_replaying(r->st))
                step(r, i + 1, arg);
        }
        if (step)
            step(r, i + 1, arg);
    }
}

/* Runs a log once and compares all lines. */
static void expect_lines(const struct log *l, const char *const *want)
{
    struct run r;
    open_run(&r, "{\"lsn\":\"0/1\"}");
    run_log(&r, l, 0, 1, NULL, NULL);
    for (size_t i = 0; i < r.n || want[i]; i++)
        assert_string_equal(i < r.n ? r.lines[i] : "(nothing)", want[i] ? want[i] : "(nothing)");
    close_run(&r);
}

/* ---- resuming at every place ---- */

struct resume {
    const struct log *l;
    const struct run *whole;
};

/* A new session from the position here gives exactly what is still missing. */
static void resume_here(struct run *r, size_t next, void *arg)
{
    const struct resume *re = arg;
    struct pg_position p;
    struct run again;
    char *position = position_of(r);
    assert_true(pg_position_parse(cdcd_slice_str(position), &p));
    open_run(&again, position);
    run_log(&again, re->l, 0, p.lsn, NULL, NULL);
    if (r->n + again.n != re->whole->n)
        fail_msg("after message %zu, position %s: %zu + %zu events of %zu", next, position, r->n,
                 again.n, re->whole->n);
    for (size_t i = 0; i < again.n; i++)
        assert_string_equal(again.lines[i], re->whole->lines[r->n + i]);
    close_run(&again);
    free(position);
}

static void resumes_everywhere(const struct log *l)
{
    for (int metadata = 0; metadata < 2; metadata++) {
        struct run whole, r;
        env.tx_metadata = metadata;
        open_run(&whole, "{\"lsn\":\"0/1\"}");
        run_log(&whole, l, 0, 1, NULL, NULL);
        struct resume re = {l, &whole};
        open_run(&r, "{\"lsn\":\"0/1\"}");
        run_log(&r, l, 0, 1, resume_here, &re);
        assert_int_equal(r.n, whole.n);
        close_run(&r);
        close_run(&whole);
    }
    env.tx_metadata = false;
}

#define AB "*a:23 b:25"

static void plain_transactions(struct log *l)
{
    struct msg m;
    const uint32_t both[] = {7, 8};
    add(l, 90, 100, msg_begin(&m, 100, 1));
    add(l, 90, ALWAYS, msg_relation(&m, 0, 7, "t", 'd', AB));
    add(l, 90, ALWAYS, msg_relation(&m, 0, 8, "u", 'd', AB));
    add(l, 91, 100, msg_insert(&m, 0, 7, "1|one"));
    add(l, 92, 100, msg_update(&m, 0, 7, 'K', "1|!", "2|two"));
    add(l, 93, 100, msg_delete(&m, 0, 7, 'K', "2|!"));
    add(l, 110, 100, msg_commit(&m, 100, 110));
    add(l, 120, 119, msg_logical(&m, 0, false, 120, "p", "alone"));
    add(l, 80, 130, msg_begin(&m, 130, 2));
    add(l, 80, 130, msg_origin(&m, 7, "far"));
    add(l, 81, 130, msg_truncate(&m, 0, 2, both));
    add(l, 82, 130, msg_logical(&m, 0, true, 82, "p", "inside"));
    add(l, 83, 130, msg_insert(&m, 0, 8, "5|five"));
    add(l, 140, 130, msg_commit(&m, 130, 140));
    add(l, 150, 150, msg_begin(&m, 150, 3));
    add(l, 160, 150, msg_commit(&m, 150, 160));
}

static void plain(void **state)
{
    (void)state;
    static const char *const want[] = {
        "100.1 c t after=1|one seq=[null,\"91\"]",
        "100.2 u t before=1|- after=2|two seq=[null,\"92\"]",
        "100.3 d t before=2|- seq=[null,\"93\"]",
        "119.1 m after=p|alone seq=[\"120\",\"120\"]",
        "130.1 t t origin=far seq=[\"120\",\"81\"]",
        "130.2 t u origin=far seq=[\"120\",\"81\"]",
        "130.3 m after=p|inside origin=far seq=[\"120\",\"82\"]",
        "130.4 c u after=5|five origin=far seq=[\"120\",\"83\"]",
        NULL,
    };
    static const char *const want_metadata[] = {
        "100.0 B tx=1:90/0/0 seq=[null,\"90\"]",
        "100.1 c t after=1|one tx=1:91/1/1 seq=[null,\"91\"]",
        "100.2 u t before=1|- after=2|two tx=1:92/2/2 seq=[null,\"92\"]",
        "100.3 d t before=2|- tx=1:93/4/4 seq=[null,\"93\"]",
        "100.4 E tx=1:110/4/0 public.t:4 seq=[null,\"110\"]",
        "119.1 m after=p|alone seq=[\"120\",\"120\"]",
        "130.0 B origin=far tx=2:80/0/0 seq=[\"120\",\"80\"]",
        "130.1 t t origin=far tx=2:81/1/1 seq=[\"120\",\"81\"]",
        "130.2 t u origin=far tx=2:81/2/1 seq=[\"120\",\"81\"]",
        "130.3 m after=p|inside origin=far tx=2:82/3/1 seq=[\"120\",\"82\"]",
        "130.4 c u after=5|five origin=far tx=2:83/4/2 seq=[\"120\",\"83\"]",
        "130.5 E origin=far tx=2:140/4/0 public.t:1 public.u:2 message:1 seq=[\"120\",\"140\"]",
        NULL,
    };
    struct log l = {.n = 0};
    reset_env();
    plain_transactions(&l);
    expect_lines(&l, want);
    env.tx_metadata = true;
    expect_lines(&l, want_metadata);
    resumes_everywhere(&l);
    free_log(&l);
}

/* What is filtered keeps its ordinal. */
static void filters(void **state)
{
    (void)state;
    static const char *const want[] = {
        "100.1 c t after=1|one seq=[null,\"91\"]",
        "100.2 u t before=1|- after=2|two seq=[null,\"92\"]",
        "100.3 d t before=2|- seq=[null,\"93\"]",
        "130.4 c u after=5|five origin=far seq=[\"110\",\"83\"]",
        NULL,
    };
    char *exclude[] = {"x", "p"};
    struct log l = {.n = 0};
    plain_transactions(&l);
    reset_env();
    env.want_truncate = env.want_message = false;
    expect_lines(&l, want);
    resumes_everywhere(&l);
    reset_env();
    env.want_truncate = false;
    cfg.message_exclude = (struct cdcd_strlist){exclude, 2};
    expect_lines(&l, want);
    reset_env();
    env.want_truncate = false;
    cfg.message_include = (struct cdcd_strlist){exclude, 1};
    expect_lines(&l, want);
    reset_env();
    free_log(&l);
}

/* ---- streamed transactions ---- */

static void streamed_log(struct log *l)
{
    struct msg m;
    /* 10 is sent in pieces; 11 (sub) is aborted after its table was described; 20 is aborted */
    add(l, 50, 200, msg_stream_start(&m, 10, true));
    add(l, 50, 200, msg_relation(&m, 10, 7, "t", 'd', AB));
    add(l, 51, 200, msg_insert(&m, 10, 7, "1|a"));
    add(l, 51, 200, msg_stream_stop(&m));
    add(l, 55, 110, msg_begin(&m, 110, 5));
    add(l, 55, ALWAYS, msg_relation(&m, 0, 8, "u", 'd', AB));
    add(l, 56, 110, msg_insert(&m, 0, 8, "9|plain"));
    add(l, 120, 110, msg_commit(&m, 110, 120));
    add(l, 60, 200, msg_stream_start(&m, 20, true));
    add(l, 60, 200, msg_relation(&m, 20, 7, "t", 'd', AB));
    add(l, 61, 200, msg_insert(&m, 20, 7, "77|never"));
    add(l, 61, 200, msg_stream_stop(&m));
    add(l, 62, 200, msg_stream_start(&m, 10, false));
    add(l, 62, 200, msg_insert(&m, 11, 7, "2|aborted"));
    add(l, 63, 200, msg_relation(&m, 11, 8, "u", 'd', AB));
    add(l, 63, 200, msg_delete(&m, 11, 8, 'K', "9|!"));
    add(l, 64, 200, msg_logical(&m, 11, true, 64, "p", "aborted"));
    add(l, 64, 200, msg_stream_stop(&m));
    add(l, 65, 200, msg_stream_abort(&m, 10, 11));
    add(l, 66, 200, msg_stream_abort(&m, 20, 20));
    add(l, 67, 200, msg_stream_start(&m, 10, false));
    add(l, 68, 200, msg_insert(&m, 12, 8, "3|kept sub"));
    add(l, 69, 200, msg_insert(&m, 10, 7, "4|b"));
    add(l, 69, 200, msg_stream_stop(&m));
    add(l, 210, 200, msg_stream_commit(&m, 10, 200, 210));
    add(l, 220, 220, msg_begin(&m, 220, 6));
    add(l, 221, 220, msg_insert(&m, 0, 8, "10|after"));
    add(l, 230, 220, msg_commit(&m, 220, 230));
}

static size_t files_in_dir(void)
{
    char cmd[64];
    size_t n = 0;
    snprintf(cmd, sizeof cmd, "ls %s | wc -l", dir);
    FILE *f = popen(cmd, "r");
    assert_int_equal(fscanf(f, "%zu", &n), 1);
    pclose(f);
    return n;
}

static void streamed(void **state)
{
    (void)state;
    static const char *const want[] = {
        "110.1 c u after=9|plain seq=[null,\"56\"]",
        "200.1 c t after=1|a seq=[\"120\",\"51\"]",
        "200.2 c u after=3|kept sub seq=[\"120\",\"68\"]",
        "200.3 c t after=4|b seq=[\"120\",\"69\"]",
        "220.1 c u after=10|after seq=[\"210\",\"221\"]",
        NULL,
    };
    struct log l = {.n = 0};
    reset_env();
    streamed_log(&l);
    expect_lines(&l, want);
    resumes_everywhere(&l);
    assert_int_equal(files_in_dir(), 0);
    free_log(&l);
}

/* An old description in a spool is for the spool's rows only, and one that only the spool has
 * stays known. */
static void relations_in_spools(void **state)
{
    (void)state;
    static const char *const want[] = {
        "100.1 c new after=1|2|x seq=[null,\"61\"]",
        "200.1 c old after=5|five seq=[\"110\",\"51\"]",
        "200.2 c v after=6|six seq=[\"110\",\"52\"]",
        "300.1 c new after=3|4|y seq=[\"210\",\"81\"]",
        "300.2 c v after=7|seven seq=[\"210\",\"82\"]",
        NULL,
    };
    struct log l = {.n = 0};
    struct msg m;
    reset_env();
    add(&l, 50, 200, msg_stream_start(&m, 10, true));
    add(&l, 50, 200, msg_relation(&m, 10, 7, "old", 'd', AB));
    add(&l, 51, 200, msg_insert(&m, 10, 7, "5|five"));
    add(&l, 52, 200, msg_relation(&m, 10, 9, "v", 'd', AB));
    add(&l, 52, 200, msg_insert(&m, 10, 9, "6|six"));
    add(&l, 52, 200, msg_stream_stop(&m));
    add(&l, 60, 100, msg_begin(&m, 100, 2));
    add(&l, 60, 100, msg_relation(&m, 0, 7, "new", 'd', "*a:23 z:23 b:25"));
    add(&l, 61, 100, msg_insert(&m, 0, 7, "1|2|x"));
    add(&l, 110, 100, msg_commit(&m, 100, 110));
    add(&l, 210, 200, msg_stream_commit(&m, 10, 200, 210));
    add(&l, 80, 300, msg_begin(&m, 300, 3));
    add(&l, 81, 300, msg_insert(&m, 0, 7, "3|4|y"));
    add(&l, 82, 300, msg_insert(&m, 0, 9, "7|seven"));
    add(&l, 310, 300, msg_commit(&m, 300, 310));
    expect_lines(&l, want);
    free_log(&l);
}

/* ---- prepared transactions ---- */

static void prepared(void **state)
{
    (void)state;
    static const char *const want[] = {
        "150.1 c t after=3|plain seq=[null,\"151\"]",
        "200.1 c t after=1|held seq=[\"160\",\"101\"]",
        "240.1 c t after=8|9|new shape seq=[\"210\",\"236\"]",
        "260.1 c t after=5|streamed seq=[\"250\",\"171\"]",
        "300.1 c t after=2|old shape seq=[\"270\",\"126\"]",
        "310.1 c t after=4|5|new shape seq=[\"305\",\"311\"]",
        NULL,
    };
    struct log l = {.n = 0};
    struct msg m;
    reset_env();
    add(&l, 100, 110, msg_begin_prepare(&m, 10, 110, 120, "it's"));
    add(&l, 100, ALWAYS, msg_relation(&m, 0, 7, "t", 'd', AB));
    add(&l, 101, 110, msg_insert(&m, 0, 7, "1|held"));
    add(&l, 120, 110, msg_prepared(&m, 'P', 10, 110, 120, "it's"));
    /* the server takes t for known */
    add(&l, 125, 130, msg_begin_prepare(&m, 11, 130, 140, "g2"));
    add(&l, 126, 130, msg_insert(&m, 0, 7, "2|old shape"));
    add(&l, 140, 130, msg_prepared(&m, 'P', 11, 130, 140, "g2"));
    add(&l, 150, 150, msg_begin(&m, 150, 12));
    add(&l, 151, 150, msg_insert(&m, 0, 7, "3|plain"));
    add(&l, 160, 150, msg_commit(&m, 150, 160));
    add(&l, 170, 180, msg_stream_start(&m, 13, true));
    add(&l, 170, 180, msg_relation(&m, 13, 7, "t", 'd', AB));
    add(&l, 171, 180, msg_insert(&m, 13, 7, "5|streamed"));
    add(&l, 171, 180, msg_stream_stop(&m));
    add(&l, 190, 180, msg_prepared(&m, 'p', 13, 180, 190, "big"));
    add(&l, 210, 200, msg_prepared(&m, 'K', 10, 200, 210, "it's"));
    add(&l, 225, 220, msg_begin_prepare(&m, 14, 215, 220, "g4"));
    add(&l, 226, 220, msg_insert(&m, 0, 7, "6|rolled back"));
    add(&l, 230, 220, msg_prepared(&m, 'P', 14, 215, 220, "g4"));
    add(&l, 233, 220, msg_rollback_prepared(&m, 14, 220, 233, "g4"));
    /* another shape before the one prepared under the old is committed */
    add(&l, 235, 240, msg_begin(&m, 240, 15));
    add(&l, 235, ALWAYS, msg_relation(&m, 0, 7, "t", 'd', "*a:23 z:23 b:25"));
    add(&l, 236, 240, msg_insert(&m, 0, 7, "8|9|new shape"));
    add(&l, 250, 240, msg_commit(&m, 240, 250));
    add(&l, 270, 260, msg_prepared(&m, 'K', 13, 260, 270, "big"));
    add(&l, 305, 300, msg_prepared(&m, 'K', 11, 300, 305, "g2"));
    add(&l, 310, 310, msg_begin(&m, 310, 16));
    add(&l, 311, 310, msg_insert(&m, 0, 7, "4|5|new shape"));
    add(&l, 320, 310, msg_commit(&m, 310, 320));
    expect_lines(&l, want);

    /* the slot is never confirmed beyond what it would not send again */
    struct run r;
    struct pg_position p;
    open_run(&r, "{\"lsn\":\"0/1\"}");
    for (size_t i = 0; i < l.n; i++) {
        struct cdcd_error err = {0};
        assert_int_equal(feed(&r, &l.items[i], &err), CDCD_OK);
        while (pg_stream_replaying(r.st))
            assert_int_equal(pg_stream_replay(r.st, r.b, &err), CDCD_OK);
        assert_int_equal(pg_stream_keepalive(r.st, l.items[i].lsn, &err), CDCD_OK);
        pg_stream_position(r.st, &p);
        if (i >= 3 && i < 15)
            assert_int_equal(p.lsn, 110);
        if (i >= 15 && i < 24)
            assert_int_equal(p.lsn, 130);
        if (i == 9)
            assert_int_equal(p.done, 160);
    }
    assert_int_equal(p.lsn, 320);
    assert_int_equal(p.done, 320);
    close_run(&r);
    free_log(&l);
}

static void prepared_resumes(void **state)
{
    (void)state;
    struct log l = {.n = 0};
    struct msg m;
    reset_env();
    /* each block describes its table, as the first of a session does */
    add(&l, 100, 110, msg_begin_prepare(&m, 10, 110, 120, "a"));
    add(&l, 100, 110, msg_relation(&m, 0, 7, "t", 'd', AB));
    add(&l, 101, 110, msg_insert(&m, 0, 7, "1|a"));
    add(&l, 102, 110, msg_update(&m, 0, 7, 'K', "1|!", "2|a"));
    add(&l, 120, 110, msg_prepared(&m, 'P', 10, 110, 120, "a"));
    add(&l, 150, 150, msg_begin(&m, 150, 12));
    add(&l, 150, 150, msg_relation(&m, 0, 7, "t", 'd', AB));
    add(&l, 151, 150, msg_insert(&m, 0, 7, "3|b"));
    add(&l, 152, 150, msg_insert(&m, 0, 7, "4|b"));
    add(&l, 160, 150, msg_commit(&m, 150, 160));
    add(&l, 170, 165, msg_logical(&m, 0, false, 170, "p", "alone"));
    add(&l, 210, 200, msg_prepared(&m, 'K', 10, 200, 210, "a"));
    add(&l, 220, 220, msg_begin_prepare(&m, 20, 220, 230, "a"));
    add(&l, 220, 220, msg_relation(&m, 0, 7, "t", 'd', AB));
    add(&l, 221, 220, msg_insert(&m, 0, 7, "9|again"));
    add(&l, 230, 220, msg_prepared(&m, 'P', 20, 220, 230, "a"));
    add(&l, 250, 240, msg_prepared(&m, 'K', 20, 240, 250, "a"));
    resumes_everywhere(&l);
    free_log(&l);

    /* committed, but its changes went by before */
    struct run r;
    struct cdcd_error err = {0};
    open_run(&r, "{\"lsn\":\"0/64\"}");
    assert_int_equal(
        pg_stream_feed(r.st, 210, 0, msg_prepared(&m, 'K', 5, 200, 210, "lost"), r.b, &err),
        CDCD_ERROR);
    assert_int_equal(err.class, CDCD_ERR_LOSS);
    assert_non_null(strstr(err.text, "lost"));
    close_run(&r);
}

/* ---- barrier, keepalives, errors ---- */

static void barrier(void **state)
{
    (void)state;
    struct log l = {.n = 0};
    struct run r;
    struct cdcd_error err = {0};
    reset_env();
    plain_transactions(&l);
    static const struct {
        pg_lsn barrier;
        size_t stops_at; /* number of the first message not taken */
    } cases[] = {{100, 0}, {101, 7}, {119, 7}, {120, 8}, {130, 8}, {131, 14}, {150, 14}, {151, 16}};
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
        open_run(&r, "{\"lsn\":\"0/1\"}");
        r.st->barrier = cases[c].barrier;
        size_t i = 0;
        enum cdcd_rc rc = CDCD_OK;
        while (i < l.n && (rc = feed(&r, &l.items[i], &err)) == CDCD_OK)
            i++;
        assert_int_equal(i, cases[c].stops_at);
        assert_int_equal(rc, i < l.n ? CDCD_END : CDCD_OK);
        /* the refused message is taken once the barrier is gone */
        r.st->barrier = 0;
        for (; i < l.n; i++)
            assert_int_equal(feed(&r, &l.items[i], &err), CDCD_OK);
        assert_int_equal(r.b->nevents, 8);
        close_run(&r);
    }
    free_log(&l);
}

static void keepalives(void **state)
{
    (void)state;
    struct msg m;
    struct run r;
    struct pg_position p;
    struct cdcd_error err = {0};
    reset_env();
    open_run(&r, "{\"lsn\":\"0/64\"}");
    assert_int_equal(pg_stream_keepalive(r.st, 500, &err), CDCD_OK);
    assert_int_equal(pg_stream_keepalive(r.st, 400, &err), CDCD_OK);
    pg_stream_position(r.st, &p);
    assert_int_equal(p.lsn, 500);
    /* never into a transaction that is half read */
    assert_int_equal(pg_stream_feed(r.st, 600, 0, msg_begin(&m, 700, 1), r.b, &err), CDCD_OK);
    assert_int_equal(pg_stream_keepalive(r.st, 900, &err), CDCD_OK);
    pg_stream_position(r.st, &p);
    assert_int_equal(p.done, 500);
    close_run(&r);

    /* after a resume from before a PREPARE, not beyond it until it was met again */
    open_run(&r, "{\"lsn\":\"0/64\",\"done\":\"0/C8\"}");
    assert_int_equal(pg_stream_keepalive(r.st, 150, &err), CDCD_OK);
    pg_stream_position(r.st, &p);
    assert_int_equal(p.lsn, 100);
    assert_int_equal(p.done, 200);
    assert_int_equal(pg_stream_keepalive(r.st, 200, &err), CDCD_OK);
    pg_stream_position(r.st, &p);
    assert_int_equal(p.lsn, 200);
    close_run(&r);

    /* a half delivered transaction must come again */
    open_run(&r, "{\"lsn\":\"0/64\",\"tx\":\"0/C8\",\"ord\":3}");
    assert_int_equal(pg_stream_keepalive(r.st, 200, &err), CDCD_OK);
    assert_int_equal(pg_stream_keepalive(r.st, 201, &err), CDCD_ERROR);
    assert_int_equal(err.class, CDCD_ERR_LOSS);
    assert_int_equal(pg_stream_feed(r.st, 250, 0, msg_begin(&m, 250, 1), r.b, &err), CDCD_ERROR);
    assert_int_equal(err.class, CDCD_ERR_LOSS);
    assert_int_equal(pg_stream_feed(r.st, 150, 0, msg_begin(&m, 200, 1), r.b, &err), CDCD_OK);
    assert_int_equal(pg_stream_feed(r.st, 210, 0, msg_commit(&m, 200, 210), r.b, &err), CDCD_ERROR);
    assert_int_equal(err.class, CDCD_ERR_LOSS);
    assert_non_null(strstr(err.text, "3 changes"));
    close_run(&r);
}

static void out_of_order(void **state)
{
    (void)state;
    struct msg m;
    struct cdcd_error err = {0};
    struct run r;
    reset_env();
    enum { IN_NOTHING, IN_TX, IN_BLOCK, IN_PREPARE };
    static const char *const refused[] = {"CIUDTOEPcp", "BCScKbPpEr", "BCScKbAprP", "BCScKbAprE"};
    for (int where = 0; where < 4; where++) {
        for (const char *t = refused[where]; *t; t++) {
            open_run(&r, "{\"lsn\":\"0/1\"}");
            enum cdcd_rc rc = CDCD_OK;
            if (where == IN_TX)
                rc = pg_stream_feed(r.st, 90, 0, msg_begin(&m, 100, 1), r.b, &err);
            if (where == IN_BLOCK)
                rc = pg_stream_feed(r.st, 90, 0, msg_stream_start(&m, 1, true), r.b, &err);
            if (where == IN_PREPARE)
                rc = pg_stream_feed(r.st, 90, 0, msg_begin_prepare(&m, 1, 100, 110, "g"), r.b,
                                    &err);
            assert_int_equal(rc, CDCD_OK);
            const uint32_t oid = 7;
            struct cdcd_slice raw = {NULL, 0};
            switch (*t) {
            case 'B': raw = msg_begin(&m, 100, 2); break;
            case 'C': raw = msg_commit(&m, 999, 1000); break;
            case 'I': raw = msg_insert(&m, 0, 7, "1"); break;
            case 'U': raw = msg_update(&m, 0, 7, 0, NULL, "1"); break;
            case 'D': raw = msg_delete(&m, 0, 7, 'K', "1"); break;
            case 'T': raw = msg_truncate(&m, 0, 1, &oid); break;
            case 'O': raw = msg_origin(&m, 1, "o"); break;
            case 'S': raw = msg_stream_start(&m, 3, true); break;
            case 'E': raw = msg_stream_stop(&m); break;
            case 'c': raw = msg_stream_commit(&m, 3, 100, 110); break;
            case 'A': raw = msg_stream_abort(&m, 3, 3); break;
            case 'b': raw = msg_begin_prepare(&m, 3, 100, 110, "g"); break;
            case 'r': raw = msg_rollback_prepared(&m, 3, 100, 110, "g"); break;
            default: raw = msg_prepared(&m, *t, 3, 100, 110, "g");
            }
            if (pg_stream_feed(r.st, 95, 0, raw, r.b, &err) != CDCD_ERROR)
                fail_msg("'%c' is taken in state %d", *t, where);
            assert_int_equal(r.b->nevents, 0);
            close_run(&r);
        }
    }
    open_run(&r, "{\"lsn\":\"0/1\"}");
    assert_int_equal(pg_stream_feed(r.st, 90, 0, msg_stream_start(&m, 1, false), r.b, &err),
                     CDCD_ERROR);
    assert_int_equal(pg_stream_feed(r.st, 90, 0, msg_begin(&m, 100, 1), r.b, &err), CDCD_OK);
    assert_int_equal(pg_stream_feed(r.st, 91, 0, msg_insert(&m, 0, 7, "1"), r.b, &err), CDCD_ERROR);
    assert_non_null(strstr(err.text, "never described"));
    close_run(&r);
}

/* After an error, the batch and the position are as before the message. */
static void error_leaves_no_trace(void **state)
{
    (void)state;
    struct msg m;
    struct run r;
    struct pg_position p;
    struct cdcd_error err = {0};
    reset_env();
    env.tx_metadata = true;
    env.max_event_bytes = 100;
    open_run(&r, "{\"lsn\":\"0/1\"}");
    assert_int_equal(pg_stream_feed(r.st, 90, 0, msg_begin(&m, 100, 1), r.b, &err), CDCD_OK);
    assert_int_equal(pg_stream_feed(r.st, 90, 0, msg_relation(&m, 0, 7, "t", 'd', AB), r.b, &err),
                     CDCD_OK);
    assert_int_equal(pg_stream_feed(r.st, 91, 0, msg_insert(&m, 0, 7, "no number|x"), r.b, &err),
                     CDCD_ERROR);
    assert_int_equal(err.class, CDCD_ERR_DATA);
    assert_int_equal(r.b->nevents, 0);
    assert_null(r.b->events);
    char big[200];
    memset(big, 'x', sizeof big);
    memcpy(big, "1|", 2);
    big[199] = 0;
    assert_int_equal(pg_stream_feed(r.st, 91, 0, msg_insert(&m, 0, 7, big), r.b, &err), CDCD_ERROR);
    assert_int_equal(err.class, CDCD_ERR_DATA);
    assert_non_null(strstr(err.text, "max.event.bytes"));
    pg_stream_position(r.st, &p);
    assert_int_equal(p.tx, 0);
    assert_int_equal(pg_stream_feed(r.st, 92, 0, msg_insert(&m, 0, 7, "1|x"), r.b, &err), CDCD_OK);
    assert_int_equal(r.b->nevents, 2);
    pg_stream_position(r.st, &p);
    assert_int_equal(p.tx, 100);
    assert_int_equal(p.ord, 1);
    close_run(&r);
    reset_env();
}

static void spill_limit(void **state)
{
    (void)state;
    struct msg m;
    struct run r;
    struct cdcd_error err = {0};
    reset_env();
    cfg.spill_max_bytes = 200;
    open_run(&r, "{\"lsn\":\"0/1\"}");
    assert_int_equal(pg_stream_feed(r.st, 50, 0, msg_stream_start(&m, 10, true), r.b, &err),
                     CDCD_OK);
    enum cdcd_rc rc = CDCD_OK;
    int n = 0;
    while (rc == CDCD_OK && n < 100) {
        rc = pg_stream_feed(r.st, 51, 0, msg_insert(&m, 10, 7, "1|a"), r.b, &err);
        n++;
    }
    assert_int_equal(rc, CDCD_ERROR);
    assert_int_equal(n, 5); /* 41 bytes each */
    assert_non_null(strstr(err.text, "spill.max.bytes"));
    assert_non_null(strstr(err.text, dir));
    close_run(&r);
    reset_env();
}

static int setup(void **state)
{
    (void)state;
    types = pg_types_new();
    return mkdtemp(dir) ? 0 : -1;
}

static int teardown(void **state)
{
    (void)state;
    pg_types_free(types);
    return rmdir(dir); /* fails when a file is left */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(plain),        cmocka_unit_test(filters),
        cmocka_unit_test(streamed),     cmocka_unit_test(relations_in_spools),
        cmocka_unit_test(prepared),     cmocka_unit_test(prepared_resumes),
        cmocka_unit_test(barrier),      cmocka_unit_test(keepalives),
        cmocka_unit_test(out_of_order), cmocka_unit_test(error_leaves_no_trace),
        cmocka_unit_test(spill_limit),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
