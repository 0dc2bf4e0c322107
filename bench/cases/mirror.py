#!/usr/bin/env python3
"""The copy of outcomes in PostgreSQL (docs/POSTGRES.md): rows a second, bytes a row, v_best, beside a COPY of the same rows
into a plain table with the same columns and indices. Starts a PostgreSQL of its own. Prints the lines of bench/run.sh."""

import argparse
import functools
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tests/integration/postgres"), str(ROOT / "tests/integration")]
from postgres_server import PostgresServer, programs  # noqa: E402
import result_line  # noqa: E402

BIN = pathlib.Path(os.environ["LOOPFLEET_BIN"])
PLAIN = ("CREATE TABLE plain (LIKE loopfleet.outcomes INCLUDING DEFAULTS);"
         "ALTER TABLE plain ADD PRIMARY KEY (coordinator, batch, sequence, finished_at);"
         "CREATE INDEX ON plain (tree_key) WHERE elapsed_ns IS NOT NULL")
OUTCOMES_SIZE = ("SELECT sum(pg_total_relation_size(inhrelid)) FROM pg_inherits "
                 "WHERE inhparent = 'loopfleet.outcomes'::regclass")
BEST = "SELECT count(gflop_per_second) FROM loopfleet.v_best"
PLAIN_BEST = ("SELECT count(*) FROM (SELECT DISTINCT ON (benchmark) benchmark FROM plain WHERE elapsed_ns IS NOT NULL "
              "ORDER BY benchmark, elapsed_high_ns) best")

emit = functools.partial(result_line.emit, "mirror")


def seconds(work):
    since = time.perf_counter()
    work()
    return time.perf_counter() - since


def mirror(database, server):
    subprocess.run([str(BIN / "loopfleet-mirror"), "--db", str(database), "--once"], check=True,
                   env={**os.environ, "LOOPFLEET_RESULTS": server.url}, stdout=subprocess.DEVNULL,
                   stderr=subprocess.DEVNULL)


def measure(rows, benchmarks):
    with tempfile.TemporaryDirectory(prefix="lf-bench-") as folder, PostgresServer() as server:
        os.chmod(folder, 0o777)  # PostgreSQL's account copies to and from it
        database, copy = pathlib.Path(folder) / "store.db", pathlib.Path(folder) / "rows"
        subprocess.run([str(BIN / "bench_store"), str(rows), "into", str(database), str(benchmarks)], check=True,
                       stdout=subprocess.DEVNULL)
        took = seconds(lambda: mirror(database, server))
        there = int(server.value("SELECT count(*) FROM loopfleet.outcomes"))
        server.rows(f"COPY (SELECT * FROM loopfleet.outcomes) TO '{copy}'")
        server.rows(PLAIN)
        plain = seconds(lambda: server.rows(f"COPY plain FROM '{copy}'"))
        peer = "COPY of the same rows into a plain table with the same indices, by psql"
        emit(f"outcomes copied, {there} rows, {benchmarks} benchmarks", there / took, "1/s", peer, there / plain)
        size = int(server.value(OUTCOMES_SIZE))
        emit("bytes a row with indices", size / there, "B", "SQLite: the whole database",
             database.stat().st_size / there)
        best = seconds(lambda: server.rows(BEST))
        scan = seconds(lambda: server.rows(PLAIN_BEST))
        emit("all of v_best", best * 1e3, "ms", "the same from the plain table", scan * 1e3,
             benchmarks=int(server.value(BEST)))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--benchmarks", type=int, nargs="+", default=[1, 10_000], help="distinct ones, one run each")
    options = parser.parse_args()
    if programs() is None:
        print(json.dumps({"bench": "mirror", "skipped": "PostgreSQL is not installed"}))
    else:
        for benchmarks in options.benchmarks:
            measure(options.rows, benchmarks)
