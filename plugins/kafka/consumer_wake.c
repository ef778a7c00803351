/*
 * librdkafka stops fetching when as much waits in it as queued.max.messages.kbytes says, and before
 * version 2.2 (fetch.queue.backoff.ms) it looks again only when the broker's thread wakes up
 * anyhow: once a second. So either the records of a second wait in memory, or a fast sink waits for
 * the clock. Any request wakes the thread of its broker (rd_kafka_broker_consumer_serve() in
 * rdkafka_broker.c). So whenever some of what waited is taken, the brokers that it came from are
 * asked for the end of a partition, and nobody waits for the answer.
 */
#include "source.h"

#include <inttypes.h>

#define WAKE_BYTES   ((size_t)1 << 20)
#define WAKE_RECORDS 20000 /* small ones are bounded by queued.min.messages */

static void forget(struct kafka_wake *w)
{
    if (w->list)
        rd_kafka_topic_partition_list_destroy(w->list);
    w->list = NULL;
    w->n = w->bytes = w->records = 0;
}

void kafka_wake_end(struct kafka_wake *w)
{
    if (w->times)
        cdcd_debug("kafka", "librdkafka was woken %" PRIu64 " times to fetch", w->times);
    forget(w);
    w->times = 0;
}

/* Remembers its broker, once. */
static void note_broker(struct kafka_wake *w, const rd_kafka_message_t *m)
{
    int32_t id = rd_kafka_message_broker_id(m);
    for (size_t i = 0; i < w->n; i++)
        if (w->brokers[i] == id)
            return;
    if (w->n == KAFKA_WAKE_BROKERS)
        return;
    if (!w->list)
        w->list = rd_kafka_topic_partition_list_new(KAFKA_WAKE_BROKERS);
    rd_kafka_topic_partition_list_add(w->list, rd_kafka_topic_name(m->rkt), m->partition)->offset =
        RD_KAFKA_OFFSET_END;
    w->brokers[w->n++] = id;
}

void kafka_wake_taken(struct cdcd_source *s, const rd_kafka_message_t *m)
{
    struct kafka_wake *w = &s->wake;
    if (!s->link.sleeps)
        return;
    note_broker(w, m);
    w->bytes += m->len + m->key_len;
    if (++w->records < WAKE_RECORDS && w->bytes < WAKE_BYTES)
        return;
    (void)rd_kafka_offsets_for_times(s->rk, w->list, 0); /* it has timed out, of course */
    forget(w);
    w->times++;
}
