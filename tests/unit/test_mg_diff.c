/*
 * Updates: what they say they changed, and the document after them.
 */
#include "mg_diff_model.h"

/* ---- descriptions, as a change stream gives them ---- */

static const struct {
    const char *o, *description; /* or the fault, which begins with no brace */
} descriptions[] = {
    {"{\"$v\":2,\"diff\":{}}",
     "{\"updatedFields\":{},\"removedFields\":[],\"truncatedArrays\":[]}"},
    /* updates, then inserts, before what is within; deletes before those */
    {"{\"$v\":2,\"diff\":{\"d\":{\"z\":false,\"y\":false},\"u\":{\"b\":1},\"i\":{\"a\":2},\"sq\":{"
     "\"d\":{\"w\":false},\"u\":{\"v\":3}}}}",
     "{\"updatedFields\":{\"b\":1,\"a\":2,\"q.v\":3},\"removedFields\":[\"z\",\"y\",\"q.w\"],"
     "\"truncatedArrays\":[]}"},
    /* arrays of arrays; an array's size before its elements */
    {"{\"$v\":2,\"diff\":{\"sr\":{\"a\":true,\"l\":4,\"u0\":{\"x\":1},\"s1\":{\"a\":true,\"l\":0},"
     "\"s3\":{\"u\":{\"c\":null},\"sd\":{\"a\":true,\"u10\":5}}}}}",
     "{\"updatedFields\":{\"r.0\":{\"x\":1},\"r.3.c\":null,\"r.3.d.10\":5},\"removedFields\":[],"
     "\"truncatedArrays\":[{\"field\":\"r\",\"newSize\":4},{\"field\":\"r.1\",\"newSize\":0}]}"},
    /* names of digits are fields here, elements there; the first cannot be an element */
    {"{\"$v\":2,\"diff\":{\"u\":{\"0\":1},\"sm\":{\"u\":{\"0\":1,\"01\":2,\"10\":3,\"1x\":4},\"s7\""
     ":{\"a\":true,\"l\":1,\"u0\":9}},\"s5\":{\"u\":{\"x\":1,\"6\":2}},\"sn\":{\"d\":{\"8\":false}}"
     "}}",
     "{\"updatedFields\":{\"0\":1,\"m.0\":1,\"m.01\":2,\"m.10\":3,\"m.1x\":4,\"m.7.0\":9,\"5.x\":1,"
     "\"5.6\":2},\"removedFields\":[\"n.8\"],\"truncatedArrays\":[{\"field\":\"m.7\",\"newSize\":1}"
     "],\"disambiguatedPaths\":{\"m.0\":[\"m\",\"0\"],\"m.10\":[\"m\",\"10\"],\"m.7\":[\"m\",\"7\"]"
     ",\"m.7.0\":[\"m\",\"7\",0],\"5.6\":[\"5\",\"6\"],\"n.8\":[\"n\",\"8\"]}}"},
    {"{\"$v\":2,\"diff\":{\"u\":{\"a.b\":1},\"sx.y\":{\"sz\":{\"a\":true,\"s0\":{\"d\":{\"q\":false"
     "}}}}}}",
     "{\"updatedFields\":{\"a.b\":1},\"removedFields\":[\"x.y.z.0.q\"],\"truncatedArrays\":[],"
     "\"disambiguatedPaths\":{\"a.b\":[\"a.b\"],\"x.y.z.0.q\":[\"x.y\",\"z\",0,\"q\"]}}"},
    /* modifiers */
    {"{\"$v\":1,\"$unset\":{\"q.0\":true,\"z\":\"\"},\"$set\":{\"a.1.b\":{\"c\":1}}}",
     "{\"updatedFields\":{\"a.1.b\":{\"c\":1}},\"removedFields\":[\"q.0\",\"z\"],"
     "\"truncatedArrays\":[]}"},
    {"{\"$set\":{\"a\":1}}",
     "{\"updatedFields\":{\"a\":1},\"removedFields\":[],\"truncatedArrays\":[]}"},
    {"{\"$v\":{\"$numberLong\":\"1\"},\"$unset\":{\"a\":1}}",
     "{\"updatedFields\":{},\"removedFields\":[\"a\"],\"truncatedArrays\":[]}"},
    /* compatible servers */
    {"{\"$v\":2,\"diff\":{\"updatedFields\":{\"b.0\":7},\"removedFields\":[\"z\"],"
     "\"truncatedArrays\":[{\"field\":\"a\",\"newSize\":{\"$numberLong\":\"1\"}}],"
     "\"disambiguatedPaths\":{\"b.0\":[\"b\",\"0\"]}}}",
     "{\"updatedFields\":{\"b.0\":7},\"removedFields\":[\"z\"],\"truncatedArrays\":[{\"field\":"
     "\"a\",\"newSize\":1}],\"disambiguatedPaths\":{\"b.0\":[\"b\",\"0\"]}}"},
    {"{\"$v\":2,\"diff\":{\"removedFields\":[],\"disambiguatedPaths\":{}}}",
     "{\"updatedFields\":{},\"removedFields\":[],\"truncatedArrays\":[]}"},
    /* faults */
    {"{\"$v\":3,\"diff\":{}}", "its format ($v) is not known"},
    {"{\"$v\":\"2\",\"diff\":{}}", "its format ($v) is not known"},
    {"{\"$v\":2}", "without a well-formed diff"},
    {"{\"$v\":2,\"diff\":[]}", "its diff is no document"},
    {"{\"$v\":2,\"diff\":{},\"more\":1}", "$v 2 with an unknown key \"more\""},
    {"{\"$v\":1,\"$inc\":{\"a\":1}}", "unknown operator \"$inc\""},
    {"{\"$set\":1}", "no document: \"$set\""},
    {"{\"$v\":2,\"diff\":{\"x\":{}}}", "diff: unknown key \"x\""},
    {"{\"$v\":2,\"diff\":{\"uu\":{}}}", "diff: unknown key \"uu\""},
    {"{\"$v\":2,\"diff\":{\"\":{}}}", "diff: unknown key \"\""},
    {"{\"$v\":2,\"diff\":{\"u\":1}}", "\"u\" is no document"},
    {"{\"$v\":2,\"diff\":{\"sa\":1}}", "\"sa\" is no document"},
    {"{\"$v\":2,\"diff\":{\"sa\":{\"sb\":{\"q\":{}}}}}", "diff of \"a.b\": unknown key \"q\""},
    {"{\"$v\":2,\"diff\":{\"a\":true}}", "diff: unknown key \"a\""},
    {"{\"$v\":2,\"diff\":{\"sa\":{\"a\":false}}}", "diff of \"a\": a, which marks an array"},
    {"{\"$v\":2,\"diff\":{\"sa\":{\"a\":1}}}", "diff of \"a\": a, which marks an array"},
    {"{\"$v\":2,\"diff\":{\"sa\":{\"a\":true,\"l\":-1}}}", "l is no size"},
    {"{\"$v\":2,\"diff\":{\"sa\":{\"a\":true,\"u0\":1,\"l\":1}}}", "out of place"},
    {"{\"$v\":2,\"diff\":{\"sa\":{\"a\":true,\"u\":{}}}}", "unknown key \"u\" in an array"},
    {"{\"$v\":2,\"diff\":{\"sa\":{\"a\":true,\"u01\":1}}}", "unknown key \"u01\" in an array"},
    {"{\"$v\":2,\"diff\":{\"sa\":{\"a\":true,\"d0\":1}}}", "unknown key \"d0\" in an array"},
    {"{\"$v\":2,\"diff\":{\"sa\":{\"a\":true,\"s0\":1}}}", "\"s0\" is no document"},
    {"{\"$v\":2,\"diff\":{\"sdata\":{\"b\":{\"t\":{\"o\":1}}}}}",
     "diff of \"data\": a binary diff"},
    {"{\"$v\":2,\"diff\":{\"updatedFields\":{},\"more\":1}}", "unknown key in its diff: \"more\""},
    {"{\"$v\":2,\"diff\":{\"updatedFields\":[]}}", "wrong type in its diff: \"updatedFields\""},
    {"{\"$v\":2,\"diff\":{\"removedFields\":[1]}}", "malformed removedFields"},
    {"{\"$v\":2,\"diff\":{\"truncatedArrays\":[{\"field\":\"a\"}]}}", "malformed removedFields"},
};

