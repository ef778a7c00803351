"""An oplog that has rolled over the stored position, was rolled back behind it, or whose cursor is lost:
told apart, resumed where that is right, else an end that says so.
"""
import itertools
import os
import signal

import cdcdtest
import mgcase
import mglog


class FakeRollover(mglog.FakeCase):
    NS = "hb.roll"

    def seen(self, **more):
        """A pipeline that has seen the document 1."""
        p = self.started("hb", snapshot={"mode": "initial"}, source={"collection.include.list": [self.NS]}, **more)
        self.fake_.append([self.log.create(self.NS), self.log.insert(self.NS, {"_id": 1, "v": "seen"})],
                          [(self.NS, {"_id": 1, "v": "seen"})])
        p.sync()
        self.assertEqual(p.ops("roll"), [("c", {"id": "1"}, {"_id": 1, "v": "seen"})])
        return p

    def gap(self):
        log, ns = self.log, self.NS
        self.fake_.append([log.diff(ns, 1, {"u": {"v": "changed in the gap"}}), log.insert(ns, {"_id": 2}),
                           log.delete(ns, 2)], [(ns, {"_id": 1, "v": "changed in the gap"})])
        self.fake_.append([log.insert("hb.fill", {"_id": n}) for n in range(100)])
        self.fake_.append([log.drop("hb.fill", 100)])

    def state(self, p):
        with open(os.path.join(p.out, ".cdcd-%s.state" % p.cdcd.config["name"]), "rb") as f:
            return f.read()

    def rolled(self, **more):
        p = self.seen(**more)
        p.stop()
        before = self.state(p)
        self.gap()
        self.fake_.rollover(self.fake_.stats()["entries"] - 10)
        self.fake_.append([self.log.insert(self.NS, {"_id": 3, "v": "after"})], [(self.NS, {"_id": 3, "v": "after"})])
        return p, before

    def test_start_behind_a_gap(self):
        p, before = self.rolled()
        first = self.fake_.stats()["first"]
        for _ in range(2):
            p.fails(3, r"no longer in the oplog", r"%d:%d" % (first.time, first.inc), r"snapshot")
        self.assertEqual(self.state(p), before)
        self.assertEqual(p.ops("roll"), [("c", {"id": "1"}, {"_id": 1, "v": "seen"})])

    def test_snapshot_when_needed(self):
        p, _ = self.rolled()
        p.cdcd.config["snapshot"] = {"mode": "when_needed"}
        p.start()
        p.sync()
        self.assertRegex(p.log_since_start(), r"no longer in the oplog")
        self.assertEqual(p.ops("roll")[1:], [("r", {"id": "1"}, {"_id": 1, "v": "changed in the gap"}),
                                             ("r", {"id": "3"}, {"_id": 3, "v": "after"})])
        self.fake_.append([self.log.insert(self.NS, {"_id": 4})])
        p.sync()
        self.assertEqual(p.ops("roll")[-1], ("c", {"id": "4"}, {"_id": 4}))
        p.stop()

    def test_rolled_back_while_stopped(self):
        """The very entry of the position is gone after an election."""
        p = self.seen()
        self.fake_.append([self.log.insert(self.NS, {"_id": 5})])
        p.sync()
        p.stop()
        self.fake_.rollback(8)
        self.fake_.append([self.log.insert(self.NS, {"_id": 6}), self.log.noop()])
        p.fails(3, r"roll(ed)? ?back|no longer in the oplog")
        self.assertEqual([key["id"] for _, key, _ in p.ops("roll")], ["1", "5"])

    def test_paused_over_a_rollover(self):
        """The cursor is told that its place is gone (136): the same end, and no loop."""
        p = self.seen()
        os.kill(p.cdcd.process.pid, signal.SIGSTOP)
        self.gap()
        self.fake_.rollover(self.fake_.stats()["entries"] - 10)
        self.fake_.append([self.log.insert(self.NS, {"_id": 3})])
        before = self.fake_.stats()["commands"]
        os.kill(p.cdcd.process.pid, signal.SIGCONT)
        p.ends(3, r"no longer in the oplog")
        self.assertLess(self.fake_.stats()["commands"]["find"] - before["find"], 10)
        # What had been sent before the pause may come; nothing from behind the gap.
        ids = [key["id"] for _, key, _ in p.ops("roll")]
        self.assertIn(ids, (["1"], ["1", "1", "2", "2", "2"]))

    def lost_cursor(self, code, cut=False, **fault):
        p = self.seen()
        before = self.fake_.stats()["commands"]
        self.fake_.fail("getMore", 0 if cut else code, collection="oplog.rs", **fault)
        self.fake_.append([self.log.insert(self.NS, {"_id": 5})], [(self.NS, {"_id": 5})])
        p.sync()
        self.fake_.append([self.log.insert(self.NS, {"_id": 6})], [(self.NS, {"_id": 6})])
        p.sync()
        after = self.fake_.stats()["commands"]
        self.assertEqual([key["id"] for _, key, _ in p.ops("roll")], ["1", "5", "6"])
        # Not again and again: a handful of finds for one lost cursor.
        self.assertLess(after["find"] - before["find"], 20)
        p.stop()

    def test_cursor_not_found(self):
        self.lost_cursor(43)

    def test_capped_position_lost_without_a_gap(self):
        self.lost_cursor(136)

    def test_cursor_killed(self):
        self.lost_cursor(237)

    def test_interrupted_by_an_election(self):
        self.lost_cursor(11602, labels=["RetryableError", "ResumableChangeStreamError"])

    def test_connection_cut(self):
        self.lost_cursor(0, cut=True)

    def test_several_in_a_row(self):
        self.lost_cursor(43, times=3)

    def test_stepdown(self):
        p = self.seen()
        self.fake_.stepdown(2000)
        self.fake_.append([self.log.insert(self.NS, {"_id": 5})], [(self.NS, {"_id": 5})])
        p.sync()
        self.assertEqual([key["id"] for _, key, _ in p.ops("roll")], ["1", "5"])
        p.stop()

    def test_lookups_that_fail_for_a_while(self):
        p = self.seen()
        for n, code in enumerate((11602, 0, 43)):
            doc = {"_id": 1, "v": n}
            self.fake_.fail("find", code, collection="roll", labels=["RetryableError"] if code else ())
            self.fake_.append([self.log.diff(self.NS, 1, {"u": {"v": n}}), self.log.insert(self.NS, {"_id": 10 + n})],
                              [(self.NS, doc)])
            p.sync()
            self.assertEqual(p.ops("roll")[-2:], [("u", {"id": "1"}, doc), ("c", {"id": str(10 + n)}, {"_id": 10 + n})])
        self.assertEqual(len(p.ops("roll")), 7)
        p.stop()

    def test_moved_chunks(self):
        """fromMigrate: a document that the balancer moves is neither deleted nor inserted."""
        p, log = self.seen(), self.log
        got = self.came(p, "roll", [
            log.delete(self.NS, 1, fromMigrate=True), log.insert(self.NS, {"_id": 7}, fromMigrate=True),
            log.diff(self.NS, 7, {"u": {"v": 1}}, fromMigrate=True), log.insert(self.NS, {"_id": 8})])
        self.assertEqual([x[:2] for x in got], [("c", "8")])
        p.stop()


