/*
 * HTTP by libcurl: requests that are waited for, one by one, and requests side by side in slots.
 *
 * Hosts: a request goes to the first host that is not known to be down, beginning with the slot's
 * own, so that lanes share the hosts. A host that gave no answer is left alone for a while; the
 * request is sent again by whoever made it.
 *
 * Logins never appear in a text: they are taken out of the URLs here.
 */
#include "es.h"

#include <stdio.h>
#include <stdlib.h>
#include <zlib.h>

#define DOWN_MS    10000 /* a host without an answer is left alone for so long */
#define CONNECT_MS 10000
#define STOP_MS    3000 /* a request that is under way for longer ends when stopping */
#define REPLY_MAX  (256u << 20)
/* Larger bodies are announced first, so that a server that does not want them can say so: it would
 * cut the connection in the middle, and its answer would be lost. */
#define ANNOUNCE     (4u << 20)
#define ANNOUNCE_MIN (64u << 10) /* the same after such a cut */

struct host {
    char *url;     /* owned, without login and without the last '/' */
    char *userpwd; /* owned; NULL: none of its own */
    int64_t down_until;
};

struct transfer {
    CURL *easy;
    bool busy;
    size_t host;
    struct es_reply reply;
    struct cdcd_buf packed; /* the body, gzip'ed */
    struct curl_slist *headers;
    char *url;
    int64_t begun;
    bool cut; /* the last request of this slot was cut off */
    const struct es_http *http;
};

struct es_http {
    const struct es_config *cfg;
    const struct cdcd_sink_env *env;
    CURLM *multi;
    struct host *hosts;
    size_t nhosts;
    struct transfer one;
    struct transfer **slots; /* each of its own: libcurl keeps pointers into them */
    size_t nslots;
    char *authorization; /* owned; NULL: none */
    char *userpwd;       /* owned; of all hosts; NULL: none */
};

/* ---- open and close ---- */

static enum cdcd_rc bad_url(size_t i, const char *why, struct cdcd_error *err)
{
    return cdcd_error_set(err, CDCD_ERR_CONFIG,
                          "sink.elasticsearch.url: item %zu is no address of a server: %s; write "
                          "http://HOST:9200 or https://HOST:9200",
                          i + 1, why);
}

/* Takes the login out of the URL. */
static enum cdcd_rc parse_host(const char *text, size_t i, struct host *out, struct cdcd_error *err)
{
    CURLU *u = curl_url();
    char *scheme = NULL, *user = NULL, *password = NULL, *url = NULL;
    enum cdcd_rc rc = CDCD_OK;
    CURLUcode code = curl_url_set(u, CURLUPART_URL, text, CURLU_GUESS_SCHEME);
    if (code != CURLUE_OK || curl_url_get(u, CURLUPART_SCHEME, &scheme, 0) != CURLUE_OK) {
        rc = bad_url(i, curl_url_strerror(code), err);
        goto out;
    }
    if (strcmp(scheme, "http") != 0 && strcmp(scheme, "https") != 0) {
        rc = bad_url(i, "it is neither http nor https", err);
        goto out;
    }
    if (curl_url_get(u, CURLUPART_USER, &user, CURLU_URLDECODE) == CURLUE_OK) {
        if (curl_url_get(u, CURLUPART_PASSWORD, &password, CURLU_URLDECODE) != CURLUE_OK)
            password = NULL;
        out->userpwd = cdcd_xasprintf("%s:%s", user, password ? password : "");
    }
    curl_url_set(u, CURLUPART_USER, NULL, 0);
    curl_url_set(u, CURLUPART_PASSWORD, NULL, 0);
    curl_url_set(u, CURLUPART_QUERY, NULL, 0);
    curl_url_set(u, CURLUPART_FRAGMENT, NULL, 0);
    if (curl_url_get(u, CURLUPART_URL, &url, 0) != CURLUE_OK) {
        rc = bad_url(i, "it cannot be read", err);
        goto out;
    }
    out->url = cdcd_xstrdup(url);
    for (size_t n = strlen(out->url); n > 0 && out->url[n - 1] == '/'; n--)
        out->url[n - 1] = 0;
out:
    curl_free(scheme);
    curl_free(user);
    curl_free(password);
    curl_free(url);
    curl_url_cleanup(u);
    return rc;
}

static void transfer_init(struct transfer *t, const struct es_http *h)
{
    t->easy = curl_easy_init();
    t->http = h;
    cdcd_buf_init(&t->packed, 0);
    cdcd_buf_init(&t->reply.body, REPLY_MAX);
}

