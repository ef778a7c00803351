/*
 * publication.c: the publication. Creates it by publication.autocreate.mode, adds tables to one
 * that cdcd made, and verifies one that somebody else made, which is used as it is.
 *
 * A publication that is ours carries a comment (PG_PUBLICATION_MARK): that is how it is told
 * apart, also after the config has changed.
 */
#include "publication.h"

#include <stdio.h>
#include <stdlib.h>

#define NAMED_MAX 10 /* tables named in one message */

enum cdcd_rc pg_publication_read(PGconn *sql, const char *name, struct pg_publication *out,
                                 struct cdcd_error *err)
{
    PGresult *r = NULL;
    *out = (struct pg_publication){0};
    if (pg_query(sql, &r, err,
                 "SELECT puballtables, pubinsert, pubupdate, pubdelete, pubtruncate, pubviaroot, "
                 "coalesce(obj_description(oid, 'pg_publication'), ''), pg_get_userbyid(pubowner) "
                 "FROM pg_catalog.pg_publication WHERE pubname = $1",
                 1, &name) != CDCD_OK)
        return cdcd_error_context(err, "cannot read publication \"%s\"", name);
    if (PQntuples(r) > 0) {
        out->exists = true;
        out->all_tables = PQgetvalue(r, 0, 0)[0] == 't';
        out->insert = PQgetvalue(r, 0, 1)[0] == 't';
        out->update = PQgetvalue(r, 0, 2)[0] == 't';
        out->delete = PQgetvalue(r, 0, 3)[0] == 't';
        out->truncate = PQgetvalue(r, 0, 4)[0] == 't';
        out->via_root = PQgetvalue(r, 0, 5)[0] == 't';
        out->ours = strncmp(PQgetvalue(r, 0, 6), PG_PUBLICATION_MARK,
                            sizeof PG_PUBLICATION_MARK - 1) == 0;
        out->owner = cdcd_xstrdup(PQgetvalue(r, 0, 7));
    }
    PQclear(r);
    return CDCD_OK;
}

void pg_publication_clear(struct pg_publication *p)
{
    free(p->owner);
    p->owner = NULL;
}

/* One round trip for any number of tables. Publishable: no system, temporary, unlogged table. */
static const char tables_sql[] =
    "SELECT c.oid, coalesce(i.inhparent, 0), n.nspname, c.relname, c.relkind = 'p', "
    "pr.oid IS NOT NULL, pt.tablename IS NOT NULL, c.relreplident, "
    "EXISTS (SELECT FROM pg_catalog.pg_index x WHERE x.indrelid = c.oid AND "
    "CASE c.relreplident WHEN 'd' THEN x.indisprimary WHEN 'i' THEN x.indisreplident END), "
    "EXISTS (SELECT FROM pg_catalog.pg_index x WHERE x.indrelid = c.oid AND x.indisprimary), "
    "c.relrowsecurity, has_table_privilege(c.oid, 'SELECT'), "
    "pg_has_role(c.relowner, 'USAGE'), c.relforcerowsecurity "
    "FROM pg_catalog.pg_class c "
    "JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace "
    "LEFT JOIN pg_catalog.pg_inherits i ON c.relispartition AND i.inhrelid = c.oid "
    "LEFT JOIN pg_catalog.pg_publication_rel pr ON pr.prrelid = c.oid AND pr.prpubid = "
    "(SELECT oid FROM pg_catalog.pg_publication WHERE pubname = $1) "
    "LEFT JOIN pg_catalog.pg_publication_tables pt ON pt.pubname = $1 "
    "AND pt.schemaname = n.nspname AND pt.tablename = c.relname "
    "WHERE c.relkind IN ('r', 'p') AND pg_relation_is_publishable(c.oid::regclass) "
    "AND c.relpersistence = 'p' ORDER BY c.oid";

