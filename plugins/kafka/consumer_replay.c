/*
 * Reading topics from a place to an end, without a group: cdcd replay. The end is fixed at the
 * start. Where there is a position (an earlier run was stopped) its partitions go on from there.
 */
#include "source.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define ASK_MS      15000
#define MIN_TIME_MS INT64_C(1000000000000) /* a number from here on is a time: September 2001 */

/* ---- what --from and --to may be ---- */

enum bound_kind { BOUND_NONE, BOUND_OFFSET, BOUND_TIME, BOUND_POSITION };

struct bound {
    enum bound_kind kind;
    int64_t number;
    struct cdcd_slice position;
};

static bool parse_digits(const char *text, int64_t *out)
{
    char *end;
    if (!isdigit((unsigned char)*text) || strlen(text) > 18)
        return false;
    *out = strtoll(text, &end, 10);
    return !*end;
}

/* "Z", "+01:00", "-0530" or nothing, which is UTC. */
static bool parse_zone(const char *p, int64_t *seconds)
{
    int hours, minutes, n = 0;
    *seconds = 0;
    if (!*p || strcmp(p, "Z") == 0 || strcmp(p, "z") == 0)
        return true;
    if ((*p != '+' && *p != '-') || !isdigit((unsigned char)p[1]))
        return false;
    if ((sscanf(p + 1, "%2d:%2d%n", &hours, &minutes, &n) != 2 &&
         sscanf(p + 1, "%2d%2d%n", &hours, &minutes, &n) != 2) ||
        p[1 + n] || hours > 18 || minutes > 59)
        return false;
    *seconds = (hours * 60 + minutes) * 60 * (*p == '-' ? -1 : 1);
    return true;
}

bool kafka_parse_time(const char *text, int64_t *ms)
{
    struct tm tm = {0};
    int64_t zone, number;
    int n = 0, digits = 0;
    if (parse_digits(text, &number)) {
        *ms = number;
        return number >= MIN_TIME_MS;
    }
    if (sscanf(text, "%4d-%2d-%2d%n", &tm.tm_year, &tm.tm_mon, &tm.tm_mday, &n) != 3 || n != 10)
        return false;
    const char *p = text + n;
    *ms = 0;
    if (*p == 'T' || *p == 't' || *p == ' ') {
        if (sscanf(p + 1, "%2d:%2d%n", &tm.tm_hour, &tm.tm_min, &n) != 2 || n != 5)
            return false;
        p += 1 + n;
        if (*p == ':' && (sscanf(p + 1, "%2d%n", &tm.tm_sec, &n) != 1 || n != 2))
            return false;
        p += *p == ':' ? 3 : 0;
        if (*p == '.') {
            for (p++; isdigit((unsigned char)*p); p++, digits++)
                *ms = digits < 3 ? *ms * 10 + (*p - '0') : *ms;
            for (int i = digits; digits && i < 3; i++)
                *ms *= 10;
        }
    }
    if (tm.tm_mon < 1 || tm.tm_mon > 12 || tm.tm_mday < 1 || tm.tm_mday > 31 || tm.tm_hour > 23 ||
        tm.tm_min > 59 || tm.tm_sec > 60 || !parse_zone(p, &zone))
        return false;
    tm.tm_year -= 1900;
    tm.tm_mon -= 1;
    *ms += ((int64_t)timegm(&tm) - zone) * 1000;
    return true;
}

static void ignore_part(void *ctx, const char *topic, int32_t partition,
                        const struct kafka_mark *mark)
{
    (void)ctx, (void)topic, (void)partition, (void)mark;
}

static bool parse_bound(const char *text, struct bound *out)
{
    *out = (struct bound){0};
    if (!text || !*text || strcmp(text, "beginning") == 0)
        return true;
    if (parse_digits(text, &out->number) && out->number < MIN_TIME_MS) {
        out->kind = BOUND_OFFSET;
        return true;
    }
    if (*text == '{') {
        out->kind = BOUND_POSITION;
        out->position = cdcd_slice_str(text);
        return kafka_offsets_parse(out->position, ignore_part, NULL);
    }
    out->kind = BOUND_TIME;
    return kafka_parse_time(text, &out->number);
}

