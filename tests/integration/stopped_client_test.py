"""Clients that stop reading, with thousands of outcomes to come, delay no other client: the coordinator keeps
nothing in memory for them, and when they resume, they get everything."""

import pathlib
import signal
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "support/chaos"))

import arena  # noqa: E402
import fleet  # noqa: E402

STOPPED = 3
TRIES = 10
JOBS = 3000  # in each of their batches
PAGES = 40   # read by other clients meanwhile
# Each stopped client may have one page of 1 MiB in flight; the rest is normal growth.
MOST_GROWTH_BYTES = 64 << 20


def resident_bytes(pid):
    for line in pathlib.Path(f"/proc/{pid}/status").read_text(encoding="utf-8").splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) << 10
    raise RuntimeError(f"process {pid} has no memory")


def is_stopped(pid):
    stat = pathlib.Path(f"/proc/{pid}/stat").read_text(encoding="utf-8")
    return stat.rsplit(")", 1)[1].split()[0] == "T"


class StoppedClientTest(unittest.TestCase):
    def stop_client(self, ring):
        """A client that stands still with outcomes to come, and its history."""
        for _ in range(TRIES):
            process = ring.start_client(jobs=JOBS)
            path = ring.histories[-1]
            fleet.wait_until(lambda: b'"op":"accepted"' in path.read_bytes(), "it submitted")
            process.send_signal(signal.SIGSTOP)
            self.addCleanup(process.send_signal, signal.SIGCONT)
            fleet.wait_until(lambda: is_stopped(process.pid), "it stands still")
            if b'"op":"finished"' not in path.read_bytes():
                return process, path
            ring.kill_client(process)  # it has all already
        self.fail("no client was stopped in time")

    def test_who_does_not_read_holds_up_nobody(self):
        with arena.Arena(transport="tcp", workers=4, credit=16, job_us=500, heartbeat_ms=100) as ring:
            stopped = dict(self.stop_client(ring) for _ in range(STOPPED))
            had = {path: path.read_bytes() for path in stopped.values()}
            before = resident_bytes(ring.coordinator.pid)
            theirs = [batch["batch"] for batch in ring.json("batch", "list")]
            self.assertGreaterEqual(len(theirs), STOPPED)
            ring.start_client(jobs=60)
            others = ring.histories[-1]
            fleet.wait_until(lambda: others.read_bytes().count(b'"op":"finished"') >= PAGES, "others are served")

            def finished():
                batches = ring.json("batch", "list")
                return all(batch["finished"] == batch["jobs"] for batch in batches
                           if batch["batch"] in theirs)
            fleet.wait_until(finished, "their jobs are done, too")
            growth = resident_bytes(ring.coordinator.pid) - before
            self.assertEqual({path: path.read_bytes() for path in stopped.values()}, had, "they stood still")
            for process in stopped:
                process.send_signal(signal.SIGCONT)
            for path in stopped.values():
                fleet.wait_until(lambda path=path: b'"op":"finished"' in path.read_bytes(), "it gets all of it")
            print(f"{STOPPED} clients stood still: the coordinator grew by {growth / 2**20:.1f} MiB; {ring.judge()}")
        self.assertLess(growth, MOST_GROWTH_BYTES)


if __name__ == "__main__":
    fleet.main()
