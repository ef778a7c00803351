/*
 * transaction.c: the parts of a transaction that has several oplog entries, or was prepared. They
 * are read again from the oplog when its commit comes: first backwards by prevOpTime, to know which
 * there are, then forwards. Nothing is given before the chain is known to be whole: it ends with a
 * part that has none before it, and has as many operations as its last part says. See stream.h.
 */
#include "stream_int.h"

#include <inttypes.h>
#include <stdlib.h>

struct mg_chain {
    mongoc_client_t *client;
    struct mg_time *parts; /* the newest first */
    size_t nparts, cap;
    struct mg_entry commit;
    mongoc_cursor_t *cursor; /* holds the part that is being given */
    struct mg_entry part;
    struct mg_ops ops;
    bool open, at_commit;
    int64_t count;   /* operations in all parts, as the last one says; -1: it does not */
    int64_t counted; /* those of the parts found */
};

/* Entries from one time to another. */
static mongoc_cursor_t *read_range(struct mg_chain *ch, struct mg_time from, struct mg_time to,
                                   int64_t limit)
{
    bson_t filter = BSON_INITIALIZER, opts = BSON_INITIALIZER, sub;
    BSON_APPEND_DOCUMENT_BEGIN(&filter, "ts", &sub);
    BSON_APPEND_TIMESTAMP(&sub, "$gte", from.t, from.i);
    BSON_APPEND_TIMESTAMP(&sub, "$lte", to.t, to.i);
    bson_append_document_end(&filter, &sub);
    if (limit)
        BSON_APPEND_INT64(&opts, "limit", limit);
    BSON_APPEND_DOCUMENT_BEGIN(&opts, "readConcern", &sub);
    BSON_APPEND_UTF8(&sub, "level", "majority");
    bson_append_document_end(&opts, &sub);
    mongoc_collection_t *c = mongoc_client_get_collection(ch->client, "local", "oplog.rs");
    mongoc_cursor_t *cursor = mongoc_collection_find_with_opts(c, &filter, &opts, NULL);
    mongoc_collection_destroy(c);
    bson_destroy(&filter);
    bson_destroy(&opts);
    return cursor;
}

static enum cdcd_rc failed(mongoc_cursor_t *cursor, struct mg_time ts, struct cdcd_error *err)
{
    const bson_t *reply = NULL;
    bson_error_t e;
    if (!mongoc_cursor_error_document(cursor, &e, &reply))
        return CDCD_END;
    return mg_error(err, &e, reply, "cannot read the oplog entry %" PRIu32 ":%" PRIu32, ts.t, ts.i);
}

/* The entry at exactly that time; *cursor owns it. */
static enum cdcd_rc read_part(struct mg_chain *ch, struct mg_time ts, mongoc_cursor_t **cursor,
                              struct cdcd_slice *document, struct cdcd_error *err)
{
    const bson_t *doc;
    *cursor = read_range(ch, ts, ts, 1);
    if (mongoc_cursor_next(*cursor, &doc)) {
        *document = mg_slice(doc);
        return CDCD_OK;
    }
    if (failed(*cursor, ts, err) == CDCD_ERROR)
        return CDCD_ERROR;
    return cdcd_error_set(err, CDCD_ERR_LOSS,
                          "a part of the transaction that was committed at %" PRIu32 ":%" PRIu32
                          " is no longer in the oplog (%" PRIu32 ":%" PRIu32
                          "): it was rolled over before it was read. Start a new snapshot, and "
                          "give the oplog more room (replSetResizeOplog)",
                          ch->commit.ts.t, ch->commit.ts.i, ts.t, ts.i);
}

static bool same_transaction(const struct mg_entry *a, const struct mg_entry *b)
{
    return a->has_txn_number && b->has_txn_number && a->txn_number == b->txn_number &&
           cdcd_slice_eq(a->lsid, b->lsid);
}

/* The prepared part that is committed is not the one that the commit points to: it lies between
 * the two. */
static enum cdcd_rc find_prepared(struct mg_chain *ch, struct mg_time *ts, struct cdcd_error *err)
{
    const bson_t *doc;
    struct mg_entry e;
    struct mg_time found = {0, 0};
    enum cdcd_rc rc = CDCD_OK;
    mongoc_cursor_t *cursor = read_range(ch, *ts, ch->commit.ts, 0);
    while (rc == CDCD_OK && mongoc_cursor_next(cursor, &doc)) {
        rc = mg_entry_parse(mg_slice(doc), &e, err);
        if (rc == CDCD_OK && e.kind == MG_ENTRY_PART && e.prepared &&
            same_transaction(&e, &ch->commit))
            found = e.ts;
    }
    if (rc == CDCD_OK)
        rc = failed(cursor, *ts, err) == CDCD_ERROR ? CDCD_ERROR : CDCD_OK;
    mongoc_cursor_destroy(cursor);
    if (rc == CDCD_OK && !found.t)
        return cdcd_error_set(err, CDCD_ERR_DATA,
                              "the transaction that was committed at %" PRIu32 ":%" PRIu32
                              " was not prepared: its entry is not between %" PRIu32 ":%" PRIu32
                              " and its commit",
                              ch->commit.ts.t, ch->commit.ts.i, ts->t, ts->i);
    *ts = found;
    return rc;
}

