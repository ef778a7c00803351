"""Change streams of a live server, and through a proxy that breaks what a server may break: scopes,
commands, invalidates, images, resume within a transaction, lost positions, events over 16 MB."""
import json
import os
import re
import time

import cdcdtest
import mgcase
import mgproxy
import pymongo
from mgproxy import CUT, error

TOO_LARGE = error(10334, "BSONObjectTooLarge", "BSONObj size: 16793600 is invalid. Size must be between 0 and 16793600")


class Case(mgcase.MgCase):
    def proxy(self, server=None):
        p = mgproxy.MgProxy((server or self.mongo).port)
        self.addCleanup(p.close)
        return p

    def collections(self, *names):
        db = self.db()
        for name in names + (mgcase.SYNC,):
            db.create_collection(name)
        return db

    def in_order(self, pipe, *collections):
        """Every position once, and the log's order within each topic."""
        for name in collections:
            positions = [r["headers"]["cdcd.pos"] for r in pipe.records(name)]
            self.assertEqual(positions, sorted(set(positions)), name)


class Scopes(Case):
    def test_deployment(self):
        one, two, other = self.collections("t"), self.collections("t"), self.collections("t")
        p = self.pipe([one.name, two.name], capture="change_stream").start()
        for db in (one, other, two):
            db.t.insert_one({"_id": db.name})
        p.sync()
        self.assertEqual([r["key"]["id"] for r in p.records()], ['"%s"' % one.name, '"%s"' % two.name])

    def test_database(self):
        db, other = self.collections("t", "u"), self.collections("t")
        p = self.pipe(db.name, capture="change_stream", source={
            "capture.scope": "database", "capture.target": db.name, "database.include.list": None}).start()
        other.t.insert_one({"_id": 1})
        db.t.insert_one({"_id": 2})
        db.u.insert_one({"_id": 3})
        p.sync()
        self.assertEqual([(r["value"]["source"]["collection"], r["key"]["id"]) for r in p.records()],
                         [("t", "2"), ("u", "3")])

    def test_collection(self):
        db = self.collections("t", "u")
        p = self.pipe(db.name, capture="change_stream", source={
            "capture.scope": "collection", "capture.target": db.name + "." + mgcase.SYNC,
            "database.include.list": None}).start()
        db.t.insert_one({"_id": 1})
        db[mgcase.SYNC].insert_one({"_id": "mine"})
        p.sync()
        self.assertEqual(p.records("t"), [])
        self.assertIn('"mine"', [r["key"]["id"] for r in p.records(mgcase.SYNC)])

    def test_names_with_dots_and_patterns(self):
        db = self.collections("a.b", "a.c", "ab")
        p = self.pipe(db.name, capture="change_stream", source={
            "collection.include.list": [db.name + r"\.a\.[b-b]"]}).start()
        for name in ("a.b", "a.c", "ab"):
            db[name].insert_one({"_id": name})
        p.sync()
        self.assertEqual([r["key"]["id"] for r in p.records()], ['"a.b"'])


class Commands(Case):
    def test_commands_are_schema_changes(self):
        db = self.collections()
        p = self.pipe(db.name, capture="change_stream").start()
        db.create_collection("t")
        db.t.create_index("v")
        db.t.insert_one({"_id": 1})
        db.t.drop_index("v_1")
        db.t.rename("u")
        db.u.insert_one({"_id": 2})
        db.u.drop()
        db.create_collection("u")
        db.u.insert_one({"_id": 3})
        p.sync()
        texts = [json.loads(r["value"]["ddl"]) for r in p.ddl()]
        self.assertEqual([next(iter(t)) for t in texts],
                         ["create", "createIndexes", "dropIndexes", "renameCollection", "drop", "create"])
        self.assertEqual(texts[3]["renameCollection"], db.name + ".t")
        self.assertEqual(texts[3]["to"], db.name + ".u")
        self.assertEqual(p.ops("t"), [("c", {"id": "1"}, {"_id": 1})])
        self.assertEqual(p.ops("u"), [("c", {"id": "2"}, {"_id": 2}), ("c", {"id": "3"}, {"_id": 3})])

    def test_the_database_goes(self):
        db = self.collections("t")
        p = self.pipe(db.name, capture="change_stream").start()
        db.t.insert_one({"_id": 1})
        p.sync()
        self.mongo.client.drop_database(db.name)
        db.t.insert_one({"_id": 2})
        p.sync()
        self.assertIn("dropDatabase", [next(iter(json.loads(r["value"]["ddl"]))) for r in p.ddl()])
        self.assertEqual([o[1]["id"] for o in p.ops("t")], ["1", "2"])
        p.stop()

    def test_invalidates(self):
        """A stream of one collection ends with it; cdcd goes on, also over a restart."""
        db = self.collections()
        t = db[mgcase.SYNC]
        p = self.pipe(db.name, capture="change_stream", source={
            "capture.scope": "collection", "capture.target": db.name + "." + mgcase.SYNC,
            "database.include.list": None}).start()
        t.insert_one({"_id": "a"})
        t.drop()
        p.wait_log("goes on from there")
        db.create_collection(mgcase.SYNC)
        t.insert_one({"_id": "b"})
        p.sync()
        p.stop()
        t.insert_one({"_id": "c"})
        t.drop()
        db.create_collection(mgcase.SYNC)
        t.insert_one({"_id": "d"})
        p.start()
        p.sync()
        mine = [r["key"]["id"] for r in p.records(mgcase.SYNC) if len(r["key"]["id"]) == 3]
        self.assertEqual(mine, ['"a"', '"b"', '"c"', '"d"'])


