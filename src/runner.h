/*
 * runner: runs one pipeline until it is done, fails, or the process is told to end.
 *
 * Signals are taken by sigwait in the calling (main) thread: the first SIGTERM or SIGINT asks
 * for an orderly end, another one a second later or more ends the process at once, which loses
 * nothing either.
 */
#ifndef CDCD_RUNNER_H
#define CDCD_RUNNER_H

#include "pipeline.h"

/* Blocks SIGTERM, SIGINT, SIGHUP and SIGPIPE for this thread and those started later. Called
 * before any thread is started. */
void cdcd_runner_block_signals(void);
/* Prints the error, if any, and returns the process's exit code. Takes `config`. */
int cdcd_runner_run(struct cdcd_config *config, const struct cdcd_run_options *options);
/* Loads the config and sets up logging. NULL: *code is the exit code, the reason is printed. */
struct cdcd_config *cdcd_runner_load(const char *path, int *code);

#endif
