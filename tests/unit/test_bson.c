/* BSON: walking over elements, and what is no BSON. */
#include "bson_golden.h"
#include "bson_test.h"

static const struct cdcd_bson_style strict = {.form = CDCD_BSON_STRICT};

static void elements_in_order(void **state)
{
    (void)state;
    struct cdcd_buf b;
    struct cdcd_bson_iter it;
    struct cdcd_bson_element e;
    cdcd_buf_init(&b, 0);
    bson_frame(&b, BYTES("\x10_id\0\x07\0\0\0"
                         "\x02\0\x02\0\0\0x\0"
                         "\x0an\0"
                         "\x03"
                         "d.e\0\x08\0\0\0\x0ax\0\0"
                         "\x12$l\0\xff\xff\xff\xff\xff\xff\xff\xff"));
    assert_true(cdcd_bson_iter_init(&it, cdcd_buf_slice(&b)));

    assert_int_equal(cdcd_bson_iter_next(&it, &e), 1);
    assert_int_equal(e.type, CDCD_BSON_INT32);
    assert_true(cdcd_slice_eq(e.name, cdcd_slice_str("_id")));
    assert_int_equal(e.value.len, 4);
    assert_int_equal(cdcd_bson_int32(e.value), 7);

    assert_int_equal(cdcd_bson_iter_next(&it, &e), 1);
    assert_int_equal(e.type, CDCD_BSON_STRING);
    assert_int_equal(e.name.len, 0);
    assert_int_equal(e.value.len, 6);

    assert_int_equal(cdcd_bson_iter_next(&it, &e), 1);
    assert_int_equal(e.type, CDCD_BSON_NULL);
    assert_int_equal(e.value.len, 0);

    assert_int_equal(cdcd_bson_iter_next(&it, &e), 1);
    assert_int_equal(e.type, CDCD_BSON_DOCUMENT);
    assert_true(cdcd_slice_eq(e.name, cdcd_slice_str("d.e")));
    assert_int_equal(e.value.len, 8);

    assert_int_equal(cdcd_bson_iter_next(&it, &e), 1);
    assert_int_equal(cdcd_bson_int64(e.value), -1);
    assert_int_equal(cdcd_bson_iter_next(&it, &e), 0);
    assert_int_equal(cdcd_bson_iter_next(&it, &e), 0);
    cdcd_buf_free(&b);
}

static void the_first_of_a_name_is_found(void **state)
{
    (void)state;
    struct cdcd_buf b;
    struct cdcd_bson_element e;
    cdcd_buf_init(&b, 0);
    bson_frame(&b, BYTES("\x03"
                         "d\0\x0c\0\0\0\x10z\0\1\0\0\0\0"
                         "\x10"
                         "a\0\1\0\0\0"
                         "\x10"
                         "a\0\2\0\0\0"
                         "\x10"
                         "ab\0\3\0\0\0"));
    assert_true(cdcd_bson_find(cdcd_buf_slice(&b), "a", &e));
    assert_int_equal(cdcd_bson_int32(e.value), 1);
    assert_true(cdcd_bson_find(cdcd_buf_slice(&b), "ab", &e));
    assert_int_equal(cdcd_bson_int32(e.value), 3);
    assert_false(cdcd_bson_find(cdcd_buf_slice(&b), "z", &e)); /* not on the first level */
    assert_false(cdcd_bson_find(cdcd_buf_slice(&b), "", &e));
    assert_false(cdcd_bson_find((struct cdcd_slice){b.ptr, b.len - 1}, "a", &e));
    assert_false(cdcd_bson_find((struct cdcd_slice){NULL, 0}, "a", &e));
    cdcd_buf_free(&b);
}

/* ---- malformed ---- */

