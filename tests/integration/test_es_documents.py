"""Rows of every database as documents, on both kinds of servers: values of all types byte for byte, ids,
mappings and what is found by them, columns that come and change; directly and through Kafka."""
import json
import os
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../support"))
import cdcdtest  # noqa: E402
import mycase  # noqa: E402
from cdcdtest import wait_until  # noqa: E402
from escase import EsCase, Search  # noqa: E402

SERVERS = os.environ.get("CDCD_TEST_SEARCH_SERVERS", "opensearch elasticsearch").split()
_servers = {}


def search(name):
    if name not in _servers:
        _servers[name] = Search(name)
        unittest.addModuleCleanup(_servers[name].stop)
    return _servers[name]


_kafka = []


def kafka():
    if not _kafka:
        _kafka.append(cdcdtest.Kafka())
        unittest.addModuleCleanup(_kafka[0].stop)
    return _kafka[0]


def each_search(cls):
    """Replaces the class by one for each kind of server."""
    module = sys.modules[cls.__module__]
    for name in SERVERS:
        new = "%s_%s" % (cls.__name__, name)
        setattr(module, new, type(new, (cls,), {"server": name, "__module__": cls.__module__}))


# (type, value, what stands in the document)
POSTGRES = [
    ("bool", "true", "true"),
    ("int2", "-32768", "-32768"),
    ("int4", "2147483647", "2147483647"),
    ("int8", "9223372036854775807", "9223372036854775807"),
    ("int8", "9007199254740993", "9007199254740993"),
    ("oid", "4294967295", "4294967295"),
    ("float4", "1.1", "1.1"),
    ("float8", "1e300", "1.0E300"),
    ("float8", "'NaN'", '"NaN"'),
    ("float8", "'-Infinity'", '"-Infinity"'),
    ("numeric", "123456789.123456789", "123456789.123456789"),
    ("numeric", "1e30", "1" + "0" * 30),
    ("numeric", "'NaN'", '"NaN"'),
    ("numeric(10,2)", "12345678.90", "12345678.90"),
    ("numeric(10,2)", "-0.01", "-0.01"),
    ("numeric(10,2)", "'NaN'", '"NaN"'),
    ("numeric(5,0)", "99999", "99999"),
    ("numeric(40,20)", "12345678901234567890.12345678901234567890", "12345678901234567890.12345678901234567890"),
    ("money", "'$1,234.56'", "1234.56"),
    ("text", "E'h\\u00e9llo \"q\" \\n\\t \\\\ \\U0001F600 \\u0001'",
     '"héllo \\"q\\" \\n\\t \\\\ \\uD83D\\uDE00 \\u0001"'),
    ("varchar(20)", "''", '""'),
    ("char(5)", "'ab'", '"ab   "'),
    ("bytea", "'\\x00ff10ab'", '"AP8Qqw=="'),
    ("date", "'2024-02-29'", '"2024-02-29"'),
    ("date", "'0001-01-01 BC'", '"0000-01-01"'),
    ("date", "'4713-01-01 BC'", '"-4712-01-01"'),
    ("date", "'5874897-12-31'", '"+5874897-12-31"'),
    ("date", "'infinity'", '"infinity"'),
    ("date", "'-infinity'", '"-infinity"'),
    ("time", "'13:14:15.123456'", '"13:14:15.123456"'),
    ("time", "'24:00:00'", '"24:00:00"'),
    ("time(3)", "'13:14:15.120'", '"13:14:15.12"'),
    ("timetz", "'13:14:15.123456+02:30'", '"10:44:15.123456Z"'),
    ("timestamp", "'2024-02-29 13:14:15.123456'", '"2024-02-29T13:14:15.123456"'),
    ("timestamp", "'1900-01-01 00:00:00'", '"1900-01-01T00:00:00"'),
    ("timestamp", "'290000-01-01 00:00:00'", '"+290000-01-01T00:00:00"'),
    ("timestamp", "'4713-01-01 00:00:00 BC'", '"-4712-01-01T00:00:00"'),
    ("timestamp", "'infinity'", '"infinity"'),
    ("timestamp(3)", "'1969-12-31 23:59:59.999'", '"1969-12-31T23:59:59.999"'),
    ("timestamptz", "'2024-02-29 13:14:15.123456+02'", '"2024-02-29T11:14:15.123456Z"'),
    ("timestamptz", "'-infinity'", '"-infinity"'),
    ("interval", "'1 year 2 mons 3 days 04:05:06.789'", '"PT10303H5M6.789S"'),
    ("interval", "'-1 day'", '"PT-24H"'),
    ("uuid", "'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11'", '"a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11"'),
    ("json", "'{\"a\": 1,  \"b\":[true,null]}'", '"{\\"a\\": 1,  \\"b\\":[true,null]}"'),
    ("jsonb", "'5'", '"5"'),
    ("int4[]", "'{1,2,NULL}'", "[1,2,null]"),
    ("int4[]", "'{{1,2},{3,4}}'", "[[1,2],[3,4]]"),
    ("int4[]", "'{}'", "[]"),
    ("text[]", "'{a,\"b c\",NULL,\"q\\\"x\"}'", '["a","b c",null,"q\\"x"]'),
    ("numeric(10,2)[]", "'{1.10,2.25}'", "[1.10,2.25]"),
    ("timestamp[]", "'{2024-02-29 13:14:15.123456}'", '["2024-02-29T13:14:15.123456"]'),
    ("date[]", "'{2024-02-29,infinity}'", '["2024-02-29","infinity"]'),
    ("mood", "'sun'", '"sun"'),
    ("inet", "'192.168.0.1/24'", '"192.168.0.1/24"'),
    ("macaddr", "'08:00:2b:01:02:03'", '"08:00:2b:01:02:03"'),
    ("point", "'(1.5,-2.25)'", '{"x":1.5,"y":-2.25}'),
    ("box", "'(1,1),(0,0)'", '{"wkt":"POLYGON ((1 1, 1 0, 0 0, 0 1, 1 1))"}'),
    ("lseg", "'[(0,0),(1,1)]'", '{"wkt":"LINESTRING (0 0, 1 1)"}'),
    ("hstore", "'a=>1,b=>NULL'", '"{\\"a\\":\\"1\\",\\"b\\":null}"'),
    ("xml", "'<x a=\"1\">t</x>'", '"<x a=\\"1\\">t</x>"'),
    ("bit(1)", "B'1'", "true"),
    ("bit(8)", "B'10101010'", '"qg=="'),
    ("int4range", "'[1,10)'", '"[1,10)"'),
    ("tsvector", "'the quick:1A fox'", "\"'fox' 'quick':1A 'the'\""),
    ("pos", "7", "7"),
    ("text", "NULL", "null"),
]

