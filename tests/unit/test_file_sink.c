#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "file.h"

#include <cdcd/version.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

extern const struct cdcd_plugin cdcd_plugin_file;
#define OPS (cdcd_plugin_file.sink)

/* As the plugin's own: the option table says where things are. */
struct config {
    char *path;
    bool fsync;
    int format;
};

struct bench {
    struct config config;
    struct cdcd_sink_env env;
    struct cdcd_sink *sink;
    struct cdcd_topic topics[4];
    struct cdcd_error err;
    struct cdcd_buf state;
    struct cdcd_notes *notes;
    uint64_t seq, durable;
    unsigned given_back;
};

static void batch_done(void *ctx, struct cdcd_batch *b)
{
    ((struct bench *)ctx)->given_back++;
    cdcd_batch_free(b);
}

static void durable(void *ctx, uint64_t seq)
{
    struct bench *t = ctx;
    assert_true(seq > t->durable);
    t->durable = seq;
}

static const char *const topic_names[4] = {"a.one", "a.two", "b.three", "b.four"};

static void bench_topic(struct cdcd_topic *t, const char *name, char *json, size_t size)
{
    int n = snprintf(json, size, "\"%s\"", name);
    *t = (struct cdcd_topic){
        .name = cdcd_slice_str(name), .name_json = {json, (size_t)n}, .keyed = true};
}

static char json_names[4][32];

static void bench_open(struct bench *t)
{
    t->env = (struct cdcd_sink_env){.pipeline = "p",
                                    .topic_prefix = "a",
                                    .ctx = t,
                                    .batch_done = batch_done,
                                    .durable = durable};
    for (size_t i = 0; i < 4; i++)
        bench_topic(&t->topics[i], topic_names[i], json_names[i], sizeof json_names[i]);
    assert_int_equal(OPS->open(&t->sink, &t->config, &t->env, &t->err), CDCD_OK);
}

static enum cdcd_rc bench_load(struct bench *t)
{
    t->seq = t->durable = 0;
    if (!t->notes)
        t->notes = cdcd_notes_new();
    cdcd_notes_clear(t->notes);
    return OPS->load(t->sink, &t->state, t->notes, &t->err);
}

static void bench_close(struct bench *t)
{
    cdcd_notes_free(t->notes);
    t->notes = NULL;
    OPS->close(t->sink);
    t->sink = NULL;
}

static int bench_setup(void **state)
{
    struct bench *t = cdcd_xcalloc(1, sizeof *t);
    char dir[] = "/tmp/cdcd-file-XXXXXX";
    assert_non_null(mkdtemp(dir));
    t->config = (struct config){.path = cdcd_xstrdup(dir), .fsync = true};
    cdcd_buf_init(&t->state, 0);
    bench_open(t);
    *state = t;
    return 0;
}

static void remove_folder(const char *path)
{
    char *command = cdcd_xasprintf("rm -r '%s'", path);
    assert_int_equal(system(command), 0);
    free(command);
}

static int bench_teardown(void **state)
{
    struct bench *t = *state;
    bench_close(t);
    if (strcmp(t->config.path, "-") != 0)
        remove_folder(t->config.path);
    free(t->config.path);
    cdcd_buf_free(&t->state);
    free(t);
    return 0;
}

static struct cdcd_batch *batch(struct bench *t, const char *state)
{
    struct cdcd_batch *b = cdcd_batch_new();
    b->seq = ++t->seq;
    if (state)
        b->state = (struct cdcd_slice){cdcd_arena_dup(&b->arena, state, strlen(state)),
                                       strlen(state)};
    return b;
}

static void record(struct cdcd_batch *b, struct cdcd_topic *topic, int key)
{
    char text[32];
    struct cdcd_record *r = cdcd_batch_record(b);
    int n = snprintf(text, sizeof text, "{\"id\":%d}", key);
    r->topic = topic;
    r->key = (struct cdcd_slice){cdcd_arena_dup(&b->arena, text, (size_t)n), (size_t)n};
    r->value = cdcd_slice_str("{}");
}

/* One record with this key in topic i, and the state {"n":key}. */
static enum cdcd_rc put(struct bench *t, size_t topic, int key)
{
    char state[32];
    snprintf(state, sizeof state, "{\"n\":%d}", key);
    struct cdcd_batch *b = batch(t, state);
    record(b, &t->topics[topic], key);
    return OPS->write(t->sink, b, &t->err);
}

