/*
 * oplog_command.c: commands of the oplog ("c" entries) -> struct mg_command.
 *
 * The first field of `o` names the command; its value is the collection (a name, not "db.name",
 * but for renameCollection). The database is that of ns, "db.$cmd".
 */
#include "oplog.h"

static const struct {
    const char *name;
    enum mg_command_kind kind;
} commands[] = {
    {"create", MG_CMD_CREATE},
    {"drop", MG_CMD_DROP},
    {"dropDatabase", MG_CMD_DROP_DATABASE},
    {"renameCollection", MG_CMD_RENAME},
    {"collMod", MG_CMD_MODIFY},
    {"createIndexes", MG_CMD_INDEX},
    {"dropIndexes", MG_CMD_INDEX},
    {"deleteIndexes", MG_CMD_INDEX}, /* the old name of dropIndexes */
    {"dropIndex", MG_CMD_INDEX},     /* the same */
    {"deleteIndex", MG_CMD_INDEX},   /* the same */
    {"startIndexBuild", MG_CMD_INDEX},
    {"commitIndexBuild", MG_CMD_INDEX},
    {"abortIndexBuild", MG_CMD_INDEX},
    {"dbCheck", MG_CMD_OTHER},
    {"convertToCapped", MG_CMD_OTHER}, /* logged as its parts in any version that matters */
    {"emptycapped", MG_CMD_OTHER},     /* for the server's own tests */
    {"truncateRange", MG_CMD_OTHER},   /* of the server's own collections */
    {"createGlobalIndex", MG_CMD_OTHER},
    {"dropGlobalIndex", MG_CMD_OTHER},
    {"modifyCollectionShardingIndexCatalog", MG_CMD_OTHER},
    {"createDatabaseMetadata", MG_CMD_OTHER},
    {"dropDatabaseMetadata", MG_CMD_OTHER},
    {"upgradeDowngradeViewlessTimeseries", MG_CMD_OTHER},
    {"setAllowMigrations", MG_CMD_OTHER},
};

bool mg_command_known(struct cdcd_slice name, enum mg_command_kind *kind)
{
    for (size_t i = 0; i < sizeof commands / sizeof *commands; i++) {
        if (cdcd_slice_eq(name, cdcd_slice_str(commands[i].name))) {
            *kind = commands[i].kind;
            return true;
        }
    }
    return false;
}

static struct cdcd_slice string_value(struct cdcd_slice value)
{
    return (struct cdcd_slice){value.ptr + 4, value.len - 5};
}

static bool split(struct cdcd_slice ns, struct cdcd_slice *db, struct cdcd_slice *collection)
{
    const char *dot = ns.len ? memchr(ns.ptr, '.', ns.len) : NULL;

    if (!dot || dot == ns.ptr || dot + 1 == ns.ptr + ns.len)
        return false;
    *db = (struct cdcd_slice){ns.ptr, (size_t)(dot - ns.ptr)};
    *collection = (struct cdcd_slice){dot + 1, (size_t)(ns.ptr + ns.len - dot - 1)};
    return true;
}

static enum cdcd_rc bad(const struct mg_command *c, struct cdcd_slice name, const char *what,
                        struct cdcd_error *err)
{
    return cdcd_error_set(err, CDCD_ERR_DATA, "command %.*s of database %.*s: %s",
                          (int)(name.len > 100 ? 100 : name.len), name.ptr,
                          (int)(c->db.len > 100 ? 100 : c->db.len), c->db.ptr, what);
}

/* {renameCollection: "db.from", to: "db.to", dropTarget: <UUID of what was there> or bool} */
static enum cdcd_rc parse_rename(struct mg_command *out, const struct cdcd_bson_element *first,
                                 struct cdcd_error *err)
{
    struct cdcd_bson_element e;

    if (first->type != CDCD_BSON_STRING ||
        !split(string_value(first->value), &out->db, &out->collection))
        return bad(out, first->name, "its source is no \"db.collection\"", err);
    if (!cdcd_bson_find(out->o, "to", &e) || e.type != CDCD_BSON_STRING ||
        !split(string_value(e.value), &out->to_db, &out->to_collection))
        return bad(out, first->name, "its target (to) is no \"db.collection\"", err);
    if (!cdcd_bson_find(out->o, "dropTarget", &e))
        return CDCD_OK;
    if (e.type == CDCD_BSON_BINARY && e.value.len == 5 + 16) {
        out->drop_target = true;
        out->target_uuid = (struct cdcd_slice){e.value.ptr + 5, 16};
    } else if (e.type == CDCD_BSON_BOOL) {
        out->drop_target = e.value.ptr[0] != 0;
    } else if (e.type != CDCD_BSON_NULL && e.type != CDCD_BSON_UNDEFINED) {
        return bad(out, first->name, "dropTarget is neither a UUID nor a boolean", err);
    }
    return CDCD_OK;
}

enum cdcd_rc mg_command_parse(struct cdcd_slice ns, struct cdcd_slice o, struct cdcd_slice ui,
                              struct mg_command *out, struct cdcd_error *err)
{
    struct cdcd_bson_iter it;
    struct cdcd_bson_element first;
    struct cdcd_slice rest;

    *out = (struct mg_command){.o = o, .uuid = ui, .db = ns};
    if (!split(ns, &out->db, &rest) && ns.len == 0)
        return cdcd_error_set(err, CDCD_ERR_DATA, "command without ns (its database)");
    if (!cdcd_bson_iter_init(&it, o) || cdcd_bson_iter_next(&it, &first) != 1)
        return cdcd_error_set(err, CDCD_ERR_DATA, "command of database %.*s: malformed or empty o",
                              (int)(out->db.len > 100 ? 100 : out->db.len), out->db.ptr);
    if (!mg_command_known(first.name, &out->kind))
        return bad(out, first.name, "not known", err);
    if (out->kind == MG_CMD_RENAME)
        return parse_rename(out, &first, err);
    if (out->kind == MG_CMD_DROP_DATABASE)
        return CDCD_OK;
    if (first.type == CDCD_BSON_STRING && first.value.len > 5)
        out->collection = string_value(first.value);
    else if (out->kind != MG_CMD_OTHER)
        return bad(out, first.name, "it names no collection", err);
    return CDCD_OK;
}
