"""kill -9 of every part between a PostgreSQL under random load and a search index, also of two at once,
in the snapshot and in the stream. cdcd is started again as a service manager would, the servers by themselves
as they were; what was not killed has to go on without help. Then index and tables are the same: every column
of every row, and the counts.

CDCD_KILLS: kills in each test (default 6; 50 for a long run). CDCD_SEED: which part dies when.
"""
import collections
import os
import random
import sys
import threading
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../support"))
import cdcdtest  # noqa: E402
import escase  # noqa: E402
import searchload  # noqa: E402
from cdcdtest import wait_until  # noqa: E402

KILLS = int(os.environ.get("CDCD_KILLS", "6"))
SEED = int(os.environ.get("CDCD_SEED", "1"))
ROUND = 10  # kills of one pipeline: then it is compared, and the next one begins with its snapshot
RATE = 60   # transactions a second
QUICK = {"session.timeout.ms": 1500, "heartbeat.interval.ms": 200}


class Killing(cdcdtest.TestCase):
    SEARCH = "opensearch"
    NEW_KEYS = True

    @classmethod
    def setUpClass(cls):
        cls.pg = cdcdtest.Postgres(None, "logical_decoding_work_mem=64kB", "wal_sender_timeout=5s")
        cls.addClassCleanup(cls.pg.stop)
        cls.search = escase.Search(cls.SEARCH)
        cls.addClassCleanup(cls.search.stop)

    def source(self):
        return {"postgres": {"url": self.pg.url(self.db), "slot.name": self.db,
                             "schema.include.list": ["public"], "snapshot.chunk.size": "64KB"}}

    def sink(self):
        return {"elasticsearch": {"url": self.search.url, "index.settings": {"number_of_replicas": 0}}}

    # -- kills --

    def kill_cdcd(self, c):
        c.kill()
        time.sleep(self.rnd.uniform(0, 0.5))
        c.start()

    def kill_server(self, server):
        server.kill()
        time.sleep(self.rnd.choice([0, self.rnd.uniform(0, 3)]))
        wait_until("%s to start" % server.script, lambda: self.started(server), 120, 0.5)

    @staticmethod
    def started(server):
        """Its port may belong to somebody's outgoing connection for a moment."""
        try:
            server.start_again()
            return True
        except cdcdtest.Failure as e:
            sys.stderr.write("%s\n" % e)
            return False

    def living(self):
        """None has ended but those that the test ended."""
        for c in self.instances:
            if c.process is not None and not c.alive():
                self.fail("cdcd ended by itself with %s:\n%s" % (c.process.returncode, c.logs()[-4000:]))

    def kill(self, *names):
        """All at once."""
        failures = []

        def one(name):
            try:
                part = self.rnd.choice(self.parts[name])
                (self.kill_cdcd if isinstance(part, cdcdtest.Cdcd) else self.kill_server)(part)
            except Exception as e:  # told by the main thread
                failures.append(e)
        threads = [threading.Thread(target=one, args=(name,)) for name in names]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        if failures:
            raise failures[0]
        self.count.update(names)

    def kills(self, n):
        """n of them: each part in turn, then two, in an order of chance."""
        while n > 0:
            for name in self.rnd.sample([*self.parts, "two"], len(self.parts) + 1):
                names = self.rnd.sample(sorted(self.parts), 2) if name == "two" else [name]
                if n > 0:
                    yield names
                n -= 1

    # -- a round --

    def round(self, n):
        self.db = self.pg.new_db("sk")
        load = searchload.Load(self.pg, self.db, self.rnd.getrandbits(30), RATE, self.NEW_KEYS)
        load.fill()
        self.instances = self.pipeline()
        self.parts = self.all_parts()
        self.addCleanup(load.stop)
        load.start()
        for c in self.instances:
            c.start()
        for i, names in enumerate(self.kills(n)):
            # The first ones hit the snapshot, the others the stream.
            time.sleep(self.rnd.uniform(0.02, 1.0) if i < 3 else self.rnd.uniform(0.1, 4))
            self.living()
            self.kill(*names)
            if len(names) > 1:
                self.count["two at once"] += 1
        time.sleep(1)
        load.stop()
        self.compare()
        for c in self.instances:
            self.assertEqual(c.stop(), 0, c.logs()[-4000:])
        self.documents += self.compare()
        self.resumed += self.instances[0].logs().count("publishing the changes up to the new snapshot first")
        self.changes.update(load.changes())
        # What is over must not hold the log, nor take the server's memory.
        drop = "SELECT pg_drop_replication_slot('%s')" % self.db
        wait_until("the slot to be dropped", lambda: self.pg.sql(drop, check=False).returncode == 0)
        self.search.request("DELETE", "/%s.*-000001" % self.db)

    def compare(self):
        """Until index and tables are the same. Counts documents."""
        count = 0
        for table in searchload.TABLES:
            want, index = searchload.expected(self.pg, self.db, table), "%s.public.%s" % (self.db, table.name.lower())
            problems, counts = [""], []

            def same():
                self.living()
                try:
                    got, counted = searchload.documents(self.search, index, table)
                except cdcdtest.Failure as e:
                    problems[0] = str(e)
                    return False
                problems[0] = searchload.difference(want, got)
                counts.append(counted)
                return not problems[0] and counted == len(want)
            try:
                wait_until("the same", same, 60, 0.5)
            except cdcdtest.Failure:
                self.fail("%s is not the same, %d rows, documents while waiting: %s; %s" % (
                    index, len(want), sorted(set(counts)), problems[0]))
            count += len(want)
        return count

    def run_all(self, seed, kills):
        print("CDCD_SEED=%d CDCD_KILLS=%d" % (SEED, kills), file=sys.stderr)
        self.rnd = random.Random(seed)
        self.count, self.changes = collections.Counter(), collections.Counter()
        self.documents = self.resumed = rounds = 0
        began = time.monotonic()
        for left in range(kills, 0, -ROUND):
            self.round(min(left, ROUND))
            rounds += 1
        print("%s: %d rounds, %d kills in %d s: %s; snapshots gone on with %d times; %d changes: %s; %d documents, "
              "all the same" % (self.id(), rounds, kills, time.monotonic() - began, dict(sorted(self.count.items())),
                                self.resumed, sum(self.changes.values()), dict(sorted(self.changes.items())),
                                self.documents), file=sys.stderr)


