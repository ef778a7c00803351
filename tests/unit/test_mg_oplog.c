/*
 * Entries of the oplog: recorded ones against what is written beside them, and every shape and
 * every fault one by one.
 */
#include "mg_oplog_test.h"

#include <glob.h>

/* ---- an entry as a line of NAME.expect.json ---- */

static const char *const kinds[] = {
    [MG_ENTRY_NOOP] = "noop",       [MG_ENTRY_OPS] = "ops",     [MG_ENTRY_PART] = "part",
    [MG_ENTRY_COMMIT] = "commit",   [MG_ENTRY_ABORT] = "abort", [MG_ENTRY_COMMAND] = "command",
    [MG_ENTRY_UNKNOWN] = "unknown",
};
static const char *const command_kinds[] = {
    [MG_CMD_CREATE] = "create", [MG_CMD_DROP] = "drop",
    [MG_CMD_RENAME] = "rename", [MG_CMD_DROP_DATABASE] = "drop database",
    [MG_CMD_MODIFY] = "modify", [MG_CMD_INDEX] = "index",
    [MG_CMD_OTHER] = "other",
};

static void add_update(struct cdcd_buf *out, const struct mg_op *op)
{
    struct cdcd_arena a;
    struct cdcd_update *u;
    struct cdcd_slice replacement;
    struct cdcd_error err = {0};

    cdcd_arena_init(&a, 4096);
    if (mg_update_parse(op->o, false, &a, &u, &replacement, &err) != CDCD_OK) {
        print_error("%s\n", err.text);
        fail();
    }
    cdcd_buf_adds(out, u ? ",\"update\":" : ",\"replacement\":");
    if (u)
        add_description(out, u);
    else
        add_json(out, CDCD_BSON_DOCUMENT, replacement);
    cdcd_arena_free(&a);
}

static void add_op(struct cdcd_buf *out, const struct mg_op *op)
{
    cdcd_buf_addf(out, "{\"index\":%u,\"op\":\"%c\",\"ns\":", op->index, op->op);
    add_json_string(out, op->ns);
    assert_int_equal(op->ns.len, op->db.len + 1 + op->collection.len);
    cdcd_buf_adds(out, ",\"id\":");
    assert_int_equal(op->id.kind, CDCD_C_BSON);
    add_json(out, (uint8_t)op->id.aux, (struct cdcd_slice){op->id.ptr, op->id.len});
    if (op->op == 'u')
        add_update(out, op);
    cdcd_buf_adds(out, "}");
}

static void add_ops(struct cdcd_buf *out, const struct mg_entry *e)
{
    struct mg_ops ops;
    struct mg_op op;
    struct cdcd_error err;
    enum cdcd_rc rc;
    int n = 0;

    assert_int_equal(mg_ops_begin(e, &ops, &err), CDCD_OK);
    while ((rc = mg_ops_next(&ops, &op, &err)) == CDCD_OK) {
        cdcd_buf_adds(out, n++ ? "," : ",\"ops\":[");
        add_op(out, &op);
    }
    assert_int_equal(rc, CDCD_END);
    assert_int_equal(mg_ops_next(&ops, &op, &err), CDCD_END);
    if (n || e->ops.ptr)
        cdcd_buf_adds(out, n ? "]" : ",\"ops\":[]");
}

static void add_command(struct cdcd_buf *out, const struct mg_entry *e)
{
    struct mg_command c;
    struct cdcd_error err = {0};

    assert_int_equal(mg_command_parse(e->ns, e->op.o, e->op.uuid, &c, &err), CDCD_OK);
    cdcd_buf_addf(out, ",\"command\":{\"kind\":\"%s\",\"db\":", command_kinds[c.kind]);
    add_json_string(out, c.db);
    if (c.collection.ptr) {
        cdcd_buf_adds(out, ",\"collection\":");
        add_json_string(out, c.collection);
    }
    cdcd_buf_adds(out, "}");
}

