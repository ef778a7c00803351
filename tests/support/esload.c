/*
 * esload: a bare bulk loader, the fastest way to give a search server documents that are there.
 *
 *   esload URL INDEX FILE [BYTES [REQUESTS]]
 *
 * FILE holds the lines of a bulk request, an action and a document in turn, all of them `index`.
 * They are sent as they stand, to URL/INDEX/_bulk, in bodies of at most BYTES (2000000), REQUESTS
 * (2) at a time. Ends with exit code 1 at the first document that is not taken. Prints
 * {"documents":N}.
 */
#include <curl/curl.h>

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

enum { REQUESTS_MAX = 64 };

struct request {
    CURL *easy;
    char reply[512]; // its beginning; the wanted part is {"errors":false}
    size_t reply_len;
};

struct load {
    const char *at, *end; // of what is not sent yet
    size_t bytes;
    unsigned long documents;
    CURLM *multi;
    struct curl_slist *headers;
    int under_way;
};

static void fail(const char *what, const char *why)
{
    fprintf(stderr, "esload: %s: %s\n", what, why);
    exit(1);
}

static size_t on_reply(char *data, size_t size, size_t n, void *user)
{
    struct request *r = user;
    size_t len = size * n, room = sizeof r->reply - 1 - r->reply_len;
    size_t taken = len < room ? len : room;
    memcpy(r->reply + r->reply_len, data, taken);
    r->reply_len += taken;
    r->reply[r->reply_len] = 0;
    return len;
}

static const char *line_end(const char *at, const char *end)
{
    const char *p = memchr(at, '\n', (size_t)(end - at));
    return p ? p + 1 : end;
}

/* The next body: whole pairs of lines, at least one. */
static size_t take(struct load *l)
{
    const char *p = l->at;
    while (p < l->end) {
        const char *next = line_end(line_end(p, l->end), l->end);
        if (p > l->at && (size_t)(next - l->at) > l->bytes)
            break;
        p = next;
        l->documents++;
    }
    return (size_t)(p - l->at);
}

static void send_next(struct load *l, struct request *r)
{
    if (l->at == l->end)
        return;
    size_t len = take(l);
    r->reply_len = 0;
    curl_easy_setopt(r->easy, CURLOPT_POSTFIELDS, l->at);
    curl_easy_setopt(r->easy, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)len);
    curl_multi_add_handle(l->multi, r->easy);
    l->at += len;
    l->under_way++;
}

static void finish(struct load *l, CURL *easy, CURLcode code)
{
    struct request *r;
    long status;
    curl_easy_getinfo(easy, CURLINFO_PRIVATE, (char **)&r);
    curl_easy_getinfo(easy, CURLINFO_RESPONSE_CODE, &status);
    if (code != CURLE_OK)
        fail("request", curl_easy_strerror(code));
    if (status != 200 || !strstr(r->reply, "\"errors\":false"))
        fail("refused", r->reply);
    curl_multi_remove_handle(l->multi, easy);
    l->under_way--;
    send_next(l, r);
}

static void open_request(struct load *l, struct request *r, const char *url)
{
    r->easy = curl_easy_init();
    if (!r->easy)
        fail("curl", "no handle");
    curl_easy_setopt(r->easy, CURLOPT_URL, url);
    curl_easy_setopt(r->easy, CURLOPT_HTTPHEADER, l->headers);
    curl_easy_setopt(r->easy, CURLOPT_WRITEFUNCTION, on_reply);
    curl_easy_setopt(r->easy, CURLOPT_WRITEDATA, r);
    curl_easy_setopt(r->easy, CURLOPT_PRIVATE, r);
    curl_easy_setopt(r->easy, CURLOPT_TCP_NODELAY, 1L);
    send_next(l, r);
}

static void map_file(struct load *l, const char *path)
{
    struct stat st;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0 || fstat(fd, &st) != 0)
        fail(path, strerror(errno));
    void *p = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE | MAP_POPULATE, fd, 0);
    if (p == MAP_FAILED)
        fail(path, strerror(errno));
    close(fd);
    l->at = p;
    l->end = l->at + st.st_size;
}

static void transfer(struct load *l)
{
    int running, left;
    while (l->under_way > 0) {
        curl_multi_perform(l->multi, &running);
        for (CURLMsg *m; (m = curl_multi_info_read(l->multi, &left));)
            if (m->msg == CURLMSG_DONE)
                finish(l, m->easy_handle, m->data.result);
        curl_multi_poll(l->multi, NULL, 0, 1000, NULL);
    }
}

int main(int argc, char **argv)
{
    static struct request requests[REQUESTS_MAX];
    struct load l = {.bytes = 2000000};
    char url[1024];
    if (argc < 4 || argc > 6) {
        fprintf(stderr, "usage: esload URL INDEX FILE [BYTES [REQUESTS]]\n");
        return 2;
    }
    if (argc > 4)
        l.bytes = strtoul(argv[4], NULL, 10);
    long n = argc > 5 ? strtol(argv[5], NULL, 10) : 2;
    if (n < 1 || n > REQUESTS_MAX)
        fail(argv[5], "no number of requests");
    snprintf(url, sizeof url, "%s/%s/_bulk?filter_path=errors", argv[1], argv[2]);
    map_file(&l, argv[3]);
    curl_global_init(CURL_GLOBAL_DEFAULT);
    l.multi = curl_multi_init();
    l.headers = curl_slist_append(NULL, "Content-Type: application/x-ndjson");
    l.headers = curl_slist_append(l.headers, "Expect:");
    for (long i = 0; i < n; i++)
        open_request(&l, &requests[i], url);
    transfer(&l);
    for (long i = 0; i < n; i++)
        curl_easy_cleanup(requests[i].easy);
    curl_multi_cleanup(l.multi);
    curl_slist_free_all(l.headers);
    printf("{\"documents\":%lu}\n", l.documents);
    return 0;
}
