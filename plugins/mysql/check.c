/*
 * check.c: what `cdcd check` says about the server, what open() insists on, and `cdcd drop`.
 *
 * One line a finding, each with what to run to mend it. Tables get a line only when something is
 * wrong with them.
 */
#include "grants.h"
#include "table.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <strings.h>
#include <sys/random.h>

struct check {
    const struct my_config *cfg;
    const struct cdcd_source_env *env;
    struct cdcd_report *report;
    MYSQL *sql;
    struct my_server server;
    struct my_filter *filter;
    struct my_grants grants;
    struct my_table_list tables;
    size_t lines; /* of the kind at work */
};

static void add(struct check *c, enum cdcd_check_level level, const char *what, const char *text,
                const char *mend)
{
    c->report->add(c->report->ctx, level, what, text, mend);
}

#define addf(c, ...) cdcd_report_addf((c)->report, __VA_ARGS__)

/* ---- what must be right before anything is captured ---- */

static bool too_old(const struct my_server *s)
{
    return s->version < (s->flavor == MY_MARIADB ? 100600 : 80000);
}

static bool newer_than_known(const struct my_server *s)
{
    return s->version / 100 > (s->flavor == MY_MARIADB ? 1108 : 907);
}

static const char *log_privilege(const struct my_server *s)
{
    return s->flavor == MY_MARIADB ? "BINLOG MONITOR" : "REPLICATION CLIENT";
}

static enum cdcd_rc check_grants(MYSQL *m, const struct my_server *server, struct cdcd_error *err)
{
    struct my_grants g;
    if (my_grants_read(m, server, &g, err) != CDCD_OK)
        return CDCD_ERROR;
    const char *lacks = !my_grants_have(&g, "REPLICATION SLAVE") ? "REPLICATION SLAVE"
                        : !my_grants_may_see_log(&g)             ? log_privilege(server)
                                                                 : NULL;
    enum cdcd_rc rc = CDCD_OK;
    if (lacks)
        rc = cdcd_error_set(err, CDCD_ERR_CONFIG, "%s lacks %s; run GRANT %s ON *.* TO %s",
                            g.account, lacks, lacks, g.account);
    my_grants_free(&g);
    return rc;
}

enum cdcd_rc my_check_server(MYSQL *m, const struct my_server *server, struct cdcd_error *err)
{
    if (too_old(server))
        return cdcd_error_set(err, CDCD_ERR_CONFIG,
                              "%s is too old: MySQL 8.0 or MariaDB 10.6 or later is needed",
                              server->text);
    if (!server->log_bin)
        return cdcd_error_set(err, CDCD_ERR_CONFIG,
                              "the server writes no binlog: set log_bin and server_id in its "
                              "configuration, and restart it");
    if (strcasecmp(server->binlog_format, "STATEMENT") == 0)
        return cdcd_error_set(err, CDCD_ERR_CONFIG,
                              "binlog_format is STATEMENT, so the log has no rows: run SET GLOBAL "
                              "binlog_format = 'ROW', set it in the server's configuration, too, "
                              "and let sessions that are older reconnect");
    if (server->server_id == 0)
        return cdcd_error_set(
            err, CDCD_ERR_CONFIG,
            "server_id of the server is 0, so it refuses replicas: run SET GLOBAL "
            "server_id = 1, and set it in the server's configuration, too");
    return check_grants(m, server, err);
}

/* ---- server ---- */

/* Owned; "" when there is no such variable. */
static char *variable(struct check *c, const char *name)
{
    MYSQL_RES *r = NULL;
    struct cdcd_error err = {0};
    char *out = NULL;
    if (my_queryf(c->sql, &r, &err, "SHOW GLOBAL VARIABLES LIKE %L", name) == CDCD_OK) {
        MYSQL_ROW row = mysql_fetch_row(r);
        if (row && row[1])
            out = cdcd_xstrdup(row[1]);
        mysql_free_result(r);
    }
    return out ? out : cdcd_xstrdup("");
}

static bool is_on(struct check *c, const char *name)
{
    char *value = variable(c, name);
    bool on = strcasecmp(value, "ON") == 0 || strcmp(value, "1") == 0;
    free(value);
    return on;
}

