"""pgload (pgload.c) for Python tests: random load in the background, and what it committed."""
import json
import os
import signal
import subprocess

import cdcdtest
import verify

BINARY = os.path.join(cdcdtest.SUPPORT, "pgload")
TABLE_PATTERN = r"public\.load_.*"  # for table.include.list


class Load:
    def __init__(self, pg, db, tables=3, keys=200):
        self.pg, self.db, self.url = pg, db, pg.url(db)
        self.process = None
        cdcdtest.run(pg.psql_argv(db) + ["-v", "tables=%d" % tables, "-v", "keys=%d" % keys, "-f",
                                         os.path.join(cdcdtest.ROOT, "tests/support/pgload.sql")])

    def start(self, **options):
        """options: seconds, transactions, sessions, seed, rate, large, first (see pgload.c)."""
        argv = [BINARY, self.url]
        for k, v in options.items():
            argv += ["--" + k, str(v)]
        self.process = subprocess.Popen(argv, stdout=subprocess.PIPE, text=True)
        return self

    def run(self, **options):
        return self.start(**options).wait()

    def wait(self):
        out, _ = self.process.communicate()
        code, self.process = self.process.returncode, None
        if code != 0:
            raise cdcdtest.Failure("pgload: exit code %d" % code)
        return json.loads(out)

    def stop(self):
        """Ends it early; what it has committed counts."""
        self.process.send_signal(signal.SIGTERM)
        return self.wait()

    def end(self):
        """For cleaning up: nothing runs afterwards, whatever happened."""
        if self.process is not None:
            self.process.kill()
            self.process.wait()
            self.process = None

    def expected(self):
        return verify.Expected(lambda sql: self.pg.sql(sql, self.db))

    def verify(self, records, resumed=False):
        return verify.verify(records, self.expected(), resumed)

    def wait_drained(self, slot, timeout=120):
        """Until the sink durably holds all that is committed now."""
        target = self.pg.lsn(self.db)
        cdcdtest.wait_until("slot %s to reach %s" % (slot, target), lambda: self.pg.sql(
            "SELECT confirmed_flush_lsn >= '%s' FROM pg_replication_slots WHERE slot_name = '%s'"
            % (target, slot), self.db) == "t", timeout, 0.1)
