/*
 * ddl.h: what the files of the DDL parser share with each other and with shapes.c.
 *
 *   ddl_lex.c        text -> tokens, comments seen through
 *   ddl_statement.c  what a statement is
 *   ddl.c            the statements other than CREATE TABLE and ALTER TABLE
 *   ddl_column.c     one column: its attributes
 *   ddl_type.c       its type
 *   ddl_charset.c    charsets, and types that depend on them
 *   ddl_literal.c    what stands behind DEFAULT
 *   ddl_default.c    literals in one form
 *   ddl_create.c     CREATE TABLE
 *   ddl_alter.c      the clauses of ALTER TABLE
 *   ddl_apply.c      the clauses applied to a model in the server's order
 *   ddl_event.c      models -> schema change events
 *   shapes.c         the models by name (struct my_shapes)
 *
 * The parser is lenient: it takes what changes a table's shape from the statement and passes over
 * what cannot. Where it meets something that it does not know, the table becomes unsure.
 */
#ifndef CDCD_PLUGIN_MYSQL_DDL_H
#define CDCD_PLUGIN_MYSQL_DDL_H

#include "table.h"

/* ---- ddl_lex.c ---- */

enum my_token_kind {
    MY_TOK_END,
    MY_TOK_WORD,   /* keyword or unquoted name, as typed */
    MY_TOK_NAME,   /* quoted name */
    MY_TOK_STRING, /* decoded */
    MY_TOK_NUMBER,
    MY_TOK_HEX,  /* digits of x'..' and 0x.. */
    MY_TOK_BITS, /* digits of b'..' and 0b.. */
    MY_TOK_PUNCT,
};

struct my_token {
    enum my_token_kind kind;
    char punct;             /* PUNCT; else 0 */
    struct cdcd_slice text; /* arena or statement; NUL-terminated for WORD, NAME and STRING */
    const char *begin, *end;
};

struct my_lex {
    const char *p, *end;
    const char *last_end; /* of the token before the current one */
    enum my_flavor flavor;
    int version;
    bool ansi_quotes, no_backslash;
    bool after_dot; /* digits may begin a name here */
    int executable; /* versioned comments that are open */
    struct cdcd_arena *a;
    struct my_token t; /* the current one */
};

/* Reads the first token. */
void my_lex_begin(struct my_lex *lx, struct cdcd_slice text, enum my_flavor flavor, int version,
                  bool ansi_quotes, bool no_backslash, struct cdcd_arena *a);
void my_lex_next(struct my_lex *lx);
bool my_lex_is(const struct my_lex *lx, const char *word); /* an unquoted word, any case */
bool my_lex_is_punct(const struct my_lex *lx, char c);
bool my_lex_take(struct my_lex *lx, const char *word);
bool my_lex_take2(struct my_lex *lx, const char *first, const char *second); /* both or none */
bool my_lex_take_punct(struct my_lex *lx, char c);
/* A name, quoted or not; NULL when there is none. Arena. */
const char *my_lex_name(struct my_lex *lx);
/* [db.]name; db as it was when it is not there. */
bool my_lex_qualified(struct my_lex *lx, const char **db, const char **name);
/* Moves behind the bracket that closes the current one; false: there is none. */
bool my_lex_skip_brackets(struct my_lex *lx);
/* Token after the current one. */
struct my_token my_lex_peek(const struct my_lex *lx);

/* ---- the parser ---- */

struct my_shapes;

/* One thing that a statement did, in its order. */
enum my_effect_kind {
    MY_EFFECT_TABLE,    /* a table change: type, table */
    MY_EFFECT_INDEX,    /* CREATE or DROP INDEX that leaves the key as it is; not understood */
    MY_EFFECT_DATABASE, /* CREATE or DROP DATABASE */
    MY_EFFECT_ALTER_DATABASE,
};
struct my_effect {
    struct my_effect *next;
    enum my_effect_kind kind;
    const char *db, *table;
    struct cdcd_ddl_table change; /* TABLE */
    struct cdcd_slice text;
};

struct my_ddl {
    struct my_lex lx;
    struct my_shapes *shapes;
    const struct my_server *server;
    const struct my_event *query;
    const char *db;  /* default database, "" none */
    bool unreadable; /* the text is not of its charset: nothing in it is certain */
    struct cdcd_arena *a;
    struct cdcd_slice text; /* the statement from its first token to its last */
    struct my_effect *effects, **last_effect;
};

