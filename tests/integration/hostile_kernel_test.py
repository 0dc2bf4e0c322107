"""Hostile kernels: each attack ends in the right failure code every time, the daemon continues, and the next
job is measured and right. The kernels are in tests/support/faulty_worker/hostile.c; the first dimension of a
matrix product selects the one that replaces the right kernel."""

import os
import pathlib
import signal
import unittest

import fleet
from fleet import Fleet

RUNS = int(os.environ.get("LOOPFLEET_HOSTILE_RUNS", "8"))  # of each kind
# Each hang costs its limit, so hangs have their own workers with a short limit for the stage that hangs.
# Everything else takes milliseconds, longer on a busy machine, and must not count as a hang.
SHORT_RUN = ("--run-limit-ms", "250", "--compile-limit-ms", "60000")
SHORT_COMPILE = ("--run-limit-ms", "30000", "--compile-limit-ms", "1000")
LONG_LIMITS = ("--run-limit-ms", "30000", "--compile-limit-ms", "60000")
HANGS = ("RUN_TIMEOUT", "COMPILE_TIMEOUT")
# Code -> the stage that hangs, and its maximum seconds. A verifier that ran other kernels before is tried a
# second time, so two run limits count; the rest is for a busy host, and far below the long limits.
BUSY_S = 10
ENDS_WITHIN = {"RUN_TIMEOUT": ("verify", 2 * 0.25 + BUSY_S), "COMPILE_TIMEOUT": ("compile", 1 + BUSY_S)}
KINDS = pathlib.Path(__file__).parent.parent / "support/faulty_worker/hostile_kinds.txt"

