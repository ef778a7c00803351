/*
 * event: one change, in the common form; cell: one value of it.
 *
 * Both live in the arena of the batch that they were appended to.
 */
#ifndef CDCD_EVENT_H
#define CDCD_EVENT_H

#include "ddl.h"
#include "schema.h"

enum cdcd_cell_kind {
    CDCD_C_NULL = 0,
    CDCD_C_ABSENT,    /* the log does not carry this column; never NULL */
    CDCD_C_UNCHANGED, /* value not sent since unchanged (PostgreSQL TOAST); never NULL */
    CDCD_C_BOOL,      /* i: 0 or 1 */
    CDCD_C_INT,       /* i */
    CDCD_C_UINT,      /* u */
    CDCD_C_FLOAT,     /* ptr,len: shortest decimal text that reads back the same, as the source
                         prints it ("1e+300", "-0"), or "NaN", "Infinity", "-Infinity" */
    CDCD_C_DECIMAL,   /* ptr,len: [-]digits[.digits], or "NaN", "Infinity", "-Infinity" */
    CDCD_C_TEXT,      /* ptr,len: UTF-8 */
    CDCD_C_BYTES,     /* ptr,len */
    CDCD_C_DATE,      /* i: days since 1970-01-01, proleptic Gregorian; see inf. Under a DATE or
                         TIMESTAMP column a TEXT cell is a value that is no date, in the source's
                         own text ("0000-00-00", "2024-02-30 01:02:03") */
    CDCD_C_TIME,      /* i: microseconds since midnight, 24:00:00 is 86400000000; may be negative
                         or longer than a day (MySQL) */
    CDCD_C_TIMESTAMP, /* i: seconds since 1970-01-01T00:00:00Z; len: nanoseconds 0..999999999 */
    CDCD_C_INTERVAL,  /* iv: months, days, microseconds, each with its own sign; see inf */
    CDCD_C_LIST,      /* cells,len */
    CDCD_C_MAP,       /* cells,len: key, value, key, value...; keys TEXT, values TEXT or NULL */
    CDCD_C_GEOM,      /* ptr,len: well-known binary; cdcd_cell_srid() (0 = none), and
                         cdcd_cell_shape() when it stands for another shape of the source */
    CDCD_C_BSON,      /* aux: BSON type of the value (3: a document); ptr,len: its bytes as they
                         stand in BSON, see bson.h */
};

/* A source's own shape that is written as well-known binary but is more than that says. */
enum cdcd_shape {
    CDCD_SHAPE_NONE = 0,
    CDCD_SHAPE_BOX,
    CDCD_SHAPE_LSEG,
    CDCD_SHAPE_PATH_OPEN,
    CDCD_SHAPE_PATH_CLOSED,
    CDCD_SHAPE_POLYGON,
};

struct cdcd_interval {
    int32_t months, days;
    int64_t micros;
};

struct cdcd_cell {
    uint8_t kind;
    int8_t inf; /* DATE, TIMESTAMP, INTERVAL: +1 infinity, -1 -infinity, else 0 */
    uint16_t aux;
    uint32_t len;
    union {
        const char *ptr;
        int64_t i;
        uint64_t u;
        const struct cdcd_cell *cells;
        const struct cdcd_interval *iv;
    };
};

static inline struct cdcd_cell cdcd_cell_text(const char *p, size_t n)
{
    return (struct cdcd_cell){.kind = CDCD_C_TEXT, .len = (uint32_t)n, .ptr = p};
}
static inline struct cdcd_cell cdcd_cell_int(int64_t i)
{
    return (struct cdcd_cell){.kind = CDCD_C_INT, .i = i};
}
/* GEOM: well-known binary with its spatial reference (up to CDCD_SRID_MAX) or its shape. Both
 * are kept in aux and inf: a shape, which has no spatial reference, as a negative inf. */
