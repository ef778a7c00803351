"""Cases that other products have failed on: collections that take another's place, names with dots and
dollars, diffs of nested arrays. Transactions and an oplog that rolls over have files of their own.

Fake*: entries as a real server writes them, through the fake server. Live*: the same statements on the
server that can be run, in both ways of capture (its entries have other forms).
"""
import itertools
import json
import re

import cdcdtest
import mgcase
import mglog
from mgcase import bson

Int64 = bson.Int64


# ---- rename, dropTarget, $out, drop, dropDatabase -------------------------------------------------

class FakeReplaced(mglog.FakeCase):
    """Only hb_rn.cat is captured."""

    def entries(self):
        log, cat = self.log, "hb_rn.cat"
        out = [log.create(cat), log.insert(cat, {"_id": 1, "v": "old"}), log.insert(cat, {"_id": 2, "v": "old"}),
               log.create("hb_rn.cat_next"), log.insert("hb_rn.cat_next", {"_id": 2, "v": "new"}),
               log.insert("hb_rn.cat_next", {"_id": 3, "v": "new"}),
               log.rename(cat, "hb_rn.cat_prev"), log.rename("hb_rn.cat_next", cat),
               log.insert(cat, {"_id": 4, "v": "after swap"}),
               log.create("hb_rn.stage"), log.insert("hb_rn.stage", {"_id": 9, "v": "stage"}),
               log.rename("hb_rn.stage", cat, drop_target=True),
               log.create("hb_rn.src"), log.insert("hb_rn.src", {"_id": "o1"}),
               log.insert("hb_rn.src", {"_id": "o2"})]
        temporary = "hb_rn.tmp.agg_out.5b5c9c5e-1111-4222-8333-444455556666"
        out += [log.create(temporary, temp=True), log.insert(temporary, {"_id": "o1"}),
                log.insert(temporary, {"_id": "o2"}), log.rename(temporary, cat, drop_target=True)]
        out += [log.replace(cat, {"_id": "o1", "merged": True}), log.insert(cat, {"_id": "o3"})]  # $merge
        out += [log.drop(cat, 3), log.create(cat), log.insert(cat, {"_id": 10, "v": "second life"})]
        out += [log.drop(cat, 1), log.drop("hb_rn.cat_prev", 2), log.drop("hb_rn.src", 2),
                log.drop_database("hb_rn"),
                log.create(cat), log.insert(cat, {"_id": 11, "v": "third life"})]
        moved = "hb_rn2.tmp5Yx2F.renameCollection"  # across databases: a copy and a drop
        out += [log.create(moved, temp=True), log.insert(moved, {"_id": 11, "v": "third life"}),
                log.rename(moved, "hb_rn2.cat"), log.drop(cat, 1)]
        return out

    RECORDS = [("c", "1", {"_id": 1, "v": "old"}, None), ("c", "2", {"_id": 2, "v": "old"}, None),
               ("c", "4", {"_id": 4, "v": "after swap"}, None),
               ("u", '"o1"', {"_id": "o1", "merged": True}, None), ("c", '"o3"', {"_id": "o3"}, None),
               ("c", "10", {"_id": 10, "v": "second life"}, None),
               ("c", "11", {"_id": 11, "v": "third life"}, None)]

    def test_warned(self):
        p = self.started("hb_rn", source={"collection.include.list": ["hb_rn.cat"]},
                         format={"include.schema.changes": True})
        self.fake_.append(self.entries())
        p.sync()
        self.assertEqual(p.changes("cat"), self.RECORDS)
        self.assertEqual({r["topic"] for r in p.records()} - {"srv"}, {"srv.hb_rn.cat"})
        ddl = [json.loads(r["value"]["ddl"]) for r in p.ddl()]
        self.assertEqual([next(iter(d)) for d in ddl],
                         ["create", "renameCollection", "renameCollection", "renameCollection", "renameCollection",
                          "drop", "create", "drop", "dropDatabase", "create", "drop"])
        self.assertEqual([(d["renameCollection"], d["to"], "dropTarget" in d)
                          for d in ddl if "renameCollection" in d],
                         [("hb_rn.cat", "hb_rn.cat_prev", False), ("hb_rn.cat_next", "hb_rn.cat", False),
                          ("hb_rn.stage", "hb_rn.cat", True),
                          ("hb_rn.tmp.agg_out.5b5c9c5e-1111-4222-8333-444455556666", "hb_rn.cat", True)])
        log = p.log_since_start()
        replaced = [line for line in log.split("\n") if re.search(r"hb_rn\.cat\b.*replaced", line)]
        # The swap (of a collection that was captured and left), the stage, the $out.
        self.assertEqual(len(replaced), 3, log)
        p.stop()

    def test_fails_where_it_shall(self):
        p = self.started("hb_rn", source={"collection.include.list": ["hb_rn.cat"],
                                          "collection.replaced.handling.mode": "fail"})
        self.fake_.append(self.entries()[:9])
        p.ends(3, r"hb_rn\.cat", r"replaced")
        # Nothing behind the rename was given, and the next start says the same.
        self.assertEqual(p.changes("cat"), self.RECORDS[:2])
        p.fails(3, r"replaced")
        self.assertEqual(p.changes("cat"), self.RECORDS[:2])

    def test_snapshot_where_it_shall(self):
        """when_needed: what came in through the rename is read."""
        p = self.started("hb_rn", start=False, snapshot={"mode": "when_needed"},
                         source={"collection.include.list": ["hb_rn.cat"],
                                 "collection.replaced.handling.mode": "fail"})
        p.start()
        now = [("hb_rn.cat", {"_id": n, "v": "new"}) for n in (2, 3)] + [("hb_rn.cat", {"_id": 4, "v": "x"})]
        self.fake_.append(self.entries()[:9], now)
        p.sync()
        self.assertEqual(p.store()["cat"]["3"], {"_id": 3, "v": "new"})
        self.assertEqual(p.store()["cat"]["2"], {"_id": 2, "v": "new"})
        p.stop()

    def test_entries_without_document_key(self):
        """Entries of old servers, without o2, ui and wall."""
        p = self.started("hb")
        got = self.came(p, "t", [
            {"op": "i", "ns": "hb.t", "o": {"_id": 1, "v": 1}, "ts": self.log.next_ts(), "h": Int64(5), "v": 2},
            {"op": "u", "ns": "hb.t", "o2": {"_id": 1}, "o": {"_id": 1, "v": 2}, "ts": self.log.next_ts(), "v": 2},
            {"op": "d", "ns": "hb.t", "o": {"_id": 1}, "b": True, "ts": self.log.next_ts(), "v": 2}])
        self.assertEqual(got, [("c", "1", {"_id": 1, "v": 1}, None), ("u", "1", {"_id": 1, "v": 2}, None),
                               ("d", "1", None, None)])
        p.stop()


