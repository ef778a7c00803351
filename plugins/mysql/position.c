/*
 * position.c: the resume position as JSON text. The core stores it and never looks inside, so
 * the reader is strict about what it knows, indifferent to order, and lets unknown keys pass.
 */
#include "my.h"

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

static int hex4(const char *p)
{
    int v = 0;
    for (int i = 0; i < 4; i++) {
        char c = p[i];
        int d = c >= '0' && c <= '9'   ? c - '0'
                : c >= 'a' && c <= 'f' ? c - 'a' + 10
                : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                       : -1;
        if (d < 0)
            return -1;
        v = v << 4 | d;
    }
    return v;
}

/* The character of an escape, or -1. Only ASCII is ever escaped here. */
static int take_escape(struct scan *s)
{
    if (s->p >= s->end)
        return -1;
    char c = *s->p++;
    if (c == '"' || c == '\\' || c == '/')
        return c;
    if (c != 'u' || s->end - s->p < 4)
        return -1;
    int v = hex4(s->p);
    s->p += 4;
    return v > 0 && v < 0x80 ? v : -1;
}

/* Owned by the caller; NULL: no string. */
static char *take_string(struct scan *s)
{
    if (!take(s, '"'))
        return NULL;
    char *out = cdcd_xmalloc((size_t)(s->end - s->p) + 1);
    size_t n = 0;
    while (s->p < s->end && *s->p != '"') {
        int c = (unsigned char)*s->p++;
        if (c == '\\')
            c = take_escape(s);
        if (c <= 0) {
            free(out);
            return NULL;
        }
        out[n++] = (char)c;
    }
    out[n] = 0;
    if (s->p >= s->end) {
        free(out);
        return NULL;
    }
    s->p++;
    return out;
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

/* Where the value of a key belongs; both NULL: a key of a later version. */
static void member(struct my_position *p, const char *key, char ***text, uint64_t **number)
{
    *text = strcmp(key, "server") == 0      ? &p->server
            : strcmp(key, "gtid") == 0      ? &p->gtid
            : strcmp(key, "file") == 0      ? &p->file
            : strcmp(key, "tx") == 0        ? &p->tx
            : strcmp(key, "done") == 0      ? &p->done
            : strcmp(key, "done_file") == 0 ? &p->done_file
                                            : NULL;
    *number = strcmp(key, "pos") == 0        ? &p->pos
              : strcmp(key, "seq") == 0      ? &p->seq
              : strcmp(key, "ord") == 0      ? &p->ord
              : strcmp(key, "done_pos") == 0 ? &p->done_pos
                                             : NULL;
}

static bool take_value(struct scan *s, const char *key, struct my_position *out, bool *flavored)
{
    char **text;
    uint64_t *number, ignored;
    member(out, key, &text, &number);
    bool flavor = strcmp(key, "flavor") == 0;
    skip_blank(s);
    bool quoted = s->p < s->end && *s->p == '"';
    if (number || (!text && !flavor && !quoted))
        return take_number(s, number ? number : &ignored);
    char *value = take_string(s);
    if (!value)
        return false;
    if (text) {
        free(*text);
        *text = value;
        return true;
    }
    bool ok = true;
    if (flavor) {
        out->flavor = strcmp(value, "mariadb") == 0 ? MY_MARIADB : MY_MYSQL;
        ok = *flavored = out->flavor == MY_MARIADB || strcmp(value, "mysql") == 0;
    }
    free(value);
    return ok;
}

static bool take_members(struct scan *s, struct my_position *out, bool *flavored)
{
    do {
        char *key = take_string(s);
        bool ok = key && take(s, ':') && take_value(s, key, out, flavored);
        free(key);
        if (!ok)
            return false;
    } while (take(s, ','));
    return true;
}

static bool gtid_valid(const char *text, enum my_flavor flavor)
{
    struct my_gtid_set *set = my_gtid_set_new(flavor);
    bool ok = my_gtid_set_parse(text, strlen(text), set);
    my_gtid_set_free(set);
    return ok;
}

static bool consistent(const struct my_position *p)
{
    bool somewhere = p->gtid[0] || (p->file[0] && p->pos >= 4);
    return somewhere && gtid_valid(p->gtid, p->flavor) &&
           (!p->done || gtid_valid(p->done, p->flavor));
}

bool my_position_parse(struct cdcd_slice json, struct my_position *out)
{
    memset(out, 0, sizeof *out);
    if (!json.ptr)
        return false;
    struct scan s = {json.ptr, json.ptr + json.len};
    bool flavored = false;
    bool ok = take(&s, '{') && take_members(&s, out, &flavored) && take(&s, '}');
    skip_blank(&s);
    char **texts[] = {&out->server, &out->gtid, &out->file, &out->tx};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        if (!*texts[i])
            *texts[i] = cdcd_xstrdup("");
    }
    if (out->done && !out->done_file)
        out->done_file = cdcd_xstrdup("");
    if (ok && s.p == s.end && flavored && consistent(out))
        return true;
    my_position_free(out);
    return false;
}

