/*
 * snapshot.h: collections, ranges of _id, documents -> READ events.
 *
 * The position is fixed first: the newest majority-committed time. Then documents are read
 *   - at that very time (readConcern snapshot, atClusterTime; MongoDB 5.0), where the server does
 *     it. It keeps old versions for minSnapshotHistoryWindowInSeconds (300 by default): when the
 *     time is too old (239 SnapshotTooOld, 246 SnapshotUnavailable), the worker's error is RETRY,
 *     and the coordinator goes on under a new view, to which the stream is brought first;
 *   - else as they are when they are read (majority, not before the view). The position then bears
 *     until_open, and the stream takes care that no document goes back: see "Overlap" in stream.h.
 *     So are capped collections, which cannot be read at a time, and all of them after a break when
 *     the stream looks documents up (snapshot.c).
 * Whether the server really does the first is found out, not believed: a read at a time long past
 * must be refused.
 *
 * Ranges are of the _id index, by min, max and hint, which follow the order of all BSON types; a
 * cursor is an _id as the hexadecimal digits of its BSON bytes: exact for any type, which Extended
 * JSON is not (snapshot_int.h).
 *
 * At the end of each range the collection must still be the same (its UUID): one that was dropped,
 * renamed or replaced meanwhile is a RETRY error, too, and the snapshot goes on with what is there.
 *
 * Views have no documents of their own and are left out; time series are left out with a warning,
 * their system.buckets.* are collections like others where an include list names them.
 */
#ifndef CDCD_PLUGIN_MONGODB_SNAPSHOT_H
#define CDCD_PLUGIN_MONGODB_SNAPSHOT_H

#include "mg.h"

enum cdcd_rc mg_snapshot_begin(struct cdcd_source *s, struct cdcd_slice from,
                               struct cdcd_buf *position, struct cdcd_error *err);
enum cdcd_rc mg_snapshot_tables(struct cdcd_source *s, struct cdcd_snapshot_tables *out,
                                struct cdcd_error *err);
enum cdcd_rc mg_snapshot_plan(struct cdcd_source *s, const struct cdcd_snapshot_table *t,
                              struct cdcd_chunks *out, struct cdcd_error *err);
void mg_snapshot_end(struct cdcd_source *s);
enum cdcd_rc mg_worker_open(struct cdcd_source *s, struct cdcd_worker **out,
                            struct cdcd_error *err);
void mg_worker_close(struct cdcd_worker *w);
enum cdcd_rc mg_worker_begin(struct cdcd_worker *w, const struct cdcd_snapshot_table *t,
                             const struct cdcd_chunk *chunk, struct cdcd_error *err);
enum cdcd_rc mg_worker_read(struct cdcd_worker *w, struct cdcd_batch *b, struct cdcd_error *err);

#endif
