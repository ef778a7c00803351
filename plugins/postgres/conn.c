/*
 * conn.c: libpq connections, errors and small SQL helpers. Sockets live here; nothing in this
 * file looks into pgoutput.
 *
 * Every setting that shapes a value's text goes into the start-up packet, where it outranks what
 * ALTER DATABASE or ALTER ROLE say, so that a snapshot row and a streamed row have one text form.
 */
#include "pg.h"

#include <libpq-events.h>

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

/* search_path: reg* types print names relative to it. row_security off: a policy that would hide
 * rows from a snapshot becomes an error. */
#define PG_GUCS                                                                               \
    "-c datestyle=ISO -c intervalstyle=postgres -c timezone=UTC -c bytea_output=hex "         \
    "-c extra_float_digits=3 -c lc_monetary=C -c xmlbinary=base64 -c search_path=pg_catalog " \
    "-c standard_conforming_strings=on -c row_security=off -c quote_all_identifiers=off "     \
    "-c statement_timeout=0 -c lock_timeout=0 -c idle_in_transaction_session_timeout=0 "      \
    "-c idle_session_timeout=0 -c client_min_messages=warning -c synchronize_seqscans=off "   \
    "-c plan_cache_mode=force_generic_plan"

/* Set once any connection of this process has worked: from then on a refused password or a
 * vanished database is an incident to wait out, not a mistake in the configuration. */
/* By kind: ordinary, replication. A role may be let in for one and not for the other. */
static atomic_bool connected_once[2];

/* ---- errors ---- */

struct sqlstate_class {
    const char *prefix; /* the longest match is listed first */
    enum cdcd_error_class class;
    const char *mend;
};

static const struct sqlstate_class sqlstate_classes[] = {
    {"08", CDCD_ERR_RETRY, NULL},
    {"28P01", CDCD_ERR_CONFIG, "correct the user or password in `url`"},
    {"28", CDCD_ERR_CONFIG,
     "let the user in: LOGIN and REPLICATION attributes, and a line in pg_hba.conf"},
    {"3D000", CDCD_ERR_CONFIG, "correct the database name in `url`"},
    {"42501", CDCD_ERR_CONFIG, "grant the missing privilege; `cdcd check` lists what is needed"},
    {"42704", CDCD_ERR_LOSS, NULL}, /* of a replication command: slot does not exist */
    {"53100", CDCD_ERR_RETRY, "free disk space on the server"},
    {"53200", CDCD_ERR_RETRY, NULL},
    {"53300", CDCD_ERR_RETRY, "raise max_connections or free a connection"},
    {"53400", CDCD_ERR_CONFIG,
     "raise max_replication_slots or max_wal_senders, or drop an unused slot"},
    {"55000", CDCD_ERR_LOSS, NULL}, /* of a replication command: slot lost or invalidated */
    {"55006", CDCD_ERR_RETRY, "stop the other process that uses it, or wait"},
    {"55P03", CDCD_ERR_RETRY, NULL},
    {"57014", CDCD_ERR_RETRY, NULL},
    {"57P", CDCD_ERR_RETRY, NULL},
    {"58", CDCD_ERR_RETRY, NULL},
    {"40", CDCD_ERR_RETRY, NULL},
    {NULL, CDCD_ERR_FATAL, NULL},
};

static const struct sqlstate_class *sqlstate_class(const char *state)
{
    const struct sqlstate_class *c = sqlstate_classes;
    while (c->prefix && strncmp(state, c->prefix, strlen(c->prefix)) != 0)
        c++;
    return c;
}

/* These two states mean a lost slot only when a slot is what the server talks about. */
static bool is_slot_loss(const char *text)
{
    return strstr(text, "replication slot") != NULL &&
           (strstr(text, "does not exist") || strstr(text, "can no longer get changes") ||
            strstr(text, "invalidated") || strstr(text, "wal removal") ||
            strstr(text, "has been removed"));
}

