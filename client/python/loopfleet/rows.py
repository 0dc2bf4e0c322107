"""Rows of a data set: one flat row per outcome, with its hardware and compiler. From a database
file or from a coordinator; both give the same fields, except that a coordinator gives no
SUSPECT."""

from __future__ import annotations

import hashlib
import json
import sqlite3
import subprocess
from collections.abc import Iterable, Iterator
from datetime import datetime, timezone
from functools import lru_cache
from pathlib import Path
from typing import Any
from urllib.parse import quote

import numpy as np

from . import _core
from .client import Client
from .errors import LoopfleetError
from .local_cluster import find_program
from .results import FAILURE_NAMES

# Name -> meaning, in the order of the columns. Figures of rows whose status is not "ok" are null.
FIELDS: dict[str, str] = {
    "benchmark": "URI, or null where a whole program was sent",
    "ir": "that program as loop_tool's IR text; null where there is a URI",
    "program": "hash of what is computed, whatever the schedule: equal programs are equal here",
    "region": "the program's shape to the power of two: operations and ceil(log2(size)) of each dimension",
    "actions": "list of action names, as submitted",
    "tree_key": "hash of program and loops; null if the job failed before the tree was known",
    "status": "\"ok\", or the failure's code",
    "message": "why it failed; null if it did not",
    "action_index": "0-based index of the action to blame, if any",
    "gflops": "10^9 floating-point operations per second",
    "elapsed_ns": "median time of one run, nanoseconds",
    "elapsed_low_ns": "lower end of the interval of about 95 % round the median",
    "elapsed_high_ns": "upper end of it",
    "elapsed_min_ns": "fastest sample",
    "elapsed_mean_ns": "mean of the accepted samples",
    "spread": "(high - low) / (2 * median)",
    "grade": "A within 1 %, B within 5 %, C worse",
    "samples_ns": "list: each timed batch's time divided by its iterations, flagged ones included",
    "sample_flags": "list: 0 accepted, bit 0 contended, bit 1 preempted, bit 2 throttled, bit 3 apart",
    "samples_before_thinning": "how many samples there were before retention took some away; null: all are there",
    "iterations_per_sample": "runs in each timed batch",
    "flop_count": "floating-point operations of one run",
    "scratch_bytes": "bytes of intermediate buffers",
    "threads": "that the kernel might use",
    "cache": "\"warm\" or \"cold\" when a timed run starts",
    "policy": "of measuring",
    "isolation": "how the kernel was kept apart",
    "worker": "who measured it",
    "hardware_class": "results are shared within a class",
    "hardware_model": "processor",
    "isa": "instruction set that was compiled for",
    "microcode": "of the processor",
    "reference_clock_mhz": "the clock that times are stated at",
    "peak_gflops": "the device's measured peak",
    "clock_before_mhz": "of the core right before timing",
    "clock_after_mhz": "of the core right after timing",
    "llvm": "version of the compiler",
    "tier": "of the compiler",
    "lowering": "revision of the lowering",
    "code_hash": "digest of the object code",
    "source": "measured, same_code (another tree had the same machine code, measured before), stored (an equal "
              "request had been answered) or coalesced (one was under way); null: no worker had it",
    "attempts": "times the job was leased",
    "suspect": "why the figure is not trusted any more; null: it is",
    "tag": "the submitter's own JSON text",
    "batch": "the job's batch",
    "index": "its place in the batch",
    "finished_at": "ISO 8601, UTC",
}

# Coordinators do not report it, so their rows lack this field: null would mean "trusted".
SUSPECT = "suspect"

Row = dict[str, Any]


@lru_cache(maxsize=65536)
def program_of(benchmark: str | None, ir: str | None) -> tuple[str | None, str | None]:
    """(program, region) of a benchmark or IR text; (None, None) if it is invalid."""
    try:
        form = _core.Walk(benchmark=benchmark or "", ir=ir or "").canonical_form
    except _core.JobError:
        return None, None
    lines = form.splitlines()
    end = next(i for i, line in enumerate(lines) if line.startswith("out"))
    program = "\n".join(lines[1:end + 1])
    return hashlib.sha256(program.encode()).hexdigest()[:32], _region(lines[1:end - 1])


def _region(nodes: list[str]) -> str:
    operations, sizes = [], {}
    for node in nodes:
        operations.append(node.split("(", 1)[0])
        for dim in node[node.index("[") + 1:node.index("]")].split():
            name, size = dim.split("=")
            sizes[name] = (int(size) - 1).bit_length()
    return "-".join(operations) + ":" + ",".join(str(sizes[name]) for name in sorted(sizes))


@lru_cache(maxsize=65536)
def is_timed(benchmark: str | None) -> bool:
    """Whether jobs of a benchmark are timed, failed ones included. None: a program was sent. Jobs that are not
    timed have no row in a data set; a failed profile has one, because its benchmark is a schedule's."""
    return benchmark is None or _core.kind_of(benchmark) == "loop_schedule"