/* Survives a restart where the server can do that by SQL. */
static char *set_global(const struct check *c, const char *name, const char *value)
{
    return c->server.flavor == MY_MYSQL
               ? cdcd_xasprintf("SET PERSIST %s = '%s'", name, value)
               : cdcd_xasprintf("SET GLOBAL %s = '%s', and the same in the server's configuration",
                                name, value);
}

static bool check_connection(struct check *c)
{
    struct cdcd_error err = {0};
    if (my_connect(c->cfg, &c->sql, &err) != CDCD_OK ||
        my_server_info(c->sql, &c->server, &err) != CDCD_OK ||
        my_grants_read(c->sql, &c->server, &c->grants, &err) != CDCD_OK) {
        add(c, CDCD_CHECK_FAIL, "connection", err.text, NULL);
        return false;
    }
    const char *cipher = mysql_get_ssl_cipher(c->sql);
    addf(c, CDCD_CHECK_OK, "connection", NULL, "%s, account %s, %s", mysql_get_host_info(c->sql),
         c->grants.account, cipher ? cipher : "no TLS");
    if (too_old(&c->server))
        add(c, CDCD_CHECK_FAIL, "version", "MySQL 8.0 or MariaDB 10.6 or later is needed", NULL);
    else if (newer_than_known(&c->server))
        add(c, CDCD_CHECK_WARN, "version",
            "newer than what cdcd is tested with (MySQL 9.7, MariaDB 11.8): an event that it does "
            "not know stops the pipeline",
            NULL);
    else
        add(c, CDCD_CHECK_OK, "version", c->server.text, NULL);
    return true;
}

static void check_format(struct check *c)
{
    const struct my_server *s = &c->server;
    bool row = strcasecmp(s->binlog_format, "ROW") == 0;
    bool statement = strcasecmp(s->binlog_format, "STATEMENT") == 0;
    addf(c,
         row         ? CDCD_CHECK_OK
         : statement ? CDCD_CHECK_FAIL
                     : CDCD_CHECK_WARN,
         "binlog_format", row ? NULL : set_global(c, "binlog_format", "ROW"), "%s%s",
         s->binlog_format,
         row         ? "; a session may have its own, which cannot be seen from here"
         : statement ? ": the log has no rows"
                     : ": a statement that changes a captured table stops the pipeline "
                       "(statement.handling.mode)");

    bool full = strcasecmp(s->row_image, "FULL") == 0;
    addf(c, full ? CDCD_CHECK_OK : CDCD_CHECK_WARN, "binlog_row_image",
         full ? NULL : set_global(c, "binlog_row_image", "FULL"), "%s%s", s->row_image,
         full ? ""
         : c->cfg->row_image_mode == MY_IMAGE_FAIL
             ? ": rows that lack columns stop the pipeline (row.image.handling.mode)"
             : ": columns that did not change come as unavailable.value.placeholder");

    full = strcasecmp(s->row_metadata, "FULL") == 0;
    addf(c, full ? CDCD_CHECK_OK : CDCD_CHECK_WARN, "binlog_row_metadata",
         full ? NULL : set_global(c, "binlog_row_metadata", "FULL"), "%s%s", s->row_metadata,
         full ? ""
              : ": the log does not name columns, so their names are followed through the "
                "statements that change tables; one that is not understood may stop the pipeline");
}

static void check_log_options(struct check *c)
{
    bool mysql = c->server.flavor == MY_MYSQL;
    if (mysql && is_on(c, "binlog_transaction_compression"))
        add(c, CDCD_CHECK_OK, "binlog_transaction_compression",
            "ON: compressed transactions (zstd) are read", NULL);
    char *json = variable(c, "binlog_row_value_options");
    if (strcasestr(json, "PARTIAL_JSON"))
        addf(c, strcasecmp(c->server.row_image, "FULL") == 0 ? CDCD_CHECK_OK : CDCD_CHECK_WARN,
             "binlog_row_value_options", NULL,
             "%s: changes within JSON are applied to the old value%s", json,
             strcasecmp(c->server.row_image, "FULL") == 0 ? ""
                                                          : ", which needs binlog_row_image FULL");
    free(json);
    const char *query = mysql ? "binlog_rows_query_log_events" : "binlog_annotate_row_events";
    if (c->cfg->include_query && !is_on(c, query))
        addf(c, CDCD_CHECK_WARN, query, set_global(c, query, "ON"),
             "OFF: source.query stays empty though include.query asks for it");
    if (mysql)
        addf(
            c, c->server.gtid ? CDCD_CHECK_OK : CDCD_CHECK_WARN, "gtid_mode",
            c->server.gtid ? NULL
                           : cdcd_xstrdup("SET PERSIST enforce_gtid_consistency = ON; SET PERSIST "
                                          "gtid_mode = OFF_PERMISSIVE; ON_PERMISSIVE; ON, one "
                                          "after the other"),
            c->server.gtid
                ? "ON"
                : "not ON: positions are file and offset, which hold on this server only and below "
                  "4 GiB in a file");
    else
        add(c, CDCD_CHECK_OK, "gtid", "positions are GTIDs", NULL);
}

