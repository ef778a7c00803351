/* Whatever a record holds, it becomes an error or an action whose document is JSON and whose id is
 * not too long. Input: a byte of options, then parts with a NUL behind each: schema topic's value,
 * key, value. */
#include "../../plugins/elasticsearch/convert.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static uint64_t version(struct cdcd_pos pos)
{
    return pos.commit >> 1;
}

static struct cdcd_slice part(const char **p, const char *end)
{
    const char *nul = memchr(*p, 0, (size_t)(end - *p));
    struct cdcd_slice s = {*p, (size_t)((nul ? nul : end) - *p)};
    *p = nul ? nul + 1 : end;
    if (!s.len)
        s.ptr = NULL;
    return s;
}

static void check(const struct es_action *a)
{
    struct cdcd_json_value v;
    if (a->kind != ES_INDEX && a->kind != ES_DELETE)
        return;
    if (!a->id.len || a->id.len > ES_ID_MAX || !a->index.len || a->version > INT64_MAX)
        abort();
    if (a->kind == ES_INDEX && (!cdcd_json_scan(a->source, &v) || v.kind != CDCD_JSON_OBJECT))
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (!size)
        return 0;
    const char *p = (const char *)data + 1, *end = (const char *)data + size;
    struct es_config cfg = {.json_mode = data[0] & 1,
                            .dots_mode = data[0] >> 1 & 1,
                            .record_form = data[0] >> 2 & 1,
                            .index = (char *)""};
    struct cdcd_sink_env env = {.pipeline = "fuzz", .topic_prefix = "srv", .version = version};
    struct cdcd_header headers[] = {
        {cdcd_slice_str("cdcd.pos"), cdcd_slice_str("0000000000000007-1-000000000000000C"), false},
        {cdcd_slice_str("cdcd.schema"), cdcd_slice_str("0000000000000001"), false},
    };
    struct cdcd_topic schemas = {.name = cdcd_slice_str(CDCD_SCHEMA_TOPIC)};
    struct cdcd_topic topic = {.name = cdcd_slice_str("srv.public.t")};
    struct cdcd_record learn = {
        .topic = &schemas, .key = headers[1].value, .value = part(&p, end), .partition = -1};
    struct cdcd_record r = {
        .topic = &topic, .headers = headers, .partition = data[0] & 8 ? 0 : -1, .offset = 5};
    struct cdcd_error err;
    struct es_converter *c;
    struct es_action out;
    struct cdcd_arena a;
    if (es_converter_new(&cfg, &env, &c, &err) != CDCD_OK)
        abort();
    cdcd_arena_init(&a, 256);
    bool learned = learn.value.ptr && es_convert(c, &learn, &a, &out, &err) == CDCD_OK;
    r.nheaders = learned ? 2 : 1;
    while (p < end) {
        r.key = part(&p, end);
        r.value = part(&p, end);
        if (es_convert(c, &r, &a, &out, &err) == CDCD_OK)
            check(&out);
    }
    cdcd_arena_free(&a);
    es_converter_free(c);
    return 0;
}
