"""Every recorded oplog (tests/golden/oplog) through the real connection code: the fake server has it
as its local.oplog.rs, and what is published is what stands here.

EXPECTED holds, for each file, the records in order, (op, "db.collection", _id in the key, `after` or
updateDescription), then the commands that come as schema changes. What is in a file and not here is
left out on purpose, and why stands beside it. In every file: noops, and the databases admin, config
and local, which hold what a server keeps for itself.
"""
import glob
import json
import os

import cdcdtest
import mgcase
from mgcase import bson

FOLDER = os.path.join(cdcdtest.ROOT, "tests/golden/oplog")
ObjectId = bson.ObjectId


def oid(text):
    return '{"$oid": "%s"}' % text


def c(ns, key, **after):
    """A document inserted whose _id is an ObjectId."""
    return ("c", ns, oid(key), dict({"_id": ObjectId(key)}, **after))


def d(ns, key):
    return [("d", ns, key, None), ("-", ns, key, None)]


def numbered(ns, numbers):
    return [("c", ns, str(n), {"_id": n, "x": n}) for n in numbers]


def updated(ns, key, **fields):
    """`after` is not looked up here (capture.mode change_streams)."""
    return ("u", ns, key, {"removedFields": None, "updatedFields": fields, "truncatedArrays": None})


UNIQUE = [{"prepareUnique": True}, {"prepareUnique": False}, {"prepareUnique": True}, {"unique": True},
          {"forceNonUnique": True}]


def by_uniqueness():
    out = ["create"] + ["createIndexes"] * 4
    return out + ["collMod"] * len(UNIQUE) * 4


