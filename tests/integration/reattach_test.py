"""A coordinator is killed while a fleet works, with the product's settings: a heartbeat a second, three
seconds of tolerated silence. Surviving workers keep their jobs, whether the next coordinator starts at once,
after the two seconds of deploy/systemd, or after workers have given up the connection."""

import json
import pathlib
import signal
import subprocess
import sys
import tempfile
import time
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "support/chaos"))

import arena  # noqa: E402
import fleet  # noqa: E402
import tcp_proxy  # noqa: E402

LIVE = 34
HEARTBEAT_MS = 1000  # limits.h
# Longer than any test: the test ends these jobs itself.
LONG_JOB_US = 600 * 1_000_000
# For the other workers. Long enough that a worker that returns a little late, on a machine that stalled, finds
# its job still running elsewhere: a finished job cannot be kept.
SHORT_JOB_US = 4_000_000
TRIES = 3


def jobs(first, count):
    """`count` jobs with different trees, from number `first` on."""
    return [{"benchmark": f"benchmark://mm-v0/mm{1 + i % 20}_{1 + i // 20 % 20}_{1 + i // 400}", "actions": [],
             "tag": i} for i in range(first, first + count)]


class ReattachTest(unittest.TestCase):
    def submit(self, ring, what, *arguments):
        source = tempfile.TemporaryFile("w+")
        source.write(fleet.lines(what))
        source.seek(0)
        with source:
            return subprocess.Popen(
                [fleet.program("loopfleet"), "submit", "-", *arguments], stdin=source, text=True,
                stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, preexec_fn=fleet.die_with_parent,
                env=ring.client_environment())

    def start_live(self, ring, address=None):
        """Starts a fleet in which each worker has one job of batch 1, which ends on request. Returns the fleet,
        the jobs, and the command that waits for them."""
        live = ring.start_stubs(address, workers=LIVE, credit=1, job_us=LONG_JOB_US, heartbeat_ms=HEARTBEAT_MS,
                                tell_leases=True)
        waits = self.submit(ring, jobs(0, LIVE), "--wait", "--jsonl")
        self.addCleanup(waits.kill)

        def taken():
            live.listen()
            return len(live.jobs["taken"])
        fleet.wait_until(lambda: taken() == LIVE, "every worker has a job")
        return live, sorted(live.jobs["taken"]), waits

    def start_others(self, ring, job_us, workers=6):
        """Starts other workers, with free credit and far more jobs than they can finish."""
        others = ring.start_stubs(workers=workers, credit=2, job_us=job_us, heartbeat_ms=HEARTBEAT_MS, tell_leases=True)
        queued = self.submit(ring, jobs(LIVE, 3000))
        queued.communicate(timeout=fleet.COMMAND_LIMIT_S)
        self.assertEqual(queued.returncode, 0)
        others.await_epoch("leased", ring.epoch)
        return others

    def expect_kept(self, live, held, waits):
        """Ends the jobs and checks that each ran once, on the worker that had it from the beginning."""
        live.process.send_signal(signal.SIGUSR1)
        said, _ = waits.communicate(timeout=fleet.COMMAND_LIMIT_S)
        outcomes = [json.loads(line) for line in said.splitlines()]
        live.listen()
        self.assertEqual([job for job in live.jobs["taken_away"] if job in held], [])
        self.assertEqual(sorted(job for job in live.jobs["taken"] if job in held), held, "each ran once")
        self.assertEqual(len(outcomes), LIVE)
        self.assertEqual([o for o in outcomes if o["status"] != "ok" or o["attempts"] != 1], [])
        self.assertEqual(waits.returncode, 0)

    def check(self, outages_s, keyed):
        for left in reversed(range(TRIES)):
            with arena.Arena(transport="tcp", stubs=False, keyed=keyed) as ring:
                try:
                    return self.check_once(ring, outages_s)
                except (AssertionError, TimeoutError):
                    # On a busy host a worker falls silent and rightly loses its job.
                    if left == 0 or "worker.lost" not in (ring.dir / "coordinator.log").read_text():
                        raise

    def check_once(self, ring, outages_s):
        live, held, waits = self.start_live(ring)
        others = self.start_others(ring, SHORT_JOB_US, workers=24)
        for outage_s in outages_s:
            ring.kill_coordinator()
            time.sleep(outage_s)
            ring.start_coordinator()
            live.await_epoch("all_welcomed", ring.epoch)
            others.await_epoch("leased", ring.epoch)
        others.listen()
        handed_out = [job for job in others.jobs["taken"] if job in held]
        print(f"{len(outages_s)} restarts, {LIVE} workers that live on: {len(handed_out)} times a job of theirs "
              "was given to others")
        # A job revoked in time costs little, but should be an exception.
        self.assertLess(len(handed_out), LIVE * len(outages_s) / 2)
        self.expect_kept(live, held, waits)

    def test_who_lives_on_keeps_its_job(self):
        self.check((0, 2, 5), keyed=False)

    def test_with_keys(self):
        self.check((0, 2), keyed=True)

    def test_who_comes_back_late_goes_on(self):
        """After the coordinator's wait: other workers have begun the jobs and lose them again."""
        with arena.Arena(transport="tcp", stubs=False) as ring:
            host, port = ring.workers.removeprefix("tcp://").split(":")
            proxy = tcp_proxy.TcpProxy(host, int(port))
            self.addCleanup(proxy.stop)
            live, held, waits = self.start_live(ring, proxy.endpoint)
            proxy.hold_new = True
            ring.kill_coordinator()
            ring.start_coordinator()
            others = self.start_others(ring, LONG_JOB_US)

            def begun():
                others.listen()
                return [job for job in others.jobs["taken"] if job in held]
            fleet.wait_until(begun, "others begin their jobs")
            proxy.hold_new = False
            live.await_epoch("all_welcomed", ring.epoch)
            print(f"{len(begun())} of {LIVE} jobs were begun by others before their workers were back")
            fleet.wait_until(lambda: sorted(begun()) == sorted(
                job for job in others.jobs["taken_away"] if job in held), "what others began is taken from them")
            self.expect_kept(live, held, waits)


if __name__ == "__main__":
    fleet.main()
