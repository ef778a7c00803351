/*
 * change_event.h: documents of a change stream -> changes. No socket, and nothing of libmongoc.
 *
 * The format: the server's manual, "Change Events". Two steps, since most of what a document holds
 * is of no use when its collection is not captured: mg_event_parse() only looks where things are.
 */
#ifndef CDCD_PLUGIN_MONGODB_CHANGE_EVENT_H
#define CDCD_PLUGIN_MONGODB_CHANGE_EVENT_H

#include "stream.h"

enum mg_event_kind {
    MG_EVENT_DOCUMENT,   /* insert, update, replace, delete */
    MG_EVENT_COMMAND,    /* create, drop, rename, ... */
    MG_EVENT_INVALIDATE, /* the stream ends here; `startAfter` this token goes on */
    MG_EVENT_FRAGMENT,   /* of an event over 16 MB: see mg_event_merge() */
    MG_EVENT_UNKNOWN,    /* an operationType that this version does not know */
};

/* All slices are within the document; ptr NULL: not there, or null. */
struct mg_event {
    enum mg_event_kind kind;
    enum cdcd_op op;              /* DOCUMENT */
    bool replaces;                /* DOCUMENT: a replacement */
    enum mg_command_kind command; /* COMMAND */
    struct cdcd_slice type;       /* operationType */
    struct cdcd_slice token;      /* _id */
    struct mg_time ts;
    int64_t wall_ms; /* INT64_MIN: none (before 6.0) */
    struct cdcd_slice db, collection, to_db, to_collection;
    struct cdcd_slice key, after, before, update, description, lsid, uuid;
    bool has_after; /* fullDocument is there, be it null: a lookup found nothing */
    bool has_txn;
    int64_t txn_number;
    int32_t fragment, of; /* FRAGMENT */
};

/* DATA error, with the time and the collection where they can be read, when it is malformed or
 * lacks what its kind must have. Its documents may be missing (a projection). */
enum cdcd_rc mg_event_parse(struct cdcd_slice document, struct mg_event *out,
                            struct cdcd_error *err);

/* The change of a DOCUMENT or COMMAND. Slices stay within the document, but the update and the
 * command's `o`, which are made in the arena. after_lookup and lookup_done are the caller's, who
 * knows what the server was asked for. DATA error when a document is missing. */
enum cdcd_rc mg_event_change(const struct mg_event *e, struct cdcd_arena *a, struct mg_change *out,
                             struct cdcd_error *err);

/* Where an event stands, for messages: "insert of shop.t at 1700000000:7". */
void mg_event_describe(const struct mg_event *e, struct cdcd_buf *out);

/* One fragment more of an event over 16 MB: appends its top-level fields to those that `fields`
 * has from the fragments before it (elements of BSON, without length and end). _id, of which the
 * last one counts, and splitEvent are left out, and so is a field that is there already. */
enum cdcd_rc mg_event_merge(struct cdcd_slice fragment, struct cdcd_buf *fields,
                            struct cdcd_error *err);
/* After the last one: makes `fields` a document with that _id. */
void mg_event_merged(struct cdcd_buf *fields, struct cdcd_slice token);

/* The time in a resume token {"_data": "82" time...}, or in that of a compatible server. False: not
 * known there. */
bool mg_token_time(struct cdcd_slice token, struct mg_time *out);

#endif
