/*
 * gtid.c: sets of global transaction ids of both servers.
 *
 * MySQL: entries sorted by (uuid, tag), each with its intervals sorted and apart. A stream adds one
 * number a transaction, nearly always right behind the last interval of the entry that was used
 * last, so that place is looked at first; a gap is found by going back from the end, where the
 * numbers of parallel commits close up again.
 *
 * MariaDB: one id a domain, the one that was added last, as in gtid_binlog_pos: the order in the
 * log decides, not the number.
 *
 * Bytes of COM_BINLOG_DUMP_GTID: sql/rpl_gtid_set.cc, Gtid_set::encode.
 */
#include "my.h"

#include <inttypes.h>
#include <stdlib.h>

#define TAG_MAX 32

/* Both ends are in it. */
struct interval {
    uint64_t first, last;
};

struct entry {
    uint8_t uuid[16];
    char tag[TAG_MAX + 1];
    struct interval *v;
    size_t n, cap;
};

struct domain {
    uint32_t domain, server;
    uint64_t number;
};

struct my_gtid_set {
    enum my_flavor flavor;
    struct entry *entries; /* MySQL */
    struct domain *domains;
    size_t n, cap; /* of either */
    size_t last;   /* entry that was used last */
};

struct my_gtid_set *my_gtid_set_new(enum my_flavor flavor)
{
    struct my_gtid_set *s = cdcd_xcalloc(1, sizeof *s);
    s->flavor = flavor;
    return s;
}

static void clear(struct my_gtid_set *s)
{
    for (size_t i = 0; s->flavor == MY_MYSQL && i < s->n; i++)
        free(s->entries[i].v);
    s->n = s->last = 0;
}

void my_gtid_set_free(struct my_gtid_set *s)
{
    if (!s)
        return;
    clear(s);
    free(s->entries);
    free(s->domains);
    free(s);
}

struct my_gtid_set *my_gtid_set_copy(const struct my_gtid_set *s)
{
    struct my_gtid_set *c = my_gtid_set_new(s->flavor);
    if (s->n == 0)
        return c;
    c->n = c->cap = s->n;
    if (s->flavor == MY_MARIADB) {
        c->domains = cdcd_xmalloc(s->n * sizeof *c->domains);
        memcpy(c->domains, s->domains, s->n * sizeof *c->domains);
        return c;
    }
    c->entries = cdcd_xmalloc(s->n * sizeof *c->entries);
    for (size_t i = 0; i < s->n; i++) {
        struct entry *e = &c->entries[i];
        *e = s->entries[i];
        e->cap = e->n;
        e->v = cdcd_xmalloc((e->n ? e->n : 1) * sizeof *e->v);
        if (e->n)
            memcpy(e->v, s->entries[i].v, e->n * sizeof *e->v);
    }
    return c;
}

bool my_gtid_set_empty(const struct my_gtid_set *s)
{
    return s->n == 0;
}

/* ---- MySQL: entries and intervals ---- */

static int entry_order(const struct entry *e, const uint8_t uuid[16], const char *tag)
{
    int c = memcmp(e->uuid, uuid, 16);
    return c ? c : strcmp(e->tag, tag);
}

/* Index of the entry, or of where it belongs. */
static size_t entry_find(const struct my_gtid_set *s, const uint8_t uuid[16], const char *tag,
                         bool *found)
{
    size_t lo = 0, hi = s->n;
    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;
        int c = entry_order(&s->entries[mid], uuid, tag);
        if (c == 0) {
            *found = true;
            return mid;
        }
        if (c < 0)
            lo = mid + 1;
        else
            hi = mid;
    }
    *found = false;
    return lo;
}

static struct entry *entry_make(struct my_gtid_set *s, const uint8_t uuid[16], const char *tag)
{
    bool found = false;
    if (s->last < s->n && entry_order(&s->entries[s->last], uuid, tag) == 0)
        return &s->entries[s->last];
    size_t i = entry_find(s, uuid, tag, &found);
    if (!found) {
        if (s->n == s->cap) {
            s->cap = s->cap ? s->cap * 2 : 4;
            s->entries = cdcd_xrealloc(s->entries, s->cap * sizeof *s->entries);
        }
        memmove(&s->entries[i + 1], &s->entries[i], (s->n - i) * sizeof *s->entries);
        s->n++;
        memset(&s->entries[i], 0, sizeof s->entries[i]);
        memcpy(s->entries[i].uuid, uuid, 16);
        /* A tag of struct my_gtid is no longer. */
        memcpy(s->entries[i].tag, tag, strnlen(tag, sizeof s->entries[i].tag - 1));
    }
    s->last = i;
    return &s->entries[i];
}

