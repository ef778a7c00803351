/*
 * value_int.h: what values.c, values_time.c, values_string.c and snapshot_value.c share beyond
 * value.h.
 */
#ifndef CDCD_PLUGIN_MYSQL_VALUE_INT_H
#define CDCD_PLUGIN_MYSQL_VALUE_INT_H

#include "decoder.h"
#include "number.h"
#include "value.h"

static inline uint64_t my_le(const uint8_t *p, unsigned bytes)
{
    uint64_t v = 0;

    for (unsigned i = 0; i < bytes; i++)
        v |= (uint64_t)p[i] << (8 * i);
    return v;
}

static inline uint64_t my_be(const uint8_t *p, unsigned bytes)
{
    uint64_t v = 0;

    for (unsigned i = 0; i < bytes; i++)
        v = v << 8 | p[i];
    return v;
}

/* DATA: the bytes are there but have no meaning. */
enum cdcd_rc my_value_bad(const struct my_column_decoder *d, struct cdcd_error *err,
                          const char *fmt, ...) CDCD_PRINTF(3, 4);

/* ---- values_time.c: p has the type's bytes ---- */
/* Of times with a fraction of `digits` digits: its bytes. */
static inline unsigned my_fraction_size(unsigned digits)
{
    return (digits + 1) / 2;
}
void my_read_date(const uint8_t *p, struct cdcd_arena *a, struct cdcd_cell *out);
void my_read_old_time(const uint8_t *p, struct cdcd_cell *out);
void my_read_old_datetime(const uint8_t *p, struct cdcd_arena *a, struct cdcd_cell *out);
void my_read_old_timestamp(const uint8_t *p, struct cdcd_arena *a, struct cdcd_cell *out);
void my_read_time2(const uint8_t *p, unsigned digits, struct cdcd_cell *out);
void my_read_datetime2(const uint8_t *p, unsigned digits, struct cdcd_arena *a,
                       struct cdcd_cell *out);
void my_read_timestamp2(const uint8_t *p, unsigned digits, struct cdcd_arena *a,
                        struct cdcd_cell *out);
/* The server's text. False: it is none. */
bool my_parse_date(const char *p, size_t n, struct cdcd_arena *a, struct cdcd_cell *out);
bool my_parse_time(const char *p, size_t n, struct cdcd_cell *out);
bool my_parse_datetime(const char *p, size_t n, struct cdcd_arena *a, struct cdcd_cell *out);

/* ---- values_string.c ---- */
/* A value of a string type. *borrowed* bytes: the cell may point to p. */
enum cdcd_rc my_read_string(const struct my_column_decoder *d, const uint8_t *p, size_t n,
                            struct cdcd_arena *a, struct cdcd_cell *out, struct cdcd_error *err);
enum cdcd_rc my_read_compressed(const struct my_column_decoder *d, const uint8_t *p, size_t n,
                                struct cdcd_arena *a, struct cdcd_cell *out,
                                struct cdcd_error *err);
enum cdcd_rc my_read_set(const struct my_column_decoder *d, uint64_t bits, struct cdcd_arena *a,
                         struct cdcd_cell *out, struct cdcd_error *err);
/* Most significant byte first, as BIT is stored. */
void my_read_bits(const struct my_column_decoder *d, const uint8_t *p, size_t n,
                  struct cdcd_arena *a, struct cdcd_cell *out);
enum cdcd_rc my_read_vector(const struct my_column_decoder *d, const uint8_t *p, size_t n,
                            struct cdcd_arena *a, struct cdcd_cell *out, struct cdcd_error *err);

#endif
