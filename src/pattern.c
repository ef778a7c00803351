#include <cdcd/pattern.h>

#include <stdlib.h>

/* What stands for \c. Inside of brackets POSIX takes a backslash as itself. */
static void translate_escape(char c, bool bracket, struct cdcd_buf *out)
{
    if (c == 'd') {
        cdcd_buf_adds(out, bracket ? "0-9" : "[0-9]");
    } else if (c == 'D' && !bracket) {
        cdcd_buf_adds(out, "[^0-9]");
    } else if (c == 'w' && bracket) {
        cdcd_buf_adds(out, "[:alnum:]_");
    } else {
        if (!bracket)
            cdcd_buf_adds(out, "\\");
        cdcd_buf_add(out, &c, 1);
    }
}

/* ^(item)$ in POSIX terms. */
static void translate(const char *item, struct cdcd_buf *out)
{
    bool bracket = false;

    cdcd_buf_adds(out, "^(");
    for (const char *p = item; *p; p++) {
        if (*p == '\\' && p[1]) {
            translate_escape(*++p, bracket, out);
            continue;
        }
        cdcd_buf_add(out, p, 1);
        if (*p == '[' && !bracket) { /* a ']' that comes first is one of the set */
            bracket = true;
            if (p[1] == '^')
                cdcd_buf_add(out, ++p, 1);
            if (p[1] == ']')
                cdcd_buf_add(out, ++p, 1);
        } else if (*p == ']') {
            bracket = false;
        }
    }
    cdcd_buf_adds(out, ")$");
}

bool cdcd_pattern_compile(const char *item, bool fold, regex_t *out, char why[CDCD_PATTERN_WHY])
{
    struct cdcd_buf b;

    cdcd_buf_init(&b, 0);
    translate(item, &b);
    int e = regcomp(out, cdcd_buf_cstr(&b), REG_EXTENDED | REG_NOSUB | (fold ? REG_ICASE : 0));
    cdcd_buf_free(&b);
    if (e)
        regerror(e, out, why, CDCD_PATTERN_WHY);
    return e == 0;
}

enum cdcd_rc cdcd_patterns_compile(const struct cdcd_strlist *list, const char *option, bool fold,
                                   struct cdcd_patterns *out, struct cdcd_error *err)
{
    *out = (struct cdcd_patterns){.items = cdcd_xcalloc(list->n + 1, sizeof *out->items)};
    for (; out->n < list->n; out->n++) {
        char why[CDCD_PATTERN_WHY];
        if (!cdcd_pattern_compile(list->items[out->n], fold, &out->items[out->n], why))
            return cdcd_error_set(err, CDCD_ERR_CONFIG,
                                  "%s: \"%s\" is no valid extended regular expression: %s", option,
                                  list->items[out->n], why);
    }
    return CDCD_OK;
}

void cdcd_patterns_free(struct cdcd_patterns *p)
{
    for (size_t i = 0; i < p->n; i++)
        regfree(&p->items[i]);
    free(p->items);
    *p = (struct cdcd_patterns){0};
}

bool cdcd_patterns_match(const struct cdcd_patterns *p, const char *name)
{
    for (size_t i = 0; i < p->n; i++) {
        if (regexec(&p->items[i], name, 0, NULL, 0) == 0)
            return true;
    }
    return false;
}

bool cdcd_patterns_pass(const struct cdcd_patterns *include, const struct cdcd_patterns *exclude,
                        const char *name)
{
    return (include->n == 0 || cdcd_patterns_match(include, name)) &&
           !cdcd_patterns_match(exclude, name);
}
