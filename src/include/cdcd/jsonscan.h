/*
 * jsonscan.h: JSON text as slices of itself, without building anything: numbers keep all their
 * digits, and what is passed on is passed on byte for byte. RFC 8259, checked throughout.
 */
#ifndef CDCD_JSONSCAN_H
#define CDCD_JSONSCAN_H

#include "buf.h"

enum cdcd_json_kind {
    CDCD_JSON_NULL,
    CDCD_JSON_FALSE,
    CDCD_JSON_TRUE,
    CDCD_JSON_NUMBER,
    CDCD_JSON_STRING,
    CDCD_JSON_ARRAY,
    CDCD_JSON_OBJECT,
};
#define CDCD_JSON_DEPTH 500

struct cdcd_json_value {
    enum cdcd_json_kind kind;
    struct cdcd_slice raw; /* a string with its quotes */
    bool escaped;          /* STRING: has a backslash in it */
};

/* The text is one value with nothing but blanks around it. False: it is not JSON. */
bool cdcd_json_scan(struct cdcd_slice text, struct cdcd_json_value *out);

/* The same, and the members of an object on the way, in one go. */
#define CDCD_JSON_MEMBERS 16
struct cdcd_json_members {
    struct cdcd_json_value names[CDCD_JSON_MEMBERS], values[CDCD_JSON_MEMBERS];
    unsigned n; /* may be more than there is room for: then walk it; 0 when it is no object */
};
bool cdcd_json_scan_members(struct cdcd_slice text, struct cdcd_json_value *out,
                            struct cdcd_json_members *members);

/* Walks an object or an array that cdcd_json_scan or the walk around it has found (so it is known
 * to be well-formed). */
struct cdcd_json_iter {
    const char *pos, *end;
    bool object;
};
void cdcd_json_iter_init(struct cdcd_json_iter *it, const struct cdcd_json_value *v);
/* False: no more. `name`: of an object's member, raw with quotes; may be NULL for arrays. */
bool cdcd_json_iter_next(struct cdcd_json_iter *it, struct cdcd_json_value *name,
                         struct cdcd_json_value *out);
/* The last member of that name on the first level; `name` needs no escapes. False: none, or v is no
 * object. */
bool cdcd_json_member(const struct cdcd_json_value *v, const char *name,
                      struct cdcd_json_value *out);
/* The string's characters as UTF-8: the value's own bytes when nothing is escaped, else in the
 * arena. Lone surrogates become U+FFFD. */
struct cdcd_slice cdcd_json_text(const struct cdcd_json_value *string, struct cdcd_arena *a);
/* False: no whole number, or too large. */
bool cdcd_json_int64(const struct cdcd_json_value *number, int64_t *out);

#endif
