"""Kernels that mean harm: whatever they do ends in the right code, every time; the daemon goes on, and
the job behind is measured and right. The kernels are tests/support/faulty_worker/hostile.c; the first
dimension of a matrix product says which one the worker makes instead of the right one."""

import pathlib
import signal
import unittest

import fleet
from fleet import Fleet

RUNS = 20
# A hang costs its limit each time; anything else takes milliseconds.
LIMITS = ("--run-limit-ms", "250", "--compile-limit-ms", "1000")
KINDS = pathlib.Path(__file__).parent.parent / "support/faulty_worker/hostile_kinds.txt"

CRASH, VIOLATION = "RUN_CRASH", "SANDBOX_VIOLATION"
SEGV = (signal.SIGSEGV, signal.SIGBUS)
# kind -> code, and what else is to be found: a signal, or the name of a system call in the message.
EXPECTED = {
    "segv": (CRASH, SEGV),
    "ud2": (CRASH, (signal.SIGILL,)),
    "div0": (CRASH, (signal.SIGFPE,)),
    "infinite_loop": ("RUN_TIMEOUT", None),
    "deep_recursion": (CRASH, SEGV),
    "stack_smash": (CRASH, SEGV),
    "huge_stack": (CRASH, SEGV),
    "alloc_bomb": ("RUN_OOM", None),
    "write_after_1": ("WRONG_OUTPUT", "beside"),
    "write_before_1": ("WRONG_OUTPUT", "beside"),
    "write_after_4k": (CRASH, SEGV),
    "write_before_4k": (CRASH, SEGV),
    "write_after_1m": (CRASH, SEGV),
    "write_before_1m": (CRASH, SEGV),
    "write_after_1g": (CRASH, SEGV),
    "write_before_1g": (CRASH, SEGV),
    "write_inputs": (CRASH, SEGV),
    "write_code": (CRASH, SEGV),
    "jump_into_data": (CRASH, SEGV),
    "exit": (CRASH, None),
    "junk": (CRASH, None),
    "forged_reply": (CRASH, None),
    "close_channel": (VIOLATION, "close"),
    "never_return": ("RUN_TIMEOUT", None),
    "block_signals": ("RUN_TIMEOUT", None),
    "socket": (VIOLATION, "socket"),
    "open": (VIOLATION, "openat"),
    "fork": (VIOLATION, "clone"),
    "exec": (VIOLATION, "execve"),
    "ptrace": (VIOLATION, "ptrace"),
    "kill": (VIOLATION, "kill"),
    "kill_all": (VIOLATION, "kill"),
    "mmap_exec": (VIOLATION, "mmap"),
    "mprotect_exec": (VIOLATION, "mprotect"),
    "prctl": (VIOLATION, "prctl"),
    "io_uring": (VIOLATION, "io_uring_setup"),
    "bpf": (VIOLATION, "bpf"),
    "userfaultfd": (VIOLATION, "userfaultfd"),
    "thread_bomb": (VIOLATION, "clone"),
    "sigaction": (VIOLATION, "rt_sigaction"),
    "set_clock": (VIOLATION, "clock_settime"),
    "raise_limit": (VIOLATION, "prlimit64"),
    "compile_crash": ("COMPILE_ERROR", (signal.SIGABRT,)),
    "compile_hang": ("COMPILE_TIMEOUT", None),
    "compile_bomb": ("COMPILE_OOM", None),
}


def sizes():
    lines = KINDS.read_text(encoding="utf-8").splitlines()
    pairs = (line.split() for line in lines if not line.startswith("#"))
    return {kind: int(size) for size, kind in pairs}


def product(size):
    return {"benchmark": f"benchmark://mm-v0/mm{size}_8_8", "actions": [], "fresh": True}


class HostileKernelTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.cluster = Fleet(workers=1, worker_program="loopfleet-worker-faulty",
                            worker_arguments=LIMITS)
        cls.sizes = sizes()
        cls.worker = cls.cluster.json("worker", "list")[0]
        _, outcomes = cls.cluster.submit([product(16)])
        cls.isolation = outcomes[0]["isolation"]

    @classmethod
    def tearDownClass(cls):
        cls.cluster.__exit__(None, None, None)

    def test_the_table_is_complete(self):
        self.assertEqual(sorted(self.sizes), sorted(EXPECTED))

    def test_every_kind_every_time(self):
        if self.isolation != "seccomp+rlimits":
            self.skipTest(f"this host offers '{self.isolation}' only")
        for kind, (code, more) in EXPECTED.items():
            with self.subTest(kind=kind):
                jobs = []
                for _ in range(RUNS):
                    jobs += [product(self.sizes[kind]), product(16)]
                _, outcomes = self.cluster.submit(jobs)
                outcomes.sort(key=lambda outcome: outcome["index"])
                self.assertEqual(len(outcomes), len(jobs))
                for outcome in outcomes[1::2]:
                    # Verified in any case; a busy host may leave it without a figure.
                    if not fleet.is_unstable(outcome):
                        self.assertEqual(outcome["status"], "ok", outcome)
                for outcome in outcomes[0::2]:
                    self.assertEqual(outcome["status"], "failed", outcome)
                    error = outcome["error"]
                    self.assertEqual(error["code"], code, error)
                    self.assertIsNone(outcome["stages_ns"]["measure"], "it came to the slot")
                    if isinstance(more, str):
                        self.assertIn(more, error["message"])
                    elif more:
                        self.assertIn(error["signal"], more)
        after = self.cluster.json("worker", "list")
        self.assertEqual([(w["worker"], w["pid"]) for w in after],
                         [(self.worker["worker"], self.worker["pid"])], "the same daemon")

    def test_a_million_bodies_are_refused_before_they_are_made(self):
        unrolled = {"benchmark": "benchmark://mm-v0/mm2_1000000_2",
                    "actions": ["down", "down", "unroll"], "fresh": True}
        _, outcomes = self.cluster.submit([unrolled, product(16)] * RUNS)
        outcomes.sort(key=lambda outcome: outcome["index"])
        for outcome in outcomes[0::2]:
            self.assertEqual(outcome["error"]["code"], "LIMIT_UNROLL", outcome)
        for outcome in outcomes[1::2]:
            self.assertEqual(outcome["status"], "ok", outcome)


if __name__ == "__main__":
    fleet.main()
