#include "settings.h"

#include <cdcd/pattern.h>

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define SECRET_FILE_MAX (64u << 10)

/* ---- suggestions ---- */

/* Edit distance with transpositions, up to 63 characters; more is no likeness at all. */
static unsigned edit_distance(const char *a, const char *b)
{
    size_t na = strlen(a), nb = strlen(b);
    unsigned rows[3][64];
    if (na > 63 || nb > 63)
        return 99;
    unsigned *before = rows[0], *last = rows[1], *row = rows[2];
    for (size_t j = 0; j <= nb; j++)
        last[j] = (unsigned)j;
    for (size_t i = 1; i <= na; i++) {
        row[0] = (unsigned)i;
        for (size_t j = 1; j <= nb; j++) {
            unsigned best = last[j - 1] + (a[i - 1] != b[j - 1]);
            if (last[j] + 1 < best)
                best = last[j] + 1;
            if (row[j - 1] + 1 < best)
                best = row[j - 1] + 1;
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] &&
                before[j - 2] + 1 < best)
                best = before[j - 2] + 1;
            row[j] = best;
        }
        unsigned *free_row = before;
        before = last;
        last = row;
        row = free_row;
    }
    return last[nb];
}

/* Both are dotted names of which one is the other's beginning or end. */
static bool is_part_of(const char *part, const char *whole)
{
    size_t np = strlen(part), nw = strlen(whole);
    if (np < 3 || np >= nw)
        return false;
    if (strncmp(whole, part, np) == 0 && whole[np] == '.')
        return true;
    return strcmp(whole + nw - np, part) == 0 && whole[nw - np - 1] == '.';
}

const char *cdcd_option_suggest(const struct cdcd_option *table, const char *name)
{
    const char *best = NULL;
    unsigned best_distance = strlen(name) < 6 ? 3 : (unsigned)strlen(name) / 3 + 1;
    for (const struct cdcd_option *o = table; o->name; o++) {
        unsigned d = edit_distance(name, o->name);
        unsigned part = is_part_of(name, o->name) ? 1 : is_part_of(o->name, name) ? 2 : 99;
        d = part < d ? part : d;
        if (d < best_distance) {
            best = o->name;
            best_distance = d;
        }
    }
    return best;
}

/* ---- expansion ---- */

static bool expand_file(struct cdcd_buf *out, const char *path, char **why)
{
    char text[4096];
    size_t total = 0;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        *why = cdcd_xasprintf("cannot read the file %s: %s", path, strerror(errno));
        return false;
    }
    ssize_t n;
    while ((n = read(fd, text, sizeof(text))) > 0 && total <= SECRET_FILE_MAX) {
        cdcd_buf_add(out, text, (size_t)n);
        total += (size_t)n;
    }
    int saved = errno;
    close(fd);
    if (n < 0)
        *why = cdcd_xasprintf("cannot read the file %s: %s", path, strerror(saved));
    else if (total > SECRET_FILE_MAX)
        *why = cdcd_xasprintf("the file %s is larger than 64 KB", path);
    else if (out->len && memchr(out->ptr, 0, out->len))
        *why = cdcd_xasprintf("the file %s holds a NUL character", path);
    if (*why)
        return false;
    if (total && out->ptr[out->len - 1] == '\n')
        out->len--;
    return true;
}

static bool expand_variable(struct cdcd_buf *out, char *name, char **why)
{
    char *otherwise = strstr(name, ":-");
    if (otherwise) {
        *otherwise = 0;
        otherwise += 2;
    }
    const char *value = getenv(name);
    if (otherwise && (!value || !*value))
        value = otherwise;
    if (!*name || !value) {
        *why = cdcd_xasprintf("the environment variable %s is not set", name);
        return false;
    }
    cdcd_buf_adds(out, value);
    return true;
}

static bool expand_one(struct cdcd_buf *out, char *name, char **why)
{
    if (strncmp(name, "file:", 5) == 0)
        return expand_file(out, name + 5, why);
    if (!isalpha((unsigned char)*name) && *name != '_') {
        *why = cdcd_xasprintf("${%s} names no variable; write $${ for a literal ${", name);
        return false;
    }
    return expand_variable(out, name, why);
}

