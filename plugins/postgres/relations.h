/*
 * relations.h: the relations that the server has described, by oid. A Relation message replaces
 * the entry: each row is read with the description that came before it.
 */
#ifndef CDCD_PLUGIN_POSTGRES_RELATIONS_H
#define CDCD_PLUGIN_POSTGRES_RELATIONS_H

#include "decode.h"

struct pg_rel {
    struct pg_rel *next; /* of its bucket */
    uint32_t oid;
    uint64_t seq;           /* number of the Relation message among all that were received */
    struct pg_table *table; /* owned */
    struct cdcd_slice schema, name; /* when captured; live as long as the schema */
    /* the message, in its form without an xid: to build the table again when an enum has new
     * labels, and to put it in front of the first row in the spool of a prepared transaction */
    char *raw;
    size_t raw_len;
    uint64_t in_block; /* number of the block whose spool has it */
    uint32_t *enums;   /* columns of an enum type or an array of one */
    uint32_t nenums;
    int64_t rebuilt_ms;
    /* transaction metadata: place in the transaction's list of tables */
    uint64_t tx_seq;
    size_t tx_index;
};

struct pg_rels {
    struct pg_rel **buckets;
    size_t nbuckets, n; /* a power of two, or 0 */
};

/* What building a table needs; all borrowed, sql may be NULL. */
struct pg_rel_env {
    const char *db;
    PGconn *sql;
    struct pg_types *types;
    const struct pg_filter *filter;
};

void pg_rels_clear(struct pg_rels *r);
struct pg_rel *pg_rels_get(const struct pg_rels *r, uint32_t oid);
/* Takes in a Relation message (`raw` are its bytes), in the place of an older one. */
enum cdcd_rc pg_rels_put(struct pg_rels *r, const struct pg_rel_env *env,
                         const struct pg_message *m, struct cdcd_slice raw, bool streamed,
                         uint64_t seq, struct cdcd_error *err);
/* True when an enum value in these cells is none of the labels that its column knows. */
bool pg_rel_new_label(const struct pg_rel *rel, const struct cdcd_cell *cells);
/* Reads the catalogue again for new labels, at most every few seconds a table. *changed tells
 * whether rel->table is another one now. */
enum cdcd_rc pg_rel_rebuild(struct pg_rel *rel, const struct pg_rel_env *env, int64_t now_ms,
                            bool *changed, struct cdcd_error *err);

#endif
