/* Whole configs: sections, plugins, names, state folder. The plugins are toys that are linked in.
 */
#include "config.h"
#include "plugin.h"

#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

struct toy {
    char *url;
    struct cdcd_strlist tables;
    int64_t size;
};

static const struct cdcd_option toy_options[] = {
    {"url", CDCD_OPT_STR, offsetof(struct toy, url), NULL, 0, 0, NULL,
     CDCD_OPT_REQUIRED | CDCD_OPT_SECRET, "Where it is.", "toy://x"},
    {"table.include.list", CDCD_OPT_LIST, offsetof(struct toy, tables), NULL, 0, 0, NULL,
     CDCD_OPT_REGEX, "Tables.", NULL},
    {"size", CDCD_OPT_SIZE, offsetof(struct toy, size), "1KB", 0, 0, NULL, 0, "Size.", NULL},
    {0},
};

/* Never called: a config only looks at the tables. */
static void nothing(void) {}
#define ANY (void *)nothing

static struct cdcd_source_ops toy_source(void)
{
    return (struct cdcd_source_ops){
        .connector = "toy",
        .options = toy_options,
        .config_size = sizeof(struct toy),
        .open = ANY,
        .close = ANY,
        .check = ANY,
        .drop = ANY,
        .resume = ANY,
        .start = ANY,
        .read = ANY,
        .stop_at = ANY,
        .ack = ANY,
        .idle = ANY,
        .lag = ANY,
        .snapshot_begin = ANY,
        .snapshot_tables = ANY,
        .snapshot_plan = ANY,
        .snapshot_end = ANY,
        .worker_open = ANY,
        .worker_close = ANY,
        .worker_begin = ANY,
        .worker_read = ANY,
        .describe = ANY,
    };
}

static struct cdcd_sink_ops toy_sink(void)
{
    return (struct cdcd_sink_ops){
        .options = toy_options,
        .config_size = sizeof(struct toy),
        .open = ANY,
        .close = ANY,
        .check = ANY,
        .load = ANY,
        .write = ANY,
        .poll = ANY,
    };
}

static struct cdcd_source_ops source_ops;
static struct cdcd_sink_ops sink_ops;
static struct cdcd_plugin toysource = {
    CDCD_PLUGIN_ABI, sizeof(struct cdcd_plugin), "toysource", "1", "", &source_ops, NULL};
static struct cdcd_plugin toysink = {
    CDCD_PLUGIN_ABI, sizeof(struct cdcd_plugin), "toysink", "1", "", NULL, &sink_ops};
static struct cdcd_plugin toymysql = {
    CDCD_PLUGIN_ABI, sizeof(struct cdcd_plugin), "mysql", "1", "", &source_ops, NULL};
static const struct cdcd_plugin *const toys[] = {&toysource, &toysink, &toymysql, NULL};

static int setup(void **state)
{
    (void)state;
    source_ops = toy_source();
    sink_ops = toy_sink();
    cdcd_plugin_set_static(toys);
    return setenv("CDCD_PLUGIN_PATH", "/nonexistent", 1);
}

static enum cdcd_rc parse(const char *yaml, struct cdcd_config **c, struct cdcd_error *err)
{
    *err = (struct cdcd_error){0};
    return cdcd_config_parse("c.yaml", yaml, strlen(yaml), c, err);
}

#define SOURCE "source: {toysource: {url: a}}\n"
#define SINK   "sink: {toysink: {url: b}}\n"