/* One line: newlines and runs of blanks become a blank, "ERROR:  " goes. */
static void tidy(const char *in, char *out, size_t size)
{
    static const char *const severities[] = {"ERROR:", "FATAL:", "PANIC:"};
    for (size_t i = 0; i < sizeof severities / sizeof *severities; i++) {
        size_t n = strlen(severities[i]);
        if (strncmp(in, severities[i], n) == 0)
            in += n;
    }
    size_t n = 0;
    for (; *in && n + 1 < size; in++) {
        bool blank = isspace((unsigned char)*in);
        if (blank && (n == 0 || out[n - 1] == ' '))
            continue;
        out[n++] = blank ? ' ' : *in;
    }
    while (n && out[n - 1] == ' ')
        n--;
    out[n] = 0;
}

const char *pg_sqlstate(const PGresult *r)
{
    const char *s = r ? PQresultErrorField(r, PG_DIAG_SQLSTATE) : NULL;
    return s ? s : "";
}

/* "text (detail; hint)", from the fields where there are any. */
static void result_text(const PGresult *r, char *out, size_t size)
{
    const char *primary = PQresultErrorField(r, PG_DIAG_MESSAGE_PRIMARY);
    const char *detail = PQresultErrorField(r, PG_DIAG_MESSAGE_DETAIL);
    const char *hint = PQresultErrorField(r, PG_DIAG_MESSAGE_HINT);
    char raw[1536];
    snprintf(raw, sizeof raw, "%s%s%s%s%s%s", primary ? primary : PQresultErrorMessage(r),
             detail || hint ? " (" : "", detail ? detail : "", detail && hint ? " " : "",
             hint ? hint : "", detail || hint ? ")" : "");
    tidy(raw, out, size);
}

static enum cdcd_rc set_classified(struct cdcd_error *err, const char *what, const char *state,
                                   const char *text)
{
    const struct sqlstate_class *sc = sqlstate_class(state);
    enum cdcd_error_class class = sc->class;
    const char *mend = sc->mend;
    if (class == CDCD_ERR_LOSS && !is_slot_loss(text))
        class = CDCD_ERR_FATAL;
    if (strstr(text, "requested WAL segment") && strstr(text, "removed"))
        class = CDCD_ERR_LOSS;
    if (strcmp(state, "42704") == 0 && strstr(text, "publication")) {
        class = CDCD_ERR_CONFIG;
        mend = "the publication must be there at the slot's place in the log, so one that was made "
               "later than the slot does not help: create the publication, run `cdcd drop` for the "
               "slot, and start a new snapshot";
    }
    if (class == CDCD_ERR_LOSS)
        mend = "the changes since the stored position are gone: start a new snapshot "
               "(snapshot.mode: when_needed), or `cdcd drop` and begin again";
    return cdcd_error_set(err, class, "%s: %s [SQLSTATE %s]%s%s", what, text, state,
                          mend ? "; " : "", mend ? mend : "");
}

enum cdcd_rc pg_error(PGconn *c, const PGresult *r, struct cdcd_error *err, const char *fmt, ...)
{
    char what[512], text[1024];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(what, sizeof what, fmt, ap);
    va_end(ap);

    const char *state = pg_sqlstate(r);
    if (*state) {
        result_text(r, text, sizeof text);
        return set_classified(err, what, state, text);
    }
    /* Without a SQLSTATE it is libpq that speaks: the connection. */
    const char *raw = r ? PQresultErrorMessage(r) : "";
    if (!*raw && c)
        raw = PQerrorMessage(c);
    tidy(raw, text, sizeof text);
    bool down = !c || PQstatus(c) != CONNECTION_OK || strstr(text, "server closed the connection");
    return cdcd_error_set(err, down ? CDCD_ERR_RETRY : CDCD_ERR_FATAL, "%s: %s", what,
                          *text ? text : "the connection is gone");
}

/* ---- connecting ---- */

#define PG_MAX_PARAMS 96

struct params {
    const char *keys[PG_MAX_PARAMS], *values[PG_MAX_PARAMS];
    size_t n;
};

static const char *param_get(const struct params *p, const char *key)
{
    for (size_t i = 0; i < p->n; i++)
        if (strcmp(p->keys[i], key) == 0)
            return p->values[i];
    return NULL;
}

