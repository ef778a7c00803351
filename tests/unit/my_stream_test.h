/*
 * A stream without a server: a log that a test writes event by event (my_events.h) is read as the
 * plugin would read it. What it gives is compared as text, a line an event. Every log is also read
 * again from every position that could have been stored, and must give the same.
 */
#ifndef CDCD_TEST_MY_STREAM_TEST_H
#define CDCD_TEST_MY_STREAM_TEST_H

#include "my_events.h"

#include <inttypes.h>
#include <unistd.h>

#define FIRST_SEQ 100

static char dir[] = "/tmp/test_my_stream.XXXXXX";
static struct my_config cfg;
static struct cdcd_source_env env;
static struct my_server server;

static inline void reset_env(void)
{
    cfg = (struct my_config){.pipeline = "t", .spill_dir = dir};
    env = (struct cdcd_source_env){.pipeline = "t", .want_truncate = true, .want_ddl = true};
}

static inline void use_flavor(enum my_flavor flavor, bool gtids)
{
    bool mysql = flavor == MY_MYSQL;
    memset(&server, 0, sizeof server);
    server.flavor = flavor;
    server.version = mysql ? 90704 : 101119;
    server.gtid = gtids;
    server.server_id = 7;
    snprintf(server.uuid, sizeof server.uuid, "%s", UUID_TEXT);
    snprintf(server.charset, sizeof server.charset, "utf8mb4");
    snprintf(server.collation, sizeof server.collation, "%s",
             mysql ? "utf8mb4_0900_ai_ci" : "utf8mb4_general_ci");
}

/* ---- a run ---- */

struct run {
    struct my_filter *filter;
    struct my_shapes *shapes;
    struct my_stream *st;
    struct cdcd_batch *b;
    char *lines[2048];
    char *positions[2048]; /* after line i; [0] is the start */
    size_t n;
};

static inline char *position_of(const struct run *r)
{
    struct my_position p;
    struct cdcd_buf out;
    cdcd_buf_init(&out, 0);
    my_stream_position(r->st, &p);
    my_position_write(&p, &out);
    my_position_free(&p);
    cdcd_buf_cstr(&out);
    return out.ptr;
}

static inline void open_run(struct run *r, const char *position)
{
    struct my_position p;
    struct cdcd_error err = {0};
    memset(r, 0, sizeof *r);
    assert_int_equal(my_filter_new(&cfg, &r->filter, &err), CDCD_OK);
    r->shapes = my_shapes_new(&server, r->filter);
    struct my_stream_env e = {&cfg, &env, &server, r->filter, r->shapes, NULL};
    if (!my_position_parse(cdcd_slice_str(position), &p))
        fail_msg("position %s", position);
    if (my_stream_new(&e, &p, &r->st, &err) != CDCD_OK)
        fail_msg("%s", err.text);
    my_position_free(&p);
    r->b = cdcd_batch_new();
    r->positions[0] = position_of(r);
}

static inline void close_run(struct run *r)
{
    for (size_t i = 0; i < r->n; i++)
        free(r->lines[i]);
    for (size_t i = 0; i <= r->n; i++)
        free(r->positions[i]);
    cdcd_batch_free(r->b);
    my_stream_free(r->st);
    my_shapes_free(r->shapes);
    my_filter_free(r->filter);
}

static inline void add_cells(struct cdcd_buf *out, const char *name, const struct cdcd_cell *c,
                             uint32_t n)
{
    if (!c)
        return;
    for (uint32_t i = 0; i < n; i++) {
        cdcd_buf_adds(out, i ? "," : name);
        if (c[i].kind == CDCD_C_INT)
            cdcd_buf_addf(out, "%" PRId64, c[i].i);
        else
            cdcd_buf_adds(out, c[i].kind == CDCD_C_NULL        ? "null"
                               : c[i].kind == CDCD_C_UNCHANGED ? "?"
                                                               : "-");
    }
}

