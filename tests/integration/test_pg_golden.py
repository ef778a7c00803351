"""Whole records of every type, byte for byte but for clocks, LSNs and transaction ids, against
tests/golden/postgres/expected*.jsonl. CDCD_BLESS=1 writes those files anew: read the diff.
"""
import json
import os
import re

import cdcdtest
import pgcase

GOLDEN = os.path.join(cdcdtest.ROOT, "tests/golden/postgres")
CLOCKS = ("ts_ms", "ts_us", "ts_ns")


def read(name):
    with open(os.path.join(GOLDEN, name), encoding="utf-8") as f:
        return f.read()


def fold_payload(v, name):
    """What differs from run to run becomes its form."""
    for k in CLOCKS:
        if isinstance(v.get(k), int):
            v[k] = "CLOCK%d" % len(str(v[k]))
    source = v.get("source")
    if source:
        fold_payload(source, name)
        source["version"] = "VERSION"
        source["db"] = "DB"
        for k in ("lsn", "txId"):
            if source[k] is not None:
                source[k] = k.upper()
        source["sequence"] = re.sub(r'"\d+"', '"LSN"', source["sequence"] or "null")
    transaction = v.get("transaction")
    if transaction:
        fold_payload(transaction, name)
    if name in ("transaction", "block") or "total_order" in v or "status" in v:
        if isinstance(v.get("id"), str):
            v["id"] = re.sub(r"^\d+:\d+$", "TXID:LSN", v["id"])


def fold(record, with_schemas):
    r = json.loads(json.dumps(record))
    kind = "transaction" if r["topic"].endswith(".transaction") else ""
    for part in ("key", "value"):
        if r[part] is None:
            continue
        payload = r[part]["payload"] if with_schemas else r[part]
        fold_payload(payload, kind)
    for k, v in r["headers"].items():
        if k == "cdcd.pos":
            r["headers"][k] = re.sub(r"[0-9a-fA-F]+", "N", v)
        if k == "cdcd.schema":
            r["headers"][k] = "SCHEMA%d" % len(v)
    return r


@pgcase.one_version()
class Golden(pgcase.PgCase):
    def capture(self, with_schemas):
        db = self.db(read("schema.sql") + read("rows.sql"))
        p = self.pipe(db, source={"publication.autocreate.mode": "all_tables"}, format={
            "provide.transaction.metadata": True, "heartbeat.interval.ms": 200,
            "skipped.operations": "none", "extended.headers.enabled": True,
            "schemas.enable": with_schemas})
        p.start()
        self.sql(read("changes.sql"), db)
        if not with_schemas:  # with them they have no form: see test_pg_types.py
            self.sql(read("special.sql"), db)
        p.sync()
        heartbeats = os.path.join(p.out, "__debezium-heartbeat.srv.jsonl")
        cdcdtest.wait_until("a heartbeat", lambda: os.path.exists(heartbeats) and
                            os.path.getsize(heartbeats))
        p.stop()
        return p

    def lines(self, p, with_schemas):
        topics = cdcdtest.read_folder(p.out)
        out = []
        for topic in sorted(topics):
            records = topics[topic]
            if "heartbeat" in topic:
                records = records[:1]
            elif topic.endswith(".message"):
                records = records[:-2]  # those of sync()
            elif topic.endswith(".transaction"):
                records = records[:-4]
            out += [json.dumps(fold(r, with_schemas), ensure_ascii=False) for r in records]
        return out

    def compare(self, name, lines):
        path = os.path.join(GOLDEN, name)
        if os.environ.get("CDCD_BLESS"):
            with open(path, "w", encoding="utf-8") as f:
                f.write("\n".join(lines) + "\n")
        expected = read(name).splitlines()
        for i, (have, want) in enumerate(zip(lines, expected)):
            if have != want:
                self.assertEqual(json.loads(have), json.loads(want), "%s line %d" % (name, i + 1))
                self.assertEqual(have, want, "%s line %d: order of fields" % (name, i + 1))
        self.assertEqual(len(lines), len(expected), name)

    def test_without_schemas(self):
        self.compare("expected.jsonl", self.lines(self.capture(False), False))

    def test_with_schemas(self):
        self.compare("expected-schemas.jsonl", self.lines(self.capture(True), True))

    def test_text_is_compact(self):
        """Field order and spelling of the bytes themselves, not only what a parser makes of them."""
        p = self.capture(False)
        with open(os.path.join(p.out, "srv.public.whole.jsonl"), encoding="utf-8") as f:
            line = f.readline()
        self.assertRegex(line, r'^\{"topic":"srv\.public\.whole","key":\{"id":1\},"value":\{'
                               r'"before":null,"after":\{"id":1,"name":"one","amount":"AJY="\},'
                               r'"source":\{"version":"[^"]+","connector":"postgresql","name":"srv",'
                               r'"ts_ms":\d{13},"snapshot":"[a-z_]+","db":"\w+","sequence":')
        with open(os.path.join(p.out, "srv.public.every_type.jsonl"), encoding="utf-8") as f:
            text = f.read()
        for spelled in ('"f8":1.0E300', '"f4":-0.0', '"i8":9223372036854775807', "é",
                        r"\uD83D\uDE00", r"\u0001", '"f4":"NaN"'):
            self.assertIn(spelled, text)


if __name__ == "__main__":
    pgcase.main()
