#!/usr/bin/env python3
"""What both stores cost at so many synthetic rows of real width: rows a second, a look-up, a start, bytes a row and the view of
the best, each beside a plain table with the usual indices; over SQLite also the page and an export. SQLite as a coordinator
writes it; PostgreSQL, a server of its own, as loopfleet-mirror fills it from there. Prints the lines of bench/run.sh. Sizes
without room in TMPDIR are refused."""

import argparse
import http.client
import json
import os
import pathlib
import random
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tests/integration/postgres"), str(ROOT / "tests/integration"), str(ROOT / "bench/cases")]
import fleet  # noqa: E402
from mirror import BEST, OUTCOMES_SIZE, PLAIN, PLAIN_BEST, seconds  # noqa: E402
from postgres_server import PostgresServer, programs  # noqa: E402
import result_line  # noqa: E402

BIN = pathlib.Path(os.environ["LOOPFLEET_BIN"])
# Bytes a row, rounded up: SQLite's store beside its plain table and what v_best sorts, then beside PostgreSQL's two tables.
SQLITE, SQLITE_PLAIN, SQLITE_SORTED, POSTGRES = 760, 440, 300, 800
OVERHEAD = 10 << 30  # PostgreSQL's log
BATCH = 1_000  # rows, as bench_scale makes them
# Of PostgreSQL, as docs/POSTGRES.md advises where it has a machine to itself: a quarter of the memory.
SETTINGS = [f"shared_buffers={os.sysconf('SC_PHYS_PAGES') * os.sysconf('SC_PAGE_SIZE') // 4 >> 20}MB", "max_wal_size=8GB"]
LOOKUPS = 20_000
PAGES = 200
PEER = "one plain table with the same indices"


def emit(rows, what, value, unit, peer_value=None, store="PostgreSQL", **details):
    result_line.emit("scale", f"{rows} rows, {store}: {what}", value, unit, None if peer_value is None else PEER, peer_value,
                     **details)


def needed_bytes(rows, stores):
    return OVERHEAD + rows * (SQLITE + max(SQLITE_PLAIN + SQLITE_SORTED, 2 * POSTGRES if "postgres" in stores else 0))


def bench_scale(*arguments):
    subprocess.run([str(BIN / "bench_scale"), *map(str, arguments)], check=True,
                   env={**os.environ, "SQLITE_TMPDIR": tempfile.gettempdir()})


def bar(what, done, total):
    if sys.stderr.isatty():
        filled = int(30 * done / total)
        print(f"\r\033[K{what} [{'#' * filled}{'.' * (30 - filled)}] {done}/{total}", end="\n" if done == total else "",
              file=sys.stderr, flush=True)


def mirror(database, server, total, timed):
    """Copies all outcomes; rows a second of about the last `timed` ones."""
    begun = time.perf_counter()
    seen = [(begun, 0)]
    with subprocess.Popen([str(BIN / "loopfleet-mirror"), "--db", str(database), "--once"], stdout=subprocess.PIPE,
                          text=True, env={**os.environ, "LOOPFLEET_RESULTS": server.url}, stderr=subprocess.DEVNULL) as copying:
        for line in copying.stdout:
            seen.append((time.perf_counter(), json.loads(line)["mirrored"]))
            bar("PostgreSQL", seen[-1][1], total)
    if copying.returncode != 0 or seen[-1][1] != total:
        raise SystemExit(f"loopfleet-mirror ended with {copying.returncode} after {seen[-1][1]} of {total} outcomes")
    end, _ = seen[-1]
    since, before = next(at for at in reversed(seen) if total - at[1] >= timed)
    return (total - before) / (end - since)


def fill_plain(server, folder, total, timed):
    """The plain table with the same rows: all but the last `timed` in the server, those by COPY; rows a second of it."""
    rows, batches = folder / "rows", (total - timed) // BATCH
    server.rows(PLAIN)
    server.rows(f"INSERT INTO plain SELECT * FROM loopfleet.outcomes WHERE batch <= {batches}")
    server.rows(f"COPY (SELECT * FROM loopfleet.outcomes WHERE batch > {batches}) TO '{rows}'")
    took = seconds(lambda: server.rows(f"COPY plain FROM '{rows}'"))
    if int(server.value("SELECT count(*) FROM plain")) != total:
        raise SystemExit("the plain table misses rows")
    return timed / took


def tree_of(row):
    """The tree_key of a synthetic row, as bench/rigs/unique_tree.h makes it."""
    most, state, key = 2**64 - 1, row, b""
    for _ in range(2):
        state = state + 0x9E3779B97F4A7C15 & most
        word = (state ^ state >> 30) * 0xBF58476D1CE4E5B9 & most
        word = (word ^ word >> 27) * 0x94D049BB133111EB & most
        key += (word ^ word >> 31).to_bytes(8, "little")
    return key


def plain_lookup_us(server, folder, rows):
    """Random rows of the plain table by their trees, all in one statement, without the time that psql takes to start."""
    asked = folder / "asked"
    asked.write_text("".join(f"\\\\x{tree_of(random.randrange(rows)).hex()}\n" for _ in range(LOOKUPS)))
    server.rows(f"CREATE TABLE asked (tree_key bytea); COPY asked FROM '{asked}'")
    found = []
    took = seconds(lambda: found.extend(server.rows(
        "SELECT found.* FROM asked CROSS JOIN LATERAL (SELECT * FROM plain p WHERE p.tree_key = asked.tree_key AND "
        "p.elapsed_ns IS NOT NULL ORDER BY p.finished_at DESC LIMIT 1) found")))
    if len(found) != LOOKUPS:
        raise SystemExit(f"the plain table has {len(found)} of {LOOKUPS} rows that were asked for")
    return (took - seconds(lambda: server.rows("SELECT 1"))) / LOOKUPS * 1e6


