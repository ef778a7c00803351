/* The tables of the database as the publication and the include lists see them. */
#ifndef CDCD_PLUGIN_POSTGRES_PUBLICATION_H
#define CDCD_PLUGIN_POSTGRES_PUBLICATION_H

#include "pg.h"

/* The comment on a publication that cdcd made: it may be extended and dropped by us. */
#define PG_PUBLICATION_MARK "created by cdcd"

struct pg_publication {
    bool exists, all_tables, insert, update, delete, truncate, via_root;
    bool ours; /* carries our mark */
    char *owner;
};

/* Drops what an ephemeral source has made; a failure is only logged. */
void pg_publication_drop_own(PGconn *sql, const char *name);
/* Drops publications of ephemeral sources that were killed: cdcd_tail_PID_XXXX of which no
 * connection is left. Best effort: without the right to drop them they stay. */
void pg_publication_sweep(PGconn *sql);

/* A permanent table or partitioned table that can be published. Strings in the list's arena. */
struct pg_pub_table {
    uint32_t oid, parent; /* parent: of a partition, else 0 */
    const char *schema, *table;
    bool partitioned;
    bool captured;  /* passes the include and exclude lists */
    bool member;    /* named in the publication itself */
    bool published; /* its changes come under its own name */
    char replident; /* d n f i */
    bool has_key;   /* a usable replica identity: not FULL, not NOTHING */
    bool primary;   /* has a primary key */
    bool rls;       /* row level security is on */
    bool select;    /* we may read it */
    bool owner;     /* we own it, or may act as its owner */
    bool force;     /* row level security holds for the owner too */
};

struct pg_pub_tables {
    struct cdcd_arena arena;
    struct pg_pub_table *items; /* in order of oid */
    size_t n;
};

enum cdcd_rc pg_publication_read(PGconn *sql, const char *name, struct pg_publication *out,
                                 struct cdcd_error *err);
void pg_publication_clear(struct pg_publication *p);
enum cdcd_rc pg_pub_tables_read(PGconn *sql, const char *publication,
                                const struct pg_filter *filter, struct pg_pub_tables *out,
                                struct cdcd_error *err);
void pg_pub_tables_free(struct pg_pub_tables *t);
/* The captured tables that must be named in a publication: those without a captured ancestor. */
bool pg_pub_table_wanted(const struct pg_pub_tables *all, const struct pg_pub_table *t);
/* True when changes of this captured table arrive, under its name or a captured ancestor's. */
bool pg_pub_table_covered(const struct pg_pub_tables *all, const struct pg_pub_table *t,
                          const struct pg_publication *p);
/* CONFIG error that names the captured and published tables that this user may not read, or not
 * in full. */
enum cdcd_rc pg_pub_tables_readable(PGconn *sql, const struct pg_pub_tables *all,
                                    struct cdcd_error *err);
/* Row level security does not concern this user. */
bool pg_bypasses_rls(PGconn *sql);
bool pg_pub_table_hidden(const struct pg_pub_table *t, bool bypass);
/* True when the config names tables or schemas to capture. */
bool pg_explicit_tables(const struct pg_config *cfg);
/* UPDATE and DELETE of this table fail on the server once it is published. */
bool pg_pub_table_breaks(const struct pg_pub_table *t);
/* The wanted tables, "a, b", for CREATE PUBLICATION; missing_only: for ADD TABLE. malloc'ed. */
char *pg_pub_list_sql(const struct pg_pub_tables *all, bool missing_only, size_t *n);
/* Tells every pair of captured tables whose names are the same once a topic's name is made of
 * them (all but letters, digits, ".", "_" and "-" becomes "_"). */
void pg_pub_topic_clashes(const struct pg_pub_tables *all,
                          void (*tell)(void *ctx, const char *text), void *ctx);

#endif
