#include "http.h"

#include "metrics.h"

#include <cdcd/log.h>

#include <errno.h>
#include <microhttpd.h>
#include <netdb.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define MAX_CONNECTIONS 64
#define IDLE_SECONDS    10
#define TEXT            "text/plain; charset=utf-8"

struct cdcd_http {
    struct MHD_Daemon *daemon;
    struct cdcd_pipeline *pipeline;
    const struct cdcd_config *config;
    int64_t started_us;
    pthread_mutex_t lock; /* window: the ticking thread writes, the serving one reads */
    struct cdcd_rate_window window;
};

/* ---- the address ---- */

bool cdcd_listen_parse(const char *text, struct cdcd_listen *out)
{
    const char *colon = strrchr(text, ':');
    if (!colon || colon == text)
        return false;
    const char *host = text;
    size_t len = (size_t)(colon - text), digits = strspn(colon + 1, "0123456789");
    if (*host == '[') {
        if (len < 3 || host[len - 1] != ']')
            return false;
        host++;
        len -= 2;
    } else if (memchr(host, ':', len)) {
        return false; /* an IPv6 address without brackets */
    }
    if (len >= sizeof out->host || digits == 0 || digits > 5 || colon[1 + digits] ||
        memchr(host, '/', len) || memchr(host, ' ', len))
        return false;
    long port = strtol(colon + 1, NULL, 10);
    if (port < 1 || port > 65535)
        return false;
    snprintf(out->host, sizeof out->host, "%.*s", (int)len, host);
    snprintf(out->port, sizeof out->port, "%ld", port);
    return true;
}

static bool is_loopback(const struct sockaddr *sa)
{
    if (sa->sa_family == AF_INET6) {
        const struct in6_addr *a = &((const struct sockaddr_in6 *)(const void *)sa)->sin6_addr;
        return IN6_IS_ADDR_LOOPBACK(a) || (IN6_IS_ADDR_V4MAPPED(a) && a->s6_addr[12] == 127);
    }
    return sa->sa_family == AF_INET &&
           ntohl(((const struct sockaddr_in *)(const void *)sa)->sin_addr.s_addr) >> 24 == 127;
}

static int open_socket(const struct addrinfo *ai)
{
    const int on = 1;
    int fd = socket(ai->ai_family, ai->ai_socktype | SOCK_CLOEXEC | SOCK_NONBLOCK, ai->ai_protocol);
    if (fd < 0)
        return -1;
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (bind(fd, ai->ai_addr, ai->ai_addrlen) == 0 && listen(fd, MAX_CONNECTIONS) == 0)
        return fd;
    int saved = errno;
    close(fd);
    errno = saved;
    return -1;
}

static const char *mend_for(int code)
{
    switch (code) {
    case EADDRINUSE: return "choose another port, or stop what listens there";
    case EADDRNOTAVAIL: return "the address is none of this machine; 127.0.0.1 always is";
    case EACCES: return "choose a port from 1024 on";
    default: return "choose another address";
    }
}

static enum cdcd_rc listen_on(const char *text, int *fd, struct cdcd_error *err)
{
    const struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_PASSIVE};
    struct addrinfo *all = NULL;
    struct cdcd_listen at;
    if (!cdcd_listen_parse(text, &at))
        return cdcd_error_set(err, CDCD_ERR_CONFIG,
                              "http.listen: expected HOST:PORT or [::1]:PORT, not \"%s\"", text);
    int rc = getaddrinfo(at.host, at.port, &hints, &all);
    if (rc != 0)
        return cdcd_error_set(err, CDCD_ERR_CONFIG,
                              "http.listen: the host of %s is not known (%s); give an address such "
                              "as 127.0.0.1:8083",
                              text, gai_strerror(rc));
    *fd = -1;
    int first = 0;
    bool loopback = true;
    for (struct addrinfo *ai = all; ai && *fd < 0; ai = ai->ai_next) {
        *fd = open_socket(ai);
        loopback = is_loopback(ai->ai_addr);
        if (*fd < 0 && !first)
            first = errno;
    }
    freeaddrinfo(all);
    if (*fd < 0)
        return cdcd_error_set(err, CDCD_ERR_CONFIG, "http.listen: cannot listen on %s: %s; %s",
                              text, strerror(first), mend_for(first));
    if (!loopback)
        cdcd_warn("http",
                  "http.listen %s is no loopback address: whoever reaches it reads the status, "
                  "which names tables and errors",
                  text);
    return CDCD_OK;
}

