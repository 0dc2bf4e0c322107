"""Coordinators with one PostgreSQL database answer from each other's results."""

import pathlib
import sqlite3
import sys
import time
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import fleet  # noqa: E402
from fleet import Fleet, small_jobs  # noqa: E402
from mirror_test import metric  # noqa: E402
from postgres_server import PostgresServer, programs  # noqa: E402


def ask(running, jobs, **options):
    """The outcomes in the order of the jobs."""
    _, outcomes = running.submit(jobs, **options)
    by_tag = {outcome["tag"]: outcome for outcome in outcomes}
    return [by_tag[job["tag"]] for job in jobs]


def is_good(outcome):
    return outcome["status"] == "ok" and outcome["grade"] < "D"


def sharing(server, **options):
    return Fleet(coordinator_arguments=["--results", server.url], **options)


@unittest.skipIf(programs() is None, "PostgreSQL is not installed (Debian: postgresql)")
class SharedResultsTest(unittest.TestCase):
    def await_rows(self, server, count):
        fleet.wait_until(lambda: server.rows("SELECT 1 FROM pg_tables WHERE tablename = 'outcomes'") and
                         server.value("SELECT count(*) FROM loopfleet.outcomes WHERE source = 'measured'") == str(count),
                         f"{count} measurements in PostgreSQL")

    def await_answer(self, running, jobs):
        """Asks for one job after the other until one comes from elsewhere; how many it took."""
        for used, job in enumerate(jobs, start=1):
            (outcome,) = ask(running, [job])
            if outcome["source"] == "stored":
                return used
            time.sleep(1)  # it looks for other coordinators every few seconds
        self.fail("no job was answered")

    def test_what_one_measured_answers_the_other(self):
        with PostgresServer() as server, sharing(server) as one, sharing(server) as other:
            jobs = small_jobs(40)
            measured = ask(one, jobs, again_if_unstable=False)
            # Copies of a figure, and coarse figures, are not shared.
            own = [i for i, outcome in enumerate(measured) if outcome["source"] == "measured" and is_good(outcome)]
            self.await_rows(server, sum(outcome["source"] == "measured" for outcome in measured))
            used = own[self.await_answer(other, [jobs[i] for i in own]) - 1] + 1

            left = [i for i in own if i >= used]
            doubted, later = left[0], left[1]
            asked = [left[2], *left[4:]]
            answered = ask(other, [jobs[i] for i in asked])
            for mine, theirs in zip(answered, (measured[i] for i in asked)):
                self.assertEqual(mine["source"], "stored")
                self.assertEqual(mine["worker"], theirs["worker"])
                for name in ("tree_key", "elapsed_ns", "elapsed_low_ns", "samples_ns", "sample_flags", "grade",
                             "gflop_per_second", "hardware", "compiler", "clock_mhz"):
                    self.assertEqual(mine.get(name), theirs.get(name), name)
            self.assertGreaterEqual(metric(other, 'loopfleet_store_lookups_total{result="shared"}'), len(asked))

            # Of two equal jobs in one message, the one that wants it newer is measured.
            old, new = ask(other, [jobs[left[2]], {**jobs[left[2]], "tag": 1000, "max_age_s": 0.001}])
            self.assertEqual((old["source"], new["source"]), ("stored", "measured"))

            # A row that makes no sense answers nothing, and the coordinator lives.
            server.rows("UPDATE loopfleet.outcomes SET elapsed_ns = 'Infinity', elapsed_high_ns = 'Infinity', spread = 'NaN' "
                        f"WHERE index = {later} AND source = 'measured'")
            (sound,) = ask(other, [jobs[later]])
            self.assertEqual(sound["source"], "measured")
            later = left[3]

            # A figure in doubt answers neither. The trigger tells the mirror of it; without its checksum, a
            # doubt has another reason.
            with sqlite3.connect(one.database, timeout=10) as database:
                database.execute("INSERT INTO suspect_results SELECT result, 1, 'a test', 0 FROM outcomes WHERE idx = ?",
                                 [doubted])
            fleet.wait_until(lambda: server.value("SELECT count(*) FROM loopfleet.v_results WHERE suspect IS NOT NULL") == "1",
                             "the doubt")
            (again,) = ask(other, [jobs[doubted]])
            self.assertEqual(again["source"], "measured")

            # Without PostgreSQL everything is measured, and no job waits for it.
            server.kill()
            began = time.monotonic()
            (alone,) = ask(other, [jobs[later]])
            self.assertEqual(alone["source"], "measured")
            self.assertLess(time.monotonic() - began, 30)

            # What was answered survives a restart.
            other.coordinator.kill()
            other.start_coordinator("--results", server.url)
            other.await_workers(1)
            with sqlite3.connect(f"file:{other.database}?mode=ro", uri=True) as database:
                foreign, = database.execute("SELECT count(*) FROM foreign_results").fetchone()
            self.assertGreaterEqual(foreign, len(asked))

    def test_a_lone_coordinator_asks_nobody(self):
        with PostgresServer() as server, sharing(server) as lone:
            jobs = small_jobs(8)
            first = ask(lone, jobs, again_if_unstable=False)
            self.await_rows(server, sum(outcome["source"] == "measured" for outcome in first))
            again = ask(lone, [job for job, outcome in zip(jobs, first) if is_good(outcome)])
            self.assertEqual({outcome["source"] for outcome in again}, {"stored"})
            self.assertEqual(metric(lone, 'loopfleet_store_lookups_total{result="shared"}'), 0)


if __name__ == "__main__":
    fleet.main()
