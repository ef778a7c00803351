/*
 * The file sink: JSON lines on standard output, or a folder with one file a topic.
 *
 * A folder is exactly once. Lines are appended to the data files; a commit syncs them, then
 * appends their lengths, the source's notes and its position to the record (record.c) and syncs
 * that. At load every file is cut back to its recorded length, so what a killed process wrote after
 * its last commit is written again by the next. A file's name enters the record before the file is
 * made: a file that the record does not know is not ours and is never touched.
 *
 * All calls come from one thread; batches are given back as soon as their lines are made.
 */
#include "file.h"

#include <cdcd/version.h>

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

/* While more is waiting, commits come this far apart; without more they come at once. */
#define COMMIT_MS    200
#define COMMIT_BYTES ((size_t)64 << 20)
/* The record's log is replaced when it is this large and this many times its content. */
#define RECORD_BYTES  (4 << 20)
#define RECORD_FACTOR 4

struct file_config {
    char *path;
    bool fsync;
    int format; /* enum file_format */
};

enum file_format { FILE_FORMAT_JSON, FILE_FORMAT_PRETTY };
static const char *const file_formats[] = {"json", "pretty", NULL};

struct cdcd_sink {
    const struct file_config *config;
    const struct cdcd_sink_env *env;
    bool to_stdout, colour;
    int dirfd, lockfd;
    struct file_record record;
    struct file_outputs outputs;
    struct cdcd_topic **topics; /* those whose `sink` points to one of the outputs */
    size_t ntopics, topics_cap;
    struct cdcd_buf lines;        /* standard output: lines not written yet */
    struct cdcd_buf state;        /* newest state that was written */
    bool new_state;               /* it is not in the record yet */
    struct cdcd_notes *notes;     /* the source's, as written */
    struct cdcd_notes *new_notes; /* keys of those that the record does not have yet */
    off_t live;                   /* size of the record when it was last replaced */
    uint64_t seq, durable;        /* last one written, last one reported durable */
    int64_t dirty_since;          /* when the first byte after the last commit came; 0: nothing */
    bool broken;                  /* an error was returned: nothing but load helps */
};

static const struct cdcd_option file_options[] = {
    {.name = "path",
     .type = CDCD_OPT_STR,
     .offset = offsetof(struct file_config, path),
     .default_ = "-",
     .flags = CDCD_OPT_SAMPLE,
     .doc = "\"-\" for standard output, which remembers nothing over restarts, or a folder, which "
            "is made when it is missing and gets one TOPIC.jsonl a topic, exactly once."},
    {.name = "fsync",
     .type = CDCD_OPT_BOOL,
     .offset = offsetof(struct file_config, fsync),
     .default_ = "true",
     .doc = "Sync files at each commit. With false a crash of the machine (not of cdcd) can lose "
            "what was reported as delivered."},
    {.name = "format",
     .type = CDCD_OPT_ENUM,
     .offset = offsetof(struct file_config, format),
     .default_ = "json",
     .values = file_formats,
     .doc = "On standard output: json, one record a line for programs, or pretty, one change a "
            "line for people, coloured on a terminal. A folder is always json."},
    {0},
};

static bool file_forgetful(const void *config)
{
    return strcmp(((const struct file_config *)config)->path, "-") == 0;
}

/* ---- open and close ---- */

static enum cdcd_rc open_folder(const char *path, bool make, int *out, struct cdcd_error *err)
{
    if (!*path)
        return cdcd_error_set(err, CDCD_ERR_CONFIG,
                              "sink.file.path is empty; give a folder, or - for standard output");
    if (make && mkdir(path, 0755) != 0 && errno != EEXIST) {
        if (errno == ENOENT)
            return cdcd_error_set(err, CDCD_ERR_CONFIG,
                                  "sink.file.path: the folder above %s does not exist; make it, "
                                  "or choose another",
                                  path);
        return file_errno(err, errno, "make", path, "");
    }
    *out = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (*out >= 0)
        return CDCD_OK;
    return file_errno(err, errno, "open", path, "");
}

