/*
 * cdcd replay: derives a sink anew from the topics.
 *
 * A sink that can be built beside the live one (an index behind an alias) takes these steps, each
 * of which may be done again, so that a process that was killed anywhere goes on from the start of
 * this list:
 *
 *     BEGIN; run to the end of the topics until that is a matter of seconds; FREEZE; run to the
 * end, VERIFY, SWAP, run to the end, FINISH
 *
 * The runs are ordinary sessions of the pipeline with options.replay; the position of what is built
 * is kept apart from the live one. Any other sink gets one run, under the name NAME.replay.
 *
 * Threads: the steps are on the main thread, a run on a thread of its own while the main thread
 * waits for signals.
 */
#include "command.h"
#include "runner.h"

#include <cdcd/log.h>

#include <getopt.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define SHORT_MS       5000 /* a run that took no longer is close enough to the end to freeze */
#define MOST_RUNS      10
#define STEP_TRIES     30
#define STEP_AGAIN_MS  1000
#define TTY_EVERY_MS   200
#define LINES_EVERY_MS 10000
#define BAR_WIDTH      24
#define SAME_SIGNAL_MS 1000

struct arguments {
    const char *path, *from, *to;
    bool drop_old, keep_old, abandon, no_swap, yes;
};

struct replay {
    const struct arguments *arguments;
    struct cdcd_config *config;
    struct cdcd_pipeline *pipeline;
    struct cdcd_run_options options;
    struct cdcd_report report;
    bool tty, stopped;
    int64_t asked; /* monotonic ms of the first signal */
    uint64_t read; /* records, in all runs */
    int64_t shown, began;
    struct cdcd_error err;
};

/* ---- signals ---- */

static void signals(sigset_t *set)
{
    sigemptyset(set);
    sigaddset(set, SIGTERM);
    sigaddset(set, SIGINT);
    sigaddset(set, SIGHUP);
}

/* Waits for at most wait_ms. A second signal ends the process at once: nothing is lost by it. */
static void look_for_signal(struct replay *r, int wait_ms)
{
    sigset_t set;
    const struct timespec wait = {wait_ms / 1000, wait_ms % 1000 * 1000000L};
    signals(&set);
    int sig = sigtimedwait(&set, NULL, &wait);
    if (sig < 0 || sig == SIGHUP)
        return;
    int64_t now = cdcd_now_ms();
    if (r->stopped && now - r->asked < SAME_SIGNAL_MS)
        return;
    if (r->stopped) {
        cdcd_warn("replay", "%s again: ending now; cdcd replay goes on from here", strsignal(sig));
        _exit(1);
    }
    r->stopped = true;
    r->asked = now;
    cdcd_info("replay", "%s: stopping", strsignal(sig));
    cdcd_pipeline_stop(r->pipeline);
}

/* ---- progress ---- */

static void show(struct replay *r, const char *what, bool last)
{
    struct cdcd_stats st;
    char text[200], bar[BAR_WIDTH + 1];
    int64_t now = cdcd_now_ms(), ms = now - r->began;
    if (!last && now - r->shown < (r->tty ? TTY_EVERY_MS : LINES_EVERY_MS))
        return;
    r->shown = now;
    cdcd_pipeline_stats(r->pipeline, &st);
    uint64_t done = st.replayed > st.to_replay ? st.to_replay : st.replayed;
    uint64_t records = st.records - r->read;
    double per_s = ms > 0 ? (double)records * 1000 / (double)ms : 0;
    double part = st.to_replay ? (double)done / (double)st.to_replay : 0;
    int n = snprintf(text, sizeof text, "%s: %llu records, %.0f records/s", what,
                     (unsigned long long)records, per_s);
    if (last)
        snprintf(text + n, sizeof text - (size_t)n, ", %.1f s", (double)ms / 1000);
    else if (st.to_replay)
        snprintf(text + n, sizeof text - (size_t)n, ", %.0f%%, about %.0f s left", part * 100,
                 per_s > 0 ? (double)(st.to_replay - done) / per_s : 0);
    if (!r->tty || last) {
        if (r->tty)
            fputs("\r\033[K", stderr);
        cdcd_info("replay", "%s", text);
        return;
    }
    for (int i = 0; i < BAR_WIDTH; i++)
        bar[i] = i < (int)(part * BAR_WIDTH) ? '#' : '.';
    bar[BAR_WIDTH] = 0;
    fprintf(stderr, "\r\033[K[%s] %s", bar, text);
    fflush(stderr);
}