static void test_describe(void **state)
{
    struct cdcd_arena a;

    (void)state;
    cdcd_arena_init(&a, 64);
    for (size_t i = 0; i < sizeof descriptions / sizeof *descriptions; i++) {
        struct cdcd_slice o = from_json(descriptions[i].o), replacement;
        struct cdcd_error err = {0};
        struct cdcd_update *u;
        struct cdcd_buf got = {0};
        enum cdcd_rc rc = mg_update_parse(o, false, &a, &u, &replacement, &err);
        drop(o); /* nothing of the description is borrowed */
        if (rc == CDCD_OK) {
            assert_null(replacement.ptr);
            add_description(&got, u);
            assert_string_equal(cdcd_buf_cstr(&got), descriptions[i].description);
        } else if (!strstr(err.text, descriptions[i].description)) {
            print_error("%s: \"%s\"\n", descriptions[i].o, err.text);
            fail();
        } else {
            assert_int_equal(err.class, CDCD_ERR_DATA);
            assert_null(u);
        }
        cdcd_buf_free(&got);
    }
    cdcd_arena_free(&a);
}

/* What looks like an update but is the document: it begins with _id, or with no dollar. */
static void test_replacement(void **state)
{
    static const char *const documents[] = {"{\"_id\":1,\"$v\":2,\"diff\":{\"u\":{}}}",
                                            "{\"_id\":1,\"$set\":{}}", "{\"updatedFields\":{}}",
                                            "{\"a\":1}", "{}"};
    struct cdcd_error err;
    struct cdcd_arena a;

    (void)state;
    cdcd_arena_init(&a, 4096);
    for (size_t i = 0; i < sizeof documents / sizeof *documents; i++) {
        struct cdcd_slice o = from_json(documents[i]), replacement, after;
        struct cdcd_update *u;
        assert_int_equal(mg_update_parse(o, false, &a, &u, &replacement, &err), CDCD_OK);
        assert_null(u);
        assert_ptr_equal(replacement.ptr, o.ptr);
        assert_int_equal(replacement.len, o.len);
        assert_int_equal(mg_update_apply(o, o, &a, &after, &err), CDCD_OK);
        assert_ptr_equal(after.ptr, o.ptr);
        drop(o);
    }
    cdcd_arena_free(&a);
}

