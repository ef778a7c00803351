/*
 * What a bulk's reply does: items are settled, sent again or refused; bodies get smaller and lanes
 * fewer when the server says that it is too much, and grow again when it takes them.
 */
#include "sink.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define BACKOFF_MAX_MS    5000
#define BLOCKED_MS        1000 /* an index that takes no writes is asked again */
#define BODY_MIN          ((size_t)32 << 10)
#define SMOOTH            16  /* so many requests in a row without complaint: more is tried */
#define CALM_MS           200 /* several lanes that are told "too much" at once count once */
#define INTERNAL_ERRORS   8   /* HTTP 500 for one document so often: it is the document */
#define REASON_OF_REQUEST 400
#define DETAILS           16 /* so many of a lane are not brief after one that was not taken whole */

/* ---- how much at a time ---- */

int64_t es_backoff(const struct cdcd_sink *s, unsigned failures)
{
    int64_t ms = s->config->retry_ms;
    for (unsigned i = 1; i < failures && ms < BACKOFF_MAX_MS; i++)
        ms *= 2;
    if (ms > BACKOFF_MAX_MS)
        ms = BACKOFF_MAX_MS;
    unsigned seed = (unsigned)cdcd_wallclock_us();
    return ms / 2 + rand_r(&seed) % (ms / 2 + 1);
}

static void wait_lane(struct cdcd_sink *s, struct es_lane *lane, int64_t least_ms)
{
    int64_t ms = es_backoff(s, ++lane->failures);
    lane->not_before = cdcd_now_ms() + (ms > least_ms ? ms : least_ms);
}

static void too_much(struct cdcd_sink *s)
{
    int64_t now = cdcd_now_ms();
    s->counters.throttled++;
    s->smooth = 0;
    if (now - s->calm_since < CALM_MS)
        return;
    s->calm_since = now;
    s->active = s->active > 1 ? s->active / 2 : 1;
    if (s->bulk_bytes / 2 >= BODY_MIN)
        s->bulk_bytes /= 2;
}

static void too_large(struct cdcd_sink *s, size_t bytes)
{
    s->counters.too_large++;
    s->smooth = 0;
    if (!s->too_large || bytes < s->too_large)
        s->too_large = bytes;
    if (s->bulk_bytes > bytes / 2)
        s->bulk_bytes = bytes / 2; /* down to one document */
}

static void taken_at_once(struct cdcd_sink *s)
{
    if (++s->smooth < SMOOTH)
        return;
    s->smooth = 0;
    if (s->active < s->nlanes)
        s->active++;
    size_t more = s->bulk_bytes * 2, most = (size_t)s->config->bulk_bytes;
    if (more > most)
        more = most;
    if (!s->too_large || more < s->too_large)
        s->bulk_bytes = more > s->bulk_bytes ? more : s->bulk_bytes;
}

/* ---- items ---- */

struct answers {
    struct cdcd_sink *s;
    struct es_lane *lane;
    struct cdcd_error *err;
    enum cdcd_rc rc;
    size_t again, throttled;
};

static void complain(struct cdcd_sink *s, const char *what, const char *type, const char *reason,
                     bool blocked)
{
    snprintf(s->complaint, sizeof s->complaint, "%.120s: %.90s%s%.280s", what, type,
             *type && *reason ? ": " : "", reason);
    if (blocked && !s->blocked)
        cdcd_warn("elasticsearch",
                  "%s; waiting until it takes writes again (see its settings index.blocks.*, the "
                  "free space on the nodes' disks, and whether it is open)",
                  s->complaint);
    s->blocked = s->blocked || blocked;
}

void es_complain(struct cdcd_sink *s, struct cdcd_error *err)
{
    snprintf(s->complaint, sizeof s->complaint, "%.500s", err->text);
    cdcd_debug("elasticsearch", "%s; again in a while", err->text);
    *err = (struct cdcd_error){0};
}