enum cdcd_rc pg_pub_tables_read(PGconn *sql, const char *publication,
                                const struct pg_filter *filter, struct pg_pub_tables *out,
                                struct cdcd_error *err)
{
    PGresult *r = NULL;
    *out = (struct pg_pub_tables){0};
    if (pg_query(sql, &r, err, tables_sql, 1, &publication) != CDCD_OK)
        return cdcd_error_context(err, "cannot list the tables of the database");
    cdcd_arena_init(&out->arena, 16384);
    out->n = (size_t)PQntuples(r);
    out->items = cdcd_arena_alloc(&out->arena, (out->n + 1) * sizeof *out->items);
    for (int i = 0; i < PQntuples(r); i++) {
        struct pg_pub_table *t = &out->items[i];
        *t = (struct pg_pub_table){
            .oid = (uint32_t)strtoul(PQgetvalue(r, i, 0), NULL, 10),
            .parent = (uint32_t)strtoul(PQgetvalue(r, i, 1), NULL, 10),
            .schema = cdcd_arena_dup(&out->arena, PQgetvalue(r, i, 2),
                                     (size_t)PQgetlength(r, i, 2)),
            .table = cdcd_arena_dup(&out->arena, PQgetvalue(r, i, 3), (size_t)PQgetlength(r, i, 3)),
            .partitioned = PQgetvalue(r, i, 4)[0] == 't',
            .member = PQgetvalue(r, i, 5)[0] == 't',
            .published = PQgetvalue(r, i, 6)[0] == 't',
            .replident = PQgetvalue(r, i, 7)[0],
            .has_key = PQgetvalue(r, i, 8)[0] == 't',
            .primary = PQgetvalue(r, i, 9)[0] == 't',
            .rls = PQgetvalue(r, i, 10)[0] == 't',
            .select = PQgetvalue(r, i, 11)[0] == 't',
            .owner = PQgetvalue(r, i, 12)[0] == 't',
            .force = PQgetvalue(r, i, 13)[0] == 't',
        };
        t->captured = pg_filter_table(filter, t->schema, t->table);
    }
    PQclear(r);
    return CDCD_OK;
}

void pg_pub_tables_free(struct pg_pub_tables *t)
{
    if (t->items)
        cdcd_arena_free(&t->arena);
    *t = (struct pg_pub_tables){0};
}

static const struct pg_pub_table *parent_of(const struct pg_pub_tables *all,
                                            const struct pg_pub_table *t)
{
    size_t lo = 0, hi = all->n;
    if (!t->parent)
        return NULL;
    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;
        if (all->items[mid].oid < t->parent)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo < all->n && all->items[lo].oid == t->parent ? &all->items[lo] : NULL;
}

bool pg_pub_table_wanted(const struct pg_pub_tables *all, const struct pg_pub_table *t)
{
    if (!t->captured)
        return false;
    for (const struct pg_pub_table *p = parent_of(all, t); p; p = parent_of(all, p)) {
        if (p->captured)
            return false;
    }
    return true;
}

static bool member_or_under_one(const struct pg_pub_tables *all, const struct pg_pub_table *t)
{
    for (; t; t = parent_of(all, t)) {
        if (t->member)
            return true;
    }
    return false;
}

bool pg_pub_table_covered(const struct pg_pub_tables *all, const struct pg_pub_table *t,
                          const struct pg_publication *p)
{
    if (t->published || p->all_tables)
        return true;
    if (t->partitioned && !p->via_root) {
        /* It has no changes of its own; its partitions are judged for themselves. */
        if (member_or_under_one(all, t))
            return true;
        for (size_t i = 0; i < all->n; i++) {
            for (const struct pg_pub_table *a = &all->items[i]; a; a = parent_of(all, a)) {
                if (a == t && all->items[i].published)
                    return true;
            }
        }
        return false;
    }
    for (const struct pg_pub_table *a = parent_of(all, t); a; a = parent_of(all, a)) {
        if (a->published && a->captured)
            return true;
    }
    return false;
}

bool pg_explicit_tables(const struct pg_config *cfg)
{
    return cfg->table_include.n > 0 || cfg->schema_include.n > 0;
}

bool pg_pub_table_breaks(const struct pg_pub_table *t)
{
    return !t->partitioned && (t->replident == 'n' || (t->replident != 'f' && !t->has_key));
}

char *pg_pub_list_sql(const struct pg_pub_tables *all, bool missing_only, size_t *n)
{
    struct cdcd_buf b;
    cdcd_buf_init(&b, 0);
    *n = 0;
    for (size_t i = 0; i < all->n; i++) {
        const struct pg_pub_table *t = &all->items[i];
        if (!pg_pub_table_wanted(all, t) || (missing_only && member_or_under_one(all, t)))
            continue;
        /* ONLY: tables that inherit from it are listed for themselves. */
        char *name = pg_sql(t->partitioned ? "%I.%I" : "ONLY %I.%I", t->schema, t->table);
        cdcd_buf_addf(&b, "%s%s", (*n)++ ? ", " : "", name);
        free(name);
    }
    return (char *)cdcd_buf_cstr(&b);
}

