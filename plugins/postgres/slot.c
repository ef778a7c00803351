/*
 * slot.c: the replication slot. Reads its state, tells apart what can go wrong with it, and
 * creates it.
 *
 * The slot is the server's promise to keep the log for us. When the promise is broken (dropped,
 * lost, recreated, another server) the changes in the gap are gone, and nothing but a new
 * snapshot brings the target back in step. So each such state is an error of class LOSS with its
 * own text, and none of them is mended silently.
 */
#include "pg.h"

#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>

/* A person who waits this long wonders why; then the wait is explained, and again later. */
#define HINT_FIRST_MS 3000
#define HINT_AGAIN_MS 60000
#define WAIT_STEP_MS  200

enum cdcd_rc pg_slot_server_lsn(PGconn *sql, bool in_recovery, pg_lsn *out, struct cdcd_error *err)
{
    PGresult *r = NULL;
    enum cdcd_rc rc = pg_query(sql, &r, err,
                               in_recovery ? "SELECT pg_last_wal_replay_lsn()"
                                           : "SELECT pg_current_wal_insert_lsn()",
                               0, NULL);
    if (rc != CDCD_OK)
        return cdcd_error_context(err, "cannot read the server's log position");
    if (PQntuples(r) != 1 || !pg_lsn_parse(PQgetvalue(r, 0, 0), strlen(PQgetvalue(r, 0, 0)), out))
        rc = cdcd_error_set(err, CDCD_ERR_RETRY, "the server gave no log position: \"%s\"",
                            PQntuples(r) == 1 ? PQgetvalue(r, 0, 0) : "");
    PQclear(r);
    return rc;
}

static void copy_text(char *to, size_t size, const PGresult *r, int column)
{
    snprintf(to, size, "%s", PQgetvalue(r, 0, column));
}

static bool is_true(const PGresult *r, int column)
{
    return PQgetvalue(r, 0, column)[0] == 't';
}

static pg_lsn lsn_or_zero(const PGresult *r, int column)
{
    pg_lsn lsn = 0;
    const char *text = PQgetvalue(r, 0, column);
    return pg_lsn_parse(text, strlen(text), &lsn) ? lsn : 0;
}

enum cdcd_rc pg_slot_read(PGconn *sql, int server_version, const char *name, struct pg_slot *out,
                          struct cdcd_error *err)
{
    /* conflicting came with 16; invalidation_reason, failover and synced with 17. */
    const char *newer = server_version >= 170000
                            ? "coalesce(invalidation_reason, ''), failover, synced"
                        : server_version >= 160000
                            ? "CASE WHEN conflicting THEN 'conflict with recovery' ELSE '' END, "
                              "false, false"
                            : "'', false, false";
    char *text = cdcd_xasprintf(
        "SELECT coalesce(plugin, ''), coalesce(database, ''), temporary, active, "
        "coalesce(active_pid, 0), coalesce(restart_lsn, '0/0'), "
        "coalesce(confirmed_flush_lsn, '0/0'), coalesce(wal_status, ''), two_phase, %s "
        "FROM pg_catalog.pg_replication_slots WHERE slot_name = $1",
        newer);
    PGresult *r = NULL;
    *out = (struct pg_slot){0};
    enum cdcd_rc rc = pg_query(sql, &r, err, text, 1, &name);
    free(text);
    if (rc != CDCD_OK)
        return cdcd_error_context(err, "cannot read the state of replication slot \"%s\"", name);
    if (PQntuples(r) > 0) {
        out->exists = true;
        copy_text(out->plugin, sizeof out->plugin, r, 0);
        copy_text(out->database, sizeof out->database, r, 1);
        out->temporary = is_true(r, 2);
        out->active = is_true(r, 3);
        out->active_pid = (int)strtol(PQgetvalue(r, 0, 4), NULL, 10);
        out->restart_lsn = lsn_or_zero(r, 5);
        out->confirmed_flush = lsn_or_zero(r, 6);
        copy_text(out->wal_status, sizeof out->wal_status, r, 7);
        out->two_phase = is_true(r, 8);
        copy_text(out->invalidation, sizeof out->invalidation, r, 9);
        out->failover = is_true(r, 10);
        out->synced = is_true(r, 11);
    }
    PQclear(r);
    return CDCD_OK;
}

/* ---- verify ---- */

#define AFRESH                                                                                 \
    "To go on: set snapshot.mode: when_needed (a new snapshot is taken), or remove this "      \
    "pipeline's stored position and run with snapshot.mode: initial. Rows deleted in the gap " \
    "stay in the target until they are removed there"

