/*
 * cdcd config: prints sample files and the option reference. Both are made from the option
 * tables, so that they cannot differ from what is parsed.
 */
#include "command.h"
#include "config.h"
#include "plugin.h"

#include <stdio.h>

static const char help[] =
    "Prints a config file to begin with, or a page about every option.\n"
    "\n"
    "  --sample SOURCE   a commented config for this source, e.g. postgres\n"
    "  --sink SINK       with this sink: kafka (the default), elasticsearch or file\n"
    "  --reference       all options of the core and of every plugin that is installed,\n"
    "                    in Markdown\n"
    "  -c FILE           only checks that the file is a valid config";

/* ---- text ---- */

/* Prints words under an indented comment sign, in lines of at most 96 columns. */
static void print_comment(const char *indent, const char *text)
{
    size_t column = 0, margin = strlen(indent) + 1;
    while (*text) {
        size_t n = strcspn(text, " ");
        if (column && column + 1 + n > 96) {
            putchar('\n');
            column = 0;
        }
        if (!column) {
            printf("%s#", indent);
            column = margin;
        }
        printf(" %.*s", (int)n, text);
        column += 1 + n;
        text += n;
        while (*text == ' ')
            text++;
    }
    putchar('\n');
}

static bool is_plain(const char *s)
{
    return *s && !strchr("!&*-?|>@`%{}[],#:'\"~ ", *s) && !strstr(s, ": ") && !strstr(s, " #") &&
           s[strlen(s) - 1] != ':' && s[strlen(s) - 1] != ' ';
}

static void print_quoted(const char *s, size_t n)
{
    putchar('"');
    for (size_t i = 0; i < n; i++) {
        if (s[i] == '"' || s[i] == '\\')
            putchar('\\');
        putchar(s[i]);
    }
    putchar('"');
}

static void print_list(const char *s)
{
    putchar('[');
    for (const char *sep = ""; *s; sep = ", ") {
        s += strspn(s, " ");
        size_t n = strcspn(s, ",");
        fputs(sep, stdout);
        print_quoted(s, n);
        s += n + (s[n] == ',');
    }
    putchar(']');
}

static void print_value(const struct cdcd_option *o, const char *value)
{
    if (!value)
        value = "";
    if (o->type == CDCD_OPT_LIST && *value != '[')
        print_list(value);
    else if (o->type == CDCD_OPT_MAP && *value != '{')
        printf("{%s%s%s}", *value ? " " : "", value, *value ? " " : "");
    else if (o->type != CDCD_OPT_STR || is_plain(value))
        fputs(value, stdout);
    else
        print_quoted(value, strlen(value));
}

/* ---- sample ---- */

static const char *sample_value(const struct cdcd_option *o)
{
    return o->sample ? o->sample : o->default_;
}

static void print_sample_option(const struct cdcd_option *o, const char *indent)
{
    print_comment(indent, o->doc);
    printf("%s%s: ", indent, o->name);
    print_value(o, sample_value(o));
    putchar('\n');
}

static void print_sample_rest(const struct cdcd_option *table, const char *indent)
{
    bool first = true;
    for (const struct cdcd_option *o = table; o->name; o++) {
        if (o->flags & CDCD_OPT_SAMPLE)
            continue;
        if (first)
            printf("\n%s# More, with their defaults or an example:\n", indent);
        first = false;
        printf("%s# %s: ", indent, o->name);
        print_value(o, o->default_ ? o->default_ : sample_value(o));
        putchar('\n');
    }
}

static void print_sample_section(const struct cdcd_option *table, const char *kind,
                                 const char *name)
{
    printf("\n%s:\n  %s:\n", kind, name);
    for (const struct cdcd_option *o = table; o->name; o++) {
        if (o->flags & CDCD_OPT_SAMPLE)
            print_sample_option(o, "    ");
    }
    print_sample_rest(table, "    ");
}

