#include <cdcd/batch.h>

#include <stdlib.h>

/* An ordinary batch has some 256 KB of events and 900 KB of encoded records: five chunks.
 * What an unusual one took beyond that goes back to the system at its reset. */
#define CHUNK_SIZE ((256u << 10) - 64)
#define KEEP_BYTES (1536u << 10)

/* The batch holds each schema once, as far back as a look at the newest few can tell. */
static void batch_hold(struct cdcd_batch *b, struct cdcd_schema *schema)
{
    for (uint32_t i = b->nheld, tries = 8; i > 0 && tries > 0; i--, tries--) {
        if (b->held[i - 1] == schema)
            return;
    }
    if (b->nheld == b->held_cap) {
        b->held_cap = b->held_cap ? 2 * b->held_cap : 8;
        b->held = cdcd_xrealloc(b->held, b->held_cap * sizeof(b->held[0]));
    }
    b->held[b->nheld++] = cdcd_schema_ref(schema);
}

struct cdcd_event *cdcd_batch_event(struct cdcd_batch *b, enum cdcd_op op,
                                    struct cdcd_schema *schema)
{
    struct cdcd_event *e = cdcd_arena_alloc(&b->arena, sizeof(*e));
    *e = (struct cdcd_event){.op = (uint8_t)op, .schema = schema};
    if (schema)
        batch_hold(b, schema);
    if (b->last_event)
        b->last_event->next = e;
    else
        b->events = e;
    b->last_event = e;
    b->nevents++;
    return e;
}

struct cdcd_record *cdcd_batch_record(struct cdcd_batch *b)
{
    struct cdcd_record *r = cdcd_arena_alloc(&b->arena, sizeof(*r));
    *r = (struct cdcd_record){.partition = -1};
    if (b->last_record)
        b->last_record->next = r;
    else
        b->records = r;
    b->last_record = r;
    b->nrecords++;
    return r;
}

struct cdcd_batch *cdcd_batch_new(void)
{
    struct cdcd_batch *b = cdcd_xcalloc(1, sizeof(*b));
    cdcd_arena_init(&b->arena, CHUNK_SIZE);
    return b;
}

static void batch_release(struct cdcd_batch *b)
{
    for (uint32_t i = 0; i < b->nheld; i++)
        cdcd_schema_unref(b->held[i]);
    b->nheld = 0;
}

void cdcd_batch_reset(struct cdcd_batch *b)
{
    batch_release(b);
    cdcd_arena_reset(&b->arena, KEEP_BYTES);
    *b = (struct cdcd_batch){.arena = b->arena, .held = b->held, .held_cap = b->held_cap};
}

void cdcd_batch_free(struct cdcd_batch *b)
{
    if (!b)
        return;
    batch_release(b);
    free(b->held);
    cdcd_arena_free(&b->arena);
    free(b);
}
