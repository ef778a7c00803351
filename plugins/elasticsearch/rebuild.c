/*
 * The steps of cdcd replay: indexes that are built beside the live ones and put in their place.
 *
 * What is under way stands in the document NAME.rebuild of the state index:
 *
 *     {"v":1,"owner":"<random hex>","step":"build","indexes":[{"alias":"shop.t","old":
 *      "shop.t-000001","new":"shop.t-000002","made":true}],"kept":["shop.t-000001"]}
 *
 * step: build, frozen, swapped, or "" when nothing is under way and only old indexes are kept. An
 * index is noted before it is made, so one that was made is never forgotten. Every write says which
 * version it replaces and bears its owner, a process: another replay that takes over is noticed
 * with the next step (and by the position, NAME.replay, with the next batch; see state.c).
 *
 * FREEZE blocks writes to the live index. The pipeline that writes to it waits (bulk_reply.c). What
 * is to be seen in it then came from records that are in the topics already, so once the replay has
 * read up to their ends of after FREEZE, the new index lacks nothing that the old one ever showed;
 * and since nothing was written to the old one alone, the waiting pipeline goes on with the new one
 * where it was, columns that records do not carry included. The old index stays blocked after the
 * swap, so that a request that was on its way to it is refused and comes to the new one.
 */
#include "rebuild.h"

#include <cdcd/json.h>

#include <stdio.h>
#include <stdlib.h>
#include <sys/random.h>

static const struct cdcd_slice nothing = {NULL, 0};

/* ---- the document ---- */

/* One for the process: its sinks are one after the other. */
static void own_name(char out[33])
{
    static char name[33];
    unsigned char raw[16];
    if (*name) {
        memcpy(out, name, sizeof name);
        return;
    }
    for (size_t n = 0; n < sizeof raw;) {
        ssize_t k = getrandom(raw + n, sizeof raw - n, 0);
        if (k > 0)
            n += (size_t)k;
    }
    for (size_t i = 0; i < sizeof raw; i++)
        snprintf(name + 2 * i, 3, "%02x", raw[i]);
    memcpy(out, name, sizeof name);
}

static struct es_rebuild *the_rebuild(struct cdcd_sink *s)
{
    if (s->rebuild)
        return s->rebuild;
    struct es_rebuild *b = s->rebuild = cdcd_xcalloc(1, sizeof *b);
    cdcd_arena_init(&b->arena, 4096);
    own_name(b->owner);
    b->id = cdcd_xasprintf("%s.rebuild", s->env->pipeline);
    b->position_id = cdcd_xasprintf("%s.replay", s->env->pipeline);
    b->guard.seq_no = -1;
    return b;
}

void es_rebuild_free(struct es_rebuild *b)
{
    if (!b)
        return;
    cdcd_arena_free(&b->arena);
    free(b->id);
    free(b->position_id);
    free(b);
}

static void write_text(struct cdcd_buf *out, const char *name, struct cdcd_slice text)
{
    cdcd_buf_addf(out, "\"%s\":", name);
    es_json_string(out, text);
}

static void write_document(const struct es_rebuild *b, struct cdcd_buf *out)
{
    cdcd_buf_adds(out, "{\"v\":1,");
    write_text(out, "owner", cdcd_slice_str(b->owner));
    cdcd_buf_adds(out, ",");
    write_text(out, "step", cdcd_slice_str(b->step));
    cdcd_buf_adds(out, ",\"indexes\":[");
    for (const struct es_rebuilt *x = b->first; x; x = x->next) {
        cdcd_buf_adds(out, x == b->first ? "{" : ",{");
        write_text(out, "alias", x->alias);
        cdcd_buf_adds(out, ",");
        write_text(out, "old", x->old);
        cdcd_buf_adds(out, ",");
        write_text(out, "new", x->target);
        cdcd_buf_addf(out, ",\"made\":%s}", x->made ? "true" : "false");
    }
    cdcd_buf_adds(out, "],\"kept\":[");
    for (const struct es_kept *k = b->kept; k; k = k->next) {
        cdcd_buf_adds(out, k == b->kept ? "" : ",");
        es_json_string(out, k->name);
    }
    cdcd_buf_adds(out, "]}");
}

