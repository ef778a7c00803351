"""Snapshots: chunks and workers, order and markers, modes, kills at any point with changes going
on, and tables that are altered meanwhile."""
import collections
import json
import os
import threading
import time

import cdcdtest
import pgcase
from cdcdtest import wait_until

FILL = "INSERT INTO %s SELECT g, 0, repeat('x', 200) FROM generate_series(1, %d) g;"


def ids(ops):
    return [k["id"] for _, k, _ in ops]


class Load:
    """Changes rows of t until stopped: versions only go up, keys come and go."""

    def __init__(self, pg, db, rows):
        self.pg, self.db, self.rows = pg, db, rows
        self.stopping = False
        self.thread = threading.Thread(target=self.run)
        self.thread.start()

    def run(self):
        n = 0
        while not self.stopping:
            n += 1
            self.pg.sql("""DO $$ BEGIN FOR i IN 1..20 LOOP
                UPDATE t SET ver = ver + 1 WHERE id = (random() * {0})::int;
                UPDATE t SET ver = ver + 1 WHERE id BETWEEN (random() * {0})::int AND 30;
                DELETE FROM t WHERE id = (random() * {0})::int AND id % 7 = 0;
                INSERT INTO t SELECT {0} + {1} * 100 + i, 0, 'new' WHERE i % 5 = 0;
                UPDATE t SET id = -id, ver = ver + 1 WHERE id = (random() * {0})::int AND id % 11 = 0;
                COMMIT; END LOOP; END $$""".format(self.rows, n), self.db)

    def stop(self):
        self.stopping = True
        self.thread.join()


