/*
 * check.c: what `cdcd check` says about the database, and `cdcd drop`.
 *
 * One line a finding, each with what to run to mend it. Tables get a line only when something is
 * wrong with them.
 */
#include "publication.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

struct check {
    const struct pg_config *cfg;
    const struct cdcd_source_env *env;
    struct cdcd_report *report;
    PGconn *sql;
    struct pg_server server;
    struct pg_filter *filter;
    struct pg_publication publication;
    struct pg_pub_tables tables;
    struct pg_slot slot;
    size_t lines; /* of the kind at work */
};

static void add(struct check *c, enum cdcd_check_level level, const char *what, const char *text,
                const char *mend)
{
    c->report->add(c->report->ctx, level, what, text, mend);
}

#define addf(c, ...) cdcd_report_addf((c)->report, __VA_ARGS__)

/* ---- server ---- */

static bool check_connection(struct check *c)
{
    struct cdcd_error err = {0};
    PGconn *repl = NULL;
    if (pg_connect(c->cfg, false, &c->sql, &err) != CDCD_OK ||
        pg_server_info(c->sql, NULL, &c->server, &err) != CDCD_OK) {
        add(c, CDCD_CHECK_FAIL, "connection", err.text, NULL);
        return false;
    }
    addf(c, CDCD_CHECK_OK, "connection", NULL,
         "PostgreSQL %d.%d at %s:%s, database \"%s\", user \"%s\"", c->server.version / 10000,
         c->server.version % 10000, PQhost(c->sql) ? PQhost(c->sql) : "",
         PQport(c->sql) ? PQport(c->sql) : "", c->server.db, PQuser(c->sql));
    if (pg_connect(c->cfg, true, &repl, &err) != CDCD_OK) {
        char *role = pg_sql("ALTER ROLE %I REPLICATION", PQuser(c->sql));
        char *mend = cdcd_xasprintf("%s; and a pg_hba.conf line that lets this user in (logical "
                                    "replication matches the database's name)",
                                    role);
        free(role);
        addf(c, CDCD_CHECK_FAIL, "replication connection", mend, "%s", err.text);
        return true;
    }
    add(c, CDCD_CHECK_OK, "replication connection", "accepted", NULL);
    PQfinish(repl);
    return true;
}

static char *setting(struct check *c, const char *name)
{
    PGresult *r = NULL;
    struct cdcd_error err = {0};
    char *out = NULL;
    if (pg_query(c->sql, &r, &err, "SELECT current_setting($1, true)", 1, &name) == CDCD_OK &&
        PQntuples(r) == 1 && !PQgetisnull(r, 0, 0))
        out = cdcd_xstrdup(PQgetvalue(r, 0, 0));
    PQclear(r);
    return out ? out : cdcd_xstrdup("");
}

static int64_t number(struct check *c, const char *sql)
{
    PGresult *r = NULL;
    struct cdcd_error err = {0};
    int64_t out = -1;
    if (pg_query(c->sql, &r, &err, sql, 0, NULL) == CDCD_OK && PQntuples(r) == 1)
        out = strtoll(PQgetvalue(r, 0, 0), NULL, 10);
    PQclear(r);
    return out;
}

static void check_recovery(struct check *c)
{
    if (!c->server.in_recovery)
        return;
    if (c->server.version < 160000) {
        add(c, CDCD_CHECK_FAIL, "standby",
            "this server is a standby, and capture from one needs PostgreSQL 16 or later",
            "connect to the primary");
        return;
    }
    char *feedback = setting(c, "hot_standby_feedback");
    if (strcmp(feedback, "on") == 0)
        add(c, CDCD_CHECK_OK, "standby", "hot_standby_feedback is on", NULL);
    else
        add(c, CDCD_CHECK_WARN, "standby",
            "hot_standby_feedback is off: the primary may remove rows that decoding needs, and "
            "the slot is then invalidated",
            "ALTER SYSTEM SET hot_standby_feedback = on; SELECT pg_reload_conf()");
    free(feedback);
}

