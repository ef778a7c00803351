/*
 * pgload: random changes for tests that afterwards must know what was committed.
 *
 *   pgload URL --init [--tables N] [--keys N]    makes the tables (pgload.sql) in an empty database
 *   pgload URL [--seconds S] [--transactions N] [--sessions N] [--seed X] [--rate N]
 *              [--large N] [--first N]
 *
 * Each session runs transactions of 1 to 8 changes of random keys: inserts, updates, deletes,
 * changes of the key, with savepoints, rollbacks to savepoints and rollbacks. --rate bounds all
 * sessions' transactions a second. --large N: every 200th transaction has N changes. --first N:
 * before all else one transaction that inserts N of the keys of each table. A lost connection is
 * made again, for ever: what was committed stands in the table pgload.log. Prints at the end
 * {"committed":N,"rolled_back":N,"failed":N,"reconnects":N}; SIGTERM ends it early.
 */
#include <libpq-fe.h>

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <cdcd/buf.h>

struct options {
    const char *url;
    long seconds, transactions, sessions, tables, keys, seed, rate, large, first;
    bool init;
};

struct session {
    pthread_t thread;
    const struct options *options;
    PGconn *conn;
    uint64_t random;
    long number, done, committed, rolled_back, failed, reconnects;
};

static volatile sig_atomic_t ended;
static struct timespec began;

static void on_signal(int sig)
{
    (void)sig;
    ended = 1;
}

static double elapsed(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)(now.tv_sec - began.tv_sec) + (double)(now.tv_nsec - began.tv_nsec) / 1e9;
}

static void pause_ms(long ms)
{
    struct timespec t = {ms / 1000, ms % 1000 * 1000000};
    nanosleep(&t, NULL);
}

/* splitmix64 */
static uint64_t next_random(struct session *s)
{
    uint64_t z = s->random += UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return z ^ z >> 31;
}

static long below(struct session *s, long n)
{
    return (long)(next_random(s) % (uint64_t)n);
}

static void add_step(struct session *s, struct cdcd_buf *sql)
{
    const struct options *o = s->options;
    /* Few keys get much: conflicts between sessions are wanted. */
    long keys = below(s, 4) == 0 && o->keys > 10 ? 10 : o->keys;
    cdcd_buf_addf(sql, "SELECT pgload.step(%ld, %ld, %ld, %ld);", below(s, o->tables) + 1,
                  below(s, keys) + 1, below(s, o->keys) + 1, below(s, 100));
}

/* One transaction as one query string; true when it ends in COMMIT. */
static bool make_transaction(struct session *s, struct cdcd_buf *sql)
{
    const struct options *o = s->options;
    bool large = o->large > 0 && s->done % 200 == 100;
    long n = large ? o->large : below(s, 8) + 1;
    cdcd_buf_clear(sql);
    cdcd_buf_adds(sql, "BEGIN;");
    for (long i = 0; i < n; i++) {
        long what = below(s, large ? 1000 : 12);
        if (what < 2) {
            cdcd_buf_adds(sql, "SAVEPOINT a;");
            add_step(s, sql);
            if (what == 1)
                cdcd_buf_adds(sql, "SAVEPOINT b;");
            add_step(s, sql);
            cdcd_buf_adds(sql, below(s, 2) ? "ROLLBACK TO a;" : "RELEASE a;");
        } else {
            add_step(s, sql);
        }
    }
    bool commit = below(s, 10) != 0;
    cdcd_buf_adds(sql, commit ? "COMMIT" : "ROLLBACK");
    return commit;
}

static void connect_session(struct session *s)
{
    while (!ended) {
        s->conn = PQconnectdb(s->options->url);
        if (PQstatus(s->conn) == CONNECTION_OK) {
            /* A deadlock is one more rollback: do not wait a second for it. */
            PQclear(PQexec(s->conn, "SET deadlock_timeout = '50ms';"
                                    "SET client_min_messages = error;"
                                    "SET application_name = 'pgload'"));
            return;
        }
        PQfinish(s->conn);
        s->conn = NULL;
        pause_ms(100);
    }
}

static void run_transaction(struct session *s, const char *sql, bool commit)
{
    PGresult *r = PQexec(s->conn, sql);
    ExecStatusType status = PQresultStatus(r);
    bool ok = status == PGRES_TUPLES_OK || status == PGRES_COMMAND_OK;
    if (!ok) {
        const char *state = PQresultErrorField(r, PG_DIAG_SQLSTATE);
        bool expected = !state || strncmp(state, "40", 2) == 0 || strncmp(state, "57", 2) == 0 ||
                        strncmp(state, "08", 2) == 0 || strncmp(state, "53", 2) == 0;
        if (!expected) {
            fprintf(stderr, "pgload: %s", PQresultErrorMessage(r));
            exit(1);
        }
        s->failed++;
    } else if (commit) {
        s->committed++;
    } else {
        s->rolled_back++;
    }
    PQclear(r);
    if (PQstatus(s->conn) != CONNECTION_OK) {
        PQfinish(s->conn);
        s->conn = NULL;
        s->reconnects++;
        connect_session(s);
    } else if (!ok) {
        PQclear(PQexec(s->conn, "ROLLBACK"));
    }
}

