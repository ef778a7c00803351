"""What the MongoDB tests share: servers, a pipeline to a folder that can be waited for, its records
in short form, and what a reader of them would have.

    class Types(mgcase.MgCase):
        settings = ["oplog-max-entries=50"]     # of the server; options of scripts/services/mongodb
        def test_x(self):
            for capture in mgcase.CAPTURES:      # "oplog", "change_stream"
                with self.subTest(capture=capture):
                    db = self.db()               # a pymongo Database of its own
                    p = self.pipe(db.name, capture=capture).start()
                    db.t.insert_one({"_id": 1, "v": "x"})
                    p.sync()
                    self.assertEqual(p.ops("t"), [("c", {"id": "1"}, {"_id": 1, "v": "x"})])
                    self.assertEqual(p.store()["t"], {"1": {"_id": 1, "v": "x"}})

    fake = self.fake([{"op": "n", "ns": "", "o": {}}])      # tests/support/mgfake.c, recorded entries
    p = self.pipe("hb", server=fake).start()
    fake.append([{"op": "i", "ns": "hb.t", "o": {"_id": 1}, "o2": {"_id": 1}}])
    p.sync()

The server is an external one (scripts/services/mongodb); pymongo and bson come from its folder.
"""
import itertools
import json
import os
import re
import subprocess
import sys
import tempfile
import time
import unittest

import cdcdtest
import folderpipe

SERVICE = os.path.join(cdcdtest.ROOT, "scripts/services/mongodb")
sys.path.append(subprocess.run([SERVICE, "python"], stdout=subprocess.PIPE, text=True,
                               check=True).stdout.strip())
# pylint: disable=wrong-import-position
import bson  # noqa: E402
import pymongo  # noqa: E402
from bson import json_util  # noqa: E402
from bson.codec_options import CodecOptions, DatetimeConversion  # noqa: E402

CAPTURES = ("oplog", "change_stream")
SYNC = "cdcd_sync"
# Dates that Python has not, int32 and int64 told apart.
CODEC = CodecOptions(datetime_conversion=DatetimeConversion.DATETIME_MS)
JSON = json_util.JSONOptions(json_mode=json_util.JSONMode.CANONICAL, tz_aware=False,
                             datetime_conversion=DatetimeConversion.DATETIME_MS)


def parse(text):
    """A document of any of the Extended JSON modes."""
    return None if text is None else json_util.loads(text, json_options=JSON)


def exact(document):
    """Its canonical Extended JSON: 1, 1.0 and 1 of 64 bits differ, and so does the order."""
    return json_util.dumps(document, json_options=JSON)


def client(url, **more):
    more = dict({"serverSelectionTimeoutMS": int(20000 * cdcdtest.PATIENCE)}, **more)
    return pymongo.MongoClient(url, **more)


class MongoServer(cdcdtest.Service):
    """settings: "oplog-max-entries=50", "auth=yes", "sync-on-commit=yes", ..."""

    def __init__(self, *settings):
        args = []
        for s in settings:
            args += ["--set", s]
        self.counter = 0
        super().__init__("mongodb", *args)
        self.client = client(self.env["CDCD_MONGODB_ROOT_URL"])

    @property
    def port(self):
        return int(self.env["CDCD_MONGODB_PORT"])

    @property
    def pid(self):
        return int(self.env["CDCD_MONGODB_PID"])

    @property
    def oplog(self):
        return self.client.local["oplog.rs"]

    def url(self, user=None):
        url = self.env["CDCD_MONGODB_URL"]
        if user is None:
            return url
        return re.sub(r"//([^@/]*@)?", "//" + (user + "@" if user else ""), url, count=1)

    def new_db(self, prefix="t"):
        self.counter += 1
        return "%s%d" % (prefix, self.counter)

    def insert_token(self, db, token):
        self.client[db][SYNC].insert_one({"_id": token})

    def close(self):
        self.client.close()
        self.stop()


