/*
 * Queues, bodies and what replies do to them, without a server: the bodies are looked at, and the
 * replies are made up.
 */
#include "sink.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

/* ---- a sink with one lane ---- */

struct bench {
    struct es_config config;
    struct cdcd_sink_env env;
    struct cdcd_sink s;
    struct cdcd_batch *batch;
    struct cdcd_topic topic;
    struct cdcd_record *record;
    struct cdcd_error err;
    uint64_t done, durable;
};

static void batch_done(void *ctx, struct cdcd_batch *b)
{
    struct bench *t = ctx;
    assert_ptr_equal(b, t->batch);
    t->done++;
}

static void durable(void *ctx, uint64_t seq)
{
    struct bench *t = ctx;
    assert_true(seq > t->durable);
    t->durable = seq;
}

static int setup(void **state)
{
    struct bench *t = cdcd_xcalloc(1, sizeof *t);
    t->config = (struct es_config){
        .bulk_bytes = 1 << 20,
        .bulk_requests = 1,
        .retry_ms = 1,
        .dead_letter_index = (char[]){"dead"},
        .state_index = (char[]){"state"},
        .index = (char[]){""},
    };
    static char url[] = "http://127.0.0.1:1";
    static char *urls[] = {url};
    t->config.url = (struct cdcd_strlist){urls, 1};
    t->env = (struct cdcd_sink_env){.pipeline = "p",
                                    .topic_prefix = "p",
                                    .ctx = t,
                                    .stateless = true,
                                    .batch_done = batch_done,
                                    .durable = durable};
    struct cdcd_sink *s = &t->s;
    s->config = &t->config;
    s->env = &t->env;
    s->state = es_state_new(&t->env);
    s->server = (struct es_server){.opensearch = true, .version = 21906};
    s->dead_letter_ready = true;
    assert_int_equal(es_http_new(&t->config, &t->env, &s->http, &t->err), CDCD_OK);
    es_bulk_init(s);
    es_indexes_forget(s);
    t->topic.name = cdcd_slice_str("p.public.t");
    t->batch = cdcd_batch_new();
    t->batch->seq = 1;
    t->record = cdcd_batch_record(t->batch);
    t->record->topic = &t->topic;
    t->record->partition = 3;
    t->record->offset = 17;
    t->record->key = cdcd_slice_str("{\"id\":1}");
    t->record->value = cdcd_slice_str("{\"v\":1}");
    es_bulk_add(s, t->batch);
    s->converting = NULL; /* its items are made here */
    *state = t;
    return 0;
}

static int teardown(void **state)
{
    struct bench *t = *state;
    es_bulk_reset(&t->s);
    es_bulk_free(&t->s);
    es_indexes_free(t->s.indexes);
    es_state_free(t->s.state);
    es_http_free(t->s.http);
    cdcd_batch_free(t->batch);
    free(t);
    return 0;
}

static struct es_item *add(struct bench *t, const char *id, uint64_t version, const char *source)
{
    struct es_item *item = cdcd_arena_alloc(&t->batch->arena, sizeof *item);
    *item = (struct es_item){
        .batch = t->batch,
        .record = t->record,
        .action = {.kind = source ? ES_INDEX : ES_DELETE,
                   .index = cdcd_slice_str("i"),
                   .id = cdcd_slice_str(id),
                   .version = version,
                   .source = cdcd_slice_str(source)},
    };
    item->hash = es_item_hash(item->action.index, item->action.id);
    t->batch->outstanding++;
    t->s.open++;
    struct es_queue *q = &t->s.lanes[0].queue;
    *(q->last ? &q->last->next : &q->first) = item;
    q->last = item;
    q->n++;
    q->bytes += es_item_bytes(item);
    return item;
}

static struct es_lane *make(struct bench *t)
{
    struct es_lane *lane = &t->s.lanes[0];
    assert_int_equal(es_body_make(&t->s, lane, &t->err), CDCD_OK);
    return lane;
}

/* The bodies' ids and sources, in short: "1:{} 2:- ". */
static const char *body(struct bench *t)
{
    static char out[512];
    const struct es_lane *lane = make(t);
    size_t n = 0;
    out[0] = 0;
    for (size_t i = 0; i < lane->nitems; i++) {
        const struct es_action *a = &lane->items[i]->action;
        n += (size_t)snprintf(out + n, sizeof out - n, "%s%.*s:%.*s", i ? " " : "", (int)a->id.len,
                              a->id.ptr, a->kind == ES_DELETE ? 1 : (int)a->source.len,
                              a->kind == ES_DELETE ? "-" : a->source.ptr);
    }
    return out;
}

