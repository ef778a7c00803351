"""What broke other capture tools: names, slots that are lost or taken, schema changes within a
transaction, values that are not sent, prepared transactions, interleaved commits and kills."""
import json
import os
import signal

import cdcdtest
import pgcase
from pgcase import PLACEHOLDER


@pgcase.each_version()
class Names(pgcase.PgCase):
    SETUP = """
        CREATE SCHEMA "My.Schema"; CREATE SCHEMA a;
        CREATE TABLE "My.Schema"."Ta.ble ""q"" ñ🐘" ("Id" int PRIMARY KEY, "select" text,
            "päron.x" int, "a b" text, "tab\tx" text, "quo""te" int, "back\\slash" int);
        CREATE TABLE public."a.b" (id int PRIMARY KEY, who text);
        CREATE TABLE a.b (id int PRIMARY KEY, who text);
        CREATE TABLE public."Orders" (id int PRIMARY KEY, who text);
        CREATE TABLE public.orders (id int PRIMARY KEY, who text);
        CREATE TABLE public."order$2024" (id int PRIMARY KEY, who text);
        CREATE TABLE public."order#2024" (id int PRIMARY KEY, who text);
        CREATE TABLE public."tbl_63_bytes_åååååååååååååååååååååååååå" (id int PRIMARY KEY);
        CREATE TABLE public."it's" ("it's" int PRIMARY KEY, "%s" text, "$1" text);
        CREATE PUBLICATION "Cdc.Pub" FOR ALL TABLES;"""
    ROWS = """
        INSERT INTO "My.Schema"."Ta.ble ""q"" ñ🐘" VALUES ({0}, 'r', 2, 's', 't', 5, 6);
        INSERT INTO public."a.b" VALUES ({0}, 'public dotted');
        INSERT INTO a.b VALUES ({0}, 'schema a');
        INSERT INTO public."Orders" VALUES ({0}, 'upper');
        INSERT INTO public.orders VALUES ({0}, 'lower');
        INSERT INTO public."order$2024" VALUES ({0}, 'dollar');
        INSERT INTO public."order#2024" VALUES ({0}, 'hash');
        INSERT INTO public."tbl_63_bytes_åååååååååååååååååååååååååå" VALUES ({0});
        INSERT INTO public."it's" VALUES ({0}, 'percent', 'dollar');"""

    def test_names(self):
        db = self.db(self.SETUP + self.ROWS.format(1))
        p = self.pipe(db, source={"publication.name": "Cdc.Pub"}).start()
        self.sql(self.ROWS.format(2) + """
            UPDATE "My.Schema"."Ta.ble ""q"" ñ🐘" SET "päron.x" = 3 WHERE "Id" = 2;
            DELETE FROM public."it's" WHERE "it's" = 1;""", db)
        p.sync()
        topics = cdcdtest.read_folder(p.out)
        odd = topics["srv.My.Schema.Ta.ble__q_____"]
        self.assertEqual({(r["value"]["source"]["schema"], r["value"]["source"]["table"]) for r in odd},
                         {("My.Schema", 'Ta.ble "q" ñ🐘')})
        self.assertEqual([(r["value"]["op"], r["key"]) for r in odd],
                         [("r", {"Id": 1}), ("c", {"Id": 2}), ("u", {"Id": 2})])
        self.assertEqual(odd[1]["value"]["after"], {
            "Id": 2, "select": "r", "päron.x": 2, "a b": "s", "tab\tx": "t", 'quo"te': 5, "back\\slash": 6})
        self.assertEqual(odd[2]["value"]["after"]["päron.x"], 3)

        def who(topic):
            return sorted((r["value"]["op"], r["value"]["source"]["schema"], r["value"]["source"]["table"],
                           r["value"]["after"]["who"]) for r in topics[topic])
        self.assertEqual(who("srv.public.a.b"), [("c", "public", "a.b", "public dotted"),
                                                 ("r", "public", "a.b", "public dotted")])
        self.assertEqual(who("srv.a.b"), [("c", "a", "b", "schema a"), ("r", "a", "b", "schema a")])
        self.assertEqual({w[3] for w in who("srv.public.Orders")}, {"upper"})
        self.assertEqual({w[3] for w in who("srv.public.orders")}, {"lower"})
        self.assertEqual({w[2] for w in who("srv.public.order_2024")}, {"order$2024", "order#2024"})
        self.assertRegex(p.cdcd.logs(), r'warn .*"order#2024".*"order\$2024"|warn .*"order\$2024".*"order#2024"')
        long_name = topics["srv.public.tbl_63_bytes_" + "_" * 25]
        self.assertEqual({r["value"]["source"]["table"] for r in long_name},
                         {"tbl_63_bytes_" + "å" * 25})
        self.assertEqual([(r["value"] and r["value"]["op"], r["key"]) for r in topics["srv.public.it_s"]],
                         [("r", {"it's": 1}), ("c", {"it's": 2}), ("d", {"it's": 1}), (None, {"it's": 1})])

    def test_lists_tell_twins_apart(self):
        db = self.db(self.SETUP + self.ROWS.format(1))
        for include, exclude, want in (
                (["public.orders"], [], {"public.orders"}),
                (["public.Orders"], [], {"public.Orders"}),
                ([r"public\.order\$2024"], [], {"public.order_2024"}),
                ([r"public\.a\.b"], [], {"public.a.b"}),
                ([r"a\.b"], [], {"a.b"}),
                ([r"My\.Schema\.Ta\.ble.*"], [], {"My.Schema.Ta.ble__q_____"}),
                ([], [r"public\..*", r"a\..*"], {"My.Schema.Ta.ble__q_____"})):
            with self.subTest(include=include, exclude=exclude):
                p = self.pipe(db, name="n%d" % len(self._runs), source={
                    "table.include.list": include, "table.exclude.list": exclude})
                p.cdcd.config["snapshot.mode"] = "initial_only"
                p.start(wait=False)
                self.assertEqual(p.cdcd.wait(), 0, p.cdcd.logs())
                self.assertEqual({t[4:] for t in cdcdtest.read_folder(p.out)}, want)


