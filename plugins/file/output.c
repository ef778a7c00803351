/*
 * The files of a folder: one a topic, opened when needed, few of them open at a time. Lines
 * gather in a buffer a file, so that thousands of topics in turn still make large writes.
 */
#include "file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

/* Written bytes after which the kernel is told to begin writing out: then the sync at the
 * commit finds little left to do. */
#define START_BYTES (8 << 20)

enum cdcd_rc file_errno(struct cdcd_error *err, int no, const char *doing, const char *folder,
                        const char *name)
{
    const char *slash = *name ? "/" : "";
    switch (no) {
    case ENOSPC:
    case EDQUOT:
    case EFBIG:
        return cdcd_error_set(err, CDCD_ERR_RETRY,
                              "cannot %s %s%s%s: %s; make room there (df, quota, ulimit -f): "
                              "nothing is lost, and the "
                              "pipeline goes on from the last commit",
                              doing, folder, slash, name, strerror(no));
    case EACCES:
    case EPERM:
    case EROFS:
    case ENOTDIR:
        return cdcd_error_set(err, CDCD_ERR_CONFIG,
                              "sink.file.path: cannot %s %s%s%s: %s; give the user that runs cdcd "
                              "the right to write there, or choose another folder",
                              doing, folder, slash, name, strerror(no));
    case EPIPE:
        return cdcd_error_set(err, CDCD_ERR_FATAL, "nobody reads %s%s%s any more", folder, slash,
                              name);
    case EMFILE:
    case ENFILE:
        return cdcd_error_set(err, CDCD_ERR_RETRY,
                              "cannot %s %s%s%s: %s; raise the limit of open files (ulimit -n)",
                              doing, folder, slash, name, strerror(no));
    default:
        return cdcd_error_set(err, CDCD_ERR_FATAL, "cannot %s %s%s%s: %s", doing, folder, slash,
                              name, strerror(no));
    }
}

int file_write_all(int fd, const char *p, size_t n, size_t *done)
{
    *done = 0;
    while (*done < n) {
        ssize_t k = write(fd, p + *done, n - *done);
        if (k < 0 && errno == EINTR)
            continue;
        if (k < 0)
            return errno;
        *done += (size_t)k;
    }
    return 0;
}

/* Letters, digits, '.', '_' and '-' stay; other bytes, and a dot in front, become %XX. A name
 * that no file system takes is cut and told apart by a hash. */
char *file_output_name(const char *topic, size_t len)
{
    struct cdcd_buf b;
    uint64_t hash = UINT64_C(0xcbf29ce484222325);
    cdcd_buf_init(&b, 0);
    for (size_t i = 0; i < len; i++) {
        unsigned char c = (unsigned char)topic[i];
        bool keep = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                    c == '_' || c == '-' || (c == '.' && i > 0);
        hash = (hash ^ c) * UINT64_C(0x100000001b3);
        if (keep)
            cdcd_buf_add(&b, &topic[i], 1);
        else
            cdcd_buf_addf(&b, "%%%02X", c);
    }
    if (b.len > 240) {
        b.len = 220;
        cdcd_buf_addf(&b, "~%016llx", (unsigned long long)hash);
    }
    cdcd_buf_adds(&b, ".jsonl");
    char *name = cdcd_xstrdup(cdcd_buf_cstr(&b));
    cdcd_buf_free(&b);
    return name;
}

struct file_output *file_outputs_find(struct file_outputs *o, const char *name)
{
    struct file_output *f = o->all;
    while (f && strcmp(f->name, name) != 0)
        f = f->next;
    return f;
}

struct file_output *file_outputs_add(struct file_outputs *o, const char *name)
{
    struct file_output *f = cdcd_xcalloc(1, sizeof *f);
    f->name = cdcd_xstrdup(name);
    f->fd = -1;
    cdcd_buf_init(&f->buf, (size_t)1 << 40);
    f->next = o->all;
    o->all = f;
    o->n++;
    return f;
}

/* ---- the list of open files ---- */

static void unlink_open(struct file_outputs *o, struct file_output *f)
{
    *(f->prev_open ? &f->prev_open->next_open : &o->first_open) = f->next_open;
    *(f->next_open ? &f->next_open->prev_open : &o->last_open) = f->prev_open;
    f->prev_open = f->next_open = NULL;
}

static void link_open(struct file_outputs *o, struct file_output *f)
{
    f->next_open = o->first_open;
    *(o->first_open ? &o->first_open->prev_open : &o->last_open) = f;
    o->first_open = f;
}

static void output_close(struct file_outputs *o, struct file_output *f)
{
    if (f->fd < 0)
        return;
    unlink_open(o, f);
    close(f->fd);
    f->fd = -1;
    o->nopen--;
}

