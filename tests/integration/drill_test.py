"""The restore drill: a snapshot is taken while a fleet works, the coordinator is killed, its database is
lost, and the fleet goes on from the snapshot."""

import json
import unittest

import fleet


class Drill(unittest.TestCase):
    def test_a_fleet_goes_on_from_its_snapshot(self):
        with fleet.Fleet() as f:
            jobs = fleet.small_jobs(8)
            _, before = f.submit(jobs)
            # Under load: this batch is unfinished in the snapshot, or some of it is.
            more = [{**job, "benchmark": job["benchmark"] + "0"} for job in fleet.small_jobs(60)]
            submitted = f.command("submit", "-", "--json", stdin=fleet.lines(more))
            self.assertEqual(submitted.returncode, 0, submitted.stderr)
            batch = f.json("batch", "show", "last")["batch"]
            copy = f.dir / "copy.db"
            taken = f.command("db", "snapshot", str(f.database), str(copy))
            self.assertEqual(taken.returncode, 0, taken.stderr)
            checked = f.json("db", "check", str(copy))
            self.assertTrue(checked["ok"], checked)

            f.coordinator.kill()
            for part in ("", "-wal", "-shm"):
                f.database.with_name(f.database.name + part).unlink(missing_ok=True)
            copy.rename(f.database)
            f.start_coordinator()
            f.await_workers(1)

            # What was unfinished finishes; each job has one outcome.
            waited = f.command("batch", "wait", str(batch), "--jsonl", again_if_unstable=False)
            outcomes = [json.loads(line) for line in waited.stdout.splitlines()]
            self.assertEqual(sorted(outcome["index"] for outcome in outcomes), list(range(60)))
            # What was known is known.
            _, after = f.submit(jobs)
            known = {o["tag"]: o["elapsed_ns"] for o in before if o["status"] == "ok"}
            again = {o["tag"]: o for o in after}
            for tag, elapsed_ns in known.items():
                self.assertEqual(again[tag]["elapsed_ns"], elapsed_ns, again[tag])
                self.assertEqual(again[tag]["source"], "stored")
            self.assertTrue(f.json("db", "check", str(f.database))["ok"])


if __name__ == "__main__":
    fleet.main()
