/*
 * The source's notes: a compacted topic of one partition, made when there are any. Unlike the
 * position topic it is read whole at each load; it grows with what changes in the notes, not with
 * commits.
 *
 *   key:    PIPELINE/SET/NOTE   SET in 20 digits, NOTE the note's own key
 *   value:  "+" and the note's value, or "-": the note is forgotten
 *
 * Changes are written in sets, numbered upwards, before the position that needs them; its header
 * cdcd.notes says which set was the last one, and how many notes there then are. Records of later
 * sets do not count: without transactions they may be left behind by a crash. Of a note the
 * record of the latest set that counts is the note. Records that count no more get tombstones at
 * the start of the next set, when the position that outdated them is durable, those of early sets
 * first. So whatever of it a crash leaves behind, what is read belongs to the position.
 */
#include "kafka.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

void kafka_notes_init(struct kafka_notes *n)
{
    *n = (struct kafka_notes){
        .changed = cdcd_notes_new(), .live = cdcd_notes_new(), .garbage = cdcd_notes_new()};
}

void kafka_notes_free(struct kafka_notes *n)
{
    cdcd_notes_free(n->changed);
    cdcd_notes_free(n->live);
    cdcd_notes_free(n->garbage);
}

void kafka_notes_clear(struct kafka_notes *n)
{
    struct kafka_notes was = *n;
    cdcd_notes_clear(was.changed);
    cdcd_notes_clear(was.live);
    cdcd_notes_clear(was.garbage);
    *n = (struct kafka_notes){.changed = was.changed, .live = was.live, .garbage = was.garbage};
}

/* ---- what changes ---- */

void kafka_notes_change(struct cdcd_notes **to, const struct cdcd_batch *b)
{
    struct cdcd_buf value;
    if (b->notes && !*to)
        *to = cdcd_notes_new();
    cdcd_buf_init(&value, 0);
    for (const struct cdcd_note *n = b->notes; n; n = n->next) {
        cdcd_buf_clear(&value);
        cdcd_buf_add(&value, n->value.ptr ? "+" : "-", 1);
        cdcd_buf_add(&value, n->value.ptr ? n->value.ptr : "", n->value.len);
        cdcd_notes_set(*to, n->key, cdcd_buf_slice(&value));
    }
    cdcd_buf_free(&value);
}

void kafka_notes_add(struct kafka_notes *n, const struct cdcd_notes *changed)
{
    struct cdcd_slice key, value;
    for (size_t i = 0; i < cdcd_notes_count(changed); i++) {
        cdcd_notes_at(changed, i, &key, &value);
        cdcd_notes_set(n->changed, key, value);
    }
}

/* ---- keys of records ---- */

#define SET_DIGITS 20

static void put_key(struct cdcd_buf *to, const struct cdcd_sink *s, uint64_t set,
                    struct cdcd_slice note)
{
    cdcd_buf_clear(to);
    cdcd_buf_addf(to, "%s/%020" PRIu64 "/", s->env->pipeline, set);
    cdcd_buf_add(to, note.ptr, note.len);
}

/* False: the key is another pipeline's. */
static bool split_key(const struct cdcd_sink *s, struct cdcd_slice key, uint64_t *set,
                      struct cdcd_slice *note)
{
    size_t n = strlen(s->env->pipeline), end = n + 1 + SET_DIGITS;
    if (key.len <= end + 1 || memcmp(key.ptr, s->env->pipeline, n) != 0 || key.ptr[n] != '/' ||
        key.ptr[end] != '/')
        return false;
    *set = 0;
    for (size_t i = n + 1; i < end; i++) {
        if (key.ptr[i] < '0' || key.ptr[i] > '9')
            return false;
        *set = *set * 10 + (uint64_t)(key.ptr[i] - '0');
    }
    *note = (struct cdcd_slice){key.ptr + end + 1, key.len - end - 1};
    return true;
}

static const struct cdcd_slice nothing = {NULL, 0};

/* The record counts no more. */
static void discard(struct cdcd_sink *s, uint64_t set, struct cdcd_slice note)
{
    struct cdcd_buf key;
    cdcd_buf_init(&key, 0);
    put_key(&key, s, set, note);
    cdcd_notes_set(s->notes.garbage, cdcd_buf_slice(&key), cdcd_slice_str(""));
    cdcd_buf_free(&key);
}