static void check_replica(struct check *c)
{
    bool mysql = c->server.flavor == MY_MYSQL;
    MYSQL_RES *r = NULL;
    struct cdcd_error err = {0};
    if (my_query(c->sql, &r, &err,
                 mysql && c->server.version >= 80022 ? "SHOW REPLICA STATUS"
                 : mysql                             ? "SHOW SLAVE STATUS"
                                                     : "SHOW ALL SLAVES STATUS") != CDCD_OK)
        return; /* may not: then it is most likely no replica */
    bool replica = mysql_num_rows(r) > 0;
    mysql_free_result(r);
    const char *name = mysql && c->server.version >= 80026 ? "log_replica_updates"
                                                           : "log_slave_updates";
    if (!replica)
        return;
    bool on = is_on(c, name);
    addf(c, on ? CDCD_CHECK_OK : CDCD_CHECK_FAIL, name,
         on ? NULL : cdcd_xasprintf("set %s in the server's configuration, and restart it", name),
         on ? "ON: this server is a replica and logs what it applies"
            : "OFF: this server is a replica, and what it gets from its source is not in its log");
}

static void check_retention(struct check *c)
{
    char *seconds_text = variable(c, "binlog_expire_logs_seconds");
    char *days_text = variable(c, "expire_logs_days");
    double seconds = strtod(seconds_text, NULL);
    if (seconds <= 0)
        seconds = strtod(days_text, NULL) * 86400;
    char *automatic = variable(c, "binlog_expire_logs_auto_purge"); /* MySQL 8.0.29 */
    bool purged = strcasecmp(automatic, "OFF") != 0;
    free(automatic);
    if (seconds <= 0 || !purged)
        add(c, CDCD_CHECK_OK, "binlog_expire_logs_seconds", "the log is kept until it is purged",
            NULL);
    else
        addf(c, seconds < 86400 ? CDCD_CHECK_WARN : CDCD_CHECK_OK, "binlog_expire_logs_seconds",
             seconds < 86400 ? set_global(c, "binlog_expire_logs_seconds", "604800") : NULL,
             "%.0f, that is %.1f hours: a pipeline that is stopped for longer needs a new snapshot",
             seconds, seconds / 3600);
    free(seconds_text);
    free(days_text);
    char *total = variable(c, "max_binlog_total_size");
    if (strtod(total, NULL) > 0)
        addf(c, CDCD_CHECK_WARN, "max_binlog_total_size", NULL,
             "%s: the log is also purged by size; a pipeline that is further behind needs a new "
             "snapshot",
             total);
    free(total);
}

/* ---- privileges ---- */

static void check_privilege(struct check *c, const char *privilege, bool has, const char *why)
{
    if (has)
        add(c, CDCD_CHECK_OK, "privileges", privilege, NULL);
    else
        addf(c, CDCD_CHECK_FAIL, "privileges",
             cdcd_xasprintf("GRANT %s ON *.* TO %s", privilege, c->grants.account),
             "%s lacks %s: %s", c->grants.account, privilege, why);
}

