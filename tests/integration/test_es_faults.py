"""The search sink when the server has no room, no time, no patience or no connection, with a
stand-in that makes faults to order. In the end index and table are equal."""
import base64
import json
import os
import random
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../support"))
import cdcdtest  # noqa: E402
from cdcdtest import wait_until  # noqa: E402
from escase import EsCase, random_load  # noqa: E402
from esstub import Stub  # noqa: E402
import mycase  # noqa: E402


class StubCase(EsCase):
    stub_args = {}

    def setUp(self):
        super().setUp()
        self.stub = Stub(**self.stub_args).start()
        self.addCleanup(self.stub.stop)

    def documents(self):
        return self.stub.documents(self.index)

    def items(self):
        return [item for _, log in self.stub.bulks for item in log]

    def statuses(self):
        return {status for _, _, status in self.items()}


class Faults(StubCase):
    def through(self, load=None, timeout=60, **sink):
        c = self.started(self.stub.url, **sink)
        for i in range(3):
            self.sql(load(i) if load else random_load(i, 800))
        self.wait_equal(self.documents, timeout)
        return c

    def test_nothing_wrong(self):
        c = self.through()
        self.assertEqual(c.stop(), 0)
        self.assertLessEqual(self.statuses(), {200, 201, 404})
        self.assertEqual(self.stub.most_concurrent, 2)

    def test_items_429(self):
        self.stub.item_429 = 0.3
        c = self.through()
        self.assertIn(429, self.statuses())
        # Of one id nothing older was sent after something newer had been taken, unless it was refused.
        self.assertEqual(c.stop(), 0)

    def test_items_429_are_sent_alone(self):
        """All of the first requests, to learn which items were refused; then only those."""
        self.stub.item_429 = 0.3
        self.sql("INSERT INTO t SELECT g, 'x', g FROM generate_series(1, 500) g")
        c = self.started(self.stub.url)
        self.wait_equal(self.documents)
        before = len(self.items())
        self.sql("INSERT INTO t SELECT g, 'x', g FROM generate_series(501, 1000) g")
        self.wait_equal(self.documents)
        taken = [i for verb, i, status in self.items()[before:] if status in (200, 201)]
        self.assertEqual(len(taken), 500, "a document that was taken was sent again")
        self.assertEqual(c.stop(), 0)

    def test_whole_429(self):
        self.stub.next += [("status", 429), ("status", 429, {"Retry-After": "1"}), ("status", 429)]
        self.through()
        self.assertEqual(self.stub.next, [])

    def test_503_502_504(self):
        self.stub.next += [("status", 503), ("status", 502), ("status", 504), ("status", 500)]
        self.through()
        self.assertEqual(self.stub.next, [])

    def test_reset_after_it_was_applied(self):
        self.stub.next += [("reset",)] * 4
        self.through()
        self.assertEqual(self.stub.next, [])

    def test_cut_before_it_was_applied(self):
        self.stub.next += [("cut",)] * 4
        self.through()
        self.assertEqual(self.stub.next, [])

    def test_replies_that_are_none(self):
        self.stub.next += [("garbage",), ("garbage", b""), ("garbage", b"{}"), ("garbage", b"[1"),
                           ("garbage", b'{"errors":false,"items":[{"index":{}}]}'), ("short",),
                           ("garbage", b'{"errors":false,"items":[]}')]
        self.through()
        self.assertEqual(self.stub.next, [])

    def test_slow(self):
        self.stub.delay = 0.4
        c = self.pipeline(self.stub.url, request__timeout__ms="200ms").start()
        c.wait_log("streaming from", 60)
        self.sql(random_load(7, 300))
        self.until("requests", lambda: self.stub.count_bulks() >= 3)
        self.stub.delay = 0.05
        self.wait_equal(self.documents)
        self.assertEqual(c.stop(), 0)

    def test_all_at_once(self):
        self.stub.item_429 = 0.2
        kinds = [("status", 429), ("status", 503), ("reset",), ("cut",), ("garbage",)]
        r = random.Random(5)
        self.stub.next += [r.choice(kinds) if r.random() < 0.5 else None for _ in range(60)]
        self.through(timeout=120)

    def test_413(self):
        self.stub.max_bytes = 20000
        self.sql("INSERT INTO t SELECT g, repeat('x', 100 * (g % 50)), g FROM generate_series(1, 500) g")
        c = self.started(self.stub.url)
        self.wait_equal(self.documents)
        self.assertLessEqual(max(n for n, _ in self.stub.bulks), 20000)
        self.assertEqual(c.stop(), 0)

    def test_413_one_document_stops(self):
        self.stub.max_bytes = 20000
        c = self.started(self.stub.url)
        self.sql("INSERT INTO t VALUES (1, 'small', 1)")
        self.sql("INSERT INTO t VALUES (2, repeat('x', 30000), 2)")
        self.assertEqual(c.wait(60), 1)
        for text in (self.index, "_id 2", "cdcd.pos", "HTTP 413", "max_content_length", "errors.policy"):
            self.assertIn(text, c.logs())
        self.assertNotIn("2", self.documents())

    def test_413_one_document_is_left_out(self):
        self.stub.max_bytes = 20000
        c = self.started(self.stub.url, errors__policy="skip")
        self.sql("INSERT INTO t VALUES (1, 'small', 1), (2, repeat('x', 30000), 2), (3, 'small', 3)")
        self.sql("INSERT INTO t VALUES (4, 'small', 4)")
        self.until("the others", lambda: set(self.documents()) == {"1", "3", "4"})
        self.sql("DELETE FROM t WHERE id = 2")
        self.wait_equal(self.documents)
        self.assertEqual(c.stop(), 0)
        self.assertRegex(c.logs(), r"left out: document_too_large.*_id 2")

    def test_413_one_document_to_the_dead_letter_index(self):
        self.stub.max_bytes = 20000
        c = self.started(self.stub.url, errors__policy="dead-letter")
        self.sql("INSERT INTO t VALUES (1, 'small', 1), (2, repeat('x', 30000), 2), (3, 'small', 3)")
        self.until("the dead letter", lambda: self.stub.documents("cdcd-dead-letter"))
        self.until("the others", lambda: set(self.documents()) == {"1", "3"})
        letter, = self.stub.documents("cdcd-dead-letter").values()
        self.assertEqual((letter["topic"], letter["id"], letter["key"]), (self.index, "2", '{"id":2}'))
        self.assertEqual(letter["error"]["type"], "document_too_large")
        self.assertGreater(letter["value_bytes"], 30000)
        self.assertEqual(c.stop(), 0)

    def test_many_are_too_many(self):
        """Fewer requests at a time after 429; more again later."""
        c = self.started(self.stub.url, bulk__max__requests=4, bulk__max__bytes="64KB")
        self.stub.next += [("status", 429)] * 3
        for i in range(4):
            self.sql("INSERT INTO t SELECT g, 'x', g FROM generate_series(%d, %d) g" % (i * 5000, i * 5000 + 4999))
        self.wait_equal(self.documents)
        self.assertEqual(c.stop(), 0)

    def test_no_server_for_a_while(self):
        c = self.started(self.stub.url)
        self.sql(random_load(1, 500))
        self.stub.stop()
        self.sql(random_load(2, 500))
        time.sleep(3)
        self.assertTrue(c.alive())
        self.sql(random_load(3, 500))
        self.stub.start()
        self.wait_equal(self.documents)
        self.assertEqual(c.stop(), 0)

    def test_no_server_at_the_start(self):
        self.stub.stop()
        self.sql(random_load(1, 300))
        c = self.pipeline(self.stub.url).start()
        c.wait_log("no answer from http://127", 60)
        self.stub.start()
        c.wait_log("streaming from", 60)
        self.wait_equal(self.documents)

    def test_stop_without_a_server(self):
        c = self.started(self.stub.url)
        self.sql(random_load(1, 200))
        self.wait_equal(self.documents)
        self.stub.stop()
        self.sql(random_load(2, 200))
        time.sleep(0.5)
        self.assertEqual(c.stop(60), 0)
        self.stub.start()
        c.start()
        self.wait_equal(self.documents)

    def test_kill_9(self):
        c = self.started(self.stub.url)
        self.stub.item_429 = 0.1
        self.stub.delay = 0.02
        for i in range(8):
            self.sql(random_load(i, 300))
            time.sleep(random.Random(i).random() * 0.3)
            c.kill()
            c.start()
        self.wait_equal(self.documents)

    def test_blocked(self):
        c = self.started(self.stub.url)
        self.sql("INSERT INTO t VALUES (1, 'a', 1)")
        self.wait_equal(self.documents)
        self.stub.blocked.add(self.index)
        self.sql("INSERT INTO t VALUES (2, 'b', 2)")
        c.wait_log("blocked by", 30)
        c.wait_log("takes writes again", 30)
        time.sleep(1)
        self.assertTrue(c.alive())
        self.stub.blocked.clear()
        self.wait_equal(self.documents)

    def test_index_deleted(self):
        c = self.started(self.stub.url)
        self.sql("INSERT INTO t VALUES (1, 'a', 1)")
        self.wait_equal(self.documents)
        with self.stub.lock:
            self.stub.indexes.pop(self.index + "-000001")
            self.stub.aliases.pop(self.index)
        self.sql("INSERT INTO t VALUES (2, 'b', 2)")
        self.assertEqual(c.wait(60), 3)
        self.assertIn("cdcd replay", c.logs())
        self.assertNotIn(self.index, self.stub.indexes)
        # Nor does the next start make one that holds a part only.
        c.start()
        self.assertEqual(c.wait(60), 3)
        self.assertNotIn(self.index, self.stub.aliases)

    def test_state_deleted(self):
        """What was in the index before is not passed over in silence."""
        c = self.started(self.stub.url)
        self.sql("INSERT INTO t VALUES (1, 'a', 1)")
        self.wait_equal(self.documents)
        self.assertNotIn("documents already", c.logs())
        with self.stub.lock:
            del self.stub.indexes["cdcd-state"]
        self.sql("INSERT INTO t VALUES (2, 'b', 2)")
        self.assertEqual(c.wait(60), 3)
        self.assertIn("rows that were deleted meanwhile stay in them", c.logs())
        c.start()
        c.wait_log("the index %s has 2 documents already, and this pipeline begins anew" % self.index, 60)

    def test_second_instance(self):
        first = self.started(self.stub.url)
        self.sql("INSERT INTO t VALUES (1, 'a', 1)")
        self.wait_equal(self.documents)
        second = self.pipeline(self.stub.url).start()
        time.sleep(1)
        self.sql("INSERT INTO t VALUES (2, 'b', 2)")
        self.assertEqual(first.wait(60), 3)
        self.assertIn("another instance", first.logs())
        second.wait_log("streaming from", 60)
        self.wait_equal(self.documents)


