/*
 * BSON without an owner: walking over elements, and whether bytes are BSON at all. Every length is
 * checked here, and only here: bson_json.c asks cdcd_bson_value_length, too.
 */
#include "bson_int.h"

static inline uint32_t read_u32(const uint8_t *p)
{
    uint32_t v;
    memcpy(&v, p, sizeof v);
    return v;
}

bool cdcd_bson_frame(const uint8_t *p, size_t n, const char **why)
{
    if (n < 5 || read_u32(p) != n || p[n - 1]) {
        *why = n < 5 || read_u32(p) != n ? "the length of a document is wrong"
                                         : "a document does not end with NUL";
        return false;
    }
    return true;
}

/* A string with its length before it; *size is that of both. */
static bool string_size(const uint8_t *p, size_t left, size_t *size, const char **why)
{
    if (left < 5) {
        *why = "a string runs over the end of its document";
        return false;
    }
    uint32_t n = read_u32(p);
    if (n < 1 || n > left - 4) {
        *why = "the length of a string is wrong";
        return false;
    }
    if (p[4 + n - 1]) {
        *why = "a string does not end with NUL";
        return false;
    }
    *size = 4 + (size_t)n;
    return true;
}

/* A document with its length before it, within more bytes. */
static bool document_size(const uint8_t *p, size_t left, size_t *size, const char **why)
{
    if (left < 5 || read_u32(p) > left) {
        *why = "a document runs over the end of the one around it";
        return false;
    }
    *size = read_u32(p);
    return cdcd_bson_frame(p, *size, why);
}

static bool regex_size(const uint8_t *p, size_t left, size_t *size, const char **why)
{
    const uint8_t *end = p + left, *nul = memchr(p, 0, left);
    if (nul)
        nul = memchr(nul + 1, 0, (size_t)(end - nul - 1));
    if (!nul) {
        *why = "a regular expression has no end";
        return false;
    }
    *size = (size_t)(nul + 1 - p);
    return true;
}

static bool code_size(const uint8_t *p, size_t left, size_t *size, const char **why)
{
    size_t code, scope;
    if (left < 14 || read_u32(p) < 14 || read_u32(p) > left) {
        *why = "the length of a code with scope is wrong";
        return false;
    }
    *size = read_u32(p);
    if (!string_size(p + 4, *size - 4, &code, why) ||
        !document_size(p + 4 + code, *size - 4 - code, &scope, why))
        return false;
    if (4 + code + scope != *size) {
        *why = "the length of a code with scope is wrong";
        return false;
    }
    return true;
}

/* 0xff: of varying length; 0xfe: no type. */
#define SIZE_VARIES 0xff
#define SIZE_NONE   0xfe
static const uint8_t sizes[256] = {
    [0] = SIZE_NONE,
    [CDCD_BSON_DOUBLE] = 8,
    [CDCD_BSON_STRING] = SIZE_VARIES,
    [CDCD_BSON_DOCUMENT] = SIZE_VARIES,
    [CDCD_BSON_ARRAY] = SIZE_VARIES,
    [CDCD_BSON_BINARY] = SIZE_VARIES,
    [CDCD_BSON_UNDEFINED] = 0,
    [CDCD_BSON_OID] = 12,
    [CDCD_BSON_BOOL] = 1,
    [CDCD_BSON_DATE] = 8,
    [CDCD_BSON_NULL] = 0,
    [CDCD_BSON_REGEX] = SIZE_VARIES,
    [CDCD_BSON_DBPOINTER] = SIZE_VARIES,
    [CDCD_BSON_CODE] = SIZE_VARIES,
    [CDCD_BSON_SYMBOL] = SIZE_VARIES,
    [CDCD_BSON_CODE_W_SCOPE] = SIZE_VARIES,
    [CDCD_BSON_INT32] = 4,
    [CDCD_BSON_TIMESTAMP] = 8,
    [CDCD_BSON_INT64] = 8,
    [CDCD_BSON_DECIMAL] = 16,
    [0x14 ... 0x7e] = SIZE_NONE,
    [CDCD_BSON_MAXKEY] = 0,
    [0x80 ... 0xfe] = SIZE_NONE,
    [CDCD_BSON_MINKEY] = 0,
};

