"""What goes wrong from outside, on MySQL and MariaDB: each ends with a message that names object and
mend, with the right exit code, and loses nothing: after it is mended, the next run completes the
output."""
import socket
import subprocess
import threading
import time

import cdcdtest
import mycase

SETUP = "CREATE TABLE t (id int PRIMARY KEY, v text); INSERT INTO t VALUES (1, 'one');"


def ids(ops):
    return [k["id"] for _, k, _ in ops]


class Case(mycase.MyCase):
    def mended(self, p, want=(1,)):
        p.start().sync()
        self.assertEqual(sorted(ids(p.ops("t"))), list(want))
        p.stop()

    def check_fails(self, p, *patterns):
        r = p.cdcd.run("check", check=False)
        self.assertEqual(r.returncode, 1, r.stdout + r.stderr)
        for x in patterns:
            self.assertRegex(r.stdout, x)
        return r.stdout

    def flush(self, db, server=None):
        """A new log file, with a commit in it."""
        (server or self.my).sql("FLUSH BINARY LOGS; INSERT INTO %s.%s VALUES (UUID())" % (db, mycase.SYNC))

    def purge(self, db, server=None):
        """All log files but a new one go. A dump that has just ended holds its file until the
        server finds that nobody listens any more."""
        my = server or self.my

        def gone():
            self.flush(db, my)
            my.sql("PURGE BINARY LOGS TO '%s'" % my.log_end()[0])
            return my.sql("SHOW BINARY LOGS").count("\n") == 0
        cdcdtest.wait_until("the log to be purged", gone, every=0.2)


