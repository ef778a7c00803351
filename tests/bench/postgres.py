"""The PostgreSQL benchmarks. Each gives a list of runs: dictionaries of raw figures."""
import glob
import json
import os
import shutil
import subprocess
import time

import cdcdtest
import common
import measure
from common import Failed, brief, check_count, finish, lines_of

SQL = os.path.join(os.path.dirname(os.path.abspath(__file__)), "postgres")
SETTINGS = ["autovacuum=off", "checkpoint_timeout=1h", "max_wal_size=64GB", "shared_buffers=1GB",
            "logical_decoding_work_mem=64MB", "wal_sender_timeout=60s", "max_locks_per_transaction=512"]


class Session:
    """A psql that stays open, for questions asked many times."""

    def __init__(self, pg, db):
        self.child = subprocess.Popen(pg.psql_argv(db), stdin=subprocess.PIPE, text=True,
                                      stdout=subprocess.PIPE)

    def one(self, sql):
        self.child.stdin.write(sql + ";\n")
        self.child.stdin.flush()
        return self.child.stdout.readline().rstrip("\n")

    def close(self):
        self.child.stdin.close()
        self.child.wait()


class Bench(common.Bench):
    pg = None

    def start_postgres(self):
        if not self.pg:
            version = [self.options.server_version] if self.options.server_version else [None]
            self.pg = self.server = cdcdtest.Postgres(version[0], *SETTINGS)

    def versions(self):
        return {"postgresql": self.pg.sql("SHOW server_version")} if self.pg else {}

    def new_db(self):
        db = self.pg.new_db("bench")
        self.psql(db, "schema.sql")
        return db

    def psql(self, db, file, **variables):
        argv = self.pg.psql_argv(db)
        for k, v in variables.items():
            argv += ["-v", "%s=%s" % (k, v)]
        return cdcdtest.run(argv + ["-f", os.path.join(SQL, file)], timeout=1800).stdout.strip()

    def socket_url(self, db):
        """The unix socket, for every contestant: TCP costs as much again."""
        return "postgresql://postgres@/%s?host=%s&port=%s" % (
            db, self.pg.env["CDCD_PG_SOCKET"].replace("/", "%2F"), self.pg.env["CDCD_PG_PORT"])

    def tool(self, name):
        path = os.path.join(self.pg.env["CDCD_PG_BIN"], name)
        return path if os.path.exists(path) else shutil.which(name)

    def cdcd(self, command, db, sink, name, stdout=None, **more):
        """Starts cdcd with a sink of that kind; `more` are further source options and sections."""
        run = self.new_run(sink, name)
        source = {"url": self.socket_url(db), "publication.name": "bench_pub",
                  "slot.name": "cdcd_%s_%d" % (name, self.serial), "status.update.interval.ms": 100}
        source.update(more.pop("source", {}))
        run["slot"] = source["slot.name"]
        self.configure(run, {"source": {"postgres": source}, **more})
        return self.launch(run, command, stdout)


def until_confirmed(session, run, target, timeout=1800):
    """The slot's confirmed position is what the sink durably holds. Returns the CPU seconds of
    the walsender."""
    end = time.monotonic() + timeout
    walsender = 0.0
    while True:
        run["process"].sample()
        row = session.one("SELECT coalesce(confirmed_flush_lsn, '0/0'), coalesce(active_pid, 0) "
                          "FROM pg_replication_slots WHERE slot_name = '%s' "
                          "UNION ALL SELECT '0/0', 0 LIMIT 1" % run["slot"])
        confirmed, pid = row.split("|")
        if int(pid):
            walsender = measure.cpu_of(int(pid))
        if measure.lsn(confirmed) >= target:
            return walsender
        if time.monotonic() > end:
            raise Failed("not drained in %d s: %s of %X" % (timeout, confirmed, target))
        time.sleep(0.01)


# ---- drain ---------------------------------------------------------------------------------------

def drain(bench):
    """A backlog of inserts in transactions of 100, from the start of the process until all of it
    is durable; pg_recvlogical drains the same backlog to a file right before each run."""
    rows = bench.options.rows
    bench.start_postgres()
    db = bench.new_db()
    bench.pg.sql("SELECT pg_create_logical_replication_slot('base', 'pgoutput')", db)
    bench.say("drain: writing %d rows in transactions of 100" % rows)
    target = measure.lsn(bench.psql(db, "backlog.sql", rows=rows))
    session = Session(bench.pg, db)
    runs = []
    for pair in range(bench.options.pairs):
        for sink in bench.options.sinks:
            limit = drain_recvlogical(bench, db, target, rows)
            r = drain_cdcd(bench, db, session, sink, target, rows)
            r.update({"pair": pair, "limit": limit, "ratio": r["rate"] / limit["rate"]})
            bench.say("drain %s: %s" % (sink, brief(r)))
            runs.append(r)
    session.close()
    bench.pg.sql("SELECT pg_drop_replication_slot('base')", db)
    return runs