static void add_line(void *ctx, enum cdcd_check_level level, const char *what, const char *text,
                     const char *mend)
{
    (void)ctx;
    if (level == CDCD_CHECK_OK)
        cdcd_info("replay", "%s: %s%s%s", what, text, mend ? ": " : "", mend ? mend : "");
    else
        cdcd_warn("replay", "%s: %s%s%s", what, text, mend ? ": " : "", mend ? mend : "");
}

/* ---- runs and steps ---- */

struct job {
    struct cdcd_pipeline *pipeline;
    struct cdcd_error *err;
    enum cdcd_rc rc;
    atomic_bool ended;
};

static void *job_main(void *arg)
{
    struct job *job = arg;
    job->rc = cdcd_pipeline_run(job->pipeline, job->err);
    atomic_store(&job->ended, true);
    return NULL;
}

/* To the end of the topics as it is now. AGAIN: told to stop. */
static enum cdcd_rc run(struct replay *r, const char *what)
{
    struct job job = {.pipeline = r->pipeline, .err = &r->err};
    struct cdcd_stats st;
    pthread_t thread;
    look_for_signal(r, 0);
    if (r->stopped)
        return CDCD_AGAIN;
    cdcd_pipeline_stats(r->pipeline, &st);
    r->read = st.records;
    r->began = r->shown = cdcd_now_ms();
    if (pthread_create(&thread, NULL, job_main, &job) != 0)
        return cdcd_error_set(&r->err, CDCD_ERR_FATAL, "cannot start the capture thread");
    while (!atomic_load(&job.ended)) {
        look_for_signal(r, 50);
        if (!r->stopped)
            show(r, what, false);
    }
    pthread_join(thread, NULL);
    if (job.rc != CDCD_ERROR)
        show(r, what, true);
    else if (r->tty)
        fputs("\r\033[K", stderr);
    return job.rc == CDCD_ERROR ? CDCD_ERROR : r->stopped ? CDCD_AGAIN : CDCD_OK;
}

/* A step is tried again while the server is away. */
static enum cdcd_rc step(struct replay *r, enum cdcd_rebuild which)
{
    for (int i = 0;; i++) {
        look_for_signal(r, 0);
        if (r->stopped)
            return CDCD_AGAIN;
        r->err = (struct cdcd_error){0};
        enum cdcd_rc rc = cdcd_pipeline_rebuild(r->pipeline, which, &r->report, &r->err);
        if (rc != CDCD_ERROR || r->err.class != CDCD_ERR_RETRY || i >= STEP_TRIES)
            return rc;
        cdcd_warn("replay", "%s; trying again", r->err.text);
        look_for_signal(r, STEP_AGAIN_MS);
    }
}

/* Lets the live pipeline go on when this one does not. A pipeline that was told to stop does
 * nothing any more, so another one does it. */
static void thaw(struct replay *r)
{
    struct cdcd_error err = {0};
    struct cdcd_pipeline *p = NULL;
    enum cdcd_rc rc = cdcd_pipeline_new(r->config, &r->options, &p, &err);
    for (int i = 0; rc == CDCD_OK; i++) {
        rc = cdcd_pipeline_rebuild(p, CDCD_REBUILD_THAW, &r->report, &err);
        if (rc == CDCD_OK || err.class != CDCD_ERR_RETRY || i >= STEP_TRIES)
            break;
        look_for_signal(r, STEP_AGAIN_MS);
        rc = CDCD_OK;
    }
    cdcd_pipeline_free(p);
    if (rc != CDCD_OK)
        cdcd_warn("replay",
                  "%s. The live indexes take no writes until cdcd replay has gone on, or cdcd "
                  "replay --abandon",
                  err.text);
}

/* Until so little is left that writes to the live one can wait for it, or it gets no less: the
 * topics grow about as fast as they are read. */
