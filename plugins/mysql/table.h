/*
 * table.h: what a table looks like. Three sources tell it: information_schema (now), the log's
 * statements (then), and the table map before each row event (types always, names with
 * binlog_row_metadata=FULL). The model is kept by name, changed by the statements of the log as
 * they pass, stored as a note of the pipeline (notes.h) with the position, and verified against
 * every table map.
 */
#ifndef CDCD_PLUGIN_MYSQL_TABLE_H
#define CDCD_PLUGIN_MYSQL_TABLE_H

#include "binlog.h"

#include <cdcd/ddl.h>

/* ---- table.c: the model ---- */

struct my_column {
    char *name;            /* UTF-8 */
    char *type;            /* upper case, no length: "INT UNSIGNED", "VARCHAR", "ENUM", "UUID" */
    int32_t length, scale; /* (10), (10,2), fsp of times; -1 not given */
    char *charset;         /* of text columns; NULL else */
    char *collation;       /* where known */
    bool nullable, auto_increment, generated, virtual_, invisible, unsigned_, zerofill;
    bool json_alias; /* MariaDB: JSON in the statement, or longtext with json_valid(own name) */
    bool compressed; /* MariaDB COMPRESSED */
    bool on_update_now;
    bool has_default;  /* DEFAULT given, be it NULL or an expression */
    bool default_expr; /* an expression other than a literal: default_ is its text */
    char *default_;    /* unquoted literal or expression; NULL: none or NULL */
    char *comment;
    char **labels;           /* ENUM, SET: UTF-8, unquoted; NULL-terminated */
    bool row_start, row_end; /* MariaDB system versioning */
};

struct my_index {
    char *name;     /* "PRIMARY" for the primary key */
    char **columns; /* without those that are expressions */
    size_t ncolumns;
    bool primary, unique;
    bool partial;    /* holds only the beginning of some column */
    bool expression; /* some part is no column */
};

struct my_table {
    char *db, *name;
    char *charset, *collation, *comment;
    struct my_column *columns;
    size_t ncolumns;
    struct my_index *indexes; /* all of them: statements drop and rename them by name */
    size_t nindexes;
    char *
        *keys; /* primary key, in its order; else the first unique index without nullable columns */
    size_t nkeys;
    bool primary; /* keys are of a primary key */
    bool sequence, versioned, view;
    bool unsure; /* a statement that changed it was not understood: only a FULL table map or a new
                    look at information_schema makes it usable again */
    char *why;   /* of unsure: the statement, cut, and where */
};

struct my_table *my_table_new(const char *db, const char *name);
void my_table_free(struct my_table *t);
struct my_table *my_table_copy(const struct my_table *t);
/* Columns of the primary key become NOT NULL; keys, nkeys and primary are set from the indexes. */
void my_table_set_keys(struct my_table *t);
/* Columns that MariaDB adds to the log behind those of the table: a hash for each unique index that
 * is too long for the engine. */
#define MY_HASH_COLUMN "DB_ROW_HASH_"
size_t my_table_hash_columns(const struct my_table *t);
/* The column's number by name, without regard to case; -1: none. */
int my_table_column(const struct my_table *t, const char *name);
/* Two names of columns, indexes or (folded) tables, without regard to case. */
bool my_name_equal(const char *a, const char *b);
/* In lower case, as the server folds names of tables; malloc'ed. */
char *my_name_fold(const char *name);
void my_set_string(char **field, const char *value); /* a copy in its place; NULL is fine */
void my_column_free(struct my_column *c);            /* what it owns */
void my_column_copy(const struct my_column *from, struct my_column *to); /* all of it */
void my_index_free(struct my_index *i);
/* As a note's value (JSON, versioned) and back. NULL when it cannot be read. */
void my_table_write(const struct my_table *t, struct cdcd_buf *out);
struct my_table *my_table_read(struct cdcd_slice note);

/* ---- catalog.c ---- */
/* Tables of information_schema that pass the filter (views left out), sorted by db and name, with
 * what SHOW CREATE TABLE tells beyond it. `create` receives the statement. only NULL: all. */
struct my_table_list {
    struct my_table **items; /* owned */
    size_t n;
};
enum cdcd_rc my_catalog_read(MYSQL *m, const struct my_server *server, const struct my_filter *f,
                             const char *db /* NULL: all */, const char *table /* NULL: all */,
                             struct my_table_list *out, struct cdcd_error *err);
void my_table_list_free(struct my_table_list *l);
/* SHOW CREATE TABLE / DATABASE. Owned. */
enum cdcd_rc my_catalog_create_table(MYSQL *m, const char *db, const char *table, char **out,
                                     struct cdcd_error *err);
enum cdcd_rc my_catalog_create_database(MYSQL *m, const char *db, char **out,
                                        struct cdcd_error *err);

/* ---- ddl.c, ddl_lex.c, ddl_create.c, ddl_alter.c ---- */