class ThroughKafka(Killing):
    # Random keys come and go faster than four partitions are read: see docs/search.md.
    NEW_KEYS = False

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.kafka = cdcdtest.Kafka("group.min.session.timeout.ms=1000")
        cls.addClassCleanup(cls.kafka.stop)

    def pipeline(self):
        broker = self.kafka.bootstrap
        capture = {"name": self.db, "topic.prefix": self.db, "errors.retry.delay.max.ms": "500ms",
                   "source": self.source(), "sink": {"kafka": {"bootstrap.servers": broker, "topic.partitions": 4}}}
        index = {"name": self.db + "-index", "topic.prefix": self.db, "errors.retry.delay.max.ms": "500ms",
                 "source": {"kafka": {"bootstrap.servers": broker, "topics.refresh.interval.ms": 300,
                                      "properties": QUICK}},
                 "sink": self.sink()}
        return [self.cdcd(capture), self.cdcd(index), self.cdcd(index)]

    def all_parts(self):
        return {"capture": self.instances[:1], "index": self.instances[1:], "postgres": [self.pg],
                "kafka": [self.kafka], "search": [self.search]}

    def test_through_kafka(self):
        self.run_all(SEED, KILLS)


class Directly(Killing):
    def pipeline(self):
        return [self.cdcd({"name": self.db, "topic.prefix": self.db, "errors.retry.delay.max.ms": "500ms",
                           "source": self.source(), "sink": self.sink()})]

    def all_parts(self):
        return {"cdcd": self.instances, "postgres": [self.pg], "search": [self.search]}

    def test_directly(self):
        self.run_all(SEED + 1000, KILLS)


class DirectlyElasticsearch(Directly):
    SEARCH = "elasticsearch"

    def test_directly(self):
        self.run_all(SEED + 2000, (KILLS + 1) // 2)


if __name__ == "__main__":
    cdcdtest.main()
