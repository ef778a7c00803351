/*
 * conn.c: clients, commands, and what an error means. Nothing in this file looks into a document
 * of a user.
 */
#include "mg.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* Set once any client of this process has been answered: from then on a refused password or a host
 * without a name is an incident to wait out, not a mistake in the configuration. */
static atomic_bool connected_once;

/* ---- the library ---- */

/* What the library says while it reads a URL goes there, per thread; else to the debug log. It
 * never has the password in it: what it says of connections has hosts only. */
static _Thread_local struct cdcd_buf *url_remarks;

static void on_log(mongoc_log_level_t level, const char *domain, const char *message, void *ctx)
{
    (void)ctx;
    if (url_remarks && level <= MONGOC_LOG_LEVEL_WARNING)
        cdcd_buf_addf(url_remarks, "%s%s", url_remarks->len ? "; " : "", message);
    else if (level <= MONGOC_LOG_LEVEL_DEBUG)
        cdcd_debug("mongodb", "%s: %s", domain, message);
}

/* Never undone: a plugin is never unloaded, and threads of clients may live until the end. */
static void library_init(void)
{
    mongoc_log_set_handler(on_log, NULL);
    mongoc_init();
}

/* ---- errors ---- */

#define MEND_GRANT "give cdcd's user what it lacks; `cdcd check` prints the command"
#define MEND_LOST                                                                           \
    "the changes since the stored position are gone: start a new snapshot (snapshot.mode: " \
    "when_needed), and enlarge the oplog (db.adminCommand({replSetResizeOplog: 1, size: MB}))"
#define MEND_TOKEN                                                                           \
    "the stored position is not in the history of this deployment: another one answers, or " \
    "it was restored or rolled back. Connect to the right one, or start a new snapshot "     \
    "(snapshot.mode: when_needed)"

struct code_class {
    int code;
    enum cdcd_error_class class;
    const char *mend;
};

/* mongodb/mongo src/mongo/base/error_codes.yml */
static const struct code_class code_classes[] = {
    {13 /* Unauthorized */, CDCD_ERR_CONFIG, MEND_GRANT},
    {18 /* AuthenticationFailed */, CDCD_ERR_CONFIG,
     "correct user, password or authSource in `url`: authSource is the database that the user was "
     "created in"},
    {8000 /* AtlasError */, CDCD_ERR_CONFIG, "look at the user and its roles in Atlas"},
    {40573 /* $changeStream on a standalone server */, CDCD_ERR_CONFIG,
     "make the server a replica set, of one member if need be: start it with --replSet NAME, and "
     "run rs.initiate()"},
    {148 /* ReadConcernMajorityNotEnabled */, CDCD_ERR_CONFIG,
     "remove enableMajorityReadConcern: false from the server's configuration"},
    {286 /* ChangeStreamHistoryLost */, CDCD_ERR_LOSS, MEND_LOST},
    {280 /* ChangeStreamFatalError */, CDCD_ERR_LOSS, MEND_TOKEN},
    {260 /* InvalidResumeToken */, CDCD_ERR_LOSS, MEND_TOKEN},
    {10334 /* BSONObjectTooLarge */, CDCD_ERR_DATA,
     "a change with its documents is over 16 MB: see cursor.oversize.handling.mode"},
    {6 /* HostUnreachable */, CDCD_ERR_RETRY, NULL},
    {7 /* HostNotFound */, CDCD_ERR_RETRY, NULL},
    {43 /* CursorNotFound */, CDCD_ERR_RETRY, NULL},
    {50 /* MaxTimeMSExpired */, CDCD_ERR_RETRY, NULL},
    {63 /* StaleShardVersion */, CDCD_ERR_RETRY, NULL},
    {89 /* NetworkTimeout */, CDCD_ERR_RETRY, NULL},
    {91 /* ShutdownInProgress */, CDCD_ERR_RETRY, NULL},
    {112 /* WriteConflict */, CDCD_ERR_RETRY, NULL},
    {133 /* FailedToSatisfyReadPreference */, CDCD_ERR_RETRY, NULL},
    {134 /* ReadConcernMajorityNotAvailableYet */, CDCD_ERR_RETRY, NULL},
    {136 /* CappedPositionLost */, CDCD_ERR_RETRY, NULL},
    {150 /* StaleEpoch */, CDCD_ERR_RETRY, NULL},
    {175 /* QueryPlanKilled */, CDCD_ERR_RETRY, NULL},
    {189 /* PrimarySteppedDown */, CDCD_ERR_RETRY, NULL},
    {202 /* NetworkInterfaceExceededTimeLimit */, CDCD_ERR_RETRY, NULL},
    {234 /* RetryChangeStream */, CDCD_ERR_RETRY, NULL},
    {237 /* CursorKilled */, CDCD_ERR_RETRY, NULL},
    {239 /* SnapshotTooOld */, CDCD_ERR_RETRY, NULL},
    {246 /* SnapshotUnavailable */, CDCD_ERR_RETRY, NULL},
    {262 /* ExceededTimeLimit */, CDCD_ERR_RETRY, NULL},
    {317 /* ConnectionPoolExpired */, CDCD_ERR_RETRY, NULL},
    {462 /* IngressRequestRateLimitExceeded */, CDCD_ERR_RETRY, NULL},
    {9001 /* SocketException */, CDCD_ERR_RETRY, NULL},
    {10107 /* NotWritablePrimary */, CDCD_ERR_RETRY, NULL},
    {11600 /* InterruptedAtShutdown */, CDCD_ERR_RETRY, NULL},
    {11601 /* Interrupted */, CDCD_ERR_RETRY, NULL},
    {11602 /* InterruptedDueToReplStateChange */, CDCD_ERR_RETRY, NULL},
    {13388 /* StaleConfig */, CDCD_ERR_RETRY, NULL},
    {13435 /* NotPrimaryNoSecondaryOk */, CDCD_ERR_RETRY, NULL},
    {13436 /* NotPrimaryOrSecondary */, CDCD_ERR_RETRY, NULL},
};

