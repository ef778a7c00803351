"""Whole records against tests/golden/mysql and tests/golden/mariadb: the SQL there is run on a real
server, and every record of expected.jsonl must come out of it, field by field, in the spelling and
order of fields that stand there. Clocks, positions, GTIDs, server ids, threads and versions become
their form first, and headers that name the run are left out. A line's "why" says where it is meant
to differ from what Debezium writes.
"""
import json
import os
import re

import cdcdtest
import mycase

GOLDEN = os.path.join(cdcdtest.ROOT, "tests/golden")
UUID = r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"


class Number(str):
    """A number as it is spelled."""


def parse(line):
    return json.loads(line, parse_float=Number, parse_int=Number)


def spell(v):
    if isinstance(v, Number):
        return str(v)
    if isinstance(v, dict):
        return "{%s}" % ",".join("%s:%s" % (json.dumps(k, ensure_ascii=False), spell(x))
                                 for k, x in v.items())
    if isinstance(v, list):
        return "[%s]" % ",".join(spell(x) for x in v)
    return json.dumps(v, ensure_ascii=False)


def fold_text(text, topic):
    text = re.sub(r'"version":"[^"]*"', '"version":"VERSION"', text)
    text = re.sub(r'"(ts_[mun]s)":(\d+)', lambda m: '"%s":"CLOCK%d"' % (m[1], len(m[2])), text)
    text = re.sub(r'"server_id":[1-9]\d*', '"server_id":"SERVER"', text)
    text = re.sub(r'"%s:((?:\w+:)?)\d+"' % UUID, r'"UUID:\1N"', text)
    text = re.sub(r'"(gtid|id)":"(\d+)-\d+-\d+"', r'"\1":"\2-S-N"', text)
    text = re.sub(r'"file":"(binlog|mariadb-bin)\.\d+"', '"file":"FILE"', text)
    text = re.sub(r'"pos":[1-9]\d*', '"pos":"POS"', text)
    text = re.sub(r'"thread":\d+', '"thread":"THREAD"', text)
    if topic.endswith(".defs"):  # columns whose default is the time
        text = re.sub(r'"dtc":\d{13}', '"dtc":"NOW"', text)
        text = re.sub(r'"ts":"20[2-9]\d-[^"]*Z"', '"ts":"NOW"', text)
    if '"data_collections":[' in text:  # in a hash's order
        text = re.sub(r'"data_collections":\[(\{.*?\})\]', lambda m: '"data_collections":[%s]' % ",".join(
            sorted(re.findall(r"\{.*?\}", m[1]))), text)
    if topic.startswith("srvs."):  # was taken of two tables only
        text = re.sub(r'"snapshot":"(first|last|true)\w*"', '"snapshot":"MARK"', text)
    if '"tableChanges"' in text:
        # Debezium has the row of the row event before it here, and the names in a hash's order.
        text = re.sub(r'"row":\d+', '"row":0', text)
        text = re.sub(r'"table":"([^"]*,[^"]*)"',
                      lambda m: '"table":"%s"' % ",".join(sorted(m[1].split(","))), text)
        text = re.sub(r'AUTO_INCREMENT=\d+', 'AUTO_INCREMENT=N', text)
    return text


def fold(record):
    """{topic, headers, key, value} as parse() gave them -> the same with spelled, folded texts."""
    return {"topic": record["topic"],
            "headers": {k: spell(v) for k, v in record["headers"].items()
                        if not k.startswith(("__debezium.context.", "cdcd."))},
            "key": fold_text(spell(record["key"]), record["topic"]),
            "value": fold_text(spell(record["value"]), record["topic"])}


def flat(v, path=""):
    if isinstance(v, dict) and v:
        for k, x in v.items():
            yield from flat(x, "%s.%s" % (path, k))
    elif isinstance(v, list) and v:
        for i, x in enumerate(v):
            yield from flat(x, "%s[%d]" % (path, i))
    else:
        yield path, spell(v)


