/*
 * snapshot.h: consistent views of all workers at one position of the log, chunks by primary key,
 * rows -> events.
 */
#ifndef CDCD_PLUGIN_MYSQL_SNAPSHOT_H
#define CDCD_PLUGIN_MYSQL_SNAPSHOT_H

#include "table.h"
#include "value.h"

enum cdcd_rc my_snapshot_begin(struct cdcd_source *s, struct cdcd_slice from,
                               struct cdcd_buf *position, struct cdcd_error *err);
enum cdcd_rc my_snapshot_tables(struct cdcd_source *s, struct cdcd_snapshot_tables *out,
                                struct cdcd_error *err);
enum cdcd_rc my_snapshot_plan(struct cdcd_source *s, const struct cdcd_snapshot_table *t,
                              struct cdcd_chunks *out, struct cdcd_error *err);
enum cdcd_rc my_snapshot_idle(struct cdcd_source *s, int64_t now, struct cdcd_error *err);
void my_snapshot_end(struct cdcd_source *s);
enum cdcd_rc my_worker_open(struct cdcd_source *s, struct cdcd_worker **out,
                            struct cdcd_error *err);
void my_worker_close(struct cdcd_worker *w);
enum cdcd_rc my_worker_begin(struct cdcd_worker *w, const struct cdcd_snapshot_table *t,
                             const struct cdcd_chunk *chunk, struct cdcd_error *err);
enum cdcd_rc my_worker_read(struct cdcd_worker *w, struct cdcd_batch *b, struct cdcd_error *err);

#endif
