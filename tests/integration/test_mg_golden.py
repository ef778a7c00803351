"""Debezium's own records of a MongoDB source (tests/golden/mongodb), reproduced from a live server by
snapshot and stream, in both ways of capture. Only clocks, positions and what names a run may
differ."""
import datetime
import json
import os
import re
import struct

import cdcdtest
import mgcase
from bson import (Binary, Code, DBRef, Decimal128, Int64, MaxKey, MinKey, ObjectId, Regex, Timestamp)
from bson.raw_bson import RawBSONDocument

GOLDEN = os.path.join(cdcdtest.ROOT, "tests/golden/mongodb/expected.jsonl")
OID = ObjectId("65e0a1b2c3d4e5f601020304")


def every_type(number):
    """A document with a value of every BSON type that is in use."""
    infinity = float("inf")
    return {
        "_id": number,
        "dbl": 1.5, "dbl1": 1.0, "dbig": 1e300, "dneg0": -0.0,
        "dnan": float("nan"), "dinf": infinity, "dninf": -infinity,
        "str": "h\u00e9llo \"q\" \n\t \\ \U0001f600 \u0001 /",
        "obj": {"p": {"q": 1}, "e": {}},
        "arr": [1, "a", None, [2, [3]], {"z": Int64(1)}],
        "earr": [],
        "bin0": Binary(b"\x00\xff\x10", 0),
        "bin2": Binary(b"ab", 2),
        "uuid3": Binary(b"\x01" * 16, 3),
        "uuid4": Binary(bytes(range(16)), 4),
        "md5": Binary(b"\x02" * 16, 5),
        "binusr": Binary(b"u", 128),
        "oid": OID,
        "t": True, "f": False,
        "date": datetime.datetime(2024, 2, 29, 13, 14, 15, 123000),
        "dateneg": datetime.datetime(1960, 1, 1),
        "date9999": datetime.datetime(9999, 12, 31, 23, 59, 59, 999000),
        "null": None,
        "re": Regex('^a/b"c$', "im"),
        "code": Code("function(){return 1}"),
        "codews": Code("x", {"y": 1}),
        "i32": 2147483647, "i32n": -2147483648,
        "ts": Timestamp(1700000000, 7),
        "i64": Int64(9223372036854775807), "i64s": Int64(5),
        "dec": Decimal128("123.450"),
        "decbig": Decimal128("9.999999999999999999999999999999999E+6144"),
        "decnan": Decimal128("NaN"), "decinf": Decimal128("-Infinity"), "decn0": Decimal128("-0E-10"),
        "min": MinKey(), "max": MaxKey(),
        "dbref": DBRef("coll", OID, "db2"),
        "a.b": 1, "$d": 2, "": 3,
    }


def old_types(number):
    """undefined, symbol and DBPointer, which no driver writes any more."""
    body = (b"\x10_id\0" + struct.pack("<i", number) +
            b"\x06undef\0" +
            b"\x0esym\0" + struct.pack("<i", 4) + b"abc\0" +
            b"\x0cptr\0" + struct.pack("<i", 5) + b"db.c\0" + bytes(range(12)))
    return RawBSONDocument(struct.pack("<i", len(body) + 5) + body + b"\0")


KEYS = ("str", Int64(7), 1.5, OID, {"a": 1, "b": "x"}, Binary(b"\x01\x02", 0), Binary(bytes(range(16)), 4),
        datetime.datetime(2024, 2, 29), True, Decimal128("1.1"), None, Timestamp(1, 2))


def snapshot_load(db):
    db.create_collection("types_t")
    db.types_t.insert_one(every_type(1))
    db.types_t.insert_one(old_types(2))
    for key in KEYS:
        db.ids.insert_one({"_id": key, "v": 1})
    db.create_collection("tx1")