static bool is_first_option(const struct cdcd_option *o)
{
    return strcmp(o->name, "name") == 0 || strcmp(o->name, "topic.prefix") == 0;
}

/* `name` is what the source was asked for by: mariadb is served by the plugin mysql. */
static void print_sample(const char *name, const struct cdcd_plugin *source,
                         const struct cdcd_plugin *sink)
{
    printf("# cdcd: from %s to %s. Try it: cdcd check -c FILE, then cdcd run -c FILE.\n", name,
           sink->name);
    puts("# ${NAME} stands for an environment variable, ${file:/path} for what a file holds.\n"
         "# All keys with their meaning: cdcd config --reference.\n");
    for (const struct cdcd_option *o = cdcd_config_options; o->name; o++) {
        if (is_first_option(o))
            print_sample_option(o, "");
    }
    print_sample_section(source->source->options, "source", name);
    print_sample_section(sink->sink->options, "sink", sink->name);
    print_sample_section(cdcd_debezium_options, "format", "debezium");
    putchar('\n');
    for (const struct cdcd_option *o = cdcd_config_options; o->name; o++) {
        if ((o->flags & CDCD_OPT_SAMPLE) && !is_first_option(o))
            print_sample_option(o, "");
    }
    print_sample_rest(cdcd_config_options, "");
}

static int sample(const char *source_name, const char *sink_name)
{
    const struct cdcd_plugin *source, *sink;
    struct cdcd_error err;
    if (cdcd_plugin_find(source_name, &source, &err) != CDCD_OK ||
        cdcd_plugin_find(sink_name, &sink, &err) != CDCD_OK)
        return cdcd_command_failed(&err);
    if (!source->source)
        return cdcd_command_misused(&cdcd_cmd_config, "%s is no source", source_name);
    if (!sink->sink)
        return cdcd_command_misused(&cdcd_cmd_config, "%s is no sink", sink_name);
    print_sample(source_name, source, sink);
    return CDCD_EXIT_OK;
}

/* ---- reference ---- */

/* Markdown tables split at "|". */
static void print_cell(const char *s)
{
    for (; *s; s++) {
        if (*s == '|')
            putchar('\\');
        putchar(*s);
    }
}

static void print_range(const struct cdcd_option *o, const char *what)
{
    fputs(what, stdout);
    if (o->type != CDCD_OPT_INT)
        return;
    if (o->max)
        printf(", %lld to %lld", (long long)o->min, (long long)o->max);
    else
        printf(", %lld or more", (long long)o->min);
}

static void print_type(const struct cdcd_option *o)
{
    switch (o->type) {
    case CDCD_OPT_STR:
        fputs(o->flags & CDCD_OPT_REGEX ? "regular expression" : "string", stdout);
        break;
    case CDCD_OPT_INT: print_range(o, "integer"); break;
    case CDCD_OPT_BOOL: fputs("true or false", stdout); break;
    case CDCD_OPT_ENUM:
        for (size_t i = 0; o->values[i]; i++)
            printf("%s`%s`", i ? ", " : "", o->values[i]);
        break;
    case CDCD_OPT_SIZE: fputs("size", stdout); break;
    case CDCD_OPT_DURATION: fputs("duration", stdout); break;
    case CDCD_OPT_LIST:
        fputs(o->flags & CDCD_OPT_REGEX ? "list of regular expressions" : "list", stdout);
        break;
    case CDCD_OPT_MAP: fputs("map", stdout); break;
    }
}

static void print_reference_table(const struct cdcd_option *table)
{
    puts("\n| key | type | default | |\n|---|---|---|---|");
    for (const struct cdcd_option *o = table; o->name; o++) {
        printf("| `%s` | ", o->name);
        print_type(o);
        fputs(" | ", stdout);
        if (o->flags & CDCD_OPT_REQUIRED) {
            fputs("required", stdout);
        } else if (o->default_ && *o->default_) {
            putchar('`');
            print_cell(o->default_);
            putchar('`');
        }
        fputs(" | ", stdout);
        print_cell(o->doc);
        puts(" |");
    }
}

