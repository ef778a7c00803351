/*
 * diff_walk.c: the forms of an update's `o`, and the walk over a diff of $v 2.
 *
 * A document's diff has sections: d {field: false}, u {field: value} (stays where it is), i {field:
 * value} (goes to the end), b (binary diffs of time-series columns), s<field>: the diff of that
 * field. An array's begins with a: true, then l: <new size>, then u<index>: value and s<index>: a
 * diff, by index. Names of fields stand only within sections and behind `s`, so any name is fine.
 */
#include "diff.h"

#include <stdio.h>

static int cut(struct cdcd_slice s)
{
    return (int)(s.len > 200 ? 200 : s.len);
}

static bool is(struct cdcd_slice name, const char *text)
{
    return cdcd_slice_eq(name, cdcd_slice_str(text));
}

bool mg_index(struct cdcd_slice name, uint32_t *index)
{
    uint32_t n = 0;

    if (name.len == 0 || name.len > 9 || (name.ptr[0] == '0' && name.len > 1))
        return false;
    for (size_t i = 0; i < name.len; i++) {
        if (name.ptr[i] < '0' || name.ptr[i] > '9')
            return false;
        n = n * 10 + (uint32_t)(name.ptr[i] - '0');
    }
    *index = n;
    return true;
}

/* ---- forms ---- */

static bool size_value(const struct cdcd_bson_element *e, int32_t *out)
{
    int64_t n;
    double d;

    if (e->type == CDCD_BSON_INT32) {
        n = cdcd_bson_int32(e->value);
    } else if (e->type == CDCD_BSON_INT64) {
        n = cdcd_bson_int64(e->value);
    } else if (e->type == CDCD_BSON_DOUBLE) {
        memcpy(&d, e->value.ptr, sizeof d);
        if (!(d >= 0 && d <= INT32_MAX))
            return false;
        n = (int64_t)d;
    } else {
        return false;
    }
    *out = (int32_t)n;
    return n >= 0 && n <= INT32_MAX;
}

bool mg_truncated(const struct cdcd_bson_element *e, struct cdcd_truncated *out)
{
    struct cdcd_bson_element field, size;

    if (e->type != CDCD_BSON_DOCUMENT || !cdcd_bson_find(e->value, "field", &field) ||
        field.type != CDCD_BSON_STRING || !cdcd_bson_find(e->value, "newSize", &size))
        return false;
    out->field = (struct cdcd_slice){field.value.ptr + 4, field.value.len - 5};
    return size_value(&size, &out->size);
}

static enum cdcd_rc bad_form(struct cdcd_error *err, const char *what,
                             const struct cdcd_bson_element *e)
{
    return cdcd_error_set(err, CDCD_ERR_DATA, "update: %s \"%.*s\"", what, cut(e->name),
                          e->name.ptr);
}

static enum cdcd_rc read_compatible(struct mg_form *f, struct cdcd_error *err)
{
    struct cdcd_bson_iter it;
    struct cdcd_bson_element e;
    int more;

    f->kind = MG_FORM_COMPATIBLE;
    cdcd_bson_iter_init(&it, f->diff);
    while ((more = cdcd_bson_iter_next(&it, &e)) == 1) {
        uint8_t type = CDCD_BSON_ARRAY;
        struct cdcd_slice *to = NULL;
        if (is(e.name, "updatedFields")) {
            to = &f->updated;
            type = CDCD_BSON_DOCUMENT;
        } else if (is(e.name, "removedFields")) {
            to = &f->removed;
        } else if (is(e.name, "truncatedArrays")) {
            to = &f->truncated;
        } else if (is(e.name, "disambiguatedPaths")) {
            to = &f->paths;
            type = CDCD_BSON_DOCUMENT;
        }
        if (!to)
            return bad_form(err, "unknown key in its diff:", &e);
        if (e.type != type)
            return bad_form(err, "wrong type in its diff:", &e);
        *to = e.value;
    }
    return more < 0 ? cdcd_error_set(err, CDCD_ERR_DATA, "update: malformed diff") : CDCD_OK;
}

static enum cdcd_rc read_diff(struct cdcd_slice o, struct mg_form *f, struct cdcd_error *err)
{
    struct cdcd_bson_iter it;
    struct cdcd_bson_element e;
    int more;

