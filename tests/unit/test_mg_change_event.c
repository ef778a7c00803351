/*
 * Documents of change streams: which change they are, what they lack, fragments, tokens.
 */
#include "change_event.h"

#include <setjmp.h>
#include <stdlib.h>

#include <cmocka.h>

static struct cdcd_arena arena;
static bson_t *made[64];
static size_t nmade;

static int set_up(void **state)
{
    (void)state;
    cdcd_arena_init(&arena, 4096);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    cdcd_arena_free(&arena);
    while (nmade)
        bson_destroy(made[--nmade]);
    return 0;
}

/* A document from Extended JSON with ' for ". */
static struct cdcd_slice document(const char *json)
{
    bson_error_t e;
    char *text = cdcd_xstrdup(json);
    for (char *p = text; *p; p++) {
        if (*p == '\'')
            *p = '"';
    }
    bson_t *b = bson_new_from_json((const uint8_t *)text, -1, &e);
    if (!b)
        fail_msg("%s: %s", text, e.message);
    free(text);
    assert_true(nmade < 64);
    made[nmade++] = b;
    return mg_slice(b);
}

static char *text_of(struct cdcd_slice bson)
{
    bson_t b;
    if (!bson.ptr)
        return NULL;
    assert_true(bson_init_static(&b, (const uint8_t *)bson.ptr, bson.len));
    char *text = bson_as_relaxed_extended_json(&b, NULL);
    assert_non_null(text);
    for (char *p = text; *p; p++) {
        if (*p == '"')
            *p = '\'';
    }
    return text;
}

/* Without regard to spaces, which differ between versions of libbson. */
static void same(struct cdcd_slice bson, const char *want)
{
    char *text = text_of(bson);
    const char *p = text, *w = want;
    if (!text || !want) {
        assert_true(!text && !want);
        return;
    }
    for (;; p++, w++) {
        while (*p == ' ')
            p++;
        while (*w == ' ')
            w++;
        if (*p != *w)
            fail_msg("%s, not %s", text, want);
        if (!*p)
            break;
    }
    bson_free(text);
}

static void is(struct cdcd_slice got, const char *want)
{
    if (!cdcd_slice_eq(got, cdcd_slice_str(want)))
        fail_msg("\"%.*s\", not \"%s\"", (int)got.len, got.ptr, want);
}

static struct mg_event parsed(const char *json)
{
    struct mg_event e;
    struct cdcd_error err = {0};
    if (mg_event_parse(document(json), &e, &err) != CDCD_OK)
        fail_msg("%s", err.text);
    return e;
}

static struct mg_change changed(const char *json)
{
    struct mg_event e = parsed(json);
    struct mg_change c;
    struct cdcd_error err = {0};
    if (mg_event_change(&e, &arena, &c, &err) != CDCD_OK)
        fail_msg("%s", err.text);
    return c;
}

#define TOKEN "'_id': {'_data': '8265E0A1B2000000072B0229296E04'}, "
#define TIME  "'clusterTime': {'$timestamp': {'t': 1700000000, 'i': 7}}, "
#define WALL  "'wallTime': {'$date': {'$numberLong': '1700000000123'}}, "
#define NS    "'ns': {'db': 'shop', 'coll': 'a.b'}, "
#define HEAD  TOKEN TIME WALL NS

/* ---- documents ---- */

static void inserts(void **state)
{
    (void)state;
    struct mg_change c = changed("{" HEAD "'operationType': 'insert', 'documentKey': {'_id': 5}, "
                                 "'fullDocument': {'_id': 5, 'v': 1}}");
    assert_int_equal(c.op, CDCD_OP_CREATE);
    is(c.db, "shop");
    is(c.collection, "a.b");
    assert_int_equal(c.ts.t, 1700000000);
    assert_int_equal(c.ts.i, 7);
    assert_int_equal(c.wall_ms, INT64_C(1700000000123));
    assert_false(c.transaction);
    assert_int_equal(c.id.aux, CDCD_BSON_INT32);
    assert_int_equal(c.id.len, 4);
    same(c.after, "{ '_id' : 5, 'v' : 1 }");
    same(c.before, NULL);
    assert_null(c.update);
    same(c.token, "{ '_data' : '8265E0A1B2000000072B0229296E04' }");
}

