"""What goes wrong from outside: each ends with a message that names pipeline, object and mend, with
the right exit code, and loses nothing: after it is mended, the next run completes the output."""
import json
import os
import re
import subprocess
import threading
import unittest

import cdcdtest
import pgcase
import pgproxy
from cdcdtest import wait_until

SETUP = "CREATE TABLE t (id int PRIMARY KEY, v text); INSERT INTO t VALUES (1, 'one');"


def ids(ops):
    return [k["id"] for _, k, _ in ops]


def is_root():
    return os.geteuid() == 0


@pgcase.one_version()
class Refused(pgcase.PgCase):
    def mended(self, p, db, want=(1,)):
        p.start()
        p.sync()
        self.assertEqual(sorted(ids(p.ops("public.t"))), list(want))
        p.stop()

    def check_fails(self, p, *patterns):
        r = p.cdcd.run("check", check=False)
        self.assertEqual(r.returncode, 1, r.stdout + r.stderr)
        for x in patterns:
            self.assertRegex(r.stdout, x)
        return r.stdout

    def test_password(self):
        db = self.db(SETUP)
        self.sql("DO $$ BEGIN CREATE ROLE cdcd_pw SUPERUSER LOGIN REPLICATION PASSWORD 'sesame'; "
                 "EXCEPTION WHEN duplicate_object THEN NULL; END $$", db)
        p = self.pipe(db)
        good = self.pg.url(db, "cdcd_pw:sesame")
        for url in (self.pg.url(db, "cdcd_pw:hunter2"), self.pg.url(db, "cdcd_pw")):
            p.source["url"] = url
            log = p.fails(2, "pipeline " + db, "cdcd_pw", "password")
            self.assertNotIn("hunter2", log)
            self.assertNotIn("hunter2", self.check_fails(p, "password"))
        self.assertEqual(self.sql("SELECT count(*) FROM pg_replication_slots", db), "0")
        p.source["url"] = good
        self.mended(p, db)
        self.assertNotIn("sesame", p.cdcd.logs())

    def test_database_and_host(self):
        db = self.db(SETUP)
        p = self.pipe(db)
        for url, pattern in ((self.pg.url("nowhere"), "nowhere"),
                             (self.pg.url(db, "nobody_here"), "nobody_here"),
                             ("postgresql://postgres@no-such-host.invalid/" + db, "no-such-host.invalid"),
                             ("postgresql://postgres@127.0.0.1:notaport/" + db, "url|port"),
                             ("nonsense", "url")):
            with self.subTest(url):
                p.source["url"] = url
                p.fails(2, "pipeline %s|%s" % (db, re.escape(p.cdcd.path)), pattern)
                self.assertEqual(p.cdcd.run("check", check=False).returncode in (1, 2), True)
        p.source["url"] = self.pg.url(db)
        self.mended(p, db)

    def test_nobody_listens(self):
        """A server that is not there may come back: cdcd waits, says so, and can be stopped."""
        db = self.db(SETUP)
        p = self.pipe(db)
        url = p.source["url"]
        p.source["url"] = "postgresql://postgres@127.0.0.1:1/" + db
        p.start(wait=False)
        p.wait_log("warn.*(refused|connect).*again in")
        p.stop()
        p.cdcd.config["errors.max.retries"] = 2
        p.cdcd.config["errors.retry.delay.max.ms"] = 100
        p.fails(1, "pipeline " + db, "refused")
        p.source["url"] = url
        self.mended(p, db)

    def test_privileges(self):
        db = self.db(SETUP)
        role = "poor_" + db
        self.sql("CREATE ROLE %s LOGIN" % role, db)
        p = self.pipe(db)
        p.source["url"] = self.pg.url(db, role)
        for pattern, grant in (
                ("SELECT", "GRANT SELECT ON t TO %s"),
                ("CREATE|owner", "CREATE PUBLICATION {0} FOR TABLE t"),
                ("REPLICATION", "ALTER ROLE %s REPLICATION")):
            with self.subTest(pattern):
                self.check_fails(p, "mend:")
                log = p.fails(2, "pipeline " + db, role, "Run|run")
                self.assertEqual(self.sql("SELECT count(*) FROM pg_replication_slots", db), "0", log)
            self.sql((grant % role if "%s" in grant else grant.format(p.slot)), db)
        self.mended(p, db)
        self.sql("DROP PUBLICATION %s; DROP OWNED BY %s; DROP ROLE %s" % (p.slot, role, role), db)

    def test_row_level_security(self):
        db = self.db(SETUP + "ALTER TABLE t ENABLE ROW LEVEL SECURITY")
        role = "rls_" + db
        self.sql("CREATE ROLE %s LOGIN REPLICATION; GRANT SELECT ON t TO %s; CREATE PUBLICATION cdcd_%s FOR TABLE t"
                 % (role, role, db), db)
        p = self.pipe(db)
        p.source["url"] = self.pg.url(db, role)
        p.fails(2, "row-level security", role, "BYPASSRLS")
        self.sql("ALTER ROLE %s BYPASSRLS" % role, db)
        self.mended(p, db)
        self.sql("DROP OWNED BY %s; DROP ROLE %s" % (role, role), db)

    def test_publication(self):
        db = self.db(SETUP + "CREATE TABLE other (id int PRIMARY KEY); CREATE PUBLICATION mine FOR TABLE other")
        p = self.pipe(db, source={"publication.name": "mine", "table.include.list": ["public.t"]})
        p.fails(2, "pipeline " + db, r"public.*\bt\b", "mine", "ALTER PUBLICATION")
        self.check_fails(p, "ALTER PUBLICATION .*mine.* ADD TABLE")
        self.sql("ALTER PUBLICATION mine ADD TABLE t; ALTER PUBLICATION mine SET (publish = 'insert')", db)
        p.fails(2, "mine", "update", "delete", "ALTER PUBLICATION")
        self.sql("ALTER PUBLICATION mine SET (publish = 'insert, update, delete, truncate')", db)
        self.mended(p, db)
        q = self.pipe(db, name="none", source={"publication.autocreate.mode": "disabled"})
        q.fails(2, "cdcd_none", "CREATE PUBLICATION")
        q = self.pipe(db, name="nothing", source={"table.include.list": ["public.nope"]})
        q.fails(2, "include")

    def test_table_without_key(self):
        db = self.db("CREATE TABLE nokey (a int); INSERT INTO nokey VALUES (1)")
        p = self.pipe(db)
        r = p.cdcd.run("check")
        self.assertRegex(r.stdout, r"warn.*nokey.*key")
        self.assertRegex(r.stdout, "PRIMARY KEY|REPLICA IDENTITY")
        p.start()
        self.assertRegex(p.cdcd.logs(), r"warn.*nokey")
        self.sql("INSERT INTO nokey VALUES (2)", db)
        p.sync()
        self.assertEqual(p.ops("public.nokey"), [("r", None, {"a": 1}), ("c", None, {"a": 2})])

    def test_config(self):
        db = self.db(SETUP)
        for change, pattern in (
                (lambda c: c.update({"snapshto": {"mode": "initial"}}), "snapshto"),
                (lambda c: c["source"]["postgres"].update({"slotname": "x"}), "slotname"),
                (lambda c: c["source"]["postgres"].update({"slot.name": ["a", "b"]}), r"slot\.name"),
                (lambda c: c["source"]["postgres"].update({"connect.timeout.ms": "soon"}), r"connect\.timeout\.ms"),
                (lambda c: c["source"]["postgres"].update({"spill.max.bytes": -5}), r"spill\.max\.bytes"),
                (lambda c: c["source"]["postgres"].update({"streaming": "maybe"}), "streaming"),
                (lambda c: c["source"]["postgres"].update({"table.include.list": ["public.(t"]}), r"table\.include\.list"),
                (lambda c: c["source"]["postgres"].update({"slot.name": "Not-A-Slot"}), r"slot\.name|Not-A-Slot"),
                (lambda c: c["source"].pop("postgres"), "source"),
                (lambda c: c["source"].update({"oracle": {}}), "oracle"),
                (lambda c: c.pop("sink"), "sink"),
                (lambda c: c.update({"batches": 1}), "batches"),
                (lambda c: c.update({"name": "no spaces"}), "name"),
                (lambda c: c.update({"snapshot.mode": "sometimes"}), r"snapshot\.mode"),
                (lambda c: c.update({"format": {"debezium": {"decimal.handling.mode": 3}}}), r"decimal\.handling\.mode"),
                (lambda c: c["source"]["postgres"].update({"url": "${NO_SUCH_VARIABLE}"}), "NO_SUCH_VARIABLE")):
            with self.subTest(pattern):
                p = self.pipe(db)
                change(p.cdcd.config)
                log = p.fails(2, pattern)
                self.assertRegex(log, r"%s(:\d+)?:|pipeline" % re.escape(p.cdcd.path))
        self.assertEqual(self.sql("SELECT count(*) FROM pg_replication_slots", db), "0")

    def test_two_instances(self):
        db = self.db(SETUP)
        p = self.pipe(db).start()
        q = self.pipe(db, folder=p.out)
        q.fails(3, "another instance", str(p.cdcd.process.pid))
        self.sql("INSERT INTO t VALUES (2, 'two')", db)
        p.sync()
        self.assertEqual(ids(p.ops("public.t")), [1, 2])

    def test_not_a_server(self):
        """Something else listens on the port, or nothing answers."""
        import socket
        db = self.db(SETUP)
        for answer in (b"HTTP/1.1 400 Bad Request\r\n\r\n", b"", b"\0" * 100, None):
            with socket.socket() as s:
                s.bind(("127.0.0.1", 0))
                s.listen(16)

                def serve():
                    try:
                        while True:
                            c, _ = s.accept()
                            if answer is None:
                                held.append(c)
                                continue
                            c.sendall(answer)
                            c.close()
                    except OSError:
                        pass
                held = []
                threading.Thread(target=serve, daemon=True).start()
                p = self.pipe(db, source={"connect.timeout.ms": 1000})
                p.source["url"] = "postgresql://postgres@127.0.0.1:%d/%s" % (s.getsockname()[1], db)
                p.cdcd.config["errors.max.retries"] = 1
                p.cdcd.config["errors.retry.delay.max.ms"] = 100
                p.start(wait=False)
                self.assertIn(p.cdcd.wait(30), (1, 2), p.cdcd.logs())
                self.assertIn("pipeline " + db, p.log_since_start())


