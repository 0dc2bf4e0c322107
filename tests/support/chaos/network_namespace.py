"""NetworkNamespace: a network of its own for the processes that run in it."""

import pathlib
import shutil
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parents[2] / "integration"))

import fleet  # noqa: E402


class Unavailable(Exception):
    """Why this machine has none."""


def namespace_for(test):
    """One that ends with the test, which is skipped where there is none."""
    try:
        made = NetworkNamespace()
    except Unavailable as why:
        test.skipTest(str(why))
    test.addCleanup(made.close)
    return made


class NetworkNamespace:
    """Ends with this process, or with close(). Its `lo` is up."""

    def __init__(self):
        for tool in ("unshare", "nsenter", "ip"):
            if shutil.which(tool) is None:
                raise Unavailable(f"THERE IS NO {tool} HERE, nothing was tried")
        ours = pathlib.Path("/proc/self/ns/net").readlink()
        self.holder = subprocess.Popen(["unshare", "-n", "sleep", "infinity"], stderr=subprocess.PIPE, text=True,
                                       preexec_fn=fleet.die_with_parent)

        def is_there():
            if self.holder.poll() is not None:
                why = self.holder.stderr.read().strip()
                self.close()
                raise Unavailable(f"NO NETWORK NAMESPACES HERE, nothing was tried: {why}")
            try:
                return pathlib.Path(f"/proc/{self.holder.pid}/ns/net").readlink() != ours
            except OSError:  # the process is ending
                return False
        fleet.wait_until(is_there, "the namespace is there")
        self.ip("link", "set", "lo", "up")

    @property
    def pid(self):
        return self.holder.pid

    @property
    def inside(self):
        """What a command that runs in it begins with."""
        return ["nsenter", "-t", str(self.pid), "-n"]

    def ip(self, *arguments):
        done = subprocess.run([*self.inside, "ip", *arguments], text=True, capture_output=True, check=False)
        if done.returncode != 0:
            raise Unavailable(f"`ip {' '.join(arguments)}` FAILS HERE, nothing was tried: {done.stderr.strip()}")

    def close(self):
        self.holder.kill()
        self.holder.wait()
        self.holder.stderr.close()
