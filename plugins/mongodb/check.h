/*
 * check.h: between check.c and check_collections.c.
 */
#ifndef CDCD_PLUGIN_MONGODB_CHECK_H
#define CDCD_PLUGIN_MONGODB_CHECK_H

#include "mg.h"

struct check {
    const struct mg_config *cfg;
    struct cdcd_report *report;
    mongoc_client_t *client;
    struct mg_server server;
    struct mg_filter *filter;
    bson_t hello; /* its whole reply */
};

/* By a dotted path. Text: borrowed from the reply, "" when it is not there. */
bool check_find(const bson_t *reply, const char *path, bson_iter_t *out);
const char *check_text(const bson_t *reply, const char *path);

/* The captured collections: whether there are any, can be read, and have the images that
 * capture.mode needs. `allowed`: capturing as such is; else only what is told apart. */
void check_collections(struct check *c, bool allowed);

#endif
