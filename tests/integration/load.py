"""Random load, a snapshot in the middle of it, and then: each change exactly once, each key in
order, the last value of each key as in its table. And that the comparison itself can fail."""
import copy
import json
import os
import random

import cdcdtest
import pgload
import verify


class LoadTest(cdcdtest.TestCase):
    @classmethod
    def setUpClass(cls):
        # A small work_mem, so that transactions are streamed before they commit.
        cls.pg = cdcdtest.Postgres(None, "logical_decoding_work_mem=64kB", "deadlock_timeout=50ms")

    @classmethod
    def tearDownClass(cls):
        cls.pg.stop()

    def under_load(self, streaming, seconds=5, **options):
        db = self.pg.new_db()
        load = pgload.Load(self.pg, db)
        load.run(transactions=1, sessions=1, first=150)
        out = os.path.join(self.folder(), "records")
        config = cdcdtest.file_config(self.pg, db, "-")
        config["source"]["postgres"].update({"table.include.list": [pgload.TABLE_PATTERN],
                                             "streaming": streaming, "status.update.interval.ms": 100})
        load.start(seconds=seconds, sessions=4, **options)
        with open(out, "wb") as f:
            cdcd = self.cdcd(config).start(stdout=f)
            counts = load.wait()
            self.assertGreater(counts["committed"], 50)
            load.wait_drained("cdcd_" + db)
            self.assertEqual(cdcd.stop(), 0)
        with open(out, encoding="utf-8") as f:
            records = [json.loads(line) for line in f]
        stats = load.verify(records)
        self.assertGreater(stats["snapshot"], 100)
        self.assertGreater(stats["transactions"], 20)
        return records, load.expected()

    def test_streamed_transactions(self):
        self.under_load("parallel", large=400, seed=1)

    def test_whole_transactions(self):
        self.under_load("off", large=400, seed=2)

    def test_the_comparison_fails(self):
        records, expected = self.under_load("on", seconds=2, seed=3)
        dice = random.Random(7)
        verify.verify(records, expected)
        change = [i for i, r in enumerate(records) if r["value"] and r["value"]["op"] in "cu"]
        rows = [i for i, r in enumerate(records) if r["value"] and r["value"]["op"] == "r"]
        last = len(change) - 1
        spoiled = {
            "a change is missing": lambda r: r.pop(dice.choice(change)),
            "the last change is missing": lambda r: r.pop(change[last]),
            "a change comes twice": lambda r: r.insert(len(r), r[dice.choice(change)]),
            "a tombstone is missing": lambda r: r.pop(next(
                i for i, x in enumerate(r) if x["value"] is None)),
            "a snapshot row is missing": lambda r: r.pop(dice.choice(rows)),
            "a change is altered": lambda r: r[dice.choice(change)]["value"]["after"].update(ver=0),
            "a key of a record is altered": lambda r: r[change[last]]["key"].update(id=999),
            "of another transaction": lambda r: r[dice.choice(change)]["value"]["source"].update(txId=1),
        }
        for name, spoil in spoiled.items():
            bad = copy.deepcopy(records)
            spoil(bad)
            with self.subTest(name), self.assertRaises(verify.Mismatch):
                verify.verify(bad, expected)


if __name__ == "__main__":
    cdcdtest.main()
