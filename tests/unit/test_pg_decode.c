/*
 * pgoutput messages: every kind is read to its last byte or refused, and tuples become cells.
 */
#include "decode.h"
#include "pg_messages.h"

#include <setjmp.h>
#include <stdlib.h>

#include <cmocka.h>

#define TEXT 25
#define INT4 23

/* ---- whole messages ---- */

enum kind {
    M_BEGIN,
    M_COMMIT,
    M_ORIGIN,
    M_RELATION,
    M_TYPE,
    M_INSERT,
    M_UPDATE,
    M_UPDATE_K,
    M_UPDATE_O,
    M_DELETE,
    M_TRUNCATE,
    M_MESSAGE,
    M_START,
    M_STOP,
    M_STREAM_COMMIT,
    M_ABORT,
    M_ABORT_PARALLEL,
    M_BEGIN_PREPARE,
    M_PREPARE,
    M_STREAM_PREPARE,
    M_COMMIT_PREPARED,
    M_ROLLBACK_PREPARED,
    M_COUNT
};

static void build(struct msg *m, enum kind k, uint32_t xid)
{
    static const uint32_t oids[] = {7, 8, 9};
    switch (k) {
    case M_BEGIN: msg_begin(m, 100, 5); break;
    case M_COMMIT: msg_commit(m, 100, 110); break;
    case M_ORIGIN: msg_origin(m, 77, "node"); break;
    case M_RELATION: msg_relation(m, xid, 7, "t", 'd', "*a:23 b:25"); break;
    case M_TYPE:
        begin_msg(m, 'Y', xid);
        put32(m, 9);
        puts0(m, "public");
        puts0(m, "mood");
        break;
    case M_INSERT: msg_insert(m, xid, 7, "1|one|!"); break;
    case M_UPDATE: msg_update(m, xid, 7, 0, NULL, "1|~"); break;
    case M_UPDATE_K: msg_update(m, xid, 7, 'K', "1|!", "2|~"); break;
    case M_UPDATE_O: msg_update(m, xid, 7, 'O', "1|x", "2|~"); break;
    case M_DELETE: msg_delete(m, xid, 7, 'K', "1|!"); break;
    case M_TRUNCATE: msg_truncate(m, xid, 3, oids); break;
    case M_MESSAGE: msg_logical(m, xid, true, 55, "p", "body"); break;
    case M_START: msg_stream_start(m, 5, true); break;
    case M_STOP: msg_stream_stop(m); break;
    case M_STREAM_COMMIT: msg_stream_commit(m, 5, 100, 110); break;
    case M_ABORT: msg_stream_abort(m, 5, 6); break;
    case M_ABORT_PARALLEL:
        msg_stream_abort(m, 5, 6);
        put64(m, 1);
        put64(m, 2);
        break;
    case M_BEGIN_PREPARE: msg_begin_prepare(m, 5, 100, 110, "g"); break;
    case M_PREPARE: msg_prepared(m, 'P', 5, 100, 110, "g"); break;
    case M_STREAM_PREPARE: msg_prepared(m, 'p', 5, 100, 110, "g"); break;
    case M_COMMIT_PREPARED: msg_prepared(m, 'K', 5, 100, 110, "g"); break;
    case M_ROLLBACK_PREPARED: msg_rollback_prepared(m, 5, 110, 130, "g"); break;
    case M_COUNT: break;
    }
}

/* The message in memory of exactly its size, so that a sanitizer sees a read too far. */
static enum cdcd_rc decode_exact(const uint8_t *data, size_t n, bool streamed,
                                 struct pg_message *out, struct cdcd_error *err)
{
    struct pg_decoder d = {0};
    char *copy = malloc(n ? n : 1);
    memcpy(copy, data, n);
    enum cdcd_rc rc = pg_decode(&d, (struct cdcd_slice){copy, n}, 0x10A2B, streamed, out, err);
    free(copy);
    pg_decoder_free(&d);
    return rc;
}