char *cdcd_option_expand(const char *text, char **why)
{
    struct cdcd_buf out;
    cdcd_buf_init(&out, 0);
    *why = NULL;
    while (*text && !*why) {
        const char *end;
        if (strncmp(text, "$${", 3) == 0) {
            cdcd_buf_adds(&out, "${");
            text += 3;
        } else if (strncmp(text, "${", 2) != 0) {
            cdcd_buf_add(&out, text++, 1);
        } else if (!(end = strchr(text, '}'))) {
            *why = cdcd_xstrdup("${ without }; write $${ for a literal ${");
        } else {
            char *name = cdcd_xstrndup(text + 2, (size_t)(end - text) - 2);
            expand_one(&out, name, why);
            free(name);
            text = end + 1;
        }
    }
    char *result = *why ? NULL : cdcd_xstrdup(cdcd_buf_cstr(&out));
    cdcd_buf_free(&out);
    return result;
}

/* ---- values ---- */

struct unit {
    const char *name;
    int64_t factor;
};

static const struct unit size_units[] = {
    {"", 1},
    {"B", 1},
    {"K", 1 << 10},
    {"KB", 1 << 10},
    {"KiB", 1 << 10},
    {"M", 1 << 20},
    {"MB", 1 << 20},
    {"MiB", 1 << 20},
    {"G", 1 << 30},
    {"GB", 1 << 30},
    {"GiB", 1 << 30},
    {"T", INT64_C(1) << 40},
    {"TB", INT64_C(1) << 40},
    {NULL, 0},
};
static const struct unit duration_units[] = {
    {"", 1},        {"ms", 1},      {"s", 1000},     {"m", 60000},
    {"min", 60000}, {"h", 3600000}, {"d", 86400000}, {NULL, 0},
};
static const struct unit no_units[] = {{"", 1}, {NULL, 0}};

static bool parse_number(const char *text, const struct unit *units, int64_t *out)
{
    char *end;
    errno = 0;
    long long v = strtoll(text, &end, 10);
    if (end == text || errno || isspace((unsigned char)*text))
        return false;
    while (*end == ' ')
        end++;
    for (const struct unit *u = units; u->name; u++) {
        if (strcasecmp(end, u->name) == 0)
            return !__builtin_mul_overflow((int64_t)v, u->factor, out);
    }
    return false;
}

static bool parse_bool(const char *text, bool *out)
{
    static const char *const yes[] = {"true", "yes", "on"}, *const no[] = {"false", "no", "off"};
    for (size_t i = 0; i < 3; i++) {
        if (strcasecmp(text, yes[i]) == 0 || strcasecmp(text, no[i]) == 0) {
            *out = strcasecmp(text, yes[i]) == 0;
            return true;
        }
    }
    return false;
}

static void list_add(struct cdcd_strlist *l, char *item)
{
    l->items = cdcd_xrealloc(l->items, (l->n + 1) * sizeof(l->items[0]));
    l->items[l->n++] = item;
}

/* Splits at commas; `\,` is a comma of the item. Spaces around items are cut. */
static void list_split(struct cdcd_strlist *l, const char *text)
{
    while (*text) {
        struct cdcd_buf item;
        cdcd_buf_init(&item, 0);
        while (isspace((unsigned char)*text))
            text++;
        for (; *text && *text != ','; text++) {
            if (text[0] == '\\' && text[1] == ',')
                text++;
            cdcd_buf_add(&item, text, 1);
        }
        while (item.len && isspace((unsigned char)item.ptr[item.len - 1]))
            item.len--;
        if (item.len)
            list_add(l, cdcd_xstrdup(cdcd_buf_cstr(&item)));
        cdcd_buf_free(&item);
        if (*text == ',')
            text++;
    }
}

/* ---- one option ---- */

struct apply {
    const struct cdcd_settings *settings;
    const struct cdcd_setting *at; /* NULL: a default */
    struct cdcd_error *err;
};

