"""What the tests of the search sink share: a table in PostgreSQL, a pipeline from it into an index,
and the comparison of both; real search servers with a small client.
"""
import json
import random
import unittest
import urllib.error
import urllib.parse
import urllib.request

import cdcdtest
from cdcdtest import run, wait_until

_pg = None


def postgres():
    global _pg
    if _pg is None:
        _pg = cdcdtest.Postgres(None, "max_replication_slots=100", "max_wal_senders=100")
        unittest.addModuleCleanup(_pg.stop)
    return _pg


def random_load(seed, n, rows=400):
    """SQL of n random changes, several in a transaction, of the same rows too."""
    r = random.Random(seed)
    out = ["BEGIN;"]
    for i in range(n):
        row = r.randrange(rows)
        what = r.random()
        if what < 0.45:
            out.append("INSERT INTO t VALUES (%d, 'i%d', %d) ON CONFLICT (id) DO UPDATE SET v = excluded.v, "
                       "n = excluded.n;" % (row, i, r.randrange(10**9)))
        elif what < 0.8:
            out.append("UPDATE t SET v = 'u%d', n = n + 1 WHERE id = %d;" % (i, row))
        else:
            out.append("DELETE FROM t WHERE id = %d;" % row)
        if r.random() < 0.1:
            out.append("COMMIT; BEGIN;")
    out.append("COMMIT;")
    return "\n".join(out)


class EsCase(cdcdtest.TestCase):
    DDL = "CREATE TABLE t (id int PRIMARY KEY, v text, n bigint)"

    def setUp(self):
        super().setUp()
        self.pg = postgres()
        self.db = self.pg.new_db("es")
        self.pg.sql(self.DDL, self.db)
        self.index = self.db + ".public.t"

    def pipeline(self, url, prefix=None, **sink):
        config = {"url": url, "retry.delay.ms": "20ms", "index.settings": {"number_of_replicas": 0}}
        config.update({k.replace("__", "."): v for k, v in sink.items()})
        config = {k: v for k, v in config.items() if v is not None}
        return self.cdcd({"name": self.db, "topic.prefix": prefix or self.db,
                          "errors.retry.delay.max.ms": "500ms", "log.level": "debug",
                          "source": {"postgres": {"url": self.pg.url(self.db), "slot.name": self.db}},
                          "sink": {"elasticsearch": config}})

    def started(self, url, **sink):
        c = self.pipeline(url, **sink).start()
        c.wait_log("streaming from", 60)
        return c

    def sql(self, text):
        return self.pg.sql(text, self.db)

    def table(self):
        text = self.sql("SELECT coalesce(json_object_agg(id, row_to_json(t)), '{}') FROM t")
        return json.loads(text)

    def until(self, what, test, timeout=30):
        """As wait_until, while cdcd runs."""
        def tested():
            value = test()
            if not value and not any(c.alive() for c in self._runs):
                raise cdcdtest.Failure("cdcd has ended before " + what)
            return value
        return wait_until(what, tested, timeout, 0.05)

    def confirmed(self):
        """Everything is acknowledged to the database: nothing is left to do."""
        return self.pg.sql("SELECT confirmed_flush_lsn >= '%s' FROM pg_replication_slots WHERE "
                           "slot_name = '%s'" % (self.end, self.db)) == "t"

    def wait_equal(self, documents, timeout=60):
        """Until everything is acknowledged; then index and table are equal."""
        self.sql("SELECT pg_logical_emit_message(true, 'end', 'x')")
        self.end = self.pg.lsn(self.db)
        self.until("all is acknowledged", self.confirmed, timeout)
        self.assertEqual(documents(), self.table())


class Search(cdcdtest.Service):
    """A real server: "opensearch" or "elasticsearch"."""

    def __init__(self, name, *settings):
        self.variable = {"opensearch": "CDCD_OPENSEARCH_", "elasticsearch": "CDCD_ELASTICSEARCH_"}[name]
        args = []
        for s in settings:
            args += ["--set", s]
        super().__init__(name, *args)

    @property
    def url(self):
        return self.env[self.variable + "URL"]

    def start_again(self):
        """Its port may belong to somebody's outgoing connection for a moment."""
        wait_until("the start", lambda: run([self.script, "start", "--dir", self.dir, *self.args],
                                            check=False, timeout=180).returncode == 0, 60, 0.5)
        self.read_env()

    def restart(self):
        self.call("stop", "--keep")
        self.start_again()

    def call_raw(self, method, path, body=None):
        """(status, bytes)"""
        data = None if body is None else body if isinstance(body, bytes) else json.dumps(body).encode()
        request = urllib.request.Request(self.url + path, data, {"Content-Type": "application/json"}, method=method)
        try:
            with urllib.request.urlopen(request, timeout=60) as r:
                return r.status, r.read()
        except urllib.error.HTTPError as e:
            return e.code, e.read()

    def request(self, method, path, body=None):
        status, data = self.call_raw(method, path, body)
        if status >= 400 and status != 404:
            raise cdcdtest.Failure("%s %s: %d %s" % (method, path, status, data[:2000]))
        return json.loads(data or b"{}")

    def search(self, index, more=""):
        """Hits, up to 10,000. An index that has just been made is not searched at once."""
        self.request("POST", "/%s/_refresh" % index)
        path = "/%s/_search?size=10000%s" % (index, more)
        status, data = wait_until("a search", lambda: (r := self.call_raw("GET", path))[0] != 503 and r)
        if status not in (200, 404):
            raise cdcdtest.Failure("%s: %d %s" % (path, status, data[:2000]))
        return json.loads(data).get("hits", {}).get("hits", [])

    def ids(self, index):
        return {hit["_id"] for hit in self.search(index, "&_source=false")}

    def documents(self, index):
        """{id: source}"""
        return {hit["_id"]: hit["_source"] for hit in self.search(index)}

    def source(self, index, doc):
        """The document's bytes."""
        status, data = self.call_raw("GET", "/%s/_source/%s" % (index, urllib.parse.quote(doc, "")))
        return data if status == 200 else None
