/*
 * payload: MySQL's compressed transactions, and the compressed part of MariaDB's events.
 *
 * Transaction_payload_event (MySQL's codecs/binary.cpp): fields of type, length, value, all
 * length-encoded; a 0 ends them, and the payload follows: one zstd frame of whole events, without
 * checksums.
 */
#include "decoder.h"

#include <stdlib.h>
#include <zlib.h>

#if __has_include(<zstd.h>)
#include <zstd.h>
#define HAVE_ZSTD 1
#endif

enum { FIELD_END = 0, FIELD_SIZE = 1, FIELD_ALGORITHM = 2, FIELD_INFLATED = 3 };
enum { ALGORITHM_ZSTD = 0, ALGORITHM_NONE = 255 };

struct payload_head {
    uint64_t size, algorithm, inflated;
    struct cdcd_slice bytes;
};

static bool read_head(const struct my_event *e, struct payload_head *out)
{
    struct cdcd_cursor c = cdcd_cur(e->body.ptr, e->body.len);

    *out = (struct payload_head){.size = UINT64_MAX, .algorithm = ALGORITHM_NONE};
    for (;;) {
        uint64_t type = my_cur_lenenc(&c);
        if (c.bad || type == FIELD_END)
            break;
        struct cdcd_slice value = my_cur_lenenc_bytes(&c);
        struct cdcd_cursor v = cdcd_cur(value.ptr, value.len);
        if (type == FIELD_SIZE)
            out->size = my_cur_lenenc(&v);
        else if (type == FIELD_ALGORITHM)
            out->algorithm = my_cur_lenenc(&v);
        else if (type == FIELD_INFLATED)
            out->inflated = my_cur_lenenc(&v);
        c.bad |= v.bad;
    }
    out->bytes = cdcd_cur_bytes(&c, cdcd_cur_left(&c));
    return !c.bad && (out->size == UINT64_MAX || out->size == out->bytes.len);
}

#ifdef HAVE_ZSTD

struct my_payload {
    struct payload_head head;
    uint8_t type; /* of the event, for messages */
    uint32_t end_pos;
    size_t max;
    ZSTD_DStream *zstd;
    ZSTD_inBuffer in;
    size_t need;         /* what zstd still wants; 0: the frame has ended */
    struct cdcd_buf buf; /* inflated and not given out */
    size_t given;        /* of buf: the last event */
    uint64_t inflated;   /* so far */
};

static enum cdcd_rc payload_bad(const struct my_payload *p, struct cdcd_error *err,
                                const char *reason)
{
    return cdcd_error_set(
        err, CDCD_ERR_FATAL,
        "the compressed transaction (binlog event of type %u, %zu bytes) that ends "
        "at position %u cannot be read: %s",
        p->type, p->head.bytes.len, p->end_pos, reason);
}

enum cdcd_rc my_payload_open(const struct my_event *e, size_t max, struct my_payload **out,
                             struct cdcd_error *err)
{
    struct payload_head head;

    *out = NULL;
    if (!read_head(e, &head))
        return my_event_bad(e, err, "its fields do not fit its length");
    if (head.algorithm != ALGORITHM_ZSTD && head.algorithm != ALGORITHM_NONE)
        return my_event_bad(e, err, "compression algorithm %llu is not known",
                            (unsigned long long)head.algorithm);
    struct my_payload *p = cdcd_xcalloc(1, sizeof *p);
    p->head = head;
    p->type = e->type;
    p->end_pos = e->end_pos;
    p->max = max;
    cdcd_buf_init(&p->buf, 0);
    p->in = (ZSTD_inBuffer){head.bytes.ptr, head.bytes.len, 0};
    p->need = 1;
    if (head.algorithm == ALGORITHM_ZSTD) {
        p->zstd = ZSTD_createDStream();
        if (!p->zstd)
            abort();
    }
    *out = p;
    return CDCD_OK;
}

static enum cdcd_rc inflate_some(struct my_payload *p, size_t want, struct cdcd_error *err)
{
    size_t room = want < ZSTD_DStreamOutSize() ? ZSTD_DStreamOutSize() : want;
    ZSTD_outBuffer out = {cdcd_buf_reserve(&p->buf, room), room, 0};
    size_t before = p->in.pos;

    if (!out.dst)
        return payload_bad(p, err, "an event in it is too large");
    if (!p->zstd) {
        out.pos = p->in.size - p->in.pos < room ? p->in.size - p->in.pos : room;
        memcpy(out.dst, (const char *)p->in.src + p->in.pos, out.pos);
        p->in.pos += out.pos;
        p->need = p->in.size - p->in.pos;
    } else {
        p->need = ZSTD_decompressStream(p->zstd, &out, &p->in);
        if (ZSTD_isError(p->need))
            return payload_bad(p, err, ZSTD_getErrorName(p->need));
    }
    p->buf.len += out.pos;
    p->inflated += out.pos;
    if (out.pos == 0 && p->in.pos == before && p->need)
        return payload_bad(p, err, "it ends too early");
    return CDCD_OK;
}

