/*
 * my_select: reads the rows of a statement one by one over a unix socket, and drops them: what a
 * client of the server's own library can do at best.
 *
 *   my_select SOCKET USER DATABASE STATEMENT
 *
 * Prints {"rows":N,"bytes":N}; bytes are those of the values as text.
 */
#include <mysql.h>

#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>

static int fail(MYSQL *m, const char *what)
{
    fprintf(stderr, "my_select: %s: %s\n", what, mysql_error(m));
    mysql_close(m);
    return 1;
}

int main(int argc, char **argv)
{
    uint64_t rows = 0, bytes = 0;
    if (argc != 5) {
        fprintf(stderr, "usage: my_select SOCKET USER DATABASE STATEMENT\n");
        return 2;
    }
    MYSQL *m = mysql_init(NULL);
    if (!m || !mysql_real_connect(m, "localhost", argv[2], "", argv[3], 0, argv[1], 0))
        return fail(m, "connect");
    if (mysql_query(m, argv[4]) != 0)
        return fail(m, argv[4]);
    MYSQL_RES *r = mysql_use_result(m);
    if (!r)
        return fail(m, "this statement has no rows");
    unsigned n = mysql_num_fields(r);
    while (mysql_fetch_row(r)) {
        const unsigned long *lengths = mysql_fetch_lengths(r);
        for (unsigned i = 0; i < n; i++)
            bytes += lengths[i];
        rows++;
    }
    unsigned bad = mysql_errno(m);
    mysql_free_result(r);
    if (bad)
        return fail(m, "rows");
    mysql_close(m);
    printf("{\"rows\":%" PRIu64 ",\"bytes\":%" PRIu64 "}\n", rows, bytes);
    return 0;
}
