/*
 * What the files of the snapshot share:
 *
 *   snapshot.c        begin and end, and that the tables are those of the view
 *   snapshot_lock.c   all connections' views at one position of the log
 *   snapshot_table.c  the tables of the view: their key, their label, their fingerprint
 *   snapshot_plan.c   keys, cursors and ranges as SQL; cutting a table into chunks
 *   snapshot_read.c   the workers
 *
 * struct my_snapshot is made by the capture thread before workers start and freed after they have
 * ended. Workers only read it, but for what its locks guard.
 */
#ifndef CDCD_PLUGIN_MYSQL_SNAPSHOT_INT_H
#define CDCD_PLUGIN_MYSQL_SNAPSHOT_INT_H

#include "snapshot.h"

#include <pthread.h>

/* ---- keys, cursors, ranges: snapshot_plan.c; no connection needed ---- */

/* How values of a key column are written into a cursor and from there into SQL. */
enum my_key_kind {
    MY_KEY_NONE,     /* a type that cannot be compared with a literal exactly */
    MY_KEY_NUMBER,   /* integers, DECIMAL, YEAR: their text is a literal */
    MY_KEY_FLOAT,    /* `c`+0e0 */
    MY_KEY_INDEX,    /* ENUM, SET, BIT: `c`+0, they are ordered by number */
    MY_KEY_TEMPORAL, /* the text in quotes; zero and invalid dates too */
    MY_KEY_NAMED,    /* UUID, INET4, INET6: the text in quotes */
    MY_KEY_TEXT,     /* HEX(`c`): the bytes in the column's own charset, behind an introducer */
    MY_KEY_BINARY,   /* HEX(`c`) */
};

struct my_key_column {
    const char *name;
    enum my_key_kind kind;
    const char *charset; /* TEXT */
    bool integer, unsigned_;
};

struct my_snap_key {
    struct my_key_column *columns;
    size_t n; /* 0: none that rows can be read in order of */
    const char *index;
};

/* The key of a table, in the arena. n is 0 without one, or with a column whose kind is NONE. */
void my_snap_key_of(const struct my_table *t, struct cdcd_arena *a, struct my_snap_key *out);
/* What chunk cursors depend on: order and form of the key. In the arena. */
const char *my_snap_identity(const struct my_table *t, const struct my_snap_key *k,
                             struct cdcd_arena *a);

/* A cursor is a JSON array of the values of the first columns of the key, at least one, as strings
 * without escapes: ["42","C3A9"]. A range goes from behind its begin up to and with its end; a
 * shorter cursor means all keys that begin with it. False: no cursor of this key. */
bool my_cursor_parse(const struct my_snap_key *k, const char *text, struct cdcd_arena *a,
                     struct cdcd_slice **values, size_t *n);
void my_cursor_write(const struct cdcd_slice *values, size_t n, struct cdcd_buf *out);
/* The SQL expression that gives a value for a cursor. */
void my_key_expression(const struct my_key_column *c, struct cdcd_buf *out);
/* " WHERE ..." for the range, or nothing; cursors as text, "" is open. False: not understood. */
bool my_range_where(const struct my_snap_key *k, const char *begin, const char *end,
                    struct cdcd_buf *out);
/* " FORCE INDEX (...)" and " ORDER BY ...": rows in order of the key by reading its index. */
void my_key_force(const struct my_snap_key *k, struct cdcd_buf *out);
void my_key_order(const struct my_snap_key *k, struct cdcd_buf *out);

/* Cuts between two integers, both given as the server's text. Chunks hold at most some
 * times `per_chunk` rows, whatever the gaps. False: too sparse for that. */
bool my_cut_integers(const char *min, const char *max, bool unsigned_, int64_t rows,
                     int64_t per_chunk, struct cdcd_chunks *out);

/* ---- tables: snapshot_table.c ---- */

/* A table as it stands in the catalogue: a table that was altered, or another one that took its
 * name, has a different fingerprint. */
struct my_stamp {
    const char *db, *table;
    const char *engine;
    int64_t rows; /* estimate, -1 unknown */
    uint64_t fingerprint;
};
struct my_stamps {
    struct cdcd_arena arena;
    struct my_stamp *items; /* sorted by db and table */
    size_t n;
};
/* Of all captured tables, or (db and table given) of one, which may be none: n 0. *moved: one
 * vanished while its definition was read. */
enum cdcd_rc my_stamps_read(MYSQL *m, const struct my_filter *f, const char *db, const char *table,
                            struct my_stamps *out, bool *moved, struct cdcd_error *err);
void my_stamps_free(struct my_stamps *s);
bool my_stamps_equal(const struct my_stamps *a, const struct my_stamps *b);

struct my_snap_column {
    uint32_t column; /* of the schema */
    uint32_t source; /* of the shape */
};

struct my_snap_table {
    const struct my_table *model;
    struct my_stamp stamp;
    const char *label, *identity;
    struct my_snap_key key;

    /* Made once, by whoever comes first, under shape_lock: */
    struct my_shape *shape;
    char *select; /* expressions of the columns, then those of the key that are not among them */
    struct my_snap_column *columns;
    size_t ncolumns, nselect;
    size_t *key_field; /* of each key column: which field of the result */
};

/* ---- the view: snapshot.c ---- */

struct my_snapshot {
    struct cdcd_arena arena;
    bool resumed;
    struct my_position position; /* of the view */
    int64_t ts_us;

    /* Connections that stand in the view. There may be fewer than workers, who then wait for one:
     * MariaDB without a lock gives what stands at the same position. */
    MYSQL **views;
    size_t nviews;
    pthread_mutex_t lock; /* of the four below */
    pthread_cond_t freed;
    bool *busy;
    bool broken; /* a view is lost */
    int64_t ping_ms;

    pthread_mutex_t catalog_lock;
    MYSQL *catalog; /* no transaction: sees the catalogue as it is now */

    struct my_table_list models;
    struct my_snap_table *tables; /* sorted by label */
    size_t ntables;
    pthread_mutex_t shape_lock;
};

/* snapshot_lock.c: begins the views, all at v->position (file, pos, gtid), with no transaction
 * prepared there. Says in the log how. May close some of the views (nviews). */
enum cdcd_rc my_views_take(struct cdcd_source *s, struct my_snapshot *v, struct cdcd_error *err);
/* The server says that the user may not do it. */
bool my_denied(MYSQL *m);

/* snapshot_table.c: from v->models and the stamps. */
void my_snap_tables_make(struct my_snapshot *v, const struct my_stamps *stamps);
enum cdcd_rc my_snap_shape(struct cdcd_source *s, struct my_snap_table *t, struct cdcd_error *err);
void my_snap_table_free(struct my_snap_table *t);
/* An error of reading a table, told apart: changed since the view was taken, locked, forbidden. */
enum cdcd_rc my_snap_error(const struct cdcd_source *s, MYSQL *m, const struct my_snap_table *t,
                           struct cdcd_error *err);
enum cdcd_rc my_snap_moved(const struct my_snap_table *t, struct cdcd_error *err, const char *what);

/* The commit part of the positions of its rows. */
uint64_t my_snap_seq(const struct cdcd_source *s);

#endif