static enum cdcd_rc verify_usable(const struct pg_slot *slot, const char *name, const char *db,
                                  const struct pg_server *server, struct cdcd_error *err)
{
    if (slot->plugin[0] == '\0')
        return cdcd_error_set(
            err, CDCD_ERR_CONFIG,
            "replication slot \"%s\" is a physical slot, cdcd needs a logical one "
            "with the plugin pgoutput: choose another slot.name, or remove it with "
            "SELECT pg_drop_replication_slot('%s')",
            name, name);
    if (strcmp(slot->plugin, "pgoutput") != 0)
        return cdcd_error_set(err, CDCD_ERR_CONFIG,
                              "replication slot \"%s\" uses the output plugin %s, cdcd needs "
                              "pgoutput: choose another slot.name, or remove it with "
                              "SELECT pg_drop_replication_slot('%s')",
                              name, slot->plugin, name);
    if (strcmp(slot->database, db) != 0)
        return cdcd_error_set(
            err, CDCD_ERR_CONFIG,
            "replication slot \"%s\" belongs to database \"%s\", this pipeline "
            "reads \"%s\": choose another slot.name (slots are unique in a server, "
            "not in a database)",
            name, slot->database, db);
    if (slot->synced && server->in_recovery)
        return cdcd_error_set(err, CDCD_ERR_CONFIG,
                              "replication slot \"%s\" on this standby is kept in step with the "
                              "primary's and cannot be read before a failover: connect to the "
                              "primary, or choose another slot.name",
                              name);
    return CDCD_OK;
}

static enum cdcd_rc verify_alive(const struct pg_slot *slot, const char *name,
                                 const struct pg_position *stored, struct cdcd_error *err)
{
    if (strcmp(slot->wal_status, "lost") != 0 && slot->invalidation[0] == '\0')
        return CDCD_OK;
    char where[64] = "";
    if (stored)
        snprintf(where, sizeof where, ", after our position " PG_LSN_FMT, PG_LSN_ARGS(stored->lsn));
    return cdcd_error_set(err, CDCD_ERR_LOSS,
                          "replication slot \"%s\" is invalidated (wal_status %s%s%s): the server "
                          "has removed log that was not read yet%s. Drop it with SELECT "
                          "pg_drop_replication_slot('%s'), and see max_slot_wal_keep_size and "
                          "idle_replication_slot_timeout, which let it happen. " AFRESH,
                          name, slot->wal_status[0] ? slot->wal_status : "unknown",
                          slot->invalidation[0] ? ", reason " : "", slot->invalidation, where,
                          name);
}

static enum cdcd_rc verify_history(const struct pg_slot *slot, const char *name,
                                   const struct pg_server *server, pg_lsn server_lsn,
                                   const struct pg_position *stored, struct cdcd_error *err)
{
    if (stored->sys[0] && server->system_id[0] && strcmp(stored->sys, server->system_id) != 0)
        return cdcd_error_set(err, CDCD_ERR_LOSS,
                              "this is another database system (identifier %s) than the one that "
                              "the stored position " PG_LSN_FMT " belongs to (%s): its log "
                              "positions mean nothing here. Connect to the old server, or give the "
                              "pipeline another name. " AFRESH,
                              server->system_id, PG_LSN_ARGS(stored->lsn), stored->sys);
    /* `done` is ahead of `lsn` while prepared transactions are held. */
    pg_lsn delivered = stored->done > stored->lsn ? stored->done : stored->lsn;
    if (server_lsn < delivered)
        return cdcd_error_set(err, CDCD_ERR_LOSS,
                              "the server's log ends at " PG_LSN_FMT
                              ", before the stored position " PG_LSN_FMT
                              ": it was restored from a backup, or failed over to a "
                              "server that lacks changes which are already delivered. What is in "
                              "the target and not in the server any more cannot be told. " AFRESH,
                              PG_LSN_ARGS(server_lsn), PG_LSN_ARGS(delivered));
    if (!slot->exists)
        return cdcd_error_set(
            err, CDCD_ERR_LOSS,
            "replication slot \"%s\" does not exist on the server any more, and "
            "everything up to " PG_LSN_FMT " is delivered: what was committed "
            "since may be lost. It was dropped, or the server failed over without "
            "it (slot.failover keeps it there, PostgreSQL 17 and later). " AFRESH,
            name, PG_LSN_ARGS(stored->lsn));
    if (slot->confirmed_flush > stored->lsn)
        return cdcd_error_set(
            err, CDCD_ERR_LOSS,
            "replication slot \"%s\" is already past our position: it is confirmed "
            "up to " PG_LSN_FMT ", stored is " PG_LSN_FMT ". It was recreated, or "
            "another consumer reads it: what lies between is lost. Give every "
            "pipeline a slot of its own. " AFRESH,
            name, PG_LSN_ARGS(slot->confirmed_flush), PG_LSN_ARGS(stored->lsn));
    return CDCD_OK;
}