/* Buckets of a time series: the binary diffs are left out, the rest is not. */
static void test_buckets(void **state)
{
    struct cdcd_slice o = from_json("{\"$v\":2,\"diff\":{\"scontrol\":{\"u\":{\"n\":2}},\"sdata\":{"
                                    "\"b\":{\"t\":{\"o\":1}},\"sx\":{\"i\":{\"1\":5}}}}}");
    struct cdcd_slice replacement;
    struct cdcd_buf got = {0};
    struct cdcd_update *u;
    struct cdcd_error err;
    struct cdcd_arena a;

    (void)state;
    cdcd_arena_init(&a, 4096);
    assert_int_equal(mg_update_parse(o, true, &a, &u, &replacement, &err), CDCD_OK);
    add_description(&got, u);
    assert_string_equal(cdcd_buf_cstr(&got),
                        "{\"updatedFields\":{\"control.n\":2,\"data.x.1\":5},\"removedFields\":[],"
                        "\"truncatedArrays\":[],\"disambiguatedPaths\":{\"data.x.1\":[\"data\","
                        "\"x\",\"1\"]}}");
    cdcd_buf_free(&got);
    cdcd_arena_free(&a);
    drop(o);
}

/* ---- documents after updates ---- */

static const struct {
    const char *before, *o, *after; /* or the fault, which begins with no brace */
} updates[] = {
    /* a field that an update does not find goes to the end, before those that come anew */
    {"{\"a\":1}", "{\"$v\":2,\"diff\":{\"u\":{\"b\":2},\"i\":{\"c\":3}}}",
     "{\"a\":1,\"b\":2,\"c\":3}"},
    {"{\"a\":1,\"b\":2,\"c\":3}", "{\"$v\":2,\"diff\":{\"i\":{\"a\":9}}}",
     "{\"b\":2,\"c\":3,\"a\":9}"},
    {"{\"a\":1}", "{\"$v\":2,\"diff\":{\"d\":{\"q\":false}}}", "{\"a\":1}"},
    {"{\"a\":[1,2,3]}", "{\"$v\":2,\"diff\":{\"sa\":{\"a\":true,\"l\":5,\"u3\":4}}}",
     "{\"a\":[1,2,3,4,null]}"},
    {"{\"a\":[1,2,3]}", "{\"$v\":2,\"diff\":{\"sa\":{\"a\":true,\"l\":0}}}", "{\"a\":[]}"},
    {"{\"a\":[]}", "{\"$v\":2,\"diff\":{\"sa\":{\"a\":true,\"u2\":4}}}", "{\"a\":[null,null,4]}"},
    {"{\"a\":[1]}", "{\"$v\":2,\"diff\":{\"sa\":{\"a\":true,\"l\":1,\"u1\":4}}}",
     "\"1\" is beyond the array's new size"},
    {"{\"a\":1}", "{\"$v\":2,\"diff\":{\"sa\":{\"u\":{\"b\":1}}}}", "\"a\" is no document"},
    {"{\"a\":[]}", "{\"$v\":2,\"diff\":{\"sa\":{\"u\":{\"b\":1}}}}", "\"a\" is no document"},
    {"{\"a\":{}}", "{\"$v\":2,\"diff\":{\"sa\":{\"a\":true,\"u0\":1}}}", "\"a\" is no array"},
    {"{}", "{\"$v\":2,\"diff\":{\"sa\":{\"u\":{\"b\":1}}}}", "\"a\" is not there"},
    {"{\"a\":[]}", "{\"$v\":2,\"diff\":{\"sa\":{\"a\":true,\"s0\":{\"u\":{\"b\":1}}}}}",
     "\"0\" is not there"},
    {"{\"a\":1}", "{\"$v\":2,\"diff\":{\"d\":{\"a\":false},\"u\":{\"a\":1}}}",
     "diff of \"a\": it is changed twice"},
    {"{\"a\":[1]}", "{\"$v\":2,\"diff\":{\"sa\":{\"a\":true,\"u0\":1,\"u0\":2}}}",
     "diff of \"a.0\": it is changed twice"},
    {"{\"a\":[]}", "{\"$v\":2,\"diff\":{\"sa\":{\"a\":true,\"u999999999\":1}}}",
     "grows larger than any document"},
    {"{\"a\":[]}", "{\"$v\":2,\"diff\":{\"sa\":{\"a\":true,\"l\":2147483647}}}",
     "grows larger than any document"},
    /* so large that only the bytes tell */
    {"{\"a\":[]}", "{\"$v\":2,\"diff\":{\"sa\":{\"a\":true,\"u2200000\":1}}}",
     "grows larger than any document"},
    /* names twice in a document: each is changed */
    {"{\"a\":{\"x\":1},\"a\":{\"y\":2}}", "{\"$v\":2,\"diff\":{\"sa\":{\"u\":{\"x\":5}}}}",
     "{\"a\":{\"x\":5},\"a\":{\"y\":2,\"x\":5}}"},
    /* modifiers */
    {"{\"a\":1}", "{\"$v\":1,\"$set\":{\"b.c.d\":1,\"e\":2,\"b.c.f\":3}}",
     "{\"a\":1,\"b\":{\"c\":{\"d\":1,\"f\":3}},\"e\":2}"},
    {"{\"a\":[{\"b\":1},5]}",
     "{\"$v\":1,\"$set\":{\"a.0.c\":2,\"a.3.d\":4},\"$unset\":{\"a.0.b\":true,\"a.1\":true}}",
     "{\"a\":[{\"c\":2},null,null,{\"d\":4}]}"},
    {"{\"a\":{\"0\":1}}", "{\"$v\":1,\"$set\":{\"a.0\":2,\"a.1\":3}}", "{\"a\":{\"0\":2,\"1\":3}}"},
    {"{\"a\":5}", "{\"$v\":1,\"$unset\":{\"a.b\":true,\"c.d\":true}}", "{\"a\":5}"},
    {"{\"a\":[1]}", "{\"$v\":1,\"$unset\":{\"a.5\":true,\"a.x\":true}}", "{\"a\":[1]}"},
    {"{\"a\":5}", "{\"$v\":1,\"$set\":{\"a.b\":1}}", "\"a\" is no document"},
    {"{\"a\":[]}", "{\"$v\":1,\"$set\":{\"a.b\":1}}", "\"b\" is no index"},
    {"{\"a\":5}", "{\"$set\":{\"a\":1,\"a.b\":1}}", "path \"a.b\": it is changed twice"},
    {"{\"a\":5}", "{\"$set\":{\"a.b\":1,\"a\":1}}", "path \"a\": it is changed twice"},
    /* compatible servers */
    {"{\"a\":[1,2,3],\"b\":{\"0\":1},\"c.d\":1,\"z\":1}",
     "{\"$v\":2,\"diff\":{\"updatedFields\":{\"a.0\":9,\"b.0\":7,\"c.d\":8},\"removedFields\":["
     "\"z\"],\"truncatedArrays\":[{\"field\":\"a\",\"newSize\":1}],\"disambiguatedPaths\":{\"b.0\":"
     "[\"b\",\"0\"],\"c.d\":[\"c.d\"]}}}",
     "{\"a\":[9],\"b\":{\"0\":7},\"c.d\":8}"},
    {"{\"a\":5}", "{\"$v\":2,\"diff\":{\"truncatedArrays\":[{\"field\":\"a\",\"newSize\":1}]}}",
     "\"a\" is no document"},
    {"{}", "{\"$v\":2,\"diff\":{\"truncatedArrays\":[{\"field\":\"a\",\"newSize\":1}]}}",
     "\"a\" is not there"},
    {"{}",
     "{\"$v\":2,\"diff\":{\"updatedFields\":{\"a\":1},\"disambiguatedPaths\":{\"a\":[null]}}}",
     "disambiguatedPaths are malformed"},
    {"{}",
     "{\"$v\":2,\"diff\":{\"updatedFields\":{\"a\":1},\"disambiguatedPaths\":{\"a\":[\"a\\u0000b\"]"
     "}}}",
     "a NUL in a name"},
};

