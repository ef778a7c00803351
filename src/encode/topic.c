#include "topic.h"

#include <cdcd/json.h>
#include <cdcd/log.h>

/* Kafka's own limit: a topic's folder is named TOPIC-PARTITION and may have 255 bytes. */
#define NAME_MAX_BYTES 249

struct cdcd_topic_entry {
    struct cdcd_topic topic; /* first: the public part */
    struct cdcd_topic_entry *next;
    const char *owner; /* table that made it, or NULL */
    bool warned;
};

void cdcd_topics_init(struct cdcd_topics *t)
{
    t->first = NULL;
    cdcd_arena_init(&t->arena, 4096);
}

void cdcd_topics_free(struct cdcd_topics *t)
{
    cdcd_arena_free(&t->arena);
    t->first = NULL;
}

/* A character that Kafka does not allow becomes one _, and two beyond U+FFFF: Debezium goes by
 * the units of UTF-16. */
static size_t sanitize(char *out, const char *name, size_t len)
{
    size_t n = 0;
    for (size_t i = 0; i < len && n < NAME_MAX_BYTES; i++) {
        unsigned char c = (unsigned char)name[i];
        bool allowed = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                       c == '.' || c == '_' || c == '-';
        if ((c & 0xc0) == 0x80) /* of the character before */
            continue;
        out[n++] = allowed ? (char)c : '_';
        if (c >= 0xf0 && n < NAME_MAX_BYTES)
            out[n++] = '_';
    }
    /* The two names that would be folders of their own. */
    if ((n == 1 && out[0] == '.') || (n == 2 && out[0] == '.' && out[1] == '.'))
        memset(out, '_', n);
    return n;
}

static void check_owner(struct cdcd_topic_entry *e, const char *owner, bool keyed)
{
    if (!owner || !e->owner || strcmp(owner, e->owner) == 0)
        return;
    if (!e->warned)
        cdcd_warn(
            "encode",
            "tables %s and %s both map to topic %s: their records are mixed there; rename one "
            "of them, or exclude it with table.exclude.list",
            e->owner, owner, e->topic.name.ptr);
    e->warned = true;
    e->topic.keyed = e->topic.keyed && keyed;
}

struct cdcd_topic *cdcd_topics_get(struct cdcd_topics *t, const char *name, size_t len,
                                   const char *owner, bool keyed)
{
    char clean[NAME_MAX_BYTES];
    struct cdcd_slice key = {clean, sanitize(clean, name, len)};
    for (struct cdcd_topic_entry *e = t->first; e; e = e->next) {
        if (cdcd_slice_eq(e->topic.name, key)) {
            check_owner(e, owner, keyed);
            return &e->topic;
        }
    }
    struct cdcd_topic_entry *e = cdcd_arena_alloc(&t->arena, sizeof(*e));
    *e = (struct cdcd_topic_entry){.next = t->first};
    e->topic.name = (struct cdcd_slice){cdcd_arena_dup(&t->arena, clean, key.len), key.len};
    e->topic.keyed = keyed;
    if (owner)
        e->owner = cdcd_arena_dup(&t->arena, owner, strlen(owner));
    struct cdcd_writer w;
    cdcd_writer_begin(&w, &t->arena);
    cdcd_json_string(&w, clean, key.len);
    e->topic.name_json = cdcd_writer_end(&w);
    t->first = e;
    return &e->topic;
}
