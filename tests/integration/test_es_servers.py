"""The search sink and real servers: killed, restarted, read-only, with the index deleted; and what
other products lose: errors of items in a bulk that answers 200, conflicting mappings, large documents."""
import json
import os
import sys
import threading
import time
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../support"))
import cdcdtest  # noqa: E402
from escase import EsCase, Search, random_load  # noqa: E402
from esstub import Stub  # noqa: E402

KINDS = os.environ.get("CDCD_TEST_SEARCH", "opensearch elasticsearch").split()

JSON_TABLE = "CREATE TABLE t (id int PRIMARY KEY, j jsonb, big text)"
CONFLICTS = """
INSERT INTO t VALUES
 (1,'{"f":1,"when":"2024-01-01","tags":["a"],"o":{"x":1}}',NULL),
 (2,'{"f":"text","when":"not a date","tags":{"k":1},"o":5}',NULL),
 (3,'{"f":1.5,"when":null,"tags":[],"o":null}',NULL),
 (4,'{"f":[1,[2]],"when":1704067200000,"o":{"x":{"y":1}}}',NULL),
 (5,'{"a.b":1,"a":{"b":2},"":3," ":4,"_id":"user field","_source":1}',NULL),
 (6,'{"n":12345678901234567890123,"d":1e400,"i":9007199254740993}',NULL);
INSERT INTO t SELECT 10, (SELECT jsonb_object_agg('k'||g,g) FROM generate_series(1,1200) g), NULL;
INSERT INTO t SELECT 20+g, '{"f":1}', repeat(md5(g::text),%d) FROM generate_series(1,40) g;
INSERT INTO t VALUES (99,'{"f":7}','after all');
"""
ALL = {str(i) for i in (1, 2, 3, 4, 5, 6, 10, 99)} | {str(20 + g) for g in range(1, 41)}

_servers = {}


def server(kind, *settings):
    key = (kind,) + settings
    if key not in _servers:
        _servers[key] = Search(kind, *settings)
        unittest.addModuleCleanup(_servers[key].stop)
    return _servers[key]


def each_kind(cls):
    for kind in KINDS:
        name = "%s_%s" % (cls.__name__, kind)
        globals()[name] = type(name, (cls,), {"kind": kind, "__module__": __name__})
    return None


class ServerCase(EsCase):
    kind = None
    settings = ()

    def setUp(self):
        super().setUp()
        self.server = server(self.kind, *self.settings)

    def documents(self):
        return self.server.documents(self.index)