@mycase.each_server()
class Refused(Case):
    def test_password(self):
        db = self.db(SETUP)
        self.sql("CREATE USER IF NOT EXISTS 'pw'@'%' IDENTIFIED BY 'sesame';"
                 "GRANT SELECT, RELOAD, REPLICATION CLIENT, REPLICATION SLAVE ON *.* TO 'pw'@'%'")
        p = self.pipe(db)
        good = self.my.url("pw:sesame")
        for user in ("pw:hunter2", "pw", "nobody_here:hunter2"):
            with self.subTest(user):
                p.source["url"] = self.my.url(user)
                log = p.fails(2, "pipeline " + db, user.split(":")[0], "[Pp]assword|denied")
                self.assertNotIn("hunter2", log)
                self.assertNotIn("hunter2", self.check_fails(p, "[Pp]assword|denied"))
        p.source["url"] = good
        self.mended(p)
        self.assertNotIn("sesame", p.cdcd.logs())

    def test_reserved_characters_in_the_password(self):
        db = self.db(SETUP)
        self.sql("CREATE USER IF NOT EXISTS 'odd'@'%' IDENTIFIED BY 'p@ss:w/r d%?';"
                 "GRANT SELECT, RELOAD, REPLICATION CLIENT, REPLICATION SLAVE ON *.* TO 'odd'@'%'")
        p = self.pipe(db, user="odd:p%40ss%3Aw%2Fr%20d%25%3F")
        self.mended(p)

    def test_host_and_url(self):
        db = self.db(SETUP)
        p = self.pipe(db)
        for url, pattern in (("mysql://cdcd:cdcd@no-such-host.invalid:3306", r"no-such-host\.invalid"),
                             ("mysql://cdcd:cdcd@127.0.0.1:notaport", "url|port"),
                             ("postgresql://cdcd@127.0.0.1:%d/" % self.my.port, "url|mysql://"),
                             ("nonsense", "url"), ("", "url")):
            with self.subTest(url):
                p.source["url"] = url
                p.fails(2, pattern)
        p.source["url"] = self.my.url()
        self.mended(p)

    def test_nobody_listens(self):
        """A server that is not there may come back: cdcd waits, says so, and can be stopped."""
        db = self.db(SETUP)
        p = self.pipe(db)
        url = p.source["url"]
        p.source["url"] = "mysql://cdcd:cdcd@127.0.0.1:1"
        p.start(wait=False)
        p.wait_log("warn.*(refused|connect).*again in")
        p.stop()
        p.cdcd.config["errors.max.retries"] = 2
        p.cdcd.config["errors.retry.delay.max.ms"] = 100
        p.fails(1, "pipeline " + db, "refused|connect")
        p.source["url"] = url
        self.mended(p)

    def test_not_a_server(self):
        """Something else listens on the port, or nothing answers."""
        db = self.db(SETUP)
        for answer in (b"HTTP/1.1 400 Bad Request\r\n\r\n", b"", b"\0" * 100, b"\xff\xff\xff\0" + b"x" * 1000, None):
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
                p = self.pipe(db, source={"connect.timeout.ms": 1000})
                p.source["url"] = "mysql://cdcd:cdcd@127.0.0.1:%d" % s.getsockname()[1]
                p.cdcd.config["errors.max.retries"] = 1
                p.cdcd.config["errors.retry.delay.max.ms"] = 100
                p.start(wait=False)
                self.assertIn(p.cdcd.wait(30), (1, 2), p.cdcd.logs())
                self.assertIn("pipeline " + db, p.log_since_start())

    def test_privileges(self):
        db = self.db(SETUP)
        user = "poor_" + db
        self.sql("CREATE USER '%s'@'%%' IDENTIFIED BY 'x'; GRANT USAGE ON *.* TO '%s'@'%%'" % (user, user))
        p = self.pipe(db, user=user + ":x")
        client = "REPLICATION CLIENT" if self.flavor == "mysql" else "BINLOG MONITOR"
        grants = [("REPLICATION SLAVE", "REPLICATION SLAVE ON *.*"), (client, client + " ON *.*"),
                  ("SELECT", "SELECT ON %s.*" % db)]
        for pattern, grant in grants:
            with self.subTest(pattern):
                self.check_fails(p, pattern, "mend: .*GRANT")
                p.fails(2, "pipeline " + db, "GRANT", user)
                self.assertEqual(p.records(), [])
            self.sql("GRANT %s TO '%s'@'%%'" % (grant, user))
        if self.flavor == "mysql":
            # Only on a server that is never idle does the snapshot need a lock.
            self.assertRegex(p.cdcd.run("check").stdout, "warn.*snapshot lock[\\s\\S]*GRANT (FLUSH_TABLES|RELOAD|BACKUP_ADMIN)")
        self.mended(p)
        self.sql("DROP USER '%s'@'%%'" % user)

    def test_include_list_without_a_table(self):
        db = self.db(SETUP)
        p = self.pipe(db, source={"table.include.list": "%s.nope" % db})
        p.start(wait=False)
        p.wait_log(r"warn.*(include|nope)|error.*(include|nope)")
        p.cdcd.stop()

    def test_server_id_of_another(self):
        """Two readers with one server_id would end each other's connection again and again."""
        db = self.db(SETUP)
        p = self.pipe(db, source={"server.id": 4711}).start()
        p.sync()
        q = self.pipe(db, name="second", source={"server.id": 4711})
        q.cdcd.config["errors.max.retries"] = 3
        q.cdcd.config["errors.retry.delay.max.ms"] = 200
        q.start(wait=False)
        ended = None
        try:
            ended = q.cdcd.wait(20)
        except subprocess.TimeoutExpired:
            pass
        log = p.cdcd.logs() + q.cdcd.logs()
        self.assertRegex(log, r"server\.id")
        # One of them has ended with the reason; the other works on.
        if ended is None:
            self.assertEqual(p.cdcd.wait(20), 2, log)
            survivor = q
        else:
            self.assertEqual(ended, 2, log)
            survivor = p
        self.sql("INSERT INTO t VALUES (2, 'two')", db)
        survivor.sync().stop()
        self.assertEqual(ids(survivor.ops("t")), [1, 2])
        r = self.pipe(db, name="third", source={"server.id": self.my.port})
        r.fails(2, "server.id %d" % self.my.port)

    def test_config(self):
        db = self.db(SETUP)
        for change, pattern in (
                ({"servre.id": 5}, "servre"), ({"server.id": -1}, r"server\.id"), ({"server.id": 2**32}, r"server\.id"),
                ({"table.include.list": [db + ".(t"]}, r"table\.include\.list"),
                ({"database.include.list": ["("]}, r"database\.include\.list"),
                ({"snapshot.locking.mode": "maybe"}, r"snapshot\.locking\.mode"),
                ({"row.image.handling.mode": "null"}, r"row\.image\.handling\.mode"),
                ({"ssl.mode": "some"}, r"ssl\.mode"), ({"ssl.ca": "/nowhere/ca.pem", "ssl.mode": "verify_ca"}, r"ssl|/nowhere"),
                ({"url": "${NO_SUCH_VARIABLE}"}, "NO_SUCH_VARIABLE")):
            with self.subTest(pattern):
                p = self.pipe(db, source=change)
                p.fails(2, pattern)