static struct cdcd_slice text_of(const struct cdcd_json_value *o, const char *name,
                                 struct cdcd_arena *a)
{
    struct cdcd_json_value v;
    if (!cdcd_json_member(o, name, &v) || v.kind != CDCD_JSON_STRING)
        return nothing;
    struct cdcd_slice text = cdcd_json_text(&v, a);
    return (struct cdcd_slice){cdcd_arena_dup(a, text.ptr, text.len), text.len};
}

static bool read_indexes(struct es_rebuild *b, const struct cdcd_json_value *list)
{
    struct cdcd_json_iter it;
    struct cdcd_json_value item, made;
    struct es_rebuilt **to = &b->first;
    cdcd_json_iter_init(&it, list);
    while (cdcd_json_iter_next(&it, NULL, &item)) {
        struct es_rebuilt *x = cdcd_arena_alloc(&b->arena, sizeof *x);
        *x = (struct es_rebuilt){.alias = text_of(&item, "alias", &b->arena),
                                 .old = text_of(&item, "old", &b->arena),
                                 .target = text_of(&item, "new", &b->arena)};
        x->made = cdcd_json_member(&item, "made", &made) && made.kind == CDCD_JSON_TRUE;
        if (!x->alias.ptr || !x->old.ptr || !x->target.ptr)
            return false;
        *to = x;
        to = &x->next;
    }
    return true;
}

void es_rebuild_keep(struct es_rebuild *b, struct cdcd_slice name)
{
    struct es_kept **to = &b->kept;
    for (; *to; to = &(*to)->next)
        if (cdcd_slice_eq((*to)->name, name))
            return;
    *to = cdcd_arena_alloc(&b->arena, sizeof **to);
    **to = (struct es_kept){
        .name = {cdcd_arena_dup(&b->arena, name.ptr, name.len), name.len},
    };
}

static bool read_document(struct es_rebuild *b, struct cdcd_slice text, struct cdcd_slice *owner)
{
    struct cdcd_json_value root, list, item;
    struct cdcd_json_iter it;
    b->first = NULL;
    b->kept = NULL;
    if (!cdcd_json_scan(text, &root) || !cdcd_json_member(&root, "indexes", &list) ||
        list.kind != CDCD_JSON_ARRAY || !read_indexes(b, &list) ||
        !cdcd_json_member(&root, "kept", &list) || list.kind != CDCD_JSON_ARRAY)
        return false;
    *owner = text_of(&root, "owner", &b->arena);
    struct cdcd_slice step = text_of(&root, "step", &b->arena);
    if (!owner->ptr || !step.ptr || step.len >= sizeof b->step)
        return false;
    snprintf(b->step, sizeof b->step, "%.*s", (int)step.len, step.ptr);
    cdcd_json_iter_init(&it, &list);
    while (cdcd_json_iter_next(&it, NULL, &item)) {
        if (item.kind != CDCD_JSON_STRING)
            return false;
        es_rebuild_keep(b, cdcd_json_text(&item, &b->arena));
    }
    return true;
}

static enum cdcd_rc taken_over(const struct cdcd_sink *s, struct cdcd_error *err)
{
    return cdcd_error_set(err, CDCD_ERR_LOSS,
                          "another replay of pipeline %s has taken over (document %s of the index "
                          "%s)",
                          s->env->pipeline, s->rebuild->id, s->config->state_index);
}

