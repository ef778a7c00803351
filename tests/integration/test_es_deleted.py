"""Indexes that are deleted under the pipeline, or in its absence: a new one that has a part only never
passes for the one that was there. With the stand-in; test_es_servers.py has real ones."""
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../support"))
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import cdcdtest  # noqa: E402
import test_es_faults as faults  # noqa: E402
from esstub import Index  # noqa: E402


class Deleted(faults.StubCase):
    """An index that is deleted is not made anew by the server without a word: a part would be in it."""

    def delete(self):
        with self.stub.lock:
            for real in self.stub.aliases.pop(self.index, [self.index]):
                del self.stub.indexes[real]

    def refused(self, c, pattern):
        """Now, and at the next start."""
        for _ in range(2):
            self.assertEqual(c.wait(60), 3)
            self.assertRegex(c.logs(), pattern)
            self.assertIn("document %s.index.%s of the index cdcd-state" % (self.db, self.index), c.logs())
            c.start()
        self.assertEqual(c.wait(60), 3)

    def plain(self):
        self.stub.indexes[self.index] = Index()
        c = self.started(self.stub.url)
        self.sql("INSERT INTO t VALUES (1, 'a', 1)")
        self.wait_equal(self.documents)
        self.assertIn("is an index, no alias", c.logs())
        return c

    def test_one_without_an_alias(self):
        c = self.plain()
        self.delete()
        self.sql("INSERT INTO t VALUES (2, 'b', 2)")
        self.refused(c, "the index %s was deleted, and another one has its name now" % self.index)
        # The position has not passed what went into the other one.
        with self.stub.lock:
            self.stub.indexes[self.index] = Index()
            del self.stub.indexes["cdcd-state"].seq["%s.index.%s" % (self.db, self.index)]
        c.start()
        self.until("row 2", lambda: set(self.documents()) == {"2"})
        self.assertEqual(c.stop(), 0)

    def test_while_a_request_is_under_way(self):
        c = self.plain()
        self.stub.next += [None, ("do", self.delete)]
        self.stub.fault("GET", "/_settings", 503, 2)
        for i in range(2, 5):
            self.sql("INSERT INTO t VALUES (%d, 'b', 2)" % i)
        self.refused(c, "another one has its name now")

    def test_with_a_truncate(self):
        self.stub.indexes[self.index] = Index()
        c = self.pipeline(self.stub.url)
        c.config["format"] = {"debezium": {"skipped.operations": "none"}}
        c.start()
        c.wait_log("streaming from", 60)
        self.sql("INSERT INTO t VALUES (1, 'a', 1)")
        self.wait_equal(self.documents)
        self.delete()
        self.sql("TRUNCATE t")
        self.assertEqual(c.wait(60), 3)
        self.assertIn("is not there any more", c.logs())
        self.assertNotIn(self.index, self.stub.indexes)

    def test_under_a_record_without_its_columns(self):
        """No policy is asked about a document that was in the other index."""
        self.stub.indexes[self.index] = Index()
        self.sql("ALTER TABLE t ADD big text; INSERT INTO t SELECT 1, 'a', 1, %s" % faults.OtherRequests.BIG % "x")
        c = self.started(self.stub.url, errors__policy="skip")
        self.wait_equal(self.documents)
        with self.stub.lock:
            self.stub.indexes[self.index] = Index()
        self.sql("UPDATE t SET n = 2")
        self.refused(c, "another one has its name now")
        self.assertNotIn("incomplete_document", c.logs())

    def test_while_it_is_stopped(self):
        c = self.plain()
        self.assertEqual(c.stop(), 0)
        self.delete()
        self.sql("INSERT INTO t VALUES (2, 'b', 2)")
        c.start()
        self.assertEqual(c.wait(60), 3)
        self.assertIn("was deleted", c.logs())
        self.stub.indexes[self.index] = Index()  # somebody else writes
        c.start()
        self.refused(c, "another one has its name now")

    def test_an_alias_of_which_an_index_was_made(self):
        c = self.started(self.stub.url)
        self.sql("INSERT INTO t VALUES (1, 'a', 1)")
        self.wait_equal(self.documents)
        self.delete()
        self.stub.indexes[self.index] = Index()
        self.sql("INSERT INTO t VALUES (2, 'b', 2)")
        self.assertEqual(c.wait(60), 3)
        c.start()
        self.refused(c, "an alias had it before")
        if self.stub.distribution:
            self.assertEqual(self.documents(), {})

    def test_an_alias_in_front_of_it_is_no_loss(self):
        c = self.plain()
        with self.stub.lock:
            self.stub.indexes["other"] = self.stub.indexes.pop(self.index)
            self.stub.aliases[self.index] = ["other"]
        self.sql("INSERT INTO t VALUES (2, 'b', 2)")
        self.wait_equal(self.documents)
        self.assertEqual(c.stop(), 0)
        c.start()
        self.sql("INSERT INTO t VALUES (3, 'c', 3)")
        self.wait_equal(self.documents)
        self.assertEqual(c.stop(), 0)


class DeletedBefore710(Deleted):
    """Servers to which nobody can say that an alias is meant."""
    stub_args = {"version": "7.9.3", "distribution": None}


if __name__ == "__main__":
    cdcdtest.main()
