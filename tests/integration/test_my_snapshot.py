"""Snapshots of MySQL and MariaDB: the view is exact, chunks by keys of any type, order and markers,
kills at any point with changes going on, and tables that are altered meanwhile."""
import collections
import json
import os
import re
import subprocess
import threading
import time

import cdcdtest
import mycase
from cdcdtest import wait_until

DIGITS = "(SELECT 0 d UNION SELECT 1 UNION SELECT 2 UNION SELECT 3 UNION SELECT 4 UNION SELECT 5 " \
         "UNION SELECT 6 UNION SELECT 7 UNION SELECT 8 UNION SELECT 9)"


def fill(table, n, columns="id, ver, pad", values="g, 0, repeat('x', 200)"):
    """Rows with g = 1 to n."""
    digits = ["%s x%d" % (DIGITS, i) for i in range(len(str(n)))]
    number = " + ".join("x%d.d * %d" % (i, 10 ** i) for i in range(len(str(n))))
    return ("INSERT INTO %s (%s) SELECT %s FROM (SELECT %s AS g FROM %s) n WHERE g BETWEEN 1 AND %d ORDER BY g; "
            % (table, columns, values, number, ", ".join(digits), n))


T = "CREATE TABLE t (id int PRIMARY KEY, ver int, pad text); "


def ids(ops):
    return [k["id"] for _, k, _ in ops]


class Calls:
    """Sessions that run a procedure until stopped. A client that is killed would leave it running:
    it ends by itself."""

    def __init__(self, test, db, body, sessions=1):
        test.sql("""CREATE TABLE stopped (n int PRIMARY KEY);
            DELIMITER //
            CREATE PROCEDURE work() BEGIN
              DECLARE i int DEFAULT 0;
              DECLARE CONTINUE HANDLER FOR SQLEXCEPTION ROLLBACK;
              WHILE NOT EXISTS (SELECT * FROM stopped) DO SET i = i + 1; %s END WHILE;
            END//
            DELIMITER ;""" % body, db)
        self.test, self.db = test, db
        self.base = number(test.my.log_end()[2])
        self.clients = [subprocess.Popen([*test.my.client_argv(db), "-e", "CALL work()"], stdout=subprocess.DEVNULL,
                                         stderr=subprocess.DEVNULL) for _ in range(sessions)]

    def stop(self):
        self.test.sql("INSERT INTO stopped VALUES (1)", self.db)
        for c in self.clients:
            c.wait(60)


class Load(Calls):
    """Changes rows of t: versions only go up, keys come and go."""

    def __init__(self, test, db, rows):
        super().__init__(test, db, """
            UPDATE t SET ver = ver + 1 WHERE id = floor(rand() * {0});
            UPDATE t SET ver = ver + 1 WHERE id BETWEEN floor(rand() * {0}) AND 30;
            DELETE FROM t WHERE id = floor(rand() * {0} / 7) * 7;
            IF i % 5 = 0 THEN INSERT INTO t VALUES ({0} + i, 0, 'new'); END IF;
            UPDATE t SET id = -id, ver = ver + 1 WHERE id = floor(rand() * {0} / 11) * 11;
            DO sleep(0.002);""".format(rows))


class Inserts(Calls):
    """Inserts into t, one row a transaction. Not as fast as the server can: each view is read whole,
    and on a slow machine the table would outgrow the test."""

    def __init__(self, test, db, sessions):
        super().__init__(test, db, "INSERT INTO t (ver) VALUES (i); DO sleep(0.002);", sessions)


def number(gtid):
    """The last transaction of a set that has one server's, without gaps."""
    return int(re.search(r"(\d+)$", gtid)[1])


class Case(mycase.MyCase):
    def run_once(self, p, command="snapshot", *args):
        p.start(command, *args, wait=False)
        self.assertEqual(p.cdcd.wait(120), 0, p.cdcd.logs()[-4000:])
        return p

    def user(self, *grants):
        """An account with the least that cdcd needs, and more."""
        name = "u%d" % len(self.users)
        self.users.append(name)
        self.sql("CREATE USER %s@'%%' IDENTIFIED BY 'p'; GRANT SELECT, REPLICATION SLAVE, REPLICATION CLIENT%s ON *.* TO %s@'%%'"
                 % (name, "".join(", " + g for g in grants), name))
        self.addCleanup(self.sql, "DROP USER %s@'%%'" % name)
        return name + ":p"

    users = []