/* ---- answers ---- */

static void look(struct cdcd_http *h, struct cdcd_view *v)
{
    *v = (struct cdcd_view){.pipeline = h->config->name,
                            .source = h->config->source_plugin->name,
                            .sink = h->config->sink_plugin->name,
                            .started_us = h->started_us,
                            .now_us = cdcd_wallclock_us(),
                            .max_lag_ms = h->config->http_ready_max_lag_ms};
    cdcd_pipeline_stats(h->pipeline, &v->stats);
    pthread_mutex_lock(&h->lock);
    cdcd_rate_get(&h->window, &v->stats, cdcd_now_ms(), &v->rates);
    pthread_mutex_unlock(&h->lock);
}

static unsigned answer_healthz(const struct cdcd_view *v, struct cdcd_buf *out)
{
    if (v->stats.failed)
        cdcd_buf_addf(out, "failed: %s\n", v->stats.last_error);
    else
        cdcd_buf_adds(out, "ok\n");
    return v->stats.failed ? MHD_HTTP_SERVICE_UNAVAILABLE : MHD_HTTP_OK;
}

static unsigned answer_readyz(const struct cdcd_view *v, struct cdcd_buf *out)
{
    char why[160];
    bool ready = cdcd_view_ready(v, why, sizeof why);
    cdcd_buf_addf(out, "%s\n", ready ? "ready" : why);
    return ready ? MHD_HTTP_OK : MHD_HTTP_SERVICE_UNAVAILABLE;
}

static unsigned answer_metrics(const struct cdcd_view *v, struct cdcd_buf *out)
{
    cdcd_view_prometheus(v, out);
    return MHD_HTTP_OK;
}

static unsigned answer_status(const struct cdcd_view *v, struct cdcd_buf *out)
{
    json_t *doc = cdcd_view_json(v);
    char *text = json_dumps(doc, JSON_INDENT(1) | JSON_REAL_PRECISION(12));
    json_decref(doc);
    cdcd_buf_addf(out, "%s\n", text ? text : "null");
    free(text);
    return MHD_HTTP_OK;
}

static unsigned answer_page(const struct cdcd_view *v, struct cdcd_buf *out)
{
    cdcd_view_page(v, out);
    return MHD_HTTP_OK;
}

static const struct route {
    const char *path, *type;
    unsigned (*answer)(const struct cdcd_view *v, struct cdcd_buf *out); /* the status code */
} routes[] = {
    {"/", "text/html; charset=utf-8", answer_page},
    {"/api/status", "application/json", answer_status},
    {"/metrics", "text/plain; version=0.0.4; charset=utf-8", answer_metrics},
    {"/healthz", TEXT, answer_healthz},
    {"/readyz", TEXT, answer_readyz},
};

static enum MHD_Result respond(struct MHD_Connection *c, unsigned code, const char *type,
                               const char *allow, const struct cdcd_buf *body)
{
    struct MHD_Response *r = MHD_create_response_from_buffer(body->len, body->ptr,
                                                             MHD_RESPMEM_MUST_COPY);
    if (!r)
        return MHD_NO;
    MHD_add_response_header(r, MHD_HTTP_HEADER_CONTENT_TYPE, type);
    MHD_add_response_header(r, MHD_HTTP_HEADER_CACHE_CONTROL, "no-store");
    MHD_add_response_header(r, "X-Content-Type-Options", "nosniff");
    if (allow)
        MHD_add_response_header(r, MHD_HTTP_HEADER_ALLOW, allow);
    enum MHD_Result rc = MHD_queue_response(c, code, r);
    MHD_destroy_response(r);
    return rc;
}

