/*
 * charset: texts of all charsets of the servers -> UTF-8.
 *
 * A charset of several bytes gets a table of its two-byte characters when it is first met: iconv's
 * mapping, with the server's own where they differ, so that a streamed value is what a SELECT
 * shows. Nothing is locked after that but for GB18030's four-byte characters.
 */
#include "charset_table.h"
#include "value.h"

#include <iconv.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <strings.h>

struct my_charset {
    const struct my_charset_row *row;
    _Atomic(uint16_t *) two;   /* MULTI: by lead byte and second byte; 0: no character */
    _Atomic(uint16_t *) three; /* EUC-JP: behind 0x8f */
    iconv_t iconv;             /* under the lock */
};

static struct my_charset charsets[MY_CHARSETS];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* ---- collations ---- */

/* MariaDB 10.10 and later: 2048 + 256 * charset + 8 * tailoring + 4 (no padding) + 2 (accents) + 1
 * (case). */
enum { UCA1400_FIRST = 2048, UCA1400_LAST = 2048 + 5 * 256 - 1 };

static const char *const uca1400_charsets[] = {"utf8mb3", "utf8mb4", "ucs2", "utf16", "utf32"};

static int row_of_name(const char *name)
{
    if (strcasecmp(name, "utf8") == 0) /* what utf8mb3 was called before MySQL 8.0.28 */
        name = "utf8mb3";
    for (int i = 0; i < MY_CHARSETS; i++) {
        if (strcasecmp(my_charset_rows[i].name, name) == 0)
            return i;
    }
    return -1;
}

static int row_of_collation(uint32_t id)
{
    size_t low = 0, high = my_collations;

    if (id >= UCA1400_FIRST && id <= UCA1400_LAST)
        return row_of_name(uca1400_charsets[(id - UCA1400_FIRST) / 256]);
    while (low < high) {
        size_t mid = (low + high) / 2;
        if (my_collation_rows[mid].id == id)
            return my_collation_rows[mid].charset;
        if (my_collation_rows[mid].id < id)
            low = mid + 1;
        else
            high = mid;
    }
    return -1;
}

const char *my_charset_name(uint32_t collation)
{
    int row = row_of_collation(collation);

    return row < 0 ? NULL : my_charset_rows[row].name;
}

uint32_t my_charset_default_collation(const char *charset)
{
    int row = row_of_name(charset);

    return row < 0 ? 0 : my_charset_rows[row].collation;
}

static uint32_t uca1400_by_name(uint32_t charset, const char *rest)
{
    for (uint32_t t = 0; t < my_uca1400_count; t++) {
        for (uint32_t flags = 0; flags < 8; flags++) {
            char name[64];
            snprintf(name, sizeof name, "%s%s%s%s", my_uca1400_tailorings[t],
                     flags & 4 ? "_nopad" : "", flags & 2 ? "_as" : "_ai",
                     flags & 1 ? "_cs" : "_ci");
            if (strcasecmp(name, rest) == 0)
                return UCA1400_FIRST + 256 * charset + 8 * t + flags;
        }
    }
    return 0;
}

uint32_t my_collation_by_name(const char *collation)
{
    char name[128];

    if (strncasecmp(collation, "utf8_", 5) == 0)
        snprintf(name, sizeof name, "utf8mb3_%s", collation + 5);
    else
        snprintf(name, sizeof name, "%s", collation);
    for (size_t i = 0; i < my_collations; i++) {
        if (strcasecmp(my_collation_rows[i].name, name) == 0)
            return my_collation_rows[i].id;
    }
    for (uint32_t i = 0; i < sizeof uca1400_charsets / sizeof *uca1400_charsets; i++) {
        size_t n = strlen(uca1400_charsets[i]);
        if (strncasecmp(name, uca1400_charsets[i], n) == 0 &&
            strncasecmp(name + n, "_uca1400", 8) == 0)
            return uca1400_by_name(i, name + n + 8);
    }
    return 0;
}

/* ---- tables of characters of several bytes ---- */

/* 0: iconv has none, or one that no table has room for. */
static uint32_t ask_iconv(iconv_t cd, const uint8_t *p, size_t n)
{
    uint8_t out[16];
    char *from = (char *)(uintptr_t)p, *to = (char *)out;
    size_t left = n, room = sizeof out;

    iconv(cd, NULL, NULL, NULL, NULL);
    if (iconv(cd, &from, &left, &to, &room) != 0 || left)
        return 0;
    iconv(cd, NULL, NULL, &to, &room);
    if (sizeof out - room != 4)
        return 0;
    return (uint32_t)out[0] << 24 | (uint32_t)out[1] << 16 | (uint32_t)out[2] << 8 | out[3];
}

