"""Values that the log leaves out as they did not change, and TRUNCATE: from PostgreSQL into an index."""
import json
import os
import random
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../support"))
import cdcdtest  # noqa: E402
import escase  # noqa: E402
from cdcdtest import wait_until  # noqa: E402

# Of hexadecimal digits, so that compression does not bring it below the limit of TOAST.
BIG = "(SELECT string_agg(md5(i::text || '%s'), '') FROM generate_series(1, 300) i)"
DDL = "CREATE TABLE t (id int PRIMARY KEY, v text, n numeric, big text, raw bytea)"


class Base(escase.EsCase):
    DDL = DDL
    SERVER = "opensearch"

    @classmethod
    def setUpClass(cls):
        cls.es = escase.Search(cls.SERVER)
        cls.addClassCleanup(cls.es.stop)

    def insert(self, *ids):
        for i in ids:
            self.sql("INSERT INTO t VALUES (%d, 'v', 12.50, %s, decode(%s, 'hex'))" % (i, BIG % i, BIG % -i))

    def table(self):
        text = self.sql("SELECT coalesce(json_object_agg(id, json_build_object('id', id, 'v', v, 'n', n, 'big', big, "
                        "'raw', translate(encode(raw, 'base64'), E'\\n', ''))), '{}') FROM t")
        return json.loads(text)

    def same(self, timeout=60):
        self.wait_equal(lambda: self.es.documents(self.index), timeout)


