"""What the PostgreSQL tests with the file sink share: a server of each version, a pipeline that can
be waited for, and its records in short form.

    @each_version()
    class Types(PgCase):            # becomes Types_14, Types_15, Types_18
        settings = ["max_prepared_transactions=10"]
        def test_x(self):
            db = self.db("CREATE TABLE t (id int PRIMARY KEY)")
            p = self.pipe(db).start()
            self.sql("INSERT INTO t VALUES (1)", db)
            p.sync()
            self.assertEqual(p.ops("public.t"), [("c", {"id": 1}, {"id": 1})])
"""
import base64
import itertools
import json
import os
import subprocess
import sys
import tempfile
import time
import unittest

import cdcdtest

VERSIONS = [int(v) for v in os.environ.get("CDCD_TEST_PG_VERSIONS", "14 15 18").split()]
NEWEST = int(os.environ.get("CDCD_TEST_PG_NEWEST", max(VERSIONS)))
PLACEHOLDER = "__debezium_unavailable_value"
SYNC = "cdcd.test.sync"


def each_version(at_least=0, only=None):
    """Replaces the class by one for each server version under test."""
    def wrap(cls):
        module = sys.modules[cls.__module__]
        for version in VERSIONS:
            if version < at_least or (only and version not in only):
                continue
            name = "%s_%d" % (cls.__name__, version)
            setattr(module, name, type(name, (cls,), {"version": version,
                                                      "__module__": cls.__module__}))
        return None
    return wrap


def one_version(at_least=0):
    """Where versions do not differ: the newest of those under test."""
    return each_version(at_least, [NEWEST])


def main():
    """Each version in a process of its own, at the same time: the tests mostly wait."""
    if len(VERSIONS) == 1 or len(sys.argv) > 1:
        cdcdtest.main()
    children = []
    for version in VERSIONS:
        env = dict(os.environ, CDCD_TEST_PG_VERSIONS=str(version), CDCD_TEST_PG_NEWEST=str(NEWEST))
        out = tempfile.TemporaryFile("w+")
        children.append((out, subprocess.Popen([sys.executable, *sys.argv], env=env, stdout=out,
                                               stderr=subprocess.STDOUT)))
    failed = False
    for out, child in children:
        failed = child.wait() != 0 or failed
        out.seek(0)
        sys.stderr.write(out.read())
    sys.exit(failed)


class Pipe:
    """A pipeline from a database to a folder."""

    tokens = itertools.count(1)

    def __init__(self, test, db, folder=None, name=None, source=None, format=None, **top):
        self.test, self.pg, self.db = test, test.pg, db
        self.out = folder or test.folder()
        name = name or db
        self.prefix = "srv"
        config = cdcdtest.file_config(self.pg, db, self.out, **top)
        config["source"]["postgres"]["slot.name"] = "cdcd_" + name
        config["source"]["postgres"].update(source or {})
        if format:
            config["format"] = {"debezium": dict(format)}
        self.cdcd = test.cdcd(config, name)

    @property
    def source(self):
        return self.cdcd.config["source"]["postgres"]

    @property
    def slot(self):
        return self.source["slot.name"]

    def start(self, command="run", *args, wait=True, **more):
        self.from_ = len(self.cdcd.logs()) if os.path.exists(self.cdcd.log_path) else 0
        self.cdcd.start(command, *args, **more)
        if wait:
            self.wait_log("streaming from")
        return self

    def wait_log(self, pattern, timeout=60):
        """In what was logged since the last start."""
        import re

        def seen():
            new = self.cdcd.logs()[self.from_:]
            if re.search(pattern, new):
                return True
            if not self.cdcd.alive():
                raise cdcdtest.Failure("cdcd ended before it logged %r:\n%s" % (pattern, new))
            return False
        cdcdtest.wait_until("log %r" % pattern, seen, timeout)

    def log_since_start(self):
        return self.cdcd.logs()[self.from_:]

    def stop(self, expect=0):
        code = self.cdcd.stop()
        self.test.assertEqual(code, expect, self.cdcd.logs()[-4000:])
        return self

    def fails(self, code, *patterns, timeout=60):
        """Runs to its end, and its log has the patterns."""
        self.start(wait=False)
        try:
            got = self.cdcd.wait(timeout)
        except Exception:
            self.cdcd.kill()
            raise cdcdtest.Failure("did not end:\n" + self.cdcd.logs())
        log = self.log_since_start()
        self.test.assertEqual(got, code, log[-4000:])
        for p in patterns:
            self.test.assertRegex(log, p)
        return log

    def sync(self, timeout=60):
        """Waits until everything that is committed now has come. A commit of the folder writes
        its files one after another: only what a later commit wrote tells that the first is whole."""
        self.sync_once(timeout)
        return self.sync_once(timeout)

    def sync_once(self, timeout):
        token = "%d-%d" % (os.getpid(), next(Pipe.tokens))
        self.pg.sql("SELECT pg_logical_emit_message(true, '%s', '%s')" % (SYNC, token), self.db)
        content = '"content":"%s"' % base64.b64encode(token.encode()).decode()
        path = os.path.join(self.out, self.prefix + ".message.jsonl")

        def came():
            try:
                with open(path, encoding="utf-8") as f:
                    if content in f.read():
                        return True
            except FileNotFoundError:
                pass
            if not self.cdcd.alive():
                raise cdcdtest.Failure("cdcd ended:\n" + self.cdcd.logs())
            return False
        cdcdtest.wait_until("what was committed to come", came, timeout)
        return self

    def records(self, table=None):
        """Of one table (schema.table, as in topic names) or of all, in log order."""
        topics = cdcdtest.read_folder(self.out)
        out = []
        for topic, records in topics.items():
            if table is not None and topic != "%s.%s" % (self.prefix, table):
                continue
            for r in records:
                message = (r["value"] or {}).get("message")
                if not (message and message["prefix"] == SYNC):
                    out.append(r)
        if table is None:
            out.sort(key=lambda r: r["headers"].get("cdcd.pos", ""))
        return out

    def rows(self, table, op=None):
        """The values' `after` (or `before`, for deletes)."""
        return [r["value"]["before" if r["value"]["op"] == "d" else "after"]
                for r in self.records(table)
                if r["value"] and (op is None or r["value"]["op"] in op)]

    def ops(self, table, tombstones=True):
        """[(op, key, after)]; a tombstone is ("-", key, None)."""
        out = []
        for r in self.records(table):
            if r["value"] is None:
                if tombstones:
                    out.append(("-", r["key"], None))
            else:
                out.append((r["value"]["op"], r["key"], r["value"].get("after")))
        return out

    def confirmed(self):
        """Bytes between the server's end of log and what the slot has confirmed."""
        text = self.pg.sql("SELECT pg_current_wal_lsn() - confirmed_flush_lsn FROM "
                           "pg_replication_slots WHERE slot_name = '%s'" % self.slot)
        return int(text) if text else None