static uint16_t *make_table(const struct my_charset *c, uint8_t prefix)
{
    uint16_t *table = cdcd_xcalloc(1 << 16, sizeof *table);

    for (unsigned lead = 0x81; lead < 0xff; lead++) {
        for (unsigned trail = 0x30; trail < 0xff; trail++) {
            uint8_t bytes[3] = {prefix, (uint8_t)lead, (uint8_t)trail};
            uint32_t u = prefix ? ask_iconv(c->iconv, bytes, 3) : ask_iconv(c->iconv, bytes + 1, 2);
            table[lead << 8 | trail] = u < 0x10000 ? (uint16_t)u : 0;
        }
    }
    for (size_t i = 0; i < c->row->nruns; i++) {
        const struct my_charset_run *r = &c->row->runs[i];
        for (unsigned k = 0; k < r->n && r->code >> 16 == prefix; k++)
            table[(r->code + k) & 0xffff] = (uint16_t)(r->unicode ? r->unicode + k : 0);
    }
    return table;
}

/* Of EUC-JP, whose third table is behind 0x8f. */
static bool is_euc_jp(const struct my_charset_row *row)
{
    return strncmp(row->iconv, "EUC-JP", 6) == 0;
}

static bool is_shift_jis(const struct my_charset_row *row)
{
    return strcmp(row->iconv, "SJIS") == 0 || strcmp(row->iconv, "CP932") == 0;
}

static bool is_gb18030(const struct my_charset_row *row)
{
    return strcmp(row->iconv, "GB18030") == 0;
}

static enum cdcd_rc prepare(struct my_charset *c, struct cdcd_error *err)
{
    enum cdcd_rc rc = CDCD_OK;

    if (atomic_load_explicit(&c->two, memory_order_acquire))
        return CDCD_OK;
    pthread_mutex_lock(&lock);
    if (!atomic_load(&c->two)) {
        c->iconv = iconv_open("UTF-32BE", c->row->iconv);
        if (c->iconv == (iconv_t)-1) {
            rc = cdcd_error_set(err, CDCD_ERR_CONFIG,
                                "the C library cannot convert from %s, which charset %s needs; "
                                "install its conversion modules (gconv)",
                                c->row->iconv, c->row->name);
        } else {
            if (is_euc_jp(c->row))
                atomic_store(&c->three, make_table(c, 0x8f));
            atomic_store_explicit(&c->two, make_table(c, 0), memory_order_release);
        }
    }
    pthread_mutex_unlock(&lock);
    return rc;
}

/* ---- finding ---- */

static enum cdcd_rc find(int row, const struct my_charset **out, struct cdcd_error *err)
{
    enum my_charset_kind kind = my_charset_rows[row].kind;
    struct my_charset *c = &charsets[row];
    enum cdcd_rc rc = CDCD_OK;

    *out = NULL;
    if (kind == MY_CS_UTF8)
        return CDCD_OK;
    if (kind == MY_CS_BINARY)
        return cdcd_error_set(err, CDCD_ERR_CONFIG, "binary is no charset of text");
    pthread_mutex_lock(&lock);
    c->row = &my_charset_rows[row];
    pthread_mutex_unlock(&lock);
    if (kind == MY_CS_MULTI)
        rc = prepare(c, err);
    if (rc == CDCD_OK)
        *out = c;
    return rc;
}

enum cdcd_rc my_charset_by_collation(uint32_t collation, const struct my_charset **out,
                                     struct cdcd_error *err)
{
    int row = row_of_collation(collation);

    *out = NULL;
    if (row < 0)
        return cdcd_error_set(err, CDCD_ERR_CONFIG,
                              "collation %u is not known to this version of cdcd", collation);
    return find(row, out, err);
}

enum cdcd_rc my_charset_by_name(const char *name, const struct my_charset **out,
                                struct cdcd_error *err)
{
    int row = row_of_name(name);

    *out = NULL;
    if (row < 0)
        return cdcd_error_set(err, CDCD_ERR_CONFIG,
                              "charset %s is not known to this version of cdcd", name);
    return find(row, out, err);
}

/* ---- decoding ---- */

static char *put_utf8(char *w, uint32_t u)
{
    if (u < 0x80) {
        *w++ = (char)u;
    } else if (u < 0x800) {
        *w++ = (char)(0xc0 | u >> 6);
        *w++ = (char)(0x80 | (u & 63));
    } else if (u < 0x10000) {
        *w++ = (char)(0xe0 | u >> 12);
        *w++ = (char)(0x80 | (u >> 6 & 63));
        *w++ = (char)(0x80 | (u & 63));
    } else {
        *w++ = (char)(0xf0 | u >> 18);
        *w++ = (char)(0x80 | (u >> 12 & 63));
        *w++ = (char)(0x80 | (u >> 6 & 63));
        *w++ = (char)(0x80 | (u & 63));
    }
    return w;
}

#define NO_CHARACTER UINT32_MAX

static bool is_character(uint32_t u)
{
    return u < 0x110000 && (u < 0xd800 || u >= 0xe000);
}

static uint32_t next_single(const struct my_charset_row *row, const uint8_t **p)
{
    uint8_t b = *(*p)++;
    uint16_t u;

    if (row->kind == MY_CS_SWE7)
        u = b < 128 ? row->single[b] : 0;
    else
        u = b < 128 ? b : row->single[b - 128];
    return u || b == 0 ? u : NO_CHARACTER;
}