@each_kind
class Servers(ServerCase):
    def load(self, stop):
        def run():
            i = 0
            while not stop.is_set():
                self.sql(random_load(i, 100))
                i += 1
        thread = threading.Thread(target=run)
        thread.start()
        return thread

    def during_load(self, what):
        c = self.started(self.server.url)
        stop = threading.Event()
        thread = self.load(stop)
        try:
            self.until("documents", lambda: self.server.ids(self.index), 60)
            what()
            time.sleep(1)
        finally:
            stop.set()
            thread.join()
        self.wait_equal(self.documents, 120)
        self.assertTrue(c.alive())
        self.assertEqual(c.stop(), 0)
        return c

    def test_kill_9_of_the_server(self):
        def what():
            for _ in range(2):
                self.server.kill()
                self.server.start_again()
                time.sleep(0.5)
        self.during_load(what)

    def test_restart_of_the_server(self):
        self.during_load(self.server.restart)

    def test_ten_seconds_down(self):
        def what():
            self.server.kill()
            time.sleep(10)
            self.server.start_again()
        c = self.during_load(what)
        self.assertIn("nothing could be written for", c.logs())

    def test_kill_9_of_cdcd(self):
        c = self.started(self.server.url)
        for i in range(10):
            self.sql(random_load(i, 300))
            c.kill()
            c.start()
        self.wait_equal(self.documents, 120)

    def test_read_only(self):
        c = self.started(self.server.url)
        self.sql("INSERT INTO t VALUES (1, 'a', 1)")
        self.wait_equal(self.documents)
        for block in ("write", "read_only_allow_delete"):
            self.server.request("PUT", "/%s/_settings" % self.index, {"index.blocks." + block: True})
            before = c.logs().count("takes writes again")
            self.sql("UPDATE t SET n = n + 1; INSERT INTO t SELECT max(id) + 1, 'b', 2 FROM t")
            self.until("the warning", lambda: c.logs().count("takes writes again") > before)
            self.assertTrue(c.alive())
            self.server.request("PUT", "/%s/_settings" % self.index, {"index.blocks." + block: None})
            self.wait_equal(self.documents)
        self.assertEqual(c.stop(), 0)

    def test_closed(self):
        c = self.started(self.server.url)
        self.sql("INSERT INTO t VALUES (1, 'a', 1)")
        self.wait_equal(self.documents)
        self.server.request("POST", "/%s/_close" % self.index)
        self.sql("INSERT INTO t VALUES (2, 'b', 2)")
        c.wait_log("index_closed_exception", 30)
        self.assertTrue(c.alive())
        self.server.request("POST", "/%s/_open" % self.index)
        self.wait_equal(self.documents)
        self.assertEqual(c.stop(), 0)

    def test_deleted(self):
        c = self.started(self.server.url)
        self.sql("INSERT INTO t VALUES (1, 'a', 1)")
        self.wait_equal(self.documents)
        real, = self.server.request("GET", "/%s/_alias" % self.index)
        self.server.request("DELETE", "/" + real)
        self.sql("INSERT INTO t VALUES (2, 'b', 2)")
        self.assertEqual(c.wait(60), 3)
        self.assertIn("cdcd replay", c.logs())
        self.assertEqual(self.server.call_raw("GET", "/" + self.index)[0], 404, "a part of it was made anew")
        c.start()
        self.assertEqual(c.wait(60), 3)
        self.assertEqual(self.server.call_raw("GET", "/" + self.index)[0], 404)

    def test_plain_index_deleted(self):
        """Without an alias the server makes another one by itself; it does not pass for the first one."""
        self.server.request("PUT", "/" + self.index, {"settings": {"number_of_replicas": 0}})
        c = self.started(self.server.url)
        self.sql("INSERT INTO t VALUES (1, 'a', 1)")
        self.wait_equal(self.documents)
        self.assertEqual(c.stop(), 0)
        c.start()
        self.sql("INSERT INTO t VALUES (2, 'b', 2)")
        self.wait_equal(self.documents)
        self.server.request("DELETE", "/" + self.index)
        self.sql("INSERT INTO t VALUES (3, 'c', 3)")
        for _ in range(2):
            self.assertEqual(c.wait(60), 3)
            self.assertIn("another one has its name now", c.logs())
            c.start()
        self.assertEqual(c.wait(60), 3)

    def test_second_instance(self):
        first = self.started(self.server.url)
        self.sql("INSERT INTO t VALUES (1, 'a', 1)")
        self.wait_equal(self.documents)
        second = self.pipeline(self.server.url).start()
        time.sleep(1)
        self.sql("INSERT INTO t VALUES (2, 'b', 2)")
        self.assertEqual(first.wait(60), 3)
        self.assertIn("another instance", first.logs())
        second.wait_log("streaming from", 60)
        self.wait_equal(self.documents)

    def test_versions_keep_what_is_newer(self):
        """A position that went back (here: was deleted) brings nothing older back."""
        c = self.started(self.server.url)
        self.sql("INSERT INTO t SELECT g, 'a', g FROM generate_series(1, 100) g")
        self.wait_equal(self.documents)
        newer = {"id": 7, "v": "newer", "n": 7}
        version = self.server.request("GET", "/%s/_doc/7" % self.index)["_version"]
        self.server.request("PUT", "/%s/_doc/7?version=%d&version_type=external" % (self.index, version * 2), newer)
        self.sql("UPDATE t SET v = 'b'")
        want = self.table()
        want["7"] = newer
        self.until("the others", lambda: self.documents() == want)
        self.assertEqual(c.stop(), 0)

    def test_check(self):
        c = self.started(self.server.url)
        self.sql("INSERT INTO t VALUES (1, 'a', 1)")
        self.wait_equal(self.documents)
        self.assertEqual(c.stop(), 0)
        out = json.loads(c.run("check", "--json", check=False).stdout)
        text = json.dumps(out)
        for word in ("privileges", "disk", "cluster health", "gc_deletes 24h", "holds a position"):
            self.assertIn(word, text)
        self.server.request("PUT", "/%s/_settings" % self.index, {"index.blocks.write": True})
        r = c.run("check", check=False)
        self.assertIn("takes no writes", r.stdout)
        self.assertEqual(r.returncode, 1)


@each_kind
class SmallRequests(ServerCase):
    settings = ("http.max_content_length=1mb",)

    def test_413(self):
        c = self.started(self.server.url, errors__policy="skip", bulk__max__bytes="8MB")
        self.sql("INSERT INTO t SELECT g, repeat(md5(g::text), 3000), g FROM generate_series(1, 60) g")
        self.sql("INSERT INTO t VALUES (100, repeat('x', 2000000), 1)")
        self.sql("INSERT INTO t VALUES (101, 'small', 1)")
        self.until("the last one", lambda: "101" in self.server.ids(self.index), 60)
        self.sql("DELETE FROM t WHERE id = 100")
        self.wait_equal(self.documents)
        self.assertEqual(c.stop(), 0)
        self.assertRegex(c.logs(), "left out: document_too_large.*_id 100")


class Throttled:
    """Real 429: of requests for lack of memory, of items for lack of room in the queue."""

    def test_429(self):
        c = self.started(self.server.url, bulk__max__requests=8, bulk__max__bytes="1MB")
        self.sql("INSERT INTO t SELECT g, md5(g::text), g FROM generate_series(1, 9000) g")
        self.sql("UPDATE t SET n = -n WHERE id % 3 = 0; DELETE FROM t WHERE id % 7 = 0")
        self.wait_equal(self.documents, 120)
        self.assertEqual(c.stop(), 0)
        self.assertRegex(c.logs(), r"[1-9]\d* times too much", "there was room enough")


