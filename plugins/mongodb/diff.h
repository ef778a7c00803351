/*
 * diff.h: what diff.c and diff_apply.c share: the forms of an update's `o`, and a walk over a diff
 * of $v 2.
 */
#ifndef CDCD_PLUGIN_MONGODB_DIFF_H
#define CDCD_PLUGIN_MONGODB_DIFF_H

#include "oplog.h"

struct mg_form {
    enum {
        MG_FORM_REPLACEMENT, /* `o` is the document */
        MG_FORM_DIFF,        /* $v 2: diff */
        MG_FORM_MODIFIERS,   /* $v 1: set, unset; each may have ptr NULL */
        MG_FORM_COMPATIBLE,  /* the parts of a change stream's updateDescription, as `diff` */
    } kind;
    struct cdcd_slice diff, set, unset;
    /* COMPATIBLE: documents and arrays; ptr NULL: not there */
    struct cdcd_slice updated, removed, truncated, paths;
};
/* DATA error: not one of them. */
enum cdcd_rc mg_update_form(struct cdcd_slice o, struct mg_form *out, struct cdcd_error *err);

/* {field: "dotted.path", newSize: n}. False: it is not. */
bool mg_truncated(const struct cdcd_bson_element *e, struct cdcd_truncated *out);

/* A name of decimal digits as the server writes indexes: no leading zeros. */
bool mg_index(struct cdcd_slice name, uint32_t *index);

struct mg_step {
    struct cdcd_slice name; /* of the field; the digits of the element */
    bool element;           /* of an array */
    uint32_t index;
};

struct mg_walk;
/* False stops the walk; w->err is set then. The path of what is visited is w->path. */
struct mg_visitor {
    bool (*set)(struct mg_walk *w, const struct cdcd_bson_element *e, bool insert);
    bool (*unset)(struct mg_walk *w);
    bool (*resize)(struct mg_walk *w, int32_t size); /* of the array entered last */
    bool (*enter)(struct mg_walk *w, bool array); /* the field or element that the path ends at */
    void (*leave)(struct mg_walk *w);
};
struct mg_walk {
    const struct mg_visitor *visitor; /* any of its functions may be NULL */
    void *context;
    bool buckets; /* leave binary diffs out */
    struct mg_step path[CDCD_BSON_DEPTH];
    uint32_t depth;
    struct cdcd_error *err;
};
bool mg_diff_walk(struct mg_walk *w, struct cdcd_slice diff);
/* Sets the error, with the path, and returns false. */
bool mg_walk_bad(struct mg_walk *w, const char *fmt, ...) CDCD_PRINTF(2, 3);

#endif
