/*
 * topic: names of topics and what is known of each. Publish thread.
 */
#ifndef CDCD_ENCODE_TOPIC_H
#define CDCD_ENCODE_TOPIC_H

#include <cdcd/batch.h>

/* All topics of a pipeline; owned by the encoder. */
struct cdcd_topics {
    struct cdcd_topic_entry *first;
    struct cdcd_arena arena;
};

void cdcd_topics_init(struct cdcd_topics *t);
void cdcd_topics_free(struct cdcd_topics *t);

/* The topic for a name, which is first made one that Kafka allows: every byte outside
 * [A-Za-z0-9._-] becomes '_', what is over 249 bytes is cut. `owner` names the table (or is
 * NULL): a second owner of one topic is warned about once, and one without a key makes the
 * topic a keyless one. */
struct cdcd_topic *cdcd_topics_get(struct cdcd_topics *t, const char *name, size_t len,
                                   const char *owner, bool keyed);

#endif
