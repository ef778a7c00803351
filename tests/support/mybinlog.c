/*
 * mybinlog: a binlog file through the decoder of the MySQL plugin. Prints a line of JSON for each
 * row: {"op":"INSERT","table":"db.t","before":[...],"after":[...]} with a string "KIND:VALUE" or
 * null for each column of the image; other events with --events.
 *
 *   mybinlog [--mariadb] [--events | --quiet] [--raw] [--select SOCKET DB.TABLE ORDER] FILE...
 *
 * --quiet decodes, prints nothing but the number of rows and the seconds that it took.
 * --raw   leaves out what the table map tells of signs, charsets and labels, as the servers' own
 *         tools do: strings are bytes, labels are numbers.
 * --select prints, instead of the log's rows, those of a query on the table, in the same form; the
 *         log must have a table map of it.
 */
#include "decoder.h"
#include "table.h"
#include "value.h"

#include <cdcd/json.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define MAX_SHAPES 4096

struct shape {
    struct my_shape shape;
    uint64_t id;
    struct cdcd_slice raw;
};

static struct {
    bool events, quiet, raw;
    const char *socket, *select, *order;
    enum my_flavor flavor;
    struct my_decoder *decoder;
    struct shape *shapes[MAX_SHAPES];
    unsigned nshapes;
    struct cdcd_arena arena;
    uint64_t rows;
    struct cdcd_error err;
} tool;

static bool fail(const char *what)
{
    fprintf(stderr, "mybinlog: %s: %s (%s)\n", what, tool.err.text,
            cdcd_error_class_name(tool.err.class));
    return false;
}

/* ---- shapes, from the table map alone ---- */

static void shape_free(struct shape *s)
{
    if (!s)
        return;
    cdcd_schema_unref(s->shape.schema);
    cdcd_arena_free(&s->shape.arena);
    free(s);
}

/* Labels that are not logged are numbers. */
static const char *const *numbers(struct cdcd_arena *a, uint32_t n)
{
    const char **list = cdcd_arena_alloc(a, n * sizeof *list);

    for (uint32_t i = 0; i < n; i++) {
        char text[16];
        snprintf(text, sizeof text, "%u", i + 1);
        list[i] = cdcd_arena_dup(a, text, strlen(text));
    }
    return list;
}

static bool set_labels(const struct my_table_map *m, const struct my_map_column *c,
                       struct my_column_decoder *d, struct cdcd_arena *a)
{
    if (c->nlabels == 0 || tool.raw) {
        d->nlabels = c->type == MY_SET ? 64 : c->meta == 1 ? 255 : 65535;
        d->labels = numbers(a, d->nlabels);
        return true;
    }
    const char **list = cdcd_arena_alloc(a, c->nlabels * sizeof *list);
    for (uint32_t i = 0; i < c->nlabels; i++) {
        struct cdcd_slice s = m->labels[c->first_label + i];
        if (d->charset && my_charset_decode(d->charset, s.ptr, s.len, a, &s, &tool.err) != CDCD_OK)
            return fail("label");
        list[i] = cdcd_arena_dup(a, s.ptr, s.len);
    }
    d->labels = list;
    d->nlabels = c->nlabels;
    return true;
}