static enum cdcd_rc changed_outside(const struct file_outputs *o, const struct file_output *f,
                                    off_t is, struct cdcd_error *err)
{
    return cdcd_error_set(err, CDCD_ERR_LOSS,
                          "%s/%s has %lld bytes but pipeline %s wrote %lld: another program "
                          "changed it; stop that program, put the file back, or empty the folder "
                          "(with %s/.cdcd-%s.state) to begin with a new snapshot",
                          o->path, f->name, (long long)is, o->pipeline, (long long)f->written,
                          o->path, o->pipeline);
}

static enum cdcd_rc output_open(struct file_outputs *o, struct file_output *f,
                                struct cdcd_error *err)
{
    struct stat st;
    if (f->fd >= 0) {
        if (o->first_open != f) {
            unlink_open(o, f);
            link_open(o, f);
        }
        return CDCD_OK;
    }
    if (o->nopen >= FILE_MAX_OPEN)
        output_close(o, o->last_open);
    int flags = O_WRONLY | O_APPEND | O_CLOEXEC;
    f->fd = openat(o->dirfd, f->name, flags);
    if (f->fd < 0 && errno == ENOENT && f->written == 0) {
        f->fd = openat(o->dirfd, f->name, flags | O_CREAT, 0644);
        o->created = true;
    }
    if (f->fd < 0)
        return file_errno(err, errno, "open", o->path, f->name);
    link_open(o, f);
    o->nopen++;
    if (fstat(f->fd, &st) != 0)
        return file_errno(err, errno, "stat", o->path, f->name);
    return st.st_size == f->written ? CDCD_OK : changed_outside(o, f, st.st_size, err);
}

/* ---- writing ---- */

static void buffer_drop(struct file_outputs *o, struct file_output *f)
{
    o->buffered -= f->buf.len;
    cdcd_buf_clear(&f->buf);
    if (o->allocated > FILE_BUFFER_BYTES || f->buf.cap > 4 * FILE_WRITE_BYTES) {
        o->allocated -= f->buf.cap;
        cdcd_buf_free(&f->buf);
        cdcd_buf_init(&f->buf, (size_t)1 << 40);
    }
}

static enum cdcd_rc output_write(struct file_outputs *o, struct file_output *f,
                                 struct cdcd_error *err)
{
    size_t done;
    if (!f->buf.len)
        return CDCD_OK;
    if (output_open(o, f, err) != CDCD_OK)
        return CDCD_ERROR;
    int no = file_write_all(f->fd, f->buf.ptr, f->buf.len, &done);
    f->written += (off_t)done;
    if (no)
        return file_errno(err, no, "write", o->path, f->name);
    buffer_drop(o, f);
    if (o->sync && f->written - f->started >= START_BYTES) {
        sync_file_range(f->fd, f->started, f->written - f->started, SYNC_FILE_RANGE_WRITE);
        f->started = f->written;
    }
    return CDCD_OK;
}

static enum cdcd_rc write_buffers(struct file_outputs *o, struct cdcd_error *err)
{
    for (struct file_output *f = o->dirty; f; f = f->next_dirty)
        if (output_write(o, f, err) != CDCD_OK)
            return CDCD_ERROR;
    return CDCD_OK;
}

enum cdcd_rc file_output_append(struct file_outputs *o, struct file_output *f,
                                const struct cdcd_record *r, struct cdcd_error *err)
{
    size_t len = f->buf.len, cap = f->buf.cap;
    if (!f->dirty) {
        f->dirty = true;
        f->next_dirty = o->dirty;
        o->dirty = f;
    }
    bool fits = file_line_append(&f->buf, r);
    o->allocated += f->buf.cap - cap;
    if (!fits)
        return cdcd_error_set(err, CDCD_ERR_DATA, "topic %.*s: a record of %zu bytes is too large",
                              (int)r->topic->name.len, r->topic->name.ptr,
                              r->key.len + r->value.len);
    o->buffered += f->buf.len - len;
    o->unsynced += f->buf.len - len;
    if (f->buf.len >= FILE_WRITE_BYTES)
        return output_write(o, f, err);
    return o->buffered >= FILE_BUFFER_BYTES ? write_buffers(o, err) : CDCD_OK;
}

/* ---- committing ---- */

static enum cdcd_rc output_sync(struct file_outputs *o, struct file_output *f,
                                struct cdcd_error *err)
{
    struct stat st;
    if (output_open(o, f, err) != CDCD_OK)
        return CDCD_ERROR;
    if (fdatasync(f->fd) != 0)
        return file_errno(err, errno, "sync", o->path, f->name);
    if (fstat(f->fd, &st) != 0)
        return file_errno(err, errno, "stat", o->path, f->name);
    return st.st_size == f->written ? CDCD_OK : changed_outside(o, f, st.st_size, err);
}

