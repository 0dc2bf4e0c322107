"""Retention removes the raw samples of old results, and old batches, by command and by a running coordinator:
every reader sees that, and nothing else changes."""

import json
import pathlib
import shutil
import sqlite3
import unittest

import fleet
from fleet import Fleet, small_jobs, wait_until

JOBS = 6
# The fields of an outcome that retention changes.
CHANGED = ("samples_ns", "sample_flags", "samples_before_thinning")


def exported(f):
    done = f.command("export", again_if_unstable=False)  # includes jobs without a figure
    assert done.returncode == 0, done.stderr
    return {line["job"]: line for line in map(json.loads, done.stdout.splitlines())}


def without_samples(outcome):
    return {name: value for name, value in outcome.items() if name not in CHANGED}


def query(database, sql):
    connection = sqlite3.connect(f"file:{database}?mode=ro", uri=True)
    try:
        return connection.execute(sql).fetchall()
    finally:
        connection.close()


class Retention(unittest.TestCase):
    def test_by_hand(self):
        with Fleet() as f:
            done, _ = f.submit(small_jobs(JOBS))
            before = exported(f)
            measured = sum(o["status"] == "ok" and o["source"] == "measured" for o in before.values())
            self.assertGreater(measured, 0, done.stderr)

            def would():
                return f.json("db", "thin", str(f.database), "--older-than", "1s", "--keep-every", "4", "--dry-run")

            wait_until(lambda: would()["results"] == measured, "they are a second old")
            said = would()
            self.assertEqual(exported(f), before, "a dry run changes nothing")
            refused = f.command("db", "thin", str(f.database), "--older-than", "1s", "--drop-samples")
            self.assertEqual(refused.returncode, 1)
            self.assertIn("--keep-samples-days", refused.stderr)

            f.coordinator.stop()
            thinned = f.json("db", "thin", str(f.database), "--older-than", "1s", "--keep-every", "4", "--compact")
            for name in ("results", "samples", "bytes"):
                self.assertEqual(thinned[name], said[name], name)
            self.assertEqual((thinned["dry_run"], thinned["retention"], thinned["damaged"]), (False, 1, 0))
            checked = f.command("db", "check", str(f.database))
            self.assertEqual(checked.returncode, 0, checked.stdout)

            f.start_coordinator()
            after = exported(f)
            self.assertEqual(after.keys(), before.keys())
            for job, outcome in after.items():
                self.assertEqual(without_samples(outcome), without_samples(before[job]))
                whole = before[job]["samples_ns"]
                self.assertEqual(len(outcome["samples_ns"]), -(-len(whole) // 4))
                self.assertLessEqual(set(outcome["samples_ns"]), set(whole))
                self.assertEqual(outcome["samples_before_thinning"], len(whole) if whole else None)
            # The result still answers and says that samples are missing. That needs a worker of the hardware
            # class, because the store is searched by class.
            wait_until(lambda: any(w["state"] in ("ready", "quarantined")
                                   for w in f.json("worker", "list")), "the worker is back")
            _, again = f.submit(small_jobs(JOBS))
            stored = [o for o in again if o["source"] == "stored" and o["status"] == "ok"]
            doubtful = sum(o["grade"] == "D" for o in before.values() if o["source"] == "measured" and o["status"] == "ok")
            self.assertEqual(len(stored), measured - doubtful)
            self.assertTrue(all(o["samples_before_thinning"] > len(o["samples_ns"]) for o in stored))
            self.assertEqual(query(f.database, "SELECT asked_by, keep_every, results FROM retention"),
                             [("loopfleet db thin", 4, measured)])

    def test_room_goes_back_to_the_disk_without_thinning(self):
        with Fleet(workers=0) as f:
            f.coordinator.stop()
            connection = sqlite3.connect(f.database)
            connection.execute("CREATE TABLE filler AS SELECT zeroblob(1000000) AS room")
            connection.execute("DROP TABLE filler")
            connection.close()
            before = f.database.stat().st_size
            compacted = f.json("db", "thin", str(f.database), "--compact")
            self.assertLess(f.database.stat().st_size, before - 900_000)
            self.assertEqual((compacted["samples"], compacted["retention"]), (0, None))
            self.assertEqual(query(f.database, "SELECT * FROM retention"), [])

    def test_by_a_running_coordinator(self):
        with Fleet(workers=0) as f:
            f.coordinator.stop()
            f.database.unlink()
            # Results of 2023, with one batch that still waits for a worker.
            shutil.copyfile(pathlib.Path(__file__).parents[1] / "golden/storage/1.db", f.database)
            f.start_coordinator()
            whole = exported(f)
            self.assertTrue(all(o["samples_before_thinning"] is None for o in whole.values()))
            f.coordinator.stop()
            f.start_coordinator("--keep-samples-days", "30")
            wait_until(lambda: query(f.database, "SELECT results FROM retention") == [(2,)], "samples go")
            accepted = f.json("submit", "-", stdin=fleet.lines(small_jobs(2)))
            self.assertEqual(f.json("batch", "show", str(accepted["batch"]))["jobs"], 2)
            now = exported(f)
            for job, outcome in whole.items():
                self.assertEqual(without_samples(now[job]), without_samples(outcome))
                self.assertEqual(now[job]["samples_ns"], [])
            checked = f.command("db", "check", str(f.database))
            self.assertEqual(checked.returncode, 0, checked.stdout)

    def test_batches_by_hand(self):
        with Fleet() as f:
            _, first = f.submit(small_jobs(JOBS))
            figures = sum(o["status"] == "ok" and o["source"] == "measured" and o["grade"] < "D" for o in first)
            self.assertGreater(figures, 0)
            f.submit(small_jobs(1))

            def would():
                return f.json("db", "prune", str(f.database), "--older-than", "1s", "--dry-run")

            wait_until(lambda: would()["batches"] >= 1, "the first batch is a second old")
            said = would()
            refused = f.command("db", "prune", str(f.database), "--older-than", "1s")
            self.assertEqual(refused.returncode, 1)
            self.assertIn("--keep-batches-days", refused.stderr)

            f.coordinator.stop()
            pruned = f.json("db", "prune", str(f.database), "--older-than", "1s")
            for name in ("batches", "requests", "jobs", "outcomes", "known_failures"):
                self.assertEqual(pruned[name], said[name], name)
            self.assertEqual((pruned["dry_run"], pruned["pruning"], pruned["damaged"]), (False, 1, 0))
            self.assertEqual(query(f.database, "PRAGMA freelist_count"), [(0,)])
            checked = f.command("db", "check", str(f.database))
            self.assertEqual(checked.returncode, 0, checked.stdout)

            f.start_coordinator()
            gone = f.command("batch", "show", "1")
            self.assertNotEqual(gone.returncode, 0)
            self.assertIn("batch 1 was pruned", gone.stderr)
            self.assertIn("batch 1 was pruned", f.command("job", "show", "1.0").stderr)
            self.assertIn("there is no batch 999", f.command("batch", "show", "999").stderr)
            wait_until(lambda: any(w["state"] in ("ready", "quarantined")
                                   for w in f.json("worker", "list")), "the worker is back")
            _, again = f.submit(small_jobs(JOBS))
            stored = [o for o in again if o["source"] == "stored" and o["status"] == "ok"]
            self.assertGreaterEqual(len(stored), figures, "what was measured for the pruned batch answers")

    def test_batches_by_a_running_coordinator(self):
        with Fleet(workers=0) as f:
            f.coordinator.stop()
            f.database.unlink()
            # Batches of 2023: 2 is finished, 1 and 3 still wait for a worker.
            shutil.copyfile(pathlib.Path(__file__).parents[1] / "golden/storage/1.db", f.database)
            f.start_coordinator("--keep-batches-days", "30")
            wait_until(lambda: query(f.database, "SELECT batches, jobs, removing FROM prunings") == [(1, 3, 0)],
                       "the finished batch goes")
            gone = f.command("batch", "show", "2")
            self.assertNotEqual(gone.returncode, 0)
            self.assertIn("batch 2 was pruned", gone.stderr)
            self.assertEqual(f.json("batch", "show", "1")["jobs"], 4)
            accepted = f.json("submit", "-", stdin=fleet.lines(small_jobs(2)))
            self.assertEqual(accepted["batch"], 4)
            self.assertEqual(query(f.database, "SELECT count(*) FROM results"), [(2,)])
            checked = f.command("db", "check", str(f.database))
            self.assertEqual(checked.returncode, 0, checked.stdout)

    def test_what_is_no_age(self):
        with Fleet(workers=0) as f:
            for wrong, nearest in (("90", "90d"), ("3 months", "3m"), ("-2w", "2w"), ("soon", "90d")):
                refused = f.command("db", "thin", str(f.database), f"--older-than={wrong}", "--drop-samples")
                self.assertEqual(refused.returncode, 2, wrong)
                self.assertIn(f"nearest: {nearest}", refused.stderr)
            for undecided in (["--older-than", "90d"], ["--drop-samples"], ["--drop-samples", "--compact"], []):
                refused = f.command("db", "thin", str(f.database), *undecided)
                self.assertEqual(refused.returncode, 2, undecided)
                self.assertIn("--older-than AGE, and --keep-every N or --drop-samples", refused.stderr)
            missing = f.command("db", "thin", str(f.dir / "none.db"), "--older-than", "90d", "--drop-samples")
            self.assertEqual(missing.returncode, 1)
            self.assertFalse((f.dir / "none.db").exists())


if __name__ == "__main__":
    fleet.main()
