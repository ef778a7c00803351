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


class Shared(source.Source):
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

    def documents(self):
        if self.search.call_raw("HEAD", "/" + self.topic)[0] != 200:
            return {}
        return {h["_id"]: h["_source"] for h in self.search.search(self.topic)}

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


if __name__ == "__main__":
    cdcdtest.main()
