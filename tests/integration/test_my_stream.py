"""The stream on real servers: what the log shows and what it means. XA, savepoints and rollbacks,
engines without transactions, tables that are altered while they are written, stops in the middle of
a transaction, idle servers, positions without GTIDs, transaction metadata, system versioning.
"""
import os
import random
import time

import cdcdtest
import mycase
from myload import Load


def position(pipe):
    """What the folder remembers of the source."""
    with open(os.path.join(pipe.out, ".cdcd-%s.state" % pipe.cdcd.config["name"]), encoding="utf-8") as f:
        return f.read()


class Stream(mycase.MyCase):
    def after(self, pipe, table):
        """Rows as (op, values of the row in order)."""
        return [(r["value"]["op"], tuple((r["value"]["after"] or r["value"]["before"]).values()))
                for r in pipe.records(table) if r["value"]]


@mycase.each_server()
class Transactions(Stream):
    SETUP = """CREATE TABLE t (id int PRIMARY KEY, v int);
               CREATE TABLE m (id int PRIMARY KEY, v int) ENGINE=MyISAM;"""

    def run_sql(self, *sessions, **more):
        """The statements of each session one after another, step by step; what has come of t."""
        db = self.db(self.SETUP)
        p = self.pipe(db, **more).start()
        for text in sessions:
            self.sql(text, db)
        p.sync().stop()
        return p

    def test_rollback_and_savepoints(self):
        p = self.run_sql("""
            BEGIN; INSERT INTO t VALUES (1,1); ROLLBACK;
            BEGIN; INSERT INTO t VALUES (2,1); SAVEPOINT `a``b`; INSERT INTO t VALUES (3,1);
                SAVEPOINT c; INSERT INTO t VALUES (4,1); ROLLBACK TO `a``b`;
                INSERT INTO t VALUES (5,1); COMMIT;
            BEGIN; INSERT INTO t VALUES (6,1); SAVEPOINT s; CREATE TEMPORARY TABLE tmp (a int);
                INSERT INTO t VALUES (7,1); INSERT INTO tmp VALUES (1); ROLLBACK TO s;
                INSERT INTO t VALUES (8,1); DROP TEMPORARY TABLE tmp; COMMIT;
            BEGIN; INSERT INTO t VALUES (9,1); CREATE TEMPORARY TABLE tmp (a int);
                DROP TEMPORARY TABLE tmp; ROLLBACK;""")
        self.assertEqual(self.after(p, "t"),
                         [("c", (n, 1)) for n in (2, 5, 6, 8)])

    def test_engines_without_transactions(self):
        """Their rows last whatever the transaction around them does."""
        mixed = """
            BEGIN; INSERT INTO t VALUES (1,1); INSERT INTO m VALUES (1,1); ROLLBACK;
            BEGIN; INSERT INTO t VALUES (2,1); SAVEPOINT s; INSERT INTO t VALUES (3,1);
                INSERT INTO m VALUES (3,1); ROLLBACK TO s; INSERT INTO t VALUES (4,1); COMMIT;"""
        alone = "INSERT IGNORE INTO m VALUES (5,1),(5,2),(6,1);"
        if self.flavor == "mysql":  # GTID consistency forbids to mix them
            p = self.run_sql("INSERT INTO t VALUES (2,1),(4,1); INSERT INTO m VALUES (1,1),(3,1);", alone)
        else:
            p = self.run_sql(mixed, alone)
        self.assertEqual(self.after(p, "t"), [("c", (2, 1)), ("c", (4, 1))])
        self.assertEqual(self.after(p, "m"), [("c", (n, 1)) for n in (1, 3, 5, 6)])
        self.assertEqual(self.sql("SELECT COUNT(*) FROM t", p.db), "2")
        self.assertEqual(self.sql("SELECT COUNT(*) FROM m", p.db), "4")

    def test_create_select(self):
        p = self.run_sql("INSERT INTO t VALUES (1,1),(2,2); CREATE TABLE u AS SELECT * FROM t")
        self.assertEqual(self.after(p, "u"), [("c", (1, 1)), ("c", (2, 2))])

    def test_metadata(self):
        p = self.run_sql("""
            BEGIN; INSERT INTO t VALUES (1,1),(2,2); UPDATE t SET id = 3 WHERE id = 2;
            INSERT INTO t VALUES (4,4); COMMIT; TRUNCATE TABLE m;""",
                         format={"provide.transaction.metadata": True, "skipped.operations": "none"})
        orders = [(r["value"]["op"], r["value"]["transaction"]["total_order"]) for r in p.records("t")
                  if r["value"]]
        self.assertEqual(orders, [("c", 1), ("c", 2), ("d", 3), ("c", 4), ("c", 5)])
        own = [r["value"] for r in cdcdtest.read_folder(p.out)["srv.transaction"]
               if r["value"]["data_collections"] != [
                   {"data_collection": p.db + ".cdcd_sync", "event_count": 1}]]
        first = [v for v in own if v["id"] == own[0]["id"]]
        self.assertEqual([(v["status"], v["event_count"]) for v in first], [("BEGIN", None), ("END", 5)])
        self.assertEqual(first[1]["data_collections"],
                         [{"data_collection": p.db + ".t", "event_count": 5}])
        truncate = p.records("m")[-1]["value"]
        self.assertEqual(truncate["op"], "t")
        self.assertEqual(truncate["transaction"] is None, self.flavor == "mysql")