/* One process a pipeline and folder. The lock is a file of its own, as the record's file is
 * replaced now and then. *out -1 when it is not there and not to be made. */
static enum cdcd_rc lock_folder(int dirfd, const char *path, const char *pipeline, bool make,
                                int *out, struct cdcd_error *err)
{
    char *name = cdcd_xasprintf(".cdcd-%s.lock", pipeline);
    char pid[32] = "";
    enum cdcd_rc rc = CDCD_OK;
    int fd = openat(dirfd, name, O_RDWR | O_CLOEXEC | (make ? O_CREAT : 0), 0644);
    *out = -1;
    if (fd < 0 && (make || errno != ENOENT)) {
        rc = file_errno(err, errno, "create", path, name);
    } else if (fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) != 0) {
        ssize_t n = pread(fd, pid, sizeof pid - 1, 0);
        pid[n > 0 ? strcspn(pid, "\n") : 0] = 0;
        rc = cdcd_error_set(err, CDCD_ERR_LOSS,
                            "another instance of pipeline %s (process %s) writes to %s; stop it, "
                            "or give this pipeline another name or folder",
                            pipeline, *pid ? pid : "unknown", path);
        close(fd);
    } else {
        *out = fd;
    }
    if (rc == CDCD_OK && make) {
        int n = snprintf(pid, sizeof pid, "%ld\n", (long)getpid());
        if (ftruncate(fd, 0) != 0 || pwrite(fd, pid, (size_t)n, 0) != n)
            cdcd_debug("file", "cannot note the process number in %s/%s", path, name);
    }
    free(name);
    return rc;
}

static void file_close(struct cdcd_sink *s)
{
    if (!s)
        return;
    for (size_t i = 0; i < s->ntopics; i++)
        s->topics[i]->sink = NULL;
    free(s->topics);
    file_outputs_free(&s->outputs);
    if (!s->to_stdout)
        file_record_free(&s->record);
    cdcd_buf_free(&s->lines);
    cdcd_buf_free(&s->state);
    cdcd_notes_free(s->notes);
    cdcd_notes_free(s->new_notes);
    if (s->lockfd >= 0)
        close(s->lockfd);
    if (s->dirfd >= 0)
        close(s->dirfd);
    free(s);
}

static enum cdcd_rc file_open(struct cdcd_sink **out, const void *config,
                              const struct cdcd_sink_env *env, struct cdcd_error *err)
{
    struct cdcd_sink *s = cdcd_xcalloc(1, sizeof *s);
    s->config = config;
    s->env = env;
    s->dirfd = s->lockfd = -1;
    s->broken = true;
    s->notes = cdcd_notes_new();
    s->new_notes = cdcd_notes_new();
    s->to_stdout = file_forgetful(config);
    s->colour = s->to_stdout && isatty(STDOUT_FILENO) && !getenv("NO_COLOR");
    /* A reader that goes away is an error of write(2), not the end of the process. */
    signal(SIGPIPE, SIG_IGN);
    *out = NULL;
    if (!s->to_stdout) {
        if (open_folder(s->config->path, true, &s->dirfd, err) != CDCD_OK ||
            lock_folder(s->dirfd, s->config->path, env->pipeline, true, &s->lockfd, err) !=
                CDCD_OK) {
            file_record_init(&s->record, s->dirfd, s->config->path, env->pipeline, false);
            file_close(s);
            return CDCD_ERROR;
        }
        file_record_init(&s->record, s->dirfd, s->config->path, env->pipeline, s->config->fsync);
        s->outputs = (struct file_outputs){.dirfd = s->dirfd,
                                           .path = s->config->path,
                                           .pipeline = env->pipeline,
                                           .sync = s->config->fsync};
    }
    *out = s;
    return CDCD_OK;
}

/* ---- the record ---- */

