"""Random load on PostgreSQL, and what an index then has to hold.

Five tables between them have most types, composite keys, a replica identity FULL, and large values that
most updates leave alone. What is expected of each document is made from the rows by SQL, after docs/search.md
and without cdcd's code; the numbers are compared digit by digit.
"""
import json
import random
import subprocess
import threading
import time

import cdcdtest

WORDS = ["", "a", "über", "quick 'fox'", 'say "so"', "back\\slash", "line\nbreak", "\U0001F600", "x" * 40]
MOODS = ["rain", "sun", "so-so"]


def quoted(text):
    return "'" + text.replace("'", "''") + "'"


def integer(bits):
    def make(r):
        return str(r.choice([0, -1, 2 ** (bits - 1) - 1, -2 ** (bits - 1), r.getrandbits(bits) - 2 ** (bits - 1)]))
    return make


def decimal(whole, scale):
    def make(r):
        return "%s%d.%0*d" % (r.choice(["", "-"]), r.randrange(10 ** r.randint(1, whole)), scale,
                              r.randrange(10 ** scale))
    return make


def date(r):
    return "%04d-%02d-%02d" % (r.randint(1, 9999), r.randint(1, 12), r.randint(1, 28))


def clock(r):
    return "%02d:%02d:%02d%s" % (r.randrange(24), r.randrange(60), r.randrange(60),
                                 r.choice(["", ".5", ".123456", ".000001", ".120"]))


def stamp(r):
    return quoted(r.choice(["infinity", "-infinity"]) if r.random() < 0.05 else date(r) + " " + clock(r))


def hexadecimal(r, most):
    return "'\\x%s'" % r.randbytes(r.randrange(most)).hex()


# Values come from md5, so that compression does not bring the large ones below the limit of TOAST.
def large(r):
    n = r.choice([0, 1, 90, 150, 400])
    return "(SELECT coalesce(string_agg(md5(i::text || '%d'), ''), '') FROM generate_series(1, %d) i)" % (
        r.getrandbits(30), n)


TEXT = "to_json({0})::text"
NUMBER = "{0}::text"
BASE64 = "to_json(translate(encode({0}, 'base64'), E'\\n', ''))::text"
ZONED = ("to_json(CASE WHEN isfinite({0}) THEN to_char({0} AT TIME ZONE 'UTC', 'YYYY-MM-DD\"T\"HH24:MI:SS.USZ') "
         "ELSE {0}::text END)::text")
FLOAT = "CASE WHEN {0}::text ~ '[aI]' THEN to_json({0}::text)::text ELSE {0}::text END"
OF_TEXT = "to_json({0}::text)::text"

