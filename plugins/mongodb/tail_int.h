/*
 * tail_int.h: what the files of the oplog feed share. Capture thread only.
 */
#ifndef CDCD_PLUGIN_MONGODB_TAIL_INT_H
#define CDCD_PLUGIN_MONGODB_TAIL_INT_H

#include "stream_int.h"

/* ---- tail_cursor.c: a tailable cursor on local.oplog.rs ---- */

struct mg_tail_cursor;
/* Entries from `from` on, inclusive. Its first batch is here when it returns. batch 0: as
 * configured. */
enum cdcd_rc mg_tail_cursor_open(struct cdcd_source *s, struct mg_time from, int64_t batch,
                                 struct mg_tail_cursor **out, struct cdcd_error *err);
void mg_tail_cursor_close(struct mg_tail_cursor *c);
/* The next entry, borrowed until the next call. AGAIN: none before the deadline (monotonic ms; 0:
 * do not ask the server). */
enum cdcd_rc mg_tail_cursor_next(struct mg_tail_cursor *c, int64_t deadline_ms,
                                 struct cdcd_slice *document, struct cdcd_error *err);
/* The next one stays the next one. False: none is here. */
bool mg_tail_cursor_peek(struct mg_tail_cursor *c, struct cdcd_slice *document);
/* An entry is here. */
bool mg_tail_cursor_ready(const struct mg_tail_cursor *c);
/* The server was asked after the last entry and had none. */
bool mg_tail_cursor_drained(const struct mg_tail_cursor *c);
/* The server holds no cursor: there was nothing at or after `from`. */
bool mg_tail_cursor_dead(const struct mg_tail_cursor *c);

/* ---- tail_names.c: what became of collections ---- */

struct mg_collections;
struct mg_collections *mg_collections_new(const struct mg_config *cfg, struct mg_filter *filter);
void mg_collections_free(struct mg_collections *x);
/* The collection that an operation is of; NULL: it is not captured, or the operation is of a
 * collection that is gone. LOSS: it was replaced, and that is to stop the pipeline. */
enum cdcd_rc mg_collections_of(struct mg_collections *x, const struct mg_op *op, struct mg_time ts,
                               struct mg_name **out, struct cdcd_error *err);
/* A command. *wanted: it is about a captured collection. */
enum cdcd_rc mg_collections_command(struct mg_collections *x, const struct mg_command *c,
                                    struct mg_time ts, bool *wanted, struct cdcd_error *err);
/* Counts what is left out; `what` is told once. */
void mg_collections_unknown(struct mg_collections *x, struct cdcd_slice what, struct mg_time ts);
void mg_collections_migrated(struct mg_collections *x, struct mg_time ts);

#endif
