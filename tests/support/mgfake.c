/*
 * mgfake: a small server that speaks MongoDB's wire protocol and serves recorded entries as its
 * local.oplog.rs, so that real client code reads real entries. It is for tests: it believes what it
 * is told, has no users and takes no writes but by the command below.
 *
 *   mgfake --oplog FILE.bson [--port P] [--docs DIR] [--repeat N] [--max-wire N] [--version V]
 *          [--set NAME] [--mongos | --standalone]
 *
 *   --oplog     entries, one BSON document after another; one without ts gets the next ts
 *   --port      default: a free one. "mgfake: listening on 127.0.0.1:P, N entries" tells it
 *   --docs      a folder of DB.COLLECTION.bson
 *   --repeat    serves the file N times, with ts that go on rising
 *   --max-wire  maxWireVersion of hello; 21. Below 13 it refuses read concern snapshot
 *
 * It is steered while it runs by {mgfake: WHAT, value: X, ...} on any database:
 *   append       file: path of entries; entries: array of entries; docs: array of {ns, _id, doc},
 *                versions of documents as of the last entry (without doc: deleted); rising:
 *                entries whose ts does not rise get the next one
 *   rollover X   the oldest X entries are gone: 136 CappedPositionLost to who stood there
 *   rollback X   the newest X are undone; all other connections are cut, cursors are gone
 *   fail         the next `times` commands named `command` (of `collection`, if it is given) are
 *                answered with code, message and labels; code 0: the connection is cut instead
 *   stepdown X   for X ms hello says secondary; all other connections are cut, cursors are gone
 *   killcursors  all cursors are gone: 43 CursorNotFound
 *   oldest X     the oldest time that documents can be read at (timestamp): 239 SnapshotTooOld
 *   stats        {commands: {name: count}, entries, first, last, cursors, sent}
 */
#include "mgfake_info.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <getopt.h>
#include <signal.h>
#include <sys/prctl.h>

static int do_nothing(struct request *r, struct cdcd_buf *b)
{
    (void)r;
    (void)b;
    return 0;
}

static int do_no_users(struct request *r, struct cdcd_buf *b)
{
    (void)b;
    return FAIL(r, 18, "Authentication failed.");
}

/* ---- the command to the fake itself ---- */

static void append_entry(void *ctx, struct cdcd_slice document)
{
    oplog_append(&server.oplog, document, *(bool *)ctx);
}

static void append_version(struct cdcd_slice v)
{
    struct value id = get(v, "_id");
    struct cdcd_slice ns = text_of(get(v, "ns"));
    if (id.type && ns.len)
        collection_add(documents_get(&server.documents, ns, true), id, get_document(v, "doc"),
                       oplog_last_ts(&server.oplog), false);
}

static void each_document(struct cdcd_slice array, void (*each)(struct cdcd_slice document))
{
    struct cdcd_bson_iter it;
    struct cdcd_bson_element e;
    if (array.ptr && cdcd_bson_iter_init(&it, array))
        while (cdcd_bson_iter_next(&it, &e) > 0)
            each(e.value);
}

static void append_one(struct cdcd_slice document)
{
    oplog_append(&server.oplog, document, false);
}

static int control_append(struct request *r)
{
    struct value file = get(r->body, "file");
    bool of_file = false;

    server.oplog.rising = get_flag(r->body, "rising");
    if (file.type &&
        !file_documents(text_of(file).ptr, append_entry, &of_file, r->message, sizeof r->message))
        return BAD_VALUE;
    each_document(get_document(r->body, "entries"), append_one);
    each_document(get_document(r->body, "docs"), append_version);
    pthread_cond_broadcast(&server.changed);
    return 0;
}

static char *dup_text(struct cdcd_slice document, const char *name)
{
    struct cdcd_slice s = text_of(get(document, name));
    return cdcd_xstrndup(s.ptr, s.len);
}