/* *owner: whoever wrote it last; "" when there is none. */
static enum cdcd_rc read_rebuild(struct cdcd_sink *s, struct cdcd_slice *owner,
                                 struct cdcd_error *err)
{
    struct es_rebuild *b = the_rebuild(s);
    struct cdcd_buf text;
    cdcd_buf_init(&text, 0);
    *owner = cdcd_slice_str("");
    enum cdcd_rc rc = es_doc_get(s, b->id, &text, &b->guard, err);
    if (rc == CDCD_OK && b->guard.seq_no < 0) {
        b->first = NULL;
        b->kept = NULL;
        b->step[0] = 0;
    } else if (rc == CDCD_OK && !read_document(b, cdcd_buf_slice(&text), owner)) {
        rc = cdcd_error_set(err, CDCD_ERR_FATAL,
                            "the document %s of the index %s cannot be read: it was written by "
                            "another version of cdcd; finish the replay with that one, or delete "
                            "the document and the index that was being built",
                            b->id, s->config->state_index);
    }
    cdcd_buf_free(&text);
    return rc;
}

enum cdcd_rc es_rebuild_put(struct cdcd_sink *s, struct cdcd_error *err)
{
    struct es_rebuild *b = s->rebuild;
    struct cdcd_buf text;
    cdcd_buf_init(&text, 0);
    write_document(b, &text);
    enum cdcd_rc rc = es_doc_put(s, b->id, cdcd_buf_slice(&text), &b->guard, err);
    if (rc == CDCD_AGAIN) {
        /* Ours, with a reply that was lost? */
        struct cdcd_buf is;
        cdcd_buf_init(&is, 0);
        rc = es_doc_get(s, b->id, &is, &b->guard, err);
        if (rc == CDCD_OK && !cdcd_slice_eq(cdcd_buf_slice(&is), cdcd_buf_slice(&text)))
            rc = taken_over(s, err);
        cdcd_buf_free(&is);
    }
    cdcd_buf_free(&text);
    return rc;
}

static enum cdcd_rc put_step(struct cdcd_sink *s, const char *step, struct cdcd_error *err)
{
    snprintf(s->rebuild->step, sizeof s->rebuild->step, "%s", step);
    return es_rebuild_put(s, err);
}

static bool at(const struct cdcd_sink *s, const char *step)
{
    return strcmp(s->rebuild->step, step) == 0;
}

/* Reads the document again; LOSS when it is another's. */
static enum cdcd_rc still_ours(struct cdcd_sink *s, struct cdcd_error *err)
{
    struct cdcd_slice owner;
    if (read_rebuild(s, &owner, err) != CDCD_OK)
        return CDCD_ERROR;
    return !owner.len || cdcd_slice_eq(owner, cdcd_slice_str(s->rebuild->owner))
               ? CDCD_OK
               : taken_over(s, err);
}

enum cdcd_rc es_rebuild_load(struct cdcd_sink *s, struct cdcd_error *err)
{
    the_rebuild(s);
    if (still_ours(s, err) != CDCD_OK)
        return CDCD_ERROR;
    for (struct es_rebuilt *x = s->rebuild->first; x; x = x->next)
        x->checked = false;
    return CDCD_OK;
}

/* ---- targets ---- */

static struct es_rebuilt *find(const struct es_rebuild *b, struct cdcd_slice alias)
{
    struct es_rebuilt *x = b->first;
    while (x && !cdcd_slice_eq(x->alias, alias))
        x = x->next;
    return x;
}

struct cdcd_slice es_rebuild_live(const struct cdcd_sink *s, struct cdcd_slice target)
{
    const struct es_rebuilt *x = s->rebuild ? s->rebuild->first : NULL;
    while (x && !cdcd_slice_eq(x->target, target))
        x = x->next;
    return x && x->old.len && !at(s, "swapped") ? x->old : nothing;
}

