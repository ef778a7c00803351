/*
 * kput: writes records to Kafka, for the tests. Reads lines from standard input:
 *
 *   put TOPIC PARTITION TIMESTAMP KEY VALUE [NAME VALUE]...   bytes in hex, "" as ".", null as "-";
 *                                                             partition -1: by the key
 *   begin | commit | abort                                    a transaction; with --transactions
 *   flush                                                     and says so
 *
 *   kput BOOTSTRAP [--transactions ID]
 *
 * After commit, abort and flush it prints a line on standard output.
 */
#include <librdkafka/rdkafka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_WORDS 64

static rd_kafka_t *rk;

static void die(const char *what, const char *why)
{
    fprintf(stderr, "kput: %s: %s\n", what, why);
    exit(1);
}

static void done(const char *what, rd_kafka_error_t *e)
{
    if (e)
        die(what, rd_kafka_error_string(e));
}

static void on_delivery(rd_kafka_t *k, const rd_kafka_message_t *m, void *opaque)
{
    (void)k, (void)opaque;
    if (m->err && m->err != RD_KAFKA_RESP_ERR__PURGE_QUEUE &&
        m->err != RD_KAFKA_RESP_ERR__PURGE_INFLIGHT)
        die("delivery", rd_kafka_err2str(m->err));
}

static void set(rd_kafka_conf_t *conf, const char *name, const char *value)
{
    char text[512];
    if (rd_kafka_conf_set(conf, name, value, text, sizeof text) != RD_KAFKA_CONF_OK)
        die(name, text);
}

static void connect_broker(const char *bootstrap, const char *id)
{
    char text[512];
    rd_kafka_conf_t *conf = rd_kafka_conf_new();
    set(conf, "bootstrap.servers", bootstrap);
    set(conf, "partitioner", "murmur2_random");
    set(conf, "linger.ms", "5");
    set(conf, "enable.idempotence", "true");
    set(conf, "queue.buffering.max.messages", "1000000");
    set(conf, "message.max.bytes", "104000000");
    if (id)
        set(conf, "transactional.id", id);
    rd_kafka_conf_set_dr_msg_cb(conf, on_delivery);
    rk = rd_kafka_new(RD_KAFKA_PRODUCER, conf, text, sizeof text);
    if (!rk)
        die("librdkafka", text);
    if (id)
        done("init", rd_kafka_init_transactions(rk, 30000));
}

static unsigned digit(char c)
{
    return (unsigned)(c <= '9' ? c - '0' : c - 'a' + 10);
}

/* In place; NULL: null. */
static char *unhex(char *word, size_t *len)
{
    *len = 0;
    if (strcmp(word, "-") == 0)
        return NULL;
    if (strcmp(word, ".") == 0)
        return word;
    for (char *p = word; p[0] && p[1]; p += 2)
        word[(*len)++] = (char)(digit(p[0]) << 4 | digit(p[1]));
    return word;
}

static void put(char **words, size_t n)
{
    rd_kafka_vu_t vu[MAX_WORDS] = {0};
    size_t count = 0;
    if (n < 6)
        die("put", "needs TOPIC PARTITION TIMESTAMP KEY VALUE");
    vu[count++] = (rd_kafka_vu_t){.vtype = RD_KAFKA_VTYPE_TOPIC, .u.cstr = words[1]};
    vu[count++] = (rd_kafka_vu_t){.vtype = RD_KAFKA_VTYPE_PARTITION,
                                  .u.i32 = (int32_t)strtol(words[2], NULL, 10)};
    vu[count++] = (rd_kafka_vu_t){.vtype = RD_KAFKA_VTYPE_TIMESTAMP,
                                  .u.i64 = strtoll(words[3], NULL, 10)};
    vu[count++] = (rd_kafka_vu_t){.vtype = RD_KAFKA_VTYPE_MSGFLAGS,
                                  .u.i = RD_KAFKA_MSG_F_COPY | RD_KAFKA_MSG_F_BLOCK};
    for (size_t i = 0; i < 2; i++) {
        vu[count].vtype = i ? RD_KAFKA_VTYPE_VALUE : RD_KAFKA_VTYPE_KEY;
        vu[count].u.mem.ptr = unhex(words[4 + i], &vu[count].u.mem.size);
        count++;
    }
    for (size_t i = 6; i + 1 < n; i += 2) {
        size_t len;
        char *value = unhex(words[i + 1], &len);
        vu[count++] = (rd_kafka_vu_t){.vtype = RD_KAFKA_VTYPE_HEADER,
                                      .u.header = {words[i], value, (ssize_t)len}};
    }
    done("put", rd_kafka_produceva(rk, vu, count));
    rd_kafka_poll(rk, 0);
}

static void command(char **words, size_t n)
{
    if (strcmp(words[0], "put") == 0) {
        put(words, n);
        return;
    }
    if (strcmp(words[0], "begin") == 0) {
        done("begin", rd_kafka_begin_transaction(rk));
        return;
    }
    if (strcmp(words[0], "commit") == 0)
        done("commit", rd_kafka_commit_transaction(rk, 60000));
    else if (strcmp(words[0], "abort") == 0)
        rd_kafka_flush(rk, 60000), done("abort", rd_kafka_abort_transaction(rk, 60000));
    else if (strcmp(words[0], "flush") == 0)
        rd_kafka_flush(rk, 60000);
    else
        die(words[0], "not understood");
    printf("%s\n", words[0]);
    fflush(stdout);
}

int main(int argc, char **argv)
{
    char *line = NULL, *save;
    size_t cap = 0;
    if (argc != 2 && argc != 4)
        die("usage", "kput BOOTSTRAP [--transactions ID]");
    connect_broker(argv[1], argc == 4 ? argv[3] : NULL);
    while (getline(&line, &cap, stdin) > 0) {
        char *words[MAX_WORDS];
        size_t n = 0;
        for (char *w = strtok_r(line, " \n", &save); w && n < MAX_WORDS;
             w = strtok_r(NULL, " \n", &save))
            words[n++] = w;
        if (n)
            command(words, n);
    }
    free(line);
    rd_kafka_flush(rk, 60000);
    rd_kafka_destroy(rk);
    return 0;
}
