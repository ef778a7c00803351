/*
 * snapshot_lock.c: the views of several connections, all exactly at one position of the log: every
 * transaction before it is in the view and none after.
 *
 * MariaDB tells with each view where it stands (Binlog_snapshot_file, Binlog_snapshot_position:
 * sql/log.cc, binlog_start_consistent_snapshot). The views are begun close together until they
 * agree.
 *
 * MySQL has nothing like it, but with GTIDs the same can be found out without a lock
 * (sql/binlog.cc, MYSQL_BIN_LOG::ordered_commit). A transaction gets its GTID and is written to
 * the log under LOCK_log, then commits in the engine, then gives its GTID up, which moves it from
 * gtid_owned to gtid_executed. So:
 *
 *     P1 = the end of the log               (read under LOCK_log)
 *     gtid_owned is empty                   all that is before P1 has committed in the engine
 *     START TRANSACTION WITH CONSISTENT SNAPSHOT, on all connections
 *     gtid_executed
 *     P2 = the end of the log               if P2 = P1, nothing was written meanwhile, and what
 *                                           is not written to the log has not committed
 *
 * With P1 = P2 the views, the position and gtid_executed agree exactly. Without the second
 * condition they would not: a transaction that is in the log may wait in the sync stage for long.
 * On a server that is never idle for these three round trips, and without GTIDs, all of it is done
 * under FLUSH TABLES WITH READ LOCK, which no commit passes.
 *
 * An XA transaction that is prepared before the view and committed after it would be neither in
 * the view nor whole in the stream after it: a view is taken when there is none. Nor may there be
 * one shortly before, since both servers log an XA COMMIT first and then let the engine do it. XA
 * RECOVER lists it until that is done; one that came and went between the two looks at XA RECOVER
 * shows in the count of XA COMMITs.
 */
#include "snapshot_int.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define TRY_MS      3000  /* without a lock, where a lock can be had after it */
#define TRY_LONG_MS 60000 /* where it cannot */
#define XA_SAY_MS   10000

#define MY_ER_XA_RMERR 1401

static const char start_view[] = "START TRANSACTION WITH CONSISTENT SNAPSHOT, READ ONLY";

struct attempt {
    struct cdcd_source *s;
    struct my_snapshot *v;
    MYSQL *sql;    /* v->catalog */
    bool prepared; /* XA transactions are */
    bool agreed;
    unsigned tries;
    int64_t until_ms;
};

static void pause_ms(long ms)
{
    nanosleep(&(struct timespec){ms / 1000, ms % 1000 * 1000000}, NULL);
}

static enum cdcd_rc stopping(struct cdcd_source *s, struct cdcd_error *err)
{
    if (s->env->stopping && s->env->stopping(s->env->ctx))
        return cdcd_error_set(err, CDCD_ERR_RETRY, "asked to end before the snapshot began");
    return CDCD_OK;
}

/* ---- many statements at once ---- */

/* The same statement on all views, sent before any answer is read. */
static enum cdcd_rc on_views(struct my_snapshot *v, const char *sql, MYSQL_RES **results,
                             struct cdcd_error *err)
{
    enum cdcd_rc rc = CDCD_OK;
    size_t sent = 0;
    for (; sent < v->nviews; sent++) {
        if (mysql_send_query(v->views[sent], sql, (unsigned long)strlen(sql)) != 0) {
            rc = my_error(v->views[sent], err, "cannot begin a view");
            break;
        }
    }
    for (size_t i = 0; i < sent; i++) {
        MYSQL_RES *r = NULL;
        if (mysql_read_query_result(v->views[i]) != 0) {
            if (rc == CDCD_OK)
                rc = my_error(v->views[i], err, "cannot begin a view");
        } else {
            r = mysql_store_result(v->views[i]);
        }
        if (results)
            results[i] = r;
        else
            mysql_free_result(r);
    }
    return rc;
}