@mycase.each_server()
class Gone(Case):
    """The log no longer has what was not delivered yet. Servers of their own: purging is for all."""

    @classmethod
    def setUpClass(cls):
        cls.my = mycase.MyServer(cls.server, *cls.settings)
        cls.addClassCleanup(cls.my.stop)

    def behind(self, **more):
        """A pipeline that has the row 1, and then stands still while 2 is committed and purged."""
        db = self.db(SETUP)
        p = self.pipe(db, **more).start().sync().stop()
        self.sql("INSERT INTO t VALUES (2, 'two')", db)
        return db, p

    def test_purged(self):
        db, p = self.behind()
        self.purge(db)
        log = p.fails(3, "pipeline " + db, "purged", "snapshot", "binlog_expire_logs_seconds")
        self.assertEqual(ids(p.ops("t")), [1], log)
        p.fails(3, "purged")

    def test_purged_when_needed(self):
        db, p = self.behind(snapshot__mode="when_needed")
        self.purge(db)
        p.start(wait=False)
        p.wait_log("when_needed")
        p.wait_log("snapshot complete; streaming from")
        self.sql("INSERT INTO t VALUES (3, 'three')", db)
        p.sync().stop()
        self.assertEqual([(op, k["id"]) for op, k, _ in p.ops("t")], [("r", 1), ("r", 1), ("r", 2), ("c", 3)])
        pos = [r["headers"]["cdcd.pos"] for r in p.records("t")]
        self.assertEqual(pos, sorted(set(pos)))

    def test_purged_while_it_runs(self):
        """Cut off, and when it comes back the rest is gone."""
        db = self.db(SETUP)
        p = self.pipe(db).start().sync()
        p.cdcd.kill()
        self.sql("INSERT INTO t VALUES (2, 'two')", db)
        self.purge(db)
        self.purge(db)
        p.fails(3, "purged|no longer")
        self.assertEqual(ids(p.ops("t")), [1])

    def test_delivered_may_be_purged(self):
        db = self.db(SETUP)
        p = self.pipe(db).start()
        for n in range(2, 6):
            self.sql("INSERT INTO t VALUES (%d, 'x')" % n, db)
            p.sync()
            self.purge(db)
        p.sync().stop()
        self.mended(p, range(1, 6))

    def test_ahead_of_the_server(self):
        """Another server answers, which lacks what was delivered."""
        db, p = self.behind()
        p.start().sync().stop()
        old = self.own_server()
        old.sql("CREATE DATABASE %s; CREATE TABLE %s.%s (token varchar(40) PRIMARY KEY)" % (db, db, mycase.SYNC))
        old.sql(SETUP, db)
        p.source["url"] = old.url()
        p.fails(3, "pipeline " + db, "ahead|lacks|other server", "snapshot")
        self.assertEqual(ids(p.ops("t")), [1, 2])
        p.source["url"] = self.my.url()
        self.sql("INSERT INTO t VALUES (3, 'three')", db)
        self.mended(p, [1, 2, 3])

    def test_log_was_reset(self):
        db, p = self.behind()
        p.start().sync().stop()
        self.sql("RESET BINARY LOGS AND GTIDS" if self.flavor == "mysql" else "RESET MASTER")
        p.fails(3, "pipeline " + db, "snapshot")
        p.cdcd.config["snapshot.mode"] = "when_needed"
        p.start(wait=False)
        p.wait_log("snapshot complete; streaming from")
        self.sql("INSERT INTO t VALUES (3, 'three')", db)
        p.sync().stop()
        self.assertEqual(ids(p.ops("t"))[-3:], [1, 2, 3])
        pos = [r["headers"]["cdcd.pos"] for r in p.records("t")]
        self.assertEqual(pos, sorted(set(pos)))

    def test_no_data(self):
        """snapshot.mode no_data with an empty sink starts at the server's current position."""
        db = self.db(SETUP)
        p = self.pipe(db, snapshot__mode="no_data").start()
        self.sql("INSERT INTO t VALUES (2, 'two')", db)
        p.sync().stop()
        self.assertEqual(p.ops("t"), [("c", {"id": 2}, {"id": 2, "v": "two"})])
        self.sql("INSERT INTO t VALUES (3, 'three')", db)
        p.start().sync().stop()
        self.assertEqual(ids(p.ops("t")), [2, 3])