def differences(have, want):
    out = []
    for part in ("key", "value"):
        a, b = (dict(flat(parse(r[part]))) for r in (have, want))
        for path in [*b, *(p for p in a if p not in b)]:
            if a.get(path) != b.get(path):
                out.append("%s%s: have %.300s, want %.300s" % (part, path, a.get(path), b.get(path)))
        if not out and have[part] != want[part]:
            out.append("%s: the order of the fields: %.2000s, want %.2000s" % (part, have[part], want[part]))
    if have["headers"] != want["headers"]:
        out.append("headers: have %s, want %s" % (have["headers"], want["headers"]))
    return out


def read_records(folder, topic):
    path = os.path.join(folder, topic + ".jsonl")
    if not os.path.exists(path):
        return []
    with open(path, encoding="utf-8") as f:
        return [fold(parse(line)) for line in f.read().splitlines()]


class Case(mycase.MyCase):
    """One server and two pipelines for all tests: the SQL is the same for each of them."""

    @classmethod
    def setUpClass(cls):
        cls.my = mycase.MyServer(cls.server, *cls.settings)
        cls.addClassCleanup(cls.my.stop)
        cls.ran = {}
        cls.failed_to_run = None

    def read(self, name):
        """What is the same on both servers stands with MySQL's."""
        path = os.path.join(GOLDEN, self.flavor, name)
        with open(path if os.path.exists(path) else os.path.join(GOLDEN, "mysql", name), encoding="utf-8") as f:
            return f.read()

    def capture(self, prefix, **format):
        """Runs the pipeline from its snapshot on, and the SQL that belongs into it."""
        if self.failed_to_run:
            raise cdcdtest.Failure(self.failed_to_run)
        if not self.ran:
            type(self).failed_to_run = "see the first test that failed"
            self.sql(self.read("schema.sql"))
            self.sql("CREATE TABLE cdc.%s (token varchar(40) CHARACTER SET ascii PRIMARY KEY)" % mycase.SYNC)
            self.sql(self.read("rows.sql"))
            self.ran["srv"] = self.run_one("srv", ["stream.sql", "ddl.sql"])
            self.ran["srvs"] = self.run_one("srvs", ["with-schemas.sql"], **{
                "schemas.enable": True, "bigint.unsigned.handling.mode": "long"})
            type(self).failed_to_run = None
        return self.ran[prefix]

    def run_one(self, prefix, files, **format):
        # ddl.sql makes the other one, writes to it, and drops it.
        p = self.pipe("cdc", name=prefix, source={"database.include.list": ["cdc", "other"]}, topic__prefix=prefix, snapshot={"workers": 1}, format={
            "provide.transaction.metadata": True, "heartbeat.interval.ms": 200,
            "skipped.operations": "none", **format})
        p.prefix = prefix
        p.start()
        for name in files:
            self.sql(self.read(name))
        p.sync()
        path = os.path.join(p.out, "__debezium-heartbeat.%s.jsonl" % prefix)
        cdcdtest.wait_until("a heartbeat", lambda: os.path.exists(path) and os.path.getsize(path))
        p.stop()
        return p.out

    def expected(self, name):
        for n, line in enumerate(self.read(name).splitlines(), 1):
            if line and not line.startswith("#"):
                r = parse(line)
                yield "%s line %d (%s)" % (name, n, r.get("name", "")), r, \
                    {"topic": r["topic"], "headers": {k: spell(v) for k, v in r["headers"].items()}, "key": spell(r["key"]),
                     "value": spell(r["value"])}


