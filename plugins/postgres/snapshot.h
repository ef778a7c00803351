/*
 * What snapshot.c (the view, its tables, the plan) and snapshot_read.c (the workers) share.
 *
 * struct pg_snapshot is made by the capture thread before workers start and freed after they have
 * ended; workers only read it, but for what shape_lock guards.
 */
#ifndef CDCD_PLUGIN_POSTGRES_SNAPSHOT_H
#define CDCD_PLUGIN_POSTGRES_SNAPSHOT_H

#include "pg.h"

#include <pthread.h>
#include <stdatomic.h>

/* One physical table: the table itself, or a leaf of a partitioned table published as its root. */
struct pg_leaf {
    uint32_t oid;
    uint32_t filenode; /* under the view: what the identity is made of */
    uint32_t planned;  /* what the chunks were planned for; 0: not planned in this session */
    const char *schema, *table;
    bool heap;    /* rows have a ctid that orders them */
    bool foreign; /* cannot be locked */
    int64_t blocks;
    int64_t rows; /* estimate, -1 unknown */
};

/* Where to go on in a table: a leaf and a ctid. Text "(BLOCK,OFFSET)", with "OID:" in front when
 * the table is partitioned; "" is the start, or as an end the end.
 *
 * A table with out-of-line values has a last chunk of its own kind, "T" LSN ":" XMIN. Between two
 * views an UPDATE may move a row from a range that is not read yet into one that is; the row then
 * comes as its UPDATE only, which does not carry unchanged out-of-line values. So under any view
 * but the one at LSN, which planned it, this chunk reads every row version that is not older than
 * that view (xmin >= XMIN), wherever it stands. It ends after all other chunks, so that it is
 * still to do for as long as one of them is. */
struct pg_cursor {
    size_t leaf;
    uint32_t block, offset;
};

struct pg_snap_column {
    uint32_t column; /* of the schema */
    uint32_t type;
    int32_t typmod;
    int attnum; /* 0: not known (partitions number their columns each for itself) */
};

struct pg_snap_table {
    uint32_t oid;
    bool root;  /* partitioned: cursors carry the leaf's oid */
    bool keyed; /* a primary key, or the index of its replica identity */
    const char *schema, *table;
    const char *row_filter; /* of the publication, or "" */
    struct pg_leaf *leaves; /* in order of oid */
    size_t nleaves;
    int64_t rows;
    char *label, *identity;
    /* Some values are stored out of line and not logged by every UPDATE: see struct pg_cursor. */
    bool toasted;
    atomic_int busy; /* workers that read ordinary chunks */

    /* Made once, by whoever comes first, under shape_lock: */
    struct pg_table *shape;
    char *select; /* "a", "B" */
    struct pg_snap_column *columns;
    size_t ncolumns;
};

struct pg_snapshot {
    struct cdcd_arena arena;
    PGconn *conn;  /* holds the exported snapshot: nothing is ever run on it */
    char name[64]; /* of the exported snapshot */
    bool resumed;
    pg_lsn lsn;
    int64_t ts_us, txid;
    uint64_t xmin, xmax; /* of the view, with epoch */
    pthread_mutex_t shape_lock;
    struct pg_snap_table *tables;
    size_t ntables;
};

/* Reads the table's shape as it is now, if that was not done yet. Any thread, with its own
 * connection and catalogue. */
enum cdcd_rc pg_snap_shape(struct cdcd_source *s, struct pg_snap_table *t, PGconn *sql,
                           struct pg_types *types, struct cdcd_error *err);

/* An error of reading this physical table, told apart: gone or altered since the view was taken
 * (RETRY), locked (RETRY), hidden or forbidden (CONFIG). */
enum cdcd_rc pg_snap_error(const struct pg_config *cfg, PGconn *conn, const PGresult *r,
                           const struct pg_leaf *l, struct cdcd_error *err);

/* ---- cursors and COPY text; no connection needed ---- */
bool pg_cursor_parse(const struct pg_snap_table *t, const char *text, bool is_end,
                     struct pg_cursor *out);
/* At most 64 bytes with the NUL. */
void pg_cursor_write(const struct pg_snap_table *t, const struct pg_cursor *c, char out[64]);
/* The last chunk of a table with out-of-line values. */
bool pg_tail_parse(const char *text, pg_lsn *lsn, uint64_t *xmin);
/* Chunks of about `per_chunk` blocks, over several leaves where those are small. The arena of
 * *out is initialised by the caller. */
void pg_snap_cut(const struct pg_snap_table *t, int64_t per_chunk, struct cdcd_chunks *out);

/* A row of COPY's text format, split and unescaped where it stands; ptr NULL is NULL. Every field
 * ends with a NUL byte: row[len] is overwritten. Returns the number of fields found, at most
 * max + 1. https://www.postgresql.org/docs/current/sql-copy.html, "Text Format" */
size_t pg_copy_split(char *row, size_t len, struct cdcd_slice *fields, size_t max);

#endif