static void check_update(struct cdcd_arena *a, const char *before, const char *update,
                         const char *want)
{
    struct cdcd_slice document = from_json(before), o = from_json(update), after;
    struct cdcd_error err = {0};
    struct cdcd_buf got = {0};

    enum cdcd_rc rc = mg_update_apply(document, o, a, &after, &err);
    drop(document);
    if (rc == CDCD_OK) {
        bool replaced = after.ptr == o.ptr; /* borrowed then, and only then */
        if (!replaced)
            drop(o);
        assert_true(cdcd_bson_valid(after, NULL));
        add_json(&got, CDCD_BSON_DOCUMENT, after);
        assert_string_equal(cdcd_buf_cstr(&got), want);
        if (replaced)
            drop(o);
    } else {
        drop(o);
        if (!strstr(err.text, want)) {
            print_error("%s: \"%s\"\n", update, err.text);
            fail();
        }
        assert_int_equal(err.class, CDCD_ERR_DATA);
    }
    cdcd_buf_free(&got);
}

static void test_apply(void **state)
{
    struct cdcd_arena a;

    (void)state;
    cdcd_arena_init(&a, 64);
    for (size_t i = 0; i < sizeof updates / sizeof *updates; i++)
        check_update(&a, updates[i].before, updates[i].o, updates[i].after);
    cdcd_arena_free(&a);
}

