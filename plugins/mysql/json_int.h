/*
 * json_int.h: MySQL's binary JSON (json_binary.h), for json.c and json_diff.c.
 *
 * A document is a type byte and a value. A container: number of elements, size in bytes, for
 * objects offset and length (2 bytes) of each key, for each element a type and its value where it
 * fits, else its offset; keys and values behind. Numbers and offsets have 2 bytes in small
 * containers, 4 in large ones, offsets count from the container's start.
 */
#ifndef CDCD_PLUGIN_MYSQL_JSON_INT_H
#define CDCD_PLUGIN_MYSQL_JSON_INT_H

#include "value_int.h"

enum my_json_type {
    MY_J_SMALL_OBJECT = 0,
    MY_J_LARGE_OBJECT = 1,
    MY_J_SMALL_ARRAY = 2,
    MY_J_LARGE_ARRAY = 3,
    MY_J_LITERAL = 4,
    MY_J_INT16 = 5,
    MY_J_UINT16 = 6,
    MY_J_INT32 = 7,
    MY_J_UINT32 = 8,
    MY_J_INT64 = 9,
    MY_J_UINT64 = 10,
    MY_J_DOUBLE = 11,
    MY_J_STRING = 12,
    MY_J_OPAQUE = 15,
};

enum { MY_JSON_MAX_DEPTH = 100 }; /* the server's JSON_DOCUMENT_MAX_DEPTH */

/* A value: n bytes from p on are its container's, the value has some of them. */
struct my_json {
    uint8_t type;
    const uint8_t *p;
    size_t n;
};

struct my_json_box {
    const uint8_t *p;
    size_t n; /* of the container, checked */
    uint32_t count;
    bool object;
    uint8_t width; /* of numbers and offsets */
};

bool my_json_root(const uint8_t *p, size_t n, struct my_json *out);
bool my_json_is_box(const struct my_json *v);
bool my_json_open(const struct my_json *v, struct my_json_box *out);
size_t my_json_head_size(const struct my_json_box *b); /* of the entries */
bool my_json_at(const struct my_json_box *b, uint32_t i, struct my_json *out);
bool my_json_key(const struct my_json_box *b, uint32_t i, struct cdcd_slice *out);

/* Text. Offsets may be made to point to the same bytes again and again: `budget` is what is left
 * of the document's bytes, of which each may be written once. */
struct my_json_writer {
    struct cdcd_writer *w;
    size_t budget;
    int depth;
};
bool my_json_put(struct my_json_writer *o, const struct my_json *v);
void my_json_put_string(struct cdcd_writer *w, struct cdcd_slice s);

enum cdcd_rc my_json_bad(struct cdcd_error *err, const uint8_t *p, size_t n);

#endif
