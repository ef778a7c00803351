/*
 * kread: reads committed records of Kafka topics and prints them as the file sink would, with
 * partition, offset and timestamp added.
 *
 *   kread BOOTSTRAP TOPIC|^REGEX [--from-beginning] [--until-end] [--count N] [--timeout SECONDS]
 *         [--plain] [--json] [--latency] [--uncommitted] [--quiet]
 *
 *   --from-beginning  else from the end
 *   --until-end       stops where the topics end now, as a read_committed reader sees it
 *   --count N         stops after N records
 *   --timeout S       stops when nothing came for S seconds; exit 1 if --count was not reached
 *   --plain           exactly the file sink's line
 *   --latency         prints now minus the record's timestamp as percentiles at the end, no records
 *   --uncommitted     also open and aborted transactions
 *   --quiet           only counts
 *
 * Ends with the number of records on stderr. No consumer group is used.
 */
#include "../../plugins/file/line.c"

#include <cdcd/json.h>

#include <inttypes.h>
#include <librdkafka/rdkafka.h>
#include <regex.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

static volatile sig_atomic_t stop;

static void on_signal(int sig)
{
    (void)sig;
    stop = 1;
}

struct topic {
    struct topic *next;
    rd_kafka_topic_t *rkt;
    struct cdcd_topic view;
    char *name, *name_json;
    int partitions;
};

static struct {
    const char *bootstrap, *pattern;
    bool from_beginning, until_end, plain, latency, uncommitted, quiet;
    long count;
    double timeout;
    regex_t regex;
    bool is_regex;
    rd_kafka_t *rk;
    rd_kafka_queue_t *queue;
    struct topic *topics;
    long at_end, partitions, records;
    int64_t *late;
    size_t nlate, late_cap;
    struct cdcd_buf out;
} k;

static void die(const char *what, const char *why)
{
    fprintf(stderr, "kread: %s: %s\n", what, why);
    exit(2);
}

static void conf_set(rd_kafka_conf_t *conf, const char *name, const char *value)
{
    char text[512];
    if (rd_kafka_conf_set(conf, name, value, text, sizeof text) != RD_KAFKA_CONF_OK)
        die(name, text);
}

static void on_log(const rd_kafka_t *rk, int level, const char *fac, const char *text)
{
    (void)rk, (void)level, (void)fac, (void)text;
}

static void connect_broker(void)
{
    char text[512];
    rd_kafka_conf_t *conf = rd_kafka_conf_new();
    conf_set(conf, "bootstrap.servers", k.bootstrap);
    conf_set(conf, "isolation.level", k.uncommitted ? "read_uncommitted" : "read_committed");
    conf_set(conf, "enable.partition.eof", "true");
    conf_set(conf, "auto.offset.reset", "earliest");
    conf_set(conf, "fetch.wait.max.ms", "20");
    conf_set(conf, "reconnect.backoff.max.ms", "500");
    conf_set(conf, "queued.max.messages.kbytes", "65536");
    conf_set(conf, "fetch.message.max.bytes", "8388608");
    conf_set(conf, "receive.message.max.bytes", "1000000000");
    rd_kafka_conf_set_log_cb(conf, on_log);
    k.rk = rd_kafka_new(RD_KAFKA_CONSUMER, conf, text, sizeof text);
    if (!k.rk)
        die("librdkafka", text);
    k.queue = rd_kafka_queue_new(k.rk);
}

static struct topic *topic_find(const char *name)
{
    struct topic *t = k.topics;
    while (t && strcmp(t->name, name) != 0)
        t = t->next;
    return t;
}

static struct topic *topic_add(const char *name)
{
    struct cdcd_arena arena;
    struct cdcd_writer w;
    struct topic *t = cdcd_xcalloc(1, sizeof *t);
    rd_kafka_topic_conf_t *conf = rd_kafka_topic_conf_new();
    rd_kafka_topic_conf_set_opaque(conf, t);
    cdcd_arena_init(&arena, 1024);
    cdcd_writer_begin(&w, &arena);
    cdcd_json_string(&w, name, strlen(name));
    struct cdcd_slice json = cdcd_writer_end(&w);
    t->name = cdcd_xstrdup(name);
    t->name_json = cdcd_xstrndup(json.ptr, json.len);
    t->view.name = cdcd_slice_str(t->name);
    t->view.name_json = cdcd_slice_str(t->name_json);
    cdcd_arena_free(&arena);
    t->rkt = rd_kafka_topic_new(k.rk, name, conf);
    t->next = k.topics;
    k.topics = t;
    return t;
}

