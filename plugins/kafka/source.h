/*
 * source.h: what the files of the Kafka source share.
 *
 *   source.c           options, ops table, sessions: open, resume, start, read, ack
 *   consumer.c         the consumer: what it brings -> records of a batch; its errors
 *   consumer_topics.c  which topics there are, new ones and those that are gone
 *   consumer_place.c   where a partition is read from, and whether nothing is lost there
 *   consumer_replay.c  reading up to an end without a group
 *   consumer_wake.c    has librdkafka fetch again as soon as there is room
 *   consumer_look.c    one record, looked at for a sink
 *   consumer_check.c   cdcd check, cdcd drop
 *   group.c            partitions that come and go with the group; commits
 *   offsets.c          positions: partitions and their offsets, as JSON
 *   schemas.c          the topic of schemas
 *
 * Threads: all on the capture thread (check and drop on the main thread); librdkafka calls back
 * only from within calls of ours.
 */
#ifndef CDCD_PLUGIN_KAFKA_SOURCE_H
#define CDCD_PLUGIN_KAFKA_SOURCE_H

#include "kafka.h"

#include <cdcd/pattern.h>

enum kafka_source_policy { KAFKA_SOURCE_STOP, KAFKA_SOURCE_SKIP };

struct kafka_source_config {
    char *bootstrap;
    struct cdcd_strlist topics, exclude; /* patterns */
    char *group;                         /* "": cdcd-NAME */
    int64_t refresh_ms;
    char *schema_topic; /* "": none */
    int policy;         /* enum kafka_source_policy */
    struct cdcd_strmap properties;
};

/* ---- offsets.c ---- */

#define KAFKA_NO_OFFSET (-1)

/* How far a partition was read. Offsets are KAFKA_NO_OFFSET when unknown. */
struct kafka_mark {
    int64_t next; /* the first offset that was not read */
    int64_t last; /* of the newest record before it */
    int64_t
        last_ms; /* that record's timestamp: tells a topic of the same name that was made anew */
};
extern const struct kafka_mark kafka_no_mark;

struct kafka_part {
    bool known;             /* part of positions */
    struct kafka_mark read; /* up to here it was read */
    struct kafka_mark held; /* up to here the sink holds it */
    int64_t pushed;         /* read.next as of the newest position that was given away */

    bool assigned;
    bool lost;          /* left the group without a goodbye: nobody took note of how far it was */
    bool eof;           /* read to its end */
    bool paused;        /* librdkafka knows it as paused, also while it is somebody else's */
    bool verify;        /* the first record may be the one of read.last, to be compared */
    bool ended;         /* replay: its end is reached */
    int64_t committed;  /* what the group was told */
    int64_t begin, end; /* replay: from where to where */
};

struct kafka_parts {
    char *topic;
    struct kafka_part *items; /* by number */
    int32_t n;
    unsigned missing; /* lists in a row in which the topic was not */
    bool seen;        /* in the newest list */
};

struct kafka_offsets {
    struct kafka_parts **topics; /* by name */
    size_t n, cap;
};

void kafka_offsets_free(struct kafka_offsets *o);
/* Made when it is not there. Valid until the next new partition of the topic. */
struct kafka_part *kafka_offsets_part(struct kafka_offsets *o, const char *topic,
                                      int32_t partition);
struct kafka_parts *kafka_offsets_find(const struct kafka_offsets *o, const char *topic);
void kafka_offsets_forget(struct kafka_offsets *o, const char *topic);
/* {"topics":{"NAME":{"0":[next,last,last_ms],...},...}} of what is known. */
void kafka_offsets_write(const struct kafka_offsets *o, struct cdcd_buf *out);
/* Each partition of a position; false: the text is none. */
typedef void kafka_offsets_fn(void *ctx, const char *topic, int32_t partition,
                              const struct kafka_mark *mark);
bool kafka_offsets_parse(struct cdcd_slice text, kafka_offsets_fn *fn, void *ctx);
/* For people: "shop.orders/0@17, ..." or how many there are. */
void kafka_offsets_describe(struct cdcd_slice position, struct cdcd_buf *out);

