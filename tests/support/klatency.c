/*
 * klatency: how long records are under way, or how many there are.
 *
 *   klatency BOOTSTRAP TOPIC --count          committed records of the topic until its end
 *   klatency BOOTSTRAP TOPIC --column NAME    until SIGTERM: from the time in that column of
 *   klatency - --column NAME                  `after` (standard input: lines of the file sink)
 *                                             to its arrival here; --skip N: not the first N
 *
 * Prints one JSON object: {"records":N,"p50_ms":...,"p90_ms":...,"p99_ms":...,"max_ms":...}.
 * Clock of the writer and of this process must be the same one.
 */
#include <librdkafka/rdkafka.h>

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

struct samples {
    int64_t *micros;
    size_t n, cap;
    uint64_t records, skip;
    const char *column;
};

static volatile sig_atomic_t ended;

static void on_signal(int sig)
{
    (void)sig;
    ended = 1;
}

static void fail(const char *what, const char *why)
{
    fprintf(stderr, "klatency: %s: %s\n", what, why);
    exit(1);
}

static int64_t wallclock(void)
{
    struct timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    return (int64_t)t.tv_sec * 1000000 + t.tv_nsec / 1000;
}

/* YYYY-MM-DDTHH:MM:SS[.fraction]Z in microseconds since 1970; -1: no such time. */
static int64_t parse_time(const char *s, const char *end)
{
    struct tm tm = {0};
    char text[40];
    if ((size_t)(end - s) >= sizeof text)
        return -1;
    memcpy(text, s, (size_t)(end - s));
    text[end - s] = 0;
    char *rest = strptime(text, "%Y-%m-%dT%H:%M:%S", &tm);
    if (!rest)
        return -1;
    int64_t micros = 0, unit = 100000;
    if (*rest == '.') {
        for (rest++; *rest >= '0' && *rest <= '9'; rest++, unit /= 10)
            micros += (*rest - '0') * unit;
    }
    return *rest == 'Z' ? (int64_t)timegm(&tm) * 1000000 + micros : -1;
}

static const char *find(const char *p, const char *end, const char *what)
{
    return p ? memmem(p, (size_t)(end - p), what, strlen(what)) : NULL;
}

static void take(struct samples *s, const char *value, size_t len, int64_t now)
{
    if (!s->column) {
        s->records++;
        return;
    }
    char name[128];
    snprintf(name, sizeof name, "\"%s\":\"", s->column);
    const char *end = value + len, *p = find(find(value, end, "\"after\":{"), end, name);
    const char *stop = p ? memchr(p + strlen(name), '"', (size_t)(end - p) - strlen(name)) : NULL;
    int64_t then = stop ? parse_time(p + strlen(name), stop) : -1;
    if (then < 0)
        return;
    if (s->skip) {
        s->skip--;
        return;
    }
    if (s->n == s->cap) {
        s->cap = s->cap ? s->cap * 2 : 4096;
        s->micros = realloc(s->micros, s->cap * sizeof *s->micros);
        if (!s->micros)
            fail("memory", "none left");
    }
    s->micros[s->n++] = now - then;
    s->records++;
}

static void read_lines(struct samples *s)
{
    size_t cap = 16u << 20, len = 0;
    char *buf = malloc(cap);
    if (!buf)
        fail("memory", "none left");
    while (!ended) {
        struct pollfd fd = {STDIN_FILENO, POLLIN, 0};
        if (poll(&fd, 1, 100) <= 0)
            continue;
        ssize_t n = read(STDIN_FILENO, buf + len, cap - len);
        if (n == 0 || (n < 0 && errno != EINTR))
            break;
        if (n < 0)
            continue;
        int64_t now = wallclock();
        len += (size_t)n;
        char *p = buf, *nl;
        while ((nl = memchr(p, '\n', (size_t)(buf + len - p)))) {
            take(s, p, (size_t)(nl - p), now);
            p = nl + 1;
        }
        len = (size_t)(buf + len - p);
        if (len == cap)
            fail("standard input", "a line of more than 16 MB");
        memmove(buf, p, len);
    }
    free(buf);
}

static void set(rd_kafka_conf_t *conf, const char *name, const char *value)
{
    char why[256];
    if (rd_kafka_conf_set(conf, name, value, why, sizeof why) != RD_KAFKA_CONF_OK)
        fail(name, why);
}