static void add_entry(struct cdcd_buf *out, const struct mg_entry *e)
{
    cdcd_buf_addf(out, "{\"ts\":[%u,%u],\"kind\":\"%s\",\"what\":", e->ts.t, e->ts.i,
                  kinds[e->kind]);
    add_json_string(out, e->what);
    if (mg_time_number(e->prev))
        cdcd_buf_addf(out, ",\"prev\":[%u,%u]", e->prev.t, e->prev.i);
    if (e->wall_ms != INT64_MIN)
        cdcd_buf_addf(out, ",\"wall\":%lld", (long long)e->wall_ms);
    if (e->lsid.ptr) {
        cdcd_buf_adds(out, ",\"lsid\":");
        add_json(out, CDCD_BSON_DOCUMENT, e->lsid);
    }
    if (e->has_txn_number)
        cdcd_buf_addf(out, ",\"txnNumber\":%lld", (long long)e->txn_number);
    cdcd_buf_adds(out, e->transaction ? ",\"transaction\":true" : "");
    add_ops(out, e);
    if (e->kind == MG_ENTRY_COMMAND)
        add_command(out, e);
    cdcd_buf_adds(out, "}");
}

/* ---- recorded entries ---- */

/* The entry at `at`, in memory of its own. */
static struct cdcd_slice entry_at(const struct cdcd_buf *file, size_t at)
{
    int32_t len;

    assert_true(file->len - at >= 4);
    memcpy(&len, file->ptr + at, 4);
    assert_true(len >= 5 && (size_t)len <= file->len - at);
    return (struct cdcd_slice){memcpy(cdcd_xmalloc((size_t)len), file->ptr + at, (size_t)len),
                               (size_t)len};
}

static void check_file(const char *path)
{
    struct cdcd_buf file = {0}, want = {0}, got = {0};
    struct cdcd_error err = {0};
    struct mg_entry e;
    int n = 0;

    read_file(path, &file);
    char *expected = cdcd_xasprintf("%.*s.expect.json", (int)(strlen(path) - 5), path);
    read_file(expected, &want);
    for (size_t at = 0; at < file.len;) {
        struct cdcd_slice document = entry_at(&file, at);
        if (mg_entry_parse(document, &e, &err) != CDCD_OK) {
            print_error("%s: %s\n", path, err.text);
            fail();
        }
        cdcd_buf_adds(&got, n++ ? ",\n" : "[\n");
        add_entry(&got, &e);
        at += document.len;
        drop(document);
    }
    cdcd_buf_adds(&got, "\n]\n");
    if (got.len != want.len || memcmp(got.ptr, want.ptr, got.len) != 0) {
        FILE *f = fopen("test_mg_oplog.got", "w");
        fwrite(got.ptr, 1, got.len, f);
        fclose(f);
        print_error("%s: not as in %s; see test_mg_oplog.got\n", path, expected);
        fail();
    }
    free(expected);
    cdcd_buf_free(&file);
    cdcd_buf_free(&want);
    cdcd_buf_free(&got);
}

static void each_file(void (*check)(const char *path))
{
    char *pattern = golden_path("*.bson");
    glob_t g;

    assert_int_equal(glob(pattern, 0, NULL, &g), 0);
    assert_true(g.gl_pathc >= 37);
    for (size_t i = 0; i < g.gl_pathc; i++)
        check(g.gl_pathv[i]);
    globfree(&g);
    free(pattern);
}

static void test_recorded(void **state)
{
    (void)state;
    each_file(check_file);
}

static void walk(struct cdcd_slice document)
{
    struct cdcd_error err;
    struct cdcd_update *u;
    struct cdcd_slice replacement;
    struct cdcd_arena a;
    struct mg_entry e;
    struct mg_ops ops;
    struct mg_op op;

    if (mg_entry_parse(document, &e, &err) != CDCD_OK || mg_ops_begin(&e, &ops, &err) != CDCD_OK)
        return;
    cdcd_arena_init(&a, 4096);
    while (mg_ops_next(&ops, &op, &err) == CDCD_OK) {
        if (op.op == 'u' && mg_update_parse(op.o, true, &a, &u, &replacement, &err) != CDCD_OK)
            break;
    }
    cdcd_arena_free(&a);
}