def measure_page(rows, database, folder):
    """A coordinator's page: its first screen, batches and jobs."""
    begun = time.perf_counter()
    coordinator = fleet.Daemon([str(BIN / "loopfleet-coordinator"), "--db", str(database), "--http", "127.0.0.1:0",
                                "--listen-clients", "tcp://127.0.0.1:0", "--listen-workers", "tcp://127.0.0.1:0"],
                               folder / "coordinator.log")

    def status_of(path):
        connection = http.client.HTTPConnection(coordinator.ready["http"])
        connection.request("GET", path)
        reply = connection.getresponse()
        reply.read()
        connection.close()
        return reply.status

    def milliseconds(path):
        since = time.perf_counter()
        if (status := status_of(path)) != 200:
            raise SystemExit(f"{path}: {status}")
        return (time.perf_counter() - since) * 1e3

    def place():
        return random.randrange(rows // BATCH) + 1, random.randrange(BATCH)

    def ask(what, paths):
        took = [milliseconds(path) for path in paths]
        emit(rows, f"page, {what}", statistics.median(took), "ms", store="SQLite", first_ms=took[0], most_ms=max(took))

    try:
        fleet.wait_until(lambda: status_of("/api/overview") == 200, "the first screen")
        emit(rows, "from a start to the first screen", time.perf_counter() - begun, "s", store="SQLite")
        ask("the first screen", ["/api/overview"] * PAGES)
        ask("a batch", [f"/api/batch/{place()[0]}" for _ in range(PAGES)])
        ask("a job", ["/api/job/{}.{}".format(*place()) for _ in range(PAGES)])
    finally:
        coordinator.stop()


def measure_export(rows, database, folder):
    files = folder / "files"
    took = seconds(lambda: subprocess.run(
        [sys.executable, "-m", "loopfleet.export", str(files), "--db", str(database), "--follow", "--once"], check=True,
        stdout=subprocess.DEVNULL))
    size = sum(each.stat().st_size for each in files.rglob("*.parquet"))
    emit(rows, "export as Parquet", rows / took, "1/s", store="SQLite", bytes_a_row=size / rows)
    shutil.rmtree(files)


def measure_postgres(rows, settings, database, folder):
    timed = max(BATCH, min(rows // 10 // BATCH * BATCH, 200_000))
    with PostgresServer(settings) as server:
        begun = time.perf_counter()
        copied = mirror(database, server, rows, timed)
        emit(rows, "ingest of all rows", rows / (time.perf_counter() - begun), "1/s", settings=settings)
        emit(rows, "ingest of the last rows", copied, "1/s", fill_plain(server, folder, rows, timed), timed=timed)
        emit(rows, "bytes a row", int(server.value(OUTCOMES_SIZE)) / rows, "B",
             int(server.value("SELECT pg_total_relation_size('plain')")) / rows)
        server.rows("ANALYZE plain")
        server.stop()
        emit(rows, "start of the server", seconds(server.start), "s")
        bench_scale("--rows", rows, "postgres", server.url)
        emit(rows, "look-up of any row in the plain table", plain_lookup_us(server, folder, rows), "us")
        emit(rows, "all of v_best", seconds(lambda: server.rows(BEST)) * 1e3, "ms",
             seconds(lambda: server.rows(PLAIN_BEST)) * 1e3, benchmarks=int(server.value(BEST)))


def measure(rows, benchmarks, stores, settings):
    needed, free = needed_bytes(rows, stores), shutil.disk_usage(tempfile.gettempdir()).free
    if needed > free:
        print(json.dumps({"bench": "scale", "case": f"{rows} rows", "refused": "the disk is too small",
                          "folder": tempfile.gettempdir(), "needed_bytes": needed, "free_bytes": free}), flush=True)
        return False
    with tempfile.TemporaryDirectory(prefix="lf-bench-") as name:
        folder = pathlib.Path(name)
        os.chmod(folder, 0o777)  # PostgreSQL's account copies to and from it
        bench_scale("--rows", rows, "--benchmarks", benchmarks, "sqlite", folder)
        (folder / "plain.db").unlink()
        if "sqlite" in stores:
            measure_page(rows, folder / "store.db", folder)
            measure_export(rows, folder / "store.db", folder)
        if "postgres" in stores:
            measure_postgres(rows, settings, folder / "store.db", folder)
    return True


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, nargs="+", default=[1_000_000], help="one run each")
    parser.add_argument("--benchmarks", type=int, default=10_000, help="different ones")
    parser.add_argument("--stores", choices=["sqlite", "postgres"], nargs="+", default=["sqlite", "postgres"],
                        help="PostgreSQL is filled from SQLite; without sqlite its page and export are left out")
    parser.add_argument("--settings", nargs="*", default=SETTINGS, metavar="NAME=VALUE",
                        help="of PostgreSQL; default: %(default)s")
    options = parser.parse_args()
    if any(rows < BATCH or rows % BATCH for rows in options.rows):
        parser.error(f"--rows: a multiple of {BATCH}")
    if "postgres" in options.stores and programs() is None:
        parser.error("PostgreSQL is not installed: --stores sqlite")
    measured = [measure(rows, options.benchmarks, options.stores, options.settings) for rows in options.rows]
    sys.exit(0 if all(measured) else 1)
