#include "state.h"

#include <inttypes.h>
#include <jansson.h>
#include <stdlib.h>

static enum cdcd_rc bad_state(struct cdcd_error *err, const char *why)
{
    return cdcd_error_set(err, CDCD_ERR_FATAL,
                          "the state stored in the sink cannot be read: %s. It was written by "
                          "another version of cdcd or by another program",
                          why);
}

static char *dup_member(json_t *o, const char *name)
{
    const char *s = json_string_value(json_object_get(o, name));
    return cdcd_xstrdup(s ? s : "");
}

static enum cdcd_rc parse_snapshot(json_t *snap, struct cdcd_state *out, struct cdcd_error *err)
{
    out->in_snapshot = true;
    out->table = dup_member(snap, "table");
    out->identity = dup_member(snap, "identity");
    const char *passed = json_string_value(json_object_get(snap, "passed"));
    out->passed = passed ? strtoull(passed, NULL, 16) : 0;
    json_t *chunks = json_object_get(snap, "chunks");
    out->ranges = cdcd_xcalloc(json_array_size(chunks) + 1, sizeof *out->ranges);
    size_t i;
    json_t *c;
    json_array_foreach(chunks, i, c)
    {
        const char *begin = json_string_value(json_array_get(c, 0));
        const char *end = json_string_value(json_array_get(c, 1));
        if (!begin || !end)
            return bad_state(err, "a chunk is not a pair of strings");
        out->ranges[out->nranges].begin = cdcd_xstrdup(begin);
        out->ranges[out->nranges++].end = cdcd_xstrdup(end);
    }
    json_t *only = json_object_get(snap, "only");
    out->only.items = cdcd_xcalloc(json_array_size(only) + 1, sizeof *out->only.items);
    json_array_foreach(only, i, c)
    {
        if (!json_is_string(c))
            return bad_state(err, "a table name is not a string");
        out->only.items[out->only.n++] = cdcd_xstrdup(json_string_value(c));
    }
    return CDCD_OK;
}

enum cdcd_rc cdcd_state_parse(struct cdcd_slice text, struct cdcd_state *out,
                              struct cdcd_error *err)
{
    *out = (struct cdcd_state){0};
    json_error_t jerr;
    json_t *root = json_loadb(text.ptr, text.len, 0, &jerr);
    if (!root)
        return bad_state(err, jerr.text);
    enum cdcd_rc rc = CDCD_OK;
    if (json_integer_value(json_object_get(root, "v")) != 1) {
        rc = bad_state(err, "its version is not 1");
        goto out;
    }
    json_t *pos = json_object_get(root, "position");
    if (pos) {
        char *dump = json_dumps(pos, JSON_COMPACT | JSON_ENCODE_ANY);
        out->position = cdcd_xstrdup(dump);
        free(dump);
    }
    json_t *snap = json_object_get(root, "snapshot");
    if (json_is_object(snap))
        rc = parse_snapshot(snap, out, err);
out:
    json_decref(root);
    if (rc != CDCD_OK)
        cdcd_state_free(out);
    return rc;
}

void cdcd_state_free(struct cdcd_state *s)
{
    free(s->position);
    free(s->table);
    free(s->identity);
    for (size_t i = 0; i < s->nranges; i++) {
        free(s->ranges[i].begin);
        free(s->ranges[i].end);
    }
    free(s->ranges);
    for (size_t i = 0; i < s->only.n; i++)
        free(s->only.items[i]);
    free(s->only.items);
    *s = (struct cdcd_state){0};
}

struct cdcd_slice cdcd_state_stream(struct cdcd_arena *a, struct cdcd_slice position)
{
    static const char head[] = "{\"v\":1,\"position\":";
    size_t n = sizeof head - 1;
    char *p = cdcd_arena_alloc(a, n + position.len + 1);
    memcpy(p, head, n);
    memcpy(p + n, position.ptr, position.len);
    p[n + position.len] = '}';
    return (struct cdcd_slice){p, n + position.len + 1};
}

static void add_string(struct cdcd_buf *out, const char *s)
{
    json_t *j = json_stringn_nocheck(s, strlen(s));
    char *text = json_dumps(j, JSON_ENCODE_ANY);
    cdcd_buf_adds(out, text ? text : "\"\"");
    free(text);
    json_decref(j);
}

void cdcd_state_write(const struct cdcd_state *s, struct cdcd_buf *out)
{
    cdcd_buf_adds(out, "{\"v\":1,\"position\":");
    cdcd_buf_adds(out, s->position ? s->position : "null");
    if (s->in_snapshot) {
        cdcd_buf_adds(out, ",\"snapshot\":{\"table\":");
        add_string(out, s->table ? s->table : "");
        cdcd_buf_adds(out, ",\"identity\":");
        add_string(out, s->identity ? s->identity : "");
        cdcd_buf_addf(out, ",\"passed\":\"%016" PRIX64 "\",\"chunks\":[", s->passed);
        for (size_t i = 0; i < s->nranges; i++) {
            cdcd_buf_adds(out, i ? ",[" : "[");
            add_string(out, s->ranges[i].begin);
            cdcd_buf_adds(out, ",");
            add_string(out, s->ranges[i].end);
            cdcd_buf_adds(out, "]");
        }
        cdcd_buf_adds(out, "],\"only\":[");
        for (size_t i = 0; i < s->only.n; i++) {
            if (i)
                cdcd_buf_adds(out, ",");
            add_string(out, s->only.items[i]);
        }
        cdcd_buf_adds(out, "]}");
    }
    cdcd_buf_adds(out, "}");
}
