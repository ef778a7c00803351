/* cdcd status: asks a running cdcd at its http.listen, and prints what it answers. */
#include "command.h"
#include "http.h"
#include "runner.h"

#include <errno.h>
#include <jansson.h>
#include <netdb.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#define ANSWER_MAX   (1u << 20)
#define WAIT_SECONDS 5

/* ---- asking ---- */

/* "http://HOST:PORT", with or without the scheme and a path. */
static bool parse_url(const char *url, struct cdcd_listen *out)
{
    if (strncmp(url, "http://", 7) == 0)
        url += 7;
    char *authority = cdcd_xstrndup(url, strcspn(url, "/"));
    bool ok = cdcd_listen_parse(authority, out);
    free(authority);
    return ok;
}

/* -1: *why is set. */
static int dial(const struct cdcd_listen *at, const char **why)
{
    const struct addrinfo hints = {.ai_socktype = SOCK_STREAM};
    const struct timeval wait = {WAIT_SECONDS, 0};
    struct addrinfo *all;
    int fd = -1, rc = getaddrinfo(at->host, at->port, &hints, &all);
    if (rc != 0) {
        *why = gai_strerror(rc);
        return -1;
    }
    for (struct addrinfo *ai = all; ai && fd < 0; ai = ai->ai_next) {
        fd = socket(ai->ai_family, ai->ai_socktype | SOCK_CLOEXEC, ai->ai_protocol);
        if (fd < 0)
            continue;
        setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &wait, sizeof wait); /* connect too */
        setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &wait, sizeof wait);
        if (connect(fd, ai->ai_addr, ai->ai_addrlen) != 0) {
            *why = errno == EINPROGRESS ? "no answer in time" : strerror(errno);
            close(fd);
            fd = -1;
        }
    }
    freeaddrinfo(all);
    return fd;
}

/* HTTP/1.0: the server closes the connection at the end of its answer. */
static bool talk(int fd, struct cdcd_buf *answer)
{
    static const char request[] = "GET /api/status HTTP/1.0\r\n\r\n";
    if (send(fd, request, sizeof request - 1, MSG_NOSIGNAL) != (ssize_t)(sizeof request - 1))
        return false;
    for (;;) {
        char *to = cdcd_buf_reserve(answer, 4096);
        ssize_t n = to ? recv(fd, to, 4096, 0) : -1;
        if (n <= 0)
            return n == 0;
        answer->len += (size_t)n;
    }
}

/* NULL: nothing, or nothing of cdcd, answers; the reason is printed. */
static json_t *ask(const struct cdcd_listen *at, const char *shown)
{
    const char *why = "no address";
    int fd = dial(at, &why);
    if (fd < 0) {
        fprintf(stderr, "cdcd: nothing answers at %s: %s. Is it running, with http.listen set?\n",
                shown, why);
        return NULL;
    }
    struct cdcd_buf answer;
    cdcd_buf_init(&answer, ANSWER_MAX);
    bool whole = talk(fd, &answer);
    close(fd);
    const char *text = cdcd_buf_cstr(&answer), *body = strstr(text, "\r\n\r\n");
    json_t *doc = NULL;
    if (whole && body && strncmp(text, "HTTP/1.", 7) == 0 && strncmp(text + 8, " 200", 4) == 0)
        doc = json_loads(body + 4, 0, NULL);
    if (!json_is_string(json_object_get(doc, "phase"))) {
        fprintf(stderr, "cdcd: what answers at %s is no cdcd\n", shown);
        json_decref(doc);
        doc = NULL;
    }
    cdcd_buf_free(&answer);
    return doc;
}

/* ---- printing ---- */

static const char *text_of(json_t *doc, const char *key)
{
    const char *s = json_string_value(json_object_get(doc, key));
    return s ? s : "";
}

static double number_of(json_t *doc, const char *key)
{
    return json_number_value(json_object_get(doc, key));
}

static void print_bytes(double bytes)
{
    static const char *const units[] = {"B", "KB", "MB", "GB", "TB"};
    size_t i = 0;
    for (; bytes >= 1024 && i + 1 < sizeof units / sizeof *units; i++)
        bytes /= 1024;
    printf("%.*f %s", i ? 1 : 0, bytes, units[i]);
}

static void print_seconds(double ms)
{
    double s = ms / 1000;
    if (s < 120)
        printf("%.1f s", s);
    else if (s < 7200)
        printf("%.0f min", s / 60);
    else
        printf("%.1f h", s / 3600);
}

static void print_lag(json_t *doc)
{
    json_t *bytes = json_object_get(doc, "lag_bytes"), *ms = json_object_get(doc, "lag_ms");
    fputs("lag        ", stdout);
    if (json_is_integer(bytes))
        print_bytes(json_number_value(bytes));
    if (json_is_integer(ms)) {
        fputs(json_is_integer(bytes) ? ", " : "", stdout);
        print_seconds(json_number_value(ms));
    }
    puts(json_is_integer(bytes) || json_is_integer(ms) ? "" : "not known");
}

