/*
 * snapshot.c: begin and end of a snapshot: where it stands in the log, how its documents are read,
 * and which collections it has.
 *
 * The time comes first, the list of collections after it: what is made in between is in the stream
 * from its first document on, and in the snapshot only as it is at that time.
 *
 * A snapshot that goes on after a break was preceded by the stream up to the new view, and that may
 * have looked documents up: they were newer than the view then. Rows read at its very time would
 * take them back. So after a break rows are read as they are (overlap), unless nothing is looked up
 * (capture.mode without full updates or with post-images, and no overlap before).
 */
#include "snapshot_int.h"

#include <stdlib.h>
#include <time.h>

#define BEHIND_TRIES 20
#define BEHIND_MS    250

/* ---- the time of the view ---- */

/* With the oplog it must be that of an entry, since the stream looks whether its own is there. */
static enum cdcd_rc newest_time(struct cdcd_source *s, struct mg_time *out, struct cdcd_error *err)
{
    struct mg_time first;
    enum cdcd_rc rc = s->cfg->capture == MG_OPLOG ? mg_oplog_window(s->client, &first, out, err)
                                                  : mg_cluster_time(s->client, out, err);
    if (rc == CDCD_OK && mg_time_number(*out) == 0)
        rc = cdcd_error_set(err, CDCD_ERR_CONFIG,
                            "the server tells no cluster time: a snapshot needs a replica set or a "
                            "sharded cluster");
    return rc;
}

static bool stopping(const struct cdcd_source *s)
{
    return s->env->stopping && s->env->stopping(s->env->ctx);
}

/* Not before what was delivered: a secondary, or a primary that was just elected, may be a little
 * behind for a moment; a server that stays behind is another one. */
static enum cdcd_rc view_time(struct cdcd_source *s, const struct mg_position *stored,
                              struct mg_time *out, struct cdcd_error *err)
{
    for (int i = 0; i < BEHIND_TRIES && !stopping(s); i++) {
        enum cdcd_rc rc = newest_time(s, out, err);
        if (rc != CDCD_OK || !stored || mg_time_cmp(*out, stored->ts) >= 0)
            return rc;
        nanosleep(&(struct timespec){0, BEHIND_MS * 1000000}, NULL);
    }
    if (stopping(s))
        return cdcd_error_set(err, CDCD_ERR_RETRY, "stopped before the snapshot began");
    return cdcd_error_set(err, CDCD_ERR_LOSS,
                          "the newest time of this server is %u:%u, before the stored position "
                          "%u:%u: it lacks changes that are delivered already (another replica "
                          "set, or one that was rolled back). Connect to the right one, or start "
                          "a new snapshot",
                          out->t, out->i, stored->ts.t, stored->ts.i);
}

/* ---- how documents are read ---- */

/* A read of a time that no server keeps: MongoDB refuses it; a server that answers does not heed
 * the time at all. */
static enum cdcd_rc probe(struct cdcd_source *s, const struct mg_snap_table *t, bool *heeded,
                          struct cdcd_error *err)
{
    struct mg_find f = {0};
    struct cdcd_error why = {0};
    bson_t command, concern;
    const bson_t *doc;
    int code = 0;
    bson_init(&command);
    BSON_APPEND_UTF8(&command, "find", t->collection);
    BSON_APPEND_INT64(&command, "limit", 1);
    BSON_APPEND_DOCUMENT_BEGIN(&command, "readConcern", &concern);
    BSON_APPEND_UTF8(&concern, "level", "snapshot");
    BSON_APPEND_TIMESTAMP(&concern, "atClusterTime", 1, 1);
    bson_append_document_end(&command, &concern);
    enum cdcd_rc rc = mg_find_open(&f, s->client, t->db, &command, &code, &why);
    if (rc == CDCD_OK)
        rc = mg_find_next(&f, t->label, &doc, &code, &why);
    mg_find_close(&f);
    bson_destroy(&command);
    *heeded = rc == CDCD_ERROR && (code == MG_SNAPSHOT_TOO_OLD || code == MG_SNAPSHOT_UNAVAILABLE);
    if (rc != CDCD_ERROR || *heeded)
        return CDCD_OK;
    if (why.class == CDCD_ERR_RETRY || why.class == CDCD_ERR_CONFIG) {
        *err = why;
        return CDCD_ERROR;
    }
    cdcd_debug("mongodb", "reads at a cluster time are refused: %s", why.text);
    return CDCD_OK;
}

static bool looks_up(const struct mg_config *cfg)
{
    return cfg->full_update == MG_FULL_LOOKUP &&
           (cfg->capture_mode == MG_MODE_UPDATE_FULL ||
            cfg->capture_mode == MG_MODE_UPDATE_FULL_PRE_IMAGE);
}

