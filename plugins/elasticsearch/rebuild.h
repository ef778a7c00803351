/*
 * rebuild.h: what rebuild.c (the steps, and what is remembered of them) and rebuild_index.c (what
 * they ask of the server) share.
 */
#ifndef CDCD_PLUGIN_ELASTICSEARCH_REBUILD_H
#define CDCD_PLUGIN_ELASTICSEARCH_REBUILD_H

#include "sink.h"

#define ES_REBUILD_WATCHES  6
#define ES_REBUILD_WATCH_MS 500

/* An alias, the index behind it ("": there is none yet), and the one that takes its place. */
struct es_rebuilt {
    struct es_rebuilt *next;
    struct cdcd_slice alias, old, target;
    bool made;    /* target */
    bool checked; /* target, in this session */
};

struct es_kept {
    struct es_kept *next;
    struct cdcd_slice name;
};

struct es_rebuild {
    struct cdcd_arena arena;
    char *id, *position_id; /* documents of the state index; owned */
    char owner[33];         /* this process, in hex */
    struct es_guard guard;
    char step[16];
    struct es_rebuilt *first;
    struct es_kept *kept;
};

/* ---- rebuild.c ---- */
/* An old index is not forgotten until it is dropped. */
void es_rebuild_keep(struct es_rebuild *b, struct cdcd_slice name);
/* Stores what is remembered. LOSS: another process has taken over. */
enum cdcd_rc es_rebuild_put(struct cdcd_sink *s, struct cdcd_error *err);

/* ---- rebuild_index.c ---- */
void es_rebuild_nap(int ms);
enum cdcd_rc es_rebuild_exists(struct cdcd_sink *s, struct cdcd_slice index, bool *out,
                               struct cdcd_error *err);
/* For x->alias: which index is behind it, and a name for the new one. CONFIG: an index has the name
 * itself, or the alias stands for several. */
enum cdcd_rc es_rebuild_name(struct cdcd_sink *s, struct es_rebuilt *x, struct cdcd_error *err);
/* Blocks writes; when it returns none is under way. Or lets them in again. */
enum cdcd_rc es_rebuild_block(struct cdcd_sink *s, struct cdcd_slice index, bool block,
                              struct cdcd_error *err);
/* Numbers of documents, and whether the new one lacks any that the old one has and that no delete
 * explains. DATA: it does. */
enum cdcd_rc es_rebuild_compare(struct cdcd_sink *s, const struct es_rebuilt *x,
                                struct cdcd_report *report, struct cdcd_error *err);
/* All aliases of all indexes in one request. Done already: nothing. */
enum cdcd_rc es_rebuild_swap(struct cdcd_sink *s, struct cdcd_error *err);
/* CONFIG: an alias stands for a new index already. */
enum cdcd_rc es_rebuild_swapped(struct cdcd_sink *s, struct cdcd_error *err);
/* Deletes an index that no alias stands for (CONFIG error otherwise). */
enum cdcd_rc es_rebuild_drop(struct cdcd_sink *s, struct cdcd_slice index,
                             struct cdcd_report *report, struct cdcd_error *err);

#endif
