"""What the integration and fault tests share: servers, a cdcd under test, and its output.

Every test file makes its own folder under a temporary one, its own databases, and stops what it
started. Servers are shared by the tests of one file. Only the standard library is used.
"""
import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest

ROOT = os.environ.get("CDCD_SOURCE_DIR") or os.path.dirname(
    os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
CDCD = os.environ.get("CDCD_BIN") or os.path.join(ROOT, "build/dev/bin/cdcd")
SUPPORT = os.environ.get("CDCD_SUPPORT_BIN") or os.path.join(os.path.dirname(CDCD))
# Sanitizer builds and valgrind are slower: waits are stretched, never asserted.
PATIENCE = float(os.environ.get("CDCD_TEST_PATIENCE", "1"))


class Failure(AssertionError):
    pass


def run(argv, check=True, stdin=None, timeout=300, env=None):
    r = subprocess.run(argv, input=stdin, capture_output=True, text=True, timeout=timeout * PATIENCE,
                       env=env)
    if check and r.returncode != 0:
        raise Failure("%s: exit %d\n%s%s" % (shlex.join(argv), r.returncode, r.stdout, r.stderr))
    return r


def wait_until(what, test, timeout=30.0, every=0.02):
    """Calls test() until it is true; its last value is returned."""
    end = time.monotonic() + timeout * PATIENCE
    while True:
        value = test()
        if value:
            return value
        if time.monotonic() > end:
            raise Failure("timed out waiting for " + what)
        time.sleep(every)


class Service:
    """A server of scripts/services in a folder of its own."""

    def __init__(self, name, *args):
        self.script = os.path.join(ROOT, "scripts/services", name)
        self.dir = tempfile.mkdtemp(prefix="cdcd-%s-" % name, dir=work_dir())
        os.chmod(self.dir, 0o755)
        self.args = list(args)
        self.call("start", *self.args)
        self.read_env()

    def call(self, verb, *args):
        version = [a for i, a in enumerate(self.args)
                   if a == "--version" or (i and self.args[i - 1] == "--version")]
        extra = [] if args else version
        return run([self.script, verb, "--dir", self.dir, *args, *extra], timeout=180)

    def read_env(self):
        self.env = {}
        for line in self.call("env").stdout.splitlines():
            m = re.match(r"export (\w+)=(.*)", line)
            if m:
                self.env[m.group(1)] = shlex.split(m.group(2))[0] if m.group(2) else ""

    def kill(self):
        self.call("kill")

    def start_again(self):
        self.call("start", *self.args)
        self.read_env()

    def restart(self):
        self.call("restart")
        self.read_env()

    def stop(self):
        self.call("stop")


class Postgres(Service):
    def __init__(self, version=None, *settings):
        args = ["--version", str(version)] if version else []
        for s in settings:
            args += ["--set", s]
        super().__init__("postgres", *args)
        self.counter = 0

    def url(self, db="postgres", user="postgres"):
        return "postgresql://%s@127.0.0.1:%s/%s" % (user, self.env["CDCD_PG_PORT"], db)

    def psql_argv(self, db):
        binary = os.path.join(self.env["CDCD_PG_BIN"], "psql")
        if not os.path.exists(binary):
            binary = shutil.which("psql")
        return [binary, "-X", "-q", "-At", "-v", "ON_ERROR_STOP=1", "-h", "127.0.0.1",
                "-p", self.env["CDCD_PG_PORT"], "-U", "postgres", "-d", db]

    def sql(self, text, db="postgres", check=True, timeout=300):
        """Runs SQL (one statement at a time outside a transaction block); unaligned rows."""
        r = run(self.psql_argv(db), stdin=text, check=check, timeout=timeout)
        return r.stdout.rstrip("\n") if check else r

    def session(self, db):
        """A psql that stays open: write statements to .stdin."""
        return subprocess.Popen(self.psql_argv(db), stdin=subprocess.PIPE, text=True,
                                stdout=subprocess.DEVNULL)

    def new_db(self, prefix="t"):
        self.counter += 1
        name = "%s%d" % (prefix, self.counter)
        self.sql("CREATE DATABASE %s TEMPLATE template0 ENCODING 'UTF8'" % name)
        return name

    def lsn(self, db="postgres"):
        return self.sql("SELECT pg_current_wal_lsn()", db)


class Kafka(Service):
    def __init__(self, *settings):
        args = []
        for s in settings:
            args += ["--set", s]
        super().__init__("kafka", *args)

    @property
    def bootstrap(self):
        return self.env["CDCD_KAFKA_BOOTSTRAP"]

    def read(self, topics, timeout=120):
        """All committed records of the topics (a name, or ^regex), in order of each partition."""
        r = run([os.path.join(SUPPORT, "kread"), self.bootstrap, topics, "--from-beginning", "--until-end"],
                timeout=timeout)
        return [json.loads(line) for line in r.stdout.splitlines()]


class Cdcd:
    """One configuration of cdcd and the process that runs it."""

    def __init__(self, config, name=None):
        self.dir = tempfile.mkdtemp(prefix="cdcd-run-", dir=work_dir())
        self.config = dict(config)
        self.config.setdefault("name", name or "shop")
        self.config.setdefault("state.dir", os.path.join(self.dir, "state"))
        os.makedirs(self.config["state.dir"], exist_ok=True)
        self.path = os.path.join(self.dir, "cdcd.yaml")
        self.log_path = os.path.join(self.dir, "log")
        self.process = None
        self.write_config()

    def write_config(self):
        with open(self.path, "w") as f:
            json.dump(self.config, f, indent=1)  # JSON is YAML

    def start(self, command="run", *args, stdout=None):
        self.write_config()
        with open(self.log_path, "ab") as log:
            self.process = subprocess.Popen([CDCD, command, "-c", self.path, *args], stderr=log,
                                            stdout=stdout or subprocess.DEVNULL)
        return self

    def run(self, command, *args, check=True, timeout=120):
        """Runs a command to its end."""
        self.write_config()
        r = subprocess.run([CDCD, command, "-c", self.path, *args], capture_output=True, text=True,
                           timeout=timeout * PATIENCE)
        with open(self.log_path, "a") as f:
            f.write(r.stderr)
        if check and r.returncode != 0:
            raise Failure("cdcd %s: exit %d\n%s%s" % (command, r.returncode, r.stdout, r.stderr))
        return r

    def alive(self):
        return self.process is not None and self.process.poll() is None

    def stop(self, timeout=60):
        """SIGTERM; returns the exit code."""
        if self.process is None:
            return None
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        return self.wait(timeout)

    def wait(self, timeout=60):
        code = self.process.wait(timeout * PATIENCE)
        self.process = None
        return code

    def kill(self):
        if self.process is not None:
            self.process.kill()
            self.process.wait()
            self.process = None

    def logs(self):
        with open(self.log_path, errors="replace") as f:
            return f.read()

    def wait_log(self, pattern, timeout=30):
        def seen():
            if re.search(pattern, self.logs()):
                return True
            if self.process is not None and self.process.poll() is not None:
                raise Failure("cdcd ended (%s) before it logged %r:\n%s"
                              % (self.process.returncode, pattern, self.logs()))
            return False
        wait_until("log " + repr(pattern), seen, timeout)


def read_folder(folder):
    """The records of a file sink's folder: {topic: [record, ...]}, complete lines only."""
    out = {}
    for name in sorted(os.listdir(folder)):
        if not name.endswith(".jsonl"):
            continue
        with open(os.path.join(folder, name), encoding="utf-8") as f:
            lines = f.read().split("\n")
        out[name[:-len(".jsonl")]] = [json.loads(line) for line in lines[:-1]]
    return out


def file_config(pg, db, folder, **more):
    config = {"topic.prefix": "srv",
              "source": {"postgres": {"url": pg.url(db), "slot.name": "cdcd_" + db}},
              "sink": {"file": {"path": folder}}}
    for key, value in more.items():
        config[key.replace("__", ".")] = value
    return config


_work = None


def work_dir():
    global _work
    if _work is None:
        base = os.environ.get("CDCD_SERVICES_DIR")
        if base:
            os.makedirs(base, exist_ok=True)
        _work = tempfile.mkdtemp(prefix="cdcd-test-")
        os.chmod(_work, 0o755)
    return _work


class TestCase(unittest.TestCase):
    """Stops every Cdcd made with self.cdcd() and shows its log when the test failed."""

    maxDiff = None

    def setUp(self):
        self._runs = []

    def cdcd(self, config, name=None):
        c = Cdcd(config, name)
        self._runs.append(c)
        return c

    def folder(self):
        return tempfile.mkdtemp(prefix="out-", dir=work_dir())

    def failed(self):
        if hasattr(self._outcome, "errors"):  # before Python 3.11
            return any(error for _, error in self._outcome.errors)
        result = self._outcome.result
        return any(getattr(test, "test_case", test) is self
                   for test, _ in result.failures + result.errors)

    def tearDown(self):
        failed = self.failed()
        for c in self._runs:
            c.kill()
            if failed and os.path.exists(c.log_path):
                sys.stderr.write("---- log of %s ----\n%s\n" % (c.path, c.logs()[-20000:]))


def main():
    program = unittest.main(exit=False, verbosity=2)
    if _work and program.result.wasSuccessful():
        shutil.rmtree(_work, ignore_errors=True)
    elif _work:
        sys.stderr.write("kept for a look: %s\n" % _work)
    sys.exit(0 if program.result.wasSuccessful() else 1)