static void send_again(struct answers *x, struct es_item *item)
{
    item->again = true;
    item->sent++;
    x->again++;
    x->s->counters.retried++;
}

static void refused(struct answers *x, struct es_item *item, const struct es_result *r)
{
    struct es_item *older = item->older;
    enum es_fate fate;
    if (x->rc != CDCD_OK)
        return; /* on its way out: nothing of this batch counts as done */
    x->rc = es_refuse(x->s, item, r->type, r->reason, &fate, x->err);
    if (x->rc != CDCD_OK && x->err->class == CDCD_ERR_RETRY) {
        /* The dead-letter index cannot be made now: the document is refused once more then. */
        es_complain(x->s, x->err);
        x->rc = CDCD_OK;
        send_again(x, item);
        return;
    }
    if (x->rc != CDCD_OK)
        return;
    /* What it stood for is the newest now. */
    item->older = NULL;
    if (older)
        es_again(x->s, older);
    if (fate == ES_FATE_SETTLE) {
        es_settle(x->s, item);
        return;
    }
    item->hash = es_item_hash(item->action.index, item->action.id);
    item->again = true;
}

enum cdcd_rc es_lost(struct cdcd_slice index, const char *type, const char *reason,
                     struct cdcd_error *err)
{
    return cdcd_error_set(
        err, CDCD_ERR_LOSS,
        "the index %.*s is not there any more (%s: %s): it was deleted, or its alias was removed, "
        "while it was written to. A new one would hold only what changes from now on. Build it "
        "anew from the topics (cdcd replay), or, without topics, take a new snapshot under another "
        "pipeline name",
        (int)index.len, index.ptr, type, reason);
}

static void lost(struct answers *x, struct es_item *item, const struct es_result *r)
{
    if (item->dead) { /* it is made again */
        x->s->dead_letter_ready = false;
        if (x->rc == CDCD_OK)
            x->rc = es_dead_letter_ready(x->s, x->err);
        if (x->rc != CDCD_OK && x->err->class == CDCD_ERR_RETRY) {
            es_complain(x->s, x->err);
            x->rc = CDCD_OK;
        }
        send_again(x, item);
        return;
    }
    if (x->rc == CDCD_OK)
        x->rc = es_lost(item->action.index, r->type, r->reason, x->err);
}

static void denied(struct answers *x, const struct es_item *item, const struct es_result *r)
{
    if (x->rc != CDCD_OK)
        return;
    x->rc = cdcd_error_set(x->err, CDCD_ERR_CONFIG,
                           "writing to the index %.*s is not allowed: %s: %s; give this login the "
                           "privileges index, delete and create_index there, see cdcd check",
                           (int)item->action.index.len, item->action.index.ptr, r->type, r->reason);
}

/* The index has something newer: so it is done, unless it cannot be. */
static void stale(struct answers *x, struct es_item *item, const struct es_result *r)
{
    struct cdcd_error why = {0};
    if (x->rc != CDCD_OK)
        return;
    if (es_stale(x->s, item, r->reason, &why) == CDCD_OK) {
        x->s->counters.conflicts++;
        es_settle(x->s, item);
    } else if (why.class == CDCD_ERR_RETRY) {
        es_complain(x->s, &why);
        send_again(x, item);
    } else {
        *x->err = why;
        x->rc = CDCD_ERROR;
    }
}

