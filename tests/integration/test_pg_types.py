"""Values: arrays, text that looks like something else, session settings, times at their limits,
user-defined types. Each in the stream and in a snapshot, with the same JSON."""
import json

import pgcase

MIN64, MAX64 = -2**63, 2**63 - 1


def column(rows, name, key="id"):
    return {json.loads(k)[key]: row[name] for k, row in rows.items()}


@pgcase.each_version()
class Types(pgcase.PgCase):
    def both(self, db, table, changes, ignore=(), **options):
        """Streams the changes, then reads the same rows with a snapshot. Returns them by key."""
        p = self.pipe(db, **options).start()
        self.sql(changes, db)
        p.sync()
        return p, self.snapshot_like_stream(p, table, db, ignore)

    def test_nulls_and_arrays(self):
        db = self.db("""CREATE TABLE arr (id int PRIMARY KEY, s text, ta text[], ia int[],
            na numeric(10,2)[], za timestamptz[], ba bytea[], ja jsonb[], xa box[], ea text[][])""")
        p, rows = self.both(db, "public.arr", r"""
            INSERT INTO arr VALUES (1);
            INSERT INTO arr VALUES (2, '', '{}', '{}', '{}', '{}', '{}', '{}', '{}', '{}');
            INSERT INTO arr VALUES (3, 'NULL', '{""}', '{NULL}', '{NULL}', '{NULL}', '{NULL}',
                '{NULL,"null"}', '{NULL}', '{NULL}');
            INSERT INTO arr VALUES (4, 'null', '{NULL,"NULL",null,"null"}', '{{1,2},{3,NULL}}',
                '{1.10,-0.01}', '{infinity,"0044-03-15 12:00:00+00 BC"}',
                ARRAY['\x00ff'::bytea, ''::bytea], ARRAY['{"a":"b,c"}'::jsonb, '[1,"}"]'::jsonb],
                ARRAY['(3,4),(1,2)'::box, '(7,8),(5,6)'::box], '{{a,NULL},{"NULL","{"}}');
            INSERT INTO arr (id, s, ta, ia) VALUES (5, '"', ARRAY['a,b', 'q"uote', 'back\slash', '{br}',
                ' sp ', E'new\nline', E'tab\t', 'ünï💥'], '[0:1]={7,8}');
            INSERT INTO arr (id, s, ta, ia) VALUES (6, E'\\', '[2:3][-1:0]={{a,b},{c,d}}', '[5:5]={9}');
            INSERT INTO arr (id, s, ta, ia) VALUES (7, E'\\N', '{{{x}}}', '{}');
            INSERT INTO arr (id, s) VALUES (8, E'\\.'), (9, E'a\\tb\\'), (10, E'\t\n\r\b\f\x0b\x7f'),
                (11, 'NaN'), (12, '{}'), (13, ' '), (14, E'\u2028\uFEFF\u00a0');
            UPDATE arr SET s = NULL WHERE id = 2;
            UPDATE arr SET s = '' WHERE id = 1;""")
        self.assertEqual(column(rows, "s"), {
            1: "", 2: None, 3: "NULL", 4: "null", 5: '"', 6: "\\", 7: "\\N", 8: "\\.", 9: "a\\tb\\",
            10: "\t\n\r\b\f\v\x7f", 11: "NaN", 12: "{}", 13: " ", 14: "\u2028\ufeff\u00a0"})
        self.assertEqual([r["s"] for r in p.rows("public.arr", "c")][:2], [None, ""])
        ta, ia = column(rows, "ta"), column(rows, "ia")
        self.assertEqual([ta[i] for i in range(1, 8)], [
            None, [], [""], [None, "NULL", None, "null"],
            ["a,b", 'q"uote', "back\\slash", "{br}", " sp ", "new\nline", "tab\t", "ünï💥"],
            [["a", "b"], ["c", "d"]], [[["x"]]]])
        self.assertEqual([ia[i] for i in range(1, 8)],
                         [None, [], [None], [[1, 2], [3, None]], [7, 8], [9], []])
        four = rows['{"id": 4}']
        self.assertEqual(four["na"], ["bg==", "/w=="])
        self.assertEqual(four["za"], ["infinity", "-0043-03-15T12:00:00.000000Z"])
        self.assertEqual(four["ba"], ["AP8=", ""])
        self.assertEqual([json.loads(x) for x in four["ja"]], [{"a": "b,c"}, [1, "}"]])
        self.assertEqual(len(four["xa"]), 2)
        self.assertEqual(four["ea"], [["a", None], ["NULL", "{"]])
        self.assertEqual(rows['{"id": 3}']["ja"], [None, "null"])

    def test_settings_of_the_database(self):
        db = self.db("""CREATE TABLE fmt (id int PRIMARY KEY, b bytea, d date, ts timestamp,
            tz timestamptz, iv interval, f8 float8, f4 real, c5 char(5), s text, j json, x xml,
            m money, da date[], ba bytea[], ra tstzrange)""")
        for setting in ("bytea_output = 'escape'", "datestyle = 'German, DMY'",
                        "intervalstyle = 'sql_standard'", "timezone = 'Asia/Kathmandu'",
                        "extra_float_digits = 0", "xmlbinary = 'hex'", "xmloption = 'document'",
                        "search_path = 'pg_catalog'", "array_nulls = off",
                        "default_transaction_read_only = off", "standard_conforming_strings = off",
                        "quote_all_identifiers = on", "statement_timeout = '1s'",
                        "idle_in_transaction_session_timeout = '500ms'", "row_security = on"):
            self.sql("ALTER DATABASE %s SET %s; ALTER ROLE postgres IN DATABASE %s SET %s"
                     % (db, setting, db, setting), "postgres")
        _, rows = self.both(db, "public.fmt", r"""
            SET array_nulls = on; SET standard_conforming_strings = on; SET datestyle = 'ISO, YMD';
            SET search_path = public; SET timezone = 'UTC'; SET statement_timeout = 0;
            INSERT INTO fmt VALUES
            (1, '\xc0ffee00', '2024-02-03', '2024-02-03 04:05:06.7', '2024-02-03 04:05:06.7+00',
             '1 year 2 mons -3 days 04:05:06', 0.1::float8 + 0.2::float8, 0.1::real * 3::real, 'ab',
             'ends with quote''', '{"a": 1,  "a":2}', '<a>ü</a>', 1234.5::numeric::money,
             '{2024-02-03}', ARRAY['\xff'::bytea], '[2024-02-03 00:00+00,)'),
            (2, '\x00', '2024-12-11', '2024-12-11 00:00:00', '2024-12-11 00:00:00+14', '-1 day',
             1e23, 1e10, '     ', E'line\n', 'null', NULL, NULL, NULL, NULL, NULL),
            (3, '', '1999-01-08', '1999-01-08 04:05:06', '1999-01-08 04:05:06 PST', '1 mon',
             2.2250738585072014e-308, 16777216, 'ñ', E'back\\slash and ''''two'''' quotes', '[]', NULL,
             NULL, NULL, NULL, NULL),
            (4, E'abc\\\\def'::bytea, '2024-02-29', '2024-02-29 23:59:59.999999',
             '2024-03-31 01:30:00+00', '00:00:00.000001', -1.5, -1.5, NULL, E'\r\n\t\b', NULL, NULL,
             NULL, NULL, NULL, NULL);""")
        self.assertEqual(column(rows, "b"), {1: "wP/uAA==", 2: "AA==", 3: "", 4: "YWJjXGRlZg=="})
        self.assertEqual(column(rows, "d"), {1: 19756, 2: 20068, 3: 10599, 4: 19782})
        self.assertEqual(column(rows, "tz"), {
            1: "2024-02-03T04:05:06.700000Z", 2: "2024-12-10T10:00:00.000000Z",
            3: "1999-01-08T12:05:06.000000Z", 4: "2024-03-31T01:30:00.000000Z"})
        self.assertEqual(column(rows, "ts")[1], 1706933106700000)
        self.assertEqual(column(rows, "f8"), {1: 0.30000000000000004, 2: 1e23,
                                              3: 2.2250738585072014e-308, 4: -1.5})
        self.assertEqual(column(rows, "f4")[2], 1e10)
        self.assertEqual(column(rows, "f4")[3], 16777216.0)
        self.assertAlmostEqual(column(rows, "f4")[1], 0.3, places=6)
        self.assertEqual(column(rows, "c5"), {1: "ab   ", 2: "     ", 3: "ñ    ", 4: None})
        self.assertEqual(column(rows, "s"), {1: "ends with quote'", 2: "line\n",
                                             3: "back\\slash and ''two'' quotes", 4: "\r\n\t\b"})
        self.assertEqual(column(rows, "j"), {1: '{"a": 1,  "a":2}', 2: "null", 3: "[]", 4: None})
        self.assertEqual(rows['{"id": 1}']["x"], "<a>ü</a>")
        self.assertEqual(rows['{"id": 1}']["da"], [19756])
        self.assertEqual(rows['{"id": 1}']["ba"], ["/w=="])
        self.assertEqual(rows['{"id": 1}']["ra"], '["2024-02-03 00:00:00+00",)')
        self.assertEqual(rows['{"id": 1}']["m"], "AeI6")
        month = 365.25 / 12 * 86400 * 1000000
        self.assertEqual(column(rows, "iv"), {
            1: int(14 * month) - 3 * 86400000000 + 14706000000, 2: -86400000000, 3: int(month), 4: 1})

    WHEN = """CREATE TABLE moments (id int PRIMARY KEY, d date, ts timestamp, ts3 timestamp(3),
        tz timestamptz, t time, ttz timetz, iv interval)"""
    MOMENTS = """
        (1, 'infinity', 'infinity', 'infinity', 'infinity', '24:00:00', '23:59:59.999999-15:59',
         '1 mon -1 day +00:00:01'),
        (2, '-infinity', '-infinity', '-infinity', '-infinity', '00:00:00',
         '00:00:00.000001+15:59', '-2 years -3 mons +4 days -05:06:07.000008'),
        (3, '0044-03-15 BC', '0044-03-15 12:00:00 BC', '0044-03-15 12:00:00.5 BC',
         '0044-03-15 12:00:00+00 BC', '12:00', '12:00+05:45', '-00:00:00.654321'),
        (4, '0044-03-15', '0044-03-15 12:00:00', '0044-03-15 12:00:00.5', '0044-03-15 12:00:00+00',
         '12:00', '12:00-03:30', '%s'),
        (5, '0001-01-01', '0001-01-01 00:00:00', '0001-01-01 00:00:00', '0001-01-01 00:00:00+00',
         '00:00:00.000001', '00:00+00', '0'),
        (6, '1969-12-31', '1969-12-31 23:59:59.999999', '1969-12-31 23:59:59.999',
         '1969-12-31 23:59:59.999999+00', '23:59:59.999999', '23:59:59.999999+00', '-1 day +23:59:59'),
        (7, '5874897-12-31', '294247-01-10 04:00:54.775807', '294247-01-10 04:00:54.775',
         '294247-01-10 04:00:54.775807+00', '12:00', '12:00+00', '1 day'),
        (8, '4714-11-24 BC', '%s', '4714-11-24 00:00:00 BC', '294276-12-31 23:59:59.999999+00',
         '12:00', '24:00:00+00', '%s')"""

    def test_moments(self):
        db = self.db(self.WHEN)
        _, rows = self.both(db, "public.moments", "INSERT INTO moments VALUES "
                            + self.MOMENTS % ("0", "2000-01-01", "0"))
        self.assertEqual(column(rows, "ts"), {
            1: 9223372036825200000, 2: -9223372036832400000, 3: -63517780800000000,
            4: -60772248000000000, 5: -62135596800000000, 6: -1, 7: MAX64, 8: 946684800000000})
        d = column(rows, "d")
        self.assertEqual({i: d[i] for i in range(3, 9)}, {
            3: -735160, 4: -703383, 5: -719162, 6: -1, 7: 2145042905, 8: -2440588})
        self.assertEqual(len(set(d.values())), 8)
        ts3 = column(rows, "ts3")
        self.assertEqual({i: ts3[i] for i in range(3, 9)}, {
            3: -63517780799500, 4: -60772247999500, 5: -62135596800000, 6: -1, 7: 9223372036854775,
            8: -210866803200000})
        self.assertEqual(len(set(ts3.values())), 8)
        self.assertEqual(column(rows, "tz"), {
            1: "infinity", 2: "-infinity", 3: "-0043-03-15T12:00:00.000000Z",
            4: "0044-03-15T12:00:00.000000Z", 5: "0001-01-01T00:00:00.000000Z",
            6: "1969-12-31T23:59:59.999999Z", 7: "+294247-01-10T04:00:54.775807Z",
            8: "+294276-12-31T23:59:59.999999Z"})
        self.assertEqual(column(rows, "t"), {1: 86400000000, 2: 0, 3: 43200000000, 4: 43200000000, 5: 1,
                                             6: 86399999999, 7: 43200000000, 8: 43200000000})
        ttz = column(rows, "ttz")
        self.assertEqual({i: ttz[i] for i in range(1, 8)}, {
            1: "15:58:59.999999Z", 2: "08:01:00.000001Z", 3: "06:15:00Z", 4: "15:30:00Z", 5: "00:00:00Z",
            6: "23:59:59.999999Z", 7: "12:00:00Z"})
        self.assertNotIn(ttz[8], (None, "00:00:00Z"))  # the end of the day is not its beginning
        self.assertEqual(column(rows, "iv"), {1: 2543401000000, 2: -70677367000008, 3: -654321, 4: 0, 5: 0,
                                              6: -1000000, 7: 86400000000, 8: 0})

    def test_moments_as_text(self):
        db = self.db(self.WHEN)
        _, rows = self.both(db, "public.moments", "INSERT INTO moments VALUES "
                            + self.MOMENTS % ("178000000 years", "294276-12-31 23:59:59.999999",
                                              "-178000000 years"),
                            format={"interval.handling.mode": "string",
                                    "time.precision.mode": "isostring"})
        iv = column(rows, "iv")
        self.assertEqual({i: iv[i] for i in (1, 2, 3, 4, 6)}, {
            1: "P0Y1M-1DT0H0M1S", 2: "P-2Y-3M4DT-5H-6M-7.000008S", 3: "P0Y0M0DT0H0M-0.654321S",
            4: "P178000000Y0M0DT0H0M0S", 6: "P0Y0M-1DT23H59M59S"})
        for name in ("d", "ts", "ts3"):
            self.assertEqual(len(set(column(rows, name).values())), 8, name)

    def test_overflow_stops_before_the_row(self):
        """A number that 64 bits do not hold is an error that names the column, in the stream and in
        a snapshot; with saturation it is the largest number. Nothing wraps."""
        if self.version != pgcase.NEWEST:
            self.skipTest("not the server's business")
        for name, value, mode in (("ts", "294276-12-31 23:59:59.999999", {}),
                                  ("iv", "178000000 years", {}), ("iv", "-178000000 years", {}),
                                  ("ts", "2262-04-11 23:47:16.854776", {"time.precision.mode": "nanoseconds"})):
            with self.subTest(name=name, value=value):
                db = self.db(self.WHEN)
                p = self.pipe(db, format=mode).start()
                self.sql("INSERT INTO moments (id) VALUES (1); INSERT INTO moments (id, %s) VALUES "
                         "(2, '%s'); INSERT INTO moments (id) VALUES (3)" % (name, value), db)
                self.assertEqual(p.cdcd.wait(), 1)
                self.assertRegex(p.log_since_start(), r"public\.moments")
                self.assertRegex(p.log_since_start(), r"\b%s\b" % name)
                # What shared its batch may come only after it is mended.
                self.assertIn([k["id"] for _, k, _ in p.ops("public.moments")], ([], [1]))
                # Mended by the option, it goes on where it stopped.
                p.cdcd.config["format"] = {"debezium": {**mode, "time.overflow": "saturate"}}
                p.start()
                p.sync()
                p.stop()
                self.assertEqual([k["id"] for _, k, _ in p.ops("public.moments")], [1, 2, 3])
                self.assertEqual(p.rows("public.moments")[1][name],
                                 MIN64 if value.startswith("-") else MAX64)
        snap = self.pipe(db, name="snapshot", format=mode)
        snap.fails(1, r"public\.moments", r"\bts\b")

    def test_user_defined_types(self):
        db = self.db("""
            CREATE TYPE feeling AS ENUM ('sad', 'ok', 'very happy, "quoted"');
            CREATE DOMAIN posint AS int CHECK (VALUE > 0);
            CREATE DOMAIN taglist AS text[] CHECK (cardinality(VALUE) < 5);
            CREATE DOMAIN amount AS numeric(10, 2);
            CREATE DOMAIN amount_pos AS amount CHECK (VALUE >= 0);
            CREATE DOMAIN feeling2 AS feeling;
            CREATE DOMAIN stamp AS timestamp(3);
            CREATE TYPE pair AS (a int, b text, m feeling);
            CREATE DOMAIN posint2 AS posint;
            CREATE TABLE udt (id posint PRIMARY KEY, m feeling, ma feeling[], tg taglist, am amount_pos,
                p pair, pa pair[], pda posint[], bx box[], fd feeling2, fda feeling2[], st stamp,
                pp posint2[], ama amount_pos[])""")
        p = self.pipe(db).start()
        self.sql(r"""
            INSERT INTO udt VALUES
            (1, 'sad', '{sad,NULL,"very happy, \"quoted\""}', '{x,"y z"}', 12.50, ROW(1, 'a "q", (b)', 'ok'),
             ARRAY[ROW(1, NULL, NULL)::pair, NULL, ROW(NULL, '', NULL)::pair], '{1,2}',
             ARRAY['(3,4),(1,2)'::box, '(7,8),(5,6)'::box], 'ok', '{sad,ok}', '2000-01-01 00:00:01.5',
             '{3}', '{12.50,NULL}'),
            (2, NULL, '{}', NULL, 0, ROW(NULL, NULL, NULL), '{}', NULL, NULL, NULL, NULL, NULL, NULL, NULL);
            ALTER TYPE feeling ADD VALUE 'new label' AFTER 'ok';""", db)
        self.sql("""INSERT INTO udt (id, m, ma) VALUES (3, 'new label', '{"new label",ok}');
            ALTER TYPE feeling RENAME VALUE 'sad' TO 'blue';
            UPDATE udt SET am = 1 WHERE id = 1;
            ALTER TABLE udt ADD COLUMN later feeling[] DEFAULT '{ok}';
            INSERT INTO udt (id) VALUES (4);""", db)
        p.sync()
        records = p.rows("public.udt")
        one, two, three, again, four = records
        self.assertEqual((one["id"], one["m"], one["ma"], one["tg"], one["pda"], one["am"]), (
            1, "sad", ["sad", None, 'very happy, "quoted"'], ["x", "y z"], [1, 2], "BOI="))
        self.assertEqual(one["p"], '(1,"a ""q"", (b)",ok)')
        self.assertEqual(two["p"], "(,,)")
        self.assertEqual(one["pa"], ["(1,,)", None, '(,"",)'])
        self.assertEqual(len(one["bx"]), 2)
        self.assertEqual((one["fd"], one["fda"], one["st"], one["pp"], one["ama"]),
                         ("ok", ["sad", "ok"], 946684801500, [3], ["BOI=", None]))
        self.assertEqual((three["m"], three["ma"]), ("new label", ["new label", "ok"]))
        self.assertEqual(again["m"], "blue")
        self.assertEqual(four["later"], ["ok"])
        self.assertNotIn("later", one)
        rows = self.snapshot_like_stream(p, "public.udt", db, ignore=("later",))
        self.assertEqual({k: v["later"] for k, v in rows.items()},
                         {'{"id": %d}' % i: ["ok"] for i in (1, 2, 3, 4)})

    def test_enum_labels_are_read_late(self):
        """The log still says what the label was called when the row was written."""
        db = self.db("CREATE TYPE c AS ENUM ('old'); CREATE TABLE e (id int PRIMARY KEY, c c)")
        p = self.pipe(db, format={"schemas.enable": True}).start()
        p.stop()
        self.sql("INSERT INTO e VALUES (1, 'old'); ALTER TYPE c RENAME VALUE 'old' TO 'new'; "
                 "INSERT INTO e VALUES (2, 'new'); ALTER TYPE c ADD VALUE 'third'", db)
        self.sql("INSERT INTO e VALUES (3, 'third')", db)
        p.start().sync()
        records = [r["value"] for r in p.records("public.e")]
        self.assertEqual([r["payload"]["after"]["c"] for r in records], ["old", "new", "third"])
        allowed = [f for f in records[-1]["schema"]["fields"] if f["field"] == "after"][0]["fields"][1]
        self.assertEqual(allowed["parameters"]["allowed"], "new,third")

    def test_enum_label_added_while_running(self):
        """The schema that goes with a record names all labels of its time, without a restart."""
        db = self.db("CREATE TYPE c AS ENUM ('a'); CREATE TABLE e (id int PRIMARY KEY, c c, ca c[])")
        p = self.pipe(db, format={"schemas.enable": True}).start()
        self.sql("INSERT INTO e VALUES (1, 'a'); ALTER TYPE c ADD VALUE 'b'", db)
        self.sql("INSERT INTO e VALUES (2, 'b', '{b}')", db)
        p.sync()
        two = p.records("public.e")[1]["value"]
        self.assertEqual(two["payload"]["after"], {"id": 2, "c": "b", "ca": ["b"]})
        after = [f for f in two["schema"]["fields"] if f["field"] == "after"][0]["fields"]
        self.assertEqual(after[1]["parameters"]["allowed"], "a,b")

    def test_every_other_type_by_text(self):
        """Types that are nobody's favourite: nothing is left out, nothing becomes null."""
        neg = "neg numeric(3,-2)" if self.version >= 15 else "neg numeric"
        db = self.db("CREATE TABLE odd (id int PRIMARY KEY, mr int4multirange, ln line, lg lseg, bx box, pth path, pol polygon, cir circle, nm name, ch \"char\","
                     " tsq tsquery, jp jsonpath, lsn pg_lsn, xid8 xid8, tid tid, reg regclass, nr numrange[],"
                     " va int2vector, ov oidvector, snap pg_snapshot, bits bit(3)[], mny money[],"
                     " nn numeric[], ft float8[], bl bool[], uu uuid[], big numeric(38,10), " + neg + ")")
        _, rows = self.both(db, "public.odd", """INSERT INTO odd VALUES (1, '{[1,3),[5,7)}',
            '{1,2,3}', '((0,0),(1,1))', '((1,1),(0,0))', '[(0,0),(1,2)]', '((0,0),(1,0),(1,1))',
            '<(1,2),3>', 'a_name', 'x', '''fat'' & !''rat''', '$.a[*] ? (@ > 1)', '16/B374D848',
            '12345678901', '(0,1)', 'pg_class', '{"[1.1,2.2)",empty}', '1 2', '3 4',
            '10:20:10,14,15', ARRAY[B'101', NULL], '{1.5,NULL}', '{1.5,NaN,100}',
            '{NaN,Infinity,-0,1e-7}', '{t,f,NULL}',
            '{a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11}', 1234567890123456789012345678.0123456789, 12345)""")
        row = rows['{"id": 1}']
        self.assertEqual([k for k, v in row.items() if v is None], [])
        self.assertEqual((row["mr"], row["nm"], row["ch"], row["lsn"], row["tid"], row["reg"]),
                         ("{[1,3),[5,7)}", "a_name", "x", "16/B374D848", "(0,1)", "pg_class"))
        self.assertEqual((row["tsq"], row["jp"], row["xid8"]),
                         ("'fat' & !'rat'", '$."a"[*]?(@ > 1)', "12345678901"))
        self.assertEqual(row["bl"], [True, False, None])
        self.assertEqual(row["uu"], ["a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11"])

    def test_not_a_number(self):
        """numeric NaN and infinities: exact text without a schema, an error with one, text in the
        string mode; never null."""
        db = self.db("CREATE TABLE nan (id int PRIMARY KEY, v numeric, f numeric(8,2), a numeric[])")
        inserts = ("INSERT INTO nan VALUES (1, 'NaN', 'NaN', '{NaN,1}'), (2, 'Infinity', NULL, NULL), "
                   "(3, '-Infinity', NULL, NULL);")
        p, rows = self.both(db, "public.nan", inserts)
        self.assertEqual(column(rows, "v"), {1: "NaN", 2: "Infinity", 3: "-Infinity"})
        self.assertEqual(column(rows, "f")[1], "NaN")
        _, rows = self.both(db, "public.nan", "UPDATE nan SET id = id", name="text",
                            format={"decimal.handling.mode": "string"})
        self.assertEqual(column(rows, "v"), {1: "NaN", 2: "Infinity", 3: "-Infinity"})
        self.assertEqual(column(rows, "a")[1], ["NaN", "1"])
        self.pipe(db, name="with_schema", format={"schemas.enable": True}).fails(1, r"public\.nan",
                                                                                  r"\bv\b", "NaN")


if __name__ == "__main__":
    pgcase.main()
