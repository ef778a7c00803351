/* What status, metrics and probes say; and the server, against a pipeline that runs. */
#include "http.h"
#include "metrics.h"

#include <arpa/inet.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static struct cdcd_view a_view(void)
{
    struct cdcd_view v = {.pipeline = "shop",
                          .source = "postgres",
                          .sink = "kafka",
                          .started_us = 1700000000000000,
                          .now_us = 1700000060000000};
    v.stats.phase = CDCD_PHASE_STREAM;
    v.stats.lag_bytes = v.stats.lag_ms = v.stats.commit_age_ms = -1;
    return v;
}

static void addresses(void **state)
{
    (void)state;
    static const struct {
        const char *text, *host, *port; /* host NULL: refused */
    } cases[] = {
        {"127.0.0.1:8083", "127.0.0.1", "8083"},
        {"[::1]:8083", "::1", "8083"},
        {"localhost:1", "localhost", "1"},
        {"0.0.0.0:65535", "0.0.0.0", "65535"},
        {"h:0080", "h", "80"},
        {"", NULL, NULL},
        {"8083", NULL, NULL},
        {":8083", NULL, NULL},
        {"127.0.0.1:", NULL, NULL},
        {"127.0.0.1:0", NULL, NULL},
        {"127.0.0.1:65536", NULL, NULL},
        {"127.0.0.1:123456", NULL, NULL},
        {"127.0.0.1:80x", NULL, NULL},
        {"127.0.0.1:-1", NULL, NULL},
        {"::1:8083", NULL, NULL},
        {"[]:8083", NULL, NULL},
        {"[::1]8083", NULL, NULL},
        {"[::1:8083", NULL, NULL},
        {"http://h:80", NULL, NULL},
        {"a b:80", NULL, NULL},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct cdcd_listen at;
        bool ok = cdcd_listen_parse(cases[i].text, &at);
        if (ok != (cases[i].host != NULL))
            fail_msg("%s", cases[i].text);
        if (ok) {
            assert_string_equal(at.host, cases[i].host);
            assert_string_equal(at.port, cases[i].port);
        }
    }
    char longest[400];
    memset(longest, 'h', sizeof longest);
    snprintf(longest + 300, 8, ":80");
    struct cdcd_listen at;
    assert_false(cdcd_listen_parse(longest, &at));
}

static void rates_are_those_of_the_last_ten_seconds(void **state)
{
    (void)state;
    struct cdcd_rate_window w = {0};
    struct cdcd_stats s = {0};
    struct cdcd_rates r;
    cdcd_rate_get(&w, &s, 1000, &r);
    assert_true(r.seconds == 0 && r.events == 0);
    for (int i = 0; i < 40; i++) { /* 100 a second for 20 seconds, then 10 */
        cdcd_rate_add(&w, &s, 1000 + i * 1000);
        cdcd_rate_add(&w, &s, 1000 + i * 1000 + 500); /* too early: not taken */
        s.events += i < 20 ? 100 : 10;
        s.bytes += 7;
    }
    cdcd_rate_get(&w, &s, 41000, &r);
    assert_true(r.seconds == 11 && r.events == 10 && r.bytes == 7 && r.records == 0);
    struct cdcd_rate_window young = {0};
    s = (struct cdcd_stats){0};
    cdcd_rate_add(&young, &s, 5000);
    s.records = 30;
    cdcd_rate_get(&young, &s, 8000, &r);
    assert_true(r.seconds == 3 && r.records == 10);
}

