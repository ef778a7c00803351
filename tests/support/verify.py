"""Compares what a sink holds with what pgload committed: each change exactly once, each key in
order, the last value of each key as in its table.

    expected = verify.Expected(query)                 # query(sql) gives psql's unaligned rows
    stats = verify.verify(records, expected)          # raises verify.Mismatch with what is wrong

    verify.py [--resumed] URL FILE                    FILE: lines of the file sink or of kread

Records are dictionaries with topic, key, value and headers, in order of each partition. Call it
when the load has ended and everything has been drained.
"""
import argparse
import base64
import collections
import decimal
import hashlib
import json
import re
import subprocess
import sys

PLACEHOLDER = "__debezium_unavailable_value"
PRESENT = ("c", "u", "kc")  # operations after which the key is there
SHOWN = 20


class Mismatch(AssertionError):
    pass


Change = collections.namedtuple("Change", "change ver op xid")


class Expected:
    """What the database says: the history of each key and the final rows."""

    def __init__(self, query):
        self.history = collections.defaultdict(list)
        self.transactions = collections.defaultdict(set)  # xid: {(table, key, ver)}
        self.rows = {}
        for line in query("SELECT tab, key, ver, change, op, xid FROM pgload.log "
                          "ORDER BY tab, key, ver").splitlines():
            tab, key, ver, change, op, xid = line.split("|")
            k = (int(tab), int(key))
            self.history[k].append(Change(int(change), int(ver), op, int(xid)))
            self.transactions[int(xid)].add((*k, int(ver)))
        for tab in query("SELECT DISTINCT tab FROM pgload.keys ORDER BY 1").splitlines():
            for line in query("SELECT id, ver, change, amount, padded, md5(pad) FROM public.load_%s"
                              % tab).splitlines():
                key, ver, change, amount, padded, md5 = line.split("|")
                self.rows[int(tab), int(key)] = {
                    "ver": int(ver), "change": int(change), "amount": decimal.Decimal(amount),
                    "padded": int(padded), "md5": md5}
        for k, h in self.history.items():
            if [c.ver for c in h] != list(range(1, len(h) + 1)):
                raise Mismatch("pgload's own log has gaps for key %s: %s" % (k, h))

    def changes(self):
        return sum(len(h) for h in self.history.values())


