"""Applying the records to an empty store gives exactly the collections of the source: a random
workload of all update operators on nested documents and arrays of many BSON types, in both ways of
capture, with the snapshot in the middle of the load, stops, and kill -9.

Twice: by `after`; and, where nothing is looked up (capture.mode change_streams), by
updateDescription alone, applied to the state before it.

CDCD_SEED and CDCD_APPLY_OPERATIONS repeat or lengthen it."""
import datetime
import os
import random
import threading

import cdcdtest
import mgcase
import pymongo
from bson import Binary, Code, Decimal128, Int64, MaxKey, MinKey, ObjectId, Regex, Timestamp
from pymongo import ReturnDocument

SEED = int(os.environ.get("CDCD_SEED", "0")) or random.SystemRandom().randrange(1, 1 << 31)
OPERATIONS = int(os.environ.get("CDCD_APPLY_OPERATIONS", "500"))
COLLECTIONS = ("a", "b")
IDS = list(range(40)) + ["x", "é\"\\", ObjectId("65e0a1b2c3d4e5f601020304"), {"k": 1, "l": [1, "z"]}, 2.5,
                         Binary(b"\x01\x02", 0), datetime.datetime(2024, 2, 29), Int64(1 << 40), True, None]


class Workload:
    """Random writes; what the server refuses (an operator that does not fit) counts as well."""

    def __init__(self, db, rng, ids):
        self.db, self.rng, self.ids, self.serial = db, rng, ids, 0
        self.done = {}
        self.refused = {}
        self.gate = threading.Lock()  # held: no writes

    # ---- values ----

    def scalar(self):
        r = self.rng
        return r.choice((
            lambda: r.randrange(-1 << 31, 1 << 31), lambda: Int64(r.randrange(-1 << 63, 1 << 63)),
            lambda: r.choice((0.0, -0.0, 1.0, 0.1, 1e300, -5e-324, float("inf"), r.random())),
            lambda: r.choice(("", "a", "é\U0001f600", "$x", "a.b", "\"\\\n", "x" * 200)),
            lambda: True, lambda: False, lambda: None,
            lambda: datetime.datetime(1970, 1, 1) + datetime.timedelta(milliseconds=r.randrange(-1 << 40, 1 << 42)),
            lambda: ObjectId(r.getrandbits(96).to_bytes(12, "big")),
            lambda: Decimal128(r.choice(("0", "-0E-10", "1.10", "9.99E+6144", "NaN", "123456789012345678901234"))),
            lambda: Binary(r.getrandbits(64).to_bytes(8, "big"), r.choice((0, 5, 128))),
            lambda: Regex("^a.*", "i"), lambda: Timestamp(r.randrange(1, 1 << 31), r.randrange(1, 9)),
            lambda: Code("f()"), lambda: MinKey(), lambda: MaxKey()))()

    def value(self, depth=0):
        r = self.rng
        kind = r.randrange(6)
        if kind == 0 and depth < 3:
            return {r.choice("pqrs") + str(i): self.value(depth + 1) for i in range(r.randrange(4))}
        if kind == 1 and depth < 3:
            return [self.value(depth + 1) for _ in range(r.randrange(5))]
        return self.scalar()

    def small(self):
        return self.rng.randrange(-20, 20)

    def document(self, _id):
        r = self.rng
        self.serial += 1
        return {
            "_id": _id, "serial": self.serial, "n": self.small(), "l": Int64(self.small()), "f": self.small() / 4,
            "bits": r.randrange(256), "s": self.value(), "dt": datetime.datetime(2024, 1, 1),
            "arr": [self.small() for _ in range(r.randrange(8))],
            "objs": [{"k": r.randrange(5), "v": self.small(), "w": [1, {"x": self.small()}]}
                     for _ in range(r.randrange(5))],
            "sub": {"a": {"b": self.value(), "c": {"d": [1, 2, [3, 4]]}}, "0": "zero", "1": {"y": self.small()}},
            "any": self.value(),
        }

    def _id(self):
        return self.rng.choice(self.ids)

    # ---- updates ----

    def update(self):
        """(filter beyond _id, update, options)"""
        r, v, n = self.rng, self.value, self.small
        return r.choice((
            lambda: ({}, {"$set": {"s": v(), "new%d" % r.randrange(6): v()}}, {}),
            lambda: ({}, {"$set": {"sub.a.b": v(), "sub.a.c.e%d" % r.randrange(3): v()}}, {}),
            lambda: ({}, {"$set": {"sub.0": v(), "sub.1.y": n()}}, {}),
            lambda: ({"arr.0": {"$exists": True}}, {"$set": {"arr.%d" % r.randrange(10): n()}}, {}),
            lambda: ({"objs.1": {"$exists": True}}, {"$set": {"objs.1.v": n(), "objs.0.w.1.x": n()}}, {}),
            lambda: ({}, {"$set": {"sub.a.c.d.2.%d" % r.randrange(4): v(2)}}, {}),
            lambda: ({}, {"$set": {"deep.%s.%s" % (r.choice("xy"), r.choice("zw")): v()}}, {}),
            lambda: ({}, {"$unset": {"s": 1, "new%d" % r.randrange(6): 1}}, {}),
            lambda: ({}, {"$unset": {"sub.a.c.e0": 1, "deep.x": 1}}, {}),
            lambda: ({}, {"$unset": {"arr.%d" % r.randrange(4): 1}}, {}),
            lambda: ({}, {"$inc": {"n": n(), "l": Int64(n()), "f": 0.25, "sub.count": 1}}, {}),
            lambda: ({}, {"$mul": {"n": r.choice((0, 1, -1)), "f": 0.5, "fresh": 2}}, {}),
            lambda: ({}, {"$min": {"n": n()}, "$max": {"l": Int64(n()), "sub.max": n()}}, {}),
            lambda: ({}, {"$rename": {"new%d" % r.randrange(3): "renamed%d" % r.randrange(2)}}, {}),
            lambda: ({}, {"$rename": {"sub.count": "sub.a.count"}}, {}),
            lambda: ({}, {"$push": {"arr": n()}}, {}),
            lambda: ({}, {"$push": {"arr": {"$each": [n(), n()], "$position": r.randrange(4)}}}, {}),
            lambda: ({}, {"$push": {"arr": {"$each": [n()], "$slice": r.choice((-3, 3, 0, 5))}}}, {}),
            lambda: ({}, {"$push": {"arr": {"$each": [n(), n()], "$sort": r.choice((1, -1)), "$slice": 6}}}, {}),
            lambda: ({}, {"$push": {"objs": {"$each": [{"k": r.randrange(5), "v": n(), "w": [0, {"x": n()}]}],
                                             "$sort": {"k": 1}, "$slice": -4}}}, {}),
            lambda: ({}, {"$pop": {"arr": r.choice((1, -1))}}, {}),
            lambda: ({}, {"$pull": {"arr": {"$gte": n()}}}, {}),
            lambda: ({}, {"$pull": {"objs": {"k": r.randrange(5)}}}, {}),
            lambda: ({}, {"$pullAll": {"arr": [n(), n(), n()]}}, {}),
            lambda: ({}, {"$addToSet": {"arr": {"$each": [n(), n()]}}}, {}),
            lambda: ({}, {"$bit": {"bits": {r.choice(("and", "or", "xor")): r.randrange(256)}}}, {}),
            lambda: ({}, {"$currentDate": {"dt": True, "sub.ts": {"$type": "timestamp"}}}, {}),
            lambda: ({"objs.k": r.randrange(5)}, {"$set": {"objs.$.v": n()}}, {}),
            lambda: ({"arr": {"$exists": True}}, {"$inc": {"arr.$[]": 1}}, {}),
            lambda: ({"objs": {"$exists": True}}, {"$set": {"objs.$[e].v": n(), "objs.$[e].w.0": n()}},
                     {"array_filters": [{"e.k": {"$gte": r.randrange(5)}}]}),
            lambda: ({}, [{"$set": {"n": {"$add": [{"$ifNull": ["$n", 0]}, 1]}, "piped": {"$size": {"$ifNull": ["$objs", []]}}}},
                          {"$unset": "any"}], {}),
            lambda: ({}, [{"$replaceWith": {"_id": "$_id", "n": "$n", "l": Int64(1), "f": 1.5, "bits": 3,
                                            "arr": {"$ifNull": ["$arr", []]}, "rest": "$sub"}}], {}),
        ))()

    # ---- writes ----

    def insert(self, t, session=None):
        _id = self._id()
        if self.rng.random() < 0.2:
            _id = ObjectId()
        t.insert_one(self.document(_id), session=session)

    def insert_many(self, t, session=None):
        t.insert_many([self.document(ObjectId()) for _ in range(self.rng.randrange(1, 6))], session=session)

    def update_one(self, t, session=None):
        where, change, options = self.update()
        upsert = not where and self.rng.random() < 0.15
        t.update_one(dict({"_id": self._id()}, **where), change, upsert=upsert, session=session, **options)

    def update_many(self, t, session=None):
        where, change, options = self.update()
        t.update_many(dict({"n": {"$gte": self.rng.randrange(5, 20)}}, **where), change, session=session, **options)

    def on_insert(self, t, session=None):
        t.update_one({"_id": self._id()}, {"$set": {"n": self.small()}, "$setOnInsert": {"arr": [1], "born": self.value()}},
                     upsert=True, session=session)

    def replace(self, t, session=None):
        _id = self._id()
        t.replace_one({"_id": _id}, self.document(_id), upsert=self.rng.random() < 0.3, session=session)

    def find_and_modify(self, t, session=None):
        where, change, options = self.update()
        t.find_one_and_update(dict({"_id": self._id()}, **where), change, return_document=ReturnDocument.AFTER,
                              session=session, **options)

    def find_and_replace(self, t, session=None):
        _id = self._id()
        t.find_one_and_replace({"_id": _id}, {"_id": _id, "only": self.value(), "arr": [9], "n": 1}, session=session)

    def find_and_delete(self, t, session=None):
        t.find_one_and_delete({"_id": self._id()}, session=session)

    def delete(self, t, session=None):
        t.delete_one({"_id": self._id()}, session=session)

    def delete_many(self, t, session=None):
        t.delete_many({"n": self.small()}, session=session)

    def bulk(self, t, session=None):
        requests = []
        for _ in range(self.rng.randrange(2, 6)):
            where, change, options = self.update()
            requests.append(self.rng.choice((
                lambda: pymongo.InsertOne(self.document(ObjectId())),
                lambda where=where, change=change, options=options:
                    pymongo.UpdateOne(dict({"_id": self._id()}, **where), change, **options),
                lambda: pymongo.DeleteOne({"_id": self._id()})))())
        t.bulk_write(requests, ordered=self.rng.random() < 0.5, session=session)

    SIMPLE = (insert, insert, insert_many, update_one, update_one, update_one, update_one, update_one, update_one,
              update_many, on_insert, replace, find_and_modify, find_and_replace, find_and_delete, delete, delete_many,
              bulk)

    def transaction(self):
        """Some writes on both collections; every third is aborted."""
        abort = self.rng.random() < 0.33
        with self.db.client.start_session() as session:
            session.start_transaction()
            try:
                for _ in range(self.rng.randrange(1, 7)):
                    write = self.rng.choice(self.SIMPLE)
                    write(self, self.db[self.rng.choice(COLLECTIONS)], session=session)
            except pymongo.errors.PyMongoError:
                session.abort_transaction()
                raise
            if abort:
                session.abort_transaction()
            else:
                session.commit_transaction()
        return "transaction aborted" if abort else "transaction"

    def step(self):
        name = "transaction"
        try:
            if self.rng.random() < 0.08:
                name = self.transaction()
            else:
                write = self.rng.choice(self.SIMPLE)
                name = write.__name__
                write(self, self.db[self.rng.choice(COLLECTIONS)])
            self.done[name] = self.done.get(name, 0) + 1
        except pymongo.errors.PyMongoError:
            self.refused[name] = self.refused.get(name, 0) + 1

    def run(self, steps):
        for _ in range(steps):
            with self.gate:
                self.step()


