/*
 * position.c: the resume position as JSON text. The core stores it and never looks inside, so
 * the reader is strict about what it knows, indifferent to order, and lets unknown keys pass.
 */
#include "pg.h"

#include <inttypes.h>
#include <stdlib.h>

struct scan {
    const char *p, *end;
};

static void skip_blank(struct scan *s)
{
    while (s->p < s->end && (*s->p == ' ' || *s->p == '\n' || *s->p == '\t' || *s->p == '\r'))
        s->p++;
}

static bool take(struct scan *s, char c)
{
    skip_blank(s);
    if (s->p >= s->end || *s->p != c)
        return false;
    s->p++;
    return true;
}

/* A string without escapes: nothing that is written here needs any. */
static bool take_string(struct scan *s, struct cdcd_slice *out)
{
    if (!take(s, '"'))
        return false;
    const char *start = s->p;
    while (s->p < s->end && *s->p != '"' && *s->p != '\\')
        s->p++;
    if (s->p >= s->end || *s->p != '"')
        return false;
    *out = (struct cdcd_slice){start, (size_t)(s->p - start)};
    s->p++;
    return true;
}

static bool take_number(struct scan *s, uint64_t *out)
{
    uint64_t v = 0;
    skip_blank(s);
    const char *start = s->p;
    for (; s->p < s->end && *s->p >= '0' && *s->p <= '9'; s->p++) {
        unsigned d = (unsigned)(*s->p - '0');
        if (v > (UINT64_MAX - d) / 10)
            return false;
        v = v * 10 + d;
    }
    *out = v;
    return s->p > start;
}

static bool is(struct cdcd_slice s, const char *name)
{
    return cdcd_slice_eq(s, cdcd_slice_str(name));
}

static bool take_member(struct scan *s, struct pg_position *out)
{
    struct cdcd_slice key, value;
    if (!take_string(s, &key) || !take(s, ':'))
        return false;
    if (is(key, "ord"))
        return take_number(s, &out->ord);
    pg_lsn *lsn = is(key, "lsn")    ? &out->lsn
                  : is(key, "done") ? &out->done
                  : is(key, "tx")   ? &out->tx
                  : is(key, "last") ? &out->last
                                    : NULL;
    skip_blank(s);
    if (!lsn && s->p < s->end && *s->p != '"') {
        uint64_t ignored;
        return take_number(s, &ignored);
    }
    if (!take_string(s, &value))
        return false;
    if (lsn)
        return pg_lsn_parse(value.ptr, value.len, lsn);
    if (is(key, "sys")) {
        if (value.len >= sizeof out->sys)
            return false;
        memcpy(out->sys, value.ptr, value.len);
        out->sys[value.len] = 0;
    }
    return true;
}

bool pg_position_parse(struct cdcd_slice json, struct pg_position *out)
{
    struct scan s = {json.ptr, json.ptr + json.len};
    memset(out, 0, sizeof *out);
    if (!json.ptr || !take(&s, '{'))
        return false;
    do {
        if (!take_member(&s, out))
            return false;
    } while (take(&s, ','));
    if (!take(&s, '}'))
        return false;
    skip_blank(&s);
    if (s.p != s.end || out->lsn == 0)
        return false;
    if (out->done < out->lsn)
        out->done = out->lsn;
    return out->tx == 0 || out->tx >= out->done;
}

static void add_lsn(struct cdcd_buf *out, const char *name, pg_lsn lsn)
{
    cdcd_buf_addf(out, "\"%s\":\"" PG_LSN_FMT "\"", name, PG_LSN_ARGS(lsn));
}

void pg_position_write(const struct pg_position *p, struct cdcd_buf *out)
{
    cdcd_buf_add(out, "{", 1);
    add_lsn(out, "lsn", p->lsn);
    cdcd_buf_add(out, ",", 1);
    add_lsn(out, "done", p->done > p->lsn ? p->done : p->lsn);
    if (p->tx) {
        cdcd_buf_add(out, ",", 1);
        add_lsn(out, "tx", p->tx);
        cdcd_buf_addf(out, ",\"ord\":%" PRIu64, p->ord);
    }
    if (p->sys[0])
        cdcd_buf_addf(out, ",\"sys\":\"%s\"", p->sys);
    if (p->last) {
        cdcd_buf_add(out, ",", 1);
        add_lsn(out, "last", p->last);
    }
    cdcd_buf_add(out, "}", 1);
}
