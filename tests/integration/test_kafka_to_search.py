"""Several instances share a topic's partitions and write into one index: the group alone keeps the
position. Whatever dies, the index has the newest of each key in the end."""
import os
import random
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../support"))
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import cdcdtest  # noqa: E402
import escase  # noqa: E402
import test_kafka_source as source  # noqa: E402
from cdcdtest import wait_until  # noqa: E402

KEYS = 600


class ToSearch(source.Source):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.search = escase.Search("opensearch")

    @classmethod
    def tearDownClass(cls):
        cls.search.stop()
        super().tearDownClass()

    def instance(self):
        c = self.config("", more={"errors.retry.delay.max.ms": "500ms"})
        c["sink"] = {"elasticsearch": {"url": self.search.url, "index.settings": {"number_of_replicas": 0}}}
        return self.cdcd(c)

    def documents(self):
        if self.search.call_raw("HEAD", "/" + self.topic)[0] != 200:
            return {}
        return {h["_id"]: h["_source"] for h in self.search.search(self.topic)}


class Shared(ToSearch):
    def change(self, p, want, rng, n):
        for _ in range(n):
            self.offset += 1
            k = rng.randrange(KEYS)
            key = {"id": k}
            if rng.random() < 0.2:
                p.put(self.topic, key, {"before": {"id": k, "n": None}, "after": None, "op": "d"})
                p.put(self.topic, key, None)
                want.pop(str(k), None)
            else:
                row = {"id": k, "n": self.offset}
                p.put(self.topic, key, {"before": None, "after": row, "op": "u"})
                want[str(k)] = row
        p.do("flush")

    def shared(self, n):
        self.create(8)
        self.offset = 0
        rng = random.Random(n)
        want = {}
        instances = [self.instance() for _ in range(n)]
        with source.Put(self.kafka) as p:
            for c in instances:
                c.start()
            for c in instances:
                c.wait_log(r"partition\(s\) come, [1-8] in all", 60)
            for turn in range(2 * n + 2):
                for _ in range(5):
                    self.change(p, want, rng, 300)
                    time.sleep(0.05)
                victim = instances[turn % n]
                if turn % 3 == 2:
                    self.stop(victim)
                else:
                    victim.kill()
                self.change(p, want, rng, 300)
                time.sleep(rng.random())
                victim.start()
            self.change(p, want, rng, 300)
            wait_until("the index to be equal", lambda: self.documents() == want, 120, 0.5)
        for c in instances:
            self.stop(c)
        self.assertEqual(self.documents(), want)
        return instances[0]

    def test_two_instances(self):
        self.shared(2)

    def test_four_instances(self):
        """And nothing is read again by the next one: the group was told of everything."""
        c = self.shared(4)
        c.config["log.level"] = "debug"
        c.start()
        c.wait_log(r"8 partition\(s\) come, 8 in all")
        self.stop(c)
        ends = {}
        for r in self.kafka.read(self.topic):
            ends[r["partition"]] = r["offset"] + 1
        for partition, end in ends.items():
            self.assertIn("%s/%d comes, from offset %d\n" % (self.topic, partition, end), c.logs())

    def test_index_away(self):
        """A server that is gone for a while: the instance stays in its group, and loses nothing."""
        self.create(4)
        self.offset = 0
        rng, want = random.Random(1), {}
        c = self.instance().start()
        with source.Put(self.kafka) as p:
            self.change(p, want, rng, 500)
            wait_until("the index to be equal", lambda: self.documents() == want, 60, 0.3)
            self.search.kill()
            for _ in range(30):
                self.change(p, want, rng, 500)
                time.sleep(0.2)
            self.search.start_again()
            wait_until("the index to be equal", lambda: self.documents() == want, 120, 0.5)
        self.stop(c)
        self.assertNotRegex(c.logs(), "took this instance for stuck")

    def test_index_away_and_then_the_broker(self):
        """Fetching rests while the index is away; the partitions are lost meanwhile, and come back later."""
        self.create(4)
        self.offset = 0
        rng, want = random.Random(2), {}
        c = self.instance().start()
        with source.Put(self.kafka) as p:
            self.change(p, want, rng, 500)
            wait_until("the index to be equal", lambda: self.documents() == want, 60, 0.3)
            self.search.kill()
            for _ in range(16):
                self.change(p, want, rng, 500)
                time.sleep(0.2)
            self.kafka.kill()
            c.wait_log("were taken away, 0 left", 60)
            self.search.start_again()
            wait_until("the index to have what was read", lambda: len(self.documents()) > 0, 60, 0.3)
            time.sleep(2)
            self.kafka.start_again()
            self.change(p, want, rng, 500)
            wait_until("the index to be equal", lambda: self.documents() == want, 60, 0.5)
        self.stop(c)


