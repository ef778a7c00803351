"""What goes wrong from outside, on MongoDB: each ends with a message that names object and mend, with
the right exit code, and loses nothing: after it is mended, the next run completes the output."""
import re
import socket
import threading

import cdcdtest
import mgcase
from mgcase import bson, pymongo

NOOP = {"op": "n", "ns": "", "o": {"msg": "begin"}, "v": bson.Int64(2)}
ADMIN = "grantRolesToUser|createUser"


def keys(ops):
    return sorted(k["id"] for _, k, _ in ops)


class Case(mgcase.MgCase):
    def settle(self, p):
        """Tokens until one comes: a tailing cursor of this server that is opened while others write may
        leave out what they write meanwhile, and a read of its oplog takes as long as the oplog is."""
        for _ in range(30):
            try:
                return p.sync_once(2)
            except cdcdtest.Failure:
                if not p.cdcd.alive():
                    raise
        return p.sync_once(60)

    def mended(self, p, want=("1",)):
        self.settle(p.start()).sync()
        self.assertEqual(keys(p.ops("t")), list(want))
        p.stop()

    def check(self, p, code, *patterns):
        r = p.cdcd.run("check", check=False)
        self.assertEqual(r.returncode, code, r.stdout + r.stderr)
        for x in patterns:
            self.assertRegex(r.stdout, x)
        return r.stdout + r.stderr

    def filled(self):
        db = self.db()
        db.t.insert_one({"_id": 1})
        return db.name

    def few_retries(self, p):
        p.cdcd.config["errors.max.retries"] = 2
        p.cdcd.config["errors.retry.delay.max.ms"] = 100
        return p


class Accounts(Case):
    settings = ["auth=yes"]

    def setUp(self):
        super().setUp()
        self.admin = self.mongo.client.admin

    def user(self, name, *roles, db="admin", password="sesame"):
        # A MongoDB lists to everybody what he may read; this server wants the role for it.
        roles += ("clusterMonitor",)
        self.mongo.client[db].command("createUser", name, pwd=password, roles=list(roles))
        self.addCleanup(self.mongo.client[db].command, "dropUser", name)

    def with_source(self, user, source):
        return self.mongo.url(user) + "&authSource=" + source

    def test_password(self):
        db = self.filled()
        self.user("pw", "readAnyDatabase", {"role": "read", "db": "local"})
        urls = [self.mongo.url("pw:hunter2"), self.mongo.url("nobody_here:hunter2"),
                self.with_source("pw:sesame", "shop")]
        for capture in mgcase.CAPTURES:
            p = self.pipe(db, capture=capture)
            for url in urls:
                with self.subTest(url, capture=capture):
                    p.source["url"] = url
                    log = p.fails(2, "pipeline " + db, "[Aa]uthentication", "authSource")
                    log += self.check(p, 1, "FAIL.*[Aa]uthentication.*authSource")
                    self.assertNotRegex(log, "hunter2|sesame")
                    self.assertEqual(p.records(), [])
            p.source["url"] = self.with_source("pw:sesame", "admin")
            self.mended(p)
            self.assertNotIn("sesame", p.cdcd.logs())

    def test_no_account(self):
        """A server that wants one says so at the first command."""
        p = self.pipe(self.filled(), user="")
        p.fails(2, "pipeline " + p.db, "[Aa]uth")
        self.check(p, 1, "FAIL.*[Aa]uth")

    def test_password_changed_while_running(self):
        """Once a connection has worked a refused password is waited out."""
        db = self.filled()
        self.user("moody", "readAnyDatabase", {"role": "read", "db": "local"})
        p = self.few_retries(self.pipe(db, source={"url": self.with_source("moody:sesame", "admin")}))
        p.cdcd.config["errors.max.retries"] = -1
        self.settle(p.start())
        self.admin.command("updateUser", "moody", pwd="other")
        self.mongo.restart()
        p.wait_log("warn.*([Aa]uthentication).*again in")
        self.admin.command("updateUser", "moody", pwd="sesame")
        self.mongo.client[db].t.insert_one({"_id": 2})
        p.sync().stop()
        self.assertEqual(keys(p.ops("t")), ["1", "2"])

    def test_reserved_characters_in_the_password(self):
        db = self.filled()
        self.user("odd", "readAnyDatabase", password="p@ss:w/r d%?")
        p = self.pipe(db)
        p.source["url"] = self.with_source("odd:p@ss:w/r d%?", "admin")
        log = p.fails(2, "url is no valid connection string", "%XX") + self.check(p, 1, "FAIL.*%XX")
        self.assertNotRegex(log, "p@ss|w/r")
        p.source["url"] = self.with_source("odd:p%40ss%3Aw%2Fr%20d%25%3F", "admin")
        self.mended(p)

    def test_privileges(self):
        """An account that may read another database only."""
        db = self.filled()
        self.user("poor", {"role": "read", "db": "elsewhere"})
        for capture, need in (("change_stream", "readAnyDatabase"), ("oplog", 'role: "read", db: "local"')):
            with self.subTest(capture):
                p = self.pipe(db, capture=capture, source={"url": self.with_source("poor:sesame", "admin")})
                p.fails(2, "pipeline " + db, ADMIN, re.escape(need), "poor")
                self.check(p, 1, "FAIL.*privileges", "mend: .*" + re.escape(need))
                self.assertEqual(p.records(), [])
        self.admin.command("grantRolesToUser", "poor", roles=["readAnyDatabase", {"role": "read", "db": "local"}])
        for capture in mgcase.CAPTURES:
            self.mended(self.pipe(db, capture=capture, source={"url": self.with_source("poor:sesame", "admin")}))

    def test_scope_of_what_the_account_may_read(self):
        """One database is enough for a change stream of that database."""
        db = self.filled()
        self.user("own", {"role": "read", "db": db})
        p = self.pipe(db, source={"url": self.with_source("own:sesame", "admin")})
        p.fails(2, ADMIN)
        p.source.update({"capture.scope": "database", "capture.target": db})
        self.check(p, 0, "ok .*privileges")
        self.mended(p)