/* Both must say the same. */
static bool both(struct cdcd_slice doc, const char **why)
{
    struct cdcd_arena a;
    struct cdcd_writer w;
    const char *why_json = NULL, *why_valid = NULL;
    cdcd_arena_init(&a, 64);
    cdcd_writer_begin(&w, &a);
    bool json = cdcd_bson_json(&w, doc, &strict, &why_json);
    cdcd_writer_end(&w);
    cdcd_arena_free(&a);
    bool valid = cdcd_bson_valid(doc, &why_valid);
    assert_int_equal(json, valid);
    if (!valid) {
        assert_non_null(why_json);
        assert_string_equal(why_json, why_valid);
    }
    *why = why_valid;
    return valid;
}

struct bad_case {
    const char *elements;
    size_t n;
    const char *why;
};

static const struct bad_case bad[] = {
    {BYTES("\x10"
           "a"),
     "a name has no end"},
    {BYTES("\x10"), "a name has no end"},
    {BYTES("\x10"
           "a\0\1\0\0"),
     "a value runs over the end of its document"},
    {BYTES("\x0a"
           "a\0\x12"
           "b\0"),
     "a value runs over the end of its document"},
    {BYTES("\x01"
           "a\0\1\2\3\4\5\6\7"),
     "a value runs over the end of its document"},
    {BYTES("\x13"
           "a\0\1\2\3\4\5\6\7"),
     "a value runs over the end of its document"},
    {BYTES("\x08"
           "a\0"),
     "a value runs over the end of its document"},
    {BYTES("\x08"
           "a\0\2"),
     "a boolean is neither 0 nor 1"},
    {BYTES("\x08"
           "a\0\xff"),
     "a boolean is neither 0 nor 1"},
    {BYTES("\x14"
           "a\0"),
     "an element has an unknown type"},
    {BYTES("\x7e"
           "a\0"),
     "an element has an unknown type"},
    {BYTES("\x80"
           "a\0"),
     "an element has an unknown type"},
    {BYTES("\0a\0"), "an element has an unknown type"},
    /* strings */
    {BYTES("\x02"
           "a\0\1\0\0"),
     "a string runs over the end of its document"},
    {BYTES("\x02"
           "a\0\0\0\0\0\0"),
     "the length of a string is wrong"},
    {BYTES("\x02"
           "a\0\xff\xff\xff\xff"
           "x\0"),
     "the length of a string is wrong"},
    {BYTES("\x02"
           "a\0\3\0\0\0x\0"),
     "the length of a string is wrong"},
    {BYTES("\x02"
           "a\0\2\0\0\0xy"),
     "a string does not end with NUL"},
    {BYTES("\x0d"
           "a\0\3\0\0\0x\0"),
     "the length of a string is wrong"},
    {BYTES("\x0e"
           "a\0\2\0\0\0xy"),
     "a string does not end with NUL"},
    {BYTES("\x0c"
           "a\0\2\0\0\0xy"),
     "a string does not end with NUL"},
    {BYTES("\x0c"
           "a\0\2\0\0\0x\0"
           "12345678901"),
     "a value runs over the end of its document"},
    /* documents */
    {BYTES("\x03"
           "a\0\5\0\0"),
     "a document runs over the end of the one around it"},
    {BYTES("\x03"
           "a\0\7\0\0\0\0"),
     "a document runs over the end of the one around it"},
    {BYTES("\x03"
           "a\0\xff\xff\xff\xff\0"),
     "a document runs over the end of the one around it"},
    {BYTES("\x03"
           "a\0\4\0\0\0\0"),
     "the length of a document is wrong"},
    {BYTES("\x04"
           "a\0\0\0\0\0\0"),
     "the length of a document is wrong"},
    {BYTES("\x04"
           "a\0\5\0\0\0\1"),
     "a document does not end with NUL"},
    {BYTES("\x03"
           "a\0\x08\0\0\0\x10"
           "b\0\0"),
     "a value runs over the end of its document"},
    {BYTES("\x04"
           "a\0\x08\0\0\0\x0a"
           "1\1\0"),
     "a name has no end"},
    /* binary data */
    {BYTES("\x05"
           "a\0\0\0\0\0"),
     "the length of binary data is wrong"},
    {BYTES("\x05"
           "a\0\1\0\0\0\0"),
     "the length of binary data is wrong"},
    {BYTES("\x05"
           "a\0\xff\xff\xff\xff\0x"),
     "the length of binary data is wrong"},
    /* regular expressions */
    {BYTES("\x0b"
           "a\0pattern"),
     "a regular expression has no end"},
    {BYTES("\x0b"
           "a\0pattern\0i"),
     "a regular expression has no end"},
    /* code with scope */
    {BYTES("\x0f"
           "a\0\x0d\0\0\0\1\0\0\0\0\5\0\0\0"),
     "the length of a code with scope is wrong"},
    {BYTES("\x0f"
           "a\0\x0d\0\0\0\1\0\0\0\0\5\0\0\0\0"),
     "the length of a code with scope is wrong"},
    {BYTES("\x0f"
           "a\0\x0f\0\0\0\1\0\0\0\0\5\0\0\0\0\0"),
     "the length of a code with scope is wrong"},
    {BYTES("\x0f"
           "a\0\x0f\0\0\0\1\0\0\0\0\5\0\0\0\0"),
     "the length of a code with scope is wrong"},
    {BYTES("\x0f"
           "a\0\x0e\0\0\0\x0b\0\0\0\0\5\0\0\0\0"),
     "the length of a string is wrong"},
    {BYTES("\x0f"
           "a\0\x0e\0\0\0\1\0\0\0\0\6\0\0\0\0"),
     "a document runs over the end of the one around it"},
};

