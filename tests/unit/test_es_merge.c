/*
 * Columns that records do not carry: what is asked of the server, and what becomes of its answers.
 * A thread plays the server: it gives prepared answers, one a request, and keeps what was asked.
 */
#include "rebuild.h"
#include "sink.h"

#include <arpa/inet.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#define MOST 8

struct server {
    int fd;
    pthread_t thread;
    const char *answers[MOST];
    char *asked[MOST]; /* request line and body */
    size_t nanswers, nasked;
};

struct bench {
    struct server server;
    struct es_config config;
    struct cdcd_sink_env env;
    struct cdcd_sink s;
    struct cdcd_batch *batch;
    struct cdcd_record record;
    struct cdcd_error err;
    struct es_item *items[MOST];
    size_t n;
    char url[64], *urls[1];
};

/* ---- the server ---- */

static void answer(struct server *v, int fd, char *text)
{
    char *line = strstr(text, " HTTP/"), *body = strstr(text, "\r\n\r\n");
    *line = 0;
    v->asked[v->nasked] = cdcd_xasprintf("%s %s", text, body + 4);
    const char *a = v->nasked < v->nanswers ? v->answers[v->nasked] : "{}";
    v->nasked++;
    dprintf(fd,
            "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %zu\r\n\r\n%s",
            strlen(a), a);
}

static bool whole(const char *text, size_t len)
{
    const char *body = strstr(text, "\r\n\r\n"), *n = strcasestr(text, "content-length:");
    return body && len >= (size_t)(body + 4 - text) + (n ? strtoul(n + 15, NULL, 10) : 0);
}

static void *serve(void *arg)
{
    struct server *v = arg;
    for (;;) {
        int fd = accept(v->fd, NULL, NULL);
        if (fd < 0)
            return NULL;
        char text[16384];
        size_t len = 0;
        for (ssize_t k; (k = read(fd, text + len, sizeof text - 1 - len)) > 0;) {
            text[len += (size_t)k] = 0;
            if (!whole(text, len) || v->nasked == MOST)
                continue;
            answer(v, fd, text);
            len = 0;
        }
        close(fd);
    }
}

static int setup(void **state)
{
    struct bench *t = cdcd_xcalloc(1, sizeof *t);
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof at;
    t->server.fd = socket(AF_INET, SOCK_STREAM, 0);
    assert_int_equal(bind(t->server.fd, (struct sockaddr *)&at, sizeof at), 0);
    assert_int_equal(listen(t->server.fd, 8), 0);
    assert_int_equal(getsockname(t->server.fd, (struct sockaddr *)&at, &size), 0);
    snprintf(t->url, sizeof t->url, "http://127.0.0.1:%d", ntohs(at.sin_port));
    t->urls[0] = t->url;
    assert_int_equal(pthread_create(&t->server.thread, NULL, serve, &t->server), 0);
    t->config = (struct es_config){
        .url = {t->urls, 1}, .request_timeout_ms = 5000, .state_index = (char[]){"state"}};
    t->env = (struct cdcd_sink_env){.pipeline = "p", .topic_prefix = "p"};
    t->s.config = &t->config;
    t->s.env = &t->env;
    assert_int_equal(es_http_new(&t->config, &t->env, &t->s.http, &t->err), CDCD_OK);
    t->batch = cdcd_batch_new();
    t->record = (struct cdcd_record){
        .topic_name = cdcd_slice_str("p.public.t"), .partition = 3, .offset = 17};
    *state = t;
    return 0;
}

static int teardown(void **state)
{
    struct bench *t = *state;
    es_http_free(t->s.http);
    es_rebuild_free(t->s.rebuild);
    shutdown(t->server.fd, SHUT_RDWR);
    pthread_join(t->server.thread, NULL);
    close(t->server.fd);
    for (size_t i = 0; i < t->server.nasked; i++)
        free(t->server.asked[i]);
    cdcd_batch_free(t->batch);
    free(t);
    return 0;
}

/* ---- items ---- */

static void answers(struct bench *t, const char *text)
{
    t->server.answers[t->server.nanswers++] = text;
}

/* source NULL: a delete. missing: one name, or NULL. */
static struct es_item *add(struct bench *t, const char *id, uint64_t version, const char *source,
                           const char *missing)
{
    struct es_item *item = cdcd_arena_alloc(&t->batch->arena, sizeof *item);
    *item = (struct es_item){
        .batch = t->batch,
        .record = &t->record,
        .action = {.kind = source ? ES_INDEX : ES_DELETE,
                   .index = cdcd_slice_str("i"),
                   .id = cdcd_slice_str(id),
                   .version = version,
                   .source = cdcd_slice_str(source)},
    };
    item->hash = es_item_hash(item->action.index, item->action.id);
    if (missing) {
        struct cdcd_slice *name = cdcd_arena_alloc(&t->batch->arena, sizeof *name);
        *name = cdcd_slice_str(missing);
        item->action.missing = name;
        item->action.nmissing = 1;
    }
    t->items[t->n++] = item;
    return item;
}