static int64_t length_of(struct cdcd_slice array)
{
    struct cdcd_bson_iter it;
    struct cdcd_bson_element e;
    int64_t n = 0;
    if (!array.ptr || !cdcd_bson_iter_init(&it, array))
        return 0;
    while (cdcd_bson_iter_next(&it, &e) == 1)
        n++;
    return n;
}

static void add_part(struct mg_chain *ch, const struct mg_entry *e)
{
    if (ch->nparts == ch->cap) {
        ch->cap = ch->cap ? 2 * ch->cap : 16;
        ch->parts = cdcd_xrealloc(ch->parts, ch->cap * sizeof *ch->parts);
    }
    ch->parts[ch->nparts++] = e->ts;
    ch->counted += length_of(e->ops);
    if (e->prepared)
        ch->count = e->count;
}

/* One part. *ts becomes the time of the one before it. */
static enum cdcd_rc find_part(struct mg_chain *ch, struct mg_time *ts, struct cdcd_error *err)
{
    struct mg_time newer = ch->nparts ? ch->parts[ch->nparts - 1] : ch->commit.ts;
    mongoc_cursor_t *cursor;
    struct cdcd_slice document;
    struct mg_entry e;
    if (mg_time_cmp(*ts, newer) >= 0)
        return cdcd_error_set(err, CDCD_ERR_DATA,
                              "oplog entry %" PRIu32 ":%" PRIu32
                              " says that the part before it is %" PRIu32 ":%" PRIu32,
                              newer.t, newer.i, ts->t, ts->i);
    enum cdcd_rc rc = read_part(ch, *ts, &cursor, &document, err);
    if (rc == CDCD_OK)
        rc = mg_entry_parse(document, &e, err);
    if (rc == CDCD_OK && (e.kind != MG_ENTRY_PART || !same_transaction(&e, &ch->commit)))
        rc = cdcd_error_set(err, CDCD_ERR_DATA,
                            "the oplog entry at %" PRIu32 ":%" PRIu32
                            " is no part of the transaction that was committed at %" PRIu32
                            ":%" PRIu32,
                            ts->t, ts->i, ch->commit.ts.t, ch->commit.ts.i);
    if (rc == CDCD_OK && !ch->nparts && !ch->commit.ops.ptr && !e.prepared) {
        rc = find_prepared(ch, ts, err);
    } else if (rc == CDCD_OK) {
        add_part(ch, &e);
        *ts = e.prev;
    }
    mongoc_cursor_destroy(cursor);
    return rc;
}

static enum cdcd_rc find_parts(struct mg_chain *ch, struct cdcd_error *err)
{
    ch->count = ch->commit.count;
    ch->counted = length_of(ch->commit.ops);
    for (struct mg_time ts = ch->commit.prev; ts.t;)
        if (find_part(ch, &ts, err) != CDCD_OK)
            return CDCD_ERROR;
    if (ch->count >= 0 && ch->count != ch->counted)
        return cdcd_error_set(err, CDCD_ERR_DATA,
                              "the transaction that was committed at %" PRIu32 ":%" PRIu32
                              " has %" PRId64 " operations, and its parts in the oplog have "
                              "%" PRId64,
                              ch->commit.ts.t, ch->commit.ts.i, ch->count, ch->counted);
    return CDCD_OK;
}

enum cdcd_rc mg_chain_open(mongoc_client_t *c, const struct mg_entry *commit, struct mg_chain **out,
                           struct cdcd_error *err)
{
    struct mg_chain *ch = cdcd_xcalloc(1, sizeof *ch);
    ch->client = c;
    ch->commit = *commit;
    if (find_parts(ch, err) != CDCD_OK) {
        mg_chain_close(ch);
        return CDCD_ERROR;
    }
    *out = ch;
    return CDCD_OK;
}

/* The next part; END: there is none. */
static enum cdcd_rc next_part(struct mg_chain *ch, struct cdcd_error *err)
{
    struct cdcd_slice document;
    mongoc_cursor_destroy(ch->cursor);
    ch->cursor = NULL;
    if (ch->nparts) {
        if (read_part(ch, ch->parts[--ch->nparts], &ch->cursor, &document, err) != CDCD_OK ||
            mg_entry_parse(document, &ch->part, err) != CDCD_OK)
            return CDCD_ERROR;
        return mg_ops_begin(&ch->part, &ch->ops, err);
    }
    if (ch->at_commit || !ch->commit.ops.ptr)
        return CDCD_END;
    ch->at_commit = true;
    return mg_ops_begin(&ch->commit, &ch->ops, err);
}

enum cdcd_rc mg_chain_next(struct mg_chain *ch, struct mg_op *out, struct mg_time *ts,
                           struct cdcd_error *err)
{
    for (;;) {
        if (!ch->open) {
            enum cdcd_rc rc = next_part(ch, err);
            if (rc != CDCD_OK)
                return rc;
            ch->open = true;
        }
        *ts = ch->ops.entry->ts;
        enum cdcd_rc rc = mg_ops_next(&ch->ops, out, err);
        if (rc != CDCD_END)
            return rc;
        ch->open = false;
    }
}

void mg_chain_close(struct mg_chain *ch)
{
    if (!ch)
        return;
    mongoc_cursor_destroy(ch->cursor);
    free(ch->parts);
    free(ch);
}
