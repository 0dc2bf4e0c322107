"""The systemd units: hardened, with flags that the daemons have; and what the daemons say to a service
manager. (No systemd runs here: a socket of ours listens in its place.)"""

import os
import pathlib
import re
import shutil
import signal
import socket
import subprocess
import tempfile
import unittest

import fleet

UNITS = pathlib.Path(__file__).resolve().parents[2] / "deploy" / "systemd"
MOST_EXPOSURE = 2.0


class Units(unittest.TestCase):
    def test_exposure(self):
        if shutil.which("systemd-analyze") is None:
            self.skipTest("systemd-analyze is not installed (Debian: systemd)")
        for unit in sorted(UNITS.glob("*.service")):
            with self.subTest(unit.name):
                done = subprocess.run(["systemd-analyze", "security", "--offline=true", "--no-pager",
                                       str(unit)], text=True, capture_output=True, check=True)
                level = re.search(r"Overall exposure level for \S+: ([\d.]+)", done.stdout)
                self.assertLessEqual(float(level[1]), MOST_EXPOSURE, done.stdout)

    def test_their_flags_are_the_daemons(self):
        units = sorted(UNITS.glob("*.service"))
        self.assertEqual([unit.stem for unit in units], ["loopfleet-coordinator", "loopfleet-worker"])
        for unit in units:
            line = re.search(r"^ExecStart=/usr/local/bin/(\S+) (.*)$", unit.read_text(), re.MULTILINE)
            self.assertEqual(line[1], unit.stem)
            known = subprocess.run([fleet.program(line[1]), "--help"], text=True, capture_output=True,
                                   check=True).stdout
            for flag in re.findall(r"--[a-z-]+", line[2]):
                self.assertIn(f"  {flag} ", known)


class Manager:
    """Where a daemon says what systemd would hear."""

    def __init__(self, folder):
        self.path = f"{folder}/notify"
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.socket.bind(self.path)
        self.socket.settimeout(fleet.WAIT_LIMIT_S)

    def environment(self):
        return {"NOTIFY_SOCKET": self.path, "WATCHDOG_USEC": "1000000"}

    def hear(self, wanted):
        """Waits for a message that begins so."""
        while True:
            text = self.socket.recv(4096).decode()
            if text.startswith(wanted):
                return text


class Notifications(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="lf-notify-")
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.manager = Manager(folder.name)
        self.addCleanup(self.manager.socket.close)

    def start(self, *argv):
        return fleet.Daemon([fleet.program(argv[0]), *argv[1:], "--http", "127.0.0.1:0"],
                            self.folder / "daemon.log", environment=self.manager.environment())

    def test_a_coordinator_is_ready_alive_and_stopping(self):
        daemon = self.start("loopfleet-coordinator", "--listen-clients", f"ipc://{self.folder}/c",
                            "--listen-workers", f"ipc://{self.folder}/w", "--db",
                            str(self.folder / "results.db"))
        self.assertIn(f"clients ipc://{self.folder}/c", self.manager.hear("READY=1\nSTATUS="))
        for _ in range(3):
            self.manager.hear("WATCHDOG=1")
        os.kill(daemon.pid, signal.SIGTERM)
        self.manager.hear("STOPPING=1")
        self.assertEqual(daemon.process.wait(fleet.STOP_LIMIT_S), 0)
        daemon.process.stdout.close()

    def test_a_worker_is_ready_and_alive_also_without_a_coordinator(self):
        daemon = self.start("loopfleet-worker", "--coordinator", f"ipc://{self.folder}/nobody")
        self.manager.hear("READY=1\n")
        for _ in range(3):
            self.manager.hear("WATCHDOG=1")
        self.assertEqual(daemon.stop(), 0)


if __name__ == "__main__":
    fleet.main()
