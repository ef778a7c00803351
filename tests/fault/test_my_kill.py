"""kill -9 at random moments of the snapshot and of the stream, under load, on MySQL and MariaDB; then
every committed change is there exactly once, every key in order, every transaction whole, and the
last value of each key is the table's. Also over a switch from a primary to its replica in mid-load.

CDCD_KILLS sets how often each test kills (default 8; 100 for a long run), CDCD_SEED the moments.
"""
import os
import random
import sys
import time

import cdcdtest
import mycase
from myload import Load

KILLS = int(os.environ.get("CDCD_KILLS", "8"))
SEED = int(os.environ.get("CDCD_SEED", "1"))


class Killing(mycase.MyCase):
    def kill_often(self, pipe, rnd, kills=KILLS):
        """The first kills hit the snapshot, the others the stream."""
        for n in range(kills):
            streams = n >= kills // 2
            pipe.start(wait=streams)
            time.sleep(rnd.uniform(0, 1.0 if streams else 0.5))
            self.assertTrue(pipe.cdcd.alive(), "cdcd ended by itself:\n" + pipe.cdcd.logs()[-4000:])
            pipe.cdcd.kill()

    def pipeline(self, db, **more):
        # root sees prepared XA transactions, which the snapshot waits for
        return self.pipe(db, source={"snapshot.chunk.rows": 200}, snapshot={"workers": 3}, user="root",
                         **more)

    def tell(self, load, stats):
        print("%s, %d kills: %d transactions sent; %s" % (self.server, KILLS, load.committed, stats),
              file=sys.stderr)
        self.assertGreater(stats["changes"], 0)

    def all_records(self, pipe):
        return [r for rs in cdcdtest.read_folder(pipe.out).values() for r in rs]


@mycase.each_server()
class Kills(Killing):
    def test_file(self):
        rnd = random.Random(SEED)
        db = self.db()
        load = Load(self.my, db, seed=SEED)
        self.addCleanup(load.abandon)
        load.fill(900)
        pipe = self.pipeline(db)
        load.start()
        self.kill_often(pipe, rnd)
        load.stop()
        pipe.start().sync().stop()
        self.tell(load, load.verify(self.all_records(pipe), resumed=True))

    def test_kafka(self):
        rnd = random.Random(SEED + 100)
        kafka = cdcdtest.Kafka()
        self.addCleanup(kafka.stop)
        db = self.db()
        load = Load(self.my, db, seed=SEED + 100)
        self.addCleanup(load.abandon)
        load.fill(900)
        pipe = self.pipeline(db)
        pipe.cdcd.config["sink"] = {"kafka": {"bootstrap.servers": kafka.bootstrap}}
        pipe.cdcd.write_config()
        load.start()
        self.kill_often(pipe, rnd)
        load.stop()
        self.sql("INSERT INTO cdcd_sync VALUES ('end')", db)
        pipe.start()
        cdcdtest.wait_until("the last transaction to come", lambda: any(
            r["key"] == {"token": "end"}
            for r in kafka.read("^srv[.]%s[.]cdcd_sync$" % db)), 120, 1)
        pipe.stop()
        self.tell(load, load.verify(kafka.read("^srv[.]%s[.]load_.*" % db), resumed=True))


@mycase.each_server()
class Switch(Killing):
    """The pipeline goes on at a replica, from the middle of what the primary had sent."""

    def test_in_mid_load(self):
        rnd = random.Random(SEED + 200)
        settings = ["log_slave_updates=ON"] if self.flavor == "mariadb" else []
        primary, replica = self.own_server(*settings), self.own_server(*settings)
        replica.replicate_from(primary)
        db = primary.new_db("sw")
        load = Load(primary, db, seed=SEED + 200, large=0.05)
        self.addCleanup(load.abandon)
        load.fill(600)
        pipe = self.pipeline(db, server=primary)
        load.start()
        self.kill_often(pipe, rnd, max(KILLS // 2, 2))
        load.stop()
        replica.wait_replicated(primary)
        replica.promote()
        primary.stop()
        load.my = pipe.my = replica
        pipe.source["url"] = replica.url("root")
        pipe.cdcd.write_config()
        load.start()
        for _ in range(max(KILLS // 2, 2)):
            pipe.start()
            time.sleep(rnd.uniform(0, 1.0))
            pipe.cdcd.kill()
        load.stop()
        pipe.start().sync().stop()
        self.tell(load, load.verify(self.all_records(pipe), resumed=True))


if __name__ == "__main__":
    mycase.main()