EXPECTED = {
    "apply-ops": ([c("db1.c1", "5a1101e6a8feb0cc944981c0", x=1456), c("db1.c1", "5a1101e6a8feb0cc944981c5", x=1457),
                   c("db1.c1", "5a1101e6a8feb0cc944981c9", x=1458), c("db1.c1", "5a1101e6a8feb0cc944981ca", x=1459),
                   c("db1.c1", "5a1101e6a8feb0cc944981cf", x=1460)], []),
    "collmod": ([], ["collMod"]),
    "collmod-hidden": ([], ["collMod"] * 2),
    "collmod-ttl": ([c("mongodump_test_db.coll1", "699c68438c811fd9356c0f7c", a=9)], ["collMod"]),
    "collmod-unique": ([], by_uniqueness()),
    "conflict": ([("c", "test.data", "%d.0" % n, {"_id": float(n)}) for n in range(10, 15)], []),
    "create-index": ([], ["createIndexes"]),
    "create-indexes": ([], ["create", "createIndexes", "createIndexes"]),
    "create-old": ([], ["create", "createIndexes"]),
    "drop": ([], ["drop"]),
    "drop-database": ([], ["dropDatabase"]),
    "drop-index": ([], ["dropIndexes"]),
    "duplicate-key": (d("test.foo", oid("60350a6f415a2fc63f3195a9")) +
                      [c("test.foo", "60350ac1415a2fc63f3195ab", a=1.0)], []),
    "index-abort": ([], ["startIndexBuild", "abortIndexBuild"]),
    "index-build": ([c("commit_index.test", "5ea8b2fca5fd2094399b496a", a=1.0)],
                    ["create", "startIndexBuild", "commitIndexBuild", "startIndexBuild", "commitIndexBuild"]),
    "index-commit": ([], ["startIndexBuild", "commitIndexBuild"]),
    # The last one is the oldest document, with the time of a later dump.
    "local-oplog": ([("c", "test.op", "%d.0" % n, {"_id": float(n), "x": "a%d" % n})
                     for n in list(range(1, 100)) + [0]], []),
    "noop": ([c("test.data", "5473b75c8e32da600b686ed7", a=1.0)], ["create"]),
    # Left out: config.cache.test, config.system.sessions, config.transactions.test.
    "partial-skips": ([c("db3.c1", key, a=17.0, b=32.0) for key in (
        "5e596a742c980617877124e9", "5e596a792c980617877124ea", "5e596a882c980617877124eb",
        "5e596abb8fb0dfa67688a114", "5e596abc8fb0dfa67688a115")], ["create"]),
    # Left out: the buckets of a time series, which pass only where they are named; see below.
    "time-series": ([], []),
    "txn-applyops-not-transaction": (numbered("txntest.b", [0]) + [updated("txntest.b", "0", x=1)], []),
    "txn-large-prepared-aborted": ([], []),  # the transaction was aborted
    # Its commit points at the first part, not at the last one, as it would on a server.
    "txn-large-prepared-committed": (numbered("txntest.g", range(10)), []),
    "txn-large-prepared-committed-linked": (numbered("txntest.g", range(10)), []),
    "txn-large-unprepared": (numbered("txntest.d", range(6)), []),
    "txn-not-transaction": (numbered("txntest.a", [0]), []),
    "txn-not-transaction-with-lsid": (numbered("txntest.i", [0]), []),
    "txn-not-transaction-with-lsid-and-txnNumber": (numbered("txntest.j", [0]), []),
    "txn-not-transaction-with-lsid-and-txnNumber-and-command": ([], ["createIndexes"]),
    "txn-not-transaction-with-multiOpType": ([("c", "test.foo", "4", {"_id": 4, "x": -20, "y": 4}),
                                              ("c", "test.foo", "5", {"_id": 5, "x": -30, "y": 11})], []),
    "txn-small-prepared-aborted": ([], []),
    "txn-small-prepared-committed": (numbered("txntest.e", [0, 1]) + [updated("txntest.e", "0", x=1)] +
                                     d("txntest.e", "1"), []),
    "txn-small-unprepared": (numbered("txntest.c", [0]) + [updated("txntest.c", "0", x=1)] +
                             d("txntest.c", "1"), []),
    "validation": ([c("mongodump_test_db.coll1", "69971dae4522979744225826", testField="valid"),
                    c("mongodump_test_db.coll1", "69971dae4522979744225827", testField="invalid"),
                    c("mongodump_test_db.coll1", "69971dae4522979744225828", testField="also_invalid")], ["create"]),
    "vectored": ([("c", "mongodump_test_db.coll1", str(n), {"_id": n, "a": n // 100}) for n in (100, 200)], []),
    "vectored-linked": ([("c", "mongodump_test_db.coll1", str(n), {"_id": n, "a": n // 100})
                         for n in (300, 400, 500, 600, 700)], []),
}


def read(name):
    with open(os.path.join(FOLDER, name + ".bson"), "rb") as f:
        return bson.decode_all(f.read(), codec_options=mgcase.CODEC)


class Fixtures(mgcase.MgCase):
    live = False

    def published(self, name, **source):
        """The pipe after it has read the whole file."""
        fake = self.fake([{"op": "n", "ns": "", "o": {"msg": "before"}, "ts": bson.Timestamp(1, 1)}])
        p = mgcase.Pipe(self, "fixtures", server=fake, capture="oplog", snapshot={"mode": "no_data"},
                        format={"include.schema.changes": True},
                        source=dict({"database.include.list": None, "capture.mode": "change_streams"}, **source))
        p.start()
        fake.append(os.path.join(FOLDER, name + ".bson"), rising=True)
        p.sync()
        return p.stop()

    def events(self, p):
        out = []
        for r in p.records():
            if r["topic"] == p.prefix:
                continue
            ns = r["topic"][len(p.prefix) + 1:]
            value = r["value"]
            if value is None:
                out.append(("-", ns, r["key"]["id"], None))
            elif value["op"] == "u":
                u = value["updateDescription"]
                out.append(("u", ns, r["key"]["id"], dict(u, updatedFields=mgcase.parse(u["updatedFields"]))))
            else:
                out.append((value["op"], ns, r["key"]["id"], mgcase.parse(value["after"])))
        return out

    def check(self, name):
        records, commands = EXPECTED[name]
        p = self.published(name)
        self.assertEqual(self.events(p), records)
        ddl = [next(iter(json.loads(r["value"]["ddl"]))) for r in p.ddl()]
        self.assertEqual(ddl, commands)
        positions = p.positions()
        self.assertEqual(positions, sorted(set(positions)))

    def test_all_are_here(self):
        files = {os.path.basename(path)[:-5] for path in glob.glob(os.path.join(FOLDER, "*.bson"))}
        self.assertEqual(files - {"diffs"}, set(EXPECTED))

    def test_diffs(self):
        """No recording: updates of every form. Its NAME.expect.json has the updateDescriptions."""
        with open(os.path.join(FOLDER, "diffs.expect.json"), encoding="utf-8") as f:
            entries = json.load(f)
        want = []
        for op in (op for e in entries for op in e["ops"]):
            u = op.get("update")
            want.append((op["op"].replace("i", "c"), op["ns"], str(op["id"]), u and {
                "updatedFields": u["updatedFields"], "removedFields": u["removedFields"] or None,
                "truncatedArrays": [{"field": t["field"], "size": t["newSize"]} for t in u["truncatedArrays"]] or None},
                u and u.get("disambiguatedPaths")))
        got = []
        for r in self.published("diffs").records():
            if r["value"] and r["topic"] != "srv":
                u = r["value"]["updateDescription"]
                got.append((r["value"]["op"], r["topic"][4:], r["key"]["id"],
                            u and dict(u, updatedFields=json.loads(u["updatedFields"])),
                            r["headers"].get("cdcd.paths")))
        self.assertEqual(got, want)

    def test_time_series_buckets(self):
        """Named in the include list, the buckets come as what they are: documents of a collection."""
        ns = "timeseries_test.system.buckets.foo_ts"
        p = self.published("time-series", **{"collection.include.list": [ns]})
        entries = read("time-series")
        self.assertEqual(len(entries), 100)
        want = []
        for e in entries:
            diff, fields = e["o"]["diff"], {}
            for name, value in diff["scontrol"]["smax"]["u"].items():
                fields["control.max." + name] = value
            for column, inner in diff["sdata"].items():
                for n, value in inner["i"].items():
                    fields["data.%s.%s" % (column[1:], n)] = value
            want.append(("u", ns, oid(e["o2"]["_id"]),
                         {"removedFields": None, "updatedFields": fields, "truncatedArrays": None}))
        self.assertEqual([x for x in self.events(p)], want)
        # A first one, in full, by hand.
        self.assertEqual(want[0][2:], (oid("60c7df2bf4549c58ea9377ec"), {
            "removedFields": None, "truncatedArrays": None, "updatedFields": {
                "control.max._id": ObjectId("60c7df3b15caf5ee94e01f7e"),
                "control.max.ts": bson.datetime_ms.DatetimeMS(1623711547966),
                "data.ts.129": bson.datetime_ms.DatetimeMS(1623711547966), "data.measurement.129": 292,
                "data._id.129": ObjectId("60c7df3b15caf5ee94e01f7e")}}))


def one(name):
    return lambda self: self.check(name)


for _name in EXPECTED:
    setattr(Fixtures, "test_" + _name.replace("-", "_"), one(_name))

if __name__ == "__main__":
    cdcdtest.main()
