/*
 * The record is an append-only log beside the data files, `.cdcd-PIPELINE.state`. Each commit
 * appends one frame and syncs it; only lengths that changed are in it, so a commit costs the
 * same with one topic and with thousands.
 *
 *   frame:    "cdcd1 CRC LENGTH\n" payload "\n"      CRC-32C of the payload in 8 hex digits
 *   payload:  lines "file LENGTH NAME\n", the source's notes, each "note KEYLENGTH LENGTH\n" with
 *             the bytes of key and value and "\n", or "forget KEYLENGTH\n" with the key and "\n",
 *             then at most once "state LENGTH\n" and the state's bytes
 *
 * A frame that is cut off at the end is a commit that never happened. Anything else that does
 * not read is damage, and damage is never repaired by guessing. Now and then the log is replaced
 * by one frame that says everything: temporary file, fsync, rename, fsync of the folder.
 */
#include "file.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#define HEADER_MAX 64

static uint32_t crc32c(const char *p, size_t n)
{
    static uint32_t table[256];
    if (!table[1]) {
        for (uint32_t i = 0; i < 256; i++) {
            uint32_t c = i;
            for (int k = 0; k < 8; k++)
                c = c & 1 ? c >> 1 ^ 0x82f63b78u : c >> 1;
            table[i] = c;
        }
    }
    uint32_t crc = ~0u;
    for (size_t i = 0; i < n; i++)
        crc = table[(crc ^ (uint8_t)p[i]) & 255] ^ crc >> 8;
    return ~crc;
}

void file_record_init(struct file_record *r, int dirfd, const char *path, const char *pipeline,
                      bool sync)
{
    *r = (struct file_record){
        .dirfd = dirfd, .path = path, .pipeline = pipeline, .fd = -1, .sync = sync};
    r->name = cdcd_xasprintf(".cdcd-%s.state", pipeline);
    cdcd_buf_init(&r->frame, 0);
}

void file_record_free(struct file_record *r)
{
    if (r->fd >= 0)
        close(r->fd);
    free(r->name);
    cdcd_buf_free(&r->frame);
    *r = (struct file_record){.fd = -1, .dirfd = -1};
}

/* Decimal digits up to `stop`; false when there is anything else. */
static bool read_number(const char **p, const char *end, char stop, uint64_t *out)
{
    uint64_t v = 0;
    const char *s = *p;
    for (; s < end && *s >= '0' && *s <= '9'; s++) {
        if (v > (INT64_MAX - 9) / 10)
            return false;
        v = v * 10 + (uint64_t)(*s - '0');
    }
    if (s == *p || s == end || *s != stop)
        return false;
    *p = s + 1;
    *out = v;
    return true;
}

static bool starts(const char *p, const char *end, const char *with)
{
    size_t n = strlen(with);
    return (size_t)(end - p) >= n && memcmp(p, with, n) == 0;
}

static bool read_file_line(const char **p, const char *end, const struct file_record_reader *to)
{
    uint64_t length;
    *p += strlen("file ");
    if (!read_number(p, end, ' ', &length))
        return false;
    const char *nl = memchr(*p, '\n', (size_t)(end - *p));
    if (!nl || nl == *p)
        return false;
    char *name = cdcd_xstrndup(*p, (size_t)(nl - *p));
    to->file(to->ctx, name, (off_t)length);
    free(name);
    *p = nl + 1;
    return true;
}

/* n bytes and a newline. */
static bool read_bytes(const char **p, const char *end, uint64_t n, struct cdcd_slice *out)
{
    if (n >= (uint64_t)(end - *p) || (*p)[n] != '\n')
        return false;
    *out = (struct cdcd_slice){*p, (size_t)n};
    *p += n + 1;
    return true;
}

static bool read_note(const char **p, const char *end, const struct file_record_reader *to)
{
    uint64_t nkey, nvalue;
    struct cdcd_slice both;
    *p += strlen("note ");
    if (!read_number(p, end, ' ', &nkey) || !read_number(p, end, '\n', &nvalue) || !nkey ||
        nkey > (uint64_t)(end - *p) || nvalue > (uint64_t)(end - *p) ||
        !read_bytes(p, end, nkey + nvalue, &both))
        return false;
    to->note(to->ctx, (struct cdcd_slice){both.ptr, (size_t)nkey},
             (struct cdcd_slice){both.ptr + nkey, (size_t)nvalue});
    return true;
}

static bool read_forget(const char **p, const char *end, const struct file_record_reader *to)
{
    uint64_t nkey;
    struct cdcd_slice key;
    *p += strlen("forget ");
    if (!read_number(p, end, '\n', &nkey) || !nkey || !read_bytes(p, end, nkey, &key))
        return false;
    to->note(to->ctx, key, (struct cdcd_slice){NULL, 0});
    return true;
}