@pgcase.each_version()
class Ddl(pgcase.PgCase):
    def test_within_a_transaction(self):
        db = self.db("CREATE TABLE ddl (id int PRIMARY KEY, v text, n int)")
        p = self.pipe(db).start()
        self.sql("""
            BEGIN;
            INSERT INTO ddl VALUES (1, 'four', 1);
            ALTER TABLE ddl ADD COLUMN c int DEFAULT 5;
            INSERT INTO ddl VALUES (2, 'mid', 2, 50);
            UPDATE ddl SET c = 6 WHERE id = 1;
            ALTER TABLE ddl ALTER COLUMN v TYPE int USING length(v);
            INSERT INTO ddl VALUES (3, 33, 3, 7);
            ALTER TABLE ddl RENAME COLUMN v TO w;
            UPDATE ddl SET w = 34 WHERE id = 3;
            SAVEPOINT s;
            ALTER TABLE ddl DROP COLUMN n;
            INSERT INTO ddl VALUES (4, 44, 8);
            ROLLBACK TO SAVEPOINT s;
            INSERT INTO ddl VALUES (5, 55, 5, 9);
            COMMIT;
            ALTER TABLE ddl ADD COLUMN later uuid DEFAULT gen_random_uuid();
            UPDATE ddl SET c = 0 WHERE id = 5;""", db)
        p.sync()
        ops = [(op, after) for op, _, after in p.ops("public.ddl")]
        self.assertEqual(ops[:6], [
            ("c", {"id": 1, "v": "four", "n": 1}), ("c", {"id": 2, "v": "mid", "n": 2, "c": 50}),
            ("u", {"id": 1, "v": "four", "n": 1, "c": 6}), ("c", {"id": 3, "v": 33, "n": 3, "c": 7}),
            ("u", {"id": 3, "w": 34, "n": 3, "c": 7}), ("c", {"id": 5, "w": 55, "n": 5, "c": 9})])
        self.assertEqual(len(ops), 7)
        self.assertEqual((ops[6][0], ops[6][1]["c"]), ("u", 0))
        self.assertRegex(ops[6][1]["later"], "^[0-9a-f-]{36}$")
        schemas = [r["headers"]["cdcd.schema"] for r in p.records("public.ddl")]
        self.assertEqual(len(set(schemas)), 5)  # a version for each of the five shapes
        self.assertEqual((schemas[1], schemas[4]), (schemas[2], schemas[5]))

    def test_swapped_renamed_and_made_anew(self):
        """The topic is the name at the time of the change; rows of one table never come under the
        columns of another."""
        db = self.db("CREATE TABLE a (id int PRIMARY KEY, of_a text); INSERT INTO a VALUES (1, 'a');"
                     "CREATE TABLE b (id int PRIMARY KEY, of_b int, more int); INSERT INTO b VALUES (1, 2, 3)")
        p = self.pipe(db, source={"publication.autocreate.mode": "all_tables"}).start()
        self.sql("""
            BEGIN; INSERT INTO a VALUES (2, 'before'); INSERT INTO b VALUES (2, 2, 2);
            ALTER TABLE a RENAME TO tmp; ALTER TABLE b RENAME TO a; ALTER TABLE tmp RENAME TO b;
            INSERT INTO a VALUES (3, 3, 3); INSERT INTO b VALUES (3, 'after'); COMMIT;
            INSERT INTO a VALUES (4, 4, 4); INSERT INTO b VALUES (4, 'after');
            DROP TABLE a; CREATE TABLE a (id int PRIMARY KEY, fresh date);
            INSERT INTO a VALUES (5, '2000-01-01');
            ALTER TABLE b DROP CONSTRAINT a_pkey; ALTER TABLE b ADD PRIMARY KEY (id, of_a);
            INSERT INTO b VALUES (6, 'k');
            ALTER TABLE b SET SCHEMA public; CREATE SCHEMA other; ALTER TABLE b SET SCHEMA other;
            INSERT INTO other.b VALUES (7, 'k');
            CREATE TABLE made (id int PRIMARY KEY); INSERT INTO made VALUES (1);
            DROP TABLE made; CREATE TABLE made (other text PRIMARY KEY); INSERT INTO made VALUES ('x');""", db)
        p.sync()
        self.assertEqual(p.rows("public.a", "c"), [
            {"id": 2, "of_a": "before"}, {"id": 3, "of_b": 3, "more": 3}, {"id": 4, "of_b": 4, "more": 4},
            {"id": 5, "fresh": 10957}])
        self.assertEqual(p.rows("public.b", "c"), [
            {"id": 2, "of_b": 2, "more": 2}, {"id": 3, "of_a": "after"}, {"id": 4, "of_a": "after"},
            {"id": 6, "of_a": "k"}])
        self.assertEqual([k for _, k, _ in p.ops("public.b")][-1], {"id": 6, "of_a": "k"})
        self.assertEqual(p.ops("other.b"), [("c", {"id": 7, "of_a": "k"}, {"id": 7, "of_a": "k"})])
        self.assertEqual([a for _, _, a in p.ops("public.made")], [{"id": 1}, {"other": "x"}])

    def test_dropped_generated_and_renamed_columns(self):
        db = self.db("""CREATE TABLE g (gone1 int, id int PRIMARY KEY, x int, gone2 text, y int,
            twice int GENERATED ALWAYS AS (x * 2) STORED, ident int GENERATED ALWAYS AS IDENTITY);
            ALTER TABLE g DROP COLUMN gone1; ALTER TABLE g DROP COLUMN gone2;
            INSERT INTO g (id, x, y) VALUES (1, 10, 20)""")
        p = self.pipe(db).start()
        self.sql("""INSERT INTO g (id, x, y) VALUES (2, 11, 21); UPDATE g SET x = 12 WHERE id = 2;
            ALTER TABLE g DROP COLUMN y; ALTER TABLE g ADD COLUMN z text DEFAULT 'zz';
            INSERT INTO g (id, x) VALUES (3, 13); UPDATE g SET x = 0 WHERE id = 1""", db)
        p.sync()
        self.assertEqual([(op, a["id"], a["x"], a.get("y"), a.get("z")) for op, _, a in p.ops("public.g")],
                         [("r", 1, 10, 20, None), ("c", 2, 11, 21, None), ("u", 2, 12, 21, None),
                          ("c", 3, 13, None, "zz"), ("u", 1, 0, None, "zz")])
        # The log does not carry generated columns: nor do snapshots, so that both are alike.
        self.assertEqual(len({tuple(a) for _, _, a in p.ops("public.g")}), 2)


