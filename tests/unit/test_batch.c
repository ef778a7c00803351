/* Batches: chains, held schemas, reuse. */
#include <cdcd/batch.h>

#include <setjmp.h>
#include <stdio.h>

#include <cmocka.h>

static void events_and_records_stay_in_order(void **state)
{
    (void)state;
    struct cdcd_batch *b = cdcd_batch_new();
    for (int64_t i = 0; i < 5000; i++) {
        struct cdcd_event *e = cdcd_batch_event(b, CDCD_OP_CREATE, NULL);
        assert_null(e->after);
        assert_null(e->tx_id.ptr);
        e->ts_us = i;
        cdcd_batch_record(b)->timestamp_ms = -i;
    }
    assert_int_equal(b->nevents, 5000);
    assert_int_equal(b->nrecords, 5000);
    int64_t n = 0;
    for (struct cdcd_event *e = b->events; e; e = e->next)
        assert_int_equal(e->ts_us, n++);
    assert_int_equal(n, 5000);
    n = 0;
    for (struct cdcd_record *r = b->records; r; r = r->next)
        assert_int_equal(r->timestamp_ms, -n++);
    assert_int_equal(n, 5000);
    cdcd_batch_free(b);
}

static void full_by_number_or_by_bytes(void **state)
{
    (void)state;
    struct cdcd_batch *b = cdcd_batch_new();
    assert_false(cdcd_batch_full(b));
    for (int i = 0; i < CDCD_BATCH_EVENTS - 1; i++)
        b->nevents++;
    assert_false(cdcd_batch_full(b));
    cdcd_batch_event(b, CDCD_OP_UPDATE, NULL);
    assert_true(cdcd_batch_full(b));
    cdcd_batch_reset(b);
    assert_false(cdcd_batch_full(b));
    cdcd_arena_alloc(&b->arena, CDCD_BATCH_BYTES);
    assert_true(cdcd_batch_full(b));
    cdcd_batch_free(b);
}

static void schemas_live_as_long_as_the_batch(void **state)
{
    (void)state;
    struct cdcd_batch *b = cdcd_batch_new();
    struct cdcd_schema *s[20];
    for (int i = 0; i < 20; i++)
        s[i] = cdcd_schema_new("db", "public", "t", 1);
    for (int round = 0; round < 3; round++) {
        for (int i = 0; i < 20; i++) {
            assert_ptr_equal(cdcd_batch_event(b, CDCD_OP_READ, s[i])->schema, s[i]);
            cdcd_batch_event(b, CDCD_OP_READ, s[i]);
        }
    }
    /* The same schema again and again is held once. */
    uint32_t held = b->nheld;
    for (int i = 0; i < 100; i++)
        cdcd_batch_event(b, CDCD_OP_READ, s[19]);
    assert_int_equal(b->nheld, held);
    for (int i = 0; i < 20; i++)
        assert_true(atomic_load(&s[i]->refs) > 1);
    cdcd_batch_reset(b);
    for (int i = 0; i < 20; i++)
        assert_int_equal(atomic_load(&s[i]->refs), 1);
    cdcd_batch_event(b, CDCD_OP_READ, s[0]);
    cdcd_batch_free(b);
    for (int i = 0; i < 20; i++) {
        assert_int_equal(atomic_load(&s[i]->refs), 1);
        cdcd_schema_unref(s[i]);
    }
}

static void reset_forgets_everything_but_the_memory(void **state)
{
    (void)state;
    struct cdcd_batch *b = cdcd_batch_new();
    for (int i = 0; i < 2000; i++)
        cdcd_batch_event(b, CDCD_OP_CREATE, NULL);
    b->position = (struct cdcd_slice){"{}", 2};
    b->state = b->position;
    b->seq = 7;
    b->caught_up = b->snapshot = b->chunk_done = true;
    b->chunk = 3;
    b->outstanding = 2;
    b->sink = b;
    struct cdcd_arena_chunk *first = b->arena.first;
    cdcd_batch_reset(b);
    assert_non_null(first);
    assert_non_null(b->arena.first);
    assert_null(b->events);
    assert_null(b->last_event);
    assert_null(b->position.ptr);
    assert_null(b->state.ptr);
    assert_null(b->sink);
    assert_false(b->caught_up || b->snapshot || b->chunk_done);
    assert_int_equal(b->seq + b->chunk + b->outstanding + b->nevents + b->arena.used, 0);
    /* A batch that was once huge does not stay so. */
    cdcd_arena_alloc(&b->arena, 50u << 20);
    cdcd_batch_reset(b);
    size_t kept = 0;
    for (struct cdcd_arena_chunk *c = b->arena.first; c; c = c->next)
        kept += c->cap;
    assert_true(kept <= 2u << 20);
    cdcd_batch_free(b);
    cdcd_batch_free(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(events_and_records_stay_in_order),
        cmocka_unit_test(full_by_number_or_by_bytes),
        cmocka_unit_test(schemas_live_as_long_as_the_batch),
        cmocka_unit_test(reset_forgets_everything_but_the_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