def short_life(t):
    """A document that is gone before anybody can look it up, and one that comes by an upsert."""
    t.insert_one({"_id": 103, "v": 1, "o": {"x": 1}, "arr": [1, 2, 3]})
    t.update_one({"_id": 103}, {"$set": {"o.x": 2, "n": "new"}, "$unset": {"v": 1}})
    t.replace_one({"_id": 103}, {"repl": True})
    t.update_one({"_id": 103}, {"$set": {"repl": True}})  # changes nothing
    t.update_one({"_id": 104}, {"$set": {"u": 1}}, upsert=True)
    t.update_many({"_id": {"$gte": 103}}, {"$set": {"m": 1}})
    t.delete_one({"_id": 103})


def one_transaction(client, db):
    with client.start_session() as session, session.start_transaction():
        db.tx1.insert_one({"_id": 1}, session=session)
        db.types_t.update_one({"_id": 104}, {"$set": {"tx": 1}}, session=session)
        db.ids.delete_one({"_id": "b0"}, session=session)


# Each is looked up before the next one comes.
STEPS = (
    lambda t: t.insert_one({"_id": 203, "v": 1, "o": {"x": 1}, "arr": [1, 2, 3]}),
    lambda t: t.update_one({"_id": 203}, {"$set": {"o.x": 2, "n": "new", "dt": datetime.datetime(2024, 1, 1)},
                                          "$unset": {"v": 1}}),
    lambda t: t.update_one({"_id": 203}, {"$set": {"arr.1": 99}}),
    lambda t: t.update_one({"_id": 203}, {"$push": {"arr": 4}}),
    lambda t: t.update_one({"_id": 203}, {"$pop": {"arr": 1}}),
    lambda t: t.update_one({"_id": 203}, [{"$set": {"w": {"$add": [1, 1]}}}]),
    lambda t: t.replace_one({"_id": 203}, {"repl": True}),
    lambda t: t.delete_one({"_id": 203}),
)

CLOCKS = {"ts_ms", "ts_us", "ts_ns", "wallTime"}
SESSION = re.compile(r'\{"id": \{"\$binary": "[A-Za-z0-9+/]{22}==","\$type": "04"\}\}(:\d+)?')


def comparable(x, name=None):
    """The record with the values of clocks, positions and sessions replaced by their kind."""
    if isinstance(x, dict):
        return {k: comparable(v, k) for k, v in x.items()}
    if name == "data_collections" and x:  # in a hash's order
        return sorted((comparable(v) for v in x), key=lambda v: v["data_collection"])
    if isinstance(x, list):
        return [comparable(v) for v in x]
    if name in CLOCKS and isinstance(x, int):
        return "clock"
    if name == "ord" and isinstance(x, int) and x > 0:
        return "position"
    if name == "txnNumber" and isinstance(x, int):
        return "number"
    if name == "version":
        return "version"
    if isinstance(x, str) and name in ("id", "lsid"):
        return SESSION.sub(lambda m: "session" + (":number" if m[1] else ""), x)
    return x


def spell(record):
    """As text: the order of the fields counts, too."""
    record = {"topic": record["topic"], "key": comparable(record["key"]), "value": comparable(record["value"])}
    return json.dumps(record, ensure_ascii=False)


