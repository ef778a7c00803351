/*
 * change_int.h: what the files of the change stream feed share.
 *
 *   change_stream.c   the feed: events, marks, what is over 16 MB
 *   change_cursor.c   the cursor: the pipeline, the commands, what their errors mean
 */
#ifndef CDCD_PLUGIN_MONGODB_CHANGE_INT_H
#define CDCD_PLUGIN_MONGODB_CHANGE_INT_H

#include "change_event.h"

/* How events are asked for. One that is over 16 MB fails the whole reply of the server, without a
 * word about which one it is. MG_SINGLE: one a reply, so that all before it come out; MG_SLIM: that
 * one without its documents, to name it, and to have its token. */
enum mg_reading { MG_WHOLE, MG_SINGLE, MG_SLIM };

struct mg_feed {
    struct cdcd_source *s;
    mongoc_client_session_t *session; /* a cursor belongs to the session that made it */
    uint32_t server_id;
    int64_t cursor;        /* 0: the server has closed it */
    char *db, *collection; /* of the cursor */
    enum mg_reading reading;
    bool any;     /* verify(): without the filters, so that any event answers */
    bool broken;  /* the connection failed: send no more commands */
    bson_t reply; /* holds the events not yet given */
    bool has_reply;
    struct cdcd_bson_iter batch;
    bool in_batch;
    uint32_t batch_events;  /* of that reply */
    struct cdcd_slice post; /* its postBatchResumeToken; ptr NULL: none */
    /* Where a new cursor would start: behind the last thing given, or `start`. */
    struct cdcd_buf token;
    struct mg_time start;
    struct mg_time last;    /* time of the last change given */
    struct mg_time reached; /* of the newest token: what came up to there is given */
    struct mg_time marked;  /* everything up to it is given, whoever may still have something */
    bool whole;             /* asked behind all that, the server had nothing more */
    bool behind;            /* the first cursor started with a token */
    bool opened_anew;       /* since the last event: another time without one is an error */
    struct cdcd_buf merged; /* fragments of an event, then the event */
    int32_t fragments;
    uint64_t skipped; /* events over 16 MB, left out as configured */
    char *known_ns;   /* the last namespace that the filter was asked about */
    bool known_pass;
    char *warned; /* an operationType that is not known; once */
};

/* ---- change_cursor.c ---- */

/* Whether the server is asked to split events over 16 MB. */
bool mg_changes_splits(const struct cdcd_source *s);
/* A cursor behind f->token, or at f->start; its first events are in f->batch. *too_large: an event
 * on the way is over 16 MB, and err is not set. */
enum cdcd_rc mg_changes_open(struct mg_feed *f, bool *too_large, struct cdcd_error *err);
/* The next events, or none after wait_ms. */
enum cdcd_rc mg_changes_more(struct mg_feed *f, int64_t wait_ms, bool *too_large,
                             struct cdcd_error *err);
/* A new cursor where this one stands. */
enum cdcd_rc mg_changes_again(struct mg_feed *f, enum mg_reading reading, bool *too_large,
                              struct cdcd_error *err);
/* Ends the cursor on the server, if there is one and the connection still stands; its events are
 * gone, too. */
void mg_changes_close(struct mg_feed *f);

#endif
