/*
 * option tables: one row describes one config key, and everything else is made from
 * the rows: parsing, ranges, defaults, `cdcd config --sample` and `--reference`, docs.
 */
#ifndef CDCD_OPTION_H
#define CDCD_OPTION_H

#include "buf.h"

enum cdcd_option_type {
    CDCD_OPT_STR,      /* char *; owned by the config */
    CDCD_OPT_INT,      /* int64_t; min, max */
    CDCD_OPT_BOOL,     /* bool */
    CDCD_OPT_ENUM,     /* int: index into `values` */
    CDCD_OPT_SIZE,     /* int64_t bytes; accepts 64KB, 16MB, 2GB (powers of 1024) */
    CDCD_OPT_DURATION, /* int64_t milliseconds; bare numbers are ms; accepts 10s, 5m, 1h */
    CDCD_OPT_LIST,     /* struct cdcd_strlist: a YAML list, or one comma-separated string */
    CDCD_OPT_MAP,      /* struct cdcd_strmap: passed on as it is */
};

enum {
    CDCD_OPT_REQUIRED = 1,
    CDCD_OPT_SECRET = 2,    /* never printed */
    CDCD_OPT_SAMPLE = 4,    /* appears uncommented in the sample file */
    CDCD_OPT_REGEX = 8,     /* each item is an anchored regular expression, checked at start */
    CDCD_OPT_TEMPLATE = 16, /* ${...} is the option's own pattern, not the environment's */
};

struct cdcd_strlist {
    char **items;
    size_t n;
};

struct cdcd_strmap {
    struct cdcd_strpair {
        char *key, *value;
    } * items;
    size_t n;
};

struct cdcd_option {
    const char *name; /* dotted, relative to its section: "slot.name" */
    enum cdcd_option_type type;
    size_t offset;             /* in the section's struct */
    const char *default_;      /* in config text, parsed like the file's; NULL: zero / none */
    int64_t min, max;          /* INT, SIZE, DURATION; max 0 = no limit */
    const char *const *values; /* ENUM: NULL-terminated */
    unsigned flags;
    const char *doc;    /* one or two sentences, for the reference and the sample */
    const char *sample; /* value for the sample file when it differs from the default */
};

/* The table ends with a row whose name is NULL. */

/* Edit distance helper for "did you mean": the closest name, or NULL. */
const char *cdcd_option_suggest(const struct cdcd_option *table, const char *name);

#endif