# (type, a random SQL literal, what stands in the document)
TYPES = {
    "bool": (lambda r: r.choice(["true", "false"]), NUMBER),
    "int2": (integer(16), NUMBER),
    "int4": (integer(32), NUMBER),
    "int8": (integer(64), NUMBER),
    "numeric": (lambda r: "'NaN'" if r.random() < 0.05 else decimal(25, r.randint(1, 12))(r), FLOAT),
    "numeric(20,4)": (decimal(16, 4), NUMBER),
    "float8": (lambda r: r.choice(["'NaN'", "'-Infinity'", "1e300", "0", repr(r.uniform(-1e6, 1e6))]), FLOAT),
    "float4": (lambda r: "%.6g" % r.uniform(-1e6, 1e6), FLOAT),
    "date": (lambda r: quoted(date(r)), TEXT),
    "time": (lambda r: quoted(clock(r)), OF_TEXT),
    "timestamp": (stamp, TEXT),
    "timestamptz": (stamp, ZONED),
    "interval": (lambda r: "make_interval(hours => %d, secs => %d.%06d)" % (
        r.randint(1, 999), r.randint(1, 59), r.choice([0, 500000, r.randrange(10 ** 6)])),
        "to_json('PT' || extract(hour from {0}) || 'H' || CASE WHEN extract(minute from {0}) = 0 THEN '' ELSE "
        "extract(minute from {0}) || 'M' END || trim_scale(extract(second from {0})) || 'S')::text"),
    "uuid": (lambda r: "md5('%d')::uuid" % r.getrandbits(40), TEXT),
    "mood": (lambda r: quoted(r.choice(MOODS)), TEXT),
    "text": (lambda r: quoted(r.choice(WORDS) + str(r.randrange(1000))), TEXT),
    "bytea": (lambda r: hexadecimal(r, 60), BASE64),
    "jsonb": (lambda r: quoted(json.dumps({"n": r.randrange(10 ** 9), "s": [r.choice(WORDS), None, True]})),
              OF_TEXT),
    "int4[]": (lambda r: "ARRAY[%s]::int[]" % ",".join(r.choice(["NULL", str(r.randrange(100))])
                                                       for _ in range(r.randrange(5))), TEXT),
    "text[]": (lambda r: "ARRAY[%s]::text[]" % ",".join(quoted(r.choice(WORDS)) for _ in range(r.randrange(4))), TEXT),
    "inet": (lambda r: "'10.%d.%d.%d/24'" % (r.randrange(256), r.randrange(256), r.randrange(256)),
             OF_TEXT),
    "point": (lambda r: "point(%d.5, -%d.25)" % (r.randrange(1000), r.randrange(1000)),
              "CASE WHEN {0} IS NOT NULL THEN json_build_object('x', ({0})[0], 'y', ({0})[1])::text END"),
    "bit(1)": (lambda r: r.choice(["B'0'", "B'1'"]), "({0} = B'1')::text"),
    "big": (large, TEXT),
    "bigraw": (lambda r: "decode(%s, 'hex')" % large(r), BASE64),
    "bigarray": (lambda r: "ARRAY[%s, NULL, 'x']" % large(r), TEXT),
    "bigjson": (lambda r: "jsonb_build_object('t', %s)" % large(r), OF_TEXT),
}
OF_BIG = {"big": "text", "bigraw": "bytea", "bigarray": "text[]", "bigjson": "jsonb"}


class Table:
    """key: {column: SQL of a key from a number}, columns: {column: name in TYPES}."""

    def __init__(self, name, key, columns, rows, full=False):
        self.name, self.key, self.columns, self.rows, self.full = name, key, columns, rows, full
        self.sql_name = '"%s"' % name
        self.big = [c for c, t in columns.items() if t in OF_BIG]

    def ddl(self):
        kinds = {**{c: k[0] for c, k in self.key.items()}, **{c: OF_BIG.get(t, t) for c, t in self.columns.items()}}
        out = ["CREATE TABLE %s (%s, PRIMARY KEY (%s));" % (
            self.sql_name, ", ".join("%s %s" % x for x in kinds.items()), ", ".join(self.key))]
        out += ["ALTER TABLE %s ALTER %s SET STORAGE EXTERNAL;" % (self.sql_name, c) for c in self.big]
        if self.full:
            out.append("ALTER TABLE %s REPLICA IDENTITY FULL;" % self.sql_name)
        out.append("CREATE TRIGGER counted AFTER INSERT OR UPDATE OR DELETE ON %s FOR EACH ROW "
                   "EXECUTE FUNCTION load.counted();" % self.sql_name)
        return "\n".join(out)

    def key_of(self, n):
        return [k[1](n) for k in self.key.values()]

    def where(self, n):
        return " AND ".join("%s = %s" % x for x in zip(self.key, self.key_of(n)))

    def value(self, column, r):
        return "NULL" if r.random() < 0.1 else TYPES[self.columns[column]][0](r)

    def insert(self, r, n):
        values = self.key_of(n) + [self.value(c, r) for c in self.columns]
        return "INSERT INTO %s VALUES (%s) ON CONFLICT DO NOTHING;" % (self.sql_name, ", ".join(values))

    def change(self, r, new_keys):
        """SQL of one random change. new_keys: also of rows whose large values the log then leaves out."""
        n = r.randrange(10) if r.random() < 0.25 else r.randrange(self.rows)  # a few rows get much
        what = r.random()
        if what < 0.25:
            return self.insert(r, n)
        if what < 0.40:
            return "DELETE FROM %s WHERE %s;" % (self.sql_name, self.where(n))
        if what < 0.50 and (new_keys or self.full or not self.big):
            other = r.randrange(self.rows)
            sets = ", ".join("%s = %s" % x for x in zip(self.key, self.key_of(other)))
            return "UPDATE %s SET %s WHERE %s AND NOT EXISTS (SELECT FROM %s WHERE %s);" % (
                self.sql_name, sets, self.where(n), self.sql_name, self.where(other))
        if what < 0.55:
            return "%s DELETE FROM %s WHERE %s; %s" % (self.insert(r, n), self.sql_name, self.where(n),
                                                       self.insert(r, n))
        small = [c for c in self.columns if c not in self.big]
        columns = r.sample(small, r.randint(1, min(3, len(small))))
        if self.big and r.random() < 0.2:
            columns.append(r.choice(self.big))
        return "UPDATE %s SET %s WHERE %s;" % (
            self.sql_name, ", ".join("%s = %s" % (c, self.value(c, r)) for c in columns), self.where(n))

    def expected_sql(self):
        """Rows of id and document."""
        kinds = {**{c: k[2] for c, k in self.key.items()}, **{c: TYPES[t][1] for c, t in self.columns.items()}}
        members = " || ',' || ".join("'\"%s\":' || coalesce(%s, 'null')" % (c, e.format(c)) for c, e in kinds.items())
        parts = [k[2].format(c) for c, k in self.key.items()]
        doc_id = "to_json('[' || %s || ']')" % " || ',' || ".join(parts) if len(parts) > 1 else \
            "to_json(trim('\"' FROM %s))" % parts[0]
        return "SELECT '{\"id\":' || %s || ',\"doc\":{' || %s || '}}' FROM %s" % (doc_id, members, self.sql_name)

    def floats(self):
        return {c for c, t in self.columns.items() if t in ("float4", "float8")}