static enum cdcd_rc wrong(const struct apply *a, const struct cdcd_option *o, const char *text,
                          const char *expected)
{
    if (o->flags & CDCD_OPT_SECRET)
        return cdcd_settings_error(a->settings, a->at, a->err, "expected %s", expected);
    return cdcd_settings_error(a->settings, a->at, a->err, "expected %s, not \"%s\"", expected,
                               text);
}

static void format_number(char *out, size_t size, enum cdcd_option_type type, int64_t v)
{
    static const struct unit sizes[] = {
        {"GB", 1 << 30}, {"MB", 1 << 20}, {"KB", 1 << 10}, {NULL, 0}};
    static const struct unit durations[] = {
        {"h", 3600000}, {"m", 60000}, {"s", 1000}, {"ms", 1}, {NULL, 0}};
    const struct unit *u = type == CDCD_OPT_SIZE       ? sizes
                           : type == CDCD_OPT_DURATION ? durations
                                                       : no_units + 1;
    for (; u->name; u++) {
        if (v && v % u->factor == 0) {
            snprintf(out, size, "%lld%s", (long long)(v / u->factor), u->name);
            return;
        }
    }
    snprintf(out, size, "%lld", (long long)v);
}

static enum cdcd_rc apply_number(const struct apply *a, const struct cdcd_option *o,
                                 const char *text, void *field)
{
    const struct unit *units = no_units;
    const char *expected = "a whole number";
    int64_t v;
    if (o->type == CDCD_OPT_SIZE) {
        units = size_units;
        expected = "a size such as 64KB, 16MB or 2GB";
    } else if (o->type == CDCD_OPT_DURATION) {
        units = duration_units;
        expected = "a time such as 500ms, 10s, 5m or 1h";
    }
    if (!parse_number(text, units, &v))
        return wrong(a, o, text, expected);
    if (v < o->min || (o->max && v > o->max)) {
        char low[32], high[32];
        format_number(low, sizeof(low), o->type, o->min);
        format_number(high, sizeof(high), o->type, o->max);
        if (o->max)
            return cdcd_settings_error(a->settings, a->at, a->err,
                                       "%s is out of range: expected %s to %s", text, low, high);
        return cdcd_settings_error(a->settings, a->at, a->err,
                                   "%s is out of range: expected %s or more", text, low);
    }
    memcpy(field, &v, sizeof(v));
    return CDCD_OK;
}

static enum cdcd_rc apply_enum(const struct apply *a, const struct cdcd_option *o, const char *text,
                               void *field)
{
    struct cdcd_buf list;
    cdcd_buf_init(&list, 0);
    for (int i = 0; o->values[i]; i++) {
        if (strcasecmp(text, o->values[i]) == 0) {
            memcpy(field, &i, sizeof(i));
            cdcd_buf_free(&list);
            return CDCD_OK;
        }
        cdcd_buf_addf(&list, "%s%s", !i ? "" : o->values[i + 1] ? ", " : " or ", o->values[i]);
    }
    enum cdcd_rc rc = wrong(a, o, text, cdcd_buf_cstr(&list));
    cdcd_buf_free(&list);
    return rc;
}

static enum cdcd_rc check_regex(const struct apply *a, const char *pattern)
{
    regex_t re;
    char why[CDCD_PATTERN_WHY];
    if (cdcd_pattern_compile(pattern, false, &re, why)) {
        regfree(&re);
        return CDCD_OK;
    }
    return cdcd_settings_error(a->settings, a->at, a->err,
                               "\"%s\" is no valid extended regular expression: %s", pattern, why);
}

static void list_clear(struct cdcd_strlist *l)
{
    for (size_t i = 0; i < l->n; i++)
        free(l->items[i]);
    free(l->items);
    *l = (struct cdcd_strlist){0};
}

static enum cdcd_rc finish_list(const struct apply *a, const struct cdcd_option *o,
                                const struct cdcd_strlist *l)
{
    for (size_t i = 0; (o->flags & CDCD_OPT_REGEX) && i < l->n; i++) {
        if (check_regex(a, l->items[i]) != CDCD_OK)
            return CDCD_ERROR;
    }
    return CDCD_OK;
}

