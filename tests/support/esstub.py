"""A stand-in for OpenSearch and Elasticsearch with faults to order.

It keeps documents with external versions, deletes with their versions, aliases and indexes, and
answers the requests that cdcd makes. What goes wrong is set on the server:

    with Stub() as stub:
        stub.item_429 = 0.3            # 30 % of the items of each bulk
        stub.next.append(("status", 429, {"Retry-After": "1"}))   # the next bulk as a whole
        stub.next.append(("reset",))   # the next bulk is applied, and its connection cut
        stub.max_bytes = 100_000       # 413 for larger bodies
        stub.fault("PUT", "/_index_template", 503, 2)   # the next two such requests, no bulks

    stub.documents("shop.public.t")    # {id: source}
    stub.bulks                         # [(bytes, [(action, id, status)])]
"""
import gzip
import http.server
import json
import random
import re
import socket
import ssl
import struct
import threading
import time
import urllib.parse
import uuid


class Document:
    def __init__(self, version, source):
        self.version, self.source = version, source  # source None: deleted


class Index:
    def __init__(self, body=None):
        body = body or {}
        self.mappings = body.get("mappings") or {}
        self.settings = dict(body.get("settings") or {})
        self.docs = {}
        self.settings["uuid"] = uuid.uuid4().hex
        self.seq = {}  # of documents without versions: id -> (seq_no, source)
        self.next_seq = 0


class Stub:
    def __init__(self, version="2.19.6", distribution="opensearch", certificate=None):
        self.certificate = certificate  # files of certificate and key: https
        self.version, self.distribution = version, distribution
        self.lock = threading.RLock()
        self.indexes, self.aliases, self.templates = {}, {}, {}
        self.bulks, self.requests = [], []
        self.next = []        # faults of the next bulks, in order
        self.faults = []      # of other requests, see fault
        self.scrolls = {}     # id -> hits that were not given yet
        self.item_429 = 0.0   # share of items
        self.max_bytes = None
        self.delay = 0.0
        self.authorization = None  # the header that is asked for
        self.refuse = None    # function(source) -> (status, type, reason) or None
        self.malformed = None  # function(source) -> bool: the whole bulk is refused with 400
        self.blocked = set()  # indexes that take no writes
        self.random = random.Random(1)
        self.concurrent = self.most_concurrent = 0
        self.server = None
        self.port = None

    # -- life --

    def start(self):
        stub = self

        class Handler(_Handler):
            pass

        Handler.stub = stub

        class Server(http.server.ThreadingHTTPServer):
            daemon_threads = True
            allow_reuse_address = True
            request_queue_size = 64

            def handle_error(self, request, client_address):
                pass

        self.server = Server(("127.0.0.1", self.port or 0), Handler)
        self.port = self.server.server_address[1]
        if self.certificate:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(*self.certificate)
            self.server.socket = context.wrap_socket(self.server.socket, server_side=True,
                                                     do_handshake_on_connect=False)
        threading.Thread(target=self.server.serve_forever, args=(0.02,), daemon=True).start()
        return self

    def stop(self):
        """Nobody listens any more; what is under way is cut at its next request."""
        if self.server:
            self.server.shutdown()
            self.server.server_close()
            self.server = None

    __enter__ = start

    def __exit__(self, *_):
        self.stop()

    @property
    def url(self):
        return "%s://127.0.0.1:%d" % ("https" if self.certificate else "http", self.port)

    def fault(self, method, pattern, how, times=1):
        """The next requests with this method whose path has the pattern: how is a status, "cut" (before it
        is done) or "reset" (after it was)."""
        with self.lock:
            self.faults.append([method, re.compile(pattern), how, times])

    def take_fault(self, method, path):
        for f in self.faults:
            if f[0] == method and f[1].search(path) and f[3] > 0:
                f[3] -= 1
                return f[2]
        return None

    # -- what is in it --

    def documents(self, name):
        with self.lock:
            out = {}
            for index in self.aliases.get(name, [name]):
                if index in self.indexes:
                    for i, d in self.indexes[index].docs.items():
                        if d.source is not None:
                            out[i] = json.loads(d.source)
            return out

    def count_bulks(self):
        with self.lock:
            return len(self.bulks)


