"""cdcd replay: from PostgreSQL over Kafka into an index, which is built anew beside itself.

CDCD_REPLAY_DOCS=1000000 for a large one.
"""
import json
import os
import random
import re
import sys
import threading
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../support"))
import cdcdtest  # noqa: E402
import escase  # noqa: E402
from cdcdtest import wait_until  # noqa: E402

DOCS = int(os.environ.get("CDCD_REPLAY_DOCS", "5000"))


class Readers:
    """Searches all the time; what was found once must always be found."""

    def __init__(self, case, n):
        self.case, self.n, self.path = case, n, "/%s/_search" % case.index
        self.failures, self.searches, self.stopped = [], 0, False
        self.threads = [threading.Thread(target=self.loop, args=(f,)) for f in (self.some, self.count, self.kept)]
        self.extras = set()
        self.r = random.Random(7)
        for t in self.threads:
            t.start()

    def loop(self, look):
        while not self.stopped and not self.failures:
            try:
                look()
                self.searches += 1
            except Exception as e:  # a search that fails has missed everything
                self.failures.append(repr(e))
            time.sleep(0.005)

    def ask(self, body):
        return self.case.es.request("POST", self.path, dict(body, track_total_hits=True))["hits"]

    def some(self):
        ids = [str(i) for i in self.r.sample(range(1, self.n + 1), 50)]
        found = {h["_id"] for h in self.ask({"query": {"ids": {"values": ids}}, "size": 50, "_source": False})["hits"]}
        if found != set(ids):
            self.failures.append("not found: %s" % sorted(set(ids) - found))

    def count(self):
        n = self.ask({"query": {"range": {"id": {"lte": self.n}}}, "size": 0})["total"]["value"]
        if n != self.n:
            self.failures.append("%d documents instead of %d" % (n, self.n))

    def kept(self):
        """Rows that were inserted meanwhile: not deleted again."""
        hits = self.ask({"query": {"term": {"kind": "kept"}}, "size": 10000, "_source": False})["hits"]
        found = {h["_id"] for h in hits}
        if not found >= self.extras:
            self.failures.append("not found any more: %s" % sorted(self.extras - found))
        self.extras = found

    def stop(self):
        self.stopped = True
        for t in self.threads:
            t.join()


class Writer:
    """Changes rows all the time."""

    def __init__(self, case, n):
        self.case, self.n, self.next, self.stopped, self.error = case, n, n + 1, False, None
        self.thread = threading.Thread(target=self.loop)
        self.thread.start()

    def loop(self):
        r = random.Random(3)
        try:
            while not self.stopped:
                sql = []
                for _ in range(20):
                    i = self.next
                    self.next += 1
                    # Some thousand of them at most, so that one search finds all.
                    kind = "kept" if i % 10 == 0 and i < self.n + 50000 else "gone"
                    sql.append("INSERT INTO t VALUES (%d, '%s', 'x%d', 0);" % (i, kind, i))
                    sql.append("UPDATE t SET n = n + 1, v = v || '.' WHERE id = %d;" % r.randint(1, self.n))
                    sql.append("DELETE FROM t WHERE kind = 'gone' AND id = %d;" % (i - 40))
                self.case.sql("BEGIN;%s COMMIT;" % "".join(sql))
                time.sleep(0.02)
        except Exception as e:
            self.error = e

    def stop(self):
        self.stopped = True
        self.thread.join()
        if self.error:
            raise self.error


