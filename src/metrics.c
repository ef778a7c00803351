#include "metrics.h"

#include <cdcd/version.h>

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <time.h>

/* ---- rates ---- */

static struct cdcd_rate_sample sample_of(const struct cdcd_stats *s, int64_t now_ms)
{
    return (struct cdcd_rate_sample){now_ms, s->events, s->records, s->bytes, s->snapshot_rows};
}

void cdcd_rate_add(struct cdcd_rate_window *w, const struct cdcd_stats *s, int64_t now_ms)
{
    size_t newest = (w->next + CDCD_RATE_SAMPLES - 1) % CDCD_RATE_SAMPLES;
    if (w->n > 0 && now_ms - w->samples[newest].at_ms < 1000)
        return;
    w->samples[w->next] = sample_of(s, now_ms);
    w->next = (w->next + 1) % CDCD_RATE_SAMPLES;
    if (w->n < CDCD_RATE_SAMPLES)
        w->n++;
}

void cdcd_rate_get(const struct cdcd_rate_window *w, const struct cdcd_stats *s, int64_t now_ms,
                   struct cdcd_rates *out)
{
    *out = (struct cdcd_rates){0};
    if (w->n == 0)
        return;
    const struct cdcd_rate_sample *old = &w->samples[w->n < CDCD_RATE_SAMPLES ? 0 : w->next];
    if (now_ms <= old->at_ms)
        return;
    out->seconds = (double)(now_ms - old->at_ms) / 1000;
    out->events = (double)(s->events - old->events) / out->seconds;
    out->records = (double)(s->records - old->records) / out->seconds;
    out->bytes = (double)(s->bytes - old->bytes) / out->seconds;
    out->snapshot_rows = (double)(s->snapshot_rows - old->snapshot_rows) / out->seconds;
}

/* ---- readiness ---- */

bool cdcd_view_ready(const struct cdcd_view *v, char *why, size_t size)
{
    const struct cdcd_stats *s = &v->stats;
    if (s->phase != CDCD_PHASE_STREAM) {
        snprintf(why, size, "%s", s->failed ? "failed" : cdcd_phase_name(s->phase));
        return false;
    }
    if (v->max_lag_ms > 0 && s->lag_ms > v->max_lag_ms) {
        snprintf(why, size,
                 "streaming, but %" PRId64 " ms behind; http.ready.max.lag.ms is %" PRId64,
                 s->lag_ms, v->max_lag_ms);
        return false;
    }
    if (size > 0)
        *why = 0;
    return true;
}

/* ---- Prometheus text format 0.0.4 ---- */

/* Names of pipelines have no character that a label's value would have to escape. */
static void metric(struct cdcd_buf *out, const struct cdcd_view *v, const char *name,
                   const char *type, const char *help, double value)
{
    cdcd_buf_addf(out, "# HELP %s %s\n# TYPE %s %s\n%s{pipeline=\"%s\"} %.17g\n", name, help, name,
                  type, name, v->pipeline, value);
}

static void add_phases(struct cdcd_buf *out, const struct cdcd_view *v)
{
    cdcd_buf_adds(out, "# HELP cdcd_phase What the pipeline does: 1 for the current phase.\n"
                       "# TYPE cdcd_phase gauge\n");
    for (int i = CDCD_PHASE_CONNECT; i <= CDCD_PHASE_STOPPED; i++)
        cdcd_buf_addf(out, "cdcd_phase{pipeline=\"%s\",phase=\"%s\"} %d\n", v->pipeline,
                      cdcd_phase_name((enum cdcd_phase)i), v->stats.phase == (enum cdcd_phase)i);
}