enum cdcd_rc kafka_replay_valid(const char *text, const char *option, struct cdcd_error *err)
{
    struct bound b;
    if (parse_bound(text, &b))
        return CDCD_OK;
    return cdcd_error_set(err, CDCD_ERR_CONFIG,
                          "%s %s is neither an offset (17), nor a time (2024-05-01T12:00:00Z, or "
                          "milliseconds since 1970), nor a position ({\"topics\":{\"shop.orders\":"
                          "{\"0\":17}}})",
                          option, text);
}

/* ---- which partitions, from where, to where ---- */

static rd_kafka_topic_partition_list_t *all_partitions(struct cdcd_source *s,
                                                       const struct rd_kafka_metadata *md)
{
    rd_kafka_topic_partition_list_t *list = rd_kafka_topic_partition_list_new(16);
    for (int i = 0; i < md->topic_cnt; i++) {
        const char *name = md->topics[i].topic;
        if (!kafka_find_topic(md, name) || !kafka_source_matches(s, name))
            continue;
        for (int k = 0; k < md->topics[i].partition_cnt; k++) {
            rd_kafka_topic_partition_list_add(list, name, md->topics[i].partitions[k].id);
            kafka_offsets_part(&s->offsets, name, md->topics[i].partitions[k].id);
        }
    }
    return list;
}

static struct kafka_part *part_at(struct cdcd_source *s, const rd_kafka_topic_partition_list_t *l,
                                  int i)
{
    return kafka_offsets_part(&s->offsets, l->elems[i].topic, l->elems[i].partition);
}

struct from_position {
    const rd_kafka_topic_partition_list_t *list;
    int64_t *out;
};

static void take_bound(void *ctx, const char *topic, int32_t partition,
                       const struct kafka_mark *mark)
{
    struct from_position *f = ctx;
    for (int i = 0; i < f->list->cnt; i++)
        if (f->list->elems[i].partition == partition && strcmp(f->list->elems[i].topic, topic) == 0)
            f->out[i] = mark->next;
}

/* The offset of the first record at or after the time; the end when there is none. */
static enum cdcd_rc by_time(struct cdcd_source *s, const rd_kafka_topic_partition_list_t *list,
                            int64_t ms, int64_t *out, struct cdcd_error *err)
{
    rd_kafka_topic_partition_list_t *l = rd_kafka_topic_partition_list_copy(list);
    for (int i = 0; i < l->cnt; i++)
        l->elems[i].offset = ms;
    rd_kafka_resp_err_t code = rd_kafka_offsets_for_times(s->rk, l, ASK_MS);
    for (int i = 0; i < l->cnt && !code; i++) {
        code = l->elems[i].err;
        out[i] = l->elems[i].offset >= 0 ? l->elems[i].offset : INT64_MAX;
    }
    rd_kafka_topic_partition_list_destroy(l);
    return code ? kafka_fail(&s->link, err, code, NULL, "looking up offsets by time") : CDCD_OK;
}

/* One offset a partition, within what there is. */
static enum cdcd_rc resolve(struct cdcd_source *s, const rd_kafka_topic_partition_list_t *list,
                            const struct kafka_range *ranges, const char *text, bool end,
                            int64_t *out, struct cdcd_error *err)
{
    struct bound b;
    enum cdcd_rc rc = CDCD_OK;
    if (!parse_bound(text, &b))
        return kafka_replay_valid(text, end ? "--to" : "--from", err);
    for (int i = 0; i < list->cnt; i++)
        out[i] = b.kind == BOUND_OFFSET ? b.number
                 : b.kind == BOUND_NONE ? (end ? INT64_MAX : 0)
                                        : 0; /* a position without it: nothing of it, or all */
    if (b.kind == BOUND_TIME)
        rc = by_time(s, list, b.number, out, err);
    if (b.kind == BOUND_POSITION)
        kafka_offsets_parse(b.position, take_bound, &(struct from_position){list, out});
    for (int i = 0; i < list->cnt; i++) {
        out[i] = out[i] < ranges[i].begin ? ranges[i].begin : out[i];
        out[i] = out[i] > ranges[i].end ? ranges[i].end : out[i];
    }
    return rc;
}