static void merge(struct bench *t)
{
    if (es_merge(&t->s, t->items, t->n, &t->err) != CDCD_OK)
        fail_msg("%s", t->err.text);
}

static void is(const struct es_item *item, const char *source)
{
    if (item->refused)
        fail_msg("refused: %s", item->refused);
    assert_int_equal(item->action.nmissing, 0);
    assert_int_equal(item->action.source.len, strlen(source));
    assert_memory_equal(item->action.source.ptr, source, strlen(source));
}

static void asked(const struct bench *t, size_t i, const char *text)
{
    assert_true(i < t->server.nasked);
    assert_string_equal(t->server.asked[i], text);
}

/* ---- tests ---- */

static void from_the_index(void **state)
{
    struct bench *t = *state;
    answers(t, "{\"docs\":[{\"_index\":\"i\",\"_id\":\"1\",\"_version\":4,\"found\":true,"
               "\"_source\":{ \"a\":1, \"b\" : 1.50000000000000000000001,\"c\":\"x\\u00e4\"}}]}");
    add(t, "0", 5, "{\"a\":0}", NULL);
    struct es_item *item = add(t, "1", 5, "{\"a\":2}", "b");
    merge(t);
    is(item, "{\"a\":2,\"b\":1.50000000000000000000001}");
    asked(t, 0, "POST /_mget {\"docs\":[{\"_index\":\"i\",\"_id\":\"1\"}]}");
    assert_int_equal(t->server.nasked, 1);
}

static void names_are_compared_as_text(void **state)
{
    struct bench *t = *state;
    answers(t, "{\"docs\":[{\"found\":true,\"_source\":{\"b\\u00e4\\\"\":[1,{}]}}]}");
    struct es_item *item = add(t, "1", 5, "{}", "b\xc3\xa4\"");
    merge(t);
    is(item, "{\"b\\u00e4\\\"\":[1,{}]}");
}

static void from_the_one_before(void **state)
{
    struct bench *t = *state;
    struct es_item *first = add(t, "1", 4, "{\"a\":1,\"b\":\"new\"}", NULL);
    struct es_item *second = add(t, "1", 5, "{\"a\":2}", "b");
    add(t, "2", 5, "{\"a\":7,\"b\":\"other\"}", NULL);
    struct es_item *third = add(t, "1", 6, "{\"a\":3}", "b");
    merge(t);
    is(first, "{\"a\":1,\"b\":\"new\"}");
    is(second, "{\"a\":2,\"b\":\"new\"}");
    is(third, "{\"a\":3,\"b\":\"new\"}");
    assert_int_equal(t->server.nasked, 0);
}

static void chain_from_the_index(void **state)
{
    struct bench *t = *state;
    answers(t, "{\"docs\":[{\"found\":true,\"_source\":{\"a\":1,\"b\":\"held\"}}]}");
    struct es_item *first = add(t, "1", 5, "{\"a\":2}", "b");
    struct es_item *second = add(t, "1", 6, "{\"a\":3}", "b");
    merge(t);
    is(first, "{\"a\":2,\"b\":\"held\"}");
    is(second, "{\"a\":3,\"b\":\"held\"}");
    assert_int_equal(t->server.nasked, 1);
}

static void overtaken_is_not_asked_for(void **state)
{
    struct bench *t = *state;
    struct es_item *first = add(t, "1", 5, "{\"a\":2}", "b");
    add(t, "1", 6, NULL, NULL);
    merge(t);
    assert_int_equal(t->server.nasked, 0);
    assert_null(first->refused);
    assert_int_equal(first->action.nmissing, 1); /* were the delete refused, it would be its turn */
}

static void absent_is_refused(void **state)
{
    struct bench *t = *state;
    answers(t, "{\"docs\":[{\"_index\":\"i\",\"_id\":\"1\",\"found\":false}]}");
    answers(t, "{\"errors\":false,\"items\":[{\"delete\":{\"status\":404}}]}");
    struct es_item *item = add(t, "1", 5, "{\"a\":2}", "b");
    merge(t);
    assert_non_null(item->refused);
    assert_true(item->doubtful);
    assert_non_null(strstr(item->refused, "column b"));
    assert_non_null(strstr(item->refused, "the index lacks the document"));
    assert_non_null(strstr(item->refused, "REPLICA IDENTITY FULL"));
    asked(t, 1,
          "POST /i/_bulk?filter_path=errors,error,items.*.status,items.*.error "
          "{\"delete\":{\"_index\":\"i\",\"_id\":\"1\",\"version\":0,\"version_type\":"
          "\"external_gte\"}}\n");
}