class Images(Case):
    def collection(self, images):
        db = self.collections("t")
        db.command({"collMod": "t", "changeStreamPreAndPostImages": {"enabled": images}})
        return db

    def test_lookup_is_marked(self):
        db = self.collections("t")
        p = self.pipe(db.name, capture="change_stream").start().sync()  # behind the overlap with the snapshot
        db.t.insert_one({"_id": 1, "v": 1})
        db.t.update_one({"_id": 1}, {"$set": {"v": 2}})
        db.t.replace_one({"_id": 1}, {"v": 3})
        p.sync()
        self.assertEqual([r["headers"].get("cdcd.after") for r in p.records("t")], [None, "lookup", None])
        self.assertEqual(p.changes("t")[1][3]["updatedFields"], {"v": 2})

    def test_no_lookup(self):
        db = self.collections("t")
        p = self.pipe(db.name, capture="change_stream", source={"capture.mode": "change_streams"}).start().sync()
        db.t.insert_one({"_id": 1, "v": 1})
        db.t.update_one({"_id": 1}, {"$set": {"v": 2}})
        p.sync()
        self.assertEqual([o[2] for o in p.ops("t")], [{"_id": 1, "v": 1}, None])
        self.assertEqual([r["headers"].get("cdcd.after") for r in p.records("t")], [None, None])

    def test_pre_images(self):
        db = self.collection(True)
        p = self.pipe(db.name, capture="change_stream", source={"capture.mode": "change_streams_with_pre_image"}).start().sync()
        db.t.insert_one({"_id": 1, "v": 1})
        db.t.update_one({"_id": 1}, {"$set": {"v": 2}})
        db.t.delete_one({"_id": 1})
        p.sync()
        before = [mgcase.parse(r["value"]["before"]) for r in p.records("t") if r["value"]]
        self.assertEqual(before, [None, {"_id": 1, "v": 1}, {"_id": 1, "v": 2}])

    def test_pre_images_that_are_not_there(self):
        db = self.collection(False)
        p = self.pipe(db.name, capture="change_stream", source={"capture.mode": "change_streams_with_pre_image"}).start().sync()
        db.t.insert_one({"_id": 1, "v": 1})
        db.t.delete_one({"_id": 1})
        p.sync()
        self.assertEqual([o[0] for o in p.ops("t")], ["c", "d", "-"])
        self.assertIsNone(p.records("t")[1]["value"]["before"])

    def test_post_images(self):
        db = self.collection(True)
        p = self.pipe(db.name, capture="change_stream", source={"capture.mode.full.update.type": "post_image"}).start().sync()
        db.t.insert_one({"_id": 1, "v": 1})
        db.t.update_one({"_id": 1}, {"$set": {"v": 2}})
        p.sync()
        self.assertEqual(p.ops("t")[1][2], {"_id": 1, "v": 2})
        self.assertIsNone(p.records("t")[1]["headers"].get("cdcd.after"))

    def test_post_images_that_are_not_there(self):
        """`after: null` without a word would be wrong: the stream stops and says what to do."""
        db = self.collection(False)
        p = self.pipe(db.name, capture="change_stream", source={"capture.mode.full.update.type": "post_image"}).start().sync()
        db.t.insert_one({"_id": 1, "v": 1})
        p.sync()
        db.t.update_one({"_id": 1}, {"$set": {"v": 2}})
        p.ends(2, "changeStreamPreAndPostImages", "lookup")
        self.assertEqual([o[0] for o in p.ops("t")], ["c"])
        p.source["capture.mode.full.update.type"] = "lookup"
        p.start()
        p.sync()
        self.assertEqual([o[0] for o in p.ops("t")], ["c", "u"])


