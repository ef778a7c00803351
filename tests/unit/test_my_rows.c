/*
 * Row images to cells: complete and partial images, NULL and absent, excluded columns, partial
 * JSON updates, and images that do not fit the table.
 */
#include "table.h"
#include "value_int.h"

#include <setjmp.h>

#include <cmocka.h>

#include "my_hex.h"

#define MAX_COLUMNS 20

static struct my_column_decoder columns[MAX_COLUMNS];
static struct my_shape shape;
static struct cdcd_arena arena;
static struct cdcd_error err;

/* Types and metadata of the columns; each is a column of the schema of the same number but those
 * that are excluded. */
static void table(uint32_t n, const uint8_t *types, const uint16_t *metas, uint32_t excluded)
{
    static const char *const names[MAX_COLUMNS] = {"c0", "c1", "c2", "c3", "c4",  "c5",
                                                   "c6", "c7", "c8", "c9", "c10", "c11"};
    uint32_t used = 0;

    memset(columns, 0, sizeof columns);
    for (uint32_t i = 0; i < n; i++) {
        columns[i].type = types[i];
        columns[i].meta = metas[i];
        columns[i].name = names[i];
        columns[i].column = excluded >> i & 1 ? -1 : (int32_t)used++;
    }
    cdcd_schema_unref(shape.schema);
    shape = (struct my_shape){.schema = cdcd_schema_new("db", "", "t", used),
                              .ncolumns = n,
                              .columns = columns,
                              .captured = true,
                              .label = (char *)"db.t"};
}

static int set_up(void **state)
{
    (void)state;
    cdcd_arena_init(&arena, 4096);
    memset(&err, 0, sizeof err);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    cdcd_arena_free(&arena);
    cdcd_schema_unref(shape.schema);
    shape.schema = NULL;
    return 0;
}

static void put_image(char *out, size_t size, char mark, const struct cdcd_cell *cells)
{
    size_t n = strlen(out);

    if (!cells)
        return;
    n += (size_t)snprintf(out + n, size - n, "%s%c", n ? " " : "", mark);
    for (uint32_t i = 0; i < shape.schema->ncolumns; i++) {
        char text[300];
        n += (size_t)snprintf(out + n, size - n, "[%s]", cell_text(&cells[i], text, sizeof text));
    }
}

/* The rows as text, "-[int:1] +[int:2]; ...", or the error's. The event's bytes are gone when the
 * cells are looked at. */
static const char *rows(enum my_rows_op op, uint32_t ncolumns, const char *present0,
                        const char *present1, const char *hex)
{
    static char out[4096];
    struct cdcd_cell *before[16], *after[16];
    struct my_row_reader reader;
    size_t n, count = 0;
    enum cdcd_rc rc;
    uint8_t *body = from_hex(hex, &n), *bits[2];
    struct my_rows r = {.op = op, .ncolumns = ncolumns, .body = {(char *)body, n}};

    bits[0] = from_hex(present0, &n);
    bits[1] = from_hex(present1 ? present1 : "", &n);
    r.present[0] = bits[0];
    r.present[1] = present1 ? bits[1] : NULL;
    my_rows_begin(&shape, &r, &reader);
    while (count < 16 &&
           (rc = my_rows_next(&reader, &arena, &before[count], &after[count], &err)) == CDCD_OK)
        count++;
    memset(body, 0xa5, r.body.len);
    free(body);
    free(bits[0]);
    free(bits[1]);
    out[0] = '\0';
    if (rc == CDCD_ERROR)
        return err.text;
    for (size_t i = 0; i < count; i++) {
        put_image(out, sizeof out, '-', before[i]);
        put_image(out, sizeof out, '+', after[i]);
    }
    return out;
}

static void two_columns(uint32_t excluded)
{
    static const uint8_t types[] = {MY_LONG, MY_VARCHAR};
    static const uint16_t metas[] = {0, 40};

    table(2, types, metas, excluded);
}

static void test_images(void **state)
{
    (void)state;
    two_columns(0);
    assert_string_equal(
        rows(MY_ROWS_WRITE, 2, "03", NULL, "00 01000000 026162 02 02000000 00 03000000 00"),
        "+[int:1][text:ab] +[int:2][null] +[int:3][text:]");
    assert_string_equal(rows(MY_ROWS_DELETE, 2, "03", NULL, "00 01000000 026162"),
                        "-[int:1][text:ab]");
    assert_string_equal(rows(MY_ROWS_UPDATE, 2, "03", "03", "00 01000000 026162 00 01000000 0163"),
                        "-[int:1][text:ab] +[int:1][text:c]");
}

/* binlog_row_image=MINIMAL: what an image lacks is absent, never NULL; the NULL bits are of those
 * columns that it has. */
static void test_minimal(void **state)
{
    static const uint8_t types[] = {MY_TINY, MY_TINY, MY_TINY, MY_TINY, MY_TINY,
                                    MY_TINY, MY_TINY, MY_TINY, MY_TINY, MY_VARCHAR};
    static const uint16_t metas[MAX_COLUMNS] = {[9] = 10};

    (void)state;
    table(10, types, metas, 0);
    assert_string_equal(rows(MY_ROWS_UPDATE, 10, "0100", "0203", "00 07 02 63 0178"),
                        "-[int:7][absent][absent][absent][absent][absent][absent][absent][absent]"
                        "[absent] +[absent][int:99][absent][absent][absent][absent][absent][absent]"
                        "[null][text:x]");
    assert_string_equal(rows(MY_ROWS_UPDATE, 10, "0100", "0200", "00 07 01"),
                        "-[int:7][absent][absent][absent][absent][absent][absent][absent][absent]"
                        "[absent] +[absent][null][absent][absent][absent][absent][absent][absent]"
                        "[absent][absent]");
    assert_string_equal(rows(MY_ROWS_WRITE, 10, "ff03", NULL, "0002 01 02 03 04 05 06 07 08 09"),
                        "+[int:1][int:2][int:3][int:4][int:5][int:6][int:7][int:8][int:9][null]");
}

