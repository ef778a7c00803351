/*
 * bench_encode: CPU nanoseconds the encoder takes for a record of the benchmark's table, and for a
 * document of 300 bytes in each mode of json.serialization.mode.
 *
 *   bench_encode [BATCHES]
 *
 * One thread, batches as the pipeline makes them; the cells are made once, so that the figure is
 * the encoder's alone.
 */
#include <cdcd/plugin.h>

#include "bson_build.h"
#include "encoder.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define ROWS 512

#define COLUMN(n, t, opt, len, sc)                                        \
    {                                                                     \
        .name = n, .type = t, .optional = opt, .length = len, .scale = sc \
    }
static const struct cdcd_column source_columns[] = {
    COLUMN("schema", CDCD_T_STRING, false, -1, -1),   COLUMN("table", CDCD_T_STRING, false, -1, -1),
    COLUMN("txId", CDCD_T_INT64, true, -1, -1),       COLUMN("lsn", CDCD_T_INT64, true, -1, -1),
    COLUMN("xmin", CDCD_T_INT64, true, -1, -1),       COLUMN("origin", CDCD_T_STRING, true, -1, -1),
    COLUMN("origin_lsn", CDCD_T_INT64, true, -1, -1),
};
static const struct cdcd_source_ops source = {
    .connector = "postgresql",
    .source_columns = source_columns,
    .nsource_columns = 7,
    .source_schema_name = "io.debezium.connector.postgresql.Source",
};
static const struct cdcd_column columns[] = {
    COLUMN("id", CDCD_T_INT64, false, -1, -1),     COLUMN("a", CDCD_T_INT32, true, -1, -1),
    COLUMN("b", CDCD_T_STRING, true, -1, -1),      COLUMN("c", CDCD_T_DECIMAL, true, 12, 2),
    COLUMN("d", CDCD_T_TIMESTAMPTZ, true, -1, -1), COLUMN("e", CDCD_T_JSON, true, -1, -1),
};

struct row {
    struct cdcd_cell cells[6], source[7];
    char text[96], number[32], json[128], sequence[64];
};

static struct cdcd_cell text_cell(uint8_t kind, const char *s)
{
    struct cdcd_cell c = cdcd_cell_text(s, strlen(s));
    c.kind = kind;
    return c;
}

static void make_row(struct row *r, int i)
{
    snprintf(r->text, sizeof(r->text), "%032x%032x%016x", i * 2654435761u, i * 40503u, i * 97u);
    snprintf(r->number, sizeof(r->number), "%d.%02d", i * 7 % 100000, i % 100);
    snprintf(r->json, sizeof(r->json),
             "{\"k\": %d, \"ok\": true, \"tag\": \"%012x\", \"name\": \"customer %d\"}", i,
             i * 77777u, i);
    snprintf(r->sequence, sizeof(r->sequence), "[\"%d\",\"%d\"]", 27165680 + i / 100 * 9000,
             27165680 + i * 90);
    r->cells[0] = cdcd_cell_int(i);
    r->cells[1] = cdcd_cell_int(i * 7919 % 1000003);
    r->cells[2] = text_cell(CDCD_C_TEXT, r->text);
    r->cells[3] = text_cell(CDCD_C_DECIMAL, r->number);
    r->cells[4] = (struct cdcd_cell){.kind = CDCD_C_TIMESTAMP, .i = 1704067200 + i};
    r->cells[5] = text_cell(CDCD_C_TEXT, r->json);
    r->source[0] = text_cell(CDCD_C_TEXT, "public");
    r->source[1] = text_cell(CDCD_C_TEXT, "bench");
    r->source[2] = cdcd_cell_int(757 + i / 100);
    r->source[3] = cdcd_cell_int(27165680 + i * 90);
}

static struct cdcd_schema *make_schema(void)
{
    struct cdcd_schema *s = cdcd_schema_new("bench", "public", "bench", 6);
    memcpy(s->columns, columns, sizeof(columns));
    s->nkeys = 1;
    cdcd_schema_finish(s);
    return s;
}

static int64_t now_ns(void)
{
    struct timespec ts;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts);
    return (int64_t)ts.tv_sec * 1000000000 + ts.tv_nsec;
}

/* ---- a table ---- */

static struct row *rows;

static void add_row(struct cdcd_batch *b, struct cdcd_schema *s, long n, int i)
{
    struct cdcd_event *ev = cdcd_batch_event(b, CDCD_OP_CREATE, s);
    ev->after = rows[i].cells;
    ev->source = rows[i].source;
    ev->sequence = cdcd_slice_str(rows[i].sequence);
    ev->ts_us = 1795986694821056 + n * 1000 + i / 100;
    ev->pos = (struct cdcd_pos){27165680, (uint64_t)i + 1, true};
}

/* ---- documents ---- */

static const struct cdcd_column mongodb_columns[] = {
    COLUMN("collection", CDCD_T_STRING, false, -1, -1),
    COLUMN("ord", CDCD_T_INT32, false, -1, -1),
    COLUMN("lsid", CDCD_T_STRING, true, -1, -1),
    COLUMN("txnNumber", CDCD_T_INT64, true, -1, -1),
    COLUMN("wallTime", CDCD_T_INT64, true, -1, -1),
};
static const struct cdcd_source_ops mongodb = {
    .connector = "mongodb",
    .source_columns = mongodb_columns,
    .nsource_columns = 5,
    .source_schema_name = "io.debezium.connector.mongo.Source",
};

