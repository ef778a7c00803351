"""kill -9 at random moments of the snapshot and of the stream, under load, with the oplog and with
change streams; then every change is there once, no document ever went back, every transaction is
whole, and the last record of each document is the collection's. Also a stepdown and a restart of the
server in mid-load, and a history that is lost.

CDCD_KILLS sets how often each test kills (default 4; 100 for a long run), CDCD_SEED the moments.

The test server has a fault of its own: a tailing oplog cursor that is opened while others write may
begin behind what they write meanwhile (SecantusDB 0.7.0b3), which no reader can find out. So with the
oplog the load rests while cdcd opens one, until a change of the test's own has come through.
"""
import os
import random
import sys
import time

import cdcdtest
import mgcase
from mgload import Load, streaming

KILLS = int(os.environ.get("CDCD_KILLS", "4"))
SEED = int(os.environ.get("CDCD_SEED", "1"))
REST_S = 2  # the same for Kafka, where nothing tells that the cursor is open


class Killing(mgcase.MgCase):
    capture = None
    settings = ["sync-on-commit=yes", "oplog-max-entries=1000000"]

    def load(self, db, mongo=None, seed=SEED, **more):
        load = Load(mongo or self.mongo, db.name, seed=seed, **dict({"sessions": 3, "rate": 300}, **more))
        self.addCleanup(load.abandon)
        return load

    def pipeline(self, db, mongo=None, **more):
        source = dict({"snapshot.chunk.rows": 400}, **more.pop("source", {}))
        return self.pipe(db.name, capture=self.capture, source=source, server=mongo, snapshot__workers=3, **more)

    def start_streaming(self, pipe, load):
        """The load runs when it returns, and so does the stream."""
        if self.capture != "oplog":
            pipe.start()
            return
        load.stop()
        pipe.start()
        if "file" in pipe.cdcd.config["sink"]:
            streaming(pipe)
        else:
            time.sleep(REST_S)
        load.start()

    def kill_often(self, pipe, load, rnd, kills, streams):
        for _ in range(kills):
            if streams:
                self.start_streaming(pipe, load)
            else:
                pipe.start(wait=False)
            time.sleep(rnd.uniform(0, 1.0 if streams else 1.5))
            self.assertTrue(pipe.cdcd.alive(), "cdcd ended by itself:\n" + pipe.cdcd.logs()[-4000:])
            pipe.cdcd.kill()

    def in_snapshot(self, pipe, load, rnd, kills):
        """Kills while documents are read, and the snapshot to its end; the load rests after it."""
        load.start()
        self.kill_often(pipe, load, rnd, kills, False)
        self.start_streaming(pipe, load)
        load.stop()

    def fill(self, db):
        db.load_zz.insert_many([{"_id": i, "n": 0, "pad": "x" * 100} for i in range(3000)])

    def tell(self, what, load, stats):
        print("%s, %s, %d kills: %d changes committed; %s" % (what, self.capture, KILLS, load.committed, stats),
              file=sys.stderr)
        self.assertGreater(stats["exact"], 0)
        self.assertGreater(stats["r"], 0)

    def all_records(self, pipe):
        return [r for rs in cdcdtest.read_folder(pipe.out).values() for r in rs]


