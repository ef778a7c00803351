/*
 * ddl: a statement that changes the shape of tables, in the common form. Lives in the arena of the
 * batch of its event (CDCD_OP_DDL). Slices with ptr NULL are null.
 */
#ifndef CDCD_DDL_H
#define CDCD_DDL_H

#include "buf.h"

struct cdcd_ddl_column {
    struct cdcd_slice name;
    struct cdcd_slice type_name;       /* "INT UNSIGNED" */
    struct cdcd_slice type_expression; /* the same, as Debezium has it */
    struct cdcd_slice charset;         /* "utf8mb4"; NULL for what is no text */
    struct cdcd_slice comment;
    struct cdcd_slice default_; /* text of the default; NULL: none */
    int jdbc_type;              /* java.sql.Types */
    int32_t length, scale;      /* -1: null */
    bool optional, auto_incremented, generated;
    const struct cdcd_slice *labels; /* ENUM, SET: as they stand in the statement, in quotes */
    uint32_t nlabels;
};

enum cdcd_ddl_type { CDCD_DDL_CREATE, CDCD_DDL_ALTER, CDCD_DDL_DROP };

struct cdcd_ddl_table {
    enum cdcd_ddl_type type;
    struct cdcd_slice db, table;
    struct cdcd_slice old_table; /* a rename within the statement: the name before; else NULL */
    struct cdcd_slice charset, comment;
    const struct cdcd_ddl_column *columns;
    uint32_t ncolumns;
    const struct cdcd_slice *keys; /* names of the primary key's columns, in its order */
    uint32_t nkeys;
};

struct cdcd_ddl {
    struct cdcd_slice db;    /* databaseName and source.db; "" when there is none */
    struct cdcd_slice table; /* source.table: names joined with ",", or NULL */
    struct cdcd_slice text;  /* the statement */
    const struct cdcd_ddl_table *tables;
    uint32_t ntables;
};

#endif