@mycase.each_server()
class Golden(Case):
    def test_records(self):
        folder = self.capture("srv")
        topics = {}
        for what, r, want in self.expected("expected.jsonl"):
            with self.subTest(what):
                have = topics.setdefault(want["topic"], read_records(folder, want["topic"]))
                if want in have:
                    continue
                self.assertTrue(have, "no record in topic " + want["topic"])

                def same_kind(x):
                    a, b = parse(x["value"]), parse(want["value"])
                    if not isinstance(a, dict) or not isinstance(b, dict):
                        return a == b
                    return a.get("op") == b.get("op") and a.get("ddl") == b.get("ddl")
                near = [x for x in have if x["key"] == want["key"] and same_kind(x)] or \
                       [x for x in have if same_kind(x)] or have
                near.sort(key=lambda x: len(differences(x, want)))
                self.fail("%s in %s is not there; the nearest differs in\n  %s" % (
                    what, want["topic"], "\n  ".join(differences(near[0], want)[:20])))

    def test_sequences(self):
        """Nothing is missing and nothing comes twice: operations and keys of each table."""
        folder = self.capture("srv")
        want = json.loads(self.read("sequences.json"))
        for table, sequence in want.items():
            with self.subTest(table):
                have = []
                for r in read_records(folder, "srv.cdc." + table):
                    value = parse(r["value"])
                    key = parse(r["key"])
                    have.append("%s %s" % (value["op"] if value else "-",
                                           ",".join(spell(x) for x in key.values()) if key else "none"))
                self.assertEqual(have, sequence)

    def test_json_values(self):
        """Snapshot and stream have the same text, which is the server's, with its numbers."""
        folder = self.capture("srv")
        want = json.loads(self.read("json-values.json"))
        if self.flavor == "mysql":
            want["24"] = '{"k":1,"pad":"%s"}' % ("x" * 70000)
        have = {}
        for r in read_records(folder, "srv.cdc.jsn"):
            value = parse(r["value"])
            if value and value["op"] in "rc":
                have[int(value["after"]["id"])] = value["after"]["js"]
        for id, text in want.items():
            with self.subTest(id=id):
                self.assertEqual(have[int(id)], text, "snapshot")
                self.assertEqual(have[int(id) + 100], text, "stream")

    def with_schemas(self, topic, drop=0):
        have = read_records(self.capture("srvs"), topic)
        have = [r for r in have if mycase.SYNC not in r["value"]]
        have = have[:len(have) - drop]
        want = [w for w in self.expected("expected-schemas.jsonl") if w[2]["topic"] == topic]
        self.assertTrue(want)
        for h, (what, _, w) in zip(have, want):
            with self.subTest(what):
                if h != w:
                    self.fail("\n  ".join([topic, *differences(h, w)[:20]]))
        self.assertEqual(len(have), len(want), topic)

    def test_schemas_types(self):
        self.with_schemas("srvs.cdc.types_t")

    def test_schemas_defaults(self):
        self.with_schemas("srvs.cdc.defs")

    def test_schemas_transaction(self):
        self.with_schemas("srvs.transaction", drop=2)  # BEGIN of the two rows of sync()

    def test_schemas_changes(self):
        self.with_schemas("srvs")

    def test_schemas_heartbeat(self):
        have = read_records(self.capture("srvs"), "__debezium-heartbeat.srvs")
        want = [w for _, _, w in self.expected("expected-schemas.jsonl") if "heartbeat" in w["topic"]]
        self.assertIn(have[0], want)

    def test_text_is_compact(self):
        """Spelling of the bytes themselves, not only what a parser makes of them."""
        folder = self.capture("srv")
        with open(os.path.join(folder, "srv.cdc.types_t.jsonl"), encoding="utf-8") as f:
            text = f.read()
        self.assertRegex(text.split("\n")[0], r'^\{"topic":"srv\.cdc\.types_t","key":\{"id":1\},'
                         r'"value":\{"before":null,"after":\{"id":1,"c_ti":-5,"c_tiu":200,')
        for spelled in ('"c_d":1.7976931348623157E308', '"c_f":1.1', '"c_biu":18446744073709551615',
                        '"c_biu":9223372036854775808', "é", r"\uD83D\uDE00", r"\u0001", '"c_real":1.0E15'):
            self.assertIn(spelled, text)


if __name__ == "__main__":
    mycase.main()
