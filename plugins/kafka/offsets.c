/*
 * Positions: how far each partition was read. As JSON they are what a sink stores, what comes back
 * in ack, and what `cdcd replay --from` takes:
 *
 *   {"topics":{"shop.public.orders":{"0":[17,15,1700000000000]}}}
 *
 * The first number is the next offset to read. The others are offset and timestamp of the newest
 * record before it (-1: none yet): when the topic still has a record there, it must be that one.
 */
#include "source.h"

#include <cdcd/jsonscan.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#define MAX_PARTITIONS 1000000
#define DESCRIBED      4

const struct kafka_mark kafka_no_mark = {KAFKA_NO_OFFSET, KAFKA_NO_OFFSET, -1};

/* ---- the table ---- */

static void parts_free(struct kafka_parts *t)
{
    free(t->topic);
    free(t->items);
    free(t);
}

void kafka_offsets_free(struct kafka_offsets *o)
{
    for (size_t i = 0; i < o->n; i++)
        parts_free(o->topics[i]);
    free(o->topics);
    *o = (struct kafka_offsets){0};
}

/* Its place, or where it would be. */
static size_t place_of(const struct kafka_offsets *o, const char *topic, bool *there)
{
    size_t low = 0, high = o->n;
    *there = false;
    while (low < high) {
        size_t mid = low + (high - low) / 2;
        int order = strcmp(topic, o->topics[mid]->topic);
        if (order == 0) {
            *there = true;
            return mid;
        }
        if (order < 0)
            high = mid;
        else
            low = mid + 1;
    }
    return low;
}

struct kafka_parts *kafka_offsets_find(const struct kafka_offsets *o, const char *topic)
{
    bool there;
    size_t at = place_of(o, topic, &there);
    return there ? o->topics[at] : NULL;
}

static struct kafka_parts *topic_of(struct kafka_offsets *o, const char *topic)
{
    bool there;
    size_t at = place_of(o, topic, &there);
    if (there)
        return o->topics[at];
    if (o->n == o->cap) {
        o->cap = o->cap ? 2 * o->cap : 16;
        o->topics = cdcd_xrealloc(o->topics, o->cap * sizeof *o->topics);
    }
    memmove(o->topics + at + 1, o->topics + at, (o->n - at) * sizeof *o->topics);
    o->n++;
    o->topics[at] = cdcd_xcalloc(1, sizeof **o->topics);
    o->topics[at]->topic = cdcd_xstrdup(topic);
    return o->topics[at];
}

struct kafka_part *kafka_offsets_part(struct kafka_offsets *o, const char *topic, int32_t partition)
{
    struct kafka_parts *t = topic_of(o, topic);
    if (partition >= t->n) {
        size_t n = (size_t)partition + 1;
        t->items = cdcd_xrealloc(t->items, n * sizeof *t->items);
        for (size_t i = (size_t)t->n; i < n; i++)
            t->items[i] = (struct kafka_part){.read = kafka_no_mark,
                                              .held = kafka_no_mark,
                                              .pushed = KAFKA_NO_OFFSET,
                                              .committed = KAFKA_NO_OFFSET,
                                              .begin = KAFKA_NO_OFFSET,
                                              .end = KAFKA_NO_OFFSET};
        t->n = partition + 1;
    }
    return &t->items[partition];
}

void kafka_offsets_forget(struct kafka_offsets *o, const char *topic)
{
    bool there;
    size_t at = place_of(o, topic, &there);
    if (!there)
        return;
    parts_free(o->topics[at]);
    o->n--;
    memmove(o->topics + at, o->topics + at + 1, (o->n - at) * sizeof *o->topics);
}

/* ---- as JSON ---- */

/* A topic's name has no character that JSON escapes. */
static void write_parts(const struct kafka_parts *t, bool *first, struct cdcd_buf *out)
{
    bool opened = false;
    for (int32_t i = 0; i < t->n; i++) {
        const struct kafka_part *p = &t->items[i];
        if (!p->known || p->read.next < 0)
            continue;
        if (!opened)
            cdcd_buf_addf(out, "%s\"%s\":{", *first ? "" : ",", t->topic);
        cdcd_buf_addf(out, "%s\"%d\":[%" PRId64 ",%" PRId64 ",%" PRId64 "]", opened ? "," : "",
                      (int)i, p->read.next, p->read.last, p->read.last_ms);
        opened = true;
    }
    if (!opened)
        return;
    *first = false;
    cdcd_buf_adds(out, "}");
}

