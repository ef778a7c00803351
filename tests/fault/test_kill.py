"""kill -9 at random moments of the snapshot and of the stream, under load; then every committed
change is there exactly once, every key in order, and the last value of each key is the table's.

CDCD_KILLS sets how often each test kills (default 12; 100 for a long run), CDCD_SEED the moments.
"""
import os
import random
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../support"))
import cdcdtest  # noqa: E402
from pgload import TABLE_PATTERN, Load  # noqa: E402

KILLS = int(os.environ.get("CDCD_KILLS", "12"))
SEED = int(os.environ.get("CDCD_SEED", "1"))


class Killing(cdcdtest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.pg = cdcdtest.Postgres(None, "logical_decoding_work_mem=64kB")

    @classmethod
    def tearDownClass(cls):
        cls.pg.stop()

    def config(self, db, sink):
        return {"name": "kill_" + db, "topic.prefix": "k",
                "source": {"postgres": {"url": self.pg.url(db), "slot.name": "kill_" + db,
                                        "table.include.list": [TABLE_PATTERN],
                                        "snapshot.chunk.size": "64KB"}},
                "snapshot": {"workers": 3}, "sink": sink}

    def kill_often(self, sink, read, seed):
        """Kills, starts again, and compares at the end. read() gives the sink's records."""
        rnd = random.Random(seed)
        db = self.pg.new_db("kill")
        load = Load(self.pg, db, tables=3, keys=3000)
        load.run(transactions=1500, sessions=2, seed=seed, first=1)
        config = self.config(db, sink(db))
        c = self.cdcd(config)
        self.addCleanup(load.end)
        load.start(seconds=int(KILLS * 1.2) + 5, sessions=3, seed=seed + 1, rate=400)
        for n in range(KILLS):
            c.start()
            # The first kills hit the snapshot, most of the others the stream.
            time.sleep(rnd.uniform(0.02, 0.5 if n < KILLS // 2 else 1.5))
            self.assertTrue(c.alive(), "cdcd ended by itself:\n" + c.logs()[-4000:])
            c.kill()
        c.start()
        committed = load.wait()
        load.wait_drained(config["source"]["postgres"]["slot.name"], timeout=120)
        self.assertEqual(c.stop(), 0)
        stats = load.verify(read(db), resumed=True)
        print("%d kills: %s; %s" % (KILLS, committed, dict(stats)), file=sys.stderr)
        self.assertGreater(stats["changes"], 0)
        return c

    def test_file(self):
        folders = {}

        def sink(db):
            folders[db] = self.folder()
            return {"file": {"path": folders[db]}}

        def read(db):
            return [r for rs in cdcdtest.read_folder(folders[db]).values() for r in rs]

        self.kill_often(sink, read, SEED)

    def test_kafka(self):
        kafka = cdcdtest.Kafka()
        self.addCleanup(kafka.stop)
        self.kill_often(lambda db: {"kafka": {"bootstrap.servers": kafka.bootstrap}},
                        lambda db: kafka.read("^k[.]public[.].*"), SEED + 100)


if __name__ == "__main__":
    cdcdtest.main()
