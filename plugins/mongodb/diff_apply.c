/*
 * diff_apply.c: the document after an update, from the one before it.
 *
 * Every form of an update becomes a tree of changes first: a node is a field or an element that is
 * set, unset, or changed within. Then the document is copied once, and each field looked up in one
 * table of all nodes, by its parent and name. Tree and table are temporary.
 */
#include "diff.h"

#include <stdio.h>
#include <stdlib.h>

/* No document of a server is larger than 16 MB and a bit; a diff can ask for any array's size.
 * Each element has a name of digits: with more of them than this they alone are larger. */
#define DOCUMENT_MAX (17u << 20)
#define ELEMENTS_MAX (DOCUMENT_MAX / 8)

enum node_kind { NODE_SET, NODE_UNSET, NODE_SUB };
enum holds {
    HOLDS_DOCUMENT, /* a diff says which of the two it is of */
    HOLDS_ARRAY,
    HOLDS_EITHER, /* a dotted path does not */
};

struct node {
    struct node *parent, *first, *last, *next; /* children in the order of the update */
    enum node_kind kind;
    struct cdcd_slice name; /* of a field; the digits of an element */
    bool insert;            /* SET: goes to the end, even if it is there */
    bool seen;              /* while its parent is applied: it was there */
    bool creates;           /* SUB of dotted paths: something in it is set */
    uint8_t type;           /* SET */
    struct cdcd_slice value;
    enum holds holds; /* SUB */
    int32_t size;     /* SUB: the array's new size; -1: as it is */
};

struct tree {
    struct cdcd_arena arena; /* of the nodes */
    struct node root;
    struct node *at;     /* while a diff is walked: the node that is entered */
    struct node **slots; /* open addressing; NULL: free */
    size_t nslots, n;
    struct cdcd_error *err;
};

/* ---- the tree ---- */

static size_t slot_of(const struct tree *t, const struct node *parent, struct cdcd_slice name)
{
    uint64_t h = ((uintptr_t)parent >> 4) * UINT64_C(0x9e3779b97f4a7c15);

    for (size_t i = 0; i < name.len; i++)
        h = (h ^ (uint8_t)name.ptr[i]) * UINT64_C(0x100000001b3);
    h ^= h >> 29;
    size_t i = h & (t->nslots - 1);
    while (t->slots[i] &&
           (t->slots[i]->parent != parent || !cdcd_slice_eq(t->slots[i]->name, name)))
        i = (i + 1) & (t->nslots - 1);
    return i;
}

static struct node *find(const struct tree *t, const struct node *parent, struct cdcd_slice name)
{
    return t->nslots ? t->slots[slot_of(t, parent, name)] : NULL;
}

static void grow(struct tree *t)
{
    struct node **old = t->slots;
    size_t n = t->nslots;

    t->nslots = n ? 2 * n : 64;
    t->slots = cdcd_xcalloc(t->nslots, sizeof(struct node *));
    for (size_t i = 0; i < n; i++) {
        if (old[i])
            t->slots[slot_of(t, old[i]->parent, old[i]->name)] = old[i];
    }
    free(old);
}

/* Its name must not be there. */
static struct node *add(struct tree *t, struct node *parent, struct cdcd_slice name,
                        enum node_kind kind)
{
    struct node *c = cdcd_arena_alloc(&t->arena, sizeof *c);

    *c = (struct node){.parent = parent, .kind = kind, .name = name, .size = -1};
    if (parent->last)
        parent->last->next = c;
    else
        parent->first = c;
    parent->last = c;
    if (2 * (t->n + 1) > t->nslots)
        grow(t);
    t->n++;
    t->slots[slot_of(t, parent, name)] = c;
    return c;
}

static void set_value(struct node *c, const struct cdcd_bson_element *e)
{
    c->type = e->type;
    c->value = e->value;
}

/* ---- from a diff ---- */

static struct node *add_step(struct mg_walk *w, enum node_kind kind)
{
    struct tree *t = w->context;
    struct cdcd_slice name = w->path[w->depth - 1].name;

