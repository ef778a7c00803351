/*
 * oplog.h: bytes of oplog entries -> operations. No socket, and nothing of libmongoc: the fuzzer
 * and the tests link oplog*.c and diff.c alone.
 *
 * The format: mongodb/mongo src/mongo/db/repl/oplog_entry.idl, and for updates
 * src/mongo/db/update/document_diff_serialization.h.
 */
#ifndef CDCD_PLUGIN_MONGODB_OPLOG_H
#define CDCD_PLUGIN_MONGODB_OPLOG_H

#include <cdcd/bson.h>
#include <cdcd/error.h>

#include "mg.h"

/* One operation: of an entry, or of an applyOps in it. */
struct mg_op {
    char op; /* 'i', 'u', 'd'; 'c' a command within an applyOps; '?' one that this version does not
                know (`what` names it), or that is of no collection's documents: to be counted */
    struct cdcd_slice what;               /* the op as written */
    struct cdcd_slice ns, db, collection; /* '?': db and collection may be empty */
    struct cdcd_slice uuid;               /* ui: 16 bytes; ptr NULL: none */
    struct cdcd_cell id;     /* BSON; kind ABSENT: the entry has none ('c' and '?' only) */
    struct cdcd_slice o, o2; /* documents; ptr NULL: none ('?': o, too) */
    uint32_t index; /* in its applyOps, from 0, noops counted: applyOpsIndex of pre-images */
    bool from_migrate;
};

enum mg_entry_kind {
    MG_ENTRY_NOOP,   /* n, and whatever changes no document and no collection */
    MG_ENTRY_OPS,    /* i, u, d, or an applyOps that is complete in itself: see mg_ops_begin() */
    MG_ENTRY_PART,   /* of a transaction (partialTxn), or all of it up to now (prepare): nothing is
                        visible yet; found again from its commit by `prev` */
    MG_ENTRY_COMMIT, /* the transaction's last part, whose ops are the last ones (applyOps with
                        prevOpTime), or commitTransaction, which has none: the parts before it are
                        linked by `prev`, the newest first */
    MG_ENTRY_ABORT,
    MG_ENTRY_COMMAND, /* create, drop, dropDatabase, renameCollection, collMod, create- and drop-
                         Indexes, index builds, ...: see struct mg_command */
    MG_ENTRY_UNKNOWN, /* an op or a command that this version does not know; `what` names it */
};

struct mg_entry {
    enum mg_entry_kind kind;
    struct mg_time ts;
    struct mg_time prev;    /* prevOpTime.ts; 0,0: none */
    int64_t wall_ms;        /* wall; INT64_MIN: none */
    struct cdcd_slice ns;   /* "db.collection", "admin.$cmd" */
    struct cdcd_slice lsid; /* BSON document; ptr NULL: none */
    bool has_txn_number;
    int64_t txn_number;
    bool transaction;  /* its operations are of one transaction of a session: lsid, txnNumber and
                          an applyOps that is no vectored insert (multiOpType 1), no retryable
                          write; also flat entries with lsid and txnNumber but neither stmtId
                          nor t (the term), as servers that are only compatible with MongoDB
                          write them */
    bool from_migrate; /* fromMigrate: a chunk moved between shards, no change of a user */
    bool prepared;     /* PART: the last one; a commitTransaction's `prev` is always such a one */
    int64_t count;     /* COMMIT, prepared PART: operations in all parts together, where the entry
                          says so; -1: it does not */
    struct cdcd_slice ops;  /* OPS, PART, COMMIT: the array of an applyOps; ptr NULL: none */
    struct cdcd_slice body; /* the whole entry */
    struct cdcd_slice what; /* name of the command or op, for messages and counts */
    struct mg_op op;        /* i, u, d: the operation itself; c: ns, uuid, o of the command */
};

/* The entry's document, borrowed. DATA error (with ts and ns where they can be read) when it is
 * malformed, lacks what its kind must have, or has a version (`v`) that is not known. */
enum cdcd_rc mg_entry_parse(struct cdcd_slice document, struct mg_entry *out,
                            struct cdcd_error *err);

/* ---- operations of an entry ---- */

