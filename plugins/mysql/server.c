/*
 * server.c: what there is to know of a server, and where its log ends now.
 */
#include "grants.h"
#include "my.h"

#include <stdio.h>
#include <stdlib.h>
#include <strings.h>

static void set_text(char *out, size_t size, const char *value)
{
    snprintf(out, size, "%s", value);
}

/* "10.11.19-MariaDB-log" -> 101119. */
static int version_number(const char *text)
{
    int major = 0, minor = 0, patch = 0;
    if (sscanf(text, "%d.%d.%d", &major, &minor, &patch) < 2)
        return 0;
    return major * 10000 + minor * 100 + patch;
}

static void set_variable(struct my_server *s, const char *name, const char *value)
{
    const struct {
        const char *name;
        char *out;
        size_t size;
    } texts[] = {
        {"server_uuid", s->uuid, sizeof s->uuid},
        {"binlog_format", s->binlog_format, sizeof s->binlog_format},
        {"binlog_row_image", s->row_image, sizeof s->row_image},
        {"binlog_row_metadata", s->row_metadata, sizeof s->row_metadata},
        {"character_set_server", s->charset, sizeof s->charset},
        {"collation_server", s->collation, sizeof s->collation},
    };
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        if (strcasecmp(name, texts[i].name) == 0)
            set_text(texts[i].out, texts[i].size, value);
    }
    if (strcasecmp(name, "server_id") == 0)
        s->server_id = (uint32_t)strtoul(value, NULL, 10);
    else if (strcasecmp(name, "log_bin") == 0)
        s->log_bin = strcasecmp(value, "ON") == 0 || strcmp(value, "1") == 0;
    else if (strcasecmp(name, "lower_case_table_names") == 0)
        s->lower_case_table_names = (int)strtol(value, NULL, 10);
    else if (strcasecmp(name, "gtid_mode") == 0)
        s->gtid = strcasecmp(value, "ON") == 0;
}

/* The global values: those of sessions that write to the log from now on. */
enum cdcd_rc my_server_info(MYSQL *m, struct my_server *out, struct cdcd_error *err)
{
    MYSQL_RES *r = NULL;
    memset(out, 0, sizeof *out);
    enum cdcd_rc rc = my_query(m, &r, err, "SELECT @@version, @@version_comment");
    if (rc != CDCD_OK)
        return rc;
    MYSQL_ROW row = mysql_fetch_row(r);
    const char *version = row && row[0] ? row[0] : "";
    bool mariadb = strcasestr(version, "mariadb") ||
                   (row && row[1] && strcasestr(row[1], "mariadb"));
    out->flavor = mariadb ? MY_MARIADB : MY_MYSQL;
    out->version = version_number(version);
    snprintf(out->text, sizeof out->text, "%s%s",
             strcasestr(version, "mariadb") ? ""
             : mariadb                      ? "MariaDB "
                                            : "MySQL ",
             version);
    mysql_free_result(r);

    rc = my_query(m, &r, err,
                  "SHOW GLOBAL VARIABLES WHERE Variable_name IN ('server_uuid', 'server_id', "
                  "'log_bin', 'binlog_format', 'binlog_row_image', 'binlog_row_metadata', "
                  "'lower_case_table_names', 'character_set_server', 'collation_server', "
                  "'gtid_mode')");
    if (rc != CDCD_OK)
        return rc;
    while ((row = mysql_fetch_row(r))) {
        if (row[0] && row[1])
            set_variable(out, row[0], row[1]);
    }
    mysql_free_result(r);
    if (mariadb) {
        out->gtid = true;
        out->uuid[0] = 0;
    }
    return CDCD_OK;
}

void my_log_end_free(struct my_log_end *e)
{
    free(e->file);
    free(e->gtid);
    memset(e, 0, sizeof *e);
}

static enum cdcd_rc log_status(MYSQL *m, const struct my_server *server, struct my_log_end *out,
                               struct cdcd_error *err)
{
    MYSQL_RES *r = NULL;
    bool renamed = server->flavor == MY_MYSQL && server->version >= 80200;
    enum cdcd_rc rc = my_query(m, &r, err,
                               renamed ? "SHOW BINARY LOG STATUS" : "SHOW MASTER STATUS");
    if (rc != CDCD_OK)
        return rc;
    MYSQL_ROW row = mysql_fetch_row(r);
    if (!row || !row[0] || !row[1]) {
        mysql_free_result(r);
        return cdcd_error_set(err, CDCD_ERR_CONFIG,
                              "the server writes no binlog: set log_bin in its configuration, and "
                              "restart it");
    }
    out->file = cdcd_xstrdup(row[0]);
    out->pos = strtoull(row[1], NULL, 10);
    bool set = server->flavor == MY_MYSQL && server->gtid && mysql_num_fields(r) > 4 && row[4];
    out->gtid = cdcd_xstrdup(set ? row[4] : "");
    mysql_free_result(r);
    char *to = out->gtid; /* a long set comes in lines */
    for (const char *p = out->gtid; *p; p++) {
        if (*p != '\n')
            *to++ = *p;
    }
    *to = 0;
    return CDCD_OK;
}