static uint32_t next_utf16(const uint8_t **p, const uint8_t *end, bool little, bool pairs)
{
    uint32_t unit[2];

    for (int i = 0; i < 2; i++, *p += 2) {
        if (end - *p < 2)
            return NO_CHARACTER;
        unit[i] = little ? (uint32_t)((*p)[0] | (*p)[1] << 8) : (uint32_t)((*p)[0] << 8 | (*p)[1]);
        if (i == 0 && (!pairs || unit[0] < 0xd800 || unit[0] >= 0xdc00)) {
            *p += 2;
            return is_character(unit[0]) ? unit[0] : NO_CHARACTER;
        }
    }
    if (unit[1] < 0xdc00 || unit[1] >= 0xe000)
        return NO_CHARACTER;
    return 0x10000 + ((unit[0] - 0xd800) << 10) + (unit[1] - 0xdc00);
}

static uint32_t next_utf32(const uint8_t **p, const uint8_t *end)
{
    if (end - *p < 4)
        return NO_CHARACTER;
    uint32_t u = (uint32_t)(*p)[0] << 24 | (uint32_t)(*p)[1] << 16 | (uint32_t)(*p)[2] << 8 |
                 (*p)[3];
    *p += 4;
    return is_character(u) ? u : NO_CHARACTER;
}

/* GB18030's characters of four bytes, the second of which is a digit. */
static uint32_t next_four(const struct my_charset *c, const uint8_t **p, const uint8_t *end)
{
    if (end - *p < 4)
        return NO_CHARACTER;
    const uint8_t *b = *p;
    uint32_t code = (uint32_t)b[0] << 24 | (uint32_t)b[1] << 16 | (uint32_t)b[2] << 8 | b[3];
    *p += 4;
    for (size_t i = 0; i < c->row->nruns; i++) {
        const struct my_charset_run *r = &c->row->runs[i];
        if (code >= r->code && code - r->code < r->n)
            return r->unicode + (code - r->code);
    }
    pthread_mutex_lock(&lock);
    uint32_t u = ask_iconv(c->iconv, b, 4);
    pthread_mutex_unlock(&lock);
    return u ? u : NO_CHARACTER;
}

static uint32_t next_multi(const struct my_charset *c, const uint8_t **p, const uint8_t *end)
{
    const uint8_t *b = *p;
    const uint16_t *table = c->two;

    if (b[0] < 0x80) {
        *p += 1;
        return b[0];
    }
    if (is_shift_jis(c->row) && b[0] >= 0xa1 && b[0] <= 0xdf) {
        *p += 1;
        return 0xff61 + (b[0] - 0xa1u);
    }
    if (end - b >= 2 && is_gb18030(c->row) && b[1] >= '0' && b[1] <= '9')
        return next_four(c, p, end);
    if (b[0] == 0x8f && is_euc_jp(c->row)) {
        table = c->three;
        b++;
    }
    if (end - b < 2)
        return NO_CHARACTER;
    *p = b + 2;
    uint16_t u = table[b[0] << 8 | b[1]];
    return u ? u : NO_CHARACTER;
}

static uint32_t next_character(const struct my_charset *c, const uint8_t **p, const uint8_t *end)
{
    switch (c->row->kind) {
    case MY_CS_MULTI: return next_multi(c, p, end);
    case MY_CS_UCS2: return next_utf16(p, end, false, false);
    case MY_CS_UTF16: return next_utf16(p, end, false, true);
    case MY_CS_UTF16LE: return next_utf16(p, end, true, true);
    case MY_CS_UTF32: return next_utf32(p, end);
    default: return next_single(c->row, p);
    }
}

enum cdcd_rc my_charset_decode(const struct my_charset *c, const char *text, size_t n,
                               struct cdcd_arena *a, struct cdcd_slice *out, struct cdcd_error *err)
{
    enum { BLOCK = 256 };
    const uint8_t *p = (const uint8_t *)text, *start = p, *end = p + n, *at = p;
    struct cdcd_writer w;
    uint32_t u = 0;

    cdcd_writer_begin(&w, a);
    while (p < end && u != NO_CHARACTER) {
        char *room = cdcd_writer_room(&w, BLOCK * 4);
        for (int i = 0; i < BLOCK && p < end; i++) {
            at = p;
            u = next_character(c, &p, end);
            if (u == NO_CHARACTER)
                break;
            room = put_utf8(room, u);
        }
        w.pos = room;
    }
    *out = cdcd_writer_end(&w);
    if (u == NO_CHARACTER)
        return cdcd_error_set(
            err, CDCD_ERR_DATA,
            "the bytes from offset %zu on (%02x%s) are no character of charset %s",
            (size_t)(at - start), *at, end - at > 1 ? " ..." : "", c->row->name);
    return CDCD_OK;
}