    if (find(t, t->at, name)) {
        mg_walk_bad(w, "it is changed twice");
        return NULL;
    }
    return add(t, t->at, name, kind);
}

static bool build_set(struct mg_walk *w, const struct cdcd_bson_element *e, bool insert)
{
    struct node *c = add_step(w, NODE_SET);

    if (!c)
        return false;
    set_value(c, e);
    c->insert = insert;
    return true;
}

static bool build_unset(struct mg_walk *w)
{
    return add_step(w, NODE_UNSET) != NULL;
}

static bool build_resize(struct mg_walk *w, int32_t size)
{
    struct tree *t = w->context;

    t->at->size = size;
    return true;
}

static bool build_enter(struct mg_walk *w, bool array)
{
    struct tree *t = w->context;
    struct node *c = add_step(w, NODE_SUB);

    if (!c)
        return false;
    c->holds = array ? HOLDS_ARRAY : HOLDS_DOCUMENT;
    t->at = c;
    return true;
}

static void build_leave(struct mg_walk *w)
{
    struct tree *t = w->context;
    t->at = t->at->parent;
}

static const struct mg_visitor build = {.set = build_set,
                                        .unset = build_unset,
                                        .resize = build_resize,
                                        .enter = build_enter,
                                        .leave = build_leave};

/* ---- from dotted paths ---- */

static bool bad_path(struct tree *t, struct cdcd_slice path, const char *what)
{
    cdcd_error_set(t->err, CDCD_ERR_DATA, "update: path \"%.*s\": %s",
                   (int)(path.len > 300 ? 300 : path.len), path.ptr, what);
    return false;
}

/* The steps of a path: those given for it, where it can be read in two ways, else cut at dots. */
struct steps {
    struct cdcd_slice rest;
    bool given, done;
    struct cdcd_bson_iter it;
    char digits[16];
};

static void steps_begin(struct steps *s, struct cdcd_slice path, struct cdcd_slice paths)
{
    struct cdcd_bson_iter it;
    struct cdcd_bson_element e;

    *s = (struct steps){.rest = path};
    if (!paths.ptr || !cdcd_bson_iter_init(&it, paths))
        return;
    while (cdcd_bson_iter_next(&it, &e) == 1) {
        if (e.type == CDCD_BSON_ARRAY && cdcd_slice_eq(e.name, path)) {
            s->given = cdcd_bson_iter_init(&s->it, e.value);
            return;
        }
    }
}

/* 1, 0: the end, -1: malformed. The name of a number lasts until the next call. */
static int steps_next(struct steps *s, struct cdcd_slice *out)
{
    struct cdcd_bson_element e;
    int more;

    if (!s->given) {
        if (s->done)
            return 0;
        const char *dot = s->rest.len ? memchr(s->rest.ptr, '.', s->rest.len) : NULL;
        *out = s->rest;
        s->done = !dot;
        if (dot) {
            out->len = (size_t)(dot - s->rest.ptr);
            s->rest = (struct cdcd_slice){dot + 1, s->rest.len - out->len - 1};
        }
        return 1;
    }
    if ((more = cdcd_bson_iter_next(&s->it, &e)) != 1)
        return more;
    if (e.type == CDCD_BSON_STRING) {
        *out = (struct cdcd_slice){e.value.ptr + 4, e.value.len - 5};
        return 1;
    }
    if (e.type != CDCD_BSON_INT32 || cdcd_bson_int32(e.value) < 0)
        return -1;
    int n = snprintf(s->digits, sizeof s->digits, "%d", (int)cdcd_bson_int32(e.value));
    *out = (struct cdcd_slice){s->digits, (size_t)n};
    return 1;
}

/* The node of a path, made with those above it; NULL: error. */
static struct node *path_node(struct tree *t, struct cdcd_slice path, struct cdcd_slice paths)
{
    struct steps s;
    struct cdcd_slice name;
    struct node *at = &t->root;
    int more, depth = 0;

