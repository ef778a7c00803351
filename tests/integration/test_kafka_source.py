"""Kafka as a source, with a real broker: into folders and to standard output."""
import collections
import json
import os
import random
import re
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../support"))
import cdcdtest  # noqa: E402
from cdcdtest import SUPPORT, run, wait_until  # noqa: E402

TS = 1700000000000
# A member that was killed is missed soon, and new topics are found soon.
QUICK = {"session.timeout.ms": 1500, "heartbeat.interval.ms": 200}


def hexed(value):
    if value is None:
        return "-"
    if isinstance(value, (dict, list)):
        value = json.dumps(value, separators=(",", ":"))
    data = value if isinstance(value, bytes) else str(value).encode()
    return data.hex() or "."


def crc32c(data):
    crc = 0xffffffff
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82f63b78 if crc & 1 else 0)
    return crc ^ 0xffffffff


class Put:
    """A producer: records go out with flush or commit."""

    def __init__(self, kafka, transactions=None):
        more = ["--transactions", transactions] if transactions else []
        self.process = subprocess.Popen([os.path.join(SUPPORT, "kput"), kafka.bootstrap, *more], text=True,
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def __enter__(self):
        return self

    def __exit__(self, *args):
        self.process.stdin.close()
        self.process.stdout.close()
        if self.process.wait(60) and args[0] is None:
            raise cdcdtest.Failure("kput failed")

    def put(self, topic, key, value, partition=-1, ts=TS, headers=()):
        words = ["put", topic, str(partition), str(ts), hexed(key), hexed(value)]
        for name, text in headers:
            words += [name, hexed(text)]
        self.process.stdin.write(" ".join(words) + "\n")

    def do(self, what):
        """begin, commit, abort, flush."""
        self.process.stdin.write(what + "\n")
        self.process.stdin.flush()
        if what != "begin" and self.process.stdout.readline() != what + "\n":
            raise cdcdtest.Failure("kput ended")


class Source(cdcdtest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.kafka = cdcdtest.Kafka("group.min.session.timeout.ms=1000")
        cls.number = 0

    @classmethod
    def tearDownClass(cls):
        cls.kafka.stop()

    def setUp(self):
        super().setUp()
        type(self).number += 1
        self.prefix = "s%d" % self.number
        self.topic = self.prefix + ".t"

    def ktopic(self, *args):
        run([os.path.join(SUPPORT, "ktopic"), self.kafka.bootstrap, *[str(a) for a in args]])

    def create(self, partitions=1, topic=None, *settings):
        # The records' timestamps are old, and the broker would delete them by their age.
        self.ktopic("create", topic or self.topic, partitions, "retention.ms=-1", *settings)

    def put(self, records, topic=None, partition=-1):
        """[(key, value)]"""
        with Put(self.kafka) as p:
            for i, (key, value) in enumerate(records):
                p.put(topic or self.topic, key, value, partition, TS + i)
            p.do("flush")

    def config(self, folder, properties=None, more=None, **source):
        config = {"name": self.prefix, "source": {"kafka": {
            "bootstrap.servers": self.kafka.bootstrap, "topics.refresh.interval.ms": 300,
            "properties": dict(QUICK, **(properties or {}))}},
            "sink": {"file": {"path": folder}}}
        config["source"]["kafka"].update({k.replace("__", "."): v for k, v in source.items()})
        config.update(more or {})
        return config

    def pipe(self, folder=None, **kw):
        folder = folder or self.folder()
        c = self.cdcd(self.config(folder, **kw))
        c.out = folder
        return c

    def lines(self, folder, topic=None):
        path = os.path.join(folder, (topic or self.topic) + ".jsonl")
        if not os.path.exists(path):
            return []
        with open(path, encoding="utf-8") as f:
            return f.read().split("\n")[:-1]

    def wait_lines(self, c, n, topic=None, timeout=60):
        def enough():
            if not c.alive():
                raise cdcdtest.Failure("cdcd ended:\n" + c.logs())
            return len(self.lines(c.out, topic)) >= n
        wait_until("%d lines, there are %d" % (n, len(self.lines(c.out, topic))), enough, timeout)

    def in_kafka(self, topic=None):
        """What the topic holds, in the file sink's form."""
        r = run([os.path.join(SUPPORT, "kread"), self.kafka.bootstrap, topic or self.topic,
                 "--from-beginning", "--until-end", "--plain"])
        return r.stdout.split("\n")[:-1]

    def stop(self, c, code=0):
        got = c.stop()
        self.assertEqual(got, code, c.logs()[-3000:])

    def ends(self, c, code, *patterns, timeout=60):
        got = c.wait(timeout)
        log = c.logs()
        self.assertEqual(got, code, log[-3000:])
        for p in patterns:
            self.assertRegex(log, p)


class Records(Source):
    def test_bytes_are_those_of_the_topic(self):
        """Keys, values and headers as they are: tombstones, no keys, no JSON, nothing at all."""
        self.create()
        with Put(self.kafka) as p:
            t = self.topic
            p.put(t, {"id": 1}, {"a": 1.10, "b": "ä"}, headers=[("cdcd.pos", "0000000000000001-1-0000000000000001"),
                                                                ("h", {"x": [1]}), ("n", None), ("e", "")])
            p.put(t, {"id": 1}, None, headers=[("cdcd.pos", "0000000000000002-1-0000000000000001")])
            p.put(t, None, {"no": "key"})
            p.put(t, None, None)
            p.put(t, "", "")
            p.put(t, "plain text", b"\x00\xff\xfe binary")
            p.put(t, {"schema": {"type": "struct"}, "payload": {"id": 7}},
                  {"schema": {"type": "struct"}, "payload": {"op": "c", "after": {"id": 7}, "before": None}})
            p.put(t, {"id": 8}, {"op": "d", "before": {"id": 8}, "after": None, "source": {"lsn": 1}},
                  headers=[("h", "1"), ("h", "2"), ("t", "true"), ("u", "{not json")])
            p.do("flush")
        c = self.pipe().start()
        self.wait_lines(c, 8)
        self.stop(c)
        want = self.in_kafka()
        self.assertEqual(len(want), 8)
        self.assertEqual(self.lines(c.out), want)

    def test_to_standard_output(self):
        self.create()
        self.put([({"id": i}, {"n": i}) for i in range(3000)])
        c = self.pipe("-")
        path = os.path.join(c.dir, "stdout")
        with open(path, "wb") as f:
            c.start(stdout=f)

        def lines():
            with open(path, encoding="utf-8") as f:
                return f.read().split("\n")[:-1]
        wait_until("all lines", lambda: len(lines()) >= 3000)
        self.stop(c)
        self.assertEqual(lines(), self.in_kafka())

    def test_aborted_and_open_transactions(self):
        self.create()
        c = self.pipe().start()
        with Put(self.kafka, self.prefix) as p:
            for n, end in enumerate(["commit", "abort", "commit", "abort", "abort"]):
                p.do("begin")
                for i in range(500):
                    p.put(self.topic, {"id": i}, {"tx": n})
                p.do(end)
            p.do("begin")
            for i in range(500):
                p.put(self.topic, {"id": i}, {"tx": 5})
            self.wait_lines(c, 1000)
            time.sleep(1)
            self.assertEqual([json.loads(x)["value"]["tx"] for x in self.lines(c.out)], [0] * 500 + [2] * 500)
            p.do("commit")
        self.wait_lines(c, 1500)
        time.sleep(2)
        self.stop(c)
        self.assertEqual(self.lines(c.out), self.in_kafka())
        # The position is behind the markers of transactions, which are no records.
        self.assertEqual(self.group_offsets(), {self.topic + "/0": self.end_offset()})

    def group_offsets(self):
        r = self.pipe("-", more={"log.level": "debug"})
        r.start()
        r.wait_log(r"partition\(s\) come")
        r.stop()
        return {m.group(1): int(m.group(2)) for m in re.finditer(r"(\S+/\d+) comes, from offset (\d+)", r.logs())}

    def end_offset(self):
        return max(r["offset"] for r in self.kafka.read(self.topic)) + 2

    def test_too_large(self):
        self.create(1, None, "max.message.bytes=4000000")
        self.put([("a", "x"), ("b", "y" * 200000), ("c", "z")])
        c = self.pipe(more={"max.event.bytes": "100KB"}).start()
        self.ends(c, 1, r"topic %s, partition 0, offset 1: the record has 200001 bytes, over max.event.bytes"
                  % self.topic)
        c.config["source"]["kafka"]["errors.policy"] = "skip"
        c.start()
        self.wait_lines(c, 2)
        self.stop(c)
        self.assertRegex(c.logs(), "left out")
        self.assertEqual([json.loads(x)["key"] for x in self.lines(c.out)], ["a", "c"])

    def test_large_records(self):
        """Larger than what is fetched at a time."""
        self.create(2, None, "max.message.bytes=30000000")
        with Put(self.kafka) as p:
            for i in range(4):
                p.put(self.topic, str(i), "v" * (6000000 + i), i % 2)
                p.put(self.topic, "s%d" % i, "small", i % 2)
            p.do("flush")
        c = self.pipe().start()
        self.wait_lines(c, 8)
        self.stop(c)
        self.assertEqual(sorted(len(json.loads(x)["value"]) for x in self.lines(c.out)),
                         [5] * 4 + [6000000 + i for i in range(4)])

    def test_more_than_may_wait(self):
        """40 times what librdkafka may hold: it fetches again when there is room. Old ones look once
        a second by themselves, and are woken."""
        self.create(2)
        with Put(self.kafka) as p:
            for i in range(20000):
                p.put(self.topic, str(i), "v" * 2000, i % 2)
            p.do("flush")
        c = self.pipe(properties={"queued.max.messages.kbytes": 1024}, more={"log.level": "debug"}).start()
        self.wait_lines(c, 20000)
        self.stop(c)
        keys = collections.Counter(json.loads(x)["key"] for x in self.lines(c.out))
        self.assertEqual((len(keys), set(keys.values()), min(keys), max(keys)), (20000, {1}, 0, 19999))
        woken = re.search(r"librdkafka was woken (\d+) times", c.logs())
        if not woken:
            self.assertTrue(self.has_backoff(), c.logs()[-3000:])
        else:
            self.assertGreater(int(woken[1]), 20)

    def has_backoff(self):
        """Of librdkafka 2.2 and later."""
        c = self.cdcd(self.config(self.folder(), properties={"fetch.queue.backoff.ms": 5}), "backoff")
        return c.run("check").returncode == 0


class Topics(Source):
    def test_patterns_and_new_ones(self):
        self.create(1, self.prefix + ".a")
        self.create(1, self.prefix + ".b")
        self.create(1, self.prefix + ".secret")
        self.create(1, "other." + self.prefix)
        self.create(1, "__cdcd." + self.prefix)
        for t in (self.prefix + ".a", self.prefix + ".b", self.prefix + ".secret", "other." + self.prefix,
                  "__cdcd." + self.prefix):
            self.put([("k", t)], t)
        c = self.pipe(topics=[self.prefix + r"\..*", "__cdcd.*"],
                      topics__exclude=[r".*\.secret"]).start()
        self.wait_lines(c, 1, self.prefix + ".a")
        self.wait_lines(c, 1, self.prefix + ".b")
        self.create(2, self.prefix + ".new")
        self.put([("k%d" % i, i) for i in range(100)], self.prefix + ".new")
        self.wait_lines(c, 100, self.prefix + ".new")
        self.ktopic("grow", self.prefix + ".new", 4)
        with Put(self.kafka) as p:
            for i in range(40):
                p.put(self.prefix + ".new", "g", i, i % 4)
            p.do("flush")
        self.wait_lines(c, 140, self.prefix + ".new")
        self.stop(c)
        self.assertEqual(sorted(cdcdtest.read_folder(c.out)), [self.prefix + x for x in (".a", ".b", ".new")])

    def test_waits_for_the_first_topic(self):
        c = self.pipe().start()
        c.wait_log("no topic matches source.kafka.topics yet")
        self.create()
        self.put([("a", 1)])
        self.wait_lines(c, 1)
        self.stop(c)

    def test_deleted(self):
        self.create()
        self.create(1, self.prefix + ".other")
        self.put([("a", 1)] * 10)
        self.put([("a", 1)] * 10, self.prefix + ".other")
        c = self.pipe().start()
        self.wait_lines(c, 10)
        self.wait_lines(c, 10, self.prefix + ".other")
        time.sleep(0.5)
        self.ktopic("delete", self.topic)
        self.ends(c, 3, r"topic %s does not exist any more at \S+, and it was read up to offset 10" % self.topic,
                  "source.kafka.topics.exclude")
        c.start()
        self.ends(c, 3, "does not exist any more")
        c.config["source"]["kafka"]["topics.exclude"] = [self.topic]
        c.start()
        self.put([("b", 2)], self.prefix + ".other")
        self.wait_lines(c, 11, self.prefix + ".other")
        self.stop(c)

    def made_anew(self, records, pattern):
        self.create()
        self.put([("a", i) for i in range(100)])
        c = self.pipe().start()
        self.wait_lines(c, 100)
        self.stop(c)
        self.ktopic("delete", self.topic)
        wait_until("the topic to go", lambda: self.topic not in self.all_topics())
        self.create()
        with Put(self.kafka) as p:
            for i in range(records):
                p.put(self.topic, "b", i, 0, TS + 5000000 + i)
            p.do("flush")
        c.start()
        self.ends(c, 3, pattern)
        self.assertEqual(len(self.lines(c.out)), 100)

    def all_topics(self):
        r = run([os.path.join(SUPPORT, "kread"), self.kafka.bootstrap, "^" + self.topic.replace(".", r"\.") + "$",
                 "--from-beginning", "--until-end"])
        return self.topic if not r.stderr.startswith("0 ") else ""

    def test_made_anew_shorter(self):
        self.made_anew(50, r"was read up to offset 100, but ends at 50: it was made anew")

    def test_made_anew_longer(self):
        self.made_anew(300, r"partition 0 was made anew: the record at the offset that was read last is another one")

    def test_made_anew_while_reading(self):
        self.create()
        self.put([("a", i) for i in range(100)])
        c = self.pipe(topics__refresh__interval__ms=60000).start()
        self.wait_lines(c, 100)
        time.sleep(0.5)
        self.ktopic("delete", self.topic)
        self.create()
        time.sleep(2)
        with Put(self.kafka) as p:
            for i in range(300):
                p.put(self.topic, "b", i, 0, TS + 5000000 + i)
            p.do("flush")
        self.ends(c, 3, r"made anew|does not exist any more")
        self.assertEqual(len(self.lines(c.out)), 100)

    def test_deleted_records(self):
        """Retention took what was not read: a loss. What was read may go."""
        self.create()
        self.put([("a", i) for i in range(100)])
        c = self.pipe().start()
        self.wait_lines(c, 100)
        self.stop(c)
        self.ktopic("trim", self.topic, 0, 100)
        self.put([("b", i) for i in range(100)])
        c.start()
        self.wait_lines(c, 200)
        self.stop(c)
        self.put([("c", i) for i in range(100)])
        self.ktopic("trim", self.topic, 0, 250)
        c.start()
        self.ends(c, 3, r"records from offset 200 to 250 were deleted before they were read")
        self.assertEqual(len(self.lines(c.out)), 200)


class Positions(Source):
    def check_exactly(self, folder, per_partition):
        seen = collections.defaultdict(list)
        for line in self.lines(folder):
            v = json.loads(line)["value"]
            seen[v["p"]].append(v["n"])
        self.assertEqual({p: len(n) for p, n in seen.items()}, {p: n for p, n in per_partition.items()})
        for p, n in per_partition.items():
            self.assertEqual(seen[p], list(range(n)))

    def test_exactly_once_over_kills(self):
        """One instance with a sink that keeps the position: ten times kill -9 under load."""
        partitions = 4
        self.create(partitions)
        rng = random.Random(7)
        count = collections.Counter()
        c = self.pipe()
        with Put(self.kafka) as p:
            def more(n):
                for _ in range(n):
                    part = rng.randrange(partitions)
                    p.put(self.topic, part, {"p": part, "n": count[part]}, part, TS + sum(count.values()))
                    count[part] += 1
                p.do("flush")
            for kill in range(10):
                c.start()
                before = len(self.lines(c.out))
                for _ in range(20):
                    more(500)
                    time.sleep(rng.random() * 0.05)
                wait_until("progress", lambda: len(self.lines(c.out)) > before, 60)
                time.sleep(rng.random() * 0.3)
                c.kill()
            more(500)
            c.start()
            self.wait_lines(c, sum(count.values()))
            time.sleep(1)
            self.stop(c)
        self.assertEqual(sum(count.values()), 100500)
        self.check_exactly(c.out, count)

    def test_broker_restarts(self):
        self.create(2)
        count = collections.Counter()
        c = self.pipe().start()

        def more(n):
            with Put(self.kafka) as p:
                for i in range(n):
                    part = i % 2
                    p.put(self.topic, part, {"p": part, "n": count[part]}, part, TS + count[part])
                    count[part] += 1
                p.do("flush")
        for how in ("kill", "restart", "kill"):
            more(1000)
            self.wait_lines(c, sum(count.values()))
            getattr(self.kafka, how)()
            if how == "kill":
                time.sleep(3)  # the group takes us for dead meanwhile
                self.kafka.start_again()
        more(1000)
        self.wait_lines(c, sum(count.values()), timeout=90)
        time.sleep(1)
        self.stop(c)
        self.check_exactly(c.out, count)

    def test_starts_before_the_broker(self):
        self.create()
        self.put([("a", 1)] * 5)
        self.kafka.kill()
        try:
            c = self.pipe().start()
            c.wait_log("does not answer")
        finally:
            self.kafka.start_again()
        self.wait_lines(c, 5)
        self.stop(c)

    def test_stop_without_broker(self):
        self.create()
        self.put([("a", 1)] * 5)
        c = self.pipe().start()
        self.wait_lines(c, 5)
        self.kafka.kill()
        try:
            time.sleep(1)
            self.stop(c)
        finally:
            self.kafka.start_again()

    def test_position_of_another_source(self):
        """A folder that another pipeline of that name wrote from a database is not gone on with."""
        self.create()
        self.put([("a", 1)])
        c = self.pipe().start()
        self.wait_lines(c, 1)
        self.stop(c)
        record = os.path.join(c.out, ".cdcd-%s.state" % self.prefix)
        with open(record, "rb") as f:
            text = f.read()
        payload = text[text.rindex(b"cdcd1 "):].split(b"\n", 1)[1][:-1].replace(b"topics", b"notlsn")
        with open(record, "wb") as f:
            f.write(b"cdcd1 %08x %d\n%s\n" % (crc32c(payload), len(payload), payload))
        c.start()
        self.ends(c, 2, "the position that the sink holds is not of a Kafka source")

    def test_first_run_goes_by_the_group(self):
        """A new folder goes on where the group stands; cdcd drop lets it begin anew."""
        self.create()
        self.put([("a", 1)] * 20)
        c = self.pipe().start()
        self.wait_lines(c, 20)
        self.stop(c)
        self.put([("b", 1)] * 5)
        d = self.pipe().start()
        self.wait_lines(d, 5)
        time.sleep(0.5)
        self.stop(d)
        self.assertEqual(len(self.lines(d.out)), 5)
        out = d.run("check").stdout
        self.assertRegex(out, r"group cdcd-%s: Empty, 0 member" % self.prefix)
        self.assertRegex(out, r"topic %s: 1 partition" % re.escape(self.topic))
        self.assertIn("cdcd-" + self.prefix, d.run("drop", "--yes").stdout)
        self.assertIn("nothing to drop", d.run("drop", "--yes").stdout)
        self.assertRegex(d.run("check").stdout, r"group cdcd-%s: does not exist yet" % self.prefix)
        e = self.pipe().start()
        self.wait_lines(e, 25)
        self.stop(e)


class Groups(Source):
    PARTITIONS = 8

    def load(self, p, count, rng, n):
        for _ in range(n):
            part = rng.randrange(self.PARTITIONS)
            p.put(self.topic, part, {"p": part, "n": count[part]}, part, TS + sum(count.values()))
            count[part] += 1
        p.do("flush")

    def seen(self, pipes):
        out = collections.defaultdict(set)
        for c in pipes:
            for line in self.lines(c.out):
                v = json.loads(line)["value"]
                out[v["p"]].add(v["n"])
        return out

    def shared(self, n):
        """All instances have work, and nothing is lost when they are killed in turn."""
        self.create(self.PARTITIONS)
        rng = random.Random(n)
        count = collections.Counter()
        pipes = [self.pipe() for _ in range(n)]
        with Put(self.kafka) as p:
            for c in pipes:
                c.start()
            for c in pipes:
                c.wait_log(r"partition\(s\) come, [1-8] in all")
            for turn in range(2 * n):
                for _ in range(5):
                    self.load(p, count, rng, 400)
                    time.sleep(0.05)
                victim = pipes[turn % n]
                if turn % 3 == 2:
                    self.stop(victim)
                else:
                    victim.kill()
                self.load(p, count, rng, 400)
                time.sleep(rng.random())
                victim.start()
            self.load(p, count, rng, 400)

            def complete():
                got = self.seen(pipes)
                return all(len(got[k]) == count[k] for k in range(self.PARTITIONS))
            wait_until("all records", complete, 90, 0.5)
        for c in pipes:
            self.stop(c)
        got = self.seen(pipes)
        for k in range(self.PARTITIONS):
            self.assertEqual(got[k], set(range(count[k])))
        total = 0
        for c in pipes:
            lines = self.lines(c.out)
            self.assertGreater(len(lines), 0)
            total += len(lines)
            self.in_order(lines)
        self.assertGreaterEqual(total, sum(count.values()))

    def in_order(self, lines):
        """Within what one instance wrote, a partition goes back only to be repeated: no gap."""
        seen = collections.defaultdict(set)
        last = {}
        for line in lines:
            v = json.loads(line)["value"]
            p, n = v["p"], v["n"]
            if p in last and n <= last[p]:
                self.assertIn(n, seen[p])
            seen[p].add(n)
            last[p] = max(last.get(p, -1), n)

    def test_two_instances(self):
        self.shared(2)

    def test_four_instances(self):
        self.shared(4)

    def test_handover_repeats_nothing(self):
        """Instances that come and go in good order, under load: every record once."""
        self.create(self.PARTITIONS)
        rng = random.Random(3)
        count = collections.Counter()
        pipes = [self.pipe(properties={"session.timeout.ms": 20000}) for _ in range(3)]
        with Put(self.kafka) as p:
            for turn in range(3):
                pipes[turn].start()
                pipes[turn].wait_log(r"partition\(s\) come, [1-8] in all")
                for _ in range(10):
                    self.load(p, count, rng, 300)
                    time.sleep(0.02)
            for c in pipes[:2]:
                self.load(p, count, rng, 300)
                self.stop(c)
                self.load(p, count, rng, 300)

            def complete():
                return sum(len(self.lines(c.out)) for c in pipes) >= sum(count.values())
            wait_until("all records", complete, 60, 0.2)
            time.sleep(1)
        self.stop(pipes[2])
        rows = [(v["p"], v["n"]) for c in pipes for v in (json.loads(x)["value"] for x in self.lines(c.out))]
        self.assertEqual(len(rows), len(set(rows)), "records came twice")
        self.assertEqual(sorted(rows), sorted((k, i) for k in count for i in range(count[k])))


class Loop(Source):
    def into(self, other):
        return self.cdcd({"name": self.prefix, "errors.retry.delay.max.ms": "500ms",
                          "source": {"kafka": {"bootstrap.servers": self.kafka.bootstrap, "properties": QUICK,
                                               "topics": [self.topic], "topics.refresh.interval.ms": 300}},
                          "sink": {"kafka": {"bootstrap.servers": other}}})

    def test_into_the_same_cluster(self):
        """Under another address too. Nothing of it is written."""
        self.create()
        self.put([("k", 1)])
        for address in (self.kafka.bootstrap, self.kafka.bootstrap.replace("127.0.0.1", "localhost")):
            c = self.into(address)
            r = c.run("check", check=False)
            self.assertEqual(r.returncode, 1)
            self.assertRegex(r.stdout, r"FAIL +sink: sink.kafka: .*are the same cluster")
            c.start()
            self.ends(c, 2, r"source.kafka \(%s\) and sink.kafka \(%s\) are the same cluster, \S+, and records keep"
                      % (re.escape(self.kafka.bootstrap), re.escape(address)), "for ever. Write into another")
        self.assertEqual(len(self.in_kafka()), 1)

    def test_into_another_cluster(self):
        self.create()
        other = cdcdtest.Kafka()
        self.addCleanup(other.stop)
        self.put([("k", 1), ("k", 2)])
        c = self.into(other.bootstrap)
        self.assertNotIn("same cluster", c.run("check", check=False).stdout)
        c.start()
        wait_until("both", lambda: len(other.read("^%s$" % re.escape(self.topic))) == 2, 60)
        self.stop(c)


class FromPostgres(Source):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.pg = cdcdtest.Postgres()

    @classmethod
    def tearDownClass(cls):
        cls.pg.stop()
        super().tearDownClass()

    @staticmethod
    def without_clock(line):
        """Without the time at which cdcd saw the change, the only thing that two runs differ in."""
        return re.sub(r'"ts_(ms|us|ns)":\d+(?=[,}](?:"ts_|"|\}))(?!.*"source":)', r'"ts_\1":0', line)

    def test_through_kafka_is_as_without(self):
        """postgres -> kafka -> file gives what postgres -> file gives, headers too."""
        db = self.pg.new_db("ks")
        self.pg.sql("CREATE TABLE a (id int PRIMARY KEY, t text, n numeric(10,2)); CREATE TABLE b (x int, y text);"
                    "ALTER TABLE b REPLICA IDENTITY FULL", db)
        common = {"topic.prefix": db, "snapshot": {"mode": "initial"}}
        direct = self.cdcd(dict(common, name=db + "d", source={"postgres": {
            "url": self.pg.url(db), "slot.name": db + "_d", "publication.name": db}},
            sink={"file": {"path": self.folder()}}))
        first = self.cdcd(dict(common, name=db + "k", source={"postgres": {
            "url": self.pg.url(db), "slot.name": db + "_k", "publication.name": db}},
            sink={"kafka": {"bootstrap.servers": self.kafka.bootstrap}}))
        second = self.cdcd({"name": db + "s", "topic.prefix": db,
                            "source": {"kafka": {"bootstrap.servers": self.kafka.bootstrap,
                                                 "topics.refresh.interval.ms": 300}},
                            "sink": {"file": {"path": self.folder()}}})
        for c in (direct, first, second):
            c.start()
        direct.wait_log("streaming")
        first.wait_log("streaming")
        for i in range(50):
            self.pg.sql("BEGIN; INSERT INTO a VALUES (%d, 'text \"%d\"', %d.50), (%d, NULL, NULL);"
                        "INSERT INTO b VALUES (%d, 'ä'); UPDATE a SET t = 'new' WHERE id = %d;"
                        "UPDATE b SET y = 'z' WHERE x = %d; DELETE FROM a WHERE id = %d; COMMIT"
                        % (2 * i, i, i, 2 * i + 1, i, 2 * i, i, 2 * i + 1), db)
        folders = [c.config["sink"]["file"]["path"] for c in (direct, second)]
        for topic, n in ((db + ".public.a", 250), (db + ".public.b", 100)):
            for f in folders:
                wait_until("%s in %s" % (topic, f), lambda: len(self.lines(f, topic)) >= n, 60)
        for c in (direct, first, second):
            self.stop(c)
        for topic, n in ((db + ".public.a", 250), (db + ".public.b", 100)):
            one, two = (self.lines(f, topic) for f in folders)
            self.assertEqual(len(one), n)
            self.assertEqual(two, self.in_kafka(topic))
            self.assertEqual([self.masked(x) for x in two], [self.masked(x) for x in one])
        self.assertEqual(sorted(cdcdtest.read_folder(folders[1])), sorted(cdcdtest.read_folder(folders[0])))

    @staticmethod
    def masked(line):
        r = json.loads(line)
        if r["value"]:
            for name in ("ts_ms", "ts_us", "ts_ns"):
                r["value"][name] = 0
        return json.dumps(r, ensure_ascii=False)


if __name__ == "__main__":
    cdcdtest.main()