@mycase.each_server()
class View(Case):
    def exact(self, source, how, rounds, user="cdcd:cdcd", sessions=2):
        """The view of every worker has the rows of all transactions before its position and no other."""
        db = self.db("CREATE TABLE t (id int AUTO_INCREMENT PRIMARY KEY, ver int)")
        load = Inserts(self, db, sessions)
        try:
            wait_until("some rows", lambda: int(self.sql("SELECT count(*) FROM t", db)) > 300)
            for i in range(rounds):
                p = self.run_once(self.pipe(db, name="%s_%d_%d" % (db, i, len(self.users)), snapshot__workers=4, user=user,
                                            source={"snapshot.chunk.rows": 100, **source}))
                self.assertRegex(p.cdcd.logs(), how)
                # In chunks of several workers: were their views apart, rows would lack or come twice.
                got = ids(p.ops("t"))
                self.assertEqual(len(got), len(set(got)))
                self.assertEqual(len(got), number(p.state()["position"]["gtid"]) - load.base)
        finally:
            load.stop()

    def test_exact_without_a_lock_where_possible(self):
        self.exact({}, "without a lock, attempt|under a read lock of", 6)

    def test_exact_under_a_lock(self):
        self.exact({"snapshot.locking.mode": "minimal"}, r"under a read lock of [0-9.]+ ms", 3)

    def test_exact_without_privileges(self):
        self.exact({"snapshot.locking.mode": "none"}, "without a lock, attempt", 3, self.user(), sessions=1)

    def test_idle_server_needs_no_lock(self):
        db = self.db(T + fill("t", 10))
        p = self.run_once(self.pipe(db, user=self.user()))
        self.assertRegex(p.cdcd.logs(), "without a lock, attempt 1")
        self.assertEqual(len(p.ops("t")), 10)

    def test_lock_mode_without_the_privilege(self):
        db = self.db(T)
        p = self.pipe(db, user=self.user(), source={"snapshot.locking.mode": "minimal"})
        p.fails(2, "GRANT RELOAD" if self.flavor == "mariadb" else "GRANT FLUSH_TABLES")

    @property
    def xa_grants(self):
        return ["XA_RECOVER_ADMIN"] if self.flavor == "mysql" else []

    def test_prepared_transactions_are_waited_for(self):
        db = self.db(T + "INSERT INTO t VALUES (1, 0, '')")
        xa = self.session(db)
        xa.sql("XA START 'x'; INSERT INTO t VALUES (2, 0, 'xa'); XA END 'x'; XA PREPARE 'x'")
        try:
            p = self.pipe(db, user=self.user(*self.xa_grants))
            p.start(wait=False)
            p.wait_log("XA transactions are prepared")
            xa.sql("XA COMMIT 'x'")
        finally:
            xa.close()
        p.wait_log("streaming from")
        p.sync()
        self.assertEqual([(op, k["id"]) for op, k, _ in p.ops("t")], [("r", 1), ("r", 2)])
        p.stop()

    def test_ending_while_a_transaction_is_prepared(self):
        db = self.db(T)
        xa = self.session(db)
        xa.sql("XA START 'y'; INSERT INTO t VALUES (2, 0, 'xa'); XA END 'y'; XA PREPARE 'y'")
        try:
            p = self.pipe(db, user=self.user(*self.xa_grants))
            p.start(wait=False)
            p.wait_log("XA transactions are prepared")
            p.stop()
        finally:
            xa.sql("XA ROLLBACK 'y'")
            xa.close()


@mycase.each_server("mysql")
class NoGtids(Case):
    settings = ["gtid_mode=OFF", "enforce_gtid_consistency=OFF"]

    def test_lock(self):
        db = self.db(T + fill("t", 10))
        p = self.run_once(self.pipe(db, user=self.user("RELOAD")))
        self.assertRegex(p.cdcd.logs(), "under a read lock of")
        self.assertEqual(len(p.ops("t")), 10)
        self.pipe(db, name="none", source={"snapshot.locking.mode": "none"}).fails(2, "gtid_mode")
        self.pipe(db, name="denied", user=self.user()).fails(2, "GRANT FLUSH_TABLES")