class Offsets(ToSearch):
    """Offsets are the versions of documents: where they do not tell what is newer, that is said."""

    def rows(self, n, value, keys=None):
        return [({"id": k}, {"before": None, "after": {"id": k, "v": value}, "op": "c"})
                for k in (keys if keys is not None else range(n))]

    def values(self):
        return {i: d["v"] for i, d in self.documents().items()}

    def filled(self, n):
        self.create()
        self.put(self.rows(n, "old"), partition=0)
        c = self.instance().start()
        wait_until("all rows", lambda: self.values() == {str(i): "old" for i in range(n)}, 60, 0.3)
        return c

    def anew(self):
        self.ktopic("delete", self.topic)
        wait_until("the topic to go", lambda: not self.exists())
        self.create()

    def exists(self):
        r = cdcdtest.run([os.path.join(cdcdtest.SUPPORT, "kread"), self.kafka.bootstrap,
                          "^%s$" % self.topic.replace(".", r"\."), "--from-beginning", "--until-end"])
        return not r.stderr.startswith("0 ")

    def made_anew(self, n, rows, pattern):
        """While it was stopped: Kafka forgets the group's offsets with the topic."""
        c = self.filled(n)
        self.stop(c)
        self.anew()
        self.put(rows, partition=0)
        for _ in range(2):
            c.start()
            self.ends(c, 3, pattern, "was made anew, or partitions were added", "cdcd replay")
        r = c.run("replay", "--yes", check=False)  # rows of the old topic that the new one lacks
        self.assertEqual(r.returncode, 0, r.stderr[-3000:])
        c.start()
        self.put([({"id": 1}, {"before": None, "after": {"id": 1, "v": "newest"}, "op": "u"})], partition=0)
        want = {str(k["id"]): "new" for k, _ in rows}
        want["1"] = "newest"
        wait_until("the new topic's rows", lambda: self.values() == want, 60, 0.3)
        self.stop(c)

    def test_topic_made_anew_and_shorter(self):
        self.made_anew(100, self.rows(0, "new", [99, 98]), r"is refused as older than version 9[89], but the "
                                                           r"partition ends at offset 2")

    def test_topic_made_anew_and_longer(self):
        """Nothing but the records themselves tells it: a key stands at another offset now."""
        rows = self.rows(0, "new", list(range(99, -1, -1)) + list(range(100, 300)))
        self.made_anew(100, rows, r"is refused as older than version \d+, but the record there has the key")

    def test_partitions_added(self):
        """A key that has moved to a new partition is not left as it was without a word."""
        c = self.filled(100)
        self.ktopic("grow", self.topic, 2)
        c.wait_log("2 in all", 60)
        self.put(self.rows(0, "new", [1000, 1001]), partition=1)
        wait_until("new rows", lambda: len(self.values()) == 102, 60, 0.3)
        self.put(self.rows(0, "moved", [50]), partition=1)
        self.ends(c, 3, "_id 50: topic %s, partition 1, offset 2 is refused as older than version 50, but the partition "
                        "ends at offset 3" % self.topic)

    def test_read_again(self):
        """By another group, from the beginning: what is older than the index is in good order."""
        self.create()
        self.put([r for i in range(50) for r in self.rows(20, i)], partition=0)
        c = self.instance().start()
        want = {str(i): 49 for i in range(20)}
        wait_until("all rows", lambda: self.values() == want, 60, 0.3)
        self.stop(c)
        c.config["source"]["kafka"]["group.id"] = self.prefix + "-again"
        c.config["log.level"] = "debug"
        c.config["sink"]["elasticsearch"]["bulk.max.bytes"] = 1024
        c.start()
        self.put(self.rows(0, 100, [100]), partition=0)
        want["100"] = 100
        wait_until("the new row", lambda: self.values() == want, 60, 0.3)
        self.stop(c)
        self.assertRegex(c.logs(), r" [1-9]\d* older than the index")


class BadRecords(ToSearch):
    def letters(self):
        if self.search.call_raw("HEAD", "/letters-" + self.prefix)[0] != 200:
            return {}
        return {d["offset"]: d for d in self.search.documents("letters-" + self.prefix).values()}

    def good(self, i):
        return {"id": i}, {"before": None, "after": {"id": i}, "op": "c"}

    def test_by_the_policy(self):
        """What is no change stops the pipeline before it, each time; the other policies pass it and nothing else."""
        self.create()
        bad = [(None, {"before": None, "after": {"id": 5}, "op": "c"}), ({"id": 6}, b"no JSON"),
               (b'{"id":"\xff"}', {"before": None, "after": {"id": 7}, "op": "c"}), ("", ""),
               ({"id": 8}, {"after": {"id": 8}}), ({"id": 9}, [1])]
        self.put([self.good(1)] + bad + [self.good(2)], partition=0)
        c = self.instance()
        for _ in range(2):
            c.start()
            self.ends(c, 1, r"topic %s, partition 0, offset 1 \(key null\): the key is null" % self.topic)
        self.assertNotIn("2", self.documents())
        sink = c.config["sink"]["elasticsearch"]
        sink.update({"errors.policy": "dead-letter", "dead.letter.index": "letters-" + self.prefix})
        c.start()
        wait_until("the good ones", lambda: set(self.documents()) == {"1", "2"}, 60, 0.3)
        self.stop(c)
        letters = self.letters()
        self.assertEqual(sorted(letters), list(range(1, 1 + len(bad))))
        self.assertEqual((letters[2]["key"], letters[2]["value"]), ('{"id":6}', "no JSON"))
        # They are behind the position: nobody is asked about them again.
        sink["errors.policy"] = "stop"
        self.put([self.good(3)] + bad[:2] + [self.good(4)], partition=0)
        c.start()
        self.ends(c, 1, r"offset 9 \(key null\)")
        sink["errors.policy"] = "skip"
        c.start()
        wait_until("the good ones", lambda: set(self.documents()) == {"1", "2", "3", "4"}, 60, 0.3)
        self.stop(c)
        self.assertIn("2 documents were left out", c.logs())
        self.assertEqual(sorted(self.letters()), sorted(letters))


if __name__ == "__main__":
    cdcdtest.main()
