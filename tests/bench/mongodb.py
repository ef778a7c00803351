"""The MongoDB benchmarks. The server is tests/support/mgfake: it serves prepared entries faster than a
real one could, so that the client is what is measured, and every contestant reads the same bytes.
"""
import datetime
import os
import random
import time

import cdcdtest
import common
import measure
import mgcase
from common import Failed, brief, check_count, finish
from mgcase import bson
from mysql import free_port, status

FILE_ROWS = 10000  # entries of the file that is served again and again


class Bench(common.Bench):
    def versions(self):
        return {"oplog": "tests/support/mgfake"}


    def start_server(self):
        """Inserts of 300 bytes, in a file of FILE_ROWS, served until there are options.rows."""
        rows = self.options.rows
        if rows % FILE_ROWS:
            raise Failed("--rows must be a multiple of %d" % FILE_ROWS)
        if not self.server:
            rng = random.Random(7)
            entries = [entry(i, document(i, rng)) for i in range(FILE_ROWS)]
            self.server = mgcase.Fake(entries, "--repeat", str(rows // FILE_ROWS))

    def cdcd(self, sink, name, **more):
        run = self.new_run(sink, name)
        run["http"] = "127.0.0.1:%d" % free_port()
        source = {"url": self.server.url(), "capture": "oplog",
                  "capture.start.op.time": 1700000000 << 32 | 1}
        self.configure(run, {"http.listen": run["http"], "source": {"mongodb": source},
                             "snapshot": {"mode": "no_data"}, **more})
        return run


def document(i, rng):
    return bson.SON([("_id", bson.ObjectId("%024x" % (0x65e0a1b2c3d4e5f600000000 + i))),
                     ("customer", rng.randrange(1 << 30)), ("total", rng.randrange(100000) / 100),
                     ("placed", datetime.datetime(2024, 2, 29, 13, 14, 15, 123000)),
                     ("state", "paid"), ("version", bson.Int64(1)),
                     ("address", bson.SON([("street", "1 Long Road"), ("city", "Springfield")])),
                     ("lines", [bson.SON([("sku", "a-%d" % i), ("n", 2)]), bson.SON([("sku", "b"), ("n", 1)])]),
                     ("note", "x" * 60)])


def entry(i, doc):
    return bson.SON([("op", "i"), ("ns", "bench.bench"), ("ui", bson.Binary(b"\x01" * 16, 4)), ("o", doc),
                     ("o2", {"_id": doc["_id"]}), ("ts", bson.Timestamp(1700000000, i + 1)),
                     ("t", bson.Int64(1)), ("v", bson.Int64(2)),
                     ("wall", datetime.datetime(2024, 2, 29, 13, 14, 15, 123000))])


# ---- drain ---------------------------------------------------------------------------------------

def drain(bench):
    """Entries of inserts, from the start of the process until all are durable. Right before each run
    a loop over a tailable cursor of libmongoc reads the same entries and does nothing."""
    rows = bench.options.rows
    bench.start_server()
    runs = []
    for pair in range(bench.options.pairs):
        for sink in bench.options.sinks:
            limit = tail(bench, rows)
            run = bench.launch(bench.cdcd(sink, "drain"), "run")
            until_counted(run, rows)
            seconds = time.monotonic() - run["process"].began
            r = {"what": "drain", "sink": sink, "rows": rows, "pair": pair, "seconds": seconds,
                 "rate": rows / seconds, "limit": limit, "ratio": limit["seconds"] / seconds}
            r.update(finish(bench, run, rows))
            if sink != "kafka":  # the file's keys come again and again: the broker may compact them
                check_count(bench, run, "bench.bench", rows)
            bench.clean(run)
            bench.say("drain %s: %s" % (sink, brief(r)))
            runs.append(r)
    return runs


def tail(bench, rows):
    folder = bench.new_folder("tail")
    p = measure.Process([os.path.join(cdcdtest.SUPPORT, "mgtail"), bench.server.url(), str(rows)],
                        os.path.join(folder, "log"))
    if p.wait() != 0:
        raise Failed("mgtail: exit code %d\n%s" % (p.code, p.tail()))
    return {"seconds": p.seconds, "rate": rows / p.seconds, "cpu": p.cpu}


def until_counted(run, rows, timeout=1800):
    """The last entry's time is durable: mgfake adds one second for each repetition of the file."""
    last = "(%d, %d)" % (1700000000 + rows // FILE_ROWS - 1, FILE_ROWS)
    end = time.monotonic() + timeout
    while True:
        run["process"].sample()
        s = status(run)
        if last in (s.get("position") or ""):
            if s["events"] != rows:
                raise Failed("cdcd has counted %d changes instead of %d" % (s["events"], rows))
            return
        if time.monotonic() > end:
            raise Failed("not drained in %d s: %s" % (timeout, s))
        time.sleep(0.02)


# ---- json ----------------------------------------------------------------------------------------

def encoder(bench):
    """Documents to Extended JSON, against libbson's own writer, in one process."""
    out = cdcdtest.run([os.path.join(cdcdtest.SUPPORT, "mgbench")], timeout=300).stdout
    bench.say("json:\n" + out.rstrip())
    return []


SUITES = {"drain": drain, "json": encoder}
SINKS = {"drain": ["null", "kafka"], "json": ["null"]}