/* ---- diffs.json: a collection's life ---- */

static char *json_of(const bson_t *row, const char *key)
{
    bson_iter_t it;
    bson_t inner;
    uint32_t len;
    const uint8_t *data;

    if (!bson_iter_init_find(&it, row, key))
        return NULL;
    bson_iter_document(&it, &len, &data);
    assert_true(bson_init_static(&inner, data, len));
    return bson_as_relaxed_extended_json(&inner, NULL);
}

/* The documents as they are now, by _id. */
static char *documents[8];

static void check_row(struct cdcd_arena *a, const char *line)
{
    bson_t *row = bson_new_from_json((const uint8_t *)line, -1, NULL);
    bson_iter_t it, id;

    assert_non_null(row);
    char *o = json_of(row, "o"), *after = json_of(row, "after");
    bool update = bson_iter_init_find(&it, row, "o2");
    assert_true(bson_iter_init(&it, row) &&
                bson_iter_find_descendant(&it, update ? "o2._id" : "o._id", &id));
    int n = bson_iter_int32(&id);
    if (update) {
        struct cdcd_buf want = {0};
        struct cdcd_slice document = from_json(after);
        add_json(&want, CDCD_BSON_DOCUMENT, document);
        check_update(a, documents[n], o, cdcd_buf_cstr(&want));
        drop(document);
        cdcd_buf_free(&want);
    }
    bson_free(documents[n]);
    documents[n] = update ? after : o;
    bson_free(update ? o : after);
    bson_destroy(row);
}