static void print_snapshot(json_t *doc, json_t *rates)
{
    json_t *s = json_object_get(doc, "snapshot");
    if (!json_is_object(s))
        return;
    printf("snapshot   %s (%.0f of %.0f): %.0f", text_of(s, "table"), number_of(s, "table_number"),
           number_of(s, "tables"), number_of(s, "rows"));
    if (json_is_integer(json_object_get(s, "rows_expected")))
        printf(" of about %.0f", number_of(s, "rows_expected"));
    printf(" rows, %.0f rows/s\n", number_of(rates, "snapshot_rows_per_s"));
}

static void print_people(json_t *doc)
{
    json_t *rates = json_object_get(doc, "rates");
    printf("%s: %s", text_of(doc, "name"), text_of(doc, "phase"));
    const char *why = text_of(doc, "not_ready_because");
    if (*why && strcmp(why, text_of(doc, "phase")) != 0)
        printf(" (not ready: %s)", why);
    printf("\nrunning    for ");
    print_seconds(number_of(doc, "uptime_ms"));
    printf(", %s to %s, cdcd %s\n", text_of(doc, "source"), text_of(doc, "sink"),
           text_of(doc, "version"));
    printf("position   %s\n", *text_of(doc, "position") ? text_of(doc, "position") : "none yet");
    print_lag(doc);
    print_snapshot(doc, rates);
    printf("rate       %.0f records/s, ", number_of(rates, "records_per_s"));
    print_bytes(number_of(rates, "bytes_per_s"));
    printf("/s\nwritten    %.0f records, ", number_of(doc, "records"));
    print_bytes(number_of(doc, "bytes"));
    printf(", %.0f of the rows from a snapshot\n", number_of(doc, "snapshot_rows"));
    if (json_is_integer(json_object_get(doc, "last_commit_age_ms"))) {
        fputs("commit     ", stdout);
        print_seconds(number_of(doc, "last_commit_age_ms"));
        puts(" ago");
    }
    if (number_of(doc, "skipped_events") > 0)
        printf("skipped    %.0f events; the log names them\n", number_of(doc, "skipped_events"));
    printf("retries    %.0f\n", number_of(doc, "retries"));
    if (*text_of(doc, "last_error"))
        printf("last error %s: %s\n", text_of(doc, "last_error_at"), text_of(doc, "last_error"));
}

/* ---- the command ---- */

/* The address of a config's pipeline. False: *code is the exit code. */
static bool address_of(const char *path, struct cdcd_listen *at, char **shown, char **name,
                       int *code)
{
    struct cdcd_config *config = cdcd_runner_load(path, code);
    if (!config)
        return false;
    bool ok = config->http_listen && cdcd_listen_parse(config->http_listen, at);
    if (ok) {
        *shown = cdcd_xstrdup(config->http_listen);
        *name = cdcd_xstrdup(config->name);
    } else {
        fprintf(stderr,
                "cdcd: %s: http.listen is not set, so there is nothing to ask; set it to "
                "127.0.0.1:8083, say, and start cdcd again\n",
                path);
        *code = CDCD_EXIT_USAGE;
    }
    cdcd_config_free(config);
    return ok;
}

static int status(const struct cdcd_listen *at, const char *shown, const char *name, bool json)
{
    json_t *doc = ask(at, shown);
    if (!doc)
        return CDCD_EXIT_FAILED;
    int code = CDCD_EXIT_OK;
    if (name && strcmp(name, text_of(doc, "name")) != 0) {
        fprintf(stderr, "cdcd: at %s the pipeline %s answers, not %s: give each its own port\n",
                shown, text_of(doc, "name"), name);
        code = CDCD_EXIT_FAILED;
    } else if (json) {
        json_dumpf(doc, stdout, JSON_INDENT(1) | JSON_REAL_PRECISION(12));
        putchar('\n');
    } else {
        print_people(doc);
    }
    json_decref(doc);
    return code;
}

static int status_main(int argc, char **argv)
{
    const char *path, *url;
    bool json;
    int code = cdcd_command_target(&cdcd_cmd_status, argc, argv, &path, &url, &json);
    if (code != CDCD_EXIT_OK)
        return code;
    struct cdcd_listen at;
    if (url && !parse_url(url, &at))
        return cdcd_command_misused(&cdcd_cmd_status,
                                    "%s is no address such as http://127.0.0.1:8083", url);
    if (url)
        return status(&at, url, NULL, json);
    char *shown, *name;
    if (!address_of(path, &at, &shown, &name, &code))
        return code;
    code = status(&at, shown, name, json);
    free(shown);
    free(name);
    return code;
}

const struct cdcd_command cdcd_cmd_status = {
    .name = "status",
    .summary = "show what a running cdcd does: phase, position, lag, rates, last error",
    .usage = "cdcd status (-c FILE | URL) [--json]",
    .run = status_main,
};