    steps_begin(&s, path, paths);
    while ((more = steps_next(&s, &name)) == 1) {
        struct node *c = find(t, at, name);
        if (name.len && memchr(name.ptr, 0, name.len)) { /* a string may have one, a name not */
            bad_path(t, path, "a NUL in a name");
            return NULL;
        }
        if (depth++ == CDCD_BSON_DEPTH) {
            bad_path(t, path, "too deep");
            return NULL;
        }
        if (c && c->kind != NODE_SUB) {
            bad_path(t, path, "it is changed twice");
            return NULL;
        }
        if (!c) {
            if (s.given)
                name.ptr = cdcd_arena_dup(&t->arena, name.ptr, name.len);
            c = add(t, at, name, NODE_SUB);
            c->holds = HOLDS_EITHER;
        }
        at = c;
    }
    if (more < 0 || at == &t->root) {
        bad_path(t, path, "its disambiguatedPaths are malformed");
        return NULL;
    }
    return at;
}

static bool path_leaf(struct tree *t, struct cdcd_slice path, struct cdcd_slice paths,
                      const struct cdcd_bson_element *value)
{
    struct node *c = path_node(t, path, paths);

    if (!c)
        return false;
    if (c->first || c->size >= 0)
        return bad_path(t, path, "it is changed twice");
    if (!value) {
        c->kind = NODE_UNSET;
        return true;
    }
    c->kind = NODE_SET;
    set_value(c, value);
    for (c = c->parent; c && !c->creates; c = c->parent)
        c->creates = true;
    return true;
}

static bool malformed(struct tree *t, const char *what)
{
    cdcd_error_set(t->err, CDCD_ERR_DATA, "update: %s is malformed", what);
    return false;
}

/* Each field of the document is a path; values are what it is set to, or of no meaning. */
static bool path_fields(struct tree *t, struct cdcd_slice document, struct cdcd_slice paths,
                        bool set)
{
    struct cdcd_bson_iter it;
    struct cdcd_bson_element e;
    int more;

    if (!document.ptr)
        return true;
    if (!cdcd_bson_iter_init(&it, document))
        return malformed(t, "a list of fields");
    while ((more = cdcd_bson_iter_next(&it, &e)) == 1) {
        if (!path_leaf(t, e.name, paths, set ? &e : NULL))
            return false;
    }
    return more == 0 || malformed(t, "a list of fields");
}

static bool path_removed(struct tree *t, const struct mg_form *f)
{
    struct cdcd_bson_iter it;
    struct cdcd_bson_element e;
    int more;

    if (!f->removed.ptr)
        return true;
    if (!cdcd_bson_iter_init(&it, f->removed))
        return malformed(t, "removedFields");
    while ((more = cdcd_bson_iter_next(&it, &e)) == 1) {
        if (e.type != CDCD_BSON_STRING)
            return malformed(t, "removedFields");
        struct cdcd_slice path = {e.value.ptr + 4, e.value.len - 5};
        if (!path_leaf(t, path, f->paths, NULL))
            return false;
    }
    return more == 0 || malformed(t, "removedFields");
}

static bool path_truncated(struct tree *t, const struct mg_form *f)
{
    struct cdcd_bson_iter it;
    struct cdcd_bson_element e;
    struct cdcd_truncated cut;
    int more;

    if (!f->truncated.ptr)
        return true;
    if (!cdcd_bson_iter_init(&it, f->truncated))
        return malformed(t, "truncatedArrays");
    while ((more = cdcd_bson_iter_next(&it, &e)) == 1) {
        if (!mg_truncated(&e, &cut))
            return malformed(t, "truncatedArrays");
        struct node *c = path_node(t, cut.field, f->paths);
        if (!c)
            return false;
        c->size = cut.size;
    }
    return more == 0 || malformed(t, "truncatedArrays");
}

static bool build_tree(struct tree *t, const struct mg_form *f)
{
    static const struct cdcd_slice none = {NULL, 0};
    struct mg_walk w = {.visitor = &build, .context = t, .err = t->err};

    switch (f->kind) {
    case MG_FORM_DIFF: return mg_diff_walk(&w, f->diff);
    case MG_FORM_MODIFIERS:
        return path_fields(t, f->set, none, true) && path_fields(t, f->unset, none, false);
    default:
        return path_truncated(t, f) && path_fields(t, f->updated, f->paths, true) &&
               path_removed(t, f);
    }
}

