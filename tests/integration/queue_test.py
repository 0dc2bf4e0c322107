"""Dispatch and placement in a real fleet: labels, deadlines across a kill -9, affinity, `job explain`."""

import time
import unittest

import fleet
from fleet import Fleet, wait_until

JOB = {"benchmark": "benchmark://mm-v0/mm8_8_8", "actions": []}
LONG_S = 3600


class QueueTest(unittest.TestCase):
    def submit_and_leave(self, cluster, jobs):
        """Submits jobs without waiting; returns the batch's id for `job explain`."""
        done = cluster.command("submit", "-", stdin=fleet.lines(jobs))
        self.assertEqual(done.returncode, 0, done.stderr)
        return cluster.json("batch", "list")[0]["batch"]

    def finished(self, cluster, batch):
        """Waits until the batch's first job has an outcome; returns its explanation."""
        return wait_until(lambda: (e := cluster.json("job", "explain", f"{batch}.0"))["outcome"] and e,
                          "the job with a label")

    def test_how_long_a_job_waits_for_any_worker_is_an_option(self):
        with Fleet(workers=0, coordinator_arguments=["--no-worker-grace", "1"]) as cluster:
            done, (outcome,) = cluster.submit([JOB])
            self.assertEqual(outcome["error"]["code"], "NO_MATCHING_WORKER", done.stderr)
            self.assertIn("1 s", outcome["error"]["message"])
        for wrong in ("0", "604801", "soon"):
            done = fleet.run([fleet.program("loopfleet-coordinator"), "--no-worker-grace", wrong])
            self.assertEqual(done.returncode, 2, wrong)
            self.assertIn("--no-worker-grace", done.stderr)

    def test_a_job_waits_for_its_worker_and_says_why(self):
        with Fleet(workers=0) as cluster:
            jobs = [JOB | {"labels": ["quiet"], "deadline_s": LONG_S, "priority": 3},
                    JOB | {"deadline_s": 0.001}]
            batch = self.submit_and_leave(cluster, jobs)
            why = cluster.json("job", "explain", f"{batch}.0")
            self.assertEqual(why["state"], "queued")
            self.assertIn("no worker is connected", why["reason"])
            self.assertEqual((why["priority"], why["attempts"], why["workers"]), (3, 0, []))
            self.assertLessEqual(why["deadline_left_ms"], LONG_S * 1000)

            over = wait_until(
                lambda: (e := cluster.json("job", "explain", f"{batch}/1"))["outcome"] and e,
                "the deadline of 1 ms")
            self.assertEqual(over["outcome"]["error"]["code"], "EXPIRED")

            # A kill of the coordinator does not reset the deadline.
            cluster.coordinator.kill()
            cluster.start_coordinator()
            after = cluster.json("job", "explain", f"{batch}.0")
            self.assertEqual(after["state"], "queued")
            self.assertLessEqual(after["deadline_left_ms"], why["deadline_left_ms"])

            cluster.worker_arguments = ["--labels", "quiet,rack=7"]
            cluster.start_worker()
            cluster.await_workers(1)
            done = self.finished(cluster, batch)
            if done["outcome"].get("error", {}).get("code") == "NO_MATCHING_WORKER":
                # The host was slower than the grace of a job without a worker.
                batch = self.submit_and_leave(cluster, jobs[:1])
                done = self.finished(cluster, batch)
            (worker,) = cluster.json("worker", "list")
            self.assertLess({"quiet", "rack=7", "device=cpu"}, set(worker["labels"]))
            if not fleet.is_unstable(done["outcome"]):
                self.assertEqual(done["outcome"]["status"], "ok")
            self.assertEqual(done["worker"], worker["name"])
            text = cluster.command("job", "explain", f"{batch}.0").stdout
            self.assertIn(worker["name"], text)

            lacking = self.submit_and_leave(cluster, [JOB | {"labels": ["quite"], "deadline_s": 25}])
            why = cluster.json("job", "explain", f"{lacking}.0")
            self.assertEqual(why["workers"][0]["missing_labels"], ["quite"])
            self.assertIn("nearest: quiet", why["reason"])
            cluster.command("batch", "cancel", str(lacking))

            # Stored answers, too, come from one worker.
            done, outcomes = cluster.submit([JOB | {"affinity": "episode"}] * 3)
            self.assertEqual({outcome["worker"] for outcome in outcomes}, {worker["name"]})

    def test_a_worker_that_is_stopped_charges_no_attempt_for_a_job_that_it_has_not_timed(self):
        hang = {"benchmark": "benchmark://mm-v0/mm73_8_8", "actions": []}  # while it is verified
        with Fleet(workers=1, worker_program="loopfleet-worker-faulty",
                   worker_arguments=("--run-limit-ms", "10000")) as cluster:
            batch = self.submit_and_leave(cluster, [hang])
            fleet.wait_until(lambda: cluster.json("job", "explain", f"{batch}.0")["state"] == "leased", "the job is leased")
            time.sleep(4)  # a lease is missed once it is 3 s old
            cluster.workers[0].stop()
            self.assertIn("worker.draining running=0 returned=1", cluster.workers[0].log.read_text())
            job = cluster.json("job", "explain", f"{batch}.0")
            self.assertEqual((job["state"], job["attempts"]), ("queued", 0))

    def test_what_does_not_exist_is_not_explained(self):
        with Fleet(workers=0) as cluster:
            done = cluster.command("job", "explain", "9.9")
            self.assertEqual((done.returncode, done.stdout), (1, ""))
            self.assertIn("NOT_FOUND", done.stderr)
            self.assertEqual(cluster.command("job", "explain", "nine").returncode, 2)


if __name__ == "__main__":
    fleet.main()