static void load_file(void *ctx, const char *name, off_t length)
{
    struct cdcd_sink *s = ctx;
    struct file_output *f = file_outputs_find(&s->outputs, name);
    if (!f)
        f = file_outputs_add(&s->outputs, name);
    f->recorded = true;
    f->committed = f->written = length;
}

static void load_state(void *ctx, struct cdcd_slice state)
{
    struct cdcd_sink *s = ctx;
    cdcd_buf_clear(&s->state);
    cdcd_buf_add(&s->state, state.ptr, state.len);
}

static void load_note(void *ctx, struct cdcd_slice key, struct cdcd_slice value)
{
    struct cdcd_sink *s = ctx;
    cdcd_notes_set(s->notes, key, value);
}

static void notes_copy(const struct cdcd_notes *from, struct cdcd_notes *to)
{
    struct cdcd_slice key, value;
    for (size_t i = 0; i < cdcd_notes_count(from); i++) {
        cdcd_notes_at(from, i, &key, &value);
        cdcd_notes_set(to, key, value);
    }
}

static void add_new_notes(struct cdcd_sink *s)
{
    struct cdcd_slice key, value;
    for (size_t i = 0; i < cdcd_notes_count(s->new_notes); i++) {
        cdcd_notes_at(s->new_notes, i, &key, &value);
        file_record_add_note(&s->record, key, cdcd_notes_get(s->notes, key));
    }
}

static void add_all_notes(struct cdcd_sink *s)
{
    struct cdcd_slice key, value;
    for (size_t i = 0; i < cdcd_notes_count(s->notes); i++) {
        cdcd_notes_at(s->notes, i, &key, &value);
        file_record_add_note(&s->record, key, value);
    }
}

/* Replaces the log by one frame with everything that is durable. */
static enum cdcd_rc record_compact(struct cdcd_sink *s, struct cdcd_error *err)
{
    file_record_begin(&s->record);
    for (struct file_output *f = s->outputs.all; f; f = f->next)
        if (f->recorded)
            file_record_add_file(&s->record, f->name, f->written);
    add_all_notes(s);
    if (s->state.len)
        file_record_add_state(&s->record, cdcd_buf_slice(&s->state));
    if (file_record_replace(&s->record, err) != CDCD_OK)
        return CDCD_ERROR;
    s->live = s->record.size;
    return CDCD_OK;
}

static enum cdcd_rc record_append(struct cdcd_sink *s, struct cdcd_error *err)
{
    if (s->record.size > RECORD_BYTES && s->record.size > s->live * RECORD_FACTOR)
        return record_compact(s, err);
    file_record_begin(&s->record);
    for (struct file_output *f = s->outputs.dirty; f; f = f->next_dirty)
        if (f->written != f->committed)
            file_record_add_file(&s->record, f->name, f->written);
    add_new_notes(s);
    if (s->new_state)
        file_record_add_state(&s->record, cdcd_buf_slice(&s->state));
    return file_record_append(&s->record, err);
}

static enum cdcd_rc file_load(struct cdcd_sink *s, struct cdcd_buf *state, struct cdcd_notes *notes,
                              struct cdcd_error *err)
{
    cdcd_buf_clear(state);
    cdcd_buf_clear(&s->lines);
    cdcd_buf_clear(&s->state);
    s->seq = s->durable = 0;
    s->dirty_since = 0;
    s->new_state = false;
    cdcd_notes_clear(s->notes);
    cdcd_notes_clear(s->new_notes);
    s->broken = true;
    if (!s->to_stdout) {
        const struct file_record_reader reader = {s, load_file, load_state, load_note};
        file_outputs_reset(&s->outputs);
        if (file_record_load(&s->record, &reader, true, err) != CDCD_OK ||
            file_outputs_truncate(&s->outputs, err) != CDCD_OK)
            return CDCD_ERROR;
        s->live = s->record.size;
        cdcd_buf_add(state, s->state.ptr, s->state.len);
        notes_copy(s->notes, notes);
    }
    s->broken = false;
    return CDCD_OK;
}

/* ---- topics ---- */