@mycase.each_server()
class Xa(Stream):
    """Rows come at XA COMMIT and not before, and are not forgotten by a stop in between."""

    def setUp(self):
        super().setUp()
        self.database = self.db("CREATE TABLE t (id int PRIMARY KEY, v int)")
        self.addCleanup(self.end_xa)
        self.xids = []

    def end_xa(self):
        for xid in self.xids:
            self.sql("XA ROLLBACK '%s'" % xid, check=False)

    def prepare(self, xid, text):
        s = self.session(self.database)
        s.sql("XA START '%s'; %s; XA END '%s'; XA PREPARE '%s'" % (xid, text, xid, xid))
        s.close()
        self.xids.append(xid)
        time.sleep(0.2)  # the server lets go of it when it has seen that the client is gone

    def finish(self, how, xid):
        cdcdtest.wait_until("XA %s" % how, lambda: self.sql(
            "XA %s '%s'" % (how, xid), self.database, check=False).returncode == 0)
        self.xids.remove(xid)

    def name(self, xid):
        return "%s_%s" % (self.database, xid)

    def test_matrix(self):
        """A stop at each place between prepare and end."""
        a, b, c = self.name("a"), self.name("b"), self.name("c")
        steps = [
            lambda: self.prepare(a, "INSERT INTO t VALUES (1,1),(2,1)"),
            lambda: self.sql("INSERT INTO t VALUES (10,1)", self.database),
            lambda: self.prepare(b, "INSERT INTO t VALUES (3,1)"),
            lambda: self.sql("INSERT INTO t VALUES (11,1)", self.database),
            lambda: self.finish("ROLLBACK", b),
            lambda: self.sql("XA START 'o'; INSERT INTO t VALUES (4,1); XA END 'o'; "
                             "XA COMMIT 'o' ONE PHASE", self.database),
            lambda: self.finish("COMMIT", a),
            lambda: self.prepare(c, "UPDATE t SET v = 2 WHERE id = 1"),
            lambda: self.finish("COMMIT", c),
            lambda: self.sql("INSERT INTO t VALUES (12,1)", self.database),
        ]
        p = self.pipe(self.database).start()
        for step in steps:
            step()
            p.sync()
            p.stop()
            p.start()
        p.sync().stop()
        self.assertEqual(self.after(p, "t"), [
            ("c", (10, 1)), ("c", (11, 1)), ("c", (4, 1)), ("c", (1, 1)), ("c", (2, 1)),
            ("u", (1, 2)), ("c", (12, 1))])

    def test_restart_of_the_server(self):
        xid = self.name("r")
        p = self.pipe(self.database).start()
        self.prepare(xid, "INSERT INTO t VALUES (1,1)")
        p.sync()
        self.my.restart()
        p.sync()
        self.finish("COMMIT", xid)
        p.sync().stop()
        self.assertEqual(self.after(p, "t"), [("c", (1, 1))])

    def test_prepared_before_the_start(self):
        xid = self.name("p")
        self.prepare(xid, "INSERT INTO t VALUES (1,1)")
        p = self.pipe(self.database, snapshot__mode="no_data").start()
        p.sync()
        self.finish("COMMIT", xid)
        p.ends(3, "prepared before this pipeline's start", "snapshot")