static void a_server_before_6_has_no_wall_time(void **state)
{
    (void)state;
    struct mg_change c = changed("{" TOKEN TIME NS "'operationType': 'delete', "
                                 "'documentKey': {'_id': 'x'}}");
    assert_int_equal(c.op, CDCD_OP_DELETE);
    assert_true(c.wall_ms == INT64_MIN);
    assert_int_equal(c.id.aux, CDCD_BSON_STRING);
    same(c.after, NULL);
}

static void updates(void **state)
{
    (void)state;
    struct mg_change c = changed(
        "{" HEAD "'operationType': 'update', 'documentKey': {'_id': 5}, "
        "'updateDescription': {'updatedFields': {'a.0': 1, 'b': {'c': []}}, "
        "'removedFields': ['x', 'y.z'], "
        "'truncatedArrays': [{'field': 'arr', 'newSize': 3}, "
        "{'field': 'q.r', 'newSize': {'$numberLong': '0'}}], "
        "'disambiguatedPaths': {'a.0': ['a', {'$numberInt': '0'}]}}, "
        "'fullDocument': {'_id': 5, 'v': 2}, 'fullDocumentBeforeChange': {'_id': 5, 'v': 1}}");
    assert_int_equal(c.op, CDCD_OP_UPDATE);
    assert_false(c.replaces);
    same(c.after, "{ '_id' : 5, 'v' : 2 }");
    same(c.before, "{ '_id' : 5, 'v' : 1 }");
    assert_non_null(c.update);
    same(c.update->updated, "{ 'a.0' : 1, 'b' : { 'c' : [  ] } }");
    assert_int_equal(c.update->nremoved, 2);
    is(c.update->removed[0], "x");
    is(c.update->removed[1], "y.z");
    assert_int_equal(c.update->ntruncated, 2);
    is(c.update->truncated[0].field, "arr");
    assert_int_equal(c.update->truncated[0].size, 3);
    is(c.update->truncated[1].field, "q.r");
    assert_int_equal(c.update->truncated[1].size, 0);
    same(c.update->ambiguous, "{ 'a.0' : [ 'a', 0 ] }");
}

/* What the update says must outlive the reply that it came in. */
static void an_update_is_copied(void **state)
{
    (void)state;
    struct cdcd_slice d = document("{" HEAD "'operationType': 'update', 'documentKey': {'_id': 5}, "
                                   "'updateDescription': {'updatedFields': {'a': 1}, "
                                   "'removedFields': ['x'], 'truncatedArrays': [{'field': 'arr', "
                                   "'newSize': 3}], 'disambiguatedPaths': {}}}");
    char *copy = cdcd_xmalloc(d.len);
    memcpy(copy, d.ptr, d.len);
    struct mg_event e;
    struct mg_change c;
    struct cdcd_error err = {0};
    assert_int_equal(mg_event_parse((struct cdcd_slice){copy, d.len}, &e, &err), CDCD_OK);
    assert_int_equal(mg_event_change(&e, &arena, &c, &err), CDCD_OK);
    memset(copy, 0xee, d.len);
    free(copy);
    same(c.update->updated, "{ 'a' : 1 }");
    is(c.update->removed[0], "x");
    is(c.update->truncated[0].field, "arr");
    same(c.update->ambiguous, NULL);
}

static void an_update_that_says_little(void **state)
{
    (void)state;
    struct mg_change c = changed("{" HEAD "'operationType': 'update', 'documentKey': {'_id': 5}, "
                                 "'updateDescription': {'removedFields': ['x'], "
                                 "'truncatedArrays': null}, 'fullDocument': null}");
    same(c.update->updated, "{  }");
    assert_int_equal(c.update->nremoved, 1);
    assert_int_equal(c.update->ntruncated, 0);
    same(c.after, NULL);
    struct mg_event e = parsed("{" HEAD "'operationType': 'update', 'documentKey': {'_id': 5}, "
                               "'updateDescription': {}, 'fullDocument': null}");
    assert_true(e.has_after);
    e = parsed("{" HEAD "'operationType': 'update', 'documentKey': {'_id': 5}, "
               "'updateDescription': {}}");
    assert_false(e.has_after);
}