static enum cdcd_rc answer(struct bench *t, long status, const char *text)
{
    struct es_reply r = {.status = status, .retry_after_ms = -1};
    cdcd_buf_init(&r.body, 0);
    cdcd_buf_adds(&r.body, text);
    enum cdcd_rc rc = es_bulk_answer(&t->s, &t->s.lanes[0], &r, &t->err);
    es_reply_free(&r);
    es_give_back(&t->s);
    return rc;
}

/* Statuses of the items, 0 ending them. */
static enum cdcd_rc statuses(struct bench *t, ...)
{
    struct cdcd_buf b;
    va_list ap;
    int status;
    cdcd_buf_init(&b, 0);
    cdcd_buf_adds(&b, "{\"items\":[");
    va_start(ap, t);
    for (bool first = true; (status = va_arg(ap, int)) != 0; first = false) {
        const char *type = status == 400   ? "mapper_parsing_exception"
                           : status == 409 ? "version_conflict_engine_exception"
                           : status == 403 ? "cluster_block_exception"
                                           : "es_rejected_execution_exception";
        if (status < 300)
            cdcd_buf_addf(&b, "%s{\"index\":{\"status\":%d}}", first ? "" : ",", status);
        else
            cdcd_buf_addf(
                &b, "%s{\"index\":{\"status\":%d,\"error\":{\"type\":\"%s\",\"reason\":\"r\"}}}",
                first ? "" : ",", status, type);
    }
    va_end(ap);
    cdcd_buf_adds(&b, "]}");
    enum cdcd_rc rc = answer(t, 200, cdcd_buf_cstr(&b));
    cdcd_buf_free(&b);
    return rc;
}

static void assert_all_done(const struct bench *t)
{
    assert_int_equal(t->s.open, 0);
    assert_int_equal(t->done, 1);
    assert_int_equal(t->durable, 1);
}

/* ---- bodies ---- */

static void lines(void **state)
{
    struct bench *t = *state;
    add(t, "1", 7, "{\"a\":1}");
    add(t, "x\"y", 8, NULL);
    add(t, "2", UINT64_C(9223372036854775807), "{}");
    struct es_lane *lane = make(t);
    assert_string_equal(
        cdcd_buf_cstr(&lane->body),
        "{\"index\":{\"_id\":\"1\",\"version\":7,\"version_type\":\"external_gte\"}}\n{\"a\":1}\n"
        "{\"delete\":{\"_id\":\"x\\\"y\",\"version\":8,\"version_type\":\"external_gte\"}}\n"
        "{\"index\":{\"_id\":\"2\",\"version\":9223372036854775807,\"version_type\":"
        "\"external_gte\"}}\n{}\n");
    char *path = es_body_path(&t->s, lane);
    assert_string_equal(path, "/i/_bulk?filter_path=errors,error,items.*.status,items.*.error");
    free(path);
    assert_int_equal(lane->queue.n, 0);
    assert_int_equal(lane->queue.bytes, 0);
}

static void other_indexes_are_named(void **state)
{
    struct bench *t = *state;
    add(t, "1", 1, "{}");
    add(t, "1", 1, "{}")->action.index = cdcd_slice_str("j");
    t->s.lanes[0].queue.last->hash = es_item_hash(cdcd_slice_str("j"), cdcd_slice_str("1"));
    struct es_lane *lane = make(t);
    assert_int_equal(lane->nitems, 2);
    assert_non_null(
        strstr(cdcd_buf_cstr(&lane->body), "{\"index\":{\"_id\":\"1\",\"_index\":\"j\","));
}

static void no_larger_than_it_may_be(void **state)
{
    struct bench *t = *state;
    char large[1000];
    memset(large, ' ', sizeof large);
    large[sizeof large - 1] = 0;
    t->s.bulk_bytes = 3 * 1100;
    for (int i = 0; i < 7; i++)
        add(t, (const char *[]){"0", "1", "2", "3", "4", "5", "6"}[i], 1, large);
    assert_int_equal(make(t)->nitems, 3);
    assert_int_equal(make(t)->nitems, 3);
    assert_int_equal(make(t)->nitems, 1);
    /* One that is larger goes by itself. */
    t->s.bulk_bytes = 100;
    add(t, "8", 1, large);
    add(t, "9", 1, large);
    assert_int_equal(make(t)->nitems, 1);
}