@pgcase.each_version()
class Toast(pgcase.PgCase):
    SETUP = """
        CREATE TABLE t_def (id int PRIMARY KEY, big text, j jsonb, arr text[], n int);
        CREATE TABLE t_full (id int PRIMARY KEY, big text, j jsonb, arr text[], n int);
        CREATE TABLE t_key (k text PRIMARY KEY, v int);
        CREATE TABLE t_index (id int NOT NULL, u text NOT NULL, big text, n int);
        CREATE UNIQUE INDEX t_index_u ON t_index (u);
        ALTER TABLE t_index REPLICA IDENTITY USING INDEX t_index_u;
        CREATE TABLE t_kinds (id int PRIMARY KEY, b bytea, i int[], l int8[], ba bytea[], num numeric, ts
            tsvector, x xml, n int);
        ALTER TABLE t_def ALTER big SET STORAGE EXTERNAL, ALTER j SET STORAGE EXTERNAL,
            ALTER arr SET STORAGE EXTERNAL;
        ALTER TABLE t_full ALTER big SET STORAGE EXTERNAL, ALTER j SET STORAGE EXTERNAL,
            ALTER arr SET STORAGE EXTERNAL;
        ALTER TABLE t_key ALTER k SET STORAGE EXTERNAL;
        ALTER TABLE t_index ALTER u SET STORAGE EXTERNAL, ALTER big SET STORAGE EXTERNAL;
        ALTER TABLE t_kinds ALTER b SET STORAGE EXTERNAL, ALTER i SET STORAGE EXTERNAL,
            ALTER l SET STORAGE EXTERNAL, ALTER ba SET STORAGE EXTERNAL, ALTER x SET STORAGE EXTERNAL,
            ALTER ts SET STORAGE EXTERNAL;
        ALTER TABLE t_full REPLICA IDENTITY FULL;"""
    CHANGES = """
        INSERT INTO t_def VALUES (1, repeat('x', 9000), jsonb_build_object('k', repeat('j', 9000)),
            ARRAY[repeat('a', 9000)], 1);
        INSERT INTO t_full SELECT * FROM t_def;
        UPDATE t_def SET n = 2 WHERE id = 1;
        UPDATE t_full SET n = 2 WHERE id = 1;
        UPDATE t_def SET id = 10 WHERE id = 1;
        UPDATE t_full SET id = 10 WHERE id = 1;
        UPDATE t_def SET big = NULL, n = 3;
        UPDATE t_full SET big = NULL, n = 3;
        UPDATE t_def SET big = repeat('y', 9000);
        UPDATE t_def SET big = big || '';
        DELETE FROM t_def; DELETE FROM t_full;
        INSERT INTO t_key VALUES (repeat('k', 2500), 1);
        UPDATE t_key SET v = 2;
        UPDATE t_key SET k = repeat('l', 2500);
        DELETE FROM t_key;
        INSERT INTO t_index VALUES (1, repeat('u', 2500), repeat('b', 9000), 1);
        UPDATE t_index SET n = 2;
        UPDATE t_index SET u = repeat('v', 2500);
        DELETE FROM t_index;
        INSERT INTO t_kinds SELECT 1, decode(repeat('ab', 9000), 'hex'), array_agg(g), array_agg(g::int8),
            ARRAY[decode(repeat('ab', 9000), 'hex')], 1.5, to_tsvector('simple', string_agg('w' || g, ' ')),
            ('<a>' || repeat('x', 9000) || '</a>')::xml, 1 FROM generate_series(1, 3000) g;
        UPDATE t_kinds SET n = 2;"""

    def check(self, p):
        big, j, arr = "x" * 9000, {"k": "j" * 9000}, ["a" * 9000]
        d = p.records("public.t_def")
        self.assertEqual([r["value"] and r["value"]["op"] for r in d],
                         ["c", "u", "d", None, "c", "u", "u", "u", "d", None])
        u = d[1]["value"]
        self.assertIsNone(u["before"])
        self.assertEqual(u["after"], {"id": 1, "big": PLACEHOLDER, "j": PLACEHOLDER,
                                      "arr": [PLACEHOLDER], "n": 2})
        self.assertEqual((d[2]["key"], d[3]["key"], d[4]["key"]), ({"id": 1}, {"id": 1}, {"id": 10}))
        self.assertEqual(d[2]["headers"]["__debezium.newkey"], {"id": 10})
        self.assertEqual(d[4]["headers"]["__debezium.oldkey"], {"id": 1})
        self.assertEqual(d[4]["value"]["after"], {**u["after"], "id": 10})
        self.assertEqual(d[5]["value"]["after"], {"id": 10, "big": None, "j": PLACEHOLDER,
                                                  "arr": [PLACEHOLDER], "n": 3})
        self.assertEqual([r["value"]["after"]["big"] for r in d[6:8]], ["y" * 9000] * 2)
        f = p.records("public.t_full")
        self.assertEqual([r["value"] and r["value"]["op"] for r in f],
                         ["c", "u", "d", None, "c", "u", "d", None])
        for row in (f[1]["value"]["before"], f[1]["value"]["after"], f[2]["value"]["before"],
                    f[4]["value"]["after"], f[5]["value"]["before"]):
            self.assertEqual((row["big"], json.loads(row["j"]), row["arr"]), (big, j, arr))
        self.assertEqual((f[5]["value"]["after"]["big"], f[5]["value"]["after"]["arr"]), (None, arr))
        k, l = "k" * 2500, "l" * 2500
        self.assertEqual(p.ops("public.t_key"), [
            ("c", {"k": k}, {"k": k, "v": 1}), ("u", {"k": k}, {"k": k, "v": 2}),
            ("d", {"k": k}, None), ("-", {"k": k}, None), ("c", {"k": l}, {"k": l, "v": 2}),
            ("d", {"k": l}, None), ("-", {"k": l}, None)])
        ops = p.ops("public.t_index")
        self.assertEqual([op for op, _, _ in ops], ["c", "u", "d", "-", "c", "d", "-"])
        self.assertEqual([k["u"][0] for _, k, _ in ops], ["u", "u", "u", "u", "v", "v", "v"])
        self.assertEqual(ops[1][2], {"id": 1, "u": "u" * 2500, "big": PLACEHOLDER, "n": 2})
        kinds = p.rows("public.t_kinds")[1]
        self.assertEqual(kinds["n"], 2)
        for name in ("b", "i", "l", "ba", "ts", "x"):
            self.assertTrue(kinds[name], name)
        self.assertEqual(kinds["x"], PLACEHOLDER)
        self.assertEqual(kinds["num"], p.rows("public.t_kinds")[0]["num"])

    def test_values_that_are_not_sent(self):
        db = self.db(self.SETUP)
        p = self.pipe(db).start()
        self.sql(self.CHANGES, db)
        p.sync()
        self.check(p)

    def test_after_a_restart_and_in_one_transaction(self):
        db = self.db(self.SETUP)
        p = self.pipe(db).start()
        p.stop()
        self.sql("BEGIN;" + self.CHANGES + "COMMIT;", db)
        p.start().sync()
        self.check(p)


