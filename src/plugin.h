/*
 * plugin loader: finds a plugin by its name, in the binary or as a shared object.
 * Main thread only. A plugin is never unloaded: its threads may outlive any use.
 */
#ifndef CDCD_PLUGIN_LOADER_H
#define CDCD_PLUGIN_LOADER_H

#include <cdcd/plugin.h>

/* Plugins that are linked in; NULL-terminated, borrowed for ever. They come first. */
void cdcd_plugin_set_static(const struct cdcd_plugin *const *plugins);
extern const struct cdcd_plugin *const cdcd_static_plugins[]; /* in CDCD_STATIC_PLUGINS builds */

/* mariadb is another name of mysql. */
CDCD_MUSTCHECK enum cdcd_rc cdcd_plugin_find(const char *name, const struct cdcd_plugin **out,
                                             struct cdcd_error *err);
/* The same contract for a table that is already there; `where` names it in errors. */
CDCD_MUSTCHECK enum cdcd_rc cdcd_plugin_verify(const struct cdcd_plugin *p, const char *name,
                                               const char *where, struct cdcd_error *err);
/* Names of all plugins that could be found, sorted. The caller frees with
 * cdcd_plugin_list_free. */
void cdcd_plugin_list(struct cdcd_strlist *out);
void cdcd_plugin_list_free(struct cdcd_strlist *l);

#endif