/* Runs statements that are one text; the rows of the n-th go to results[n]. */
static enum cdcd_rc in_one_trip(MYSQL *m, const char *sql, MYSQL_RES **results, size_t n,
                                struct cdcd_error *err)
{
    size_t i = 0;
    int next = 0;
    memset(results, 0, n * sizeof *results);
    bool failed = mysql_real_query(m, sql, (unsigned long)strlen(sql)) != 0;
    while (!failed && next == 0) {
        MYSQL_RES *r = mysql_store_result(m);
        if (i < n)
            results[i++] = r;
        else
            mysql_free_result(r);
        next = mysql_next_result(m);
        failed = next > 0;
    }
    if (!failed && i == n && results[n - 1])
        return CDCD_OK;
    enum cdcd_rc rc = my_error(m, err, "cannot read the position of the log");
    for (i = 0; i < n; i++)
        mysql_free_result(results[i]);
    memset(results, 0, n * sizeof *results);
    return rc;
}

static void free_all(MYSQL_RES **results, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        mysql_free_result(results[i]);
        results[i] = NULL;
    }
}

/* The n-th column of the first row; "" without one. */
static const char *first_row(MYSQL_RES *r, unsigned column)
{
    if (!r || mysql_num_rows(r) == 0 || mysql_num_fields(r) <= column)
        return "";
    mysql_data_seek(r, 0);
    MYSQL_ROW row = mysql_fetch_row(r);
    return row && row[column] ? row[column] : "";
}

static void set_position(struct my_snapshot *v, const char *file, const char *pos, const char *gtid)
{
    struct cdcd_buf clean;
    cdcd_buf_init(&clean, 0);
    for (const char *p = gtid; *p; p++) { /* sets come in lines */
        if (*p != '\n' && *p != '\r' && *p != ' ')
            cdcd_buf_add(&clean, p, 1);
    }
    free(v->position.file);
    free(v->position.gtid);
    v->position.file = cdcd_xstrdup(file);
    v->position.pos = strtoull(pos, NULL, 10);
    v->position.gtid = cdcd_xstrdup(cdcd_buf_cstr(&clean));
    cdcd_buf_free(&clean);
}

/* ---- XA ---- */

struct xa_look {
    bool prepared, denied;
    unsigned long long commits; /* so far, of all connections */
};

/* MySQL asks for XA_RECOVER_ADMIN. Without it a transaction that is prepared now is found by the
 * stream when it commits, which then cannot go on. */
static enum cdcd_rc look_for_xa(struct attempt *a, struct xa_look *out, struct cdcd_error *err)
{
    static bool said;
    MYSQL_RES *r = NULL;
    *out = (struct xa_look){0};
    enum cdcd_rc rc = my_query(a->sql, &r, err, "SHOW GLOBAL STATUS LIKE 'Com_xa_commit'");
    if (rc != CDCD_OK)
        return rc;
    out->commits = strtoull(first_row(r, 1), NULL, 10);
    mysql_free_result(r);
    if (mysql_query(a->sql, "XA RECOVER") != 0) {
        out->denied = mysql_errno(a->sql) == MY_ER_XA_RMERR || my_denied(a->sql);
        if (!out->denied)
            return my_error(a->sql, err, "XA RECOVER");
        if (!said)
            cdcd_warn("mysql",
                      "the user may not see prepared XA transactions; should one be open while "
                      "the snapshot begins, the stream will stop at its commit. "
                      "GRANT XA_RECOVER_ADMIN ON *.* lets the snapshot wait for it");
        said = true;
        return CDCD_OK;
    }
    r = mysql_store_result(a->sql);
    out->prepared = r && mysql_num_rows(r) > 0;
    mysql_free_result(r);
    return CDCD_OK;
}

/* ---- MySQL without a lock ---- */