NUMBERED = {"id": ("bigint", str, NUMBER)}
TABLES = [
    Table("things", NUMBERED, {"c_" + t.split("(")[0].replace("[]", "s"): t for t in TYPES
                               if t not in OF_BIG and t != "numeric"}, 2000),
    Table("wide", {"id": ("int", str, NUMBER)}, {
        "v": "text", "n": "numeric", "t": "big", "raw": "bigraw", "list": "bigarray", "j": "bigjson"}, 400),
    Table("pairs", {"a": ("text", lambda n: quoted(["x", 'q"', "ü/ü"][n % 3]), TEXT), "b": ("int", str, NUMBER)},
          {"v": "int8", "at": "timestamptz"}, 8000),
    Table("whole", NUMBERED, {"v": "text", "t": "big", "n": "numeric(20,4)"}, 300, full=True),
    # A name that no index may bear, and keys of other kinds.
    Table("Stamps", {"day": ("date", lambda n: "date '2024-01-01' + %d" % (n % 90), TEXT),
                     "u": ("uuid", lambda n: "md5('%d')::uuid" % n, TEXT)}, {"v": "int4", "m": "mood"}, 2000),
]
SETUP = """
CREATE TYPE mood AS ENUM ('rain', 'sun', 'so-so');
CREATE SCHEMA load;
CREATE TABLE load.changes (op text NOT NULL);
CREATE FUNCTION load.counted() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO load.changes VALUES (TG_OP);
    RETURN NULL;
END
$$;
"""


def transaction(r, new_keys):
    """One transaction: some of its parts are rolled back, or all of it. new_keys: as in Table.change."""
    out = ["BEGIN;"]
    for _ in range(300 if r.random() < 0.005 else r.randint(1, 8)):
        change = r.choice(TABLES).change(r, new_keys)
        if r.random() < 0.15:
            nested = "SAVEPOINT b; %s ROLLBACK TO b; RELEASE a;" % r.choice(TABLES).change(r, new_keys)
            change = "SAVEPOINT a; %s %s %s" % (change, r.choice(TABLES).change(r, new_keys), r.choice(
                ["ROLLBACK TO a;", "RELEASE a;", nested]))
        out.append(change)
    out.append("ROLLBACK;" if r.random() < 0.1 else "COMMIT;")
    return "\n".join(out) + "\n"


