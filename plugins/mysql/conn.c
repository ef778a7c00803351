/*
 * conn.c: connections, errors and small SQL helpers. Nothing in this file looks into an event.
 *
 * Every session setting that shapes a value's text, cuts a result or ends a long statement is
 * pinned, so that a snapshot row and a streamed row have one form whatever the server's defaults.
 */
#include "shim.h"

#include <errmsg.h>
#include <mysqld_error.h>

#include <ctype.h>
#include <inttypes.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>

/* Error numbers that only one of the libraries has a name for. */
#define MY_ER_SOURCE_FATAL           1236
#define MY_ER_QUERY_TIMEOUT          3024 /* MySQL: max_execution_time */
#define MY_ER_CONNECTION_KILLED      1927
#define MY_ER_CLIENT_INTERACTION     4031 /* MySQL: closed for inactivity */
#define MY_ER_ACCOUNT_LOCKED         3118
#define MY_ER_MUST_CHANGE_PASSWORD   1862
#define MY_ER_ACCESS_DENIED_NO_PW    1698
#define MY_ER_STATEMENT_TIMEOUT      1969 /* MariaDB: max_statement_time */
#define MY_ER_SLAVE_SAME_ID          4052 /* MariaDB */
#define MY_ER_BINLOG_OFF             1381
#define MY_ER_SERVER_SHUTDOWN_STRICT 3168 /* MySQL: server is not ready */

/* Set once any connection of this process has worked: from then on a refused password or a host
 * without a name is an incident to wait out, not a mistake in the configuration. */
static atomic_bool connected_once;

/* ---- errors ---- */

#define MEND_DOUBLE                                                                             \
    "another client reads this server's log with the same server.id, and the server keeps the " \
    "newer one: stop it, or give each its own server.id"

struct errno_class {
    unsigned number;
    enum cdcd_error_class class;
    const char *mend;
};

