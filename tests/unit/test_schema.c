/* Schemas: versions and references. */
#include <cdcd/schema.h>

#include <setjmp.h>
#include <stdio.h>

#include <cmocka.h>

static struct cdcd_schema *make(void)
{
    static const char *const names[] = {"id", "total", "note"};
    struct cdcd_schema *s = cdcd_schema_new("db", "public", "orders", 3);
    for (uint32_t i = 0; i < 3; i++) {
        struct cdcd_column *c = &s->columns[i];
        c->name = cdcd_schema_strdup(s, names[i], strlen(names[i]));
        c->name_len = (uint32_t)strlen(names[i]);
        c->type = i == 1 ? CDCD_T_DECIMAL : i == 2 ? CDCD_T_STRING : CDCD_T_INT32;
        c->length = i == 1 ? 10 : -1;
        c->scale = i == 1 ? 2 : -1;
        c->optional = i > 0;
        c->key = i == 0;
    }
    s->nkeys = 1;
    s->keys[0] = 0;
    return s;
}

static uint64_t version_and_free(struct cdcd_schema *s)
{
    cdcd_schema_finish(s);
    uint64_t v = s->version;
    cdcd_schema_unref(s);
    return v;
}

static void equal_shapes_have_equal_versions(void **state)
{
    (void)state;
    struct cdcd_schema *other = make();
    other->source_id = 4711; /* a restored database has other ids */
    uint64_t v = version_and_free(make());
    assert_true(v == version_and_free(other));
    /* It is written into headers: the hash may not change from release to release. */
    assert_true(v == 0x6b73fded16b8f258u);
}

static void change_name(struct cdcd_schema *s)
{
    s->columns[2].name = "notes";
}
static void change_type(struct cdcd_schema *s)
{
    s->columns[2].type = CDCD_T_JSON;
}
static void change_scale(struct cdcd_schema *s)
{
    s->columns[1].scale = 3;
}
static void change_length(struct cdcd_schema *s)
{
    s->columns[1].length = 11;
}
static void change_null(struct cdcd_schema *s)
{
    s->columns[1].optional = false;
}
static void change_default(struct cdcd_schema *s)
{
    s->columns[1].has_default = true;
}
static void change_default_text(struct cdcd_schema *s)
{
    s->columns[1].default_text = "";
}
static void change_key(struct cdcd_schema *s)
{
    s->keys[0] = 1;
}
static void change_no_key(struct cdcd_schema *s)
{
    s->nkeys = 0;
}
static void change_table(struct cdcd_schema *s)
{
    s->table = "order";
}
static void change_split(struct cdcd_schema *s)
{
    s->schema = "publico";
    s->table = "rders";
}
static void change_labels(struct cdcd_schema *s)
{
    static const char *const labels[] = {"a", "b", NULL};
    s->columns[2].labels = labels;
}
static void change_labels_joined(struct cdcd_schema *s)
{
    static const char *const labels[] = {"ab", NULL};
    s->columns[2].labels = labels;
}
static void change_elem(struct cdcd_schema *s)
{
    static const struct cdcd_column elem = {.name = "", .type = CDCD_T_INT32};
    s->columns[2].elem = &elem;
}

static void any_change_of_shape_changes_the_version(void **state)
{
    (void)state;
    static void (*const changes[])(struct cdcd_schema *) = {
        change_name,    change_type,         change_scale,         change_length, change_null,
        change_default, change_default_text, change_key,           change_no_key, change_table,
        change_split,   change_labels,       change_labels_joined, change_elem,
    };
    enum { N = sizeof(changes) / sizeof(changes[0]) };
    uint64_t versions[N + 1];
    versions[N] = version_and_free(make());
    for (size_t i = 0; i < N; i++) {
        struct cdcd_schema *s = make();
        changes[i](s);
        versions[i] = version_and_free(s);
    }
    for (size_t i = 0; i <= N; i++) {
        for (size_t k = 0; k < i; k++)
            assert_true(versions[i] != versions[k]);
    }
}

static int freed;
static void count_free(void *enc)
{
    (void)enc;
    freed++;
}

static void the_last_reference_frees(void **state)
{
    (void)state;
    struct cdcd_schema *s = make();
    cdcd_schema_finish(s);
    s->enc = s;
    s->enc_free = count_free;
    freed = 0;
    assert_ptr_equal(cdcd_schema_ref(s), s);
    cdcd_schema_unref(s);
    assert_int_equal(freed, 0);
    cdcd_schema_unref(s);
    assert_int_equal(freed, 1);
    cdcd_schema_unref(NULL);
}

static void a_table_without_columns(void **state)
{
    (void)state;
    struct cdcd_schema *s = cdcd_schema_new("db", "", "empty", 0);
    cdcd_schema_finish(s);
    cdcd_schema_unref(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(equal_shapes_have_equal_versions),
        cmocka_unit_test(any_change_of_shape_changes_the_version),
        cmocka_unit_test(the_last_reference_frees),
        cmocka_unit_test(a_table_without_columns),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
