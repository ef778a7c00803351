/* cdcd check: the broker, the topics and the group. cdcd drop: the group. */
#include "source.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#define ASK_MS 15000

static rd_kafka_event_t *wait_event(rd_kafka_t *rk, rd_kafka_queue_t *q)
{
    int64_t give_up = cdcd_now_ms() + ASK_MS;
    rd_kafka_event_t *ev = NULL;
    while (!ev && cdcd_now_ms() < give_up) {
        ev = rd_kafka_queue_poll(q, 200);
        rd_kafka_poll(rk, 0);
    }
    return ev;
}

/* ---- topics ---- */

static void check_topic(struct cdcd_source *s, const struct rd_kafka_metadata_topic *t,
                        const struct kafka_setting *set, struct cdcd_report *report, size_t *lines)
{
    char *what = cdcd_xasprintf("topic %s", t->topic);
    bool compacted = strstr(set->cleanup_policy, "compact") != NULL;
    if (!cdcd_report_more(lines)) {
        free(what);
        return;
    }
    if (!*set->cleanup_policy)
        cdcd_report_addf(report, CDCD_CHECK_WARN, what,
                         cdcd_xstrdup("allow the user of cdcd DescribeConfigs on the topic"),
                         "%d partition(s); its settings may not be read", t->partition_cnt);
    else if (!compacted)
        cdcd_report_addf(
            report, CDCD_CHECK_WARN, what,
            cdcd_xasprintf("kafka-configs.sh --bootstrap-server %s --alter --topic %s --add-config "
                           "cleanup.policy=compact",
                           s->config->bootstrap, t->topic),
            "%d partition(s), cleanup.policy=%s: old records are deleted, so a new group or a "
            "replay does not find every key (fine for a topic without keys)",
            t->partition_cnt, set->cleanup_policy);
    else
        cdcd_report_addf(report, CDCD_CHECK_OK, what, NULL, "%d partition(s), cleanup.policy=%s",
                         t->partition_cnt, set->cleanup_policy);
    free(what);
}

static void check_topics(struct cdcd_source *s, const struct rd_kafka_metadata *md,
                         struct cdcd_report *report)
{
    size_t n = 0, lines = 0, count = (size_t)md->topic_cnt;
    const char **names = cdcd_xcalloc(count + 1, sizeof *names);
    struct kafka_setting *set = cdcd_xcalloc(count + 1, sizeof *set);
    for (size_t i = 0; i < count; i++)
        if (kafka_source_matches(s, md->topics[i].topic))
            names[n++] = md->topics[i].topic;
    if (n)
        kafka_settings(&s->link, s->rk, names, n, set);
    for (size_t i = 0; i < n; i++)
        check_topic(s, kafka_find_topic(md, names[i]), &set[i], report, &lines);
    cdcd_report_end(report, &lines, "topics");
    if (!n)
        cdcd_report_addf(report, CDCD_CHECK_WARN, "topics",
                         cdcd_xstrdup("look at source.kafka.topics and topic.prefix"),
                         "none matches yet: cdcd will wait for one");
    if (*s->config->schema_topic && !kafka_find_topic(md, s->config->schema_topic))
        cdcd_report_addf(report, CDCD_CHECK_OK, "schema topic", NULL,
                         "%s does not exist: values without a schema are passed on as they are",
                         s->config->schema_topic);
    free(set);
    free(names);
}

/* ---- the group ---- */

static const rd_kafka_ConsumerGroupDescription_t *description(rd_kafka_event_t *ev)
{
    size_t n = 0;
    if (!ev || rd_kafka_event_error(ev))
        return NULL;
    const rd_kafka_ConsumerGroupDescription_t **all = rd_kafka_DescribeConsumerGroups_result_groups(
        rd_kafka_event_DescribeConsumerGroups_result(ev), &n);
    return n ? all[0] : NULL;
}

/* What is known of the group; the event is owned by the caller. NULL: no answer. */
static rd_kafka_event_t *describe_group(struct cdcd_source *s)
{
    const char *groups[] = {s->group};
    rd_kafka_queue_t *q = rd_kafka_queue_new(s->rk);
    rd_kafka_DescribeConsumerGroups(s->rk, groups, 1, NULL, q);
    rd_kafka_event_t *ev = wait_event(s->rk, q);
    rd_kafka_queue_destroy(q);
    return ev;
}

static void check_group(struct cdcd_source *s, struct cdcd_report *report)
{
    char *what = cdcd_xasprintf("group %s", s->group);
    rd_kafka_event_t *ev = describe_group(s);
    const rd_kafka_ConsumerGroupDescription_t *d = description(ev);
    const rd_kafka_error_t *e = d ? rd_kafka_ConsumerGroupDescription_error(d) : NULL;
    rd_kafka_resp_err_t code = e    ? rd_kafka_error_code(e)
                               : d  ? RD_KAFKA_RESP_ERR_NO_ERROR
                               : ev ? rd_kafka_event_error(ev)
                                    : RD_KAFKA_RESP_ERR__TIMED_OUT;
    /* Older brokers call one that does not exist dead. */
    if (code == RD_KAFKA_RESP_ERR_GROUP_ID_NOT_FOUND ||
        (!code &&
         rd_kafka_ConsumerGroupDescription_state(d) == RD_KAFKA_CONSUMER_GROUP_STATE_DEAD)) {
        cdcd_report_addf(report, CDCD_CHECK_OK, what, NULL,
                         "does not exist yet: topics will be read from their beginning");
    } else if (code) {
        const char *mend = kafka_mend(code);
        cdcd_report_addf(report, CDCD_CHECK_FAIL, what, *mend ? cdcd_xstrdup(mend) : NULL, "%s",
                         rd_kafka_err2str(code));
    } else {
        rd_kafka_consumer_group_state_t state = rd_kafka_ConsumerGroupDescription_state(d);
        const char *assignor = rd_kafka_ConsumerGroupDescription_partition_assignor(d);
        size_t members = rd_kafka_ConsumerGroupDescription_member_count(d);
        bool fits = !members || !assignor || !*assignor ||
                    strcmp(assignor, "cooperative-sticky") == 0;
        cdcd_report_addf(report, fits ? CDCD_CHECK_OK : CDCD_CHECK_FAIL, what,
                         fits ? NULL : cdcd_xstrdup("give cdcd a source.kafka.group.id of its own"),
                         "%s, %zu member(s)%s%s, isolation.level=read_committed",
                         rd_kafka_consumer_group_state_name(state), members,
                         fits ? "" : " that share partitions by ", fits ? "" : assignor);
    }
    if (ev)
        rd_kafka_event_destroy(ev);
    free(what);
}