class Fake:
    """The fake oplog server. entries: documents, or the path of a .bson file.

    docs: a folder of DB.COLLECTION.bson. options: as of `mgfake --help`, "--max-wire", "9", ..."""

    def __init__(self, entries, *options, docs=None):
        self.dir = tempfile.mkdtemp(prefix="mgfake-", dir=cdcdtest.work_dir())
        self.argv = [os.path.join(cdcdtest.SUPPORT, "mgfake"), "--oplog", self.file(entries)]
        if docs:
            self.argv += ["--docs", docs]
        self.argv += options
        self.log = os.path.join(self.dir, "log")
        self.number = itertools.count(1)
        self.process = None
        self.listening = None
        self.client = None
        self.start()

    def file(self, entries):
        if isinstance(entries, str):
            return entries
        path = os.path.join(self.dir, "entries-%d.bson" % len(os.listdir(self.dir)))
        with open(path, "wb") as f:
            for e in entries:
                f.write(e if isinstance(e, bytes) else bson.encode(e, codec_options=CODEC))
        return path

    def start(self):
        port = ["--port", str(self.listening)] if self.listening else []
        with open(self.log, "ab") as log:
            self.process = subprocess.Popen(self.argv + port, stdout=subprocess.PIPE, stderr=log, text=True)
        line = self.process.stdout.readline()
        m = re.search(r"listening on 127\.0\.0\.1:(\d+)", line)
        if not m:
            self.process.wait()
            with open(self.log, encoding="utf-8", errors="replace") as f:
                raise cdcdtest.Failure("mgfake does not start: %s%s" % (line, f.read()))
        self.listening = int(m[1])
        self.client = client("mongodb://127.0.0.1:%d/?directConnection=true" % self.listening)

    @property
    def port(self):
        return self.listening

    def url(self, user=None):
        mode = "directConnection=true" if {"--mongos", "--standalone"} & set(self.argv) else "replicaSet=rs0"
        return "mongodb://%s127.0.0.1:%d/?%s" % (user + "@" if user else "", self.listening, mode)

    def control(self, what, value=1, **more):
        """One command to the server itself, and its answer."""
        return self.client.admin.command(dict({"mgfake": what, "value": value}, **more))

    def append(self, entries, docs=(), rising=False):
        """Entries at the end of the oplog; docs: [(namespace, document)] or (namespace, {"_id": x},
        None) for one that is gone, as of the last entry's time. rising: entries whose ts does not
        rise get the next one. Big lists go by a file."""
        versions = [dict({"ns": d[0], "_id": d[1]["_id"]}, **({"doc": d[1]} if len(d) == 2 else {}))
                    for d in docs]
        return self.control("append", file=self.file(entries), docs=versions, rising=rising)

    def rollover(self, n):
        """The oldest n entries are overwritten."""
        return self.control("rollover", n)

    def rollback(self, n):
        """The newest n entries are undone, as after an election; connections are cut."""
        return self.control("rollback", n)

    def fail(self, command, code=0, times=1, labels=(), message="by order of the test", collection=""):
        """The next commands of that name fail; code 0 cuts the connection instead."""
        return self.control("fail", command=command, code=code, times=times, labels=list(labels),
                            message=message, collection=collection)

    def stepdown(self, ms):
        """No primary for so long; connections are cut."""
        return self.control("stepdown", ms)

    def kill_cursors(self):
        return self.control("killcursors")

    def oldest(self, ts):
        """The oldest time that documents can be read at."""
        return self.control("oldest", ts)

    def stats(self):
        """{"commands": {name: count}, "entries": n, "first": ts, "last": ts, "cursors": n}"""
        return self.control("stats")

    def insert_token(self, db, token):
        self.append([{"op": "i", "ns": "%s.%s" % (db, SYNC), "ui": bson.Binary(b"s" * 16, 4),
                      "o": {"_id": token}, "o2": {"_id": token}, "v": bson.Int64(2), "t": bson.Int64(1)}],
                    [("%s.%s" % (db, SYNC), {"_id": token})])

    def kill(self):
        """SIGKILL; start() goes on with the entries of the file at the same port."""
        self.process.kill()
        self.process.wait()
        self.process.stdout.close()
        self.client.close()

    stop = close = kill


