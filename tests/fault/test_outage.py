"""Broker and database go away under load and come back: cdcd goes on by itself, exactly once.

CDCD_OUTAGE_SECONDS is how long the broker is away (default 12; 70 is longer than the transaction
timeout of a default broker, so that transactions are aborted by both sides).
"""
import os
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../support"))
import cdcdtest  # noqa: E402
from pgload import TABLE_PATTERN, Load  # noqa: E402

AWAY = int(os.environ.get("CDCD_OUTAGE_SECONDS", "12"))


class Outage(cdcdtest.TestCase):
    def setUp(self):
        super().setUp()
        # A timeout that a blocked sink would run into many times over.
        self.pg = cdcdtest.Postgres(None, "logical_decoding_work_mem=64kB", "wal_sender_timeout=4s")
        self.addCleanup(self.pg.stop)
        self.kafka = cdcdtest.Kafka()
        self.addCleanup(self.kafka.stop)
        self.db = self.pg.new_db()
        self.load = Load(self.pg, self.db, tables=3, keys=1000)
        self.addCleanup(self.load.end)
        self.load.run(transactions=500, sessions=2, seed=1, first=1)

    def start(self):
        c = self.cdcd({"name": "outage", "topic.prefix": "o",
                       "source": {"postgres": {"url": self.pg.url(self.db), "slot.name": "outage",
                                               "table.include.list": [TABLE_PATTERN]}},
                       "sink": {"kafka": {"bootstrap.servers": self.kafka.bootstrap}}})
        c.start()
        c.wait_log("streaming from", 60)
        return c

    def finish(self, c):
        print("load: %s" % self.load.wait(), file=sys.stderr)
        self.load.wait_drained("outage", 180)
        self.assertTrue(c.alive(), c.logs()[-4000:])
        self.assertEqual(c.stop(), 0)
        print(dict(self.load.verify(self.kafka.read("^o[.]public[.].*"))), file=sys.stderr)

    def test_broker_away(self):
        c = self.start()
        self.load.start(seconds=AWAY + 15, sessions=3, seed=2, rate=300)
        time.sleep(3)
        self.kafka.kill()
        time.sleep(AWAY)
        self.assertTrue(c.alive(), c.logs()[-4000:])
        self.kafka.start_again()
        self.finish(c)

    def test_database_restarts(self):
        c = self.start()
        self.load.start(seconds=20, sessions=3, seed=3, rate=300)
        time.sleep(3)
        self.pg.restart()
        time.sleep(3)
        self.pg.kill()
        time.sleep(1)
        self.pg.start_again()
        self.finish(c)


if __name__ == "__main__":
    cdcdtest.main()
