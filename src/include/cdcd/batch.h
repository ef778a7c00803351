/*
 * batch: the unit of memory, queueing, in-flight accounting and acknowledgement.
 *
 * A pipeline owns a fixed number of batches that go round: a source fills one from
 * the free queue, the publish thread encodes it and gives it to the sink, the sink
 * gives it back when it no longer needs the bytes. No free batch is backpressure.
 * Handing a batch over hands over all rights; one thread holds a batch.
 */
#ifndef CDCD_BATCH_H
#define CDCD_BATCH_H

#include "event.h"
#include "notes.h"

struct cdcd_topic; /* a sink's view of a topic: record.topic->sink is the sink's own */

struct cdcd_header {
    struct cdcd_slice name, value;
    bool json; /* value is JSON text */
};

/* What is known of a topic. Owned by the encoder, lives as long as the pipeline. */
struct cdcd_topic {
    struct cdcd_topic *next;
    struct cdcd_slice name;      /* NUL-terminated */
    struct cdcd_slice name_json; /* with quotes, escaped */
    bool keyed;                  /* records have keys: cleanup.policy=compact; else delete */
    void *sink;                  /* the sink's own, NULL at first; freed by the sink's close */
};

/* One encoded record. Bytes live in the batch's arena (or longer). */
struct cdcd_record {
    struct cdcd_record *next;
    struct cdcd_topic *topic;
    struct cdcd_slice key;   /* ptr NULL: null key */
    struct cdcd_slice value; /* ptr NULL: tombstone */
    const struct cdcd_header *headers;
    uint32_t nheaders;
    int64_t timestamp_ms; /* commit time */
    /* Of a source of records: the topic's name (topic is NULL until the record is published), and
     * where the record stood there. partition -1: of no source of records. */
    struct cdcd_slice topic_name;
    int32_t partition;
    int64_t offset;
};

/* For sinks that want them: the shape of a table's rows, before the first record of it in a
 * session. Key: the value of the records' header cdcd.schema. Value:
 * {"topic":"...","key":SCHEMA|null, "row":SCHEMA|null} with the Connect schemas of key and row; row
 * null: documents (MongoDB). */
#define CDCD_SCHEMA_TOPIC "__cdcd.schemas"

struct cdcd_batch {
    struct cdcd_batch *next; /* of the queue that holds it */
    struct cdcd_arena arena;
    struct cdcd_event *events, *last_event;
    uint32_t nevents;
    struct cdcd_record *records, *last_record;
    uint32_t nrecords;
    size_t bytes; /* of keys and values of the records */

    /* Source position after the last event, as the source's own JSON text; the stream
     * may be resumed there. ptr NULL: no new position. Lives in the arena. */
    struct cdcd_slice position;
    /* True when the source would have to wait for more: publish without delay. */
    bool caught_up;
    /* Ends inside a transaction of the source: the rest comes soon, and a sink that has
     * transactions of its own should not end one here. */
    bool in_tx;
    /* What the source wants remembered from here on; see notes.h. Needs a state in the same batch,
     * so a position too, except in batches that the coordinator gives a state. */
    struct cdcd_note *notes, *last_note;

    /* Snapshot batches: */
    bool snapshot;
    uint32_t chunk;                 /* number of the chunk within its table */
    struct cdcd_slice chunk_cursor; /* read on from here after a crash; ptr NULL = unchanged */
    bool chunk_done;

    /* Set by the pipeline before sink.write: */
    uint64_t seq;            /* 1, 2, 3, ... within one session of the sink */
    struct cdcd_slice state; /* what the sink must store with this batch; ptr NULL: nothing new */

    /* The sink's own: */
    uint32_t outstanding;
    void *sink;

    /* Schemas kept alive by this batch: */
    struct cdcd_schema **held;
    uint32_t nheld, held_cap;
};

/* A batch is full when either is passed: events of 300 to 1,000 bytes give some hundred
 * to a thousand a batch, which hides queue costs and stays within CPU caches. */
#define CDCD_BATCH_EVENTS 1024
#define CDCD_BATCH_BYTES  (256u << 10)

static inline bool cdcd_batch_full(const struct cdcd_batch *b)
{
    return b->nevents >= CDCD_BATCH_EVENTS || b->arena.used >= CDCD_BATCH_BYTES;
}

/* Appends a zeroed event. If schema is not NULL the batch takes a reference on it. */
struct cdcd_event *cdcd_batch_event(struct cdcd_batch *b, enum cdcd_op op,
                                    struct cdcd_schema *schema);
/* n cells, uninitialised. */
static inline struct cdcd_cell *cdcd_batch_cells(struct cdcd_batch *b, size_t n)
{
    return (struct cdcd_cell *)cdcd_arena_alloc(&b->arena, n * sizeof(struct cdcd_cell));
}
/* Appends a zeroed record. */
struct cdcd_record *cdcd_batch_record(struct cdcd_batch *b);

struct cdcd_batch *cdcd_batch_new(void);
void cdcd_batch_free(struct cdcd_batch *b);
/* Empties it for reuse. */
void cdcd_batch_reset(struct cdcd_batch *b);

#endif