/* Begins to read every matching partition that is not read yet. */
static void look_for_topics(bool first)
{
    const struct rd_kafka_metadata *md;
    rd_kafka_resp_err_t err = rd_kafka_metadata(k.rk, 1, NULL, &md, 10000);
    if (err && first)
        die(k.bootstrap, rd_kafka_err2str(err));
    if (err)
        return;
    for (int i = 0; i < md->topic_cnt; i++) {
        const char *name = md->topics[i].topic;
        if (k.is_regex ? regexec(&k.regex, name, 0, NULL, 0) != 0 : strcmp(name, k.pattern) != 0)
            continue;
        struct topic *t = topic_find(name);
        if (!t)
            t = topic_add(name);
        /* What appears later is read from its beginning. */
        int64_t from = !first || k.from_beginning ? RD_KAFKA_OFFSET_BEGINNING : RD_KAFKA_OFFSET_END;
        for (; t->partitions < md->topics[i].partition_cnt; t->partitions++, k.partitions++)
            if (rd_kafka_consume_start_queue(t->rkt, t->partitions, from, k.queue) != 0)
                die(name, rd_kafka_err2str(rd_kafka_last_error()));
    }
    rd_kafka_metadata_destroy(md);
}

static uint32_t take_headers(const rd_kafka_message_t *m, struct cdcd_header *to, uint32_t cap)
{
    rd_kafka_headers_t *headers;
    uint32_t n = 0;
    const char *name;
    const void *value;
    size_t len;
    if (rd_kafka_message_headers(m, &headers) != RD_KAFKA_RESP_ERR_NO_ERROR)
        return 0;
    while (n < cap &&
           rd_kafka_header_get_all(headers, n, &name, &value, &len) == RD_KAFKA_RESP_ERR_NO_ERROR) {
        to[n].name = cdcd_slice_str(name);
        to[n].value = (struct cdcd_slice){value, len};
        to[n++].json = false;
    }
    return n;
}

static void print_record(const rd_kafka_message_t *m)
{
    struct cdcd_header headers[64];
    struct topic *t = rd_kafka_topic_opaque(m->rkt);
    struct cdcd_record r = {.topic = &t->view,
                            .key = {m->key, m->key_len},
                            .value = {m->payload, m->len},
                            .headers = headers};
    rd_kafka_timestamp_type_t type;
    r.nheaders = take_headers(m, headers, 64);
    cdcd_buf_clear(&k.out);
    if (!file_line_append(&k.out, &r))
        die(t->name, "record too large");
    if (!k.plain) {
        k.out.len -= 2;
        cdcd_buf_addf(&k.out, ",\"partition\":%d,\"offset\":%lld,\"timestamp\":%lld}\n",
                      (int)m->partition, (long long)m->offset,
                      (long long)rd_kafka_message_timestamp(m, &type));
    }
    fwrite(k.out.ptr, 1, k.out.len, stdout);
}

static void take_latency(const rd_kafka_message_t *m)
{
    rd_kafka_timestamp_type_t type;
    if (k.nlate == k.late_cap) {
        k.late_cap = k.late_cap ? k.late_cap * 2 : 4096;
        k.late = cdcd_xrealloc(k.late, k.late_cap * sizeof *k.late);
    }
    k.late[k.nlate++] = cdcd_wallclock_us() / 1000 - rd_kafka_message_timestamp(m, &type);
}

static void take_record(const rd_kafka_message_t *m)
{
    k.records++;
    if (k.latency)
        take_latency(m);
    else if (!k.quiet)
        print_record(m);
}

static bool finished(void)
{
    return stop || (k.count && k.records >= k.count) || (k.until_end && k.at_end >= k.partitions);
}

