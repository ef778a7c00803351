/*
 * bson.h: BSON (bsonspec.org, version 1.1) -> JSON text, straight from the bytes.
 *
 * Nothing here trusts its input: every length is checked, and bytes that are no BSON make the call
 * return false. No function keeps anything; any thread.
 */
#ifndef CDCD_BSON_H
#define CDCD_BSON_H

#include "event.h"

/* BSON types, as in the type byte of an element. */
enum cdcd_bson_type {
    CDCD_BSON_DOUBLE = 0x01,
    CDCD_BSON_STRING = 0x02,
    CDCD_BSON_DOCUMENT = 0x03,
    CDCD_BSON_ARRAY = 0x04,
    CDCD_BSON_BINARY = 0x05,
    CDCD_BSON_UNDEFINED = 0x06,
    CDCD_BSON_OID = 0x07,
    CDCD_BSON_BOOL = 0x08,
    CDCD_BSON_DATE = 0x09,
    CDCD_BSON_NULL = 0x0a,
    CDCD_BSON_REGEX = 0x0b,
    CDCD_BSON_DBPOINTER = 0x0c,
    CDCD_BSON_CODE = 0x0d,
    CDCD_BSON_SYMBOL = 0x0e,
    CDCD_BSON_CODE_W_SCOPE = 0x0f,
    CDCD_BSON_INT32 = 0x10,
    CDCD_BSON_TIMESTAMP = 0x11,
    CDCD_BSON_INT64 = 0x12,
    CDCD_BSON_DECIMAL = 0x13,
    CDCD_BSON_MAXKEY = 0x7f,
    CDCD_BSON_MINKEY = 0xff,
};

/* Documents nested deeper are refused. The server's own limit is 100; arrays count, too. */
#define CDCD_BSON_DEPTH 250

/* How values are written. STRICT is Extended JSON v1 in strict mode ({"$binary":..,"$type":..},
 * {"$date": milliseconds}), EXTENDED v2 canonical, RELAXED v2 relaxed, each as MongoDB's Java
 * driver writes it (bson/src/main/org/bson/json). NaN and the infinities, which STRICT writes bare
 * there and are no JSON, become {"$numberDouble": "NaN"}. PLAIN is ordinary JSON for search
 * indexes: numbers as numbers, Decimal128 and ObjectId as strings, dates ISO 8601 in UTC, binary as
 * base64, undefined, NaN and the infinities null, symbols and code as strings, "/pattern/options",
 * {"t": .., "i": ..} for a timestamp, "MinKey" and "MaxKey".
 *
 * Exact in every form:
 * - Names and values stand in their order, each name as often as it is there; names of an array's
 *   elements are not looked at.
 * - Doubles as Java's Double.toString has them since JDK 19, "1.0", "1.0E300", "-0.0"; what reads
 *   them back has the same number.
 * - In strings, letters but modifier letters, digits, spaces, punctuation and symbols stand as they
 *   are; all others, and what is above U+FFFF, are \uXXXX. Ill-formed UTF-8 is U+FFFD.
 * - Options of regular expressions in order. Binary data of the old subtype 2 without its second
 *   length; where that is wrong, all bytes.
 * - Decimal128 that is not canonical is zero, as IEEE 754-2008 wants. */
enum cdcd_bson_form {
    CDCD_BSON_STRICT,
    CDCD_BSON_EXTENDED,
    CDCD_BSON_RELAXED,
    CDCD_BSON_PLAIN,
};

struct cdcd_bson_style {
    enum cdcd_bson_form form;
    bool spaced; /* ", " between elements, as Java's toJson() without settings; else "," */
    bool quoted; /* the text is to stand inside a JSON string: its quotes, backslashes and control
                    characters are escaped once more. The quotes around it are the caller's */
};

/* One whole document (the length in its first four bytes is that of the slice). False: it is
 * malformed; *why is a static text. What was written until then stays in w: throw it away. */
bool cdcd_bson_json(struct cdcd_writer *w, struct cdcd_slice document,
                    const struct cdcd_bson_style *style, const char **why);
/* One value, as a cell of kind BSON has it: exactly as many bytes as its type takes. */
bool cdcd_bson_json_value(struct cdcd_writer *w, uint8_t type, struct cdcd_slice value,
                          const struct cdcd_bson_style *style, const char **why);
/* Whether the document is well-formed throughout (names and strings may be invalid UTF-8). */
bool cdcd_bson_valid(struct cdcd_slice document, const char **why);

/* Walks the elements of one document or array. */
struct cdcd_bson_iter {
    const uint8_t *pos, *end; /* of the elements left, without the final NUL */
};
struct cdcd_bson_element {
    uint8_t type;
    struct cdcd_slice name, value; /* both within the document */
};
/* False: the frame (length and final NUL) is wrong. */
bool cdcd_bson_iter_init(struct cdcd_bson_iter *it, struct cdcd_slice document);
/* 1: an element; 0: the end; -1: malformed. Values are checked to be within the document; nested
 * documents have a right frame, and are not looked into. */
int cdcd_bson_iter_next(struct cdcd_bson_iter *it, struct cdcd_bson_element *out);
/* The first element of that name on the first level. False: none, or malformed. */
bool cdcd_bson_find(struct cdcd_slice document, const char *name, struct cdcd_bson_element *out);

/* Numbers and dates of an element's value. */
static inline int32_t cdcd_bson_int32(struct cdcd_slice v)
{
    int32_t n;
    memcpy(&n, v.ptr, sizeof n);
    return n;
}
static inline int64_t cdcd_bson_int64(struct cdcd_slice v)
{
    int64_t n;
    memcpy(&n, v.ptr, sizeof n);
    return n;
}

#endif