static void test_life(void **state)
{
    struct cdcd_buf file = {0};
    struct cdcd_arena a;
    char *path = golden_path("diffs.json");
    int n = 0;

    (void)state;
    cdcd_arena_init(&a, 4096);
    read_file(path, &file);
    cdcd_buf_cstr(&file);
    for (char *line = file.ptr, *end; (end = strchr(line, '\n')); line = end + 1) {
        *end = 0;
        check_row(&a, line);
        n++;
    }
    assert_int_equal(n, 23);
    for (n = 0; n < 8; n++)
        bson_free(documents[n]);
    free(path);
    cdcd_buf_free(&file);
    cdcd_arena_free(&a);
}

/* ---- random documents ---- */

static void same_document(struct cdcd_slice got, struct cdcd_slice want, struct cdcd_slice before,
                          struct cdcd_slice o)
{
    struct cdcd_buf text = {0};

    if (cdcd_slice_eq(got, want))
        return;
    add_json(&text, CDCD_BSON_DOCUMENT, before);
    cdcd_buf_adds(&text, "\n");
    add_json(&text, CDCD_BSON_DOCUMENT, o);
    cdcd_buf_adds(&text, "\ngot    ");
    add_json(&text, CDCD_BSON_DOCUMENT, got);
    cdcd_buf_adds(&text, "\nwanted ");
    add_json(&text, CDCD_BSON_DOCUMENT, want);
    print_error("%s\n", cdcd_buf_cstr(&text));
    cdcd_buf_free(&text);
    fail();
}

static struct cdcd_slice apply(struct cdcd_arena *a, struct cdcd_slice before, struct cdcd_slice o)
{
    struct cdcd_error err = {0};
    struct cdcd_slice after;

    if (mg_update_apply(before, o, a, &after, &err) != CDCD_OK) {
        print_error("%s\n", err.text);
        same_document(o, before, before, o);
    }
    return after;
}

/* The update with the diff of a, b: its description is no fault either. */
static struct cdcd_update *describe(struct cdcd_arena *a, struct cdcd_slice o)
{
    struct cdcd_error err = {0};
    struct cdcd_slice replacement;
    struct cdcd_update *u;

    assert_int_equal(mg_update_parse(o, false, a, &u, &replacement, &err), CDCD_OK);
    assert_true(cdcd_bson_valid(u->updated, NULL));
    assert_true(!u->ambiguous.ptr || cdcd_bson_valid(u->ambiguous, NULL));
    return u;
}

static void test_random(void **state)
{
    struct cdcd_arena a;
    struct random r = {.state = 88172645463325252u, .arena = &a, .dots = true};

    (void)state;
    cdcd_arena_init(&a, 4096);
    for (int i = 0; i < 30000; i++) {
        cdcd_arena_reset(&a, 1 << 16);
        struct value before = random_container(&r, CDCD_BSON_DOCUMENT, 4);
        struct value after = change_document(&r, &before, 4);
        struct cdcd_slice b = to_bson(&a, &before), want = to_bson(&a, &after);
        struct cdcd_slice o = write_diff(&r, &a, &before, &after);
        same_document(apply(&a, b, o), want, b, o);
        describe(&a, o);
    }
    cdcd_arena_free(&a);
}