class Verifier:
    def __init__(self, expected, resumed):
        self.expected, self.resumed = expected, resumed
        self.problems = []
        self.stats = collections.Counter()
        self.records = collections.defaultdict(list)    # (table, key): records without tombstones
        self.streamed = {}                              # (table, key): first version in the stream
        self.commits = collections.defaultdict(set)     # commit part of cdcd.pos: {(table, key, ver)}
        self.xid_of = {}                                # commit part of cdcd.pos: transaction id

    def wrong(self, text, *args):
        self.problems.append(text % args)

    # -- one pass over the records, in order --

    def take_all(self, records):
        positions = set()
        last_of_key, last_of_topic, want_tombstone = {}, {}, {}
        for r in records:
            m = re.search(r"\.public\.load_(\d+)$", r["topic"])
            if not m:
                continue
            k = (int(m.group(1)), r["key"]["id"])
            pos = (r.get("headers") or {}).get("cdcd.pos")
            if not isinstance(pos, str):
                self.wrong("key %s: a record without cdcd.pos: %s", k, r)
                continue
            if pos in positions:
                self.wrong("cdcd.pos %s comes twice, now for key %s", pos, k)
            positions.add(pos)
            if pos <= last_of_key.get(k, ""):
                self.wrong("key %s: cdcd.pos %s after %s", k, pos, last_of_key[k])
            last_of_key[k] = pos
            deleted = want_tombstone.pop(k, None)
            if r["value"] is None:
                self.stats["tombstones"] += 1
                if not deleted:
                    self.wrong("key %s: a tombstone that follows no delete, at %s", k, pos)
                continue
            if deleted:
                self.wrong("key %s: no tombstone after the delete at %s", k, deleted)
            op = r["value"]["op"]
            if op == "d":
                want_tombstone[k] = pos
            if op != "r":
                # Topics here have one partition: log order throughout.
                topic = (r["topic"], r.get("partition", 0))
                if pos <= last_of_topic.get(topic, ""):
                    self.wrong("%s: cdcd.pos %s after %s", r["topic"], pos, last_of_topic[topic])
                last_of_topic[topic] = pos
            self.stats["snapshot" if op == "r" else "changes"] += 1
            self.records[k].append((pos, op, r))
        for k, pos in want_tombstone.items():
            self.wrong("key %s: no tombstone after the delete at %s", k, pos)

    # -- key by key --

    def check_key(self, k):
        history, records = self.expected.history.get(k, []), self.records.get(k, [])
        stream = sum(op != "r" for _, op, _ in records)
        before = len(history) - stream  # changes that the snapshot has to cover
        if before < 0:
            return self.wrong("key %s: %d changes in the stream, %d were committed: %s", k, stream,
                              len(history), self.brief(records))
        self.streamed[k] = before + 1
        at, rows_first = before, 0
        for pos, op, r in records:
            if op == "r":
                rows_first += at == before
                self.check_row(k, pos, r, history, at)
                continue
            self.check_change(k, pos, op, r, history[at])
            at += 1
        if rows_first > 1 and not self.resumed:
            self.wrong("key %s: %d snapshot rows", k, rows_first)
        if before and history[before - 1].op in PRESENT and not rows_first:
            # In a resumed snapshot a row that changed meanwhile may come as that change only.
            if not (self.resumed and stream):
                self.wrong("key %s: versions up to %d are in no snapshot row and not in the stream; "
                           "committed %s, have %s", k, before, self.ops(history), self.brief(records))
        self.check_last(k, records)

    def check_row(self, k, pos, r, history, at):
        after = r["value"]["after"]
        now = history[at - 1] if at else None
        if not now or now.op not in PRESENT:
            self.wrong("key %s: a snapshot row at %s though the key is not there after version %d",
                       k, pos, at)
        elif (after["ver"], after["change"]) != (now.ver, now.change):
            self.wrong("key %s: the snapshot row at %s has version %d instead of %d", k, pos,
                       after["ver"], now.ver)
        self.check_pad(k, pos, after, False)

    def check_change(self, k, pos, op, r, want):
        value, headers = r["value"], r["headers"]
        if op != want.op[-1]:
            return self.wrong("key %s at %s: op %s instead of %s of version %d", k, pos, op, want.op,
                              want.ver)
        if op in "cu":
            after = value["after"]
            if (after["ver"], after["change"]) != (want.ver, want.change):
                self.wrong("key %s at %s: version %s, change %s instead of %d, %d", k, pos, after["ver"],
                           after["change"], want.ver, want.change)
            self.check_pad(k, pos, after, want.op != "c")
        before = value["before"]
        if k[0] % 3 == 0 and op in "ud":  # replica identity full
            if not before or before["ver"] != want.ver - 1:
                self.wrong("key %s at %s: before is not version %d: %s", k, pos, want.ver - 1, before)
        for name, of in (("__debezium.newkey", "kd"), ("__debezium.oldkey", "kc")):
            if (name in headers) != (want.op == of):
                self.wrong("key %s at %s: header %s %s", k, pos, name,
                           "is missing" if want.op == of else "on a change that is none of the key")
        commit = pos.split("-")[0]
        xid = value["source"]["txId"]
        known = self.xid_of.setdefault(commit, xid)
        if xid != want.xid or known != xid:
            self.wrong("key %s at %s: transaction %s instead of %s", k, pos, xid, want.xid)
        self.commits[commit].add((*k, want.ver))

    def check_pad(self, k, pos, after, may_be_unsent):
        if after["pad"] == PLACEHOLDER and may_be_unsent:
            self.stats["unsent"] += 1
            return
        if after["pad"] != pad(after["padded"]):
            self.wrong("key %s at %s: pad is not that of change %s", k, pos, after["padded"])

    def check_last(self, k, records):
        row = self.expected.rows.get(k)
        after = records[-1][2]["value"]["after"] if records else None
        if (row is None) != (after is None):
            return self.wrong("key %s: the last record is %s, the table has %s", k,
                              self.brief(records[-1:]), row)
        if row is None:
            return
        amount = number(after["amount"])
        got = (after["ver"], after["change"], after["padded"])
        if got != (row["ver"], row["change"], row["padded"]) or amount != row["amount"]:
            self.wrong("key %s: the last record has %s, amount %s, the table %s", k, got, amount, row)
        if after["pad"] != PLACEHOLDER and hashlib.md5(after["pad"].encode()).hexdigest() != row["md5"]:
            self.wrong("key %s: pad of the last record is not the table's", k)

    # -- transactions: all of one or nothing --

    def check_transactions(self):
        streamed_of = {self.xid_of[c]: changes for c, changes in self.commits.items()}
        if len(streamed_of) != len(self.commits):
            self.wrong("transactions with more than one commit position")
        for xid, changes in self.expected.transactions.items():
            got = streamed_of.pop(xid, None)
            if got is None:
                late = [c for c in changes if c[2] >= self.streamed.get(c[:2], 1)]
                if late:
                    self.wrong("transaction %d is not in the stream: %s", xid, late)
            elif got != changes:
                self.wrong("transaction %d came in part: without %s", xid, sorted(changes - got))
        for xid in streamed_of:
            self.wrong("transaction %s was never committed", xid)
        self.stats["transactions"] = len(self.commits)

    def brief(self, records):
        return ["%s %s v%s" % (pos, op, (r["value"]["after"] or {}).get("ver", "-"))
                for pos, op, r in records[-12:]]

    def ops(self, history):
        return " ".join("%s%d" % (c.op, c.ver) for c in history[-12:])


