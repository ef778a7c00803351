/*
 * One change as one line for people:
 *
 *   14:03:07.512  update  public.orders  {"id":7}  status: "new" -> "paid"
 *
 *   14:03:07.512  update  shop.orders  {"_id": 7}  {"status": "paid"}, without "note"
 *
 * A row that has a before image shows what changed, any other shows itself; a document, which is
 * JSON text within the record, what the update said of it. This is for eyes: it parses the
 * record's JSON, which the path for programs never does.
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

/* ---- documents ---- */

static bool is_document(json_t *value)
{
    return json_object_get(value, "updateDescription"); /* null or not */
}

/* Text that is JSON already. */
static void add_text(struct cdcd_buf *out, const json_t *text)
{
    if (json_is_string(text))
        cdcd_buf_add(out, json_string_value(text), json_string_length(text));
    else
        cdcd_buf_adds(out, "null");
}

static void add_update(struct cdcd_buf *out, json_t *update)
{
    json_t *set = json_object_get(update, "updatedFields"), *v;
    const char *gap = "";
    size_t i;
    if (json_is_string(set) && strcmp(json_string_value(set), "{}") != 0) {
        add_text(out, set);
        gap = ", ";
    }
    json_array_foreach(json_object_get(update, "removedFields"), i, v)
    {
        cdcd_buf_addf(out, "%swithout ", gap);
        add_json(out, v);
        gap = ", ";
    }
    json_array_foreach(json_object_get(update, "truncatedArrays"), i, v)
    {
        cdcd_buf_adds(out, gap);
        add_json(out, json_object_get(v, "field"));
        cdcd_buf_adds(out, " cut to ");
        add_json(out, json_object_get(v, "size"));
        gap = ", ";
    }
}

static void add_document(struct cdcd_buf *out, json_t *value)
{
    json_t *before = json_object_get(value, "before"), *after = json_object_get(value, "after");
    json_t *update = json_object_get(value, "updateDescription");
    if (json_is_object(update)) {
        add_update(out, update);
    } else if (json_is_string(after)) {
        if (json_is_string(before)) {
            add_text(out, before);
            cdcd_buf_adds(out, " -> ");
        }
        add_text(out, after);
    }
}

/* ---- both ---- */

static void add_images(struct cdcd_buf *out, json_t *value)
{
    json_t *before = json_object_get(value, "before"), *after = json_object_get(value, "after");
    if (is_document(value))
        add_document(out, value);
    else if (json_is_object(before) && json_is_object(after))
        add_difference(out, before, after);
    else if (json_is_object(after))
        add_row(out, after);
    else if (json_is_object(json_object_get(value, "message")))
        add_json(out, json_object_get(value, "message"));
    else if (json_is_string(json_object_get(value, "ddl")))
        add_json(out, json_object_get(value, "ddl"));
}

/* "schema.table", "table", "db.collection" */
static void add_name(struct cdcd_buf *out, const struct cdcd_record *r, json_t *value)
{
    json_t *source = json_object_get(value, "source");
    json_t *collection = json_object_get(source, "collection"); /* MongoDB has no table */
    const char *group = json_string_value(json_object_get(source, collection ? "db" : "schema"));
    const char *name = json_string_value(collection ? collection
                                                    : json_object_get(source, "table"));
    if (name && *name)
        cdcd_buf_addf(out, "%s%s%s", group ? group : "", group && *group ? "." : "", name);
    else
        cdcd_buf_add(out, r->topic->name.ptr, r->topic->name.len);
}

static void add_key(struct cdcd_buf *out, json_t *value, json_t *key)
{
    if (is_document(value)) {
        cdcd_buf_adds(out, "{\"_id\": ");
        add_text(out, json_object_get(key, "id"));
        cdcd_buf_adds(out, "}  ");
    } else if (key) {
        add_json(out, key);
        cdcd_buf_adds(out, "  ");
    }
}

static void add_change(struct cdcd_buf *out, const struct cdcd_record *r, json_t *value,
                       json_t *key, bool colour)
{
    const struct kind *k = kind_of(json_string_value(json_object_get(value, "op")));
    cdcd_buf_adds(out, colour ? DIM : "");
    add_time(out, r->timestamp_ms);
    cdcd_buf_addf(out, "%s  %s%-8s%s  %s", colour ? RESET : "", colour ? k->colour : "", k->word,
                  colour ? RESET : "", colour ? BOLD : "");
    add_name(out, r, value);
    cdcd_buf_addf(out, "%s  ", colour ? RESET : "");
    add_key(out, value, key);
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