void cdcd_view_prometheus(const struct cdcd_view *v, struct cdcd_buf *out)
{
    const struct cdcd_stats *s = &v->stats;
    char why[160];
    cdcd_buf_addf(out,
                  "# HELP cdcd_build_info The version that runs.\n"
                  "# TYPE cdcd_build_info gauge\n"
                  "cdcd_build_info{pipeline=\"%s\",version=\"%s\",source=\"%s\",sink=\"%s\"} 1\n",
                  v->pipeline, CDCD_VERSION, v->source, v->sink);
    metric(out, v, "cdcd_start_time_seconds", "gauge", "When the process started, Unix time.",
           (double)(v->started_us / 1000000));
    metric(out, v, "cdcd_up", "gauge", "1 unless the pipeline has failed.", !s->failed);
    metric(out, v, "cdcd_ready", "gauge", "1 when changes flow, as /readyz answers.",
           cdcd_view_ready(v, why, sizeof why));
    add_phases(out, v);
    metric(out, v, "cdcd_events_total", "counter",
           "Changes and snapshot rows given to the sink; those of a retry count again.",
           (double)s->events);
    metric(out, v, "cdcd_records_total", "counter", "Records given to the sink.",
           (double)s->records);
    metric(out, v, "cdcd_bytes_total", "counter", "Bytes of the keys and values of the records.",
           (double)s->bytes);
    metric(out, v, "cdcd_snapshot_rows_total", "counter", "Snapshot rows given to the sink.",
           (double)s->snapshot_rows);
    metric(out, v, "cdcd_skipped_events_total", "counter",
           "Events left out because event.processing.failure.handling.mode is warn or skip.",
           (double)s->skipped);
    metric(out, v, "cdcd_retries_total", "counter", "Sessions begun again after an error.",
           (double)s->retries);
    if (s->lag_bytes >= 0)
        metric(out, v, "cdcd_lag_bytes", "gauge",
               "The log that the source holds for this pipeline and has not got acknowledged.",
               (double)s->lag_bytes);
    if (s->lag_ms >= 0)
        metric(out, v, "cdcd_lag_seconds", "gauge", "How far the sink is behind the source.",
               (double)s->lag_ms / 1000);
    if (s->commit_age_ms >= 0)
        metric(out, v, "cdcd_last_commit_age_seconds", "gauge",
               "Since the sink last made something durable.", (double)s->commit_age_ms / 1000);
    if (s->snapshot.tables > 0) {
        metric(out, v, "cdcd_snapshot_tables", "gauge", "Tables of the snapshot that is taken.",
               (double)s->snapshot.tables);
        metric(out, v, "cdcd_snapshot_tables_done", "gauge", "Those that are read to their end.",
               (double)s->snapshot.index);
    }
}

/* ---- JSON ---- */

static json_t *known(int64_t v)
{
    return v >= 0 ? json_integer(v) : json_null();
}

/* What a server says in an error need not be UTF-8. */
static json_t *text_or_null(const char *s)
{
    if (!*s)
        return json_null();
    json_t *valid = json_string(s);
    if (valid)
        return valid;
    struct cdcd_buf ascii;
    cdcd_buf_init(&ascii, 0);
    for (; *s; s++)
        cdcd_buf_add(&ascii, (unsigned char)*s < 0x80 ? s : "?", 1);
    valid = json_stringn(ascii.ptr, ascii.len);
    cdcd_buf_free(&ascii);
    return valid;
}

static json_t *moment(int64_t us)
{
    time_t seconds = (time_t)(us / 1000000);
    struct tm tm;
    char text[40];
    if (us <= 0 || !gmtime_r(&seconds, &tm) ||
        strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &tm) == 0)
        return json_null();
    return json_string(text);
}

static json_t *snapshot_json(const struct cdcd_stats *s)
{
    if (s->snapshot.tables == 0)
        return json_null();
    return json_pack("{s:o, s:I, s:I, s:I, s:o}", "table", text_or_null(s->snapshot.table),
                     "table_number", (json_int_t)s->snapshot.index + 1, "tables",
                     (json_int_t)s->snapshot.tables, "rows", (json_int_t)s->snapshot.rows,
                     "rows_expected", known(s->snapshot.expected));
}