class Altered:
    """A table that is altered all the time while it is written, read with stops in between."""

    ALTERS = [
        "ALTER TABLE t ADD c1 int",
        "ALTER TABLE t ADD c2 varchar(20) FIRST",
        "ALTER TABLE t MODIFY c1 bigint unsigned AFTER c2",
        "ALTER TABLE t CHANGE c2 c3 varchar(300)",
        "ALTER TABLE t ADD (c4 int DEFAULT 4, c5 varchar(10) NOT NULL DEFAULT 'five')",
        "ALTER TABLE t DROP COLUMN c1",
        "ALTER TABLE t RENAME COLUMN c4 TO c6",
        "ALTER TABLE t ADD c1 smallint AFTER id, DROP c5",
        "ALTER TABLE t ADD KEY (c1), MODIFY c6 int NOT NULL DEFAULT 7",
        "ALTER TABLE t CONVERT TO CHARACTER SET latin1",
        "RENAME TABLE t TO t_away; RENAME TABLE t_away TO t",
        "ALTER TABLE t CHANGE c3 c7 text CHARACTER SET utf8mb4 FIRST",
        "ALTER TABLE t ADD c8 enum('a','b') DEFAULT 'b', ADD c9 decimal(10,2) DEFAULT 1.5",
        "ALTER TABLE t MODIFY c8 enum('x','a','b') DEFAULT 'b'",
        "CREATE TABLE _t_new LIKE t; ALTER TABLE _t_new ADD c10 int DEFAULT 10; "
        "INSERT INTO _t_new SELECT *, 10 FROM t; RENAME TABLE t TO _t_old, _t_new TO t; DROP TABLE _t_old",
        "ALTER TABLE t MODIFY c10 int FIRST, DROP COLUMN c9",
        "CREATE INDEX by_c1 ON t (c1); DROP INDEX by_c1 ON t",
        "ALTER TABLE t ADD d1 datetime(3) DEFAULT '2024-02-29 01:02:03.004'",
        "ALTER TABLE t MODIFY d1 date DEFAULT '2024-02-29'",
        "ALTER TABLE t DROP c7, DROP c6, DROP c8",
    ]

    def columns(self, db):
        return self.sql("SELECT column_name FROM information_schema.columns WHERE table_schema='%s' "
                        "AND table_name='t' ORDER BY ordinal_position" % db).split("\n")

    def write(self, db, n):
        """A row, and what its record must have."""
        columns = self.columns(db)
        values = {"id": n}
        if "c1" in columns:
            values["c1"] = n * 3
        for c in ("c2", "c3", "c5", "c7"):
            if c in columns:
                values[c] = "%s-%d" % (c, n)
        for c in ("c4", "c6", "c10"):
            if c in columns and n % 2:
                values[c] = n
        if "c8" in columns:
            values["c8"] = "ab"[n % 2]
        self.sql("INSERT INTO t (%s) VALUES (%s)" % (
            ",".join(values), ",".join("'%s'" % v for v in values.values())), db)
        return columns, values

    def check(self, row, columns, values):
        self.assertEqual(list(row), columns)
        for c, v in values.items():
            self.assertEqual(row[c], v, (c, row))
        for c, v in (("c4", 4), ("c9", "AJY="), ("d1", (1709168523004, 19782))):
            if c in row and c not in values:
                self.assertIn(row[c], v if isinstance(v, tuple) else (v,))

    def test_twenty_times(self):
        rnd = random.Random(20)
        db = self.db("CREATE TABLE t (id int PRIMARY KEY)")
        p = self.pipe(db, source={"table.include.list": [db + ".t"]}).start()
        want, n = [], 0
        for i, alter in enumerate(self.ALTERS):
            for _ in range(2):
                n += 1
                want.append(self.write(db, n))
            self.sql(alter, db)
            n += 1
            want.append(self.write(db, n))
            # Down for some statements, so that old rows are read when the table is another one.
            if rnd.random() < 0.6:
                if p.cdcd.alive():
                    p.cdcd.kill() if rnd.random() < 0.3 else p.stop()
                else:
                    p.start()
        if not p.cdcd.alive():
            p.start()
        p.sync().stop()
        rows = p.rows("t", "c")
        self.assertEqual([r["id"] for r in rows], [v["id"] for _, v in want])
        for row, (columns, values) in zip(rows, want):
            self.check(row, columns, values)