class Resume(Case):
    def test_stop_and_start(self):
        db = self.collections("t")
        p = self.pipe(db.name, capture="change_stream")
        for i in range(5):
            db.t.insert_one({"_id": 10 * i})
            p.start()
            db.t.insert_one({"_id": 10 * i + 1})
            p.sync()
            p.stop() if i % 2 else p.cdcd.kill()
        self.assertEqual([o[1]["id"] for o in p.ops("t")], [str(10 * i + j) for i in range(5) for j in (0, 1)])
        self.in_order(p, "t")

    def transaction(self, db, n):
        with self.mongo.client.start_session() as session, session.start_transaction():
            for i in range(n):
                db.t.insert_one({"_id": i}, session=session)
                if i % 3 == 0:
                    db.u.insert_one({"_id": i}, session=session)

    def cut_in_transaction(self, name, meddle, metadata):
        """A transaction comes in replies of two events; what happens after the third of them is the
        caller's. Each of its events must come once, with its number."""
        db = self.collections("t", "u")
        proxy = self.proxy()
        p = self.pipe(db.name, capture="change_stream", source={"url": proxy.url(), "cursor.batch.size": 2},
                      format={"provide.transaction.metadata": metadata})
        p.start()
        p.sync()
        seen = [0]

        def count(command, forward):
            if "getMore" not in command:
                return None
            reply = forward()
            events = [e for e in reply.get("cursor", {}).get("nextBatch", []) if "txnNumber" in e]
            seen[0] += bool(events)
            if events and seen[0] == 3:
                return meddle()
            return None
        proxy.meddle = count
        self.transaction(db, 12)
        cdcdtest.wait_until("the third reply", lambda: seen[0] >= 3)
        if name == "kill" or name == "oplog":
            p.cdcd.kill()
            if name == "oplog":
                p.source.update({"capture": "oplog", "url": self.mongo.url()})
            p.start()
            time.sleep(0.5)
        p.sync()
        self.assertGreater(seen[0], 2 if name == "oplog" else 5)
        self.assertEqual([o[1]["id"] for o in p.ops("t")], [str(i) for i in range(12)])
        self.assertEqual([o[1]["id"] for o in p.ops("u")], [str(i) for i in range(0, 12, 3)])
        self.in_order(p, "t", "u")
        ordinals = sorted(r["headers"]["cdcd.pos"] for r in p.records("t") + p.records("u"))
        self.assertEqual(len(set(ordinals)), 16)
        if metadata:
            blocks = [r["value"]["transaction"] for r in p.records("t") + p.records("u")]
            self.assertEqual(sorted(b["total_order"] for b in blocks), list(range(1, 17)))
            self.assertEqual([r["value"]["transaction"]["data_collection_order"] for r in p.records("u")], [1, 2, 3, 4])
            ends = cdcdtest.read_folder(p.out)["srv.transaction"]
            self.assertEqual([r["value"]["status"] for r in ends], ["BEGIN", "END"])
            self.assertEqual(ends[1]["value"]["event_count"], 16)
        p.stop()

    def test_connection_cut_in_a_transaction(self):
        for metadata in (False, True):
            with self.subTest(metadata=metadata):
                self.cut_in_transaction("cut", lambda: CUT, metadata)

    def test_cursor_gone_in_a_transaction(self):
        for metadata in (False, True):
            with self.subTest(metadata=metadata):
                self.cut_in_transaction("cursor", lambda: error(43, "CursorNotFound", "cursor id 5 not found"), metadata)

    def test_kill_in_a_transaction(self):
        for metadata in (False, True):
            with self.subTest(metadata=metadata):
                self.cut_in_transaction("kill", lambda: CUT, metadata)

    def test_the_oplog_goes_on_in_a_transaction(self):
        for metadata in (False, True):
            with self.subTest(metadata=metadata):
                self.cut_in_transaction("oplog", lambda: CUT, metadata)

    def test_what_passes(self):
        """Errors of elections, shutdowns and killed cursors: the stream comes back by itself."""
        db = self.collections("t")
        proxy = self.proxy()
        p = self.pipe(db.name, capture="change_stream", source={"url": proxy.url()}).start()
        n = 0
        for answer in (error(189, "PrimarySteppedDown", "stepped down", ["ResumableChangeStreamError"]),
                       error(10107, "NotWritablePrimary", "not primary"), error(11600, "InterruptedAtShutdown", "shutdown"),
                       error(237, "CursorKilled", "killed"), error(136, "CappedPositionLost", "lost"),
                       error(91, "ShutdownInProgress", "shutdown"), CUT):
            once = [answer]
            proxy.meddle = lambda command, forward, once=once: once.pop() if once and "getMore" in command else None
            cdcdtest.wait_until("the error to be met", lambda once=once: not once)
            db.t.insert_one({"_id": n})
            n += 1
            p.sync(90)
        self.assertEqual([o[1]["id"] for o in p.ops("t")], [str(i) for i in range(n)])
        self.in_order(p, "t")
        p.stop()

    def test_server_restarts(self):
        server = self.own_server("sync-on-commit=yes")
        db = server.client["r1"]
        db.create_collection("t")
        p = self.pipe("r1", server=server, capture="change_stream").start()
        db.t.insert_one({"_id": 1})
        p.sync()
        server.restart()
        server.client.admin.command("ping")
        db.t.insert_one({"_id": 2})
        p.sync(120)
        self.assertEqual([o[1]["id"] for o in p.ops("t")], ["1", "2"])
        p.stop()

    def test_stepdown(self):
        server = self.own_server("sync-on-commit=yes")
        db = server.client["s1"]
        db.create_collection("t")
        p = self.pipe("s1", server=server, capture="change_stream").start()
        db.t.insert_one({"_id": 1})
        p.sync()
        try:
            server.client.admin.command({"replSetStepDown": 2, "secondaryCatchUpPeriodSecs": 0, "force": True})
        except pymongo.errors.PyMongoError:
            pass  # the connection may be closed instead of an answer
        cdcdtest.wait_until("a primary", lambda: server.client.admin.command("hello").get("isWritablePrimary"), 60)
        db.t.insert_one({"_id": 2})
        p.sync(120)
        self.assertEqual([o[1]["id"] for o in p.ops("t")], ["1", "2"])
        p.stop()

    def test_the_other_way_of_capture(self):
        """A position of one way is a position of the other, also behind a transaction."""
        db = self.collections("t", "u")
        p = self.pipe(db.name, capture="change_stream", source={"cursor.batch.size": 3})
        for i, capture in enumerate(("change_stream", "oplog", "change_stream", "oplog", "oplog", "change_stream")):
            p.source["capture"] = capture
            p.start()
            if capture == "oplog":
                time.sleep(0.5)  # its cursor misses what is written while it is opened on this server
            db.t.insert_one({"_id": 100 * i})
            p.sync()
            p.stop()
            with self.mongo.client.start_session() as session, session.start_transaction():
                db.t.insert_one({"_id": 100 * i + 1}, session=session)
                db.u.insert_one({"_id": 100 * i + 2}, session=session)
                db.t.insert_one({"_id": 100 * i + 3}, session=session)
        p.source["capture"] = "change_stream"
        p.start()
        p.sync()
        self.assertEqual([o[1]["id"] for o in p.ops("t")], [str(100 * i + j) for i in range(6) for j in (0, 1, 3)])
        self.assertEqual([o[1]["id"] for o in p.ops("u")], [str(100 * i + 2) for i in range(6)])
        self.in_order(p, "t", "u")
        p.stop()

    def test_a_given_start(self):
        """capture.start.op.time: from that time on, itself included."""
        db = self.collections("t")
        for i in range(4):
            db.t.insert_one({"_id": i})
        at = self.mongo.oplog.find_one({"op": "i", "ns": db.name + ".t", "o._id": 2})["ts"]
        p = self.pipe(db.name, capture="change_stream", snapshot={"mode": "no_data"},
                      source={"capture.start.op.time": at.time << 32 | at.inc}).start()
        db.t.insert_one({"_id": 4})
        p.sync()
        self.assertEqual([o[1]["id"] for o in p.ops("t")], ["2", "3", "4"])
        p.stop()

    def test_quiet_streams_move_on(self):
        """No captured change comes, and the stored position still follows the log."""
        db, other = self.collections("t"), self.collections("t")
        p = self.pipe(db.name, capture="change_stream").start()
        p.sync()

        def state():
            with open(os.path.join(p.out, ".cdcd-%s.state" % p.cdcd.config["name"]), encoding="utf-8") as f:
                return tuple(int(x) for x in re.findall(r'"ts": ?\[(\d+), ?(\d+)\]', f.read())[-1])
        other.t.insert_one({"_id": 1})
        newest = self.mongo.oplog.find_one(sort=[("$natural", -1)])["ts"]
        cdcdtest.wait_until("a newer position", lambda: state() >= (newest.time, newest.inc), 60)
        p.stop()