static int control_fail(struct request *r)
{
    struct cdcd_slice labels = get_document(r->body, "labels");
    struct cdcd_bson_iter it;
    struct cdcd_bson_element e;
    struct fault f = {.command = dup_text(r->body, "command"),
                      .collection = dup_text(r->body, "collection"),
                      .message = dup_text(r->body, "message"),
                      .code = (int)get_number(r->body, "code", 0),
                      .times = get_number(r->body, "times", 1)};

    if (labels.ptr && cdcd_bson_iter_init(&it, labels))
        while (f.nlabels < LABELS && cdcd_bson_iter_next(&it, &e) > 0) {
            struct cdcd_slice s = text_of((struct value){e.type, e.value});
            f.labels[f.nlabels++] = cdcd_xstrndup(s.ptr, s.len);
        }
    server.faults = cdcd_xrealloc(server.faults, (server.nfaults + 1) * sizeof f);
    server.faults[server.nfaults++] = f;
    return 0;
}

static void put_counters(struct cdcd_buf *b)
{
    size_t at = put_document(b, "commands");
    for (size_t i = 0; i < server.ncounters; i++)
        put_int64(b, server.counters[i].name, server.counters[i].n);
    put_close(b, at);
    int64_t cursors = 0;
    for (struct cursor *c = server.cursors; c; c = c->following)
        cursors++;
    const struct oplog *o = &server.oplog;
    put_int64(b, "entries", (int64_t)(o->end - o->first));
    put_time(b, "first", o->end > o->first ? oplog_ts(o, o->first) : 0);
    put_time(b, "last", oplog_last_ts(o));
    put_int64(b, "cursors", cursors);
    put_int64(b, "sent", server.sent);
}

static int do_control(struct request *r, struct cdcd_buf *b)
{
    int64_t x = get_number(r->body, "value", 0);
    struct oplog *o = &server.oplog;

    if (is_text(r->first, "append"))
        return control_append(r);
    if (is_text(r->first, "fail"))
        return control_fail(r);
    if (is_text(r->first, "rollover")) {
        o->first = (uint64_t)x < o->end - o->first ? o->first + (uint64_t)x : o->end;
        pthread_cond_broadcast(&server.changed);
    } else if (is_text(r->first, "rollback")) {
        oplog_rollback(o, (uint64_t)x);
        cursors_kill_all();
        connections_cut(r->connection);
    } else if (is_text(r->first, "stepdown")) {
        server.secondary_until = now_ms(CLOCK_MONOTONIC) + x;
        cursors_kill_all();
        connections_cut(r->connection);
    } else if (is_text(r->first, "killcursors")) {
        put_int64(b, "killed", cursors_kill_all());
    } else if (is_text(r->first, "oldest")) {
        time_of(get(r->body, "value"), &server.documents.oldest);
    } else if (is_text(r->first, "stats")) {
        put_counters(b);
    } else {
        return FAIL(r, BAD_VALUE, "mgfake knows no such order");
    }
    return 0;
}

/* ---- dispatch ---- */

static const struct {
    const char *name;
    int (*run)(struct request *r, struct cdcd_buf *b);
} commands[] = {
    {"hello", do_hello},
    {"isMaster", do_hello},
    {"ismaster", do_hello},
    {"ping", do_nothing},
    {"find", do_find},
    {"getMore", do_get_more},
    {"killCursors", do_kill_cursors},
    {"endSessions", do_nothing},
    {"refreshSessions", do_nothing},
    {"startSession", do_nothing},
    {"logout", do_nothing},
    {"aggregate", do_aggregate},
    {"count", do_count},
    {"collStats", do_coll_stats},
    {"listDatabases", do_list_databases},
    {"listCollections", do_list_collections},
    {"buildInfo", do_build_info},
    {"buildinfo", do_build_info},
    {"getParameter", do_get_parameter},
    {"connectionStatus", do_connection_status},
    {"replSetGetStatus", do_status},
    {"serverStatus", do_build_info},
    {"saslStart", do_no_users},
    {"mgfake", do_control},
};