static enum cdcd_rc commit(struct bench *t)
{
    return OPS->poll(t->sink, 0, false, false, &t->err);
}

static char *path_of(const struct bench *t, const char *name)
{
    return cdcd_xasprintf("%s/%s", t->config.path, name);
}

static struct cdcd_buf slurp(const struct bench *t, const char *name)
{
    struct cdcd_buf b;
    char *path = path_of(t, name), chunk[4096];
    cdcd_buf_init(&b, 0);
    FILE *f = fopen(path, "rb");
    for (size_t n; f && (n = fread(chunk, 1, sizeof chunk, f)) > 0;)
        cdcd_buf_add(&b, chunk, n);
    if (f)
        fclose(f);
    free(path);
    return b;
}

static void spit(const struct bench *t, const char *name, const char *p, size_t n)
{
    char *path = path_of(t, name);
    FILE *f = fopen(path, "wb");
    assert_non_null(f);
    assert_int_equal(fwrite(p, 1, n, f), n);
    fclose(f);
    free(path);
}

/* The keys of a topic's file must be exactly from..to. */
static void assert_keys(const struct bench *t, size_t topic, int from, int to)
{
    char *name = cdcd_xasprintf("%s.jsonl", topic_names[topic]);
    struct cdcd_buf is = slurp(t, name), want;
    cdcd_buf_init(&want, 0);
    for (int k = from; k <= to; k++)
        cdcd_buf_addf(&want, "{\"topic\":\"%s\",\"key\":{\"id\":%d},\"value\":{},\"headers\":{}}\n",
                      topic_names[topic], k);
    assert_string_equal(cdcd_buf_cstr(&is), cdcd_buf_cstr(&want));
    cdcd_buf_free(&is);
    cdcd_buf_free(&want);
    free(name);
}

static void writes_and_remembers(void **state)
{
    struct bench *t = *state;
    assert_int_equal(bench_load(t), CDCD_OK);
    assert_int_equal(t->state.len, 0);
    for (int k = 1; k <= 3; k++)
        assert_int_equal(put(t, 0, k), CDCD_OK);
    assert_int_equal(put(t, 1, 9), CDCD_OK);
    assert_int_equal(t->given_back, 4);
    assert_int_equal(t->durable, 0);
    assert_int_equal(commit(t), CDCD_OK);
    assert_int_equal(t->durable, 4);
    bench_close(t);
    bench_open(t);
    assert_int_equal(bench_load(t), CDCD_OK);
    assert_string_equal(cdcd_buf_cstr(&t->state), "{\"n\":9}");
    assert_keys(t, 0, 1, 3);
    assert_keys(t, 1, 9, 9);
}

static void uncommitted_is_undone(void **state)
{
    struct bench *t = *state;
    assert_int_equal(bench_load(t), CDCD_OK);
    assert_int_equal(put(t, 0, 1), CDCD_OK);
    assert_int_equal(commit(t), CDCD_OK);
    /* More than a buffer, so that much of it is in the files when the process "dies". */
    for (int k = 2; k < 9000; k++)
        assert_int_equal(put(t, k % 2, k), CDCD_OK);
    assert_int_equal(t->durable, 1);
    struct cdcd_buf before = slurp(t, "a.one.jsonl");
    assert_true(before.len > 200000);
    cdcd_buf_free(&before);
    bench_close(t);
    bench_open(t);
    assert_int_equal(bench_load(t), CDCD_OK);
    assert_string_equal(cdcd_buf_cstr(&t->state), "{\"n\":1}");
    assert_keys(t, 0, 1, 1);
    assert_keys(t, 1, 1, 0);
    assert_int_equal(put(t, 1, 2), CDCD_OK);
    assert_int_equal(commit(t), CDCD_OK);
    assert_keys(t, 1, 2, 2);
}

