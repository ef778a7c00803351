/*
 * transaction.c: the parts of a transaction that has several oplog entries, or was prepared. They
 * are read again from the oplog when its commit comes: first backwards by prevOpTime, to know which
 * there are, then forwards. See stream.h.
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
};

/* The entry at exactly that time; *cursor owns it. */
static enum cdcd_rc read_part(struct mg_chain *ch, struct mg_time ts, mongoc_cursor_t **cursor,
                              struct cdcd_slice *document, struct cdcd_error *err)
{
    bson_t filter = BSON_INITIALIZER, opts = BSON_INITIALIZER, sub;
    BSON_APPEND_DOCUMENT_BEGIN(&filter, "ts", &sub);
    BSON_APPEND_TIMESTAMP(&sub, "$gte", ts.t, ts.i);
    BSON_APPEND_TIMESTAMP(&sub, "$lte", ts.t, ts.i);
    bson_append_document_end(&filter, &sub);
    BSON_APPEND_INT64(&opts, "limit", 1);
    BSON_APPEND_DOCUMENT_BEGIN(&opts, "readConcern", &sub);
    BSON_APPEND_UTF8(&sub, "level", "majority");
    bson_append_document_end(&opts, &sub);
    mongoc_collection_t *c = mongoc_client_get_collection(ch->client, "local", "oplog.rs");
    *cursor = mongoc_collection_find_with_opts(c, &filter, &opts, NULL);
    mongoc_collection_destroy(c);
    bson_destroy(&filter);
    bson_destroy(&opts);
    const bson_t *doc, *reply = NULL;
    bson_error_t e;
    if (mongoc_cursor_next(*cursor, &doc)) {
        *document = mg_slice(doc);
        return CDCD_OK;
    }
    if (mongoc_cursor_error_document(*cursor, &e, &reply))
        return mg_error(err, &e, reply, "cannot read the oplog entry %" PRIu32 ":%" PRIu32, ts.t,
                        ts.i);
    return cdcd_error_set(err, CDCD_ERR_LOSS,
                          "a part of the transaction that was committed at %" PRIu32 ":%" PRIu32
                          " is no longer in the oplog (%" PRIu32 ":%" PRIu32
                          "): it was rolled over before it was read. Start a new snapshot, and "
                          "give the oplog more room (replSetResizeOplog)",
                          ch->commit.ts.t, ch->commit.ts.i, ts.t, ts.i);
}

/* ---- which there are ---- */

static bool is_prepare(const struct mg_entry *e)
{
    struct cdcd_bson_element o, prepare;
    return cdcd_bson_find(e->body, "o", &o) && o.type == CDCD_BSON_DOCUMENT &&
           cdcd_bson_find(o.value, "prepare", &prepare);
}

/* The prepared part, for a commit that points at an earlier one: among the entries between them. */
static enum cdcd_rc find_prepared(struct mg_chain *ch, struct mg_time after, struct mg_time *ts,
                                  struct cdcd_error *err)
{
    bson_t filter = BSON_INITIALIZER, sub;
    BSON_APPEND_DOCUMENT_BEGIN(&filter, "ts", &sub);
    BSON_APPEND_TIMESTAMP(&sub, "$gt", after.t, after.i);
    BSON_APPEND_TIMESTAMP(&sub, "$lt", ch->commit.ts.t, ch->commit.ts.i);
    bson_append_document_end(&filter, &sub);
    mongoc_collection_t *c = mongoc_client_get_collection(ch->client, "local", "oplog.rs");
    mongoc_cursor_t *cursor = mongoc_collection_find_with_opts(c, &filter, NULL, NULL);
    mongoc_collection_destroy(c);
    bson_destroy(&filter);
    const bson_t *doc, *reply = NULL;
    bson_error_t e;
    struct mg_entry part;
    enum cdcd_rc rc = CDCD_OK;
    *ts = (struct mg_time){0, 0};
    while (rc == CDCD_OK && mongoc_cursor_next(cursor, &doc)) {
        rc = mg_entry_parse(mg_slice(doc), &part, err);
        if (rc == CDCD_OK && part.kind == MG_ENTRY_PART && is_prepare(&part) &&
            part.txn_number == ch->commit.txn_number && cdcd_slice_eq(part.lsid, ch->commit.lsid))
            *ts = part.ts;
    }
    if (rc == CDCD_OK && mongoc_cursor_error_document(cursor, &e, &reply))
        rc = mg_error(err, &e, reply, "cannot read the oplog after %" PRIu32 ":%" PRIu32, after.t,
                      after.i);
    mongoc_cursor_destroy(cursor);
    if (rc == CDCD_OK && !ts->t)
        rc = cdcd_error_set(err, CDCD_ERR_DATA,
                            "oplog entry %" PRIu32 ":%" PRIu32 " commits a prepared transaction, "
                            "and no entry before it prepares that",
                            ch->commit.ts.t, ch->commit.ts.i);
    return rc;
}

/* What the part at ts says of the one before it. */
static enum cdcd_rc read_link(struct mg_chain *ch, struct mg_time ts, struct mg_time *prev,
                              bool *prepare, struct cdcd_error *err)
{
    mongoc_cursor_t *cursor;
    struct cdcd_slice document;
    struct mg_entry e;
    enum cdcd_rc rc = read_part(ch, ts, &cursor, &document, err);
    if (rc == CDCD_OK)
        rc = mg_entry_parse(document, &e, err);
    if (rc == CDCD_OK) {
        *prev = e.prev;
        *prepare = is_prepare(&e);
    }
    mongoc_cursor_destroy(cursor);
    return rc;
}

static enum cdcd_rc find_parts(struct mg_chain *ch, struct cdcd_error *err)
{
    struct mg_time ts = ch->commit.prev, prev;
    bool prepare;
    while (ts.t) {
        struct mg_time newer = ch->nparts ? ch->parts[ch->nparts - 1] : ch->commit.ts;
        if (mg_time_cmp(ts, newer) >= 0)
            return cdcd_error_set(err, CDCD_ERR_DATA,
                                  "oplog entry %" PRIu32 ":%" PRIu32
                                  " says that the part before it is %" PRIu32 ":%" PRIu32,
                                  newer.t, newer.i, ts.t, ts.i);
        if (read_link(ch, ts, &prev, &prepare, err) != CDCD_OK)
            return CDCD_ERROR;
        if (!ch->nparts && !ch->commit.ops.ptr && !prepare) {
            /* No part may be left out because of it. */
            if (find_prepared(ch, ts, &ts, err) != CDCD_OK ||
                read_link(ch, ts, &prev, &prepare, err) != CDCD_OK)
                return CDCD_ERROR;
        }
        if (ch->nparts == ch->cap) {
            ch->cap = ch->cap ? 2 * ch->cap : 16;
            ch->parts = cdcd_xrealloc(ch->parts, ch->cap * sizeof *ch->parts);
        }
        ch->parts[ch->nparts++] = ts;
        ts = prev;
    }
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
