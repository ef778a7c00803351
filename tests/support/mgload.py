"""Random load on a MongoDB database, and what it committed.

    load = Load(server, db.name, sessions=3)
    load.fill(300)                        # changes before the pipeline begins
    load.start(); ...; load.stop()
    mark = load.mark(records)             # all that was committed has come; from here on exactly
    load.start(); ...; load.stop()
    stats = load.verify(records, mark)    # raises Mismatch

Each session changes documents of its own, so that it knows the history of each without asking the
server: [(op, version, transaction)]. A document bears its version n, which only grows, also when
it is deleted and made again. Changes are single, in bulk, or in transactions, some of which are
aborted. A change whose fate is unknown (the server was killed, stepped down) is looked up.

What must hold:
  everywhere    every cdcd.pos once; of a document they rise; a version never falls, unless the one
                before it was looked up after its change and so ran ahead; a deleted document stays
                away until it is made again; the last record of each is the collection's; an update
                comes once
  from `mark`   each change once, with its exact version, in order; a transaction under one position

Before the mark the snapshot overlaps with the stream (plugins/mongodb/stream.h), where an insert
whose document is gone by then, or a delete whose document is there again, is left out; after it that
holds for a document that was looked up and so ran ahead. So `mark` is for a load that makes no
document again (reuse=False), or for a stream that looks nothing up (capture.mode: change_streams).
"""
import collections
import random
import threading
import time

import cdcdtest
import mgcase
import pymongo
from pymongo.errors import PyMongoError

COLLECTIONS = 2
SHOWN = 20


class Mismatch(AssertionError):
    pass


class Abort(Exception):
    pass


def streaming(pipe, timeout=60):
    """Waits until the stream of a pipeline to a folder gives what is written now.

    The test server's tailing cursor of the oplog may begin behind what is written while it is opened
    (SecantusDB 0.7.0b3), which no reader can find out: nothing that counts is written until then."""
    pipe.wait_log("streaming from", timeout)
    for _ in range(timeout):
        try:
            return pipe.sync_once(1)
        except cdcdtest.Failure:
            if not pipe.cdcd.alive():
                raise
    return pipe.sync_once(1)


def again(what, until=60):
    """Calls it until the server answers."""
    end = time.monotonic() + until
    while True:
        try:
            return what()
        except PyMongoError:
            if time.monotonic() > end:
                raise
            time.sleep(0.05)