static void param_set(struct params *p, const char *key, const char *value, bool force)
{
    size_t i = 0;
    while (i < p->n && strcmp(p->keys[i], key) != 0)
        i++;
    if (i < p->n) {
        if (force)
            p->values[i] = value;
        return;
    }
    if (p->n < PG_MAX_PARAMS - 1) {
        p->keys[p->n] = key;
        p->values[p->n++] = value;
    }
}

/* The SQLSTATE in a verbose error text ("FATAL:  28P01: password ..."), whatever the language
 * of the severity. Cuts the state and the LOCATION line out of `text`. */
static void take_sqlstate(char *text, char state[6])
{
    state[0] = 0;
    for (char *p = strchr(text, ':'); p; p = strchr(p + 1, ':')) {
        char *s = p + 1;
        while (*s == ' ')
            s++;
        size_t n = 0;
        bool digit = false; /* every state has one, "FATAL" has none */
        for (; n < 5 && (isdigit((unsigned char)s[n]) || isupper((unsigned char)s[n])); n++)
            digit = digit || isdigit((unsigned char)s[n]);
        if (n == 5 && digit && s[5] == ':' && s[6] == ' ') {
            memcpy(state, s, 5);
            state[5] = 0;
            memmove(s, s + 7, strlen(s + 7) + 1);
            break;
        }
    }
    char *loc = strstr(text, "LOCATION:");
    if (loc && state[0])
        *loc = 0;
}

static enum cdcd_rc connect_error(PGconn *c, bool replication, struct cdcd_error *err)
{
    char raw[1024], text[1024], state[6];
    snprintf(raw, sizeof raw, "%s", PQerrorMessage(c));
    take_sqlstate(raw, state);
    tidy(raw, text, sizeof text);

    char what[512];
    snprintf(what, sizeof what, "PostgreSQL %sconnection to %s:%s, database \"%s\", user \"%s\"",
             replication ? "replication " : "",
             PQhost(c) && *PQhost(c) ? PQhost(c) : "local socket", PQport(c) ? PQport(c) : "",
             PQdb(c) ? PQdb(c) : "", PQuser(c) ? PQuser(c) : "");
    if (replication && strcmp(state, "42501") == 0) {
        char *mend = pg_sql("ALTER ROLE %I REPLICATION", PQuser(c) ? PQuser(c) : "");
        cdcd_error_set(err, CDCD_ERR_CONFIG, "%s: %s [SQLSTATE %s]; run %s", what, text, state,
                       mend);
        free(mend);
    } else if (state[0]) {
        set_classified(err, what, state, text);
    } else {
        bool config = strstr(text, "could not translate host name") &&
                      !strstr(text, "Temporary failure");
        if (strstr(text, "no password supplied") || strstr(text, "does not support SSL") ||
            strncmp(text, "invalid ", 8) == 0)
            config = true;
        cdcd_error_set(err, config ? CDCD_ERR_CONFIG : CDCD_ERR_RETRY, "%s: %s", what, text);
    }
    if (err && err->class == CDCD_ERR_CONFIG && atomic_load(&connected_once[replication]))
        err->class = CDCD_ERR_RETRY;
    return CDCD_ERROR;
}

/* libpq's own way is to print them on standard error. */
static void log_notice(void *arg, const PGresult *r)
{
    char text[1024];
    const char *severity = PQresultErrorField(r, PG_DIAG_SEVERITY_NONLOCALIZED);
    (void)arg;
    result_text(r, text, sizeof text);
    if (severity && strcmp(severity, "WARNING") == 0)
        cdcd_warn("postgres", "the server warns: %s", text);
    else
        cdcd_debug("postgres", "the server says: %s", text);
}

/* Drives PQconnectPoll until done or the deadline. */
static bool connect_wait(PGconn *c, int64_t timeout_ms, bool *timed_out)
{
    int64_t end = cdcd_now_ms() + timeout_ms;
    PostgresPollingStatusType st = PGRES_POLLING_WRITING;
    *timed_out = false;
    while (st != PGRES_POLLING_OK && st != PGRES_POLLING_FAILED) {
        struct pollfd p = {.fd = PQsocket(c),
                           .events = st == PGRES_POLLING_READING ? POLLIN : POLLOUT};
        int64_t left = end - cdcd_now_ms();
        if (left <= 0) {
            *timed_out = true;
            return false;
        }
        int n = poll(&p, 1, left > INT32_MAX ? INT32_MAX : (int)left);
        if (n > 0)
            st = PQconnectPoll(c);
        else if (n < 0 && errno != EINTR)
            return false;
    }
    return st == PGRES_POLLING_OK;
}

