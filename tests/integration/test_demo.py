"""scripts/demo --once: what the README shows must run, say what it found, and leave nothing behind."""
import os
import re
import subprocess
import tempfile
import unittest

import cdcdtest

SOURCE = os.environ.get("CDCD_SOURCE_DIR") or os.path.dirname(
    os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
STEPS = 8
LINE = re.compile(r"^(?=(insert|change|delete)  ).{34} (found|not found) +(\d+) ms")


def runs_left():
    folder = os.path.join(SOURCE, "build", "demo")
    return {n for n in os.listdir(folder) if n.startswith("run-")} if os.path.isdir(folder) else set()


class Demo(unittest.TestCase):
    def demo(self, *args):
        env = dict(os.environ, CDCD_BIN=cdcdtest.CDCD)
        return subprocess.run([os.path.join(SOURCE, "scripts", "demo"), *args], env=env,
                              stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=600)

    def shows(self, *args):
        before = runs_left()
        r = self.demo("--once", "--rounds", "1", *args)
        self.assertEqual(r.returncode, 0, r.stdout + r.stderr)
        lines = [m.groups() for m in map(LINE.match, r.stdout.splitlines()) if m]
        self.assertEqual([(what, seen) for what, seen, _ in lines],
                         [("insert", "found")] * 2 + [("change", "found")] * 3 +
                         [("delete", "not found")] * 3, r.stdout)
        for table in ("customers", "products", "orders", "order_items"):
            self.assertRegex(r.stdout, r"index shop-%s +found +\d+ rows" % table)
        self.assertIn("All %d changes found, and index and tables agree" % STEPS, r.stdout)
        self.assertEqual(runs_left() - before, set(), "folders were left behind")

    def test_opensearch(self):
        self.shows()

    def test_elasticsearch(self):
        self.shows("--elasticsearch")

    def test_bad_option(self):
        r = self.demo("--twice")
        self.assertEqual(r.returncode, 2)
        self.assertIn("--twice", r.stderr)

    def with_cdcd(self, script, **env):
        """The demo with a shell script for cdcd; "$REAL" is the real one."""
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "cdcd")
            with open(path, "w") as f:
                f.write("#!/bin/sh\n%s\n" % script)
            os.chmod(path, 0o755)
            env = dict(os.environ, CDCD_BIN=path, REAL=cdcdtest.CDCD, **env)
            return subprocess.run([os.path.join(SOURCE, "scripts", "demo"), "--once"], env=env,
                                  stdin=subprocess.DEVNULL, capture_output=True, text=True,
                                  timeout=600)

    def test_says_when_a_cdcd_ends(self):
        before = runs_left()
        r = self.with_cdcd("echo oh no >&2; exit 3")
        self.assertEqual(r.returncode, 1, r.stdout + r.stderr)
        self.assertIn("has ended", r.stderr)
        self.assertIn("oh no", r.stderr)
        self.assertEqual(runs_left() - before, set())

    def test_says_when_rows_are_not_found(self):
        """Nothing fills the index."""
        r = self.with_cdcd('case "$*" in *index.yaml) exec sleep 300;; esac; exec "$REAL" "$@"',
                           CDCD_DEMO_TIMEOUT="5")
        self.assertEqual(r.returncode, 1, r.stdout + r.stderr)
        self.assertIn("shop-customers does not have the 4 rows", r.stderr)


if __name__ == "__main__":
    cdcdtest.main()