class Load:
    """Sessions that change the tables of a new database until stop(); they survive the server's death."""

    def __init__(self, pg, db, seed, rate, new_keys):
        self.pg, self.db, self.seed, self.rate, self.new_keys = pg, db, seed, rate, new_keys
        self.threads, self.ended = [], threading.Event()
        self.argv = [a for a in pg.psql_argv(db) if a != "ON_ERROR_STOP=1"]
        self.argv.remove("-v")  # what fails is one more rollback
        pg.sql(SETUP + "\n".join(t.ddl() for t in TABLES), db)

    def fill(self):
        """Rows for the snapshot, half of the keys."""
        r = random.Random(self.seed)
        pg_sql = ["BEGIN;"]
        for t in TABLES:
            pg_sql += [t.insert(r, n) for n in r.sample(range(t.rows), t.rows // 2)]
        self.pg.sql("\n".join(pg_sql) + "COMMIT;", self.db)

    def start(self, sessions=2):
        for n in range(sessions):
            self.threads.append(threading.Thread(target=self.session, args=(random.Random(self.seed * 100 + n),
                                                                            self.rate / sessions)))
            self.threads[-1].start()

    def stop(self):
        self.ended.set()
        for t in self.threads:
            t.join()
        self.threads = []

    def connect(self):
        p = subprocess.Popen(self.argv, stdin=subprocess.PIPE, text=True, stdout=subprocess.DEVNULL,
                             stderr=subprocess.DEVNULL)
        p.stdin.write("SET deadlock_timeout = '50ms';\n")
        return p

    def session(self, r, rate):
        p = None
        while not self.ended.is_set():
            try:
                if p is None:
                    p = self.connect()
                p.stdin.write(transaction(r, self.new_keys))
                p.stdin.flush()
                time.sleep(r.uniform(0, 2 / rate))
            except OSError:
                self.end(p)
                p = None
                time.sleep(0.1)
        if p:
            self.end(p)

    @staticmethod
    def end(p):
        try:
            p.stdin.close()
        except OSError:
            pass
        p.wait()

    def changes(self):
        rows = self.pg.sql("SELECT op || ' ' || count(*) FROM load.changes GROUP BY op ORDER BY 1", self.db)
        return {op.lower() + "s": int(n) for op, n in (line.split() for line in rows.splitlines())}


class Number(str):
    """Its digits; not the same as a string of them."""

    def __eq__(self, other):
        return isinstance(other, Number) and str.__eq__(self, other)

    def __ne__(self, other):
        return not self == other

    __hash__ = str.__hash__


def read(text):
    return json.loads(text, parse_float=Number, parse_int=Number)


def plain(table, doc):
    """Floating-point numbers have more than one spelling."""
    for c in table.floats() | {"c_point"}:
        if isinstance(doc.get(c), Number):
            doc[c] = float(doc[c])
        elif isinstance(doc.get(c), dict):
            doc[c] = {k: float(v) for k, v in doc[c].items()}
    return doc


def expected(pg, db, table):
    """{id: document}"""
    rows = pg.sql(table.expected_sql(), db).splitlines()
    return {r["id"]: plain(table, r["doc"]) for r in map(read, rows)}


def documents(search, index, table):
    """{id: document}, and the count that the server says."""
    search.request("POST", "/%s/_refresh" % index)
    status, data = search.call_raw("GET", "/%s/_search?size=10000" % index)
    if status != 200:
        raise cdcdtest.Failure("%s: %d %s" % (index, status, data[:500]))
    found = {h["_id"]: plain(table, h["_source"]) for h in read(data)["hits"]["hits"]}
    return found, search.request("GET", "/%s/_count" % index)["count"]


def difference(want, got):
    """As text, empty when equal."""
    out = ["%s is not in the index" % i for i in sorted(want.keys() - got.keys())]
    out += ["%s is not in the table" % i for i in sorted(got.keys() - want.keys())]
    for i in sorted(want.keys() & got.keys()):
        a, b = want[i], got[i]
        out += ["%s.%s: %.300r instead of %.300r" % (i, c, b.get(c, "absent"), a.get(c, "absent"))
                for c in sorted(a.keys() | b.keys()) if c not in a or c not in b or a[c] != b[c]]
    return "%d differences: " % len(out) + "\n    ".join(out[:20]) if out else ""
