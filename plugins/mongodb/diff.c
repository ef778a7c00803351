/*
 * diff.c: an update's `o` -> what a change stream's updateDescription says of it.
 *
 * An arena takes one open writer at a time, so a diff is walked once for the lists, once for
 * updatedFields, and again for the ambiguous paths where there are any.
 */
#include "diff.h"

#include <stdio.h>

struct describe {
    struct cdcd_arena *arena;
    struct cdcd_buf path;               /* the dotted path of what is visited */
    struct cdcd_buf removed, truncated; /* of slices; of struct cdcd_truncated */
    uint32_t nambiguous;
    struct mg_writer writer;
};

static struct cdcd_slice dotted(struct mg_walk *w)
{
    struct describe *d = w->context;

    if (w->depth == 1)
        return w->path[0].name;
    cdcd_buf_clear(&d->path);
    for (uint32_t i = 0; i < w->depth; i++) {
        if (i)
            cdcd_buf_add(&d->path, ".", 1);
        cdcd_buf_add(&d->path, w->path[i].name.ptr, w->path[i].name.len);
    }
    return cdcd_buf_slice(&d->path);
}

/* A name with a dot, or one of digits that is not the first: "a.0" may be an element or a field. */
static bool is_ambiguous(const struct mg_walk *w)
{
    uint32_t index;

    for (uint32_t i = 0; i < w->depth; i++) {
        const struct mg_step *s = &w->path[i];
        if (s->element || s->name.len == 0)
            continue;
        if (memchr(s->name.ptr, '.', s->name.len) || (i > 0 && mg_index(s->name, &index)))
            return true;
    }
    return false;
}

static struct cdcd_slice copy(struct cdcd_arena *a, struct cdcd_slice s)
{
    return (struct cdcd_slice){cdcd_arena_dup(a, s.ptr, s.len), s.len};
}

/* ---- the lists ---- */

static bool list_set(struct mg_walk *w, const struct cdcd_bson_element *e, bool insert)
{
    struct describe *d = w->context;

    (void)e, (void)insert;
    d->nambiguous += is_ambiguous(w);
    return true;
}

static bool list_unset(struct mg_walk *w)
{
    struct describe *d = w->context;
    struct cdcd_slice path = copy(d->arena, dotted(w));

    cdcd_buf_add(&d->removed, &path, sizeof path);
    d->nambiguous += is_ambiguous(w);
    return true;
}

static bool list_resize(struct mg_walk *w, int32_t size)
{
    struct describe *d = w->context;
    struct cdcd_truncated t = {.field = copy(d->arena, dotted(w)), .size = size};

    cdcd_buf_add(&d->truncated, &t, sizeof t);
    d->nambiguous += is_ambiguous(w);
    return true;
}

static const struct mg_visitor lists = {
    .set = list_set, .unset = list_unset, .resize = list_resize};

/* ---- updatedFields ---- */

static bool updated_set(struct mg_walk *w, const struct cdcd_bson_element *e, bool insert)
{
    struct describe *d = w->context;

    (void)insert;
    mg_bson_element(&d->writer, e->type, dotted(w), e->value);
    return true;
}

static const struct mg_visitor updated = {.set = updated_set};

/* ---- ambiguous paths: path -> [names as strings, indexes as int32] ---- */

static void write_step(struct mg_writer *w, uint32_t place, const struct mg_step *s)
{
    char name[16];
    int32_t index = (int32_t)s->index;
    uint32_t len = (uint32_t)s->name.len + 1;
    int n = snprintf(name, sizeof name, "%u", place);
    struct cdcd_slice key = {name, (size_t)n};

    if (s->element) {
        mg_bson_element(w, CDCD_BSON_INT32, key, (struct cdcd_slice){(char *)&index, sizeof index});
        return;
    }
    mg_bson_element(w, CDCD_BSON_STRING, key, (struct cdcd_slice){(char *)&len, sizeof len});
    cdcd_writer_add(&w->w, s->name.ptr, s->name.len);
    cdcd_writer_char(&w->w, 0);
}

static bool ambiguous_path(struct mg_walk *w)
{
    struct describe *d = w->context;

    if (!is_ambiguous(w))
        return true;
    mg_bson_open(&d->writer, CDCD_BSON_ARRAY, dotted(w));
    for (uint32_t i = 0; i < w->depth; i++)
        write_step(&d->writer, i, &w->path[i]);
    mg_bson_close(&d->writer);
    return true;
}

static bool ambiguous_set(struct mg_walk *w, const struct cdcd_bson_element *e, bool insert)
{
    (void)e, (void)insert;
    return ambiguous_path(w);
}

static bool ambiguous_resize(struct mg_walk *w, int32_t size)
{
    (void)size;
    return ambiguous_path(w);
}

static const struct mg_visitor ambiguous = {
    .set = ambiguous_set, .unset = ambiguous_path, .resize = ambiguous_resize};

/* ---- the forms ---- */

static void take_lists(struct describe *d, struct cdcd_update *u)
{
    u->nremoved = (uint32_t)(d->removed.len / sizeof(struct cdcd_slice));
    u->ntruncated = (uint32_t)(d->truncated.len / sizeof(struct cdcd_truncated));
    if (u->nremoved)
        u->removed = memcpy(cdcd_arena_alloc(d->arena, d->removed.len), d->removed.ptr,
                            d->removed.len);
    if (u->ntruncated)
        u->truncated = memcpy(cdcd_arena_alloc(d->arena, d->truncated.len), d->truncated.ptr,
                              d->truncated.len);
}

