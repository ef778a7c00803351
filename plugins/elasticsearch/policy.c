/*
 * Documents that the index refuses, and records that are none: stop, dead-letter index, skip.
 *
 * A document of the dead-letter index takes the way of any other, in the place of the one that was
 * refused, so its batch is not settled before it is there. Its id is made from the record's place,
 * so that a record that comes again does not come twice.
 */
#include "sink.h"

#include <cdcd/json.h>

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static struct cdcd_slice position_of(const struct cdcd_record *r)
{
    for (uint32_t i = 0; i < r->nheaders; i++)
        if (cdcd_slice_eq(r->headers[i].name, cdcd_slice_str("cdcd.pos")))
            return r->headers[i].value;
    return (struct cdcd_slice){NULL, 0};
}

static struct cdcd_slice topic_of(const struct cdcd_record *r)
{
    return r->topic ? r->topic->name : r->topic_name;
}

void es_place(const struct cdcd_record *r, char *out, size_t size)
{
    struct cdcd_slice topic = topic_of(r), pos = position_of(r);
    int n = snprintf(out, size, "topic %.*s", (int)topic.len, topic.ptr ? topic.ptr : "");
    if (n < 0 || (size_t)n >= size)
        return;
    if (r->partition >= 0)
        snprintf(out + n, size - (size_t)n, ", partition %d, offset %lld", (int)r->partition,
                 (long long)r->offset);
    else if (pos.ptr)
        snprintf(out + n, size - (size_t)n, ", cdcd.pos %.*s", (int)pos.len, pos.ptr);
}

/* What to do about it. */
static const char *mend_of(const char *type, const char *reason)
{
    if (strstr(reason, "Limit of total fields"))
        return "raise index.mapping.total_fields.limit of the index (index.settings for new ones), "
               "or leave JSON as text (json: text)";
    if (strstr(reason, "depth"))
        return "raise index.mapping.depth.limit of the index (index.settings for new ones), or "
               "leave "
               "JSON as text (json: text)";
    if (strstr(reason, "Duplicate field"))
        return "two fields of the record have one name in the index, where _ stands behind names "
               "that the server keeps for itself: rename one of them";
    if (strstr(reason, "field name cannot") || strstr(reason, "starting or ending with a [.]"))
        return "no index takes such a name of a field: rename it, or leave JSON as text (json: "
               "text); for documents of MongoDB set field.dots: rename";
    if (strstr(type, "mapper_parsing") || strstr(type, "document_parsing") ||
        strstr(type, "strict_dynamic_mapping") || strstr(reason, "cannot be changed from type") ||
        strstr(reason, "can't merge a non object mapping"))
        return "the index maps this field to another type: build the index anew with another "
               "mapping (cdcd replay), or leave JSON as text (json: text)";
    if (strcmp(type, "document_too_large") == 0)
        return "raise http.max_content_length of the server, or leave the large column out";
    if (strstr(reason, "immense term"))
        return "map the field without doc_values and index, or with ignore_above";
    return "mend the record's row, or the index";
}

static enum cdcd_rc stop(const struct es_item *item, const char *type, const char *reason,
                         struct cdcd_error *err)
{
    char place[512];
    struct cdcd_slice index = item->action.index, id = item->action.id;
    es_place(item->record, place, sizeof place);
    if (!index.ptr)
        return cdcd_error_set(err, CDCD_ERR_DATA,
                              "%s (%s). To go on without such records set errors.policy to "
                              "dead-letter or skip",
                              reason, place);
    return cdcd_error_set(err, CDCD_ERR_DATA,
                          "index %.*s refuses the document with _id %.*s: %s%s%s (%s); %s. To go "
                          "on without such documents set errors.policy to dead-letter or skip",
                          (int)index.len, index.ptr, id.len > 200 ? 200 : (int)id.len,
                          id.ptr ? id.ptr : "", type, *type && *reason ? ": " : "", reason, place,
                          mend_of(type, reason));
}

/* ---- the dead-letter index ---- */

