#!/usr/bin/env python3
"""Random faults for a given time, then a check of everything that clients saw:

    tests/integration/soak.py --bin build/release/bin --tests build/release/tests --minutes 60 --survivor worker

Coordinator, workers and clients are killed, suspended and resumed (SIGSTOP), and every connection goes through a
proxy that cuts, delays, discards and reorders. One process, the survivor, is never killed, so that leaks show:
every half minute the faults pause, all submitted jobs finish, and its private memory (with its children's) and
its descriptors are read. After a warm-up of a third of the time its memory must not rise by more than 1 MiB an
hour, besides what a coordinator keeps of each result, nor its descriptors at all. LOOPFLEET_CHAOS_SEED=N repeats
the same faults. Exit status 0: no promise was broken."""

import argparse
import contextlib
import itertools
import json
import os
import pathlib
import random
import signal
import sqlite3
import statistics
import sys
import time
import typing

HERE = pathlib.Path(__file__).parent
sys.path[:0] = [str(HERE), str(HERE.parent / "support/chaos")]

import arena  # noqa: E402
import fleet  # noqa: E402
import history  # noqa: E402
import network_test  # noqa: E402
import tcp_proxy  # noqa: E402

REST_EVERY_S = 30
LEAST_RESTS = 20  # fewer are too few to judge an hour
MOST_MIB_PER_HOUR = 1
# A coordinator keeps the place of each result in 2 bytes (storage/sqlite/result_index/result_keys.h). Its memory rises in
# steps, each time 262,144 of them are sorted: by 1.4 MiB rather than 0.5 MiB.
KEPT_BYTES_PER_RESULT = 6


class Soak:
    """Coordinator, workers and two clients; subclasses say what may be killed."""

    JOBS = 80  # in each batch

    def __init__(self, chance):
        self.chance = chance
        self.ring = arena.Arena(transport="tcp", stubs=False, client_options=self.CLIENTS)
        self.done = {}
        self.proxies = {}
        for name, endpoint in (("workers", self.ring.workers), ("clients", self.ring.clients)):
            host, port = endpoint.removeprefix("tcp://").split(":")
            self.proxies[name] = tcp_proxy.TcpProxy(host, int(port), chance.random())
        self.start_workers()
        self.clients = []
        self.start_clients()

    # -- faults

    def kill_coordinator(self):
        self.ring.kill_coordinator()
        self.ring.start_coordinator()

    def kill_client(self):
        self.ring.kill_client(self.clients.pop(0))
        self.start_client()

    def stand_still(self):
        process = self.chance.choice((self.ring.coordinator.process, self.worker_process()))
        process.send_signal(signal.SIGSTOP)
        time.sleep(5 * self.chance.random())
        process.send_signal(signal.SIGCONT)

    def network(self):
        fault = self.chance.choice(network_test.FAULTS)
        for proxy in self.chance.choice((list(self.proxies.values()), [self.proxies["workers"]],
                                         [self.proxies["clients"]])):
            fault(proxy, self.chance)
            proxy.heal()

    def once(self):
        fault = self.chance.choice(self.FAULTS)
        fault(self)
        self.done[fault.__name__] = self.done.get(fault.__name__, 0) + 1
        self.ring.await_progress()
        time.sleep(self.chance.random())

    # -- between the faults

    def start_client(self):
        self.clients.append(self.ring.start_client(self.proxies["clients"].endpoint, jobs=self.JOBS))

    def start_clients(self):
        for _ in range(2):
            self.start_client()

    def rest(self):
        """Waits until all submitted jobs have finished and freed memory is returned."""
        self.ring.stop_clients()
        self.clients.clear()
        fleet.wait_until(lambda: not self.unfinished(), "every job has finished")
        time.sleep(3)

    def unfinished(self):
        queue = self.ring.json("status")["queue"]
        return sum(queue[part] for part in ("cpu", "cuda", "any", "leased"))

    def judge(self):
        self.rest()
        counts = self.ring.judge(may_fail=self.MAY_FAIL)
        for proxy in self.proxies.values():
            proxy.stop()
        return counts


class StubSoak(Soak):
    """The coordinator survives: null jobs, so that it does most of the work."""

    CLIENTS = None
    MAY_FAIL = ("WORKER_LOST",)

    def start_workers(self):
        self.ring.start_stubs(self.proxies["workers"].endpoint, workers=8, credit=16, job_us=2000,
                              heartbeat_ms=100)

    def worker_process(self):
        return self.ring.stubs.process

    def kill_workers(self):
        self.ring.stubs.process.kill()
        self.ring.stubs.process.wait()
        self.ring.stubs.process.stdout.close()
        self.start_workers()

    def survivor(self):
        return self.ring.coordinator.pid

    def kept_bytes(self):
        with contextlib.closing(sqlite3.connect(f"file:{self.ring.database}?mode=ro", uri=True)) as database:
            (results,) = database.execute("SELECT coalesce(max(id), 0) FROM results").fetchone()
        return KEPT_BYTES_PER_RESULT * results

    FAULTS = (kill_workers, Soak.kill_client, Soak.stand_still, Soak.network, Soak.network)


class NobodySurvives(StubSoak):
    """No survivor: everything is killed."""

    def survivor(self):
        return None

    FAULTS = (Soak.kill_coordinator, *StubSoak.FAULTS)