static const struct code_class *of_code(int code)
{
    for (size_t i = 0; i < sizeof code_classes / sizeof *code_classes; i++) {
        if (code_classes[i].code == code)
            return &code_classes[i];
    }
    return NULL;
}

/* A whole number of any type; 0 when it is not there. */
static int reply_int(const bson_t *reply, const char *name)
{
    bson_iter_t it;
    return reply && bson_iter_init_find(&it, reply, name) && BSON_ITER_HOLDS_NUMBER(&it)
               ? (int)bson_iter_as_int64(&it)
               : 0;
}

/* Borrowed from the reply; "" when it is not there. */
static const char *reply_text(const bson_t *reply, const char *name)
{
    bson_iter_t it;
    return reply && bson_iter_init_find(&it, reply, name) && BSON_ITER_HOLDS_UTF8(&it)
               ? bson_iter_utf8(&it, NULL)
               : "";
}

int mg_error_code(const bson_error_t *e, const bson_t *reply)
{
    int code = reply_int(reply, "code");
    if (!code && e && e->domain == MONGOC_ERROR_SERVER)
        code = (int)e->code;
    return code;
}

static bool has_part(const char *text, const char *part)
{
    return strcasestr(text, part) != NULL;
}

static bool is_auth(const bson_error_t *e)
{
    return e->domain == MONGOC_ERROR_SASL || e->domain == MONGOC_ERROR_SCRAM ||
           (e->domain == MONGOC_ERROR_CLIENT && e->code == MONGOC_ERROR_CLIENT_AUTHENTICATE);
}

/* Failures before the server has said anything, by what they would mean at the first connection:
 * then somebody is there to correct them. */
static const struct code_class *of_first(const bson_error_t *e)
{
    static const struct code_class
        host = {0, CDCD_ERR_CONFIG, "correct the host in `url`"},
        tls = {0, CDCD_ERR_CONFIG,
               "look at tls, tlsCAFile and tlsCertificateKeyFile in `url`, and at the server's "
               "certificate"},
        set = {0, CDCD_ERR_CONFIG,
               "correct replicaSet in `url`, or use directConnection=true for one server alone"};
    if (is_auth(e) || has_part(e->message, "authentication failed"))
        return of_code(18);
    if (e->domain != MONGOC_ERROR_SERVER_SELECTION && e->domain != MONGOC_ERROR_STREAM)
        return NULL;
    if (has_part(e->message, "refused") || has_part(e->message, "timeout"))
        return NULL; /* of several hosts one may be right */
    if (has_part(e->message, "failed to resolve"))
        return &host;
    if (has_part(e->message, "tls") || has_part(e->message, "certificate"))
        return &tls;
    return has_part(e->message, "set name") || has_part(e->message, "replica set") ? &set : NULL;
}

