"""The stream by the oplog: where it goes on after stops of all kinds, lookups, transactions of
several batches, commands. (test_mg_cases.py has lost positions, cursors and replaced collections.)"""
import json
import os
import random
import re
import threading
import unittest

import cdcdtest
import mgcase
import mglog
from mgcase import bson


def position(p):
    """The last one that the folder holds for the pipeline."""
    with open(os.path.join(p.out, ".cdcd-%s.state" % p.cdcd.config["name"]), encoding="utf-8") as f:
        return json.loads(re.findall(r'"position":(\{.*?\})', f.read())[-1])


class Case(mgcase.MgCase):
    def oplog(self, db, **more):
        more.setdefault("capture", "oplog")
        more.setdefault("snapshot__mode", "no_data")
        return mgcase.Pipe(self, db.name if hasattr(db, "name") else db, **more)

    def collections(self, *names):
        db = self.db()
        for name in (*names, mgcase.SYNC):
            db.create_collection(name)
        return db


class Lookups(Case):
    IDS = [1, bson.Int64(2), 3.5, "s", "ü", "", True, None, bson.ObjectId(), {"a": 1, "b": [1, {"c": 2}]}, {},
           bson.Binary(b"\0\xff", 0), bson.Binary(bytes(range(16)), 4), bson.Timestamp(5, 6),
           bson.Decimal128("1.10"), bson.Int64(2 ** 62), -0.5,
           mgcase.json_util.loads('{"$date": {"$numberLong": "-1"}}', json_options=mgcase.JSON)]

    def test_ids_of_all_types(self):
        db = self.collections("t")
        t = db.get_collection("t", codec_options=mgcase.CODEC)
        p = self.oplog(db).start()
        t.insert_many([{"_id": x, "n": 0} for x in self.IDS])
        for x in self.IDS:
            t.update_one({"_id": {"$eq": x}}, {"$set": {"n": 1}})
        p.sync()
        records = [r for r in p.records("t") if r["value"]["op"] == "u"]
        self.assertEqual(len(records), len(self.IDS))
        for r, x in zip(records, self.IDS):
            self.assertEqual(mgcase.exact(mgcase.parse(r["value"]["after"])), mgcase.exact({"_id": x, "n": 1}))
            self.assertEqual(r["headers"]["cdcd.after"], "lookup")
        self.assertEqual(p.store()["t"], mgcase.source_store(db)["t"])
        p.stop()

    def test_many_at_once(self):
        """Updates that came while nobody read; some documents are gone since, one is there anew."""
        db = self.collections("t", "u")
        p = self.oplog(db).start()
        p.sync()
        p.stop()
        for c in (db.t, db.u):
            c.insert_many([{"_id": n, "v": 0} for n in range(1500)])
            c.update_many({}, {"$inc": {"v": 1}})
            c.update_many({"_id": {"$lt": 700}}, {"$inc": {"v": 1}})
        db.t.delete_many({"_id": {"$lt": 10}})
        db.t.insert_one({"_id": 3, "v": 99})
        p.start()
        p.sync()
        for name in ("t", "u"):
            after = {}
            updates = [x for x in p.changes(name) if x[0] == "u"]
            self.assertEqual(len(updates), 2200)
            for _, key, document, description in updates:
                self.assertIn(description["updatedFields"]["v"], (1, 2))
                after.setdefault(key, []).append(document)
            self.assertEqual({k: v[-1] for k, v in after.items() if v[-1]}, mgcase.source_store(db)[name])
        self.assertEqual(after["5"], [{"_id": 5, "v": 2}] * 2)
        self.assertEqual([x[2] for x in p.changes("t") if x[0] == "u" and x[1] == "5"], [None, None])
        self.assertEqual(p.store(), mgcase.source_store(db))
        p.stop()

    def test_large_documents(self):
        """Many updates of large documents do not make a batch of all of them."""
        db = self.collections("t")
        p = self.oplog(db).start()
        p.sync()
        p.stop()
        for n in range(8):
            db.t.insert_one({"_id": n, "pad": str(n) * (3 << 20), "v": 0})
        for v in range(1, 8):
            db.t.update_many({}, {"$set": {"v": v}})
        p.start()
        p.sync(timeout=120)
        self.assertEqual(len(p.records("t")), 8 + 56)
        with open("/proc/%d/status" % p.cdcd.process.pid, encoding="utf-8") as f:
            peak = int(next(line for line in f if line.startswith("VmHWM")).split()[1])
        self.assertEqual(p.store(), mgcase.source_store(db))
        # 64 documents of 3 MB would be 192 MB.
        if not os.environ.get("CDCD_SANITIZED"):
            self.assertLess(peak, 160 << 10)
        p.stop()

    def test_no_lookup(self):
        db = self.collections("t")
        p = self.oplog(db, source={"capture.mode": "change_streams"}).start()
        db.t.insert_one({"_id": 1, "v": 0})
        db.t.update_one({"_id": 1}, {"$set": {"v": 1}})
        db.t.replace_one({"_id": 1}, {"v": 2})
        p.sync()
        described = {"removedFields": None, "updatedFields": {"v": 1}, "truncatedArrays": None}
        self.assertEqual(p.changes("t"), [("c", "1", {"_id": 1, "v": 0}, None), ("u", "1", None, described),
                                          ("u", "1", {"_id": 1, "v": 2}, None)])
        p.stop()

    def test_pre_images(self):
        """As a server records them: by uuid, time and place in the applyOps."""
        log = mglog.Log()
        fake = self.fake([log.noop()])
        p = self.oplog("hb", server=fake, source={
            "capture.mode": "change_streams_with_pre_image", "collection.include.list": ["hb.t"]}).start()
        one, two = log.insert("hb.t", {"_id": 1, "v": 1}), log.diff("hb.t", 1, {"u": {"v": 2}})
        [tx] = log.transaction([log.op_insert("hb.t", {"_id": 2}), log.op_diff("hb.t", 1, {"u": {"v": 3}}),
                                log.op_delete("hb.t", 1)])

        def image(ts, index, document):
            key = bson.SON([("nsUUID", log.ui("hb.t")), ("ts", ts), ("applyOpsIndex", bson.Int64(index))])
            return ("config.system.preimages", {"_id": key, "preImage": document})
        fake.append([one, two, tx], [image(two["ts"], 0, {"_id": 1, "v": 1}),
                                     image(tx["ts"], 1, {"_id": 1, "v": 2}),
                                     image(tx["ts"], 2, {"_id": 1, "v": 3})])
        p.sync()
        before = [mgcase.parse(r["value"]["before"]) for r in p.records("t") if r["value"]]
        self.assertEqual(before, [None, {"_id": 1, "v": 1}, None, {"_id": 1, "v": 2}, {"_id": 1, "v": 3}])
        p.stop()


