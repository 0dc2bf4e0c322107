"""The coordinator dies at each failpoint (common/base/failpoint.h) during work, and its successor continues:
nothing acknowledged is lost, nothing exists twice. The product is built without failpoints."""

import os
import pathlib
import random
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "support/chaos"))

import arena  # noqa: E402
import fleet  # noqa: E402

# Failpoints at the start, and during work.
AT_START = ("store.opened", "store.migrated", "store.epoch_begun", "coordinator.recovered")
AT_WORK = ("coordinator.client_frame", "coordinator.worker_frame", "coordinator.submission_admitted",
           "coordinator.before_persist", "coordinator.before_apply", "store.begun", "store.before_commit",
           "store.after_commit", "coordinator.after_apply", "coordinator.before_reply",
           "coordinator.after_reply", "coordinator.before_leases", "coordinator.after_leases")
ROUNDS = int(os.environ.get("LOOPFLEET_CHAOS_ROUNDS", "3"))
FAULTY = "loopfleet-coordinator-faulty"


class FailpointsTest(unittest.TestCase):
    def test_dying_at_each_moment(self):
        chance = random.Random(arena.seed())
        died = []
        with arena.Arena(coordinator_program=FAULTY, environment={"LOOPFLEET_REATTACH_GRACE_MS": "100"},
                         workers=4, credit=8, job_us=2000, heartbeat_ms=50) as ring:
            for _ in range(2):
                ring.start_client(jobs=60)
            ring.await_dispatching()
            for round_ in range(ROUNDS):
                for point in AT_START:
                    ring.kill_coordinator()
                    with self.assertRaisesRegex(RuntimeError, "not ready"):
                        ring.start_coordinator({"LOOPFLEET_FAILPOINT": f"{point}:1"})
                    died.append(point)
                    ring.epoch += -1 if point in ("store.opened", "store.migrated") else 0
                    ring.start_coordinator()
                for point in AT_WORK:
                    ring.kill_coordinator()
                    count = 1 if round_ == 0 else chance.randrange(2, 30)
                    ring.start_coordinator({"LOOPFLEET_FAILPOINT": f"{point}:{count}"}, may_die=True)
                    code = ring.coordinator.process.wait(fleet.WAIT_LIMIT_S)
                    self.assertEqual(code, -9, f"{point}:{count}")
                    died.append(point)
                    ring.start_coordinator()
                    ring.await_dispatching()
            ring.await_progress()
            counts = ring.judge()  # only the coordinator died, so no job may fail
        print(f"{len(died)} deaths; {counts}")
        self.assertEqual(set(died), set(AT_START + AT_WORK))

    def test_the_list_is_complete(self):
        """The lists above name exactly the failpoints of the source."""
        root = pathlib.Path(__file__).parents[2]
        named = set()
        for folder in ("coordinator", "storage"):
            for source in (root / folder).rglob("*.cc"):
                for part in source.read_text(encoding="utf-8").split('LF_FAILPOINT("')[1:]:
                    named.add(part.split('"')[0])
        self.assertEqual(named, set(AT_START + AT_WORK))

    def test_the_product_has_no_failpoints(self):
        for program, has in (("loopfleet", False), ("loopfleet-coordinator", False),
                             ("loopfleet-worker", False), (FAULTY, True), ("loopfleet-faulty", True)):
            with self.subTest(program=program):
                code = pathlib.Path(fleet.program(program)).read_bytes()
                self.assertEqual(b"LOOPFLEET_FAILPOINT" in code, has)
                self.assertEqual(b"coordinator.before_persist" in code or b"local.started" in code, has)


if __name__ == "__main__":
    fleet.main()
