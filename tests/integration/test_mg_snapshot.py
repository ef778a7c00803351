"""Snapshots of MongoDB: ranges of _id of any type, views at one time and views that overlap with the
stream, kills within a collection, collections that come and go meanwhile."""
import collections
import datetime
import json
import os
import tempfile
import uuid

import cdcdtest
import mgcase
from cdcdtest import wait_until
from mgcase import bson
from mgload import Load, streaming

KEYS = [
    bson.MinKey(), None, float("nan"), float("-inf"), -5, bson.Int64(-2 ** 63), 0, 1.5, 2, bson.Int64(2 ** 53 + 1),
    bson.Decimal128("3.14"), bson.Decimal128("1E+6000"), "", "A", "a", "a\x00b", "é", "\U0001f600", "z" * 700, {}, {"a": 1},
    {"a": 1, "b": {"c": None}}, {"b": 1}, b"", b"\x00\xff", bson.Binary(b"\x01\x02", 128),
    bson.Binary.from_uuid(uuid.UUID(int=5)), bson.ObjectId("000000000000000000000001"),
    bson.ObjectId("ffffffffffffffffffffffff"), False, True, 
    datetime.datetime(2024, 2, 29), bson.Timestamp(1, 0), bson.Timestamp(2, 7),
    bson.MaxKey(),
]
# What the live server does not take.
ODD = [bson.DatetimeMS(-10 ** 15), bson.DatetimeMS(253402300800000), {"a": {"$date": 5}}]


def marks(records):
    return collections.Counter(r["value"]["source"]["snapshot"] for r in records)


def rows(records):
    return [r for r in records if r["value"] and r["value"]["op"] == "r"]