static void empty_batches_count(void **state)
{
    struct bench *t = *state;
    assert_int_equal(bench_load(t), CDCD_OK);
    assert_int_equal(OPS->write(t->sink, batch(t, NULL), &t->err), CDCD_OK);
    assert_int_equal(commit(t), CDCD_OK);
    assert_int_equal(t->durable, 1);
    assert_int_equal(OPS->write(t->sink, batch(t, "{\"k\":1}"), &t->err), CDCD_OK);
    assert_int_equal(commit(t), CDCD_OK);
    assert_int_equal(t->durable, 2);
    assert_int_equal(bench_load(t), CDCD_OK);
    assert_string_equal(cdcd_buf_cstr(&t->state), "{\"k\":1}");
}

static void more_puts_commits_off(void **state)
{
    struct bench *t = *state;
    assert_int_equal(bench_load(t), CDCD_OK);
    assert_int_equal(put(t, 0, 1), CDCD_OK);
    assert_int_equal(OPS->poll(t->sink, 0, true, false, &t->err), CDCD_OK);
    assert_int_equal(t->durable, 0);
    usleep(250000);
    assert_int_equal(OPS->poll(t->sink, 0, true, false, &t->err), CDCD_OK);
    assert_int_equal(t->durable, 1);
    assert_int_equal(put(t, 0, 2), CDCD_OK);
    assert_int_equal(OPS->poll(t->sink, 0, true, true, &t->err), CDCD_OK);
    assert_int_equal(t->durable, 2);
}

/* The log cut at every byte: each length must load as one of the commits, with its files. */
static void torn_record(void **state)
{
    struct bench *t = *state;
    const int commits = 4;
    assert_int_equal(bench_load(t), CDCD_OK);
    for (int k = 1; k <= commits; k++) {
        assert_int_equal(put(t, 0, k), CDCD_OK);
        assert_int_equal(commit(t), CDCD_OK);
    }
    struct cdcd_buf log = slurp(t, ".cdcd-p.state"), data = slurp(t, "a.one.jsonl");
    int last = -1;
    for (size_t cut = 0; cut <= log.len; cut++) {
        int n = 0;
        bench_close(t);
        spit(t, ".cdcd-p.state", log.ptr, cut);
        spit(t, "a.one.jsonl", data.ptr, data.len);
        bench_open(t);
        assert_int_equal(bench_load(t), CDCD_OK);
        if (t->state.len)
            assert_int_equal(sscanf(cdcd_buf_cstr(&t->state), "{\"n\":%d}", &n), 1);
        assert_true(n == last || n == last + 1 || last < 0);
        last = n;
        /* Before the file's name is in the record it is not ours: then it stays as it is. */
        struct cdcd_buf is = slurp(t, "a.one.jsonl");
        if (n || is.len != data.len)
            assert_keys(t, 0, 1, n);
        cdcd_buf_free(&is);
    }
    assert_int_equal(last, commits);
    cdcd_buf_free(&log);
    cdcd_buf_free(&data);
}

/* A byte changed before the last frame is damage, and nothing is touched. */
static void damaged_record(void **state)
{
    struct bench *t = *state;
    assert_int_equal(bench_load(t), CDCD_OK);
    for (int k = 1; k <= 3; k++) {
        assert_int_equal(put(t, 0, k), CDCD_OK);
        assert_int_equal(commit(t), CDCD_OK);
    }
    struct cdcd_buf log = slurp(t, ".cdcd-p.state");
    size_t last = log.len;
    while (strncmp(log.ptr + --last, "cdcd1 ", 6) != 0)
        continue;
    for (size_t i = 0; i < last; i++) {
        log.ptr[i] ^= 1;
        bench_close(t);
        spit(t, ".cdcd-p.state", log.ptr, log.len);
        bench_open(t);
        if (bench_load(t) != CDCD_ERROR)
            fail_msg("byte %zu", i);
        assert_int_equal(t->err.class, CDCD_ERR_LOSS);
        assert_keys(t, 0, 1, 3);
        log.ptr[i] ^= 1;
    }
    cdcd_buf_free(&log);
}

