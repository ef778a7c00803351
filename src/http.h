/*
 * http: a pipeline's status and metrics for people, probes and Prometheus. It only reads.
 *
 * One thread of the HTTP library serves all requests; it calls cdcd_pipeline_stats and nothing
 * else of the pipeline. There is no authentication: the address should be a loopback one.
 */
#ifndef CDCD_HTTP_H
#define CDCD_HTTP_H

#include "pipeline.h"

struct cdcd_listen {
    char host[256]; /* without brackets */
    char port[6];   /* "1" to "65535" */
};

/* "HOST:PORT" or "[::1]:PORT". */
bool cdcd_listen_parse(const char *text, struct cdcd_listen *out);

struct cdcd_http;

/* Listens on config->http_listen. CONFIG error when that cannot be. `config` and `p` are
 * borrowed until cdcd_http_stop. */
enum cdcd_rc cdcd_http_start(const struct cdcd_config *config, struct cdcd_pipeline *p,
                             struct cdcd_http **out, struct cdcd_error *err);
/* Called now and then by one thread: keeps the samples that rates are made from. NULL is fine. */
void cdcd_http_tick(struct cdcd_http *h);
/* Returns when no request is served any more. NULL is fine. */
void cdcd_http_stop(struct cdcd_http *h);

#endif