static void readiness(void **state)
{
    (void)state;
    static const struct {
        enum cdcd_phase phase;
        int64_t lag_ms, max_lag_ms;
        bool failed;
        const char *why; /* "" ready */
    } cases[] = {
        {CDCD_PHASE_STREAM, -1, 0, false, ""},
        {CDCD_PHASE_STREAM, 99999, 0, false, ""},
        {CDCD_PHASE_STREAM, -1, 1000, false, ""},
        {CDCD_PHASE_STREAM, 1000, 1000, false, ""},
        {CDCD_PHASE_STREAM, 1001, 1000, false,
         "streaming, but 1001 ms behind; http.ready.max.lag.ms is 1000"},
        {CDCD_PHASE_CONNECT, 0, 0, false, "connecting"},
        {CDCD_PHASE_SNAPSHOT, 0, 0, false, "snapshot"},
        {CDCD_PHASE_BACKOFF, 0, 0, false, "backoff"},
        {CDCD_PHASE_DRAIN, 0, 0, false, "draining"},
        {CDCD_PHASE_STOPPED, 0, 0, false, "stopped"},
        {CDCD_PHASE_STOPPED, 0, 0, true, "failed"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct cdcd_view v = a_view();
        char why[160];
        v.stats.phase = cases[i].phase;
        v.stats.lag_ms = cases[i].lag_ms;
        v.stats.failed = cases[i].failed;
        v.max_lag_ms = cases[i].max_lag_ms;
        assert_int_equal(cdcd_view_ready(&v, why, sizeof why), !*cases[i].why);
        assert_string_equal(why, cases[i].why);
    }
}

static void expect_line(const char *text, const char *line)
{
    char want[300];
    snprintf(want, sizeof want, "\n%s\n", line);
    if (!strstr(text, want))
        fail_msg("no line %s in\n%s", line, text);
}

static void prometheus_text(void **state)
{
    (void)state;
    struct cdcd_view v = a_view();
    struct cdcd_buf out;
    cdcd_buf_init(&out, 0);
    cdcd_view_prometheus(&v, &out);
    const char *text = cdcd_buf_cstr(&out);
    assert_null(strstr(text, "cdcd_lag_")); /* unknown is absent, never 0 */
    assert_null(strstr(text, "cdcd_last_commit"));
    assert_null(strstr(text, "cdcd_snapshot_tables"));
    expect_line(text, "cdcd_up{pipeline=\"shop\"} 1");
    expect_line(text, "cdcd_phase{pipeline=\"shop\",phase=\"streaming\"} 1");
    expect_line(text, "cdcd_phase{pipeline=\"shop\",phase=\"backoff\"} 0");

    cdcd_buf_clear(&out);
    v.stats.failed = true;
    v.stats.events = 9007199254740991;
    v.stats.lag_bytes = 0;
    v.stats.lag_ms = 1500;
    v.stats.commit_age_ms = 250;
    v.stats.snapshot.tables = 9;
    v.stats.snapshot.index = 2;
    cdcd_view_prometheus(&v, &out);
    text = cdcd_buf_cstr(&out);
    expect_line(text, "cdcd_up{pipeline=\"shop\"} 0");
    expect_line(text, "cdcd_events_total{pipeline=\"shop\"} 9007199254740991");
    expect_line(text, "cdcd_lag_bytes{pipeline=\"shop\"} 0");
    expect_line(text, "cdcd_lag_seconds{pipeline=\"shop\"} 1.5");
    expect_line(text, "cdcd_last_commit_age_seconds{pipeline=\"shop\"} 0.25");
    expect_line(text, "cdcd_snapshot_tables_done{pipeline=\"shop\"} 2");
    cdcd_buf_free(&out);
}

static void json_and_page(void **state)
{
    (void)state;
    struct cdcd_view v = a_view();
    json_t *doc = cdcd_view_json(&v);
    assert_non_null(doc);
    static const char *const nulls[] = {"lag_bytes",        "lag_ms",     "position",
                                        "snapshot",         "last_error", "last_error_at",
                                        "not_ready_because"};
    for (size_t i = 0; i < sizeof nulls / sizeof *nulls; i++)
        assert_true(json_is_null(json_object_get(doc, nulls[i])));
    assert_string_equal(json_string_value(json_object_get(doc, "started_at")),
                        "2023-11-14T22:13:20Z");
    assert_int_equal(json_integer_value(json_object_get(doc, "uptime_ms")), 60000);
    json_decref(doc);

    snprintf(v.stats.last_error, sizeof v.stats.last_error, "<b> & \xff");
    snprintf(v.stats.snapshot.table, sizeof v.stats.snapshot.table, "s.t");
    v.stats.snapshot.tables = 3;
    v.stats.snapshot.rows = 7;
    v.stats.snapshot.expected = -1;
    doc = cdcd_view_json(&v);
    assert_non_null(doc);
    assert_string_equal(json_string_value(json_object_get(doc, "last_error")), "<b> & ?");
    json_t *s = json_object_get(doc, "snapshot");
    assert_int_equal(json_integer_value(json_object_get(s, "table_number")), 1);
    assert_int_equal(json_integer_value(json_object_get(s, "rows")), 7);
    assert_true(json_is_null(json_object_get(s, "rows_expected")));
    json_decref(doc);

    struct cdcd_buf out;
    cdcd_buf_init(&out, 0);
    cdcd_view_page(&v, &out);
    assert_non_null(strstr(cdcd_buf_cstr(&out), "<td>&lt;b&gt; &amp; ?"));
    assert_non_null(strstr(cdcd_buf_cstr(&out), "snapshot.table<td>s.t"));
    cdcd_buf_free(&out);
}

/* ---- a pipeline that does nothing but move on ---- */

struct cdcd_source {
    int n;
};
struct cdcd_sink {
    const struct cdcd_sink_env *env;
    uint64_t seq;
};
static struct cdcd_source the_source;
static struct cdcd_sink the_sink;

static enum cdcd_rc src_open(struct cdcd_source **out, const void *config,
                             const struct cdcd_source_env *env, struct cdcd_error *err)
{
    (void)config, (void)env, (void)err;
    *out = &the_source;
    return CDCD_OK;
}

static void src_close(struct cdcd_source *s)
{
    (void)s;
}

static enum cdcd_rc src_resume(struct cdcd_source *s, struct cdcd_slice from,
                               struct cdcd_buf *position, struct cdcd_error *err)
{
    (void)s, (void)from, (void)err;
    cdcd_buf_adds(position, "{\"p\":0}");
    return CDCD_OK;
}

static enum cdcd_rc src_start(struct cdcd_source *s, struct cdcd_slice from, struct cdcd_error *err)
{
    (void)s, (void)from, (void)err;
    return CDCD_OK;
}

static enum cdcd_rc src_read(struct cdcd_source *s, struct cdcd_batch *b, int64_t deadline_ms,
                             struct cdcd_error *err)
{
    (void)deadline_ms;
    if (++s->n % 50 == 0)
        return cdcd_error_set(err, CDCD_ERR_RETRY, "the source is gone");
    char text[32];
    int len = snprintf(text, sizeof text, "{\"p\":%d}", s->n);
    b->position.ptr = cdcd_arena_dup(&b->arena, text, (size_t)len);
    b->position.len = (size_t)len;
    b->caught_up = true;
    return CDCD_OK;
}

static void src_ack(struct cdcd_source *s, struct cdcd_slice position)
{
    (void)s, (void)position;
}

static enum cdcd_rc src_idle(struct cdcd_source *s, int64_t now, struct cdcd_error *err)
{
    (void)s, (void)now, (void)err;
    return CDCD_OK;
}

static void src_describe(struct cdcd_slice position, struct cdcd_buf *out)
{
    cdcd_buf_addf(out, "place %.*s", (int)position.len, position.ptr);
}

static enum cdcd_rc snk_open(struct cdcd_sink **out, const void *config,
                             const struct cdcd_sink_env *env, struct cdcd_error *err)
{
    (void)config, (void)err;
    the_sink = (struct cdcd_sink){env, 0};
    *out = &the_sink;
    return CDCD_OK;
}

static void snk_close(struct cdcd_sink *s)
{
    (void)s;
}

static enum cdcd_rc snk_load(struct cdcd_sink *s, struct cdcd_buf *state, struct cdcd_notes *notes,
                             struct cdcd_error *err)
{
    (void)notes;
    (void)s, (void)err;
    cdcd_buf_adds(state, "{\"v\":1,\"position\":{\"p\":0}}");
    return CDCD_OK;
}

static enum cdcd_rc snk_write(struct cdcd_sink *s, struct cdcd_batch *b, struct cdcd_error *err)
{
    (void)err;
    s->seq = b->seq;
    s->env->batch_done(s->env->ctx, b);
    return CDCD_OK;
}

static enum cdcd_rc snk_poll(struct cdcd_sink *s, int timeout_ms, bool more, bool flush,
                             struct cdcd_error *err)
{
    (void)timeout_ms, (void)more, (void)flush, (void)err;
    if (s->seq)
        s->env->durable(s->env->ctx, s->seq);
    return CDCD_OK;
}

static const struct cdcd_source_ops source_ops = {.connector = "model",
                                                  .source_schema_name = "model",
                                                  .open = src_open,
                                                  .close = src_close,
                                                  .resume = src_resume,
                                                  .start = src_start,
                                                  .read = src_read,
                                                  .ack = src_ack,
                                                  .idle = src_idle,
                                                  .describe = src_describe};
static const struct cdcd_sink_ops sink_ops = {
    .open = snk_open, .close = snk_close, .load = snk_load, .write = snk_write, .poll = snk_poll};
static const struct cdcd_plugin source_plugin = {.name = "from", .source = &source_ops};
static const struct cdcd_plugin sink_plugin = {.name = "to", .sink = &sink_ops};

static void *run_pipeline(void *p)
{
    struct cdcd_error err = {0};
    cdcd_pipeline_run(p, &err);
    return NULL;
}

/* ---- a client ---- */

static struct sockaddr_in address;

static int listener(void)
{
    socklen_t len = sizeof address;
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    address = (struct sockaddr_in){.sin_family = AF_INET,
                                   .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    assert_int_equal(bind(fd, (struct sockaddr *)&address, sizeof address), 0);
    assert_int_equal(listen(fd, 1), 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *)&address, &len), 0);
    return fd;
}