@mycase.each_server()
class Reading(Case):
    def test_chunks_and_workers(self):
        db = self.db(T + fill("t", 10000) + "DELETE FROM t WHERE id % 3 = 0 OR id BETWEEN 4000 AND 6000")
        want = {int(x) for x in self.sql("SELECT id FROM t", db).split()}
        for workers, chunk in ((1, 1000000), (4, 100), (3, 1000)):
            p = self.run_once(self.pipe(db, name="%s_%d" % (db, workers), source={"snapshot.chunk.rows": chunk},
                                        snapshot__workers=workers))
            got = ids(p.ops("t"))
            self.assertEqual(len(got), len(want))
            self.assertEqual(set(got), want)
            positions = [r["headers"]["cdcd.pos"] for r in p.records("t")]
            self.assertEqual(len(set(positions)), len(positions))
            markers = collections.Counter(r["value"]["source"]["snapshot"] for r in p.records("t"))
            self.assertEqual(markers["true"], len(got) - 2)

    def test_order_and_markers(self):
        db = self.db("".join("CREATE TABLE %s (id int PRIMARY KEY); %s" % (t, fill(t, n, "id", "g") if n else "")
                             for t, n in (("`B`", 1), ("a", 3), ("z", 2), ("e", 0), ("m", 1), ("zz", 0)))
                     + "CREATE TABLE nokey (v text); INSERT INTO nokey VALUES ('x'), (NULL), ('x'); DROP TABLE cdcd_sync")
        p = self.pipe(db)
        p.cdcd.config["sink"] = {"file": {"path": "-"}}
        records = [json.loads(line) for line in p.cdcd.run("snapshot").stdout.splitlines()]
        records = [r for r in records if "op" in (r["value"] or {})]
        name = "srv.%s." % db
        self.assertEqual([(r["topic"].replace(name, ""), r["value"]["source"]["snapshot"]) for r in records], [
            ("B", "first"), ("a", "first_in_data_collection"), ("a", "true"), ("a", "last_in_data_collection"),
            ("m", records[4]["value"]["source"]["snapshot"]), ("nokey", "first_in_data_collection"), ("nokey", "true"),
            ("nokey", "last_in_data_collection"), ("z", "first_in_data_collection"), ("z", "last")])
        self.assertEqual([r["value"]["after"]["v"] for r in records if r["topic"] == name + "nokey"], ["x", None, "x"])
        self.assertEqual({r["value"]["op"] for r in records}, {"r"})
        self.assertEqual(len({(r["value"]["source"]["file"], r["value"]["source"]["pos"]) for r in records}), 1)
        order = [r["headers"]["cdcd.pos"] for r in records]
        self.assertEqual(order, sorted(set(order)))

    def test_many_tables(self):
        db = self.db("".join("CREATE TABLE t%d (id int PRIMARY KEY); %s"
                             % (i, "INSERT INTO t%d VALUES %s;" % (i, ",".join("(%d)" % k for k in range(i % 5))) if i % 5 else "")
                             for i in range(1, 301)))
        p = self.run_once(self.pipe(db))
        topics = cdcdtest.read_folder(p.out)
        name = "srv.%s." % db
        self.assertEqual({t: len(r) for t, r in topics.items() if r and t.startswith(name)},
                         {"%st%d" % (name, i): i % 5 for i in range(1, 301) if i % 5})

    def test_odd_tables(self):
        """Views are left out; hidden, generated and many columns are not; partitions, a key in the
        middle, names with quotes, another engine."""
        db = self.db("""CREATE TABLE `we"i``rd` (`k``1` int, `va"l` text, PRIMARY KEY (`k``1`)); INSERT INTO `we"i``rd` VALUES (1, 'x');
            CREATE VIEW v AS SELECT * FROM `we"i``rd`;
            CREATE TABLE g (a int, id int PRIMARY KEY, b int AS (a + 1) STORED, c int AS (a + 2) VIRTUAL, h int %s); INSERT INTO g (a, id) VALUES (5, 1);
            CREATE TABLE parts (id int PRIMARY KEY) PARTITION BY HASH (id) PARTITIONS 4; %s
            CREATE TABLE my (id int PRIMARY KEY) ENGINE=MyISAM; INSERT INTO my VALUES (1), (2);
            CREATE TABLE wide (id int PRIMARY KEY, %s); INSERT INTO wide (id, c500) VALUES (1, 5);"""
                     % ("INVISIBLE", fill("parts", 1000, "id", "g"), ", ".join("c%d int" % i for i in range(1, 901))))
        p = self.run_once(self.pipe(db, source={"snapshot.chunk.rows": 100}, snapshot__workers=2))
        self.assertEqual(p.ops("g"), [("r", {"id": 1}, {"a": 5, "id": 1, "b": 6, "c": 7, "h": None})])
        self.assertEqual(ids(p.ops("my")), [1, 2])
        self.assertIn("MyISAM", p.cdcd.logs())
        self.assertEqual(sorted(ids(p.ops("parts"))), [*range(1, 1001)])
        self.assertEqual([len(a) for _, _, a in p.ops("wide")], [901])
        self.assertEqual([r["value"]["after"] for r in p.records() if r["key"] == {"k`1": 1}], [{"k`1": 1, 'va"l': "x"}])
        self.assertFalse([t for t in cdcdtest.read_folder(p.out) if t.endswith(".v")])

    def test_one_table_of_two(self):
        db = self.db("CREATE TABLE a (id int PRIMARY KEY); CREATE TABLE b (id int PRIMARY KEY); "
                     "INSERT INTO a VALUES (1); INSERT INTO b VALUES (1)")
        p = self.run_once(self.pipe(db), "snapshot", "--table", db + ".b")
        self.assertEqual((p.ops("a"), ids(p.ops("b"))), ([], [1]))
        self.sql("INSERT INTO a VALUES (2); INSERT INTO b VALUES (2)", db)
        p.start().sync()
        self.assertEqual([(op, k["id"]) for op, k, _ in p.ops("a")], [("c", 2)])
        self.assertEqual([(op, k["id"]) for op, k, _ in p.ops("b")], [("r", 1), ("c", 2)])
        p.stop()
        q = self.pipe(db, name="unknown")
        q.start("snapshot", "--table", db + ".nope", wait=False)
        q.ends(2, r"\.nope")