static void replacements(void **state)
{
    (void)state;
    struct mg_change c = changed("{" HEAD "'operationType': 'replace', 'documentKey': {'_id': 5}, "
                                 "'fullDocument': {'_id': 5, 'r': true}}");
    assert_int_equal(c.op, CDCD_OP_UPDATE);
    assert_true(c.replaces);
    assert_null(c.update);
    same(c.after, "{ '_id' : 5, 'r' : true }");
}

/* The key of a sharded collection bears the shard key, too. */
static void only_the_id_is_the_key(void **state)
{
    (void)state;
    struct mg_change c = changed("{" HEAD "'operationType': 'delete', 'documentKey': "
                                 "{'region': 'eu', '_id': {'$oid': '65e0a1b2c3d4e5f601020304'}}}");
    assert_int_equal(c.id.aux, CDCD_BSON_OID);
    assert_int_equal(c.id.len, 12);
    assert_memory_equal(c.id.ptr, "\x65\xe0\xa1\xb2", 4);
}

static void transactions(void **state)
{
    (void)state;
    struct mg_change c = changed("{" HEAD "'operationType': 'delete', 'documentKey': {'_id': 1}, "
                                 "'lsid': {'id': 1, 'uid': 2}, 'txnNumber': {'$numberLong': '9'}}");
    assert_true(c.transaction);
    same(c.lsid, "{ 'id' : 1, 'uid' : 2 }");
    assert_int_equal(c.txn_number, 9);
    c = changed("{" HEAD "'operationType': 'delete', 'documentKey': {'_id': 1}, "
                "'lsid': {'id': 1}}");
    assert_false(c.transaction);
}

/* ---- commands ---- */

static void commands(void **state)
{
    (void)state;
    static const struct {
        const char *event, *o;
        enum mg_command_kind kind;
    } list[] = {
        {HEAD "'operationType': 'create', 'nsType': 'collection', "
              "'operationDescription': {'idIndex': {'v': 2}}",
         "{ 'create' : 'a.b', 'idIndex' : { 'v' : 2 } }", MG_CMD_CREATE},
        {HEAD "'operationType': 'drop'", "{ 'drop' : 'a.b' }", MG_CMD_DROP},
        {HEAD "'operationType': 'modify', 'operationDescription': {'hidden': true}",
         "{ 'collMod' : 'a.b', 'hidden' : true }", MG_CMD_MODIFY},
        {HEAD "'operationType': 'createIndexes', 'operationDescription': {'indexes': []}",
         "{ 'createIndexes' : 'a.b', 'indexes' : [  ] }", MG_CMD_INDEX},
        {HEAD "'operationType': 'dropIndexes', 'operationDescription': {'indexes': []}",
         "{ 'dropIndexes' : 'a.b', 'indexes' : [  ] }", MG_CMD_INDEX},
        {HEAD "'operationType': 'shardCollection', 'operationDescription': {'shardKey': {'x': 1}}",
         "{ 'shardCollection' : 'shop.a.b', 'shardKey' : { 'x' : 1 } }", MG_CMD_OTHER},
    };
    for (size_t i = 0; i < sizeof list / sizeof *list; i++) {
        char *json = cdcd_xasprintf("{%s}", list[i].event);
        struct mg_change c = changed(json);
        free(json);
        assert_int_equal(c.op, CDCD_OP_DDL);
        assert_int_equal(c.command.kind, list[i].kind);
        is(c.command.db, "shop");
        is(c.command.collection, "a.b");
        same(c.command.o, list[i].o);
    }
}

static void a_whole_database(void **state)
{
    (void)state;
    struct mg_change c = changed("{" TOKEN TIME
                                 "'ns': {'db': 'shop'}, 'operationType': 'dropDatabase'}");
    assert_int_equal(c.command.kind, MG_CMD_DROP_DATABASE);
    is(c.db, "shop");
    assert_null(c.collection.ptr);
    same(c.command.o, "{ 'dropDatabase' : 1 }");
}