_servers = {}


def server(version, settings=()):
    """Shared by the classes of a file that want the same; stopped at its end."""
    key = (version, tuple(settings))
    if key not in _servers:
        _servers[key] = cdcdtest.Postgres(version, *settings)
        unittest.addModuleCleanup(_servers[key].stop)
    return _servers[key]


class PgCase(cdcdtest.TestCase):
    version = None
    settings = []

    @classmethod
    def setUpClass(cls):
        cls.pg = server(cls.version, cls.settings)

    def setUp(self):
        super().setUp()
        self.began = time.monotonic()

    def tearDown(self):
        super().tearDown()
        # Slots that a killed pipeline left would hold the log, and new ones may run out.
        self.pg.sql("SELECT pg_terminate_backend(active_pid) FROM pg_replication_slots WHERE active")

        def dropped():
            r = self.pg.sql("SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots "
                            "WHERE NOT temporary", check=False)
            return r.returncode == 0
        cdcdtest.wait_until("slots to be dropped", dropped)
        if os.environ.get("CDCD_TEST_TIMES"):
            sys.stderr.write("%.1f s " % (time.monotonic() - self.began))

    def db(self, setup=""):
        db = self.pg.new_db("t")
        if setup:
            self.sql(setup, db)
        return db

    def sql(self, text, db, **more):
        return self.pg.sql(text, db, **more)

    def pipe(self, db, **more):
        return Pipe(self, db, **more)

    def snapshot_like_stream(self, streamed, table, db, ignore=()):
        """A snapshot of the table now gives the same JSON as the last streamed record of each key.
        Returns the rows by key."""
        last = {}
        for r in streamed.records(table):
            if r["value"] is not None:
                last[json.dumps(r["key"])] = r["value"].get("after")
        last = {k: v for k, v in last.items() if v is not None}
        source = {k: v for k, v in streamed.source.items() if k not in ("url", "slot.name")}
        other = Pipe(self, db, name="snap%d" % next(Pipe.tokens), source=source,
                     format=streamed.cdcd.config.get("format", {}).get("debezium"))
        other.cdcd.config["snapshot.mode"] = "initial_only"
        other.start(wait=False)
        self.assertEqual(other.cdcd.wait(), 0, other.cdcd.logs()[-4000:])
        rows = {json.dumps(r["key"]): r["value"]["after"] for r in other.records(table)}

        def kept(values):
            return {k: {c: v for c, v in row.items() if c not in ignore}
                    for k, row in values.items()}
        self.assertEqual(kept(rows), kept(last))
        self.assertTrue(all(r["value"]["op"] == "r" for r in other.records(table)))
        return rows