class WorkerSoak(Soak):
    """A real worker survives: it compiles, verifies and times a real client's jobs, and its children are killed."""

    CLIENTS = {"measured": True, "sizes": 4}  # few programs, so that memory kept per program is used early
    JOBS = 30
    # The kill of a compiler or a kernel's process looks like a job that crashes it.
    MAY_FAIL = ("WORKER_LOST", "UNSTABLE_TIMING", "COMPILE_ERROR", "RUN_CRASH")

    def start_workers(self):
        self.worker = fleet.Daemon([fleet.program("loopfleet-worker"), "--coordinator",
                                    self.proxies["workers"].endpoint, "--http", "127.0.0.1:0"],
                                   self.ring.dir / "worker.log")

    def worker_process(self):
        return self.worker.process

    def kill_child(self):
        # Not the fork server: without it the worker ends, and its service restarts it.
        children = [grandchild for child in children_of(self.worker.pid) for grandchild in descendants(child)]
        if children:
            with contextlib.suppress(ProcessLookupError):  # it may have ended by itself
                os.kill(self.chance.choice(children), signal.SIGKILL)

    def survivor(self):
        return self.worker.pid

    def kept_bytes(self):
        return 0

    def judge(self):
        counts = super().judge()
        if self.worker.stop() != 0:
            raise history.Violation("the worker ended in error")
        return counts

    FAULTS = (kill_child, Soak.kill_coordinator, Soak.kill_client, Soak.stand_still, Soak.network)


def children_of(pid):
    children = []
    for task in pathlib.Path(f"/proc/{pid}/task").glob("*/children"):
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):  # a task that has ended
            children += map(int, task.read_text(encoding="utf-8").split())
    return children


def descendants(pid):
    return [one for child in children_of(pid) for one in (child, *descendants(child))]


def private_kib(pid):
    """Private memory of a process and its share of shared memory, in KiB; 0 once it has ended."""
    try:
        lines = pathlib.Path(f"/proc/{pid}/smaps_rollup").read_text(encoding="utf-8").splitlines()[1:]
    except (FileNotFoundError, ProcessLookupError):
        return 0
    fields = dict(line.split(":") for line in lines)
    return sum(int(fields[name].split()[0]) for name in ("Pss_Anon", "Pss_Shmem"))


class Rest(typing.NamedTuple):
    """The survivor's resources while nothing runs."""

    hours: float  # since the start
    kib: int
    descriptors: int
    kib_of_results: int  # part of `kib`


class Keeping:
    """The survivor's resources at each rest."""

    def __init__(self, pid):
        self.pid = pid
        self.rests = []

    def read(self, hours, kept_bytes):
        if not fleet.alive(self.pid):
            raise history.Violation("the survivor has ended")
        family = [self.pid, *descendants(self.pid)]
        self.rests.append(Rest(hours=hours, kib=sum(map(private_kib, family)),
                               descriptors=len(list(pathlib.Path(f"/proc/{self.pid}/fd").iterdir())),
                               kib_of_results=kept_bytes // 1024))
        return self.rests[-1]

    def verdict(self):
        """The growth, as the median of the slopes between any two rests (Theil-Sen), so that a single outlier does
        not count. Raises Violation if it is too large."""
        rests = self.rests[len(self.rests) // 3:]
        if len(rests) < 2:
            return {"too short to judge": True}

        def slope(kib):
            return statistics.median((kib(b) - kib(a)) / 1024 / (b.hours - a.hours)
                                     for a, b in itertools.combinations(rests, 2))

        mib_per_hour = slope(lambda rest: rest.kib - rest.kib_of_results)
        descriptors = [rest.descriptors for rest in rests]
        half = len(descriptors) // 2
        more_descriptors = statistics.median(descriptors[half:]) - statistics.median(descriptors[:half])
        found = {"rests": len(rests), "mib_per_hour": round(mib_per_hour, 2),
                 "mib_per_hour_with_results": round(slope(lambda rest: rest.kib), 2),
                 "mib": [round(edge(rest.kib for rest in rests) / 1024, 1) for edge in (min, max)],
                 "descriptors": [min(descriptors), max(descriptors)]}
        if len(rests) < LEAST_RESTS:
            return {"too short to judge": True, **found}
        if mib_per_hour > MOST_MIB_PER_HOUR or more_descriptors > 0:
            raise history.Violation(f"the survivor keeps more and more: {found}")
        return found


KINDS = {"coordinator": StubSoak, "worker": WorkerSoak, "nobody": NobodySurvives}


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--bin", required=True)
    parser.add_argument("--tests", required=True)
    parser.add_argument("--minutes", type=float, default=4)
    parser.add_argument("--survivor", choices=KINDS, default="coordinator",
                        help="whose memory and descriptors are watched (default: %(default)s)")
    arguments = parser.parse_args()
    fleet.use_programs(arguments.bin, arguments.tests)
    soak = KINDS[arguments.survivor](random.Random(arena.seed()))
    with soak.ring:
        keeping = Keeping(soak.survivor()) if soak.survivor() else None
        begun = time.monotonic()
        while time.monotonic() < begun + 60 * arguments.minutes:
            soak.ring.await_progress()
            rest_at = time.monotonic() + REST_EVERY_S
            while time.monotonic() < rest_at:
                soak.once()
            soak.rest()
            said = {"minutes": round((time.monotonic() - begun) / 60, 1), **soak.done,
                    "pages": soak.ring.outcomes_seen()}
            if keeping:
                said |= keeping.read((time.monotonic() - begun) / 3600, soak.kept_bytes())._asdict()
            print(json.dumps(said), flush=True)
            soak.start_clients()
        counts = soak.judge()
    if keeping:
        print(json.dumps({"survivor": arguments.survivor, **keeping.verdict()}))
    print(f"no promise was broken: {counts}")


if __name__ == "__main__":
    main()