/* Cut at every byte, with the length made right: no byte behind the end is read. */
static void cut_file(const char *path)
{
    struct cdcd_buf file = {0};

    read_file(path, &file);
    for (size_t at = 0; at < file.len && at < 10000;) { /* the rest of the largest is alike */
        struct cdcd_slice whole = entry_at(&file, at);
        for (size_t n = 0; n < whole.len; n++) {
            int32_t len = (int32_t)n;
            char *part = memcpy(cdcd_xmalloc(n + 1), whole.ptr, n);
            part = cdcd_xrealloc(part, n ? n : 1);
            if (n >= 5) {
                memcpy(part, &len, 4);
                part[n - 1] = 0;
            }
            walk((struct cdcd_slice){part, n});
            free(part);
        }
        at += whole.len;
        drop(whole);
    }
    cdcd_buf_free(&file);
}

static void test_cut(void **state)
{
    (void)state;
    each_file(cut_file);
}

/* ---- single shapes ---- */

#define TS    "\"ts\":{\"$timestamp\":{\"t\":7,\"i\":3}}"
#define PREV  "\"prevOpTime\":{\"ts\":{\"$timestamp\":{\"t\":7,\"i\":2}},\"t\":1}"
#define NULL_ "\"prevOpTime\":{\"ts\":{\"$timestamp\":{\"t\":0,\"i\":0}},\"t\":-1}"
#define LSID  "\"lsid\":{\"id\":1},\"txnNumber\":5"
#define ADMIN "\"op\":\"c\",\"ns\":\"admin.$cmd\""
#define INS   "{\"op\":\"i\",\"ns\":\"d.c\",\"o\":{\"_id\":1}}"