static void topic_bind(struct cdcd_sink *s, struct cdcd_topic *t, struct file_output *f)
{
    if (s->ntopics == s->topics_cap) {
        s->topics_cap = s->topics_cap ? s->topics_cap * 2 : 64;
        s->topics = cdcd_xrealloc(s->topics, s->topics_cap * sizeof(struct cdcd_topic *));
    }
    s->topics[s->ntopics++] = t;
    t->sink = f;
}

/* Finds or makes the topic's output. *fresh counts those that the record does not know. */
static enum cdcd_rc topic_attach(struct cdcd_sink *s, struct cdcd_topic *t, size_t *fresh,
                                 struct cdcd_error *err)
{
    char *name = file_output_name(t->name.ptr, t->name.len);
    struct file_output *f = file_outputs_find(&s->outputs, name);
    if (!f)
        f = file_outputs_add(&s->outputs, name);
    free(name);
    if (t->sink != f)
        topic_bind(s, t, f);
    if (f->recorded || f->claimed)
        return CDCD_OK;
    if (file_output_claim(&s->outputs, f, err) != CDCD_OK)
        return CDCD_ERROR;
    file_record_add_file(&s->record, f->name, 0);
    f->claimed = true;
    (*fresh)++;
    return CDCD_OK;
}

static enum cdcd_rc fresh_recorded(struct cdcd_sink *s, size_t fresh, struct cdcd_error *err)
{
    if (fresh && file_record_append(&s->record, err) != CDCD_OK)
        return CDCD_ERROR;
    for (struct file_output *f = s->outputs.all; fresh && f; f = f->next) {
        f->recorded = f->recorded || f->claimed;
        f->claimed = false;
    }
    return CDCD_OK;
}

/* Ready for lines. One that is bound but not recorded was met in this batch or lost its
 * session. */
static bool topic_known(const struct cdcd_topic *t)
{
    return t->sink && ((const struct file_output *)t->sink)->recorded;
}

static enum cdcd_rc file_prepare(struct cdcd_sink *s, struct cdcd_topic *const *topics, size_t n,
                                 struct cdcd_error *err)
{
    size_t fresh = 0;
    if (s->to_stdout)
        return CDCD_OK;
    file_record_begin(&s->record);
    for (size_t i = 0; i < n; i++)
        if (!topic_known(topics[i]) && topic_attach(s, topics[i], &fresh, err) != CDCD_OK)
            return CDCD_ERROR;
    return fresh_recorded(s, fresh, err);
}

/* A new topic in a batch: it and all others that come after it go into the record at once. */
static enum cdcd_rc topics_of(struct cdcd_sink *s, const struct cdcd_record *r,
                              struct cdcd_error *err)
{
    size_t fresh = 0;
    file_record_begin(&s->record);
    for (; r; r = r->next)
        if (!topic_known(r->topic) && topic_attach(s, r->topic, &fresh, err) != CDCD_OK)
            return CDCD_ERROR;
    return fresh_recorded(s, fresh, err);
}

/* ---- write ---- */

static enum cdcd_rc lines_flush(struct cdcd_sink *s, struct cdcd_error *err)
{
    size_t done;
    int no = file_write_all(STDOUT_FILENO, s->lines.ptr, s->lines.len, &done);
    if (no)
        return file_errno(err, no, "write", "standard output", "");
    cdcd_buf_clear(&s->lines);
    if (s->lines.cap > 4 * FILE_WRITE_BYTES)
        cdcd_buf_free(&s->lines);
    return CDCD_OK;
}

static enum cdcd_rc write_lines(struct cdcd_sink *s, const struct cdcd_batch *b,
                                struct cdcd_error *err)
{
    for (const struct cdcd_record *r = b->records; r; r = r->next) {
        bool fits = s->config->format == FILE_FORMAT_PRETTY
                        ? file_pretty_append(&s->lines, r, s->colour)
                        : file_line_append(&s->lines, r);
        if (!fits)
            return cdcd_error_set(
                err, CDCD_ERR_DATA, "topic %.*s: a record of %zu bytes is too large",
                (int)r->topic->name.len, r->topic->name.ptr, r->key.len + r->value.len);
        if (s->lines.len >= FILE_WRITE_BYTES && lines_flush(s, err) != CDCD_OK)
            return CDCD_ERROR;
    }
    return CDCD_OK;
}

