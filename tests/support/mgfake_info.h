/* mgfake_info.h: what the fake server says of itself, and its catalogue. Part of mgfake.c. */
#ifndef MGFAKE_INFO_H
#define MGFAKE_INFO_H

#include "mgfake_find.h"

/* ---- what the server says of itself ---- */

static bool is_secondary(void)
{
    return now_ms(CLOCK_MONOTONIC) < server.secondary_until;
}

static void put_set(struct cdcd_buf *b)
{
    char me[32];
    bool secondary = is_secondary();

    snprintf(me, sizeof me, "127.0.0.1:%d", server.port);
    put_string(b, "setName", server.set);
    put_int32(b, "setVersion", 1);
    put_bool(b, "secondary", secondary);
    size_t hosts = put_array(b, "hosts");
    put_string(b, "0", me);
    put_close(b, hosts);
    if (!secondary)
        put_string(b, "primary", me);
    put_string(b, "me", me);
    size_t last = put_document(b, "lastWrite"), time = put_document(b, "opTime");
    put_time(b, "ts", oplog_last_ts(&server.oplog));
    put_int64(b, "t", 1);
    put_close(b, time);
    put_date(b, "lastWriteDate", (int64_t)(oplog_last_ts(&server.oplog) >> 32) * 1000);
    put_close(b, last);
}

static int do_hello(struct request *r, struct cdcd_buf *b)
{
    bool primary = server.mongos || server.standalone || !is_secondary();
    put_bool(b, "helloOk", true);
    put_bool(b, "ismaster", primary);
    put_bool(b, "isWritablePrimary", primary);
    if (server.mongos)
        put_string(b, "msg", "isdbgrid");
    else if (!server.standalone)
        put_set(b);
    put_int32(b, "maxBsonObjectSize", 16 << 20);
    put_int32(b, "maxMessageSizeBytes", MESSAGE_MAX);
    put_int32(b, "maxWriteBatchSize", 100000);
    put_date(b, "localTime", now_ms(CLOCK_REALTIME));
    put_int32(b, "logicalSessionTimeoutMinutes", 30);
    put_int32(b, "connectionId", (int32_t)r->connection->number);
    put_int32(b, "minWireVersion", 0);
    put_int32(b, "maxWireVersion", server.max_wire);
    put_bool(b, "readOnly", false);
    return 0;
}

static int do_build_info(struct request *r, struct cdcd_buf *b)
{
    char name[24];
    const char *s = server.version;
    (void)r;
    put_string(b, "version", server.version);
    size_t array = put_array(b, "versionArray");
    for (size_t i = 0; i < 4; i++) {
        char *end;
        put_index(name, sizeof name, i);
        put_int32(b, name, (int32_t)strtol(s, &end, 10));
        s = *end ? end + 1 : end;
    }
    put_close(b, array);
    put_close(b, put_array(b, "modules"));
    put_int32(b, "maxBsonObjectSize", 16 << 20);
    return 0;
}

static int do_get_parameter(struct request *r, struct cdcd_buf *b)
{
    size_t n = b->len;
    if (get(r->body, "featureCompatibilityVersion").type) {
        size_t at = put_document(b, "featureCompatibilityVersion");
        put_text(b, "version", server.version, strcspn(server.version, ".") + 2);
        put_close(b, at);
    }
    if (get(r->body, "minSnapshotHistoryWindowInSeconds").type)
        put_int32(b, "minSnapshotHistoryWindowInSeconds", 300);
    return b->len > n ? 0 : FAIL(r, INVALID_OPTIONS, "no option found to get");
}

static int do_connection_status(struct request *r, struct cdcd_buf *b)
{
    (void)r;
    size_t at = put_document(b, "authInfo");
    put_close(b, put_array(b, "authenticatedUsers"));
    put_close(b, put_array(b, "authenticatedUserRoles"));
    put_close(b, put_array(b, "authenticatedUserPrivileges"));
    put_close(b, at);
    return 0;
}