static void data_taken_away(void **state)
{
    struct bench *t = *state;
    assert_int_equal(bench_load(t), CDCD_OK);
    assert_int_equal(put(t, 0, 1), CDCD_OK);
    assert_int_equal(put(t, 1, 2), CDCD_OK);
    assert_int_equal(commit(t), CDCD_OK);
    char *path = path_of(t, "a.one.jsonl");
    assert_int_equal(truncate(path, 3), 0);
    assert_int_equal(bench_load(t), CDCD_ERROR);
    assert_int_equal(t->err.class, CDCD_ERR_LOSS);
    assert_non_null(strstr(t->err.text, "a.one.jsonl"));
    assert_int_equal(unlink(path), 0);
    assert_int_equal(bench_load(t), CDCD_ERROR);
    assert_int_equal(t->err.class, CDCD_ERR_LOSS);
    /* A session that did not begin takes nothing. */
    assert_int_equal(put(t, 0, 3), CDCD_ERROR);
    free(path);
}

static void changed_while_running(void **state)
{
    struct bench *t = *state;
    assert_int_equal(bench_load(t), CDCD_OK);
    assert_int_equal(put(t, 0, 1), CDCD_OK);
    assert_int_equal(commit(t), CDCD_OK);
    char *path = path_of(t, "a.one.jsonl");
    assert_int_equal(truncate(path, 0), 0);
    assert_int_equal(put(t, 0, 2), CDCD_OK);
    assert_int_equal(commit(t), CDCD_ERROR);
    assert_int_equal(t->err.class, CDCD_ERR_LOSS);
    assert_int_equal(t->durable, 1);
    free(path);
}

static void foreign_files_stay(void **state)
{
    struct bench *t = *state;
    spit(t, "a.one.jsonl", "mine\n", 5);
    spit(t, "a.two.jsonl", "", 0);
    assert_int_equal(bench_load(t), CDCD_OK);
    assert_int_equal(put(t, 1, 1), CDCD_OK);
    assert_int_equal(put(t, 0, 1), CDCD_ERROR);
    assert_int_equal(t->err.class, CDCD_ERR_CONFIG);
    struct cdcd_buf is = slurp(t, "a.one.jsonl");
    assert_string_equal(cdcd_buf_cstr(&is), "mine\n");
    cdcd_buf_free(&is);
    struct cdcd_topic *all[2] = {&t->topics[0], &t->topics[2]};
    assert_int_equal(bench_load(t), CDCD_OK);
    assert_int_equal(OPS->prepare(t->sink, all, 2, &t->err), CDCD_ERROR);
    assert_int_equal(t->err.class, CDCD_ERR_CONFIG);
    /* The failed claim has left nothing in the record. */
    assert_int_equal(bench_load(t), CDCD_OK);
    char *path = path_of(t, "a.one.jsonl");
    assert_int_equal(unlink(path), 0);
    assert_int_equal(OPS->prepare(t->sink, all, 2, &t->err), CDCD_OK);
    assert_int_equal(put(t, 0, 1), CDCD_OK);
    assert_int_equal(put(t, 1, 1), CDCD_OK);
    assert_int_equal(commit(t), CDCD_OK);
    assert_keys(t, 0, 1, 1);
    assert_keys(t, 1, 1, 1);
    free(path);
}

static void one_instance(void **state)
{
    struct bench *t = *state;
    struct cdcd_sink *second;
    struct cdcd_sink_env other = t->env;
    assert_int_equal(OPS->open(&second, &t->config, &t->env, &t->err), CDCD_ERROR);
    assert_int_equal(t->err.class, CDCD_ERR_LOSS);
    assert_non_null(strstr(t->err.text, "another instance"));
    other.pipeline = "q";
    assert_int_equal(OPS->open(&second, &t->config, &other, &t->err), CDCD_OK);
    OPS->close(second);
}

/* RLIMIT_FSIZE stands for a full disk: the write that crosses it comes back short. */
static void full_disk(void **state)
{
    struct bench *t = *state;
    struct rlimit full = {20000, RLIM_INFINITY}, room = {RLIM_INFINITY, RLIM_INFINITY};
    signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(bench_load(t), CDCD_OK);
    assert_int_equal(put(t, 0, 1), CDCD_OK);
    assert_int_equal(commit(t), CDCD_OK);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &full), 0);
    for (int k = 2; k <= 1000; k++)
        assert_int_equal(put(t, 0, k), CDCD_OK);
    enum cdcd_rc rc = commit(t);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &room), 0);
    assert_int_equal(rc, CDCD_ERROR);
    assert_int_equal(t->err.class, CDCD_ERR_RETRY);
    assert_non_null(strstr(t->err.text, "make room"));
    assert_int_equal(commit(t), CDCD_ERROR);
    assert_int_equal(bench_load(t), CDCD_OK);
    assert_string_equal(cdcd_buf_cstr(&t->state), "{\"n\":1}");
    for (int k = 2; k <= 1000; k++)
        assert_int_equal(put(t, 0, k), CDCD_OK);
    assert_int_equal(commit(t), CDCD_OK);
    assert_keys(t, 0, 1, 1000);
}