/* ---- a description says all that the diff says ---- */

static void put_string(struct mg_writer *w, const char *name, struct cdcd_slice text)
{
    uint32_t len = (uint32_t)text.len + 1;

    mg_bson_element(w, CDCD_BSON_STRING, cdcd_slice_str(name),
                    (struct cdcd_slice){(char *)&len, 4});
    cdcd_writer_add(&w->w, text.ptr, text.len);
    cdcd_writer_char(&w->w, 0);
}

/* The description as an update of a compatible server. */
static struct cdcd_slice to_compatible(struct cdcd_arena *a, const struct cdcd_update *u)
{
    struct value two = {.type = CDCD_BSON_INT32, .n = 2};
    struct mg_writer w;

    mg_bson_begin(&w, a);
    write_value(&w, "$v", &two);
    mg_bson_open(&w, CDCD_BSON_DOCUMENT, cdcd_slice_str("diff"));
    mg_bson_element(&w, CDCD_BSON_DOCUMENT, cdcd_slice_str("updatedFields"), u->updated);
    mg_bson_open(&w, CDCD_BSON_ARRAY, cdcd_slice_str("removedFields"));
    for (uint32_t i = 0; i < u->nremoved; i++)
        put_string(&w, "0", u->removed[i]);
    mg_bson_close(&w);
    mg_bson_open(&w, CDCD_BSON_ARRAY, cdcd_slice_str("truncatedArrays"));
    for (uint32_t i = 0; i < u->ntruncated; i++) {
        mg_bson_open(&w, CDCD_BSON_DOCUMENT, cdcd_slice_str("0"));
        put_string(&w, "field", u->truncated[i].field);
        mg_bson_element(&w, CDCD_BSON_INT32, cdcd_slice_str("newSize"),
                        (struct cdcd_slice){(const char *)&u->truncated[i].size, 4});
        mg_bson_close(&w);
    }
    mg_bson_close(&w);
    if (u->ambiguous.ptr)
        mg_bson_element(&w, CDCD_BSON_DOCUMENT, cdcd_slice_str("disambiguatedPaths"), u->ambiguous);
    mg_bson_close(&w);
    return mg_bson_end(&w);
}

/* The order of fields that go to the end is the one thing that a description does not say. */
static int by_name(const void *a, const void *b)
{
    const struct field *x = a, *y = b;
    return strcmp(x->name, y->name);
}

static void sort_fields(struct value *v)
{
    for (uint32_t i = 0; i < v->count; i++)
        sort_fields(&v->fields[i].value);
    if (v->type == CDCD_BSON_DOCUMENT && v->count)
        qsort(v->fields, v->count, sizeof *v->fields, by_name);
}

static struct value from_bson(struct cdcd_arena *a, uint8_t type, struct cdcd_slice bytes)
{
    struct value v = {.type = type};
    struct cdcd_bson_iter it;
    struct cdcd_bson_element e;

    if (type == CDCD_BSON_INT32)
        v.n = cdcd_bson_int32(bytes);
    else if (type == CDCD_BSON_BOOL)
        v.n = bytes.ptr[0];
    else if (type == CDCD_BSON_STRING)
        v.n = bytes.len == 5 ? 0 : bytes.len == 6 ? 1 : 2;
    if (type != CDCD_BSON_DOCUMENT && type != CDCD_BSON_ARRAY)
        return v;
    v.fields = cdcd_arena_alloc(a, 32 * sizeof *v.fields);
    assert_true(cdcd_bson_iter_init(&it, bytes));
    while (cdcd_bson_iter_next(&it, &e) == 1) {
        assert_true(v.count < 32);
        v.fields[v.count++] = (struct field){
            type == CDCD_BSON_ARRAY ? NULL : cdcd_arena_dup(a, e.name.ptr, e.name.len),
            from_bson(a, e.type, e.value)};
    }
    return v;
}