/* The line of an entry, without its time. */
static const struct {
    const char *json, *line;
} shapes[] = {
    {"{" TS ",\"op\":\"i\",\"ns\":\"d.c.e\",\"o\":{\"x\":1,\"_id\":2},\"o2\":{\"_id\":3}}",
     "\"kind\":\"ops\",\"what\":\"i\",\"ops\":[{\"index\":0,\"op\":\"i\",\"ns\":\"d.c.e\",\"id\":2}"
     "]"},
    {"{" TS ",\"op\":\"d\",\"ns\":\"d.c\",\"o\":{\"k\":1,\"_id\":2},\"b\":true}",
     "\"kind\":\"ops\",\"what\":\"d\",\"ops\":[{\"index\":0,\"op\":\"d\",\"ns\":\"d.c\",\"id\":2}"
     "]"},
    {"{" TS ",\"op\":\"u\",\"ns\":\"d.c\",\"o\":{\"_id\":{\"a\":1}},\"v\":1}",
     "\"kind\":\"ops\",\"what\":\"u\",\"ops\":[{\"index\":0,\"op\":\"u\",\"ns\":\"d.c\",\"id\":{"
     "\"a\":1},\"replacement\":{\"_id\":{\"a\":1}}}]"},
    {"{" TS ",\"op\":\"n\",\"ns\":\"\",\"o\":{\"msg\":\"periodic noop\"},\"v\":{\"$numberLong\":"
     "\"2\"}}",
     "\"kind\":\"noop\",\"what\":\"n\""},
    {"{" TS ",\"op\":\"xi\",\"ns\":\"d.c\",\"o\":5}", NULL},
    {"{" TS ",\"op\":\"ci\",\"ns\":\"d.c\",\"o\":{\"a\":5}}",
     "\"kind\":\"unknown\",\"what\":\"ci\""},
    {"{" TS ",\"op\":\"c\",\"ns\":\"d.$cmd\",\"o\":{\"importCollection\":\"x\"}}",
     "\"kind\":\"unknown\",\"what\":\"importCollection\""},
    {"{" TS ",\"op\":\"i\",\"ns\":\"d.system.indexes\",\"o\":{\"ns\":\"d.c\",\"key\":{}}}",
     "\"kind\":\"unknown\",\"what\":\"i\""},
    /* flat entries of a session */
    {"{" TS ",\"op\":\"d\",\"ns\":\"d.c\",\"o\":{\"_id\":2}," LSID "}",
     "\"kind\":\"ops\",\"what\":\"d\",\"lsid\":{\"id\":1},\"txnNumber\":5,\"transaction\":true,"
     "\"ops\":[{\"index\":0,\"op\":\"d\",\"ns\":\"d.c\",\"id\":2}]"},
    {"{" TS ",\"op\":\"d\",\"ns\":\"d.c\",\"o\":{\"_id\":2}," LSID ",\"stmtId\":[1,2],"
     "\"needsRetryImage\":\"preImage\",\"preImageOpTime\":{}}",
     "\"kind\":\"ops\",\"what\":\"d\",\"lsid\":{\"id\":1},\"txnNumber\":5,"
     "\"ops\":[{\"index\":0,\"op\":\"d\",\"ns\":\"d.c\",\"id\":2}]"},
    /* applyOps: alone, of a session, linked, vectored */
    {"{" TS "," ADMIN ",\"o\":{\"applyOps\":[]}}",
     "\"kind\":\"ops\",\"what\":\"applyOps\",\"ops\":[]"},
    {"{" TS "," ADMIN "," LSID "," NULL_ ",\"o\":{\"applyOps\":[" INS "]}}",
     "\"kind\":\"ops\",\"what\":\"applyOps\",\"lsid\":{\"id\":1},\"txnNumber\":5,\"transaction\":"
     "true,\"ops\":[{\"index\":0,\"op\":\"i\",\"ns\":\"d.c\",\"id\":1}]"},
    {"{" TS "," ADMIN "," LSID "," PREV ",\"o\":{\"applyOps\":[" INS "],\"count\":9}}",
     "\"kind\":\"commit\",\"what\":\"applyOps\",\"prev\":[7,2],\"lsid\":{\"id\":1},\"txnNumber\":5,"
     "\"transaction\":true,\"ops\":[{\"index\":0,\"op\":\"i\",\"ns\":\"d.c\",\"id\":1}]"},
    {"{" TS "," ADMIN "," LSID "," PREV ",\"o\":{\"applyOps\":[],\"prepare\":true}}",
     "\"kind\":\"part\",\"what\":\"applyOps\",\"prev\":[7,2],\"lsid\":{\"id\":1},\"txnNumber\":5,"
     "\"transaction\":true,\"ops\":[]"},
    {"{" TS "," ADMIN "," LSID "," PREV ",\"o\":{\"applyOps\":[" INS "]},\"multiOpType\":1}",
     "\"kind\":\"ops\",\"what\":\"applyOps\",\"prev\":[7,2],\"lsid\":{\"id\":1},\"txnNumber\":5,"
     "\"ops\":[{\"index\":0,\"op\":\"i\",\"ns\":\"d.c\",\"id\":1}]"},
    /* a large batch outside of sessions, cut in two */
    {"{" TS "," ADMIN "," NULL_ ",\"o\":{\"applyOps\":[" INS "],\"partialTxn\":true}}",
     "\"kind\":\"part\",\"what\":\"applyOps\",\"ops\":[{\"index\":0,\"op\":\"i\",\"ns\":\"d.c\","
     "\"id\":1}]"},
    {"{" TS "," ADMIN "," PREV ",\"o\":{\"applyOps\":[],\"count\":1}}",
     "\"kind\":\"commit\",\"what\":\"applyOps\",\"prev\":[7,2],\"ops\":[]"},
    {"{" TS "," ADMIN "," LSID "," PREV ",\"o\":{\"commitTransaction\":1}}",
     "\"kind\":\"commit\",\"what\":\"commitTransaction\",\"prev\":[7,2],\"lsid\":{\"id\":1},"
     "\"txnNumber\":5,\"transaction\":true"},
    {"{" TS "," ADMIN "," LSID "," NULL_ ",\"o\":{\"abortTransaction\":1}}",
     "\"kind\":\"abort\",\"what\":\"abortTransaction\",\"lsid\":{\"id\":1},\"txnNumber\":5"},
    /* noops are counted, nested applyOps flat */
    {"{" TS "," ADMIN ",\"o\":{\"applyOps\":[{\"op\":\"n\",\"ns\":\"\",\"o\":{}}," INS ",{\"op\":"
     "\"c\",\"ns\":\"d.$cmd\",\"o\":{\"applyOps\":[" INS "]}}," INS "]},\"tid\":{\"$oid\":"
     "\"0123456789abcdef01234567\"}}",
     "\"kind\":\"ops\",\"what\":\"applyOps\",\"ops\":[{\"index\":1,\"op\":\"i\",\"ns\":\"d.c\","
     "\"id\":1},{\"index\":0,\"op\":\"i\",\"ns\":\"d.c\",\"id\":1},{\"index\":3,\"op\":\"i\","
     "\"ns\":\"d.c\",\"id\":1}]"},
};