class OtherRequests(StubCase):
    """What is asked of the server besides the bulks is asked again in its place: no session ends by it."""
    BIG = "(SELECT string_agg(md5(i::text || '%s'), '') FROM generate_series(1, 300) i)"

    def started(self, url, **sink):
        return super().started(url, retry__delay__ms="2ms", **sink)

    def faults(self, *faults):
        """With "reset", which does what it was asked for, as the last one."""
        for i, (method, pattern) in enumerate(faults):
            for how in ((429, "cut", "reset"), (503, 500, "reset"))[i % 2]:
                self.stub.fault(method, pattern, how)

    def all_done(self, c):
        left = [f for f in self.stub.faults if f[3]]
        self.assertEqual(left, [])
        self.assertNotIn("trying again in", c.logs())
        self.assertEqual(c.stop(), 0)

    def test_making_an_index(self):
        c = self.started(self.stub.url)
        self.faults(("GET", "/_alias/"), ("GET", "/_settings"), ("GET", r"/cdcd-state/_doc/.*\.index\."),
                    ("PUT", "/_index_template/"), ("PUT", "-000001$"), ("PUT", r"/cdcd-state/_doc/.*\.index\."))
        self.sql("INSERT INTO t VALUES (1, 'a', 1), (2, 'b', 2)")
        self.wait_equal(self.documents)
        self.all_done(c)

    def test_new_columns(self):
        c = self.started(self.stub.url)
        self.sql("INSERT INTO t VALUES (1, 'a', 1)")
        self.wait_equal(self.documents)
        self.faults(("GET", "/_mapping"), ("PUT", "/_mapping"))
        self.sql("ALTER TABLE t ADD w text; UPDATE t SET w = 'w'")
        self.wait_equal(self.documents)
        self.all_done(c)

    def test_columns_that_records_do_not_carry(self):
        self.sql("ALTER TABLE t ADD big text")
        self.sql("INSERT INTO t SELECT g, 'a', g, %s FROM generate_series(1, 200) g" % (self.BIG % "x"))
        c = self.started(self.stub.url)
        self.wait_equal(self.documents)
        self.faults(("POST", "/_mget"))
        self.sql("UPDATE t SET n = -n")
        self.sql("BEGIN; UPDATE t SET v = 'b' WHERE id < 50; UPDATE t SET n = 0 WHERE id < 20; COMMIT")
        self.wait_equal(self.documents)
        self.all_done(c)

    def test_truncate(self):
        c = self.pipeline(self.stub.url, retry__delay__ms="2ms")
        c.config["format"] = {"debezium": {"skipped.operations": "none"}}
        c.start()
        self.sql("INSERT INTO t SELECT g, 'a', g FROM generate_series(1, 5000) g")
        c.wait_log("streaming from", 60)
        self.wait_equal(self.documents)
        self.faults(("POST", "/_refresh"), ("POST", r"/_search$"), ("POST", "/_search/scroll"))
        self.stub.next += [("status", 429), ("status", 503), ("cut",), ("reset",)]
        self.sql("TRUNCATE t; INSERT INTO t VALUES (7, 'after', 7)")
        self.wait_equal(self.documents)
        self.all_done(c)

    def test_dead_letter_index(self):
        self.stub.refuse = lambda d: (400, "mapper_parsing_exception", "no") if d.get("v") == "bad" else None
        c = self.started(self.stub.url, errors__policy="dead-letter", dead__letter__index="letters")
        self.faults(("HEAD", "/letters"), ("PUT", "/letters"))
        self.sql("INSERT INTO t VALUES (1, 'good', 1), (2, 'bad', 2), (3, 'good', 3)")
        self.until("the letter", lambda: self.stub.documents("letters"))
        self.until("the others", lambda: set(self.documents()) == {"1", "3"})
        self.assertIn("keyword", json.dumps(self.stub.indexes["letters"].mappings), "made by a bulk")
        self.all_done(c)

    def test_state(self):
        c = self.started(self.stub.url)
        self.sql("INSERT INTO t VALUES (1, 'a', 1)")
        self.wait_equal(self.documents)
        self.faults(("PUT", "/cdcd-state/_doc/%s$" % self.db), ("GET", "/cdcd-state/_doc/%s$" % self.db))
        for i in range(2, 6):
            self.sql("INSERT INTO t VALUES (%d, 'a', 1)" % i)
            self.wait_equal(self.documents)
        self.assertNotIn("trying again in", c.logs())
        self.assertEqual(c.stop(), 0)

    def test_told_and_stopped_meanwhile(self):
        """The log tells what it waits for, and a SIGTERM ends it all the same; nothing is lost."""
        c = self.started(self.stub.url)
        self.stub.fault("PUT", "-000001$", 503, 10**9)
        self.sql(random_load(1, 200))
        c.wait_log("nothing could be written for .*PUT /.*-000001: HTTP 503", 40)
        self.assertTrue(c.alive())
        before = time.monotonic()
        self.assertEqual(c.stop(60), 0)
        self.assertLess(time.monotonic() - before, 30)
        self.stub.faults.clear()
        c.start()
        self.wait_equal(self.documents)
        self.assertEqual(c.stop(), 0)