@pgcase.each_version()
class Slots(pgcase.PgCase):
    SETUP = """CREATE TABLE t_gap (id int PRIMARY KEY, v text); CREATE TABLE fill (pad text);
        INSERT INTO t_gap VALUES (1, 'one'), (2, 'two'); CREATE PUBLICATION cdc FOR TABLE t_gap;"""
    SOURCE = {"publication.name": "cdc", "table.include.list": ["public.t_gap"]}

    def stopped(self):
        db = self.db(self.SETUP)
        p = self.pipe(db, source=self.SOURCE).start()
        p.sync().stop()
        return db, p

    def state(self, p):
        with open(os.path.join(p.out, ".cdcd-%s" % p.cdcd.config["name"]), "rb") as f:
            return f.read()

    def refused(self, p, *patterns):
        before = cdcdtest.read_folder(p.out)
        p.fails(3, *patterns)
        p.fails(3, *patterns)  # nor at the next try
        self.assertEqual(cdcdtest.read_folder(p.out), before)

    def when_needed(self, p, db, ids):
        p.cdcd.config["snapshot.mode"] = "when_needed"
        p.start()
        p.sync()
        self.assertRegex(p.log_since_start(), r"warn .*(deleted|delete)")
        self.assertEqual([(op, k["id"]) for op, k, _ in p.ops("public.t_gap")][-len(ids):],
                         [("r", i) for i in ids])
        self.sql("INSERT INTO t_gap VALUES (100, 'goes on')", db)
        p.sync().stop()
        self.assertEqual(p.ops("public.t_gap")[-1][:2], ("c", {"id": 100}))

    def test_invalidated(self):
        db, p = self.stopped()
        self.sql("DELETE FROM t_gap WHERE id = 1; ALTER SYSTEM SET max_slot_wal_keep_size = '1MB'; "
                 "SELECT pg_reload_conf();", db)

        def lost():
            self.sql("INSERT INTO fill SELECT repeat(md5(g::text), 30) FROM generate_series(1, 20000) g; "
                     "SELECT pg_switch_wal(); CHECKPOINT;", db)
            return self.sql("SELECT wal_status FROM pg_replication_slots", db) == "lost"
        cdcdtest.wait_until("the slot to be lost", lost)
        self.sql("INSERT INTO t_gap VALUES (3, 'after the gap'); "
                 "ALTER SYSTEM RESET max_slot_wal_keep_size; SELECT pg_reload_conf();", db)
        self.refused(p, p.slot + ".*invalidated", r"pg_drop_replication_slot|when_needed")
        self.when_needed(p, db, [2, 3])

    def test_dropped(self):
        db, p = self.stopped()
        self.sql("SELECT pg_drop_replication_slot('%s'); DELETE FROM t_gap WHERE id = 1" % p.slot, db)
        self.refused(p, p.slot + ".*does not exist", "when_needed")
        self.assertEqual(self.sql("SELECT count(*) FROM pg_replication_slots", db), "0")
        self.when_needed(p, db, [2])

    def test_made_anew_behind_our_back(self):
        db, p = self.stopped()
        self.sql("SELECT pg_drop_replication_slot('%s'); INSERT INTO t_gap VALUES (3, 'gap'); "
                 "SELECT pg_create_logical_replication_slot('%s', 'pgoutput')" % (p.slot, p.slot), db)
        self.refused(p, p.slot + ".*past our position", "when_needed")
        self.when_needed(p, db, [1, 2, 3])

    def test_advanced_by_another(self):
        db, p = self.stopped()
        self.sql("INSERT INTO t_gap VALUES (3, 'read by another')", db)
        self.sql("SELECT pg_replication_slot_advance('%s', pg_current_wal_lsn())" % p.slot, db)
        self.refused(p, p.slot + ".*past our position", "when_needed")

    def test_dropped_while_running(self):
        """The server ends our connection: the next one finds no slot."""
        db = self.db(self.SETUP)
        p = self.pipe(db, source=self.SOURCE).start()
        p.sync()
        self.sql("SELECT pg_terminate_backend(active_pid) FROM pg_replication_slots; ", db)
        self.sql("DO $$ BEGIN FOR i IN 1..100 LOOP BEGIN PERFORM pg_drop_replication_slot('%s'); RETURN; "
                 "EXCEPTION WHEN object_in_use THEN PERFORM pg_terminate_backend(active_pid) FROM "
                 "pg_replication_slots WHERE active; PERFORM pg_sleep(0.02); END; END LOOP; END $$" % p.slot, db)
        self.assertEqual(p.cdcd.wait(), 3, p.cdcd.logs())
        self.assertRegex(p.log_since_start(), "does not exist")

    def test_taken(self):
        """Another process holds the slot: a warning, and on with it when it is free."""
        db, p = self.stopped()
        recv = os.path.join(self.pg.env["CDCD_PG_BIN"], "pg_recvlogical")
        if not os.path.exists(recv):
            self.skipTest("no pg_recvlogical")
        import subprocess
        held = subprocess.Popen([recv, "-h", "127.0.0.1", "-p", self.pg.env["CDCD_PG_PORT"], "-U", "postgres",
                                 "-d", db, "--slot", p.slot, "--start", "-f", "/dev/null",
                                 "-o", "proto_version=1", "-o", "publication_names=cdc", "-F", "0",
                                 "-s", "0"], stderr=subprocess.DEVNULL)
        try:
            cdcdtest.wait_until("the slot to be taken", lambda: self.sql(
                "SELECT active FROM pg_replication_slots", db) == "t")
            p.start(wait=False)
            p.wait_log(r"warn .*is active for PID \d+")
            self.assertTrue(p.cdcd.alive())
            self.assertEqual(self.sql("SELECT count(*) FROM pg_replication_slots", db), "1")
        finally:
            held.send_signal(signal.SIGKILL)
            held.wait()
        self.sql("SELECT pg_terminate_backend(active_pid) FROM pg_replication_slots WHERE active", db)
        p.wait_log("streaming from")
        p.sync()

    def test_another_server(self):
        """The same name on another database system is not the slot that we knew."""
        if self.version != pgcase.NEWEST:
            self.skipTest("the same in every version")
        db, p = self.stopped()
        other = cdcdtest.Postgres(self.version)
        self.addCleanup(other.stop)
        other.sql("CREATE DATABASE " + db)
        other.sql(self.SETUP + "SELECT pg_create_logical_replication_slot('%s', 'pgoutput')" % p.slot, db)
        p.source["url"] = other.url(db)
        self.refused(p, "another database system", "when_needed")
        p.source["url"] = self.pg.url(db)
        p.start().sync()

    def test_failover(self):
        db = self.db(self.SETUP)
        p = self.pipe(db, source={**self.SOURCE, "slot.failover": True})
        if self.version < 17:
            p.fails(2, r"slot\.failover needs PostgreSQL 17")
            return
        p.start().sync()
        self.assertEqual(self.sql("SELECT failover FROM pg_replication_slots", db), "t")

    def test_wrong_kind_of_slot(self):
        db = self.db(self.SETUP)
        other = self.db()
        for sql, pattern in (
                ("SELECT pg_create_physical_replication_slot('%s')", "physical"),
                ("SELECT pg_create_logical_replication_slot('%s', 'test_decoding')", "test_decoding")):
            p = self.pipe(db, source=self.SOURCE)
            r = self.sql(sql % p.slot, db, check=False)
            if r.returncode:
                continue  # the plugin is not installed
            p.fails(2, p.slot, pattern, "slot.name")
            self.sql("SELECT pg_drop_replication_slot('%s')" % p.slot, db)
        p = self.pipe(db, source=self.SOURCE)
        self.sql("SELECT pg_create_logical_replication_slot('%s', 'pgoutput')" % p.slot, other)
        p.fails(2, p.slot, other, "slot.name")


