#include "settings.h"

#include <stdio.h>
#include <stdlib.h>
#include <yaml.h>

#define MAX_DEPTH    32
#define MAX_SETTINGS 4096 /* no config has as many: a guard against hostile files */

enum cdcd_rc cdcd_settings_error(const struct cdcd_settings *s, const struct cdcd_setting *at,
                                 struct cdcd_error *err, const char *fmt, ...)
{
    char reason[1024];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(reason, sizeof(reason), fmt, ap);
    va_end(ap);
    cdcd_error_set(err, CDCD_ERR_CONFIG, "%s", reason);
    if (at)
        cdcd_error_context(err, "%s", at->path);
    if (s->file && at && at->line)
        cdcd_error_context(err, "%s:%zu", s->file, at->line);
    else if (s->file)
        cdcd_error_context(err, "%s", s->file);
    return CDCD_ERROR;
}

void cdcd_settings_drop(struct cdcd_setting *it)
{
    free(it->path);
    free(it->value);
    for (size_t i = 0; i < it->list.n; i++)
        free(it->list.items[i]);
    free(it->list.items);
}

void cdcd_settings_free(struct cdcd_settings *s)
{
    for (size_t i = 0; i < s->n; i++)
        cdcd_settings_drop(&s->items[i]);
    free(s->items);
    free(s->file);
    *s = (struct cdcd_settings){0};
}

/* Takes what *it owns. */
static enum cdcd_rc settings_add(struct cdcd_settings *s, struct cdcd_setting *it,
                                 struct cdcd_error *err)
{
    for (size_t i = 0; i < s->n; i++) {
        if (strcmp(s->items[i].path, it->path) != 0)
            continue;
        if (it->kind == CDCD_SETTING_EMPTY && s->items[i].kind == CDCD_SETTING_EMPTY)
            break;
        cdcd_settings_error(s, it, err, "is given twice, first on line %zu", s->items[i].line);
        cdcd_settings_drop(it);
        return CDCD_ERROR;
    }
    if (s->n == MAX_SETTINGS) {
        cdcd_settings_drop(it);
        return cdcd_settings_error(s, NULL, err, "more than %d keys", MAX_SETTINGS);
    }
    if (s->n == s->cap) {
        s->cap = s->cap ? 2 * s->cap : 32;
        s->items = cdcd_xrealloc(s->items, s->cap * sizeof(s->items[0]));
    }
    s->items[s->n++] = *it;
    return CDCD_OK;
}

enum cdcd_rc cdcd_settings_add_arg(struct cdcd_settings *s, const char *pair,
                                   struct cdcd_error *err)
{
    const char *equals = strchr(pair, '=');
    if (!equals || equals == pair)
        return cdcd_error_set(err, CDCD_ERR_CONFIG, "%s: expected KEY=VALUE", pair);
    struct cdcd_setting it = {
        .path = cdcd_xstrndup(pair, (size_t)(equals - pair)),
        .kind = CDCD_SETTING_SCALAR,
        .value = cdcd_xstrdup(equals + 1),
        .verbatim = true,
    };
    return settings_add(s, &it, err);
}

/* ---- YAML ---- */

struct reader {
    yaml_parser_t parser;
    struct cdcd_settings *out;
    struct cdcd_error *err;
};

static size_t event_line(const yaml_event_t *e)
{
    return e->start_mark.line + 1;
}

static enum cdcd_rc reader_error(struct reader *r, size_t line, const char *path, const char *text)
{
    cdcd_error_set(r->err, CDCD_ERR_CONFIG, "%s", text);
    if (path && *path)
        cdcd_error_context(r->err, "%s", path);
    return cdcd_error_context(r->err, "%s:%zu", r->out->file, line);
}

static enum cdcd_rc reader_next(struct reader *r, yaml_event_t *e)
{
    if (yaml_parser_parse(&r->parser, e))
        return CDCD_OK;
    const yaml_parser_t *p = &r->parser;
    char text[512];
    if (p->context)
        snprintf(text, sizeof(text), "%s %s", p->problem ? p->problem : "not YAML", p->context);
    else
        snprintf(text, sizeof(text), "%s", p->problem ? p->problem : "not YAML");
    return reader_error(r, p->problem_mark.line + 1, NULL, text);
}

/* Plain (unquoted) scalars that mean nothing was given. */
static bool scalar_is_null(const yaml_event_t *e)
{
    const char *s = (const char *)e->data.scalar.value;
    if (e->data.scalar.style != YAML_PLAIN_SCALAR_STYLE)
        return false;
    return !*s || strcmp(s, "~") == 0 || strcmp(s, "null") == 0 || strcmp(s, "NULL") == 0;
}

static bool scalar_has_nul(const yaml_event_t *e)
{
    return memchr(e->data.scalar.value, 0, e->data.scalar.length) != NULL;
}

static enum cdcd_rc read_list(struct reader *r, const char *path, size_t line)
{
    struct cdcd_setting it = {.path = cdcd_xstrdup(path), .kind = CDCD_SETTING_LIST, .line = line};
    for (;;) {
        yaml_event_t e;
        if (reader_next(r, &e) != CDCD_OK)
            break;
        if (e.type == YAML_SEQUENCE_END_EVENT) {
            yaml_event_delete(&e);
            return settings_add(r->out, &it, r->err);
        }
        if (e.type != YAML_SCALAR_EVENT || scalar_has_nul(&e)) {
            reader_error(r, event_line(&e), path, "a list may hold only plain values");
            yaml_event_delete(&e);
            break;
        }
        it.list.items = cdcd_xrealloc(it.list.items, (it.list.n + 1) * sizeof(it.list.items[0]));
        it.list.items[it.list.n++] = cdcd_xstrdup((const char *)e.data.scalar.value);
        yaml_event_delete(&e);
    }
    cdcd_settings_drop(&it);
    return CDCD_ERROR;
}

