/*
 * shim.c: the two client libraries.
 *
 * libmariadb lets any command be sent through its table of methods; libmysqlclient has calls made
 * for reading a binlog, and no way to register as a replica.
 *
 * COM_BINLOG_DUMP: u32 position, u16 flags, u32 server id, file name. COM_BINLOG_DUMP_GTID: u16
 * flags, u32 server id, u32 length and bytes of the file name, u64 position, u32 length and bytes
 * of the set. COM_REGISTER_SLAVE: u32 server id, then host, user and password, each with its length
 * in a byte, u16 port, u32 rank, u32 id of the source. All little endian. (MySQL's protocol
 * documentation, "Replication Protocol"; sql/rpl_source.cc.)
 */
#include "shim.h"

#include <stdlib.h>

#ifdef MARIADB_PACKAGE_VERSION_ID

#define COM_BINLOG_DUMP_GTID_ 30 /* MySQL's; not in libmariadb's enumeration */

void my_shim_tls(MYSQL *m, enum my_ssl_mode mode, const char *ca, const char *cert, const char *key)
{
    my_bool on = mode != MY_SSL_DISABLED, verify = mode == MY_SSL_VERIFY_IDENTITY;
    if (on)
        mysql_ssl_set(m, key, cert, mode >= MY_SSL_VERIFY_CA ? ca : NULL, NULL, NULL);
    mysql_options(m, MYSQL_OPT_SSL_ENFORCE, &on);
    mysql_options(m, MYSQL_OPT_SSL_VERIFY_SERVER_CERT, &verify);
}

int my_shim_socket(MYSQL *m)
{
    return mysql_get_socket(m);
}

static void put(struct cdcd_buf *b, uint64_t v, int bytes)
{
    for (int i = 0; i < bytes; i++, v >>= 8)
        cdcd_buf_add(b, &(uint8_t){(uint8_t)v}, 1);
}

enum cdcd_rc my_shim_register(MYSQL *m, uint32_t server_id, const char *host,
                              struct cdcd_error *err)
{
    struct cdcd_buf b;
    cdcd_buf_init(&b, 0);
    put(&b, server_id, 4);
    put(&b, strlen(host), 1);
    cdcd_buf_adds(&b, host);
    put(&b, 0, 1 + 1 + 2 + 4 + 4);
    int failed = m->methods->db_command(m, COM_REGISTER_SLAVE, b.ptr, b.len, 0, NULL);
    cdcd_buf_free(&b);
    return failed ? my_error(m, err, "registering as a replica") : CDCD_OK;
}

enum cdcd_rc my_shim_dump_start(MYSQL *m, struct my_shim_dump *d, struct cdcd_error *err)
{
    struct cdcd_buf *b = &d->command;
    cdcd_buf_init(b, 0);
    if (!d->set.ptr) {
        put(b, d->pos, 4);
        put(b, d->flags, 2);
        put(b, d->server_id, 4);
        cdcd_buf_adds(b, d->file);
    } else {
        put(b, d->flags, 2);
        put(b, d->server_id, 4);
        put(b, strlen(d->file), 4);
        cdcd_buf_adds(b, d->file);
        put(b, d->pos, 8);
        put(b, d->set.len, 4);
        cdcd_buf_add(b, d->set.ptr, d->set.len);
    }
    enum enum_server_command command = d->set.ptr ? (enum enum_server_command)COM_BINLOG_DUMP_GTID_
                                                  : COM_BINLOG_DUMP;
    if (m->methods->db_command(m, command, b->ptr, b->len, 1, NULL))
        return my_error(m, err, "asking for the binlog");
    return CDCD_OK;
}

enum cdcd_rc my_shim_dump_packet(MYSQL *m, struct my_shim_dump *d, struct cdcd_slice *packet)
{
    (void)d;
    unsigned long n = mysql_net_read_packet(m);
    if (n == (unsigned int)-1 || n == (unsigned long)-1)
        return CDCD_ERROR;
    *packet = (struct cdcd_slice){(const char *)m->net.read_pos, n};
    return n < 9 && m->net.read_pos[0] == 0xfe ? CDCD_END : CDCD_OK;
}

void my_shim_dump_free(struct my_shim_dump *d)
{
    cdcd_buf_free(&d->command);
}

#else /* libmysqlclient */

void my_shim_tls(MYSQL *m, enum my_ssl_mode mode, const char *ca, const char *cert, const char *key)
{
    static const unsigned int modes[] = {
        [MY_SSL_DISABLED] = SSL_MODE_DISABLED,
        [MY_SSL_PREFERRED] = SSL_MODE_PREFERRED,
        [MY_SSL_REQUIRED] = SSL_MODE_REQUIRED,
        [MY_SSL_VERIFY_CA] = SSL_MODE_VERIFY_CA,
        [MY_SSL_VERIFY_IDENTITY] = SSL_MODE_VERIFY_IDENTITY,
    };
    bool on = true;
    mysql_options(m, MYSQL_OPT_SSL_MODE, &modes[mode]);
    mysql_options(m, MYSQL_OPT_SSL_CA, ca);
    mysql_options(m, MYSQL_OPT_SSL_CERT, cert);
    mysql_options(m, MYSQL_OPT_SSL_KEY, key);
    /* caching_sha2_password without TLS: the password goes encrypted with the server's key. */
    mysql_options(m, MYSQL_OPT_GET_SERVER_PUBLIC_KEY, &on);
}

int my_shim_socket(MYSQL *m)
{
    return m->net.fd;
}

enum cdcd_rc my_shim_register(MYSQL *m, uint32_t server_id, const char *host,
                              struct cdcd_error *err)
{
    (void)m, (void)server_id, (void)host, (void)err;
    return CDCD_OK;
}

static void copy_set(MYSQL_RPL *rpl, unsigned char *out)
{
    memcpy(out, rpl->gtid_set_arg, rpl->gtid_set_encoded_size);
}

enum cdcd_rc my_shim_dump_start(MYSQL *m, struct my_shim_dump *d, struct cdcd_error *err)
{
    MYSQL_RPL *rpl = d->rpl = cdcd_xcalloc(1, sizeof *rpl);
    rpl->file_name = d->file;
    rpl->file_name_length = strlen(d->file);
    rpl->start_position = d->pos;
    rpl->server_id = d->server_id;
    rpl->flags = d->flags | (d->set.ptr ? MYSQL_RPL_GTID : 0);
    rpl->gtid_set_arg = (void *)d->set.ptr;
    rpl->gtid_set_encoded_size = d->set.len;
    rpl->fix_gtid_set = copy_set;
    return mysql_binlog_open(m, rpl) ? my_error(m, err, "asking for the binlog") : CDCD_OK;
}

enum cdcd_rc my_shim_dump_packet(MYSQL *m, struct my_shim_dump *d, struct cdcd_slice *packet)
{
    MYSQL_RPL *rpl = d->rpl;
    if (mysql_binlog_fetch(m, rpl))
        return CDCD_ERROR;
    *packet = (struct cdcd_slice){(const char *)rpl->buffer, rpl->size};
    return rpl->size ? CDCD_OK : CDCD_END;
}

void my_shim_dump_free(struct my_shim_dump *d)
{
    free(d->rpl);
    d->rpl = NULL;
}

#endif