static void transfer_free(struct transfer *t)
{
    curl_easy_cleanup(t->easy);
    curl_slist_free_all(t->headers);
    cdcd_buf_free(&t->packed);
    cdcd_buf_free(&t->reply.body);
    free(t->url);
}

enum cdcd_rc es_http_new(const struct es_config *cfg, const struct cdcd_sink_env *env,
                         struct es_http **out, struct cdcd_error *err)
{
    static bool ready; /* open is called on the main thread */
    *out = NULL;
    if (!ready && curl_global_init(CURL_GLOBAL_ALL) != 0)
        return cdcd_error_set(err, CDCD_ERR_FATAL, "libcurl cannot be started");
    ready = true;
    struct es_http *h = cdcd_xcalloc(1, sizeof *h);
    h->cfg = cfg;
    h->env = env;
    h->multi = curl_multi_init();
    transfer_init(&h->one, h);
    if (cfg->api_key && *cfg->api_key)
        h->authorization = cdcd_xasprintf("Authorization: ApiKey %s", cfg->api_key);
    if (cfg->username && *cfg->username)
        h->userpwd = cdcd_xasprintf("%s:%s", cfg->username, cfg->password ? cfg->password : "");
    h->hosts = cdcd_xcalloc(cfg->url.n + 1, sizeof *h->hosts);
    enum cdcd_rc rc = CDCD_OK;
    for (size_t i = 0; rc == CDCD_OK && i < cfg->url.n; i++, h->nhosts++)
        rc = parse_host(cfg->url.items[i], i, &h->hosts[i], err);
    if (rc == CDCD_OK && h->nhosts == 0)
        rc = cdcd_error_set(err, CDCD_ERR_CONFIG,
                            "sink.elasticsearch.url is empty: give the address of a server, "
                            "http://HOST:9200");
    if (rc == CDCD_OK && h->authorization && h->userpwd)
        rc = cdcd_error_set(err, CDCD_ERR_CONFIG,
                            "sink.elasticsearch has both api.key and username: give one of them");
    if (rc != CDCD_OK) {
        es_http_free(h);
        return CDCD_ERROR;
    }
    *out = h;
    return CDCD_OK;
}

void es_http_free(struct es_http *h)
{
    if (!h)
        return;
    es_http_abort(h);
    for (size_t i = 0; i < h->nslots; i++) {
        transfer_free(h->slots[i]);
        free(h->slots[i]);
    }
    transfer_free(&h->one);
    curl_multi_cleanup(h->multi);
    for (size_t i = 0; i < h->cfg->url.n; i++) {
        free(h->hosts[i].url);
        free(h->hosts[i].userpwd);
    }
    free(h->hosts);
    free(h->slots);
    free(h->authorization);
    free(h->userpwd);
    free(h);
}

void es_reply_free(struct es_reply *r)
{
    cdcd_buf_free(&r->body);
    *r = (struct es_reply){.retry_after_ms = -1};
}

/* ---- one request ---- */

static size_t take_body(char *p, size_t size, size_t n, void *ctx)
{
    struct transfer *t = ctx;
    cdcd_buf_add(&t->reply.body, p, size * n);
    return t->reply.body.failed ? 0 : size * n;
}

static bool stopping(const struct es_http *h)
{
    return h->env && h->env->stopping && h->env->stopping(h->env->ctx);
}

static int tick(void *ctx, curl_off_t dltotal, curl_off_t dlnow, curl_off_t ultotal,
                curl_off_t ulnow)
{
    const struct transfer *t = ctx;
    (void)dltotal, (void)dlnow, (void)ultotal, (void)ulnow;
    return cdcd_now_ms() - t->begun > STOP_MS && stopping(t->http);
}

static size_t pick_host(const struct es_http *h, size_t first)
{
    int64_t now = cdcd_now_ms();
    size_t best = first % h->nhosts;
    for (size_t i = 0; i < h->nhosts; i++) {
        size_t at = (first + i) % h->nhosts;
        if (h->hosts[at].down_until <= now)
            return at;
        if (h->hosts[at].down_until < h->hosts[best].down_until)
            best = at;
    }
    return best;
}

static void pack(struct cdcd_slice body, struct cdcd_buf *out)
{
    z_stream z = {0};
    cdcd_buf_clear(out);
    if (deflateInit2(&z, Z_BEST_SPEED, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY) != Z_OK)
        abort(); /* out of memory */
    size_t most = deflateBound(&z, body.len);
    char *to = cdcd_buf_reserve(out, most);
    z.next_in = (unsigned char *)(uintptr_t)body.ptr;
    z.avail_in = (unsigned)body.len;
    z.next_out = (unsigned char *)to;
    z.avail_out = (unsigned)most;
    if (!to || deflate(&z, Z_FINISH) != Z_STREAM_END)
        abort(); /* deflateBound has said that it fits */
    out->len += z.total_out;
    deflateEnd(&z);
}