enum cdcd_rc pg_slot_verify(const struct pg_slot *slot, const char *name, const char *db,
                            const struct pg_server *server, pg_lsn server_lsn,
                            const struct pg_position *stored, struct cdcd_error *err)
{
    if (slot->exists && verify_usable(slot, name, db, server, err) != CDCD_OK)
        return CDCD_ERROR;
    if (slot->exists && verify_alive(slot, name, stored, err) != CDCD_OK)
        return CDCD_ERROR;
    if (stored && verify_history(slot, name, server, server_lsn, stored, err) != CDCD_OK)
        return CDCD_ERROR;
    if (slot->exists && slot->active)
        return cdcd_error_set(err, CDCD_ERR_RETRY,
                              "replication slot \"%s\" is active for PID %d: another consumer, or "
                              "our own connection that the server has not given up yet. If it is "
                              "neither wanted nor going away: SELECT pg_terminate_backend(%d)",
                              name, slot->active_pid, slot->active_pid);
    return CDCD_OK;
}

/* ---- create ---- */

/* The server's message without "ERROR:" and position. */
static const char *primary_text(const PGresult *r)
{
    const char *text = PQresultErrorField(r, PG_DIAG_MESSAGE_PRIMARY);
    return text ? text : "no reason given";
}

static enum cdcd_rc create_error(PGconn *repl, const struct cdcd_source *s, const char *name,
                                 const PGresult *r, struct cdcd_error *err)
{
    const char *state = pg_sqlstate(r), *text = primary_text(r);
    const char *user = PQuser(repl) ? PQuser(repl) : "";
    if (strcmp(state, "53400") == 0)
        return cdcd_error_set(
            err, CDCD_ERR_CONFIG,
            "cannot create replication slot \"%s\": %s. Drop slots that nobody "
            "needs (SELECT slot_name, active FROM pg_replication_slots), or ALTER "
            "SYSTEM SET max_replication_slots = N and restart the server",
            name, text);
    if (strcmp(state, "55000") == 0 && strstr(text, "wal_level"))
        return cdcd_error_set(err, CDCD_ERR_CONFIG,
                              "cannot create replication slot \"%s\": %s. Run ALTER SYSTEM SET "
                              "wal_level = 'logical' on the primary and restart it",
                              name, text);
    if (strcmp(state, "42501") == 0) {
        char *mend = pg_sql("ALTER ROLE %I REPLICATION", user);
        cdcd_error_set(err, CDCD_ERR_CONFIG,
                       "cannot create replication slot \"%s\" as user \"%s\": %s. Run %s", name,
                       user, text, mend);
        free(mend);
        return CDCD_ERROR;
    }
    if (strcmp(state, "0A000") == 0 && s->server.in_recovery)
        return cdcd_error_set(
            err, CDCD_ERR_CONFIG,
            "cannot create replication slot \"%s\" on a standby: %s. Capture from "
            "a standby needs PostgreSQL 16 or later; connect to the primary",
            name, text);
    if (strcmp(state, "42602") == 0)
        return cdcd_error_set(err, CDCD_ERR_CONFIG,
                              "slot.name: %s; it may hold lower-case letters, digits and "
                              "underscores only",
                              text);
    return pg_error(repl, r, err, "cannot create replication slot \"%s\"", name);
}

/* Who is waited for: logged, not returned. Failing to find out is no failure. */
static void log_wait(const struct cdcd_source *s, const char *name, int64_t waited_ms)
{
    if (s->server.in_recovery) {
        cdcd_warn(
            "postgres",
            "still creating replication slot \"%s\" after %lld s: a standby waits for a record "
            "of the primary's running transactions, which an idle primary does not write. Run "
            "SELECT pg_log_standby_snapshot() on the primary",
            name, (long long)(waited_ms / 1000));
        return;
    }
    PGresult *r = NULL;
    struct cdcd_error ignored = {0};
    if (!s->sql ||
        pg_query(s->sql, &r, &ignored,
                 "SELECT coalesce(string_agg(format('pid %s (%s, %s, since %s)', pid, usename, "
                 "state, date_trunc('second', xact_start)), ', '), "
                 "(SELECT 'prepared transaction ' || quote_literal(gid) FROM "
                 "pg_catalog.pg_prepared_xacts ORDER BY prepared LIMIT 1), 'unknown') "
                 "FROM (SELECT * FROM pg_catalog.pg_stat_activity WHERE backend_xid IS NOT NULL "
                 "AND pid <> pg_backend_pid() ORDER BY xact_start LIMIT 3) a",
                 0, NULL) != CDCD_OK) {
        PQclear(r);
        r = NULL;
    }
    cdcd_warn("postgres",
              "still creating replication slot \"%s\" after %lld s: it waits for the transactions "
              "that were running when it began: %s",
              name, (long long)(waited_ms / 1000),
              r && PQntuples(r) ? PQgetvalue(r, 0, 0)
                                : "see pg_stat_activity, backend_xid is not null");
    PQclear(r);
}