static const char *code_name(int code)
{
    static const struct {
        int code;
        const char *name;
    } names[] = {
        {2, "BadValue"},
        {6, "HostUnreachable"},
        {11, "UserNotFound"},
        {13, "Unauthorized"},
        {18, "AuthenticationFailed"},
        {43, "CursorNotFound"},
        {50, "MaxTimeMSExpired"},
        {59, "CommandNotFound"},
        {72, "InvalidOptions"},
        {76, "NoReplicationEnabled"},
        {91, "ShutdownInProgress"},
        {115, "CommandNotSupported"},
        {136, "CappedPositionLost"},
        {189, "PrimarySteppedDown"},
        {237, "CursorKilled"},
        {239, "SnapshotTooOld"},
        {246, "SnapshotUnavailable"},
        {262, "ExceededTimeLimit"},
        {280, "ChangeStreamFatalError"},
        {286, "ChangeStreamHistoryLost"},
        {10107, "NotWritablePrimary"},
        {11600, "InterruptedAtShutdown"},
        {11602, "InterruptedDueToReplStateChange"},
        {13435, "NotPrimaryNoSecondaryOk"},
        {13436, "NotPrimaryOrSecondary"},
    };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (names[i].code == code)
            return names[i].name;
    return "Error";
}

static void count_command(const char *name)
{
    for (size_t i = 0; i < server.ncounters; i++)
        if (strcmp(server.counters[i].name, name) == 0) {
            server.counters[i].n++;
            return;
        }
    server.counters = cdcd_xrealloc(server.counters,
                                    (server.ncounters + 1) * sizeof(struct counter));
    server.counters[server.ncounters++] = (struct counter){cdcd_xstrdup(name), 1};
}

/* A fault that is due for this command; spends one of its times. */
static int fault_of(struct request *r)
{
    for (size_t i = 0; i < server.nfaults; i++) {
        struct fault *f = &server.faults[i];
        bool more = strcmp(r->name, "getMore") == 0;
        struct value of = more ? get(r->body, "collection") : r->first;
        if (f->times <= 0 || strcmp(f->command, r->name) != 0 ||
            (*f->collection && !is_text(of, f->collection)))
            continue;
        f->times--;
        r->fault = f;
        r->cut = f->code == 0;
        if (more && r->first.type == CDCD_BSON_INT64)
            cursor_kill(cdcd_bson_int64(r->first.s));
        snprintf(r->message, sizeof r->message, "%s", f->message);
        return f->code ? f->code : -1;
    }
    return 0;
}

static int run_command(struct request *r, struct cdcd_buf *b)
{
    int code = strcmp(r->name, "mgfake") == 0 ? 0 : fault_of(r);
    if (code)
        return code;
    for (size_t i = 0; i < sizeof commands / sizeof *commands; i++)
        if (strcmp(commands[i].name, r->name) == 0)
            return commands[i].run(r, b);
    return FAIL(r, 59, "no such command: '%s'", r->name);
}

static void put_error(struct cdcd_buf *b, const struct request *r, int code)
{
    char name[24];
    put_double(b, "ok", 0);
    put_string(b, "errmsg", r->message);
    put_int32(b, "code", code);
    put_string(b, "codeName", code_name(code));
    if (!r->fault || !r->fault->nlabels)
        return;
    size_t labels = put_array(b, "errorLabels");
    for (int i = 0; i < r->fault->nlabels; i++) {
        put_index(name, sizeof name, (size_t)i);
        put_string(b, name, r->fault->labels[i]);
    }
    put_close(b, labels);
}

