"""Feeds of finished outcomes, each once, in steps that can be resumed: from a database file that a
coordinator may be writing to, or from PostgreSQL, where `loopfleet-mirror` copies outcomes to."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path
from typing import Any, Protocol

from .. import _core
from ..errors import LoopfleetError, installing
from ..rows import FIELDS, OutcomeFile, Restore, Row, is_timed, with_program


@dataclass
class Position:
    """How far a feed has come in one coordinator's outcomes."""

    last: int = 0                                        # the newest batch that was begun
    open: dict[int, int] = field(default_factory=dict)   # batches up to it that may grow: the sequence read last
    lost: bool = False                                   # a restored snapshot of this database goes on


Positions = dict[str, Position]  # by coordinator: the incarnation of its database


@dataclass
class Step:
    """Rows that follow a position, with their coordinators."""

    rows: list[tuple[str, Row]]
    after: Positions
    is_end: bool  # nothing more was there


class Feed(Protocol):
    def step(self, positions: Positions, most: int) -> Step:
        """At most about ``most`` rows that follow ``positions``."""

    def close(self) -> None: ...


class FeedUnavailable(LoopfleetError):
    """The server cannot be reached now, or the file cannot be read."""


class FeedMismatch(LoopfleetError):
    """The positions are of other databases."""


@dataclass
class _Found:
    batch: int
    sequence: int
    row: Row | None  # None: of a job that is not timed


def _advance(reading: _PostgresReading, position: Position, most: int) -> tuple[list[Row], Position, bool]:
    """The rows after a position, the position after them, and whether those were all."""
    rows: list[Row] = []
    after = Position(position.last, dict(position.open))
    room = most
    for batch, sequence in position.open.items():
        if room == 0:
            return rows, after, False
        found = reading.after(batch, sequence, room)
        room -= len(found)
        rows += [each.row for each in found if each.row is not None]
        if found:
            after.open[batch] = found[-1].sequence
        if room > 0 and batch not in reading.open:
            del after.open[batch]
    if room == 0:
        return rows, after, False
    found = reading.beyond(position.last, room)
    rows += [each.row for each in found if each.row is not None]
    is_cut = len(found) == room
    after.last = found[-1].batch if is_cut else max(reading.last, position.last)
    new = {batch: 0 for batch in reading.open if position.last < batch <= after.last}
    new.update({each.batch: each.sequence for each in found
                if each.batch in reading.open or is_cut and each.batch == after.last})
    after.open.update(new)
    return rows, after, not is_cut


class FileFeed:
    """Of a database file, also when a restored snapshot takes its place."""

    def __init__(self, path: str | Path):
        self._path = Path(path)
        self._open()

    def _open(self) -> None:
        self._inode = self._present_inode()  # before opening: a file that comes between is seen by the next step
        self._file = OutcomeFile(self._path)

    def _present_inode(self) -> int:
        try:
            return self._path.stat().st_ino
        except FileNotFoundError:
            raise FeedUnavailable(f"there is no file {self._path}") from None

    def step(self, positions: Positions, most: int) -> Step:
        is_replaced = self._present_inode() != self._inode
        try:
            if is_replaced:
                self._open()
            return self._step(positions, most)
        except LoopfleetError as error:
            if not is_replaced or isinstance(error, (FeedUnavailable, FeedMismatch)):
                raise
            raise FeedUnavailable(str(error)) from None  # it may still be copied

    def _step(self, positions: Positions, most: int) -> Step:
        coordinator, first_own, restores = self._file.history()
        after = dict(positions)
        if coordinator not in after and first_own > 1 and after:
            lost = _the_lost(after)
            after[coordinator] = _inherited(after[lost], _restore_of(lost, first_own, restores))
            after[lost] = replace(after[lost], lost=True)
        from_ = after.get(coordinator, Position())
        rows, reached, is_end = self._file.after(from_.last, from_.open, most)
        after[coordinator] = Position(*reached, from_.lost)
        return Step([(coordinator, row) for row in rows], after, is_end)

    def close(self) -> None:
        del self._file


def _the_lost(positions: Positions) -> str:
    """The database whose snapshot was restored."""
    present = [name for name, position in positions.items() if not position.lost]
    if len(present) != 1:
        raise FeedMismatch("the database is a restored snapshot, and the folder has rows of several databases: give a new "
                           "folder")
    return present[0]