class Addresses(Case):
    def test_host_and_url(self):
        db = self.filled()
        p = self.pipe(db)
        for url, pattern in (("mongodb://no-such-host.invalid:27017/", r"no-such-host\.invalid.*correct the host"),
                             ("mongodb://127.0.0.1:notaport/", "url is no valid connection string"),
                             ("mongodb+srv://no-such-host.example.invalid/", r"no-such-host\.example\.invalid.*correct the host"),
                             ("mongodb://127.0.0.1:1/?tls=true&tlsCAFile=/nowhere/ca.pem", "(?i)tlscafile.*/nowhere/ca.pem"),
                             ("mongodb://127.0.0.1:1/?authMechanism=NOPE", "NOPE"),
                             ("postgresql://cdcd@127.0.0.1:%d/" % self.mongo.port, "mongodb://"),
                             ("nonsense", "mongodb://"), ("", "url")):
            with self.subTest(url):
                p.source["url"] = url
                p.fails(2, pattern)
        p.source["url"] = self.mongo.url()
        self.mended(p)

    def test_misspelt_option_in_the_url(self):
        db = self.filled()
        p = self.pipe(db)
        p.source["url"] += "&replicaSett=x"
        p.start().sync().stop()
        self.assertRegex(p.cdcd.logs(), "warn.*url: .*replicasett")

    def test_another_set(self):
        db = self.filled()
        p = self.pipe(db)
        p.source["url"] = "mongodb://127.0.0.1:%d/?replicaSet=other" % self.mongo.port
        p = self.few_retries(p)
        p.start(wait=False)
        self.assertIn(p.cdcd.wait(60), (1, 2), p.cdcd.logs())
        self.assertRegex(p.cdcd.logs(), "replicaSet.*that `url` asks for")

    def test_nobody_listens(self):
        """A server that is not there may come back: cdcd waits, says so, and can be stopped."""
        db = self.filled()
        p = self.pipe(db)
        url = p.source["url"]
        p.source["url"] = "mongodb://cdcd:cdcdsecret@127.0.0.1:1/?directConnection=true"
        p.start(wait=False)
        p.wait_log("warn.*(refused|connect).*again in")
        p.stop()
        self.few_retries(p).fails(1, "pipeline " + db, "refused|connect")
        self.check(p, 1, "FAIL.*connection.*refused")
        self.assertNotIn("cdcdsecret", p.cdcd.logs())
        p.source["url"] = url
        self.mended(p)

    def test_not_a_server(self):
        """Something else listens on the port, or nothing answers."""
        db = self.filled()
        for answer in (b"HTTP/1.1 400 Bad Request\r\n\r\n", b"", b"\0" * 100, b"\xff\xff\xff\x7f" + b"x" * 1000, None):
            with self.subTest(answer=answer), socket.socket() as s:
                s.bind(("127.0.0.1", 0))
                s.listen(16)
                held = []

                def serve():
                    try:
                        while True:
                            c, _ = s.accept()
                            held.append(c)
                            if answer is not None:
                                c.sendall(answer)
                                c.close()
                    except OSError:
                        pass
                threading.Thread(target=serve, daemon=True).start()
                p = self.few_retries(self.pipe(db, source={"connect.timeout.ms": 500}))
                p.source["url"] = "mongodb://127.0.0.1:%d/?directConnection=true" % s.getsockname()[1]
                p.start(wait=False)
                self.assertIn(p.cdcd.wait(60), (1, 2), p.cdcd.logs())
                self.assertIn("pipeline " + db, p.log_since_start())

    def test_config(self):
        db = self.filled()
        for change, pattern in (
                ({"captur": "oplog"}, "captur"), ({"capture": "both"}, "capture"),
                ({"collection.include.list": [db + ".(t"]}, r"collection\.include\.list"),
                ({"collection.exclude.list": ["("]}, r"collection\.exclude\.list"),
                ({"database.include.list": ["("]}, r"database\.include\.list"),
                ({"database.exclude.list": ["["]}, r"database\.exclude\.list"),
                ({"field.exclude.list": [db + ".t"]}, r"field\.exclude\.list.*DATABASE\.COLLECTION\.FIELD"),
                ({"capture.mode": "full"}, r"capture\.mode"),
                ({"capture.mode": "change_streams", "capture.mode.full.update.type": "post_image"},
                 r"capture\.mode\.full\.update\.type"),
                ({"capture.scope": "collection"}, r"capture\.scope.*capture\.target"),
                ({"capture.scope": "database", "capture.target": db + ".t"}, r"capture\.target"),
                ({"capture.target": db}, r"capture\.target.*capture\.scope"),
                ({"capture": "oplog", "capture.scope": "database", "capture.target": db}, r"capture\.scope"),
                ({"cursor.oversize.handling.mode": "cut"}, r"cursor\.oversize\.handling\.mode"),
                ({"cursor.max.await.time.ms": 0}, r"cursor\.max\.await\.time\.ms"),
                ({"snapshot.read.mode": "fast"}, r"snapshot\.read\.mode"),
                ({"snapshot.chunk.rows": 0}, r"snapshot\.chunk\.rows"),
                ({"url": "${NO_SUCH_VARIABLE}"}, "NO_SUCH_VARIABLE")):
            with self.subTest(str(change)):
                p = self.pipe(db, source=change)
                p.fails(2, pattern)