/* Why not all can be read at the time of the view; NULL: it can. */
static enum cdcd_rc why_overlap(struct cdcd_source *s, struct mg_snapshot *v, const char **why,
                                struct cdcd_error *err)
{
    const struct mg_snap_table *first = NULL;
    bool heeded = false;
    for (size_t i = 0; i < v->tables.n && !first; i++)
        first = v->tables.items[i].capped ? NULL : &v->tables.items[i];
    *why = NULL;
    if (s->cfg->read_mode == MG_READ_OVERLAP)
        *why = "snapshot.read.mode says so";
    else if (!first)
        return CDCD_OK; /* nothing to read, or capped collections only */
    else if (s->server.version_number < 50000)
        *why = "MongoDB does it from 5.0 on";
    else {
        enum cdcd_rc rc = probe(s, first, &heeded, err);
        if (rc != CDCD_OK)
            return cdcd_error_context(err, "reading %s at a cluster time, for a try", first->label);
        if (!heeded)
            *why = "this server reads at no such time";
    }
    if (*why && s->cfg->read_mode == MG_READ_AT_CLUSTER_TIME)
        return cdcd_error_set(err, CDCD_ERR_CONFIG,
                              "snapshot.read.mode is at_cluster_time, but documents cannot be read "
                              "at a cluster time: %s. Set it to auto or overlap",
                              *why);
    return CDCD_OK;
}

/* After a break: whether the stream looks documents up on its way to the new view. It does also
 * where its position overlaps with a snapshot, or will. */
static bool looked_up(const struct cdcd_source *s, const struct mg_snapshot *v,
                      const struct mg_position *stored)
{
    bool overlaps = stored && (stored->until_open || mg_time_number(stored->until) != 0);
    for (size_t i = 0; i < v->tables.n; i++)
        overlaps = overlaps || v->tables.items[i].capped;
    return stored && (overlaps || looks_up(s->cfg));
}

/* Capped collections cannot be read at a time. */
static enum cdcd_rc choose_reading(struct cdcd_source *s, struct mg_snapshot *v,
                                   const struct mg_position *stored, struct cdcd_error *err)
{
    const char *why;
    enum cdcd_rc rc = why_overlap(s, v, &why, err);
    if (rc != CDCD_OK)
        return rc;
    if (!why && looked_up(s, v, stored))
        why = "it goes on after a break, and the stream looks documents up since";
    for (size_t i = 0; i < v->tables.n; i++) {
        struct mg_snap_table *t = &v->tables.items[i];
        t->at_time = !why && !t->capped;
        v->position.until_open = v->position.until_open || !t->at_time;
        if (!t->capped)
            continue;
        if (s->cfg->read_mode == MG_READ_AT_CLUSTER_TIME)
            return cdcd_error_set(err, CDCD_ERR_CONFIG,
                                  "%s is capped, and capped collections cannot be read at a "
                                  "cluster time: exclude it, or set snapshot.read.mode to auto",
                                  t->label);
        if (!why)
            cdcd_info("mongodb", "%s is capped: it is read as it is, not at a cluster time",
                      t->label);
    }
    if (v->tables.n == 0)
        return CDCD_OK;
    if (why)
        cdcd_info("mongodb",
                  "the snapshot reads documents as they are when they are read (%s); changes up to "
                  "its end are given with the document as it is then",
                  why);
    else
        cdcd_info("mongodb", "the snapshot reads documents as of %u:%u", v->position.ts.t,
                  v->position.ts.i);
    return CDCD_OK;
}

static void append_time(bson_t *to, const char *name, struct mg_time x)
{
    bson_append_timestamp(to, name, -1, x.t, x.i);
}

/* Overlap: no row may lack what was looked up before it, or what the view has. */
static enum cdcd_rc read_after(struct cdcd_source *s, mongoc_client_t *c, struct mg_time *out,
                               struct cdcd_error *err)
{
    struct mg_snapshot *v = s->snapshot;
    enum cdcd_rc rc = CDCD_OK;
    pthread_mutex_lock(&v->lock);
    if (mg_time_number(v->read_after) == 0) {
        struct mg_time now;
        rc = mg_cluster_time(c, &now, err);
        if (rc == CDCD_OK)
            v->read_after = mg_time_cmp(now, v->position.ts) > 0 ? now : v->position.ts;
    }
    *out = v->read_after;
    pthread_mutex_unlock(&v->lock);
    return rc;
}