class Login(StubCase):
    def test_basic(self):
        self.stub.authorization = "Basic " + base64.b64encode(b"cdcd:se:cret").decode()
        c = self.started(self.stub.url, username="cdcd", password="se:cret")
        self.sql("INSERT INTO t VALUES (1, 'a', 1)")
        self.wait_equal(self.documents)
        self.assertNotIn("se:cret", c.logs())
        with open("/proc/%d/cmdline" % c.process.pid) as f:
            self.assertNotIn("se:cret", f.read())

    def test_in_the_url(self):
        self.stub.authorization = "Basic " + base64.b64encode(b"cdcd:s@cret").decode()
        url = self.stub.url.replace("//", "//cdcd:s%40cret@")
        c = self.started(url)
        self.sql("INSERT INTO t VALUES (1, 'a', 1)")
        self.wait_equal(self.documents)
        self.stub.stop()
        self.sql("INSERT INTO t VALUES (2, 'a', 1)")
        time.sleep(1)
        c.stop()
        for secret in ("s@cret", "s%40cret"):
            self.assertNotIn(secret, c.logs())

    def test_api_key(self):
        self.stub.authorization = "ApiKey abc=="
        c = self.started(self.stub.url, api__key="abc==")
        self.sql("INSERT INTO t VALUES (1, 'a', 1)")
        self.wait_equal(self.documents)
        self.assertNotIn("abc==", c.logs())

    def test_wrong(self):
        self.stub.authorization = "ApiKey abc=="
        c = self.pipeline(self.stub.url, username="cdcd", password="wrong").start()
        self.assertEqual(c.wait(60), 2)
        self.assertIn("HTTP 401", c.logs())
        self.assertIn("sink.elasticsearch.username", c.logs())

    def test_withdrawn(self):
        c = self.started(self.stub.url)
        self.sql("INSERT INTO t VALUES (1, 'a', 1)")
        self.wait_equal(self.documents)
        self.stub.authorization = "ApiKey abc=="
        self.sql("INSERT INTO t VALUES (2, 'a', 1)")
        self.assertEqual(c.wait(60), 2)