static enum cdcd_rc mysql_try(struct attempt *a, struct cdcd_error *err)
{
    const char *status = a->s->server.version >= 80200 ? "SHOW BINARY LOG STATUS"
                                                       : "SHOW MASTER STATUS";
    MYSQL_RES *before[2], *after[2];
    char *sql = cdcd_xasprintf("%s; SELECT @@GLOBAL.gtid_owned", status);
    enum cdcd_rc rc = in_one_trip(a->sql, sql, before, 2, err);
    free(sql);
    if (rc != CDCD_OK)
        return rc;
    a->agreed = first_row(before[1], 0)[0] == '\0' && first_row(before[0], 0)[0] != '\0';
    if (a->agreed)
        rc = on_views(a->v, start_view, NULL, err);
    if (rc == CDCD_OK && a->agreed) {
        sql = cdcd_xasprintf("SELECT @@GLOBAL.gtid_executed; %s", status);
        rc = in_one_trip(a->sql, sql, after, 2, err);
        free(sql);
    }
    if (rc == CDCD_OK && a->agreed) {
        char *file = cdcd_xstrdup(first_row(before[0], 0));
        char *pos = cdcd_xstrdup(first_row(before[0], 1));
        a->agreed = strcmp(file, first_row(after[1], 0)) == 0 &&
                    strcmp(pos, first_row(after[1], 1)) == 0;
        if (a->agreed)
            set_position(a->v, file, pos, first_row(after[0], 0));
        free(file);
        free(pos);
        free_all(after, 2);
    }
    free_all(before, 2);
    return rc;
}

/* ---- MariaDB without a lock ---- */

static bool same_place(MYSQL_RES *a, MYSQL_RES *b)
{
    char *file = cdcd_xstrdup(first_row(a, 0)), *pos = cdcd_xstrdup(first_row(a, 1));
    bool same = *file && strcmp(file, first_row(b, 0)) == 0 && strcmp(pos, first_row(b, 1)) == 0;
    free(file);
    free(pos);
    return same;
}

/* Keeps the views that stand where the most do; the others end. Returns one of their places. */
static MYSQL_RES *keep_largest(struct my_snapshot *v, MYSQL_RES **places)
{
    size_t best = 0, most = 0, kept = 0;
    for (size_t i = 0; i < v->nviews; i++) {
        size_t n = 0;
        for (size_t k = 0; k < v->nviews; k++)
            n += same_place(places[i], places[k]);
        if (n > most) {
            most = n;
            best = i;
        }
    }
    for (size_t i = 0; i < v->nviews; i++) {
        if (same_place(places[best], places[i]))
            v->views[kept++] = v->views[i];
        else
            mysql_close(v->views[i]);
    }
    v->nviews = kept;
    return places[best];
}

/* settle: takes what there is, if only one view. */
static enum cdcd_rc mariadb_try(struct attempt *a, bool settle, struct cdcd_error *err)
{
    struct my_snapshot *v = a->v;
    size_t n = v->nviews;
    MYSQL_RES **places = cdcd_xcalloc(n, sizeof *places), *at;
    enum cdcd_rc rc = on_views(v, start_view, NULL, err);
    /* The order of the two in SHOW STATUS is not promised. */
    if (rc == CDCD_OK)
        rc = on_views(v,
                      "SELECT MAX(IF(VARIABLE_NAME = 'BINLOG_SNAPSHOT_FILE', VARIABLE_VALUE, '')),"
                      " MAX(IF(VARIABLE_NAME = 'BINLOG_SNAPSHOT_POSITION', VARIABLE_VALUE, '')) "
                      "FROM information_schema.SESSION_STATUS "
                      "WHERE VARIABLE_NAME LIKE 'BINLOG\\_SNAPSHOT\\_%'",
                      places, err);
    at = places[0];
    if (rc == CDCD_OK && first_row(at, 0)[0] == '\0')
        rc = cdcd_error_set(err, CDCD_ERR_CONFIG,
                            "the server does not say where its views stand in the log "
                            "(Binlog_snapshot_file is empty): is log_bin on?");
    a->agreed = rc == CDCD_OK;
    for (size_t i = 1; a->agreed && i < n; i++)
        a->agreed = same_place(at, places[i]);
    if (rc == CDCD_OK && !a->agreed && settle) {
        at = keep_largest(v, places);
        a->agreed = true;
        cdcd_info("mysql",
                  "%zu of %zu views stand at one position, and the snapshot uses these; a read "
                  "lock, for which the user lacks RELOAD, would give all",
                  v->nviews, n);
    }
    if (a->agreed)
        set_position(v, first_row(at, 0), first_row(at, 1), "");
    free_all(places, n);
    free(places);
    return rc;
}