@pgcase.one_version()
class Server(pgcase.PgCase):
    """Settings of the whole server: one of its own."""

    @classmethod
    def setUpClass(cls):
        cls.pg = cdcdtest.Postgres(cls.version, "wal_level=replica", "max_replication_slots=1",
                                   "max_prepared_transactions=0")
        unittest.addModuleCleanup(cls.pg.stop)

    def test_wal_level_and_slots(self):
        db = self.db(SETUP)
        p = self.pipe(db)
        p.fails(2, "pipeline " + db, "wal_level", "ALTER SYSTEM")
        r = p.cdcd.run("check", check=False)
        self.assertEqual(r.returncode, 1)
        self.assertRegex(r.stdout, r"FAIL.*wal_level[\s\S]*ALTER SYSTEM SET wal_level")
        self.pg = type(self).pg = cdcdtest.Postgres(self.version, "wal_level=logical", "max_replication_slots=1")
        unittest.addModuleCleanup(self.pg.stop)
        self.sql("CREATE DATABASE " + db, "postgres")
        self.sql(SETUP, db)
        p.source["url"], p.pg = self.pg.url(db), self.pg
        self.sql("SELECT pg_create_physical_replication_slot('taken')", db)
        p.fails(2, "pipeline " + db, "slot", "max_replication_slots")
        r = p.cdcd.run("check", check=False)
        self.assertEqual(r.returncode, 1)
        self.assertRegex(r.stdout, "max_replication_slots")
        self.sql("SELECT pg_drop_replication_slot('taken')", db)
        p.start().sync().stop()
        self.assertEqual(ids(p.ops("public.t")), [1])


