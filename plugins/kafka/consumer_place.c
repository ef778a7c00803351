/*
 * Where a partition is read from: what is known of it (the position that the sink holds, or what
 * the group was told) against what the broker has. Reading begins at the newest record that was
 * read, where there is one: it must be the same record, or the topic is another one of the same
 * name. Kafka's ids of topics would tell too, but clients of librdkafka 2.0 do not get them.
 */
#include "source.h"

#include <inttypes.h>
#include <stdlib.h>
#include <time.h>

#define ASK_MS     10000
#define BEHIND_MS  5000 /* how long a new leader may show an end that is behind */
#define BEHIND_NAP 200

static enum cdcd_rc ask(struct cdcd_source *s, rd_kafka_topic_partition_list_t *list,
                        struct cdcd_error *err)
{
    rd_kafka_resp_err_t code = RD_KAFKA_RESP_ERR_NO_ERROR;
    if (list->cnt)
        code = rd_kafka_offsets_for_times(s->rk, list, ASK_MS);
    for (int i = 0; !code && i < list->cnt; i++)
        code = list->elems[i].err;
    if (code)
        return kafka_fail(&s->link, err, code, NULL, "looking up offsets");
    return CDCD_OK;
}

enum cdcd_rc kafka_ranges(struct cdcd_source *s, const rd_kafka_topic_partition_list_t *list,
                          struct kafka_range **out, struct cdcd_error *err)
{
    struct kafka_range *ranges = cdcd_xcalloc((size_t)list->cnt + 1, sizeof *ranges);
    enum cdcd_rc rc = CDCD_OK;
    /* The two numbers stand for the ends of the log in this request, as in Kafka's protocol. */
    for (int which = 0; rc == CDCD_OK && which < 2; which++) {
        rd_kafka_topic_partition_list_t *l = rd_kafka_topic_partition_list_copy(list);
        for (int i = 0; i < l->cnt; i++)
            l->elems[i].offset = which ? RD_KAFKA_OFFSET_END : RD_KAFKA_OFFSET_BEGINNING;
        rc = ask(s, l, err);
        for (int i = 0; rc == CDCD_OK && i < l->cnt; i++)
            *(which ? &ranges[i].end : &ranges[i].begin) = l->elems[i].offset;
        rd_kafka_topic_partition_list_destroy(l);
    }
    *out = rc == CDCD_OK ? ranges : NULL;
    if (rc != CDCD_OK)
        free(ranges);
    return rc;
}

static const char *const anew = "build the target anew (cdcd replay), or begin with another "
                                "source.kafka.group.id and an empty target";

enum cdcd_rc kafka_other_topic(struct cdcd_source *s, const char *topic, int32_t partition,
                               struct cdcd_error *err)
{
    (void)s;
    return cdcd_error_set(err, CDCD_ERR_LOSS,
                          "topic %s, partition %d was made anew: the record at the offset that was "
                          "read last is another one. %s",
                          topic, (int)partition, anew);
}

/* Where the partition is read from, or LOSS. *early: the end is before the position. */
static enum cdcd_rc place_one(const rd_kafka_topic_partition_t *tp, struct kafka_part *p,
                              const struct kafka_range *range, bool *early, int64_t *from,
                              struct cdcd_error *err)
{
    *early = false;
    if (p->read.next < 0) {
        p->read = kafka_no_mark;
        p->read.next = *from = range->begin;
        p->verify = false;
        return CDCD_OK;
    }
    if (p->read.next < range->begin)
        return cdcd_error_set(err, CDCD_ERR_LOSS,
                              "topic %s, partition %d: records from offset %" PRId64 " to %" PRId64
                              " were deleted before they were read (retention). %s",
                              tp->topic, (int)tp->partition, p->read.next, range->begin, anew);
    if (p->read.next > range->end) {
        *early = true;
        return cdcd_error_set(err, CDCD_ERR_LOSS,
                              "topic %s, partition %d was read up to offset %" PRId64
                              ", but ends at %" PRId64 ": it was made anew, or the cluster lost "
                              "records. %s",
                              tp->topic, (int)tp->partition, p->read.next, range->end, anew);
    }
    p->verify = p->read.last >= range->begin;
    *from = p->verify ? p->read.last : p->read.next;
    return CDCD_OK;
}

static enum cdcd_rc place_all(struct cdcd_source *s, rd_kafka_topic_partition_list_t *list,
                              bool *early, struct cdcd_error *err)
{
    struct kafka_range *ranges;
    *early = false;
    enum cdcd_rc rc = kafka_ranges(s, list, &ranges, err);
    if (rc != CDCD_OK)
        return rc;
    for (int i = 0; rc == CDCD_OK && i < list->cnt; i++) {
        rd_kafka_topic_partition_t *tp = &list->elems[i];
        rc = place_one(tp, kafka_offsets_part(&s->offsets, tp->topic, tp->partition), &ranges[i],
                       early, &tp->offset, err);
    }
    free(ranges);
    return rc;
}

enum cdcd_rc kafka_place(struct cdcd_source *s, rd_kafka_topic_partition_list_t *list,
                         struct cdcd_error *err)
{
    int64_t give_up = cdcd_now_ms() + BEHIND_MS;
    const struct timespec nap = {0, BEHIND_NAP * 1000000L};
    for (;;) {
        bool early;
        enum cdcd_rc rc = place_all(s, list, &early, err);
        if (rc == CDCD_OK || !early || cdcd_now_ms() > give_up || kafka_source_stopping(s))
            return rc;
        nanosleep(&nap, NULL);
    }
}