/* ---- the copy ---- */

struct apply {
    const struct tree *tree;
    struct mg_writer writer;
    struct cdcd_error *err;
};

static const char empty_document[5] = {5, 0, 0, 0, 0};

static bool misfit(struct apply *x, const struct node *n, const char *what)
{
    cdcd_error_set(x->err, CDCD_ERR_DATA, "update does not fit the document before it: \"%.*s\" %s",
                   (int)(n->name.len > 200 ? 200 : n->name.len), n->name.len ? n->name.ptr : "",
                   what);
    return false;
}

static bool apply_document(struct apply *x, struct node *n, struct cdcd_slice before);
static bool apply_array(struct apply *x, struct node *n, struct cdcd_slice before);

static bool write_sub(struct apply *x, struct node *n, uint8_t type, struct cdcd_slice name,
                      struct cdcd_slice before)
{
    if (!mg_bson_open(&x->writer, type, name))
        return misfit(x, n, "is nested too deep");
    if (type == CDCD_BSON_ARRAY ? !apply_array(x, n, before) : !apply_document(x, n, before))
        return false;
    mg_bson_close(&x->writer);
    return true;
}

static bool apply_sub(struct apply *x, struct node *n, struct cdcd_slice name,
                      const struct cdcd_bson_element *before)
{
    bool document = before->type == CDCD_BSON_DOCUMENT && n->holds != HOLDS_ARRAY && n->size < 0;
    bool array = before->type == CDCD_BSON_ARRAY && n->holds != HOLDS_DOCUMENT;

    if (document || array)
        return write_sub(x, n, before->type, name, before->value);
    if (n->holds == HOLDS_EITHER && !n->creates && n->size < 0) { /* nothing there to unset */
        mg_bson_element(&x->writer, before->type, name, before->value);
        return true;
    }
    return misfit(x, n, n->holds == HOLDS_ARRAY ? "is no array" : "is no document");
}

/* Something comes of it where nothing was; or it is an error that nothing was. */
static bool makes(const struct node *c)
{
    return c->kind == NODE_SET ||
           (c->kind == NODE_SUB && (c->creates || c->holds != HOLDS_EITHER || c->size >= 0));
}

/* What is not there yet: set, or made so that something in it can be. */
static bool append(struct apply *x, struct node *c, struct cdcd_slice name)
{
    struct cdcd_slice empty = {empty_document, sizeof empty_document};

    if (c->kind == NODE_SET) {
        mg_bson_element(&x->writer, c->type, name, c->value);
        return true;
    }
    if (!makes(c))
        return true;
    if (c->holds != HOLDS_EITHER || c->size >= 0)
        return misfit(x, c, "is not there");
    return write_sub(x, c, CDCD_BSON_DOCUMENT, name, empty);
}

static bool apply_field(struct apply *x, struct node *c, const struct cdcd_bson_element *e)
{
    if (c->kind == NODE_UNSET || (c->kind == NODE_SET && c->insert))
        return true;
    c->seen = true;
    if (c->kind == NODE_SUB)
        return apply_sub(x, c, e->name, e);
    mg_bson_element(&x->writer, c->type, e->name, c->value);
    return true;
}

static bool apply_document(struct apply *x, struct node *n, struct cdcd_slice before)
{
    struct cdcd_bson_iter it;
    struct cdcd_bson_element e;
    int more;

    for (struct node *c = n->first; c; c = c->next)
        c->seen = false;
    if (!cdcd_bson_iter_init(&it, before))
        return misfit(x, n, "is malformed BSON");
    while ((more = cdcd_bson_iter_next(&it, &e)) == 1) {
        struct node *c = find(x->tree, n, e.name);
        if (!c)
            mg_bson_element(&x->writer, e.type, e.name, e.value);
        else if (!apply_field(x, c, &e))
            return false;
    }
    if (more < 0)
        return misfit(x, n, "is malformed BSON");
    for (struct node *c = n->first; c; c = c->next) {
        if (!c->seen && !append(x, c, c->name))
            return false;
    }
    return true;
}