/* ---- newest of each id ---- */

static void newest_only(void **state)
{
    struct bench *t = *state;
    add(t, "1", 1, "{a}");
    add(t, "2", 1, "{b}");
    add(t, "1", 2, "{c}");
    add(t, "1", 2, "{d}"); /* one version: the order tells */
    add(t, "2", 3, NULL);
    assert_string_equal(body(t), "1:{d} 2:-");
    assert_int_equal(t->s.counters.superseded, 3);
    assert_int_equal(statuses(t, 201, 200, 0), CDCD_OK);
    assert_all_done(t);
}

static void a_source_that_went_back(void **state)
{
    struct bench *t = *state;
    add(t, "1", 5, "{a}");
    add(t, "1", 4, "{b}");
    add(t, "1", 3, NULL);
    assert_string_equal(body(t), "1:{a}");
    assert_int_equal(statuses(t, 201, 0), CDCD_OK);
    assert_all_done(t);
}

/* ---- again ---- */

static void only_what_failed_is_sent_again(void **state)
{
    struct bench *t = *state;
    add(t, "1", 1, "{a}");
    add(t, "2", 1, "{b}");
    add(t, "3", 1, "{c}");
    add(t, "4", 1, "{d}");
    body(t);
    add(t, "5", 1, "{e}");
    assert_int_equal(statuses(t, 201, 429, 409, 503, 0), CDCD_OK);
    assert_true(t->s.lanes[0].not_before > 0);
    assert_int_equal(t->s.open, 3);
    assert_int_equal(t->done, 0);
    assert_string_equal(body(t), "2:{b} 4:{d} 5:{e}");
    assert_int_equal(statuses(t, 200, 200, 200, 0), CDCD_OK);
    assert_all_done(t);
    assert_int_equal(t->s.counters.conflicts, 1);
    assert_int_equal(t->s.counters.retried, 2);
}

/* What failed does not overtake what is newer. */
static void again_in_the_order_of_an_id(void **state)
{
    struct bench *t = *state;
    add(t, "1", 1, "{a}");
    body(t);
    add(t, "1", 1, "{b}");
    assert_int_equal(statuses(t, 429, 0), CDCD_OK);
    assert_string_equal(body(t), "1:{b}");
    assert_int_equal(statuses(t, 429, 0), CDCD_OK);
    add(t, "1", 1, "{c}");
    assert_string_equal(body(t), "1:{c}");
    assert_int_equal(statuses(t, 200, 0), CDCD_OK);
    assert_all_done(t);
}

static void whole_requests_again(void **state)
{
    static const long ones[] = {0, 429, 500, 502, 503, 504};
    struct bench *t = *state;
    add(t, "1", 1, "{a}");
    add(t, "2", 1, "{b}");
    for (size_t i = 0; i < sizeof ones / sizeof *ones; i++) {
        assert_string_equal(body(t), "1:{a} 2:{b}");
        assert_int_equal(answer(t, ones[i], "{}"), CDCD_OK);
        assert_int_equal(t->s.open, 2);
    }
    assert_string_equal(body(t), "1:{a} 2:{b}");
    assert_int_equal(answer(t, 200, "<html>"), CDCD_OK);
    assert_string_equal(body(t), "1:{a} 2:{b}");
    assert_int_equal(statuses(t, 200, 200, 0), CDCD_OK);
    assert_all_done(t);
}

static void blocked_waits(void **state)
{
    struct bench *t = *state;
    add(t, "1", 1, "{a}");
    body(t);
    assert_int_equal(statuses(t, 403, 0), CDCD_OK);
    assert_true(t->s.blocked);
    assert_true(t->s.lanes[0].not_before >= cdcd_now_ms() + 900);
    body(t);
    assert_int_equal(statuses(t, 201, 0), CDCD_OK);
    assert_false(t->s.blocked);
    assert_all_done(t);
}

