/*
 * The stream's state without a server: order, resuming at every place, rollbacks, savepoints, XA,
 * barrier, filters, row images, statements, transaction metadata, offsets beyond 4 GiB.
 *
 * What a log gives is compared as text, a line an event. Every log is also read again from every
 * position that could have been stored, and must give the same.
 */
#include "my_events.h"

#include <inttypes.h>
#include <unistd.h>

#define FIRST_SEQ 100

static char dir[] = "/tmp/test_my_stream.XXXXXX";
static struct my_config cfg;
static struct cdcd_source_env env;
static struct my_server server;

static void reset_env(void)
{
    cfg = (struct my_config){.pipeline = "t", .spill_dir = dir};
    env = (struct cdcd_source_env){.pipeline = "t", .want_truncate = true, .want_ddl = true};
}

static void use_flavor(enum my_flavor flavor, bool gtids)
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

static char *position_of(const struct run *r)
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

static void open_run(struct run *r, const char *position)
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

static void close_run(struct run *r)
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

static void add_cells(struct cdcd_buf *out, const char *name, const struct cdcd_cell *c, uint32_t n)
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

static char *line_of(const struct cdcd_event *e)
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

static void take_events(struct run *r)
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
static enum cdcd_rc deliver(struct run *r, bool whole, struct cdcd_error *err)
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
static bool sent(const struct my_log *l, const struct my_log_event *e, const struct my_position *p)
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

