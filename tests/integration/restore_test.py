"""The restore drill: a snapshot is taken while jobs run, the coordinator and its disk are lost, and the
snapshot replaces them. Nothing acknowledged before the snapshot is missing, and all of it finishes."""

import json
import pathlib
import shutil
import sqlite3
import threading
import unittest

import fleet
from fleet import Fleet, small_jobs, wait_until

BATCH = 20


class Submitter(threading.Thread):
    """Submits batch after batch; `acknowledged` holds the number of each batch on disk."""

    def __init__(self, f):
        super().__init__()
        self.f = f
        self.acknowledged = []
        self.stop = threading.Event()
        self.start()

    def run(self):
        jobs = iter(small_jobs(200 * BATCH))
        while not self.stop.is_set():
            chunk = [next(jobs) for _ in range(BATCH)]
            # The kill of the coordinator interrupts one submission; --timeout ends its wait.
            done = self.f.command("submit", "-", "--json", "--timeout", "20", stdin=fleet.lines(chunk))
            if done.returncode == 0:
                self.acknowledged.append(json.loads(done.stdout)["batch"])

    def end(self):
        self.stop.set()
        self.join()


def finished_outcomes(f):
    """All stored outcomes by job, as readers see them."""
    done = f.command("export")
    assert done.returncode == 0, done.stderr
    return {line["job"]: line for line in map(json.loads, done.stdout.splitlines())}


def database_files(path):
    return [pathlib.Path(str(path) + suffix) for suffix in ("", "-wal", "-shm")]


class Restore(unittest.TestCase):
    def test_what_was_acknowledged_before_the_snapshot_survives_the_loss_of_the_disk(self):
        with Fleet() as f:
            copy = f.dir / "copy.db"
            submitter = Submitter(f)
            try:
                wait_until(lambda: len(submitter.acknowledged) >= 3, "batches are accepted")
                wait_until(lambda: len(finished_outcomes(f)) >= BATCH, "jobs are finished")
                acknowledged = list(submitter.acknowledged)
                finished = finished_outcomes(f)
                taken = f.command("db", "snapshot", str(f.database), str(copy))
                self.assertEqual(taken.returncode, 0, taken.stderr)
                after = len(submitter.acknowledged)
                # The snapshot may hold the batch that was on its way meanwhile, not the one after it.
                wait_until(lambda: len(submitter.acknowledged) > after + 1, "it goes on meanwhile")
                f.coordinator.kill()
            finally:
                submitter.stop.set()
            for file in database_files(f.database):
                file.unlink(missing_ok=True)

            checked = f.command("db", "check", str(copy), "--json")
            self.assertEqual(checked.returncode, 0, checked.stdout)
            self.assertEqual(json.loads(checked.stdout)["damage_count"], 0)
            shutil.copyfile(copy, f.database)
            f.start_coordinator()
            submitter.end()
            lost = str(submitter.acknowledged[after + 1])
            shown = f.command("batch", "show", lost)
            self.assertEqual(shown.returncode, 1, "no other batch has its number")
            self.assertIn("NOT_FOUND", shown.stderr)

            self.assertGreaterEqual(len(acknowledged), 3)
            for batch in acknowledged:
                waited = f.command("batch", "wait", str(batch), "--jsonl")
                self.assertEqual(len(waited.stdout.splitlines()), BATCH, waited.stderr)
                self.assertEqual(f.json("batch", "show", str(batch))["state"], "finished")
            # An outcome that a reader has seen never changes (I2).
            restored = finished_outcomes(f)
            for job, outcome in finished.items():
                self.assertEqual(restored.get(job), outcome)
            # The worker that held leases of the lost coordinator now works for this one.
            done, outcomes = f.submit([{"benchmark": "benchmark://mm-v0/mm8_16_24", "actions": []}])
            self.assertEqual([o["status"] for o in outcomes], ["ok"], done.stderr)
            self.assertGreater(f.json("batch", "list")[0]["batch"], 1_000_000)
            f.coordinator.stop()
            checked = f.command("db", "check", str(f.database))
            self.assertEqual(checked.returncode, 0, checked.stderr)


def overwrite_last_outcomes(database):
    """Fills the page of `outcomes` that the next row would go to with nonsense."""
    connection = sqlite3.connect(database)
    try:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        page, = connection.execute("SELECT pageno FROM dbstat WHERE name = 'outcomes' AND "
                                   "pagetype = 'leaf' ORDER BY path DESC LIMIT 1").fetchone()
        size, = connection.execute("PRAGMA page_size").fetchone()
    finally:
        connection.close()
    with open(database, "r+b") as file:
        file.seek((page - 1) * size)
        file.write(b"\x5a" * size)


class Repair(unittest.TestCase):
    def test_damaged_outcomes_stop_the_coordinator_and_a_command_repairs_them(self):
        jobs = [{"benchmark": "benchmark://mm-v0/mm8_8_8", "actions": ["swap_up"], "tag": i} for i in range(600)]
        with Fleet(workers=0) as f:
            _, outcomes = f.submit(jobs)
            self.assertEqual(len(outcomes), len(jobs))
            batch = str(f.json("batch", "list")[0]["batch"])
            f.coordinator.stop()
            overwrite_last_outcomes(f.database)

            f.start_coordinator()  # nothing is looked through at the start
            f.command("submit", "-", "--timeout", "10", stdin=fleet.lines(jobs[:1]))
            self.assertEqual(f.coordinator.process.wait(fleet.STOP_LIMIT_S), 78)
            self.assertIn(f"loopfleet db repair {f.database}", f.coordinator.log.read_text())

            repaired = f.command("db", "repair", str(f.database), "--json")
            self.assertEqual(repaired.returncode, 0, repaired.stderr)
            said = json.loads(repaired.stdout)
            self.assertEqual((said["repaired"], said["kept_as"]), (True, "outcomes_damaged_1"))
            self.assertIn("outcomes rebuilt", repaired.stderr)
            self.assertEqual(f.json("db", "repair", str(f.database), "--drop-kept")["dropped"], 1)
            self.assertNotIn("outcomes_damaged", f.command("db", "check", str(f.database)).stdout)

            f.start_coordinator()
            waited = f.command("batch", "wait", batch, "--jsonl")
            codes = [json.loads(line)["error"]["code"] for line in waited.stdout.splitlines()]
            self.assertEqual(len(codes), len(jobs))
            self.assertEqual(codes.count("STORAGE_CORRUPT"), len(said["lost"]))
            self.assertTrue(0 < len(said["lost"]) < len(jobs) / 2, said)
            _, outcomes = f.submit(jobs[:1])
            self.assertEqual([o["error"]["code"] for o in outcomes], ["INVALID_ACTION"])
            again = f.command("db", "repair", str(f.database))
            self.assertEqual(again.returncode, 1)
            self.assertIn(str(f.coordinator.pid), again.stderr)


if __name__ == "__main__":
    fleet.main()