class Deployments(Case):
    """What is no replica set, too old, or not ready."""
    live = False

    def test_standalone(self):
        fake = self.fake([NOOP], "--standalone")
        for capture in mgcase.CAPTURES:
            with self.subTest(capture):
                p = self.pipe("d", server=fake, capture=capture)
                p.fails(2, "pipeline d", "no oplog", "standalone", r"rs\.initiate\(\)")
                self.check(p, 1, "FAIL.*topology.*standalone", r"mend: rs\.initiate\(\)")

    def test_standalone_server(self):
        server = self.own_server("standalone=yes")
        for capture in mgcase.CAPTURES:
            self.pipe("d", server=server, capture=capture).fails(2, "standalone", r"rs\.initiate\(\)")

    def test_mongos(self):
        fake = self.fake([NOOP], "--mongos")
        p = self.pipe("d", server=fake, capture="oplog")
        p.fails(2, "mongos has no oplog", "capture: change_stream", "shard")
        self.check(p, 1, "FAIL.*topology.*mongos has no oplog")

    def test_version(self):
        fake = self.fake([NOOP], "--version", "4.0.28", "--max-wire", "8")
        p = self.pipe("d", server=fake, capture="oplog")
        p.fails(2, r"4\.0\.28 is too old", r"4\.2")
        self.check(p, 1, r"FAIL.*version.*4\.2 or later")
        for source, pattern in (({"capture.mode": "change_streams_with_pre_image"}, r"6\.0"),
                                ({"capture.mode.full.update.type": "post_image"}, r"6\.0"),
                                ({"snapshot.read.mode": "at_cluster_time"}, r"5\.0")):
            with self.subTest(pattern):
                old = self.fake([NOOP], "--version", "4.4.29", "--max-wire", "9")
                self.pipe("d", server=old, capture="oplog", source=source).fails(2, pattern, r"this is 4\.4\.29")

    def test_no_primary(self):
        """Between two primaries: waited out."""
        fake = self.fake([NOOP])
        p = self.pipe("d", server=fake, capture="oplog", snapshot__mode="no_data")
        p.cdcd.config["errors.retry.delay.max.ms"] = 100
        fake.stepdown(1500)
        p.start(wait=False)
        p.wait_log("warn.*again in")
        p.wait_log("streaming from")
        p.sync().stop()

    def test_refused_by_code(self):
        """Codes of the server that mean a mistake, at the commands of open: none is retried."""
        fake = self.fake([NOOP])
        for code, patterns in ((13, (ADMIN, 'db: "local"')), (8000, ("Atlas",)), (148, ("enableMajorityReadConcern",))):
            with self.subTest(code):
                fake.fail("find", code, collection="oplog.rs")
                self.pipe("d", server=fake, capture="oplog").fails(2, r"\[%d" % code, *patterns)

    def test_retried_by_code(self):
        """Codes that pass: the same commands succeed at the next try."""
        for code in (6, 7, 43, 50, 89, 91, 136, 189, 237, 262, 9001, 10107, 11600, 11602, 13435, 13436, 0):
            with self.subTest(code):
                fake = self.fake([NOOP])
                p = self.pipe("d", server=fake, capture="oplog", snapshot__mode="no_data")
                p.cdcd.config["errors.retry.delay.max.ms"] = 100
                fake.fail("find", code, collection="oplog.rs", times=2)
                p.start().sync().stop()
                self.assertNotRegex(p.cdcd.logs(), "Z error ")


