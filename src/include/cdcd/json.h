/*
 * JSON text writers for the hot path, over struct cdcd_writer.
 */
#ifndef CDCD_JSON_H
#define CDCD_JSON_H

#include "buf.h"

/* A JSON string with quotes. UTF-8 passes raw; characters outside the BMP become surrogate
 * pairs in upper-case hex, control characters \b \t \n \f \r or \u00XX, as Java's Jackson
 * writes them for non-BMP. Invalid UTF-8 bytes become U+FFFD. */
void cdcd_json_string(struct cdcd_writer *w, const char *p, size_t n);
void cdcd_json_int(struct cdcd_writer *w, int64_t v);
void cdcd_json_uint(struct cdcd_writer *w, uint64_t v);
/* Base64 with quotes, standard alphabet with padding; url: the URL-safe one. */
void cdcd_json_base64(struct cdcd_writer *w, const void *p, size_t n, bool url);

#endif
