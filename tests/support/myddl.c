/*
 * myddl: runs statements on a MySQL or MariaDB server one by one, reads each back from the binlog,
 * and compares what the plugin's DDL parser made of it with what information_schema says.
 *
 *   myddl [-i] [-n] [-v] URL FILE
 *
 * FILE holds statements between lines of "--". One that begins with "~" must leave its table
 * unsure, which is then read again; with "!" the server may refuse it; with "@mysql " or "@mariadb
 * " it is for that server only. After each statement a row is written to each changed table, so
 * that its table map is compared too, with its names and as it is without them.
 *
 * Prints a line for each difference, and {"statements":N,"refused":N,"unsure":N,"maps":N,
 * "differences":N}; exits with 1 for any difference. -n: notes are written and read back after
 * each statement. -i: "ok" or "refused" is printed for each one as soon as it is known. -v:
 * statements are printed.
 */
#include "ddl.h"
#include "snapshot.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

struct test {
    MYSQL *m;       /* information_schema */
    MYSQL *session; /* the statements */
    struct my_config cfg;
    struct my_server server;
    struct my_filter *filter;
    struct my_shapes *shapes;
    struct my_dump *dump;
    struct my_decoder *decoder;
    struct cdcd_arena arena;
    bool notes, verbose, interactive, may_be_unsure;
    const char *statement;
    unsigned statements, refused, unsure, maps, differences;
};

static void die(const char *what, const struct cdcd_error *err)
{
    fprintf(stderr, "myddl: %s: %s\n", what, err ? err->text : "");
    exit(2);
}

static void differs(struct test *t, const char *fmt, ...) CDCD_PRINTF(2, 3);
static void differs(struct test *t, const char *fmt, ...)
{
    va_list ap;

    t->differences++;
    printf("after: %s\n    ", t->statement);
    va_start(ap, fmt);
    vprintf(fmt, ap);
    va_end(ap);
    printf("\n");
}

/* ---- models ---- */

static const char *or_none(const char *s)
{
    return s ? s : "(none)";
}

static bool same(const char *a, const char *b)
{
    return strcmp(or_none(a), or_none(b)) == 0;
}

static bool has_display_width(const char *type)
{
    return strstr(type, "INT") == type || strstr(type, "TINYINT") == type ||
           strstr(type, "SMALLINT") == type || strstr(type, "MEDIUMINT") == type ||
           strstr(type, "BIGINT") == type || strcmp(type, "YEAR") == 0;
}

static void compare_default(struct test *t, const char *label, const struct my_column *a,
                            const struct my_column *b)
{
    bool now = b->default_ && strncmp(b->default_, "CURRENT_TIMESTAMP", 17) == 0;

    if (!a->default_ != !b->default_ || a->default_expr != b->default_expr)
        differs(t, "%s: default %s%s, not %s%s", label, a->default_expr ? "expression " : "",
                or_none(a->default_), b->default_expr ? "expression " : "", or_none(b->default_));
    else if ((!a->default_expr || now) && !same(a->default_, b->default_))
        differs(t, "%s: default %s, not %s", label, or_none(a->default_), or_none(b->default_));
}

