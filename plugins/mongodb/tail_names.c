/*
 * tail_names.c: what became of collections: which one an operation is of, whether one was replaced
 * by another, what is left out and how often. See tail_int.h.
 *
 * A name stays and the collection under it may be another one: its documents came without events
 * (renameCollection, $out), and those that were there went without. That is told, or stops the
 * pipeline (collection.replaced.handling.mode). Operations name their collection by uuid, too: one
 * that still comes under the uuid of a collection that was dropped or renamed is not taken for one
 * of its successor. Not all servers log all there is: a new uuid under a name is no surprise after
 * any command about that name.
 */
#include "tail_int.h"

#include <inttypes.h>
#include <stdlib.h>

/* uuids of collections that are gone, the newest. */
#define GONE_MAX 1024

struct gone {
    uint8_t uuid[16];
    struct mg_name *from, *to; /* to NULL: it was dropped */
    bool told;
};

struct counted {
    struct counted *next;
    char *what;
    uint64_t n;
};

struct mg_collections {
    const struct mg_config *cfg;
    struct mg_filter *filter;
    struct mg_schemas *names;
    struct gone *gone; /* a ring */
    size_t ngone;
    struct counted *unknown;
    uint64_t migrated;
};

struct mg_collections *mg_collections_new(const struct mg_config *cfg, struct mg_filter *filter)
{
    struct mg_collections *x = cdcd_xcalloc(1, sizeof *x);
    x->cfg = cfg;
    x->filter = filter;
    x->names = mg_schemas_new();
    return x;
}

void mg_collections_free(struct mg_collections *x)
{
    if (!x)
        return;
    if (x->migrated)
        cdcd_info("mongodb", "%" PRIu64 " operations of chunk migrations were left out",
                  x->migrated);
    for (struct counted *c = x->unknown, *next; c; c = next) {
        next = c->next;
        cdcd_info("mongodb", "%" PRIu64 " unknown oplog operations \"%s\" were left out", c->n,
                  c->what);
        free(c->what);
        free(c);
    }
    mg_schemas_free(x->names);
    free(x->gone);
    free(x);
}

/* ---- what is left out ---- */

void mg_collections_unknown(struct mg_collections *x, struct cdcd_slice what, struct mg_time ts)
{
    struct counted *c = x->unknown;
    while (c && !cdcd_slice_eq(cdcd_slice_str(c->what), what))
        c = c->next;
    if (!c) {
        c = cdcd_xcalloc(1, sizeof *c);
        c->what = cdcd_xstrndup(what.ptr ? what.ptr : "", what.len);
        c->next = x->unknown;
        x->unknown = c;
        cdcd_warn("mongodb",
                  "the oplog entry at %" PRIu32 ":%" PRIu32
                  " has the operation \"%s\", which this version does not know: such ones are left "
                  "out and counted",
                  ts.t, ts.i, c->what);
    }
    c->n++;
}

void mg_collections_migrated(struct mg_collections *x, struct mg_time ts)
{
    if (x->migrated++ == 0)
        cdcd_info("mongodb",
                  "the oplog has operations of chunk migrations (the first at %" PRIu32 ":%" PRIu32
                  "): they move documents between shards and are left out",
                  ts.t, ts.i);
}

/* ---- collections that are gone ---- */

static struct gone *find_gone(struct mg_collections *x, const char *uuid)
{
    size_t n = x->ngone < GONE_MAX ? x->ngone : GONE_MAX;
    for (size_t i = 0; i < n; i++)
        if (memcmp(x->gone[i].uuid, uuid, 16) == 0)
            return &x->gone[i];
    return NULL;
}

static void add_gone(struct mg_collections *x, struct cdcd_slice uuid, struct mg_name *from,
                     struct mg_name *to)
{
    if (uuid.len != 16)
        return;
    if (!x->gone)
        x->gone = cdcd_xcalloc(GONE_MAX, sizeof *x->gone);
    struct gone *g = find_gone(x, uuid.ptr);
    if (!g)
        g = &x->gone[x->ngone++ % GONE_MAX];
    *g = (struct gone){.from = from, .to = to};
    memcpy(g->uuid, uuid.ptr, 16);
}

static enum cdcd_rc replaced(const struct mg_config *cfg, const struct mg_name *n, const char *how,
                             struct mg_time ts, struct cdcd_error *err)
{
    if (cfg->replaced == MG_REPLACED_FAIL)
        return cdcd_error_set(err, CDCD_ERR_LOSS,
                              "collection %s was replaced at %" PRIu32 ":%" PRIu32
                              " (%s): documents came and went without being logged one by one. "
                              "collection.replaced.handling.mode is fail: take a new snapshot",
                              n->label.ptr, ts.t, ts.i, how);
    cdcd_warn("mongodb",
              "collection %s was replaced at %" PRIu32 ":%" PRIu32
              " (%s): there are no events of the documents that came with it, nor of those that "
              "went. Take a new snapshot of it, or set collection.replaced.handling.mode: fail",
              n->label.ptr, ts.t, ts.i, how);
    return CDCD_OK;
}

