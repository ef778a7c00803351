/* The state document: what is written is read back, and nothing else is accepted. */
#include "state.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static void roundtrip(const char *text)
{
    struct cdcd_state s;
    struct cdcd_error err = {0};
    struct cdcd_buf out;
    assert_int_equal(cdcd_state_parse(cdcd_slice_str(text), &s, &err), CDCD_OK);
    cdcd_buf_init(&out, 0);
    cdcd_state_write(&s, &out);
    assert_string_equal(cdcd_buf_cstr(&out), text);
    cdcd_buf_free(&out);
    cdcd_state_free(&s);
}

static void writes_what_it_reads(void **state)
{
    (void)state;
    roundtrip("{\"v\":1,\"position\":{\"lsn\":\"0/16B3748\"}}");
    roundtrip("{\"v\":1,\"position\":{},\"snapshot\":{\"table\":\"\",\"identity\":\"\","
              "\"passed\":\"0000000000000000\",\"chunks\":[],\"only\":[]}}");
    roundtrip("{\"v\":1,\"position\":{\"lsn\":\"0/1\"},\"snapshot\":{\"table\":\"a.\\\"q\\\" é\","
              "\"identity\":\"1.2\",\"passed\":\"00F0E1D2C3B4A596\",\"chunks\":[[\"\",\"(5,0)\"],["
              "\"(9,1)\",\"\"]],"
              "\"only\":[\"public.a\",\"public.b\"]}}");
}

static void reads_the_parts(void **state)
{
    (void)state;
    struct cdcd_state s;
    struct cdcd_error err = {0};
    const char *text =
        "{\"v\":1,\"position\":{\"a\":1},\"snapshot\":{\"table\":\"t\","
        "\"identity\":\"i\",\"passed\":\"1F\",\"chunks\":[[\"b\",\"e\"]],\"only\":[\"o\"]}}";
    assert_int_equal(cdcd_state_parse(cdcd_slice_str(text), &s, &err), CDCD_OK);
    assert_string_equal(s.position, "{\"a\":1}");
    assert_true(s.in_snapshot);
    assert_string_equal(s.table, "t");
    assert_int_equal(s.passed, 0x1f);
    assert_int_equal(s.nranges, 1);
    assert_string_equal(s.ranges[0].begin, "b");
    assert_string_equal(s.ranges[0].end, "e");
    assert_int_equal(s.only.n, 1);
    cdcd_state_free(&s);
}

static void refuses_what_is_no_state(void **state)
{
    (void)state;
    static const char *const bad[] = {"",
                                      "null",
                                      "[]",
                                      "{",
                                      "{\"v\":2,\"position\":{}}",
                                      "{\"position\":{}}",
                                      "{\"v\":1,\"snapshot\":{\"chunks\":[[1,2]]}}",
                                      "{\"v\":1,\"snapshot\":{\"only\":[3]}}"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct cdcd_state s;
        struct cdcd_error err = {0};
        assert_int_equal(cdcd_state_parse(cdcd_slice_str(bad[i]), &s, &err), CDCD_ERROR);
        assert_int_equal(err.class, CDCD_ERR_FATAL);
        assert_null(s.position);
    }
}

static void stream_state_is_a_state(void **state)
{
    (void)state;
    struct cdcd_arena a;
    cdcd_arena_init(&a, 4096);
    struct cdcd_slice text = cdcd_state_stream(&a, cdcd_slice_str("{\"lsn\":\"0/AB\"}"));
    struct cdcd_state s;
    struct cdcd_error err = {0};
    assert_int_equal(cdcd_state_parse(text, &s, &err), CDCD_OK);
    assert_string_equal(s.position, "{\"lsn\":\"0/AB\"}");
    assert_false(s.in_snapshot);
    cdcd_state_free(&s);
    cdcd_arena_free(&a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(writes_what_it_reads),
        cmocka_unit_test(reads_the_parts),
        cmocka_unit_test(refuses_what_is_no_state),
        cmocka_unit_test(stream_state_is_a_state),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