static void request(const char *text, struct cdcd_buf *answer)
{
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    cdcd_buf_clear(answer);
    assert_int_equal(connect(fd, (struct sockaddr *)&address, sizeof address), 0);
    assert_int_equal(write(fd, text, strlen(text)), (ssize_t)strlen(text));
    ssize_t n;
    char *to;
    while ((to = cdcd_buf_reserve(answer, 4096)) && (n = read(fd, to, 4096)) > 0)
        answer->len += (size_t)n;
    close(fd);
}

static void *ask_all(void *arg)
{
    static const struct {
        const char *request, *status, *part;
    } cases[] = {
        {"GET / HTTP/1.0\r\n\r\n", "200", "<td>from"},
        {"GET /?x=1 HTTP/1.0\r\n\r\n", "200", "<td>from"},
        {"GET /healthz HTTP/1.0\r\n\r\n", "200", "\r\n\r\nok\n"},
        {"GET /metrics HTTP/1.0\r\n\r\n", "200", "cdcd_up{pipeline=\"m\"} 1\n"},
        {"GET /api/status HTTP/1.0\r\n\r\n", "200", "\"position\": \"place {\\\"p\\\":"},
        {"HEAD /metrics HTTP/1.0\r\n\r\n", "200", "version=0.0.4"},
        {"GET /nothing HTTP/1.0\r\n\r\n", "404", "not found"},
        {"GET /metrics/ HTTP/1.0\r\n\r\n", "404", "not found"},
        {"POST /metrics HTTP/1.0\r\nContent-Length: 3\r\n\r\nabc", "405", "Allow: GET, HEAD"},
        {"DELETE / HTTP/1.0\r\n\r\n", "405", "only GET and HEAD"},
        {"POST /nothing HTTP/1.0\r\nContent-Length: 0\r\n\r\n", "404", "not found"},
    };
    struct cdcd_buf answer;
    const char *bad = NULL;
    (void)arg;
    cdcd_buf_init(&answer, 0);
    for (size_t i = 0; i < 10 * sizeof cases / sizeof *cases; i++) {
        size_t k = i % (sizeof cases / sizeof *cases);
        request(cases[k].request, &answer);
        const char *text = cdcd_buf_cstr(&answer);
        if (strncmp(text + 8, " ", 1) != 0 || strncmp(text + 9, cases[k].status, 3) != 0 ||
            !strstr(text, cases[k].part)) {
            print_message("%s%s\n", cases[k].request, text);
            bad = cases[k].request;
        }
    }
    cdcd_buf_free(&answer);
    return (void *)(uintptr_t)bad;
}