@pgcase.one_version()
class Disks(pgcase.PgCase):
    settings = ["logical_decoding_work_mem=64kB"]

    def small(self, size):
        if not is_root():
            self.skipTest("mounting wants root")
        folder = self.folder()
        r = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=" + size, "tmpfs", folder], capture_output=True)
        if r.returncode:
            self.skipTest("cannot mount: %s" % r.stderr)
        self.addCleanup(subprocess.run, ["umount", folder], check=True)
        return folder

    def grow(self, folder):
        subprocess.run(["mount", "-o", "remount,size=200m", folder], check=True)

    def test_spill_area(self):
        folder = self.small("1m")
        db = self.db(SETUP)
        p = self.pipe(db, source={"spill.dir": folder}).start()
        self.sql("INSERT INTO t SELECT g, repeat('x', 300) FROM generate_series(2, 9000) g", db)
        self.assertEqual(p.cdcd.wait(), 1)
        log = p.log_since_start()
        for x in ("pipeline " + db, re.escape(folder), "No space|no space", r"spill\.dir"):
            self.assertRegex(log, x)
        self.assertEqual(ids(p.ops("public.t")), [1])
        self.grow(folder)
        p.start().sync()
        self.assertEqual(ids(p.ops("public.t")), [*range(1, 9001)])
        p.stop()
        self.assertEqual(os.listdir(folder), [])

    def test_folder_of_the_sink(self):
        folder = self.small("2m")
        out = os.path.join(folder, "out")
        db = self.db(SETUP)
        p = self.pipe(db, folder=out)
        p.cdcd.config["errors.retry.delay.max.ms"] = 200
        p.start()
        self.sql("INSERT INTO t SELECT g, repeat('x', 300) FROM generate_series(2, 9000) g", db)
        # It waits for space, and says so.
        p.wait_log("warn.* %s .*%s.*No space.*trying again" % (db, re.escape(folder)))
        self.assertTrue(p.cdcd.alive())
        p.stop()
        p.start(wait=False)
        p.wait_log("No space.*trying again")
        self.grow(folder)
        p.sync()
        self.assertEqual(ids(p.ops("public.t")), [*range(1, 9001)])
        positions = [r["headers"]["cdcd.pos"] for r in p.records("public.t")]
        self.assertEqual(len(set(positions)), 9000)

    def test_folder_that_cannot_be(self):
        db = self.db(SETUP)
        p = self.pipe(db)
        a_file = os.path.join(self.folder(), "file")
        open(a_file, "w").close()
        for path in (a_file, a_file + "/below", "/proc/cdcd", ""):
            with self.subTest(path):
                p.cdcd.config["sink"] = {"file": {"path": path}}
                p.start(wait=False)
                self.assertIn(p.cdcd.wait(), (1, 2), p.cdcd.logs())
                self.assertIn("path" if not path else path, p.log_since_start())
        self.assertEqual(self.sql("SELECT count(*) FROM pg_replication_slots", db), "0")

    def test_readonly_state(self):
        db = self.db(SETUP)
        p = self.pipe(db)
        p.cdcd.config["state.dir"] = "/proc/cdcd-state"
        p.start(wait=False)
        self.assertIn(p.cdcd.wait(), (1, 2), p.cdcd.logs())
        self.assertIn("/proc/cdcd-state", p.log_since_start())


