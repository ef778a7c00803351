"""The binlog decoder against the servers: recorded logs, and logs of live servers, decoded row by
row as mysqlbinlog and mariadb-binlog decode them; and cells from the log equal to cells from a
query on the same table."""
import gzip
import json
import os
import shutil
import tempfile
import unittest

import cdcdtest
import mycase
import mylog

GOLDEN = os.path.join(cdcdtest.ROOT, "tests/golden/binlog")
PROGRAM = os.path.join(cdcdtest.SUPPORT, "mybinlog")

# Rows; None: those that the SQL makes.
RECORDED = {
    "mysql-bin.checksum-none": 36,
    "mysql-bin.checksum-crc32": 63,
    "mysql-bin.aurora-padding": 0,
    "mysql-bin.compressed": 1,
    "mysql-bin.sakila.gz": 47273,
    "mysql-9.7.gz": None,
    "mariadb-10.11.gz": None,
}


@mycase.each_server()
class Fixtures(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.my = mycase.MyServer(cls.server)
        cls.folder = tempfile.mkdtemp(prefix="cdcd-fixtures-")

    @classmethod
    def tearDownClass(cls):
        cls.my.stop()
        shutil.rmtree(cls.folder)

    @property
    def tool(self):
        return self.my.var("BINLOG")

    def options(self):
        return ["--mariadb"] if self.flavor == "mariadb" else []

    def unpacked(self, name):
        path = os.path.join(GOLDEN, name)
        if not name.endswith(".gz"):
            return path
        out = os.path.join(self.folder, name[:-3])
        with gzip.open(path) as src, open(out, "wb") as dst:
            shutil.copyfileobj(src, dst)
        return out

    def compare(self, path, *options):
        c = mylog.Comparison()
        try:
            c.file(self.tool, PROGRAM, path, *options)
        except mylog.Difference as e:
            self.fail(str(e))
        return c

    def test_recorded(self):
        """Each by the tool that reads it: MariaDB's does not know newer MySQL events, MySQL's does
        not read logs from before 5.6.1."""
        mysql_only = ("compressed", "aurora", "mysql-9.7")
        for name, rows in RECORDED.items():
            by = "mysql" if any(x in name for x in mysql_only) else \
                "mariadb" if name.startswith("mariadb") or "sakila" in name else self.flavor
            if by != self.flavor:
                continue
            with self.subTest(name):
                mariadb = ["--mariadb"] if name.startswith("mariadb") else []
                c = self.compare(self.unpacked(name), *mariadb)
                if rows is None:
                    self.assertGreater(c.rows, 25)
                else:
                    self.assertEqual(c.rows, rows)

    # ---- live ----

    def log_of(self, db, *files):
        """Runs the files in a new log of its own."""
        self.my.sql("FLUSH BINARY LOGS")
        name = self.my.log_end()[0]
        self.my.sql("CREATE DATABASE %s CHARACTER SET utf8mb4" % db)
        for f in files:
            with open(os.path.join(GOLDEN, f), encoding="utf-8") as sql:
                self.my.sql(sql.read(), db)
        self.my.sql("FLUSH BINARY LOGS")
        return os.path.join(self.my.var("DATA"), name)

    def printed(self, *args):
        r = cdcdtest.run([PROGRAM, *self.options(), *args])
        return [json.loads(line) for line in r.stdout.splitlines()]

    def same_as_query(self, log, db):
        """What the log leaves each table with is what a query returns, cell by cell."""
        tables = {}
        for row in self.printed(log):
            rows = tables.setdefault(row["table"], {})
            if "before" in row:
                rows.pop(row["before"]["1"], None)
            if "after" in row:
                rows[row["after"]["1"]] = row["after"]
        cells = 0
        for table, rows in tables.items():
            queried = self.printed("--select", self.my.var("SOCKET"), table, "id", log)
            self.assertEqual({r["after"]["1"] for r in queried}, set(rows), table)
            for r in queried:
                want = rows[r["after"]["1"]]
                for column, value in r["after"].items():
                    self.assertEqual(value, want[column], "%s %s column %s: the query's, the log's"
                                     % (table, r["after"]["1"], column))
                    cells += 1
        return cells

    def test_live(self):
        log = self.log_of("live", "common.sql", self.flavor + ".sql")
        c = self.compare(log, *self.options())
        self.assertGreater(c.rows, 25)
        self.assertGreater(self.same_as_query(log, "live"), 400)
        record = os.environ.get("CDCD_RECORD_BINLOG")
        if record:
            name = "%s-%d.%d.gz" % (self.flavor, *self.my.version[:2])
            with open(log, "rb") as src, gzip.GzipFile(os.path.join(record, name), "wb", mtime=0) as dst:
                shutil.copyfileobj(src, dst)

    def test_minimal_metadata(self):
        """What MINIMAL metadata lacks changes no value."""
        self.my.sql("SET GLOBAL binlog_row_metadata = 'MINIMAL'")
        try:
            log = self.log_of("minimal", "common.sql", self.flavor + ".sql")
            self.assertGreater(self.compare(log, *self.options()).rows, 25)
        finally:
            self.my.sql("SET GLOBAL binlog_row_metadata = 'FULL'")


if __name__ == "__main__":
    mycase.main()