static void take_item(void *ctx, size_t i, const struct es_result *r)
{
    struct answers *x = ctx;
    struct cdcd_sink *s = x->s;
    struct es_item *item = x->lane->items[i];
    enum es_verdict verdict = r->verdict;
    char what[160];
    item->again = false;
    if (verdict != ES_DONE && verdict != ES_GONE)
        x->lane->details = DETAILS;
    if (verdict == ES_AGAIN && r->status == 500 && item->sent >= INTERNAL_ERRORS)
        verdict = ES_REFUSED;
    switch (verdict) {
    case ES_DONE:
        *(item->action.kind == ES_DELETE ? &s->counters.deletes : &s->counters.documents) += 1;
        es_settle(s, item);
        return;
    case ES_STALE: stale(x, item, r); return;
    case ES_GONE:
        s->counters.missing++;
        es_settle(s, item);
        return;
    case ES_AGAIN:
    case ES_BLOCKED:
        snprintf(what, sizeof what, "index %.*s",
                 item->action.index.len > 100 ? 100 : (int)item->action.index.len,
                 item->action.index.ptr);
        complain(s, what, r->type, r->reason, verdict == ES_BLOCKED);
        x->throttled += verdict == ES_AGAIN && r->status == 429;
        send_again(x, item);
        return;
    case ES_LOST: lost(x, item, r); return;
    case ES_DENIED: denied(x, item, r); return;
    default: refused(x, item, r); return;
    }
}

/* From the last to the first, so that they stand in front of the queue in their order. */
static void put_back(struct cdcd_sink *s, struct es_lane *lane, bool all)
{
    for (size_t i = lane->nitems; i-- > 0;) {
        struct es_item *item = lane->items[i];
        if (!all && !item->again)
            continue;
        if (all)
            item->sent++;
        item->again = false;
        es_again(s, item);
    }
    if (all)
        s->counters.retried += lane->nitems;
    lane->nitems = 0;
}

void es_put_off(struct cdcd_sink *s, struct es_lane *lane, struct cdcd_error *err)
{
    es_complain(s, err);
    put_back(s, lane, true);
    wait_lane(s, lane, 0);
}

/* What the items say counts only when they went into the indexes that were found. */
static enum cdcd_rc same_indexes(struct cdcd_sink *s, const struct es_lane *lane,
                                 struct cdcd_error *err)
{
    struct cdcd_slice last = {NULL, 0};
    for (size_t i = 0; i < lane->nitems; i++) {
        const struct es_item *item = lane->items[i];
        struct cdcd_slice index = item->action.index;
        if (item->dead || (last.ptr && cdcd_slice_eq(index, last)))
            continue;
        if (es_index_same(s, index, err) != CDCD_OK)
            return CDCD_ERROR;
        last = index;
    }
    return CDCD_OK;
}

enum brief { NOT_BRIEF, ALL_TAKEN, NOT_ALL };

/* What became of each item costs the server some percent to write, and nearly always it is the same
 * for all. So requests are brief, and {"errors":false} says it of all. Else the same is sent again
 * to learn more; what was taken has the same version then, and is taken again. */
static enum brief read_brief(const struct es_lane *lane, struct cdcd_slice body)
{
    struct cdcd_json_value root, errors, items;
    if (!lane->brief || !cdcd_json_scan(body, &root) || cdcd_json_member(&root, "items", &items) ||
        !cdcd_json_member(&root, "errors", &errors))
        return NOT_BRIEF;
    return errors.kind == CDCD_JSON_FALSE ? ALL_TAKEN : NOT_ALL;
}

static void take_all(struct answers *x)
{
    static const struct es_result taken = {.status = 200, .verdict = ES_DONE};
    for (size_t i = 0; i < x->lane->nitems; i++)
        take_item(x, i, &taken);
}

static void ask_for_details(struct cdcd_sink *s, struct es_lane *lane)
{
    lane->details = DETAILS;
    for (size_t i = 0; i < lane->nitems; i++)
        lane->items[i]->again = true;
    put_back(s, lane, false);
}

