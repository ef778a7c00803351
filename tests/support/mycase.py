"""What the MySQL and MariaDB tests share: servers, a pipeline to a folder that can be waited for,
and its records in short form.

    @mycase.each_server()
    class Types(mycase.MyCase):     # becomes Types_mysql, Types_mariadb
        settings = ["binlog_row_metadata=MINIMAL"]
        def test_x(self):
            db = self.db("CREATE TABLE t (id int PRIMARY KEY)")
            p = self.pipe(db).start()
            self.sql("INSERT INTO t VALUES (1)", db)
            p.sync()
            self.assertEqual(p.ops("t"), [("c", {"id": 1}, {"id": 1})])

CDCD_TEST_MY_SERVERS names the servers: "mysql", "mariadb", or with a version that scripts/services
knows ("mariadb-11.8").
"""
import itertools
import json
import os
import re
import subprocess
import sys
import threading
import time
import unittest

import cdcdtest
import folderpipe

SERVERS = os.environ.get("CDCD_TEST_MY_SERVERS", "mysql mariadb").split()
PLACEHOLDER = "__debezium_unavailable_value"
SYNC = "cdcd_sync"


def each_server(only=None):
    """Replaces the class by one for each server under test; only: "mysql" or "mariadb"."""
    def wrap(cls):
        module = sys.modules[cls.__module__]
        for name in SERVERS:
            flavor = name.split("-")[0]
            if only and flavor != only:
                continue
            new = "%s_%s" % (cls.__name__, re.sub(r"\W", "_", name))
            setattr(module, new, type(new, (cls,), {"server": name, "flavor": flavor,
                                                    "__module__": cls.__module__}))
        return None
    return wrap


def main():
    """Each server in a process of its own, at the same time: the tests mostly wait."""
    if len(SERVERS) == 1 or len(sys.argv) > 1:
        cdcdtest.main()
    folderpipe.run_each({"CDCD_TEST_MY_SERVERS": name} for name in SERVERS)


