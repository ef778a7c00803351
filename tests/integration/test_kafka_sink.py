"""The Kafka sink through a real broker: its own tests in C, and with a database in front of it."""
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../support"))
import cdcdtest  # noqa: E402
from cdcdtest import SUPPORT, run, wait_until  # noqa: E402


def murmur2(data):
    """Java clients' partitioner (org.apache.kafka.common.utils.Utils.murmur2)."""
    m, mask = 0x5bd1e995, 0xffffffff
    h = (0x9747b28c ^ len(data)) & mask
    for i in range(0, len(data) - len(data) % 4, 4):
        k = int.from_bytes(data[i:i + 4], "little") * m & mask
        k = (k ^ k >> 24) * m & mask
        h = h * m & mask ^ k
    rest = data[len(data) - len(data) % 4:]
    if rest:
        h = (h ^ int.from_bytes(rest, "little")) * m & mask
    h = (h ^ h >> 13) * m & mask
    return h ^ h >> 15


LARGE = """
CREATE TABLE t_large (id int PRIMARY KEY, v text);
ALTER TABLE t_large REPLICA IDENTITY FULL;
"""
# Row 3 is larger than a broker takes by default, and so is the update of 6 with both images.
LARGE_CHANGES = """
INSERT INTO t_large VALUES (1, 'small before');
BEGIN;
INSERT INTO t_large VALUES (2, 'same tx, small');
INSERT INTO t_large SELECT 3, string_agg(md5(g::text), '') FROM generate_series(1, 40000) g;
INSERT INTO t_large VALUES (4, 'same tx, after');
COMMIT;
INSERT INTO t_large SELECT 5, repeat('z', 5000000);
INSERT INTO t_large SELECT 6, string_agg(md5(g::text), '') FROM generate_series(1, 16500) g;
UPDATE t_large SET v = v || '!' WHERE id = 6;
DELETE FROM t_large WHERE id = 3;
INSERT INTO t_large VALUES (7, 'small after');
"""