static void test_shapes(void **state)
{
    struct cdcd_error err;
    struct mg_entry e;

    (void)state;
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
        struct cdcd_buf got = {0};
        struct cdcd_slice document = from_json(shapes[i].json);
        enum cdcd_rc rc = mg_entry_parse(document, &e, &err);
        assert_int_equal(rc, shapes[i].line ? CDCD_OK : CDCD_ERROR);
        if (shapes[i].line) {
            char *want = cdcd_xasprintf("{\"ts\":[7,3],%s}", shapes[i].line);
            add_entry(&got, &e);
            assert_string_equal(cdcd_buf_cstr(&got), want);
            assert_ptr_equal(e.body.ptr, document.ptr);
            free(want);
        }
        cdcd_buf_free(&got);
        drop(document);
    }
}

/* ---- faults ---- */

static const struct {
    const char *json, *text;
} faults[] = {
    {"{\"op\":\"n\"}", "oplog entry (op n, ns ): it has no ts"},
    {"{" TS "}", "oplog entry at 7:3 (op , ns ): it has no op"},
    {"{" TS ",\"op\":\"i\",\"ns\":\"d.c\",\"v\":3,\"o\":{\"_id\":1}}",
     "oplog entry at 7:3 (op i, ns d.c): its version (v) is 3; this cdcd knows 1 to 2"},
    {"{" TS ",\"op\":\"i\",\"ns\":\"d.c\",\"v\":\"2\",\"o\":{\"_id\":1}}", "field v has a wrong"},
    {"{" TS ",\"op\":\"i\",\"ns\":\"d.c\",\"v\":2.5,\"o\":{\"_id\":1}}", "field v has a wrong"},
    {"{" TS ",\"op\":\"i\",\"ns\":\"dc\",\"o\":{\"_id\":1}}", "no \"db.collection\""},
    {"{" TS ",\"op\":\"i\",\"ns\":\".c\",\"o\":{\"_id\":1}}", "no \"db.collection\""},
    {"{" TS ",\"op\":\"i\",\"ns\":\"d.\",\"o\":{\"_id\":1}}", "no \"db.collection\""},
    {"{" TS ",\"op\":\"i\",\"o\":{\"_id\":1}}", "no \"db.collection\""},
    {"{" TS ",\"op\":\"i\",\"ns\":\"d.c\"}", "it has no o"},
    {"{" TS ",\"op\":\"i\",\"ns\":\"d.c\",\"o\":[1]}", "field o has a wrong type"},
    {"{" TS ",\"op\":\"i\",\"ns\":\"d.c\",\"o\":{}}", "it has no _id"},
    {"{" TS ",\"op\":\"u\",\"ns\":\"d.c\",\"o\":{\"$set\":{}},\"o2\":{}}", "it has no _id"},
    {"{" TS ",\"op\":\"d\",\"ns\":\"d.c\",\"o\":{\"x\":1},\"o2\":{\"_id\":1}}", "it has no _id"},
    {"{" TS ",\"op\":\"i\",\"ns\":\"d.c\",\"o\":{\"_id\":1},\"ui\":{\"$binary\":{\"base64\":"
     "\"AAAA\",\"subType\":\"04\"}}}",
     "field ui has a wrong"},
    {"{" TS ",\"op\":\"c\",\"ns\":\"d.$cmd\"}", "it has no o"},
    {"{" TS ",\"op\":\"c\",\"ns\":\"d.$cmd\",\"o\":{}}", "malformed or empty"},
    {"{" TS ",\"op\":\"c\",\"o\":{\"drop\":\"c\"}}", "command drop has no ns"},
    {"{" TS "," ADMIN ",\"o\":{\"applyOps\":{}}}", "applyOps is no array"},
    {"{" TS "," ADMIN ",\"o\":{\"applyOps\":[],\"count\":\"1\"}}", "count is no number"},
    {"{" TS "," ADMIN ",\"o\":{\"applyOps\":[]},\"multiOpType\":2}", "multiOpType 2"},
    {"{" TS "," ADMIN "," NULL_ ",\"o\":{\"commitTransaction\":1}}", "without prevOpTime"},
    {"{" TS "," ADMIN ",\"prevOpTime\":{\"t\":1},\"o\":{\"commitTransaction\":1}}",
     "field prevOpTime has a wrong"},
    /* within an applyOps */
    {"{" TS "," ADMIN ",\"o\":{\"applyOps\":[1]}}",
     "oplog entry at 7:3 (applyOps), operation 0: it is no document"},
    {"{" TS "," ADMIN ",\"o\":{\"applyOps\":[" INS ",{\"op\":\"d\",\"ns\":\"d.c\",\"o\":{}}]}}",
     "oplog entry at 7:3 (applyOps), operation 1: oplog entry (op d, ns d.c): it has no _id"},
    {"{" TS "," ADMIN ",\"o\":{\"applyOps\":[{\"ns\":\"d.c\"}]}}", "operation 0: oplog entry (op , "
                                                                   "ns d.c): it has no op"},
    {"{" TS "," ADMIN ",\"o\":{\"applyOps\":[{\"op\":\"c\",\"o\":{\"applyOps\":1}}]}}",
     "applyOps is no array"},
};