static json_t *rates_json(const struct cdcd_rates *r)
{
    return json_pack("{s:f, s:f, s:f, s:f, s:f}", "seconds", r->seconds, "events_per_s",
                     round(r->events * 10) / 10, "records_per_s", round(r->records * 10) / 10,
                     "bytes_per_s", round(r->bytes), "snapshot_rows_per_s",
                     round(r->snapshot_rows * 10) / 10);
}

json_t *cdcd_view_json(const struct cdcd_view *v)
{
    const struct cdcd_stats *s = &v->stats;
    char why[160];
    bool ready = cdcd_view_ready(v, why, sizeof why);
    return json_pack(
        "{s:s, s:s, s:s, s:s, s:s, s:b, s:o, s:b, s:o, s:I,"
        " s:o, s:o, s:o, s:o, s:I, s:I, s:I, s:I, s:I, s:o, s:o, s:I, s:o, s:o}",
        "name", v->pipeline, "version", CDCD_VERSION, "source", v->source, "sink", v->sink, "phase",
        cdcd_phase_name(s->phase), "ready", ready, "not_ready_because", text_or_null(why), "failed",
        s->failed, "started_at", moment(v->started_us), "uptime_ms",
        (json_int_t)(v->now_us - v->started_us) / 1000, "position", text_or_null(s->position),
        "lag_bytes", known(s->lag_bytes), "lag_ms", known(s->lag_ms), "last_commit_age_ms",
        known(s->commit_age_ms), "events", (json_int_t)s->events, "records", (json_int_t)s->records,
        "bytes", (json_int_t)s->bytes, "snapshot_rows", (json_int_t)s->snapshot_rows,
        "skipped_events", (json_int_t)s->skipped, "rates", rates_json(&v->rates), "snapshot",
        snapshot_json(s), "retries", (json_int_t)s->retries, "last_error",
        text_or_null(s->last_error), "last_error_at", moment(s->last_error_us));
}

/* ---- the page ---- */

static void add_html(struct cdcd_buf *out, const char *s)
{
    for (; *s; s++) {
        const char *as = *s == '<' ? "&lt;" : *s == '>' ? "&gt;" : *s == '&' ? "&amp;" : NULL;
        if (as)
            cdcd_buf_adds(out, as);
        else
            cdcd_buf_add(out, s, 1);
    }
}

static void add_rows(struct cdcd_buf *out, const char *prefix, json_t *object)
{
    const char *key;
    json_t *value;
    json_object_foreach(object, key, value)
    {
        if (json_is_object(value)) {
            add_rows(out, key, value);
            continue;
        }
        char *text = json_is_string(value)
                         ? NULL
                         : json_dumps(value, JSON_ENCODE_ANY | JSON_REAL_PRECISION(6));
        cdcd_buf_addf(out, "<tr><th>%s%s%s<td>", prefix, *prefix ? "." : "", key);
        if (!json_is_null(value))
            add_html(out, text ? text : json_string_value(value));
        cdcd_buf_adds(out, "\n");
        free(text);
    }
}

void cdcd_view_page(const struct cdcd_view *v, struct cdcd_buf *out)
{
    json_t *all = cdcd_view_json(v);
    cdcd_buf_addf(out,
                  "<!doctype html><meta charset=utf-8><title>%s: %s</title>\n"
                  "<meta http-equiv=refresh content=5>\n"
                  "<style>body{font:15px sans-serif;margin:2em}th{text-align:left;"
                  "font-weight:normal;color:#666;padding-right:2em}</style>\n"
                  "<h1>%s: %s</h1>\n<table>\n",
                  v->pipeline, cdcd_phase_name(v->stats.phase), v->pipeline,
                  cdcd_phase_name(v->stats.phase));
    add_rows(out, "", all);
    cdcd_buf_adds(out, "</table>\n<p><a href=/api/status>/api/status</a> "
                       "<a href=/metrics>/metrics</a> <a href=/healthz>/healthz</a> "
                       "<a href=/readyz>/readyz</a>\n");
    json_decref(all);
}