void my_position_free(struct my_position *p)
{
    free(p->server);
    free(p->gtid);
    free(p->file);
    free(p->tx);
    free(p->done);
    free(p->done_file);
    memset(p, 0, sizeof *p);
}

void my_position_copy(const struct my_position *p, struct my_position *out)
{
    *out = *p;
    out->server = cdcd_xstrdup(p->server ? p->server : "");
    out->gtid = cdcd_xstrdup(p->gtid ? p->gtid : "");
    out->file = cdcd_xstrdup(p->file ? p->file : "");
    out->tx = cdcd_xstrdup(p->tx ? p->tx : "");
    out->done = p->done ? cdcd_xstrdup(p->done) : NULL;
    out->done_file = p->done_file ? cdcd_xstrdup(p->done_file) : NULL;
}

static void add_text(struct cdcd_buf *out, const char *name, const char *text)
{
    cdcd_buf_addf(out, ",\"%s\":\"", name);
    while (*text) {
        size_t n = 0;
        while ((unsigned char)text[n] >= 0x20 && text[n] != '"' && text[n] != '\\')
            n++;
        cdcd_buf_add(out, text, n);
        text += n;
        if (!*text)
            break;
        if ((unsigned char)*text < 0x20)
            cdcd_buf_addf(out, "\\u%04x", (unsigned char)*text);
        else
            cdcd_buf_addf(out, "\\%c", *text);
        text++;
    }
    cdcd_buf_add(out, "\"", 1);
}

static void add_number(struct cdcd_buf *out, const char *name, uint64_t number)
{
    cdcd_buf_addf(out, ",\"%s\":%" PRIu64, name, number);
}

void my_position_write(const struct my_position *p, struct cdcd_buf *out)
{
    cdcd_buf_adds(out,
                  p->flavor == MY_MARIADB ? "{\"flavor\":\"mariadb\"" : "{\"flavor\":\"mysql\"");
    add_text(out, "server", p->server ? p->server : "");
    add_text(out, "gtid", p->gtid ? p->gtid : "");
    add_text(out, "file", p->file ? p->file : "");
    add_number(out, "pos", p->pos);
    add_number(out, "seq", p->seq);
    if (p->ord || (p->tx && *p->tx)) {
        add_number(out, "ord", p->ord);
        add_text(out, "tx", p->tx ? p->tx : "");
    }
    if (p->done) {
        add_text(out, "done", p->done);
        add_text(out, "done_file", p->done_file ? p->done_file : "");
        add_number(out, "done_pos", p->done_pos);
    }
    cdcd_buf_add(out, "}", 1);
}

/* A set of many ids is cut: this is for people. */
static void describe_gtid(const char *gtid, struct cdcd_buf *out)
{
    const size_t most = 200;
    size_t n = strlen(gtid);
    cdcd_buf_add(out, gtid, n > most ? most : n);
    if (n > most)
        cdcd_buf_adds(out, "...");
}

void my_describe(struct cdcd_slice position, struct cdcd_buf *out)
{
    struct my_position p;
    if (!my_position_parse(position, &p)) {
        cdcd_buf_add(out, position.ptr, position.len);
        return;
    }
    if (p.file[0])
        cdcd_buf_addf(out, "%s:%" PRIu64, p.file, p.pos);
    if (p.gtid[0]) {
        cdcd_buf_adds(out, p.file[0] ? ", GTID " : "GTID ");
        describe_gtid(p.gtid, out);
    }
    if (p.ord)
        cdcd_buf_addf(out, " (%" PRIu64 " changes into the next transaction%s%s)", p.ord,
                      p.tx[0] ? " " : "", p.tx);
    if (p.done && p.done_file[0])
        cdcd_buf_addf(out, " (others delivered up to %s:%" PRIu64 ", XA transactions are prepared)",
                      p.done_file, p.done_pos);
    my_position_free(&p);
}
