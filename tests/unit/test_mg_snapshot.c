/*
 * The MongoDB snapshot without a server: cursors, which must be exact for an _id of any type.
 */
#include "snapshot_int.h"

#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

/* ---- values ---- */

struct value {
    uint8_t type;
    const char *bytes;
    size_t len;
};
#define VALUE(type, bytes) type, bytes, sizeof(bytes) - 1

static const struct value values[] = {
    {VALUE(CDCD_BSON_DOUBLE, "\0\0\0\0\0\0\xf8\x3f")},
    {VALUE(CDCD_BSON_DOUBLE, "\1\0\0\0\0\0\xf8\xff")}, /* a NaN with a payload of its own */
    {VALUE(CDCD_BSON_STRING, "\2\0\0\0s\0")},
    {VALUE(CDCD_BSON_STRING, "\3\0\0\0\xff\xfe\0")}, /* no UTF-8 */
    {VALUE(CDCD_BSON_STRING, "\4\0\0\0a\0b\0")},
    /* {"$date": 5}, which is a document here, no date */
    {VALUE(CDCD_BSON_DOCUMENT, "\x10\0\0\0\x10$date\0\5\0\0\0\0")},
    {VALUE(CDCD_BSON_DOCUMENT, "\5\0\0\0\0")},
    {VALUE(CDCD_BSON_BINARY, "\3\0\0\0\x80\xff\0\1")},
    {VALUE(CDCD_BSON_OID, "\x50\x7f\x1f\x77\xbc\xf8\x6c\xd7\x99\x43\x90\x11")},
    {VALUE(CDCD_BSON_BOOL, "\1")},
    {VALUE(CDCD_BSON_DATE, "\0\xff\xff\xff\xff\xff\xff\xff")},
    {VALUE(CDCD_BSON_NULL, "")},
    {VALUE(CDCD_BSON_INT32, "\xff\xff\xff\x7f")},
    {VALUE(CDCD_BSON_INT64, "\0\0\0\0\0\0\0\x80")},
    {VALUE(CDCD_BSON_TIMESTAMP, "\1\0\0\0\2\0\0\0")},
    {VALUE(CDCD_BSON_DECIMAL, "\1\0\0\0\0\0\0\0\0\0\0\0\0\0\x40\x30")},
    {VALUE(CDCD_BSON_MINKEY, "")},
    {VALUE(CDCD_BSON_MAXKEY, "")},
};
#define NVALUES (sizeof values / sizeof *values)

static struct cdcd_cell cell_of(const struct value *v)
{
    return cdcd_cell_bson(v->type, v->bytes, v->len);
}

/* ---- cursors ---- */

static void cursors_are_exact(void **state)
{
    (void)state;
    for (size_t i = 0; i < 2 * NVALUES; i++) {
        struct mg_cursor c = {.id = cell_of(&values[i / 2]), .past = i % 2 != 0}, back;
        struct cdcd_arena a;
        struct cdcd_buf text;
        cdcd_arena_init(&a, 1024);
        cdcd_buf_init(&text, 0);
        mg_cursor_write(&c, &text);
        assert_true(mg_cursor_parse(cdcd_buf_cstr(&text), &a, &back));
        assert_int_equal(back.past, c.past);
        assert_true(cdcd_cell_equal(&back.id, &c.id));
        cdcd_buf_free(&text);
        cdcd_arena_free(&a);
    }
}

/* They are in the stored state: what an older cdcd wrote must be understood. */
static void cursors_have_this_form(void **state)
{
    (void)state;
    struct mg_cursor c = {.id = cdcd_cell_bson(CDCD_BSON_INT32, "\x2a\0\0\0", 4)};
    struct cdcd_buf text;
    cdcd_buf_init(&text, 0);
    mg_cursor_write(&c, &text);
    assert_string_equal(cdcd_buf_cstr(&text), ">=102a000000");
    cdcd_buf_clear(&text);
    c.past = true;
    mg_cursor_write(&c, &text);
    assert_string_equal(cdcd_buf_cstr(&text), ">102a000000");
    cdcd_buf_free(&text);
}

static void bad_cursors(void **state)
{
    (void)state;
    static const char *const bad[] = {
        "",
        ">",
        ">=",
        "102a000000",     /* nothing before it */
        ">=102a0000",     /* an int32 of three bytes */
        ">=102a00000000", /* of five */
        ">=102a00000",    /* half a digit */
        ">=102A000000",   /* not as we write them */
        ">=zz2a000000",
        ">=5500",           /* no type */
        ">=02ffffff7f6100", /* a string that goes beyond its end */
        ">=0305000000",     /* a document without its end */
        "<=102a000000",
        "[\"1\"]",
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct cdcd_arena a;
        struct mg_cursor c;
        cdcd_arena_init(&a, 1024);
        if (mg_cursor_parse(bad[i], &a, &c))
            fail_msg("\"%s\" is taken for a cursor", bad[i]);
        cdcd_arena_free(&a);
    }
}

/* As min and max of a find: {_id: value}, byte for byte. */
static void cursors_as_bounds(void **state)
{
    (void)state;
    for (size_t i = 0; i < NVALUES; i++) {
        bson_t command;
        struct cdcd_bson_element min;
        struct cdcd_cell id = cell_of(&values[i]), found;
        bson_init(&command);
        assert_true(mg_cursor_append(&command, "min", &id));
        assert_true(cdcd_bson_find(mg_slice(&command), "min", &min));
        assert_int_equal(min.type, CDCD_BSON_DOCUMENT);
        assert_true(mg_id_of(min.value, &found));
        assert_true(cdcd_cell_equal(&found, &id));
        bson_destroy(&command);
    }
}

static void ids(void **state)
{
    (void)state;
    struct cdcd_cell id;
    bson_t doc = BSON_INITIALIZER, inner = BSON_INITIALIZER;
    BSON_APPEND_INT32(&inner, "_id", 1);
    BSON_APPEND_DOCUMENT(&doc, "a", &inner);
    assert_false(mg_id_of(mg_slice(&doc), &id));
    BSON_APPEND_UTF8(&doc, "_id", "x");
    assert_true(mg_id_of(mg_slice(&doc), &id));
    assert_int_equal(id.aux, CDCD_BSON_STRING);
    assert_int_equal(id.len, 6);
    bson_destroy(&doc);
    bson_destroy(&inner);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(cursors_are_exact),
        cmocka_unit_test(cursors_have_this_form),
        cmocka_unit_test(bad_cursors),
        cmocka_unit_test(cursors_as_bounds),
        cmocka_unit_test(ids),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