# ---- names with dots and dollars ------------------------------------------------------------------

NAMES = {"_id": 1, "a.b": "literal", "a": {"b": "nested"}, "$price": 1, "": "empty name",
         "k8s.io/x": {"y.z": [1, {"q.r": 2}]}, "0": "zero", "$ref": "not a dbref", " ": "space", "ü💥": 1,
         "__proto__": "p", "constructor": "c"}


def deep(levels=95):
    out = {"v": 1}
    for n in range(levels):
        out = {"n.%d" % n: out}
    return out


class FakeNames(mglog.FakeCase):
    def text(self, p, n=-1):
        """`after` as it is written: a parser of Extended JSON would see a DBRef in {"$ref": ..}."""
        record = [r for r in p.records("dots") if r["value"]][n]
        return record, json.loads(record["value"]["after"])

    def test_all(self):
        log, ns = self.log, "hb.dots"
        p = self.started("hb")
        doc = dict(NAMES)
        self.fake_.append([log.create(ns), log.insert(ns, doc)])
        p.sync()
        self.assertEqual(self.text(p)[1], doc)
        self.assertEqual(list(self.text(p)[1]), list(doc))

        steps = [
            # The names of fields as they are; "a.b" is one name here.
            ({"u": {"a.b": "literal-2"}, "i": {"x": {"p.q": 1}}}, {"a.b": "literal-2", "x": {"p.q": 1}}, None,
             {"a.b": ["a.b"]}),
            ({"u": {"$price": 2}}, {"$price": 2}, None, None),
            # The path: field b of document a.
            ({"sa": {"u": {"b": "nested-2"}}}, {"a.b": "nested-2"}, None, None),
            ({"d": {"a.b": False}}, {}, ["a.b"], {"a.b": ["a.b"]}),
            # Nothing but a field can be meant on the first level.
            ({"u": {"0": "null"}}, {"0": "null"}, None, None),
        ]
        for diff, updated, removed, paths in steps:
            if "sa" in diff:
                doc["a"] = {"b": "nested-2"}
            doc.update(diff.get("u", {}))
            doc.update(diff.get("i", {}))
            for name in diff.get("d", {}):
                del doc[name]
            self.fake_.append([log.diff(ns, 1, diff)], [(ns, doc)])
            p.sync()
            with self.subTest(diff=diff):
                record, after = self.text(p)
                self.assertEqual(after, doc)
                u = record["value"]["updateDescription"]
                self.assertEqual(json.loads(u["updatedFields"] or "{}"), updated)
                self.assertEqual(u["removedFields"], removed)
                self.assertEqual(record["headers"].get("cdcd.paths"), paths)
                self.assertEqual(record["headers"].get("cdcd.after"), "lookup")

        # A replacement that has fields named like operators, behind _id.
        doc = {"_id": 1, "$set": 18, "x.y": {"$inc": 1}}
        self.fake_.append([log.replace(ns, doc)], [(ns, doc)])
        p.sync()
        record, after = self.text(p)
        self.assertEqual((record["value"]["op"], after, record["value"]["updateDescription"]), ("u", doc, None))
        self.assertNotIn("cdcd.after", record["headers"])

        two = {"_id": 2, "deep": deep()}
        self.fake_.append([log.insert(ns, two)], [(ns, two)])
        p.sync()
        self.assertEqual(self.text(p)[1], two)
        two["other"] = 1
        self.fake_.append([log.diff(ns, 2, {"i": {"other": 1}})], [(ns, two)])
        p.sync()
        self.assertEqual(self.text(p)[1], two)
        p.stop()

    def test_nested_too_deep(self):
        """Deeper than any server takes: a clear error that names the document, not a crash."""
        log, ns = self.log, "hb.dots"
        p = self.started("hb")
        self.fake_.append([log.insert(ns, {"_id": 7, "deep": deep(400)})])
        p.ends(1, r"nest|deep", r"\b7\b")