class KafkaSink(cdcdtest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.kafka = cdcdtest.Kafka()
        cls.pg = cdcdtest.Postgres()

    @classmethod
    def tearDownClass(cls):
        cls.kafka.stop()
        cls.pg.stop()

    def pipeline(self, db, **sink):
        sink["bootstrap.servers"] = self.kafka.bootstrap
        return self.cdcd({"name": db, "topic.prefix": db,
                          "source": {"postgres": {"url": self.pg.url(db), "slot.name": db}},
                          "sink": {"kafka": sink}})

    def keys(self, topic):
        """Short forms: 1 for the insert of row 1, -1 for its delete, None for a tombstone."""
        out = []
        for r in self.kafka.read(topic):
            value = r["value"]
            op = value and value.get("payload", value)["op"]
            key = r["key"].get("payload", r["key"])["id"]
            out.append((op, key))
        return out

    def test_in_c(self):
        program = os.path.join(os.path.dirname(SUPPORT), "unit", "test_kafka_broker")
        env = dict(os.environ, **self.kafka.env)
        env["CDCD_KAFKA_OUTAGES"] = "1"
        r = run([program], check=False, env=env, timeout=900)
        self.assertEqual(r.returncode, 0, r.stdout[-4000:] + r.stderr[-4000:])
        self.assertNotIn("SKIPPED", r.stdout + r.stderr)

    def test_partitions_and_times(self):
        db = self.pg.new_db()
        self.pg.sql("CREATE TABLE t (id int PRIMARY KEY, v text);"
                    "CREATE TABLE nokey (v text)", db)
        c = self.pipeline(db, **{"topic.partitions": 4}).start()
        c.wait_log("streaming from", 60)
        self.pg.sql("INSERT INTO t SELECT g, 'x' FROM generate_series(1, 200) g;"
                    "DELETE FROM t WHERE id % 3 = 0; INSERT INTO nokey VALUES ('a')", db)
        topic = db + ".public.t"
        wait_until("all records", lambda: len(self.kafka.read(topic)) == 200 + 66 * 2, 60)
        records = self.kafka.read(topic)
        self.assertEqual({r["partition"] for r in records}, {0, 1, 2, 3})
        for r in records:
            key = '{"id":%d}' % r["key"]["id"]
            self.assertEqual(r["partition"], (murmur2(key.encode()) & 0x7fffffff) % 4)
            if r["value"]:
                self.assertEqual(r["timestamp"], r["value"]["source"]["ts_ms"])
        by_key = {}
        for r in records:
            by_key.setdefault(r["key"]["id"], []).append(r)
        for rows in by_key.values():
            ops = [r["value"] and r["value"]["op"] for r in rows]
            self.assertIn(ops, (["c"], ["c", "d", None]))
            pos = [r["headers"]["cdcd.pos"] for r in rows]
            self.assertEqual(pos, sorted(set(pos)))
            self.assertEqual(len({r["timestamp"] for r in rows[1:]}), min(1, len(rows) - 1))
        self.assertEqual([r["key"] for r in self.kafka.read(db + ".public.nokey")], [None])
        self.assertEqual(c.stop(), 0)

    def test_too_large_stops(self):
        db = self.pg.new_db()
        self.pg.sql(LARGE, db)
        c = self.pipeline(db).start()
        c.wait_log("streaming from", 60)
        topic = db + ".public.t_large"
        # Its own Kafka transaction, so that it stands whatever becomes of the next.
        self.pg.sql("INSERT INTO t_large VALUES (0, 'first of all')", db)
        wait_until("the first row", lambda: self.keys(topic) == [("c", 0)], 60)
        self.pg.sql(LARGE_CHANGES, db)
        self.assertEqual(c.wait(60), 1)
        for text in ('{"id":3}', topic, "max.message.bytes is 1048588", "cdcd.pos",
                     "errors.policy"):
            self.assertIn(text, c.logs())
        # Nothing of its transaction, row 1 at most before it; and the same again, not a step further.
        self.assertIn(self.keys(topic), ([("c", 0)], [("c", 0), ("c", 1)]))
        self.assertEqual(c.run("run", check=False).returncode, 1)
        self.assertIn(self.keys(topic), ([("c", 0)], [("c", 0), ("c", 1)]))
        # What the message says: raise the topic's limit.
        run([os.path.join(SUPPORT, "ktopic"), self.kafka.bootstrap, "set", topic,
             "cleanup.policy=compact", "max.message.bytes=20971520"])
        c.start()
        wait_until("the last row", lambda: ("c", 7) in self.keys(topic), 60)
        self.assertEqual(c.stop(), 0)
        self.assertEqual(self.keys(topic),
                         [("c", 0), ("c", 1), ("c", 2), ("c", 3), ("c", 4), ("c", 5), ("c", 6),
                          ("u", 6), ("d", 3), (None, 3), ("c", 7)])

    def test_too_large_by_policy(self):
        for policy in ("skip", "dead-letter"):
            with self.subTest(policy):
                db = self.pg.new_db()
                self.pg.sql(LARGE, db)
                c = self.pipeline(db, **{"errors.policy": policy}).start()
                c.wait_log("streaming from", 60)
                topic = db + ".public.t_large"
                self.pg.sql(LARGE_CHANGES, db)
                wait_until("the last row", lambda: ("c", 7) in self.keys(topic), 90)
                self.assertEqual(c.stop(), 0)
                self.assertEqual(self.keys(topic), [("c", 1), ("c", 2), ("c", 4), ("c", 6),
                                                    (None, 3), ("c", 7)])
                dead = self.kafka.read(db + ".dead-letter")
                if policy == "skip":
                    self.assertEqual(dead, [])
                    continue
                self.assertEqual([r["key"]["id"] for r in dead], [3, 5, 6, 3])
                for r in dead:
                    self.assertEqual(r["headers"]["cdcd.error.topic"], topic)
                    self.assertIn("too large", r["headers"]["cdcd.error.reason"])

    def test_too_large_in_a_snapshot(self):
        """Each try has a new view, so the row comes with another position: it is known by its key."""
        db = self.pg.new_db()
        self.pg.sql(LARGE, db)
        self.pg.sql("INSERT INTO t_large SELECT g, 'small' FROM generate_series(1, 20) g", db)
        self.pg.sql("UPDATE t_large SET v = (SELECT string_agg(md5(g::text || random()), '') FROM "
                    "generate_series(1, 60000) g) WHERE id IN (5, 9)", db)
        # Compressed: the broker alone can say what is too large.
        c = self.pipeline(db, **{"errors.policy": "skip", "properties": {"compression.type": "lz4"}})
        c.start()
        c.wait_log("snapshot complete", 90)
        self.pg.sql("INSERT INTO t_large VALUES (100, 'after')", db)
        topic = db + ".public.t_large"
        wait_until("the stream's row", lambda: ("c", 100) in self.keys(topic), 60)
        self.assertEqual(c.stop(), 0)
        rows = [k for op, k in self.keys(topic) if op == "r" and k < 100]
        self.assertEqual(sorted(rows), [k for k in range(1, 21) if k not in (5, 9)])


if __name__ == "__main__":
    cdcdtest.main()
