/*
 * settings: a config file as a flat list of dotted keys. Every nested map is joined by dots, so
 * that `slot: {name: x}` and `slot.name: x` are the same key. Main thread only.
 */
#ifndef CDCD_SETTINGS_H
#define CDCD_SETTINGS_H

#include <cdcd/option.h>

enum cdcd_setting_kind {
    CDCD_SETTING_SCALAR,
    CDCD_SETTING_LIST,  /* `list` */
    CDCD_SETTING_EMPTY, /* null or an empty map */
};

struct cdcd_setting {
    char *path;
    enum cdcd_setting_kind kind;
    char *value; /* SCALAR: as written, nothing expanded */
    struct cdcd_strlist list;
    size_t line;   /* from 1; 0 = not from a file */
    bool verbatim; /* ${...} is not expanded */
};

struct cdcd_settings {
    char *file; /* for messages, or NULL */
    struct cdcd_setting *items;
    size_t n, cap;
};

/* Reads YAML (JSON is a subset of it). On error nothing is left to free. */
CDCD_MUSTCHECK enum cdcd_rc cdcd_settings_parse(struct cdcd_settings *s, const char *name,
                                                const char *text, size_t len,
                                                struct cdcd_error *err);
/* One scalar from "key=value". */
CDCD_MUSTCHECK enum cdcd_rc cdcd_settings_add_arg(struct cdcd_settings *s, const char *pair,
                                                  struct cdcd_error *err);
void cdcd_settings_free(struct cdcd_settings *s);
/* Frees what one setting owns; the caller takes it out of the list. */
void cdcd_settings_drop(struct cdcd_setting *it);

/* A CONFIG error "FILE:LINE: PATH: ..."; `at` may be NULL: then only the file is named. */
enum cdcd_rc cdcd_settings_error(const struct cdcd_settings *s, const struct cdcd_setting *at,
                                 struct cdcd_error *err, const char *fmt, ...) CDCD_PRINTF(4, 5);

/* Fills *target, which is zeroed, from the settings whose path begins with `prefix` ("" or
 * "source.postgres."), after the defaults. Keys that the table does not have are errors unless
 * `skip` says that they belong elsewhere. On error the target still has to be freed. */
CDCD_MUSTCHECK enum cdcd_rc cdcd_options_apply(const struct cdcd_option *table, void *target,
                                               const struct cdcd_settings *s, const char *prefix,
                                               bool (*skip)(const char *path),
                                               struct cdcd_error *err);
void cdcd_options_free(const struct cdcd_option *table, void *target);

/* Expands ${NAME}, ${NAME:-default} and ${file:/path}; $${ stands for ${. Malloc'ed, or NULL with
 * *why set to a malloc'ed reason. */
char *cdcd_option_expand(const char *text, char **why);

#endif