static void every_kind_whole_or_not_at_all(void **state)
{
    (void)state;
    for (int streamed = 0; streamed < 2; streamed++) {
        for (enum kind k = 0; k < M_COUNT; k++) {
            struct msg m;
            struct pg_message out;
            struct cdcd_error err = {0};
            build(&m, k, streamed ? 42 : 0);
            assert_int_equal(decode_exact(m.data, m.len, streamed, &out, &err), CDCD_OK);
            assert_int_equal(out.type, m.data[0]);
            if (streamed && strchr("RYIUDTM", out.type))
                assert_int_equal(out.xid, 42);
            for (size_t n = 0; n < m.len; n++) {
                /* a parallel abort without its tail is an abort of the older form */
                if (k == M_ABORT_PARALLEL && n == 9)
                    continue;
                if (decode_exact(m.data, n, streamed, &out, &err) != CDCD_ERROR)
                    fail_msg("'%c' cut to %zu of %zu bytes is accepted", m.data[0], n, m.len);
                assert_int_equal(err.class, CDCD_ERR_FATAL);
            }
            put8(&m, 0);
            assert_int_equal(decode_exact(m.data, m.len, streamed, &out, &err), CDCD_ERROR);
        }
    }
}

static void fields(void **state)
{
    (void)state;
    struct msg m;
    struct pg_message out;
    struct pg_decoder d = {0};

    assert_int_equal(pg_decode(&d, msg_begin(&m, 100, 5), 0, false, &out, NULL), CDCD_OK);
    assert_int_equal(out.lsn, 100);
    assert_int_equal(out.xid, 5);
    assert_int_equal(out.ts_us, 100 * 1000 + PG_EPOCH_US);

    assert_int_equal(pg_decode(&d, msg_commit(&m, 100, 110), 0, false, &out, NULL), CDCD_OK);
    assert_int_equal(out.lsn, 100);
    assert_int_equal(out.end_lsn, 110);

    assert_int_equal(
        pg_decode(&d, msg_relation(&m, 3, 7, "t", 'f', "*a:23 b:25"), 0, true, &out, NULL),
        CDCD_OK);
    assert_int_equal(out.xid, 3);
    assert_int_equal(out.relation.oid, 7);
    assert_int_equal(out.relation.nattrs, 2);
    assert_int_equal(out.relation.replident, 'f');
    assert_memory_equal(out.relation.table.ptr, "t", 2);
    assert_true(out.relation.attrs[0].identity);
    assert_false(out.relation.attrs[1].identity);
    assert_int_equal(out.relation.attrs[1].type, 25);
    assert_int_equal(out.relation.attrs[1].typmod, -1);

    assert_int_equal(pg_decode(&d, msg_update(&m, 0, 7, 'K', "1|!", "2|~"), 0, false, &out, NULL),
                     CDCD_OK);
    assert_int_equal(out.old_kind, 'K');
    assert_int_equal(out.old_row.values[1].kind, 'n');
    assert_int_equal(out.new_row.values[1].kind, 'u');
    assert_memory_equal(out.new_row.values[0].ptr, "2", 1);

    const uint32_t oids[] = {0x01020304, 9};
    assert_int_equal(pg_decode(&d, msg_truncate(&m, 0, 2, oids), 0, false, &out, NULL), CDCD_OK);
    assert_int_equal(out.nrelations, 2);
    assert_int_equal(pg_message_relation(&out, 0), 0x01020304);
    assert_int_equal(pg_message_relation(&out, 1), 9);

    assert_int_equal(
        pg_decode(&d, msg_rollback_prepared(&m, 5, 110, 130, "g'1"), 0, false, &out, NULL),
        CDCD_OK);
    assert_int_equal(out.lsn, 110);
    assert_int_equal(out.end_lsn, 130);
    assert_int_equal(out.ts_us, 2 + PG_EPOCH_US);
    assert_memory_equal(out.gid.ptr, "g'1", 3);
    pg_decoder_free(&d);
}