static enum cdcd_rc mariadb_gtid(struct attempt *a, struct cdcd_error *err)
{
    struct my_position *p = &a->v->position;
    MYSQL_RES *r = NULL;
    enum cdcd_rc rc = my_queryf(a->sql, &r, err, "SELECT BINLOG_GTID_POS(%L, %llu)", p->file,
                                (unsigned long long)p->pos);
    if (rc != CDCD_OK)
        return cdcd_error_context(err, "cannot find the GTID of %s:%llu", p->file,
                                  (unsigned long long)p->pos);
    MYSQL_ROW row = mysql_fetch_row(r);
    if (row && row[0]) {
        free(p->gtid);
        p->gtid = cdcd_xstrdup(row[0]);
    } else {
        rc = cdcd_error_set(err, CDCD_ERR_RETRY, "the server has no GTID for %s:%llu", p->file,
                            (unsigned long long)p->pos);
    }
    mysql_free_result(r);
    return rc;
}

/* ---- under a lock ---- */

/* AGAIN: the user may not. */
static enum cdcd_rc under_lock(struct attempt *a, double *held_ms, struct cdcd_error *err)
{
    struct my_log_end end = {0};
    struct timespec from, to;
    struct xa_look xa = {0};
    if (mysql_query(a->sql, "FLUSH TABLES WITH READ LOCK") != 0) {
        if (my_denied(a->sql))
            return CDCD_AGAIN;
        return my_error(a->sql, err,
                        "FLUSH TABLES WITH READ LOCK (it waits for long statements, at most "
                        "snapshot.lock.timeout.ms)");
    }
    clock_gettime(CLOCK_MONOTONIC, &from);
    enum cdcd_rc rc = on_views(a->v, start_view, NULL, err);
    if (rc == CDCD_OK)
        rc = my_log_end(a->sql, &a->s->server, &end, err);
    if (rc == CDCD_OK)
        rc = look_for_xa(a, &xa, err);
    if (mysql_query(a->sql, "UNLOCK TABLES") != 0 && rc == CDCD_OK)
        rc = my_error(a->sql, err, "UNLOCK TABLES");
    clock_gettime(CLOCK_MONOTONIC, &to);
    *held_ms = (double)(to.tv_sec - from.tv_sec) * 1e3 + (double)(to.tv_nsec - from.tv_nsec) / 1e6;
    if (rc == CDCD_OK) {
        char pos[24];
        snprintf(pos, sizeof pos, "%llu", (unsigned long long)end.pos);
        set_position(a->v, end.file, pos, end.gtid ? end.gtid : "");
        a->agreed = true;
        a->prepared = xa.prepared;
    }
    my_log_end_free(&end);
    return rc;
}

/* ---- which way ---- */

static enum cdcd_rc lock_denied(const struct attempt *a, struct cdcd_error *err)
{
    bool mariadb = a->s->server.flavor == MY_MARIADB;
    return cdcd_error_set(
        err, CDCD_ERR_CONFIG,
        "%s, and the user may not take a read lock for the moment in which the snapshot begins. "
        "Run GRANT %s ON *.* TO the user",
        mariadb || a->s->server.gtid
            ? "the log grew in each of many attempts to begin the snapshot without a lock"
            : "gtid_mode is not ON, so that the snapshot cannot begin without a lock",
        mariadb || a->s->server.version < 80000 ? "RELOAD" : "FLUSH_TABLES (or RELOAD)");
}

static enum cdcd_rc try_once(struct attempt *a, bool settle, struct cdcd_error *err)
{
    struct xa_look before, after;
    bool mariadb = a->s->server.flavor == MY_MARIADB;
    a->agreed = false;
    enum cdcd_rc rc = stopping(a->s, err);
    if (rc == CDCD_OK)
        rc = look_for_xa(a, &before, err);
    if (rc != CDCD_OK)
        return rc;
    a->prepared = before.prepared;
    a->tries++;
    if (!a->prepared)
        rc = mariadb ? mariadb_try(a, settle, err) : mysql_try(a, err);
    if (rc != CDCD_OK || !a->agreed)
        return rc;
    rc = look_for_xa(a, &after, err);
    if (rc != CDCD_OK)
        return rc;
    a->prepared = after.prepared;
    a->agreed = !after.prepared && before.commits == after.commits;
    return mariadb && a->agreed ? mariadb_gtid(a, err) : CDCD_OK;
}