static bool read_payload(const char *p, const char *end, const struct file_record_reader *to)
{
    while (p < end) {
        uint64_t length;
        if (starts(p, end, "file ")) {
            if (!read_file_line(&p, end, to))
                return false;
        } else if (starts(p, end, "note ")) {
            if (!read_note(&p, end, to))
                return false;
        } else if (starts(p, end, "forget ")) {
            if (!read_forget(&p, end, to))
                return false;
        } else if (starts(p, end, "state ")) {
            p += strlen("state ");
            if (!read_number(&p, end, '\n', &length) || length != (uint64_t)(end - p))
                return false;
            to->state(to->ctx, (struct cdcd_slice){p, (size_t)length});
            p = end;
        } else {
            return false;
        }
    }
    return true;
}

/* The payload of the frame at p, and where the next one begins; NULL: no whole frame here. */
static const char *read_frame(const char *p, const char *end, struct cdcd_slice *payload)
{
    char *stop = NULL;
    uint64_t length;
    if (!starts(p, end, "cdcd1 ") || end - p < 16 || p[14] != ' ')
        return NULL;
    char hex[9] = {0};
    memcpy(hex, p + 6, 8);
    uint32_t crc = (uint32_t)strtoul(hex, &stop, 16);
    if (*stop)
        return NULL;
    p += 15;
    if (!read_number(&p, end, '\n', &length) || length >= (uint64_t)(end - p) ||
        p[length] != '\n' || crc32c(p, (size_t)length) != crc)
        return NULL;
    *payload = (struct cdcd_slice){p, (size_t)length};
    return p + length + 1;
}

/* True when a whole frame stands anywhere in there: then what is before it is damage. */
static bool frame_follows(const char *p, const char *end)
{
    struct cdcd_slice payload;
    for (; p < end; p++) {
        p = memchr(p, 'c', (size_t)(end - p));
        if (!p)
            return false;
        if (read_frame(p, end, &payload))
            return true;
    }
    return false;
}

static enum cdcd_rc damaged(const struct file_record *r, size_t at, struct cdcd_error *err)
{
    return cdcd_error_set(err, CDCD_ERR_LOSS,
                          "%s/%s, the record of pipeline %s, is damaged at byte %zu; put back a "
                          "copy of the whole folder, or empty the folder (data files and this "
                          "file) to begin with a new snapshot",
                          r->path, r->name, r->pipeline, at);
}

static enum cdcd_rc read_whole(struct file_record *r, struct cdcd_buf *out, struct cdcd_error *err)
{
    struct stat st;
    if (fstat(r->fd, &st) != 0)
        return file_errno(err, errno, "read", r->path, r->name);
    char *to = cdcd_buf_reserve(out, (size_t)st.st_size);
    if (!to)
        return damaged(r, 0, err);
    while (out->len < (size_t)st.st_size) {
        ssize_t n = pread(r->fd, out->ptr + out->len, (size_t)st.st_size - out->len,
                          (off_t)out->len);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return file_errno(err, errno, "read", r->path, r->name);
        if (n == 0)
            break;
        out->len += (size_t)n;
    }
    return CDCD_OK;
}

static enum cdcd_rc parse(struct file_record *r, const struct cdcd_buf *text,
                          const struct file_record_reader *reader, struct cdcd_error *err)
{
    const char *start = text->ptr, *p = start, *end = start + text->len;
    while (p < end) {
        struct cdcd_slice payload;
        const char *next = read_frame(p, end, &payload);
        if (!next) {
            if (frame_follows(p + 1, end))
                return damaged(r, (size_t)(p - start), err);
            break;
        }
        if (!read_payload(payload.ptr, payload.ptr + payload.len, reader))
            return damaged(r, (size_t)(p - start), err);
        p = next;
    }
    r->size = p - start;
    return CDCD_OK;
}

enum cdcd_rc file_record_load(struct file_record *r, const struct file_record_reader *reader,
                              bool repair, struct cdcd_error *err)
{
    if (r->fd >= 0)
        close(r->fd);
    r->size = 0;
    r->fd = openat(r->dirfd, r->name, repair ? O_RDWR | O_CLOEXEC : O_RDONLY | O_CLOEXEC);
    if (r->fd < 0)
        return errno == ENOENT ? CDCD_OK : file_errno(err, errno, "open", r->path, r->name);
    struct cdcd_buf text;
    cdcd_buf_init(&text, 0);
    enum cdcd_rc rc = read_whole(r, &text, err);
    if (rc == CDCD_OK)
        rc = parse(r, &text, reader, err);
    if (rc == CDCD_OK && repair && r->size < (off_t)text.len) {
        cdcd_warn("file", "%s/%s: the last commit was cut off and is undone", r->path, r->name);
        if (ftruncate(r->fd, r->size) != 0)
            rc = file_errno(err, errno, "truncate", r->path, r->name);
    }
    cdcd_buf_free(&text);
    return rc;
}

