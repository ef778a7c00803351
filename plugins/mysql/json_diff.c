/*
 * json_diff: partial updates of JSON values.
 *
 * A list of differences (json_diff.cc, Json_diff_vector::read_binary), each: operation 1, the path
 * with its length (length-encoded), and but for removals a binary document with its length
 * (length-encoded). They are applied one after the other (json_diff.cc, apply_json_diffs). The
 * document is opened only along the paths; all else stays as it is in the before image.
 */
#include "json_int.h"

enum { OP_REPLACE = 0, OP_INSERT = 1, OP_REMOVE = 2 };

struct item;

/* A value as it is in a document, or opened: then a box of items. */
struct node {
    struct my_json raw;
    bool open, object;
    uint32_t n, cap;
    struct item *items;
};

struct item {
    struct cdcd_slice key;
    struct node value;
};

/* ---- paths ---- */

struct leg {
    bool member;
    struct cdcd_slice name; /* unquoted */
    bool from_end;          /* [last-index] */
    uint32_t index;
};

static bool take(struct cdcd_cursor *c, char ch)
{
    if (c->pos == c->end || *c->pos != (uint8_t)ch)
        return false;
    c->pos++;
    return true;
}

static int hex_value(const uint8_t *p)
{
    int v = 0;

    for (int i = 0; i < 4; i++) {
        char ch = (char)p[i];
        int digit = ch >= '0' && ch <= '9'   ? ch - '0'
                    : ch >= 'a' && ch <= 'f' ? ch - 'a' + 10
                    : ch >= 'A' && ch <= 'F' ? ch - 'A' + 10
                                             : -1;
        if (digit < 0)
            return -1;
        v = v << 4 | digit;
    }
    return v;
}

static bool unescape(struct cdcd_cursor *c, char **w)
{
    static const char from[] = "\"\\/bfnrt", to[] = "\"\\/\b\f\n\r\t";
    uint8_t ch = cdcd_cur_u8(c);
    const char *at = ch ? strchr(from, ch) : NULL;

    if (at) {
        *(*w)++ = to[at - from];
        return true;
    }
    const uint8_t *digits = ch == 'u' ? cdcd_cur_take(c, 4) : NULL;
    int v = digits ? hex_value(digits) : -1;
    if (v < 0 || (v >= 0xd800 && v < 0xe000))
        return false;
    if (v < 0x80) {
        *(*w)++ = (char)v;
    } else if (v < 0x800) {
        *(*w)++ = (char)(0xc0 | v >> 6);
        *(*w)++ = (char)(0x80 | (v & 63));
    } else {
        *(*w)++ = (char)(0xe0 | v >> 12);
        *(*w)++ = (char)(0x80 | (v >> 6 & 63));
        *(*w)++ = (char)(0x80 | (v & 63));
    }
    return true;
}

static bool read_quoted(struct cdcd_cursor *c, struct cdcd_arena *a, struct cdcd_slice *out)
{
    char *s = cdcd_arena_alloc(a, cdcd_cur_left(c)), *w = s;

    while (!take(c, '"')) {
        uint8_t ch = cdcd_cur_u8(c);
        if (c->bad || (ch == '\\' && !unescape(c, &w)))
            return false;
        if (ch != '\\')
            *w++ = (char)ch;
    }
    *out = (struct cdcd_slice){s, (size_t)(w - s)};
    return true;
}

static bool read_member(struct cdcd_cursor *c, struct cdcd_arena *a, struct leg *out)
{
    out->member = true;
    if (take(c, '"'))
        return read_quoted(c, a, &out->name);
    const uint8_t *start = c->pos;
    while (c->pos < c->end && *c->pos != '.' && *c->pos != '[')
        c->pos++;
    out->name = (struct cdcd_slice){(const char *)start, (size_t)(c->pos - start)};
    return out->name.len > 0;
}

static bool read_number(struct cdcd_cursor *c, uint32_t *out)
{
    uint64_t v = 0;
    const uint8_t *start = c->pos;

    while (c->pos < c->end && *c->pos >= '0' && *c->pos <= '9' && v <= UINT32_MAX)
        v = v * 10 + (uint64_t)(*c->pos++ - '0');
    *out = (uint32_t)v;
    return c->pos > start && v <= UINT32_MAX;
}

static bool read_cell(struct cdcd_cursor *c, struct leg *out)
{
    static const char last[] = "last";

    if (cdcd_cur_left(c) >= sizeof last - 1 && memcmp(c->pos, last, sizeof last - 1) == 0) {
        c->pos += sizeof last - 1;
        out->from_end = true;
        if (take(c, ']'))
            return true;
        if (!take(c, '-'))
            return false;
    }
    return read_number(c, &out->index) && take(c, ']');
}

/* The next leg; false at the end, or with c->bad when there is none. */
static bool next_leg(struct cdcd_cursor *c, struct cdcd_arena *a, struct leg *out)
{
    *out = (struct leg){0};
    if (c->pos == c->end)
        return false;
    if (take(c, '.') ? read_member(c, a, out) : take(c, '[') && read_cell(c, out))
        return true;
    c->bad = true;
    return false;
}

/* ---- nodes ---- */

static bool open_node(struct node *n, struct cdcd_arena *a, size_t *budget)
{
    struct my_json_box b;

    if (n->open)
        return true;
    if (!my_json_is_box(&n->raw) || !my_json_open(&n->raw, &b))
        return false;
    size_t head = my_json_head_size(&b);
    if (head > *budget)
        return false;
    *budget -= head;
    n->object = b.object;
    n->n = n->cap = b.count;
    n->items = cdcd_arena_alloc(a, b.count * sizeof *n->items);
    for (uint32_t i = 0; i < b.count; i++) {
        struct item *it = &n->items[i];
        *it = (struct item){.key = {"", 0}};
        if (!my_json_at(&b, i, &it->value.raw) || (b.object && !my_json_key(&b, i, &it->key)))
            return false;
    }
    n->open = true;
    return true;
}

