/*
 * pattern: the regular expressions of include and exclude lists.
 *
 * An item is a POSIX extended regular expression that must match the whole name. \d and \D are
 * understood too, since lists are written in the habit of other tools.
 */
#ifndef CDCD_PATTERN_H
#define CDCD_PATTERN_H

#include "option.h"

#include <regex.h>

struct cdcd_patterns {
    regex_t *items;
    size_t n;
};

/* One item; false: why tells what is wrong with it. */
#define CDCD_PATTERN_WHY 128
bool cdcd_pattern_compile(const char *item, bool fold, regex_t *out, char why[CDCD_PATTERN_WHY]);

/* fold: without regard to case. `option` names the list in a CONFIG error. What was compiled is
 * freed by cdcd_patterns_free, also after an error; all zero is an empty list. */
enum cdcd_rc cdcd_patterns_compile(const struct cdcd_strlist *list, const char *option, bool fold,
                                   struct cdcd_patterns *out, struct cdcd_error *err);
void cdcd_patterns_free(struct cdcd_patterns *p);
bool cdcd_patterns_match(const struct cdcd_patterns *p, const char *name);
/* In the include list, or there is none; and not in the exclude list. */
bool cdcd_patterns_pass(const struct cdcd_patterns *include, const struct cdcd_patterns *exclude,
                        const char *name);

#endif
