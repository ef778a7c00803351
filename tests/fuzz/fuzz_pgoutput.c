/*
 * The stream on hostile bytes. Input: frames of a length (u16, big-endian) and that many bytes of
 * one pgoutput message; a frame of length 0 is a keepalive. Whatever comes, nothing may be read
 * out of bounds, a row may only be delivered within a transaction, and the position never goes
 * back.
 */
#include "stream.h"

#include <assert.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct pg_types *types;
static const struct pg_config cfg = {.slot_name = "fuzz",
                                     .publication_name = "p",
                                     .spill_dir = (char *)"/tmp",
                                     .spill_max_bytes = 1 << 20};

static void check(const struct cdcd_batch *b, const struct cdcd_event *seen)
{
    for (const struct cdcd_event *e = seen ? seen->next : b->events; e; e = e->next) {
        assert(e->pos.stream && e->pos.commit);
        assert(e->source);
        assert(e->op != CDCD_OP_CREATE || (e->schema && e->after && !e->before));
        assert(e->op != CDCD_OP_DELETE || (e->schema && e->before && !e->after));
    }
}

static enum cdcd_rc one(struct pg_stream *st, const uint8_t *p, size_t n, pg_lsn lsn,
                        struct cdcd_batch *b, struct cdcd_error *err)
{
    if (n == 0)
        return pg_stream_keepalive(st, lsn, err);
    char *copy = malloc(n); /* exactly its size, and gone afterwards */
    memcpy(copy, p, n);
    enum cdcd_rc rc = pg_stream_feed(st, lsn, 1, (struct cdcd_slice){copy, n}, b, err);
    free(copy);
    while (rc == CDCD_OK && pg_stream_replaying(st)) {
        if (cdcd_batch_full(b))
            cdcd_batch_reset(b);
        rc = pg_stream_replay(st, b, err);
    }
    return rc;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct cdcd_source_env env = {.pipeline = "fuzz", .want_truncate = true, .want_message = true};
    struct pg_position from = {.lsn = 1, .done = 1}, p;
    struct cdcd_error err = {0};
    struct pg_stream *st = NULL;
    if (!types)
        types = pg_types_new();
    if (size < 1)
        return 0;
    env.tx_metadata = data[0] & 1;
    if (data[0] & 2) {
        from.tx = 100;
        from.ord = 1;
    }
    struct pg_rel_env rel_env = {.db = "db", .types = types};
    if (pg_stream_new(&cfg, &env, &rel_env, &from, &st, &err) != CDCD_OK)
        abort();
    struct cdcd_batch *b = cdcd_batch_new();
    pg_lsn done = from.done, lsn = 50;
    for (size_t i = 1; i + 2 <= size; lsn++) {
        size_t n = (size_t)data[i] << 8 | data[i + 1];
        i += 2;
        if (n > size - i)
            n = size - i;
        struct cdcd_event *seen = b->last_event;
        if (one(st, data + i, n, lsn, b, &err) != CDCD_OK)
            break;
        i += n;
        check(b, b->events ? seen : NULL);
        pg_stream_position(st, &p);
        assert(p.done >= done && p.lsn <= p.done);
        done = p.done;
        if (cdcd_batch_full(b))
            cdcd_batch_reset(b);
    }
    cdcd_batch_free(b);
    pg_stream_free(st);
    return 0;
}