static bool stopping(const struct cdcd_source *s)
{
    return s->env && s->env->stopping && s->env->stopping(s->env->ctx);
}

/* The server does not notice that a client is gone while it waits, and would keep the name taken.
 */
static void cancel(PGconn *c)
{
    char text[256];
    PGcancel *k = PQgetCancel(c);
    if (!k)
        return;
    if (PQcancel(k, text, sizeof text)) {
        PGresult *r;
        while ((r = PQgetResult(c)))
            PQclear(r);
    }
    PQfreeCancel(k);
}

/* Waits for the result of the command that was sent; *out is the caller's. */
static enum cdcd_rc wait_result(PGconn *repl, struct cdcd_source *s, const char *name,
                                PGresult **out, struct cdcd_error *err)
{
    int64_t begin = cdcd_now_ms(), hint = begin + HINT_FIRST_MS;
    while (PQisBusy(repl)) {
        if (stopping(s)) {
            cancel(repl);
            return cdcd_error_set(err, CDCD_ERR_RETRY,
                                  "stopped while replication slot \"%s\" was being created", name);
        }
        int64_t now = cdcd_now_ms();
        if (now >= hint) {
            log_wait(s, name, now - begin);
            hint = now + HINT_AGAIN_MS;
        }
        struct pollfd p = {PQsocket(repl), POLLIN, 0};
        if (poll(&p, 1, WAIT_STEP_MS) > 0 && !PQconsumeInput(repl))
            return pg_error(repl, NULL, err, "cannot create replication slot \"%s\"", name);
    }
    *out = PQgetResult(repl);
    return CDCD_OK;
}

/* CREATE_REPLICATION_SLOT: options in parentheses since 15, keywords before; FAILOVER since 17.
 * https://www.postgresql.org/docs/current/protocol-replication.html */
static char *create_command(const struct cdcd_source *s, const char *name, bool temporary,
                            bool snapshot)
{
    const char *kind = temporary ? " TEMPORARY" : "";
    if (s->server.version < 150000)
        return pg_sql("CREATE_REPLICATION_SLOT %I%s LOGICAL pgoutput %s", name, kind,
                      snapshot ? "EXPORT_SNAPSHOT" : "NOEXPORT_SNAPSHOT");
    return pg_sql("CREATE_REPLICATION_SLOT %I%s LOGICAL pgoutput (SNAPSHOT '%s'%s)", name, kind,
                  snapshot ? "export" : "nothing",
                  s->cfg->slot_failover && !temporary ? ", FAILOVER true" : "");
}

enum cdcd_rc pg_slot_create(PGconn *repl, struct cdcd_source *s, const char *name, bool temporary,
                            bool snapshot, pg_lsn *consistent_point, char snapshot_out[64],
                            struct cdcd_error *err)
{
    if (s->cfg->slot_failover && !temporary && s->server.version < 170000)
        return cdcd_error_set(
            err, CDCD_ERR_CONFIG,
            "slot.failover needs PostgreSQL 17 or later, this server is %d: remove "
            "the option",
            s->server.version / 10000);
    char *command = create_command(s, name, temporary, snapshot);
    PGresult *r = NULL;
    enum cdcd_rc rc = CDCD_OK;
    if (!PQsendQuery(repl, command))
        rc = pg_error(repl, NULL, err, "cannot create replication slot \"%s\"", name);
    if (rc == CDCD_OK)
        rc = wait_result(repl, s, name, &r, err);
    if (rc == CDCD_OK && PQresultStatus(r) != PGRES_TUPLES_OK)
        rc = create_error(repl, s, name, r, err);
    /* slot_name, consistent_point, snapshot_name, output_plugin */
    if (rc == CDCD_OK &&
        (PQntuples(r) != 1 || PQnfields(r) < 3 ||
         !pg_lsn_parse(PQgetvalue(r, 0, 1), strlen(PQgetvalue(r, 0, 1)), consistent_point)))
        rc = cdcd_error_set(err, CDCD_ERR_FATAL,
                            "the server's answer to CREATE_REPLICATION_SLOT is not understood");
    if (rc == CDCD_OK && snapshot) {
        int n = snprintf(snapshot_out, 64, "%s", PQgetvalue(r, 0, 2));
        if (n <= 0 || n >= 64)
            rc = cdcd_error_set(err, CDCD_ERR_FATAL,
                                "the server exported no snapshot with replication slot \"%s\"",
                                name);
    }
    PQclear(r);
    while (rc == CDCD_OK && (r = PQgetResult(repl)))
        PQclear(r);
    free(command);
    return rc;
}