void kafka_offsets_write(const struct kafka_offsets *o, struct cdcd_buf *out)
{
    bool first = true;
    cdcd_buf_adds(out, "{\"topics\":{");
    for (size_t i = 0; i < o->n; i++)
        write_parts(o->topics[i], &first, out);
    cdcd_buf_adds(out, "}}");
}

static bool parse_mark(const struct cdcd_json_value *v, struct kafka_mark *out)
{
    struct cdcd_json_iter it;
    struct cdcd_json_value number;
    int64_t n[3] = {KAFKA_NO_OFFSET, KAFKA_NO_OFFSET, -1};
    size_t count = 0;
    if (v->kind == CDCD_JSON_NUMBER) { /* written by hand: the offset alone */
        *out = kafka_no_mark;
        return cdcd_json_int64(v, &out->next) && out->next >= 0;
    }
    if (v->kind != CDCD_JSON_ARRAY)
        return false;
    cdcd_json_iter_init(&it, v);
    while (cdcd_json_iter_next(&it, NULL, &number)) {
        if (count == 3 || number.kind != CDCD_JSON_NUMBER || !cdcd_json_int64(&number, &n[count]))
            return false;
        count++;
    }
    *out = (struct kafka_mark){n[0], n[1], n[2]};
    return count > 0 && n[0] >= 0 && n[1] < n[0];
}

static bool parse_number(struct cdcd_slice quoted, int32_t *out)
{
    int64_t n = 0;
    if (quoted.len < 3 || quoted.len > 9)
        return false;
    for (size_t i = 1; i + 1 < quoted.len; i++) {
        if (quoted.ptr[i] < '0' || quoted.ptr[i] > '9')
            return false;
        n = n * 10 + (quoted.ptr[i] - '0');
    }
    *out = (int32_t)n;
    return n < MAX_PARTITIONS;
}

static bool parse_parts(const char *topic, const struct cdcd_json_value *v, kafka_offsets_fn *fn,
                        void *ctx)
{
    struct cdcd_json_iter it;
    struct cdcd_json_value name, value;
    if (v->kind != CDCD_JSON_OBJECT)
        return false;
    cdcd_json_iter_init(&it, v);
    while (cdcd_json_iter_next(&it, &name, &value)) {
        struct kafka_mark mark;
        int32_t partition;
        if (!parse_number(name.raw, &partition) || !parse_mark(&value, &mark))
            return false;
        fn(ctx, topic, partition, &mark);
    }
    return true;
}

bool kafka_offsets_parse(struct cdcd_slice text, kafka_offsets_fn *fn, void *ctx)
{
    struct cdcd_json_value all, topics, name, value;
    struct cdcd_json_iter it;
    char topic[256];
    if (!text.ptr || !cdcd_json_scan(text, &all) || all.kind != CDCD_JSON_OBJECT ||
        !cdcd_json_member(&all, "topics", &topics) || topics.kind != CDCD_JSON_OBJECT)
        return false;
    cdcd_json_iter_init(&it, &topics);
    while (cdcd_json_iter_next(&it, &name, &value)) {
        size_t len = name.raw.len - 2;
        if (name.escaped || len == 0 || len >= sizeof topic)
            return false;
        memcpy(topic, name.raw.ptr + 1, len);
        topic[len] = 0;
        if (!parse_parts(topic, &value, fn, ctx))
            return false;
    }
    return true;
}

/* ---- for people ---- */

struct description {
    struct cdcd_buf *out;
    size_t n;
    int64_t offsets;
};

static void describe_part(void *ctx, const char *topic, int32_t partition,
                          const struct kafka_mark *mark)
{
    struct description *d = ctx;
    if (d->n++ < DESCRIBED)
        cdcd_buf_addf(d->out, "%s%s/%d@%" PRId64, d->n > 1 ? ", " : "", topic, (int)partition,
                      mark->next);
    d->offsets += mark->next;
}

void kafka_offsets_describe(struct cdcd_slice position, struct cdcd_buf *out)
{
    struct description d = {.out = out};
    size_t before = out->len;
    if (!kafka_offsets_parse(position, describe_part, &d)) {
        out->len = before;
        cdcd_buf_add(out, position.ptr, position.len);
    } else if (d.n == 0) {
        cdcd_buf_adds(out, "where the consumer group stands");
    } else if (d.n > DESCRIBED) {
        out->len = before;
        cdcd_buf_addf(out, "%zu partitions, offsets %" PRId64 " in all", d.n, d.offsets);
    }
}