static inline char *line_of(const struct cdcd_event *e)
{
    static const char *const ops[] = {"c", "r", "u", "d", "t", "m", "B", "E", "h", "ddl"};
    struct cdcd_buf out;
    cdcd_buf_init(&out, 0);
    cdcd_buf_addf(&out, "%" PRIu64 ".%" PRIu64 " %s", e->pos.commit - FIRST_SEQ, e->pos.ordinal,
                  ops[e->op]);
    if (e->schema)
        cdcd_buf_addf(&out, " %s", e->schema->table);
    add_cells(&out, " -", e->before, e->schema ? e->schema->ncolumns : 0);
    add_cells(&out, " +", e->after, e->schema ? e->schema->ncolumns : 0);
    if (e->ddl)
        cdcd_buf_addf(&out, " %.*s", (int)e->ddl->text.len, e->ddl->text.ptr);
    const struct cdcd_cell *gtid = &e->source[MY_SRC_GTID], *query = &e->source[MY_SRC_QUERY];
    if (gtid->kind == CDCD_C_TEXT)
        cdcd_buf_addf(&out, " @%.*s", (int)gtid->len, gtid->ptr);
    if (query->kind == CDCD_C_TEXT)
        cdcd_buf_addf(&out, " q=%.*s", (int)query->len, query->ptr);
    cdcd_buf_addf(&out, " %" PRId64 "/%" PRId64, e->source[MY_SRC_POS].i, e->source[MY_SRC_ROW].i);
    if (e->tx_id.ptr)
        cdcd_buf_addf(&out, " tx=%" PRIu64 "/%" PRIu64, e->total_order, e->data_collection_order);
    for (uint32_t i = 0; i < e->ncollections; i++)
        cdcd_buf_addf(&out, " %.*s:%" PRIu64, (int)e->collections[i].name.len,
                      e->collections[i].name.ptr, e->collections[i].count);
    cdcd_buf_cstr(&out);
    return out.ptr;
}

static inline void take_events(struct run *r)
{
    for (const struct cdcd_event *e = r->b->events; e; e = e->next) {
        assert_true(r->n + 1 < 2048);
        r->lines[r->n++] = line_of(e);
        /* Only the last of a batch has a position of its own. */
        r->positions[r->n] = e->next ? NULL : position_of(r);
    }
    cdcd_batch_reset(r->b);
    my_stream_begin(r->st);
}

/* `whole`: batches as large as they get; else of one event where that is allowed. */
static inline enum cdcd_rc deliver(struct run *r, bool whole, struct cdcd_error *err)
{
    enum cdcd_rc rc = CDCD_OK;
    while (rc == CDCD_OK && my_stream_replaying(r->st)) {
        my_stream_begin(r->st);
        r->b->nevents = whole ? 0 : CDCD_BATCH_EVENTS - 1;
        rc = my_stream_replay(r->st, r->b, err);
        take_events(r);
    }
    return rc;
}

/* What a server sends from a position on. */
static inline bool sent(const struct my_log *l, const struct my_log_event *e,
                        const struct my_position *p)
{
    if (e->always)
        return true;
    if (!p->gtid[0])
        return e->start >= p->pos;
    if (e->group < 0 || !e->gtid.number)
        return false;
    struct my_gtid_set *s = my_gtid_set_new(l->flavor);
    assert_true(my_gtid_set_parse(p->gtid, strlen(p->gtid), s));
    bool has = my_gtid_set_has(s, &e->gtid);
    my_gtid_set_free(s);
    return !has;
}

static inline enum cdcd_rc read_log(struct run *r, const struct my_log *l, const char *position,
                                    bool whole, struct cdcd_error *err)
{
    struct my_position p;
    assert_true(my_position_parse(cdcd_slice_str(position), &p));
    enum cdcd_rc rc = CDCD_OK;
    for (size_t i = 0; rc == CDCD_OK && i < l->n; i++) {
        const struct my_log_event *e = &l->items[i];
        if (!sent(l, e, &p))
            continue;
        struct cdcd_slice raw = {e->data, e->len};
        rc = my_stream_feed(r->st, raw, err);
        if (rc == CDCD_OK)
            rc = deliver(r, whole, err);
    }
    my_position_free(&p);
    return rc;
}

static inline const char *start_of(const struct my_log *l)
{
    static char text[256];
    snprintf(
        text, sizeof text,
        "{\"flavor\":\"%s\",\"server\":\"x\",\"gtid\":\"%s\",\"file\":\"bin.000001\",\"pos\":4,"
        "\"seq\":%d}",
        l->flavor == MY_MYSQL ? "mysql" : "mariadb",
        l->flavor == MY_MARIADB ? "0-7-1000"
        : l->gtids              ? UUID_TEXT ":1-1000"
                                : "",
        FIRST_SEQ);
    return text;
}

static inline void fail_lines(const struct run *r, const char *const *want, const char *what)
{
    for (size_t i = 0; i < r->n || want[i]; i++)
        print_message("%s | %s\n", i < r->n ? r->lines[i] : "(none)", want[i] ? want[i] : "(none)");
    fail_msg("%s", what);
}