static void login_is_no_use(void **state)
{
    struct bench *t = *state;
    add(t, "1", 1, "{a}");
    body(t);
    assert_int_equal(answer(t, 401, "{}"), CDCD_ERROR);
    assert_int_equal(t->err.class, CDCD_ERR_CONFIG);
    assert_int_equal(t->done, 0);
}

static void index_is_gone(void **state)
{
    struct bench *t = *state;
    add(t, "1", 1, "{a}");
    body(t);
    assert_int_equal(answer(t, 200,
                            "{\"items\":[{\"index\":{\"status\":404,\"error\":{\"type\":"
                            "\"index_not_found_exception\",\"reason\":\"no such index [i]\"}}}]}"),
                     CDCD_ERROR);
    assert_int_equal(t->err.class, CDCD_ERR_LOSS);
    assert_non_null(strstr(t->err.text, "cdcd replay"));
    assert_int_equal(t->durable, 0);
}

/* ---- replies that tell of no item ---- */

static void path_is(struct bench *t, const struct es_lane *lane, const char *expected)
{
    char *path = es_body_path(&t->s, lane);
    assert_string_equal(path, expected);
    free(path);
}

static void brief_and_all_taken(void **state)
{
    struct bench *t = *state;
    add(t, "1", 7, "{a}");
    add(t, "2", 7, NULL);
    struct es_lane *lane = make(t);
    lane->brief = true;
    path_is(t, lane, "/i/_bulk?filter_path=errors,error");
    assert_int_equal(answer(t, 200, "{\"errors\":false}"), CDCD_OK);
    assert_int_equal(t->s.counters.documents, 1);
    assert_int_equal(t->s.counters.deletes, 1);
    assert_int_equal(t->s.lanes[0].details, 0);
    assert_all_done(t);
}

static void brief_and_not_all_taken(void **state)
{
    struct bench *t = *state;
    add(t, "1", 7, "{a}");
    add(t, "2", 7, "{b}");
    struct es_lane *lane = make(t);
    lane->brief = true;
    assert_int_equal(answer(t, 200, "{\"errors\":true}"), CDCD_OK);
    assert_int_equal(t->done, 0);
    assert_true(t->s.lanes[0].details > 0);
    assert_int_equal(t->s.counters.retried, 0);
    assert_string_equal(body(t), "1:{a} 2:{b}");
    lane->brief = false;
    path_is(t, lane, "/i/_bulk?filter_path=errors,error,items.*.status,items.*.error");
    t->s.lanes[0].details = 0;
    assert_int_equal(statuses(t, 200, 409, 0), CDCD_OK);
    assert_true(t->s.lanes[0].details > 0); /* more of them may follow */
    assert_all_done(t);
}

/* Of a proxy, or of a server that does not know the filter. */
static void brief_and_told_anything(void **state)
{
    struct bench *t = *state;
    static const char *const none[] = {"", "{}", "[1", "{\"errors\":false,\"items\":[]}", "true"};
    add(t, "1", 7, "{a}");
    for (size_t i = 0; i < sizeof none / sizeof *none; i++) {
        make(t)->brief = true;
        assert_int_equal(answer(t, 200, none[i]), CDCD_OK);
        assert_int_equal(t->done, 0);
        assert_int_equal(t->s.lanes[0].queue.n, 1);
    }
    make(t)->brief = true;
    assert_int_equal(statuses(t, 201, 0), CDCD_OK);
    assert_all_done(t);
}

/* ---- sizes ---- */

/* One half of what there is may be under way, shared by the lanes. */
static void half_at_a_time(void **state)
{
    struct bench *t = *state;
    t->s.bulk_bytes = 2 << 20;
    assert_int_equal(es_body_most(&t->s), 256 << 10);
    t->s.lanes[0].queue.bytes = 1 << 20;
    assert_int_equal(es_body_most(&t->s), 512 << 10);
    t->s.lanes[0].busy = true;
    t->s.lanes[0].body.len = 512 << 10;
    assert_int_equal(es_body_most(&t->s), 768 << 10);
    t->s.active = 2;
    assert_int_equal(es_body_most(&t->s), 384 << 10);
    t->s.active = 1;
    t->s.lanes[0].queue.bytes = 8 << 20;
    assert_int_equal(es_body_most(&t->s), 2 << 20);
    t->s.bulk_bytes = 1000;
    assert_int_equal(es_body_most(&t->s), 1000);
    t->s.lanes[0].busy = false;
    t->s.lanes[0].body.len = t->s.lanes[0].queue.bytes = 0;
}