/* ---- privileges ---- */

bool pg_bypasses_rls(PGconn *sql)
{
    PGresult *r = PQexec(sql, "SELECT rolsuper OR rolbypassrls FROM pg_catalog.pg_roles "
                              "WHERE rolname = current_user");
    bool out = PQresultStatus(r) == PGRES_TUPLES_OK && PQntuples(r) == 1 &&
               PQgetvalue(r, 0, 0)[0] == 't';
    PQclear(r);
    return out;
}

bool pg_pub_table_hidden(const struct pg_pub_table *t, bool bypass)
{
    return t->rls && !bypass && (!t->owner || t->force);
}

enum cdcd_rc pg_pub_tables_readable(PGconn *sql, const struct pg_pub_tables *all,
                                    struct cdcd_error *err)
{
    bool bypass = pg_bypasses_rls(sql);
    size_t denied = 0, hidden = 0;
    struct cdcd_buf names;
    const char *user = PQuser(sql) ? PQuser(sql) : "";
    cdcd_buf_init(&names, 0);
    for (size_t i = 0; i < all->n; i++) {
        const struct pg_pub_table *t = &all->items[i];
        bool hides = pg_pub_table_hidden(t, bypass);
        if (!t->captured || !t->published || (t->select && !hides))
            continue;
        denied += !t->select;
        hidden += t->select && hides;
        if (denied + hidden > NAMED_MAX)
            continue;
        char *name = pg_sql("%I.%I", t->schema, t->table);
        cdcd_buf_addf(&names, "%s%s", names.len ? ", " : "", name);
        free(name);
    }
    enum cdcd_rc rc = CDCD_OK;
    char *role = pg_sql("%I", user);
    if (denied > 0)
        rc = cdcd_error_set(
            err, CDCD_ERR_CONFIG,
            "user \"%s\" may not read %zu captured table(s), and a snapshot needs "
            "to: %s%s. Run GRANT USAGE ON SCHEMA ... TO %s; GRANT SELECT ON %s%s TO "
            "%s",
            user, denied, cdcd_buf_cstr(&names), denied + hidden > NAMED_MAX ? ", ..." : "", role,
            cdcd_buf_cstr(&names), denied + hidden > NAMED_MAX ? ", ..." : "", role);
    else if (hidden > 0)
        rc = cdcd_error_set(err, CDCD_ERR_CONFIG,
                            "row-level security would hide rows from user \"%s\", and the snapshot "
                            "would lack them: %s%s. Run ALTER ROLE %s BYPASSRLS",
                            user, cdcd_buf_cstr(&names), hidden > NAMED_MAX ? ", ..." : "", role);
    free(role);
    cdcd_buf_free(&names);
    return rc;
}

/* ---- topics ---- */

struct topic {
    char *name;
    const struct pg_pub_table *table;
};

static int by_name(const void *a, const void *b)
{
    return strcmp(((const struct topic *)a)->name, ((const struct topic *)b)->name);
}

void pg_pub_topic_clashes(const struct pg_pub_tables *all,
                          void (*tell)(void *ctx, const char *text), void *ctx)
{
    struct topic *topics = cdcd_xcalloc(all->n + 1, sizeof *topics);
    size_t n = 0;
    for (size_t i = 0; i < all->n; i++) {
        const struct pg_pub_table *t = &all->items[i];
        if (!t->captured || (t->partitioned && !t->published))
            continue;
        topics[n] = (struct topic){cdcd_xasprintf("%s.%s", t->schema, t->table), t};
        for (char *p = topics[n++].name; *p; p++) {
            bool plain = (*p >= 'a' && *p <= 'z') || (*p >= 'A' && *p <= 'Z') ||
                         (*p >= '0' && *p <= '9') || *p == '.' || *p == '_' || *p == '-';
            if (!plain)
                *p = '_';
        }
    }
    qsort(topics, n, sizeof *topics, by_name);
    for (size_t i = 0; i + 1 < n; i++) {
        if (strcmp(topics[i].name, topics[i + 1].name) != 0)
            continue;
        const struct pg_pub_table *a = topics[i].table, *b = topics[i + 1].table;
        char *text = pg_sql("tables %I.%I and %I.%I share the topic name ...%s: their records are "
                            "mixed there",
                            a->schema, a->table, b->schema, b->table, topics[i].name);
        tell(ctx, text);
        free(text);
    }
    for (size_t i = 0; i < n; i++)
        free(topics[i].name);
    free(topics);
}