static bool varying_size(uint8_t type, const uint8_t *p, size_t left, size_t *size,
                         const char **why)
{
    switch (type) {
    case CDCD_BSON_STRING:
    case CDCD_BSON_CODE:
    case CDCD_BSON_SYMBOL: return string_size(p, left, size, why);
    case CDCD_BSON_DOCUMENT:
    case CDCD_BSON_ARRAY: return document_size(p, left, size, why);
    case CDCD_BSON_REGEX: return regex_size(p, left, size, why);
    case CDCD_BSON_CODE_W_SCOPE: return code_size(p, left, size, why);
    case CDCD_BSON_BINARY:
        if (left < 5 || read_u32(p) > left - 5) {
            *why = "the length of binary data is wrong";
            return false;
        }
        *size = 5 + (size_t)read_u32(p);
        return true;
    case CDCD_BSON_DBPOINTER:
        if (!string_size(p, left, size, why))
            return false;
        *size += 12;
        if (*size > left)
            *why = "a value runs over the end of its document";
        return *size <= left;
    default: *why = "an element has an unknown type"; return false;
    }
}

ptrdiff_t cdcd_bson_value_length(uint8_t type, const uint8_t *p, size_t left, const char **why)
{
    size_t size = sizes[type];
    if (size >= SIZE_NONE) {
        if (!varying_size(type, p, left, &size, why))
            return -1;
        return (ptrdiff_t)size;
    }
    if (size > left) {
        *why = "a value runs over the end of its document";
        return -1;
    }
    if (type == CDCD_BSON_BOOL && *p > 1) {
        *why = "a boolean is neither 0 nor 1";
        return -1;
    }
    return (ptrdiff_t)size;
}

/* ---- elements ---- */

bool cdcd_bson_iter_init(struct cdcd_bson_iter *it, struct cdcd_slice document)
{
    const char *why;
    const uint8_t *p = (const uint8_t *)document.ptr;
    *it = (struct cdcd_bson_iter){NULL, NULL};
    if (!cdcd_bson_frame(p, document.len, &why))
        return false;
    it->pos = p + 4;
    it->end = p + document.len - 1;
    return true;
}

static int next_element(struct cdcd_bson_iter *it, struct cdcd_bson_element *out, const char **why)
{
    if (it->pos == it->end)
        return 0;
    const uint8_t *name = it->pos + 1;
    const uint8_t *nul = memchr(name, 0, (size_t)(it->end - name));
    if (!nul) {
        *why = "a name has no end";
        return -1;
    }
    out->type = *it->pos;
    out->name = (struct cdcd_slice){(const char *)name, (size_t)(nul - name)};
    ptrdiff_t n = cdcd_bson_value_length(out->type, nul + 1, (size_t)(it->end - nul - 1), why);
    if (n < 0)
        return -1;
    out->value = (struct cdcd_slice){(const char *)nul + 1, (size_t)n};
    it->pos = nul + 1 + n;
    return 1;
}

int cdcd_bson_iter_next(struct cdcd_bson_iter *it, struct cdcd_bson_element *out)
{
    const char *why;
    return next_element(it, out, &why);
}

bool cdcd_bson_find(struct cdcd_slice document, const char *name, struct cdcd_bson_element *out)
{
    struct cdcd_bson_iter it;
    struct cdcd_slice want = cdcd_slice_str(name);
    if (!cdcd_bson_iter_init(&it, document))
        return false;
    while (cdcd_bson_iter_next(&it, out) == 1) {
        if (cdcd_slice_eq(out->name, want))
            return true;
    }
    return false;
}

/* ---- validation ---- */

static bool valid_document(struct cdcd_slice document, unsigned depth, const char **why)
{
    struct cdcd_bson_iter it;
    struct cdcd_bson_element e;
    int got;
    if (!cdcd_bson_frame((const uint8_t *)document.ptr, document.len, why))
        return false;
    if (depth == CDCD_BSON_DEPTH) {
        *why = "documents are nested too deep";
        return false;
    }
    cdcd_bson_iter_init(&it, document);
    while ((got = next_element(&it, &e, why)) == 1) {
        struct cdcd_slice inner = e.value;
        if (e.type == CDCD_BSON_CODE_W_SCOPE) {
            size_t code = 8 + read_u32((const uint8_t *)inner.ptr + 4);
            inner = (struct cdcd_slice){inner.ptr + code, inner.len - code};
        } else if (e.type != CDCD_BSON_DOCUMENT && e.type != CDCD_BSON_ARRAY) {
            continue;
        }
        if (!valid_document(inner, depth + 1, why))
            return false;
    }
    return got == 0;
}

bool cdcd_bson_valid(struct cdcd_slice document, const char **why)
{
    return valid_document(document, 0, why);
}