class _Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    stub = None
    wbufsize = -1

    def log_message(self, *_):
        pass

    def handle_expect_100(self):
        limit = self.stub.max_bytes
        if limit and int(self.headers.get("Content-Length", 0)) > limit:
            self.close_connection = True
            self.answer(413, None)
            return False
        return super().handle_expect_100()

    # -- answers --

    def answer(self, status, body, headers=None):
        data = b"" if body is None else body if isinstance(body, bytes) else json.dumps(body).encode()
        self.send_response(status)
        for k, v in (headers or {}).items():
            self.send_header(k, v)
        if data:
            self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(data)
        self.wfile.flush()

    def error(self, status, type_, reason, headers=None):
        self.answer(status, {"error": {"type": type_, "reason": reason,
                                       "root_cause": [{"type": type_, "reason": reason}]},
                             "status": status}, headers)

    def reset(self):
        self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.connection.close()
        self.close_connection = True

    # -- requests --

    def handle_one(self):
        stub = self.stub
        length = int(self.headers.get("Content-Length") or 0)
        if stub.max_bytes and length > stub.max_bytes:
            # As a real server: the answer comes before the body is read.
            self.close_connection = True
            self.answer(413, None)
            return
        body = self.rfile.read(length) if length else b""
        url = urllib.parse.urlsplit(self.path)
        query = dict(urllib.parse.parse_qsl(url.query, keep_blank_values=True))
        parts = [urllib.parse.unquote(p) for p in url.path.split("/") if p]
        if self.headers.get("Content-Encoding") == "gzip":
            body = gzip.decompress(body)
        with stub.lock:
            stub.requests.append((self.command, self.path, dict(self.headers), body))
        if stub.authorization and self.headers.get("Authorization") != stub.authorization:
            self.error(401, "security_exception", "missing authentication credentials")
            return
        if parts and parts[-1] == "_bulk":
            self.bulk(parts[0] if len(parts) > 1 else None, query, body, length)
            return
        with stub.lock:
            how = stub.take_fault(self.command, urllib.parse.unquote(url.path))
            if how == "cut":
                self.reset()
            elif how == "reset":
                self.answer = lambda *_: None  # it is done, and nobody hears of it
                self.other(parts, query, body)
                del self.answer
                self.reset()
            elif how == 429:
                self.error(429, "circuit_breaking_exception", "Data too large, as ordered")
            elif how:
                self.error(how, "process_cluster_event_timeout_exception", "as ordered")
            else:
                self.other(parts, query, body)

    do_GET = do_POST = do_PUT = do_DELETE = do_HEAD = handle_one

    # -- bulk --

    def bulk(self, path_index, query, body, length):
        stub = self.stub
        with stub.lock:
            stub.concurrent += 1
            stub.most_concurrent = max(stub.most_concurrent, stub.concurrent)
            fault = stub.next.pop(0) if stub.next else None
            delay = stub.delay
        try:
            if delay:
                time.sleep(delay)
            self.bulk_now(path_index, query, body, length, fault)
        finally:
            with stub.lock:
                stub.concurrent -= 1

    def bulk_now(self, path_index, query, body, length, fault):
        stub = self.stub
        kind = fault[0] if fault else None
        if kind == "do":  # something happens just before
            fault[1]()
        if kind == "status":
            status = fault[1]
            if status == 429:
                self.error(429, "es_rejected_execution_exception", "rejected execution of coordinating operation",
                           fault[2] if len(fault) > 2 else None)
            else:
                self.error(status, "stub_exception", "as ordered", fault[2] if len(fault) > 2 else None)
            return
        if kind == "cut":  # before anything is applied
            self.reset()
            return
        if not body.endswith(b"\n"):
            self.error(400, "illegal_argument_exception",
                       "The bulk request must be terminated by a newline [\\n]")
            return
        actions = self.parse(body)
        if stub.malformed and any(a[2] is not None and stub.malformed(a[2]) for a in actions):
            self.error(400, "illegal_argument_exception", "Malformed action/metadata line")
            return
        with stub.lock:
            items, log = [], []
            for verb, meta, source in actions:
                status, error = self.apply(verb, meta, source, path_index, query)
                item = {"status": status}
                if error:
                    item["error"] = error
                items.append({verb: item})
                log.append((verb, meta["_id"], status))
            stub.bulks.append((length, log))
        if kind == "reset":
            self.reset()
            return
        if kind == "garbage":
            self.answer(200, fault[1] if len(fault) > 1 else b"<html>a proxy</html>")
            return
        if kind == "short":  # an item too few
            items.pop()
        reply = {"errors": any("error" in list(i.values())[0] for i in items), "items": items}
        if "items" not in query.get("filter_path", "items") and kind != "short":
            del reply["items"]
        self.answer(200, reply)

    @staticmethod
    def parse(body):
        lines = body.split(b"\n")
        out, i = [], 0
        while i < len(lines) - 1:
            (verb, meta), = json.loads(lines[i]).items()
            source = None
            if verb != "delete":
                i += 1
                source = lines[i]
            out.append((verb, meta, source))
            i += 1
        return out

    def apply(self, verb, meta, source, path_index, query):
        stub = self.stub
        name = meta.get("_index", path_index)
        must = meta.get("require_alias", query.get("require_alias") == "true")
        if must and not stub.distribution and stub.version < "7.10" and "." in stub.version[:2]:
            return 400, {"type": "illegal_argument_exception", "reason": "unrecognized parameter: [require_alias]"}
        if must and name not in stub.aliases:
            return 404, {"type": "index_not_found_exception",
                         "reason": "no such index [%s] and [require_alias] request flag is [true] and "
                                   "[%s] is not an alias" % (name, name)}
        real = stub.aliases[name][-1] if name in stub.aliases else name
        if name in stub.blocked or real in stub.blocked:
            return 403, {"type": "cluster_block_exception",
                         "reason": "index [%s] blocked by: [FORBIDDEN/8/index write (api)];" % real}
        if stub.item_429 and stub.random.random() < stub.item_429:
            return 429, {"type": "es_rejected_execution_exception", "reason": "rejected execution"}
        index = stub.indexes.setdefault(real, Index())
        if source is not None:
            try:
                parsed = json.loads(source)
            except ValueError:
                return 400, {"type": "mapper_parsing_exception", "reason": "failed to parse",
                             "caused_by": {"type": "json_parse_exception", "reason": "no JSON"}}
            refused = stub.refuse and stub.refuse(parsed)
            if refused:
                return refused[0], {"type": refused[1], "reason": refused[2]}
        old = index.docs.get(meta["_id"])
        version = meta.get("version", (old.version + 1) if old else 1)
        if meta.get("version_type") == "external_gte" and old and old.version > version:
            return 409, {"type": "version_conflict_engine_exception",
                         "reason": "[%s]: version conflict, current version [%d] is higher than the one "
                                   "provided [%d]" % (meta["_id"], old.version, version)}
        index.docs[meta["_id"]] = Document(version, source)
        if verb == "delete":
            return (200 if old and old.source is not None else 404), None
        return (200 if old and old.source is not None else 201), None

    # -- all else --

    def other(self, parts, query, body):
        stub = self.stub
        if parts == ["_mget"]:
            self.mget(body)
        elif parts == ["_search", "scroll"]:
            self.scroll(json.loads(body))
        elif not parts:
            version = {"number": stub.version}
            if stub.distribution:
                version["distribution"] = stub.distribution
            self.answer(200, {"name": "stub", "cluster_name": "stub", "version": version})
        elif parts[0].startswith("_"):
            self.cluster(parts, query, body)
        elif len(parts) == 1:
            self.index(parts[0], body)
        elif parts[1] in ("_doc", "_create"):
            self.document(parts[0], parts[2], query, body)
        elif parts[1] == "_search":
            self.search(parts[0], json.loads(body))
        elif parts[1] in ("_refresh", "_flush") and self.found(parts[0]):
            self.answer(200, {"_shards": {"failed": 0}})
        elif parts[1] == "_count":
            self.answer(200, {"count": len(stub.documents(parts[0]))})
        elif parts[1] in ("_mapping", "_settings", "_alias", "_aliases", "_refresh", "_flush"):
            self.about(parts[0], parts[1], body)
        else:
            self.error(400, "illegal_argument_exception", "no handler found for uri [%s]" % self.path)

    def found(self, name):
        """Indexes that a name means; it may be a list, with patterns."""
        stub, out = self.stub, []
        for one in name.split(","):
            if one in stub.aliases:
                out += stub.aliases[one]
            elif "*" in one:
                pattern = re.compile(re.escape(one).replace(r"\*", ".*") + "$")
                out += [i for i in stub.indexes if pattern.match(i)]
                out += [i for a, to in stub.aliases.items() if pattern.match(a) for i in to]
            elif one in stub.indexes:
                out.append(one)
        return sorted(set(out))

    def describe(self, index):
        stub = self.stub
        x = stub.indexes[index]
        return {"aliases": {a: {"is_write_index": True} for a, to in stub.aliases.items() if index in to},
                "mappings": x.mappings, "settings": {"index": x.settings}}

    def index(self, name, body):
        stub = self.stub
        found = self.found(name)
        if self.command == "PUT":
            if name in stub.indexes or name in stub.aliases:
                self.error(400, "resource_already_exists_exception", "index [%s] already exists" % name)
                return
            asked = json.loads(body or b"{}")
            stub.indexes[name] = Index(asked)
            for alias in asked.get("aliases", {}):
                stub.aliases.setdefault(alias, []).append(name)
            self.answer(200, {"acknowledged": True, "index": name})
        elif not found and "*" not in name:
            self.error(404, "index_not_found_exception", "no such index [%s]" % name)
        elif self.command == "DELETE":
            for i in found:
                del stub.indexes[i]
                for a in list(stub.aliases):
                    stub.aliases[a] = [x for x in stub.aliases[a] if x != i]
                    if not stub.aliases[a]:
                        del stub.aliases[a]
            self.answer(200, {"acknowledged": True})
        else:
            self.answer(200, {i: self.describe(i) for i in found})

    def about(self, name, what, body):
        stub = self.stub
        found = self.found(name)
        if not found:
            self.error(404, "index_not_found_exception", "no such index [%s]" % name)
        elif self.command in ("PUT", "POST"):
            asked = json.loads(body or b"{}")
            for i in found:
                if what == "_mapping":
                    stub.indexes[i].mappings.setdefault("properties", {}).update(asked.get("properties", {}))
                elif what == "_settings":
                    stub.indexes[i].settings.update(asked.get("index", asked))
            self.answer(200, {"acknowledged": True})
        else:
            key = {"_mapping": "mappings", "_settings": "settings"}.get(what, "aliases")
            self.answer(200, {i: {key: self.describe(i)[key]} for i in found})

    def cluster(self, parts, query, body):
        stub = self.stub
        if parts[0] in ("_index_template", "_template") and len(parts) > 1:
            if self.command == "PUT":
                stub.templates[parts[1]] = json.loads(body)
                self.answer(200, {"acknowledged": True})
            elif parts[1] in stub.templates:
                self.answer(200, {"index_templates": [{"name": parts[1], "index_template": stub.templates[parts[1]]}]})
            elif parts[1] == "_simulate":
                self.answer(200, {"template": {}})
            else:
                self.error(404, "resource_not_found_exception", "index template matching [%s] not found" % parts[1])
        elif parts[0] == "_alias" and len(parts) > 1:
            found = {i: {"aliases": {parts[1]: {}}} for i in stub.aliases.get(parts[1], [])}
            if found:
                self.answer(200, found)
            else:
                self.answer(404, {"error": "alias [%s] missing" % parts[1], "status": 404})
        elif parts[:2] == ["_cluster", "health"]:
            self.answer(200, {"status": "green", "number_of_nodes": 1, "unassigned_shards": 0})
        elif parts[0] == "_cat":
            self.answer(200, [])
        else:
            self.error(400, "illegal_argument_exception", "no handler found for uri [%s]" % self.path)

    def document(self, index, doc, query, body):
        x = self.stub.indexes.get(index)
        if self.command in ("GET", "HEAD"):
            if x is None:
                self.error(404, "index_not_found_exception", "no such index [%s]" % index)
            elif doc in x.seq and x.seq[doc][1] is not None:
                seq, source = x.seq[doc]
                self.answer(200, b'{"_index":"%s","_id":%s,"found":true,"_seq_no":%d,"_primary_term":1,"_source":%s}'
                            % (index.encode(), json.dumps(doc).encode(), seq, source))
            else:
                self.answer(404, {"_index": index, "_id": doc, "found": False})
            return
        if x is None:
            x = self.stub.indexes[index] = Index()
        old = x.seq.get(doc)
        there = old is not None and old[1] is not None
        wrong = ("if_seq_no" in query and not (there and old[0] == int(query["if_seq_no"]))) or \
                (query.get("op_type") == "create" and there)
        if wrong:
            self.error(409, "version_conflict_engine_exception", "[%s]: version conflict" % doc)
            return
        x.seq[doc] = (x.next_seq, None if self.command == "DELETE" else body)
        x.next_seq += 1
        self.answer(200 if there else 404 if self.command == "DELETE" else 201,
                    {"_id": doc, "_seq_no": x.seq[doc][0], "_primary_term": 1, "result": "ok"})

    def mget(self, body):
        docs = []
        for asked in json.loads(body)["docs"]:
            name, doc = asked["_index"], asked["_id"]
            real = self.found(name)
            found = self.stub.indexes[real[-1]].docs.get(doc) if real else None
            if not real:
                docs.append(b'{"_id":%s,"error":{"type":"index_not_found_exception","reason":"no such index [%s]"}}'
                            % (json.dumps(doc).encode(), name.encode()))
            elif found is not None and found.source is not None:
                docs.append(b'{"_id":%s,"found":true,"_version":%d,"_source":%s}'
                            % (json.dumps(doc).encode(), found.version, found.source))
            else:
                docs.append(b'{"_id":%s,"found":false}' % json.dumps(doc).encode())
        self.answer(200, b'{"docs":[' + b",".join(docs) + b"]}")

    def search(self, name, asked):
        found = self.found(name)
        if not found:
            self.error(404, "index_not_found_exception", "no such index [%s]" % name)
            return
        hits = [{"_id": i, "_version": d.version} for x in found
                for i, d in sorted(self.stub.indexes[x].docs.items()) if d.source is not None]
        scroll = "scroll-%d" % len(self.stub.requests)
        self.stub.scrolls[scroll] = (asked["size"], hits)
        self.page(scroll)

    def scroll(self, asked):
        if self.command == "DELETE":
            self.stub.scrolls.pop(asked["scroll_id"], None)
            self.answer(200, {"succeeded": True})
        elif asked["scroll_id"] in self.stub.scrolls:
            self.page(asked["scroll_id"])
        else:
            self.error(404, "search_context_missing_exception", "No search context found")

    def page(self, scroll):
        size, hits = self.stub.scrolls[scroll]
        self.stub.scrolls[scroll] = (size, hits[size:])
        self.answer(200, {"_scroll_id": scroll, "_shards": {"total": 1, "failed": 0}, "hits": {"hits": hits[:size]}})