MYSQL = [
    ("TINYINT", "-5", "-5"),
    ("TINYINT(1)", "1", "1"),
    ("BIT(1)", "b'1'", "true"),
    ("BIGINT UNSIGNED", "18446744073709551615", "18446744073709551615"),
    ("DECIMAL(10,2)", "12345.67", "12345.67"),
    ("DECIMAL(65,30)", "12345678901234567890.123456789012345678901234567890",
     "12345678901234567890.123456789012345678901234567890"),
    ("FLOAT", "1.1", "1.1"),
    ("DOUBLE", "2.2250738585072014E-300", "2.2250738585072014E-300"),
    ("BIT(13)", "b'1010101010101'", '"VRU="'),
    ("YEAR", "2024", "2024"),
    ("DATE", "'2024-02-29'", '"2024-02-29"'),
    ("DATE", "'9999-12-31'", '"9999-12-31"'),
    ("TIME", "'13:14:15'", '"13:14:15"'),
    ("TIME", "'-838:59:59'", '"-838:59:59"'),
    ("TIME(6)", "'838:59:58.999999'", '"838:59:58.999999"'),
    ("DATETIME", "'2024-02-29 13:14:15'", '"2024-02-29T13:14:15"'),
    ("DATETIME(6)", "'2024-02-29 13:14:15.123456'", '"2024-02-29T13:14:15.123456"'),
    ("TIMESTAMP(6)", "'2024-02-29 13:14:15.123456'", '"2024-02-29T13:14:15.123456Z"'),
    ("VARCHAR(255)", "'héllo'", '"héllo"'),
    ("BINARY(8)", "x'0001'", '"AAEAAAAAAAA="'),
    ("BLOB", "x'deadbeef00'", '"3q2+7wA="'),
    ("ENUM('a','d,e')", "'d,e'", '"d,e"'),
    ("SET('x','y','z')", "'x,z'", '"x,z"'),
    ("POINT", "ST_GeomFromText('POINT(1.5 -2.25)')", '{"x":1.5,"y":-2.25}'),
    ("POLYGON", "ST_GeomFromText('POLYGON((0 0,4 0,4 4,0 4,0 0),(1 1,2 1,2 2,1 2,1 1))')",
     '{"wkt":"POLYGON ((0 0, 4 0, 4 4, 0 4, 0 0), (1 1, 2 1, 2 2, 1 2, 1 1))"}'),
    ("GEOMETRYCOLLECTION", "ST_GeomFromText('GEOMETRYCOLLECTION(POINT(1 1),LINESTRING(0 0,1 1))')",
     '{"wkt":"GEOMETRYCOLLECTION (POINT (1 1), LINESTRING (0 0, 1 1))"}'),
    ("TEXT", "NULL", "null"),
]


