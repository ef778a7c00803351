/*
 * position.c: the resume position as JSON text. The core stores it and never looks inside, so the
 * reader is strict about what it knows, indifferent to order, and lets unknown keys pass.
 */
#include "mg.h"

#include <inttypes.h>
#include <jansson.h>
#include <stdlib.h>
#include <time.h>

/* [seconds, increment], both 32 bits unsigned. Not there: stays 0,0. */
static bool get_time(const json_t *o, const char *name, struct mg_time *out)
{
    const json_t *v = json_object_get(o, name);
    uint32_t *const parts[] = {&out->t, &out->i};
    if (!v)
        return true;
    if (json_array_size(v) != 2) /* 0 for what is no array */
        return false;
    for (size_t i = 0; i < 2; i++) {
        const json_t *n = json_array_get(v, i);
        json_int_t x = json_integer_value(n);
        if (!json_is_integer(n) || x < 0 || x > UINT32_MAX)
            return false;
        *parts[i] = (uint32_t)x;
    }
    return true;
}

static bool get_ord(const json_t *o, int64_t *out)
{
    const json_t *v = json_object_get(o, "ord");
    if (v && (!json_is_integer(v) || json_integer_value(v) < -1))
        return false;
    *out = json_integer_value(v) == -1 ? MG_ORD_ALL : json_integer_value(v);
    return true;
}

static bool get_capture(const json_t *o, int *out)
{
    const char *mode = json_string_value(json_object_get(o, "mode"));
    if (!mode || (strcmp(mode, "oplog") != 0 && strcmp(mode, "change_stream") != 0))
        return false;
    *out = strcmp(mode, "oplog") == 0 ? MG_OPLOG : MG_CHANGE_STREAM;
    return true;
}

/* A token is a document whose form is the server's business: kept whole, in its order. */
static bool get_token(const json_t *o, char **out)
{
    const json_t *v = json_object_get(o, "token");
    if (!v)
        return true;
    if (!json_is_object(v))
        return false;
    char *text = json_dumps(v, JSON_COMPACT);
    *out = text ? cdcd_xstrdup(text) : NULL;
    free(text);
    return *out != NULL;
}

static bool get_members(const json_t *o, struct mg_position *p)
{
    const json_t *set = json_object_get(o, "set"), *open = json_object_get(o, "until_open");
    if ((set && !json_is_string(set)) || (open && !json_is_boolean(open)))
        return false;
    p->set = set ? cdcd_xstrdup(json_string_value(set)) : NULL;
    p->until_open = json_is_true(open);
    return get_capture(o, &p->capture) && get_time(o, "ts", &p->ts) && p->ts.t != 0 &&
           get_ord(o, &p->ord) && get_time(o, "until", &p->until) && get_token(o, &p->token);
}

bool mg_position_parse(struct cdcd_slice json, struct mg_position *out)
{
    memset(out, 0, sizeof *out);
    json_t *o = json.ptr ? json_loadb(json.ptr, json.len, JSON_REJECT_DUPLICATES, NULL) : NULL;
    bool ok = json_is_object(o) && get_members(o, out);
    json_decref(o);
    if (!ok)
        mg_position_free(out);
    return ok;
}

void mg_position_free(struct mg_position *p)
{
    free(p->token);
    free(p->set);
    memset(p, 0, sizeof *p);
}

void mg_position_copy(const struct mg_position *p, struct mg_position *out)
{
    *out = *p;
    out->token = p->token ? cdcd_xstrdup(p->token) : NULL;
    out->set = p->set ? cdcd_xstrdup(p->set) : NULL;
}

static void add_time(struct cdcd_buf *out, const char *name, struct mg_time t)
{
    cdcd_buf_addf(out, ",\"%s\":[%" PRIu32 ",%" PRIu32 "]", name, t.t, t.i);
}

static void add_text(struct cdcd_buf *out, const char *name, const char *text)
{
    json_t *v = json_string(text); /* NULL: no UTF-8, which no name of a set is */
    char *quoted = v ? json_dumps(v, JSON_ENCODE_ANY) : NULL;
    if (quoted)
        cdcd_buf_addf(out, ",\"%s\":%s", name, quoted);
    free(quoted);
    json_decref(v);
}

void mg_position_write(const struct mg_position *p, struct cdcd_buf *out)
{
    cdcd_buf_addf(out, "{\"mode\":\"%s\"", p->capture == MG_OPLOG ? "oplog" : "change_stream");
    add_time(out, "ts", p->ts);
    cdcd_buf_addf(out, ",\"ord\":%" PRId64, p->ord == MG_ORD_ALL ? -1 : p->ord);
    if (p->token)
        cdcd_buf_addf(out, ",\"token\":%s", p->token);
    if (p->until.t || p->until.i)
        add_time(out, "until", p->until);
    if (p->until_open)
        cdcd_buf_adds(out, ",\"until_open\":true");
    if (p->set)
        add_text(out, "set", p->set);
    cdcd_buf_add(out, "}", 1);
}

/* 2023-11-14T22:13:20Z (1700000000, 7): the second form is what the server's tools take. */
static void describe_time(struct mg_time t, struct cdcd_buf *out)
{
    time_t seconds = t.t;
    struct tm tm;
    char text[32];
    gmtime_r(&seconds, &tm);
    strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &tm);
    cdcd_buf_addf(out, "%s (%" PRIu32 ", %" PRIu32 ")", text, t.t, t.i);
}

void mg_describe(struct cdcd_slice position, struct cdcd_buf *out)
{
    struct mg_position p;
    if (!mg_position_parse(position, &p)) {
        cdcd_buf_add(out, position.ptr, position.len);
        return;
    }
    cdcd_buf_adds(out, p.capture == MG_OPLOG ? "oplog " : "change stream ");
    describe_time(p.ts, out);
    if (p.ord != MG_ORD_ALL)
        cdcd_buf_addf(out, ", %" PRId64 " of the changes at that time", p.ord);
    if (p.until_open) {
        cdcd_buf_adds(out, ", behind a snapshot that was not read at one time");
    } else if (p.until.t) {
        cdcd_buf_adds(out, ", over a snapshot up to ");
        describe_time(p.until, out);
    }
    mg_position_free(&p);
}