static enum cdcd_rc catch_up(struct replay *r)
{
    int64_t took = INT64_MAX;
    for (int i = 0;; i++) {
        enum cdcd_rc rc = run(r, i ? "catching up" : "reading the topics");
        int64_t before = took;
        took = cdcd_now_ms() - r->began;
        if (rc != CDCD_OK || r->arguments->to || i >= MOST_RUNS ||
            (i > 0 && (took < SHORT_MS || took > before / 4 * 3)))
            return rc;
    }
}

static enum cdcd_rc verify(struct replay *r)
{
    enum cdcd_rc rc = step(r, CDCD_REBUILD_VERIFY);
    if (rc != CDCD_ERROR || r->err.class != CDCD_ERR_DATA || !r->arguments->yes)
        return rc;
    cdcd_warn("replay", "%s. Goes on all the same (--yes)", r->err.text);
    return CDCD_OK;
}

static enum cdcd_rc frozen(struct replay *r)
{
    enum cdcd_rc rc = step(r, CDCD_REBUILD_FREEZE);
    if (rc == CDCD_OK)
        rc = run(r, "catching up, writes wait");
    if (rc == CDCD_OK)
        rc = verify(r);
    if (rc == CDCD_OK)
        rc = step(r, CDCD_REBUILD_SWAP);
    return rc;
}

static enum cdcd_rc rebuild(struct replay *r)
{
    enum cdcd_rc rc = step(r, CDCD_REBUILD_BEGIN);
    if (rc == CDCD_OK)
        rc = catch_up(r);
    if (rc != CDCD_OK)
        return rc;
    if (r->arguments->no_swap || r->arguments->to) {
        cdcd_info("replay", "built, not swapped: cdcd replay goes on to the end and swaps, cdcd "
                            "replay --abandon deletes it");
        return CDCD_OK;
    }
    rc = frozen(r);
    if (rc != CDCD_OK) {
        /* A fenced one must not touch what is another's now: the step finds that out. */
        thaw(r);
        return rc;
    }
    rc = run(r, "behind the swap");
    if (rc == CDCD_OK)
        rc = step(r, CDCD_REBUILD_FINISH);
    return rc;
}

/* A sink with nothing beside: the records once more, with a position of their own. */
static enum cdcd_rc publish_again(struct replay *r)
{
    enum cdcd_rc rc = run(r, "reading the topics");
    if (rc == CDCD_OK)
        cdcd_info("replay",
                  "done; the position is kept under the name %s, so that another replay "
                  "goes on from here",
                  r->config->name);
    return rc;
}

static bool can_rebuild(const struct replay *r)
{
    return r->config->sink_plugin->sink->rebuild != NULL;
}

static enum cdcd_rc work(struct replay *r)
{
    const struct arguments *a = r->arguments;
    if (!can_rebuild(r)) {
        if (a->drop_old || a->abandon || a->no_swap || a->keep_old)
            return cdcd_error_set(&r->err, CDCD_ERR_CONFIG,
                                  "sink %s has nothing beside the live one to be swapped, kept or "
                                  "dropped: a replay publishes the records once more",
                                  r->config->sink_plugin->name);
        return publish_again(r);
    }
    if (a->abandon)
        return step(r, CDCD_REBUILD_ABANDON);
    if (a->drop_old)
        return step(r, CDCD_REBUILD_DROP);
    return rebuild(r);
}

static int replay(struct cdcd_config *config, const struct arguments *a)
{
    struct replay r = {
        .arguments = a,
        .config = config,
        .options = {.replay = true, .replay_from = a->from, .replay_to = a->to},
        .report = {NULL, add_line},
        .tty = isatty(STDERR_FILENO) && cdcd_log_enabled(CDCD_LOG_INFO),
    };
    if (!can_rebuild(&r)) {
        char *name = cdcd_xasprintf("%s.replay", config->name);
        free(config->name);
        config->name = name;
        cdcd_log_setup((enum cdcd_log_level)config->log_level, config->log_format == 1, name);
    }
    cdcd_runner_block_signals();
    enum cdcd_rc rc = cdcd_pipeline_new(config, &r.options, &r.pipeline, &r.err);
    if (rc == CDCD_OK)
        rc = work(&r);
    cdcd_pipeline_free(r.pipeline);
    if (rc == CDCD_AGAIN || (rc == CDCD_ERROR && r.stopped && r.err.class == CDCD_ERR_RETRY)) {
        cdcd_info("replay", "stopped; cdcd replay goes on from here");
        rc = CDCD_OK;
    }
    if (rc == CDCD_OK)
        return CDCD_EXIT_OK;
    cdcd_error_context(&r.err, "replay of %s", config->name);
    return cdcd_command_failed(&r.err);
}