class Snapshots(mgcase.MgCase):
    def run_once(self, p, command="snapshot", *args):
        p.start(command, *args, wait=False)
        self.assertEqual(p.cdcd.wait(120), 0, p.cdcd.logs()[-4000:])
        return p

    def fill(self, collection, n, **more):
        for at in range(0, n, 5000):
            collection.insert_many([dict({"_id": i, "n": 0}, **more) for i in range(at, min(n, at + 5000))])

    # -- what is read --

    def test_keys_of_any_type(self):
        for chunk in (3, 1000):
            for capture in mgcase.CAPTURES:
                with self.subTest(chunk=chunk, capture=capture):
                    db = self.db()
                    db.t.insert_many([{"_id": k, "n": i} for i, k in enumerate(KEYS)])
                    p = self.pipe(db.name, capture=capture, source={"snapshot.chunk.rows": chunk}, snapshot__workers=3)
                    self.run_once(p)
                    numbers = [json.loads(r["value"]["after"])["n"] for r in p.records("t")]
                    self.assertEqual(sorted(numbers), list(range(len(KEYS))))
                    self.assertEqual(sorted(map(mgcase.exact, p.store()["t"].values())),
                                     sorted(map(mgcase.exact, mgcase.source_store(db)["t"].values())))
                    self.assertEqual(marks(p.records("t")), {"true": len(KEYS) - 1, "last": 1})
                    self.assertEqual(len(set(p.positions())), len(KEYS))

    def test_source_of_rows(self):
        db = self.db()
        db.t.insert_one({"_id": 1})
        p = self.run_once(self.pipe(db.name))
        [r] = p.records("t")
        source = r["value"]["source"]
        self.assertEqual({k: source[k] for k in ("db", "collection", "ord", "lsid", "txnNumber", "wallTime", "snapshot")},
                         {"db": db.name, "collection": "t", "ord": -1, "lsid": None, "txnNumber": None,
                          "wallTime": None, "snapshot": "last"})
        self.assertEqual((r["value"]["op"], r["value"]["updateDescription"], r["value"]["before"]), ("r", None, None))

    def test_kinds_of_collections(self):
        db = self.db()
        db.create_collection("capped", capped=True, size=100000)
        db.create_collection("clustered", clusteredIndex={"key": {"_id": 1}, "unique": True})
        db.create_collection("collated", collation={"locale": "en", "strength": 2})
        db.create_collection("view", viewOn="capped", pipeline=[])
        db.create_collection("series", timeseries={"timeField": "t"})
        db.create_collection("empty")
        for name in ("capped", "clustered", "collated"):
            db[name].insert_many([{"_id": x} for x in ("b", "A", "c", "D")])
        db.series.insert_one({"t": datetime.datetime(2024, 1, 1), "x": 1})
        p = self.run_once(self.pipe(db.name, source={"snapshot.chunk.rows": 2}))
        self.assertEqual({name: sorted(found) for name, found in p.store().items()}, {
            name: ['"A"', '"D"', '"b"', '"c"'] for name in ("capped", "clustered", "collated")})
        self.assertRegex(p.cdcd.logs(), r"warn .*%s\.series is a time series" % db.name)
        self.assertEqual(len(rows(p.records())), 12)

    def test_fields_left_out(self):
        db = self.db()
        db.t.insert_one({"_id": 1, "secret": 5, "a": [{"secret": 6, "b": 1}], "c": {"d": 1, "e": 2}})
        db.u.insert_one({"_id": 1, "secret": 5})
        p = self.run_once(self.pipe(db.name, source={"field.exclude.list": [
            db.name + ".t.secret", db.name + ".t.a.secret", db.name + ".t.c.d"]}))
        self.assertEqual(p.store(), {"t": {"1": {"_id": 1, "a": [{"b": 1}], "c": {"e": 2}}},
                                     "u": {"1": {"_id": 1, "secret": 5}}})

    def test_large_documents(self):
        db = self.db()
        sizes = [16 * 2 ** 20 - 100, 10, 8 * 2 ** 20, 5]
        for i, size in enumerate(sizes):
            db.t.insert_one({"_id": i, "x": "v" * size})
        p = self.run_once(self.pipe(db.name))
        self.assertEqual([len(p.store()["t"][str(i)]["x"]) for i in range(4)], sizes)

    def test_too_large_for_the_pipeline(self):
        db = self.db()
        db.t.insert_many([{"_id": "ok"}, {"_id": "wide", "x": "v" * 100000}])
        p = self.pipe(db.name, max__event__bytes="64KB")
        p.start("snapshot", wait=False)
        p.ends(1, r'_id "wide".*max_event_bytes.*field\.exclude\.list')

    def test_some_tables(self):
        db = self.db()
        for name in "abc":
            db[name].insert_one({"_id": name})
        p = self.run_once(self.pipe(db.name), "snapshot", "--table", db.name + ".b")
        self.assertEqual(p.store(), {"b": {'"b"': {"_id": "b"}}})
        q = self.pipe(db.name, name="none")
        q.start("snapshot", "--table", db.name + ".nope", wait=False)
        q.ends(2, "no captured table matches")

    def test_nothing_there(self):
        p = self.pipe("nothing_" + self.db().name).start()
        p.sync()
        self.assertEqual(p.records(), [])
        p.stop()

    def test_snapshot_alone_then_run(self):
        for capture in mgcase.CAPTURES:
            with self.subTest(capture=capture):
                db = self.db()
                self.fill(db.t, 50)
                p = self.run_once(self.pipe(db.name, capture=capture))
                db.t.update_one({"_id": 7}, {"$inc": {"n": 1}})
                db.t.delete_one({"_id": 8})
                db.t.insert_one({"_id": 50, "n": 0})
                streaming(p.start()).sync().stop()
                self.assertEqual(len(rows(p.records("t"))), 50)
                self.assertEqual([(op, k["id"]) for op, k, _ in p.ops("t")[50:]],
                                 [("u", "7"), ("d", "8"), ("-", "8"), ("c", "50")])
                self.assertEqual(p.store(), mgcase.source_store(db))

    # -- changes while it is read --

    def load(self, db, **more):
        load = Load(self.mongo, db.name, **more)
        self.addCleanup(load.abandon)
        return load

    def test_nothing_goes_back_in_the_overlap(self):
        """The load runs from before the view until the last collection's rows come, and ends before the
        snapshot does: all of it is in the overlap, where even replacements and documents made again
        must not go back."""
        for capture in mgcase.CAPTURES:
            with self.subTest(capture=capture):
                db = self.db()
                load = self.load(db, sessions=3, keys=150)
                load.fill(900)
                self.fill(db.aa, 6000, pad="x" * 100)
                self.fill(db.zz, 15000, pad="x" * 100)
                p = self.pipe(db.name, capture=capture, source={"snapshot.chunk.rows": 1500}, snapshot__workers=2)
                load.start()
                p.start(wait=False)
                wait_until("rows of the last collection", lambda: rows(p.records("zz")), 60)
                load.stop()
                self.assertNotIn("streaming from", p.log_since_start(), "the snapshot was too short for this test")
                streaming(p).sync().stop()
                stats = load.verify(p.records())
                self.never_back(p.records())
                self.assertGreater(stats["r"], 0)
                self.assertGreater(stats["u"] + stats["c"], 30)
                self.assertEqual(p.store(), mgcase.source_store(db))

    def never_back(self, records):
        """Stricter than verify(): whether looked up or not."""
        last = {}
        for r in records:
            if r["value"] and r["value"]["after"]:
                key, n = (r["topic"], r["key"]["id"]), mgcase.parse(r["value"]["after"])["n"]
                self.assertGreaterEqual(n, last.get(key, 0), (key, r["headers"]))
                last[key] = n

    @staticmethod
    def kill_among_rows(p, collection):
        """When the first ones are in the file. To read them takes so long that others may be the last."""
        path = os.path.join(p.out, "%s.%s.%s.jsonl" % (p.prefix, p.db, collection))
        wait_until("rows", lambda: os.path.exists(path) and os.path.getsize(path) > 0, 60, 0.002)
        p.cdcd.kill()

    def test_kill_within_a_collection(self):
        for capture in mgcase.CAPTURES:
            with self.subTest(capture=capture):
                db = self.db()
                self.fill(db.t, 6000, pad="x" * 300)
                self.fill(db.a, 10)
                load = self.load(db, sessions=2, keys=100, reuse=False)
                load.fill(100)
                p = self.pipe(db.name, capture=capture, source={"snapshot.chunk.rows": 2500})
                load.start()
                p.start(wait=False)
                self.kill_among_rows(p, "t")
                before = len(p.records("t"))
                self.assertLess(before, 6000)
                db.t.update_many({"_id": {"$in": [0, 5999]}}, {"$inc": {"n": 1}})
                db.a.insert_one({"_id": "new"})
                p.start(wait=False)
                load.stop()
                streaming(p).sync().stop()
                got = collections.Counter(r["key"]["id"] for r in rows(p.records("t")))
                self.assertEqual(len(got), 6000)
                # What the first run had delivered it does not read again.
                self.assertEqual(sum(got.values()), 6000)
                self.assertEqual(len(rows(p.records("a"))), 10)
                load.verify(p.records())
                self.assertEqual(p.store(), mgcase.source_store(db))

    def test_second_view_at_the_same_time(self):
        """Nothing was written between two runs: their rows still have positions of their own."""
        mongo = self.own_server("noop-heartbeat-seconds=0")
        db = mongo.client.still
        self.fill(db.t, 6000, pad="x" * 300)
        p = self.pipe("still", server=mongo, capture="oplog", source={"snapshot.chunk.rows": 2500})
        p.start(wait=False)
        self.kill_among_rows(p, "t")
        self.assertLess(len(p.records("t")), 6000)
        self.run_once(p)
        self.assertEqual(len(p.records("t")), 6000)
        self.assertEqual(len(set(p.positions())), 6000)
        self.assertEqual(len({pos.split("-")[0] for pos in p.positions()}), 1, "the views have different times")

    def test_dropped_while_read(self):
        db = self.db()
        self.fill(db.a, 4000, pad="x" * 300)
        self.fill(db.b, 10)
        self.fill(db.z, 10)
        p = self.pipe(db.name, source={"snapshot.chunk.rows": 500}, snapshot__workers=1)
        p.start(wait=False)
        wait_until("rows", lambda: p.records("a"), 60)
        db.a.drop()
        p.wait_log("streaming from")
        p.sync().stop()
        self.assertIn("%s.a was dropped, renamed or replaced while it was read" % db.name, p.cdcd.logs())
        self.assertEqual({k: v for k, v in p.store().items() if k != "a"}, mgcase.source_store(db))
        self.assertLess(len(p.records("a")), 4000)

    def test_replaced_while_read(self):
        db = self.db()
        self.fill(db.a, 4000, pad="x" * 300)
        p = self.pipe(db.name, source={"snapshot.chunk.rows": 500}, snapshot__workers=1)
        p.start(wait=False)
        wait_until("rows", lambda: p.records("a"), 60)
        db.a.drop()
        db.a.insert_many([{"_id": i, "n": "new"} for i in range(5000, 5100)])
        p.wait_log("streaming from")
        p.sync().stop()
        self.assertIn("%s.a was dropped, renamed or replaced while it was read" % db.name, p.cdcd.logs())
        new = {k: v for k, v in p.store()["a"].items() if v["n"] == "new"}
        self.assertEqual(new, mgcase.source_store(db)["a"])

    def test_server_restarts_while_it_is_read(self):
        mongo = self.own_server("sync-on-commit=yes")
        db = mongo.client.shop
        self.fill(db.t, 5000, pad="x" * 300)
        p = self.pipe("shop", server=mongo, source={"snapshot.chunk.rows": 1000}, snapshot__workers=2)
        p.start(wait=False)
        wait_until("rows", lambda: p.records("t"), 60)
        mongo.kill()
        mongo.start_again()
        p.wait_log("streaming from", 120)
        p.sync(120).stop()
        self.assertEqual(p.store(), mgcase.source_store(db))
        self.assertEqual(len(set(p.positions())), len(p.records()))