static void test_faults(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof faults / sizeof *faults; i++) {
        struct cdcd_slice document = from_json(faults[i].json);
        struct cdcd_error err = {0};
        struct mg_entry e;
        struct mg_ops ops;
        struct mg_op op;
        enum cdcd_rc rc = mg_entry_parse(document, &e, &err);
        if (rc == CDCD_OK && (rc = mg_ops_begin(&e, &ops, &err)) == CDCD_OK) {
            while ((rc = mg_ops_next(&ops, &op, &err)) == CDCD_OK)
                ;
        }
        if (rc != CDCD_ERROR || !strstr(err.text, faults[i].text)) {
            print_error("%s: \"%s\", wanted \"%s\"\n", faults[i].json, err.text, faults[i].text);
            fail();
        }
        assert_int_equal(err.class, CDCD_ERR_DATA);
        drop(document);
    }
}

/* One more than the server allows is an error, not a crash. */
static void test_nesting(void **state)
{
    struct cdcd_error err = {0};
    struct mg_entry e;
    struct mg_ops ops;
    struct mg_op op;

    (void)state;
    for (int depth = MG_APPLY_OPS_DEPTH; depth <= MG_APPLY_OPS_DEPTH + 1; depth++) {
        struct cdcd_buf json = {0};
        cdcd_buf_adds(&json, "{" TS "," ADMIN ",\"o\":{\"applyOps\":[");
        for (int i = 1; i < depth; i++)
            cdcd_buf_adds(&json, "{" ADMIN ",\"o\":{\"applyOps\":[");
        cdcd_buf_adds(&json, INS);
        for (int i = 0; i < depth; i++)
            cdcd_buf_adds(&json, "]}}");
        struct cdcd_slice document = from_json(cdcd_buf_cstr(&json));
        assert_int_equal(mg_entry_parse(document, &e, &err), CDCD_OK);
        assert_int_equal(mg_ops_begin(&e, &ops, &err), CDCD_OK);
        enum cdcd_rc rc = mg_ops_next(&ops, &op, &err);
        assert_int_equal(rc, depth == MG_APPLY_OPS_DEPTH ? CDCD_OK : CDCD_ERROR);
        if (rc == CDCD_OK)
            assert_int_equal(mg_ops_next(&ops, &op, &err), CDCD_END);
        else
            assert_non_null(strstr(err.text, "more than 10 applyOps"));
        drop(document);
        cdcd_buf_free(&json);
    }
}

