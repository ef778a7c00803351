"""The MySQL and MariaDB benchmarks. Each gives a list of runs: dictionaries of raw figures.

What is durable is asked of cdcd itself (its position at http.listen), since the server does not
know. A pipeline that is to begin before a backlog is started before that is written: one that
remembers is stopped again and later goes on from its position; standard output remembers nothing,
so that process is suspended and later continued.
"""
import glob
import json
import os
import random
import re
import shutil
import signal
import socket
import time
import urllib.request

import cdcdtest
import common
import measure
import mycase
from common import Failed, brief, check_count, finish, lines_of

SQL = os.path.join(os.path.dirname(os.path.abspath(__file__)), "mysql")
SETTINGS = ["innodb_buffer_pool_size=1G", "max_binlog_size=1G", "net_write_timeout=7200"]


class Bench(common.Bench):
    def start_server(self):
        if not self.server:
            name = self.options.source
            if self.options.server_version:
                name += "-" + self.options.server_version
            self.server = mycase.MyServer(name, *SETTINGS)

    def versions(self):
        if not self.server:
            return {}
        tool = self.server.var("BINLOG")
        return {self.options.source: self.server.sql("SELECT VERSION()"),
                "binlog tool": cdcdtest.run([tool, "--no-defaults", "--version"]).stdout.strip()}

    def new_db(self):
        db = self.server.new_db("bench")
        with open(os.path.join(SQL, "schema.sql")) as f:
            self.server.sql(f.read(), db)
        return db

    def load(self, db, text):
        self.server.sql("SET time_zone = '+00:00';\n" + text, db, timeout=3600)

    def server_cpu(self):
        return measure.cpu_of(int(self.server.var("PID")))

    def socket_path(self):
        """The unix socket, for every contestant: TCP costs more."""
        return self.server.var("SOCKET")

    def cdcd(self, db, sink, name, **more):
        """The configuration of a pipeline; `more` are further sections."""
        run = self.new_run(sink, name)
        run["http"] = "127.0.0.1:%d" % free_port()
        url = "mysql://cdcd:cdcd@localhost/?socket=" + self.socket_path().replace("/", "%2F")
        self.configure(run, {"http.listen": run["http"], "source": {"mysql": {
            "url": url, "table.include.list": ["%s.(bench|wide|t[0-9]+)" % db]}}, **more})
        return run


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


# ---- where a pipeline is -------------------------------------------------------------------------

def status(run):
    """What cdcd says of itself; {} while it does not answer."""
    try:
        with urllib.request.urlopen("http://%s/api/status" % run["http"], timeout=5) as r:
            return json.load(r)
    except OSError:
        return {}


def log_place(file, pos):
    return int(file.rpartition(".")[2]), int(pos)


def durable(run):
    """What the sink durably holds, comparable with the log's end."""
    m = re.match(r"([^:, ]+\.\d+):(\d+)", status(run).get("position") or "")
    return log_place(m[1], m[2]) if m else (0, 0)


def log_end(bench):
    file, pos, _ = bench.server.log_end()
    return log_place(file, pos)


def until_streaming(run, timeout=120):
    end = time.monotonic() + timeout
    while True:
        run["process"].sample()
        s = status(run)
        if s.get("phase") == "streaming" and s.get("position"):
            return
        if time.monotonic() > end:
            raise Failed("not streaming in %d s: %s" % (timeout, run["process"].tail()))
        time.sleep(0.02)


def until_durable(run, target, timeout=1800, watch=lambda: None):
    """Asks less often the more there is left: an answer costs a part of a millisecond of both."""
    began = time.monotonic()
    first, wait = None, 0.005
    while True:
        run["process"].sample()
        watch()
        at, now = durable(run), time.monotonic()
        if at >= target:
            return
        if now - began > timeout:
            raise Failed("not drained in %d s: %s of %s" % (timeout, at, target))
        if at[0] != target[0]:
            wait = 0.05
        elif first is None:
            first = at[1], now
        elif at[1] > first[0]:
            speed = (at[1] - first[0]) / (now - first[1])
            wait = min(max((target[1] - at[1]) / speed / 2, 0.005), 0.1)
        time.sleep(wait)


# ---- drain ---------------------------------------------------------------------------------------