static size_t open_files(void)
{
    size_t n = 0;
    DIR *d = opendir("/proc/self/fd");
    assert_non_null(d);
    while (readdir(d))
        n++;
    closedir(d);
    return n;
}

static void thousand_topics(void **state)
{
    enum { N = 1000 };
    struct bench *t = *state;
    struct cdcd_topic *topics = cdcd_xcalloc(N, sizeof *topics);
    char(*text)[2][32] = cdcd_xcalloc(N, sizeof *text);
    for (size_t i = 0; i < N; i++) {
        snprintf(text[i][0], sizeof text[i][0], "t%04zu", i);
        bench_topic(&topics[i], text[i][0], text[i][1], sizeof text[i][1]);
    }
    assert_int_equal(bench_load(t), CDCD_OK);
    for (int round = 1; round <= 3; round++) {
        struct cdcd_batch *b = batch(t, "{\"r\":1}");
        for (size_t i = 0; i < N; i++)
            record(b, &topics[i], round);
        assert_int_equal(OPS->write(t->sink, b, &t->err), CDCD_OK);
        assert_int_equal(commit(t), CDCD_OK);
        assert_true(open_files() < FILE_MAX_OPEN + 40);
    }
    bench_close(t);
    bench_open(t);
    assert_int_equal(bench_load(t), CDCD_OK);
    for (size_t i = 0; i < N; i += 37) {
        char name[40];
        snprintf(name, sizeof name, "%s.jsonl", text[i][0]);
        struct cdcd_buf is = slurp(t, name);
        assert_int_equal(is.len, 3 * strlen("{\"topic\":\"t0000\",\"key\":{\"id\":1},"
                                            "\"value\":{},\"headers\":{}}\n"));
        cdcd_buf_free(&is);
    }
    free(topics);
    free(text);
}

/* The log of many commits stays small and is still right after being replaced. */
static void record_is_compacted(void **state)
{
    struct bench *t = *state;
    struct stat st;
    struct cdcd_buf big;
    t->config.fsync = false;
    bench_close(t);
    bench_open(t);
    assert_int_equal(bench_load(t), CDCD_OK);
    cdcd_buf_init(&big, 0);
    char *path = path_of(t, ".cdcd-p.state");
    for (int k = 1; k <= 3000; k++) {
        cdcd_buf_clear(&big);
        cdcd_buf_addf(&big, "{\"n\":%d,\"pad\":\"%03000d\"}", k, 0);
        struct cdcd_batch *b = batch(t, cdcd_buf_cstr(&big));
        record(b, &t->topics[k % 4], k);
        assert_int_equal(OPS->write(t->sink, b, &t->err), CDCD_OK);
        assert_int_equal(commit(t), CDCD_OK);
        if (k % 100 == 0) {
            assert_int_equal(stat(path, &st), 0);
            assert_true(st.st_size < 5 << 20);
        }
    }
    assert_int_equal(bench_load(t), CDCD_OK);
    assert_string_equal(cdcd_buf_cstr(&t->state), cdcd_buf_cstr(&big));
    cdcd_buf_free(&big);
    free(path);
}

/* ---- notes ---- */

/* Commit k (from 1) sets "always" and a key of its own, with bytes that look like the record's,
 * forgets the key of the commit before the last, and has an empty value now and then. */
static void put_notes(struct cdcd_batch *b, int k)
{
    char key[32], value[64];
    int n = snprintf(value, sizeof value, "%d\nstate 5\nnote 1 1\n%c", k, k % 2 ? '\n' : 0);
    snprintf(key, sizeof key, "[\"db\",\"t %d\"]", k);
    cdcd_batch_note(b, cdcd_slice_str("always"), (struct cdcd_slice){value, (size_t)n});
    cdcd_batch_note(b, cdcd_slice_str(key), (struct cdcd_slice){value, k % 3 ? (size_t)n : 0});
    snprintf(key, sizeof key, "[\"db\",\"t %d\"]", k - 2);
    cdcd_batch_note(b, cdcd_slice_str(key), (struct cdcd_slice){NULL, 0});
}