static void check_room(struct check *c, const char *name, const char *used_sql, int64_t need)
{
    char *max_text = setting(c, name);
    int64_t max = strtoll(max_text, NULL, 10), used = number(c, used_sql);
    free(max_text);
    enum cdcd_check_level level = max - used >= need ? CDCD_CHECK_OK
                                  : max - used > 0   ? CDCD_CHECK_WARN
                                                     : CDCD_CHECK_FAIL;
    char *mend = level == CDCD_CHECK_OK
                     ? NULL
                     : cdcd_xasprintf("ALTER SYSTEM SET %s = %" PRId64 " and restart the server",
                                      name, used + need + 2);
    addf(c, level, name, mend,
         "%" PRId64 " of %" PRId64 " in use, up to %" PRId64 " more needed (one of them while a "
         "snapshot begins)",
         used, max, need);
}

static void check_settings(struct check *c)
{
    char *level = setting(c, "wal_level");
    bool good = strcmp(level, "logical") == 0;
    addf(c, good ? CDCD_CHECK_OK : CDCD_CHECK_FAIL, "wal_level",
         good ? NULL
              : cdcd_xstrdup("ALTER SYSTEM SET wal_level = 'logical' and restart the server"),
         "%s", level);
    free(level);

    check_room(c, "max_replication_slots", "SELECT count(*) FROM pg_catalog.pg_replication_slots",
               c->slot.exists ? 1 : 2);
    check_room(c, "max_wal_senders",
               "SELECT count(*) FROM pg_catalog.pg_stat_activity WHERE backend_type = 'walsender'",
               c->slot.active ? 1 : 2);

    int64_t timeout = c->server.wal_sender_timeout_ms;
    bool hasty = timeout > 0 && timeout < 10000;
    addf(c, hasty ? CDCD_CHECK_WARN : CDCD_CHECK_OK, "wal_sender_timeout",
         hasty ? cdcd_xstrdup("ALTER SYSTEM SET wal_sender_timeout = '60s'; SELECT "
                              "pg_reload_conf()")
               : NULL,
         "%" PRId64 " ms%s", timeout,
         hasty         ? ": a short pause of the network or of a host ends the stream"
         : timeout > 0 ? ""
                       : ": off");

    char *keep = setting(c, "max_slot_wal_keep_size");
    bool unlimited = strcmp(keep, "-1") == 0;
    addf(c, CDCD_CHECK_OK, "max_slot_wal_keep_size", NULL,
         unlimited ? "%s: no limit, a stopped pipeline keeps log until the disk is full"
                   : "%s: a pipeline that falls further behind loses its slot and needs a new "
                     "snapshot",
         keep);
    free(keep);
    char *idle = setting(c, "idle_replication_slot_timeout");
    if (idle[0] && strcmp(idle, "0") != 0)
        addf(c, CDCD_CHECK_WARN, "idle_replication_slot_timeout",
             cdcd_xstrdup("ALTER SYSTEM SET idle_replication_slot_timeout = 0; SELECT "
                          "pg_reload_conf()"),
             "%s: a pipeline that is stopped for longer loses its slot", idle);
    free(idle);
    char *memory = setting(c, "logical_decoding_work_mem");
    addf(c, CDCD_CHECK_OK, "logical_decoding_work_mem", NULL, "%s: larger transactions are %s",
         memory,
         c->server.version >= 140000 && c->cfg->streaming
             ? "streamed to spill.dir before they commit"
             : "written to disk by the server first");
    free(memory);
}

/* ---- slot and publication ---- */