static enum cdcd_rc apply_text(const struct apply *a, const struct cdcd_option *o, const char *text,
                               void *target)
{
    void *field = (char *)target + o->offset;
    bool b;
    switch (o->type) {
    case CDCD_OPT_STR:
        if ((o->flags & CDCD_OPT_REGEX) && check_regex(a, text) != CDCD_OK)
            return CDCD_ERROR;
        if ((o->flags & CDCD_OPT_REQUIRED) && !*text)
            return cdcd_settings_error(a->settings, a->at, a->err, "may not be empty");
        free(*(char **)field);
        *(char **)field = cdcd_xstrdup(text);
        return CDCD_OK;
    case CDCD_OPT_BOOL:
        if (!parse_bool(text, &b))
            return wrong(a, o, text, "true or false");
        memcpy(field, &b, sizeof(b));
        return CDCD_OK;
    case CDCD_OPT_ENUM: return apply_enum(a, o, text, field);
    case CDCD_OPT_LIST:
        list_clear(field);
        list_split(field, text);
        return finish_list(a, o, field);
    case CDCD_OPT_MAP:
        return cdcd_settings_error(a->settings, a->at, a->err, "expected keys with values");
    default: return apply_number(a, o, text, field);
    }
}

/* What ${...} stands for, or the text itself. NULL: *err is set. Malloc'ed. */
static char *expanded(const struct apply *a, const struct cdcd_option *o, const char *text)
{
    char *why;
    if (a->at->verbatim || (o->flags & CDCD_OPT_TEMPLATE))
        return cdcd_xstrdup(text);
    char *value = cdcd_option_expand(text, &why);
    if (!value)
        cdcd_settings_error(a->settings, a->at, a->err, "%s", why);
    free(why);
    return value;
}

static enum cdcd_rc apply_list(const struct apply *a, const struct cdcd_option *o, void *target)
{
    struct cdcd_strlist *field = (void *)((char *)target + o->offset);
    if (o->type != CDCD_OPT_LIST)
        return cdcd_settings_error(a->settings, a->at, a->err, "expected one value, not a list");
    list_clear(field);
    for (size_t i = 0; i < a->at->list.n; i++) {
        char *value = expanded(a, o, a->at->list.items[i]);
        if (!value)
            return CDCD_ERROR;
        list_add(field, value);
    }
    return finish_list(a, o, field);
}

static enum cdcd_rc apply_setting(const struct apply *a, const struct cdcd_option *o, void *target)
{
    if (a->at->kind == CDCD_SETTING_LIST)
        return apply_list(a, o, target);
    if (a->at->kind == CDCD_SETTING_EMPTY) {
        if (o->type == CDCD_OPT_LIST || o->type == CDCD_OPT_MAP)
            return CDCD_OK;
        return cdcd_settings_error(a->settings, a->at, a->err,
                                   "has no value; give one or remove the line");
    }
    char *value = expanded(a, o, a->at->value);
    if (!value)
        return CDCD_ERROR;
    enum cdcd_rc rc = apply_text(a, o, value, target);
    free(value);
    return rc;
}

/* `properties.compression.type` is the item `compression.type` of the map `properties`. */
static enum cdcd_rc apply_map_item(const struct apply *a, const struct cdcd_option *o,
                                   const char *key, void *target)
{
    struct cdcd_strmap *m = (void *)((char *)target + o->offset);
    if (a->at->kind != CDCD_SETTING_SCALAR)
        return cdcd_settings_error(a->settings, a->at, a->err, "expected one value");
    char *value = expanded(a, o, a->at->value);
    if (!value)
        return CDCD_ERROR;
    m->items = cdcd_xrealloc(m->items, (m->n + 1) * sizeof(m->items[0]));
    m->items[m->n++] = (struct cdcd_strpair){cdcd_xstrdup(key), value};
    return CDCD_OK;
}

