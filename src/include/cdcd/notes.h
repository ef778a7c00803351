/*
 * notes: what a source must remember beside its position, too large to be written with each one:
 * for example the shapes of tables by name. A source puts changed notes into a batch; the sink
 * stores them atomically with the batch's data and state, the newest of each key; at the start of
 * a session the source finds all of them in its environment.
 */
#ifndef CDCD_NOTES_H
#define CDCD_NOTES_H

#include "buf.h"

struct cdcd_batch;

/* In a batch: lives in its arena. */
struct cdcd_note {
    struct cdcd_note *next;
    struct cdcd_slice key;   /* not empty; bytes, no NUL */
    struct cdcd_slice value; /* ptr NULL: forget the key */
};

/* Appends a note; copies both. */
void cdcd_batch_note(struct cdcd_batch *b, struct cdcd_slice key, struct cdcd_slice value);

/* All notes by key: a sink fills it in load, the pipeline keeps it, a source reads it. */
struct cdcd_notes;

struct cdcd_notes *cdcd_notes_new(void);
void cdcd_notes_free(struct cdcd_notes *n); /* NULL is fine */
void cdcd_notes_clear(struct cdcd_notes *n);
/* Sets or (value.ptr NULL) removes; copies both. */
void cdcd_notes_set(struct cdcd_notes *n, struct cdcd_slice key, struct cdcd_slice value);
/* ptr NULL: not there. Borrowed until the next change of n. */
struct cdcd_slice cdcd_notes_get(const struct cdcd_notes *n, struct cdcd_slice key);
size_t cdcd_notes_count(const struct cdcd_notes *n);
/* The i-th note in the order of keys (bytes); i < count. */
void cdcd_notes_at(const struct cdcd_notes *n, size_t i, struct cdcd_slice *key,
                   struct cdcd_slice *value);

#endif
