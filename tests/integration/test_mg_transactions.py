"""Transactions of every form: in one entry of the oplog and in chains over 16 MB, prepared, aborted,
of several databases; with the daemon killed, and the oplog unreadable, in between.

Fake*: entries as a real server writes them, through the fake server. Live: the same statements on the
server that can be run, in both ways of capture (its entries have other forms).
"""
import cdcdtest
import mgcase
import mglog
from mgcase import bson


class FakeTransactions(mglog.FakeCase):
    PAD = "p" * (7 * 1024 * 1024)

    def piped(self, **more):
        more.setdefault("source", {})["collection.include.list"] = ["hb.tx"]
        return self.started(["hb", "hb_other"], format={"provide.transaction.metadata": True}, **more)

    def totals(self, p):
        """[(events of hb.tx)] of each transaction that ended."""
        records = cdcdtest.read_folder(p.out).get("srv.transaction", [])
        begun = [r["value"]["id"] for r in records if r["value"]["status"] == "BEGIN"]
        ended = [r["value"] for r in records if r["value"]["status"] == "END"]
        self.assertEqual(begun, [r["id"] for r in ended])
        out = []
        for r in ended:
            self.assertEqual([x["data_collection"] for x in r["data_collections"]], ["hb.tx"])
            self.assertEqual(r["event_count"], r["data_collections"][0]["event_count"])
            out.append(r["event_count"])
        return out

    def first(self):
        log, tx, other = self.log, "hb.tx", "hb_other.tx"
        return log.transaction([log.op_insert(tx, {"_id": 1, "v": "x"}), log.op_diff(tx, 1, {"u": {"v": "y"}}),
                                log.op_insert(other, {"_id": 1, "db": "other"}), log.op_delete(tx, 0),
                                log.op_insert(tx, {"_id": 0, "n": "again"})])

    def large(self):
        log, tx = self.log, "hb.tx"
        docs = [log.op_insert(tx, {"_id": 100 + n, "pad": self.PAD}) for n in range(5)]
        return log.transaction(docs[0:2], docs[2:4], [docs[4], log.op_insert("hb_other.tx", {"_id": 100})])

    def test_all_forms(self):
        log, tx, other = self.log, "hb.tx", "hb_other.tx"
        p = self.piped()
        start = [log.create(tx), log.create(other), log.insert(tx, {"_id": 0, "n": 0})]
        self.fake_.append(start, [(tx, {"_id": 1, "v": "y"})])
        self.fake_.append(self.first())
        aborted = [log.op_insert(tx, {"_id": 666}), log.op_insert(other, {"_id": 666})]
        self.fake_.append(log.transaction(aborted, prepare=True, end="abort"))
        self.fake_.append(self.large())
        self.fake_.append(log.transaction([log.op_insert(tx, {"_id": 1000 + n}) for n in range(3000)]))
        self.fake_.append([log.vectored([log.op_insert(tx, {"_id": 2}), log.op_insert(tx, {"_id": 3})])])
        p.sync()
        got = p.changes("tx")
        self.assertEqual([(op, key) for op, key, _, _ in got],
                         [("c", "0"), ("c", "1"), ("u", "1"), ("d", "0"), ("c", "0")] +
                         [("c", str(n)) for n in range(100, 105)] + [("c", str(n)) for n in range(1000, 4000)] +
                         [("c", "2"), ("c", "3")])
        self.assertEqual(got[2][2:], ({"_id": 1, "v": "y"}, mglog.described({"v": "y"})))
        for n in range(5):
            self.assertEqual(got[5 + n][2], {"_id": 100 + n, "pad": self.PAD})
        self.assertEqual({r["topic"] for r in p.records()} - {"srv"}, {"srv.hb.tx", "srv.transaction"})
        self.assertEqual(self.totals(p), [4, 5, 3000])
        values = [r["value"] for r in p.records("tx") if r["value"]]
        self.assertEqual([v["transaction"] and v["transaction"]["total_order"] for v in values],
                         [None, 1, 2, 3, 4, *range(1, 6), *range(1, 3001), None, None])
        self.assertEqual({v["source"]["txnNumber"] for v in values[5:10]}, {log.txn - 2})
        p.stop()

    def test_prepared(self):
        """Visible at the commit, in between other writes; aborted: never."""
        log, tx = self.log, "hb.tx"
        p = self.piped()
        kept = log.transaction([log.op_insert(tx, {"_id": 1})], [log.op_insert(tx, {"_id": 2})], prepare=True, end=None)
        lost = log.transaction([log.op_insert(tx, {"_id": 3})], prepare=True, end=None)
        between = log.insert(tx, {"_id": 4})
        got = self.came(p, "tx", [*kept, *lost, between])
        self.assertEqual([x[:2] for x in got], [("c", "4")])
        got = self.came(p, "tx", [log.finish(lost[-1], "abort"), log.finish(kept[-1]), log.insert(tx, {"_id": 5})])
        self.assertEqual([x[:2] for x in got], [("c", "1"), ("c", "2"), ("c", "5")])
        self.assertEqual(self.totals(p), [2])
        p.stop()

    def test_interleaved(self):
        """Two transactions whose parts alternate."""
        log, tx = self.log, "hb.tx"
        p = self.piped()
        a1 = log.transaction([log.op_insert(tx, {"_id": "a1"})], end=None)
        session, log.lsid = log.lsid, bson.SON([("id", log.new_uuid()), ("uid", b"\xe4" * 32)])
        b1 = log.transaction([log.op_insert(tx, {"_id": "b1"})], end=None)
        b2 = log.last_part(b1, [log.op_insert(tx, {"_id": "b2"})])
        log.lsid = session
        a2 = log.last_part(a1, [log.op_insert(tx, {"_id": "a2"})])
        got = self.came(p, "tx", [*a1, *b1, b2, a2])
        self.assertEqual([x[1] for x in got], ['"b1"', '"b2"', '"a1"', '"a2"'])
        p.stop()

    def test_killed_between_two_entries(self):
        """The position may be behind the first entries of the chain: they are read again."""
        log, tx = self.log, "hb.tx"
        p = self.piped()
        parts = log.transaction([log.op_insert(tx, {"_id": 1})], [log.op_insert(tx, {"_id": 2})], end=None)
        got = self.came(p, "tx", [*parts, log.insert(tx, {"_id": 9})])
        self.assertEqual([x[1] for x in got], ["9"])
        p.cdcd.kill()
        p.start()
        got = self.came(p, "tx", [log.last_part(parts, [log.op_insert(tx, {"_id": 3})])])
        self.assertEqual([x[1] for x in got], ["1", "2", "3"])
        self.assertEqual(self.totals(p), [3])
        p.stop()

    def test_killed_at_any_moment(self):
        """No half transaction and no double one, wherever the daemon was when it was killed."""
        log, tx = self.log, "hb.tx"
        p = self.piped()
        want = []
        for n in range(6):
            docs = [log.op_insert(tx, {"_id": 1000 * n + k, "pad": "x" * 2000}) for k in range(900)]
            want += [str(1000 * n + k) for k in range(900)]
            self.fake_.append(log.transaction(docs[:300], docs[300:600], docs[600:]))
            p.wait_came("srv.hb.tx", '"id":"%d"' % (1000 * n + 150 * n), 60)
            p.cdcd.kill()
            p.start()
        p.sync()
        self.assertEqual([x[1] for x in p.changes("tx")], want)
        self.assertEqual(self.totals(p), [900] * 6)
        positions = p.positions()
        self.assertEqual(positions, sorted(set(positions)))
        p.stop()

    def test_first_part_rolled_over(self):
        log, tx = self.log, "hb.tx"
        p = self.piped()
        parts = log.transaction([log.op_insert(tx, {"_id": 1})], [log.op_insert(tx, {"_id": 2})], end=None)
        self.came(p, "tx", [*parts, log.insert(tx, {"_id": 9})])
        self.fake_.rollover(2)
        self.fake_.append([log.last_part(parts, [log.op_insert(tx, {"_id": 3})])])
        p.ends(3, r"part of the transaction", r"no longer in the oplog")
        self.assertEqual([x[1] for x in p.changes("tx")], ["9"])

    def test_parts_that_cannot_be_read_for_a_while(self):
        """An election, or a cut, while a transaction's parts are read again: still whole, and once."""
        log, tx = self.log, "hb.tx"
        p = self.piped()
        want = []
        for n, code in enumerate((11602, 0, 10107)):
            ids = ["%d.%d" % (n, k) for k in range(4)]
            entries = log.transaction([log.op_insert(tx, {"_id": ids[0]})], [log.op_insert(tx, {"_id": ids[1]})],
                                      [log.op_insert(tx, {"_id": ids[2]}), log.op_insert(tx, {"_id": ids[3]})])
            self.fake_.fail("find", code, collection="oplog.rs", labels=["RetryableError"] if code else ())
            want += ['"%s"' % i for i in ids]
            self.fake_.append(entries)
            p.sync()
        self.assertEqual([x[1] for x in p.changes("tx")], want)
        self.assertEqual(self.totals(p), [4, 4, 4])
        positions = p.positions()
        self.assertEqual(positions, sorted(set(positions)))
        p.stop()

    def test_commit_that_points_at_the_first_part(self):
        """Of a prepared transaction: no part is lost because of it."""
        log, tx = self.log, "hb.tx"
        p = self.piped()
        entries = log.transaction([log.op_insert(tx, {"_id": 1})], [log.op_insert(tx, {"_id": 2})],
                                  [log.op_insert(tx, {"_id": 3})], prepare=True)
        entries[-1]["prevOpTime"] = log.optime(entries[0]["ts"])
        got = self.came(p, "tx", entries)
        self.assertEqual([x[1] for x in got], ["1", "2", "3"])
        p.stop()