def drain(bench):
    """A backlog of inserts in transactions of 100, from the start of the process until all of it
    is durable. Right before each run the server's own tool reads the same backlog over the same
    socket to /dev/null: once as SQL with the rows as comments (-v), once raw."""
    rows = bench.options.rows
    bench.start_server()
    db = bench.new_db()
    ready = [(pair, sink, drain_prepare(bench, db, sink))
             for pair in range(bench.options.pairs) for sink in bench.options.sinks]
    bench.server.sql("FLUSH BINARY LOGS")
    begin = bench.server.log_end()[:2]
    bench.say("drain: writing %d rows in transactions of 100" % rows)
    bench.load(db, "CALL bench_rows(%d)" % rows)
    target = log_end(bench)
    runs = []
    for pair, sink, run in ready:
        limit = drain_tool(bench, begin, rows, "-v")
        raw = drain_tool(bench, begin, rows, "--raw")
        r = drain_cdcd(bench, db, run, target, rows)
        r.update({"pair": pair, "limit": limit, "raw": raw, "ratio": r["rate"] / limit["rate"]})
        bench.say("drain %s: %s" % (sink, brief(r)))
        runs.append(r)
    return runs


def drain_prepare(bench, db, sink):
    """A pipeline whose position is the end of the log as it is now."""
    run = bench.cdcd(db, sink, "drain", snapshot={"mode": "no_data"})
    bench.launch(run, "run")
    until_streaming(run)
    if sink == "null":
        cdcdtest.wait_until("the dump to begin", lambda: "Binlog Dump" in bench.server.sql(
            "SHOW PROCESSLIST"))
        os.kill(run["process"].pid, signal.SIGSTOP)
        return run
    if run["process"].stop() != 0:
        raise Failed("cdcd: exit code %s\n%s" % (run["process"].code, run["process"].tail()))
    bench.alive.remove(run["process"])
    return run


def drain_tool(bench, begin, rows, mode):
    """mysqlbinlog or mariadb-binlog. Raw it insists on a file of the log's name."""
    folder = bench.new_folder("binlog")
    out = os.path.join(folder, "")
    file, pos = begin
    for i in range(100):
        name = "%s.%06d" % (file.rpartition(".")[0], log_place(file, pos)[0] + i)
        os.symlink("/dev/null", os.path.join(folder, name))
    argv = [bench.server.var("BINLOG"), "--no-defaults", "--read-from-remote-server", "--to-last-log",
            "--user=root", "--socket=" + bench.socket_path(), "--start-position=%d" % pos, mode]
    if mode == "--raw":
        argv.append("--result-file=" + out)
    before = bench.server_cpu()
    p = measure.Process(argv + [file], os.path.join(folder, "log"))
    bench.alive.append(p)
    if p.wait() != 0:
        raise Failed("%s: exit code %d\n%s" % (argv[0], p.code, p.tail()))
    bench.alive.remove(p)
    shutil.rmtree(folder)
    return {"seconds": p.seconds, "rate": rows / p.seconds, "cpu": p.cpu,
            "server_cpu": bench.server_cpu() - before}


def drain_cdcd(bench, db, run, target, rows):
    sink = run["sink"]
    before = bench.server_cpu()
    if sink == "null":
        began = time.monotonic()
        os.kill(run["process"].pid, signal.SIGCONT)
    else:
        bench.launch(run, "run")
        began = run["process"].began
    until_durable(run, target)
    seconds = time.monotonic() - began
    r = {"what": "drain", "sink": sink, "rows": rows, "seconds": seconds, "rate": rows / seconds,
         "server_cpu": bench.server_cpu() - before}
    events = status(run).get("events")
    if events != rows:
        raise Failed("cdcd has counted %s changes instead of %d" % (events, rows))
    r.update(finish(bench, run, rows))
    check_count(bench, run, db + ".bench", rows)
    bench.clean(run)
    return r


# ---- snapshot ------------------------------------------------------------------------------------

def snapshot(bench):
    """`cdcd snapshot` of one table from start to exit; right before each run a client reads the
    table with SELECT * row by row and drops the rows."""
    rows = bench.options.rows
    bench.start_server()
    db = bench.new_db()
    if "kafka" in bench.options.sinks:
        warm_kafka(bench, db)
    bench.say("snapshot: writing %d rows" % rows)
    bench.load(db, "SET sql_log_bin = 0; BEGIN; CALL bench_rows(%d); COMMIT; ANALYZE TABLE bench" % rows)
    runs = []
    for pair in range(bench.options.pairs):
        for sink in bench.options.sinks:
            limit = snapshot_select(bench, db, rows)
            before = bench.server_cpu()
            run = bench.launch(bench.cdcd(db, sink, "snapshot"), "snapshot")
            p = run["process"]
            if p.wait() != 0:
                raise Failed("cdcd snapshot: exit code %d\n%s" % (p.code, p.tail()))
            r = {"what": "snapshot", "sink": sink, "rows": rows, "pair": pair, "seconds": p.seconds,
                 "rate": rows / p.seconds, "limit": limit, "ratio": limit["seconds"] / p.seconds,
                 "server_cpu": bench.server_cpu() - before}
            r.update(finish(bench, run, rows))
            check_count(bench, run, db + ".bench", rows)
            bench.clean(run)
            bench.say("snapshot %s: %s" % (sink, brief(r)))
            runs.append(r)
    return runs


