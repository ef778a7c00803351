/*
 * position.c: the resume position as JSON text. The core stores it and never looks inside, so
 * the reader is strict about what it knows, indifferent to order, and lets unknown keys pass.
 */
#include "my.h"

#include <inttypes.h>
#include <jansson.h>
#include <stdlib.h>

/* Owned; NULL stays where the member is not there. False: it is no string. */
static bool get_text(const json_t *o, const char *name, char **out)
{
    const json_t *v = json_object_get(o, name);
    if (json_is_string(v))
        *out = cdcd_xstrdup(json_string_value(v));
    return !v || *out;
}

static bool get_number(const json_t *o, const char *name, uint64_t *out)
{
    const json_t *v = json_object_get(o, name);
    if (v && (!json_is_integer(v) || json_integer_value(v) < 0))
        return false;
    *out = (uint64_t)json_integer_value(v);
    return true;
}

static bool get_members(const json_t *o, struct my_position *p)
{
    const char *flavor = json_string_value(json_object_get(o, "flavor"));
    if (!flavor || (strcmp(flavor, "mariadb") != 0 && strcmp(flavor, "mysql") != 0))
        return false;
    p->flavor = strcmp(flavor, "mariadb") == 0 ? MY_MARIADB : MY_MYSQL;
    return get_text(o, "server", &p->server) && get_text(o, "gtid", &p->gtid) &&
           get_text(o, "file", &p->file) && get_text(o, "tx", &p->tx) &&
           get_text(o, "done", &p->done) && get_text(o, "done_file", &p->done_file) &&
           get_number(o, "pos", &p->pos) && get_number(o, "seq", &p->seq) &&
           get_number(o, "ord", &p->ord) && get_number(o, "done_pos", &p->done_pos);
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
    json_t *o = json.ptr ? json_loadb(json.ptr, json.len, JSON_REJECT_DUPLICATES, NULL) : NULL;
    bool ok = get_members(o, out);
    json_decref(o);
    char **texts[] = {&out->server, &out->gtid, &out->file, &out->tx};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        if (!*texts[i])
            *texts[i] = cdcd_xstrdup("");
    }
    if (out->done && !out->done_file)
        out->done_file = cdcd_xstrdup("");
    if (ok && consistent(out))
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