/* The server allows ten. */
#define MG_APPLY_OPS_DEPTH 10
struct mg_ops {
    const struct mg_entry *entry;
    struct cdcd_bson_iter it[MG_APPLY_OPS_DEPTH]; /* of the arrays that are open */
    uint32_t index[MG_APPLY_OPS_DEPTH];
    int depth; /* 0: none left */
    bool single;
};
/* The entry must stay; kinds without operations have none. */
enum cdcd_rc mg_ops_begin(const struct mg_entry *e, struct mg_ops *out, struct cdcd_error *err);
/* OK: one op. END: no more. ERROR DATA: malformed. Nested applyOps are walked flat, noops left
 * out. */
enum cdcd_rc mg_ops_next(struct mg_ops *ops, struct mg_op *out, struct cdcd_error *err);

/* ---- commands ---- */

enum mg_command_kind {
    MG_CMD_CREATE,
    MG_CMD_DROP,
    MG_CMD_DROP_DATABASE,
    MG_CMD_RENAME,
    MG_CMD_MODIFY, /* collMod */
    MG_CMD_INDEX,  /* createIndexes, dropIndexes, start-, commit-, abortIndexBuild */
    MG_CMD_OTHER,  /* known, of no consequence here: dbCheck, ... */
};
struct mg_command {
    enum mg_command_kind kind;
    struct cdcd_slice db, collection;       /* collection ptr NULL: of the whole database */
    struct cdcd_slice to_db, to_collection; /* RENAME */
    bool drop_target;                       /* RENAME: over a collection that was there */
    struct cdcd_slice uuid, target_uuid;    /* ui; dropTarget's; ptr NULL: none */
    struct cdcd_slice o;                    /* the command as a document */
};
/* Whether a command of that name (the first field of `o`) is known; its kind. */
bool mg_command_known(struct cdcd_slice name, enum mg_command_kind *kind);
/* ns "db.$cmd", o the command, ui the entry's 16 bytes (ptr NULL: none). DATA error: it lacks what
 * its kind must have. */
enum cdcd_rc mg_command_parse(struct cdcd_slice ns, struct cdcd_slice o, struct cdcd_slice ui,
                              struct mg_command *out, struct cdcd_error *err);

/* ---- diff.c ---- */

/* What an update's `o` says.
 *   $v 2 (diff: d u i b s<field>, arrays a l u<n> s<n>), $v 1 or none ($set, $unset), and the form
 *   of compatible servers ($v 2, diff: {updatedFields, removedFields, truncatedArrays}): *update
 *   is set, all of it in the arena; *replacement.ptr is NULL.
 *   Anything else, and all that begins with _id: *replacement is the new document, which is o
 *   itself, borrowed; *update is NULL.
 * The description is what a change stream gives for the entry, in the same order; $v 1 does not
 * say which paths are ambiguous. An unknown key anywhere in a diff is a DATA error: leaving it out
 * would lose a change. A binary diff (b, of time-series columns) is a DATA error, too, unless
 * `buckets`, where it is left out. The errors name the path; ts and ns are the caller's to add. */
enum cdcd_rc mg_update_parse(struct cdcd_slice o, bool buckets, struct cdcd_arena *a,
                             struct cdcd_update **update, struct cdcd_slice *replacement,
                             struct cdcd_error *err);
/* The document after the update: `before` with o applied, as the server applies it: changed fields
 * stay in their places, new ones are appended, arrays grow with nulls, an element that is unset is
 * null. In the arena; a replacement is borrowed. DATA error when o does not fit the document (a
 * change within a field that is no document), and for a binary diff. */
enum cdcd_rc mg_update_apply(struct cdcd_slice before, struct cdcd_slice o, struct cdcd_arena *a,
                             struct cdcd_slice *after, struct cdcd_error *err);

/* ---- a small BSON writer into an arena (diff.c, fields.c, change_event.c) ---- */
struct mg_writer {
    struct cdcd_writer w;
    size_t open[CDCD_BSON_DEPTH + 1]; /* offsets of the open documents' lengths */
    int depth;
};
void mg_bson_begin(struct mg_writer *w, struct cdcd_arena *a);
void mg_bson_element(struct mg_writer *w, uint8_t type, struct cdcd_slice name,
                     struct cdcd_slice value);
/* False: too deep. */
bool mg_bson_open(struct mg_writer *w, uint8_t type, struct cdcd_slice name);
void mg_bson_close(struct mg_writer *w);
struct cdcd_slice mg_bson_end(struct mg_writer *w);

#endif
