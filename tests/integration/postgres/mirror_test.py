"""loopfleet-mirror: each outcome is in PostgreSQL exactly once, whatever is killed meanwhile."""

import json
import os
import pathlib
import random
import shutil
import signal
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import time
import unittest
import urllib.request

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import fleet  # noqa: E402
from fleet import Fleet, clean_environment, program, small_jobs  # noqa: E402
from postgres_server import PostgresServer, programs  # noqa: E402

KILLS = 200
# PostgreSQL is away for an hour of the mirror's clock, which faketime makes run so much faster. By the real clock:
# bench/run.sh outage.
OUTAGE_S = 3600
OUTAGE_SPEED = 120


def mirror_command(database, *arguments):
    return [program("loopfleet-mirror"), "--db", str(database), *arguments]


def mirror_once(running, server):
    done = fleet.run(mirror_command(running.database, "--once"), env=clean_environment(LOOPFLEET_RESULTS=server.url))
    if done.returncode != 0:
        raise AssertionError(done.stderr)
    return json.loads(done.stdout.splitlines()[-1])


def places_in_sqlite(database):
    with sqlite3.connect(f"file:{database}?mode=ro", uri=True) as connection:
        return sorted(connection.execute("SELECT batch, sequence, idx FROM outcomes"))


def places_in_postgres(server):
    return sorted(tuple(map(int, row)) for row in server.rows("SELECT batch, sequence, index FROM loopfleet.outcomes"))


def metric(running, name):
    with urllib.request.urlopen(f"http://{running.coordinator.ready['http']}/metrics", timeout=10) as answer:
        for line in answer.read().decode().splitlines():
            if line.startswith(f"{name} "):
                return float(line.split()[1])
    raise AssertionError(f"no metric {name}")


def resident_kb(pid):
    return int(next(line.split()[1] for line in pathlib.Path(f"/proc/{pid}/status").read_text().splitlines()
                    if line.startswith("VmRSS:")))


def failing_jobs(count):
    """Jobs that have their outcome at once: the cursor is at the top already."""
    return [{"benchmark": "benchmark://mm-v0/mm8_8_8", "actions": ["up"], "tag": i} for i in range(count)]


