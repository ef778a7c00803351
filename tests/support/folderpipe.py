"""What pgcase and mycase share: a pipeline from a database to a folder that can be waited for, its
records in short form, and a module's tests for each server in a process of its own."""
import itertools
import os
import re
import subprocess
import sys
import tempfile

import cdcdtest


def run_each(environments):
    """This module once with each of these settings, at the same time: the tests mostly wait."""
    children = []
    for env in environments:
        out = tempfile.TemporaryFile("w+")
        children.append((out, subprocess.Popen([sys.executable, *sys.argv], env=dict(os.environ, **env), stdout=out,
                                               stderr=subprocess.STDOUT)))
    failed = False
    for out, child in children:
        failed = child.wait() not in (0, 5) or failed  # 5: the module has no test for this server
        out.seek(0)
        sys.stderr.write(out.read())
    sys.exit(failed)


class FolderPipe:
    """Of a subclass: test, out (the folder), cdcd, records(table) and sync_once(timeout)."""

    tokens = itertools.count(1)
    from_ = 0

    def token(self):
        return "%d-%d" % (os.getpid(), next(FolderPipe.tokens))

    def start(self, command="run", *args, wait=True, **more):
        self.from_ = len(self.cdcd.logs()) if os.path.exists(self.cdcd.log_path) else 0
        self.cdcd.start(command, *args, **more)
        if wait:
            self.wait_log("streaming from")
        return self

    def wait_log(self, pattern, timeout=60):
        """In what was logged since the last start."""
        def seen():
            new = self.log_since_start()
            if re.search(pattern, new):
                return True
            if not self.cdcd.alive():
                raise cdcdtest.Failure("cdcd ended before it logged %r:\n%s" % (pattern, new))
            return False
        cdcdtest.wait_until("log %r" % pattern, seen, timeout)

    def log_since_start(self):
        return self.cdcd.logs()[self.from_:]

    def stop(self, expect=0):
        code = self.cdcd.stop()
        self.test.assertEqual(code, expect, self.cdcd.logs()[-4000:])
        return self

    def fails(self, code, *patterns, timeout=60):
        """Runs to its end, and its log has the patterns."""
        self.start(wait=False)
        return self.ends(code, *patterns, timeout=timeout)

    def ends(self, code, *patterns, timeout=60):
        """What runs ends by itself, and its log has the patterns."""
        try:
            got = self.cdcd.wait(timeout)
        except subprocess.TimeoutExpired:
            self.cdcd.kill()
            raise cdcdtest.Failure("did not end:\n" + self.cdcd.logs())
        log = self.log_since_start()
        self.test.assertEqual(got, code, log[-4000:])
        for p in patterns:
            self.test.assertRegex(log, p)
        return log

    def sync(self, timeout=60):
        """Waits until everything that is committed now has come. A commit of the folder writes
        its files one after another: only what a later commit wrote tells that the first is whole."""
        self.sync_once(timeout)
        return self.sync_once(timeout)

    def wait_came(self, topic, text, timeout):
        """Until a topic's file has the text."""
        path = os.path.join(self.out, topic + ".jsonl")

        def came():
            try:
                with open(path, encoding="utf-8") as f:
                    if text in f.read():
                        return True
            except FileNotFoundError:
                pass
            if not self.cdcd.alive():
                raise cdcdtest.Failure("cdcd ended (%s):\n%s" % (self.cdcd.process.returncode, self.cdcd.logs()))
            return False
        cdcdtest.wait_until("what was committed to come", came, timeout)
        return self

    def rows(self, table, op=None):
        """The values' `after` (or `before`, for deletes)."""
        return [r["value"]["before" if r["value"]["op"] == "d" else "after"]
                for r in self.records(table)
                if r["value"] and (op is None or r["value"]["op"] in op)]

    def ops(self, table, tombstones=True):
        """[(op, key, after)]; a tombstone is ("-", key, None)."""
        out = []
        for r in self.records(table):
            if r["value"] is None:
                if tombstones:
                    out.append(("-", r["key"], None))
            else:
                out.append((r["value"]["op"], r["key"], r["value"].get("after")))
        return out