@pgcase.each_version()
class Reading(pgcase.PgCase):
    def run_once(self, p, command="snapshot", *args):
        p.start(command, *args, wait=False)
        self.assertEqual(p.cdcd.wait(120), 0, p.cdcd.logs()[-4000:])
        return p

    def test_chunks_and_workers(self):
        db = self.db("CREATE TABLE t (id int PRIMARY KEY, ver int, pad text);" + FILL % ("t", 10000) +
                     "DELETE FROM t WHERE id % 3 = 0; DELETE FROM t WHERE id BETWEEN 4000 AND 6000; VACUUM t;")
        want = {int(x) for x in self.sql("SELECT id FROM t", db).split()}
        for workers, chunk in ((1, "64MB"), (4, "16KB"), (3, "100KB")):
            p = self.pipe(db, name="w%d" % workers, source={"snapshot.chunk.size": chunk},
                          snapshot__workers=workers)
            self.run_once(p)
            got = ids(p.ops("public.t"))
            self.assertEqual(len(got), len(want))
            self.assertEqual(set(got), want)
            positions = [r["headers"]["cdcd.pos"] for r in p.records("public.t")]
            self.assertEqual(len(set(positions)), len(positions))
            self.assertEqual({len(x) for x in positions}, {len(positions[0])})
            markers = collections.Counter(r["value"]["source"]["snapshot"] for r in p.records("public.t"))
            self.assertEqual(markers, {"first": 1, "true": len(got) - 2, "last": 1})

    def test_order_and_markers(self):
        setup = "".join("CREATE TABLE %s (id int PRIMARY KEY); INSERT INTO %s SELECT generate_series(1, %d);"
                        % (t, t, n) for t, n in (('"B"', 1), ("a", 3), ("z", 2), ("empty", 0), ("m", 1), ("zz", 0)))
        db = self.db(setup + "CREATE TABLE nokey (v text); INSERT INTO nokey VALUES ('x'), (NULL), ('x');"
                     "CREATE SCHEMA s0; CREATE TABLE s0.t (id int PRIMARY KEY); INSERT INTO s0.t VALUES (1);")
        p = self.pipe(db)
        p.cdcd.config["sink"] = {"file": {"path": "-"}}
        r = p.cdcd.run("snapshot")
        records = [json.loads(line) for line in r.stdout.splitlines()]
        self.assertEqual([(r["topic"][4:], r["value"]["source"]["snapshot"]) for r in records], [
            ("public.B", "first"), ("public.a", "first_in_data_collection"), ("public.a", "true"),
            ("public.a", "last_in_data_collection"), ("public.m", records[4]["value"]["source"]["snapshot"]),
            ("public.nokey", "first_in_data_collection"), ("public.nokey", "true"),
            ("public.nokey", "last_in_data_collection"), ("public.z", "first_in_data_collection"),
            ("public.z", "last_in_data_collection"), ("s0.t", "last")])
        self.assertIn("data_collection", records[4]["value"]["source"]["snapshot"])
        self.assertEqual([r["value"]["after"]["v"] for r in records if r["topic"] == "srv.public.nokey"],
                         ["x", None, "x"])
        self.assertEqual({r["value"]["op"] for r in records}, {"r"})
        self.assertEqual(len({r["value"]["source"]["lsn"] for r in records}), 1)
        order = [r["headers"]["cdcd.pos"] for r in records]
        self.assertEqual(order, sorted(set(order)))

    def test_many_tables(self):
        db = self.db("DO $$ BEGIN FOR i IN 1..200 LOOP EXECUTE format('CREATE TABLE t%s (id int PRIMARY KEY); "
                     "INSERT INTO t%s SELECT generate_series(1, %s)', i, i, i % 5); END LOOP; END $$")
        p = self.run_once(self.pipe(db))
        topics = cdcdtest.read_folder(p.out)
        self.assertEqual({t: len(r) for t, r in topics.items() if r},
                         {"srv.public.t%d" % i: i % 5 for i in range(1, 201) if i % 5})

    def test_odd_tables(self):
        """A child table has rows of its own; columns without a name in common; no columns; views and
        unlogged tables are left out."""
        db = self.db("""CREATE TABLE parent (id int PRIMARY KEY, v text); CREATE TABLE child (w text, PRIMARY KEY (id)) INHERITS (parent);
            INSERT INTO parent VALUES (1, 'p'); INSERT INTO child VALUES (2, 'c', 'w');
            CREATE TABLE nothing (); INSERT INTO nothing DEFAULT VALUES;
            CREATE VIEW v AS SELECT * FROM parent; CREATE UNLOGGED TABLE u (id int PRIMARY KEY); INSERT INTO u VALUES (1);
            CREATE TABLE wide (id int PRIMARY KEY, %s); INSERT INTO wide (id, c500) VALUES (1, 5);"""
                     % ", ".join("c%d int" % i for i in range(1, 1001)))
        p = self.pipe(db, source={"table.exclude.list": [r"public\.nothing"]}).start()
        self.sql("INSERT INTO parent VALUES (3, 'p'); INSERT INTO child VALUES (4, 'c', 'w'); INSERT INTO wide VALUES (2, 7)", db)
        p.sync()
        self.assertEqual(p.ops("public.parent"), [("r", {"id": 1}, {"id": 1, "v": "p"}), ("c", {"id": 3}, {"id": 3, "v": "p"})])
        self.assertEqual([k["id"] for _, k, _ in p.ops("public.child")], [2, 4])
        self.assertEqual([len(a) for _, _, a in p.ops("public.wide")], [1001, 1001])
        self.assertEqual({t for t in cdcdtest.read_folder(p.out)} - {"srv.message"},
                         {"srv.public.parent", "srv.public.child", "srv.public.wide"})

    def test_snapshot_then_run(self):
        db = self.db("CREATE TABLE t (id int PRIMARY KEY, ver int, pad text);" + FILL % ("t", 3000))
        p = self.pipe(db, source={"snapshot.chunk.size": "32KB"})
        load = Load(self.pg, db, 3000)
        try:
            self.run_once(p)
            snapshot = len(p.ops("public.t"))
            wait_until("changes between", lambda: int(self.sql("SELECT max(ver) FROM t", db)) > 3)
        finally:
            load.stop()
        p.start().sync()
        self.assertEqual([op for op, _, _ in p.ops("public.t")[:snapshot]], ["r"] * snapshot)
        self.assertNotIn("r", [op for op, _, _ in p.ops("public.t")[snapshot:]])
        self.complete(p, db, resumed=False)

    def complete(self, p, db, resumed=True):
        """Each version of each key at most once, in order, and the last is the table's. Where the
        snapshot was interrupted, a row that was changed meanwhile may come as that change only, or
        as that change and then as the row."""
        last = {}
        for r in p.records("public.t"):
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
        table = {int(k): int(v) for k, v in (x.split("|") for x in self.sql("SELECT id, ver FROM t", db).split())}
        self.assertEqual({k: v for k, v in table.items() if last.get(k) != v}, {})
        self.assertEqual({k: v for k, v in last.items() if table.get(k) != v}, {})

    def test_one_table_of_two(self):
        db = self.db("CREATE TABLE a (id int PRIMARY KEY); CREATE TABLE b (id int PRIMARY KEY); "
                     "INSERT INTO a VALUES (1); INSERT INTO b VALUES (1)")
        p = self.run_once(self.pipe(db), "snapshot", "--table", "public.b")
        self.assertEqual((p.ops("public.a"), ids(p.ops("public.b"))), ([], [1]))
        self.sql("INSERT INTO a VALUES (2); INSERT INTO b VALUES (2)", db)
        p.start().sync()
        self.assertEqual([(op, k["id"]) for op, k, _ in p.ops("public.a")], [("c", 2)])
        self.assertEqual([(op, k["id"]) for op, k, _ in p.ops("public.b")], [("r", 1), ("c", 2)])
        p.stop()
        q = self.pipe(db, name="unknown")
        q.start("snapshot", "--table", "public.nope", wait=False)
        self.assertEqual(q.cdcd.wait(), 2, q.cdcd.logs())
        self.assertIn("public.nope", q.cdcd.logs())

    def test_killed_again_and_again(self):
        db = self.db("CREATE TABLE a (id int PRIMARY KEY); INSERT INTO a SELECT generate_series(1, 100);"
                     "CREATE TABLE t (id int PRIMARY KEY, ver int, pad text);" + FILL % ("t", 15000) +
                     "CREATE TABLE u (id int PRIMARY KEY); INSERT INTO u SELECT generate_series(1, 100);")
        p = self.pipe(db, source={"snapshot.chunk.size": "64KB"}, snapshot__workers=2)
        path = os.path.join(p.out, "srv.public.t.jsonl")
        load = Load(self.pg, db, 15000)
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
        self.assertEqual(sorted(ids(p.ops("public.a"))), [*range(1, 101)])
        self.assertEqual(sorted(ids(p.ops("public.u"))), [*range(1, 101)])
        positions = [r["headers"]["cdcd.pos"] for r in p.records("public.t")]
        self.assertEqual(len(positions), len(set(positions)))
        self.assertEqual(self.sql("SELECT count(*) FROM pg_replication_slots", db), "1")

    def test_stopped_in_the_middle(self):
        """SIGTERM is as good as a kill, and exits 0."""
        db = self.db("CREATE TABLE t (id int PRIMARY KEY, ver int, pad text);" + FILL % ("t", 20000))
        p = self.pipe(db, source={"snapshot.chunk.size": "64KB"})
        path = os.path.join(p.out, "srv.public.t.jsonl")
        p.start(wait=False)
        wait_until("some rows", lambda: os.path.exists(path) and os.path.getsize(path), every=0.002)
        p.stop()
        self.sql("UPDATE t SET ver = 1 WHERE id % 100 = 0; DELETE FROM t WHERE id % 100 = 1", db)
        p.start().sync()
        self.complete(p, db)


