/* The MongoDB stream: images, the overlap with a snapshot, the barrier. */
#include "mg_stream_test.h"

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

int main(void)
{
    const struct CMUnitTest tests[] = {
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