class Resume(Case):
    def test_killed_in_transactions(self):
        """Transactions of several batches: each change once, in order, and their metadata whole."""
        db = self.collections("t", "u")
        client = self.mongo.client
        p = self.oplog(db, format={"provide.transaction.metadata": True}).start()
        p.sync()
        want, sizes = [], []
        dice = random.Random(7)
        for n in range(6):
            size = dice.randint(800, 2500)
            with client.start_session() as s, s.start_transaction():
                for k in range(0, size, 400):
                    some = [{"_id": 10000 * n + k + i} for i in range(min(400, size - k))]
                    (db.u if k % 800 else db.t).insert_many(some, session=s)
                    want += [x["_id"] for x in some]
            sizes.append(size)
            topic = "srv.%s.t" % db.name
            p.wait_came(topic, '"id":"%d"' % (10000 * n + dice.randint(0, 399)), 60)
            p.cdcd.kill()
            p.start()
        p.sync()
        values = [r["value"] for r in p.records() if r["value"].get("op") == "c"]
        self.assertEqual([mgcase.parse(v["after"])["_id"] for v in values], want)
        orders = [v["transaction"]["total_order"] for v in values]
        self.assertEqual(orders, [i for size in sizes for i in range(1, size + 1)])
        # Servers that write flat entries: a transaction is known to be whole when time has gone on.
        ended = [r["value"]["event_count"] for r in p.records() if r["value"].get("status") == "END"]
        self.assertEqual(ended, sizes)
        positions = [r["headers"]["cdcd.pos"] for r in p.records()]
        self.assertEqual(len(set(positions)), len(positions))
        p.stop()

    def test_the_way_of_capture_changes(self):
        """A position of one way is one of the other, in the middle of a load as well."""
        db = self.collections("t")
        p = self.oplog(db).start()
        stop = threading.Event()
        written = []

        def load():
            while not stop.is_set():
                n = len(written)
                if n % 5:
                    db.t.insert_one({"_id": n})
                    written.append(n)
                    continue
                with self.mongo.client.start_session() as s, s.start_transaction():
                    for k in range(4):
                        db.t.insert_one({"_id": n + k}, session=s)
                written.extend(range(n, n + 4))
        for n in range(6):
            stop.clear()
            thread = threading.Thread(target=load)
            thread.start()
            p.wait_came("srv.%s.t" % db.name, '"id":"%d"' % (len(written) + 20), 60)
            p.cdcd.kill()
            stop.set()
            thread.join()
            p.source["capture"] = mgcase.CAPTURES[(n + 1) % 2]
            p.start()
            p.sync()
        self.assertEqual([mgcase.parse(r["value"]["after"])["_id"] for r in p.records("t")], written)
        p.stop()

    def test_server_restarts(self):
        server = self.own_server("sync-on-commit=yes")
        db = server.client.rs
        for name in ("t", mgcase.SYNC):
            db.create_collection(name)
        p = self.oplog("rs", server=server).start()
        for n in range(3):
            db.t.insert_many([{"_id": 10 * n + k} for k in range(10)])
            p.sync()
            if n % 2:
                server.restart()
            else:
                server.kill()
                server.start_again()
        db.t.update_many({}, {"$set": {"v": 1}})
        p.sync(timeout=120)
        self.assertEqual([(x[0], x[1]) for x in p.changes("t")],
                         [("c", str(n)) for n in range(30)] + [("u", str(n)) for n in range(30)])
        p.stop()

    def test_noops_move_the_position(self):
        log = mglog.Log()
        fake = self.fake([log.noop()])
        p = self.oplog("hb", server=fake).start()
        fake.append([log.insert("hb.t", {"_id": 1}), log.insert("other.t", {"_id": 1})])
        p.sync()
        ts = log.noop()["ts"]
        fake.append([log.noop() for _ in range(3)], rising=True)
        last = fake.stats()["last"]
        self.assertGreater(last, ts)
        cdcdtest.wait_until("the position to follow", lambda: position(p)["ts"] == [last.time, last.inc], 60)
        p.stop()
        fake.rollover(fake.stats()["entries"] - 1)
        p.start()
        fake.append([log.insert("hb.t", {"_id": 2})], rising=True)
        p.sync()
        self.assertEqual([x[1] for x in p.changes("t")], ["1", "2"])
        p.stop()

    def test_other_collections_move_the_position(self):
        """What is filtered out costs a resume nothing."""
        db, other = self.collections("t"), self.collections("t")
        p = self.oplog(db).start()
        p.sync()

        def moved():
            other.t.insert_many([{"n": n} for n in range(50)])
            return position(p)["ts"] > first
        first = position(p)["ts"]
        cdcdtest.wait_until("the position to follow", moved, 60)
        p.stop()
        self.assertEqual(p.records("t"), [])

    def test_stops_while_idle(self):
        """A cursor that waits for entries does not hold up the end."""
        db = self.collections("t")
        p = self.oplog(db, source={"cursor.max.await.time.ms": 60000}).start()
        p.sync()
        p.stop()

    def test_restored_from_a_backup(self):
        """The position is ahead of the server."""
        server = self.own_server("noop-heartbeat-seconds=0")
        db = server.client.bk
        for name in ("t", mgcase.SYNC):
            db.create_collection(name)
        p = self.oplog("bk", server=server).start()
        db.t.insert_one({"_id": 1})
        p.sync()
        p.stop()
        log = mglog.Log(t=1000)
        old = self.fake([log.noop(), log.insert("bk.t", {"_id": 9})], "--set", "secantus")
        p.source["url"] = "mongodb://127.0.0.1:%d/?directConnection=true" % old.port
        p.fails(3, "ahead of the primary", "[Nn]ew snapshot needed")

    def test_start_op_time(self):
        db = self.collections("t")
        db.t.insert_many([{"_id": n} for n in range(3)])
        third = list(self.mongo.oplog.find({"ns": db.name + ".t", "op": "i"}))[2]["ts"]
        db.t.insert_one({"_id": 3})
        number = third.time << 32 | third.inc
        p = self.oplog(db, source={"capture.start.op.time": number}).start()
        p.sync()
        self.assertEqual([x[1] for x in p.changes("t")], ["2", "3"])
        p.stop()
        p = self.oplog(db, name="early", source={"capture.start.op.time": 1 << 32})
        p.fails(2, "not within the oplog")