static const struct errno_class errno_classes[] = {
    {CR_CONNECTION_ERROR, CDCD_ERR_RETRY, NULL},
    {CR_CONN_HOST_ERROR, CDCD_ERR_RETRY, NULL},
    {CR_SERVER_GONE_ERROR, CDCD_ERR_RETRY, NULL},
    {CR_SERVER_LOST, CDCD_ERR_RETRY, NULL},
    {CR_SERVER_HANDSHAKE_ERR, CDCD_ERR_RETRY, NULL},
    {CR_MALFORMED_PACKET, CDCD_ERR_RETRY, NULL},
    {2055 /* server lost, extended */, CDCD_ERR_RETRY, NULL},
    {CR_UNKNOWN_HOST, CDCD_ERR_CONFIG, "correct the host in `url`"},
    {CR_SSL_CONNECTION_ERROR, CDCD_ERR_RETRY, NULL}, /* of a connection that works */
    {2059 /* CR_AUTH_PLUGIN_CANNOT_LOAD */, CDCD_ERR_CONFIG,
     "give the account an authentication plugin that the client library has: ALTER USER ... "
     "IDENTIFIED WITH caching_sha2_password BY '...'"},
    {2061 /* CR_AUTH_PLUGIN_ERR */, CDCD_ERR_CONFIG, NULL},
    {ER_CON_COUNT_ERROR, CDCD_ERR_RETRY, "raise max_connections or free a connection"},
    {ER_TOO_MANY_USER_CONNECTIONS, CDCD_ERR_RETRY,
     "raise max_user_connections of the account or free a connection"},
    {1226 /* ER_USER_LIMIT_REACHED */, CDCD_ERR_RETRY, "raise the account's resource limit"},
    {ER_OUT_OF_RESOURCES, CDCD_ERR_RETRY, NULL},
    {ER_SERVER_SHUTDOWN, CDCD_ERR_RETRY, NULL},
    {MY_ER_SERVER_SHUTDOWN_STRICT, CDCD_ERR_RETRY, NULL},
    {ER_HOST_IS_BLOCKED, CDCD_ERR_RETRY, "run FLUSH HOSTS, or raise max_connect_errors"},
    {ER_LOCK_WAIT_TIMEOUT, CDCD_ERR_RETRY, NULL},
    {ER_LOCK_DEADLOCK, CDCD_ERR_RETRY, NULL},
    {ER_QUERY_INTERRUPTED, CDCD_ERR_RETRY, NULL},
    {MY_ER_CONNECTION_KILLED, CDCD_ERR_RETRY, NULL},
    {MY_ER_CLIENT_INTERACTION, CDCD_ERR_RETRY, NULL},
    {MY_ER_QUERY_TIMEOUT, CDCD_ERR_RETRY, NULL},
    {MY_ER_STATEMENT_TIMEOUT, CDCD_ERR_RETRY, NULL},
    {ER_NET_READ_ERROR, CDCD_ERR_RETRY, NULL},
    {ER_NET_READ_INTERRUPTED, CDCD_ERR_RETRY, NULL},
    {ER_NET_ERROR_ON_WRITE, CDCD_ERR_RETRY, NULL},
    {ER_NET_WRITE_INTERRUPTED, CDCD_ERR_RETRY, NULL},
    {ER_ACCESS_DENIED_ERROR, CDCD_ERR_CONFIG, "correct the user or password in `url`"},
    {MY_ER_ACCESS_DENIED_NO_PW, CDCD_ERR_CONFIG, "correct the user or password in `url`"},
    {ER_DBACCESS_DENIED_ERROR, CDCD_ERR_CONFIG,
     "grant the missing privilege; `cdcd check` lists what is needed"},
    {ER_BAD_DB_ERROR, CDCD_ERR_CONFIG, "correct the database name in `url`, or leave it out"},
    {ER_HOST_NOT_PRIVILEGED, CDCD_ERR_CONFIG, "create the account for this host, or for '%'"},
    {MY_ER_ACCOUNT_LOCKED, CDCD_ERR_CONFIG, "ALTER USER ... ACCOUNT UNLOCK"},
    {MY_ER_MUST_CHANGE_PASSWORD, CDCD_ERR_CONFIG, "the password has expired: set a new one"},
    {ER_TABLEACCESS_DENIED_ERROR, CDCD_ERR_CONFIG,
     "grant the missing privilege; `cdcd check` lists what is needed"},
    {ER_COLUMNACCESS_DENIED_ERROR, CDCD_ERR_CONFIG,
     "grant SELECT on the whole table; `cdcd check` lists what is needed"},
    {ER_SPECIFIC_ACCESS_DENIED_ERROR, CDCD_ERR_CONFIG,
     "grant the missing privilege; `cdcd check` lists what is needed"},
    {MY_ER_SLAVE_SAME_ID, CDCD_ERR_CONFIG, MEND_DOUBLE},
    {MY_ER_BINLOG_OFF, CDCD_ERR_CONFIG,
     "set log_bin in the server's configuration, and restart it"},
};

static const struct errno_class *errno_class(unsigned number)
{
    static const struct errno_class other = {0, CDCD_ERR_FATAL, NULL};
    for (size_t i = 0; i < sizeof errno_classes / sizeof *errno_classes; i++) {
        if (errno_classes[i].number == number)
            return &errno_classes[i];
    }
    return &other;
}

/*
 * 1236 is one number for all that can be wrong with a dump; the text tells them apart. The servers
 * have them in sql/rpl_binlog_sender.cc and share/messages_to_clients.txt (MySQL), in
 * sql/sql_repl.cc (MariaDB); "slave" and "master" are the older and MariaDB's words.
 */
struct fatal_text {
    const char *part; /* in lower case */
    enum cdcd_error_class class;
    const char *mend;
};

#define MEND_GONE                                                                           \
    "the changes since the stored position are gone: start a new snapshot (snapshot.mode: " \
    "when_needed), and keep the log for longer (binlog_expire_logs_seconds)"
