"""Every type under every way to write it: the snapshot gives the same JSON as the stream, and the
schema says what is there. Whole records in the default form are in test_my_golden.py."""
import base64

import mycase

EVERY = """CREATE TABLE every (id int PRIMARY KEY,
    ti tinyint, tiu tinyint unsigned, bo boolean, si smallint, siu smallint unsigned, mi mediumint,
    miu mediumint unsigned, i int, iu int unsigned, iz int(8) zerofill, bi bigint, biu bigint unsigned,
    de decimal(10,2), de0 decimal(5,0), de65 decimal(65,30), f float, f72 float(7,2), d double, d104 double(10,4),
    b1 bit(1), b5 bit(5), b64 bit(64), y year, da date, t0 time, t3 time(3), t6 time(6), dt0 datetime,
    dt1 datetime(1), dt3 datetime(3), dt4 datetime(4), dt6 datetime(6), ts0 timestamp NULL, ts2 timestamp(2) NULL,
    ts6 timestamp(6) NULL, ch char(10), vc varchar(300), vcl varchar(40) CHARACTER SET latin1,
    vcb varchar(20) CHARACTER SET binary, tx text, lt longtext, bn binary(8), vb varbinary(300), bl blob, lb longblob,
    en enum('a','b','','ç','d,e','it''s'), st set('x','y','z w','ä'), js json, ge geometry, po point,
    ls linestring, gc geometrycollection, gs int AS (id * 2) STORED, gv varchar(20) AS (CONCAT('v', id)) VIRTUAL%s)"""
ROWS = r"""SET sql_mode = 'NO_ENGINE_SUBSTITUTION', time_zone = '+00:00';
    INSERT INTO every (id, ti, tiu, bo, si, siu, mi, miu, i, iu, iz, bi, biu, de, de0, de65, f, f72, d, d104, b1, b5, b64,
        y, da, t0, t3, t6, dt0, dt1, dt3, dt4, dt6, ts0, ts2, ts6, ch, vc, vcl, vcb, tx, lt, bn, vb, bl, lb, en, st, js,
        ge, po, ls, gc) VALUES
    (1, -5, 200, 1, -300, 40000, -70000, 9000000, -100000, 3000000000, 42, -5000000000, 18446744073709551615, 12345.67,
     -3, 12345678901234567890.1234567890, 1.1, 123.45, 2.2250738585072014E-300, 1234.5678, b'1', b'10101', 0xFF00000000000001,
     2024, '2024-02-29', '13:14:15', '13:14:15.123', '-13:14:15.123456', '2024-02-29 13:14:15', '2024-02-29 13:14:15.1',
     '2024-02-29 13:14:15.123', '2024-02-29 13:14:15.1234', '2024-02-29 13:14:15.123456', '2024-02-29 13:14:15',
     '2024-02-29 13:14:15.12', '2024-02-29 13:14:15.123456', 'ab', 'héllo "q" \n\t\\ 😀', 'café €', 0xff00, 'tèxt', REPEAT('l', 70000),
     0x0001, 0x00ff10ab, 0xdeadbeef00, 0x02, 'ç', 'x,z w,ä', '{"b": 1, "a": [1, -2, 3.50, 1e10, "s\\n😀", null, true, {}], "": 18446744073709551615}',
     ST_GeomFromText('LINESTRING(0 0,1 1)'), ST_GeomFromText('POINT(1.5 -2.25)'), ST_GeomFromText('LINESTRING(0 0,1 1,2 2)'),
     ST_GeomFromText('GEOMETRYCOLLECTION(POINT(1 1),LINESTRING(0 0,1 1))')),
    (2, 127, 255, 2, 32767, 65535, 8388607, 16777215, 2147483647, 4294967295, 4294967295, 9223372036854775807, 9223372036854775808,
     99999999.99, 99999, 99999999999999999999999999999999999.999999999999999999999999999999, 3.402823e38, 99999.99,
     1.7976931348623157e308, 999999.9999, b'1', b'11111', 0xFFFFFFFFFFFFFFFF, 2155, '9999-12-31', '838:59:59', '838:59:58.999',
     '838:59:58.999999', '9999-12-31 23:59:59', '9999-12-31 23:59:59.9', '9999-12-31 23:59:59.999', '9999-12-31 23:59:59.9999',
     '9999-12-31 23:59:59.999999', '2038-01-19 03:14:07', '2038-01-19 03:14:07.99', '2038-01-19 03:14:07.999999', REPEAT('😀',10),
     REPEAT('日',300), 'ÿ', 0x00, REPEAT('x',300), 'lt', 0xffffffffffffffff, REPEAT(0xff,300), REPEAT(0x00,4), 0x01, 'it''s',
     'x,y,z w,ä', '[]', ST_GeomFromText('POINT(1 2)',4326), ST_GeomFromText('POINT(1e100 -1e-100)'), NULL, NULL),
    (3, -128, 0, -128, -32768, 0, -8388608, 0, -2147483648, 0, 0, -9223372036854775808, 0, -99999999.99, -99999,
     -99999999999999999999999999999999999.999999999999999999999999999999, 1e-37, -0.01, -1.7976931348623157e308, -0.0001, b'0',
     b'00000', 0, '0000', '1000-01-01', '-838:59:59', '-838:59:58.999', '-00:00:00.000001', '1000-01-01 00:00:00',
     '1969-12-31 23:59:59.9', '1000-01-01 00:00:00.001', '1969-12-31 23:59:59.9999', '1000-01-01 00:00:00.000001',
     '1970-01-01 00:00:01', '1970-01-01 00:00:01.01', '1970-01-01 00:00:01.000001', ' x ', ' trailing  ', '', '', '', '', 0x00, '', '',
     '', 'd,e', '', '{}', ST_GeomFromText('GEOMETRYCOLLECTION EMPTY'), ST_GeomFromText('POINT(0 0)'), NULL, NULL),
    (4, 0, 1, 0, 0, 1, 0, 1, 0, 1, 1, 0, 1, 0.05, 0, -0.000000000000000000000000000001, 16777216, 0.1, 0.1, 1e-4, NULL, 1, 1, 1970,
     '2024-00-00', '24:00:00', '-24:00:00.5', '00:00:00', '0000-00-00 00:00:00', '2024-02-30 00:00:00', NULL, NULL, '1582-10-10 00:00:00',
     '0000-00-00 00:00:00', NULL, NULL, '\'', '\0', '“', 'x', '\Z\b', '%_', 'a\0', ' ', '0', 'NULL', 'nosuch', NULL, 'null',
     NULL, NULL, NULL, NULL);
    INSERT INTO every (id) VALUES (5);
    UPDATE every SET i = 7, en = '' WHERE id = 5;"""
