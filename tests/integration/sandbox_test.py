"""Each result states its isolation, and a worker can be told to require all of it.
loopfleet-worker-unfiltered is the worker as on a host that forbids syscall filters."""

import pathlib
import shlex
import subprocess
import tempfile
import unittest

import fleet
from fleet import Fleet

JOB = {"benchmark": "benchmark://mm-v0/mm16_8_8", "actions": []}
EXIT_BAD_CONFIG = 78


def isolation_of(worker_program, *arguments):
    with Fleet(workers=1, worker_program=worker_program, worker_arguments=arguments) as cluster:
        _, outcomes = cluster.submit([JOB])
        return outcomes[0]["isolation"].split(";")[0]  # after the ";": what the host lacks


class SandboxTest(unittest.TestCase):
    def test_full_is_refused_where_calls_cannot_be_filtered(self):
        for device in ([], ["--device", "cuda:0"]):
            done = subprocess.run(
                [fleet.program("loopfleet-worker-unfiltered"), "--require-sandbox", "full",
                 "--coordinator", "tcp://127.0.0.1:1", *device],
                capture_output=True, text=True, timeout=fleet.COMMAND_LIMIT_S, check=False)
            self.assertEqual(done.returncode, EXIT_BAD_CONFIG, done.stderr)
            self.assertIn("--require-sandbox=full", done.stderr)
            self.assertIn("process+rlimits", done.stderr)

    def test_without_filters_results_say_so_and_no_bitcode_is_read(self):
        with Fleet(worker_program="loopfleet-worker-unfiltered") as cluster:
            _, outcomes = cluster.submit([JOB])
            self.assertEqual(outcomes[0]["isolation"].split(";")[0], "process+rlimits")
            (worker,) = cluster.json("worker", "list")
            self.assertIn("kind=probe", worker["labels"])
            self.assertNotIn("kind=passes", worker["labels"])

    def test_what_full_gives(self):
        here = isolation_of("loopfleet-worker")
        if here != "seccomp+rlimits":
            self.skipTest(f"this host offers '{here}' only")
        self.assertEqual(isolation_of("loopfleet-worker", "--require-sandbox", "full"), here)

    def test_root_of_a_namespace_that_has_no_other_user(self):
        if subprocess.run(["unshare", "-r", "true"], capture_output=True, check=False).returncode != 0:
            self.skipTest("this host permits no user namespaces")
        here = isolation_of("loopfleet-worker")
        with tempfile.TemporaryDirectory() as folder:
            worker = pathlib.Path(folder) / "worker-of-one-user"
            worker.write_text(
                f"#!/bin/sh\nexec unshare -r {shlex.quote(str(fleet.program('loopfleet-worker')))} \"$@\"\n")
            worker.chmod(0o755)
            self.assertEqual(isolation_of(str(worker)), here)


if __name__ == "__main__":
    fleet.main()