static void test_excluded(void **state)
{
    (void)state;
    two_columns(1);
    assert_string_equal(rows(MY_ROWS_WRITE, 2, "03", NULL, "00 01000000 026162 03"),
                        "+[text:ab] +[null]");
    two_columns(2);
    assert_string_equal(rows(MY_ROWS_WRITE, 2, "03", NULL, "00 01000000 026162 02 02000000"),
                        "+[int:1] +[int:2]");
}

static void says(const char *got, const char *want, enum cdcd_error_class class)
{
    if (!strstr(got, want))
        fail_msg("\"%s\" does not say \"%s\"", got, want);
    assert_int_equal(err.class, class);
}

static void test_misfit(void **state)
{
    (void)state;
    two_columns(0);
    says(rows(MY_ROWS_WRITE, 3, "07", NULL, "00 01000000"), "3 columns where", CDCD_ERR_FATAL);
    says(rows(MY_ROWS_WRITE, 2, "03", NULL, "00 010000"), "db.t", CDCD_ERR_FATAL);
    says(rows(MY_ROWS_WRITE, 2, "03", NULL, "00 01000000 056162"), "column c1", CDCD_ERR_FATAL);
    says(rows(MY_ROWS_UPDATE, 2, "03", "03", "00 01000000 026162"), "NULL bits", CDCD_ERR_FATAL);
    says(rows(MY_ROWS_WRITE, 2, "03", NULL, "00 01000000 026162 00"), "c0", CDCD_ERR_FATAL);
    /* No column at all: nothing tells how many rows. */
    says(rows(MY_ROWS_WRITE, 2, "00", NULL, ""), "binlog_row_image=FULL", CDCD_ERR_FATAL);
}

#define DOCUMENT "00 0100 0c00 0b00 0100 05 0100 61" /* {"a":1} */

/* id, then two JSON columns. A bit for each JSON column of the table, be it in the image or not. */
static void test_partial(void **state)
{
    static const uint8_t types[] = {MY_LONG, MY_JSON, MY_JSON};
    static const uint16_t metas[] = {0, 4, 4};

    (void)state;
    table(3, types, metas, 0);
    assert_string_equal(rows(MY_ROWS_PARTIAL_UPDATE, 3, "07", "07",
                             "00 01000000 0d000000" DOCUMENT " 0d000000" DOCUMENT
                             "01 02 00 01000000 02000000 0401"
                             "09000000 00 03 242e61 03 052a00"),
                        "-[int:1][text:{\"a\":1}][text:{\"a\":1}]"
                        " +[int:1][text:true][text:{\"a\":42}]");
    /* Only the second one is in the after image. */
    assert_string_equal(rows(MY_ROWS_PARTIAL_UPDATE, 3, "07", "04",
                             "00 01000000 0d000000" DOCUMENT " 0d000000" DOCUMENT
                             "01 02 00 09000000 00 03 242e61 03 052a00"),
                        "-[int:1][text:{\"a\":1}][text:{\"a\":1}]"
                        " +[absent][absent][text:{\"a\":42}]");
    /* No differences: the value stays. Without the option: whole values. */
    assert_string_equal(rows(MY_ROWS_PARTIAL_UPDATE, 3, "06", "02",
                             "00 0d000000" DOCUMENT " 0d000000" DOCUMENT "01 01 00 00000000"),
                        "-[absent][text:{\"a\":1}][text:{\"a\":1}]"
                        " +[absent][text:{\"a\":1}][absent]");
    assert_string_equal(
        rows(MY_ROWS_PARTIAL_UPDATE, 3, "01", "02", "00 01000000 00 00 02000000 0402"),
        "-[int:1][absent][absent] +[absent][text:false][absent]");
    /* The before image lacks the column, has another value, or NULL. */
    says(rows(MY_ROWS_PARTIAL_UPDATE, 3, "01", "02",
              "00 01000000 01 01 00 09000000 00 03 242e61 03 052a00"),
         "column c1 of table db.t", CDCD_ERR_DATA);
    says(rows(MY_ROWS_PARTIAL_UPDATE, 3, "02", "02", "01 01 01 00 09000000 00 03 242e61 03 052a00"),
         "before image lacks", CDCD_ERR_DATA);
    says(rows(MY_ROWS_PARTIAL_UPDATE, 3, "02", "02",
              "00 02000000 0401 01 01 00 09000000 00 03 242e61 03 052a00"),
         "does not fit", CDCD_ERR_DATA);
    says(rows(MY_ROWS_PARTIAL_UPDATE, 3, "01", "02", "00 01000000 02 00"), "options",
         CDCD_ERR_FATAL);
    /* An excluded column's differences are passed over. */
    table(3, types, metas, 2);
    assert_string_equal(rows(MY_ROWS_PARTIAL_UPDATE, 3, "01", "06",
                             "00 01000000 01 01 00 09000000 00 03 242e61 03 052a00"
                             "02000000 0402"),
                        "-[int:1][absent] +[absent][text:false]");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_images, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_minimal, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_excluded, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_misfit, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_partial, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
