/*
 * Logging: to stderr, one line a message, text or JSON. Thread-safe; any thread.
 * Values of secret options never reach a log: they are never formatted.
 */
#ifndef CDCD_LOG_H
#define CDCD_LOG_H

#include "error.h"

#include <stdbool.h>

enum cdcd_log_level { CDCD_LOG_DEBUG, CDCD_LOG_INFO, CDCD_LOG_WARN, CDCD_LOG_ERROR };

/* The level is tested before arguments are formatted. `component` is a short
 * constant such as "postgres" or "pipeline". */
#define cdcd_debug(component, ...) cdcd_log_if(CDCD_LOG_DEBUG, component, __VA_ARGS__)
#define cdcd_info(component, ...)  cdcd_log_if(CDCD_LOG_INFO, component, __VA_ARGS__)
#define cdcd_warn(component, ...)  cdcd_log_if(CDCD_LOG_WARN, component, __VA_ARGS__)
#define cdcd_err(component, ...)   cdcd_log_if(CDCD_LOG_ERROR, component, __VA_ARGS__)

#define cdcd_log_if(level, component, ...)           \
    do {                                             \
        if (cdcd_log_enabled(level))                 \
            cdcd_log(level, component, __VA_ARGS__); \
    } while (0)

bool cdcd_log_enabled(enum cdcd_log_level level);
void cdcd_log(enum cdcd_log_level level, const char *component, const char *fmt, ...)
    CDCD_PRINTF(3, 4);

/* Called once by main before threads start. `pipeline` is the identity that every
 * line carries ("" before the config is read); the string is borrowed for ever. */
void cdcd_log_setup(enum cdcd_log_level level, bool json, const char *pipeline);

#endif