def warm_kafka(bench, db):
    """A new broker's first transaction may take seconds: that is not the first contestant's."""
    shutil.rmtree(drain_prepare(bench, db, "kafka")["folder"])


def snapshot_select(bench, db, rows):
    folder = bench.new_folder("select")
    before = bench.server_cpu()
    p = measure.Process([os.path.join(cdcdtest.SUPPORT, "my_select"), bench.socket_path(), "root", db,
                         "SELECT * FROM bench"], os.path.join(folder, "log"))
    if p.wait() != 0:
        raise Failed("SELECT: exit code %d\n%s" % (p.code, p.tail()))
    shutil.rmtree(folder)
    return {"seconds": p.seconds, "rate": rows / p.seconds, "cpu": p.cpu,
            "server_cpu": bench.server_cpu() - before}


# ---- latency -------------------------------------------------------------------------------------

LATENCY = ("INSERT INTO bench (a, b, c, d, e) VALUES "
           "(1, REPEAT('x', 60), 12.34, SYSDATE(6), '{\"k\": 1, \"name\": \"customer\"}')")


def latency(bench):
    """Single-row commits at a fixed rate; from SYSDATE in the statement (so the commit itself counts
    too) to the moment a read_committed consumer has the record."""
    bench.start_server()
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
    pipe = os.pipe() if sink == "null" else None
    run = bench.launch(bench.cdcd(db, sink, "latency", snapshot={"mode": "no_data"}), "run",
                       stdout=pipe[1] if pipe else None)
    until_streaming(run)
    bench.server.sql(LATENCY, db)  # makes the topic, outside of what is measured
    until_durable(run, log_end(bench), 60)
    where = ["-"] if pipe else [bench.kafka.bootstrap, "%s.%s.bench" % (run["name"], db)]
    out = os.path.join(run["folder"], "latency.json")
    with open(out, "w") as f:
        watch = measure.Process([os.path.join(cdcdtest.SUPPORT, "klatency"), *where, "--column", "d",
                                 "--skip", "1"], os.path.join(run["folder"], "klatency.log"),
                                stdin=pipe and pipe[0], stdout=f)
    bench.alive.append(watch)
    for fd in pipe or ():
        os.close(fd)
    time.sleep(1.0)
    commits = commit_at(bench, db, rate, seconds)
    time.sleep(1.0)
    r = {"what": "latency", "sink": sink, "rows": commits, "rate": commits / seconds}
    r.update(finish(bench, run, commits))
    if watch.stop() != 0:
        raise Failed("klatency: %s" % watch.tail())
    with open(out) as f:
        r.update(json.load(f))
    if r["records"] != commits:
        raise Failed("the reader has %d records of %d commits" % (r["records"], commits))
    bench.server.sql("TRUNCATE bench", db)
    bench.alive.remove(watch)
    bench.clean(run)
    return r


def commit_at(bench, db, rate, seconds):
    """Commits by four clients at random moments, so many a second on average."""
    clients = [bench.server.session(db) for _ in range(4)]
    chance = random.Random(1)
    commits, began = 0, time.monotonic()
    due = began
    try:
        for c in clients:
            c.sql("SET time_zone = '+00:00'")
        while True:
            due += chance.expovariate(rate)
            if due > began + seconds:
                break
            time.sleep(max(0.0, due - time.monotonic()))
            clients[commits % len(clients)].send(LATENCY + ";")
            commits += 1
        for c in clients:
            c.sql("SELECT 1")
    finally:
        for c in clients:
            c.close()
    return commits


# ---- txn -----------------------------------------------------------------------------------------

