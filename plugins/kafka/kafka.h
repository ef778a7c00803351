/*
 * kafka.h: what the files of the Kafka sink share, and what the source (source.h) uses of them.
 *
 *   sink.c      options, ops table, sessions: load, write, poll
 *   pump.c      batches -> librdkafka, delivery reports -> batches given back
 *   producer.c  the producer's life, transactions, commits, fencing
 *   client.c    configuration, callbacks, error texts and classes
 *   topics.c    topics: looked up, created, their settings checked
 *   position.c  the position topic: reading its end, writing records; how topics are read
 *   notes.c     the source's notes, in a topic of their own
 *   refuse.c    records that the broker refuses, and the policy for them
 *   check.c     the checks of `cdcd check`
 */
#ifndef CDCD_PLUGIN_KAFKA_KAFKA_H
#define CDCD_PLUGIN_KAFKA_KAFKA_H

#include <cdcd/log.h>
#include <cdcd/plugin.h>
#include <cdcd/tracker.h>

#include <librdkafka/rdkafka.h>
#include <stdatomic.h>

enum kafka_policy { KAFKA_STOP, KAFKA_DEAD_LETTER, KAFKA_SKIP };

struct kafka_config {
    char *bootstrap;
    int delivery; /* enum cdcd_delivery */
    int64_t partitions, replication;
    char *cleanup_policy;
    struct cdcd_strmap topic_config;
    struct cdcd_strmap properties;
    char *transactional_id, *position_topic; /* or "" for their defaults */
    int64_t transaction_ms, transaction_bytes;
    int policy; /* enum kafka_policy */
    char *dead_letter_topic;
    char *schema_topic; /* "": schemas are not written */
};

/* The way to a cluster, and what is known of it: the first member of a sink and of a source. */
struct kafka_link {
    bool source;           /* of records; else a sink */
    bool sleeps;           /* a consumer of this librdkafka must be woken: consumer_wake.c */
    bool debug;            /* the user wants librdkafka's debug lines */
    const char *section;   /* of the config: "sink.kafka" */
    const char *bootstrap; /* these are borrowed */
    const char *pipeline;
    const struct cdcd_strmap *properties;
    char broker_error[256]; /* what librdkafka last said about its connections */
    rd_kafka_resp_err_t broker_code;
    bool all_down;
    bool denied;      /* broker_error is about credentials or TLS */
    bool loaded_once; /* it has worked before */
    /* Of a consumer and its group, set by a thread of librdkafka: */
    atomic_bool joining;                   /* it waits for the group */
    atomic_bool half_joined, was_assigned; /* see follow_join */
    bool has_controller;                   /* as the last list of topics said, and */
    int brokers;                           /* this */
};

/* A topic as the sink knows it; topic->sink points here. Owned by the sink. */
struct kafka_topic {
    struct kafka_topic *next;
    struct cdcd_topic *topic; /* borrowed; NULL for the sink's own topics */
    const char *name;
    bool keyed;
    bool compacted;        /* as the broker says; false when unknown */
    int64_t max_bytes;     /* max.message.bytes; 0 unknown */
    int64_t refused_until; /* until then (monotonic ms) records over max_bytes are known to be
                              refused, and are not tried */
    int partitions;        /* at least 1 */
    int64_t in_flight_bytes;
    bool busy;             /* counted in busy_topics */
    rd_kafka_topic_t *rkt; /* of the producer with this generation; its opaque points here */
    unsigned generation;
    bool listed;  /* while topics are gathered: each once */
    bool warned;  /* about its policy */
    bool schemas; /* the topic of schemas, shared by all pipelines */
};

/* A record that was refused. After the transaction was given up it is replayed, found here by
 * topic and cdcd.pos, and treated by the policy. */
struct kafka_refusal {
    char *topic, *pos, *key; /* owned; key cut to what a message shows */
    char *whole_key;         /* owned, key_len bytes; NULL: no key */
    size_t key_len;
    size_t bytes; /* of key, value and headers */
    rd_kafka_resp_err_t code;
    uint64_t met; /* seq of the batch in which it was met again; 0: not yet */
};

struct kafka_state_mark {
    uint64_t seq;
    struct cdcd_slice state;  /* owned */
    struct cdcd_notes *notes; /* changed ones, owned; see kafka_notes_change. NULL: none */
};

