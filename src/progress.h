/*
 * Progress of a snapshot, on stderr: one line that is rewritten on a terminal, a log line
 * every ten seconds and a table otherwise. rows: coordinator's lock held or not, any thread;
 * the rest: capture thread.
 */
#ifndef CDCD_PROGRESS_H
#define CDCD_PROGRESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct cdcd_progress;

struct cdcd_progress *cdcd_progress_new(size_t tables);
/* Begins table number `index` (from 0); expected rows, -1 unknown. */
void cdcd_progress_table(struct cdcd_progress *p, const char *label, int64_t expected, size_t index,
                         size_t tables);
void cdcd_progress_rows(struct cdcd_progress *p, uint32_t n);
void cdcd_progress_show(struct cdcd_progress *p); /* cheap; decides itself when to print */
void cdcd_progress_table_done(struct cdcd_progress *p);
void cdcd_progress_free(struct cdcd_progress *p, bool complete); /* prints the sum */

#endif