#define MEND_AHEAD                                                                                \
    "the stored position is ahead of this server: it is another server, an old replica that was " \
    "made primary, or its log was reset. Connect to the right one, or start a new snapshot "      \
    "(snapshot.mode: when_needed)"
#define MEND_START                                                                             \
    "the stored position is not in this server's log: another server answers, or its log was " \
    "reset or cut. Connect to the right one, or start a new snapshot (snapshot.mode: when_needed)"

static const struct fatal_text fatal_texts[] = {
    {"more gtids than", CDCD_ERR_LOSS, MEND_AHEAD},
    {"which is not in the master's binlog", CDCD_ERR_LOSS, MEND_AHEAD},
    {"the binlog on the master is missing the gtid", CDCD_ERR_LOSS, MEND_AHEAD},
    {"has diverged", CDCD_ERR_LOSS, MEND_AHEAD},
    {"purged", CDCD_ERR_LOSS, MEND_GONE},
    {"could not find first log file name", CDCD_ERR_LOSS, MEND_GONE},
    {"could not find next log", CDCD_ERR_LOSS, MEND_GONE},
    {"could not open log file", CDCD_ERR_LOSS, MEND_GONE},
    {"position > file size", CDCD_ERR_LOSS, MEND_START},
    {"impossible position", CDCD_ERR_LOSS, MEND_START},
    {"bogus data in log event", CDCD_ERR_LOSS, MEND_START},
    {"exceeded max_allowed_packet", CDCD_ERR_LOSS, MEND_START},
    {"binlog truncated in the middle of event", CDCD_ERR_LOSS, MEND_START},
    {"did not pass crc check", CDCD_ERR_LOSS, MEND_START},
    {"bad magic number", CDCD_ERR_FATAL, "the file is no binary log: look at the server's disk"},
    {"same server_uuid/server_id", CDCD_ERR_CONFIG, MEND_DOUBLE},
    {"is not open", CDCD_ERR_CONFIG, "set log_bin in the server's configuration, and restart it"},
    {"binary log is disabled", CDCD_ERR_CONFIG,
     "set log_bin in the server's configuration, and restart it"},
    {"server_id was not set", CDCD_ERR_CONFIG, "set server_id of the server to a number above 0"},
    {"server id not set", CDCD_ERR_CONFIG, "set server_id of the server to a number above 0"},
    {"gtid_mode", CDCD_ERR_LOSS,
     "the stored position has GTIDs: turn gtid_mode on again, or start a new snapshot"},
    {"anonymous transaction", CDCD_ERR_LOSS,
     "the log has transactions without GTID behind the stored position: start a new snapshot once "
     "gtid_mode is ON"},
    {"memory", CDCD_ERR_RETRY, NULL},
};

static bool has_part(const char *text, const char *part)
{
    return strcasestr(text, part) != NULL;
}

static enum cdcd_rc fatal_error(struct cdcd_error *err, const char *what, const char *text)
{
    for (size_t i = 0; i < sizeof fatal_texts / sizeof *fatal_texts; i++) {
        const struct fatal_text *f = &fatal_texts[i];
        if (has_part(text, f->part))
            return cdcd_error_set(err, f->class, "%s: %s [1236]%s%s", what, text,
                                  f->mend ? "; " : "", f->mend ? f->mend : "");
    }
    return cdcd_error_set(err, CDCD_ERR_FATAL, "%s: %s [1236]", what, text);
}

enum cdcd_rc my_dump_error(unsigned number, const char *text, struct cdcd_error *err,
                           const char *what)
{
    if (number == MY_ER_SOURCE_FATAL)
        return fatal_error(err, what, text);
    const struct errno_class *c = errno_class(number);
    return cdcd_error_set(err, c->class, "%s: %s [%u]%s%s", what, text, number, c->mend ? "; " : "",
                          c->mend ? c->mend : "");
}

