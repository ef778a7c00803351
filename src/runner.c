#include "runner.h"

#include "command.h"
#include "http.h"

#include <cdcd/log.h>

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static const int handled[] = {SIGTERM, SIGINT, SIGHUP};

static void handled_set(sigset_t *set)
{
    sigemptyset(set);
    for (size_t i = 0; i < sizeof handled / sizeof *handled; i++)
        sigaddset(set, handled[i]);
}

void cdcd_runner_block_signals(void)
{
    sigset_t set;
    handled_set(&set);
    sigaddset(&set, SIGPIPE); /* a closed pipe or socket is an error of write, not a signal */
    pthread_sigmask(SIG_BLOCK, &set, NULL);
}

struct cdcd_config *cdcd_runner_load(const char *path, int *code)
{
    struct cdcd_error err = {0};
    struct cdcd_config *config = NULL;
    if (cdcd_config_load(path, &config, &err) != CDCD_OK) {
        *code = cdcd_command_failed(&err);
        return NULL;
    }
    cdcd_log_setup((enum cdcd_log_level)config->log_level, config->log_format == 1, config->name);
    return config;
}

struct job {
    struct cdcd_pipeline *pipeline;
    struct cdcd_http *http; /* or NULL */
    struct cdcd_error err;
    enum cdcd_rc rc;
    atomic_bool ended;
};

static void *job_main(void *arg)
{
    struct job *job = arg;
    job->rc = cdcd_pipeline_run(job->pipeline, &job->err);
    atomic_store(&job->ended, true);
    return NULL;
}

/* Within this time a second signal is the same one sent twice: to the process and to its group,
 * as a terminal or a supervisor does. */
#define SAME_SIGNAL_MS 1000

static void supervise(struct job *job)
{
    sigset_t set;
    handled_set(&set);
    int64_t asked = 0; /* monotonic ms */
    const struct timespec wait = {0, 50000000};
    while (!atomic_load(&job->ended)) {
        int sig = sigtimedwait(&set, NULL, &wait);
        cdcd_http_tick(job->http);
        if (sig < 0 || sig == SIGHUP)
            continue;
        int64_t now = cdcd_now_ms();
        if (asked && now - asked < SAME_SIGNAL_MS)
            continue;
        if (asked) {
            cdcd_warn("main", "%s again: ending now; the next run goes on from what is durable",
                      strsignal(sig));
            _exit(1);
        }
        asked = now;
        cdcd_info("main", "%s: draining, committing, stopping", strsignal(sig));
        cdcd_pipeline_stop(job->pipeline);
    }
}

int cdcd_runner_run(struct cdcd_config *config, const struct cdcd_run_options *options)
{
    struct job job = {0};
    int code = 0;
    pthread_t thread;
    cdcd_runner_block_signals();
    if (cdcd_pipeline_new(config, options, &job.pipeline, &job.err) != CDCD_OK) {
        code = cdcd_command_failed(&job.err);
        goto out;
    }
    /* A tail beside the daemon of the same config must not want its port. */
    if (config->http_listen && !options->ephemeral &&
        cdcd_http_start(config, job.pipeline, &job.http, &job.err) != CDCD_OK) {
        code = cdcd_command_failed(&job.err);
        goto out;
    }
    if (pthread_create(&thread, NULL, job_main, &job) != 0) {
        cdcd_error_set(&job.err, CDCD_ERR_FATAL, "cannot start the capture thread");
        code = cdcd_command_failed(&job.err);
        goto out;
    }
    supervise(&job);
    pthread_join(thread, NULL);
    if (job.rc == CDCD_ERROR) {
        cdcd_error_context(&job.err, "pipeline %s", config->name);
        code = cdcd_command_failed(&job.err);
    }
out:
    cdcd_http_stop(job.http);
    cdcd_pipeline_free(job.pipeline);
    cdcd_config_free(config);
    return code;
}