static void hostile(void **state)
{
    (void)state;
    struct {
        const char *what, *says;
        const char *data;
        size_t len;
    } const cases[] = {
#define BYTES(s) s, sizeof(s) - 1
        {"unknown type", "unknown message type", BYTES("Z\0\0")},
        {"type zero", "unknown message type", BYTES("\0\0\0\0\0")},
        {"no bytes", "empty", BYTES("")},
        {"unknown tuple", "unknown tuple kind", BYTES("I\0\0\0\1X\0\0")},
        {"old tuple in an insert", "unknown tuple kind", BYTES("I\0\0\0\1K\0\0N\0\0")},
        {"delete with a new tuple", "unknown tuple kind", BYTES("D\0\0\0\1N\0\0")},
        {"unknown column", "unknown column kind", BYTES("I\0\0\0\1N\0\1x")},
        {"binary column", "binary", BYTES("I\0\0\0\1N\0\1b\0\0\0\1z")},
        {"column longer than the message", "too early", BYTES("I\0\0\0\1N\0\1t\377\377\377\377z")},
        {"columns that are not there", "too early", BYTES("I\0\0\0\1N\377\377")},
        {"relations that are not there", "too early", BYTES("T\377\377\377\377\0\0\0\0\1")},
        {"attributes that are not there", "too early", BYTES("R\0\0\0\1s\0t\0d\377\377\0")},
        {"unknown identity", "replica identity", BYTES("R\0\0\0\1s\0t\0q\0\0")},
        {"string without an end", "too early", BYTES("O\0\0\0\0\0\0\0\1node")},
        {"message longer than it is", "too early",
         BYTES("M\1\0\0\0\0\0\0\0\1p\0\177\377\377\377z")},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct pg_message out;
        struct cdcd_error err = {0};
        if (decode_exact((const uint8_t *)cases[i].data, cases[i].len, false, &out, &err) !=
            CDCD_ERROR)
            fail_msg("%s is accepted", cases[i].what);
        assert_int_equal(err.class, CDCD_ERR_FATAL);
        if (!strstr(err.text, cases[i].says) || !strstr(err.text, "0/10A2B"))
            fail_msg("%s: %s", cases[i].what, err.text);
    }
}

/* ---- rows ---- */

static struct pg_types *types;

/* t(a int key, b text, c text) with these flags. */
static struct pg_table *table(char replident, const char *columns)
{
    struct pg_decoder d = {0};
    struct pg_message m;
    struct msg raw;
    struct pg_table *t = NULL;
    struct cdcd_error err = {0};
    assert_int_equal(
        pg_decode(&d, msg_relation(&raw, 0, 7, "t", replident, columns), 0, false, &m, &err),
        CDCD_OK);
    assert_int_equal(pg_table_build(&m.relation, "db", NULL, types, NULL, &t, &err), CDCD_OK);
    pg_decoder_free(&d);
    return t;
}

static enum cdcd_rc row(const struct pg_table *t, struct cdcd_slice raw, struct cdcd_batch *b,
                        struct cdcd_event **e, struct cdcd_error *err)
{
    struct pg_decoder d = {0};
    struct pg_message m;
    /* the message goes away, as libpq's does: cells must not point into it */
    char *copy = malloc(raw.len);
    memcpy(copy, raw.ptr, raw.len);
    struct cdcd_slice s = {copy, raw.len};
    assert_int_equal(pg_decode(&d, s, 1, false, &m, err), CDCD_OK);
    enum cdcd_rc rc = pg_decode_row(t, &m, s, 0x1F, b, e, err);
    memset(copy, 'Z', raw.len);
    free(copy);
    pg_decoder_free(&d);
    return rc;
}

/* Cells in the short form of put_tuple; "-" is ABSENT. */
static void expect(const struct cdcd_cell *c, uint32_t n, const char *want)
{
    char got[256] = "";
    size_t len = 0;
    for (uint32_t i = 0; c && i < n; i++) {
        if (i)
            len += (size_t)snprintf(got + len, sizeof got - len, "|");
        switch (c[i].kind) {
        case CDCD_C_NULL: len += (size_t)snprintf(got + len, sizeof got - len, "!"); break;
        case CDCD_C_ABSENT: len += (size_t)snprintf(got + len, sizeof got - len, "-"); break;
        case CDCD_C_UNCHANGED: len += (size_t)snprintf(got + len, sizeof got - len, "~"); break;
        case CDCD_C_INT:
            len += (size_t)snprintf(got + len, sizeof got - len, "%d", (int)c[i].i);
            break;
        default:
            len += (size_t)snprintf(got + len, sizeof got - len, "%.*s", (int)c[i].len, c[i].ptr);
        }
    }
    assert_string_equal(got, want);
}