@pgcase.one_version()
class Wire(pgcase.PgCase):
    def proxied(self, db, proxy, **more):
        p = self.pipe(db, **more)
        p.source["url"] = ("postgresql://postgres@127.0.0.1:%d/%s?sslmode=disable&gssencmode=disable"
                           % (proxy.port, db))
        p.cdcd.config["errors.retry.delay.max.ms"] = 100
        return p

    def test_connection_ends_anywhere(self):
        """Cut after any number of bytes, in the snapshot and in the stream."""
        db = self.db(SETUP + "INSERT INTO t SELECT g, repeat('x', 200) FROM generate_series(2, 3000) g")
        with pgproxy.Proxy(self.pg.env["CDCD_PG_PORT"]) as proxy:
            p = self.proxied(db, proxy, source={"snapshot.chunk.size": "32KB"})
            proxy.cuts = [0, 1, 5, 9, 100, 300, 350, 400, 401, 402, 403, 410, 430, 500, 800, 1200, 2000, 3000,
                          5000, 9000, 20000, 400, 50000, 50000, 100000, 90000, 5000, 200000, 300000, 4000]
            p.start()
            wait_until("the snapshot", lambda: len(p.ops("public.t")) >= 3000)
            for i in range(12):
                self.sql("BEGIN; INSERT INTO t SELECT g, repeat('y', 100) FROM generate_series(%d, %d) g; "
                         "UPDATE t SET v = v || 'u' WHERE id = %d; COMMIT" % (3001 + i * 100, 3100 + i * 100, i + 1), db)
                with proxy.lock:
                    proxy.cuts = [300 + 37 * i, 600 + 800 * i, 2000 + 1500 * i]
                proxy.drop_all()
                wait_until("the cuts", lambda: not proxy.cuts)
            p.sync()
            self.assertGreater(proxy.connections, 40)
            p.stop()
        ops = p.ops("public.t")
        self.assertEqual(sorted(ids([o for o in ops if o[0] == "r"])), [*range(1, 3001)])
        self.assertEqual(ids([o for o in ops if o[0] == "c"]), [*range(3001, 4201)])
        self.assertEqual(ids([o for o in ops if o[0] == "u"]), [*range(1, 13)])

    GARBLED = {
        "an unknown message": lambda m: b"?" + m[1:],
        "another relation": lambda m: m[:1] + b"\x7f\xff\xff\xff" + m[5:],
        "a wrong tuple kind": lambda m: m[:5] + b"X" + m[6:],
        "a cut message": lambda m: m[:-3],
        "a very short message": lambda m: m[:1],
        "bytes behind the end": lambda m: m + b"zz",
        "too many columns": lambda m: m[:6] + b"\x7f\xff" + m[8:],
        "too few columns": lambda m: m[:6] + b"\x00\x01" + m[8:],
        "a wrong column kind": lambda m: m[:8] + b"q" + m[9:],
        "a length beyond the end": lambda m: m[:9] + b"\x7f\xff\xff\xff" + m[13:],
        "a negative length": lambda m: m[:9] + b"\xff\xff\xff\xff" + m[13:],
        "text that is no number": lambda m: m[:13] + b"z" + m[14:],
    }

    def test_garbled_messages(self):
        db = self.db(SETUP)
        with pgproxy.Proxy(self.pg.env["CDCD_PG_PORT"]) as proxy:
            p = self.proxied(db, proxy)
            p.start().sync()
            p.stop()
            want = [1]
            for n, (name, spoil) in enumerate(self.GARBLED.items(), 2):
                with self.subTest(name):
                    self.sql("INSERT INTO t VALUES (%d, 'row')" % n, db)
                    proxy.garbled = 0
                    proxy.garble = lambda m: spoil(m) if m[:1] == b"I" else None
                    p.start(wait=False)
                    code = p.cdcd.wait()
                    self.assertGreater(proxy.garbled, 0)
                    self.assertEqual(code, 1, p.log_since_start())
                    self.assertRegex(p.log_since_start(), r"pipeline %s: .*(LSN|public\.t)" % db)
                    self.assertEqual(ids(p.ops("public.t")), want)
                    proxy.garble = None
                    want.append(n)
                    p.start().sync()
                    self.assertEqual(ids(p.ops("public.t")), want)
                    p.stop()

    def test_server_disappears_and_comes_back(self):
        db = self.db(SETUP)
        p = self.pipe(db)
        p.cdcd.config["errors.retry.delay.max.ms"] = 200
        p.start().sync()
        for n in range(2, 5):
            self.pg.kill()
            p.wait_log("again in")
            self.pg.start_again()
            self.sql("INSERT INTO t VALUES (%d, 'back')" % n, db)
            p.sync()
        self.assertEqual(ids(p.ops("public.t")), [1, 2, 3, 4])
        p.stop()