FLAVOR = {"mysql": ", vec vector(3)", "mariadb": ", uu uuid, i6 inet6, i4 inet4, co varchar(500) COMPRESSED"}
MORE = {
    "mysql": "UPDATE every SET vec = STRING_TO_VECTOR('[1,2.5,-0.1]') WHERE id < 3",
    "mariadb": "UPDATE every SET uu = '123e4567-e89b-12d3-a456-426655440000', i6 = '2001:db8::1', i4 = '10.0.0.1',"
               " co = REPEAT('compress', 50) WHERE id < 3;"
               "UPDATE every SET uu = '00000000-0000-0000-0000-000000000001', i6 = '::', i4 = '0.0.0.0', co = '' WHERE id = 3",
}


class Case(mycase.MyCase):
    def table(self):
        return self.db(EVERY % FLAVOR[self.flavor])

    def streamed(self, **format):
        db = self.table()
        p = self.pipe(db, format=format).start()
        self.sql(ROWS + MORE[self.flavor], db)
        return p.sync().stop()

    def row(self, p, id):
        return [r for r in p.rows("every", "cu") if r["id"] == id][-1]


@mycase.each_server()
class Modes(Case):
    def both(self, **format):
        """Streamed; and its snapshot is the same. Returns the pipeline."""
        p = self.streamed(**format)
        self.snapshot_like_stream(p, "every")
        return p

    def test_default(self):
        p = self.both()
        one, two, three, four, five = (self.row(p, n) for n in range(1, 6))
        self.assertEqual([r["biu"] for r in (one, two, three)], [2**64 - 1, 2**63, 0])
        self.assertEqual([r["en"] for r in (one, two, three, four, five)], ["ç", "it's", "d,e", "", ""])
        self.assertEqual([r["st"] for r in (one, two, three, four)], ["x,z w,ä", "x,y,z w,ä", "", None])
        self.assertEqual([r["y"] for r in (one, two, three)], [2024, 2155, 0])
        self.assertEqual([r["f72"] for r in (one, two, three, four)], [123.45, 99999.99, -0.01, 0.1])
        self.assertEqual([r["f"] for r in (one, two, three, four)], [1.1, 3.402823e38, 1e-37, 16777216.0])
        self.assertEqual([r["t3"] for r in (one, four)], [47655123000, -86400500000])
        self.assertEqual([r["dt4"] for r in (one, two, three)], [1709212455123400, 253402300799999900, -100])
        self.assertEqual([r["dt1"] for r in (one, two, three)], [1709212455100, 253402300799900, -100])
        self.assertEqual([r["ts2"] for r in (one, two, three)], ["2024-02-29T13:14:15.12Z", "2038-01-19T03:14:07.99Z", "1970-01-01T00:00:01.01Z"])
        self.assertEqual([four[c] for c in ("da", "dt0", "dt1", "ts0")], [None] * 4)
        self.assertEqual(three["bn"], base64.b64encode(bytes(8)).decode())
        self.assertEqual(four["bn"], base64.b64encode(b"a" + bytes(7)).decode())
        self.assertEqual([r["ch"] for r in (one, three, four)], ["ab", " x", "'"])
        self.assertEqual([r["vc"] for r in (three, four)], [" trailing  ", "\0"])
        self.assertEqual(one["b64"], base64.b64encode((0xFF00000000000001).to_bytes(8, "little")).decode())
        self.assertEqual((one["gs"], one["gv"]), (2, "v1"))
        self.assertEqual(five, {**{c: None for c in five}, "id": 5, "i": 7, "en": "", "gs": 10, "gv": "v5"})
        if self.flavor == "mysql":
            self.assertEqual(one["vec"], [1.0, 2.5, -0.1])
            self.assertEqual(one["js"], '{"":18446744073709551615,"a":[1,-2,3.5,10000000000,"s\\n😀",null,true,{}],"b":1}')
        else:
            self.assertEqual((one["uu"], one["i6"], one["i4"], one["co"]),
                             ("123e4567-e89b-12d3-a456-426655440000", "2001:db8::1", "10.0.0.1", "compress" * 50))
            self.assertEqual((three["uu"], three["i6"], three["i4"], three["co"]),
                             ("00000000-0000-0000-0000-000000000001", "::", "0.0.0.0", ""))

    def test_decimal(self):
        p = self.both(**{"decimal.handling.mode": "string", "bigint.unsigned.handling.mode": "precise"})
        self.assertEqual([self.row(p, n)["de65"] for n in (1, 3, 4)], [
            "12345678901234567890.123456789000000000000000000000", "-" + "9" * 35 + "." + "9" * 30, "-0." + "0" * 29 + "1"])
        self.assertEqual([self.row(p, n)["de"] for n in (1, 4)], ["12345.67", "0.05"])
        self.assertEqual([self.row(p, n)["de0"] for n in (1, 4)], ["-3", "0"])
        p = self.both(**{"decimal.handling.mode": "double"})
        self.assertEqual([self.row(p, n)["de"] for n in (1, 2)], [12345.67, 99999999.99])

    def test_time(self):
        for mode in ("connect", "microseconds", "isostring"):
            with self.subTest(mode):
                # 838 hours in milliseconds are more than connect's 32 bits hold.
                p = self.both(**{"time.precision.mode": mode, "time.overflow": "saturate"})
                row = self.row(p, 1)
                self.assertEqual(
                    [row[c] for c in ("da", "t3", "dt3", "dt6")],
                    {"connect": [19782, 47655123, 1709212455123, 1709212455123],
                     "microseconds": [19782, 47655123000, 1709212455123000, 1709212455123456],
                     "isostring": ["2024-02-29Z", "13:14:15.123Z", "2024-02-29T13:14:15.123Z", "2024-02-29T13:14:15.123456Z"]}[mode])

    def test_binary(self):
        for mode, want in (("hex", "00ff10ab"), ("base64", "AP8Qqw=="), ("base64-url-safe", "AP8Qqw==")):
            with self.subTest(mode):
                p = self.both(**{"binary.handling.mode": mode})
                self.assertEqual(self.row(p, 1)["vb"], want)

    def test_with_schemas(self):
        """A value for each field, of the field's type."""
        p = self.streamed(**{"schemas.enable": True})
        kinds = {"int8": int, "int16": int, "int32": int, "int64": int, "float": (float, int), "double": (float, int),
                 "boolean": bool, "string": str, "bytes": str, "struct": dict, "array": list}
        records = [r["value"] for r in p.records("every") if r["value"]["payload"]["op"] in "cu"]
        self.assertGreater(len(records), 5)
        for value in records:
            fields = next(f for f in value["schema"]["fields"] if f["field"] == "after")["fields"]
            row = value["payload"]["after"]
            self.assertEqual([f["field"] for f in fields], list(row))
            for f in fields:
                v = row[f["field"]]
                if v is None:
                    self.assertTrue(f["optional"], f)
                else:
                    self.assertIsInstance(v, kinds[f["type"]], (f, v))
                if f["type"] == "bytes" and v is not None:
                    base64.b64decode(v, validate=True)

    def test_without_metadata(self):
        """binlog_row_metadata off: what the log lacks comes from information_schema."""
        self.sql("SET GLOBAL binlog_row_metadata = %s" % ("MINIMAL" if self.flavor == "mysql" else "NO_LOG"))
        self.addCleanup(self.sql, "SET GLOBAL binlog_row_metadata = FULL")
        self.both()


