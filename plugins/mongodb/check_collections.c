/*
 * check_collections.c: what `cdcd check` says about the captured collections. They get a line of
 * their own only when something is to be said of them.
 */
#include "check.h"

#include <stdlib.h>

#define UNAUTHORIZED 13

struct collections {
    struct check *c;
    size_t captured, views, series, capped, left_out; /* left_out: seen, but not captured */
    size_t image_lines, read_lines;
};

#define addf(c, ...) cdcd_report_addf((c)->report, __VA_ARGS__)

/* db.getSiblingDB("shop").runCommand({collMod: "orders", ...}) */
static char *image_command(const char *db, const char *name)
{
    return cdcd_xasprintf("db.getSiblingDB(\"%s\").runCommand({collMod: \"%s\", "
                          "changeStreamPreAndPostImages: {enabled: true}})",
                          db, name);
}

static void check_images(struct collections *s, const char *db, const bson_t *info)
{
    bson_iter_t it;
    bool on = check_find(info, "options.changeStreamPreAndPostImages.enabled", &it) &&
              bson_iter_as_bool(&it);
    bool post = mg_wants_post_image(s->c->cfg);
    if (on || (!post && !mg_wants_before(s->c->cfg)) || !cdcd_report_more(&s->image_lines))
        return;
    const char *name = check_text(info, "name");
    addf(s->c, post ? CDCD_CHECK_FAIL : CDCD_CHECK_WARN, "images", image_command(db, name),
         "%s.%s keeps none: %s", db, name,
         post ? "an update has no whole document (capture.mode.full.update.type: post_image)"
              : "`before` stays null (capture.mode)");
}

/* Whether the account may read it: by reading one _id. */
static void check_read(struct collections *s, const char *db, const char *name)
{
    struct cdcd_error err = {0};
    bson_t reply, cmd = BSON_INITIALIZER, projection;
    bson_append_utf8(&cmd, "find", -1, name, -1);
    bson_append_document_begin(&cmd, "projection", -1, &projection);
    bson_append_int32(&projection, "_id", -1, 1);
    bson_append_document_end(&cmd, &projection);
    bson_append_int32(&cmd, "limit", -1, 1);
    bson_append_bool(&cmd, "singleBatch", -1, true);
    if (mg_command(s->c->client, db, &cmd, &reply, &err) != CDCD_OK &&
        cdcd_report_more(&s->read_lines))
        addf(s->c, CDCD_CHECK_FAIL, "collection",
             mg_error_code(NULL, &reply) == UNAUTHORIZED ? mg_grant_command(s->c->client, s->c->cfg)
                                                         : NULL,
             "%s.%s cannot be read: %s", db, name, err.text);
    bson_destroy(&reply);
    bson_destroy(&cmd);
}

/* One of listCollections. */
static void check_one(struct collections *s, const char *db, const bson_t *info)
{
    const char *name = check_text(info, "name"), *type = check_text(info, "type");
    bson_iter_t it;
    if (!mg_filter_collection(s->c->filter, cdcd_slice_str(db), cdcd_slice_str(name))) {
        s->left_out++;
    } else if (strcmp(type, "view") == 0) {
        if (s->views++ < 3)
            addf(s->c, CDCD_CHECK_WARN, "view", NULL,
                 "%s.%s is a view of %s: it has no changes, and is left out", db, name,
                 check_text(info, "options.viewOn"));
    } else if (strcmp(type, "timeseries") == 0) {
        if (s->series++ < 3)
            addf(s->c, CDCD_CHECK_WARN, "time series", NULL,
                 "%s.%s is left out: change streams have none of it, the oplog only its buckets "
                 "(capture: oplog, and %s.system.buckets.%s in collection.include.list)",
                 db, name, db, name);
    } else {
        s->captured++;
        if (check_find(info, "options.capped", &it) && bson_iter_as_bool(&it) && s->capped++ < 3)
            addf(s->c, CDCD_CHECK_WARN, "capped", NULL,
                 "%s.%s is capped: what the server drops of it at its end comes as no delete", db,
                 name);
        check_images(s, db, info);
        check_read(s, db, name);
    }
}

/* Of one database; `bare`: names only, of those that the account may see. The code of a failure. */
static int each_collection(struct collections *s, const char *name, bool bare,
                           struct cdcd_error *err)
{
    bson_t opts = BSON_INITIALIZER;
    const bson_t *doc, *reply = NULL;
    bson_error_t e = {0};
    int code = 0;
    if (bare) {
        bson_append_bool(&opts, "nameOnly", -1, true);
        bson_append_bool(&opts, "authorizedCollections", -1, true);
    }
    mongoc_database_t *db = mongoc_client_get_database(s->c->client, name);
    mongoc_cursor_t *cursor = mongoc_database_find_collections_with_opts(db, &opts);
    while (mongoc_cursor_next(cursor, &doc))
        check_one(s, name, doc);
    if (mongoc_cursor_error_document(cursor, &e, &reply)) {
        mg_error(err, &e, reply, "listing the collections of %s", name);
        code = mg_error_code(&e, reply);
        code = code ? code : -1;
    }
    mongoc_cursor_destroy(cursor);
    mongoc_database_destroy(db);
    bson_destroy(&opts);
    return code;
}

static void check_database(struct collections *s, const char *name)
{
    struct cdcd_error err = {0};
    int code = each_collection(s, name, false, &err);
    if (code == UNAUTHORIZED)
        code = each_collection(s, name, true, &err);
    if (code)
        addf(s->c, CDCD_CHECK_FAIL, "database",
             code == UNAUTHORIZED ? mg_grant_command(s->c->client, s->c->cfg) : NULL, "%s",
             err.text);
}

static void summary(struct collections *s)
{
    if (s->captured)
        addf(s->c, CDCD_CHECK_OK, "collections", NULL, "%zu captured, %zu by the lists left out",
             s->captured, s->left_out);
    else
        addf(s->c, CDCD_CHECK_FAIL, "collections",
             cdcd_xstrdup("correct database.include.list and collection.include.list: regular "
                          "expressions for the whole DATABASE and DATABASE.COLLECTION"),
             "none of %zu that the account can see is captured", s->left_out);
}

void check_collections(struct check *c, bool allowed)
{
    struct collections s = {.c = c};
    struct cdcd_error err = {0};
    char **names;
    if (mg_database_names(c->client, c->cfg, c->filter, &names, &err) != CDCD_OK) {
        addf(c, CDCD_CHECK_FAIL, "databases",
             err.class == CDCD_ERR_CONFIG ? mg_grant_command(c->client, c->cfg) : NULL, "%s",
             err.text);
        return;
    }
    for (char **n = names; *n; n++)
        check_database(&s, *n);
    bson_strfreev(names);
    cdcd_report_end(c->report, &s.image_lines, "images");
    cdcd_report_end(c->report, &s.read_lines, "collection");
    if (allowed || s.captured)
        summary(&s);
}