static void later_records_tell_of_doubts(void **state)
{
    struct bench *t = *state;
    struct es_item *first = add(t, "1", 5, "{}", "b"), *second = add(t, "1", 6, "{}", "b"),
                   *other = add(t, "2", 6, "{}", "b"), *early = add(t, "1", 4, NULL, NULL),
                   *late = add(t, "1", 7, NULL, NULL);
    es_doubt(&t->s, first);
    es_doubt(&t->s, other);
    es_doubt(&t->s, second);
    es_doubts_tell(&t->s, &(struct es_lane){.items = &early, .nitems = 1});
    assert_null(early->older);
    assert_int_equal(t->s.ndoubts, 3);
    es_doubts_tell(&t->s, &(struct es_lane){.items = &late, .nitems = 1});
    assert_ptr_equal(late->older, second);
    assert_ptr_equal(second->older, first);
    assert_null(first->older);
    assert_int_equal(t->s.ndoubts, 1);
    assert_ptr_equal(t->s.doubts, other);
}

static void doubts_end_when_nothing_comes(void **state)
{
    struct bench *t = *state;
    struct es_lane lane = {0};
    struct es_item *first = add(t, "1", 5, "{}", "b"), *second = add(t, "2", 6, "{}", "b");
    t->s.lanes = &lane;
    es_doubt(&t->s, first);
    es_doubt(&t->s, second);
    t->s.open = 3; /* a request is under way */
    t->s.doubts_since -= 10000;
    es_doubts_serve(&t->s);
    assert_int_equal(t->s.ndoubts, 2);
    t->s.open = 2;
    es_doubts_serve(&t->s);
    assert_int_equal(t->s.ndoubts, 0);
    assert_ptr_equal(lane.queue.first, first);
    assert_ptr_equal(first->next, second);
    /* Then they are refused. */
    answers(t, "{\"docs\":[{\"found\":false},{\"found\":false}]}");
    answers(t, "{\"items\":[{\"delete\":{\"status\":404}},{\"delete\":{\"status\":404}}]}");
    merge(t);
    assert_non_null(first->refused);
    assert_false(first->doubtful);
}

#define CONFLICT(version)                                                                \
    "{\"errors\":true,\"items\":[{\"delete\":{\"status\":409,\"error\":{\"type\":"       \
    "\"version_conflict_engine_exception\",\"reason\":\"[1]: version conflict, current " \
    "version [" version "] is higher than the one provided [0]\"}}}]}"

static void deleted_already_is_done_with(void **state)
{
    struct bench *t = *state;
    answers(t, "{\"docs\":[{\"_index\":\"i\",\"_id\":\"1\",\"found\":false}]}");
    answers(t, CONFLICT("6"));
    answers(t, CONFLICT("6"));
    struct es_item *first = add(t, "1", 5, "{\"a\":2}", "b");
    struct es_item *second = add(t, "1", 6, "{\"a\":3}", "b");
    merge(t);
    assert_null(first->refused);
    assert_null(second->refused);
    assert_int_equal(first->action.kind, ES_DELETE);
    assert_int_equal(second->action.kind, ES_DELETE);
    assert_int_equal(second->action.version, 6);
}

/* What was deleted before says nothing of a record that came after it. */
static void deleted_before_is_in_doubt(void **state)
{
    struct bench *t = *state;
    answers(t, "{\"docs\":[{\"_index\":\"i\",\"_id\":\"1\",\"found\":false}]}");
    answers(t, CONFLICT("4"));
    struct es_item *item = add(t, "1", 5, "{\"a\":2}", "b");
    merge(t);
    assert_non_null(item->refused);
    assert_true(item->doubtful);
    assert_int_equal(item->action.kind, ES_INDEX);
}

/* Of a row that an interrupted snapshot has still to read: nothing is written until then. */
static void row_that_follows_is_waited_for(void **state)
{
    struct bench *t = *state;
    answers(t, "{\"docs\":[{\"_index\":\"i\",\"_id\":\"1\",\"found\":false},"
               "{\"_index\":\"i\",\"_id\":\"2\",\"found\":true,\"_source\":{\"b\":\"held\"}}]}");
    struct es_item *first = add(t, "1", 5, "{\"a\":2}", "b");
    struct es_item *second = add(t, "1", 6, "{\"a\":3}", "b");
    struct es_item *other = add(t, "2", 6, "{\"a\":3}", "b");
    first->action.row_follows = second->action.row_follows = other->action.row_follows = true;
    merge(t);
    assert_null(first->refused);
    assert_null(second->refused);
    assert_int_equal(first->action.kind, ES_DELETE);
    assert_int_equal(second->action.kind, ES_DELETE);
    is(other, "{\"a\":3,\"b\":\"held\"}");
    assert_int_equal(t->server.nasked, 1);
}