static uint64_t set_of(const struct cdcd_notes *live, struct cdcd_slice note)
{
    struct cdcd_slice text = cdcd_notes_get(live, note);
    return text.ptr ? strtoull(text.ptr, NULL, 10) : 0;
}

static void set_live(struct cdcd_notes *live, struct cdcd_slice note, uint64_t set)
{
    char text[32];
    int n = snprintf(text, sizeof text, "%" PRIu64, set);
    cdcd_notes_set(live, note, (struct cdcd_slice){text, (size_t)n});
}

/* ---- reading ---- */

struct all {
    const struct cdcd_sink *s;
    struct cdcd_notes *records; /* of this pipeline, by the key of the record */
};

static bool take_note(void *ctx, const rd_kafka_message_t *m)
{
    struct all *a = ctx;
    struct cdcd_slice key = {m->key, m->key_len}, note, value = {m->payload, m->len};
    uint64_t set;
    if (m->key && split_key(a->s, key, &set, &note))
        cdcd_notes_set(a->records, key, m->payload ? value : nothing);
    return false;
}

/* One record of those that are there, in any order. */
static void count_record(struct cdcd_sink *s, const struct kafka_held *held, struct cdcd_slice key,
                         struct cdcd_slice value, struct cdcd_notes *out)
{
    struct kafka_notes *n = &s->notes;
    struct cdcd_slice note;
    uint64_t set, other;
    split_key(s, key, &set, &note);
    if (set > n->highest)
        n->highest = set;
    other = set_of(n->live, note);
    if (set > held->set || set < other) {
        discard(s, set, note);
        return;
    }
    if (other)
        discard(s, other, note);
    set_live(n->live, note, set);
    cdcd_notes_set(out, note, value);
}

/* Notes that were forgotten leave a record until the next set. */
static void drop_forgotten(struct cdcd_sink *s, struct cdcd_notes *out)
{
    for (size_t i = cdcd_notes_count(out); i-- > 0;) {
        struct cdcd_slice note, value;
        cdcd_notes_at(out, i, &note, &value);
        if (value.len && value.ptr[0] == '+') {
            char *text = cdcd_xstrndup(value.ptr + 1, value.len - 1);
            cdcd_notes_set(out, note, (struct cdcd_slice){text, value.len - 1});
            free(text);
            continue;
        }
        discard(s, set_of(s->notes.live, note), note);
        cdcd_notes_set(s->notes.live, note, nothing);
        cdcd_notes_set(out, note, nothing);
    }
}

enum cdcd_rc kafka_notes_read(struct cdcd_sink *s, const struct kafka_held *held,
                              struct cdcd_notes *out, struct cdcd_error *err)
{
    struct all all = {s, cdcd_notes_new()};
    const struct kafka_reading what = {.topic = s->notes_name,
                                       .there = held->set > 0,
                                       .needed_by = s->position_name,
                                       .gone = "the source's notes are lost",
                                       .whole = true,
                                       .ctx = &all,
                                       .take = take_note};
    cdcd_notes_clear(out);
    enum cdcd_rc rc = kafka_read(&s->link, &what, err);
    for (size_t i = 0; rc == CDCD_OK && i < cdcd_notes_count(all.records); i++) {
        struct cdcd_slice key, value;
        cdcd_notes_at(all.records, i, &key, &value);
        count_record(s, held, key, value, out);
    }
    cdcd_notes_free(all.records);
    if (rc != CDCD_OK)
        return rc;
    drop_forgotten(s, out);
    s->notes.set = held->set;
    if (s->notes.highest < held->set)
        s->notes.highest = held->set;
    if (cdcd_notes_count(out) != held->live)
        return cdcd_error_set(err, CDCD_ERR_LOSS,
                              "topic %s holds %zu notes of the source, but the position in %s was "
                              "written with %" PRIu64 ": it was deleted or truncated; bring it "
                              "back, or delete both topics to begin with a new snapshot",
                              s->notes_name, cdcd_notes_count(out), s->position_name, held->live);
    return CDCD_OK;
}

/* ---- writing ---- */

