/*
 * Bytes from hexadecimal text, and cells as text, for the tests of the binlog decoder.
 */
#ifndef CDCD_TESTS_MY_HEX_H
#define CDCD_TESTS_MY_HEX_H

#include <cdcd/event.h>

#include <stdio.h>
#include <stdlib.h>

static inline int hex_digit(char c)
{
    return c <= '9' ? c - '0' : (c | 32) - 'a' + 10;
}

/* Blanks are skipped. Allocated at exactly its size, so that a sanitizer sees what reads beyond. */
static inline uint8_t *from_hex(const char *hex, size_t *n)
{
    uint8_t *out = malloc(strlen(hex) / 2 + 1), *w = out;

    for (const char *p = hex; *p;) {
        if (*p == ' ') {
            p++;
            continue;
        }
        *w++ = (uint8_t)(hex_digit(p[0]) << 4 | hex_digit(p[1]));
        p += 2;
    }
    *n = (size_t)(w - out);
    return realloc(out, *n ? *n : 1);
}

/* "int:-5", "text:abc", "bytes:00ff", "list:1,2.5", "null", ... */
static inline const char *cell_text(const struct cdcd_cell *c, char *out, size_t size)
{
    static const char *const names[] = {[CDCD_C_FLOAT] = "float",
                                        [CDCD_C_DECIMAL] = "decimal",
                                        [CDCD_C_TEXT] = "text",
                                        [CDCD_C_BYTES] = "bytes",
                                        [CDCD_C_GEOM] = "geom"};
    size_t n = 0;

    out[0] = '\0';
    switch (c->kind) {
    case CDCD_C_NULL: snprintf(out, size, "null"); break;
    case CDCD_C_ABSENT: snprintf(out, size, "absent"); break;
    case CDCD_C_BOOL: snprintf(out, size, "bool:%d", (int)c->i); break;
    case CDCD_C_INT: snprintf(out, size, "int:%lld", (long long)c->i); break;
    case CDCD_C_UINT: snprintf(out, size, "uint:%llu", (unsigned long long)c->u); break;
    case CDCD_C_DATE: snprintf(out, size, "date:%lld", (long long)c->i); break;
    case CDCD_C_TIME: snprintf(out, size, "time:%lld", (long long)c->i); break;
    case CDCD_C_TIMESTAMP: snprintf(out, size, "ts:%lld.%09u", (long long)c->i, c->len); break;
    case CDCD_C_LIST:
        n = (size_t)snprintf(out, size, "list:%u:", cdcd_cell_srid(c));
        for (uint32_t i = 0; i < c->len; i++)
            n += (size_t)snprintf(out + n, size - n, "%s%.*s", i ? "," : "", (int)c->cells[i].len,
                                  c->cells[i].ptr);
        break;
    case CDCD_C_BYTES:
    case CDCD_C_GEOM:
        n = (size_t)snprintf(out, size,
                             c->kind == CDCD_C_GEOM ? "geom:%u:" : "bytes:", cdcd_cell_srid(c));
        for (uint32_t i = 0; i < c->len && n + 3 < size; i++)
            n += (size_t)snprintf(out + n, size - n, "%02x", (uint8_t)c->ptr[i]);
        break;
    default: snprintf(out, size, "%s:%.*s", names[c->kind], (int)c->len, c->ptr); break;
    }
    return out;
}

#endif