/* Of the entry, of one operation. */
static void test_from_migrate(void **state)
{
    static const char *const entries[] = {
        "{" TS "," ADMIN ",\"o\":{\"applyOps\":[" INS
        ",{\"op\":\"i\",\"ns\":\"d.c\",\"o\":{\"_id\":"
        "1},\"fromMigrate\":true}]}}",
        "{" TS "," ADMIN ",\"fromMigrate\":true,\"o\":{\"applyOps\":[" INS "," INS "]}}",
        "{" TS ",\"fromMigrate\":true,\"op\":\"i\",\"ns\":\"d.c\",\"o\":{\"_id\":1},\"ui\":{"
        "\"$binary\":{\"base64\":\"AAECAwQFBgcICQoLDA0ODw==\",\"subType\":\"04\"}}}"};
    struct cdcd_error err;
    struct mg_entry e;
    struct mg_ops ops;
    struct mg_op op;

    (void)state;
    for (int i = 0; i < 3; i++) {
        struct cdcd_slice document = from_json(entries[i]);
        assert_int_equal(mg_entry_parse(document, &e, &err), CDCD_OK);
        assert_int_equal(e.from_migrate, i > 0);
        assert_int_equal(mg_ops_begin(&e, &ops, &err), CDCD_OK);
        assert_int_equal(mg_ops_next(&ops, &op, &err), CDCD_OK);
        assert_int_equal(op.from_migrate, i > 0);
        if (i < 2) {
            assert_int_equal(mg_ops_next(&ops, &op, &err), CDCD_OK);
            assert_true(op.from_migrate);
            assert_null(op.uuid.ptr);
        } else {
            assert_int_equal(op.uuid.len, 16);
            assert_memory_equal(op.uuid.ptr, "\0\1\2\3\4\5\6\7\x8\x9\xa\xb\xc\xd\xe\xf", 16);
        }
        drop(document);
    }
}

/* What a chain of parts is checked with. */
static void test_parts(void **state)
{
    static const struct {
        const char *json;
        bool prepared;
        int count;
    } parts[] = {
        {"{" TS "," ADMIN "," NULL_ ",\"o\":{\"applyOps\":[],\"partialTxn\":true}}", false, -1},
        {"{" TS "," ADMIN "," PREV ",\"o\":{\"applyOps\":[],\"prepare\":true,\"count\":7}}", true,
         7},
        {"{" TS "," ADMIN "," PREV ",\"o\":{\"applyOps\":[],\"count\":{\"$numberLong\":\"9\"}}}",
         false, 9},
        {"{" TS "," ADMIN "," PREV ",\"o\":{\"commitTransaction\":1}}", false, -1},
    };
    struct cdcd_error err;
    struct mg_entry e;

    (void)state;
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        struct cdcd_slice document = from_json(parts[i].json);
        assert_int_equal(mg_entry_parse(document, &e, &err), CDCD_OK);
        assert_int_equal(e.prepared, parts[i].prepared);
        assert_int_equal(e.count, parts[i].count);
        drop(document);
    }
}

/* ---- commands ---- */

