#!/usr/bin/env python3
"""PostgreSQL goes away for an hour while a coordinator that copies its outcomes there (docs/POSTGRES.md) has a light, steady
load: how long submissions take before, during and after it, how far the copy is behind, and which rows are missing or doubled
in the end. Another coordinator has written there, so that each job that its own results do not answer asks there, too.
Starts a PostgreSQL of its own. Prints the lines of bench/run.sh."""

import argparse
import collections
import functools
import itertools
import json
import math
import os
import pathlib
import statistics
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tests/integration/postgres"), str(ROOT / "tests/integration")]
import fleet  # noqa: E402
from fleet import Fleet  # noqa: E402
from mirror_test import failing_jobs, metric, mirror_once, places_in_sqlite, resident_kb  # noqa: E402
from postgres_server import PostgresServer, programs  # noqa: E402
import result_line  # noqa: E402

ENDED_AT_ONCE, MEASURED, STORED = "4 jobs that fail at once", "a new tree, measured", "a tree measured before"
# A second of the load, over and over.
LOAD = [ENDED_AT_ONCE, MEASURED, ENDED_AT_ONCE, STORED]
CATCHES_UP_WITHIN_S = 600

emit = functools.partial(result_line.emit, "outage")


def tree(number):
    return {"benchmark": f"benchmark://mm-v0/mm{4 + number % 16}_{4 + number // 16 % 16}_{4 + number // 256}", "actions": []}


def file_bytes(database):
    return sum(path.stat().st_size for path in (database, database.with_name(f"{database.name}-wal")) if path.exists())


class Load:
    def __init__(self, running):
        self.running = running
        self.trees = itertools.count()
        self.kinds = itertools.cycle(LOAD)
        self.jobs = 0

    def submit(self):
        """One submission and the wait for its outcomes: its kind, the seconds, and the outcomes' sources."""
        kind = next(self.kinds)
        jobs = {ENDED_AT_ONCE: lambda: failing_jobs(4), MEASURED: lambda: [tree(next(self.trees))],
                STORED: lambda: [tree(0)]}[kind]()
        since = time.perf_counter()
        done, outcomes = self.running.submit(jobs, again_if_unstable=False)
        took = time.perf_counter() - since
        if len(outcomes) != len(jobs):
            raise AssertionError(f"{kind}: {done.stdout}{done.stderr}")
        self.jobs += len(jobs)
        return kind, took

    def run(self, phase, minutes):
        """Submits once a second; the seconds that submissions took, by kind."""
        took = collections.defaultdict(list)
        begin = time.monotonic()
        end = begin + minutes * 60
        while (now := time.monotonic()) < end:
            progress(phase, (now - begin) / (end - begin))
            kind, seconds = self.submit()
            took[kind].append(seconds)
            time.sleep(max(0, min(now + 1, end) - time.monotonic()))
        print(file=sys.stderr)
        return took


def progress(phase, share):
    done = int(share * 40)
    print(f"\r{phase:>8} [{'#' * done}{'.' * (40 - done)}] {100 * share:5.1f} %", end="", file=sys.stderr, flush=True)


def percentile(values, share):
    return sorted(values)[max(0, math.ceil(share * len(values)) - 1)]


def emit_latencies(phases):
    before = phases["before"]
    for phase, took in phases.items():
        for kind, seconds in took.items():
            emit(f"{phase}: {kind}, median", statistics.median(seconds) * 1e3, "ms", "before the outage",
                 statistics.median(before[kind]) * 1e3, submissions=len(seconds), p99=percentile(seconds, 0.99) * 1e3,
                 slowest=max(seconds) * 1e3)


def places_in_postgres(server):
    """Of the newest coordinator."""
    return [tuple(map(int, row)) for row in server.rows(
        "SELECT batch, sequence, index FROM loopfleet.outcomes WHERE coordinator = (SELECT max(id) FROM loopfleet.coordinators)")]


def mirror_of(running):
    (mirror,) = [pid for pid in fleet.processes_mentioning("loopfleet-mirror")
                 if str(running.database) in pathlib.Path(f"/proc/{pid}/cmdline").read_text()]
    return mirror


def measure(server, running, minutes, beside):
    load = Load(running)
    phases = {"before": load.run("before", beside)}
    processes = {"mirror": mirror_of(running), "coordinator": running.coordinator.pid}
    memory = {name: resident_kb(pid) for name, pid in processes.items()}
    bytes_before, jobs_before = file_bytes(running.database), load.jobs

    server.kill()
    since = time.monotonic()
    phases["during"] = load.run("during", minutes)
    waiting = metric(running, "loopfleet_mirror_waiting_outcomes")
    behind = metric(running, "loopfleet_mirror_behind_seconds")
    grown = {name: resident_kb(pid) - memory[name] for name, pid in processes.items()}
    bytes_grown, jobs = file_bytes(running.database) - bytes_before, load.jobs - jobs_before
    server.start()
    away = time.monotonic() - since
    fleet.wait_until(lambda: len(places_in_postgres(server)) >= load.jobs, "the copy", CATCHES_UP_WITHIN_S)
    caught_up = time.monotonic() - since - away
    phases["after"] = load.run("after", beside)
    fleet.wait_until(lambda: len(places_in_postgres(server)) >= load.jobs, "the last rows")

    emit_latencies(phases)
    emit("PostgreSQL away", away, "s", jobs=jobs, load_average=os.getloadavg())
    emit("behind when it came back", behind, "s", waiting_outcomes=waiting)
    emit("until all is copied after it came back", caught_up, "s")
    here, there = (collections.Counter(places) for places in (places_in_sqlite(running.database), places_in_postgres(server)))
    emit("rows missing in PostgreSQL", (here - there).total(), "1", "rows in SQLite", here.total())
    emit("rows doubled in PostgreSQL", there.total() - len(there), "1", "rows in PostgreSQL", there.total())
    emit("rows in PostgreSQL that are not in SQLite", len(there - here), "1")
    emit("database file and its log grew by", bytes_grown, "B", "before the outage", bytes_before, per_job=bytes_grown / jobs)
    for name, kb in grown.items():
        emit(f"memory of the {name} grew by", kb, "kB", "before the outage", memory[name])


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=60, help="of the outage")
    parser.add_argument("--beside", type=float, default=3, help="minutes of load before it, and after it")
    options = parser.parse_args()
    fleet.use_programs(os.environ["LOOPFLEET_BIN"], os.environ["LOOPFLEET_BIN"])
    if programs() is None:
        print(json.dumps({"bench": "outage", "skipped": "PostgreSQL is not installed"}))
        sys.exit()
    with PostgresServer() as server:
        with Fleet(workers=0) as other:
            other.submit(failing_jobs(3))
            mirror_once(other, server)
        with Fleet(coordinator_arguments=["--results", server.url]) as running:
            measure(server, running, options.minutes, options.beside)