struct document {
    struct bson_build bson;
    struct cdcd_cell image[CDCD_DOC_COLUMNS], source[5];
    uint8_t id[12];
};
static struct document *documents;

static void put_item(struct bson_build *b, const char *index, int i)
{
    bb_open(b, 3, index);
    bb_int32(b, "sku", i);
    bb_double(b, "price", i % 1000 + 0.25);
    bb_close(b);
}

static void make_document(struct document *d, int i)
{
    struct bson_build *b = &d->bson;
    char name[48], text[96];
    snprintf(name, sizeof(name), "customer %d", i);
    snprintf(text, sizeof(text), "%032x%032x", i * 2654435761u, i * 40503u);
    for (size_t k = 0; k < sizeof(d->id); k++)
        d->id[k] = (uint8_t)((unsigned)i * 77777u >> k);
    bb_begin(b);
    bb_raw(b, 0x07, "_id", d->id, 12);
    bb_string(b, "name", name);
    bb_string(b, "text", text);
    bb_int32(b, "n", i);
    bb_int64(b, "big", (int64_t)i * 5000000000);
    bb_double(b, "total", i * 1.1);
    bb_bool(b, "ok", true);
    bb_date(b, "at", 1709212455123 + i);
    bb_open(b, 4, "items");
    put_item(b, "0", i);
    put_item(b, "1", i * 3);
    bb_close(b);
    bb_open(b, 3, "address");
    bb_string(b, "city", "Berlin");
    bb_string(b, "street", "Unter den Linden 77");
    bb_close(b);
    struct cdcd_slice whole = bb_end(b);
    d->image[CDCD_DOC_ID] = cdcd_cell_bson(0x07, (const char *)d->id, 12);
    d->image[CDCD_DOC_DOCUMENT] = cdcd_cell_bson(3, whole.ptr, whole.len);
    d->source[0] = text_cell(CDCD_C_TEXT, "bench");
    d->source[1] = cdcd_cell_int(i);
    d->source[4] = cdcd_cell_int(1709212455123 + i);
}

static void add_document(struct cdcd_batch *b, struct cdcd_schema *s, long n, int i)
{
    struct cdcd_event *ev = cdcd_batch_event(b, CDCD_OP_CREATE, s);
    ev->after = documents[i].image;
    ev->source = documents[i].source;
    ev->ts_us = (1709212455123 + n + i / 100) * 1000;
    ev->pos = (struct cdcd_pos){27165680, (uint64_t)i + 1, true};
}

/* ---- measuring ---- */

typedef void add_fn(struct cdcd_batch *b, struct cdcd_schema *s, long n, int i);

static int measure(const char *what, const struct cdcd_debezium_config *cfg,
                   const struct cdcd_source_ops *ops, struct cdcd_schema *s, add_fn *add,
                   long batches)
{
    struct cdcd_encoder_env env = {"bench", "bench", ops, true, false};
    struct cdcd_batch *b = cdcd_batch_new();
    struct cdcd_encoder *e;
    struct cdcd_error err;
    int64_t total = 0;
    size_t bytes = 0;
    if (cdcd_encoder_new(cfg, &env, &e, &err) != CDCD_OK) {
        fprintf(stderr, "%s\n", err.text);
        return 1;
    }
    for (long n = 0; n < batches; n++) {
        cdcd_batch_reset(b);
        for (int i = 0; i < ROWS; i++)
            add(b, s, n, i);
        int64_t start = now_ns();
        if (cdcd_encoder_encode(e, b, &err) != CDCD_OK) {
            fprintf(stderr, "%s\n", err.text);
            return 1;
        }
        total += now_ns() - start;
        bytes += b->bytes;
    }
    double records = (double)batches * ROWS;
    printf("%-10s %.0f ns a record, %.0f bytes a record, %.2f GB/s\n", what,
           (double)total / records, (double)bytes / records, (double)bytes / (double)total);
    cdcd_batch_free(b);
    cdcd_encoder_free(e);
    return 0;
}

static int measure_documents(struct cdcd_debezium_config cfg, long batches)
{
    static const char *const modes[] = {"legacy", "strict", "extended", "relaxed", "plain"};
    struct cdcd_schema *s = cdcd_schema_document("bench", "bench");
    int rc = 0;
    documents = cdcd_xcalloc(ROWS, sizeof(*documents));
    for (int i = 0; i < ROWS; i++)
        make_document(&documents[i], i);
    printf("documents of %zu bytes\n", documents[ROWS / 2].bson.buf.len);
    for (int i = 0; i < 5 && !rc; i++) {
        cfg.document_mode = i;
        rc = measure(modes[i], &cfg, &mongodb, s, add_document, batches);
    }
    for (int i = 0; i < ROWS; i++)
        bb_free(&documents[i].bson);
    free(documents);
    cdcd_schema_unref(s);
    return rc;
}

int main(int argc, char **argv)
{
    long batches = argc > 1 ? strtol(argv[1], NULL, 10) : 2000;
    struct cdcd_debezium_config cfg = {.tombstones_on_delete = true, .extended_headers = true};
    struct cdcd_schema *s = make_schema();
    rows = cdcd_xcalloc(ROWS, sizeof(*rows));
    for (int i = 0; i < ROWS; i++)
        make_row(&rows[i], i);
    int rc = measure("rows", &cfg, &source, s, add_row, batches);
    free(rows);
    cdcd_schema_unref(s);
    return rc ? rc : measure_documents(cfg, batches);
}