static void check_slot(struct check *c)
{
    const char *name = c->cfg->slot_name;
    struct cdcd_error err = {0};
    pg_lsn now = 0;
    if (!c->slot.exists) {
        addf(c, CDCD_CHECK_OK, "slot", NULL, "\"%s\" does not exist yet: the first run creates it",
             name);
        return;
    }
    if (pg_slot_server_lsn(c->sql, c->server.in_recovery, &now, &err) != CDCD_OK) {
        add(c, CDCD_CHECK_FAIL, "slot", err.text, NULL);
        return;
    }
    uint64_t behind = now > c->slot.confirmed_flush ? now - c->slot.confirmed_flush : 0;
    if (pg_slot_verify(&c->slot, name, c->server.db, &c->server, now, NULL, &err) != CDCD_OK) {
        bool busy = err.class == CDCD_ERR_RETRY;
        addf(c, busy ? CDCD_CHECK_WARN : CDCD_CHECK_FAIL, "slot", NULL,
             busy ? "%s. That is as it should be while this pipeline runs" : "%s", err.text);
        return;
    }
    bool short_of = strcmp(c->slot.wal_status, "unreserved") == 0;
    addf(c, short_of ? CDCD_CHECK_WARN : CDCD_CHECK_OK, "slot",
         short_of ? cdcd_xstrdup("start the pipeline now; raise max_slot_wal_keep_size") : NULL,
         "\"%s\" is confirmed up to " PG_LSN_FMT ", %" PRIu64
         " bytes behind the server; wal_status "
         "%s%s",
         name, PG_LSN_ARGS(c->slot.confirmed_flush), behind, c->slot.wal_status,
         short_of ? ": the server is about to remove log that is not read yet" : "");
}

static void check_new_publication(struct check *c)
{
    const char *name = c->cfg->publication_name;
    size_t wanted = 0, foreign = 0;
    char *list = pg_pub_list_sql(&c->tables, false, &wanted);
    char *mend = c->cfg->publication_autocreate == PG_AUTOCREATE_ALL
                     ? pg_sql("CREATE PUBLICATION %I FOR ALL TABLES", name)
                     : pg_sql(wanted ? "CREATE PUBLICATION %I FOR TABLE %s"
                                     : "CREATE PUBLICATION %I%s",
                              name, list);
    free(list);
    int64_t super = number(c, "SELECT rolsuper::int FROM pg_catalog.pg_roles WHERE rolname = "
                              "current_user");
    int64_t may = number(c, "SELECT has_database_privilege(current_database(), 'CREATE')::int");
    for (size_t i = 0; i < c->tables.n; i++)
        foreign += pg_pub_table_wanted(&c->tables, &c->tables.items[i]) &&
                   !c->tables.items[i].owner;
    if (c->server.in_recovery)
        addf(c, CDCD_CHECK_FAIL, "publication", mend,
             "\"%s\" does not exist, and cannot be created on a standby", name);
    else if (c->cfg->publication_autocreate == PG_AUTOCREATE_DISABLED)
        addf(c, CDCD_CHECK_FAIL, "publication", mend,
             "\"%s\" does not exist and publication.autocreate.mode is disabled", name);
    else if (c->cfg->publication_autocreate == PG_AUTOCREATE_ALL && super != 1)
        addf(c, CDCD_CHECK_FAIL, "publication", mend,
             "\"%s\" does not exist, and only a superuser may create one for all tables", name);
    else if (super != 1 && (may != 1 || foreign > 0))
        addf(c, CDCD_CHECK_FAIL, "publication", mend,
             "\"%s\" does not exist, and \"%s\" may not create it: %s", name, PQuser(c->sql),
             may != 1 ? "CREATE on the database is missing" : "it does not own the tables");
    else {
        free(mend);
        addf(c, CDCD_CHECK_OK, "publication", NULL,
             "\"%s\" does not exist yet: the first run creates it", name);
    }
}

static void check_publication(struct check *c)
{
    const struct pg_publication *p = &c->publication;
    const char *name = c->cfg->publication_name;
    if (!p->exists) {
        check_new_publication(c);
        return;
    }
    bool all = p->insert && p->update && p->delete;
    addf(c, all ? CDCD_CHECK_OK : CDCD_CHECK_FAIL, "publication",
         all ? NULL
             : pg_sql("ALTER PUBLICATION %I SET (publish = 'insert, update, delete, truncate')",
                      name),
         "\"%s\" publishes%s%s%s%s%s", name, p->insert ? " insert" : "", p->update ? " update" : "",
         p->delete ? " delete" : "", p->truncate ? " truncate" : "",
         all ? "" : ": the other changes would be lost");
    if (c->env->want_truncate && !p->truncate)
        addf(
            c, CDCD_CHECK_WARN, "publication",
            pg_sql("ALTER PUBLICATION %I SET (publish = 'insert, update, delete, truncate')", name),
            "\"%s\" does not publish truncate, which skipped.operations asks for", name);
    if (p->via_root != c->cfg->publish_via_root)
        addf(c, CDCD_CHECK_WARN, "publication",
             pg_sql("ALTER PUBLICATION %I SET (publish_via_partition_root = %s)", name,
                    c->cfg->publish_via_root ? "true" : "false"),
             "\"%s\" has publish_via_partition_root = %s, the config says otherwise: what the "
             "publication says holds",
             name, p->via_root ? "true" : "false");
}