/* PGDATESTYLE and PGTZ of our environment would come after the options and win. */
static enum cdcd_rc pin_rest(PGconn *c, struct cdcd_error *err)
{
    const char *ds = PQparameterStatus(c, "DateStyle"), *tz = PQparameterStatus(c, "TimeZone");
    const char *is = PQparameterStatus(c, "IntervalStyle");
    enum cdcd_rc rc = CDCD_OK;
    if (!ds || strncmp(ds, "ISO", 3) != 0 || !tz || strcmp(tz, "UTC") != 0 || !is ||
        strcmp(is, "postgres") != 0)
        rc = pg_query(c, NULL, err,
                      "SET datestyle = ISO; SET timezone = 'UTC'; SET intervalstyle = postgres", 0,
                      NULL);
    /* New in 17, where it would also end a long decoding; older servers refuse the name. */
    if (rc == CDCD_OK && PQserverVersion(c) >= 170000)
        rc = pg_query(c, NULL, err, "SET transaction_timeout = 0", 0, NULL);
    return rc;
}

static enum cdcd_rc check_server(PGconn *c, bool replication, struct cdcd_error *err)
{
    int v = PQserverVersion(c);
    if (v < 140000)
        return cdcd_error_set(err, CDCD_ERR_CONFIG,
                              "PostgreSQL %d.%d at %s:%s is too old: version 14 or later is needed",
                              v / 10000, v % 10000, PQhost(c), PQport(c));
    enum cdcd_rc rc = pin_rest(c, err);
    if (rc != CDCD_OK)
        return cdcd_error_context(err, "set up the %s connection",
                                  replication ? "replication" : "SQL");
    return CDCD_OK;
}

enum cdcd_rc pg_connect(const struct pg_config *cfg, bool replication, PGconn **out,
                        struct cdcd_error *err)
{
    enum cdcd_rc rc = CDCD_ERROR;
    PGconn *c = NULL;
    char *options = NULL, *name = NULL, *parse_error = NULL;
    struct params p = {.n = 0};
    *out = NULL;

    PQconninfoOption *parsed = PQconninfoParse(cfg->url ? cfg->url : "", &parse_error);
    if (!parsed) {
        /* libpq's text may quote a part of the string, and with it a password */
        cdcd_error_set(err, CDCD_ERR_CONFIG,
                       "option `url` is not a valid connection string; expected "
                       "postgresql://USER:PASSWORD@HOST:PORT/DATABASE or key=value pairs");
        goto out;
    }
    for (PQconninfoOption *o = parsed; o->keyword; o++)
        if (o->val)
            param_set(&p, o->keyword, o->val, true);

    const char *own = param_get(&p, "options");
    options = cdcd_xasprintf("%s%s%s", own ? own : "", own ? " " : "", PG_GUCS);
    name = cdcd_xasprintf("cdcd %s", cfg->pipeline ? cfg->pipeline : "");
    param_set(&p, "options", options, true);
    param_set(&p, "client_encoding", "UTF8", true);
    param_set(&p, "replication", replication ? "database" : "false", true);
    param_set(&p, "application_name", name, false);
    param_set(&p, "keepalives", "1", false);
    param_set(&p, "keepalives_idle", "15", false);
    param_set(&p, "keepalives_interval", "5", false);
    param_set(&p, "keepalives_count", "4", false);
    param_set(&p, "tcp_user_timeout", "30000", false);
    p.keys[p.n] = p.values[p.n] = NULL;