static bool set_column(const struct my_table_map *m, uint32_t i, struct my_shape *shape)
{
    enum { BINARY = 63, POINT = 1 };
    const struct my_map_column *c = &m->columns[i];
    struct my_column_decoder *d = &shape->columns[i];
    char number[16];

    snprintf(number, sizeof number, "@%u", i + 1);
    *d = (struct my_column_decoder){.type = c->type,
                                    .meta = c->meta,
                                    .unsigned_ = c->unsigned_,
                                    .column = (int32_t)i,
                                    .nullable = c->nullable};
    d->name = c->name.ptr ? cdcd_arena_dup(&shape->arena, c->name.ptr, c->name.len)
                          : cdcd_arena_dup(&shape->arena, number, strlen(number));
    if (tool.raw) {
        d->unsigned_ = false;
        d->special = c->type == MY_GEOMETRY || c->type == MY_BIT ? MY_PLAIN : MY_BINARY;
        if (c->type == MY_STRING)
            d->type = MY_VARCHAR; /* which is not padded */
    } else if (c->has_collation && c->collation == BINARY)
        d->special = MY_BINARY;
    else if (c->has_collation &&
             my_charset_by_collation(c->collation, &d->charset, &tool.err) != CDCD_OK)
        return fail(d->name);
    if (c->type == MY_GEOMETRY && c->geometry == POINT && !tool.raw)
        d->special = MY_POINT;
    if (c->type == MY_BIT && c->meta == 1 && !tool.raw)
        d->special = MY_BOOL;
    if (c->type == MY_ENUM || c->type == MY_SET)
        return set_labels(m, c, d, &shape->arena);
    return true;
}

static bool add_shape(const struct my_table_map *m)
{
    unsigned at = 0;

    while (at < tool.nshapes && tool.shapes[at]->id != m->id)
        at++;
    if (at < tool.nshapes && cdcd_slice_eq(tool.shapes[at]->raw, m->raw))
        return true;
    if (at == MAX_SHAPES)
        return fail("too many tables");
    if (at < tool.nshapes)
        shape_free(tool.shapes[at]);
    else
        tool.nshapes++;
    struct shape *s = tool.shapes[at] = cdcd_xcalloc(1, sizeof *s);
    struct cdcd_arena *a = &s->shape.arena;
    cdcd_arena_init(a, 4096);
    char *db = cdcd_arena_dup(a, m->db.ptr, m->db.len);
    char *table = cdcd_arena_dup(a, m->table.ptr, m->table.len);
    s->id = m->id;
    s->raw = (struct cdcd_slice){cdcd_arena_dup(a, m->raw.ptr, m->raw.len), m->raw.len};
    s->shape.schema = cdcd_schema_new(db, "", table, m->ncolumns);
    s->shape.ncolumns = m->ncolumns;
    s->shape.columns = cdcd_arena_alloc(a, m->ncolumns * sizeof *s->shape.columns);
    s->shape.captured = true;
    s->shape.db = db;
    s->shape.table = table;
    size_t label = m->db.len + m->table.len + 2;
    s->shape.label = cdcd_arena_alloc(a, label);
    snprintf(s->shape.label, label, "%s.%s", db, table);
    for (uint32_t i = 0; i < m->ncolumns; i++) {
        if (!set_column(m, i, &s->shape))
            return false;
    }
    return true;
}

static const struct my_shape *find_shape(uint64_t id)
{
    for (unsigned i = 0; i < tool.nshapes; i++) {
        if (tool.shapes[i]->id == id)
            return &tool.shapes[i]->shape;
    }
    return NULL;
}

/* ---- printing ---- */

static void put_cell(struct cdcd_buf *b, const struct cdcd_cell *c)
{
    switch (c->kind) {
    case CDCD_C_BOOL:
    case CDCD_C_INT: cdcd_buf_addf(b, "int:%lld", (long long)c->i); break;
    case CDCD_C_UINT: cdcd_buf_addf(b, "int:%llu", (unsigned long long)c->u); break;
    case CDCD_C_FLOAT: cdcd_buf_addf(b, "float:%.*s", (int)c->len, c->ptr); break;
    case CDCD_C_DECIMAL: cdcd_buf_addf(b, "decimal:%.*s", (int)c->len, c->ptr); break;
    case CDCD_C_TEXT:
        cdcd_buf_adds(b, "text:");
        cdcd_buf_add(b, c->ptr, c->len);
        break;
    case CDCD_C_DATE: cdcd_buf_addf(b, "date:%lld", (long long)c->i); break;
    case CDCD_C_TIME: cdcd_buf_addf(b, "time:%lld", (long long)c->i); break;
    case CDCD_C_TIMESTAMP: cdcd_buf_addf(b, "ts:%lld.%09u", (long long)c->i, c->len); break;
    case CDCD_C_LIST:
        cdcd_buf_adds(b, "list:");
        for (uint32_t i = 0; i < c->len; i++) {
            if (i)
                cdcd_buf_adds(b, ",");
            cdcd_buf_add(b, c->cells[i].ptr, c->cells[i].len);
        }
        break;
    default:
        cdcd_buf_addf(b, c->kind == CDCD_C_GEOM ? "geom:%u:" : "bytes:", cdcd_cell_srid(c));
        for (uint32_t i = 0; i < c->len; i++)
            cdcd_buf_addf(b, "%02x", (uint8_t)c->ptr[i]);
        break;
    }
}

