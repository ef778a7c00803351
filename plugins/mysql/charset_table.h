/*
 * charset_table.h: the tables behind charset.c.
 */
#ifndef CDCD_PLUGIN_MYSQL_CHARSET_TABLE_H
#define CDCD_PLUGIN_MYSQL_CHARSET_TABLE_H

#include <stddef.h>
#include <stdint.h>

#define MY_CHARSETS 41

enum my_charset_kind {
    MY_CS_UTF8, /* UTF-8 or ASCII: nothing to do */
    MY_CS_BINARY,
    MY_CS_SINGLE, /* a byte each; the upper half by table */
    MY_CS_SWE7,   /* a byte each; the lower half by table */
    MY_CS_MULTI,  /* one to four bytes */
    MY_CS_UCS2,
    MY_CS_UTF16,
    MY_CS_UTF16LE,
    MY_CS_UTF32,
};

/* MULTI: where the server differs from iconv: `n` codes from `code` on are the code points from
 * `unicode` on; 0: none of them is a character. */
struct my_charset_run {
    uint32_t code;
    uint16_t n, unicode;
};

struct my_charset_row {
    const char *name;
    uint32_t collation; /* the default one */
    enum my_charset_kind kind;
    const char *iconv;      /* MULTI */
    const uint16_t *single; /* SINGLE, SWE7: 128 code points */
    const struct my_charset_run *runs;
    size_t nruns;
};
extern const struct my_charset_row my_charset_rows[MY_CHARSETS];

struct my_collation_row {
    uint16_t id;
    uint8_t charset; /* row of my_charset_rows */
    const char *name;
};
extern const struct my_collation_row my_collation_rows[]; /* by id */
extern const size_t my_collations;

extern const char *const my_uca1400_tailorings[]; /* "?": no such collation */
extern const size_t my_uca1400_count;

#endif