static void too_large_is_halved(void **state)
{
    struct bench *t = *state;
    for (int i = 0; i < 4; i++)
        add(t, (const char *[]){"0", "1", "2", "3"}[i], 1, "{0123456789}");
    size_t before = make(t)->body.len;
    assert_int_equal(answer(t, 413, ""), CDCD_OK);
    assert_int_equal(t->s.too_large, before);
    assert_int_equal(t->s.bulk_bytes, before / 2);
    assert_true(make(t)->nitems < 4);
    /* It does not grow to that size again. */
    for (int i = 0; i < 200; i++) {
        struct es_lane *lane = &t->s.lanes[0];
        for (size_t k = 0; k < lane->nitems; k++)
            es_again(&t->s, lane->items[k]);
        lane->nitems = 0;
        assert_int_equal(answer(t, 200, "{\"items\":[]}"), CDCD_OK);
        assert_true(t->s.bulk_bytes < before);
    }
}

static void too_many(void **state)
{
    struct bench *t = *state;
    t->s.nlanes = 1; /* only counted */
    t->s.active = 8;
    add(t, "1", 1, "{a}");
    body(t);
    size_t before = t->s.bulk_bytes;
    assert_int_equal(answer(t, 429, "{}"), CDCD_OK);
    assert_int_equal(t->s.active, 4);
    assert_int_equal(t->s.bulk_bytes, before / 2);
}

/* ---- refused ---- */

static void refused_stops(void **state)
{
    struct bench *t = *state;
    add(t, "1", 1, "{a}");
    add(t, "2", 1, "{b}");
    body(t);
    assert_int_equal(statuses(t, 201, 400, 0), CDCD_ERROR);
    assert_int_equal(t->err.class, CDCD_ERR_DATA);
    assert_non_null(strstr(t->err.text, "index i"));
    assert_non_null(strstr(t->err.text, "_id 2"));
    assert_non_null(strstr(t->err.text, "mapper_parsing_exception: r"));
    assert_non_null(strstr(t->err.text, "topic p.public.t, partition 3, offset 17"));
    assert_int_equal(t->done, 0);
    assert_int_equal(t->durable, 0);
}

static void refused_is_left_out(void **state)
{
    struct bench *t = *state;
    t->config.policy = ES_SKIP;
    add(t, "1", 1, "{a}");
    add(t, "2", 1, "{b}");
    body(t);
    assert_int_equal(statuses(t, 400, 201, 0), CDCD_OK);
    assert_int_equal(t->s.counters.skipped, 1);
    assert_all_done(t);
}

/* The change before, which was not sent for its sake, is the newest now. */
static void refused_uncovers_the_one_before(void **state)
{
    struct bench *t = *state;
    t->config.policy = ES_SKIP;
    add(t, "1", 1, "{a}");
    add(t, "1", 1, "{b}");
    add(t, "1", 1, "{c}");
    assert_string_equal(body(t), "1:{c}");
    assert_int_equal(statuses(t, 400, 0), CDCD_OK);
    assert_int_equal(t->s.open, 2);
    assert_string_equal(body(t), "1:{b}");
    assert_int_equal(statuses(t, 400, 0), CDCD_OK);
    add(t, "1", 2, "{d}");
    assert_string_equal(body(t), "1:{d}");
    assert_int_equal(statuses(t, 200, 0), CDCD_OK);
    assert_all_done(t);
    assert_int_equal(t->s.counters.skipped, 2);
}

static void refused_becomes_a_letter(void **state)
{
    struct bench *t = *state;
    t->config.policy = ES_DEAD_LETTER;
    add(t, "1", 1, "{a}");
    add(t, "2", 1, "{b}");
    body(t);
    assert_int_equal(statuses(t, 400, 201, 0), CDCD_OK);
    assert_int_equal(t->s.open, 1);
    assert_int_equal(t->done, 0);
    struct es_lane *lane = make(t);
    assert_int_equal(lane->nitems, 1);
    const char *text = cdcd_buf_cstr(&lane->body);
    assert_non_null(strstr(text, "{\"index\":{\"_id\":\"p.public.t:3:17\"}}\n"));
    assert_non_null(strstr(text, "\"key\":\"{\\\"id\\\":1}\""));
    assert_non_null(strstr(text, "\"value\":\"{\\\"v\\\":1}\""));
    assert_non_null(
        strstr(text, "\"error\":{\"type\":\"mapper_parsing_exception\",\"reason\":\"r\"}"));
    assert_non_null(strstr(text, "\"partition\":3,\"offset\":17"));
    assert_int_equal(statuses(t, 429, 0), CDCD_OK); /* as any other */
    make(t);
    assert_int_equal(statuses(t, 201, 0), CDCD_OK);
    assert_all_done(t);
}