def _restore_of(lost: str, first_own: int, restores: list[Restore]) -> Restore:
    """The restore of a snapshot of the lost database, by which this one has its outcomes; later ones are of no account.
    If there is none, both came from one database: the last restore, and what had ended in both is not known."""
    last = Restore("", first_own, 0, {})
    for restore in restores:
        if restore.lost == lost:
            return restore
        if restore.first_batch == first_own:
            last = replace(restore, last_batch=0)
    return last


def _inherited(lost: Position, restore: Restore) -> Position:
    """The position of a restored snapshot from that of the lost database. Of batches that were under way, other
    outcomes may have the same sequence now, so those are read from their beginning, or after the outcomes of the
    snapshot, which both have. Batches that had ended in the snapshot are the same in both."""
    last = min(lost.last, restore.first_batch - 1)
    open = {batch: sequence if batch <= restore.last_batch else 0
            for batch, sequence in lost.open.items() if batch < restore.first_batch}
    open.update({batch: min(lost.open.get(batch, finished), finished)
                 for batch, finished in restore.unfinished.items() if batch <= last})
    return Position(last, open)


class PostgresFeed:
    """Of a PostgreSQL database, at an address as libpq takes it. `psycopg` is needed."""

    def __init__(self, address: str):
        try:
            import psycopg
        except ImportError:
            raise LoopfleetError(f"reading PostgreSQL needs the Python package 'psycopg': {installing('postgres')}; or "
                                 "Debian's python3-psycopg") from None
        self._psycopg = psycopg
        try:
            self._connection = psycopg.connect(address, autocommit=True, row_factory=psycopg.rows.dict_row,
                                               application_name="loopfleet-export", connect_timeout=10,
                                               keepalives_idle=5, keepalives_interval=5, keepalives_count=3,
                                               tcp_user_timeout=20_000)
            self._connection.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
            self._connection.read_only = True
        except psycopg.OperationalError as error:
            raise FeedUnavailable(f"PostgreSQL: {_first_line(error)}") from None
        except psycopg.Error as error:
            raise LoopfleetError(f"PostgreSQL: {_first_line(error)}") from None

    def step(self, positions: Positions, most: int) -> Step:
        try:
            with self._connection.transaction():
                return self._step(positions, most)
        except self._psycopg.errors.UndefinedTable:
            raise LoopfleetError("PostgreSQL: the database has no outcomes of loopfleet; a coordinator with --results, or "
                                 "loopfleet-mirror, brings them there") from None
        except self._psycopg.errors.UndefinedColumn:
            raise LoopfleetError("PostgreSQL: the tables are those of an earlier loopfleet; start the loopfleet-mirror "
                                 "of this version once, which brings them to its own") from None
        except self._psycopg.OperationalError as error:
            raise FeedUnavailable(f"PostgreSQL: {_first_line(error)}") from None
        except self._psycopg.Error as error:
            raise LoopfleetError(f"PostgreSQL: {_first_line(error)}") from None

    def _step(self, positions: Positions, most: int) -> Step:
        step = Step([], dict(positions), True)
        for each in self._connection.execute("SELECT id, incarnation::text AS incarnation, last_batch FROM "
                                             "loopfleet.coordinators ORDER BY id").fetchall():
            room = most - len(step.rows)
            if room <= 0:
                step.is_end = False
                break
            name = each["incarnation"]
            reading = _PostgresReading(self._connection, each["id"], each["last_batch"])
            rows, step.after[name], is_end = _advance(reading, positions.get(name, Position()), room)
            step.rows += [(name, row) for row in rows]
            step.is_end = step.is_end and is_end
        return step

    def close(self) -> None:
        self._connection.close()


class _PostgresReading:
    def __init__(self, connection: Any, coordinator: int, last: int):
        self.last = last
        self.open = {each["batch"] for each in connection.execute(
            "SELECT batch FROM loopfleet.open_batches WHERE coordinator = %s", (coordinator,))}
        self._connection = connection
        self._coordinator = coordinator

    def after(self, batch: int, sequence: int, most: int) -> list[_Found]:
        return self._read("o.batch = %s AND o.sequence > %s", batch, sequence, most)

    def beyond(self, batch: int, most: int) -> list[_Found]:
        return self._read("o.batch > %s", batch, most)

    def _read(self, condition: str, *values: int) -> list[_Found]:
        found = self._connection.execute(
            f"{_POSTGRES_SELECT} WHERE o.coordinator = %s AND {condition} ORDER BY o.batch, o.sequence LIMIT %s",
            (self._coordinator, *values))
        return [_Found(each["batch"], each["sequence"], _row_of_postgres(each))
                for each in found]


