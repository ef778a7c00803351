/*
 * The consumer group: partitions come, and go when other members want them. The group's offsets
 * follow what the sink holds, never what was only read.
 *
 * A partition that is asked back is given back when the sink holds all that was read of it, so that
 * its next owner repeats nothing; but not later than REVOKE_MS, since all members wait for it. What
 * the next owner repeats then does no harm to a sink that knows versions.
 *
 * With each offset goes the newest record before it (offset and timestamp), as the commit's
 * metadata: the next owner looks whether the topic is still the same one.
 */
#include "source.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#define REVOKE_MS 30000
#define COMMIT_MS 250
#define WAIT_MS   5000
#define ASK_MS    10000
#define JOIN_MS   15000

static void fail(struct cdcd_source *s, const struct cdcd_error *err)
{
    if (!s->fault_set)
        s->fault = *err;
    s->fault_set = true;
}

/* ---- offsets ---- */

static void read_metadata(const rd_kafka_topic_partition_t *tp, struct kafka_mark *out)
{
    char text[64];
    int64_t last, ms;
    out->next = tp->offset;
    if (!tp->metadata || tp->metadata_size >= sizeof text)
        return;
    memcpy(text, tp->metadata, tp->metadata_size);
    text[tp->metadata_size] = 0;
    if (sscanf(text, "cdcd %" SCNd64 " %" SCNd64, &last, &ms) == 2 && last < tp->offset) {
        out->last = last;
        out->last_ms = ms;
    }
}

enum cdcd_rc kafka_group_committed(struct cdcd_source *s,
                                   const rd_kafka_topic_partition_list_t *list,
                                   struct kafka_mark *out, struct cdcd_error *err)
{
    rd_kafka_topic_partition_list_t *l = rd_kafka_topic_partition_list_copy(list);
    rd_kafka_resp_err_t code = RD_KAFKA_RESP_ERR_NO_ERROR;
    if (l->cnt)
        code = rd_kafka_committed(s->rk, l, ASK_MS);
    for (int i = 0; i < l->cnt; i++) {
        out[i] = kafka_no_mark;
        if (l->elems[i].err)
            code = l->elems[i].err;
        else if (l->elems[i].offset >= 0)
            read_metadata(&l->elems[i], &out[i]);
    }
    rd_kafka_topic_partition_list_destroy(l);
    if (code)
        return kafka_fail(&s->link, err, code, NULL, "reading the offsets of group %s", s->group);
    return CDCD_OK;
}

void kafka_committed(rd_kafka_t *rk, rd_kafka_resp_err_t code,
                     rd_kafka_topic_partition_list_t *list, void *opaque)
{
    struct cdcd_source *s = opaque;
    (void)rk;
    if (code == RD_KAFKA_RESP_ERR__NO_OFFSET)
        return;
    for (int i = 0; list && i < list->cnt; i++) {
        const rd_kafka_topic_partition_t *tp = &list->elems[i];
        struct kafka_parts *t = kafka_offsets_find(&s->offsets, tp->topic);
        if ((code || tp->err) && t && tp->partition < t->n)
            t->items[tp->partition].committed = KAFKA_NO_OFFSET; /* again, if it is still ours */
    }
    if (code)
        cdcd_debug("kafka", "group %s: offsets were not taken: %s", s->group,
                   rd_kafka_err2str(code));
}

static void add_commit(rd_kafka_topic_partition_list_t *list, const char *topic, int32_t partition,
                       struct kafka_part *p)
{
    char text[64];
    rd_kafka_topic_partition_t *tp = rd_kafka_topic_partition_list_add(list, topic, partition);
    tp->offset = p->held.next;
    if (p->held.last >= 0) {
        int n = snprintf(text, sizeof text, "cdcd %" PRId64 " %" PRId64, p->held.last,
                         p->held.last_ms);
        tp->metadata = rd_kafka_mem_malloc(NULL, (size_t)n + 1); /* goes with the list */
        memcpy(tp->metadata, text, (size_t)n + 1);
        tp->metadata_size = (size_t)n;
    }
    p->committed = p->held.next;
}

static rd_kafka_topic_partition_list_t *to_commit(struct cdcd_source *s)
{
    rd_kafka_topic_partition_list_t *list = rd_kafka_topic_partition_list_new(16);
    for (size_t i = 0; i < s->offsets.n; i++) {
        struct kafka_parts *t = s->offsets.topics[i];
        for (int32_t k = 0; k < t->n; k++) {
            struct kafka_part *p = &t->items[k];
            if (p->assigned && p->held.next > p->committed)
                add_commit(list, t->topic, k, p);
        }
    }
    return list;
}

