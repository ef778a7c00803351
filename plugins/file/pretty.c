/*
 * One change as one line for people:
 *
 *   14:03:07.512  update  public.orders  {"id":7}  status: "new" -> "paid"
 *
 * A row that has a before image shows what changed, any other shows itself. This is for eyes: it
 * parses the record's JSON, which the path for programs never does.
 */
#include "file.h"

#include <jansson.h>
#include <stdlib.h>
#include <time.h>

#define DIM   "\033[2m"
#define BOLD  "\033[1m"
#define RESET "\033[0m"

struct kind {
    const char *op, *word, *colour;
};

static const struct kind kinds[] = {
    {"c", "insert", "\033[32m"}, {"r", "row", "\033[36m"},      {"u", "update", "\033[33m"},
    {"d", "delete", "\033[31m"}, {"t", "truncate", "\033[31m"}, {"m", "message", "\033[35m"},
};

static const struct kind *kind_of(const char *op)
{
    static const struct kind other = {"", "event", ""};
    for (size_t i = 0; op && i < sizeof kinds / sizeof *kinds; i++) {
        if (strcmp(kinds[i].op, op) == 0)
            return &kinds[i];
    }
    return &other;
}

static void add_json(struct cdcd_buf *out, const json_t *v)
{
    char *text = json_dumps(v, JSON_COMPACT | JSON_ENCODE_ANY);
    cdcd_buf_adds(out, text ? text : "?");
    free(text);
}

static void add_time(struct cdcd_buf *out, int64_t ms)
{
    time_t s = (time_t)(ms / 1000);
    struct tm tm;
    char text[16] = "";
    if (localtime_r(&s, &tm))
        strftime(text, sizeof text, "%H:%M:%S", &tm);
    cdcd_buf_addf(out, "%s.%03d", text, (int)(ms % 1000));
}

static void add_row(struct cdcd_buf *out, json_t *row)
{
    const char *name, *gap = "";
    json_t *v;
    json_object_foreach(row, name, v)
    {
        cdcd_buf_addf(out, "%s%s: ", gap, name);
        add_json(out, v);
        gap = ", ";
    }
}

static void add_difference(struct cdcd_buf *out, json_t *before, json_t *after)
{
    const char *name, *gap = "";
    json_t *v;
    json_object_foreach(after, name, v)
    {
        json_t *old = json_object_get(before, name);
        if (old && json_equal(old, v))
            continue;
        cdcd_buf_addf(out, "%s%s: ", gap, name);
        if (old) {
            add_json(out, old);
            cdcd_buf_adds(out, " -> ");
        }
        add_json(out, v);
        gap = ", ";
    }
}

/* With schemas.enable the row is in the payload. */
static json_t *payload(json_t *doc)
{
    json_t *p = json_object_get(doc, "payload");
    return p && json_object_get(doc, "schema") ? p : doc;
}

static void add_images(struct cdcd_buf *out, json_t *value)
{
    json_t *before = json_object_get(value, "before"), *after = json_object_get(value, "after");
    if (json_is_object(before) && json_is_object(after))
        add_difference(out, before, after);
    else if (json_is_object(after))
        add_row(out, after);
    else if (json_is_object(json_object_get(value, "message")))
        add_json(out, json_object_get(value, "message"));
}

static void add_change(struct cdcd_buf *out, const struct cdcd_record *r, json_t *value,
                       json_t *key, bool colour)
{
    json_t *source = json_object_get(value, "source");
    const struct kind *k = kind_of(json_string_value(json_object_get(value, "op")));
    const char *schema = json_string_value(json_object_get(source, "schema"));
    const char *table = json_string_value(json_object_get(source, "table"));
    cdcd_buf_adds(out, colour ? DIM : "");
    add_time(out, r->timestamp_ms);
    cdcd_buf_addf(out, "%s  %s%-8s%s  %s", colour ? RESET : "", colour ? k->colour : "", k->word,
                  colour ? RESET : "", colour ? BOLD : "");
    if (table && *table)
        cdcd_buf_addf(out, "%s%s%s", schema ? schema : "", schema && *schema ? "." : "", table);
    else
        cdcd_buf_add(out, r->topic->name.ptr, r->topic->name.len);
    cdcd_buf_addf(out, "%s  ", colour ? RESET : "");
    if (key) {
        add_json(out, key);
        cdcd_buf_adds(out, "  ");
    }
    add_images(out, value);
    cdcd_buf_adds(out, "\n");
}

bool file_pretty_append(struct cdcd_buf *out, const struct cdcd_record *r, bool colour)
{
    if (!r->value.ptr)
        return true;
    json_t *doc = json_loadb(r->value.ptr, r->value.len, JSON_DECODE_ANY, NULL);
    json_t *value = doc ? payload(doc) : NULL;
    if (!json_is_object(value) || !json_object_get(value, "source")) {
        json_decref(doc); /* heartbeats, transaction metadata: as they are */
        return file_line_append(out, r);
    }
    json_t *keydoc = r->key.ptr ? json_loadb(r->key.ptr, r->key.len, JSON_DECODE_ANY, NULL) : NULL;
    add_change(out, r, value, keydoc ? payload(keydoc) : NULL, colour);
    json_decref(keydoc);
    json_decref(doc);
    return !out->failed;
}
