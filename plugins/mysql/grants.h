/*
 * grants.h: what the account may do on the whole server, as far as it can be seen.
 */
#ifndef CDCD_PLUGIN_MYSQL_GRANTS_H
#define CDCD_PLUGIN_MYSQL_GRANTS_H

#include "my.h"

struct my_grants {
    char *text;    /* what SHOW GRANTS says, a line each; never printed: it may have a hash */
    char *account; /* 'user'@'host', quoted */
};
enum cdcd_rc my_grants_read(MYSQL *m, const struct my_server *server, struct my_grants *out,
                            struct cdcd_error *err);
void my_grants_free(struct my_grants *g);
/* A privilege ON *.*, or all of them. */
bool my_grants_have(const struct my_grants *g, const char *privilege);
/* To ask for the log's end; REPLICATION CLIENT is BINLOG MONITOR from MariaDB 10.5 on. */
bool my_grants_may_see_log(const struct my_grants *g);

#endif