static void *run_session(void *arg)
{
    struct session *s = arg;
    const struct options *o = s->options;
    struct cdcd_buf sql;
    cdcd_buf_init(&sql, 0);
    connect_session(s);
    if (s->number == 0 && o->first > 0 && !ended) {
        cdcd_buf_addf(&sql,
                      "SELECT count(pgload.step(t, k, k, 99)) FROM generate_series(1, %ld) t, "
                      "generate_series(1, %ld) k",
                      o->tables, o->first);
        run_transaction(s, cdcd_buf_cstr(&sql), true);
    }
    while (!ended && (o->transactions == 0 || s->done < o->transactions) &&
           (o->seconds == 0 || elapsed() < (double)o->seconds)) {
        bool commit = make_transaction(s, &sql);
        run_transaction(s, cdcd_buf_cstr(&sql), commit);
        s->done++;
        while (o->rate > 0 && !ended &&
               elapsed() * (double)o->rate < (double)(s->done * o->sessions))
            pause_ms(2);
    }
    PQfinish(s->conn);
    cdcd_buf_free(&sql);
    return NULL;
}

/* How many tables and keys --init has made. */
static void read_shape(struct options *o)
{
    PGconn *c = PQconnectdb(o->url);
    PGresult *r = PQexec(c, "SELECT max(tab), max(key) FROM pgload.keys");
    if (PQresultStatus(r) != PGRES_TUPLES_OK || PQgetisnull(r, 0, 0)) {
        fprintf(stderr, "pgload: %s", PQerrorMessage(c));
        fprintf(stderr, "pgload: no tables to change; run pgload URL --init first\n");
        exit(1);
    }
    o->tables = strtol(PQgetvalue(r, 0, 0), NULL, 10);
    o->keys = strtol(PQgetvalue(r, 0, 1), NULL, 10);
    PQclear(r);
    PQfinish(c);
}

/* psql reads the file, since \gexec and variables are psql's. */
static int init(const struct options *o)
{
    const char *source = getenv("CDCD_SOURCE_DIR");
    char file[4096], tables[64], keys[64];
    snprintf(file, sizeof file, "%s/tests/support/pgload.sql", source ? source : ".");
    snprintf(tables, sizeof tables, "tables=%ld", o->tables);
    snprintf(keys, sizeof keys, "keys=%ld", o->keys);
    execlp("psql", "psql", "-X", "-q", "-v", "ON_ERROR_STOP=1", "-v", tables, "-v", keys, "-f",
           file, "-d", o->url, (char *)NULL);
    perror("pgload: psql");
    return 1;
}

static bool parse(int argc, char **argv, struct options *o)
{
    const struct {
        const char *name;
        long *value;
    } numbers[] = {{"--seconds", &o->seconds},   {"--transactions", &o->transactions},
                   {"--sessions", &o->sessions}, {"--tables", &o->tables},
                   {"--keys", &o->keys},         {"--seed", &o->seed},
                   {"--rate", &o->rate},         {"--large", &o->large},
                   {"--first", &o->first}};
    for (int i = 1; i < argc; i++) {
        size_t k = 0, n = sizeof numbers / sizeof numbers[0];
        while (k < n && strcmp(argv[i], numbers[k].name) != 0)
            k++;
        char *end = NULL;
        if (k < n && i + 1 < argc) {
            errno = 0;
            *numbers[k].value = strtol(argv[++i], &end, 10);
            if (errno || *end || *numbers[k].value < 0)
                return false;
        } else if (strcmp(argv[i], "--init") == 0) {
            o->init = true;
        } else if (!o->url && argv[i][0] != '-') {
            o->url = argv[i];
        } else {
            return false;
        }
    }
    return o->url && o->sessions > 0 && o->tables > 0 && o->keys > 1;
}

int main(int argc, char **argv)
{
    struct options o = {.sessions = 4, .tables = 3, .keys = 200, .seed = 1};
    if (!parse(argc, argv, &o)) {
        fprintf(stderr,
                "usage: pgload URL --init [--tables N] [--keys N]\n"
                "       pgload URL [--seconds S] [--transactions N] [--sessions N] [--seed X]"
                " [--rate N] [--large N] [--first N]\n");
        return 2;
    }
    if (o.init)
        return init(&o);
    struct sigaction action = {.sa_handler = on_signal};
    sigaction(SIGTERM, &action, NULL);
    sigaction(SIGINT, &action, NULL);
    signal(SIGPIPE, SIG_IGN);
    read_shape(&o);
    clock_gettime(CLOCK_MONOTONIC, &began);
    struct session *all = calloc((size_t)o.sessions, sizeof *all);
    if (!all)
        return 1;
    for (long i = 0; i < o.sessions; i++) {
        all[i].options = &o;
        all[i].number = i;
        all[i].random = (uint64_t)o.seed * 1000003 + (uint64_t)i;
        if (pthread_create(&all[i].thread, NULL, run_session, &all[i]) != 0)
            return 1;
    }
    struct session sum = {0};
    for (long i = 0; i < o.sessions; i++) {
        pthread_join(all[i].thread, NULL);
        sum.committed += all[i].committed;
        sum.rolled_back += all[i].rolled_back;
        sum.failed += all[i].failed;
        sum.reconnects += all[i].reconnects;
    }
    printf("{\"committed\":%ld,\"rolled_back\":%ld,\"failed\":%ld,\"reconnects\":%ld}\n",
           sum.committed, sum.rolled_back, sum.failed, sum.reconnects);
    free(all);
    return 0;
}