class Replay(cdcdtest.TestCase):
    SERVER = "opensearch"

    @classmethod
    def setUpClass(cls):
        cls.pg = cdcdtest.Postgres(None, "max_replication_slots=60", "max_wal_senders=60")
        cls.addClassCleanup(cls.pg.stop)
        cls.kafka = cdcdtest.Kafka("group.min.session.timeout.ms=1000")
        cls.addClassCleanup(cls.kafka.stop)
        cls.es = escase.Search(cls.SERVER)
        cls.addClassCleanup(cls.es.stop)

    def setUp(self):
        super().setUp()
        self.db = self.pg.new_db("r")
        self.index = self.db + ".public.t"
        self.pg.sql("CREATE TABLE t (id bigint PRIMARY KEY, kind text, v text, n bigint)", self.db)

    def sql(self, text):
        return self.pg.sql(text, self.db)

    def fill(self, n):
        self.sql("INSERT INTO t SELECT i, 'row', 'v' || i, 0 FROM generate_series(1, %d) i" % n)

    def config(self, name=None, **sink):
        es = {"url": self.es.url, "index.settings": {"number_of_replicas": 0, "refresh_interval": "200ms"}}
        es.update(sink)
        return {"name": name or self.db + "-index", "topic.prefix": self.db, "errors.retry.delay.max.ms": "500ms",
                "source": {"kafka": {"bootstrap.servers": self.kafka.bootstrap,
                                     "topics": [self.db + "\\.public\\..*"], "topics.refresh.interval.ms": 300,
                                     "properties": {"session.timeout.ms": 1500, "heartbeat.interval.ms": 200}}},
                "sink": {"elasticsearch": es}}

    def start(self, n):
        """Both pipelines, with n rows in the index."""
        self.fill(n)
        self.capture = self.cdcd({
            "name": self.db, "errors.retry.delay.max.ms": "500ms",
            "source": {"postgres": {"url": self.pg.url(self.db), "slot.name": self.db}},
            "sink": {"kafka": {"bootstrap.servers": self.kafka.bootstrap, "topic.partitions": 2}}}).start()
        self.live = self.cdcd(self.config()).start()
        self.replay = self.cdcd(self.config())
        wait_until("the documents", lambda: self.count() >= n, 300, 0.3)

    def count(self, index=None):
        """0 as long as there is none, or it has just been made."""
        status, data = self.es.call_raw("GET", "/%s/_count" % (index or self.index))
        return json.loads(data)["count"] if status == 200 else 0

    def behind(self):
        status, data = self.es.call_raw("GET", "/_alias/" + self.index)
        return sorted(json.loads(data)) if status == 200 else []

    def there(self, index):
        return self.es.call_raw("GET", "/%s/_settings" % index)[0] == 200

    def blocked(self, index):
        settings = self.es.request("GET", "/%s/_settings?flat_settings=true" % index)[index]["settings"]
        return settings.get("index.blocks.write") == "true"

    def rows(self):
        return {str(k): v for k, v in json.loads(
            self.sql("SELECT coalesce(json_object_agg(id, row_to_json(t)), '{}') FROM t")).items()}

    def documents(self, index=None):
        """All of them, {id: source}."""
        index = index or self.index
        self.es.request("POST", "/%s/_refresh" % index)
        page = self.es.request("POST", "/%s/_search?scroll=1m" % index, {"size": 5000, "sort": ["_doc"]})
        out = {}
        while page["hits"]["hits"]:
            out.update({h["_id"]: h["_source"] for h in page["hits"]["hits"]})
            page = self.es.request("POST", "/_search/scroll", {"scroll": "1m", "scroll_id": page["_scroll_id"]})
        return out

    def wait_equal(self, timeout=120):
        want = self.rows()

        def equal():
            self.es.request("POST", "/%s/_refresh" % self.index)
            return self.count() == len(want) and self.documents() == want
        try:
            wait_until("index and table to be equal", equal, timeout, 0.5)
        except cdcdtest.Failure:
            is_ = self.documents()
            differ = [k for k in want.keys() | is_.keys() if want.get(k) != is_.get(k)]
            self.fail("%d rows, %d documents, %d differ: %s" % (
                len(want), len(is_), len(differ), [(k, want.get(k), is_.get(k)) for k in differ[:5]]))

    def run_replay(self, *args, timeout=600):
        return self.replay.run("replay", *args, timeout=timeout)


class UnderLoad(Replay):
    def test_no_search_misses_a_document(self):
        self.start(DOCS)
        readers, writer = Readers(self, DOCS), Writer(self, DOCS)
        try:
            wait_until("searches", lambda: readers.searches > 20 or readers.failures, 60)
            began = time.monotonic()
            log = self.run_replay(timeout=3000).stderr
            took = time.monotonic() - began
            self.assertEqual(self.behind(), [self.index + "-000002"])
            wait_until("more searches", lambda n=readers.searches: readers.searches > n + 50 or readers.failures, 60)
        finally:
            writer.stop()
            readers.stop()
        self.assertEqual(readers.failures, [])
        self.assertGreater(readers.searches, 70)
        self.assertGreater(len(readers.extras), 0)
        self.wait_equal(300)
        self.assertTrue(self.live.alive() and self.capture.alive())
        sys.stderr.write("\n%d documents, %d searches, replay %.1f s\n%s\n" % (
            DOCS, readers.searches, took, "\n".join(re.findall(r".* replay.*", log))))