class Lost(Case):
    def test_history_is_gone(self):
        server = self.own_server("oplog-max-entries=60")
        db = server.client["lost"]
        db.create_collection("t")
        p = self.pipe("lost", server=server, capture="change_stream").start()
        db.t.insert_one({"_id": 1})
        p.sync()
        p.stop()
        first, n = server.oplog.find_one()["ts"], 0

        def rolled_over():
            """The server cuts its oplog now and then only."""
            nonlocal n
            db.t.insert_many([{"_id": 100 + n + i} for i in range(100)])
            n += 100
            return server.oplog.find_one()["ts"] > first and n > 500
        cdcdtest.wait_until("the oplog to be cut", rolled_over)
        db.t.insert_many([{"_id": 100 + n + i} for i in range(2000)])
        n += 2000
        before = p.records("t")
        p.fails(3, r"no longer in the oplog", "286", "new snapshot")
        self.assertEqual(p.records("t"), before)
        p.fails(3, "286")  # and nothing was forgotten meanwhile
        p.cdcd.config["snapshot"] = {"mode": "when_needed"}
        p.start()
        p.sync()
        self.assertEqual(len(p.store()["t"]), n + 1)
        p.stop()

    def error_of(self, code, name, message, when="aggregate"):
        db = self.collections("t")
        proxy = self.proxy()
        p = self.pipe(db.name, capture="change_stream", source={"url": proxy.url()}).start()
        p.sync()
        if when == "aggregate":
            p.stop()

        def meddle(command, _):
            spec = (command.get("pipeline") or [{}])[0].get("$changeStream", {})
            wanted = when in command and (when == "getMore" or "startAfter" in spec)
            return error(code, name, message, ["NonResumableChangeStreamError"]) if wanted else None
        proxy.meddle = meddle
        if when == "aggregate":
            p.start(wait=False)
        return p

    def test_another_deployment(self):
        p = self.error_of(280, "ChangeStreamFatalError", "cannot resume stream; the resume token was not found.")
        p.ends(3, "resume token was not found", "new snapshot")

    def test_a_token_of_something_else(self):
        p = self.error_of(260, "InvalidResumeToken", "Bad resume token")
        p.ends(3, "Bad resume token", "260", "new snapshot")

    def test_lost_while_it_runs(self):
        p = self.error_of(286, "ChangeStreamHistoryLost", "the resume point may no longer be in the oplog.", "getMore")
        p.ends(3, "no longer in the oplog", "286")