static enum cdcd_rc binlog_pos(MYSQL *m, char **out, struct cdcd_error *err)
{
    MYSQL_RES *r = NULL;
    *out = NULL;
    enum cdcd_rc rc = my_query(m, &r, err, "SELECT @@global.gtid_binlog_pos");
    if (rc != CDCD_OK)
        return rc;
    MYSQL_ROW row = mysql_fetch_row(r);
    *out = cdcd_xstrdup(row && row[0] ? row[0] : "");
    mysql_free_result(r);
    return CDCD_OK;
}

/*
 * MySQL says all three in one answer. MariaDB has file and offset in one and the set in another, so
 * the set is read before and after. Where they never agree, because the server is never idle, the
 * set is the later one: it is what the log is asked for by.
 */
enum cdcd_rc my_log_end(MYSQL *m, const struct my_server *server, struct my_log_end *out,
                        struct cdcd_error *err)
{
    memset(out, 0, sizeof *out);
    if (server->flavor == MY_MYSQL)
        return log_status(m, server, out, err);
    char *before = NULL;
    enum cdcd_rc rc = binlog_pos(m, &before, err);
    for (int i = 0; i < 3 && rc == CDCD_OK; i++) {
        char *after = NULL;
        my_log_end_free(out);
        rc = log_status(m, server, out, err);
        if (rc == CDCD_OK)
            rc = binlog_pos(m, &after, err);
        if (rc != CDCD_OK)
            break;
        bool same = strcmp(before, after) == 0;
        free(before);
        free(out->gtid);
        before = after;
        out->gtid = cdcd_xstrdup(after);
        if (same)
            break;
    }
    free(before);
    if (rc != CDCD_OK)
        my_log_end_free(out);
    return rc;
}

/* Of a query that gives databases, or databases and tables: whether the filter takes one. */
static enum cdcd_rc sees_one(MYSQL *m, const struct my_filter *f, const char *sql, bool *out,
                             struct cdcd_error *err)
{
    MYSQL_RES *r = NULL;
    MYSQL_ROW row;
    *out = false;
    if (my_query(m, &r, err, sql) != CDCD_OK)
        return CDCD_ERROR;
    bool tables = mysql_num_fields(r) > 1;
    while (!*out && (row = mysql_fetch_row(r)))
        *out = tables ? my_filter_table(f, row[0], row[1]) : my_filter_database(f, row[0]);
    mysql_free_result(r);
    return CDCD_OK;
}

enum cdcd_rc my_server_sees(MYSQL *m, const struct my_server *server, const struct my_filter *f,
                            struct cdcd_error *err)
{
    bool tables, databases;
    struct my_grants grants = {0};
    if (sees_one(m, f,
                 "SELECT TABLE_SCHEMA, TABLE_NAME FROM information_schema.TABLES "
                 "WHERE TABLE_TYPE <> 'VIEW'",
                 &tables, err) != CDCD_OK ||
        sees_one(m, f, "SELECT SCHEMA_NAME FROM information_schema.SCHEMATA", &databases, err) !=
            CDCD_OK)
        return CDCD_ERROR;
    if (tables)
        return CDCD_OK;
    if (my_grants_read(m, server, &grants, err) != CDCD_OK)
        return CDCD_ERROR;
    enum cdcd_rc rc = CDCD_OK;
    if (!databases && !my_grants_have(&grants, "SELECT"))
        rc = cdcd_error_set(err, CDCD_ERR_CONFIG,
                            "%s sees no database that is to be captured: run GRANT SELECT ON "
                            "DATABASE.* TO %s, or correct the include lists",
                            grants.account, grants.account);
    else
        cdcd_warn("mysql",
                  "no table that %s can see is captured yet: table.include.list has regular "
                  "expressions for the whole DATABASE.TABLE",
                  grants.account);
    my_grants_free(&grants);
    return rc;
}