class Findings(Case):
    """What check says of a server that can be captured."""

    def test_nothing_is_captured(self):
        db = self.filled()
        p = self.pipe(db)
        p.source["database.include.list"] = [db + "x"]
        self.check(p, 1, "FAIL.*collections.*none of", "mend: .*include.list")
        p.start(wait=False)
        p.wait_log("warn.*no collection.*collection.include.list")
        p.stop()

    def test_all_is_well(self):
        db = self.filled()
        for capture in mgcase.CAPTURES:
            out = self.check(self.pipe(db, capture=capture), 0, "ok .*version: 8", "ok .*replica set secantus",
                             "ok .*majority", "ok .*privileges", "ok .*oplog", "ok .*collections: 1 captured")
            self.assertNotIn("FAIL", out)

    def test_images(self):
        db = self.db()
        db.create_collection("with", changeStreamPreAndPostImages={"enabled": True})
        db.create_collection("without")
        for source, level in (({"capture.mode": "change_streams_with_pre_image"}, "warn"),
                              ({"capture.mode.full.update.type": "post_image"}, "FAIL")):
            with self.subTest(level):
                p = self.pipe(db.name, source=source)
                out = self.check(p, level == "FAIL", r"%s .*images: %s\.without" % (level, db.name),
                                 r'mend: .*collMod: "without", changeStreamPreAndPostImages: \{enabled: true\}')
                self.assertNotIn(db.name + ".with ", out)
        db.command("collMod", "without", changeStreamPreAndPostImages={"enabled": True})
        self.assertNotIn("images", self.check(p, 0))

    def test_what_has_no_changes(self):
        db = self.db()
        db.t.insert_one({"_id": 1})
        db.create_collection("capped", capped=True, size=4096)
        db.create_collection("v", viewOn="t", pipeline=[])
        p = self.pipe(db.name)
        self.check(p, 0, r"warn .*capped: %s\.capped" % db.name, r"warn .*view: %s\.v is a view of t" % db.name,
                   "ok .*collections: 2 captured")

    def test_small_oplog(self):
        """Full, and reaching back seconds: warned, with the command; and what then comes of it."""
        server = self.own_server("oplog-max-entries=60")
        db = server.client.small
        p = self.pipe("small", server=server)
        self.check(p, 1, "ok .*oplog: .*has just begun")
        db.t.insert_many([{"_id": i} for i in range(200)])

        def warned():
            return re.search(r"warn .*oplog: reaches back 0\.\d hours.*stopped for longer needs a new snapshot"
                             r"\s+mend: .*replSetResizeOplog: 1, size: \d+, minRetentionHours: 24",
                             p.cdcd.run("check", check=False).stdout)
        cdcdtest.wait_until("a warning", warned, every=0.5)
        p.source["oplog.window.warn.ms"] = 0
        self.assertNotRegex(self.check(p, 0), "warn .*oplog")