@pgcase.each_version()
class Modes(pgcase.PgCase):
    SETUP = "CREATE TABLE t (id int PRIMARY KEY, ver int DEFAULT 0); INSERT INTO t VALUES (1), (2)"

    def brief(self, p):
        return [op + str(k["id"]) for op, k, _ in p.ops("public.t")]

    def start(self, db, mode, **more):
        p = self.pipe(db, **more)
        p.cdcd.config["snapshot.mode"] = mode
        return p

    def test_no_data(self):
        db = self.db(self.SETUP)
        p = self.start(db, "no_data").start()
        self.sql("INSERT INTO t VALUES (3)", db)
        p.sync()
        self.assertEqual(self.brief(p), ["c3"])

    def test_initial_only(self):
        db = self.db(self.SETUP)
        p = self.start(db, "initial_only")
        p.start(wait=False)
        self.assertEqual(p.cdcd.wait(), 0)
        self.assertEqual(self.brief(p), ["r1", "r2"])

    def test_always(self):
        db = self.db(self.SETUP)
        p = self.start(db, "always").start()
        self.sql("INSERT INTO t VALUES (3)", db)
        p.sync().stop()
        self.sql("INSERT INTO t VALUES (4)", db)
        p.start()
        p.sync()
        brief = self.brief(p)
        self.assertEqual(brief[:3], ["r1", "r2", "c3"])
        self.assertEqual(sorted(brief[3:]), sorted(["c4", "r1", "r2", "r3", "r4"]))
        self.assertEqual(brief[3], "c4")  # what lies between comes first: no key goes back

    def test_when_needed(self):
        db = self.db(self.SETUP)
        p = self.start(db, "when_needed").start()
        p.sync().stop()
        self.sql("INSERT INTO t VALUES (3)", db)
        p.start().sync().stop()
        self.assertEqual(self.brief(p), ["r1", "r2", "c3"])
        self.sql("SELECT pg_drop_replication_slot('%s'); DELETE FROM t WHERE id = 1" % p.slot, db)
        p.start().sync()
        self.assertEqual(self.brief(p), ["r1", "r2", "c3", "r2", "r3"])

    def test_slot_made_before(self):
        """With an empty sink: initial reads all and goes on from there; no_data starts at the slot."""
        db = self.db(self.SETUP)
        p = self.start(db, "initial")
        q = self.start(db, "no_data", name="q")
        for slot in (p.slot, q.slot):
            self.sql("CREATE PUBLICATION %s FOR TABLE t; SELECT pg_create_logical_replication_slot('%s', 'pgoutput')"
                     % (slot, slot), db)
        self.sql("INSERT INTO t VALUES (3); UPDATE t SET ver = 1 WHERE id = 1", db)
        p.start()
        q.start()
        self.sql("INSERT INTO t VALUES (4)", db)
        p.sync()
        q.sync()
        self.assertEqual(sorted(self.brief(p)[:3]), ["r1", "r2", "r3"])
        self.assertEqual(self.brief(p)[3:], ["c4"])
        self.assertEqual(self.brief(q), ["c3", "u1", "c4"])

    def test_sink_lost(self):
        """The folder is gone but the slot is there: all of it anew."""
        db = self.db(self.SETUP)
        p = self.start(db, "initial").start()
        p.sync().stop()
        self.sql("INSERT INTO t VALUES (3)", db)
        p.out = p.cdcd.config["sink"]["file"]["path"] = self.folder()
        p.start().sync()
        self.assertEqual(sorted(self.brief(p)), ["r1", "r2", "r3"])


