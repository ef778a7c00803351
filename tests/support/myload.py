"""Random load on a MySQL or MariaDB database, and what it committed.

    load = Load(my, db, sessions=3)
    load.fill(1000)                      # rows for a snapshot
    load.start(); ...; load.stop()
    stats = load.verify(records)         # raises Mismatch

Each session changes keys of its own, so that it knows the history of each without asking the
server: [(op, version, transaction)]. Transactions are plain, of many rows, rolled back in part or
as a whole, or XA; some move a row to another key. A row says its version and the transaction that
wrote it; verify() looks whether every change of a committed transaction is there exactly once, in
order, with its transaction, and nothing else.
"""
import collections
import random
import re
import threading
import time

TABLES = 2
TABLE_PATTERN = r"%s\.load_\d+"
BATCH = 8  # transactions sent at once
SHOWN = 20


class Mismatch(AssertionError):
    pass


class Worker(threading.Thread):
    def __init__(self, load, number, seed):
        super().__init__(daemon=True)
        self.load, self.number = load, number
        self.rnd = random.Random(seed * 1000 + number)
        self.history = collections.defaultdict(list)  # (table, id): changes
        self.rows = {}                                # (table, id): version that is there
        self.transactions = {}                        # number: {(table, id, op, version)}
        self.tx = 0
        self.error = None

    # -- one transaction: its statements, and what it leaves --

    def new_id(self):
        return self.rnd.randrange(self.load.keys) + self.number * 1000000

    def change(self, rows, done):
        """One statement on a random row; changes the session's picture in `rows`, notes it in `done`."""
        table, i = self.rnd.randrange(TABLES), self.new_id()
        k = (table, i)
        versions = self.load_versions
        if k not in rows:
            return self.insert(k, rows, done)
        dice = self.rnd.random()
        if dice < 0.2:
            versions[k] = versions.get(k, 0) + 1
            del rows[k]
            done.append((k, "d", versions[k]))
            return "DELETE FROM load_%d WHERE id=%d" % k
        if dice < 0.3:
            to = (table, self.new_id())
            if to not in rows:
                versions[k] = versions.get(k, 0) + 1
                versions[to] = versions.get(to, 0) + 1
                del rows[k]
                rows[to] = versions[to]
                done.append((k, "d", versions[k]))
                done.append((to, "c", versions[to]))
                return "UPDATE load_%d SET id=%d, ver=%d, tx=%d WHERE id=%d" % (
                    table, to[1], versions[to], self.tx, i)
        versions[k] = versions.get(k, 0) + 1
        rows[k] = versions[k]
        done.append((k, "u", versions[k]))
        return "UPDATE load_%d SET ver=%d, tx=%d, pad=REPEAT('%s',%d) WHERE id=%d" % (
            table, versions[k], self.tx, "xyz"[versions[k] % 3], versions[k] % 200, i)

    def insert(self, k, rows, done):
        v = self.load_versions[k] = self.load_versions.get(k, 0) + 1
        rows[k] = v
        done.append((k, "c", v))
        return "INSERT INTO load_%d VALUES (%d,%d,%d,REPEAT('i',%d))" % (*k, v, self.tx, v % 100)

    def changes(self, n, rows, done):
        return [self.change(rows, done) for _ in range(n)]

    def transaction(self):
        """Statements of one transaction; what it commits is in the history as if it had ended."""
        self.tx += 1
        tx = self.tx = self.tx if self.tx % self.load.sessions == self.number else \
            self.tx - self.tx % self.load.sessions + self.number + self.load.sessions
        rows, done = dict(self.rows), []
        self.load_versions = {}
        for k, h in self.history.items():
            self.load_versions[k] = h[-1][1]
        before = dict(self.load_versions)
        dice = self.rnd.random()
        n = self.rnd.randrange(200, 1500) if dice < self.load.large else self.rnd.randrange(1, 7)
        sql = self.changes(n, rows, done)
        kept_rows, kept, versions = dict(rows), list(done), dict(self.load_versions)
        kind = self.rnd.random()
        if kind < 0.1:
            self.load_versions = before
            return ["BEGIN", *sql, "ROLLBACK"]
        if kind < 0.2:
            undone = self.changes(self.rnd.randrange(1, 4), rows, done)
            self.load_versions, rows, done = versions, kept_rows, kept
            again = self.changes(1, rows, done)
            sql = ["BEGIN", *sql, "SAVEPOINT s", *undone, "ROLLBACK TO s", *again, "COMMIT"]
        elif kind < 0.3:
            xid = "'x%d'" % tx
            end = self.rnd.choice(("COMMIT", "COMMIT", "ROLLBACK"))
            sql = ["XA START " + xid, *sql, "XA END " + xid, "XA PREPARE " + xid,
                   "XA %s %s" % (end, xid)]
            if end == "ROLLBACK":
                return sql
        elif n == 1 and kind < 0.6:
            pass  # autocommit
        else:
            sql = ["BEGIN", *sql, "COMMIT"]
        self.rows = rows
        self.transactions[tx] = {(*k, op, v) for k, op, v in done}
        for k, op, v in done:
            self.history[k].append((op, v, tx))
        return sql

    def run(self):
        try:
            session = self.load.session()
            while not self.load.ended.is_set():
                batch = []
                for _ in range(BATCH):
                    batch += self.transaction()
                session.sql(";\n".join(batch))
                self.load.committed += BATCH
                if self.load.rate:
                    time.sleep(BATCH * self.load.sessions / self.load.rate)
            session.close()
        except BaseException as e:  # told by stop()
            self.error = e