/* Where the leg's value is, or would be put: *found tells. */
static uint32_t find(const struct node *n, const struct leg *leg, bool *found)
{
    *found = false;
    if (n->object != leg->member)
        return 0;
    if (!n->object) {
        uint32_t i = leg->index;
        if (leg->from_end)
            i = leg->index < n->n ? n->n - 1 - leg->index : 0;
        *found = leg->from_end ? leg->index < n->n : i < n->n;
        return i < n->n ? i : n->n;
    }
    /* Shorter keys first, then by bytes. */
    uint32_t i = 0;
    for (; i < n->n; i++) {
        const struct cdcd_slice *key = &n->items[i].key;
        int order = key->len != leg->name.len ? (key->len < leg->name.len ? -1 : 1)
                                              : memcmp(key->ptr, leg->name.ptr, key->len);
        if (order >= 0) {
            *found = order == 0;
            break;
        }
    }
    return i;
}

static void insert(struct node *n, uint32_t at, struct item item, struct cdcd_arena *a)
{
    if (n->n == n->cap) {
        uint32_t cap = n->cap * 2 + 4;
        struct item *items = cdcd_arena_alloc(a, cap * sizeof *items);
        memcpy(items, n->items, n->n * sizeof *items);
        n->items = items;
        n->cap = cap;
    }
    memmove(n->items + at + 1, n->items + at, (n->n - at) * sizeof *n->items);
    n->items[at] = item;
    n->n++;
}

static bool change(struct node *parent, const struct leg *leg, int op, const struct my_json *value,
                   struct cdcd_arena *a)
{
    bool found;
    uint32_t at = find(parent, leg, &found);
    struct item item = {.key = leg->name, .value = {.raw = *value}};

    if (parent->object != leg->member)
        return false;
    switch (op) {
    case OP_REPLACE:
        if (!found)
            return false;
        parent->items[at].value = item.value;
        return true;
    case OP_INSERT:
        if (parent->object && found)
            return false;
        insert(parent, at, item, a);
        return true;
    default:
        if (!found)
            return false;
        parent->n--;
        memmove(parent->items + at, parent->items + at + 1,
                (parent->n - at) * sizeof *parent->items);
        return true;
    }
}

/* ---- differences ---- */

struct work {
    struct cdcd_arena *arena;
    struct node root;
    size_t budget;
};

static bool apply_at(struct work *wk, struct cdcd_slice path, int op, const struct my_json *value)
{
    struct cdcd_cursor c = cdcd_cur(path.ptr, path.len);
    struct node *at = &wk->root;
    struct leg leg, next;

    if (!take(&c, '$') || !next_leg(&c, wk->arena, &leg))
        return false;
    for (int depth = 0; depth < MY_JSON_MAX_DEPTH; depth++) {
        bool found;
        if (!open_node(at, wk->arena, &wk->budget))
            return false;
        if (!next_leg(&c, wk->arena, &next))
            return !c.bad && change(at, &leg, op, value, wk->arena);
        uint32_t i = find(at, &leg, &found);
        if (!found)
            return false;
        at = &at->items[i].value;
        leg = next;
    }
    return false;
}

static bool apply_one(struct work *wk, struct cdcd_cursor *c)
{
    uint8_t op = cdcd_cur_u8(c);
    struct cdcd_slice path = my_cur_lenenc_bytes(c);
    struct my_json value = {0};

    if (c->bad || op > OP_REMOVE)
        return false;
    if (op != OP_REMOVE) {
        struct cdcd_slice doc = my_cur_lenenc_bytes(c);
        if (c->bad || !my_json_root((const uint8_t *)doc.ptr, doc.len, &value))
            return false;
    }
    return apply_at(wk, path, op, &value);
}

static bool put_node(struct my_json_writer *o, const struct node *n)
{
    if (!n->open)
        return my_json_put(o, &n->raw);
    if (++o->depth > MY_JSON_MAX_DEPTH)
        return false;
    cdcd_writer_char(o->w, n->object ? '{' : '[');
    for (uint32_t i = 0; i < n->n; i++) {
        if (i)
            cdcd_writer_char(o->w, ',');
        if (n->object) {
            my_json_put_string(o->w, n->items[i].key);
            cdcd_writer_char(o->w, ':');
        }
        if (!put_node(o, &n->items[i].value))
            return false;
    }
    cdcd_writer_char(o->w, n->object ? '}' : ']');
    o->depth--;
    return true;
}

enum cdcd_rc my_json_apply(const uint8_t *doc, size_t ndoc, const uint8_t *diffs, size_t ndiffs,
                           struct cdcd_arena *a, struct cdcd_slice *out, struct cdcd_error *err)
{
    struct work wk = {.arena = a, .budget = ndoc + ndiffs};
    struct cdcd_cursor c = cdcd_cur(diffs, ndiffs);
    struct cdcd_writer w;

    if (!my_json_root(doc, ndoc, &wk.root.raw))
        return my_json_bad(err, doc, ndoc);
    for (int i = 1; cdcd_cur_left(&c); i++) {
        if (!apply_one(&wk, &c))
            return cdcd_error_set(err, CDCD_ERR_DATA,
                                  "difference %d of a partial update does not fit the JSON value "
                                  "of the before image",
                                  i);
    }
    struct my_json_writer o = {.w = &w, .budget = ndoc + ndiffs};
    cdcd_writer_begin(&w, a);
    bool ok = put_node(&o, &wk.root);
    *out = cdcd_writer_end(&w);
    return ok ? CDCD_OK : my_json_bad(err, doc, ndoc);
}