/* The choice is made in snapshot_lock.c; this says what it will have. */
static void check_lock(struct check *c)
{
    bool may = my_grants_have(&c->grants, "RELOAD") || my_grants_have(&c->grants, "FLUSH_TABLES");
    bool mariadb = c->server.flavor == MY_MARIADB, minimal = c->cfg->lock_mode == MY_LOCK_MINIMAL;
    char *grant = cdcd_xasprintf("GRANT %s ON *.* TO %s",
                                 !mariadb && c->server.version >= 80023 ? "FLUSH_TABLES" : "RELOAD",
                                 c->grants.account);
    if (minimal && !may)
        addf(c, CDCD_CHECK_FAIL, "snapshot lock", cdcd_xstrdup(grant),
             "snapshot.locking.mode is minimal, and the account may not lock");
    else if (minimal)
        add(c, CDCD_CHECK_OK, "snapshot lock", "writes wait while the views are taken", NULL);
    else if (mariadb)
        add(c, CDCD_CHECK_OK, "snapshot lock", "none is needed: the server tells a view's position",
            NULL);
    else if (c->server.gtid && may && c->cfg->lock_mode == MY_LOCK_AUTO)
        add(c, CDCD_CHECK_OK, "snapshot lock",
            "none, unless the server is never idle for a moment: then writes wait for milliseconds",
            NULL);
    else if (c->server.gtid)
        addf(c, CDCD_CHECK_WARN, "snapshot lock", may ? NULL : cdcd_xstrdup(grant),
             "none is taken: on a server that is never idle for a "
             "moment the snapshot cannot begin");
    else if (may && c->cfg->lock_mode == MY_LOCK_AUTO)
        add(c, CDCD_CHECK_OK, "snapshot lock",
            "without GTIDs writes wait for the milliseconds in which the views are taken", NULL);
    else
        addf(c, CDCD_CHECK_FAIL, "snapshot lock", may ? NULL : cdcd_xstrdup(grant),
             "without GTIDs a snapshot needs a read lock, and %s",
             may ? "snapshot.locking.mode is none" : "the account may not lock");
    free(grant);
}

static void check_privileges(struct check *c)
{
    check_privilege(c, "REPLICATION SLAVE", my_grants_have(&c->grants, "REPLICATION SLAVE"),
                    "the log cannot be read");
    check_privilege(c, log_privilege(&c->server), my_grants_may_see_log(&c->grants),
                    "the end of the log cannot be asked for");
    if (c->server.flavor == MY_MYSQL && !my_grants_have(&c->grants, "XA_RECOVER_ADMIN"))
        addf(c, CDCD_CHECK_WARN, "privileges",
             cdcd_xasprintf("GRANT XA_RECOVER_ADMIN ON *.* TO %s", c->grants.account),
             "%s lacks XA_RECOVER_ADMIN: if an XA transaction is prepared while a snapshot begins, "
             "the stream stops at its commit",
             c->grants.account);
    check_lock(c);
}

/* ---- the log itself ---- */

/* Under another number, so that a running pipeline is not ended by it. */
static void check_dump(struct check *c)
{
    struct my_config trial = *c->cfg;
    struct my_log_end end;
    struct my_dump *d = NULL;
    struct cdcd_error err = {0};
    struct cdcd_slice event;
    uint32_t n = 0;
    if (getrandom(&n, sizeof n, 0) != (ssize_t)sizeof n)
        n = (uint32_t)cdcd_wallclock_us();
    trial.server_id = (n & 0x7ffffffe) | 0x80000000;
    if (my_log_end(c->sql, &c->server, &end, &err) != CDCD_OK) {
        add(c, CDCD_CHECK_FAIL, "binlog", err.text, NULL);
        return;
    }
    struct my_position p = {
        .flavor = c->server.flavor, .gtid = end.gtid, .file = end.file, .pos = end.pos};
    enum cdcd_rc rc = my_dump_open(&trial, &c->server, &p, &d, &err);
    if (rc == CDCD_OK)
        rc = my_dump_read(d, cdcd_now_ms() + 10000, &event, &err);
    my_dump_close(d);
    if (rc == CDCD_OK)
        addf(c, CDCD_CHECK_OK, "binlog", NULL, "can be read; it ends at %s:%" PRIu64, end.file,
             end.pos);
    else
        add(c, CDCD_CHECK_FAIL, "binlog",
            rc == CDCD_AGAIN ? "nothing came within 10 seconds" : err.text, NULL);
    my_log_end_free(&end);

    err = (struct cdcd_error){0};
    if (my_dump_check_double(c->sql, c->cfg, &c->server, &err) == CDCD_OK)
        addf(c, CDCD_CHECK_OK, "server.id", NULL, "%" PRId64, c->cfg->server_id);
    else
        add(c, CDCD_CHECK_FAIL, "server.id", err.text, NULL);
}