/* ---- tables ---- */

static const struct cdcd_option *find_option(const struct cdcd_option *table, const char *name,
                                             const char **map_key)
{
    *map_key = NULL;
    for (const struct cdcd_option *o = table; o->name; o++) {
        size_t n = strlen(o->name);
        if (strcmp(o->name, name) == 0)
            return o;
        if (o->type == CDCD_OPT_MAP && strncmp(o->name, name, n) == 0 && name[n] == '.') {
            *map_key = name + n + 1;
            return o;
        }
    }
    return NULL;
}

static enum cdcd_rc unknown_option(const struct apply *a, const struct cdcd_option *table,
                                   const char *prefix, const char *name)
{
    const char *near = cdcd_option_suggest(table, name);
    if (near)
        return cdcd_settings_error(a->settings, a->at, a->err, "unknown key; did you mean %s%s?",
                                   prefix, near);
    return cdcd_settings_error(a->settings, a->at, a->err,
                               "unknown key; `cdcd config --reference` lists all keys");
}

static enum cdcd_rc apply_defaults(const struct cdcd_option *table, void *target,
                                   const struct cdcd_settings *s, struct cdcd_error *err)
{
    for (const struct cdcd_option *o = table; o->name; o++) {
        struct apply a = {s, NULL, err};
        if (o->default_ && o->type != CDCD_OPT_MAP &&
            apply_text(&a, o, o->default_, target) != CDCD_OK)
            return cdcd_error_context(err, "default of %s", o->name);
    }
    return CDCD_OK;
}

static enum cdcd_rc check_required(const struct cdcd_option *table, const struct cdcd_settings *s,
                                   const char *prefix, struct cdcd_error *err)
{
    for (const struct cdcd_option *o = table; o->name; o++) {
        if (!(o->flags & CDCD_OPT_REQUIRED))
            continue;
        char *path = cdcd_xasprintf("%s%s", prefix, o->name);
        bool found = false;
        for (size_t i = 0; i < s->n && !found; i++)
            found = strcmp(s->items[i].path, path) == 0 && s->items[i].kind != CDCD_SETTING_EMPTY;
        if (!found)
            cdcd_settings_error(s, NULL, err, "%s: is required: %s", path, o->doc);
        free(path);
        if (!found)
            return CDCD_ERROR;
    }
    return CDCD_OK;
}

enum cdcd_rc cdcd_options_apply(const struct cdcd_option *table, void *target,
                                const struct cdcd_settings *s, const char *prefix,
                                bool (*skip)(const char *path), struct cdcd_error *err)
{
    size_t n = strlen(prefix);
    if (apply_defaults(table, target, s, err) != CDCD_OK)
        return CDCD_ERROR;
    for (size_t i = 0; i < s->n; i++) {
        struct apply a = {s, &s->items[i], err};
        const char *path = a.at->path, *map_key;
        if (strncmp(path, prefix, n) != 0 || (skip && skip(path)))
            continue;
        const struct cdcd_option *o = find_option(table, path + n, &map_key);
        enum cdcd_rc rc = !o        ? unknown_option(&a, table, prefix, path + n)
                          : map_key ? apply_map_item(&a, o, map_key, target)
                                    : apply_setting(&a, o, target);
        if (rc != CDCD_OK)
            return rc;
    }
    return check_required(table, s, prefix, err);
}

void cdcd_options_free(const struct cdcd_option *table, void *target)
{
    for (const struct cdcd_option *o = table; o->name; o++) {
        void *field = (char *)target + o->offset;
        if (o->type == CDCD_OPT_STR) {
            free(*(char **)field);
            *(char **)field = NULL;
        } else if (o->type == CDCD_OPT_LIST) {
            list_clear(field);
        } else if (o->type == CDCD_OPT_MAP) {
            struct cdcd_strmap *m = field;
            for (size_t i = 0; i < m->n; i++) {
                free(m->items[i].key);
                free(m->items[i].value);
            }
            free(m->items);
            *m = (struct cdcd_strmap){0};
        }
    }
}