enum cdcd_rc file_outputs_sync(struct file_outputs *o, struct cdcd_error *err)
{
    if (write_buffers(o, err) != CDCD_OK)
        return CDCD_ERROR;
    if (!o->sync)
        return CDCD_OK;
    /* All writing out begins before the first wait, so that many files cost little more than
     * one. */
    if (o->dirty && o->dirty->next_dirty)
        for (struct file_output *f = o->dirty; f; f = f->next_dirty)
            if (f->fd >= 0)
                sync_file_range(f->fd, f->started, f->written - f->started, SYNC_FILE_RANGE_WRITE);
    for (struct file_output *f = o->dirty; f; f = f->next_dirty)
        if (output_sync(o, f, err) != CDCD_OK)
            return CDCD_ERROR;
    if (o->created && fsync(o->dirfd) != 0)
        return file_errno(err, errno, "sync", o->path, "");
    o->created = false;
    return CDCD_OK;
}

void file_outputs_committed(struct file_outputs *o)
{
    while (o->dirty) {
        struct file_output *f = o->dirty;
        o->dirty = f->next_dirty;
        f->next_dirty = NULL;
        f->dirty = false;
        f->committed = f->started = f->written;
    }
    o->unsynced = 0;
}

/* ---- sessions ---- */

void file_outputs_reset(struct file_outputs *o)
{
    for (struct file_output *f = o->all; f; f = f->next) {
        output_close(o, f);
        o->allocated -= f->buf.cap;
        cdcd_buf_free(&f->buf);
        cdcd_buf_init(&f->buf, (size_t)1 << 40);
        f->written = f->committed = f->started = 0;
        f->dirty = f->recorded = f->claimed = false;
        f->next_dirty = NULL;
    }
    o->dirty = NULL;
    o->buffered = o->unsynced = 0;
    o->created = false;
}

void file_outputs_free(struct file_outputs *o)
{
    file_outputs_reset(o);
    while (o->all) {
        struct file_output *f = o->all;
        o->all = f->next;
        cdcd_buf_free(&f->buf);
        free(f->name);
        free(f);
    }
    o->n = 0;
}

static enum cdcd_rc too_short(const struct file_outputs *o, const struct file_output *f, off_t is,
                              struct cdcd_error *err)
{
    return cdcd_error_set(err, CDCD_ERR_LOSS,
                          "%s/%s has %lld bytes, but the record of pipeline %s says %lld: data "
                          "were taken away; put the file back, or empty the folder (with "
                          "%s/.cdcd-%s.state) to begin with a new snapshot",
                          o->path, f->name, (long long)is, o->pipeline, (long long)f->committed,
                          o->path, o->pipeline);
}

/* Length of the file, or -1 when there is none. */
static enum cdcd_rc output_length(const struct file_outputs *o, const struct file_output *f,
                                  off_t *length, struct cdcd_error *err)
{
    struct stat st;
    *length = -1;
    if (fstatat(o->dirfd, f->name, &st, 0) == 0)
        *length = st.st_size;
    else if (errno != ENOENT)
        return file_errno(err, errno, "stat", o->path, f->name);
    return CDCD_OK;
}

enum cdcd_rc file_output_claim(const struct file_outputs *o, const struct file_output *f,
                               struct cdcd_error *err)
{
    off_t length;
    if (output_length(o, f, &length, err) != CDCD_OK)
        return CDCD_ERROR;
    if (length <= 0)
        return CDCD_OK;
    return cdcd_error_set(err, CDCD_ERR_CONFIG,
                          "sink.file.path: %s/%s is there already and was not written by pipeline "
                          "%s; move it away, or choose another folder",
                          o->path, f->name, o->pipeline);
}

static enum cdcd_rc output_truncate(const struct file_outputs *o, const struct file_output *f,
                                    struct cdcd_error *err)
{
    int no = 0;
    int fd = openat(o->dirfd, f->name, O_WRONLY | O_CLOEXEC);
    if (fd < 0)
        return file_errno(err, errno, "open", o->path, f->name);
    if (ftruncate(fd, f->committed) != 0 || (o->sync && fdatasync(fd) != 0))
        no = errno;
    close(fd);
    return no ? file_errno(err, no, "truncate", o->path, f->name) : CDCD_OK;
}

enum cdcd_rc file_outputs_truncate(struct file_outputs *o, struct cdcd_error *err)
{
    off_t length;
    /* All are looked at before the first is changed. */
    for (struct file_output *f = o->all; f; f = f->next) {
        if (!f->recorded)
            continue;
        if (output_length(o, f, &length, err) != CDCD_OK)
            return CDCD_ERROR;
        if (length < f->committed && f->committed > 0)
            return too_short(o, f, length < 0 ? 0 : length, err);
    }
    for (struct file_output *f = o->all; f; f = f->next) {
        if (!f->recorded)
            continue;
        if (output_length(o, f, &length, err) != CDCD_OK)
            return CDCD_ERROR;
        if (length > f->committed && output_truncate(o, f, err) != CDCD_OK)
            return CDCD_ERROR;
        f->written = f->started = f->committed;
    }
    return CDCD_OK;
}