    c = PQconnectStartParams(p.keys, p.values, 0);
    if (!c) {
        cdcd_error_set(err, CDCD_ERR_RETRY, "PostgreSQL: out of memory in libpq");
        goto out;
    }
    PQsetNoticeReceiver(c, log_notice, NULL);
    PQsetErrorVerbosity(c, PQERRORS_VERBOSE); /* the only way to the SQLSTATE of a refusal */
    int64_t timeout = cfg->connect_timeout_ms > 0 ? cfg->connect_timeout_ms : 10000;
    bool timed_out = false;
    if (PQstatus(c) == CONNECTION_BAD || !connect_wait(c, timeout, &timed_out)) {
        if (timed_out)
            cdcd_error_set(err, CDCD_ERR_RETRY,
                           "PostgreSQL at %s:%s did not answer within %" PRId64
                           " ms (connect.timeout.ms)",
                           PQhost(c) ? PQhost(c) : "", PQport(c) ? PQport(c) : "", timeout);
        else
            connect_error(c, replication, err);
        goto out;
    }
    PQsetErrorVerbosity(c, PQERRORS_DEFAULT);
    rc = check_server(c, replication, err);
    if (rc != CDCD_OK)
        goto out;
    atomic_store(&connected_once[replication], true);
    *out = c;
    c = NULL;
out:
    PQfinish(c);
    PQconninfoFree(parsed);
    PQfreemem(parse_error);
    free(options);
    free(name);
    return rc;
}

/* ---- SQL ---- */

/* Statements with parameters are the same ones again and again, for every table: planning them
 * costs the server many times what running them does. So each is prepared once a connection. The
 * list lives with the connection, as instance data of libpq's events. */
#define PG_PREPARED_MAX 64

struct prepared {
    size_t n;
    char *sql[PG_PREPARED_MAX];
};

static int connection_event(PGEventId id, void *info, void *through)
{
    (void)through;
    if (id == PGEVT_CONNDESTROY) {
        PGEventConnDestroy *e = info;
        struct prepared *p = PQinstanceData(e->conn, connection_event);
        for (size_t i = 0; p && i < p->n; i++)
            free(p->sql[i]);
        free(p);
    }
    return 1;
}

static struct prepared *prepared_of(PGconn *c)
{
    struct prepared *p = PQinstanceData(c, connection_event);
    if (!p && PQregisterEventProc(c, connection_event, "cdcd", NULL)) {
        p = cdcd_xcalloc(1, sizeof *p);
        PQsetInstanceData(c, connection_event, p);
    }
    return p;
}

static PGresult *exec_prepared(PGconn *c, const char *sql, int nparams, const char *const *params)
{
    struct prepared *p = prepared_of(c);
    char name[32];
    size_t i = 0;
    while (p && i < p->n && strcmp(p->sql[i], sql) != 0)
        i++;
    if (!p || i == PG_PREPARED_MAX)
        return PQexecParams(c, sql, nparams, NULL, params, NULL, NULL, 0);
    snprintf(name, sizeof name, "cdcd_%zu", i);
    if (i == p->n) {
        PGresult *r = PQprepare(c, name, sql, nparams, NULL);
        if (PQresultStatus(r) != PGRES_COMMAND_OK)
            return r;
        PQclear(r);
        p->sql[p->n++] = cdcd_xstrdup(sql);
    }
    return PQexecPrepared(c, name, nparams, params, NULL, NULL, 0);
}

enum cdcd_rc pg_query(PGconn *c, PGresult **out, struct cdcd_error *err, const char *sql,
                      int nparams, const char *const *params)
{
    if (out)
        *out = NULL;
    /* Without parameters the simple protocol: the only one of a walsender. */
    PGresult *r = nparams ? exec_prepared(c, sql, nparams, params) : PQexec(c, sql);
    ExecStatusType st = PQresultStatus(r);
    if (st != PGRES_TUPLES_OK && st != PGRES_COMMAND_OK) {
        char head[160];
        tidy(sql, head, sizeof head);
        pg_error(c, r, err, "\"%s%s\"", head, strlen(head) + 1 >= sizeof head ? "..." : "");
        PQclear(r);
        return CDCD_ERROR;
    }
    if (out)
        *out = r;
    else
        PQclear(r);
    return CDCD_OK;
}

static void add_quoted(struct cdcd_buf *b, const char *s, char quote)
{
    cdcd_buf_add(b, &quote, 1);
    for (; *s; s++) {
        if (*s == quote)
            cdcd_buf_add(b, &quote, 1);
        cdcd_buf_add(b, s, 1);
    }
    cdcd_buf_add(b, &quote, 1);
}