def copy_slot(bench, db, name):
    bench.pg.sql("SELECT pg_copy_logical_replication_slot('base', '%s')" % name, db)


def drop_slot(bench, db, name):
    """The walsender may hold the slot for a moment after its client has gone."""
    cdcdtest.wait_until("slot %s to be free" % name, lambda: bench.pg.sql(
        "SELECT count(*) FROM pg_replication_slots WHERE slot_name = '%s' AND active" % name, db) == "0")
    bench.pg.sql("SELECT pg_drop_replication_slot('%s')" % name, db)


def drain_recvlogical(bench, db, target, rows):
    folder = bench.new_folder("recvlogical")
    copy_slot(bench, db, "recvlogical")
    p = measure.Process(
        [bench.tool("pg_recvlogical"), "-d", bench.socket_url(db), "-S", "recvlogical", "--start",
         "-n", "-f", os.path.join(folder, "out"), "--endpos=%X/%X" % (target >> 32, target & 0xffffffff),
         "-o", "proto_version=1", "-o", "publication_names=bench_pub"], os.path.join(folder, "log"))
    bench.alive.append(p)
    if p.wait() != 0:
        raise Failed("pg_recvlogical: exit code %d\n%s" % (p.code, p.tail()))
    bench.alive.remove(p)
    drop_slot(bench, db, "recvlogical")
    shutil.rmtree(folder)
    return {"seconds": p.seconds, "rate": rows / p.seconds, "cpu": p.cpu}


def drain_cdcd(bench, db, session, sink, target, rows):
    slot = "drain_%d" % (bench.serial + 1)
    copy_slot(bench, db, slot)
    run = bench.cdcd("run", db, sink, "drain", source={"slot.name": slot}, snapshot={"mode": "no_data"})
    walsender = until_confirmed(session, run, target)
    seconds = time.monotonic() - run["process"].began
    r = {"what": "drain", "sink": sink, "rows": rows, "seconds": seconds, "rate": rows / seconds,
         "walsender_cpu": walsender}
    r.update(finish(bench, run, rows))
    check_count(bench, run, "public.bench", rows)
    drop_slot(bench, db, slot)
    bench.clean(run)
    return r


# ---- snapshot ------------------------------------------------------------------------------------

def snapshot(bench):
    """`cdcd snapshot` of one table from start to exit; COPY of the table to /dev/null right before
    each run."""
    rows = bench.options.rows
    bench.start_postgres()
    db = bench.new_db()
    bench.say("snapshot: writing %d rows" % rows)
    bench.psql(db, "fill.sql", rows=rows)
    bench.pg.sql("VACUUM (FREEZE, ANALYZE) bench", db)
    runs = []
    for pair in range(bench.options.pairs):
        for sink in bench.options.sinks:
            limit = snapshot_copy(bench, db, rows)
            run = bench.cdcd("snapshot", db, sink, "snapshot")
            p = run["process"]
            if p.wait() != 0:
                raise Failed("cdcd snapshot: exit code %d\n%s" % (p.code, p.tail()))
            r = {"what": "snapshot", "sink": sink, "rows": rows, "pair": pair, "seconds": p.seconds,
                 "rate": rows / p.seconds, "limit": limit, "ratio": limit["seconds"] / p.seconds}
            r.update(finish(bench, run, rows))
            check_count(bench, run, "public.bench", rows)
            drop_slot(bench, db, run["slot"])
            bench.clean(run)
            bench.say("snapshot %s: %s" % (sink, brief(r)))
            runs.append(r)
    return runs


def snapshot_copy(bench, db, rows):
    folder = bench.new_folder("copy")
    p = measure.Process([bench.tool("psql"), "-X", "-q", "-d", bench.socket_url(db), "-c",
                         "COPY bench TO STDOUT"], os.path.join(folder, "log"))
    if p.wait() != 0:
        raise Failed("COPY: exit code %d\n%s" % (p.code, p.tail()))
    shutil.rmtree(folder)
    return {"seconds": p.seconds, "rate": rows / p.seconds, "cpu": p.cpu}