@mycase.each_server()
class AlteredFull(Altered, Stream):
    pass


@mycase.each_server()
class AlteredMinimal(Altered, Stream):
    settings = ["binlog_row_metadata=" + "MINIMAL"]

    def test_unknown_shape(self):
        """Tables of a time that nobody has seen: a clear stop, and nothing wrong before it."""
        db = self.db("CREATE TABLE t (id int PRIMARY KEY, v int)")
        p = self.pipe(db, source={"table.include.list": [db + ".t"]}).start()
        p.sync().stop()
        s = self.session(db)
        s.sql("SET sql_log_bin=0; ALTER TABLE t ADD w int; SET sql_log_bin=1; "
              "INSERT INTO t VALUES (1,1,1); ALTER TABLE t ADD x int; INSERT INTO t VALUES (2,1,1,1)")
        p.fails(3, r"%s\.t " % db, "binlog_row_metadata=FULL", "snapshot")
        self.assertEqual(p.rows("t"), [])

    def test_looks_again_at_the_end(self):
        """What was not logged is read from the server where nothing can have changed since."""
        db = self.db("CREATE TABLE t (id int PRIMARY KEY, v int)")
        p = self.pipe(db, source={"table.include.list": [db + ".t"]}).start()
        p.sync()
        self.sql("SET sql_log_bin=0; ALTER TABLE t ADD w int; SET sql_log_bin=1; "
                 "INSERT INTO t VALUES (1,1,1)", db)
        cdcdtest.wait_until("the row", lambda: p.rows("t"))
        p.stop()
        self.assertEqual(p.rows("t"), [{"id": 1, "v": 1, "w": 1}])


@mycase.each_server()
class Resuming(Stream):
    def test_in_mid_transaction(self):
        """A large transaction, killed and stopped on its way: each row once."""
        db = self.db("CREATE TABLE t (id int PRIMARY KEY, v varchar(100))")
        p = self.pipe(db, format={"provide.transaction.metadata": True}).start()
        p.sync()
        self.sql("CREATE TABLE d (n int); INSERT INTO d VALUES (0),(1),(2),(3),(4),(5),(6),(7),(8),(9);"
                 "INSERT INTO t SELECT a.n+b.n*10+c.n*100+e.n*1000+f.n*10000, REPEAT('x',90) FROM d a, d b, d c, "
                 "d e, d f", db)
        for i in range(12):
            time.sleep(0.05)
            p.cdcd.kill() if i % 3 else p.stop()
            p.start(wait=i % 2 == 0)
        p.sync().stop()
        rows = p.records("t")
        self.assertEqual(sorted(r["key"]["id"] for r in rows), list(range(100000)))
        self.assertEqual([r["value"]["transaction"]["total_order"] for r in rows],
                         list(range(1, 100001)))
        ends = [r["value"] for r in cdcdtest.read_folder(p.out)["srv.transaction"]
                if r["value"]["event_count"] == 100000]
        self.assertEqual(len(ends), 1)

    def test_an_idle_table_keeps_up(self):
        """The position follows a log of which nothing is captured, so that it may be purged."""
        db, other = self.db("CREATE TABLE t (id int PRIMARY KEY)"), self.db()
        p = self.pipe(db).start()
        p.sync()
        first = position(p)
        for _ in range(6):
            self.sql("FLUSH BINARY LOGS; CREATE TABLE IF NOT EXISTS u (v int); INSERT INTO u VALUES (1)",
                     other)
        cdcdtest.wait_until("the position to move", lambda: position(p) != first, 30)
        file = self.my.log_end()[0]
        cdcdtest.wait_until("the position to be in the last file", lambda: file in position(p), 30)
        p.stop()
        self.sql("PURGE BINARY LOGS TO '%s'" % file)
        p.start()
        self.sql("INSERT INTO t VALUES (1)", db)
        p.sync().stop()
        self.assertEqual(self.after(p, "t"), [("c", (1,))])

    def test_restarts_of_the_server(self):
        db = self.db("CREATE TABLE t (id int PRIMARY KEY)")
        p = self.pipe(db).start()
        for n in range(3):
            self.sql("INSERT INTO t VALUES (%d)" % n, db)
            self.my.restart()
        p.sync().stop()
        self.assertEqual(self.after(p, "t"), [("c", (n,)) for n in range(3)])