/* The source's notes (notes.c). */
struct kafka_notes {
    struct cdcd_notes *changed; /* since the last position; values as in records */
    struct cdcd_notes *live;    /* what the topic holds with the last position: key -> set */
    struct cdcd_notes *garbage; /* keys of records that count no more; values empty */
    uint64_t set;               /* number of the last set */
    uint64_t highest;           /* of those ever seen */
    bool sending;               /* `changed` is on its way and must stay as it is */
    size_t at;                  /* how many of garbage and changed are produced */
    uint64_t in_flight;
};

/* What the newest record of the position topic says besides the state. */
struct kafka_held {
    char instance[33];  /* which wrote it */
    uint64_t set, live; /* number of the last set of notes, and how many there are */
};

struct kafka_counters {
    uint64_t records, bytes, commits, aborts, refused, dead_lettered, skipped, sessions;
};

enum kafka_tx { KAFKA_TX_NONE, KAFKA_TX_OPEN, KAFKA_TX_COMMITTING };

struct cdcd_sink {
    struct kafka_link link;
    const struct kafka_config *config;
    const struct cdcd_sink_env *env;
    /* owned */
    char *position_name, *notes_name, *transactional_id, *dead_letter_name;
    char instance[33]; /* this process, in hex */
    bool no_loop;      /* the source is known to read something else */

    rd_kafka_t *rk; /* NULL: none */
    unsigned generation;
    int64_t batch_size; /* no set of records larger than this */
    int64_t tx_timeout; /* transaction.timeout.ms of the producer */
    bool compressed;
    bool careful; /* one record a request, to find those that are refused */
    int64_t careful_since;
    bool restart_wanted; /* new settings need a new producer, between transactions */
    struct kafka_topic *topics;
    struct kafka_topic position, notes_topic, dead_letter;

    struct cdcd_batch *first, *last; /* taken but not wholly produced */
    struct cdcd_record *cursor;      /* next record of `first`, when begun */
    bool begun;
    uint64_t taken, submitted, durable; /* sequence numbers */
    uint64_t in_flight;                 /* records whose delivery report is due */
    int64_t in_flight_bytes;            /* of their keys and values */
    unsigned busy_topics;               /* topics with more in flight than one set a partition */
    int64_t last_report;                /* monotonic ms of the last delivery report or commit */
    int64_t next_complaint;

    struct cdcd_buf state; /* newest state of a submitted batch */
    bool state_new;        /* it is not durable yet */
    struct kafka_notes notes;

    /* exactly once */
    enum kafka_tx tx;
    bool tx_closing, tx_position; /* no more records; the position is in */
    int64_t tx_max_ms;
    int64_t tx_since, tx_first_report, tx_ended; /* monotonic ms */
    int tx_gap;                                  /* ms from one transaction to the next */
    unsigned tx_smooth;                          /* transactions in a row for which it was enough */
    size_t tx_bytes;
    uint64_t commit_seq;

    /* at least once, at most once */
    struct cdcd_tracker tracker;
    struct kafka_state_mark *marks; /* states whose batches are not delivered yet */
    size_t nmarks, marks_cap;
    uint64_t gate; /* at most once: batches up to here may be produced */
    bool position_in_flight;
    uint64_t position_seq; /* what the position record in flight stands for */
    int64_t position_at;

    bool broken;
    bool fault_set;
    struct cdcd_error fault; /* from a callback */
    bool given_up;           /* records were purged; the reason comes in other reports */
    bool fenced;             /* the fault is fencing */
    bool fault_refusal;      /* the fault is the last refusal: its text is made later */

    struct kafka_refusal *refusals;
    size_t nrefusals, refusals_cap;
    rd_kafka_vu_t *vu; /* arguments of produceva, reused */
    size_t vu_cap;
    struct kafka_counters counters;
};

/* ---- client.c ---- */
void kafka_link_init(struct kafka_link *link, bool source, const char *bootstrap,
                     const char *pipeline, const struct cdcd_strmap *properties);
/* A configuration with connection, callbacks and the user's properties; its opaque is the link.
 * NULL and *err on a property that librdkafka does not take. */
rd_kafka_conf_t *kafka_conf(struct kafka_link *link, struct cdcd_error *err);
enum cdcd_rc kafka_conf_set(const struct kafka_link *link, rd_kafka_conf_t *conf, const char *name,
                            const char *value, struct cdcd_error *err);
/* Takes the configuration, also on error. */
rd_kafka_t *kafka_client(const struct kafka_link *link, rd_kafka_type_t type, rd_kafka_conf_t *conf,
                         struct cdcd_error *err);
