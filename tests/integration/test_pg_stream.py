"""The stream: transactions that the server sends before they commit, messages, truncates, replica
identities, partitions, column lists, idle slots and a sink that blocks."""
import base64
import json
import os
import threading
import time

import cdcdtest
import pgcase
from cdcdtest import wait_until

SMALL = ["logical_decoding_work_mem=64kB", "max_prepared_transactions=10"]
PAD = "repeat('p', 100)"


def ids(ops):
    return [k["id"] for _, k, _ in ops]


def value(b64):
    return base64.b64decode(b64).decode()


@pgcase.each_version()
class InProgress(pgcase.PgCase):
    """With 64 kB of memory on the server, all of these are streamed before their commit."""
    settings = SMALL

    def session(self, db):
        s = self.pg.session(db)
        self.addCleanup(s.wait)
        self.addCleanup(s.stdin.close)
        n = [0]

        def say(sql):
            """Runs it to its end."""
            n[0] += 1
            s.stdin.write("%s;\nSET application_name = 'done %d %d';\n" % (sql, id(s), n[0]))
            s.stdin.flush()
            wait_until("a session", lambda: self.sql(
                "SELECT 1 FROM pg_stat_activity WHERE application_name = 'done %d %d'" % (id(s), n[0]), db))
        return say

    def big(self, first, n=2000, tag="x"):
        return "INSERT INTO t SELECT g, '%s', %s FROM generate_series(%d, %d) g" % (
            tag, PAD, first, first + n - 1)

    def new(self):
        db = self.db("CREATE TABLE t (id int PRIMARY KEY, tag text, pad text)")
        return db, self.pipe(db)

    def spilled(self, p):
        """Files of transactions that wait for their commit."""
        out = []
        for folder, _, files in os.walk(p.cdcd.config["state.dir"]):
            out += files
        return out

    def test_subtransactions(self):
        db, p = self.new()
        p.start()
        self.sql("""
            BEGIN; %s;
            SAVEPOINT a; %s; SAVEPOINT b; %s; ROLLBACK TO b; %s; RELEASE a;
            SAVEPOINT c; %s; SAVEPOINT d; %s; RELEASE d; ROLLBACK TO c;
            UPDATE t SET tag = 'u' WHERE id = 1;
            SAVEPOINT e; DELETE FROM t WHERE id = 2; ROLLBACK TO e; RELEASE e;
            %s; COMMIT;""" % (self.big(1), self.big(10001, tag="a"), self.big(20001, tag="never"),
                              self.big(30001, tag="b2"), self.big(40001, tag="never"),
                              self.big(50001, tag="never"), self.big(60001, tag="end")), db)
        self.sql("BEGIN; %s; ROLLBACK" % self.big(70001, tag="never"), db)
        self.sql("INSERT INTO t VALUES (0, 'last', '')", db)
        p.sync()
        want = [*range(1, 2001), *range(10001, 12001), *range(30001, 32001), 1, *range(60001, 62001), 0]
        self.assertEqual(ids(p.ops("public.t")), want)
        self.assertEqual(p.ops("public.t")[6000][0], "u")
        self.assertEqual(len({r["value"]["source"]["txId"] for r in p.records("public.t")}), 2)
        self.assertEqual(self.spilled(p), [])

    def test_interleaved(self):
        db, p = self.new()
        p.start()
        a, b, c, d = (self.session(db) for _ in range(4))
        for s in (a, b, c, d):
            s("BEGIN")
        a(self.big(1, tag="A"))
        b(self.big(10001, tag="B"))
        c(self.big(20001, tag="C"))
        a("SAVEPOINT s; " + self.big(3001, tag="never"))
        wait_until("a spool file", lambda: self.spilled(p))
        d(self.big(40001, 10, tag="D"))
        b(self.big(13001, tag="B"))
        a("ROLLBACK TO s")
        self.assertEqual(p.ops("public.t"), [])
        b("COMMIT")
        d("COMMIT")
        c("ROLLBACK")
        a(self.big(5001, tag="A"))
        a("COMMIT")
        p.sync()
        self.assertEqual(ids(p.ops("public.t")), [*range(10001, 12001), *range(13001, 15001),
                                                  *range(40001, 40011), *range(1, 2001), *range(5001, 7001)])
        wait_until("the spool to be empty", lambda: not self.spilled(p))

    def test_restart_in_the_middle(self):
        """A kill while a transaction is streamed, another while it is delivered; nothing of it is
        visible before its commit."""
        db, p = self.new()
        p.start()
        a = self.session(db)
        a("BEGIN")
        a(self.big(1, 5000))
        wait_until("a spool file", lambda: self.spilled(p))
        self.sql("INSERT INTO t VALUES (-1, 'other', '')", db)
        p.sync()
        p.cdcd.kill()
        a("SAVEPOINT s; " + self.big(20001, tag="never") + "; ROLLBACK TO s")
        p.start()
        a(self.big(10001, 5000))
        self.sql("INSERT INTO t VALUES (-2, 'other', '')", db)
        p.sync()
        self.assertEqual(ids(p.ops("public.t")), [-1, -2])
        path = os.path.join(p.out, "srv.public.t.jsonl")
        size = os.path.getsize(path)
        a("COMMIT")
        for _ in range(3):
            wait_until("some of it", lambda: os.path.getsize(path) > size or len(p.ops("public.t")) == 10002,
                       every=0.001)
            p.cdcd.kill()
            size = os.path.getsize(path)
            p.start()
        p.sync()
        self.assertEqual(ids(p.ops("public.t")), [-1, -2, *range(1, 5001), *range(10001, 15001)])
        positions = [r["headers"]["cdcd.pos"] for r in p.records("public.t")]
        self.assertEqual(positions, sorted(set(positions)))
        self.assertEqual(self.spilled(p), [])

    def test_ddl_inside(self):
        db, p = self.new()
        p.start()
        a = self.session(db)
        a("BEGIN")
        a(self.big(1))
        self.sql("CREATE TABLE other (id int PRIMARY KEY); ALTER PUBLICATION %s ADD TABLE other; "
                 "INSERT INTO other VALUES (1)" % p.slot, db)
        a("ALTER TABLE t ADD COLUMN n int DEFAULT 7")
        a("UPDATE t SET n = 8 WHERE id <= 1000")
        a("SAVEPOINT s; ALTER TABLE t DROP COLUMN tag; INSERT INTO t SELECT g, 'gone', 9 FROM "
          "generate_series(9001, 10000) g; ROLLBACK TO s")
        a("ALTER TABLE t RENAME COLUMN n TO m; INSERT INTO t SELECT g, 'z', '', 10 FROM "
          "generate_series(5001, 6000) g")
        a("COMMIT")
        p.sync()
        rows = p.rows("public.t")
        self.assertEqual(len(rows), 4000)
        self.assertEqual([(r["tag"], r.get("n"), r.get("m")) for r in (rows[0], rows[1999], rows[2000], rows[3999])],
                         [("x", None, None), ("x", None, None), ("x", 8, None), ("z", None, 10)])
        self.assertEqual(p.ops("public.other"), [] if not p.rows("public.other") else
                         [("c", {"id": 1}, {"id": 1})])

    def test_many_subtransactions(self):
        db, p = self.new()
        p.start()
        self.sql("""BEGIN; DO $$ BEGIN FOR i IN 1..10000 LOOP
            BEGIN INSERT INTO t VALUES (i, 's', 'pad'); IF i %% 3 = 0 THEN RAISE 'no'; END IF;
            EXCEPTION WHEN raise_exception THEN NULL; END; END LOOP; END $$; %s; COMMIT"""
                 % self.big(20001, 10), db)
        p.sync(timeout=120)
        self.assertEqual(ids(p.ops("public.t")), [i for i in range(1, 10001) if i % 3] + [*range(20001, 20011)])

    def test_two_phase(self):
        """Prepared and streamed."""
        db, p = self.new()
        self.sql("SELECT pg_create_logical_replication_slot('%s', 'pgoutput', false, true)" % p.slot, db)
        p.cdcd.config["snapshot.mode"] = "no_data"
        p.start()
        self.sql("BEGIN; %s; SAVEPOINT s; %s; ROLLBACK TO s; PREPARE TRANSACTION 'one %s'" % (
            self.big(1), self.big(5001, tag="never"), db), db)
        self.sql("BEGIN; %s; PREPARE TRANSACTION 'two %s'" % (self.big(10001, tag="never"), db), db)
        self.sql("INSERT INTO t VALUES (0, '', '')", db)
        p.sync()
        self.assertEqual(ids(p.ops("public.t")), [0])
        p.cdcd.kill()
        p.start()
        self.sql("ROLLBACK PREPARED 'two %s'; COMMIT PREPARED 'one %s'" % (db, db), db)
        p.sync()
        self.assertEqual(ids(p.ops("public.t")), [0, *range(1, 2001)])
        self.assertEqual(self.spilled(p), [])

    def test_streaming_off(self):
        db = self.db("CREATE TABLE t (id int PRIMARY KEY, tag text, pad text)")
        for mode in ("off", "on"):
            p = self.pipe(db, name=mode, source={"streaming": mode})
            p.cdcd.config["snapshot.mode"] = "no_data"
            p.start()
            first = 1 if mode == "off" else 50001
            self.sql("BEGIN; %s; SAVEPOINT s; %s; ROLLBACK TO s; COMMIT" % (
                self.big(first), self.big(first + 10000)), db)
            p.sync()
            self.assertEqual(ids(p.ops("public.t")), [*range(first, first + 2000)], mode)
            p.stop()

    def test_spill_limit(self):
        """A transaction that is too large for the spill area stops the pipeline, names the option,
        and comes whole when there is room."""
        db = self.db("CREATE TABLE t (id int PRIMARY KEY, tag text, pad text)")
        p = self.pipe(db, source={"spill.max.bytes": "1MB"}).start()
        self.sql("INSERT INTO t VALUES (0, '', '')", db)
        p.sync()
        self.sql(self.big(1, 12000), db)
        self.assertEqual(p.cdcd.wait(), 1)
        self.assertRegex(p.log_since_start(), r"spill\.max\.bytes")
        self.assertEqual(ids(p.ops("public.t")), [0])
        p.source["spill.max.bytes"] = "100MB"
        p.start().sync()
        self.assertEqual(ids(p.ops("public.t")), [*range(0, 12001)])