@mycase.each_server("mysql")
class ByFile(Case):
    """Without GTIDs the position is a file and an offset."""

    @classmethod
    def setUpClass(cls):
        cls.my = mycase.MyServer(cls.server, "gtid_mode=OFF", "enforce_gtid_consistency=OFF")
        cls.addClassCleanup(cls.my.stop)

    def test_goes_on(self):
        db = self.db(SETUP)
        p = self.pipe(db).start()
        for n in (2, 3):
            self.sql("INSERT INTO t VALUES (%d, 'x')" % n, db)
            p.sync()
            p.stop() if n == 2 else p.cdcd.kill()
            self.flush(db)
            self.sql("INSERT INTO t VALUES (%d, 'y')" % (n * 10), db)
            p.start().sync()
        p.stop()
        self.assertEqual(ids(p.ops("t")), [1, 2, 20, 3, 30])
        self.assertEqual(p.state()["position"]["gtid"], "")
        self.assertEqual({r["value"]["source"]["gtid"] for r in p.records("t")}, {None})

    def stopped(self):
        db = self.db(SETUP)
        p = self.pipe(db).start()
        self.sql("INSERT INTO t VALUES (2, REPEAT('two ', 200))", db)
        p.sync().stop()
        self.sql("INSERT INTO t VALUES (3, 'three')", db)
        return db, p, p.state()["position"]

    def test_offset_within_an_event(self):
        """The server sends whatever is there: garbage must be known for what it is."""
        db, p, position = self.stopped()
        for offset in (1, 3, 7, 19, 33, 60):
            with self.subTest(offset=offset):
                p.edit_position(pos=position["pos"] + offset)
                p.start(wait=False)
                self.assertIn(p.cdcd.wait(60), (1, 3), p.log_since_start())
                self.assertEqual(ids(p.ops("t")), [1, 2])
        p.edit_position(**position)
        self.mended(p, [1, 2, 3])

    def test_offset_behind_the_end(self):
        db, p, position = self.stopped()
        p.edit_position(pos=position["pos"] + 100000000)
        p.fails(3, position["file"], "snapshot")
        p.edit_position(pos=position["pos"] + 2**32 + 100)
        p.fails(3, "GTID|ends at", "snapshot")
        p.edit_position(**{**position, "file": "binlog.999999"})
        p.fails(3, r"binlog\.999999", "snapshot")
        p.edit_position(**position)
        self.mended(p, [1, 2, 3])

    def test_another_server(self):
        db, p, position = self.stopped()
        other = self.own_server("gtid_mode=OFF", "enforce_gtid_consistency=OFF")
        p.source["url"] = other.url()
        p.fails(3, position["server"], other.server_uuid())
        p.source["url"] = self.my.url()
        self.mended(p, [1, 2, 3])