def table_sql(types):
    columns = ", ".join("c%d %s" % (i, t) for i, (t, _, _) in enumerate(types))
    values = ", ".join(v for _, v, _ in types)
    return "CREATE TABLE t (id int PRIMARY KEY, %s)" % columns, "INSERT INTO t VALUES (1, %s)" % values


def expected(types):
    return '{"id":1,%s}' % ",".join('"c%d":%s' % (i, out) for i, (_, _, out) in enumerate(types))


PG_TYPES = "CREATE EXTENSION hstore; CREATE TYPE mood AS ENUM ('rain', 'sun'); CREATE DOMAIN pos AS int CHECK (VALUE > 0);"


class Documents(EsCase):
    """From PostgreSQL; DDL is up to each test."""
    DDL = "SELECT 1"

    def setUp(self):
        super().setUp()
        self.es = search(self.server)
        self.addCleanup(self.es.request, "DELETE", "/cdcd-state")
        self.addCleanup(self.es.request, "DELETE", "/%s.*" % self.db)

    def source(self, doc, index=None):
        data = self.es.source(index or self.index, doc)
        return data and data.decode()

    def wait_source(self, doc, text, index=None, timeout=60):
        """Until the document is there (text None: gone) and, byte for byte, this."""
        self.until("document %s" % doc, lambda: (self.source(doc, index) is None) == (text is None), timeout)
        if text is not None:
            try:
                self.until("document %s to change" % doc, lambda: self.source(doc, index) == text, timeout)
            except cdcdtest.Failure:
                self.assertEqual(self.source(doc, index), text)

    def found(self, query, index=None):
        """Ids of what a query finds."""
        index = index or self.index
        self.es.request("POST", "/%s/_refresh" % index)
        r = self.es.request("GET", "/%s/_search" % index, {"query": query, "size": 100})
        return sorted(h["_id"] for h in r["hits"]["hits"])

    def mapping(self, index=None):
        r = self.es.request("GET", "/%s/_mapping" % (index or self.index))
        return next(iter(r.values()))["mappings"].get("properties", {})