@each_kind
class LittleRoom(Throttled, ServerCase):
    settings = ("indexing_pressure.memory.limit=256kb",)


@each_kind
class ShortQueue(Throttled, ServerCase):
    settings = ("thread_pool.write.size=1", "thread_pool.write.queue_size=1", "node.processors=1")


@each_kind
class ErrorsOfItems(ServerCase):
    """Items that fail in a bulk that answers 200: none is lost, none holds up the others."""
    DDL = JSON_TABLE
    LARGE = 100000  # times 32: 3.2 MB each, 128 MB in all

    def rows(self):
        text = self.sql("SELECT json_object_agg(id, json_build_object('j', j::text, 'big', big)) FROM t "
                        "WHERE id < 20 OR id > 90")
        return json.loads(text)

    def compare_large(self):
        for i in (21, 40, 60):
            doc = json.loads(self.server.source(self.index, str(i)))
            self.assertEqual(len(doc["big"]), 32 * self.LARGE)

    def test_json_as_text(self):
        """Nothing conflicts, and every digit stays."""
        c = self.started(self.server.url)
        self.sql(CONFLICTS % self.LARGE)
        self.until("all", lambda: self.server.ids(self.index) == ALL, 180)
        for i, row in self.rows().items():
            doc = json.loads(self.server.source(self.index, i))
            self.assertEqual((doc["j"], doc["big"]), (row["j"], row["big"]), i)
        digits = self.server.source(self.index, "6")
        for number in (b"12345678901234567890123", b"9007199254740993", b"1" + b"0" * 400):
            self.assertIn(number, digits)
        self.compare_large()
        self.assertEqual(c.stop(), 0)

    def test_json_nested_stops(self):
        c = self.started(self.server.url, json="nested")
        self.sql(CONFLICTS % 10)
        self.assertEqual(c.wait(120), 1)
        for text in ("index " + self.index, "_id ", "cdcd.pos", "errors.policy"):
            self.assertIn(text, c.logs())

    def nested(self, policy):
        c = self.started(self.server.url, json="nested", errors__policy=policy,
                         dead__letter__index="letters-" + self.db)
        self.sql(CONFLICTS % 10)
        self.until("the last one", lambda: "99" in self.server.ids(self.index), 120)
        self.sql("SELECT pg_logical_emit_message(true, 'end', 'x')")
        self.end = self.pg.lsn(self.db)
        self.until("all is acknowledged", self.confirmed, 60)
        there = self.server.ids(self.index)
        self.assertLessEqual({"1", "3", "99"} | {str(20 + g) for g in range(1, 41)}, there)
        self.assertFalse({"2", "10"} & there)
        self.assertEqual(c.stop(), 0)
        return c, there

    def test_json_nested_dead_letter(self):
        c, there = self.nested("dead-letter")
        letters = self.server.documents("letters-" + self.db)
        refused = {d["id"] for d in letters.values()}
        self.assertEqual(refused | there, ALL)
        self.assertFalse(refused & there)
        for d in letters.values():
            self.assertEqual(d["key"], '{"id":%s}' % d["id"])
            self.assertTrue(d["error"]["reason"])
        ten, = [d for d in letters.values() if d["id"] == "10"]
        self.assertIn("total fields", ten["error"]["reason"])
        self.assertEqual(json.loads(json.loads(ten["value"])["after"]["j"])["k1200"], 1200)
        six = b"".join(json.dumps(d["value"]).encode() for d in letters.values() if d["id"] == "6") \
            if "6" in refused else self.server.source(self.index, "6")
        for number in (b"12345678901234567890123", b"9007199254740993", b"1" + b"0" * 400):
            self.assertIn(number, six)

    def test_json_nested_skip(self):
        c, there = self.nested("skip")
        self.assertIn("%d documents were left out" % len(ALL - there), c.logs())

    def test_more_fields(self):
        c = self.started(self.server.url, json="nested",
                         index__settings={"number_of_replicas": 0, "mapping.total_fields.limit": 3000})
        self.sql("INSERT INTO t SELECT 10, (SELECT jsonb_object_agg('k'||g,g) FROM generate_series(1,1200) g), NULL")
        self.until("it", lambda: self.server.ids(self.index) == {"10"}, 60)
        self.assertEqual(c.stop(), 0)


class ErrorsOfRequests(EsCase):
    """The same rows, and a server that answers 429, 413 and 503, and cuts connections."""
    DDL = JSON_TABLE

    def test_all(self):
        with Stub() as stub:
            stub.max_bytes = 10 << 20
            stub.item_429 = 0.3
            stub.next += [("status", 429), None, ("status", 503), ("reset",), None, ("cut",)]
            c = self.started(stub.url, bulk__max__bytes="64MB")
            self.sql(CONFLICTS % 100000)
            self.until("all", lambda: set(stub.documents(self.index)) == ALL, 180)
            self.assertEqual(stub.next, [])
            self.assertEqual(stub.documents(self.index)["99"]["big"], "after all")
            self.assertEqual(c.stop(), 0)


if __name__ == "__main__":
    cdcdtest.main()