class Kills:
    def to_a_folder(self, seed, plain, reuse):
        rnd = random.Random(seed)
        db = self.db("kill")
        load = self.load(db, seed=seed, reuse=reuse, keys=300 if reuse else 4000)
        load.fill(900)
        self.fill(db)
        pipe = self.pipeline(db, source={"capture.mode": "change_streams"} if plain else {})
        self.in_snapshot(pipe, load, rnd, KILLS // 2)
        pipe.sync()
        mark = load.mark(self.all_records(pipe))
        load.start()
        time.sleep(0.5)
        pipe.cdcd.kill()
        self.kill_often(pipe, load, rnd, KILLS - KILLS // 2, True)
        load.stop()
        streaming(pipe.start()).sync().stop()
        self.tell("file", load, load.verify(self.all_records(pipe), mark, plain))
        if not plain:
            self.assertEqual(pipe.store(), mgcase.source_store(db))

    def test_file(self):
        self.to_a_folder(SEED, False, False)

    def test_file_without_lookups(self):
        """Documents are replaced, and made again: all of it exactly."""
        self.to_a_folder(SEED + 50, True, True)

    def test_kafka(self):
        rnd = random.Random(SEED + 100)
        kafka = cdcdtest.Kafka()
        self.addCleanup(kafka.stop)
        db = self.db("kill")
        load = self.load(db, seed=SEED + 100, reuse=False, keys=4000)
        load.fill(900)
        self.fill(db)
        pipe = self.pipeline(db)
        pipe.cdcd.config["sink"] = {"kafka": {"bootstrap.servers": kafka.bootstrap}}
        pipe.cdcd.write_config()

        def came(token):
            time.sleep(REST_S)
            db[mgcase.SYNC].insert_one({"_id": token})
            cdcdtest.wait_until("the last change to come", lambda: any(
                token in r["key"]["id"] for r in kafka.read("^srv[.]%s[.]%s$" % (db.name, mgcase.SYNC))), 120, 1)
            return kafka.read("^srv[.]%s[.]load_.*" % db.name)

        self.in_snapshot(pipe, load, rnd, KILLS // 2)
        mark = load.mark(came("middle"))
        load.start()
        time.sleep(0.5)
        pipe.cdcd.kill()
        self.kill_often(pipe, load, rnd, KILLS - KILLS // 2, True)
        load.stop()
        pipe.start()
        records = came("end")
        pipe.stop()
        self.tell("kafka", load, load.verify(records, mark))


class KillsOplog(Kills, Killing):
    capture = "oplog"


class KillsChangeStream(Kills, Killing):
    capture = "change_stream"


class Servers:
    """What the server does in mid-load."""

    def under_load(self, happens, times, settings=()):
        mongo = self.own_server(*(self.settings + list(settings)))
        db = mongo.client.shop
        load = self.load(db, mongo, seed=SEED + 200, reuse=False, keys=4000)
        load.fill(300)
        pipe = self.pipeline(db, mongo)
        load.start()
        self.start_streaming(pipe, load)
        load.stop()
        pipe.sync()
        mark = load.mark(self.all_records(pipe))
        load.start()
        for _ in range(times):
            time.sleep(1)
            happens(mongo, load, pipe)
        load.stop()
        pipe.sync(120)
        self.assertTrue(pipe.cdcd.alive(), pipe.cdcd.logs()[-4000:])
        pipe.stop()
        load.stop()
        stats = load.verify(self.all_records(pipe), mark)
        self.assertGreater(stats["exact"], 100)
        self.assertEqual(pipe.store(), mgcase.source_store(db))
        return pipe

    def resting(self, load, pipe, what):
        """With the oplog: the server comes back and cdcd has opened its cursor before the load goes
        on (see the fault of the test server above)."""
        if self.capture != "oplog":
            what()
            return
        load.stop()
        what()
        pipe.sync(120)
        load.start()

    def test_restart(self):
        def restart(mongo, load, pipe):
            def again():
                mongo.kill()
                mongo.start_again()
            self.resting(load, pipe, again)
        self.under_load(restart, 3)

    def test_stepdown(self):
        def stepdown(mongo, load, pipe):
            def step():
                try:
                    mongo.client.admin.command("replSetStepDown", 1, force=True)
                except mgcase.pymongo.errors.PyMongoError:
                    pass  # it cuts its connections
                time.sleep(1.2)
            self.resting(load, pipe, step)
        self.under_load(stepdown, 3)

    def lost(self, **top):
        """A pipeline whose place the server has forgotten."""
        mongo = self.own_server("sync-on-commit=yes", "oplog-max-entries=200")
        db = mongo.client.shop
        db.t.insert_many([{"_id": i, "n": 0} for i in range(50)])
        pipe = streaming(self.pipeline(db, mongo, **top).start())
        db.t.update_one({"_id": 1}, {"$inc": {"n": 1}})
        pipe.sync().stop()
        for i in range(20):
            db.t.update_many({}, {"$inc": {"n": 1}})
            db.t.insert_one({"_id": 1000 + i, "n": 0})
        db.t.delete_one({"_id": 2})
        cdcdtest.wait_until("the oplog to be cut", lambda: mongo.oplog.estimated_document_count() < 1000, 60, 0.5)
        return db, pipe

    def test_history_lost(self):
        db, pipe = self.lost()
        count = len(self.all_records(pipe))
        for _ in range(2):  # the position stays where it is
            pipe.fails(3, "new snapshot")
        self.assertEqual(len(self.all_records(pipe)), count)
        self.assertNotEqual(pipe.store(), mgcase.source_store(db))

    def test_history_lost_when_needed(self):
        db, pipe = self.lost(snapshot__mode="when_needed")
        streaming(pipe.start()).sync().stop()
        self.assertIn("taking a new snapshot", pipe.log_since_start())
        store = pipe.store()
        store["t"].pop("2", None)  # its delete is nowhere to be read any more
        self.assertEqual(store, mgcase.source_store(db))
        self.assertEqual(len(set(pipe.positions())), len(pipe.records()))


class ServersOplog(Servers, Killing):
    capture = "oplog"


class ServersChangeStream(Servers, Killing):
    capture = "change_stream"


if __name__ == "__main__":
    cdcdtest.main()