/* ---- arguments ---- */

static int parse(int argc, char **argv, struct arguments *a)
{
    static const struct option longs[] = {{"config", required_argument, NULL, 'c'},
                                          {"from", required_argument, NULL, 'f'},
                                          {"to", required_argument, NULL, 't'},
                                          {"keep-old", no_argument, NULL, 'k'},
                                          {"drop-old", no_argument, NULL, 'd'},
                                          {"abandon", no_argument, NULL, 'a'},
                                          {"no-swap", no_argument, NULL, 'n'},
                                          {"yes", no_argument, NULL, 'y'},
                                          {0}};
    int c;
    optind = 1;
    while ((c = getopt_long(argc, argv, ":c:y", longs, NULL)) != -1) {
        switch (c) {
        case 'c': a->path = optarg; break;
        case 'f': a->from = optarg; break;
        case 't': a->to = optarg; break;
        case 'k': a->keep_old = true; break;
        case 'd': a->drop_old = true; break;
        case 'a': a->abandon = true; break;
        case 'n': a->no_swap = true; break;
        case 'y': a->yes = true; break;
        case ':':
            return cdcd_command_misused(&cdcd_cmd_replay, "%s wants a value", argv[optind - 1]);
        default:
            return cdcd_command_misused(&cdcd_cmd_replay, "unknown option %s", argv[optind - 1]);
        }
    }
    if (!a->path || optind < argc)
        return cdcd_command_misused(&cdcd_cmd_replay,
                                    a->path ? "unexpected argument %s" : "-c FILE is missing",
                                    argv[optind]);
    if (a->drop_old + a->abandon + a->keep_old + a->no_swap > 1)
        return cdcd_command_misused(
            &cdcd_cmd_replay, "--keep-old, --drop-old, --no-swap and --abandon exclude each other");
    if ((a->abandon || a->drop_old) && (a->from || a->to))
        return cdcd_command_misused(&cdcd_cmd_replay, "%s reads nothing: no --from and no --to",
                                    a->abandon ? "--abandon" : "--drop-old");
    return CDCD_EXIT_OK;
}

static int replay_main(int argc, char **argv)
{
    struct arguments a = {0};
    int code = parse(argc, argv, &a);
    if (code != CDCD_EXIT_OK)
        return code;
    struct cdcd_config *config = cdcd_runner_load(a.path, &code);
    if (!config)
        return code;
    code = replay(config, &a);
    cdcd_config_free(config);
    return code;
}

const struct cdcd_command cdcd_cmd_replay = {
    .name = "replay",
    .summary = "build the sink anew from the topics, beside the live one, and swap",
    .usage = "cdcd replay -c FILE [--from PLACE] [--to PLACE] [--no-swap] [--yes]\n"
             "       cdcd replay -c FILE --drop-old | --abandon",
    .help =
        "Reads the topics of a Kafka source from the beginning and builds a new index beside each\n"
        "live one, while that is written and searched as before; then catches up, compares both,\n"
        "and puts the new ones behind the aliases in one step. The old ones are kept. Other sinks\n"
        "get all records once more.\n\n"
        "It may be stopped or killed at any time: the same command goes on from there.\n\n"
        "  --from PLACE  begin at an offset (17), a time (2024-05-01T12:00:00Z) or a position\n"
        "                ({\"topics\":{\"shop.orders\":{\"0\":17}}}); default: the beginning\n"
        "  --to PLACE    end there; what is built is not swapped\n"
        "  --no-swap     build and catch up only\n"
        "  --keep-old    keep the old indexes (as is the default)\n"
        "  --drop-old    delete the old indexes that earlier swaps have kept, and nothing else\n"
        "  --abandon     delete what is being built\n"
        "  --yes         swap also when the new one lacks documents that no delete explains\n",
    .run = replay_main,
};