@pgcase.one_version()
class Meanwhile(pgcase.PgCase):
    """Tables that change their shape while they are read, or between a kill and the next run.
    Either all rows come, or it stops with an error that names the table; never a silent gap."""

    ROWS = 6000

    def paused(self, more=""):
        """A snapshot that has begun with t and waits: its sink is a pipe that nobody reads."""
        db = self.db("CREATE TABLE a (id int PRIMARY KEY, pad text); INSERT INTO a SELECT g, repeat('y', 1000) FROM "
                     "generate_series(1, 12000) g; CREATE TABLE t (id int PRIMARY KEY, ver int, pad text);"
                     + FILL % ("t", self.ROWS) + more)
        p = self.pipe(db, source={"snapshot.chunk.size": "64KB"}, batches=4)
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
        self.records_.append(json.loads(f.readline()))
        reader = threading.Thread(target=drain, args=(f,))
        self.addCleanup(f.close)
        return db, p, reader

    def outcome(self, p, reader, complete, topics=("srv.public.t",)):
        reader.start()
        wait_until("the end or the stream", lambda: not p.cdcd.alive() or "streaming from" in p.log_since_start(), 20)
        if p.cdcd.alive():
            p.sync_ = self.sql("INSERT INTO t VALUES (-1, 0, 'last')", p.db, check=False)
            wait_until("the last row", lambda: p.sync_.returncode or any(
                r["topic"].endswith(".t") and r["key"] == {"id": -1} for r in self.records_))
            p.stop()
            reader.join()
            got = {r["key"]["id"] for r in self.records_ if r["topic"] in topics and r["key"]}
            self.assertTrue(complete(got), "%d rows came" % len(got))
            return True
        reader.join()
        self.assertIn(p.cdcd.process.returncode, (1, 2, 3))
        self.assertRegex(p.log_since_start(), r"public\.t\b")
        return False

    def all_rows(self, got):
        return set(range(1, self.ROWS + 1)) <= got

    def test_add_column(self):
        db, p, reader = self.paused()
        self.sql("ALTER TABLE t ADD COLUMN later int DEFAULT 5; INSERT INTO t VALUES (0, 0, 'x', 6)", db)
        self.assertTrue(self.outcome(p, reader, complete=self.all_rows))
        zero = [r for r in self.records_ if r["key"] == {"id": 0} and r["topic"].endswith(".t")]
        self.assertEqual([(r["value"]["op"], r["value"]["after"].get("later")) for r in zero], [("c", 6)])

    def test_drop_and_rename_column(self):
        db, p, reader = self.paused()
        self.sql("ALTER TABLE t DROP COLUMN ver; ALTER TABLE t RENAME COLUMN pad TO filler", db)
        self.outcome(p, reader, complete=self.all_rows)

    def test_rewritten(self):
        db, p, reader = self.paused()
        self.sql("ALTER TABLE t ALTER COLUMN ver TYPE text", db)
        self.outcome(p, reader, complete=self.all_rows)

    def test_vacuum_full(self):
        db, p, reader = self.paused()
        self.sql("DELETE FROM t WHERE id <= 100; VACUUM FULL t", db)
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

    def test_renamed(self):
        db, p, reader = self.paused()
        self.sql("ALTER TABLE t RENAME TO tt", db)
        self.outcome(p, reader, complete=self.all_rows, topics=("srv.public.t", "srv.public.tt"))

    def test_renamed_to_a_name_that_was_passed(self):
        db, p, reader = self.paused()
        self.sql('ALTER TABLE t RENAME TO "0t"', db)
        self.outcome(p, reader, complete=self.all_rows, topics=("srv.public.t", "srv.public.0t"))

    def test_swapped_between_a_kill_and_the_next_run(self):
        """Tables change places in the order of names; each is read, and is not taken for the other."""
        db = self.db("CREATE TABLE a (id int PRIMARY KEY, ver int, pad text); INSERT INTO a VALUES (-5, 0, 'a');"
                     "CREATE TABLE t (id int PRIMARY KEY, ver int, pad text);" + FILL % ("t", self.ROWS) +
                     "CREATE TABLE z (id int PRIMARY KEY, ver int, pad text); INSERT INTO z VALUES (-6, 0, 'z')")
        p = self.pipe(db, source={"snapshot.chunk.size": "64KB"})
        path = os.path.join(p.out, "srv.public.t.jsonl")
        p.start(wait=False)
        wait_until("some rows", lambda: os.path.exists(path) and os.path.getsize(path), every=0.001)
        p.cdcd.kill()
        self.assertNotIn("snapshot complete", p.cdcd.logs())
        self.sql("ALTER TABLE z RENAME TO b", db)
        p.start()
        p.sync()
        self.assertEqual(ids(p.ops("public.b")), [-6])
        self.assertLessEqual(set(range(1, self.ROWS + 1)), set(ids(p.ops("public.t"))))

    def test_between_a_kill_and_the_next_run(self):
        for sql, complete in (
                ("ALTER TABLE t ADD COLUMN later int DEFAULT 5", self.all_rows),
                ("ALTER TABLE t ALTER COLUMN ver TYPE bigint", self.all_rows),
                ("VACUUM FULL t", self.all_rows),
                ("TRUNCATE t", lambda got: True),
                ("DROP TABLE t", lambda got: True)):
            with self.subTest(sql):
                db = self.db("CREATE TABLE t (id int PRIMARY KEY, ver int, pad text);" + FILL % ("t", self.ROWS))
                p = self.pipe(db, source={"snapshot.chunk.size": "64KB"})
                path = os.path.join(p.out, "srv.public.t.jsonl")
                p.start(wait=False)
                wait_until("some rows", lambda: os.path.exists(path) and os.path.getsize(path), every=0.001)
                p.cdcd.kill()
                self.assertNotIn("snapshot complete", p.cdcd.logs())
                self.sql(sql, db)
                p.start()
                p.sync()
                self.assertTrue(complete(set(ids(p.ops("public.t")))))
                p.stop()


@pgcase.one_version()
class Stopping(pgcase.PgCase):
    def test_a_signal_that_comes_twice(self):
        """A supervisor signals the process and its group: still an orderly end, with exit 0."""
        db = self.db("CREATE TABLE t (id int PRIMARY KEY)")
        p = self.pipe(db).start()
        self.sql("INSERT INTO t SELECT generate_series(1, 5000)", db)
        for _ in range(2):
            p.cdcd.process.terminate()
            time.sleep(0.02)
        self.assertEqual(p.cdcd.wait(), 0, p.cdcd.logs()[-4000:])
        self.assertNotIn("ending now", p.cdcd.logs())


if __name__ == "__main__":
    pgcase.main()