static void interval_insert(struct entry *e, size_t at, uint64_t first, uint64_t last)
{
    if (e->n == e->cap) {
        e->cap = e->cap ? e->cap * 2 : 4;
        e->v = cdcd_xrealloc(e->v, e->cap * sizeof *e->v);
    }
    memmove(&e->v[at + 1], &e->v[at], (e->n - at) * sizeof *e->v);
    e->v[at] = (struct interval){first, last};
    e->n++;
}

/* The first interval that ends at `number - 1` or later: the one to join, or the one to stand
 * before. */
static size_t interval_find(const struct entry *e, uint64_t number)
{
    if (e->n == 0 || e->v[e->n - 1].last + 1 < number)
        return e->n;
    size_t lo = 0, hi = e->n;
    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;
        if (e->v[mid].last + 1 < number)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo;
}

static void entry_add(struct entry *e, uint64_t first, uint64_t last)
{
    size_t n = e->n;
    if (n && first == e->v[n - 1].last + 1) {
        e->v[n - 1].last = last;
        return;
    }
    size_t i = interval_find(e, first);
    if (i == n || e->v[i].first > last + 1) {
        interval_insert(e, i, first, last);
        return;
    }
    struct interval *v = &e->v[i];
    if (first < v->first)
        v->first = first;
    if (last > v->last)
        v->last = last;
    size_t j = i + 1; /* those that it has reached now */
    for (; j < n && e->v[j].first <= v->last + 1; j++) {
        if (e->v[j].last > v->last)
            v->last = e->v[j].last;
    }
    memmove(&e->v[i + 1], &e->v[j], (n - j) * sizeof *e->v);
    e->n -= j - i - 1;
}

static bool entry_has(const struct entry *e, uint64_t first, uint64_t last)
{
    size_t i = interval_find(e, first);
    if (i < e->n && e->v[i].last + 1 == first)
        i++;
    return i < e->n && e->v[i].first <= first && e->v[i].last >= last;
}

/* ---- MariaDB: domains ---- */

static struct domain *domain_find(const struct my_gtid_set *s, uint32_t domain)
{
    for (size_t i = 0; i < s->n; i++) {
        if (s->domains[i].domain == domain)
            return &s->domains[i];
    }
    return NULL;
}

static void domain_add(struct my_gtid_set *s, const struct my_gtid *g)
{
    struct domain *d = domain_find(s, g->domain);
    if (!d) {
        if (s->n == s->cap) {
            s->cap = s->cap ? s->cap * 2 : 4;
            s->domains = cdcd_xrealloc(s->domains, s->cap * sizeof *s->domains);
        }
        size_t i = s->n++;
        for (; i > 0 && s->domains[i - 1].domain > g->domain; i--)
            s->domains[i] = s->domains[i - 1];
        d = &s->domains[i];
    }
    *d = (struct domain){g->domain, g->server, g->number};
}

/* ---- operations ---- */

void my_gtid_set_add(struct my_gtid_set *s, const struct my_gtid *g)
{
    if (s->flavor == MY_MARIADB)
        domain_add(s, g);
    else
        entry_add(entry_make(s, g->uuid, g->tag), g->number, g->number);
}

bool my_gtid_set_has(const struct my_gtid_set *s, const struct my_gtid *g)
{
    bool found = false;
    if (s->flavor == MY_MARIADB) {
        const struct domain *d = domain_find(s, g->domain);
        return d && d->number >= g->number;
    }
    size_t i = entry_find(s, g->uuid, g->tag, &found);
    return found && entry_has(&s->entries[i], g->number, g->number);
}

bool my_gtid_set_contains(const struct my_gtid_set *s, const struct my_gtid_set *sub)
{
    for (size_t i = 0; i < sub->n; i++) {
        bool found = false;
        if (s->flavor == MY_MARIADB) {
            const struct domain *d = domain_find(s, sub->domains[i].domain);
            if (!d || d->number < sub->domains[i].number)
                return false;
            continue;
        }
        const struct entry *e = &sub->entries[i];
        size_t at = entry_find(s, e->uuid, e->tag, &found);
        if (!found)
            return false;
        for (size_t k = 0; k < e->n; k++) {
            if (!entry_has(&s->entries[at], e->v[k].first, e->v[k].last))
                return false;
        }
    }
    return true;
}

/* ---- text to set ---- */

struct scan {
    const char *p, *end;
};

static void skip_blank(struct scan *s)
{
    while (s->p < s->end && (*s->p == ' ' || *s->p == '\n' || *s->p == '\r' || *s->p == '\t'))
        s->p++;
}

static bool take(struct scan *s, char c)
{
    skip_blank(s);
    if (s->p >= s->end || *s->p != c)
        return false;
    s->p++;
    skip_blank(s);
    return true;
}