class Policies(StubCase):
    def setUp(self):
        super().setUp()
        self.stub.refuse = lambda d: ((400, "mapper_parsing_exception", "failed to parse field [v]")
                                      if d.get("v") == "bad" else None)

    def test_stop(self):
        c = self.started(self.stub.url)
        self.sql("INSERT INTO t VALUES (1, 'good', 1)")
        self.wait_equal(self.documents)
        self.sql("INSERT INTO t VALUES (2, 'bad', 2)")
        self.assertEqual(c.wait(60), 1)
        for text in ("index %s" % self.index, "_id 2", "mapper_parsing_exception", "failed to parse field",
                     "topic " + self.index, "cdcd.pos", "errors.policy"):
            self.assertIn(text, c.logs())
        # It stays where it is; once the reason is gone it goes on, and nothing is lost.
        c.start()
        self.assertEqual(c.wait(60), 1)
        self.stub.refuse = None
        c.start()
        c.wait_log("streaming from", 60)
        self.wait_equal(self.documents)

    def test_what_to_do(self):
        c = self.started(self.stub.url)
        self.sql("INSERT INTO t VALUES (2, 'bad', 2)")
        self.assertEqual(c.wait(60), 1)
        for type_, reason, text in (
                ("mapper_parsing_exception", "The depth of the field has exceeded", "mapping.depth.limit"),
                ("mapper_parsing_exception", "failed to parse: Duplicate field '_id_'", "rename one of them"),
                ("mapper_parsing_exception", "field name cannot be an empty string", "no index takes such a name"),
                ("illegal_argument_exception", "mapper [a] cannot be changed from type", "maps this field to another"),
                ("illegal_argument_exception", "Limit of total fields [1000]", "total_fields.limit")):
            self.stub.refuse = lambda d, t=type_, r=reason: (400, t, r)
            c.start()
            self.assertEqual(c.wait(60), 1)
            self.assertIn(text, c.logs())

    def test_skip(self):
        c = self.started(self.stub.url, errors__policy="skip")
        self.sql("INSERT INTO t SELECT g, CASE WHEN g % 10 = 0 THEN 'bad' ELSE 'good' END, g "
                 "FROM generate_series(1, 300) g")
        good = {str(i) for i in range(1, 301) if i % 10}
        self.until("the good ones", lambda: set(self.documents()) == good)
        self.sql("UPDATE t SET v = 'mended' WHERE v = 'bad'")
        self.wait_equal(self.documents)
        self.assertEqual(c.stop(), 0)
        self.assertIn("30 documents were left out", c.logs())
        self.assertIn("from here on only each thousandth", c.logs())

    def test_skip_leaves_the_newest_good_one(self):
        """A change that is refused does not take the one before with it, in one bulk too."""
        self.stub.delay = 0.1
        c = self.started(self.stub.url, errors__policy="skip")
        self.sql("BEGIN; INSERT INTO t VALUES (1, 'good', 1); UPDATE t SET n = 2; UPDATE t SET v = 'bad'; COMMIT;")
        self.sql("INSERT INTO t VALUES (2, 'good', 1)")
        self.until("both", lambda: set(self.documents()) == {"1", "2"})
        self.assertEqual(self.documents()["1"], {"id": 1, "v": "good", "n": 2})
        self.assertEqual(c.stop(), 0)

    def test_dead_letter(self):
        c = self.started(self.stub.url, errors__policy="dead-letter", dead__letter__index="letters")
        self.sql("INSERT INTO t VALUES (1, 'good', 1), (2, 'bad', 2), (3, 'good', 3)")
        self.until("the others", lambda: set(self.documents()) == {"1", "3"})
        letters = self.until("the letter", lambda: self.stub.documents("letters"))
        (key, letter), = letters.items()
        self.assertTrue(key.startswith(self.index + ":"), key)
        self.assertEqual(letter["key"], '{"id":2}')
        self.assertEqual(json.loads(letter["value"])["after"], {"id": 2, "v": "bad", "n": 2})
        self.assertEqual(letter["error"], {"type": "mapper_parsing_exception", "reason": "failed to parse field [v]"})
        self.assertEqual(letter["headers"]["cdcd.pos"], letter["pos"])
        self.assertEqual((letter["index"], letter["id"], letter["pipeline"]), (self.index, "2", self.db))
        # A restart does not bring it twice.
        self.assertEqual(c.stop(), 0)
        self.assertIn("1 went to letters", c.logs())

    def test_dead_letter_index_refuses_too(self):
        self.stub.refuse = lambda d: ((400, "mapper_parsing_exception", "no")
                                      if d.get("v") == "bad" or "pipeline" in d else None)
        c = self.started(self.stub.url, errors__policy="dead-letter")
        self.sql("INSERT INTO t VALUES (2, 'bad', 2)")
        self.assertEqual(c.wait(60), 1)
        self.assertIn("cannot be written to the dead-letter index", c.logs())

    def test_guilty_one_of_a_whole_bulk(self):
        self.stub.refuse = None
        self.stub.malformed = lambda source: b'"bad"' in source
        c = self.started(self.stub.url, errors__policy="skip")
        self.sql("INSERT INTO t SELECT g, CASE WHEN g IN (17, 400, 401) THEN 'bad' ELSE 'good' END, g "
                 "FROM generate_series(1, 1000) g")
        good = {str(i) for i in range(1, 1001) if i not in (17, 400, 401)}
        self.until("the good ones", lambda: set(self.documents()) == good)
        self.assertEqual(c.stop(), 0)
        self.assertIn("3 documents were left out", c.logs())
        self.assertLess(self.stub.count_bulks(), 200)

    def test_internal_error_of_one_document(self):
        self.stub.refuse = lambda d: (500, "illegal_state_exception", "boom") if d.get("v") == "bad" else None
        c = self.started(self.stub.url, errors__policy="skip", retry__delay__ms="5ms")
        self.sql("INSERT INTO t VALUES (1, 'good', 1), (2, 'bad', 2), (3, 'good', 3)")
        c.wait_log("left out: illegal_state_exception", 60)
        self.until("the others", lambda: set(self.documents()) == {"1", "3"})