@mycase.each_server(only="mysql")
class WithoutGtids(Stream):
    settings = ["gtid_mode=OFF", "enforce_gtid_consistency=OFF"]

    def test_load(self):
        """By file and offset: stops, kills, new files, prepared transactions."""
        db = self.db()
        load = Load(self.my, db, seed=5)
        self.addCleanup(load.abandon)
        load.fill(300)
        p = self.pipe(db, source={"snapshot.chunk.rows": 100})
        load.start()
        for n in range(6):
            p.start()
            time.sleep(0.4)
            self.sql("FLUSH BINARY LOGS")
            p.cdcd.kill() if n % 2 else p.stop()
        load.stop()
        p.start().sync().stop()
        records = [r for rs in cdcdtest.read_folder(p.out).values() for r in rs]
        stats = load.verify(records, resumed=True)
        self.assertGreater(stats["changes"], 0)
        self.assertTrue(all(r["value"]["source"]["gtid"] is None for r in p.records("load_0")
                            if r["value"]))

    def test_another_server(self):
        db = self.db("CREATE TABLE t (id int PRIMARY KEY)")
        p = self.pipe(db).start()
        p.sync().stop()
        other = self.own_server(*self.settings)
        other.sql("CREATE DATABASE %s" % db)
        p.source["url"] = other.url()
        p.fails(3, "another server|files are others", "snapshot")


@mycase.each_server()
class NewServer(Stream):
    def test_nothing_executed(self):
        """An empty GTID set is a position too, also while the first transaction is prepared."""
        my = self.own_server()
        db = my.new_db()
        my.sql("CREATE TABLE t (id int PRIMARY KEY, v int)", db)
        my.sql("RESET BINARY LOGS AND GTIDS" if self.flavor == "mysql" else "RESET MASTER")
        p = self.pipe(db, server=my, snapshot__mode="no_data").start()
        s = my.session(db)
        s.sql("XA START 'x'; INSERT INTO t VALUES (1,1); XA END 'x'; XA PREPARE 'x'")
        p.stop()
        p.start()
        s.sql("XA COMMIT 'x'; INSERT INTO t VALUES (2,1)")
        s.close()
        p.sync().stop()
        self.assertEqual(self.after(p, "t"), [("c", (1, 1)), ("c", (2, 1))])
        p.start()
        my.sql("INSERT INTO t VALUES (3,1)", db)
        p.sync().stop()
        self.assertEqual(self.after(p, "t")[2:], [("c", (3, 1))])
        self.assertRegex(position(p).split('"gtid":')[-1], '^"[0-9a-f]')


@mycase.each_server(only="mysql")
class Compressed(Stream):
    """Transactions that the server logs compressed; partial updates of JSON."""

    def test_compressed(self):
        db = self.db("CREATE TABLE t (id int PRIMARY KEY, v varchar(200))")
        p = self.pipe(db).start()
        self.sql("SET binlog_transaction_compression=ON; BEGIN; INSERT INTO t VALUES (1, REPEAT('x',200));"
                 "INSERT INTO t SELECT id+1, v FROM t; UPDATE t SET v='y' WHERE id=1; DELETE FROM t "
                 "WHERE id=2; COMMIT; INSERT INTO t VALUES (9,'z'); "
                 "XA START 'cx'; INSERT INTO t VALUES (10,'xa'); XA END 'cx'; XA PREPARE 'cx'; "
                 "XA COMMIT 'cx'", db)
        p.sync().stop()
        self.assertEqual([(op, k["id"]) for op, k, _ in p.ops("t", tombstones=False)],
                         [("c", 1), ("c", 2), ("u", 1), ("d", 2), ("c", 9), ("c", 10)])


