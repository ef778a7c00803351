/*
 * schema: the immutable shape of one table at one time.
 *
 * A source makes a new schema for every relation or table-map message that changes
 * a shape; events in flight keep the old one. Reference-counted (atomic), shared by
 * all threads, never changed after cdcd_schema_finish().
 */
#ifndef CDCD_SCHEMA_H
#define CDCD_SCHEMA_H

#include "buf.h"

#include <stdatomic.h>

/* What a column means, whatever the database calls it. The encoder decides how it is
 * written; the cell kind that a source puts under each type is named here. */
enum cdcd_type {
    CDCD_T_BOOL,        /* BOOL */
    CDCD_T_INT8,        /* INT */
    CDCD_T_INT16,       /* INT */
    CDCD_T_INT32,       /* INT */
    CDCD_T_INT64,       /* INT */
    CDCD_T_UINT64,      /* UINT */
    CDCD_T_FLOAT32,     /* FLOAT */
    CDCD_T_FLOAT64,     /* FLOAT */
    CDCD_T_DECIMAL,     /* DECIMAL; length = precision, scale */
    CDCD_T_VARDECIMAL,  /* DECIMAL of any scale */
    CDCD_T_MONEY,       /* DECIMAL; scale */
    CDCD_T_STRING,      /* TEXT */
    CDCD_T_BYTES,       /* BYTES */
    CDCD_T_BITS,        /* BYTES, little-endian; length = bits, INT32_MAX when unlimited */
    CDCD_T_DATE,        /* DATE, or TEXT for what is no date */
    CDCD_T_TIME,        /* TIME; scale = fraction digits */
    CDCD_T_TIMETZ,      /* TEXT, ISO in UTC ("10:44:15.123456Z") */
    CDCD_T_TIMESTAMP,   /* TIMESTAMP without zone, or TEXT; scale = fraction digits */
    CDCD_T_TIMESTAMPTZ, /* TIMESTAMP in UTC, or TEXT; scale = fraction digits */
    CDCD_T_INTERVAL,    /* INTERVAL */
    CDCD_T_UUID,        /* TEXT */
    CDCD_T_JSON,        /* TEXT: JSON text */
    CDCD_T_XML,         /* TEXT */
    CDCD_T_ENUM,        /* TEXT; labels */
    CDCD_T_ENUMSET,     /* TEXT, comma-joined; labels */
    CDCD_T_LTREE,       /* TEXT */
    CDCD_T_TSVECTOR,    /* TEXT */
    CDCD_T_HSTORE,      /* MAP */
    CDCD_T_POINT,       /* LIST of two FLOAT: x, y; or GEOM of a point, with its srid */
    CDCD_T_GEOMETRY,    /* GEOM: well-known binary and srid */
    CDCD_T_VECTOR64,    /* LIST of FLOAT (64 bit) */
    CDCD_T_VECTOR32,    /* LIST of FLOAT (32 bit) */
    CDCD_T_SPARSEVEC,   /* LIST: INT dimensions, then INT index, FLOAT value pairs */
    CDCD_T_YEAR,        /* INT */
    CDCD_T_ARRAY,       /* LIST of elem, lists nested for more dimensions */
    CDCD_T_BSON,        /* BSON; the columns of a collection of documents */
    CDCD_T_COUNT
};

struct cdcd_cell;

struct cdcd_column {
    const char *name; /* exact, UTF-8, NUL-terminated */
    uint32_t name_len;
    enum cdcd_type type;
    int32_t length;           /* precision of DECIMAL, bits of BITS; -1 when it does not apply */
    int32_t scale;            /* scale of DECIMAL, fraction digits of times; -1 when not given */
    bool optional;            /* NULL is allowed */
    bool key;                 /* part of the key (primary key or what stands for it) */
    bool has_default;         /* default_text is set, or the default is no constant */
    bool unsigned_;           /* MySQL */
    const char *default_text; /* the constant default in the source's text form, or NULL */
    const struct cdcd_cell *default_cell; /* the same as a cell; set when default_text is */
    const char *type_name;                /* the source's own name of the type, for messages */
    const char *const *labels;            /* ENUM: in order; NULL-terminated */
    const struct cdcd_column *elem;       /* ARRAY */
    uint32_t source_type;                 /* the source's own id of the type */
    const void *source_data;              /* the source's own; lives in the schema's arena */
    const char *comment;                  /* for the `doc` of its schema; or NULL */
};

/* The columns of a collection (schema->document). */
enum { CDCD_DOC_ID, CDCD_DOC_DOCUMENT, CDCD_DOC_COLUMNS };

struct cdcd_schema {
    _Atomic uint32_t refs;
    struct cdcd_arena arena;         /* owns all that the schema points to */
    const char *db, *schema, *table; /* schema may be "" (MySQL) */
    uint64_t source_id;              /* relation oid, table id */
    uint64_t version; /* hash of the shape: equal shapes have equal versions, over restarts too */
    uint32_t ncolumns;
    struct cdcd_column *columns;
    uint32_t nkeys;
    uint32_t *keys; /* column numbers in key order */
    bool document;  /* a collection: CDCD_DOC_COLUMNS columns, see cdcd_schema_document() */
    void *source_data;
    /* Cache of the encoder (publish thread only), freed through enc_free. */
    void *enc;
    void (*enc_free)(void *enc);
};

/* A schema with n zeroed columns and one reference, owned by the caller. Strings are copied. */
struct cdcd_schema *cdcd_schema_new(const char *db, const char *schema, const char *table,
                                    uint32_t ncolumns);
/* The finished schema of a collection of documents: `schema` is "", the key is the _id. */
struct cdcd_schema *cdcd_schema_document(const char *db, const char *collection);
char *cdcd_schema_strdup(struct cdcd_schema *s, const char *str, size_t len);
/* Computes `version`; after it the schema is immutable. */
void cdcd_schema_finish(struct cdcd_schema *s);
struct cdcd_schema *cdcd_schema_ref(struct cdcd_schema *s);
void cdcd_schema_unref(struct cdcd_schema *s); /* NULL is fine */

#endif