static void print_string(const char *p, size_t n)
{
    struct cdcd_writer w;

    cdcd_writer_begin(&w, &tool.arena);
    cdcd_json_string(&w, p, n);
    struct cdcd_slice s = cdcd_writer_end(&w);
    fwrite(s.ptr, 1, s.len, stdout);
}

static void print_cells(const char *name, const struct my_shape *shape,
                        const struct cdcd_cell *cells)
{
    struct cdcd_buf b;
    const char *comma = "";

    if (!cells)
        return;
    cdcd_buf_init(&b, 0);
    printf(",\"%s\":{", name);
    for (uint32_t i = 0; i < shape->ncolumns; i++) {
        if (cells[i].kind == CDCD_C_ABSENT)
            continue;
        printf("%s\"%u\":", comma, i + 1);
        comma = ",";
        cdcd_buf_clear(&b);
        if (cells[i].kind == CDCD_C_NULL) {
            printf("null");
        } else {
            put_cell(&b, &cells[i]);
            print_string(b.ptr, b.len);
        }
    }
    printf("}");
    cdcd_buf_free(&b);
}

static void print_row(const struct my_shape *shape, enum my_rows_op op,
                      const struct cdcd_cell *before, const struct cdcd_cell *after)
{
    static const char *const names[] = {"INSERT", "UPDATE", "DELETE", "UPDATE"};

    printf("{\"op\":\"%s\",\"table\":", names[op]);
    print_string(shape->label, strlen(shape->label));
    print_cells("before", shape, before);
    print_cells("after", shape, after);
    printf("}\n");
}

static void print_event(const struct my_event *e)
{
    struct cdcd_slice text = {"", 0};

    if (e->kind == MY_EV_QUERY)
        text = e->query.text;
    else if (e->kind == MY_EV_ROWS_QUERY || e->kind == MY_EV_INCIDENT)
        text = e->text;
    else if (e->kind == MY_EV_ROTATE)
        text = e->rotate.file;
    else if (e->kind == MY_EV_XA_PREPARE)
        text = cdcd_slice_str(e->xa.xid);
    else if (e->kind == MY_EV_GTID)
        text = e->gtid.xid.ptr ? e->gtid.xid : text;
    printf("{\"event\":\"%s\",\"size\":%u,\"end\":%u,\"text\":", my_event_name(e->type), e->size,
           e->end_pos);
    print_string(text.ptr, text.len);
    if (e->kind == MY_EV_GTID) {
        printf(",\"number\":%llu,\"domain\":%u,\"tag\":\"%s\",\"commit_us\":%llu,"
               "\"length\":%llu,\"uuid\":\"",
               (unsigned long long)e->gtid.id.number, e->gtid.id.domain, e->gtid.id.tag,
               (unsigned long long)e->gtid.commit_us,
               (unsigned long long)e->gtid.transaction_length);
        for (int i = 0; i < 16; i++)
            printf("%02x", e->gtid.id.uuid[i]);
        printf("\"");
    }
    printf("}\n");
}

/* ---- reading ---- */