@each_search
class Types(Documents):
    def check_row(self, types):
        want = expected(types)
        self.until("the row", lambda: self.source("1"))
        got = self.source("1")
        if got != want:
            g, w = json.loads(got, parse_float=str, parse_int=str), json.loads(want, parse_float=str, parse_int=str)
            self.assertEqual({k: (types[int(k[1:])][0], v) for k, v in g.items() if w.get(k) != v},
                             {k: (types[int(k[1:])][0], v) for k, v in w.items() if g.get(k) != v})
        self.assertEqual(got, want)

    def test_snapshot_and_stream(self):
        create, insert = table_sql(POSTGRES)
        self.sql(PG_TYPES + create + ";" + insert)
        c = self.started(self.es.url)
        self.check_row(POSTGRES)
        self.sql("DELETE FROM t")
        self.wait_source("1", None)
        self.sql(insert)
        self.check_row(POSTGRES)
        self.assertEqual(c.stop(), 0)

    def mysql_types(self, flavor):
        my = mycase.server(flavor)
        db = my.new_db("es")
        self.index = "%s.%s.t" % (self.db, db)
        create, insert = table_sql(MYSQL)
        zone = "SET time_zone='+00:00';"
        my.sql(zone + create + ";" + insert, db)
        c = self.cdcd({"name": self.db, "topic.prefix": self.db,
                       "source": {"mysql": {"url": my.url(), "server.id": 4000 + len(self.db),
                                            "table.include.list": [db + ".t"]}},
                       "sink": {"elasticsearch": {"url": self.es.url}}}).start()
        self.check_row(MYSQL)
        my.sql("DELETE FROM t", db)
        self.wait_source("1", None)
        my.sql(zone + insert, db)
        self.check_row(MYSQL)
        self.assertEqual(c.stop(), 0)

    def test_mysql(self):
        self.mysql_types("mysql")

    def test_mariadb(self):
        self.mysql_types("mariadb")

    def through_kafka(self, **format):
        create, insert = table_sql([t for t in POSTGRES if t[1] != "'NaN'" or not format])
        types = [t for t in POSTGRES if t[1] != "'NaN'" or not format]
        self.sql(PG_TYPES + create + ";" + insert)
        capture = self.cdcd({"name": self.db, "topic.prefix": self.db,
                             "source": {"postgres": {"url": self.pg.url(self.db), "slot.name": self.db}},
                             "format": {"debezium": format},
                             "sink": {"kafka": {"bootstrap.servers": kafka().bootstrap}}}).start()
        index = self.cdcd({"name": self.db + "-index",
                           "source": {"kafka": {"bootstrap.servers": kafka().bootstrap,
                                                "topics": [self.db + "[.].*"], "group.id": self.db}},
                           "sink": {"elasticsearch": {"url": self.es.url}}}).start()
        self.check_row(types)
        self.sql("INSERT INTO t (id, c1) VALUES (2, 5); UPDATE t SET c1 = 6 WHERE id = 2; UPDATE t SET id = 3 WHERE "
                 "id = 2; DELETE FROM t WHERE id = 1")
        self.until("the new key", lambda: self.source("3"))
        self.until("the old one to go", lambda: self.source("2") is None and self.source("1") is None)
        self.assertEqual(json.loads(self.source("3"))["c1"], 6)
        self.assertEqual(capture.stop(), 0)
        self.assertEqual(index.stop(), 0)

    def test_through_kafka(self):
        self.through_kafka()

    def test_through_kafka_with_schemas(self):
        self.through_kafka(**{"schemas.enable": True})

    def test_other_modes(self):
        """Whatever the record looks like, the document is the same; but what a mode does away with."""
        modes = [{"decimal.handling.mode": "precise", "time.precision.mode": "isostring", "interval.handling.mode":
                  "string", "hstore.handling.mode": "map"},
                 {"time.precision.mode": "microseconds"}, {"time.precision.mode": "nanoseconds"}]
        self.sql("CREATE EXTENSION hstore; CREATE TABLE t (id int PRIMARY KEY, d date, ts timestamp, tod time, i "
                 "interval, h hstore, n numeric); INSERT INTO t VALUES (1, '2024-02-29', '2024-02-29 13:14:15.5', "
                 "'01:02:03', '1 day', 'a=>1', 1.50)")
        for n, mode in enumerate(modes):
            name = "%sm%d" % (self.db, n)
            c = self.cdcd({"name": name, "topic.prefix": name,
                           "source": {"postgres": {"url": self.pg.url(self.db), "slot.name": name,
                                                   "publication.name": name}},
                           "format": {"debezium": mode},
                           "sink": {"elasticsearch": {"url": self.es.url}}})
            self.addCleanup(self.es.request, "DELETE", "/%s.*" % name)
            c.run("snapshot")
            got = json.loads(self.source("1", name + ".public.t"), parse_float=str)
            self.assertEqual((got["d"], got["ts"], got["tod"], got["n"]),
                             ("2024-02-29", "2024-02-29T13:14:15.5", "01:02:03", "1.50"))
            if n == 0:
                self.assertEqual((got["i"], got["h"]), ("P0Y0M1DT0H0M0S", {"a": "1"}))
            else:
                self.assertEqual((got["i"], got["h"]), ("PT24H", '{"a":"1"}'))


