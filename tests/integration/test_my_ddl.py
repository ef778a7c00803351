"""The DDL parser against the server: what it makes of each statement in the log must be what
information_schema says afterwards, and the table maps of rows written then must fit, with the names
that binlog_row_metadata=FULL gives and as they are without. support/myddl.c does the comparing.
"""
import json
import os
import random
import subprocess

import cdcdtest
import mycase

BIN = os.environ["CDCD_SUPPORT_BIN"]
SQL = os.path.join(os.environ["CDCD_SOURCE_DIR"], "tests", "support", "myddl.sql")

TYPES = ["INT", "INT UNSIGNED", "BIGINT NOT NULL", "TINYINT(1)", "VARCHAR(20)", "VARCHAR(300)",
         "VARCHAR(30) CHARACTER SET latin1", "CHAR(5) NOT NULL DEFAULT 'x'", "TEXT", "TINYTEXT",
         "DECIMAL(10,2)", "DECIMAL(20,5) NOT NULL DEFAULT 1.5", "DATETIME(3)", "TIMESTAMP NULL",
         "TIMESTAMP(6) NOT NULL DEFAULT CURRENT_TIMESTAMP(6)", "DATE", "TIME(2)", "YEAR",
         "ENUM('a','b','c')", "ENUM('a','b') NOT NULL DEFAULT 'b'", "SET('x','y')", "BIT(7)",
         "BINARY(4)", "VARBINARY(40) DEFAULT 'ab'", "BLOB", "JSON", "DOUBLE", "FLOAT(7,2)", "POINT",
         "INT DEFAULT 7 COMMENT 'seven'", "VARCHAR(9) COLLATE utf8mb4_bin", "INT INVISIBLE DEFAULT 1"]


class Alters:
    """Random ALTERs of one table; the server may refuse one."""

    def __init__(self, seed):
        self.r = random.Random(seed)
        self.n = 0
        self.columns = ["id", "a", "b"]

    def new_name(self):
        self.n += 1
        return self.r.choice(["c%d", "Col%d", "`odd name %d`", "`é%d`"]) % self.n

    def place(self, columns):
        kind = self.r.randrange(3)
        return "" if kind == 0 else " FIRST" if kind == 1 else " AFTER " + self.r.choice(columns)

    def some(self, used):
        """A column other than the key that no other clause of the statement touches."""
        free = [c for c in self.columns[1:] if c not in used]
        if not free:
            return None
        c = self.r.choice(free)
        used.add(c)
        return c

    def clause(self, used, stay):
        """One clause, and what becomes of the columns."""
        r = self.r
        kind = r.choice(["add", "add", "add", "drop", "modify", "modify", "change", "rename", "default",
                         "index", "unique"])
        if kind == "add":
            name = self.new_name()
            text = "ADD COLUMN %s %s%s" % (name, r.choice(TYPES), self.place(stay))
            self.columns.append(name)
            used.add(name)
            return text
        if kind == "index":
            return "ADD INDEX (id)"
        c = self.some(used)
        if c is None:
            return None
        if kind == "drop" and len(self.columns) > 4:
            self.columns.remove(c)
            return "DROP COLUMN %s" % c
        if kind == "modify":
            return "MODIFY %s %s%s" % (c, r.choice(TYPES), self.place(stay))
        if kind in ("change", "rename"):
            name = self.new_name()
            self.columns[self.columns.index(c)] = name
            used.add(name)
            if kind == "rename":
                return "RENAME COLUMN %s TO %s" % (c, name)
            return "CHANGE %s %s %s%s" % (c, name, r.choice(TYPES), self.place(stay))
        if kind == "default":
            return "ALTER COLUMN %s %s" % (c, r.choice(["SET DEFAULT '7'", "DROP DEFAULT"]))
        if kind == "unique":
            return "ADD UNIQUE (%s, id)" % c
        return None

    def statement(self):
        """A statement, and the columns that there are if the server takes it."""
        r = self.r
        if r.random() < .04:
            return ("ALTER TABLE rnd CONVERT TO CHARACTER SET %s" %
                    r.choice(["utf8mb4", "latin1", "utf8mb3"]), self.columns)
        before = list(self.columns)
        used, clauses = {"id"}, []
        for _ in range(r.randint(1, 4)):
            stay = [c for c in self.columns if c in before and c not in used] + ["id"]
            c = self.clause(used, stay)
            if c:
                clauses.append(c)
        if r.random() < .05:
            clauses.append("COMMENT = 'c%d'" % self.n)
        if r.random() < .05:
            clauses.append("DEFAULT CHARACTER SET " + r.choice(["latin1", "utf8mb4"]))
        after, self.columns = self.columns, before
        if not clauses:
            return self.statement()
        return "ALTER TABLE rnd " + ", ".join(clauses), after


@mycase.each_server()
class Ddl(mycase.MyCase):
    def myddl(self, path, *flags):
        self.my.sql("DROP DATABASE IF EXISTS ddl_a; DROP DATABASE IF EXISTS ddl_b")
        r = cdcdtest.run([os.path.join(BIN, "myddl"), *flags, self.my.url("root"), path],
                         check=False, timeout=500)
        self.assertEqual(r.returncode, 0, (r.stdout + r.stderr)[-6000:])
        return json.loads(r.stdout.strip().split("\n")[-1])

    def test_statements(self):
        """Every form of statement, each on its own."""
        got = self.myddl(SQL)
        self.assertGreater(got["statements"], 130)
        self.assertGreater(got["maps"], 500)

    def test_statements_through_notes(self):
        """The same with the models written and read back in between."""
        self.myddl(SQL, "-n")

    def test_random_alters(self):
        seed = int(os.environ.get("CDCD_TEST_SEED", random.randrange(1 << 30)))
        alters, taken = Alters(seed), 0
        self.my.sql("DROP DATABASE IF EXISTS ddl_a")
        p = subprocess.Popen([os.path.join(BIN, "myddl"), "-i", self.my.url("root"), "-"], text=True,
                             stdin=subprocess.PIPE, stdout=subprocess.PIPE, encoding="utf-8")
        lines = []

        def run(statement):
            p.stdin.write(statement + "\n--\n")
            p.stdin.flush()
            for line in p.stdout:
                if line in ("ok\n", "refused\n"):
                    return line == "ok\n"
                lines.append(line)
            raise cdcdtest.Failure("myddl ended: " + "".join(lines[-50:]))

        for s in ["CREATE DATABASE ddl_a CHARACTER SET utf8mb4", "USE ddl_a",
                  "CREATE TABLE rnd (id INT PRIMARY KEY AUTO_INCREMENT, a INT, b VARCHAR(10))"]:
            run(s)
        while taken < 200:
            statement, columns = alters.statement()
            run("TRUNCATE rnd")
            if run("!" + statement):
                alters.columns = columns
                taken += 1
        run("DROP DATABASE ddl_a")
        p.stdin.close()
        lines += p.stdout.readlines()
        self.assertEqual(p.wait(), 0, "seed %d:\n%s" % (seed, "".join(lines)[-6000:]))


if __name__ == "__main__":
    mycase.main()