static bool at_digit(const struct scan *s)
{
    return s->p < s->end && *s->p >= '0' && *s->p <= '9';
}

static bool take_number(struct scan *s, uint64_t max, uint64_t *out)
{
    uint64_t v = 0;
    if (!at_digit(s))
        return false;
    for (; at_digit(s); s->p++) {
        unsigned d = (unsigned)(*s->p - '0');
        if (v > (max - d) / 10)
            return false;
        v = v * 10 + d;
    }
    *out = v;
    return true;
}

static int hex(char c)
{
    return c >= '0' && c <= '9'   ? c - '0'
           : c >= 'a' && c <= 'f' ? c - 'a' + 10
           : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                  : -1;
}

/* 8-4-4-4-12. */
static bool take_uuid(struct scan *s, uint8_t out[16])
{
    if (s->end - s->p < 36)
        return false;
    for (int i = 0, k = 0; i < 36; i++) {
        char c = s->p[i];
        if (i == 8 || i == 13 || i == 18 || i == 23) {
            if (c != '-')
                return false;
            continue;
        }
        int h = hex(c);
        if (h < 0)
            return false;
        out[k / 2] = (uint8_t)(k % 2 ? out[k / 2] | h : h << 4);
        k++;
    }
    s->p += 36;
    return true;
}

/* Letter or underscore, then those and digits; the server keeps tags in lower case. */
static bool take_tag(struct scan *s, char out[TAG_MAX + 1])
{
    size_t n = 0;
    while (s->p < s->end) {
        char c = *s->p;
        if (c >= 'A' && c <= 'Z')
            c = (char)(c - 'A' + 'a');
        if (!(c >= 'a' && c <= 'z') && c != '_' && !(n && c >= '0' && c <= '9'))
            break;
        if (n == TAG_MAX)
            return false;
        out[n++] = c;
        s->p++;
    }
    out[n] = 0;
    return n > 0;
}

/* The largest number is 2^63 - 2: GNO_END in sql/rpl_gtid.h. */
#define GNO_MAX (UINT64_MAX / 2 - 1)

static bool take_interval(struct scan *s, uint64_t *first, uint64_t *last)
{
    if (!take_number(s, GNO_MAX, first) || *first == 0)
        return false;
    *last = *first;
    return !take(s, '-') || (take_number(s, GNO_MAX, last) && *last >= *first);
}

/* uuid[:tag]:interval[:interval]...[:tag:interval...] */
static bool take_entry(struct scan *s, struct my_gtid_set *out)
{
    uint8_t uuid[16];
    char tag[TAG_MAX + 1] = "";
    if (!take_uuid(s, uuid))
        return false;
    bool some = false, tagged = false;
    while (take(s, ':')) {
        if (!at_digit(s)) {
            if (tagged || !take_tag(s, tag))
                return false;
            tagged = true; /* and an interval must follow */
            continue;
        }
        uint64_t first, last;
        if (!take_interval(s, &first, &last))
            return false;
        entry_add(entry_make(out, uuid, tag), first, last);
        some = true;
        tagged = false;
    }
    return some && !tagged;
}

static bool take_domain(struct scan *s, struct my_gtid *g)
{
    uint64_t domain, server;
    if (!take_number(s, UINT32_MAX, &domain) || !take(s, '-') ||
        !take_number(s, UINT32_MAX, &server) || !take(s, '-') ||
        !take_number(s, UINT64_MAX, &g->number))
        return false;
    g->domain = (uint32_t)domain;
    g->server = (uint32_t)server;
    return true;
}

bool my_gtid_set_parse(const char *text, size_t n, struct my_gtid_set *out)
{
    struct scan s = {text, text + n};
    clear(out);
    for (skip_blank(&s); s.p < s.end; skip_blank(&s)) {
        struct my_gtid g = {.flavor = MY_MARIADB};
        if (take(&s, ',')) /* the server lets empty members pass, too */
            continue;
        bool ok = out->flavor == MY_MARIADB ? take_domain(&s, &g) && !domain_find(out, g.domain)
                                            : take_entry(&s, out);
        if (!ok) {
            clear(out);
            return false;
        }
        if (out->flavor == MY_MARIADB)
            domain_add(out, &g);
        skip_blank(&s);
        if (s.p < s.end && *s.p != ',') {
            clear(out);
            return false;
        }
    }
    return true;
}

bool my_gtid_parse(const char *text, size_t n, enum my_flavor flavor, struct my_gtid *out)
{
    struct scan s = {text, text + n};
    memset(out, 0, sizeof *out);
    out->flavor = flavor;
    if (flavor == MY_MARIADB)
        return take_domain(&s, out) && s.p == s.end;
    if (!take_uuid(&s, out->uuid) || !take(&s, ':'))
        return false;
    if (!at_digit(&s) && (!take_tag(&s, out->tag) || !take(&s, ':')))
        return false;
    return take_number(&s, GNO_MAX, &out->number) && out->number > 0 && s.p == s.end;
}