static enum cdcd_rc make_target(struct cdcd_sink *s, const struct es_rebuilt *x,
                                const struct es_shape *shape, struct cdcd_error *err)
{
    struct cdcd_buf body;
    struct es_reply r;
    char type[96], reason[512];
    cdcd_buf_init(&body, 0);
    es_mapping_write(s->config, shape, &body);
    enum cdcd_rc rc = es_call(s, "PUT", es_path("/%I", x->target), cdcd_buf_slice(&body), &r, err);
    cdcd_buf_free(&body);
    if (rc != CDCD_OK)
        return rc;
    es_reason(cdcd_buf_slice(&r.body), type, sizeof type, reason, sizeof reason);
    if (r.status >= 300 && strcmp(type, "resource_already_exists_exception") != 0)
        rc = es_fail(err, &r, "making the index %.*s", (int)x->target.len, x->target.ptr);
    es_reply_free(&r);
    if (rc == CDCD_OK)
        cdcd_info("elasticsearch", "replay: building %.*s beside %.*s", (int)x->target.len,
                  x->target.ptr, (int)(x->old.len ? x->old.len : x->alias.len),
                  x->old.len ? x->old.ptr : x->alias.ptr);
    return rc;
}

/* It was made: is it still there? */
static enum cdcd_rc check_target(struct cdcd_sink *s, struct es_rebuilt *x, struct cdcd_error *err)
{
    bool there;
    if (es_rebuild_exists(s, x->target, &there, err) != CDCD_OK)
        return CDCD_ERROR;
    if (!there)
        return cdcd_error_set(err, CDCD_ERR_LOSS,
                              "the index %.*s, which the replay is building, was deleted: begin "
                              "anew with cdcd replay --abandon and cdcd replay",
                              (int)x->target.len, x->target.ptr);
    x->checked = true;
    return CDCD_OK;
}

static enum cdcd_rc new_target(struct cdcd_sink *s, struct cdcd_slice alias,
                               struct es_rebuilt **out, struct cdcd_error *err)
{
    struct es_rebuild *b = s->rebuild;
    struct es_rebuilt *x = cdcd_arena_alloc(&b->arena, sizeof *x), **to = &b->first;
    *x = (struct es_rebuilt){
        .alias = {cdcd_arena_dup(&b->arena, alias.ptr, alias.len), alias.len},
    };
    if (es_rebuild_name(s, x, err) != CDCD_OK)
        return CDCD_ERROR;
    while (*to)
        to = &(*to)->next;
    *to = x;
    *out = x;
    if (!b->step[0])
        snprintf(b->step, sizeof b->step, "build");
    if (es_rebuild_put(s, err) == CDCD_OK)
        return CDCD_OK;
    *to = NULL;
    return CDCD_ERROR;
}

enum cdcd_rc es_rebuild_target(struct cdcd_sink *s, struct cdcd_slice index,
                               const struct es_shape *shape, struct cdcd_slice *out,
                               struct cdcd_error *err)
{
    struct es_rebuild *b = the_rebuild(s);
    struct es_rebuilt *x = find(b, index);
    if (!x && new_target(s, index, &x, err) != CDCD_OK)
        return CDCD_ERROR;
    if (!x->made) {
        if (make_target(s, x, shape, err) != CDCD_OK)
            return CDCD_ERROR;
        x->made = x->checked = true;
        if (es_rebuild_put(s, err) != CDCD_OK)
            return CDCD_ERROR;
    } else if (!x->checked && check_target(s, x, err) != CDCD_OK) {
        return CDCD_ERROR;
    }
    *out = x->target;
    return CDCD_OK;
}

/* ---- steps ---- */

/* Another process that works on it writes its position all the time. */
static enum cdcd_rc watch(struct cdcd_sink *s, struct cdcd_error *err)
{
    struct es_rebuild *b = s->rebuild;
    struct cdcd_buf text;
    struct es_guard before, now;
    cdcd_buf_init(&text, 0);
    enum cdcd_rc rc = es_doc_get(s, b->position_id, &text, &before, err);
    for (int i = 0; rc == CDCD_OK && before.seq_no >= 0 && i < ES_REBUILD_WATCHES; i++) {
        es_rebuild_nap(ES_REBUILD_WATCH_MS);
        cdcd_buf_clear(&text);
        rc = es_doc_get(s, b->position_id, &text, &now, err);
        if (rc == CDCD_OK && now.seq_no != before.seq_no)
            rc = cdcd_error_set(err, CDCD_ERR_CONFIG,
                                "another replay of pipeline %s is under way: wait for it, or stop "
                                "it",
                                s->env->pipeline);
    }
    cdcd_buf_free(&text);
    return rc;
}