static enum cdcd_rc answer_items(struct cdcd_sink *s, struct es_lane *lane,
                                 const struct es_reply *r, struct cdcd_error *err)
{
    struct answers x = {s, lane, err, CDCD_OK, 0, 0};
    if (same_indexes(s, lane, err) != CDCD_OK) {
        if (err->class != CDCD_ERR_RETRY)
            return CDCD_ERROR;
        es_put_off(s, lane, err); /* to write it twice does no harm */
        return CDCD_OK;
    }
    struct cdcd_slice body = cdcd_buf_slice(&r->body);
    enum brief brief = read_brief(lane, body);
    if (brief == NOT_ALL) {
        ask_for_details(s, lane);
        return CDCD_OK;
    }
    if (brief == ALL_TAKEN) {
        take_all(&x);
    } else if (!es_bulk_items(body, lane->nitems, take_item, &x)) {
        char type[96], reason[256];
        es_reason(body, type, sizeof type, reason, sizeof reason);
        complain(s, "what came back is no reply to a bulk", type, reason, false);
        put_back(s, lane, true);
        wait_lane(s, lane, 0);
        return CDCD_OK;
    }
    if (x.rc != CDCD_OK)
        return x.rc;
    put_back(s, lane, false);
    if (x.throttled)
        too_much(s);
    if (x.again) {
        wait_lane(s, lane, x.throttled ? 0 : s->blocked ? BLOCKED_MS : 0);
        return CDCD_OK;
    }
    lane->failures = 0;
    s->blocked = false;
    if (lane->most_items)
        lane->most_items = lane->most_items < (1u << 16) ? lane->most_items * 2 : 0;
    taken_at_once(s);
    return CDCD_OK;
}

/* ---- whole requests ---- */

/* The request with this one document is refused as a whole. */
static enum cdcd_rc refuse_only(struct cdcd_sink *s, struct es_lane *lane, const char *type,
                                const char *reason, struct cdcd_error *err)
{
    struct answers x = {s, lane, err, CDCD_OK, 0, 0};
    struct es_result r = {.status = REASON_OF_REQUEST, .verdict = ES_REFUSED};
    snprintf(r.type, sizeof r.type, "%s", type);
    snprintf(r.reason, sizeof r.reason, "%s", reason);
    lane->items[0]->again = false;
    refused(&x, lane->items[0], &r);
    if (x.rc == CDCD_OK)
        put_back(s, lane, false);
    if (x.again)
        wait_lane(s, lane, 0);
    return x.rc;
}

static enum cdcd_rc answer_too_large(struct cdcd_sink *s, struct es_lane *lane,
                                     struct cdcd_error *err)
{
    char reason[256];
    too_large(s, lane->body.len);
    if (lane->nitems > 1) {
        put_back(s, lane, true);
        return CDCD_OK;
    }
    snprintf(reason, sizeof reason,
             "the server takes no request of %zu bytes (HTTP 413), and this document cannot be "
             "split",
             lane->body.len);
    return refuse_only(s, lane, "document_too_large", reason, err);
}

/* Some document or action line is malformed for this server, which does not say which one: the
 * halves are sent by themselves, down to one document. */
static enum cdcd_rc answer_bad_request(struct cdcd_sink *s, struct es_lane *lane,
                                       const struct es_reply *r, struct cdcd_error *err)
{
    char type[96], reason[512];
    es_reason(cdcd_buf_slice(&r->body), type, sizeof type, reason, sizeof reason);
    bool no_index = strcmp(type, "index_not_found_exception") == 0;
    if (strstr(reason, "unrecognized parameter") || (r->status == 404 && !no_index))
        return es_fail(err, r, "the server does not understand this sink's requests");
    if (no_index || lane->nitems == 1) {
        enum es_verdict verdict = es_judge(r->status, type, reason, false);
        struct es_result one = {.status = r->status, .verdict = verdict};
        struct answers x = {s, lane, err, CDCD_OK, 0, 0};
        snprintf(one.type, sizeof one.type, "%s", type);
        snprintf(one.reason, sizeof one.reason, "%s", reason);
        if (verdict != ES_LOST && verdict != ES_BLOCKED)
            return refuse_only(s, lane, type, reason, err);
        for (size_t i = 0; i < lane->nitems; i++)
            take_item(&x, i, &one);
        if (x.rc == CDCD_OK)
            put_back(s, lane, false);
        if (x.again)
            wait_lane(s, lane, BLOCKED_MS);
        return x.rc;
    }
    lane->most_items = (lane->nitems + 1) / 2;
    put_back(s, lane, true);
    return CDCD_OK;
}