/* Until the views agree, or the time is over (agreed false), or XA transactions are in the way. */
static enum cdcd_rc without_lock(struct attempt *a, bool settle, struct cdcd_error *err)
{
    enum cdcd_rc rc;
    for (;;) {
        bool late = cdcd_now_ms() >= a->until_ms;
        rc = try_once(a, settle && late, err);
        if (rc != CDCD_OK || a->agreed || a->prepared || late)
            return rc;
        pause_ms(1 + a->tries % 7); /* not in step with whatever writes */
    }
}

static void say_view(const struct attempt *a, const char *how)
{
    const struct my_position *p = &a->v->position;
    cdcd_info("mysql", "snapshot view at %s:%llu%s%s, %zu connections, %s", p->file,
              (unsigned long long)p->pos, *p->gtid ? ", " : "", p->gtid, a->v->nviews, how);
}

static enum cdcd_rc take_once(struct attempt *a, struct cdcd_error *err)
{
    const struct my_server *server = &a->s->server;
    int mode = a->s->cfg->lock_mode;
    bool lockless = server->flavor == MY_MARIADB || server->gtid;
    bool settle = false;
    double held = 0;
    char how[120];
    enum cdcd_rc rc = CDCD_OK;
    if (mode == MY_LOCK_NONE && !lockless)
        return cdcd_error_set(err, CDCD_ERR_CONFIG,
                              "snapshot.locking.mode is none, but this server has no GTIDs, by "
                              "which alone a view without a lock is exact: set gtid_mode ON, or "
                              "snapshot.locking.mode auto");
    for (;;) {
        bool last = mode == MY_LOCK_NONE || settle;
        a->until_ms = cdcd_now_ms() + (last && server->flavor == MY_MYSQL ? TRY_LONG_MS : TRY_MS);
        if (lockless && mode != MY_LOCK_MINIMAL)
            rc = without_lock(a, last, err);
        if (rc != CDCD_OK || a->prepared)
            return rc;
        if (a->agreed) {
            snprintf(how, sizeof how, "without a lock, attempt %u", a->tries);
            break;
        }
        if (last)
            return mode == MY_LOCK_NONE
                       ? cdcd_error_set(err, CDCD_ERR_RETRY,
                                        "the log grew in each of %u attempts to begin the "
                                        "snapshot; snapshot.locking.mode auto would lock for "
                                        "some milliseconds",
                                        a->tries)
                       : lock_denied(a, err);
        rc = under_lock(a, &held, err);
        if (rc == CDCD_OK) {
            snprintf(how, sizeof how, "under a read lock of %.1f ms", held);
            break;
        }
        if (rc == CDCD_ERROR)
            return rc;
        if (!lockless || mode == MY_LOCK_MINIMAL)
            return lock_denied(a, err);
        settle = true;
        rc = CDCD_OK;
    }
    if (!a->prepared)
        say_view(a, how);
    return CDCD_OK;
}

enum cdcd_rc my_views_take(struct cdcd_source *s, struct my_snapshot *v, struct cdcd_error *err)
{
    struct attempt a = {.s = s, .v = v, .sql = v->catalog};
    int64_t said_ms = 0;
    for (;;) {
        enum cdcd_rc rc = stopping(s, err);
        if (rc == CDCD_OK)
            rc = take_once(&a, err);
        if (rc != CDCD_OK || !a.prepared)
            return rc;
        if (said_ms == 0 || cdcd_now_ms() - said_ms >= XA_SAY_MS) {
            cdcd_warn("mysql",
                      "XA transactions are prepared (XA RECOVER lists them): the snapshot begins "
                      "when they are committed or rolled back");
            said_ms = cdcd_now_ms();
        }
        a.tries = 0;
        pause_ms(200);
    }
}