static void put_gossip(struct cdcd_buf *b)
{
    static const char no_hash[4 + 1 + 20] = {20};
    uint64_t now = oplog_last_ts(&server.oplog);

    if (server.standalone || !now)
        return;
    put_time(b, "operationTime", now);
    size_t time = put_document(b, "$clusterTime");
    put_time(b, "clusterTime", now);
    size_t signature = put_document(b, "signature");
    put_fixed(b, "hash", CDCD_BSON_BINARY, no_hash, sizeof no_hash);
    put_int64(b, "keyId", 0);
    put_close(b, signature);
    put_close(b, time);
}

static void request_init(struct request *r, struct cdcd_slice body, struct connection *c)
{
    struct cdcd_bson_iter it;
    struct cdcd_bson_element e;
    struct cdcd_slice db = text_of(get(body, "$db"));

    *r = (struct request){.body = body, .connection = c};
    snprintf(r->db, sizeof r->db, "%.*s", (int)db.len, db.len ? db.ptr : "");
    if (cdcd_bson_iter_init(&it, body) && cdcd_bson_iter_next(&it, &e) > 0) {
        snprintf(r->name, sizeof r->name, "%.*s", (int)e.name.len, e.name.ptr);
        r->first = (struct value){e.type, e.value};
    }
}

/* False: the connection is to be cut. */
static bool answer(struct connection *c, const struct header *h, struct cdcd_slice command,
                   struct cdcd_buf *b)
{
    struct request r;

    request_init(&r, command, c);
    answer_begin(b, h);
    size_t at = put_document(b, NULL), begin = b->len;
    pthread_mutex_lock(&server.lock);
    count_command(r.name);
    int code = run_command(&r, b);
    if (code) {
        b->len = begin;
        put_error(b, &r, code);
    } else {
        put_double(b, "ok", 1);
    }
    put_gossip(b);
    pthread_mutex_unlock(&server.lock);
    put_close(b, at);
    answer_end(b);
    return !r.cut && !b->failed;
}

/* ---- connections ---- */

static void *serve(void *arg)
{
    struct connection *c = arg;
    struct cdcd_buf in, out;
    struct cdcd_slice command;
    struct header h;
    bool wanted;

    cdcd_buf_init(&in, 0);
    cdcd_buf_init(&out, 0);
    while (read_all(c->fd, &h, sizeof h) && h.length > (int32_t)sizeof h &&
           h.length <= MESSAGE_MAX) {
        size_t n = (size_t)h.length - sizeof h;
        cdcd_buf_clear(&in);
        char *p = cdcd_buf_reserve(&in, n);
        if (!read_all(c->fd, p, n) ||
            !message_command(h.op, (struct cdcd_slice){p, n}, &command, &wanted) ||
            !answer(c, &h, command, &out) || (wanted && !write_all(c->fd, out.ptr, out.len)))
            break;
    }
    cdcd_buf_free(&in);
    cdcd_buf_free(&out);
    pthread_mutex_lock(&server.lock);
    connection_forget(c);
    pthread_mutex_unlock(&server.lock);
    return NULL;
}

static void accept_forever(int listener)
{
    for (;;) {
        int one = 1, fd = accept(listener, NULL, NULL);
        pthread_t thread;
        if (fd < 0)
            continue;
        setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
        struct connection *c = cdcd_xcalloc(1, sizeof *c);
        pthread_mutex_lock(&server.lock);
        c->fd = fd;
        c->number = ++server.next_connection;
        c->following = server.connections;
        server.connections = c;
        pthread_mutex_unlock(&server.lock);
        if (pthread_create(&thread, NULL, serve, c) == 0)
            pthread_detach(thread);
        else
            shutdown(fd, SHUT_RDWR);
    }
}

static int listen_on(int *port)
{
    struct sockaddr_in a = {.sin_family = AF_INET,
                            .sin_port = htons((uint16_t)*port),
                            .sin_addr = {htonl(INADDR_LOOPBACK)}};
    socklen_t n = sizeof a;
    int one = 1, fd = socket(AF_INET, SOCK_STREAM, 0);

    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
    if (fd < 0 || bind(fd, (struct sockaddr *)&a, sizeof a) != 0 || listen(fd, 64) != 0 ||
        getsockname(fd, (struct sockaddr *)&a, &n) != 0) {
        fprintf(stderr, "mgfake: port %d: %s\n", *port, strerror(errno));
        exit(1);
    }
    *port = ntohs(a.sin_port);
    return fd;
}