def rows_of_file(path: str | Path, *, checked: bool = True) -> Iterator[Row]:
    """Rows of a database file, which a coordinator may be writing to, in the order of batches and
    finishing.

    `loopfleet db check` reads the file first: a damaged row becomes STORAGE_CORRUPT without
    figures, as at a coordinator. ``checked=False`` skips this check.
    """
    if not Path(path).is_file():
        raise LoopfleetError(f"there is no file {path}")
    damaged = damaged_rows(path) if checked else {}
    database = sqlite3.connect(f"file:{quote(str(path))}?mode=ro", uri=True)
    try:
        database.row_factory = sqlite3.Row
        (version,) = database.execute("PRAGMA user_version").fetchone()
        select = outcome_select("TRUE ORDER BY o.batch, o.sequence")
        for found in database.execute(select if version >= 6 else select.replace("r.samples_before", "NULL")):
            if (row := row_of_sql(found, damaged)) is not None:
                yield row
    except sqlite3.DatabaseError as error:
        raise LoopfleetError(f"{path}: {error}") from error
    finally:
        database.close()


def damaged_rows(path: str | Path) -> dict[str, set[str]]:
    """Table -> primary keys ("12.3" is batch 12, job 3)."""
    done = subprocess.run([find_program(), "db", "check", "--json", str(path)], capture_output=True, text=True,
                          check=False)
    try:
        said = json.loads(done.stdout)
    except ValueError:
        raise LoopfleetError(f"{path}: `loopfleet db check` failed: {done.stderr.strip()}") from None
    if "error" in said:
        raise LoopfleetError(f"{path}: {said['error']}")
    damage = said["damage"]
    if said["damage_count"] > len(damage) or not all(each["row"] for each in damage if each["table"] in _KEYS):
        raise LoopfleetError(f"{path} is damaged in {said['damage_count']} places; `loopfleet db check` tells where. "
                             "Restore a snapshot")
    damaged: dict[str, set[str]] = {}
    for each in damage:
        damaged.setdefault(each["table"], set()).add(each["row"])
    return damaged


# Table -> columns of _SQL that hold its primary key, for the tables that a row is built from.
_KEYS = {"outcomes": ("batch", "sequence"), "jobs": ("batch", "index"), "results": ("result_id",),
         "suspect_results": ("result_id",), "copied_results": ("result_id",), "conditions": ("conditions_id",), "hardware": ("hardware_id",),
         "compilers": ("compiler_id",)}


def _is_damaged(found: sqlite3.Row, damaged: dict[str, set[str]]) -> bool:
    return any(".".join(str(found[name]) for name in _KEYS[table]) in keys
               for table, keys in damaged.items() if table in _KEYS)


def _corrupt(found: sqlite3.Row, damaged: dict[str, set[str]]) -> Row:
    row: Row = {"batch": found["batch"], "index": found["index"], "status": "STORAGE_CORRUPT", "actions": [],
                "samples_ns": [], "sample_flags": [], "message": "its row in the database is damaged"}
    if f"{found['batch']}.{found['index']}" not in damaged.get("jobs", ()):
        row.update(benchmark=found["benchmark"], ir=found["ir"], tag=found["tag"], actions=_names(found["actions"]))
    return finished_row(row)


def _names(actions: str | None) -> list[str]:
    return [name for name in (actions or "").split(",") if name]


_SQL = """
SELECT r.id AS result_id, c.id AS conditions_id, h.id AS hardware_id, k.id AS compiler_id, o.sequence,
       j.benchmark, j.ir, j.actions, j.tag, o.batch, o.idx AS "index", o.source, o.attempts, o.worker,
       o.finished_at,
       lower(hex(coalesce(r.tree_key, o.failed_tree_key))) AS tree_key, o.failure_code,
       o.failure_message AS message, o.action_index, r.elapsed_ns, r.elapsed_low_ns, r.elapsed_high_ns,
       r.elapsed_min_ns, r.elapsed_mean_ns, r.spread, v.grade, r.iterations AS iterations_per_sample,
       r.samples_ns, r.sample_flags, r.samples_before AS samples_before_thinning, coalesce(r.flop_count, o.failed_flop_count) AS flop_count,
       coalesce(r.scratch_bytes, o.failed_scratch_bytes) AS scratch_bytes,
       coalesce(r.code_hash, o.failed_code_hash) AS code_hash, r.clock_before_mhz, r.clock_after_mhz,
       c.threads, c.cache, c.policy, c.isolation, h.class AS hardware_class, h.model AS hardware_model,
       h.isa, h.microcode, h.clock_mhz AS reference_clock_mhz, h.peak_flop_per_second / 1e9 AS peak_gflops,
       k.llvm, k.tier, k.revision AS lowering, v.source AS source_name, v.suspect,
       coalesce(o.result, 1) < 0 AS observed  -- not timed
FROM outcomes o
JOIN v_results v ON v.batch = o.batch AND v."index" = o.idx
JOIN jobs j ON j.batch = o.batch AND j.idx = o.idx
LEFT JOIN results r ON r.id = o.result
LEFT JOIN conditions c ON c.id = coalesce(r.conditions, o.failed_conditions)
LEFT JOIN hardware h ON h.id = c.hardware
LEFT JOIN compilers k ON k.id = c.compiler
"""