class Large(Case):
    """Documents at the limit of 16 MB, and over that of the pipeline."""

    def document(self, i, size):
        doc = {"_id": i, "v": ""}
        doc["v"] = "x" * (size - len(bson.encode(doc)))
        self.assertEqual(len(bson.encode(doc)), size)
        return doc

    def test_at_the_limit(self):
        for capture in mgcase.CAPTURES:
            with self.subTest(capture):
                db = self.db()
                most = 16 << 20
                db.t.insert_one(self.document(1, most))
                p = self.settle(self.pipe(db.name, capture=capture).start())
                db.t.insert_one(self.document(2, most))
                with self.assertRaises(pymongo.errors.PyMongoError):
                    db.t.insert_one(self.document(3, most + 1))
                p.sync().stop()
                self.assertEqual([(op, k["id"], len(d["v"])) for op, k, d in p.ops("t")],
                                 [("r", "1", most - 22), ("c", "2", most - 22)])

    def test_over_the_pipelines_limit(self):
        """max.event.bytes: it stops, names the document, and goes on once it may be larger."""
        for capture in mgcase.CAPTURES:
            with self.subTest(capture):
                db = self.db()
                p = self.pipe(db.name, capture=capture, max__event__bytes="1MB").start()
                self.settle(p)
                db.t.insert_one({"_id": 1})
                p.sync()
                db.t.insert_one(self.document(2, 3 << 20))
                p.ends(1, r"max\.event\.bytes", re.escape(db.name + ".t"))
                p.cdcd.config["max.event.bytes"] = "16MB"
                self.settle(p.start()).sync().stop()
                self.assertEqual([(op, k["id"]) for op, k, _ in p.ops("t")], [("c", "1"), ("c", "2")])


if __name__ == "__main__":
    cdcdtest.main()
