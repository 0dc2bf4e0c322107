"""The restore drill: a snapshot taken while jobs run, the coordinator and its disk lost, the snapshot put
in their place. Nothing that was acknowledged before the snapshot is missing, and all of it finishes."""

import json
import pathlib
import shutil
import threading
import unittest

import fleet
from fleet import Fleet, small_jobs, wait_until

BATCH = 20


class Submitter(threading.Thread):
    """Submits batch after batch; `acknowledged` holds the number of each once it is on disk."""

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
            # When its coordinator is killed, one of these is cut short: --timeout ends the wait for it.
            done = self.f.command("submit", "-", "--json", "--timeout", "20", stdin=fleet.lines(chunk))
            if done.returncode == 0:
                self.acknowledged.append(json.loads(done.stdout)["batch"])

    def end(self):
        self.stop.set()
        self.join()


def finished_outcomes(f):
    """Every outcome that is stored now, by its job, as readers see it."""
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
                wait_until(lambda: len(submitter.acknowledged) > after, "it goes on meanwhile")
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

            self.assertGreaterEqual(len(acknowledged), 3)
            for batch in acknowledged:
                waited = f.command("batch", "wait", str(batch), "--jsonl")
                self.assertEqual(len(waited.stdout.splitlines()), BATCH, waited.stderr)
                self.assertEqual(f.json("batch", "show", str(batch))["state"], "finished")
            # An outcome that a reader has seen is the same for ever (I2).
            restored = finished_outcomes(f)
            for job, outcome in finished.items():
                self.assertEqual(restored.get(job), outcome)
            # The worker that held leases of the lost coordinator works for this one.
            done, outcomes = f.submit([{"benchmark": "benchmark://mm-v0/mm8_16_24", "actions": []}])
            self.assertEqual([o["status"] for o in outcomes], ["ok"], done.stderr)
            f.coordinator.stop()
            checked = f.command("db", "check", str(f.database))
            self.assertEqual(checked.returncode, 0, checked.stderr)


if __name__ == "__main__":
    fleet.main()