static void add_header(struct transfer *t, const char *text)
{
    struct curl_slist *more = curl_slist_append(t->headers, text);
    if (!more)
        abort(); /* out of memory */
    t->headers = more;
}

static void set_headers(struct es_http *h, struct transfer *t, const struct es_request *q,
                        size_t length, bool packed)
{
    curl_slist_free_all(t->headers);
    t->headers = NULL;
    char type[128];
    snprintf(type, sizeof type, "Content-Type: %s",
             q->content_type ? q->content_type : "application/json");
    add_header(t, q->body.len ? type : "Content-Type:");
    if (packed)
        add_header(t, "Content-Encoding: gzip");
    if (h->authorization)
        add_header(t, h->authorization);
    bool announce = length > ANNOUNCE || (t->cut && length > ANNOUNCE_MIN);
    add_header(t, announce ? "Expect: 100-continue" : "Expect:");
    curl_easy_setopt(t->easy, CURLOPT_HTTPHEADER, t->headers);
}

static void set_security(struct es_http *h, CURL *e, const struct host *host)
{
    const struct es_config *c = h->cfg;
    const char *login = host->userpwd ? host->userpwd : h->userpwd;
    if (login && !h->authorization) {
        curl_easy_setopt(e, CURLOPT_HTTPAUTH, (long)CURLAUTH_BASIC);
        curl_easy_setopt(e, CURLOPT_USERPWD, login);
    }
    if (c->ssl_ca && *c->ssl_ca)
        curl_easy_setopt(e, CURLOPT_CAINFO, c->ssl_ca);
    if (c->ssl_cert && *c->ssl_cert)
        curl_easy_setopt(e, CURLOPT_SSLCERT, c->ssl_cert);
    if (c->ssl_key && *c->ssl_key)
        curl_easy_setopt(e, CURLOPT_SSLKEY, c->ssl_key);
    curl_easy_setopt(e, CURLOPT_SSL_VERIFYPEER, c->ssl_verify ? 1L : 0L);
    curl_easy_setopt(e, CURLOPT_SSL_VERIFYHOST, c->ssl_verify ? 2L : 0L);
}