enum cdcd_rc mg_snap_read_concern(struct cdcd_source *s, mongoc_client_t *c,
                                  const struct mg_snap_table *t, bson_t *command,
                                  struct cdcd_error *err)
{
    struct mg_time after = {0, 0};
    bson_t concern;
    if (!t->at_time) {
        enum cdcd_rc rc = read_after(s, c, &after, err);
        if (rc != CDCD_OK)
            return rc;
    }
    BSON_APPEND_DOCUMENT_BEGIN(command, "readConcern", &concern);
    BSON_APPEND_UTF8(&concern, "level", t->at_time ? "snapshot" : "majority");
    if (t->at_time)
        append_time(&concern, "atClusterTime", s->snapshot->position.ts);
    else
        append_time(&concern, "afterClusterTime", after);
    bson_append_document_end(command, &concern);
    return CDCD_OK;
}

/* ---- begin, end, tables ---- */

/* Nothing may have been written since an earlier view: then this one has the same time, and the
 * numbers of its chunks begin again, too. The milliseconds since keep their rows' positions apart,
 * a million rows each. */
static uint64_t row_base(const struct mg_snapshot *v)
{
    uint64_t ms = (uint64_t)(v->ts_us / 1000 - (int64_t)v->position.ts.t * 1000);
    return (ms & 0xfffff) << 20;
}

static enum cdcd_rc begin(struct cdcd_source *s, struct mg_snapshot *v,
                          const struct mg_position *stored, struct cdcd_error *err)
{
    struct mg_position *p = &v->position;
    p->capture = s->cfg->capture;
    p->ord = MG_ORD_ALL;
    p->set = *s->server.set ? cdcd_xstrdup(s->server.set) : NULL;
    enum cdcd_rc rc = view_time(s, stored, &p->ts, err);
    v->ts_us = cdcd_wallclock_us();
    v->row_base = stored ? row_base(v) : 0;
    if (rc == CDCD_OK)
        rc = mg_snap_list_read(s, &v->arena, &v->tables, err);
    if (rc == CDCD_OK)
        rc = choose_reading(s, v, stored, err);
    if (rc == CDCD_OK && stored && mg_time_cmp(stored->until, p->ts) > 0)
        p->until = stored->until;
    return rc;
}

enum cdcd_rc mg_snapshot_begin(struct cdcd_source *s, struct cdcd_slice from,
                               struct cdcd_buf *position, struct cdcd_error *err)
{
    struct mg_position stored = {0};
    mg_snapshot_end(s);
    if (from.ptr && !mg_position_parse(from, &stored))
        return cdcd_error_set(err, CDCD_ERR_FATAL, "the stored position is not understood: %.*s",
                              from.len > 200 ? 200 : (int)from.len, from.ptr);
    struct mg_snapshot *v = s->snapshot = cdcd_xcalloc(1, sizeof *v);
    cdcd_arena_init(&v->arena, 16384);
    pthread_mutex_init(&v->lock, NULL);
    enum cdcd_rc rc = begin(s, v, from.ptr ? &stored : NULL, err);
    if (rc == CDCD_OK)
        mg_position_write(&v->position, position);
    mg_position_free(&stored);
    if (rc != CDCD_OK)
        mg_snapshot_end(s);
    return rc;
}

void mg_snapshot_end(struct cdcd_source *s)
{
    struct mg_snapshot *v = s->snapshot;
    if (!v)
        return;
    mg_snap_list_free(&v->tables);
    mg_position_free(&v->position);
    pthread_mutex_destroy(&v->lock);
    cdcd_arena_free(&v->arena);
    free(v);
    s->snapshot = NULL;
}

/* Of the collection, whatever its name. */
static uint64_t number_of(const struct mg_snap_table *t)
{
    uint64_t a, b;
    memcpy(&a, t->uuid, 8);
    memcpy(&b, t->uuid + 8, 8);
    return t->has_uuid ? a ^ b : 0;
}

enum cdcd_rc mg_snapshot_tables(struct cdcd_source *s, struct cdcd_snapshot_tables *out,
                                struct cdcd_error *err)
{
    const struct mg_snapshot *v = s->snapshot;
    (void)err;
    *out = (struct cdcd_snapshot_tables){.n = v->tables.n};
    cdcd_arena_init(&out->arena, 16384);
    out->items = cdcd_arena_alloc(&out->arena, (out->n + 1) * sizeof *out->items);
    for (size_t i = 0; i < out->n; i++) {
        struct mg_snap_table *t = &v->tables.items[i];
        out->items[i] = (struct cdcd_snapshot_table){.db = t->db,
                                                     .schema = "",
                                                     .table = t->collection,
                                                     .label = t->label,
                                                     .identity = t->identity,
                                                     .id = number_of(t),
                                                     .rows = t->rows,
                                                     .keyed = true,
                                                     .source_data = t};
    }
    return CDCD_OK;
}