enum cdcd_error_class kafka_class(rd_kafka_resp_err_t code);
/* What to do about a broker's or librdkafka's error; "" when there is nothing to say. */
const char *kafka_mend(rd_kafka_resp_err_t code);
/* Whether closing a consumer now does not end the process (until librdkafka 2.3). */
bool kafka_may_close(struct kafka_link *link);
/* Error with the class and mend of the code: "TEXT: REASON; MEND". */
enum cdcd_rc kafka_fail(struct kafka_link *link, struct cdcd_error *err, rd_kafka_resp_err_t code,
                        const char *reason, const char *fmt, ...) CDCD_PRINTF(5, 6);
enum cdcd_rc kafka_unreachable(struct kafka_link *link, struct cdcd_error *err);

/* ---- topics.c ---- */
/* Makes topics ready for records of this generation: all in a few requests. */
enum cdcd_rc kafka_topics_ready(struct cdcd_sink *s, struct kafka_topic **topics, size_t n,
                                struct cdcd_error *err);
enum cdcd_rc kafka_topics_prepare(struct cdcd_sink *s, struct cdcd_topic *const *topics, size_t n,
                                  struct cdcd_error *err);
/* All that were ready before the producer was made anew, and the sink's own. */
enum cdcd_rc kafka_topics_again(struct cdcd_sink *s, struct cdcd_error *err);
/* Releases the handles, before the producer goes. */
void kafka_topics_release(struct cdcd_sink *s);
/* Asks anew for max.message.bytes. */
void kafka_topic_refresh(struct cdcd_sink *s, struct kafka_topic *kt);

/* All topics of the cluster, sorted by name: *out owned by the caller. */
enum cdcd_rc kafka_list(struct kafka_link *link, rd_kafka_t *rk,
                        const struct rd_kafka_metadata **out, struct cdcd_error *err);
/* NULL: not there. */
const struct rd_kafka_metadata_topic *kafka_find_topic(const struct rd_kafka_metadata *md,
                                                       const char *name);
enum cdcd_rc kafka_list_topics(struct cdcd_sink *s, const struct rd_kafka_metadata **out,
                               struct cdcd_error *err);

struct kafka_setting {
    char cleanup_policy[32]; /* "" unknown */
    int64_t max_bytes;       /* 0 unknown */
};
/* Settings of topics, in their order; leaves unknown what may not be read. */
void kafka_settings(struct kafka_link *link, rd_kafka_t *rk, const char *const *names, size_t n,
                    struct kafka_setting *out);
void kafka_describe(struct cdcd_sink *s, const char *const *names, size_t n,
                    struct kafka_setting *out);

/* ---- position.c ---- */
struct kafka_reading {
    const char *topic;
    bool there;            /* it exists: a broker that does not know it has just started */
    const char *gone;      /* what that means when it stays unknown; NULL: the broker's error */
    const char *needed_by; /* with gone: the topic of the position that needs it */
    bool whole;            /* from the beginning; else backwards until something is found */
    bool uncommitted;      /* open and aborted transactions too */
    int64_t from;          /* with whole: not what is before this */
    int64_t *end;          /* where it ended, or NULL */
    void *ctx;
    /* True: this is what was looked for. */
    bool (*take)(void *ctx, const rd_kafka_message_t *m);
};
/* Reads what is committed in the one partition of a topic. A topic that is not there is empty. */
enum cdcd_rc kafka_read(struct kafka_link *link, const struct kafka_reading *what,
                        struct cdcd_error *err);
/* The newest record of this pipeline: its state (empty: none) and what else it says. */
enum cdcd_rc kafka_position_read(struct cdcd_sink *s, struct cdcd_buf *state,
                                 struct kafka_held *held, struct cdcd_error *err);
/* Produces s->state as the position. AGAIN: the queue is full. */
enum cdcd_rc kafka_position_produce(struct cdcd_sink *s, struct cdcd_error *err);

/* ---- notes.c ---- */
void kafka_notes_init(struct kafka_notes *n);
void kafka_notes_free(struct kafka_notes *n);
void kafka_notes_clear(struct kafka_notes *n);
/* Adds a batch's notes to *to, which is made when it is NULL. */
void kafka_notes_change(struct cdcd_notes **to, const struct cdcd_batch *b);
void kafka_notes_add(struct kafka_notes *n, const struct cdcd_notes *changed);
/* The notes of the position that was read, into *out. LOSS when they are not all there. */
enum cdcd_rc kafka_notes_read(struct cdcd_sink *s, const struct kafka_held *held,
                              struct cdcd_notes *out, struct cdcd_error *err);
/* Produces what changed, before the position that needs it. AGAIN: not done yet (the queue is
 * full; or, but for exactly once, the broker has not confirmed all). */