static enum cdcd_rc write_files(struct cdcd_sink *s, const struct cdcd_batch *b,
                                struct cdcd_error *err)
{
    for (const struct cdcd_record *r = b->records; r; r = r->next) {
        if (!topic_known(r->topic) && topics_of(s, r, err) != CDCD_OK)
            return CDCD_ERROR;
        if (file_output_append(&s->outputs, r->topic->sink, r, err) != CDCD_OK)
            return CDCD_ERROR;
    }
    return CDCD_OK;
}

static enum cdcd_rc session_lost(struct cdcd_error *err)
{
    return cdcd_error_set(err, CDCD_ERR_RETRY, "the file sink has failed and was not begun anew");
}

/* They go into the record with the state of their batch. */
static void take_notes(struct cdcd_sink *s, const struct cdcd_batch *b)
{
    for (const struct cdcd_note *n = b->notes; n; n = n->next) {
        cdcd_notes_set(s->notes, n->key, n->value);
        cdcd_notes_set(s->new_notes, n->key, cdcd_slice_str(""));
    }
}

static enum cdcd_rc file_write(struct cdcd_sink *s, struct cdcd_batch *b, struct cdcd_error *err)
{
    assert(b->state.ptr || !b->notes);
    enum cdcd_rc rc = s->broken      ? session_lost(err)
                      : s->to_stdout ? write_lines(s, b, err)
                                     : write_files(s, b, err);
    if (rc == CDCD_OK) {
        s->seq = b->seq;
        if (b->state.ptr && !s->to_stdout) {
            cdcd_buf_clear(&s->state);
            cdcd_buf_add(&s->state, b->state.ptr, b->state.len);
            s->new_state = true;
            take_notes(s, b);
        }
        if (!s->dirty_since)
            s->dirty_since = cdcd_now_ms();
    } else {
        s->broken = true;
    }
    s->env->batch_done(s->env->ctx, b);
    return rc;
}

/* ---- commit ---- */

static enum cdcd_rc commit(struct cdcd_sink *s, struct cdcd_error *err)
{
    if (s->to_stdout) {
        if (lines_flush(s, err) != CDCD_OK)
            return CDCD_ERROR;
    } else if (s->outputs.dirty || s->new_state) {
        if (file_outputs_sync(&s->outputs, err) != CDCD_OK || record_append(s, err) != CDCD_OK)
            return CDCD_ERROR;
        file_outputs_committed(&s->outputs);
        s->new_state = false;
        cdcd_notes_clear(s->new_notes);
    }
    s->dirty_since = 0;
    if (s->seq != s->durable) {
        s->durable = s->seq;
        s->env->durable(s->env->ctx, s->durable);
    }
    return CDCD_OK;
}

static enum cdcd_rc file_poll(struct cdcd_sink *s, int timeout_ms, bool more, bool flush,
                              struct cdcd_error *err)
{
    (void)timeout_ms; /* there is never anything to wait for */
    if (s->broken)
        return session_lost(err);
    if (!s->dirty_since || (more && !flush && s->outputs.unsynced < COMMIT_BYTES &&
                            cdcd_now_ms() - s->dirty_since < COMMIT_MS))
        return CDCD_OK;
    if (commit(s, err) != CDCD_OK) {
        s->broken = true;
        return CDCD_ERROR;
    }
    return CDCD_OK;
}

/* ---- check ---- */

static void check_file(void *ctx, const char *name, off_t length)
{
    (void)ctx, (void)name, (void)length;
}

static void check_state(void *ctx, struct cdcd_slice state)
{
    *(size_t *)ctx = state.len;
}

static void check_note(void *ctx, struct cdcd_slice key, struct cdcd_slice value)
{
    (void)ctx, (void)key, (void)value;
}

