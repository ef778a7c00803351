"""Oplog entries as a real server writes them (mongodb/mongo src/mongo/db/repl/oplog_entry.idl), for
the fake server: mgcase.Fake, tests/support/mgfake.c.

    log = mglog.Log()
    fake = self.fake([log.noop()])
    fake.append([log.create("hb.t"), log.insert("hb.t", {"_id": 1}), log.diff("hb.t", 1, {"u": {"a": 2}})])
    fake.append(log.transaction([log.op_insert("hb.t", {"_id": 2})], [log.op_delete("hb.t", 1)]))

FakeCase: tests of a pipeline from such a server.
"""
import datetime
import uuid

import mgcase
from mgcase import bson


class Log:
    """Numbers the entries and knows the collections' UUIDs."""

    def __init__(self, t=1700000000):
        self.t, self.i = t, 0
        self.uuids = {}
        self.counter = 0
        self.lsid = bson.SON([("id", self.new_uuid()), ("uid", b"\xe3" * 32)])
        self.txn = 0

    def new_uuid(self):
        self.counter += 1
        return bson.Binary(uuid.UUID(int=0x70c0de << 96 | 4 << 76 | 2 << 62 | self.counter).bytes, 4)

    def ui(self, ns):
        if ns not in self.uuids:
            self.uuids[ns] = self.new_uuid()
        return self.uuids[ns]

    def next_ts(self):
        """With room for the entries that the fake server numbers itself: those of Pipe.sync()."""
        self.i += 1000
        return bson.Timestamp(self.t, self.i)

    @property
    def last(self):
        return bson.Timestamp(self.t, self.i)

    def entry(self, op, ns, o, **more):
        """Fields in the server's order do not matter to a reader; `more` goes before ts."""
        out = bson.SON([("op", op), ("ns", ns)])
        if more.get("ui") is None:
            more.pop("ui", None)
        out.update(more)
        out["o"] = o
        out["ts"] = self.next_ts()
        out["t"] = bson.Int64(1)
        out["v"] = bson.Int64(2)
        out["wall"] = datetime.datetime.fromtimestamp(self.t, datetime.timezone.utc) + \
            datetime.timedelta(milliseconds=self.i)
        return out

    def noop(self, message="periodic noop"):
        return self.entry("n", "", {"msg": message})

    # -- documents; op_*: within an applyOps --

    def op_insert(self, ns, doc):
        return bson.SON([("op", "i"), ("ns", ns), ("ui", self.ui(ns)), ("o", doc),
                         ("o2", {"_id": doc["_id"]})])

    def op_diff(self, ns, id_, diff):
        return bson.SON([("op", "u"), ("ns", ns), ("ui", self.ui(ns)),
                         ("o", bson.SON([("$v", 2), ("diff", diff)])), ("o2", {"_id": id_})])

    def op_replace(self, ns, doc):
        return bson.SON([("op", "u"), ("ns", ns), ("ui", self.ui(ns)), ("o", doc),
                         ("o2", {"_id": doc["_id"]})])

    def op_delete(self, ns, id_):
        return bson.SON([("op", "d"), ("ns", ns), ("ui", self.ui(ns)), ("o", {"_id": id_})])

    def single(self, op, **more):
        fields = dict(op)
        fields.update(more)
        return self.entry(fields.pop("op"), fields.pop("ns"), fields.pop("o"), **fields)

    def insert(self, ns, doc, **more):
        return self.single(self.op_insert(ns, doc), **more)

    def diff(self, ns, id_, diff, **more):
        """diff: the grammar of $v 2, {"u": {..}, "i": {..}, "d": {..}, "sfield": {..}}"""
        return self.single(self.op_diff(ns, id_, diff), **more)

    def replace(self, ns, doc, **more):
        return self.single(self.op_replace(ns, doc), **more)

    def delete(self, ns, id_, **more):
        return self.single(self.op_delete(ns, id_), **more)

    # -- commands --

    def command(self, db, o, ui=None, **more):
        return self.entry("c", db + ".$cmd", o, ui=ui, **more)

    def create(self, ns, **options):
        db, name = ns.split(".", 1)
        o = bson.SON([("create", name)])
        o.update(options)
        o["idIndex"] = bson.SON([("v", 2), ("key", {"_id": 1}), ("name", "_id_")])
        self.uuids[ns] = self.new_uuid()
        return self.command(db, o, ui=self.ui(ns))

    def drop(self, ns, records=0):
        db, name = ns.split(".", 1)
        return self.command(db, {"drop": name}, ui=self.uuids.pop(ns), o2={"numRecords": records})

    def drop_database(self, db):
        return self.command(db, {"dropDatabase": 1})

    def rename(self, ns, to, drop_target=False):
        """Within a database; from one to another a server copies and drops."""
        o = bson.SON([("renameCollection", ns), ("to", to), ("stayTemp", False)])
        if drop_target:
            o["dropTarget"] = self.uuids[to]
        ui = self.uuids.pop(ns)
        self.uuids[to] = ui
        return self.command(ns.split(".", 1)[0], o, ui=ui)

    # -- several operations at once --

    def vectored(self, ops):
        """One applyOps of a retryable insert of several documents, which is no transaction."""
        self.txn += 1
        ops = [bson.SON(list(op.items()) + [("stmtId", n)]) for n, op in enumerate(ops)]
        return self.entry("c", "admin.$cmd", {"applyOps": ops}, lsid=self.lsid, txnNumber=bson.Int64(self.txn),
                          multiOpType=1, prevOpTime=self.optime(None))

    @staticmethod
    def optime(ts):
        if ts is None:
            return bson.SON([("ts", bson.Timestamp(0, 0)), ("t", bson.Int64(-1))])
        return bson.SON([("ts", ts), ("t", bson.Int64(1))])

    def transaction(self, *parts, prepare=False, end="commit"):
        """The entries of one transaction, each of `parts` the operations of an entry. One that is not
        prepared and aborts leaves no entry. end: "commit", "abort", or None: still open."""
        self.txn += 1
        txn, out, before, count = bson.Int64(self.txn), [], None, sum(len(p) for p in parts)
        for n, ops in enumerate(parts):
            o = bson.SON([("applyOps", ops)])
            if n + 1 < len(parts) or (end is None and not prepare):
                o["partialTxn"] = True
            elif prepare:
                o["prepare"] = True
            if n + 1 == len(parts) and len(parts) > 1 and not o.get("partialTxn"):
                o["count"] = bson.Int64(count)
            out.append(self.entry("c", "admin.$cmd", o, lsid=self.lsid, txnNumber=txn,
                                  prevOpTime=self.optime(before)))
            before = out[-1]["ts"]
        if prepare and end:
            out.append(self.finish(out[-1], end))
        return out

    def finish(self, prepared, end="commit"):
        """The entry that ends a prepared transaction."""
        o = bson.SON([("commitTransaction", 1), ("commitTimestamp", prepared["ts"])]) if end == "commit" \
            else {"abortTransaction": 1}
        return self.entry("c", "admin.$cmd", o, lsid=prepared["lsid"], txnNumber=prepared["txnNumber"],
                          prevOpTime=self.optime(prepared["ts"]))

    def last_part(self, parts, ops):
        """The entry that commits a transaction whose parts so far are those entries."""
        count = sum(len(p["o"]["applyOps"]) for p in parts) + len(ops)
        return self.entry("c", "admin.$cmd", bson.SON([("applyOps", ops), ("count", bson.Int64(count))]),
                          lsid=parts[0]["lsid"], txnNumber=parts[0]["txnNumber"],
                          prevOpTime=self.optime(parts[-1]["ts"]))


def described(updated=None, removed=None, truncated=None):
    return {"updatedFields": updated, "removedFields": removed, "truncatedArrays": truncated}


class FakeCase(mgcase.MgCase):
    live = False

    def setUp(self):
        super().setUp()
        self.log = Log()

    def started(self, db, *options, entries=(), docs=None, start=True, **more):
        """self.fake_ and a pipeline that streams from it, without a snapshot."""
        self.fake_ = self.fake([self.log.noop("initiating set"), *entries], *options, docs=docs)
        more.setdefault("snapshot", {"mode": "no_data"})
        p = mgcase.Pipe(self, db, server=self.fake_, capture="oplog", **more)
        return p.start() if start else p

    def came(self, p, collection, entries, docs=()):
        """What comes of these entries alone."""
        before = len(p.changes(collection))
        self.fake_.append(entries, docs)
        p.sync()
        return p.changes(collection)[before:]