static bool do_rows(const struct my_rows *rows)
{
    struct my_row_reader reader;
    struct cdcd_cell *before, *after;
    const struct my_shape *shape = find_shape(rows->table_id);
    enum cdcd_rc rc;

    if (!shape)
        return fail("rows without a table map");
    my_rows_begin(shape, rows, &reader);
    while ((rc = my_rows_next(&reader, &tool.arena, &before, &after, &tool.err)) == CDCD_OK) {
        tool.rows++;
        if (!tool.quiet && !tool.select)
            print_row(shape, rows->op, before, after);
        if (tool.arena.used > 256 << 10)
            cdcd_arena_reset(&tool.arena, 512 << 10);
    }
    return rc == CDCD_END || fail("row");
}

static bool do_event(struct cdcd_slice event, bool inner);

static bool do_payload(const struct my_event *e)
{
    struct my_payload *p;
    struct cdcd_slice event;
    enum cdcd_rc rc;
    bool ok = true;

    if (my_payload_open(e, 1u << 30, &p, &tool.err) != CDCD_OK)
        return fail("payload");
    while (ok && (rc = my_payload_next(p, &event, &tool.err)) == CDCD_OK)
        ok = do_event(event, true);
    ok = ok && (rc == CDCD_END || fail("payload"));
    my_payload_close(p);
    return ok;
}

static bool do_event(struct cdcd_slice event, bool inner)
{
    struct my_event e;

    if (my_decode(tool.decoder, event, inner, &e, &tool.err) != CDCD_OK)
        return fail("event");
    if (tool.events && e.kind != MY_EV_ROWS)
        print_event(&e);
    switch (e.kind) {
    case MY_EV_TABLE_MAP: return add_shape(e.map);
    case MY_EV_ROWS: return do_rows(&e.rows);
    case MY_EV_PAYLOAD: return do_payload(&e);
    default: return true;
    }
}

/* ---- the same rows by a query ---- */

static char *select_list(const struct my_shape *shape)
{
    struct cdcd_buf b;

    cdcd_buf_init(&b, 0);
    cdcd_buf_adds(&b, "SELECT ");
    for (uint32_t i = 0; i < shape->ncolumns; i++) {
        const struct my_column_decoder *d = &shape->columns[i];
        bool real = d->type == MY_FLOAT || d->type == MY_DOUBLE;
        cdcd_buf_addf(&b, "%s`%s`%s", i ? ", " : "", d->name, real ? "*1e0" : "");
    }
    cdcd_buf_addf(&b, " FROM `%s`.`%s` ORDER BY `%s`", shape->db, shape->table, tool.order);
    cdcd_buf_cstr(&b);
    return b.ptr;
}

static bool print_result(const struct my_shape *shape, MYSQL_RES *result)
{
    struct cdcd_cell *cells = cdcd_arena_alloc(&tool.arena, shape->ncolumns * sizeof *cells);
    MYSQL_ROW row;

    while ((row = mysql_fetch_row(result))) {
        const unsigned long *len = mysql_fetch_lengths(result);
        for (uint32_t i = 0; i < shape->ncolumns; i++) {
            cells[i] = (struct cdcd_cell){.kind = CDCD_C_NULL};
            if (row[i] && my_value_text(&shape->columns[i], NULL, row[i], len[i], &tool.arena,
                                        &cells[i], &tool.err) != CDCD_OK)
                return fail("value");
        }
        print_row(shape, MY_ROWS_WRITE, NULL, cells);
    }
    return true;
}

