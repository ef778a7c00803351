"""What has gone wrong in other readers of MySQL's and MariaDB's log, each with its right outcome."""
import base64
import datetime
import json
import os
import unittest

import cdcdtest
import mycase

STATEMENTS = "statement.handling.mode"
ROW_IMAGES = "row.image.handling.mode"
CHUNK = {"snapshot.chunk.rows": 100}  # the smallest


def unscaled(n):
    """A whole number as Connect's Decimal in JSON."""
    return base64.b64encode(n.to_bytes((n + (n < 0)).bit_length() // 8 + 1, "big", signed=True)).decode()


class Case(mycase.MyCase):
    def force(self, text, db):
        """Statements one by one; one that this server does not know is left out."""
        return cdcdtest.run([*self.my.client_argv(db), "--force"], check=False, stdin=text)

    def streamed(self, setup, statements, **pipe):
        """A pipeline that has seen all of it: (database, pipeline), stopped."""
        db = self.db(setup)
        p = self.pipe(db, **pipe).start()
        self.sql(statements, db)
        p.sync().stop()
        return db, p


@mycase.each_server()
class RowImages(Case):
    """One session does not log all columns."""

    SETUP = """CREATE TABLE img (id int PRIMARY KEY, c1 int, c2 int, c3 int, c4 int, c5 int, c6 int,
        c7 int, c8 int, c9 int DEFAULT 9, txt text, bl blob, n varchar(5));
        INSERT INTO img VALUES (1,1,2,3,4,5,6,7,8,9,'text','blob','n'), (2,1,2,3,4,5,6,7,8,9,NULL,NULL,NULL);
        CREATE TABLE img_nokey (a int, b text); INSERT INTO img_nokey VALUES (1,'x');"""
    CHANGES = """SET SESSION binlog_row_image = 'MINIMAL';
        UPDATE img SET c9 = 99 WHERE id = 1;
        UPDATE img SET c1 = NULL WHERE id = 2;
        INSERT INTO img (id, c2) VALUES (3, 33);
        DELETE FROM img WHERE id = 2;
        SET SESSION binlog_row_image = 'NOBLOB';
        UPDATE img SET c1 = 5 WHERE id = 1;
        UPDATE img SET txt = NULL WHERE id = 1;
        SET SESSION binlog_row_image = 'FULL';
        UPDATE img SET c1 = 6 WHERE id = 1;"""

    def test_stops_before_the_first(self):
        for image in ("MINIMAL", "NOBLOB"):
            with self.subTest(image):
                db = self.db(self.SETUP)
                p = self.pipe(db).start()
                p.sync()
                self.sql("SET SESSION binlog_row_image = '%s'; UPDATE img SET c9 = 99 WHERE id = 1" % image, db)
                p.ends(3, r"%s\W+img" % db, "binlog_row_image", "FULL")
                self.assertEqual([op for op, *_ in p.ops("img")], ["r", "r"])
                # Its place is not passed: the next start stops there again.
                p.fails(3, "binlog_row_image")
                self.assertEqual(len(p.ops("img")), 2)

    def test_placeholder(self):
        db = self.db(self.SETUP)
        p = self.pipe(db, source={ROW_IMAGES: "placeholder"}).start()
        self.sql(self.CHANGES, db)
        self.sql("SET SESSION binlog_row_image = 'MINIMAL'; UPDATE img_nokey SET a = 2", db)
        p.sync().stop()
        gone = mycase.PLACEHOLDER
        blob = base64.b64encode(gone.encode()).decode()
        rows = p.rows("img", "cu")
        no_int = rows[0]["c1"]  # whatever stands for an int that is not there: never null, never a value
        self.assertNotIn(no_int, (None, 1, 2))
        only = {c: no_int for c in ("c1", "c2", "c3", "c4", "c5", "c6", "c7", "c8", "c9")}
        only.update(txt=gone, bl=blob, n=gone)
        self.assertEqual(rows[0], {"id": 1, **only, "c9": 99})
        self.assertEqual(rows[1], {"id": 2, **only, "c1": None})
        self.assertEqual(rows[2], {"id": 3, **only, "c2": 33})
        whole = {"id": 1, "c1": 5, "c2": 2, "c3": 3, "c4": 4, "c5": 5, "c6": 6, "c7": 7, "c8": 8,
                 "c9": 99, "n": "n"}
        self.assertEqual(rows[3], {**whole, "txt": gone, "bl": blob})
        self.assertEqual(rows[4], {**whole, "txt": None, "bl": blob})
        self.assertEqual(rows[5], {**whole, "c1": 6, "txt": None, "bl": "YmxvYg=="})
        self.assertEqual([(op, k) for op, k, _ in p.ops("img")][4:7], [("c", {"id": 3}), ("d", {"id": 2}), ("-", {"id": 2})])
        self.assertEqual(p.rows("img_nokey", "u"), [{"a": 2, "b": "x"}])  # the before image has it


@mycase.each_server()
class Unsigned(Case):
    SETUP = """CREATE TABLE u (id bigint unsigned PRIMARY KEY, t tinyint unsigned, s smallint unsigned,
        m mediumint unsigned, i int unsigned, b bigint unsigned, tz tinyint(3) unsigned zerofill,
        st tinyint, si int, sb bigint, ser serial, b1 tinyint(1));"""
    ROWS = [(0, 0, 0, 0, 0, 0, 7, 0, 0, 0, 1, 0),
            (2**63 - 1, 127, 32767, 8388607, 2147483647, 2**63 - 1, 127, 127, 2147483647, 2**63 - 1, 2, 1),
            (2**63, 128, 32768, 8388608, 2147483648, 2**63, 128, -128, -2147483648, -2**63, 3, 2),
            (2**64 - 2, 254, 65534, 16777214, 4294967294, 2**64 - 2, 254, -2, -2, -2, 2**64 - 3, -1),
            (2**64 - 1, 255, 65535, 16777215, 4294967295, 2**64 - 1, 255, -1, -1, -1, 2**64 - 2, None)]
    NAMES = ("id", "t", "s", "m", "i", "b", "tz", "st", "si", "sb", "ser", "b1")

    def insert(self):
        return "INSERT INTO u VALUES " + ", ".join(
            "(%s)" % ", ".join("NULL" if v is None else str(v) for v in row) for row in self.ROWS)

    def want(self, convert):
        return [{n: convert(v) if n in ("id", "b", "ser") else v for n, v in zip(self.NAMES, row)}
                for row in self.ROWS]

    def run_mode(self, mode, convert):
        db = self.db(self.SETUP + self.insert())
        p = self.pipe(db, format={"bigint.unsigned.handling.mode": mode} if mode else None,
                      source=dict(CHUNK)).start()
        self.assertEqual(sorted(p.rows("u"), key=str), sorted(self.want(convert), key=str))
        self.sql("DELETE FROM u", db)
        self.sql(self.insert() + "; UPDATE u SET i = 1 WHERE id = %d; DELETE FROM u WHERE id = %d"
                 % (2**64 - 1, 2**63), db)
        p.sync().stop()
        ops = [o for o in p.ops("u") if o[0] != "r"]
        self.assertEqual([o[2] for o in ops if o[0] == "c"], self.want(convert))
        self.assertEqual(ops[-3:], [
            ("u", {"id": convert(2**64 - 1)}, {**self.want(convert)[4], "i": 1}),
            ("d", {"id": convert(2**63)}, None), ("-", {"id": convert(2**63)}, None)])
        self.snapshot_like_stream(p, "u")
        return p

    def test_exact_is_the_default(self):
        self.run_mode(None, lambda v: v)

    def test_precise(self):
        p = self.run_mode("precise", unscaled)
        texts = json.dumps(p.rows("u", "c"))
        for text in ("f/////////8=", "AIAAAAAAAAAA", "AP//////////"):
            self.assertIn('"%s"' % text, texts)

    def test_long_wraps_and_says_so(self):
        p = self.run_mode("long", lambda v: v - 2**64 if v >= 2**63 else v)
        self.assertRegex(p.cdcd.logs(), r"warn.*bigint\.unsigned\.handling\.mode|warn.*(UNSIGNED|unsigned)")

    def test_resumed_chunks(self):
        """A chunk that begins at 2^63 begins there and not at -2^63."""
        db = self.db("CREATE TABLE k (id bigint unsigned PRIMARY KEY, v varchar(200));"
                     "INSERT INTO k WITH RECURSIVE n (i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < 999)"
                     " SELECT 18446744073709551615 - CAST(i AS UNSIGNED) * 18446744073709551, REPEAT('x', 200) FROM n")
        p = self.pipe(db, source=dict(CHUNK), snapshot={"workers": 2})
        for _ in range(40):
            p.start(wait=False)
            try:
                cdcdtest.wait_until("more rows", lambda n=len(p.ops("k")): len(p.ops("k")) > n or
                                    "streaming from" in p.log_since_start(), 30)
            finally:
                p.cdcd.kill()
            if "snapshot complete" in p.log_since_start():
                break
        p.start().sync().stop()
        keys = [k["id"] for _, k, _ in p.ops("k")]
        self.assertEqual(len(set(keys)), 1000)
        self.assertEqual(len(keys), 1000)


@mycase.each_server()
class Charsets(Case):
    SETUP = """CREATE TABLE cs (id varchar(20) CHARACTER SET gbk PRIMARY KEY,
        l1 varchar(20) CHARACTER SET latin1, g varchar(20), u2 varchar(20) CHARACTER SET ucs2,
        u16 char(6) CHARACTER SET utf16, m3 varchar(20) CHARACTER SET utf8mb3,
        m4 text CHARACTER SET utf8mb4, c1251 varchar(20) CHARACTER SET cp1251,
        bn varchar(20) CHARACTER SET binary, el enum('é','ß€') CHARACTER SET latin1, sg set('数','据'),
        tl longtext CHARACTER SET latin1) DEFAULT CHARACTER SET gbk;
        CREATE TABLE `表é x` (`名` int PRIMARY KEY, `v é` varchar(9) CHARACTER SET latin1);"""
    ROWS = r"""INSERT INTO cs VALUES
        ('数据','é€ÿ','数据abc','ü€Ж','💥é','Ⅷü€','💥','Жж',x'FFFE00','ß€','数,据',REPEAT('é',70000)),
        ('k2','',NULL,'','','','',NULL,'','é','',''),
        ('丂乗','“”','乗','\\','a','\'','\0','ё',x'00',NULL,'据',NULL);
        INSERT INTO `表é x` VALUES (1,'é');"""
    WANT = [
        {"id": "数据", "l1": "é€ÿ", "g": "数据abc", "u2": "ü€Ж", "u16": "💥é", "m3": "Ⅷü€", "m4": "💥", "c1251": "Жж",
         "bn": "//4A", "el": "ß€", "sg": "数,据", "tl": "é" * 70000},
        {"id": "k2", "l1": "", "g": None, "u2": "", "u16": "", "m3": "", "m4": "", "c1251": None, "bn": "",
         "el": "é", "sg": "", "tl": ""},
        {"id": "丂乗", "l1": "“”", "g": "乗", "u2": "\\", "u16": "a", "m3": "'", "m4": "\0", "c1251": "ё",
         "bn": "AA==", "el": None, "sg": "据", "tl": None}]

    def test_utf8_everywhere(self):
        db, p = self.streamed(self.SETUP, self.ROWS + """
            UPDATE cs SET m4 = CONCAT(m4,'x') WHERE id = '数据';
            ALTER TABLE cs MODIFY g varchar(20) CHARACTER SET utf8mb4;
            INSERT INTO cs (id,g) VALUES ('k4','数据');""")
        self.assertEqual(p.rows("cs", "c")[:3], self.WANT)
        self.assertEqual(p.rows("cs", "u"), [{**self.WANT[0], "m4": "💥x"}])
        self.assertEqual(p.rows("cs", "c")[3], {**{c: None for c in self.WANT[0]}, "id": "k4", "g": "数据"})
        self.assertEqual([k for _, k, _ in p.ops("cs")], [{"id": "数据"}, {"id": "k2"}, {"id": "丂乗"}, {"id": "数据"}, {"id": "k4"}])
        odd = [r for r in p.records() if r["value"] and r["value"].get("source", {}).get("table") == "表é x"
               and r["value"].get("op")]
        self.assertEqual([(r["key"], r["value"]["after"]) for r in odd], [({"名": 1}, {"名": 1, "v é": "é"})])
        self.assertRegex(odd[0]["topic"], r"^srv\.%s\._+x$" % db)
        self.snapshot_like_stream(p, "cs")

    def test_snapshot(self):
        db = self.db(self.SETUP + self.ROWS)
        p = self.pipe(db).start().stop()
        self.assertEqual(sorted(p.rows("cs"), key=str), sorted(self.WANT, key=str))

    def test_without_metadata(self):
        """The charset is known from information_schema where the log does not say it."""
        db = self.db(self.SETUP)
        p = self.pipe(db).start()
        self.sql("SET GLOBAL binlog_row_metadata = %s" % ("MINIMAL" if self.flavor == "mysql" else "NO_LOG"))
        self.addCleanup(self.sql, "SET GLOBAL binlog_row_metadata = FULL")
        self.sql(self.ROWS, db)
        p.sync().stop()
        self.assertEqual(p.rows("cs", "c"), self.WANT)


@mycase.each_server()
class YearBitDecimal(Case):
    SETUP = """CREATE TABLE ybd (id int PRIMARY KEY, u0 int unsigned, y year, u1 int unsigned, s1 int, y2 year,
        u2 bigint unsigned, s2 tinyint, f float unsigned, u3 smallint unsigned, b1 bit(1), b8 bit(8), b9 bit(9),
        b12 bit(12), b64 bit(64), d65 decimal(65,30), d50 decimal(5,5), d0 decimal(65,0), d13 decimal(13,4),
        d18 decimal(36,18) unsigned, d9 decimal(9,9), d10 decimal(10,0));"""
    D35 = "9" * 35 + "." + "9" * 30
    ROWS = """INSERT INTO ybd VALUES
        (1,4294967295,'0000',4294967295,-1,1901,18446744073709551615,-1,1.5,65535,b'1',b'10000000',b'100000001',
         b'101000000011',0xFFFFFFFFFFFFFFFF,{0},0.99999,{1},0.2222,0.000000123400000000,0.999999999,9999999999),
        (2,1,2155,2147483648,-2147483648,'0000',9223372036854775808,-128,0,32768,b'0',0,1,1,1,-{0},-0.00001,-{1},
         -0.2222,0,-0.000000001,-1),
        (3,NULL,NULL,0,0,1970,0,0,NULL,0,NULL,NULL,b'100000000',b'100000000',b'1{2}',0,0,0,0.4444,
         1.000000000000000001,0,0);""".format(D35, "9" * 65, "0" * 63)

    def check(self, rows):
        a, b, c = sorted(rows, key=lambda r: r["id"])
        self.assertEqual([(r["y"], r["y2"]) for r in (a, b, c)], [(0, 1901), (2155, 0), (None, 1970)])
        numbers = ("u0", "u1", "s1", "u2", "s2", "f", "u3")
        self.assertEqual([[r[n] for n in numbers] for r in (a, b, c)], [
            [4294967295, 4294967295, -1, 2**64 - 1, -1, 1.5, 65535],
            [1, 2147483648, -2147483648, 2**63, -128, 0, 32768], [None, 0, 0, 0, 0, None, 0]])
        bits = ("b1", "b8", "b9", "b12", "b64")
        self.assertEqual([[r[n] for n in bits] for r in (a, b, c)], [
            [True, "gA==", "AQE=", "Awo=", "//////////8="], [False, "AA==", "AQA=", "AQA=", "AQAAAAAAAAA="],
            [None, None, "AAE=", "AAE=", "AAAAAAAAAIA="]])
        return a, b, c

    def test_precise(self):
        db, p = self.streamed(self.SETUP, self.ROWS)
        a, b, c = self.check(p.rows("ybd", "c"))
        nines = int("9" * 65)
        self.assertEqual([r["d65"] for r in (a, b, c)], [unscaled(nines), unscaled(-nines), "AA=="])
        self.assertEqual([r["d0"] for r in (a, b, c)], [unscaled(nines), unscaled(-nines), "AA=="])
        self.assertEqual([r["d13"] for r in (a, b, c)], ["CK4=", "91I=", "EVw="])
        self.assertEqual([r["d50"] for r in (a, b)], [unscaled(99999), unscaled(-1)])
        self.assertEqual([r["d18"] for r in (a, c)], [unscaled(123400000000), unscaled(10**18 + 1)])
        self.assertEqual([r["d10"] for r in (a, b)], [unscaled(9999999999), unscaled(-1)])
        self.check(self.snapshot_like_stream(p, "ybd")["ybd"].values())

    def test_string(self):
        db, p = self.streamed(self.SETUP, self.ROWS, format={"decimal.handling.mode": "string"})
        a, b, c = self.check(p.rows("ybd", "c"))
        self.assertEqual([r["d65"] for r in (a, b, c)], [self.D35, "-" + self.D35, "0." + "0" * 30])
        self.assertEqual([r["d50"] for r in (a, b, c)], ["0.99999", "-0.00001", "0.00000"])
        self.assertEqual([r["d18"] for r in (a, b, c)], ["0.000000123400000000", "0." + "0" * 18, "1.000000000000000001"])
        self.assertEqual([r["d9"] for r in (a, b)], ["0.999999999", "-0.000000001"])
        self.assertEqual([r["d10"] for r in (a, b)], ["9999999999", "-1"])
        self.snapshot_like_stream(p, "ybd")


@mycase.each_server("mariadb")
class MariadbOnly(Case):
    MDB = """CREATE TABLE mdb (id uuid PRIMARY KEY, i6 inet6, i4 inet4, c varchar(2000) COMPRESSED,
        ct mediumtext COMPRESSED, cb blob COMPRESSED, inv int INVISIBLE DEFAULT 7, js json,
        vc int AS (inv + 1) VIRTUAL, pc int AS (inv + 2) PERSISTENT);"""
    ROWS = """INSERT INTO mdb (id,i6,i4,c,ct,cb,js) VALUES
        ('00112233-4455-6677-8899-aabbccddeeff','2001:db8::ff00:42:8329','192.168.0.255',REPEAT('comp',400),
         REPEAT('x',100000),UNHEX(REPEAT('00',3000)),'{"b": 1, "a":  2}'),
        ('ffffffff-ffff-ffff-ffff-ffffffffff00','::ffff:192.0.2.1','0.0.0.0','short','',NULL,NULL),
        ('00000000-0000-0000-0000-000000000000','::',NULL,'',NULL,'',' null ');"""

    def test_types(self):
        db, p = self.streamed(self.MDB, self.ROWS + "UPDATE mdb SET inv = 8 WHERE i6 = '::';")
        want = [
            {"id": "00112233-4455-6677-8899-aabbccddeeff", "i6": "2001:db8::ff00:42:8329", "i4": "192.168.0.255",
             "c": "comp" * 400, "ct": "x" * 100000, "cb": base64.b64encode(bytes(3000)).decode(), "inv": 7,
             "js": '{"b": 1, "a":  2}', "vc": 8, "pc": 9},
            {"id": "ffffffff-ffff-ffff-ffff-ffffffffff00", "i6": "::ffff:192.0.2.1", "i4": "0.0.0.0", "c": "short",
             "ct": "", "cb": None, "inv": 7, "js": None, "vc": 8, "pc": 9},
            {"id": "00000000-0000-0000-0000-000000000000", "i6": "::", "i4": None, "c": "", "ct": None, "cb": "",
             "inv": 7, "js": " null ", "vc": 8, "pc": 9}]
        self.assertEqual(p.rows("mdb", "c"), want)
        self.assertEqual(p.rows("mdb", "u"), [{**want[2], "inv": 8, "vc": 9, "pc": 10}])
        self.assertEqual([r["value"]["before"] for r in p.records("mdb") if r["value"]["op"] == "u"], [want[2]])
        self.snapshot_like_stream(p, "mdb")

    def test_system_versioning(self):
        """Rows of the history are no rows of the table."""
        db, p = self.streamed("""CREATE TABLE ver (id int PRIMARY KEY, v int) WITH SYSTEM VERSIONING;
            CREATE TABLE keep (id int PRIMARY KEY, v int) WITH SYSTEM VERSIONING;
            INSERT INTO keep VALUES (1,1), (2,1), (3,1); UPDATE keep SET v = 2 WHERE id = 1;
            DELETE FROM keep WHERE id = 3;""", """
            INSERT INTO ver VALUES (1,1); UPDATE ver SET v = 2 WHERE id = 1; DELETE FROM ver WHERE id = 1;""")
        self.assertEqual(p.ops("ver"), [("c", {"id": 1}, {"id": 1, "v": 1}), ("u", {"id": 1}, {"id": 1, "v": 2}),
                                        ("d", {"id": 1}, None), ("-", {"id": 1}, None)])
        self.assertEqual(p.rows("ver", "d"), [{"id": 1, "v": 2}])
        self.assertEqual(sorted(p.ops("keep"), key=str), [("r", {"id": 1}, {"id": 1, "v": 2}), ("r", {"id": 2}, {"id": 2, "v": 1})])

    def test_visible_period(self):
        db, p = self.streamed("""CREATE TABLE ver2 (id int, v int, rs timestamp(6) GENERATED ALWAYS AS ROW START,
            re timestamp(6) GENERATED ALWAYS AS ROW END, PERIOD FOR SYSTEM_TIME(rs,re), PRIMARY KEY (id,re))
            WITH SYSTEM VERSIONING;""", """
            INSERT INTO ver2 (id,v) VALUES (1,1); UPDATE ver2 SET v = 2; DELETE HISTORY FROM ver2;""")
        last = [row for row in p.last("ver2").values()]
        self.assertEqual([(r["id"], r["v"]) for r in last], [(1, 2)])
        self.assertRegex(last[0]["re"], r"^(2038-01-19T03:14:07\.999999Z|2106-02-07T06:28:15\.999999Z)$")

    def test_sequence(self):
        db, p = self.streamed("""CREATE SEQUENCE sq START WITH 5 CACHE 3;
            CREATE TABLE t (id bigint PRIMARY KEY DEFAULT NEXTVAL(sq), v int);""", """
            INSERT INTO t (v) VALUES (1),(2); SELECT SETVAL(sq, 100);
            SET SESSION binlog_annotate_row_events = ON;
            SET STATEMENT max_statement_time = 100 FOR INSERT INTO t (v) VALUES (3);
            INSERT INTO t (v) VALUES (4) RETURNING id;""")
        self.assertEqual([(k["id"], a["v"]) for _, k, a in p.ops("t")], [(5, 1), (6, 2), (101, 3), (102, 4)])
        self.assertEqual(p.ops("sq"), [])

    def test_compressed_log(self):
        """log_bin_compress: rows and statements are compressed in the log."""
        db = self.db("CREATE TABLE t (id int PRIMARY KEY, v longtext)")
        p = self.pipe(db).start()
        self.addCleanup(self.sql, "SET GLOBAL log_bin_compress = OFF; SET GLOBAL log_bin_compress_min_len = 256")
        self.sql("SET GLOBAL log_bin_compress = ON; SET GLOBAL log_bin_compress_min_len = 10")
        self.sql("CREATE TABLE made_in_a_long_statement (id int PRIMARY KEY, %s int);"
                 "INSERT INTO t VALUES (1, REPEAT('a', 100000)), (2, 'b'); UPDATE t SET v = REPEAT('c', 70000) WHERE id = 1;"
                 "INSERT INTO made_in_a_long_statement VALUES (1, 2); DELETE FROM t WHERE id = 2" % ("c" * 60), db)
        p.sync().stop()
        self.assertEqual([(op, k["id"], len(a["v"]) if a else None) for op, k, a in p.ops("t")],
                         [("c", 1, 100000), ("c", 2, 1), ("u", 1, 70000), ("d", 2, None), ("-", 2, None)])
        self.assertEqual(p.rows("made_in_a_long_statement"), [{"id": 1, "c" * 60: 2}])


@mycase.each_server()
class Large(Case):
    def test_events_of_many_packets(self):
        """A packet holds 0xffffff bytes: events around that size and far beyond it."""
        packet = 16777215
        db = self.db("CREATE TABLE big (id int PRIMARY KEY, v longtext)")
        p = self.pipe(db).start()
        near = (0, 8, 16, 24, 32, 40, 48, 56, 60, 61, 62, 63, 64, 65, 66, 67, 68)
        self.sql("INSERT INTO big VALUES (1, REPEAT('a', %d)); INSERT INTO big VALUES (2, REPEAT('b', %d)),(3, REPEAT('c', %d));"
                 % (20 << 20, packet - 60, packet - 45) +
                 "".join("INSERT INTO big VALUES (%d, REPEAT('d', %d));" % (100 + n, packet - 100 + n) for n in near) +
                 "INSERT INTO big VALUES (4, REPEAT('e', %d)); UPDATE big SET v = CONCAT(v,'!') WHERE id = 1;"
                 "INSERT INTO big VALUES (5, 'after')" % (3 * packet), db)
        p.sync(timeout=240).stop()
        got = []
        with open(os.path.join(p.out, "srv.%s.big.jsonl" % db), encoding="utf-8") as f:
            for line in f:
                value = json.loads(line)["value"]
                got.append((value["op"], value["after"]["id"], len(value["after"]["v"])))
        self.assertEqual(got, [("c", 1, 20 << 20), ("c", 2, packet - 60), ("c", 3, packet - 45),
                               *(("c", 100 + n, packet - 100 + n) for n in near), ("c", 4, 3 * packet),
                               ("u", 1, (20 << 20) + 1), ("c", 5, 5)])

    @unittest.skipUnless(os.environ.get("CDCD_TEST_HUGE"), "needs 20 GB of disk; CDCD_TEST_HUGE=1 runs it")
    def test_file_beyond_4_gib(self):
        db = self.db("""CREATE TABLE huge (id int PRIMARY KEY AUTO_INCREMENT, v longtext);
            DELIMITER //
            CREATE PROCEDURE fill() BEGIN
                DECLARE i int DEFAULT 0;
                START TRANSACTION;
                WHILE i < 45 DO
                    INSERT INTO huge (v) VALUES (REPEAT(CHAR(97 + i % 26), 50*1024*1024));
                    DELETE FROM huge;
                    SET i = i + 1;
                END WHILE;
                INSERT INTO huge (v) VALUES ('last row of it');
                COMMIT;
            END//
            DELIMITER ;""")
        p = self.pipe(db).start()
        self.sql("CALL fill()", db, timeout=900)
        self.sql("INSERT INTO huge (v) VALUES ('row after it')", db)
        p.sync(timeout=1800)
        self.assertGreater(max(r["value"]["source"]["pos"] for r in p.records("huge") if r["value"]), 2**32)
        p.stop()
        p.start()
        self.sql("INSERT INTO huge (v) VALUES ('resumed')", db)
        p.sync().stop()
        ops = [op for op, _, _ in p.ops("huge", tombstones=False)]
        self.assertEqual(ops, ["c", "d"] * 45 + ["c"] * 3)


@mycase.each_server()
class Times(Case):
    SETUP = """CREATE TABLE tm (id int PRIMARY KEY, t0 time, t1 time(1), t2 time(2), t3 time(3), t4 time(4),
        t5 time(5), t6 time(6), dt1 datetime(1), ts3 timestamp(3) NULL);"""
    ROWS = """INSERT INTO tm VALUES
        (1,'-00:00:01','-00:00:00.1','-00:00:00.01','-00:00:00.001','-00:00:00.0001','-00:00:00.00001',
         '-00:00:00.000001','2019-03-04 05:06:07.8','2019-03-04 05:06:07.809'),
        (2,'-838:59:59','-838:59:59','-838:59:59','-838:59:59','-838:59:59','-838:59:59','-838:59:58.999999',
         '1000-01-01 00:00:00.1','1970-01-01 00:00:01.001'),
        (3,'838:59:59','838:59:59','838:59:59','838:59:59','838:59:59','838:59:59','838:59:58.999999',
         '9999-12-31 23:59:59.9',NULL),
        (4,'-01:00:00','-01:10:00.9','-00:00:01.10','-00:00:01.100','-00:00:01.1000','-00:00:01.10000',
         '-00:00:01.100000','2019-03-04 05:06:07',NULL),
        (5,'25:00:00','24:00:00.0','00:00:00.99','-00:00:00.999','100:00:00.0001','-17:18:19.02030',
         '-17:18:19.020304','2019-03-04 05:06:07.0',NULL),
        (6,'00:00:00','-00:00:00.0','00:00:00','00:00:00','00:00:00','00:00:00','-00:00:00','2019-03-04 05:06:07.0',NULL);"""

    def test_sign_hours_and_fractions(self):
        db, p = self.streamed(self.SETUP, self.ROWS)
        most = 3020399000000
        day = 1551675967000
        want = [[-1000000, -100000, -10000, -1000, -100, -10, -1, day + 800, "2019-03-04T05:06:07.809Z"],
                [-most] * 6 + [1 - most, -30610223999900, "1970-01-01T00:00:01.001Z"],
                [most] * 6 + [most - 1, 253402300799900, None],
                [-3600000000, -4200900000] + [-1100000] * 5 + [day, None],
                [90000000000, 86400000000, 990000, -999000, 360000000100, -62299020300, -62299020304, day, None],
                [0] * 7 + [day, None]]
        self.assertEqual([list(r.values())[1:] for r in p.rows("tm", "c")], want)
        self.snapshot_like_stream(p, "tm")

    def test_iso(self):
        db, p = self.streamed(self.SETUP, self.ROWS, format={"time.precision.mode": "microseconds"})
        self.assertEqual([r["t6"] for r in p.rows("tm", "c")][:3], [-1, 1 - 3020399000000, 3020399000000 - 1])
        self.snapshot_like_stream(p, "tm")


@mycase.each_server()
class ZeroDates(Case):
    SETUP = """SET SESSION sql_mode = 'ALLOW_INVALID_DATES';
        CREATE TABLE zero (id int PRIMARY KEY, d0 date NULL, d1 date NOT NULL DEFAULT '0000-00-00',
        dt0 datetime(3) NULL, dt1 datetime NOT NULL DEFAULT '2000-01-00 00:00:00',
        dt6 datetime(6) NOT NULL DEFAULT '0000-00-00 00:00:00.000000', ts0 timestamp NULL,
        ts1 timestamp(6) NOT NULL DEFAULT '0000-00-00 00:00:00.000000', ti time NOT NULL DEFAULT '00:00:00');"""
    ROWS = """SET SESSION sql_mode = 'ALLOW_INVALID_DATES', time_zone = '+00:00';
        INSERT INTO zero VALUES
        (1,'0000-00-00','0000-00-00','0000-00-00','0000-00-00','0000-00-00','0000-00-00','0000-00-00','00:00:00'),
        (2,'2024-00-15','2024-02-00','2023-00-00 10:11:12.123','2024-00-00 01:02:03','0000-01-01 00:00:00.000001',
         '1970-01-01 00:00:01','2038-01-19 03:14:07.999999','00:00:00'),
        (3,'2024-02-30','2023-02-31','2024-02-30 00:00:00','2024-04-31 00:00:00','2024-02-30 23:59:59.999999',NULL,
         '1970-01-01 00:00:01','00:00:00'),
        (4,'1970-01-01','1970-01-01','1970-01-01','1970-01-01','1970-01-01',NULL,'1970-01-01 00:00:01','00:00:00'),
        (5,'0001-01-01','9999-12-31','1000-01-01','9999-12-31 23:59:59','9999-12-31 23:59:59.999999',NULL,
         '2001-02-03 04:05:06.7','00:00:00');
        INSERT INTO zero (id) VALUES (6);"""
    EPOCH = "1970-01-01T00:00:00Z"

    def test_null_or_epoch(self):
        db, p = self.streamed(self.SETUP, self.ROWS + "UPDATE zero SET d0 = NULL, dt0 = NULL WHERE id = 1;")
        rows = p.rows("zero", "c")
        self.assertEqual([list(r.values())[1:8] for r in rows], [
            [None, 0, None, 0, 0, None, self.EPOCH],
            [None, 0, None, 0, -62167219199999999, "1970-01-01T00:00:01Z", "2038-01-19T03:14:07.999999Z"],
            [None, 0, None, 0, 0, None, "1970-01-01T00:00:01.000000Z"],
            [0, 0, 0, 0, 0, None, "1970-01-01T00:00:01.000000Z"],
            [-719162, 2932896, -30610224000000, 253402300799000, 253402300799999999, None, "2001-02-03T04:05:06.700000Z"],
            [None, 0, None, 0, 0, None, self.EPOCH]])
        self.assertEqual(p.rows("zero", "u"), [rows[0]])
        self.snapshot_like_stream(p, "zero")

    def test_with_schema(self):
        """A default that is no date is the epoch too, and nothing stops at it."""
        db, p = self.streamed(self.SETUP, self.ROWS, format={"schemas.enable": True})
        r = p.records("zero")[0]
        fields = {f["field"]: f for f in r["value"]["schema"]["fields"][1]["fields"]}
        self.assertEqual({c: (fields[c]["optional"], fields[c].get("default")) for c in
                          ("d0", "d1", "dt0", "dt1", "dt6", "ts0", "ts1")},
                         {"d0": (True, None), "d1": (False, 0), "dt0": (True, None), "dt1": (False, 0),
                          "dt6": (False, 0), "ts0": (True, None), "ts1": (False, self.EPOCH)})
        self.assertEqual(r["value"]["payload"]["after"]["d1"], 0)


@mycase.each_server()
class CaseAndCollation(Case):
    def test_names_of_columns(self):
        db = self.db("CREATE TABLE T_Case (Id int PRIMARY KEY, Name varchar(10), OTHER int)")
        p = self.pipe(db).start()
        self.sql("INSERT INTO T_Case VALUES (1,'a',1); ALTER TABLE T_Case CHANGE Name name varchar(10);"
                 "ALTER TABLE T_Case RENAME COLUMN OTHER TO other; INSERT INTO T_Case VALUES (2,'b',2)", db)
        p.sync().stop()
        self.assertEqual(p.ops("T_Case"), [("c", {"Id": 1}, {"Id": 1, "Name": "a", "OTHER": 1}),
                                           ("c", {"Id": 2}, {"Id": 2, "name": "b", "other": 2})])

    COLL = r"""CREATE TABLE coll (k varchar(40) CHARACTER SET utf8mb4 COLLATE utf8mb4_general_ci,
        k2 varchar(40) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin, k3 datetime(6), v int, PRIMARY KEY (k,k2,k3));
        INSERT INTO coll VALUES
        ('0000','x','2024-01-01',1),('1111','x','2024-01-01',2),('9','x','2024-01-01',3),('a','x','2024-01-01',4),
        ('A','X','2024-01-01',5),('aa','x','2024-01-01',6),('B','x','2024-01-01',7),('b','y','2024-01-01',8),
        ('Z','x','2024-01-01',9),('[','x','2024-01-01',10),('_','x','2024-01-01',11),('ä','xä','2024-01-01',12),
        ('ß','xß','2024-01-01',13),('ss','x','2024-01-01',14),('é','x','2024-01-01',15),('E','xE','2024-01-01',16),
        ('','x','2024-01-01',17),(' ','y','2024-01-01',18),('a ','z','2024-01-01',19),('中','x','2024-01-01',20),
        ('💥','x','2024-01-01',21),('同','x','2024-01-01',22),('a','x','2024-01-01 00:00:00.000001',23),
        ('a','x','2024-01-01 00:00:00.000002',24),('a\'b\\','x','2024-01-01',25),('%','_','2024-01-01',26);
        INSERT INTO coll WITH RECURSIVE n (i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < 599)
            SELECT 'same', CONCAT('n', LPAD(i, 3, '0')), '2024-01-01', 1000 + i FROM n;
        INSERT INTO coll WITH RECURSIVE n (i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < 599)
            SELECT ELT(1 + i % 6, 'a', 'A', 'ä', 'a ', 'á', 'Â'), CONCAT('m', i), '2024-01-01', 2000 + i FROM n;"""
    MEANWHILE = """UPDATE coll SET v = v + 10000 WHERE k IN ('A','Z','💥');
        UPDATE coll SET k = 'zzz' WHERE k = '['; DELETE FROM coll WHERE k = '9';
        INSERT INTO coll VALUES ('AB','x','2024-01-01',27);"""

    def test_chunks_of_a_collation(self):
        for workers in (1, 3):
            with self.subTest(workers=workers):
                db = self.db(self.COLL)
                p = self.pipe(db, source=dict(CHUNK), snapshot={"workers": workers})
                p.start(wait=False)
                self.sql(self.MEANWHILE, db)
                p.wait_log("streaming from")
                p.sync().stop()
                self.assertEqual(len(p.last("coll")), 1226)
                self.snapshot_like_stream(p, "coll")
                reads = [json.dumps(k) for op, k, _ in p.ops("coll") if op == "r"]
                self.assertEqual(len(reads), len(set(reads)))

    def test_resumed_chunks(self):
        db = self.db(self.COLL)
        p = self.pipe(db, source=dict(CHUNK))
        for _ in range(60):
            p.start(wait=False)
            try:
                cdcdtest.wait_until("rows", lambda n=len(p.ops("coll")): len(p.ops("coll")) > n or
                                    "streaming from" in p.log_since_start(), 30)
            finally:
                p.cdcd.kill()
            if "snapshot complete" in p.log_since_start():
                break
        p.start()
        self.sql(self.MEANWHILE, db)
        p.sync().stop()
        self.assertEqual(len(p.last("coll")), 1226)
        self.snapshot_like_stream(p, "coll")


@mycase.each_server("mariadb")
class LowerCase(Case):
    settings = ["lower_case_table_names=1"]

    def test_lower_case_table_names(self):
        """MySQL's own form of it can only be chosen when its data are made."""
        db = self.db("CREATE TABLE T_Before (Id int PRIMARY KEY, V int); INSERT INTO T_BEFORE VALUES (1,1)")
        p = self.pipe(db, source={"table.include.list": [db.upper() + ".T_.*"]}).start()
        self.sql("CREATE TABLE T_After (Id int PRIMARY KEY, V int); INSERT INTO T_After VALUES (1,1);"
                 "ALTER TABLE T_BEFORE ADD Extra int; INSERT INTO t_Before VALUES (2,2,2);"
                 "RENAME TABLE T_After TO T_Later; INSERT INTO t_later VALUES (2,2)", db)
        p.sync().stop()
        self.assertEqual(p.rows("t_before"), [{"Id": 1, "V": 1}, {"Id": 2, "V": 2, "Extra": 2}])
        self.assertEqual(p.rows("t_after"), [{"Id": 1, "V": 1}])
        self.assertEqual(p.rows("t_later"), [{"Id": 2, "V": 2}])
        tables = {r["value"]["source"]["table"] for r in p.records() if r["value"] and r["value"].get("op")}
        self.assertEqual(tables, {"t_before", "t_after", "t_later"})


@mycase.each_server()
class Statements(Case):
    """Statements that stopped parsers."""

    SQL = r"""CREATE TABLE parts (label varchar(40), `order` int, `key` int, kind enum('a','b') DEFAULT 'a',
 n tinyint DEFAULT '0', txt varchar(60) DEFAULT 'it''s; -- not /* a */ comment', dt date DEFAULT (curdate()),
 PRIMARY KEY (`key`)) /*!50100 PARTITION BY RANGE (`key`) (PARTITION p0 VALUES LESS THAN (10), PARTITION p1 VALUES LESS THAN (20)) */;
INSERT INTO parts (label,`key`) VALUES ('v1',1);
ALTER TABLE parts MODIFY label varchar(40) NOT NULL /*!80016 CONSTRAINT has_label */ CHECK (label <> '');
ALTER TABLE parts ADD PARTITION /*M! IF NOT EXISTS */ (PARTITION p2 VALUES LESS THAN (30));
ALTER TABLE parts REORGANIZE PARTITION p0 INTO (PARTITION pa VALUES LESS THAN (5), PARTITION pb VALUES LESS THAN (10));
ALTER TABLE parts TRUNCATE PARTITION p2;
ALTER TABLE parts ALGORITHM=INPLACE, LOCK=NONE, CHANGE `order` total int DEFAULT NULL COMMENT 'it\'s; a "q" -- here';
ALTER TABLE parts ADD COLUMN (a1 timestamp NULL DEFAULT CURRENT_TIMESTAMP ON UPDATE CURRENT_TIMESTAMP, a2 time DEFAULT '09:30'), ADD COLUMN z int FIRST, ADD COLUMN y int AFTER z;
/* leading comment */ ALTER /*!50000 TABLE */ parts /* mid */ ADD # hash comment
 COLUMN `c``q` int DEFAULT 3 -- tail comment
 ;
ALTER TABLE parts COLLATE = default;
ALTER TABLE parts MODIFY COLUMN parts.txt varchar(300), ADD INDEX tx (txt(10));
ALTER TABLE parts MODIFY COLUMN txt varchar(300);
CREATE INDEX tx ON parts (txt(10));
ALTER TABLE parts DROP INDEX tx, ADD UNIQUE KEY ux (`key`, kind);
ALTER TABLE parts ADD COLUMN /*M! IF NOT EXISTS */ gone int /*M! , DROP COLUMN IF EXISTS gone_too */;
ALTER TABLE parts DROP COLUMN gone, RENAME COLUMN n TO nn;
ALTER TABLE parts ADD COLUMN gv int GENERATED ALWAYS AS (`key` * 2) VIRTUAL, ADD COLUMN gs varchar(9) AS (CONCAT('x', `key`)) STORED INVISIBLE;
INSERT INTO parts (z,y,label,`key`,`c``q`) VALUES (1,2,'v2',2,33);
CREATE OR REPLACE VIEW v_parts AS SELECT 1 AS one;
CREATE TRIGGER trg BEFORE INSERT ON parts FOR EACH ROW SET NEW.y = 77;
INSERT INTO parts (z,label,`key`) VALUES (1,'v3',3);
DROP TRIGGER trg; ANALYZE TABLE parts; OPTIMIZE TABLE parts; FLUSH TABLES;
TRUNCATE parts;
INSERT INTO parts (z,label,`key`) VALUES (9,'v9',9);
"""

    def run_pack(self, metadata):
        db = self.db()
        if metadata:
            self.sql("SET GLOBAL binlog_row_metadata = " + metadata)
            self.addCleanup(self.sql, "SET GLOBAL binlog_row_metadata = FULL")
        p = self.pipe(db, format={"skipped.operations": "none"}).start()
        self.force(self.SQL, db)
        p.sync().stop()
        today = (datetime.datetime.now(datetime.timezone.utc).date() - datetime.date(1970, 1, 1)).days
        ops = p.ops("parts")
        self.assertEqual([(op, k and k["key"]) for op, k, _ in ops],
                         [("c", 1), ("c", 2), ("c", 3), ("t", None), ("c", 9)])
        first = ops[0][2]
        self.assertIn(first.pop("dt"), (today, today - 1))
        self.assertEqual(list(first.items()), [("label", "v1"), ("order", None), ("key", 1), ("kind", "a"), ("n", 0),
                                               ("txt", "it's; -- not /* a */ comment")])
        for _, k, row in (ops[1], ops[2], ops[4]):
            n = k["key"]
            self.assertEqual(list(row), ["z", "y", "label", "total", "key", "kind", "nn", "txt", "dt", "a1", "a2",
                                         "c`q", "gv", "gs"])
            self.assertIn(row.pop("dt"), (today, today - 1))
            self.assertRegex(row.pop("a1"), r"^20\d\d-.*Z$")
            self.assertEqual(row, {"z": {2: 1, 3: 1, 9: 9}[n], "y": {2: 2, 3: 77, 9: None}[n], "label": "v%d" % n,
                                   "total": None, "key": n, "kind": "a", "nn": 0, "txt": None, "a2": 34200000000,
                                   "c`q": 33 if n == 2 else 3, "gv": 2 * n, "gs": "x%d" % n})
        self.snapshot_like_stream(p, "parts")
        return db, p

    def test_pack(self):
        db, p = self.run_pack(None)
        texts = [c["ddl"] for c in p.schema_changes()]
        self.assertTrue(any("ALTER /*!50000 TABLE */ parts /* mid */ ADD # hash" in t
                            for t in texts), texts)
        # A statement may be logged otherwise than it was typed, but each that was executed is there.
        for word in ("REORGANIZE PARTITION", "TRUNCATE PARTITION", "RENAME COLUMN n TO nn", "ADD UNIQUE KEY ux"):
            self.assertTrue(any(word in t for t in texts), word)

    def test_pack_without_metadata(self):
        self.run_pack("MINIMAL" if self.flavor == "mysql" else "NO_LOG")


@mycase.each_server()
class TwoPhase(Case):
    """XA: rows at XA COMMIT and at no other time."""

    def test_commit_rollback_and_one_phase(self):
        db = self.db("CREATE TABLE t (id int PRIMARY KEY, v int)")
        p = self.pipe(db).start()
        self.sql("XA START 'a'; INSERT INTO t VALUES (1,1); XA END 'a'; XA PREPARE 'a'; XA COMMIT 'a';"
                 "XA START 'b'; INSERT INTO t VALUES (2,2); XA END 'b'; XA PREPARE 'b'; XA ROLLBACK 'b';"
                 "XA START 'c'; INSERT INTO t VALUES (3,3); XA END 'c'; XA COMMIT 'c' ONE PHASE;"
                 "INSERT INTO t VALUES (4,4)", db)
        p.sync().stop()
        self.assertEqual([k["id"] for _, k, _ in p.ops("t")], [1, 3, 4])

    def test_prepared_over_a_restart(self):
        db = self.db("CREATE TABLE t (id int PRIMARY KEY, v int)")
        p = self.pipe(db).start()
        self.sql("XA START 'p1'; INSERT INTO t VALUES (1,1); XA END 'p1'; XA PREPARE 'p1'", db)
        self.sql("XA START 'p2','q',7; INSERT INTO t VALUES (2,2); XA END 'p2','q',7; XA PREPARE 'p2','q',7", db)
        self.sql("INSERT INTO t VALUES (3,3)", db)
        p.sync()
        self.assertEqual([k["id"] for _, k, _ in p.ops("t")], [3])
        p.stop().start()
        self.sql("INSERT INTO t VALUES (4,4)", db)
        p.sync()
        self.assertEqual([k["id"] for _, k, _ in p.ops("t")], [3, 4])
        p.cdcd.kill()
        self.sql("XA COMMIT 'p1'; INSERT INTO t VALUES (5,5)", db)
        p.start().sync()
        self.assertEqual([k["id"] for _, k, _ in p.ops("t")], [3, 4, 1, 5])
        self.sql("XA ROLLBACK 'p2','q',7; INSERT INTO t VALUES (6,6)", db)
        p.sync().stop()
        self.assertEqual([k["id"] for _, k, _ in p.ops("t")], [3, 4, 1, 5, 6])
        pos = [r["headers"]["cdcd.pos"] for r in p.records("t")]
        self.assertEqual(pos, sorted(set(pos)))


@mycase.each_server()
class StatementFormat(Case):
    SQL = """SET SESSION binlog_format = STATEMENT; INSERT INTO t VALUES (2, 2); UPDATE t SET v = 6 WHERE id = 2;
        SET SESSION binlog_format = ROW; INSERT INTO t VALUES (3, 3);"""

    def test_stops(self):
        """Rows that only a statement knows cannot be read: a stop, not silence."""
        db = self.db("CREATE TABLE t (id int PRIMARY KEY, v int); INSERT INTO t VALUES (1,1)")
        p = self.pipe(db).start()
        self.sql(self.SQL, db)
        p.ends(3, "INSERT INTO t VALUES", "binlog_format")
        self.assertEqual([k["id"] for _, k, _ in p.ops("t")], [1])
        p.fails(3, "INSERT INTO t VALUES")

    def test_of_several_tables(self):
        """A captured table that comes second, and from another default database."""
        db = self.db("CREATE TABLE t (id int PRIMARY KEY, v int); INSERT INTO t VALUES (1,1)")
        other = self.db("CREATE TABLE u (id int PRIMARY KEY, v int); INSERT INTO u VALUES (1,1)")
        p = self.pipe(db).start()
        self.sql("SET SESSION binlog_format = STATEMENT; UPDATE u JOIN %s.t USING (id) SET t.v = 7" % db, other)
        p.ends(3, "UPDATE u JOIN", "binlog_format")

    def test_of_another_database(self):
        db = self.db("CREATE TABLE t (id int PRIMARY KEY, v int)")
        other = self.db("CREATE TABLE t (id int PRIMARY KEY, v int)")
        p = self.pipe(db).start()
        self.sql(self.SQL, other)
        self.sql("INSERT INTO t VALUES (9, 9)", db)
        p.sync().stop()
        self.assertEqual([k["id"] for _, k, _ in p.ops("t")], [9])

    def test_warn(self):
        db = self.db("CREATE TABLE t (id int PRIMARY KEY, v int)")
        p = self.pipe(db, source={STATEMENTS: "warn"}).start()
        self.sql(self.SQL, db)
        p.sync().stop()
        self.assertRegex(p.cdcd.logs(), r"warn.*INSERT INTO t VALUES \(2, 2\)")
        self.assertEqual([k["id"] for _, k, _ in p.ops("t")], [3])


@mycase.each_server("mysql")
class PartialJson(Case):
    def test_applied(self):
        """binlog_row_value_options=PARTIAL_JSON logs what changed in a document, not the document."""
        db = self.db("CREATE TABLE j (id int PRIMARY KEY, js json, other json, n int)")
        p = self.pipe(db).start()
        s = self.session(db)
        s.sql("SET SESSION binlog_row_value_options = 'PARTIAL_JSON'")
        s.sql("""INSERT INTO j VALUES (1, CONCAT('{"a":1,"pad":"', REPEAT('x',300), '","arr":[1,2,3],"é":{"k":[{"d":1}]}}'), '[1, 2]', 0)""")
        for change in ("js = JSON_SET(js, '$.a', 42)", "js = JSON_ARRAY_INSERT(js, '$.arr[0]', 99)",
                       "js = JSON_SET(js, '$.\"é\".k[0].d', CAST('838:59:59' AS TIME)), n = n + 1",
                       "js = JSON_REMOVE(js, '$.arr[1]'), other = JSON_SET(other, '$[1]', 'zwei')",
                       "js = JSON_REPLACE(js, '$.a', CAST(0.30 AS DECIMAL(5,2))), n = 7",
                       "js = JSON_SET(js, '$.new', JSON_ARRAY(1.5, NULL, true))", "js = JSON_REMOVE(js, '$.pad')",
                       "n = 8", "js = NULL", "js = '{}'"):
            s.sql("UPDATE j SET %s WHERE id = 1" % change)
        want = s.sql("SELECT js FROM j")
        p.sync().stop()
        self.assertEqual(want, "{}")
        docs = [json.loads(r["js"]) if r["js"] else None for r in p.rows("j", "cu")]
        x = {"a": 1, "pad": "x" * 300, "arr": [1, 2, 3], "é": {"k": [{"d": 1}]}}
        seen = [dict(x)]
        x["a"] = 42
        seen.append(dict(x))
        x["arr"] = [99, 1, 2, 3]
        seen.append(dict(x))
        x["é"] = {"k": [{"d": "838:59:59.000000"}]}
        seen.append(dict(x))
        x["arr"] = [99, 2, 3]
        seen.append(dict(x))
        x["a"] = 0.30
        seen.append(dict(x))
        x["new"] = [1.5, None, True]
        seen.append(dict(x))
        del x["pad"]
        seen += [dict(x), dict(x), None, {}]
        self.assertEqual(docs, seen)
        self.assertEqual([r["other"] for r in p.rows("j", "cu")], ["[1,2]"] * 4 + ['[1,"zwei"]'] * 7)
        self.assertEqual([r["n"] for r in p.rows("j", "cu")], [0, 0, 0, 1, 1, 7, 7, 7, 8, 8, 8])
        self.assertIn('"a":0.30', p.rows("j", "u")[5]["js"])
        self.snapshot_like_stream(p, "j")

    def test_minimal_image(self):
        """Nothing to apply the change to: a stop that names the column."""
        db = self.db("CREATE TABLE j (id int PRIMARY KEY, js json)")
        p = self.pipe(db).start()
        self.sql("""INSERT INTO j VALUES (1, CONCAT('{"a":1,"pad":"', REPEAT('x',300), '"}'));
            SET SESSION binlog_row_image = 'MINIMAL'; SET SESSION binlog_row_value_options = 'PARTIAL_JSON';
            UPDATE j SET js = JSON_SET(js, '$.a', 42) WHERE id = 1;""", db)
        p.ends(3, r"%s\W+j" % db, "js", "binlog_row_image")


if __name__ == "__main__":
    mycase.main()