static const struct code_class *of_client(const bson_error_t *e)
{
    static const struct code_class retry = {0, CDCD_ERR_RETRY, NULL};
    static const struct code_class fatal = {0, CDCD_ERR_FATAL, NULL};
    static const struct code_class wire = {
        0, CDCD_ERR_CONFIG, "server and libmongoc have no protocol in common: use newer ones"};
    static const struct code_class none = {
        0, CDCD_ERR_RETRY,
        "no server that answers is of the set (replicaSet) and of the kind (readPreference) that "
        "`url` asks for; there may be no primary now"};
    const struct code_class *first = connected_once ? NULL : of_first(e);
    if (first)
        return first;
    switch (e->domain) {
    case MONGOC_ERROR_PROTOCOL:
        return e->code == MONGOC_ERROR_PROTOCOL_BAD_WIRE_VERSION ? &wire : &retry;
    case MONGOC_ERROR_STREAM: return &retry;
    /* What is wrong with each server stands in brackets; without them all answered. */
    case MONGOC_ERROR_SERVER_SELECTION: return strchr(e->message, '[') ? &retry : &none;
    default: return is_auth(e) ? &retry : &fatal;
    }
}

static bool has_label(const bson_t *reply)
{
    static const char *const labels[] = {"ResumableChangeStreamError", "RetryableError",
                                         "RetryableWriteError", "TransientTransactionError"};
    for (size_t i = 0; reply && i < sizeof labels / sizeof *labels; i++) {
        if (mongoc_error_has_label(reply, labels[i]))
            return true;
    }
    return false;
}

/* One line: control characters become blanks. */
static void tidy(const char *in, char *out, size_t size)
{
    size_t n = 0;
    for (; *in && n + 1 < size; in++)
        out[n++] = (unsigned char)*in < ' ' ? ' ' : *in;
    out[n] = 0;
}

enum cdcd_rc mg_error(struct cdcd_error *err, const bson_error_t *e, const bson_t *reply,
                      const char *fmt, ...)
{
    static const struct code_class fatal = {0, CDCD_ERR_FATAL, NULL},
                                   retry = {0, CDCD_ERR_RETRY, NULL};
    static const bson_error_t none;
    char what[512], text[sizeof e->message], number[96] = "";
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(what, sizeof what, fmt, ap);
    va_end(ap);

    int code = mg_error_code(e, reply);
    e = e ? e : &none;
    const struct code_class *c = code ? of_code(code) : of_client(e);
    if (!c || c->class == CDCD_ERR_FATAL)
        c = has_label(reply) ? &retry : &fatal;
    if (c->code == 18 && connected_once)
        c = &retry;
    const char *said = e->message[0] ? e->message : reply_text(reply, "errmsg");
    tidy(*said ? said : "no reason given", text, sizeof text);
    if (code)
        snprintf(number, sizeof number, " [%d%s%s]", code,
                 *reply_text(reply, "codeName") ? " " : "", reply_text(reply, "codeName"));
    return cdcd_error_set(err, c->class, "%s: %s%s%s%s", what, text, number, c->mend ? "; " : "",
                          c->mend ? c->mend : "");
}

/* ---- URL ---- */

#define SECRET_RUN 4

/* Whether text has a piece of what stands before the last @ of the URL. */
static bool tells_secret(const char *text, const char *url)
{
    const char *begin = strstr(url, "://"), *end = strrchr(url, '@');
    begin = begin ? begin + 3 : url;
    for (const char *p = begin; end && p + SECRET_RUN <= end; p++) {
        if (memmem(text, strlen(text), p, SECRET_RUN))
            return true;
    }
    return false;
}

/* The library quotes from the URL what it does not understand: with a reserved character in the
 * password that may be a part of it. */
static enum cdcd_rc url_error(const char *url, const char *why, struct cdcd_error *err)
{
    return cdcd_error_set(
        err, CDCD_ERR_CONFIG,
        "url is no valid connection string%s%s; the form is "
        "mongodb://USER:PASSWORD@HOST:PORT,.../?replicaSet=NAME&authSource=admin, "
        "reserved characters of user and password (: / ? # [ ] @ %%) as %%XX",
        *why && !tells_secret(why, url) ? ": " : "", *why && !tells_secret(why, url) ? why : "");
}

static bool has_scheme(const char *url)
{
    return strncmp(url, "mongodb://", 10) == 0 || strncmp(url, "mongodb+srv://", 14) == 0;
}