/* All partitions of the topic, from their beginnings. It may be about to be made. */
static int assign(rd_kafka_t *rk, const char *topic)
{
    const struct rd_kafka_metadata *md;
    rd_kafka_topic_t *t = rd_kafka_topic_new(rk, topic, NULL);
    int n = 0;
    rd_kafka_resp_err_t rc = RD_KAFKA_RESP_ERR_NO_ERROR;
    for (int tries = 0; n == 0 && tries < 600 && !ended; tries++) {
        if (tries)
            usleep(50000);
        rc = rd_kafka_metadata(rk, 0, t, &md, 10000);
        if (rc)
            continue;
        rc = md->topics[0].err;
        n = rc ? 0 : md->topics[0].partition_cnt;
        rd_kafka_metadata_destroy(md);
    }
    if (n == 0)
        fail(topic, rd_kafka_err2str(rc));
    rd_kafka_topic_partition_list_t *parts = rd_kafka_topic_partition_list_new(n);
    for (int i = 0; i < n; i++)
        rd_kafka_topic_partition_list_add(parts, topic, i)->offset = RD_KAFKA_OFFSET_BEGINNING;
    rc = rd_kafka_assign(rk, parts);
    if (rc)
        fail(topic, rd_kafka_err2str(rc));
    rd_kafka_topic_partition_list_destroy(parts);
    rd_kafka_topic_destroy(t);
    return n;
}

static void read_topic(struct samples *s, const char *bootstrap, const char *topic)
{
    char why[256];
    rd_kafka_conf_t *conf = rd_kafka_conf_new();
    set(conf, "bootstrap.servers", bootstrap);
    set(conf, "group.id", "klatency");
    set(conf, "enable.auto.commit", "false");
    set(conf, "isolation.level", "read_committed");
    set(conf, "fetch.wait.max.ms", s->column ? "10" : "500");
    set(conf, "socket.nagle.disable", "true");
    set(conf, "check.crcs", "true");
    set(conf, "enable.partition.eof", s->column ? "false" : "true");
    rd_kafka_t *rk = rd_kafka_new(RD_KAFKA_CONSUMER, conf, why, sizeof why);
    if (!rk)
        fail("consumer", why);
    rd_kafka_poll_set_consumer(rk);
    int open_parts = assign(rk, topic);
    while (!ended && open_parts > 0) {
        rd_kafka_message_t *m = rd_kafka_consumer_poll(rk, 100);
        if (!m)
            continue;
        if (m->err == RD_KAFKA_RESP_ERR__PARTITION_EOF)
            open_parts--;
        else if (m->err)
            fprintf(stderr, "klatency: %s\n", rd_kafka_message_errstr(m));
        else
            take(s, m->payload ? m->payload : "", m->len, wallclock());
        rd_kafka_message_destroy(m);
    }
    rd_kafka_consumer_close(rk);
    rd_kafka_destroy(rk);
}

static int by_size(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

static double percentile(const struct samples *s, double p)
{
    size_t i = (size_t)(p * (double)s->n);
    return (double)s->micros[i < s->n ? i : s->n - 1] / 1000;
}

static void print(struct samples *s)
{
    printf("{\"records\":%llu", (unsigned long long)s->records);
    if (s->n) {
        qsort(s->micros, s->n, sizeof *s->micros, by_size);
        printf(",\"p50_ms\":%.3f,\"p90_ms\":%.3f,\"p99_ms\":%.3f,\"max_ms\":%.3f",
               percentile(s, 0.5), percentile(s, 0.9), percentile(s, 0.99), percentile(s, 1));
    }
    printf("}\n");
}

int main(int argc, char **argv)
{
    struct samples s = {0};
    const char *names[2] = {NULL, NULL};
    int n = 0;
    bool count = false;
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--count") == 0)
            count = true;
        else if (strcmp(argv[i], "--column") == 0 && i + 1 < argc)
            s.column = argv[++i];
        else if (strcmp(argv[i], "--skip") == 0 && i + 1 < argc)
            s.skip = strtoull(argv[++i], NULL, 10);
        else if (n < 2 && strncmp(argv[i], "--", 2) != 0)
            names[n++] = argv[i];
        else
            n = 3;
    }
    bool lines = n == 1 && strcmp(names[0], "-") == 0;
    if ((!lines && n != 2) || count == (s.column != NULL)) {
        fprintf(stderr, "usage: klatency BOOTSTRAP TOPIC --count\n"
                        "       klatency BOOTSTRAP TOPIC | - --column NAME [--skip N]\n");
        return 2;
    }
    struct sigaction action = {.sa_handler = on_signal};
    sigaction(SIGTERM, &action, NULL);
    sigaction(SIGINT, &action, NULL);
    if (lines)
        read_lines(&s);
    else
        read_topic(&s, names[0], names[1]);
    print(&s);
    free(s.micros);
    return 0;
}
