/*
 * url.h: where the server is, out of the option `url`.
 */
#ifndef CDCD_PLUGIN_MYSQL_URL_H
#define CDCD_PLUGIN_MYSQL_URL_H

#include "my.h"

/* Owned strings; NULL: not given. */
struct my_url {
    char *user, *password;
    char *host; /* without the brackets of an IPv6 address */
    int port;   /* 3306 when not given */
    char *db;
    char *socket;
    char *ssl_mode, *ssl_ca, *ssl_cert, *ssl_key;
};

/* mysql://USER:PASSWORD@HOST:PORT/DATABASE?socket=PATH&ssl-mode=MODE&ssl-ca=...; mariadb:// is the
 * same. Parts are percent-decoded. CONFIG errors never quote the text, since it has the password
 * somewhere. */
enum cdcd_rc my_url_parse(const char *url, struct my_url *out, struct cdcd_error *err);
void my_url_free(struct my_url *u);

enum my_ssl_mode {
    MY_SSL_DISABLED,
    MY_SSL_PREFERRED,
    MY_SSL_REQUIRED,
    MY_SSL_VERIFY_CA,
    MY_SSL_VERIFY_IDENTITY
};
/* -1: none of them. Either "verify_ca" or "VERIFY-CA". */
int my_ssl_mode_parse(const char *text);

#endif