/* One line: control characters become blanks. */
static void tidy(const char *in, char *out, size_t size)
{
    size_t n = 0;
    for (; *in && n + 1 < size; in++) {
        bool blank = isspace((unsigned char)*in);
        if (!blank || (n && out[n - 1] != ' '))
            out[n++] = blank ? ' ' : *in;
    }
    while (n && out[n - 1] == ' ')
        n--;
    out[n] = 0;
}

enum cdcd_rc my_error(MYSQL *m, struct cdcd_error *err, const char *fmt, ...)
{
    char what[512], text[1024];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(what, sizeof what, fmt, ap);
    va_end(ap);
    unsigned number = mysql_errno(m);
    tidy(mysql_error(m), text, sizeof text);
    if (!number)
        return cdcd_error_set(err, CDCD_ERR_RETRY, "%s: the connection is gone", what);
    return my_dump_error(number, text, err, what);
}

/* ---- connecting ---- */

static void library_init(void)
{
    mysql_library_init(0, NULL, NULL);
}

/* A server that is gone without a word is found out within 40 seconds. */
static void keep_alive(int fd)
{
    static const struct {
        int level, name, value;
    } options[] = {
        {SOL_SOCKET, SO_KEEPALIVE, 1},          {IPPROTO_TCP, TCP_KEEPIDLE, 15},
        {IPPROTO_TCP, TCP_KEEPINTVL, 5},        {IPPROTO_TCP, TCP_KEEPCNT, 4},
        {IPPROTO_TCP, TCP_USER_TIMEOUT, 30000},
    };
    for (size_t i = 0; i < sizeof options / sizeof *options; i++) /* a unix socket has none */
        setsockopt(fd, options[i].level, options[i].name, &options[i].value, sizeof(int));
}

static const char *either(const char *a, const char *b)
{
    return a && *a ? a : b && *b ? b : NULL;
}

static enum cdcd_rc tls_options(MYSQL *m, const struct my_config *cfg, const struct my_url *u,
                                enum my_ssl_mode *mode, struct cdcd_error *err)
{
    const char *ca = either(u->ssl_ca, cfg->ssl_ca);
    *mode = u->ssl_mode ? (enum my_ssl_mode)my_ssl_mode_parse(u->ssl_mode)
                        : (enum my_ssl_mode)cfg->ssl_mode;
    if (u->socket && *mode == MY_SSL_PREFERRED)
        *mode = MY_SSL_DISABLED; /* nobody is in between */
    if (*mode == MY_SSL_VERIFY_CA && !ca)
        return cdcd_error_set(err, CDCD_ERR_CONFIG,
                              "ssl.mode verify_ca needs the authority's certificate in ssl.ca");
    my_shim_tls(m, *mode, ca, either(u->ssl_cert, cfg->ssl_cert), either(u->ssl_key, cfg->ssl_key));
    return CDCD_OK;
}

static void plain_options(MYSQL *m, const struct my_config *cfg)
{
    int64_t ms = cfg->connect_timeout_ms > 0 ? cfg->connect_timeout_ms : 10000;
    unsigned int seconds = (unsigned int)((ms + 999) / 1000), none = 0;
    unsigned long packet = 1UL << 30;
    mysql_options(m, MYSQL_OPT_CONNECT_TIMEOUT, &seconds);
    mysql_options(m, MYSQL_SET_CHARSET_NAME, "utf8mb4");
    mysql_options(m, MYSQL_OPT_MAX_ALLOWED_PACKET, &packet);
    /* A server may ask for any file of ours in answer to any statement. */
    mysql_options(m, MYSQL_OPT_LOCAL_INFILE, &none);
    char *name = cdcd_xasprintf("cdcd %s", cfg->pipeline ? cfg->pipeline : "");
    mysql_options4(m, MYSQL_OPT_CONNECT_ATTR_ADD, "program_name", name);
    free(name);
}

/* Host, port and user as they stand in messages. */
static void describe(const struct my_url *u, char *out, size_t size)
{
    if (u->socket)
        snprintf(out, size, "connection to socket %s, user \"%s\"", u->socket, u->user);
    else
        snprintf(out, size, "connection to %s:%d, user \"%s\"", u->host, u->port, u->user);
}