/* ---- start ---- */

static void load_document(void *ctx, struct cdcd_slice document)
{
    struct value id = get(document, "_id");
    if (id.type)
        collection_add(ctx, id, document, 0, true);
}

static void load_documents(const char *dir)
{
    char path[4096], err[400];
    struct dirent *d;
    DIR *folder = opendir(dir);

    while (folder && (d = readdir(folder))) {
        size_t len = strlen(d->d_name);
        if (len <= 5 || strcmp(d->d_name + len - 5, ".bson") != 0)
            continue;
        struct cdcd_slice ns = {d->d_name, len - 5};
        snprintf(path, sizeof path, "%s/%s", dir, d->d_name);
        struct collection *c = documents_get(&server.documents, ns, true);
        if (!file_documents(path, load_document, c, err, sizeof err)) {
            fprintf(stderr, "mgfake: %s\n", err);
            exit(1);
        }
    }
    if (!folder) {
        fprintf(stderr, "mgfake: no folder %s\n", dir);
        exit(1);
    }
    closedir(folder);
}

static void usage(void)
{
    fprintf(stderr, "usage: mgfake --oplog FILE.bson [--port P] [--docs DIR] [--repeat N] "
                    "[--max-wire N]\n              [--version V] [--set NAME] [--mongos | "
                    "--standalone]\n");
    exit(2);
}

static void start(int argc, char **argv)
{
    static const struct option options[] = {
        {"oplog", 1, NULL, 'o'},  {"port", 1, NULL, 'p'},     {"docs", 1, NULL, 'd'},
        {"repeat", 1, NULL, 'r'}, {"max-wire", 1, NULL, 'w'}, {"version", 1, NULL, 'v'},
        {"set", 1, NULL, 's'},    {"mongos", 0, NULL, 'm'},   {"standalone", 0, NULL, 'a'},
        {NULL, 0, NULL, 0},
    };
    const char *oplog = NULL, *docs = NULL;
    unsigned long long repeat = 1;
    bool of_file = true;
    char err[400];
    int o;

    while ((o = getopt_long(argc, argv, "", options, NULL)) != -1)
        switch (o) {
        case 'o': oplog = optarg; break;
        case 'p': server.port = (int)strtol(optarg, NULL, 10); break;
        case 'd': docs = optarg; break;
        case 'r': repeat = strtoull(optarg, NULL, 10); break;
        case 'w': server.max_wire = (int)strtol(optarg, NULL, 10); break;
        case 'v': server.version = optarg; break;
        case 's': server.set = optarg; break;
        case 'm': server.mongos = true; break;
        case 'a': server.standalone = true; break;
        default: usage();
        }
    if (!oplog || optind != argc)
        usage();
    server.oplog.sorted = true;
    if (!file_documents(oplog, append_entry, &of_file, err, sizeof err)) {
        fprintf(stderr, "mgfake: %s\n", err);
        exit(1);
    }
    oplog_repeat(&server.oplog, repeat);
    if (docs)
        load_documents(docs);
}

int main(int argc, char **argv)
{
    pthread_condattr_t monotonic;

    prctl(PR_SET_PDEATHSIG, SIGKILL); /* a test that was killed leaves no server behind */
    signal(SIGPIPE, SIG_IGN);
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&server.changed, &monotonic);
    start(argc, argv);
    int listener = listen_on(&server.port);
    printf("mgfake: listening on 127.0.0.1:%d, %llu entries\n", server.port,
           (unsigned long long)(server.oplog.end - server.oplog.first));
    fflush(stdout);
    accept_forever(listener);
}