static const char dead_letter_mapping[] =
    "{\"mappings\":{\"dynamic\":false,\"properties\":{"
    "\"pipeline\":{\"type\":\"keyword\"},\"topic\":{\"type\":\"keyword\"},"
    "\"partition\":{\"type\":\"integer\"},\"offset\":{\"type\":\"long\"},"
    "\"pos\":{\"type\":\"keyword\"},\"at\":{\"type\":\"date\"},"
    "\"index\":{\"type\":\"keyword\"},\"id\":{\"type\":\"keyword\",\"ignore_above\":512},"
    "\"error\":{\"properties\":{\"type\":{\"type\":\"keyword\"},\"reason\":{\"type\":\"text\"}}}}}"
    "}";

enum cdcd_rc es_dead_letter_ready(struct cdcd_sink *s, struct cdcd_error *err)
{
    struct es_reply r;
    struct cdcd_slice name = cdcd_slice_str(s->config->dead_letter_index);
    if (s->dead_letter_ready)
        return CDCD_OK;
    if (es_call(s, "HEAD", es_path("/%I", name), (struct cdcd_slice){NULL, 0}, &r, err) != CDCD_OK)
        return cdcd_error_context(err, "the dead-letter index");
    long status = r.status;
    es_reply_free(&r);
    if (status == 404) {
        if (es_call(s, "PUT", es_path("/%I", name), cdcd_slice_str(dead_letter_mapping), &r, err) !=
            CDCD_OK)
            return cdcd_error_context(err, "the dead-letter index");
        char type[96], reason[256];
        es_reason(cdcd_buf_slice(&r.body), type, sizeof type, reason, sizeof reason);
        bool made = r.status == 200 || strcmp(type, "resource_already_exists_exception") == 0;
        enum cdcd_rc rc = made ? CDCD_OK : es_fail(err, &r, "the dead-letter index cannot be made");
        es_reply_free(&r);
        if (rc != CDCD_OK)
            return rc;
    }
    s->dead_letter_ready = true;
    return CDCD_OK;
}

static void put_name(struct cdcd_writer *w, const char *name)
{
    if (w->pos > w->start && w->pos[-1] != '{')
        cdcd_writer_char(w, ',');
    cdcd_json_string(w, name, strlen(name));
    cdcd_writer_char(w, ':');
}

static void put_text(struct cdcd_writer *w, const char *name, struct cdcd_slice text)
{
    put_name(w, name);
    if (text.ptr)
        cdcd_json_string(w, text.ptr, text.len);
    else
        cdcd_writer_lit(w, "null");
}

static void put_now(struct cdcd_writer *w)
{
    char text[40];
    int64_t us = cdcd_wallclock_us();
    time_t seconds = (time_t)(us / 1000000);
    struct tm tm;
    gmtime_r(&seconds, &tm);
    size_t n = strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%S", &tm);
    snprintf(text + n, sizeof text - n, ".%03dZ", (int)(us / 1000 % 1000));
    put_text(w, "at", cdcd_slice_str(text));
}

static void put_headers(struct cdcd_writer *w, const struct cdcd_record *r)
{
    put_name(w, "headers");
    cdcd_writer_char(w, '{');
    for (uint32_t i = 0; i < r->nheaders; i++) {
        if (i)
            cdcd_writer_char(w, ',');
        cdcd_json_string(w, r->headers[i].name.ptr, r->headers[i].name.len);
        cdcd_writer_char(w, ':');
        if (r->headers[i].value.ptr)
            cdcd_json_string(w, r->headers[i].value.ptr, r->headers[i].value.len);
        else
            cdcd_writer_lit(w, "null");
    }
    cdcd_writer_char(w, '}');
}