static int do_status(struct request *r, struct cdcd_buf *b)
{
    char me[32];
    if (server.mongos || server.standalone)
        return FAIL(r, 76, "not running with --replSet");
    snprintf(me, sizeof me, "127.0.0.1:%d", server.port);
    put_string(b, "set", server.set);
    put_int32(b, "myState", is_secondary() ? 2 : 1);
    size_t members = put_array(b, "members"), one = put_document(b, "0");
    put_int32(b, "_id", 0);
    put_string(b, "name", me);
    put_double(b, "health", 1);
    put_int32(b, "state", is_secondary() ? 2 : 1);
    put_string(b, "stateStr", is_secondary() ? "SECONDARY" : "PRIMARY");
    put_bool(b, "self", true);
    put_close(b, one);
    put_close(b, members);
    return 0;
}

/* ---- catalogue ---- */

static bool first_of_database(size_t i, size_t len)
{
    const char *ns = server.documents.items[i].ns;
    for (size_t k = 0; k < i; k++)
        if (strncmp(server.documents.items[k].ns, ns, len + 1) == 0)
            return false;
    return true;
}

static int do_list_databases(struct request *r, struct cdcd_buf *b)
{
    char name[24];
    size_t n = 0, array = put_array(b, "databases"), one;
    (void)r;
    for (size_t i = 0; i < server.documents.n; i++) {
        const char *ns = server.documents.items[i].ns;
        size_t len = strcspn(ns, ".");
        if (!first_of_database(i, len))
            continue;
        put_index(name, sizeof name, n++);
        one = put_document(b, name);
        put_text(b, "name", ns, len);
        put_int64(b, "sizeOnDisk", 4096);
        put_bool(b, "empty", false);
        put_close(b, one);
    }
    put_index(name, sizeof name, n);
    one = put_document(b, name);
    put_string(b, "name", "local");
    put_int64(b, "sizeOnDisk", 4096);
    put_bool(b, "empty", false);
    put_close(b, one);
    put_close(b, array);
    return 0;
}

static void put_collection(struct cdcd_buf *b, const char *ns, const char *name)
{
    uint64_t hash[2] = {14695981039346656037u, 1099511628211u};
    char uuid[4 + 1 + 16] = {16, 0, 0, 0, 4};

    put_string(b, "name", name);
    put_string(b, "type", "collection");
    size_t options = put_document(b, "options");
    if (is_oplog(ns))
        put_bool(b, "capped", true);
    put_close(b, options);
    size_t info = put_document(b, "info");
    put_bool(b, "readOnly", false);
    for (const char *p = ns; *p; p++) {
        hash[0] = (hash[0] ^ (uint8_t)*p) * 1099511628211u;
        hash[1] = hash[1] * 31 + hash[0];
    }
    memcpy(uuid + 5, hash, 16);
    put_fixed(b, "uuid", CDCD_BSON_BINARY, uuid, sizeof uuid);
    put_close(b, info);
    size_t index = put_document(b, "idIndex");
    put_int32(b, "v", 2);
    size_t key = put_document(b, "key");
    put_int32(b, "_id", 1);
    put_close(b, key);
    put_string(b, "name", "_id_");
    put_close(b, index);
}

static void list_collection(struct request *r, struct cursor *c, const char *ns)
{
    struct value wanted = get(get_document(r->body, "filter"), "name");
    size_t len = strlen(r->db);
    struct cdcd_buf b;

    if (strncmp(ns, r->db, len) != 0 || ns[len] != '.' ||
        (wanted.type == CDCD_BSON_STRING && !is_text(wanted, ns + len + 1)))
        return;
    cdcd_buf_init(&b, 0);
    size_t at = put_document(&b, NULL);
    put_collection(&b, ns, ns + len + 1);
    put_close(&b, at);
    list_one(c, cdcd_buf_slice(&b));
}

static int do_list_collections(struct request *r, struct cdcd_buf *b)
{
    char ns[256];
    snprintf(ns, sizeof ns, "%s.$cmd.listCollections", r->db);
    struct cursor *c = cursor_new(ns);
    for (size_t i = 0; i < server.documents.n; i++)
        list_collection(r, c, server.documents.items[i].ns);
    if (!server.standalone && !server.mongos)
        list_collection(r, c, "local.oplog.rs");
    put_batch(b, c, "firstBatch", -1, false);
    return 0;
}

#endif