/* ---- tables ---- */

/* False when enough has been said about this kind. */
static bool comes(const struct check *c, const struct pg_pub_table *t)
{
    if (!t->captured)
        return false;
    bool created = !c->publication.exists ||
                   (c->publication.ours &&
                    c->cfg->publication_autocreate == PG_AUTOCREATE_FILTERED);
    return created || pg_pub_table_covered(&c->tables, t, &c->publication);
}

static void check_coverage(struct check *c)
{
    size_t captured = 0, uncovered = 0;
    for (size_t i = 0; i < c->tables.n; i++) {
        const struct pg_pub_table *t = &c->tables.items[i];
        captured += comes(c, t);
        if (!t->captured || comes(c, t) || !pg_explicit_tables(c->cfg))
            continue;
        uncovered++;
        if (!cdcd_report_more(&c->lines))
            continue;
        char *what = pg_sql("table %I.%I", t->schema, t->table);
        addf(c, CDCD_CHECK_FAIL, what,
             pg_sql("ALTER PUBLICATION %I ADD TABLE %I.%I", c->cfg->publication_name, t->schema,
                    t->table),
             "is in the include lists but not in publication \"%s\": its changes would be lost",
             c->cfg->publication_name);
        free(what);
    }
    cdcd_report_end(c->report, &c->lines, "tables");
    if (captured > 0)
        addf(c, CDCD_CHECK_OK, "tables", NULL, "%zu captured", captured);
    else if (uncovered == 0)
        addf(c, pg_explicit_tables(c->cfg) ? CDCD_CHECK_FAIL : CDCD_CHECK_WARN, "tables", NULL,
             "none of the %zu tables of database \"%s\" is captured%s", c->tables.n, c->server.db,
             pg_explicit_tables(c->cfg)
                 ? ": table.include.list holds regular expressions for the whole schema.table"
                 : "");
}

static void check_keys(struct check *c)
{
    for (size_t i = 0; i < c->tables.n; i++) {
        const struct pg_pub_table *t = &c->tables.items[i];
        bool keyed = t->primary || (t->replident == 'i' && t->has_key);
        if (!comes(c, t) || t->partitioned || (keyed && !pg_pub_table_breaks(t)) ||
            !cdcd_report_more(&c->lines))
            continue;
        char *what = pg_sql("table %I.%I", t->schema, t->table);
        if (pg_pub_table_breaks(t))
            addf(
                c, CDCD_CHECK_WARN, what,
                pg_sql("ALTER TABLE %I.%I ADD PRIMARY KEY (...); or, without a key, ALTER TABLE "
                       "%I.%I REPLICA IDENTITY FULL",
                       t->schema, t->table, t->schema, t->table),
                "has %s: while it is published the server refuses UPDATE and DELETE on it, and its "
                "records have a null key",
                t->replident == 'n' ? "REPLICA IDENTITY NOTHING" : "no primary key");
        else
            addf(c, CDCD_CHECK_WARN, what,
                 pg_sql("ALTER TABLE %I.%I ADD PRIMARY KEY (...); or set message.key.columns",
                        t->schema, t->table),
                 "has no primary key: its records have a null key, and its topic cannot be "
                 "compacted");
        free(what);
    }
    cdcd_report_end(c->report, &c->lines, "keys");
}