static void warn_clash(void *ctx, const char *text)
{
    (void)ctx;
    cdcd_warn("postgres", "%s; exclude one, or rename it", text);
}

/* ---- ensure ---- */

static enum cdcd_rc change_error(PGconn *sql, const struct pg_config *cfg, const PGresult *r,
                                 const char *statement, struct cdcd_error *err)
{
    const char *state = pg_sqlstate(r);
    const char *text = r ? PQresultErrorField(r, PG_DIAG_MESSAGE_PRIMARY) : NULL;
    /* A list of hundreds of tables is cut: the reader needs to see how it begins and ends. */
    int shown = strlen(statement) > 600 ? 600 : (int)strlen(statement);
    const char *cut = statement[shown] ? " ..." : "";
    if (strcmp(state, "42501") == 0)
        return cdcd_error_set(
            err, CDCD_ERR_CONFIG,
            "cannot create or change publication \"%s\" as user \"%s\": %s. %s run: %.*s%s",
            cfg->publication_name, PQuser(sql) ? PQuser(sql) : "", text ? text : "",
            cfg->publication_autocreate == PG_AUTOCREATE_ALL
                ? "Set publication.autocreate.mode: filtered, or as a superuser"
                : "Set publication.autocreate.mode: disabled and, as the tables' owner or a "
                  "superuser,",
            shown, statement, cut);
    if (strcmp(state, "25006") == 0)
        return cdcd_error_set(
            err, CDCD_ERR_CONFIG,
            "publication \"%s\" cannot be created or changed on a standby. On the "
            "primary run: %.*s%s",
            cfg->publication_name, shown, statement, cut);
    return pg_error(sql, r, err, "cannot create or change publication \"%s\" (%.*s%s)",
                    cfg->publication_name, shown, statement, cut);
}

static enum cdcd_rc run_change(PGconn *sql, const struct pg_config *cfg, const char *statement,
                               struct cdcd_error *err)
{
    PGresult *r = PQexec(sql, statement);
    enum cdcd_rc rc = CDCD_OK;
    if (PQresultStatus(r) != PGRES_COMMAND_OK)
        rc = change_error(sql, cfg, r, statement, err);
    PQclear(r);
    return rc;
}

/* These tables take inserts only from now on: the application must be warned before it finds out.
 */
static void warn_breaking(const struct pg_config *cfg, const struct pg_pub_tables *all,
                          bool missing_only)
{
    size_t named = 0, more = 0;
    struct cdcd_buf b;
    cdcd_buf_init(&b, 0);
    for (size_t i = 0; i < all->n; i++) {
        const struct pg_pub_table *t = &all->items[i];
        if (!pg_pub_table_wanted(all, t) || !pg_pub_table_breaks(t) || (missing_only && t->member))
            continue;
        if (named >= NAMED_MAX) {
            more++;
            continue;
        }
        char *name = pg_sql("%I.%I", t->schema, t->table);
        cdcd_buf_addf(&b, "%s%s", named++ ? ", " : "", name);
        free(name);
    }
    if (more)
        cdcd_buf_addf(&b, " and %zu more", more);
    if (named)
        cdcd_warn(
            "postgres",
            "publication \"%s\" now holds tables without a replica identity: the server "
            "refuses UPDATE and DELETE on them: %s. Run ALTER TABLE ... REPLICA IDENTITY FULL "
            "(or give them a primary key)",
            cfg->publication_name, cdcd_buf_cstr(&b));
    cdcd_buf_free(&b);
}

static char *create_statement(const struct pg_config *cfg, const struct pg_pub_tables *all,
                              size_t *n)
{
    const char *with = cfg->publish_via_root ? " WITH (publish_via_partition_root = true)" : "";
    if (cfg->publication_autocreate == PG_AUTOCREATE_ALL) {
        *n = 1;
        return pg_sql("CREATE PUBLICATION %I FOR ALL TABLES%s", cfg->publication_name, with);
    }
    char *list = pg_pub_list_sql(all, false, n);
    char *out = pg_sql(*n ? "CREATE PUBLICATION %I FOR TABLE %s%s" : "CREATE PUBLICATION %I%s%s",
                       cfg->publication_name, list, with);
    free(list);
    return out;
}