static void read_all(void)
{
    int64_t last = cdcd_now_ms(), refresh = last + 1000;
    while (!finished()) {
        rd_kafka_message_t *m = rd_kafka_consume_queue(k.queue, 0);
        if (!m) {
            fflush(stdout);
            m = rd_kafka_consume_queue(k.queue, 100);
        }
        int64_t now = cdcd_now_ms();
        if (m && !m->err) {
            take_record(m);
            last = now;
        } else if (m && m->err == RD_KAFKA_RESP_ERR__PARTITION_EOF && k.until_end) {
            k.at_end++;
            rd_kafka_consume_stop(m->rkt, m->partition);
        }
        if (m)
            rd_kafka_message_destroy(m);
        if (k.timeout > 0 && (double)(now - last) > k.timeout * 1000)
            return;
        if (!k.until_end && now > refresh) {
            look_for_topics(false);
            refresh = now + 1000;
        }
    }
}

static int ascending(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return x < y ? -1 : x > y;
}

static void print_latency(void)
{
    if (!k.nlate) {
        printf("{\"records\":0}\n");
        return;
    }
    qsort(k.late, k.nlate, sizeof *k.late, ascending);
    printf("{\"records\":%zu,\"p50\":%" PRId64 ",\"p90\":%" PRId64 ",\"p99\":%" PRId64
           ",\"max\":%" PRId64 "}\n",
           k.nlate, k.late[k.nlate / 2], k.late[k.nlate * 9 / 10], k.late[k.nlate * 99 / 100],
           k.late[k.nlate - 1]);
}

static const char *operand(int argc, char **argv, int *i)
{
    if (*i + 1 >= argc)
        die(argv[*i], "needs a value");
    return argv[++*i];
}

static void parse(int argc, char **argv)
{
    const struct {
        const char *name;
        bool *to;
    } flags[] = {
        {"--from-beginning", &k.from_beginning},
        {"--until-end", &k.until_end},
        {"--plain", &k.plain},
        {"--latency", &k.latency},
        {"--uncommitted", &k.uncommitted},
        {"--quiet", &k.quiet},
    };
    for (int i = 1; i < argc; i++) {
        size_t f = 0;
        while (f < sizeof flags / sizeof *flags && strcmp(flags[f].name, argv[i]) != 0)
            f++;
        if (f < sizeof flags / sizeof *flags)
            *flags[f].to = true;
        else if (strcmp(argv[i], "--count") == 0)
            k.count = strtol(operand(argc, argv, &i), NULL, 10);
        else if (strcmp(argv[i], "--timeout") == 0)
            k.timeout = strtod(operand(argc, argv, &i), NULL);
        else if (strcmp(argv[i], "--json") == 0)
            continue;
        else if (!k.bootstrap)
            k.bootstrap = argv[i];
        else if (!k.pattern)
            k.pattern = argv[i];
        else
            die(argv[i], "not understood");
    }
    if (!k.pattern)
        die("usage", "kread BOOTSTRAP TOPIC|^REGEX [--from-beginning] [--until-end] ...");
    k.is_regex = k.pattern[0] == '^';
    if (k.is_regex && regcomp(&k.regex, k.pattern, REG_EXTENDED | REG_NOSUB) != 0)
        die(k.pattern, "not a regular expression");
}

static void release_all(void)
{
    while (k.topics) {
        struct topic *t = k.topics;
        k.topics = t->next;
        for (int i = 0; i < t->partitions; i++)
            rd_kafka_consume_stop(t->rkt, i);
        rd_kafka_topic_destroy(t->rkt);
        free(t->name);
        free(t->name_json);
        free(t);
    }
    rd_kafka_queue_destroy(k.queue);
    rd_kafka_destroy(k.rk);
    if (k.is_regex)
        regfree(&k.regex);
    cdcd_buf_free(&k.out);
    free(k.late);
}

int main(int argc, char **argv)
{
    parse(argc, argv);
    signal(SIGINT, on_signal);
    signal(SIGTERM, on_signal);
    cdcd_buf_init(&k.out, (size_t)1 << 40);
    connect_broker();
    look_for_topics(true);
    read_all();
    if (k.latency)
        print_latency();
    fflush(stdout);
    fprintf(stderr, "%ld records\n", k.records);
    int rc = k.count && k.records < k.count ? 1 : 0;
    release_all();
    return rc;
}
