"""Random load on MySQL and MariaDB (myload.sql), and the comparison of what it committed with what a
sink holds: each change exactly once, each key in order, transactions whole, the last value of each
key as in its table.

    load = myload.Load(server, db, tables=3, keys=200)
    load.start(seconds=5, sessions=3)
    ...
    load.wait(); pipe.sync(); pipe.stop()
    load.verify(pipe.records())
"""
import collections
import decimal
import hashlib
import itertools
import os
import re
import subprocess
import time

import cdcdtest
import verify

TABLE_PATTERN = r"%s\.load_.*"  # % db, for table.include.list


class Load:
    runs = itertools.count(1)

    def __init__(self, my, db, tables=3, keys=200):
        self.my, self.db, self.tables, self.keys = my, db, tables, keys
        self.sessions = []  # [(run, process)]
        self.counts = collections.Counter()
        with open(os.path.join(cdcdtest.ROOT, "tests/support/myload.sql")) as f:
            my.sql("SET @tables=%d, @keys=%d;\n%s" % (tables, keys, f.read()), db)

    def start(self, seconds=1000000, transactions=1000000, sessions=1, seed=None, rate=0, large=0, first=0):
        """rate: of all sessions' transactions a second, about; large: every 200th transaction has
        so many changes; first: one transaction before all else that inserts so many keys of each
        table. Can be called again, also on another server that took over (self.my)."""
        pause = sessions / rate if rate else 0
        for n in range(sessions):
            run = next(Load.runs)
            setup = "SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED; SET SESSION innodb_lock_wait_timeout=5; "
            if seed is not None:
                setup += "SET @@rand_seed1=%d, @@rand_seed2=%d; " % (seed * 1000003 + n + 1, seed * 7919 + n + 17)
            call = "CALL myload_run(%d, %d, %d, %f, %d, %f, %d, %d)" % (
                run, self.tables, self.keys, seconds, transactions, pause, large, first if n == 0 else 0)
            p = subprocess.Popen([*self.my.client_argv(self.db), "--execute", setup + call],
                                 stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
            self.sessions.append((run, p))
            if first and n == 0 and sessions > 1:
                self.wait_first(run, p)
        return self

    def wait_first(self, run, p):
        cdcdtest.wait_until("the first keys", lambda: p.poll() is not None or self.my.sql(
            "SELECT 1 FROM myload_log WHERE tx >= %d LIMIT 1" % (run * 10000000), self.db), 120)

    def run(self, **options):
        return self.start(**options).wait()

    def wait(self, broken=False):
        """Until all sessions have ended. broken: their server may have been killed meanwhile."""
        sessions, self.sessions = self.sessions, []
        counts = collections.Counter()
        for _, p in sessions:
            out, err = p.communicate()
            if p.returncode != 0:
                if not broken:
                    raise cdcdtest.Failure("myload: " + err)
                counts["broken"] += 1
                continue
            committed, rolled_back, failed = out.split()
            counts.update(committed=int(committed), rolled_back=int(rolled_back), failed=int(failed))
        self.counts.update(counts)
        return dict(counts)

    def stop(self, broken=False):
        """Ends it early; what it has committed counts."""
        if self.sessions:
            self.my.sql("INSERT INTO myload_end VALUES " + ", ".join("(%d)" % run for run, _ in self.sessions),
                        self.db)
        return self.wait(broken)

    def end(self):
        """For cleaning up: nothing runs afterwards, whatever happened."""
        for _, p in self.sessions:
            p.kill()
            p.communicate()
        self.sessions = []

    def committed(self):
        return int(self.my.sql("SELECT COUNT(*) FROM myload_log", self.db))

    def expected(self):
        return Expected(self.my, self.db, self.tables)

    def verify(self, records, resumed=False):
        """records: of all topics, each topic in its order. resumed: the snapshot was killed and went
        on, so a row may come more than once, or only as its change."""
        expected = self.expected()
        v = Verifier(expected, resumed)
        v.take_all(records)
        for k in sorted(set(expected.history) | set(v.records)):
            v.check_key(k)
        v.check_transactions()
        v.stats["committed"] = expected.changes()
        if v.problems:
            raise verify.Mismatch("%d problems, %s\n  %s" % (len(v.problems), dict(v.stats),
                                                             "\n  ".join(v.problems[:verify.SHOWN])))
        return dict(v.stats)


class Expected(verify.Expected):
    def __init__(self, my, db, tables):  # noqa: the base reads PostgreSQL's tables
        self.history = collections.defaultdict(list)
        self.transactions = collections.defaultdict(set)
        self.rows = {}
        for line in my.sql("SELECT tab, id, ver, change_no, op, tx FROM myload_log ORDER BY tab, id, ver",
                           db).splitlines():
            tab, key, ver, change, op, tx = line.split("\t")
            k = (int(tab), int(key))
            self.history[k].append(verify.Change(int(change), int(ver), op, int(tx)))
            self.transactions[int(tx)].add((*k, int(ver)))
        for tab in range(1, tables + 1):
            for line in my.sql("SELECT id, ver, change_no, amount, padded, CONVERT(pad USING ascii) FROM load_%d"
                               % tab, db).splitlines():
                key, ver, change, amount, padded, text = line.split("\t")
                self.rows[tab, int(key)] = {
                    "ver": int(ver), "change": int(change), "amount": decimal.Decimal(amount),
                    "padded": int(padded), "md5": hashlib.md5(text.encode()).hexdigest()}
        for k, h in self.history.items():
            if [c.ver for c in h] != list(range(1, len(h) + 1)):
                raise verify.Mismatch("myload's own log has gaps for key %s: %s" % (k, h))


class Verifier(verify.Verifier):
    """MySQL's log has no number that the transaction knows itself: the commit part of cdcd.pos must
    stand for one transaction of the load, and for one GTID where there are any."""

    def __init__(self, expected, resumed):
        super().__init__(expected, resumed)
        self.gtids = {}

    def take_all(self, records):
        def named(r):
            """As pgload's tables and columns are called."""
            m = re.search(r"\.load_(\d+)$", r["topic"])
            if not m:
                return None
            r = dict(r, topic="x.public.load_" + m.group(1))
            if r["value"]:
                r["value"] = dict(r["value"])
                for image in ("before", "after"):
                    row = r["value"].get(image)
                    if row:
                        r["value"][image] = {("change" if c == "change_no" else c): v for c, v in row.items()}
            return r
        super().take_all(r for r in map(named, records) if r)

    def check_change(self, k, pos, op, r, want):
        commit = pos.split("-")[0]
        gtid = r["value"]["source"]["gtid"]
        if self.gtids.setdefault(commit, gtid) != gtid:
            self.wrong("key %s at %s: GTID %s beside %s in one transaction", k, pos, gtid, self.gtids[commit])
        r["value"]["source"] = dict(r["value"]["source"], txId=want.xid)
        super().check_change(k, pos, op, r, want)
        before = r["value"]["before"]
        if op in "ud" and (not before or before["ver"] != want.ver - 1):
            self.wrong("key %s at %s: before is not version %d: %s", k, pos, want.ver - 1, before)

    def check_pad(self, k, pos, after, may_be_unsent):
        if after["pad"] != pad(after["padded"]):
            self.wrong("key %s at %s: pad is not that of change %s", k, pos, after["padded"])


def pad(n):
    """myload_pad of myload.sql."""
    return hashlib.sha256(str(n).encode()).hexdigest()[:32] * (100 if n % 10 == 0 else 1 + n % 4)


def wait_read(what, read, load, timeout=120):
    """Until read() gives a record of each key's last change. For sinks that Pipe.sync() cannot see."""
    end = time.monotonic() + timeout * cdcdtest.PATIENCE
    while True:
        try:
            return load.verify(read(), resumed=True)
        except verify.Mismatch:
            if time.monotonic() > end:
                raise
        time.sleep(0.5)