@pgcase.each_version()
class Changes(pgcase.PgCase):
    settings = SMALL

    def test_messages(self):
        db = self.db("CREATE TABLE t (id int PRIMARY KEY)")
        p = self.pipe(db, source={"message.prefix.exclude.list": ["secret.*"]}).start()
        self.sql("""
            BEGIN; INSERT INTO t VALUES (1); SELECT pg_logical_emit_message(true, 'p', 'in'); INSERT INTO t VALUES (2);
            SELECT pg_logical_emit_message(false, 'p', 'now'); COMMIT;
            BEGIN; SELECT pg_logical_emit_message(true, 'p', 'never');
            SELECT pg_logical_emit_message(false, 'p', 'kept'); ROLLBACK;
            SELECT pg_logical_emit_message(false, 'secret.x', 'no');
            SELECT pg_logical_emit_message(true, 'p', '');
            SELECT pg_logical_emit_message(true, 'ünï "q"', '\\x00ff'::bytea);""", db)
        p.sync()
        m = [r["value"] for r in p.records("message")]
        self.assertEqual([(v["message"]["prefix"], base64.b64decode(v["message"]["content"])) for v in m],
                         [("p", b"now"), ("p", b"in"), ("p", b"kept"), ("p", b""), ('ünï "q"', b"\x00\xff")])
        self.assertEqual([v["source"]["txId"] is None for v in m], [True, False, True, False, False])
        order = [r["headers"]["cdcd.pos"] for r in p.records()]
        self.assertEqual(len(order), len(set(order)))

    def test_truncate(self):
        setup = """CREATE TABLE a (id int PRIMARY KEY); CREATE TABLE b (id int REFERENCES a, x int PRIMARY KEY);
            CREATE TABLE c (id int PRIMARY KEY); CREATE TABLE not_captured (id int);
            INSERT INTO a VALUES (1); INSERT INTO b VALUES (1, 1); INSERT INTO c VALUES (1);"""
        change = """TRUNCATE c, a CASCADE; INSERT INTO a VALUES (2);
            BEGIN; TRUNCATE c RESTART IDENTITY; INSERT INTO c VALUES (5); COMMIT; TRUNCATE not_captured;"""
        source = {"table.exclude.list": ["public.not_.*"]}
        db = self.db(setup)
        p = self.pipe(db, source=source, format={"skipped.operations": "none"}).start()
        q = self.pipe(db, name="skipping", source=source).start()
        self.sql(change, db)
        p.sync()
        for table, want in (("a", ["r", "t", "c"]), ("b", ["r", "t"]), ("c", ["r", "t", "t", "c"])):
            self.assertEqual([r["value"]["op"] for r in p.records("public." + table)], want, table)
        t = [r for r in p.records() if r["value"]["op"] == "t"]
        self.assertEqual({json.dumps(r["key"]) for r in t}, {"null"})
        self.assertEqual(len({r["headers"]["cdcd.pos"] for r in t}), 4)
        q.sync()
        self.assertEqual([r["value"]["op"] for r in q.records("public.c")], ["r", "c"])

    def test_replica_identities(self):
        db = self.db("""
            CREATE TABLE d (id int PRIMARY KEY, v text); CREATE TABLE f (id int PRIMARY KEY, v text);
            CREATE TABLE i (id int PRIMARY KEY, u int NOT NULL, v text); CREATE TABLE n (id int PRIMARY KEY, v text);
            CREATE TABLE nokey (a int, v text); CREATE TABLE nokey_full (a int, v text);
            CREATE TABLE two (b int, a int, v text, PRIMARY KEY (a, b));
            CREATE UNIQUE INDEX i_u ON i (u);
            ALTER TABLE f REPLICA IDENTITY FULL; ALTER TABLE i REPLICA IDENTITY USING INDEX i_u;
            ALTER TABLE n REPLICA IDENTITY NOTHING; ALTER TABLE nokey_full REPLICA IDENTITY FULL;""")
        p = self.pipe(db).start()
        self.sql("""
            INSERT INTO d VALUES (1, 'a'); UPDATE d SET v = 'b'; UPDATE d SET id = 2; DELETE FROM d;
            INSERT INTO f VALUES (1, 'a'); UPDATE f SET v = 'b'; UPDATE f SET id = 2; DELETE FROM f;
            INSERT INTO i VALUES (1, 7, 'a'); UPDATE i SET v = 'b'; UPDATE i SET u = 8; DELETE FROM i;
            INSERT INTO n VALUES (1, 'a');
            INSERT INTO nokey VALUES (1, 'a');
            INSERT INTO nokey_full VALUES (1, 'a'), (1, 'a'); UPDATE nokey_full SET v = 'b'; DELETE FROM nokey_full;
            INSERT INTO two VALUES (1, 2, 'a'); UPDATE two SET b = 3; UPDATE two SET v = 'c';""", db)
        for table in ("n", "nokey"):
            r = self.sql("UPDATE %s SET v = 'x'" % table, db, check=False)
            self.assertNotEqual(r.returncode, 0)  # the server refuses what it could not log
        p.sync()
        change = ["c", "u", "d", "-", "c", "d", "-"]
        self.assertEqual([op for op, _, _ in p.ops("public.d")], change)
        self.assertEqual(p.rows("public.d", "d"), [{"id": 1, "v": None}, {"id": 2, "v": None}])
        f = p.records("public.f")
        self.assertEqual([r["value"] and r["value"]["before"] for r in f],
                         [None, {"id": 1, "v": "a"}, {"id": 1, "v": "b"}, None, None, {"id": 2, "v": "b"}, None])
        self.assertEqual([op for op, _, _ in p.ops("public.f")], change)
        self.assertEqual([op for op, _, _ in p.ops("public.n")], ["c"])
        self.assertEqual(p.ops("public.nokey"), [("c", None, {"a": 1, "v": "a"})])
        full = p.records("public.nokey_full")
        self.assertEqual([r["value"]["op"] for r in full if r["value"]], ["c", "c", "u", "u", "d", "d"])
        self.assertEqual({json.dumps(r["key"]) for r in full}, {"null"})
        self.assertEqual(full[2]["value"]["before"], {"a": 1, "v": "a"})
        two = p.ops("public.two")
        self.assertEqual([op for op, _, _ in two], ["c", "d", "-", "c", "u"])
        self.assertEqual(list(two[0][1].items()), [("a", 2), ("b", 1)])
        self.assertEqual(list(two[4][1].items()), [("a", 2), ("b", 3)])
        # A delete carries the index's columns only: they are the key, of all records.
        self.assertEqual([(op, k) for op, k, _ in p.ops("public.i")], [
            ("c", {"u": 7}), ("u", {"u": 7}), ("d", {"u": 7}), ("-", {"u": 7}), ("c", {"u": 8}),
            ("d", {"u": 8}), ("-", {"u": 8})])
        self.sql("INSERT INTO i VALUES (5, 50, 'x')", db)
        p.sync()
        self.assertEqual([*self.snapshot_like_stream(p, "public.i", db)], ['{"u": 50}'])

    def test_key_columns_of_the_config(self):
        db = self.db("CREATE TABLE m (a int, b int, v text); ALTER TABLE m REPLICA IDENTITY FULL")
        p = self.pipe(db, format={"message.key.columns": "public.m:b,a"}).start()
        self.sql("INSERT INTO m VALUES (1, 2, 'x'); UPDATE m SET v = 'y'; UPDATE m SET a = 5; DELETE FROM m", db)
        p.sync()
        self.assertEqual([(op, k) for op, k, _ in p.ops("public.m")], [
            ("c", {"b": 2, "a": 1}), ("u", {"b": 2, "a": 1}), ("d", {"b": 2, "a": 1}), ("-", {"b": 2, "a": 1}),
            ("c", {"b": 2, "a": 5}), ("d", {"b": 2, "a": 5}), ("-", {"b": 2, "a": 5})])

    PARTS = """
        CREATE TABLE m (id int, at int, v text, PRIMARY KEY (id, at)) PARTITION BY RANGE (at);
        CREATE TABLE m1 PARTITION OF m FOR VALUES FROM (0) TO (10);
        CREATE TABLE m2 (v text, at int NOT NULL, id int NOT NULL, PRIMARY KEY (id, at));
        ALTER TABLE m ATTACH PARTITION m2 FOR VALUES FROM (10) TO (20);
        CREATE TABLE m3 PARTITION OF m FOR VALUES FROM (20) TO (30) PARTITION BY RANGE (id);
        CREATE TABLE m3a PARTITION OF m3 FOR VALUES FROM (0) TO (100);
        INSERT INTO m VALUES (1, 1, 'one'), (2, 11, 'two'), (3, 21, 'three');"""
    PARTS_CHANGE = """
        INSERT INTO m VALUES (4, 2, 'four'), (5, 12, 'five'), (6, 22, 'six');
        UPDATE m SET v = 'TWO' WHERE id = 2; UPDATE m SET at = 13 WHERE id = 1; DELETE FROM m WHERE id = 3;"""

    def test_partitions_by_their_root(self):
        db = self.db(self.PARTS)
        p = self.pipe(db, source={"publish.via.partition.root": True}).start()
        self.sql(self.PARTS_CHANGE, db)
        # PostgreSQL 14 goes on for a while to take for a table of its own what it has seen as one.
        eight = "INSERT INTO m4 VALUES (8, 31, 'eight');" if self.version > 14 else ""
        self.sql("ALTER TABLE m DETACH PARTITION m1; INSERT INTO m VALUES (7, 14, 'seven'); "
                 "CREATE TABLE m4 (id int, at int, v text, PRIMARY KEY (id, at));" + eight +
                 "ALTER TABLE m ATTACH PARTITION m4 FOR VALUES FROM (30) TO (40); INSERT INTO m VALUES (9, 32, 'nine')", db)
        p.sync()
        self.assertEqual({t for t in cdcdtest.read_folder(p.out)} - {"srv.message"}, {"srv.public.m"})
        ops = p.ops("public.m")
        self.assertEqual(sorted((k["id"], a["v"]) for op, k, a in ops if op == "r"),
                         [(1, "one"), (2, "two"), (3, "three")])
        self.assertEqual([(op, k["id"], k["at"]) for op, k, a in ops if op != "r"], [
            ("c", 4, 2), ("c", 5, 12), ("c", 6, 22), ("u", 2, 11), ("d", 1, 1), ("-", 1, 1), ("c", 1, 13),
            ("d", 3, 21), ("-", 3, 21), ("c", 7, 14), ("c", 9, 32)])
        self.assertEqual([a for op, _, a in ops if op == "c"][1], {"id": 5, "at": 12, "v": "five"})

    def test_partitions_by_themselves(self):
        db = self.db(self.PARTS)
        p = self.pipe(db).start()
        self.sql(self.PARTS_CHANGE, db)
        self.sql("CREATE TABLE m4 (id int, at int, v text, PRIMARY KEY (id, at));"
                 "ALTER TABLE m ATTACH PARTITION m4 FOR VALUES FROM (30) TO (40); INSERT INTO m VALUES (9, 32, 'nine')", db)
        p.sync()
        self.assertEqual({t[11:] for t in cdcdtest.read_folder(p.out) if "public" in t}, {"m1", "m2", "m3a", "m4"})
        self.assertEqual([(op, k["id"]) for op, k, _ in p.ops("public.m1")],
                         [("r", 1), ("c", 4), ("d", 1), ("-", 1)])
        self.assertEqual([(op, k["id"]) for op, k, _ in p.ops("public.m2")],
                         [("r", 2), ("c", 5), ("u", 2), ("c", 1)])
        self.assertEqual([(op, k["id"]) for op, k, _ in p.ops("public.m3a")],
                         [("r", 3), ("c", 6), ("d", 3), ("-", 3)])

    def test_column_lists_and_row_filters(self):
        if self.version < 15:
            self.skipTest("PostgreSQL 15 and later")
        db = self.db("""CREATE TABLE t (id int PRIMARY KEY, secret text, open text, n int);
            CREATE TABLE u (id int PRIMARY KEY, v int);
            INSERT INTO t SELECT g, 'secret' || g, 'open' || g, g FROM generate_series(1, 4) g;
            INSERT INTO u VALUES (1, 1), (2, -1);
            CREATE PUBLICATION mine FOR TABLE t (id, open) WHERE (id > 2), u""")
        p = self.pipe(db, source={"publication.name": "mine"}).start()
        self.sql("INSERT INTO t VALUES (5, 's', 'o', 1), (-5, 's', 'o', 1); UPDATE t SET secret = 'x' WHERE id = 3;"
                 "UPDATE t SET id = -3 WHERE id = 3; UPDATE t SET id = 30 WHERE id = -3; INSERT INTO u VALUES (3, 3)", db)
        p.sync()
        ops = p.ops("public.t")
        self.assertNotIn("secret", json.dumps(p.records("public.t")))
        self.assertEqual([(op, k["id"]) for op, k, _ in ops if op == "r"], [("r", 3), ("r", 4)])
        self.assertEqual([(op, k["id"]) for op, k, _ in ops if op != "r"],
                         [("c", 5), ("u", 3), ("d", 3), ("-", 3), ("c", 30)])
        self.assertEqual(ops[0][2], {"id": 3, "open": "open3"})
        self.assertEqual(len(p.ops("public.u")), 3)

    def test_origin(self):
        if self.version < 16:
            self.skipTest("PostgreSQL 16 and later")
        db = self.db("CREATE TABLE t (id int PRIMARY KEY)")
        everything = self.pipe(db).start()
        own = self.pipe(db, name="own", source={"origin": "none"}).start()
        self.sql("SELECT pg_replication_origin_create('upstream'); "
                 "SELECT pg_replication_origin_session_setup('upstream'); "
                 "BEGIN; SELECT pg_replication_origin_xact_setup('0/ABC', '2024-01-01 00:00:00+00'); "
                 "INSERT INTO t VALUES (1); COMMIT; SELECT pg_replication_origin_session_reset(); "
                 "INSERT INTO t VALUES (2); SELECT pg_replication_origin_drop('upstream')", db)
        everything.sync()
        own.sync()
        self.assertEqual(ids(own.ops("public.t")), [2])
        one, two = everything.records("public.t")
        self.assertEqual((one["value"]["source"]["origin"], one["value"]["source"]["origin_lsn"]), ("upstream", 0xABC))
        self.assertIsNone(two["value"]["source"]["origin"])

    def test_filters_of_the_config(self):
        db = self.db("""CREATE SCHEMA s; CREATE TABLE s.t (id int PRIMARY KEY, a int, b text, c text);
            CREATE TABLE s.x (id int PRIMARY KEY); CREATE TABLE public.t (id int PRIMARY KEY);
            INSERT INTO s.t VALUES (1, 1, 'b', 'c')""")
        p = self.pipe(db, source={"schema.include.list": ["s"], "table.exclude.list": [r"s\.x"],
                                  "column.exclude.list": [r"s\.t\.(b|id)"]}).start()
        self.sql("INSERT INTO s.t VALUES (2, 2, 'bb', 'cc'); INSERT INTO s.x VALUES (1); INSERT INTO t VALUES (1)", db)
        p.sync()
        self.assertEqual({t for t in cdcdtest.read_folder(p.out) if "message" not in t}, {"srv.s.t"})
        self.assertEqual(p.rows("s.t"), [{"id": 1, "a": 1, "c": "c"}, {"id": 2, "a": 2, "c": "cc"}])

    def test_tables_made_while_running(self):
        db = self.db()
        p = self.pipe(db, source={"publication.autocreate.mode": "all_tables"}).start()
        self.sql("CREATE TABLE one (id int PRIMARY KEY, v text); INSERT INTO one VALUES (1, 'x');"
                 "BEGIN; CREATE TABLE two (id int PRIMARY KEY); INSERT INTO two VALUES (1); "
                 "ALTER TABLE two ADD v int; INSERT INTO two VALUES (2, 2); COMMIT;"
                 "CREATE UNLOGGED TABLE u (id int PRIMARY KEY); INSERT INTO u VALUES (1); "
                 "CREATE TEMP TABLE tt (id int PRIMARY KEY); INSERT INTO tt VALUES (1);"
                 "CREATE MATERIALIZED VIEW mv AS SELECT * FROM one; REFRESH MATERIALIZED VIEW mv", db)
        p.sync()
        self.assertEqual(p.rows("public.one"), [{"id": 1, "v": "x"}])
        self.assertEqual(p.rows("public.two"), [{"id": 1}, {"id": 2, "v": 2}])
        self.assertEqual({t for t in cdcdtest.read_folder(p.out) if "message" not in t}, {"srv.public.one", "srv.public.two"})

    def test_transactions_without_changes(self):
        """Nothing comes of them, and the slot goes on."""
        db = self.db("CREATE TABLE t (id int PRIMARY KEY); CREATE TABLE other (id int, v text);")
        p = self.pipe(db, source={"table.include.list": ["public.t"]}, format={"provide.transaction.metadata": True}).start()
        self.sql("DO $$ BEGIN FOR i IN 1..300 LOOP INSERT INTO other VALUES (i, 'x'); COMMIT; END LOOP; END $$;"
                 "BEGIN; CREATE TABLE z (); DROP TABLE z; COMMIT; VACUUM t; ANALYZE", db)
        self.sql("INSERT INTO t VALUES (1)", db)
        p.sync()
        self.assertEqual(ids(p.ops("public.t")), [1])
        self.assertEqual(len(p.records("transaction")), 6)  # that of the row, and those of sync()


