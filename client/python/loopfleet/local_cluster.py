"""LocalCluster: a coordinator and workers on this machine for the duration of a `with` block."""

from __future__ import annotations

import atexit
import json
import os
import shutil
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

from . import settings
from .client import Client
from .errors import ClusterError

_START_LIMIT_S = 60.0
_STOP_LIMIT_S = 30.0


def find_program(programs: str | os.PathLike | None = None) -> str:
    """The `loopfleet` command: in ``programs``, in LOOPFLEET_BIN, in this package, or in PATH."""
    folder = os.fspath(programs) if programs is not None else os.environ.get("LOOPFLEET_BIN")
    if folder:
        path = Path(folder) / "loopfleet"
        if not os.access(path, os.X_OK):
            raise ClusterError(f"there is no program {path}")
        return str(path)
    bundled = Path(__file__).parent / "bin" / "loopfleet"  # a wheel with the programs has it
    if bundled.exists():
        return str(bundled)
    found = shutil.which("loopfleet")
    if found is None:
        raise ClusterError("the command `loopfleet` is not in PATH: build it (cmake --workflow --preset release, or "
                           "deploy/quickstart.sh) and put build/release/bin into PATH or LOOPFLEET_BIN")
    return found


class LocalCluster:
    """``with LocalCluster(workers=1) as cluster: Client()`` …: clients without an address find it.

    It ends with the block, with the interpreter, and when the interpreter is killed (the kernel
    signals the cluster). If a daemon dies, standard error says which, why, and what it last logged.
    ``database`` keeps the results; otherwise they are removed with the cluster. ``llvm_programs``
    is the workers' folder of bitcode (docs/LLVM.md).

    Each worker times kernels on one core, where nothing else should run. So, unless
    ``leave_timing_cores`` is false, those cores are removed from the affinity of this process's
    threads (the current ones and those that they start) while the cluster runs. On a machine with
    a single core nothing changes.
    """

    def __init__(self, workers: int = 1, *, database: str | os.PathLike | None = None,
                 llvm_programs: str | os.PathLike | None = None, programs: str | os.PathLike | None = None, leave_timing_cores: bool = True):
        self.workers = workers
        self.database = database  # while the cluster runs, the file that it has
        self.address = ""
        self.worker_address = ""
        self.http = ""
        self.coordinator_pid = 0
        self._database = database
        self._llvm_programs = llvm_programs
        self._programs = programs
        self._leave_timing_cores = leave_timing_cores
        self._process: subprocess.Popen | None = None
        self._keeper: threading.Thread | None = None
        self._said: list[str] = []  # by `loopfleet local` until the cluster is up
        self._is_up = threading.Event()
        self._moved: dict[int, tuple[set[int], set[int]]] = {}  # by thread: cores that it left, and got instead
        self._owner = 0

    def start(self) -> LocalCluster:
        """Starts the cluster without `with`; call stop() afterwards."""
        if self._process is not None:
            raise ClusterError("this cluster runs already")
        if self.workers < 0:
            raise ValueError(f"workers must be at least 0, not {self.workers}")
        arguments = [find_program(self._programs), "local", "--json", "--workers", str(self.workers),
                     "--parent", str(os.getpid())]
        if self._database is not None:
            arguments += ["--db", os.fspath(self._database)]
        if self._llvm_programs is not None:
            arguments += ["--llvm-programs", os.fspath(self._llvm_programs)]
        self._said.clear()
        self._is_up.clear()
        started: list[Any] = []
        ready = threading.Event()

        def keep() -> None:
            # For the kernel, a process loses its parent when the thread that started it ends, so
            # this thread lasts as long as the process.
            try:
                process = subprocess.Popen(arguments, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                           stderr=subprocess.PIPE, text=True, errors="replace",
                                           start_new_session=True)
            except OSError as error:
                started.append(error)
                ready.set()
                return
            started.append(process)
            ready.set()
            for line in process.stderr:  # why it does not start; later, which of its processes has died
                if not self._is_up.is_set():
                    self._said.append(line)
                    continue
                try:
                    print(line, end="", file=sys.stderr, flush=True)
                except (OSError, ValueError):
                    pass  # standard error is closed; this thread has to last
            process.wait()

        self._keeper = threading.Thread(target=keep, name="loopfleet-cluster", daemon=True)
        self._keeper.start()
        ready.wait()
        if isinstance(started[0], OSError):
            raise ClusterError(f"cannot start {arguments[0]}: {started[0]}")
        self._process = started[0]
        self._owner = os.getpid()
        atexit.register(self.stop)
        try:
            self._read_endpoints()
            self._is_up.set()
            settings._local_clusters.append(self)
            if self._leave_timing_cores:
                self._leave_cores()
        except BaseException:
            self.stop()
            raise
        return self

    def stop(self) -> None:
        """Ends every process of the cluster and waits for it. Idempotent."""
        if self._process is None or self._owner != os.getpid():
            return  # in a forked process the cluster belongs to the parent
        process, self._process = self._process, None
        atexit.unregister(self.stop)
        if self in settings._local_clusters:
            settings._local_clusters.remove(self)
        self._return_cores()
        if process.poll() is None:
            process.send_signal(signal.SIGTERM)
        assert self._keeper is not None
        self._keeper.join(_STOP_LIMIT_S)
        if self._keeper.is_alive():
            process.kill()  # its children end with it
            self._keeper.join()
        process.stdout.close()
        process.stderr.close()

    def client(self, **options: Any) -> Client:
        """A client of this cluster. ClusterError: it does not run."""
        if self._process is None:
            raise ClusterError("this cluster does not run: use `with LocalCluster() as cluster:`, or start()")
        return Client(self.address, **options)

    def __enter__(self) -> LocalCluster:
        return self.start()

    def __exit__(self, *exc: object) -> None:
        self.stop()

    def __repr__(self) -> str:
        return f"<LocalCluster at {self.address}>" if self._process is not None else "<LocalCluster, not running>"

    @property
    def pid(self) -> int:
        """The pid of `loopfleet local`, the parent of the daemons."""
        if self._process is None:
            raise ClusterError("this cluster does not run")
        return self._process.pid

    def _read_endpoints(self) -> None:
        timer = threading.Timer(_START_LIMIT_S * (1 + self.workers), self._process.kill)
        timer.daemon = True
        timer.start()
        try:
            line = self._process.stdout.readline()
        finally:
            timer.cancel()
        if not line:
            self._keeper.join(_STOP_LIMIT_S)
            said = "".join(self._said).strip()
            raise ClusterError(f"the cluster did not start: {said or 'it said nothing'}")
        endpoints = json.loads(line)
        self.address = endpoints["address"]
        self.worker_address = endpoints["worker_address"]
        self.http = endpoints["http"]
        self.database = endpoints["database"]
        self.coordinator_pid = endpoints["coordinator_pid"]

    def _leave_cores(self) -> None:
        with self.client() as client:
            pids = [worker["pid"] for worker in client.workers(timeout=_START_LIMIT_S)]
        # A worker's own threads avoid its timing core, so their affinity is usable here too.
        allowed = os.sched_getaffinity(0)
        for cores in _affinities(pids).values():
            allowed &= cores
        if not allowed:
            return
        before = _affinities(_threads())
        after = {tid: cores & allowed or allowed for tid, cores in before.items()}
        self._moved = {tid: (cores - after[tid], after[tid] - cores) for tid, cores in before.items()}
        _set_affinities(after)

    def _return_cores(self) -> None:
        # What was changed is undone, rather than an old affinity set, as another cluster may have begun since.
        now = _affinities(_threads())
        moved_to = {frozenset(now[tid]): moved for tid, moved in self._moved.items() if tid in now and moved[0]}
        returned = {}
        for tid, cores in now.items():
            # A thread started since has inherited its affinity.
            if moved := self._moved.get(tid) or moved_to.get(frozenset(cores)):
                left, got = moved
                returned[tid] = cores - got | left
        _set_affinities(returned)
        self._moved = {}


def _threads() -> list[int]:
    if not sys.platform.startswith("linux"):
        return []
    return [int(name) for name in os.listdir("/proc/self/task")]


def _affinities(tids: list[int]) -> dict[int, set[int]]:
    """The affinity of each thread that still exists."""
    found = {}
    for tid in tids:
        try:
            found[tid] = os.sched_getaffinity(tid)
        except ProcessLookupError:
            pass
    return found


def _set_affinities(affinities: dict[int, set[int]]) -> None:
    for tid, cores in affinities.items():
        try:
            os.sched_setaffinity(tid, cores)
        except (ProcessLookupError, OSError):
            pass  # the thread has ended, or the cores are no longer available
