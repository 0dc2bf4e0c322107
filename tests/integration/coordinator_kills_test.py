"""A coordinator under load is killed 200 times at random moments: nothing acknowledged is lost, nothing
exists twice, and each successor dispatches again. Uses the build with failpoints, because only that can wait
less than the product's second for returning workers: 200 of those are minutes."""

import os
import pathlib
import random
import sys
import time
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "support/chaos"))

import arena  # noqa: E402
import fleet  # noqa: E402

KILLS = int(os.environ.get("LOOPFLEET_CHAOS_KILLS", "200"))


class CoordinatorKillsTest(unittest.TestCase):
    def test_random_kills_under_load(self):
        chance = random.Random(arena.seed())
        with arena.Arena(coordinator_program="loopfleet-coordinator-faulty",
                         environment={"LOOPFLEET_REATTACH_GRACE_MS": "50"}, workers=8, credit=16, job_us=6000, heartbeat_ms=20) as ring:
            for _ in range(3):
                ring.start_client(jobs=250)
            ring.await_dispatching()
            again = []
            for _ in range(KILLS):
                time.sleep(chance.choice((0, 0.003, 0.02, 0.1)) * chance.random())
                ring.kill_coordinator()
                begun = time.monotonic()
                ring.start_coordinator()
                ring.await_dispatching()
                again.append(time.monotonic() - begun)
            ring.await_progress()
            counts = ring.judge()  # only the coordinator died, so no job may fail
        again.sort()
        print(f"{KILLS} kills; {counts}; from start to the first lease: median "
              f"{again[len(again) // 2] * 1000:.0f} ms, longest {again[-1] * 1000:.0f} ms")
        self.assertGreater(counts["outcomes"], KILLS)


if __name__ == "__main__":
    fleet.main()
