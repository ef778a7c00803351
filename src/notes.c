#include <cdcd/batch.h>
#include <cdcd/notes.h>

#include <stdlib.h>

struct item {
    struct cdcd_slice key, value; /* owned */
};

/* Sorted by key: a few thousand tables at most, changed seldom. */
struct cdcd_notes {
    struct item *items;
    size_t n, cap;
};

struct cdcd_notes *cdcd_notes_new(void)
{
    return cdcd_xcalloc(1, sizeof(struct cdcd_notes));
}

static void item_free(struct item *i)
{
    free((char *)(uintptr_t)i->key.ptr);
    free((char *)(uintptr_t)i->value.ptr);
}

void cdcd_notes_clear(struct cdcd_notes *n)
{
    for (size_t i = 0; i < n->n; i++)
        item_free(&n->items[i]);
    n->n = 0;
}

void cdcd_notes_free(struct cdcd_notes *n)
{
    if (!n)
        return;
    cdcd_notes_clear(n);
    free(n->items);
    free(n);
}

static int compare(struct cdcd_slice a, struct cdcd_slice b)
{
    int c = memcmp(a.ptr, b.ptr, a.len < b.len ? a.len : b.len);
    return c ? c : (a.len > b.len) - (a.len < b.len);
}

/* Where the key is or belongs. */
static size_t place(const struct cdcd_notes *n, struct cdcd_slice key, bool *found)
{
    size_t lo = 0, hi = n->n;
    *found = false;
    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;
        int c = compare(n->items[mid].key, key);
        if (c == 0) {
            *found = true;
            return mid;
        }
        if (c < 0)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo;
}

static struct cdcd_slice dup(struct cdcd_slice s)
{
    return (struct cdcd_slice){cdcd_xstrndup(s.ptr, s.len), s.len};
}

void cdcd_notes_set(struct cdcd_notes *n, struct cdcd_slice key, struct cdcd_slice value)
{
    bool found;
    size_t i = place(n, key, &found);
    if (found && !value.ptr) {
        item_free(&n->items[i]);
        n->n--;
        memmove(n->items + i, n->items + i + 1, (n->n - i) * sizeof *n->items);
    } else if (found) {
        free((char *)(uintptr_t)n->items[i].value.ptr);
        n->items[i].value = dup(value);
    } else if (value.ptr) {
        if (n->n == n->cap) {
            n->cap = n->cap ? n->cap * 2 : 16;
            n->items = cdcd_xrealloc(n->items, n->cap * sizeof *n->items);
        }
        memmove(n->items + i + 1, n->items + i, (n->n - i) * sizeof *n->items);
        n->items[i] = (struct item){dup(key), dup(value)};
        n->n++;
    }
}

struct cdcd_slice cdcd_notes_get(const struct cdcd_notes *n, struct cdcd_slice key)
{
    bool found;
    size_t i = place(n, key, &found);
    return found ? n->items[i].value : (struct cdcd_slice){NULL, 0};
}

size_t cdcd_notes_count(const struct cdcd_notes *n)
{
    return n->n;
}

void cdcd_notes_at(const struct cdcd_notes *n, size_t i, struct cdcd_slice *key,
                   struct cdcd_slice *value)
{
    *key = n->items[i].key;
    *value = n->items[i].value;
}

void cdcd_batch_note(struct cdcd_batch *b, struct cdcd_slice key, struct cdcd_slice value)
{
    struct cdcd_note *note = cdcd_arena_alloc(&b->arena, sizeof *note);
    *note = (struct cdcd_note){.key = {cdcd_arena_dup(&b->arena, key.ptr, key.len), key.len}};
    if (value.ptr)
        note->value = (struct cdcd_slice){cdcd_arena_dup(&b->arena, value.ptr, value.len),
                                          value.len};
    if (b->last_note)
        b->last_note->next = note;
    else
        b->notes = note;
    b->last_note = note;
}