# ---- latency -------------------------------------------------------------------------------------

def latency(bench):
    """Single-row commits at a fixed rate; from clock_timestamp() in the statement (so the commit
    itself counts too) to the moment a read_committed consumer has the record."""
    bench.start_postgres()
    db = bench.new_db()
    runs = []
    for pair in range(bench.options.pairs):
        for sink in bench.options.sinks:
            if sink == "file":
                continue  # a reader of a folder polls: that would measure the reader
            runs.append(dict(latency_once(bench, db, sink), pair=pair))
            bench.say("latency %s: %s" % (sink, brief(runs[-1])))
    return runs


def latency_once(bench, db, sink):
    rate, seconds = bench.options.rate, bench.options.seconds
    reader = os.path.join(cdcdtest.SUPPORT, "klatency")
    pipe = None
    if sink == "null":
        pipe = os.pipe()
    run = bench.cdcd("run", db, sink, "latency", stdout=pipe[1] if pipe else None,
                     snapshot={"mode": "no_data"})
    cdcdtest.wait_until("the slot to be in use", lambda: bench.pg.sql(
        "SELECT active FROM pg_replication_slots WHERE slot_name = '%s'" % run["slot"], db) == "t")
    bench.psql(db, "latency.sql")  # makes the topic, outside of what is measured
    session = Session(bench.pg, db)
    until_confirmed(session, run, measure.lsn(bench.pg.lsn(db)), 60)
    session.close()
    where = ["-"] if pipe else [bench.kafka.bootstrap, run["name"] + ".public.bench"]
    out = os.path.join(run["folder"], "latency.json")
    with open(out, "w") as f:
        watch = measure.Process([reader, *where, "--column", "d", "--skip", "1"],
                                os.path.join(run["folder"], "klatency.log"), stdin=pipe and pipe[0],
                                stdout=f)
    bench.alive.append(watch)
    for fd in pipe or ():
        os.close(fd)
    time.sleep(1.0)
    cdcdtest.run([bench.tool("pgbench"), "-n", "-c", "4", "-R", str(rate), "-T", str(seconds), "-f",
                  os.path.join(SQL, "latency.sql"), "-h", bench.pg.env["CDCD_PG_SOCKET"], "-p",
                  bench.pg.env["CDCD_PG_PORT"], "-U", "postgres", db], timeout=seconds + 60)
    time.sleep(1.0)
    commits = int(bench.pg.sql("SELECT count(*) - 1 FROM bench", db))
    r = {"what": "latency", "sink": sink, "rows": commits, "rate": commits / seconds}
    r.update(finish(bench, run, commits))
    if watch.stop() != 0:
        raise Failed("klatency: %s" % watch.tail())
    with open(out) as f:
        r.update(json.load(f))
    if r["records"] != commits:
        raise Failed("the reader has %d records of %d commits" % (r["records"], commits))
    drop_slot(bench, db, run["slot"])
    bench.pg.sql("TRUNCATE bench", db)
    bench.alive.remove(watch)
    bench.clean(run)
    return r


# ---- txn -----------------------------------------------------------------------------------------