@each_search
class Found(Documents):
    def test_by_value(self):
        """What mappings are for: ranges, exact digits, words, and nothing refused for its extremes."""
        self.sql("CREATE TABLE t (id int PRIMARY KEY, n numeric, p numeric(20,2), big numeric(38,0), d date, ts "
                 "timestamptz, s text, f float8, b bool, j jsonb, arr int[]);"
                 "INSERT INTO t VALUES (1, 0.1, 12.50, 9007199254740993, '2024-02-29', '2024-02-29 12:00+00', "
                 "'The quick Fox', 1.5, true, '{\"a\":1}', '{1,2}');"
                 "INSERT INTO t VALUES (2, 'NaN', 'NaN', 9007199254740992, '5874897-12-31', '290000-01-01', repeat('x', "
                 "40000), 'NaN', false, '[1]', '{3}');"
                 "INSERT INTO t VALUES (3, 1e400, -5, 10, '4713-01-01 BC', '-infinity', '', '-Infinity', NULL, '\"s\"', "
                 "NULL)")
        c = self.started(self.es.url)
        self.sql("INSERT INTO t (id, d) VALUES (4, 'infinity')")
        self.until("all", lambda: all(self.source(str(n)) for n in (1, 2, 3, 4)))
        self.assertEqual(self.found({"range": {"d": {"gte": "2024-01-01", "lt": "2025-01-01"}}}), ["1"])
        # The formats of Elasticsearch 7 end with the year 9999; the document has it all the same.
        self.assertEqual(self.found({"range": {"d": {"gt": "9999-01-01"}}}),
                         ["2"] if self.server == "opensearch" else [])
        self.assertEqual(json.loads(self.source("2"))["d"], "+5874897-12-31")
        self.assertEqual(self.found({"range": {"d": {"lt": "0001-01-01"}}}), ["3"])
        self.assertEqual(self.found({"range": {"ts": {"gte": "2024-02-29T11:59:59Z", "lte": "2024-02-29T12:00:00Z"}}}),
                         ["1"])
        self.assertEqual(self.found({"range": {"p": {"gt": 12, "lt": 13}}}), ["1"])
        self.assertEqual(self.found({"term": {"p.exact": "12.50"}}), ["1"])
        self.assertEqual(self.found({"term": {"n.exact": "0.1"}}), ["1"])
        self.assertEqual(self.found({"term": {"big.exact": "9007199254740993"}}), ["1"])
        self.assertEqual(self.found({"match": {"s": "quick"}}), ["1"])
        self.assertEqual(self.found({"term": {"s.keyword": "The quick Fox"}}), ["1"])
        self.assertEqual(self.found({"term": {"j": '{"a": 1}'}}), ["1"])
        self.assertEqual(self.found({"term": {"arr": 2}}), ["1"])
        self.assertEqual(self.found({"term": {"b": True}}), ["1"])
        self.assertEqual(json.loads(self.source("3"), parse_int=str)["n"], "1" + "0" * 400)
        self.assertEqual(c.stop(), 0)

    def test_index_and_template(self):
        self.sql("CREATE TABLE t (id int PRIMARY KEY, d date); INSERT INTO t VALUES (1, '2024-02-29')")
        c = self.started(self.es.url, **{"index.settings": {"number_of_replicas": 0, "refresh_interval": "3s"}})
        self.until("the row", lambda: self.source("1"))
        alias = self.es.request("GET", "/_alias/" + self.index)
        self.assertEqual(list(alias), [self.index + "-000001"])
        settings = self.es.request("GET", "/%s/_settings" % self.index)[self.index + "-000001"]["settings"]["index"]
        self.assertEqual((settings["gc_deletes"], settings["refresh_interval"]), ("24h", "3s"))
        # By the template an index made by hand is the same.
        self.es.request("PUT", "/%s-000002" % self.index)
        settings = self.es.request("GET", "/%s-000002/_settings" % self.index)[self.index + "-000002"]["settings"]["index"]
        self.assertEqual(settings["gc_deletes"], "24h")
        self.assertEqual(self.mapping(self.index + "-000002"), self.mapping())
        self.assertEqual(self.mapping()["d"]["type"], "date")
        self.assertEqual(c.stop(), 0)

    def test_new_columns(self):
        self.sql("CREATE TABLE t (id int PRIMARY KEY, v text); INSERT INTO t VALUES (1, 'x')")
        c = self.started(self.es.url)
        self.until("the row", lambda: self.source("1"))
        self.sql("ALTER TABLE t ADD COLUMN d date; INSERT INTO t VALUES (2, 'y', '2024-02-29')")
        self.wait_source("2", '{"id":2,"v":"y","d":"2024-02-29"}')
        self.assertEqual(self.mapping()["d"]["type"], "date")
        self.sql("ALTER TABLE t DROP COLUMN v; ALTER TABLE t RENAME COLUMN d TO day; INSERT INTO t VALUES (3, NULL)")
        self.wait_source("3", '{"id":3,"day":null}')
        self.assertEqual(self.mapping()["day"]["type"], "date")
        self.assertEqual(c.stop(), 0)
        # A later start knows the columns that it did not see coming.
        self.sql("ALTER TABLE t ADD COLUMN n numeric(10,2); INSERT INTO t VALUES (4, NULL, 1.50)")
        c = self.started(self.es.url)
        self.wait_source("4", '{"id":4,"day":null,"n":1.50}')
        self.assertIn("exact", self.mapping()["n"]["fields"])
        self.assertEqual(c.stop(), 0)

    def test_changed_type(self):
        self.sql("CREATE TABLE t (id int PRIMARY KEY, v int, w int); INSERT INTO t VALUES (1, 5, 5)")
        c = self.started(self.es.url, errors__policy="skip")
        self.until("the row", lambda: self.source("1"))
        # Wider is no change for the index; something else is.
        self.sql("ALTER TABLE t ALTER COLUMN v TYPE bigint; INSERT INTO t VALUES (2, 9223372036854775807, 1)")
        self.wait_source("2", '{"id":2,"v":9223372036854775807,"w":1}')
        self.sql("ALTER TABLE t ALTER COLUMN w TYPE text; INSERT INTO t VALUES (3, 1, '7'), (4, 1, 'seven'), (5, 1, '8')")
        self.wait_source("5", '{"id":5,"v":1,"w":"8"}')
        self.assertIsNone(self.source("4"))
        self.assertIn("column w is", c.logs())
        self.assertIn("mapper_parsing_exception", c.logs())
        self.assertEqual(c.stop(), 0)

    def test_odd_names(self):
        self.sql('CREATE TABLE t (id int PRIMARY KEY, "_id" text, "_source" text, "_routing" int, "_version" int, '
                 '"_field_names" int, "_type" text, "_index" text, "_seq_no" int, "_ignored" int, "_doc_count" int, '
                 '"_size" int, "_tier" text, "_nested_path" text, "a b" int, "A""q" int, "é" int, "$x" int);'
                 "INSERT INTO t SELECT 1, 'a', 'b', 1, 1, 1, 'c', 'd', 1, 1, 1, 1, 'e', 'f', 2, 3, 4, 5")
        c = self.started(self.es.url)
        self.wait_source("1", '{"id":1,"_id_":"a","_source_":"b","_routing_":1,"_version_":1,"_field_names_":1,'
                              '"_type_":"c","_index_":"d","_seq_no_":1,"_ignored_":1,"_doc_count_":1,"_size_":1,'
                              '"_tier_":"e","_nested_path_":"f","a b":2,"A\\"q":3,"é":4,"$x":5}')
        self.assertEqual(self.found({"term": {"_id_.keyword": "a"}}), ["1"])
        self.assertEqual(c.stop(), 0)

    def test_ids(self):
        self.sql("CREATE TABLE t (a text, b int, v int, PRIMARY KEY (a, b));"
                 "CREATE TABLE l (k text PRIMARY KEY, v int); CREATE TABLE d (k date PRIMARY KEY, v int);"
                 "CREATE TABLE n (k numeric(10,2) PRIMARY KEY, v int)")
        c = self.started(self.es.url)
        self.sql("INSERT INTO t VALUES ('a', 1, 1), ('q\"ü', -2, 2); INSERT INTO l VALUES (repeat('x', 513), 1), (repeat('y', "
                 "512), 1), ('a/b?c#d %', 1); INSERT INTO d VALUES ('2024-02-29', 1); INSERT INTO n VALUES (1.50, 1)")
        prefix = self.db + ".public."
        self.until("the last", lambda: self.source("1.50", prefix + "n"))
        self.assertEqual(self.es.ids(prefix + "t"), {'["a",1]', '["q\\"ü",-2]'})
        # printf 'x%.0s' $(seq 513) | sha256sum
        self.assertEqual(self.es.ids(prefix + "l"), {
            "y" * 512, "a/b?c#d %", "sha256:35ade0090e64e74d6ad04204009c23a4e34b82bdf0f4f317fbcc5f26f9b10241"})
        self.assertEqual(self.es.ids(prefix + "d"), {"2024-02-29"})
        self.assertEqual(self.es.ids(prefix + "n"), {"1.50"})
        self.sql("UPDATE t SET b = 7 WHERE a = 'a'; DELETE FROM l WHERE k LIKE 'xx%'; DELETE FROM t WHERE b = -2")
        self.until("the changes", lambda: self.es.ids(prefix + "t") == {'["a",7]'} and len(self.es.ids(prefix + "l")) == 2)
        self.assertEqual(self.source('["a",7]', prefix + "t"), '{"a":"a","b":7,"v":1}')
        self.assertEqual(c.stop(), 0)

    def test_nested_json(self):
        self.sql("CREATE TABLE t (id int PRIMARY KEY, j jsonb)")
        c = self.started(self.es.url, json="nested", errors__policy="skip")
        self.sql("""INSERT INTO t VALUES (1, '{"f":1.50,"o":{"x":[1,2]},"i":9007199254740993}'), (2, NULL),"""
                 """(3, '{"f":"no number"}'), (4, '{"f":2}')""")
        self.wait_source("4", '{"id":4,"j":{"f": 2}}')
        self.assertEqual(self.source("1"), '{"id":1,"j":{"f": 1.50, "i": 9007199254740993, "o": {"x": [1, 2]}}}')
        self.assertEqual(self.source("2"), '{"id":2,"j":null}')
        self.assertIsNone(self.source("3"))
        self.assertEqual(self.found({"term": {"j.o.x": 2}}), ["1"])
        self.assertEqual(c.stop(), 0)

    def test_without_key(self):
        self.sql("CREATE TABLE t (v int); CREATE TABLE k (id int PRIMARY KEY)")
        c = self.started(self.es.url)
        self.sql("INSERT INTO t VALUES (1)")
        self.assertEqual(c.wait(60), 1)
        for text in ("key is null", self.db + ".public.t", "message.key.columns", "cdcd.pos"):
            self.assertIn(text, c.logs())

    def test_routes(self):
        self.sql("CREATE TABLE orders (id int PRIMARY KEY); CREATE TABLE \"Orders_old\" (id int PRIMARY KEY);"
                 "CREATE TABLE other (id int PRIMARY KEY); INSERT INTO orders VALUES (1); INSERT INTO \"Orders_old\" VALUES (2);"
                 "INSERT INTO other VALUES (3)")
        c = self.pipeline(self.es.url, index="%s.x-${table}" % self.db)
        c.config["sink"]["elasticsearch"]["index.routes"] = {".*[.][Oo]rders.*": self.db + ".all_orders"}
        c.run("snapshot")
        self.assertEqual(self.es.ids(self.db + ".all_orders"), {"1", "2"})
        self.assertEqual(self.es.ids(self.db + ".x-other"), {"3"})

    def test_plain_index_is_used(self):
        self.sql("CREATE TABLE t (id int PRIMARY KEY, v text)")
        self.es.request("PUT", "/" + self.index, {"mappings": {"properties": {"v": {"type": "keyword"}}}})
        c = self.started(self.es.url)
        self.sql("INSERT INTO t VALUES (1, 'x')")
        self.wait_source("1", '{"id":1,"v":"x"}')
        self.assertEqual(self.mapping()["v"], {"type": "keyword"})
        self.assertIn("is an index, no alias", c.logs())
        self.assertIn("column v is", c.logs())
        self.assertEqual(c.stop(), 0)

    def test_not_managed(self):
        self.sql("CREATE TABLE t (id int PRIMARY KEY, v text)")
        c = self.started(self.es.url, index__manage=False)
        self.sql("INSERT INTO t VALUES (1, 'x')")
        self.wait_source("1", '{"id":1,"v":"x"}')
        self.assertEqual(list(self.es.request("GET", "/%s/_settings" % self.index)), [self.index])
        self.assertEqual(c.stop(), 0)

    def test_deleted_index_is_not_made_anew(self):
        self.sql("CREATE TABLE t (id int PRIMARY KEY, v text); INSERT INTO t VALUES (1, 'x')")
        c = self.started(self.es.url)
        self.until("the row", lambda: self.source("1"))
        self.assertEqual(c.stop(), 0)
        self.es.request("DELETE", "/%s-000001" % self.index)
        self.sql("INSERT INTO t VALUES (2, 'y')")
        c = self.pipeline(self.es.url).start()
        self.assertEqual(c.wait(60), 3)
        self.assertIn("index %s was deleted" % self.index, c.logs())
        self.assertIsNone(self.source("2"))

    def test_truncate(self):
        self.sql("CREATE TABLE t (id int PRIMARY KEY); INSERT INTO t SELECT generate_series(1, 50)")
        c = self.pipeline(self.es.url)
        c.config["format"] = {"debezium": {"skipped.operations": "none"}}
        c.start()
        c.wait_log("streaming from", 60)
        self.until("the rows", lambda: all(self.source(str(n)) for n in range(1, 51)))
        self.sql("BEGIN; INSERT INTO t VALUES (51); TRUNCATE t; INSERT INTO t VALUES (7), (52); COMMIT")
        self.until("the truncate", lambda: self.es.ids(self.index) == {"7", "52"})
        self.assertEqual(c.stop(), 0)

    def test_toast(self):
        self.sql("CREATE TABLE t (id int PRIMARY KEY, big text, bin bytea, arr text[], j json, n int);"
                 "ALTER TABLE t ALTER big SET STORAGE EXTERNAL, ALTER bin SET STORAGE EXTERNAL, ALTER arr SET STORAGE "
                 "EXTERNAL, ALTER j SET STORAGE EXTERNAL")
        c = self.started(self.es.url)
        self.sql("INSERT INTO t VALUES (1, repeat('x', 5000), convert_to(repeat('y', 5000), 'UTF8'), ARRAY[repeat('z', "
                 "5000)], to_json(repeat('w', 5000)), 1)")
        self.until("the row", lambda: self.source("1"))
        before = json.loads(self.source("1"))
        self.sql("UPDATE t SET n = 2 WHERE id = 1")
        self.until("the change", lambda: json.loads(self.source("1"))["n"] == 2)
        after = json.loads(self.source("1"))
        self.assertEqual(sorted(after), sorted(before))
        self.assertTrue(after == dict(before, n=2), "a column that did not change is another one now")
        self.assertEqual(len(before["big"]), 5000)
        self.assertEqual(c.stop(), 0)


if __name__ == "__main__":
    cdcdtest.main()
