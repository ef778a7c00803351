/*
 * bson_int.h: what the files of bson.h share. Nothing here allocates but through the writer.
 */
#ifndef CDCD_BSON_INT_H
#define CDCD_BSON_INT_H

#include <cdcd/bson.h>

/* Every function here that writes at d does so while at least BSON_ROOM bytes are free there, and
 * leaves BSON_TAIL free for what closes the value. Copies run over their end by less than that. */
#define BSON_ROOM 256
#define BSON_TAIL 64

char *cdcd_bson_more(struct cdcd_writer *w, char *d);
static inline char *cdcd_bson_room(struct cdcd_writer *w, char *d)
{
    return (size_t)(w->end - d) < BSON_ROOM ? cdcd_bson_more(w, d) : d;
}

/* Length of the value of that type at p, where `left` bytes are left of its document. Negative: it
 * is malformed, and *why says how. Nested documents have a right frame, and are not looked into. */
ptrdiff_t cdcd_bson_value_length(uint8_t type, const uint8_t *p, size_t left, const char **why);
/* The frame of a document: its length is n, its last byte NUL. */
bool cdcd_bson_frame(const uint8_t *p, size_t n, const char **why);

/* ---- bson_text.c ---- */

/* Text without the quotes around it, escaped (twice when quoted). Bytes up to `limit` may be read.
 * Makes room itself. */
char *cdcd_bson_put_text(struct cdcd_writer *w, char *d, const uint8_t *s, size_t n,
                         const uint8_t *limit, bool quoted);
/* The same for a name that ends with NUL before `end`; *s is moved behind the NUL. NULL: there is
 * none. */
char *cdcd_bson_put_name(struct cdcd_writer *w, char *d, const uint8_t **s, const uint8_t *end,
                         const uint8_t *limit, bool quoted);

/* ---- bson_class.c: 64 characters a word, a bit each ---- */
extern const uint8_t cdcd_bson_raw_index[1024];
extern const uint64_t cdcd_bson_raw_words[];

/* ---- bson_number.c ---- */

/* A finite number as Java's Double.toString (since JDK 19) has it: the digits of the shortest text
 * that reads back the same, at least two of them. At most 24 bytes, and 8 more may be touched. */
char *cdcd_bson_put_double(char *d, double v);
/* Decimal128 in the scientific notation of the BSON specification; at most 43 bytes. */
char *cdcd_bson_put_decimal(char *d, const uint8_t value[16]);
/* A UTC time in ISO 8601, at most 32 bytes; the fraction as short as it can be, as Java's
 * ISO_OFFSET_DATE_TIME has it. Years outside 0..9999 have a sign and at least four digits. */
char *cdcd_bson_put_time(char *d, int64_t millis);

/* ---- bson_power.c ---- */
#define BSON_POWER_FIRST (-292)
#define BSON_POWER_LAST  324
extern const uint64_t cdcd_bson_powers[BSON_POWER_LAST - BSON_POWER_FIRST + 1][2];

#endif