enum cdcd_rc kafka_notes_produce(struct cdcd_sink *s, struct cdcd_error *err);

/* ---- refuse.c ---- */
/* From the delivery report of a record that was not delivered: sets the sink's fault. */
void kafka_refused(struct cdcd_sink *s, const rd_kafka_message_t *m);
/* The error of a fault that a refusal set; asks the broker for the limit. */
enum cdcd_rc kafka_refusal_error(struct cdcd_sink *s, struct cdcd_error *err);
/* What is to be done with a record before it is produced. */
enum kafka_verdict { KAFKA_SEND, KAFKA_SEND_DEAD_LETTER, KAFKA_DROP, KAFKA_FAIL };
enum kafka_verdict kafka_judge(struct cdcd_sink *s, const struct cdcd_record *r,
                               struct kafka_topic *kt, uint64_t seq, rd_kafka_resp_err_t *code,
                               struct cdcd_error *err);
/* librdkafka itself refused the record. */
enum kafka_verdict kafka_judge_local(struct cdcd_sink *s, const struct cdcd_record *r,
                                     struct kafka_topic *kt, uint64_t seq, rd_kafka_resp_err_t code,
                                     struct cdcd_error *err);
/* True when the record may go to the dead-letter topic with its value. */
bool kafka_dead_letter_value(struct cdcd_sink *s, const struct cdcd_record *r, uint64_t seq);
/* Everything up to seq is durable: refusals met on the way are settled. */
void kafka_refusals_settle(struct cdcd_sink *s, uint64_t seq);
void kafka_refusals_free(struct cdcd_sink *s);
size_t kafka_record_bytes(const struct cdcd_record *r);

/* ---- producer.c ---- */
/* Begins a producer; for exactly once it fences older ones. Topics are not ready yet. */
enum cdcd_rc kafka_producer_begin(struct cdcd_sink *s, struct cdcd_error *err);
/* Gets every batch back and ends the producer. */
void kafka_producer_end(struct cdcd_sink *s);
/* A new producer with new settings, while nothing is in flight and no transaction open. */
enum cdcd_rc kafka_producer_restart(struct cdcd_sink *s, struct cdcd_error *err);
/* A transaction that says which instance has the pipeline now. */
enum cdcd_rc kafka_claim(struct cdcd_sink *s, struct cdcd_error *err);
/* Serves callbacks for at most wait_ms; reports the fault, if any. now: small sets are sent
 * without waiting for more. */
enum cdcd_rc kafka_serve(struct cdcd_sink *s, int wait_ms, bool now, struct cdcd_error *err);
/* How long, in ms, the next transaction should not begin yet. */
int kafka_gap(const struct cdcd_sink *s);
/* Commits, or stores the position, when it is time. */
enum cdcd_rc kafka_settle(struct cdcd_sink *s, bool more, bool flush, struct cdcd_error *err);
/* The error of a call of librdkafka's; destroys e. Fencing is looked into. */
enum cdcd_rc kafka_error(struct cdcd_sink *s, rd_kafka_error_t *e, const char *doing,
                         struct cdcd_error *err);

/* ---- pump.c ---- */
/* Produces as much of what was taken as fits. */
enum cdcd_rc kafka_pump(struct cdcd_sink *s, struct cdcd_error *err);
/* A record of this topic came into flight, or (negative) is out of it. */
void kafka_in_flight(struct cdcd_sink *s, struct kafka_topic *kt, int64_t bytes);
void kafka_delivered(rd_kafka_t *rk, const rd_kafka_message_t *m, void *opaque);
/* Gives back what was taken and not produced. */
void kafka_pump_drop(struct cdcd_sink *s);
void kafka_mark(struct cdcd_sink *s, const struct cdcd_batch *b);
/* Moves the newest state of a batch up to seq into s->state. */
void kafka_marks_take(struct cdcd_sink *s, uint64_t seq);
void kafka_durable(struct cdcd_sink *s, uint64_t seq);

/* ---- check.c ---- */
enum cdcd_rc kafka_check(const void *config, const struct cdcd_sink_env *env,
                         struct cdcd_report *report, struct cdcd_error *err);

/* ---- sink.c ---- */
/* A sink that is not connected yet. */
/* loop.c. CONFIG error: the source reads the topics that the sink writes. */
enum cdcd_rc kafka_refuse_loop(const struct kafka_config *config, const struct cdcd_sink_env *env,
                               struct cdcd_error *err);
struct cdcd_sink *kafka_sink_new(const struct kafka_config *config,
                                 const struct cdcd_sink_env *env);
void kafka_sink_free(struct cdcd_sink *s);

#endif