static void check_space(int dirfd, struct cdcd_report *report)
{
    struct statvfs v;
    char text[128];
    if (fstatvfs(dirfd, &v) != 0)
        return;
    unsigned long long mb = (unsigned long long)v.f_bavail * v.f_frsize >> 20;
    snprintf(text, sizeof text, "%llu MB free", mb);
    report->add(report->ctx, mb < 1024 ? CDCD_CHECK_WARN : CDCD_CHECK_OK, "sink.file space", text,
                mb < 1024 ? "make room: a full disk stops the pipeline until there is some" : NULL);
}

static void check_record(const char *path, const struct cdcd_sink_env *env, int dirfd,
                         struct cdcd_report *report)
{
    struct cdcd_error err = {0};
    struct file_record record;
    size_t state = 0;
    int lock = -1;
    const struct file_record_reader reader = {&state, check_file, check_state, check_note};
    file_record_init(&record, dirfd, path, env->pipeline, false);
    if (lock_folder(dirfd, path, env->pipeline, false, &lock, &err) != CDCD_OK)
        report->add(report->ctx, CDCD_CHECK_WARN, "sink.file lock", err.text, NULL);
    else if (file_record_load(&record, &reader, false, &err) != CDCD_OK)
        report->add(report->ctx, CDCD_CHECK_FAIL, "sink.file record", err.text, NULL);
    else
        report->add(report->ctx, CDCD_CHECK_OK, "sink.file record",
                    state ? "holds a position: the pipeline goes on from there"
                          : "holds no position: the pipeline begins anew",
                    NULL);
    if (lock >= 0)
        close(lock);
    file_record_free(&record);
}

static enum cdcd_rc file_check(const void *config, const struct cdcd_sink_env *env,
                               struct cdcd_report *report, struct cdcd_error *err)
{
    const struct file_config *c = config;
    struct stat st;
    int dirfd = -1;
    (void)err;
    if (file_forgetful(config)) {
        report->add(report->ctx, CDCD_CHECK_OK, "sink.file",
                    "standard output: nothing is remembered over restarts", NULL);
        return CDCD_OK;
    }
    if (stat(c->path, &st) != 0 && errno == ENOENT) {
        report->add(report->ctx, CDCD_CHECK_OK, "sink.file path",
                    "does not exist yet: the folder will be made", NULL);
        return CDCD_OK;
    }
    struct cdcd_error why = {0};
    if (open_folder(c->path, false, &dirfd, &why) != CDCD_OK) {
        report->add(report->ctx, CDCD_CHECK_FAIL, "sink.file path", why.text, NULL);
        return CDCD_OK;
    }
    if (faccessat(dirfd, ".", W_OK | X_OK, AT_EACCESS) != 0) {
        file_errno(&why, errno, "write to", c->path, "");
        report->add(report->ctx, CDCD_CHECK_FAIL, "sink.file path", why.text, NULL);
    } else {
        report->add(report->ctx, CDCD_CHECK_OK, "sink.file path", c->path, NULL);
    }
    check_space(dirfd, report);
    check_record(c->path, env, dirfd, report);
    close(dirfd);
    return CDCD_OK;
}

static const struct cdcd_sink_ops file_sink = {
    .options = file_options,
    .config_size = sizeof(struct file_config),
    .open = file_open,
    .close = file_close,
    .check = file_check,
    .load = file_load,
    .prepare = file_prepare,
    .write = file_write,
    .poll = file_poll,
    .forgetful = file_forgetful,
};

extern const struct cdcd_plugin CDCD_PLUGIN_SYMBOL(file);
CDCD_EXPORT const struct cdcd_plugin CDCD_PLUGIN_SYMBOL(file) = {
    .abi = CDCD_PLUGIN_ABI,
    .size = sizeof(struct cdcd_plugin),
    .name = "file",
    .version = CDCD_VERSION,
    .doc = "JSON lines on standard output or in a folder.",
    .sink = &file_sink,
};