struct my_table *my_sequence_new(const char *db, const char *name);
/* ddl.c: runs the statement at d->lx. */
void my_ddl_run(struct my_ddl *d);
/* The table named at the lexer, database filled in, folded as the server does. */
bool my_ddl_table_name(struct my_ddl *d, const char **db, const char **name);
void my_ddl_effect(struct my_ddl *d, enum my_effect_kind kind, enum cdcd_ddl_type type,
                   const char *db, const char *table, const struct my_table *after,
                   struct cdcd_slice text);
/* Marks the table unsure (a model without columns if there is none yet), with the place. */
void my_ddl_unsure(struct my_ddl *d, const char *db, const char *name, const char *at);
/* The text in UTF-8. False: it is not of its charset, *out is as it is. */
bool my_query_text(const struct my_event *query, struct cdcd_arena *a, struct cdcd_slice *out);
bool my_ddl_if_exists(struct my_lex *lx);     /* IF EXISTS */
bool my_ddl_if_not_exists(struct my_lex *lx); /* IF NOT EXISTS */

/* ---- ddl_type.c ---- */

/* A column of a CREATE or ALTER TABLE on its way to the model. */
struct my_column_def {
    struct my_column c;
    const char *change;            /* MODIFY, CHANGE: the name before; NULL: a new column */
    const char *after;             /* "": FIRST; NULL: not given */
    bool if_exists;                /* MariaDB's MODIFY COLUMN IF EXISTS */
    bool if_not_exists;            /* ADD COLUMN IF NOT EXISTS */
    bool charset_given;            /* else the table's */
    bool collation_given;          /* by COLLATE */
    bool null_given, binary, text; /* text: has a charset */
    int64_t chars;                 /* of TEXT(n): the type that holds so many; -1 */
    bool primary, unique;
    bool versioned; /* MariaDB: WITH SYSTEM VERSIONING, which makes the table so */
    bool placed;    /* apply: is in the list */
};
/* At the type's first word: type, length, labels; `text` and charset where the type says so. */
bool my_ddl_type(struct my_lex *lx, const struct my_server *server, struct my_column_def *def);
void my_ddl_type_name(struct my_column *c); /* appends UNSIGNED and ZEROFILL */
bool my_ddl_number(struct my_lex *lx, int64_t *out);

/* ---- ddl_column.c ---- */

/* Type and attributes up to a comma or closing bracket. False: something was not understood. */
bool my_ddl_column(struct my_ddl *d, struct my_column_def *def);
/* TIMESTAMP columns that are given neither NULL nor a default, on servers without
 * explicit_defaults_for_timestamp; first: no TIMESTAMP column stands before it. */
void my_ddl_timestamp_defaults(struct my_column_def *def, const struct my_server *server,
                               bool *first);
/* "varchar(20)" and what else information_schema has in COLUMN_TYPE. */
bool my_catalog_type(struct my_column *c, const char *text, const struct my_server *server);

/* ---- ddl_charset.c ---- */

/* What is written behind CHARACTER SET or COLLATE; NULL: DEFAULT or no name. */
const char *my_ddl_charset_name(struct my_lex *lx);
/* Charset and type as they depend on the table's charset. */
void my_ddl_column_charset(struct my_column_def *def, const char *charset, const char *collation);
/* CONVERT TO CHARACTER SET. */
void my_ddl_column_convert(struct my_column *c, const char *charset, const char *collation);
uint32_t my_charset_max_bytes(const char *charset); /* of a character */
/* "utf8" and "utf8_bin" under their exact names; of a collation, its charset (NULL: of several). */
char *my_charset_canon(const char *name);
char *my_charset_of_collation(const char *collation);
/* "uca1400_ai_ci" -> "utf8mb4_uca1400_ai_ci" */
void my_collation_complete(const char *charset, char **collation);

/* ---- ddl_literal.c ---- */

/* DEFAULT's operand at the lexer; the column's type must be known. */
bool my_ddl_default(struct my_lex *lx, struct my_column *c);
bool my_ddl_is_now(const struct my_lex *lx);     /* at CURRENT_TIMESTAMP, NOW, ... */
bool my_ddl_now(struct my_lex *lx, char **text); /* its text in the server's form */
/* A column's default as information_schema has it. */
void my_catalog_default(struct my_column *c, const char *text, bool expression,
                        const struct my_server *server);

/* ddl_default.c: a literal in the form that the model keeps it in, by the column's type; malloc'ed.
 * NULL: it has none. */
char *my_default_canon(const struct my_column *c, enum my_token_kind kind, struct cdcd_slice text);

/* ---- ddl_create.c ---- */

struct my_index_def {
    struct my_index x;
    bool primary;
    const char *period; /* WITHOUT OVERLAPS: its columns are part of the index */
};
/* Options of a table, common to CREATE and ALTER; NULL: not given. */
struct my_table_options {
    const char *charset, *collation, *comment;
    bool charset_default; /* CHARACTER SET DEFAULT: the database's */
    bool system_versioning;
};
void my_ddl_create_table(struct my_ddl *d, bool replace, bool temporary);
/* An index or constraint at the lexer, keyword and all; *is false: it is a column instead. Indexes
 * that come of it are appended to `list`. False: not understood. */
