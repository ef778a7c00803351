"""What the benchmarks of all sources share: folders, the broker, a cdcd and its figures."""
import json
import os
import shutil

import cdcdtest
import measure


class Failed(Exception):
    pass


class Bench:
    """The servers and folders that all benchmarks share; closes what it opened."""

    server = None  # of the source, when a benchmark has started it

    def __init__(self, folder, options, say):
        self.folder, self.options, self.say = folder, options, say
        self.serial = 0
        self.kafka = None
        self.alive = []

    def start_kafka(self):
        if not self.kafka:
            self.kafka = cdcdtest.Kafka("log.retention.hours=-1")

    def close(self):
        for p in self.alive:
            p.kill()
        for service in (self.server, self.kafka):
            if service:
                service.stop()

    def versions(self):
        return {}

    def new_folder(self, name):
        self.serial += 1
        path = os.path.join(self.folder, "%03d-%s" % (self.serial, name))
        os.makedirs(path)
        return path

    def new_run(self, sink, name):
        """A pipeline with a folder of its own."""
        folder = self.new_folder(name)
        return {"name": name + str(self.serial), "folder": folder, "sink": sink,
                "config": os.path.join(folder, "cdcd.yaml")}

    def configure(self, run, sections):
        config = {"name": run["name"], "topic.prefix": run["name"], "state.dir": run["folder"]}
        if run["sink"] == "kafka":
            self.start_kafka()
            config["sink"] = {"kafka": {"bootstrap.servers": self.kafka.bootstrap}}
            if self.options.kafka_property:
                config["sink"]["kafka"]["properties"] = dict(
                    p.split("=", 1) for p in self.options.kafka_property)
        elif run["sink"] == "file":
            run["out"] = os.path.join(run["folder"], "out")
            config["sink"] = {"file": {"path": run["out"]}}
        else:
            config["sink"] = {"file": {"path": "-"}}
        config.update(sections)
        with open(run["config"], "w") as f:
            json.dump(config, f, indent=1)

    def launch(self, run, command, stdout=None):
        run["broker_cpu"] = self.broker_cpu()
        run["process"] = measure.Process([cdcdtest.CDCD, command, "-c", run["config"]],
                                         os.path.join(run["folder"], "log"), stdout=stdout)
        self.alive.append(run["process"])
        return run

    def broker_cpu(self):
        return measure.cpu_of(int(self.kafka.env["CDCD_KAFKA_PID"])) if self.kafka else 0.0

    def count(self, run, table):
        """How many records the sink holds for a table, named as in its topic."""
        topic = "%s.%s" % (run["name"], table)
        if run["sink"] == "kafka":
            out = cdcdtest.run([os.path.join(cdcdtest.SUPPORT, "klatency"), self.kafka.bootstrap, topic,
                                "--count"], timeout=600).stdout
            return json.loads(out)["records"]
        if run["sink"] == "file":
            return lines_of(os.path.join(run["out"], topic + ".jsonl"))
        return None

    def clean(self, run):
        self.alive.remove(run["process"])
        shutil.rmtree(run["folder"], ignore_errors=True)


def lines_of(path):
    n = 0
    with open(path, "rb") as f:
        while True:
            block = f.read(1 << 20)
            if not block:
                return n
            n += block.count(b"\n")


def finish(bench, run, rows):
    """Stops a cdcd and returns its figures."""
    p = run["process"]
    code = p.stop()
    if code != 0 and not os.environ.get("CDCD_BENCH_WRAPPED"):  # run under a profiler, say
        raise Failed("cdcd: exit code %s\n%s" % (code, p.tail()))
    r = {"cpu": p.cpu, "user": p.user, "system": p.system, "cpu_per_million": p.cpu / rows * 1e6,
         "peak_bytes": p.peak}
    if run["sink"] == "kafka":
        r["broker_cpu"] = bench.broker_cpu() - run["broker_cpu"]
    return r


def check_count(bench, run, table, want):
    got = bench.count(run, table)
    if got is not None and got != want:
        raise Failed("%s holds %d records of %s instead of %d" % (run["sink"], got, table, want))


def brief(r):
    parts = []
    if "p50_ms" in r:
        parts.append("p50 %.1f ms, p99 %.1f ms" % (r["p50_ms"], r["p99_ms"]))
    if "seconds" in r:
        parts.append("%.2f s" % r["seconds"])
        parts.append("%.0f rows/s" % (r["rows"] / r["seconds"]))
    if "ratio" in r:
        parts.append("%.2f of the limit's %.0f" % (r["ratio"], r["limit"]["rate"]))
    parts.append("%.2f CPU s a million" % r["cpu_per_million"])
    parts.append("%.0f MB" % (r["peak_bytes"] / 1e6))
    return ", ".join(parts)