#define CDCD_SRID_MAX UINT32_C(0x7fffff)
static inline struct cdcd_cell cdcd_cell_geom(const char *wkb, size_t n, uint32_t srid,
                                              enum cdcd_shape shape)
{
    return (struct cdcd_cell){.kind = CDCD_C_GEOM,
                              .inf = (int8_t)(shape ? -(int)shape : (int)(srid >> 16 & 0x7f)),
                              .aux = (uint16_t)(shape ? 0 : srid),
                              .len = (uint32_t)n,
                              .ptr = wkb};
}
static inline uint32_t cdcd_cell_srid(const struct cdcd_cell *c)
{
    return c->inf < 0 ? 0 : (uint32_t)c->inf << 16 | c->aux;
}
static inline enum cdcd_shape cdcd_cell_shape(const struct cdcd_cell *c)
{
    return c->inf < 0 ? (enum cdcd_shape) - c->inf : CDCD_SHAPE_NONE;
}
static inline struct cdcd_cell cdcd_cell_bson(uint8_t type, const char *p, size_t n)
{
    return (struct cdcd_cell){.kind = CDCD_C_BSON, .aux = type, .len = (uint32_t)n, .ptr = p};
}
/* True when the log carries the value, be it NULL. */
static inline bool cdcd_cell_present(const struct cdcd_cell *c)
{
    return c->kind != CDCD_C_ABSENT && c->kind != CDCD_C_UNCHANGED;
}

enum cdcd_op {
    CDCD_OP_CREATE,
    CDCD_OP_READ, /* snapshot row */
    CDCD_OP_UPDATE,
    CDCD_OP_DELETE,
    CDCD_OP_TRUNCATE,
    CDCD_OP_MESSAGE,   /* after: [0] TEXT prefix, [1] BYTES content; schema NULL, or one without
                          columns that names the database (for source.db) */
    CDCD_OP_TX_BEGIN,  /* transaction metadata topic; schema NULL */
    CDCD_OP_TX_END,    /* the same; `collections` set */
    CDCD_OP_HEARTBEAT, /* heartbeat topic; schema NULL */
    CDCD_OP_DDL,       /* schema change topic; `ddl` set, schema NULL */
};

/* source.snapshot of a READ event; set by the coordinator, NONE in the stream. */
enum cdcd_snapshot_mark {
    CDCD_SNAP_NONE = 0,
    CDCD_SNAP_TRUE,
    CDCD_SNAP_FIRST,
    CDCD_SNAP_FIRST_IN_TABLE,
    CDCD_SNAP_LAST_IN_TABLE,
    CDCD_SNAP_LAST,
};

struct cdcd_tx_collection {
    struct cdcd_slice name; /* "schema.table" */
    uint64_t count;
};

/* What an update of a document changed, as change streams tell it. In the batch's arena. */
struct cdcd_truncated {
    struct cdcd_slice field; /* dotted path of the array */
    int32_t size;            /* its new number of elements */
};
struct cdcd_update {
    struct cdcd_slice updated;        /* BSON document: dotted path -> new value; never NULL */
    const struct cdcd_slice *removed; /* dotted paths */
    uint32_t nremoved;
    const struct cdcd_truncated *truncated;
    uint32_t ntruncated;
    /* BSON document: each path above that can be read in two ways (a name with a dot in it, or
     * one of digits only) -> array of its names and numbers. ptr NULL: none. */
    struct cdcd_slice ambiguous;
};

/* Order of a record in the log: compared field by field. Becomes the header cdcd.pos. */
struct cdcd_pos {
    uint64_t commit;  /* commit position: LSN, binlog file and offset, cluster time */
    uint64_t ordinal; /* of the event in its transaction, from 1; snapshot: chunk << 40 | row */
    bool stream;      /* false for snapshot rows, which sort before the stream at equal commit */
};

/* For source_ops.version: a number of 63 bits, of which `bits` are the commit part (made small by
 * the source), one tells snapshot and stream apart, and the others are the ordinal, or as much of
 * it as they hold. */
static inline uint64_t cdcd_pos_version(uint64_t commit, unsigned bits, struct cdcd_pos pos)
{
    uint64_t most = ((uint64_t)1 << (62 - bits)) - 1, top = ((uint64_t)1 << bits) - 1;
    return (commit < top ? commit : top) << (63 - bits) | (uint64_t)pos.stream << (62 - bits) |
           (pos.ordinal < most ? pos.ordinal : most);
}

