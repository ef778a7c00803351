/*
 * ktopic: creates topics and changes their settings, for the tests.
 *
 *   ktopic BOOTSTRAP create TOPIC PARTITIONS [NAME=VALUE]...
 *   ktopic BOOTSTRAP set TOPIC NAME=VALUE...      all its settings: others go back to defaults
 *   ktopic BOOTSTRAP delete TOPIC...
 *   ktopic BOOTSTRAP grow TOPIC PARTITIONS             to so many partitions
 *   ktopic BOOTSTRAP trim TOPIC PARTITION OFFSET       deletes what is before the offset
 */
#include <librdkafka/rdkafka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static rd_kafka_t *rk;
static rd_kafka_queue_t *queue;

static void die(const char *what, const char *why)
{
    fprintf(stderr, "ktopic: %s: %s\n", what, why);
    exit(1);
}

static void connect_broker(const char *bootstrap)
{
    char text[512];
    rd_kafka_conf_t *conf = rd_kafka_conf_new();
    if (rd_kafka_conf_set(conf, "bootstrap.servers", bootstrap, text, sizeof text) !=
        RD_KAFKA_CONF_OK)
        die("bootstrap", text);
    rk = rd_kafka_new(RD_KAFKA_PRODUCER, conf, text, sizeof text);
    if (!rk)
        die("librdkafka", text);
    queue = rd_kafka_queue_new(rk);
}

/* Splits NAME=VALUE in place. */
static const char *value_of(char *setting)
{
    char *equals = strchr(setting, '=');
    if (!equals)
        die(setting, "is not NAME=VALUE");
    *equals = 0;
    return equals + 1;
}

static rd_kafka_event_t *answer(const char *what)
{
    rd_kafka_event_t *ev = rd_kafka_queue_poll(queue, 30000);
    if (!ev)
        die(what, "no answer");
    if (rd_kafka_event_error(ev))
        die(what, rd_kafka_event_error_string(ev));
    return ev;
}

static void check_topics(const rd_kafka_topic_result_t **results, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (rd_kafka_topic_result_error(results[i]))
            die(rd_kafka_topic_result_name(results[i]),
                rd_kafka_topic_result_error_string(results[i]));
}

static void create(char **args, int n)
{
    char text[512];
    size_t count;
    if (n < 2)
        die("create", "needs TOPIC PARTITIONS");
    rd_kafka_NewTopic_t *t = rd_kafka_NewTopic_new(args[0], (int)strtol(args[1], NULL, 10), 1, text,
                                                   sizeof text);
    if (!t)
        die(args[0], text);
    for (int i = 2; i < n; i++) {
        const char *value = value_of(args[i]);
        rd_kafka_NewTopic_set_config(t, args[i], value);
    }
    rd_kafka_CreateTopics(rk, &t, 1, NULL, queue);
    rd_kafka_event_t *ev = answer(args[0]);
    check_topics(
        rd_kafka_CreateTopics_result_topics(rd_kafka_event_CreateTopics_result(ev), &count), 1);
    rd_kafka_event_destroy(ev);
    rd_kafka_NewTopic_destroy(t);
}

static void set(char **args, int n)
{
    size_t count;
    if (n < 2)
        die("set", "needs TOPIC NAME=VALUE");
    rd_kafka_ConfigResource_t *r = rd_kafka_ConfigResource_new(RD_KAFKA_RESOURCE_TOPIC, args[0]);
    for (int i = 1; i < n; i++) {
        const char *value = value_of(args[i]);
        rd_kafka_ConfigResource_set_config(r, args[i], value);
    }
    rd_kafka_AlterConfigs(rk, &r, 1, NULL, queue);
    rd_kafka_event_t *ev = answer(args[0]);
    const rd_kafka_ConfigResource_t **results = rd_kafka_AlterConfigs_result_resources(
        rd_kafka_event_AlterConfigs_result(ev), &count);
    if (count != 1 || rd_kafka_ConfigResource_error(results[0]))
        die(args[0], count ? rd_kafka_ConfigResource_error_string(results[0]) : "no result");
    rd_kafka_event_destroy(ev);
    rd_kafka_ConfigResource_destroy(r);
}

static void delete (char **args, int n)
{
    size_t count;
    for (int i = 0; i < n; i++) {
        rd_kafka_DeleteTopic_t *t = rd_kafka_DeleteTopic_new(args[i]);
        rd_kafka_DeleteTopics(rk, &t, 1, NULL, queue);
        rd_kafka_event_t *ev = answer(args[i]);
        check_topics(
            rd_kafka_DeleteTopics_result_topics(rd_kafka_event_DeleteTopics_result(ev), &count), 1);
        rd_kafka_event_destroy(ev);
        rd_kafka_DeleteTopic_destroy(t);
    }
}

static void grow(char **args, int n)
{
    char text[512];
    size_t count;
    if (n != 2)
        die("grow", "needs TOPIC PARTITIONS");
    rd_kafka_NewPartitions_t *p = rd_kafka_NewPartitions_new(
        args[0], (size_t)strtol(args[1], NULL, 10), text, sizeof text);
    if (!p)
        die(args[0], text);
    rd_kafka_CreatePartitions(rk, &p, 1, NULL, queue);
    rd_kafka_event_t *ev = answer(args[0]);
    check_topics(
        rd_kafka_CreatePartitions_result_topics(rd_kafka_event_CreatePartitions_result(ev), &count),
        1);
    rd_kafka_event_destroy(ev);
    rd_kafka_NewPartitions_destroy(p);
}

static void trim(char **args, int n)
{
    if (n != 3)
        die("trim", "needs TOPIC PARTITION OFFSET");
    rd_kafka_topic_partition_list_t *list = rd_kafka_topic_partition_list_new(1);
    rd_kafka_topic_partition_list_add(list, args[0], (int32_t)strtol(args[1], NULL, 10))->offset =
        strtoll(args[2], NULL, 10);
    rd_kafka_DeleteRecords_t *d = rd_kafka_DeleteRecords_new(list);
    rd_kafka_DeleteRecords(rk, &d, 1, NULL, queue);
    rd_kafka_event_t *ev = answer(args[0]);
    const rd_kafka_topic_partition_list_t *done = rd_kafka_DeleteRecords_result_offsets(
        rd_kafka_event_DeleteRecords_result(ev));
    for (int i = 0; i < done->cnt; i++)
        if (done->elems[i].err)
            die(args[0], rd_kafka_err2str(done->elems[i].err));
    rd_kafka_event_destroy(ev);
    rd_kafka_DeleteRecords_destroy(d);
    rd_kafka_topic_partition_list_destroy(list);
}

int main(int argc, char **argv)
{
    if (argc < 4)
        die("usage", "ktopic BOOTSTRAP create|set|delete|grow|trim TOPIC ...");
    connect_broker(argv[1]);
    if (strcmp(argv[2], "create") == 0)
        create(argv + 3, argc - 3);
    else if (strcmp(argv[2], "set") == 0)
        set(argv + 3, argc - 3);
    else if (strcmp(argv[2], "delete") == 0)
        delete (argv + 3, argc - 3);
    else if (strcmp(argv[2], "grow") == 0)
        grow(argv + 3, argc - 3);
    else if (strcmp(argv[2], "trim") == 0)
        trim(argv + 3, argc - 3);
    else
        die(argv[2], "not understood");
    rd_kafka_queue_destroy(queue);
    rd_kafka_destroy(rk);
    return 0;
}