@pgcase.one_version()
class Commands(pgcase.PgCase):
    def test_check(self):
        db = self.db(SETUP)
        p = self.pipe(db)
        r = p.cdcd.run("check")
        for line in r.stdout.splitlines()[:-1]:
            self.assertRegex(line, r"^(ok|warn|FAIL) +(source|sink): |^      mend: ")
        self.assertRegex(r.stdout, r"%s: 0 failed" % db)
        # It looks and makes nothing.
        self.assertEqual(self.sql("SELECT count(*) FROM pg_publication", db), "0")
        self.assertEqual(self.sql("SELECT count(*) FROM pg_replication_slots", db), "0")
        doc = json.loads(p.cdcd.run("check", "--json").stdout)
        self.assertTrue(doc["ok"])
        self.assertEqual(doc["pipeline"], db)
        self.assertTrue({"side", "level", "what", "text"} <= set(doc["checks"][0]))
        p.source["url"] = self.pg.url("nowhere")
        r = p.cdcd.run("check", "--json", check=False)
        self.assertEqual(r.returncode, 1)
        self.assertFalse(json.loads(r.stdout)["ok"])
        p.source["url"] = self.pg.url(db)
        p.start().sync()
        r = p.cdcd.run("check")  # while it runs
        self.assertRegex(r.stdout, "slot")

    def test_drop(self):
        db = self.db(SETUP)
        p = self.pipe(db).start()
        p.sync()
        r = p.cdcd.run("drop", "--yes", check=False)
        self.assertEqual(r.returncode, 1)
        self.assertRegex(r.stderr, "active.*stop the pipeline")
        p.stop()
        r = subprocess.run([cdcdtest.CDCD, "drop", "-c", p.cdcd.path], input="n\n", capture_output=True, text=True)
        self.assertEqual(r.returncode, 0)
        self.assertRegex(r.stdout, "will be dropped[\\s\\S]*nothing dropped")
        r = subprocess.run([cdcdtest.CDCD, "drop", "-c", p.cdcd.path], stdin=subprocess.DEVNULL, capture_output=True, text=True)
        self.assertEqual(self.sql("SELECT count(*) FROM pg_replication_slots", db), "1")
        r = subprocess.run([cdcdtest.CDCD, "drop", "-c", p.cdcd.path], input="y\n", capture_output=True, text=True)
        self.assertEqual(r.returncode, 0, r.stderr)
        self.assertEqual(self.sql("SELECT count(*) FROM pg_replication_slots", db), "0")
        self.assertEqual(self.sql("SELECT count(*) FROM pg_publication", db), "0")
        r = p.cdcd.run("drop", "--yes")
        self.assertIn("nothing to drop", r.stdout)

    def test_drop_leaves_what_is_not_ours(self):
        db = self.db(SETUP + "CREATE PUBLICATION mine FOR TABLE t")
        p = self.pipe(db, source={"publication.name": "mine"}).start()
        p.sync().stop()
        p.cdcd.run("drop", "--yes")
        self.assertEqual(self.sql("SELECT pubname FROM pg_publication", db), "mine")
        self.assertEqual(self.sql("SELECT count(*) FROM pg_replication_slots", db), "0")


if __name__ == "__main__":
    pgcase.main()