# ---- a reader of the records ----

def path_of(name, ambiguous):
    """Names and numbers of a dotted path; what could be read in two ways, the header tells."""
    if name in ambiguous:
        return ambiguous[name]
    return name.split(".")


def parent_of(document, path):
    """The container of the path's last part, made where it is missing."""
    x = document
    for part in path[:-1]:
        if isinstance(x, list):
            x = x[int(part)]
        else:
            x = x[part]
    return x


def set_path(document, path, value):
    x, last = parent_of(document, path), path[-1]
    if isinstance(x, list):
        index = int(last)
        while len(x) <= index:
            x.append(None)
        x[index] = value
    else:
        x[last] = value


def apply_description(document, description, ambiguous):
    for cut in description.get("truncatedArrays") or []:
        path = path_of(cut["field"], ambiguous)
        x, last = parent_of(document, path), path[-1]
        array = x[int(last)] if isinstance(x, list) else x[last]
        del array[cut["size"]:]
    for name in description.get("removedFields") or []:
        path = path_of(name, ambiguous)
        x = parent_of(document, path)
        del x[path[-1]]
    for name, value in (mgcase.parse(description.get("updatedFields")) or {}).items():
        set_path(document, path_of(name, ambiguous), value)


class Reader:
    """What a reader of the topics has: {collection: {key: document}}."""

    def __init__(self, pipe):
        self.store = {name: {} for name in COLLECTIONS}
        self.ops, self.applied, self.looked_up = {}, 0, 0
        for name in COLLECTIONS:
            for r in pipe.records(name):
                try:
                    self.take(self.store[name], r)
                except (KeyError, IndexError, TypeError, ValueError) as e:
                    raise cdcdtest.Failure("%r of %s does not apply (%s: %s) to %r" % (
                        r, name, type(e).__name__, e, self.store[name].get(r["key"]["id"])))

    def take(self, rows, r):
        key, value = r["key"]["id"], r["value"]
        if value is None:  # a tombstone
            if key in rows:
                raise ValueError("a tombstone without its delete")
            return
        op, after = value["op"], mgcase.parse(value["after"])
        self.ops[op] = self.ops.get(op, 0) + 1
        if op == "d":
            rows.pop(key, None)
        elif after is not None:
            rows[key] = after
            self.looked_up += r["headers"].get("cdcd.after") == "lookup"
        elif value["updateDescription"] is None:
            raise ValueError("neither `after` nor updateDescription")
        elif self.looks_up:
            pass  # the document is gone by now, and its delete is still to come
        else:
            apply_description(rows[key], value["updateDescription"], r["headers"].get("cdcd.paths", {}))
            self.applied += 1

    looks_up = False


