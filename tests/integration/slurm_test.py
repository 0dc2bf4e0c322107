"""Workers from a real Slurm: they start, work, are cancelled and reach their time limit, and no job is lost
or runs twice. Exit status 77, with the reason, if Slurm's programs are absent or cannot run as root."""

import json
import pathlib
import re
import signal
import subprocess
import sys
import time
import unittest
import urllib.request

import fleet
from fleet import Fleet, small_jobs, wait_until
from slurm_cluster import CannotRun, SlurmCluster

# Slurm checks time limits twice a minute, and sends the signal up to that much earlier.
LIMIT_MINUTES = 2
DRAIN_BEFORE_S = 60
TRIES = 5
CHUNK = 400  # jobs; more than a worker holds
QUEUED = 3 * CHUNK  # more than a worker does between two looks at the queue
# Stands in for a worker that takes long to drain: it ends when told so by a file.
SLOW_WORKER = """#!/bin/bash
for signal in USR1 TERM; do trap "echo $signal" $signal; done
echo ready
while [ ! -e "$0.end" ]; do sleep 0.1; done
"""

cluster = None


class SlurmFleet(Fleet):
    """A coordinator whose workers come from Slurm."""

    def __init__(self):
        super().__init__(workers=0)

    def start_coordinator(self):
        super().start_coordinator()
        self.environment = fleet.clean_environment(
            LOOPFLEET_ADDRESS=self.address, LOOPFLEET_WORKER_ADDRESS=self.worker_address,
            **cluster.environment)

    def command(self, *arguments, stdin="", **options):
        return fleet.run([fleet.program("loopfleet"), *arguments], input=stdin,
                         env=self.environment, **options)

    def popen(self, *arguments, **options):
        return subprocess.Popen([fleet.program("loopfleet"), *arguments], text=True,
                                env=self.environment, preexec_fn=fleet.die_with_parent, **options)

    def ask_slurm(self, workers, *options):
        """Requests workers; returns the allocation once all of them are ready."""
        done = self.command("fleet", "slurm", "--workers", str(workers), "--json",
                            f"--sbatch=--output={self.dir}/slurm-%a.log", *options)
        assert done.returncode == 0, done.stderr
        allocation = json.loads(done.stdout)["allocation"]
        wait_until(lambda: [t["worker"] and t["worker"]["state"] for t in self.status(allocation)]
                   == ["ready"] * workers, f"{workers} workers of Slurm are ready")
        return allocation

    def status(self, allocation):
        return self.json("fleet", "status", allocation)

    def metrics(self):
        with urllib.request.urlopen(f"http://{self.coordinator.ready['http']}/metrics",
                                    timeout=60) as answer:
            return answer.read().decode()

    def metric(self, name, **labels):
        text = "".join(f'{{{key}="{value}"}}' for key, value in labels.items())
        return float(re.search(f"^{re.escape(name + text)} (.+)$", self.metrics(), re.MULTILINE)[1])

    def retries(self):
        """The number of retries, by failure code."""
        found = re.findall(r'^loopfleet_retries_total\{code="(\w+)"\} (\d+)', self.metrics(),
                           re.MULTILINE)
        return {code: int(count) for code, count in found if int(count) > 0}


def outcomes_of(process):
    """Waits for a running `submit --wait --jsonl`; returns all outcomes."""
    stdout, stderr = process.communicate(timeout=fleet.COMMAND_LIMIT_S)
    assert process.returncode in (0, 1), stderr
    return [json.loads(line) for line in stdout.splitlines()]