static bool describe_diff(struct describe *d, struct cdcd_slice diff, bool buckets,
                          struct cdcd_update *u, struct cdcd_error *err)
{
    struct mg_walk w = {.context = d, .buckets = buckets, .err = err, .visitor = &lists};

    if (!mg_diff_walk(&w, diff))
        return false;
    take_lists(d, u);
    w.visitor = &updated;
    mg_bson_begin(&d->writer, d->arena);
    bool ok = mg_diff_walk(&w, diff);
    u->updated = mg_bson_end(&d->writer);
    if (!ok || !d->nambiguous)
        return ok;
    w.visitor = &ambiguous;
    mg_bson_begin(&d->writer, d->arena);
    ok = mg_diff_walk(&w, diff);
    u->ambiguous = mg_bson_end(&d->writer);
    return ok;
}

/* An empty document where there is none. */
static struct cdcd_slice copy_document(struct cdcd_arena *a, struct cdcd_slice document)
{
    static const char empty[5] = {5, 0, 0, 0, 0};

    return copy(a, document.ptr ? document : (struct cdcd_slice){empty, sizeof empty});
}

static bool unset_names(struct describe *d, struct cdcd_slice unset, struct cdcd_error *err)
{
    struct cdcd_bson_iter it;
    struct cdcd_bson_element e;
    int more = 0;

    if (!unset.ptr)
        return true;
    if (!cdcd_bson_iter_init(&it, unset))
        more = -1;
    while (more >= 0 && (more = cdcd_bson_iter_next(&it, &e)) == 1) {
        struct cdcd_slice name = copy(d->arena, e.name);
        cdcd_buf_add(&d->removed, &name, sizeof name);
    }
    if (more < 0)
        cdcd_error_set(err, CDCD_ERR_DATA, "update: $unset is malformed");
    return more == 0;
}

static bool describe_modifiers(struct describe *d, const struct mg_form *f, struct cdcd_update *u,
                               struct cdcd_error *err)
{
    if (!unset_names(d, f->unset, err))
        return false;
    take_lists(d, u);
    u->updated = copy_document(d->arena, f->set);
    return true;
}

static bool compatible_removed(struct describe *d, const struct mg_form *f)
{
    struct cdcd_bson_iter it;
    struct cdcd_bson_element e;
    int more;

    if (!f->removed.ptr)
        return true;
    if (!cdcd_bson_iter_init(&it, f->removed))
        return false;
    while ((more = cdcd_bson_iter_next(&it, &e)) == 1) {
        if (e.type != CDCD_BSON_STRING)
            return false;
        struct cdcd_slice path = copy(d->arena,
                                      (struct cdcd_slice){e.value.ptr + 4, e.value.len - 5});
        cdcd_buf_add(&d->removed, &path, sizeof path);
    }
    return more == 0;
}

static bool compatible_truncated(struct describe *d, const struct mg_form *f)
{
    struct cdcd_bson_iter it;
    struct cdcd_bson_element e;
    struct cdcd_truncated t;
    int more;

    if (!f->truncated.ptr)
        return true;
    if (!cdcd_bson_iter_init(&it, f->truncated))
        return false;
    while ((more = cdcd_bson_iter_next(&it, &e)) == 1) {
        if (!mg_truncated(&e, &t))
            return false;
        t.field = copy(d->arena, t.field);
        cdcd_buf_add(&d->truncated, &t, sizeof t);
    }
    return more == 0;
}

static bool describe_compatible(struct describe *d, const struct mg_form *f, struct cdcd_update *u,
                                struct cdcd_error *err)
{
    if (!compatible_removed(d, f) || !compatible_truncated(d, f)) {
        cdcd_error_set(err, CDCD_ERR_DATA,
                       "update: malformed removedFields or truncatedArrays in its diff");
        return false;
    }
    take_lists(d, u);
    u->updated = copy_document(d->arena, f->updated);
    if (f->paths.len > 5)
        u->ambiguous = copy(d->arena, f->paths);
    return true;
}

static bool describe(struct describe *d, const struct mg_form *f, bool buckets,
                     struct cdcd_update *u, struct cdcd_error *err)
{
    switch (f->kind) {
    case MG_FORM_DIFF: return describe_diff(d, f->diff, buckets, u, err);
    case MG_FORM_MODIFIERS: return describe_modifiers(d, f, u, err);
    default: return describe_compatible(d, f, u, err);
    }
}

enum cdcd_rc mg_update_parse(struct cdcd_slice o, bool buckets, struct cdcd_arena *a,
                             struct cdcd_update **update, struct cdcd_slice *replacement,
                             struct cdcd_error *err)
{
    struct mg_form form;
    struct describe d = {.arena = a};

    *update = NULL;
    *replacement = (struct cdcd_slice){NULL, 0};
    if (mg_update_form(o, &form, err) != CDCD_OK)
        return CDCD_ERROR;
    if (form.kind == MG_FORM_REPLACEMENT) {
        *replacement = o;
        return CDCD_OK;
    }
    struct cdcd_update *u = cdcd_arena_alloc(a, sizeof *u);
    *u = (struct cdcd_update){.nremoved = 0};
    bool ok = describe(&d, &form, buckets, u, err);
    cdcd_buf_free(&d.path);
    cdcd_buf_free(&d.removed);
    cdcd_buf_free(&d.truncated);
    if (!ok)
        return CDCD_ERROR;
    *update = u;
    return CDCD_OK;
}