static void renames(void **state)
{
    (void)state;
    struct mg_change c = changed("{'to': {'db': 'attic', 'coll': 'c'}, " HEAD
                                 "'operationType': 'rename'}");
    assert_int_equal(c.command.kind, MG_CMD_RENAME);
    is(c.command.to_db, "attic");
    is(c.command.to_collection, "c");
    assert_false(c.command.drop_target);
    same(c.command.o, "{ 'renameCollection' : 'shop.a.b', 'to' : 'attic.c' }");

    c = changed("{'to': {'db': 'shop', 'coll': 'c'}, " HEAD
                "'operationType': 'rename', 'operationDescription': {'to': {'db': 'shop'}, "
                "'dropTarget': {'$uuid': '00112233-4455-6677-8899-aabbccddeeff'}}, "
                "'collectionUUID': {'$uuid': 'ff112233-4455-6677-8899-aabbccddeeff'}}");
    assert_true(c.command.drop_target);
    assert_int_equal(c.command.target_uuid.len, 16);
    assert_memory_equal(c.command.target_uuid.ptr, "\x00\x11\x22\x33", 4);
    assert_int_equal(c.command.uuid.len, 16);
    assert_memory_equal(c.command.uuid.ptr, "\xff\x11\x22\x33", 4);
}

static void what_is_no_change(void **state)
{
    (void)state;
    struct mg_event e = parsed("{" TOKEN TIME "'operationType': 'invalidate'}");
    assert_int_equal(e.kind, MG_EVENT_INVALIDATE);
    e = parsed("{" TOKEN "'operationType': 'fromTheFuture'}");
    assert_int_equal(e.kind, MG_EVENT_UNKNOWN);
    is(e.type, "fromTheFuture");
}

/* ---- what is wrong ---- */

static void refused(void **state)
{
    (void)state;
    static const struct {
        const char *event, *why;
    } list[] = {
        {HEAD "'documentKey': {'_id': 1}", "no operationType"},
        {TIME NS "'operationType': 'delete', 'documentKey': {'_id': 1}", "no resume token"},
        {TOKEN NS "'operationType': 'delete', 'documentKey': {'_id': 1}", "no clusterTime"},
        {TOKEN TIME "'operationType': 'delete', 'documentKey': {'_id': 1}", "no ns"},
        {TOKEN TIME "'ns': {'db': 'x'}, 'operationType': 'delete', 'documentKey': {'_id': 1}",
         "names no collection"},
        {TOKEN TIME "'ns': {'db': 'x'}, 'operationType': 'drop'", "names no collection"},
        {HEAD "'operationType': 'delete'", "no documentKey"},
        {HEAD "'operationType': 'delete', 'documentKey': {'x': 1}", "no _id"},
        {HEAD "'operationType': 'insert', 'documentKey': {'_id': 1}", "no fullDocument"},
        {HEAD "'operationType': 'replace', 'documentKey': {'_id': 1}, 'fullDocument': null",
         "no fullDocument"},
        {HEAD "'operationType': 'update', 'documentKey': {'_id': 1}", "no updateDescription"},
        {HEAD "'operationType': 'rename'", "new name"},
        {HEAD "'operationType': 'update', 'documentKey': {'_id': 1}, "
              "'updateDescription': {'updatedFields': [1]}",
         "updatedFields is no document"},
        {HEAD "'operationType': 'update', 'documentKey': {'_id': 1}, "
              "'updateDescription': {'removedFields': [1]}",
         "removedFields holds"},
        {HEAD "'operationType': 'update', 'documentKey': {'_id': 1}, "
              "'updateDescription': {'truncatedArrays': [{'field': 'a'}]}",
         "truncatedArrays holds"},
        {HEAD "'operationType': 'update', 'documentKey': {'_id': 1}, "
              "'updateDescription': {'truncatedArrays': [{'field': 'a', 'newSize': -1}]}",
         "truncatedArrays holds"},
        {HEAD "'operationType': 'update', 'documentKey': {'_id': 1}, "
              "'updateDescription': {'swappedFields': {}}",
         "not known"},
        {HEAD "'operationType': 'delete', 'documentKey': {'_id': 1}, "
              "'splitEvent': {'fragment': 3, 'of': 2}",
         "splitEvent"},
    };
    for (size_t i = 0; i < sizeof list / sizeof *list; i++) {
        char *json = cdcd_xasprintf("{%s}", list[i].event);
        struct mg_event e;
        struct mg_change c;
        struct cdcd_error err = {0};
        enum cdcd_rc rc = mg_event_parse(document(json), &e, &err);
        if (rc == CDCD_OK)
            rc = mg_event_change(&e, &arena, &c, &err);
        assert_int_equal(rc, CDCD_ERROR);
        assert_int_equal(err.class, CDCD_ERR_DATA);
        if (!strstr(err.text, list[i].why))
            fail_msg("%s: \"%s\" does not say \"%s\"", json, err.text, list[i].why);
        free(json);
    }
}