static inline void compare(const struct run *r, const char *const *want, const char *what)
{
    size_t i = 0;
    for (; i < r->n && want[i]; i++)
        if (strcmp(r->lines[i], want[i]) != 0)
            fail_lines(r, want, what);
    if (i < r->n || want[i])
        fail_lines(r, want, what);
}

/* The log gives `want`, in one run and in two with a stop at any position in between. */
static inline void check_log(const struct my_log *l, const char *const *want)
{
    struct run whole, first, second;
    struct cdcd_error err = {0};
    char what[2048];
    const char *start = cdcd_xstrdup(start_of(l));
    use_flavor(l->flavor, l->gtids);
    open_run(&whole, start);
    if (read_log(&whole, l, start, true, &err) != CDCD_OK)
        fail_msg("%s", err.text);
    if (want)
        compare(&whole, want, "one run");
    open_run(&first, start);
    assert_int_equal(read_log(&first, l, start, false, &err), CDCD_OK);
    assert_int_equal(first.n, whole.n);
    for (size_t k = 0; k <= first.n; k++) {
        if (!first.positions[k])
            continue;
        open_run(&second, first.positions[k]);
        if (read_log(&second, l, first.positions[k], k % 2, &err) != CDCD_OK)
            fail_msg("from %s: %s", first.positions[k], err.text);
        snprintf(what, sizeof what, "resumed after %zu events at %s", k, first.positions[k]);
        for (size_t i = k; i < first.n; i++)
            if (i - k >= second.n || strcmp(second.lines[i - k], whole.lines[i]) != 0)
                fail_lines(&second, (const char *const *)&whole.lines[k], what);
        assert_int_equal(second.n, whole.n - k);
        char *a = position_of(&whole), *b = position_of(&second);
        assert_string_equal(a, b);
        free(a);
        free(b);
        close_run(&second);
    }
    close_run(&first);
    close_run(&whole);
    free((char *)start);
}

/* The log ends in an error that has the words; the lines before it are `want`. */
static inline void check_error(const struct my_log *l, const char *position,
                               enum cdcd_error_class class, const char *words,
                               const char *const *want)
{
    struct run r;
    struct cdcd_error err = {0};
    use_flavor(l->flavor, l->gtids);
    open_run(&r, position);
    assert_int_equal(read_log(&r, l, position, false, &err), CDCD_ERROR);
    if (!strstr(err.text, words) || err.class != class)
        fail_msg("class %d: %s", err.class, err.text);
    if (want)
        compare(&r, want, "before the error");
    close_run(&r);
}

#define EACH(l)                                                                        \
    for (int turn = 0; turn < 3; turn++)                                               \
        for (bool once_ = (ev_log(&(l), turn == 2 ? MY_MARIADB : MY_MYSQL, turn == 0), \
                           (l).gno = 1000, reset_env(), true);                         \
             once_; once_ = false, ev_free(&(l)))

/* Lines without what differs between the servers: GTID and offset. */
static inline void strip(struct run *r)
{
    for (size_t i = 0; i < r->n; i++) {
        char *p = r->lines[i], *to = p;
        for (char *w = strtok(p, " "); w; w = strtok(NULL, " ")) {
            if (w[0] == '@')
                continue;
            char *slash = strchr(w, '/');
            if (slash && strspn(w, "0123456789") == (size_t)(slash - w))
                w = slash;
            if (to != p)
                *to++ = ' ';
            size_t n = strlen(w);
            memmove(to, w, n);
            to += n;
        }
        *to = 0;
    }
}

static inline void check_same(const struct my_log *l, const char *const *want)
{
    struct run r;
    struct cdcd_error err = {0};
    const char *start = cdcd_xstrdup(start_of(l));
    use_flavor(l->flavor, l->gtids);
    open_run(&r, start);
    if (read_log(&r, l, start, true, &err) != CDCD_OK)
        fail_msg("%s", err.text);
    strip(&r);
    compare(&r, want, "as on every server");
    close_run(&r);
    free((char *)start);
    check_log(l, NULL);
}

static struct my_log l;

static inline int run_stream_tests(const struct CMUnitTest *tests, size_t n)
{
    if (!mkdtemp(dir))
        return 1;
    int failed = _cmocka_run_group_tests("stream", tests, n, NULL, NULL);
    rmdir(dir);
    return failed;
}

#endif