    f->kind = MG_FORM_DIFF;
    cdcd_bson_iter_init(&it, o);
    while ((more = cdcd_bson_iter_next(&it, &e)) == 1) {
        if (is(e.name, "$v"))
            continue;
        if (!is(e.name, "diff"))
            return bad_form(err, "$v 2 with an unknown key", &e);
        if (e.type != CDCD_BSON_DOCUMENT)
            return cdcd_error_set(err, CDCD_ERR_DATA, "update: its diff is no document");
        f->diff = e.value;
    }
    if (more < 0 || !f->diff.ptr || !cdcd_bson_iter_init(&it, f->diff))
        return cdcd_error_set(err, CDCD_ERR_DATA, "update: $v 2 without a well-formed diff");
    more = cdcd_bson_iter_next(&it, &e);
    if (more < 0)
        return cdcd_error_set(err, CDCD_ERR_DATA, "update: malformed diff");
    if (more == 1 && (is(e.name, "updatedFields") || is(e.name, "removedFields") ||
                      is(e.name, "truncatedArrays") || is(e.name, "disambiguatedPaths")))
        return read_compatible(f, err);
    return CDCD_OK;
}

static enum cdcd_rc read_modifiers(struct cdcd_slice o, struct mg_form *f, struct cdcd_error *err)
{
    struct cdcd_bson_iter it;
    struct cdcd_bson_element e;
    int more;

    f->kind = MG_FORM_MODIFIERS;
    cdcd_bson_iter_init(&it, o);
    while ((more = cdcd_bson_iter_next(&it, &e)) == 1) {
        if (is(e.name, "$v"))
            continue;
        if (!is(e.name, "$set") && !is(e.name, "$unset"))
            return bad_form(err, "unknown operator", &e);
        if (e.type != CDCD_BSON_DOCUMENT)
            return bad_form(err, "no document:", &e);
        *(is(e.name, "$set") ? &f->set : &f->unset) = e.value;
    }
    return more < 0 ? cdcd_error_set(err, CDCD_ERR_DATA, "update: malformed BSON") : CDCD_OK;
}

/* A replacement begins with _id, and may have fields of any name behind it, "$v" even. */
enum cdcd_rc mg_update_form(struct cdcd_slice o, struct mg_form *out, struct cdcd_error *err)
{
    struct cdcd_bson_iter it;
    struct cdcd_bson_element first, v;
    int32_t version;

    *out = (struct mg_form){.kind = MG_FORM_REPLACEMENT};
    int more = cdcd_bson_iter_init(&it, o) ? cdcd_bson_iter_next(&it, &first) : -1;
    if (more < 0)
        return cdcd_error_set(err, CDCD_ERR_DATA, "update: malformed BSON");
    if (more == 0 || is(first.name, "_id"))
        return CDCD_OK;
    if (cdcd_bson_find(o, "$v", &v)) {
        if (!size_value(&v, &version) || version < 1 || version > 2)
            return cdcd_error_set(err, CDCD_ERR_DATA,
                                  "update: its format ($v) is not known: a newer cdcd is needed");
        return version == 2 ? read_diff(o, out, err) : read_modifiers(o, out, err);
    }
    if (first.name.len && first.name.ptr[0] == '$')
        return read_modifiers(o, out, err);
    return CDCD_OK;
}

/* ---- the walk ---- */

bool mg_walk_bad(struct mg_walk *w, const char *fmt, ...)
{
    char what[400], path[300];
    size_t len = 0;
    va_list args;

    va_start(args, fmt);
    vsnprintf(what, sizeof what, fmt, args);
    va_end(args);
    for (uint32_t i = 0; i < w->depth && len + 1 < sizeof path; i++) {
        struct cdcd_slice name = w->path[i].name;
        if (i)
            path[len++] = '.';
        size_t n = name.len < sizeof path - 1 - len ? name.len : sizeof path - 1 - len;
        memcpy(path + len, name.ptr, n);
        len += n;
    }
    path[len] = 0;
    if (w->depth)
        cdcd_error_set(w->err, CDCD_ERR_DATA, "update: diff of \"%s\": %s", path, what);
    else
        cdcd_error_set(w->err, CDCD_ERR_DATA, "update: diff: %s", what);
    return false;
}

static bool push(struct mg_walk *w, struct cdcd_slice name, bool element, uint32_t index)
{
    if (w->depth == CDCD_BSON_DEPTH)
        return mg_walk_bad(w, "nested deeper than %d", CDCD_BSON_DEPTH);
    w->path[w->depth++] = (struct mg_step){.name = name, .element = element, .index = index};
    return true;
}

static bool visit_set(struct mg_walk *w, const struct cdcd_bson_element *e, bool insert)
{
    return !w->visitor->set || w->visitor->set(w, e, insert);
}

