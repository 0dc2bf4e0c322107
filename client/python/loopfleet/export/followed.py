"""FollowedExport: a folder of files that grows with the outcomes, partitioned by day as Hive does.

    FOLDER/day=2026-11-28/000042.parquet     the rows of round 42 that finished on that day (UTC)
    FOLDER/_position.json                    how far it is, and how it was made

A round is committed by replacing `_position.json`, which also names the round's files; they are
complete by then, below `.new`, and get their places after it. After a kill the next run
finishes that. So each row is in one file, and each file appears whole.
"""

from __future__ import annotations

import fcntl
import json
import os
import sys
import threading
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path

from ..errors import LoopfleetError
from ..rows import FIELDS, NO_VERDICT, Row
from ..splits import Split
from .outcome_feed import Feed, FeedMismatch, FeedUnavailable, Position, Positions, Step
from .part_file import WRITERS

_POSITION = "_position.json"
_NEW = ".new"
_NO_DAY = "__HIVE_DEFAULT_PARTITION__"  # of a damaged row


class FollowedExport:
    """Files of rows, by day. One process at a time has a folder.

    Errors: the folder has other files, was made otherwise, or belongs to another process.
    """

    def __init__(self, folder: str | Path, *, format: str = "parquet", split: Split | None = None):
        self.folder = Path(folder)
        self._format = format
        self._split = split or Split()
        self._columns = ["coordinator", *FIELDS, "part"]
        self._made = {"version": 1, "format": format, "split": self._split.kind, "seed": self._split.seed,
                      "shares": list(self._split.shares), "columns": self._columns}
        path = self.folder / _POSITION
        if self.folder.exists() and not path.exists() and any(
                each.name != _NEW for each in self.folder.iterdir()):
            raise LoopfleetError(f"{self.folder} is no followed export (it has no {_POSITION}); give a new folder")
        self.folder.mkdir(parents=True, exist_ok=True)
        self._new = self.folder / _NEW
        self._new.mkdir(exist_ok=True)
        self._lock = os.open(self._new, os.O_RDONLY | os.O_DIRECTORY)
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            self._round, self.positions = self._read(path)
        except BlockingIOError:
            os.close(self._lock)
            raise LoopfleetError(f"another process follows into {self.folder}") from None
        except BaseException:
            os.close(self._lock)
            raise
        for left in self._new.iterdir():  # of a round that was not committed
            left.unlink()

    def __enter__(self) -> FollowedExport:
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self._lock)

    def add(self, step: Step) -> int:
        """Writes a step's rows, except those of NO_VERDICT, and moves the position. Returns how many
        rows were written."""
        if step.after == self.positions:
            return 0
        days: dict[str, list[Row]] = {}
        for coordinator, row in step.rows:
            if row["status"] not in NO_VERDICT:
                day = row["finished_at"][:len("2026-11-28")] if row["finished_at"] else _NO_DAY
                days.setdefault(day, []).append({"coordinator": coordinator, **row, "part": self._split.part(row)})
        number = self._round + (1 if days else 0)
        for day, rows in days.items():
            path = self._new / self._name(number, day)
            writer = WRITERS[self._format](path, self._columns)
            try:
                writer.write([{name: row[name] for name in self._columns} for row in rows])
            finally:
                writer.close()
            _sync(path)
        _sync(self._new)
        self._commit(number, sorted(days), step.after)
        self._place(number, sorted(days))
        self._round, self.positions = number, step.after
        return sum(map(len, days.values()))

    def _name(self, number: int, day: str) -> str:
        return f"{number:06}-{day}.{self._format}"

    def _commit(self, number: int, days: list[str], positions: Positions) -> None:
        said = {**self._made, "round": number, "days": days,
                "positions": {name: asdict(position) for name, position in positions.items()}}
        path = self._new / _POSITION
        path.write_text(json.dumps(said, indent=1) + "\n", encoding="utf-8")
        _sync(path)
        path.rename(self.folder / _POSITION)
        _sync(self.folder)

    def _place(self, number: int, days: list[str]) -> None:
        """Moves the files of a committed round to their places, if they are not there yet."""
        for day in days:
            made = self._new / self._name(number, day)
            if made.exists():
                partition = self.folder / f"day={day}"
                if not partition.exists():
                    partition.mkdir()
                    _sync(self.folder)
                made.rename(partition / f"{number:06}.{self._format}")
                _sync(partition)

    def _read(self, path: Path) -> tuple[int, Positions]:
        if not path.exists():
            return 0, {}
        said = json.loads(path.read_text(encoding="utf-8"))
        said.setdefault("shares", list(Split().shares))  # earlier versions did not say them
        for name, value in self._made.items():
            if said.get(name) != value:
                raise LoopfleetError(f"{self.folder} was made with {name} {said.get(name)!r}, and not {value!r}: go on as "
                                     "it was begun, or give a new folder")
        self._place(said["round"], said["days"])
        return said["round"], {name: Position(each["last"], {int(batch): sequence for batch, sequence in each["open"].items()},
                                              each.get("lost", False))
                               for name, each in said["positions"].items()}


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def follow(open_feed: Callable[[], Feed], export: FollowedExport, stop: threading.Event, *, most_rows: int = 50_000,
           interval_s: float = 60.0, once: bool = False) -> int:
    """Adds what follows the export's position, looks again each ``interval_s`` seconds until ``stop``, and
    returns the number of rows. ``once``: ends when nothing more is there.

    A server that goes away is asked again; that it is away from the start, or with ``once``, is an error.
    """
    written, was_away = 0, False
    feed: Feed | None = open_feed()
    try:
        while not stop.is_set():
            is_end = True
            try:
                feed = feed or open_feed()
                step = feed.step(export.positions, most_rows)
                written += export.add(step)
                is_end, was_away = step.is_end, False
            except LoopfleetError as error:
                # A file that takes the place of another one may be anything while it is copied.
                if once or isinstance(error, FeedMismatch) or not (was_away or isinstance(error, FeedUnavailable)):
                    raise
                was_away = True
                print(f"loopfleet-export: {error}; it is tried again", file=sys.stderr)
                if feed is not None:
                    feed.close()
                feed = None
            if not is_end:
                continue
            if once:
                break
            stop.wait(interval_s)
    finally:
        if feed is not None:
            feed.close()
    return written