static struct cdcd_slice dead_letter_source(const struct cdcd_sink *s, const struct es_item *item,
                                            const char *type, const char *reason)
{
    const struct cdcd_record *r = item->record;
    struct cdcd_writer w;
    cdcd_writer_begin(&w, &item->batch->arena);
    cdcd_writer_char(&w, '{');
    put_text(&w, "pipeline", cdcd_slice_str(s->env->pipeline));
    put_now(&w);
    put_text(&w, "topic", topic_of(r));
    if (r->partition >= 0) {
        put_name(&w, "partition");
        cdcd_json_int(&w, r->partition);
        put_name(&w, "offset");
        cdcd_json_int(&w, r->offset);
    }
    put_text(&w, "pos", position_of(r));
    put_name(&w, "timestamp");
    cdcd_json_int(&w, r->timestamp_ms);
    put_text(&w, "index", item->action.index);
    put_text(&w, "id", item->action.id);
    put_name(&w, "error");
    cdcd_writer_char(&w, '{');
    put_text(&w, "type", cdcd_slice_str(type));
    put_text(&w, "reason", cdcd_slice_str(reason));
    cdcd_writer_char(&w, '}');
    put_text(&w, "key", r->key);
    if (item->bare) {
        put_name(&w, "value_bytes");
        cdcd_json_uint(&w, r->value.len);
    } else {
        put_text(&w, "value", r->value);
        put_headers(&w, r);
    }
    cdcd_writer_char(&w, '}');
    return cdcd_writer_end(&w);
}

/* The record's place. Several rows of one record do not exist. */
static struct cdcd_slice dead_letter_id(struct es_item *item)
{
    const struct cdcd_record *r = item->record;
    struct cdcd_slice topic = topic_of(r), pos = position_of(r);
    char *text = r->partition >= 0 ? cdcd_xasprintf("%.*s:%d:%lld", (int)topic.len, topic.ptr,
                                                    (int)r->partition, (long long)r->offset)
                                   : cdcd_xasprintf("%.*s:%.*s", (int)topic.len, topic.ptr,
                                                    (int)pos.len, pos.ptr ? pos.ptr : "");
    size_t n = strlen(text);
    /* 512 bytes are the limit of an id; a topic's name has at most 249. */
    struct cdcd_slice id = {cdcd_arena_dup(&item->batch->arena, text, n), n > 512 ? 512 : n};
    free(text);
    return id;
}

static void dead_letter(struct cdcd_sink *s, struct es_item *item, const char *type,
                        const char *reason)
{
    item->bare = strcmp(type, "document_too_large") == 0;
    struct cdcd_slice source = dead_letter_source(s, item, type, reason);
    item->action = (struct es_action){
        .kind = ES_INDEX,
        .index = cdcd_slice_str(s->config->dead_letter_index),
        .id = dead_letter_id(item),
        .source = source,
    };
    item->dead = true;
    item->sent = 0;
    item->refused = NULL;
}

static void tell(const char *what, uint64_t nth, const struct es_item *item, const char *type,
                 const char *reason)
{
    char place[512];
    if (nth > ES_LINES && nth % 1000 != 0)
        return;
    es_place(item->record, place, sizeof place);
    cdcd_warn("elasticsearch", "%s: %s%s%s (index %.*s, _id %.*s, %s)%s", what, type,
              *type && *reason ? ": " : "", reason, (int)item->action.index.len,
              item->action.index.ptr ? item->action.index.ptr : "",
              item->action.id.len > 200 ? 200 : (int)item->action.id.len,
              item->action.id.ptr ? item->action.id.ptr : "", place,
              nth == ES_LINES ? "; from here on only each thousandth is told" : "");
}

enum cdcd_rc es_refuse(struct cdcd_sink *s, struct es_item *item, const char *type,
                       const char *reason, enum es_fate *fate, struct cdcd_error *err)
{
    *fate = ES_FATE_SETTLE;
    if (item->dead && !item->bare) {
        /* Most likely it is too large: the second try leaves the value out. */
        item->bare = true;
        item->action.source = dead_letter_source(s, item, type, reason);
        *fate = ES_FATE_SEND;
        return CDCD_OK;
    }
    if (item->dead) {
        stop(item, type, reason, err);
        return cdcd_error_context(err, "a record cannot be written to the dead-letter index");
    }
    if (s->config->policy == ES_DEAD_LETTER && es_dead_letter_ready(s, err) != CDCD_OK)
        return CDCD_ERROR;
    s->counters.refused++;
    switch (s->config->policy) {
    case ES_SKIP: tell("left out", ++s->counters.skipped, item, type, reason); return CDCD_OK;
    case ES_DEAD_LETTER:
        tell("to the dead-letter index", ++s->counters.dead_lettered, item, type, reason);
        dead_letter(s, item, type, reason);
        *fate = ES_FATE_SEND;
        return CDCD_OK;
    default: return stop(item, type, reason, err);
    }
}