static void assert_notes(const struct cdcd_notes *is, int commits)
{
    struct cdcd_notes *want = cdcd_notes_new();
    struct cdcd_batch *b = cdcd_batch_new();
    for (int k = 1; k <= commits; k++)
        put_notes(b, k);
    for (const struct cdcd_note *n = b->notes; n; n = n->next)
        cdcd_notes_set(want, n->key, n->value);
    cdcd_batch_free(b);
    assert_int_equal(cdcd_notes_count(is), cdcd_notes_count(want));
    for (size_t i = 0; i < cdcd_notes_count(want); i++) {
        struct cdcd_slice key, value, is_key, is_value;
        cdcd_notes_at(want, i, &key, &value);
        cdcd_notes_at(is, i, &is_key, &is_value);
        assert_true(cdcd_slice_eq(key, is_key));
        assert_true(cdcd_slice_eq(value, is_value));
        assert_non_null(is_value.ptr);
    }
    cdcd_notes_free(want);
}

static enum cdcd_rc put_noted(struct bench *t, int k)
{
    char state[32];
    snprintf(state, sizeof state, "{\"n\":%d}", k);
    struct cdcd_batch *b = batch(t, state);
    record(b, &t->topics[0], k);
    put_notes(b, k);
    return OPS->write(t->sink, b, &t->err);
}

/* Whatever is left of the log: the notes are those of the state. */
static void notes_go_with_the_state(void **state)
{
    struct bench *t = *state;
    const int commits = 5;
    assert_int_equal(bench_load(t), CDCD_OK);
    assert_notes(t->notes, 0);
    for (int k = 1; k <= commits; k++) {
        assert_int_equal(put_noted(t, k), CDCD_OK);
        assert_int_equal(commit(t), CDCD_OK);
    }
    assert_int_equal(put_noted(t, commits + 1), CDCD_OK); /* and dies before the commit */
    bench_close(t);
    struct cdcd_buf log = slurp(t, ".cdcd-p.state"), data = slurp(t, "a.one.jsonl");
    int last = 0;
    for (size_t cut = 0; cut <= log.len; cut++) {
        int n = 0;
        spit(t, ".cdcd-p.state", log.ptr, cut);
        spit(t, "a.one.jsonl", data.ptr, data.len);
        bench_open(t);
        assert_int_equal(bench_load(t), CDCD_OK);
        if (t->state.len)
            assert_int_equal(sscanf(cdcd_buf_cstr(&t->state), "{\"n\":%d}", &n), 1);
        assert_true(n == last || n == last + 1);
        assert_notes(t->notes, n);
        last = n;
        bench_close(t);
    }
    assert_int_equal(last, commits);
    cdcd_buf_free(&log);
    cdcd_buf_free(&data);
    bench_open(t);
}

static void notes_stay_when_compacted(void **state)
{
    struct bench *t = *state;
    size_t size = 3 << 20;
    char *large = cdcd_xcalloc(1, size);
    off_t before = 0, most = 0;
    memset(large, 'x', size);
    assert_int_equal(bench_load(t), CDCD_OK);
    for (int k = 1; k <= 12; k++) {
        char text[32];
        snprintf(text, sizeof text, "{\"n\":%d}", k);
        struct cdcd_batch *b = batch(t, text);
        put_notes(b, k);
        if (k % 2)
            cdcd_batch_note(b, cdcd_slice_str("large"), (struct cdcd_slice){large, size});
        cdcd_batch_note(b, cdcd_slice_str("large"), (struct cdcd_slice){NULL, 0});
        assert_int_equal(OPS->write(t->sink, b, &t->err), CDCD_OK);
        b = batch(t, text);
        cdcd_batch_note(b, cdcd_slice_str("z"), (struct cdcd_slice){large, size / 3});
        assert_int_equal(OPS->write(t->sink, b, &t->err), CDCD_OK);
        assert_int_equal(commit(t), CDCD_OK);
        struct cdcd_buf log = slurp(t, ".cdcd-p.state");
        before = (off_t)log.len;
        most = before > most ? before : most;
        cdcd_buf_free(&log);
    }
    assert_true(before < most); /* it was replaced */
    bench_close(t);
    bench_open(t);
    assert_int_equal(bench_load(t), CDCD_OK);
    assert_string_equal(cdcd_buf_cstr(&t->state), "{\"n\":12}");
    assert_int_equal(cdcd_notes_get(t->notes, cdcd_slice_str("z")).len, size / 3);
    cdcd_notes_set(t->notes, cdcd_slice_str("z"), (struct cdcd_slice){NULL, 0});
    assert_notes(t->notes, 12);
    free(large);
}