/* ---- schemas.c ---- */

struct kafka_schema {
    struct kafka_schema *next;
    char *version, *text; /* text NULL: the topic does not have it */
    size_t text_len;
    int64_t timestamp_ms;
    bool given; /* in this session */
};

struct kafka_schemas {
    struct kafka_schema **buckets; /* KAFKA_SCHEMA_BUCKETS */
    int64_t next;                  /* offset in the topic */
    size_t n;
};
#define KAFKA_SCHEMA_BUCKETS 1024

/* ---- consumer_wake.c ---- */

#define KAFKA_WAKE_BROKERS 16

/* What was taken from librdkafka since its threads were last woken. */
struct kafka_wake {
    size_t bytes, records;
    int32_t brokers[KAFKA_WAKE_BROKERS]; /* where it came from: ids, */
    size_t n;
    rd_kafka_topic_partition_list_t *list; /* owned: and a partition of each; NULL: none yet */
    uint64_t times;                        /* that they were */
};

/* ---- the source ---- */

struct cdcd_source {
    struct kafka_link link; /* the first member: the opaque of librdkafka's callbacks */
    const struct kafka_source_config *config;
    const struct cdcd_source_env *env;
    char *group; /* owned */
    struct cdcd_patterns include, exclude;

    rd_kafka_t *rk;
    struct kafka_offsets offsets;
    bool position_new;         /* what was read is not in a position yet */
    int64_t position_at;       /* monotonic ms of the last one */
    int32_t assigned, at_end;  /* partitions that are, and those of them that are read to the end */
    int64_t newest_ms;         /* timestamp of the newest record */
    const char *topic_at;      /* the topic of the record before, in the batch at hand */
    struct kafka_parts *found; /* of the record before */

    /* topics */
    struct cdcd_strlist subscribed; /* owned, sorted */
    int64_t next_refresh;           /* monotonic ms */
    bool none_said;

    /* group */
    rd_kafka_topic_partition_list_t *revoking; /* to be given back, once the sink holds them */
    int64_t revoke_until;
    bool closing, paused;
    rd_kafka_message_t *stash; /* came while nobody could take it */
    struct kafka_wake wake;
    int64_t last_read; /* monotonic ms of the last call of read */
    int64_t last_commit, next_complaint, last_answer;

    /* replay */
    bool started;
    int32_t ended, to_end; /* partitions that are at their end, of all */

    struct kafka_schemas schemas;
    bool fault_set;
    struct cdcd_error fault; /* from a callback */
    uint64_t skipped;
};

/* source.c */
struct cdcd_source *kafka_source_new(const struct kafka_source_config *config,
                                     const struct cdcd_source_env *env, struct cdcd_error *err);
void kafka_source_free(struct cdcd_source *s);
extern const struct cdcd_source_ops kafka_source;
static inline bool kafka_source_stopping(const struct cdcd_source *s)
{
    return s->env->stopping && s->env->stopping(s->env->ctx);
}

/* consumer.c */
/* Connects: s->rk. */
enum cdcd_rc kafka_consumer_begin(struct cdcd_source *s, struct cdcd_error *err);
void kafka_consumer_end(struct cdcd_source *s);
/* Destroys a client, or leaves it to itself when librdkafka waits for ever. */
void kafka_destroy_or_leave(rd_kafka_t *rk);
/* Takes what is there into the batch, until it is full or the deadline has passed. */
enum cdcd_rc kafka_consumer_read(struct cdcd_source *s, struct cdcd_batch *b, int64_t deadline,
                                 struct cdcd_error *err);
/* While nobody takes batches: stays a member of the group. */
enum cdcd_rc kafka_consumer_idle(struct cdcd_source *s, int64_t now, struct cdcd_error *err);
/* Those of them that were paused are fetched again. */
void kafka_consumer_resume(struct cdcd_source *s, const rd_kafka_topic_partition_list_t *list);