static enum cdcd_rc begin(struct cdcd_sink *s, struct cdcd_report *report, struct cdcd_error *err)
{
    struct cdcd_slice owner;
    struct es_rebuild *b = the_rebuild(s);
    if (watch(s, err) != CDCD_OK || read_rebuild(s, &owner, err) != CDCD_OK)
        return CDCD_ERROR;
    if (!b->step[0]) {
        /* What an earlier one left when it ended between its last two writes. */
        if (es_doc_delete(s, b->position_id, err) != CDCD_OK)
            return CDCD_ERROR;
        return put_step(s, "build", err);
    }
    cdcd_report_addf(report, CDCD_CHECK_OK, "replay", NULL,
                     "goes on with the one that was begun (%s)",
                     at(s, "build")    ? "building"
                     : at(s, "frozen") ? "before the swap"
                                       : "swapped");
    return es_rebuild_put(s, err);
}

static enum cdcd_rc freeze(struct cdcd_sink *s, struct cdcd_report *report, struct cdcd_error *err)
{
    if (at(s, "swapped"))
        return CDCD_OK;
    if (put_step(s, "frozen", err) != CDCD_OK)
        return CDCD_ERROR;
    for (const struct es_rebuilt *x = s->rebuild->first; x; x = x->next) {
        if (!x->old.len)
            continue;
        if (es_rebuild_block(s, x->old, true, err) != CDCD_OK)
            return CDCD_ERROR;
        char *what = cdcd_xasprintf("index %.*s", (int)x->old.len, x->old.ptr);
        cdcd_report_addf(report, CDCD_CHECK_OK, what, NULL,
                         "takes no writes until the swap; the pipeline that writes to it waits");
        free(what);
    }
    return CDCD_OK;
}

static enum cdcd_rc thaw(struct cdcd_sink *s, struct cdcd_error *err)
{
    if (!at(s, "frozen"))
        return CDCD_OK;
    for (const struct es_rebuilt *x = s->rebuild->first; x; x = x->next)
        if (x->old.len && es_rebuild_block(s, x->old, false, err) != CDCD_OK)
            return CDCD_ERROR;
    return put_step(s, "build", err);
}

static enum cdcd_rc verify(struct cdcd_sink *s, struct cdcd_report *report, struct cdcd_error *err)
{
    if (at(s, "swapped"))
        return CDCD_OK;
    for (const struct es_rebuilt *x = s->rebuild->first; x; x = x->next) {
        enum cdcd_rc rc = es_rebuild_compare(s, x, report, err);
        if (rc != CDCD_OK)
            return rc;
    }
    return CDCD_OK;
}

static enum cdcd_rc swap(struct cdcd_sink *s, struct cdcd_report *report, struct cdcd_error *err)
{
    struct es_rebuild *b = s->rebuild;
    if (at(s, "swapped"))
        return CDCD_OK;
    if (!b->first)
        return cdcd_error_set(err, CDCD_ERR_DATA,
                              "the topics have no record that goes to an index: there is nothing "
                              "to swap");
    if (es_rebuild_swap(s, err) != CDCD_OK || put_step(s, "swapped", err) != CDCD_OK)
        return CDCD_ERROR;
    for (const struct es_rebuilt *x = b->first; x; x = x->next) {
        char *what = cdcd_xasprintf("alias %.*s", (int)x->alias.len, x->alias.ptr);
        cdcd_report_addf(report, CDCD_CHECK_OK, what, NULL, "stands for %.*s now",
                         (int)x->target.len, x->target.ptr);
        free(what);
    }
    return CDCD_OK;
}