static void a_full_config(void **state)
{
    (void)state;
    struct cdcd_config *c;
    struct cdcd_error err;
    assert_int_equal(parse("name: shop\n"
                           "topic: {prefix: p.x}\n"
                           "source:\n  toysource:\n    url: secret\n"
                           "    table.include.list: [a, b]\n"
                           "sink.toysink.url: there\n"
                           "format: {debezium: {decimal.handling.mode: string}}\n"
                           "snapshot: {mode: no_data, workers: 3}\n"
                           "log: {format: json, level: warn}\n"
                           "http.listen: 127.0.0.1:80\n"
                           "batches: 8\n"
                           "errors.retry.delay.max.ms: 5s\n",
                           &c, &err),
                     CDCD_OK);
    assert_string_equal(c->file, "c.yaml");
    assert_string_equal(c->name, "shop");
    assert_string_equal(c->topic_prefix, "p.x");
    assert_ptr_equal(c->source_plugin, &toysource);
    assert_ptr_equal(c->sink_plugin, &toysink);
    const struct toy *t = c->source_config;
    assert_string_equal(t->url, "secret");
    assert_int_equal(t->tables.n, 2);
    assert_int_equal(t->size, 1024);
    t = c->sink_config;
    assert_string_equal(t->url, "there");
    assert_int_equal(c->format.decimal_mode, CDCD_DECIMAL_STRING);
    assert_int_equal(c->snapshot_mode, CDCD_SNAPSHOT_NO_DATA);
    assert_int_equal(c->snapshot_workers, 3);
    assert_int_equal(c->log_format, 1);
    assert_int_equal(c->log_level, CDCD_LOG_WARN);
    assert_string_equal(c->http_listen, "127.0.0.1:80");
    assert_int_equal(c->batches, 8);
    assert_int_equal(c->max_retries, -1);
    assert_int_equal(c->retry_delay_max_ms, 5000);
    cdcd_config_free(c);
}

static void defaults(void **state)
{
    (void)state;
    struct cdcd_config *c;
    struct cdcd_error err;
    assert_int_equal(parse("{\"name\": \"shop\", \"source\": {\"toysource\": {\"url\": \"a\"}},"
                           "\"sink\": {\"toysink\": {\"url\": \"b\"}}}",
                           &c, &err),
                     CDCD_OK);
    assert_string_equal(c->topic_prefix, "shop");
    assert_int_equal(c->snapshot_mode, CDCD_SNAPSHOT_INITIAL);
    assert_int_equal(c->snapshot_workers, 2);
    assert_int_equal(c->log_format, 0);
    assert_null(c->http_listen);
    assert_int_equal(c->max_event_bytes, 256 << 20);
    assert_int_equal(c->batches, 24);
    assert_int_equal(access(c->state_dir, W_OK), 0);
    cdcd_config_free(c);
    cdcd_config_free(NULL);
}

static void from_arguments(void **state)
{
    (void)state;
    static const char *const args[] = {"name=tail", "source.toysource.url=x=${y}",
                                       "source.toysource.table.include.list=a,b",
                                       "sink.toysink.url=-"};
    struct cdcd_config *c;
    struct cdcd_error err;
    assert_int_equal(cdcd_config_from_args(args, 4, &c, &err), CDCD_OK);
    const struct toy *t = c->source_config;
    assert_null(c->file);
    assert_string_equal(t->url, "x=${y}");
    assert_int_equal(t->tables.n, 2);
    cdcd_config_free(c);
    assert_int_equal(cdcd_config_from_args(args, 3, &c, &err), CDCD_ERROR);
    assert_null(c);
    static const char *const bad[] = {"name=tail", "nme=x"};
    assert_int_equal(cdcd_config_from_args(bad, 2, &c, &err), CDCD_ERROR);
    assert_string_equal(err.text, "nme: unknown key; did you mean name?");
}