CRASH, VIOLATION = "RUN_CRASH", "SANDBOX_VIOLATION"
SEGV = (signal.SIGSEGV, signal.SIGBUS)
# kind -> code, and further evidence: a signal, or the name of a system call in the message.
EXPECTED = {
    "segv": (CRASH, SEGV),
    "ud2": (CRASH, (signal.SIGILL,)),
    "div0": (CRASH, (signal.SIGFPE,)),
    "infinite_loop": ("RUN_TIMEOUT", None),
    "deep_recursion": (CRASH, SEGV),
    "stack_smash": (CRASH, SEGV),
    "huge_stack": (CRASH, SEGV),
    "alloc_bomb": ("RUN_OOM", None),
    "write_after_1": ("WRONG_OUTPUT", "outside"),
    "write_before_1": ("WRONG_OUTPUT", "outside"),
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
    "forged_timed": (CRASH, None),
    "forged_then_loop": (CRASH, None),
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
# Right during verification, so it reaches the timing slot. The others end before: a forged reply has not the
# number of its request.
TIMED = ("forged_timed",)


def sizes():
    lines = KINDS.read_text(encoding="utf-8").splitlines()
    pairs = (line.split() for line in lines if not line.startswith("#"))
    return {kind: int(size) for size, kind in pairs}


def product(size):
    return {"benchmark": f"benchmark://mm-v0/mm{size}_8_8", "actions": [], "fresh": True}


def is_hang(outcome):
    return outcome["status"] == "failed" and outcome["error"]["code"] in HANGS


class HostileKernelTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.cluster = Fleet(workers=1, worker_program="loopfleet-worker-faulty",
                            worker_arguments=LONG_LIMITS)
        cls.addClassCleanup(cls.cluster.__exit__, None, None, None)
        cls.sizes = sizes()
        _, outcomes = cls.cluster.submit([product(16)])
        cls.isolation = outcomes[0]["isolation"].split(";")[0]

    def test_the_table_is_complete(self):
        self.assertEqual(sorted(self.sizes), sorted(EXPECTED))

    def test_every_kind_every_time(self):
        if self.isolation != "seccomp+rlimits":
            self.skipTest(f"this host offers '{self.isolation}' only")
        kinds = {kind: code for kind, (code, _) in EXPECTED.items()}
        self.check_kinds(self.cluster, [kind for kind in kinds if kinds[kind] not in HANGS
                                        and kind != "forged_then_loop"])

    def test_what_loops_after_its_answer_costs_no_other_job_its_turn(self):
        if self.isolation != "seccomp+rlimits":
            self.skipTest(f"this host offers '{self.isolation}' only")
        with Fleet(workers=1, worker_program="loopfleet-worker-faulty",
                   worker_arguments=("--run-limit-ms", "3000",  # the cost of each
                                     "--compile-limit-ms", "60000")) as cluster:
            self.check_kinds(cluster, ["forged_then_loop"])

    def test_every_hang_every_time(self):
        if self.isolation != "seccomp+rlimits":
            self.skipTest(f"this host offers '{self.isolation}' only")
        for limits, code in ((SHORT_RUN, "RUN_TIMEOUT"), (SHORT_COMPILE, "COMPILE_TIMEOUT")):
            with Fleet(workers=1, worker_program="loopfleet-worker-faulty",
                       worker_arguments=limits) as cluster:
                self.check_kinds(cluster, [kind for kind in EXPECTED if EXPECTED[kind][0] == code])

    def check_good(self, cluster, outcome):
        """Checks the outcome of a good kernel after a bad one: right and measured."""
        if is_hang(outcome):
            # On a busy host a good kernel may exceed the limit, which is short because of the hangs. It
            # passes in one of several tries.
            for _ in range(fleet.MEASURING_TRIES):
                _, (outcome,) = cluster.submit([product(16)])
                if outcome["status"] == "ok":
                    break
        if fleet.is_unstable(outcome):
            # Verified, but without a figure on a busy host. A repetition on the same daemon gets one.
            _, (outcome,) = cluster.submit([product(16)])
        self.assertEqual(outcome["status"], "ok", outcome)

    def check_kinds(self, cluster, kinds):
        worker = cluster.json("worker", "list")[0]
        for kind in kinds:
            code, more = EXPECTED[kind]
            with self.subTest(kind=kind):
                jobs = []
                for _ in range(RUNS):
                    jobs += [product(self.sizes[kind]), product(16)]
                _, outcomes = cluster.submit(jobs, again_if_unstable=False)
                outcomes.sort(key=lambda outcome: outcome["index"])
                self.assertEqual(len(outcomes), len(jobs))
                if kind == "forged_then_loop":  # a fault hangs each good kernel, a busy host hardly one
                    self.assertLessEqual(sum(map(is_hang, outcomes[1::2])), RUNS // 8)
                for outcome in outcomes[1::2]:
                    self.check_good(cluster, outcome)
                for outcome in outcomes[0::2]:
                    self.assertEqual(outcome["status"], "failed", outcome)
                    error = outcome["error"]
                    self.assertEqual(error["code"], code, error)
                    if code in HANGS:
                        stage, limit_s = ENDS_WITHIN[code]
                        self.assertLess(outcome["stages_ns"][stage], limit_s * 1e9, "killed late")
                    measured = outcome["stages_ns"]["measure"]
                    if kind in TIMED:
                        self.assertIsNotNone(measured, "it never came to the slot")
                    else:
                        self.assertIsNone(measured, "it came to the slot")
                    if isinstance(more, str):
                        self.assertIn(more, error["message"])
                    elif more:
                        self.assertIn(error["signal"], more)
        after = cluster.json("worker", "list")
        self.assertEqual([(w["worker"], w["pid"]) for w in after],
                         [(worker["worker"], worker["pid"])], "the same daemon")

    def test_a_loop_of_a_million_iterations_is_unrolled_in_part(self):
        unrolled = {"benchmark": "benchmark://mm-v0/mm2_2_1000000",
                    "actions": ["down", "unroll"], "fresh": True}
        _, outcomes = self.cluster.submit([unrolled, product(16)] * RUNS, again_if_unstable=False)
        outcomes.sort(key=lambda outcome: outcome["index"])
        for outcome in outcomes[0::2]:
            self.check_good(self.cluster, outcome)
            self.assertRegex(outcome["effects"][0], r"^L1 unroll: \d+ of 1000000$")
        for outcome in outcomes[1::2]:
            self.check_good(self.cluster, outcome)


if __name__ == "__main__":
    fleet.main()