static enum cdcd_rc finish(struct cdcd_sink *s, struct cdcd_report *report, struct cdcd_error *err)
{
    struct es_rebuild *b = s->rebuild;
    for (const struct es_rebuilt *x = b->first; at(s, "swapped") && x; x = x->next) {
        if (!x->old.len)
            continue;
        es_rebuild_keep(b, x->old);
        char *what = cdcd_xasprintf("index %.*s", (int)x->old.len, x->old.ptr);
        cdcd_report_addf(report, CDCD_CHECK_OK, what, cdcd_xasprintf("cdcd replay --drop-old"),
                         "is kept, without writes, until it is dropped");
        free(what);
    }
    b->first = NULL;
    /* In this order: without a step the position is of no use, see begin. */
    if (put_step(s, "", err) != CDCD_OK)
        return CDCD_ERROR;
    return es_doc_delete(s, b->position_id, err);
}

static enum cdcd_rc drop(struct cdcd_sink *s, struct cdcd_report *report, struct cdcd_error *err)
{
    struct es_rebuild *b = the_rebuild(s);
    struct cdcd_slice owner;
    if (read_rebuild(s, &owner, err) != CDCD_OK)
        return CDCD_ERROR;
    if (!b->kept)
        cdcd_report_addf(report, CDCD_CHECK_OK, "old indexes", NULL, "none is kept");
    while (b->kept) {
        if (es_rebuild_drop(s, b->kept->name, report, err) != CDCD_OK)
            return CDCD_ERROR;
        b->kept = b->kept->next;
        /* The owner of one that is under way stays. */
        char mine[33];
        memcpy(mine, b->owner, sizeof mine);
        if (owner.len == sizeof mine - 1)
            memcpy(b->owner, owner.ptr, owner.len);
        enum cdcd_rc rc = es_rebuild_put(s, err);
        memcpy(b->owner, mine, sizeof mine);
        if (rc != CDCD_OK)
            return rc;
    }
    return CDCD_OK;
}

static enum cdcd_rc abandon(struct cdcd_sink *s, struct cdcd_report *report, struct cdcd_error *err)
{
    struct es_rebuild *b = the_rebuild(s);
    struct cdcd_slice owner;
    if (watch(s, err) != CDCD_OK || read_rebuild(s, &owner, err) != CDCD_OK)
        return CDCD_ERROR;
    if (at(s, "swapped"))
        return cdcd_error_set(err, CDCD_ERR_CONFIG,
                              "the new indexes are live already: cdcd replay finishes it");
    if (!b->step[0])
        cdcd_report_addf(report, CDCD_CHECK_OK, "replay", NULL, "none is under way");
    /* One that still runs must not swap what is deleted here. */
    if (es_rebuild_put(s, err) != CDCD_OK || es_rebuild_swapped(s, err) != CDCD_OK)
        return CDCD_ERROR;
    if (thaw(s, err) != CDCD_OK)
        return CDCD_ERROR;
    for (const struct es_rebuilt *x = b->first; x; x = x->next)
        if (es_rebuild_drop(s, x->target, report, err) != CDCD_OK)
            return CDCD_ERROR;
    b->first = NULL;
    if (put_step(s, "", err) != CDCD_OK)
        return CDCD_ERROR;
    return es_doc_delete(s, b->position_id, err);
}

enum cdcd_rc es_rebuild(struct cdcd_sink *s, enum cdcd_rebuild step, struct cdcd_report *report,
                        struct cdcd_error *err)
{
    if (s->server.version == 0 && es_server_info(s->http, &s->server, err) != CDCD_OK)
        return CDCD_ERROR;
    if (step == CDCD_REBUILD_BEGIN)
        return begin(s, report, err);
    if (step == CDCD_REBUILD_DROP)
        return drop(s, report, err);
    if (step == CDCD_REBUILD_ABANDON)
        return abandon(s, report, err);
    the_rebuild(s);
    if (still_ours(s, err) != CDCD_OK)
        return CDCD_ERROR;
    switch (step) {
    case CDCD_REBUILD_FREEZE: return freeze(s, report, err);
    case CDCD_REBUILD_THAW: return thaw(s, err);
    case CDCD_REBUILD_VERIFY: return verify(s, report, err);
    case CDCD_REBUILD_SWAP: return swap(s, report, err);
    default: return finish(s, report, err);
    }
}