/* Room for the header is left free; seal() puts it right before the payload. */
void file_record_begin(struct file_record *r)
{
    cdcd_buf_clear(&r->frame);
    char *room = cdcd_buf_reserve(&r->frame, HEADER_MAX);
    memset(room, 0, HEADER_MAX);
    r->frame.len = HEADER_MAX;
}

void file_record_add_file(struct file_record *r, const char *name, off_t length)
{
    cdcd_buf_addf(&r->frame, "file %" PRId64 " %s\n", (int64_t)length, name);
}

void file_record_add_note(struct file_record *r, struct cdcd_slice key, struct cdcd_slice value)
{
    if (value.ptr)
        cdcd_buf_addf(&r->frame, "note %zu %zu\n", key.len, value.len);
    else
        cdcd_buf_addf(&r->frame, "forget %zu\n", key.len);
    cdcd_buf_add(&r->frame, key.ptr, key.len);
    cdcd_buf_add(&r->frame, value.ptr ? value.ptr : "", value.len);
    cdcd_buf_add(&r->frame, "\n", 1);
}

void file_record_add_state(struct file_record *r, struct cdcd_slice state)
{
    cdcd_buf_addf(&r->frame, "state %zu\n", state.len);
    cdcd_buf_add(&r->frame, state.ptr, state.len);
}

static struct cdcd_slice seal(struct file_record *r)
{
    size_t length = r->frame.len - HEADER_MAX;
    char header[HEADER_MAX];
    int n = snprintf(header, sizeof header, "cdcd1 %08" PRIx32 " %zu\n",
                     crc32c(r->frame.ptr + HEADER_MAX, length), length);
    cdcd_buf_add(&r->frame, "\n", 1);
    char *start = r->frame.ptr + HEADER_MAX - n;
    memcpy(start, header, (size_t)n);
    return (struct cdcd_slice){start, r->frame.len - (size_t)(HEADER_MAX - n)};
}

static enum cdcd_rc sync_folder(struct file_record *r, struct cdcd_error *err)
{
    if (r->sync && fsync(r->dirfd) != 0)
        return file_errno(err, errno, "sync", r->path, "");
    return CDCD_OK;
}

static enum cdcd_rc write_frame(struct file_record *r, int fd, struct cdcd_slice bytes,
                                const char *name, struct cdcd_error *err)
{
    size_t done = 0;
    int no = file_write_all(fd, bytes.ptr, bytes.len, &done);
    if (no == 0 && r->sync && fdatasync(fd) != 0)
        no = errno;
    return no ? file_errno(err, no, "write", r->path, name) : CDCD_OK;
}

enum cdcd_rc file_record_append(struct file_record *r, struct cdcd_error *err)
{
    if (r->fd < 0)
        return file_record_replace(r, err);
    struct cdcd_slice bytes = seal(r);
    if (lseek(r->fd, r->size, SEEK_SET) < 0)
        return file_errno(err, errno, "seek", r->path, r->name);
    enum cdcd_rc rc = write_frame(r, r->fd, bytes, r->name, err);
    if (rc == CDCD_OK)
        r->size += (off_t)bytes.len;
    return rc;
}

enum cdcd_rc file_record_replace(struct file_record *r, struct cdcd_error *err)
{
    struct cdcd_slice bytes = seal(r);
    char *temporary = cdcd_xasprintf("%s.new", r->name);
    int fd = openat(r->dirfd, temporary, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    enum cdcd_rc rc = CDCD_OK;
    if (fd < 0)
        rc = file_errno(err, errno, "create", r->path, temporary);
    if (rc == CDCD_OK)
        rc = write_frame(r, fd, bytes, temporary, err);
    if (rc == CDCD_OK && renameat(r->dirfd, temporary, r->dirfd, r->name) != 0)
        rc = file_errno(err, errno, "rename", r->path, temporary);
    if (rc == CDCD_OK) {
        if (r->fd >= 0)
            close(r->fd);
        r->fd = fd;
        r->size = (off_t)bytes.len;
        fd = -1;
        rc = sync_folder(r, err);
    }
    if (fd >= 0) {
        close(fd);
        unlinkat(r->dirfd, temporary, 0);
    }
    free(temporary);
    return rc;
}
