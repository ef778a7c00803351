#include "progress.h"

#include <cdcd/log.h>
#include <cdcd/plugin.h>

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define TTY_EVERY_MS 200
#define LOG_EVERY_MS 10000
#define BAR_WIDTH    24

struct cdcd_progress {
    bool tty;
    size_t tables, index;
    char label[128];
    int64_t expected;
    _Atomic uint64_t table_rows;
    uint64_t all_rows;
    int64_t began, table_began, next;
};

struct cdcd_progress *cdcd_progress_new(size_t tables)
{
    struct cdcd_progress *p = cdcd_xcalloc(1, sizeof *p);
    p->tty = isatty(STDERR_FILENO) && cdcd_log_enabled(CDCD_LOG_INFO);
    p->tables = tables;
    p->began = cdcd_now_ms();
    return p;
}

void cdcd_progress_table(struct cdcd_progress *p, const char *label, int64_t expected, size_t index,
                         size_t tables)
{
    snprintf(p->label, sizeof p->label, "%s", label);
    p->expected = expected;
    p->index = index;
    p->tables = tables;
    p->table_rows = 0;
    p->table_began = cdcd_now_ms();
    p->next = p->table_began + (p->tty ? TTY_EVERY_MS : LOG_EVERY_MS);
}

void cdcd_progress_rows(struct cdcd_progress *p, uint32_t n)
{
    atomic_fetch_add(&p->table_rows, n);
}

static double rate(uint64_t rows, int64_t ms)
{
    return ms > 0 ? (double)rows * 1000.0 / (double)ms : 0.0;
}

static void describe(struct cdcd_progress *p, char *out, size_t size)
{
    uint64_t rows = p->table_rows;
    double per_s = rate(rows, cdcd_now_ms() - p->table_began);
    int n = snprintf(out, size, "%s (%zu of %zu): %llu rows, %.0f rows/s", p->label, p->index + 1,
                     p->tables, (unsigned long long)rows, per_s);
    if (n < 0 || (size_t)n >= size || p->expected <= 0)
        return;
    double part = (double)rows / (double)p->expected;
    if (part > 0.99)
        part = 0.99; /* the expected number is an estimate */
    double left = per_s > 0 ? ((double)p->expected - (double)rows) / per_s : 0;
    snprintf(out + n, size - (size_t)n, ", about %.0f%%, %.0f s left", part * 100,
             left > 0 ? left : 0);
}

static void draw_bar(struct cdcd_progress *p, const char *text)
{
    double part = p->expected > 0 ? (double)p->table_rows / (double)p->expected : 0;
    int filled = part > 1 ? BAR_WIDTH : (int)(part * BAR_WIDTH);
    char bar[BAR_WIDTH + 1];
    for (int i = 0; i < BAR_WIDTH; i++)
        bar[i] = i < filled ? '#' : '.';
    bar[BAR_WIDTH] = 0;
    fprintf(stderr, "\r\033[K[%s] %s", bar, text);
    fflush(stderr);
}

void cdcd_progress_show(struct cdcd_progress *p)
{
    int64_t now = cdcd_now_ms();
    if (now < p->next)
        return;
    p->next = now + (p->tty ? TTY_EVERY_MS : LOG_EVERY_MS);
    char text[320];
    describe(p, text, sizeof text);
    if (p->tty)
        draw_bar(p, text);
    else
        cdcd_info("snapshot", "%s", text);
}

void cdcd_progress_table_done(struct cdcd_progress *p)
{
    uint64_t rows = p->table_rows;
    int64_t ms = cdcd_now_ms() - p->table_began;
    p->all_rows += rows;
    if (p->tty)
        fputs("\r\033[K", stderr);
    cdcd_info("snapshot", "%s (%zu of %zu): done, %llu rows in %.1f s, %.0f rows/s", p->label,
              p->index + 1, p->tables, (unsigned long long)rows, (double)ms / 1000, rate(rows, ms));
}

void cdcd_progress_free(struct cdcd_progress *p, bool complete)
{
    int64_t ms = cdcd_now_ms() - p->began;
    if (complete)
        cdcd_info("snapshot", "read %llu rows of %zu tables in %.1f s, %.0f rows/s",
                  (unsigned long long)p->all_rows, p->tables, (double)ms / 1000,
                  rate(p->all_rows, ms));
    free(p);
}