static mongoc_uri_t *parse_url(const char *url, struct cdcd_error *err)
{
    struct cdcd_buf remarks;
    bson_error_t e = {0};
    if (!url || !has_scheme(url)) {
        cdcd_error_set(err, CDCD_ERR_CONFIG, "url must begin with mongodb:// or mongodb+srv://");
        return NULL;
    }
    cdcd_buf_init(&remarks, 2000);
    url_remarks = &remarks;
    mongoc_uri_t *uri = mongoc_uri_new_with_error(url, &e);
    url_remarks = NULL;
    if (!uri)
        url_error(url, e.message[0] ? e.message : cdcd_buf_cstr(&remarks), err);
    else if (remarks.len && !atomic_load(&connected_once))
        cdcd_warn("mongodb", "url: %s",
                  tells_secret(cdcd_buf_cstr(&remarks), url)
                      ? "a part of it is not understood, and goes unused"
                      : cdcd_buf_cstr(&remarks));
    cdcd_buf_free(&remarks);
    return uri;
}

static void default_int(mongoc_uri_t *uri, const char *option, int64_t value)
{
    if (!mongoc_uri_has_option(uri, option))
        mongoc_uri_set_option_as_int32(uri, option, value > INT32_MAX ? INT32_MAX : (int32_t)value);
}

/* The library only says that the connection failed. */
static enum cdcd_rc check_files(const mongoc_uri_t *uri, struct cdcd_error *err)
{
    static const char *const options[] = {MONGOC_URI_TLSCAFILE, MONGOC_URI_TLSCERTIFICATEKEYFILE};
    for (size_t i = 0; i < sizeof options / sizeof *options; i++) {
        const char *path = mongoc_uri_get_option_as_utf8(uri, options[i], NULL);
        if (path && access(path, R_OK) != 0)
            return cdcd_error_set(err, CDCD_ERR_CONFIG, "%s of url: cannot read %s: %s", options[i],
                                  path, strerror(errno));
    }
    return CDCD_OK;
}

enum cdcd_rc mg_client_new(const struct mg_config *cfg, mongoc_client_t **out,
                           struct cdcd_error *err)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    bson_error_t e = {0};
    *out = NULL;
    pthread_once(&once, library_init);
    mongoc_uri_t *uri = parse_url(cfg->url, err);
    if (!uri || check_files(uri, err) != CDCD_OK) {
        if (uri)
            mongoc_uri_destroy(uri);
        return CDCD_ERROR;
    }
    if (!mongoc_uri_get_appname(uri))
        mongoc_uri_set_appname(uri, "cdcd");
    default_int(uri, MONGOC_URI_CONNECTTIMEOUTMS, cfg->connect_timeout_ms);
    default_int(uri, MONGOC_URI_SERVERSELECTIONTIMEOUTMS, cfg->connect_timeout_ms);
    mongoc_client_t *c = mongoc_client_new_from_uri_with_error(uri, &e);
    mongoc_uri_destroy(uri);
    if (!c) {
        if (e.domain != MONGOC_ERROR_STREAM)
            return url_error(cfg->url, e.message, err);
        /* The names of mongodb+srv:// are looked up here. */
        bool again = atomic_load(&connected_once);
        return cdcd_error_set(err, again ? CDCD_ERR_RETRY : CDCD_ERR_CONFIG, "%s%s",
                              tells_secret(e.message, cfg->url) ? "the host of url is not found"
                                                                : e.message,
                              again ? "" : "; correct the host in `url`");
    }
    /* The server's codes in one domain. */
    mongoc_client_set_error_api(c, MONGOC_ERROR_API_VERSION_2);
    *out = c;
    return CDCD_OK;
}

/* ---- commands ---- */

enum cdcd_rc mg_command(mongoc_client_t *c, const char *db, const bson_t *cmd, bson_t *reply,
                        struct cdcd_error *err)
{
    bson_error_t e = {0};
    bson_iter_t it;
    if (mongoc_client_command_simple(c, db, cmd, mongoc_client_get_read_prefs(c), reply, &e)) {
        atomic_store(&connected_once, true);
        return CDCD_OK;
    }
    const char *name = bson_iter_init(&it, cmd) && bson_iter_next(&it) ? bson_iter_key(&it) : "?";
    return mg_error(err, &e, reply, "%s on %s", name, db);
}