@pgcase.each_version()
class TwoPhase(pgcase.PgCase):
    SETUP = "CREATE TABLE t2 (id int PRIMARY KEY, v text); CREATE PUBLICATION cdc FOR TABLE t2;"
    FIRST = """
        BEGIN; INSERT INTO t2 VALUES (1, 'later'); PREPARE TRANSACTION 'gid ''quoted'' {0}';
        BEGIN; INSERT INTO t2 VALUES (2, 'never'); PREPARE TRANSACTION 'g2 {0}';
        INSERT INTO t2 VALUES (3, 'between');"""
    SECOND = """
        COMMIT PREPARED 'gid ''quoted'' {0}';
        ROLLBACK PREPARED 'g2 {0}';
        INSERT INTO t2 VALUES (4, 'after');
        BEGIN; INSERT INTO t2 SELECT g, repeat('p', 300) FROM generate_series(1001, 2000) g;
        PREPARE TRANSACTION 'big {0}';
        COMMIT PREPARED 'big {0}';"""

    def run_it(self, two_phase, restart):
        db = self.db(self.SETUP)
        source = {"publication.name": "cdc"}
        p = self.pipe(db, source=source)
        if two_phase:
            self.sql("SELECT pg_create_logical_replication_slot('%s', 'pgoutput', false, true)" % p.slot, db)
            p.cdcd.config["snapshot.mode"] = "no_data"
        p.start()
        self.sql(self.FIRST.format(db), db)
        p.sync()
        if restart == "stop":
            p.stop().start()
        elif restart == "kill":
            p.cdcd.kill()
            p.start()
        p.sync()
        self.assertEqual([k["id"] for _, k, _ in p.ops("public.t2")], [3])
        self.sql(self.SECOND.format(db), db)
        if restart == "kill":
            p.cdcd.kill()
            p.start()
        p.sync()
        self.assertEqual([k["id"] for _, k, _ in p.ops("public.t2")], [3, 1, 4, *range(1001, 2001)])
        p.stop()
        # Nothing prepared is left: the slot goes on to the end.
        p.start()
        cdcdtest.wait_until("the slot to follow", lambda: p.confirmed() < 100000)

    def test_plain_slot(self):
        self.run_it(False, "stop")

    def test_plain_slot_killed(self):
        self.run_it(False, "kill")

    def test_two_phase_slot(self):
        self.run_it(True, "no")

    def test_two_phase_slot_restarted(self):
        self.run_it(True, "stop")

    def test_two_phase_slot_killed(self):
        self.run_it(True, "kill")