class Large(Case):
    """Events over 16 MB. The test's server has no such limit: the proxy refuses replies that hold a
    document marked as large, as a real server does, and splits them when it is asked to."""

    def events(self, reply):
        cursor = reply.get("cursor", {})
        return cursor.get("nextBatch", cursor.get("firstBatch", []))

    def refuse(self, command, forward):
        if "getMore" not in command and "$changeStream" not in (command.get("pipeline") or [{}])[0]:
            return None
        reply = forward()
        large = [e for e in self.events(reply) if (e.get("fullDocument") or {}).get("large")]
        if large and "pipeline" in command and any("$project" in s for s in command["pipeline"]):
            for e in self.events(reply):
                e.pop("fullDocument", None)
            return reply
        return TOO_LARGE if large else None

    def write(self, db):
        for i in range(6):
            db.t.insert_one({"_id": i, "large": i == 3})
        db.t.update_one({"_id": 3}, {"$set": {"v": 1}})
        db.t.insert_one({"_id": 6})

    def start(self, mode, meddle):
        db = self.collections("t")
        proxy = self.proxy()
        p = self.pipe(db.name, capture="change_stream", source={
            "url": proxy.url(), "cursor.oversize.handling.mode": mode}).start()
        proxy.meddle = meddle
        p.sync()  # what the request that was under way brings is not meddled with
        p.db_handle = db
        return db, p

    def test_fail(self):
        db, p = self.start("fail", self.refuse)
        self.write(db)
        p.ends(1, r"insert of %s\.t at \d+:\d+ of .*_id.*3.* over the server's 16 MB" % db.name, "split")
        self.assertEqual([o[1]["id"] for o in p.ops("t")], ["0", "1", "2"])
        # Nothing was passed over: with another setting it goes on right there.
        p.source["cursor.oversize.handling.mode"] = "skip"
        p.start()
        p.sync()
        self.assertEqual([o[1]["id"] for o in p.ops("t")], ["0", "1", "2", "4", "5", "6"])

    def test_skip(self):
        db, p = self.start("skip", self.refuse)
        self.write(db)
        p.sync()
        self.assertEqual([o[1]["id"] for o in p.ops("t")], ["0", "1", "2", "4", "5", "6"])
        log = p.log_since_start()
        self.assertRegex(log, r"insert of %s\.t at .*3.*LEFT OUT.*1 so far" % db.name)
        self.assertRegex(log, r"update of %s\.t at .*3.*LEFT OUT.*2 so far" % db.name)
        self.in_order(p, "t")
        p.stop()

    def split(self, command, forward):
        """Each event in three fragments, as a real server cuts them: each field in one of them."""
        if "pipeline" in command and "$changeStream" in command["pipeline"][0]:
            self.assertEqual(command["pipeline"][-1], {"$changeStreamSplitLargeEvent": {}})
        if "getMore" not in command:
            return None
        reply = forward()
        cursor = reply.get("cursor")
        if not cursor:
            return None
        out = []
        for e in cursor.get("nextBatch", []):
            e.pop("splitEvent", None)
            names = [n for n in e if n != "_id"]
            for i in range(3):
                part = {"_id": e["_id"], "splitEvent": {"fragment": i + 1, "of": 3}}
                part.update({n: e[n] for n in names[i::3]})
                out.append(part)
        self.queue += out
        cursor["nextBatch"], self.queue = self.queue[:2], self.queue[2:]
        if self.queue:
            cursor.pop("postBatchResumeToken", None)
        return reply

    def test_split(self):
        self.queue = []
        db, p = self.start("split", self.split)
        self.write(db)
        db.t.delete_one({"_id": 5})
        # The proxy gives two fragments a reply: noops of the server bring the rest out.
        p.sync(120)
        self.assertEqual([(o[0], o[1]["id"]) for o in p.ops("t")],
                         [("c", str(i)) for i in range(6)] + [("u", "3"), ("c", "6"), ("d", "5"), ("-", "5")])
        self.assertEqual(p.changes("t")[6][3]["updatedFields"], {"v": 1})
        p.stop()

    def test_documents_at_the_limit(self):
        """A document of 16 MB: with its image of before, the event is over it; split brings both."""
        db = self.collections("t")
        db.command({"collMod": "t", "changeStreamPreAndPostImages": {"enabled": True}})
        p = self.pipe(db.name, capture="change_stream", source={
            "cursor.oversize.handling.mode": "split", "capture.mode": "change_streams_update_full_with_pre_image"},
            max__event__bytes="64MiB").start()
        p.sync()
        db.t.insert_one({"_id": 1, "pad": "x" * (15 << 20)})
        db.t.update_one({"_id": 1}, {"$set": {"v": 1}})
        p.sync(120)
        have = p.records("t")
        self.assertEqual([r["value"]["op"] for r in have], ["c", "u"])
        self.assertEqual(len(mgcase.parse(have[1]["value"]["before"])["pad"]), 15 << 20)
        self.assertEqual(mgcase.parse(have[1]["value"]["after"])["v"], 1)
        p.stop()


if __name__ == "__main__":
    cdcdtest.main()
