/*
 * url.c: the option `url`, by RFC 3986 as far as it is of use here.
 */
#include "url.h"

#include <ctype.h>
#include <stdlib.h>
#include <strings.h>

static enum cdcd_rc bad(struct cdcd_error *err, const char *what)
{
    return cdcd_error_set(err, CDCD_ERR_CONFIG,
                          "option `url`: %s; expected mysql://USER:PASSWORD@HOST:PORT/DATABASE, "
                          "with reserved characters of the password written as %%XX",
                          what);
}

static int hex(char c)
{
    return c >= '0' && c <= '9'   ? c - '0'
           : c >= 'a' && c <= 'f' ? c - 'a' + 10
           : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                  : -1;
}

/* NULL: a percent sign without two digits, or an encoded NUL. */
static char *decode(const char *p, size_t n)
{
    char *out = cdcd_xmalloc(n + 1);
    size_t k = 0;
    for (size_t i = 0; i < n; i++) {
        if (p[i] != '%') {
            out[k++] = p[i];
            continue;
        }
        int hi = n - i > 2 ? hex(p[i + 1]) : -1;
        int lo = hi < 0 ? -1 : hex(p[i + 2]);
        if (lo < 0 || (hi == 0 && lo == 0)) {
            free(out);
            return NULL;
        }
        out[k++] = (char)(hi << 4 | lo);
        i += 2;
    }
    out[k] = 0;
    return out;
}

void my_url_free(struct my_url *u)
{
    char *all[] = {u->user,     u->password, u->host,     u->db,     u->socket,
                   u->ssl_mode, u->ssl_ca,   u->ssl_cert, u->ssl_key};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        free(all[i]);
    memset(u, 0, sizeof *u);
}

static enum cdcd_rc parse_port(const char *p, size_t n, struct my_url *out, struct cdcd_error *err)
{
    long port = 0;
    for (size_t i = 0; i < n; i++) {
        if (!isdigit((unsigned char)p[i]) || port > 65535)
            return bad(err, "the port is no number");
        port = port * 10 + (p[i] - '0');
    }
    if (n && (port < 1 || port > 65535))
        return bad(err, "the port is not within 1 to 65535");
    out->port = n ? (int)port : 3306;
    return CDCD_OK;
}

static enum cdcd_rc parse_host(const char *p, size_t n, struct my_url *out, struct cdcd_error *err)
{
    const char *host = p, *port = memchr(p, ':', n);
    size_t nhost = port ? (size_t)(port - p) : n;
    if (n && *p == '[') {
        const char *close = memchr(p, ']', n);
        if (!close)
            return bad(err, "the IPv6 address has no closing bracket");
        host = p + 1;
        nhost = (size_t)(close - host);
        port = close + 1 < p + n ? close + 1 : NULL;
        if (port && *port != ':')
            return bad(err, "there is something between the IPv6 address and the port");
    } else if (port && memchr(port + 1, ':', (size_t)(p + n - port - 1))) {
        return bad(err, "the host has colons: an IPv6 address stands in brackets, [::1]");
    }
    out->host = decode(host, nhost);
    if (!out->host)
        return bad(err, "the host has a bad percent-encoding");
    return port ? parse_port(port + 1, (size_t)(p + n - port - 1), out, err)
                : parse_port("", 0, out, err);
}

static enum cdcd_rc parse_authority(const char *p, size_t n, struct my_url *out,
                                    struct cdcd_error *err)
{
    const char *at = memrchr(p, '@', n);
    if (!at)
        return bad(err, "it names no user");
    const char *colon = memchr(p, ':', (size_t)(at - p));
    size_t nuser = colon ? (size_t)(colon - p) : (size_t)(at - p);
    out->user = decode(p, nuser);
    out->password = colon ? decode(colon + 1, (size_t)(at - colon - 1)) : cdcd_xstrdup("");
    if (!out->user || !out->password)
        return bad(err, "the user or the password has a bad percent-encoding (a percent sign "
                        "itself is written %25)");
    if (!*out->user)
        return bad(err, "it names no user");
    return parse_host(at + 1, (size_t)(p + n - at - 1), out, err);
}

static enum cdcd_rc parse_parameter(const char *p, size_t n, struct my_url *out,
                                    struct cdcd_error *err)
{
    const struct {
        const char *name;
        char **value;
    } known[] = {{"socket", &out->socket},
                 {"ssl-mode", &out->ssl_mode},
                 {"ssl-ca", &out->ssl_ca},
                 {"ssl-cert", &out->ssl_cert},
                 {"ssl-key", &out->ssl_key}};
    const char *eq = memchr(p, '=', n);
    size_t nname = eq ? (size_t)(eq - p) : n;
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        if (strlen(known[i].name) != nname || strncasecmp(known[i].name, p, nname) != 0)
            continue;
        free(*known[i].value);
        *known[i].value = eq ? decode(eq + 1, (size_t)(p + n - eq - 1)) : cdcd_xstrdup("");
        return *known[i].value ? CDCD_OK : bad(err, "a parameter has a bad percent-encoding");
    }
    return bad(err, "unknown parameter behind the question mark (there are socket, ssl-mode, "
                    "ssl-ca, ssl-cert and ssl-key)");
}

static enum cdcd_rc parse_query(const char *p, struct my_url *out, struct cdcd_error *err)
{
    while (*p) {
        size_t n = strcspn(p, "&");
        if (n && parse_parameter(p, n, out, err) != CDCD_OK)
            return CDCD_ERROR;
        p += n + (p[n] == '&');
    }
    if (out->ssl_mode && my_ssl_mode_parse(out->ssl_mode) < 0)
        return bad(err, "ssl-mode is none of disabled, preferred, required, verify_ca and "
                        "verify_identity");
    return CDCD_OK;
}

int my_ssl_mode_parse(const char *text)
{
    static const char *const names[] = {"disabled", "preferred", "required", "verify_ca",
                                        "verify_identity"};
    for (int i = 0; i < 5; i++) {
        const char *a = names[i], *b = text;
        for (; *a && (tolower((unsigned char)*b) == *a || (*a == '_' && *b == '-')); a++)
            b++;
        if (!*a && !*b)
            return i;
    }
    return -1;
}

enum cdcd_rc my_url_parse(const char *url, struct my_url *out, struct cdcd_error *err)
{
    memset(out, 0, sizeof *out);
    if (!url || !*url)
        return bad(err, "it is empty");
    if (strncasecmp(url, "mysql://", 8) != 0 && strncasecmp(url, "mariadb://", 10) != 0)
        return bad(err, "it does not begin with mysql:// or mariadb://");
    const char *p = strstr(url, "://") + 3;
    size_t n = strcspn(p, "/?#");
    enum cdcd_rc rc = parse_authority(p, n, out, err);
    p += n;
    if (rc == CDCD_OK && *p == '/') {
        n = strcspn(++p, "?#");
        if (memchr(p, '/', n) || memchr(p, '@', n))
            rc = bad(err, "the database's name has a slash or an @ (in a password they are "
                          "written %2F and %40)");
        else if (n && !(out->db = decode(p, n)))
            rc = bad(err, "the database's name has a bad percent-encoding");
        p += n;
    }
    if (rc == CDCD_OK && *p == '#')
        rc = bad(err, "it has a # (in a password it is written %23)");
    if (rc == CDCD_OK && *p == '?')
        rc = parse_query(p + 1, out, err);
    if (rc == CDCD_OK && !out->socket && !*out->host)
        rc = bad(err, "it names no host");
    if (rc != CDCD_OK)
        my_url_free(out);
    return rc;
}
