"""http.listen and `cdcd status`: what they say through snapshot, stream, outage and end."""
import json
import os
import socket
import subprocess
import urllib.error
import urllib.request

import cdcdtest
import pgcase
from cdcdtest import CDCD, wait_until


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def get(port, path, method="GET"):
    """(status, body); status None when nothing answers."""
    request = urllib.request.Request("http://127.0.0.1:%d%s" % (port, path), method=method)
    try:
        with urllib.request.urlopen(request, timeout=10) as r:
            return r.status, r.read().decode()
    except urllib.error.HTTPError as e:
        return e.code, e.read().decode()
    except OSError:
        return None, ""


def status(port):
    code, body = get(port, "/api/status")
    return json.loads(body) if code == 200 else {}


def metrics(port):
    samples = {}
    for line in get(port, "/metrics")[1].splitlines():
        if not line.startswith("#"):
            name, value = line.rsplit(" ", 1)
            samples[name] = float(value)
    return samples


def command(*args):
    return subprocess.run([CDCD, *args], capture_output=True, text=True, timeout=60)


@pgcase.one_version()
class Http(pgcase.PgCase):
    def test_a_life(self):
        port = free_port()
        db = self.db("CREATE TABLE a (id int PRIMARY KEY, v text);"
                     "INSERT INTO a SELECT g, 'x' FROM generate_series(1, 1000) g")
        p = self.pipe(db, http__listen="127.0.0.1:%d" % port,
                      http__ready__max__lag__ms="1h").start()
        wait_until("ready", lambda: get(port, "/readyz")[0] == 200)
        wait_until("what the snapshot ends with is durable", lambda: status(port)["position"])
        s = status(port)
        self.assertEqual((s["name"], s["source"], s["sink"], s["phase"], s["ready"]),
                         (p.cdcd.config["name"], "postgres", "file", "streaming", True))
        self.assertRegex(s["position"], r"^LSN [0-9A-F]+/[0-9A-F]+")
        self.assertEqual((s["snapshot_rows"], s["snapshot"], s["retries"], s["last_error"]),
                         (1000, None, 0, None))
        self.sql("INSERT INTO a SELECT g, 'y' FROM generate_series(1001, 1100) g", db)
        p.sync()
        label = '{pipeline="%s"}' % s["name"]
        wait_until("counted", lambda: status(port)["events"] >= 1100)
        m = metrics(port)
        self.assertEqual((m["cdcd_up" + label], m["cdcd_ready" + label],
                          m["cdcd_snapshot_rows_total" + label]), (1, 1, 1000))
        self.assertGreaterEqual(m["cdcd_records_total" + label], 1100)
        self.assertGreater(m["cdcd_bytes_total" + label], 10000)
        self.assertLess(m["cdcd_last_commit_age_seconds" + label], 300)
        wait_until("lag gone", lambda: metrics(port).get("cdcd_lag_seconds" + label) == 0)
        self.assertNotEqual(status(port)["position"], s["position"])
        self.assertGreater(status(port)["rates"]["records_per_s"], 0)

        people = command("status", "-c", p.cdcd.path)
        self.assertEqual((people.returncode, people.stderr), (0, ""))
        self.assertIn("%s: streaming\n" % s["name"], people.stdout)
        self.assertIn("position   LSN ", people.stdout)
        r = command("status", "http://127.0.0.1:%d/" % port, "--json")
        self.assertEqual(json.loads(r.stdout)["phase"], "streaming")
        self.assertIn("<td>streaming", get(port, "/")[1])
        self.assertEqual(get(port, "/nothing")[0], 404)
        self.assertEqual(get(port, "/metrics", "POST")[0], 405)
        self.assertEqual(get(port, "/metrics", "HEAD"), (200, ""))

        second = command("run", "-c", p.cdcd.path)
        self.assertEqual(second.returncode, 2)
        self.assertIn("http.listen: cannot listen on 127.0.0.1:%d: Address already in use; choose "
                      "another port" % port, second.stderr)
        self.assertNotIn("streaming", second.stderr)

        self.pg.kill()
        try:
            wait_until("not ready", lambda: get(port, "/readyz")[0] == 503)
            wait_until("an error", lambda: status(port)["last_error"] is not None)
            wait_until("retries", lambda: status(port)["retries"] > 0)
            self.assertEqual(get(port, "/healthz"), (200, "ok\n"))
            wait_until("unknown lag", lambda: status(port)["lag_bytes"] is None)
        finally:
            self.pg.start_again()
        wait_until("ready again", lambda: get(port, "/readyz")[0] == 200, 60)
        self.assertEqual(p.cdcd.stop(), 0)
        self.assertIsNone(get(port, "/healthz")[0])
        r = command("status", "-c", p.cdcd.path)
        self.assertEqual((r.returncode, r.stdout), (1, ""))
        self.assertIn("nothing answers at 127.0.0.1:%d" % port, r.stderr)

    def test_snapshot_progress(self):
        port = free_port()
        db = self.db("CREATE TABLE a (id int PRIMARY KEY); INSERT INTO a VALUES (1);"
                     "CREATE TABLE b (id int PRIMARY KEY, v text);"
                     "INSERT INTO b SELECT g, repeat('x', 500) FROM generate_series(1, 20000) g;"
                     "ANALYZE")
        unread, full = os.pipe()  # takes what fits in it, then the snapshot stands
        self.addCleanup(os.close, unread)
        self.addCleanup(os.close, full)
        p = self.pipe(db, http__listen="127.0.0.1:%d" % port, batches=4,
                      sink={"file": {"path": "-"}})
        p.cdcd.start(stdout=full)

        def standing():
            s = status(port)
            return s.get("snapshot") and s["snapshot"]["table"] == "public.b" and \
                s["snapshot"]["rows"] > 0 and s
        s = wait_until("the second table", standing)
        self.assertEqual((s["phase"], s["ready"], s["not_ready_because"]),
                         ("snapshot", False, "snapshot"))
        self.assertEqual((s["snapshot"]["table_number"], s["snapshot"]["tables"],
                          s["snapshot"]["rows_expected"]), (2, 2, 20000))
        self.assertEqual(get(port, "/readyz"), (503, "snapshot\n"))
        self.assertIn("snapshot   public.b (2 of 2): ", command("status", "-c", p.cdcd.path).stdout)
        self.assertIn('cdcd_snapshot_tables_done{pipeline="%s"} 1\n' % s["name"],
                      get(port, "/metrics")[1])
        p.cdcd.kill()

    def test_errors(self):
        db = self.db("CREATE TABLE a (id int PRIMARY KEY)")
        for listen, want in (
                ("8083", 'http.listen: expected HOST:PORT such as 127.0.0.1:8083 or [::1]:8083, '
                         'not "8083"'),
                ("::1:8083", "http.listen: expected HOST:PORT"),
                ("127.0.0.1:99999", "http.listen: expected HOST:PORT"),
                ("192.0.2.1:8083", "http.listen: cannot listen on 192.0.2.1:8083: Cannot assign "
                                   "requested address; the address is none of this machine"),
                ("no.such.host.invalid:8083", "http.listen: the host of no.such.host.invalid:8083 "
                                              "is not known")):
            p = self.pipe(db, http__listen=listen)
            r = p.cdcd.run("run", check=False)
            self.assertEqual(r.returncode, 2, (listen, r.stderr))
            self.assertIn(want, r.stderr)
            self.assertNotIn("snapshot", r.stderr.replace("cdcd snapshot", ""))
        p = self.pipe(db)
        r = p.cdcd.run("status", check=False)
        self.assertEqual(r.returncode, 2)
        self.assertIn("http.listen is not set", r.stderr)

    def test_the_wrong_one_answers(self):
        port = free_port()
        db = self.db("CREATE TABLE a (id int PRIMARY KEY)")
        p = self.pipe(db, http__listen="0.0.0.0:%d" % port).start()
        p.wait_log("is no loopback address")
        other = self.pipe(db, name="other", http__listen="127.0.0.1:%d" % port)
        r = other.cdcd.run("status", check=False)
        self.assertEqual((r.returncode, r.stdout), (1, ""))
        self.assertIn("the pipeline %s answers, not other" % p.cdcd.config["name"], r.stderr)
        tail = other.cdcd
        tail.config["http.listen"] = "127.0.0.1:%d" % port  # taken: a tail does not want it
        tail.start("tail")
        wait_until("the tail's slot", lambda: self.sql(
            "SELECT count(*) FROM pg_replication_slots WHERE temporary AND active", db) != "0")
        self.assertTrue(tail.alive())
        tail.stop()
        p.cdcd.stop()
        with socket.socket() as s:  # something else that answers
            s.bind(("127.0.0.1", 0))
            s.listen()
            r = subprocess.Popen([CDCD, "status", "127.0.0.1:%d" % s.getsockname()[1]],
                                 stderr=subprocess.PIPE, text=True)
            c, _ = s.accept()
            c.recv(100)
            c.sendall(b"HTTP/1.0 200 OK\r\n\r\n[1]")
            c.close()
            self.assertIn("is no cdcd", r.communicate(timeout=30)[1])
            self.assertEqual(r.returncode, 1)


if __name__ == "__main__":
    cdcdtest.main()
