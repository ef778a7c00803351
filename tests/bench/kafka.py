"""The benchmarks of Kafka as a source. A topic is filled from PostgreSQL first, by cdcd itself."""
import json
import os
import time

import cdcdtest
import common
import escase
import measure
import postgres
from common import Failed, brief, finish

PARTITIONS = 4
TOPIC = "bench.public.bench"


class Bench(postgres.Bench):
    searches = None
    filled = None

    def versions(self):
        v = super().versions()
        for name, s in (self.searches or {}).items():
            v[name] = s.request("GET", "/")["version"]["number"]
        return v

    def search(self, name):
        self.searches = self.searches or {}
        if name not in self.searches:
            os.environ.setdefault("CDCD_SEARCH_HEAP", "2g")
            self.searches[name] = escase.Search(name)
        return self.searches[name]

    def close(self):
        super().close()
        for s in (self.searches or {}).values():
            s.stop()

    def fill(self):
        """--rows rows in a topic; PostgreSQL is needed no more after that."""
        if self.filled:
            return
        rows = self.options.rows
        self.start_postgres()
        db = self.new_db()
        self.say("writing %d rows to a topic of %d partitions" % (rows, PARTITIONS))
        self.psql(db, "fill.sql", rows=rows)
        run = self.new_run("kafka", "fill")
        source = {"url": self.socket_url(db), "publication.name": "bench_pub", "slot.name": "cdcd_fill"}
        self.start_kafka()
        self.configure(run, {"topic.prefix": "bench", "source": {"postgres": source}, "sink": {"kafka": {
            "bootstrap.servers": self.kafka.bootstrap, "topic.partitions": PARTITIONS}}})
        self.launch(run, "snapshot")
        if run["process"].wait() != 0:
            raise Failed("cdcd snapshot: exit code %d\n%s" % (run["process"].code, run["process"].tail()))
        self.clean(run)
        self.server.stop()
        self.server = self.pg = None
        self.filled = True

    def cdcd(self, sink, name, search):
        """From the topic into an index with the pipeline's name."""
        run = self.new_run(sink, name)
        self.configure(run, {"source": {"kafka": {"bootstrap.servers": self.kafka.bootstrap,
                                                  "topics": [TOPIC.replace(".", r"\.")]}},
                             "sink": {"elasticsearch": {"url": search.url, "index": run["name"],
                                                        "index.settings": {"number_of_replicas": 0}}}})
        return self.launch(run, "run")


def index(bench):
    """A topic into an index, from the start of the process until the server has taken the last
    document. Right before each run a loader that does nothing else (tests/support/esload) gives the
    same server the same documents, into an index of the same mapping."""
    bench.fill()
    runs = []
    for sink in bench.options.sinks:
        search = bench.search(sink)
        shape, file = prepare(bench, sink, search)
        for pair in range(bench.options.pairs):
            limit = load(bench, search, shape, file)
            r = index_cdcd(bench, sink, search)
            r.update({"pair": pair, "limit": limit, "ratio": r["rate"] / limit["rate"]})
            bench.say("index %s: %s" % (sink, brief(r)))
            runs.append(r)
        os.unlink(file)
    return runs


def server_cpu(search):
    return measure.cpu_of(int(search.env[search.variable + "PID"]))


def index_cdcd(bench, sink, search, keep=False):
    rows = bench.options.rows
    server = server_cpu(search)
    run = bench.cdcd(sink, "index", search)
    until_taken(search, run["name"], rows, run["process"])
    seconds = time.monotonic() - run["process"].began
    r = {"what": "index", "sink": sink, "rows": rows, "seconds": seconds, "rate": rows / seconds}
    r.update(finish(bench, run, rows))
    r["server_cpu"] = server_cpu(search) - server
    r["broker_cpu"] = bench.broker_cpu() - run["broker_cpu"]
    check_documents(search, run["name"], rows)
    if keep:
        r["index"] = run["name"]
    else:
        search.request("DELETE", "/%s-000001" % run["name"])
    bench.clean(run)
    return r


def until_taken(search, name, rows, process, timeout=1800):
    """The server is asked often only when it is nearly done: each answer costs it some milliseconds."""
    end = time.monotonic() + timeout
    while True:
        process.sample()
        stats = search.call_raw("GET", "/%s/_stats/indexing?filter_path=_all.primaries.indexing.index_total" % name)
        taken = 0
        if stats[0] == 200:
            taken = json.loads(stats[1])["_all"]["primaries"]["indexing"]["index_total"]
        if taken >= rows:
            return
        if time.monotonic() > end:
            raise Failed("not all documents in %d s: %s" % (timeout, stats))
        time.sleep(0.02 if taken > 0.97 * rows else 0.2 if taken > 0.8 * rows else 1)


def check_documents(search, name, rows):
    search.request("POST", "/%s/_refresh" % name)
    got = search.request("GET", "/%s/_count" % name)["count"]
    if got != rows:
        raise Failed("%s holds %d documents instead of %d" % (name, got, rows))


def prepare(bench, sink, search):
    """Fills an index once, which also warms the server, and writes its documents to a file: in order
    of their ids, which costs the server least."""
    name = index_cdcd(bench, sink, search, keep=True)["index"]
    mappings = search.request("GET", "/%s/_mapping" % name)[name + "-000001"]["mappings"]
    shape = {"mappings": mappings, "settings": {"number_of_replicas": 0}}
    file = os.path.join(bench.folder, "documents-" + sink)
    query = "/%s/_search?scroll=5m&filter_path=_scroll_id,hits.hits._id,hits.hits._source" % name
    page = search.request("POST", query, {"size": 5000, "sort": ["id"]})
    with open(file, "w") as f:
        while page.get("hits"):
            for hit in page["hits"]["hits"]:
                f.write(json.dumps({"index": {"_id": hit["_id"]}}) + "\n")
                f.write(json.dumps(hit["_source"], separators=(",", ":"), ensure_ascii=False) + "\n")
            page = search.request("POST", "/_search/scroll?filter_path=_scroll_id,hits.hits._id,hits.hits._source",
                                  {"scroll": "5m", "scroll_id": page["_scroll_id"]})
    search.request("DELETE", "/%s-000001" % name)
    return shape, file


def load(bench, search, shape, file):
    rows = bench.options.rows
    search.request("PUT", "/loaded", shape)
    server = server_cpu(search)
    p = measure.Process([os.path.join(cdcdtest.SUPPORT, "esload"), search.url, "loaded", file],
                        os.path.join(bench.folder, "esload.log"))
    if p.wait() != 0:
        raise Failed("esload: exit code %d\n%s" % (p.code, p.tail()))
    check_documents(search, "loaded", rows)
    r = {"seconds": p.seconds, "rate": rows / p.seconds, "cpu": p.cpu, "server_cpu": server_cpu(search) - server}
    search.request("DELETE", "/loaded")
    return r


SUITES = {"index": index}
SINKS = {"index": ["opensearch"]}