def txn(bench):
    """One huge transaction, written while cdcd streams: the server logs all of it at its commit.
    Time is from the end of the commit until all of it is durable."""
    bench.start_server()
    db = bench.new_db()
    shapes = [("rows", "bench", bench.options.txn_rows),
              ("bytes", "wide", bench.options.txn_bytes // 100000)]
    runs = []
    for pair in range(bench.options.pairs):
        for sink in bench.options.sinks:
            for shape, table, rows in shapes:
                if rows:
                    r = txn_once(bench, db, sink, shape, table, rows)
                    bench.say("txn %s %s: %s" % (shape, sink, brief(r)))
                    runs.append(dict(r, pair=pair))
    return runs


def txn_once(bench, db, sink, shape, table, rows):
    run = bench.launch(bench.cdcd(db, sink, "txn", snapshot={"mode": "no_data"}), "run")
    until_streaming(run)
    argv = bench.server.client_argv(db) + [
        "--execute=SET time_zone = '+00:00'; BEGIN; CALL %s_rows(%d); COMMIT" % (table, rows)]
    begin = log_end(bench)
    writer = measure.Process(argv, os.path.join(run["folder"], "client.log"))
    bench.alive.append(writer)
    most = 0

    def spilled():
        nonlocal most
        out = measure.folder_size(run["out"]) if "out" in run else 0
        now = unlinked_size(run["process"].pid) + measure.folder_size(run["folder"]) - out
        most = max(most, now)
        return now
    while writer.code is None:
        run["process"].sample()
        spilled()
        try:
            writer.sample()
        except measure.Ended:
            break
        time.sleep(0.05)
    if writer.code != 0:
        raise Failed("the client: %s" % writer.tail())
    committed = time.monotonic()
    bench.alive.remove(writer)
    target = log_end(bench)
    until_durable(run, target, watch=spilled)
    seconds = time.monotonic() - committed
    r = {"what": "txn", "shape": shape, "sink": sink, "rows": rows, "seconds": seconds,
         "bytes": target[1] - begin[1] if target[0] == begin[0] else target[1],
         "write_seconds": writer.seconds, "rate": rows / seconds, "spill_bytes": most,
         "spill_left_bytes": spilled()}
    r.update(finish(bench, run, rows))
    check_count(bench, run, "%s.%s" % (db, table), rows)
    bench.server.sql("TRUNCATE bench; TRUNCATE wide", db)
    bench.clean(run)
    return r


def unlinked_size(pid):
    """Space of the files that a process has open and that have no name any more."""
    total = 0
    for link in glob.glob("/proc/%d/fd/*" % pid):
        try:
            if os.readlink(link).endswith(" (deleted)"):
                total += os.stat(link).st_blocks * 512
        except OSError:
            pass  # closed meanwhile
    return total


# ---- tables --------------------------------------------------------------------------------------

def tables(bench):
    """Many tables of one row each: from the start until all rows are out, then an orderly stop, a
    start again until a new change is out, and peak memory of both."""
    n = bench.options.tables
    bench.start_server()
    db = bench.server.new_db("tables")
    bench.say("tables: making %d tables" % n)
    bench.server.sql("".join(
        "CREATE TABLE t%05d (id bigint AUTO_INCREMENT PRIMARY KEY, name varchar(100) NOT NULL, "
        "price decimal(10, 2), changed timestamp(6) NULL);\n"
        "INSERT INTO t%05d (name, price, changed) VALUES ('row of %d', %d, NOW(6));\n"
        % (i, i, i, i) for i in range(1, n + 1)), db)
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
    touch = "UPDATE t%05d SET price = price + 1" % n
    run = bench.launch(bench.cdcd(db, sink, "tables"), "run")
    until_streaming(run, 600)
    bench.server.sql(touch, db)
    until_durable(run, log_end(bench), 600)
    r = {"what": "tables", "sink": sink, "rows": n,
         "seconds": time.monotonic() - run["process"].began}
    r.update(finish(bench, run, n))
    bench.alive.remove(run["process"])
    bench.server.sql(touch, db)
    bench.launch(run, "run")
    until_durable(run, log_end(bench), 600)
    r["restart_seconds"] = time.monotonic() - run["process"].began
    r["restart_peak_bytes"] = finish(bench, run, 1)["peak_bytes"]
    if sink == "file":
        got = sum(lines_of(f) for f in glob.glob(os.path.join(run["out"], "*.%s.t*.jsonl" % db)))
        if got != n + 2:
            raise Failed("%d records instead of %d" % (got, n + 2))
    bench.clean(run)
    return r


SUITES = {"drain": drain, "snapshot": snapshot, "latency": latency, "txn": txn, "tables": tables}
SINKS = {"drain": ["kafka", "file", "null"], "snapshot": ["kafka", "file"], "latency": ["kafka"],
         "txn": ["null", "kafka"], "tables": ["file", "kafka"]}
