/*
 * file.h: what the files of the file sink share.
 *
 *   line.c     one record -> one line of JSON; knows nothing of files
 *   pretty.c   one record -> one line for people
 *   record.c   the record: what is durable, an append-only log of lengths, notes and states
 *   output.c   the files of a folder: names, open descriptors, buffers, syncing
 *   sink.c     options, sessions, commits, check
 */
#ifndef CDCD_PLUGIN_FILE_FILE_H
#define CDCD_PLUGIN_FILE_FILE_H

#include <cdcd/log.h>
#include <cdcd/plugin.h>

#include <sys/types.h>

/* ---- line.c ---- */
/* Appends the line of a record with its newline. False: it does not fit into memory's bound. */
bool file_line_append(struct cdcd_buf *out, const struct cdcd_record *r);
/* True when the bytes are exactly one JSON value (RFC 8259), with or without white space. */
bool file_json_valid(const char *p, size_t n);

/* ---- pretty.c ---- */
/* The same for people: time, kind of change, table, key, row. Tombstones give no line. */
bool file_pretty_append(struct cdcd_buf *out, const struct cdcd_record *r, bool colour);

/* ---- record.c ---- */
struct file_record {
    int dirfd;                   /* borrowed, as the two texts */
    const char *path, *pipeline; /* of the folder; for messages */
    char *name;                  /* owned; file name in the folder */
    int fd;                      /* -1: not there yet */
    off_t size;                  /* of the log: everything up to here is whole */
    bool sync;
    struct cdcd_buf frame; /* being built */
};

/* What file_record_load tells, frame by frame: later ones replace earlier ones. */
struct file_record_reader {
    void *ctx;
    void (*file)(void *ctx, const char *name, off_t length);
    void (*state)(void *ctx, struct cdcd_slice state);
    /* value.ptr NULL: the key is forgotten. */
    void (*note)(void *ctx, struct cdcd_slice key, struct cdcd_slice value);
};

void file_record_init(struct file_record *r, int dirfd, const char *path, const char *pipeline,
                      bool sync);
void file_record_free(struct file_record *r);
/* Reads the log; what was left behind of an append that did not finish is cut off when `repair`
 * is set. No log is an empty one. LOSS when it is damaged. */
enum cdcd_rc file_record_load(struct file_record *r, const struct file_record_reader *reader,
                              bool repair, struct cdcd_error *err);
/* A frame is begun, filled and appended; append makes it durable. */
void file_record_begin(struct file_record *r);
void file_record_add_file(struct file_record *r, const char *name, off_t length);
/* Before the state. value.ptr NULL: the key is forgotten. */
void file_record_add_note(struct file_record *r, struct cdcd_slice key, struct cdcd_slice value);
void file_record_add_state(struct file_record *r, struct cdcd_slice state);
enum cdcd_rc file_record_append(struct file_record *r, struct cdcd_error *err);
/* The frame being built says everything: it replaces the whole log, atomically. */
enum cdcd_rc file_record_replace(struct file_record *r, struct cdcd_error *err);

/* ---- output.c ---- */
struct file_output {
    struct file_output *next;                  /* all, in no order */
    struct file_output *prev_open, *next_open; /* open ones, the last used first */
    struct file_output *next_dirty;            /* those written since the last commit */
    char *name;                                /* owned; file name in the folder */
    int fd;                                    /* -1: not open */
    struct cdcd_buf buf;                       /* lines not written yet */
    off_t written;                             /* length of the file */
    off_t committed;                           /* what the record says */
    off_t started; /* up to here the kernel was told to begin writing out */
    bool dirty;
    bool recorded; /* the record knows the file: it is ours */
    bool claimed;  /* the frame being built will tell it */
};

struct file_outputs {
    int dirfd; /* borrowed */
    const char *path, *pipeline;
    bool sync;
    struct file_output *all;
    size_t n;
    struct file_output *first_open, *last_open;
    size_t nopen;
    struct file_output *dirty;
    size_t buffered;  /* bytes in buffers */
    size_t allocated; /* capacity of buffers */
    size_t unsynced;  /* bytes written or buffered since the last commit */
    bool created;     /* a file was made: the folder must be synced */
};

/* Files more than these are closed and opened again when needed. */
#define FILE_MAX_OPEN     200
#define FILE_WRITE_BYTES  ((size_t)256 << 10)
#define FILE_BUFFER_BYTES ((size_t)8 << 20) /* of all buffers together */

struct file_output *file_outputs_find(struct file_outputs *o, const char *name);
struct file_output *file_outputs_add(struct file_outputs *o, const char *name);
void file_outputs_free(struct file_outputs *o);
/* Forgets what is buffered and closes everything: the start of a session. */
void file_outputs_reset(struct file_outputs *o);
/* Makes each recorded file as long as the record says. LOSS if one is shorter. */
enum cdcd_rc file_outputs_truncate(struct file_outputs *o, struct cdcd_error *err);
/* Owned string: the name of a topic's file. */
char *file_output_name(const char *topic, size_t len);
/* Verifies that a file which the record does not know is not somebody else's. */
enum cdcd_rc file_output_claim(const struct file_outputs *o, const struct file_output *f,
                               struct cdcd_error *err);
/* Appends a record's line. */
enum cdcd_rc file_output_append(struct file_outputs *o, struct file_output *f,
                                const struct cdcd_record *r, struct cdcd_error *err);
/* Writes all buffers and makes all dirty files durable. They stay on the dirty list. */
enum cdcd_rc file_outputs_sync(struct file_outputs *o, struct cdcd_error *err);
/* After the record holds the lengths: nothing is dirty any more. */
void file_outputs_committed(struct file_outputs *o);

/* write(2) until all is written. Returns 0 or errno; *done tells how far it came. */
int file_write_all(int fd, const char *p, size_t n, size_t *done);
/* Sets the error that fits errno: what is wrong with which file, and what to do. */
enum cdcd_rc file_errno(struct cdcd_error *err, int no, const char *doing, const char *folder,
                        const char *name);

#endif