static enum cdcd_rc bounds(struct cdcd_source *s, const rd_kafka_topic_partition_list_t *list,
                           struct cdcd_error *err)
{
    struct kafka_range *ranges = NULL;
    int64_t *from = cdcd_xcalloc((size_t)list->cnt + 1, sizeof *from);
    int64_t *to = cdcd_xcalloc((size_t)list->cnt + 1, sizeof *to);
    enum cdcd_rc rc = kafka_ranges(s, list, &ranges, err);
    if (rc == CDCD_OK)
        rc = resolve(s, list, ranges, s->env->replay_from, false, from, err);
    if (rc == CDCD_OK)
        rc = resolve(s, list, ranges, s->env->replay_to, true, to, err);
    for (int i = 0; rc == CDCD_OK && i < list->cnt; i++) {
        struct kafka_part *p = part_at(s, list, i);
        if (!p->known || p->read.next < 0) {
            p->read = kafka_no_mark;
            p->read.next = from[i];
        }
        p->known = true;
        p->begin = from[i] < p->read.next ? from[i] : p->read.next;
        p->end = to[i];
    }
    free(ranges);
    free(from);
    free(to);
    return rc;
}

static enum cdcd_rc assign_rest(struct cdcd_source *s, rd_kafka_topic_partition_list_t *list,
                                struct cdcd_error *err)
{
    rd_kafka_topic_partition_list_t *rest = rd_kafka_topic_partition_list_new(list->cnt);
    s->to_end = list->cnt;
    s->ended = 0;
    for (int i = 0; i < list->cnt; i++) {
        struct kafka_part *p = part_at(s, list, i);
        p->ended = p->read.next >= p->end;
        s->ended += p->ended;
        if (p->ended)
            continue;
        p->assigned = true;
        s->assigned++;
        rd_kafka_topic_partition_list_add(rest, list->elems[i].topic, list->elems[i].partition)
            ->offset = list->elems[i].offset;
    }
    rd_kafka_resp_err_t code = rest->cnt ? rd_kafka_assign(s->rk, rest) : 0;
    rd_kafka_topic_partition_list_destroy(rest);
    s->position_new = true; /* also where nothing is to be read: it has come to its end */
    return code ? kafka_fail(&s->link, err, code, NULL, "beginning to read") : CDCD_OK;
}

enum cdcd_rc kafka_replay_start(struct cdcd_source *s, struct cdcd_error *err)
{
    const struct rd_kafka_metadata *md;
    uint64_t done, total;
    if (kafka_list(&s->link, s->rk, &md, err) != CDCD_OK)
        return CDCD_ERROR;
    rd_kafka_topic_partition_list_t *list = all_partitions(s, md);
    rd_kafka_metadata_destroy(md);
    enum cdcd_rc rc = CDCD_OK;
    if (list->cnt == 0)
        rc = cdcd_error_set(err, CDCD_ERR_CONFIG,
                            "no topic at %s matches source.kafka.topics: there is nothing to "
                            "replay",
                            s->config->bootstrap);
    if (rc == CDCD_OK)
        rc = bounds(s, list, err);
    if (rc == CDCD_OK)
        rc = kafka_place(s, list, err);
    if (rc == CDCD_OK)
        rc = assign_rest(s, list, err);
    if (rc == CDCD_OK) {
        kafka_replay_progress(s, &done, &total);
        cdcd_info("kafka", "replay: %d partition(s), %" PRIu64 " offsets to read", list->cnt,
                  total - done);
    }
    rd_kafka_topic_partition_list_destroy(list);
    return rc;
}

void kafka_replay_progress(struct cdcd_source *s, uint64_t *done, uint64_t *total)
{
    *done = *total = 0;
    for (size_t i = 0; i < s->offsets.n; i++)
        for (int32_t k = 0; k < s->offsets.topics[i]->n; k++) {
            const struct kafka_part *p = &s->offsets.topics[i]->items[k];
            if (p->end < 0 || p->end <= p->begin)
                continue;
            int64_t at = p->read.next < p->end ? p->read.next : p->end;
            *total += (uint64_t)(p->end - p->begin);
            *done += (uint64_t)(at - p->begin);
        }
}