# A column type of a key, and its values in SQL.
KEYS = {
    "enum('z','a','m','b')": "'a','z','b','m'",
    "set('x','y','w')": "'x,y','','w','y'",
    "bit(64)": "b'0',18446744073709551615,5,9223372036854775809",
    "date": "'0000-00-00','2024-02-30','2024-00-00','1999-01-01','2024-03-01'",
    "datetime(3)": "'0000-00-00','2024-02-30 01:02:03.123','1999-01-01','2024-03-01'",
    "timestamp(6)": "'0000-00-00','2024-02-28 01:02:03.123456','1999-01-01','2024-03-01'",
    "time(6)": "'-838:59:59','-00:00:00.5','00:00:00','100:00:00','838:59:59'",
    "year": "0,1901,2000,2155,1970",
    "float": "-1.5,1.1,3.4e38,0,1e-30",
    "double": "-1.5,1.1,1.7e308,0,1e-300,0.1,0.30000000000000004",
    "decimal(65,30)": "-1.5,1.1,99999999999999999999999999999999999.999999999999999999999999999999,0",
    "bigint unsigned": "0,18446744073709551615,9223372036854775808,5",
    "bigint": "-9223372036854775808,9223372036854775807,0,-1",
    "int unsigned zerofill": "0,7,4294967295",
    "varbinary(20)": "'',x'00',x'61',x'ff00',x'ffffff'",
    "binary(4)": "'',x'00ff',x'61',x'ff00'",
    "varchar(20) charset latin1": "'','a','É','Z','ñ1','b c'",
    "char(20) charset utf8mb4": "'','a','É','Z','ß','日','😀','it''s \\\\'",
    "varchar(20) charset utf8mb4 collate utf8mb4_bin": "'','a','A','á','É','Z'",
    "varchar(20) charset utf16": "'','a','É','Z','ß','日'",
    "varchar(20) charset utf8mb3": "'','a','É','Z','日'",
    "varchar(20) charset sjis": "'','a','日','Z'",
    "varchar(20) charset gbk": "'','a','日','Z'",
    "varchar(20) charset koi8r": "'','a','Ж','ж1','Z'",
}
MARIADB_KEYS = {
    "uuid": "'00000000-0000-0000-0000-000000000001','ffffffff-ffff-ffff-ffff-ffffffffffff','123e4567-e89b-12d3-a456-426655440000'",
    "inet6": "'::','::1','ffff::','::ffff:1.2.3.4'",
    "inet4": "'0.0.0.0','1.2.3.4','255.255.255.255'",
}