class Load:
    def __init__(self, my, db, sessions=3, keys=400, rate=0, large=0.01, seed=1):
        self.my, self.db, self.sessions, self.keys = my, db, sessions, keys
        self.rate, self.large = rate, large
        self.committed = 0
        self.ended = threading.Event()
        for t in range(TABLES):
            my.sql("CREATE TABLE load_%d (id int PRIMARY KEY, ver int NOT NULL, tx int NOT NULL, "
                   "pad varchar(400) NOT NULL)" % t, db)
        self.workers = [Worker(self, i, seed) for i in range(sessions)]

    def session(self):
        session = self.my.session(self.db)
        # No locks on gaps: the sessions never wait for each other.
        session.sql("SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED")
        return session

    def fill(self, transactions):
        """So many transactions, before the pipeline begins."""
        session = self.session()
        for w in self.workers:
            batch = []
            for _ in range(transactions // self.sessions):
                batch += w.transaction()
            session.sql(";\n".join(batch))
        session.close()

    def start(self):
        self.ended.clear()
        for i, w in enumerate(self.workers):
            if w.ident is not None:  # a thread runs once: another goes on with what it knew
                new = Worker(self, w.number, 0)
                new.__dict__.update({k: w.__dict__[k] for k in
                                     ("rnd", "history", "rows", "transactions", "tx")})
                self.workers[i] = new
            self.workers[i].start()
        return self

    def stop(self):
        """Ends it; what it has committed counts."""
        self.ended.set()
        for w in self.workers:
            if w.ident is not None:
                w.join()
            if w.error:
                raise w.error
        return self.committed

    def abandon(self):
        """For cleaning up: nothing runs afterwards, whatever happened."""
        self.ended.set()
        for w in self.workers:
            if w.ident is not None:
                w.join(60)

    # -- comparing --

    def verify(self, records, resumed=False):
        """resumed: the snapshot was killed and went on, so a row may come more than once."""
        history, rows, transactions = {}, {}, {}
        for w in self.workers:
            history.update(w.history)
            rows.update(w.rows)
            transactions.update(w.transactions)
        return Verifier(history, rows, transactions, resumed).verify(records)


class Verifier:
    def __init__(self, history, rows, transactions, resumed):
        self.history, self.rows, self.transactions = history, rows, transactions
        self.resumed = resumed
        self.problems = []
        self.stats = collections.Counter()

    def wrong(self, text, *args):
        self.problems.append(text % args)

    def verify(self, records):
        by_key = self.sort(records)
        commits = collections.defaultdict(set)  # commit part of cdcd.pos: changes
        first = {}
        for k in sorted(set(self.history) | set(by_key)):
            self.check_key(k, by_key.get(k, []), commits, first)
        self.check_transactions(commits, first)
        if self.problems:
            raise Mismatch("%d problems, %s\n  %s" % (len(self.problems), dict(self.stats),
                                                       "\n  ".join(self.problems[:SHOWN])))
        return dict(self.stats)

    def sort(self, records):
        by_key, seen = collections.defaultdict(list), set()
        last, tombstone = {}, {}
        for r in records:
            m = re.search(r"\.load_(\d+)$", r["topic"])
            if not m:
                continue
            k, pos = (int(m.group(1)), r["key"]["id"]), r["headers"]["cdcd.pos"]
            if pos in seen:
                self.wrong("cdcd.pos %s comes twice, now for %s", pos, k)
            seen.add(pos)
            if pos <= last.get(k, ""):
                self.wrong("%s: cdcd.pos %s after %s", k, pos, last[k])
            last[k] = pos
            if (r["value"] is None) != tombstone.pop(k, False):
                self.wrong("%s at %s: a tombstone that follows no delete, or none after one", k, pos)
            if r["value"] is None:
                continue
            tombstone[k] = r["value"]["op"] == "d"
            by_key[k].append((pos, r["value"]))
        for k, want in tombstone.items():
            if want:
                self.wrong("%s: no tombstone after the last delete", k)
        return by_key

    def check_key(self, k, records, commits, first):
        history = self.history.get(k, [])
        at = len(history) - sum(v["op"] != "r" for _, v in records)
        if at < 0:
            return self.wrong("%s: more changes than the %d that were committed: %s", k, len(history),
                              self.brief(records))
        first[k] = at
        snapshot_rows = 0
        for pos, value in records:
            if value["op"] == "r":
                snapshot_rows += 1
                self.check_row(k, pos, value, history, at)
                continue
            self.check_change(k, pos, value, history[at])
            commits[pos.split("-")[0]].add((*k, *history[at][:2]))
            at += 1
        before = first[k]
        if snapshot_rows > 1 and not self.resumed:
            self.wrong("%s: %d snapshot rows", k, snapshot_rows)
        if before and history[before - 1][0] != "d" and not snapshot_rows and not self.resumed:
            self.wrong("%s: versions up to %d are in no snapshot row and not in the stream: %s", k,
                       before, self.brief(records))
        here = records and records[-1][1]["after"] and records[-1][1]["after"]["ver"] or None
        if here != self.rows.get(k):
            self.wrong("%s: the last record has version %s, the table %s: %s", k, here,
                       self.rows.get(k), self.brief(records))

    def check_row(self, k, pos, value, history, at):
        self.stats["snapshot"] += 1
        now = history[at - 1] if at else ("d", 0, 0)
        if now[0] == "d" or (value["after"]["ver"], value["after"]["tx"]) != now[1:]:
            self.wrong("%s at %s: snapshot row %s, the row was %s", k, pos, value["after"], now)

    def check_change(self, k, pos, value, want):
        self.stats["changes"] += 1
        op, version, tx = want
        if value["op"] != op:
            return self.wrong("%s at %s: op %s instead of %s", k, pos, value["op"], want)
        after = value["after"]
        if op != "d" and (after["ver"], after["tx"]) != (version, tx):
            self.wrong("%s at %s: %s instead of %s", k, pos, after, want)

    def check_transactions(self, commits, first):
        tx_of = {(*k, *c[:2]): c[2] for k, h in self.history.items() for c in h}
        met = set()
        for commit, changes in commits.items():
            numbers = {tx_of[c] for c in changes}
            if len(numbers) != 1:
                self.wrong("commit %s has changes of transactions %s", commit, numbers)
                continue
            tx = numbers.pop()
            if tx in met:
                self.wrong("transaction %d has more than one commit position", tx)
            met.add(tx)
            if changes != self.transactions[tx]:
                self.wrong("transaction %d came in part, without %s", tx,
                           sorted(self.transactions[tx] - changes)[:5])
        self.stats["transactions"] = len(met)

    def brief(self, records):
        return ["%s %s v%s" % (pos, v["op"], (v["after"] or {}).get("ver", "-"))
                for pos, v in records[-10:]]