static bool walk_section(struct mg_walk *w, char section, struct cdcd_slice fields)
{
    struct cdcd_bson_iter it;
    struct cdcd_bson_element e;
    int more = -1;

    if (cdcd_bson_iter_init(&it, fields)) {
        while ((more = cdcd_bson_iter_next(&it, &e)) == 1) {
            if (!push(w, e.name, false, 0))
                return false;
            if (section == 'd' ? w->visitor->unset && !w->visitor->unset(w)
                               : !visit_set(w, &e, section == 'i'))
                return false;
            w->depth--;
        }
    }
    return more == 0 || mg_walk_bad(w, "section %c is malformed", section);
}

static bool walk_sub(struct mg_walk *w, const struct cdcd_bson_element *e);

static bool walk_document(struct mg_walk *w, struct cdcd_bson_iter *it)
{
    struct cdcd_bson_element e;
    int more;

    while ((more = cdcd_bson_iter_next(it, &e)) == 1) {
        char section = e.name.len ? e.name.ptr[0] : 0;
        if (section != 's' && (e.name.len != 1 || !memchr("duib", section, 4)))
            return mg_walk_bad(w, "unknown key \"%.*s\"; a newer cdcd may know it", cut(e.name),
                               e.name.ptr);
        if (e.type != CDCD_BSON_DOCUMENT)
            return mg_walk_bad(w, "\"%.*s\" is no document", cut(e.name), e.name.ptr);
        if (section == 's') {
            struct cdcd_slice field = {e.name.ptr + 1, e.name.len - 1};
            if (!push(w, field, false, 0) || !walk_sub(w, &e))
                return false;
            w->depth--;
        } else if (section == 'b') {
            if (!w->buckets)
                return mg_walk_bad(w, "a binary diff, as of the buckets of a time series");
        } else if (!walk_section(w, section, e.value)) {
            return false;
        }
    }
    return more == 0 || mg_walk_bad(w, "malformed BSON");
}

static bool walk_element(struct mg_walk *w, const struct cdcd_bson_element *e)
{
    struct cdcd_slice digits = {e->name.ptr + 1, e->name.len ? e->name.len - 1 : 0};
    char section = e->name.len ? e->name.ptr[0] : 0;
    uint32_t index;

    if (section == 'l' && e->name.len == 1)
        return mg_walk_bad(w, "l, an array's new size, is out of place");
    if ((section != 'u' && section != 's') || !mg_index(digits, &index))
        return mg_walk_bad(w, "unknown key \"%.*s\" in an array; a newer cdcd may know it",
                           cut(e->name), e->name.ptr);
    if (section == 's' && e->type != CDCD_BSON_DOCUMENT)
        return mg_walk_bad(w, "\"%.*s\" is no document", cut(e->name), e->name.ptr);
    if (!push(w, digits, true, index) ||
        !(section == 's' ? walk_sub(w, e) : visit_set(w, e, false)))
        return false;
    w->depth--;
    return true;
}

/* After the header. */
static bool walk_array(struct mg_walk *w, struct cdcd_bson_iter *it)
{
    struct cdcd_bson_element e;
    int32_t size;
    int more = cdcd_bson_iter_next(it, &e);

    if (more == 1 && is(e.name, "l")) {
        if (!size_value(&e, &size))
            return mg_walk_bad(w, "l is no size of an array");
        if (w->visitor->resize && !w->visitor->resize(w, size))
            return false;
        more = cdcd_bson_iter_next(it, &e);
    }
    for (; more == 1; more = cdcd_bson_iter_next(it, &e)) {
        if (!walk_element(w, &e))
            return false;
    }
    return more == 0 || mg_walk_bad(w, "malformed BSON");
}

/* The diff of a field or an element, which the path ends at. Its kind shows in its first key. */
static bool walk_sub(struct mg_walk *w, const struct cdcd_bson_element *e)
{
    struct cdcd_bson_iter it, array;
    struct cdcd_bson_element first;

    if (!cdcd_bson_iter_init(&it, e->value))
        return mg_walk_bad(w, "malformed BSON");
    array = it;
    bool is_array = cdcd_bson_iter_next(&array, &first) == 1 && is(first.name, "a");
    if (is_array && (first.type != CDCD_BSON_BOOL || !first.value.ptr[0]))
        return mg_walk_bad(w, "a, which marks an array, is not true");
    if (w->visitor->enter && !w->visitor->enter(w, is_array))
        return false;
    if (is_array ? !walk_array(w, &array) : !walk_document(w, &it))
        return false;
    if (w->visitor->leave)
        w->visitor->leave(w);
    return true;
}

bool mg_diff_walk(struct mg_walk *w, struct cdcd_slice diff)
{
    struct cdcd_bson_iter it;

    w->depth = 0;
    if (!cdcd_bson_iter_init(&it, diff))
        return mg_walk_bad(w, "malformed BSON");
    return walk_document(w, &it);
}