/* binlog-do-db and binlog-ignore-db can be changed only with a restart, so one look is enough. */
static void check_log_filters(struct check *c)
{
    MYSQL_RES *r = NULL;
    struct cdcd_error err = {0};
    bool renamed = c->server.flavor == MY_MYSQL && c->server.version >= 80200;
    if (my_query(c->sql, &r, &err, renamed ? "SHOW BINARY LOG STATUS" : "SHOW MASTER STATUS") !=
        CDCD_OK)
        return; /* said already */
    MYSQL_ROW row = mysql_fetch_row(r);
    bool filtered = row && mysql_num_fields(r) >= 4 && ((row[2] && *row[2]) || (row[3] && *row[3]));
    if (filtered)
        addf(c, CDCD_CHECK_WARN, "binlog_do_db, binlog_ignore_db", NULL,
             "the server logs %s%s%s%s: changes of other databases are not in the log",
             row[2] && *row[2] ? "only " : "all but ", row[2] && *row[2] ? row[2] : row[3],
             row[2] && *row[2] && row[3] && *row[3] ? " without " : "",
             row[2] && *row[2] && row[3] ? row[3] : "");
    mysql_free_result(r);
}

/* ---- tables ---- */

/* False when enough has been said about this kind. */
static bool captured(const struct check *c, const struct my_table *t)
{
    return !t->view && !t->sequence && my_filter_table(c->filter, t->db, t->name);
}

static void check_keys(struct check *c)
{
    for (size_t i = 0; i < c->tables.n; i++) {
        const struct my_table *t = c->tables.items[i];
        if (!captured(c, t) || t->nkeys > 0 || !cdcd_report_more(&c->lines))
            continue;
        char *what = my_sql("table %I.%I", t->db, t->name);
        addf(c, CDCD_CHECK_WARN, what,
             my_sql("ALTER TABLE %I.%I ADD PRIMARY KEY (...); or set message.key.columns", t->db,
                    t->name),
             "has no primary key: its records have a null key, and its topic cannot be compacted");
        free(what);
    }
    cdcd_report_end(c->report, &c->lines, "keys");
}

static void check_reading(struct check *c)
{
    size_t unreadable = 0;
    for (size_t i = 0; i < c->tables.n; i++) {
        const struct my_table *t = c->tables.items[i];
        struct cdcd_error err = {0};
        MYSQL_RES *r = NULL;
        if (!captured(c, t))
            continue;
        if (my_queryf(c->sql, &r, &err, "SELECT * FROM %I.%I LIMIT 0", t->db, t->name) == CDCD_OK) {
            mysql_free_result(r);
            continue;
        }
        unreadable++;
        if (!cdcd_report_more(&c->lines))
            continue;
        char *what = my_sql("table %I.%I", t->db, t->name);
        char *grant = my_sql("GRANT SELECT ON %I.%I TO ", t->db, t->name);
        addf(c, CDCD_CHECK_FAIL, what, cdcd_xasprintf("%s%s", grant, c->grants.account),
             "cannot be read: its snapshot fails: %s", err.text);
        free(grant);
        free(what);
    }
    cdcd_report_end(c->report, &c->lines, "reading");
    if (unreadable == 0 && c->tables.n > 0)
        add(c, CDCD_CHECK_OK, "privileges", "every captured table can be read", NULL);
}

/* SHOW CREATE TABLE has each foreign key in a line of its own; information_schema shows them only
 * to who may do more than read. */
static bool cascades(const char *create)
{
    for (const char *line = create; *line;) {
        const char *end = line + strcspn(line, "\n");
        const char *on = strstr(line, " ON DELETE ");
        if (!on || on > end)
            on = strstr(line, " ON UPDATE ");
        bool key = strncmp(line, "  CONSTRAINT ", 13) == 0 && on && on < end;
        for (; key && on && on < end; on = strstr(on + 1, " ON ")) {
            if (strncmp(on + 11, "CASCADE", 7) == 0 || strncmp(on + 11, "SET ", 4) == 0)
                return true;
        }
        line = end + (*end == '\n');
    }
    return false;
}

/* Before MySQL 9.6 and on MariaDB the storage engine follows foreign keys by itself, and nothing of
 * it is logged. */