# ---- $v 2 diffs -----------------------------------------------------------------------------------

BIG = "z" * 500
ROW0 = {"ref": "A", "info": {"fr": "y"}, "opts": [{"q": "s", "w": "S"}]}
ROW1 = {"ref": "B", "cap": {"fr": "t", "pl": ""}, "pic": None, "opts": [{"q": "m"}]}

# (document before or None, diff or document, document after, updateDescription); one after the other.
DIFFS = {
    1: [
        (None, {"rows": [{"ref": "a", "info": {"fr": "x"}, "opts": [{"q": "s", "w": "small"}]}, {"ref": "b"}],
                "n": 0, "keep": "this must survive", "big": BIG}, None),
        ({"srows": {"a": True, "s0": {"u": {"ref": "A"}, "sinfo": {"u": {"fr": "y"}},
                                      "sopts": {"a": True, "s0": {"u": {"w": "S"}}}}, "u1": ROW1}},
         {"rows": [ROW0, ROW1], "n": 0, "keep": "this must survive", "big": BIG},
         mglog.described({"rows.0.ref": "A", "rows.0.info.fr": "y", "rows.0.opts.0.w": "S", "rows.1": ROW1})),
        ({"srows": {"a": True, "s1": {"u": {"cap": None}}}},
         {"rows": [ROW0, dict(ROW1, cap=None)], "n": 0, "keep": "this must survive", "big": BIG},
         mglog.described({"rows.1.cap": None})),
        ({"srows": {"a": True, "l": 1}},
         {"rows": [ROW0], "n": 0, "keep": "this must survive", "big": BIG},
         mglog.described({}, None, [{"field": "rows", "size": 1}])),
        ({"srows": {"a": True, "u1": None, "u2": None, "u3": None, "u4": {"ref": "gap"}}},
         {"rows": [ROW0, None, None, None, {"ref": "gap"}], "n": 0, "keep": "this must survive", "big": BIG},
         mglog.described({"rows.1": None, "rows.2": None, "rows.3": None, "rows.4": {"ref": "gap"}})),
        ({"srows": {"a": True, "u0": None}},
         {"rows": [None, None, None, None, {"ref": "gap"}], "n": 0, "keep": "this must survive", "big": BIG},
         mglog.described({"rows.0": None})),
        ({"u": {"rows": [[1, [2, {"d": 3}]], None, None, None, None, {"ref": "gap"}]}},
         {"rows": [[1, [2, {"d": 3}]], None, None, None, None, {"ref": "gap"}], "n": 0,
          "keep": "this must survive", "big": BIG},
         mglog.described({"rows": [[1, [2, {"d": 3}]], None, None, None, None, {"ref": "gap"}]})),
        ({"d": {"big": False}, "u": {"n": 1},
          "srows": {"a": True, "s0": {"a": True, "s1": {"a": True, "s1": {"u": {"d": 4}}}}}},
         {"rows": [[1, [2, {"d": 4}]], None, None, None, None, {"ref": "gap"}], "n": 1, "keep": "this must survive"},
         mglog.described({"n": 1, "rows.0.1.1.d": 4}, ["big"])),
    ],
    # Fields named like the grammar of diffs are data.
    2: [
        (None, {"a": True, "u": {"x": 1}, "i": {"y": 1}, "d": {"z": 1}, "l": 3, "u0": "user",
                "s0": {"a": True, "u0": 1}, "sfoo": {"u": {"i": 1}}, "$v": 2, "diff": {"a": True}}, None),
        ({"u": {"a": False, "u0": "user2"}, "su": {"u": {"x": 2}}, "si": {"u": {"y": 2}}, "sd": {"u": {"z": 2}},
          "ss0": {"u": {"u0": 2}}, "ssfoo": {"su": {"u": {"i": 2}}}, "sdiff": {"u": {"a": "n"}}},
         {"a": False, "u": {"x": 2}, "i": {"y": 2}, "d": {"z": 2}, "l": 3, "u0": "user2",
          "s0": {"a": True, "u0": 2}, "sfoo": {"u": {"i": 2}}, "$v": 2, "diff": {"a": "n"}},
         mglog.described({"a": False, "u0": "user2", "u.x": 2, "i.y": 2, "d.z": 2, "s0.u0": 2, "sfoo.u.i": 2, "diff.a": "n"})),
        ({"d": {"l": False, "i": False}, "i": {"0": "zero", "1": {"a": 1}}},
         {"a": False, "u": {"x": 2}, "d": {"z": 2}, "u0": "user2", "s0": {"a": True, "u0": 2},
          "sfoo": {"u": {"i": 2}}, "$v": 2, "diff": {"a": "n"}, "0": "zero", "1": {"a": 1}},
         mglog.described({"0": "zero", "1": {"a": 1}}, ["l", "i"])),
    ],
    # "0" is a name in a document and an index in an array.
    3: [
        (None, {"m": {"0": {"a": 1}, "1": [1, 2, 3]}}, None),
        ({"sm": {"s0": {"u": {"a": 2}}, "s1": {"a": True, "u0": 9}}},
         {"m": {"0": {"a": 2}, "1": [9, 2, 3]}}, mglog.described({"m.0.a": 2, "m.1.0": 9})),
        ({"sm": {"i": {"n": []}}}, {"m": {"0": {"a": 2}, "1": [9, 2, 3], "n": []}}, mglog.described({"m.n": []})),
        ({"sm": {"d": {"1": False}, "i": {"one": [9, 2, 3]}}},
         {"m": {"0": {"a": 2}, "n": [], "one": [9, 2, 3]}}, mglog.described({"m.one": [9, 2, 3]}, ["m.1"])),
        ("replace", {"only": "this"}, None),
    ],
}
PATHS = {  # which of the paths above can be misread
    (3, 1): {"m.0.a": ["m", "0", "a"], "m.1.0": ["m", "1", 0]},
    (3, 3): {"m.1": ["m", "1"]},
}