static void malformed_elements(void **state)
{
    (void)state;
    struct cdcd_buf b;
    cdcd_buf_init(&b, 0);
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        const char *why = NULL;
        cdcd_buf_clear(&b);
        bson_frame(&b, bad[i].elements, bad[i].n);
        if (both(cdcd_buf_slice(&b), &why))
            fail_msg("case %zu (%s) was taken", i, bad[i].why);
        if (strcmp(why, bad[i].why) != 0)
            fail_msg("case %zu: got \"%s\", want \"%s\"", i, why, bad[i].why);
    }
    cdcd_buf_free(&b);
}

static void malformed_frames(void **state)
{
    (void)state;
    static const struct bad_case frames[] = {
        {BYTES(""), "the length of a document is wrong"},
        {BYTES("\4\0\0\0"), "the length of a document is wrong"},
        {BYTES("\5\0\0\0\1"), "a document does not end with NUL"},
        {BYTES("\6\0\0\0\0"), "the length of a document is wrong"},
        {BYTES("\4\0\0\0\0"), "the length of a document is wrong"},
        {BYTES("\5\0\0\0\0\0"), "the length of a document is wrong"},
        {BYTES("\5\0\0\x80\0"), "the length of a document is wrong"},
    };
    for (size_t i = 0; i < sizeof(frames) / sizeof(frames[0]); i++) {
        const char *why = NULL;
        struct cdcd_bson_iter it;
        struct cdcd_slice doc = {frames[i].elements, frames[i].n};
        assert_false(both(doc, &why));
        assert_string_equal(why, frames[i].why);
        assert_false(cdcd_bson_iter_init(&it, doc));
    }
}

static void malformed_elements_stop_the_walk(void **state)
{
    (void)state;
    struct cdcd_buf b;
    struct cdcd_bson_iter it;
    struct cdcd_bson_element e;
    cdcd_buf_init(&b, 0);
    bson_frame(&b, BYTES("\x0a"
                         "a\0\x10"
                         "b\0\1\0"));
    assert_true(cdcd_bson_iter_init(&it, cdcd_buf_slice(&b)));
    assert_int_equal(cdcd_bson_iter_next(&it, &e), 1);
    assert_int_equal(cdcd_bson_iter_next(&it, &e), -1);
    assert_int_equal(cdcd_bson_iter_next(&it, &e), -1);
    assert_false(cdcd_bson_find(cdcd_buf_slice(&b), "b", &e));
    cdcd_buf_free(&b);
}