static void answer_failure(struct cdcd_sink *s, struct es_lane *lane, const struct es_reply *r)
{
    struct cdcd_error why = {0};
    es_fail(&why, r, "a bulk of %zu documents, %zu bytes", lane->nitems, lane->body.len);
    snprintf(s->complaint, sizeof s->complaint, "%.500s", why.text);
    cdcd_debug("elasticsearch", "%s", why.text);
    if (r->status == 429)
        too_much(s);
    /* A server that cuts the connection instead of saying 413. */
    if (r->cut && lane->failures > 0 && lane->nitems > 1)
        lane->most_items = (lane->nitems + 1) / 2;
    put_back(s, lane, true);
    wait_lane(s, lane, r->retry_after_ms > 0 ? r->retry_after_ms : 0);
}

enum cdcd_rc es_bulk_answer(struct cdcd_sink *s, struct es_lane *lane, const struct es_reply *r,
                            struct cdcd_error *err)
{
    struct cdcd_error why = {0};
    if (r->status == 200)
        return answer_items(s, lane, r, err);
    if (r->status == 413)
        return answer_too_large(s, lane, err);
    if (r->status == 400 || r->status == 404)
        return answer_bad_request(s, lane, r, err);
    es_fail(&why, r, "writing to the index");
    if (why.class != CDCD_ERR_RETRY) {
        *err = why;
        return CDCD_ERROR;
    }
    answer_failure(s, lane, r);
    return CDCD_OK;
}

/* ---- waiting ---- */

/* Nothing is under way: until the first lane may send again, what is held may be tried again, or
 * the state may be stored again. */
static void wait_for_lanes(const struct cdcd_sink *s, int timeout_ms)
{
    int64_t until = cdcd_now_ms() + timeout_ms;
    bool waits = false;
    for (unsigned i = 0; i < s->nlanes; i++) {
        const struct es_lane *lane = &s->lanes[i];
        if (!lane->queue.n)
            continue;
        waits = true;
        if (lane->not_before < until)
            until = lane->not_before;
    }
    if (s->held && s->held_until > 0) {
        waits = true;
        if (s->held_until < until)
            until = s->held_until;
    }
    if (s->doubts) {
        waits = true;
        if (es_doubts_end(s) < until)
            until = es_doubts_end(s);
    }
    if (es_state_dirty(s)) {
        waits = true;
        if (s->next_store < until)
            until = s->next_store;
    }
    int64_t ms = until - cdcd_now_ms();
    const struct timespec nap = {ms / 1000, ms % 1000 * 1000000};
    if (waits && ms > 0)
        nanosleep(&nap, NULL);
}

enum cdcd_rc es_bulk_serve(struct cdcd_sink *s, int timeout_ms, struct cdcd_error *err)
{
    if (s->busy == 0) {
        wait_for_lanes(s, timeout_ms);
        return CDCD_OK;
    }
    while (s->busy > 0) {
        struct es_reply r;
        unsigned slot;
        enum cdcd_rc rc = es_http_poll(s->http, timeout_ms, &slot, &r, err);
        if (rc != CDCD_OK)
            return rc == CDCD_AGAIN ? CDCD_OK : rc;
        timeout_ms = 0;
        struct es_lane *lane = &s->lanes[slot];
        lane->busy = false;
        s->busy--;
        rc = es_bulk_answer(s, lane, &r, err);
        es_reply_free(&r);
        es_give_back(s);
        if (rc != CDCD_OK)
            return rc;
    }
    return CDCD_OK;
}