static void column_that_the_document_lacks(void **state)
{
    struct bench *t = *state;
    answers(t, "{\"docs\":[{\"found\":true,\"_source\":{\"a\":1}}]}");
    struct es_item *item = add(t, "1", 5, "{\"a\":2}", "b");
    merge(t);
    assert_non_null(item->refused);
    assert_non_null(strstr(item->refused, "does not have it either"));
}

static void bad_answers(void **state)
{
    struct bench *t = *state;
    struct es_item *item = add(t, "1", 5, "{\"a\":2}", "b");
    answers(t, "{\"docs\":[]}");
    assert_int_equal(es_merge(&t->s, t->items, t->n, &t->err), CDCD_ERROR);
    assert_int_equal(t->err.class, CDCD_ERR_RETRY);
    answers(t, "{\"docs\":[{\"_index\":\"i\",\"_id\":\"1\",\"error\":{\"type\":"
               "\"index_not_found_exception\",\"reason\":\"no such index [i]\"}}]}");
    assert_int_equal(es_merge(&t->s, t->items, t->n, &t->err), CDCD_ERROR);
    assert_int_equal(t->err.class, CDCD_ERR_LOSS);
    answers(t, "{\"docs\":[{\"_index\":\"i\",\"_id\":\"1\",\"error\":{\"type\":"
               "\"no_shard_available_action_exception\"}}]}");
    assert_int_equal(es_merge(&t->s, t->items, t->n, &t->err), CDCD_ERROR);
    assert_int_equal(t->err.class, CDCD_ERR_RETRY);
    answers(t, "{\"docs\":[{\"found\":true}]}"); /* _source is off */
    assert_int_equal(es_merge(&t->s, t->items, t->n, &t->err), CDCD_ERROR);
    assert_int_equal(t->err.class, CDCD_ERR_CONFIG);
    /* Nothing was decided by any of them. */
    assert_null(item->refused);
    assert_int_equal(item->action.nmissing, 1);
}

static void other_modes(void **state)
{
    struct bench *t = *state;
    struct es_item *item = add(t, "1", 5, "{\"a\":2}", "b");
    t->config.missing_mode = ES_MISSING_STOP;
    merge(t);
    assert_non_null(item->refused);
    item->refused = NULL;
    t->config.missing_mode = ES_MISSING_LEAVE_OUT;
    merge(t);
    is(item, "{\"a\":2}");
    assert_int_equal(t->server.nasked, 0);
}

static void live_while_it_is_built_anew(void **state)
{
    struct bench *t = *state;
    t->env.replay = true;
    struct es_rebuild *b = t->s.rebuild = cdcd_xcalloc(1, sizeof *b);
    struct es_rebuilt x = {.alias = cdcd_slice_str("a"),
                           .old = cdcd_slice_str("a-000001"),
                           .target = cdcd_slice_str("i")};
    cdcd_arena_init(&b->arena, 1024);
    b->first = &x;
    answers(t, "{\"docs\":[{\"found\":false},{\"found\":true,\"_source\":{\"b\":\"new\"}},"
               "{\"found\":false}]}");
    answers(t, "{\"docs\":[{\"found\":true,\"_source\":{\"b\":\"old\"}},{\"found\":false}]}");
    struct es_item *one = add(t, "1", 5, "{\"a\":1}", "b");
    struct es_item *two = add(t, "2", 5, "{\"a\":2}", "b");
    struct es_item *three = add(t, "3", 5, "{\"a\":3}", "b");
    merge(t);
    is(one, "{\"a\":1,\"b\":\"old\"}");
    is(two, "{\"a\":2,\"b\":\"new\"}");
    assert_int_equal(three->action.kind, ES_DELETE);
    assert_null(three->refused);
    asked(t, 1,
          "POST /_mget {\"docs\":[{\"_index\":\"a-000001\",\"_id\":\"1\"},{\"_index\":"
          "\"a-000001\",\"_id\":\"3\"}]}");
    assert_int_equal(t->server.nasked, 2);
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(from_the_index),
        TEST(names_are_compared_as_text),
        TEST(from_the_one_before),
        TEST(chain_from_the_index),
        TEST(overtaken_is_not_asked_for),
        TEST(absent_is_refused),
        TEST(later_records_tell_of_doubts),
        TEST(doubts_end_when_nothing_comes),
        TEST(deleted_already_is_done_with),
        TEST(deleted_before_is_in_doubt),
        TEST(row_that_follows_is_waited_for),
        TEST(column_that_the_document_lacks),
        TEST(bad_answers),
        TEST(other_modes),
        TEST(live_while_it_is_built_anew),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