static void errors(void **state)
{
    (void)state;
    static const struct {
        const char *yaml, *want;
    } cases[] = {
        {SOURCE SINK, "c.yaml: name: is required: "},
        {"name: a b\n" SOURCE SINK, "c.yaml:1: name: expected 1 to 200 letters"},
        {"name: a\ntopic.prefix: a/b\n" SOURCE SINK, "c.yaml:2: topic.prefix: expected 1 to 200"},
        {"name: a\n" SINK, "c.yaml: source: is required"},
        {"name: a\n" SOURCE, "c.yaml: sink: is required"},
        {"name: a\nsource:\n" SINK, "c.yaml: source: is required"},
        {"name: a\nsource: toysource\n" SINK, "c.yaml:2: source: expected a section named after"},
        {"name: a\nsource: {toysource: 5}\n" SINK,
         "c.yaml:2: source.toysource: expected keys with values"},
        {"name: a\nsource: {toysource: {}}\n" SINK,
         "c.yaml: source.toysource.url: is required: Where it is."},
        {"name: a\n" SOURCE "sink:\n  toysink: {url: b}\n  other: {url: b}\n",
         "c.yaml:5: sink.other.url: there is a section sink.toysink already (line 4)"},
        {"name: a\nsource: {toysink: {url: b}}\n" SINK,
         "c.yaml:2: source.toysink.url: the plugin toysink is no source"},
        {"name: a\nsource: {nosuch: {url: b}}\n" SINK,
         "c.yaml:2: source.nosuch.url: there is no plugin nosuch: no nosuch.so in /nonexistent"},
        {"name: a\nsource: {../x: {url: b}}\n" SINK,
         "c.yaml:2: source.../x.url: \"\" is no name of a plugin"},
        {"name: a\nsource: {toysource: {url: a, table.include.lst: b}}\n" SINK,
         "c.yaml:2: source.toysource.table.include.lst: unknown key; did you mean "
         "source.toysource.table.include.list?"},
        {"name: a\nsource: {toysource: {size: 5}}\n" SINK,
         "c.yaml: source.toysource.url: is required: Where it is."},
        {"name: a\n" SOURCE SINK "format: {avro: {x: 1}}\n",
         "c.yaml:4: format.avro.x: there is no format \"avro\"; there is: debezium"},
        {"name: a\n" SOURCE SINK "format: {debezium: {decimal.handling.mode: exact}}\n",
         "c.yaml:4: format.debezium.decimal.handling.mode: expected precise, double or string"},
        {"name: a\n" SOURCE SINK "snapshot: {mode: never}\n",
         "c.yaml:4: snapshot.mode: expected initial, always, initial_only, no_data or when_needed, "
         "not \"never\""},
        {"name: a\n" SOURCE SINK "snapshot.workers: 17\n",
         "c.yaml:4: snapshot.workers: 17 is out of range: expected 1 to 16"},
        {"name: a\n" SOURCE SINK "snaphot.mode: always\n",
         "c.yaml:4: snaphot.mode: unknown key; did you mean snapshot.mode?"},
        {"name: a\n" SOURCE SINK "state.dir: /nonexistent/a/b\n",
         "c.yaml:4: state.dir: cannot make the folder /nonexistent/a/b: No such file"},
        {"name: a\n" SOURCE SINK "state.dir: /dev/null\n",
         "c.yaml:4: state.dir: /dev/null is no folder that this user may write to"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct cdcd_config *c;
        struct cdcd_error err;
        enum cdcd_rc rc = parse(cases[i].yaml, &c, &err);
        if (rc != CDCD_ERROR || c || err.class != CDCD_ERR_CONFIG ||
            strncmp(err.text, cases[i].want, strlen(cases[i].want)) != 0)
            fail_msg("%s got: %d %s\nwant: %s", cases[i].yaml, rc, err.text, cases[i].want);
    }
}

static void missing_file(void **state)
{
    (void)state;
    struct cdcd_config *c;
    struct cdcd_error err;
    assert_int_equal(cdcd_config_load("/nonexistent.yaml", &c, &err), CDCD_ERROR);
    assert_int_equal(err.class, CDCD_ERR_CONFIG);
    assert_string_equal(err.text, "cannot read the config file /nonexistent.yaml: No such file or "
                                  "directory");
    assert_int_equal(cdcd_config_load("/", &c, &err), CDCD_ERROR);
}

/* In a folder that everybody may write to, a folder prepared by somebody else is not used. */
static void a_strange_temporary_folder_is_refused(void **state)
{
    (void)state;
    char dir[] = "/tmp/test_config.XXXXXX";
    struct cdcd_config *c;
    struct cdcd_error err;
    if (access("/var/lib/cdcd", W_OK) == 0)
        skip();
    assert_non_null(mkdtemp(dir));
    char *own = cdcd_xasprintf("%s/cdcd-%lu", dir, (unsigned long)geteuid());
    const char *before = getenv("TMPDIR");
    char *saved = before ? cdcd_xstrdup(before) : NULL;
    setenv("TMPDIR", dir, 1);
    assert_int_equal(symlink("/tmp", own), 0);
    assert_int_equal(parse("name: a\n" SOURCE SINK, &c, &err), CDCD_ERROR);
    assert_non_null(strstr(err.text, "set state.dir"));
    unlink(own);
    assert_int_equal(parse("name: a\n" SOURCE SINK, &c, &err), CDCD_OK);
    assert_string_equal(c->state_dir, own);
    cdcd_config_free(c);
    chmod(own, 0777);
    assert_int_equal(parse("name: a\n" SOURCE SINK, &c, &err), CDCD_ERROR);
    rmdir(own);
    rmdir(dir);
    if (saved)
        setenv("TMPDIR", saved, 1);
    else
        unsetenv("TMPDIR");
    free(saved);
    free(own);
}

static void the_loader_names_what_is_wrong(void **state)
{
    (void)state;
    struct cdcd_error err;
    struct cdcd_plugin p = toysource;
    assert_int_equal(cdcd_plugin_verify(&p, "toysource", "x.so", &err), CDCD_OK);
    assert_int_equal(cdcd_plugin_verify(&p, "other", "x.so", &err), CDCD_ERROR);
    assert_string_equal(err.text, "x.so calls itself \"toysource\", expected \"other\"");
    p.abi++;
    assert_int_equal(cdcd_plugin_verify(&p, "toysource", "x.so", &err), CDCD_ERROR);
    assert_non_null(strstr(err.text, "x.so is of another cdcd"));
    p.abi--;
    p.size = 8;
    assert_int_equal(cdcd_plugin_verify(&p, "toysource", "x.so", &err), CDCD_ERROR);
    p = toysource;
    p.source = NULL;
    assert_int_equal(cdcd_plugin_verify(&p, "toysource", "x.so", &err), CDCD_ERROR);
    assert_string_equal(err.text, "x.so holds neither a source nor a sink");

    struct cdcd_source_ops so = toy_source();
    p.source = &so;
    so.worker_begin = NULL;
    assert_int_equal(cdcd_plugin_verify(&p, "toysource", "x.so", &err), CDCD_ERROR);
    assert_string_equal(err.text, "x.so does not fill in the slot source.worker_begin");
    struct cdcd_sink_ops si = toy_sink();
    p = toysink;
    p.sink = &si;
    si.config_size = 0;
    assert_int_equal(cdcd_plugin_verify(&p, "toysink", "x.so", &err), CDCD_ERROR);
    assert_string_equal(err.text, "x.so does not fill in the slot sink.config_size");
}

/* Every row of the tables that are linked in: a default parses, required rows have a sample. */
static void tables_are_sound(void **state)
{
    (void)state;
    static const struct cdcd_option *const tables[] = {cdcd_config_options, cdcd_debezium_options};
    for (size_t t = 0; t < 2; t++) {
        for (const struct cdcd_option *o = tables[t]; o->name; o++) {
            assert_non_null(o->doc);
            assert_true(o->type != CDCD_OPT_ENUM || o->values);
            assert_true(!(o->flags & CDCD_OPT_REQUIRED) || o->sample);
            assert_true(!(o->flags & CDCD_OPT_SAMPLE) || o->sample || o->default_);
            for (const struct cdcd_option *other = tables[t]; other < o; other++)
                assert_string_not_equal(other->name, o->name);
        }
    }
}

/* One plugin serves both systems; the section may have either name. */
static void mariadb_is_mysql(void **state)
{
    (void)state;
    struct cdcd_config *c;
    struct cdcd_error err;
    static const char *const names[] = {"mysql", "mariadb"};
    for (size_t i = 0; i < 2; i++) {
        char *yaml = cdcd_xasprintf("name: x\ntopic.prefix: p\nsource.%s.url: u\n" SINK, names[i]);
        assert_int_equal(parse(yaml, &c, &err), CDCD_OK);
        assert_ptr_equal(c->source_plugin, &toymysql);
        assert_string_equal(((const struct toy *)c->source_config)->url, "u");
        cdcd_config_free(c);
        free(yaml);
    }
    assert_int_equal(parse("name: x\ntopic.prefix: p\nsource.mysql.url: u\n"
                           "source.mariadb.size: 1\n" SINK,
                           &c, &err),
                     CDCD_ERROR);
    assert_int_equal(parse("name: x\ntopic.prefix: p\nsource.mariadb.nosuch: u\n" SINK, &c, &err),
                     CDCD_ERROR);
    assert_non_null(strstr(err.text, "source.mariadb.nosuch"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_full_config),
        cmocka_unit_test(defaults),
        cmocka_unit_test(from_arguments),
        cmocka_unit_test(mariadb_is_mysql),
        cmocka_unit_test(errors),
        cmocka_unit_test(missing_file),
        cmocka_unit_test(a_strange_temporary_folder_is_refused),
        cmocka_unit_test(the_loader_names_what_is_wrong),
        cmocka_unit_test(tables_are_sound),
    };
    return cmocka_run_group_tests(tests, setup, NULL);
}
