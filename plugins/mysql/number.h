/*
 * number.h: decimal texts of binary numbers, for values.c, json.c and snapshot_value.c.
 */
#ifndef CDCD_PLUGIN_MYSQL_NUMBER_H
#define CDCD_PLUGIN_MYSQL_NUMBER_H

#include "value.h"

/* The fewest digits that read back as the same number: 0.DIGITS * 10^exponent. */
struct my_digits {
    bool negative;
    int n; /* at least 1: zero is "0" with exponent 1 */
    int exponent;
    char digits[24];
};
/* v is finite. single: v is a float's value, and the text must read back as that float. */
void my_shortest(double v, bool single, struct my_digits *out);
/* As the server prints a double (dtoa.cc, my_gcvt): plain from 1e-15 to 1e15, else with an
 * exponent. At most MY_DOUBLE_TEXT bytes; returns their number. */
#define MY_DOUBLE_TEXT 64
size_t my_double_text(double v, char out[MY_DOUBLE_TEXT]);

/* A decimal in the binary form of the log (decimal.cc, bin2decimal): groups of nine digits in four
 * bytes, the outermost groups shorter, most significant byte first, the sign as the inverted top
 * bit, all bits inverted when negative. */
size_t my_decimal_size(unsigned precision, unsigned scale);
/* At most MY_DECIMAL_TEXT bytes; returns their number. p has my_decimal_size() bytes. */
#define MY_DECIMAL_TEXT 96
#define MY_DECIMAL_MAX  81 /* digits */
size_t my_decimal_text(const uint8_t *p, unsigned precision, unsigned scale,
                       char out[MY_DECIMAL_TEXT]);

#endif