class Commands(Case):
    def test_wanted_or_not(self):
        """Numbers of changes do not depend on it."""
        db = self.collections()
        pipes = [self.oplog(db, name="%s-%s" % (db.name, wanted), format={"include.schema.changes": wanted}).start()
                 for wanted in (True, False)]
        db.create_collection("t")
        db.t.insert_one({"_id": 1})
        db.command("collMod", "t", changeStreamPreAndPostImages={"enabled": True})
        db.t.drop()
        db.t.insert_one({"_id": 2})
        for p in pipes:
            p.sync()
        self.assertEqual([next(iter(json.loads(r["value"]["ddl"]))) for r in pipes[0].ddl()],
                         ["create", "collMod", "drop"])
        self.assertEqual(pipes[1].ddl(), [])
        self.assertEqual([r["headers"]["cdcd.pos"] for r in pipes[0].records("t")],
                         [r["headers"]["cdcd.pos"] for r in pipes[1].records("t")])
        for p in pipes:
            p.stop()

    def test_fields_left_out(self):
        db = self.collections("t")
        p = self.oplog(db, source={"field.exclude.list": [db.name + ".t.secret", db.name + ".t.a.hidden"]}).start()
        db.t.insert_one({"_id": 1, "secret": "x", "a": {"hidden": 1, "b": 2}})
        db.t.update_one({"_id": 1}, {"$set": {"secret": "y", "a.hidden": 2, "a.b": 3}})
        p.sync()
        db.t.replace_one({"_id": 1}, {"secret": "z", "c": 1})
        p.sync()
        got = p.changes("t")
        self.assertEqual([x[2] for x in got], [{"_id": 1, "a": {"b": 2}}, {"_id": 1, "a": {"b": 3}}, {"_id": 1, "c": 1}])
        self.assertEqual(got[1][3]["updatedFields"], {"a.b": 3})
        self.assertNotIn("secret", json.dumps(p.records("t")))
        p.stop()


if __name__ == "__main__":
    unittest.main()