@unittest.skipIf(programs() is None, "PostgreSQL is not installed (Debian: postgresql)")
class MirrorTest(unittest.TestCase):
    def test_rows_say_what_the_database_says(self):
        with PostgresServer() as server, Fleet() as running:
            jobs = [*small_jobs(6), *failing_jobs(1), {"benchmark": "probe://peaks-v0"},
                    {"benchmark": "benchmark://mm-v0/mm4_4_4", "actions": [], "tag": "quote \" back \\ slash, \t tab, é, {}"},
                    {"benchmark": "benchmark://mm-v0/mm8_8_8", "actions": ["down", "split_4", "unroll"]}]
            running.submit(jobs, again_if_unstable=False)
            running.submit(jobs[:3], again_if_unstable=False)  # answered from the store
            status = mirror_once(running, server)
            self.assertEqual((status["mirrored"], status["waiting"], status["trouble"]), (13, 0, ""))
            names = ["batch", "index", "benchmark", "actions", "status", "elapsed_ns", "elapsed_high_ns", "spread",
                     "grade", "failure", "message", "source", "attempts", "hardware_class", "isa", "llvm", "threads",
                     "cache", "tag", "tree_key", "action_count", "flop_count"]
            columns = ", ".join(f'"{name}"' for name in names)
            with sqlite3.connect(f"file:{running.database}?mode=ro", uri=True) as connection:
                here = [["" if value is None else str(value) for value in row] for row in
                        connection.execute(f'SELECT {columns} FROM v_results ORDER BY batch, "index"')]
            there = server.rows(f"SELECT {columns} FROM loopfleet.v_results ORDER BY batch, index")
            self.assertEqual(len(here), 13)
            for mine, other in zip(here, there):
                # SQLite keeps these of a job that is not timed in a table of its own.
                elsewhere = ("hardware_class", "isa", "llvm", "threads", "cache", "tree_key", "flop_count")
                for name, a, b in zip(names, mine, other):
                    if mine[2].startswith("probe://") and name in elsewhere:
                        continue
                    same = a == b or (name in ("elapsed_ns", "elapsed_high_ns", "spread") and float(a) == float(b))
                    self.assertTrue(same, f"{name}: {a!r} in SQLite, {b!r} in PostgreSQL")
            self.assertEqual(server.value("SELECT count(*) FROM loopfleet.v_results WHERE observed ? 'flop_per_second'"),
                             "1")
            self.assertEqual(server.value("SELECT count(*) FROM loopfleet.outcomes WHERE samples_ns IS NOT NULL AND "
                                          "cardinality(samples_ns) = length(sample_flags)"),
                             server.value("SELECT count(*) FROM loopfleet.outcomes WHERE source = 'measured' AND "
                                          "elapsed_ns IS NOT NULL"))
            # One row for each benchmark: the fastest figure.
            self.assertEqual(server.rows("SELECT benchmark, elapsed_ns FROM loopfleet.v_best ORDER BY benchmark"),
                             server.rows("SELECT DISTINCT ON (benchmark) benchmark, elapsed_ns FROM loopfleet.v_results "
                                         "WHERE source = 'measured' AND grade < 'D' ORDER BY benchmark, elapsed_ns"))

            self.assertEqual(mirror_once(running, server)["mirrored"], 0)  # there is nothing new

    def test_two_coordinators_share_a_database(self):
        with PostgresServer() as server, Fleet(workers=0) as one, Fleet(workers=0) as other:
            one.submit(failing_jobs(3))
            other.submit(failing_jobs(5))
            mirror_once(one, server)
            mirror_once(other, server)
            self.assertEqual(server.rows("SELECT count(*) FROM loopfleet.v_results GROUP BY coordinator ORDER BY 1"),
                             [["3"], ["5"]])

    def test_a_restored_snapshot_is_copied_once(self):
        for after in ("nothing", "outcomes that were lost", "outcomes that were copied"):
            with self.subTest(after=after), PostgresServer() as server, Fleet(workers=0) as running:
                def restore(snapshot=running.dir / "snapshot.db", running=running):
                    if not snapshot.exists():
                        taken = running.command("db", "snapshot", str(running.database), str(snapshot))
                        self.assertEqual(taken.returncode, 0, taken.stderr)
                    if after != "nothing":
                        running.submit(failing_jobs(3))
                        running.start_worker()  # finishes the job that waited, for the second time elsewhere
                        fleet.wait_until(lambda: waiting in [(batch, index) for batch, _, index in
                                                             places_in_sqlite(running.database)], "the job that waited")
                        running.workers.pop().stop()
                    if after == "outcomes that were copied":
                        mirror_once(running, server)
                    running.coordinator.kill()
                    for suffix in ("", "-wal", "-shm"):
                        pathlib.Path(f"{running.database}{suffix}").unlink(missing_ok=True)
                    shutil.copyfile(snapshot, running.database)
                    running.start_coordinator()

                def identities(of):
                    if of is server:
                        return [tuple(map(int, row)) for row in server.rows(
                            "SELECT batch, sequence, index, (1000000 * extract(epoch FROM finished_at))::bigint "
                            "FROM loopfleet.outcomes")]
                    with sqlite3.connect(f"file:{of}?mode=ro", uri=True) as connection:
                        return list(connection.execute("SELECT batch, sequence, idx, finished_at / 1000 FROM outcomes"))

                running.submit(failing_jobs(5))
                # Of this batch something follows.
                sent = running.json("submit", "-", stdin=fleet.lines([*failing_jobs(2), *small_jobs(1)]))
                waiting = (int(sent["batch"]), 2)
                fleet.wait_until(lambda: len(places_in_sqlite(running.database)) == 7, "those that fail at once")
                mirror_once(running, server)
                running.submit(failing_jobs(4))  # not copied before the snapshot is taken
                kept = set(identities(running.database))
                for _ in range(2):
                    before = set(identities(server))
                    restore()
                    running.submit(failing_jobs(2))
                    mirror_once(running, server)
                    here, there = identities(running.database), identities(server)
                    self.assertEqual(len(here), len(kept) + 2)
                    self.assertTrue(kept < set(here) <= set(there))
                    self.assertEqual(len(there), len(set(there)))
                    # Nothing but what is lost to SQLite, and known to an earlier incarnation.
                    lost = {"nothing": 0, "outcomes that were lost": 0, "outcomes that were copied": 4}[after]
                    self.assertEqual(len(set(there) - before - set(here)), lost)
                self.assertEqual(mirror_once(running, server)["mirrored"], 0)

    def test_the_coordinator_runs_it_and_tells_how_far_it_is(self):
        with PostgresServer() as server, Fleet(workers=0, coordinator_arguments=["--results", server.url]) as running:
            def rows():
                return server.value("SELECT count(*) FROM loopfleet.outcomes")

            def events():
                return [event["kind"] for event in map(json.loads, running.command(
                    "events", "--json").stdout.splitlines())]

            running.submit(failing_jobs(3))
            fleet.wait_until(lambda: server.rows("SELECT 1 FROM pg_namespace WHERE nspname = 'loopfleet'") and
                             rows() == "3", "the first outcomes")
            server.kill()
            running.submit(failing_jobs(4))  # nothing waits for PostgreSQL
            fleet.wait_until(lambda: "mirror.trouble" in events(), "trouble to be told")
            fleet.wait_until(lambda: metric(running, "loopfleet_mirror_waiting_outcomes") == 4, "the metric")
            behind = metric(running, "loopfleet_mirror_behind_seconds")
            fleet.wait_until(lambda: metric(running, "loopfleet_mirror_behind_seconds") > behind + 3,
                             "an outage to count from its beginning")
            server.start()
            fleet.wait_until(lambda: rows() == "7", "the others")
            fleet.wait_until(lambda: events()[-1] == "mirror.works", "the end of the trouble")
            fleet.wait_until(lambda: metric(running, "loopfleet_mirror_behind_seconds") == 0, "the metric")

            (mirror,) = [pid for pid in fleet.processes_mentioning("loopfleet-mirror")
                         if str(running.database) in pathlib.Path(f"/proc/{pid}/cmdline").read_text()]
            self.assertNotIn("postgresql://", pathlib.Path(f"/proc/{mirror}/cmdline").read_text())
            os.kill(mirror, signal.SIGKILL)
            running.submit(failing_jobs(5))
            fleet.wait_until(lambda: rows() == "12", "another mirror")
        self.assertFalse(fleet.alive(mirror))

    def test_a_lock_on_the_table_is_told_and_passes(self):
        with PostgresServer() as server, Fleet(workers=0, coordinator_arguments=["--results", server.url]) as running:
            def rows():
                return server.value("SELECT count(*) FROM loopfleet.outcomes")

            def troubles():
                return [event["text"] for event in map(json.loads, running.command("events", "--json").stdout.splitlines())
                        if event["kind"] == "mirror.trouble"]

            running.submit(failing_jobs(3))
            fleet.wait_until(lambda: server.rows("SELECT 1 FROM pg_namespace WHERE nspname = 'loopfleet'") and
                             rows() == "3", "the first outcomes")
            locking = server.popen("BEGIN; LOCK TABLE loopfleet.outcomes; SELECT pg_sleep(600)")
            try:
                fleet.wait_until(lambda: server.rows("SELECT 1 FROM pg_locks WHERE mode = 'AccessExclusiveLock' AND granted "
                                                     "AND relation = 'loopfleet.outcomes'::regclass"), "the lock")
                running.submit(failing_jobs(2))
                fleet.wait_until(troubles, "trouble to be told")
                self.assertIn("lock timeout", troubles()[0])
                behind = metric(running, "loopfleet_mirror_behind_seconds")
                fleet.wait_until(lambda: metric(running, "loopfleet_mirror_behind_seconds") > behind + 3, "it grows")
            finally:
                server.rows("SELECT pg_terminate_backend(pid) FROM pg_locks WHERE mode = 'AccessExclusiveLock' AND granted "
                            "AND relation = 'loopfleet.outcomes'::regclass")
                locking.wait(fleet.STOP_LIMIT_S)
            fleet.wait_until(lambda: rows() == "5", "the others")

    def test_what_cannot_work_is_said(self):
        with PostgresServer() as server, Fleet(workers=0) as running:
            server.rows("CREATE ROLE nothing LOGIN")
            for address, said, code in (
                    (server.url + "none", 'database "postgresnone" does not exist', 78),
                    (server.url.replace("postgres@", "nothing@"), "permission denied", 78),
                    ("mysql://me:secret@host/x", "postgresql://user@host/database", 78),
                    ("host=127.0.0.1 port=1", "127.0.0.1", 1)):
                done = fleet.run(mirror_command(running.database, "--once", "--results", address), timeout=20)
                self.assertEqual(done.returncode, code, done.stderr)
                self.assertIn(said, done.stderr)
                self.assertNotIn("secret", done.stderr)
            mirror_once(running, server)
            server.rows("UPDATE loopfleet.schema_version SET version = 999")
            done = fleet.run(mirror_command(running.database, "--results", server.url), timeout=20)
            self.assertEqual(done.returncode, 78, done.stderr)
            self.assertIn("has version 999", done.stderr)

    @unittest.skipIf(shutil.which("faketime") is None, "faketime is not installed")
    def test_an_hour_without_postgres_is_lag_and_nothing_else(self):
        clock = f"+0 x{OUTAGE_SPEED}"
        # Not under faketime itself, which a signal ends without its child.
        library = fleet.run(["faketime", "-f", clock, "printenv", "LD_PRELOAD"]).stdout.strip()
        with PostgresServer() as server, Fleet(workers=0) as running, tempfile.TemporaryFile("w+") as said:
            def submit_and_time():
                start = time.monotonic()
                done, outcomes = running.submit(failing_jobs(20))
                self.assertEqual([len(outcomes), done.stderr.count("busy")], [20, 0], done.stderr)
                return time.monotonic() - start

            mirror = subprocess.Popen(mirror_command(running.database), stdout=said,
                                      env=clean_environment(LOOPFLEET_RESULTS=server.url, LD_PRELOAD=library, FAKETIME=clock),
                                      stderr=subprocess.DEVNULL, preexec_fn=fleet.die_with_parent)
            try:
                before = [submit_and_time() for _ in range(10)]
                fleet.wait_until(lambda: server.rows("SELECT 1 FROM pg_namespace WHERE nspname = 'loopfleet'") and
                                 places_in_postgres(server) == places_in_sqlite(running.database), "the first outcomes")
                server.kill()
                memory = resident_kb(mirror.pid)
                during = []
                end = time.monotonic() + OUTAGE_S / OUTAGE_SPEED
                while time.monotonic() < end:
                    during.append(submit_and_time())
                    time.sleep(0.2)
                self.assertIsNone(mirror.poll())
                grown = resident_kb(mirror.pid) - memory
                server.start()
                start = time.monotonic()
                fleet.wait_until(lambda: places_in_postgres(server) == places_in_sqlite(running.database), "the others")
                caught_up = time.monotonic() - start
            finally:
                mirror.send_signal(signal.SIGTERM)
                mirror.wait()
            said.seek(0)
            lines = [json.loads(line) for line in said]
            behind = max(line["behind_seconds"] for line in lines)
            median = statistics.median
            print(f"{OUTAGE_S:.0f} s at {OUTAGE_SPEED}x: {20 * len(during)} outcomes meanwhile, a submission of 20 took "
                  f"{1e3 * median(before):.0f} ms before and {1e3 * median(during):.0f} ms during it (slowest "
                  f"{1e3 * max(during):.0f}), the mirror grew by {grown} kB and was {behind:.0f} s behind, and caught up "
                  f"in {caught_up:.1f} s")
            self.assertGreater(behind, 0.95 * OUTAGE_S)
            self.assertLess(grown, 16_000)
            self.assertGreater(len(during), 20)
            self.assertEqual([lines[-1]["waiting"], lines[-1]["trouble"]], [0, ""])

    def test_kills_at_random_moments_lose_and_repeat_nothing(self):
        dice = random.Random(20261127)
        with PostgresServer() as server, Fleet(workers=0) as running:
            environment = clean_environment(LOOPFLEET_RESULTS=server.url)

            def start():
                return subprocess.Popen(mirror_command(running.database, "--rows", "40"), env=environment,
                                        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                                        preexec_fn=fleet.die_with_parent)

            mirror = start()
            try:
                for kill in range(KILLS):
                    running.submit(failing_jobs(dice.randrange(1, 200)))
                    time.sleep(dice.uniform(0, 0.12))
                    victim = dice.choices(["mirror", "postgres", "coordinator", "connection"], [140, 20, 20, 20])[0]
                    if victim == "mirror":
                        mirror.send_signal(signal.SIGKILL)
                        mirror.wait()
                        mirror = start()
                    elif victim == "postgres":
                        server.kill()
                        server.start()
                    elif victim == "coordinator":
                        running.coordinator.kill()
                        running.start_coordinator()
                    else:
                        server.rows("SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
                                    "WHERE application_name = 'loopfleet-mirror'")
            finally:
                mirror.kill()
                mirror.wait()
            mirror_once(running, server)
            expected = places_in_sqlite(running.database)
            self.assertGreater(len(expected), KILLS)
            self.assertEqual(places_in_postgres(server), expected)


if __name__ == "__main__":
    fleet.main()