class FakeDiffs(mglog.FakeCase):
    def test_all(self):
        log, ns = self.log, "hb.v2"
        p = self.started("hb")
        self.fake_.append([log.create(ns)])
        for key, steps in DIFFS.items():
            for n, (diff, after, description) in enumerate(steps):
                doc = dict({"_id": key}, **after)
                if diff is None:
                    entry = log.insert(ns, doc)
                elif diff == "replace":
                    entry = log.replace(ns, doc)
                else:
                    entry = log.diff(ns, key, diff)
                got = self.came(p, "v2", [entry], [(ns, doc)])
                with self.subTest(key=key, step=n):
                    self.assertEqual(got, [("u" if diff else "c", str(key), doc, description)])
                    self.assertEqual(list(got[0][2]), list(doc))
                    record = p.records("v2")[-1]
                    self.assertEqual(record["headers"].get("cdcd.paths"), PATHS.get((key, n)))
        # An update that changes nothing leaves no entry.
        self.assertEqual(self.came(p, "v2", [log.noop()]), [])
        p.stop()

    def test_old_operators(self):
        """$v 1, of servers up to 4.4."""
        log, ns = self.log, "hb.v1"
        p = self.started("hb", source={"capture.mode": "change_streams"})
        entries = [log.insert(ns, {"_id": 1, "a": {"b": 1}, "list": [1, 2]}),
                   log.entry("u", ns, {"$v": 1, "$set": {"a.b": 2, "list.1": 3}, "$unset": {"c": True}},
                             ui=log.ui(ns), o2={"_id": 1})]
        got = self.came(p, "v1", entries)
        self.assertEqual(got[1], ("u", "1", None, mglog.described({"a.b": 2, "list.1": 3}, ["c"])))
        p.stop()

    def test_post_images_from_pre_images(self):
        log, ns = self.log, "hb.img"
        p = self.started("hb", source={"capture.mode": "change_streams_update_full_with_pre_image",
                                       "capture.mode.full.update.type": "post_image"})
        before, entries, docs = {"_id": 1, "a": [1, {"x": 1}], "b": 1}, [], []
        entries.append(log.insert(ns, before))
        update = log.diff(ns, 1, {"d": {"b": False}, "sa": {"a": True, "s1": {"u": {"x": 2}}, "u3": 9}})
        image = {"_id": bson.SON([("nsUUID", log.ui(ns)), ("ts", update["ts"]), ("applyOpsIndex", Int64(0))]),
                 "operationTime": update["wall"], "preImage": before}
        docs.append(("config.system.preimages", image))
        got = self.came(p, "img", entries + [update], docs)
        self.assertEqual(got[1][2], {"_id": 1, "a": [1, {"x": 2}, None, 9]})
        record = p.records("img")[-1]
        self.assertEqual(mgcase.parse(record["value"]["before"]), before)
        self.assertNotIn("cdcd.after", record["headers"])
        # Without the image nothing is made up.
        self.fake_.append([log.diff(ns, 1, {"u": {"b": 3}})])
        p.ends(2, r"hb\.img", r"pre-image", r"changeStreamPreAndPostImages")

    def test_unknown_key(self):
        """Of a later server: an error that tells where, not a change left out."""
        log, ns = self.log, "hb.v2"
        for diff in ({"q": {"x": 1}}, {"sa": {"a": True, "x0": 1}}, {"sa": {"u": {"b": 1}, "z": {}}}):
            with self.subTest(diff=diff):
                p = self.started("hb")
                bad = log.diff(ns, 1, diff)
                self.fake_.append([log.insert(ns, {"_id": 1, "a": 1}), bad, log.insert(ns, {"_id": 2})])
                p.ends(1, r"hb\.v2", r"%d:%d" % (bad["ts"].time, bad["ts"].inc))
                self.assertEqual([x[1] for x in p.changes("v2")], ["1"])

    def test_unknown_entries(self):
        """Operations of later servers that change no document are counted and passed."""
        log = self.log
        p = self.started("hb")
        got = self.came(p, "t", [log.entry("xi", "hb.t", {"_id": 1}), log.entry("km", "", {}),
                                 log.command("hb", {"someNewCommand": "t"}, ui=log.ui("hb.t")),
                                 log.insert("hb.t", {"_id": 2})])
        self.assertEqual([x[:2] for x in got], [("c", "2")])
        self.assertRegex(p.log_since_start(), r"someNewCommand")
        p.stop()

    def test_unknown_version(self):
        log = self.log
        p = self.started("hb")
        bad = log.insert("hb.t", {"_id": 1})
        bad["v"] = Int64(3)
        self.fake_.append([bad])
        p.ends(1, r"version", r"%d:%d" % (bad["ts"].time, bad["ts"].inc))
        self.assertEqual(p.changes("t"), [])


