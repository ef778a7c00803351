#include "plugin.h"

#include <cdcd/version.h>

#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define MAX_PLUGINS 32

static const struct cdcd_plugin *const *static_plugins;
static const struct cdcd_plugin *loaded[MAX_PLUGINS];
static size_t nloaded;

void cdcd_plugin_set_static(const struct cdcd_plugin *const *plugins)
{
    static_plugins = plugins;
}

/* ---- the contract ---- */

#define SLOT(ops, member)                                                       \
    {                                                                           \
#ops "." #member, (const void *)&p->ops->member, sizeof(p->ops->member) \
    }

struct slot {
    const char *name;
    const void *at;
    size_t size;
};

static const char *missing_slot(const struct slot *slots, size_t n)
{
    static const char zero[sizeof(void *)];
    for (size_t i = 0; i < n; i++) {
        if (memcmp(slots[i].at, zero, slots[i].size) == 0)
            return slots[i].name;
    }
    return NULL;
}

static const char *missing_source_slot(const struct cdcd_plugin *p)
{
    const struct slot slots[] = {
        SLOT(source, connector), SLOT(source, options),  SLOT(source, config_size),
        SLOT(source, open),      SLOT(source, close),    SLOT(source, check),
        SLOT(source, drop),      SLOT(source, resume),   SLOT(source, start),
        SLOT(source, read),      SLOT(source, ack),      SLOT(source, idle),
        SLOT(source, lag),       SLOT(source, describe),
    };
    const struct slot of_snapshots[] = {
        SLOT(source, stop_at),       SLOT(source, snapshot_begin), SLOT(source, snapshot_tables),
        SLOT(source, snapshot_plan), SLOT(source, snapshot_end),   SLOT(source, worker_open),
        SLOT(source, worker_close),  SLOT(source, worker_begin),   SLOT(source, worker_read),
    };
    const char *missing = missing_slot(slots, sizeof(slots) / sizeof(slots[0]));
    if (!missing && !p->source->records)
        missing = missing_slot(of_snapshots, sizeof(of_snapshots) / sizeof(of_snapshots[0]));
    return missing;
}

static const char *missing_sink_slot(const struct cdcd_plugin *p)
{
    const struct slot slots[] = {
        SLOT(sink, options), SLOT(sink, config_size), SLOT(sink, open),  SLOT(sink, close),
        SLOT(sink, check),   SLOT(sink, load),        SLOT(sink, write), SLOT(sink, poll),
    };
    return missing_slot(slots, sizeof(slots) / sizeof(slots[0]));
}

enum cdcd_rc cdcd_plugin_verify(const struct cdcd_plugin *p, const char *name, const char *where,
                                struct cdcd_error *err)
{
    if (p->abi != CDCD_PLUGIN_ABI || p->size != sizeof(*p))
        return cdcd_error_set(err, CDCD_ERR_CONFIG,
                              "%s is of another cdcd: it has interface %u with %u bytes, this one "
                              "needs %u with %zu; install plugins and binary of one build",
                              where, p->abi, p->size, CDCD_PLUGIN_ABI, sizeof(*p));
    if (!p->name || !p->version || strcmp(p->name, name) != 0)
        return cdcd_error_set(err, CDCD_ERR_CONFIG, "%s calls itself \"%s\", expected \"%s\"",
                              where, p->name ? p->name : "", name);
    if (!p->source && !p->sink)
        return cdcd_error_set(err, CDCD_ERR_CONFIG, "%s holds neither a source nor a sink", where);
    const char *slot = p->source ? missing_source_slot(p) : NULL;
    if (!slot && p->sink)
        slot = missing_sink_slot(p);
    if (slot)
        return cdcd_error_set(err, CDCD_ERR_CONFIG, "%s does not fill in the slot %s", where, slot);
    return CDCD_OK;
}

/* ---- where plugins are ---- */

/* The folders in order: $CDCD_PLUGIN_PATH, beside the binary, the installed place. */
static void plugin_folders(struct cdcd_strlist *out)
{
    *out = (struct cdcd_strlist){cdcd_xcalloc(MAX_PLUGINS, sizeof(char *)), 0};
    const char *path = getenv("CDCD_PLUGIN_PATH");
    while (path && *path && out->n < MAX_PLUGINS - 2) {
        size_t n = strcspn(path, ":");
        if (n)
            out->items[out->n++] = cdcd_xstrndup(path, n);
        path += n + (path[n] == ':');
    }
    char exe[4096];
    ssize_t len = readlink("/proc/self/exe", exe, sizeof(exe) - 1);
    if (len > 0) {
        exe[len] = 0;
        char *slash = strrchr(exe, '/');
        if (slash) {
            *slash = 0;
            out->items[out->n++] = cdcd_xasprintf("%s/../lib/cdcd", exe);
        }
    }
    out->items[out->n++] = cdcd_xstrdup(CDCD_PLUGIN_DIR);
}

void cdcd_plugin_list_free(struct cdcd_strlist *l)
{
    for (size_t i = 0; i < l->n; i++)
        free(l->items[i]);
    free(l->items);
    *l = (struct cdcd_strlist){0};
}

static void list_add_once(struct cdcd_strlist *l, const char *name, size_t len)
{
    for (size_t i = 0; i < l->n; i++) {
        if (strlen(l->items[i]) == len && memcmp(l->items[i], name, len) == 0)
            return;
    }
    l->items = cdcd_xrealloc(l->items, (l->n + 1) * sizeof(l->items[0]));
    l->items[l->n++] = cdcd_xstrndup(name, len);
}

