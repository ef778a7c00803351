/*
 * stream_tables.c: table maps by id, and the shape that each one's rows are decoded with. See
 * stream_int.h.
 *
 * A server gives a table a new id each time it opens it, and counts from the start again when it is
 * restarted. So an entry is right for a map only when the bytes of both are the same, and all are
 * thrown away where a schema change or a new file may give the same bytes another meaning.
 */
#include "stream_int.h"

#include <inttypes.h>
#include <stdlib.h>

/* Ids that are not met again pile up: a cache that is full is emptied, between groups. */
#define MOST 4096

static void free_entry(struct my_entry *e)
{
    free(e->raw);
    free(e->db);
    free(e->table);
    free(e->why);
    my_shape_free(e->shape);
    free(e);
}

void my_entries_clear(struct my_entries *t)
{
    for (size_t i = 0; i < t->nbuckets; i++) {
        while (t->buckets[i]) {
            struct my_entry *e = t->buckets[i];
            t->buckets[i] = e->next;
            free_entry(e);
        }
    }
    t->n = 0;
    t->last = NULL;
}

static struct my_entry **place(struct my_entries *t, uint64_t id)
{
    if (!t->nbuckets) {
        t->nbuckets = 256;
        t->buckets = cdcd_xcalloc(t->nbuckets, sizeof(struct my_entry *));
    }
    struct my_entry **p = &t->buckets[id % t->nbuckets];
    while (*p && (*p)->id != id)
        p = &(*p)->next;
    return p;
}

struct my_entry *my_entries_get(struct my_entries *t, uint64_t id)
{
    if (!t->last || t->last->id != id)
        t->last = *place(t, id);
    return t->last;
}

struct my_entry *my_entries_put(struct my_stream *st, const struct my_table_map *map)
{
    struct my_entries *t = &st->entries;
    struct my_entry *e = my_entries_get(t, map->id);
    if (e && e->raw_len == map->raw.len && memcmp(e->raw, map->raw.ptr, e->raw_len) == 0)
        return e;
    if (t->n >= MOST && !st->replay && my_group_mark(st->group) == 0)
        my_entries_clear(t);
    struct my_entry **p = place(t, map->id);
    if ((e = *p)) {
        *p = e->next;
        free_entry(e);
        t->n--;
    }
    e = cdcd_xcalloc(1, sizeof *e);
    e->id = map->id;
    e->raw_len = map->raw.len;
    e->raw = cdcd_xmalloc(map->raw.len + 1);
    memcpy(e->raw, map->raw.ptr, map->raw.len);
    e->db = cdcd_xstrndup(map->db.ptr, map->db.len);
    e->table = cdcd_xstrndup(map->table.ptr, map->table.len);
    e->captured = my_filter_table(st->e.filter, e->db, e->table);
    e->next = *p;
    *p = e;
    t->n++;
    t->last = e;
    return e;
}

/* ---- shapes ---- */

/* True when the group that is being delivered is the last of the log: information_schema is then
 * as the group's tables are. */
static enum cdcd_rc at_end(struct my_stream *st, MYSQL *m, bool *out, struct cdcd_error *err)
{
    struct my_log_end end;
    if (my_log_end(m, st->e.server, &end, err) != CDCD_OK)
        return CDCD_ERROR;
    *out = my_file_compare(end.file, st->file) == 0 && end.pos == st->pos;
    my_log_end_free(&end);
    return CDCD_OK;
}

/* A new look at the table on the server, good only if nothing was logged before and after it. */
static enum cdcd_rc look_again(struct my_stream *st, const struct my_entry *e, bool *again,
                               struct cdcd_error *err)
{
    MYSQL *m;
    bool found;
    *again = false;
    if (!st->e.source)
        return CDCD_OK;
    if (my_source_sql(st->e.source, &m, err) != CDCD_OK || at_end(st, m, again, err) != CDCD_OK)
        return CDCD_ERROR;
    if (!*again)
        return CDCD_OK;
    if (my_shapes_refresh(st->e.shapes, m, e->db, e->table, &found, err) != CDCD_OK ||
        at_end(st, m, again, err) != CDCD_OK)
        return CDCD_ERROR;
    st->notes_due = true;
    *again = *again && found;
    return CDCD_OK;
}

/* Sequences are tables whose rows nobody asks for, unless they are listed. */
static bool unwanted(const struct my_stream *st, const struct my_shape *s)
{
    return s->sequence && st->e.cfg->table_include.n == 0;
}

enum cdcd_rc my_entry_shape(struct my_stream *st, struct my_entry *e,
                            const struct my_table_map *map, struct cdcd_error *err)
{
    bool fits = false, again;
    char why[256] = "";
    for (int turn = 0; turn < 2; turn++) {
        const struct my_table *model = my_shapes_find(st->e.shapes, e->db, e->table);
        if (my_shape_of_map(map, model, st->e.server, st->e.filter, &e->shape, &fits, why, err) !=
            CDCD_OK)
            return CDCD_ERROR;
        if (fits || turn)
            break;
        if (look_again(st, e, &again, err) != CDCD_OK)
            return CDCD_ERROR;
        if (!again)
            break;
    }
    free(e->why);
    e->why = NULL;
    if (!fits) {
        my_shape_free(e->shape);
        e->shape = NULL;
        e->why = cdcd_xstrdup(why);
    } else if (unwanted(st, e->shape)) {
        e->captured = false;
    }
    return CDCD_OK;
}

enum cdcd_rc my_entry_unknown(const struct my_stream *st, const struct my_entry *e,
                              struct cdcd_error *err)
{
    char where[256];
    return cdcd_error_set(err, CDCD_ERR_LOSS,
                          "a change of table %s.%s at %s cannot be decoded: %s. The log does not "
                          "name its columns and the known shape of the table is another one. Set "
                          "binlog_row_metadata=FULL on the server for what comes, and start a new "
                          "snapshot for what was",
                          e->db, e->table, my_stream_where(st, where),
                          e->why ? e->why : "its shape is unknown");
}
