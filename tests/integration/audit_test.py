"""`loopfleet audit` finds the worker that others contradict. Real processes with a key each, so that workers
on one machine count as different witnesses."""

import json
import re
import sqlite3
import subprocess
import unittest

import fleet

# The faulty worker computes WRONG incorrectly, and runs SLOW with a different schedule.
WRONG = "benchmark://mm-v0/mm67_16_16"
SLOW = "benchmark://mm-v0/mm61_61_61"
GOOD = "benchmark://mm-v0/mm32_32_32"


class Audit(unittest.TestCase):
    def setUp(self):
        self.cluster = fleet.Fleet(workers=0)  # for its directory; its coordinator is replaced
        self.addCleanup(self.cluster.__exit__, None, None, None)
        self.cluster.coordinator.stop()
        self.dir = self.cluster.dir
        self.keys = self.dir / "keys"
        self.database = self.dir / "keyed.db"
        self.keygen("--role", "coordinator", "--out", self.keys)
        self.cluster.coordinator = fleet.Daemon(
            [fleet.program("loopfleet-coordinator"), "--listen-clients", "tcp://127.0.0.1:0",
             "--listen-workers", "tcp://127.0.0.1:0", "--http", "127.0.0.1:0",
             "--db", str(self.database), "--keys", str(self.keys)], self.dir / "keyed.log")
        self.root = self.peer("root", "admin")

    def keygen(self, *arguments):
        subprocess.run([fleet.program("loopfleet"), "keygen", "--json", *map(str, arguments)],
                       check=True, capture_output=True, env=fleet.clean_environment())

    def peer(self, name, role):
        out = self.dir / f"{name}-keys"
        self.keygen("--role", role, "--name", name, "--out", out, "--authorize", self.keys)
        return out

    def start_worker(self, name, program="loopfleet-worker", count=1):
        worker = fleet.Daemon(
            [fleet.program(program), "--coordinator", self.cluster.coordinator.ready["workers"],
             "--http", "127.0.0.1:0", "--keys", str(self.peer(name, "worker"))],
            self.dir / f"worker-{name}.log", {"FAULTY_TIER": "general"})
        self.cluster.workers.append(worker)
        fleet.wait_until(
            lambda: sum(w["state"] == "ready" for w in self.json("worker", "list")) == count,
            f"{name} is ready")
        return worker

    def command(self, *arguments, keys=None, stdin=""):
        return fleet.run([fleet.program("loopfleet"), *arguments], input=stdin,
                         env=fleet.clean_environment(
                             LOOPFLEET_ADDRESS=self.cluster.coordinator.ready["clients"],
                             LOOPFLEET_KEYS=str(keys or self.root)))

    def json(self, *arguments, **options):
        done = self.command(*arguments, "--json", **options)
        self.assertTrue(done.stdout, done.stderr)
        return json.loads(done.stdout)

    def measure(self, *benchmarks):
        """The outcomes in order. Each benchmark is a batch of its own, repeated until it has a figure."""
        return [self.json("eval", benchmark)[0] for benchmark in benchmarks]

    def audit(self, *arguments, expect, tells_odd=False):
        """Repeats the audit while a busy host gives a right kernel no figure, or two right workers different ones."""
        for _ in range(fleet.MEASURING_TRIES):
            done = self.command("audit", "--share", "100%", "--json", *arguments)
            report = json.loads(done.stdout)
            odd_is_told = all(found["odd"] for found in report["disagreements"])
            if report["not_measured"] == 0 and (odd_is_told or not tells_odd):
                break
        self.assertEqual(done.returncode, expect, done.stdout + done.stderr)
        return report

    def flagged(self):
        with sqlite3.connect(f"file:{self.database}?mode=ro", uri=True) as database:
            return {f"{batch}.{index}" for batch, index in database.execute(
                "SELECT o.batch, o.idx FROM suspect_results s JOIN outcomes o ON o.result = s.result")}

    def test_the_worker_that_fails_where_another_does_not_is_found(self):
        faulty = self.start_worker("bad", "loopfleet-worker-faulty")
        wrong, good = self.measure(WRONG, GOOD)
        self.assertEqual(wrong["error"]["code"], "WRONG_OUTPUT")
        self.assertEqual(good["status"], "ok")

        # With a single witness nothing is measured again, and the report says so.
        report = self.audit(expect=0)
        self.assertEqual((report["audited"], report["no_second_host"]), (2, 2), report)
        self.assertEqual(report["batches"], [])
        again, = self.measure(WRONG)
        self.assertEqual(again["source"], "stored")

        # A restarted worker is not another witness.
        faulty.stop()
        fleet.wait_until(lambda: not any(w["state"] == "ready" for w in self.json("worker", "list")),
                         "the worker is gone")
        self.start_worker("good")
        batch = wrong["job"].split(".")[0]
        report = self.audit("--batch", batch, expect=1)
        (found,) = report["disagreements"]
        self.assertEqual([says["witness"] for says in found["says"]], ["bad", "good"])
        self.assertEqual(found["says"][0]["error"]["code"], "WRONG_OUTPUT")
        self.assertIsNone(found["says"][1]["error"])
        self.assertIsNone(found["odd"], "two hosts: nobody can tell")
        self.assertEqual(len(found["flagged"]), 2)
        self.assertEqual(self.flagged(), {found["says"][1]["job"]})

        # The failure no longer answers equal jobs.
        mended, = self.measure(WRONG)
        self.assertEqual(mended["status"], "ok", mended)
        # The audit measured its code already.
        self.assertIn(mended["source"], ("measured", "same_code"))

        # A third host shows which of the two is wrong.
        self.start_worker("other", count=2)
        report = self.audit("--batch", batch, expect=1, tells_odd=True)
        (found,) = report["disagreements"]
        self.assertEqual(found["odd"], wrong["job"])
        self.assertEqual(found["flagged"], [wrong["job"]])
        bad, = (one for one in report["witnesses"] if one["witness"] == "bad")
        self.assertEqual((bad["compared"], bad["disagree"], bad["odd_otherwise"]), (1, 1, 1))

    def test_the_worker_whose_figures_nobody_repeats_is_found(self):
        self.start_worker("bad", "loopfleet-worker-faulty")
        slow, = self.measure(SLOW)
        self.assertEqual(slow["status"], "ok")
        self.start_worker("good", count=2)
        self.start_worker("other", count=3)
        report = self.audit("--batch", slow["job"].split(".")[0], "--seed", "1", expect=1,
                            tells_odd=True)
        self.assertEqual(report["seed"], 1)
        (found,) = report["disagreements"]
        self.assertEqual(found["odd"], slow["job"], found)
        self.assertIn(slow["job"], self.flagged())
        bad, = (one for one in report["witnesses"] if one["witness"] == "bad")
        self.assertEqual(bad["odd_slower"], 1)

        columns = "WITNESS +COMPARED +AGREE +DISAGREE +ODD QUICKER +ODD SLOWER"
        for _ in range(fleet.MEASURING_TRIES):  # a busy host may give the right workers different figures
            text = self.command("audit", "--batch", slow["job"].split(".")[0])
            if re.search(rf"(?s){columns} .*\nbad( +\d+){{4}} +1 ", text.stdout):
                break
        else:
            self.fail(text.stdout)
        self.assertEqual(text.returncode, 1)

        # A client may read but not flag.
        alice = self.peer("alice", "client")
        done = self.command("audit", "--batch", slow["job"].split(".")[0], keys=alice)
        self.assertEqual(done.returncode, 1)
        self.assertIn("an admin's key is needed", done.stderr)

    def test_the_worker_that_miscounts_after_passes_is_found(self):
        self.start_worker("bad", "loopfleet-worker-faulty")
        job = ("benchmark://small-v0/qsort", "--passes", "mem2reg", "--observe", "IrInstructionCount")
        wrong, = self.json("eval", *job)
        self.assertEqual(wrong["status"], "ok", wrong)
        self.start_worker("good", count=2)
        self.start_worker("other", count=3)
        report = self.audit("--batch", wrong["job"].split(".")[0], expect=1)
        (found,) = report["disagreements"]
        self.assertEqual(found["odd"], wrong["job"], found)
        self.assertEqual(found["flagged"], [wrong["job"]])
        self.assertEqual(found["passes"], ["mem2reg"])
        counts = [says["observed"]["IrInstructionCount"] for says in found["says"]]
        self.assertEqual(counts[0] - 1, counts[1])
        self.assertEqual(counts[1], counts[2])
        text = self.command("audit", "--share", "100%", "--batch", wrong["job"].split(".")[0]).stdout
        self.assertIn(f"IrInstructionCount {counts[0]:.1f}", text)

        # It answers equal jobs no more; the answers of the others do.
        mended, = self.json("eval", *job)
        self.assertEqual(mended["observed"]["IrInstructionCount"], counts[1])
        self.assertEqual(mended["source"], "stored")

    def test_what_makes_no_sense_is_a_mistake_of_usage(self):
        for arguments in (["--share", "0%"], ["--share", "two"], ["--since", "1 day"],
                          ["--batch", "1", "--since", "1h"], ["--share", "101%"]):
            self.assertEqual(self.command("audit", *arguments).returncode, 2, arguments)
        # An empty store gives an empty report.
        report = self.audit(expect=0)
        self.assertEqual((report["jobs"], report["audited"]), (0, 0))


if __name__ == "__main__":
    fleet.main()