static void test_description_is_whole(void **state)
{
    struct cdcd_arena a;
    struct random r = {.state = 362436069u, .arena = &a};

    (void)state;
    cdcd_arena_init(&a, 4096);
    for (int i = 0; i < 20000; i++) {
        cdcd_arena_reset(&a, 1 << 16);
        struct value before = random_container(&r, CDCD_BSON_DOCUMENT, 4);
        struct value after = change_document(&r, &before, 4);
        struct cdcd_slice b = to_bson(&a, &before);
        struct cdcd_slice o = write_diff(&r, &a, &before, &after);
        struct cdcd_slice c = to_compatible(&a, describe(&a, o));
        struct value got = from_bson(&a, CDCD_BSON_DOCUMENT, apply(&a, b, c));
        sort_fields(&got);
        sort_fields(&after);
        if (!equal(&got, &after))
            same_document(to_bson(&a, &got), to_bson(&a, &after), b, c);
    }
    cdcd_arena_free(&a);
}

/* ---- the writer ---- */

static void test_writer(void **state)
{
    struct cdcd_slice none = {NULL, 0};
    struct mg_writer w;
    struct cdcd_arena a;

    (void)state;
    cdcd_arena_init(&a, 16); /* moves with nearly every element */
    mg_bson_begin(&w, &a);
    mg_bson_open(&w, CDCD_BSON_ARRAY, cdcd_slice_str("a"));
    mg_bson_element(&w, CDCD_BSON_NULL, cdcd_slice_str("0"), none);
    mg_bson_open(&w, CDCD_BSON_DOCUMENT, cdcd_slice_str("1")); /* left open */
    struct cdcd_slice got = mg_bson_end(&w);
    assert_int_equal(got.len, 24);
    assert_memory_equal(got.ptr,
                        "\x18\0\0\0\4a\0\x10\0\0\0\x0a"
                        "0\0\3"
                        "1\0\5\0\0\0\0\0\0",
                        24);
    mg_bson_begin(&w, &a);
    int depth = 0;
    while (mg_bson_open(&w, CDCD_BSON_DOCUMENT, cdcd_slice_str("d")))
        depth++;
    assert_int_equal(depth, CDCD_BSON_DEPTH);
    assert_int_equal(mg_bson_end(&w).len, 5 + (size_t)depth * 8);
    cdcd_arena_free(&a);
}

/* Diffs and paths nested too deep are faults. */
static void test_depth(void **state)
{
    struct cdcd_error err = {0};
    struct cdcd_slice replacement, after;
    struct cdcd_update *u;
    struct mg_writer w;
    struct cdcd_arena a;
    struct value two = {.type = CDCD_BSON_INT32, .n = 2};

    (void)state;
    cdcd_arena_init(&a, 4096);
    mg_bson_begin(&w, &a);
    write_value(&w, "$v", &two);
    mg_bson_open(&w, CDCD_BSON_DOCUMENT, cdcd_slice_str("diff"));
    while (mg_bson_open(&w, CDCD_BSON_DOCUMENT, cdcd_slice_str("sx")))
        ;
    struct cdcd_slice o = mg_bson_end(&w), empty = {"\5\0\0\0\0", 5};
    assert_int_equal(mg_update_parse(o, false, &a, &u, &replacement, &err), CDCD_OK);
    assert_int_equal(mg_update_apply(empty, o, &a, &after, &err), CDCD_ERROR);

    struct cdcd_buf json = {0};
    cdcd_buf_adds(&json, "{\"$set\":{\"a");
    for (int i = 0; i < CDCD_BSON_DEPTH; i++)
        cdcd_buf_adds(&json, ".a");
    cdcd_buf_adds(&json, "\":1}}");
    o = from_json(cdcd_buf_cstr(&json));
    assert_int_equal(mg_update_apply(empty, o, &a, &after, &err), CDCD_ERROR);
    assert_non_null(strstr(err.text, "too deep"));
    drop(o);
    cdcd_buf_free(&json);
    cdcd_arena_free(&a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_describe), cmocka_unit_test(test_replacement),
        cmocka_unit_test(test_buckets),  cmocka_unit_test(test_apply),
        cmocka_unit_test(test_life),     cmocka_unit_test(test_random),
        cmocka_unit_test(test_writer),   cmocka_unit_test(test_description_is_whole),
        cmocka_unit_test(test_depth),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
