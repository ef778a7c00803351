#!/usr/bin/env python3
"""Writes NAME.expect.json for every NAME.bson here: what the entries say, by a second, plain
reading of the format that shares nothing with the plugin; and diffs.bson from diffs.json. Needs
pymongo's bson. Look at what changed before keeping it: the unit tests compare the decoder with
these files."""

import datetime
import pathlib
import re
import sys

import bson
from bson import json_util
from bson.codec_options import CodecOptions
from bson.int64 import Int64
from bson.son import SON
from bson.timestamp import Timestamp

OPTIONS = CodecOptions(document_class=SON, tz_aware=True)
RELAXED = json_util.RELAXED_JSON_OPTIONS
EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.timezone.utc)
KINDS = {"create": "create", "drop": "drop", "dropDatabase": "drop database",
         "renameCollection": "rename", "collMod": "modify", "createIndexes": "index",
         "dropIndexes": "index", "deleteIndexes": "index", "startIndexBuild": "index",
         "commitIndexBuild": "index", "abortIndexBuild": "index"}


def text(value):
    out = json_util.dumps(value, json_options=RELAXED, separators=(",", ":"), ensure_ascii=False)
    # Java's dates, which are the model, end at the last digit that is not zero.
    return re.sub(r'("\$date":"[^"]*\.\d*?)0+Z"', r'\1Z"', out)


def numeric(name):
    return name.isdigit() and (name == "0" or name[0] != "0")


class Description:
    """updateDescription of a $v 2 diff, as change streams make it."""

    def __init__(self):
        self.updated, self.removed, self.truncated, self.paths = [], [], [], []

    def leaf(self, path):
        dotted = ".".join(str(p) for p in path)
        if any(isinstance(p, str) and ("." in p or (i and numeric(p)))
               for i, p in enumerate(path)):
            self.paths.append((dotted, path))
        return dotted

    def document(self, diff, path):
        for key, value in diff.items():
            if key in ("u", "i"):
                for name, new in value.items():
                    self.updated.append((self.leaf(path + [name]), new))
            elif key == "d":
                for name in value:
                    self.removed.append(self.leaf(path + [name]))
            elif key.startswith("s"):
                self.sub(value, path + [key[1:]])
            else:
                raise ValueError(f"unknown key {key}")

    def array(self, diff, path):
        for key, value in list(diff.items())[1:]:
            if key == "l":
                self.truncated.append(SON(field=self.leaf(path), newSize=value))
            elif key[0] == "u":
                self.updated.append((self.leaf(path + [int(key[1:])]), value))
            elif key[0] == "s":
                self.sub(value, path + [int(key[1:])])
            else:
                raise ValueError(f"unknown key {key}")

    def sub(self, diff, path):
        if next(iter(diff), None) == "a":
            self.array(diff, path)
        else:
            self.document(diff, path)

    def json(self):
        out = ('{"updatedFields":' + text(SON(self.updated)) + ',"removedFields":' +
               text(self.removed) + ',"truncatedArrays":' + text(self.truncated))
        if self.paths:
            out += ',"disambiguatedPaths":' + text(SON(self.paths))
        return out + "}"


def update(o):
    first = next(iter(o), "_id")
    d = Description()
    if first == "_id" or not first.startswith("$"):
        return '"replacement":' + text(o)
    if o.get("$v") == 2:
        d.document(o["diff"], [])
    else:
        d.updated = list(o.get("$set", {}).items())
        d.removed = list(o.get("$unset", {}))
    return '"update":' + d.json()


def operation(op, index):
    o = op["o"]
    ident = op["o2"]["_id"] if op["op"] == "u" else o["_id"]
    out = f'{{"index":{index},"op":{text(op["op"])},"ns":{text(op["ns"])},"id":{text(ident)}'
    if op["op"] == "u":
        out += "," + update(o)
    return out + "}"


def command(entry):
    o = entry["o"]
    name, value = next(iter(o.items()))
    db = entry["ns"].split(".", 1)[0]
    out = f'{{"kind":{text(KINDS[name])},"db":{text(db)}'
    if isinstance(value, str):
        out += f',"collection":{text(value)}'
    return out + "}"


def what_is(entry):
    """Kind, name, whether its operations are of a transaction."""
    op, o = entry["op"], entry["o"]
    session = "lsid" in entry and "txnNumber" in entry
    if op == "n":
        return "noop", "n", False
    if op in "iud":
        return "ops", op, session and "stmtId" not in entry and "t" not in entry
    name = next(iter(o))
    separate = entry.get("multiOpType") == 1
    linked = "prevOpTime" in entry and entry["prevOpTime"]["ts"].time != 0
    if name == "applyOps":
        if o.get("partialTxn") or o.get("prepare"):
            return "part", name, session
        return ("commit" if linked and not separate else "ops"), name, session and not separate
    if name == "commitTransaction":
        return "commit", name, session
    if name == "abortTransaction":
        return "abort", name, False
    return "command", name, False


def line(entry):
    kind, what, transaction = what_is(entry)
    out = f'{{"ts":[{entry["ts"].time},{entry["ts"].inc}],"kind":{text(kind)},"what":{text(what)}'
    if "prevOpTime" in entry and entry["prevOpTime"]["ts"].time:
        prev = entry["prevOpTime"]["ts"]
        out += f',"prev":[{prev.time},{prev.inc}]'
    if "wall" in entry:
        out += f',"wall":{(entry["wall"] - EPOCH) // datetime.timedelta(milliseconds=1)}'
    if "lsid" in entry:
        out += ',"lsid":' + text(entry["lsid"])
    if "txnNumber" in entry:
        out += f',"txnNumber":{entry["txnNumber"]}'
    if transaction:
        out += ',"transaction":true'
    if entry["op"] in "iud":
        out += ',"ops":[' + operation(entry, 0) + "]"
    elif what == "applyOps":
        ops = [operation(op, i) for i, op in enumerate(entry["o"]["applyOps"])]
        out += ',"ops":[' + ",".join(ops) + "]"
    elif kind == "command":
        out += ',"command":' + command(entry)
    return out + "}"


def diffs(here):
    """Whole entries of diffs.json, in the order of a server's fields."""
    out = b""
    for i, row in enumerate((here / "diffs.json").read_text().splitlines(), 1):
        row = json_util.loads(row, json_options=json_util.JSONOptions(document_class=SON))
        row.pop("after", None)
        entry = SON(op=row["op"], ns="hb.v2", o=row["o"])
        if "o2" in row:
            entry["o2"] = row["o2"]
        entry["ts"] = Timestamp(1700000000, i)
        entry["t"], entry["v"] = Int64(1), Int64(2)
        entry["wall"] = EPOCH + datetime.timedelta(seconds=1700000000)
        out += bson.encode(entry)
    (here / "diffs.bson").write_bytes(out)


def main():
    here = pathlib.Path(__file__).parent
    diffs(here)
    for path in sorted(here.glob("*.bson")):
        entries = bson.decode_all(path.read_bytes(), OPTIONS)
        lines = ",\n".join(line(e) for e in entries)
        path.with_suffix(".expect.json").write_text("[\n" + lines + "\n]\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