/* What a statement of the log is. */
enum my_statement {
    MY_ST_OTHER, /* touches no table's shape or rows: CREATE USER, GRANT, FLUSH, SET, triggers ...
                  */
    MY_ST_BEGIN,
    MY_ST_COMMIT,
    MY_ST_ROLLBACK,
    MY_ST_SAVEPOINT,
    MY_ST_ROLLBACK_TO,
    MY_ST_XA_START,
    MY_ST_XA_END,
    MY_ST_XA_COMMIT,
    MY_ST_XA_ROLLBACK, /* xid as "X'..',X'..',n" */
    MY_ST_DDL,         /* may change shapes: apply it */
    MY_ST_TRUNCATE,
    MY_ST_DML, /* changes rows: INSERT, UPDATE, DELETE, REPLACE, LOAD DATA, CALL ... */
};
#define MY_STATEMENT_DATABASES 16
struct my_statement_info {
    enum my_statement kind;
    struct cdcd_slice xid; /* XA: borrowed from the text or from static scratch of the thread */
    /* TRUNCATE, DML: the first table named, resolved against the default database; arena. "" when
     * it cannot be told. */
    const char *db, *table;
    /* DML whose tables cannot all be told (UPDATE and DELETE of several, CALL, SELECT f() ...):
     * table is
     * "", and these may be databases that it names besides the default one: what stands before a
     * dot. */
    const char *databases[MY_STATEMENT_DATABASES];
    unsigned ndatabases; /* beyond the array: there were more */
    bool temporary;      /* CREATE or DROP TEMPORARY TABLE: nothing to do */
};
/* Comments, versioned comments, leading parentheses and SET STATEMENT ... FOR are seen through.
 * Never fails. */
void my_statement_of(const struct my_event *query, enum my_flavor flavor, int version,
                     struct cdcd_arena *a, struct my_statement_info *out);

/* ---- schema.c ---- */

/* A table as rows are decoded: model and table map together. Reference-counted by hand: the stream
 * owns it; the cdcd_schema has its own count. */
struct my_shape {
    struct cdcd_schema *schema; /* owned reference */
    uint32_t ncolumns;          /* of the table map */
    struct my_column_decoder *columns;
    bool captured;   /* false: schema and columns are NULL */
    bool versioned;  /* MariaDB: row_start and row_end are there */
    int32_t row_end; /* map column, -1 */
    bool sequence;
    const char *db, *table;    /* the schema's or own */
    char *label;               /* "db.table" */
    uint64_t tx_seq, tx_count; /* the stream's data_collection_order counter */
    struct cdcd_arena arena;
};
/* Model alone (snapshots): columns in order, types and meta as the server would log them. */
enum cdcd_rc my_shape_of_table(const struct my_table *t, const struct my_server *server,
                               const struct my_filter *f, struct my_shape **out,
                               struct cdcd_error *err);
/* Table map with its model (NULL: none known). With FULL metadata the map decides on names, order,
 * signs, charsets, labels and key, and the model adds what the map does not have (defaults, UUID,
 * JSON alias, ...) from its columns of the same name; without, the model must fit the map in
 * number, types and nullability. *fits false and *why set: it does not, and there is no shape. */
enum cdcd_rc my_shape_of_map(const struct my_table_map *map, const struct my_table *model,
                             const struct my_server *server, const struct my_filter *f,
                             struct my_shape **out, bool *fits, char why[256],
                             struct cdcd_error *err);
void my_shape_free(struct my_shape *s);

/* ---- shapes.c: all models of the pipeline ---- */

struct my_shapes *my_shapes_new(const struct my_server *server, const struct my_filter *f);
void my_shapes_free(struct my_shapes *s);
/* From the notes of an earlier session. FATAL when one cannot be read. */
enum cdcd_rc my_shapes_load(struct my_shapes *s, const struct cdcd_notes *notes,
                            struct cdcd_error *err);
/* Everything as it is now, from information_schema; all become changed notes. */
enum cdcd_rc my_shapes_read(struct my_shapes *s, MYSQL *m, struct cdcd_error *err);
/* The same for one table; *found false: there is none now. */
enum cdcd_rc my_shapes_refresh(struct my_shapes *s, MYSQL *m, const char *db, const char *table,
                               bool *found, struct cdcd_error *err);
const struct my_table *my_shapes_find(const struct my_shapes *s, const char *db, const char *table);
/* Applies a DDL statement of the log. *out (arena; NULL: no captured table or database is touched)
 * is the schema change event. A statement that is not understood marks the tables that it may touch
 * unsure and is no error. Renames move models; a table that leaves or enters the filter by a rename
 * is followed. Atomic multi-table statements give one entry a table, as Debezium does (an event
 * each where it writes an event each: RENAME of two, DROP of two; see golden samples): *n events.
 */
enum cdcd_rc my_shapes_apply(struct my_shapes *s, const struct my_event *query,
                             struct cdcd_arena *a, struct cdcd_ddl **out, size_t *n,
                             struct cdcd_error *err);
/* Appends the notes that changed since the last call. */
void my_shapes_notes(struct my_shapes *s, struct cdcd_batch *b);
/* The schema change events of a snapshot, in Debezium's order: SET character_set_server, DROP
 * TABLE IF EXISTS for each captured table, then for each database DROP DATABASE IF EXISTS, CREATE
 * DATABASE, USE, and CREATE TABLE for each table of it (see golden-schema-snapshot-*). Appends to
 * the batch; the caller sets pos and source. */
enum cdcd_rc my_shapes_snapshot_ddl(struct my_shapes *s, MYSQL *m, struct cdcd_arena *a,
                                    struct cdcd_ddl **out, size_t *n, struct cdcd_error *err);

#endif