struct cdcd_event {
    struct cdcd_event *next;
    uint8_t op;                     /* enum cdcd_op */
    uint8_t snapshot;               /* enum cdcd_snapshot_mark */
    bool in_tx;                     /* MESSAGE: transactional */
    bool row_follows;               /* UPDATE; set by the coordinator: a snapshot that is not
                                       complete brings the row whole after this, unless it is
                                       deleted before */
    struct cdcd_schema *schema;     /* borrowed: the batch holds a reference */
    const struct cdcd_cell *before; /* schema->ncolumns cells, or NULL */
    const struct cdcd_cell *after;  /* the same */
    const struct cdcd_cell *source; /* the plugin's source_columns, in order */
    struct cdcd_slice sequence;     /* source.sequence, unescaped; ptr NULL = null */
    int64_t ts_us;                  /* commit time, microseconds since 1970 */
    struct cdcd_pos pos;
    /* Transaction metadata, only when the pipeline wants it (env.tx_metadata). The orders count
     * from 1 and are those of the first record that the event becomes. The source counts an
     * event for which cdcd_event_key_changed() holds as two, since it becomes a delete and a
     * create; the encoder gives the create the orders plus one. So the counts need no memory
     * in the encoder and come out the same after a resume in the middle of a transaction. */
    struct cdcd_slice tx_id; /* ptr NULL: no transaction block */
    uint64_t total_order, data_collection_order;
    const struct cdcd_tx_collection *collections; /* TX_END */
    uint32_t ncollections;
    const struct cdcd_ddl *ddl; /* DDL */
    /* Documents (schema->document): the images have CDCD_DOC_COLUMNS cells. CREATE, READ and
     * UPDATE have `after`, DELETE has `before`; the id is set in each image that is there, the
     * document is NULL where the log does not have it (a delete without pre-image, an update
     * whose document is gone meanwhile). */
    const struct cdcd_update *update; /* UPDATE that is no replacement; else NULL */
    bool after_lookup; /* after's document was read after the change, and may be newer than it */
};

/* Same kind and same value, byte for byte: 1.1 and 1.10 differ. */
static inline bool cdcd_cell_equal(const struct cdcd_cell *a, const struct cdcd_cell *b)
{
    if (a->kind != b->kind)
        return false;
    switch (a->kind) {
    case CDCD_C_NULL:
    case CDCD_C_ABSENT:
    case CDCD_C_UNCHANGED: return true;
    case CDCD_C_BOOL:
    case CDCD_C_INT:
    case CDCD_C_UINT:
    case CDCD_C_TIME: return a->i == b->i;
    case CDCD_C_DATE: return a->inf == b->inf && (a->inf || a->i == b->i);
    case CDCD_C_TIMESTAMP:
        return a->inf == b->inf && (a->inf || (a->i == b->i && a->len == b->len));
    case CDCD_C_INTERVAL:
        return a->inf == b->inf &&
               (a->inf || (a->iv->months == b->iv->months && a->iv->days == b->iv->days &&
                           a->iv->micros == b->iv->micros));
    case CDCD_C_LIST:
    case CDCD_C_MAP:
        for (uint32_t i = 0; a->len == b->len && i < a->len; i++) {
            if (!cdcd_cell_equal(&a->cells[i], &b->cells[i]))
                return false;
        }
        return a->len == b->len;
    default: /* text and bytes */
        return a->len == b->len && (a->len == 0 || memcmp(a->ptr, b->ptr, a->len) == 0) &&
               (a->kind != CDCD_C_GEOM || (a->aux == b->aux && a->inf == b->inf)) &&
               (a->kind != CDCD_C_BSON || a->aux == b->aux);
    }
}

/* True for an update whose before image has the table's whole key (schema->keys) and in which
 * some part of it differs. A key value that is UNCHANGED in `after` did not change. */
static inline bool cdcd_event_key_changed(const struct cdcd_event *e)
{
    if (e->op != CDCD_OP_UPDATE || !e->schema || !e->before || !e->after)
        return false;
    bool changed = false;
    for (uint32_t i = 0; i < e->schema->nkeys; i++) {
        uint32_t c = e->schema->keys[i];
        if (!cdcd_cell_present(&e->before[c]))
            return false;
        if (cdcd_cell_present(&e->after[c]) && !cdcd_cell_equal(&e->before[c], &e->after[c]))
            changed = true;
    }
    return changed;
}

#endif