@pgcase.each_version()
class Interleaved(pgcase.PgCase):
    def test_kill_in_the_middle(self):
        """Commit order, and each row once, with a kill while one transaction is half delivered."""
        db = self.db("CREATE TABLE il (id int PRIMARY KEY, tx text, pad text)")
        p = self.pipe(db).start()
        a, b = self.pg.session(db), self.pg.session(db)
        for s in (a, b):
            self.addCleanup(s.wait)
            self.addCleanup(s.stdin.close)

        def say(s, sql):
            s.stdin.write(sql + "\n")
            s.stdin.flush()

        def count(where):
            return self.sql("SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND %s"
                            % where, db)
        say(a, "BEGIN; INSERT INTO il VALUES (1, 'A');")
        cdcdtest.wait_until("A", lambda: count("state = 'idle in transaction'") == "1")
        say(b, "BEGIN; INSERT INTO il SELECT g, 'B', repeat('b', 2000) FROM generate_series(101, 4000) g;")
        cdcdtest.wait_until("B", lambda: count("state = 'idle in transaction'") == "2")
        say(a, "INSERT INTO il VALUES (2, 'A');")
        self.sql("INSERT INTO il VALUES (50, 'C')", db)
        say(b, "COMMIT;")
        path = os.path.join(p.out, "srv.public.il.jsonl")
        cdcdtest.wait_until("some of B", lambda: os.path.exists(path) and os.path.getsize(path) > 100000,
                            every=0.001)
        p.cdcd.kill()
        p.start()
        cdcdtest.wait_until("B", lambda: len(p.ops("public.il")) >= 3901)
        p.cdcd.kill()
        p.start()
        say(a, "INSERT INTO il VALUES (3, 'A'); COMMIT;")
        cdcdtest.wait_until("A", lambda: self.sql("SELECT count(*) FROM il WHERE tx = 'A'", db) == "3")
        p.sync()
        self.assertEqual([k["id"] for _, k, _ in p.ops("public.il")], [50, *range(101, 4001), 1, 2, 3])
        p.stop()
        p.start().sync()
        self.assertEqual(len(p.ops("public.il")), 3904)


if __name__ == "__main__":
    pgcase.main()