/* MHD calls once for the header, for each part of a body, and once at its end. */
static enum MHD_Result serve(void *ctx, struct MHD_Connection *c, const char *url,
                             const char *method, const char *version, const char *upload,
                             size_t *upload_size, void **request)
{
    static char seen;
    (void)version, (void)upload;
    if (!*request || *upload_size > 0) {
        *request = &seen;
        *upload_size = 0;
        return MHD_YES;
    }
    const struct route *route = NULL;
    for (size_t i = 0; i < sizeof routes / sizeof *routes; i++) {
        if (strcmp(url, routes[i].path) == 0)
            route = &routes[i];
    }
    bool reads = strcmp(method, "GET") == 0 || strcmp(method, "HEAD") == 0;
    struct cdcd_buf body;
    unsigned code = MHD_HTTP_NOT_FOUND;
    cdcd_buf_init(&body, 0);
    if (!route) {
        cdcd_buf_adds(&body, "not found; there are / /api/status /metrics /healthz /readyz\n");
    } else if (!reads) {
        code = MHD_HTTP_METHOD_NOT_ALLOWED;
        cdcd_buf_adds(&body, "only GET and HEAD\n");
    } else {
        struct cdcd_view v;
        look(ctx, &v);
        code = route->answer(&v, &body);
    }
    enum MHD_Result rc = respond(c, code, route && reads ? route->type : TEXT,
                                 code == MHD_HTTP_METHOD_NOT_ALLOWED ? "GET, HEAD" : NULL, &body);
    cdcd_buf_free(&body);
    return rc;
}

/* ---- life ---- */

enum cdcd_rc cdcd_http_start(const struct cdcd_config *config, struct cdcd_pipeline *p,
                             struct cdcd_http **out, struct cdcd_error *err)
{
    int fd;
    *out = NULL;
    if (listen_on(config->http_listen, &fd, err) != CDCD_OK)
        return CDCD_ERROR;
    struct cdcd_http *h = cdcd_xcalloc(1, sizeof *h);
    h->pipeline = p;
    h->config = config;
    h->started_us = cdcd_wallclock_us();
    pthread_mutex_init(&h->lock, NULL);
    cdcd_http_tick(h);
    h->daemon = MHD_start_daemon(
        MHD_USE_INTERNAL_POLLING_THREAD | MHD_USE_POLL | MHD_USE_ITC, 0, NULL, NULL, serve, h,
        MHD_OPTION_LISTEN_SOCKET, fd, MHD_OPTION_CONNECTION_LIMIT, (unsigned)MAX_CONNECTIONS,
        MHD_OPTION_CONNECTION_TIMEOUT, (unsigned)IDLE_SECONDS, MHD_OPTION_END);
    if (!h->daemon) {
        close(fd);
        cdcd_http_stop(h);
        return cdcd_error_set(err, CDCD_ERR_FATAL, "cannot start the thread that serves %s",
                              config->http_listen);
    }
    cdcd_info("http", "status and metrics on http://%s/", config->http_listen);
    *out = h;
    return CDCD_OK;
}

void cdcd_http_tick(struct cdcd_http *h)
{
    if (!h)
        return;
    struct cdcd_stats stats;
    cdcd_pipeline_stats(h->pipeline, &stats);
    pthread_mutex_lock(&h->lock);
    cdcd_rate_add(&h->window, &stats, cdcd_now_ms());
    pthread_mutex_unlock(&h->lock);
}

void cdcd_http_stop(struct cdcd_http *h)
{
    if (!h)
        return;
    if (h->daemon)
        MHD_stop_daemon(h->daemon); /* closes the socket, joins the thread */
    pthread_mutex_destroy(&h->lock);
    free(h);
}