class Connections(StubCase):
    def test_gzip(self):
        c = self.started(self.stub.url, gzip=True)
        self.sql(random_load(3, 500))
        self.wait_equal(self.documents)
        packed = [h for m, p, h, b in self.stub.requests if "_bulk" in p and h.get("Content-Encoding") == "gzip"]
        self.assertTrue(packed)
        self.assertEqual(c.stop(), 0)

    def test_several_hosts(self):
        gone = Stub().start()
        url = gone.url
        gone.stop()
        c = self.started([url, self.stub.url])
        self.sql(random_load(3, 500))
        self.wait_equal(self.documents)
        self.assertEqual(c.stop(), 0)

    def test_a_host_goes(self):
        """Both answer for one cluster; one goes in the middle."""
        second = Stub()
        second.__dict__.update({k: v for k, v in self.stub.__dict__.items() if k not in ("server", "port")})
        second.port = None
        second.start()
        self.addCleanup(second.stop)
        c = self.started([self.stub.url, second.url])
        self.sql(random_load(3, 500))
        self.wait_equal(self.documents)
        second.stop()
        self.sql(random_load(4, 500))
        self.wait_equal(self.documents)
        self.assertEqual(c.stop(), 0)

    def test_path_in_the_url(self):
        c = self.pipeline(self.stub.url + "/search").start()
        self.assertNotEqual(c.wait(60), 0)  # the stand-in knows no such path
        self.assertTrue([p for m, p, h, b in self.stub.requests if p == "/search/"])

    def test_no_search_server(self):
        for body, text in ((b"<html>", "neither OpenSearch nor"), (b'{"version":{"number":"6.8.0"}}', "7 to 9")):
            server = Stub("6.8.0", None) if b"6.8" in body else Stub("", None)
            server.start()
            self.addCleanup(server.stop)
            c = self.pipeline(server.url).start()
            self.assertEqual(c.wait(60), 2)
            self.assertIn(text, c.logs())

    def test_bad_urls(self):
        for url in ("ftp://127.0.0.1:9200", "http://user:secretword@", "http://127.0.0.1:99999", []):
            c = self.pipeline(url).start()
            self.assertEqual(c.wait(60), 2, url)
            self.assertIn("url", c.logs())
            self.assertNotIn("secretword", c.logs())

    def test_several_tables(self):
        """Documents of several indexes share requests."""
        self.sql("CREATE TABLE u (id int PRIMARY KEY, v text)")
        c = self.started(self.stub.url, bulk__max__requests=1)
        self.sql("BEGIN; " + "".join("INSERT INTO t VALUES (%d, 'a', 1); INSERT INTO u VALUES (%d, 'b');" % (i, i)
                                     for i in range(50)) + " COMMIT;")
        self.wait_equal(self.documents)
        self.assertEqual(self.stub.documents(self.db + ".public.u"), {str(i): {"id": i, "v": "b"} for i in range(50)})
        self.assertEqual(c.stop(), 0)