@mycase.each_server()
class Keys(Case):
    """Whatever a key's type and collation, its rows come once: in one piece, in chunks, and when
    the snapshot is killed and goes on behind some key."""

    def types(self):
        return dict(KEYS, **(MARIADB_KEYS if self.flavor == "mariadb" else {})).items()

    def values(self, values):
        return re.findall(r"(?:[^,']|'(?:[^']|'')*')+", values)

    def setup_types(self, table):
        """table(i, type, values): statements."""
        return ("SET NAMES utf8mb4; SET sql_mode='ALLOW_INVALID_DATES', time_zone='+00:00'; "
                + "".join(table(i, t, self.values(v)) for i, (t, v) in enumerate(self.types())))

    def killed_until_done(self, p, after):
        """The number of times that it went on inside the snapshot."""
        def size():
            return sum(os.path.getsize(os.path.join(p.out, f)) for f in os.listdir(p.out))
        for n in range(200):
            p.start("snapshot", wait=False)
            before = size()
            wait_until("some rows", lambda: not p.cdcd.alive() or size() > before + after, every=0.002)
            if not p.cdcd.alive():
                self.assertIn("snapshot complete", p.log_since_start())
                return n
            p.cdcd.kill()
        raise cdcdtest.Failure("no progress:\n" + p.log_since_start())

    def test_all_types(self):
        names = {}

        def tables(i, type_, values):
            sql = ""
            for kind, key in (("s", "PRIMARY KEY (k)"), ("c", "PRIMARY KEY (k, n, s)"), ("u", "UNIQUE (s, k)")):
                times = 1 if kind == "s" else 3
                names["%s%d" % (kind, i)] = len(values) * times
                sql += "CREATE TABLE %s%d (n int NOT NULL, k %s NOT NULL, s varchar(9) NOT NULL, %s); " % (kind, i, type_, key)
                sql += "INSERT INTO %s%d VALUES %s; " % (kind, i, ",".join(
                    "(%d,%s,'%s')" % (n, v, "aBc"[n]) for v in values for n in range(times)))
            return sql
        p = self.run_once(self.pipe(self.db(self.setup_types(tables)), format={"zero.date.handling.mode": "text"}))
        self.assertEqual({t: len(p.rows(t)) for t in names}, names)
        for table in names:
            rows = [json.dumps(r, sort_keys=True) for r in p.rows(table)]
            self.assertEqual(len(rows), len(set(rows)), table)

    def test_killed_behind_any_key(self):
        """Rows as large as a batch: each ends one, and its key is where the next run goes on."""
        names = {}

        def tables(i, type_, values):
            names["t%d" % i] = len(values)
            return "CREATE TABLE t%d (k %s NOT NULL PRIMARY KEY, n int, pad longtext); INSERT INTO t%d VALUES %s; " % (
                i, type_, i, ",".join("(%s,%d,repeat('x', 270000))" % (v, n) for n, v in enumerate(values)))
        p = self.pipe(self.db(self.setup_types(tables)), batches=4, snapshot__workers=1)
        self.assertGreater(self.killed_until_done(p, 1200000), 5)
        self.assertEqual({t: sorted(r["n"] for r in p.rows(t)) for t in names},
                         {t: [*range(n)] for t, n in names.items()})

    def test_chunks_of_large_tables(self):
        """More rows than a batch has, so that chunks and batches end inside."""
        tables = {  # columns, their names, values
            "txt": ("k varchar(40) COLLATE utf8mb4_general_ci PRIMARY KEY, id int", "k, id", "concat(char(65 + g % 26), 'é', g), g"),
            "lat": ("k varchar(40) CHARACTER SET latin1 PRIMARY KEY, id int", "k, id", "concat(char(97 + g % 26), 'É', g), g"),
            "bin": ("k varbinary(16) PRIMARY KEY, id int", "k, id", "unhex(left(sha2(g, 256), 32)), g"),
            "dec_": ("k decimal(20,4) PRIMARY KEY, id int", "k, id", "(g - 2500) * 1.0001, g"),
            "dbl": ("k double PRIMARY KEY, id int", "k, id", "(g - 2500) / 7, g"),
            "tim": ("k datetime(6) PRIMARY KEY, id int", "k, id", "'2024-01-01' + INTERVAL g * 1234567 MICROSECOND, g"),
            "com": ("a int, b varchar(10), c bigint unsigned, id int, PRIMARY KEY (a, b, c)", "a, b, c, id",
                    "g % 3, concat('k', g % 5), 18446744073709551615 - g, g"),
            "uni": ("k int NOT NULL, s varchar(10) NOT NULL, id int, UNIQUE (s, k)", "k, s, id", "g, concat('s', g % 4), g"),
            "sparse": ("k bigint PRIMARY KEY, id int", "k, id", "g * 1000000007, g"),
            "big": ("k bigint unsigned PRIMARY KEY, id int", "k, id", "18446744073709551615 - g, g"),
            "enu": ("k enum('b','a','c') NOT NULL, id int, PRIMARY KEY (k, id)", "k, id", "1 + g % 3, g"),
            "parts": ("k int PRIMARY KEY, id int) PARTITION BY RANGE (k) (PARTITION a VALUES LESS THAN (1000), "
                      "PARTITION b VALUES LESS THAN MAXVALUE", "k, id", "g, g"),
        }
        rows = 5000
        db = self.db("".join("CREATE TABLE %s (%s); %s ANALYZE TABLE %s; " % (t, columns, fill(t, rows, names, values), t)
                             for t, (columns, names, values) in tables.items()))
        for workers, chunk in ((1, 100000), (3, 300)):
            p = self.run_once(self.pipe(db, name="%s_%d" % (db, workers), snapshot__workers=workers,
                                        source={"snapshot.chunk.rows": chunk}))
            for t in tables:
                self.assertEqual(sorted(r["id"] for r in p.rows(t)), [*range(1, rows + 1)], t)
        p = self.pipe(db, name=db + "_killed", snapshot__workers=2, source={"snapshot.chunk.rows": 700}, batches=4)
        self.assertGreater(self.killed_until_done(p, 2500000), 2)
        for t in tables:
            self.assertEqual(sorted(r["id"] for r in p.rows(t)), [*range(1, rows + 1)], t)


