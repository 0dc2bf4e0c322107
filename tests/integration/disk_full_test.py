"""A full disk under real daemons: submissions are refused with STORAGE_FULL, workers continue, nothing
accepted is lost, and everything resumes by itself once the disk has room."""

import ctypes
import errno
import json
import os
import sqlite3
import subprocess
import unittest
import urllib.error
import urllib.request

import fleet
from fleet import Fleet, small_jobs, wait_until

JOBS = 60
DISK_BYTES = 6 << 20
LIBC = ctypes.CDLL(None, use_errno=True)


class SmallDiskFleet(Fleet):
    """A fleet with its database on a separate disk of a few MiB."""

    def start_coordinator(self):
        self.disk = self.dir / "disk"
        if not self.disk.exists():
            self.disk.mkdir()
            if LIBC.mount(b"none", str(self.disk).encode(), b"tmpfs", 0,
                          f"size={DISK_BYTES}".encode()) != 0:
                raise unittest.SkipTest("SKIPPED: cannot mount a tmpfs: "
                                        + os.strerror(ctypes.get_errno()))
        self.database = self.disk / "results.db"
        super().start_coordinator()

    def __exit__(self, kind, value, traceback):
        try:
            for daemon in [*self.workers, self.coordinator]:
                if daemon is not None and daemon.process.poll() is None:
                    daemon.kill()
            LIBC.umount2(str(self.disk).encode(), 2)
        finally:
            super().__exit__(kind, value, traceback)

    def fill(self):
        """Fills the disk to the last byte."""
        with open(self.disk / "ballast", "ab", buffering=0) as ballast:
            for size in (1 << 16, 1 << 12):
                try:
                    while True:
                        ballast.write(b"x" * size)
                except OSError as error:
                    if error.errno != errno.ENOSPC:
                        raise

    def make_room(self):
        (self.disk / "ballast").unlink()

    def says(self, path):
        """The HTTP status of a path."""
        try:
            with urllib.request.urlopen(f"http://{self.coordinator.ready['http']}{path}") as page:
                return page.status
        except urllib.error.HTTPError as error:
            return error.code

    def try_to_submit(self, count):
        """Submits large invalid jobs, which need room on the disk but no worker."""
        jobs = [{"benchmark": "benchmark://mm-v0/mm8_8_8", "actions": ["split_1000000"],
                 "tag": "t" * 20000} for _ in range(count)]
        # The client waits for room, as the refusal tells it to; here until its time limit.
        return self.command("--timeout", "5", "submit", "-", stdin=fleet.lines(jobs))


class DiskFullTest(unittest.TestCase):
    def test_refused_by_name_and_resumed(self):
        with SmallDiskFleet() as cluster:
            running = cluster.popen("submit", "-", "--wait", "--jsonl", stdin=subprocess.PIPE,
                                    stdout=subprocess.PIPE, stderr=subprocess.PIPE)
            running.stdin.write(fleet.lines(small_jobs(JOBS)))
            running.stdin.close()
            first = running.stdout.readline()  # the batch is accepted and its jobs run
            self.assertIn("index", json.loads(first))

            # The write-ahead log may have free space for a while.
            cluster.fill()
            accepted = 0

            def refused():
                nonlocal accepted
                done = cluster.try_to_submit(20)
                accepted += done.returncode == 0
                cluster.fill()  # a checkpoint frees space
                return done if "STORAGE_FULL" in done.stderr else None

            done = wait_until(refused, "a submission is refused for want of room")
            self.assertNotEqual(done.returncode, 0)
            self.assertIsNone(cluster.coordinator.process.poll(), "the coordinator goes on")
            self.assertIsNone(cluster.workers[0].process.poll(), "so does the worker")
            wait_until(lambda: cluster.says("/healthz") == 503, "/healthz says so")
            # /livez stays well, because a restart would not free space.
            wait_until(lambda: (cluster.says("/livez"), cluster.says("/healthz")) == (200, 503),
                       "a restart would not help")

            cluster.make_room()
            outcomes = [json.loads(first), *map(json.loads, running.stdout)]
            self.assertIn(running.wait(fleet.COMMAND_LIMIT_S), (0, 1))
            running.stdout.close()
            running.stderr.close()
            self.assertEqual(sorted(outcome["index"] for outcome in outcomes), list(range(JOBS)))
            for outcome in outcomes:
                self.assertTrue(outcome["status"] == "ok" or fleet.is_unstable(outcome), outcome)
            wait_until(lambda: cluster.try_to_submit(1).returncode == 0, "new jobs are accepted")
            wait_until(lambda: cluster.says("/healthz") == 200, "and /healthz says so")
            self.check_rows(cluster)

    def check_rows(self, cluster):
        with sqlite3.connect(f"file:{cluster.database}?mode=ro", uri=True) as database:
            batches = database.execute("SELECT id, job_count FROM batches").fetchall()
            for batch, job_count in batches:
                jobs = database.execute("SELECT count(*) FROM jobs WHERE batch = ?", (batch,))
                self.assertEqual(jobs.fetchone()[0], job_count)
            twice = database.execute("SELECT batch, idx FROM outcomes GROUP BY batch, idx "
                                     "HAVING count(*) > 1").fetchall()
            self.assertEqual(twice, [])
        done = cluster.command("db", "check", str(cluster.database))
        self.assertEqual(done.returncode, 0, done.stderr)


if __name__ == "__main__":
    fleet.main()