/* The size that the array needs for what is set in it; false: a name that is no index. */
static bool array_needs(struct apply *x, const struct node *n, uint32_t *needs)
{
    uint32_t index;

    *needs = 0;
    for (const struct node *c = n->first; c; c = c->next) {
        if (!mg_index(c->name, &index)) {
            if (!makes(c))
                continue;
            return misfit(x, c, "is no index, but stands in an array");
        }
        if (!makes(c))
            continue;
        if (n->holds == HOLDS_ARRAY && n->size >= 0 && index >= (uint32_t)n->size)
            return misfit(x, c, "is beyond the array's new size");
        if (index >= *needs)
            *needs = index + 1;
    }
    return true;
}

static bool apply_element(struct apply *x, struct node *c, struct cdcd_slice name,
                          const struct cdcd_bson_element *e)
{
    static const struct cdcd_slice none = {NULL, 0};

    if (!c)
        mg_bson_element(&x->writer, e->type, name, e->value);
    else if (c->kind == NODE_SUB)
        return apply_sub(x, c, name, e);
    else if (c->kind == NODE_SET)
        mg_bson_element(&x->writer, c->type, name, c->value);
    else /* others keep their places */
        mg_bson_element(&x->writer, CDCD_BSON_NULL, name, none);
    return true;
}

static bool apply_array(struct apply *x, struct node *n, struct cdcd_slice before)
{
    struct cdcd_bson_element e, null = {.type = CDCD_BSON_NULL};
    struct cdcd_bson_iter it;
    uint32_t needs, limit = n->size >= 0 ? (uint32_t)n->size : UINT32_MAX, i = 0;
    char digits[16];
    int more;

    if (!array_needs(x, n, &needs))
        return false;
    if (!cdcd_bson_iter_init(&it, before))
        return misfit(x, n, "is malformed BSON");
    for (; (more = cdcd_bson_iter_next(&it, &e)) == 1 && i < limit; i++) {
        int len = snprintf(digits, sizeof digits, "%u", i);
        struct cdcd_slice name = {digits, (size_t)len};
        if (!apply_element(x, find(x->tree, n, name), name, &e))
            return false;
    }
    if (more < 0)
        return misfit(x, n, "is malformed BSON");
    if (n->size >= 0 && limit > needs)
        needs = limit;
    if (needs > ELEMENTS_MAX && i < needs)
        return misfit(x, n, "grows larger than any document can be");
    for (; i < needs; i++) {
        int len = snprintf(digits, sizeof digits, "%u", i);
        struct cdcd_slice name = {digits, (size_t)len};
        struct node *c = find(x->tree, n, name);
        if (c && makes(c) ? !append(x, c, name) : !apply_element(x, NULL, name, &null))
            return false;
        if (x->writer.w.pos - x->writer.w.start > DOCUMENT_MAX)
            return misfit(x, n, "grows larger than any document can be");
    }
    return true;
}

enum cdcd_rc mg_update_apply(struct cdcd_slice before, struct cdcd_slice o, struct cdcd_arena *a,
                             struct cdcd_slice *after, struct cdcd_error *err)
{
    struct mg_form form;
    struct tree t = {.root = {.kind = NODE_SUB, .size = -1}, .err = err};
    struct apply x = {.tree = &t, .err = err};

    if (mg_update_form(o, &form, err) != CDCD_OK)
        return CDCD_ERROR;
    if (form.kind == MG_FORM_REPLACEMENT) {
        *after = o;
        return CDCD_OK;
    }
    t.at = &t.root;
    cdcd_arena_init(&t.arena, 4096);
    bool ok = build_tree(&t, &form);
    if (ok) {
        mg_bson_begin(&x.writer, a);
        ok = apply_document(&x, &t.root, before);
        struct cdcd_slice document = mg_bson_end(&x.writer);
        if (ok)
            *after = document;
    }
    cdcd_arena_free(&t.arena);
    free(t.slots);
    return ok ? CDCD_OK : CDCD_ERROR;
}