@mycase.each_server()
class Resumed(Case):
    def complete(self, p, db, resumed=True):
        """Each version of each key at most once, in order, and the last is the table's. Where the
        snapshot was interrupted, a row that was changed meanwhile may come as that change only, or
        as that change and then as the row."""
        last = {}
        for r in p.records("t"):
            key = r["key"]["id"]
            if r["value"] is None:
                continue
            after = r["value"]["after"]
            if after is None:
                self.assertTrue(resumed or key in last)
                last.pop(key, None)
                continue
            if key in last:
                again = resumed and r["value"]["op"] == "r"
                self.assertGreaterEqual(after["ver"], last[key] + (not again), "key %d goes back: %s" % (key, r))
            last[key] = after["ver"]
        table = {int(k): int(v) for k, v in (x.split("\t") for x in self.sql("SELECT id, ver FROM t", db).split("\n"))}
        self.assertEqual({k: v for k, v in table.items() if last.get(k) != v}, {})
        self.assertEqual({k: v for k, v in last.items() if table.get(k) != v}, {})

    def test_snapshot_then_run(self):
        db = self.db(T + fill("t", 3000))
        p = self.pipe(db, source={"snapshot.chunk.rows": 500})
        load = Load(self, db, 3000)
        try:
            self.run_once(p)
            snapshot = len(p.ops("t"))
            wait_until("changes between", lambda: int(self.sql("SELECT max(ver) FROM t", db)) > 3)
        finally:
            load.stop()
        p.start().sync()
        self.assertEqual([op for op, _, _ in p.ops("t")[:snapshot]], ["r"] * snapshot)
        self.assertNotIn("r", [op for op, _, _ in p.ops("t")[snapshot:]])
        self.complete(p, db, resumed=False)

    def test_killed_again_and_again(self):
        db = self.db("CREATE TABLE a (id int PRIMARY KEY); " + fill("a", 100, "id", "g") + T + fill("t", 15000) +
                     "CREATE TABLE u (id int PRIMARY KEY); " + fill("u", 100, "id", "g"))
        p = self.pipe(db, source={"snapshot.chunk.rows": 400}, snapshot__workers=2)
        path = os.path.join(p.out, "srv.%s.t.jsonl" % db)
        load = Load(self, db, 15000)
        killed = 0
        try:
            for step in range(6):
                size = os.path.getsize(path) if os.path.exists(path) else 0
                p.start(wait=False)
                wait_until("some rows", lambda: os.path.exists(path) and os.path.getsize(path) > size + 700000
                           or "streaming from" in p.log_since_start(), every=0.002)
                killed += "snapshot complete" not in p.log_since_start()
                p.cdcd.kill()
            p.start()
        finally:
            load.stop()
        p.sync()
        self.assertGreater(killed, 1)
        self.assertNotIn("reading all tables again", p.cdcd.logs())
        self.complete(p, db)
        self.assertEqual(sorted(ids(p.ops("a"))), [*range(1, 101)])
        self.assertEqual(sorted(ids(p.ops("u"))), [*range(1, 101)])
        positions = [r["headers"]["cdcd.pos"] for r in p.records("t")]
        self.assertEqual(len(positions), len(set(positions)))

    def test_stopped_in_the_middle(self):
        """SIGTERM is as good as a kill, and exits 0."""
        db = self.db(T + fill("t", 20000))
        p = self.pipe(db, source={"snapshot.chunk.rows": 1000})
        path = os.path.join(p.out, "srv.%s.t.jsonl" % db)
        p.start(wait=False)
        wait_until("some rows", lambda: os.path.exists(path) and os.path.getsize(path), every=0.002)
        p.stop()
        self.sql("UPDATE t SET ver = 1 WHERE id % 100 = 0; DELETE FROM t WHERE id % 100 = 1", db)
        p.start().sync()
        self.complete(p, db)

    def test_connection_lost_in_the_middle(self):
        db = self.db(T + fill("t", 20000))
        p = self.pipe(db, source={"snapshot.chunk.rows": 1000}, batches=4)
        path = os.path.join(p.out, "srv.%s.t.jsonl" % db)
        p.start(wait=False)
        wait_until("some rows", lambda: os.path.exists(path) and os.path.getsize(path), every=0.002)
        for line in self.sql("SELECT id FROM information_schema.processlist WHERE user = 'cdcd'").split():
            self.sql("KILL %s" % line, check=False)
        p.wait_log("streaming from")
        p.sync()
        self.assertEqual(sorted(ids(p.ops("t"))), [*range(1, 20001)])
        self.complete(p, db)


