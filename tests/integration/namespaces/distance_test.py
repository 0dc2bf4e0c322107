"""Workers far away: stub workers in another network namespace, behind a line of 50 ms with 1 % of the packets lost.
All join, and each job has one outcome, a good one. Prints how busy the workers were, and how many were taken for
lost. LOOPFLEET_CHAOS_WORKERS=2000 LOOPFLEET_CHAOS_JOB_S=1 is a large fleet."""

import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import time
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).parents[2] / "support/chaos"))

import arena  # noqa: E402
import fleet  # noqa: E402
import network_namespace  # noqa: E402

HERE, THERE = "10.232.0.1", "10.232.0.2"
WORKERS = int(os.environ.get("LOOPFLEET_CHAOS_WORKERS", "50"))
CREDIT, TURNS = 8, 40
JOB_S = float(os.environ.get("LOOPFLEET_CHAOS_JOB_S", "0.25"))
LINK = pathlib.Path(__file__).parents[2] / "support/chaos/distant_link.py"


class DistanceTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="lf-far-")
        self.addCleanup(folder.cleanup)
        self.dir = pathlib.Path(folder.name)
        self.here, self.there = network_namespace.namespace_for(self), network_namespace.namespace_for(self)
        self.link = subprocess.Popen(
            [sys.executable, str(LINK), str(self.here.pid), HERE, str(self.there.pid), THERE, "--delay-ms", "50",
             "--loss", "0.01", "--seed", str(arena.seed() % 2**32)],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, preexec_fn=fleet.die_with_parent)
        self.addCleanup(self.link.wait)
        self.addCleanup(self.link.kill)
        self.addCleanup(self.link.stdout.close)
        self.addCleanup(self.link.stderr.close)
        if self.link.stdout.readline() != "ready\n":
            self.skipTest(f"NO TUN DEVICES HERE, nothing was tried: {self.link.stderr.read().strip()[-200:]}")

    def test_a_fleet_far_away(self):
        keys = fleet.make_keys(self.dir, alice="client", far="worker")
        log = self.dir / "coordinator.log"
        coordinator = fleet.Daemon(
            [*self.here.inside, fleet.program("loopfleet-coordinator"), "--keys", keys["coordinator"],
             "--listen-clients", f"tcp://{HERE}:0", "--listen-workers", f"tcp://{HERE}:0", "--http", "127.0.0.1:0",
             "--db", str(self.dir / "far.db"), "--log-level", "info"], log)
        self.addCleanup(coordinator.stop)
        begun = time.monotonic()
        stubs = arena.StubFleet(coordinator.ready["workers"], self.dir / "stubs.log", inside=self.there.inside,
                                workers=WORKERS, credit=CREDIT, job_us=int(JOB_S * 1e6), heartbeat_ms=1000,
                                keys=keys["far"])
        self.addCleanup(stubs.process.wait)
        self.addCleanup(stubs.process.kill)
        stubs.await_epoch("all_welcomed", 1, limit_s=300)
        joined = time.monotonic() - begun
        jobs = [{"benchmark": f"benchmark://loop_tool-cpu-v0/{size}", "actions": []} for size in range(1, WORKERS * TURNS + 1)]
        (self.dir / "jobs").write_text(fleet.lines(jobs), encoding="utf-8")
        begun = time.monotonic()
        done = subprocess.run(
            [*self.here.inside, fleet.program("loopfleet"), "submit", str(self.dir / "jobs"), "--wait", "--jsonl"],
            text=True, capture_output=True, timeout=900, check=False,
            env=fleet.clean_environment(LOOPFLEET_ADDRESS=coordinator.ready["clients"], LOOPFLEET_KEYS=keys["alice"]))
        took = time.monotonic() - begun
        self.assertEqual(done.returncode, 0, done.stderr[-2000:])
        outcomes = [json.loads(line) for line in done.stdout.splitlines()]
        self.assertEqual(sorted(outcome["index"] for outcome in outcomes), list(range(len(jobs))))
        self.assertEqual([outcome for outcome in outcomes if outcome["status"] != "ok"], [])
        stubs.stop()
        lost = len(re.findall(r"\bworker\.lost\b", log.read_text(encoding="utf-8")))
        self.link.terminate()
        said = json.loads(self.link.stdout.read())
        print(json.dumps({"workers": WORKERS, "job_s": JOB_S, "joined_s": round(joined, 2), "jobs": len(jobs),
                          "seconds": round(took, 2), "busy_share": round(len(jobs) * JOB_S / (WORKERS * took), 3),
                          "taken_for_lost": lost, "run_again": stubs.again, **said}))
        self.assertGreater(said["lost"], 0)


if __name__ == "__main__":
    fleet.main()