static void check_reading(struct check *c)
{
    size_t unreadable = 0;
    bool bypass = pg_bypasses_rls(c->sql);
    for (size_t i = 0; i < c->tables.n; i++) {
        const struct pg_pub_table *t = &c->tables.items[i];
        bool hidden = pg_pub_table_hidden(t, bypass);
        if (!comes(c, t) || (t->select && !hidden))
            continue;
        unreadable++;
        if (!cdcd_report_more(&c->lines))
            continue;
        char *what = pg_sql("table %I.%I", t->schema, t->table);
        if (!t->select)
            addf(c, CDCD_CHECK_FAIL, what,
                 pg_sql("GRANT USAGE ON SCHEMA %I TO %I; GRANT SELECT ON %I.%I TO %I", t->schema,
                        PQuser(c->sql), t->schema, t->table, PQuser(c->sql)),
                 "cannot be read by \"%s\": its snapshot fails", PQuser(c->sql));
        else
            addf(c, CDCD_CHECK_FAIL, what, pg_sql("ALTER ROLE %I BYPASSRLS", PQuser(c->sql)),
                 "has row-level security, which may hide rows from \"%s\": its snapshot is refused",
                 PQuser(c->sql));
        free(what);
    }
    cdcd_report_end(c->report, &c->lines, "reading");
    if (unreadable == 0)
        add(c, CDCD_CHECK_OK, "privileges", "every captured table can be read", NULL);
}

/* What the include lists name and logical decoding cannot give. */
static void check_undecodable(struct check *c)
{
    PGresult *r = NULL;
    struct cdcd_error err = {0};
    if (!pg_explicit_tables(c->cfg))
        return;
    if (pg_query(c->sql, &r, &err,
                 "SELECT n.nspname, c.relname, CASE c.relkind WHEN 'f' THEN 'a foreign table' "
                 "WHEN 'v' THEN 'a view' WHEN 'm' THEN 'a materialized view' ELSE CASE "
                 "c.relpersistence WHEN 'u' THEN 'an unlogged table' ELSE 'a temporary table' END "
                 "END FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = "
                 "c.relnamespace WHERE (c.relkind IN ('f', 'v', 'm') OR (c.relkind IN ('r', 'p') "
                 "AND c.relpersistence <> 'p')) AND n.nspname NOT IN ('pg_catalog', "
                 "'information_schema') ORDER BY 1, 2",
                 0, NULL) != CDCD_OK) {
        add(c, CDCD_CHECK_WARN, "tables", err.text, NULL);
        return;
    }
    for (int i = 0; i < PQntuples(r); i++) {
        const char *schema = PQgetvalue(r, i, 0), *table = PQgetvalue(r, i, 1);
        if (!pg_filter_table(c->filter, schema, table) || !cdcd_report_more(&c->lines))
            continue;
        char *what = pg_sql("table %I.%I", schema, table);
        addf(c, CDCD_CHECK_WARN, what, NULL,
             "matches the include lists but is %s: its changes are not in the log, and it is left "
             "out",
             PQgetvalue(r, i, 2));
        free(what);
    }
    cdcd_report_end(c->report, &c->lines, "tables");
    PQclear(r);
}

static void add_clash(void *ctx, const char *text)
{
    struct check *c = ctx;
    if (cdcd_report_more(&c->lines))
        add(c, CDCD_CHECK_WARN, "topics", text, "exclude one of the two tables, or rename it");
}

/* ---- all ---- */

static enum cdcd_rc read_state(struct check *c, struct cdcd_error *err)
{
    if (pg_filter_new(c->cfg, &c->filter, err) != CDCD_OK)
        return CDCD_ERROR;
    if (pg_slot_read(c->sql, c->server.version, c->cfg->slot_name, &c->slot, err) != CDCD_OK)
        return CDCD_ERROR;
    if (pg_publication_read(c->sql, c->cfg->publication_name, &c->publication, err) != CDCD_OK)
        return CDCD_ERROR;
    return pg_pub_tables_read(c->sql, c->cfg->publication_name, c->filter, &c->tables, err);
}

static void check_free(struct check *c, struct pg_config *cfg)
{
    pg_pub_tables_free(&c->tables);
    pg_publication_clear(&c->publication);
    pg_filter_free(c->filter);
    pg_server_free(&c->server);
    PQfinish(c->sql);
    pg_config_free(cfg);
}