@pgcase.one_version()
class Positions(pgcase.PgCase):
    settings = ["wal_sender_timeout=2s"]

    def test_idle_slot_follows(self):
        db = self.db("CREATE TABLE t (id int PRIMARY KEY); CREATE UNLOGGED TABLE u (v text); CREATE TABLE other (v text)")
        p = self.pipe(db, source={"table.include.list": ["public.t"]}).start()
        self.sql("INSERT INTO other SELECT repeat(md5(g::text), 30) FROM generate_series(1, 50000) g", db)
        wait_until("the slot to follow 50 MB of others' log", lambda: p.confirmed() < 1 << 20, timeout=20)
        # What the server writes when nobody changes anything moves it too.
        self.sql("CHECKPOINT; SELECT pg_switch_wal(); CHECKPOINT", db)
        wait_until("the slot to follow an idle server", lambda: p.confirmed() < 100000, timeout=20)
        p.stop()
        before = self.sql("SELECT confirmed_flush_lsn FROM pg_replication_slots", db)
        p.start().stop()
        self.assertEqual(self.sql("SELECT confirmed_flush_lsn >= '%s' FROM pg_replication_slots" % before, db), "t")

    def test_blocked_sink(self):
        """Standard output that nobody reads: the connection outlives wal_sender_timeout, and the
        slot stays behind what was not written."""
        db = self.db("CREATE TABLE t (id int PRIMARY KEY, pad text)")
        p = self.pipe(db, batches=4)
        p.cdcd.config["sink"] = {"file": {"path": "-"}}
        r, w = os.pipe()
        p.start(stdout=w)
        os.close(w)
        start = self.sql("SELECT confirmed_flush_lsn FROM pg_replication_slots", db)
        self.sql("INSERT INTO t SELECT g, repeat('x', 1000) FROM generate_series(1, 15000) g", db)
        end = self.pg.lsn(db)
        pid = self.sql("SELECT active_pid FROM pg_replication_slots", db)
        time.sleep(5)  # more than twice wal_sender_timeout: this is the point
        self.assertEqual(self.sql("SELECT active_pid FROM pg_replication_slots", db), pid)
        self.assertEqual(self.sql("SELECT confirmed_flush_lsn < '%s' FROM pg_replication_slots" % end, db), "t", start)
        got = []

        def drain():
            with os.fdopen(r, "rb") as f:
                for line in f:
                    got.append(json.loads(line))
        reader = threading.Thread(target=drain)
        reader.start()
        wait_until("all rows", lambda: len(got) >= 15000)
        self.assertEqual(self.sql("SELECT active_pid FROM pg_replication_slots", db), pid)
        wait_until("the slot to follow", lambda: p.confirmed() < 1 << 20)
        p.stop()
        reader.join()
        self.assertEqual([x["key"]["id"] for x in got], [*range(1, 15001)])

    def test_slot_never_passes_the_sink(self):
        """While changes flow, what the slot has confirmed is always in the folder."""
        db = self.db("CREATE TABLE t (id bigserial PRIMARY KEY, lsn pg_lsn DEFAULT pg_current_wal_insert_lsn(), pad text)")
        p = self.pipe(db, source={"status.update.interval.ms": 100}).start()
        load = self.pg.session(db)
        self.addCleanup(load.wait)
        self.addCleanup(load.stdin.close)
        load.stdin.write("DO $$ BEGIN FOR i IN 1..3000 LOOP INSERT INTO t (pad) VALUES (repeat('p', 500)); COMMIT; "
                         "END LOOP; END $$;\n")
        load.stdin.flush()
        checked = 0
        for _ in range(12):
            # Commits that end at or before the confirmed position.
            confirmed = self.sql("SELECT confirmed_flush_lsn - '0/0' FROM pg_replication_slots", db)
            have = {r["key"]["id"] for r in p.records("public.t")}
            want = self.sql("SELECT coalesce(max(id), 0) FROM (SELECT id, lead(lsn) OVER (ORDER BY id) AS next "
                            "FROM t) x WHERE next - '0/0' <= %s" % confirmed, db)
            missing = set(range(1, int(want) + 1)) - have
            self.assertFalse(missing)
            checked += int(want) > 0
        p.sync()
        self.assertGreater(checked, 0)
        p.cdcd.kill()

    def test_server_restarts(self):
        db = self.db("CREATE TABLE t (id int PRIMARY KEY)")
        p = self.pipe(db).start()
        self.sql("INSERT INTO t VALUES (1)", db)
        p.sync()
        self.pg.kill()
        self.pg.start_again()
        self.sql("INSERT INTO t VALUES (2)", db)
        p.sync()
        self.pg.restart()
        self.sql("INSERT INTO t VALUES (3)", db)
        p.sync()
        self.assertEqual(ids(p.ops("public.t")), [1, 2, 3])
        p.stop()


if __name__ == "__main__":
    pgcase.main()