char *pg_sql(const char *fmt, ...)
{
    struct cdcd_buf b;
    cdcd_buf_init(&b, 0);
    va_list ap;
    va_start(ap, fmt);
    for (; *fmt; fmt++) {
        if (*fmt != '%') {
            cdcd_buf_add(&b, fmt, 1);
            continue;
        }
        switch (*++fmt) {
        case 'I': add_quoted(&b, va_arg(ap, const char *), '"'); break;
        case 'L': /* a backslash is itself: standard_conforming_strings is pinned */
            add_quoted(&b, va_arg(ap, const char *), '\'');
            break;
        case 's': cdcd_buf_adds(&b, va_arg(ap, const char *)); break;
        case 'd': cdcd_buf_addf(&b, "%d", va_arg(ap, int)); break;
        case 'u': cdcd_buf_addf(&b, "%u", va_arg(ap, unsigned)); break;
        case 'X': {
            pg_lsn l = va_arg(ap, pg_lsn);
            cdcd_buf_addf(&b, PG_LSN_FMT, PG_LSN_ARGS(l));
            break;
        }
        case '%': cdcd_buf_add(&b, "%", 1); break;
        default: abort(); /* a format of ours that does not exist */
        }
    }
    va_end(ap);
    cdcd_buf_cstr(&b);
    return b.ptr;
}

static size_t hex32(const char *s, size_t n, uint32_t *out)
{
    size_t i = 0;
    uint32_t v = 0;
    for (; i < n && i < 8 && isxdigit((unsigned char)s[i]); i++) {
        int ch = tolower((unsigned char)s[i]);
        v = v << 4 | (uint32_t)(ch <= '9' ? ch - '0' : ch - 'a' + 10);
    }
    *out = v;
    return i;
}

bool pg_lsn_parse(const char *s, size_t n, pg_lsn *out)
{
    uint32_t hi, lo;
    *out = 0;
    size_t i = hex32(s, n, &hi);
    if (i == 0 || i >= n || s[i] != '/')
        return false;
    size_t j = hex32(s + i + 1, n - i - 1, &lo);
    if (j == 0 || i + 1 + j != n)
        return false;
    *out = (pg_lsn)hi << 32 | lo;
    return true;
}

void pg_server_free(struct pg_server *server)
{
    free(server->db);
    memset(server, 0, sizeof *server);
}

enum cdcd_rc pg_server_info(PGconn *sql, PGconn *repl, struct pg_server *out,
                            struct cdcd_error *err)
{
    PGresult *r = NULL;
    enum cdcd_rc rc = pg_query(
        sql, &r, err,
        "SELECT pg_is_in_recovery(), current_database(), "
        "(SELECT setting FROM pg_settings WHERE name = 'wal_sender_timeout'), "
        "(SELECT system_identifier FROM pg_control_system()), "
        "(SELECT timeline_id FROM pg_control_checkpoint())",
        0, NULL);
    if (rc != CDCD_OK)
        return rc;
    pg_server_free(out);
    out->version = PQserverVersion(sql);
    out->in_recovery = PQgetvalue(r, 0, 0)[0] == 't';
    out->db = cdcd_xstrdup(PQgetvalue(r, 0, 1));
    out->wal_sender_timeout_ms = strtoll(PQgetvalue(r, 0, 2), NULL, 10);
    snprintf(out->system_id, sizeof out->system_id, "%s", PQgetvalue(r, 0, 3));
    out->timeline = (uint32_t)strtoul(PQgetvalue(r, 0, 4), NULL, 10);
    PQclear(r);
    if (!repl)
        return CDCD_OK;

    rc = pg_query(repl, &r, err, "IDENTIFY_SYSTEM", 0, NULL);
    if (rc != CDCD_OK)
        return rc;
    if (PQntuples(r) == 1 && PQnfields(r) >= 2) {
        snprintf(out->system_id, sizeof out->system_id, "%s", PQgetvalue(r, 0, 0));
        out->timeline = (uint32_t)strtoul(PQgetvalue(r, 0, 1), NULL, 10);
    }
    PQclear(r);
    return CDCD_OK;
}
