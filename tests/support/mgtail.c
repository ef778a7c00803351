/*
 * mgtail: reads an oplog from its first entry with a tailable cursor of libmongoc and does nothing
 * with it: what a client of the driver can do at best.
 *
 *   mgtail URL ENTRIES
 *
 * Ends after that many entries, and prints {"entries":N,"bytes":N}.
 */
#include <mongoc/mongoc.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

static mongoc_cursor_t *open_cursor(mongoc_collection_t *c)
{
    bson_t filter, options, at_least;
    bson_init(&filter);
    bson_append_document_begin(&filter, "ts", -1, &at_least);
    bson_append_timestamp(&at_least, "$gte", -1, 1, 0);
    bson_append_document_end(&filter, &at_least);
    bson_init(&options);
    bson_append_bool(&options, "tailable", -1, true);
    bson_append_bool(&options, "awaitData", -1, true);
    mongoc_cursor_t *cursor = mongoc_collection_find_with_opts(c, &filter, &options, NULL);
    bson_destroy(&options);
    bson_destroy(&filter);
    return cursor;
}

int main(int argc, char **argv)
{
    uint64_t entries = 0, bytes = 0;
    if (argc != 3) {
        fprintf(stderr, "usage: mgtail URL ENTRIES\n");
        return 2;
    }
    uint64_t wanted = strtoull(argv[2], NULL, 10);
    mongoc_init();
    mongoc_client_t *client = mongoc_client_new(argv[1]);
    if (!client) {
        fprintf(stderr, "mgtail: %s is no URL\n", argv[1]);
        return 2;
    }
    mongoc_collection_t *c = mongoc_client_get_collection(client, "local", "oplog.rs");
    mongoc_cursor_t *cursor = open_cursor(c);
    const bson_t *entry;
    bson_error_t error;
    while (entries < wanted && mongoc_cursor_next(cursor, &entry)) {
        entries++;
        bytes += entry->len;
    }
    int code = 0;
    if (entries < wanted) {
        bool bad = mongoc_cursor_error(cursor, &error);
        fprintf(stderr, "mgtail: %" PRIu64 " entries, then %s\n", entries,
                bad ? error.message : "no more");
        code = 1;
    }
    mongoc_cursor_destroy(cursor);
    mongoc_collection_destroy(c);
    mongoc_client_destroy(client);
    mongoc_cleanup();
    printf("{\"entries\":%" PRIu64 ",\"bytes\":%" PRIu64 "}\n", entries, bytes);
    return code;
}