static void commit_and_wait(struct cdcd_source *s, const rd_kafka_topic_partition_list_t *list)
{
    rd_kafka_queue_t *q = rd_kafka_queue_new(s->rk);
    rd_kafka_resp_err_t code = rd_kafka_commit_queue(s->rk, list, q, NULL, NULL);
    rd_kafka_event_t *ev = code ? NULL : rd_kafka_queue_poll(q, WAIT_MS);
    if (ev)
        code = rd_kafka_event_error(ev);
    else if (!code)
        code = RD_KAFKA_RESP_ERR__TIMED_OUT;
    if (code)
        cdcd_warn("kafka",
                  "group %s was not told how far this instance has come (%s): a little is read "
                  "again next time",
                  s->group, rd_kafka_err2str(code));
    if (ev)
        rd_kafka_event_destroy(ev);
    rd_kafka_queue_destroy(q);
}

void kafka_group_commit(struct cdcd_source *s, bool wait)
{
    int64_t now = cdcd_now_ms();
    if ((!wait && now - s->last_commit < COMMIT_MS) || atomic_load(&s->link.joining))
        return;
    s->last_commit = now;
    rd_kafka_topic_partition_list_t *list = to_commit(s);
    if (list->cnt && wait)
        commit_and_wait(s, list);
    else if (list->cnt && rd_kafka_commit(s->rk, list, 1) != RD_KAFKA_RESP_ERR_NO_ERROR)
        kafka_committed(s->rk, RD_KAFKA_RESP_ERR__FAIL, list, s);
    rd_kafka_topic_partition_list_destroy(list);
}

/* ---- partitions come ---- */

/* What is known of a partition that is new here: the sink's position, what this session read before
 * it was lost, and what the group was told. */
static void begin_from(struct cdcd_source *s, const rd_kafka_topic_partition_t *tp,
                       struct kafka_part *p, const struct kafka_mark *group)
{
    if (!p->known || (p->lost && group->next > p->read.next)) {
        p->read = p->held = *group;
        p->pushed = group->next;
    } else if (group->next > p->read.next) {
        cdcd_info("kafka",
                  "%s/%d: group %s is at offset %" PRId64 ", the sink of this instance at %" PRId64
                  ": reading from there, which may repeat what another instance has",
                  tp->topic, (int)tp->partition, s->group, group->next, p->read.next);
    }
    p->lost = false;
    p->committed = group->next;
}

static void set_assigned(struct cdcd_source *s, struct kafka_part *p, bool assigned)
{
    if (p->assigned == assigned)
        return;
    p->assigned = assigned;
    s->assigned += assigned ? 1 : -1;
    s->at_end -= p->eof;
    p->eof = false;
}

static enum cdcd_rc come(struct cdcd_source *s, rd_kafka_topic_partition_list_t *list,
                         struct cdcd_error *err)
{
    struct kafka_mark *group = cdcd_xcalloc((size_t)list->cnt + 1, sizeof *group);
    enum cdcd_rc rc = kafka_group_committed(s, list, group, err);
    for (int i = 0; rc == CDCD_OK && i < list->cnt; i++) {
        const rd_kafka_topic_partition_t *tp = &list->elems[i];
        begin_from(s, tp, kafka_offsets_part(&s->offsets, tp->topic, tp->partition), &group[i]);
    }
    free(group);
    if (rc == CDCD_OK)
        rc = kafka_place(s, list, err);
    for (int i = 0; rc == CDCD_OK && i < list->cnt; i++) {
        const rd_kafka_topic_partition_t *tp = &list->elems[i];
        struct kafka_part *p = kafka_offsets_part(&s->offsets, tp->topic, tp->partition);
        if (p->held.next < 0) { /* nothing of it was read before */
            p->held = p->read;
            p->pushed = p->read.next;
        }
        set_assigned(s, p, true);
        cdcd_debug("kafka", "%s/%d comes, from offset %" PRId64, tp->topic, (int)tp->partition,
                   p->read.next);
    }
    return rc;
}

static void assign(struct cdcd_source *s, rd_kafka_topic_partition_list_t *list)
{
    struct cdcd_error err = {0};
    if (!s->closing && come(s, list, &err) != CDCD_OK) {
        fail(s, &err);
        /* The session ends: nothing may be read from them. */
        for (int i = 0; i < list->cnt; i++)
            list->elems[i].offset = RD_KAFKA_OFFSET_END;
    }
    rd_kafka_error_t *e = rd_kafka_incremental_assign(s->rk, list);
    if (e) {
        cdcd_error_set(&err, CDCD_ERR_RETRY, "taking partitions of group %s: %s", s->group,
                       rd_kafka_error_string(e));
        fail(s, &err);
        rd_kafka_error_destroy(e);
    }
    /* Paused when they went, they would come as such, and nobody would fetch them. */
    kafka_consumer_resume(s, list);
    cdcd_info("kafka", "group %s: %d partition(s) come, %d in all", s->group, list->cnt,
              s->assigned);
}

/* ---- partitions go ---- */