/* Certificates and modes that do not fit, but not a server that hangs up while it restarts. */
static bool is_tls_mismatch(MYSQL *m)
{
    return mysql_errno(m) == CR_SSL_CONNECTION_ERROR && !has_part(mysql_error(m), "eof") &&
           !has_part(mysql_error(m), "reset");
}

static enum cdcd_rc connect_error(MYSQL *m, const struct my_url *u, struct cdcd_error *err)
{
    char what[512];
    struct cdcd_error e = {0};
    describe(u, what, sizeof what);
    my_error(m, &e, "%s", what);
    /* EAI_AGAIN: the name server does not answer */
    bool passing = atomic_load(&connected_once) || has_part(e.text, "Temporary failure") ||
                   has_part(e.text, "(-3)");
    if (is_tls_mismatch(m))
        cdcd_error_set(&e, CDCD_ERR_CONFIG,
                       "%s: %s [%u]; look at ssl.mode, ssl.ca, ssl.cert and "
                       "ssl.key",
                       what, mysql_error(m), mysql_errno(m));
    if ((e.class == CDCD_ERR_CONFIG && passing) || e.class == CDCD_ERR_FATAL)
        e.class = CDCD_ERR_RETRY;
    return cdcd_error_set(err, e.class, "%s", e.text);
}

/*
 * sql_mode '' so that backslashes escape, double quotes are strings, CHAR comes without padding and
 * zero dates are values; lc_messages for the texts of 1236; a global limit on statements, rows or
 * idle time must not cut a snapshot.
 */
static enum cdcd_rc pin_session(MYSQL *m, const struct my_config *cfg, bool mariadb,
                                struct cdcd_error *err)
{
    int64_t lock_s = (cfg->lock_timeout_ms + 999) / 1000;
    enum cdcd_rc rc = my_query(m, NULL, err, "SET NAMES utf8mb4");
    if (rc == CDCD_OK)
        rc = my_queryf(
            m, NULL, err,
            "SET SESSION sql_mode = '', time_zone = '+00:00', autocommit = 1, "
            "lc_messages = 'en_US', lc_time_names = 'en_US', sql_select_limit = DEFAULT, "
            "sql_quote_show_create = 1, wait_timeout = 31536000, "
            "net_read_timeout = 3600, net_write_timeout = 31536000, "
            "lock_wait_timeout = %d, %s = 0",
            (int)(lock_s > 0 ? lock_s : 1), mariadb ? "max_statement_time" : "max_execution_time");
    if (rc != CDCD_OK)
        cdcd_error_context(err, "setting up the session");
    return rc;
}

static bool is_mariadb(MYSQL *m)
{
    return has_part(mysql_get_server_info(m), "mariadb");
}

static enum cdcd_rc open_connection(const struct my_config *cfg, const struct my_url *u,
                                    MYSQL **out, struct cdcd_error *err)
{
    enum my_ssl_mode mode;
    MYSQL *m = mysql_init(NULL);
    *out = m;
    if (!m)
        return cdcd_error_set(err, CDCD_ERR_RETRY, "out of memory in the client library");
    plain_options(m, cfg);
    if (tls_options(m, cfg, u, &mode, err) != CDCD_OK)
        return CDCD_ERROR;
    if (!mysql_real_connect(m, u->socket ? NULL : u->host, u->user, u->password, u->db,
                            (unsigned int)u->port, u->socket, 0))
        return connect_error(m, u, err);
    /* libmariadb takes an unencrypted connection from a server that offers no TLS. */
    if (mode >= MY_SSL_REQUIRED && !mysql_get_ssl_cipher(m))
        return cdcd_error_set(err, CDCD_ERR_CONFIG,
                              "the server offers no TLS, and ssl.mode asks for it");
    keep_alive(my_shim_socket(m));
    return pin_session(m, cfg, is_mariadb(m), err);
}