static void an_error_says_where(void **state)
{
    (void)state;
    struct mg_event e;
    struct cdcd_error err = {0};
    assert_int_equal(mg_event_parse(document("{" HEAD "'operationType': 'insert'}"), &e, &err),
                     CDCD_ERROR);
    assert_non_null(strstr(err.text, "insert of shop.a.b at 1700000000:7"));
}

/* Every cut and every changed byte of an event is refused or read, never read beyond. */
static void damaged(void **state)
{
    (void)state;
    struct cdcd_slice d = document(
        "{'to': {'db': 'a', 'coll': 'b'}, " HEAD "'operationType': 'update', "
        "'documentKey': {'_id': 5}, 'lsid': {'id': 1}, 'txnNumber': 1, 'updateDescription': "
        "{'updatedFields': {'a.0': 1}, 'removedFields': ['x', 'y.z'], 'truncatedArrays': "
        "[{'field': 'arr', 'newSize': 3}], 'disambiguatedPaths': {'a.0': ['a', 0]}}, "
        "'operationDescription': {'dropTarget': true}, 'fullDocument': {'_id': 5}}");
    struct mg_event e;
    struct mg_change c;
    for (size_t i = 0; i < d.len; i++) {
        char *cut = cdcd_xmalloc(i + 1);
        memcpy(cut, d.ptr, i);
        assert_int_equal(mg_event_parse((struct cdcd_slice){cut, i}, &e, NULL), CDCD_ERROR);
        free(cut);
        for (int bit = 0; bit < 256; bit += 17) {
            char *copy = cdcd_xmalloc(d.len);
            memcpy(copy, d.ptr, d.len);
            copy[i] = (char)(copy[i] ^ bit);
            if (mg_event_parse((struct cdcd_slice){copy, d.len}, &e, NULL) == CDCD_OK &&
                (e.kind == MG_EVENT_DOCUMENT || e.kind == MG_EVENT_COMMAND))
                (void)mg_event_change(&e, &arena, &c, NULL);
            free(copy);
            cdcd_arena_reset(&arena, 4096);
        }
    }
}

/* ---- fragments ---- */

static void fragments(void **state)
{
    (void)state;
    struct cdcd_slice parts[] = {
        document(
            "{'_id': {'_data': '01'}, 'splitEvent': {'fragment': 1, 'of': 3}, "
            "'wallTime': {'$date': {'$numberLong': '5'}}, 'fullDocument': {'_id': 1, 'v': 2}}"),
        document("{'_id': {'_data': '02'}, 'splitEvent': {'fragment': 2, 'of': 3}, " TIME NS
                 "'fullDocumentBeforeChange': {'_id': 1, 'v': 1}}"),
        /* A server that repeats the small fields in each of them. */
        document("{'_id': {'_data': '03'}, 'splitEvent': {'fragment': 3, 'of': 3}, " TIME NS
                 "'operationType': 'update', 'documentKey': {'_id': 1}, "
                 "'updateDescription': {'updatedFields': {'v': 2}}}"),
    };
    struct cdcd_buf fields;
    struct cdcd_error err = {0};
    struct mg_event e;
    struct mg_change c;
    cdcd_buf_init(&fields, 0);
    for (size_t i = 0; i < 3; i++) {
        assert_int_equal(mg_event_parse(parts[i], &e, &err), CDCD_OK);
        assert_int_equal(e.kind, MG_EVENT_FRAGMENT);
        assert_int_equal(e.fragment, i + 1);
        assert_int_equal(e.of, 3);
        assert_int_equal(mg_event_merge(parts[i], &fields, &err), CDCD_OK);
    }
    mg_event_merged(&fields, e.token);
    same(cdcd_buf_slice(&fields),
         "{ '_id' : { '_data' : '03' }, 'wallTime' : { '$date' : '1970-01-01T00:00:00.005Z' }, "
         "'fullDocument' : { '_id' : 1, 'v' : 2 }, 'clusterTime' : { '$timestamp' : "
         "{ 't' : 1700000000, 'i' : 7 } }, 'ns' : { 'db' : 'shop', 'coll' : 'a.b' }, "
         "'fullDocumentBeforeChange' : { '_id' : 1, 'v' : 1 }, 'operationType' : 'update', "
         "'documentKey' : { '_id' : 1 }, 'updateDescription' : { 'updatedFields' : "
         "{ 'v' : 2 } } }");
    assert_int_equal(mg_event_parse(cdcd_buf_slice(&fields), &e, &err), CDCD_OK);
    assert_int_equal(mg_event_change(&e, &arena, &c, &err), CDCD_OK);
    same(c.after, "{ '_id' : 1, 'v' : 2 }");
    same(c.before, "{ '_id' : 1, 'v' : 1 }");
    same(c.token, "{ '_data' : '03' }");
    cdcd_buf_free(&fields);
}