# ---- the same on a live server --------------------------------------------------------------------

class Live(mgcase.MgCase):
    def both(self, **more):
        """A database and its pipelines in the two ways of capture."""
        db = self.db()
        db.create_collection(mgcase.SYNC)
        pipes = [self.pipe(db.name, capture=capture, name="%s-%s" % (db.name, capture),
                           **json.loads(json.dumps(more))).start() for capture in mgcase.CAPTURES]
        return db, pipes

    def sync(self, pipes):
        for p in pipes:
            p.sync()

    def test_diffs(self):
        db, pipes = self.both()
        c = db.v2
        # What each statement makes of the document is read from the server, and must come as `after`.
        first = dict(DIFFS[1][0][1], _id=1)
        names = dict(DIFFS[2][0][1], _id=2)
        steps = [
            lambda: c.insert_one(dict(first)),
            lambda: c.update_one({"_id": 1}, {"$set": {"rows.0.ref": "A", "rows.0.info.fr": "y",
                                                       "rows.0.opts.0.w": "S", "rows.1": ROW1}}),
            lambda: c.update_one({"_id": 1}, {"$set": {"rows.1.cap": None}}),
            lambda: c.update_one({"_id": 1}, [{"$set": {"rows": {"$slice": ["$rows", 1]}}}]),
            lambda: c.update_one({"_id": 1}, {"$set": {"rows.4": {"ref": "gap"}}}),
            lambda: c.update_one({"_id": 1}, {"$unset": {"rows.0": ""}}),
            lambda: c.update_one({"_id": 1}, {"$push": {"rows": {"$each": [[1, [2, {"d": 3}]]], "$position": 0}}}),
            lambda: c.update_one({"_id": 1}, {"$set": {"rows.0.1.1.d": 4}, "$inc": {"n": 1}, "$unset": {"big": ""}}),
            lambda: c.insert_one(dict(names)),
            lambda: c.update_one({"_id": 2}, {"$set": {"u.x": 2, "i.y": 2, "d.z": 2, "a": False, "u0": "user2",
                                                       "s0.u0": 2, "sfoo.u.i": 2, "diff.a": "n"}}),
            lambda: c.update_one({"_id": 2}, {"$unset": {"l": "", "i": ""}, "$set": {"0": "zero", "1": {"a": 1}}}),
            lambda: c.insert_one({"_id": 3, "m": {"0": {"a": 1}, "1": [1, 2, 3]}}),
            lambda: c.update_one({"_id": 3}, {"$set": {"m.0.a": 2, "m.1.0": 9}}),
            lambda: c.update_one({"_id": 3}, {"$rename": {"m.1": "m.one"}}),
            lambda: c.replace_one({"_id": 3}, {"only": "this"}),
        ]
        key = itertools.chain([1] * 8, [2] * 3, [3] * 4)
        for n, (step, id_) in enumerate(zip(steps, key)):
            step()
            self.sync(pipes)
            want = c.find_one({"_id": id_})
            for p in pipes:
                with self.subTest(step=n, capture=p.source["capture"]):
                    last = p.changes("v2")[-1]
                    self.assertEqual(last[1:3], (str(id_), want))
        last = c.find_one({"_id": 1})
        self.assertEqual((last["n"], last["keep"], last["rows"][0], "big" in last),
                         (1, "this must survive", [1, [2, {"d": 4}]], False))
        c.update_one({"_id": 3}, {"$set": {"only": "this"}})  # changes nothing
        self.sync(pipes)
        for p in pipes:
            self.assertEqual(len(p.changes("v2")), len(steps))
            self.assertEqual(p.store(), mgcase.source_store(db))
            p.stop()

    def test_names(self):
        db, pipes = self.both()
        c = db.dots
        names = {k: v for k, v in NAMES.items() if k not in ("$ref", "$price")}
        c.insert_one(dict(names))
        c.update_one({"_id": 1}, {"$set": {"a.b": "nested-2"}})
        c.insert_one({"_id": 2, "deep": deep()})
        c.update_one({"_id": 2}, {"$set": {"other": 1}})
        self.sync(pipes)
        for p in pipes:
            with self.subTest(capture=p.source["capture"]):
                self.assertEqual(p.store()["dots"], {"1": dict(names, a={"b": "nested-2"}),
                                                     "2": {"_id": 2, "deep": deep(), "other": 1}})
            p.stop()

    def test_replaced(self):
        db = self.db("hb_rn")
        db.create_collection(mgcase.SYNC)
        pipes = [self.pipe(db.name, capture=capture, name="%s-%s" % (db.name, capture),
                           source={"collection.include.list": [db.name + ".cat"]}).start()
                 for capture in mgcase.CAPTURES]
        db.cat.insert_many([{"_id": 1, "v": "old"}, {"_id": 2, "v": "old"}])
        db.cat_next.insert_many([{"_id": 2, "v": "new"}, {"_id": 3, "v": "new"}])
        db.cat.rename("cat_prev")
        db.cat_next.rename("cat")
        db.cat.insert_one({"_id": 4, "v": "after swap"})
        db.stage.insert_one({"_id": 9, "v": "stage"})
        db.stage.rename("cat", dropTarget=True)
        self.sync(pipes)
        db.cat.drop()
        db.cat.insert_one({"_id": 10, "v": "second life"})
        self.sync(pipes)
        self.mongo.client.drop_database(db.name)
        db.cat.insert_one({"_id": 11, "v": "third life"})
        self.sync(pipes)
        for p in pipes:
            with self.subTest(capture=p.source["capture"]):
                self.assertEqual([x[:2] for x in p.changes("cat")],
                                 [("c", "1"), ("c", "2"), ("c", "4"), ("c", "10"), ("c", "11")])
                self.assertRegex(p.log_since_start(), r"%s\.cat\b.*replaced" % db.name)
            p.stop()


    def test_out_and_merge(self):
        """This server's $out drops and inserts, and its $merge deletes and inserts."""
        db, pipes = self.both()
        db.cat.insert_one({"_id": 1})
        db.src.insert_many([{"_id": "o1"}, {"_id": "o2"}])
        list(db.src.aggregate([{"$out": "cat"}]))
        list(db.src.aggregate([{"$merge": {"into": "cat", "whenMatched": "replace"}}]))
        self.sync(pipes)
        for p in pipes:
            with self.subTest(capture=p.source["capture"]):
                self.assertEqual(mgcase.source_store(db)["cat"],
                                 {k: v for k, v in p.store()["cat"].items() if k != "1"})
                self.assertEqual(p.changes("cat")[:3], [("c", "1", {"_id": 1}, None), ("c", '"o1"', {"_id": "o1"}, None),
                                                        ("c", '"o2"', {"_id": "o2"}, None)])
                self.assertIn("drop", {next(iter(json.loads(r["value"]["ddl"]))) for r in p.ddl()})
            p.stop()

    def test_replaced_and_fails(self):
        for capture in mgcase.CAPTURES:
            with self.subTest(capture=capture):
                db = self.db()
                db.cat.insert_one({"_id": 1})
                p = self.pipe(db.name, capture=capture, source={
                    "collection.include.list": [db.name + ".cat"],
                    "collection.replaced.handling.mode": "fail"}).start()
                db.cat.insert_one({"_id": 2})
                p.sync()
                db.other.insert_one({"_id": 3})
                db.other.rename("cat", dropTarget=True)
                db.cat.insert_one({"_id": 4})
                p.ends(3, r"%s\.cat was replaced" % db.name)
                p.fails(3, r"%s\.cat was replaced" % db.name)
                self.assertEqual([x[:2] for x in p.changes("cat")], [("r", "1"), ("c", "2")])
                p.cdcd.config["snapshot"] = {"mode": "when_needed"}
                p.start()
                p.sync()
                # What is gone cannot be told; what is there is.
                self.assertEqual({k: v for k, v in p.store()["cat"].items() if k in "34"},
                                 {"3": {"_id": 3}, "4": {"_id": 4}})
                p.stop()


if __name__ == "__main__":
    cdcdtest.main()