static void check_cascades(struct check *c)
{
    if (c->server.flavor == MY_MYSQL && c->server.version >= 90600)
        return;
    for (size_t i = 0; i < c->tables.n; i++) {
        const struct my_table *t = c->tables.items[i];
        struct cdcd_error err = {0};
        char *create = NULL;
        if (!captured(c, t) ||
            my_catalog_create_table(c->sql, t->db, t->name, &create, &err) != CDCD_OK)
            continue;
        if (cascades(create) && cdcd_report_more(&c->lines)) {
            char *what = my_sql("table %I.%I", t->db, t->name);
            add(c, CDCD_CHECK_WARN, what,
                "has a foreign key that cascades: rows that the server changes or deletes by it "
                "are not in the log",
                "let the application change them, or make the key RESTRICT");
            free(what);
        }
        free(create);
    }
    cdcd_report_end(c->report, &c->lines, "foreign keys");
}

static void check_tables(struct check *c)
{
    struct cdcd_error err = {0};
    size_t n = 0;
    if (my_catalog_read(c->sql, &c->server, c->filter, NULL, NULL, &c->tables, &err) != CDCD_OK) {
        add(c, CDCD_CHECK_FAIL, "tables", err.text, NULL);
        return;
    }
    for (size_t i = 0; i < c->tables.n; i++)
        n += captured(c, c->tables.items[i]);
    bool named = c->cfg->table_include.n > 0 || c->cfg->database_include.n > 0;
    if (n > 0)
        addf(c, CDCD_CHECK_OK, "tables", NULL, "%zu captured", n);
    else
        addf(c, named ? CDCD_CHECK_FAIL : CDCD_CHECK_WARN, "tables",
             cdcd_xasprintf("GRANT SELECT ON DATABASE.* TO %s, if the tables exist",
                            c->grants.account),
             "none that the account can see is captured: table.include.list has regular "
             "expressions for the whole DATABASE.TABLE");
    check_keys(c);
    check_reading(c);
    check_cascades(c);
}

/* ---- all ---- */

static void check_log(struct check *c)
{
    const struct my_server *s = &c->server;
    addf(c, s->log_bin ? CDCD_CHECK_OK : CDCD_CHECK_FAIL, "log_bin",
         s->log_bin ? NULL
                    : cdcd_xstrdup("set log_bin and server_id in the server's configuration, and "
                                   "restart it"),
         s->log_bin ? "ON" : "OFF");
    addf(c, s->server_id ? CDCD_CHECK_OK : CDCD_CHECK_FAIL, "server_id",
         s->server_id ? NULL : set_global(c, "server_id", "1"), "%u%s", s->server_id,
         s->server_id ? "" : ": the server refuses replicas");
    check_format(c);
    check_log_options(c);
    check_retention(c);
    check_replica(c);
    check_privileges(c);
    if (s->log_bin) {
        check_dump(c);
        check_log_filters(c);
    }
}

static void check_free(struct check *c, struct my_config *cfg)
{
    my_table_list_free(&c->tables);
    my_grants_free(&c->grants);
    my_filter_free(c->filter);
    if (c->sql)
        mysql_close(c->sql);
    my_config_free(cfg);
}

enum cdcd_rc my_check(const void *config, const struct cdcd_source_env *env,
                      struct cdcd_report *report, struct cdcd_error *err)
{
    struct my_config *cfg = NULL;
    struct check c = {.env = env, .report = report};
    enum cdcd_rc rc = my_config_resolve(config, env, &cfg, err);
    if (rc != CDCD_OK)
        return rc;
    c.cfg = cfg;
    rc = my_filter_new(cfg, &c.filter, err);
    if (rc == CDCD_OK && check_connection(&c)) {
        my_filter_fold(c.filter, c.server.lower_case_table_names != 0);
        check_log(&c);
        check_tables(&c);
    }
    check_free(&c, cfg);
    return rc;
}

enum cdcd_rc my_drop(const void *config, const struct cdcd_source_env *env, bool dry,
                     struct cdcd_report *report, struct cdcd_error *err)
{
    (void)config, (void)env, (void)dry, (void)err;
    report->add(report->ctx, CDCD_CHECK_OK, "server",
                "nothing to drop: the source keeps nothing on the server", NULL);
    return CDCD_OK;
}