@mycase.each_server(only="mariadb")
class MariaDb(Stream):
    def test_versioned(self):
        """History that the server keeps is none of the table's changes."""
        db = self.db("CREATE TABLE v (id int PRIMARY KEY, v int) WITH SYSTEM VERSIONING;"
                     "CREATE TABLE w (id int, v int, rs timestamp(6) GENERATED ALWAYS AS ROW START, "
                     "re timestamp(6) GENERATED ALWAYS AS ROW END, PERIOD FOR SYSTEM_TIME(rs,re), "
                     "PRIMARY KEY (id,re)) WITH SYSTEM VERSIONING;")
        p = self.pipe(db).start()
        for t in "vw":
            self.sql("INSERT INTO %s (id,v) VALUES (1,1),(2,1); UPDATE %s SET v = 2 WHERE id = 1; "
                     "DELETE FROM %s WHERE id = 1; DELETE HISTORY FROM %s" % (t, t, t, t), db)
        p.sync().stop()
        self.assertEqual(self.after(p, "v"), [("c", (1, 1)), ("c", (2, 1)), ("u", (1, 2)), ("d", (1, 2))])
        live = [r["value"]["op"] for r in p.records("w") if r["value"]]
        self.assertEqual(live[:4], ["c", "c", "u", "d"])
        self.assertEqual(set(live[4:]), {"d"})

    def test_versioned_by_transaction(self):
        """The server logs these tables' changes as statements, whatever binlog_format is."""
        db = self.db("CREATE TABLE x (id int PRIMARY KEY, rs bigint unsigned GENERATED ALWAYS AS ROW START, "
                     "re bigint unsigned GENERATED ALWAYS AS ROW END, PERIOD FOR SYSTEM_TIME(rs,re)) "
                     "WITH SYSTEM VERSIONING;")
        p = self.pipe(db).start()
        self.sql("INSERT INTO x (id) VALUES (1)", db)
        p.ends(3, r"INSERT INTO x \(id\) VALUES \(1\).* changes %s.x" % db)

    def test_sequences(self):
        db = self.db("CREATE SEQUENCE s; CREATE TABLE t (id bigint PRIMARY KEY DEFAULT NEXTVAL(s), v int)")
        p = self.pipe(db).start()
        self.sql("INSERT INTO t (v) VALUES (1),(2); SELECT SETVAL(s, 100); INSERT INTO t (v) VALUES (3)", db)
        p.sync().stop()
        self.assertEqual([k["id"] for _, k, _ in p.ops("t")], [1, 2, 101])
        self.assertEqual(p.records("s"), [])

    def test_alter_in_two_phases(self):
        db = self.db("CREATE TABLE t (id int PRIMARY KEY)")
        p = self.pipe(db).start()
        self.sql("SET binlog_alter_two_phase=1; ALTER TABLE t ADD c int; INSERT INTO t VALUES (1,1),(2,1)", db)
        self.sql("SET binlog_alter_two_phase=1; ALTER TABLE t ADD UNIQUE KEY (c)", db, check=False)
        self.sql("INSERT INTO t VALUES (3,1)", db)
        p.sync().stop()
        self.assertEqual(self.after(p, "t"), [("c", (n, 1)) for n in (1, 2, 3)])
        self.assertEqual(len([c for c in p.schema_changes() if "ALTER TABLE t ADD c int" in c["ddl"]]), 1)

    def test_domains(self):
        """Each domain has its own order; a position knows all of them."""
        db = self.db("CREATE TABLE t (id int PRIMARY KEY)")
        p = self.pipe(db).start()
        for n in range(6):
            self.sql("SET gtid_domain_id=%d; INSERT INTO t VALUES (%d)" % (n % 3, n), db)
            if n % 2:
                p.sync()
                p.stop()
                p.start()
        p.sync().stop()
        self.assertEqual(self.after(p, "t"), [("c", (n,)) for n in range(6)])


@mycase.each_server()
class Query(Stream):
    def test_query(self):
        db = self.db("CREATE TABLE t (id int PRIMARY KEY)")
        p = self.pipe(db, source={"include.query": True}).start()
        on = ("binlog_rows_query_log_events" if self.flavor == "mysql" else "binlog_annotate_row_events")
        self.sql("SET %s=ON; INSERT INTO t VALUES (1),(2)" % on, db)
        self.sql("SET %s=OFF; INSERT INTO t VALUES (3)" % on, db)
        p.sync().stop()
        self.assertEqual([r["value"]["source"]["query"] for r in p.records("t")],
                         ["INSERT INTO t VALUES (1),(2)"] * 2 + [None])


if __name__ == "__main__":
    mycase.main()
