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
import json
import os
import sys
import time
import unittest

import cdcdtest
import folderpipe

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
    folderpipe.run_each({"CDCD_TEST_PG_VERSIONS": str(v), "CDCD_TEST_PG_NEWEST": str(NEWEST)} for v in VERSIONS)


class Pipe(folderpipe.FolderPipe):
    """A pipeline from a database to a folder."""

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

    def sync_once(self, timeout):
        token = self.token()
        self.pg.sql("SELECT pg_logical_emit_message(true, '%s', '%s')" % (SYNC, token), self.db)
        content = '"content":"%s"' % base64.b64encode(token.encode()).decode()
        return self.wait_came(self.prefix + ".message", content, timeout)

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