enum cdcd_rc mg_replaced_by(const struct mg_config *cfg, const struct mg_name *from,
                            const struct mg_name *to, bool dropped, struct mg_time ts,
                            struct cdcd_error *err)
{
    char *how = cdcd_xasprintf("%s was renamed to it%s", from->label.ptr,
                               dropped ? ", and what was there was dropped" : "");
    enum cdcd_rc rc = replaced(cfg, to, how, ts, err);
    free(how);
    return rc;
}

/* ---- operations ---- */

/* Under another uuid than the operation before. */
static enum cdcd_rc other_uuid(struct mg_collections *x, const struct mg_op *op, struct mg_time ts,
                               struct mg_name **name, struct cdcd_error *err)
{
    struct mg_name *n = *name;
    struct gone *g = x->ngone ? find_gone(x, op->uuid.ptr) : NULL;
    if (g && g->from == n) {
        if (!g->told)
            cdcd_warn("mongodb",
                      "the oplog entry at %" PRIu32 ":%" PRIu32 " is of the collection that was %s "
                      "before it was %s%s: %s",
                      ts.t, ts.i, n->label.ptr, g->to ? "renamed to " : "dropped",
                      g->to ? g->to->label.ptr : "",
                      g->to ? "such ones are given as changes of that" : "such ones are left out");
        g->told = true;
        *name = g->to && g->to->captured ? g->to : NULL;
        return CDCD_OK;
    }
    if (!n->captured)
        return CDCD_OK;
    if (n->has_uuid && replaced(x->cfg, n, "its uuid is another one now", ts, err) != CDCD_OK)
        return CDCD_ERROR;
    n->has_uuid = true;
    memcpy(n->uuid, op->uuid.ptr, 16);
    return CDCD_OK;
}

enum cdcd_rc mg_collections_of(struct mg_collections *x, const struct mg_op *op, struct mg_time ts,
                               struct mg_name **out, struct cdcd_error *err)
{
    struct mg_name *n = mg_schemas_name(x->names, op->db, op->collection);
    mg_name_look(n, x->filter);
    *out = n;
    bool same = op->uuid.len != 16 || (n->has_uuid && memcmp(n->uuid, op->uuid.ptr, 16) == 0);
    if (same || (!n->captured && !x->ngone)) {
        *out = n->captured ? n : NULL;
        return CDCD_OK;
    }
    enum cdcd_rc rc = other_uuid(x, op, ts, out, err);
    if (*out && !(*out)->captured)
        *out = NULL;
    return rc;
}

/* ---- commands ---- */

static struct mg_name *name_of(struct mg_collections *x, struct cdcd_slice db,
                               struct cdcd_slice collection)
{
    struct mg_name *n = mg_schemas_name(x->names, db, collection);
    mg_name_look(n, x->filter);
    return n;
}

static enum cdcd_rc on_rename(struct mg_collections *x, const struct mg_command *c,
                              struct mg_time ts, bool *wanted, struct cdcd_error *err)
{
    struct mg_name *from = name_of(x, c->db, c->collection);
    struct mg_name *to = name_of(x, c->to_db, c->to_collection);
    *wanted = from->captured || to->captured;
    add_gone(x, c->uuid, from, to);
    if (c->drop_target)
        add_gone(x, c->target_uuid, to, NULL);
    from->has_uuid = to->has_uuid = false;
    if (!to->captured)
        return CDCD_OK;
    return mg_replaced_by(x->cfg, from, to, c->drop_target, ts, err);
}

enum cdcd_rc mg_collections_command(struct mg_collections *x, const struct mg_command *c,
                                    struct mg_time ts, bool *wanted, struct cdcd_error *err)
{
    if (c->kind == MG_CMD_RENAME)
        return on_rename(x, c, ts, wanted, err);
    *wanted = false;
    if (c->kind == MG_CMD_OTHER)
        return CDCD_OK;
    if (!c->collection.ptr) {
        *wanted = mg_filter_database(x->filter, c->db);
        return CDCD_OK;
    }
    struct mg_name *n = name_of(x, c->db, c->collection);
    if (c->kind == MG_CMD_DROP)
        add_gone(x, c->uuid, n, NULL);
    if (c->kind == MG_CMD_DROP || c->kind == MG_CMD_CREATE)
        n->has_uuid = false;
    *wanted = n->captured;
    return CDCD_OK;
}
