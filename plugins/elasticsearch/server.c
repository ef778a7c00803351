/*
 * What the server is.
 */
#include "sink.h"

#include <stdio.h>
#include <stdlib.h>

static void take_text(const struct cdcd_json_value *o, const char *name, char *out, size_t size,
                      struct cdcd_arena *a)
{
    struct cdcd_json_value v;
    out[0] = 0;
    if (!cdcd_json_member(o, name, &v) || v.kind != CDCD_JSON_STRING)
        return;
    struct cdcd_slice text = cdcd_json_text(&v, a);
    snprintf(out, size, "%.*s", (int)text.len, text.ptr);
}

/* "2.19.6" -> 21906; "8.0.0-rc1" too. */
static int parse_version(const char *text)
{
    int part[3] = {0};
    for (int i = 0; i < 3; i++) {
        char *end;
        part[i] = (int)strtol(text, &end, 10);
        text = *end == '.' ? end + 1 : end;
    }
    return part[0] * 10000 + part[1] * 100 + part[2];
}

static bool parse_info(struct cdcd_slice body, struct es_server *out)
{
    struct cdcd_json_value root, version;
    char distribution[32], tagline[64];
    if (!cdcd_json_scan(body, &root) || !cdcd_json_member(&root, "version", &version))
        return false;
    struct cdcd_arena a;
    cdcd_arena_init(&a, 1024);
    take_text(&version, "number", out->text, sizeof out->text, &a);
    take_text(&version, "distribution", distribution, sizeof distribution, &a);
    take_text(&root, "tagline", tagline, sizeof tagline, &a);
    take_text(&root, "name", out->name, sizeof out->name, &a);
    take_text(&root, "cluster_name", out->cluster, sizeof out->cluster, &a);
    cdcd_arena_free(&a);
    /* An OpenSearch that hides its version from old clients still has its tagline. */
    out->opensearch = strcmp(distribution, "opensearch") == 0 || strstr(tagline, "OpenSearch");
    out->version = parse_version(out->text);
    return out->version > 0;
}

enum cdcd_rc es_server_info(struct es_http *h, struct es_server *out, struct cdcd_error *err)
{
    struct es_request q = {.method = "GET", .path = (char[]){"/"}};
    struct es_reply r;
    *out = (struct es_server){0};
    if (es_http_do(h, &q, &r, err) != CDCD_OK)
        return CDCD_ERROR;
    enum cdcd_rc rc = CDCD_OK;
    if (r.status != 200)
        rc = es_fail(err, &r, "GET /");
    else if (!parse_info(cdcd_buf_slice(&r.body), out))
        rc = cdcd_error_set(err, CDCD_ERR_CONFIG,
                            "what answers at sink.elasticsearch.url is neither OpenSearch nor "
                            "Elasticsearch: GET / gives no version");
    else if (out->opensearch ? out->version < 10000 : out->version < 70000)
        rc = cdcd_error_set(err, CDCD_ERR_CONFIG,
                            "the server is %s %s; OpenSearch 1 to 3 and Elasticsearch 7 to 9 are "
                            "supported",
                            out->opensearch ? "OpenSearch" : "Elasticsearch", out->text);
    es_reply_free(&r);
    return rc;
}