static struct kafka_part *known_part(struct cdcd_source *s, const rd_kafka_topic_partition_t *tp)
{
    struct kafka_parts *t = kafka_offsets_find(&s->offsets, tp->topic);
    return t && tp->partition < t->n ? &t->items[tp->partition] : NULL;
}

static void drop_stash(struct cdcd_source *s, const rd_kafka_topic_partition_list_t *list)
{
    if (!s->stash || !s->stash->rkt)
        return;
    if (!rd_kafka_topic_partition_list_find(list, rd_kafka_topic_name(s->stash->rkt),
                                            s->stash->partition))
        return;
    rd_kafka_message_destroy(s->stash);
    s->stash = NULL;
}

/* lost: the group has given them away already, and takes no offsets of ours any more. */
static void give_back(struct cdcd_source *s, rd_kafka_topic_partition_list_t *list, bool lost)
{
    if (!lost)
        kafka_group_commit(s, true);
    drop_stash(s, list);
    for (int i = 0; i < list->cnt; i++) {
        struct kafka_part *p = known_part(s, &list->elems[i]);
        if (!p)
            continue;
        set_assigned(s, p, false);
        p->lost = lost;
        if (!lost && !s->closing) {
            /* From here on it is the group that knows how far it was read. */
            s->position_new = s->position_new || p->known;
            p->known = false;
        }
    }
    rd_kafka_error_t *e = rd_kafka_incremental_unassign(s->rk, list);
    if (e) {
        cdcd_debug("kafka", "giving back: %s", rd_kafka_error_string(e));
        rd_kafka_error_destroy(e);
    }
    cdcd_info("kafka", "group %s: %d partition(s) %s, %d left", s->group, list->cnt,
              lost ? "were taken away" : "go", s->assigned);
}

bool kafka_group_leave(struct cdcd_source *s)
{
    rd_kafka_topic_partition_list_t *list = s->revoking;
    s->revoking = NULL;
    if (list) {
        give_back(s, list, rd_kafka_assignment_lost(s->rk));
        rd_kafka_topic_partition_list_destroy(list);
    }
    /* Not in the middle of a join, see follow_join. What comes now is read again. */
    int64_t give_up = cdcd_now_ms() + JOIN_MS;
    while (!kafka_may_close(&s->link) && cdcd_now_ms() < give_up) {
        rd_kafka_message_t *m = rd_kafka_consumer_poll(s->rk, 20);
        if (m)
            rd_kafka_message_destroy(m);
    }
    kafka_group_commit(s, true);
    return kafka_may_close(&s->link);
}

static bool all_held(struct cdcd_source *s, const rd_kafka_topic_partition_list_t *list)
{
    for (int i = 0; i < list->cnt; i++) {
        const struct kafka_part *p = known_part(s, &list->elems[i]);
        if (p && p->assigned && p->held.next < p->pushed)
            return false;
    }
    return true;
}

void kafka_group_serve(struct cdcd_source *s)
{
    if (!s->revoking)
        return;
    bool lost = rd_kafka_assignment_lost(s->rk);
    bool held = all_held(s, s->revoking);
    if (!lost && !held && cdcd_now_ms() < s->revoke_until)
        return;
    if (!lost && !held)
        cdcd_warn("kafka",
                  "group %s wants partitions back, and the sink did not confirm what was read of "
                  "them in %d s: their next owner repeats it",
                  s->group, REVOKE_MS / 1000);
    rd_kafka_topic_partition_list_t *list = s->revoking;
    s->revoking = NULL;
    give_back(s, list, lost);
    rd_kafka_topic_partition_list_destroy(list);
}

static void revoke(struct cdcd_source *s, rd_kafka_topic_partition_list_t *list)
{
    bool lost = rd_kafka_assignment_lost(s->rk);
    if (s->revoking) { /* not answered yet: the newer list has them all */
        rd_kafka_topic_partition_list_destroy(s->revoking);
        s->revoking = NULL;
    }
    if (lost || s->closing) {
        give_back(s, list, lost);
        return;
    }
    /* The group waits for our answer; fetching stands still until then. */
    s->revoking = rd_kafka_topic_partition_list_copy(list);
    s->revoke_until = cdcd_now_ms() + REVOKE_MS;
}

void kafka_rebalance(rd_kafka_t *rk, rd_kafka_resp_err_t code,
                     rd_kafka_topic_partition_list_t *list, void *opaque)
{
    struct cdcd_source *s = opaque;
    (void)rk;
    if (code == RD_KAFKA_RESP_ERR__ASSIGN_PARTITIONS) {
        assign(s, list);
    } else if (code == RD_KAFKA_RESP_ERR__REVOKE_PARTITIONS) {
        revoke(s, list);
    } else {
        cdcd_warn("kafka", "group %s: %s", s->group, rd_kafka_err2str(code));
        rd_kafka_assign(s->rk, NULL);
    }
}