@mycase.each_server()
class Keys(Case):
    """Each type as a key, and as what a snapshot's chunks are cut by."""

    KEYS = {"tinyint unsigned": "i % 256", "bigint": "i * 92233720368547 - 9223372036854775807", "decimal(20,10)": "i / 7 - 50",
            "double": "i * 1e-3 - 0.5", "char(8)": "LPAD(i, 8, 'ä')", "varchar(20) CHARACTER SET utf16": "CONCAT('ü', i)",
            "varchar(40) COLLATE utf8mb4_bin": "CONCAT(IF(i % 2, 'a', 'A'), i)", "binary(4)": "UNHEX(LPAD(HEX(i), 8, '0'))",
            "varbinary(20)": "UNHEX(CONCAT('ff00', LPAD(HEX(i), 4, '0')))", "date": "DATE '1000-01-01' + INTERVAL i * 3000 DAY",
            "datetime(6)": "TIMESTAMP '1969-12-31 23:59:59.5' + INTERVAL i MICROSECOND", "time(3)": "SEC_TO_TIME(i * 3000 - 1500000.5)",
            "timestamp(3)": "FROM_UNIXTIME(1 + i * 1000.001)", "year": "1901 + i % 255", "bit(10)": "i", "int": "i - 500",
            "enum('c','b','a')": "1 + i % 3", "set('c','b','a')": "i % 8"}

    def test_each(self):
        db = self.db()
        tables = {}
        for n, (type_, value) in enumerate(self.KEYS.items()):
            tables["k%d" % n] = type_
            self.sql("CREATE TABLE k%d (k %s, n int, PRIMARY KEY (k, n)); INSERT INTO k%d WITH RECURSIVE n (i) AS (SELECT 0 UNION ALL "
                     "SELECT i + 1 FROM n WHERE i < 799) SELECT %s, i FROM n" % (n, type_, n, value), db)
        p = self.pipe(db, source={"snapshot.chunk.rows": 100}, snapshot={"workers": 3}).start()
        for table, type_ in tables.items():
            with self.subTest(type_):
                rows = p.rows(table)
                self.assertEqual(sorted(r["n"] for r in rows), list(range(800)))
                self.sql("UPDATE %s SET n = n + 1000" % table, db)
        p.sync().stop()
        for table, type_ in tables.items():
            with self.subTest(type_):
                # Keys of the stream are those of the snapshot: each row has been taken back.
                self.assertEqual(len(p.last(table)), 800)
                self.assertEqual(sorted(r["n"] for r in p.last(table).values()), list(range(1000, 1800)))
        self.snapshot_like_stream(p, *tables)


if __name__ == "__main__":
    mycase.main()
