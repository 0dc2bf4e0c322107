"""A Debian 12 root with nothing of this project in it, in memory, for tests of packages. Needs root rights,
mmdebstrap and Debian's archive; without one of them tests are skipped, and say which.

The test runs in mount, process and network namespaces of its own, so that its files, its mounts and its daemons
end with it. Only Python's standard library."""

import contextlib
import ctypes
import os
import pathlib
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
import unittest
import urllib.error
import urllib.request

SOURCE = pathlib.Path(__file__).resolve().parents[2]
ARCHIVE = "http://deb.debian.org/debian"
SUITE = "bookworm"
COMMAND_LIMIT_S = 300
CLONE_NEWNET = 0x40000000
BENCHMARK = "benchmark://mm-v0/mm64_64_64"
APART = ("unshare", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc")
COMPILERS = ("gcc", "cc", "g++", "clang", "clang-19", "as", "ld")
DEVICES = {"null": 3, "zero": 5, "full": 7, "random": 8, "urandom": 9}
# A measurement repeats while the host is too busy for a figure.
MEASURING_TRIES = 10
IN_NAMESPACES = "LOOPFLEET_IN_NAMESPACES"


def unable(needs):
    """Why this system can give no namespaces of their own to tests, or None."""
    if os.geteuid() != 0:
        return "a clean root needs root rights"
    for program in (*needs, "unshare", "chroot"):
        if shutil.which(program) is None:
            return f"{program} is not installed (deploy/dependencies.sh --tests)"
    tried = subprocess.run([*APART, "true"], text=True, capture_output=True)
    return None if tried.returncode == 0 else f"this system gives no namespaces: {tried.stderr.strip()}"


def archive_unreachable():
    """Why Debian's archive cannot be read, or None."""
    try:
        urllib.request.urlopen(f"{ARCHIVE}/dists/{SUITE}/InRelease", timeout=30).close()
    except (urllib.error.URLError, OSError) as error:
        return f"Debian's archive {ARCHIVE} cannot be reached: {error}"
    return None


class InCleanRoot(unittest.TestCase):
    """Tests that are skipped where there can be no clean root. `memory` is a folder in memory."""
    memory = None
    why_not = None

    def setUp(self):
        if self.why_not is not None:
            self.skipTest(self.why_not)


def packages(kind, needs=("mmdebstrap",)):
    """The folder that the command line names. After --make, deploy/release.sh first makes the packages there, of what
    is built. `needs` are programs without which the tests are skipped, in whole (images) or in part."""
    arguments = [argument for argument in sys.argv[1:] if argument != "--make"]
    folder = pathlib.Path(arguments[0]).resolve()
    if IN_NAMESPACES not in os.environ:
        InCleanRoot.why_not = unable(needs) or archive_unreachable()
        if kind == "images" and InCleanRoot.why_not is not None:
            print(f"SKIPPED: {InCleanRoot.why_not}", flush=True)
            sys.exit(77)
        if "--make" in sys.argv:
            started = time.monotonic()
            command(SOURCE / "deploy/release.sh", "--built", "--only", kind, "--out", folder)
            print(f"{kind}: made in {time.monotonic() - started:.1f} s", flush=True)
    return folder


def main():
    """Runs the tests of the calling program, in namespaces of their own where that can be. Exit status 77 says that
    some were skipped, and why."""
    if IN_NAMESPACES in os.environ:
        with memory() as InCleanRoot.memory:
            result = unittest.main(argv=sys.argv[:1], exit=False).result
        sys.exit(not result.wasSuccessful())
    if InCleanRoot.why_not is None:
        done = subprocess.run([*APART, sys.executable, "-B", *sys.argv], env={**os.environ, IN_NAMESPACES: "1"})
        sys.exit(done.returncode)
    result = unittest.main(argv=sys.argv[:1], exit=False).result
    if result.wasSuccessful():
        print(f"SKIPPED: {InCleanRoot.why_not}", flush=True)
        sys.exit(77)
    sys.exit(1)


def command(*parts, **options):
    """Runs a command of this system; its output."""
    done = subprocess.run([str(part) for part in parts], text=True, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, timeout=COMMAND_LIMIT_S, **options)
    if done.returncode != 0:
        raise AssertionError(f"{shlex.join(map(str, parts))}: status {done.returncode}\n{done.stdout[-6000:]}")
    return done.stdout


def leave_network():
    """From here on this process and its children have a loopback interface and nothing else."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.unshare(CLONE_NEWNET) != 0:
        raise OSError(ctypes.get_errno(), "unshare(CLONE_NEWNET)")
    command("ip", "link", "set", "lo", "up")


class Root:
    """A root file system. `folder` is where it is; it lies in memory()."""

    def __init__(self, folder):
        self.folder = pathlib.Path(folder)

    @classmethod
    def bootstrap(cls, folder, include=()):
        """Debian's essential packages, apt, and the packages of `include`."""
        folder = pathlib.Path(folder)
        command("mmdebstrap", "--quiet", "--mode=root", "--variant=apt", "--dpkgopt=force-unsafe-io",
                "--aptopt=APT::Install-Recommends false", "--skip=cleanup/apt/lists",
                *([f"--include={','.join(include)}"] if include else []), SUITE, folder)
        shutil.copy("/etc/resolv.conf", folder / "etc/resolv.conf")
        root = cls(folder)
        root.mount()
        return root

    def mount(self):
        """Gives it the kernel's file systems, and devices of its own: it sees none of this system's files."""
        command("mount", "-t", "proc", "proc", self.folder / "proc")
        command("mount", "-t", "sysfs", "-o", "ro", "sysfs", self.folder / "sys")
        command("mount", "-t", "tmpfs", "-o", "mode=755", "tmpfs", self.folder / "dev")
        for name, minor in DEVICES.items():
            command("mknod", "-m", "666", self.folder / "dev" / name, "c", 1, minor)
        (self.folder / "dev/shm").mkdir()
        (self.folder / "dev/shm").chmod(0o1777)

    def argv(self, parts, user=None):
        userspec = [f"--userspec={user}"] if user else []
        return ["chroot", *userspec, str(self.folder), *map(str, parts)]

    def environment(self, **more):
        return {"PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL": "C.UTF-8",
                "DEBIAN_FRONTEND": "noninteractive", "HOME": "/tmp", **more}

    def run(self, *parts, user=None, **environment):
        return command(*self.argv(parts, user), env=self.environment(**environment), stdin=subprocess.DEVNULL)

    def start(self, *parts, user=None, log=None, **environment):
        """A daemon in it. It ends with this test at the latest."""
        with open(log or self.folder / "tmp" / f"{pathlib.Path(str(parts[0])).name}.log", "ab") as output:
            return subprocess.Popen(self.argv(parts, user), env=self.environment(**environment), stdout=output,
                                    stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL)

    def logs(self):
        return "\n".join(f"--- {log.name}\n{log.read_text(errors='replace')[-3000:]}"
                         for log in sorted((self.folder / "tmp").glob("*.log")))

    def has(self, program):
        return any((self.folder / place / program).exists() for place in ("usr/bin", "usr/local/bin"))

    def outcome(self, *parts, user=None, **environment):
        """Runs `loopfleet eval` until the host is quiet enough for a figure; the figure in GFLOP/s."""
        said = ""
        for _ in range(MEASURING_TRIES):
            done = subprocess.run(self.argv(parts, user), env=self.environment(**environment), text=True,
                                  capture_output=True, timeout=COMMAND_LIMIT_S, stdin=subprocess.DEVNULL)
            said = f"{done.stdout}\n{done.stderr}"
            found = re.search(r"([\d.]+) GFLOP/s", done.stdout)
            if done.returncode == 0 and found:
                return float(found[1])
            if "UNSTABLE_TIMING" not in said:
                break
        raise AssertionError(f"{shlex.join(map(str, parts))}:\n{said}\n{self.logs()}")


@contextlib.contextmanager
def memory():
    """A folder in memory, which only this test sees. Whatever is mounted in it goes with it."""
    folder = tempfile.mkdtemp(prefix="lf-packages-")
    try:
        command("mount", "-t", "tmpfs", "-o", "mode=755,size=4g", "tmpfs", folder)
        try:
            yield pathlib.Path(folder)
        finally:
            command("umount", "--lazy", folder)
    finally:
        os.rmdir(folder)  # empty: never more than that


def wait_for(what, condition, limit_s=120):
    end = time.monotonic() + limit_s
    while not condition():
        if time.monotonic() > end:
            raise AssertionError(f"{what}: not within {limit_s} s")
        time.sleep(0.1)
