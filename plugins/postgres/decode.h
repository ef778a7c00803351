/*
 * decode.h: one pgoutput message -> struct pg_message, and a row of it -> an event. Pure functions
 * over bytes: no socket, no file, no state but scratch memory, so that tests and fuzzers can feed
 * them anything.
 */
#ifndef CDCD_PLUGIN_POSTGRES_DECODE_H
#define CDCD_PLUGIN_POSTGRES_DECODE_H

#include "pg.h"

struct pg_value {
    const char *ptr; /* 't' only; borrowed from the message */
    uint32_t len;
    char kind; /* n NULL, u unchanged and not sent, t text */
};

struct pg_tuple {
    size_t n;
    const struct pg_value *values; /* borrowed from the decoder until its next message */
};

/* A message that was read to its last byte. Slices are borrowed from its bytes. Times are
 * microseconds since 1970. */
struct pg_message {
    char type;
    /* B b P K r p S c A: the transaction. In a streamed block, R Y I U D T M: the transaction or
     * subtransaction that made the change. Else 0. */
    uint32_t xid;
    uint32_t subxid;        /* A: what is aborted; the whole transaction when equal to xid */
    pg_lsn lsn;             /* B C c K: commit record; b P p: PREPARE record; r: end of the PREPARE
                               record; O: commit at the origin; M: end of the message's record */
    pg_lsn end_lsn;         /* C c K b P p r: end of that record (r: of the ROLLBACK PREPARED) */
    int64_t ts_us;          /* B C c K: commit; b P p: prepare; r: rollback */
    bool first_segment;     /* S */
    bool transactional;     /* M */
    struct cdcd_slice gid;  /* b P K r p */
    struct cdcd_slice name; /* O: origin; M: prefix */
    struct cdcd_slice content; /* M */
    uint32_t oid;              /* I U D R Y: relation or type */
    char old_kind;             /* U D: K key columns, O whole row, 0 none */
    struct pg_tuple old_row, new_row;
    struct pg_relation relation; /* R; attrs borrowed from the decoder until its next message */
    size_t nrelations;           /* T */
    const uint8_t *relations;    /* T: big-endian oids, see pg_message_relation() */
};

struct pg_decoder {
    struct pg_value *values[2];
    size_t values_cap[2];
    struct pg_attr *attrs;
    size_t attrs_cap;
};

void pg_decoder_free(struct pg_decoder *d);

/* Reads one message whole. `streamed`: it came between Stream Start and Stream Stop and carries an
 * xid. `lsn` is for errors. FATAL with type, LSN, reason and the first bytes when it is garbled. */
enum cdcd_rc pg_decode(struct pg_decoder *d, struct cdcd_slice raw, pg_lsn lsn, bool streamed,
                       struct pg_message *out, struct cdcd_error *err);

static inline uint32_t pg_message_relation(const struct pg_message *m, size_t i)
{
    const uint8_t *p = m->relations + 4 * i;
    return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

/* Appends the event of an I, U or D message: op, schema, before and after are set. The bytes of
 * `raw`, the message, are copied into the batch once and the cells point there. On error nothing
 * is appended. FATAL when the tuples do not fit the table or its key is not known, DATA when a
 * value is not of its type. */
enum cdcd_rc pg_decode_row(const struct pg_table *t, const struct pg_message *m,
                           struct cdcd_slice raw, pg_lsn lsn, struct cdcd_batch *b,
                           struct cdcd_event **out, struct cdcd_error *err);

#endif
