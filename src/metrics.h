/*
 * metrics: what is known of a running pipeline, written as Prometheus text, JSON or a page.
 * Pure functions of a view; any thread that owns it.
 */
#ifndef CDCD_METRICS_H
#define CDCD_METRICS_H

#include "pipeline.h"

#include <jansson.h>

#define CDCD_RATE_SAMPLES 11 /* one a second: rates are over the last ten */

struct cdcd_rates {
    double seconds; /* that the rates are over; 0: not known yet */
    double events, records, bytes, snapshot_rows;
};

/* A ring of the newest samples. Zeroed at first; the owner locks it. */
struct cdcd_rate_window {
    struct cdcd_rate_sample {
        int64_t at_ms;
        uint64_t events, records, bytes, snapshot_rows;
    } samples[CDCD_RATE_SAMPLES];
    size_t n, next;
};

/* Takes a sample when the newest one is a second old. */
void cdcd_rate_add(struct cdcd_rate_window *w, const struct cdcd_stats *s, int64_t now_ms);
void cdcd_rate_get(const struct cdcd_rate_window *w, const struct cdcd_stats *s, int64_t now_ms,
                   struct cdcd_rates *out);

struct cdcd_view {
    const char *pipeline, *source, *sink; /* borrowed */
    int64_t started_us, now_us;
    int64_t max_lag_ms; /* of a ready pipeline; 0: no limit */
    struct cdcd_stats stats;
    struct cdcd_rates rates;
};

/* True when changes flow. Otherwise `why` says what keeps them from it. */
bool cdcd_view_ready(const struct cdcd_view *v, char *why, size_t size);
void cdcd_view_prometheus(const struct cdcd_view *v, struct cdcd_buf *out);
json_t *cdcd_view_json(const struct cdcd_view *v); /* a new reference */
void cdcd_view_page(const struct cdcd_view *v, struct cdcd_buf *out);

#endif
