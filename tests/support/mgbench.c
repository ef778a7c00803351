/*
 * mgbench [ROUNDS]: documents to JSON, the core's encoder against libbson's relaxed JSON, one after
 * the other in each round. Prints documents a second of CPU time (the best round of each) and the
 * factors to libbson. Wants a build with optimisation.
 */
#include <cdcd/bson.h>

#include <bson/bson.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define DOCUMENTS 2000
#define REPEAT    10

static uint64_t state = 88172645463325252u;

static uint64_t next_random(void)
{
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return state;
}

static double seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* About 300 bytes, as documents of shops have them. */
static void make_document(bson_t *b, unsigned i)
{
    static const char *const towns[] = {"Hamburg", "M\xc3\xbcnchen", "Buenos Aires", "Oslo"};
    static const char *const states[] = {"paid", "shipped", "open", "returned by the customer"};
    bson_t address, tags;
    bson_oid_t oid;
    char text[64];

    bson_init(b);
    bson_oid_init(&oid, NULL);
    BSON_APPEND_OID(b, "_id", &oid);
    BSON_APPEND_INT32(b, "number", (int32_t)i);
    BSON_APPEND_INT64(b, "customer", (int64_t)(next_random() >> 20));
    BSON_APPEND_DOUBLE(b, "total", (double)(next_random() % 100000) / 100);
    BSON_APPEND_DOUBLE(b, "weight", (double)next_random() / 1e18);
    BSON_APPEND_DATE_TIME(b, "created", 1700000000000 + (int64_t)(next_random() % 100000000000));
    BSON_APPEND_DATE_TIME(b, "changed", 1700000000000 + (int64_t)(next_random() % 100000) * 1000);
    BSON_APPEND_UTF8(b, "status", states[next_random() % 4]);
    snprintf(text, sizeof text, "order %" PRIu64 " of customer %u", next_random() % 100000, i);
    BSON_APPEND_UTF8(b, "description", text);
    BSON_APPEND_BOOL(b, "gift", i % 3 == 0);
    BSON_APPEND_DOCUMENT_BEGIN(b, "address", &address);
    BSON_APPEND_UTF8(&address, "town", towns[next_random() % 4]);
    BSON_APPEND_UTF8(&address, "street", "Long Street 12");
    BSON_APPEND_INT32(&address, "zip", (int32_t)(next_random() % 90000) + 10000);
    bson_append_document_end(b, &address);
    bson_init(&tags); /* put in whole: libbson 2 warns of bson_append_array_begin */
    BSON_APPEND_UTF8(&tags, "0", "new");
    BSON_APPEND_UTF8(&tags, "1", "summer");
    BSON_APPEND_INT32(&tags, "2", 7);
    BSON_APPEND_ARRAY(b, "tags", &tags);
    bson_destroy(&tags);
}

static size_t run_libbson(bson_t *docs)
{
    size_t bytes = 0;
    for (unsigned i = 0; i < DOCUMENTS; i++) {
        size_t n;
        char *text = bson_as_relaxed_extended_json(&docs[i], &n);
        if (!text)
            abort();
        bytes += n;
        bson_free(text);
    }
    return bytes;
}

static size_t run_own(bson_t *docs, struct cdcd_arena *a, const struct cdcd_bson_style *style)
{
    size_t bytes = 0;
    for (unsigned i = 0; i < DOCUMENTS; i++) {
        struct cdcd_slice doc = {(const char *)bson_get_data(&docs[i]), docs[i].len};
        const char *why;
        struct cdcd_writer w;
        cdcd_writer_begin(&w, a);
        if (!cdcd_bson_json(&w, doc, style, &why))
            abort();
        bytes += cdcd_writer_end(&w).len;
        if (i % 500 == 499) /* as batches do */
            cdcd_arena_reset(a, SIZE_MAX);
    }
    return bytes;
}

enum { LIBBSON, RELAXED, STRICT_QUOTED, PLAIN, RUNS };
static const char *const run_names[RUNS] = {"libbson, relaxed", "relaxed", "strict, quoted",
                                            "plain"};
static const struct cdcd_bson_style run_styles[RUNS] = {
    [RELAXED] = {.form = CDCD_BSON_RELAXED, .spaced = true},
    [STRICT_QUOTED] = {.form = CDCD_BSON_STRICT, .quoted = true},
    [PLAIN] = {.form = CDCD_BSON_PLAIN},
};

int main(int argc, char **argv)
{
    long rounds = argc > 1 ? strtol(argv[1], NULL, 10) : 10;
    bson_t *docs = calloc(DOCUMENTS, sizeof *docs);
    double best[RUNS] = {0};
    size_t bytes[RUNS] = {0}, in = 0;
    struct cdcd_arena a;

    cdcd_arena_init(&a, 1 << 20);
    for (unsigned i = 0; i < DOCUMENTS; i++) {
        make_document(&docs[i], i);
        in += docs[i].len;
    }
    for (long round = 0; round < rounds; round++) {
        for (int run = 0; run < RUNS; run++) {
            double start = seconds();
            for (int i = 0; i < REPEAT; i++)
                bytes[run] = run == LIBBSON ? run_libbson(docs)
                                            : run_own(docs, &a, &run_styles[run]);
            double took = seconds() - start, rate = DOCUMENTS * REPEAT / took;
            if (rate > best[run])
                best[run] = rate;
        }
    }
    printf("documents of %.0f bytes\n", (double)in / DOCUMENTS);
    for (int run = 0; run < RUNS; run++)
        printf("%-17s %9.0f documents/s  %4.0f bytes each  %5.2f\n", run_names[run], best[run],
               (double)bytes[run] / DOCUMENTS, best[run] / best[LIBBSON]);
    for (unsigned i = 0; i < DOCUMENTS; i++)
        bson_destroy(&docs[i]);
    free(docs);
    cdcd_arena_free(&a);
    return 0;
}