class Steps(Replay):
    ROWS = 3000

    def setUp(self):
        Replay.setUp(self)
        self.start(self.ROWS)

    def change(self):
        self.sql("UPDATE t SET n = n + 1 WHERE id % 7 = 0; DELETE FROM t WHERE id % 11 = 0;"
                 "INSERT INTO t SELECT max(id) + 1, 'new', 'x', 0 FROM t")

    def test_kept_and_dropped(self):
        self.change()
        self.wait_equal()  # else the live index may still hold what the new one has seen deleted
        self.es.request("POST", "/_aliases", {"actions": [{"add": {
            "index": self.index + "-000001", "alias": self.db + "-mine", "filter": {"term": {"kind": "new"}}}}]})
        log = self.run_replay().stderr
        self.assertEqual(self.behind(), [self.index + "-000002"])
        self.wait_equal()
        self.assertRegex(log, r"(\d+) documents, \S+-000001 has \d+; of \d+ of its documents 0 are not in the new one")
        # Another alias of the old one has moved with its filter.
        mine = self.es.request("GET", "/_alias/%s-mine" % self.db)
        self.assertEqual(mine, {self.index + "-000002": {"aliases": {
            self.db + "-mine": {"filter": {"term": {"kind": "new"}}}}}})
        self.assertTrue(self.there(self.index + "-000001"))
        self.assertTrue(self.blocked(self.index + "-000001"))
        self.change()
        self.wait_equal()
        self.run_replay()
        self.assertEqual(self.behind(), [self.index + "-000003"])
        self.change()
        self.wait_equal()
        log = self.run_replay("--drop-old").stderr
        self.assertEqual([self.there("%s-00000%d" % (self.index, i)) for i in (1, 2, 3)], [False, False, True])
        self.assertEqual(log.count(": deleted"), 2)
        self.assertIn("none is kept", self.run_replay("--drop-old").stderr)
        self.wait_equal()

    def test_killed_at_each_step_and_gone_on_with(self):
        steps = ["building", "reading the topics: ", "takes no writes", "catching up, writes wait",
                 "has [0-9]+; of", "stands for", "behind the swap", "is kept, without"]
        version = 1
        for i, text in enumerate(steps):
            with self.subTest(step=text):
                self.change()
                self.replay = self.cdcd(self.config())
                self.replay.start("replay")
                self.replay.wait_log(text, 120)
                self.replay.kill()
                if i % 2:
                    self.change()
                at_its_end = "is kept, without" in self.replay.logs()
                log = self.run_replay().stderr
                went_on = "goes on with the one that was begun" in log
                self.assertTrue(went_on or at_its_end, log)
                version += 1 if went_on else 2
                self.assertEqual(self.behind(), ["%s-%06d" % (self.index, version)])
                self.assertFalse(self.blocked(self.behind()[0]))
                self.change()
                self.wait_equal()
        self.assertTrue(self.live.alive())

    def test_stopped_lets_the_live_one_go_on(self):
        self.replay.start("replay")
        self.replay.wait_log("building|takes no writes", 120)
        self.assertEqual(self.replay.stop(), 0)
        if self.behind() == [self.index + "-000001"]:
            self.assertFalse(self.blocked(self.index + "-000001"))
        self.change()
        self.wait_equal()
        self.run_replay()
        self.assertEqual(self.behind(), [self.index + "-000002"])
        self.change()
        self.wait_equal()

    def test_abandoned(self):
        self.run_replay("--no-swap")
        self.assertEqual(self.behind(), [self.index + "-000001"])
        self.assertEqual(self.documents(self.index + "-000002"), self.documents())
        self.run_replay("--abandon")
        self.assertFalse(self.there(self.index + "-000002"))
        self.change()
        self.wait_equal()
        self.assertIn("none is under way", self.run_replay("--abandon").stderr)
        self.run_replay()
        self.assertEqual(self.behind(), [self.index + "-000002"])
        self.wait_equal()

    def test_what_the_new_one_lacks_stops_it(self):
        self.es.request("PUT", "/%s-000001/_doc/ghost?version=5&version_type=external" % self.index, {"id": 0})
        r = self.replay.run("replay", check=False)
        self.assertEqual(r.returncode, 1, r.stderr)
        self.assertIn("lacks 1 of 3001 documents", r.stderr)
        self.assertIn("ghost", r.stderr)
        self.assertEqual(self.behind(), [self.index + "-000001"])
        self.assertFalse(self.blocked(self.index + "-000001"))
        self.change()
        want = len(self.rows()) + 1
        wait_until("the live one", lambda: self.es.request("POST", "/%s/_refresh" % self.index) and
                   self.count() == want)
        r = self.run_replay("--yes")
        self.assertIn("Goes on all the same", r.stderr)
        self.assertEqual(self.behind(), [self.index + "-000002"])
        self.wait_equal()

    def test_what_was_deleted_while_the_live_one_was_away_is_explained(self):
        self.live.stop()
        self.sql("DELETE FROM t WHERE id <= 500")
        wait_until("the deletes in the topic", lambda: sum(
            r["value"] is None for r in self.kafka.read("^" + re.escape(self.db) + "\\..*")) >= 500, 60, 1)
        log = self.run_replay().stderr
        self.assertRegex(log, "500 are not in the new one, 500 of them deleted since")
        self.live.start()
        self.change()
        self.wait_equal()

    def test_two_at_once(self):
        self.sql("INSERT INTO t SELECT i, 'row', repeat('v', 500), 0 FROM generate_series(10000, 60000) i")
        wait_until("the documents", lambda: self.count() >= 50000, 120, 0.5)
        self.replay.start("replay", "--no-swap")
        self.replay.wait_log("building", 60)
        second = self.cdcd(self.config()).run("replay", check=False)
        if second.returncode == 2:
            self.assertIn("another replay of pipeline", second.stderr)
            self.assertEqual(self.replay.wait(300), 0)
        else:  # the first was at its end before the second had looked
            self.assertEqual(second.returncode, 0)
        self.run_replay()
        self.wait_equal()

    def test_exit_codes_and_texts(self):
        r = self.replay.run("replay", "--from", "nonsense", check=False)
        self.assertEqual(r.returncode, 2)
        self.assertIn("--from nonsense is neither", r.stderr)
        r = self.replay.run("replay", "--abandon", "--drop-old", check=False)
        self.assertEqual(r.returncode, 2)
        # Behind --from lies everything: nothing to be swapped.
        r = self.replay.run("replay", "--from", "2099-01-01", check=False)
        self.assertEqual(r.returncode, 1)
        self.assertIn("nothing to swap", r.stderr)
        self.run_replay("--abandon")
        direct = self.cdcd(dict(self.config(), source={"postgres": {"url": self.pg.url(self.db)}}))
        r = direct.run("replay", check=False)
        self.assertEqual(r.returncode, 2)
        self.assertIn("replay reads topics again", r.stderr)
        self.es.request("PUT", "/%s-plain" % self.db, {})
        plain = self.cdcd(self.config(self.db + "-plain", index=self.db + "-plain"))
        r = plain.run("replay", check=False)
        self.assertEqual(r.returncode, 2, r.stderr)
        self.assertIn("is an index itself, no alias", r.stderr)

    def test_values_that_only_the_live_index_has(self):
        """As compaction leaves it: the last record of a row, without its large value."""
        self.sql("UPDATE t SET v = (SELECT string_agg(md5(t.id::text || i::text), '') FROM generate_series(1, 300) i) "
                 "WHERE id <= 20")
        self.wait_equal()
        firsts = {}
        self.sql("UPDATE t SET n = n + 1")
        self.wait_equal()
        for r in self.kafka.read(self.index):
            if r["value"] and r["value"]["after"]["n"] == 1:
                firsts.setdefault(r["partition"], r["offset"])
        ktopic = [os.path.join(cdcdtest.SUPPORT, "ktopic"), self.kafka.bootstrap]
        cdcdtest.run(ktopic + ["set", self.index, "cleanup.policy=compact,delete"])
        for partition, offset in firsts.items():
            cdcdtest.run(ktopic + ["trim", self.index, str(partition), str(offset)])
        self.assertEqual(len(firsts), 2)
        self.run_replay()
        self.assertEqual(self.behind(), [self.index + "-000002"])
        self.wait_equal()
        self.assertEqual(len(self.documents()["7"]["v"]), 9600)

    def test_into_files(self):
        folder = self.folder()
        config = self.config(self.db + "-files")
        config["sink"] = {"file": {"path": folder}}
        files = self.cdcd(config)
        files.run("replay")
        keys = [r["key"]["id"] for r in cdcdtest.read_folder(folder)[self.index]]
        self.assertEqual(sorted(keys), list(range(1, self.ROWS + 1)))
        files.run("replay")  # goes on from there
        self.assertEqual(len(cdcdtest.read_folder(folder)[self.index]), self.ROWS)


class StepsElasticsearch(Replay):
    SERVER = "elasticsearch"
    ROWS, setUp, change = Steps.ROWS, Steps.setUp, Steps.change
    test_kept_and_dropped = Steps.test_kept_and_dropped
    test_killed_at_each_step_and_gone_on_with = Steps.test_killed_at_each_step_and_gone_on_with
    test_what_the_new_one_lacks_stops_it = Steps.test_what_the_new_one_lacks_stops_it
    test_what_was_deleted_while_the_live_one_was_away_is_explained = \
        Steps.test_what_was_deleted_while_the_live_one_was_away_is_explained


if __name__ == "__main__":
    cdcdtest.main()
