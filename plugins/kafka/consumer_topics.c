/*
 * Which topics there are. The patterns are matched here and not by librdkafka, so that they mean
 * the same as everywhere in cdcd; the list is looked at anew every topics.refresh.interval.ms, and
 * the group is told when it has changed.
 */
#include "source.h"

#include <inttypes.h>
#include <stdlib.h>

/* A topic that was read is gone when so many lists in a row are without it. */
#define MISSING_LISTS 3
#define MISSING_MS    700
#define DOWN_ASK_MS   200

bool kafka_source_matches(const struct cdcd_source *s, const char *topic)
{
    /* Kafka's own, and ours: positions, notes, schemas. */
    if (strncmp(topic, "__", 2) == 0)
        return false;
    return cdcd_patterns_pass(&s->include, &s->exclude, topic);
}

/* ---- topics that are gone ---- */

static bool was_read(const struct kafka_parts *t, int64_t *next)
{
    bool read = false;
    *next = 0;
    for (int32_t i = 0; i < t->n; i++)
        if (t->items[i].known || t->items[i].assigned) {
            read = true;
            *next += t->items[i].read.next > 0 ? t->items[i].read.next : 0;
        }
    return read;
}

static enum cdcd_rc gone(const struct cdcd_source *s, const struct kafka_parts *t, int64_t next,
                         struct cdcd_error *err)
{
    return cdcd_error_set(
        err, CDCD_ERR_LOSS,
        "topic %s does not exist any more at %s, and it was read up to offset %" PRId64
        ": what came behind that is lost. If it was deleted on purpose, put it into "
        "source.kafka.topics.exclude and start cdcd again; if it is made anew, build the target "
        "anew too (cdcd replay)",
        t->topic, s->config->bootstrap, next);
}

/* What was read must be in the list. Topics that are no longer wanted are forgotten. */
static enum cdcd_rc look_for_gone(struct cdcd_source *s, const struct rd_kafka_metadata *md,
                                  struct cdcd_error *err)
{
    int64_t next;
    for (size_t i = 0; i < s->offsets.n;) {
        struct kafka_parts *t = s->offsets.topics[i];
        bool read = was_read(t, &next);
        if (read && !kafka_source_matches(s, t->topic)) {
            cdcd_info("kafka",
                      "topic %s was read before and is not to be read now: its position "
                      "is forgotten",
                      t->topic);
            s->found = NULL;
            kafka_offsets_forget(&s->offsets, t->topic);
            continue;
        }
        t->missing = !read || kafka_find_topic(md, t->topic) ? 0 : t->missing + 1;
        if (t->missing >= MISSING_LISTS)
            return gone(s, t, next, err);
        if (t->missing)
            s->next_refresh = cdcd_now_ms() + MISSING_MS;
        i++;
    }
    return CDCD_OK;
}

/* ---- topics that are new ---- */

static void free_list(struct cdcd_strlist *l)
{
    for (size_t i = 0; i < l->n; i++)
        free(l->items[i]);
    free(l->items);
    *l = (struct cdcd_strlist){0};
}

static struct cdcd_strlist wanted(const struct cdcd_source *s, const struct rd_kafka_metadata *md)
{
    struct cdcd_strlist out = {cdcd_xcalloc((size_t)md->topic_cnt + 1, sizeof(char *)), 0};
    for (int i = 0; i < md->topic_cnt; i++) {
        const char *name = md->topics[i].topic;
        if (kafka_find_topic(md, name) && kafka_source_matches(s, name))
            out.items[out.n++] = cdcd_xstrdup(name);
    }
    return out;
}

static bool same(const struct cdcd_strlist *a, const struct cdcd_strlist *b)
{
    if (a->n != b->n)
        return false;
    for (size_t i = 0; i < a->n; i++) /* both are in order of name */
        if (strcmp(a->items[i], b->items[i]) != 0)
            return false;
    return true;
}

static enum cdcd_rc subscribe(struct cdcd_source *s, struct cdcd_strlist *now,
                              struct cdcd_error *err)
{
    rd_kafka_topic_partition_list_t *list = rd_kafka_topic_partition_list_new((int)now->n);
    for (size_t i = 0; i < now->n; i++)
        rd_kafka_topic_partition_list_add(list, now->items[i], RD_KAFKA_PARTITION_UA);
    rd_kafka_resp_err_t code = rd_kafka_subscribe(s->rk, list);
    rd_kafka_topic_partition_list_destroy(list);
    if (code)
        return kafka_fail(&s->link, err, code, NULL, "subscribing to %zu topics", now->n);
    cdcd_info("kafka", "group %s: %zu topic(s), %s%s", s->group, now->n, now->items[0],
              now->n > 1 ? ", ..." : "");
    free_list(&s->subscribed);
    s->subscribed = *now;
    *now = (struct cdcd_strlist){0};
    return CDCD_OK;
}

/* Short: the capture thread has other things to do during an outage. */
static bool answers(struct cdcd_source *s)
{
    const struct rd_kafka_metadata *md;
    if (rd_kafka_metadata(s->rk, 0, NULL, &md, DOWN_ASK_MS) != RD_KAFKA_RESP_ERR_NO_ERROR)
        return false;
    rd_kafka_metadata_destroy(md);
    s->link.all_down = false;
    return true;
}

enum cdcd_rc kafka_source_refresh(struct cdcd_source *s, struct cdcd_error *err)
{
    const struct rd_kafka_metadata *md;
    struct cdcd_error why = {0};
    s->next_refresh = cdcd_now_ms() + s->config->refresh_ms;
    if (s->started && s->link.all_down && !answers(s))
        return CDCD_OK;
    if (kafka_list(&s->link, s->rk, &md, &why) != CDCD_OK) {
        if (!s->started || why.class != CDCD_ERR_RETRY) {
            *err = why;
            return CDCD_ERROR;
        }
        cdcd_debug("kafka", "%s", why.text);
        return CDCD_OK;
    }
    s->last_answer = cdcd_now_ms();
    enum cdcd_rc rc = look_for_gone(s, md, err);
    struct cdcd_strlist now = wanted(s, md);
    rd_kafka_metadata_destroy(md);
    if (now.n == 0 && !s->none_said) {
        cdcd_info("kafka", "no topic matches source.kafka.topics yet: waiting for one");
        s->none_said = true;
    }
    /* A topic that is gone stays subscribed until it is sure: else the group would take it away. */
    bool more = false;
    for (size_t i = 0; i < s->offsets.n; i++)
        more = more || s->offsets.topics[i]->missing;
    if (rc == CDCD_OK && !s->env->replay && !more && now.n && !same(&now, &s->subscribed))
        rc = subscribe(s, &now, err);
    free_list(&now);
    return rc;
}