/* ---- set to text ---- */

static void write_uuid(const uint8_t uuid[16], struct cdcd_buf *out)
{
    static const char digits[] = "0123456789abcdef";
    char text[36];
    for (int i = 0, k = 0; i < 16; i++) {
        if (i == 4 || i == 6 || i == 8 || i == 10)
            text[k++] = '-';
        text[k++] = digits[uuid[i] >> 4];
        text[k++] = digits[uuid[i] & 15];
    }
    cdcd_buf_add(out, text, sizeof text);
}

static void write_number(uint64_t v, struct cdcd_buf *out)
{
    char text[20], *p = text + sizeof text;
    do
        *--p = (char)('0' + v % 10);
    while (v /= 10);
    cdcd_buf_add(out, p, (size_t)(text + sizeof text - p));
}

static void write_entry(const struct entry *e, bool same_uuid, struct cdcd_buf *out)
{
    if (!same_uuid)
        write_uuid(e->uuid, out);
    if (e->tag[0]) {
        cdcd_buf_add(out, ":", 1);
        cdcd_buf_adds(out, e->tag);
    }
    for (size_t i = 0; i < e->n; i++) {
        cdcd_buf_add(out, ":", 1);
        write_number(e->v[i].first, out);
        if (e->v[i].last > e->v[i].first) {
            cdcd_buf_add(out, "-", 1);
            write_number(e->v[i].last, out);
        }
    }
}

static void write_domain(uint32_t domain, uint32_t server, uint64_t number, struct cdcd_buf *out)
{
    write_number(domain, out);
    cdcd_buf_add(out, "-", 1);
    write_number(server, out);
    cdcd_buf_add(out, "-", 1);
    write_number(number, out);
}

void my_gtid_set_write(const struct my_gtid_set *s, struct cdcd_buf *out)
{
    for (size_t i = 0; i < s->n; i++) {
        if (s->flavor == MY_MARIADB) {
            const struct domain *d = &s->domains[i];
            if (i)
                cdcd_buf_add(out, ",", 1);
            write_domain(d->domain, d->server, d->number, out);
            continue;
        }
        bool same = i > 0 && memcmp(s->entries[i].uuid, s->entries[i - 1].uuid, 16) == 0;
        if (i && !same)
            cdcd_buf_add(out, ",", 1);
        write_entry(&s->entries[i], same, out);
    }
}

void my_gtid_write(const struct my_gtid *g, struct cdcd_buf *out)
{
    if (g->flavor == MY_MARIADB) {
        write_domain(g->domain, g->server, g->number, out);
        return;
    }
    write_uuid(g->uuid, out);
    cdcd_buf_add(out, ":", 1);
    if (g->tag[0]) {
        cdcd_buf_adds(out, g->tag);
        cdcd_buf_add(out, ":", 1);
    }
    write_number(g->number, out);
}

/* ---- set to bytes ---- */

static void put_u64(uint64_t v, struct cdcd_buf *out)
{
    uint8_t b[8];
    for (int i = 0; i < 8; i++)
        b[i] = (uint8_t)(v >> (8 * i));
    cdcd_buf_add(out, b, 8);
}

/*
 * u64 number of entries, then each entry: uuid 16, u64 number of intervals, and for each the first
 * number and the one behind the last, u64 each; all little endian.
 *
 * With tags (8.3): the u64 has 1, the format, in its lowest and its highest byte and the number of
 * (uuid, tag) pairs between them, and the tag stands behind the uuid: its length as a variable
 * length integer, which for such short ones is one byte of twice the length, and its bytes.
 */
void my_gtid_set_encode(const struct my_gtid_set *s, struct cdcd_buf *out)
{
    bool tagged = false;
    if (s->flavor != MY_MYSQL)
        return;
    for (size_t i = 0; i < s->n; i++)
        tagged = tagged || s->entries[i].tag[0];
    put_u64(tagged ? UINT64_C(1) << 56 | (uint64_t)s->n << 8 | 1 : s->n, out);
    for (size_t i = 0; i < s->n; i++) {
        const struct entry *e = &s->entries[i];
        cdcd_buf_add(out, e->uuid, 16);
        if (tagged) {
            uint8_t len = (uint8_t)(strlen(e->tag) << 1);
            cdcd_buf_add(out, &len, 1);
            cdcd_buf_adds(out, e->tag);
        }
        put_u64(e->n, out);
        for (size_t k = 0; k < e->n; k++) {
            put_u64(e->v[k].first, out);
            put_u64(e->v[k].last + 1, out);
        }
    }
}