/* The easy handle keeps its connection over curl_easy_reset. */
static void prepare(struct es_http *h, struct transfer *t, const struct es_request *q, size_t first)
{
    CURL *e = t->easy;
    t->host = pick_host(h, first);
    const struct host *host = &h->hosts[t->host];
    cdcd_buf_clear(&t->reply.body);
    t->reply.status = 0;
    t->reply.error[0] = 0;
    t->reply.retry_after_ms = -1;
    t->reply.misconfigured = t->reply.cut = false;
    curl_easy_reset(e);
    free(t->url);
    t->url = cdcd_xasprintf("%s%s", host->url, q->path);
    struct cdcd_slice body = q->body;
    bool packed = h->cfg->gzip && body.len > 256;
    if (packed) {
        pack(body, &t->packed);
        body = cdcd_buf_slice(&t->packed);
    }
    curl_easy_setopt(e, CURLOPT_URL, t->url);
    curl_easy_setopt(e, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(e, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
    curl_easy_setopt(e, CURLOPT_TIMEOUT_MS, (long)h->cfg->request_timeout_ms);
    curl_easy_setopt(e, CURLOPT_CONNECTTIMEOUT_MS,
                     h->cfg->request_timeout_ms && h->cfg->request_timeout_ms < CONNECT_MS
                         ? (long)h->cfg->request_timeout_ms
                         : (long)CONNECT_MS);
    curl_easy_setopt(e, CURLOPT_TCP_KEEPALIVE, 1L);
    curl_easy_setopt(e, CURLOPT_ERRORBUFFER, t->reply.error);
    curl_easy_setopt(e, CURLOPT_WRITEFUNCTION, take_body);
    curl_easy_setopt(e, CURLOPT_WRITEDATA, t);
    curl_easy_setopt(e, CURLOPT_PRIVATE, t);
    if (h->cfg->gzip)
        curl_easy_setopt(e, CURLOPT_ACCEPT_ENCODING, "gzip");
    if (body.len) {
        curl_easy_setopt(e, CURLOPT_POSTFIELDS, body.ptr);
        curl_easy_setopt(e, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)body.len);
    } else if (strcmp(q->method, "HEAD") == 0) {
        curl_easy_setopt(e, CURLOPT_NOBODY, 1L);
    }
    if (strcmp(q->method, "HEAD") != 0)
        curl_easy_setopt(e, CURLOPT_CUSTOMREQUEST, q->method);
    set_headers(h, t, q, body.len, packed);
    set_security(h, e, host);
    t->begun = cdcd_now_ms();
}

static bool is_misconfigured(CURLcode code)
{
    switch (code) {
    case CURLE_URL_MALFORMAT:
    case CURLE_UNSUPPORTED_PROTOCOL:
    case CURLE_PEER_FAILED_VERIFICATION:
    case CURLE_SSL_CERTPROBLEM:
    case CURLE_SSL_CIPHER:
    case CURLE_SSL_CACERT_BADFILE:
    case CURLE_SSL_ISSUER_ERROR:
    case CURLE_SSL_INVALIDCERTSTATUS: return true;
    default: return false;
    }
}

static void finish(struct es_http *h, struct transfer *t, CURLcode code)
{
    struct host *host = &h->hosts[t->host];
    t->cut = false;
    if (code == CURLE_OK) {
        curl_off_t after = 0;
        curl_easy_getinfo(t->easy, CURLINFO_RESPONSE_CODE, &t->reply.status);
        if (curl_easy_getinfo(t->easy, CURLINFO_RETRY_AFTER, &after) == CURLE_OK && after > 0)
            t->reply.retry_after_ms = after > 3600 ? 3600000 : (int64_t)after * 1000;
        bool down = t->reply.status >= 502 && t->reply.status <= 504;
        host->down_until = down ? cdcd_now_ms() + DOWN_MS : 0;
        return;
    }
    t->reply.status = 0;
    t->reply.misconfigured = is_misconfigured(code);
    t->cut = t->reply.cut = code == CURLE_SEND_ERROR || code == CURLE_RECV_ERROR ||
                            code == CURLE_GOT_NOTHING;
    char why[sizeof t->reply.error];
    snprintf(why, sizeof why, "%s", *t->reply.error ? t->reply.error : curl_easy_strerror(code));
    snprintf(t->reply.error, sizeof t->reply.error, "%s: %.180s", host->url, why);
    host->down_until = cdcd_now_ms() + DOWN_MS;
}

static void move_reply(struct transfer *t, struct es_reply *out)
{
    *out = t->reply;
    t->reply = (struct es_reply){.retry_after_ms = -1};
    cdcd_buf_init(&t->reply.body, REPLY_MAX);
}

enum cdcd_rc es_http_do(struct es_http *h, const struct es_request *q, struct es_reply *out,
                        struct cdcd_error *err)
{
    struct transfer *t = &h->one;
    *out = (struct es_reply){.retry_after_ms = -1};
    for (size_t i = 0; i < h->nhosts; i++) {
        prepare(h, t, q, 0);
        curl_easy_setopt(t->easy, CURLOPT_NOPROGRESS, 0L);
        curl_easy_setopt(t->easy, CURLOPT_XFERINFOFUNCTION, tick);
        curl_easy_setopt(t->easy, CURLOPT_XFERINFODATA, t);
        CURLcode code = curl_easy_perform(t->easy);
        finish(h, t, code);
        if (code == CURLE_OK || t->reply.misconfigured || code == CURLE_ABORTED_BY_CALLBACK)
            break;
    }
    move_reply(t, out);
    long status = out->status;
    if (status != 0 && status != 401 && status != 403 && status != 429 && status < 500)
        return CDCD_OK;
    es_fail(err, out, "%s %s", q->method, q->path);
    es_reply_free(out);
    return CDCD_ERROR;
}

/* ---- requests side by side ---- */

static struct transfer *slot_of(struct es_http *h, unsigned slot)
{
    if (slot >= h->nslots) {
        h->slots = cdcd_xrealloc(h->slots, (slot + 1) * sizeof(struct transfer *));
        for (; h->nslots <= slot; h->nslots++) {
            h->slots[h->nslots] = cdcd_xcalloc(1, sizeof(struct transfer));
            transfer_init(h->slots[h->nslots], h);
        }
    }
    return h->slots[slot];
}

enum cdcd_rc es_http_begin(struct es_http *h, unsigned slot, const struct es_request *q,
                           struct cdcd_error *err)
{
    struct transfer *t = slot_of(h, slot);
    prepare(h, t, q, slot);
    CURLMcode code = curl_multi_add_handle(h->multi, t->easy);
    if (code != CURLM_OK)
        return cdcd_error_set(err, CDCD_ERR_RETRY, "libcurl: %s", curl_multi_strerror(code));
    t->busy = true;
    int running;
    curl_multi_perform(h->multi, &running); /* it is on its way while others are made */
    return CDCD_OK;
}

static bool take_done(struct es_http *h, unsigned *slot, struct es_reply *out)
{
    int left;
    CURLMsg *m = curl_multi_info_read(h->multi, &left);
    while (m && m->msg != CURLMSG_DONE)
        m = curl_multi_info_read(h->multi, &left);
    if (!m)
        return false;
    CURLcode code = m->data.result;
    CURL *easy = m->easy_handle;
    curl_multi_remove_handle(h->multi, easy);
    for (unsigned i = 0; i < h->nslots; i++) {
        struct transfer *t = h->slots[i];
        if (t->easy != easy)
            continue;
        finish(h, t, code);
        t->busy = false;
        move_reply(t, out);
        *slot = i;
    }
    return true;
}

enum cdcd_rc es_http_poll(struct es_http *h, int timeout_ms, unsigned *slot, struct es_reply *out,
                          struct cdcd_error *err)
{
    int running = 0;
    CURLMcode code = CURLM_OK;
    *out = (struct es_reply){.retry_after_ms = -1};
    for (int round = 0; round < 2; round++) {
        if (take_done(h, slot, out))
            return CDCD_OK;
        if (round > 0 && timeout_ms > 0)
            code = curl_multi_poll(h->multi, NULL, 0, timeout_ms, NULL);
        if (code == CURLM_OK)
            code = curl_multi_perform(h->multi, &running);
        if (code != CURLM_OK)
            return cdcd_error_set(err, CDCD_ERR_RETRY, "libcurl: %s", curl_multi_strerror(code));
    }
    return take_done(h, slot, out) ? CDCD_OK : CDCD_AGAIN;
}

void es_http_abort(struct es_http *h)
{
    for (size_t i = 0; i < h->nslots; i++) {
        struct transfer *t = h->slots[i];
        if (!t->busy)
            continue;
        curl_multi_remove_handle(h->multi, t->easy);
        t->busy = false;
    }
}

/* ---- errors ---- */

static enum cdcd_error_class class_of(const struct es_reply *r, const char *type)
{
    if (r->status == 0)
        return r->misconfigured ? CDCD_ERR_CONFIG : CDCD_ERR_RETRY;
    /* Read-only because the disk is full, or an index that is closed for a while. */
    if (strcmp(type, "cluster_block_exception") == 0)
        return CDCD_ERR_RETRY;
    if (r->status == 401 || r->status == 403)
        return CDCD_ERR_CONFIG;
    if (r->status == 429 || r->status >= 500)
        return CDCD_ERR_RETRY;
    return CDCD_ERR_FATAL;
}

static const char *mend_of(const struct es_reply *r, const char *type)
{
    if (r->status == 0)
        return r->misconfigured
                   ? "; look at sink.elasticsearch.url, ssl.ca, ssl.cert, ssl.key and ssl.verify"
                   : "; is the server up, and is sink.elasticsearch.url its address?";
    if (strcmp(type, "cluster_block_exception") == 0)
        return "; let the index take writes again, see index.blocks.* in its settings, and the "
               "free space on the nodes' disks";
    if (r->status >= 300 && r->status < 400)
        return "; what answers there is no search server, but leads to another address: give that "
               "to "
               "sink.elasticsearch.url";
    if (r->status == 401)
        return "; look at sink.elasticsearch.username and password, or api.key";
    if (r->status == 403)
        return "; this login lacks a privilege, see cdcd check";
    return "";
}

enum cdcd_rc es_fail(struct cdcd_error *err, const struct es_reply *r, const char *fmt, ...)
{
    char what[512], type[96] = "", reason[768] = "", status[32] = "";
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(what, sizeof what, fmt, ap);
    va_end(ap);
    if (r->status == 0)
        snprintf(reason, sizeof reason, "no answer from %s", r->error);
    else
        es_reason(cdcd_buf_slice(&r->body), type, sizeof type, reason, sizeof reason);
    if (r->status != 0)
        snprintf(status, sizeof status, "HTTP %ld%s", r->status, *type || *reason ? ": " : "");
    return cdcd_error_set(err, class_of(r, type), "%s: %s%s%s%s%s", what, status, type,
                          *type && *reason ? ": " : "", reason, mend_of(r, type));
}