static bool do_select(void)
{
    const struct my_shape *shape = NULL;
    MYSQL *m = mysql_init(NULL);
    MYSQL_RES *result = NULL;

    for (unsigned i = 0; i < tool.nshapes; i++) {
        if (strcmp(tool.shapes[i]->shape.label, tool.select) == 0)
            shape = &tool.shapes[i]->shape;
    }
    mysql_options(m, MYSQL_SET_CHARSET_NAME, "utf8mb4");
    if (!shape || !mysql_real_connect(m, NULL, "root", "", NULL, 0, tool.socket, 0)) {
        fprintf(stderr, "mybinlog: %s\n", shape ? mysql_error(m) : "no such table in the log");
        mysql_close(m);
        return false;
    }
    char *sql = select_list(shape);
    bool ok = mysql_query(m, "SET time_zone='+00:00'") == 0 && mysql_query(m, sql) == 0 &&
              (result = mysql_store_result(m));
    if (!ok)
        fprintf(stderr, "mybinlog: %s\n", mysql_error(m));
    ok = ok && print_result(shape, result);
    mysql_free_result(result);
    mysql_close(m);
    free(sql);
    return ok;
}

static char *read_file(const char *name, size_t *size)
{
    FILE *f = fopen(name, "rb");
    char *data = NULL;

    if (f && fseek(f, 0, SEEK_END) == 0) {
        *size = (size_t)ftell(f);
        rewind(f);
        data = cdcd_xmalloc(*size + 1);
        if (fread(data, 1, *size, f) != *size) {
            free(data);
            data = NULL;
        }
    }
    if (f)
        fclose(f);
    return data;
}

static bool do_file(const char *name)
{
    static const char magic[4] = {'\xfe', 'b', 'i', 'n'};
    size_t size, at = sizeof magic;
    char *data = read_file(name, &size);
    bool ok = data && size >= sizeof magic && memcmp(data, magic, sizeof magic) == 0;

    if (!ok)
        fprintf(stderr, "mybinlog: %s is no binlog\n", name);
    while (ok && at < size) {
        struct cdcd_cursor c = cdcd_cur(data + at, size - at);
        cdcd_cur_take(&c, 9);
        uint32_t n = my_cur_u32(&c);
        if (c.bad || n > size - at || n < MY_HEADER_LEN) {
            fprintf(stderr, "mybinlog: %s ends within an event at %zu\n", name, at);
            ok = false;
        } else {
            ok = do_event((struct cdcd_slice){data + at, n}, false);
            at += n;
        }
    }
    free(data);
    return ok;
}

int main(int argc, char **argv)
{
    bool ok = true;
    struct timespec start, end;
    int i = 1;

    for (; i < argc && argv[i][0] == '-'; i++) {
        if (strcmp(argv[i], "--mariadb") == 0)
            tool.flavor = MY_MARIADB;
        else if (strcmp(argv[i], "--events") == 0)
            tool.events = true;
        else if (strcmp(argv[i], "--quiet") == 0)
            tool.quiet = true;
        else if (strcmp(argv[i], "--raw") == 0)
            tool.raw = true;
        else if (strcmp(argv[i], "--select") == 0 && i + 3 < argc) {
            tool.socket = argv[++i];
            tool.select = argv[++i];
            tool.order = argv[++i];
        } else
            ok = false;
    }
    if (!ok || i == argc) {
        fprintf(stderr, "usage: mybinlog [--mariadb] [--events | --quiet] [--raw] "
                        "[--select SOCKET DB.TABLE ORDER] FILE...\n");
        return 2;
    }
    tool.decoder = my_decoder_new(tool.flavor);
    cdcd_arena_init(&tool.arena, 64 << 10);
    clock_gettime(CLOCK_MONOTONIC, &start);
    for (; ok && i < argc; i++)
        ok = do_file(argv[i]);
    clock_gettime(CLOCK_MONOTONIC, &end);
    if (ok && tool.select)
        ok = do_select();
    if (tool.quiet)
        printf("%llu rows, %.3f s\n", (unsigned long long)tool.rows,
               (double)(end.tv_sec - start.tv_sec) + (double)(end.tv_nsec - start.tv_nsec) / 1e9);
    for (unsigned k = 0; k < tool.nshapes; k++)
        shape_free(tool.shapes[k]);
    my_decoder_free(tool.decoder);
    cdcd_arena_free(&tool.arena);
    return ok ? 0 : 1;
}