class Session:
    """A client that stays open, for transactions that outlive a statement.

    sql() waits for the statements' end and returns the rows; an error raises, unless check=False,
    and leaves the session usable."""

    tokens = itertools.count(1)

    def __init__(self, argv):
        self.process = subprocess.Popen([*argv, "--force", "--unbuffered"], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        self.lock = threading.Lock()

    def send(self, text):
        """Without waiting; the next sql() also waits for these."""
        self.process.stdin.write(text.encode() + b"\n")
        self.process.stdin.flush()

    def sql(self, text, check=True):
        with self.lock:
            token = "--end %d--" % next(Session.tokens)
            self.send("%s;\nSELECT '%s';" % (text, token))
            lines = []
            for raw in self.process.stdout:
                line = raw.decode(errors="replace").rstrip("\n")
                if line == token:
                    break
                lines.append(line)
            else:
                raise cdcdtest.Failure("the client ended:\n" + "\n".join(lines))
        errors = [x for x in lines if x.startswith("ERROR ") and "1065" not in x]  # an empty query
        rows = [x for x in lines if not x.startswith(("ERROR ", "--------------"))]
        if errors and check:
            raise cdcdtest.Failure("\n".join(errors) + "\nin: " + text[:2000])
        return errors if errors else "\n".join(rows)

    def close(self):
        self.process.kill()
        self.process.wait()
        self.process.stdin.close()
        self.process.stdout.close()


class MyServer(cdcdtest.Service):
    """name: "mysql", "mariadb", "mariadb-11.8"."""

    def __init__(self, name, *settings):
        self.flavor, _, version = name.partition("-")
        args = ["--version", version] if version else []
        for s in settings:
            args += ["--set", s]
        self.counter = 0
        super().__init__(self.flavor, *args)

    def var(self, name):
        return self.env["CDCD_%s_%s" % (self.flavor.upper(), name)]

    @property
    def port(self):
        return int(self.var("PORT"))

    @property
    def version(self):
        return tuple(int(x) for x in self.var("VERSION").split("."))

    def url(self, user="cdcd:cdcd"):
        return "mysql://%s@127.0.0.1:%d" % (user, self.port)

    def client_argv(self, db=None):
        # Comments are part of what the log carries; the client would cut them out.
        return [self.var("CLIENT"), "--no-defaults", "--user=root", "--socket=" + self.var("SOCKET"),
                "--default-character-set=utf8mb4", "--skip-column-names", "--batch", "--comments",
                *([db] if db else [])]

    def sql(self, text, db=None, check=True, timeout=300):
        """Runs statements in a session of their own; rows as lines of tab-separated columns."""
        r = cdcdtest.run(self.client_argv(db), stdin=text, check=check, timeout=timeout)
        return r.stdout.rstrip("\n") if check else r

    def session(self, db=None):
        return Session(self.client_argv(db))

    def new_db(self, prefix="t"):
        self.counter += 1
        name = "%s%d" % (prefix, self.counter)
        self.sql("CREATE DATABASE %s CHARACTER SET utf8mb4; CREATE TABLE %s.%s "
                 "(token varchar(40) CHARACTER SET ascii PRIMARY KEY)" % (name, name, SYNC))
        return name

    def log_end(self):
        """(file, position, GTID set) of the end of the binlog."""
        if self.flavor == "mysql":
            row = self.sql("SHOW BINARY LOG STATUS").split("\n")[-1].split("\t")
            return row[0], int(row[1]), self.sql("SELECT @@global.gtid_executed").replace("\\n", "")
        row = self.sql("SHOW MASTER STATUS").split("\t")
        return row[0], int(row[1]), self.sql("SELECT @@global.gtid_binlog_pos")

    def server_uuid(self):
        return self.sql("SELECT @@server_uuid") if self.flavor == "mysql" else None

    def replicate_from(self, primary):
        """Makes this server a replica of another one, by GTID, from the beginning of its log."""
        if self.flavor == "mysql":
            self.sql("RESET BINARY LOGS AND GTIDS; CHANGE REPLICATION SOURCE TO "
                     "SOURCE_HOST='127.0.0.1', SOURCE_PORT=%d, SOURCE_USER='root', SOURCE_PASSWORD='', "
                     "SOURCE_AUTO_POSITION=1, GET_SOURCE_PUBLIC_KEY=1, SOURCE_CONNECT_RETRY=1; START REPLICA"
                     % primary.port)
        else:
            self.sql("RESET MASTER; SET GLOBAL gtid_slave_pos=''; CHANGE MASTER TO "
                     "MASTER_HOST='127.0.0.1', MASTER_PORT=%d, MASTER_USER='root', MASTER_PASSWORD='', "
                     "MASTER_USE_GTID=slave_pos, MASTER_CONNECT_RETRY=1; START SLAVE" % primary.port)

    def wait_replicated(self, primary, timeout=60):
        """Until this replica has executed all that the primary has in its log now."""
        if self.flavor == "mysql":
            want = primary.sql("SELECT @@global.gtid_executed").replace("\\n", "")
            cdcdtest.wait_until("the replica to execute " + want, lambda: self.sql(
                "SELECT GTID_SUBSET('%s', @@global.gtid_executed)" % want) == "1", timeout, 0.1)
        else:
            want = primary.sql("SELECT @@global.gtid_binlog_pos")
            got = self.sql("SELECT MASTER_GTID_WAIT('%s', %d)" % (want, timeout * cdcdtest.PATIENCE))
            if got != "0":
                raise cdcdtest.Failure("the replica does not reach %s: %s" % (want, self.sql("SHOW SLAVE STATUS\\G")))

    def promote(self):
        """Ends replication: the replica is a server of its own now."""
        self.sql("STOP REPLICA; RESET REPLICA ALL" if self.flavor == "mysql" else
                 "STOP SLAVE; RESET SLAVE ALL")


class Pipe(folderpipe.FolderPipe):
    """A pipeline from a database to a folder."""

    def __init__(self, test, db, folder=None, name=None, source=None, format=None, user="cdcd:cdcd",
                 server=None, **top):
        self.test, self.my, self.db = test, server or test.my, db
        self.out = folder or test.folder()
        self.prefix = "srv"
        config = {"topic.prefix": self.prefix,
                  "source": {"mysql": {"url": self.my.url(user), "database.include.list": [db]}},
                  "sink": {"file": {"path": self.out}}}
        config["source"]["mysql"].update(source or {})
        tables = config["source"]["mysql"].get("table.include.list")
        if tables and isinstance(tables, list):
            tables.append("%s.%s" % (db, SYNC))
        for key, value in top.items():
            config[key.replace("__", ".")] = value
        if format:
            config["format"] = {"debezium": dict(format)}
        self.cdcd = test.cdcd(config, name or db)

    @property
    def source(self):
        return self.cdcd.config["source"]["mysql"]

    def sync_once(self, timeout):
        token = self.token()
        self.my.sql("INSERT INTO %s.%s VALUES ('%s')" % (self.db, SYNC, token))
        return self.wait_came("%s.%s.%s" % (self.prefix, self.db, SYNC), '"%s"' % token, timeout)

    def records(self, table=None):
        """Of one table (as in topic names, without the database) or of all topics, in log order."""
        topics = cdcdtest.read_folder(self.out)
        if table is not None:
            return topics.get("%s.%s.%s" % (self.prefix, self.db, table), [])
        out = [r for topic, records in topics.items() for r in records
               if not topic.endswith("." + SYNC)]
        out.sort(key=lambda r: r["headers"].get("cdcd.pos", ""))
        return out

    def schema_changes(self):
        """Of the captured database, without those of the table for sync()."""
        return [r["value"] for r in cdcdtest.read_folder(self.out).get(self.prefix, [])
                if SYNC not in r["value"]["ddl"]]

    def last(self, table):
        """The table as a reader of the topic has it: {key as JSON: row}."""
        out = {}
        for r in self.records(table):
            if r["value"] and r["value"]["op"] == "t":
                out.clear()
                continue
            key = json.dumps(r["key"], ensure_ascii=False, sort_keys=True)
            if r["value"] is None or r["value"].get("after") is None:
                out.pop(key, None)
            else:
                out[key] = r["value"]["after"]
        return out

    # -- the position that the folder remembers (plugins/file/record.c) --

    @property
    def record(self):
        return os.path.join(self.out, ".cdcd-%s.state" % self.cdcd.config["name"])

    def state(self):
        """The last document that was stored, with `position` parsed."""
        with open(self.record, "rb") as f:
            data = f.read()
        at = [m for m in re.finditer(rb"(?:^|\n)state (\d+)\n", data)][-1]
        state = json.loads(data[at.end():at.end() + int(at[1])])
        if isinstance(state["position"], str):
            state["position"] = json.loads(state["position"])
        return state

    def edit_position(self, **changed):
        """As if the pipeline, which is stopped, had ended elsewhere in the log."""
        with open(self.record, "rb") as f:
            data = f.read()
        at = [m for m in re.finditer(rb"(?:^|\n)state (\d+)\n", data)][-1]
        state = json.loads(data[at.end():at.end() + int(at[1])])
        text = isinstance(state["position"], str)
        position = json.loads(state["position"]) if text else state["position"]
        position.update(changed)
        state["position"] = json.dumps(position) if text else position
        body = json.dumps(state).encode()
        body = b"state %d\n%s" % (len(body), body)
        with open(self.record, "ab") as f:
            f.write(b"cdcd1 %08x %d\n%s\n" % (crc32c(body), len(body), body))


def crc32c(data):
    crc = 0xffffffff
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ 0x82f63b78 if crc & 1 else crc >> 1
    return crc ^ 0xffffffff


_servers = {}


def server(name, settings=()):
    """Shared by the classes of a file that want the same; stopped at its end."""
    key = (name, tuple(settings))
    if key not in _servers:
        _servers[key] = MyServer(name, *settings)
        unittest.addModuleCleanup(_servers[key].stop)
    return _servers[key]


class MyCase(cdcdtest.TestCase):
    server = None
    flavor = None
    settings = []

    @classmethod
    def setUpClass(cls):
        cls.my = server(cls.server, cls.settings)

    def setUp(self):
        super().setUp()
        self.began = time.monotonic()

    def tearDown(self):
        super().tearDown()
        if os.environ.get("CDCD_TEST_TIMES"):
            sys.stderr.write("%.1f s " % (time.monotonic() - self.began))

    def own_server(self, *settings, name=None):
        """One for this test alone, to be killed or spoiled."""
        s = MyServer(name or self.server, *settings)
        self.addCleanup(s.stop)
        return s

    def db(self, setup="", server=None):
        db = (server or self.my).new_db("t")
        if setup:
            (server or self.my).sql(setup, db)
        return db

    def sql(self, text, db=None, **more):
        return self.my.sql(text, db, **more)

    def session(self, db):
        s = self.my.session(db)
        self.addCleanup(s.close)
        return s

    def pipe(self, db, **more):
        return Pipe(self, db, **more)

    def snapshot_of(self, streamed):
        """A new pipeline with the same options that has taken its snapshot and ended."""
        source = {k: v for k, v in streamed.source.items() if k != "url"}
        other = Pipe(self, streamed.db, name="snap%d" % next(Pipe.tokens), source=source,
                     server=streamed.my,
                     format=streamed.cdcd.config.get("format", {}).get("debezium"))
        other.cdcd.config["snapshot.mode"] = "initial_only"
        other.start(wait=False)
        self.assertEqual(other.cdcd.wait(), 0, other.cdcd.logs()[-4000:])
        return other

    def snapshot_like_stream(self, streamed, *tables):
        """A snapshot of the tables now gives the same JSON as the last streamed record of each key.
        Returns {table: rows by key}."""
        other = self.snapshot_of(streamed)
        out = {}
        for table in tables:
            self.assertTrue(all(r["value"]["op"] == "r" for r in other.records(table)))
            with self.subTest(table=table):
                out[table] = other.last(table)
                self.assertEqual(list_json(out[table]), list_json(streamed.last(table)))
        return out


def list_json(rows):
    """Exact: 1 and 1.0, 0.0 and -0.0 differ, and so does the order of the columns."""
    return sorted((k, json.dumps(v, ensure_ascii=False)) for k, v in rows.items())