static void tuples(void **state)
{
    (void)state;
    static const struct {
        const char *what;
        char type, kind;
        const char *old, *new, *before, *after; /* "": none */
    } cases[] = {
        {"insert", 'I', 0, "", "1|x|!", "", "1|x|!"},
        {"empty is not NULL", 'I', 0, "", "1||!", "", "1||!"},
        {"update without an old row", 'U', 0, "", "1|y|~", "", "1|y|~"},
        {"update of the key", 'U', 'K', "1|!|!", "2|y|~", "1|-|-", "2|y|~"},
        {"unsent key is in the old row", 'U', 'K', "1|!|!", "~|y|~", "1|-|-", "1|y|~"},
        {"unsent values are in the old row", 'U', 'O', "1|x|z", "1|~|~", "1|x|z", "1|x|z"},
        {"a NULL in the old row is a value", 'U', 'O', "1|!|z", "1|~|w", "1|!|z", "1|!|w"},
        {"delete by key", 'D', 'K', "1|!|!", "", "1|-|-", ""},
        {"delete with the whole row", 'D', 'O', "1|x|!", "", "1|x|!", ""},
    };
    struct pg_table *t = table('d', "*a:23 b:25 c:25");
    struct cdcd_batch *b = cdcd_batch_new();
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct msg m;
        struct cdcd_event *e;
        struct cdcd_error err = {0};
        struct cdcd_slice raw = cases[i].type == 'I' ? msg_insert(&m, 0, 7, cases[i].new)
                                : cases[i].type == 'U'
                                    ? msg_update(&m, 0, 7, cases[i].kind, cases[i].old,
                                                 cases[i].new)
                                    : msg_delete(&m, 0, 7, cases[i].kind, cases[i].old);
        if (row(t, raw, b, &e, &err) != CDCD_OK)
            fail_msg("%s: %s", cases[i].what, err.text);
        assert_ptr_equal(b->last_event, e);
        assert_int_equal(e->op, cases[i].type == 'I'   ? CDCD_OP_CREATE
                                : cases[i].type == 'U' ? CDCD_OP_UPDATE
                                                       : CDCD_OP_DELETE);
        expect(e->before, 3, cases[i].before);
        expect(e->after, 3, cases[i].after);
    }
    assert_int_equal(b->nevents, sizeof cases / sizeof *cases);
    cdcd_batch_free(b);
    pg_table_free(t);
}

static void refused_rows(void **state)
{
    (void)state;
    struct msg m;
    struct cdcd_event *e;
    struct pg_table *t = table('d', "*a:23 b:25 c:25");
    struct cdcd_batch *b = cdcd_batch_new();
    struct cdcd_error err = {0};

    assert_int_equal(row(t, msg_update(&m, 0, 7, 0, NULL, "~|y|z"), b, &e, &err), CDCD_ERROR);
    assert_non_null(strstr(err.text, "replica identity column a of public.t is unchanged TOAST; "
                                     "key unknown"));
    assert_int_equal(err.class, CDCD_ERR_FATAL);

    assert_int_equal(row(t, msg_insert(&m, 0, 7, "1|y"), b, &e, &err), CDCD_ERROR);
    assert_non_null(strstr(err.text, "public.t"));
    assert_int_equal(err.class, CDCD_ERR_FATAL);

    assert_int_equal(row(t, msg_insert(&m, 0, 7, "seven|y|z"), b, &e, &err), CDCD_ERROR);
    assert_int_equal(err.class, CDCD_ERR_DATA);
    assert_non_null(strstr(err.text, "public.t"));

    assert_int_equal(b->nevents, 0);
    assert_null(b->events);
    cdcd_batch_free(b);
    pg_table_free(t);
}

static int setup(void **state)
{
    (void)state;
    types = pg_types_new();
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    pg_types_free(types);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_kind_whole_or_not_at_all),
        cmocka_unit_test(fields),
        cmocka_unit_test(hostile),
        cmocka_unit_test(tuples),
        cmocka_unit_test(refused_rows),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
