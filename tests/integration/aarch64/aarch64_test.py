"""A worker on another architecture: built for AArch64, on an emulated machine, with keys, in its sandbox.
Jobs go from submission to outcome. An emulator has no speed of its own: figures are not looked at."""

import argparse
import json
import pathlib
import subprocess
import sys
import unittest

FOLDER = pathlib.Path(__file__).parent
ROOT = FOLDER.parents[2]
sys.path.insert(0, str(FOLDER.parent))

import emulated_machine  # noqa: E402
import fleet  # noqa: E402
import security_test  # noqa: E402

WORKER = ROOT / "build/aarch64/bin/loopfleet-worker"
SYSROOT = ROOT / "build/aarch64-sysroot"
SKIPPED = 77
READY_LIMIT_S = 300
COMMAND_LIMIT_S = 300
# Every 40th walk of the corpus, up to 20 actions each, without the sets that an emulator takes minutes for.
CORPUS = ROOT / "bench/corpus/agent_walks.jsonl"
EVERY = 40
TOO_LARGE = ("mm512", "mm1024", "conv")


class AArch64Worker(security_test.KeyedFleet):
    def setUp(self):
        super().setUp()
        self.alice = self.peer("alice")
        node = self.peer("node", "worker")
        port = self.worker_address.rsplit(":", 1)[1]
        self.machine = emulated_machine.EmulatedMachine(
            WORKER,
            ["--coordinator", f"tcp://{emulated_machine.HOST_ADDRESS}:{port}", "--keys", "/keys",
             "--require-sandbox", "full", "--host", "emulated",
             "--compile-limit-ms", "60000", "--run-limit-ms", "60000"],
            SYSROOT, self.dir, {f"keys/{file.name}": file.read_bytes() for file in node.iterdir()})
        self.addCleanup(self.machine.stop)

    def loopfleet(self, *arguments, stdin=""):
        return fleet.run([fleet.program("loopfleet"), *arguments], input=stdin, timeout=COMMAND_LIMIT_S,
                         env=fleet.clean_environment(LOOPFLEET_ADDRESS=self.address, LOOPFLEET_KEYS=str(self.alice)))

    def await_worker(self):
        def ready():
            self.assertIsNone(self.machine.process.poll(), self.machine.log.read_text())
            return [worker for worker in self.workers_as(self.alice) if worker["state"] == "ready"]
        try:
            return fleet.wait_until(ready, "the worker registered", READY_LIMIT_S)[0]
        except TimeoutError:
            self.fail(self.machine.log.read_text())

    def test_from_submission_to_outcome(self):
        worker = self.await_worker()
        self.assertIn("isa=aarch64", worker["labels"])
        self.assertNotIn("kind=passes", worker["labels"])  # its C programs would be others

        done = self.loopfleet("eval", "benchmark://mm-v0/mm64_64_64", "--actions", "down,split_8", "--json")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        (outcome,) = json.loads(done.stdout)
        self.assertEqual(outcome["hardware"]["isa"], "aarch64")
        self.assertEqual(outcome["hardware"]["host"], "emulated")

        lines = [line for line in CORPUS.read_text().splitlines()[::EVERY]
                 if json.loads(line)["tag"] not in TOO_LARGE]
        self.assertGreater(len(lines), 20)
        done = self.loopfleet("submit", "-", "--wait", "--jsonl", stdin="\n".join(lines) + "\n")
        outcomes = [json.loads(line) for line in done.stdout.splitlines()]
        self.assertEqual(len(outcomes), len(lines), done.stderr)
        wrong = [outcome for outcome in outcomes if outcome["status"] != "ok"]
        self.assertEqual(wrong, [])

        done = self.loopfleet("eval", "probe://peaks-v0", "--json")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        (outcome,) = json.loads(done.stdout)
        self.assertGreater(outcome["observed"]["flop_per_second"], 0)

        def profile(depth):
            line = json.dumps({"benchmark": "benchmark://mm-v0/mm64_64_64", "actions": [], "profile": depth})
            done = self.loopfleet("submit", "-", "--wait", "--jsonl", stdin=line + "\n")
            return json.loads(done.stdout)
        self.assertEqual(profile("roots")["error"]["code"], "UNSUPPORTED")
        lines = profile("lines")
        self.assertEqual(lines["status"], "ok", lines)


if __name__ == "__main__":
    lacks = emulated_machine.missing(SYSROOT)
    if lacks:
        print(f"NOT TESTED: a worker for AArch64 needs {lacks}")
        sys.exit(SKIPPED)
    for command in (["cmake", "--preset", "aarch64"], ["cmake", "--build", "--preset", "aarch64"]):
        subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.DEVNULL)  # nothing, after tests/run.sh
    fleet.main()