static enum cdcd_rc create(PGconn *sql, const struct pg_config *cfg,
                           const struct pg_pub_tables *all, struct cdcd_error *err)
{
    size_t n = 0;
    char *statement = create_statement(cfg, all, &n);
    char *mark = NULL;
    enum cdcd_rc rc = CDCD_OK;
    if (cfg->publication_autocreate == PG_AUTOCREATE_DISABLED)
        rc = cdcd_error_set(err, CDCD_ERR_CONFIG,
                            "publication \"%s\" does not exist and publication.autocreate.mode is "
                            "disabled. Run: %.900s",
                            cfg->publication_name, statement);
    else if (n == 0 && pg_explicit_tables(cfg))
        rc = cdcd_error_set(err, CDCD_ERR_CONFIG,
                            "no table of database \"%s\" matches the include lists "
                            "(table.include.list holds regular expressions that match the whole "
                            "\"schema.table\", upper and lower case told apart)",
                            PQdb(sql));
    if (rc != CDCD_OK)
        goto out;
    if (n == 0)
        cdcd_warn(
            "postgres",
            "database \"%s\" has no table to capture yet, so publication \"%s\" is made empty. "
            "With publication.autocreate.mode: filtered new tables are added at the next start",
            PQdb(sql), cfg->publication_name);
    rc = run_change(sql, cfg, statement, err);
    if (rc != CDCD_OK)
        goto out;
    mark = pg_sql("COMMENT ON PUBLICATION %I IS %L", cfg->publication_name, PG_PUBLICATION_MARK);
    rc = run_change(sql, cfg, mark, err);
    if (rc == CDCD_OK)
        cdcd_info("postgres", "created publication \"%s\" (%s)", cfg->publication_name,
                  cfg->publication_autocreate == PG_AUTOCREATE_ALL ? "all tables"
                                                                   : "listed tables");
    if (cfg->publication_autocreate == PG_AUTOCREATE_FILTERED)
        warn_breaking(cfg, all, false);
out:
    free(mark);
    free(statement);
    return rc;
}

/* Tables that match the include lists now and did not when the publication was made. */
static enum cdcd_rc extend(PGconn *sql, const struct pg_config *cfg,
                           const struct pg_pub_tables *all, bool *changed, struct cdcd_error *err)
{
    size_t n = 0;
    char *list = pg_pub_list_sql(all, true, &n);
    enum cdcd_rc rc = CDCD_OK;
    *changed = n > 0;
    if (n > 0) {
        char *statement = pg_sql("ALTER PUBLICATION %I ADD TABLE %s", cfg->publication_name, list);
        rc = run_change(sql, cfg, statement, err);
        free(statement);
        if (rc == CDCD_OK) {
            cdcd_warn("postgres",
                      "added to publication \"%s\": %.1500s. A running pipeline gets their changes "
                      "from now on; rows that are already there come with a snapshot only",
                      cfg->publication_name, list);
            warn_breaking(cfg, all, true);
        }
    }
    free(list);
    return rc;
}

static enum cdcd_rc verify_operations(const struct pg_config *cfg, const struct pg_publication *p,
                                      struct cdcd_error *err)
{
    if (p->via_root != cfg->publish_via_root)
        cdcd_warn(
            "postgres",
            "publication \"%s\" has publish_via_partition_root = %s, the config says %s: what "
            "the publication says holds",
            cfg->publication_name, p->via_root ? "true" : "false",
            cfg->publish_via_root ? "true" : "false");
    if (p->insert && p->update && p->delete)
        return CDCD_OK;
    char *mend = pg_sql("ALTER PUBLICATION %I SET (publish = 'insert, update, delete, truncate')",
                        cfg->publication_name);
    cdcd_error_set(
        err, CDCD_ERR_CONFIG,
        "publication \"%s\" does not publish%s%s%s: those changes would be lost. Run: %s",
        cfg->publication_name, p->insert ? "" : " insert", p->update ? "" : " update",
        p->delete ? "" : " delete", mend);
    free(mend);
    return CDCD_ERROR;
}