static enum cdcd_rc connect_once(const struct kafka_source_config *config,
                                 const struct cdcd_source_env *env, struct cdcd_source **out,
                                 const struct rd_kafka_metadata **md, struct cdcd_error *err)
{
    struct cdcd_source *s = kafka_source_new(config, env, err);
    if (!s)
        return CDCD_ERROR;
    if (kafka_consumer_begin(s, err) != CDCD_OK ||
        kafka_list(&s->link, s->rk, md, err) != CDCD_OK) {
        kafka_source_free(s);
        return CDCD_ERROR;
    }
    *out = s;
    return CDCD_OK;
}

enum cdcd_rc kafka_source_check(const void *config, const struct cdcd_source_env *env,
                                struct cdcd_report *report, struct cdcd_error *err)
{
    const struct rd_kafka_metadata *md;
    struct cdcd_source *s;
    struct cdcd_error why = {0};
    (void)err;
    if (connect_once(config, env, &s, &md, &why) != CDCD_OK) {
        report->add(report->ctx, CDCD_CHECK_FAIL, "source.kafka broker", why.text, NULL);
        return CDCD_OK;
    }
    cdcd_report_addf(report, CDCD_CHECK_OK, "source.kafka broker", NULL,
                     "%s answers: %d broker(s), %d topics", s->config->bootstrap, md->broker_cnt,
                     md->topic_cnt);
    check_topics(s, md, report);
    check_group(s, report);
    rd_kafka_metadata_destroy(md);
    kafka_source_free(s);
    return CDCD_OK;
}

/* ---- drop ---- */

static enum cdcd_rc delete_group(struct cdcd_source *s, struct cdcd_error *err)
{
    rd_kafka_DeleteGroup_t *group = rd_kafka_DeleteGroup_new(s->group);
    rd_kafka_queue_t *q = rd_kafka_queue_new(s->rk);
    size_t n = 0;
    rd_kafka_DeleteGroups(s->rk, &group, 1, NULL, q);
    rd_kafka_event_t *ev = wait_event(s->rk, q);
    rd_kafka_resp_err_t code = ev ? rd_kafka_event_error(ev) : RD_KAFKA_RESP_ERR__TIMED_OUT;
    if (!code) {
        const rd_kafka_group_result_t **results = rd_kafka_DeleteGroups_result_groups(
            rd_kafka_event_DeleteGroups_result(ev), &n);
        const rd_kafka_error_t *e = n ? rd_kafka_group_result_error(results[0]) : NULL;
        code = e ? rd_kafka_error_code(e) : RD_KAFKA_RESP_ERR_NO_ERROR;
    }
    if (ev)
        rd_kafka_event_destroy(ev);
    rd_kafka_queue_destroy(q);
    rd_kafka_DeleteGroup_destroy(group);
    if (code == RD_KAFKA_RESP_ERR_NON_EMPTY_GROUP)
        return cdcd_error_set(err, CDCD_ERR_FATAL,
                              "group %s has members: stop all instances of the pipeline first",
                              s->group);
    if (code && code != RD_KAFKA_RESP_ERR_GROUP_ID_NOT_FOUND)
        return kafka_fail(&s->link, err, code, NULL, "deleting group %s", s->group);
    return CDCD_OK;
}

static bool group_exists(struct cdcd_source *s)
{
    rd_kafka_event_t *ev = describe_group(s);
    const rd_kafka_ConsumerGroupDescription_t *d = description(ev);
    bool there = d && !rd_kafka_ConsumerGroupDescription_error(d) &&
                 rd_kafka_ConsumerGroupDescription_state(d) != RD_KAFKA_CONSUMER_GROUP_STATE_DEAD;
    if (ev)
        rd_kafka_event_destroy(ev);
    return there;
}

enum cdcd_rc kafka_source_drop(const void *config, const struct cdcd_source_env *env, bool dry,
                               struct cdcd_report *report, struct cdcd_error *err)
{
    const struct rd_kafka_metadata *md;
    struct cdcd_source *s;
    enum cdcd_rc rc = CDCD_OK;
    if (connect_once(config, env, &s, &md, err) != CDCD_OK)
        return CDCD_ERROR;
    rd_kafka_metadata_destroy(md);
    char *what = cdcd_xasprintf("consumer group %s", s->group);
    if (!group_exists(s)) {
        cdcd_report_addf(report, CDCD_CHECK_OK, what, NULL, "does not exist");
    } else if (dry) {
        cdcd_report_addf(report, CDCD_CHECK_WARN, what, NULL, "holds how far the topics were read");
    } else {
        rc = delete_group(s, err);
        if (rc == CDCD_OK)
            cdcd_report_addf(report, CDCD_CHECK_WARN, what, NULL, "deleted");
    }
    free(what);
    kafka_source_free(s);
    return rc;
}