/* A session that begins anew in the same process forgets what was not committed. */
static void notes_of_a_lost_session(void **state)
{
    struct bench *t = *state;
    assert_int_equal(bench_load(t), CDCD_OK);
    assert_int_equal(put_noted(t, 1), CDCD_OK);
    assert_int_equal(commit(t), CDCD_OK);
    assert_int_equal(put_noted(t, 2), CDCD_OK);
    assert_int_equal(bench_load(t), CDCD_OK);
    assert_notes(t->notes, 1);
    assert_int_equal(put(t, 0, 5), CDCD_OK); /* a state without notes keeps those that are there */
    assert_int_equal(commit(t), CDCD_OK);
    assert_int_equal(bench_load(t), CDCD_OK);
    assert_notes(t->notes, 1);
}

static void put_frame(struct cdcd_buf *to, const char *payload)
{
    uint32_t crc = ~0u; /* CRC-32C, bit by bit */
    for (const char *p = payload; *p; p++) {
        crc ^= (uint8_t)*p;
        for (int k = 0; k < 8; k++)
            crc = crc & 1 ? crc >> 1 ^ 0x82f63b78u : crc >> 1;
    }
    cdcd_buf_addf(to, "cdcd1 %08x %zu\n%s\n", (unsigned)~crc, strlen(payload), payload);
}

static void damaged_notes(void **state)
{
    static const struct {
        const char *payload;
        bool good;
    } cases[] = {
        {"state 3\n{a}", true},
        {"note 1 1\nab\nstate 3\n{a}", true},
        {"note 1 0\na\n", true},
        {"forget 3\nabc\n", true},
        {"note 0 1\nb\n", false},
        {"note 1\nab\n", false},
        {"note 1 2\nab\n", false},
        {"note 1 1\nabc\n", false},
        {"note 1 9223372036854775800\nab\n", false},
        {"note 9223372036854775800 9223372036854775800\nab\n", false},
        {"note 1 1\nab", false},
        {"forget 0\n\n", false},
        {"forget 4\nabc\n", false},
        {"forgets 3\nabc\n", false},
        {"state 3\n{a}note 1 1\nab\n", false},
    };
    struct bench *t = *state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct cdcd_buf log;
        cdcd_buf_init(&log, 0);
        put_frame(&log, cases[i].payload);
        bench_close(t);
        spit(t, ".cdcd-p.state", log.ptr, log.len);
        bench_open(t);
        if (bench_load(t) != (cases[i].good ? CDCD_OK : CDCD_ERROR))
            fail_msg("case %zu", i);
        if (!cases[i].good)
            assert_int_equal(t->err.class, CDCD_ERR_LOSS);
        cdcd_buf_free(&log);
    }
}

static int stdout_setup(void **state)
{
    struct bench *t = cdcd_xcalloc(1, sizeof *t);
    t->config = (struct config){.path = cdcd_xstrdup("-"), .fsync = true};
    cdcd_buf_init(&t->state, 0);
    bench_open(t);
    *state = t;
    return 0;
}