@mycase.each_server()
class Meanwhile(Case):
    """Tables that change their shape while they are read, or between a kill and the next run.
    Either all rows come, or it stops with an error that names the table; never a silent gap and
    never another table's rows."""

    ROWS = 6000

    def paused(self, more=""):
        """A snapshot that has begun with a and waits: its sink is a pipe that nobody reads."""
        db = self.db("CREATE TABLE a (id int PRIMARY KEY, pad text); " + fill("a", 12000, "id, pad", "g, repeat('y', 1000)")
                     + T + fill("t", self.ROWS) + more)
        time.sleep(1.1)  # the time of a table's creation has whole seconds
        p = self.pipe(db, source={"snapshot.chunk.rows": 300}, batches=4)
        p.cdcd.config["sink"] = {"file": {"path": "-"}}
        r, w = os.pipe()
        self.records_ = []

        def drain(f):
            for line in f:
                if line.endswith(b"\n"):
                    self.records_.append(json.loads(line))
        p.start(wait=False, stdout=w)
        os.close(w)
        f = os.fdopen(r, "rb")
        while not self.records_ or not self.records_[-1]["topic"].endswith(".a"):
            self.records_.append(json.loads(f.readline()))
        reader = threading.Thread(target=drain, args=(f,))
        self.addCleanup(f.close)
        return db, p, reader

    def outcome(self, p, reader, complete, topics=("t",)):
        reader.start()
        wait_until("the end or the stream", lambda: not p.cdcd.alive() or "streaming from" in p.log_since_start(), 30)
        if p.cdcd.alive():
            last = self.sql("INSERT INTO t (id) VALUES (-1)", p.db, check=False)
            wait_until("the last row", lambda: last.returncode or any(
                r["topic"].endswith(".t") and r["key"] == {"id": -1} for r in self.records_))
            p.stop()
            reader.join()
            got = {r["key"]["id"] for r in self.records_
                   if r["topic"] in ["srv.%s.%s" % (p.db, t) for t in topics] and r["key"]}
            self.assertTrue(complete(got), "%d rows came" % len(got))
            return True
        reader.join()
        self.assertIn(p.cdcd.process.returncode, (1, 2, 3))
        self.assertRegex(p.log_since_start(), p.db + r"\.t\b")
        return False

    def all_rows(self, got):
        return set(range(1, self.ROWS + 1)) <= got

    def test_add_column(self):
        db, p, reader = self.paused()
        self.sql("ALTER TABLE t ADD COLUMN later int DEFAULT 5; INSERT INTO t VALUES (0, 0, 'x', 6)", db)
        self.assertTrue(self.outcome(p, reader, complete=self.all_rows))
        zero = [r for r in self.records_ if r["key"] == {"id": 0} and r["topic"].endswith(".t")]
        self.assertEqual({r["value"]["after"].get("later") for r in zero}, {6})

    def test_columns_swap_names(self):
        db, p, reader = self.paused("ALTER TABLE t ADD COLUMN a varchar(9) DEFAULT 'a', ADD COLUMN b varchar(9) DEFAULT 'b'; ")
        self.sql("ALTER TABLE t RENAME COLUMN a TO b, RENAME COLUMN b TO a", db)
        self.outcome(p, reader, complete=self.all_rows)
        self.assertRegex(p.log_since_start(), "was altered, or another table took its name")
        got = collections.Counter((r["value"]["after"]["a"], r["value"]["after"]["b"]) for r in self.records_
                                  if r["topic"].endswith(".t") and r["value"]["op"] == "r")
        self.assertIn(set(got), ({("a", "b")}, {("b", "a")}, set()))

    def test_drop_and_rename_column(self):
        db, p, reader = self.paused()
        self.sql("ALTER TABLE t DROP COLUMN ver; ALTER TABLE t RENAME COLUMN pad TO filler", db)
        self.outcome(p, reader, complete=self.all_rows)

    def test_rewritten(self):
        db, p, reader = self.paused()
        self.sql("ALTER TABLE t MODIFY ver varchar(20)", db)
        self.outcome(p, reader, complete=self.all_rows)

    def test_truncated(self):
        db, p, reader = self.paused()
        self.sql("TRUNCATE t; INSERT INTO t VALUES (0, 0, 'after')", db)
        # Its rows cannot be read any more; those that come later must.
        self.outcome(p, reader, complete=lambda got: 0 in got)

    def test_dropped(self):
        db, p, reader = self.paused()
        self.sql("DROP TABLE t", db)
        self.outcome(p, reader, complete=lambda got: True)

    def test_another_table_takes_the_name(self):
        db, p, reader = self.paused("CREATE TABLE z (id int PRIMARY KEY, ver int, pad text); "
                                    "INSERT INTO z VALUES (100000, 0, 'other'); DO sleep(1.1); DROP TABLE t; "
                                    + T + fill("t", self.ROWS))
        self.sql("RENAME TABLE t TO old, z TO t", db)
        # The rows of what is now `old`, and of what is `t`, each under its own name.
        self.outcome(p, reader, complete=lambda got: 100000 in got and self.all_rows(got), topics=("t", "old"))
        self.assertRegex(p.log_since_start(), "was altered, or another table took its name")
        for r in self.records_:
            if r["topic"].endswith(".old"):
                self.assertNotEqual(r["key"], {"id": 100000})

    def test_between_a_kill_and_the_next_run(self):
        for sql, complete in (
                ("ALTER TABLE t ADD COLUMN later int DEFAULT 5", self.all_rows),
                ("ALTER TABLE t MODIFY ver bigint", self.all_rows),
                ("ALTER TABLE t MODIFY id bigint", self.all_rows),
                ("ALTER TABLE t DROP PRIMARY KEY, ADD PRIMARY KEY (ver, id)", self.all_rows),
                ("OPTIMIZE TABLE t", self.all_rows),
                ("TRUNCATE t", lambda got: True),
                ("DROP TABLE t", lambda got: True)):
            with self.subTest(sql):
                db = self.db(T + fill("t", self.ROWS))
                p = self.pipe(db, source={"snapshot.chunk.rows": 300})
                path = os.path.join(p.out, "srv.%s.t.jsonl" % db)
                p.start(wait=False)
                wait_until("some rows", lambda: os.path.exists(path) and os.path.getsize(path), every=0.001)
                p.cdcd.kill()
                self.assertNotIn("snapshot complete", p.cdcd.logs())
                self.sql(sql, db)
                p.start()
                p.sync()
                self.assertTrue(complete({r["key"]["id"] for r in p.records("t")}))
                p.stop()


if __name__ == "__main__":
    mycase.main()