/* Until n bytes are there, or all. */
static enum cdcd_rc inflate_to(struct my_payload *p, size_t n, struct cdcd_error *err)
{
    enum cdcd_rc rc = CDCD_OK;

    while (rc == CDCD_OK && p->buf.len < n && p->need)
        rc = inflate_some(p, n - p->buf.len, err);
    return rc;
}

enum cdcd_rc my_payload_next(struct my_payload *p, struct cdcd_slice *event, struct cdcd_error *err)
{
    if (p->given) {
        memmove(p->buf.ptr, p->buf.ptr + p->given, p->buf.len - p->given);
        p->buf.len -= p->given;
    }
    p->given = 0;
    enum cdcd_rc rc = inflate_to(p, MY_HEADER_LEN, err);
    if (rc != CDCD_OK)
        return rc;
    if (p->buf.len == 0) {
        if (p->head.inflated && p->inflated != p->head.inflated)
            return payload_bad(p, err, "its inflated length is not what it says");
        return CDCD_END;
    }
    struct cdcd_cursor c = cdcd_cur(p->buf.ptr, p->buf.len);
    cdcd_cur_take(&c, 9);
    uint32_t size = my_cur_u32(&c);
    if (c.bad || p->buf.len < MY_HEADER_LEN || size < MY_HEADER_LEN)
        return payload_bad(p, err, "an event in it is shorter than its header");
    if (size > p->max)
        return payload_bad(p, err, "an event in it is too large");
    rc = inflate_to(p, size, err);
    if (rc != CDCD_OK)
        return rc;
    if (p->buf.len < size)
        return payload_bad(p, err, "it ends within an event");
    p->given = size;
    *event = (struct cdcd_slice){p->buf.ptr, size};
    return CDCD_OK;
}

void my_payload_close(struct my_payload *p)
{
    if (!p)
        return;
    ZSTD_freeDStream(p->zstd);
    cdcd_buf_free(&p->buf);
    free(p);
}

#else

enum cdcd_rc my_payload_open(const struct my_event *e, size_t max, struct my_payload **out,
                             struct cdcd_error *err)
{
    struct payload_head head;

    (void)max;
    *out = NULL;
    if (!read_head(e, &head))
        return my_event_bad(e, err, "its fields do not fit its length");
    return my_event_bad(e, err,
                        "it is a compressed transaction and this cdcd was built without zstd; set "
                        "binlog_transaction_compression=OFF on the server, or build with zstd");
}

enum cdcd_rc my_payload_next(struct my_payload *p, struct cdcd_slice *event, struct cdcd_error *err)
{
    (void)p;
    (void)event;
    return cdcd_error_set(err, CDCD_ERR_FATAL, "built without zstd");
}

void my_payload_close(struct my_payload *p)
{
    (void)p;
}

#endif

/* MariaDB's binlog_buf_compress() (log_event.cc): a byte with the top bit set, the algorithm (0
 * zlib) in the three below, and in the lowest three the number of bytes of the length; the length,
 * most significant byte first; a zlib stream. */
enum cdcd_rc my_inflate(struct my_decoder *d, const struct my_event *e, struct cdcd_cursor *c,
                        struct cdcd_slice *out, struct cdcd_error *err)
{
    enum { MAX_RATIO = 1100 }; /* deflate does not reach 1032 */
    uint8_t head = cdcd_cur_u8(c), width = head & 7;
    uint64_t len = 0;

    if (c->bad || !(head & 0x80) || head & 0x70 || width == 0 || width > 4)
        return my_event_bad(e, err, "the head of its compressed part is not known");
    for (unsigned i = 0; i < width; i++)
        len = len << 8 | cdcd_cur_u8(c);
    size_t n = cdcd_cur_left(c);
    if (c->bad || len > (uint64_t)n * MAX_RATIO)
        return my_event_bad(e, err, "the length of its compressed part is wrong");
    cdcd_buf_clear(&d->scratch);
    char *p = cdcd_buf_reserve(&d->scratch, (size_t)len);
    if (!p)
        return my_event_bad(e, err, "its compressed part is too large");
    uLongf got = (uLongf)len;
    if (uncompress((Bytef *)p, &got, c->pos, (uLong)n) != Z_OK || got != len)
        return my_event_bad(e, err, "its compressed part is damaged");
    d->scratch.len = (size_t)len;
    *out = cdcd_buf_slice(&d->scratch);
    return CDCD_OK;
}