static void standard_output(void **state)
{
    struct bench *t = *state;
    int ends[2], keep = dup(STDOUT_FILENO);
    char text[4096] = "";
    assert_true(OPS->forgetful(&t->config));
    assert_int_equal(pipe(ends), 0);
    fflush(stdout);
    dup2(ends[1], STDOUT_FILENO);
    enum cdcd_rc load = bench_load(t), write = put(t, 0, 1), poll = commit(t);
    size_t durable_before_pipe_ended = t->durable;
    ssize_t n = read(ends[0], text, sizeof text - 1);
    close(ends[0]);
    enum cdcd_rc write2 = put(t, 0, 2), poll2 = commit(t);
    struct cdcd_error pipe_error = t->err;
    int full = open("/dev/full", O_WRONLY);
    dup2(full, STDOUT_FILENO);
    enum cdcd_rc load3 = bench_load(t), write3 = put(t, 0, 2), poll3 = commit(t);
    dup2(keep, STDOUT_FILENO);
    close(keep);
    close(full);
    close(ends[1]);
    assert_int_equal(load, CDCD_OK);
    assert_int_equal(write, CDCD_OK);
    assert_int_equal(poll, CDCD_OK);
    assert_true(n > 0);
    assert_string_equal(text,
                        "{\"topic\":\"a.one\",\"key\":{\"id\":1},\"value\":{},\"headers\":{}}\n");
    assert_int_equal(durable_before_pipe_ended, 1);
    assert_int_equal(write2, CDCD_OK);
    assert_int_equal(poll2, CDCD_ERROR);
    assert_int_equal(pipe_error.class, CDCD_ERR_FATAL);
    assert_int_equal(load3, CDCD_OK);
    assert_int_equal(write3, CDCD_OK);
    assert_int_equal(poll3, CDCD_ERROR);
    assert_int_equal(t->err.class, CDCD_ERR_RETRY);
    assert_int_equal(t->durable, 0);
}

struct findings {
    unsigned n[3];
};

static void finding(void *ctx, enum cdcd_check_level level, const char *what, const char *text,
                    const char *mend)
{
    (void)what, (void)text, (void)mend;
    ((struct findings *)ctx)->n[level]++;
}

static unsigned failures(const struct bench *t, const char *path)
{
    struct findings f = {{0}};
    struct cdcd_report report = {&f, finding};
    struct cdcd_error err;
    struct config c = {.path = (char *)(uintptr_t)path, .fsync = true};
    assert_int_equal(OPS->check(&c, &t->env, &report, &err), CDCD_OK);
    assert_true(f.n[0] + f.n[1] + f.n[2] > 0);
    return f.n[CDCD_CHECK_FAIL];
}

static void checks(void **state)
{
    struct bench *t = *state;
    assert_int_equal(failures(t, "-"), 0);
    assert_int_equal(failures(t, t->config.path), 0);
    assert_int_equal(failures(t, "/dev/null"), 1);
    bench_load(t);
    put(t, 0, 1);
    commit(t);
    bench_close(t);
    assert_int_equal(failures(t, t->config.path), 0);
    spit(t, ".cdcd-p.state", "cdcd1 00000000 0\n\ncdcd1 00000000 0\n\n", 36);
    assert_int_equal(failures(t, t->config.path), 0);
    spit(t, ".cdcd-p.state", "Xdcd1 00000000 0\n\ncdcd1 00000000 0\n\n", 36);
    assert_int_equal(failures(t, t->config.path), 1);
    bench_open(t);
}

#define ON_FOLDER(f) cmocka_unit_test_setup_teardown(f, bench_setup, bench_teardown)

int main(void)
{
    cdcd_log_setup(CDCD_LOG_ERROR, false, "");
    const struct CMUnitTest tests[] = {
        ON_FOLDER(writes_and_remembers),
        ON_FOLDER(uncommitted_is_undone),
        ON_FOLDER(empty_batches_count),
        ON_FOLDER(more_puts_commits_off),
        ON_FOLDER(torn_record),
        ON_FOLDER(damaged_record),
        ON_FOLDER(data_taken_away),
        ON_FOLDER(changed_while_running),
        ON_FOLDER(foreign_files_stay),
        ON_FOLDER(one_instance),
        ON_FOLDER(full_disk),
        ON_FOLDER(thousand_topics),
        ON_FOLDER(record_is_compacted),
        ON_FOLDER(notes_go_with_the_state),
        ON_FOLDER(notes_stay_when_compacted),
        ON_FOLDER(notes_of_a_lost_session),
        ON_FOLDER(damaged_notes),
        cmocka_unit_test_setup_teardown(standard_output, stdout_setup, bench_teardown),
        ON_FOLDER(checks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
