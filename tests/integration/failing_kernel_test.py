"""Kernels that crash, hang or are wrong fail with the right code, and the worker continues. The worker is a
test build whose compiler fails on purpose for certain sizes of a dimension."""

import signal
import unittest

import fleet
from fleet import Fleet

# Long enough for right kernels on a busy machine; each hang costs its limit.
LIMITS = ("--run-limit-ms", "10000", "--compile-limit-ms", "20000")
WRONG_OUTPUT, CRASH, HANG = 67, 71, 73
COMPILER_CRASH, COMPILER_HANG, ILLEGAL_INSTRUCTION = 79, 83, 89


def job(size):
    return {"benchmark": f"benchmark://mm-v0/mm{size}_8_8", "actions": []}


class FailingKernelTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.cluster = Fleet(workers=1, worker_program="loopfleet-worker-faulty",
                            worker_arguments=LIMITS)

    @classmethod
    def tearDownClass(cls):
        cls.cluster.__exit__(None, None, None)

    def check(self, size, code):
        worker = self.cluster.json("worker", "list")[0]
        done, outcomes = self.cluster.submit([job(16), job(size), job(24)])
        self.assertEqual(done.returncode, 1, done.stderr)
        by_index = {outcome["index"]: outcome for outcome in outcomes}
        self.assertEqual(sorted(by_index), [0, 1, 2])
        self.assertEqual(by_index[0]["status"], "ok", by_index[0])
        self.assertEqual(by_index[2]["status"], "ok", "the jobs behind it are measured")
        bad = by_index[1]
        self.assertEqual(bad["status"], "failed")
        self.assertEqual(bad["error"]["code"], code, bad["error"])
        for figure in ("elapsed_ns", "gflop_per_second", "spread", "grade"):
            self.assertIsNone(bad[figure], "a failed job has no time")
        self.assertEqual(bad["samples_ns"], [])
        self.assertIsNone(bad["stages_ns"]["measure"], "it was never timed")
        # The same daemon is still running: kernels and compilers run in its children.
        after = self.cluster.json("worker", "list")
        self.assertEqual([(w["worker"], w["pid"]) for w in after],
                         [(worker["worker"], worker["pid"])])
        return bad

    def test_wrong_output_is_reported_and_never_timed(self):
        self.check(WRONG_OUTPUT, "WRONG_OUTPUT")

    def test_a_crash_is_an_outcome(self):
        for size, signals in ((CRASH, (signal.SIGSEGV, signal.SIGBUS)),
                              (ILLEGAL_INSTRUCTION, (signal.SIGILL,))):
            with self.subTest(size=size):
                bad = self.check(size, "RUN_CRASH")
                self.assertIn(bad["error"]["signal"], signals)

    def test_a_hang_is_an_outcome(self):
        self.check(HANG, "RUN_TIMEOUT")

    def test_a_compiler_crash_is_an_outcome(self):
        self.check(COMPILER_CRASH, "COMPILE_ERROR")

    def test_a_compiler_hang_is_an_outcome(self):
        self.check(COMPILER_HANG, "COMPILE_TIMEOUT")


class ForgetFailuresTest(unittest.TestCase):
    def test_a_forgotten_failure_is_measured_again(self):
        with Fleet(workers=1, worker_program="loopfleet-worker-faulty", worker_arguments=LIMITS) as f:
            def source():
                _, (outcome,) = f.submit([job(WRONG_OUTPUT)])
                self.assertEqual(outcome["error"]["code"], "WRONG_OUTPUT", outcome)
                return outcome["source"]

            self.assertEqual([source(), source()], ["measured", "stored"])
            forget = ("db", "forget-failures", str(f.database))
            self.assertEqual(f.command(*forget).returncode, 1, "a coordinator is at work")
            f.coordinator.stop()
            wrong = f.command(*forget, "--code", "WRONG")
            self.assertEqual(wrong.returncode, 2)
            self.assertIn("'WRONG'", wrong.stderr)
            self.assertEqual(f.json(*forget, "--worker", "no-such-worker"), {"forgotten": 0})
            self.assertEqual(f.json(*forget, "--code", "WRONG_OUTPUT"), {"forgotten": 1})
            f.start_coordinator()
            self.assertEqual([source(), source()], ["measured", "stored"])


if __name__ == "__main__":
    fleet.main()
