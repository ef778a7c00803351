#include <cdcd/json.h>
#include <cdcd/log.h>

#include <errno.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

static struct {
    enum cdcd_log_level level;
    bool json;
    const char *pipeline;
} settings = {CDCD_LOG_INFO, false, ""};

static const char *const level_names[] = {"debug", "info", "warn", "error"};

void cdcd_log_setup(enum cdcd_log_level level, bool json, const char *pipeline)
{
    settings.level = level;
    settings.json = json;
    settings.pipeline = pipeline ? pipeline : "";
}

bool cdcd_log_enabled(enum cdcd_log_level level)
{
    return level >= settings.level;
}

static void timestamp(char *out, size_t size)
{
    struct timespec ts;
    struct tm tm;
    char seconds[32];
    clock_gettime(CLOCK_REALTIME, &ts);
    gmtime_r(&ts.tv_sec, &tm);
    strftime(seconds, sizeof(seconds), "%Y-%m-%dT%H:%M:%S", &tm);
    snprintf(out, size, "%s.%03ldZ", seconds, ts.tv_nsec / 1000000);
}

static void add_field(struct cdcd_writer *w, const char *name, const char *value, size_t len)
{
    if (w->pos[-1] != '{')
        cdcd_writer_char(w, ',');
    cdcd_json_string(w, name, strlen(name));
    cdcd_writer_char(w, ':');
    cdcd_json_string(w, value, len);
}

static void write_json(struct cdcd_writer *w, const char *when, enum cdcd_log_level level,
                       const char *component, const char *text, size_t len)
{
    cdcd_writer_char(w, '{');
    add_field(w, "ts", when, strlen(when));
    add_field(w, "level", level_names[level], strlen(level_names[level]));
    add_field(w, "component", component, strlen(component));
    if (settings.pipeline[0])
        add_field(w, "pipeline", settings.pipeline, strlen(settings.pipeline));
    add_field(w, "message", text, len);
    cdcd_writer_lit(w, "}\n");
}

/* A server's message may hold line breaks: a log line is one line. */
static void add_one_line(struct cdcd_writer *w, const char *text, size_t len)
{
    while (len && (text[len - 1] == '\n' || text[len - 1] == '\r'))
        len--;
    for (size_t i = 0; i < len; i++) {
        unsigned char c = (unsigned char)text[i];
        if (c == '\n')
            cdcd_writer_lit(w, "\\n");
        else
            cdcd_writer_char(w, c < ' ' || c == 0x7f ? ' ' : (char)c);
    }
}

static void write_text(struct cdcd_writer *w, const char *when, enum cdcd_log_level level,
                       const char *component, const char *text, size_t len)
{
    char head[64];
    int n = snprintf(head, sizeof(head), "%s %-5s ", when, level_names[level]);
    cdcd_writer_add(w, head, (size_t)n);
    if (settings.pipeline[0]) {
        cdcd_writer_add(w, settings.pipeline, strlen(settings.pipeline));
        cdcd_writer_char(w, ' ');
    }
    cdcd_writer_add(w, component, strlen(component));
    cdcd_writer_lit(w, ": ");
    add_one_line(w, text, len);
    cdcd_writer_char(w, '\n');
}

void cdcd_log(enum cdcd_log_level level, const char *component, const char *fmt, ...)
{
    int saved = errno;
    struct cdcd_buf text;
    char when[48];
    va_list ap, again;
    cdcd_buf_init(&text, 0);
    va_start(ap, fmt);
    va_copy(again, ap);
    int n = vsnprintf(NULL, 0, fmt, ap);
    va_end(ap);
    char *to = n < 0 ? NULL : cdcd_buf_reserve(&text, (size_t)n);
    if (to) {
        vsnprintf(to, (size_t)n + 1, fmt, again);
        text.len = (size_t)n;
    }
    va_end(again);

    struct cdcd_arena arena;
    struct cdcd_writer w;
    cdcd_arena_init(&arena, 1024);
    cdcd_writer_begin(&w, &arena);
    timestamp(when, sizeof(when));
    if (settings.json)
        write_json(&w, when, level, component, cdcd_buf_cstr(&text), text.len);
    else
        write_text(&w, when, level, component, cdcd_buf_cstr(&text), text.len);
    struct cdcd_slice line = cdcd_writer_end(&w);
    /* One write a line, so that the lines of several threads do not mix. */
    while (line.len) {
        ssize_t wrote = write(STDERR_FILENO, line.ptr, line.len);
        if (wrote < 0 && errno == EINTR)
            continue;
        if (wrote <= 0)
            break;
        line.ptr += wrote;
        line.len -= (size_t)wrote;
    }
    cdcd_arena_free(&arena);
    cdcd_buf_free(&text);
    errno = saved;
}