class Worker(threading.Thread):
    def __init__(self, load, number, seed):
        super().__init__(daemon=True)
        self.load, self.number = load, number
        self.rnd = random.Random(seed * 1000 + number)
        self.history = collections.defaultdict(list)  # (collection, _id): changes
        self.there = {}                               # (collection, _id): version
        self.tx = 0
        self.error = None

    # -- one unit: changes that are committed together --

    def pick(self):
        """(key, op, version) of a random change of a key that this unit has not touched."""
        key = (self.rnd.randrange(COLLECTIONS), self.rnd.randrange(self.load.keys) + self.number * 1000000)
        if self.there and self.rnd.random() < 0.5:
            key = self.rnd.choice(list(self.there))
        version = self.history[key][-1][1] + 1 if self.history[key] else 1
        if key not in self.there:
            return (key, "c", version) if self.load.reuse or version == 1 else None
        dice = self.rnd.random()
        if dice < 0.15:
            return key, "d", version
        return key, "r" if self.load.reuse and dice < 0.3 else "u", version

    def unit(self, n):
        picked = {}
        for _ in range(n):
            p = self.pick()
            if p and p[0] not in picked:
                picked[p[0]] = p
        return list(picked.values())

    def document(self, key, version, tx=None):
        return {"_id": key[1], "n": version, "tx": tx or self.tx, "by": {"session": self.number},
                "pad": "xyz"[version % 3] * self.rnd.randrange(200)}

    def apply(self, change, session=None):
        key, op, version = change
        c = self.load.collection(key[0])
        if op == "c":
            c.insert_one(self.document(key, version), session=session)
        elif op == "d":
            c.delete_one({"_id": key[1]}, session=session)
        elif op == "r":
            c.replace_one({"_id": key[1]}, self.document(key, version), session=session)
        else:
            c.update_one({"_id": key[1]}, {"$set": {"n": version, "tx": self.tx, "by.changed": version},
                                           "$push": {"last": {"$each": [version], "$slice": -3}}}, session=session)

    def committed(self, changes, tx=None):
        for key, op, version in changes:
            self.history[key].append((op, version, tx or self.tx))
            if op == "d":
                self.there.pop(key, None)
            else:
                self.there[key] = version
        self.load.committed += len(changes)

    def happened(self, change):
        """Whether a change whose fate is unknown was made."""
        key, op, version = change
        found = again(lambda: self.load.collection(key[0]).find_one({"_id": key[1]}, {"n": 1}))
        return found is None if op == "d" else found is not None and found["n"] == version

    def single(self):
        changes = self.unit(1)
        if not changes:
            return
        try:
            self.apply(changes[0])
        except PyMongoError:
            if not self.happened(changes[0]):
                return
        self.committed(changes)

    def bulk(self):
        """Inserts in one command; each is a change of its own."""
        changes = [c for c in self.unit(6) if c[1] == "c" and c[0][0] == 0]
        if not changes:
            return
        documents = []
        for key, _, version in changes:
            documents.append(self.document(key, version, self.next_tx()))
        try:
            self.load.collection(0).insert_many(documents)
        except PyMongoError:
            pass
        for change, document in zip(changes, documents):
            if self.happened(change):
                self.committed([change], document["tx"])

    def transaction(self):
        changes = self.unit(self.rnd.randrange(2, 40 if self.rnd.random() < 0.1 else 6))
        abort = self.rnd.random() < 0.2
        if not changes:
            return
        try:
            with self.load.client.start_session() as session:
                with session.start_transaction():
                    for c in changes:
                        self.apply(c, session)
                    if abort:
                        raise Abort
        except Abort:
            return
        except PyMongoError:
            if not self.happened(changes[0]):
                return
        self.committed(changes)

    def next_tx(self):
        self.tx += 1
        self.tx += (self.number - self.tx) % self.load.sessions
        return self.tx

    def step(self):
        self.next_tx()
        dice = self.rnd.random()
        if dice < 0.55:
            self.single()
        elif dice < 0.7 or not self.load.transactions:
            self.bulk()
        else:
            self.transaction()

    def run(self):
        try:
            while not self.load.ended.is_set():
                self.step()
                if self.load.rate:
                    time.sleep(self.load.sessions / self.load.rate)
        except BaseException as e:  # pylint: disable=broad-except; told by stop()
            self.error = e