struct my_index_list {
    struct my_index_def *items;
    size_t n, cap;
};
bool my_ddl_constraint(struct my_ddl *d, struct my_index_list *list, bool *is);
/* CREATE INDEX: the parts at the lexer. */
bool my_ddl_index_parts(struct my_lex *lx, struct my_index_list *list, const char *name,
                        bool unique);
void my_index_list_free(struct my_index_list *l);
void my_ddl_column_indexes(struct my_index_list *list, const struct my_column_def *def);
/* One option (ENGINE=..., COMMENT '...'). False: not an option. */
bool my_ddl_table_option(struct my_ddl *d, struct my_table_options *o);
/* PERIOD FOR p (start, end): its columns are NOT NULL, and part of an index WITHOUT OVERLAPS. */
struct my_period {
    const char *name, *start, *end;
};
bool my_ddl_period(struct my_lex *lx, struct my_period *p); /* at PERIOD */
/* False: the index names another period. */
bool my_index_add_period(struct my_index_def *def, const struct my_period *p);
void my_table_set_period(struct my_table *t, const struct my_period *p);
/* Appends an index; one without a name gets the server's. */
void my_table_add_index(struct my_table *t, struct my_index_def *def);
void my_table_add_system_columns(struct my_table *t);
void my_table_set_default_charset(struct my_ddl *d, struct my_table *t,
                                  const struct my_table_options *o, bool create);

/* ---- ddl_alter.c, ddl_apply.c ---- */

struct my_rename {
    const char *from, *to;
};
struct my_alter_default {
    const char *column;
    bool drop, visible_given, visible;
    struct my_column value; /* has_default, default_expr, default_ are used */
    struct my_lex at;       /* of SET DEFAULT: read when the column is known */
};
struct my_alter {
    struct my_column_def *columns; /* ADD, MODIFY, CHANGE */
    size_t ncolumns;
    const char **drops; /* columns */
    size_t ndrops;
    const char **drop_indexes;
    size_t ndrop_indexes;
    struct my_rename *renames; /* columns */
    size_t nrenames;
    struct my_rename *index_renames;
    size_t nindex_renames;
    struct my_alter_default *defaults;
    size_t ndefaults;
    struct my_index_list indexes;
    struct my_period period;
    struct my_table_options options;
    const char *convert_charset, *convert_collation;
    bool convert;
    bool drop_primary, add_versioning, drop_versioning;
    const char *new_db, *new_name; /* RENAME TO */
    /* MariaDB: CONVERT PARTITION p TO TABLE makes one, CONVERT TABLE t TO PARTITION takes one */
    const char *out_db, *out_name, *in_db, *in_name;
};
void my_ddl_alter_table(struct my_ddl *d);
/* False: a clause does not fit the model (a column that is not there). */
bool my_alter_apply(struct my_ddl *d, struct my_table *t, struct my_alter *alter);

/* ---- ddl_event.c ---- */

void my_ddl_table_change(const struct my_table *t, enum cdcd_ddl_type type, enum my_flavor flavor,
                         struct cdcd_arena *a, struct cdcd_ddl_table *out);
/* The names of the tables in the order of a Java hash set of "db.table", joined by commas. */
struct cdcd_slice my_ddl_table_list(const struct my_effect *effects, const char *db,
                                    struct cdcd_arena *a);

/* ---- shapes.c: as the parser sees it ---- */

struct my_table *my_shapes_get(struct my_shapes *s, const char *db, const char *name);
/* Takes the table over, in place of one of its name. */
void my_shapes_put(struct my_shapes *s, struct my_table *t);
void my_shapes_drop(struct my_shapes *s, const char *db, const char *name);
/* The table itself was changed. */
void my_shapes_touch(struct my_shapes *s, const struct my_table *t);
/* Charset and collation of a database, borrowed until the next change; false: not known. */
bool my_shapes_database(const struct my_shapes *s, const char *db, const char **charset,
                        const char **collation);
void my_shapes_set_database(struct my_shapes *s, const char *db, const char *charset,
                            const char *collation);
void my_shapes_drop_database(struct my_shapes *s, const char *db); /* its tables too */
/* Whether tables of the database are of interest at all. */
bool my_shapes_tracks(const struct my_shapes *s, const char *db);
/* Names of tables and databases are folded (lower_case_table_names not 0). */
bool my_shapes_fold(const struct my_shapes *s);

#endif