class Workers(unittest.TestCase):
    def tearDown(self):
        cluster.end_jobs()  # the next test must not list those of a failed one

    def test_they_appear_work_and_lose_nothing_when_one_is_cancelled(self):
        with SlurmFleet() as f:
            allocation = f.ask_slurm(2, "--time=60", "--cpus=1", "--labels=mine")
            listed = f.json("fleet", "list")
            self.assertEqual([(a["allocation"], a["workers"]) for a in listed],
                             [(allocation, {"RUNNING": 2})])
            for worker in f.json("worker", "list"):
                self.assertLessEqual({"mine", f"slurm={allocation}"}, set(worker["labels"]))

            jobs = small_jobs(300)
            submit = f.popen("submit", "-", "--wait", "--jsonl", stdin=subprocess.PIPE,
                             stdout=subprocess.PIPE, stderr=subprocess.PIPE)
            submit.stdin.write(fleet.lines(jobs))
            submit.stdin.close()
            submit.stdin = None
            wait_until(lambda: sum(w["finished_jobs"] for w in f.json("worker", "list")) >= 20,
                       "the batch has begun")
            cluster.call("scancel", f"{allocation}_0")
            outcomes = outcomes_of(submit)
            self.assertEqual(sorted(o["index"] for o in outcomes), list(range(len(jobs))))
            for outcome in outcomes:
                self.assertTrue(outcome["status"] == "ok" or fleet.is_unstable(outcome), outcome)
            wait_until(lambda: f"{allocation}_0" not in cluster.tasks(), "the cancelled one ended")
            self.assertEqual([t["task"] for t in f.status("all")], [f"{allocation}_1"])

            released = f.json("fleet", "release", allocation, "--within", "600")
            self.assertEqual(released, {"drained": [f"{allocation}_1"], "cancelled": []})
            self.assertEqual(f.json("fleet", "list"), [])

    def test_a_release_that_was_interrupted_is_repeated_without_ending_what_drains(self):
        with SlurmFleet() as f:
            worker, log = f.dir / "slow-worker", f.dir / "slurm-0.log"
            worker.write_text(SLOW_WORKER)
            worker.chmod(0o755)
            allocation = f.json("fleet", "slurm", "--workers=1", f"--program={worker}",
                                f"--sbatch=--output={log}")["allocation"]

            def heard():
                return [line for line in log.read_text().split("\n") if line in ("ready", "USR1", "TERM")]

            wait_until(lambda: log.exists() and heard() == ["ready"], "it runs")

            def release(times):
                process = f.popen("fleet", "release", allocation, "--within", "600", "--json",
                                  stdout=subprocess.PIPE, stderr=subprocess.PIPE)
                wait_until(lambda: len(heard()) > times, "it is told")
                return process

            first = release(1)
            first.send_signal(signal.SIGINT)
            self.assertIn("run this again", first.communicate(timeout=fleet.COMMAND_LIMIT_S)[1])
            second = release(2)
            pathlib.Path(f"{worker}.end").touch()
            self.assertEqual(json.loads(second.communicate(timeout=fleet.COMMAND_LIMIT_S)[0]),
                             {"drained": [f"{allocation}_0"], "cancelled": []})
            self.assertEqual(heard(), ["ready", "USR1", "USR1"])  # a second TERM ends a worker at once

    def test_what_waits_for_a_node_is_released_without_having_begun(self):
        with SlurmFleet() as f:
            done = f.command("fleet", "slurm", "--workers", "3", "--json", "--sbatch=--hold",
                             f"--sbatch=--output={f.dir}/slurm-%a.log")
            allocation = json.loads(done.stdout)["allocation"]
            tasks = f.status(allocation)
            self.assertEqual([(t["slurm_state"], t["worker"]) for t in tasks], [("PENDING", None)] * 3)
            self.assertIn("JobHeldUser", f.command("fleet", "list").stdout)
            released = f.json("fleet", "release", f"{allocation}_1")
            self.assertEqual(released["drained"], [f"{allocation}_1"])
            self.assertEqual(len(f.status(allocation)), 2)
            f.json("fleet", "release", "all")
            self.assertEqual(cluster.tasks(), {})

    def test_the_time_limits_drain_runs_nothing_again(self):
        for _ in range(TRIES):
            if self.reach_the_time_limit():
                return
        self.fail("this machine is so busy that workers fell silent each time")

    def reach_the_time_limit(self):
        """Returns False if the worker was too slow to be heard: then jobs rightly run again."""
        with SlurmFleet() as f:
            allocation = f.ask_slurm(1, f"--time={LIMIT_MINUTES}", f"--drain-before={DRAIN_BEFORE_S}")
            jobs = iter(small_jobs(300 * CHUNK))
            batches = []
            # The worker is busy at its time limit, and jobs are left.
            while f"{allocation}_0" in cluster.tasks():
                if f.metric("loopfleet_queue_jobs", device="cpu") < QUEUED:
                    chunk = [next(jobs) for _ in range(CHUNK)]
                    submitted = f.json("submit", "-", stdin=fleet.lines(chunk))
                    batches.append(str(submitted["batch"]))
                else:
                    time.sleep(0.1)
            log = (f.dir / "slurm-0.log").read_text()
            self.assertNotIn("DUE TO TIME LIMIT", log)  # Slurm's message when it must kill
            self.assertGreater(f.metric("loopfleet_jobs_completed_total", outcome="ok"), 0, log)
            self.assertGreater(f.metric("loopfleet_queue_jobs", device="cpu"), 0)
            fleet.wait_until(lambda: f.metric("loopfleet_leased_jobs") == 0, "no job is leased")

            f.start_worker()  # runs the returned jobs
            attempts = []
            for batch in batches:
                waited = f.command("batch", "wait", batch, "--jsonl")
                outcomes = [json.loads(line) for line in waited.stdout.splitlines()]
                self.assertEqual(len(outcomes), CHUNK, waited.stderr)
                attempts += [o["attempts"] for o in outcomes]
            lost = re.findall(r"worker\.lost", (f.dir / "coordinator.log").read_text())
            if lost:
                return False
            self.assertIn("worker.left", (f.dir / "coordinator.log").read_text())
            # A busy host causes retries; the drain causes none.
            retries = f.retries()
            self.assertLessEqual(set(retries), {"UNSTABLE_TIMING"})
            self.assertLessEqual(sum(a - 1 for a in attempts), sum(retries.values()), retries)
            return True


class Script(unittest.TestCase):
    def test_a_request_that_makes_no_sense_never_reaches_slurm(self):
        with SlurmFleet() as f:
            for wrong, said in ((["--time=1"], "no time to work in"),
                                (["--time=soon"], "days-hours"),
                                (["--coordinator=tcp://192.0.2.1:5571"], "keys"),
                                (["--workers=0"], "--workers")):
                done = f.command("fleet", "slurm", *([] if "--workers=0" in wrong else ["--workers=1"]),
                                 *wrong)
                self.assertEqual(done.returncode, 2, done.stderr)
                self.assertIn(said, done.stderr)
            refused = f.command("fleet", "slurm", "--workers=1", "--partition=nowhere")
            self.assertEqual(refused.returncode, 1)
            self.assertIn("nvalid partition", refused.stderr)
            self.assertEqual(cluster.tasks(), {})
            shown = f.command("fleet", "slurm", "--workers=1", "--dry-run")
            self.assertIn("#SBATCH", shown.stdout)
            self.assertEqual(cluster.tasks(), {})


def setUpModule():
    global cluster
    try:
        cluster = SlurmCluster()
    except CannotRun as why:
        print(f"SKIPPED: no Slurm can run here: {why}", file=sys.stderr)
        sys.exit(77)
    unittest.addModuleCleanup(cluster.__exit__)


if __name__ == "__main__":
    fleet.main()