_POSTGRES_SELECT = """
SELECT o.batch, o.index, o.sequence, o.benchmark, o.actions, o.tag, o.source, o.attempts, o.worker,
       o.finished_at AT TIME ZONE 'UTC' AS finished_at, encode(o.tree_key, 'hex') AS tree_key, coalesce(o.failure, 'ok') AS status, o.message, o.action_index,
       o.elapsed_ns, o.elapsed_low_ns, o.elapsed_high_ns, o.elapsed_min_ns, o.elapsed_mean_ns, o.spread, o.grade,
       o.iterations AS iterations_per_sample, o.samples_ns, o.sample_flags, o.samples_before AS samples_before_thinning, o.flop_count, o.scratch_bytes, o.code_hash,
       c.threads, c.cache, c.policy, c.isolation, c.hardware_class, c.model AS hardware_model, c.isa, c.llvm, c.lowering,
       c.hardware, o.clock_before_mhz, o.clock_after_mhz, coalesce(d.reason, f.reason) AS suspect, o.observed IS NOT NULL AS observed
FROM loopfleet.outcomes o
LEFT JOIN loopfleet.conditions c ON c.id = o.conditions
LEFT JOIN loopfleet.doubts d ON d.tree_key = o.tree_key AND d.measured_at = o.finished_at AND d.worker = o.worker
LEFT JOIN loopfleet.doubts f ON f.tree_key = o.figure_tree_key AND f.measured_at = o.figure_measured_at
  AND f.worker = o.figure_worker
"""
_NO_TIME = datetime(1970, 1, 1)  # of a damaged row
_ADVICE = {name: advice for _, name, _, advice in _core.failure_codes()}


def _row_of_postgres(found: dict[str, Any]) -> Row | None:
    """None: the job is not timed, and has no row in a data set."""
    row: Row = dict(found)
    hardware = found["hardware"] or {}
    is_uri = "://" in found["benchmark"].split("\n", 1)[0]
    row["benchmark"], row["ir"] = (found["benchmark"], None) if is_uri else (None, found["benchmark"])
    if found["observed"] or not is_timed(row["benchmark"]):
        return None
    at = found["finished_at"]
    row["finished_at"] = None if at == _NO_TIME else f"{at:%Y-%m-%dT%H:%M:%S}.{at.microsecond // 1000:03}Z"
    row["actions"] = [name for name in found["actions"].split(",") if name]
    if found["status"] != "ok" and found["source"] == "measured" and not found["attempts"]:
        row["source"] = None  # no worker had it
    if found["hardware_class"] is None:
        row["scratch_bytes"] = None
    row["tier"], _, row["lowering"] = (found["lowering"] or "").partition(" ")
    row["tier"], row["lowering"] = row["tier"] or None, row["lowering"] or None
    row["microcode"] = hardware.get("microcode")
    row["reference_clock_mhz"] = hardware.get("clock_mhz")
    row["peak_gflops"] = hardware.get("peak_gflop_per_second")
    row["gflops"] = found["flop_count"] / found["elapsed_ns"] if found["elapsed_ns"] else None
    row["samples_ns"] = found["samples_ns"] or []
    row["sample_flags"] = list(found["sample_flags"] or b"")
    for name in ("benchmark", "ir", "tag", "message", "worker", "code_hash", "clock_before_mhz", "clock_after_mhz",
                 "peak_gflops", "flop_count"):
        row[name] = row[name] or None
    row["message"] = row["message"] or _ADVICE.get(row["status"])
    with_program(row)
    return {name: row.get(name) for name in FIELDS}


def _first_line(error: Exception) -> str:
    return str(error).strip().split("\n", 1)[0]


def is_postgres(database: str | Path) -> bool:
    return str(database).startswith(("postgresql://", "postgres://"))


def open_feed(database: str | Path) -> Feed:
    """``database``: a file, or a postgresql:// address."""
    return PostgresFeed(str(database)) if is_postgres(database) else FileFeed(database)


def rows_of_feed(feed: Feed, most: int = 20_000) -> Iterator[Row]:
    """Every row that is there now. Closes the feed."""
    try:
        positions: Positions = {}
        while True:
            step = feed.step(positions, most)
            yield from (row for _, row in step.rows)
            if step.is_end:
                return
            positions = step.after
    finally:
        feed.close()