/* consumer_topics.c */
/* Whether the topic is one of those to be read. */
bool kafka_source_matches(const struct cdcd_source *s, const char *topic);
/* Looks which topics there are now; in a group it subscribes to new ones. LOSS: one that was read
 * is gone. */
enum cdcd_rc kafka_source_refresh(struct cdcd_source *s, struct cdcd_error *err);

/* consumer_place.c */
struct kafka_range {
    int64_t begin, end;
};
/* First and last offsets of the partitions (the end as a read_committed reader sees it), in the
 * order of the list; *out is owned by the caller. */
enum cdcd_rc kafka_ranges(struct cdcd_source *s, const rd_kafka_topic_partition_list_t *list,
                          struct kafka_range **out, struct cdcd_error *err);
/* Decides for each partition of the list where reading begins (its `offset`) from what is known of
 * it; LOSS when that cannot be without a gap. */
enum cdcd_rc kafka_place(struct cdcd_source *s, rd_kafka_topic_partition_list_t *list,
                         struct cdcd_error *err);
/* The record at the offset of the mark is another one: LOSS. */
enum cdcd_rc kafka_other_topic(struct cdcd_source *s, const char *topic, int32_t partition,
                               struct cdcd_error *err);

/* consumer_replay.c */
/* Assigns everything, from where it was asked to begin. */
enum cdcd_rc kafka_replay_start(struct cdcd_source *s, struct cdcd_error *err);
void kafka_replay_progress(struct cdcd_source *s, uint64_t *done, uint64_t *total);
/* Time as ISO 8601 or milliseconds since 1970; false: it is none. */
bool kafka_parse_time(const char *text, int64_t *ms);
/* CONFIG error: neither offset, time nor position. */
enum cdcd_rc kafka_replay_valid(const char *text, const char *option, struct cdcd_error *err);

/* group.c */
void kafka_rebalance(rd_kafka_t *rk, rd_kafka_resp_err_t code,
                     rd_kafka_topic_partition_list_t *list, void *opaque);
void kafka_committed(rd_kafka_t *rk, rd_kafka_resp_err_t code,
                     rd_kafka_topic_partition_list_t *list, void *opaque);
/* Gives back what is asked back, when the sink holds what was read of it. */
void kafka_group_serve(struct cdcd_source *s);
/* Before the consumer is closed: answers what is open, and tells the group the last offsets. False:
 * it may not be closed, since it waits for the group all the time. */
bool kafka_group_leave(struct cdcd_source *s);
/* Tells the group what the sink holds. */
void kafka_group_commit(struct cdcd_source *s, bool wait);
/* What the group was told of these partitions, in the order of the list. */
enum cdcd_rc kafka_group_committed(struct cdcd_source *s,
                                   const rd_kafka_topic_partition_list_t *list,
                                   struct kafka_mark *out, struct cdcd_error *err);

/* schemas.c */
void kafka_schemas_free(struct kafka_schemas *m);
/* Before the first record. */
enum cdcd_rc kafka_schemas_begin(struct cdcd_source *s, struct cdcd_error *err);
/* Puts the schema of this version into the batch, if it is not in this session yet. */
enum cdcd_rc kafka_schemas_need(struct cdcd_source *s, struct cdcd_batch *b,
                                struct cdcd_slice version, struct cdcd_error *err);

/* consumer_wake.c */
/* A record was taken: wakes the threads of librdkafka that may wait for that, now and then. */
void kafka_wake_taken(struct cdcd_source *s, const rd_kafka_message_t *m);
void kafka_wake_end(struct kafka_wake *w);

/* consumer_look.c */
enum cdcd_rc kafka_source_look(const void *config, const struct cdcd_source_env *env,
                               struct cdcd_place *place, struct cdcd_error *err);

/* consumer_check.c */
enum cdcd_rc kafka_source_check(const void *config, const struct cdcd_source_env *env,
                                struct cdcd_report *report, struct cdcd_error *err);
enum cdcd_rc kafka_source_drop(const void *config, const struct cdcd_source_env *env, bool dry,
                               struct cdcd_report *report, struct cdcd_error *err);

#endif