/* Every beginning of a document with all types, with its length made right, from an exact
 * allocation so that the sanitizer sees a read beyond the end. */
static void every_beginning_of_a_document(void **state)
{
    (void)state;
    struct cdcd_buf b;
    unsigned taken = 0;
    cdcd_buf_init(&b, 0);
    bson_from_hex(&b, golden_hex);
    for (size_t n = 0; n <= b.len; n++) {
        const char *why;
        uint32_t len = (uint32_t)n;
        char *part = malloc(n ? n : 1);
        memcpy(part, b.ptr, n);
        if (n >= 5) {
            memcpy(part, &len, 4);
            part[n - 1] = 0;
        }
        taken += both((struct cdcd_slice){part, n}, &why);
        free(part);
    }
    assert_int_equal(taken, 45); /* the whole, and up to each end of an element */
    cdcd_buf_free(&b);
}

/* One byte of random documents changed: whatever happens, both agree. */
static void changed_bytes(void **state)
{
    (void)state;
    struct bson_random r = {42};
    unsigned refused = 0;
    for (int i = 0; i < 20000; i++) {
        struct cdcd_buf b;
        const char *why;
        cdcd_buf_init(&b, 0);
        bson_random_document(&r, &b, 0);
        assert_true(both(cdcd_buf_slice(&b), &why));
        if (b.len > 5) {
            b.ptr[4 + bson_below(&r, (unsigned)b.len - 5)] = (char)bson_draw(&r);
            refused += !both(cdcd_buf_slice(&b), &why);
        }
        cdcd_buf_free(&b);
    }
    assert_true(refused > 1000);
}

/* depth documents, each the only element of the one around it. */
static void nest(struct cdcd_buf *b, unsigned depth, uint8_t type)
{
    cdcd_buf_clear(b);
    cdcd_buf_add(b, "\5\0\0\0\0", 5);
    struct cdcd_buf outer;
    cdcd_buf_init(&outer, 0);
    for (; depth > 1; depth--) {
        uint32_t len = (uint32_t)b->len;
        cdcd_buf_clear(&outer);
        cdcd_buf_add(&outer, &type, 1);
        cdcd_buf_add(&outer, "0", 2);
        if (type == CDCD_BSON_CODE_W_SCOPE) {
            len += 9;
            cdcd_buf_add(&outer, &len, 4);
            cdcd_buf_add(&outer, "\1\0\0\0\0", 5);
        }
        cdcd_buf_add(&outer, b->ptr, b->len);
        cdcd_buf_clear(b);
        bson_frame(b, outer.ptr, outer.len);
    }
    cdcd_buf_free(&outer);
}

static void nesting_has_an_end(void **state)
{
    (void)state;
    static const uint8_t types[] = {CDCD_BSON_DOCUMENT, CDCD_BSON_ARRAY, CDCD_BSON_CODE_W_SCOPE};
    struct cdcd_buf b;
    const char *why;
    cdcd_buf_init(&b, 0);
    for (size_t i = 0; i < sizeof(types); i++) {
        nest(&b, CDCD_BSON_DEPTH, types[i]);
        assert_true(both(cdcd_buf_slice(&b), &why));
        nest(&b, CDCD_BSON_DEPTH + 1, types[i]);
        assert_false(both(cdcd_buf_slice(&b), &why));
        assert_string_equal(why, "documents are nested too deep");
    }
    cdcd_buf_free(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(elements_in_order),
        cmocka_unit_test(the_first_of_a_name_is_found),
        cmocka_unit_test(malformed_elements),
        cmocka_unit_test(malformed_frames),
        cmocka_unit_test(malformed_elements_stop_the_walk),
        cmocka_unit_test(every_beginning_of_a_document),
        cmocka_unit_test(changed_bytes),
        cmocka_unit_test(nesting_has_an_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
