/*
 * stream.h: the stream. Groups of the log (transactions, single statements) are held until their
 * end is known, in memory and from some size on in an unlinked file, then decoded into batches; a
 * group that ends in ROLLBACK is forgotten, one that is prepared (XA) is kept until its XA COMMIT.
 */
#ifndef CDCD_PLUGIN_MYSQL_STREAM_H
#define CDCD_PLUGIN_MYSQL_STREAM_H

#include "binlog.h"
#include "table.h"

/* ---- group.c ---- */
struct my_group;
/* `max`: of the files on disk, together for all groups of the pool; 0: no limit. */
struct my_group_pool {
    const char *dir;
    uint64_t max, used;
};
struct my_group *my_group_new(struct my_group_pool *pool);
void my_group_free(struct my_group *g);
void my_group_reset(struct my_group *g);
/* Copies the raw event (without checksum) and where it begins in its file. FATAL with the mend when
 * the spill area is full. */
enum cdcd_rc my_group_add(struct my_group *g, struct cdcd_slice event, uint64_t place,
                          struct cdcd_error *err);
/* How much is in it, and taking back all that was added since. */
uint64_t my_group_mark(const struct my_group *g);
enum cdcd_rc my_group_cut(struct my_group *g, uint64_t mark, struct cdcd_error *err);
/* It will wait for long: gives back memory that it does not need. */
void my_group_pause(struct my_group *g);
/* Reading, from the start, once all is added: END after the last. Borrowed until the next call. */
enum cdcd_rc my_group_rewind(struct my_group *g, struct cdcd_error *err);
enum cdcd_rc my_group_next(struct my_group *g, struct cdcd_slice *event, uint64_t *place,
                           struct cdcd_error *err);

/* ---- stream_read.c: the source ops; all else of the stream is in stream_int.h ---- */
enum cdcd_rc my_stream_resume(struct cdcd_source *s, struct cdcd_slice from,
                              struct cdcd_buf *position, struct cdcd_error *err);
enum cdcd_rc my_stream_start(struct cdcd_source *s, struct cdcd_slice from, struct cdcd_error *err);
enum cdcd_rc my_stream_read(struct cdcd_source *s, struct cdcd_batch *b, int64_t deadline_ms,
                            struct cdcd_error *err);
enum cdcd_rc my_stream_stop_at(struct cdcd_source *s, struct cdcd_slice position,
                               struct cdcd_error *err);
void my_stream_ack(struct cdcd_source *s, struct cdcd_slice position);
enum cdcd_rc my_stream_idle(struct cdcd_source *s, int64_t now, struct cdcd_error *err);
void my_stream_lag(struct cdcd_source *s, struct cdcd_lag *out);
/* The commit part of cdcd.pos for a resumed snapshot's rows, once the barrier is reached: it counts
 * there like a group of its own. 0: no stream. */
uint64_t my_stream_seq(const struct my_stream *st);
void my_stream_free(struct my_stream *st);

#endif