class Load:
    """reuse: documents are replaced, and made again after they were deleted. rate: changes a second
    of all sessions, about; 0: as fast as it goes."""

    def __init__(self, server, db, sessions=3, keys=300, rate=0, seed=1, reuse=True, transactions=True):
        self.db, self.sessions, self.keys, self.rate = db, sessions, keys, rate
        self.reuse, self.transactions = reuse, transactions
        self.committed = 0
        self.ended = threading.Event()
        self.client = mgcase.client(server.url(), retryWrites=False)
        for i in range(COLLECTIONS):  # an implicit one would not be in every server's log
            self.client[db].create_collection("load_%d" % i)
        self.workers = [Worker(self, i, seed) for i in range(sessions)]

    def collection(self, i):
        return self.client[self.db]["load_%d" % i]

    def fill(self, steps):
        """So many steps, before the pipeline begins."""
        for w in self.workers:
            for _ in range(steps // self.sessions):
                w.step()

    def start(self):
        self.ended.clear()
        for i, w in enumerate(self.workers):
            if w.ident is not None:  # a thread runs once: another goes on with what it knew
                new = Worker(self, w.number, 0)
                new.__dict__.update({k: w.__dict__[k] for k in ("rnd", "history", "there", "tx")})
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
        self.client.close()

    # -- comparing --

    def mark(self, records):
        """While the load rests and all of it has come: what follows must come exactly."""
        return Mark({k: len(h) for w in self.workers for k, h in w.history.items()},
                    max((r["headers"]["cdcd.pos"] for r in records), default=""))

    def verify(self, records, mark=None, plain=False):
        """plain: nothing was looked up, an update has its updateDescription only."""
        history, there = {}, {}
        for w in self.workers:
            history.update({k: h for k, h in w.history.items() if h})
            there.update(w.there)
        return Verifier(history, there, mark, plain).verify(records)


Mark = collections.namedtuple("Mark", "counts pos")


class Verifier:
    def __init__(self, history, there, mark, plain):
        self.history, self.there, self.mark, self.plain = history, there, mark, plain
        self.problems = []
        self.stats = collections.Counter()

    def wrong(self, text, *args):
        self.problems.append(text % args)

    def verify(self, records):
        by_key = self.sort(records)
        commits = collections.defaultdict(set)  # transaction: commit parts of cdcd.pos
        for k in sorted(set(self.history) | set(by_key)):
            self.check_key(k, by_key.get(k, []), commits)
        for tx, met in commits.items():
            if len(met) != 1:
                self.wrong("transaction %d has the positions %s", tx, sorted(met))
        self.stats["units"] = len(commits)
        if self.problems:
            raise Mismatch("%d problems, %s\n  %s" % (len(self.problems), dict(self.stats),
                                                       "\n  ".join(self.problems[:SHOWN])))
        return dict(self.stats)

    def shown(self, record):
        """The version that a reader of the record has; None: no document."""
        if self.plain and record["value"]["op"] == "u" and record["value"]["after"] is None:
            return described(record)
        return version(record["value"]["after"])

    def sort(self, records):
        by_key, seen, last, tombstone = collections.defaultdict(list), set(), {}, {}
        for r in records:
            _, _, number = r["topic"].rpartition(".load_")
            if not number.isdigit():
                continue
            k, pos = (int(number), int(r["key"]["id"])), r["headers"]["cdcd.pos"]
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
            by_key[k].append(r)
        for k, want in tombstone.items():
            if want:
                self.wrong("%s: no tombstone after the last delete", k)
        return by_key

    def check_key(self, k, records, commits):
        history = self.history.get(k, [])
        versions, ahead, gone, updates = 0, False, False, []
        exact = [r for r in records if self.mark and r["headers"]["cdcd.pos"] > self.mark.pos]
        for r in records:
            op, n = r["value"]["op"], self.shown(r)
            self.stats[op] += 1
            if op == "u" and described(r) is not None:
                updates.append(described(r))
            if op == "d":
                gone = True
            if n is None:
                continue
            if n < versions and not ahead:
                self.wrong("%s goes back from %d to %d: %s", k, versions, n, self.brief(records))
            if gone and op != "c" and not ahead and self.back_without_insert(history, n):
                self.wrong("%s comes back after its delete: %s", k, self.brief(records))
            gone = gone and op != "c"
            versions, ahead = n, r["headers"].get("cdcd.after") == "lookup"
        if updates != sorted(set(updates)):
            self.wrong("%s: updates not once and in order: %s", k, updates)
        here = self.shown(records[-1]) if records else None
        if here != self.there.get(k):
            self.wrong("%s: the last record has version %s, the collection %s: %s", k, here,
                       self.there.get(k), self.brief(records))
        if self.mark:
            self.check_exact(k, exact, history[self.mark.counts.get(k, 0):], commits)

    @staticmethod
    def back_without_insert(history, n):
        """In the overlap an update may be the first to show a document that was made again."""
        return not any(op == "c" and v <= n for op, v, _ in history[1:])

    def check_exact(self, k, records, history, commits):
        ops = {"c": "c", "u": "u", "r": "u", "d": "d"}
        if [r["value"]["op"] for r in records] != [ops[h[0]] for h in history]:
            return self.wrong("%s: %s instead of %s", k, self.brief(records), history)
        for r, (op, n, tx) in zip(records, history):
            self.stats["exact"] += 1
            commits[tx].add(r["headers"]["cdcd.pos"].split("-")[0])
            has = described(r) if op == "u" else version(r["value"]["after"])
            if op != "d" and has != n:
                self.wrong("%s at %s: version %s instead of %s", k, r["headers"]["cdcd.pos"], has, (op, n))
            if op == "u" and r["value"]["after"] is not None and version(r["value"]["after"]) < n:
                self.wrong("%s at %s: looked up before its change", k, r["headers"]["cdcd.pos"])

    def brief(self, records):
        return ["%s %s n%s%s" % (r["headers"]["cdcd.pos"], r["value"]["op"], version(r["value"]["after"]),
                                 " u%s" % described(r) if described(r) else "") for r in records[-10:]]


def version(text):
    return None if text is None else mgcase.parse(text)["n"]


def described(record):
    d = record["value"].get("updateDescription")
    return mgcase.parse(d["updatedFields"]).get("n") if d and d.get("updatedFields") else None