class Toast(Base):
    def test_values_stay_byte_for_byte(self):
        self.insert(1, 2, 3)
        self.started(self.es.url)
        self.same()
        self.sql("UPDATE t SET v = 'w' WHERE id = 1")
        self.same()
        # Several of one row in one request, a large value changed between.
        self.sql("BEGIN; UPDATE t SET v = 'a' WHERE id = 2; UPDATE t SET big = %s WHERE id = 2;"
                 "UPDATE t SET v = 'b' WHERE id = 2; UPDATE t SET n = 1.000 WHERE id = 2; COMMIT;" % (BIG % "x"))
        self.sql("UPDATE t SET raw = 'x' WHERE id = 3")
        self.same()
        source = self.es.source(self.index, "2")
        self.assertIn(b'"n":1.000', source)
        self.assertNotIn(b"unavailable", source)

    def kept(self):
        """What the state index keeps of rows whose key has changed."""
        return [i for i in self.es.ids("cdcd-state") if i.startswith(self.db + ".moved.")]

    def test_a_new_key_keeps_the_columns(self):
        self.insert(*range(1, 9))
        self.started(self.es.url)
        self.same()
        self.sql("UPDATE t SET id = 90 WHERE id = 1; UPDATE t SET id = 91, v = 'w' WHERE id = 2")
        # From one to the next in one transaction, one that changes before and after, two that trade places, a
        # key that another row had, and one that carries all columns.
        self.sql("BEGIN; UPDATE t SET id = 92 WHERE id = 3; UPDATE t SET id = 93 WHERE id = 92; COMMIT;"
                 "BEGIN; UPDATE t SET big = %s WHERE id = 4; UPDATE t SET id = 94 WHERE id = 4; UPDATE t SET v = 'x' "
                 "WHERE id = 94; COMMIT;"
                 "BEGIN; UPDATE t SET id = 95 WHERE id = 5; UPDATE t SET id = 5 WHERE id = 6;"
                 "UPDATE t SET id = 6 WHERE id = 95; COMMIT;"
                 "BEGIN; DELETE FROM t WHERE id = 7; UPDATE t SET id = 7 WHERE id = 8; COMMIT;"
                 "UPDATE t SET id = 96, big = 'b', raw = 'r' WHERE id = 7" % (BIG % "n"))
        self.same()
        self.assertEqual(sorted(self.es.documents(self.index)), ["5", "6", "90", "91", "93", "94", "96"])
        self.assertEqual(self.kept(), [])

    def test_a_new_key_of_a_document_that_is_not_there(self):
        self.insert(1)
        c = self.started(self.es.url)
        self.same()
        c.kill()
        self.es.request("DELETE", "/%s-000001" % self.index)
        self.es.request("PUT", "/%s-000001" % self.index, {"aliases": {self.index: {"is_write_index": True}}})
        self.sql("UPDATE t SET id = 9")
        c = self.pipeline(self.es.url).start()
        self.assertEqual(c.wait(60), 1)
        self.assertIn("REPLICA IDENTITY FULL", c.logs())
        self.assertEqual(self.es.documents(self.index), {})

    def new_keys_through_kafka(self, partitions, instances, more=lambda i, row: ""):
        kafka = cdcdtest.Kafka("group.min.session.timeout.ms=1000")
        self.addCleanup(kafka.stop)
        capture = self.pipeline(None)
        capture.config["sink"] = {"kafka": {"bootstrap.servers": kafka.bootstrap, "topic.partitions": partitions}}
        self.insert(*range(30))
        capture.start()
        capture.wait_log("streaming from", 60)
        indexes = []
        for _ in range(instances):
            c = self.pipeline(self.es.url)
            c.config["source"] = {"kafka": {"bootstrap.servers": kafka.bootstrap, "topics.refresh.interval.ms": 300,
                                            "properties": {"session.timeout.ms": 1500, "heartbeat.interval.ms": 200}}}
            indexes.append(c.start())
        r = random.Random(partitions)
        for i in range(60):
            row = r.randrange(30)
            self.sql("UPDATE t SET id = -id, v = 'k%d' WHERE id = %d; UPDATE t SET v = 'u%d' WHERE id %% 7 = %d;"
                     % (i, row, i, i % 7) + more(i, row))
            if i % 20 == 10:
                c = indexes[i // 20 % instances]
                c.kill()
                c.start()
        want = self.table()
        self.until("the index to be equal", lambda: self.es.documents(self.index) == want, 120)
        for c in indexes:
            self.assertEqual(c.stop(), 0)
        # The delete may come again after another instance has written the row.
        self.assertEqual(self.kept() if instances == 1 else [], [])

    def test_new_keys_through_kafka(self):
        """There and back, and on: in one partition everything is in order."""
        self.new_keys_through_kafka(1, 1, lambda i, row: "UPDATE t SET id = -id WHERE id = -%d; UPDATE t SET id = "
                                    "%d WHERE id = %d" % (row, 1000 + i, (row + 11) % 30))

    def test_new_keys_through_several_partitions(self):
        self.new_keys_through_kafka(4, 2)

    def test_a_new_key_with_full_identity(self):
        self.sql("ALTER TABLE t REPLICA IDENTITY FULL")
        self.insert(1)
        self.started(self.es.url)
        self.same()
        self.sql("UPDATE t SET id = 9")
        self.same()

    def test_deleted_and_written_anew(self):
        self.insert(1)
        self.started(self.es.url)
        self.same()
        self.sql("BEGIN; UPDATE t SET v = 'a'; DELETE FROM t; INSERT INTO t VALUES (1, 'new', 1, %s, 'r');"
                 "UPDATE t SET v = 'b'; COMMIT" % (BIG % "n"))
        self.same()
        self.sql("UPDATE t SET v = 'c'; DELETE FROM t")
        self.same()

    def test_a_document_that_is_not_there(self):
        self.insert(1, 2)
        c = self.started(self.es.url)
        self.same()
        c.kill()
        self.es.request("DELETE", "/%s-000001" % self.index)
        # An index that lacks the document, as by hand.
        self.es.request("PUT", "/%s-000001" % self.index, {"aliases": {self.index: {"is_write_index": True}}})
        self.sql("UPDATE t SET v = 'w' WHERE id = 1")
        c = self.pipeline(self.es.url).start()
        self.assertEqual(c.wait(60), 1)
        self.assertIn("the record does not carry the unchanged column big", c.logs())
        self.assertIn("REPLICA IDENTITY FULL", c.logs())
        self.assertEqual(self.es.documents(self.index), {})
        # A whole row in the same request stands for the one before, which then may lack what it will.
        self.sql("UPDATE t SET big = big || '', raw = raw || '' WHERE id = 1")
        self.pipeline(self.es.url, errors__policy="skip").start()
        wait_until("the document", lambda: self.es.documents(self.index).get("1") == self.table()["1"])

    def test_a_document_that_was_deleted_and_the_index_has_forgotten_it(self):
        """As after a crash, when records come again and the server was restarted, too."""
        self.insert(1, 2, 3)
        c = self.started(self.es.url)
        self.same()
        c.kill()
        self.es.request("DELETE", "/%s-000001" % self.index)
        self.es.request("PUT", "/%s-000001" % self.index, {"aliases": {self.index: {"is_write_index": True}}})
        # Each in a request of its own.
        self.sql("DELETE FROM t WHERE id = 3; UPDATE t SET v = 'w'; UPDATE t SET v = 'x' WHERE id = 1;"
                 "UPDATE t SET big = 'y', raw = 'z' WHERE id = 1; UPDATE t SET v = 'y' WHERE id = 1;"
                 "DELETE FROM t WHERE id = 2")
        c = self.pipeline(self.es.url, bulk__max__bytes=1024).start()
        self.same()
        self.assertEqual(c.stop(), 0)

    def test_leave_out_and_stop(self):
        self.insert(1)
        self.started(self.es.url, missing__columns="leave-out")
        self.same()
        self.sql("UPDATE t SET v = 'w'")
        wait_until("the update", lambda: self.es.documents(self.index) == {"1": {"id": 1, "v": "w", "n": 12.5}})
        self._runs[-1].stop()
        self.sql("UPDATE t SET v = 'x'")
        c = self.pipeline(self.es.url, missing__columns="stop").start()
        self.assertEqual(c.wait(60), 1)
        self.assertIn("missing.columns is stop", c.logs())

    def test_random_load_and_kills(self):
        r = random.Random(11)
        self.insert(*range(40))
        c = self.started(self.es.url)
        for _ in range(6):
            sql = []
            for i in range(300):
                row = r.randrange(40)
                sql.append(r.choice([
                    "UPDATE t SET v = 'u%d' WHERE id = %d;" % (i, row),
                    "UPDATE t SET v = 'u%d', n = n + 1 WHERE id = %d;" % (i, row),
                    "UPDATE t SET big = %s WHERE id = %d;" % (BIG % i, row),
                    "DELETE FROM t WHERE id = %d;" % row,
                    "UPDATE t SET id = -id, v = 'k%d' WHERE id = %d AND NOT EXISTS (SELECT FROM t WHERE id = -%d);" % (
                        i, row, row) + ("UPDATE t SET id = -id WHERE id = -%d AND NOT EXISTS (SELECT FROM t WHERE "
                                        "id = %d);" % (row, row) if i % 2 else ""),
                    "INSERT INTO t VALUES (%d, 'i', 1, %s, 'r') ON CONFLICT DO NOTHING;" % (row, BIG % i),
                    "COMMIT; BEGIN;"]))
            self.sql("BEGIN;" + "\n".join(sql) + "COMMIT;")
            c.kill()
            c.start()
        self.same(120)

    def interrupt_snapshot(self, c, more=""):
        """In the table before t; then rows of t change that it has not read."""
        self.insert(1, 2, 3)
        self.sql("CREATE TABLE a (id int PRIMARY KEY, i interval); INSERT INTO a VALUES (1, '178000000 years')")
        c.start()
        self.assertEqual(c.wait(60), 1)
        self.assertIn("interval", c.logs())
        self.sql("DELETE FROM a; UPDATE t SET v = 'w'; UPDATE t SET n = 7; DELETE FROM t WHERE id = 2;"
                 "UPDATE t SET raw = 'x' WHERE id = 3;" + more)
        c.start()
        c.wait_log("publishing the changes up to the new snapshot first", 60)

    def test_changes_before_an_interrupted_snapshot_has_the_rows(self):
        c = self.pipeline(self.es.url)
        self.interrupt_snapshot(c)
        self.same()
        self.assertEqual(sorted(self.es.documents(self.index)), ["1", "3"])
        self.sql("UPDATE t SET v = 'y'")
        self.same()

    def test_new_key_before_an_interrupted_snapshot_has_the_row(self):
        c = self.pipeline(self.es.url)
        self.interrupt_snapshot(c, "UPDATE t SET id = 9 WHERE id = 1;")
        self.same()
        self.assertEqual(sorted(self.es.documents(self.index)), ["3", "9"])

    def test_interrupted_snapshot_through_kafka(self):
        kafka = cdcdtest.Kafka()
        self.addCleanup(kafka.stop)
        capture = self.pipeline(None)
        capture.config["sink"] = {"kafka": {"bootstrap.servers": kafka.bootstrap}}
        index = self.pipeline(self.es.url)
        index.config["source"] = {"kafka": {"bootstrap.servers": kafka.bootstrap, "topics.refresh.interval.ms": 300}}
        self.interrupt_snapshot(capture)
        index.start()
        want = self.table()
        self.until("the index to be equal", lambda: self.es.documents(self.index) == want, 60)
        self.assertEqual(index.stop(), 0)
        rows = [r for r in kafka.read(self.index) if r["key"]["id"] == 3]
        self.assertEqual([(r["value"]["op"], r["headers"].get("cdcd.row")) for r in rows],
                         [("u", "follows")] * 3 + [("r", None)])

    def test_truncate(self):
        self.insert(1, 2)
        c = self.pipeline(self.es.url)
        c.config["format"] = {"debezium": {"skipped.operations": "none"}}
        c.start()
        c.wait_log("streaming from", 60)
        self.sql("INSERT INTO t SELECT i, 'x' FROM generate_series(10, 5009) i")
        self.same()
        self.sql("BEGIN; INSERT INTO t VALUES (6000, 'before'); TRUNCATE t; INSERT INTO t VALUES (1, 'after'); COMMIT;"
                 "INSERT INTO t VALUES (2, 'later')")
        self.same()
        self.assertEqual(sorted(self.es.documents(self.index)), ["1", "2"])
        self.sql("TRUNCATE t")
        self.same()
        self.assertRegex(c.logs(), r"TRUNCATE: 500[0-9] documents deleted")

    def test_truncate_by_the_other_modes(self):
        self.insert(1, 2)
        c = self.pipeline(self.es.url, truncate="stop")
        c.config["format"] = {"debezium": {"skipped.operations": "none"}}
        c.start()
        c.wait_log("streaming from", 60)
        self.same()
        self.sql("TRUNCATE t")
        self.assertEqual(c.wait(60), 1)
        self.assertIn("truncate is stop", c.logs())
        self.assertEqual(len(self.es.documents(self.index)), 2)
        c.config["sink"]["elasticsearch"]["truncate"] = "ignore"
        c.start()
        c.wait_log("TRUNCATE passed over", 60)
        self.sql("INSERT INTO t VALUES (7, 'x')")
        wait_until("the row", lambda: sorted(self.es.documents(self.index)) == ["1", "2", "7"])


class ToastElasticsearch(Base):
    SERVER = "elasticsearch"
    test_values_stay_byte_for_byte = Toast.test_values_stay_byte_for_byte
    test_truncate = Toast.test_truncate


if __name__ == "__main__":
    cdcdtest.main()
