"""Rows of a data set: one flat row per outcome, with its hardware and compiler. From a database
file or from a coordinator; both give the same fields, except that a coordinator gives no
SUSPECT."""

from __future__ import annotations

import hashlib
import uuid
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from . import _core
from .client import Client
from .errors import LoopfleetError

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
    "grade": "A within 1 %, B within 5 %, C worse, D no more than an order of magnitude",
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
    "peak_gflops": "the device's measured peak, of one thread",
    "clock_before_mhz": "of the core right before timing",
    "clock_after_mhz": "of the core right after timing",
    "llvm": "version of the compiler",
    "tier": "of the compiler",
    "lowering": "revision of the lowering",
    "code_hash": "digest of the object code",
    "source": "measured, same_code (another tree had the same machine code, measured before), stored (an equal "
              "request had been answered) or coalesced (one was under way); null: no worker had it",
    "attempts": "times the job was leased",
    "suspect": "why the figure was not trusted when this row was written; null: it was, or the row is a failure "
               "(those in doubt only stop answering)",
    "tag": "the submitter's own JSON text",
    "batch": "the job's batch",
    "index": "its place in the batch",
    "finished_at": "ISO 8601, UTC; null: a damaged row has lost it",
}

# Coordinators do not report it, so their rows lack this field: null would mean "trusted".
SUSPECT = "suspect"

# Statuses that tell about the fleet or its operator and not about the schedule.
NO_VERDICT = frozenset({"CANCELLED", "EXPIRED", "NO_MATCHING_WORKER", "VERSION_MISMATCH"})

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


def rows_of_file(path: str | Path) -> Iterator[Row]:
    """Rows of a database file, which a coordinator may be writing to, in the order of batches and
    finishing.

    Each row is compared with its checksum: a damaged one becomes STORAGE_CORRUPT without figures, as
    at a coordinator.
    """
    file = OutcomeFile(path)
    position, is_end = (0, {}), False
    while not is_end:
        rows, position, is_end = file.after(*position, 10_000)
        yield from rows


@dataclass(frozen=True)
class Restore:
    """What a database has from one that was lost: a snapshot of it."""

    lost: str                   # its coordinator; nil: not known, nor is `unfinished`
    first_batch: int            # those from it on came since
    last_batch: int             # the newest of the snapshot
    unfinished: dict[int, int]  # batches of the snapshot, with the number of outcomes that were there


class OutcomeFile:
    """A database file, read by the same code as a coordinator reads it."""

    def __init__(self, path: str | Path):
        if not Path(path).is_file():
            raise LoopfleetError(f"there is no file {path}")
        self._path = path
        try:
            self._database = _core.Database(str(path))
        except RuntimeError as error:
            raise LoopfleetError(f"{path}: {error}") from None

    def history(self) -> tuple[str, int, list[Restore]]:
        """The coordinator whose file this is now, the first batch that is its own, and the restores that led
        to it, the oldest first. A restored snapshot gets another coordinator when it is first written."""
        try:
            return (str(uuid.UUID(self._database.incarnation)), self._database.first_own_batch,
                    [Restore(str(uuid.UUID(lost)), *rest) for lost, *rest in self._database.restores])
        except RuntimeError as error:
            raise LoopfleetError(f"{self._path}: {error}") from None

    def after(self, last: int, open: dict[int, int], most: int) -> tuple[list[Row], tuple[int, dict[int, int]], bool]:
        """The rows of at most about ``most`` outcomes after a position, the position after them, and
        whether nothing more was there. A position is the newest batch that was begun, 0 for none, and of
        each batch up to it that may grow the sequence read last."""
        try:
            rows, last, open, is_end = self._database.next(last, open, most)
        except RuntimeError as error:
            raise LoopfleetError(f"{self._path}: {error}") from None
        return [with_program(row) for row in rows], (last, open), is_end


def rows_of_batches(client: Client, batches: Iterable[int]) -> Iterator[Row]:
    """Rows of a coordinator's batches, given by number, as far as they have finished. Jobs that are
    not timed have none."""
    for batch in batches:
        yield from _timed_rows(client.outcomes(batch))


def rows_of_coordinator(client: Client) -> Iterator[Row]:
    """Rows of all stored outcomes, in the order of rows_of_file()."""
    batch = sequence = 0
    is_end = False
    while not is_end:
        outcomes, batch, sequence, is_end = client._ask(
            lambda number, after=(batch, sequence): _core.encode_list_outcomes(number, *after), "outcome_list", None)
        yield from _timed_rows(outcomes)


def _timed_rows(outcomes: Iterable[_core.Outcome]) -> Iterator[Row]:
    return (row_of(outcome) for outcome in outcomes if outcome.observed is None and is_timed(outcome.benchmark))


def row_of(outcome: _core.Outcome) -> Row:
    """Of a coordinator's outcome, whose job is timed: without SUSPECT."""
    row = with_program(outcome.dataset_row())
    del row[SUSPECT]
    return row


def with_program(row: Row) -> Row:
    """The row itself, with what follows from its benchmark or IR text."""
    row["program"], row["region"] = program_of(row["benchmark"], row["ir"])
    return row


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
