"""The daemons under a service manager such as systemd: they report when they are ready and when they stop,
and feed the watchdog meanwhile."""

import os
import pathlib
import shutil
import signal
import socket
import tempfile
import unittest

import fleet
from fleet import Daemon, program


class NotifySocket:
    """The socket on which systemd listens to a service of Type=notify."""

    def __init__(self, folder):
        self.path = str(folder / "notify")
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.socket.bind(self.path)
        self.socket.settimeout(fleet.WAIT_LIMIT_S)

    def environment(self, watchdog_us):
        # Without $WATCHDOG_PID, because the pid is unknown before the process starts.
        return {"NOTIFY_SOCKET": self.path, "WATCHDOG_USEC": str(watchdog_us)}

    def hear(self):
        return self.socket.recv(100).decode()


class Service(unittest.TestCase):
    def setUp(self):
        self.dir = pathlib.Path(tempfile.mkdtemp(prefix="lf-service-"))
        self.notify = NotifySocket(self.dir)

    def tearDown(self):
        self.notify.socket.close()
        shutil.rmtree(self.dir)

    def check(self, argv):
        daemon = Daemon(argv, self.dir / "daemon.log", self.notify.environment(50_000))
        try:
            # The watchdog may be fed before the daemon is ready, but not after it begins to stop.
            heard = [self.notify.hear()]
            while heard[-1] != "READY=1":
                heard.append(self.notify.hear())
            self.assertLessEqual(set(heard), {"READY=1", "WATCHDOG=1"})
            for _ in range(3):
                self.assertEqual(self.notify.hear(), "WATCHDOG=1")
            os.kill(daemon.pid, signal.SIGTERM)
            while (last := self.notify.hear()) == "WATCHDOG=1":
                pass
            self.assertEqual(last, "STOPPING=1")
            self.assertEqual(daemon.process.wait(fleet.STOP_LIMIT_S), 0)
        finally:
            daemon.kill()

    def test_the_coordinator(self):
        self.check([program("loopfleet-coordinator"), "--listen-clients", f"ipc://{self.dir}/c",
                    "--listen-workers", f"ipc://{self.dir}/w", "--http", "127.0.0.1:0",
                    "--db", str(self.dir / "results.db")])

    def test_the_worker(self):
        with fleet.Fleet(workers=0) as f:
            self.check([program("loopfleet-worker"), "--coordinator", f.worker_address,
                        "--http", "127.0.0.1:0"])


if __name__ == "__main__":
    fleet.main()