static void one_fragment_is_an_event(void **state)
{
    (void)state;
    struct mg_event e = parsed("{" HEAD "'operationType': 'delete', 'documentKey': {'_id': 1}, "
                               "'splitEvent': {'fragment': 1, 'of': 1}}");
    assert_int_equal(e.kind, MG_EVENT_DOCUMENT);
}

static void fragments_that_are_too_much(void **state)
{
    (void)state;
    struct cdcd_buf fields;
    struct cdcd_error err = {0};
    cdcd_buf_init(&fields, 64);
    struct cdcd_slice part = document(
        "{'_id': {'_data': '01'}, 'a': 'yyyyyyyyyyyyyyyyyyyyyyyyyyyyyy"
        "yyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyy'}");
    assert_int_equal(mg_event_merge(part, &fields, &err), CDCD_ERROR);
    assert_int_equal(err.class, CDCD_ERR_DATA);
    cdcd_buf_free(&fields);
}

/* ---- tokens ---- */

static void times_of_tokens(void **state)
{
    (void)state;
    static const struct {
        const char *token;
        uint32_t t, i; /* 0: none */
    } list[] = {
        /* A key string, as MongoDB has it: of an event, and of a time alone. */
        {"{'_data': '8263B1D2F4000000052B022C0100296E5A1004'}", 0x63b1d2f4, 5},
        {"{'_data': '8263b1d2f4ffffffff2b0429296e04'}", 0x63b1d2f4, 0xffffffff},
        /* BSON. */
        {"{'_data': "
         "'3b00000010730004000000117400060000003dce0d6b026e001500000061646d696e2e24636d642e"
         "61676772656761746500036b00050000000000'}",
         0x6b0dce3d, 6},
        {"{'_data': '82'}", 0, 0},
        {"{'_data': '8263B1D2F40000000'}", 0, 0},
        {"{'_data': 'zz63B1D2F4000000052B02'}", 0, 0},
        {"{'_data': ''}", 0, 0},
        {"{'_data': 5}", 0, 0},
        {"{}", 0, 0},
    };
    for (size_t i = 0; i < sizeof list / sizeof *list; i++) {
        struct mg_time t = {0, 0};
        assert_int_equal(mg_token_time(document(list[i].token), &t), list[i].t != 0);
        assert_true(t.t == list[i].t && t.i == list[i].i);
    }
    struct mg_time t;
    assert_false(mg_token_time((struct cdcd_slice){NULL, 0}, &t));
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(inserts),
        TEST(a_server_before_6_has_no_wall_time),
        TEST(updates),
        TEST(an_update_is_copied),
        TEST(an_update_that_says_little),
        TEST(replacements),
        TEST(only_the_id_is_the_key),
        TEST(transactions),
        TEST(commands),
        TEST(a_whole_database),
        TEST(renames),
        TEST(what_is_no_change),
        TEST(refused),
        TEST(an_error_says_where),
        TEST(damaged),
        TEST(fragments),
        TEST(one_fragment_is_an_event),
        TEST(fragments_that_are_too_much),
        TEST(times_of_tokens),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
