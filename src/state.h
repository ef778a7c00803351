/*
 * state: what the sink remembers for a pipeline, as one JSON document.
 *
 *   {"v":1,"position":{...},"snapshot":{"table":"public.orders","identity":"...",
 *    "passed":"9AE16A3B2F90404F","chunks":[["begin","end"],...],"only":["public.a"]}}
 *
 * position: the source's own text; the stream goes on from there. snapshot: present while
 * a snapshot is unfinished. Tables go in order of their label: those before `table` are
 * done, `table` has these chunks left, those after it are not begun. table "" = none begun.
 * passed: a fingerprint of those that are done; it tells when a rename brought another table
 * before `table`.
 */
#ifndef CDCD_STATE_H
#define CDCD_STATE_H

#include <cdcd/batch.h>
#include <cdcd/option.h>

struct cdcd_range {
    char *begin, *end;
};

struct cdcd_state {
    char *position; /* owned; NULL: none */
    bool in_snapshot;
    char *table, *identity; /* owned */
    uint64_t passed;
    struct cdcd_range *ranges;
    size_t nranges;
    struct cdcd_strlist only;
};

/* FATAL error when the text is not a state of this version. */
enum cdcd_rc cdcd_state_parse(struct cdcd_slice json, struct cdcd_state *out,
                              struct cdcd_error *err);
void cdcd_state_free(struct cdcd_state *s);
/* The state of a running stream: position only. Written into the arena. */
struct cdcd_slice cdcd_state_stream(struct cdcd_arena *a, struct cdcd_slice position);
/* Any state. */
void cdcd_state_write(const struct cdcd_state *s, struct cdcd_buf *out);

#endif