class Tls(EsCase):
    """The certificate is one of its own authority, for 127.0.0.1."""

    def setUp(self):
        super().setUp()
        where = self.folder()
        self.cert, key = os.path.join(where, "cert.pem"), os.path.join(where, "key.pem")
        cdcdtest.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=stub",
                      "-addext", "subjectAltName=IP:127.0.0.1", "-keyout", key, "-out", self.cert])
        self.stub = Stub(certificate=(self.cert, key)).start()
        self.addCleanup(self.stub.stop)
        self.sql("INSERT INTO t VALUES (1, 'a', 1)")

    def documents(self):
        return self.stub.documents(self.index)

    def test_known_authority(self):
        c = self.started(self.stub.url, ssl__ca=self.cert)
        self.wait_equal(self.documents)
        self.assertEqual(c.stop(), 0)

    def test_unknown_authority(self):
        c = self.pipeline(self.stub.url).start()
        self.assertEqual(c.wait(60), 2)
        self.assertIn("certificate", c.logs())
        self.assertIn("ssl.ca", c.logs())

    def test_another_name(self):
        c = self.pipeline(self.stub.url.replace("127.0.0.1", "localhost"), ssl__ca=self.cert).start()
        self.assertEqual(c.wait(60), 2)

    def test_unchecked(self):
        c = self.started(self.stub.url, ssl__verify=False)
        self.wait_equal(self.documents)
        self.assertEqual(c.stop(), 0)

    def test_no_such_file(self):
        c = self.pipeline(self.stub.url, ssl__ca="/nonexistent.pem").start()
        self.assertEqual(c.wait(60), 2)
        self.assertIn("ssl.ca", c.logs())