static void a_server_beside_a_running_pipeline(void **state)
{
    (void)state;
    char listen_text[40];
    struct cdcd_config config = {.name = (char *)"m",
                                 .topic_prefix = (char *)"m",
                                 .snapshot_mode = CDCD_SNAPSHOT_NO_DATA,
                                 .state_dir = (char *)"",
                                 .max_event_bytes = 1 << 20,
                                 .batches = 4,
                                 .max_retries = -1,
                                 .retry_delay_max_ms = 2,
                                 .http_listen = listen_text,
                                 .source_plugin = &source_plugin,
                                 .sink_plugin = &sink_plugin};
    config.format.unavailable_value_placeholder = (char *)"x";
    config.format.topic_heartbeat_prefix = (char *)"h";
    config.format.topic_delimiter = (char *)".";
    config.format.topic_transaction = (char *)"transaction";
    struct cdcd_run_options options = {0};
    struct cdcd_error err = {0};
    struct cdcd_pipeline *p;
    struct cdcd_http *h;
    assert_int_equal(cdcd_pipeline_new(&config, &options, &p, &err), CDCD_OK);

    int taken = listener();
    snprintf(listen_text, sizeof listen_text, "127.0.0.1:%d", ntohs(address.sin_port));
    assert_int_equal(cdcd_http_start(&config, p, &h, &err), CDCD_ERROR);
    assert_int_equal(err.class, CDCD_ERR_CONFIG);
    assert_non_null(strstr(err.text, "http.listen: cannot listen on 127.0.0.1:"));
    assert_non_null(strstr(err.text, "choose another port"));
    close(taken);
    assert_int_equal(cdcd_http_start(&config, p, &h, &err), CDCD_OK);

    struct cdcd_buf answer;
    cdcd_buf_init(&answer, 0);
    request("GET /readyz HTTP/1.0\r\n\r\n", &answer);
    assert_non_null(strstr(cdcd_buf_cstr(&answer), " 503 "));
    assert_non_null(strstr(cdcd_buf_cstr(&answer), "connecting\n"));

    pthread_t run, clients[2];
    struct cdcd_stats stats;
    pthread_create(&run, NULL, run_pipeline, p);
    const struct timespec nap = {0, 1000000};
    do {
        nanosleep(&nap, NULL);
        cdcd_pipeline_stats(p, &stats);
    } while (!*stats.position);
    for (int i = 0; i < 2; i++)
        pthread_create(&clients[i], NULL, ask_all, NULL);
    for (int i = 0; i < 100; i++) {
        cdcd_http_tick(h);
        nanosleep(&nap, NULL);
    }
    for (int i = 0; i < 2; i++) {
        void *bad;
        pthread_join(clients[i], &bad);
        assert_null(bad);
    }
    cdcd_pipeline_stop(p);
    pthread_join(run, NULL);
    cdcd_pipeline_stats(p, &stats);
    assert_int_equal(stats.phase, CDCD_PHASE_STOPPED);
    assert_true(stats.commit_age_ms >= 0 && stats.retries > 0 && stats.last_error_us > 0);
    assert_string_equal(stats.last_error, "the source is gone");
    assert_false(stats.failed);
    cdcd_buf_free(&answer);
    cdcd_http_stop(h);
    cdcd_pipeline_free(p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(addresses),     cmocka_unit_test(rates_are_those_of_the_last_ten_seconds),
        cmocka_unit_test(readiness),     cmocka_unit_test(prometheus_text),
        cmocka_unit_test(json_and_page), cmocka_unit_test(a_server_beside_a_running_pipeline),
    };
    cdcd_log_setup(CDCD_LOG_ERROR, false, "");
    return cmocka_run_group_tests(tests, NULL, NULL);
}