def pad(change):
    return hashlib.md5(str(change).encode()).hexdigest() * (100 if change % 10 == 0 else 1 + change % 4)


def number(value, scale=4):
    """decimal.handling.mode precise (without schema: base64 of the unscaled value), or text."""
    if isinstance(value, str) and "." not in value:
        unscaled = int.from_bytes(base64.b64decode(value), "big", signed=True)
        return decimal.Decimal(unscaled).scaleb(-scale)
    return decimal.Decimal(value)


def verify(records, expected, resumed=False):
    """resumed: the snapshot was killed and went on, so a row may come more than once, or only as
    its change. Returns counts."""
    v = Verifier(expected, resumed)
    v.take_all(records)
    for k in sorted(set(expected.history) | set(v.records)):
        v.check_key(k)
    v.check_transactions()
    v.stats["committed"] = expected.changes()
    if v.problems:
        raise Mismatch("%d problems, %s\n  %s" % (len(v.problems), dict(v.stats),
                                                   "\n  ".join(v.problems[:SHOWN])))
    return dict(v.stats)


def main():
    p = argparse.ArgumentParser(description="compares records with what pgload committed")
    p.add_argument("--resumed", action="store_true", help="the snapshot was killed and went on")
    p.add_argument("url")
    p.add_argument("file", help="records as JSON lines; - for standard input")
    o = p.parse_args()

    def query(sql):
        return subprocess.run(["psql", "-X", "-q", "-At", "-v", "ON_ERROR_STOP=1", "-d", o.url, "-c", sql],
                              stdout=subprocess.PIPE, text=True, check=True).stdout
    source = sys.stdin if o.file == "-" else open(o.file, encoding="utf-8")
    try:
        print(json.dumps(verify((json.loads(line) for line in source), Expected(query), o.resumed)))
    except Mismatch as e:
        sys.exit("verify: %s" % e)


if __name__ == "__main__":
    main()