class Notes(cdcdtest.TestCase):
    """What MySQL's source must remember, the shapes of tables, is kept in the state index."""

    def setUp(self):
        super().setUp()
        self.server = mycase.MyServer("mariadb")
        self.addCleanup(self.server.stop)
        self.stub = Stub().start()
        self.addCleanup(self.stub.stop)

    def sql(self, text):
        self.server.sql(text)

    def documents(self):
        return self.stub.documents("shop.d.t")

    def notes(self):
        return sorted(i for i, (_, source) in self.stub.indexes["cdcd-state"].seq.items()
                      if source is not None and ".notes." in i)

    def test_kept_over_restarts(self):
        self.sql("CREATE DATABASE d; CREATE TABLE d.t (id int PRIMARY KEY, a int)")
        self.sql("INSERT INTO d.t VALUES (1, 1)")
        c = self.cdcd({"name": "shop", "source": {"mysql": {"url": self.server.url(), "server.id": 4711,
                                                            "database.include.list": ["d"]}},
                       "sink": {"elasticsearch": {"url": self.stub.url}}})
        c.start().wait_log("streaming from", 60)
        wait_until("the snapshot", lambda: self.documents() == {"1": {"id": 1, "a": 1}})
        first = wait_until("notes", self.notes)
        self.sql("ALTER TABLE d.t ADD b int; INSERT INTO d.t VALUES (2, 2, 2)")
        wait_until("row 2", lambda: self.documents().get("2") == {"id": 2, "a": 2, "b": 2})
        wait_until("new notes in the place of the old ones", lambda: self.notes() != first)
        for i, how in enumerate((c.stop, c.kill, c.stop)):
            how()
            # The log holds changes of both shapes, and the table has a third one.
            n, m = 10 * i + 10, 10 * i + 11
            self.sql("INSERT INTO d.t (id, a) VALUES (%d, 1); ALTER TABLE d.t ADD c%d int; "
                     "INSERT INTO d.t (id, a, c%d) VALUES (%d, 1, 5)" % (n, i, i, m))
            c.start()
            wait_until("rows %d" % m, lambda: str(m) in self.documents(), 60)
            self.assertNotIn("c%d" % i, self.documents()[str(n)])
            self.assertEqual(self.documents()[str(m)]["c%d" % i], 5)
        self.assertEqual(c.stop(), 0)
        note, = self.notes()
        # As a kill leaves them: a set that the state does not name yet, and one that it named before.
        name, number, _ = note.rsplit(".", 2)
        number = int(number)
        for left in {max(1, number - 1), number + 1} - {number}:
            for part in range(2):
                self.stub.indexes["cdcd-state"].seq["%s.%d.%d" % (name, left, part)] = (0, b"{}")
        c.start().wait_log("streaming from", 60)
        wait_until("nothing to be left of other sets", lambda: self.notes() == [note])

    def test_lost(self):
        self.sql("CREATE DATABASE d; CREATE TABLE d.t (id int PRIMARY KEY, a int)")
        c = self.cdcd({"name": "shop", "source": {"mysql": {"url": self.server.url(), "server.id": 4711,
                                                            "database.include.list": ["d"]}},
                       "sink": {"elasticsearch": {"url": self.stub.url}}})
        c.start().wait_log("streaming from", 60)
        note, = wait_until("notes", self.notes)
        self.assertEqual(c.stop(), 0)
        del self.stub.indexes["cdcd-state"].seq[note]
        c.start()
        self.assertEqual(c.wait(60), 3)
        self.assertIn("part of what the source must remember", c.logs())


class Elasticsearch7(StubCase):
    stub_args = {"version": "7.17.29", "distribution": None}

    def test_faults(self):
        c = self.started(self.stub.url)
        self.stub.item_429 = 0.3
        self.sql(random_load(1, 1000))
        self.wait_equal(self.documents)
        self.assertEqual(c.stop(), 0)
        self.assertIn("Elasticsearch 7.17.29", c.logs())


if __name__ == "__main__":
    cdcdtest.main()