static const struct {
    const char *ns, *json;
    enum mg_command_kind kind;
    const char *db, *collection, *to_db, *to_collection; /* NULL: none */
    bool drop_target;
    const char *fault; /* or the error */
} commands[] = {
    {"d.$cmd", "{\"create\":\"c.e\"}", MG_CMD_CREATE, "d", "c.e", NULL, NULL, false, NULL},
    {"d.$cmd", "{\"drop\":\"c\"}", MG_CMD_DROP, "d", "c", NULL, NULL, false, NULL},
    {"d.$cmd", "{\"dropDatabase\":1}", MG_CMD_DROP_DATABASE, "d", NULL, NULL, NULL, false, NULL},
    {"d", "{\"dropDatabase\":1}", MG_CMD_DROP_DATABASE, "d", NULL, NULL, NULL, false, NULL},
    {"admin.$cmd",
     "{\"renameCollection\":\"a.b.c\",\"to\":\"d.e.f\",\"stayTemp\":false,\"dropTarget\":{"
     "\"$binary\":{\"base64\":\"AAECAwQFBgcICQoLDA0ODw==\",\"subType\":\"04\"}}}",
     MG_CMD_RENAME, "a", "b.c", "d", "e.f", true, NULL},
    {"a.$cmd", "{\"renameCollection\":\"a.b\",\"to\":\"a.c\",\"dropTarget\":true}", MG_CMD_RENAME,
     "a", "b", "a", "c", true, NULL},
    {"a.$cmd", "{\"renameCollection\":\"a.b\",\"to\":\"a.c\",\"dropTarget\":false}", MG_CMD_RENAME,
     "a", "b", "a", "c", false, NULL},
    {"a.$cmd", "{\"renameCollection\":\"a.b\",\"to\":\"a.c\"}", MG_CMD_RENAME, "a", "b", "a", "c",
     false, NULL},
    {"d.$cmd", "{\"collMod\":\"c\",\"validator\":{}}", MG_CMD_MODIFY, "d", "c", NULL, NULL, false,
     NULL},
    {"d.$cmd", "{\"abortIndexBuild\":\"c\"}", MG_CMD_INDEX, "d", "c", NULL, NULL, false, NULL},
    {"d.$cmd", "{\"dbCheck\":\"c\"}", MG_CMD_OTHER, "d", "c", NULL, NULL, false, NULL},
    {"d.$cmd", "{\"dbCheck\":1}", MG_CMD_OTHER, "d", NULL, NULL, NULL, false, NULL},
    {"d.$cmd", "{\"drop\":1}", 0, NULL, NULL, NULL, NULL, false, "names no collection"},
    {"d.$cmd", "{\"drop\":\"\"}", 0, NULL, NULL, NULL, NULL, false, "names no collection"},
    {"d.$cmd", "{\"explode\":\"c\"}", 0, NULL, NULL, NULL, NULL, false, "not known"},
    {"d.$cmd", "{}", 0, NULL, NULL, NULL, NULL, false, "malformed or empty"},
    {"", "{\"drop\":\"c\"}", 0, NULL, NULL, NULL, NULL, false, "without ns"},
    {"d.$cmd", "{\"renameCollection\":\"a\",\"to\":\"a.c\"}", 0, NULL, NULL, NULL, NULL, false,
     "its source"},
    {"d.$cmd", "{\"renameCollection\":\"a.b\"}", 0, NULL, NULL, NULL, NULL, false, "its target"},
    {"d.$cmd", "{\"renameCollection\":\"a.b\",\"to\":\"c.\"}", 0, NULL, NULL, NULL, NULL, false,
     "its target"},
    {"d.$cmd", "{\"renameCollection\":\"a.b\",\"to\":\"a.c\",\"dropTarget\":\"x\"}", 0, NULL, NULL,
     NULL, NULL, false, "dropTarget is neither"},
};

static void same(struct cdcd_slice got, const char *want)
{
    if (!want) {
        assert_null(got.ptr);
        return;
    }
    assert_int_equal(got.len, strlen(want));
    assert_memory_equal(got.ptr, want, got.len);
}

static void test_commands(void **state)
{
    struct cdcd_slice ui = {"0123456789abcdef", 16};

    (void)state;
    for (size_t i = 0; i < sizeof commands / sizeof *commands; i++) {
        struct cdcd_slice o = from_json(commands[i].json);
        struct cdcd_error err = {0};
        struct mg_command c;
        enum cdcd_rc rc = mg_command_parse(cdcd_slice_str(commands[i].ns), o, ui, &c, &err);
        if (commands[i].fault) {
            assert_int_equal(rc, CDCD_ERROR);
            assert_int_equal(err.class, CDCD_ERR_DATA);
            assert_non_null(strstr(err.text, commands[i].fault));
        } else {
            assert_int_equal(rc, CDCD_OK);
            assert_int_equal(c.kind, commands[i].kind);
            same(c.db, commands[i].db);
            same(c.collection, commands[i].collection);
            same(c.to_db, commands[i].to_db);
            same(c.to_collection, commands[i].to_collection);
            assert_int_equal(c.drop_target, commands[i].drop_target);
            assert_ptr_equal(c.uuid.ptr, ui.ptr);
            assert_ptr_equal(c.o.ptr, o.ptr);
            assert_int_equal(c.target_uuid.len, strstr(commands[i].json, "$binary") ? 16 : 0);
        }
        drop(o);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_recorded), cmocka_unit_test(test_cut),
        cmocka_unit_test(test_shapes),   cmocka_unit_test(test_faults),
        cmocka_unit_test(test_nesting),  cmocka_unit_test(test_from_migrate),
        cmocka_unit_test(test_commands), cmocka_unit_test(test_parts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