static int reference(void)
{
    struct cdcd_strlist names;
    puts("# Options\n\n"
         "Printed by `cdcd config --reference` from the tables that parse the config file.\n\n"
         "The file is YAML (JSON is a subset). Nested keys and dotted keys are the same:\n"
         "`slot: {name: shop}` is `slot.name: shop`. An unknown key is an error.\n\n"
         "- **Text**: `${NAME}` is the environment variable, `${NAME:-text}` the same with text\n"
         "  for an unset one, `${file:/path}` what the file holds without its last line break.\n"
         "  `$${` is a literal `${`.\n"
         "- **Sizes** are `64KB`, `16MB`, `2GB`, in powers of 1024; **durations** `500ms`, `10s`,\n"
         "  `5m`, `1h`, bare numbers are milliseconds.\n"
         "- **Lists** are YAML lists, or one string with commas; `\\,` is a comma within an item.\n"
         "- **Regular expressions** are POSIX extended ones and must match the whole name.\n\n"
         "## Pipeline");
    print_reference_table(cdcd_config_options);
    cdcd_plugin_list(&names);
    for (int sinks = 0; sinks < 2; sinks++) {
        for (size_t i = 0; i < names.n; i++) {
            const struct cdcd_plugin *p;
            struct cdcd_error err;
            if (cdcd_plugin_find(names.items[i], &p, &err) != CDCD_OK) {
                cdcd_plugin_list_free(&names);
                return cdcd_command_failed(&err);
            }
            if (sinks ? !p->sink : !p->source)
                continue;
            printf("\n## %s.%s\n", sinks ? "sink" : "source", p->name);
            if (p->doc)
                printf("\n%s\n", p->doc);
            print_reference_table(sinks ? p->sink->options : p->source->options);
        }
    }
    cdcd_plugin_list_free(&names);
    puts("\n## format.debezium\n\nThe Debezium envelope; the default format.");
    print_reference_table(cdcd_debezium_options);
    return CDCD_EXIT_OK;
}

/* ---- check ---- */

static int check_file(const char *path)
{
    struct cdcd_config *c;
    struct cdcd_error err;
    if (cdcd_config_load(path, &c, &err) != CDCD_OK)
        return cdcd_command_failed(&err);
    printf("%s: pipeline %s from %s to %s\n", path, c->name, c->source_plugin->name,
           c->sink_plugin->name);
    cdcd_config_free(c);
    return CDCD_EXIT_OK;
}

static int run(int argc, char **argv)
{
    const char *source = NULL, *sink = "kafka", *file = NULL;
    bool want_reference = false;
    for (int i = 1; i < argc; i++) {
        const char **value = strcmp(argv[i], "--sample") == 0   ? &source
                             : strcmp(argv[i], "--sink") == 0   ? &sink
                             : strcmp(argv[i], "-c") == 0       ? &file
                             : strcmp(argv[i], "--config") == 0 ? &file
                                                                : NULL;
        if (strcmp(argv[i], "--reference") == 0)
            want_reference = true;
        else if (!value)
            return cdcd_command_misused(&cdcd_cmd_config, "unknown argument \"%s\"", argv[i]);
        else if (i + 1 == argc)
            return cdcd_command_misused(&cdcd_cmd_config, "%s needs a value", argv[i]);
        else
            *value = argv[++i];
    }
    if ((source != NULL) + (file != NULL) + want_reference != 1)
        return cdcd_command_misused(&cdcd_cmd_config,
                                    "give one of --sample SOURCE, --reference, -c FILE");
    if (source)
        return sample(source, sink);
    return file ? check_file(file) : reference();
}

const struct cdcd_command cdcd_cmd_config = {
    .name = "config",
    .summary = "print a sample config file or the reference of all options",
    .usage = "cdcd config --sample SOURCE [--sink SINK] | --reference | -c FILE",
    .help = help,
    .run = run,
};
