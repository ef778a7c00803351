/*
 * spool.h: files for transactions that are not committed yet: those that the server streams
 * before their commit, and prepared ones. One file a top-level transaction, removed after its
 * replay or abort. Capture thread only.
 */
#ifndef CDCD_PLUGIN_POSTGRES_SPOOL_H
#define CDCD_PLUGIN_POSTGRES_SPOOL_H

#include "pg.h"

struct pg_spools; /* all of a stream: folder, limit, shared buffers */

struct pg_spool {
    struct pg_spool *next;
    uint32_t xid;
    bool streamed;      /* its messages carry an xid */
    char *gid;          /* prepared under this name; NULL: not prepared */
    pg_lsn first_lsn;   /* of its first message */
    pg_lsn prepare_lsn; /* of its PREPARE record; the slot must not be confirmed beyond it */
    uint64_t bytes;     /* of the file */
    size_t relations;   /* Relation messages in it, if streamed */
    /* the rest belongs to spool.c */
    char *path;
    int fd;
    bool created;
    struct pg_xid_page *aborted;
    size_t naborted, aborted_cap;
};

/* One message of a spool. */
struct pg_spooled {
    pg_lsn lsn;
    uint64_t seq;              /* what pg_spool_append was given */
    struct cdcd_slice message; /* borrowed until the next call */
};

/* `owner` becomes a part of the file names: what is left of a dead run is told by it. */
struct pg_spools *pg_spools_new(const char *dir, const char *owner, int64_t max_bytes);
void pg_spools_free(struct pg_spools *s); /* removes the files */
/* Removes what a dead run of the same owner left. Call only while the slot is ours. */
enum cdcd_rc pg_spools_clean(struct pg_spools *s, struct cdcd_error *err);
/* The lowest PREPARE record of a held transaction; 0 when none is held. */
pg_lsn pg_spools_held(const struct pg_spools *s);
size_t pg_spools_count(const struct pg_spools *s);
uint64_t pg_spools_bytes(const struct pg_spools *s);

struct pg_spool *pg_spool_find(struct pg_spools *s, uint32_t xid);
struct pg_spool *pg_spool_new(struct pg_spools *s, uint32_t xid, bool streamed, pg_lsn lsn);
enum cdcd_rc pg_spool_append(struct pg_spools *s, struct pg_spool *sp, pg_lsn lsn, uint64_t seq,
                             struct cdcd_slice message, struct cdcd_error *err);
/* The end of a run of appends: writes what is buffered and closes the file, so that any number of
 * transactions may be open. */
enum cdcd_rc pg_spool_pause(struct pg_spools *s, struct pg_spool *sp, struct cdcd_error *err);
/* Remembers that the changes of a subtransaction do not count. */
void pg_spool_abort(struct pg_spool *sp, uint32_t subxid);
bool pg_spool_aborted(const struct pg_spool *sp, uint32_t xid);
/* Replay from the first message on. One spool at a time. */
enum cdcd_rc pg_spool_rewind(struct pg_spools *s, struct pg_spool *sp, struct cdcd_error *err);
/* OK, END, ERROR. */
enum cdcd_rc pg_spool_next(struct pg_spools *s, struct pg_spool *sp, struct pg_spooled *out,
                           struct cdcd_error *err);
void pg_spool_drop(struct pg_spools *s, struct pg_spool *sp);

#endif