static enum cdcd_rc read_map(struct reader *r, const char *prefix, size_t line, int depth);

static enum cdcd_rc add_empty(struct reader *r, const char *path, size_t line)
{
    struct cdcd_setting it = {.path = cdcd_xstrdup(path), .kind = CDCD_SETTING_EMPTY, .line = line};
    return settings_add(r->out, &it, r->err);
}

static enum cdcd_rc read_scalar(struct reader *r, const char *path, const yaml_event_t *e,
                                size_t line)
{
    if (scalar_has_nul(e))
        return reader_error(r, line, path, "holds a NUL character");
    if (scalar_is_null(e))
        return add_empty(r, path, line);
    struct cdcd_setting it = {
        .path = cdcd_xstrdup(path),
        .kind = CDCD_SETTING_SCALAR,
        .value = cdcd_xstrdup((const char *)e->data.scalar.value),
        .line = line,
    };
    return settings_add(r->out, &it, r->err);
}

/* The value of the key `path`, whose key stands on `line`. */
static enum cdcd_rc read_value(struct reader *r, const char *path, size_t line, int depth)
{
    yaml_event_t e;
    enum cdcd_rc rc = reader_next(r, &e);
    if (rc != CDCD_OK)
        return rc;
    switch (e.type) {
    case YAML_SCALAR_EVENT: rc = read_scalar(r, path, &e, line); break;
    case YAML_SEQUENCE_START_EVENT: rc = read_list(r, path, line); break;
    case YAML_MAPPING_START_EVENT: rc = read_map(r, path, line, depth + 1); break;
    case YAML_ALIAS_EVENT:
        rc = reader_error(r, line, path, "YAML aliases are not supported; write the value out");
        break;
    default: rc = reader_error(r, line, path, "expected a value"); break;
    }
    yaml_event_delete(&e);
    return rc;
}

static enum cdcd_rc read_key(struct reader *r, const char *prefix, const yaml_event_t *e, int depth)
{
    const char *key = (const char *)e->data.scalar.value;
    size_t line = event_line(e);
    if (!*key || scalar_has_nul(e))
        return reader_error(r, line, prefix, "a key may not be empty");
    char *path = *prefix ? cdcd_xasprintf("%s.%s", prefix, key) : cdcd_xstrdup(key);
    enum cdcd_rc rc = strlen(path) > 500 ? reader_error(r, line, prefix, "a key is too long")
                                         : read_value(r, path, line, depth);
    free(path);
    return rc;
}

static enum cdcd_rc read_map(struct reader *r, const char *prefix, size_t line, int depth)
{
    if (depth > MAX_DEPTH)
        return reader_error(r, line, prefix, "maps are nested too deeply");
    for (size_t n = 0;; n++) {
        yaml_event_t e;
        enum cdcd_rc rc = reader_next(r, &e);
        if (rc != CDCD_OK)
            return rc;
        bool end = e.type == YAML_MAPPING_END_EVENT;
        if (end)
            rc = n == 0 && *prefix ? add_empty(r, prefix, line) : CDCD_OK;
        else if (e.type == YAML_SCALAR_EVENT)
            rc = read_key(r, prefix, &e, depth);
        else
            rc = reader_error(r, event_line(&e), prefix, "a key must be a plain string");
        yaml_event_delete(&e);
        if (end || rc != CDCD_OK)
            return rc;
    }
}

static enum cdcd_rc expect(struct reader *r, yaml_event_type_t type, const char *otherwise)
{
    yaml_event_t e;
    enum cdcd_rc rc = reader_next(r, &e);
    if (rc != CDCD_OK)
        return rc;
    if (e.type != type)
        rc = reader_error(r, event_line(&e), NULL, otherwise);
    yaml_event_delete(&e);
    return rc;
}

static enum cdcd_rc read_document(struct reader *r)
{
    static const char empty[] = "the file is empty; `cdcd config --sample postgres` prints one";
    enum cdcd_rc rc;
    if ((rc = expect(r, YAML_STREAM_START_EVENT, empty)) != CDCD_OK ||
        (rc = expect(r, YAML_DOCUMENT_START_EVENT, empty)) != CDCD_OK ||
        (rc = expect(r, YAML_MAPPING_START_EVENT, "expected keys with values")) != CDCD_OK ||
        (rc = read_map(r, "", 1, 0)) != CDCD_OK ||
        (rc = expect(r, YAML_DOCUMENT_END_EVENT, "expected the end")) != CDCD_OK)
        return rc;
    return expect(r, YAML_STREAM_END_EVENT, "only one YAML document is allowed in a file");
}

enum cdcd_rc cdcd_settings_parse(struct cdcd_settings *s, const char *name, const char *text,
                                 size_t len, struct cdcd_error *err)
{
    struct reader r = {.out = s, .err = err};
    *s = (struct cdcd_settings){.file = cdcd_xstrdup(name)};
    if (!yaml_parser_initialize(&r.parser)) {
        cdcd_settings_free(s);
        return cdcd_error_set(err, CDCD_ERR_FATAL, "%s: cannot start the YAML parser", name);
    }
    yaml_parser_set_input_string(&r.parser, (const unsigned char *)text, len);
    enum cdcd_rc rc = read_document(&r);
    yaml_parser_delete(&r.parser);
    if (rc != CDCD_OK)
        cdcd_settings_free(s);
    return rc;
}
