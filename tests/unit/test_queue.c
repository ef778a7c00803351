/* The batch queue: order, timeouts, closing, and many threads. */
#include "queue.h"

#include <cdcd/plugin.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static void keeps_order(void **state)
{
    (void)state;
    struct cdcd_queue q;
    struct cdcd_batch *b[3];
    cdcd_queue_init(&q);
    for (int i = 0; i < 3; i++)
        cdcd_queue_push(&q, b[i] = cdcd_batch_new());
    assert_int_equal(cdcd_queue_len(&q), 3);
    for (int i = 0; i < 3; i++) {
        struct cdcd_batch *got = cdcd_queue_pop(&q, 0);
        assert_ptr_equal(got, b[i]);
        assert_null(got->next);
        cdcd_batch_free(got);
    }
    assert_null(cdcd_queue_pop(&q, 0));
    cdcd_queue_destroy(&q);
}

static void waits_no_longer_than_told(void **state)
{
    (void)state;
    struct cdcd_queue q;
    cdcd_queue_init(&q);
    int64_t began = cdcd_now_ms();
    assert_null(cdcd_queue_pop(&q, 30));
    assert_true(cdcd_now_ms() - began >= 29);
    cdcd_queue_destroy(&q);
}

static void closed_gives_what_is_there(void **state)
{
    (void)state;
    struct cdcd_queue q;
    cdcd_queue_init(&q);
    cdcd_queue_push(&q, cdcd_batch_new());
    cdcd_queue_close(&q);
    assert_false(cdcd_queue_drained(&q));
    struct cdcd_batch *b = cdcd_queue_pop(&q, 1000);
    assert_non_null(b);
    assert_true(cdcd_queue_drained(&q));
    assert_null(cdcd_queue_pop(&q, 100000)); /* at once, not after 100 s */
    cdcd_queue_push(&q, b);                  /* destroy frees it */
    cdcd_queue_reopen(&q);
    assert_false(cdcd_queue_drained(&q));
    cdcd_queue_destroy(&q);
}

struct pair {
    struct cdcd_queue a, b;
};

static void *mover(void *arg)
{
    struct pair *p = arg;
    for (int i = 0; i < 20000; i++) {
        struct cdcd_batch *b = cdcd_queue_pop(&p->a, 10000);
        assert_non_null(b);
        cdcd_queue_push(&p->b, b);
    }
    return NULL;
}

static void threads_lose_nothing(void **state)
{
    (void)state;
    struct pair p;
    pthread_t t[2];
    cdcd_queue_init(&p.a);
    cdcd_queue_init(&p.b);
    for (int i = 0; i < 5; i++)
        cdcd_queue_push(&p.a, cdcd_batch_new());
    for (int i = 0; i < 2; i++)
        assert_int_equal(pthread_create(&t[i], NULL, mover, &p), 0);
    for (int i = 0; i < 40000; i++) {
        struct cdcd_batch *b = cdcd_queue_pop(&p.b, 10000);
        assert_non_null(b);
        cdcd_queue_push(&p.a, b);
    }
    for (int i = 0; i < 2; i++)
        pthread_join(t[i], NULL);
    assert_int_equal(cdcd_queue_len(&p.a) + cdcd_queue_len(&p.b), 5);
    cdcd_queue_destroy(&p.a);
    cdcd_queue_destroy(&p.b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(keeps_order),
        cmocka_unit_test(waits_no_longer_than_told),
        cmocka_unit_test(closed_gives_what_is_there),
        cmocka_unit_test(threads_lose_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
