/*
 * The parts of a record: position, schema and payload, members of an envelope.
 */
#include "convert.h"

static const struct cdcd_json_value nothing = {.kind = CDCD_JSON_NULL};

static bool read_hex(struct cdcd_slice s, size_t at, uint64_t *out)
{
    uint64_t v = 0;
    for (size_t i = at; i < at + 16; i++) {
        unsigned c = (unsigned char)s.ptr[i];
        unsigned digit = c >= '0' && c <= '9'   ? c - '0'
                         : c >= 'A' && c <= 'F' ? c - 'A' + 10
                         : c >= 'a' && c <= 'f' ? c - 'a' + 10
                                                : 16;
        if (digit > 15)
            return false;
        v = v << 4 | digit;
    }
    *out = v;
    return true;
}

bool es_pos_read(struct cdcd_slice s, struct cdcd_pos *out)
{
    if (s.len != 35 || s.ptr[16] != '-' || s.ptr[18] != '-' ||
        (s.ptr[17] != '0' && s.ptr[17] != '1') || !read_hex(s, 0, &out->commit) ||
        !read_hex(s, 19, &out->ordinal))
        return false;
    out->ordinal /= 4;
    out->stream = s.ptr[17] == '1';
    return true;
}

bool es_unwrap(struct cdcd_json_value *v, struct cdcd_slice *schema)
{
    struct cdcd_json_iter it;
    struct cdcd_json_value name, member, s = nothing, payload = nothing;
    unsigned n = 0, found = 0;
    *schema = (struct cdcd_slice){NULL, 0};
    if (v->kind != CDCD_JSON_OBJECT)
        return false;
    cdcd_json_iter_init(&it, v);
    while (n < 3 && cdcd_json_iter_next(&it, &name, &member)) {
        n++;
        if (es_string_is(&name, "schema")) {
            s = member;
            found |= 1;
        } else if (es_string_is(&name, "payload")) {
            payload = member;
            found |= 2;
        } else {
            return false;
        }
    }
    if (n != 2 || found != 3 || (s.kind != CDCD_JSON_OBJECT && s.kind != CDCD_JSON_NULL))
        return false;
    if (s.kind == CDCD_JSON_OBJECT)
        *schema = s.raw;
    *v = payload;
    return true;
}

static void take_member(struct es_envelope *e, const struct cdcd_json_value *name,
                        const struct cdcd_json_value *value)
{
#define MEMBER(name, field)                                                   \
    {                                                                         \
        "\"" name "\"", sizeof(name) + 1, offsetof(struct es_envelope, field) \
    }
    static const struct {
        const char *raw;
        size_t len, offset;
    } members[] = {
        MEMBER("after", after),     MEMBER("op", op),
        MEMBER("source", source),   MEMBER("updateDescription", update),
        MEMBER("message", message), MEMBER("status", status),
        MEMBER("ddl", ddl),         MEMBER("tableChanges", changes),
        MEMBER("ts_ms", ts_ms),
    };
#undef MEMBER
    for (size_t i = 0; i < sizeof members / sizeof members[0]; i++) {
        if (name->raw.len == members[i].len &&
            memcmp(name->raw.ptr, members[i].raw, members[i].len) == 0) {
            memcpy((char *)e + members[i].offset, value, sizeof *value);
            return;
        }
    }
}

void es_envelope_read(const struct cdcd_json_value *v, const struct cdcd_json_members *members,
                      struct es_envelope *e)
{
    struct cdcd_json_iter it;
    struct cdcd_json_value name, value;
    *e = (struct es_envelope){nothing, nothing, nothing, nothing, nothing,
                              nothing, nothing, nothing, nothing};
    if (members && members->n <= CDCD_JSON_MEMBERS) {
        for (unsigned i = 0; i < members->n; i++)
            take_member(e, &members->names[i], &members->values[i]);
        return;
    }
    cdcd_json_iter_init(&it, v);
    while (cdcd_json_iter_next(&it, &name, &value))
        take_member(e, &name, &value);
}