enum cdcd_rc pg_check(const void *config, const struct cdcd_source_env *env,
                      struct cdcd_report *report, struct cdcd_error *err)
{
    struct pg_config *cfg = NULL;
    struct check c = {.env = env, .report = report};
    enum cdcd_rc rc = pg_config_resolve(config, env, &cfg, err);
    if (rc != CDCD_OK)
        return rc;
    c.cfg = cfg;
    if (check_connection(&c)) {
        rc = read_state(&c, err);
        if (rc == CDCD_OK) {
            check_recovery(&c);
            check_settings(&c);
            check_slot(&c);
            check_publication(&c);
            check_coverage(&c);
            check_keys(&c);
            check_reading(&c);
            check_undecodable(&c);
            pg_pub_topic_clashes(&c.tables, add_clash, &c);
            cdcd_report_end(c.report, &c.lines, "topics");
        }
    }
    check_free(&c, cfg);
    return rc;
}

/* ---- drop: WARN is what a real run would remove ---- */

static enum cdcd_rc drop_slot(struct check *c, bool dry, struct cdcd_error *err)
{
    const char *name = c->cfg->slot_name;
    if (!c->slot.exists) {
        addf(c, CDCD_CHECK_OK, "slot", NULL, "\"%s\" does not exist", name);
        return CDCD_OK;
    }
    if (strcmp(c->slot.plugin, "pgoutput") != 0 || strcmp(c->slot.database, c->server.db) != 0) {
        addf(c, CDCD_CHECK_OK, "slot", NULL,
             "\"%s\" is left as it is: it belongs to database \"%s\", plugin \"%s\", and is not "
             "ours",
             name, c->slot.database, c->slot.plugin);
        return CDCD_OK;
    }
    if (c->slot.active)
        return cdcd_error_set(
            err, CDCD_ERR_FATAL,
            "replication slot \"%s\" is active for PID %d: stop the pipeline first", name,
            c->slot.active_pid);
    if (!dry &&
        pg_query(c->sql, NULL, err, "SELECT pg_drop_replication_slot($1)", 1, &name) != CDCD_OK)
        return cdcd_error_context(err, "cannot drop replication slot \"%s\"", name);
    addf(c, dry ? CDCD_CHECK_WARN : CDCD_CHECK_OK, "slot", NULL,
         dry ? "\"%s\" will be dropped: the pipeline cannot go on from its stored position then"
             : "\"%s\" is dropped",
         name);
    return CDCD_OK;
}

static enum cdcd_rc drop_publication(struct check *c, bool dry, struct cdcd_error *err)
{
    const char *name = c->cfg->publication_name;
    char *sql = pg_sql("DROP PUBLICATION %I", name);
    enum cdcd_rc rc = CDCD_OK;
    if (!c->publication.exists) {
        addf(c, CDCD_CHECK_OK, "publication", NULL, "\"%s\" does not exist", name);
    } else if (!c->publication.ours) {
        addf(c, CDCD_CHECK_OK, "publication", cdcd_xstrdup(sql),
             "\"%s\" is left as it is: cdcd did not create it", name);
    } else {
        if (!dry)
            rc = pg_query(c->sql, NULL, err, sql, 0, NULL);
        if (rc == CDCD_OK)
            addf(c, dry ? CDCD_CHECK_WARN : CDCD_CHECK_OK, "publication", NULL,
                 dry ? "\"%s\" will be dropped" : "\"%s\" is dropped", name);
        else
            cdcd_error_context(err, "cannot drop publication \"%s\"", name);
    }
    free(sql);
    return rc;
}

enum cdcd_rc pg_drop(const void *config, const struct cdcd_source_env *env, bool dry,
                     struct cdcd_report *report, struct cdcd_error *err)
{
    struct pg_config *cfg = NULL;
    struct check c = {.env = env, .report = report};
    enum cdcd_rc rc = pg_config_resolve(config, env, &cfg, err);
    if (rc != CDCD_OK)
        return rc;
    c.cfg = cfg;
    rc = pg_connect(cfg, false, &c.sql, err);
    if (rc == CDCD_OK)
        rc = pg_server_info(c.sql, NULL, &c.server, err);
    if (rc == CDCD_OK)
        rc = read_state(&c, err);
    if (rc == CDCD_OK)
        rc = drop_slot(&c, dry, err);
    if (rc == CDCD_OK)
        rc = drop_publication(&c, dry, err);
    check_free(&c, cfg);
    return rc;
}