def outcome_select(condition: str) -> str:
    """SQL for a database file's outcomes (o), for `row_of_sql`."""
    return f"{_SQL}WHERE {condition}"


def row_of_sql(found: sqlite3.Row, damaged: dict[str, set[str]]) -> Row | None:
    """The row; without figures if it is damaged. None: the job is not timed, and has no row in a data set."""
    if found["observed"] or not is_timed(found["benchmark"]):
        return None
    return _corrupt(found, damaged) if _is_damaged(found, damaged) else _from_sql(found)


def _from_sql(found: sqlite3.Row) -> Row:
    row: Row = {name: found[name] for name in FIELDS if name in found.keys()}
    code = found["failure_code"]
    row["status"] = "ok" if code is None else FAILURE_NAMES.get(code, f"FAILURE_{code}")
    nobody_had_it = code is not None and found["source_name"] == "measured" and not found["attempts"]
    row["source"] = None if nobody_had_it else found["source_name"]
    row["finished_at"] = _iso_time(found["finished_at"])
    row["actions"] = _names(found["actions"])
    row["tree_key"] = found["tree_key"] or None
    if found["hardware_class"] is None:  # no worker ran it
        row["scratch_bytes"] = None
    row["gflops"] = found["flop_count"] / found["elapsed_ns"] if found["elapsed_ns"] else None
    samples = found["samples_ns"] or b""
    row["samples_ns"] = np.frombuffer(samples, "<f8").tolist()
    row["sample_flags"] = list(found["sample_flags"] or b"")
    return finished_row(row)


def _iso_time(nanoseconds: int) -> str:
    seconds, rest = divmod(nanoseconds, 10**9)
    return f"{datetime.fromtimestamp(seconds, timezone.utc):%Y-%m-%dT%H:%M:%S}.{rest // 10**6:03}Z"


def rows_of_batches(client: Client, batches: Iterable[int]) -> Iterator[Row]:
    """Rows of a coordinator's batches, given by number, as far as they have finished. Jobs that are
    not timed have none."""
    for batch in batches:
        for outcome in client.outcomes(batch):
            if outcome.observed is None and is_timed(outcome.benchmark):
                yield row_of(outcome)


def row_of(outcome: _core.Outcome) -> Row:
    said = outcome.to_dict()
    hardware, compiler = said["hardware"] or {}, said["compiler"] or {}
    ok = outcome.ok
    row: Row = {name: said.get(name) for name in FIELDS}
    row.update(
        status=outcome.status, message=None if ok else outcome.message, action_index=outcome.action_index,
        gflops=said["gflop_per_second"], hardware_class=hardware.get("class"), hardware_model=hardware.get("model"),
        isa=hardware.get("isa"), microcode=hardware.get("microcode"), reference_clock_mhz=hardware.get("clock_mhz"),
        peak_gflops=hardware.get("peak_gflop_per_second"), llvm=compiler.get("llvm"), tier=compiler.get("tier"),
        lowering=compiler.get("revision"), code_hash=compiler.get("code_hash"),
        clock_before_mhz=said["clock_mhz"]["before"], clock_after_mhz=said["clock_mhz"]["after"],
        tag=None if said["tag"] is None else json.dumps(said["tag"], separators=(",", ":")),
        batch=outcome.batch, index=outcome.index,
        finished_at=_core.iso_time(outcome), worker=said["worker"])
    row = finished_row(row)
    del row[SUSPECT]
    return row


def finished_row(row: Row) -> Row:
    """The row with every field, those that follow from others included."""
    for name in ("tag", "message", "worker", "code_hash"):
        row[name] = row.get(name) or None
    for name in ("clock_before_mhz", "clock_after_mhz", "peak_gflops", "flop_count"):
        row[name] = row.get(name) or None
    row["program"], row["region"] = program_of(row.get("benchmark"), row.get("ir"))
    return {name: row.get(name) for name in FIELDS}


def rebuild(row: Row, features: str = "agent58") -> _core.Walk:
    """The walk to a row's tree. A row does not contain the rules of its replay, so all are tried
    until the tree key matches."""
    benchmark, ir = row.get("benchmark") or "", row.get("ir") or ""
    for merge_all_first in (False, True):
        for rules in ("structural", "loop_nest", "loop_nest_58"):
            # Uses agent20, because with agent58 "loop_nest" means the older rules.
            walk = _core.Walk(benchmark=benchmark, ir=ir, features="agent20", rules=rules,
                              merge_all_first=merge_all_first)
            for name in row["actions"]:
                walk.apply(name)
            if walk.tree_key.hex() == row["tree_key"]:
                return walk if features == "agent20" else _core.Walk(ir=walk.observe("ir"), features=features,
                                                                     start_cursor=walk.cursor)
    raise _core.JobError(f"{benchmark or 'a program'} with {','.join(row['actions'])}: this version's tree has "
                         f"another key than {row['tree_key']}")
