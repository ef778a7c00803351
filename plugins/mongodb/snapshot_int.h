/*
 * What the files of the snapshot share:
 *
 *   snapshot.c          begin and end: the position, the view, the tables
 *   snapshot_catalog.c  databases, collections, their estimates; whether one is still the same
 *   snapshot_plan.c     cursors, and cutting a collection into ranges of _id
 *   snapshot_read.c     the workers
 *
 * struct mg_snapshot is made by the capture thread before workers start and freed after they have
 * ended. Workers only read it, but for what its lock guards.
 */
#ifndef CDCD_PLUGIN_MONGODB_SNAPSHOT_INT_H
#define CDCD_PLUGIN_MONGODB_SNAPSHOT_INT_H

#include "snapshot.h"

#include "stream.h"

#include <pthread.h>

/* SnapshotTooOld, SnapshotUnavailable: the server does not keep that time any more, or not for
 * this collection. */
#define MG_SNAPSHOT_TOO_OLD     239
#define MG_SNAPSHOT_UNAVAILABLE 246

/* ---- cursors: snapshot_plan.c; no connection needed ---- */

/* A place in the _id index. As text: ">=" or ">", then two hexadecimal digits of the BSON type and
 * those of the value's bytes. Extended JSON would not do: it cannot tell {"$date": 5} as a document
 * from the date, nor carry strings that are no UTF-8. */
struct mg_cursor {
    struct cdcd_cell id; /* BSON */
    bool past;           /* ">": that _id is read already */
};
void mg_cursor_write(const struct mg_cursor *c, struct cdcd_buf *out);
/* The value lives in the arena. False: not understood. */
bool mg_cursor_parse(const char *text, struct cdcd_arena *a, struct mg_cursor *out);
/* Appends {_id: value} under this name. False: the value's bytes are none of that type. */
bool mg_cursor_append(bson_t *to, const char *name, const struct cdcd_cell *id);
/* The document's _id as a BSON cell that points into it; false: it has none. */
bool mg_id_of(struct cdcd_slice document, struct cdcd_cell *out);

/* ---- collections: snapshot_catalog.c ---- */

struct mg_snap_table {
    const char *db, *collection, *label, *identity;
    uint8_t uuid[16];
    bool has_uuid; /* servers that are only compatible with MongoDB may have none */
    bool capped;
    bool at_time;  /* read at the time of the view */
    int64_t rows;  /* estimate; -1 unknown */
    int64_t bytes; /* of a document on the average; -1 unknown */
    const struct mg_fields *fields;
    struct cdcd_schema *schema;
};

struct mg_snap_list {
    struct mg_snap_table *items; /* sorted by label */
    size_t n, cap;
};
/* All captured collections, in the arena; schemas are the list's until mg_snap_list_free. */
enum cdcd_rc mg_snap_list_read(struct cdcd_source *s, struct cdcd_arena *a,
                               struct mg_snap_list *out, struct cdcd_error *err);
void mg_snap_list_free(struct mg_snap_list *l);
/* Whether the name still stands for the same collection. */
enum cdcd_rc mg_snap_same(mongoc_client_t *c, const struct mg_snap_table *t, bool *same,
                          struct cdcd_error *err);
enum cdcd_rc mg_snap_moved(const struct mg_snap_table *t, struct cdcd_error *err);

/* ---- the view: snapshot.c ---- */

struct mg_snapshot {
    struct cdcd_arena arena;
    struct mg_position position; /* of the view */
    int64_t ts_us;               /* wall clock when it was taken */
    uint64_t row_base;           /* rows of a chunk are numbered from it on */
    struct mg_snap_list tables;

    pthread_mutex_t lock;
    struct mg_time read_after; /* overlap: no row is older than this; set by the first worker */
};

/* readConcern of a read of the table's documents. */
enum cdcd_rc mg_snap_read_concern(struct cdcd_source *s, mongoc_client_t *c,
                                  const struct mg_snap_table *t, bson_t *command,
                                  struct cdcd_error *err);

/* ---- finds: snapshot_read.c ---- */

/* A find of our own making, since libmongoc's has no room for atClusterTime. */
struct mg_find {
    mongoc_client_t *client;
    mongoc_client_session_t *session;
    mongoc_cursor_t *cursor;
};
enum cdcd_rc mg_find_open(struct mg_find *f, mongoc_client_t *client, const char *db,
                          const bson_t *command, int *code, struct cdcd_error *err);
/* OK: a document, valid until the next call. END: no more. *code: the server's on ERROR. */
enum cdcd_rc mg_find_next(struct mg_find *f, const char *what, const bson_t **out, int *code,
                          struct cdcd_error *err);
void mg_find_close(struct mg_find *f);

#endif
