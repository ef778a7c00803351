/* URLs, SQL text, and what may never be in a message. Then the dump, against a server of a few
 * lines that says what the test wants. */
#include "shim.h"

#include <arpa/inet.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

/* ---- url ---- */

static void urls(void **state)
{
    static const struct {
        const char *url;
        const char *user, *password, *host;
        int port;
        const char *db, *socket;
    } cases[] = {
        {"mysql://u:p@h:3307/d", "u", "p", "h", 3307, "d", NULL},
        {"mariadb://u:p@h/", "u", "p", "h", 3306, NULL, NULL},
        {"MySQL://u@h", "u", "", "h", 3306, NULL, NULL},
        {"mysql://u:@h", "u", "", "h", 3306, NULL, NULL},
        {"mysql://a%40b:p%3A%2f%25%23@h/my%20db", "a@b", "p:/%#", "h", 3306, "my db", NULL},
        {"mysql://u:p:q@h", "u", "p:q", "h", 3306, NULL, NULL},
        {"mysql://u:p@q@h", "u", "p@q", "h", 3306, NULL, NULL},
        {"mysql://u:p@[::1]:3308/d", "u", "p", "::1", 3308, "d", NULL},
        {"mysql://u:p@[fe80::1%25eth0]", "u", "p", "fe80::1%eth0", 3306, NULL, NULL},
        {"mysql://u:p@h?ssl-mode=REQUIRED", "u", "p", "h", 3306, NULL, NULL},
        {"mysql://u:p@/d?socket=/run/my.sock&ssl-ca=%2Fca", "u", "p", "", 3306, "d",
         "/run/my.sock"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct my_url u;
        struct cdcd_error err = {0};
        if (my_url_parse(cases[i].url, &u, &err) != CDCD_OK)
            fail_msg("%s: %s", cases[i].url, err.text);
        assert_string_equal(u.user, cases[i].user);
        assert_string_equal(u.password, cases[i].password);
        assert_string_equal(u.host, cases[i].host);
        assert_int_equal(u.port, cases[i].port);
        assert_string_equal(u.db ? u.db : "", cases[i].db ? cases[i].db : "");
        assert_string_equal(u.socket ? u.socket : "", cases[i].socket ? cases[i].socket : "");
        my_url_free(&u);
    }
}

static void parameters(void **state)
{
    struct my_url u;
    struct cdcd_error err = {0};
    (void)state;
    assert_int_equal(my_url_parse("mysql://u@h/?ssl-mode=verify-ca&ssl-ca=/c%26a&ssl-cert=x&"
                                  "ssl-key=y&ssl-key=z",
                                  &u, &err),
                     CDCD_OK);
    assert_int_equal(my_ssl_mode_parse(u.ssl_mode), MY_SSL_VERIFY_CA);
    assert_string_equal(u.ssl_ca, "/c&a");
    assert_string_equal(u.ssl_cert, "x");
    assert_string_equal(u.ssl_key, "z");
    my_url_free(&u);
    assert_int_equal(my_ssl_mode_parse("VERIFY_IDENTITY"), MY_SSL_VERIFY_IDENTITY);
    assert_int_equal(my_ssl_mode_parse("verify"), -1);
    assert_int_equal(my_ssl_mode_parse("required "), -1);
}

/* Refused, and without a word of the text: it may be the password. */
static void bad_urls(void **state)
{
    static const char *const urls[] = {
        "",
        "hunter2",
        "postgresql://u:hunter2@h/d",
        "mysql:u:hunter2@h",
        "mysql://h:hunter2",
        "mysql://:hunter2@h",
        "mysql://u:hunter2@",
        "mysql://u:hunter2@h:port",
        "mysql://u:hunter2@h:0",
        "mysql://u:hunter2@h:65536",
        "mysql://u:hunter2@::1",
        "mysql://u:hunter2@[::1",
        "mysql://u:hunter2@[::1]x",
        "mysql://u:hunter2%@h",
        "mysql://u:hunter2%4@h",
        "mysql://u:hunter2%zz@h",
        "mysql://u:hunter2%00@h",
        "mysql://u:hunter2/x@h/d",
        "mysql://u:pass#hunter2@h",
        "mysql://u:hunter2@h/d/e",
        "mysql://u:hunter2@h/d#e",
        "mysql://u:p@h/?hunter2=1",
        "mysql://u:p@h/?ssl-mode=hunter2",
        "mysql://u:p@h/?password=hunter2",
    };
    (void)state;
    for (size_t i = 0; i < sizeof urls / sizeof *urls; i++) {
        struct my_url u;
        struct cdcd_error err = {0};
        if (my_url_parse(urls[i], &u, &err) == CDCD_OK)
            fail_msg("%s", urls[i]);
        assert_int_equal(err.class, CDCD_ERR_CONFIG);
        if (strstr(err.text, "hunter2"))
            fail_msg("%s: %s", urls[i], err.text);
    }
}

static void no_secrets(void **state)
{
    static const char *const urls[] = {
        "mysql://u:hunter2@127.0.0.1:1/db",
        "mysql://u:hunter2@/db?socket=/nowhere/sock",
        "mysql://u:hunter2@nobody.invalid/db",
    };
    (void)state;
    for (size_t i = 0; i < sizeof urls / sizeof *urls; i++) {
        struct my_config cfg = {
            .url = (char *)urls[i], .pipeline = "p", .connect_timeout_ms = 2000, .ssl_mode = 1};
        struct cdcd_error err = {0};
        MYSQL *m = NULL;
        assert_int_equal(my_connect(&cfg, &m, &err), CDCD_ERROR);
        assert_null(m);
        if (strstr(err.text, "hunter2"))
            fail_msg("%s: %s", urls[i], err.text);
        assert_true(err.class == CDCD_ERR_CONFIG || err.class == CDCD_ERR_RETRY);
    }
}

/* ---- SQL and errors ---- */

static void sql_text(void **state)
{
    (void)state;
    char *s = my_sql("%I.%I = %L %s %d %u %llu 100%%", "My `T`", "a", "it's \\ \"here\"", "x", -3,
                     7u, 18446744073709551615ULL);
    assert_string_equal(s,
                        "`My ``T```.`a` = 'it''s \\\\ \"here\"' x -3 7 18446744073709551615 100%");
    free(s);
}

static void server_errors(void **state)
{
    static const struct {
        unsigned number;
        const char *text;
        enum cdcd_error_class class;
        const char *says;
    } cases[] = {
        {1236,
         "Cannot replicate because the source purged required binary logs. Replicate the missing "
         "transactions from elsewhere",
         CDCD_ERR_LOSS, "when_needed"},
        {1236, "Could not find first log file name in binary log index file", CDCD_ERR_LOSS,
         "are gone"},
        {1236,
         "Slave has more GTIDs than the master has, using the master's SERVER_UUID. This may "
         "indicate that the end of the binary log was truncated",
         CDCD_ERR_LOSS, "ahead of this server"},
        {1236, "The replica has more GTIDs than the source", CDCD_ERR_LOSS, "ahead of this server"},
        {1236,
         "Error: connecting slave requested to start from GTID 0-1-100, which is not in the "
         "master's binlog",
         CDCD_ERR_LOSS, "ahead of this server"},
        {1236,
         "Error: connecting slave requested to start from GTID 0-1-1, which is not in the master's "
         "binlog. Since the master's binlog contains GTIDs with higher sequence numbers, it "
         "probably means that the slave has diverged",
         CDCD_ERR_LOSS, "ahead of this server"},
        {1236,
         "Could not find GTID state requested by slave in any binlog files. Probably the slave "
         "state is too old and required binlog files have been purged.",
         CDCD_ERR_LOSS, "are gone"},
        {1236, "Client requested master to start replication from position > file size",
         CDCD_ERR_LOSS, "not in this server's log"},
        {1236, "bogus data in log event; the first event 'b.1' at 7", CDCD_ERR_LOSS,
         "not in this server's log"},
        {1236,
         "A replica with the same server_uuid/server_id as this replica has connected to the "
         "source",
         CDCD_ERR_CONFIG, "server.id"},
        {4052, "A slave with the same server_uuid/server_id is already connected", CDCD_ERR_CONFIG,
         "server.id"},
        {1236, "Binary log is not open", CDCD_ERR_CONFIG, "log_bin"},
        {1236, "something that nobody has heard of", CDCD_ERR_FATAL, "something"},
        {1045, "Access denied", CDCD_ERR_CONFIG, "password"},
        {1227, "Access denied; you need (at least one of) the REPLICATION SLAVE privilege(s)",
         CDCD_ERR_CONFIG, "cdcd check"},
        {1040, "Too many connections", CDCD_ERR_RETRY, "max_connections"},
        {1053, "Server shutdown in progress", CDCD_ERR_RETRY, ""},
        {2013, "Lost connection", CDCD_ERR_RETRY, ""},
        {1064, "You have an error in your SQL syntax", CDCD_ERR_FATAL, ""},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct cdcd_error err = {0};
        my_dump_error(cases[i].number, cases[i].text, &err, "binlog from b.1:4");
        if (err.class != cases[i].class)
            fail_msg("%s: %s", cdcd_error_class_name(err.class), err.text);
        if (!strstr(err.text, cases[i].says) || !strstr(err.text, "binlog from b.1:4"))
            fail_msg("%s", err.text);
    }
}

/* ---- the dump ---- */

/* Speaks as much of the protocol as a dump needs, to one client: takes any password, answers every
 * command with OK (SHOW with an error), and the request for the log with what is in `script`. */
struct fake {
    int listener;
    int port;
    pthread_t thread;
    struct cdcd_buf script; /* packets, headers included */
    size_t piece;           /* sent in pieces of so many bytes */
    bool hold;              /* does not hang up after them */
    struct cdcd_buf asked;  /* the request for the log, its command byte first */
};

static bool read_all(int fd, void *p, size_t n)
{
    return n == 0 || recv(fd, p, n, MSG_WAITALL) == (ssize_t)n;
}

/* One packet of at most 4 KiB. */
static bool read_packet(int fd, struct cdcd_buf *out, uint8_t *sequence)
{
    uint8_t head[4], body[4096];
    if (!read_all(fd, head, 4))
        return false;
    size_t n = head[0] | (size_t)head[1] << 8;
    if (head[2] || n > sizeof body || !read_all(fd, body, n))
        return false;
    cdcd_buf_clear(out);
    cdcd_buf_add(out, body, n);
    *sequence = (uint8_t)(head[3] + 1);
    return true;
}

static void add_head(struct cdcd_buf *b, size_t n, uint8_t sequence)
{
    uint8_t head[4] = {(uint8_t)n, (uint8_t)(n >> 8), (uint8_t)(n >> 16), sequence};
    cdcd_buf_add(b, head, 4);
}

static void send_bytes(int fd, const void *p, size_t n, uint8_t sequence)
{
    struct cdcd_buf b;
    cdcd_buf_init(&b, 0);
    add_head(&b, n, sequence);
    cdcd_buf_add(&b, p, n);
    send(fd, b.ptr, b.len, MSG_NOSIGNAL);
    cdcd_buf_free(&b);
}

/* Handshake, version 10: without TLS, with mysql_native_password. */
static const char greeting[] = "\x0a"
                               "8.0.99-fake\0"
                               "\x01\0\0\0"
                               "abcdefgh\0"
                               "\x0f\xa2" /* capabilities, lower half: protocol 4.1 */
                               "\x2d\x02\0"
                               "\x08\0" /* upper half: plugin names */
                               "\x15"
                               "\0\0\0\0\0\0\0\0\0\0"
                               "ijklmnopqrst\0"
                               "mysql_native_password";

static void send_script(struct fake *f, int fd)
{
    for (size_t at = 0; at < f->script.len;) {
        size_t n = f->script.len - at < f->piece ? f->script.len - at : f->piece;
        ssize_t k = send(fd, f->script.ptr + at, n, MSG_NOSIGNAL);
        if (k <= 0)
            return;
        at += (size_t)k;
    }
}

static void *fake_main(void *arg)
{
    struct fake *f = arg;
    static const char ok[] = {0, 0, 0, 2, 0, 0, 0};
    static const char no[] = "\xff\xcb\x04#42000no such statement"; /* 1227 */
    struct cdcd_buf packet;
    uint8_t sequence;
    cdcd_buf_init(&packet, 0);
    int fd = accept(f->listener, NULL, NULL);
    send_bytes(fd, greeting, sizeof greeting, 0);
    if (read_packet(fd, &packet, &sequence))
        send_bytes(fd, ok, sizeof ok, sequence);
    while (read_packet(fd, &packet, &sequence) && packet.len && packet.ptr[0] != 1 /* COM_QUIT */) {
        if (packet.ptr[0] == 18 /* COM_BINLOG_DUMP */ || packet.ptr[0] == 30) {
            cdcd_buf_add(&f->asked, packet.ptr, packet.len);
            send_script(f, fd);
            if (!f->hold)
                break;
        } else if (packet.len > 5 && memcmp(packet.ptr + 1, "SHOW", 4) == 0) {
            send_bytes(fd, no, sizeof no - 1, sequence);
        } else {
            send_bytes(fd, ok, sizeof ok, sequence);
        }
    }
    close(fd);
    cdcd_buf_free(&packet);
    return NULL;
}

static void fake_start(struct fake *f)
{
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t n = sizeof a;
    memset(f, 0, sizeof *f);
    cdcd_buf_init(&f->script, 0);
    cdcd_buf_init(&f->asked, 0);
    f->piece = SIZE_MAX;
    f->listener = socket(AF_INET, SOCK_STREAM, 0);
    assert_int_equal(bind(f->listener, (struct sockaddr *)&a, sizeof a), 0);
    assert_int_equal(listen(f->listener, 1), 0);
    assert_int_equal(getsockname(f->listener, (struct sockaddr *)&a, &n), 0);
    f->port = ntohs(a.sin_port);
}

static struct my_dump *fake_open(struct fake *f, const struct my_position *from, int64_t heartbeat)
{
    char url[64];
    struct cdcd_error err = {0};
    struct my_dump *d = NULL;
    struct my_server server = {.flavor = MY_MYSQL, .version = 80099, .server_id = 1};
    snprintf(url, sizeof url, "mysql://u:p@127.0.0.1:%d/", f->port);
    struct my_config cfg = {.url = url,
                            .pipeline = "p",
                            .server_id = 0x01020304,
                            .connect_timeout_ms = 5000,
                            .heartbeat_ms = heartbeat};
    assert_int_equal(pthread_create(&f->thread, NULL, fake_main, f), 0);
    if (my_dump_open(&cfg, &server, from, &d, &err) != CDCD_OK)
        fail_msg("%s", err.text);
    return d;
}

static void fake_stop(struct fake *f, struct my_dump *d)
{
    my_dump_close(d);
    pthread_join(f->thread, NULL);
    close(f->listener);
    cdcd_buf_free(&f->script);
    cdcd_buf_free(&f->asked);
}

static const struct my_position start = {.flavor = MY_MYSQL, .file = "b.000007", .pos = 4711};

/* Bytes that tell where they are. */
static void fill(char *p, size_t n)
{
    for (size_t i = 0; i < n; i++)
        p[i] = (char)(i * 31 + i / 251);
}

/* An event of n bytes as a server sends it: a 0 in front, in as many packets as it needs. */
static void add_event(struct cdcd_buf *b, size_t n, uint8_t *sequence)
{
    char *bytes = cdcd_xmalloc(n + 1);
    size_t left = n + 1, at = 0, part;
    bytes[0] = 0;
    fill(bytes + 1, n);
    do {
        part = left < 0xffffff ? left : 0xffffff;
        add_head(b, part, (*sequence)++);
        cdcd_buf_add(b, bytes + at, part);
        at += part;
        left -= part;
    } while (part == 0xffffff);
    free(bytes);
}

static void assert_event(struct my_dump *d, size_t n)
{
    struct cdcd_error err = {0};
    struct cdcd_slice event;
    enum cdcd_rc rc = my_dump_read(d, cdcd_now_ms() + 20000, &event, &err);
    if (rc != CDCD_OK)
        fail_msg("%d: %s", rc, err.text);
    assert_int_equal(event.len, n);
    char *bytes = cdcd_xmalloc(n);
    fill(bytes, n);
    assert_int_equal(memcmp(bytes, event.ptr, n), 0);
    free(bytes);
}

static void assert_end(struct my_dump *d, enum cdcd_error_class class, const char *says)
{
    struct cdcd_error err = {0};
    struct cdcd_slice event;
    assert_int_equal(my_dump_read(d, cdcd_now_ms() + 20000, &event, &err), CDCD_ERROR);
    if (err.class != class || !strstr(err.text, says))
        fail_msg("%s: %s", cdcd_error_class_name(err.class), err.text);
}

/* Sizes around those of a packet and of the buffer, in pieces that end anywhere. */
static void events_of_any_size(void **state)
{
    static const size_t sizes[] = {19,       100,      8192,      0xfffffd, 0xfffffe, 20,
                                   0xffffff, 19,       0x2fffffc, 19,       1000000,  48576,
                                   1048570,  40 << 20, 21,        1u << 20, 19};
    static const size_t pieces[] = {SIZE_MAX, 65537};
    (void)state;
    for (size_t i = 0; i < sizeof pieces / sizeof *pieces; i++) {
        struct fake f;
        uint8_t sequence = 1;
        fake_start(&f);
        f.piece = pieces[i];
        for (size_t k = 0; k < sizeof sizes / sizeof *sizes; k++)
            add_event(&f.script, sizes[k], &sequence);
        struct my_dump *d = fake_open(&f, &start, 1000);
        for (size_t k = 0; k < sizeof sizes / sizeof *sizes; k++)
            assert_event(d, sizes[k]);
        assert_end(d, CDCD_ERR_RETRY, "is lost");
        fake_stop(&f, d);
    }
}

static void many_small_ones(void **state)
{
    struct fake f;
    uint8_t sequence = 1;
    (void)state;
    fake_start(&f);
    f.piece = 9973;
    for (size_t i = 0; i < 100000; i++)
        add_event(&f.script, 19 + i % 60, &sequence);
    struct my_dump *d = fake_open(&f, &start, 1000);
    for (size_t i = 0; i < 100000; i++)
        assert_event(d, 19 + i % 60);
    fake_stop(&f, d);
}

#define PACKET(text) text, sizeof(text) - 1

static void ends(void **state)
{
    static const struct {
        const char *packet;
        size_t n;
        uint8_t sequence;
        enum cdcd_error_class class;
        const char *says;
    } cases[] = {
        {PACKET("\xfe\0\0\0\0"), 2, CDCD_ERR_RETRY, "has ended it"},
        {PACKET("\xff\xd4\x04#HY000required logs have been purged"), 2, CDCD_ERR_LOSS, "purged"},
        {PACKET("\xff\xd4\x04no state"), 2, CDCD_ERR_FATAL, "no state [1236]"},
        {PACKET("\xff"), 2, CDCD_ERR_RETRY, "garbled"},
        {PACKET("\0short"), 2, CDCD_ERR_RETRY, "garbled"},
        {PACKET(""), 2, CDCD_ERR_RETRY, "has ended it"},
        {PACKET("\0abcdefghijklmnopqrstuvwxyz"), 3, CDCD_ERR_RETRY, "out of order"},
        {NULL, 0, 0, CDCD_ERR_RETRY, "is lost"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct fake f;
        uint8_t sequence = 1;
        fake_start(&f);
        add_event(&f.script, 50, &sequence);
        if (cases[i].packet) {
            add_head(&f.script, cases[i].n, cases[i].sequence);
            cdcd_buf_add(&f.script, cases[i].packet, cases[i].n);
        }
        struct my_dump *d = fake_open(&f, &start, 1000);
        assert_event(d, 50);
        assert_end(d, cases[i].class, cases[i].says);
        fake_stop(&f, d);
    }
}

/* Half an event is none, and does no harm. */
static void deadlines(void **state)
{
    struct fake f;
    uint8_t sequence = 1;
    struct cdcd_error err = {0};
    struct cdcd_slice event;
    (void)state;
    fake_start(&f);
    f.hold = true;
    add_event(&f.script, 50, &sequence);
    add_event(&f.script, 70, &sequence);
    f.script.len -= 30;
    struct my_dump *d = fake_open(&f, &start, 1000);
    assert_event(d, 50);
    int64_t begin = cdcd_now_ms();
    assert_int_equal(my_dump_read(d, begin + 200, &event, &err), CDCD_AGAIN);
    assert_true(cdcd_now_ms() - begin >= 200);
    assert_int_equal(my_dump_read(d, 0, &event, &err), CDCD_AGAIN); /* waits for nothing */
    assert_false(my_dump_ready(d));
    fake_stop(&f, d);
}

static void ready(void **state)
{
    struct fake f;
    uint8_t sequence = 1;
    (void)state;
    fake_start(&f);
    f.hold = true;
    add_event(&f.script, 50, &sequence);
    add_event(&f.script, 60, &sequence);
    struct my_dump *d = fake_open(&f, &start, 1000);
    for (int i = 0; i < 200 && !my_dump_ready(d); i++)
        nanosleep(&(struct timespec){0, 10000000}, NULL);
    assert_true(my_dump_ready(d));
    assert_event(d, 50);
    assert_event(d, 60);
    assert_false(my_dump_ready(d));
    fake_stop(&f, d);
}

/* Nothing at all, where there should be heartbeats. */
static void silence(void **state)
{
    struct fake f;
    (void)state;
    fake_start(&f);
    f.hold = true;
    struct my_dump *d = fake_open(&f, &start, -9900); /* 3 times, and 30 seconds: 300 ms */
    assert_end(d, CDCD_ERR_RETRY, "not even a heartbeat");
    fake_stop(&f, d);
}

#define A "3e11fa47-71ca-11e1-9e33-c80aa9429562"

static void requests(void **state)
{
    static const struct {
        struct my_position from;
        const char *hex;
    } cases[] = {
        {{.flavor = MY_MYSQL, .file = "b.000007", .pos = 4711},
         "12"
         "67120000"
         "0200"
         "04030201"
         "622e303030303037"},
        {{.flavor = MY_MYSQL, .gtid = A ":1-5", .file = "b.000007", .pos = UINT64_C(5150626840)},
         "1e"
         "0200"
         "04030201"
         "00000000"
         "0400000000000000"
         "30000000"
         "0100000000000000"
         "3e11fa4771ca11e19e33c80aa9429562"
         "0100000000000000"
         "0100000000000000"
         "0600000000000000"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct fake f;
        struct cdcd_buf hex;
        fake_start(&f);
        cdcd_buf_init(&hex, 0);
        struct my_dump *d = fake_open(&f, &cases[i].from, 1000);
        assert_end(d, CDCD_ERR_RETRY, "is lost"); /* so it has been read there */
        for (size_t k = 0; k < f.asked.len; k++)
            cdcd_buf_addf(&hex, "%02x", (unsigned char)f.asked.ptr[k]);
        assert_string_equal(cdcd_buf_cstr(&hex), cases[i].hex);
        cdcd_buf_free(&hex);
        fake_stop(&f, d);
    }
}

/* Refused before anything is asked. */
static void positions_refused(void **state)
{
    static const struct {
        struct my_position from;
        const char *says;
    } cases[] = {
        {{.flavor = MY_MYSQL, .file = "b.000007", .pos = UINT64_C(4294967296)}, "needs GTID"},
        {{.flavor = MY_MARIADB, .gtid = "0-1-5"}, "is of a MariaDB server"},
        {{.flavor = MY_MYSQL}, "neither"},
    };
    struct my_server server = {.flavor = MY_MYSQL, .version = 80099, .text = "8.0.99"};
    struct my_config cfg = {.url = "mysql://u:p@127.0.0.1:1/", .connect_timeout_ms = 1000};
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct my_dump *d = NULL;
        struct cdcd_error err = {0};
        assert_int_equal(my_dump_open(&cfg, &server, &cases[i].from, &d, &err), CDCD_ERROR);
        assert_null(d);
        if (!strstr(err.text, cases[i].says))
            fail_msg("%s", err.text);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(urls),
        cmocka_unit_test(parameters),
        cmocka_unit_test(bad_urls),
        cmocka_unit_test(no_secrets),
        cmocka_unit_test(sql_text),
        cmocka_unit_test(server_errors),
        cmocka_unit_test(events_of_any_size),
        cmocka_unit_test(many_small_ones),
        cmocka_unit_test(ends),
        cmocka_unit_test(deadlines),
        cmocka_unit_test(ready),
        cmocka_unit_test(silence),
        cmocka_unit_test(requests),
        cmocka_unit_test(positions_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