def entry(op, ns, o, o2=None, **more):
    return dict({"op": op, "ns": ns, "ui": bson.Binary(b"t" * 16, 4), "o": o, "v": bson.Int64(2), "t": bson.Int64(1)},
                **(dict(more, o2=o2) if o2 else more))


def insert(doc, ns="shop.t"):
    return entry("i", ns, doc, {"_id": doc["_id"]})


def update(i, n, ns="shop.t"):
    return entry("u", ns, {"$v": 2, "diff": {"u": {"n": n}}}, {"_id": i})


class AtOneTime(mgcase.MgCase):
    """A server that keeps old versions of documents, as MongoDB from 5.0 on does."""

    live = False

    def docs(self, n, **more):
        folder = tempfile.mkdtemp(prefix="docs-", dir=cdcdtest.work_dir())
        with open(os.path.join(folder, "shop.t.bson"), "wb") as f:
            for i in range(n):
                f.write(bson.encode(dict({"_id": i, "n": 0}, **more)))
        # The first collection is the one that is tried whether a time is heeded.
        with open(os.path.join(folder, "shop.a.bson"), "wb") as f:
            f.write(bson.encode({"_id": 1}))
        return folder

    def server(self, n, *options, **more):
        return self.fake([{"op": "n", "ns": "", "o": {"msg": "begin"}}], *options, docs=self.docs(n, **more))

    def pipeline(self, fake, **more):
        source = dict({"snapshot.chunk.rows": 1000000, "cursor.batch.size": 500}, **more)
        return self.pipe("shop", server=fake, capture="oplog", source=source, snapshot__workers=1)

    def held(self, p, fake, times=4):
        """Reading has begun, and does not get at the documents yet."""
        fake.fail("find", code=11602, times=times, collection="t", message="held by the test")
        p.start(wait=False)
        p.wait_log("held by the test")
        return p

    def test_rows_are_of_that_time(self):
        fake = self.server(100)
        p = self.pipeline(fake)
        self.held(p, fake)
        fake.append([update(5, 1)], [("shop.t", {"_id": 5, "n": 1})])
        fake.append([entry("d", "shop.t", {"_id": 6})], [("shop.t", {"_id": 6}, None)])
        fake.append([insert({"_id": 100, "n": 0})], [("shop.t", {"_id": 100, "n": 0})])
        p.wait_log("streaming from")
        p.sync().stop()
        self.assertRegex(p.cdcd.logs(), r"reads documents as of \d+:\d+")
        records = p.records("t")
        self.assertEqual({r["key"]["id"]: mgcase.parse(r["value"]["after"])["n"] for r in rows(records)},
                         {str(i): 0 for i in range(100)})
        self.assertEqual(len(rows(records)), 100)
        self.assertEqual([(op, k["id"], d and d["n"]) for op, k, d in p.ops("t")[100:]],
                         [("u", "5", 1), ("d", "6", None), ("-", "6", None), ("c", "100", 0)])

    def test_overlap(self):
        """The same, read as it is when it is read: what the rows have already does not go back."""
        fake = self.server(100)
        p = self.pipeline(fake, **{"snapshot.read.mode": "overlap"})
        self.held(p, fake)
        fake.append([update(5, 1)], [("shop.t", {"_id": 5, "n": 1})])
        fake.append([update(5, 2)], [("shop.t", {"_id": 5, "n": 2})])
        fake.append([entry("d", "shop.t", {"_id": 6})], [("shop.t", {"_id": 6}, None)])
        fake.append([insert({"_id": 100, "n": 0})], [("shop.t", {"_id": 100, "n": 0})])
        fake.append([entry("u", "shop.t", {"_id": 7, "n": 1}, {"_id": 7}), entry("u", "shop.t", {"_id": 7, "n": 2}, {"_id": 7})],
                    [("shop.t", {"_id": 7, "n": 2})])
        fake.append([entry("d", "shop.t", {"_id": 8}), insert({"_id": 8, "n": 9})], [("shop.t", {"_id": 8, "n": 9})])
        fake.append([insert({"_id": 101, "n": 0}), entry("d", "shop.t", {"_id": 101})])
        p.wait_log("streaming from")
        p.sync().stop()
        found = {r["key"]["id"]: mgcase.parse(r["value"]["after"])["n"] for r in rows(p.records("t"))}
        self.assertEqual((found["5"], found["7"], found["8"], found["100"], "6" in found), (2, 2, 9, 0, False))
        stream = p.ops("t")[len(found):]
        self.assertEqual([(op, k["id"], d and d["n"]) for op, k, d in stream],
                         [("u", "5", 2), ("u", "5", 2), ("d", "6", None), ("-", "6", None), ("c", "100", 0),
                          ("u", "7", 2), ("u", "7", 2), ("c", "8", 9), ("d", "101", None), ("-", "101", None)])

    def test_time_too_old(self):
        """In the middle of the collection: a new view, to which the stream is brought first."""
        fake = self.server(3000, pad="x" * 300)
        p = self.pipeline(fake)
        fake.fail("getMore", code=239, collection="t", message="Read timestamp is older")
        # Between the two views:
        p.start(wait=False)
        p.wait_log("keeps the time of the snapshot no longer")
        fake.append([update(5, 1), update(2900, 1)],
                    [("shop.t", {"_id": 5, "n": 1, "pad": "y"}), ("shop.t", {"_id": 2900, "n": 1, "pad": "y"})])
        p.wait_log("streaming from")
        p.sync().stop()
        self.assertRegex(p.log_since_start(), "publishing the changes up to the new snapshot first")
        records = p.records("t")
        self.assertEqual({k: v["n"] for k, v in p.store()["t"].items()},
                         {str(i): int(i in (5, 2900)) for i in range(3000)})
        self.assertEqual(len(rows(records)), 3000)
        self.assertEqual(len({r["headers"]["cdcd.pos"] for r in records}), len(records))
        last = {}
        for r in records:
            n = mgcase.parse(r["value"]["after"])["n"]
            self.assertGreaterEqual(n, last.get(r["key"]["id"], 0), r["key"])
            last[r["key"]["id"]] = n

    def test_second_view_after_lookups(self):
        """The stream looks documents up on its way to the second view, and they change all the time:
        rows of the view's own time would take them back."""
        fake = self.server(3000, pad="x" * 300)
        p = self.pipeline(fake)
        fake.fail("getMore", code=239, collection="t", message="Read timestamp is older")
        p.start(wait=False)
        p.wait_log("keeps the time of the snapshot no longer")
        seen, n = self.changing(fake, p)
        self.assertEqual(seen[-1], n)

    def changing(self, fake, p):
        """The last document is changed until the stream begins, and never goes back."""
        n = 0
        while "streaming from" not in p.log_since_start():
            n += 1
            self.assertLess(n, 20000)
            fake.append([update(2999, n)], [("shop.t", {"_id": 2999, "n": n})])
        p.sync().stop()
        # An update without a lookup tells no document.
        seen = [mgcase.parse(r["value"]["after"])["n"] for r in p.records("t")
                if r["key"]["id"] == "2999" and r["value"]["after"]]
        self.assertEqual(seen, sorted(seen))
        self.assertEqual(len([r for r in p.records("t") if r["key"]["id"] == "2999"]), n + 1)
        self.assertEqual(len(rows(p.records("t"))), 3000)
        return seen, n

    def test_second_view_after_an_overlap(self):
        """Without lookups, but with a first view that overlapped: so does the second one."""
        fake = self.server(3000, pad="x" * 300)
        p = self.pipeline(fake, **{"snapshot.read.mode": "overlap", "capture.mode": "change_streams"})
        fake.fail("getMore", code=11602, times=100, collection="t", message="held by the test")
        p.start(wait=False)
        p.wait_log("held by the test")
        wait_until("rows", lambda: p.records("t"))
        p.cdcd.kill()
        fake.fail("getMore", times=0, collection="t")
        p.source["snapshot.read.mode"] = "auto"
        p.start(wait=False)
        self.assertGreater(len(self.changing(fake, p)[0]), 1)
        self.assertIn("as they are when they are read (it goes on after a break", p.log_since_start())

    def test_time_really_too_old(self):
        """The server's window moves on while the snapshot is held up: what it says of itself."""
        fake = self.server(100)
        p = self.pipeline(fake)
        self.held(p, fake)
        fake.append([update(5, 1)], [("shop.t", {"_id": 5, "n": 1})])
        fake.oldest(fake.stats()["last"])
        p.wait_log("keeps the time of the snapshot no longer")
        p.wait_log("streaming from")
        p.sync().stop()
        self.assertEqual({k: v["n"] for k, v in p.store()["t"].items()}, {str(i): int(i == 5) for i in range(100)})
        self.assertEqual(len(rows(p.records("t"))), 100)

    def test_cursor_lost(self):
        """43 in the middle: reading goes on behind the last document, under the same view."""
        for code in (43, 237, 11602, 0):
            with self.subTest(code=code):
                fake = self.server(3000, pad="x" * 300)
                p = self.pipeline(fake)
                fake.fail("getMore", code=code, collection="t", message="gone")
                p.start()
                p.sync().stop()
                self.assertIn("reading on behind the last document", p.cdcd.logs())
                self.assertNotIn("new snapshot first", p.cdcd.logs())
                self.assertEqual([r["key"]["id"] for r in rows(p.records("t"))], [str(i) for i in range(3000)])

    def test_stepdown_while_read(self):
        fake = self.server(100)
        p = self.pipeline(fake)
        self.held(p, fake, 2)
        fake.stepdown(1000)
        p.wait_log("streaming from")
        p.sync().stop()
        self.assertEqual(len(rows(p.records("t"))), 100)

    def test_ranges(self):
        fake = self.fake([{"op": "n", "ns": "", "o": {"msg": "begin"}}], docs=self.docs_of(KEYS + ODD))
        for chunk in (1, 3, 7):
            with self.subTest(chunk=chunk):
                p = self.pipe("shop", server=fake, capture="oplog", name="ranges%d" % chunk,
                              source={"snapshot.chunk.rows": chunk}, snapshot__workers=3)
                p.start().sync().stop()
                self.assertEqual(sorted(json.loads(r["value"]["after"])["n"] for r in rows(p.records("t"))),
                                 list(range(len(KEYS + ODD))))

    def docs_of(self, keys):
        folder = tempfile.mkdtemp(prefix="docs-", dir=cdcdtest.work_dir())
        with open(os.path.join(folder, "shop.t.bson"), "wb") as f:
            for i, k in enumerate(keys):
                f.write(bson.encode({"_id": k, "n": i}))
        return folder

    def test_asked_for_what_cannot_be(self):
        old = self.server(3, "--max-wire", "9", "--version", "4.4.29")
        p = self.pipeline(old, **{"snapshot.read.mode": "at_cluster_time"})
        p.fails(2, "snapshot.read.mode: at_cluster_time needs MongoDB 5.0")
        q = self.pipe("shop", server=old, capture="oplog", name="auto").start()
        q.sync().stop()
        self.assertEqual(len(rows(q.records("t"))), 3)
        self.assertRegex(q.cdcd.logs(), "as they are when they are read .MongoDB does it from 5.0 on")

    def test_mode_is_kept(self):
        """at_cluster_time where it can be."""
        fake = self.server(10)
        p = self.pipeline(fake, **{"snapshot.read.mode": "at_cluster_time"})
        p.start().sync().stop()
        self.assertRegex(p.cdcd.logs(), r"reads documents as of \d+:\d+")
        self.assertEqual(len(rows(p.records("t"))), 10)

    def test_another_server(self):
        """A snapshot that is to go on at a server that lacks what was delivered."""
        fake = self.server(3000, pad="x" * 300)
        p = self.pipeline(fake)
        fake.append([insert({"_id": 10000 + i}) for i in range(5)])
        fake.fail("getMore", code=239, times=100, collection="t")
        p.start(wait=False)
        p.wait_log("keeps the time of the snapshot no longer")
        p.cdcd.kill()
        fake.fail("getMore", code=239, times=0, collection="t")
        fake.rollback(4)
        p.fails(3, "lacks changes that are delivered already")


class Heeded(mgcase.MgCase):
    def test_a_server_that_ignores_the_time(self):
        """It takes atClusterTime and gives what is there now: found out, not believed."""
        db = self.db()
        db.t.insert_one({"_id": 1})
        p = self.pipe(db.name).start()
        p.sync().stop()
        self.assertRegex(p.cdcd.logs(), "as they are when they are read .this server reads at no such time")
        q = self.pipe(db.name, name="strict", source={"snapshot.read.mode": "at_cluster_time"})
        q.fails(2, "snapshot.read.mode is at_cluster_time")


if __name__ == "__main__":
    cdcdtest.main()