class LookupReader(Reader):
    looks_up = True


def sorted_fields(x):
    if isinstance(x, dict):
        return {k: sorted_fields(x[k]) for k in sorted(x)}
    return [sorted_fields(v) for v in x] if isinstance(x, list) else x


def exact_rows(documents, order):
    """order: that of the fields counts, too."""
    return {mgcase.exact({"_id": d["_id"]}): mgcase.exact(d if order else sorted_fields(d)) for d in documents}


class Apply(mgcase.MgCase):
    def same(self, db, reader):
        # The test's server names new fields in another order than that which it gives them.
        order = reader.looks_up
        for name in COLLECTIONS:
            want = exact_rows(db.get_collection(name, codec_options=mgcase.CODEC).find(), order)
            have = exact_rows(reader.store[name].values(), order)
            self.assertEqual(len(have), len(reader.store[name]), "two keys of one document")
            self.assertEqual(sorted(want), sorted(have), "documents of " + name)
            for _id, document in want.items():
                self.assertEqual(have[_id], document, "document %s of %s" % (_id, name))
            self.assertGreater(len(want), 20)

    def once(self, pipe):
        """Each position comes once, and in order, in each topic."""
        for name in COLLECTIONS:
            positions = [r["headers"]["cdcd.pos"] for r in pipe.records(name)]
            self.assertEqual(len(set(positions)), len(positions))
            streamed = [r["headers"]["cdcd.pos"] for r in pipe.records(name) if r["value"] is None or r["value"]["op"] != "r"]
            self.assertEqual(streamed, sorted(streamed))

    @staticmethod
    def start(pipe, work):
        """A tailing oplog cursor of the test's server misses what is written while it is opened: the
        load pauses, and goes on when one of these writes has come."""
        if pipe.source["capture"] != "oplog":
            pipe.start()
            return
        with work.gate:
            pipe.start()
            for last in (False, False, False, True):
                try:
                    pipe.sync_once(5)
                    break
                except cdcdtest.Failure:
                    if last or not pipe.cdcd.alive():
                        raise

    def restarts(self, pipe, load, work):
        """Stops and kills while the load goes on."""
        rng = random.Random(SEED + 1)
        kills = 0
        while load.is_alive():
            load.join(0.2 + rng.random())
            if rng.random() < 0.5:
                pipe.cdcd.kill()
                kills += 1
            else:
                pipe.stop()
            load.join(0.1)
            self.start(pipe, work)
        return kills

    def run_one(self, capture, mode, reader):
        db = self.db()
        ids = IDS
        if capture == "change_stream" and reader is LookupReader:
            ids = [i for i in IDS if i is not None]  # the test's server looks up nothing for that one
        work = Workload(db, random.Random(SEED), ids)
        for name in COLLECTIONS:
            db.create_collection(name)
        work.run(OPERATIONS // 5)
        pipe = self.pipe(db.name, capture=capture, source={"capture.mode": mode, "snapshot.chunk.rows": 7},
                         format={"json.serialization.mode": "extended"}, snapshot={"workers": 2})
        load = threading.Thread(target=work.run, args=(OPERATIONS,))
        load.start()
        if capture == "oplog":
            pipe.cdcd.run("snapshot")
        self.start(pipe, work)
        kills = self.restarts(pipe, load, work)
        load.join()
        pipe.sync(120)
        pipe.stop()
        have = reader(pipe)
        print("%s %s: seed %d, %d kills, writes %s, refused %s, records %s, %d by updateDescription, %d looked up" % (
            capture, mode, SEED, kills, work.done, work.refused, have.ops, have.applied, have.looked_up))
        self.once(pipe)
        self.same(db, have)
        self.assertGreater(sum(work.done.values()), OPERATIONS // 2)
        for op in "rcud":
            self.assertGreater(have.ops.get(op, 0), 0, op)
        return have

    def test_after_change_stream(self):
        self.assertGreater(self.run_one("change_stream", "change_streams_update_full", LookupReader).looked_up, 0)

    def test_after_oplog(self):
        self.assertGreater(self.run_one("oplog", "change_streams_update_full", LookupReader).looked_up, 0)

    def test_description_change_stream(self):
        self.assertGreater(self.run_one("change_stream", "change_streams", Reader).applied, 0)

    def test_description_oplog(self):
        self.assertGreater(self.run_one("oplog", "change_streams", Reader).applied, 0)


if __name__ == "__main__":
    cdcdtest.main()