#define FLAG(f)       \
    if (a->f != b->f) \
    differs(t, "%s: " #f " is %d, not %d", label, (int)a->f, (int)b->f)
#define TEXT(f)            \
    if (!same(a->f, b->f)) \
    differs(t, "%s: " #f " is %s, not %s", label, or_none(a->f), or_none(b->f))

static void compare_column(struct test *t, const struct my_table *table, const struct my_column *a,
                           const struct my_column *b)
{
    char *label = cdcd_xasprintf("%s.%s.%s", table->db, table->name, b->name);

    TEXT(name);
    TEXT(type);
    TEXT(charset);
    if (!table->sequence)
        TEXT(comment);
    if (a->collation && b->collation)
        TEXT(collation);
    if (!has_display_width(b->type) && (a->length != b->length || a->scale != b->scale))
        differs(t, "%s: length %d,%d, not %d,%d", label, a->length, a->scale, b->length, b->scale);
    FLAG(nullable);
    FLAG(auto_increment);
    FLAG(generated);
    FLAG(virtual_);
    FLAG(invisible);
    FLAG(unsigned_);
    FLAG(zerofill);
    FLAG(json_alias);
    FLAG(compressed);
    FLAG(on_update_now);
    FLAG(row_start);
    FLAG(row_end);
    for (size_t i = 0; a->labels && b->labels && (a->labels[i] || b->labels[i]); i++) {
        if (!same(a->labels[i], b->labels[i])) {
            differs(t, "%s: label %s, not %s", label, or_none(a->labels[i]), or_none(b->labels[i]));
            break;
        }
    }
    compare_default(t, label, a, b);
    free(label);
}

static void compare_keys(struct test *t, const struct my_table *a, const struct my_table *b)
{
    const char *label = b->name;

    FLAG(primary);
    FLAG(nkeys);
    for (size_t i = 0; a->nkeys == b->nkeys && i < b->nkeys; i++) {
        if (strcmp(a->keys[i], b->keys[i]) != 0)
            differs(t, "%s: key column %s, not %s", label, a->keys[i], b->keys[i]);
    }
    for (size_t i = 0; i < a->nindexes; i++) {
        size_t k = 0;
        while (k < b->nindexes && !my_name_equal(a->indexes[i].name, b->indexes[k].name))
            k++;
        if (k == b->nindexes)
            differs(t, "%s: index %s is not there", label, a->indexes[i].name);
        else if (a->indexes[i].unique != b->indexes[k].unique ||
                 a->indexes[i].ncolumns != b->indexes[k].ncolumns)
            differs(t, "%s: index %s has %zu columns, not %zu", label, a->indexes[i].name,
                    a->indexes[i].ncolumns, b->indexes[k].ncolumns);
    }
}

static void print_schema(const struct cdcd_schema *s)
{
    for (uint32_t i = 0; i < s->ncolumns; i++) {
        const struct cdcd_column *c = &s->columns[i];
        printf("        %s %s type %d length %d,%d%s%s%s default %s\n", c->name, c->type_name,
               (int)c->type, c->length, c->scale, c->optional ? " null" : "", c->key ? " key" : "",
               c->unsigned_ ? " unsigned" : "", or_none(c->default_text));
    }
}

static void compare_schema(struct test *t, const char *what, const struct cdcd_schema *a,
                           const struct cdcd_schema *b)
{
    if (a->version == b->version)
        return;
    differs(t, "%s: the schema %s differs from the model's:", b->table, what);
    print_schema(a);
    printf("      and\n");
    print_schema(b);
}

static void compare_shape(struct test *t, const struct my_table *a, const struct my_table *b)
{
    struct my_shape *x = NULL, *y = NULL;
    struct cdcd_error err;

    if (my_shape_of_table(a, &t->server, t->filter, &x, &err) != CDCD_OK)
        differs(t, "%s: %s", b->name, err.text);
    else if (my_shape_of_table(b, &t->server, t->filter, &y, &err) != CDCD_OK)
        differs(t, "%s: of the catalogue: %s", b->name, err.text);
    else
        compare_schema(t, "of the catalogue", y->schema, x->schema);
    my_shape_free(x);
    my_shape_free(y);
}

static void compare_table(struct test *t, const struct my_table *a, const struct my_table *b)
{
    const char *label = b->name;

    if (a->ncolumns != b->ncolumns) {
        differs(t, "%s: %zu columns, not %zu", label, a->ncolumns, b->ncolumns);
        return;
    }
    for (size_t i = 0; i < b->ncolumns; i++)
        compare_column(t, b, &a->columns[i], &b->columns[i]);
    if (!b->sequence)
        TEXT(charset);
    TEXT(comment);
    FLAG(sequence);
    FLAG(versioned);
    compare_keys(t, a, b);
    compare_shape(t, a, b);
}

/* Every table of the server against its model; each model against its table. */
static void compare_all(struct test *t)
{
    struct my_table_list list;
    struct cdcd_error err;

    if (my_catalog_read(t->m, &t->server, t->filter, NULL, NULL, &list, &err) != CDCD_OK)
        die("information_schema", &err);
    for (size_t i = 0; i < list.n; i++) {
        const struct my_table *b = list.items[i];
        const struct my_table *a = my_shapes_find(t->shapes, b->db, b->name);
        if (!a) {
            differs(t, "%s.%s is not known", b->db, b->name);
            continue;
        }
        if (!a->unsure) {
            unsigned before = t->differences;
            compare_table(t, a, b);
            if (t->differences == before)
                continue; /* else once is enough */
        } else if (!t->may_be_unsure) {
            differs(t, "%s: unsure: %s", b->name, a->why);
        } else {
            t->unsure++;
            t->may_be_unsure = false;
        }
        bool found;
        if (my_shapes_refresh(t->shapes, t->m, b->db, b->name, &found, &err) != CDCD_OK)
            die("refresh", &err);
    }
    my_table_list_free(&list);
    if (t->may_be_unsure)
        differs(t, "understood, though it was not thought to be");
}

/* ---- the log ---- */

static void compare_map(struct test *t, const struct my_table_map *map)
{
    struct my_table_map bare = *map;
    struct my_map_column *columns = cdcd_xcalloc(map->ncolumns + 1, sizeof *columns);
    char *db = cdcd_xstrndup(map->db.ptr, map->db.len);
    char *name = cdcd_xstrndup(map->table.ptr, map->table.len);
    const struct my_table *model = my_shapes_find(t->shapes, db, name);
    struct my_shape *shapes[3] = {NULL};
    struct cdcd_error err = {0};
    char why[256];
    bool fits;

    for (uint32_t i = 0; i < map->ncolumns; i++) {
        const struct my_map_column *c = &map->columns[i];
        columns[i] = (struct my_map_column){
            .type = c->type, .meta = c->meta, .nullable = c->nullable};
    }
    bare.columns = columns;
    bare.full = bare.has_keys = false;
    bare.nkeys = 0;
    t->maps++;
    if (!model || !my_filter_table(t->filter, db, name))
        differs(t, "%s.%s: a map without a model", db, name);
    else if (my_shape_of_table(model, &t->server, t->filter, &shapes[0], &err) != CDCD_OK)
        differs(t, "%s: %s", name, err.text);
    for (int i = 0; shapes[0] && i < 2; i++) {
        if (my_shape_of_map(i ? &bare : map, model, &t->server, t->filter, &shapes[i + 1], &fits,
                            why, &err) != CDCD_OK)
            differs(t, "%s: %s map: %s", name, i ? "bare" : "full", err.text);
        else if (!fits)
            differs(t, "%s: %s map does not fit: %s", name, i ? "bare" : "full", why);
        else
            compare_schema(t, i ? "of the bare map" : "of the full map", shapes[i + 1]->schema,
                           shapes[0]->schema);
    }
    for (int i = 0; i < 3; i++)
        my_shape_free(shapes[i]);
    free(columns);
    free(db);
    free(name);
}

static void through_notes(struct test *t)
{
    struct cdcd_batch *b = cdcd_batch_new();
    static struct cdcd_notes *notes;
    struct cdcd_error err;

    if (!notes)
        notes = cdcd_notes_new();
    my_shapes_notes(t->shapes, b);
    for (const struct cdcd_note *n = b->notes; n; n = n->next)
        cdcd_notes_set(notes, n->key, n->value);
    if (my_shapes_load(t->shapes, notes, &err) != CDCD_OK)
        die("notes", &err);
    cdcd_batch_free(b);
}

static void apply(struct test *t, const struct my_event *e)
{
    struct my_statement_info info;
    struct cdcd_ddl *ddl;
    struct cdcd_error err;
    size_t n;

    my_statement_of(e, t->server.flavor, t->server.version, &t->arena, &info);
    if (t->verbose)
        printf("log %d: %.*s\n", info.kind, (int)e->query.text.len, e->query.text.ptr);
    if (info.kind != MY_ST_DDL || info.temporary)
        return;
    if (my_shapes_apply(t->shapes, e, &t->arena, &ddl, &n, &err) != CDCD_OK)
        die("apply", &err);
    if (t->notes)
        through_notes(t);
}

/* Up to the end of the log as it is now. */
static void read_log(struct test *t)
{
    struct my_log_end end;
    struct cdcd_error err;
    struct cdcd_slice bytes;
    struct my_event e;

    if (my_log_end(t->m, &t->server, &end, &err) != CDCD_OK)
        die("end of the log", &err);
    for (bool done = false; !done;) {
        enum cdcd_rc rc = my_dump_read(t->dump, INT64_MAX, &bytes, &err);
        if (rc == CDCD_AGAIN)
            continue;
        if (rc != CDCD_OK || my_decode(t->decoder, bytes, false, &e, &err) != CDCD_OK)
            die("the log", &err);
        if (e.kind == MY_EV_QUERY)
            apply(t, &e);
        else if (e.kind == MY_EV_TABLE_MAP)
            compare_map(t, e.map);
        done = e.end_pos == end.pos;
    }
    my_log_end_free(&end);
    cdcd_arena_reset(&t->arena, 1 << 20);
}

/* A row for each table, so that it gets a table map. */
static bool write_rows(struct test *t)
{
    MYSQL_RES *res;
    MYSQL_ROW row;
    struct cdcd_error err;
    bool any = false;

    if (my_query(
            t->m, &res, &err,
            "SELECT table_schema, table_name FROM information_schema.tables WHERE table_type "
            "NOT LIKE '%VIEW%' AND table_type <> 'SEQUENCE' AND table_schema LIKE 'ddl\\_%'") !=
        CDCD_OK)
        die("tables", &err);
    while ((row = mysql_fetch_row(res))) {
        if (my_queryf(t->m, NULL, &err, "INSERT IGNORE INTO %I.%I () VALUES ()", row[0], row[1]) ==
            CDCD_OK)
            any = any || mysql_affected_rows(t->m) > 0;
    }
    mysql_free_result(res);
    return any;
}

/* ---- statements ---- */

/* False: the server refused it. */
static bool execute(struct test *t, const char *sql)
{
    bool ok = mysql_real_query(t->session, sql, strlen(sql)) == 0;
    MYSQL_RES *res = ok ? mysql_store_result(t->session) : NULL;

    if (res)
        mysql_free_result(res);
    return ok;
}

static uint64_t log_position(struct test *t)
{
    struct my_log_end end;
    struct cdcd_error err;

    if (my_log_end(t->m, &t->server, &end, &err) != CDCD_OK)
        die("end of the log", &err);
    uint64_t pos = end.pos;
    my_log_end_free(&end);
    return pos;
}

static void run(struct test *t, char *sql)
{
    const char *other = t->server.flavor == MY_MYSQL ? "@mariadb " : "@mysql ";
    bool may_fail, unsure;

    if (strncmp(sql, other, strlen(other)) == 0)
        return;
    if (*sql == '@')
        sql = strchr(sql, ' ') + 1;
    may_fail = *sql == '!';
    unsure = *sql == '~';
    sql += may_fail || unsure;
    t->may_be_unsure = unsure;
    t->statement = sql;
    if (t->verbose)
        printf("%s\n", sql);
    uint64_t before = log_position(t);
    t->statements++;
    bool ok = execute(t, sql);
    if (t->interactive)
        printf("%s\n", ok ? "ok" : "refused");
    if (!ok) {
        if (!may_fail)
            differs(t, "refused: %s", mysql_error(t->session));
        t->refused++;
    } else if (log_position(t) != before) {
        read_log(t);
        compare_all(t);
        if (write_rows(t))
            read_log(t);
    }
}

static void run_file(struct test *t, const char *path)
{
    FILE *f = strcmp(path, "-") == 0 ? stdin : fopen(path, "r");
    struct cdcd_buf b;
    char *line = NULL;
    size_t cap = 0;
    ssize_t n;

    if (!f)
        die(path, NULL);
    cdcd_buf_init(&b, 0);
    while ((n = getline(&line, &cap, f)) >= 0) {
        if (strcmp(line, "--\n") != 0) {
            cdcd_buf_add(&b, line, (size_t)n);
            continue;
        }
        while (b.len && b.ptr[b.len - 1] == '\n')
            b.len--;
        if (b.len)
            run(t, (char *)cdcd_buf_cstr(&b));
        cdcd_buf_clear(&b);
    }
    cdcd_buf_free(&b);
    free(line);
    fclose(f);
}

static void open_log(struct test *t)
{
    struct my_log_end end;
    struct my_position from = {.flavor = t->server.flavor, .gtid = ""};
    struct cdcd_error err;

    if (my_log_end(t->m, &t->server, &end, &err) != CDCD_OK)
        die("end of the log", &err);
    from.file = end.file;
    from.pos = end.pos;
    if (my_dump_open(&t->cfg, &t->server, &from, &t->dump, &err) != CDCD_OK)
        die("the log", &err);
    my_log_end_free(&end);
}

static void setup(struct test *t, char *url)
{
    static char *databases[] = {"ddl_.*"};
    struct cdcd_error err;

    t->cfg = (struct my_config){
        .pipeline = "myddl",
        .url = url,
        .server_id = 900000 + getpid() % 90000,
        .database_include = {databases, 1},
        .connect_timeout_ms = 10000,
        .lock_timeout_ms = 10000,
        .heartbeat_ms = 1000,
    };
    cdcd_arena_init(&t->arena, 1 << 16);
    if (my_filter_new(&t->cfg, &t->filter, &err) != CDCD_OK ||
        my_connect(&t->cfg, &t->m, &err) != CDCD_OK ||
        my_server_info(t->m, &t->server, &err) != CDCD_OK ||
        my_query(t->m, NULL, &err, "SET sql_mode=''") != CDCD_OK ||
        my_connect(&t->cfg, &t->session, &err) != CDCD_OK ||
        my_query(t->session, NULL, &err, "SET sql_mode=''") != CDCD_OK)
        die("connect", &err);
    my_filter_fold(t->filter, t->server.lower_case_table_names != 0);
    t->shapes = my_shapes_new(&t->server, t->filter);
    if (my_shapes_read(t->shapes, t->m, &err) != CDCD_OK)
        die("information_schema", &err);
    t->decoder = my_decoder_new(t->server.flavor);
    open_log(t);
}

int main(int argc, char **argv)
{
    struct test t = {0};
    int opt;

    while ((opt = getopt(argc, argv, "inv")) != -1) {
        t.notes = t.notes || opt == 'n';
        t.verbose = t.verbose || opt == 'v';
        t.interactive = t.interactive || opt == 'i';
    }
    if (argc - optind != 2) {
        fprintf(stderr, "usage: myddl [-i] [-n] [-v] URL FILE\n");
        return 2;
    }
    setvbuf(stdout, NULL, _IOLBF, 0);
    setup(&t, argv[optind]);
    run_file(&t, argv[optind + 1]);
    printf("{\"statements\":%u,\"refused\":%u,\"unsure\":%u,\"maps\":%u,\"differences\":%u}\n",
           t.statements, t.refused, t.unsure, t.maps, t.differences);
    my_dump_close(t.dump);
    my_decoder_free(t.decoder);
    my_shapes_free(t.shapes);
    my_filter_free(t.filter);
    cdcd_arena_free(&t.arena);
    mysql_close(t.m);
    mysql_close(t.session);
    return t.differences ? 1 : 0;
}