static enum cdcd_rc verify_tables(const struct pg_config *cfg, const struct pg_publication *p,
                                  const struct pg_pub_tables *all, struct cdcd_error *err)
{
    size_t captured = 0, missing = 0;
    struct cdcd_buf names;
    cdcd_buf_init(&names, 0);
    for (size_t i = 0; i < all->n; i++) {
        const struct pg_pub_table *t = &all->items[i];
        if (!t->captured)
            continue;
        bool covered = pg_pub_table_covered(all, t, p);
        captured += covered;
        if (covered)
            continue;
        if (missing++ < NAMED_MAX) {
            char *name = pg_sql("%I.%I", t->schema, t->table);
            cdcd_buf_addf(&names, "%s%s", missing > 1 ? ", " : "", name);
            free(name);
        }
    }
    enum cdcd_rc rc = CDCD_OK;
    if (missing > 0 && pg_explicit_tables(cfg)) {
        char *mend = pg_sql("ALTER PUBLICATION %I ADD TABLE %s%s", cfg->publication_name,
                            cdcd_buf_cstr(&names), missing > NAMED_MAX ? ", ..." : "");
        rc = cdcd_error_set(
            err, CDCD_ERR_CONFIG,
            "%zu table(s) of the include lists are not in publication \"%s\", their "
            "changes would be lost: %s%s. Run: %s; or exclude them",
            missing, cfg->publication_name, cdcd_buf_cstr(&names),
            missing > NAMED_MAX ? ", ..." : "", mend);
        free(mend);
    } else if (captured == 0) {
        cdcd_warn("postgres",
                  "publication \"%s\" holds no table that is captured: nothing will come",
                  cfg->publication_name);
    }
    cdcd_buf_free(&names);
    return rc;
}

enum cdcd_rc pg_publication_ensure(PGconn *sql, const struct pg_config *cfg,
                                   const struct pg_filter *filter, int server_version,
                                   bool *created, struct cdcd_error *err)
{
    struct pg_publication p;
    struct pg_pub_tables all = {0};
    bool changed = false;
    (void)server_version;
    *created = false;
    enum cdcd_rc rc = pg_publication_read(sql, cfg->publication_name, &p, err);
    if (rc != CDCD_OK)
        return rc;
    rc = pg_pub_tables_read(sql, cfg->publication_name, filter, &all, err);
    if (rc == CDCD_OK)
        pg_pub_topic_clashes(&all, warn_clash, NULL);
    if (rc == CDCD_OK && !p.exists) {
        rc = create(sql, cfg, &all, err);
        *created = rc == CDCD_OK;
        goto out;
    }
    if (rc == CDCD_OK && p.ours && !p.all_tables &&
        cfg->publication_autocreate == PG_AUTOCREATE_FILTERED)
        rc = extend(sql, cfg, &all, &changed, err);
    if (rc == CDCD_OK && changed) {
        pg_pub_tables_free(&all);
        rc = pg_pub_tables_read(sql, cfg->publication_name, filter, &all, err);
    }
    if (rc == CDCD_OK)
        rc = verify_operations(cfg, &p, err);
    if (rc == CDCD_OK)
        rc = verify_tables(cfg, &p, &all, err);
out:
    pg_pub_tables_free(&all);
    pg_publication_clear(&p);
    return rc;
}

/* ---- ephemeral ---- */

void pg_publication_drop_own(PGconn *sql, const char *name)
{
    struct cdcd_error err = {0};
    char *text = pg_sql("DROP PUBLICATION IF EXISTS %I", name);
    if (pg_query(sql, NULL, &err, text, 0, NULL) != CDCD_OK)
        cdcd_warn("postgres", "publication \"%s\" stays behind: %s. Run: %s", name, err.text, text);
    free(text);
}

void pg_publication_sweep(PGconn *sql)
{
    /* A tail's connections carry its pipeline's name, "cdcd tail_PID_XXXX". */
    static const char stale[] =
        "SELECT pubname FROM pg_catalog.pg_publication p"
        " WHERE pubname ~ '^cdcd_tail_[0-9]+_[0-9a-f]{4}$' AND NOT EXISTS ("
        "  SELECT FROM pg_catalog.pg_stat_activity a"
        "  WHERE a.application_name = 'cdcd ' || pg_catalog.substr(p.pubname, 6))";
    struct cdcd_error err = {0};
    PGresult *r = NULL;
    if (pg_query(sql, &r, &err, stale, 0, NULL) != CDCD_OK)
        return;
    for (int i = 0; i < PQntuples(r); i++) {
        char *text = pg_sql("DROP PUBLICATION IF EXISTS %I", PQgetvalue(r, i, 0));
        if (pg_query(sql, NULL, &err, text, 0, NULL) == CDCD_OK)
            cdcd_info("postgres", "dropped publication \"%s\" of a tail that was killed",
                      PQgetvalue(r, i, 0));
        free(text);
    }
    PQclear(r);
}