static void list_folder(struct cdcd_strlist *out, const char *folder)
{
    DIR *d = opendir(folder);
    struct dirent *e;
    while (d && (e = readdir(d))) {
        size_t n = strlen(e->d_name);
        if (n > 3 && strcmp(e->d_name + n - 3, ".so") == 0)
            list_add_once(out, e->d_name, n - 3);
    }
    if (d)
        closedir(d);
}

static int compare_names(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

void cdcd_plugin_list(struct cdcd_strlist *out)
{
    struct cdcd_strlist folders;
    *out = (struct cdcd_strlist){0};
    for (size_t i = 0; static_plugins && static_plugins[i]; i++)
        list_add_once(out, static_plugins[i]->name, strlen(static_plugins[i]->name));
    plugin_folders(&folders);
    for (size_t i = 0; i < folders.n; i++)
        list_folder(out, folders.items[i]);
    cdcd_plugin_list_free(&folders);
    if (out->n)
        qsort(out->items, out->n, sizeof(out->items[0]), compare_names);
}

/* ---- loading ---- */

static enum cdcd_rc load_object(const char *path, const char *name, const struct cdcd_plugin **out,
                                struct cdcd_error *err)
{
    void *object = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!object)
        return cdcd_error_set(err, CDCD_ERR_CONFIG,
                              "plugin %s cannot be loaded: %s; is the library that it needs "
                              "installed?",
                              name, dlerror());
    const struct cdcd_plugin *p = dlsym(object, "cdcd_plugin");
    if (!p)
        return cdcd_error_set(err, CDCD_ERR_CONFIG,
                              "%s is no cdcd plugin: it exports no "
                              "cdcd_plugin",
                              path);
    if (cdcd_plugin_verify(p, name, path, err) != CDCD_OK)
        return CDCD_ERROR;
    *out = p;
    return CDCD_OK;
}

/* The development package that the build of a plugin of ours needs. */
static const char *build_hint(const char *name)
{
    static const char *const needs[][2] = {
        {"postgres", "; it needs libpq-dev"},
        {"kafka", "; it needs librdkafka-dev"},
        {"mysql", "; it needs libmariadb-dev (or libmysqlclient-dev), libzstd-dev and zlib1g-dev"},
        {"mongodb", "; it needs libmongoc-dev"},
    };
    for (size_t i = 0; i < sizeof(needs) / sizeof(needs[0]); i++) {
        if (strcmp(name, needs[i][0]) == 0)
            return needs[i][1];
    }
    return "";
}

static enum cdcd_rc not_found(const char *name, const struct cdcd_strlist *folders,
                              struct cdcd_error *err)
{
    struct cdcd_buf text;
    struct cdcd_strlist known;
    cdcd_buf_init(&text, 0);
    cdcd_buf_addf(&text, "there is no plugin %s: no %s.so in ", name, name);
    for (size_t i = 0; i < folders->n; i++)
        cdcd_buf_addf(&text, "%s%s", i ? ", " : "", folders->items[i]);
    cdcd_plugin_list(&known);
    for (size_t i = 0; i < known.n; i++)
        cdcd_buf_addf(&text, "%s%s", i ? ", " : "; there are: ", known.items[i]);
    cdcd_buf_addf(&text,
                  ". A build makes it when CDCD_PLUGINS holds %s%s; CDCD_PLUGIN_PATH names "
                  "another folder",
                  name, build_hint(name));
    cdcd_error_set(err, CDCD_ERR_CONFIG, "%s", cdcd_buf_cstr(&text));
    cdcd_plugin_list_free(&known);
    cdcd_buf_free(&text);
    return CDCD_ERROR;
}

static enum cdcd_rc load_from_folders(const char *name, const struct cdcd_plugin **out,
                                      struct cdcd_error *err)
{
    struct cdcd_strlist folders;
    enum cdcd_rc rc = CDCD_AGAIN;
    plugin_folders(&folders);
    for (size_t i = 0; i < folders.n && rc == CDCD_AGAIN; i++) {
        char *path = cdcd_xasprintf("%s/%s.so", folders.items[i], name);
        if (access(path, F_OK) == 0)
            rc = load_object(path, name, out, err);
        free(path);
    }
    if (rc == CDCD_AGAIN)
        rc = not_found(name, &folders, err);
    cdcd_plugin_list_free(&folders);
    return rc;
}

/* Systems that one plugin serves under several names. */
static const char *plugin_of(const char *name)
{
    return strcmp(name, "mariadb") == 0 ? "mysql" : name;
}

enum cdcd_rc cdcd_plugin_find(const char *name, const struct cdcd_plugin **out,
                              struct cdcd_error *err)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyz0123456789_";
    if (!*name || strspn(name, letters) != strlen(name))
        return cdcd_error_set(err, CDCD_ERR_CONFIG, "\"%s\" is no name of a plugin", name);
    name = plugin_of(name);
    for (size_t i = 0; static_plugins && static_plugins[i]; i++) {
        if (strcmp(static_plugins[i]->name, name) == 0) {
            *out = static_plugins[i];
            return cdcd_plugin_verify(*out, name, name, err);
        }
    }
    for (size_t i = 0; i < nloaded; i++) {
        if (strcmp(loaded[i]->name, name) == 0) {
            *out = loaded[i];
            return CDCD_OK;
        }
    }
    if (nloaded == MAX_PLUGINS)
        return cdcd_error_set(err, CDCD_ERR_FATAL, "more than %d plugins", MAX_PLUGINS);
    enum cdcd_rc rc = load_from_folders(name, out, err);
    if (rc == CDCD_OK)
        loaded[nloaded++] = *out;
    return rc;
}
