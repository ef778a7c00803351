/*
 * Statements of a binlog of MySQL and MariaDB. The first byte picks the server and the session's
 * modes and charset; statements follow, parted by NUL bytes, each copied to memory of exactly its
 * size. They run on a world with a few tables, so that ALTER and RENAME have something to change;
 * what comes of it must survive its note and make a schema.
 */
#include "ddl.h"
#include "value.h"

#include <cdcd/batch.h>

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void run(struct my_shapes *shapes, const struct my_server *server, uint8_t flags,
                const char *sql, size_t len)
{
    static const uint16_t charsets[] = {45, 8, 28, 63};
    struct my_statement_info info;
    struct cdcd_arena a;
    struct cdcd_ddl *ddl;
    struct cdcd_error err;
    size_t n;
    char *copy = malloc(len ? len : 1);
    struct my_event e = {
        .kind = MY_EV_QUERY,
        .query = {.db = {"db", 2},
                  .text = {copy, len},
                  .charset_client = charsets[flags >> 1 & 3],
                  .sql_mode_ansi_quotes = flags & 8,
                  .sql_mode_no_backslash = flags & 16},
    };

    if (len)
        memcpy(copy, sql, len);
    cdcd_arena_init(&a, 4096);
    my_statement_of(&e, server->flavor, server->version, &a, &info);
    (void)my_shapes_apply(shapes, &e, &a, &ddl, &n, &err);
    cdcd_arena_free(&a);
    free(copy);
}

static void check_tables(const struct my_shapes *shapes, const struct my_server *server,
                         const struct my_filter *filter, struct cdcd_batch *b)
{
    struct cdcd_error err;

    for (const struct cdcd_note *n = b->notes; n; n = n->next) {
        struct my_table *t = n->value.ptr ? my_table_read(n->value) : NULL;
        struct my_shape *s = NULL;
        if (t && my_shapes_find(shapes, t->db, t->name) && !t->unsure)
            (void)my_shape_of_table(t, server, filter, &s, &err);
        my_shape_free(s);
        my_table_free(t);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const tables[] = {
        "CREATE TABLE t (id INT PRIMARY KEY, a VARCHAR(10), b DECIMAL(8,2) NOT NULL UNIQUE)",
        "CREATE TABLE u (e ENUM('a','b'), s SET('x','y') DEFAULT 'x', ts TIMESTAMP, tx TEXT) "
        "CHARSET "
        "latin1",
    };
    static const struct my_config cfg;
    struct my_filter *filter;
    struct cdcd_error err;
    uint8_t flags = size ? data[0] : 0;
    struct my_server server = {
        .flavor = flags & 1 ? MY_MARIADB : MY_MYSQL,
        .version = flags & 1 ? 101100 : 80400,
        .lower_case_table_names = flags >> 5 & 1,
        .charset = "utf8mb4",
    };

    if (my_filter_new(&cfg, &filter, &err) != CDCD_OK)
        abort();
    struct my_shapes *shapes = my_shapes_new(&server, filter);
    struct cdcd_batch *b = cdcd_batch_new();
    for (size_t i = 0; i < 2; i++)
        run(shapes, &server, 0, tables[i], strlen(tables[i]));
    const char *p = (const char *)data + (size ? 1 : 0), *end = (const char *)data + size;
    while (p < end) {
        const char *stop = memchr(p, 0, (size_t)(end - p));
        stop = stop ? stop : end;
        run(shapes, &server, flags, p, (size_t)(stop - p));
        p = stop + 1;
    }
    my_shapes_notes(shapes, b);
    check_tables(shapes, &server, filter, b);
    cdcd_batch_free(b);
    my_shapes_free(shapes);
    my_filter_free(filter);
    return 0;
}