class LiveRollover(mgcase.MgCase):
    def test_history_lost(self):
        for capture in mgcase.CAPTURES:
            with self.subTest(capture=capture):
                server = self.own_server("oplog-max-entries=50", "noop-heartbeat-seconds=0")
                db = server.client.hb
                db.create_collection(mgcase.SYNC)
                p = self.pipe("hb", server=server, capture=capture, name="lost-" + capture).start()
                db.roll.insert_one({"_id": 1, "v": "seen"})
                p.sync()
                p.stop()
                db.roll.update_one({"_id": 1}, {"$set": {"v": "changed in the gap"}})
                db.roll.insert_one({"_id": 2})
                db.roll.delete_one({"_id": 2})
                gap = server.oplog.find_one(sort=[("$natural", -1)])["ts"]
                number = itertools.count(1)

                def rolled():  # the server looks at the bounds now and then only
                    db.fill.insert_many([{"_id": "%d-%d" % (next(number), n)} for n in range(100)])
                    return server.oplog.find_one()["ts"] > gap
                cdcdtest.wait_until("the oplog to roll over", rolled, 60, 0.2)
                db.fill.drop()
                db.roll.insert_one({"_id": 3, "v": "after"})
                with open(os.path.join(p.out, ".cdcd-%s.state" % p.cdcd.config["name"]), "rb") as f:
                    before = f.read()
                p.fails(3, r"no longer|history", r"snapshot")
                with open(os.path.join(p.out, ".cdcd-%s.state" % p.cdcd.config["name"]), "rb") as f:
                    self.assertEqual(f.read(), before)
                p.cdcd.config["snapshot"] = {"mode": "when_needed"}
                p.start()
                p.sync()
                self.assertEqual(p.store(), {"roll": {"1": {"_id": 1, "v": "changed in the gap"},
                                                      "3": {"_id": 3, "v": "after"}}})
                self.assertEqual(p.store(), mgcase.source_store(db))
                p.stop()


if __name__ == "__main__":
    cdcdtest.main()