class Golden(mgcase.MgCase):
    _runs_of = {}

    def run_of(self, capture):
        """The records of one run, each topic's in order."""
        if capture in self._runs_of:
            return self._runs_of[capture]
        client, db = self.mongo.client, self.mongo.client.shop
        client.drop_database("shop")
        snapshot_load(db)
        p = self.pipe("shop", capture=capture, name="golden_" + capture, snapshot={"workers": 1}, format={
            "provide.transaction.metadata": True, "heartbeat.interval.ms": 200, "skipped.operations": "none",
            "extended.headers.enabled": True})
        p.start()
        p.sync()
        db.types_t.insert_one(every_type(101))
        db.types_t.insert_one(old_types(102))
        p.sync()
        p.stop()
        short_life(db.types_t)
        p.start()
        p.sync()
        db.ids.insert_many([{"_id": "b%d" % i} for i in range(3)])
        one_transaction(client, db)
        p.sync()
        for step in STEPS:
            step(db.types_t)
            p.sync()
        beats = os.path.join(p.out, "__debezium-heartbeat.srv.jsonl")
        cdcdtest.wait_until("a heartbeat", lambda: os.path.exists(beats) and os.path.getsize(beats))
        p.stop()
        records = cdcdtest.read_folder(p.out)
        self._runs_of[capture] = records
        return records

    def test_records(self):
        with open(GOLDEN, encoding="utf-8") as f:
            golden = [json.loads(line) for line in f]
        self.assertGreater(len(golden), 30)
        for capture in mgcase.CAPTURES:
            run = self.run_of(capture)
            have = {}
            for topic, records in run.items():
                have[topic] = [spell(dict(r, topic=topic)) for r in records]
            for g in golden:
                with self.subTest(capture=capture, name=g["name"]):
                    self.assertIn(g["topic"], have)
                    want = spell(g)
                    if want not in have[g["topic"]]:
                        key = comparable(g["key"])
                        near = [x for x in have[g["topic"]] if json.loads(x)["key"] == key] or have[g["topic"]]
                        near.sort(key=lambda x, want=want: sum(a != b for a, b in zip(x, want)))
                        self.assertEqual(near[0], want)

    def test_sequences(self):
        """Nothing is missing, and nothing comes twice: operations and keys of each collection."""
        short = ["c 103", "u 103", "u 103", "c 104", "u 103", "u 104", "d 103", "- 103"]
        steps = ["c 203"] + ["u 203"] * 6 + ["d 203", "- 203"]
        want = {
            "srv.shop.types_t": ["r 1", "r 2", "c 101", "c 102"] + short + ["u 104"] + steps,
            "srv.shop.tx1": ["c 1"],
            "srv.transaction": ["BEGIN", "END"],
        }
        for capture in mgcase.CAPTURES:
            run = self.run_of(capture)
            for topic, sequence in want.items():
                with self.subTest(capture=capture, topic=topic):
                    have = []
                    for r in run[topic]:
                        if topic == "srv.transaction":
                            have.append(r["value"]["status"])
                        else:
                            have.append("%s %s" % (r["value"]["op"] if r["value"] else "-", r["key"]["id"]))
                    self.assertEqual(have, sequence)
            with self.subTest(capture=capture, topic="srv.shop.ids"):
                have = ["%s %s" % (r["value"]["op"] if r["value"] else "-", r["key"]["id"])
                        for r in run["srv.shop.ids"]]
                self.assertEqual(sorted(have[:12]), sorted("r " + g for g in (
                    '"str"', "7", "1.5", '{"$oid": "65e0a1b2c3d4e5f601020304"}', '{"a": 1,"b": "x"}',
                    '{"$binary": {"base64": "AQI=","subType": "00"}}',
                    '{"$binary": {"base64": "AAECAwQFBgcICQoLDA0ODw==","subType": "04"}}',
                    '{"$date": "2024-02-29T00:00:00Z"}', "true", '{"$numberDecimal": "1.1"}', "null",
                    '{"$timestamp": {"t": 1,"i": 2}}')))
                self.assertEqual(have[12:], ['c "b0"', 'c "b1"', 'c "b2"', 'd "b0"', '- "b0"'])

    def test_headers(self):
        """The context that Debezium puts into the headers of data records."""
        for capture in mgcase.CAPTURES:
            for topic in ("srv.shop.types_t", "srv.shop.ids"):
                for r in self.run_of(capture)[topic]:
                    headers = r["headers"]
                    self.assertEqual(headers["__debezium.context.connectorLogicalName"], "srv")
                    self.assertEqual(headers["__debezium.context.connectorName"], "mongodb")
                    self.assertIn(headers["__debezium.context.taskId"], ("0", 0))

    def test_both_ways_agree(self):
        """The same records by the oplog and by change streams, but for what a lookup sees."""
        one, other = (self.run_of(c) for c in mgcase.CAPTURES)
        self.assertEqual(sorted(t for t in one if "heartbeat" not in t),
                         sorted(t for t in other if "heartbeat" not in t))
        for topic in ("srv.shop.types_t", "srv.shop.ids", "srv.shop.tx1", "srv.transaction"):
            self.assertEqual([spell(dict(r, topic=topic)) for r in one[topic]],
                             [spell(dict(r, topic=topic)) for r in other[topic]])


if __name__ == "__main__":
    cdcdtest.main()