static enum cdcd_rc produce(struct cdcd_sink *s, struct cdcd_slice key, struct cdcd_slice value,
                            struct cdcd_error *err)
{
    rd_kafka_vu_t vu[] = {
        {.vtype = RD_KAFKA_VTYPE_RKT, .u.rkt = s->notes_topic.rkt},
        {.vtype = RD_KAFKA_VTYPE_PARTITION, .u.i32 = 0},
        {.vtype = RD_KAFKA_VTYPE_MSGFLAGS, .u.i = RD_KAFKA_MSG_F_COPY},
        {.vtype = RD_KAFKA_VTYPE_KEY, .u.mem = {(void *)(uintptr_t)key.ptr, key.len}},
        {.vtype = RD_KAFKA_VTYPE_VALUE, .u.mem = {(void *)(uintptr_t)value.ptr, value.len}},
        {.vtype = RD_KAFKA_VTYPE_OPAQUE, .u.ptr = &s->notes},
    };
    rd_kafka_error_t *e = rd_kafka_produceva(s->rk, vu, sizeof vu / sizeof *vu);
    if (!e) {
        s->in_flight++;
        s->notes.in_flight++;
        kafka_in_flight(s, &s->notes_topic, (int64_t)(key.len + value.len));
        return CDCD_OK;
    }
    rd_kafka_resp_err_t code = rd_kafka_error_code(e);
    enum cdcd_rc rc = CDCD_AGAIN;
    if (code != RD_KAFKA_RESP_ERR__QUEUE_FULL)
        rc = kafka_fail(&s->link, err, code, rd_kafka_error_string(e),
                        "writing a note of the source to topic %s", s->notes_name);
    rd_kafka_error_destroy(e);
    return rc;
}

/* The i-th of garbage and changes. */
static enum cdcd_rc produce_at(struct cdcd_sink *s, size_t i, struct cdcd_buf *scratch,
                               struct cdcd_error *err)
{
    const struct kafka_notes *n = &s->notes;
    size_t old = cdcd_notes_count(n->garbage);
    struct cdcd_slice key, value;
    if (i < old) {
        cdcd_notes_at(n->garbage, i, &key, &value);
        return produce(s, key, nothing, err);
    }
    cdcd_notes_at(n->changed, i - old, &key, &value);
    put_key(scratch, s, n->highest + 1, key);
    return produce(s, cdcd_buf_slice(scratch), value, err);
}

/* The set is on its way; the next position will tell its number. */
static void set_done(struct cdcd_sink *s)
{
    struct kafka_notes *n = &s->notes;
    struct cdcd_slice note, value;
    n->set = ++n->highest;
    cdcd_notes_clear(n->garbage);
    for (size_t i = 0; i < cdcd_notes_count(n->changed); i++) {
        cdcd_notes_at(n->changed, i, &note, &value);
        uint64_t other = set_of(n->live, note);
        if (other)
            discard(s, other, note);
        if (value.ptr[0] == '+') {
            set_live(n->live, note, n->set);
        } else {
            discard(s, n->set, note);
            cdcd_notes_set(n->live, note, nothing);
        }
    }
    cdcd_notes_clear(n->changed);
}

enum cdcd_rc kafka_notes_produce(struct cdcd_sink *s, struct cdcd_error *err)
{
    struct kafka_notes *n = &s->notes;
    struct kafka_topic *topic = &s->notes_topic;
    struct cdcd_buf scratch;
    enum cdcd_rc rc = CDCD_OK;
    size_t count = cdcd_notes_count(n->garbage) + cdcd_notes_count(n->changed);
    if (!cdcd_notes_count(n->changed))
        goto confirmed;
    if (topic->generation != s->generation && kafka_topics_ready(s, &topic, 1, err) != CDCD_OK)
        return CDCD_ERROR;
    n->sending = true;
    cdcd_buf_init(&scratch, 0);
    while (rc == CDCD_OK && n->at < count) {
        rc = produce_at(s, n->at, &scratch, err);
        if (rc == CDCD_OK)
            n->at++;
    }
    cdcd_buf_free(&scratch);
    if (rc != CDCD_OK)
        return rc;
    n->at = 0;
    set_done(s);
confirmed:
    /* In a transaction nothing is visible before all is. */
    return s->config->delivery != CDCD_EXACTLY_ONCE && n->in_flight > 0 ? CDCD_AGAIN : CDCD_OK;
}