@mycase.each_server()
class Server(Case):
    """Settings of the whole server: one of its own each time."""

    def test_log_is_off(self):
        my = self.own_server("skip_log_bin=")
        db = self.db(SETUP, my)
        p = self.pipe(db, server=my)
        p.fails(2, "pipeline " + db, "log_bin")
        self.check_fails(p, "FAIL.*log_bin|FAIL.*binlog", "mend: .*log_bin")

    def test_statement_format(self):
        my = self.own_server("binlog_format=STATEMENT")
        db = self.db(SETUP, my)
        p = self.pipe(db, server=my)
        p.fails(2, "pipeline " + db, "binlog_format", "ROW")
        self.check_fails(p, "FAIL.*binlog_format", "mend: .*ROW")
        my.sql("SET GLOBAL binlog_format = ROW")
        self.mended(p)

    def test_mixed_format(self):
        """Goes on as long as rows are logged, and says what to set."""
        my = self.own_server("binlog_format=MIXED")
        db = self.db(SETUP, my)
        p = self.pipe(db, server=my)
        r = p.cdcd.run("check", check=False)
        self.assertRegex(r.stdout, "warn.*binlog_format")
        p.start()
        my.sql("INSERT INTO t VALUES (2, UUID())", db)
        my.sql("INSERT INTO t VALUES (3, 'three')", db)
        p.ends(3, r"INSERT INTO t VALUES \(3", "binlog_format")
        self.assertEqual(ids(p.ops("t")), [1, 2])

    def test_row_image(self):
        my = self.own_server("binlog_row_image=MINIMAL")
        db = self.db(SETUP, my)
        p = self.pipe(db, server=my)
        r = p.cdcd.run("check", check=False)
        self.assertRegex(r.stdout, "(warn|FAIL).*binlog_row_image[\\s\\S]*FULL")

    def test_killed_server(self):
        """It comes back: nothing is lost or doubled."""
        my = self.own_server()
        db = self.db(SETUP, my)
        p = self.pipe(db, server=my)
        p.cdcd.config["errors.retry.delay.max.ms"] = 300
        p.start().sync()
        for n in range(2, 6):
            my.sql("INSERT INTO t VALUES (%d, 'x')" % n, db)
            if n % 2:
                my.kill()
                time.sleep(0.5)
                my.start_again()
            else:
                my.restart()
            p.source["url"] = my.url()
            my.sql("INSERT INTO t VALUES (%d, 'y')" % (10 * n), db)
        p.sync().stop()
        self.assertEqual(ids(p.ops("t")), [1, 2, 20, 3, 30, 4, 40, 5, 50])

    def test_connection_killed(self):
        """The dump's connection and the other one are killed under it."""
        my = self.own_server()
        db = self.db(SETUP, my)
        p = self.pipe(db, server=my)
        p.cdcd.config["errors.retry.delay.max.ms"] = 300
        p.start().sync()
        for n in range(2, 8):
            my.sql("INSERT INTO t VALUES (%d, 'x')" % n, db)
            for id in my.sql("SELECT id FROM information_schema.processlist WHERE user = 'cdcd'").split():
                my.sql("KILL " + id, check=False)
        p.sync().stop()
        self.assertEqual(ids(p.ops("t")), list(range(1, 8)))


@mycase.each_server()
class FailOver(Case):
    """A replica takes over, by GTID."""

    def test_goes_on_at_the_replica(self):
        primary = self.own_server("log_replica_updates=ON" if self.flavor == "mysql" else "log_slave_updates=ON")
        replica = self.own_server()
        replica.replicate_from(primary)
        db = self.db(SETUP, primary)
        p = self.pipe(db, server=primary).start()
        primary.sql("INSERT INTO t VALUES (2, 'two')", db)
        p.sync()
        primary.sql("INSERT INTO t VALUES (3, 'three')", db)
        replica.wait_replicated(primary)
        p.stop()
        primary.kill()
        replica.promote()
        replica.sql("INSERT INTO t VALUES (4, 'four')", db)
        p.my = replica
        p.source["url"] = replica.url()
        self.mended(p, [1, 2, 3, 4])
        pos = [r["headers"]["cdcd.pos"] for r in p.records("t")]
        self.assertEqual(pos, sorted(set(pos)))

    def test_replica_that_was_behind(self):
        primary, replica = self.own_server(), self.own_server()
        replica.replicate_from(primary)
        db = self.db(SETUP, primary)
        replica.wait_replicated(primary)
        replica.sql("STOP REPLICA" if self.flavor == "mysql" else "STOP SLAVE")
        p = self.pipe(db, server=primary).start()
        primary.sql("INSERT INTO t VALUES (2, 'two')", db)
        p.sync().stop()
        replica.promote()
        p.source["url"] = replica.url()
        p.fails(3, "ahead|lacks")
        self.assertEqual(ids(p.ops("t")), [1, 2])
        if self.flavor == "mariadb":
            # Writes of its own must not hide that: their numbers are used twice then.
            replica.sql("INSERT INTO t VALUES (20, 'x'); INSERT INTO t VALUES (21, 'x'); INSERT INTO t VALUES (22, 'x');"
                        "INSERT INTO t VALUES (23, 'x'); INSERT INTO t VALUES (24, 'x')", db)
            p.fails(3, "ahead|lacks|not in")


if __name__ == "__main__":
    mycase.main()
