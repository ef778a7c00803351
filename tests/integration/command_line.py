"""The command line without any server: help, usage, config errors, exit codes."""
import os
import subprocess
import tempfile
import unittest

CDCD = os.environ["CDCD_BIN"]
COMMANDS = ["run", "snapshot", "check", "status", "tail", "drop", "config"]
VALID = """\
name: shop
source:
  postgres:
    url: postgresql://cdcd:${TEST_PASSWORD}@127.0.0.1:5432/shop
    table.include.list: [public.orders]
sink: {file: {path: "-"}}
"""


def cdcd(*args, **env):
    return subprocess.run([CDCD, *args], capture_output=True, text=True, timeout=60,
                          stdin=subprocess.DEVNULL,
                          env={**os.environ, "TEST_PASSWORD": "hunter2", **env})


class CommandLine(unittest.TestCase):
    def setUp(self):
        self.dir = tempfile.TemporaryDirectory()
        self.addCleanup(self.dir.cleanup)

    def config(self, text):
        path = os.path.join(self.dir.name, "c.yaml")
        with open(path, "w") as f:
            f.write(text)
        return path

    def test_version_and_help(self):
        self.assertRegex(cdcd("--version").stdout, r"^cdcd \d+\.\d+\.\d+\n$")
        r = cdcd("--help")
        self.assertEqual((r.returncode, r.stderr), (0, ""))
        for command in COMMANDS:
            self.assertIn("\n  %s " % command, r.stdout)
            for args in ([command, "--help"], ["help", command]):
                h = cdcd(*args)
                self.assertEqual((h.returncode, h.stderr), (0, ""))
                self.assertIn("usage: cdcd " + command, h.stdout)
        self.assertEqual(cdcd("bootstrap", "--help").stdout, cdcd("snapshot", "--help").stdout)

    def test_bad_usage(self):
        self.assertEqual(cdcd().returncode, 2)
        r = cdcd("chek")
        self.assertEqual((r.returncode, r.stdout), (2, ""))
        self.assertIn("did you mean check?", r.stderr)
        for command in COMMANDS:
            for args in ([], ["--nonsense"], ["-c"]):
                r = cdcd(command, *args)
                self.assertEqual((r.returncode, r.stdout), (2, ""), (command, args))
                self.assertTrue(r.stderr)

    def test_config_errors_name_file_line_key(self):
        cases = [
            (VALID + "snaphot.mode: always\n",
             "c.yaml:7: snaphot.mode: unknown key; did you mean snapshot.mode?"),
            (VALID + "batches: lots\n", "c.yaml:7: batches: expected a whole number, not \"lots\""),
            (VALID + "snapshot: {mode: never}\n", "c.yaml:7: snapshot.mode: expected initial,"),
            (VALID.replace("url", "ulr"),
             "c.yaml:4: source.postgres.ulr: unknown key; did you mean source.postgres.url?"),
            (VALID.replace("[public.orders]", "['public.(']"),
             "c.yaml:5: source.postgres.table.include.list: \"public.(\" is no valid"),
            (VALID.replace("postgres:", "oracle:"),
             "c.yaml:4: source.oracle.url: there is no plugin oracle"),
            (VALID.replace("name: shop", "name: [shop"), "c.yaml:"),
            (VALID.replace("TEST_PASSWORD", "TEST_UNSET"),
             "c.yaml:4: source.postgres.url: the environment variable TEST_UNSET is not set"),
        ]
        for text, want in cases:
            for command in ("run", "snapshot", "check", "drop", "config"):
                r = cdcd(command, "-c", self.config(text))
                self.assertEqual((r.returncode, r.stdout), (2, ""), (command, want, r.stderr))
                self.assertIn(want, r.stderr)
                self.assertNotIn("hunter2", r.stderr)
        r = cdcd("-c", os.path.join(self.dir.name, "none.yaml"))
        self.assertEqual(r.returncode, 2)
        self.assertIn("none.yaml: No such file or directory", r.stderr)

    def test_a_valid_config(self):
        r = cdcd("config", "-c", self.config(VALID))
        self.assertEqual((r.returncode, r.stderr), (0, ""))
        self.assertIn("pipeline shop from postgres to file", r.stdout)
        self.assertNotIn("hunter2", r.stdout)

    def test_samples_are_valid_with_all_that_is_commented_out(self):
        for sink in ("kafka", "file"):
            r = cdcd("config", "--sample", "postgres", "--sink", sink)
            self.assertEqual((r.returncode, r.stderr), (0, ""))
            text = r.stdout.replace("${PGPASSWORD}", "x")
            self.assertEqual(cdcd("config", "-c", self.config(text)).returncode, 0)
            lines, more = [], False
            for line in text.splitlines():
                more = line.strip().startswith("# More") or more and line.strip() != ""
                if more and not line.strip().startswith("# More"):
                    line = line.replace("# ", "", 1)
                if not line.startswith("state.dir:"):
                    lines.append(line)
            r = cdcd("config", "-c", self.config("\n".join(lines) + "\n"))
            self.assertEqual((r.returncode, r.stderr), (0, ""))

    def test_plugins_are_looked_for_in_the_path(self):
        r = cdcd("config", "--sample", "nosuch", CDCD_PLUGIN_PATH="/nonexistent:/other")
        self.assertEqual(r.returncode, 2)
        self.assertIn("no nosuch.so in /nonexistent, /other, ", r.stderr)
        with open(os.path.join(self.dir.name, "broken.so"), "w") as f:
            f.write("no object")
        r = cdcd("config", "--sample", "broken", CDCD_PLUGIN_PATH=self.dir.name)
        self.assertEqual(r.returncode, 2)
        self.assertIn("plugin broken cannot be loaded", r.stderr)

    def test_a_full_device_is_an_error(self):
        with open("/dev/full", "w") as full:
            r = subprocess.run([CDCD, "config", "--reference"], stdout=full,
                               stderr=subprocess.PIPE, timeout=60)
        self.assertEqual(r.returncode, 1)


if __name__ == "__main__":
    unittest.main()