static enum cdcd_rc read_log(struct run *r, const struct my_log *l, const char *position,
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

static const char *start_of(const struct my_log *l)
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

static void fail_lines(const struct run *r, const char *const *want, const char *what)
{
    for (size_t i = 0; i < r->n || want[i]; i++)
        print_message("%s | %s\n", i < r->n ? r->lines[i] : "(none)", want[i] ? want[i] : "(none)");
    fail_msg("%s", what);
}

static void compare(const struct run *r, const char *const *want, const char *what)
{
    size_t i = 0;
    for (; i < r->n && want[i]; i++)
        if (strcmp(r->lines[i], want[i]) != 0)
            fail_lines(r, want, what);
    if (i < r->n || want[i])
        fail_lines(r, want, what);
}

/* The log gives `want`, in one run and in two with a stop at any position in between. */
static void check_log(const struct my_log *l, const char *const *want)
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
static void check_error(const struct my_log *l, const char *position, enum cdcd_error_class class,
                        const char *words, const char *const *want)
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
static void strip(struct run *r)
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

static void check_same(const struct my_log *l, const char *const *want)
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

/* ---- tests ---- */

static struct my_log l;

static void test_plain(void **state)
{
    (void)state;
    static const int changed[][2] = {{1, 10}, {1, 11}, {2, 20}, {7, 20}}, gone[][2] = {{7, 20}};
    EACH(l)
    {
        tx_begin(&l);
        insert(&l, "t", 50, 1, 2);
        insert(&l, "u", 51, 5, 1);
        tx_end(&l);
        tx_begin(&l);
        ev_map(&l, 50, "t");
        ev_rows(&l, 50, UPDATE, changed, 4);
        ev_rows(&l, 50, DELETE, gone, 1);
        tx_end(&l);
        tx_begin(&l); /* of nothing that is captured */
        tx_end(&l);
        tx_begin(&l);
        insert(&l, "t", 52, 9, 1); /* the table was opened anew */
        tx_end(&l);
        check_same(&l,
                   (const char *const[]){"1.1 c t +1,10 /0", "1.2 c t +2,20 /1", "1.3 c u +5,50 /0",
                                         "2.1 u t -1,10 +1,11 /0", "2.2 u t -2,20 +7,20 /1",
                                         "2.3 d t -7,20 /0", "4.1 c t +9,90 /0", NULL});
    }
}

static void test_source_block(void **state)
{
    (void)state;
    reset_env();
    ev_log(&l, MY_MYSQL, true);
    l.gno = 1000;
    tx_begin(&l);
    uint64_t map = l.end;
    insert(&l, "t", 50, 1, 2);
    tx_end(&l);
    char one[128], two[128];
    uint64_t rows = map + 19 + 4 + 38;
    for (size_t i = 0; i < l.n; i++)
        if (l.items[i].data[4] == 30)
            rows = l.items[i].start;
    snprintf(one, sizeof one, "1.1 c t +1,10 @" UUID_TEXT ":1001 %" PRIu64 "/0", rows);
    snprintf(two, sizeof two, "1.2 c t +2,20 @" UUID_TEXT ":1001 %" PRIu64 "/1", rows);
    check_log(&l, (const char *const[]){one, two, NULL});
    ev_free(&l);
}

static void test_rollback(void **state)
{
    (void)state;
    EACH(l)
    {
        tx_begin(&l);
        insert(&l, "t", 50, 1, 2);
        ev_query(&l, "ROLLBACK");
        tx_begin(&l);
        insert(&l, "t", 50, 2, 1);
        ev_query(&l, "COMMIT");
        check_same(&l, (const char *const[]){"2.1 c t +2,20 /0", NULL});
    }
}

static void test_savepoints(void **state)
{
    (void)state;
    EACH(l)
    {
        tx_begin(&l);
        insert(&l, "t", 50, 1, 1);
        ev_query(&l, "SAVEPOINT `a``b`");
        insert(&l, "t", 50, 2, 1);
        ev_query(&l, "SAVEPOINT `c`");
        insert(&l, "t", 50, 3, 1);
        ev_query(&l, "ROLLBACK TO `A``b`");
        insert(&l, "t", 50, 4, 1);
        ev_query(&l, "ROLLBACK TO `a``b`"); /* it is still there */
        insert(&l, "t", 50, 5, 1);
        ev_query(&l, "SAVEPOINT `c`");
        insert(&l, "t", 50, 6, 1);
        ev_query(&l, "SAVEPOINT `c`"); /* in the place of the other */
        insert(&l, "t", 50, 7, 1);
        ev_query(&l, "ROLLBACK TO `c`");
        tx_end(&l);
        check_same(&l, (const char *const[]){"1.1 c t +1,10 /0", "1.2 c t +5,50 /0",
                                             "1.3 c t +6,60 /0", NULL});
        ev_query(&l, "x");
    }
    reset_env();
    ev_log(&l, MY_MARIADB, true);
    l.gno = 1000;
    tx_begin(&l);
    ev_query(&l, "SAVEPOINT `a`");
    ev_query(&l, "SAVEPOINT `b`");
    ev_query(&l, "ROLLBACK TO `a`");
    ev_query(&l, "ROLLBACK TO `b`");
    check_error(&l, start_of(&l), CDCD_ERR_FATAL, "a savepoint that was never set", NULL);
    ev_free(&l);
}

static void test_xa(void **state)
{
    (void)state;
    EACH(l)
    {
        xa_begin(&l, "p");
        insert(&l, "t", 50, 1, 2);
        insert(&l, "u", 51, 1, 1);
        xa_end(&l, "p", false);
        tx_begin(&l);
        insert(&l, "t", 50, 10, 1);
        tx_end(&l);
        xa_begin(&l, "q");
        insert(&l, "t", 50, 20, 2);
        xa_end(&l, "q", false);
        tx_begin(&l);
        insert(&l, "t", 50, 11, 2);
        tx_end(&l);
        xa_finish(&l, "ROLLBACK", "q");
        tx_begin(&l);
        insert(&l, "t", 50, 13, 1);
        tx_end(&l);
        xa_finish(&l, "COMMIT", "p");
        xa_begin(&l, "p"); /* the same name again, in one phase */
        insert(&l, "t", 50, 30, 1);
        xa_end(&l, "p", true);
        tx_begin(&l);
        insert(&l, "t", 50, 14, 1);
        tx_end(&l);
        xa_begin(&l, "e"); /* of nothing that is captured, and open at the end */
        xa_end(&l, "e", false);
        tx_begin(&l);
        insert(&l, "t", 50, 15, 1);
        tx_end(&l);
        check_same(&l, (const char *const[]){"1.1 c t +10,100 /0", "2.1 c t +11,110 /0",
                                             "2.2 c t +12,120 /1", "4.1 c t +13,130 /0",
                                             "5.1 c t +1,10 /0", "5.2 c t +2,20 /1",
                                             "5.3 c u +1,10 /2", "6.1 c t +30,300 /0",
                                             "7.1 c t +14,140 /0", "8.1 c t +15,150 /0", NULL});
    }
}

static void test_xa_unknown(void **state)
{
    (void)state;
    EACH(l)
    {
        xa_finish(&l, "ROLLBACK", "z"); /* nothing is lost by it */
        xa_finish(&l, "COMMIT", "z");
        check_error(&l, start_of(&l), CDCD_ERR_LOSS, "X'7a',X'',1 is committed", NULL);
    }
}

static void test_transaction_metadata(void **state)
{
    (void)state;
    static const int moved[][2] = {{1, 10}, {8, 10}};
    EACH(l)
    {
        env.tx_metadata = true;
        tx_begin(&l);
        insert(&l, "t", 50, 1, 2);
        ev_map(&l, 50, "t");
        ev_rows(&l, 50, UPDATE, moved, 2); /* a delete and a create */
        insert(&l, "u", 51, 5, 1);
        insert(&l, "t", 50, 3, 1);
        tx_end(&l);
        tx_begin(&l); /* leaves no trace */
        tx_end(&l);
        xa_begin(&l, "p");
        insert(&l, "t", 50, 4, 1);
        xa_end(&l, "p", false);
        xa_finish(&l, "COMMIT", "p");
        check_same(&l,
                   (const char *const[]){"1.0 B /0 tx=0/0", "1.1 c t +1,10 /0 tx=1/1",
                                         "1.2 c t +2,20 /1 tx=2/2", "1.3 u t -1,10 +8,10 /0 tx=3/3",
                                         "1.4 c u +5,50 /0 tx=5/1", "1.5 c t +3,30 /0 tx=6/5",
                                         "1.6 E /0 tx=6/0 d.t:5 d.u:1", "3.0 B /0 tx=0/0",
                                         "3.1 c t +4,40 /0 tx=1/1", "3.2 E /0 tx=1/0 d.t:1", NULL});
    }
}

static void test_truncate(void **state)
{
    (void)state;
    EACH(l)
    {
        env.tx_metadata = true;
        statement(&l, "TRUNCATE TABLE t");
        tx_begin(&l);
        insert(&l, "t", 50, 1, 1);
        tx_end(&l);
        if (l.flavor == MY_MYSQL)
            check_same(&l, (const char *const[]){"1.1 t t /0", "2.0 B /0 tx=0/0",
                                                 "2.1 c t +1,10 /0 tx=1/1", "2.2 E /0 tx=1/0 d.t:1",
                                                 NULL});
        else
            check_same(&l, (const char *const[]){"1.0 B /0 tx=0/0", "1.1 t t /0 tx=1/1",
                                                 "1.2 E /0 tx=1/0 d.t:1", "2.0 B /0 tx=0/0",
                                                 "2.1 c t +1,10 /0 tx=1/1", "2.2 E /0 tx=1/0 d.t:1",
                                                 NULL});
        env.want_truncate = false;
        env.tx_metadata = false;
        check_same(&l, (const char *const[]){"2.1 c t +1,10 /0", NULL});
    }
}

static void test_ddl(void **state)
{
    (void)state;
    EACH(l)
    {
        statement(&l, "CREATE TABLE t (id int PRIMARY KEY, v int)");
        tx_begin(&l);
        insert(&l, "t", 50, 1, 1);
        tx_end(&l);
        statement(&l, "FLUSH TABLES");
        statement(&l, "DROP TABLE `t` /* generated by server */");
        tx_begin(&l); /* CREATE TABLE ... SELECT is one group */
        ev_query(&l, "CREATE TABLE `u` (\n  `id` int NOT NULL,\n  `v` int,\n  PRIMARY KEY(`id`)\n)"
                     " START TRANSACTION");
        insert(&l, "u", 51, 1, 2);
        tx_end(&l);
        check_same(&l,
                   (const char *const[]){"1.1 ddl CREATE TABLE t (id int PRIMARY KEY, v int) /0",
                                         "2.1 c t +1,10 /0", "4.1 ddl DROP TABLE `d`.`t` /0",
                                         "5.1 ddl CREATE TABLE `u` (\n `id` int NOT NULL,\n `v` "
                                         "int,\n PRIMARY KEY(`id`)\n) START TRANSACTION /0",
                                         "5.2 c u +1,10 /0", "5.3 c u +2,20 /1", NULL});
        env.want_ddl = false;
        check_same(&l, (const char *const[]){"2.1 c t +1,10 /0", "5.2 c u +1,10 /0",
                                             "5.3 c u +2,20 /1", NULL});
    }
}

static void test_filter(void **state)
{
    (void)state;
    char *only[] = {"d.t"};
    EACH(l)
    {
        cfg.table_include = (struct cdcd_strlist){only, 1};
        tx_begin(&l);
        insert(&l, "t", 50, 1, 1);
        insert(&l, "u", 51, 5, 3);
        insert(&l, "t", 50, 2, 1);
        tx_end(&l);
        tx_begin(&l);
        insert(&l, "u", 51, 8, 3);
        tx_end(&l);
        statement(&l, "TRUNCATE TABLE u");
        statement(&l, "INSERT INTO u VALUES (1,2)");
        tx_begin(&l);
        insert(&l, "t", 50, 3, 1);
        tx_end(&l);
        check_same(&l, (const char *const[]){"1.1 c t +1,10 /0", "1.2 c t +2,20 /0",
                                             "5.1 c t +3,30 /0", NULL});
    }
}

static void test_statements(void **state)
{
    (void)state;
    EACH(l)
    {
        tx_begin(&l);
        insert(&l, "t", 50, 1, 1);
        ev_query(&l, "UPDATE t SET v = v + 1");
        insert(&l, "t", 50, 2, 1);
        tx_end(&l);
        check_error(&l, start_of(&l), CDCD_ERR_LOSS, "\"UPDATE t SET v = v + 1\" at ", NULL);
        check_error(&l, start_of(&l), CDCD_ERR_LOSS,
                    " changes d.t, but the server logged only its "
                    "text",
                    NULL);
        cfg.statement_mode = MY_STATEMENT_WARN;
        check_same(&l, (const char *const[]){"1.1 c t +1,10 /0", "1.2 c t +2,20 /0", NULL});
    }
}

static void test_images(void **state)
{
    (void)state;
    static const uint8_t minimal[2] = {1, 2}, key[2] = {1, 0}, value[2] = {2, 2};
    static const int up[][2] = {{1, 0}, {0, 11}}, one[][2] = {{2, 5}};
    EACH(l)
    {
        tx_begin(&l);
        insert(&l, "t", 50, 1, 1);
        ev_rows_of(&l, 50, UPDATE, minimal, up, 2);
        ev_rows_of(&l, 50, WRITE, key, one, 1);
        ev_rows_of(&l, 50, DELETE, key, one, 1);
        tx_end(&l);
        check_error(&l, start_of(&l), CDCD_ERR_LOSS, "lacks columns of table d.t: ", NULL);
        cfg.row_image_mode = MY_IMAGE_PLACEHOLDER;
        check_same(&l, (const char *const[]){"1.1 c t +1,10 /0", "1.2 u t -1,? +1,11 /0",
                                             "1.3 c t +2,? /0", "1.4 d t -2,? /0", NULL});
        tx_begin(&l);
        ev_map(&l, 50, "t");
        ev_rows_of(&l, 50, WRITE, value, one, 1);
        tx_end(&l);
        check_error(&l, start_of(&l), CDCD_ERR_LOSS, "lacks columns of table d.t: id", NULL);
    }
}

static void test_query(void **state)
{
    (void)state;
    EACH(l)
    {
        cfg.include_query = true;
        tx_begin(&l);
        ev_rows_query(&l, "insert1");
        insert(&l, "t", 50, 1, 2);
        ev_rows_query(&l, "insert2");
        insert(&l, "t", 50, 3, 1);
        tx_end(&l);
        tx_begin(&l);
        insert(&l, "t", 50, 4, 1);
        tx_end(&l);
        check_same(&l,
                   (const char *const[]){"1.1 c t +1,10 q=insert1 /0", "1.2 c t +2,20 q=insert1 /1",
                                         "1.3 c t +3,30 q=insert2 /0", "2.1 c t +4,40 /0", NULL});
    }
}

static void test_payload(void **state)
{
    (void)state;
    for (int gtids = 0; gtids < 2; gtids++) {
        reset_env();
        ev_log(&l, MY_MYSQL, gtids);
        l.gno = 1000;
        tx_begin(&l);
        insert(&l, "t", 50, 1, 1);
        tx_end(&l);
        ev_gtid(&l, 0, NULL);
        ev_payload_begin(&l);
        ev_query(&l, "BEGIN");
        insert(&l, "t", 50, 2, 40);
        insert(&l, "u", 51, 2, 1);
        ev_xid(&l);
        ev_payload_end(&l);
        tx_begin(&l);
        insert(&l, "t", 50, 50, 1);
        tx_end(&l);
        check_log(&l, NULL);
        struct run r;
        struct cdcd_error err = {0};
        open_run(&r, start_of(&l));
        assert_int_equal(read_log(&r, &l, start_of(&l), true, &err), CDCD_OK);
        assert_int_equal(r.n, 43);
        close_run(&r);
        ev_free(&l);
    }
}

/* ---- MariaDB's own ---- */

/* flags_extra of the GTID event: 2 the start, 4 the end, 8 a failed end of an ALTER in two phases.
 */
static void two_phases(struct my_log *log, uint8_t extra, const char *text)
{
    statement(log, text);
    struct my_log_event *e = &log->items[log->n - 2];
    e->data[19 + 13] = (char)extra;
    uint32_t crc = (uint32_t)crc32(0, (const Bytef *)e->data, (uInt)e->len - 4);
    for (int i = 0; i < 4; i++)
        e->data[e->len - 4 + (size_t)i] = (char)(crc >> 8 * i & 0xff);
}

static void test_two_phase_alter(void **state)
{
    (void)state;
    reset_env();
    ev_log(&l, MY_MARIADB, true);
    l.gno = 1000;
    statement(&l, "CREATE TABLE t (id int PRIMARY KEY, v int)");
    two_phases(&l, 2, "ALTER TABLE t ADD w int");
    two_phases(&l, 4, "ALTER TABLE t ADD w int");
    two_phases(&l, 2, "ALTER TABLE t ADD UNIQUE KEY (v)");
    two_phases(&l, 8, "ALTER TABLE t ADD UNIQUE KEY (v)");
    check_same(&l, (const char *const[]){"1.1 ddl CREATE TABLE t (id int PRIMARY KEY, v int) /0",
                                         "3.1 ddl ALTER TABLE t ADD w int /0", NULL});
    ev_free(&l);
}

/* ---- the log itself ---- */

static void test_barrier(void **state)
{
    (void)state;
    EACH(l)
    {
        uint64_t ends[5];
        for (int i = 0; i < 5; i++) {
            tx_begin(&l);
            insert(&l, "t", 50, i, 2);
            tx_end(&l);
            ends[i] = l.end;
        }
        use_flavor(l.flavor, l.gtids);
        for (int stop = 0; stop < 5; stop++) {
            struct run r;
            struct cdcd_error err = {0};
            struct my_position p;
            char text[256];
            const char *start = start_of(&l);
            open_run(&r, start);
            snprintf(
                text, sizeof text,
                "{\"flavor\":\"%s\",\"server\":\"x\",\"gtid\":\"%s%d\",\"file\":\"bin.000001\","
                "\"pos\":%" PRIu64 ",\"seq\":1}",
                l.flavor == MY_MYSQL ? "mysql" : "mariadb",
                l.flavor == MY_MARIADB ? "0-7-" : UUID_TEXT ":1-", 1001 + stop, ends[stop]);
            assert_true(my_position_parse(cdcd_slice_str(text), &p));
            my_stream_set_barrier(r.st, &p);
            my_position_free(&p);
            assert_false(my_stream_reached(r.st));
            enum cdcd_rc rc = read_log(&r, &l, start, false, &err);
            assert_int_equal(rc, stop < 4 ? CDCD_END : CDCD_OK);
            assert_true(my_stream_reached(r.st));
            assert_int_equal(r.n, 2 * (stop + 1));
            my_stream_set_barrier(r.st, NULL);
            assert_false(my_stream_reached(r.st));
            close_run(&r);
        }
    }
}

static void test_vanished(void **state)
{
    (void)state;
    static const char more[] = "{\"flavor\":\"%s\",\"server\":\"x\",\"gtid\":\"%s\",\"file\":"
                               "\"bin.000001\",\"pos\":4,\"seq\":100,\"ord\":%d,\"tx\":\"%s\"}";
    char text[512];
    EACH(l)
    {
        tx_begin(&l);
        insert(&l, "t", 50, 1, 2);
        tx_end(&l);
        const char *flavor = l.flavor == MY_MYSQL ? "mysql" : "mariadb";
        const char *gtid = l.flavor == MY_MARIADB ? "0-7-1000" : l.gtids ? UUID_TEXT ":1-1000" : "";
        const char *id = l.flavor == MY_MARIADB ? "0-7-1001" : l.gtids ? UUID_TEXT ":1001" : "";
        snprintf(text, sizeof text, more, flavor, gtid, 3, id);
        check_error(&l, text, CDCD_ERR_LOSS,
                    "3 changes are delivered, but the server sends it with "
                    "fewer",
                    NULL);
        if (!*id)
            continue;
        snprintf(text, sizeof text, more, flavor, gtid, 1,
                 l.flavor == MY_MARIADB ? "0-7-9999" : UUID_TEXT ":9999");
        check_error(&l, text, CDCD_ERR_LOSS, "in its place", NULL);
    }
}

static void test_misplaced(void **state)
{
    (void)state;
    EACH(l)
    {
        l.group = 0; /* the server sends it */
        l.current = (struct my_gtid){.flavor = l.flavor, .server = 7, .number = 2000};
        ev_map(&l, 50, "t");
        check_error(&l, start_of(&l), CDCD_ERR_FATAL, "stands outside of any transaction", NULL);
    }
    EACH(l)
    {
        tx_begin(&l);
        ev_rows(&l, 77, WRITE, (const int[][2]){{1, 1}}, 1);
        check_error(&l, start_of(&l), CDCD_ERR_FATAL, "a table that was never described", NULL);
    }
    EACH(l)
    {
        tx_begin(&l);
        tx_begin(&l);
        check_error(&l, start_of(&l), CDCD_ERR_FATAL, "within another", NULL);
    }
    EACH(l)
    {
        EV_BODY(b);
        ev_gtid(&l, 0, NULL);
        le(&b, 1, 2);
        le(&b, 4, 1);
        cdcd_buf_adds(&b, "LOST");
        ev_add(&l, 26, 0, &b);
        check_error(&l, start_of(&l), CDCD_ERR_LOSS, "LOST", NULL);
    }
}

/* The server died within a transaction, and begins the next file. */
static void test_cut_off(void **state)
{
    (void)state;
    EACH(l)
    {
        tx_begin(&l);
        insert(&l, "t", 50, 1, 2);
        ev_rotate(&l, "bin.000002", 4, true);
        l.group = 5;
        l.end = 4;
        ev_format(&l);
        tx_begin(&l);
        insert(&l, "t", 50, 5, 1);
        tx_end(&l);
        struct run r;
        struct cdcd_error err = {0};
        use_flavor(l.flavor, l.gtids);
        open_run(&r, start_of(&l));
        assert_int_equal(read_log(&r, &l, start_of(&l), false, &err), CDCD_OK);
        assert_int_equal(r.n, 1);
        char *p = position_of(&r);
        assert_non_null(strstr(p, "\"file\":\"bin.000002\""));
        free(p);
        close_run(&r);
    }
}

/* end_log_pos has 32 bits. */
static void test_offsets(void **state)
{
    (void)state;
    EACH(l)
    {
        tx_begin(&l);
        insert(&l, "t", 50, 1, 1);
        tx_end(&l);
        l.end = UINT64_C(0xffffff80); /* as after events that nobody asked for */
        for (int i = 0; i < 3; i++) {
            tx_begin(&l);
            insert(&l, "t", 50, 2 + i, 1);
            tx_end(&l);
        }
        uint64_t end = l.end;
        assert_true(end > UINT32_MAX);
        struct run r;
        struct cdcd_error err = {0};
        use_flavor(l.flavor, l.gtids);
        open_run(&r, start_of(&l));
        assert_int_equal(read_log(&r, &l, start_of(&l), false, &err), CDCD_OK);
        assert_int_equal(r.n, 4);
        assert_int_equal(r.st->done_pos, end);
        const struct my_log_event *rows = NULL;
        for (size_t i = 0; i < l.n; i++)
            if (l.items[i].data[4] == 30 || l.items[i].data[4] == 23)
                rows = &l.items[i];
        char place[64];
        snprintf(place, sizeof place, " %" PRIu64 "/0", rows->start);
        assert_non_null(strstr(r.lines[3], place));
        close_run(&r);
    }
}

static void test_file_order(void **state)
{
    (void)state;
    assert_true(my_file_compare("binlog.000009", "binlog.000010") < 0);
    assert_true(my_file_compare("binlog.999999", "binlog.1000000") < 0);
    assert_true(my_file_compare("binlog.1000001", "binlog.1000000") > 0);
    assert_true(my_file_compare("a.b.000001", "a.b.000001") == 0);
}

/* A transaction that has no GTID cannot be counted in a set. */
static void test_anonymous(void **state)
{
    (void)state;
    reset_env();
    ev_log(&l, MY_MYSQL, false);
    tx_begin(&l);
    l.gtids = true; /* the position is a set */
    for (size_t i = 0; i < l.n; i++)
        l.items[i].always = true;
    check_error(&l, start_of(&l), CDCD_ERR_LOSS, "gtid_mode was turned off", NULL);
    ev_free(&l);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_plain),      cmocka_unit_test(test_source_block),
        cmocka_unit_test(test_rollback),   cmocka_unit_test(test_savepoints),
        cmocka_unit_test(test_xa),         cmocka_unit_test(test_xa_unknown),
        cmocka_unit_test(test_truncate),   cmocka_unit_test(test_transaction_metadata),
        cmocka_unit_test(test_ddl),        cmocka_unit_test(test_filter),
        cmocka_unit_test(test_statements), cmocka_unit_test(test_images),
        cmocka_unit_test(test_query),      cmocka_unit_test(test_payload),
        cmocka_unit_test(test_barrier),    cmocka_unit_test(test_two_phase_alter),
        cmocka_unit_test(test_vanished),   cmocka_unit_test(test_misplaced),
        cmocka_unit_test(test_cut_off),    cmocka_unit_test(test_offsets),
        cmocka_unit_test(test_file_order), cmocka_unit_test(test_anonymous),
    };
    if (!mkdtemp(dir))
        return 1;
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    rmdir(dir);
    return failed;
}