enum cdcd_rc my_connect(const struct my_config *cfg, MYSQL **out, struct cdcd_error *err)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    struct my_url u;
    *out = NULL;
    pthread_once(&once, library_init);
    if (my_url_parse(cfg->url, &u, err) != CDCD_OK)
        return CDCD_ERROR;
    MYSQL *m = NULL;
    enum cdcd_rc rc = open_connection(cfg, &u, &m, err);
    if (rc == CDCD_OK) {
        atomic_store(&connected_once, true);
        *out = m;
    } else if (m) {
        mysql_close(m);
    }
    my_url_free(&u);
    return rc;
}

/* ---- SQL ---- */

enum cdcd_rc my_query(MYSQL *m, MYSQL_RES **out, struct cdcd_error *err, const char *sql)
{
    if (out)
        *out = NULL;
    bool failed = mysql_real_query(m, sql, strlen(sql)) != 0;
    MYSQL_RES *r = failed ? NULL : mysql_store_result(m);
    if (failed || (!r && mysql_errno(m))) {
        char head[160];
        tidy(sql, head, sizeof head);
        return my_error(m, err, "\"%s%s\"", head, strlen(head) + 1 >= sizeof head ? "..." : "");
    }
    if (out && !r)
        return cdcd_error_set(err, CDCD_ERR_FATAL, "a statement gave no rows: \"%.120s\"", sql);
    if (out)
        *out = r;
    else if (r)
        mysql_free_result(r);
    return CDCD_OK;
}

static void add_identifier(struct cdcd_buf *b, const char *s)
{
    cdcd_buf_add(b, "`", 1);
    for (; *s; s++) {
        if (*s == '`')
            cdcd_buf_add(b, "`", 1);
        cdcd_buf_add(b, s, 1);
    }
    cdcd_buf_add(b, "`", 1);
}

/* In utf8mb4 no byte of a character looks like a quote or a backslash. */
static void add_literal(struct cdcd_buf *b, const char *s)
{
    cdcd_buf_add(b, "'", 1);
    for (; *s; s++) {
        if (*s == '\'' || *s == '\\')
            cdcd_buf_add(b, *s == '\'' ? "'" : "\\", 1);
        cdcd_buf_add(b, s, 1);
    }
    cdcd_buf_add(b, "'", 1);
}

static char *format(const char *fmt, va_list ap)
{
    struct cdcd_buf b;
    cdcd_buf_init(&b, 0);
    for (; *fmt; fmt++) {
        if (*fmt != '%') {
            cdcd_buf_add(&b, fmt, 1);
            continue;
        }
        switch (*++fmt) {
        case 'I': add_identifier(&b, va_arg(ap, const char *)); break;
        case 'L': add_literal(&b, va_arg(ap, const char *)); break;
        case 's': cdcd_buf_adds(&b, va_arg(ap, const char *)); break;
        case 'd': cdcd_buf_addf(&b, "%d", va_arg(ap, int)); break;
        case 'u': cdcd_buf_addf(&b, "%u", va_arg(ap, unsigned)); break;
        case 'l':
            if (strncmp(fmt, "llu", 3) != 0)
                abort(); /* a format of ours that does not exist */
            fmt += 2;
            cdcd_buf_addf(&b, "%llu", va_arg(ap, unsigned long long));
            break;
        case '%': cdcd_buf_add(&b, "%", 1); break;
        default: abort(); /* the same */
        }
    }
    cdcd_buf_cstr(&b);
    return b.ptr;
}

char *my_sql(const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    char *sql = format(fmt, ap);
    va_end(ap);
    return sql;
}

enum cdcd_rc my_queryf(MYSQL *m, MYSQL_RES **out, struct cdcd_error *err, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    char *sql = format(fmt, ap);
    va_end(ap);
    enum cdcd_rc rc = my_query(m, out, err, sql);
    free(sql);
    return rc;
}