def txn(bench):
    """One huge transaction, written while cdcd streams: nothing of it may come out before its
    commit, so it waits on disk. Time is from its commit until all of it is durable."""
    bench.start_postgres()
    db = bench.new_db()
    runs = []
    shapes = [("rows", "fill.sql", bench.options.txn_rows, "bench"),
              ("bytes", "wide.sql", bench.options.txn_bytes // 100000, "wide")]
    for pair in range(bench.options.pairs):
        for sink in bench.options.sinks:
            for shape, file, rows, table in shapes:
                if rows:
                    r = txn_once(bench, db, sink, shape, file, rows, table)
                    bench.say("txn %s %s: %s" % (shape, sink, brief(r)))
                    runs.append(dict(r, pair=pair))
    return runs


def txn_once(bench, db, sink, shape, file, rows, table):
    run = bench.cdcd("run", db, sink, "txn", snapshot={"mode": "no_data"})
    cdcdtest.wait_until("the slot to be in use", lambda: bench.pg.sql(
        "SELECT active FROM pg_replication_slots WHERE slot_name = '%s'" % run["slot"], db) == "t")
    argv = bench.pg.psql_argv(db) + ["-v", "rows=%d" % rows, "-1", "-f", os.path.join(SQL, file)]
    writer = measure.Process(argv, os.path.join(run["folder"], "psql.log"))
    bench.alive.append(writer)
    most = 0

    def spilled():
        out = measure.folder_size(run["out"]) if "out" in run else 0
        return measure.folder_size(run["folder"]) - out
    while writer.code is None:
        run["process"].sample()
        most = max(most, spilled())
        try:
            writer.sample()
        except measure.Ended:
            break
        time.sleep(0.05)
    if writer.code != 0:
        raise Failed("psql: %s" % writer.tail())
    committed = time.monotonic()
    bench.alive.remove(writer)
    target = measure.lsn(bench.pg.lsn(db))
    session = Session(bench.pg, db)
    end = time.monotonic() + 1800
    while True:
        run["process"].sample()
        most = max(most, spilled())
        got = session.one("SELECT confirmed_flush_lsn FROM pg_replication_slots WHERE slot_name = '%s'"
                          % run["slot"])
        if measure.lsn(got) >= target:
            break
        if time.monotonic() > end:
            raise Failed("the transaction was not drained in 1800 s")
        time.sleep(0.05)
    seconds = time.monotonic() - committed
    session.close()
    left = spilled()
    size = int(bench.pg.sql("SELECT pg_total_relation_size('%s')" % table, db))
    r = {"what": "txn", "shape": shape, "sink": sink, "rows": rows, "bytes": size, "seconds": seconds,
         "write_seconds": writer.seconds, "rate": rows / seconds, "spill_bytes": most,
         "spill_left_bytes": left}
    r.update(finish(bench, run, rows))
    if sink != "null" and bench.count(run, "public." + table) != rows:
        raise Failed("%s does not hold %d records of %s" % (sink, rows, table))
    drop_slot(bench, db, run["slot"])
    bench.pg.sql("TRUNCATE bench, wide", db)
    bench.clean(run)
    return r


# ---- tables --------------------------------------------------------------------------------------

def tables(bench):
    """Many tables of one row each: from the start until all rows are out, then an orderly stop, a
    start again until a new change is out, and peak memory of both."""
    n = bench.options.tables
    bench.start_postgres()
    db = bench.pg.new_db("tables")
    bench.say("tables: making %d tables" % n)
    bench.psql(db, "tables.sql", tables=n)
    bench.pg.sql("CREATE PUBLICATION bench_pub FOR ALL TABLES", db)
    runs = []
    for pair in range(bench.options.pairs):
        for sink in bench.options.sinks:
            if sink == "null":
                continue  # cannot tell what came out
            r = dict(tables_once(bench, db, sink, n), pair=pair)
            bench.say("tables %s: %s" % (sink, brief(r)))
            runs.append(r)
    return runs


def tables_once(bench, db, sink, n):
    session = Session(bench.pg, db)
    run = bench.cdcd("run", db, sink, "tables")
    touch = "UPDATE t%05d SET price = price + 1" % n
    # The slot's confirmed position passes a change made after the slot is there only when the
    # snapshot is over and the change is durable.
    cdcdtest.wait_until("the slot", lambda: session.one(
        "SELECT count(*) FROM pg_replication_slots WHERE slot_name = '%s'" % run["slot"]) == "1", 60)
    target = measure.lsn(session.one(touch + "; SELECT pg_current_wal_lsn()"))
    until_confirmed(session, run, target, 600)
    first = time.monotonic() - run["process"].began
    r = {"what": "tables", "sink": sink, "rows": n, "seconds": first}
    r.update(finish(bench, run, n))
    target = measure.lsn(session.one(touch + "; SELECT pg_current_wal_lsn()"))
    again = measure.Process([cdcdtest.CDCD, "run", "-c", run["config"]], os.path.join(run["folder"], "log"))
    bench.alive.remove(run["process"])
    run["process"] = again
    bench.alive.append(again)
    until_confirmed(session, run, target, 600)
    r["restart_seconds"] = time.monotonic() - again.began
    r["restart_peak_bytes"] = finish(bench, run, 1)["peak_bytes"]
    if sink == "file":
        got = sum(lines_of(f) for f in glob.glob(os.path.join(run["out"], "*.jsonl")))
        if got != n + 2:
            raise Failed("%d records instead of %d" % (got, n + 2))
    session.close()
    drop_slot(bench, db, run["slot"])
    bench.clean(run)
    return r


SUITES = {"drain": drain, "snapshot": snapshot, "latency": latency, "txn": txn, "tables": tables}
SINKS = {"drain": ["kafka", "file", "null"], "snapshot": ["kafka", "file"], "latency": ["kafka"],
         "txn": ["null", "kafka"], "tables": ["file", "kafka"]}