class Pipe(folderpipe.FolderPipe):
    """A pipeline from a database (or several) to a folder."""

    def __init__(self, test, db, folder=None, name=None, capture="change_stream", source=None,
                 format=None, server=None, user=None, **top):
        self.test, self.mongo = test, server or test.mongo
        self.dbs = [db] if isinstance(db, str) else list(db)
        self.db = self.dbs[0]
        self.out = folder or test.folder()
        self.prefix = "srv"
        config = {"topic.prefix": self.prefix,
                  "source": {"mongodb": {"url": self.mongo.url(user), "capture": capture,
                                         "database.include.list": self.dbs}},
                  "sink": {"file": {"path": self.out}}}
        config["source"]["mongodb"].update(source or {})
        config["source"]["mongodb"] = {k: v for k, v in config["source"]["mongodb"].items() if v is not None}
        included = config["source"]["mongodb"].get("collection.include.list")
        if included and isinstance(included, list):
            config["source"]["mongodb"]["collection.include.list"] = included + ["%s.%s" % (self.db, SYNC)]
        for key, value in top.items():
            config[key.replace("__", ".")] = value
        if format:
            config["format"] = {"debezium": dict(format)}
        self.cdcd = test.cdcd(config, name or self.db)

    @property
    def source(self):
        return self.cdcd.config["source"]["mongodb"]

    def start(self, command="run", *args, wait=True, **more):
        """Waits until the log is read. What is written before lies in the time of a snapshot that is
        not read at one time, and comes as the document is afterwards, which may be gone. And a tailing
        cursor of the server begins with the newest entry as of its opening, without what is written
        while it is being opened."""
        super().start(command, *args, wait=wait, **more)
        if wait and isinstance(self.mongo, MongoServer):
            what = "reading the %s from" % self.source["capture"].replace("_", " ")
            cdcdtest.wait_until(what, lambda: not self.cdcd.alive() or what in self.log_since_start(), 60)
        return self

    def sync_once(self, timeout):
        token = self.token()
        self.mongo.insert_token(self.db, token)
        return self.wait_came("%s.%s.%s" % (self.prefix, self.db, SYNC), token, timeout)

    def records(self, collection=None, db=None):
        """Of one collection or of all topics, in log order, without those of sync()."""
        topics = cdcdtest.read_folder(self.out)
        if collection is not None:
            return topics.get("%s.%s.%s" % (self.prefix, db or self.db, collection), [])
        out = [r for topic, records in topics.items() for r in records if not topic.endswith("." + SYNC)]
        out.sort(key=lambda r: r["headers"].get("cdcd.pos", ""))
        return out

    def ops(self, collection, tombstones=True, db=None):
        """[(op, key, after)], `after` as a document; a tombstone is ("-", key, None)."""
        out = []
        for r in self.records(collection, db):
            if r["value"] is None:
                if tombstones:
                    out.append(("-", r["key"], None))
            else:
                out.append((r["value"]["op"], r["key"], parse(r["value"].get("after"))))
        return out

    def changes(self, collection, db=None):
        """[(op, _id as its key has it, after, updateDescription)], without tombstones; the texts of
        Extended JSON are parsed."""
        out = []
        for r in self.records(collection, db):
            if r["value"]:
                d = r["value"].get("updateDescription")
                if d and d.get("updatedFields"):
                    d = dict(d, updatedFields=parse(d["updatedFields"]))
                out.append((r["value"]["op"], r["key"]["id"], parse(r["value"].get("after")), d))
        return out

    def ddl(self):
        """The commands that came as schema changes, without those about the collection of sync()."""
        return [r for r in cdcdtest.read_folder(self.out).get(self.prefix, [])
                if SYNC not in json.dumps(r["value"])]

    def store(self):
        """{collection: {_id as in the key: document}} as a reader of the topics has it; of the first
        database, without the collection of sync()."""
        out = {}
        for topic, records in cdcdtest.read_folder(self.out).items():
            prefix = "%s.%s." % (self.prefix, self.db)
            if not topic.startswith(prefix) or topic.endswith("." + SYNC):
                continue
            rows = out.setdefault(topic[len(prefix):], {})
            for r in records:
                if r["value"] is None or r["value"].get("after") is None:
                    rows.pop(r["key"]["id"], None)
                else:
                    rows[r["key"]["id"]] = parse(r["value"]["after"])
        return {name: rows for name, rows in out.items() if rows}

    def positions(self):
        """cdcd.pos of every record; a tombstone's comes after its delete's."""
        return [r["headers"]["cdcd.pos"] for r in self.records()]


CLOCKS = re.compile(r'"(ts_ms|ts_us|ts_ns|wallTime)": *\d+')


def without_clocks(record):
    """A record as JSON text, without what differs between two runs."""
    record = dict(record, headers={k: v for k, v in record["headers"].items()
                                   if k not in ("cdcd.pos", "cdcd.schema")})
    return CLOCKS.sub(r'"\1": 0', json.dumps(record, ensure_ascii=False))


def source_store(database, but=(SYNC,)):
    """The collections as they are: {collection: {_id as in the keys: document}}."""
    relaxed = json_util.JSONOptions(json_mode=json_util.JSONMode.RELAXED,
                                    datetime_conversion=DatetimeConversion.DATETIME_MS)
    out = {}
    for name in database.list_collection_names():
        if name in but:
            continue
        rows = {}
        for doc in database.get_collection(name, codec_options=CODEC).find():
            key = json.dumps(json.loads(json_util.dumps({"v": doc["_id"]}, json_options=relaxed))["v"],
                             ensure_ascii=False, separators=(",", ": "))
            rows[key] = doc
        if rows:
            out[name] = rows
    return out


_servers = {}


def server(settings=()):
    """Shared by the classes of a file that want the same; stopped at its end."""
    key = tuple(settings)
    if key not in _servers:
        _servers[key] = MongoServer(*settings)
        unittest.addModuleCleanup(_servers[key].close)
    return _servers[key]


class MgCase(cdcdtest.TestCase):
    settings = []
    live = True  # False: the tests have fakes of their own

    @classmethod
    def setUpClass(cls):
        if cls.live:
            cls.mongo = server(cls.settings)

    def setUp(self):
        super().setUp()
        self.began = time.monotonic()

    def tearDown(self):
        super().tearDown()
        if os.environ.get("CDCD_TEST_TIMES"):
            sys.stderr.write("%.1f s " % (time.monotonic() - self.began))

    def own_server(self, *settings):
        """One for this test alone, to be killed or spoiled."""
        s = MongoServer(*settings)
        self.addCleanup(s.close)
        return s

    def fake(self, entries, *options, docs=None):
        f = Fake(entries, *options, docs=docs)
        self.addCleanup(f.close)
        return f

    def db(self, prefix="t"):
        """A new database, as pymongo has it."""
        return self.mongo.client[self.mongo.new_db(prefix)]

    def pipe(self, db, **more):
        return Pipe(self, db, **more)
