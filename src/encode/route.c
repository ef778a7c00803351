/*
 * Records that come from topics: each keeps the topic that it came from, by name.
 */
#include "dbz.h"

void cdcd_encoder_route(struct cdcd_encoder *e, struct cdcd_batch *b)
{
    struct cdcd_topic *last = NULL; /* neighbours are mostly of one topic */
    for (struct cdcd_record *r = b->records; r; r = r->next) {
        if (!last || !cdcd_slice_eq(last->name, r->topic_name))
            last = cdcd_topics_get(&e->topics, r->topic_name.ptr, r->topic_name.len, NULL, true);
        r->topic = last;
        b->bytes += r->key.len + r->value.len;
    }
}
