/*
 * shim.h: what libmariadb and libmysqlclient do differently. Nothing else in the plugin asks which
 * one it is.
 */
#ifndef CDCD_PLUGIN_MYSQL_SHIM_H
#define CDCD_PLUGIN_MYSQL_SHIM_H

#include "url.h"

/* conn.c: the error of a number and text of the server, as my_error does it from a connection. */
enum cdcd_rc my_dump_error(unsigned number, const char *text, struct cdcd_error *err,
                           const char *what);

/* Before mysql_real_connect. Paths may be NULL. */
void my_shim_tls(MYSQL *m, enum my_ssl_mode mode, const char *ca, const char *cert,
                 const char *key);

int my_shim_socket(MYSQL *m);

/* COM_REGISTER_SLAVE: the server lists us (SHOW REPLICAS) as long as the connection lives, under
 * this host name. Where the library has no way to send it nothing is done. */
enum cdcd_rc my_shim_register(MYSQL *m, uint32_t server_id, const char *host,
                              struct cdcd_error *err);

/* COM_BINLOG_DUMP, or with a set (encoded; ptr NULL: none) COM_BINLOG_DUMP_GTID. Nothing of the
 * answer has been read when it returns OK. */
struct my_shim_dump {
    uint32_t server_id;
    uint16_t flags;
    const char *file;
    uint32_t pos;
    struct cdcd_slice set;
    struct cdcd_buf command; /* libmariadb: the packet; libmysqlclient: empty */
    void *rpl;               /* libmysqlclient: its MYSQL_RPL */
};
enum cdcd_rc my_shim_dump_start(MYSQL *m, struct my_shim_dump *d, struct cdcd_error *err);
/* The next packet of the dump, through the library: what is encrypted can be read in no other way.
 * Blocks. OK with the packet, its first byte included; END for an EOF packet; ERROR: the error is
 * the connection's, and for the caller to take. */
enum cdcd_rc my_shim_dump_packet(MYSQL *m, struct my_shim_dump *d, struct cdcd_slice *packet);
void my_shim_dump_free(struct my_shim_dump *d);

#endif