class Live(mgcase.MgCase):
    def test_transactions(self):
        db = self.db()
        other = self.mongo.client[db.name + "_other"]
        for d in (db, other):
            d.create_collection("tx")
        db.create_collection(mgcase.SYNC)
        db.tx.insert_one({"_id": 0, "n": 0})
        pipes = [self.pipe([db.name, other.name], capture=capture, name="%s-%s" % (db.name, capture),
                           snapshot={"mode": "no_data"}, source={"collection.include.list": [db.name + ".tx"]},
                           format={"provide.transaction.metadata": True}).start() for capture in mgcase.CAPTURES]
        with self.mongo.client.start_session() as s:
            with s.start_transaction():
                db.tx.insert_one({"_id": 1, "v": "x"}, session=s)
                db.tx.update_one({"_id": 1}, {"$set": {"v": "y"}}, session=s)
                other.tx.insert_one({"_id": 1, "db": "other"}, session=s)
                db.tx.delete_one({"_id": 0}, session=s)
                db.tx.insert_one({"_id": 0, "n": "again"}, session=s)
            s.start_transaction()
            db.tx.insert_one({"_id": 666}, session=s)
            other.tx.insert_one({"_id": 666}, session=s)
            s.abort_transaction()
            with s.start_transaction():
                db.tx.insert_many([{"_id": 1000 + n} for n in range(3000)], session=s)
        db.tx.insert_many([{"_id": 2}, {"_id": 3}], ordered=False)
        for p in pipes:
            p.sync()
        for p in pipes:
            with self.subTest(capture=p.source["capture"]):
                self.assertEqual([x[:2] for x in p.changes("tx")],
                                 [("c", "1"), ("u", "1"), ("d", "0"), ("c", "0")] +
                                 [("c", str(1000 + n)) for n in range(3000)] + [("c", "2"), ("c", "3")])
                ends = [r["value"]["event_count"] for r in cdcdtest.read_folder(p.out)["srv.transaction"]
                        if r["value"]["status"] == "END"]
                self.assertEqual(ends, [4, 3000])
                self.assertEqual({r["topic"] for r in p.records()}, {"srv.%s.tx" % db.name, "srv.transaction"})
            p.stop()


if __name__ == "__main__":
    cdcdtest.main()
