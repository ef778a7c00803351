/*
 * grants.c: SHOW GRANTS, read as text: lines of "GRANT privilege, privilege ON object TO account".
 */
#include "grants.h"

#include <stdlib.h>
#include <strings.h>

/* "`a`@`%`,`b`@`%`": the roles that are active, in the form that USING takes. Owned; NULL: none. */
static char *active_roles(MYSQL *m)
{
    MYSQL_RES *r = NULL;
    struct cdcd_error ignored = {0};
    if (my_query(m, &r, &ignored, "SELECT CURRENT_ROLE()") != CDCD_OK)
        return NULL;
    MYSQL_ROW row = mysql_fetch_row(r);
    char *roles = row && row[0] && *row[0] && strcasecmp(row[0], "NONE") != 0 ? cdcd_xstrdup(row[0])
                                                                              : NULL;
    mysql_free_result(r);
    return roles;
}

static char *account_name(MYSQL *m)
{
    MYSQL_RES *r = NULL;
    struct cdcd_error ignored = {0};
    if (my_query(m, &r, &ignored, "SELECT CURRENT_USER()") != CDCD_OK)
        return cdcd_xstrdup("CURRENT_USER()");
    MYSQL_ROW row = mysql_fetch_row(r);
    char *whole = cdcd_xstrdup(row && row[0] ? row[0] : "@");
    char *at = strrchr(whole, '@');
    if (at)
        *at = 0;
    char *out = my_sql("%L@%L", whole, at ? at + 1 : "%");
    free(whole);
    mysql_free_result(r);
    return out;
}

enum cdcd_rc my_grants_read(MYSQL *m, const struct my_server *server, struct my_grants *out,
                            struct cdcd_error *err)
{
    MYSQL_RES *r = NULL;
    memset(out, 0, sizeof *out);
    /* MariaDB lists what a role gives by itself */
    char *roles = server->flavor == MY_MYSQL ? active_roles(m) : NULL;
    enum cdcd_rc rc = roles
                          ? my_queryf(m, &r, err, "SHOW GRANTS FOR CURRENT_USER() USING %s", roles)
                          : my_query(m, &r, err, "SHOW GRANTS");
    free(roles);
    if (rc != CDCD_OK)
        return rc;
    struct cdcd_buf b;
    cdcd_buf_init(&b, 0);
    for (MYSQL_ROW row; (row = mysql_fetch_row(r));) {
        cdcd_buf_adds(&b, row[0] ? row[0] : "");
        cdcd_buf_add(&b, "\n", 1);
    }
    mysql_free_result(r);
    cdcd_buf_cstr(&b);
    out->text = b.ptr;
    out->account = account_name(m);
    return CDCD_OK;
}

void my_grants_free(struct my_grants *g)
{
    free(g->text);
    free(g->account);
    memset(g, 0, sizeof *g);
}

/* In "SELECT, RELOAD, REPLICATION SLAVE". */
static bool list_has(const char *p, const char *end, const char *privilege)
{
    size_t want = strlen(privilege);
    while (p < end) {
        while (p < end && (*p == ' ' || *p == ','))
            p++;
        const char *comma = memchr(p, ',', (size_t)(end - p));
        size_t n = (size_t)((comma ? comma : end) - p);
        if (n == want && strncasecmp(p, privilege, n) == 0)
            return true;
        p += n;
    }
    return false;
}

bool my_grants_have(const struct my_grants *g, const char *privilege)
{
    for (const char *line = g->text; *line;) {
        const char *end = line + strcspn(line, "\n");
        const char *on = strstr(line, " ON *.* TO ");
        if (strncmp(line, "GRANT ", 6) == 0 && on && on < end &&
            (list_has(line + 6, on, privilege) || list_has(line + 6, on, "ALL PRIVILEGES")))
            return true;
        line = end + (*end == '\n');
    }
    return false;
}

bool my_grants_may_see_log(const struct my_grants *g)
{
    return my_grants_have(g, "REPLICATION CLIENT") || my_grants_have(g, "BINLOG MONITOR") ||
           my_grants_have(g, "SUPER");
}