static void a_letter_is_not_refused_for_ever(void **state)
{
    struct bench *t = *state;
    t->config.policy = ES_DEAD_LETTER;
    add(t, "1", 1, "{a}");
    body(t);
    assert_int_equal(statuses(t, 400, 0), CDCD_OK);
    body(t);
    assert_int_equal(statuses(t, 400, 0), CDCD_OK);
    assert_null(strstr(body(t), "\"value\":")); /* the second try is without it */
    assert_int_equal(statuses(t, 400, 0), CDCD_ERROR);
    assert_int_equal(t->err.class, CDCD_ERR_DATA);
    assert_non_null(strstr(t->err.text, "dead-letter index"));
}

/* A 400 of the request names nobody: halves, down to the guilty one. */
static void guilty_one_of_a_request(void **state)
{
    struct bench *t = *state;
    static const char *const ids[] = {"0", "1", "2", "3", "4", "5", "6", "7"};
    t->config.policy = ES_SKIP;
    for (int i = 0; i < 8; i++)
        add(t, ids[i], 1, i == 5 ? "{bad}" : "{}");
    int requests = 0;
    while (t->s.open > 0) {
        assert_true(++requests < 30);
        struct es_lane *lane = make(t);
        bool bad = strstr(cdcd_buf_cstr(&lane->body), "{bad}");
        struct cdcd_buf b;
        cdcd_buf_init(&b, 0);
        for (size_t i = 0; i < lane->nitems; i++)
            cdcd_buf_addf(&b, "%s{\"index\":{\"status\":201}}", i ? "," : "{\"items\":[");
        cdcd_buf_adds(&b, "]}");
        assert_int_equal(
            bad ? answer(t, 400,
                         "{\"error\":{\"type\":\"illegal_argument_exception\",\"reason\":"
                         "\"Malformed action\"}}")
                : answer(t, 200, cdcd_buf_cstr(&b)),
            CDCD_OK);
        cdcd_buf_free(&b);
    }
    assert_int_equal(t->s.counters.skipped, 1);
    assert_int_equal(t->s.counters.documents, 7);
    assert_all_done(t);
}

static void the_request_itself_is_wrong(void **state)
{
    struct bench *t = *state;
    t->config.policy = ES_SKIP;
    add(t, "1", 1, "{a}");
    body(t);
    assert_int_equal(
        answer(t, 400,
               "{\"error\":{\"type\":\"illegal_argument_exception\",\"reason\":\"request "
               "[/i/_bulk] contains unrecognized parameter: [x]\"}}"),
        CDCD_ERROR);
    assert_int_equal(t->s.counters.skipped, 0);
    assert_int_equal(t->err.class, CDCD_ERR_FATAL);
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(lines),
        TEST(other_indexes_are_named),
        TEST(no_larger_than_it_may_be),
        TEST(newest_only),
        TEST(a_source_that_went_back),
        TEST(only_what_failed_is_sent_again),
        TEST(again_in_the_order_of_an_id),
        TEST(whole_requests_again),
        TEST(blocked_waits),
        TEST(login_is_no_use),
        TEST(index_is_gone),
        TEST(brief_and_all_taken),
        TEST(brief_and_not_all_taken),
        TEST(brief_and_told_anything),
        TEST(half_at_a_time),
        TEST(too_large_is_halved),
        TEST(too_many),
        TEST(refused_stops),
        TEST(refused_is_left_out),
        TEST(refused_uncovers_the_one_before),
        TEST(refused_becomes_a_letter),
        TEST(a_letter_is_not_refused_for_ever),
        TEST(guilty_one_of_a_request),
        TEST(the_request_itself_is_wrong),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
